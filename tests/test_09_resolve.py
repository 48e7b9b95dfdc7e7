"""Resolving through the fake internet: each source asked when it should be, none asked when it should not."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from fake_internet import Reply, endless, html, never, pdf, redirect, seq
from worlds import AGENCY_HOSTS, ATOM_HEAD, DROP, Location, block_page, crossref_message, pdf_bytes, sha256, update

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conftest import Home, Result, Runner
    from fake_internet import FakeInternet
    from worlds import Json, World

DOI = "10.1000/fake.1"
EMAIL = "reader@library.example"
LONG = pytest.mark.long
CROSSREF, DATACITE, OPENALEX = "api.crossref.org", "api.datacite.org", "api.openalex.org"
ARXIV, UNPAYWALL, EUROPEPMC = "export.arxiv.org", "api.unpaywall.org", "www.ebi.ac.uk"
EUTILS, IDCONV, DOI_ORG = "eutils.ncbi.nlm.nih.gov", "pmc.ncbi.nlm.nih.gov", "doi.org"
METADATA_HOSTS = {CROSSREF, DATACITE, OPENALEX, ARXIV, UNPAYWALL, EUROPEPMC, EUTILS, IDCONV, DOI_ORG} | {
    url.split("/")[2] for url in AGENCY_HOSTS.values()
}


def resolve(run: Runner, *words: str, **how: Any) -> Result:
    """Run `resolve --json` and check what holds for every resolve: no host but the APIs is ever tried."""
    result = run("resolve", *words, "--json", **how)
    assert run.net.connect_hosts() <= METADATA_HOSTS, run.net.text()
    assert not run.net.requests(ARXIV, "/pdf/"), "a resolve asked for a PDF"
    return result


def resolved(run: Runner, *words: str, **how: Any) -> Any:
    """The answer of a resolve that must succeed."""
    result = resolve(run, *words, **how)
    answer = result.json()
    assert answer["ok"] is True, result
    assert result.rc == 0
    return answer


def refused(run: Runner, code: str, *words: str, **how: Any) -> Any:
    """The error of a resolve that must fail with `code`."""
    result = resolve(run, *words, **how)
    answer = result.json()
    assert answer["ok"] is False, result
    assert answer["error"]["code"] == code, answer
    assert result.rc != 0
    return answer["error"]


def asked(net: FakeInternet) -> list[str]:
    return sorted(request.host for request in net.requests())


def warned(answer: Any, *words: str) -> bool:
    """Whether one of the warnings holds all the words."""
    return any(all(word.lower() in text.lower() for word in words) for text in answer["warnings"])


def cached(home: Home) -> list[Path]:
    return sorted((home.cache / "resolver").glob("*.toml"))


def records(run: Runner, refs: Sequence[str]) -> dict[str, Json]:
    """Resolve many refs in one process (`batch` begins so) and read the records it keeps in its cache.

    The fetching that follows is of no interest here: the process is stopped once the cache holds all refs.
    """
    paths = {ref: run.home.cache / "resolver" / f"{doiget.safekey(doiget.parse_ref(ref))}.toml" for ref in refs}
    process = run.spawn("batch", *refs, "--json")
    deadline = time.monotonic() + 60
    while not all(path.exists() for path in paths.values()) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.terminate()
    out, err = process.communicate(timeout=20)
    missing = [ref for ref, path in paths.items() if not path.exists()]
    assert not missing, f"{missing}\n{out.decode()}\n{err.decode()}\n{run.net.text()}"
    return {ref: doiget.parse_toml(path.read_bytes()) for ref, path in paths.items()}


# ############################################################################
# Each form of an id: who is asked, and who is not
# ############################################################################


def test_a_crossref_doi_takes_two_requests(run: Runner, world: World, net: FakeInternet) -> None:
    """The whole shape of an answer, and only the agency and OpenAlex asked for it."""
    world.crossref_work(DOI, title="A title", abstract="<jats:p>We show a thing.</jats:p>")
    place = Location("https://journals.plos.org/1.pdf", "https://journals.plos.org/1", "publishedVersion", "cc-by")
    world.openalex_work(DOI, place, oa_status="gold", title="Another spelling of the title")
    answer = resolved(run, f"https://dx.doi.org/{DOI.upper()}")
    assert asked(net) == [CROSSREF, OPENALEX]
    assert set(answer) >= {"ok", "ref", "metadata", "source", "from_cache", "stale", "oa_status", "oa_url", "warnings"}
    fields = """type title authors year date container_title volume issue pages article_number publisher abstract doi
    arxiv_id arxiv_version pmid pmcid license url retraction relations cited_by_count"""
    assert set(answer["metadata"]) >= set(fields.split())
    assert (answer["ref"], answer["source"], answer["from_cache"], answer["stale"]) == (DOI, "crossref", False, False)
    assert (answer["oa_status"], answer["oa_url"]) == ("gold", "https://journals.plos.org/1.pdf")
    assert answer["warnings"] == []
    about = answer["metadata"]
    assert (about["title"], about["year"], about["date"]) == ("A title", 2020, "2020-03-04")
    assert (about["container_title"], about["volume"], about["issue"], about["pages"]) == (
        "Journal of Examples",
        "7",
        "2",
        "11-22",
    )
    assert (about["doi"], about["abstract"], about["cited_by_count"]) == (DOI, "We show a thing.", 3)
    assert about["authors"] == [{"family": "Lovelace", "given": "Ada"}]
    assert about["retraction"] is None


@pytest.mark.parametrize(
    ("typed", "ref", "year", "version"),
    [
        pytest.param("arXiv:2401.12345", "arXiv:2401.12345", 2024, 3, marks=LONG),
        ("https://arxiv.org/pdf/2401.12345v2.pdf", "arXiv:2401.12345v2", 2024, 2),
        ("10.48550/arXiv.2401.12345", "arXiv:2401.12345", 2024, 3),
        pytest.param("hep-th/9711200", "arXiv:hep-th/9711200", 1997, 1, marks=LONG),
        ("math.GT/0309136", "arXiv:math/0309136", 2003, 1),
    ],
)
def test_an_arxiv_id_is_asked_of_arxiv_alone(
    run: Runner, world: World, net: FakeInternet, typed: str, ref: str, year: int, version: int
) -> None:
    world.arxiv_paper("2401.12345", versions=3, title="A new one\n  on two lines")
    world.arxiv_paper("hep-th/9711200", published="1997-11-27T10:11:12Z", updated="1997-11-27T10:11:12Z")
    world.arxiv_paper("math/0309136", published="2003-09-08T10:11:12Z", updated="2003-09-08T10:11:12Z")
    answer = resolved(run, typed)
    assert asked(net) == [ARXIV]
    assert (answer["ref"], answer["source"]) == (ref, "arxiv")
    about = answer["metadata"]
    assert (about["year"], about["arxiv_version"], about["type"]) == (year, version, "preprint")
    assert about["arxiv_id"] == ref.removeprefix("arXiv:").split("v")[0]
    if year == 2024:
        assert about["title"] == "A new one on two lines"


def test_a_datacite_doi_of_a_known_prefix_never_goes_to_crossref(run: Runner, world: World, net: FakeInternet) -> None:
    """Case MD-01, the type as DataCite says: software, not a journal article."""
    world.datacite_work("10.5281/zenodo.1207631", title="A program", kind="Software")
    answer = resolved(run, "10.5281/zenodo.1207631")
    assert asked(net) == [DATACITE, OPENALEX]
    assert (answer["source"], answer["metadata"]["type"]) == ("datacite", "software")
    assert answer["metadata"]["license"] == "cc-by-4.0"


def test_a_datacite_doi_of_an_unknown_prefix_is_found_through_the_agency(
    run: Runner, world: World, net: FakeInternet
) -> None:
    """Crossref's plain-text 404 is a miss; doi.org names the agency; DataCite has the record."""
    world.datacite_work("10.99999/data.1", title="A table", kind="Dataset")
    answer = resolved(run, "10.99999/data.1")
    assert asked(net) == [CROSSREF, DATACITE, OPENALEX, DOI_ORG]
    assert (answer["source"], answer["metadata"]["type"], answer["metadata"]["title"]) == (
        "datacite",
        "dataset",
        "A table",
    )


