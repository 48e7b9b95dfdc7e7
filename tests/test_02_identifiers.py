"""Section 2: the one parser, canonical forms, safekeys, and what goes into a request path."""

from __future__ import annotations

import contextlib
import json
import re
import time
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import doiget
from doiget import DoigetError, Ref, RefKind, find_refs, is_datacite_prefix, parse_ref, quote_doi, safekey

if TYPE_CHECKING:
    from collections.abc import Callable

SICI = "10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z"
SHORT_SICI = "10.1002/(sici)1-2(2)1:1<6>3.co;2-#"
KEYS_PAGES = [Path(__file__).parent.parent / "docs" / name for name in ("STORE.md", "keys.md")]


def canonical(text: str) -> str | None:
    try:
        return parse_ref(text).canonical
    except DoigetError as error:
        if error.reason != "not_an_identifier":
            raise
        return None


# ---- DOIs ----


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        # Bare, announced, as an address.
        ("10.1103/PhysRevLett.130.200601", "10.1103/physrevlett.130.200601"),
        ("doi:10.1000/abc", "10.1000/abc"),
        ("DOI: 10.1000/abc", "10.1000/abc"),
        ("DOI10.1000/abc", "10.1000/abc"),
        ("info:doi/10.1000/abc", "10.1000/abc"),
        ("http://dx.doi.org/10.1000/ABC", "10.1000/abc"),
        ("HTTPS://WWW.DOI.ORG/10.1000/ABC", "10.1000/abc"),
        ("doi.org/10.1000/abc", "10.1000/abc"),
        ("https://doi.org/doi:10.1000/abc", "10.1000/abc"),
        ("DOI: https://doi.org/10.1000/abc", "10.1000/abc"),
        ("https://hdl.handle.net/10.1000/abc", "10.1000/abc"),
        ("https://doi-org.proxy.example.edu/10.1000/abc", "10.1000/abc"),
        ("10.1000.10/123", "10.1000.10/123"),
        ("10.1037//0022-3514.81.6.1146", "10.1037//0022-3514.81.6.1146"),
        # Percent-encoding: once, only in addresses, only UTF-8; a bare DOI keeps its percent signs.
        (
            "https://doi.org/10.1175/1520-0493(2002)130%3C1913:EDAWPO%3E2.0.CO;2",
            "10.1175/1520-0493(2002)130<1913:edawpo>2.0.co;2",
        ),
        ("https://doi.org/10.1000%2Fabc%252Fd", "10.1000/abc%2fd"),
        ("10.1000%2Fabc", "10.1000/abc"),
        ('10.1000/abc,"Foo, bar",2019', "10.1000/abc"),  # a row of a CSV file
        ("10.1000/a%41", "10.1000/a%41"),
        ("https://doi.org/10.1000/a%FFb", "10.1000/a%ffb"),
        ("https://doi.org/10.1000/%C3%A9", "10.1000/é"),
        ("https://doi.org/10.1000/abc%20", "10.1000/abc"),
        ("https://doi.org/10.1000/abc%E2%80%8B", "10.1000/abc"),
        ("https://doi.org/10.1000/abc%2E", "10.1000/abc"),
        # Query and fragment at the resolver: name=value is a query, anything else is the DOI's.
        ("https://doi.org/10.1000/abc?utm_source=x&y=z#top", "10.1000/abc"),
        ("https://doi.org/10.1000/abc?noredirect", "10.1000/abc"),
        ("https://doi.org/10.1000/abc?def", "10.1000/abc?def"),
        ("https://doi.org/10.1000/456#789", "10.1000/456#789"),
        ("https://doi.org/10.1000/456%23789?x=1", "10.1000/456#789"),
        ("https://doi.org/10.1000/abc#:~:text=word", "10.1000/abc"),
        ("https://doi.org/10.1000/abc#", "10.1000/abc"),
        ("https://doi.org/10.1000/abc/", "10.1000/abc"),
        ("https://doi.org/10.1000/abc.pdf", "10.1000/abc.pdf"),
        ("10.1000/a?b=c", "10.1000/a?b=c"),
        # Opaque inside.
        ("10.1000/a)b", "10.1000/a)b"),
        ('10.1000/a"b|c', '10.1000/a"b|c'),
        ("10.1000/a,b;c", "10.1000/a,b;c"),
        ("10.1000/a\u2013b\u2014c", "10.1000/a\u2013b\u2014c"),
        ("10.1000/\uff211", "10.1000/\uff211"),
        ("10.1000/abc/", "10.1000/abc/"),
        ("10.1000/456#", "10.1000/456#"),
        # Only ASCII letters fold; Unicode is composed.
        ("10.1000/É1", "10.1000/É1"),
        ("10.1000/é1", "10.1000/é1"),
        ("10.1000/e\u0301", "10.1000/é"),
        ("10.1000/J\u030c", "10.1000/ǰ"),
        ("10.1000/İI", "10.1000/İi"),
        ("10.1000/\u212a", "10.1000/k"),
        # Copied along from source text.
        ("10.1007/978-3-032-00942-5\\_12", "10.1007/978-3-032-00942-5_12"),
        (
            "10.1002/1099-1166(200112)16:1+&lt;::AID-GPS563&gt;3.0.CO;2-0",
            "10.1002/1099-1166(200112)16:1+<::aid-gps563>3.0.co;2-0",
        ),
        ("10.1000/a&amp;amp;b", "10.1000/a&b"),
        ("\ufeff10.1000/a\u200bb\u00adc\u202e\U000e0041\x00", "10.1000/abc"),
        ("\u00a010.1000/abc\u3000", "10.1000/abc"),
        ("10.1000/ab\ud800c", "10.1000/abc"),
    ],
)
def test_doi_forms(text: str, doi: str) -> None:
    assert parse_ref(text) == Ref(RefKind.DOI, doi)


