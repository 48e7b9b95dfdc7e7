"""The store: entries stay whole through every kill, keep what people wrote, and never lead out of their folder."""

# ruff: noqa: PT017, PTH112, PTH208 - a failure may come at any line of these blocks
from __future__ import annotations

import errno
import os
import shutil
import sys
import time
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import doiget
from doiget import Author, Resolved, Retraction, StoredFile, Work, make_citekey, parse_ref, safekey

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX links and limits")
DAY = 86400
REF = parse_ref("10.1103/physrevlett.130.200601")
KEY = "doi_10.1103_physrevlett.130.200601"
PDF = b"%PDF-1.7\n" + b"one" * 400
PDF_2 = b"%PDF-1.7\n" + b"two" * 400  # of the same size: only its bytes tell it apart


class Clock:
    def __init__(self):
        self.now = 1_800_000_000.0

    def __call__(self):
        self.now += 1
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    return open_store(tmp_path / "papers", clock)


def open_store(root, clock):
    return doiget.Store(root, doiget.AccessLog(root.parent / "conf" / "access.log"), clock)


def work(**values):
    base = Work(type="journal-article", title="The Markov state models", authors=(Author(family="Smith", given="J."),),
                date="2013", year=2013, doi=REF.id)  # fmt: skip
    return doiget.replace(base, **values)


def resolved(ref=REF, source="crossref", **values):
    return Resolved(str(ref), work(**{"doi": ref.id if ref.kind is doiget.RefKind.DOI else None, **values}), source)


def put_pdf(store, ref=REF, body=PDF, license="cc-by", **values):  # noqa: A002 - the field's name
    with doiget.hold_lock(store.lock_path(ref)), store.new_part(ref) as part:
        part.write(body)
        file = StoredFile(
            part.sha256(), part.size, "openalex", "arxiv.org", "publishedVersion", license, "2026-11-30T00:00:00.000Z"
        )
        return store.save(resolved(ref, **values), file=file, part=part)


def entries_of(store):
    """Every readable entry, in the order of the keys."""
    return [entry for key in store.keys() if (entry := store.load_key(key))]  # noqa: SIM118 - a store is no dict


def tag(store, ref, *tags):
    entry = store.load(ref)
    return store.save(Resolved(entry.ref, entry.work, "store"), tags=tags)


def names(folder):
    return sorted(os.listdir(folder)) if folder.exists() else []


def hidden(store):
    """Every leftover: parts, waiting records, lock files."""
    return [
        n
        for n in [*names(store.root), *names(store.metadata)]
        if n.startswith(".") and n not in {".metadata", ".locks", ".trash"}
    ] + names(store.metadata / ".locks")


# ---- layout and reading ----


def test_reading_creates_nothing(store):
    assert store.load(REF) is None
    assert store.find(parse_ref("arXiv:1706.03762")) is None
    assert entries_of(store) == []
    assert store.recent(10) == ([], 0, None)
    assert store.trash() == []
    for call in (store.remove, store.restore):
        with pytest.raises(doiget.DoigetError) as caught:
            call(REF)
        assert caught.value.reason == "no_pdf_in_store"
    assert not store.root.exists()
    assert not store.log.path.exists()


def test_an_entry_with_its_pdf(store, clock):
    entry = put_pdf(store)
    assert entry == open_store(store.root, clock).load(REF)
    assert entry.pdf_path == store.root / f"{KEY}.pdf"
    assert entry.pdf_path.read_bytes() == PDF
    assert entry.record_path == store.root / ".metadata" / f"{KEY}.toml"
    assert (entry.ref, entry.citekey, entry.source, entry.tags) == (str(REF), "smith2013markov", "crossref", ())
    assert entry.file.license == "cc-by"
    assert doiget.parse_utc(entry.added_at) >= 1_800_000_000
    assert hidden(store) == []
    assert names(store.root) == [".metadata", f"{KEY}.pdf"]
    (line,) = store.log.tail(5)
    assert (line["event"], line["ref"], line["sha256"], line["size_bytes"]) == (
        "store_write",
        str(REF),
        entry.file.sha256,
        len(PDF),
    )
    table = doiget.parse_toml(entry.record_path.read_bytes())
    assert table["schema_version"] == doiget.SCHEMA_VERSION
    if sys.platform != "win32":
        assert entry.record_path.stat().st_mode & 0o777 == entry.pdf_path.stat().st_mode & 0o777


