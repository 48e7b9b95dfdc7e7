"""The operation catalogue: every example runs, parameters keep to their places, cursors lose and repeat nothing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import anyio
import httpx
import jsonschema
import pytest
from fake_internet import Reply, html
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_24_mcp import schemas, serve  # noqa: F401 - fixtures

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Home, Result, Runner
    from fake_internet import Answer, FakeInternet, Request
    from test_24_mcp import Session
    from worlds import World

    Ask = Callable[..., dict[str, Any]]

ROWS = list(doiget.ROWS.values())
EMAIL = {"DOIGET_EMAIL": "ada@analytical.engine.org"}
each_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


# ############################################################################
# The table
# ############################################################################


def test_there_are_enough_rows_and_no_more() -> None:
    assert 24 <= len(ROWS) <= 40
    assert {row.source for row in ROWS} >= {
        *("crossref", "openalex", "datacite", "arxiv", "europepmc", "semanticscholar", "opencitations", "inspire"),
        "doaj",
    }
    folded = [doiget._folded(row.name) for row in ROWS]
    assert len(set(folded)) == len(folded)


@each_row
def test_a_row_says_what_a_model_must_know(row: doiget.CatalogueRow) -> None:
    source, verb, *noun = row.name.split()
    assert source in doiget.APIS
    assert verb in {"search", "get", "list"}
    assert noun
    sentences = re.findall(r"[^.]+\.(?: |$)", row.description)
    assert len(sentences) == 2
    assert sentences[-1].startswith("Use when ")
    head = " ".join(row.description.split()[:12])
    assert head.lower().startswith(verb)
    assert row.dialect.title in head or row.source == "biorxiv"
    assert len(row.description) <= 220
    fields = row.fields()
    assert verb != "search" or fields["query"].required
    assert all(len(param.arg.help) > 4 for param in fields.values())
    assert "limit" not in fields or (fields["limit"].arg.minimum, fields["limit"].arg.maximum) == (1, 100)
    assert row.paging().endswith(".")
    assert row.costs().endswith(".")
    named = set(re.findall(r"\{(\w+)", " ".join([row.path, *row.query.values()])))
    assert named - {"own"} | ({"ref"} if row.own else set()) == fields.keys() - {"limit"}


@each_row
def test_the_example_keeps_to_its_own_schema(row: doiget.CatalogueRow) -> None:
    about = doiget.describe_row(row)
    jsonschema.Draft202012Validator.check_schema(about["params"])
    jsonschema.Draft202012Validator(about["params"]).validate(about["example"]["params"])
    assert about["example"]["operation"] == row.name
    assert doiget.check_params(row, row.example)
    assert about == json.loads(json.dumps(about))
    assert len(json.dumps(about)) < 3000


@each_row
def test_wrong_missing_and_extra_parameters_are_named(row: doiget.CatalogueRow) -> None:
    good = dict(row.example)
    for name, param in row.fields().items():
        wrong: list[Any] = {
            str: ["", [1], {"a": 1}, "x" * 5000],
            int: ["many", 0, -1, 10**9, 2.5],
            bool: ["maybe", 2],
        }[param.kind]
        wrong += ["no such thing \u202e"] if param.arg.pattern or name == "ref" else []
        for value in wrong:
            check_refusal(row, good | {name: value}, name)
        if param.required:
            check_refusal(row, {key: value for key, value in good.items() if key != name}, name)
    check_refusal(row, good | {"colour": "red"}, "colour")
    assert doiget.check_params(row, {key: str(value) for key, value in good.items()}), "numeric strings are numbers"


def check_refusal(row: doiget.CatalogueRow, params: dict[str, Any], name: str) -> None:
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.check_params(row, params)
    assert caught.value.reason == "schema", (params, caught.value)
    assert name in caught.value.message, (params, caught.value)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("who cites this", "openalex list citing works"),
        ("citations of a preprint", "semanticscholar list citing works"),
        ("retracted papers", "crossref search retractions"),
        ("bibliography of a paper", "crossref list references"),
        ("open access journals", "doaj search journals"),
        ("funder", "crossref search funders"),
        ("datasets", "datacite search datasets"),
        ("publications by an author", "openalex list author works"),
        ("versions of a preprint", "biorxiv list versions"),
        ("Europe PMC search", "europepmc search works"),
        ("newest arXiv papers in a category", "arxiv list newest works"),
    ],
)
def test_what_is_wanted_comes_first(query: str, first: str) -> None:
    assert first in [row.name for row in doiget.rank_rows(query)[:3]]


# ############################################################################
# Requests
# ############################################################################

DOIS = st.builds("10.{}/{}".format, st.integers(1000, 99999), st.text(min_size=1, max_size=30))
HOSTILE = [
    *("../../admin", "..", ".", "a/../../b", "?x=1", "#frag", "http://evil.example/", "//evil.example", "%2e%2e/"),
    *("10.1000/../../etc", "10.1000/a?b=c&d", "10.1000/..", "10.1000/a/./b", "10.1000/a%2f..%2fb", "10.1000/a,b"),
    *("1745-2473", "A5023888391", "100000001", "cs.CL", "pmid:123", "PMC123", "arXiv:2401.12345v2", '") OR ("'),
]
TEXTS = st.one_of(st.text(max_size=40), DOIS, st.sampled_from(HOSTILE))


@each_row
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_no_parameter_leaves_its_place(row: doiget.CatalogueRow, data: st.DataObject) -> None:
    names = [name for name, param in row.fields().items() if param.kind is str]
    check_places(row, {name: data.draw(TEXTS) for name in names})


@each_row
def test_no_hostile_text_leaves_its_place(row: doiget.CatalogueRow) -> None:
    for name in [name for name, param in row.fields().items() if param.kind is str]:
        for text in HOSTILE:
            check_places(row, {name: text})


def check_places(row: doiget.CatalogueRow, texts: dict[str, str]) -> None:
    params = dict(row.example) | texts
    try:
        values = doiget.check_params(row, params)
        path, query = doiget.word_request(row, values, "MED/1" if row.source == "europepmc" else "W1")
    except doiget.DoigetError as error:
        assert error.reason == "schema"  # noqa: PT017 - most texts are refused
        return
    url = httpx.URL(f"https://{doiget.APIS[row.source].host}{path}?{doiget.query_string(query)}")
    assert url.host == doiget.APIS[row.source].host
    assert url.raw_path.decode().partition("?")[0] == path, "nothing is normalised away"
    slot = r"[^?#]+" if row.source in {"opencitations", "biorxiv"} else r"[^/?#]+"
    pattern = re.sub(r"\\\{\w+(?::\w+)?\\\}", "SLOT", re.escape(row.dialect.base + row.path)) + "SLOT" * (
        "/" in row.query
    )
    pattern = pattern.replace("SLOT", r"(?:doi/|arxiv/|MED/)?" + slot)
    assert re.fullmatch(pattern, path), (pattern, path)
    assert not {".", ".."} & {*path.split("/")}
    asked = dict(httpx.QueryParams(url.query.decode()))
    assert asked.keys() <= {name for name in row.query if name != "/"}


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
@example("W10")
@example("WyJhIl0")
def test_rubbish_is_no_cursor(text: str) -> None:
    row = doiget.ROWS["crossref search works"]
    if not text:
        return
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.read_cursor(row, doiget.check_params(row, {"query": "a"}), text)
    assert caught.value.reason == "bad_cursor"


@given(st.integers(1, 100), st.integers(0, 10**6), st.text(max_size=30), st.integers(0, 10**6))
def test_a_cursor_is_read_by_the_same_call_alone(size: int, at: int, mark: str, base: int) -> None:
    row, other = doiget.ROWS["openalex list citing works"], doiget.ROWS["openalex list references"]
    values = doiget.check_params(row, {"ref": "10.1000/a"})
    spot = doiget.Spot(size, at, mark, base, "W12")
    cursor = doiget.make_cursor(row, values, spot)
    assert doiget.read_cursor(row, values, cursor) == spot
    assert doiget.read_cursor(row, values | {"limit": 7}, cursor) == spot, "a page may be of another length"
    for wrong in ((other, values), (row, doiget.check_params(row, {"ref": "10.1000/b"}))):
        with pytest.raises(doiget.DoigetError) as caught:
            doiget.read_cursor(*wrong, cursor)
        assert caught.value.reason == "bad_cursor"


@pytest.mark.parametrize(
    "change",
    [{"size": 0}, {"size": 101}, {"at": -1}, {"at": "1"}, {"at": True}, {"base": 2.5}, {"mark": 5}, {"own": 123}]
    + [{"own": text} for text in ("../x", "W1,doi:2", "W\u0661", "a b")],
)
def test_a_forged_cursor_is_no_cursor(change: dict[str, Any]) -> None:
    row = doiget.ROWS["openalex list citing works"]
    values = doiget.check_params(row, {"ref": "10.1000/a"})
    forged = doiget.make_cursor(row, values, doiget.replace(doiget.Spot(20, 20, "", 20, "W1"), **change))
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.read_cursor(row, values, forged)
    assert caught.value.reason == "bad_cursor"
    assert "same params" in caught.value.message


@pytest.mark.parametrize("query", ["a) OR (b", '"a', "(a", "a)", '") OR (" (', 'a \\") OR (\\"b', "a\\"])
def test_a_query_stays_in_its_brackets(query: str) -> None:
    rows = [row for row in ROWS if "({query})" in "".join(row.query.values())]
    assert {row.source for row in rows} == {"datacite", "arxiv", "europepmc", "inspire", "doaj"}
    for row in rows:
        values = doiget.check_params(
            row, {"query": '("a b" OR (c)) "("', **{k: v for k, v in row.example.items() if k != "query"}}
        )
        assert "(c))" in unquote(str(doiget.word_request(row, values)))
        with pytest.raises(doiget.DoigetError, match="'query'"):
            doiget.word_request(row, values | {"query": query})


def test_archives_of_arxiv_stand_for_all_their_categories() -> None:
    row = doiget.ROWS["arxiv list newest works"]
    for name, asked in (
        ("hep-th", "cat:hep-th"),
        ("cs.CL", "cat:cs.CL"),
        ("astro-ph", "cat:astro-ph*"),
        ("math", "cat:math.*"),
    ):
        assert doiget.word_request(row, {"category": name})[1]["search_query"] == asked
    asked = doiget.word_request(doiget.ROWS["doaj search journals"], {"query": "why? *marine~"})[0]
    assert asked.endswith("/why%20%20%20marine%20")


def refused(name: str, **params: Any) -> str:
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.check_params(doiget.ROWS[name], params)
    assert caught.value.reason == "schema"
    return f"{caught.value.message} {caught.value.hint}"


def test_a_wrong_parameter_is_told_what_it_must_be() -> None:
    wrong_kind = refused("crossref get work", ref="2401.12345")
    assert "must be a DOI; arXiv:2401.12345 is not" in wrong_kind
    assert "`arxiv get work`" in wrong_kind
    assert "resolve" in wrong_kind
    assert "at bioRxiv or medRxiv" in refused("biorxiv list versions", ref="10.1371/a")
    assert "title" in refused("openalex get work", ref="Attention is all you need")
    for two in ("10.1371/a,10.1371/b", "10.1371/a 10.1371/b", "2401.12345;2401.12346"):
        assert "'ref'" in (told := refused("openalex get work", ref=two))
        assert "one only" in told
    assert "one of: biorxiv, medrxiv" in refused(
        "biorxiv list versions", ref="10.1101/2020.04.30.071407", server="arxiv"
    )
    assert "`openalex search authors`" in refused("openalex list author works", author_id="Hopper")
    assert "must be the ISSN of a journal" in refused("crossref list journal works", issn="Nature")
    assert "must not be empty" in refused("crossref search works", query=" ")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("crossref get work 10.1371/a", "write ref=10.1371/a."),
        ("crossref search works soil", "write query=soil."),
        ("crossref search works wet soil", "write 'query=wet soil'."),
        ('crossref_search_works {"query": "soil", "limit": 3}', "write query=soil limit=3."),
        ("crossref list journals", "Did you mean: crossref"),
    ],
)
def test_what_is_said_behind_a_name_goes_by_name(name: str, advice: str) -> None:
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.find_row(name)
    assert caught.value.reason == "unknown_operation"
    assert advice in caught.value.hint


def read(name: str, body: Any, **params: Any) -> doiget.Page:
    return doiget._read_page(doiget.ROWS[name], params, doiget.Spot(20), body, len)


@pytest.mark.parametrize(
    ("name", "body"),
    [(f"semanticscholar {what}", body) for what in ("search works", "list references")
     for body in ({}, None, {"error": "x"}, {"message": "x"}, {"total": 3})]
    + [("biorxiv list versions", body) for body in ({}, {"messages": []}, None)]
    + [("crossref list references", body) for body in ({}, {"message": {}}, {"message": "x"})]
    + [("openalex search works", {"meta": {"count": 15}, "results": part}) for part in ([], [None, {}, 3])]
    + [("europepmc list references", body) for body in ({}, {"hitCount": 3})],
)  # fmt: skip
def test_what_is_no_list_is_no_empty_list(name: str, body: Any) -> None:
    with pytest.raises(doiget.DoigetError) as caught:
        read(name, body, ref="10.1000/a")
    assert caught.value.reason == "bad_body"


@pytest.mark.parametrize(
    ("name", "body", "params", "told"),
    [
        ("semanticscholar list references", {"data": []}, {"ref": "10.1000/a"}, "another source"),
        ("semanticscholar search works", {"total": 0}, {"query": "a"}, ""),
        ("crossref list references", {"message": {"DOI": "10.1000/a"}}, {"ref": "10.1000/a"}, "another source"),
        ("europepmc list references", {"hitCount": 0}, {"ref": "pmid:1"}, "another source"),
        ("opencitations list references", [], {"ref": "10.1000/a"}, "the ref '10.1000/a'"),
        (
            "openalex list author works",
            {"meta": {"count": 0}, "results": []},
            {"author_id": "A123456"},
            "the author_id",
        ),
        ("arxiv list newest works", {"works": [], "total": 0}, {"category": "cs.XX"}, "the category 'cs.XX'"),
        (
            "openalex search works",
            {"meta": {"count": 0}, "results": []},
            {"query": "a", "type": "x-y"},
            "the type 'x-y'",
        ),
    ],
)
def test_an_empty_list_says_what_it_leaves_open(name: str, body: Any, params: dict[str, Any], told: str) -> None:
    page = read(name, body, **params)
    assert (page.items, page.next_cursor) == ([], None)
    assert told in " ".join(page.warnings)
    assert bool(told) is bool(page.warnings)


def test_what_cannot_be_read_is_counted() -> None:
    work = {"title": "A", "id": "https://openalex.org/W1"}
    page = read("openalex search works", {"meta": {"count": 3}, "results": [None, work, 7]}, query="a")
    assert len(page.items) == 1
    assert page.warnings[0].startswith("2 entries of OpenAlex")
    assert doiget.parse_semanticscholar({"title": "A", "publicationTypes": [["Book"], {"a": 1}, "Book"]}) is not None
    nested = [[["x" * 300] * 10] * 10, {"name": ["y"]}, "z"]
    item = doiget.replace(doiget.DIALECTS["crossref"], **doiget._JOURNAL).parse({"title": "J", "subjects": nested})
    assert item == {"kind": "journal", "name": "J", "subjects": ["y", "z"]}


# ############################################################################
# Examples
# ############################################################################


def fill_world(world: World) -> None:
    """Put in what the examples ask for."""
    title = "Density functional theory of spin liquid stem cells on a coral reef"
    for n in range(3):
        world.crossref_work(
            f"10.1000/{n}", title=f"{title} {n}", ISSN=["1745-2473"], date="2021-05",
            funder=[{"DOI": "10.13039/100000001", "name": "NSF"}],
            update_to=[{"DOI": "10.1016/s0140-6736(97)11096-0", "type": "retraction", "updated": {}}],
            relation={"is-preprint-of": [{"id-type": "doi", "id": "10.1038/s41586-020-2012-7"}]},
        )  # fmt: skip
    world.crossref_work("10.1038/nphys1170", title="Measured measurement")
    cited = [{"key": "1", "unstructured": "Lovelace, A. Notes. 1843. doi:10.1000/2"}, {"key": "2", "DOI": "10.1000/0"}]
    full = {
        "article-title": "APL regulates",
        "author": "Bonke",
        "year": "2003",
        "journal-title": "Nature",
        "volume": "426",
    }
    world.crossref_work("10.7554/elife.01567", title="A plant", reference=[*cited, {"key": "3", **full}, {"key": "4"}])
    world.crossref.add_journal("Nature Physics", "1745-2473", "1745-2481")
    world.crossref.add_funder("100004440", "Wellcome Trust", "WT")
    world.crossref.add_funder("100000001", "National Science Foundation", "NSF", location="United States")
    first = world.openalex_work("10.1038/nphys1170", title="Measured measurement")
    mine = first["id"].rpartition("/")[2]
    citing = world.openalex_work(
        "10.1000/citing", title="It cites perovskite solar cells", references=[mine], date="2022-04-05"
    )
    first["referenced_works"] = [citing["id"]]
    citing["open_access"] |= {"is_oa": True, "oa_status": "gold"}
    citing["authorships"][0]["author"]["orcid"] = "https://orcid.org/0000-0002-1825-0097"
    world.openalex.add_author("Grace Hopper", "0000-0001-0002-0003")
    related = {
        "relatedIdentifier": "10.5281/zenodo.48440",
        "relatedIdentifierType": "DOI",
        "relationType": "IsVersionOf",
    }
    for n, kind in enumerate(("Software", "Dataset", "Dataset")):
        world.datacite_work(
            f"10.5281/zenodo.4844{n}", title=f"Sea surface temperature and ocean acidification {n}", date="2019",
            types={"resourceTypeGeneral": kind}, relatedIdentifiers=[related] if n else [],
        )  # fmt: skip
    world.arxiv.add(
        "1706.03762",
        title="Attention: retrieval augmented generation",
        category="cs.CL",
        published="2017-06-12T00:00:00Z",
    )
    world.arxiv.add("2401.00001", title="Strings", category="hep-th", doi="10.1000/0", versions=2)
    one = world.europepmc.add(
        pmid="39038316", doi="10.1000/0", title="Malaria vaccine for all.", year=2021, pmcid="PMC77"
    )
    two = world.europepmc.add(pmid="39000000", title="It cites a vaccine.", year=2023)
    world.europepmc.cite(two, one)
    world.europepmc.cite(one, two)
    world.europepmc.add(pmid="PPR1", title="Protein language model.", source="PPR", doi="10.1101/2024.01.01.000001")
    attention = world.semanticscholar.add(
        "Attention is all you need", ArXiv="1706.03762", pdf_url="https://arxiv.org/pdf/1"
    )
    nets = world.semanticscholar.add("Graph neural networks", DOI="10.1000/gnn", cites=[attention], year=2021)
    world.semanticscholar.links.append((attention["paperId"], nets["paperId"]))
    world.opencitations.add("10.1000/0", "10.1108/jd-12-2013-0166", "2019-01")
    world.opencitations.add("10.1108/jd-12-2013-0166", "omid:br/061 doi:10.1000/1 pmid:123", "2015-03-09")
    ids = {"arxiv_eprints": [{"value": "1207.7214"}], "dois": [{"value": "10.1016/j.physletb.2012.08.020"}]}
    world.inspire.add("1124337", "Observation of the Higgs boson mass", collaborations=[{"value": "ATLAS"}], **ids)
    world.inspire.add(
        "1",
        "It cites a boson",
        cites=["1124337"],
        year=2014,
        publication_info=[],
        arxiv_eprints=[{"value": "1401.1234"}],
    )
    world.doaj.add("10.1000/park", "Smart parking systems: a survey")
    world.doaj.add_journal("Marine Biology Open", "1234-5679")
    world.biorxiv.add("10.1101/2020.04.30.071407", versions=2, published_doi="10.1000/0")


def ok(result: Result) -> Result:
    assert result.rc == 0, result
    return result


def fails(result: Result, status: int) -> Result:
    assert result.rc == status, result
    return result


WORK_FIELDS = {
    *("ref", "type", "title", "authors", "year", "date", "container_title", "doi", "retraction", "relations"),
    *("authors_total", "oa_url"),
}


def check_items(row: doiget.CatalogueRow, answer: dict[str, Any]) -> None:
    """Check the shape that every answer of the catalogue has."""
    assert answer["operation"] == row.name
    assert answer["source"] == row.source
    assert answer["items"], "the example finds something"
    for item in answer["items"]:
        if "kind" in item:
            assert item["name"]
            continue
        assert item.keys() >= WORK_FIELDS
        assert item["abstract"] is None
        assert len(item["authors"]) <= 3
        assert item["ref"] is None or str(doiget.parse_ref(item["ref"])) == item["ref"]
    assert any(item.get("ref") for item in answer["items"]) or "kind" in answer["items"][0]


def test_every_example_runs(world: World, net: FakeInternet, serve: Callable[..., Session]) -> None:  # noqa: F811
    fill_world(world)
    session, answers = serve(env=EMAIL), {}
    check_a_model_lists_reads_and_calls(session)
    waiting = {row.name: session.start("call_operation", **doiget.describe_row(row)["example"]) for row in ROWS}
    for row in ROWS:
        answer = session.result(waiting[row.name], "call_operation", 60)
        assert answer["ok"], (row.name, answer)
        check_items(row, answer)
        answers[row.name] = answer["items"]
    assert answers["crossref get work"][0]["title"] == "Measured measurement"
    references = answers["crossref list references"]
    assert [item["ref"] for item in references] == ["10.1000/2", "10.1000/0", None]
    assert references[2] | {"title": "APL regulates", "year": 2003, "container_title": "Nature"} == references[2]
    assert {"kind": "is-retraction-of", "ref": "10.1016/s0140-6736(97)11096-0"} in answers["crossref list updates"][0][
        "relations"
    ]
    assert answers["crossref search journals"][0]["issn"] == ["1745-2473", "1745-2481"]
    assert (
        answers["crossref search funders"][0] | {"id": "100004440", "name": "Wellcome Trust"}
        == answers["crossref search funders"][0]
    )
    assert [item["ref"] for item in answers["openalex list citing works"]] == ["10.1000/citing"]
    assert [item["ref"] for item in answers["openalex list author works"]] == ["10.1000/citing"]
    assert answers["openalex search authors"][0]["institutions"] == ["Example University"]
    assert {item["ref"] for item in answers["datacite list versions"]} == {
        "10.5281/zenodo.48441",
        "10.5281/zenodo.48442",
    }
    assert answers["arxiv list newest works"][0]["ref"] == "arXiv:2401.00001", "the preprint, not the article"
    assert answers["arxiv get work"][0]["oa_url"].endswith("/pdf/1706.03762v1")
    assert [item["ref"] for item in answers["europepmc list citing works"]] == ["pmid:39000000"]
    assert answers["europepmc list references"][0]["container_title"] == "J Ex"
    assert answers["semanticscholar get work"][0]["ref"] == "arXiv:1706.03762"
    assert [item["ref"] for item in answers["semanticscholar list citing works"]] == ["10.1000/gnn"]
    assert [item["ref"] for item in answers["opencitations list references"]] == ["10.1000/1"]
    higgs = answers["inspire get work"][0]
    assert (higgs["ref"], higgs["pages"]) == ("10.1016/j.physletb.2012.08.020", "30-61")
    assert {"kind": "has-preprint", "ref": "arXiv:1207.7214"} in higgs["relations"]
    assert [item["ref"] for item in answers["inspire list citing works"]] == ["arXiv:1401.1234"]
    assert answers["doaj search works"][0]["oa_url"] == "https://open.example/10.1000/park"
    assert [item["edition"] for item in answers["biorxiv list versions"]] == ["1", "2"]
    asked = net.requests()
    assert {request.method for request in asked} == {"GET"}
    told = {request.host for request in asked if "analytical" in request.target or "analytical" in str(request.headers)}
    assert told == {"api.crossref.org", "api.datacite.org"}


def test_recorded_bodies_read_as_items(shared: Path) -> None:
    """Bodies as the APIs sent them, each as the answer of a row that could have got it."""
    folder, read = shared / "recorded", 0
    for pattern, name in (
        ("crossref/query/[actp]*.json", "crossref search works"),
        ("crossref/works/10.1[01]*.json", "crossref get work"),
        ("crossref/works/10.1[01]*.json", "crossref list references"),
        ("openalex/list/*.json", "openalex search works"),
        ("datacite/lists/list-2.json", "datacite search works"),
        ("europepmc/search-*.json", "europepmc search works"),
        ("semanticscholar/paper__DOI*.json", "semanticscholar get work"),
        ("semanticscholar/paper__search__match--[ANn]*.json", "semanticscholar search works"),
        ("semanticscholar/paper__search--*.json", "semanticscholar search works"),
        ("semanticscholar/paper__10.2139*references.json", "semanticscholar list references"),
        ("doaj/search-*.json", "doaj search works"),
        ("opencitations/coci-citations-*.json", "opencitations list citing works"),
        ("opencitations/coci-references-*.json", "opencitations list references"),
    ):
        row = doiget.ROWS[name]
        for path in sorted(folder.glob(pattern)):
            body = json.loads(path.read_text(encoding="utf-8"))
            if "error" in body or not isinstance(dict(body).get("message", {}) if isinstance(body, dict) else {}, dict):
                continue
            if name == "crossref get work" and "message" not in body:
                body = {"message": body}
            page = doiget._read_page(row, {}, doiget.Spot(1000 if row.dialect.pager == "whole" else 1), body, len)
            items = [doiget.render_item(item) for item in page.items]
            assert all(
                item["title"] or item["ref"] or item.get("comment") or item["doi"] or name.endswith("references")
                for item in items
            )
            read += len(items)
    assert read > 200


@pytest.fixture
def ask(home: Home, net: FakeInternet, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run call_operation inside this process, on the fake network, as its tool does; returns its answer."""
    for key, value in (home.env() | net.env() | EMAIL).items():
        monkeypatch.setenv(key, value)

    async def run(given: dict[str, Any]) -> dict[str, Any]:
        ctx = doiget.open_context(doiget.load_config({"timeout_s": "8"}))
        try:
            op = doiget.OPERATIONS["ops call"]
            answer: dict[str, Any] = await op.run(ctx, **doiget.check_arguments(op, given, for_tool=True))
        except doiget.DoigetError as error:
            return doiget.answer_of_error(error)
        finally:
            await ctx.client.aclose()
        return answer

    return lambda name, params, cursor="": anyio.run(run, {"operation": name, "params": params, "cursor": cursor})


