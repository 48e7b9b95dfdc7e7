# ruff: noqa: E501, FBT001, FBT003, RUF001, RUF024 - odd characters and long lines are what is tested here
"""Section 12 and the export operations: what is written reads back as it was, and stays text whatever it says.

Four readers that other people wrote take part: bibtexparser, pybtex, rispy and citeproc-py. What TeX would do is
asked of a small reader below, which knows nothing of how doiget writes.
"""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bibtexparser
import jsonschema
import pybtex.database
import pytest
import rispy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_24_mcp import schemas, serve  # noqa: F401 - fixtures
from test_25_cli import error_of, shelve

import doiget
from doiget import BIBTEX, EXPORT_TYPES, EXPORTERS, PLAIN_EXPORT, Author, Entry, ExportOptions, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conftest import Home, Runner

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "recorded"
STANDARD_TYPES = set(
    doiget.table("""
    article book booklet conference inbook incollection inproceedings manual mastersthesis misc phdthesis proceedings
    techreport unpublished
""")
)
quick = settings(max_examples=150, deadline=None)


def entry_of(work: Work, citekey: str = "key2020word", **fields: Any) -> Entry:
    """An entry that stands in no store."""
    ref = work.doi or (f"arXiv:{work.arxiv_id}" if work.arxiv_id else "pmid:1")
    plain: dict[str, Any] = {"source": "crossref", "tags": (), "added_at": "", "file": None, "pdf_path": None}
    return Entry(ref=ref, work=work, citekey=citekey, record_path=Path("/x.toml"), **plain | fields)


def crossref(**fields: Any) -> Work:
    parsed = doiget.parse_crossref({"DOI": "10.1000/x", "type": "journal-article", **fields}, "2026-06-01")
    assert parsed
    return parsed[0]


def lines_of(render: Callable[[Entry, ExportOptions], str], work: Work, **fields: Any) -> dict[str, str]:
    """The fields of a BibTeX or BibLaTeX entry, as written between the outer braces (a bare word without)."""
    text = render(entry_of(work, **fields), PLAIN_EXPORT)
    pairs = [line.strip().rstrip(",").partition(" = ") for line in text.splitlines()[1:-1]]
    return {name: value[1:-1] if value.startswith("{") else value for name, _, value in pairs}


def bibtex(work: Work, **fields: Any) -> dict[str, str]:
    return lines_of(doiget.render_bibtex, work, **fields)


def biblatex(work: Work, **fields: Any) -> dict[str, str]:
    return lines_of(doiget.render_biblatex, work, **fields)


def csl(work: Work, **fields: Any) -> dict[str, Any]:
    return doiget.csl_item(entry_of(work, **fields), PLAIN_EXPORT)


def ris(work: Work, **fields: Any) -> list[str]:
    return doiget.render_ris(entry_of(work, **fields), PLAIN_EXPORT).split("\n")


# ############################################################################
# Reading TeX
# ############################################################################

#: Control sequences of text, with what they print; of math, see SAFE_MATH.
PRINTED = {
    "textbackslash": "\\", "textbraceleft": "{", "textbraceright": "}", "textasciitilde": "~",
    "textasciicircum": "^", "textless": "<", "textgreater": ">", "textbar": "|", "textendash": "–",
    "textemdash": "—", "textquoteleft": "‘", "textquoteright": "’", "textquotedblleft": "“",
    "textquotedblright": "”", "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł",
    "L": "Ł", "dj": "đ", "DJ": "Đ", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "i": "ı",
}  # fmt: skip
ACCENTS = dict(zip("`'^~=u.\"rHvdckb", "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0323\u0327\u0328\u0331", strict=True))  # fmt: skip
HIGH = dict(zip("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", strict=True))
LOW = dict(zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
#: TeX that no bibliography may hold, however it is spelled.
DANGEROUS = doiget.table("""
    input include openin openout read write immediate special catcode lccode csname endcsname def edef gdef xdef let
    futurelet expandafter newcommand renewcommand providecommand verb lstinputlisting usepackage directlua loop
    repeat output shipout jobname message errmessage string meaning char begin end href url includegraphics par
    everypar aftergroup afterassignment scantokens uppercase lowercase number romannumeral noexpand the
""")


def unicode_of(tex: str) -> str:
    """What TeX prints for a text; asserts that nothing else happens."""
    shown, end = read_group(tex, 0)
    assert end == len(tex), f"a brace too many in {tex!r}"
    return shown


def read_group(tex: str, at: int) -> tuple[str, int]:
    """Read to the brace that closes, or to the end."""
    shown = ""
    while at < len(tex) and tex[at] != "}":
        piece, at = read_piece(tex, at)
        shown += piece
    return shown, at


def read_braced(tex: str, at: int) -> tuple[str, int]:
    assert tex[at] == "{", f"no argument at {tex[at:]!r}"
    shown, at = read_group(tex, at + 1)
    assert tex[at : at + 1] == "}", f"a brace too few in {tex!r}"
    return shown, at + 1


def read_piece(tex: str, at: int) -> tuple[str, int]:
    """Read one letter, group, command or formula."""
    assert not tex.startswith("^^", at)
    char = tex[at]
    assert char not in "%#&_~^", f"active {char!r} in {tex!r}"
    if char == "{":
        return read_braced(tex, at)
    if char == "$":
        formula = re.compile(r"\$[^$]+\$").match(tex, at)
        assert formula, f"half a formula in {tex!r}"
        check_formula(formula[0])
        return formula[0], formula.end()
    if char != "\\":
        return char, at + 1
    command = re.compile(r"\\([A-Za-z]+|.)").match(tex, at)
    assert command, f"a backslash ends {tex!r}"
    name, at = command[1], command.end()
    if name in "%&#_$":
        return name, at
    if name in {"textsuperscript", "textsubscript"}:
        inner, at = read_braced(tex, at)
        return "".join((HIGH if name == "textsuperscript" else LOW)[c] for c in inner), at
    if name in ACCENTS:
        import unicodedata

        inner, at = read_braced(tex, at)
        return unicodedata.normalize("NFC", inner + ACCENTS[name]), at
    assert name in PRINTED, f"\\{name} in {tex!r}"
    return PRINTED[name], at + 2 * tex.startswith("{}", at)


def check_formula(formula: str) -> None:
    """A formula holds known commands only and nothing that leaves it."""
    assert "^^" not in formula
    assert not re.search(r"(?<!\\)[%#&~]", formula)
    assert set(re.findall(r"\\([^\W\d_]+|.)", formula, re.DOTALL)) <= set(doiget.SAFE_MATH)


def check_bib(text: str) -> int:
    """Check every field of a .bib text: balanced, harmless, one line; returns how many entries it has."""
    blocks = re.findall(r"^@(\w+)\{([^\n]*?),?\n((?:  [^\n]*\n)*)\}$", text, re.MULTILINE)
    assert len(blocks) == len(re.findall(r"(?m)^[^ \n}]", text)), "nothing stands between the entries"
    for kind, key, body in blocks:
        assert kind.isalpha()
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_:.-]*", key)
        for line in body.splitlines():
            if re.fullmatch(r"  month = [a-z]{3},?", line):
                continue
            field = re.fullmatch(r"  ([a-z]+) = \{(.*)\},?", line)
            assert field, line
            assert is_balanced(field[2]), line
            if field[1] in {"doi", "url", "eprint"}:
                assert not re.search(r"[\s{}\\^\x00-\x1f]", field[2]), line
            elif field[1] == "pages":
                unicode_of(field[2].replace("--", "-"))
            else:
                unicode_of(re.sub(r" and (?=others$)", " ", field[2]))
    return len(blocks)


