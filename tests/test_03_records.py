# ruff: noqa: RUF001, E501, ISC004 - odd characters and long bodies are what is tested here
"""Section 3: cleaning of outside text, names, dates, licences, and works as plain dicts."""

from __future__ import annotations

import datetime as dt
import json
import re
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import doiget
from doiget import Author, Location, Relation, Retraction, Work

MML = 'xmlns:mml="http://www.w3.org/1998/Math/MathML"'

# ---- Records as such ----


class Shelf(doiget.Record):
    """A record of the tests."""

    name: str
    size: int = 3
    books: list[str] = []
    about: dict[str, str] = {}


class Open(Shelf, frozen=False):
    """One that may change, with a field more."""

    more: str = ""


@pytest.mark.parametrize(
    "make", [Shelf, lambda: Shelf(size=1), lambda: Shelf("a", sise=1), lambda: Shelf("a", 1, [], {}, 2)]
)
def test_a_record_has_its_fields_and_no_others(make):
    with pytest.raises(TypeError, match="Shelf is made of: name, size, books, about"):
        make()


def test_a_record_is_its_values():
    one, same, other = Shelf("a"), Shelf(name="a", size=3), Shelf("a", 4)
    assert one == same != other
    assert one != Open("a")
    assert repr(other) == "Shelf(name='a', size=4, books=[], about={})"
    assert doiget.replace(one, size=4) == other
    assert doiget.asdict(Open("a", more="b")) == {"name": "a", "size": 3, "books": [], "about": {}, "more": "b"}
    assert len({Author("A"), Author("A", ""), Author("B")}) == 2


def test_a_record_is_frozen_unless_it_says_otherwise():
    one, other = Shelf("a"), Open("a")
    with pytest.raises(AttributeError, match="size is frozen"):
        one.size = 4
    other.size = 4
    with pytest.raises(AttributeError):
        other.sise = 4
    one.books.append("kept by one")
    one.about["kept"] = "by one"
    assert (other.size, Shelf("a").books, Shelf("a").about) == (4, [], {})