@pytest.mark.parametrize("doi", [SICI, "10.1002/(sici)1098-2361(2000)19:1<65::aid-zoo7>3.0.co;2-#", "10.3319/t.02(x)"])
@pytest.mark.parametrize(
    "around",
    [
        "{}", "see {}.", "({})", "(see {}), and", "[{}];", "<{}>", "<doi:{}>", '"{}",', "'{}'", "`{}`", "“{}”,", "«{}»",
        "doi = {{{}}},", "doi={{{}}},year={{2001}}", 'doi="{}", x', "\\doi{{{}}}", "|{}|title|", "{{{{doi|{}}}}}",
        "{{{{cite|doi={}|pmid=1}}}}", "<doi>{}</doi>", "**{}**", "_{}_", "\uff08{}\uff09。", "见{}。下文", "{}?!",
        "{}…",
        "1. {}\n2.", "{}. The next sentence (10.5555/no).", "a,{},2019", "({}).Next", "{}; 10.5555/no",
        "{};doi:10.5555/no",
        "{},https://doi.org/10.5555/no", "https://doi.org/{}.", "<https://doi.org/{}>", "[text](https://doi.org/{})",
        '<a href="https://doi.org/{}">', "\\href{{https://doi.org/{}}}{{here}}", "https://dx.doi.org/{}?utm_source=a&b=c",
        "<b>doi:{}</b>", "{}<br>next", "{}</a>", "DOI {}<br/>",
    ],
)  # fmt: skip
def test_prose_around_a_doi(doi: str, around: str) -> None:
    assert parse_ref(around.format(doi)).id == doi
    assert parse_ref(around.format(doi.upper())).id == doi


