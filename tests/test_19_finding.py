"""Finding: whatever the query, each work comes once, what was not asked is said, and nobody is asked too much."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import sys
import time
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from fake_internet import FakeInternet, Reply, never, seq
from hypothesis import given
from hypothesis import strategies as st
from test_16_graph import Wire
from test_24_mcp import schemas, serve, tools  # noqa: F401 - fixtures
from worlds import Location, World, block_page, update

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Runner

GIVEN = os.environ.get("DOIGET_TEST_PYZ", "")
SOURCE = Path(GIVEN) if GIVEN.endswith(".py") else Path(__file__).resolve().parent.parent / "doiget.py"


def load_source() -> Any:
    spec = util.spec_from_file_location("doiget_found", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules["doiget_found"] = module
    spec.loader.exec_module(module)
    return module


doiget = load_source()
CROSSREF, OPENALEX, ARXIV = "api.crossref.org", "api.openalex.org", "export.arxiv.org"
ROW = {
    "ref",
    "title",
    "authors",
    "authors_total",
    "year",
    "container_title",
    "oa_url",
    "confidence",
    "matched",
    "in_store",
    "also",
    "sources",
    "retraction",
}
FIELDS = {"id", "title", "authors", "year", "container_title", "pages"}


@dataclass
class Bench:
    """Runs `find` in this process; `net` keeps the log of what was asked."""

    net: FakeInternet
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, query: str, **how: Any) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            ctx = self.context()
            try:
                answer: dict[str, Any] = await doiget.find(ctx, query, **how)
                return answer
            finally:
                await ctx.client.aclose()

        answer = anyio.run(run)
        check(answer, how.get("limit", 10))
        return answer

    def context(self) -> Any:
        config = doiget.load_config({"store": str(self.folder / "papers")})
        own = {"access_log": str(self.folder / "access.log"), "timeout_s": 45.0, "email": "", "offline": False}
        config = doiget.replace(
            config, values={**config.values, **own, **self.settings}, cache_dir=self.folder / "cache"
        )
        ctx = doiget.open_context(config, transport=Wire(self.net))
        ctx.client.pacer = doiget.NoPace(self.folder / "pace")
        return ctx

    def fails(self, query: str, **how: Any) -> Any:
        with pytest.raises(doiget.DoigetError) as caught:
            self(query, **how)
        return caught.value

    def pages(self, query: str, **how: Any) -> list[list[dict[str, Any]]]:
        """All pages of a search, to the end."""
        pages, cursor = [], ""
        for _ in range(100):
            answer = self(query, cursor=cursor, **how)
            pages.append(answer["matches"])
            cursor = answer["next_cursor"]
            if cursor is None:
                return pages
        raise AssertionError(f"no end after {len(pages)} pages")


def check(answer: dict[str, Any], limit: int) -> None:
    """What every answer promises (spec §3.1)."""
    assert set(answer) == {"ok", "matches", "total", "next_cursor", "warnings"}
    assert len(answer["matches"]) <= limit
    assert answer["total"] >= len(answer["matches"])
    assert len(json.dumps(answer, ensure_ascii=False).encode()) < 60_000
    seen: set[str] = set()
    for row in answer["matches"]:
        assert set(row) == ROW
        assert str(doiget.parse_ref(row["ref"])) == row["ref"]
        assert set(row["matched"]) <= FIELDS
        assert 0 <= row["confidence"] <= 1
        assert len(row["authors"]) == min(3, row["authors_total"])
        assert row["ref"] not in seen, "a work twice"
        seen.add(row["ref"])


@pytest.fixture
def find(net: FakeInternet, tmp_path: Path) -> Bench:
    return Bench(net, tmp_path)


def refs(answer: dict[str, Any]) -> list[str]:
    return [row["ref"] for row in answer["matches"]]


def both(world: World, doi: str, *copies: Location, **fields: Any) -> None:
    """A work that Crossref and OpenAlex know."""
    world.crossref.add(doi, **fields)
    world.openalex.add(doi, **fields, locations=copies)


# ############################################################################
# The question
# ############################################################################


def test_what_is_read_in_a_query() -> None:
    rows = [  # query, words sent to all, its title if it is a citation
        ("graph neural networks for molecules", "graph neural networks for molecules", None),
        ("COVID-19 vaccine efficacy 2021", "covid-19 vaccine efficacy 2021", None),
        ("Atten-\ntion is all you need", "attention is all you need", None),
        ("pre- and postoperative care", "pre and postoperative care", None),
        ('"unbalanced AND (NOT -dog) OR cat* title:x^2 ~y', "unbalanced and not dog or cat title x 2 y", None),
        ("don\u2019t  <b>panic</b> &amp; carry\ton", "don\u2019t panic carry on", None),
        ("\u202egraph\u200b net\x00works\ud800", "graph networks", None),
        ("e\ufb03cient \uff26\uff35\uff2c\uff2c width", "efficient full width", None),
        ("图神经网络 综述", "图神经网络 综述", None),
        ("हिन्दी भाषा", "हिन्दी भाषा", None),
        ("Smith J, Roe B. A study of ducks. Nature 2001; 4:11", None, "a study of ducks"),
        ("J. Smith and B. Roe, “A study of ducks,” in Proc. XYZ, 2001, pp. 1\u20139.", None, "a study of ducks"),
    ]
    for query, words, title in rows:
        question = doiget.parse_question(query)
        assert question.is_citation is (title is not None), query
        assert words is None or question.words == question.title == words
        assert title is None or question.title == title


def test_categories_of_arxiv_and_what_only_looks_like_one() -> None:
    categories = {
        "cs.CL": "cs.CL",
        "cs.cl": "cs.CL",
        "cat:math.AG": "math.AG",
        "hep-th": "hep-th",
        "physics.optics": "physics.optics",
        "cond-mat.Mes-Hall": "cond-mat.mes-hall",
        "q-bio.NC": "q-bio.NC",
        "arXiv:stat.ML": "stat.ML",
    }
    for query, name in categories.items():
        assert doiget.parse_question(query).category == name
    for query in (
        "physics",
        "math",
        "cs",
        "optics",
        "physics.py",
        "cs.CL transformers",
        "10.1000/cs.CL",
        "hep-th/9711200",
    ):
        assert not doiget.parse_question(query).category, query


def test_an_identifier_alone_needs_no_search() -> None:
    for query in (
        "10.1000/x",
        "doi:10.1000/x",
        "https://arxiv.org/abs/1706.03762",
        "arXiv:1706.03762 [cs.CL]",
        "12345678",
    ):
        question = doiget.parse_question(query)
        assert question.refs, query
        assert not question.words, query
    question = doiget.parse_question("A study of ducks, doi:10.1000/x")
    assert [str(ref) for ref in question.refs] == ["10.1000/x"]
    assert question.words == "a study of ducks"


def test_a_doi_that_a_pdf_spaced_out() -> None:
    for query, doi in {
        "doi: 10. 1371 / journal. fresh. 0000043": "10.1371/journal.fresh.0000043",
        "10. 1371 / journal. fresh. 0000043": "10.1371/journal.fresh.0000043",
        "Doe J. Ducks. 2011. DOI: 10. 1016/ j. cell. 2011. 02. 013. Elsevier": "10.1016/j.cell.2011.02.013",
        "doi 10 .1038 / nphys1170": "10.1038/nphys1170",
        "Ducks. doi: 10.1371/journal.pone.0000043. 12 pages": "10.1371/journal.pone.0000043",
    }.items():
        assert [str(ref) for ref in doiget.parse_question(query).refs] == [doi]
    assert not doiget.parse_question("ducks of pond 10. 1371 / 2000 of them were male").refs


@pytest.mark.parametrize("query", ["", "   ", "\u200b\n", "???", "\U0001f600\U0001f600", '"" - ()', "\x00", "<p></p>"])
def test_a_query_that_says_nothing(query: str) -> None:
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.parse_question(query)
    assert (caught.value.code.value, caught.value.reason) == ("INVALID_ARGUMENT", "bad_query")


@given(st.text(max_size=300))
def test_whatever_is_typed_no_source_reads_its_own_syntax_in_it(query: str) -> None:
    try:
        question = doiget.parse_question(query)
    except doiget.DoigetError as error:
        assert error.reason == "bad_query"  # noqa: PT017 - the other way is fine, too
        return
    for text in (question.words, question.title):
        assert len(text) <= doiget.MAX_SEARCHED
        assert not re.search(r"[\"()\[\]{}*?~^:+!|&\\/<>=]|(?:^|\s)-|\b(?:AND|OR|NOT|ANDNOT)\b", text)
    assert doiget.parse_bookmark(doiget.Bookmark().render(question), question) == doiget.Bookmark(
        dict.fromkeys(doiget.SEARCHES, 0)
    )


# ############################################################################
# One list
# ############################################################################

PEOPLE = ("Ada Lovelace", "Charles Babbage")


def work(doi: str | None = None, title: str = "On the weaving of algebraic patterns", **how: Any) -> Any:
    values = {"authors": list(PEOPLE), "date": "2017", "type": "journal-article", "title": title, "doi": doi} | how
    return doiget.work_from_dict(values)


def united(*works: Any, source: str = "crossref") -> list[list[str]]:
    """The refs of each match: its own first."""
    found = doiget.unite([doiget.Candidate(source, n, each) for n, each in enumerate(works)])
    return [[match.ref, *match.also] for match in found]


def test_records_of_one_work_become_one() -> None:
    preprint = {"type": "preprint", "arxiv_id": "1601.00001", "doi": None, "date": "2016"}
    related = [{"kind": "has-preprint", "ref": "arXiv:1601.00001v2"}]
    same = [
        (work("10.1000/a"), work("10.1000/A")),
        (work("10.1000/a"), work("10.1000/b")),  # two DOIs: title, authors and year agree
        (work("10.1000/a"), work("10.1000/b", "On the Weaving of \u201cAlgebraic\u201d Patterns")),
        (work("10.1000/a"), work(**preprint)),  # a year earlier
        (work("10.1000/a", "The published title", relations=related), work(**preprint)),  # linked by the registry
        (work("10.1000/a", authors=["A. Lovelace", "C. Babbage"]), work("10.1000/b")),
        (
            work("10.1000/a", authors=[f"A B{n}" for n in range(100)]),
            work("10.1000/b", authors=[f"A B{n}" for n in range(30)]),
        ),
    ]
    for one, other in same:
        for pair in ((one, other), (other, one)):
            found = united(*pair)
            assert len(found) == 1, (one, other)
            assert found[0][0] == "10.1000/a" or other.type != "preprint"  # the article first


def test_different_works_stay_apart() -> None:
    different = [
        (work("10.1000/a", "Introduction"), work("10.1000/b", "Introduction")),
        (work("10.1000/a", "Editorial"), work("10.1000/b", "Editorial")),
        (work("10.1000/a", "Letter to the editor"), work("10.1000/b", "Letter to the Editor")),
        (
            work("10.1000/a", "On the weaving of patterns: part I"),
            work("10.1000/b", "On the weaving of patterns: part II"),
        ),
        (work("10.1000/a", "On weaving algebraic patterns 1"), work("10.1000/b", "On weaving algebraic patterns 2")),
        (work("10.1000/a"), work("10.1000/b", authors=["Grace Hopper"])),
        (work("10.1000/a"), work("10.1000/b", date="2019")),
        (work("10.1000/a", authors=[]), work("10.1000/b", authors=[])),
        (work("10.1000/a"), work("10.1000/b", type="dataset")),
        (work("10.1000/a"), work("10.1000/b", "Correction to: On the weaving of algebraic patterns")),
        (work("10.1000/a", relations=[{"kind": "is-supplemented-by", "ref": "10.1000/b"}]), work("10.1000/b", "Data")),
    ]
    for one, other in different:
        assert len(united(one, other)) == 2, (one.title, other.title)


def test_a_merged_record_keeps_what_each_knew() -> None:
    copy = {"source": "openalex", "pdf_url": "https://arxiv.org/pdf/1601.00001", "version": "submittedVersion"}
    parts = [
        doiget.Candidate("openalex", 3, work(None, type="preprint", arxiv_id="1601.00001", locations=[copy])),
        doiget.Candidate("crossref", 8, work("10.1000/a", container_title="J. Ex.", pages="1-9")),
        doiget.Candidate("openalex", 1, work("10.1000/a", retraction={"status": "retracted"})),
    ]
    for order in itertools.permutations(parts):
        (match,) = doiget.unite(order)
        assert (match.ref, match.also, match.places) == (
            "10.1000/a",
            ["arXiv:1601.00001"],
            {"openalex": 1, "crossref": 8},
        )
        assert (match.work.container_title, match.work.type) == ("J. Ex.", "journal-article")
        assert match.work.retraction is not None
        assert doiget.open_copy(match.work) == copy["pdf_url"]


CANDIDATES = st.lists(
    st.builds(
        doiget.Candidate,
        st.sampled_from(["openalex", "crossref", "arxiv"]),
        st.integers(0, 50),
        st.builds(
            lambda number, title, date, kind, arxiv: work(
                f"10.1000/{number}" if number else None, title, date=date, type=kind, arxiv_id=arxiv
            ),
            st.integers(0, 12),
            st.sampled_from(
                ["Introduction", "On the weaving of algebraic patterns", "Weaving many algebraic patterns, part II"]
            ),
            st.sampled_from(["2016", "2017", "2019"]),
            st.sampled_from(["journal-article", "preprint", "dataset"]),
            st.sampled_from([None, None, "1601.00001", "1602.00002"]),
        ),
        st.just(""),
    ),
    max_size=12,
)


@given(CANDIDATES, st.randoms())
def test_no_work_is_lost_or_doubled_whatever_order_records_come_in(candidates: list[Any], chance: Any) -> None:
    matches = doiget.unite(candidates)
    named = [{match.ref, *match.also} for match in matches]
    assert sum(map(len, named)) == len(set().union(*named)), "a ref in two matches"
    assert set().union(*named) == {name for part in candidates for name in doiget.refs_of(part.work)}
    for source in ("openalex", "crossref", "arxiv"):
        listed = [part.place for part in candidates if part.source == source and doiget.refs_of(part.work)]
        assert {match.places[source] for match in matches if source in match.places} <= set(listed)
    shuffled = candidates[:]
    chance.shuffle(shuffled)
    assert sorted(doiget.unite(shuffled), key=lambda match: match.ref) == sorted(matches, key=lambda match: match.ref)


# ############################################################################
# Citations
# ############################################################################

LIBRARY = {
    "10.5555/3295222": (
        "Attention Is All You Need",
        ["Ashish Vaswani", "Noam Shazeer", "Niki Parmar", "Jakob Uszkoreit"],
        2017,
        "Advances in Neural Information Processing Systems",
        {"volume": "30", "page": "5998-6008"},
    ),
    "10.1103/physrevlett.130.200601": (
        "Thermodynamic Unification of Optimal Transport",
        ["Tan Van Vu", "Keiji Saito"],
        2023,
        "Physical Review Letters",
        {"volume": "130", "page": None, "article-number": "200601"},
    ),
    "10.1038/171737a0": (
        "Molecular Structure of Nucleic Acids: A Structure for Deoxyribose Nucleic Acid",
        ["J. D. Watson", "F. H. C. Crick"],
        1953,
        "Nature",
        {"volume": "171", "page": "737-738"},
    ),
    "10.1073/pnas.0706851105": (
        "Maps of random walks on complex networks reveal community structure",
        ["Martin Rosvall", "Carl T. Bergstrom"],
        2008,
        "Proceedings of the National Academy of Sciences",
        {"volume": "105", "page": "1118-1123"},
    ),
    "10.1016/j.cell.2011.02.013": (
        "Hallmarks of Cancer: The Next Generation",
        ["Douglas Hanahan", "Robert A. Weinberg"],
        2011,
        "Cell",
        {"volume": "144", "page": "646-674"},
    ),
    "10.1002/andp.19053221004": (
        "Zur Elektrodynamik bewegter Körper",
        ["Albert Einstein"],
        1905,
        "Annalen der Physik",
        {"volume": "322", "page": "891-921"},
    ),
    "10.1145/2939672.2939785": (
        "XGBoost: A Scalable Tree Boosting System",
        ["Tianqi Chen", "Carlos Guestrin"],
        2016,
        "Proceedings of the 22nd ACM SIGKDD International Conference on Knowledge Discovery and Data Mining",
        {"type": "proceedings-article", "page": "785-794", "volume": None},
    ),
    "10.1136/bmj.n71": (
        "The PRISMA 2020 statement: an updated guideline for reporting systematic reviews",
        ["Matthew J Page", "Joanne E McKenzie", "Patrick M Bossuyt"],
        2021,
        "BMJ",
        {"page": "n71", "volume": "372"},
    ),
    "10.1021/ja00051a040": (
        "UFF, a full periodic table force field for molecular mechanics and molecular dynamics simulations",
        ["A. K. Rappé", "C. J. Casewit", "K. S. Colwell", "W. A. Goddard", "W. M. Skiff"],
        1992,
        "Journal of the American Chemical Society",
        {"volume": "114", "page": "10024-10035"},
    ),
    "10.1214/aos/1176344552": (
        "Bootstrap Methods: Another Look at the Jackknife",
        ["B. Efron"],
        1979,
        "The Annals of Statistics",
        {"volume": "7", "page": "1-26"},
    ),
    "10.1000/channel": (
        "Channel Attention Is All You Need for Video Frame Interpolation",
        ["Jane Doe"],
        2020,
        "AAAI",
        {},
    ),
    "10.1000/hallmarks": ("Hallmarks of Cancer: New Dimensions", ["Douglas Hanahan"], 2022, "Cancer Discovery", {}),
    "10.1000/uff2": (
        "Application of a universal force field to organic molecules",
        ["C. J. Casewit", "K. S. Colwell", "A. K. Rappé"],
        1992,
        "Journal of the American Chemical Society",
        {"volume": "114", "page": "10035-10046"},
    ),
}
CITATIONS = {
    (
        "[12] Vaswani A, Shazeer N, Parmar N, et al. Atten-\ntion is all you need. NeurIPS 2017; 30:5998-6008"
    ): "10.5555/3295222",
    (
        "A. Vaswani et al., \u201cAttention is all you need,\u201d in Adv. Neural Inf. Process. Syst., 2017, "
        "pp. 5998\u20136008."
    ): "10.5555/3295222",
    ("attention is all you need vaswani 2017"): "10.5555/3295222",
    ("\\bibitem{v17} A.~Vaswani, N.~Shazeer, \\emph{Attention is all you need}, in NIPS (2017)"): "10.5555/3295222",
    (
        "[7]Chen T,Guestrin C.XGBoost:A scalable tree boosting system[C]//KDD. ACM,2016:785-794."
    ): "10.1145/2939672.2939785",
    ("T. Van Vu and K. Saito, Phys. Rev. Lett. 130, 200601 (2023)"): "10.1103/physrevlett.130.200601",
    (
        "WATSON, J. D., & CRICK, F. H. C. (1953). Molecular structure of nucleic acids: A structure for "
        "deoxyribose nucleic acid. Nature, 171(4356), 737-738."
    ): "10.1038/171737a0",
    (
        "3. Rosvall M, Bergstrom CT. Maps of random walks on complex net- works reveal community structure. "
        "Proc Natl Acad Sci U S A. 2008 Jan 29;105(4):1118-23."
    ): "10.1073/pnas.0706851105",
    (
        "Hanahan D and Weinberg RA (2011) Hallmarks of cancer: the next generation. Cell 144: 646\u201374"
    ): "10.1016/j.cell.2011.02.013",
    (
        "Einstein, A. (1905). \u00abZur Elektrodynamik bewegter Körper\u00bb. Annalen der Physik 322 (10): 891\u2013921"
    ): "10.1002/andp.19053221004",
    (
        "Chen, Tianqi, and Carlos Guestrin. XGBoost: A scalable tree boosting system. Proceedings of the 22nd"
        " acm sigkdd. 2016."
    ): "10.1145/2939672.2939785",
    (
        "Page MJ, McKenzie JE, Bossuyt PM, et al. The PRISMA 2020 statement: an updated guideline for "
        "reporting systematic reviews. BMJ. 2021;372:n71. Accessed March 3, 2022"
    ): "10.1136/bmj.n71",
    (
        "Rappe, A. K.; Casewit, C. J.; Colwell, K. S.; Goddard, W. A., III; Skiff, W. M. J. Am. Chem. Soc. "
        "1992, 114, 10024"
    ): "10.1021/ja00051a040",
    (
        "Efron, B. Bootstrap methods: another look at the jack-\nknife. Annals of Statistics 7, 1979, p. 1"
    ): "10.1214/aos/1176344552",
}


@pytest.fixture(scope="module")
def library() -> Any:
    with FakeInternet() as net:
        world = World(net)
        for doi, (title, authors, year, container, raw) in LIBRARY.items():
            world.crossref.add(doi, title=title, authors=authors, date=year, container=container)
            world.crossref.works[doi] |= raw
            world.openalex.add(doi, title=title, authors=authors, date=f"{year}-06-01", container=container)
        for n in range(30):
            world.crossref.add(
                f"10.1000/noise{n}", title=f"Attention to the structure of networks of cancer {n}", date=2017
            )
        yield net


@pytest.mark.parametrize(("citation", "doi"), CITATIONS.items(), ids=lambda text: text[:24])
def test_a_messy_citation_finds_its_work(library: FakeInternet, tmp_path: Path, citation: str, doi: str) -> None:
    first, *others = Bench(library, tmp_path)(citation)["matches"]
    assert first["ref"] == doi
    assert first["confidence"] >= 0.75, first
    assert {"authors", "year"} <= set(first["matched"]), first
    assert {"title", "pages"} & set(first["matched"]), first
    assert all((other["confidence"] or 0) < 0.6 for other in others), others


def test_a_famous_title_is_not_taken_for_the_first_hit(world: World, find: Bench) -> None:
    """Case MD-03: neither the wrong top hit, nor a review of the paper."""
    world.crossref.add("10.1000/channel", title="Channel Attention Is All You Need for Video Frame Interpolation")
    world.crossref.add("10.1000/review", title='Review for "Attention is all you need"', type="peer-review")
    world.crossref.add("10.1000/figure", title="Attention is all you need", type="component")
    for query in ("attention is all you need", "Vaswani A, et al. Attention is all you need. 2017"):
        answer = find(query)
        assert refs(answer) == ["10.1000/channel"]
        assert answer["matches"][0]["confidence"] < 0.5
    both(world, "10.1000/true", title="Attention Is All You Need", authors=["Ashish Vaswani"], date="2017-06-12")
    row = find("attention is all you need")["matches"][0]
    assert (row["ref"], row["matched"]) == ("10.1000/true", ["title"])
    assert row["confidence"] == 0.87, "the whole title, and of no other work"
    both(world, "10.1000/same", title="Attention is all you need", authors=["Jane Doe"], date="2021-01-02")
    both_named = find("attention is all you need")["matches"]
    assert all(row["confidence"] <= 0.5 for row in both_named), "which of the two?"
    row = find("Vaswani A, et al. Attention is all you need. 2017")["matches"][0]
    assert (row["ref"], row["matched"]) == ("10.1000/true", ["title", "authors", "year"])
    assert row["confidence"] > 0.9


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("title-paperqa", "Lála J, et al. PaperQA: Retrieval-Augmented Generative Agent for Scientific Research. 2023"),
        ("title-gravity-hill", "Jacobson S. Gravity hill: a memoir of the late reunion. In: Hill studies 2011; 4:22"),
    ],
)
def test_recorded_hits_that_are_other_works_get_no_confidence(
    shared: Path, world: World, find: Bench, name: str, query: str
) -> None:
    body = (shared / "recorded" / "crossref" / "query" / f"{name}.json").read_bytes()
    world.net.route(CROSSREF, "/works", Reply(body=body, content_type="application/json"))
    (row,) = find(query)["matches"]
    assert row["confidence"] < 0.5, row


def test_a_title_that_is_only_near_is_no_match(world: World, find: Bench) -> None:
    for n in range(3, 8):
        both(world, f"10.1000/{n}", title=f"The ducks of pond {n}", date=f"{2000 + n}-01-02")
    first, *others = find("Lovelace A. The ducks of pond 5. J Ex 2005; 7:11-22")["matches"]
    assert (first["ref"], first["confidence"]) == ("10.1000/5", 0.99)
    assert all(row["confidence"] < 0.6 and "title" not in row["matched"] for row in others)
    answer = find("Lovelace A. The ducks of pond 99. J Ex 2005; 7:11-22")
    assert answer["warnings"] == ["None of these is surely the work described."]


def test_names_that_contradict_cost_confidence(world: World, find: Bench) -> None:
    both(world, "10.1000/x", title="On the weaving of algebraic patterns", authors=["Ada Lovelace"], date="2017-01-02")
    right = find("Lovelace A. On the weaving of algebraic patterns. J Ex 2017; 7:11")["matches"][0]
    wrong = find("Hopper G, Noether E. On the weaving of algebraic patterns. J Ex 1999; 7:11")["matches"][0]
    assert right["confidence"] > 0.9
    assert wrong["confidence"] < 0.5
    assert "authors" not in wrong["matched"]


# ############################################################################
# Topics
# ############################################################################


def test_a_topic_interleaves_what_its_sources_put_first(world: World, find: Bench) -> None:
    for n in range(6):
        world.crossref.add(f"10.1000/c{n}", title=f"Graph networks {'molecules' * (n < 3)} crossref {n}", date=2000 + n)
        world.openalex.add(
            f"10.1000/o{n}", title=f"Graph networks {'molecules' * (n < 3)} openalex {n}", date=f"{2000 + n}-01-02"
        )
    both(world, "10.1000/shared", title="Graph networks for molecules, shared", date="2010-01-02")
    answer = find("graph networks molecules", limit=5)
    assert answer["matches"][0]["ref"] == "10.1000/shared", "found by both"
    sources = [row["sources"][0] for row in answer["matches"][1:]]
    assert set(sources[:2]) == set(sources[2:]) == {"crossref", "openalex"}
    assert all(row["confidence"] <= 0.5 for row in answer["matches"]), "a topic names no work"
    assert answer["total"] == 7
    *first, last = world.net.requests()
    assert {request.host for request in first} == {OPENALEX, CROSSREF}
    assert len(first) == 2
    assert last.host == OPENALEX, "which works of Crossref are open, at a tenth of the price of a search"
    assert "search" not in last.query


def test_what_the_row_of_a_topic_says(world: World, find: Bench) -> None:
    copy = Location("https://arxiv.org/pdf/1601.00001", "https://arxiv.org/abs/1601.00001", repository=True)
    title = "A <i>study</i> of\x00 ducks &amp; geese \u202e" + "x" * 400
    world.crossref.add(
        "10.1000/x",
        title=title,
        authors=[*PEOPLE, "Grace Hopper", "Emmy Noether"],
        updated_by=[update("10.1000/notice")],
    )
    world.openalex.add("10.1000/x", title="A study", locations=[copy])
    (row,) = find("ducks geese lovelace 2020 journal of examples")["matches"]
    assert row["title"].startswith("A study of ducks & geese x")
    assert len(row["title"]) <= 300
    assert (row["authors"], row["authors_total"]) == ([*PEOPLE, "Grace Hopper"], 4)
    assert (row["oa_url"], row["retraction"]) == ("https://arxiv.org/pdf/1601.00001", "retracted")
    assert row["also"] == ["arXiv:1601.00001"]
    assert {"authors", "year", "container_title"} <= set(row["matched"])


def test_a_preprint_and_its_article_are_one(world: World, find: Bench) -> None:
    both(
        world,
        "10.1000/article",
        title="A study of ducks",
        date="2020-01-02",
        relation={"has-preprint": [{"id-type": "doi", "id": "10.1101/2019.01.01.123456", "asserted-by": "subject"}]},
    )
    both(world, "10.1101/2019.01.01.123456", title="Studying ducks", date="2019-01-02", type="posted-content")
    both(world, "10.1000/other", title="A study of geese and ducks", authors=["Grace Hopper"])
    answer = find("study ducks")
    assert sorted(refs(answer)) == ["10.1000/article", "10.1000/other"]
    assert next(row for row in answer["matches"] if row["ref"] == "10.1000/article")["also"] == [
        "10.1101/2019.01.01.123456"
    ]


def test_works_without_any_identifier_are_left_out_and_counted(world: World, find: Bench) -> None:
    world.openalex.add(None, title="Ducks without name")
    world.openalex.add("10.1000/x", title="Ducks with a name")
    answer = find("ducks")
    assert refs(answer) == ["10.1000/x"]
    assert any(text.endswith("PMID: 1.") for text in answer["warnings"])


# ############################################################################
# Filters
# ############################################################################


def test_years(world: World, find: Bench) -> None:
    for year in range(2015, 2025):
        both(world, f"10.1000/{year}", title=f"Ducks of {year}", date=f"{year}-05-06")
    between = find("ducks", year_from=2018, year_to=2020)
    assert sorted(row["year"] for row in between["matches"]) == [2018, 2019, 2020]
    assert all("2018" in request.query["filter"] for request in world.net.requests(path="/works"))
    assert min(row["year"] for row in find("ducks", year_from=2022)["matches"]) == 2022
    assert max(row["year"] for row in find("ducks", year_to=2016)["matches"]) == 2016
    assert not find("ducks", year_from=1990, year_to=1991)["matches"]
    error = find.fails("ducks", year_from=2021, year_to=2020)
    assert (error.code.value, error.reason) == ("INVALID_ARGUMENT", "schema")
    assert "year_from" in error.message


def test_open_access_only_is_what_openalex_confirms(world: World, find: Bench) -> None:
    copy = Location("https://journals.plos.org/open.pdf")
    both(world, "10.1000/open", copy, title="Ducks in the open")
    both(world, "10.1000/closed", title="Ducks behind a wall")
    world.crossref.add("10.1000/unknown", title="Ducks nobody knows")
    answer = find("ducks", open_access_only=True)
    assert refs(answer) == ["10.1000/open"]
    assert answer["matches"][0]["oa_url"] == "https://journals.plos.org/open.pdf"
    assert answer["total"] == 1
    world.net.route(OPENALEX, None, Reply(403))
    world.arxiv.add("2401.00001", title="Ducks on arXiv")
    answer = find("ducks", open_access_only=True)  # Crossref alone does not know what is open, arXiv does
    assert refs(answer) == ["arXiv:2401.00001"]
    assert "OpenAlex" in " ".join(answer["warnings"])


# ############################################################################
# Identifiers and categories
# ############################################################################


def test_an_identifier_is_looked_up_and_comes_first(world: World, find: Bench) -> None:
    both(world, "10.1000/x", title="A study of ducks")
    both(world, "10.1000/other", title="Ducks: a study of studies of ducks")
    answer = find("10.1000/X")
    assert (refs(answer), answer["total"], answer["next_cursor"]) == (["10.1000/x"], 1, None)
    assert (answer["matches"][0]["matched"], answer["matches"][0]["confidence"]) == (["id"], 1.0)
    assert not [
        request
        for request in world.net.requests()
        if "query.bibliographic" in request.query or "search" in request.query
    ]
    answer = find("Lovelace A. A study of ducks. 2020. https://doi.org/10.1000/x")
    assert refs(answer) == ["10.1000/x", "10.1000/other"]
    assert set(answer["matches"][0]["matched"]) >= {"id", "title", "authors", "year"}
    assert not find("10.1000/nothing")["matches"]
    assert "10.1000/nothing" in find("10.1000/nothing")["warnings"][0]


def test_an_identifier_beside_the_description_of_another_work(world: World, find: Bench) -> None:
    both(world, "10.1000/x", title="A study of ducks")
    both(world, "10.1000/y", title="On the weaving of algebraic patterns", authors=["Grace Hopper"], date="1950-02-03")
    for query in (
        "Hopper G. On the weaving of algebraic patterns. J Ex 1950; 7:11. doi:10.1000/x",
        "On the weaving of algebraic patterns doi:10.1000/x",
        "Hopper et al. On the weaving of algebraic patterns. 1950. https://doi.org/10.1000/x",
    ):
        answer = find(query)
        assert refs(answer) == ["10.1000/y", "10.1000/x"], query
        assert [row["confidence"] > 0.8 for row in answer["matches"]] == [True, False]
        assert answer["matches"][1]["confidence"] == 0.5
        (warning,) = answer["warnings"]
        assert warning.startswith("The identifier 10.1000/x belongs to 'A study of ducks';")
        assert warning.endswith(f"by title{' and authors' * ('Hopper' in query)} the text means 10.1000/y.")
    answer = find("Noether E. Invariants of variation problems. Gött Nachr 1918; 235:57. doi:10.1000/x")
    assert (refs(answer)[0], answer["matches"][0]["confidence"]) == ("10.1000/x", 0.5)
    assert "describes another work" in answer["warnings"][0]


def test_prose_beside_an_identifier_contradicts_nothing(world: World, find: Bench) -> None:
    both(world, "10.1000/x", title="A study of ducks", authors=["Ada Lovelace"], date="2020-02-03")
    for n in range(30):
        both(world, f"10.1000/{n}", title=f"A survey {n} of moths in winter", authors=["Jane Doe"])
    for query in (
        "as shown by Lovelace et al. (https://doi.org/10.1000/x), winter feeding of ponds",
        "Winter feeding matters in all ponds (Lovelace et al., 2020, doi:10.1000/x).",
        "Winter feeding matters in all ponds, see Lovelace A., 2020; doi:10.1000/x",
    ):
        answer = find(query)
        assert (refs(answer), answer["warnings"]) == (["10.1000/x"], []), query
        assert (answer["matches"][0]["confidence"], answer["total"], answer["next_cursor"]) == (1.0, 1, None)
    searches = [request for request in world.net.requests(CROSSREF) if "query.bibliographic" in request.query]
    assert len(searches) == 3, "what is found needs no second page"
    answer = find("see 10.1000/x for ponds in winter")
    assert (answer["matches"][0]["ref"], answer["matches"][0]["confidence"]) == ("10.1000/x", 1.0)


def test_identifiers_come_on_whatever_page(world: World, find: Bench) -> None:
    for n in range(5):
        both(world, f"10.1000/{n}", title=f"Ducks {n}")
    pages = find.pages(query := " ".join(f"10.1000/{n}" for n in range(5)), limit=2)
    assert find(query, limit=2)["total"] == 5
    assert sorted(row["ref"] for page in pages for row in page) == [f"10.1000/{n}" for n in range(5)]


def test_who_knows_an_identifier_and_whether_it_is_open(world: World, find: Bench) -> None:
    both(world, "10.1000/x", Location("https://journals.plos.org/open.pdf"), title="A study of ducks")
    world.crossref.add("10.1000/closed", title="A study of geese", date="2020-02-03")
    world.datacite_work("10.5061/dryad.1", title="Data of ducks")
    row = find("10.1000/x", open_access_only=True)["matches"][0]
    assert (row["sources"], row["oa_url"]) == (["crossref", "openalex"], "https://journals.plos.org/open.pdf")
    assert find("10.5061/dryad.1")["matches"][0]["sources"] == ["datacite"]
    for how in ({"year_from": 2021}, {"year_to": 2019}, {"open_access_only": True}):
        answer = find("10.1000/closed", **how)
        assert answer["matches"] == []
        note = "The filters leave out what was named: 10.1000/closed (2020, no open copy known)."
        assert answer["warnings"] == [note]


def test_an_arxiv_version_and_several_identifiers(world: World, find: Bench) -> None:
    world.arxiv_paper("2401.12345", versions=3)
    both(world, "10.1000/x", title="A study of ducks")
    assert sorted(refs(find("arXiv:2401.12345v2, 10.1000/x"))) == ["10.1000/x", "arXiv:2401.12345v2"]
    many = find(" ".join(f"10.1000/{n:04}" for n in range(15)))
    assert any("first 10" in text for text in many["warnings"])


def test_an_identifier_that_cannot_be_looked_up_is_no_miss(world: World, find: Bench) -> None:
    for host in (CROSSREF, OPENALEX, "doi.org", "api.datacite.org"):
        world.net.route(host, None, Reply(403))
    assert find.fails("10.1000/x").code.value == "NETWORK_ERROR"


def test_an_identifier_in_the_cache_is_known_offline(world: World, find: Bench) -> None:
    both(world, "10.1000/x", title="A study of ducks")
    assert refs(find("10.1000/x")) == ["10.1000/x"]
    world.net.clear()
    find.settings["offline"] = True
    assert refs(find("10.1000/x")) == ["10.1000/x"]
    for query in ("10.1000/y", "ducks", "cs.CL"):
        assert find.fails(query).reason == "offline"
    assert not world.net.requests()


def test_a_text_with_an_unknown_identifier_is_no_miss_while_nobody_can_be_asked(world: World, find: Bench) -> None:
    assert find("ducks and geese of doi:10.1000/nothing")["matches"] == []
    for host in (CROSSREF, OPENALEX):
        world.net.route(host, "/works", Reply(403))  # the search, not the single record
    assert find.fails("ducks and geese of doi:10.1000/nothing").code.value == "NETWORK_ERROR"


def test_a_category_goes_to_arxiv_alone(world: World, find: Bench) -> None:
    for n in range(25):
        world.arxiv.add(f"2401.{n:05}", title=f"Paper {n}", category="cs.CL")
    pages = find.pages("cs.cl", limit=10)
    assert [len(page) for page in pages] == [10, 10, 5]
    assert len({row["ref"] for page in pages for row in page}) == 25
    assert world.net.hosts() == {ARXIV}
    assert all("cat:cs.CL" in request.query["search_query"] for request in world.net.requests())
    assert all(row["oa_url"] for page in pages for row in page)
    world.arxiv.add("2401.55555", title="Stars", category="astro-ph.CO")
    assert refs(find("astro-ph")) == ["arXiv:2401.55555"]
    assert find("math.XX")["warnings"] == ["arXiv lists nothing under 'math.XX': check the category and the years."]


# ############################################################################
# Pages
# ############################################################################


@pytest.mark.parametrize("limit", [7, 50])
def test_every_work_once_over_all_pages(world: World, find: Bench, limit: int) -> None:
    """Crossref's order and OpenAlex's differ, half of the works are in both, some under two refs."""
    for n in range(130):
        title, doi = f"Ducks number {n} of a long list of ducks{' wild' * (n % 7)}", f"10.1000/{n:03}"
        fields = {"title": title, "authors": [f"Ada L{'abcdefghij'[n % 10] * 3}"], "date": f"{2000 + n % 20}-02-03"}
        if n % 4 < 3:
            world.crossref.add(doi, **fields)
        if n % 4 in {0, 3}:
            world.openalex.add(doi, **fields)
        if n % 4 == 1:  # its preprint, at the other source
            world.openalex.add(f"10.48550/arxiv.2401.{n:05}", **fields | {"type": "preprint", "container": "arXiv"})
    pages = find.pages("wild ducks list", limit=limit)
    found = [int(row["ref"][-3:]) for page in pages for row in page]
    assert sorted(found) == [*range(130)], "each work once, by one of its refs"
    assert all(len(page) == limit for page in pages[:-1])
    assert len(world.net.requests(OPENALEX)) <= 3 * len(pages)


def test_a_page_goes_on_where_limits_change_and_refuses_other_questions(world: World, find: Bench) -> None:
    for n in range(30):
        both(world, f"10.1000/{n:02}", title=f"Ducks {n}")
    first = find("ducks", limit=5)
    second = find("ducks", limit=20, cursor=first["next_cursor"])
    assert not set(refs(first)) & set(refs(second))
    assert len(refs(second)) == 20
    assert second["total"] == first["total"] == 30
    for query, how in (("geese", {}), ("ducks", {"year_from": 2000}), ("ducks", {"open_access_only": True})):
        assert find.fails(query, cursor=first["next_cursor"], **how).reason == "bad_cursor"
    for cursor in ("x", first["next_cursor"][:-1], first["next_cursor"] + "!", "\u0661" * 8 + ".0.0.0.1.", "." * 20):
        assert find.fails("ducks", cursor=cursor).reason == "bad_cursor"


def test_a_list_ends_before_its_cursor_outgrows_a_call(
    world: World, find: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(60):
        both(world, f"10.1000/{n:02}", title=f"Ducks {n}")
    monkeypatch.setattr(doiget, "MAX_BOOKMARK", 150)
    answer = find("ducks", limit=50)
    assert answer["next_cursor"] is None
    assert "No more works are listed" in answer["warnings"][-1]


def test_long_records_fit_into_an_answer_and_are_not_lost(world: World, find: Bench) -> None:
    names = [f"{'Very' * 40} Long{n}" for n in range(3)]
    for n in range(50):
        both(
            world, f"10.1000/{n:02}{'x' * 150}", title=f"{n} " + "鴨 ducks " * 100, authors=names, container="鴨" * 300
        )
    pages = find.pages("ducks", limit=50)
    assert len(pages) > 1
    assert len({row["ref"] for page in pages for row in page}) == 50


# ############################################################################
# Failures
# ############################################################################

DOWN = {
    "error": Reply(500),
    "reset": Reply(reset=True),
    "no json": Reply(body=b"{", content_type="application/json"),
    "block page": block_page(),
    "throttled": Reply(429, "", headers={"retry-after": "600"}),
    "hanging": never(),
}


@pytest.mark.parametrize("how", DOWN)
@pytest.mark.parametrize(("down", "title"), [(CROSSREF, "Crossref"), (OPENALEX, "OpenAlex")])
def test_one_source_down(world: World, find: Bench, down: str, title: str, how: str) -> None:
    both(world, "10.1000/x", title="A study of ducks")
    world.net.route(down, None, DOWN[how])
    find.settings["timeout_s"] = 4.0
    answer = find("ducks")
    assert refs(answer) == ["10.1000/x"]
    assert [text.split(" could not be asked")[0] for text in answer["warnings"]] == [title]
    assert answer["next_cursor"] is None
    assert not world.net.requests(ARXIV)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("error", "NETWORK_ERROR"),
        ("throttled", "RATE_LIMITED"),
        ("hanging", "FETCH_TIMEOUT"),
        ("block page", "NETWORK_ERROR"),
    ],
)
def test_all_down_is_an_error_and_no_empty_list(world: World, find: Bench, how: str, code: str) -> None:
    for host in (CROSSREF, OPENALEX, ARXIV):
        world.net.route(host, None, DOWN[how])
    find.settings["timeout_s"] = 3.0
    error = find.fails("ducks")
    assert error.code.value == code
    assert error.disposition.value in {"retry", "configure"}


def test_arxiv_stands_in_when_both_are_down(world: World, find: Bench) -> None:
    for host in (CROSSREF, OPENALEX):
        world.net.route(host, None, Reply(403))
    assert find.fails("ducks").code.value == "NETWORK_ERROR", "arXiv has none: that does not mean there are none"
    world.arxiv.add("2401.00001", title="The ducks of arXiv")
    answer = find("the ducks")
    assert refs(answer) == ["arXiv:2401.00001"]
    assert len(answer["warnings"]) == 2
    assert "all:the" not in world.net.requests(ARXIV)[-1].query["search_query"]


def test_a_full_queue_ends_with_the_time_of_the_call(world: World, find: Bench) -> None:
    async def run() -> Any:
        desk = doiget.Desk()
        ctx = doiget.replace(find.context(), place=desk.place, ends=anyio.current_time() + 1)
        for caller in range(5):
            await desk.places.acquire_on_behalf_of(caller)
        with anyio.fail_after(30), pytest.raises(doiget.DoigetError) as caught:
            await doiget.find(ctx, "ducks")
        await ctx.client.aclose()
        return caught.value

    assert anyio.run(run).reason == "queue_full"
    assert not world.net.requests()


def test_a_source_that_fails_on_the_second_page_loses_nothing(world: World, find: Bench) -> None:
    for n in range(60):
        world.crossref.add(f"10.1000/c{n:02}", title=f"Ducks {n}")
        world.openalex.add(f"10.1000/o{n:02}", title=f"Ducks {n}", authors=[f"A B{n}"])
    answer, rows = find("ducks", limit=20), []
    rows += refs(answer)
    world.net.route(CROSSREF, "/works", seq(Reply(403), world.crossref.answer))
    answer = find("ducks", limit=20, cursor=answer["next_cursor"])
    assert answer["warnings"]
    while True:
        rows += refs(answer)
        if answer["next_cursor"] is None:
            break
        answer = find("ducks", limit=20, cursor=answer["next_cursor"])
    assert len(rows) == len(set(rows)) == 120


def test_a_throttled_moment_costs_a_retry_only(world: World, find: Bench) -> None:
    both(world, "10.1000/x", title="A study of ducks")
    world.net.route(CROSSREF, "/works", seq(Reply(429, "", headers={"retry-after": "1"}), world.crossref.answer))
    answer = find("ducks")
    assert not answer["warnings"]
    assert answer["matches"][0]["sources"] == ["crossref", "openalex"]


@pytest.mark.parametrize(
    "body", ["[]", "{}", "null", '{"message":{"items":[null,1,"x",{}]}}', '{"results":[[],{"id":5}]}']
)
def test_bodies_of_any_shape(world: World, find: Bench, body: str) -> None:
    reply = Reply(body=body.encode(), content_type="application/json")
    for host in (CROSSREF, OPENALEX):
        world.net.route(host, None, reply)
    world.net.route(ARXIV, None, Reply(403))
    try:
        assert find("ducks")["matches"] == []
    except doiget.DoigetError as error:
        assert error.code.value == "NETWORK_ERROR"  # noqa: PT017 - either is right


# ############################################################################
# The command and the tool
# ############################################################################


def test_the_command(run: Runner, world: World) -> None:
    copy = "https://journals.plos.org/fake/1.pdf"
    world.paper("10.1371/x", title="Ducks in the open", pdf_url=copy, date="2019-04-05")
    both(world, "10.1371/closed", title="Ducks behind a wall", date="2019-04-05", updated_by=[update("10.1371/notice")])
    assert run("fetch", "10.1371/x").rc == 0
    later = {"has-preprint": [{"id-type": "doi", "id": "10.1371/x", "asserted-by": "subject"}]}
    both(world, "10.1371/later", title="Geese in the open", relation=later)
    (row,) = run("find", "10.1371/later", "--json").json()["matches"]
    assert (row["also"], row["in_store"]) == (["10.1371/x"], True)
    asked = run("find", "ducks", "open", "--limit", "5", "--year-from", "2019", "--year-to=2021", "--json")
    assert asked.rc == 0, asked
    answer = asked.json()
    assert {row["ref"]: row["in_store"] for row in answer["matches"]} == {"10.1371/x": True, "10.1371/closed": False}
    shown = run("find", "ducks", "open")
    assert shown.rc == 0
    lines = shown.out.splitlines()
    assert lines[0] == "10.1371/x\tDucks in the open [open, in store]"
    assert any("retracted" in line and line.startswith("10.1371/closed\t") for line in lines)
    assert lines[-1] == "get one with: doiget fetch 10.1371/x"
    assert len(lines) == 5
    assert [json.loads(line)["ref"] for line in run("find", "ducks", "--jsonl").out.splitlines()]
    world.net.clear()
    offline = run("find", "ducks", "--offline", "--json")
    assert (offline.rc, offline.json()["error"]["reason"]) == (6, "offline")
    assert "`doiget search`" in offline.json()["error"]["hint"]
    assert not world.net.connects()


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (["find", ""], 2, "bad_query"),
        (["find", "x" * 4000], 2, "schema"),
        (["find", "ducks", "--year-from", "2021", "--year-to", "2020"], 2, "schema"),
        (["find", "ducks", "--cursor", "nonsense"], 2, "bad_cursor"),
    ],
)
def test_bad_input_is_named_and_nobody_is_asked(
    run: Runner, world: World, words: list[str], status: int, reason: str
) -> None:
    done = run(*words, "--json")
    assert (done.rc, done.json()["error"]["reason"]) == (status, reason), done
    assert not world.net.connects()


def test_a_topic_has_little_confidence_but_a_title_has_much(run: Runner, world: World) -> None:
    for n in range(1, 16):
        both(world, f"10.1000/{n}", title=f"Graph neural networks for molecules: study {n}", authors=[f"A B{n * 'c'}"])
    first = run("find", "graph", "neural", "networks", "for", "molecules", "--limit", "14", "--json").json()
    more = run("find", "graph neural networks for molecules", "--cursor", first["next_cursor"], "--json").json()
    assert (len(first["matches"]), len(more["matches"])) == (14, 1)
    assert all(0.45 <= row["confidence"] <= 0.5 for row in first["matches"] + more["matches"]), "all words, no name"
    lines = run("find", "Graph neural networks for molecules: study 3").out.splitlines()
    assert lines[0] == "10.1000/3\tGraph neural networks for molecules: study 3 [0.87]"
    others = re.findall(r"\[(0\.\d\d)", "\n".join(lines[2:]))
    assert others
    assert all(float(shown) <= 0.5 for shown in others)
    assert "[0." not in run("find", "graph neural networks for molecules").out, "a topic names none"


def test_a_doi_of_another_paper_on_the_command_line(run: Runner, world: World) -> None:
    for n in range(11, 15):
        both(world, f"10.1000/{n}", title=f"Microbes and carbon: study {n}", authors=["Given Doe"], date=f"20{n}-01-02")
    done = run("find", "Doe G. Microbes and carbon: study 13. J Examples 2013. doi:10.1000/14")
    assert done.out.startswith("10.1000/13\tMicrobes and carbon: study 13 [0.99]")
    assert "10.1000/14 belongs to 'Microbes and carbon: study 14'; by title and authors the text means" in done.err
    left = run("find", "10.1000/13", "--year-from", "2021")
    assert left.out == "Nothing found.\n"
    assert "10.1000/13 (2013, no open copy known)" in left.err


def test_hostile_queries_on_the_command_line(run: Runner, world: World) -> None:
    both(world, "10.1000/x", title="A study of ducks")
    query = (
        '"ducks -study AND NOT (*) \x1b[31m \u202e <script>alert(1)</script> '
        + "鴨\U0001f986" * 20
        + " %00 & ; $(id) `id`"
    )
    done = run("find", query, "--json")
    assert done.rc == 0, done
    assert done.json()["matches"][0]["ref"] == "10.1000/x"
    for request in world.net.requests():
        assert request.path == "/works"
        assert set(request.query) <= {
            "query.bibliographic",
            "search",
            "select",
            "rows",
            "offset",
            "per-page",
            "page",
            "include_xpac",
            "filter",
        }


def test_the_tool_over_mcp(serve: Callable[..., Any], world: World) -> None:  # noqa: F811 - the fixture
    for n in range(12):
        both(world, f"10.1000/{n:02}", title=f"Ducks {n}")
    session = serve()
    first = session.call("search_papers", query="ducks", limit="8")
    second = session.call("search_papers", query="ducks", cursor=first["next_cursor"])
    assert len({row["ref"] for row in first["matches"] + second["matches"]}) == 12
    assert second["next_cursor"] is None
    assert session.fail("search_papers", query="geese", cursor=first["next_cursor"])["reason"] == "bad_cursor"
    empty = session.fail("search_papers", query=" !!!")
    assert (empty["code"], empty["reason"]) == ("INVALID_ARGUMENT", "bad_query")
    assert empty["message"] == "The argument 'query' holds no words and no identifier."
    assert "year_from" in session.fail("search_papers", query="x", year_from="soon")["message"]
    assert len(world.net.requests(OPENALEX)) <= 4


def test_the_tool_costs_little(tools: list[dict[str, Any]]) -> None:  # noqa: F811 - the fixture
    (tool,) = [tool for tool in tools if tool["name"] == "doiget_search_papers"]
    assert len(json.dumps(tool, ensure_ascii=False, separators=(",", ":")).encode()) <= 1500
    assert "doiget_search_local" in tool["description"].splitlines()[0]


def test_comparing_is_quick_even_for_long_queries(tmp_path: Path) -> None:
    """A page of works is held against 2,000 characters in far less than a search takes."""
    question = doiget.parse_question("Doe J. " + "on the many words of a title, " * 60 + "2017; 30:11")
    works = [work(f"10.1000/{n}", f"On the many words {n} of a title " * 10) for n in range(100)]
    job = doiget.Search(Bench(FakeInternet(), tmp_path).context(), question, doiget.Bookmark())
    job.candidates = [doiget.Candidate("crossref", n, each) for n, each in enumerate(works)]
    began = time.process_time()
    assert len(job._sorted()) == 100
    assert time.process_time() - began < 10
    assert not math.isnan(job.total)
