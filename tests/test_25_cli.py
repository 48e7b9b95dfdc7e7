"""The command line as people and scripts use it: forms of output, exit statuses, terminals, pipes, signals."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_internet import Reply, never, pdf
from worlds import pdf_bytes

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Home, Result, Runner
    from fake_internet import FakeInternet
    from worlds import World

DOI = "10.1371/journal.fake.0000001"
COPY = "https://journals.plos.org/fake/1.pdf"
ODD_TITLE = "→ ≤ β 王"
COMMANDS = (
    *("resolve", "fetch", "batch", "info", "recent", "path", "capabilities", "doctor", "cache", "log", "config"),
    *("remove", "restore", "trash", "demo", "export", "skill"),
)
posix = pytest.mark.skipif(os.name == "nt", reason="POSIX signals, terminals and modes")


def shelve(home: Home, ref: str, *, with_pdf: bool = True, **facts: Any) -> doiget.Entry:
    """Put an entry into the user's store without any network; `facts` are fields of the work."""
    store = doiget.Store(home.store, doiget.AccessLog(home.config / "access.log"))
    key = "arxiv_id" if ref.startswith("arXiv:") else "doi"
    resolved = doiget.Resolved(ref, doiget.Work(**{key: ref.removeprefix("arXiv:"), "year": 2020, **facts}), "crossref")
    if not with_pdf:
        return store.save(resolved)
    parsed = doiget.parse_ref(ref)
    with doiget.hold_lock(store.lock_path(parsed)), store.new_part(parsed) as part:
        part.write(pdf_bytes(ref))
        file = doiget.StoredFile(part.sha256(), part.size, "crossref", "journals.plos.org")
        return store.save(resolved, file=file, part=part)


def error_of(result: Result) -> dict[str, Any]:
    """The `error` of a failure under --json, which says what every failure says."""
    answer = result.json()
    assert answer["ok"] is False, result
    assert {"code", "message", "disposition", "reason", "hint"} <= set(answer["error"])
    assert doiget.EXIT_STATUS[doiget.Code(answer["error"]["code"])] == result.rc, result
    assert result.stderr == b"", result
    error: dict[str, Any] = answer["error"]
    return error


def is_plain(result: Result) -> bool:
    """No escape sequences, no carriage returns, no traceback, valid UTF-8."""
    return not any(
        mark in stream
        for mark in (b"\x1b", b"\r", b"Traceback", b"Exception ignored")
        for stream in (result.stdout, result.stderr)
    )


# ---- every command, as a person and as a program ----


def test_a_papers_life_as_json(run: Runner, world: World, home: Home) -> None:
    """The fields of spec §3.1 for each command, exactly one JSON object on stdout, nothing on stderr."""
    paper = world.paper(DOI, title="A title", pdf_url=COPY)
    record = home.metadata / "doi_10.1371_journal.fake.0000001.toml"

    def ask(*words: str) -> Any:
        result = run(*words, "--json")
        assert (result.rc, result.stderr) == (0, b""), result
        assert result.out.count("\n") == 1
        answer = result.json()
        assert answer["ok"] is True
        return answer

    found = ask("resolve", DOI)
    assert {"ref", "metadata", "source", "from_cache", "stale", "oa_status", "oa_url", "warnings"} <= set(found)
    metadata = {
        "type",
        "title",
        "authors",
        "year",
        "date",
        "container_title",
        "volume",
        "issue",
        "pages",
        "article_number",
        "publisher",
    }
    metadata |= {
        "abstract",
        "doi",
        "arxiv_id",
        "arxiv_version",
        "pmid",
        "pmcid",
        "license",
        "url",
        "retraction",
        "relations",
        "cited_by_count",
    }
    assert metadata <= set(found["metadata"])
    assert ask("info", DOI) == {"ok": True, "entry": None, "warnings": []}
    got = ask("fetch", DOI)
    fields = {
        "ref",
        "source",
        "path",
        "license",
        "size_bytes",
        "sha256",
        "version",
        "host",
        "title",
        "authors",
        "authors_total",
    }
    fields |= {
        "year",
        "container_title",
        "citekey",
        "retraction",
        "already_in_store",
        "metadata_path",
        "undo",
        "warnings",
    }
    assert fields <= set(got)
    entry = ask("info", DOI)["entry"]
    assert (entry["path"], entry["citekey"], entry["title"]) == (got["path"], got["citekey"], "A title")
    assert {"tags", "fetched_at"} <= set(entry)
    listed = ask("recent")
    assert {"ref", "title", "authors", "year", "container_title", "citekey", "path", "tags"} <= set(
        listed["entries"][0]
    )
    assert (listed["total"], listed["next_cursor"]) == (1, None)
    assert ask("path", DOI) == {"ok": True, "ref": DOI, "path": got["path"]}
    before = Path(got["path"]).read_bytes(), record.read_bytes()
    assert ask("remove", DOI)["undo"] == f"doiget restore {DOI}"
    assert not Path(got["path"]).exists()
    assert not record.exists()
    assert ask("info", DOI)["entry"] is None
    assert [row["ref"] for row in ask("trash")["entries"]] == [DOI]
    back = ask("restore", DOI)
    assert back["path"] == got["path"]
    assert (Path(got["path"]).read_bytes(), record.read_bytes()) == before
    assert before[0] == paper.body
    assert ask("trash")["entries"] == []
    batch = ask("batch", DOI)
    assert (batch["counts"], batch["pending"]) == ({"fetched": 0, "already_in_store": 1, "failed": 0, "pending": 0}, [])
    assert batch["results"][0]["input"] == DOI
    assert ask("log", "verify")["healthy"] is True
    assert {"fetch", "store_remove", "store_restore"} <= {event["event"] for event in ask("log", "show")["events"]}
    assert ask("cache", "size")["entries"] == 1