# ############################################################################
# Through the command line and MCP
# ############################################################################


def test_a_person_finds_reads_and_runs_an_operation(world: World, run: Runner, net: FakeInternet) -> None:
    fill_world(world)
    found = ok(run("ops", "list", "who", "cites", "this")).out
    assert found.splitlines()[0] == "openalex list citing works"
    shown = ok(run("ops", "show", "crossref", "search", "works")).out
    command = next(line for line in shown.splitlines() if line.startswith("example: doiget "))
    assert command.endswith("works 'query=density functional theory' type=journal-article year_from=2010")
    assert "(text, at most 500 characters)" in shown
    assert "(whole number 1-100)" in shown
    words = ("ops", "call", "crossref", "search", "works", "query=density functional theory", "year_from=2010")
    text = ok(run(*words, "limit=2", env=EMAIL)).out
    assert "Density functional theory of spin liquid stem cells on a coral reef" in text
    one = ok(run(*words, "limit=2", "--json", env=EMAIL)).json()
    assert len(one["items"]) == 2
    again = ok(run(*words, "--cursor", one["next_cursor"], "limit=1", "--jsonl", env=EMAIL)).jsonl()
    assert len(again) == 1
    assert again[0]["ref"] not in [item["ref"] for item in one["items"]]
    net.clear()
    listed = ok(run("ops", "list", "--source", "Europe PMC", "--json")).json()
    assert listed["total"] == len(listed["operations"]) == 5
    assert not net.connects(), "looking is free"