def test_a_record_without_pdf_and_saving_it_again_changes_nothing(store):
    entry = store.save(resolved())
    assert (entry.pdf_path, entry.file, entry.warnings) == (None, None, ())
    before = entry.record_path.stat()
    lines = store.log.verify()["lines"]
    assert store.save(resolved()) == entry
    assert entry.record_path.stat().st_mtime_ns == before.st_mtime_ns
    assert store.log.verify()["lines"] == lines


def test_unknown_never_overwrites_known(store):
    put_pdf(store, abstract="What it says.", retraction=Retraction("retracted", "10.1/n"), license="cc-by")
    later = store.save(Resolved(str(REF), Work(title="The Markov State Models"), "datacite"), tags=["ml", "ml", " x\n"])
    assert later.work.title == "The Markov State Models"
    assert later.work.abstract == "What it says."
    assert later.work.retraction.status == "retracted"
    assert later.file.license == "cc-by"
    assert later.pdf_path is not None
    assert later.tags == ("ml", "x")
    assert store.save(resolved()).tags == ("ml", "x")
    assert store.save(doiget.replace(resolved(), source="store")).source == "crossref"


def test_a_new_year_takes_the_old_date_with_it(store):
    store.save(resolved(date="2019-03-02", year=2019))
    entry = store.save(resolved(date="2020", year=2020))
    assert (entry.work.year, entry.work.date) == (2020, "2020")
    assert store.load(REF).work == entry.work


def test_what_a_person_wrote_survives(store):
    entry = put_pdf(store)
    text = entry.record_path.read_text()
    text = text.replace("tags = []", 'tags = ["mine"]\nrating = 5\nread = 2026-11-30T10:00:00Z')
    text = (
        text.replace('family = "Smith"', 'orcid = "0000-0001", family = "Smith"')
        + '\n[notes]\nwhere = ["desk", {shelf = 3}]\n'
    )
    text = text.replace("[work]", '[work]\nshelf = "A"\npmid = "soon"').replace("[file]", "[file]\npages = 12")
    assert doiget.parse_toml(text.encode())
    entry.record_path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())  # Notepad's way
    edited = store.load(REF)
    assert edited.tags == ("mine",)
    store.save(resolved(abstract="New."))
    table = doiget.parse_toml(entry.record_path.read_bytes())
    assert table["rating"] == 5
    assert table["read"].year == 2026
    assert table["notes"] == {"where": ["desk", {"shelf": 3}]}
    assert table["work"]["shelf"] == "A"
    assert table["work"]["pmid"] == "soon"  # mistyped, but a person's
    assert table["work"]["authors"][0] == {"family": "Smith", "given": "J.", "orcid": "0000-0001"}
    assert table["work"]["abstract"] == "New."
    assert table["file"]["pages"] == 12
    assert store.load(REF).tags == ("mine",)
    tag(store, REF, "b")
    assert doiget.parse_toml(entry.record_path.read_bytes())["rating"] == 5


def test_a_lost_pdf_does_not_leave_its_licence_to_the_next(store):
    put_pdf(store, license="cc-by").pdf_path.unlink()
    assert put_pdf(store, body=PDF_2, license=None).file.license is None
    assert store.load(REF).file.license is None


def test_a_pdf_that_counts_is_not_replaced(store):
    first = put_pdf(store, license="cc-by")
    with pytest.raises(doiget.DoigetError) as caught:
        put_pdf(store, body=PDF_2)
    assert caught.value.reason == "schema"
    assert store.load(REF) == first
    assert first.pdf_path.read_bytes() == PDF
    assert hidden(store) == []


# ---- what is not believed ----


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda p: p.unlink(), "missing"),
        (lambda p: p.write_bytes(PDF[:-1]), "size"),
        (lambda p: p.write_bytes(PDF + b"annotation"), "size"),
        (lambda p: p.write_bytes(b"<html>".ljust(len(PDF))), "no PDF"),
        (lambda p: (p.unlink(), p.mkdir()), "not a plain file"),
    ],
)
def test_a_pdf_that_is_not_the_recorded_one_does_not_count(store, change, word):
    entry = put_pdf(store)
    change(entry.pdf_path)
    found = store.load(REF)
    assert (found.file, found.pdf_path) == (None, None)
    assert word in found.warnings[0]
    if word != "not a plain file":
        again = put_pdf(store)
        assert again.pdf_path.read_bytes() == PDF
        assert store.load(REF) == doiget.replace(again, warnings=())