@pytest.mark.parametrize(
    ("url", "doi"),
    [
        ("https://onlinelibrary.wiley.com/doi/full/10.1002/anie.201", "10.1002/anie.201"),
        ("https://onlinelibrary.wiley.com/doi/10.1002/(SICI)1-2(2)1:1%3C6%3E3.CO;2-#/abstract", SHORT_SICI),
        ("https://onlinelibrary.wiley.com/doi/10.1002/(SICI)1-2(2)1:1<6>3.CO;2-#", SHORT_SICI),
        ("https://pubs.acs.org/doi/pdf/10.1021/acs.jctc.2c01235?ref=x", "10.1021/acs.jctc.2c01235"),
        ("https://pubs.acs.org/doi/suppl/10.1021/ja1/suppl_file/ja1_si_001.pdf", "10.1021/ja1"),
        ("https://link.springer.com/content/pdf/10.1007%2Fs00-1.pdf", "10.1007/s00-1"),
        ("https://link.springer.com/article/10.1007/s00-1/fulltext.html#Sec2", "10.1007/s00-1"),
        ("https://www.frontiersin.org/articles/10.3389/fpls.2020.00001/full", "10.3389/fpls.2020.00001"),
        ("https://genomebiology.biomedcentral.com/track/pdf/10.1186/s13059-1.pdf", "10.1186/s13059-1"),
        ("https://iopscience.iop.org/article/10.1088/1742-6596/1093/1/012006/meta", "10.1088/1742-6596/1093/1/012006"),
        ("https://www.tandfonline.com/doi/abs/10.1080/1.2;jsessionid=A.b?x=1", "10.1080/1.2"),
        (
            "https://journals.plos.org/plosone/article?id=10.1371/journal.pone.0000001&type=printable",
            "10.1371/journal.pone.0000001",
        ),
        ("https://api.crossref.org/works?filter=doi:10.1000/abc&rows=1", "10.1000/abc"),
        ("https://academic.oup.com/nar/article/doi/10.1093/nar/gkab123/6123456", "10.1093/nar/gkab123"),
        ("https://www.nature.com/articles/s41586-020-2012-7.pdf", "10.1038/s41586-020-2012-7"),
        ("https://www.nature.com/articles/nature.2017.21929#Sec1", "10.1038/nature.2017.21929"),
        ("https://zenodo.org/records/1207631/files/x.pdf?download=1", "10.5281/zenodo.1207631"),
        ("https://elifesciences.org/reviewed-preprints/89106v2", "10.7554/elife.89106"),
        ("https://peerj.com/articles/cs-103.pdf", "10.7717/peerj-cs.103"),
        ("https://peerj.com/articles/pchem-7/", "10.7717/peerj-pchem.7"),
        ("https://peerj.com/articles/453", "10.7717/peerj.453"),
        ("https://papers.ssrn.com/sol3/papers.cfm?abstract_id=2250500", "10.2139/ssrn.2250500"),
        ("www.science.org/doi/10.1126/science.280.5362.421", "10.1126/science.280.5362.421"),
        ("https://web.archive.org/web/2020/https://doi.org/10.1000/abc", "10.1000/abc"),
        ("https://user:pw@pub.example:8443/doi/10.1000/abc.full.pdf", "10.1000/abc"),
    ],
)
def test_publisher_addresses(url: str, doi: str) -> None:
    assert parse_ref(url) == Ref(RefKind.DOI, doi)
    assert parse_ref(f"(see {url}).") == Ref(RefKind.DOI, doi)


@pytest.mark.parametrize(
    ("text", "doi", "version"),
    [
        ("10.1101/2020.05.23.112201v2", "10.1101/2020.05.23.112201", 2),
        ("10.1101/097196v11", "10.1101/097196", 11),
        ("10.1101/2020.05.23.112201v2/pdf/main.pdf", "10.1101/2020.05.23.112201", 2),
        ("10.64898/2025.12.01.25341355v1", "10.64898/2025.12.01.25341355", 1),
        ("https://www.biorxiv.org/content/10.1101/2024.08.06.606807v1.full.pdf", "10.1101/2024.08.06.606807", 1),
        ("https://www.biorxiv.org/content/10.64898/2026.06.02.729628v1.full-text", "10.64898/2026.06.02.729628", 1),
        (
            "https://www.medrxiv.org/content/10.1101/2020.03.01.20029397v2.supplementary-material",
            "10.1101/2020.03.01.20029397",
            2,
        ),
        ("https://www.biorxiv.org/content/early/2016/12/30/097196", "10.1101/097196", None),
        (
            "https://www.biorxiv.org/content/biorxiv/early/2020/05/24/2020.05.23.112201.full.pdf",
            "10.1101/2020.05.23.112201",
            None,
        ),
        ("https://www.biorxiv.org/cgi/content/short/2026.06.02.729628v3", "10.64898/2026.06.02.729628", 3),
        ("10.1101/2020.05.23.112201", "10.1101/2020.05.23.112201", None),
        # Not minted by these servers: opaque.
        ("10.5278/ojs.quivirr.v1.2020.a0001", "10.5278/ojs.quivirr.v1.2020.a0001", None),
        ("10.21203/rs.3.rs-123/v1", "10.21203/rs.3.rs-123/v1", None),
        ("10.7287/peerj.preprints.1v1", "10.7287/peerj.preprints.1v1", None),
        ("10.1101/2020.05.23.112201v0", "10.1101/2020.05.23.112201v0", None),
        ("10.1101/gr.123456v2", "10.1101/gr.123456v2", None),
    ],
)
def test_preprint_versions_are_kept_apart(text: str, doi: str, version: int | None) -> None:
    ref = parse_ref(text)
    assert ref == Ref(RefKind.DOI, doi, version)
    assert ref.canonical == doi
    assert safekey(ref) == safekey(Ref(RefKind.DOI, ref.id))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10/b6vnmd", "10/b6vnmd"),
        ("10/B6VNMD.", "10/b6vnmd"),
        ("doi:10/b6vnmd", "10/b6vnmd"),
        ("DOI: 10/aabbe", "10/aabbe"),
        ("https://doi.org/b6vnmd", "10/b6vnmd"),
        ("https://doi.org/10/b6vnmd?x=1", "10/b6vnmd"),
        ("http://dx.doi.org/aabbe.", "10/aabbe"),
        ("https://shortdoi.org/b6vnmd", "10/b6vnmd"),
        ("as in 10/b6vnmd, we", "10/b6vnmd"),
        ("rated 10/10, great", None),
        ("10/10", None),
        ("paid 10/day for 10/12/2020", None),
        ("on 9/10/b6vnmd", None),
        ("10/b6vnmd/x", None),
        ("https://doi.org/the-identifier/resources", None),
        ("https://doi.org/", None),
        ("https://doi.org/1234567", None),
    ],
)
def test_short_dois(text: str, expected: str | None) -> None:
    assert canonical(text) == expected