@pytest.mark.parametrize(
    ("typed", "doi", "path"),
    [
        (
            "see doi:10.1002/(SICI)1096-9861(19971020)387:2<167::AID-CNE1>3.0.CO;2-Z.",
            "10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z",
            "10.1002%2F%28sici%291096-9861%2819971020%29387%3A2%3C167%3A%3Aaid-cne1%3E3.0.co%3B2-z",
        ),
        (
            "https://doi.org/10.1002/(sici)1096-8644(1996)23+<91::aid-ajpa4>3.0.co;2-c",
            "10.1002/(sici)1096-8644(1996)23+<91::aid-ajpa4>3.0.co;2-c",
            "10.1002%2F%28sici%291096-8644%281996%2923%2B%3C91%3A%3Aaid-ajpa4%3E3.0.co%3B2-c",
        ),
        ("10.1000/456#789", "10.1000/456#789", "10.1000%2F456%23789"),
    ],
)
def test_odd_characters_reach_the_registry_unharmed(
    run: Runner, world: World, net: FakeInternet, typed: str, doi: str, path: str
) -> None:
    """Case ID-01: the exact path to Crossref; a `+` or `#` must not become a space or a fragment anywhere."""
    world.crossref_work(doi)
    world.openalex_work(doi, Location("https://journals.plos.org/1.pdf"))
    answer = resolved(run, typed)
    assert answer["ref"] == doi
    assert [request.path for request in net.requests(CROSSREF)] == [f"/works/{path}"]
    assert answer["oa_url"] == "https://journals.plos.org/1.pdf", "OpenAlex was not asked for the same DOI"


@pytest.mark.parametrize("typed", ["10/b6vnmd", pytest.param("https://doi.org/b6vnmd", marks=LONG)])
def test_a_short_doi_is_expanded_before_any_api_is_asked(
    run: Runner, world: World, net: FakeInternet, typed: str
) -> None:
    """Case ID-04: no scholarly API knows shortDOIs, so doi.org comes first and everything else gets the long DOI."""
    long = "10.1016/s0933-3657(96)00367-3"
    world.crossref_work(long, title="Behind the short form")
    world.short_doi("b6vnmd", long.upper())
    answer = resolved(run, typed)
    assert (answer["ref"], answer["metadata"]["title"]) == (long, "Behind the short form")
    first, *others = net.requests()
    assert first.host == DOI_ORG
    assert others
    assert {request.host for request in others} == {CROSSREF, OPENALEX}
    assert min(request.t_start for request in others) >= (first.t_end or 0)
    assert not any("b6vnmd" in unquote(request.target) for request in others)
    net.clear()
    assert resolved(run, long)["from_cache"] is True
    assert net.connects() == [], "the long DOI is known now, too"


def test_a_short_doi_is_stored_under_the_long_one(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    paper = world.paper("10.1371/fake.short")
    world.short_doi("abc12", paper.doi)
    answer = run("fetch", "10/abc12", "--json").json()
    assert (answer["ok"], answer["ref"]) == (True, paper.doi)
    assert [path.stem for path in home.store.glob("*.pdf")] == [doiget.safekey(doiget.parse_ref(paper.doi))]
    net.clear()
    assert run("fetch", paper.doi, "--json").json()["already_in_store"] is True
    assert net.connects() == []


@pytest.mark.usefixtures("world")
def test_an_unknown_short_doi_is_not_found(run: Runner, net: FakeInternet) -> None:
    assert refused(run, "NOT_FOUND", "10/zzz99")["reason"] == "not_registered"
    assert net.hosts() == {DOI_ORG}


@pytest.mark.parametrize(
    "typed", ["30571677", pytest.param("https://pubmed.ncbi.nlm.nih.gov/30571677/", marks=LONG), "PMC1017419"]
)
def test_pubmed_ids_lead_to_the_doi(run: Runner, world: World, net: FakeInternet, typed: str) -> None:
    """Europe PMC names the DOI, the agency describes the work, and the answer is filed under the DOI."""
    world.pubmed_paper("30571677", doi=DOI, pmcid="PMC1017419", title="As PubMed has it.")
    world.crossref_work(DOI, title="As Crossref has it")
    answer = resolved(run, typed)
    assert asked(net) == [CROSSREF, OPENALEX, EUROPEPMC]
    assert net.requests()[0].host == EUROPEPMC
    assert (answer["ref"], answer["source"]) == (DOI, "crossref")
    about = answer["metadata"]
    assert (about["title"], about["pmid"], about["pmcid"]) == ("As Crossref has it", "30571677", "PMC1017419")


def test_pubmed_ids_without_a_doi_keep_their_own_name(run: Runner, world: World, net: FakeInternet) -> None:
    """Case ID-09: a PMCID without a PMID is no error, and its number is never tried as a PMID."""
    world.pubmed_paper(None, pmcid="PMC1017419", title="An old one.")
    world.pubmed_paper("1017419", title="Somebody else's.")
    answer = resolved(run, "PMC1017419")
    assert (answer["ref"], answer["source"], answer["metadata"]["title"]) == ("PMC1017419", "europepmc", "An old one")
    answer = resolved(run, "pmid:1017419")
    assert (answer["ref"], answer["metadata"]["title"]) == ("pmid:1017419", "Somebody else's")
    assert net.hosts() == {EUROPEPMC}


def test_ncbi_answers_for_what_europe_pmc_does_not(run: Runner, world: World, net: FakeInternet) -> None:
    world.ncbi.add("99887766", doi=DOI, title="Only at PubMed.")
    world.crossref_work(DOI)
    answer = resolved(run, "pmid:99887766")
    assert asked(net) == [CROSSREF, OPENALEX, EUTILS, EUROPEPMC]
    assert (answer["ref"], answer["metadata"]["pmid"]) == (DOI, "99887766")
    net.clear()
    world.ncbi.add(None, doi="10.1000/fake.2", pmcid="PMC7654321")
    world.crossref_work("10.1000/fake.2")
    assert resolved(run, "PMC7654321")["ref"] == "10.1000/fake.2"
    assert asked(net) == [CROSSREF, OPENALEX, IDCONV, EUROPEPMC]


def test_europe_pmc_reports_errors_with_status_200(run: Runner, world: World, net: FakeInternet) -> None:
    """An `errCode` body is a failure to ask, so NCBI is asked; it is never an empty result."""
    net.route(EUROPEPMC, None, {"version": "6.9", "errCode": 404, "errMsg": "Service is down"})
    world.ncbi.add("30571677", doi=DOI)
    world.crossref_work(DOI)
    assert resolved(run, "pmid:30571677")["ref"] == DOI
    net.unreachable(EUTILS, "reset")
    error = refused(run, "NETWORK_ERROR", "pmid:30571678")
    assert error["disposition"] == "retry"


@pytest.mark.usefixtures("world")
def test_an_unknown_pmid_is_not_found(run: Runner, net: FakeInternet) -> None:
    assert refused(run, "NOT_FOUND", "pmid:12345678")["reason"] == "not_registered"
    assert net.hosts() == {EUROPEPMC, EUTILS}


def test_a_pmid_whose_doi_is_unknown_everywhere_is_still_known(run: Runner, world: World) -> None:
    """PubMed registers DOIs that never worked: the PMID's own record is good all the same."""
    world.pubmed_paper("30571677", doi="10.9999/never.registered", title="Kept all the same.")
    answer = resolved(run, "pmid:30571677")
    assert (answer["source"], answer["metadata"]["title"]) == ("europepmc", "Kept all the same")


@pytest.mark.parametrize("agency", ["JaLC", pytest.param("mEDRA", marks=LONG), pytest.param("KISTI", marks=LONG)])
def test_other_agencies_answer_content_negotiation(run: Runner, world: World, net: FakeInternet, agency: str) -> None:
    world.agency_work("10.77777/other.1", agency, title="From another agency", authors=["Taro Yamada"])
    answer = resolved(run, "10.77777/other.1")
    host = AGENCY_HOSTS[agency].split("/")[2]
    assert asked(net) == sorted([CROSSREF, OPENALEX, DOI_ORG, DOI_ORG, host])
    assert "citationstyles.csl+json" in net.requests(host)[0].headers["accept"]
    about = answer["metadata"]
    assert (answer["source"], about["title"], about["authors"][0]["family"]) == (
        "doi.org",
        "From another agency",
        "Yamada",
    )


def test_a_crossref_alias_is_filed_under_the_prime_doi(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI, title="The prime one")
    world.crossref.alias("10.1000/old.name", DOI)
    answer = resolved(run, "10.1000/old.name")
    assert (answer["ref"], answer["metadata"]["doi"], answer["metadata"]["title"]) == (DOI, DOI, "The prime one")
    net.clear()
    assert resolved(run, DOI)["from_cache"] is True


def test_a_preprint_version_is_kept_apart_from_the_doi(run: Runner, world: World, net: FakeInternet) -> None:
    """Case ID-07: the DOI without its version is what the registries know."""
    world.biorxiv_paper("10.1101/2020.05.23.112201", versions=2, title="On bioRxiv")
    answer = resolved(run, "10.1101/2020.05.23.112201v2")
    assert (answer["ref"], answer["metadata"]["title"]) == ("10.1101/2020.05.23.112201", "On bioRxiv")
    assert not any("112201v2" in unquote(request.target) for request in net.requests())


# ############################################################################
# Misses, and what is not one
# ############################################################################


@pytest.mark.usefixtures("world")
def test_an_unregistered_doi_is_not_found_on_the_registry_word(run: Runner, net: FakeInternet) -> None:
    """Crossref's miss alone says nothing: doi.org is asked, and its no is kept for a day."""
    error = refused(run, "NOT_FOUND", "10.1000/invented")
    assert (error["reason"], error["disposition"]) == ("not_registered", "give_up")
    assert asked(net) == [CROSSREF, OPENALEX, DOI_ORG]
    net.clear()
    assert refused(run, "NOT_FOUND", "10.1000/invented")["reason"] == "not_registered"
    assert net.connects() == []
    entry = doiget.parse_toml(cached(run.home)[0].read_bytes())
    assert entry["ttl_seconds"] == 86400


def test_an_unknown_arxiv_id_is_not_found(run: Runner, world: World, net: FakeInternet) -> None:
    """arXiv's empty feed with status 200; also for a version that does not exist."""
    world.arxiv_paper("2401.12345", versions=2)
    error = refused(run, "NOT_FOUND", "arXiv:2401.99999")
    assert (error["reason"], error["disposition"]) == ("not_registered", "give_up")
    assert asked(net) == [ARXIV]
    refused(run, "NOT_FOUND", "arXiv:2401.12345v9")


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    "doi_ra",
    [
        pytest.param(Reply(500, "down"), id="down", marks=LONG),
        pytest.param(html("<html>Sign in to the network</html>"), id="intercepted"),
        pytest.param({"message": "try again later"}, id="not-about-the-doi"),
        pytest.param([{"DOI": "10.1000/invented", "status": "Unknown"}], id="unknown-is-no-no"),
    ],
)
def test_without_the_registry_word_nothing_is_not_found(run: Runner, net: FakeInternet, doi_ra: Any) -> None:
    net.route(DOI_ORG, re.compile("^/doiRA/"), doi_ra)
    error = refused(run, "NETWORK_ERROR", "10.1000/invented")
    assert not cached(run.home)
    assert error["attempts"]


