"""Bibliographies in: every kind and dialect of list, however broken, gives all its entries, clean and in order."""

# ruff: noqa: E501, ISC004, PT018, Q003, RUF001 - lists are as wide and odd as they are; what belongs together is asserted so
from __future__ import annotations

import json
import os
import re
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_12_exports import RECORDED, entry_of, recorded_works
from test_24_mcp import schemas, serve  # noqa: F401 - fixtures
from test_25_cli import error_of, shelve
from worlds import pdf_bytes, sha256

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Home, Runner
    from fake_internet import FakeInternet
    from worlds import World

parse, tex = doiget.parse_bibliography, doiget.tex_to_text


def refs(data: bytes | str) -> list[str | None]:
    return [str(one.ref) if one.ref else None for one in parse(data).references]


def titles(data: bytes | str) -> list[str | None]:
    return [one.work.title for one in parse(data).references]


def field(text: str) -> Any:
    """The one entry of a .bib with these fields."""
    (one,) = parse(f"@article{{k, {text}}}").references
    return one


def names(text: str) -> list[tuple[str, ...]]:
    """(particle, family, suffix, given) of each author, or (body,)."""
    found = field(f"author = {{{text}}}").work.authors
    return [(a.literal,) if a.literal else (a.particle, a.family, a.suffix, a.given) for a in found]


# ############################################################################
# .bib
# ############################################################################


def test_a_byte_order_mark_costs_no_entry() -> None:
    """Case BI-01."""
    bib = parse(b"\xef\xbb\xbf@article{one, title={A}, year=2001}\r\n@article{two, title={B}, year=2002}")
    assert [(one.key, one.work.title, one.work.year, one.line) for one in bib.references] == [
        ("one", "A", 2001, 1), ("two", "B", 2002, 2)]  # fmt: skip
    assert bib.warnings == ()


def test_stray_text_double_keys_and_capital_names() -> None:
    """Case BI-02."""
    bib = parse(
        "Some notes by J. Doe.\n@comment a line without braces\n@ARTICLE{dup, Author = {Doe, A.}, TITLE = {First}, "
        "Year = 2001}\n}\n@article{dup, author={Roe, B.}, title={Second}, year=2002}"
    )
    assert [(one.key, one.work.title, one.work.authors[0].family) for one in bib.references] == [
        ("dup", "First", "Doe"), ("dup", "Second", "Roe")]  # fmt: skip
    assert bib.warnings == ("duplicate key dup: lines 3, 5",)


def test_months_and_strings() -> None:
    """Case BI-03, and macros of one's own, also joined."""
    assert field("title={T}, year=2010, month = jul").work.date == "2010-07"
    bib = parse('@STRING(j = "Journal of " # {X})\n@article{s, journal = J # { and } # "Y", year = 19 # 99, title=t}')
    assert (bib.references[0].work.container_title, bib.references[0].work.year) == ("Journal of X and Y", 1999)


def test_accents() -> None:
    """Case BI-04."""
    one = parse(
        r"@book{x, author={Vega, Mart{\'\i}n and M{\"u}ller, {\O}ystein}, title={Die Gedenk\"uberlieferung}, year=1989}"
    )
    work = one.references[0].work
    assert [f"{a.family}, {a.given}" for a in work.authors] == ["Vega, Martín", "Müller, Øystein"]
    assert work.title == "Die Gedenküberlieferung"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (r"{\'\i}\'{\i}\'i", "ííí"), (r"\v{s}\v s{\v s}\c c\c{c}", "šššçç"), (r"Stra{\ss}e Stra\ss e", "Straße Straße"),
        (r"{\AA}{\ae}\OE{}\L", "ÅæŒŁ"), (r"\H{o}\k{a}\u{g}\d{s}\b{d}\r{a}\.I\=a\~n\^\j", "őąğṣḏåİāñĵ"),
        (r"Nguy{\~{\^e}}n \'{\^{a}}", "Nguyễn ấ"), (r"{\'{e}}\'E\`{A}", "éÉÀ"), (r"A \& B, 5\% \$1 \#2 a\_b \{c\}", "A & B, 5% $1 #2 a_b {c}"),
        (r"{\em x} \emph{y} \textbf{z}", "x y z"), ("a~b -- c --- ``d''", "a b – c — “d”"), (r"H$_2$O, 10$^{-3}$, $\alpha$-ray", "H₂O, 10⁻³, α-ray"),
        (r"\textsuperscript{13}C \textsubscript{x}", "¹³C ₓ"), (r"$\Lambda$CDM \varepsilon", "ΛCDM ε"), (r"\textless i\textgreater", "<i>"),
        (r"\textbackslash{}x \textbraceleft{}", "\\x {"), (r"\LaTeX{} is \TeX", "LaTeX is TeX"), ("{{Keep} Case}", "Keep Case"),
        (r"no \unknown{command} here", "no command here"), ("\\'", ""), ("{" * 3 + "}", ""), ("$5 and", "$5 and"),
    ],
)  # fmt: skip
def test_tex_becomes_unicode(raw: str, text: str) -> None:
    assert tex(raw) == text


def test_names_as_people_write_them() -> None:
    """A suffix at the end, et al. in the last name, authors under A1 and AU, PubMed's order."""
    bib = parse("@article{a, author={Smith, J. et al.}}\n@article{b, author={Poe, R., Jr.}}").references
    assert [one.work.authors for one in bib] == [
        (doiget.Author("Smith", "J."),),
        (doiget.Author("Poe", "R.", "", "Jr."),),
    ]
    ris = parse(
        "TY  - JOUR\nA1  - Berg, Anna\nAU  - Mayo Clinic MN\nAU  - Berg, Anna\nAU  - John Roe\n"
        "AU  - Cancer Research UK\nAU  - Team USA\nER  - \n"
    ).references
    assert ris[0].work.authors == (
        doiget.Author("Berg", "Anna"),
        doiget.Author(literal="Mayo Clinic MN"),
        doiget.Author("Roe", "John"),
        doiget.Author(literal="Cancer Research UK"),
        doiget.Author(literal="Team USA"),
    )
    assert parse("PMID- 2\nTI  - B\nFAU - Smith JA\n").references[0].work.authors == (doiget.Author("Smith", "JA"),)