def test_a_papers_life_for_a_person(run: Runner, world: World) -> None:
    """Short answers, one fact a line; what can be used in another command stands alone."""
    world.paper(DOI, title="A title", pdf_url=COPY)

    def ask(*words: str) -> str:
        result = run(*words)
        assert (result.rc, result.stderr) == (0, b""), result
        assert is_plain(result)
        assert result.out.endswith("\n")
        return result.out

    assert "A title" in ask("resolve", DOI)
    assert ask("info", DOI) == "Not in the store.\n"
    assert ask("recent") == "The store is empty.\n"
    first, reference = ask("fetch", DOI).splitlines()
    assert Path(first).is_file()
    assert "A title" in reference
    assert ask("path", DOI) == f"{first}\n"
    assert first in ask("info", DOI)
    assert re.fullmatch(rf"{re.escape(DOI)}\tpdf\t.*A title.*\n", ask("recent"))
    assert f"doiget restore {DOI}" in ask("remove", DOI)
    assert DOI in ask("trash")
    assert first in ask("restore", DOI)
    assert ask("trash") == "The trash is empty.\n"
    line, counts = ask("batch", DOI).splitlines()
    assert line == f"{DOI}\t{first}"
    assert counts == "0 fetched, 1 already in the store, 0 failed"
    assert "0 faults" in ask("log", "verify")
    assert all(json.loads(line) for line in ask("log", "show").splitlines())
    assert "entries: 1" in ask("cache", "size")
    assert "entries: 0" in (ask("cache", "clear") and ask("cache", "size"))


def test_this_installation(run: Runner, home: Home) -> None:
    """capabilities, doctor, cache, config: both forms; a fresh machine is healthy; looking makes no store."""
    answer = run("capabilities", "--json").json()
    wanted = {
        "oa_enabled",
        "metadata_sources",
        "tdm_enabled",
        "tdm_elsevier",
        "tdm_aps",
        "tdm_springer",
        "source_policy",
        "rate_limit_per_sec",
    }
    assert wanted | {"max_concurrent_fetches", "offline"} <= set(answer)
    assert "hosts" not in answer
    hosts = {row["host"]: row["why"] for row in run("capabilities", "--hosts", "--json").json()["hosts"]}
    assert {"api.crossref.org", "doi.org", "*.plos.org", "export.arxiv.org"} <= set(hosts)
    assert all(hosts.values())
    shown = run("capabilities", "--hosts").out
    assert all(f"{host}\t" in shown for host in hosts)
    result = run("doctor", "--offline", "--json")
    answer = result.json()
    wanted = {
        "version",
        "schema_version",
        "store",
        "store_writable",
        "running",
        "queue_depth",
        "index",
        "log",
        "python",
        "checks",
    }
    assert wanted <= set(answer)
    assert answer["store"] == str(home.store)
    assert (result.rc, answer["store_writable"]) == (0, True)
    assert [check for check in answer["checks"] if check["status"] != "ok"] == [], "a fresh machine has nothing to mend"
    assert "All well." in run("doctor", "--offline").out
    assert not home.store.exists(), "looking creates nothing"
    assert run("cache", "prune", "--json").json() == {"ok": True, "action": "prune", "removed": 0, "bytes": 0}
    assert run("config", "get", "--jsonl").json()["settings"]
    assert f"store = {home.store}  (DOIGET_STORE)" in run("config", "get").out


def test_doctor_tries_the_network_and_exits_10_when_unhealthy(run: Runner, world: World, net: FakeInternet) -> None:
    """`doctor` is the one place that tries the way out, and says so in its exit status (spec §3)."""
    world.doi_org.register("10.1038/nphys1170", "Crossref")
    assert run("doctor").rc == 0
    assert net.hosts() == {"doi.org"}
    result = run("doctor", "--json", env={"HTTPS_PROXY": net.dead_proxy_url})
    assert result.rc == 10
    assert result.json()["healthy"] is False
    assert "FAULT network" in run("doctor", env={"HTTPS_PROXY": net.dead_proxy_url}).out


def test_the_demo_runs_without_any_network(run: Runner, net: FakeInternet, home: Home) -> None:
    """The newcomer's first minute: nothing is contacted, nothing is left behind, nothing of the user's is used."""
    env = {"DOIGET_OFFLINE": "1"}
    result = run("demo", env=env)
    assert result.rc == 0, result
    assert "as expected" in result.out
    answer = run("demo", "--json", env=env).json()
    assert answer["healthy"] is True
    assert all(step["as_expected"] for step in answer["steps"])
    assert net.connects() == []
    assert not home.store.exists()
    assert list(home.tmp.iterdir()) == []


def test_batch_in_three_forms(run: Runner, world: World) -> None:
    """Input order, whatever ends first; failures beside successes; the mixed status 20."""
    refs = ["10.1000/slow", "nonsense", "10.1000/quick", "10.1000/closed", "10.1000/quick"]
    for number, ref in enumerate(("10.1000/slow", "10.1000/quick")):
        world.paper(ref, pdf_url=f"https://journals{number}.plos.org/{number}.pdf")
    world.closed("10.1000/closed")
    world.net.url("https://journals0.plos.org/0.pdf", pdf(pdf_bytes("slow"), delay_s=0.5))
    result = run("batch", *refs, "--jsonl")
    lines = result.jsonl()
    assert [line["input"] for line in lines] == refs
    assert [line["ok"] for line in lines] == [True, False, True, False, True]
    assert (lines[1]["ref"], lines[1]["key"]) == (None, "nonsense")
    assert result.rc == 20
    answer = run("batch", *refs, "--json").json()
    assert [line["input"] for line in answer["results"]] == refs
    assert answer["ok"] is True
    assert answer["counts"]["failed"] == 2
    result = run("batch", *refs)
    assert result.rc == 20
    assert [line.split("\t")[0] for line in result.out.splitlines()[:-1]] == [refs[0], refs[2], refs[4]]
    assert "2 failed" in result.out
    assert "INVALID_REF" in result.err
    assert "closed_access" in result.err
    assert run("batch", "nonsense", "more nonsense").rc == 3, "one common status"


def test_batch_reads_lists(run: Runner, home: Home) -> None:
    """Files, standard input and arguments, any number; marks of editors and comments do no harm."""
    refs = [f"10.1000/{number}" for number in range(3)]
    for ref in refs:
        shelve(home, ref)
    file = home.cwd / "my list.txt"
    file.write_bytes(f"\ufeff# mine\n\n  doi:{refs[0]}\r\nsee https://doi.org/{refs[1]}.\r\nnothing here\n".encode())
    result = run("batch", file, "--jsonl")
    assert [line["ref"] for line in result.jsonl()] == [refs[0], refs[1], None]
    result = run("batch", "-", refs[2], "--json", input="\n".join(refs[:2]))
    assert [line["ref"] for line in result.json()["results"]] == refs
    many = run("batch", "-", "--json", input="\n".join([refs[0]] * 150))
    assert many.json()["counts"]["already_in_store"] == 150
    for empty in ("", "# nothing\n\n"):
        assert error_of(run("batch", "-", "--json", input=empty))["code"] == "INVALID_ARGUMENT"