def test_datacite_is_tried_while_the_agency_is_unknown(run: Runner, world: World, net: FakeInternet) -> None:
    world.datacite_work("10.99999/data.1", title="A table")
    net.route(DOI_ORG, None, Reply(500, "down"))
    assert resolved(run, "10.99999/data.1")["source"] == "datacite"


def test_a_registered_doi_without_a_record_yet_is_not_unregistered(run: Runner, world: World) -> None:
    """Crossref shows a deposit after some minutes; until then doi.org knows the DOI and Crossref answers 404."""
    world.doi_org.register("10.1000/too.new", "Crossref")
    error = refused(run, "NETWORK_ERROR", "10.1000/too.new")
    assert error["disposition"] == "retry"
    assert not cached(run.home)


def test_one_bad_neighbour_spoils_nothing(run: Runner, world: World, net: FakeInternet) -> None:
    """arXiv rejects a whole request for one id it dislikes: the others are found all the same."""
    world.arxiv_paper("2401.12345", title="A good one")

    def strict(request: Any) -> Any:
        if "2402.00001" in request.query.get("id_list", ""):
            return world.arxiv._atom([world.arxiv._error("incorrect id format for 2402.00001")], 1, 0, 1, status=400)
        return world.arxiv.answer(request)

    net.route(ARXIV, "/api/query", strict)
    results = run("batch", "2401.12345", "2402.00001", "no id at all", "--json").json()["results"]
    assert results[0]["ok"] is True, results[0]
    assert results[1]["error"]["code"] in {"NOT_FOUND", "INVALID_REF"}
    assert results[2]["error"]["code"] == "INVALID_REF"
    assert min(net.gaps(ARXIV)) >= 2.9


def test_a_request_crossref_rejects_is_halved(run: Runner, world: World, net: FakeInternet) -> None:
    refs = [f"10.1000/many.{n}" for n in range(6)]
    for ref in refs:
        world.crossref_work(ref, title=f"Title of {ref}")

    def picky(request: Any) -> Any:
        if request.path == "/works" and "many.4" in request.target:
            return Reply(400, {"status": "failed", "message-type": "validation-failure", "message": []})
        return world.crossref.answer(request)

    net.route(CROSSREF, None, picky)
    kept = records(run, refs)
    assert all(kept[ref]["record"]["work"]["title"] == f"Title of {ref}" for ref in refs)
    assert all(kept[ref]["record"]["source"] == "crossref" for ref in refs)


def test_a_failing_part_of_a_batch_leaves_the_rest_whole(run: Runner, world: World, net: FakeInternet) -> None:
    """50 DOIs are two requests to Crossref: what one of them said stays known when the other breaks."""
    refs = [f"10.1000/half.{n:03}" for n in range(50)]
    for ref in refs:
        world.closed(ref, title=f"Title of {ref}")

    def broken(request: Any) -> Any:
        if request.path == "/works" and "half.049" in request.target:
            return Reply(body="{ this is no JSON", content_type="application/json")
        return world.crossref.answer(request)

    net.route(CROSSREF, None, broken)
    process = run.spawn("batch", *refs, "--json")
    path = run.home.cache / "resolver" / f"{doiget.safekey(doiget.parse_ref(refs[0]))}.toml"
    deadline = time.monotonic() + 15
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.terminate()
    process.communicate(timeout=20)
    assert path.exists(), "the good half was thrown away with the bad one"
    assert doiget.parse_toml(path.read_bytes())["record"]["source"] == "crossref"


def test_pmids_found_stay_found_when_ncbi_is_down(run: Runner, world: World, net: FakeInternet) -> None:
    world.pubmed_paper("30571677", pmcid="PMC1017419", title="Found.")
    net.route(EUTILS, None, Reply(500, "down"))
    results = run("batch", "pmid:30571677", "pmid:12345678", "--json").json()["results"]
    assert results[0]["ok"] is True, results[0]
    assert results[1]["error"]["code"] == "NETWORK_ERROR"


# ############################################################################
# Throttled, down, in the way
# ############################################################################


@pytest.mark.parametrize(
    "throttle",
    [
        pytest.param(Reply(429, "Rate exceeded.", content_type="text/plain"), id="429"),
        pytest.param(Reply(503, "Retry after a while", headers={"Retry-After": "60"}), id="503", marks=LONG),
        pytest.param(Reply(406, "<html>no</html>"), id="406", marks=LONG),
        pytest.param(Reply(200, "Rate exceeded.", content_type="text/plain"), id="200"),
    ],
)
def test_throttled_arxiv_is_answered_by_datacite(run: Runner, world: World, net: FakeInternet, throttle: Reply) -> None:
    """Case RL-02: metadata from DataCite with a warning, soon, and never kept as if it were arXiv's word."""
    world.arxiv_paper("2401.12345", title="Throttled")
    net.route(ARXIV, None, throttle)
    began = time.monotonic()
    answer = resolved(run, "2401.12345")
    assert time.monotonic() - began < 25
    assert (answer["ref"], answer["source"], answer["metadata"]["title"]) == (
        "arXiv:2401.12345",
        "datacite",
        "Throttled",
    )
    assert answer["metadata"]["arxiv_id"] == "2401.12345"
    assert warned(answer, "arXiv")
    assert len(net.requests(ARXIV)) <= 3
    assert net.hosts() == {ARXIV, DATACITE}
    assert not cached(run.home), "an answer under throttling is not kept"


def test_a_throttled_unknown_id_is_not_not_found(run: Runner, world: World, net: FakeInternet) -> None:
    net.route(ARXIV, None, world.arxiv.throttled())
    error = refused(run, "RATE_LIMITED", "2401.99999")
    assert (error["reason"], error["disposition"]) == ("source_limit", "retry")