def test_an_author_called_others() -> None:
    assert names("Doe, J and {others} and others") == [("", "Doe", "", "J"), ("others",)]


def test_names() -> None:
    assert names("von Neumann, John and King, Jr., Martin Luther and others") == [
        ("von", "Neumann", "", "John"), ("", "King", "Jr.", "Martin Luther")]  # fmt: skip
    assert names("Ludwig van Beethoven AND\n Jean-Paul Sartre") == [
        ("", "van Beethoven", "", "Ludwig"),
        ("", "Sartre", "", "Jean-Paul"),
    ]
    assert names(r"{World Health Organization} and {Barnes and Noble} and {M{\"u}ller AG}") == [
        ("World Health Organization",), ("Barnes and Noble",), ("Müller AG",)]  # fmt: skip
    assert names("de la Cruz, Mar{\\'\\i}a and Doe, A. and") == [("de la", "Cruz", "", "María"), ("", "Doe", "", "A.")]
    assert names("family=Hasselt, given=Jan, prefix=van") == [("van", "Hasselt", "", "Jan")]
    assert names("Doe, A.; Roe, B.") == [("", "Doe", "", "A."), ("", "Roe", "", "B.")]
    assert names("The ATLAS Collaboration and Plato") == [("The ATLAS Collaboration",), ("Plato",)]


@pytest.mark.parametrize(
    ("fields", "date"),
    [
        ("date={2010-07-15}, year=1999", "2010-07-15"), ("date={2010-07/2010-09}", "2010-07"), ("year={2010}, month={July}", "2010-07"),
        ('year=2010, month=15 # "~" # jul', "2010-07-15"), ("year={c1998}", "1998"), ("year={in press}", None),
        ("date={}, year={{2001}}, month={12}, day={4}", "2001-12-04"), ("date={October 19, 2016}", "2016"), ("year=2010, month=99", "2010"),
    ],
)  # fmt: skip
def test_dates(fields: str, date: str | None) -> None:
    assert field(fields).work.date == date


@pytest.mark.parametrize(
    ("fields", "ref"),
    [
        ("DOI={10.1000/ABC}", "10.1000/abc"), (r"doi={\url{https://doi.org/10.1000/a\_b}}", "10.1000/a_b"), ("doi = 10.1000/x(1)y", "10.1000/x(1)y"),
        (r"doi={10.1002/(SICI)1097-0258(19980815/30)17:15/16{\textless}1661::AID-SIM968{\textgreater}3.0.CO;2-2}",
         "10.1002/(sici)1097-0258(19980815/30)17:15/16<1661::aid-sim968>3.0.co;2-2"),
        ("doi={10.48550/arXiv.1706.03762}", "arXiv:1706.03762"), ("url={https://arxiv.org/abs/1706.03762}, doi={10.1000/x}", "10.1000/x"),
        ("eprint={1706.03762v3}, archivePrefix={arXiv}", "arXiv:1706.03762v3"), ("eprint={hep-th/9711200}", "arXiv:hep-th/9711200"),
        ("eprint={123456}, eprinttype={pubmed}", "pmid:123456"), ("pmid={12345678}", "pmid:12345678"), ("pmid={PMID: 123}", "pmid:123"),
        ("pmcid={PMC99}", "PMC99"), ("pmc=99", "PMC99"), ("note={PMID: 12345678}", "pmid:12345678"), ("note={DOI 10.1000/n, in press}", "10.1000/n"),
        ("journal={CoRR}, volume={abs/1706.03762}", "arXiv:1706.03762"),
        ("journal={arXiv preprint arXiv:1706.03762}", "arXiv:1706.03762"), (r"howpublished={\url{https://doi.org/10.1000/h}}", "10.1000/h"),
        ("doi={n/a}, url={https://doi.org/10.1000/u}", "10.1000/u"), ("doi={12345678}", None), ("note={12345678}", None),
        ("note={Comment on: 10.1000/182}", None), ("note={Erratum: 10.1000/182}", None), ("title={2010}", None),
    ],
)  # fmt: skip
def test_where_identifiers_stand(fields: str, ref: str | None) -> None:
    found = field(fields).ref
    assert (str(found) if found else None) == ref


def test_identifiers_of_several_kinds_and_in_keys() -> None:
    work = field("doi={10.1000/x}, eprint={1706.03762v2}, archiveprefix=arXiv, pmid=5, pmcid={PMC6}").work
    assert (work.doi, work.arxiv_id, work.arxiv_version, work.pmid, work.pmcid) == (
        "10.1000/x",
        "1706.03762",
        2,
        "5",
        "PMC6",
    )
    assert refs("@article{10.1093/nar/gkab123, title={T}}\n@article{12345678, title={U}}\n@article{2017arXiv170603762V, title={V}}") == [
        "10.1093/nar/gkab123", None, None]  # fmt: skip
    (doubtful,) = parse("@misc{k, doi={soon}, note={Its data are at 10.1000/d}}").references
    assert str(doubtful.ref) == "10.1000/d"
    assert doubtful.warnings == (
        "the field doi holds no identifier: soon",
        "the identifier was found inside the field note",
    )


@pytest.mark.parametrize(
    "broken",
    [
        "@article{b, title={B {unclosed}, year=2000}", '@article{b, title="B unclosed, year=2000}', "@article{b, title={B}}, year=2000}",
        "@article{b, title={B}, year=2000,,\n", "@article{b, title={B}; year = 2000}", "@article{b, title={B} year={2000}",
        "@article{b,\n  title={B},\n abstract={some { text,\n year={2000}\n}", "@article(b, title={B}, year=2000", "@article{b, title = {B,\n year = 2000\n}",
    ],
)  # fmt: skip
def test_a_broken_entry_takes_no_other_with_it(broken: str) -> None:
    bib = parse(
        f"@article{{a, title={{A}}}}\n{broken}\n@article{{c, title={{C}}, doi={{10.1000/c}}}}\n@article{{d, title={{D}}}}\n"
    )
    assert [one.key for one in bib.references] == ["a", "b", "c", "d"]
    assert [one.work.title for one in bib.references][::2] == ["A", "C"]
    assert (bib.references[1].work.title or "").startswith("B") and bib.references[1].work.year == 2000
    assert all("line 2" in warning for warning in bib.warnings)