# ---- arXiv ----


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2401.12345", "arXiv:2401.12345"),
        ("0704.0001", "arXiv:0704.0001"),
        ("arXiv:2401.12345v2", "arXiv:2401.12345v2"),
        ("ARXIV: 2401.12345V2", "arXiv:2401.12345v2"),
        ("arXiv 0000.00000", "arXiv:0000.00000"),
        ("arXiv:9999.99999", "arXiv:9999.99999"),
        ("arXiv:2401.12345v2 [cs.CL] 24 Jan 2024", "arXiv:2401.12345v2"),
        ("arXiv preprint arXiv:1706.03762 (2017)", "arXiv:1706.03762"),
        ("CoRR, abs/1706.03762", "arXiv:1706.03762"),
        ("eprint = {2401.12345},", "arXiv:2401.12345"),
        ("(2401.12345v3).", "arXiv:2401.12345v3"),
        ("2401.12345v03", "arXiv:2401.12345v3"),
        ("math.GT/0309136", "arXiv:math/0309136"),
        ("Cond-Mat/9501001v2", "arXiv:cond-mat/9501001v2"),
        ("arXiv:hep-th/9711200", "arXiv:hep-th/9711200"),
        ("arXiv:cond-mat.mtrl-sci/0701105", "arXiv:cond-mat/0701105"),
        ("https://arxiv.org/abs/cs/0508053", "arXiv:cs/0508053"),
        ("arxiv.org/abs/math.GT/0309136v1", "arXiv:math/0309136v1"),
        ("https://arxiv.org/pdf/1706.03762v7.pdf", "arXiv:1706.03762v7"),
        ("http://www.arxiv.org/pdf/1706.03762", "arXiv:1706.03762"),
        ("https://export.arxiv.org/abs/hep-th%2F9711200v3", "arXiv:hep-th/9711200v3"),
        ("https://arxiv.org/html/2401.12345v1#S2", "arXiv:2401.12345v1"),
        ("https://arxiv.org/abs/1706.03762?context=cs", "arXiv:1706.03762"),
        ("https://arxiv.org/format/1706.03762", "arXiv:1706.03762"),
        ("https://arxiv.org/ps/hep-th/9711200.", "arXiv:hep-th/9711200"),
        ("https://arxiv.org/abs/arXiv:1706.03762", "arXiv:1706.03762"),
        ("https://export.arxiv.org/api/query?id_list=1706.03762v2", "arXiv:1706.03762v2"),
        ("https://ar5iv.labs.arxiv.org/html/1706.03762", "arXiv:1706.03762"),
        ("https://www.alphaxiv.org/abs/1706.03762v1", "arXiv:1706.03762v1"),
        ("https://huggingface.co/papers/1706.03762", "arXiv:1706.03762"),
        ("10.48550/arXiv.2401.12345", "arXiv:2401.12345"),
        ("https://doi.org/10.48550/ARXIV.2401.12345v2", "arXiv:2401.12345v2"),
        ("10.48550/arXiv.math.GT/0309136.", "arXiv:math/0309136"),
        ("10.48550/arxiv.other", "10.48550/arxiv.other"),
        # Not arXiv's.
        ("2401.12345v0", None),
        ("arXiv:2401.123456", None),
        ("2401.12345.6", None),
        ("about 2413.12345 units", None),
        ("about 1234.5678 and 1412.34567 units", None),
        ("dir/2401.12345.txt", None),
        ("foo/9711200", None),
    ],
)
def test_arxiv_forms(text: str, expected: str | None) -> None:
    assert canonical(text) == expected