def test_while_arxiv_is_blocked_the_next_call_does_not_wait_for_it(
    run: Runner, world: World, net: FakeInternet
) -> None:
    """The pause arXiv asked for holds for later processes: they go to DataCite at once and leave arXiv alone."""
    world.arxiv_paper("2401.12345")
    world.arxiv_paper("2402.54321", title="The next one")
    net.route(ARXIV, None, world.arxiv.throttled())
    resolved(run, "2401.12345")
    net.clear()
    began = time.monotonic()
    answer = resolved(run, "2402.54321")
    assert time.monotonic() - began < 25
    assert (answer["source"], answer["metadata"]["title"]) == ("datacite", "The next one")
    assert net.hosts() == {DATACITE}


def test_crossref_429_without_a_time_is_waited_out(run: Runner, world: World, net: FakeInternet) -> None:
    """Case RL-01: an HTML body under 429 is throttling; the waits grow; one request at a time."""
    world.crossref_work(DOI)
    slow = html("<html><h1>Too many requests</h1></html>", 429)
    net.route(CROSSREF, None, seq(slow, slow, slow, world.crossref.answer))
    assert resolved(run, DOI)["source"] == "crossref"
    first, second, third = net.gaps(CROSSREF)
    assert 0.7 <= first < second < third < 8
    assert net.max_at_once(CROSSREF) == 1
    agents = {request.headers["user-agent"] for request in net.requests()}
    assert all(agent.startswith("doiget/") and "@" not in agent for agent in agents)


def test_openalex_down_leaves_the_record_with_a_warning(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI, title="Known all the same")
    net.unreachable(OPENALEX)
    answer = resolved(run, DOI)
    assert (answer["source"], answer["metadata"]["title"]) == ("crossref", "Known all the same")
    assert (answer["oa_status"], answer["oa_url"]) == ("unknown", None)
    assert warned(answer, "OpenAlex")
    assert not cached(run.home)


def test_openalex_record_stands_in_for_crossref(run: Runner, world: World, net: FakeInternet) -> None:
    world.openalex_work(
        DOI, Location("https://journals.plos.org/1.pdf"), title="As OpenAlex has it", authors=["Ada Lovelace"]
    )
    net.unreachable(CROSSREF)
    answer = resolved(run, DOI)
    assert (answer["ref"], answer["source"], answer["metadata"]["title"]) == (DOI, "openalex", "As OpenAlex has it")
    assert answer["metadata"]["authors"] == [{"family": "Lovelace", "given": "Ada"}]
    assert warned(answer, "Crossref")
    assert not cached(run.home)


@pytest.mark.usefixtures("world")
def test_all_down_is_a_network_error(run: Runner, net: FakeInternet) -> None:
    """The other kinds of id: test_21_batch, in one process."""
    result = resolve(run, DOI, env={"HTTPS_PROXY": net.dead_proxy_url})
    error = result.json()["error"]
    assert (error["code"], error["reason"], error["disposition"]) == ("NETWORK_ERROR", "unreachable", "retry")
    assert result.rc == 8
    assert not cached(run.home)


@pytest.mark.usefixtures("world")
def test_silence_ends_at_the_deadline(run: Runner, net: FakeInternet) -> None:
    net.route("*", None, never())
    began = time.monotonic()
    error = refused(run, "FETCH_TIMEOUT", DOI, env={"DOIGET_TIMEOUT_S": "2"})
    assert error["disposition"] == "retry"
    assert time.monotonic() - began < 15


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("how", ["page", "redirect"])
def test_a_block_page_is_never_a_miss(run: Runner, net: FakeInternet, how: str) -> None:
    """Every kind of id, each of whose sources is replaced by a company's filter."""
    net.route("*", None, block_page() if how == "page" else redirect("https://login.corporate.example/blocked"))
    refs = [DOI, "arXiv:2401.12345", "pmid:30571677", "PMC1017419", "10.5281/zenodo.1", "10/abc12"]
    result = run("batch", *refs, "--json")
    errors = {
        row["ref"]: (row["error"]["code"], row["error"]["reason"], row["error"]["disposition"])
        for row in result.json()["results"]
    }
    assert errors == dict.fromkeys(refs, ("NETWORK_ERROR", "intercepted", "configure"))
    assert net.connect_hosts() <= METADATA_HOSTS
    assert not cached(run.home)


@pytest.mark.long
def test_one_intercepted_source_does_not_spoil_the_others(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI, title="Crossref got through")
    net.route(OPENALEX, None, block_page())
    answer = resolved(run, DOI)
    assert answer["metadata"]["title"] == "Crossref got through"
    assert warned(answer, "OpenAlex", "intercepted")


@pytest.mark.parametrize("status", [pytest.param(401, marks=LONG), 403])
def test_a_rejected_key_is_named_as_such(run: Runner, world: World, net: FakeInternet, status: int) -> None:
    world.crossref_work(DOI)
    net.route(OPENALEX, None, Reply(status, {"error": "Unauthorized", "message": "bad key"}))
    answer = resolved(run, DOI, env={"DOIGET_KEY_OPENALEX": "wrong-key-123"})
    assert warned(answer, "OpenAlex", "unauthorized")
    assert len(net.requests(OPENALEX)) == 1, "a rejected key is not tried again"
    assert "wrong-key-123" not in json.dumps(answer)
    world.ncbi.add("99887766", title="Only at PubMed.")
    net.route(EUTILS, None, Reply(status, {"error": "API key invalid"}))
    error = refused(run, "CAPABILITY_DENIED", "pmid:99887766", env={"DOIGET_KEY_NCBI": "wrong-key-456"})
    assert (error["reason"], error["disposition"]) == ("unauthorized", "configure")
    assert "wrong-key-456" not in json.dumps(error)


def test_a_403_without_a_key_is_not_asked_again(run: Runner, world: World, net: FakeInternet) -> None:
    """apis.md: 403 is a block; hammering on makes it last longer."""
    world.crossref_work(DOI)
    net.route(CROSSREF, None, Reply(403, "blocked"))
    world.openalex_work(DOI, title="As OpenAlex has it")
    answer = resolved(run, DOI)
    assert answer["source"] == "openalex"
    assert len(net.requests(CROSSREF)) == 1


@pytest.mark.long
def test_a_spent_budget_says_so(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI)
    body = {"error": "Rate limit exceeded", "message": "Daily budget exceeded"}
    net.route(OPENALEX, None, Reply(429, body, headers={"Retry-After": "40000"}))
    answer = resolved(run, DOI)
    assert warned(answer, "OpenAlex", "budget_spent")
    assert len(net.requests(OPENALEX)) == 1


# ############################################################################
# Bodies that are too big, too deep or declare things
# ############################################################################


def test_an_endless_body_is_cut_off(run: Runner, world: World, net: FakeInternet) -> None:
    world.openalex_work(DOI, title="As OpenAlex has it")
    net.route(CROSSREF, None, endless(first=b'{"message": {"title": ["'))
    answer = resolved(run, DOI)
    assert answer["source"] == "openalex"
    assert warned(answer, "Crossref")
    assert len(net.requests(CROSSREF)) == 1
    assert net.requests(CROSSREF)[0].bytes_sent < 45 * 2**20


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("depth", [70, pytest.param(100_000, marks=LONG)])
def test_a_deep_body_is_no_answer(run: Runner, net: FakeInternet, depth: int) -> None:
    body = '{"status": "ok", "message": {"title": ["T"], "x": ' + "[" * depth + "]" * depth + "}}"
    net.route(CROSSREF, None, Reply(body=body, content_type="application/json"))
    assert refused(run, "NETWORK_ERROR", DOI)["reason"] == "bad_body"


@pytest.mark.usefixtures("world")
def test_a_feed_with_a_document_type_is_refused(run: Runner, net: FakeInternet) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><feed>&b;</feed>'
    net.route(ARXIV, None, Reply(body=bomb, content_type="application/atom+xml"))
    assert refused(run, "NETWORK_ERROR", "2401.12345")["reason"] == "bad_body"


@pytest.mark.parametrize(
    "body", ['{"status": "ok", "mess', "[]", *(pytest.param(text, marks=LONG) for text in ("null", '"text"', ""))]
)
def test_a_body_that_makes_no_sense_is_not_a_record(run: Runner, world: World, net: FakeInternet, body: str) -> None:
    """Half a body, another type, nothing: never a crash, never NOT_FOUND."""
    net.route(CROSSREF, None, Reply(body=body, content_type="application/json"))
    net.route(OPENALEX, None, Reply(body=body, content_type="application/json"))
    world.doi_org.register(DOI, "Crossref")
    error = refused(run, "NETWORK_ERROR", DOI)
    assert error["disposition"] == "retry"


# ############################################################################
# Who learns what about the user
# ############################################################################