def test_odd_but_whole_entries() -> None:
    text = (
        "@article{title={No key}, year=2001}\n@article{, title={Empty}}\n@article{Smith 2001, title={Space}}\n@article{bare}\n"
        "@article {p , title = {A \\{ brace\\}} , }@book(q, title={mail @home{x}}, note={a\n@home{y} b})\n@misc{u, title=unknownmacro}\n"
        "@article{f, title={}, title={one}, title={two}, url={}}"
    )
    bib = parse(text)
    assert [(one.key, one.work.title) for one in bib.references] == [
        (None, "No key"), (None, "Empty"), ("Smith 2001", "Space"), ("bare", None), ("p", "A { brace}"), ("q", "mail @homex"),
        ("u", "unknownmacro"), ("f", "one")]  # fmt: skip
    assert bib.warnings == ()
    assert parse("@article{b, title={B}").references[0].work.title == "B", "the last one is cut short"


def test_comments_are_no_entries_but_mentioned_when_they_name_papers() -> None:
    bib = parse(
        '% Encoding: UTF-8\n@comment{jabref-meta: databaseType:bibtex;}\n@preamble{"\\newcommand{x}"}\n@comment{@article{gone, doi={10.1000/gone}}}\n'
        "write to john@doe.example, see 10.1000/stray\n@article{a, title={A}}\n@string{x = {unclosed}\n@article{b, title={B}}"
    )
    assert [one.key for one in bib.references] == ["a", "b"]
    assert [warning.split(":")[0] for warning in bib.warnings] == ["line 4", "line 5", "line 7"]


def test_a_part_inherits_from_the_whole() -> None:
    bib = parse(
        "@inproceedings{part, title={P}, crossref={Whole}, pages={1--2}}\n@proceedings{whole, title={Proc. of X}, year=1999, "
        "publisher={ACM}, doi={10.1000/whole}, file={whole.pdf}, editor={Ed, A.}}\n@incollection{lost, title={L}, crossref={nowhere}}"
    )
    part, whole, _ = bib.references
    assert (part.work.container_title, part.work.year, part.work.publisher, part.work.pages) == (
        "Proc. of X",
        1999,
        "ACM",
        "1-2",
    )
    assert part.ref is None and part.files == (), "no identifier and no file is handed down"
    assert (str(whole.ref), whole.work.title) == ("10.1000/whole", "Proc. of X")


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("Full Text:files/12/a b.pdf:application/pdf;Snapshot:files/13/x.html:text/html", ("files/12/a b.pdf", "files/13/x.html")),
        ("/home/u/Zotero/storage/A/x.pdf", ("/home/u/Zotero/storage/A/x.pdf",)), ("x.pdf:PDF", ("x.pdf",)), (":C:/U/a.pdf:PDF", ("C:/U/a.pdf",)),
        (r"PDF:C\:\\U\\x\;y.pdf:application/pdf", (r"C:\U\x;y.pdf",)), (":rel/p.pdf:PDF;", ("rel/p.pdf",)), ("C:/U/x.pdf", ("C:/U/x.pdf",)),
        (r":C$\backslash$:/U/M{\"{u}}ller{\_}1.pdf:pdf", ("C:/U/Müller_1.pdf",)), (r"a\:b.pdf", ("a:b.pdf",)), ("", ()), (";;:", ()),
    ],
)  # fmt: skip
def test_attached_files(value: str, paths: tuple[str, ...]) -> None:
    """As JabRef, Zotero, Better BibTeX and Mendeley write them."""
    assert field(f"file = {{{value}}}").files == paths


BIB = "@article{k, title={Grüße – ‘x’}, doi={10.1000/x}}\n@article{l, title={B}}"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings(encoding: str) -> None:
    for text in (BIB, BIB.replace("\n", "\r\n"), BIB.replace("\n", "\r")):
        assert titles(text.encode(encoding)) == ["Grüße – ‘x’", "B"]
    mixed = BIB.encode() + "\n@article{m, title={Köln}}".encode("latin-1")
    assert titles(mixed) == ["Grüße – ‘x’", "B", "Köln"], "one line in another encoding spoils only itself"


# ############################################################################
# RIS and PubMed
# ############################################################################

RIS = """TY  - JOUR
T1  - Grid cells
AU  - Doe, Ann
Y1  - 2016/10/19
PY  - 2016
N1  - doi: 10.1016/j.neuron.2016.10.006
DO  - 10.1016/j.neuron.2016.10.006
N2  - Same text.
AB  - Same text.
ER  -
"""


def test_ris_takes_the_right_date_and_the_abstract_once() -> None:
    """Case RI-01, import."""
    for text in (
        RIS,
        "\ufeff" + RIS,
        RIS.replace("\n", "\r\n"),
        RIS.replace("  - ", " - "),
        RIS.replace("  -", "  -  "),
        RIS.replace("ER  -\n", ""),
    ):
        (one,) = parse(text).references
        work = one.work
        assert (work.date, work.abstract, work.doi, work.title) == (
            "2016-10-19",
            "Same text.",
            "10.1016/j.neuron.2016.10.006",
            "Grid cells",
        )
        assert (
            str(one.ref) == "10.1016/j.neuron.2016.10.006"
            and work.authors[0].family == "Doe"
            and work.type == "journal-article"
        )


