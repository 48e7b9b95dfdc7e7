"""Papers for machines without network: lists of what is wanted, packs made elsewhere, unpacked with suspicion."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import tracemalloc
import types
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Home, Runner
from fake_internet import never
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_25_cli import unprivileged
from worlds import pdf_bytes, pdf_chunks

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fake_internet import FakeInternet
    from worlds import World

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX signals, links and limits")
MANIFEST = "doiget-pack.json"
REF = "10.1000/one"
KEY = "doi_10.1000_one"
PDF, RECORD = f"{KEY}.pdf", f".metadata/{KEY}.toml"
OTHER, OTHER_KEY = "10.1000/two", "doi_10.1000_two"

# ############################################################################
# Stores and packs
# ############################################################################


def entries_of(store: doiget.Store) -> list[Any]:
    """Every readable entry, in the order of the keys."""
    return [entry for key in store.keys() if (entry := store.load_key(key))]  # noqa: SIM118 - a store is no dict


def open_store(root: Path) -> doiget.Store:
    return doiget.Store(root, doiget.AccessLog(root.parent / "log" / "access.log"))


def shelve(store: doiget.Store, ref: str, body: bytes | None = b"", *, tags: tuple[str, ...] = (), **facts: Any) -> Any:
    """Put an entry into a store; `body` None for a record alone."""
    parsed = doiget.parse_ref(ref)
    names = {"doi": "doi", "arxiv": "arxiv_id", "pmid": "pmid", "pmcid": "pmcid"}
    work = doiget.Work(
        **{names[parsed.kind.value]: parsed.id, "title": f"About {ref}", "date": "2020", "year": 2020} | facts
    )
    resolved = doiget.Resolved(parsed.canonical, work, "crossref")
    if body is None:
        return store.save(resolved, tags=tags)
    with doiget.hold_lock(store.lock_path(parsed)), store.new_part(parsed) as part:
        part.write(body or pdf_bytes(ref))
        when = "2026-11-30T00:00:00.000Z"
        file = doiget.StoredFile(part.sha256(), part.size, "openalex", "plos.org", "publishedVersion", "cc-by", when)
        return store.save(resolved, file=file, part=part, tags=tags)


def pack_of(store: doiget.Store, target: Path) -> bytes:
    """Pack a whole store; returns the bytes of the pack."""
    facts = doiget.write_pack(store, store.keys(), target)
    data = target.read_bytes()
    assert facts["sha256"] == hashlib.sha256(data).hexdigest()
    assert facts["size_bytes"] == len(data)
    return data


@pytest.fixture
def good(tmp_path: Path) -> bytes:
    """A pack of two papers."""
    store = open_store(tmp_path / "source" / "papers")
    shelve(store, REF, tags=("of the pack",), title="One", abstract="What it says.", volume="7")
    shelve(store, OTHER, title="Two")
    return pack_of(store, tmp_path / "good.zip")


@dataclass
class Forge:
    """A pack taken apart, to be put together in another way; the manifest follows the members unless it is set."""

    members: dict[str, bytes]
    manifest: Any = None
    extra: list[tuple[zipfile.ZipInfo, bytes]] = field(default_factory=list)
    listed: dict[str, bytes] = field(default_factory=dict)  # what the manifest is to say of other names, or instead
    patches: list[tuple[bytes, bytes]] = field(default_factory=list)  # of the finished file

    @classmethod
    def of(cls, data: bytes) -> Forge:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return cls({name: archive.read(name) for name in archive.namelist() if name != MANIFEST})

    def add(
        self, name: str, body: bytes, *, mode: int = stat.S_IFREG | 0o644, compress: int = 0, flags: int = 0
    ) -> None:
        info = zipfile.ZipInfo(name)
        info.external_attr, info.compress_type, info.flag_bits, info.create_system = mode << 16, compress, flags, 3
        self.extra.append((info, body))

    def rows(self) -> list[dict[str, Any]]:
        named = self.members | {info.filename: body for info, body in self.extra} | self.listed
        return [{"name": n, "size": len(b), "sha256": hashlib.sha256(b).hexdigest()} for n, b in named.items()]

    def bytes(self) -> bytes:
        manifest = (
            {"format": "doiget-pack", "version": 1, "files": self.rows()} if self.manifest is None else self.manifest
        )
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name, body in self.members.items():
                archive.writestr(zipfile.ZipInfo(name), body)
            for info, body in self.extra:
                archive.writestr(info, body, info.compress_type)
            text = manifest if isinstance(manifest, (str, bytes)) else json.dumps(manifest)
            archive.writestr(zipfile.ZipInfo(MANIFEST), text)
        return functools.reduce(lambda data, pair: data.replace(*pair), self.patches, out.getvalue())

    def edit(self, key: str, **values: Any) -> None:
        """Change the record of a key: its top level, `work__title` for what stands in [work]."""
        name = f".metadata/{key}.toml"
        table = doiget.parse_toml(self.members[name])
        for path, value in values.items():
            *folders, last = path.split("__")
            place = table
            for folder in folders:
                place = place[folder]
            place[last] = value
        self.members[name] = doiget.render_toml(table)


def unpack(store: doiget.Store, path: Path, **how: Any) -> dict[str, Any]:
    """Unpack into a store, in process."""
    ctx: Any = types.SimpleNamespace(store=store, log=store.log, emit=None, progress=None)
    return doiget.unpack(ctx, str(path), **how)


def outcomes(answer: dict[str, Any]) -> dict[str, str]:
    return {row["input"]: row["outcome"] for row in answer["results"]}


def tree(root: Path) -> dict[str, bytes | str]:
    """Every file below a folder with its bytes, links with where they lead."""
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(root))] = str(path.readlink())
        elif path.is_file():
            found[str(path.relative_to(root))] = path.read_bytes()
    return found


def leftovers(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.name.endswith((".part", ".lock", ".owner")))


# ############################################################################
# Packing
# ############################################################################


def test_the_same_entries_give_the_same_bytes(tmp_path: Path) -> None:
    """Whatever their order of arrival, the folder, the umask and the clock."""
    refs = [f"10.1000/{number}" for number in range(6)]
    packs = []
    for number, order in enumerate((refs, refs[::-1])):
        store = open_store(tmp_path / str(number) / "papers")
        for ref in order:
            shelve(store, ref, None if ref.endswith("3") else b"", title=f"Word{ref[-1]}")
        for name in sorted(store.citekeys()):  # when they came in is of the entry, not of the pack
            record = store.record_path(name)
            record.write_bytes(b"\n".join(line for line in record.read_bytes().split(b"\n") if b"added_at" not in line))
            os.utime(record, (1e9 + number, 1e9 + number))
        before = os.umask(0o077 if number else 0o022)
        try:
            packs.append(pack_of(store, tmp_path / f"{number}.zip"))
        finally:
            os.umask(before)
    assert packs[0] == packs[1]


def test_a_pack_is_a_plain_zip_file(tmp_path: Path, good: bytes) -> None:
    """Any unzip tool reads it: records and PDFs as they are in the store, and a manifest last."""
    source = tree(tmp_path / "source" / "papers")
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names == [RECORD, PDF, f".metadata/{OTHER_KEY}.toml", f"{OTHER_KEY}.pdf", MANIFEST]
        manifest = json.loads(archive.read(MANIFEST))
        assert (manifest["format"], manifest["version"]) == ("doiget-pack", 1)
        for row in manifest["files"]:
            body = archive.read(row["name"])
            assert body == source[row["name"]]
            assert (row["size"], row["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())
        for info in archive.infolist():
            assert (info.date_time, info.compress_type, info.external_attr >> 16) == (
                (1980, 1, 1, 0, 0, 0),
                0,
                0o100644,
            )


def spoil(store: doiget.Store, how: str) -> None:
    """Damage the entry of REF."""
    pdf, record = store.pdf_path(KEY), store.record_path(KEY)
    outside = store.root.parent / "outside"
    if how == "changed":
        body = bytearray(pdf.read_bytes())
        body[-20] ^= 1
        pdf.write_bytes(body)
    elif how == "cut":
        pdf.write_bytes(pdf.read_bytes()[:-1])
    elif how == "gone":
        pdf.unlink()
    elif how == "no pdf":
        pdf.write_bytes(b"x" * pdf.stat().st_size)
    elif how == "no toml":
        record.write_text("oops = [")
    elif how == "another's":
        shutil.copy(store.record_path(OTHER_KEY), record)
    else:
        victim = {"linked pdf": pdf, "linked record": record}[how]
        victim.rename(outside)
        victim.symlink_to(outside)


@posix
@pytest.mark.parametrize(
    "how", ["changed", "cut", "gone", "no pdf", "no toml", "another's", "linked pdf", "linked record"]
)
def test_what_is_damaged_is_left_out_with_a_warning(tmp_path: Path, how: str) -> None:
    store = open_store(tmp_path / "papers")
    for ref in (REF, OTHER):
        shelve(store, ref)
    spoil(store, how)
    facts = doiget.write_pack(store, store.keys(), tmp_path / "p.zip")
    assert facts["counts"] == {"records": 1, "pdfs": 1, "left_out": 1}
    assert KEY in facts["warnings"][0]
    with zipfile.ZipFile(tmp_path / "p.zip") as archive:
        assert [name for name in archive.namelist() if OTHER_KEY not in name] == [MANIFEST]
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.write_pack(store, [KEY], tmp_path / "none.zip")
    assert caught.value.reason == "no_pdf_in_store"
    assert sorted(path.name for path in tmp_path.iterdir() if "zip" in path.name) == ["p.zip"]


def test_what_to_pack(run: Runner, home: Home) -> None:
    """Everything, or what refs, lists, stdin and a query name; what is not there is said."""
    store = open_store(home.store)
    for number in range(4):
        shelve(
            store,
            f"10.1000/{number}",
            None if number == 3 else b"",
            title=f"Study of {'cats' if number % 2 else 'dogs'}",
        )
    (home.cwd / "list.txt").write_text("# mine\n10.1000/1\n10.1000/absent\n")

    def packed(*words: str, **how: Any) -> tuple[list[str], Any]:
        result = run("pack", "p.zip", *words, "--json", **how)
        assert result.rc == 0, result
        with zipfile.ZipFile(home.cwd / "p.zip") as archive:
            return [name[-6:-5] for name in archive.namelist() if name.endswith(".toml")], result.json()

    everything, answer = packed()
    assert everything == ["0", "1", "2", "3"]
    assert answer["counts"] == {"records": 4, "pdfs": 3, "left_out": 0, "missing": 0}
    assert answer["file"] == str(home.cwd / "p.zip")
    assert packed("https://doi.org/10.1000/2", "10.1000/0", "10.1000/2")[0] == ["0", "2"]
    names, answer = packed("list.txt", "-", input="10.1000/3\nnonsense\n")
    assert (names, answer["missing"]) == (["1", "3"], ["10.1000/absent", "entry nonsense"])
    assert packed("--query", "study cats")[0] == ["1", "3"]
    assert run("pack", "other.zip", "10.1000/0", "--query", "cats").rc == 2
    result = run("pack", "other.zip", "10.1000/absent")
    assert result.rc == 4
    assert not (home.cwd / "other.zip").exists()
    assert run("pack", "other.zip", "--query", "unicorns").rc == 4


def test_a_person_reads_what_was_packed_and_how_to_unpack_it(run: Runner, home: Home) -> None:
    shelve(open_store(home.store), REF)
    result = run("pack", home.root / "new papers.zip")
    first, counts, tell = result.out.splitlines()
    digest = hashlib.sha256((home.root / "new papers.zip").read_bytes()).hexdigest()
    assert (first, counts) == (str(home.root / "new papers.zip"), "1 records, 1 pdfs; 0.0 MB")
    assert digest in tell
    result = run("unpack", home.root / "new papers.zip", "--sha256", digest.upper(), "--store", home.root / "there")
    assert result.out.splitlines() == [
        f"{KEY}\t{home.root / 'there' / PDF}",
        "1 added, 0 already, 0 conflicts, 0 skipped",
    ]
    lines = run("unpack", home.root / "new papers.zip", "--jsonl", "--store", home.root / "there").jsonl()
    assert [line["outcome"] for line in lines] == ["already"]


@posix
def test_no_foreign_file_is_overwritten(run: Runner, home: Home, net: FakeInternet) -> None:
    """A pack replaces a pack, a wanted list a wanted list; anything else in the way is left alone, before any work."""
    shelve(open_store(home.store), REF)
    taken = home.cwd / "taken"
    for command in (("pack", taken), ("batch", OTHER, "--wanted", taken)):
        taken.write_text("mine, and long enough to hold any mark at its end")
        result = run(*command, "--json")
        assert (result.rc, result.json()["error"]["code"]) == (2, "INVALID_ARGUMENT"), result
        assert taken.read_text().startswith("mine")
        taken.unlink()
        assert run(*command[:-1], "").rc == 2
    (home.root / "victim").write_text("")
    taken.symlink_to(home.root / "victim")
    store = open_store(home.store)
    for odd in (taken, *map(Path, ("/dev/null", "/", ".", "..", "absent/file"))):
        for write in (doiget.save_wanted, lambda path, _: doiget.write_pack(store, [KEY], path)):
            with pytest.raises(doiget.DoigetError):
                write(odd, {})
    assert Path("/dev/null").is_char_device()
    assert taken.is_symlink()
    taken.unlink()
    assert net.connects() == []
    taken.write_text("")  # as mktemp makes it
    assert run("pack", taken).rc == run("pack", taken).rc == 0
    assert zipfile.is_zipfile(taken)
    assert run("batch", "--offline", OTHER, "--wanted", taken).rc == 2
    assert zipfile.is_zipfile(taken)


@posix
def test_a_full_disk_leaves_no_half_pack(run: Runner, home: Home) -> None:
    import resource

    shelve(open_store(home.store), REF, pdf_bytes("big", size=300_000))
    assert run("pack", "p.zip", OTHER, REF).rc == 0
    before = (home.cwd / "p.zip").read_bytes()

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    for command in (("pack", "p.zip"), ("unpack", "p.zip", "--store", home.root / "there")):
        result = run(*command, "--json", preexec_fn=limit)
        assert (result.rc, result.json()["error"]["reason"]) == (10, "disk_full"), result
    assert (home.cwd / "p.zip").read_bytes() == before
    assert leftovers(home.root) == []
    assert run("unpack", "p.zip", "--store", home.root / "there").rc == 0


# ############################################################################
# Merging
# ############################################################################


def test_a_pack_becomes_entries_with_all_that_is_known(tmp_path: Path, good: bytes) -> None:
    source, store = open_store(tmp_path / "source" / "papers"), open_store(tmp_path / "target" / "papers")
    answer = unpack(store, tmp_path / "good.zip", sha256=hashlib.sha256(good).hexdigest())
    assert answer["counts"] == {"added": 2, "already": 0, "conflicts": 0, "skipped": 0}
    for ref in (REF, OTHER):
        theirs, ours = source.load(doiget.parse_ref(ref)), store.load(doiget.parse_ref(ref))
        assert ours.pdf_path.read_bytes() == theirs.pdf_path.read_bytes()
        for name in ("ref", "work", "file", "citekey", "tags", "source"):
            assert getattr(ours, name) == getattr(theirs, name), name
        row = next(row for row in answer["results"] if row["ref"] == ref)
        assert (row["path"], row["citekey"], row["warnings"]) == (str(ours.pdf_path), ours.citekey, [])
    assert [line["event"] for line in store.log.tail(9)] == ["unpack", "store_write", "store_write"]
    assert store.log.tail(3)[0]["sha256"] == answer["sha256"] == hashlib.sha256(good).hexdigest()
    assert store.log.verify()["ok"]


def test_unpacking_again_changes_nothing(tmp_path: Path, good: bytes) -> None:
    store = open_store(tmp_path / "target" / "papers")
    unpack(store, tmp_path / "good.zip")
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*") if path.is_file()}
    answer = unpack(store, tmp_path / "good.zip")
    assert answer["counts"] == {"added": 0, "already": 2, "conflicts": 0, "skipped": 0}
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*") if path.is_file()} == before
    assert good


@pytest.mark.usefixtures("good")
def test_what_is_known_stays_and_what_is_unknown_is_filled_in(tmp_path: Path) -> None:
    store = open_store(tmp_path / "target" / "papers")
    mine = shelve(store, REF, None, tags=("mine",), title="My own title", publisher="My press")
    record = store.record_path(KEY)
    record.write_text(record.read_text() + '\n[notes]\ntext = "read twice"\n')
    answer = unpack(store, tmp_path / "good.zip")
    assert outcomes(answer) == {KEY: "added", OTHER_KEY: "added"}
    entry = store.load(doiget.parse_ref(REF))
    work = entry.work
    assert (work.title, work.publisher, work.volume, work.abstract) == (
        "My own title",
        "My press",
        "7",
        "What it says.",
    )
    assert (entry.citekey, entry.added_at, entry.source) == (mine.citekey, mine.added_at, "crossref")
    assert entry.tags == ("mine", "of the pack")
    assert doiget.parse_toml(entry.record_path.read_bytes())["notes"] == {"text": "read twice"}
    assert entry.pdf_path


@pytest.mark.usefixtures("good")
def test_a_record_alone_adds_no_pdf_and_takes_none_away(tmp_path: Path) -> None:
    source, store = open_store(tmp_path / "bare" / "papers"), open_store(tmp_path / "target" / "papers")
    shelve(source, REF, None, title="One", issue="3")
    pack_of(source, tmp_path / "bare.zip")
    assert outcomes(unpack(store, tmp_path / "bare.zip")) == {KEY: "added"}
    assert store.load(doiget.parse_ref(REF)).pdf_path is None
    assert outcomes(unpack(store, tmp_path / "good.zip")) == {KEY: "added", OTHER_KEY: "added"}
    assert outcomes(unpack(store, tmp_path / "bare.zip")) == {KEY: "already"}
    entry = store.load(doiget.parse_ref(REF))
    assert entry.pdf_path
    assert entry.work.issue == "3"


@pytest.mark.usefixtures("good")
@pytest.mark.parametrize(
    "what", ["another pdf", "an annotated pdf", "a pdf without record", "a damaged record", "a link"]
)
def test_what_is_in_the_way_is_a_conflict_and_stays(tmp_path: Path, what: str) -> None:
    store = open_store(tmp_path / "target" / "papers")
    if what == "a pdf without record":
        store.root.mkdir(parents=True)
        store.pdf_path(KEY).write_bytes(b"%PDF-1.4 my own")
    elif what == "a link":
        store.root.mkdir(parents=True)
        store.pdf_path(KEY).symlink_to(tmp_path / "anywhere")
    else:
        shelve(store, REF, pdf_bytes("another") if what == "another pdf" else b"")
    if what == "an annotated pdf":
        store.pdf_path(KEY).write_bytes(store.pdf_path(KEY).read_bytes() + b"% note")
    if what == "a damaged record":
        store.record_path(KEY).write_text("title = [")
    before = tree(store.root)
    answer = unpack(store, tmp_path / "good.zip")
    assert outcomes(answer) == {KEY: "conflict", OTHER_KEY: "added"}
    assert answer["counts"]["conflicts"] == 1
    row = answer["results"][0]
    assert (row["ok"], row["error"]["code"]) == (False, "INVALID_ARGUMENT")
    assert tree(store.root).items() >= before.items()
    assert not (tmp_path / "anywhere").exists()
    assert doiget.exit_status_of(answer) == 2


@pytest.mark.usefixtures("good")
def test_a_citekey_that_is_taken_or_unsafe_is_replaced_and_reported(tmp_path: Path) -> None:
    store = open_store(tmp_path / "target" / "papers")
    taken = shelve(store, "10.1000/first", None, title="One")
    forge = Forge.of((tmp_path / "good.zip").read_bytes())
    forge.edit(KEY, citekey=taken.citekey.upper())
    forge.edit(OTHER_KEY, citekey="x}\\input{/etc/passwd")
    (tmp_path / "p.zip").write_bytes(forge.bytes())
    answer = unpack(store, tmp_path / "p.zip")
    keys = [entry.citekey for entry in entries_of(store)]
    assert len({key.lower() for key in keys}) == 3
    assert all(key.isalnum() for key in keys)
    assert store.load(doiget.parse_ref("10.1000/first")).citekey == taken.citekey
    for row in answer["results"]:
        assert row["citekey"] in row["warnings"][0]
    forge.edit(KEY, citekey="Smith:2020-a", ref="10.1000/third")
    forge.members = {".metadata/doi_10.1000_third.toml": forge.members[RECORD]}
    (tmp_path / "p.zip").write_bytes(forge.bytes())
    (row,) = unpack(store, tmp_path / "p.zip")["results"]
    assert (row["citekey"], row["warnings"]) == ("Smith:2020-a", []), "a person's own key stays"


def test_records_are_cleaned_and_what_is_not_doigets_stays_behind(tmp_path: Path, good: bytes) -> None:
    forge = Forge.of(good)
    title = "A \x1b[31mtitle\u202e \U000e0041of\x00 " + "x" * 5000
    forge.edit(
        KEY, work__title=title, work__url="javascript:alert(1)", work__year="a year", tags=["t\u200bag\n", 7, ["x"]],
        file__host="h\x07ost", source="crossref\n\x1b]0;x", path="/etc/passwd", notes={"a": "b"},
    )  # fmt: skip
    (tmp_path / "p.zip").write_bytes(forge.bytes())
    store = open_store(tmp_path / "target" / "papers")
    answer = unpack(store, tmp_path / "p.zip")
    row = answer["results"][0]
    assert row["outcome"] == "added", row
    assert "notes, path" in row["warnings"][0]
    text = store.record_path(KEY).read_text()
    for bad in ("\x1b", "\u202e", "\U000e0041", "\\u0000", "\\u001b", "\\u0007", "\u200b", "javascript", "passwd"):
        assert bad not in text, bad
    entry = store.load(doiget.parse_ref(REF))
    assert entry.work.title.startswith("A [31mtitle of x")
    assert len(entry.work.title) <= 1000
    assert entry.tags[:1] == ("tag",)


def test_a_record_here_of_a_newer_doiget_is_left_alone(tmp_path: Path, good: bytes) -> None:
    store = open_store(tmp_path / "target" / "papers")
    shelve(store, REF, None)
    record = store.record_path(KEY)
    record.write_text(record.read_text().replace('schema_version = "1', 'schema_version = "9'))
    before = tree(store.root)
    answer = unpack(store, tmp_path / "good.zip")
    assert outcomes(answer) == {KEY: "skipped", OTHER_KEY: "added"}
    assert answer["results"][0]["error"]["reason"] == "newer_schema"
    assert tree(store.root).items() >= before.items()
    assert good


# ############################################################################
# Hostile packs
# ############################################################################


def patched(data: bytes, name: str, *, size: int | None = None, crc: int | None = None) -> bytes:
    """Change what the zip's directory says of a member."""
    place = data.rindex(b"PK\1\2", 0, data.rindex(name.encode()))
    out = bytearray(data)
    if crc is not None:
        struct.pack_into("<L", out, place + 16, crc)
    if size is not None:
        struct.pack_into("<L", out, place + 24, size)
    return bytes(out)