def test_the_address_goes_only_to_those_who_ask_for_it(run: Runner, world: World, net: FakeInternet) -> None:
    """Every header and target on the wire is searched: Crossref, DataCite, Unpaywall and NCBI want it, nobody else."""
    world.crossref_work(DOI)
    world.datacite_work("10.99999/data.1")
    world.ncbi.add("99887766", doi="10.1000/fake.2")
    world.crossref_work("10.1000/fake.2")
    world.arxiv_paper("2401.12345")
    world.short_doi("abc12", DOI)
    world.agency_work("10.77777/other.1", "JaLC")
    refs = [DOI, "10.99999/data.1", "pmid:99887766", "PMC7654321", "2401.12345", "10/abc12", "10.77777/other.1"]
    run("batch", *refs, "--json", env={"DOIGET_EMAIL": EMAIL, "DOIGET_KEY_OPENALEX": "key-of-openalex"})
    told, keyed = set(), set()
    for request in net.requests():
        everything = " ".join([unquote(request.target), *request.headers.values(), request.body.decode("latin-1")])
        if EMAIL in everything or "reader" in everything:
            told.add(request.host)
        if "key-of-openalex" in everything:
            keyed.add(request.host)
            assert "key-of-openalex" not in request.target, "a key in an address ends in other people's logs"
    assert told == {CROSSREF, DATACITE, UNPAYWALL, EUTILS, IDCONV}
    assert keyed == {OPENALEX}
    assert {OPENALEX, ARXIV, DOI_ORG, EUROPEPMC, "japanlinkcenter.org"} <= net.hosts()
    assert all("mailto" in request.query for request in net.requests(CROSSREF)), "the polite pool wants it every time"
    agents = {request.headers["user-agent"] for request in net.requests()}
    assert all(agent.startswith("doiget/") for agent in agents)


def test_unpaywall_is_asked_only_with_an_address_and_only_where_openalex_names_nothing(
    run: Runner, world: World, net: FakeInternet
) -> None:
    world.closed(DOI)
    world.unpaywall_work(DOI, Location("https://repository.example/1.pdf", version="acceptedVersion", repository=True))
    answer = resolved(run, DOI, "--no-cache")
    assert UNPAYWALL not in net.connect_hosts()
    answer = resolved(run, DOI, "--no-cache", env={"DOIGET_EMAIL": EMAIL})
    assert answer["oa_url"] == "https://repository.example/1.pdf"
    assert answer["oa_status"] == "green", "OpenAlex's 'closed' is overruled by a copy that is there"
    assert [request.query for request in net.requests(UNPAYWALL)] == [{"email": EMAIL}]
    net.clear()
    world.paper("10.1371/fake.2")
    resolved(run, "10.1371/fake.2", "--no-cache", env={"DOIGET_EMAIL": EMAIL})
    assert UNPAYWALL not in net.connect_hosts()


@pytest.mark.long
def test_unpaywall_is_asked_at_most_twice_per_batch(run: Runner, world: World, net: FakeInternet) -> None:
    refs = [f"10.1000/closed.{n}" for n in range(5)]
    for ref in refs:
        world.closed(ref)
    run("batch", *refs, "--json", env={"DOIGET_EMAIL": EMAIL})
    assert len(net.requests(UNPAYWALL)) == 2


@pytest.mark.long
def test_unpaywall_down_is_a_warning(run: Runner, world: World, net: FakeInternet) -> None:
    world.closed(DOI)
    net.route(UNPAYWALL, None, Reply(422, {"error": True, "message": "no such address"}))
    answer = resolved(run, DOI, env={"DOIGET_EMAIL": EMAIL})
    assert answer["oa_status"] == "closed"
    assert warned(answer, "Unpaywall")


def test_closed_and_not_looked_up_are_two_answers(run: Runner, world: World) -> None:
    """`oa_url: null` alone is ambiguous; and Crossref's `link`, made for text mining, is no open copy."""
    link = {
        "URL": "https://publisher.example/1.pdf",
        "content-type": "application/pdf",
        "intended-application": "text-mining",
    }
    world.closed(DOI, link=[link])
    world.crossref_work("10.1000/fake.2", link=[link])
    answers = [resolved(run, DOI), resolved(run, "10.1000/fake.2")]
    assert [(answer["oa_status"], answer["oa_url"]) for answer in answers] == [("closed", None), ("unknown", None)]


# ############################################################################
# Cache, refresh, offline
# ############################################################################


def age(path: Path, fetched_at: str = "2020-01-01T00:00:00Z") -> None:
    """Let a cache entry be as old as `fetched_at`."""
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^fetched_at = .*$", f'fetched_at = "{fetched_at}"', text), encoding="utf-8")