def test_ris_dialects() -> None:
    text = (
        "Provider: X\nContent:text/plain\n\nTY  - JOUR\nID  - key1\nTI  - A title:\n      that goes on\nA1  - Smith, John, Jr.\nT2  - Full Name\n"
        "JO  - F. N.\nPY  - 2001///\nDA  - 2019/05/06/\nY2  - 2020/01/01\nSP  - 10\nEP  - 20\nVL  - 3\nIS  - 4\nSN  - 1234-5678\nUR  - https://doi.org/10.1000/ris\n"
        "L1  - files/12/a.pdf\nTY  -CHAP\nTI -No end before it\nT2  - Book\nA2  - Ed, A.\nER-\n\n\nTY  - JOUR\nAN  - 12345678\nDB  - PubMed\nC2  - PMC7\n"
        "ER  - \nTY  - GEN\nER  - \nTI  - No type\nER  - "
    )
    ris = parse(text)
    first, second, third, empty, untyped = ris.references
    work = first.work
    assert (first.key, str(first.ref), first.files, first.line) == ("key1", "10.1000/ris", ("files/12/a.pdf",), 4)
    assert (work.title, work.container_title, work.date, work.pages) == (
        "A title: that goes on",
        "Full Name",
        "2001",
        "10-20",
    )
    assert (work.volume, work.issue, work.issn, work.authors[0].suffix) == ("3", "4", ("1234-5678",), "Jr.")
    assert (second.work.title, second.work.container_title, second.work.editors[0].family) == (
        "No end before it",
        "Book",
        "Ed",
    )
    assert (str(third.ref), third.work.pmcid) == ("pmid:12345678", "PMC7")
    assert ris.warnings == ()
    assert parse("TY  - JOUR\nER  - \nno tag: doi:10.1000/x").warnings == (
        "line 3: text outside entries is not read: 10.1000/x",
    )
    assert empty.ref is None and untyped.work.title == "No type"


def test_pubmeds_own_format() -> None:
    text = (
        "PMID- 31178118\nDP  - 2019 Jun 13\nTI  - Comprehensive Integration of\n      Single-Cell Data.\nPG  - 1888-1902.e21\n"
        "LID - S0092-8674(19)30559-8 [pii]\nLID - 10.1016/j.cell.2019.05.031 [doi]\nFAU - Stuart, Tim\nAU  - Stuart T\nJT  - Cell\nVI  - 177\n"
        "IP  - 7\nPMC - PMC6687398\n\nPMID- 2\nTI  - B\n"
    )
    one, two = parse(text).references
    work = one.work
    assert (str(one.ref), work.pmid, work.pmcid, work.date) == (
        "10.1016/j.cell.2019.05.031",
        "31178118",
        "PMC6687398",
        "2019-06-13",
    )
    assert (work.title, work.volume, work.issue, work.pages) == (
        "Comprehensive Integration of Single-Cell Data.",
        "177",
        "7",
        "1888-1902.e21",
    )
    assert [(a.family, a.given) for a in work.authors] == [("Stuart", "Tim")]
    assert (str(two.ref), two.work.title) == ("pmid:2", "B")


# ############################################################################
# JSON
# ############################################################################


def test_csl_json() -> None:
    items = [
        {"id": "http://zotero.org/users/1/items/AB", "citation-key": "berg2016", "type": "article-journal", "title": "A <i>b</i>",
         "author": [{"family": "Berg", "given": "J", "non-dropping-particle": "van"}, {"literal": "WHO"}],
         "issued": {"date-parts": [["2016", "10", 19]]}, "container-title": "J", "page": "1–3", "note": "DOI: 10.1000/n\nPMID: 123"},
        {"id": 2, "title": "B", "DOI": "https://doi.org/10.1000/B", "issued": {"literal": "October 2016"}, "note": "PMID: 5"},
        {"id": "none", "title": "C", "issued": {"raw": "2015"}},
    ]  # fmt: skip
    for text in (
        json.dumps(items),
        json.dumps({"items": items}),
        "\n".join(map(json.dumps, items)),
        json.dumps(items, indent=1),
    ):
        csl = parse(text)
        one, two, three = csl.references
        work = one.work
        assert (one.key, str(one.ref), work.title, work.date, work.pages, work.pmid) == (
            "berg2016",
            "10.1000/n",
            "A b",
            "2016-10-19",
            "1-3",
            "123",
        )
        assert [(a.particle, a.family, a.literal) for a in work.authors] == [("van", "Berg", ""), ("", "", "WHO")]
        assert (two.key, str(two.ref), two.work.year, two.work.pmid) == ("2", "10.1000/b", 2016, "5")
        assert (three.ref, three.work.date, csl.warnings) == (None, "2015", ())
    assert refs('{"id": "one", "DOI": "10.1000/one"}') == ["10.1000/one"]


def test_zotero_and_better_bibtex_json() -> None:
    item = {"itemType": "journalArticle", "citationKey": "doe2016", "title": "A", "date": "2016-10-19", "DOI": "10.1000/z",
            "creators": [{"creatorType": "author", "firstName": "A", "lastName": "Doe"}, {"creatorType": "author", "name": "WHO"},
                         {"creatorType": "editor", "firstName": "B", "lastName": "Ed"}], "publicationTitle": "J", "extra": "PMID: 99",
            "attachments": [{"path": "files/1/a.pdf"}, {}]}  # fmt: skip
    preprint = {"itemType": "preprint", "title": "P", "extra": "arXiv:1706.03762 [cs]", "date": "October 19, 2016"}
    one, two = parse(json.dumps({"config": {}, "items": [item, preprint]})).references
    work = one.work
    assert (one.key, str(one.ref), one.files, work.pmid, work.date) == (
        "doe2016",
        "10.1000/z",
        ("files/1/a.pdf",),
        "99",
        "2016-10-19",
    )
    assert (work.container_title, work.type, [a.family or a.literal for a in work.authors]) == (
        "J",
        "journal-article",
        ["Doe", "WHO"],
    )
    assert [a.family for a in work.editors] == ["Ed"]
    assert (str(two.ref), two.work.year) == ("arXiv:1706.03762", 2016)
    (api,) = parse(json.dumps({"key": "ABCD", "data": preprint})).references
    assert (api.key, str(api.ref)) == ("ABCD", "arXiv:1706.03762")


def test_broken_and_odd_json() -> None:
    good = [{"id": n, "title": "T", "DOI": f"10.1000/{n}"} for n in "abc"]
    lines = [json.dumps(item) for item in good]
    csl = parse("[" + ",\n".join([lines[0], lines[1].replace(', "DOI"', ' "DOI"'), lines[2]]))
    assert [one.key for one in csl.references] == ["a", "c"]
    assert len(csl.warnings) == 1 and csl.warnings[0].startswith("line 2:")
    assert refs('{"items": [' + ",".join(lines)) == ["10.1000/a", "10.1000/b", "10.1000/c"], "cut short"
    odd = parse(
        '["10.1000/a", "see 10.1000/b", 5, null, {"title": ["T"], "DOI": 5, "author": "x", "issued": [2001], "type": []}, []]'
    )
    assert [str(one.ref) for one in odd.references] == ["10.1000/a", "10.1000/b", "None", "None", "None", "None"]
    assert parse("[]").references == ()
    for depth in (80, 900, 100_000):
        with pytest.raises(doiget.DoigetError, match="nested"):
            parse('[{"title":' + "[" * depth + "]" * depth + "}]")


