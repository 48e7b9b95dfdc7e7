"""The citation graph: what is asked of whom, what becomes of failures and limits, and that no page runs a title."""

from __future__ import annotations

import contextlib
import fcntl
import html.parser
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest
from fake_internet import FakeInternet, Reply, Request, never, seq
from hypothesis import given, settings
from hypothesis import strategies as st
from test_24_mcp import schemas, serve, tools  # noqa: F401 - fixtures
from worlds import World, block_page, short_code, update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Runner

GIVEN = os.environ.get("DOIGET_TEST_PYZ", "")
SOURCE = Path(GIVEN) if GIVEN.endswith(".py") else Path(__file__).resolve().parent.parent / "doiget.py"


def load_source() -> Any:
    spec = util.spec_from_file_location("doiget_graphed", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules["doiget_graphed"] = module
    spec.loader.exec_module(module)
    return module


doiget = load_source()
DOI = "10.1000/root"
CROSSREF, OPENALEX, OPENCITATIONS = "api.crossref.org", "api.openalex.org", "api.opencitations.net"


def words(text: str) -> set[str]:
    return set(text.split())


def w_id(doi: str) -> str:
    """The id that the fake OpenAlex gives a DOI."""
    return f"W{2_000_000_000 + short_code(doi)}"


# ############################################################################
# In process: the same world behind a transport, without sockets and waiting
# ############################################################################


@dataclass
class Bench:
    """Runs `graph` in this process; `net` keeps the log of what was asked."""

    net: FakeInternet
    folder: Path
    now: list[float] = field(default_factory=lambda: [time.time()])

    def __call__(self, ref: str = DOI, *, cache: bool = True, offline: bool = False, **how: Any) -> dict[str, Any]:
        timeout_s = how.pop("timeout_s", 45.0)

        async def run() -> dict[str, Any]:
            ctx = self.context(cache=cache, offline=offline, timeout_s=timeout_s)
            try:
                return await doiget.graph(ctx, ref, **how)
            finally:
                await ctx.client.aclose()

        answer = anyio.run(run)
        check(answer)
        return answer

    def context(self, *, cache: bool, offline: bool, timeout_s: float) -> Any:
        folder = self.folder
        arguments = {"store": str(folder / "papers"), "offline": offline}
        config = doiget.load_config(arguments)
        values = {**config.values, "access_log": str(folder / "access.log"), "timeout_s": timeout_s, "email": ""}
        config = doiget.replace(config, values=values, cache_dir=folder / "cache")
        ctx = doiget.open_context(config, transport=Wire(self.net), cache=cache)
        ctx.client.pacer = doiget.NoPace(folder / "pace", clock=lambda: self.now[0])
        return ctx

    def fails(self, *words: str, **how: Any) -> Any:
        with pytest.raises(doiget.DoigetError) as caught:
            self(*words, **how)
        return caught.value


class Wire(httpx.AsyncBaseTransport):
    """Answers from the routes of a fake internet, and logs there."""

    def __init__(self, net: FakeInternet) -> None:
        self.net = net

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Request(time.monotonic(), request.url.host, 443, request.method, target, headers, b"", 0)
        self.net.add_request(asked)
        reply = self.net._find(asked)
        if reply.reset:
            raise httpx.ReadError("reset")
        await anyio.sleep(86400 if math.isinf(reply.delay_s) else reply.delay_s)
        kind = {"content-type": reply.media_type()}
        return httpx.Response(reply.status, headers=kind | reply.headers, stream=httpx.ByteStream(reply.payload()))


def check(answer: dict[str, Any]) -> None:
    """What every graph promises (spec §3.1)."""
    refs = [node["ref"] for node in answer["nodes"]]
    edges = [(edge["citing"], edge["cited"]) for edge in answer["edges"]]
    assert refs[0] == answer["ref"]
    assert len(refs) == len(set(refs)), "a work twice"
    assert len(edges) == len(set(edges)), "a citation twice"
    assert all(citing != cited and {citing, cited} <= set(refs) for citing, cited in edges)
    assert {tuple(node) for node in answer["nodes"]} == {("ref", "title", "year", "depth", "in_store", "retracted")}
    depths = [node["depth"] for node in answer["nodes"]]
    assert depths == sorted(depths), "the nearest first"
    near = {ref: {other for edge in edges if ref in edge for other in edge} for ref in refs}
    at = dict(zip(refs, depths, strict=True))
    for ref, depth in at.items():
        assert not depth or any(at[other] == depth - 1 for other in near[ref]), f"{ref} hangs in the air"
    assert isinstance(answer["truncated"], bool)
    assert len(json.dumps(answer, ensure_ascii=False).encode()) < 60_000


def pairs(answer: dict[str, Any]) -> set[tuple[str, str]]:
    return {(edge["citing"], edge["cited"]) for edge in answer["edges"]}


def refs(answer: dict[str, Any]) -> list[str]:
    return [node["ref"] for node in answer["nodes"]]


@pytest.fixture
def bench(net: FakeInternet, tmp_path: Path) -> Bench:
    return Bench(net, tmp_path)


def numbered(name: str, count: int) -> list[str]:
    return [f"10.1000/{name}.{n:02}" for n in range(count)]


# ############################################################################
# The plain case
# ############################################################################


def small(world: World) -> None:
    """A root that cites two works and is cited by two; one of those cites one of these too."""
    world.citing_work("10.1000/old.a", title="Old A", date="1999-01-05", cited_by=50)
    world.citing_work("10.1000/old.b", ["10.1000/old.a"], title="Old B", date="2001-01-05", cited_by=70)
    world.citing_work(DOI, ["10.1000/old.a", "10.1000/old.b"], title="The root", date="2010-01-05")
    world.citing_work("10.1000/new.a", [DOI, "10.1000/old.b"], title="New A", date="2015-01-05", cited_by=9)
    world.citing_work("10.1000/new.b", [DOI], title="New B", date="2016-01-05", cited_by=2)


def test_both_directions_take_four_requests_and_then_none(run: Runner, world: World, net: FakeInternet) -> None:
    small(world)
    first = run("graph", f"https://doi.org/{DOI.upper()}", "--json")
    answer = first.json()
    check(answer)
    assert (first.rc, answer["ok"], answer["ref"], answer["truncated"], answer["warnings"]) == (0, True, DOI, False, [])
    shown = [(n["ref"], n["title"], n["year"], n["depth"], n["in_store"], n["retracted"]) for n in answer["nodes"]]
    assert shown == [
        (DOI, "The root", 2010, 0, False, False),
        ("10.1000/old.b", "Old B", 2001, 1, False, False),
        ("10.1000/new.a", "New A", 2015, 1, False, False),
        ("10.1000/old.a", "Old A", 1999, 1, False, False),
        ("10.1000/new.b", "New B", 2016, 1, False, False),
    ]
    assert pairs(answer) == {
        (DOI, "10.1000/old.a"), (DOI, "10.1000/old.b"), ("10.1000/new.a", DOI), ("10.1000/new.b", DOI),
        ("10.1000/new.a", "10.1000/old.b"), ("10.1000/old.b", "10.1000/old.a"),
    }  # fmt: skip
    assert sorted(request.host for request in net.requests()) == [CROSSREF, OPENALEX, OPENALEX, OPENALEX]
    assert [r.query["sort"] for r in net.requests(OPENALEX)] == ["cited_by_count:desc"] * 3
    net.clear()
    again = run("graph", DOI, "--json")
    assert (again.out, net.connects()) == (first.out, []), "a second run asks nobody and says the same"
    assert run("cache", "size", "--json").json()["entries"] == 2
    run("graph", DOI, "--json", "--refresh")
    assert len(net.requests()) == 4
    assert run("cache", "clear", "--json").json()["removed"] == 2
    net.clear()
    offline = run("graph", DOI, "--json", "--offline")
    error = offline.json()["error"]
    assert (offline.rc, error["code"], error["reason"], net.connects()) == (6, "CAPABILITY_DENIED", "offline", [])


def test_a_person_reads_a_tree(run: Runner, world: World) -> None:
    small(world)
    *lines, last = run("graph", DOI, "--depth", "2").out.splitlines()
    assert lines == [
        f"The root | 2010 · {DOI}",
        "  cites",
        "    Old B | 2001 · 10.1000/old.b",
        "    Old A | 1999 · 10.1000/old.a",
        "  is cited by",
        "    New A | 2015 · 10.1000/new.a",
        "    New B | 2016 · 10.1000/new.b",
    ]
    assert re.findall(r"\d+", last) == ["5", "6"], "works and citations"
    dot = run("graph", DOI, "--format", "dot").out
    assert dot.startswith("digraph citations {")
    assert '"10.1000/new.a" -> "10.1000/root";' in dot
    assert run("graph", DOI, "--format", "html").out.startswith("<!DOCTYPE html>")
    assert json.loads(run("graph", DOI, "--format", "html", "--json").out)["ref"] == DOI, "--json is always the answer"
    wrong = run("graph", DOI, "--format", "png", "--json")
    assert (wrong.rc, wrong.json()["error"]["code"]) == (2, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "wrong", [{"depth": 0}, {"depth": 4}, {"depth": "x"}, {"max_refs": 101}, {"max_refs": 0}, {"direction": "up"}]
)
def test_wrong_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.check_arguments(doiget.OPERATIONS["graph"], {"ref": DOI} | wrong)
    assert caught.value.code.value == "INVALID_ARGUMENT"


def test_the_tool_over_mcp(serve: Callable[..., Any], world: World) -> None:  # noqa: F811 - the fixture
    small(world)
    session = serve()
    answer = session.call("expand_citation_graph", ref=DOI, depth="1", max_refs=4, direction="both")
    check(answer)
    assert len(answer["nodes"]) == 4
    assert session.fail("expand_citation_graph", ref=DOI, format="html")["code"] == "INVALID_ARGUMENT"
    assert session.fail("expand_citation_graph", ref="10.9999/none")["code"] == "NOT_FOUND"
    assert session.fail("expand_citation_graph", ref="nothing at all")["code"] == "INVALID_REF"
    assert session.fail("expand_citation_graph", ref=DOI, depth=4)["code"] == "INVALID_ARGUMENT"


# ############################################################################
# Directions, limits, cycles
# ############################################################################


def test_each_direction_alone(bench: Bench, world: World) -> None:
    small(world)
    back, on = bench(direction="references"), bench(direction="citations")
    assert refs(back) == [DOI, "10.1000/old.b", "10.1000/old.a"]
    assert refs(on) == [DOI, "10.1000/new.a", "10.1000/new.b"]
    bench.net.clear()
    assert set(refs(bench())) == {*refs(back), *refs(on)}
    assert not bench.net.requests(), "both directions were asked before, one at a time"


def test_the_twenty_most_cited(bench: Bench, world: World) -> None:
    """Of more than 20 neighbours in a direction the most cited are followed, and it is said that there are more."""
    cited, citing = numbered("old", 30), numbered("new", 25)
    for n, doi in enumerate(cited):
        world.citing_work(doi, cited_by=n)
    world.citing_work(DOI, cited)
    for n, doi in enumerate(citing):
        world.citing_work(doi, [DOI], cited_by=n)
    answer = bench(max_refs=100)
    assert set(refs(answer)) == {DOI, *cited[10:], *citing[5:]}
    assert answer["truncated"]
    assert answer["warnings"] == ["Of each work only the 20 most cited neighbours are shown."]
    few = bench(max_refs=7)
    assert refs(few) == [DOI, cited[29], citing[24], cited[28], citing[23], cited[27], citing[22]], "both sides in turn"
    assert few["truncated"]
    assert any("max_refs" in text for text in few["warnings"])
    assert refs(bench(max_refs=1)) == [DOI]


def test_cycles_self_citations_and_doubles(bench: Bench, world: World) -> None:
    loop = [DOI, "10.1000/b", "10.1000/c"]
    world.citing_work(DOI, [DOI, "10.1000/b", "10.1000/B", "10.1000/b"])
    world.citing_work("10.1000/b", ["10.1000/c"])
    world.citing_work("10.1000/c", [DOI])
    answer = bench(depth=3)
    assert sorted(refs(answer)) == sorted(loop)
    assert pairs(answer) == {(DOI, "10.1000/b"), ("10.1000/b", "10.1000/c"), ("10.1000/c", DOI)}
    assert not answer["truncated"]


def test_three_steps_deep(bench: Bench, world: World) -> None:
    chain = [f"10.1000/step.{n}" for n in range(6)]
    for here, there in zip(chain, [*chain[1:], None], strict=True):
        world.citing_work(here, [there] if there else [])
    for depth in (1, 2, 3):
        answer = bench(chain[0], depth=depth, direction="references")
        assert [(node["ref"], node["depth"]) for node in answer["nodes"]] == list(
            zip(chain, range(depth + 1), strict=False)
        )
        assert not answer["truncated"]
    middle = bench(chain[2], depth=1)
    assert pairs(middle) == {(chain[1], chain[2]), (chain[2], chain[3])}


def web(world: World, works: int = 300, each: int = 30) -> list[str]:
    """A dense literature in which every work cites `each` earlier ones."""
    dois, random = [f"10.1000/web.{n:03}" for n in range(works)], Random(1)
    for n, doi in enumerate(dois):
        cites, date = random.sample(dois[:n], min(each, n)), f"{1950 + n // 5}-02-03"
        world.citing_work(doi, cites, cited_by=works - n, title=f"Work {n}", date=date)
    return dois


def test_a_hundred_works_cost_few_requests(bench: Bench, world: World) -> None:
    dois = web(world)
    cost = {}
    for depth in (1, 2, 3):
        bench.net.clear()
        answer = bench(dois[150], depth=depth, max_refs=100, cache=False)
        cost[depth] = len(bench.net.requests())
        assert len(answer["nodes"]) == (41 if depth == 1 else 100)
    assert cost[1] <= 5
    assert max(cost.values()) <= 15, cost


def test_a_sparse_literature_stops_at_the_limit_of_requests(bench: Bench, world: World) -> None:
    """Where every work adds little, the walk ends at 25 requests and says so, and does not keep half an answer."""
    dois = [f"10.1000/sparse.{n}" for n in range(2000)]
    for n, doi in enumerate(dois):  # each cites five works that nobody else cites
        world.citing_work(doi, dois[5 * n + 1 : 5 * n + 6])
    answer = bench(dois[0], depth=3, max_refs=100)
    assert len(bench.net.requests()) <= 25
    assert len(answer["nodes"]) > 20
    assert answer["truncated"]


def test_the_answer_fits_however_long_its_texts(bench: Bench, world: World) -> None:
    long = [f"10.1000/{'x' * 200}.{n:02}" for n in range(40)]
    for n, doi in enumerate(long):
        world.citing_work(doi, long[:n] if n < 20 else [DOI, *long[:20]], title="漢字" * 500)
    world.citing_work(DOI, long[:20], title="T" * 1000)
    answer = bench(max_refs=100)
    assert len(answer["nodes"]) == 41
    assert len(answer["nodes"][0]["title"]) <= 200
    assert answer["truncated"]
    assert any("citations among these works are shown" in text for text in answer["warnings"])


# ############################################################################
# Names
# ############################################################################


def test_works_are_named_by_doi_arxiv_or_pmid(bench: Bench, world: World) -> None:
    add = world.openalex.add
    works = [
        add("10.48550/arXiv.2401.00001", title="An arXiv DOI", xpac=True),
        add(None, title="Known by a PMID", pmid="12345678"),
        add(None, title="Known by a PMCID", pmcid="PMC7654321"),
        add(None, title="Known to OpenAlex alone", work_id="W77"),
        add(None, title="Neither", work_id="W78"),
        add("10.1101/2020.01.02.123456", title="A preprint", is_retracted=True),
    ]
    page = {"is_oa": True, "landing_page_url": "http://arxiv.org/abs/1706.03762", "pdf_url": None, "source": None}
    works.append(add(None, title="Only an arXiv page", work_id="W79", locations=[]) | {"locations": [page]})
    world.openalex.put(works[-1])
    world.openalex.add(DOI, references=[work["id"].rpartition("/")[2] for work in works] + ["W404404"])
    world.crossref_work(DOI)
    answer = bench(direction="references")
    assert set(refs(answer)) == {
        DOI, "arXiv:2401.00001", "arXiv:1706.03762", "pmid:12345678", "PMC7654321", "10.1101/2020.01.02.123456",
    }  # fmt: skip
    assert [node["ref"] for node in answer["nodes"] if node["retracted"]] == ["10.1101/2020.01.02.123456"]
    assert answer["warnings"] == ["3 works without DOI, arXiv id or PMID are left out."]
    assert not answer["truncated"]
    assert "a0" not in doiget.render_html(answer).split("pmid:12345678")[0][-300:]
    links = re.findall(r'href="([^"]*)"', doiget.render_html(answer))
    assert links
    assert all(re.match(r"https://(doi\.org/10\.|arxiv\.org/abs/\d)", link) for link in links)


def test_an_arxiv_paper_and_the_article_it_became_are_one(bench: Bench, world: World) -> None:
    world.arxiv_paper("2401.12345", versions=2, title="The preprint", doi="10.1000/article")
    world.citing_work("10.1000/article", ["10.1000/old"], title="The article")
    world.citing_work("10.1000/old", title="Old")
    preprint = world.openalex.works[w_id("10.48550/arXiv.2401.12345")]["id"].rpartition("/")[2]
    world.openalex.add("10.1000/cites.preprint", references=[preprint])
    world.openalex.add("10.1000/cites.article", references=[w_id("10.1000/article")])
    answer = bench("arXiv:2401.12345v2")
    assert answer["ref"] == "arXiv:2401.12345"
    assert set(refs(answer)) == {"arXiv:2401.12345", "10.1000/old", "10.1000/cites.preprint", "10.1000/cites.article"}
    bench.net.clear()
    assert bench("https://arxiv.org/abs/2401.12345") == answer
    assert not bench.net.requests()


def test_a_pmid_is_walked_by_its_doi(bench: Bench, world: World) -> None:
    small(world)
    world.pubmed_paper("11111", doi=DOI)
    answer = bench("pmid:11111")
    assert (answer["ref"], len(answer["nodes"])) == (DOI, 5)
    bench.net.clear()
    assert bench("pmid:11111") == answer
    assert not bench.net.requests()


def test_an_odd_doi_goes_through_every_request(bench: Bench, world: World, net: FakeInternet) -> None:
    odd = "10.1002/(sici)1096-8644(1996)23+<91::aid,ajpa|4>3.0.co;2-c"
    world.citing_work(odd, ["10.1000/old", "10.1002/(sici)1(1996)2:3<4::aid-5>3.0.co;2-6"], title="Odd")
    world.citing_work("10.1000/old")
    world.citing_work("10.1000/new", [odd])
    answer = bench(odd)
    assert len(answer["nodes"]) == 4
    assert {odd, "10.1000/old", "10.1000/new"} < set(refs(answer))
    assert answer["nodes"][0]["title"] == "Odd"
    assert {request.path for request in net.requests(CROSSREF)} >= {f"/works/{doiget.quote_doi(odd)}"}


def test_in_store(run: Runner, world: World) -> None:
    small(world)
    paper = world.paper("10.1000/old.a", title="Old A")
    world.citing_work(DOI, ["10.1000/old.a"])
    assert run("fetch", paper.doi).rc == 0
    answer = run("graph", DOI, "--json", "--direction", "references").json()
    assert {node["ref"]: node["in_store"] for node in answer["nodes"]} == {DOI: False, "10.1000/old.a": True}


def test_stored_arxiv_versions_count(tmp_path: Path) -> None:
    for name in ("arxiv_2401.12345v3.pdf", "doi_10.1000_x.pdf", "arxiv_math_0309136.pdf", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    keys = doiget.stored_keys(doiget.Store(tmp_path, None))
    assert keys == {"arxiv_2401.12345", "doi_10.1000_x", "arxiv_math_0309136"}
    assert doiget.safekey(doiget.parse_ref("math/0309136")) in keys


def test_retracted_by_crossref(bench: Bench, world: World) -> None:
    world.citing_work(DOI, title="Bad", updated_by=[update("10.1000/notice")])
    world.citing_work("10.1000/new", [DOI])
    answer = bench()
    assert answer["nodes"][0]["retracted"] is True
    assert "RETRACTED" in doiget.render_graph(answer)


# ############################################################################
# Sources that fail or know nothing
# ############################################################################


def test_without_openalex_the_others_answer(bench: Bench, world: World, net: FakeInternet) -> None:
    """Crossref has the references and the titles, OpenCitations who cites; each in few requests, nothing is kept."""
    small(world)
    world.opencitations.add("10.1000/new.a", DOI, "2015-02")
    world.opencitations.add("10.1000/new.b", DOI, "2016")
    net.route(OPENALEX, None, 403)
    answer = bench()
    assert {node["ref"]: node["title"] for node in answer["nodes"]} == {
        DOI: "The root", "10.1000/old.a": "Old A", "10.1000/old.b": "Old B", "10.1000/new.a": "New A",
        "10.1000/new.b": "New B",
    }  # fmt: skip
    assert any("OpenAlex could not be asked" in text for text in answer["warnings"])
    assert len(net.requests(CROSSREF)) <= 4
    assert {request.decoded_path for request in net.requests(OPENCITATIONS)} == {f"/index/v2/citations/doi:{DOI}"}
    net.route(OPENALEX, None, world.openalex.answer)
    net.clear()
    assert bench()["warnings"] == []
    assert net.requests(OPENALEX), "what was asked with a source down is not kept"


def test_without_crossref_openalex_answers(bench: Bench, world: World, net: FakeInternet) -> None:
    small(world)
    net.route(CROSSREF, None, seq(block_page()))
    answer = bench()
    assert len(answer["nodes"]) == 5
    assert [text for text in answer["warnings"] if "Crossref could not be asked (intercepted)" in text]
    assert not answer["truncated"]


@pytest.mark.parametrize("mood", [403, "page", pytest.param("reset", marks=pytest.mark.long)])
def test_all_down_is_an_error_and_never_an_empty_graph(
    bench: Bench, world: World, net: FakeInternet, mood: Any
) -> None:
    small(world)
    answers = {"page": block_page(), "reset": Reply(reset=True)}
    for host in (CROSSREF, OPENALEX, OPENCITATIONS, "doi.org", "api.datacite.org"):
        net.route(host, None, answers.get(mood, mood))
    error = bench.fails(cache=False)
    assert error.code.value == "NETWORK_ERROR", error
    net.route(CROSSREF, None, world.crossref.answer)
    assert bench.fails(direction="citations").code.value == "NETWORK_ERROR", "Crossref does not know who cites"


def test_the_network_down(run: Runner, net: FakeInternet) -> None:
    result = run("graph", DOI, "--json", env={"HTTPS_PROXY": net.dead_proxy_url})
    assert (result.rc, result.json()["error"]["code"]) == (8, "NETWORK_ERROR")


def test_not_found_is_the_registrys_word(bench: Bench, world: World, net: FakeInternet) -> None:
    del world
    assert bench.fails("10.9999/none").code.value == "NOT_FOUND"
    assert bench.fails("arXiv:2401.99999").code.value == "NOT_FOUND"
    net.route(OPENALEX, None, 403)
    assert bench.fails("10.9999/none").code.value == "NOT_FOUND"
    net.route("doi.org", None, 403)
    net.route("api.datacite.org", None, 403)
    assert bench.fails("10.9999/none", cache=False).code.value == "NETWORK_ERROR"


def test_works_of_other_agencies(bench: Bench, world: World) -> None:
    """Known to nobody here but its registry: a graph of one, with its title; OpenCitations is asked as well."""
    world.agency_work("10.5555/jalc", title="論文")
    world.opencitations.add("10.1000/new", "10.5555/jalc")
    world.datacite_work("10.5281/zenodo.7", title="Data")
    answer = bench("10.5555/jalc")
    assert [(node["ref"], node["title"]) for node in answer["nodes"]] == [
        ("10.5555/jalc", "論文"),
        ("10.1000/new", None),
    ]
    alone = bench("10.5281/zenodo.7")
    assert (refs(alone), alone["nodes"][0]["title"], alone["truncated"]) == (["10.5281/zenodo.7"], "Data", False)


def test_references_unknown_to_openalex_get_titles_from_crossref(bench: Bench, world: World) -> None:
    cited = numbered("fresh", 30)
    for doi in cited:
        world.crossref_work(doi, title=f"Title of {doi}")
    world.crossref_work(DOI, references=[*cited, "10.9999/gone"])
    world.openalex.add(DOI)
    answer = bench(direction="references")
    assert refs(answer)[1:] == cited[:20], "equally unknown: in the order of the list"
    assert all(node["title"] for node in answer["nodes"])
    assert len(bench.net.requests()) <= 5


def test_opencitations_where_openalex_has_nothing(bench: Bench, world: World) -> None:
    world.citing_work(DOI)
    world.opencitations.add(DOI, "omid:br/061 doi:10.1000/old pmid:5", "2010")
    world.opencitations.add(DOI, "omid:br/062 pmid:4242424", "2010")
    world.opencitations.add(DOI, "omid:br/063", "2010")
    world.opencitations.add("10.1000/new", DOI)
    assert set(refs(bench())) == {DOI, "10.1000/old", "pmid:4242424", "10.1000/new"}
    assert len(bench.net.requests(OPENCITATIONS)) == 2


@pytest.mark.parametrize("doi", ["10.1000/a/../../../meta", "10.1000/../x", "10.1000/./x"])
def test_a_doi_cannot_climb_out_of_its_place(bench: Bench, world: World, doi: str) -> None:
    """OpenCitations takes a DOI as it is, slashes and all; dot segments would end elsewhere."""
    world.citing_work(doi)
    assert refs(bench(doi)) == [doi]
    assert bench.net.requests(OPENCITATIONS) == []


def test_rejected_batches_are_not_asked_for_without_end(bench: Bench, world: World, net: FakeInternet) -> None:
    cited = numbered("old", 90)
    world.citing_work(DOI, cited)
    for doi in cited:
        world.crossref_work(doi, title=f"Title of {doi}")
    net.route(OPENALEX, None, 400)
    answer = bench()
    assert refs(answer)[1:] == cited[:20]
    assert all(node["title"] for node in answer["nodes"])
    assert len(net.requests()) <= 25
    net.route(CROSSREF, "/works", 400)
    net.clear()
    assert refs(bench(cache=False))[1:] == cited[:20]
    assert len(net.requests()) <= 30


def test_an_alias_is_walked_as_what_it_stands_for(bench: Bench, world: World) -> None:
    small(world)
    world.crossref.alias("10.1000/alias", DOI)
    answer = bench("10.1000/alias", direction="references")
    assert set(refs(answer)) == {"10.1000/alias", "10.1000/old.a", "10.1000/old.b"}
    assert answer["nodes"][0]["title"] == "The root"


def test_a_source_that_hangs_leaves_time_for_the_others(bench: Bench, world: World, net: FakeInternet) -> None:
    small(world)
    world.opencitations.add("10.1000/new.a", DOI)
    net.route(OPENALEX, None, never())
    answer = bench(timeout_s=1.5)
    assert set(refs(answer)) == {DOI, "10.1000/old.a", "10.1000/old.b", "10.1000/new.a"}
    assert any("OpenAlex could not be asked" in text for text in answer["warnings"])


def test_the_deadline_gives_what_was_found(bench: Bench, world: World, net: FakeInternet) -> None:
    """The second step hangs; the first one is the answer."""
    small(world)
    answers = world.openalex.answer
    known = {DOI, "10.1000/old.a", "10.1000/old.b", "10.1000/new.a", "10.1000/new.b"}
    slow = re.compile("|".join(f"cites%3A{w_id(doi)}|cites:{w_id(doi)}" for doi in known - {DOI}))
    net.route(OPENALEX, None, lambda request: never() if slow.search(request.target) else answers(request))
    for host in (CROSSREF, OPENCITATIONS):
        calls = {CROSSREF: world.crossref.answer, OPENCITATIONS: world.opencitations.answer}
        net.route(host, None, seq(calls[host], calls[host] if host == CROSSREF else never(), never()))
    answer = bench(depth=2, timeout_s=2.0)
    assert set(refs(answer)) == known
    assert answer["truncated"]
    assert any("could not be asked" in text or "ran out" in text for text in answer["warnings"])
    for host in (CROSSREF, OPENALEX, OPENCITATIONS, "doi.org"):
        net.route(host, None, never())
    assert bench.fails("10.1000/other", timeout_s=0.5).code.value in {"FETCH_TIMEOUT", "NETWORK_ERROR"}


# ############################################################################
# The cache
# ############################################################################


def test_kept_for_thirty_days(bench: Bench, world: World, net: FakeInternet) -> None:
    small(world)
    answer, began = bench(depth=2), bench.now[0]
    for days, asks in ((29, False), (31, True)):
        net.clear()
        bench.now[0] = began + days * 86400
        assert bench(depth=2) == answer
        assert bool(net.requests()) is asks
    bench.now[0] += 31 * 86400
    net.clear()
    offline = bench(depth=2, offline=True)
    assert (offline["nodes"], offline["edges"]) == (answer["nodes"], answer["edges"])
    assert offline["warnings"] == ["Part of this is an older answer from the cache."]
    for host in (CROSSREF, OPENALEX, OPENCITATIONS):
        net.route(host, None, 403)
    stale = bench()
    assert len(stale["nodes"]) == 5, "nobody can be asked: the older answer, and it says so"
    assert any("older answer" in text for text in stale["warnings"])
    assert bench.fails(refresh=True).code.value == "NETWORK_ERROR"
    assert bench.fails("10.1000/never.asked", offline=True).reason == "offline"


def test_half_a_cache_offline_is_a_part_of_the_graph(bench: Bench, world: World) -> None:
    small(world)
    bench(direction="references")
    answer = bench(depth=2, offline=True)
    assert refs(answer) == [DOI, "10.1000/old.b", "10.1000/old.a"]
    assert answer["truncated"]
    assert any("(offline)" in text for text in answer["warnings"])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_entry_of_the_cache_is_read_or_passed_over(data: Any) -> None:
    """Whatever somebody wrote there: a graph or an error of ours, and no text of it without cleaning."""
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["10.1/x", "W1", DOI]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
            st.sampled_from(["ref", "aliases", "title", "year", "cites", "cited_by", "retracted"]), inner, max_size=7),
        max_leaves=12,
    )  # fmt: skip
    work = doiget.read_cited(data.draw(junk))
    assert work is None or (doiget.parse_ref(work.ref) and isinstance(work.cited_by, int))
    if work:
        again = doiget.parse_toml(doiget.render_toml(doiget.asdict(work)))
        assert doiget.read_cited(again) == work