# ---- Text ----


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        # Markup that registries send.
        ("<p><strong>A new species of <em>Ix</em> (<em>Us</em>)</strong></p>", "A new species of Ix (Us)"),
        ('May 2012 <emph type="ital">Archives</emph> Quiz', "May 2012 Archives Quiz"),
        ("The <scp>DNA</scp> of <jats:italic>E. coli</jats:italic>", "The DNA of E. coli"),
        ("Water, H<sub>2</sub>O, at 10<sup>-3</sup> bar", "Water, H₂O, at 10⁻³ bar"),
        ("T<sub>max</sub> and n<sup>th</sup> and x<sub>i</sub>", "Tmax and nth and xᵢ"),
        ("AN INFANT&lt;subtitle&gt;Treatment&lt;/subtitle&gt;", "AN INFANT: Treatment"),
        ("beetle\n            <i>Ca mu</i>\n            , new", "beetle Ca mu, new"),
        ("See <!-- not this --><a href='https://x.example/?a=1&b=2'>here</a>", "See here"),
        ("<![CDATA[Cats & dogs]]>", "Cats & dogs"),
        # Less-than signs that are none.
        ("p < 0.05 and q<.001", "p < 0.05 and q<.001"),
        ("a<b and c>d", "a<b and c>d"),
        ("if a<b>c then", "if a<b>c then"),
        ("The <canvas> element", "The <canvas> element"),
        ("see <https://x.example/a>", "see <https://x.example/a>"),
        # Entities, to a fixed point.
        ("Energy Science &amp;amp; Engineering", "Energy Science & Engineering"),
        ("&amp;amp;amp;lt;i&amp;gt;x&amp;lt;/i&amp;gt;", "x"),
        ("the &#948;&amp;lt;sup&amp;gt;13&amp;lt;/sup&amp;gt;C decline", "the δ¹³C decline"),
        ("Analysis&amp;nbsp;", "Analysis"),
        ("L&#8217;eau &ndash; &#x27E8;x&#x27E9;", "L’eau – ⟨x⟩"),
        ("AT&T, R&D; Q&A", "AT&T, R&D; Q&A"),
        ("&NA;", None),
        # Characters nobody should see.
        ("a\u202eb\u200bc\ufeffd\U000e0041e\u00adf\x00g", "abcdefg"),
        ("\u202bفھرس\u202c \u202bقوانين\u202c", "فھرس قوانين"),
        ("Ver\u00c3\u00adssimo", "VerÃssimo"),  # mojibake stays, its control and soft hyphen parts go
        ("emissions \ufffd Quality", "emissions \ufffd Quality"),
        ("Gue\u0301nard", "Guénard"),
        ("lone \ud800 surrogate", "lone surrogate"),
        # White space, and what is nothing.
        ("\n   Subduction of\n\n   a\u00a0plate \t", "Subduction of a plate"),
        ("0", "0"),
        (0, "0"),
        (12.0, "12"),
        ("", None),
        (" \n<i></i>", None),
        (None, None),
        (True, None),
        ({"a": 1}, None),
        ([None, {}, "first", "second"], "first"),
        (dt.date(2009, 3, 2), "2009-03-02"),
    ],
)
def test_clean_line(raw, clean):
    assert doiget.clean_line(raw) == clean


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (
            f"in <mml:math {MML}><mml:msub><mml:mi>RuO</mml:mi><mml:mn>2</mml:mn></mml:msub></mml:math> films",
            "in RuO₂ films",
        ),
        (
            f"spin in the<mml:math {MML}><mml:mi>N</mml:mi><mml:mo>=</mml:mo><mml:mn>88</mml:mn></mml:math>nucleus"
            "<mml:math><mml:mmultiscripts><mml:mi>Tb</mml:mi><mml:mprescripts /><mml:none /><mml:mn>153</mml:mn>"
            "</mml:mmultiscripts></mml:math>",
            "spin in the N = 88 nucleus ¹⁵³Tb",
        ),
        ('Continuous <math xmlns="x" id="M1">\n  <mi>K</mi>\n </math>-g-Frames', "Continuous K-g-Frames"),
        (
            "kappa 0.5,<mml:math><mml:mi>P</mml:mi><mml:mo>&lt;</mml:mo><mml:mn>0.01</mml:mn></mml:math>",
            "kappa 0.5, P < 0.01",
        ),
        (
            "<mml:math><mml:mi>i</mml:mi><mml:mo>&lt;</mml:mo><mml:mi>p</mml:mi><mml:mo>&gt;</mml:mo><mml:mi>j</mml:mi></mml:math>",
            "i < p > j",
        ),
        ("<math><msup><mi>x</mi><mrow><mn>2</mn><mi>a</mi></mrow></msup></math>", "x^(2a)"),
        ("<math><msup><mn>10</mn><mrow><mo>−</mo><mn>3</mn></mrow></msup></math>", "10⁻³"),
        ("<math><mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mi>c</mi></mrow></mfrac></math>", "a/(b+c)"),
        ("<math><msqrt><mn>2</mn></msqrt><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></math>", "√2x₁²"),
        ("<math><semantics><mi>y</mi><annotation>\\bf y</annotation></semantics></math>", "y"),
        ("<mml:math><mml:mi>unclosed", "unclosed"),
    ],
)
def test_mathml_becomes_text(raw, clean):
    assert doiget.clean_line(raw) == clean


def test_tex_is_left_as_it_is_and_a_formula_is_not_doubled():
    tex = '<inline-formula> <tex-math notation="TeX">$\\hbox{YBa}_{2}$</tex-math></inline-formula>'
    assert doiget.clean_line(f"Pinning of &lt;x&gt; {tex} films") == "Pinning of <x> $\\hbox{YBa}_{2}$ films"
    both = "<jats:alternatives><jats:tex-math>$x_2$</jats:tex-math><mml:math><mml:mi>x</mml:mi></mml:math></jats:alternatives>"
    assert doiget.clean_line(both) == "x"