def test_a_quoted_word_holds_as_many_refs_as_it_names(run: Runner, home: Home) -> None:
    """`batch "$(cat list)"` loses none; words about one identifier are one."""
    refs = [f"10.1000/{number}" for number in range(3)]
    for ref in refs:
        shelve(home, ref)
    result = run(
        "batch", "\n".join(refs[:2]), f"see https://doi.org/{refs[2]} or doi:{refs[2]}", "no refs here", "--jsonl"
    )
    assert [line["ref"] for line in result.jsonl()] == [*refs, None]
    assert run("export", " ".join(refs), "--json").json()["count"] == 3


def test_fetch_to_a_folder(run: Runner, world: World, home: Home) -> None:
    """`--to DIR` also copies the PDF there, from the store as well, in batches too; the folder is made."""
    paper = world.paper(DOI, pdf_url=COPY)
    shelve(home, "10.1000/1")
    folder = home.root / "out" / "deep"
    result = run("fetch", DOI, "--to", folder, "--json")
    assert result.rc == 0, result
    assert [path.read_bytes() for path in folder.iterdir()] == [paper.body]
    assert run("--to=" + str(folder), "batch", DOI, "10.1000/1").rc == 0
    assert len(list(folder.iterdir())) == 2
    (home.root / "file").write_text("in the way")
    error = error_of(run("fetch", DOI, "--json", "--to", home.root / "file"))
    assert (error["code"], error["reason"]) == ("STORE_ERROR", "not_writable")
    assert (home.root / "file").read_text() == "in the way"


def test_lists_are_paged_and_mark_papers_without_pdf(run: Runner, home: Home) -> None:
    """A record alone never looks like a paper one has."""
    for number in range(3):
        shelve(home, f"10.1000/{number}", with_pdf=number != 1, title=f"Paper {number}")
    lines = {line.split("\t")[0]: line.split("\t")[1] for line in run("recent").out.splitlines()}
    assert lines == {"10.1000/0": "pdf", "10.1000/1": "no pdf", "10.1000/2": "pdf"}
    assert "no pdf" in run("info", "10.1000/1").out
    first = run("recent", "--limit", "2", "--json").json()
    second = run("recent", "--limit", "2.0", "--cursor", first["next_cursor"], "--json").json()
    assert [len(page["entries"]) for page in (first, second)] == [2, 1]
    assert second["next_cursor"] is None
    assert len({entry["ref"] for page in (first, second) for entry in page["entries"]}) == 3
    assert [entry["ref"] for entry in run("recent", "--jsonl").jsonl()] == [
        e["ref"] for e in first["entries"] + second["entries"]
    ]
    assert first["next_cursor"] in run("recent", "--limit", "2").out
    assert error_of(run("recent", "--cursor", "bogus", "--json"))["reason"] == "bad_cursor"


def test_trash_and_its_edges(run: Runner, home: Home) -> None:
    """What is not there cannot be removed or restored; a record without PDF makes the round trip too."""
    for command in ("remove", "restore"):
        assert error_of(run(command, "10.1000/none", "--json"))["code"] == "NOT_FOUND"
    entry = shelve(home, "10.1000/bare", with_pdf=False, title=ODD_TITLE)
    before = entry.record_path.read_bytes()
    assert run("remove", "doi:10.1000/BARE").rc == 0
    rows = run("trash", "--jsonl").jsonl()
    assert [(row["ref"], row["title"], row["has_pdf"]) for row in rows] == [("10.1000/bare", ODD_TITLE, False)]
    assert run("restore", "10.1000/bare").rc == 0
    assert entry.record_path.read_bytes() == before
    assert error_of(run("restore", "10.1000/bare", "--json"))["code"] == "NOT_FOUND"
    assert run("log", "verify").rc == 0


# ---- flags ----


@pytest.mark.parametrize("form", ["--store={}", "--store {}"])
def test_global_flags_stand_before_and_after_the_command(run: Runner, home: Home, form: str) -> None:
    entry = shelve(home, "10.1000/1")
    other = home.root / "another store"
    home.store.rename(other)
    flag = form.format(other).split(" ", 1) if " {" in form else [form.format(other)]
    expected = str(other / Path(str(entry.pdf_path)).name)
    assert run(*flag, "--json", "path", "10.1000/1").json()["path"] == expected
    assert run("path", "--json", *flag, "10.1000/1").json()["path"] == expected
    assert run("path", "10.1000/1", *flag, "--quiet", "--offline").out == f"{expected}\n"


def test_what_follows_two_dashes_is_no_flag(run: Runner) -> None:
    error = error_of(run("info", "--json", "--", "--offline"))
    assert error["code"] == "INVALID_REF"


def test_offline_opens_no_connection(run: Runner, net: FakeInternet, home: Home) -> None:
    shelve(home, "10.1000/1", title="Kept")
    error = error_of(run("--offline", "fetch", DOI, "--json"))
    assert (error["code"], error["reason"]) == ("CAPABILITY_DENIED", "offline")
    answer = run("resolve", "10.1000/1", "--offline", "--json").json()
    assert (answer["stale"], answer["metadata"]["title"]) == (True, "Kept")
    assert net.connects() == []


def test_quiet_silences_all_but_the_failure_itself(run: Runner, world: World, home: Home) -> None:
    """Warnings go; that it failed, and why, does not."""
    home.write_config('nonsense = 1\n[keys]\naps = "k"\n')
    world.arxiv_paper("2401.12345")
    world.closed(DOI, relation={"has-preprint": [{"id-type": "arxiv", "id": "2401.12345", "asserted-by": "subject"}]})
    loud, quiet = run("fetch", DOI), run("fetch", DOI, "--quiet")
    assert loud.rc == quiet.rc == 0
    assert "nonsense" in loud.err
    assert "preprint" in loud.err
    assert quiet.stderr == b""
    failed = run("path", "10.1000/none", "--quiet")
    assert failed.rc == 4
    assert "no_pdf_in_store" in failed.err
    assert failed.stdout == b""