def test_a_persons_pdf_is_moved_to_the_trash_not_overwritten(store):
    entry = put_pdf(store)
    entry.pdf_path.write_bytes(PDF + b"my notes")
    again = put_pdf(store)
    (kept,) = store.trash_folder.glob("*/paper.pdf")
    assert kept.read_bytes() == PDF + b"my notes"
    assert str(kept) in again.warnings[0]
    assert store.load(REF).warnings == ()
    (row,) = store.trash()
    assert (row["ref"], row["title"], row["has_pdf"]) == (None, f"{KEY}.pdf", True)
    assert row["trash_path"] == str(kept.parent)
    with pytest.raises(doiget.DoigetError):
        store.restore(REF)  # a file of its own is no entry
    other = parse_ref("10.1000/dropped")
    store.pdf_path(safekey(other)).write_bytes(b"%PDF-mine")
    assert store.load(other) is None  # no record names it
    put_pdf(store, other)
    assert store.load(other).pdf_path.read_bytes() == PDF
    assert len(list(store.trash_folder.glob("*/paper.pdf"))) == 2


@posix
def test_symlinks_are_refused(store, tmp_path):
    entry = put_pdf(store)
    outside = tmp_path / "outside.pdf"
    entry.pdf_path.rename(outside)
    entry.pdf_path.symlink_to(outside)
    assert store.load(REF).pdf_path is None
    put_pdf(store, body=PDF_2)
    assert outside.read_bytes() == PDF
    assert not entry.pdf_path.is_symlink()
    record = tmp_path / "outside.toml"
    entry.record_path.rename(record)
    entry.record_path.symlink_to(record)
    assert store.load(REF) is None
    assert "symbolic link" in store.problems[f"{KEY}.toml"]
    with pytest.raises(doiget.DoigetError) as caught:
        store.save(resolved())
    assert caught.value.reason == "not_writable"
    assert entries_of(store) == []


@posix
def test_a_linked_metadata_folder_is_not_written(store, tmp_path):
    put_pdf(store)
    store.metadata.rename(tmp_path / "elsewhere")
    store.metadata.symlink_to(tmp_path / "elsewhere")
    before = names(tmp_path / "elsewhere")
    with pytest.raises(doiget.DoigetError):
        store.save(resolved(abstract="x"))
    assert names(tmp_path / "elsewhere") == before


def test_a_record_for_another_key_is_refused(store):
    entry = put_pdf(store)
    other = parse_ref("10.1000/other")
    shutil.copy(entry.record_path, store.record_path(safekey(other)))
    shutil.copy(entry.pdf_path, store.pdf_path(safekey(other)))
    assert store.load(other) is None
    assert "another reference" in store.problems["doi_10.1000_other.toml"]
    assert [e.ref for e in entries_of(store)] == [str(REF)]


@pytest.mark.parametrize(
    "content", [b"", b"not toml", b"a = 1", b'ref = "nonsense"', b"\xff\xfe", b"a=" + b"[" * 99_999, b"ref = 3"]
)
def test_one_broken_record_breaks_nothing(store, content):
    entry = put_pdf(store)
    other = store.save(resolved(parse_ref("10.1000/other"), title="Other"))
    entry.record_path.write_bytes(content)
    assert store.load(REF) is None
    assert [e.ref for e in entries_of(store)] == [other.ref]
    assert [e.ref for e in store.recent(10)[0]] == [other.ref]
    assert f"{KEY}.toml" in store.problems
    with pytest.raises(doiget.DoigetError):
        store.remove(REF)
    again = put_pdf(store)  # the next fetch repairs it, and the broken text is kept
    assert f"{KEY}.toml could not be read" in again.warnings[0]
    assert store.load(REF) == doiget.replace(again, warnings=())
    assert [p.read_bytes() for p in store.trash_folder.glob("*/record.toml")] == [content]
    assert store.problems == {}


def test_a_newer_major_is_read_and_never_written(store):
    entry = put_pdf(store)
    text = entry.record_path.read_text().replace('schema_version = "1.0"', 'schema_version = "2.0"\nnew = 1')
    entry.record_path.write_text(text)
    found = store.load(REF)
    assert found.pdf_path is not None
    assert "newer" in found.warnings[0]
    for call in (
        lambda: store.save(resolved(abstract="x")),
        lambda: put_pdf(store, body=PDF_2),
        lambda: tag(store, REF, "a"),
        lambda: store.remove(REF),
    ):
        with pytest.raises(doiget.DoigetError) as caught:
            call()
        assert caught.value.reason == "newer_schema"
    assert entry.record_path.read_text() == text
    assert entry.pdf_path.read_bytes() == PDF
    assert hidden(store) == []
    text = text.replace('"2.0"', '"1.7"')
    entry.record_path.write_text(text)
    store.save(resolved(abstract="x"))
    table = doiget.parse_toml(entry.record_path.read_bytes())
    assert (table["schema_version"], table["new"]) == ("1.7", 1)