def test_a_person_who_errs_is_told_how(ask: Ask, net: FakeInternet, capsys: pytest.CaptureFixture[str]) -> None:
    del ask  # it set the environment
    for words, status, told in (
        (("ops",), 0, "usage: doiget ops call"),
        (("ops", "--help"), 0, "usage: doiget ops show"),
        (("ops", "call", "--help"), 0, "[name=value ...]"),
        (("ops", "--json"), 2, '"reason": "schema"'),
        (("ops", "show", "nonsense"), 2, "unknown_operation"),
        (("ops", "call", "crossref search works"), 2, "'query' is missing"),
        (("ops", "nonsense"), 2, "There are: ops list, ops show, ops call."),
        (("ops", "list", "download", "pdf"), 0, "`doiget fetch`"),
        (("ops", "call", "crossref get work", "10.1371/a"), 2, "write ref=10.1371/a."),
        (("ops", "call", "crossref search works", "query=a", "query=b"), 2, "'query'"),
        (("ops", "call", "crossref search works", "query=wet", "soil"), 2, "'query=wet soil'"),
    ):
        assert doiget.main(words) == status, words
        assert told in "".join(capsys.readouterr()), words
    assert not net.connects()


def test_every_failure_has_its_own_answer(world: World, run: Runner, net: FakeInternet, ask: Ask) -> None:
    world.crossref.add_journal("Nature Physics", "1745-2473")
    for operation, params, reason, name in (
        ("crossref find works", {"query": "a"}, "unknown_operation", "crossref find works"),
        ("crossref search works", {}, "schema", "query"),
        ("crossref search works", {"query": "a", "limit": "many"}, "schema", "limit"),
        ("crossref search works", {"query": "a", "colour": "red"}, "schema", "colour"),
        ("crossref search works", {"query": "a", "year_from": 2020, "year_to": 2010}, "schema", "year_from"),
        ("crossref list updates", {"ref": "arXiv:2401.12345"}, "schema", "ref"),
        ("crossref list updates", {"ref": "10.1000/a,b"}, "schema", "ref"),
        ("opencitations list references", {"ref": "10.1000/../../x"}, "schema", "ref"),
        ("crossref search works", '{"query": "a", "query": "b"}', "schema", "query"),
        ("crossref get work", {"ref": "10.1000/none"}, "not_registered", "other sources may"),
        ("openalex list citing works", {"ref": "10.1000/none"}, "not_registered", "OpenAlex"),
        ("europepmc get work", {"ref": "pmid:1"}, "not_registered", "Europe PMC"),
        ("arxiv get work", {"ref": "2401.99999"}, "not_registered", "arXiv"),
        ("biorxiv list versions", {"ref": "10.1101/2020.01.01.000001"}, "not_registered", "bioRxiv/medRxiv"),
        ("crossref list journal works", {"issn": "1234-5678"}, "not_registered", "issn '1234-5678'"),
        ("crossref list funder works", {"funder": "12345"}, "not_registered", "funder '12345'"),
    ):
        error = ask(operation, params)["error"]
        assert error["reason"] == reason, (operation, params, error)
        assert name in error["message"], (operation, params, error)
        assert "invented" not in error["hint"]
    assert ask("crossref search works", {"query": "a"}, "xyz")["error"]["reason"] == "bad_cursor"
    nothing = ask("crossref search works", {"query": "zzz"})
    assert (nothing["items"], nothing["total"], nothing["next_cursor"]) == ([], 0, None)
    for answer, reason in (
        (Reply(400, {"status": "failed", "message-type": "validation-failure", "message": []}), "bad_query"),
        (html("<h1>Log in</h1>"), "intercepted"),
        (Reply(body={"status": "ok", "message": {"total-results": 500, "items": []}}), "bad_body"),
        (Reply(body={"status": "ok"}), "bad_body"),
        (Reply(401, "key?"), "unauthorized"),
        (Reply(501, "broken"), "upstream_error"),
        (Reply(429, "slow", headers={"retry-after": "500"}), "source_limit"),
    ):
        net.route("api.crossref.org", "/journals*", answer)
        error = ask("crossref search journals", {"query": "a"})["error"]
        assert error["reason"] == reason
        assert reason != "unauthorized" or "wants a key" in error["message"]
    offline = run("ops", "call", "crossref search works", "query=a", "--offline", "--json")
    assert fails(offline, 6).json()["error"]["reason"] == "offline"