def bad_name(name: str) -> Callable[[Forge], None]:
    return lambda forge: forge.add(name, pdf_bytes("evil"))


def as_member(name: str, body: bytes, **how: Any) -> Callable[[Forge], None]:
    """Put a member in the place of an ordinary one."""

    def change(forge: Forge) -> None:
        del forge.members[name]
        forge.add(name, body, **how)

    return change


def record_as(text: str | bytes) -> Callable[[Forge], None]:
    body = text if isinstance(text, bytes) else text.encode()
    return lambda forge: forge.members.update({RECORD: body})


def with_edit(**values: Any) -> Callable[[Forge], None]:
    return lambda forge: forge.edit(KEY, **values)


def with_nul(forge: Forge) -> None:
    """Name a member so that a careless reader sees the name of the PDF, and a second one of that name."""
    forge.add("doi_10.1000_onex.pdf", pdf_bytes("evil"))
    forge.patches.append((b"_onex.pdf", b"_one.pdf\0"))
    forge.manifest = {"format": "doiget-pack", "version": 1, "files": forge.rows()[:-1]}


def pdf_as(body: bytes, compress: int = 0) -> Callable[[Forge], None]:
    """Replace the PDF, in the record and in the manifest as well."""

    def change(forge: Forge) -> None:
        as_member(PDF, body, compress=compress)(forge)
        forge.edit(KEY, file__sha256=hashlib.sha256(body).hexdigest(), file__size_bytes=len(body))

    return change