def test_versions_of_an_arxiv_id_are_three_refs() -> None:
    keys = {safekey(parse_ref(text)) for text in ("1706.03762v7", "1706.03762v1", "1706.03762")}
    assert keys == {"arxiv_1706.03762v7", "arxiv_1706.03762v1", "arxiv_1706.03762"}
    assert len({parse_ref(text) for text in ("10.48550/arXiv.2401.12345", "arXiv:2401.12345", "2401.12345")}) == 1


# ---- PubMed ----


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pmid:30571677", "pmid:30571677"),
        ("PMID: 123", "pmid:123"),
        ("PMID 00123", "pmid:123"),
        ("30571677", "pmid:30571677"),
        ("(30571677).", "pmid:30571677"),
        ("12345", "pmid:12345"),
        ("https://pubmed.ncbi.nlm.nih.gov/30571677/", "pmid:30571677"),
        ("pubmed.ncbi.nlm.nih.gov/123", "pmid:123"),
        ("https://www.ncbi.nlm.nih.gov/pubmed/123?dopt=Abstract", "pmid:123"),
        ("https://www.ncbi.nlm.nih.gov/pubmed/?term=123", "pmid:123"),
        ("https://europepmc.org/article/MED/30571677#abstract", "pmid:30571677"),
        ("http://europepmc.org/abstract/MED/30571677", "pmid:30571677"),
        ("https://example.org/?id=PMC123_x", "PMC123"),
        ("https://identifiers.org/pubmed:123", "pmid:123"),
        ("PMC1017419", "PMC1017419"),
        ("pmc0123.2", "PMC123"),
        ("pmcid: PMC123", "PMC123"),
        ("PMCID:123", "PMC123"),
        ("PMC 1017419", "PMC1017419"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/1017419", "PMC1017419"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/PMC1/", "PMC1"),
        ("https://pmc.ncbi.nlm.nih.gov/articles/PMC11871994/pdf/main.pdf", "PMC11871994"),
        ("https://europepmc.org/article/PMC/PMC123", "PMC123"),
        ("https://europepmc.org/article/PMC/123", "PMC123"),
        ("https://pubmed.ncbi.nlm.nih.gov/?term=10.1000/x", "10.1000/x"),
        ("1234", None),
        ("123456789", None),
        ("00000", None),
        ("PMC0", None),
        ("pmid:0", None),
        ("in 12345 cases", None),
        ("https://europepmc.org/article/PPR/PPR123456", None),
    ],
)
def test_pubmed_forms(text: str, expected: str | None) -> None:
    assert canonical(text) == expected


# ---- what is no identifier ----


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "\x00", "../outside-secret", "/etc/passwd", "C:\\papers\\30571677", "/data/30571677",
        "~/2401.12345.pdf",
        "./PMC", "10.", "10.1000", "10.1000/", "10.1000/.", "10.1000/ abc", "10.12/abc", "10.1234567890/abc",
        "110.1000/a",
        "1.10.1000/a", "doi:", "https://", "https://example.org/", "http://[::1]/", "file:///etc/passwd", "arXiv:",
        "attention is all you need", "\ud800", "10.١٢٣٤/abc", "१२३४५", "http://169.254.169.254/latest/meta-data/",
    ],
)  # fmt: skip
def test_not_an_identifier(text: str) -> None:
    with pytest.raises(DoigetError) as caught:
        parse_ref(text)
    assert (caught.value.code, caught.value.reason) == (doiget.Code.INVALID_REF, "not_an_identifier")
    assert find_refs(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "10.1000/" + "a" * 249,
        "https://doi.org/10.1000/" + "%C3%A9" * 249,
        "see 10.1000/" + "a" * 100_000 + " there",
        "10.1000/" + "\u0300\u0316" * 50_000,
    ],
)
def test_too_long(text: str) -> None:
    with pytest.raises(DoigetError) as caught:
        parse_ref(text)
    assert (caught.value.code, caught.value.reason) == (doiget.Code.INVALID_REF, "too_long")
    assert find_refs(text) == []