# ############################################################################
# Plain text
# ############################################################################


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.1000/a\n\n# comment\nhttps://arxiv.org/abs/1706.03762\n12345678\nnothing here", ["10.1000/a", "arXiv:1706.03762", "pmid:12345678", None]),
        ("10.1000/a, 10.1000/b\n10.1000/c 10.1000/d arXiv:1706.03762 PMID: 5", ["10.1000/a", "10.1000/b", "10.1000/c", "10.1000/d", "arXiv:1706.03762", "pmid:5"]),
        ("Doe J. A title. J. 2020. doi: 10.1000/a. PMID: 5; PMCID: PMC6.", ["10.1000/a"]),
        ("Abbott et al., PRL 116 (2016), doi:10.1000/a [arXiv:1602.03837]", ["10.1000/a"]), ("Read Doe, 10.1000/a, and arXiv:1602.03837", ["10.1000/a", "arXiv:1602.03837"]),
        ("[1] J. Doe, A long title, Journal 1 (2001) 10.1000/a\n[2] R. Roe,\n    Another title, 2002\n[3] Wiki", ["10.1000/a", None, None]),
        ("1. Doe. First.\n2. Roe. Second, see\n10.1000/b\n", [None, "10.1000/b"]),
        ("LeCun, Y., Bengio, Y. & Hinton, G. Deep learning. Nature 521, 436-444 (2015).\nhttps://doi.org/10.1038/nature14539\n\n"
         "Smith, J. A title that is rather long and goes on until the line\nends and wraps. J. Things, 12.", ["10.1038/nature14539", None]),
        ("Smith J. One title. J. 2001.\nDoe A. Two titles. J. 2002.\nRoe B. A third one that has no identifier. J. 2003.", [None, None, None]),
        ("title,doi\nA paper,10.1000/a\n\"B, paper\",10.1000/b\n", [None, "10.1000/a", "10.1000/b"]),
        ("- 10.1000/a\n* nothing\n\u2022 arXiv:1706.03762v2 # a note", ["10.1000/a", None, "arXiv:1706.03762v2"]), ("", []), (" \n\t\n", []), ("#\n#x", []),
    ],
)  # fmt: skip
def test_plain_text(text: str, found: list[str | None]) -> None:
    assert parse(text).kind == "text"
    assert refs(text) == found


def test_a_line_is_kept_as_it_was() -> None:
    one, two = parse(
        "[7] Doe J. A\u200b title\x07. doi: 10.1000/a. PMID: 5\n\nJust words about https://example.org/x"
    ).references
    assert (one.text, one.line, one.work.pmid) == ("Doe J. A title. doi: 10.1000/a. PMID: 5", 1, "5")
    assert one.warnings == ("taken for the same work: pmid:5",)
    assert (two.text, two.line, two.ref, two.name) == (
        "Just words about https://example.org/x",
        3,
        None,
        "Just words about https://example.org/x",
    )


# ############################################################################
# Anything
# ############################################################################


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded bodies are not here")
@pytest.mark.parametrize("form", ["bibtex", "biblatex", "csl", "ris", "ascii bibtex"])
def test_what_is_exported_reads_back(form: str) -> None:
    """Every recorded body, written as a library and read again: the same papers, by identifier, title and authors."""
    entries = [entry_of(work, citekey=f"key{number}") for number, work in enumerate(recorded_works())]
    options = doiget.ExportOptions(ascii=form.startswith("ascii"))
    written = [doiget.EXPORTERS[form.removeprefix("ascii ")].render(entry, options) for entry in entries]
    bib = parse(json.dumps(written) if form == "csl" else "\n".join(written))
    assert (len(bib.references), bib.warnings) == (len(entries), ())
    for entry, one in zip(entries, bib.references, strict=True):
        before, after = entry.work, one.work
        assert (one.key, doiget.parse_ref(entry.ref)) == (entry.citekey, one.ref)
        assert (after.year, after.volume) == (before.year, before.volume)
        names = [[doiget.display_name(author) for author in work.authors] for work in (before, after)]
        assert names[0] == names[1] or form == "ris", "RIS cannot tell a body from a person"
        if "$" not in (before.title or ""):
            assert doiget.full_title(before) == doiget.full_title(after)


PIECES = st.sampled_from(
    ["@article{", "@", "{", "}", "(", ")", '"', ",", "=", "#", "\\", "$", "\n", " ", "title={", "k,", "%", "@comment{", "@string{", "TY  - JOUR\n", "ER  - ",
     "DO  - 10.1000/x\n", '{"title":', "[", "]", ":", "10.1000/x", "arXiv:1706.03762", "1. ", "and ", "\\'", "\\i", "é", "\0", "\ufeff", "\ud800", "file={a:b;}", "year=2000"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=80)))
@example('[{"title":')
@example("@a{,,,=}")
def test_nothing_else_is_ever_raised(text: str) -> None:
    bib = parse(text)
    assert [one.index for one in bib.references] == list(range(1, len(bib.references) + 1))
    for one in bib.references:
        assert doiget.work_from_dict(doiget.work_to_dict(one.work)) == one.work, "all of it is clean"
        assert not re.search(r"[\x00-\x1f\u200b]", f"{one.key}{one.text}")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_bytes_of_any_kind(data: bytes) -> None:
    parse(data)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES.filter(lambda piece: "TY" not in piece), max_size=12).map("".join), st.booleans())