@pytest.mark.parametrize(
    ("tex", "plain"),
    [
        (r"The Schr\"odinger equation and H\"{o}lder", "The Schrödinger equation and Hölder"),
        (r"Poincar\'e, {\L}ojasiewicz, Erd\H os at 5\% level", "Poincaré, Łojasiewicz, Erdős at 5% level"),
        (r"$T\bar{T}$ {\it ab initio} \emph{x} R\'enyi", r"$T\bar{T}$ ab initio x Rényi"),
        (r"O(n\log n) for K\"ahler", r"O(n\log n) for Kähler"),
        (r"\[\tilde x\] and \'a", r"\[\tilde x\] and á"),
        (r"Back\slash", r"Back\slash"),
        (r"Nguy\~{\^e}n Ph\^{o} f_{NL}", r"Nguyễn Phô f_{NL}"),
        (r"K\"ahler e^+e^-\to\mu^+\mu^- here", r"Kähler e^+e^-\to\mu^+\mu^- here"),
        (r"Caf\u00e9 D\u2019Arcy regex \d+ x_{ij\%}", r"Caf\u00e9 D\u2019Arcy regex \d+ x_{ij\%}"),
        (r"D:\c \\server\share N'-[3-(\beta-x)]", r"D:\c \\server\share N'-[3-(\beta-x)]"),
        ("``no TeX'' -- here", "``no TeX'' -- here"),
    ],
)
def test_tex_outside_of_formulas_is_read(tex, plain):
    assert doiget.plain_tex(tex) == plain
    assert doiget.plain_tex(plain) == plain


@pytest.mark.parametrize(
    "raw",
    [
        "\\" * 100_000,
        "\\'e " * 40_000,
        "$\\" * 80_000,
        "a" * 150_000 + "\\x",
        "\\foo" * 40_000,
        "$" * 20_000 + "\\'e",
        "\\(" * 90_000,
    ],
)
def test_hostile_tex_costs_little(raw):
    began = time.monotonic()
    doiget.plain_tex(raw)
    assert time.monotonic() - began < 5


def test_abstracts_keep_paragraphs_and_drop_the_heading_abstract():
    jats = (
        "<jats:title>ABSTRACT</jats:title><jats:sec><jats:title>Aim</jats:title>\n   <jats:p>One\n  two.</jats:p></jats:sec>"
        "<jats:p>&lt;p&gt;Three&lt;/p&gt;&lt;p&gt;P&amp;lt;.05&lt;/p&gt;</jats:p>"
    )
    assert doiget.clean_text(jats) == "Aim\n\nOne two.\n\nThree\n\nP<.05"
    assert (
        doiget.clean_text("<h4>Objective</h4>The aim.<h4>Methods</h4>We.") == "Objective\n\nThe aim.\n\nMethods\n\nWe."
    )
    assert doiget.clean_text("hard\nwrapped\n \r\nsecond<br>third") == "hard wrapped second\n\nthird"
    assert doiget.clean_text("hard\nwrapped\r\n\r\nsecond") == "hard wrapped\n\nsecond"
    assert doiget.clean_text("<jats:p />") is None


def test_caps_cut_at_a_letter():
    assert doiget.clean_line("x" * 5000) == "x" * 999 + "…"
    assert len(doiget.clean_text("word " * 3000) or "") <= 5000
    accented = "ab" + "q\u0307" * 20  # no composed form, so the accent is a character of its own
    assert doiget.clean_line(accented, 6) == "abq\u0307…"