SLIPS = {
    "parent": "../doi_10.1000_evil.pdf", "absolute": "/tmp/doi_10.1000_evil.pdf", "drive": "C:\\doi_10.1000_evil.pdf",
    "inside": ".metadata/../../doi_x.toml", "backslash": "..\\doi_10.1000_evil.pdf", "device": "con.pdf",
    "trash": ".metadata/.trash/doi_x.toml", "lock": ".metadata/.locks/put.doi_x.lock", "case": "DOI_10.1000_ONE.pdf",
    "dots": "..", "unicode": "doi_10.1000_\uff4fne.pdf", "long": "doi_" + "a" * 500 + ".pdf", "newline": "doi_x.pdf\n",
    "a program": "run.sh", "hidden": ".doi_x.0123456789abcdef.part", "stream": "doi_x.pdf:evil", "escape": "\x1b]0;x\7",
}  # fmt: skip
#: What costs one entry only: how the pack is changed, and what of it is then skipped.
ENTRIES: dict[str, Callable[[Forge], None]] = {
    **{f"name: {what}": bad_name(name) for what, name in SLIPS.items()},
    "a symlink as pdf": as_member(PDF, b"/etc/passwd", mode=stat.S_IFLNK | 0o777),
    "a symlink as record": as_member(RECORD, b"/etc/passwd", mode=stat.S_IFLNK | 0o777),
    "a device as pdf": as_member(PDF, b"", mode=stat.S_IFCHR | 0o666),
    "a link that is as described": lambda forge: forge.add(PDF, forge.members.pop(PDF), mode=stat.S_IFLNK | 0o777),
    "a pdf twice": lambda forge: forge.add(PDF, pdf_bytes("evil")),
    "a record twice": lambda forge: forge.add(RECORD, b"ref = '10.1000/one'"),
    "a nul in a name": with_nul,
    "bzip2": as_member(PDF, pdf_bytes("x"), compress=zipfile.ZIP_BZIP2),
    "lzma": as_member(PDF, pdf_bytes("x"), compress=zipfile.ZIP_LZMA),
    "a bomb": as_member(PDF, b"%PDF-" + b"\0" * 3_000_000, compress=zipfile.ZIP_DEFLATED),
    "a bomb that is as described": pdf_as(b"%PDF-" + b"\0" * 3_000_000, zipfile.ZIP_DEFLATED),
    "a bomb as record": as_member(RECORD, b"# " + b" " * 3_000_000, compress=zipfile.ZIP_DEFLATED),
    "a large record": record_as("# " + random.Random(1).randbytes(3_000_000).hex()),
    "no pdf": pdf_as(b"<html>log in</html>" * 20),
    "an empty pdf": pdf_as(b""),
    "pdf of another size than its record": with_edit(file__size_bytes=5),
    "pdf of another digest than its record": with_edit(file__sha256="0" * 64),
    "record without file": with_edit(file={}),
    "pdf without record": lambda forge: forge.members.pop(RECORD),
    "record listed and missing": lambda forge: forge.listed.update({RECORD: forge.members.pop(RECORD)}),
    "pdf listed and missing": lambda forge: forge.listed.update({PDF: forge.members.pop(PDF)}),
    "manifest tells of another pdf": lambda forge: forge.listed.update({PDF: b"another"}),
    "manifest tells of another record": lambda forge: forge.listed.update({RECORD: b"another"}),
    "record for another key": with_edit(ref="10.1000/three"),
    "record for a path": with_edit(ref="../../etc/passwd"),
    "record without ref": with_edit(ref=7),
    "record of a newer doiget": with_edit(schema_version="2.0"),
    "record that is no toml": record_as("ref = ["),
    "record that is no text": record_as(b"\xff\xfe\0\1" * 50),
    "record nested deeply": record_as("x = " + "[" * 100_000),
    "record with a long key": record_as(".".join(["a"] * 100_000) + " = 1"),
    "record that is empty": record_as(""),
}