def test_no_cache_asks_anew(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    world.crossref_work(DOI)
    run("resolve", DOI, "--no-cache")
    assert not (home.cache / "resolver").exists()
    run("resolve", DOI)
    net.clear()
    assert run("resolve", DOI, "--json").json()["from_cache"] is True
    assert net.connects() == []
    assert run("resolve", DOI, "--refresh", "--json").json()["from_cache"] is False
    assert net.requests(host="api.crossref.org")


# ---- exit statuses ----


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("info", "nothing"), 3),
        (("info", "10." + "1" * 300 + "/x"), 3),
        (("recent", "--limit", "0"), 2),
        (("path", "10.1000/none"), 4),
        (("resolve", "10.1000/none"), 4),
        (("fetch", "10.1000/closed"), 5),
        (("fetch", DOI, "--offline"), 6),
        (("fetch", "10.1000/throttled"), 7),
        (("fetch", "10.1000/broken"), 8),
        (("fetch", "10.1000/stalls", "--timeout-s", "1"), 9),
        (("remove", "10.1000/shelved", "--store", "{home}/file/store"), 4),
        (("fetch", DOI, "--store", "{home}/file/store"), 10),
    ],
)
def test_each_code_has_its_status(
    run: Runner, world: World, net: FakeInternet, home: Home, words: tuple[str, ...], status: int
) -> None:
    (home.root / "file").write_text("in the way")
    world.paper(DOI, pdf_url=COPY)
    world.closed("10.1000/closed")
    answers = {"throttled": Reply(429, headers={"Retry-After": "100"}), "stalls": never()}
    for name, answer in answers.items():
        world.paper(f"10.1000/{name}", pdf_url=f"https://journals.plos.org/{name}")
        net.url(f"https://journals.plos.org/{name}", answer)
    world.paper("10.1000/broken", pdf_url="https://broken.plos.org/x")
    net.unreachable("broken.plos.org")
    result = run(*(word.format(home=home.root) for word in words))
    assert result.rc == status, result
    assert result.stdout == b"", "a failure is no answer"
    assert "next:" in result.err
    assert is_plain(result)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("fetch",), "ref"),
        (("config",), "action"),
        (("nonsense", DOI), "nonsense"),
        (("info", DOI, "--nonsense"), "--nonsense"),
        (("info", DOI, "10.1000/2"), "10.1000/2"),
        (("recent", "--limit", "many"), "limit"),
        (("recent", "--limit", "1.5"), "limit"),
        (("recent", "--limit", "101"), "limit"),
        (("fetch", DOI, "--timeout-s", "nan"), "timeout_s"),
        (("fetch", DOI, "--source-policy", "loose"), "source_policy"),
        (("cache", "explode"), "action"),
        (("info", DOI, "--store"), "--store"),
        (("info", DOI, "--store", "--quiet"), "--store"),
        (("recent", "--lim", "5"), "--lim"),
        (("--nonsense", "info", DOI), "--nonsense"),
        (("resolve", DOI, "--to", "/tmp"), "--to"),
    ],
)
def test_usage_errors_exit_2_and_are_json_when_asked(
    run: Runner, net: FakeInternet, words: tuple[str, ...], named: str
) -> None:
    """The argument is named; with --json on either side of the command the answer is JSON, and only that."""
    error = error_of(run("--json", *words))
    assert (error["code"], error["reason"], error["disposition"]) == ("INVALID_ARGUMENT", "schema", "fix_input")
    assert named in error["message"].replace("-", "_" if "_" in named else "-")
    result = run(*words)
    assert result.rc == 2
    assert result.stdout == b""
    assert len(result.err.splitlines()) == 2, "what is wrong, and the next step"
    assert net.connects() == []


def test_usage_errors_under_jsonl_are_json_too(run: Runner) -> None:
    assert error_of(run("batch", "--jsonl"))["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "words",
    [("fetch", DOI, "--timeout-s", "20"), ("fetch", DOI, "--timeout-s", "2e1"), ("fetch", DOI, "--timeout-s= 20 ")],
)
def test_numbers_are_read_as_they_come(run: Runner, world: World, words: tuple[str, ...]) -> None:
    world.paper(DOI, pdf_url=COPY)
    assert run(*words).rc == 0


@pytest.mark.parametrize(
    "ref",
    [
        "../x",
        "/etc/passwd",
        "..\\..\\x",
        "file:///etc/passwd",
        "~/.ssh/id_rsa",
        "doi_10.1371_x.toml",
        "C:\\x",
        "con",
        "-",
    ],
)
def test_paths_are_no_references_and_no_file_is_opened(run: Runner, home: Home, ref: str, tmp_path: Path) -> None:
    """Case RS-03: a path in place of an id is INVALID_REF, and nothing it could mean is touched."""
    (home.cwd.parent / "x").write_text("secret")
    opened = watch_opens(run, tmp_path, "info", ref)
    assert opened.result.rc == 3, opened.result
    assert "secret" not in opened.result.out + opened.result.err
    assert opened.paths, "the watch did not work"
    outside = [
        path
        for path in opened.paths
        if path in {"/etc/passwd", str(home.cwd.parent / "x")} or path.startswith(str(home.cwd))
    ]
    assert outside == []
    assert not home.store.exists()


class Watched:
    """A run, and every path it opened."""

    def __init__(self, result: Result, paths: list[str]) -> None:
        self.result, self.paths = result, paths


def watch_opens(run: Runner, folder: Path, *words: str) -> Watched:
    """Run with an audit hook that notes every file opened from the first line of the file on."""
    hook = folder / "hook"
    hook.mkdir()
    book = folder / "opened.txt"
    code = (
        "import os, sys\n"
        f"out = os.open({str(book)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "def note(event, args):\n"
        "    if event in ('open', 'os.listdir', 'os.scandir') and args and isinstance(args[0], (str, bytes)):\n"
        "        os.write(out, os.fsencode(os.path.abspath(os.fsdecode(args[0]))) + b'\\n')\n"
        "sys.addaudithook(note)\n"
    )
    (hook / "sitecustomize.py").write_text(code)
    result = run(*words, env={"PYTHONPATH": str(hook)})
    return Watched(result, book.read_text(errors="replace").splitlines() if book.exists() else [])


def test_a_failed_command_says_nothing_of_its_insides() -> None:
    """A bug becomes an id; the text of the exception, which may hold anything, stays out (spec §3)."""
    answer = doiget.answer_of_error(doiget.as_bug(ValueError("the s3cret path /x/y")))
    assert answer["error"]["code"] == "INTERNAL_ERROR"
    assert re.search(r"id [0-9a-f]{8,}", answer["error"]["message"])
    assert "s3cret" not in json.dumps(answer)
    assert doiget.exit_status_of(answer) == 1


# ---- help and version ----