@settings(max_examples=80, deadline=None)
@given(
    st.text(alphabet=st.sampled_from(list("<>/&;:ab= ipsu\"'\n\u200b\u0301\u0338\u2029#xampltg0123!-[]")), max_size=80)
    | st.text(max_size=80)
)
def test_cleaning_is_idempotent_and_safe(text):
    for clean, cap in ((doiget.clean_line, 40), (doiget.clean_text, 60)):
        once = clean(text, cap)
        assert clean(once, cap) == once
        if once is not None:
            assert 0 < len(once) <= cap
            assert unicodedata.is_normalized("NFC", once)
            assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} and char != "\n" for char in once)
            once.encode("utf-8")
    line = doiget.clean_line(text)
    assert line is None or "\n" not in line


@pytest.mark.parametrize(
    "raw",
    [
        "&amp;" * 40_000,
        "<i>" * 60_000,
        "<" * 200_000,
        "<!--" * 50_000,
        "&" + "<i></i>" * 25_000,
        "<b a='" * 30_000,
        "<p>" * 60_000 + "x",
        "<mml:mrow>" * 20_000 + "<mml:mi>x",
    ],
    ids=["amp", "open", "less", "comment", "hidden", "attributes", "paragraphs", "nested math"],
)
def test_hostile_markup_costs_little(raw):
    start = time.process_time()
    doiget.clean_text(raw)
    assert time.process_time() - start < 5


def test_markup_deeper_than_the_cleaning_goes():
    """What would still become markup after the last round loses the characters that make it."""
    hidden = "&" + "#38;" * 60
    cleaned = doiget.clean_line(f"Good {hidden}lt;b onload=x{hidden}gt; title")
    assert cleaned.startswith("Good")
    assert cleaned.endswith("title")
    assert not re.search("[&<>]", cleaned)


def test_clean_url():
    assert doiget.clean_url("http://x.example/a b|c.pdf") == "https://x.example/a%20b%7Cc.pdf"
    assert doiget.clean_url("HTTPS://X.example:443/ä") == "https://X.example:443/%C3%A4"
    for bad in ("ftp://x.example/a", "file:///etc/passwd", "javascript:x", "", None, 5, "https://", "x.example/a"):
        assert doiget.clean_url(bad) is None


def test_tolerant_helpers():
    assert [doiget.as_int(value) for value in ("10", 10, 10.0, " 7 ", True, "x", None, 1.5, [1])] == [
        10,
        10,
        10,
        7,
        None,
        None,
        None,
        None,
        None,
    ]
    assert doiget.as_list(None) == []
    assert doiget.as_list("x") == ["x"]
    assert doiget.as_list(("x", 1)) == ["x", 1]
    assert doiget.as_dict(["x"]) == {}


# ---- Names ----