def test_damaged_entries_are_asked_for_anew(bench: Bench, world: World) -> None:
    small(world)
    answer = bench()
    for path in (bench.folder / "cache" / "graph").rglob("*.toml"):
        path.write_text("version = 1\nnot toml", encoding="utf-8")
    assert bench() == answer


# ############################################################################
# What the sources send
# ############################################################################


def test_recorded_bodies(shared: Path) -> None:
    """Every recorded body of the three sources reads; counts taken from the bodies themselves."""
    folder, works, cites = shared / "recorded", 0, 0
    for path in (folder / "openalex").glob("W*.json"):
        item = json.loads(path.read_text(encoding="utf-8"))
        work = doiget.parse_cited_openalex(item)
        assert work.aliases == (path.stem,)
        assert len(work.cites) == min(len(set(item["referenced_works"])), doiget.MAX_CITES)
        assert work.ref == (str(doiget.parse_ref(item["doi"])) if item["doi"] else None) or work.ref.startswith(
            "arXiv:"
        )
        works += 1
    assert works == 40
    for path in (folder / "crossref" / "works").glob("*.json"):
        message = json.loads(path.read_text(encoding="utf-8"))["message"]
        work = doiget.parse_cited_crossref(message)
        named = {ref["DOI"].lower() for ref in message.get("reference") or [] if "DOI" in ref}
        assert len(work.cites) <= len(named)
        assert len(work.cites) >= min(len(named), doiget.MAX_CITES) - 2, path.name
        cites += len(work.cites)
    assert cites > 1500
    citing = json.loads((folder / "opencitations" / "coci-citations-10.1108__jd-12-2013-0166.json").read_text())
    cited = json.loads((folder / "opencitations" / "coci-references-10.1108__jd-12-2013-0166.json").read_text())
    assert set(doiget.parse_opencitations(citing, "citing")) == {row["citing"] for row in citing}
    assert set(doiget.parse_opencitations(cited, "cited")) == {row["cited"] for row in cited}
    assert doiget.parse_opencitations(citing, "cited") == ["10.1108/jd-12-2013-0166"]
    for path in (folder / "opencitations").glob("*.json"):
        doiget.parse_opencitations(json.loads(path.read_text()), "citing")
    for path in (folder / "openalex" / "list").glob("*.json"):
        body = json.loads(path.read_text(encoding="utf-8"))
        assert all(doiget.parse_cited_openalex(item) for item in body["results"])