def help_of(run: Runner, *words: str) -> str:
    result = run(*words, env={"COLUMNS": "120"})
    assert (result.rc, result.stderr) == (0, b""), result
    assert is_plain(result)
    return result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(run: Runner, golden: Callable[[str, str], None], command: str) -> None:
    text = help_of(run, command, "--help")
    assert text.startswith(f"usage: doiget {command} ")
    assert doiget.OPERATIONS[command].explanation.splitlines()[0] in text
    assert not re.search(r"spec|§| $", text, re.MULTILINE), "users have no spec; lines end where their text does"
    golden(f"help_{command}.txt", text)


def test_help_of_all(run: Runner, golden: Callable[[str, str], None]) -> None:
    """The overview, however it is asked for; every command and flag is in it."""
    text = help_of(run, "--help")
    assert text == help_of(run) == help_of(run, "help") == help_of(run, "-h")
    assert all(re.search(rf"^  {command} ", text, re.MULTILINE) for command in COMMANDS)
    assert all(flag in text for flag in ("--json", "--jsonl", "--offline", "--quiet", "--store"))
    golden("help.txt", text)


def test_version(run: Runner, pyz: Path) -> None:
    """`--version --json` says which build it is: commit and digest (spec §10)."""
    assert run("--version").out == f"doiget {doiget.__version__}\n"
    answer = run("--version", "--json").json()
    assert (answer["ok"], answer["version"]) == (True, doiget.__version__)
    assert answer == run("--json", "--version").json()
    if pyz.suffix == ".pyz":
        assert answer["commit"]
        assert re.fullmatch(r"[0-9a-f]{64}", answer["digest"])


# ---- terminals ----