def test_256_characters_are_allowed_after_parsing() -> None:
    assert len(parse_ref("https://doi.org/10.1000/" + "%C3%A9" * 248 + "?x=1).").id) == 256


# ---- lists and prose ----


def test_find_refs_in_prose() -> None:
    text = f"""
    1. Roe B. (2019) A title, 12345-12350. doi:10.1000/ABC. PMID: 123; PMCID: PMC456.
    [2] Doe, A. et al. J. Ex. 106, 043717. https://doi.org/{quote(SICI, safe="/")}. Accessed 20200101.
    3) arXiv:2401.12345v2 [cs.CL]; again https://doi.org/10.1000/abc, rated 10/10.
    - "10.1000/x","10.1000/y",10.1000/z,2019
    * Preprint: https://www.biorxiv.org/content/10.1101/2020.05.23.112201v2; final version (10.1000/(f)o).
    """
    assert [str(ref) for ref in find_refs(text)] == [
        "10.1000/abc", "pmid:123", "PMC456", SICI, "arXiv:2401.12345v2", "10.1000/x", "10.1000/y", "10.1000/z",
        "10.1101/2020.05.23.112201", "10.1000/(f)o",
    ]  # fmt: skip


@pytest.mark.parametrize("marker", ["", "- ", "* ", "• ", "{}. ", "[{}] ", "({}) ", "{}) "])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n\n", "\u2028"])
def test_find_refs_in_a_plain_list(marker: str, newline: str) -> None:
    items = ["30571677", "10.1000/abc", "0000.00000", "10/aabbe", "PMC123", "doi:10.1000/ABC", "https://doi.org/10.1/x"]
    text = newline.join(marker.format(number) + item for number, item in enumerate(items, 1))
    assert [str(ref) for ref in find_refs("\ufeff" + text + newline)] == [
        "pmid:30571677", "10.1000/abc", "arXiv:0000.00000", "10/aabbe", "PMC123",
    ]  # fmt: skip


def test_find_refs_reads_no_bare_numbers_in_prose() -> None:
    assert find_refs("30571677\nis a number, 12345 too\n") == []
    assert find_refs("12 of PMC 12345 cases; https://notssrn.com/?abstract_id=2250500\n") == []


# ---- keys ----


def key_vectors() -> list[tuple[str, str]]:
    """The table between `<!-- keys -->` and the end of its fence: ref, white space, key."""
    for page in KEYS_PAGES:
        if page.exists() and (
            block := re.search(r"<!-- keys -->\s*```\w*\n(.*?)\n```", page.read_text("utf-8"), re.DOTALL)
        ):
            rows = [line.split() for line in block[1].splitlines()]
            return [(ref, key) for ref, key in rows]
    return []


def test_there_are_key_vectors() -> None:
    vectors = key_vectors()
    assert len(vectors) >= 60
    assert len({key for _, key in vectors}) == len(vectors)


@pytest.mark.parametrize(("ref", "key"), key_vectors())
def test_key_vectors(ref: str, key: str) -> None:
    parsed = parse_ref(ref)
    assert parsed.canonical == ref
    assert safekey(parsed) == key


def is_portable_name(key: str) -> bool:
    stem = key.partition(".")[0]
    reserved = re.fullmatch(r"con|prn|aux|nul|(com|lpt)[0-9¹²³]", stem)
    return bool(re.fullmatch(r"[a-z0-9._-]{1,120}", key)) and not key.endswith(".") and not reserved and key[0] != "."


# ---- properties ----