FIELDS = words(
    "id doi ids title DOI reference is_retracted referenced_works cited_by_count locations citing cited creation meta "
    "results publication_year issued pmid"
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(sorted(FIELDS)), inner, max_size=6),
    max_leaves=20,
)


@given(JSON_VALUES)
@settings(max_examples=100, deadline=None)
def test_parsers_take_any_json(value: Any) -> None:
    for parse in (doiget.parse_cited_openalex, doiget.parse_cited_crossref):
        work = parse(value)
        assert work is None or all(isinstance(key, str) for key in work.cites)
    with contextlib.suppress(doiget.DoigetError):
        assert all(map(doiget.parse_ref, doiget.parse_opencitations(value, "citing")))


@given(st.sampled_from(["results", "meta", "id"]), JSON_VALUES)
@settings(max_examples=25, deadline=None)
def test_any_answer_of_openalex_ends_in_a_graph_or_an_error(tmp_path_factory: Any, name: str, value: Any) -> None:
    with FakeInternet() as net:
        world = World(net)
        small(world)
        body = {"meta": {"count": 1}, "results": [{"id": "https://openalex.org/W1", "doi": f"https://doi.org/{DOI}"}]}
        net.route(OPENALEX, None, lambda _: body | {name: value})
        answer = Bench(net, tmp_path_factory.mktemp("any"))(cache=False)
        assert DOI in refs(answer)


