# ruff: noqa: RUF001, E501 - odd characters and long bodies are what is tested here
"""Section 8: parsers of API bodies. The fixtures are invented, each in its API's shape with one kind of oddity.

Bodies recorded from the real APIs are read too, where they lie beside the repository.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import doiget
from doiget import Author, DoigetError, Location, Relation, Retraction, Work

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "recorded"
needs_recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded bodies are not here")


def crossref(**fields) -> Work:
    parsed = doiget.parse_crossref({"DOI": "10.1000/X", **fields}, "2026-06-01")
    assert parsed is not None
    assert doiget.work_from_dict(doiget.work_to_dict(parsed[0])) == parsed[0]
    return parsed[0]


def datacite(**fields) -> Work:
    parsed = doiget.parse_datacite({"id": "10.5281/zenodo.1", "attributes": {"state": "findable", **fields}})
    assert parsed is not None
    assert doiget.work_from_dict(doiget.work_to_dict(parsed[0])) == parsed[0]
    return parsed[0]


# ---- Bodies ----


def test_parse_json():
    assert doiget.parse_json(b'\xef\xbb\xbf{"a": [1, NaN]}') == {"a": [1, None]}
    assert doiget.parse_json('"Té ü'.encode() + b' \x96 \xe9"') == "Té ü – é"
    assert doiget.parse_json(b"[" * 64 + b"]" * 64)
    for body, reason in (
        (b"Resource not found.", "bad_body"),
        (b"", "bad_body"),
        (b'{"cut": "sho', "bad_body"),
        (b"[" * 66 + b"]" * 66, "bad_body"),
        (b"[" * 100_000, "bad_body"),
        (b"9" * 10_000, "bad_body"),
        (b"\n<!DOCTYPE html><html>Blocked</html>", "intercepted"),
    ):
        with pytest.raises(DoigetError) as caught:
            doiget.parse_json(body)
        assert caught.value.reason == reason, body[:20]


def test_parse_xml():
    assert (
        doiget.parse_xml(b'<?xml version="1.0" encoding="latin-1"?><a xmlns="u"><b>\xe9</b></a>').find("{*}b").text
        == "é"
    )
    for body, reason in (
        (b"Rate exceeded.", "bad_body"),
        (b"", "bad_body"),
        (b"<a><b></a>", "bad_body"),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "bad_body"),
        (b"<a>" * 65 + b"</a>" * 65, "bad_body"),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', "bad_body"),
        (b"<!DOCTYPE HTML><html><body>Log in</body></html>", "intercepted"),
        (b"<html>", "intercepted"),
    ):
        with pytest.raises(DoigetError) as caught:
            doiget.parse_xml(body)
        assert caught.value.reason == reason, body[:20]


# ---- Crossref ----


def test_crossref_article():
    work = crossref(
        type="journal-article",
        title=["On&amp;#160;<i>Ix</i> "],
        author=[{"given": "Ann", "family": "Roe", "ORCID": "x"}],
        volume=7,
        issue="1-2",
        page="S19–S23",
        **{"article-number": "e0017", "container-title": ["J. Ex. &amp; Th."]},
        publisher="Ex Ltd",
        issued={"date-parts": [[2017, 2, 16]]},
        ISSN=["1234-5678", "12345678"],
        abstract="<jats:p>One.</jats:p>",
        language="en",
        URL="http://dx.doi.org/10.1000/x",
        **{"is-referenced-by-count": 3},
        editor=[{"given": "Ed", "family": "It"}],
    )
    assert work == Work(
        type="journal-article",
        title="On Ix",
        authors=(Author("Roe", "Ann"),),
        volume="7",
        issue="1-2",
        pages="S19-S23",
        article_number="e0017",
        container_title="J. Ex. & Th.",
        publisher="Ex Ltd",
        date="2017-02-16",
        year=2017,
        issn=("1234-5678",),
        abstract="One.",
        language="en",
        url="https://doi.org/10.1000/x",
        cited_by_count=3,
        editors=(Author("It", "Ed"),),
        doi="10.1000/x",
    )


@pytest.mark.parametrize("nothing", [[], None, [""], [None], "absent"])
def test_crossref_without_title_author_container(nothing):
    item = {"DOI": "10.1000/x", "type": "journal-article", "issued": {"date-parts": [[1999]]}}
    if nothing != "absent":
        item |= {"title": nothing, "author": nothing, "container-title": nothing}
    parsed = doiget.parse_crossref(item)
    assert parsed is not None
    assert (parsed[0].title, parsed[0].authors, parsed[0].container_title, parsed[0].year) == (None, (), None, 1999)
    assert parsed[1] == [
        "title missing at Crossref",
        "authors missing at Crossref",
        "container title missing at Crossref",
    ]


def test_crossref_journals_and_issues_need_no_authors():
    parsed = doiget.parse_crossref(
        {"DOI": "10.1000/x", "type": "journal-issue", "title": [], "container-title": ["B"], "issue": "15"}
    )
    assert parsed is not None
    assert parsed[1] == ["title missing at Crossref", "year missing at Crossref"]


def test_crossref_titles():
    assert crossref(title=[""], **{"original-title": ["自律神経"]}).title == "自律神経"
    stand_in = doiget.parse_crossref(
        {"DOI": "10.1000/x", "type": "other", "title": [""], "original-title": ["自律神経"]}
    )
    assert stand_in is not None
    assert "title missing at Crossref" in stand_in[1]
    two = crossref(title=["Distances", "Entfernungen"])
    assert (two.title, two.original_title) == ("Distances", "Entfernungen")
    assert crossref(title=["T"], **{"original-title": ["T"], "subtitle": ["", "Sub"]}) == crossref(
        title="T", subtitle="Sub"
    )
    assert crossref(title=["Über perforierende Verletzungen*"]).title == "Über perforierende Verletzungen"
    assert crossref(title=["Sensing performance\n    *"]).title == "Sensing performance"
    assert crossref(title=["A flare of Sgr A*"]).title == "A flare of Sgr A*"
    assert crossref(title="0").title == "0"


def test_crossref_authors():
    names = [
        {"name": "Example Atlas Consortium", "sequence": "first"},
        {"family": "Meghana"},
        {"given": "Dario", "family": "Moraes"},
        {"given": "Georg Henrik", "family": "Wright", "non-dropping-particle": "von"},
        {"family": "&NA;"},
        None,
        "x",
        {"given": "Solo Name"},
        {"suffix": "III", "given": "Amos B.", "family": "Smith"},
        {"literal": "A Team", "family": ""},
    ]
    assert crossref(author=names).authors == (
        Author(literal="Example Atlas Consortium"),
        Author("Meghana"),
        Author("Moraes", "Dario"),
        Author("Wright", "Georg Henrik", "von"),
        Author(literal="x"),
        Author(literal="Solo Name"),
        Author("Smith", "Amos B.", "", "III"),
        Author(literal="A Team"),
    )
    many = [{"family": f"A{i:04}", "given": "B."} for i in range(3000)]
    assert [author.family for author in crossref(author=many).authors] == [f"A{i:04}" for i in range(3000)]
    twice = [{"family": "Wang", "given": "Wei"}] * 2
    assert len(crossref(author=twice).authors) == 2  # two people may have one name


@pytest.mark.parametrize(
    ("fields", "date"),
    [
        ({"issued": {"date-parts": [[None]]}, "published-online": {"date-parts": [[2009, 3]]}}, "2009-03"),
        ({"issued": {"date-parts": [[None]]}}, None),
        ({"issued": {"date-parts": [[]]}}, None),
        ({"issued": {"date-parts": [[1976, 9]]}, "published-online": {"date-parts": [[2010, 5, 11]]}}, "1976-09"),
        ({"issued": {"date-parts": [[None]]}, "approved": {"date-parts": [[2011, 8, 25]]}}, "2011-08-25"),
        ({"posted": {"date-parts": [[2019, 4, 2]]}}, "2019-04-02"),
        ({"issued": {"date-parts": [[1893, 8, 11]]}}, "1893-08-11"),
        ({"created": {"date-parts": [[2020, 1, 1]]}}, None),
        ({"issued": None, "published": "2010"}, "2010"),
    ],
)
def test_crossref_dates(fields, date):
    work = crossref(**fields)
    assert work.date == date
    assert work.year == (int(date[:4]) if date else None)


def test_crossref_season():
    work = crossref(issued={"date-parts": [[1950]], "season": 1})
    assert (work.date, work.season) == ("1950", "1")


def test_crossref_types_and_venues():
    preprint = crossref(
        type="posted-content",
        subtype="preprint",
        **{"container-title": [], "group-title": "Genomics"},
        institution=[{"name": "bioRxiv"}],
    )
    assert (preprint.type, preprint.container_title, preprint.institution) == ("preprint", "bioRxiv", "bioRxiv")
    assert (
        crossref(
            type="posted-content", subtype="preprint", institution={"name": "bioRxiv", "place": ["-"]}
        ).container_title
        == "bioRxiv"
    )
    assert (
        crossref(type="posted-content", subtype="preprint", **{"group-title": "PsyArXiv"}).container_title == "PsyArXiv"
    )
    assert crossref(type="posted-content", subtype="preprint", **{"group-title": "Air/Water"}).container_title is None
    assert crossref(type="posted-content", subtype="dissertation").type == "dissertation"
    assert crossref(type="posted-content", subtype="other").type == "posted-content"
    for kind in ("peer-review", "component", "dataset", "report", "standard", "journal"):
        assert crossref(type=kind).type == kind
    assert crossref(type=["x"]).type == "x"
    assert crossref(type={"x": 1}).type is None
    thesis = crossref(
        type="dissertation", institution=[{"name": "Univ. of Ex", "department": ["D"]}], publisher="Ex Library"
    )
    assert (thesis.institution, thesis.publisher) == ("Univ. of Ex", "Ex Library")
    standard = crossref(type="standard", **{"standards-body": {"name": "Ex Standards", "acronym": "ES"}})
    assert (standard.institution, standard.publisher) == ("Ex Standards", "Ex Standards")
    meeting = crossref(
        type="proceedings-article",
        event={"name": "Ex '16", "location": "Here"},
        **{"edition-number": "2"},
        ISBN=["http://id.crossref.org/isbn/9783319539218"],
    )
    assert (meeting.event, meeting.edition, meeting.isbn) == ("Ex '16", "2", ("9783319539218",))


def test_crossref_two_containers():
    def containers(kind, *titles):
        work = crossref(type=kind, **{"container-title": list(titles)})
        return work.container_title, work.series

    assert containers("book-chapter", "Ex Library", "A Book on Ex") == ("A Book on Ex", "Ex Library")
    assert containers("book-chapter", "A Book on Ex", "Lecture Notes in Ex") == ("A Book on Ex", "Lecture Notes in Ex")
    assert containers("book-chapter", "A Book on Ex") == ("A Book on Ex", None)
    assert containers("book", "Lecture Notes in Ex") == ("Lecture Notes in Ex", "Lecture Notes in Ex")
    assert containers("journal-article", "J. Ex", "J. of Examples") == ("J. Ex", None)


def test_crossref_license_is_the_readers():
    def license_of(*entries):
        parts = [
            {"URL": url, "content-version": label, "start": {"date-parts": [start]}} for url, label, start in entries
        ]
        return crossref(license=parts).license

    by, nc = "http://creativecommons.org/licenses/by/4.0/", "https://creativecommons.org/licenses/by-nc/4.0"
    assert license_of((by, "vor", [2020])) == "cc-by-4.0"
    assert license_of((by, "tdm", [2020])) is None
    assert license_of((by, "am", [2020])) is None
    assert license_of((by, "vor", [2026, 6, 2])) is None  # embargo: not yet
    assert license_of((by, "vor", [2026, 6, 1])) == "cc-by-4.0"
    assert license_of(("http://www.ex.example/tdm", "vor", [2020])) is None
    assert (
        license_of(("https://ex.example/terms", "unspecified", [2020]), (nc, "unspecified", [2020])) == "cc-by-nc-4.0"
    )
    assert license_of((nc, "unspecified", [2020]), (by, "vor", [2020])) == "cc-by-4.0"
    assert crossref(license=[None, "x", {"URL": None}, {"URL": [by]}]).license == "cc-by-4.0"


def test_crossref_retractions():
    def notices(*entries):
        parts = [
            {"DOI": doi, "type": kind, "source": source, "updated": {"date-parts": [[2010, 2, 6]]}}
            for kind, doi, source in entries
        ]
        return crossref(**{"updated-by": parts}).retraction

    assert notices(
        ("retraction", "10.1000/N", "retraction-watch"), ("retraction", "10.1000/N", "publisher")
    ) == Retraction("retracted", "10.1000/n", "publisher", "2010-02-06")
    assert notices(
        ("expression_of_concern", "10.1000/c", "publisher"), ("withdrawal", "10.1000/w", "publisher")
    ) == Retraction("withdrawn", "10.1000/w", "publisher", "2010-02-06")
    assert notices(("partial_retraction", None, None)) == Retraction(
        "partially_retracted", None, "publisher", "2010-02-06"
    )
    assert notices(("removal", "x", "publisher")) == Retraction("removed", None, "publisher", "2010-02-06")
    for harmless in ("correction", "erratum", "addendum", "new_version", None, 5):
        assert notices((harmless, "10.1000/c", "publisher")) is None
    notice = crossref(title=["Retraction: On Ix"], **{"update-to": [{"DOI": "10.1000/y", "type": "retraction"}]})
    assert notice.retraction is None


def test_crossref_relations():
    related = {
        "has-preprint": [
            {"id-type": "doi", "id": "10.1101/055962", "asserted-by": "object"},
            {"id-type": "doi", "id": "10.1101/055962", "asserted-by": "subject"},
            {"id-type": "arxiv", "id": "2401.12345"},
            {"id-type": "doi", "id": "10.48550/arXiv.2401.12345"},
        ],
        "new_version": [{"id-type": "doi", "id": "10.1000/x"}],
        "cites": [{"id-type": "doi", "id": "10.1000/z"}],
        "is-part-of": [
            {"id-type": "issn", "id": "1234-5678"},
            {"id-type": "uri", "id": "https://ex.example/10.1000/no"},
        ],
        "is-supplemented-by": [{"id-type": "accession", "id": "7M3P"}, None, "x"],
        "odd": None,
    }
    assert crossref(relation=related).relations == (
        Relation("has-preprint", "10.1101/055962"),
        Relation("has-preprint", "arXiv:2401.12345"),
    )
    assert crossref(relation=[1]).relations == ()


def test_crossref_envelope_and_other_bodies():
    assert doiget.parse_crossref(
        {"status": "ok", "message": {"DOI": "10.1000/x", "title": ["T"]}}
    ) == doiget.parse_crossref({"DOI": "10.1000/x", "title": ["T"]})
    for body in (None, [], "Resource not found.", 5, {}, {"status": "failed", "message": [{"type": "x"}]}):
        assert doiget.parse_crossref(body) is None


def test_csl():
    parsed = doiget.parse_csl(
        {
            "DOI": "10.1000/X",
            "type": "article-journal",
            "title": "T",
            "container-title": "C",
            "issued": {"date-parts": [["2013", 10]]},
            "page": "1–2",
            "author": [{"family": "Roe", "given": "Ann", "non-dropping-particle": "von"}, {"literal": "B Group"}],
            "collection-title": "S",
            "event": "E",
        }
    )
    assert parsed == (
        Work(
            doi="10.1000/x",
            type="journal-article",
            title="T",
            container_title="C",
            date="2013-10",
            year=2013,
            pages="1-2",
            series="S",
            event="E",
            authors=(Author("Roe", "Ann", "von"), Author(literal="B Group")),
            url="https://doi.org/10.1000/x",
        ),
        [],
    )
    thesis = doiget.parse_csl({"DOI": "10.1000/x", "type": "thesis", "title": ["T"]})
    assert thesis is not None
    assert thesis[0].type == "dissertation"
    assert doiget.parse_csl({"error": 1}) is None


# ---- DataCite ----


def test_datacite_software():
    work = datacite(
        titles=[{"title": "Ex"}, {"title": "A tool", "titleType": "Subtitle"}],
        creators=[{"name": "Roe, Ann", "familyName": "Roe", "givenName": "Ann"}],
        publicationYear=2023,
        dates=[{"date": "2023-08-09", "dateType": "Issued"}],
        types={"resourceTypeGeneral": "Software", "bibtex": "misc"},
        publisher={"name": "Zenodo"},
        descriptions=[
            {"description": "", "descriptionType": "Abstract"},
            {"description": "<p>A.</p>", "descriptionType": "Abstract"},
        ],
        rightsList=[
            {"rightsUri": "info:eu-repo/semantics/openAccess"},
            {"rightsIdentifier": "mit", "rightsUri": "https://x.example"},
        ],
        relatedIdentifiers=[
            {
                "relationType": "IsVersionOf",
                "relatedIdentifierType": "DOI",
                "relatedIdentifier": "\n 10.5281/ZENODO.2 ",
            },
            {
                "relationType": "IsSupplementTo",
                "relatedIdentifierType": "URL",
                "relatedIdentifier": "https://github.example/x",
            },
            {"relationType": "References", "relatedIdentifierType": "DOI", "relatedIdentifier": "10.1000/x"},
            {"relationType": "IsPreprintOf", "relatedIdentifierType": "arXiv", "relatedIdentifier": "2401.12345"},
        ],
        url="http://zenodo.org/record/1",
        citationCount=2,
        language="en",
    )
    assert work == Work(
        type="software",
        title="Ex",
        subtitle="A tool",
        authors=(Author("Roe", "Ann"),),
        year=2023,
        date="2023-08-09",
        publisher="Zenodo",
        abstract="A.",
        license="mit",
        relations=(Relation("is-version-of", "10.5281/zenodo.2"), Relation("is-preprint-of", "arXiv:2401.12345")),
        url="https://zenodo.org/record/1",
        cited_by_count=2,
        language="en",
        doi="10.5281/zenodo.1",
    )


def test_datacite_arxiv():
    parsed = doiget.parse_datacite(
        {
            "data": {
                "id": "10.48550/arXiv.2311.16162",
                "attributes": {
                    "state": "findable",
                    "titles": [{"title": "T"}],
                    "publisher": "arXiv",
                    "publicationYear": 2023,
                    "types": {"resourceTypeGeneral": "Preprint"},
                    "dates": [
                        {"date": "2023-11-09T11:44:22Z", "dateType": "Submitted"},
                        {"date": "2023", "dateType": "Issued"},
                    ],
                },
            }
        }
    )
    assert parsed is not None
    work = parsed[0]
    assert (work.doi, work.arxiv_id, work.type, work.container_title) == (
        "10.48550/arxiv.2311.16162",
        "2311.16162",
        "preprint",
        "arXiv",
    )
    assert (work.date, work.arxiv_version) == ("2023-11-09", None)


def test_datacite_titles():
    both = datacite(
        titles=[{"title": "Vision", "lang": "en"}, {"title": "Ansicht", "titleType": "TranslatedTitle", "lang": "de"}]
    )
    assert (both.title, both.original_title) == ("Vision", "Ansicht")
    assert datacite(titles=[{"title": "Only", "titleType": "Other"}]).title == "Only"
    assert datacite(titles=[{"title": "Alt", "titleType": "AlternativeTitle"}, {"title": "Main"}]).title == "Main"
    assert datacite(titles=None).title is None


@pytest.mark.parametrize(
    ("creators", "authors"),
    [
        ([{"name": "(:Tba)", "nameType": "Personal"}], ()),
        ([{"name": "Unknown"}, {"name": "(:Unkn) Unknown"}, {"name": "Anonymous"}], ()),
        (
            [{"name": "Earth Center, Example Agency", "nameType": "Organizational"}],
            (Author(literal="Earth Center, Example Agency"),),
        ),
        ([{"name": "Statistique Canada", "nameType": "Organizational"}], (Author(literal="Statistique Canada"),)),
        (
            [
                {
                    "name": "Ex Ocean Consortium, Members",
                    "nameType": "Personal",
                    "familyName": "Ex Ocean Consortium",
                    "givenName": "Members",
                }
            ],
            (Author(literal="Ex Ocean Consortium, Members"),),
        ),
        ([{"name": "A.R. SZROMEK"}, {"name": "YUE SHI"}], (Author("SZROMEK", "A.R."), Author("SHI", "YUE"))),
        (
            [{"name": "Atlas Of Living Examples"}, {"name": "TOPMed"}],
            (Author(literal="Atlas Of Living Examples"), Author(literal="TOPMed")),
        ),
        ([{"name": "Roe, Ann (Ex University); Poe, Bo (UX)"}], (Author("Roe", "Ann"), Author("Poe", "Bo"))),
        ([{"name": "Roe, Ann; School Of Ex, University of Ex, 12345 Ex"}], (Author("Roe", "Ann"),)),
        (
            [{"name": "Молчанов Владимир, ", "nameType": "Personal", "familyName": "Молчанов Владимир"}],
            (Author("Молчанов Владимир"),),
        ),
        ([{"name": "Wong,  Tak", "familyName": "Wong", "givenName": " Tak"}], (Author("Wong", "Tak"),)),
        ([None, "x", {"name": None}], ()),
    ],
)
def test_datacite_creators(creators, authors):
    assert datacite(creators=creators).authors == authors


def test_datacite_editors():
    contributors = [
        {"name": "It, Ed", "contributorType": "Editor", "familyName": "It", "givenName": "Ed"},
        {"name": "Ex", "contributorType": "Other"},
    ]
    assert datacite(contributors=contributors).editors == (Author("It", "Ed"),)


@pytest.mark.parametrize(
    ("year", "dates", "date"),
    [
        (2018, [["2018-03-01", "Issued"]], "2018-03-01"),
        (2018, [["2019-03-01", "Issued"]], "2018"),
        ("", [["2016-01", "Issued"]], "2016-01"),
        (None, [["19.07.2018", "Available"]], "2018-07-19"),
        (2549, [["2549", "Issued"]], None),  # the Thai calendar
        (2549, [["2006-05", "Issued"]], "2006-05"),
        ("1596", [], "1596"),
        (2015, [["\n 2015 \n", "Issued"]], "2015"),
        ("soon", "x", None),
    ],
)
def test_datacite_dates(year, dates, date):
    parts = [{"date": value, "dateType": kind} for value, kind in dates] if isinstance(dates, list) else dates
    assert datacite(publicationYear=year, dates=parts).date == date


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        ({"resourceTypeGeneral": "Dataset", "bibtex": "article"}, "dataset"),
        ({"resourceTypeGeneral": "Text", "resourceType": "Journal Article"}, "journal-article"),
        ({"resourceTypeGeneral": "Text", "resourceType": "Thesis", "ris": "RPRT"}, "dissertation"),
        ({"resourceTypeGeneral": "Text", "resourceType": "BlogPosting"}, "blog-post"),
        ({"resourceTypeGeneral": "Text", "ris": "CHAP"}, "book-chapter"),
        ({"resourceTypeGeneral": "Text"}, "other"),
        ({"resourceTypeGeneral": "Image", "resourceType": "\n Poster \n"}, "presentation"),
        ({"resourceTypeGeneral": "ConferencePaper"}, "proceedings-article"),
        ({}, None),
        (None, None),
        ("x", None),
    ],
)
def test_datacite_types(types, kind):
    assert datacite(types=types).type == kind


def test_datacite_container_and_placeholders():
    work = datacite(
        container={
            "title": "C",
            "volume": "3",
            "issue": "4",
            "firstPage": "133",
            "lastPage": "147",
            "identifier": "1234-5678",
            "identifierType": "ISSN",
        },
        publisher="(:unav)",
    )
    assert (work.container_title, work.volume, work.issue, work.pages, work.issn) == (
        "C",
        "3",
        "4",
        "133-147",
        ("1234-5678",),
    )
    assert work.publisher is None
    assert datacite(container={"firstPage": "N. 4 (2017): The whole title again"}).pages is None
    for nobody in ("Unpublished", "[s.n.]", "(:unap)", "-"):
        assert datacite(publisher=nobody).publisher is None
    assert (
        datacite(
            rightsList=[
                {"rights": "All data have no associated licence."},
                {"rights": "http://creativecommons.org/licenses/by/4.0"},
            ]
        ).license
        == "cc-by-4.0"
    )


def test_datacite_only_findable():
    for state in ("draft", "registered", ["findable"], 1):
        assert doiget.parse_datacite({"id": "10.1/x", "attributes": {"state": state, "titles": []}}) is None
    for body in (
        None,
        [],
        {"errors": [{"status": "404"}]},
        {"id": "10.1/x"},
        {"id": "x", "attributes": {"state": "findable"}},
    ):
        assert doiget.parse_datacite(body) is None
    empty = doiget.parse_datacite(
        {
            "id": "10.5438/x",
            "attributes": {"titles": None, "creators": [], "container": None, "types": None, "version": 6},
        }
    )
    assert empty is not None
    assert empty[1] == ["title missing at DataCite", "authors missing at DataCite", "year missing at DataCite"]


# ---- arXiv ----

ATOM = 'xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom"'


def feed(*entries: str) -> bytes:
    return f"<?xml version='1.0'?><feed {ATOM}><title>q</title>{''.join(f'<entry>{entry}</entry>' for entry in entries)}</feed>".encode()


def test_arxiv_entry():
    body = feed(
        "<id>http://arxiv.org/abs/hep-th/9711200v3</id><title>On\n  Ix</title><summary>  One\ntwo.\n  Three &lt; four.</summary>"
        "<published>1997-11-27T23:53:13Z</published><updated>1998-01-22T00:00:00Z</updated><author><name>Ann van Roe</name>"
        "<arxiv:affiliation>Ex</arxiv:affiliation></author><author><name>H1 Collaboration</name></author><arxiv:comment>20 pages,\n 1 figure</arxiv:comment>"
        "<arxiv:journal_ref>J. Ex ( Volume: 65 , Issue: 4 )</arxiv:journal_ref><arxiv:doi>10.1000/X</arxiv:doi><arxiv:primary_category term='hep-th'/>"
    )
    page = "https://arxiv.org/abs/hep-th/9711200v3"
    assert doiget.parse_arxiv_feed(body) == [
        Work(
            type="preprint",
            title="On Ix",
            authors=(Author("van Roe", "Ann"), Author(literal="H1 Collaboration")),
            date="1997-11-27",
            year=1997,
            container_title="arXiv",
            publisher="arXiv",
            abstract="One two.\n\nThree < four.",
            doi="10.1000/x",
            arxiv_id="hep-th/9711200",
            arxiv_version=3,
            url=page,
            relations=(Relation("is-preprint-of", "10.1000/x"),),
            primary_class="hep-th",
            comment="20 pages, 1 figure",
            journal_ref="J. Ex ( Volume: 65 , Issue: 4 )",
            locations=(
                Location("arxiv", "https://export.arxiv.org/pdf/hep-th/9711200v3", page, None, "submittedVersion"),
            ),
        )
    ]


def test_arxiv_forms_of_the_feed():
    old = "<id>https://arxiv.org/abs/hep-ex/0307015</id><link href='http://arxiv.org/abs/hep-ex/0307015v1'/><title>0</title>"
    works = doiget.parse_arxiv_feed(
        feed(old, "<id>http://arxiv.org/abs/2104.12255v12</id>", "<id>http://x.example/</id>", "<title>no id</title>")
    )
    assert works[2:] == [None, None], "they count, so that a page's end is known"
    assert [(work.arxiv_id, work.arxiv_version, work.title) for work in works[:2]] == [
        ("hep-ex/0307015", 1, "0"),
        ("2104.12255", 12, None),
    ]
    assert doiget.parse_arxiv_feed(feed()) == []
    indented = "<id>http://arxiv.org/abs/2104.12255v1</id><summary>  All lines\n  are indented\n  here</summary>"
    assert doiget.parse_arxiv_feed(feed(indented))[0].abstract == "All lines are indented here"


@pytest.mark.parametrize(
    ("comment", "withdrawn"),
    [
        ("This paper has been withdrawn by the author due to an error", True),
        ("Withdrawn", True),
        ("withdrawn, error in Lemma 3", True),
        ("This submission has been withdrawn by arXiv administrators", True),
        ("The paper is temporarily withdrawn", True),
        ("4 pages; the author withdrew this version", True),
        ("Paper withdrawn. Superseded by arXiv:1234.56789", True),
        ("The authors have withdrawn this paper", True),
        ("I withdraw this paper", True),
        ("This work is being withdrawn", True),
        ("[v2] withdrawn", True),
        ("Withdrawal: duplicate submission", True),
        ("This article was retracted by the authors", True),
        ("Retracted due to an error in the proof", True),
        ("article removed by arXiv administrators", True),
        ("Paper withdrawn", True),
        ("This version was withdrawn from the arXiv", True),
        ("Withdrawn from the journal", False),
        ("Removed: a typo in eq. 3", False),
        ("Removed by request: Figure 4", False),
        ("v2: authors retracted Lemma 2", False),
        ("work retracted in v1 is now Section 4", False),
        ("Some figures removed by arXiv size limits", False),
        ("Retraction: deformation to a point, 10 pages", False),
        ("The paper was withdrawn from the journal, now published elsewhere", False),
        ("This replaces the withdrawn paper arXiv:2301.00001", False),
        ("Noise removed by filtering; a retracted cone", False),
        ("Replaces the cash withdrawal model, 12 pages", False),
        ("How water is withdrawn from rivers", False),
        ("20 pages", False),
        ("", False),
    ],
)
def test_arxiv_withdrawn(comment, withdrawn):
    body = feed(
        f"<id>http://arxiv.org/abs/2104.12255v2</id><updated>2021-05-06T00:00:00Z</updated><arxiv:comment>{comment}</arxiv:comment>"
    )
    work = doiget.parse_arxiv_feed(body)[0]
    assert work.retraction == (Retraction("withdrawn", None, "arxiv", "2021-05-06") if withdrawn else None)
    assert bool(work.locations) is not withdrawn


def test_arxiv_titles_names_and_abstracts_are_read_as_tex():
    parts = r"<title>A K\"ahler $\bar{x}$</title><summary>Of Poincar\'e.</summary><author><name>J. \'Alvarez</name></author>"
    work = doiget.parse_arxiv_feed(feed(f"<id>http://arxiv.org/abs/2104.12255v2</id>{parts}"))[0]
    assert (work.title, work.abstract) == (r"A Kähler $\bar{x}$", "Of Poincaré.")
    assert work.authors == (Author("Álvarez", "J."),)
    assert crossref(title=[r"The Schr\"odinger equation"]).title == "The Schrödinger equation"


@pytest.mark.parametrize(
    ("title", "status"),
    [
        ("RETRACTED: On things", "retracted"),
        ("[Retracted] On things", "retracted"),
        ("Retracted article — On things", "retracted"),
        ("This article has been retracted: On things", "retracted"),
        ("On things (Retracted article. See vol. 3)", "retracted"),
        ("WITHDRAWN: On things", "withdrawn"),
        ("TEMPORARY REMOVAL: On things", "removed"),
        ("Retraction: On things", None),
        ("Retracted flaps", None),
        ("Retracted: On things", "retracted"),
        ("REMOVED: On things", "removed"),
        ("On things (Retracted)", "retracted"),
        ("On things [Retracted article]", "retracted"),
        ("RETRACTED ARTICLE: On things", "retracted"),
        ("Temporary removal: On things", "removed"),
        ("Supplementation of things (Retracted)", "retracted"),
        ("Harmony in Tungusic (retracted tongue root)", None),
        ("Hepatotoxicity of bromfenac (withdrawn from the market)", None),
        ("Citations of papers (retracted and non-retracted)", None),
        ("Editorial practice in biomedicine (retracted papers)", None),
        ("Removal: A History of Indian Removal", None),
        ("Removal \u2013 an overview", None),
        ("Removed: how species vanish", None),
        ("Comment on 'A study of X' (Retracted)", None),
        ("Response to: Foo [retracted]", None),
        ("Correction to: Foo (retracted)", None),
        ("Retraction: Foo (Retracted)", None),
        ("Noise (removed)", None),
    ],
)
def test_a_title_that_says_what_became_of_the_work(title, status):
    assert crossref(title=[title]).retraction == (Retraction(status, None, "title") if status else None)
    notice = {"update-to": [{"DOI": "10.1000/y", "type": "retraction"}]}
    assert crossref(title=[title], **notice).retraction is None
    known = {"updated-by": [{"DOI": "10.1000/n", "type": "removal"}]}
    assert crossref(title=[title], **known).retraction is not None


def test_arxiv_withdrawn_by_its_abstract():
    body = feed(
        "<id>http://arxiv.org/abs/2104.12255v2</id><summary>This paper has been withdrawn by the authors.</summary>"
    )
    assert doiget.parse_arxiv_feed(body)[0].retraction is not None
    body = feed("<id>http://arxiv.org/abs/2104.12255v2</id><summary>Withdrawn.</summary>")
    assert doiget.parse_arxiv_feed(body)[0].retraction is not None
    honest = (
        "We study how an article was withdrawn.",
        "The impact of papers retracted because of misconduct is studied.",
        "The number of articles retracted due to fraud has grown.",
        "This study examines articles retracted by their authors.",
        "The probe is retracted by a motor in nanosteps.",
        "The water withdrawn by farms is measured.",
    )
    for summary in honest:
        body = feed(f"<id>http://arxiv.org/abs/2104.12255v2</id><summary>{summary}</summary>")
        assert doiget.parse_arxiv_feed(body)[0].retraction is None, summary
    for summary in (
        "This work has been retracted.",
        "The authors have withdrawn this paper.",
        "Withdrawn by the author",
    ):
        body = feed(f"<id>http://arxiv.org/abs/2104.12255v2</id><summary>{summary}</summary>")
        assert doiget.parse_arxiv_feed(body)[0].retraction is not None, summary


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"Rate exceeded.", "source_limit"),
        (b"<html>Access Denied</html>", "intercepted"),
        (
            feed("<id>https://arxiv.org/api/errors#incorrect_id_format_for_abc</id><title>Error</title>"),
            "not_an_identifier",
        ),
        (feed("<id>http://arxiv.org/api/errors#start_must_be_an_integer</id><title>Error</title>"), "upstream_error"),
        (b"<rss/>", "bad_body"),
        (b"", "bad_body"),
        (b"<!DOCTYPE feed SYSTEM 'http://x.example/'><feed/>", "bad_body"),
    ],
)
def test_arxiv_errors(body, reason):
    with pytest.raises(DoigetError) as caught:
        doiget.parse_arxiv_feed(body)
    assert caught.value.reason == reason
    assert "abc" not in caught.value.message  # what the source wrote stays out of messages


# ---- OpenAlex, Unpaywall ----


def test_openalex():
    copy = {
        "is_oa": True,
        "pdf_url": "http://repo.example/1.pdf",
        "landing_page_url": "https://hdl.handle.net/1",
        "license": "cc-by",
        "version": "acceptedVersion",
    }
    arxiv = {
        "is_oa": True,
        "pdf_url": "https://arxiv.org/pdf/1810.00065",
        "landing_page_url": "http://arxiv.org/abs/1810.00065",
        "license": None,
        "version": "submittedVersion",
    }
    closed = {
        "is_oa": False,
        "pdf_url": None,
        "landing_page_url": "https://doi.org/10.1000/x",
        "source": {
            "display_name": "J. Ex",
            "type": "journal",
            "host_organization_name": "Ex Ltd",
            "issn": ["1234-5678"],
        },
    }
    parsed = doiget.parse_openalex(
        {
            "id": "https://openalex.org/W1",
            "doi": "https://doi.org/10.1000/X",
            "title": "On <i>Ix</i>",
            "publication_date": "2009-11-04",
            "type": "article",
            "ids": {
                "pmid": "https://pubmed.ncbi.nlm.nih.gov/19888814",
                "pmcid": "https://www.ncbi.nlm.nih.gov/pmc/articles/3917233",
            },
            "authorships": [
                {"author": {"display_name": "Ann Roe"}, "raw_author_name": "A. Roe"},
                {"raw_author_name": "Poe, Bo"},
                None,
                {"author": None},
            ],
            "biblio": {"volume": "2", "issue": None, "first_page": "60", "last_page": "60"},
            "primary_location": closed,
            "best_oa_location": copy,
            "locations": [closed, arxiv, copy, None],
            "open_access": {"oa_status": "green", "is_oa": True},
            "is_retracted": True,
            "cited_by_count": 5,
            "abstract_inverted_index": {"Ix": [1, 3], "is": [2], "Why": [0], "odd": ["x", -1, True, 4]},
            "language": "en",
        }
    )
    assert parsed is not None
    assert parsed[1] == []
    assert parsed[0] == Work(
        doi="10.1000/x",
        title="On Ix",
        date="2009-11-04",
        year=2009,
        type="journal-article",
        pmid="19888814",
        pmcid="PMC3917233",
        volume="2",
        pages="60",
        authors=(Author("Roe", "Ann"), Author("Poe", "Bo")),
        container_title="J. Ex",
        publisher="Ex Ltd",
        issn=("1234-5678",),
        oa_status="green",
        retraction=Retraction("retracted", None, "openalex"),
        cited_by_count=5,
        abstract="Why Ix is Ix odd",
        language="en",
        url="https://doi.org/10.1000/x",
        relations=(Relation("has-preprint", "arXiv:1810.00065"),),
        locations=(
            Location("openalex", "https://repo.example/1.pdf", "https://hdl.handle.net/1", "cc-by", "acceptedVersion"),
            Location(
                "openalex",
                "https://arxiv.org/pdf/1810.00065",
                "https://arxiv.org/abs/1810.00065",
                None,
                "submittedVersion",
            ),
        ),
    )


def test_openalex_variants():
    def parse(**fields):
        parsed = doiget.parse_openalex({"id": "https://openalex.org/W1", **fields})
        assert parsed is not None
        return parsed[0]

    assert parse(publication_date="2007-01-01").date == "2007"  # 1 January stands for no day
    assert parse(type="article", type_crossref="proceedings-article").type == "proceedings-article"
    assert parse(type="paratext").type == "other"
    assert parse(doi="https://doi.org/10.48550/arxiv.2312.07559", type="preprint").arxiv_id == "2312.07559"
    assert (
        parse(
            primary_location={"source": {"display_name": "bioRxiv (Ex Laboratory)", "type": "repository"}}
        ).container_title
        == "bioRxiv"
    )
    assert (
        parse(primary_location={"source": {"display_name": "Ex eBooks", "type": "ebook platform"}}).container_title
        is None
    )
    assert parse(is_retracted=None).retraction is None
    assert parse(open_access={"oa_status": "no such"}).oa_status is None
    selected = doiget.parse_openalex({"doi": "https://doi.org/10.1000/x", "open_access": {"oa_status": "closed"}})
    assert selected == (Work(doi="10.1000/x", oa_status="closed"), [])
    for body in (None, [], {"error": "Not found", "message": "x"}, {"results": []}):
        assert doiget.parse_openalex(body) is None


def test_unpaywall():
    landing = {"url_for_pdf": None, "url": "https://pub.example/landing"}
    parsed = doiget.parse_unpaywall(
        {
            "doi": "10.1000/X",
            "is_oa": True,
            "oa_status": "hybrid",
            "title": "CuIn<sub>2</sub>",
            "genre": "journal-article",
            "year": 2010,
            "published_date": None,
            "best_oa_location": landing,
            "journal_name": "J. Ex",
            "journal_issns": "1234-5678,8765-4321",
            "z_authors": [{"given": "A.", "family": "Roe"}, {"name": "Ex University"}],
            "oa_locations": [
                landing,
                {
                    "url_for_pdf": "http://repo.example/1.pdf",
                    "url": "x",
                    "url_for_landing_page": "https://repo.example/1",
                    "license": "pd",
                },
            ],
        }
    )
    assert parsed is not None
    assert parsed[0] == Work(
        doi="10.1000/x",
        oa_status="hybrid",
        title="CuIn₂",
        type="journal-article",
        date="2010",
        year=2010,
        container_title="J. Ex",
        issn=("1234-5678", "8765-4321"),
        authors=(Author("Roe", "A."), Author(literal="Ex University")),
        locations=(
            Location("unpaywall", None, "https://pub.example/landing"),
            Location("unpaywall", "https://repo.example/1.pdf", "https://repo.example/1", "public-domain"),
        ),
    )


def test_unpaywall_closed_unknown_and_errors():
    def status(**fields):
        parsed = doiget.parse_unpaywall({"doi": "10.1000/x", **fields})
        assert parsed is not None
        return parsed[0].oa_status

    assert status(is_oa=False, oa_status="closed", oa_locations=[]) == "closed"
    assert status(is_oa=False) == "closed"
    assert status(is_oa=None, oa_status=None, oa_locations=None, z_authors=None) is None  # not looked up is not closed
    raw = doiget.parse_unpaywall(
        {"doi": "10.1000/x", "z_authors": [{"raw_author_name": "Ann Roe", "author_position": "first"}]}
    )
    assert raw is not None
    assert raw[0].authors == (Author("Roe", "Ann"),)
    assert doiget.parse_unpaywall(
        {"response": {"doi": "10.1000/x", "title": "T"}, "score": 1}
    ) == doiget.parse_unpaywall({"doi": "10.1000/x", "title": "T"})
    for body in (
        None,
        "x",
        {"error": True, "HTTP_status_code": 404, "message": "x"},
        {"doi": "10.1000/x", "error": True},
    ):
        assert doiget.parse_unpaywall(body) is None


# ---- Europe PMC and NCBI ----


def europepmc(**fields) -> Work:
    parsed = doiget.parse_europepmc({"id": "12345", "source": "MED", "pmid": "12345", **fields})
    assert parsed is not None
    assert doiget.work_from_dict(doiget.work_to_dict(parsed[0])) == parsed[0]
    return parsed[0]


def test_europepmc():
    urls = [
        {"availabilityCode": "S", "documentStyle": "doi", "site": "DOI", "url": "https://doi.org/10.1000/x"},
        {
            "availabilityCode": "F",
            "documentStyle": "html",
            "site": "Europe_PMC",
            "url": "https://europepmc.org/articles/PMC9",
        },
        {
            "availabilityCode": "F",
            "documentStyle": "pdf",
            "site": "Europe_PMC",
            "url": "https://europepmc.org/articles/PMC9?pdf=render",
        },
    ]
    work = europepmc(
        pmcid="PMC9",
        doi="10.1000/X",
        title="On Ix.",
        isOpenAccess="N",
        inEPMC="Y",
        license="cc by-nc",
        pubTypeList={"pubType": ["Journal Article"]},
        authorList={
            "author": [{"lastName": "Roe", "firstName": "Ann", "initials": "A"}, {"collectiveName": "Ex Group"}]
        },
        pageInfo="443-7",
        journalInfo={
            "volume": "28",
            "issue": "4",
            "dateOfPublication": "2025 Jul",
            "journal": {"title": "J. Ex", "issn": "1234-5678", "essn": "8765-4321"},
        },
        abstractText="<h4>Aim</h4>One.",
        fullTextUrlList={"fullTextUrl": urls},
        citedByCount=3,
        language="eng",
        pubYear="2025",
    )
    assert work == Work(
        type="journal-article",
        title="On Ix",
        authors=(Author("Roe", "Ann"), Author(literal="Ex Group")),
        date="2025-07",
        year=2025,
        container_title="J. Ex",
        volume="28",
        issue="4",
        pages="443-447",
        abstract="Aim\n\nOne.",
        doi="10.1000/x",
        pmid="12345",
        pmcid="PMC9",
        license="cc-by-nc",
        language="eng",
        url="https://europepmc.org/article/MED/12345",
        issn=("1234-5678", "8765-4321"),
        cited_by_count=3,
        locations=(
            Location(
                "europepmc", urls[2]["url"], "https://europepmc.org/articles/PMC9", "cc-by-nc", "publishedVersion"
            ),
        ),
    )


def test_europepmc_copies_are_gated_on_the_list():
    def locations(code, style, **fields):
        urls = {
            "availabilityCode": code,
            "documentStyle": style,
            "site": "Europe_PMC",
            "url": "https://europepmc.org/articles/PMC9?pdf=render",
        }
        return europepmc(fullTextUrlList={"fullTextUrl": [urls]}, **fields).locations

    assert locations("OA", "pdf", isOpenAccess="N")
    assert locations("F", "pdf")[0].version == "publishedVersion"
    assert locations("F", "pdf", epmcAuthMan="Y")[0].version == "acceptedVersion"
    assert locations("F", "pdf", source="PPR")[0].version == "submittedVersion"
    assert locations("S", "pdf", isOpenAccess="Y", inEPMC="Y") == ()
    assert locations("OA", "html") == ()
    assert locations(["OA"], ["pdf"]) == ()
    assert europepmc(isOpenAccess="Y", inEPMC="Y", hasPDF="Y", fullTextUrlList=None).locations == ()


def test_europepmc_retraction_and_relations():
    def comments(*parts):
        return {
            "commentCorrectionList": {
                "commentCorrection": [
                    {"type": kind, "reference": text, "source": source, "id": name}
                    for kind, text, source, name in parts
                ]
            }
        }

    reference = "Ex J. 2024 Sep 28;404(10459):1227. doi: 10.1000/N."
    assert europepmc(**comments(("Retraction in", reference, "MED", "7"))).retraction == Retraction(
        "retracted", "10.1000/n", "europepmc", "2024-09-28"
    )
    assert europepmc(**comments(("Expression of concern in", "Ex J. 2024;1:2", "MED", "7"))).retraction == Retraction(
        "expression_of_concern", None, "europepmc", "2024"
    )
    assert europepmc(pubTypeList={"pubType": ["Retracted Publication"]}).retraction == Retraction(
        "retracted", None, "europepmc"
    )
    assert (
        europepmc(
            **comments(("Retraction of", reference, "MED", "7"), ("Erratum for", reference, "MED", "7"))
        ).retraction
        is None
    )
    assert europepmc(**comments(("Preprint of", "x", "MED", "777777")), source="PPR").relations == (
        Relation("is-preprint-of", "pmid:777777"),
    )


def test_europepmc_lite_and_dates():
    lite = europepmc(
        authorString="Khleif SN, Roe A Jr, Ex Group.",
        journalTitle="Ex J",
        pubType="review; journal article",
        firstPublicationDate="2025-10-16",
        pubYear="2025",
        journalIssn="1529-2908; 1529-2916; ",
    )
    assert lite.authors == (Author("Khleif", "SN"), Author("Roe", "A", "", "Jr"), Author(literal="Ex Group"))
    assert (lite.container_title, lite.date, lite.type, lite.issn) == (
        "Ex J",
        "2025-10-16",
        "journal-article",
        ("1529-2908", "1529-2916"),
    )
    assert (
        europepmc(journalInfo={"dateOfPublication": "2025 Jul"}, firstPublicationDate="2025-07-25").date == "2025-07-25"
    )
    assert europepmc(journalInfo={"dateOfPublication": "2025 Jul"}, firstPublicationDate="2025-07-01").date == "2025-07"
    preprint = europepmc(source="PPR", bookOrReportDetails={"publisher": "bioRxiv", "yearOfPublication": 2020})
    assert (preprint.type, preprint.container_title) == ("preprint", "bioRxiv")


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        ("On Ix.", "On Ix"),
        ("[On Ix in German].", "On Ix in German"),
        ("Is it Ix?", "Is it Ix?"),
        ("And so on...", "And so on..."),
        ("Made in the U.S.", "Made in the U.S."),
        (".", "."),
        (None, None),
    ],
)
def test_medline_titles(raw, title):
    assert europepmc(title=raw).title == title


def test_europepmc_other_bodies():
    for body in (None, [], {"errCode": 404, "errMsg": "x"}, {"resultList": {"result": []}}):
        assert doiget.parse_europepmc(body) is None


def test_esummary():
    summary = {
        "uid": "17183658",
        "title": "On &lt;i&gt;Ix&lt;/i&gt;.",
        "pubdate": "2006 Dec 20",
        "source": "PLoS One",
        "fulljournalname": "PloS one",
        "volume": "1",
        "issue": "1",
        "pages": "1234-40",
        "authors": [{"name": "Roe AB", "authtype": "Author"}, {"name": "Ex Group", "authtype": "CollectiveName"}],
        "lang": ["eng"],
        "issn": "",
        "essn": "1932-6203",
        "articleids": [
            {"idtype": "pubmed", "value": "17183658"},
            {"idtype": "pmc", "value": "PMC1762313"},
            {"idtype": "doi", "value": "10.1371/Journal.x"},
        ],
        "pubtype": ["Journal Article", "Retracted Publication"],
        "elocationid": "doi: 10.1371/other",
    }
    expected = Work(
        type="journal-article",
        title="On Ix",
        authors=(Author("Roe", "AB"), Author(literal="Ex Group")),
        date="2006-12-20",
        year=2006,
        container_title="PloS one",
        volume="1",
        issue="1",
        pages="1234-1240",
        doi="10.1371/journal.x",
        pmid="17183658",
        pmcid="PMC1762313",
        url="https://pubmed.ncbi.nlm.nih.gov/17183658/",
        issn=("1932-6203",),
        language="eng",
        retraction=Retraction("retracted", None, "pubmed"),
    )
    result = {"uids": ["17183658"], "17183658": summary}
    assert doiget.parse_esummary({"header": {}, "result": result}, "17183658") == (expected, [])
    assert doiget.parse_esummary(result, "17183658") == (expected, [])
    located = doiget.parse_esummary({"1": {"title": "T", "elocationid": "pii: e1. doi: 10.1371/other"}}, "1")
    assert located is not None
    assert located[0].doi == "10.1371/other"
    for body in (None, [], result, {"result": {"99": {"uid": "99", "error": "cannot get document summary"}}}):
        assert doiget.parse_esummary(body, "99") is None


# ---- Any body at all ----

PARSERS = {
    "crossref": lambda body: doiget.parse_crossref(body, "2026-01-01"),
    "csl": doiget.parse_csl,
    "datacite": doiget.parse_datacite,
    "openalex": doiget.parse_openalex,
    "unpaywall": doiget.parse_unpaywall,
    "europepmc": doiget.parse_europepmc,
    "esummary": lambda body: doiget.parse_esummary(body, "1"),
}
#: One full body per source, to be spoilt at every place.
SAMPLES = {
    "crossref": {
        "DOI": "10.1/x",
        "type": "book-chapter",
        "subtype": "preprint",
        "title": ["T"],
        "subtitle": ["S"],
        "original-title": ["O"],
        "container-title": ["A", "B"],
        "author": [{"family": "F", "given": "G", "suffix": "Jr", "name": "N", "non-dropping-particle": "v"}],
        "editor": [{"name": "N"}],
        "page": "1-2",
        "volume": "1",
        "issued": {"date-parts": [[2001, 2, 3]], "season": "1"},
        "license": [{"URL": "https://x.example", "content-version": "vor", "start": {"date-parts": [[2001]]}}],
        "relation": {"has-preprint": [{"id-type": "doi", "id": "10.1/y"}]},
        "updated-by": [{"type": "retraction", "DOI": "10.1/n", "updated": {"date-parts": [[2001]]}}],
        "institution": [{"name": "I"}],
        "event": {"name": "E"},
        "ISBN": ["1"],
        "ISSN": ["2"],
        "abstract": "<p>A</p>",
        "URL": "https://x.example",
        "group-title": "G",
    },
    "datacite": {
        "id": "10.1/x",
        "attributes": {
            "state": "findable",
            "titles": [{"title": "T", "lang": "en", "titleType": None}],
            "creators": [{"name": "A, B", "nameType": "Personal"}],
            "contributors": [{"name": "E", "contributorType": "Editor"}],
            "container": {"title": "C", "identifier": "1", "identifierType": "ISSN", "firstPage": "1"},
            "dates": [{"date": "2001", "dateType": "Issued"}],
            "types": {"resourceTypeGeneral": "Text", "resourceType": "x", "ris": "JOUR"},
            "publicationYear": 2001,
            "descriptions": [{"description": "d", "descriptionType": "Abstract"}],
            "rightsList": [{"rights": "r", "rightsUri": "u", "rightsIdentifier": "i"}],
            "relatedIdentifiers": [
                {"relationType": "IsPartOf", "relatedIdentifierType": "ISSN", "relatedIdentifier": "1"}
            ],
            "publisher": {"name": "P"},
        },
    },
    "openalex": {
        "id": "W1",
        "doi": "https://doi.org/10.1/x",
        "title": "T",
        "ids": {"pmid": "1"},
        "authorships": [{"author": {"display_name": "A B"}, "raw_author_name": "B, A"}],
        "primary_location": {
            "source": {"display_name": "S", "type": "journal", "issn": ["1"]},
            "raw_type": "x",
            "landing_page_url": "https://x.example",
        },
        "type": "article",
        "biblio": {"first_page": "1", "last_page": "2"},
        "locations": [{"is_oa": True, "pdf_url": "https://x.example", "license": "l", "version": "v"}],
        "abstract_inverted_index": {"a": [0]},
        "open_access": {"oa_status": "gold"},
        "publication_date": "2001-01-01",
        "publication_year": 2001,
    },
    "unpaywall": {
        "doi": "10.1/x",
        "response": {
            "doi": "10.1/x",
            "z_authors": [{"raw_author_name": "A B"}],
            "best_oa_location": {"url": "https://x.example", "license": "l"},
            "oa_locations": [{"url": "u"}],
            "genre": "g",
            "title": "t",
            "year": 2001,
            "oa_status": "gold",
            "is_oa": True,
        },
    },
    "europepmc": {
        "id": "1",
        "source": "MED",
        "title": "T.",
        "authorList": {"author": [{"lastName": "A", "firstName": "B"}]},
        "authorString": "A B.",
        "pubType": "x",
        "journalInfo": {"journal": {"title": "J", "issn": "1"}, "volume": "1", "dateOfPublication": "2001 Jul"},
        "bookOrReportDetails": {"publisher": "P"},
        "pubTypeList": {"pubType": ["x"]},
        "fullTextUrlList": {
            "fullTextUrl": [{"url": "https://x.example", "documentStyle": "pdf", "availabilityCode": "OA", "site": "s"}]
        },
        "commentCorrectionList": {
            "commentCorrection": [{"type": "Retraction in", "reference": "r", "source": "MED", "id": "1"}]
        },
        "authMan": "Y",
        "pageInfo": "1-2",
    },
    "esummary": {
        "result": {
            "1": {
                "uid": "1",
                "title": "T",
                "authors": [{"name": "A B", "authtype": "Author"}],
                "articleids": [{"idtype": "doi", "value": "10.1/x"}],
                "pubtype": ["x"],
                "pubdate": "2001",
                "elocationid": "doi: 10.1/x",
                "lang": ["eng"],
            }
        }
    },
}
SAMPLES["csl"] = SAMPLES["crossref"]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(["10.1/x", "2001", "<i>", "https://x.example/a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def spoil(data, body, draw_value):
    """Replace one value, anywhere in a body."""
    if not isinstance(body, dict | list) or not body or data.draw(st.integers(0, 5)) == 0:
        return draw_value
    keys = sorted(body) if isinstance(body, dict) else list(range(len(body)))
    key = data.draw(st.sampled_from(keys))
    changed = dict(body) if isinstance(body, dict) else list(body)
    changed[key] = spoil(data, body[key], draw_value)
    return changed


def check(source, body):
    parsed = PARSERS[source](body)
    if parsed is not None:
        work, warnings = parsed
        assert doiget.work_from_dict(json.loads(json.dumps(doiget.work_to_dict(work)))) == work
        assert all(isinstance(text, str) for text in warnings)
        json.dumps(doiget.metadata_of(work)).encode()


@pytest.mark.parametrize("source", PARSERS)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), body=VALUES)
def test_any_json_is_read_or_refused(source, data, body):
    check(source, body)
    names = sorted({*SAMPLES[source], "attributes", "message", "result", "1"})
    check(source, data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=6)))


@pytest.mark.parametrize("source", PARSERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_spoilt_body_is_read(source, data):
    body = SAMPLES[source]
    for _ in range(data.draw(st.integers(1, 3))):
        body = spoil(data, body, data.draw(VALUES))
    check(source, body)


@settings(max_examples=25, deadline=None)
@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: feed(f"<id>http://arxiv.org/abs/2104.12255v1</id>{text}"))
)
def test_any_bytes_are_read_or_refused(body):
    for parse in (doiget.parse_arxiv_feed, doiget.parse_json, doiget.parse_xml):
        try:
            parse(body)
        except DoigetError as error:
            assert error.reason in {"bad_body", "intercepted", "source_limit", "not_an_identifier", "upstream_error"}  # noqa: PT017


# ---- Recorded bodies ----


def recorded(folder: str, pattern: str = "*.json") -> list[Path]:
    return sorted((RECORDED / folder).glob(pattern))


def items_of(source: str, body):
    """Take the records out of a recorded body."""
    if source == "crossref" and "items" in doiget.as_dict(body.get("message")):
        return body["message"]["items"]
    if source == "europepmc":
        return body["resultList"]["result"]
    for name in ("results", "data"):
        if isinstance(body.get(name), list):
            return body[name]
    return [body]


@needs_recorded
@pytest.mark.parametrize(
    ("source", "folder", "at_least"),
    [
        ("crossref", "crossref/works", 140),
        ("crossref", "crossref/query", 20),
        ("csl", "crossref/csl", 11),
        ("datacite", "datacite", 55),
        ("datacite", "datacite/lists", 2),
        ("openalex", "openalex", 40),
        ("openalex", "openalex/select", 3),
        ("openalex", "openalex/list", 3),
        ("unpaywall", "unpaywall", 35),
        ("unpaywall", "unpaywall/search", 1),
        ("europepmc", "europepmc", 30),
    ],
)
def test_recorded_bodies_are_read(source, folder, at_least):
    read = 0
    for path in recorded(folder):
        for item in items_of(source, doiget.parse_json(path.read_bytes())):
            check(source, item)
            read += PARSERS[source](item) is not None
    assert read >= at_least


@needs_recorded
@pytest.mark.parametrize("source", ["crossref/works", "datacite", "openalex", "unpaywall", "europepmc"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_recorded_bodies_can_be_spoilt(source, data):
    name = source.partition("/")[0]
    body = json.loads(data.draw(st.sampled_from(recorded(source))).read_bytes())
    for item in items_of(name, body)[:1]:
        check(name, spoil(data, spoil(data, item, data.draw(VALUES)), data.draw(VALUES)))


@needs_recorded
def test_recorded_errors_are_no_records():
    for path in recorded("", "*/errors/*"):
        try:
            body = doiget.parse_json(path.read_bytes())
        except DoigetError:
            continue
        assert all(parse(body) is None for parse in PARSERS.values()), path


@needs_recorded
def test_recorded_arxiv_feeds():
    counts = {}
    for path in recorded("arxiv", "*"):
        try:
            works = doiget.parse_arxiv_feed(path.read_bytes())
        except DoigetError as error:
            counts[path.stem] = error.reason
            continue
        counts[path.stem] = len(works)
        for work in works:
            assert work.arxiv_id
            assert work.arxiv_version
            assert work.title
            assert work.authors
            assert work.abstract
            assert doiget.work_from_dict(doiget.work_to_dict(work)) == work
    assert (counts["id-abc-http400"], counts["rate-limited-429"], counts["id-0000.0000-empty"]) == (
        "not_an_identifier",
        "source_limit",
        0,
    )
    assert counts["search-science-0-10"] == 10


#: What must come out of recorded oddities: folder, file, and the fields of the work.
ODDITIES = [
    (
        "crossref/works",
        "10.1088__1742-6596__1093__1__012006",
        {
            "title": "The Effects of Catalyst Weight and Mole Ratio of Oil-Methanol on Crude Palm Oil (CPO) Esterification using H2SO₄ (3M) / Clay Catalyst"
        },
    ),
    (
        "crossref/works",
        "10.1103__physrevc.91.057301",
        {"title": "Persistence of collective behavior at high spin in the N = 88 nucleus ¹⁵³Tb"},
    ),
    (
        "crossref/works",
        "10.5194__cp-2020-95",
        {
            "title": "The Atmospheric Bridge Communicated the δ¹³C Decline during the Last Deglaciation to the Global Upper Ocean",
            "type": "preprint",
        },
    ),
    (
        "crossref/works",
        "10.1001__archpedi.1951.02040040742008",
        {"title": "IDIOPATHIC ACQUIRED HEMOLYTIC ANEMIA IN AN INFANT: Successful Treatment with Corticotropin (ACTH)"},
    ),
    ("crossref/works", "10.2165__00128415-200711580-00046", {"authors": (), "volume": None, "issue": "1158"}),
    (
        "crossref/works",
        "10.1306__00aa9ad4-1730-11d7-8645000102c1865d",
        {"authors": (Author("BROWNE", "CAROLYN S."),), "volume": "83 (1999)"},
    ),
    (
        "crossref/works",
        "10.14264__uql.2020.791",
        {"date": "2020-05-25", "institution": "The University of Queensland", "type": "dissertation"},
    ),
    ("crossref/works", "10.36576__summa.9144", {"title": None, "date": "1893-08-11", "type": "journal-issue"}),
    ("crossref/works", "10.7600__jspfsm.56.60", {"title": "自律神経・循環器応答"}),
    ("crossref/works", "10.1016__s0140-6736(10)60175-4", {"retraction": None, "authors": ()}),
    (
        "crossref/works",
        "10.1007__978-3-030-64953-1_4",
        {"container_title": "Empiricism and Philosophy of Physics", "series": "Synthese Library", "license": None},
    ),
    ("datacite", "10.14457__kmitl.res.2006.17", {"year": None, "date": None}),
    ("datacite", "10.1002__2015jc010802", {"publisher": None, "year": None, "pages": "133-147"}),
    (
        "datacite",
        "10.7910__dvn__eqtqyo",
        {"authors": (Author("Enos", "Ryan"), Author("Fowler", "Anthony"), Author("Vavreck", "Lynn"))},
    ),
    ("datacite", "10.7891__e-manuscripta-48483", {"year": 1596, "publisher": None}),
    ("unpaywall", "10.1073__iti3620117", {"oa_status": None, "title": None}),
]


@needs_recorded
@pytest.mark.parametrize(("folder", "name", "fields"), ODDITIES, ids=[name for _, name, _ in ODDITIES])
def test_recorded_oddities_come_out_right(folder, name, fields):
    parsed = PARSERS[folder.partition("/")[0]](json.loads((RECORDED / folder / f"{name}.json").read_bytes()))
    assert parsed is not None
    assert {field: getattr(parsed[0], field) for field in fields} == fields


@needs_recorded
def test_no_recorded_text_keeps_markup():
    for source, folder in (
        ("crossref", "crossref/works"),
        ("datacite", "datacite"),
        ("openalex", "openalex"),
        ("europepmc", "europepmc"),
    ):
        for path in recorded(folder):
            for item in items_of(source, json.loads(path.read_bytes())):
                parsed = PARSERS[source](item)
                assert parsed is not None
                text = json.dumps(doiget.work_to_dict(parsed[0]), ensure_ascii=False)
                for mark in ("</", "<jats", "<mml", "mml:", "&amp;", "&lt;", "&#", "\\u20"):
                    assert mark not in text, (path.name, mark)