@pytest.mark.parametrize(
    ("source", "operation", "status", "header"),
    [
        ("openalex", "openalex search works", 401, "authorization"),
        ("semanticscholar", "semanticscholar search works", 403, "x-api-key"),
        ("opencitations", "opencitations list references", 403, "authorization"),
    ],
)
def test_a_rejected_key_is_said(
    ask: Ask, net: FakeInternet, monkeypatch: pytest.MonkeyPatch, source: str, operation: str, status: int, header: str
) -> None:
    net.route(doiget.APIS[source].host, None, Reply(status, {"message": "Forbidden"}))
    monkeypatch.setenv(f"DOIGET_KEY_{source.upper()}", "s3cret")
    answer = ask(operation, dict(doiget.ROWS[operation].example))
    assert (answer["error"]["code"], answer["error"]["reason"]) == ("CAPABILITY_DENIED", "unauthorized")
    assert "rejected the key" in answer["error"]["message"]
    request = net.requests(doiget.APIS[source].host)[0]
    assert request.headers[header].endswith("s3cret")
    assert "s3cret" not in request.target + str(answer)


def check_a_model_lists_reads_and_calls(session: Session) -> None:
    assert session.fail("list_operations", cursor="o7000")["reason"] == "bad_cursor"
    assert "datacite" in session.fail("list_operations", source="elsewhere")["message"]
    one = session.call("list_operations")
    two = session.call("list_operations", cursor=one["next_cursor"])
    assert [row["name"] for row in one["operations"] + two["operations"]] == [row.name for row in ROWS]
    assert (one["total"], two["next_cursor"]) == (len(ROWS), None)
    about = session.call("get_operation", operation="openalex list citing works")["operation"]
    assert about.keys() == {"name", "source", "description", "params", "example", "paging", "costs"}
    as_text = session.call("call_operation", operation=about["name"], params=json.dumps(about["example"]["params"]))
    assert as_text == session.call("call_operation", **about["example"])
    for params in ("[]", "{", 7, {"ref": ["10.1000/a"]}, {"ref": {"a": 1}}):
        error = session.fail("call_operation", operation=about["name"], params=params)
        assert (error["code"], error["reason"]) == ("INVALID_ARGUMENT", "schema")
        assert "params" in error["message"]
    assert "'ref'" in session.fail("call_operation", operation=about["name"])["message"]
    assert session.fail("call_operation", operation="rm -rf", params={})["reason"] == "unknown_operation"
    assert "operation" in session.fail("call_operation", params={})["message"]
    tools = session.ask("tools/list")["result"]["tools"]
    ours = [tool for tool in tools if tool["name"].endswith(("_operation", "_operations"))]
    assert len(ours) == 3
    assert len(json.dumps(ours, separators=(",", ":")).encode()) <= 2450