@pytest.mark.parametrize("how", ENTRIES)
def test_a_bad_entry_is_skipped_and_the_others_come_in(tmp_path: Path, good: bytes, how: str) -> None:
    forge = Forge.of(good)
    ENTRIES[how](forge)
    with pytest.warns(UserWarning, match="Duplicate name") if "twice" in how else contextlib.nullcontext():
        (tmp_path / "p.zip").write_bytes(forge.bytes())
    store = open_store(tmp_path / "target" / "papers")
    shelve(store, "10.1000/mine", None)
    began = time.monotonic()
    answer = unpack(store, tmp_path / "p.zip")
    assert time.monotonic() - began < 10
    found = outcomes(answer)
    assert found.pop(OTHER_KEY) == "added"
    assert answer["counts"]["skipped"] == 1, found
    is_spared = how.startswith("name: ") and KEY in found and found[KEY] == "added"
    assert {ref for ref in ("10.1000/mine", OTHER, REF) if store.load(doiget.parse_ref(ref))} == {
        *("10.1000/mine", OTHER),
        *([REF] if is_spared else []),
    }
    assert leftovers(tmp_path) == []
    names = {path.name for path in (tmp_path / "target").rglob("*") if path.is_file()}
    assert {name for name in names if not name.startswith(("doi_10.1000_mine", OTHER_KEY, "access.log"))} == (
        {f"{KEY}.toml", PDF} if is_spared else set()
    )
    assert doiget.exit_status_of(answer) in {2, 10}
    assert not re.search(r"[\x00-\x1f]", "".join(row["input"] + str(row.get("error")) for row in answer["results"]))
    assert not Path("/tmp/doi_10.1000_evil.pdf").exists()


def test_a_wrong_checksum_is_seen(tmp_path: Path, good: bytes) -> None:
    (tmp_path / "p.zip").write_bytes(patched(good, PDF, crc=0))
    assert outcomes(unpack(open_store(tmp_path / "t" / "papers"), tmp_path / "p.zip")) == {
        KEY: "skipped",
        OTHER_KEY: "added",
    }


def test_headers_are_not_trusted(tmp_path: Path, good: bytes) -> None:
    """A member that says it is small and is not, or the other way round."""
    forge = Forge.of(good)
    as_member(PDF, b"%PDF-" + random.Random(2).randbytes(50_000), compress=zipfile.ZIP_DEFLATED)(forge)
    for size in (10, 199_000_000, 4_000_000_000):
        (tmp_path / "p.zip").write_bytes(patched(forge.bytes(), PDF, size=size))
        found = outcomes(unpack(open_store(tmp_path / str(size) / "papers"), tmp_path / "p.zip"))
        assert found == {KEY: "skipped", OTHER_KEY: "added"}, size


def encrypted(data: bytes) -> bytes:
    out, place = bytearray(data), -1
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = -1
        while (place := data.find(mark, place + 1)) >= 0:
            out[place + offset] |= 1
    return bytes(out)


def overlapping(data: bytes) -> bytes:
    """One member's bytes, named a hundred times over by the directory."""
    forge = Forge.of(data)
    forge.members = {f"doi_10.1000_{n}.pdf": b"" for n in range(100)}
    body = pdf_bytes("x", size=20_000)
    forge.members["doi_10.1000_0.pdf"] = body
    out = bytearray(forge.bytes())
    place, size = out.index(b"PK\1\2"), len(body)
    for _ in range(100):
        struct.pack_into("<LLL", out, place + 16, zlib.crc32(body), size, size)
        struct.pack_into("<L", out, place + 42, 0)
        place = out.find(b"PK\1\2", place + 4)
    return bytes(out)