# ############################################################################
# DOT
# ############################################################################

HOSTILE = [
    "</script><script>document.title='X'</script>",
    "</title></style></svg></textarea><img src=x onerror=document.title='X'>",
    "javascript:document.title='X'",
    "<svg/onload=document.title='X'> <![CDATA[ ]]> --> <!--",
    "\" onfocus=\"document.title='X'\" autofocus x='",
    "{{data}} {{style}} ${document.title='X'} `\\`",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    'back\\slash \\" quote \\N \\G \\',
    "W" * 1000,
    "深層学習入門 " * 30,
    "&lt;img src=x onerror=alert(1)&gt; &amp;",
    "@import url(https://evil.example/x.css); url(//evil.example)",
]


def hostile(*, count: int = 0) -> dict[str, Any]:
    """An answer whose titles are as hostile as they can be: the renderers get them raw, without any cleaning."""
    titles = HOSTILE + [f"Ordinary title number {n} of some length" for n in range(count)]
    nodes = [
        {"ref": DOI if not n else f"10.1000/'\"><b>{n}</b>&\\" if n % 2 else f"pmid:{n}", "title": title,
         "year": 2000 + n % 20, "depth": min(n, 1) + (n > 40), "in_store": n % 3 == 1, "retracted": n % 5 == 2}
        for n, title in enumerate(titles)
    ]  # fmt: skip
    edges = [{"citing": DOI, "cited": node["ref"]} for node in nodes[1:41:2]]
    edges += [{"citing": node["ref"], "cited": DOI} for node in nodes[2:41:2]]
    edges += [{"citing": node["ref"], "cited": nodes[1 + n % 40]["ref"]} for n, node in enumerate(nodes[41:])]
    warnings = ["</script><img src=x onerror=document.title='X'>"]
    return {"ok": True, "ref": DOI, "nodes": nodes, "edges": edges, "truncated": False, "warnings": warnings}