# ############################################################################
# Pages
# ############################################################################

COUNTS = [250, pytest.param(1000, marks=pytest.mark.long)]


def stumbling(answer: Callable[[Request], Answer], at: int) -> Callable[[Request], Answer]:
    """Answer the request of a number with 429."""
    seen: list[str] = []

    def take(request: Request) -> Answer:
        seen.append(request.target)
        return Reply(429, "Too many requests", headers={"retry-after": "1"}) if len(seen) == at else answer(request)

    return take


def put_many(world: World, source: str, count: int) -> None:
    for n in range(count):
        title = f"Copper paper {n}: " + "a title of some length " * (n % 7)
        if source == "crossref":
            world.crossref.add(
                f"10.1000/{n}", title=title, authors=["Ada Lovelace", "C. Babbage", "G. Hopper", "E. Noether"]
            )
        elif source == "openalex":
            world.openalex.add(f"10.1000/{n}", title=title)
        elif source == "datacite":
            world.datacite.add(f"10.5281/zenodo.{n}", title=title)
        elif source == "europepmc":
            world.europepmc.add(pmid=str(10_000 + n), title=title)
        else:
            world.arxiv.add(f"2401.{n:05}", title=title)


def read_all(ask: Ask, operation: str, **params: Any) -> list[dict[str, Any]]:
    """Read the pages of a list to its end."""
    pages, cursor = list[dict[str, Any]](), ""
    while cursor is not None:
        pages.append(ask(operation, params, cursor))
        cursor = pages[-1]["next_cursor"]
    return pages