def test_a_whole_entry_is_never_lost_beside_rubbish(rubbish: str, broken: bool) -> None:  # noqa: FBT001
    junk = f"@article{{broken, title={{{rubbish}" if broken else rubbish.lstrip("[{\n ")
    text = f"@article{{first, title={{First}}, doi={{10.1000/first}}}}\n{junk}\n@article{{last, title={{Last}}, doi={{10.1000/last}}}}\n"
    found = {one.key: (one.work.title, one.work.doi) for one in parse(text).references}
    assert (found["first"], found["last"]) == (("First", "10.1000/first"), ("Last", "10.1000/last"))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_tex_is_total_and_leaves_plain_words_alone(text: str) -> None:
    assert isinstance(tex(text), str)
    plain = re.sub(r"[^\w ,.;:!?()/]", "", text)
    assert tex(plain) == plain


@pytest.mark.parametrize(
    "hostile",
    [
        "{" * 300_000, "@" * 300_000, "@a{" * 100_000, "@a{k,t={" * 20_000 + "}" * 40_000, "@a{" + " " * 300_000, "@a{x,y=1" + "#1" * 50_000,
        '@a{x,y="' + "{}" * 50_000, "@a{x,title={" + "\\'" * 100_000 + "}}", "@a{x,author={" + " and " * 30_000 + "}}", "   \n" * 80_000 + "@a{x,y=1}",
        "x @a{x,y=1}\n" * 5_000, "TY  - JOUR\nTI  - x\n" + "y\n" * 100_000, '{"title":"x", ' * 20_000, '{"a":"' + '{\\"' * 80_000, "[" * 300_000,
        "word " * 50_000, "10.1000/x\n" * 3_000, "1" * 300_000, "@a{x,file={" + ";" * 100_000 + "}}", "@a{x,title={$" + "\\$" * 100_000 + "}}",
    ],
    ids=lambda text: re.sub(r"\W+", "_", text[:12]) or "braces",
)  # fmt: skip
def test_hostile_sizes_take_linear_time(hostile: str) -> None:
    """The longest takes some 0.6 s of one processor; anything quadratic takes minutes."""
    began = time.process_time()
    parse(hostile)
    assert time.process_time() - began < 6


@pytest.mark.parametrize("one", ["", *(f"@string{{b{n}=a#a}}" for n in range(3))])
def test_macros_do_not_multiply(one: str) -> None:
    bib = parse('@string{a="x"}' + "@string{a=a#a}" * 40 + one + "@article{q,title=a" + "#a" * 5000 + "}")
    (entry,) = bib.references
    assert entry.work.title and set(entry.work.title.rstrip("\u2026")) == {"x"}
    assert any("@string" in warning for warning in bib.warnings), "what is cut is said"


def test_macros_take_no_room() -> None:
    """Two bytes call up three hundred, as often as the list is long; what does not fit is not even put together."""
    text = '@string{a="' + "x" * 300 + '"}@article{q,title=a' + "#a" * 200_000 + "}"
    tracemalloc.start()
    parse(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25_000_000, peak


@pytest.mark.parametrize(
    ("unit", "start"),
    [("a{}\n", ""), ("@a{{x{},\n", ""), ("@a(x{},", ""), ("TY  - JOUR\nN1  - {}\n", ""), ('{{"title":"{}"}}\n', ""), ("10.1000/a{}, ", "")],
)  # fmt: skip
def test_the_count_is_bounded_and_said(unit: str, start: str) -> None:
    count = doiget.MAX_LISTED + 5
    bib = parse(start + "".join(unit.format(number) for number in range(count)))
    assert len(bib.references) == doiget.MAX_LISTED
    assert bib.warnings[0] == f"only the first {doiget.MAX_LISTED} entries were read; 5 more were not"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":1}\n10.1000/def', [None, "10.1000/def"]),
        ("TY - JOUR see 10.1000/abc", ["10.1000/abc"]),
        ("PMID- 12 is not 10.1000/abc", ["10.1000/abc"]),
        ("I cite @smith{x, y} and 10.1000/abc\n10.1000/def", ["10.1000/abc", "10.1000/def"]),
    ],
)
def test_prose_that_looks_like_another_kind(text: str, found: list[str | None]) -> None:
    assert (parse(text).kind, refs(text)) == ("text", found)


def test_comments_of_a_list_are_mentioned_when_they_name_papers(tmp_path: Path) -> None:
    assert parse("# my arXiv list\n10.1000/a").warnings == ()
    assert parse("10.1000/a\n# 10.1000/x").warnings == ("line 2: text outside entries is not read: 10.1000/x",)
    ours = tmp_path / "wanted.txt"
    doiget.save_wanted(ours, {"10.1000/a": "Erratum to 10.1000/b"}, ["pmid 5, or 10.1000/"])
    assert (refs(ours.read_bytes()), parse(ours.read_bytes()).warnings) == (["10.1000/a"], ())


def test_too_large_is_an_error() -> None:
    with pytest.raises(doiget.DoigetError, match="64 MB"):
        parse(b"x" * (doiget.MAX_BIBLIOGRAPHY_BYTES + 1))


# ############################################################################
# On the command line
# ############################################################################


def offline_batch(run: Runner, *words: str | Path, **how: Any) -> dict[str, Any]:
    answer: dict[str, Any] = run("batch", *words, "--json", "--offline", **how).json()
    assert answer["ok"] is True
    return answer


def test_batch_reads_a_library_and_names_each_entry(run: Runner, home: Home) -> None:
    """Entries in their order; one without identifier with its key; warnings with line numbers."""
    for ref in ("10.1000/a", "10.1000/b"):
        shelve(home, ref)
    bib = (
        "@article{doe2001, doi={10.1000/a}}\n@book{nothing1999, title={No identifier}}\n@article{dup, doi={10.1000/b}}\n"
        "@article{dup, title={Second}}\n@article{12345678, title={A number is no PMID here}}\n@misc{doi={10.1000/a}}"
    )
    for name in ("My library.bib", "library"):
        (home.cwd / name).write_text(bib)
        answer = offline_batch(run, name)
        rows = answer["results"]
        assert [(row["input"], row["ref"], row.get("key")) for row in rows] == [
            ("doe2001", "10.1000/a", "doe2001"), ("nothing1999", None, "nothing1999"), ("dup", "10.1000/b", "dup"), ("dup", None, "dup"),
            ("12345678", None, "12345678"), ("10.1000/a", "10.1000/a", None)]  # fmt: skip
        assert {row["error"]["code"] for row in rows if not row["ok"]} == {"INVALID_REF"}
        assert "nothing1999 (line 2)" in rows[1]["error"]["message"]
        assert answer["counts"] == {"fetched": 0, "already_in_store": 3, "failed": 3, "pending": 0}
        assert answer["warnings"] == ["duplicate key dup: lines 3, 4"]
    result = run("batch", home.cwd / "library", "--offline")
    assert result.rc == 3
    assert [line.split("\t")[0] for line in result.out.splitlines()[:-1]] == ["doe2001", "dup", "10.1000/a"]
    assert "note: duplicate key dup: lines 3, 4" in result.err and "nothing1999\tINVALID_REF" in result.err