@pytest.mark.parametrize(
    ("parts", "author"),
    [
        ({"family": "Moraes", "given": "Dario"}, Author("Moraes", "Dario")),
        ({"family": "Meghana"}, Author("Meghana")),
        ({"given": "Bin Ouyang"}, Author(literal="Bin Ouyang")),
        ({"literal": "Barnes and Noble, Inc."}, Author(literal="Barnes and Noble, Inc.")),
        ({"family": "van der Berg", "given": "Anna"}, Author("van der Berg", "Anna")),
        ({"family": "Wright", "given": "Georg Henrik", "particle": "von"}, Author("Wright", "Georg Henrik", "von")),
        ({"family": "King", "given": "Martin Luther", "suffix": "Jr."}, Author("King", "Martin Luther", "", "Jr.")),
        ({"family": "King Jr.", "given": "Martin Luther"}, Author("King", "Martin Luther", "", "Jr.")),
        ({"family": "Smith, III", "given": "Amos B."}, Author("Smith", "Amos B.", "", "III")),
        ({"family": "Smith", "given": "Amos B., Jr"}, Author("Smith", "Amos B.", "", "Jr")),
        ({"family": "Heuer", "given": "Jr"}, Author("Heuer", "", "", "Jr")),
        ({"family": "BROWNE, CAROLYN S."}, Author("BROWNE", "CAROLYN S.")),
        ({"family": "King, Jr., Martin"}, Author("King", "Martin", "", "Jr.")),
        ({"family": "MEYER", "given": "JOHN F."}, Author("MEYER", "JOHN F.")),
        ({"family": "Abdullah", "given": "Dr. Zainab Salih"}, Author("Abdullah", "Zainab Salih")),
        ({"family": "Roe", "given": "Ann, Ph.D."}, Author("Roe", "Ann")),
        ({"family": "Smith", "given": "John (1890-1950)"}, Author("Smith", "John")),
        ({"family": "O&#8217;Neill ,", "given": " Ann;"}, Author("O’Neill", "Ann")),
        ({"family": "Chen*", "given": "X.¹"}, Author("Chen", "X.")),
        ({"family": "ABC Investigators", "given": "on behalf of the"}, Author(literal="ABC Investigators")),
        ({"family": "Nguyen", "given": "The"}, Author("Nguyen", "The")),
        ({"family": "ATLAS Collaboration", "given": "The"}, Author(literal="ATLAS Collaboration")),
        ({"family": "Müller¹,²", "given": "Eva"}, Author("Müller", "Eva")),
        ({"literal": "Group 4²"}, Author(literal="Group 4²")),
        ({"family": "et al."}, None),
        ({"family": "and others"}, None),
        ({"family": "&NA;"}, None),
        ({"family": "Unknown"}, None),
        ({"literal": "(:Tba)"}, None),
        ({"literal": "(:Unkn) Unknown"}, None),
        ({"family": None, "given": 3.5, "literal": []}, Author(literal="3.5")),
        ({}, None),
    ],
)
def test_make_author(parts, author):
    assert doiget.make_author(**parts) == author


@pytest.mark.parametrize(
    ("text", "author"),
    [
        ("Fenner, Martin", Author("Fenner", "Martin")),
        ("Paweł Pełka", Author("Pełka", "Paweł")),
        (
            "Charles Louis Xavier Joseph de la Vallée Poussin",
            Author("de la Vallée Poussin", "Charles Louis Xavier Joseph"),
        ),
        ("W. ALEJZIAK", Author("ALEJZIAK", "W.")),
        ("Pascale Le Gall", Author("Le Gall", "Pascale")),
        ("Ludwig van Beethoven", Author("van Beethoven", "Ludwig")),
        ("Martin L. King Jr.", Author("King", "Martin L.", "", "Jr.")),
        ("С.М. Исхаков", Author("Исхаков", "С.М.")),
        ("Smith, John (1890-1950)", Author("Smith", "John")),
        ("Smith, John, 1890-1950", Author("Smith", "John")),
        ("Netea, Mihai (15649)", Author("Netea", "Mihai")),
        ("Xin Chen*", Author("Chen", "Xin")),
        ("CO²", Author(literal="CO²")),
        ("H1 Collaboration", Author(literal="H1 Collaboration")),
        ("International Genetics Consortium (IGAS)", Author(literal="International Genetics Consortium (IGAS)")),
        ("Earth Center, Example Agency", Author(literal="Earth Center, Example Agency")),
        ("Atlas Of Living Australia", Author(literal="Atlas Of Living Australia")),
        ("Bundesinstitut Für Risikobewertung", Author(literal="Bundesinstitut Für Risikobewertung")),
        ("TOPMed", Author(literal="TOPMed")),
        ("宮地 元彦", Author(literal="宮地 元彦")),
        ("กัญจนา แซ่เตียว", Author(literal="กัญจนา แซ่เตียว")),
        ("Fran2 Levy", Author(literal="Fran2 Levy")),
        ("Anonymous", None),
        ("(:Unap)", None),
        ("", None),
        (None, None),
    ],
)
def test_parse_name(text, author):
    assert doiget.parse_name(text) == author