PRINTABLE = st.characters(exclude_categories=["C", "Z"])
SPECIAL = st.sampled_from(
    [*"()[]{}<>.,;:'\"!?#%&+/\\|*_`~=", "%2F", "%41", "&lt;", "&amp;", "\\_", "\u037e", "\u212a", "。"]
)
PROSE_END = ".,;:'\"!?`\u2018\u2019\u201c\u201d\u201e\u2026\uff1a\uff1b\uff01\uff1f" + "".join(doiget._OPENER)
SUFFIXES = st.lists(st.one_of(PRINTABLE, SPECIAL, st.sampled_from("aAzZ09éÉ\u0301\u030c")), min_size=1, max_size=12)
DOIS = st.builds(lambda prefix, parts: f"10.{prefix}/{''.join(parts)}", st.integers(1000, 999_999_999), SUFFIXES)
STARTS = ["doi:", "https://doi.org/", "http://pub.example/doi/", "arXiv:", "abs/", "PMC", "pmid:", "10/", "10.1101/"]
BODIES = [
    "2020.05.23.112201",
    "v2",
    "097196",
    "math.GT/",
    "0309136",
    "2401.12345",
    "10.48550/arXiv.",
    "b6vnmd",
    "1234567",
]
MARKS = [" ", "\n", *"(){},#", "; ", "?x=", "/full", ".pdf", "%20", "%C3%A9", "..", "\u200b", "\ud83d"]
TOKENS = st.one_of(DOIS, st.sampled_from([*STARTS, *BODIES, *MARKS]), st.text(max_size=8))
TEXTS = st.lists(TOKENS, min_size=1, max_size=6).map("".join)


PROPERTIES: list[tuple[Callable[..., None], tuple[st.SearchStrategy[str], ...]]] = []