def of_manifest(manifest: Any) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        forge = Forge.of(data)
        forge.manifest = manifest
        return forge.bytes()

    return change


def huge_directory(data: bytes) -> bytes:
    """An end record of 64-bit numbers that speaks of a directory of 100 MB, in a file that has them."""
    size = 100_000_000
    end64 = struct.pack("<LQ2H2L4Q", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, size, len(data))
    locator = struct.pack("<LLQL", 0x07064B50, 0, len(data) + size, 1)
    end = struct.pack("<L4H2LH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data + b"\0" * size + end64 + locator + end


ROW = {"name": PDF, "size": 1, "sha256": "0" * 64}
#: What costs the whole pack.
WHOLE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "no zip": lambda _: pdf_bytes("x"),
    "cut at the end": lambda data: data[:-1],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "junk before": lambda data: b"#!/bin/sh\n" + data,
    "junk behind": lambda data: data + b"junk",
    "a zip behind": lambda data: data + Forge.of(data).bytes(),
    "encrypted": encrypted,
    "overlapping": overlapping,
    "a huge directory": huge_directory,
    "no manifest": lambda data: data.replace(MANIFEST.encode(), b"doiget-pack.jsom"),
    "manifest: no json": of_manifest("{"),
    "manifest: no text": of_manifest(b"\xff\xfe\xfd"),
    "manifest: nested": of_manifest("[" * 1_000_000),
    "manifest: a list": of_manifest([1]),
    "manifest: another format": of_manifest({"format": "x", "version": 1, "files": []}),
    "manifest: no version": of_manifest({"format": "doiget-pack", "version": "one", "files": []}),
    "manifest: no files": of_manifest({"format": "doiget-pack", "version": 1}),
    "manifest: odd files": of_manifest({"format": "doiget-pack", "version": 1, "files": {"a": "b"}}),
    "manifest: odd row": of_manifest({"format": "doiget-pack", "version": 1, "files": [{"name": [], "size": 1}]}),
    "manifest: a row twice": of_manifest({"format": "doiget-pack", "version": 1, "files": [ROW, ROW]}),
    "manifest: huge number": of_manifest('{"format": "doiget-pack", "version": 1' + "0" * 9999 + "}"),
}


@pytest.mark.parametrize("how", WHOLE)
def test_a_pack_that_is_none_is_refused_whole(tmp_path: Path, good: bytes, how: str) -> None:
    (tmp_path / "p.zip").write_bytes(WHOLE[how](good))
    store = open_store(tmp_path / "target" / "papers")
    with pytest.raises(doiget.DoigetError) as caught:
        unpack(store, tmp_path / "p.zip")
    assert caught.value.reason == "schema"
    assert any(name in caught.value.message for name in (str(tmp_path / "p.zip"), MANIFEST))
    assert not (tmp_path / "target").exists()


def test_a_huge_directory_is_not_read(tmp_path: Path, good: bytes) -> None:
    path = tmp_path / "p.zip"
    path.write_bytes(huge_directory(good))
    tracemalloc.start()
    with pytest.raises(doiget.DoigetError, match="schema"), doiget.open_pack(path):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000


def test_a_pack_of_a_newer_doiget_is_refused_as_such(tmp_path: Path, good: bytes) -> None:
    forge = Forge.of(good)
    forge.manifest = {"format": "doiget-pack", "version": 2, "files": forge.rows()}
    (tmp_path / "p.zip").write_bytes(forge.bytes())
    with pytest.raises(doiget.DoigetError) as caught:
        unpack(open_store(tmp_path / "target" / "papers"), tmp_path / "p.zip")
    assert caught.value.reason == "newer_schema"


def test_a_pack_packed_anew_by_another_tool_is_read(tmp_path: Path, good: bytes) -> None:
    """Compressed, with folders, in another order, dated, with a comment: the contents are what counts."""
    forge = Forge.of(good)
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = b"from my stick"
        archive.writestr(MANIFEST, json.dumps({"format": "doiget-pack", "version": 1, "files": forge.rows()}))
        archive.writestr(".metadata/", b"")
        for name, body in reversed(forge.members.items()):
            archive.writestr(name, body)
    answer = unpack(open_store(tmp_path / "target" / "papers"), tmp_path / "p.zip")
    assert answer["counts"] == {"added": 2, "already": 0, "conflicts": 0, "skipped": 0}


def test_the_digest_is_checked_first(run: Runner, home: Home, tmp_path: Path, good: bytes) -> None:
    (tmp_path / "p.zip").write_bytes(good[:-40])  # of which nothing could be read anyway
    result = run("unpack", tmp_path / "p.zip", "--sha256", hashlib.sha256(good).hexdigest(), "--json")
    error = result.json()["error"]
    assert (result.rc, error["code"]) == (2, "INVALID_ARGUMENT")
    assert hashlib.sha256(good[:-40]).hexdigest() in error["message"]
    for digest in ("", "12", "z" * 64, hashlib.sha256(good).hexdigest() + "0"):
        assert run("unpack", tmp_path / "good.zip", f"--sha256={digest}").rc == (0 if not digest else 2)
    assert len(list(home.store.glob("*.pdf"))) == 2


@posix
def test_what_cannot_be_opened_is_a_plain_error(run: Runner, home: Home) -> None:
    fifo = home.cwd / "fifo"
    os.mkfifo(fifo)
    for odd in (home.cwd / "absent.zip", home.cwd, fifo, "/dev/zero", "/dev/null", ""):
        result = run("unpack", odd, "--json")
        assert (result.rc, result.json()["error"]["code"]) == (2, "INVALID_ARGUMENT"), (odd, result)
    assert not home.store.exists()
    (home.cwd / "link.zip").symlink_to(home.cwd / "real.zip")
    source = open_store(home.root / "source" / "papers")
    shelve(source, REF)
    pack_of(source, home.cwd / "real.zip")
    assert run("unpack", home.cwd / "link.zip").rc == 0, "where the user keeps a pack is the user's business"


# ---- by chance ----


def mutated(draw: Any, data: bytes) -> bytes:
    """Damage a pack as cables, disks and enemies do."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from(["flip", "cut", "insert", "copy", "name", "number"]))
        place = draw(st.integers(0, max(0, len(out) - 1)))
        if how == "flip" and out:
            out[place] ^= 1 << draw(st.integers(0, 7))
        elif how == "cut":
            del out[place : place + draw(st.integers(1, 300))]
        elif how == "insert":
            out[place:place] = draw(st.binary(max_size=40))
        elif how == "copy":
            start = draw(st.integers(0, max(0, len(out) - 1)))
            out[place:place] = out[start : start + draw(st.integers(1, 400))]
        elif how == "number" and len(out) > 4:
            place = min(place, len(out) - 4)
            out[place : place + 4] = draw(st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\1\0\0\0", b"\xff\xff\xff\x7f"]))
        elif how == "name":
            old, new = draw(st.permutations([b"_one", b"_two", b"/../", b".pdf", b"toml", b"\0\0\0\0"]))[:2]
            out = bytearray(bytes(out).replace(old, new, draw(st.integers(1, 3))))
    return bytes(out)


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[tuple[Path, bytes]]:
    """A folder, and a pack of two papers in it; a store with one of them and one of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        source = open_store(root / "source" / "papers")
        shelve(source, REF, title="One")
        shelve(source, OTHER, title="Two")
        data = pack_of(source, root / "good.zip")
        shelve(open_store(root / "target" / "papers"), REF, pdf_bytes("mine"), title="Mine")
        yield root, data


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_damage_harms_what_is_there(fuzzed: tuple[Path, bytes], data: Any) -> None:
    """Whatever a pack holds: our errors only, nothing outside the store, nothing half-done, no entry changed."""
    root, good = fuzzed
    pack = root / "p.zip"
    pack.write_bytes(mutated(data.draw, good))
    around, kept = tree(root / "source"), tree(root / "target" / "papers")
    store = open_store(root / "target" / "papers")
    refused = {"schema", "newer_schema"}
    try:
        reasons = {row["error"]["reason"] for row in unpack(store, pack)["results"] if not row["ok"]}
    except doiget.DoigetError as error:
        reasons = {error.reason}
    assert reasons <= refused, reasons
    now = tree(root / "target" / "papers")
    assert {name: now[name] for name in kept} == kept
    new = set(now) - set(kept)
    assert new <= {f".metadata/{OTHER_KEY}.toml", f"{OTHER_KEY}.pdf"}, new
    if new:
        assert len(new) == 2
        for name in new:
            store.root.joinpath(name).unlink()
    assert tree(root / "source") == around
    assert {path.name for path in root.iterdir()} == {"source", "target", "good.zip", "p.zip"}