def test_display_name():
    assert doiget.display_name(Author("Wright", "Georg Henrik", "von")) == "Georg Henrik von Wright"
    assert doiget.display_name(Author("King", "Martin Luther", "", "Jr.")) == "Martin Luther King, Jr."
    assert doiget.display_name(Author("Smith", "Amos B.", "", "III")) == "Amos B. Smith III"
    assert doiget.display_name(Author(literal="H1 Collaboration")) == "H1 Collaboration"


# ---- Dates, pages, licences ----


@pytest.mark.parametrize(
    ("raw", "date"),
    [
        ("2009", "2009"),
        (2009, "2009"),
        ("2009-03", "2009-03"),
        ("2009-3-2", "2009-03-02"),
        ("2023-11-09T11:44:22Z", "2023-11-09"),
        ("2003-07-07T13:46:39-04:00", "2003-07-07"),
        ("2020-10-01/2020-11-30", "2020-10-01"),
        ("\n 2014-04-25 \n", "2014-04-25"),
        ("2018/3/2", "2018-03-02"),
        ("19.07.2018", "2018-07-19"),
        ("2021 Mar 15", "2021-03-15"),
        ("2021 Mar-Apr", "2021-03"),
        ("2021 Winter", "2021"),
        ("2021-02-30", "2021-02"),
        ("2021-13", "2021"),
        ("1596", "1596"),
        ("2549", None),
        ("", None),
        ("(:tba)", None),
        (None, None),
        (dt.date(2001, 2, 3), "2001-02-03"),
        (dt.datetime(2001, 2, 3, 4, tzinfo=dt.timezone.utc), "2001-02-03"),
    ],
)
def test_parse_date(raw, date):
    assert doiget.parse_date(raw) == date


@pytest.mark.parametrize(
    ("raw", "date"),
    [
        ({"date-parts": [[2009, 3]]}, "2009-03"),
        ({"date-parts": [["2009", "3", "2"]]}, "2009-03-02"),
        ({"date-parts": [2009, 3]}, "2009-03"),
        ({"date-parts": [[None]]}, None),
        ({"date-parts": [[]]}, None),
        ({"date-parts": []}, None),
        ({"date-parts": None, "raw": "2001"}, "2001"),
        ([{"date-parts": [[None]]}, {"date-parts": [[2009]]}], "2009"),
        ({"year": 2019, "month": "4"}, "2019-04"),
        ([{"year": "2006"}], "2006"),
    ],
)
def test_parse_date_parts(raw, date):
    assert doiget.parse_date(raw) == date


def test_pages():
    assert doiget.clean_pages("146–171") == "146-171"
    assert doiget.clean_pages("2149 - 2160") == "2149-2160"
    assert doiget.clean_pages("S19--S23") == "S19-S23"
    assert doiget.clean_pages(["e30"]) == "e30"
    assert doiget.clean_pages("-") is None
    assert doiget.clean_pages("pp. 1–9") == "1-9"
    assert {doiget.clean_pages(none) for none in ("n/a", "n/a-n/a", "no-no", "NA", "tbd")} == {None}


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("http://creativecommons.org/licenses/by/4.0", "cc-by-4.0"),
        ("https://creativecommons.org/licenses/by-nc-nd/4.0/legalcode", "cc-by-nc-nd-4.0"),
        ("http://creativecommons.org/licenses/by/4.0/deed.en_US", "cc-by-4.0"),
        ("http://creativecommons.org/licenses/by-nd/3.0/de", "cc-by-nd-3.0-de"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "cc0-1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "cc-pdm-1.0"),
        ("http://arxiv.org/licenses/nonexclusive-distrib/1.0/", "arxiv-nonexclusive-1.0"),
        ("https://opensource.org/licenses/MIT", "mit"),
        ("CC BY-NC 4.0", "cc-by-nc-4.0"),
        ("cc by-nc-nd", "cc-by-nc-nd"),
        ("CCBYNCND", "cc-by-nc-nd"),
        ("cc0", "cc0-1.0"),
        ("cc-by-sa-4.0", "cc-by-sa-4.0"),
        ("pd", "public-domain"),
        ("other-oa", "other-oa"),
        ("elsevier-specific: oa user license", "elsevier-specific: oa user license"),
        ("http://x.example/Terms", "https://x.example/Terms"),
        ("info:eu-repo/semantics/openAccess", None),
        ("", None),
        (None, None),
    ],
)
def test_normalise_license(raw, name):
    assert doiget.normalise_license(raw) == name
    assert doiget.normalise_license(name) == name