def test_every_kind_of_list_from_files_and_stdin(run: Runner, home: Home) -> None:
    """What a list is, its content says, not its name; several and loose words may stand beside each other."""
    shelve(home, "10.1000/a")
    lists = {
        "l.bib": "@article{k, doi={10.1000/a}}", "l.ris": "TY  - JOUR\nDO  - 10.1000/a\nER  - \n", "l.json": '[{"id": "k", "DOI": "10.1000/a"}]',
        "l.txt": "see doi:10.1000/a.", "l.csv": "10.1000/a", "bib.txt": "@article{k, doi={10.1000/a}}", "text.bib": "10.1000/a\n",
    }  # fmt: skip
    for name, text in lists.items():
        (home.cwd / name).write_text(text)
    rows = offline_batch(run, *lists, "10.1000/a", "-", input=b"\xff\xfe" + lists["l.bib"].encode("utf-16-le"))[
        "results"
    ]
    assert [row["ref"] for row in rows] == ["10.1000/a"] * (len(lists) + 2)


def test_a_pmid_only_entry_is_resolved(run: Runner, world: World, home: Home) -> None:
    world.pubmed_paper("12345678", doi="10.1000/pubmed", title="A PubMed paper")
    world.closed("10.1000/pubmed", title="A PubMed paper")
    (home.cwd / "l.bib").write_text("@article{med, title={A PubMed paper}, pmid={12345678}}")
    (row,) = run("batch", "l.bib", "--json").json()["results"]
    assert (row["input"], row["ref"], row["error"]["code"]) == ("med", "10.1000/pubmed", "NO_OA_AVAILABLE")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["empty.bib"], "holds no reference"),
        (["paper.pdf"], "paper.pdf is a PDF, no list"), (["deep.json"], "nested too deep"),
    ],
)  # fmt: skip
def test_lists_that_cannot_be_read(run: Runner, home: Home, net: FakeInternet, words: list[str], what: str) -> None:
    """A clear error before anything is fetched."""
    (home.cwd / "empty.bib").write_text("\n")
    (home.cwd / "paper.pdf").write_bytes(pdf_bytes() + b"\0")
    (home.cwd / "deep.json").write_text('{"a":' * 100_000)
    error = error_of(run("batch", *words, "--json"))
    assert (error["code"], error["reason"]) == ("INVALID_ARGUMENT", "schema")
    assert what in error["message"]
    assert net.connects() == []


def test_what_is_no_list_stays_a_word(run: Runner, home: Home) -> None:
    """A DOI that is also the name of a file, addresses, prose, and words too long for a file name."""
    shelve(home, "10.1000/a")
    (home.cwd / "10.1000").mkdir()
    (home.cwd / "10.1000" / "a").write_text("10.1000/b")
    words = ["10.1000/a", "https://example.org/list.bib", "missing.bib", "see the list.txt", "x" * 5000, "\u0130.bib/x"]
    rows = offline_batch(run, *words)["results"]
    assert [row["ref"] for row in rows] == ["10.1000/a", *[None] * 5]


# ---- add ----


def records(home: Home) -> list[str]:
    return sorted(path.stem for path in home.metadata.glob("*.toml"))


def test_add_a_pdf(run: Runner, world: World, home: Home) -> None:
    """Validated, hashed, recorded as local with the sources' record; a second time it is there already."""
    world.closed("10.1000/mine", title="Mine")
    body = pdf_bytes("mine")
    (home.cwd / "my file.pdf").write_bytes(body)
    (home.cwd / "link.pdf").symlink_to("my file.pdf")
    answer = run("add", "my file.pdf", "--ref", "https://doi.org/10.1000/mine", "--json").json()
    assert (answer["ref"], answer["source"], answer["sha256"], answer["size_bytes"]) == (
        "10.1000/mine",
        "local",
        sha256(body),
        len(body),
    )
    assert (answer["title"], answer["already_in_store"]) == ("Mine", False)
    assert Path(answer["path"]).read_bytes() == body and Path(answer["path"]).parent == home.store
    for name in ("my file.pdf", "link.pdf"):
        again = run("add", home.cwd / name, "--ref", "10.1000/mine", "--json").json()
        assert (again["ok"], again["already_in_store"], again["sha256"]) == (True, True, sha256(body))
    (home.cwd / "other.pdf").write_bytes(pdf_bytes("another"))
    error = error_of(run("add", home.cwd / "other.pdf", "--ref", "10.1000/mine", "--json"))
    assert error["code"] == "INVALID_ARGUMENT" and "holds a PDF of 10.1000/mine already" in error["message"]
    assert Path(answer["path"]).read_bytes() == body
    assert run("log", "verify").rc == 0
    assert [path.name for path in home.store.glob(".*.part")] == []