# ############################################################################
# What is wanted
# ############################################################################


def wanted_refs(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_what_is_not_in_the_store_is_wanted(run: Runner, net: FakeInternet, home: Home) -> None:
    """Offline: each once, with its title where a record tells it; what holds no identifier is a comment, not lost."""
    store = open_store(home.store)
    shelve(store, REF)
    shelve(store, OTHER, None, title="Known by \x1b[1mname\n10.1000/not-this")
    words = (REF, OTHER, "https://doi.org/10.1000/NEW", "arXiv:2401.00001v2", "10.1000/new", "no identifier\nat all")
    result = run("batch", "--offline", *words, "--wanted", "my list.txt", "--json")
    assert (result.rc, result.json()["counts"]["already_in_store"]) == (20, 1)
    text = (home.cwd / "my list.txt").read_text()
    assert wanted_refs(text) == [OTHER, "10.1000/new", "arXiv:2401.00001v2"]
    assert "# Known by [1mname 10.1000/not-this: offline\n10.1000/two\n" in text
    assert "# no identifier: no identifier at all\n" in text
    assert text.startswith("# doiget wanted list\n")
    assert net.connects() == []
    assert run("batch", "--offline", "my list.txt", "--wanted", "my list.txt", "--jsonl").jsonl()[0]["ref"] == OTHER
    assert wanted_refs((home.cwd / "my list.txt").read_text()) == wanted_refs(text)
    assert run("batch", "--offline", REF, "--wanted", "my list.txt").rc == 0
    assert wanted_refs((home.cwd / "my list.txt").read_text()) == []


def test_a_bibliography_becomes_a_list_of_what_is_wanted(run: Runner, home: Home) -> None:
    """Titles come from the bibliography where nothing else knows them; entries without identifier are told of."""
    (home.cwd / "my.bib").write_text(
        "@article{one, title={It has a DOI}, doi={10.1000/new}}\n@article{two, title={It has none}, author={X, Y}}\n"
    )
    assert run("batch", "--offline", "my.bib", "--wanted", "w.txt", "--quiet").rc == 20
    text = (home.cwd / "w.txt").read_text()
    assert text.endswith("# It has a DOI: offline\n10.1000/new\n# no identifier: entry two: It has none\n")
    assert run("batch", "--offline", "w.txt", "--jsonl").jsonl()[0]["ref"] == "10.1000/new"


def test_what_failed_is_wanted_and_a_later_batch_gets_it(
    run: Runner, world: World, net: FakeInternet, home: Home
) -> None:
    papers = [world.paper(f"10.1371/{n}", title=f"Paper {n}", pdf_url=f"https://peerj.com/{n}.pdf") for n in range(2)]
    world.closed("10.1371/closed", title="Shut away")
    net.url(papers[1].pdf_url, 503)
    refs = [*(paper.doi for paper in papers), "10.1371/closed", "10.1371/unknown"]
    assert run("batch", *refs, "--wanted", "w.txt", "--quiet").rc != 0
    text = (home.cwd / "w.txt").read_text()
    assert wanted_refs(text) == refs[1:]
    assert "# Shut away: closed_access\n10.1371/closed" in text
    assert "# not_registered\n10.1371/unknown" in text
    world.pdf(papers[1].pdf_url, papers[1].body)
    assert run("batch", "w.txt", "--wanted", "w.txt", "--json").json()["counts"]["fetched"] == 1
    assert wanted_refs((home.cwd / "w.txt").read_text()) == refs[2:]


@posix
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_batch_that_is_stopped_has_told_what_is_wanted(
    run: Runner, world: World, net: FakeInternet, home: Home, how: signal.Signals
) -> None:
    refs = ["10.1371/1", "10.1371/2"]
    for number, ref in enumerate(refs):
        paper = world.paper(ref, pdf_url=f"https://{('peerj.com', 'elifesciences.org')[number]}/{number}.pdf")
        if number:
            net.url(paper.pdf_url, never())
    process = run.spawn("batch", *refs, "--wanted", "w.txt", "--jsonl", stdin=subprocess.DEVNULL)
    assert process.stdout
    assert json.loads(process.stdout.readline())["ok"] is True
    process.send_signal(how)
    process.communicate(timeout=30)
    text = (home.cwd / "w.txt").read_text()
    assert wanted_refs(text) == (refs if how is signal.SIGKILL else refs[1:])
    assert leftovers(home.cwd) == []


def test_no_tool_input_is_a_path() -> None:
    """`--wanted` is for people: no schema names it, and a model that tries is told that there is no such argument."""
    assert "wanted" in {param.name for param in doiget.OPERATIONS["batch"].params()}
    for op in doiget.OPERATIONS.values():
        if op.tool:
            assert not [param.name for param in op.params(for_tool=True) if param.arg.cli]
            assert "wanted" not in doiget.input_schema(op)["properties"]
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.check_arguments(doiget.OPERATIONS["batch"], {"refs": [REF], "wanted": "/tmp/x"}, for_tool=True)
    assert (caught.value.reason, "'wanted'" in caught.value.message) == ("schema", True)
    assert not any(doiget.OPERATIONS[name].tool for name in ("pack", "unpack"))


REFS = st.one_of(
    st.from_regex(r"10\.[0-9]{4,9}/[a-z0-9<>;:#+()\[\]_.,'\"&%é論-]{1,40}", fullmatch=True),
    st.from_regex(r"arXiv:[0-9]{4}\.[0-9]{5}(v[1-9])?", fullmatch=True),
    st.from_regex(r"(pmid:|PMC)[1-9][0-9]{4,7}", fullmatch=True),
)

NOTES = ["@article{x, doi={10.1/y}}", "TY  - JOUR", '{"DOI": "10.1000/q"}', "[1] 10.1000/other", "a\n10.1000/inject"]


@settings(deadline=None, max_examples=60)
@given(st.lists(REFS, max_size=6), st.one_of(st.text(max_size=80), st.sampled_from(NOTES)))
@example(["10.1000/a"], NOTES[0])
def test_a_wanted_list_is_read_as_it_was_written(texts: list[str], title: str) -> None:
    refs = []
    for text in texts:
        with contextlib.suppress(doiget.DoigetError):
            refs.append(str(doiget.parse_ref(text)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.txt"
        doiget.save_wanted(path, dict.fromkeys(refs, title), [title])
        if refs:
            assert doiget.read_words([str(path)])[0] == list(dict.fromkeys(refs))


# ############################################################################
# Kills, crowds, size
# ############################################################################


@dataclass
class Crate:
    """A pack of many papers, and what its store looks like when all of it is unpacked."""

    pack: Path
    digests: dict[str, str]  # of the PDFs, by name


def make_crate(root: Path, count: int, size: int) -> Crate:
    store = open_store(root / "source" / "papers")
    for number in range(count):
        shelve(store, f"10.1000/{number}", pdf_bytes(str(number), size=size), title=f"Word{number}")
    pack_of(store, root / "crate.zip")
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in store.root.glob("*.pdf")}
    return Crate(root / "crate.zip", digests)


def check_whole(store: doiget.Store, crate: Crate) -> int:
    """Every entry that is shown is whole; returns how many there are."""
    entries = [entry for entry in entries_of(store) if entry.pdf_path]
    assert not store.problems
    for entry in entries:
        name = entry.pdf_path.name
        assert hashlib.sha256(entry.pdf_path.read_bytes()).hexdigest() == crate.digests[name] == entry.file.sha256
    return len(entries)


@posix
@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.long)])
def test_unpacking_killed_at_any_moment(run: Runner, home: Home, kills: int) -> None:
    """Each entry is there whole or not at all, whatever was killed; the same command then does the rest."""
    crate = make_crate(home.root / "crate", 8, 100_000)
    rng, null = random.Random(7), subprocess.DEVNULL
    store = open_store(home.store)
    life = run("unpack", crate.pack, "--store", home.root / "warm").seconds
    seen: list[int] = []
    while len(seen) < kills:
        for turn in range(5):
            process = run.spawn("unpack", crate.pack, stdin=null, stdout=null, stderr=null)
            end = time.monotonic() + life * (0.3 + 0.5 * rng.random())
            before = len(list(home.store.glob("*.pdf")))
            while process.poll() is None and time.monotonic() < end + turn % 2 * 30:
                if turn % 2 and len(list(home.store.glob("*.pdf"))) > before:
                    break  # it has just begun to write
                time.sleep(0.002)
            process.kill()
            if process.wait() == -signal.SIGKILL:
                seen.append(check_whole(store, crate))
        result = run("unpack", crate.pack, "--json")
        counts = result.json()["counts"]
        assert (result.rc, counts["added"] + counts["already"], counts["conflicts"]) == (0, 8, 0), result
        assert check_whole(store, crate) == 8
        assert leftovers(home.store) == []
        assert len({entry.citekey for entry in entries_of(store)}) == 8
        shutil.rmtree(home.store)
    assert any(0 < count < 8 for count in seen), "no kill came while it worked"
    assert run("log", "verify").rc == 0