def dot_tokens(text: str) -> list[str]:
    """Take DOT apart as its lexer does: strings, names, punctuation; anything else is an error."""
    token = re.compile(r'\s+|("(?:[^"\\]|\\.)*")|([A-Za-z_0-9.]+)|(->|[{}\[\]=,;])', re.DOTALL)
    found, at = [], 0
    while at < len(text):
        match = token.match(text, at)
        assert match, text[at : at + 80]
        found += [match[0]] if match[0].strip() else []
        at = match.end()
    return found


def test_dot_survives_hostile_titles() -> None:
    answer = hostile()
    text = doiget.render_dot(answer)
    tokens = dot_tokens(text)
    assert tokens.count("->") == len(answer["edges"])
    assert tokens.count("label") == len(answer["nodes"])
    labels = [tokens[n + 2] for n, token in enumerate(tokens) if token == "label"]
    for label in labels:  # every backslash inside stands for itself, a quote, or the one line break
        assert re.fullmatch(r'"(?:[^"\\]|\\\\|\\"|\\n)*"', label), label
    assert len(text.splitlines()) == len(answer["nodes"]) + len(answer["edges"]) + 4


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_one_dot_string(text: str) -> None:
    assert len(dot_tokens(doiget._dot(text))) == 1


@pytest.mark.skipif(not shutil.which("dot"), reason="needs Graphviz")
def test_graphviz_reads_it() -> None:
    done = subprocess.run(
        ["dot", "-Tdot"], input=doiget.render_dot(hostile()), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


# ############################################################################
# The page
# ############################################################################


class Tags(html.parser.HTMLParser):
    """Every tag of a page with its attributes, and the text of the list."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.titles: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.titles += [""] if tag == "bdi" else []

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "bdi":
            self.titles[-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "bdi":
            self.tags.append(("/bdi", {}))


def check_page(text: str, answer: dict[str, Any]) -> None:
    """What the page's source promises: few kinds of tags, no handlers, only our links, the texts as text."""
    page = Tags(text)
    kinds = {tag for tag, _ in page.tags} - {"/bdi"}
    assert kinds <= words(
        "html head meta title style body header h1 h2 p ul li main div svg marker path g a rect text ol bdi span script"
    )
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in {"src", "style", "srcset"}], tag
        if href := attributes.get("href"):
            assert re.fullmatch(
                r"https://(doi\.org/10\.\d{4,9}/[A-Za-z0-9%._~-]+|arxiv\.org/abs/[A-Za-z0-9./-]+)", href
            )
            assert attributes["rel"] == "noreferrer noopener"
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert page.titles[1:] == [node["title"] or "[no title]" for node in answer["nodes"]]
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert block
    assert not re.search("[<>&\u2028\u2029]", block[1])
    data = json.loads(block[1])
    assert (len(data["nodes"]), len(data["edges"])) == (len(answer["nodes"]), len(answer["edges"]))
    policy = re.search(r'content="(default-src[^"]*)"', text)
    assert policy
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-\S{44}'; script-src 'sha256-\S{44}'; base-uri 'none'; "
                        r"form-action 'none'", policy[1])  # fmt: skip