def on_terminal(
    run: Runner, *words: str, env: dict[str, str | None] | None = None, pipe: str = ""
) -> tuple[bytes, bytes, int]:
    """Run on a terminal; returns what it showed, what went into a pipe in place of stream `pipe`, the status."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), slave)
    if pipe:
        streams[pipe] = subprocess.PIPE
    process = run.spawn(*words, env={"TERM": "xterm", "COLUMNS": "100", **(env or {})}, **streams)
    os.close(slave)
    piped: list[bytes] = []
    stream = getattr(process, pipe) if pipe else None
    reader = threading.Thread(target=lambda: piped.append(stream.read()) if stream else None)
    reader.start()
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the last writer has left
        while block := os.read(master, 65536):
            shown += block
    os.close(master)
    status = process.wait(30)
    reader.join(5)
    return shown, b"".join(piped), status


@posix
@pytest.mark.parametrize("encoding", ["cp1252", "cp932", "ascii", "latin-1"])
def test_a_console_that_lacks_characters_shows_substitutes(run: Runner, home: Home, encoding: str) -> None:
    """Case CL-02: on the terminal in its code page, never a crash; into a pipe and as JSON always UTF-8."""
    shelve(home, "10.1000/1", title=ODD_TITLE)
    env: dict[str, str | None] = {"PYTHONIOENCODING": encoding}
    shown, _, status = on_terminal(run, "recent", env=env)
    assert status == 0
    assert b"10.1000/1\tpdf\t".replace(b"\t", b"") in re.sub(rb"[\t ]+", b"", shown)
    assert b"Traceback" not in shown
    shown.decode(encoding)  # nothing but characters of the console
    assert ODD_TITLE in run("recent", env=env).out
    assert run("info", "10.1000/1", "--json", env=env).json()["entry"]["title"] == ODD_TITLE


@posix
def test_json_is_utf8_on_a_terminal_too(run: Runner, home: Home) -> None:
    shelve(home, "10.1000/1", title=ODD_TITLE)
    shown, _, status = on_terminal(run, "info", "10.1000/1", "--json", env={"PYTHONIOENCODING": "cp1252"})
    assert status == 0
    assert json.loads(shown)["entry"]["title"] == ODD_TITLE


def test_a_locale_without_letters_does_not_matter_in_pipes(run: Runner, home: Home) -> None:
    shelve(home, "10.1000/1", title=ODD_TITLE)
    env: dict[str, str | None] = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = run("recent", env=env)
    assert ODD_TITLE in result.out
    assert run("info", ODD_TITLE, env=env).rc == 3


@posix
def test_the_progress_bar_is_for_terminals_only(run: Runner, world: World) -> None:
    """On a terminal a bar, on stderr; in a pipe neither bar nor escape nor carriage return; none for --json."""
    refs = [f"10.1000/{number}" for number in range(3)]
    for number, ref in enumerate(refs):
        world.paper(ref, pdf_url=f"https://journals.plos.org/{number}.pdf")
    shown, piped, status = on_terminal(run, "batch", *refs, pipe="stdout")
    assert status == 0
    assert b"3" in shown
    assert b"\r" in shown
    assert b"paper" in shown
    assert len(piped.splitlines()) == 4
    assert not {b"\r", b"\x1b"} & {bytes([byte]) for byte in piped}
    for flag in ("--quiet", "--json", "--jsonl"):
        shown, _, _ = on_terminal(run, "batch", *refs, flag, pipe="stdout")
        assert shown == b"", flag
    assert is_plain(run("batch", *refs))


@posix
def test_results_do_not_run_into_the_bar(run: Runner, world: World) -> None:
    """On one terminal every result begins on a line of its own."""
    refs = [f"10.1000/{number}" for number in range(3)]
    for number, ref in enumerate(refs):
        world.paper(ref, pdf_url=f"https://journals.plos.org/{number}.pdf")
    shown, _, _ = on_terminal(run, "batch", *refs)
    for ref in refs:
        before, _, _ = shown.partition(f"{ref}\t".encode())
        line = re.split(rb"\n|\r|\x1b\[K", before)[-1]
        assert line.strip() == b"", shown


# ---- pipes ----


def gone_reader(run: Runner, *words: str, err: bool = False) -> tuple[int, str]:
    """Run with a stdout (and stderr) whose reader has left already."""
    reader, writer = os.pipe()
    os.close(reader)
    process = run.spawn(*words, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer if err else subprocess.PIPE)
    os.close(writer)
    _, told = process.communicate(timeout=30)
    return process.returncode, (told or b"").decode()


@posix
@pytest.mark.parametrize(
    "words",
    [
        ("recent",),
        ("recent", "--json"),
        ("--help",),
        ("--version",),
        ("batch", "10.1000/1", "10.1000/2", "--jsonl"),
        ("info", "nonsense", "--json"),
        ("fetch", "--help"),
    ],
)
def test_a_reader_that_has_left_ends_it_quietly(run: Runner, home: Home, words: tuple[str, ...]) -> None:
    """Case CL-01: no traceback, no `Exception ignored`, status 0 or 141 (or the failure's own)."""
    for number in (1, 2):
        shelve(home, f"10.1000/{number}")
    status, told = gone_reader(run, *words)
    assert status in {0, 141} | ({3} if "nonsense" in words else set())
    assert told == ""


@posix
def test_a_batch_whose_reader_leaves_after_the_first_line(run: Runner, world: World, home: Home) -> None:
    """`doiget batch … | head -1`: the line arrives, the rest ends without a word, nothing is left half done."""
    refs = [f"10.1000/{number}" for number in range(4)]
    for number, ref in enumerate(refs):
        world.paper(ref, pdf_url=f"https://journals{number}.plos.org/x.pdf", body=pdf_bytes(ref))
        if number:
            world.net.url(f"https://journals{number}.plos.org/x.pdf", pdf(pdf_bytes(ref), delay_s=0.3 * number))
    process = run.spawn("batch", *refs, "--jsonl", stdin=subprocess.DEVNULL, env={"PYTHONUNBUFFERED": "1"})
    assert process.stdout
    assert process.stderr
    assert json.loads(process.stdout.readline())["input"] == refs[0]
    process.stdout.close()
    assert process.wait(20) in {0, 141}
    assert process.stderr.read() == b""
    assert not [path for path in home.store.rglob("*") if path.name.endswith((".part", ".lock"))]


@posix
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_output_that_is_full_or_closed_is_no_traceback(run: Runner, home: Home, form: list[str]) -> None:
    shelve(home, "10.1000/1")
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - as a shell would
        process = run.spawn("path", "10.1000/1", *form, stdin=subprocess.DEVNULL, stdout=full)
        told = process.communicate(timeout=30)[1]
    assert process.returncode != 0, "an answer nobody got is no success"
    assert b"Traceback" not in told
    assert b"Exception ignored" not in told
    for number in (1, 2):
        result = run("path", "10.1000/1", *form, preexec_fn=lambda number=number: os.close(number))
        assert b"Traceback" not in result.stdout + result.stderr, number


@posix
def test_a_full_stderr_does_not_change_the_status(run: Runner) -> None:
    """What could not be said must not come up once more at exit, where Python makes 120 of it."""
    with Path("/dev/full").open("wb") as full:
        assert run("info", "nothing", stderr=full).rc == 3
        assert run("recent", stderr=full).rc == 0


@pytest.mark.parametrize("words", [("--tools", "nope"), ("--nonsense",)])
def test_a_server_that_cannot_start_says_so_as_any_command(run: Runner, words: tuple[str, ...]) -> None:
    """Under --json on stdout; and a stdout that is full is no traceback."""
    result = run("--json", "serve", *words)
    assert (result.rc, result.stderr) == (2, b"")
    assert result.json()["error"]["reason"] == "schema"
    with Path("/dev/full").open("wb") as full:
        assert "Traceback" not in run("serve", *words, stdout=full).err


def test_a_closed_stdin_is_an_empty_one(run: Runner, home: Home) -> None:
    """Cron and some hosts start programs without one; only who reads from it may mind, and then in plain words."""
    shelve(home, "10.1000/1")
    assert run("info", "10.1000/1", preexec_fn=lambda: os.close(0)).rc == 0
    result = run("batch", "-", "--json", preexec_fn=lambda: os.close(0))
    assert error_of(result)["code"] == "INVALID_ARGUMENT"


@posix
def test_bytes_that_are_no_text_are_no_identifier(run: Runner) -> None:
    """An argument in another encoding than the terminal's: INVALID_REF, in output that is valid UTF-8."""
    result = run("info", os.fsdecode(b"\xff\xfe\xe4"), "--json")
    assert error_of(result)["code"] == "INVALID_REF"
    assert run("batch", os.fsdecode(b"\xe4bc"), "--jsonl").jsonl()[0]["error"]["code"] == "INVALID_REF"
    assert run("config", "set", "email", os.fsdecode(b"\xe4@b.org")).rc == 2


# ---- signals ----


@posix
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_that_python_throws_away_still_ends_it(name: str, status: int) -> None:
    """What a handler raises inside the callback of a weak reference is printed and lost; doiget must leave anyway."""
    script = f"""
import os, signal, sys, time, weakref
sys.path.insert(0, {str(Path(doiget.__file__).parent)!r})
import doiget
signal.signal(signal.SIGINT, signal.default_int_handler)
class Thing: pass
def command(*_):
    thing = Thing()
    kept = weakref.ref(thing, lambda _: (os.kill(os.getpid(), signal.{name}), time.sleep(0.01)))
    del thing
    time.sleep(60)
doiget.OWN_COMMANDS["version-of-nothing"] = command
sys.exit(doiget.main(["version-of-nothing"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=40, check=False)
    assert done.returncode == status, done.stderr.decode()
    assert b"Exception ignored" not in done.stderr


@posix
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_at_any_moment_prints_no_traceback(
    run: Runner, world: World, net: FakeInternet, name: str, status: int
) -> None:
    """Whatever the event loop is at: resolving, downloading, saving, several at once."""
    refs = [f"10.1371/journal.stop.{n}" for n in range(8)]
    for ref in refs:
        world.paper(ref, body=pdf_bytes(ref, size=30_000))
    for number, form in enumerate((["--json"], [], ["--jsonl"], [])):
        net.clear()
        process = run.spawn("batch", *refs, *form, "--no-cache", stdin=subprocess.DEVNULL)
        net.wait_for(("api.crossref.org", "journals.plos.org")[number % 2])
        time.sleep(number * 0.07)
        process.send_signal(getattr(signal, name))
        _, err = process.communicate(timeout=30)
        assert process.returncode in {status, 0}, err
        assert not re.search(rb"(?i)traceback|exception|never awaited", err), err.decode()
        assert process.returncode == 0 or b"stopped" in err
        shutil.rmtree(run.home.store, ignore_errors=True)


@posix
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_during_a_download_leaves_no_trace(
    run: Runner, world: World, net: FakeInternet, home: Home, name: str, status: int
) -> None:
    """Quickly out, no temporary file, the lock released: the next fetch works at once (case ST-03)."""
    body = pdf_bytes(size=50_000)
    world.paper(DOI, pdf_url=COPY, body=body)
    net.url(COPY, pdf(body, stall_after=20_000, stall_s=60))
    process = run.spawn("fetch", DOI, stdin=subprocess.DEVNULL)
    net.wait_for("journals.plos.org", sent=20_000)
    wait_until(lambda: any(home.store.glob(".*.part")), "the download has begun")
    began = time.monotonic()
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=10)
    assert time.monotonic() - began < 5
    assert process.returncode == status
    assert b"Traceback" not in out + err
    assert out == b""
    assert sorted(path.name for path in home.store.rglob("*") if path.is_file()) == []
    net.url(COPY, pdf(body))
    began = time.monotonic()
    assert run("fetch", DOI).rc == 0
    assert time.monotonic() - began < 20


@posix
@pytest.mark.parametrize("where", ["api", "proxy", "waiting for its turn"])
def test_a_signal_while_waiting_ends_the_wait(
    run: Runner, world: World, net: FakeInternet, home: Home, where: str
) -> None:
    """Also where nothing comes from the network: an API that is silent, a proxy that is, a pace that is not up yet."""
    world.arxiv_paper("2401.12345")
    world.crossref_work(DOI)
    words = ("resolve", DOI)
    if where == "api":
        net.route("api.crossref.org", None, never())
    elif where == "proxy":
        net.silence()
    else:
        words = ("fetch", "arXiv:2401.12345")
    process = run.spawn(*words, stdin=subprocess.DEVNULL)
    wait_until(lambda: bool(net.requests() if where == "api" else net.connects()), "the first connection")
    if where.startswith("waiting"):
        net.wait_for("export.arxiv.org", ended=True)
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=10)
    assert time.monotonic() - began < 5
    assert process.returncode == 143
    assert b"Traceback" not in err
    assert not list((home.root / "cache").rglob("*.lock"))


def wait_until(is_true: Callable[[], bool], what: str, timeout_s: float = 20.0) -> None:
    ends = time.monotonic() + timeout_s
    while not is_true():
        assert time.monotonic() < ends, f"waited {timeout_s} s for: {what}"
        time.sleep(0.02)


# ---- places that cannot be written ----


@posix
@pytest.mark.parametrize("home_variable", [None, "", "/proc/no/home"])
def test_without_a_home_only_a_write_to_the_store_fails(
    run: Runner, world: World, home: Home, home_variable: str | None
) -> None:
    """Case ZA-01: looking things up needs no folder at all; what does names the variable that sets it."""
    world.paper(DOI, pdf_url=COPY)
    env: dict[str, str | None] = {"HOME": home_variable, "DOIGET_STORE": None}
    if home_variable:
        env |= {"XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None}
    assert run("--version", env=env).rc == 0
    assert run("resolve", DOI, env=env).rc == 0
    assert run("info", DOI, env=env).out == "Not in the store.\n"
    assert run("recent", env=env).out
    if home_variable:
        result = run("fetch", DOI, "--json", "--quiet", env=env)
        error = error_of(result)
        assert (error["code"], error["reason"]) in {("STORE_ERROR", "not_writable"), ("STORE_ERROR", "log_unwritable")}
        assert "DOIGET_STORE" in error["message"] + error["hint"]
        env |= {"DOIGET_STORE": str(home.store), "DOIGET_ACCESS_LOG": str(home.store / "log")}
        assert run("fetch", DOI, env=env).rc == 0


@posix
def test_a_user_without_an_entry_in_the_password_file(run: Runner, world: World, home: Home) -> None:
    """`docker run --user 12345`: no HOME, no name, hence no home folder."""
    stranger = ("--user", "--map-user=12345")
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", *stranger, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("user namespaces cannot be made here")
    world.paper(DOI, pdf_url=COPY)
    env: dict[str, str | None] = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "DOIGET_STORE"))
    how: dict[str, Any] = {"env": env, "python": "unshare", "flags": (*stranger, sys.executable)}
    assert run("--version", **how).rc == 0
    assert run("resolve", DOI, **how).rc == 0
    assert run("info", DOI, **how).rc == 0
    error = error_of(run("fetch", DOI, "--json", "--quiet", **how))
    assert error["code"] == "STORE_ERROR"
    assert "DOIGET_STORE" in error["message"] + error["hint"]
    assert list(home.cwd.iterdir()) == []


def unprivileged() -> tuple[str, tuple[str, ...]]:
    """A command in front of Python under which permissions count, also for root."""
    if os.geteuid() != 0:
        return sys.executable, ()
    tool = shutil.which("setpriv")
    if tool is None:
        pytest.skip("root may write everywhere, and setpriv is not here to take that away")
    return tool, ("--bounding-set=-dac_override,-dac_read_search", "--", sys.executable)


@posix
def test_a_read_only_store_still_lists_and_shows(run: Runner, home: Home) -> None:
    """A library on a read-only share: reading works, writing fails in plain words, doctor says so (spec §7)."""
    python, flags = unprivileged()
    entry = shelve(home, "10.1000/1", title="Kept")
    folders = [home.store, home.metadata, *(path for path in home.metadata.iterdir() if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        how: dict[str, Any] = {"python": python, "flags": flags}
        assert "Kept" in run("recent", **how).out
        assert run("path", "10.1000/1", **how).out == f"{entry.pdf_path}\n"
        assert run("info", "10.1000/1", "--json", **how).json()["entry"]["title"] == "Kept"
        assert run("trash", **how).rc == 0
        assert run("fetch", "10.1000/1", **how).rc == 0, "a store hit needs no writing"
        error = error_of(run("remove", "10.1000/1", "--json", **how))
        assert (error["code"], error["disposition"]) == ("STORE_ERROR", "configure")
        result = run("doctor", "--offline", "--json", **how)
        assert (result.rc, result.json()["store_writable"]) == (10, False)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert entry.pdf_path
    assert entry.pdf_path.exists()


@posix
@pytest.mark.parametrize("command", ["recent", "info", "trash", "path", "doctor"])
def test_reading_creates_nothing(run: Runner, home: Home, command: str) -> None:
    words = (command, DOI) if command in {"info", "path"} else (command, "--offline")
    run(*words)
    assert list(home.home.rglob("*")) == []
    assert not home.config.exists()


@posix
def test_a_store_that_is_a_file_is_a_plain_error(run: Runner, home: Home) -> None:
    home.store.write_text("in the way")
    assert run("recent").rc in {0, 10}
    result = run("doctor", "--offline", "--json")
    assert (result.rc, result.json()["store_writable"]) == (10, False)
    assert home.store.read_text() == "in the way"


# ---- slips ----


def test_a_record_with_a_slip_is_named_and_costs_nothing(run: Runner, world: World, home: Home) -> None:
    """What reads or edits stops there; a fetch makes it anew, keeps tags and key, and says where the old text is."""
    world.paper(DOI, pdf_url="https://journals.plos.org/fake/1.pdf")
    citekey = shelve(home, DOI).citekey
    assert run("tag", DOI, "keepme").rc == 0
    record = next(home.metadata.glob("*.toml"))
    broken = record.read_text().replace("[work]", 'title = "broken\n[work]')
    record.write_text(broken)
    for words in (("tag", DOI, "more"), ("path", DOI), ("remove", DOI)):
        error = error_of(run(*words, "--json"))
        assert (error["code"], record.name in error["message"]) == ("STORE_ERROR", True), words
        assert "editor" in error["hint"]
    assert record.name in run("info", DOI, "--json").json()["warnings"][0]
    assert record.read_text() == broken
    assert run("recent").rc == 0
    (index,) = (row for row in run("doctor", "--offline", "--json").json()["checks"] if row["name"] == "index")
    assert (index["status"], "1 records cannot be used" in index["detail"]) == ("warning", True)
    answer = run("fetch", DOI, "--json").json()
    (kept,) = home.metadata.glob(".trash/*/record.toml")
    assert (answer["citekey"], kept.read_text()) == (citekey, broken)
    assert any(str(kept) in text for text in answer["warnings"]), answer
    assert run("info", DOI, "--json").json()["entry"]["tags"] == ["keepme"]


def test_a_forgotten_value_unsets_nothing(run: Runner) -> None:
    assert run("config", "set", "timeout_s", "30").rc == 0
    assert error_of(run("config", "set", "timeout_s", "--json"))["reason"] == "schema"
    assert "timeout_s = 30" in run("config", "get", "timeout_s").out
    assert run("config", "set", "timeout_s", "").rc == 0
    assert "default" in run("config", "get", "timeout_s").out


def test_a_word_with_a_minus_is_part_of_the_query(run: Runner, home: Home) -> None:
    shelve(home, DOI, title="Grid cells and memory")
    shelve(home, "10.1371/journal.other", title="Grid cells and DNA repair")
    for words in (["grid", "-dna"], ["-dna", "--limit", "5"], ["grid", "-dna", "--json"]):
        out = run("search", *words).out
        assert DOI in out, words
        assert "journal.other" not in out, words


def test_a_pdf_is_no_list(run: Runner, tmp_path: Path) -> None:
    paper = tmp_path / "paper.pdf"
    paper.write_bytes(pdf_bytes("text"))
    error = error_of(run("batch", paper, "--json"))
    assert (error["reason"], "is a PDF" in error["message"], "doiget add" in error["hint"]) == ("schema", True, True)


def test_many_tags_do_not_burst_an_answer(run: Runner, home: Home) -> None:
    """A record edited by hand may hold anything: what is read of it is bounded (spec §3.1, Size)."""
    shelve(home, DOI, title="Grid cells")
    record = next(home.metadata.glob("*.toml"))
    word = "\u6f22" * 90
    tags = ", ".join(f'"{word}{n}"' for n in range(1500))
    record.write_text(record.read_text().replace("tags = []", f"tags = [{tags}]"))
    for words in (("info", DOI), ("search", "grid"), ("recent",)):
        assert len(run(*words, "--json").stdout) < 60_000, words
    assert "1480 more tags" in run("info", DOI, "--json").json()["entry"]["warnings"][-1]
    assert run("tag", DOI, "one more").rc == 0
    assert len(doiget.parse_toml(record.read_bytes())["tags"]) == 1501, "what is not shown is not lost"


def test_several_exports_on_one_stdout_are_told_apart(run: Runner, home: Home) -> None:
    shelve(home, DOI, title="Grid cells")
    one = {form: run("export", "--format", form).out for form in ("bibtex", "csl")}
    both = run("export", "--format", "csl,bibtex").out
    assert both == f"==> library.bib <==\n{one['bibtex']}\n==> library.json <==\n{one['csl']}"


def test_an_export_keeps_what_was_in_its_place(run: Runner, home: Home, tmp_path: Path) -> None:
    shelve(home, DOI, title="Grid cells")
    (tmp_path / "library.bib").write_text("my notes")
    for _ in range(2):  # the second one finds its own text there
        assert run("export", "--to", tmp_path).rc == 0
    assert "Grid cells" in (tmp_path / "library.bib").read_text()
    assert sorted(path.name for path in tmp_path.glob("library*")) == ["library.bib", "library.bib~"]
    assert (tmp_path / "library.bib~").read_text() == "my notes"


def test_slips_of_scripts_are_named(run: Runner, home: Home) -> None:
    """An unset variable does not mean everything, a mistyped list is no identifier, and `config set` mends a slip."""
    shelve(home, DOI, title="Kept")
    for words in (("export", "--query", ""), ("search", " ")):
        assert error_of(run(*words, "--json"))["reason"] == "bad_query"
    for name, *words in (("--store", "--store=", "recent"), ("--to", "fetch", DOI, "--to", "")):
        error = error_of(run(*words, "--json"))
        assert error["reason"] == "schema", words
        assert name in error["message"]
    mistyped = run("batch", DOI, "no-such-list.bib", "--offline", "--json").json()
    assert mistyped["warnings"] == ["There is no file 'no-such-list.bib'; it was taken for an identifier."]
    assert [row["ref"] for row in mistyped["results"]] == [DOI, None]
    home.write_config('timeout_s = "soon"\n')
    assert "config set timeout_s" in error_of(run("info", DOI, "--json"))["hint"]
    assert run("config", "set", "timeout_s", "40").rc == 0
    assert run("info", DOI).rc == 0
    error = error_of(run("info", DOI, "--json", env={"DOIGET_OFFLINE": "maybe"}))
    assert "unset DOIGET_OFFLINE" in error["hint"]


def test_nothing_shown_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A line of a stranger's list comes back in the answer about it, and a doctored log line in `log show`."""
    odd = "\x1b]0;title\x07 \x9b2J \u202egnihtemos\r\x7f\b"
    console = doiget.Console({})
    console.out(f"said: {odd}\n\tin two lines")
    console.json({"said": odd})
    console.err(odd)
    doiget.Console({}).note(odd)
    found = capsys.readouterr()
    assert not re.search("[^\\n\\t -~]", found.out + found.err)
    plain, line = found.out.split("\n\tin two lines\n")
    assert plain.startswith("said: \\u001b]0;title")
    assert json.loads(line) == {"said": odd}