@posix
def test_packing_killed_at_any_moment(run: Runner, home: Home) -> None:
    """The old pack is there or the new one; what is left over goes with a later pack."""
    store, null = open_store(home.store), subprocess.DEVNULL
    for number in range(4):
        shelve(store, f"10.1000/{number}", pdf_bytes(str(number), size=4_000_000), title=f"Word{number}")
    assert run("pack", "p.zip", "10.1000/1").rc == 0
    old = (home.cwd / "p.zip").read_bytes()
    life = run("pack", "new.zip").seconds
    new = (home.cwd / "new.zip").read_bytes()
    rng = random.Random(3)
    for _ in range(5):
        process = run.spawn("pack", "p.zip", stdin=null, stdout=null, stderr=null)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(life * (0.3 + 0.7 * rng.random()))
        process.kill()
        process.wait()
        assert (home.cwd / "p.zip").read_bytes() in (old, new)
    for name in leftovers(home.cwd):
        os.utime(home.cwd / name, (time.time() - 7200,) * 2)
    assert run("pack", "p.zip").rc == 0
    assert (home.cwd / "p.zip").read_bytes() == new
    assert leftovers(home.cwd) == []


def test_several_unpack_at_once(run: Runner, home: Home) -> None:
    """Two processes and one pack: each paper comes in once, every citekey is its own."""
    crate = make_crate(home.root / "crate", 10, 50_000)
    processes = [run.spawn("unpack", crate.pack, "--json", stdin=subprocess.DEVNULL) for _ in range(3)]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(answer["counts"]["added"] for answer in answers) == 10, answers
    assert all(answer["counts"]["skipped"] == answer["counts"]["conflicts"] == 0 for answer in answers)
    assert check_whole(open_store(home.store), crate) == 10
    assert leftovers(home.store) == []


PEAK = """
import resource, subprocess, sys
rc = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(rc)
"""


def peak_mb(run: Runner, *command: str | Path) -> float:
    """Run a command under a small parent that reports the most memory it held (MB)."""
    result = run(*command, flags=("-c", PEAK, sys.executable))
    assert result.rc == 0, result
    return int(result.err.split()[-1]) / (1e6 if sys.platform == "darwin" else 1e3)


@posix
def test_memory_does_not_grow_with_the_papers(run: Runner, home: Home) -> None:
    store = open_store(home.store)
    shelve(store, REF)
    idle = [peak_mb(run, "pack", "small.zip"), peak_mb(run, "unpack", "small.zip", "--store", home.root / "small")]
    parsed = doiget.parse_ref(OTHER)
    with doiget.hold_lock(store.lock_path(parsed)), store.new_part(parsed) as part:
        for chunk in pdf_chunks(size=60_000_000):
            part.write(chunk)
        file = doiget.StoredFile(part.sha256(), part.size)
        store.save(doiget.Resolved(OTHER, doiget.Work(doi=OTHER), "crossref"), file=file, part=part)
    peak = [peak_mb(run, "pack", "large.zip"), peak_mb(run, "unpack", "large.zip", "--store", home.root / "large")]
    assert (home.cwd / "large.zip").stat().st_size > 60_000_000
    assert max(after - before for before, after in zip(idle, peak, strict=True)) < 20, (idle, peak)