def test_the_cache_answers_until_its_time_is_over(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    world.closed(DOI, title="First")
    assert resolved(run, DOI)["from_cache"] is False
    path = home.cache / "resolver" / f"{doiget.safekey(doiget.parse_ref(DOI))}.toml"
    entry = doiget.parse_toml(path.read_bytes())
    assert {"version", "fetched_at", "ttl_seconds"} <= set(entry)
    assert entry["ttl_seconds"] == 7 * 86400
    world.closed(DOI, title="Second")
    net.clear()
    answer = resolved(run, DOI)
    assert (answer["from_cache"], answer["stale"], answer["metadata"]["title"]) == (True, False, "First")
    assert net.connects() == [], "a fresh hit makes no request"
    answer = resolved(run, DOI, "--refresh")
    assert (answer["from_cache"], answer["metadata"]["title"]) == (False, "Second")
    world.closed(DOI, title="Third")
    assert resolved(run, DOI)["metadata"]["title"] == "Second"
    assert resolved(run, DOI, "--no-cache")["metadata"]["title"] == "Third"
    assert resolved(run, DOI)["metadata"]["title"] == "Second", "--no-cache neither reads nor writes"
    age(path)
    answer = resolved(run, DOI)
    assert (answer["from_cache"], answer["metadata"]["title"]) == (False, "Third")
    path.write_bytes(path.read_bytes()[:-40])
    assert resolved(run, DOI)["from_cache"] is False, "a damaged entry is a miss"


def test_an_old_record_is_better_than_none(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    """Offline, and while nobody can be asked, an expired entry answers and says that it is old."""
    world.closed(DOI, title="Known of old")
    resolved(run, DOI)
    age(cached(home)[0])
    net.clear()
    answer = resolved(run, "--offline", DOI)
    assert (answer["from_cache"], answer["stale"], answer["metadata"]["title"]) == (True, True, "Known of old")
    assert net.connects() == []
    answer = resolved(run, DOI, env={"HTTPS_PROXY": net.dead_proxy_url})
    assert (answer["stale"], answer["metadata"]["title"]) == (True, "Known of old")
    assert answer["warnings"]


def test_offline_opens_no_socket_and_denies_what_it_does_not_know(run: Runner, world: World, net: FakeInternet) -> None:
    world.closed(DOI)
    for env in ({}, {"DOIGET_OFFLINE": "1"}):
        error = refused(run, "CAPABILITY_DENIED", DOI, *([] if env else ["--offline"]), env=env)
        assert (error["reason"], error["disposition"]) == ("offline", "configure")
    assert net.connects() == []


def test_offline_the_store_record_answers(run: Runner, world: World, net: FakeInternet) -> None:
    paper = world.paper("10.1371/fake.2", title="In the store")
    run("fetch", paper.doi)
    run("cache", "clear")
    net.clear()
    answer = resolved(run, paper.doi, "--offline")
    assert (answer["source"], answer["stale"], answer["metadata"]["title"]) == ("store", True, "In the store")
    assert net.connects() == []


# ############################################################################
# What the answer says
# ############################################################################


def test_retractions_are_shown_with_their_notice(run: Runner, world: World) -> None:
    """The publisher and Retraction Watch report the same notice: it is shown once, the publisher's."""
    both = [update("10.1000/notice", source="retraction-watch"), update("10.1000/Notice", date="2022-05-06")]
    world.crossref_work(DOI, updated_by=both)
    retraction = resolved(run, DOI)["metadata"]["retraction"]
    assert retraction == {
        "status": "retracted",
        "notice_doi": "10.1000/notice",
        "source": "publisher",
        "date": "2022-05-06",
    }
    world.crossref_work("10.1000/notice", title="Retraction of a thing", update_to=[update(DOI)])
    assert resolved(run, "10.1000/notice")["metadata"]["retraction"] is None, "the notice itself is not retracted"


def test_a_retraction_only_openalex_knows(run: Runner, world: World) -> None:
    world.crossref_work(DOI)
    world.openalex_work(DOI, is_retracted=True)
    retraction = resolved(run, DOI)["metadata"]["retraction"]
    assert (retraction["status"], retraction["notice_doi"], retraction["source"]) == ("retracted", None, "openalex")


@pytest.mark.long
def test_a_withdrawn_preprint_is_flagged(run: Runner, world: World) -> None:
    world.arxiv_paper("2401.12345", versions=2, withdrawn={2})
    assert resolved(run, "2401.12345")["metadata"]["retraction"]["status"] == "withdrawn"


def test_relations_and_licence(run: Runner, world: World) -> None:
    """Licences: of the version of record and in force; not an embargoed CC, not one for text mining."""

    def licence(url: str, version: str, start: str) -> Json:
        stamp = {"date-parts": [[int(part) for part in start.split("-")]]}
        return {"URL": url, "content-version": version, "start": stamp, "delay-in-days": 0}

    by, nc = "https://creativecommons.org/licenses/by/4.0/", "https://creativecommons.org/licenses/by-nc/4.0/"
    world.crossref_work(
        DOI,
        license=[
            licence(by, "vor", f"{time.gmtime().tm_year + 2}-01-01"),
            licence(by, "tdm", "2020-01-01"),
            licence(nc, "vor", "2020-01-01"),
        ],
        relation={
            "has-preprint": [
                {"id-type": "arxiv", "id": "2401.12345", "asserted-by": "subject"},
                {"id-type": "doi", "id": "10.1101/2020.05.23.112201", "asserted-by": "subject"},
            ]
        },
    )
    about = resolved(run, DOI)["metadata"]
    assert about["license"] == "cc-by-nc-4.0"
    kinds = {(relation["kind"], relation["ref"]) for relation in about["relations"]}
    assert kinds >= {("has-preprint", "arXiv:2401.12345"), ("has-preprint", "10.1101/2020.05.23.112201")}


def test_three_thousand_authors(run: Runner, world: World, home: Home) -> None:
    """Case AU-04: answers carry 20 and the number of all; the record keeps everybody in order."""
    names = [("Given", f"A{n:04}") for n in range(1, 3001)]
    world.crossref_work(DOI, authors=names)
    result = resolve(run, DOI)
    answer = result.json()
    shown = answer["metadata"]["authors"]
    assert [author["family"] for author in shown] == [f"A{n:04}" for n in range(1, 21)]
    assert answer["metadata"].get("authors_total", answer.get("authors_total")) == 3000
    assert len(result.stdout) < 60_000
    assert warned(answer, "2980")
    kept = doiget.parse_toml(cached(home)[0].read_bytes())["record"]["work"]["authors"]
    assert [author["family"] for author in kept] == [family for _, family in names]


MATHML = (
    '<mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML">'
    "<mml:msub><mml:mi>RuO</mml:mi><mml:mn>2</mml:mn></mml:msub></mml:math>"
)
#: A record as registered, and what a reader should see of it. One process resolves them all.
ODD: dict[str, tuple[Json, dict[str, Any]]] = {
    "TI-01 MathML": (
        {"title": f"Magnetism in {MATHML} films"},
        {"title": {"Magnetism in RuO2 films", "Magnetism in RuO₂ films"}},
    ),
    "TI-02 markup": (
        {
            "title": ["<p><strong>A new species of <em>Tachycines</em> (<em>Gymnaeta</em>)</strong></p>"],
            "container": "Energy Science &amp;amp; Engineering",
        },
        {"title": "A new species of Tachycines (Gymnaeta)", "container_title": "Energy Science & Engineering"},
    ),
    "TI-03 capitals": ({"title": "A REVIEW OF DNA REPAIR IN YEAST"}, {"title": "A REVIEW OF DNA REPAIR IN YEAST"}),
    "not markup": ({"title": "If a < b then $a$ &lt; $b$ &amp; so on"}, {"title": "If a < b then $a$ < $b$ & so on"}),
    "hidden": (
        {"title": "A\u202e title\u200b\ufeff with\x07 hidden\U000e0041 marks\nand two lines"},
        {"title": "A title with hidden marks and two lines"},
    ),
    "composed": ({"title": "Mu\u0308ller"}, {"title": "Müller"}),
    "long": ({"title": "word " * 500}, {"title": re.compile(r"(?s)word.{900,996}")}),
    "MD-02 no title": ({"title": []}, {"title": None}),
    "null title": ({"title": None}, {"title": None}),
    "absent": (
        {"title": DROP, "author": DROP, "container-title": DROP, "publisher": DROP},
        {"title": None, "authors": None},
    ),
    "null": (
        {"author": None, "container-title": None, "license": None, "relation": None, "link": None},
        {"authors": None},
    ),
    "wrong types": (
        {
            "author": "Ada",
            "issued": "soon",
            "container-title": {"a": 1},
            "volume": ["7"],
            "page": 11,
            "relation": [1],
            "license": {"x": 1},
        },
        {"title": "A title"},
    ),
    "wrong inside": (
        {
            "author": [None, 7, {"family": 3}, {"family": "Good", "given": None}],
            "updated-by": ["x"],
            "license": [None, "x"],
        },
        {"title": "A title"},
    ),
    "DT-01 later date": (
        {"issued": {"date-parts": [[None]]}, "published": DROP, "published-online": {"date-parts": [[2009, 3]]}},
        {"date": "2009-03", "year": 2009},
    ),
    "DT-01 no date": (
        {"issued": {"date-parts": [[None]]}, "published": DROP, "created": DROP},
        {"date": None, "year": None},
    ),
    "bad date": ({"issued": {"date-parts": [[2017, 13, 45]]}, "published": DROP}, {"year": 2017}),
    "AU-01 bodies": (
        {
            "authors": [
                {"name": "Example Atlas Consortium"},
                {"family": "Meghana"},
                {"given": "Dario", "family": "Moraes"},
            ]
        },
        {
            "authors": [
                {"literal": "Example Atlas Consortium"},
                {"family": "Meghana"},
                {"family": "Moraes", "given": "Dario"},
            ]
        },
    ),
    "AU-02 one body": (
        {"authors": [{"name": "Barnes and Noble, Inc."}]},
        {"authors": [{"literal": "Barnes and Noble, Inc."}]},
    ),
    "AU-03 parts": (
        {
            "authors": [
                {"given": "Martin Luther", "family": "King", "suffix": "Jr."},
                {"given": "Georg Henrik", "family": "Wright", "non-dropping-particle": "von"},
            ]
        },
        {
            "authors": [
                {"family": "King", "given": "Martin Luther", "suffix": "Jr."},
                {"family": "Wright", "given": "Georg Henrik", "particle": "von"},
            ]
        },
    ),
    "BX-03 article number": ({"page": DROP, "article-number": "043717"}, {"article_number": "043717", "pages": None}),
    "BX-03 pages": ({"page": "146\u2013171"}, {"pages": "146-171"}),
}


def crossref_fields(fields: Json) -> Json:
    """Give fields by Crossref's own names to the fixture, which takes `_` for `-`."""
    return {name.replace("-", "_"): value for name, value in fields.items()}


def test_odd_records_keep_what_is_good(run: Runner, world: World) -> None:
    """Absent, null, empty, mistyped, marked up: each record is read as far as it goes, none costs another."""
    dois = {name: f"10.1000/odd.{n}" for n, name in enumerate(ODD)}
    for name, doi in dois.items():
        fields = {"container": "A journal"} | ODD[name][0]
        if "container-title" in fields:
            fields.pop("container")
        world.crossref_work(doi, **crossref_fields(fields))
    kept = records(run, list(dois.values()))
    wrong = {}
    for name, doi in dois.items():
        record = kept[doi]["record"]
        assert record["source"] == "crossref"
        for field, expected in ODD[name][1].items():
            found = record["work"].get(field)
            good = (
                found in expected if isinstance(expected, set)
                else bool(expected.fullmatch(found or "")) if isinstance(expected, re.Pattern)
                else found == expected
            )  # fmt: skip
            if not good:
                wrong[name, field] = found
    assert not wrong
    for name in ("MD-02 no title", "null title", "absent"):
        assert warned(kept[dois[name]]["record"], "title missing at Crossref")


def test_a_work_without_a_title_resolves_with_a_warning(run: Runner, world: World) -> None:
    world.crossref_work(DOI, title=[])
    answer = resolved(run, DOI)
    assert (answer["metadata"]["title"], answer["metadata"]["year"]) == (None, 2020)
    assert warned(answer, "title missing at Crossref")
    person = run("resolve", DOI)
    assert person.rc == 0
    assert "None" not in person.out
    assert "title missing" in person.err


@pytest.mark.long
def test_datacite_organisations_are_not_split(run: Runner, world: World) -> None:
    """Case AU-02: a comma in the name of a body is no comma between names."""
    body = "Earth Interior Center, Example Agency"
    world.datacite_work("10.5281/zenodo.7", authors=[{"name": body, "nameType": "Organizational"}])
    assert resolved(run, "10.5281/zenodo.7")["metadata"]["authors"] == [{"literal": body}]


def test_unknown_never_overwrites_known(run: Runner, world: World) -> None:
    """OpenAlex fills what Crossref leaves open and changes nothing that Crossref says."""
    world.crossref_work(DOI, title="Crossref's title", container=None, volume=DROP, abstract=DROP)
    world.openalex_work(
        DOI, title="OpenAlex's title", container="Filled in", abstract="An abstract from the index", pmid="30571677"
    )
    about = resolved(run, DOI)["metadata"]
    assert about["title"] == "Crossref's title"
    assert (about["volume"], about["abstract"], about["pmid"]) == ("7", "An abstract from the index", "30571677")


# ############################################################################
# Recorded bodies
# ############################################################################

MARKUP = re.compile(
    r"<(?:/?(?:i|b|em|sub|sup|p|jats:|mml:|scp|title|strong|br)\b|mml)|&(?:amp|lt|gt|quot|nbsp|#x?[0-9a-f]+);",
    re.IGNORECASE,
)
INVISIBLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def strings(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in strings(inner, key)]
    if isinstance(value, list):
        return [pair for inner in value for pair in strings(inner, name)]
    return [(name, value)] if isinstance(value, str) else []


def faults(work: Json) -> list[str]:
    """What is unclean in a kept record: spec §4's promises about every outside string."""
    found = []
    for name, text in strings(work):
        plain = text.replace("\n", " ") if name == "abstract" else text
        if INVISIBLE.search(plain) or "\n" in plain:
            found.append(f"{name}: control characters in {text[:80]!r}")
        if name in {"title", "container_title", "family", "given", "literal", "publisher"} and MARKUP.search(text):
            found.append(f"{name}: markup in {text[:80]!r}")
        if unicodedata.normalize("NFC", text) != text:
            found.append(f"{name}: not composed: {text[:80]!r}")
        if len(text) > (5000 if name == "abstract" else 1000):
            found.append(f"{name}: {len(text)} characters")
    return found


def load(folder: Path, pattern: str = "*.json") -> list[Any]:
    found = [json.loads(path.read_bytes()) for path in sorted(folder.glob(pattern))]
    assert found, f"{folder} is empty"
    return found


def check(kept: dict[str, Json], source: str, problems: Callable[[str, Json], list[str]]) -> None:
    wrong = {}
    for ref, entry in kept.items():
        record = entry["record"]
        bad = faults(record["work"]) + problems(ref, record["work"])
        bad += [f"source {record['source']}"] if record["source"] != source else []
        if bad:
            wrong[ref] = bad
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


@pytest.mark.parametrize("part", [0, 1])
def test_recorded_crossref_works(run: Runner, world: World, shared: Path, part: int) -> None:
    messages = [body["message"] for body in load(shared / "recorded" / "crossref" / "works")][part::2]
    known = {message["DOI"].lower(): message for message in messages}
    for message in messages:
        world.crossref.put(message)

    def problems(ref: str, work: Json) -> list[str]:
        message = known[ref]
        named = [
            a
            for a in message.get("author") or []
            if re.search(r"\w", re.sub(r"&\w+;", "", f"{a.get('family') or ''}{a.get('name') or ''}"))
        ]
        year = re.match(r"[\[\s]*(\d{4})", json.dumps((message.get("issued") or {}).get("date-parts")))
        found = []
        if bool(work.get("title")) != bool(message.get("title") or message.get("original-title")):
            found.append(f"title {work.get('title')!r} of {message.get('title')}")
        if named and not work.get("authors"):
            found.append("no authors")
        if len(work.get("authors") or []) > len(message.get("author") or []):
            found.append("more authors than registered")
        if year and work.get("year") != int(year[1]):
            found.append(f"year {work.get('year')} of {year[1]}")
        if not work.get("type"):
            found.append("no type")
        return found

    check(records(run, list(known)), "crossref", problems)


def test_recorded_datacite_works(run: Runner, world: World, shared: Path) -> None:
    bodies = load(shared / "recorded" / "datacite")
    known = {body["data"]["attributes"]["doi"].lower(): body["data"]["attributes"] for body in bodies}
    findable = {
        doi: about for doi, about in known.items() if about.get("state") in (None, "findable") and "arxiv" not in doi
    }
    for about in findable.values():
        world.datacite.put(about)

    def problems(ref: str, work: Json) -> list[str]:
        about = findable[ref]
        titles = [title.get("title") for title in about.get("titles") or [] if title.get("title")]
        year = str(about.get("publicationYear") or "")
        found = [] if bool(work.get("title")) == bool(titles) else [f"title {work.get('title')!r} of {titles}"]
        if re.fullmatch(r"1[5-9]\d\d|20[0-2]\d", year) and work.get("year") != int(year):
            found.append(f"year {work.get('year')} of {year}")
        return found

    check(records(run, list(findable)), "datacite", problems)


def test_recorded_openalex_works(run: Runner, world: World, shared: Path) -> None:
    """What OpenAlex adds to a bare agency record: its open copies, of the very work."""
    works = {}
    for work in load(shared / "recorded" / "openalex", "W*.json"):
        if work.get("doi") and "arxiv" not in work["doi"].lower():
            works[work["doi"].lower().removeprefix("https://doi.org/")] = work
    for doi, work in works.items():
        world.openalex.put(work)
        bare = crossref_message(doi, title=[], authors=[], container=None, volume=DROP, issue=DROP, page=DROP)
        world.crossref.put(bare)

    def problems(ref: str, work: Json) -> list[str]:
        theirs = works[ref]
        open_pdfs = {p["pdf_url"] for p in theirs.get("locations") or [] if p.get("is_oa") and p.get("pdf_url")}
        ours = {location.get("pdf_url") for location in work.get("locations") or []} - {None}
        found = [] if bool(work.get("title")) == bool(theirs.get("title")) else [f"title {work.get('title')!r}"]
        if work.get("oa_status") != theirs["open_access"]["oa_status"]:
            found.append(f"oa_status {work.get('oa_status')}")
        if len(ours) < len({url.replace("http://", "https://") for url in open_pdfs}):
            found.append(f"copies {sorted(ours)} of {sorted(open_pdfs)}")
        if theirs.get("is_retracted") and not work.get("retraction"):
            found.append("retraction lost")
        return found

    kept = records(run, list(works))
    check(kept, "crossref", problems)


@pytest.mark.usefixtures("world")
def test_recorded_arxiv_entries(run: Runner, net: FakeInternet, shared: Path) -> None:
    """Entries of feeds from 2007 to 2026, in one feed."""
    entries: dict[str, str] = {}
    for path in sorted((shared / "recorded" / "arxiv").glob("*.xml")):
        for entry in re.findall(r"<entry.*?</entry>", path.read_text(encoding="utf-8"), re.DOTALL):
            found = re.search(r"<id[^>]*>https?://arxiv\.org/abs/([^<]+?)(v\d+)?</id>", entry)
            if found:
                entries.setdefault(found[1], entry)
    assert len(entries) > 30

    def feed(request: Any) -> Reply:
        ids = [re.sub(r"v\d+$", "", one) for one in request.query["id_list"].split(",")]
        body = ATOM_HEAD + "".join(entries[one] for one in reversed(ids) if one in entries) + "</feed>"
        return Reply(body=body, content_type="application/atom+xml")

    net.route(ARXIV, "/api/query", feed)

    def problems(ref: str, work: Json) -> list[str]:
        entry = entries[ref.removeprefix("arXiv:")]
        found = [name for name in ("title", "authors", "year", "abstract") if not work.get(name)]
        if len(work.get("authors") or []) != len(re.findall(r"<author\b", entry)):
            found.append(f"{len(work.get('authors') or [])} authors")
        return found

    check(records(run, [f"arXiv:{name}" for name in entries]), "arxiv", problems)
    assert len(net.requests(ARXIV, "/api/query")) == 1


# ############################################################################
# Where PDFs come from
# ############################################################################


def fetched(run: Runner, *words: str, **how: Any) -> Any:
    result = run("fetch", *words, "--json", **how)
    answer = result.json()
    assert answer["ok"] is True, f"{result}\n{run.net.text()}"
    return answer


REPOSITORIES = {
    *("zenodo.org", "api.figshare.com", "ndownloader.figshare.com", "api.osf.io", "osf.io", "europepmc.org"),
    *("pmc-oa-opendata.s3.amazonaws.com", "www.biorxiv.org", "api.biorxiv.org", ARXIV, EUROPEPMC),
}


def test_an_open_article_asks_no_repository(run: Runner, world: World, net: FakeInternet) -> None:
    fetched(run, world.paper("10.1371/fake.2").doi)
    assert not net.connect_hosts() & REPOSITORIES


def test_zenodo_gives_its_own_file(run: Runner, world: World, net: FakeInternet) -> None:
    body = pdf_bytes("the paper")
    world.zenodo_paper(1207631, files={"data.csv": b"a,b", "Paper.PDF": body})
    answer = fetched(run, "10.5281/zenodo.1207631")
    assert (answer["sha256"], answer["source"], answer["host"]) == (sha256(body), "zenodo", "zenodo.org")
    assert net.connect_hosts() & REPOSITORIES == {"zenodo.org"}


@pytest.mark.long
def test_a_zenodo_record_without_a_pdf_has_none(run: Runner, world: World, net: FakeInternet) -> None:
    world.zenodo_paper(1207639, files={"data.csv": b"a,b"})
    answer = run("fetch", "10.5281/zenodo.1207639", "--json").json()
    assert (answer["ok"], answer["error"]["code"]) == (False, "NO_OA_AVAILABLE")
    assert not net.requests("zenodo.org", "data.csv")


def test_figshare_gives_its_own_file(run: Runner, world: World, net: FakeInternet) -> None:
    """The site answers programs 202 and nothing: the API and the downloader are asked instead."""
    world.figshare_paper(4906367)
    answer = fetched(run, "10.6084/m9.figshare.4906367.v1")
    assert (answer["sha256"], answer["source"]) == (sha256(pdf_bytes("figshare 4906367")), "figshare")
    assert "figshare.com" not in net.connect_hosts()
    assert net.connect_hosts() & REPOSITORIES <= {"api.figshare.com", "ndownloader.figshare.com"}


@pytest.mark.parametrize("bucket", ["cos-osf-prod-files-us-east1", pytest.param(None, marks=LONG)])
def test_osf_gives_its_own_file(run: Runner, world: World, net: FakeInternet, bucket: str | None) -> None:
    """files.osf.io sends the file itself or to OSF's own bucket (public code shows its name)."""
    world.osf_paper("f7txy")
    world.osf.bucket = bucket
    answer = fetched(run, "10.31219/osf.io/f7txY")
    assert (answer["sha256"], answer["source"]) == (sha256(pdf_bytes("OSF f7txy")), "osf")
    assert net.connect_hosts() & REPOSITORIES <= {"api.osf.io", "osf.io"}


def test_pubmed_central_comes_from_its_open_bucket(run: Runner, world: World, net: FakeInternet) -> None:
    """The newest version; PMC's website, which forbids programs, is never asked."""
    world.pubmed_paper("30571677", pmcid="PMC1017419")
    newest = world.pmc.add("PMC1017419", version=2)
    answer = fetched(run, "PMC1017419")
    assert (answer["sha256"], answer["source"]) == (sha256(newest), "pmc")
    assert not {"www.ncbi.nlm.nih.gov", "pmc.ncbi.nlm.nih.gov"} & net.connect_hosts()


def test_europe_pmc_renders_what_the_bucket_lacks(run: Runner, world: World, net: FakeInternet) -> None:
    """Case PD-05: PMC's own site is a wall, Europe PMC answers 500 once and then the PDF."""
    world.crossref_work(DOI)
    site = "https://pmc.ncbi.nlm.nih.gov/articles/PMC11871994/pdf/"
    world.openalex_work(
        DOI, Location(site, "https://pmc.ncbi.nlm.nih.gov/articles/PMC11871994", repository=True), pmcid="PMC11871994"
    )
    body = pdf_bytes("rendered")
    world.europepmc.pdfs["PMC11871994"] = seq(Reply(500, "oops"), pdf(body))
    answer = fetched(run, DOI)
    assert (answer["sha256"], answer["host"]) == (sha256(body), "europepmc.org")
    assert len(net.requests("europepmc.org")) == 2
    assert not net.requests("pmc.ncbi.nlm.nih.gov")


def test_pmc_that_blocks_programs_is_not_called_closed(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI)
    world.openalex_work(
        DOI, Location(None, "https://pmc.ncbi.nlm.nih.gov/articles/PMC11871994", repository=True), pmcid="PMC11871994"
    )
    net.route("europepmc.org", None, html("<h1>Not Found</h1>", 404))
    error = run("fetch", DOI, "--json").json()["error"]
    assert (error["code"], error["reason"]) == ("NO_OA_AVAILABLE", "blocked_by_host")
    assert "blocks" in error["message"].lower()


def test_a_free_copy_europe_pmc_lists_by_doi(run: Runner, world: World, net: FakeInternet) -> None:
    """Lessons: `isOpenAccess: N` with a free PDF in the list is a copy that may be had."""
    world.closed(DOI)
    world.europepmc.add(doi=DOI, pmid="30571677", pmcid="PMC1017419", isOpenAccess="N")
    answer = fetched(run, DOI)
    assert answer["sha256"] == sha256(pdf_bytes("Europe PMC PMC1017419"))
    assert answer["host"] == "europepmc.org"
    assert net.requests(EUROPEPMC)[0].t_start > net.requests(OPENALEX)[0].t_start


def test_a_biorxiv_paper_comes_from_its_server(run: Runner, world: World) -> None:
    """No index names a copy: the server itself has one, of the version asked for."""
    doi = "10.1101/2020.05.23.112201"
    world.biorxiv_paper(doi, versions=2)
    answer = fetched(run, f"{doi}v2")
    assert answer["sha256"] == sha256(world.biorxiv.pdf(doi, 2))
    assert (answer["ref"], answer["version"], answer["host"]) == (doi, "submittedVersion", "www.biorxiv.org")


def preprint_at_europe_pmc(world: World, doi: str) -> bytes:
    """Europe PMC's copy of a preprint, under its own PPR number."""
    url = "https://europepmc.org/api/fulltextRepo?pprId=PPR123456&type=FILE&fileName=x.pdf&mimeType=application/pdf"
    links = [
        {
            "availability": "Open access",
            "availabilityCode": "OA",
            "documentStyle": "pdf",
            "site": "Europe_PMC",
            "url": url,
        }
    ]
    world.europepmc.add(doi=doi, source="PPR", id="PPR123456", fullTextUrlList={"fullTextUrl": links}, license="cc by")
    return world.pdf(url)


@pytest.mark.parametrize("ask_for", ["article", "preprint"])
def test_a_walled_biorxiv_preprint_is_had_from_europe_pmc(
    run: Runner, world: World, net: FakeInternet, ask_for: str
) -> None:
    """bioRxiv shows programs a wall on most days; Europe PMC keeps copies of preprints."""
    preprint = "10.1101/2020.05.23.112201"
    world.biorxiv_paper(preprint, published_doi=DOI)
    world.biorxiv.walled = True
    world.closed(DOI, relation={"has-preprint": [{"id-type": "doi", "id": preprint, "asserted-by": "subject"}]})
    body = preprint_at_europe_pmc(world, preprint)
    answer = fetched(run, DOI if ask_for == "article" else preprint)
    assert (answer["sha256"], answer["version"], answer["host"]) == (sha256(body), "submittedVersion", "europepmc.org")
    if ask_for == "article":
        assert answer["ref"] == DOI
        assert warned(answer, "preprint", preprint)
    assert len(net.requests("www.biorxiv.org")) <= 2, "a wall is not retried"


def test_a_medrxiv_preprint_is_asked_of_medrxiv(run: Runner, world: World) -> None:
    """bioRxiv and medRxiv share a prefix; the registry names the server."""
    preprint = "10.1101/2021.02.03.21251234"
    world.biorxiv_paper(preprint, server="medrxiv", published_doi=DOI)
    world.closed(DOI, relation={"has-preprint": [{"id-type": "doi", "id": preprint, "asserted-by": "subject"}]})
    answer = fetched(run, DOI)
    assert (answer["sha256"], answer["host"]) == (sha256(world.biorxiv.pdf(preprint)), "www.medrxiv.org")