def test_add_offline_names_what_could_not_be_looked_up(run: Runner, home: Home, net: FakeInternet) -> None:
    (home.cwd / "a.pdf").write_bytes(pdf_bytes())
    answer = run("add", "a.pdf", "--ref", "arXiv:1706.03762v2", "--offline", "--json").json()
    assert (answer["ok"], answer["ref"], answer["title"]) == (True, "arXiv:1706.03762v2", None)
    assert any("offline" in warning for warning in answer["warnings"])
    assert run("path", "arXiv:1706.03762v2").rc == 0
    assert net.connects() == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["missing.pdf", "--ref", "10.1000/a"], "INVALID_ARGUMENT"), ([".", "--ref", "10.1000/a"], "INVALID_ARGUMENT"),
        (["page.pdf", "--ref", "10.1000/a"], "INVALID_ARGUMENT"), (["empty.pdf", "--ref", "10.1000/a"], "INVALID_ARGUMENT"),
        (["huge.pdf", "--ref", "10.1000/a"], "CAPABILITY_DENIED"), (["good.pdf", "--ref", "nonsense"], "INVALID_REF"),
        (["good.pdf"], "INVALID_ARGUMENT"), (["list.txt"], "INVALID_ARGUMENT"), (["missing.bib"], "INVALID_ARGUMENT"), (["."], "INVALID_ARGUMENT"),
        (["list.bib", "--ref", "10.1000/a"], "INVALID_ARGUMENT"), (["pipe", "--ref", "10.1000/a"], "INVALID_ARGUMENT"),
    ],
)  # fmt: skip
def test_add_takes_nothing_else(run: Runner, home: Home, net: FakeInternet, words: list[str], code: str) -> None:
    """What is no PDF is refused before anybody is asked, and leaves nothing behind."""
    (home.cwd / "page.pdf").write_text("<html>Log in</html>")
    (home.cwd / "empty.pdf").write_bytes(b"")
    (home.cwd / "good.pdf").write_bytes(pdf_bytes())
    (home.cwd / "list.txt").write_text("10.1000/a\n")
    (home.cwd / "list.bib").write_text("@article{k, doi={10.1000/a}}\n")
    with (home.cwd / "huge.pdf").open("wb") as file:
        file.write(pdf_bytes())
        file.truncate(201 * 10**6)
    if hasattr(os, "mkfifo"):
        os.mkfifo(home.cwd / "pipe")
    assert error_of(run("add", *words, "--json"))["code"] == code
    assert net.connects() == []
    assert not home.store.exists()


def test_add_a_library(run: Runner, world: World, home: Home, net: FakeInternet) -> None:
    """Each entry with identifier and file; the others are reported with their keys; few requests for all."""
    for name in ("one", "two", "three"):
        world.closed(f"10.1000/{name}", title=name.title())
    folder = home.cwd / "lib"
    (folder / "files" / "12").mkdir(parents=True)
    pdfs = {name: pdf_bytes(name) for name in ("one", "two", "three")}
    (folder / "files" / "12" / "one.pdf").write_bytes(pdfs["one"])
    (folder / "two, final.pdf").write_bytes(pdfs["two"])
    (folder / "page.html").write_text("<html>")
    (home.cwd / "three.pdf").write_bytes(pdfs["three"])
    (folder / "library.bib").write_text(
        "@article{one, doi={10.1000/one}, file={Snapshot:page.html:text/html;one.pdf:files/12/one.pdf:application/pdf}}\n"
        "@article{two, doi={10.1000/two}, file={:two, final.pdf:PDF}}\n@article{three, doi={10.1000/three}, file={"
        + str(home.cwd / "three.pdf")
        + "}}\n"
        "@article{nofile, doi={10.1000/nofile}}\n@article{noid, title={T}, file={two, final.pdf}}\n@article{gone, doi={10.1000/one}, file={gone.pdf}}\n"
        "@article{nopdf, doi={10.1000/two}, file={page.html}}\n@article{share, doi={10.1000/two}, file={\\\\\\\\host\\\\x.pdf}}\n"
    )
    result = run("add", folder / "library.bib", "--json")
    rows = {row["key"]: row for row in result.json()["results"]}
    assert list(rows) == ["one", "two", "three", "nofile", "noid", "gone", "nopdf", "share"]
    assert [rows[name]["sha256"] for name in pdfs] == [sha256(body) for body in pdfs.values()]
    assert (rows["one"]["title"], rows["one"]["source"]) == ("One", "local")
    assert [rows[name]["error"]["code"] for name in ("nofile", "noid", "gone", "nopdf", "share")] == [
        "NOT_FOUND", "INVALID_REF", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT"]  # fmt: skip
    assert (rows["noid"]["ref"], rows["gone"]["ref"]) == (None, "10.1000/one")
    assert result.json()["counts"] == {"added": 3, "already_in_store": 0, "failed": 5}
    assert result.rc == 20
    assert len(net.requests()) <= 4, net.text()
    lines = run("add", folder / "library.bib", "--jsonl", "--offline").jsonl()
    assert [row.get("already_in_store") for row in lines] == [True, True, True, None, None, None, None, None]
    assert "3 already in store, 5 failed" in run("add", folder / "library.bib", "--offline").out


def test_a_share_is_never_opened(run: Runner, home: Home) -> None:
    """`//host/share/x.pdf` would make Windows log in at a stranger's machine; here it names a file that is there."""
    (home.cwd / "a.pdf").write_bytes(pdf_bytes())
    (home.cwd / "l.bib").write_text("@article{k, doi={10.1000/a}, file={/" + str(home.cwd / "a.pdf") + "}}\n")
    (row,) = run("add", "l.bib", "--offline", "--json").json()["results"]
    assert row["error"]["code"] == "INVALID_ARGUMENT"


def test_add_a_library_offline_keeps_what_the_entries_say(run: Runner, home: Home, net: FakeInternet) -> None:
    (home.cwd / "a.pdf").write_bytes(pdf_bytes())
    (home.cwd / "l.ris").write_text(
        "TY  - JOUR\nID  - key\nTI  - Grid cells\nAU  - Doe, Ann\nPY  - 2016\nAN  - 123456\nDB  - PubMed\nL1  - a.pdf\nER  - \n"
    )
    (row,) = run("add", "l.ris", "--offline", "--json").json()["results"]
    assert (row["key"], row["ref"], row["title"], row["year"], row["citekey"]) == (
        "key",
        "pmid:123456",
        "Grid cells",
        2016,
        "doe2016grid",
    )
    assert net.connects() == []


def test_a_tool_never_opens_a_file(serve: Callable[..., Any], home: Home) -> None:  # noqa: F811
    """Over MCP a word is a word: the list of that name is not read."""
    (home.cwd / "l.bib").write_text("@article{k, doi={10.1000/a}}")
    session = serve()
    batch = session.call("batch_fetch", refs=["l.bib", "-"])
    assert [(row["input"], row["ref"], row["error"]["code"]) for row in batch["results"]] == [
        ("l.bib", None, "INVALID_REF"), ("-", None, "INVALID_REF")]  # fmt: skip