def is_balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            return False
    return depth == 0


# ############################################################################
# Text to TeX
# ############################################################################

RISKY = st.sampled_from([*"\\{}$^_%&#~<>|\"'`-,?!.:;@=[]() ", "^^", "$$", "\\input", "x_2", "\\alpha", "$\\beta$",
        "tICA", "DNA", "A", "K", "H₂O", "10⁻³", "é", "ß", "Ł", "王", "–", "’", "\\catcode", " and ", "--", "\\%", "1"])  # fmt: skip
LINES = st.lists(st.one_of(RISKY, st.text(max_size=4)), max_size=25).map(
    lambda parts: doiget.clean_line("".join(parts)) or ""
)


@quick
@given(LINES, st.booleans())
@example("100 % sustainable fuel & cost_model #1 for $5 {draft", True)
@example("$5 and $10, $x$1", False)
@example("x^^5cinput{a}", True)
@example("$$é$", False)
def test_any_line_reads_back(text: str, keep_case: bool) -> None:
    """TeX prints the line itself: nothing is lost, nothing becomes a command."""
    tex = doiget.render_tex(text, keep_case=keep_case)
    assert unicode_of(tex) == text
    assert is_balanced(tex)
    assert "^^" not in tex
    ascii_tex = doiget.to_ascii_tex(tex)
    assert unicode_of(ascii_tex) == text
    assert is_balanced(ascii_tex)


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        (
            "100 % sustainable fuel & cost_model #1 for $5 {draft",
            r"100 \% sustainable fuel \& cost\_model \#1 for \$5 \textbraceleft{}draft",
        ),
        (r"a \ b ~ c ^ d < e > f | g }", r"a \textbackslash{} b \textasciitilde{} c \textasciicircum{} d \textless{} e \textgreater{} f \textbar{} g \textbraceright{}"),
        ("Schrödinger's “cat” – 論文", "Schrödinger's “cat” – 論文"),
        ("a--b ``c'' ,,d?`", "a-{}-b `{}`c'{}' ,{},d?{}`"),
        ("RuO₂ and 10⁻³ s⁻¹", r"{RuO\textsubscript{2}} and {10\textsuperscript{-3}} {s\textsuperscript{-1}}"),
        ("", ""),
    ],
)  # fmt: skip
def test_prose(text: str, tex: str) -> None:
    assert doiget.render_tex(text) == tex


@pytest.mark.parametrize(
    ("title", "tex"),
    [
        # TI-03: words whose capitals carry meaning, but no word of a shouted title
        ("Markov state models and tICA reveal a folding nucleus in simulations of NuG2",
         "Markov state models and {tICA} reveal a folding nucleus in simulations of {NuG2}"),
        ("A REVIEW OF DNA REPAIR IN YEAST", "A REVIEW OF DNA REPAIR IN YEAST"),
        ("EFFECTS OF mRNA VACCINES ON CHILDREN", "EFFECTS OF mRNA VACCINES ON CHILDREN"),
        ("The DNA-binding of P53 in 3D", "The {DNA}-binding of {P53} in {3D}"),
        ("A study of vitamin K by AT&T in the U.S. for I", r"A study of vitamin {K} by {AT\&T} in the {U.S}. for I"),
        ("An I-beam, O’Brien's iPhone", "An {I}-beam, {O’Brien's} {iPhone}"),
        ("The Markov State Models of Smith", "The Markov State Models of Smith"),
        ("Über ÜBER-Größen", "Über {ÜBER}-Größen"),
        ("論文 on GPUs", "論文 on {GPUs}"),
        ("DNA", "DNA"),
        # formulas are one group, so that no style changes their letters
        (r"The $\Gamma_0$-limit of $H_2$ at $10$ K", r"The {$\Gamma_0$}-limit of {$H_2$} at {$10$} {K}"),
        (r"$\hbox{YBa}_{2}\hbox{Cu}_{3}\hbox{\rm O}_{7\hbox{-}{\delta}} $ films", r"{$\hbox{YBa}_{2}\hbox{Cu}_{3}\hbox{\rm O}_{7\hbox{-}{\delta}} $} films"),
    ],
)  # fmt: skip
def test_titles_keep_their_capitals(title: str, tex: str) -> None:
    assert doiget.render_tex(title, keep_case=True) == tex


@pytest.mark.parametrize(
    "formula",
    [
        "$x^2$", r"$\beta$", r"$\mathcal{O}(n \log n)$", r"$\frac{a}{b}$", r"$\mathbb R^n$", r"$\left(\frac12\right)$",
        r"$\{x\}$", r"$e^+e^-$", r"$\sqrt{s} = 7$", r"$^{13}$", r"$ x_1 $", r"$\alpha\,\beta$",
    ],
)  # fmt: skip
def test_safe_formulas_survive(formula: str) -> None:
    assert doiget.render_tex(f"On {formula} decay") == f"On {{{formula}}} decay"


@pytest.mark.parametrize(
    "text",
    [
        r"$\input{/etc/passwd}$", r"$\write18{rm -rf ~}$", r"$x^^5cinput{a}$", r"$\catcode`\%=12$", r"$\alphaβ$",
        "$a{b$", "$a}b{$", r"$\{$", r"$\}x\{$", r"$x^$", r"$x_}{$", r"$\frac$", r"$\sqrt$", r"$\left($", r"$a % b$",
        "$a#1$", "$a&b$", "$a~b$", r"$\\input x$", r"$\begin{x}\end{x}$", r"$\def\x{}$", r"$\href{http://x}{y}$", "$$",
        "$5 and $", "A$AP and Ke$ha", "$ $", r"$\csname input\endcsname$", r"$\input", r"\$x$", r"$x\$", r"$\é$", r"$\mathrm$",
        "$\\\n$",
    ],
)  # fmt: skip
def test_other_formulas_are_escaped(text: str) -> None:
    """Not balanced, not complete, or with a command that is not on the list: then every character is printed."""
    tex = doiget.render_tex(f"On {text} decay", keep_case=True)
    assert not re.search(r"(?<!\\)\$", tex)
    assert unicode_of(tex.replace("\n", " ")) == f"On {text} decay".replace("\n", " ")


def test_the_list_of_commands_is_harmless() -> None:
    assert not DANGEROUS.keys() & doiget.SAFE_MATH.keys()
    assert all(re.fullmatch(r"[A-Za-z]+|[^\w\s%&#$\\^~]| ", name) for name in doiget.SAFE_MATH)