def test_identifiers_of_a_record():
    assert (
        doiget.clean_doi("https://doi.org/10.1002/(SICI)1:2<3::AID-X>3.0.CO;2-#")
        == "10.1002/(sici)1:2<3::aid-x>3.0.co;2-#"
    )
    assert doiget.clean_doi("10.1000/É1") == "10.1000/É1"  # only ASCII letters fold
    assert doiget.clean_doi("not a doi") is None
    assert doiget.clean_issn("http://id.crossref.org/issn/1234567x") == "1234-567X"
    assert doiget.clean_isbn("http://id.crossref.org/isbn/978-3-319-53921-8") == "9783319539218"
    assert doiget.clean_isbn("12345") is None


# ---- Works ----

FULL = Work(
    type="journal-article",
    title="A",
    authors=(Author("Roe", "Ann", "von", "Jr."), Author(literal="B Group")),
    year=2009,
    date="2009-03",
    container_title="C",
    volume="1",
    issue="2-3",
    pages="4-5",
    article_number="e6",
    publisher="P",
    abstract="One.\n\nTwo.",
    doi="10.1000/x",
    arxiv_id="2401.00001",
    arxiv_version=2,
    pmid="12345",
    pmcid="PMC9",
    license="cc-by-4.0",
    url="https://x.example/",
    retraction=Retraction("retracted", "10.1000/r", "publisher", "2010"),
    relations=(Relation("has-preprint", "arXiv:2401.00001"),),
    cited_by_count=0,
    editors=(Author("Ed", "It"),),
    subtitle="S",
    season="1",
    isbn=("9783319539218",),
    issn=("1234-567X",),
    oa_status="gold",
    locations=(Location("openalex", "https://x.example/a.pdf", None, "cc-by", "publishedVersion"),),
)


def test_work_survives_dict_json_and_toml():
    import tomli_w

    tomllib = pytest.importorskip("tomllib")
    plain = doiget.work_to_dict(FULL)
    assert "comment" not in plain
    assert plain["cited_by_count"] == 0
    assert plain["authors"][1] == {"literal": "B Group"}
    assert doiget.work_from_dict(json.loads(json.dumps(plain))) == FULL
    assert doiget.work_from_dict(tomllib.loads(tomli_w.dumps(plain))) == FULL
    assert doiget.work_from_dict({}) == Work()
    assert doiget.work_to_dict(Work()) == {}


def test_a_record_edited_by_hand_is_cleaned():
    work = doiget.work_from_dict(
        {
            "title": "<i>New</i>\ntitle\u202e",
            "authors": ["Roe, Ann", {"family": 5}, {}, {"literal": "X"}, None],
            "year": "2009",
            "date": dt.date(2010, 1, 2),
            "volume": 12,
            "pages": "1–2",
            "cited_by_count": "-1",
            "relations": [{"kind": "x"}, "y"],
            "retraction": {"status": "maybe"},
            "locations": [{"source": "s", "pdf_url": "file:///etc/passwd"}],
            "pmid": 12345,
            "pmcid": "PMCx",
            "oa_status": ["gold"],
            "arxiv_version": 0,
            "doi": "https://doi.org/10.1000/X",
            "isbn": "9783319539218",
            "type": "Journal Article",
            "unknown": 1,
        }
    )
    assert work == Work(
        title="New title",
        authors=(Author("Roe", "Ann"), Author("5"), Author(literal="X")),
        year=2010,
        date="2010-01-02",
        volume="12",
        pages="1-2",
        pmid="12345",
        doi="10.1000/x",
        isbn=("9783319539218",),
        type="journal-article",
    )
    for odd in (None, [], "x", 5):
        assert doiget.work_from_dict(odd) == Work()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = list(Work.names)