# ---- arXiv versions (case ST-02) ----


def test_versions_are_entries_of_their_own(store):
    bare, v1, v7 = (parse_ref(f"arXiv:1706.03762{v}") for v in ("", "v1", "v7"))
    put_pdf(store, v7, body=PDF)
    assert store.find(bare).ref == "arXiv:1706.03762v7"
    put_pdf(store, v1, body=PDF_2)
    assert store.find(bare).ref == "arXiv:1706.03762v7"
    assert store.load(bare) is None
    assert store.find(v1).pdf_path.read_bytes() == PDF_2
    assert store.find(parse_ref("arXiv:1706.03762v3")) is None
    assert [e.ref for e in entries_of(store)] == ["arXiv:1706.03762v1", "arXiv:1706.03762v7"]
    store.save(resolved(bare))
    assert store.load(bare).pdf_path is None
    assert store.find(bare).ref == "arXiv:1706.03762v7"  # the one with a PDF
    put_pdf(store, bare)
    assert store.find(bare).ref == "arXiv:1706.03762"
    assert len(names(store.root)) == 4


# ---- recent ----


def test_recent_pages_stay_stable_while_entries_come(store):
    for number in range(7):
        store.save(resolved(parse_ref(f"10.1000/{number}")))
    first, total, cursor = store.recent(3)
    assert ([e.ref for e in first], total) == (["10.1000/6", "10.1000/5", "10.1000/4"], 7)
    store.save(resolved(parse_ref("10.1000/new")))
    second, total, cursor = store.recent(3, cursor)
    assert ([e.ref for e in second], total) == (["10.1000/3", "10.1000/2", "10.1000/1"], 8)
    store.remove(parse_ref("10.1000/1"))
    third, _, cursor = store.recent(3, cursor)
    assert ([e.ref for e in third], cursor) == (["10.1000/0"], None)
    assert store.recent(100)[2] is None
    assert store.recent(7)[2] is None


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "0",
        "====",
        "WyJ4Il0",
        "bnVsbA",
        "WyJyZWNlbnQiLCIyMDI2IiwiLi4veCJd",
        "é",
        "2026-11-30T13:05:00.000Z~../x",
    ],
)
def test_a_foreign_cursor_is_refused(store, cursor):
    with pytest.raises(doiget.DoigetError) as caught:
        store.recent(3, cursor)
    assert caught.value.reason == "bad_cursor"


# ---- the trash ----


def test_remove_and_restore(store, clock):
    entry = put_pdf(store)
    done = store.remove(REF)
    assert (done["ref"], done["had_pdf"], done["undo"]) == (str(REF), True, f"doiget restore {REF}")
    assert store.load(REF) is None
    assert names(store.root) == [".metadata"]
    (listed,) = store.trash()
    assert (listed["ref"], listed["citekey"], listed["has_pdf"]) == (str(REF), entry.citekey, True)
    assert store.restore(REF) == entry
    assert open_store(store.root, clock).load(REF) == entry
    assert store.trash() == []
    assert hidden(store) == names(store.trash_folder) == []
    assert [line["event"] for line in store.log.tail(9)] == ["store_write", "store_remove", "store_restore"]


def test_restore_takes_the_place_of_a_record_without_pdf(store):
    put_pdf(store, abstract="Old.")
    removed = tag(store, REF, "a")
    store.remove(REF)
    again = store.save(resolved(volume="5"), tags=["b"])
    assert again.citekey == "smith2013markov"  # a work that comes back gets its own key again
    assert store.restore(REF) == removed == store.load(REF)
    (kept,) = store.trash()
    assert (kept["ref"], kept["has_pdf"]) == (str(REF), False)


def test_restore_does_not_replace_a_pdf(store):
    put_pdf(store)
    store.remove(REF)
    put_pdf(store, body=PDF_2)
    with pytest.raises(doiget.DoigetError) as caught:
        store.restore(REF)
    assert caught.value.reason == "schema"
    assert store.load(REF).pdf_path.read_bytes() == PDF_2
    assert len(store.trash()) == 1