HOSTILE = (
    r"\input{/etc/passwd}", r"\write18{touch x}", r"\catcode`\@=11", r"%\n\end{document}", "}}}{{{", r"\verb|x|",
    "^^5cinput{/etc/passwd}", "^^^^005c", r"\immediate\openout1=x", "},\n author={Eve", r"$\input{x}$", "{", "}", "\\",
    r"\csname input\endcsname{x}", r"\\", "$", "$$", "#1", "@string{a={b}}", r"\{", "{\\", "a\x00b\x1b\u202e",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_metadata_stays_text(text: str) -> None:
    """In any field, in any format: nothing gets out of its value and nothing is carried out."""
    names = {"family": text, "given": text, "particle": text, "suffix": text}
    raw = dict.fromkeys(Work.__annotations__, text) | {
        "type": "journal-article", "date": "2020-03", "authors": [names, {"literal": text}, {"family": text}],
        "editors": [text], "doi": f"10.1000/{text}", "url": f"https://x.org/{text}", "arxiv_id": "2401.12345",
        "retraction": {"status": "retracted", "notice_doi": f"10.1000/{text}"}, "relations": [], "isbn": [text],
    }  # fmt: skip
    work = doiget.work_from_dict(raw)
    for kind in (*EXPORT_TYPES, "never-heard-of"):
        entry = entry_of(doiget.replace(work, type=kind), tags=doiget._clean_tags([text, f"a, {text}"]))
        for name in ("bibtex", "biblatex"):
            made = EXPORTERS[name].join([EXPORTERS[name].render(entry, PLAIN_EXPORT)] * 2)
            assert check_bib(made) == 2
    check_csl([doiget.csl_item(entry, PLAIN_EXPORT)])
    assert all(re.match(r"[A-Z][A-Z0-9]  - ", line) for line in doiget.render_ris(entry, PLAIN_EXPORT).split("\n"))


def test_odd_paths_do_not_break_the_file() -> None:
    """The `file` field is escaped as reference managers do; what braces or line ends would break is left out."""

    def field(path: str) -> str | None:
        text = doiget.render_bibtex(entry_of(Work(title="T"), pdf_path=Path(path)), ExportOptions(file_field=True))
        found = re.search(r"  file = \{(.*)\}$", text, re.MULTILINE)
        return found and found[1]

    assert field("/home/u/papers/a b.pdf") == ":/home/u/papers/a b.pdf:application/pdf"
    assert field("C:\\papers;x\\a.pdf") == r":C\:\\papers\;x\\a.pdf:application/pdf"
    assert field("/pa{p}ers/a.pdf") == ":/pa{p}ers/a.pdf:application/pdf"
    for odd in ("/pa{pers/a.pdf", "/pa}{pers/a.pdf", "/a\nb.pdf", "/a\udcffb.pdf"):
        assert field(odd) is None
    assert "file" not in bibtex(Work(title="T"), pdf_path=Path("/a.pdf"))


# ############################################################################
# Names
# ############################################################################


def names_in(*authors: Any) -> tuple[str, list[dict[str, str]], list[str]]:
    work = crossref(author=list(authors)) if isinstance(authors[0], dict) else Work(authors=authors)
    return bibtex(work)["author"], csl(work)["author"], [line[6:] for line in ris(work) if line.startswith("AU")]


def test_bodies_and_single_names_are_authors() -> None:
    """AU-01: who has only a name or only a family name keeps the place."""
    made = names_in(
        {"name": "Example Atlas Consortium", "sequence": "first", "affiliation": []},
        {"family": "Meghana", "sequence": "additional"},
        {"given": "Dario", "family": "Moraes", "sequence": "additional"},
    )
    assert made == (
        "{Example Atlas Consortium} and Meghana and Moraes, Dario",
        [{"literal": "Example Atlas Consortium"}, {"family": "Meghana"}, {"family": "Moraes", "given": "Dario"}],
        ["Example Atlas Consortium", "Meghana", "Moraes, Dario"],
    )


def test_a_body_is_not_parted() -> None:
    """AU-02: `and` and commas inside a body's name."""
    parsed = doiget.parse_datacite({"id": "10.5281/zenodo.1", "attributes": {"state": "findable", "creators": [
        {"name": "Earth Interior Center, Example Agency", "nameType": "Organizational"}]}})  # fmt: skip
    assert parsed
    works = (crossref(author=[{"name": "Barnes and Noble, Inc."}]), parsed[0])
    for work, name in zip(works, ("Barnes and Noble, Inc.", "Earth Interior Center, Example Agency"), strict=True):
        assert f"  author = {{{{{name}}}}}" in doiget.render_bibtex(entry_of(work), PLAIN_EXPORT)
        assert csl(work)["author"] == [{"literal": name}]
        assert [str(person) for person in people_in(work)] == [f"{{{name}}}"]


def test_particles_and_suffixes() -> None:
    """AU-03."""
    made = names_in(
        {"given": "Anna", "family": "van der Berg"},
        {"given": "Martin Luther", "family": "King", "suffix": "Jr."},
        {"given": "Georg Henrik", "family": "Wright", "non-dropping-particle": "von"},
    )
    assert made == (
        "van der Berg, Anna and King, Jr., Martin Luther and von Wright, Georg Henrik",
        [
            {"family": "van der Berg", "given": "Anna"},
            {"family": "King", "given": "Martin Luther", "suffix": "Jr."},
            {"family": "Wright", "given": "Georg Henrik", "non-dropping-particle": "von"},
        ],
        ["van der Berg, Anna", "King, Martin Luther, Jr.", "von Wright, Georg Henrik"],
    )


def test_three_thousand_authors() -> None:
    """AU-04: all of them, in order, in every format."""
    work = Work(title="T", authors=tuple(Author(f"A{n:04}", "X.") for n in range(1, 3001)))
    wanted = [f"A{n:04}, X." for n in range(1, 3001)]
    assert bibtex(work)["author"].split(" and ") == wanted
    assert [f"{a['family']}, {a['given']}" for a in csl(work)["author"]] == wanted
    assert [line[6:] for line in ris(work) if line.startswith("AU")] == wanted


@pytest.mark.parametrize(
    ("author", "tex"),
    [
        (Author("Santos e Silva", "Ana"), "{Santos e Silva}, Ana"),
        (Author("de la Cruz", "Juan"), "de la Cruz, Juan"),
        (Author("Maria Meghana"), "{Maria Meghana}"),
        (Author("Wright", "", "von"), "von Wright"),
        (Author("Wright", "", "Van"), "{Van Wright}"),
        (Author("Smith and Sons", "A"), "{Smith and Sons}, A"),
        (Author("Smith", "A and B"), "Smith, {A and B}"),
        (Author("Smith", "A, B"), "Smith, {A, B}"),
        (Author("King", "", "", "Jr."), "King, Jr., {}"),
        (Author("O'Brien & Co", "X_"), r"O'Brien \& Co, X\_"),
        (doiget.AND_OTHERS, "others"),
        (Author(literal="others"), "{others}"),
        (Author("Others"), "{Others}"),
        (Author(literal="王"), "{王}"),
        (Author("王", "小明"), "王, 小明"),
    ],
)
def test_names_that_bibtex_would_read_otherwise(author: Author, tex: str) -> None:
    assert bibtex(Work(authors=(author,)))["author"] == tex


def people_in(work: Work, options: ExportOptions = PLAIN_EXPORT) -> Sequence[pybtex.database.Person]:
    text = doiget.render_bibtex(entry_of(work), options)
    (entry,) = pybtex.database.parse_string(text, "bibtex").entries.values()
    people: Sequence[pybtex.database.Person] = entry.persons["author"]
    return people


NAME = st.one_of(
    st.sampled_from(["Smith", "van der Berg", "Günther", "Łukasiewicz", "Acuña Íñigo", "de", "Jr.", "and", "O'Brien", "王"]),
    st.lists(st.one_of(RISKY, st.sampled_from(["Ab", "ce ", "Él ", "d'"])), min_size=1, max_size=6).map("".join),
)  # fmt: skip


@quick
@given(
    st.lists(
        st.tuples(NAME, NAME, st.sampled_from(["", "von", "de la", "Van"]), st.sampled_from(["", "Jr.", "III"])),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
@example([("Günther", "Ü", "", "")], True)
def test_names_read_back(parts: list[tuple[str, str, str, str]], ascii_only: bool) -> None:
    """pybtex finds as many people, each with the same family name with its particle, given names and suffix (BX-04)."""
    authors = tuple(filter(None, (doiget.make_author(*names) for names in parts)))
    people = people_in(Work(authors=authors), ExportOptions(ascii=ascii_only)) if authors else ()
    assert len(people) == len(authors)
    for person, author in zip(people, authors, strict=True):
        last, given, suffix = (
            unicode_of(" ".join(words))
            for words in (
                person.prelast_names + person.last_names,
                person.first_names + person.middle_names,
                person.lineage_names,
            )
        )
        assert last == (doiget.last_name(author) or author.literal)
        assert (given, suffix) == (author.given, author.suffix)


def test_ascii_names_use_tex_accents() -> None:
    work = Work(title="Über ﬁ", authors=(Author("Günther", "Łukasz"), Author("王")), doi="10.1000/ü")
    text = doiget.render_bibtex(entry_of(work), ExportOptions(ascii=True))
    assert r"author = {G{\"{u}}nther, {\L}ukasz and 王}" in text, "what TeX has no command for stays"
    assert r"title = {{\"{U}}ber ﬁ}" in text
    assert "doi = {10.1000/ü}" in text


# ############################################################################
# Fields
# ############################################################################


def test_markup_becomes_tex() -> None:
    """TI-01, TI-02."""
    mathml = (
        'Magnetism in <mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML" display="inline"><mml:msub><mml:mi>RuO'
        "</mml:mi><mml:mn>2</mml:mn></mml:msub></mml:math> films"
    )
    work = crossref(title=[mathml])
    assert work.title == "Magnetism in RuO₂ films"
    assert bibtex(work)["title"] == r"Magnetism in {RuO\textsubscript{2}} films"
    work = crossref(
        title=["<p><strong>A new species of <em>Tachycines</em> (<em>Gymnaeta</em>)</strong></p>"],
        **{"container-title": ["Energy Science &amp;amp; Engineering"]},
    )
    made = bibtex(work)
    assert (made["title"], made["journal"]) == (
        "A new species of Tachycines (Gymnaeta)",
        r"Energy Science \& Engineering",
    )
    assert "T2  - Energy Science & Engineering" in ris(work)


def test_dates() -> None:
    """DT-01, DT-02, RI-01: months are macros in BibTeX and digits elsewhere; what is unknown is not written."""
    full, month, none = (
        crossref(issued={"date-parts": [parts]}) for parts in ([2017, 2, 16], [2019, 2], [None])
    )  # fmt: skip
    assert "  year = {2017},\n  month = feb," in doiget.render_bibtex(entry_of(full), PLAIN_EXPORT)
    assert biblatex(full)["date"] == "2017-02-16"
    assert csl(full)["issued"] == {"date-parts": [[2017, 2, 16]]}
    assert {"PY  - 2017", "DA  - 2017/02/16"} <= set(ris(full))
    assert (biblatex(month)["date"], csl(month)["issued"]) == ("2019-02", {"date-parts": [[2019, 2]]})
    assert {"PY  - 2019", "DA  - 2019/02//"} <= set(ris(month))
    year = Work(year=2006, date="2006")
    assert csl(year)["issued"] == {"date-parts": [[2006]]}
    assert [line for line in ris(year) if line[:2] in {"PY", "DA"}] == ["PY  - 2006"]
    assert not {"year", "month"} & set(bibtex(none))
    assert "date" not in biblatex(none)
    assert "issued" not in csl(none)
    assert not any(line[:2] in {"PY", "DA"} for line in ris(none))
    assert not any(
        "None" in render(entry_of(none), PLAIN_EXPORT) for render in (doiget.render_bibtex, doiget.render_ris)
    )
    online = {"issued": {"date-parts": [[None]]}, "published-online": {"date-parts": [[2009, 3]]}}
    assert biblatex(crossref(**online))["date"] == "2009-03"


def test_addresses_stay_addresses() -> None:
    """BX-02: nothing is escaped in doi and url but what would end the field."""
    work = Work(doi="10.1007/978-3-032-00942-5_12", url="https://www.rcsb.example/structure/AF_AFQ14&x=1")
    made = bibtex(work)
    assert made["doi"] == "10.1007/978-3-032-00942-5_12"
    assert made["url"] == "https://www.rcsb.example/structure/AF_AFQ14&x=1"
    odd = bibtex(Work(doi=r"10.1000/a{b}c\d^e<f>;2-#%20", url="https://x.org/a{b"))
    assert odd["doi"] == "10.1000/a%7Bb%7Dc%5Cd%5Ee<f>;2-#%20"
    assert odd["url"] == "https://x.org/a%7Bb"
    assert "url" not in bibtex(Work(doi="10.1000/x", url="https://doi.org/10.1000/x")), "the DOI says it already"


def test_pages_and_article_numbers() -> None:
    """BX-03: ranges with two hyphens, and the leading zero of a number."""
    pages = crossref(page="146–171")
    assert (bibtex(pages)["pages"], biblatex(pages)["pages"], csl(pages)["page"]) == ("146--171", "146--171", "146-171")
    assert {"SP  - 146", "EP  - 171"} <= set(ris(pages))
    number = crossref(volume="106", issue="4", **{"article-number": "043717"})
    assert (bibtex(number)["pages"], biblatex(number)["eid"], csl(number)["page"]) == ("043717",) * 3
    assert "SP  - 043717" in ris(number)
    assert not any(line.startswith("EP") for line in ris(number))
    for pages, tex in (("1-2, 5-6", "1--2, 5--6"), ("12-1-12-5", "12-1-12-5"), ("e_1", r"e\_1"), ("S1-S9", "S1--S9")):
        assert bibtex(Work(pages=pages))["pages"] == tex


def test_preprints() -> None:
    """CS-01, and arXiv's own DOI with the fields that LaTeX styles know."""
    server = crossref(type="posted-content", subtype="preprint", institution=[{"name": "bioRxiv"}],
                      issued={"date-parts": [[2019, 4, 2]]}, **{"container-title": []})  # fmt: skip
    item = csl(server)
    assert (item["type"], item["container-title"]) == ("article", "bioRxiv")
    assert doiget.render_bibtex(entry_of(server), PLAIN_EXPORT).startswith("@misc{")
    assert bibtex(server)["howpublished"] == "bioRxiv"
    arxiv = Work(type="preprint", title="T", arxiv_id="1706.03762", primary_class="cs.CL", container_title="arXiv",
                 publisher="arXiv", url="https://arxiv.org/abs/1706.03762v5")  # fmt: skip
    made = bibtex(arxiv)
    wanted = {
        "doi": "10.48550/arXiv.1706.03762",
        "eprint": "1706.03762",
        "archiveprefix": "arXiv",
        "primaryclass": "cs.CL",
    }
    assert made.items() >= wanted.items()
    wanted = {"doi": "10.48550/arXiv.1706.03762", "eprint": "1706.03762", "eprinttype": "arxiv", "eprintclass": "cs.CL"}
    assert biblatex(arxiv).items() >= wanted.items()
    assert doiget.render_biblatex(entry_of(arxiv), PLAIN_EXPORT).startswith("@online{")
    assert csl(arxiv).items() >= {"DOI": "10.48550/arXiv.1706.03762", "number": "arXiv:1706.03762"}.items()
    assert bibtex(doiget.replace(arxiv, doi="10.48550/arxiv.1706.03762"))["doi"] == "10.48550/arXiv.1706.03762"
    assert bibtex(doiget.replace(arxiv, doi="10.1103/journal.1"))["doi"] == "10.1103/journal.1"
    assert bibtex(doiget.replace(arxiv, arxiv_id="hep-th/9711200"))["doi"] == "10.48550/arXiv.hep-th/9711200"


def test_a_season_is_kept() -> None:
    work = crossref(issued={"date-parts": [[1950]], "season": "1"})
    assert csl(work)["issued"] == {"date-parts": [[1950]], "season": "1"}


def test_what_is_missing_is_left_out() -> None:
    """MD-02: without title, authors, container."""
    raw = {"DOI": "10.1023/a:1007653400249", "title": [], "container-title": ["Journal of Elasticity"],
           "issued": {"date-parts": [[1999]]}}  # fmt: skip
    work = crossref(**raw)
    assert not {"title", "author"} & (set(bibtex(work)) | set(biblatex(work)) | set(csl(work)))
    assert not any(line[:2] in {"TI", "AU"} for line in ris(work))
    assert bibtex(work)["journal"] == "Journal of Elasticity"
    for name in ("title", "author", "container-title"):
        assert check_bib(doiget.render_bibtex(entry_of(crossref(**raw | {name: None})), PLAIN_EXPORT)) == 1
    empty = entry_of(Work(), citekey="k")
    assert (doiget.render_bibtex(empty, PLAIN_EXPORT), doiget.csl_item(empty, PLAIN_EXPORT)) == (
        "@misc{k\n}",
        {"id": "k", "type": "document"},
    )
    assert doiget.render_ris(empty, PLAIN_EXPORT) == "TY  - GEN\nID  - k\nER  - "


def test_a_retraction_is_in_the_note() -> None:
    work = Work(title="T", retraction=doiget.Retraction("partially_retracted", "10.1000/n_1"))
    assert bibtex(work)["note"] == r"Partially retracted; notice: 10.1000/n\_1"
    assert csl(work)["note"] == "Partially retracted; notice: 10.1000/n_1"
    assert "N1  - Partially retracted; notice: 10.1000/n_1" in ris(work)


def test_titles_tags_and_publishers() -> None:
    book = Work(type="book", title="Main", subtitle="The rest", publisher="P", series="Notes", isbn=("9781",))
    assert (bibtex(book)["title"], csl(book)["title"]) == ("Main: The rest", "Main: The rest")
    assert (biblatex(book)["title"], biblatex(book)["subtitle"]) == ("Main", "The rest")
    assert bibtex(book).items() >= {"publisher": "P", "series": "Notes", "isbn": "9781"}.items()
    assert bibtex(doiget.replace(book, title="Main? The rest"))["title"] == "Main? The rest"
    assert bibtex(doiget.replace(book, title="Why?"))["title"] == "Why? The rest"
    thesis = Work(type="dissertation", title="T", institution="MIT", publisher="ProQuest")
    assert (bibtex(thesis)["school"], biblatex(thesis)["institution"]) == ("MIT", "MIT")
    assert biblatex(thesis)["type"] == "phdthesis"
    report = Work(type="report", title="T", publisher="NASA", container_title="Memos")
    assert bibtex(report).items() >= {"institution": "NASA", "series": "Memos"}.items()
    tagged = {"tags": ("to read", "a, b")}
    assert bibtex(Work(), **tagged)["keywords"] == "to read, {a, b}"
    assert csl(Work(), **tagged)["keyword"] == "to read, a, b"
    assert [line for line in ris(Work(), **tagged) if line[:2] == "KW"] == ["KW  - to read", "KW  - a, b"]


def test_abstracts_are_for_csl_and_ris() -> None:
    work = Work(title="T", abstract="One.\n\nTwo.")
    assert "abstract" not in bibtex(work)
    assert csl(work)["abstract"] == "One.\n\nTwo."
    assert "AB  - One. Two." in ris(work)


# ############################################################################
# Types
# ############################################################################


def test_every_type_has_a_row_of_legal_words() -> None:
    assert {row[BIBTEX] for row in EXPORT_TYPES.values()} <= STANDARD_TYPES
    assert all(len(row) == 4 and all(row) for row in EXPORT_TYPES.values())
    assert {row[doiget.CSL] for row in EXPORT_TYPES.values()} <= set(CSL_TYPES)
    assert {row[doiget.RIS] for row in EXPORT_TYPES.values()} <= set(rispy.TYPE_OF_REFERENCE_MAPPING)


def test_every_type_of_a_source_has_a_row() -> None:
    ours = {*doiget._TYPES.values(), *doiget._DATACITE_TYPES.values(), *(kind for _, kind in doiget._DATACITE_TEXTS)}
    known = {*EXPORT_TYPES, *doiget._TYPES}  # DataCite's own words are renamed on their way in
    assert ours - known == set()
    page = (Path(__file__).resolve().parent.parent / "docs" / "STORE.md").read_text(encoding="utf-8")
    named = re.search(r"`type` holds(.*?)\n\n", page, re.DOTALL)
    assert named
    assert set(re.findall(r"`([a-z-]+)`", named[1])) - {"type"} <= set(EXPORT_TYPES)


# ############################################################################
# Whole files, read by others
# ############################################################################

CSL_TYPES = doiget.table("""
    article article-journal article-magazine article-newspaper bill book broadcast chapter classic collection dataset
    document entry entry-dictionary entry-encyclopedia event figure graphic hearing interview legal_case legislation
    manuscript map motion_picture musical_score pamphlet paper-conference patent performance periodical
    personal_communication post post-weblog regulation report review review-book software song speech standard
    thesis treaty webpage
""")
STRING = {"type": "string", "minLength": 1}
CSL_NAME = {
    "type": "object", "additionalProperties": False, "minProperties": 1,
    "properties": dict.fromkeys(("family", "given", "non-dropping-particle", "suffix", "literal"), STRING),
}  # fmt: skip
CSL_DATE = {
    "type": "object", "additionalProperties": False, "required": ["date-parts"],
    "properties": {
        "season": {"type": ["string", "number"]},
        "date-parts": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
            "type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "integer"}}},
    },
}  # fmt: skip
#: The fields we write, as CSL's data schema 1.0.2 has them.
CSL_SCHEMA = {
    "type": "array",
    "items": {
        "type": "object", "required": ["id", "type"], "additionalProperties": False,
        "properties": {
            "type": {"enum": list(CSL_TYPES)}, "issued": CSL_DATE,
            **dict.fromkeys(("author", "editor"), {"type": "array", "items": CSL_NAME}),
            **dict.fromkeys((
                "id", "title", "container-title", "collection-title", "volume", "issue", "page", "number", "edition",
                "publisher", "event-title", "DOI", "URL", "ISBN", "ISSN", "PMID", "PMCID", "original-title",
                "language", "abstract", "note", "keyword",
            ), STRING),
        },
    },
}  # fmt: skip


def check_csl(items: Sequence[dict[str, Any]]) -> None:
    jsonschema.Draft202012Validator(CSL_SCHEMA).validate(items)
    assert json.loads(doiget.join_csl(items)) == list(items)


def recorded_works() -> Iterator[Work]:
    """Every work in the bodies recorded from Crossref, DataCite and arXiv."""
    parsers = {
        "crossref/works": doiget.parse_crossref,
        "datacite": doiget.parse_datacite,
        "crossref/csl": doiget.parse_csl,
    }
    for folder, parse in parsers.items():
        for path in sorted((RECORDED / folder).glob("*.json")):
            with contextlib.suppress(doiget.DoigetError):
                parsed = parse(doiget.parse_json(path.read_bytes()))
                yield from [parsed[0]] if parsed else []
    for path in sorted((RECORDED / "arxiv").iterdir()):
        with contextlib.suppress(doiget.DoigetError):
            yield from doiget.parse_arxiv_feed(path.read_bytes())


def numbered(works: Sequence[Work]) -> list[Entry]:
    keys = doiget.unique_citekeys({f"doi_{n:06}": doiget.make_citekey(work) for n, work in enumerate(works)})
    return [entry_of(work, keys[f"doi_{n:06}"]) for n, work in enumerate(works)]


def check_files(entries: Sequence[Entry]) -> None:
    """Every format of some entries is read, whole and in order, by parsers that other people wrote."""
    made = {name: [format_.render(entry, PLAIN_EXPORT) for entry in entries] for name, format_ in EXPORTERS.items()}
    keys = [entry.citekey for entry in entries]
    for name in ("bibtex", "biblatex"):
        text = EXPORTERS[name].join(made[name])
        assert check_bib(text) == len(entries)
        library = bibtexparser.parse_string(text)
        assert not library.failed_blocks
        assert [block.key for block in library.blocks] == keys, "nothing between the entries"
        strict = pybtex.database.parse_string(text, "bibtex")
        assert list(strict.entries) == keys
        for block, entry in zip(library.entries, entries, strict=True):
            title = block.fields_dict.get("title")
            wanted = doiget.full_title(entry.work) if name == "bibtex" else entry.work.title
            assert (unicode_of(title.value) if title else None) == wanted
            assert {f.key for f in block.fields} - {"author", "editor"} == set(strict.entries[block.key].fields)
    assert {re.match(r"@(\w+)", text)[1] for text in made["bibtex"]} <= STANDARD_TYPES  # type: ignore[index]
    check_csl(made["csl"])
    text = EXPORTERS["ris"].join(made["ris"])
    assert [line[:6] for line in text.split("\n") if line and not re.match(r"[A-Z][A-Z0-9]  - ", line)] == []
    read = rispy.loads(text)
    for found, entry in zip(read, entries, strict=True):
        title = doiget.full_title(entry.work)
        assert found.get("title") == (title and " ".join(title.split()))
        assert len(found.get("authors", [])) == len(entry.work.authors)
        assert found["id"] == entry.citekey


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded bodies are not here")
def test_recorded_works_are_read_by_everybody() -> None:
    works = list(recorded_works())
    assert len(works) > 250
    check_files(numbered(works))


TEXT = st.text(max_size=30)
ANY_WORK = st.fixed_dictionaries(
    {"type": st.sampled_from([*EXPORT_TYPES, "odd-one"])},
    optional={
        **dict.fromkeys(("title", "subtitle", "container_title", "publisher", "volume", "pages", "article_number",
                         "institution", "event", "edition", "series", "season", "comment", "abstract", "language"),
                        st.one_of(TEXT, LINES)),
        **dict.fromkeys(("authors", "editors"), st.lists(st.one_of(NAME, st.fixed_dictionaries({"family": NAME, "given": NAME})), max_size=3)),
        "date": st.dates().map(str), "doi": TEXT.map("10.1000/{}".format), "url": TEXT.map("https://x.org/{}".format),
        "arxiv_id": st.just("2401.12345"), "isbn": st.just("9780306406157"),
    },
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(ANY_WORK, min_size=1, max_size=3))
def test_any_works_are_read_by_everybody(raw: list[dict[str, Any]]) -> None:
    check_files(numbered([doiget.work_from_dict(item) for item in raw]))


def test_a_csl_processor_takes_our_items() -> None:
    """citeproc-py writes a bibliography of them; CSL's newer names are the only ones it does not know."""
    from citeproc import Citation, CitationItem, CitationStylesBibliography, CitationStylesStyle, formatter
    from citeproc.source.json import CiteProcJSON

    works = [
        Work(type=kind, title=f"Title {kind}", authors=(Author("Wright", "Georg", "von"), Author(literal="ATLAS")),
             date="2017-02-16", year=2017, container_title="Nature", volume="3", pages="1-9", doi="10.1000/x")
        for kind in EXPORT_TYPES
    ]  # fmt: skip
    items = [doiget.csl_item(entry, PLAIN_EXPORT) for entry in numbered(works)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = CiteProcJSON(json.loads(json.dumps(items)))
        style = CitationStylesStyle("harvard-cite-them-right", validate=False)
        bibliography = CitationStylesBibliography(style, source, formatter.plain)
        for item in items:
            bibliography.register(Citation([CitationItem(item["id"])]))
        shown = [str(line) for line in bibliography.bibliography()]
    assert len(shown) == len(items)
    for kind in EXPORT_TYPES:
        (line,) = [text for text in shown if re.search(rf"Title {kind}\b(?!-)", text)]
        assert "Wright" in line
        assert "2017" in line


SAMPLE = (
    Work(type="journal-article", title="Markov state models and tICA in 100 % of RuO₂", date="2017-02-16", year=2017,
         authors=(Author("van der Berg", "Anna"), Author("King", "Martin Luther", "", "Jr."), Author(literal="Barnes and Noble, Inc.")),
         container_title="Energy Science & Engineering", volume="106", issue="4", pages="146-171", publisher="Wiley",
         abstract="One.\n\nTwo.", doi="10.1007/978-3-032-00942-5_12", url="https://x.example/AF_1&x=1", issn=("1234-5678",),
         language="en", retraction=doiget.Retraction("retracted", "10.1000/notice")),
    Work(type="preprint", title=r"On $\beta$-decay, \input{/etc/passwd} and {draft", authors=(Author("Łukasiewicz", "J."),),
         date="2023-02-07", year=2023, arxiv_id="2302.03287", arxiv_version=3, primary_class="cs.SE",
         container_title="arXiv", publisher="arXiv", url="https://arxiv.org/abs/2302.03287v3"),
    Work(type="book-chapter", title="A chapter", editors=(Author("Moraes", "Dario"),), container_title="The book",
         series="Lecture Notes", publisher="Springer", date="1999", year=1999, doi="10.1000/c", isbn=("9780306406157",)),
    Work(type="dissertation", title="論文", authors=(Author(literal="王"),), institution="Universität Wien", date="2019-02",
         year=2019, doi="10.1000/t"),
    Work(type="dataset", title="Data", subtitle="All of it", publisher="Zenodo", doi="10.5281/zenodo.1"),
)  # fmt: skip


@pytest.mark.parametrize("name", EXPORTERS)
def test_golden_files(golden: Callable[[str, str], None], name: str) -> None:
    """One file of each format, as a whole."""
    entries = [doiget.replace(entry, tags=("to read",) * (n == 0)) for n, entry in enumerate(numbered(SAMPLE))]
    made = EXPORTERS[name].join(EXPORTERS[name].render(entry, PLAIN_EXPORT) for entry in entries)
    golden(f"exports/{EXPORTERS[name].file}", made)


# ############################################################################
# Citekeys
# ############################################################################


def test_citekeys_are_checked_again() -> None:
    """A person may have written anything into a record: what is legal and free stays, the rest is made legal."""
    found = doiget.unique_citekeys({
        "doi_1": "smith2013", "doi_2": "Smith2013", "doi_3": "smith2013a", "doi_4": "smith2013", "doi_5": "",
        "doi_6": "a b,c}{%", "doi_7": "2013smith", "doi_8": "Müller_2005:x", "doi_9": "論文", "doi_a": "Own-Key.1",
    })  # fmt: skip
    assert found == {
        "doi_1": "smith2013", "doi_2": "Smith2013b", "doi_3": "smith2013a", "doi_4": "smith2013c", "doi_5": "doi_5",
        "doi_6": "abc", "doi_7": "x2013smith", "doi_8": "muller_2005:x", "doi_9": found["doi_9"], "doi_a": "Own-Key.1",
    }  # fmt: skip
    assert re.fullmatch(r"[a-z][a-z0-9]*", found["doi_9"])


@quick
@given(
    st.dictionaries(
        st.from_regex(r"\A[a-z]+_[a-z0-9._-]{1,8}\Z"), st.one_of(st.text(max_size=4), st.sampled_from("aAbB"))
    )
)
def test_citekeys_are_legal_and_unique(assigned: dict[str, str]) -> None:
    found = doiget.unique_citekeys(assigned)
    assert found.keys() == assigned.keys()
    assert len({key.lower() for key in found.values()}) == len(found)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_:.-]*", key) for key in found.values())
    assert found == doiget.unique_citekeys(dict(reversed(assigned.items())))
    assert doiget.unique_citekeys(found) == found


def test_the_template_makes_new_keys() -> None:
    work = Work(authors=(Author("Günther", "A"),), year=2005, title="The Markov models")
    assert doiget.make_citekey(work) == "gunther2005markov"
    assert doiget.make_citekey(work, (), "{Family}_{yy}:{Word}") == "Gunther_05:Markov"
    assert doiget.make_citekey(work, {"gunther", "gunthera"}, "{Family}") == "Guntherb"
    assert doiget.make_citekey(doiget.replace(work, year=None), (), "{family}{yy}") == "gunthernd"


@pytest.mark.parametrize(
    "template",
    [
        *("{year}", "k{year}", "{year}{family}", "{family.__class__}", "{family!r}", "{x}", "{family} {word}", "{}"),
        *("{family}{", "a{family}é", "", "{family}\n", "{family}" + "a" * 100),
    ],
)
def test_a_template_that_makes_bad_keys_is_refused(template: str) -> None:
    with pytest.raises(doiget.DoigetError) as caught:
        doiget.parse_setting(doiget.SETTING_BY_KEY["citekey"], template.replace("\n", "\n%"))
    assert caught.value.reason == "schema"


# ############################################################################
# The command
# ############################################################################

P, Q, R = "10.1000/p", "10.1000/q", "10.1000/r"


def stock(home: Home, *refs: str, **facts: Any) -> list[doiget.Entry]:
    return [
        shelve(home, ref, with_pdf=False, **{"title": "Markov models", "authors": (Author("Smith", "J."),)} | facts)
        for ref in refs
    ]


def record(home: Home, ref: str, citekey: str, **facts: Any) -> None:
    """Write a record as doiget does, quickly."""
    work = Work(**{"title": "T", "doi": ref} | facts)
    table = {"ref": ref, "citekey": citekey, "work": doiget.work_to_dict(work)}
    home.metadata.mkdir(parents=True, exist_ok=True)
    (home.metadata / f"{doiget.safekey(doiget.parse_ref(ref))}.toml").write_bytes(doiget.render_toml(table))


def keys_in(text: str) -> list[str]:
    return re.findall(r"^@\w+\{([^,\s]+)", text, re.MULTILINE)


def test_export_prints_the_text(run: Runner, home: Home) -> None:
    """Into a pipe as to a person; sorted by key; two exports are the same bytes (BX-05)."""
    stock(home, Q, P)
    result = run("export")
    assert (result.rc, result.stderr) == (0, b"")
    assert keys_in(result.out) == ["smith2020markov", "smith2020markova"]
    assert result.out.endswith("}\n")
    assert check_bib(result.out.removesuffix("\n")) == 2
    assert run("export").stdout == result.stdout
    stock(home, R)
    assert run("remove", Q).rc == 0
    again = run("export").out
    assert re.findall(r"@\w+\{(\w+),|doi = \{(.*)\}", again) == [
        *(("smith2020markova", ""), ("", P), ("smith2020markovb", ""), ("", R)),
    ]  # P and R keep their keys


def test_export_formats(run: Runner, home: Home, net: Any) -> None:
    """One format is its text, several are each under its name; nothing of it needs a network."""
    stock(home, P, title="Ünï & ₂")
    for name, start in (("bibtex", "@misc{"), ("biblatex", "@misc{"), ("csl", "[\n{"), ("ris", "TY  - ")):
        answer = run("export", "--format", name, "--json").json()
        facts = {"count": 1, "missing": [], "next_cursor": None, "warnings": []}
        assert answer == {"ok": True, "format": name, "text": answer["text"], **facts}
        assert answer["text"].startswith(start)
    assert answer["text"].endswith("\nER  - \n")
    assert run("export", "--format", "RIS").out == answer["text"]
    both = run("export", "--format", "csl, bibtex").out
    assert "@misc{" in both
    assert '"DOI": "10.1000/p"' in both
    answer = run("export", "--format", "bibtex,csl,ris,biblatex", "--json").json()
    check_csl(answer["csl_json"])
    assert {name for name in answer if isinstance(answer[name], str)} == {"bibtex", "biblatex", "ris"}
    for bad in ("", "bib", "bibtex,"):
        assert error_of(run("export", "--format", bad, "--json"))["reason"] == "schema"
    assert net.connects() == []


def test_export_of_some(run: Runner, home: Home) -> None:
    """By ref in any spelling, by query, from stdin; what is not there is named and no error."""
    stock(home, P, R)
    stock(home, Q, title="Grid cells")
    result = run("export", f"https://doi.org/{P.upper()}", P, "10.1000/none", "no identifier")
    assert keys_in(result.out) == ["smith2020markov"]
    assert result.rc == 0
    assert "10.1000/none" in result.err
    answer = run("export", P, "10.1000/none", "no identifier", "--json").json()
    assert (answer["count"], answer["missing"]) == (1, ["10.1000/none", "no identifier"])
    assert keys_in(run("export", "--query", "grid").out) == ["smith2020grid"]
    assert len(keys_in(run("export", "-", input=f"{P}\n{Q}\n").out)) == 2
    assert error_of(run("export", P, "--query", "grid", "--json"))["code"] == "INVALID_ARGUMENT"


def test_an_empty_export_is_no_success(run: Runner, home: Home) -> None:
    """RI-01: zero written records."""
    for words in ((), (P,), ("--query", "x")):
        result = run("export", *words)
        assert (result.rc, result.stdout) == (4, b""), result
    assert not home.store.exists()
    stock(home, P)
    for words in ((Q,), ("--query", "nowhere"), (Q, "rubbish")):
        assert error_of(run("export", *words, "--json"))["reason"] == "no_pdf_in_store"
    assert error_of(run("export", "rubbish", "--json"))["code"] == "INVALID_REF"


def test_export_to_a_folder(run: Runner, home: Home, tmp_path: Path) -> None:
    stock(home, P)
    folder = tmp_path / "new" / "folder"
    result = run("export", "--format", "bibtex,csl,ris,biblatex", "--to", folder)
    assert sorted(result.out.split()) == sorted(str(folder / exporter.file) for exporter in EXPORTERS.values())
    assert (folder / "library.bib").read_bytes() == run("export").stdout
    assert json.loads((folder / "library.json").read_bytes())[0]["id"] == "smith2020markov"
    assert run("export", "--format", "ris", "--to", folder, "--json").json()["written"] == [str(folder / "library.ris")]
    assert sorted(path.name for path in folder.iterdir()) == sorted(exporter.file for exporter in EXPORTERS.values())


def test_export_options(run: Runner, home: Home) -> None:
    shelve(home, P, title="Über", authors=(Author("Günther", "A."),))
    text = run("export", "--ascii", "--file-field").out
    assert text.isascii()
    assert r"{G{\"{u}}nther, A.}" in text
    assert f"file = {{:{home.store}/doi_10.1000_p.pdf:application/pdf}}" in text
    assert f"L1  - {home.store}/doi_10.1000_p.pdf" in run("export", "--format", "ris", "--file-field").out


def test_records_that_people_spoilt(run: Runner, home: Home) -> None:
    """A record that is no use is named; keys that are double or odd are written otherwise, with a word."""
    one, two, three = stock(home, P, Q, R)
    one.record_path.write_text("not toml", encoding="utf-8")
    for entry, key in ((two, "same"), (three, "SAME")):
        text = entry.record_path.read_text(encoding="utf-8")
        entry.record_path.write_text(re.sub("(?m)^citekey = .*$", f'citekey = "{key}"', text), encoding="utf-8")
    result = run("export")
    assert (result.rc, keys_in(result.out)) == (0, ["same", "SAMEa"])
    assert "doi_10.1000_p.toml" in result.err
    assert "SAMEa" in result.err
    two.record_path.unlink()
    three.record_path.unlink()
    assert run("export").rc == 4


def test_the_template_is_a_setting(run: Runner, home: Home, world: Any) -> None:
    """For new entries only; what has a key keeps it."""
    stock(home, P)
    assert run("config", "set", "citekey", "{Family}{yy}").rc == 0
    world.paper("10.1371/journal.fake.0000001", title="A title", pdf_url="https://journals.plos.org/fake/1.pdf")
    answer = run("fetch", "10.1371/journal.fake.0000001", "--json").json()
    assert re.fullmatch(r"[A-Z][a-z]+\d\d", answer["citekey"]), answer
    assert set(keys_in(run("export").out)) == {answer["citekey"], "smith2020markov"}
    refused = run("config", "set", "citekey", "{year}", "--json")
    assert (refused.rc, error_of(refused)["reason"]) == (2, "schema")


# ############################################################################
# The tools
# ############################################################################


def test_the_tools_answer(serve: Callable[..., Any], home: Home) -> None:  # noqa: F811 - a fixture
    stock(home, P, Q)
    session = serve()
    answer = session.call("bibtex_export")
    assert (answer["format"], answer["count"], answer["missing"], answer["next_cursor"]) == ("bibtex", 2, [], None)
    assert keys_in(answer["text"]) == ["smith2020markov", "smith2020markova"]
    some = session.call("csl_export", refs=[Q, R])
    assert (some["count"], some["missing"], json.loads(some["text"])[0]["DOI"]) == (1, [R], Q)
    both = session.call("export_bundle", formats=["ris", "csl"], query="markov")
    assert (both["count"], len(both["csl_json"]), both["ris"].count("ER  - ")) == (2, 2, 2)
    assert not {"bibtex", "biblatex", "text", "format"} & set(both)
    assert session.fail("bibtex_export", refs=[R])["code"] == "NOT_FOUND"
    assert session.fail("bibtex_export", refs=[P], query="x")["code"] == "INVALID_ARGUMENT"
    assert session.fail("csl_export", cursor="rubbish")["reason"] == "bad_cursor"
    for formats in ([], ["word"], "ris", None, ["ris", 1]):
        assert session.fail("export_bundle", formats=formats)["code"] == "INVALID_ARGUMENT"
    assert session.fail("bibtex_export", refs=["10.1000/x"] * 1000)["code"] == "INVALID_ARGUMENT"


def test_pages_hold_whole_entries_and_shift_for_nothing(serve: Callable[..., Any], home: Home) -> None:  # noqa: F811 - a fixture
    """Each page is small, each entry comes once, also while entries are added before and behind the cursor."""
    for n in range(120):
        record(home, f"10.1000/{n:03}", f"m{n:03}", title="Long " * 60)
    session = serve()
    found, cursor = [], {}
    while True:
        answer = session.call("bibtex_export", **cursor)
        assert len(json.dumps(answer, ensure_ascii=False).encode()) < 30_000
        assert check_bib(answer["text"].removesuffix("\n")) == answer["count"] > 0
        found += keys_in(answer["text"])
        if not answer["next_cursor"]:
            break
        cursor = {"cursor": answer["next_cursor"]}
        record(home, f"10.1000/a{len(found)}", f"aaa{len(found)}")
        if len(found) < 100:
            record(home, f"10.1000/z{len(found)}", f"zzz{len(found)}")
    assert len(found) == len(set(found))
    assert [key for key in found if key.startswith("m")] == [f"m{n:03}" for n in range(120)]
    assert any(key.startswith("zzz") for key in found)
    assert not any(key.startswith("aaa") for key in found[1:])


def test_a_cursor_goes_on_with_its_own_call_only(serve: Callable[..., Any], home: Home) -> None:  # noqa: F811 - a fixture
    """One of other arguments, or of another tool, would leave out or repeat entries without a word."""
    for n in range(120):
        record(home, f"10.1000/{n}", f"m{n:03}", title="Markov chains " * 60)
    session = serve()
    own = {"formats": ["bibtex", "csl"], "query": "markov"}
    cursors = [
        session.call("list_recent", limit=5)["next_cursor"],
        session.call("bibtex_export")["next_cursor"],
        session.call("export_bundle", **own)["next_cursor"],
        session.call("list_operations")["next_cursor"],
    ]
    assert all(cursors)
    assert session.call("export_bundle", **own, cursor=cursors[2])["ok"]
    for cursor in cursors[:2]:
        assert session.fail("export_bundle", **own, cursor=cursor)["reason"] == "bad_cursor"
    for more in ({"formats": ["csl"], "query": "markov"}, {"formats": ["bibtex", "csl"]}):
        assert session.fail("export_bundle", **more, cursor=cursors[2])["reason"] == "bad_cursor"
    assert session.fail("csl_export", cursor=cursors[1])["reason"] == "bad_cursor"
    assert session.fail("list_operations", query="works", cursor=cursors[3])["reason"] == "bad_cursor"


def test_one_entry_larger_than_a_page(serve: Callable[..., Any], run: Runner, home: Home) -> None:  # noqa: F811 - a fixture
    """AU-04: a tool's answer never is a blob of names; the command writes all of them."""
    stock(home, P, authors=tuple(Author(f"A{n:04}", "Somebody") for n in range(1, 3001)))
    answer = serve().call("bibtex_export")
    assert answer["text"].count(" and ") == 100
    assert answer["text"].count(" and others}") == 1
    assert "3000" in answer["warnings"][0]
    result = run("export")
    assert result.out.count(" and ") == 2999
    assert result.seconds < 10


def test_endless_texts_do_not_burst_a_page() -> None:
    """A record whose every text is as long as it may be: cut, in all formats at once, until an answer holds it."""
    long, people = "\u6f22" * 1000, tuple(Author("\u6f22" * 300 + str(n), "\u5b57" * 300) for n in range(150))
    texts = dict.fromkeys(("title", "container_title", "publisher", "comment", "event", "series", "edition"), long)
    work = doiget.work_from_dict({"doi": P, "abstract": long * 5, **texts})
    entry = entry_of(doiget.replace(work, authors=people))
    page = doiget.ExportPage(tuple(EXPORTERS), PLAIN_EXPORT, 27_500)
    assert page.add(entry)
    answer = page.answer([], None)
    assert len(json.dumps(answer, ensure_ascii=False).encode()) < 30_000
    assert "150 authors" in answer["warnings"][0]
    assert P in answer["bibtex"]
    assert " and others}" in answer["bibtex"]


def test_endless_tags_do_not_burst_a_page(serve: Callable[..., Any], run: Runner, home: Home) -> None:  # noqa: F811 - a fixture
    stock(home, P)
    record = next(home.metadata.glob("*.toml"))
    tags = ", ".join(f'"{"word" * 20}{n}"' for n in range(1500))
    record.write_text(record.read_text().replace("tags = []", f"tags = [{tags}]"))
    answer = serve().call("bibtex_export")
    assert len(answer["text"]) < 10_000
    assert "1500 tags" in answer["warnings"][0]
    assert run("export").out.count("wordword") > 1499