def holds_for(*strategies: st.SearchStrategy[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of a property: a few examples here, many in test_properties_at_length."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        PROPERTIES.append((check, strategies))
        return settings(max_examples=50, deadline=None)(given(*strategies)(check))

    return decorate


def refs_of(text: str) -> list[Ref]:
    found = find_refs(text)
    with contextlib.suppress(DoigetError):
        found.append(parse_ref(text))
    return found


@holds_for(TEXTS)
def test_canonical_refs_are_fixed_points(text: str) -> None:
    for ref in refs_of(text):
        again = parse_ref(ref.canonical)
        assert again.canonical == ref.canonical
        assert (again.kind, again.id) == (ref.kind, ref.id)
        assert again.version == (None if ref.kind is RefKind.DOI else ref.version)
        assert safekey(again) == safekey(ref)


@holds_for(DOIS)
def test_a_bare_doi_is_opaque(doi: str) -> None:
    """Without escapes, prose marks at the end and East Asian prose marks, a DOI only folds."""
    assume(not re.search(f"[\\\\&\u3001\u3002\uff0c]|{doiget._INVISIBLE}", doi))
    folded = unicodedata.normalize("NFC", re.sub("[A-Z]", lambda m: m[0].lower(), unicodedata.normalize("NFC", doi)))
    assume(folded[-1] not in PROSE_END and not folded.endswith("/"))
    assume(not folded.startswith(("10.48550/arxiv", "10.1101/", "10.64898/")))
    assert parse_ref(doi) == Ref(RefKind.DOI, folded)
    assert parse_ref(f"https://doi.org/{quote(doi)}") == Ref(RefKind.DOI, folded)


@holds_for(
    st.from_regex(
        r"10\.[0-9]{4,9}/[A-Za-z0-9._()/:-]{0,20}[A-Za-z0-9]|ar[Xx]iv:[0-9]{4}\.[0-9]{5}(v[0-9])?", fullmatch=True
    )
)
def test_the_short_way_gives_what_the_long_way_gives(text: str) -> None:
    assert canonical(text) == canonical(f"see {text} ")


@holds_for(TEXTS, TEXTS)
def test_safekeys_are_portable_and_injective(one: str, other: str) -> None:
    refs = {ref.canonical: ref for ref in [*refs_of(one), *refs_of(other)]}
    keys = {safekey(ref) for ref in refs.values()}
    assert len(keys) == len(refs)
    for key in keys:
        assert is_portable_name(key)
        assert Path("/store", key + ".pdf").resolve() == Path("/store") / (key + ".pdf")


@holds_for(st.text(alphabet="ab/_.<-", min_size=1, max_size=8), st.text(alphabet="ab/_.<-", min_size=1, max_size=8))
def test_safekeys_of_neighbours_differ(one: str, other: str) -> None:
    refs = [Ref(RefKind.DOI, f"10.1000/{suffix}") for suffix in (one, other)]
    assert (safekey(refs[0]) == safekey(refs[1])) == (one == other)
    assert all(is_portable_name(safekey(ref)) for ref in refs)


def test_a_key_that_looks_hashed_is_hashed() -> None:
    hashed = safekey(Ref(RefKind.DOI, "10.1000/a<b"))
    assert re.fullmatch(r"doi_10\.1000_a_b_[0-9a-f]{16}", hashed)
    twin = Ref(RefKind.DOI, hashed.removeprefix("doi_").replace("_", "/", 1))
    assert safekey(twin).startswith(hashed + "_")


@holds_for(st.text(max_size=60))
def test_any_text_gives_a_ref_or_invalid_ref(text: str) -> None:
    for candidate in (text, f"10.1000/{text}", f"https://doi.org/10.1000/{text}", f"https://arxiv.org/{text}"):
        refs_of(candidate)


@holds_for(DOIS)
def test_a_quoted_doi_is_one_path_segment(doi: str) -> None:
    quoted = quote_doi(doi)
    assert re.fullmatch(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+", quoted)
    assert unquote(quoted) == doi


@pytest.mark.long
@pytest.mark.parametrize(("check", "strategies"), PROPERTIES, ids=lambda value: getattr(value, "__name__", ""))
def test_properties_at_length(check: Callable[..., None], strategies: tuple[st.SearchStrategy[str], ...]) -> None:
    settings(max_examples=1500, deadline=None)(given(*strategies)(check))()


def test_quoting_as_the_registry_expects_it() -> None:
    sici = "10.1002%2F%28sici%291096-9861%2819971020%29387%3A2%3C167%3A%3Aaid-cne1%3E3.0.co%3B2-z"
    assert quote_doi(SICI) == sici
    assert quote_doi("10.1000/23+<#é") == "10.1000%2F23%2B%3C%23%C3%A9"


# ---- time ----

HOSTILE = [
    "10.", "(", "10.1000/", "10.1000/(", "https://", "https://arxiv", "a.", "a.b/", "a-", "arxiv", "1.10", "doi ",
    "%2f",
    "<", "pmid:", "0704.0001", "hep-th/", "10.1111.", "&amp;", " ", "\n", "é", "\ud800", "\x00",
    "10.1000/" + "." * 5000,
    "10.1000/a" + "\u0300\u0316" * 60_000, "https://a.example/10.1000/x" + "/full" * 800 + "x ",
    "https://doi.org/" + ")" * 4000 + "a ",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    start = time.process_time()
    refs_of(unit * (250_000 // len(unit)))
    assert time.process_time() - start < 1.0  # measured: below 0.2 s


@pytest.mark.parametrize("unit", ["10.1000/a,", "(10.1000/a)", '"10.1000/a"', "[10.1000/a](", "10/a1b2 ", "1\n"])
def test_many_identifiers_take_linear_time(unit: str) -> None:
    start = time.process_time()
    refs_of(unit * (100_000 // len(unit)))
    assert time.process_time() - start < 1.5  # measured: below 0.3 s


def test_ten_megabytes_of_anything() -> None:
    start = time.process_time()
    for text in ("\x00" * 10_000_000, "10.1000/" * 1_250_000, "a" * 10_000_000, "10.1000/" + "a" * 10_000_000):
        with contextlib.suppress(DoigetError):
            parse_ref(text)
    assert time.process_time() - start < 1.0


# ---- registration agencies ----


def test_datacite_prefixes() -> None:
    assert is_datacite_prefix("10.5281/zenodo.1207631")
    assert is_datacite_prefix("10.48550/arxiv.2401.12345")
    assert not is_datacite_prefix("10.5281x/zenodo")
    assert not is_datacite_prefix("10.1103/physrevlett.130.200601")
    assert not is_datacite_prefix("")


def test_refs_are_values() -> None:
    ref = parse_ref("arXiv:2401.12345v2")
    assert json.dumps(ref.kind) == '"arxiv"'
    assert {ref: 1}[parse_ref("https://arxiv.org/abs/2401.12345v2")] == 1
    with pytest.raises(AttributeError):
        ref.id = "x"  # type: ignore[misc]