def test_the_newest_removal_is_restored(store):
    put_pdf(store)
    store.remove(REF)
    put_pdf(store, body=PDF_2)
    store.remove(REF)
    assert store.restore(REF).pdf_path.read_bytes() == PDF_2
    store.remove(REF)
    assert len(store.trash()) == 2


@posix
def test_a_link_in_the_trash_leads_nowhere(store, clock, tmp_path):
    """What it points to is neither restored from nor, when its time has come, deleted."""
    put_pdf(store)
    store.remove(REF)
    (kept,) = store.trash_folder.iterdir()
    outside = tmp_path / "outside"
    kept.rename(outside)
    kept.symlink_to(outside)
    assert store.trash() == []
    with pytest.raises(doiget.DoigetError):
        store.restore(REF)
    clock.now += 40 * DAY
    put_pdf(open_store(store.root, clock), parse_ref("10.1000/a"))
    assert len(names(outside)) == 2


def test_the_trash_is_purged_after_30_days(store, clock):
    put_pdf(store)
    store.remove(REF)
    clock.now += 29 * DAY
    open_store(store.root, clock).save(resolved(parse_ref("10.1000/a")))
    assert len(store.trash()) == 1
    foreign = store.trash_folder / "mine.txt"
    foreign.write_text("x")
    clock.now += 2 * DAY
    open_store(store.root, clock).save(resolved(parse_ref("10.1000/b")))
    assert names(store.trash_folder) == ["mine.txt"]
    assert "store_purge" in [line["event"] for line in store.log.tail(9)]


# ---- leftovers ----


def test_leftovers_of_dead_writers_go_and_those_of_the_living_stay(store, clock):
    put_pdf(store)
    dead, alive = parse_ref("10.1000/dead"), parse_ref("10.1000/alive")
    dead_part = store.root / f".{doiget.safekey(dead)}.0123456789abcdef.part"
    dead_part.write_bytes(PDF)
    record_part = store.metadata / f".{KEY}.toml.0123456789abcdef.part"
    record_part.write_text("x")
    pending_part = store.metadata / f"..{KEY}.next.toml.0123456789abcdef.part"
    pending_part.write_text("x")
    mine = store.root / ".notes.part"
    mine.write_text("x")
    with doiget.hold_lock(store.lock_path(dead)):
        dead_part.write_bytes(PDF)
        store.new_part(dead).discard()  # who holds the lock of a dead writer's part clears it away at once
        assert not dead_part.exists()
    dead_part.write_bytes(PDF)
    with doiget.hold_lock(store.lock_path(alive)):
        part = store.new_part(alive)
        open_store(store.root, clock).save(resolved(abstract="x"))
        assert [n for n in names(store.root) if n.endswith(".part")] == sorted([part.path.name, ".notes.part"])
        part.discard()
    assert not store.lock_path(alive).exists()
    assert not record_part.exists()
    assert not pending_part.exists()


def test_save_uses_the_part_up_whatever_happens(store, monkeypatch):
    store.save(resolved())
    monkeypatch.setattr(
        store.log, "append", lambda *_a, **_k: (_ for _ in ()).throw(doiget.DoigetError("log_unwritable"))
    )
    part = store.new_part(REF)
    part.write(PDF)
    with pytest.raises(doiget.DoigetError):
        store.save(resolved(volume="9"), file=StoredFile(part.sha256(), part.size), part=part)
    assert hidden(store) == []


def test_what_cannot_be_logged_is_not_stored(tmp_path, clock):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "access.log").write_text("something else\n")
    store = open_store(tmp_path / "papers", clock)
    for call in (lambda: put_pdf(store), lambda: store.save(resolved())):
        with pytest.raises(doiget.DoigetError) as caught:
            call()
        assert caught.value.reason == "log_unwritable"
    assert entries_of(store) == []
    assert [n for n in names(store.root) if n != ".metadata"] == []


# ---- kills and full disks at every step ----


class Killed(BaseException):
    pass


STEPS = ("open", "write", "ftruncate", "unlink", "rename", "replace", "mkdir", "rmdir")