@pytest.mark.parametrize("count", COUNTS)
def test_many_works_come_once_each(count: int, world: World, net: FakeInternet, ask: Ask) -> None:
    for source in ("crossref", "openalex", "datacite", "europepmc", "arxiv"):
        put_many(world, source, count)
        host = doiget.APIS[source].host
        net.route(host, None, stumbling(getattr(world, source).answer, 3))
        pages = read_all(ask, f"{source} search works", query="copper paper", limit=100)
        refs = [item["ref"] for page in pages for item in page["items"]]
        assert len(refs) == len(set(refs)) == count, source
        assert {page["total"] for page in pages} == {count}
        assert max(len(json.dumps(page, ensure_ascii=False).encode()) for page in pages) < 60_000
        assert source == "arxiv" or min(len(page["items"]) for page in pages[:-1]) < 100, "some are cut to the bytes"
        assert [request.status for request in net.requests(host)].count(429) == 1
    assert min(net.gaps("export.arxiv.org")) > 0.9


def test_what_comes_at_once_is_cut_here(world: World, ask: Ask) -> None:
    for n in range(250):
        world.opencitations.add(f"10.1000/{n:03}", "10.1000/cited")
    pages = read_all(ask, "opencitations list citing works", ref="10.1000/cited", limit=100)
    assert sorted(item["ref"] for page in pages for item in page["items"]) == [f"10.1000/{n:03}" for n in range(250)]
    assert {page["total"] for page in pages} == {250}