def test_the_source_of_the_page() -> None:
    answer = hostile(count=88)
    text = doiget.render_html(answer)
    check_page(text, answer)
    assert doiget.render_html(answer) == text
    assert len(text) < 250_000


TEXTS = st.text(max_size=40) | st.sampled_from(HOSTILE)


@given(st.lists(TEXTS, min_size=1, max_size=6), st.text(min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_titles_make_a_sound_page(titles: list[str], suffix: str) -> None:
    nodes = [
        {"ref": f"10.1000/{n}{suffix}", "title": re.sub(r"[\r\0]", " ", title), "year": None, "depth": min(n, 1),
         "in_store": False, "retracted": False}
        for n, title in enumerate(titles)
    ]  # fmt: skip
    edges = [{"citing": nodes[0]["ref"], "cited": node["ref"]} for node in nodes[1:]]
    answer = {"ref": nodes[0]["ref"], "nodes": nodes, "edges": edges, "truncated": True, "warnings": titles}
    text = doiget.render_html(answer).encode("utf-8", "replace").decode()
    assert sum(tag in {"script", "style"} for tag, _ in Tags(text).tags) == 3


@given(st.integers(1, 100), st.randoms())
@settings(max_examples=50, deadline=None)
def test_boxes_never_overlap(count: int, random: Any) -> None:
    depths = sorted(random.randint(1, 3) for _ in range(count - 1))
    nodes = [{"depth": depth} for depth in (0, *depths)]
    links = {(random.randrange(count), random.randrange(count)) for _ in range(count * 2)}
    places = doiget.place_nodes(nodes, links)
    assert len(places) == len(set(places)) == count
    for x, y in places:
        assert not [
            p for p in places if p != (x, y) and abs(p[0] - x) < doiget._BOX[0] and abs(p[1] - y) < doiget._BOX[1]
        ]


# ---- in a browser ----

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_chromium = pytest.mark.skipif(not CHROMIUM or os.name != "posix", reason="needs Chromium")
FLAGS = words(
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe --window-size=1400,900"
)


class Browser:
    """Headless Chromium, spoken to through its debugging pipe; every event is kept."""

    def __init__(self, folder: Path) -> None:
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()

        def wire() -> None:  # the browser reads at 3 and writes at 4
            ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser, from_browser)]
            for fd, end in zip((3, 4), ends, strict=True):
                os.dup2(end, fd)

        command = [CHROMIUM or "", *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        null = subprocess.DEVNULL
        self.process = subprocess.Popen(command, preexec_fn=wire, pass_fds=(3, 4), stdout=null, stderr=null)  # noqa: PLW1509 - no threads yet
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.count, self.events, self.session = b"", 0, list[dict[str, Any]](), ""
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime", "DOM"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while (reply := self.next()).get("id") != self.count:
            self.events.append(reply)
        assert "error" not in reply, reply
        return reply["result"]

    def next(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            piece = os.read(self.read, 1 << 20)
            assert piece, "the browser is gone"
            self.buffer += piece
        line, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, path: Path, *, scripts: bool = True) -> None:
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.ask("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.next())

    def value(self, expression: str) -> Any:
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}[key]
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def complaints(self) -> list[Any]:
        """What the console said (violations of the policy among it), and every request but the one for the page."""
        kinds = (
            "Log.entryAdded",
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Page.javascriptDialogOpening",
        )
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        said = [event["params"] for event in self.events if event.get("method") in kinds]
        return said + [url for url in asked if not url.startswith("file:") or not url.endswith(".html")]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@needs_chromium
def test_nothing_runs_and_nothing_is_asked(browser: Browser, tmp_path: Path) -> None:
    """The real browser: texts stay texts, no violation of the policy, no request, with scripts and without."""
    answer = hostile(count=88)
    path = tmp_path / "graph.html"
    path.write_text(doiget.render_html(answer), encoding="utf-8")
    for scripts in (True, False):
        browser.open(path, scripts=scripts)
        assert browser.complaints() == []
        assert browser.value("document.title") == f"Citations: {answer['nodes'][0]['title']}"
        shown = browser.value("[...document.querySelectorAll('ol bdi')].map(e => e.textContent)")
        assert shown == [node["title"] for node in answer["nodes"]]
        links = browser.value(
            "[...document.links, ...document.querySelectorAll('svg a[href]')].map(e => e.getAttribute('href'))"
        )
        assert links
        assert {link[:19] for link in links} == {"https://doi.org/10."}
        assert browser.value("document.querySelectorAll('img, iframe, object, link, form, base').length") == 0
        assert browser.value("document.querySelectorAll('script').length") == 2
        assert browser.value("document.querySelectorAll('.graph .node rect').length") == 100
        assert browser.value("[...document.querySelectorAll('*')].filter(e => [...e.attributes].some("
                             "a => a.name.startsWith('on'))).length") == 0  # fmt: skip
        assert browser.value("document.querySelector('.graph').scrollLeft > 0") is scripts, "our own script runs"
    browser.open(path)
    browser.value("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = 1'}))")
    assert browser.value("document.title") != "1", "the policy holds against what a title might have brought in"


@needs_chromium
def test_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    """Tab goes through the nodes in order, arrows to the nearest in their direction; a focused node tells of itself."""
    answer = hostile(count=10)
    path = tmp_path / "keys.html"
    path.write_text(doiget.render_html(answer), encoding="utf-8")
    browser.open(path)
    here = "[...document.querySelectorAll('.node')].indexOf(document.activeElement)"
    browser.press("Tab")
    assert browser.value(here) in {0, -1}
    while browser.value(here) != 0:  # a scrolling box may take the focus first
        browser.press("Tab")
    assert browser.value("document.getElementById('about').textContent").startswith(answer["nodes"][0]["title"])
    assert browser.value("getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth") == "3px"
    assert browser.value("document.querySelectorAll('.edge.lit').length") == len(answer["edges"])
    browser.press("Tab")
    assert browser.value(here) == 1
    browser.press("ArrowRight")
    assert browser.value(here) == 0, "from what it cites back to the first work"
    browser.press("ArrowRight")
    right = browser.value(here)
    assert answer["nodes"][right]["ref"] in {edge["citing"] for edge in answer["edges"]} - {DOI}
    browser.press("ArrowDown")
    assert browser.value(here) not in {right, -1}
    assert browser.complaints() == []
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(18, 18, 18)"
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.value("getComputedStyle(document.getElementById('about')).display") == "none"
    browser.ask("Emulation.setEmulatedMedia", media="", features=[])
