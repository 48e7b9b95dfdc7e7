"""Nothing of the user's is lost: tags set at once, copies that were annotated, records made without network."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from test_17_carry import open_store, shelve
from test_24_mcp import schemas, serve  # noqa: F401 - fixtures
from worlds import pdf_bytes

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Home, Runner
    from fake_internet import FakeInternet
    from worlds import World

REF = "10.1000/mine"
NAME = "doi_10.1000_mine.pdf"
BIB = "@article{k, doi={10.1000/mine}, title={As I call it}, file={mine.pdf}}\n"


def record(home: Home, key: str = "doi_10.1000_mine") -> dict[str, Any]:
    return doiget.parse_toml((home.metadata / f"{key}.toml").read_bytes())


def add_offline(run: Runner, home: Home, ref: str = REF, bib: str = "") -> None:
    (home.cwd / "mine.pdf").write_bytes(pdf_bytes("mine"))
    (home.cwd / "l.bib").write_text(bib)
    words = ("l.bib",) if bib else ("mine.pdf", "--ref", ref)
    assert run("--offline", "add", *words).rc == 0


# ---- read, change, write ----


def test_tags_set_at_once_are_all_kept(run: Runner, home: Home) -> None:
    shelve(open_store(home.store), REF)
    running = [run.spawn("tag", REF, f"r{number}") for number in range(6)]
    assert [process.wait(60) for process in running] == [0] * 6
    assert sorted(record(home)["tags"]) == [f"r{number}" for number in range(6)]


def test_a_tag_leaves_what_was_written_since_it_looked(tmp_path: Path) -> None:
    """What a change is made of is read under the lock, whatever its caller saw before."""
    store = open_store(tmp_path / "papers")
    seen = shelve(store, REF, title="Old")
    shelve(store, REF, None, title="New", volume="7")
    store.save(doiget.Resolved(seen.ref, seen.work, "store"), tags=lambda old: [*old, "mine"])
    work = store.load(doiget.parse_ref(REF)).work
    assert (work.title, work.volume) == ("New", "7")


def test_many_threads_change_one_record(tmp_path: Path) -> None:
    shelve(open_store(tmp_path / "papers"), REF, None)

    def change(word: str) -> None:
        gone = doiget.Resolved(REF, doiget.Work(), "store")
        open_store(tmp_path / "papers").save(gone, tags=lambda old: [*old, word])

    threads = [threading.Thread(target=change, args=(f"t{number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(open_store(tmp_path / "papers").load(doiget.parse_ref(REF)).tags) == 12


def test_what_was_removed_meanwhile_is_not_made_anew(tmp_path: Path) -> None:
    store = open_store(tmp_path / "papers")
    seen = shelve(store, REF, None)
    store.remove(doiget.parse_ref(REF))
    with pytest.raises(doiget.DoigetError) as caught:
        store.save(doiget.Resolved(seen.ref, seen.work, "store"), tags=("x",))
    assert caught.value.reason == "no_pdf_in_store"
    assert store.keys() == []


def test_tags_in_one_text_are_parted(run: Runner, home: Home) -> None:
    """By hand tags are easily one text; each of them can be taken off."""
    shelve(open_store(home.store), REF)
    path = home.metadata / "doi_10.1000_mine.toml"
    for spelled in ('"one, two"', '["one, two"]'):
        path.write_text(path.read_text().replace("tags = []", f"tags = {spelled}"))
        assert run("tag", REF).out == "one, two\n"
        assert run("tag", REF, "--remove", "one").out == "two\n"
        assert record(home)["tags"] == ["two"]
        path.write_text("\n".join(line for line in path.read_text().splitlines() if '"two"' not in line))
        path.write_text(path.read_text().replace("tags = [\n]", "tags = []"))


# ---- records made without network ----


@pytest.mark.parametrize("words", [("resolve", REF), ("resolve", "--refresh", REF), ("fetch", REF), ("batch", REF),
                                   ("add", "mine.pdf", "--ref", REF)], ids=" ".join)  # fmt: skip
def test_what_was_added_offline_is_completed_later(
    run: Runner, home: Home, world: World, words: tuple[str, ...]
) -> None:
    add_offline(run, home)
    assert run("--offline", "tag", REF, "keep").rc == 0
    before = record(home)
    assert before["source"] == "local"
    world.closed(REF, title="The whole title")
    assert run(*words).rc == 0
    after = record(home)
    assert (after["source"], after["work"]["title"], after["tags"]) == ("crossref", "The whole title", ["keep"])
    for name in ("citekey", "added_at", "file"):  # assigned once (spec §7)
        assert after[name] == before[name]


def test_what_its_owner_said_stays(run: Runner, home: Home, world: World) -> None:
    add_offline(run, home, bib=BIB)
    world.closed(REF, title="The whole title", volume="12")
    assert run("fetch", REF).rc == 0
    assert record(home)["work"]["title"] == "As I call it"
    assert record(home)["work"]["authors"]
    (home.cwd / "l.bib").write_text(BIB.replace("As I call it", "Otherwise"))
    assert run("--offline", "--no-cache", "add", "l.bib").rc == 0
    assert (record(home)["work"]["title"], record(home)["source"]) == ("As I call it", "crossref")


def test_a_described_hit_asks_nobody_and_a_bare_one_is_a_hit_all_the_same(
    run: Runner, home: Home, world: World, net: FakeInternet
) -> None:
    add_offline(run, home)
    answer = run("fetch", REF, "--offline", "--json").json()
    assert (answer["ok"], answer["already_in_store"]) == (True, True)
    for words in (("fetch", REF, "--json"), ("batch", REF, "--json")):
        done = run(*words)
        assert done.rc == 0, done
        assert "could not be completed" in done.out
    world.closed(REF)
    assert run("fetch", REF).rc == 0
    net.clear()
    assert run("fetch", REF).rc == 0
    assert net.connects() == []


def test_a_record_kept_under_its_pmid_is_completed_there(run: Runner, home: Home) -> None:
    """`resolve` answers with the DOI; the entry keeps its name."""
    store = open_store(home.store)
    bare = store.save(doiget.Resolved("pmid:123456", doiget.Work(pmid="123456"), "local"))
    known = doiget.Resolved(bare.ref, doiget.Work(title="Found", doi="10.1000/x"), "europepmc")
    entry = store.save(known)
    assert (entry.ref, entry.citekey, entry.work.title, entry.source) == (bare.ref, bare.citekey, "Found", "europepmc")
    assert run("info", "pmid:123456").rc == 0


# ---- files of the user's in a folder ----


def test_an_annotated_copy_is_kept(run: Runner, home: Home) -> None:
    shelve(open_store(home.store), REF)
    out = home.cwd / "out"
    first = run("fetch", REF, "--to", out)
    assert len(first.out.splitlines()) == 3
    assert first.out.splitlines()[2] == f"copy: {out / NAME}"
    mtime = (out / NAME).stat().st_mtime_ns
    assert "kept" not in run("fetch", REF, "--to", out).err
    assert (out / NAME).stat().st_mtime_ns == mtime
    for number, kept in enumerate((f"{NAME}~", f"{NAME}~2")):
        (out / NAME).write_bytes(pdf_bytes(f"note {number}"))
        answer = run("fetch", REF, "--to", out, "--json").json()
        assert kept in answer["warnings"][0]
        assert (out / kept).read_bytes() == pdf_bytes(f"note {number}")
    assert (out / NAME).read_bytes() == (home.store / NAME).read_bytes()
    assert (out / f"{NAME}~").read_bytes() == pdf_bytes("note 0")
    (out / NAME).write_bytes(pdf_bytes("note 0"))
    assert run("batch", REF, "--to", out, "--json").json()["warnings"]
    assert sorted(path.name for path in out.iterdir()) == [NAME, f"{NAME}~", f"{NAME}~2"]


def test_an_edited_bibliography_is_kept_however_often(run: Runner, home: Home) -> None:
    shelve(open_store(home.store), REF)
    out = home.cwd / "out"
    out.mkdir()
    for text in ("by hand", "by hand, again"):
        (out / "library.bib").write_text(text)
        assert "kept as library.bib~" in run("export", "--to", out).err
    assert run("export", "--to", out).err == ""
    assert [(out / f"library.bib{end}").read_text() for end in ("~", "~2")] == ["by hand", "by hand, again"]


# ---- packs, and a store that is none ----


def test_a_pack_of_what_was_unpacked_is_the_same_pack(run: Runner, home: Home) -> None:
    shelve(open_store(home.store), REF, tags=("a", "b"), volume="7")
    shelve(open_store(home.store), "10.1000/two", None)
    first = run("pack", "a.zip", "--json").json()
    there = {"DOIGET_STORE": str(home.root / "there")}
    assert run("unpack", "a.zip", env=there).rc == 0
    assert run("pack", "b.zip", "--json", env=there).json()["sha256"] == first["sha256"]


def test_a_pack_names_what_is_missing(run: Runner, home: Home) -> None:
    shelve(open_store(home.store), REF)
    done = run("pack", "p.zip", REF, "10.1000/absent", "rubbish")
    assert done.rc == 0
    assert "Not in the store: 10.1000/absent, rubbish (2)." in done.err


@pytest.mark.parametrize(
    "words", [("recent",), ("search", "x"), ("export",), ("pack", "p.zip"), ("info", REF)], ids=str
)
def test_a_file_is_no_empty_store(run: Runner, home: Home, words: tuple[str, ...]) -> None:
    (home.cwd / "afile").write_text("x")
    done = run("--store", home.cwd / "afile", *words, "--json")
    assert done.json()["error"]["code"] == "STORE_ERROR", done
    assert done.rc == 10
    assert run("--store", home.cwd / "absent", "recent").out == "The store is empty.\n"


def test_the_tool_that_only_reads_completes_nothing(
    run: Runner,
    home: Home,
    world: World,
    serve: Callable[..., Any],  # noqa: F811 - the fixture
) -> None:
    add_offline(run, home)
    world.closed(REF)
    before = record(home)
    server = serve()
    assert server.call("resolve_paper", ref=REF)["ok"]
    assert record(home) == before
    assert server.call("fetch_paper", ref=REF)["ok"]
    assert record(home)["source"] == "crossref"