def test_a_page_may_be_of_another_length(
    home: Home, world: World, net: FakeInternet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a page is asked to hold, nothing is lost or shown twice; without a limit it is as long as before."""
    for source, name in (("europepmc", "europepmc search works"), ("openalex", "openalex search works")):
        put_many(world, source, 23)
        refs, lengths, cursor = [], [], ""
        for limit in (5, 2, None, 50, 1, None, None, None):
            params = {"query": "copper paper"} | ({"limit": limit} if limit else {})
            page = call(home, net, monkeypatch, name, params, cursor)
            refs += [doiget.refs_of(item[0])[0] for item in page.items]
            lengths.append(len(page.items))
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(refs) == len(set(refs)) == 23
        assert lengths == [5, 2, 3, 5, 1, 4, 3]


def test_a_preprint_is_looked_for_at_both_servers(
    home: Home, world: World, net: FakeInternet, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.biorxiv.add("10.1101/2020.04.30.071407", server="medrxiv", versions=3)
    asked = {"ref": "10.1101/2020.04.30.071407", "limit": 2}
    one = call(home, net, monkeypatch, "biorxiv list versions", asked)
    two = call(home, net, monkeypatch, "biorxiv list versions", asked, one.next_cursor)
    assert [work.edition for work, _ in (*one.items, *two.items)] == ["1", "2", "3"]
    with pytest.raises(doiget.DoigetError, match=r"^NOT_FOUND .* biorxiv does not know the ref"):
        call(home, net, monkeypatch, "biorxiv list versions", asked | {"server": "biorxiv"})
    net.route("api.biorxiv.org", None, Reply(500, "broken"))
    with pytest.raises(doiget.DoigetError, match="upstream_error"):
        call(home, net, monkeypatch, "biorxiv list versions", asked)


def test_a_list_that_a_source_ends_early_says_so(
    home: Home, world: World, net: FakeInternet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenAlex shows ten thousand, whatever there are."""

    def answer(request: Request) -> Answer:
        work = world.openalex.add("10.1000/a")
        return {"meta": {"count": 90_000}, "results": [work] * int(request.query["per-page"])}

    net.route("api.openalex.org", None, answer)
    row = doiget.ROWS["openalex search works"]
    values = doiget.check_params(row, {"query": "a", "limit": 100})
    page = call(home, net, monkeypatch, row.name, values, doiget.make_cursor(row, values, doiget.Spot(100, 9900)))
    assert (len(page.items), page.total, page.next_cursor) == (100, 90_000, None)
    assert "10000" in page.warnings[0]
    assert net.requests()[0].query["page"] == "100"


def test_a_short_page_in_the_middle_loses_nothing(
    home: Home, world: World, net: FakeInternet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """arXiv sends fewer entries than asked for, now and then."""
    put = [world.arxiv.add(f"2401.{n:05}", title=f"Copper {n}").id for n in range(6)]

    def answer(request: Request) -> Answer:
        short = (
            unquote(request.target).replace("max_results=3", "max_results=2")
            if "start=0" in request.target
            else request.target
        )
        found = re.findall(r"start=(\d+)|max_results=(\d+)", short)
        start, size = (int(next(filter(None, pair))) for pair in sorted(found, key=lambda pair: pair[0] == ""))
        entries = [world.arxiv.papers[name].entry(1) for name in put[start : start + size]]
        return world.arxiv._atom(entries, len(put), start, size)

    net.route("export.arxiv.org", None, answer)
    params, seen, cursor = {"query": "copper", "limit": 3}, [], ""
    while cursor is not None:
        page = call(home, net, monkeypatch, "arxiv search works", params, cursor)
        seen += [work.arxiv_id for work, _ in page.items]
        cursor = page.next_cursor
    assert seen == put


def call(
    home: Home, net: FakeInternet, monkeypatch: pytest.MonkeyPatch, name: str, params: dict[str, Any], cursor: str = ""
) -> doiget.Page:
    """Run a row inside this process, its network the fake one."""
    for key, value in (home.env() | net.env()).items():
        monkeypatch.setenv(key, value)

    async def go() -> doiget.Page:
        ctx = doiget.open_context(doiget.load_config({"store": None}))
        try:
            return await doiget.call_row(ctx.client, name, params, cursor)
        finally:
            await ctx.client.aclose()

    return anyio.run(go)
