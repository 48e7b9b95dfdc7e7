"""Batches through the fake internet: how many requests, how fast, in what order, and what comes of odd lists."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from fake_internet import most_overlapping, pdf
from worlds import Location, pdf_bytes

import doiget

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Home, Result, Runner
    from fake_internet import FakeInternet
    from worlds import World

EMAIL = "reader@library.example"
ARXIV = "export.arxiv.org"
METADATA = ("api.crossref.org", "api.datacite.org", "api.openalex.org", "api.unpaywall.org", "www.ebi.ac.uk", "doi.org",
            "eutils.ncbi.nlm.nih.gov")  # fmt: skip
COPY_HOSTS = ("journals.plos.org", "www.frontiersin.org", "elifesciences.org", "acp.copernicus.org", "www.scielo.br",
              "www.jstage.jst.go.jp", "peerj.com")  # fmt: skip


def batch(run: Runner, *words: str | Path, **how: Any) -> tuple[Result, list[Any], dict[str, int]]:
    """Run `batch --json`; returns the run, its results and counts, after checking that they agree."""
    result = run("batch", *words, "--json", **how)
    answer = result.json()
    assert answer["ok"] is True, result
    assert {"results", "counts", "pending"} <= set(answer)
    counts, results = answer["counts"], answer["results"]
    assert sum(counts.values()) == len(results)
    assert counts["failed"] + counts["pending"] == sum(not row["ok"] for row in results)
    return result, results, counts


def is_metadata(request: Any) -> bool:
    return request.host in METADATA or request.path == "/api/query"


@dataclass
class Mixed:
    """100 refs as a reading list has them: 70 of Crossref, 10 of DataCite, 20 of arXiv, all registered."""

    refs: list[str] = field(default_factory=list)
    open: set[str] = field(default_factory=set)


def fill(world: World, open_articles: int = 35, delay_s: float = 0.3) -> Mixed:
    """Put the mixed list into the world: some articles open on seven hosts, the others closed; the data sets open."""
    mixed = Mixed()
    for n in range(70):
        ref = f"10.1371/journal.mixed.{n:07}"
        if n % 2 == 0 and len(mixed.open) < open_articles:
            host = COPY_HOSTS[n // 2 % len(COPY_HOSTS)]
            paper = world.paper(ref, pdf_url=f"https://{host}/mixed/{n}.pdf", title=f"Article {n}")
            world.net.url(paper.pdf_url, pdf(paper.body, delay_s=delay_s))
            mixed.open.add(ref)
        else:
            world.closed(ref, title=f"Article {n}")
        mixed.refs.append(ref)
    for n in range(10):
        ref, url = f"10.5061/dryad.{n:05}", f"https://repo.nii.ac.jp/data/{n}.pdf"
        world.datacite_work(ref, title=f"Data {n}")
        world.openalex_work(ref, Location(url, repository=True), title=f"Data {n}", xpac=True)
        world.pdf(url)
        mixed.refs.append(ref)
        mixed.open.add(ref)
    for n in range(20):
        world.arxiv_paper(f"2401.{n:05}", title=f"Preprint {n}")
        mixed.refs.append(f"arXiv:2401.{n:05}")
        mixed.open.add(mixed.refs[-1])
    return mixed


def check_load(net: FakeInternet) -> None:
    """What a batch may cost others (spec §4, §6)."""
    metadata = [request for request in net.requests() if is_metadata(request)]
    by_host: dict[str, int] = {}
    for request in metadata:
        by_host[request.host] = by_host.get(request.host, 0) + 1
    assert len(metadata) <= 8, by_host
    copies = [r for r in net.requests() if not is_metadata(r)]
    now = time.monotonic()
    assert 2 <= most_overlapping((r.t_start, r.t_end or now) for r in copies) <= 5
    for host in {request.host for request in copies}:
        assert net.max_at_once(host) <= (1 if host == ARXIV else 2), f"{host} got too many requests at once"
    assert net.max_connections_at_once(ARXIV) == 1
    assert min(net.gaps(ARXIV)) >= 2.95, "arXiv: 3 s between requests, feed and PDFs together"


def test_a_hundred_mixed_refs_cost_eight_requests(run: Runner, world: World, net: FakeInternet) -> None:
    """Resolved in single digits, fetched side by side and politely. arXiv's 20 PDFs need a minute: here only two."""
    mixed = fill(world)
    process = run.spawn("batch", *mixed.refs, "--jsonl", env={"DOIGET_EMAIL": EMAIL})
    assert process.stdout is not None
    rows = [json.loads(process.stdout.readline()) for _ in range(80)]
    net.wait_for(ARXIV, "/pdf/", 2, timeout=30, ended=True)
    process.terminate()
    process.communicate(timeout=20)
    assert [row["input"] for row in rows] == mixed.refs[:80], "results come in the order of the input"
    assert {row["ref"] for row in rows if row["ok"]} == mixed.open & set(mixed.refs[:80])
    assert {row["error"]["reason"] for row in rows if not row["ok"]} == {"closed_access"}
    check_load(net)