class Saboteur:
    """Counts what is done to the disk, and from one step on lets nothing through: all fail like a kill, or one fails."""  # noqa: E501

    def __init__(self, step, error=None):
        self.step, self.error, self.count = step, error, 0
        self.real = {name: getattr(os, name) for name in STEPS}

    def wrap(self, name):
        def call(*args, **kwargs):
            if name == "open" and not args[1] & os.O_CREAT:
                return self.real[name](*args, **kwargs)  # changes nothing
            self.count += 1
            if self.error is None and self.count > self.step:
                if name == "write" and self.count == self.step + 1:
                    self.real["write"](args[0], bytes(args[1])[: len(args[1]) // 2])
                raise Killed
            if self.error is not None and self.count == self.step + 1 and name not in ("unlink", "rmdir", "ftruncate"):
                raise OSError(self.error, "injected")
            return self.real[name](*args, **kwargs)

        return call

    def __enter__(self):
        for name in STEPS:
            setattr(os, name, self.wrap(name))
        return self

    def __exit__(self, *_):
        for name in STEPS:
            setattr(os, name, self.real[name])


def seen(store, clock):
    """What a reader sees: every entry with the bytes of its PDF."""
    entries = entries_of(open_store(store.root, clock))
    return {
        e.ref: (
            doiget.replace(
                e,
                warnings=(),
                record_path=e.record_path.relative_to(store.root),
                pdf_path=e.pdf_path and e.pdf_path.name,
            ),
            e.pdf_path.read_bytes() if e.pdf_path else None,
        )
        for e in entries
    }


def finished(folder, prepare, do):
    """What a reader sees when nothing goes wrong."""
    clock, root = Clock(), folder / "papers"
    folder.mkdir()
    prepare(open_store(root, clock))
    do(open_store(root, clock))
    return without_dates(seen(open_store(root, clock), clock))


def do_save_new(store):
    put_pdf(store, abstract="New.")


def do_save_record(store):
    store.save(resolved(abstract="New."))


def do_remove(store):
    store.remove(REF)


def do_restore(store):
    store.restore(REF)


def do_refetch(store):
    put_pdf(store, body=PDF_2, abstract="New.", license=None)


def prepare_nothing(store):
    store.save(resolved(parse_ref("10.1000/other")))


def prepare_entry(store):
    put_pdf(store)


def prepare_annotated(store):
    put_pdf(store).pdf_path.write_bytes(PDF + b"my notes")


def prepare_lost(store):
    put_pdf(store).pdf_path.unlink()


def prepare_trash(store):
    put_pdf(store)
    store.remove(REF)


def prepare_trash_and_record(store):
    prepare_trash(store)
    store.save(resolved(volume="5"))


CHANGES = [
    (prepare_nothing, do_save_new), (prepare_entry, do_save_record), (prepare_annotated, do_refetch),
    (prepare_lost, do_refetch), (prepare_entry, do_remove), (prepare_trash, do_restore),
    (prepare_trash_and_record, do_restore), (prepare_trash, do_save_new),
]  # fmt: skip


@pytest.mark.long
def test_a_full_disk_at_every_step_of_a_new_copy(tmp_path, monkeypatch):
    test_every_step_leaves_old_or_new(tmp_path, monkeypatch, (prepare_annotated, do_refetch), errno.ENOSPC)


def without_dates(state):
    return {ref: (doiget.replace(entry, added_at=""), body) for ref, (entry, body) in state.items()}


def settle(root, clock, change, before, after, new):
    """The next write of anything settles what is left and changes nothing that is seen; then the change succeeds."""
    prepare, do = change
    later = open_store(root, clock)
    later.save(resolved(parse_ref("10.1000/later"), title="Later"))
    settled = seen(later, clock)
    settled.pop("10.1000/later")
    assert settled == after
    if do is do_restore:  # what is back is not in the trash as well, and nothing is lost
        assert any(row["has_pdf"] for row in later.trash()) == (after == before)
        assert bool(later.trash()) == (after == before or prepare is prepare_trash_and_record)
    assert [n for n in hidden(later) if not n.endswith(".lock")] == []
    assert later.log.verify()["ok"]
    if after == before:
        do(open_store(root, clock))
        settled = seen(later, clock)
        settled.pop("10.1000/later")
        assert without_dates(settled) == new
    whole = sum(body is not None for _, body in settled.values())
    assert len([n for n in names(root) if n.endswith(".pdf")]) == whole


def failed_at(step, store, do, error):
    """Let one step fail with an error of the disk; returns (failed, nothing was left to fail)."""
    with Saboteur(step, error) as saboteur:
        try:
            do(store)
        except doiget.DoigetError as exc:
            assert exc.code is doiget.Code.STORE_ERROR
            return True, False
    return False, saboteur.count <= step


def killed_at(step, store, do):
    """Let a process of its own die at a step, locks and all; returns (died, nothing was left to die at)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons mind forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            with Saboteur(step, None):
                do(store)
            code = 0
        except Killed:
            code = 9
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, 9}, (step, code)
    return code == 9, code == 0


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: f"{c[0].__name__}-{c[1].__name__}")
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(None, id="kill"),
        pytest.param(errno.ENOSPC, id="full", marks=pytest.mark.long),
        pytest.param(errno.EIO, id="io", marks=pytest.mark.long),
    ],
)
def test_every_step_leaves_old_or_new(tmp_path, monkeypatch, change, error):
    prepare, do = change
    monkeypatch.setattr(os, "fsync", lambda _fd: None)
    new = finished(tmp_path / "finished", prepare, do)
    (tmp_path / "prepared").mkdir()
    clock = Clock()
    prepare(open_store(tmp_path / "prepared" / "papers", clock))
    done = False
    for step in range(400):
        root = tmp_path / str(step) / "papers"
        shutil.copytree(tmp_path / "prepared", root.parent)
        store = open_store(root, clock)
        store._tidied_at = time.monotonic() if step % 2 else -doiget.HOUSEKEEPING_S
        before = seen(store, clock)
        failed, done = killed_at(step, store, do) if error is None else failed_at(step, store, do, error)
        after = seen(store, clock)
        if failed:
            assert after == before or without_dates(after) == new, (step, after)
            if error is not None:
                assert [n for n in hidden(store) if n.endswith((".part", ".toml"))] == [], step
        settle(root, clock, change, before, after, new)
        shutil.rmtree(root.parent)
        if done:
            break
    assert done
    assert step > 8


# ---- citekeys (cases BX-04, BX-05) ----


@pytest.mark.parametrize(
    ("family", "year", "title", "expected"),
    [
        ("Günther", 2005, None, "gunther2005"),
        ("Łukasiewicz", 1929, "Elementy logiki", "lukasiewicz1929elementy"),
        ("Acuña Íñigo", 2011, "La vida de los otros", "acunainigo2011vida"),
        ("Smith", None, "On the Origin", "smithndorigin"),
        ("Weiß", 2020, "Über die Wärme", "weiss2020warme"),
        ("Østergård", 1999, "L\u2019amour d'Alembert", "ostergard1999amour"),
        ("Þórsson", 2001, "1984 and 2001", "thorsson2001"),
        ("王", 2020, "深度学习", "wang2020shenduxuexi"),
        ("Пушкин", 1833, "Евгений Онегин", "pushkin1833evgeniy"),
        ("김", 2021, "", "gim2021"),
        ("3M", 2000, "A", "x3m2000"),
        ("O'Neil-Smith", 2000, "Don't panic", "oneilsmith2000dont"),
        ("\u0130nce", 2000, "A-B", "ince2000"),
    ],
)
def test_citekey_form(family, year, title, expected):
    made = make_citekey(Work(authors=(Author(family=family),), year=year, title=title))
    assert made == expected


def test_citekey_does_not_depend_on_the_language():
    one = Work(authors=(Author(family="Günther"),), year=2005)
    assert make_citekey(one) == make_citekey(doiget.replace(one, language="de"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Work(), "anonnd"),
        (Work(year=2005), "anon2005"),
        (Work(year=2005, title="The Title"), "anon2005title"),
        (Work(year=2005, editors=(Author(family="Ed"),)), "ed2005"),
        (Work(year=2005, authors=(Author(literal="ATLAS Collaboration"),)), "atlascollaboration2005"),
        (Work(year=2005, institution="CERN"), "cern2005"),
        (Work(year=2005, publisher="Zenodo", authors=(Author(literal="???"),)), "zenodo2005"),
    ],
)
def test_citekey_fallback_is_never_the_year_alone(given, expected):
    assert make_citekey(given) == expected


def test_collisions_count_in_letters():
    taken = set()
    for number in range(30):
        made = make_citekey(Work(authors=(Author(family="Smith"),), year=2013), taken)
        taken.add(made)
        assert made == "smith2013" + ["", *"abcdefghijklmnopqrstuvwxyz", "aa", "ab", "ac"][number]


@settings(max_examples=100, deadline=None)
@given(family=st.text(max_size=20), title=st.text(max_size=40), year=st.none() | st.integers(1000, 2100))
def test_every_citekey_is_a_good_one(family, title, year):
    import re

    made = make_citekey(Work(authors=(Author(family=family),), year=year, title=title))
    assert re.match(r"^[A-Za-z][A-Za-z0-9_:.-]*$", made)
    assert len(made) <= 60


def test_citekeys_never_move(store, clock):
    smith = {"title": None, "date": "2013", "year": 2013}
    p, q, r, s = (parse_ref(f"10.1000/{x}") for x in "pqrs")
    assert store.save(resolved(p, **smith)).citekey == "smith2013"
    assert store.save(resolved(q, **smith)).citekey == "smith2013a"
    other = open_store(store.root, clock)
    assert other.save(resolved(r, **smith)).citekey == "smith2013b"
    store.remove(p)
    assert store.save(resolved(q, **{**smith, "title": "A new title"})).citekey == "smith2013a"
    assert store.load(r).citekey == "smith2013b"
    assert store.save(resolved(s, **smith)).citekey == "smith2013c"  # P may come back
    assert store.restore(p).citekey == "smith2013"
    record = store.record_path(safekey(s))
    record.write_text(record.read_text().replace('"smith2013c"', '"Smith:My-Key"'))
    assert store.save(resolved(s, abstract="x", **smith)).citekey == "Smith:My-Key"


def test_citekeys_cost_one_look_at_each_new_name(store, clock, monkeypatch):
    for number in range(20):
        store.save(resolved(parse_ref(f"10.1000/{number}")))
    looked, parsed = [], []
    real_look, real_parse = doiget._load_head, doiget.parse_toml
    monkeypatch.setattr(doiget, "_load_head", lambda path, ns: looked.append(path.name) or real_look(path, ns))
    monkeypatch.setattr(doiget, "parse_toml", lambda data: parsed.append(1) or real_parse(data))
    other = open_store(store.root, clock)
    other.save(resolved(parse_ref("10.1000/a")))
    assert (len(looked), len(parsed)) == (20, 0)
    record = store.record_path(safekey(parse_ref("10.1000/3")))
    text = record.read_text()
    key = doiget.parse_toml(text.encode())["citekey"]
    record.write_text(text.replace(f'"{key}"', '"jones2020markov"'))
    made = other.save(resolved(parse_ref("10.1000/b"), authors=(Author(family="Jones"),), date="2020", year=2020))
    assert made.citekey == "jones2020markova"  # what a person changed meanwhile is seen
    assert sorted(looked[20:]) == ["doi_10.1000_3.toml", "doi_10.1000_a.toml"]


@posix
def test_two_processes_never_give_one_key_twice(tmp_path):
    import multiprocessing

    def many(name):
        store = open_store(tmp_path / "papers", time.time)
        for number in range(15):
            store.save(resolved(parse_ref(f"10.1000/{name}{number}")))

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=many, args=(name,)) for name in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    store = open_store(tmp_path / "papers", time.time)
    keys = [e.citekey for e in entries_of(store)]
    assert len(keys) == len(set(keys)) == 30
    assert store.log.verify()["ok"]


# ---- properties ----


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(flips=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4))
def test_no_flipped_byte_of_a_record_crashes_or_loses_the_folder(store, flips):
    entry = store.load(REF) or put_pdf(store, abstract="Text.")
    whole = entry.record_path.read_bytes()
    raw = bytearray(whole)
    for place, byte in flips:
        raw[place % len(raw)] = byte
    entry.record_path.write_bytes(raw)
    found = store.load(REF)
    assert found is None or found.pdf_path in (None, entry.pdf_path)
    store.recent(5)
    store.save(resolved(parse_ref("10.1000/other")))
    entry.record_path.write_bytes(whole)
    assert store.load(REF) == entry


@posix
@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs a small file system")
def test_a_size_limit_loses_nothing(store, clock):
    import multiprocessing
    import resource

    entry = put_pdf(store)
    big = parse_ref("10.1000/big")

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            put_pdf(open_store(store.root, clock), big, body=PDF * 1000)
        except doiget.DoigetError as exc:
            os._exit(0 if exc.reason == "disk_full" and str(store.root) in exc.message else 3)
        os._exit(4)

    worker = multiprocessing.get_context("fork").Process(target=limited)
    worker.start()
    worker.join(30)
    assert worker.exitcode == 0
    assert hidden(store) == []
    assert store.load(REF) == entry
    assert store.load(big) is None