@pytest.mark.long
def test_a_pack_of_more_than_four_gigabytes(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Beyond what the numbers of an old zip file hold: its size, and the number of its files."""
    request.addfinalizer(lambda: shutil.rmtree(tmp_path))
    store = open_store(tmp_path / "papers")
    body = pdf_bytes("big", size=199_000_000)
    for number in range(23):
        shelve(store, f"10.1000/{number}", body, title=f"Word{number}")
    record = store.record_path("doi_10.1000_1").read_text()
    for number in range(66_000):
        text = record.replace("10.1000/1", f"10.2000/{number}").partition("[file]")[0]
        (store.metadata / f"doi_10.2000_{number}.toml").write_text(text)
    facts = doiget.write_pack(store, store.keys(), tmp_path / "p.zip")
    assert facts["counts"] == {"records": 66_023, "pdfs": 23, "left_out": 0}
    assert facts["size_bytes"] > 2**32
    target = open_store(tmp_path / "target" / "papers")
    with doiget.open_pack(tmp_path / "p.zip", facts["sha256"]) as pack:
        assert len(pack.keys) == 66_023
        for key in ("doi_10.1000_9", "doi_10.2000_65999"):
            assert doiget.unpack_entry(target, pack, key)[0] == "added"
    assert target.load(doiget.parse_ref("10.1000/9")).pdf_path.stat().st_size == 199_000_000


# ############################################################################
# No network
# ############################################################################


def words_of(op: doiget.Op, home: Home) -> list[str]:
    """Words that make an operation do something, for whatever parameters it has."""
    known = {
        "ref": DOI,
        "refs": DOI,
        "query": "title",
        "key": "store",
        "formats": "ris",
        "operation": "crossref search works",
    }
    words = []
    for param in op.params():
        if not param.required and (op.name, param.name) != ("add", "ref"):
            continue
        value = param.arg.choices[0] if param.arg.choices else known.get(param.name, "x")
        if param.name in {"file", "text"}:
            value = str(home.cwd / {"pack": "new.zip", "unpack": "p.zip", "add": "x.pdf"}.get(op.name, "list.txt"))
        words += [f"--{param.name.replace('_', '-')}", value] if param.keyword else [value]
    return [*words, "query=title"] if any(param.arg.pairs for param in op.params()) else words


DOI = "10.1371/journal.fake.0000001"
RPC = [
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
     "clientInfo": {"name": "t", "version": "1"}}},
    {"method": "notifications/initialized"},
    *({"id": 2 + n, "method": "tools/call", "params": {"name": f"doiget_{name}", "arguments": arguments}}
      for n, (name, arguments) in enumerate([("fetch_paper", {"ref": DOI}), ("batch_fetch", {"refs": [DOI, OTHER]}),
                                             ("health", {"network": True}), ("resolve_paper", {"ref": DOI})])),
]  # fmt: skip


def without_network(script: str, trace: Path) -> tuple[list[str], Callable[[], list[str]]]:
    """A command that runs a shell script where any use of the network shows, and what then tells of it."""
    traced = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=network", "-o", str(trace), "sh", "-c"]
    cut_off = ["unshare", "--net", "sh", "-c"]
    for command in (traced, cut_off, [*cut_off[:1], "--user", *cut_off[1:]]):
        with contextlib.suppress(OSError):
            if subprocess.run([*command, "true"], check=False, capture_output=True).returncode == 0:
                return [*command, script], lambda: trace.read_text().splitlines() if trace.exists() else []
    pytest.skip("neither strace nor a network namespace can be had here")


@posix
def test_offline_opens_no_socket(run: Runner, net: FakeInternet, home: Home) -> None:
    """Every command there is, and `serve`: no Internet socket is made, no host is asked, and each says what it can."""
    shelve(open_store(home.store), REF, title="A title")
    (home.cwd / "x.pdf").write_bytes(pdf_bytes("x"))
    (home.cwd / "list.txt").write_text(f"{OTHER}\n{DOI}\n")
    assert run("pack", "p.zip").rc == 0
    (home.cwd / "rpc").write_text("".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in RPC))
    program = f"'{sys.executable}' '{run.pyz}'"
    lines = [f"{program} serve --offline < rpc > serve.out 2> serve.err"]
    for name, op in doiget.OPERATIONS.items():
        if not getattr(op, "tool_only", False):
            quoted = " ".join(f"'{word}'" for word in words_of(op, home))
            lines.append(
                f"{program} --offline {name} {quoted} --json > '{name}.out' 2> '{name}.err'; echo $? > '{name}.rc'"
            )
    command, told = without_network("\n".join(lines), home.root / "trace")
    subprocess.run(command, env=run.env(), cwd=home.cwd, stdin=subprocess.DEVNULL, timeout=300, check=True)
    assert net.connects() == []
    assert [line for line in told() if "AF_INET" in line] == []
    for name, op in doiget.OPERATIONS.items():
        if not getattr(op, "tool_only", False):
            answer = json.loads((home.cwd / f"{name}.out").read_text())
            assert answer["ok"] or answer["error"]["code"] in {"CAPABILITY_DENIED", "NOT_FOUND"}, (name, answer)
            assert not (home.cwd / f"{name}.err").read_text(), name
            del op
    answers = {row["id"]: row for row in map(json.loads, (home.cwd / "serve.out").read_text().splitlines())}
    assert sorted(answers) == [1, 2, 3, 4, 5]
    assert answers[2]["result"]["structuredContent"]["error"]["reason"] == "offline"


@posix
def test_a_store_on_read_only_media_is_of_use(run: Runner, home: Home) -> None:
    """It is searched, exported and packed, with a cache to keep the index in and without."""
    python, flags = unprivileged()
    store = open_store(home.store)
    entry = shelve(store, REF, title="Kept words")
    folders = [home.store, *(path for path in home.store.rglob("*") if path.is_dir())]
    how: dict[str, Any] = {"python": python, "flags": flags}
    for folder in folders:
        folder.chmod(0o555)
    try:
        before = tree(home.store)
        for env in ({}, {"XDG_CACHE_HOME": "/dev/null/nowhere"}):
            found = run("search", "kept", "--json", env=env, **how).json()
            assert [match["ref"] for match in found["matches"]] == [REF]
            assert entry.citekey in run("export", "--format", "bibtex", env=env, **how).out
        assert run("path", REF, **how).out == f"{entry.pdf_path}\n"
        assert run("pack", home.root / "p.zip", "--query", "words", **how).rc == 0
        assert tree(home.store) == before
        assert run("unpack", home.root / "p.zip", "--json", **how).json()["counts"]["skipped"] == 1
        assert run("pack", home.store / "p.zip", **how).rc == 10
    finally:
        for folder in folders:
            folder.chmod(0o755)


# ---- there and back ----


ONE = "10.1371/journal.trip.{}"
#: Ten lists as people have them: the name of the file, its text, and what there is to know of the work.
TRIPS: list[tuple[str, str, dict[str, Any]]] = [
    ("list.txt", "{ref}\n", {"title": "Plain words amber"}),
    ("notes.md", "I want (https://doi.org/{ref}), soon.", {"title": "In prose birch"}),
    (
        "list.txt",
        "10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z",
        {"title": "An odd identifier cedar"},
    ),
    ("list.txt", "{ref}", {"title": "深層機械学習入門", "authors": ["王 小明"]}),
    ("list.txt", "{ref}", {"title": "</script> \\input{x} 100% & dune"}),
    ("list.txt", "arXiv:2401.00001v1", {"title": "A preprint ember"}),
    ("list.txt", "{ref}", {"title": "Closed fjord", "closed": True}),
    ("list.txt", "\ufeff# mine\r\n\r\ndoi:{REF}\r\n", {"title": "From a Windows editor grove"}),
    ("list.txt", "10.1371/invented\n{ref}\nnothing\n", {"title": "Not all exist heron"}),
    ("-", "{ref}\nhttps://dx.doi.org/{ref}\n", {"title": "Twice on stdin iris"}),
]


def put_online(world: World, ref: str, facts: dict[str, Any]) -> bool:
    """Let the world know a work; says whether its PDF can be had."""
    about = {name: value for name, value in facts.items() if name != "closed"}
    if ref.startswith("arXiv"):
        world.arxiv_paper(ref[6:16], **about)
    elif "closed" in facts:
        world.closed(ref, **about)
    else:
        world.paper(ref, pdf_url=f"https://peerj.com/{sum(ref.encode())}.pdf", **about)
    return "closed" not in facts


@pytest.mark.parametrize("trips", [TRIPS[3:6], pytest.param(TRIPS, marks=pytest.mark.long)], ids=["three", "ten"])
def test_there_and_back(run: Runner, world: World, net: FakeInternet, home: Home, trips: list[Any]) -> None:
    """list → wanted → pack on one store → unpack on another → search, export, verify there with no network."""
    connected = Runner(run.pyz, Home(home.root / "connected"), net, run.unpacked)
    stick = home.root / "stick"
    stick.mkdir()
    refs = []
    for number, (name, form, facts) in enumerate(trips):
        ref = ONE.format(number) if "{" in form else form
        refs.append(ref)
        text = form.format(ref=ref, REF=ref.upper())
        is_open = put_online(world, ref, facts)
        net.clear()
        if name != "-":
            (home.cwd / name).write_text(text, encoding="utf-8")
        asked = run("--offline", "batch", name, "--wanted", stick / "wanted.txt", input=text if name == "-" else None)
        assert (asked.rc in {6, 20}, net.connects()) == (True, []), asked
        fetched = connected("batch", stick / "wanted.txt", "--json")
        assert fetched.json()["counts"]["fetched"] == is_open, fetched
        packed = connected("pack", stick / "papers.zip", stick / "wanted.txt", "--json")
        assert packed.json()["counts"]["pdfs"] == is_open, packed
        net.clear()
        answer = run("--offline", "unpack", stick / "papers.zip", "--sha256", packed.json()["sha256"], "--json")
        assert (answer.rc, [row["ref"] for row in answer.json()["results"]]) == (0, [ref]), answer
        assert net.connects() == []
    here, there = open_store(home.store), open_store(connected.home.store)
    for ref, (_, _, facts) in zip(refs, trips, strict=True):
        ours, theirs = here.load(doiget.parse_ref(ref)), there.load(doiget.parse_ref(ref))
        for name in ("work", "file", "citekey", "tags", "source"):
            assert getattr(ours, name) == getattr(theirs, name), (ref, name)
        if ours.file:
            assert ours.pdf_path.read_bytes() == theirs.pdf_path.read_bytes()
        found = run("--offline", "search", facts["title"].split()[-1], "--json").json()
        assert [match["ref"] for match in found["matches"]] == [ref], found
    text = run("--offline", "export", "--format", "bibtex").out
    assert all(entry.citekey in text for entry in entries_of(here))
    (home.cwd / "mine.bib").write_text(text)
    verdicts = run("--offline", "verify", "mine.bib", "--json").json()["references"]
    assert [row["verdict"] for row in verdicts] == ["verified"] * len(trips), verdicts
    assert net.connects() == []