def test_at_most_five_requests_start_in_any_second(run: Runner, world: World, net: FakeInternet) -> None:
    """One pace over all hosts, with hosts that answer at once; a tenth of the second is left to the wire itself."""
    refs = []
    for n in range(16):
        ref = f"10.1371/journal.pace.{n}"
        world.paper(ref, pdf_url=f"https://{COPY_HOSTS[n % len(COPY_HOSTS)]}/pace/{n}.pdf")
        refs.append(ref)
    _, _, counts = batch(run, *refs)
    assert counts["fetched"] == 16
    assert net.max_in_window(0.9) <= 5, net.text()


@pytest.mark.long
def test_a_hundred_mixed_refs_to_the_end(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    mixed = fill(world)
    result, results, counts = batch(run, *mixed.refs, env={"DOIGET_EMAIL": EMAIL}, timeout=200)
    assert [row["input"] for row in results] == mixed.refs
    assert {row["ref"] for row in results if row["ok"]} == mixed.open
    assert counts == {"fetched": len(mixed.open), "already_in_store": 0, "failed": 35, "pending": 0}
    assert result.rc == 5, "one kind of failure is the status of the whole"
    assert len(list(home.store.glob("*.pdf"))) == len(mixed.open)
    check_load(net)
    assert net.max_in_window(0.9) <= 5
    assert run("log", "verify").rc == 0
    net.clear()
    _, _, counts = batch(run, *mixed.refs)
    assert counts == {"fetched": 0, "already_in_store": len(mixed.open), "failed": 35, "pending": 0}
    assert ARXIV not in net.connect_hosts()


@pytest.mark.long
def test_prefixes_nobody_knows_still_fit(run: Runner, world: World, net: FakeInternet) -> None:
    """Half of DataCite's DOIs under prefixes that tell nothing: one more look-up for all of them, not one each."""
    refs = [f"10.1371/journal.mixed.{n:07}" for n in range(70)]
    for ref in refs:
        world.closed(ref)
    for n in range(10):
        refs.append(f"10.{'5061' if n % 2 else '99999'}/data.{n}")
        world.datacite_work(refs[-1])
    for n in range(20):
        world.arxiv_paper(f"2401.{n:05}")
        refs.append(f"arXiv:2401.{n:05}")
    process = run.spawn("batch", *refs, "--json")
    net.wait_for(ARXIV, "/pdf/", 1, timeout=40)
    process.terminate()
    process.communicate(timeout=20)
    resolving = [r for r in net.requests() if is_metadata(r) and r.host != "www.ebi.ac.uk"]
    assert len(resolving) <= 8, [r.url[:80] for r in resolving]


# ############################################################################
# Order, counts, exit status
# ############################################################################


def test_every_kind_of_outcome_in_one_list(run: Runner, world: World) -> None:
    """In input order: stored before, fetched, closed, unregistered, no identifier; the status says "mixed"."""
    before, now = (
        world.paper("10.1371/batch.before"),
        world.paper("10.1371/batch.now", authors=[("A", f"F{n}") for n in range(9)]),
    )
    world.closed("10.1371/batch.closed")
    run("fetch", before.doi)
    words = ["no identifier in here", now.doi, "10.1371/batch.closed", before.doi, "10.1371/batch.unregistered"]
    result, results, counts = batch(run, *words)
    assert [row["input"] for row in results] == words
    assert [row["ok"] for row in results] == [False, True, False, True, False]
    assert [row.get("error", {}).get("code") for row in results] == [
        "INVALID_REF",
        None,
        "NO_OA_AVAILABLE",
        None,
        "NOT_FOUND",
    ]
    assert (results[0]["ref"], results[0]["key"]) == (None, words[0])
    assert counts == {"fetched": 1, "already_in_store": 1, "failed": 3, "pending": 0}
    assert result.rc == 20
    assert (results[1]["sha256"], results[1]["already_in_store"]) == (now.sha256, False)
    assert (len(results[1]["authors"]), results[1]["authors_total"]) == (3, 9)
    assert results[3]["already_in_store"] is True
    assert results[2]["error"]["attempts"]
    assert results[2]["metadata_path"].endswith(".toml")


def test_one_kind_of_failure_gives_its_status(run: Runner, world: World) -> None:
    world.closed("10.1371/batch.closed.1")
    world.closed("10.1371/batch.closed.2")
    result, _, counts = batch(run, "10.1371/batch.closed.1", "10.1371/batch.closed.2")
    assert (result.rc, counts["failed"]) == (5, 2)


def test_the_same_call_again_asks_nobody(run: Runner, world: World, net: FakeInternet) -> None:
    refs = [world.paper(f"10.1371/batch.{n}").doi for n in range(3)]
    result, _, counts = batch(run, *refs)
    assert (result.rc, counts["fetched"]) == (0, 3)
    net.clear()
    result, _, counts = batch(run, *refs)
    assert (result.rc, counts["already_in_store"]) == (0, 3)
    assert net.connects() == []


def test_one_work_under_many_names_is_fetched_once(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    """Twice the same, another spelling, an address, a shortDOI, a PMID: one PDF request and six answers."""
    paper = world.paper("10.1371/batch.twice")
    world.short_doi("abc12", paper.doi)
    world.pubmed_paper("30571677", doi=paper.doi)
    words = [paper.doi, paper.doi, paper.doi.upper(), f"https://doi.org/{paper.doi}", "10/abc12", "pmid:30571677"]
    result, results, _ = batch(run, *words)
    assert result.rc == 0
    assert [row["input"] for row in results] == words
    assert {(row["ref"], row["sha256"]) for row in results} == {(paper.doi, paper.sha256)}
    assert len(net.requests("journals.plos.org")) == 1
    assert len([r for r in net.requests("api.crossref.org") if "batch.twice" in r.target]) == 1
    assert len(list(home.store.glob("*.pdf"))) == 1


def test_lines_come_in_input_order_and_as_soon_as_they_may(run: Runner, world: World, net: FakeInternet) -> None:
    """--jsonl: the first line does not wait for the second; a quick third waits for it."""
    refs = [f"10.1371/batch.{n}" for n in range(3)]
    papers = [world.paper(ref, pdf_url=f"https://{COPY_HOSTS[n]}/{n}.pdf") for n, ref in enumerate(refs)]
    gate = threading.Event()
    net.url(papers[1].pdf_url, pdf(papers[1].body, hold=gate))
    process = run.spawn("batch", *refs, "--jsonl")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["input"] == refs[0]
    net.wait_for(COPY_HOSTS[2], "/2.pdf", ended=True)
    gate.set()
    out, err = process.communicate(timeout=20)
    assert [json.loads(line)["input"] for line in out.splitlines()] == refs[1:]
    assert process.returncode == 0, err


def test_a_person_gets_paths_and_no_progress_in_a_pipe(run: Runner, world: World) -> None:
    """Paths on stdout, failures on stderr, and no bar, escape or carriage return anywhere."""
    paper = world.paper("10.1371/batch.open")
    world.closed("10.1371/batch.closed")
    result = run("batch", paper.doi, "10.1371/batch.closed", "nothing")
    assert result.rc == 20
    assert str(run.home.store) in result.out
    assert "10.1371/batch.closed" not in result.out
    assert "NO_OA_AVAILABLE" in result.err
    assert "INVALID_REF" in result.err
    assert b"\r" not in result.stdout + result.stderr
    assert b"\x1b" not in result.stdout + result.stderr
    assert "it/s" not in result.err
    assert "paper/s" not in result.err


def test_a_slow_host_costs_its_own_papers_no_time_before_their_turn(
    run: Runner, world: World, net: FakeInternet
) -> None:
    """A ref's deadline begins when its first request may start: papers that queue for one host lose nothing."""
    refs = []
    for n in range(6):
        paper = world.paper(f"10.1371/slow.{n}")
        net.url(paper.pdf_url, pdf(paper.body, delay_s=0.9))
        refs.append(paper.doi)
    _, results, counts = batch(run, *refs, env={"DOIGET_TIMEOUT_S": "3"})
    assert counts["fetched"] == 6, [row.get("error") for row in results]


def test_a_paper_that_hangs_does_not_hold_the_others(run: Runner, world: World, net: FakeInternet) -> None:
    hung, *quick = (world.paper(f"10.1371/hang.{n}", pdf_url=f"https://{COPY_HOSTS[n]}/{n}.pdf") for n in range(3))
    net.url(hung.pdf_url, pdf(hung.body, stall_after=20, stall_s=60))
    result, results, counts = batch(run, hung.doi, *(paper.doi for paper in quick), env={"DOIGET_TIMEOUT_S": "3"})
    assert [row["ok"] for row in results] == [False, True, True]
    assert (results[0]["error"]["code"], results[0]["error"]["disposition"]) == ("FETCH_TIMEOUT", "retry")
    assert (result.rc, counts["failed"]) == (9, 1)
    assert not list(run.home.store.rglob("*.part"))


# ############################################################################
# Lists
# ############################################################################

LISTS: dict[str, tuple[bytes, list[str | None]]] = {
    "plain": (b"10.1371/a.1\n10.1371/a.2\n", ["10.1371/a.1", "10.1371/a.2"]),
    "no line end": (b"10.1371/a.1", ["10.1371/a.1"]),
    "BOM and CRLF": (b"\xef\xbb\xbf10.1371/a.1\r\n2401.12345v2\r\n", ["10.1371/a.1", "arXiv:2401.12345v2"]),
    "UTF-16": ("10.1371/a.1\r\n10.1371/é.2\r\n".encode("utf-16"), ["10.1371/a.1", "10.1371/é.2"]),
    "UTF-16 big-endian": (b"\xfe\xff" + "10.1371/a.1\n".encode("utf-16-be"), ["10.1371/a.1"]),
    "comments": (
        b"# my list 10.1371/not.this\n\n   \n10.1371/a.1   # to read\n10.1371/456#789\n  # end\n",
        ["10.1371/a.1", "10.1371/456#789"],
    ),
    "prose": (
        b"See Doe et al., https://doi.org/10.1371/a.1 (2001), and arXiv:2401.12345.\n- pmid:30571677;\n3. PMC1017419\n",
        ["10.1371/a.1", "arXiv:2401.12345", "pmid:30571677", "PMC1017419"],
    ),
    "numbers are PMIDs": (b"30571677\n30571678\n", ["pmid:30571677", "pmid:30571678"]),
    "SICI": (
        b"10.1002/(SICI)1096-9861(19971020)387:2<167::AID-CNE1>3.0.CO;2-Z\n",
        ["10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z"],
    ),
    "no id": (b"10.1371/a.1\nA title without any identifier\n10.1371/a.2\n", ["10.1371/a.1", None, "10.1371/a.2"]),
    "odd bytes": (b"caf\xe9 10.1371/a.1\n", ["10.1371/a.1"]),
}


USUAL = ("BOM and CRLF", "UTF-16", "comments", "prose", "no id")


@pytest.mark.parametrize("name", [*USUAL, *(pytest.param(n, marks=pytest.mark.long) for n in LISTS if n not in USUAL)])
def test_lists_are_read_as_people_write_them(run: Runner, net: FakeInternet, home: Home, name: str) -> None:
    """Offline: only what was read out of the list matters here; half of them come as files, half on stdin."""
    data, refs = LISTS[name]
    path = home.root / "to read.txt"
    path.write_bytes(data)
    stdin = name in {"UTF-16", "prose", "SICI"}
    _, results, _ = batch(run, "-" if stdin else path, "--offline", input=data if stdin else None)
    assert [row["ref"] for row in results] == refs
    for row in results:
        code = "CAPABILITY_DENIED" if row["ref"] else "INVALID_REF"
        assert row["error"]["code"] == code
        if row["ref"] is None:
            assert row["key"] == "A title without any identifier"
    assert net.connects() == []


def test_lists_and_words_mix_in_order(run: Runner, home: Home) -> None:
    """Words, a file and stdin stand where they are named; a file that is not there is a word without an id."""
    path = home.root / "list.txt"
    path.write_text("10.1371/from.file\n")
    words: list[str | Path] = ["10.1371/first", path, "-", "missing.txt", "10.1371/last"]
    _, results, _ = batch(run, *words, "--offline", input="10.1371/from.stdin\n")
    assert [row["ref"] for row in results] == [
        "10.1371/first",
        "10.1371/from.file",
        "10.1371/from.stdin",
        None,
        "10.1371/last",
    ]
    assert results[3]["key"] == "missing.txt"


@pytest.mark.parametrize("data", [b"", b"# nothing but a remark\n\n"])
def test_an_empty_list_is_an_argument_error(run: Runner, data: bytes) -> None:
    result = run("batch", "-", "--json", input=data)
    assert (result.json()["error"]["code"], result.rc) == ("INVALID_ARGUMENT", 2)


@pytest.mark.usefixtures("world")
def test_more_than_a_hundred_refs_go_in_windows(run: Runner, net: FakeInternet, home: Home) -> None:
    """104 invented DOIs: all answered in order, none asked singly, no request beyond what an API takes."""
    refs = [f"10.1371/invented.{n:03}" for n in range(104)]
    path = home.root / "long.txt"
    path.write_text("\n".join(refs))
    result, results, counts = batch(run, path)
    assert [row["input"] for row in results] == refs
    assert {row["error"]["code"] for row in results} == {"NOT_FOUND"}
    assert (result.rc, counts["failed"]) == (4, 104)
    openalex = [request.query["filter"].count("|") + 1 for request in net.requests("api.openalex.org")]
    assert sum(openalex) == 104
    assert max(openalex) <= 100
    assert len(net.requests()) <= 14, net.text()


def test_one_down_source_costs_a_batch_only_its_share(run: Runner, world: World, net: FakeInternet) -> None:
    """Crossref is down: its papers come from OpenAlex with a warning, the others are as ever."""
    article = world.paper("10.1371/batch.open", title="As OpenAlex has it")
    world.datacite_work("10.5061/dryad.1")
    url = "https://repo.nii.ac.jp/data/1.pdf"
    world.openalex_work("10.5061/dryad.1", Location(url, repository=True), xpac=True)
    data = world.pdf(url)
    net.unreachable("api.crossref.org")
    result, results, _ = batch(run, article.doi, "10.5061/dryad.1")
    assert result.rc == 0
    assert results[0]["title"] == "As OpenAlex has it"
    assert any("Crossref" in text for text in results[0]["warnings"])
    assert results[1]["warnings"] == []
    assert results[1]["size_bytes"] == len(data)


@pytest.mark.parametrize("more", [[], pytest.param(["arXiv:2401.12345"], marks=pytest.mark.long)])
def test_a_batch_without_any_network_says_so_for_each(run: Runner, net: FakeInternet, more: list[str]) -> None:
    refs = ["10.1371/a.1", "pmid:30571677", "10.5281/zenodo.1", "10/abc12", *more]
    result, results, _ = batch(run, *refs, env={"HTTPS_PROXY": net.dead_proxy_url})
    assert [row["ref"] for row in results] == refs
    assert {(row["error"]["code"], row["error"]["reason"]) for row in results} == {("NETWORK_ERROR", "unreachable")}
    assert result.rc == 8
    assert not (run.home.cache / "resolver").exists() or not list((run.home.cache / "resolver").iterdir())


def test_results_are_short(run: Runner, world: World) -> None:
    """A batch result is a short fetch answer: no abstract, three authors, and the same names as `fetch` uses."""
    paper = world.paper("10.1371/batch.short", abstract="<jats:p>" + "long " * 500 + "</jats:p>")
    result, (row,), _ = batch(run, paper.doi)
    assert len(result.stdout) < 2500
    assert {"input", "ok", "ref", "path", "sha256", "license", "version", "citekey", "retraction", "undo"} <= set(row)
    assert doiget.safekey(doiget.parse_ref(paper.doi)) in row["path"]
    assert row["size_bytes"] == len(pdf_bytes(paper.pdf_url))