PART = st.dictionaries(
    st.sampled_from(
        [
            "family",
            "given",
            "particle",
            "suffix",
            "literal",
            "status",
            "notice_doi",
            "kind",
            "ref",
            "source",
            "pdf_url",
            "version",
        ]
    ),
    JSON,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), JSON | PART | st.lists(PART, max_size=3)))
def test_reading_any_record_gives_a_work_that_survives(data):
    work = doiget.work_from_dict(data)
    assert doiget.work_from_dict(doiget.work_to_dict(work)) == work
    json.dumps(doiget.metadata_of(work)).encode()


def test_metadata_has_every_field_of_the_contract():
    empty = doiget.metadata_of(Work())
    assert list(empty) == [
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
    ]
    assert empty["authors"] == empty["relations"] == []
    assert empty["title"] is None
    full = doiget.metadata_of(FULL)
    assert full["authors"] == [
        {"family": "Roe", "given": "Ann", "particle": "von", "suffix": "Jr."},
        {"literal": "B Group"},
    ]
    assert full["editors"] == [{"family": "Ed", "given": "It"}]
    assert set(full["retraction"]) == {"status", "notice_doi", "source", "date"}
    assert doiget.metadata_of(Work(retraction=Retraction("withdrawn")))["retraction"]["notice_doi"] is None
    assert "locations" not in full


def test_unknown_never_overwrites_known():
    first = Work(title="A", authors=(Author("Roe"),), year=2009, date="2009", arxiv_id="2401.00001")
    second = Work(
        title="B",
        authors=(Author("X"), Author("Y")),
        year=2010,
        date="2010-05-06",
        volume="3",
        arxiv_id="9999.00001",
        arxiv_version=7,
    )
    merged = doiget.merge_works(first, second, Work(volume="4", license="mit"))
    assert merged == Work(
        title="A", authors=(Author("Roe"),), year=2009, date="2009", arxiv_id="2401.00001", volume="3", license="mit"
    )  # date and version come whole from one source
    assert doiget.merge_works(FULL, Work()) == FULL
    assert doiget.merge_works(Work(), FULL) == FULL


def test_merging_unites_relations_locations_and_keeps_the_gravest_retraction():
    page, pdf = "https://x.example/1", "https://x.example/1.pdf"
    first = Work(
        relations=(Relation("a", "10.1/x"),),
        locations=(Location("openalex", pdf, page), Location("openalex", None, page)),
    )
    second = Work(
        relations=(Relation("a", "10.1/x"), Relation("b", "10.1/y")),
        locations=(
            Location("unpaywall", pdf + "/", page, "cc-by", "publishedVersion"),
            Location("unpaywall", None, "https://y.example/"),
        ),
        retraction=Retraction("expression_of_concern", None, "publisher"),
    )
    third = Work(retraction=Retraction("retracted", None, "openalex"))
    fourth = Work(retraction=Retraction("retracted", "10.1/n", "retraction-watch"))
    merged = doiget.merge_works(first, second, third, fourth)
    assert merged.relations == (Relation("a", "10.1/x"), Relation("b", "10.1/y"))
    assert merged.locations == (
        Location("openalex", pdf, page, "cc-by", "publishedVersion"),
        Location("unpaywall", None, "https://y.example/"),
    )
    assert merged.retraction == Retraction("retracted", "10.1/n", "retraction-watch")
