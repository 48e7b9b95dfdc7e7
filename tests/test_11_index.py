"""The index: it finds what people type, keeps its order, stays current, and nothing that befalls its file matters."""

# ruff: noqa: E501, PT017, RUF001 - tables read better wide; other scripts are the point of some tests
from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import doiget
from doiget import Author, DoigetError, Resolved, Retraction, StoredFile, Work, fold_words, parse_query, parse_ref

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX links and modes")
NO_ROOT = pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write anywhere")
PDF = b"%PDF-1.7\n" + b"x" * 2000


def entries_of(store):
    """Every readable entry, in the order of the keys."""
    return [entry for key in store.keys() if (entry := store.load_key(key))]  # noqa: SIM118 - a store is no dict


class Library:
    """A store with its index; `saw` parses nothing by itself, it tells which records were read."""

    def __init__(self, root: Path, name: str = "papers") -> None:
        self.store = doiget.Store(root / name, doiget.AccessLog(root / "conf" / "access.log"))
        self.cache = root / "cache" / "index"
        self.index = self.fresh()

    def fresh(self) -> doiget.Index:
        """What the next process would have."""
        index = doiget.Index(self.store, self.cache)
        self.store.watcher = index
        return index

    def add(self, ref: str, title: str | None = None, *people: str, pdf: bool = False, tags=(), **fields):
        parsed = parse_ref(ref)
        authors = tuple(doiget.parse_name(name) for name in people)
        doi = parsed.id if parsed.kind is doiget.RefKind.DOI else None
        arxiv = {"arxiv_id": parsed.id} if parsed.kind is doiget.RefKind.ARXIV else {}
        work = Work(title=title, authors=authors, doi=doi, **arxiv, **fields)
        resolved = Resolved(str(parsed), doiget.work_from_dict(doiget.work_to_dict(work)), "crossref")
        if not pdf:
            return self.store.save(resolved, tags=tags)
        with doiget.hold_lock(self.store.lock_path(parsed)), self.store.new_part(parsed) as part:
            part.write(PDF)
            return self.store.save(resolved, StoredFile(part.sha256(), part.size, "x"), tags, part)

    def refs(self, query: str) -> list[str]:
        return [self.store.load_key(key).ref for key in self.index.keys(query)]

    def record(self, ref: str) -> Path:
        return self.store.record_path(doiget.safekey(parse_ref(ref)))


@pytest.fixture
def library(tmp_path):
    return Library(tmp_path)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A store to search in; no test changes it."""
    lib = Library(tmp_path_factory.mktemp("shelf"))
    lib.add("10.1038/nphys1170", "Measured measurement", "Markus Aspelmeyer", year=2009, container_title="Nature Physics",
            type="journal-article", tags=("to read", "optics"), abstract="Quantum states are measured.", pdf=True)  # fmt: skip
    lib.add("10.1000/mueller", "Über die Größe der Straße", "Jörg Müller", "Stanisław Łukasiewicz", year=2019,
            date="2019-05-01", container_title="Zeitschrift", type="book-chapter")  # fmt: skip
    lib.add("10.1000/oe", "Smørrebrød and Ærø", "Søren Kierkegård", date="2020", year=2020, type="journal-article")
    lib.add("10.1000/ml", "深層機械学習入門", "山田太郎", date="2021", year=2021, container_title="情報処理")
    lib.add("10.1000/bert", "BERTによる自然言語処理", "Ann Lee", date="2021-02", year=2021)
    lib.add("10.1000/kr", "한국어의 자연언어처리", date="2018", year=2018)
    lib.add("10.1000/covid", "COVID-19 and why we don't know", "Mary O'Brien", "Li Wei", date="2020", year=2020,
            retraction=Retraction("retracted", "10.1000/notice"))  # fmt: skip
    lib.add("10.1000/notcovid", "The 19 covid cases of don and his tea", "John Smith", date="2020", year=2020,
            retraction=Retraction("expression_of_concern"))  # fmt: skip
    lib.add("arXiv:1706.03762v5", "Attention Is All You Need", "Ashish Vaswani", "Noam Shazeer", date="2017", year=2017,
            type="preprint", abstract="The dominant sequence transduction models")  # fmt: skip
    lib.add(
        "10.1000/channel", "Channel Attention Is All You Need for Video Frame Interpolation", date="2020", year=2020
    )
    lib.add("10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z", "Cortical maps", year=1997, date="1997")
    lib.add("10.1000/none")
    return lib


# ---- what is found ----


@pytest.mark.parametrize(
    ("query", "refs"),
    [
        ("measured", ["10.1038/nphys1170"]),
        ("MEASURE", ["10.1038/nphys1170"]),  # every word may go on
        ("meas meas", ["10.1038/nphys1170"]),
        ("aspelmeyer measurement 2009", ["10.1038/nphys1170"]),
        ("measurement aspelmeyer 2010", []),
        ("nature measured", ["10.1038/nphys1170"]),
        ("quantum states", ["10.1038/nphys1170"]),  # only in the abstract
        # SE-01: identifiers, punctuation, accents
        ("10.1038/nphys1170", ["10.1038/nphys1170"]),
        ("https://doi.org/10.1038%2Fnphys1170", ["10.1038/nphys1170"]),
        ("doi:10.1038/NPHYS1170", ["10.1038/nphys1170"]),
        ("DOI: 10.1038/nphys1170.", ["10.1038/nphys1170"]),
        ("nphys1170", ["10.1038/nphys1170"]),
        ("10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z",
         ["10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z"]),
        ("arXiv:1706.03762", ["arXiv:1706.03762v5"]),
        ("1706.03762v2", ["arXiv:1706.03762v5"]),
        ("https://arxiv.org/abs/1706.03762v5", ["arXiv:1706.03762v5"]),
        ("COVID-19", ["10.1000/covid"]),
        ("don't", ["10.1000/covid"]),
        ("don\u2019t", ["10.1000/covid"]),
        ("o'brien", ["10.1000/covid"]),
        ('"unbalanced', []),
        ('measured "', ["10.1038/nphys1170"]),
        ("Muller", ["10.1000/mueller"]),
        ("müller", ["10.1000/mueller"]),
        ("MU\u0308LLER", ["10.1000/mueller"]),  # decomposed
        ("strasse grosse", ["10.1000/mueller"]),
        ("STRAßE", ["10.1000/mueller"]),
        ("lukasiewicz", ["10.1000/mueller"]),
        ("Łukasiewicz", ["10.1000/mueller"]),
        ("smorrebrod aero", ["10.1000/oe"]),
        ("Kierkegaard", []),
        ("kierkegard soren", ["10.1000/oe"]),
        # names as people write them
        ("J Smith", ["10.1000/notcovid"]),
        ("author:smith", ["10.1000/notcovid"]),
        ('author:"Smith, John"', ["10.1000/notcovid"]),
        ('author:"John Smith"', ["10.1000/notcovid"]),
        ('"Vaswani Noam"', []),  # a phrase does not reach from one person to the next
        # CJK: any substring, single characters, mixed words
        ("機械学習", ["10.1000/ml"]),
        ("学", ["10.1000/ml"]),
        ("械学", ["10.1000/ml"]),
        ("習機", []),
        ("機械学習 入門", ["10.1000/ml"]),
        ("深層機械学習入門", ["10.1000/ml"]),
        ("山田", ["10.1000/ml"]),
        ("BERTによる", ["10.1000/bert"]),
        ("bert 言語", ["10.1000/bert"]),
        ("ＢＥＲＴ", ["10.1000/bert"]),  # full width
        ("언어", ["10.1000/kr"]),
        ("venue:情報", ["10.1000/ml"]),
        # phrases and negation
        ('"measured measurement"', ["10.1038/nphys1170"]),
        ('"measurement measured"', []),
        ('"measured measure"', []),  # quoted words are whole
        ("“measured measurement”", ["10.1038/nphys1170"]),
        ("covid -cases", ["10.1000/covid"]),
        ("covid -author:smith", ["10.1000/covid"]),
        ('covid -"19 covid"', ["10.1000/covid"]),
        ("-covid measured", ["10.1038/nphys1170"]),
        # fields
        ("title:measured", ["10.1038/nphys1170"]),
        ("title:quantum", []),
        ("abstract:quantum", ["10.1038/nphys1170"]),
        ("author: aspelmeyer", ["10.1038/nphys1170"]),
        ("AUTHOR:Aspelmeyer", ["10.1038/nphys1170"]),
        ("author:measured", []),
        ("venue:nature", ["10.1038/nphys1170"]),
        ("journal:physics", ["10.1038/nphys1170"]),
        ("tag:optics", ["10.1038/nphys1170"]),
        ('tag:"to read"', ["10.1038/nphys1170"]),
        ('tag:"read optics"', []),
        ("tag:to-read", ["10.1038/nphys1170"]),
        ("type:book-chapter", ["10.1000/mueller"]),
        ("type:book", ["10.1000/mueller"]),
        ("type:chapter", ["10.1000/mueller"]),
        ("year:2019", ["10.1000/mueller"]),
        ("year: 2019", ["10.1000/mueller"]),
        ("year:2018..2019", ["10.1000/mueller", "10.1000/kr"]),
        ("year:2019-2018", ["10.1000/mueller", "10.1000/kr"]),
        ("year:..1997", ["10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z"]),
        ("covid year:2021..", []),
        ("attention -year:2020", ["arXiv:1706.03762v5"]),
        ("has:pdf", ["10.1038/nphys1170"]),
        ("covid has:nopdf -retracted:yes", ["10.1000/notcovid"]),
        ("measured -has:pdf", []),
        ("retracted:yes", ["10.1000/covid"]),
        ("covid retracted:no", ["10.1000/notcovid"]),
        ("citekey:aspelmeyer2009measured", ["10.1038/nphys1170"]),
        # what only looks like a field is text
        ("why:we", ["10.1000/covid"]),
        ("covid-19: and", ["10.1000/covid"]),
        ("RETRACTED: covid", []),
        ("foo:", []),
    ],
)  # fmt: skip
def test_a_query_finds(shelf, query, refs):
    assert sorted(shelf.refs(query)) == sorted(refs)
    assert shelf.index.trouble == ""


@pytest.mark.parametrize(
    "query",
    ["", " ", "!?", '""', "-", ":", "...", "\u200b", "(", "year:abc", "year:20", "year:", "year:2019..abc", "year:..",
     "has:cake", "has:", "retracted:maybe", "author:", "author:!", "year:20192020", "title:", "\x00", "year:99999"],
)  # fmt: skip
def test_a_query_that_cannot_be_is_refused(shelf, query):
    with pytest.raises(DoigetError) as caught:
        shelf.index.keys(query)
    assert caught.value.reason == "bad_query"
    if query in {"year:abc", "has:cake", "retracted:maybe"}:
        assert {"year:abc": "2019..2021", "has:cake": "nopdf", "retracted:maybe": "yes"}[query] in caught.value.message


NASTY = "\"*^()-+:{}[]~&|!\\'%_;,./<>?=@#$ \t\n"
SHARDS = ["author:", "year:", "year:2019..", "-", '"', "AND", "OR", "NOT", "NEAR(", "title:(", "has:pdf", "{title}:", "*",
          "10.1038/nphys1170", "機械", "\ud800", "\x00", "ﬁ", "İ", "ß", "x" * 60, "NULL", "rowid", "words:", "col : x"]  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(max_size=60), st.text(NASTY + "aA1é機", max_size=40),
                 st.lists(st.sampled_from(SHARDS), max_size=8).map("".join),
                 st.lists(st.sampled_from(SHARDS), max_size=8).map(" ".join)))  # fmt: skip
def test_any_text_is_safe_and_both_ways_of_finding_agree(shelf, text):
    """FTS5 and the scan that stands in for it are held against each other, in matches, order and paging."""
    try:
        wanted = parse_query(text)
    except DoigetError as error:
        assert error.reason == "bad_query"
        return
    hits = shelf.index.search(text)
    assert shelf.index.trouble == ""
    total, places = shelf.index._scanned(wanted, (0, -1))
    assert [key for key, _ in hits.page] == [key for _, _, key in places]
    assert hits.total == total == len(places)


def every_key(index):
    return sorted(key for _, key in index.newest(10**6, None)[1])


@pytest.mark.parametrize("query", ["a " * 250, "author:a " * 60, "機" * 500, "-a" * 200, "x" * 500, "year:2019 " * 50])
def test_long_queries_are_answered(shelf, query):
    assert isinstance(shelf.index.keys(query), list)
    assert shelf.index.trouble == ""


@given(st.text(max_size=80))
def test_folding_is_stable(text):
    folded = fold_words(text)
    assert fold_words(folded) == folded
    assert '"' not in folded
    assert folded == " ".join(folded.split())


def test_folding_ignores_form_case_and_accents():
    import unicodedata

    for text in (
        "Müller",
        "İstanbul",
        "ŁÓDŹ",
        "Ærøskøbing",
        "Nguyễn",
        "Þórr",
        "Ελλάς",
        "Йод",
        "ﬁne",
        "x²",
        "ガギグ",
        "हिन्दी",
    ):
        forms = {fold_words(unicodedata.normalize(form, text)) for form in ("NFC", "NFD", "NFKC", "NFKD")}
        assert len(forms) == 1, text
        assert fold_words(text.upper()) == fold_words(text.lower())
    assert fold_words("ガ") != fold_words("カ")


def test_the_2999th_author_is_found(library):
    """AU-04: all authors of a record are searched, however many."""
    people = tuple(Author(family=f"A{number:04}", given=f"Given{number}") for number in range(1, 3001))
    library.store.save(Resolved("10.1000/many", Work(title="Many", authors=people), "crossref"))
    library.add("10.1000/few", "Few", "A. Nother")
    start = time.monotonic()
    assert library.refs("a2999") == library.refs("author:A3000") == ["10.1000/many"]
    assert time.monotonic() - start < 5


def test_records_a_person_wrote_are_searched_too(library):
    library.add("10.1000/x", "A title")
    path = library.record("10.1000/hand")
    path.write_text(
        'ref = "10.1000/hand"\ntags = "single"\n[work]\ntitle = 5\nyear = "1999"\n'
        'authors = ["Jane Doe", {family = "Roe"}, 7]\nabstract = ["An abstract"]\n[work.unknown]\na = 1\n'
    )
    for query in ("doe", "jane", "roe", "tag:single", "title:5", "year:1999", "abstract"):
        assert library.refs(query) == ["10.1000/hand"], query


# ---- order and paging ----


def test_titles_come_first_then_people_and_tags_then_venues_then_abstracts(library):
    library.add("10.1000/e", "Other words", abstract="The whale is large.")
    library.add("10.1000/d", "Other words", container_title="Journal of the Whale")
    library.add("10.1000/c2", "Other words", "Ann Whalestone")
    library.add("10.1000/c1", "Other words", tags=("whale",))
    library.add("10.1000/b", "On the whale and on many other animals")
    library.add("10.1000/a", "The whale")
    assert library.refs("whale") == [f"10.1000/{name}" for name in ("a", "b", "c1", "c2", "d", "e")]


def test_a_title_typed_whole_comes_first(shelf):
    assert shelf.refs("attention is all you need")[0] == "arXiv:1706.03762v5"


def pages(index, query, limit, each=lambda: None):
    """All pages of a search, with something happening between them."""
    cursor, found, totals = "", [], []
    while True:
        hits = index.search(query, limit, cursor)
        found += [key for key, _ in hits.page]
        totals.append(hits.total)
        if not hits.has_more:
            return found, totals
        cursor = hits.page[-1][1]
        each()


def test_pages_hold_while_entries_come_and_go(library):
    """No entry twice and none skipped."""
    for number in range(30):
        where = {"abstract": "whales"} if number % 3 else {}
        library.add(f"10.1000/{number}", f"{'whale ' * (number % 3 == 0)}{'word ' * (number % 5)}title", **where)
    everything = set(library.index.keys("whal"))
    assert pages(library.index, "whal", 7)[0] == library.index.keys("whal")
    steps = iter(range(100))

    def disturb():
        number = next(steps)
        library.add(f"10.1000/new{number}", "whale " * (1 + number % 4))
        library.store.remove(parse_ref(f"10.1000/{number}"))
        library.index = library.fresh()
        library.index.rebuild() if number == 2 else None

    found, totals = pages(library.index, "whal", 4, disturb)
    assert len(found) == len(set(found))
    removed = {doiget.safekey(parse_ref(f"10.1000/{number}")) for number in range(next(steps))}
    assert everything - removed <= set(found)
    assert set(totals) == {30}


def test_a_cursor_goes_with_its_query(shelf):
    cursor = shelf.index.search("2020", 1).page[0][1]
    assert shelf.index.search("2020", 1, cursor).page
    for query, other in (
        ("2021", cursor),
        ("2020", cursor[:-1]),
        ("2020", "0"),
        ("2020", "x" * 500),
        ("2020", "9.9.deadbeef"),
    ):
        with pytest.raises(DoigetError) as caught:
            shelf.index.search(query, 1, other)
        assert caught.value.reason == "bad_cursor"


# ---- staying current ----


@pytest.fixture
def reads(monkeypatch):
    """The keys of the records that the index reads."""
    read, real = [], doiget.load_index_row
    monkeypatch.setattr(doiget, "load_index_row", lambda store, key: read.append(key) or real(store, key))
    return read


def settle():
    time.sleep(3 * doiget.TICK_NS / 1e9)


def test_only_what_changed_is_read_again(library, reads):
    for number in range(20):
        library.add(f"10.1000/{number}", f"Title {number}")
    settle()
    assert len(library.index.keys("title")) == 20
    assert sorted(set(reads)) == library.store.keys()
    reads.clear()
    assert len(library.fresh().keys("title")) == 20
    assert reads == []
    record = library.record("10.1000/7")
    record.write_text(record.read_text().replace("Title 7", "Zebra"))  # in place: the folder stays as it is
    (library.store.metadata / "doi_10.1000_8.toml").unlink()
    assert (library.refs("zebra"), library.refs("8")) == (["10.1000/7"], [])
    assert set(reads) == {"doi_10.1000_7", "doi_10.1000_8"}


def test_a_big_store_is_not_looked_over_for_what_doiget_changed(library, reads, monkeypatch):
    """What we change is read again at once, as long as nobody else was at work."""
    monkeypatch.setattr(doiget, "SMALL_STORE", 3)
    for number in range(10):
        library.add(f"10.1000/{number}", "Title")
    every_key(library.index)
    looks, real = [], doiget.Index._differing
    monkeypatch.setattr(doiget.Index, "_differing", lambda index, db: looks.append(1) or real(index, db))
    reads.clear()
    library.add("10.1000/new", "Whale")
    entry = library.store.load(parse_ref("10.1000/3"))
    library.store.save(Resolved(entry.ref, entry.work, "store"), tags=["whale"])
    library.store.remove(parse_ref("10.1000/4"))
    assert sorted(library.refs("whale")) == ["10.1000/3", "10.1000/new"]
    assert len(every_key(library.index)) == 10
    assert (looks, set(reads)) == ([], {"doi_10.1000_new", "doi_10.1000_3", "doi_10.1000_4"})
    reads.clear()
    library.index = library.fresh()  # the next process finds it done
    every_key(library.index)
    assert (looks, reads) == ([], [])
    other = library.record("10.1000/5")
    text = other.read_text().replace("Title", "Whale song")
    (temporary := other.with_name("draft")).write_text(text)
    temporary.replace(other)  # an editor's way: the folder's time moves, and no note says why
    assert sorted(library.refs("whale song")) == ["10.1000/5"]
    assert looks == [1]


def test_an_edit_in_place_of_a_big_store_is_found_within_a_minute(library, monkeypatch):
    monkeypatch.setattr(doiget, "SMALL_STORE", 1)
    for number in range(3):
        library.add(f"10.1000/{number}", "Title")
    settle()
    every_key(library.index)
    record = library.record("10.1000/1")
    record.write_text(record.read_text().replace("Title", "Whale"))
    assert library.refs("whale") == []
    monkeypatch.setattr(doiget, "CHECK_S", 0.0)
    assert library.refs("whale") == ["10.1000/1"]


@pytest.fixture
def parsed(library, monkeypatch):
    """How many records were parsed; the index has read all of a store that counts as big."""
    for number in range(4):
        library.add(f"10.1000/{number}", f"Über {number}", "Ann Lee", pdf=number == 0, tags=("a, b",))
    record = library.record("10.1000/3")
    record.write_text(record.read_text().replace("[work]", "[own]\nday = 2026-11-03\n\n[work]"))
    settle()
    library.refs("uber")
    monkeypatch.setattr(doiget, "SMALL_STORE", 1)
    read, real = [], doiget.parse_toml
    monkeypatch.setattr(doiget, "parse_toml", lambda data: read.append(data) or real(data))
    return read


def many(library):
    """All entries as an export gets them; they must be what the records say."""
    found = list(library.store.load_keys(library.store.keys()))
    assert found == entries_of(library.store)
    return found


def test_many_records_are_not_parsed_again(library, parsed):
    """Only what JSON cannot say: TOML has dates."""
    assert len(many(library)) == 4
    assert len(parsed) == 4 + 1


@pytest.mark.usefixtures("parsed")
def test_an_edit_in_place_is_in_the_next_export(library):
    record = library.record("10.1000/1")
    record.write_text(record.read_text().replace("Über 1", "Zebra"))
    (library.store.metadata / "doi_10.1000_2.toml").write_text("damaged")
    assert [entry.work.title for entry in many(library)] == ["Über 0", "Zebra", "Über 3"]
    assert "doi_10.1000_2.toml" in library.store.problems


@pytest.mark.usefixtures("parsed")
def test_a_damaged_copy_of_a_record_costs_only_time(library):
    with contextlib.closing(sqlite3.connect(library.index.path)) as db, db:
        db.execute("UPDATE words SET record = substr(record, 1, 20) || 'x' || substr(record, 22)")
    assert len(many(library)) == 4


def test_changes_that_nobody_noted_cost_only_time(library, monkeypatch):
    """Another process was faster, or a change was not taken in at once: then all records are looked at."""
    monkeypatch.setattr(doiget, "SMALL_STORE", 1)
    for number in range(3):
        library.add(f"10.1000/{number}", "Title")
    every_key(library.index)
    other = Library(library.store.root.parent)
    other.store.watcher = None
    other.add("10.1000/a", "Whale")
    library.add("10.1000/b", "Whale")
    assert sorted(library.refs("whale")) == ["10.1000/a", "10.1000/b"]
    monkeypatch.setattr(library.index, "_ask", lambda *_, **__: None)
    library.add("10.1000/c", "Whale")
    monkeypatch.undo()
    assert len(library.refs("whale")) == 3


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=8))
def test_whatever_happens_the_index_agrees_with_the_records(tmp_path_factory, steps):
    """Saves, removals, restorations, edits in place, edits by renaming, deletions, other processes, in any order."""
    library = Library(tmp_path_factory.mktemp("any"))
    library.add("10.1000/0", "whale")
    for step, number in steps:
        ref, path = f"10.1000/{number}", library.record(f"10.1000/{number}")
        try:
            if step == 0:
                library.add(ref, f"whale {number}")
            elif step == 1:
                library.store.remove(parse_ref(ref))
            elif step == 2:
                library.store.restore(parse_ref(ref))
            elif step == 3 and path.exists():
                path.write_text(path.read_text().replace("whale", "whale edited"))
            elif step == 4 and path.exists():
                path.unlink()
            else:
                library.index = library.fresh()
        except DoigetError as error:
            assert error.reason in {"no_pdf_in_store", "schema"}
        found = {key: library.store.load_key(key) for key in library.index.keys("whale")}
        there = {entry.record_path.stem: entry for entry in entries_of(library.store)}
        assert found == there
        edited = sorted(key for key, entry in there.items() if "edited" in (entry.work.title or ""))
        assert sorted(library.index.keys("title:edited")) == edited


def test_bad_records_are_named_and_their_citekeys_stay_taken(library):
    entry = library.add("10.1000/a", "Whale song", "Ann Lee", year=2020, date="2020")
    library.add("10.1000/b", "Whale")
    library.record("10.1000/a").write_text(library.record("10.1000/a").read_text() + "\nbroken = [")
    assert library.refs("whale") == ["10.1000/b"]
    assert "not valid TOML" in library.store.problems["doi_10.1000_a.toml"]
    assert library.index.rebuild() == 1
    assert library.add("10.1000/c", "Whale song", "Ann Lee", year=2020, date="2020").citekey == f"{entry.citekey}a"
    assert [e.ref for e in library.store.recent(10)[0]] == ["10.1000/c", "10.1000/b"]
    assert library.store.recent(10)[1] == 2
    text = library.record("10.1000/a").read_text()
    library.record("10.1000/a").write_text(text.replace("\nbroken = [", ""))
    assert len(library.refs("whale")) == 3
    assert library.store.problems == {}


@posix
def test_links_and_foreign_records_are_no_entries(library, tmp_path):
    library.add("10.1000/a", "Whale")
    text = library.record("10.1000/a").read_text()
    (tmp_path / "elsewhere.toml").write_text(text)
    library.record("10.1000/link").symlink_to(tmp_path / "elsewhere.toml")
    library.record("10.1000/other").write_text(text)
    (library.store.metadata / "Notes.toml").write_text('title = "whale"')
    assert library.refs("whale") == ["10.1000/a"]
    assert set(library.store.problems) == {"doi_10.1000_link.toml", "doi_10.1000_other.toml"}


def test_pdfs_come_and_go(library):
    entry = library.add("10.1000/a", "Whale", pdf=True)
    library.add("10.1000/b", "Whale")
    assert library.refs("has:pdf") == ["10.1000/a"]
    entry.pdf_path.unlink()
    assert (library.refs("has:pdf"), len(library.refs("has:nopdf"))) == ([], 2)
    entry.pdf_path.write_bytes(PDF)
    (library.store.root / "doi_10.1000_b.pdf").write_bytes(PDF)  # which its record does not know
    assert (library.refs("whale has:pdf"), library.refs("-has:pdf")) == (["10.1000/a"], ["10.1000/b"])


def test_citekeys_are_told_without_reading_the_records(library, monkeypatch):
    monkeypatch.setattr(doiget, "SMALL_STORE", 2)
    for number in range(8):
        library.add(f"10.1000/{number}", "Whale song", "Ann Lee", year=2020, date="2020")
    every_key(library.index)
    monkeypatch.setattr(doiget, "_load_head", lambda *_: pytest.fail("a record was read for its citekey"))
    made = [library.add(f"10.1000/x{n}", "Whale song", "Ann Lee", year=2020, date="2020").citekey for n in range(4)]
    assert made == [f"lee2020whale{letter}" for letter in "hijk"]
    monkeypatch.undo()
    assert library.store.citekeys() == {e.record_path.stem: e.citekey for e in entries_of(library.store)}


def test_without_an_index_citekeys_come_from_the_records(library, monkeypatch):
    """Building one for a big store is not what a fetch should wait for."""
    monkeypatch.setattr(doiget, "FEW", 2)
    library.store.watcher = None
    for number in range(8):
        library.add(f"10.1000/{number}", "Whale song", "Ann Lee", year=2020, date="2020")
    library.fresh()
    assert library.add("10.1000/x", "Whale song", "Ann Lee", year=2020, date="2020").citekey == "lee2020whaleh"
    assert library.index.citekeys("lee") is None
    assert library.refs("whale")


@posix
def test_processes_side_by_side(tmp_path):
    """Writers, searchers and rebuilders at once: unique citekeys, no error, and what is there is found."""
    import multiprocessing

    def work(name):
        library = Library(tmp_path)
        for number in range(8):
            library.add(f"10.1000/{name}{number}", "Whale song", "Ann Lee", year=2020, date="2020")
            assert library.index.rebuild() > number
            found = library.index.search("whale", 5)
            assert f"doi_10.1000_{name}{number}" in library.index.keys("whale")
            assert found.total > number
            assert library.index.trouble == ""

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(name,)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    library = Library(tmp_path)
    assert len(library.index.keys("whale")) == 24
    assert len(set(library.store.citekeys().values())) == 24


# ---- its file ----


def index_file(library):
    (found,) = library.cache.glob("*.sqlite")
    return found


def damage(path, how):
    if how == "garbage":
        path.write_bytes(os.urandom(9000))
    elif how == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "middle":
        body = bytearray(path.read_bytes())
        body[4096:] = os.urandom(len(body) - 4096)
        path.write_bytes(body)
    elif how == "newer":
        with sqlite3.connect(path) as db:
            db.execute(f"PRAGMA user_version = {doiget.INDEX_VERSION + 1}")
    elif how == "tables":
        with sqlite3.connect(path) as db:
            db.execute("DROP TABLE entry")
    elif how == "foreign":
        path.unlink()
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE entry (mine)")
            db.execute("PRAGMA user_version = 3")
    elif how == "wal":
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA journal_mode = WAL")


@pytest.mark.parametrize("how", ["garbage", "cut", "empty", "middle", "newer", "tables", "foreign", "wal"])
def test_whatever_befell_the_file_it_is_made_anew(library, how):
    for number in range(5):
        library.add(f"10.1000/{number}", "Whale")
    assert len(library.refs("whale")) == 5
    library.index._db.close()
    damage(index_file(library), how)
    assert isinstance(library.fresh().state()[1], str)
    library.index = library.fresh()
    assert len(library.refs("whale")) == 5
    assert library.index.trouble == ""
    with sqlite3.connect(index_file(library)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone()[0] != "wal"
        assert db.execute("SELECT count(*) FROM entry").fetchone() == (5,)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_flipped_byte_of_the_file_is_an_error(shelf, tmp_path_factory, data):
    cache = tmp_path_factory.mktemp("flip")
    first = doiget.Index(shelf.store, cache)
    keys = every_key(first)
    first._db.close()
    (path,) = cache.glob("*.sqlite")
    body = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(body)
    second = doiget.Index(shelf.store, cache)
    for query in ("measured", "機械", "has:pdf", "year:2020", "-covid"):
        assert isinstance(second.keys(query), list)
    second.state()
    assert second.rebuild() == len(keys)
    assert every_key(second) == keys


@posix
def test_a_link_in_the_place_of_the_file_is_not_followed(library, tmp_path):
    library.add("10.1000/a", "Whale")
    every_key(library.index)
    path = index_file(library)
    path.unlink()
    text, database = tmp_path / "precious", tmp_path / "precious.db"
    text.write_bytes(b"mine")
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute("CREATE TABLE mine (a)")
    for precious in (text, database):
        before = precious.read_bytes()
        path.unlink(missing_ok=True)
        path.symlink_to(precious)
        library.index = library.fresh()
        assert library.refs("whale") == ["10.1000/a"]
        assert precious.read_bytes() == before
        assert not path.is_symlink()


def test_where_the_cache_cannot_be_written_it_is_kept_in_memory(library):
    library.add("10.1000/a", "Whale", pdf=True)
    library.cache.parent.mkdir(parents=True, exist_ok=True)
    import shutil

    shutil.rmtree(library.cache)
    library.cache.write_bytes(b"a file in the way")
    library.index = library.fresh()
    assert library.index.state()[0] is False
    assert library.refs("whale has:pdf") == ["10.1000/a"]
    assert "in memory" in library.index.trouble
    library.add("10.1000/b", "Whale")
    assert len(library.refs("whale")) == 2
    assert library.cache.read_bytes() == b"a file in the way"


def test_a_folder_in_the_place_of_the_file(library):
    library.add("10.1000/a", "Whale")
    library.index.path.unlink()
    library.index.path.mkdir()
    library.index = library.fresh()
    assert library.refs("whale") == ["10.1000/a"]
    assert "in memory" in library.index.trouble


def test_while_another_process_keeps_the_file_it_is_kept_in_memory(library, monkeypatch):
    monkeypatch.setattr(doiget, "BUSY_S", 0.1)
    library.add("10.1000/a", "Whale")
    every_key(library.index)
    with sqlite3.connect(index_file(library), isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        library.index = library.fresh()
        assert library.refs("whale") == ["10.1000/a"]
        assert "busy" in library.index.trouble
        other.execute("ROLLBACK")
    library.index = library.fresh()
    assert library.refs("whale") == ["10.1000/a"]
    assert library.index.trouble == ""


@pytest.mark.parametrize("missing", ["module", "fts5"])
def test_without_fts5_every_record_is_read(library, monkeypatch, missing):
    for number in range(4):
        library.add(f"10.1000/{number}", "Whale song" if number else "Whale", tags=("x",), year=2019, date="2019")
    index_file(library).unlink()
    if missing == "module":
        monkeypatch.setitem(sys.modules, "sqlite3", None)
    else:
        monkeypatch.setattr(doiget, "_SCHEMA", doiget._SCHEMA.replace("USING fts5", "USING fts6"))
    library.index = library.fresh()
    assert library.refs("whal year:2019 -song") == ["10.1000/0"]
    assert "reads all records" in library.index.trouble
    assert len(pages(library.index, "tag:x", 2)[0]) == 4
    assert library.index.rebuild() == 4
    assert library.store.recent(2)[1] == 4
    assert len(library.store.citekeys()) == 4
    assert library.add("10.1000/0b", "Whale", year=2019, date="2019").citekey == "anon2019whaled"
    assert library.index.state()[0] is False


@posix
@NO_ROOT
def test_a_store_that_cannot_be_read_is_said_to_be_so(library):
    library.add("10.1000/a", "Whale")
    every_key(library.index)
    library.store.metadata.chmod(0)
    try:
        with pytest.raises(DoigetError) as caught:
            library.fresh().keys("whale")
        assert caught.value.code is doiget.Code.STORE_ERROR
    finally:
        library.store.metadata.chmod(0o755)


def test_looking_makes_nothing(library):
    assert library.index.newest(9, None) is None
    assert library.index.search("x").total == 0
    assert library.index.rebuild() == 0
    assert library.index.state() == (True, "none yet: the first search makes it")
    assert not library.cache.exists()
    assert not library.store.root.exists()


def test_a_thread_may_ask_too(library):
    library.add("10.1000/a", "Whale")
    every_key(library.index)
    found = []
    thread = threading.Thread(target=lambda: found.extend(library.index.keys("whale")))
    thread.start()
    thread.join()
    assert found == ["doi_10.1000_a"]


# ---- on the command line and as tools ----


def put(home, ref, title, **work):
    """Write a record as doiget does."""
    metadata = home.metadata
    metadata.mkdir(parents=True, exist_ok=True)
    key = doiget.safekey(parse_ref(ref))
    head = {
        "schema_version": "1.0",
        "ref": ref,
        "citekey": key,
        "source": "crossref",
        "added_at": "2026-11-30T00:00:00.000Z",
    }
    (metadata / f"{key}.toml").write_bytes(doiget.render_toml({**head, "tags": [], "work": {"title": title, **work}}))


def test_search_on_the_command_line(run, home):
    put(home, "10.1000/a", "深層機械学習入門", authors=[{"family": "Müller"}])
    put(home, "10.1000/b", "Why we don't", year=2019)
    answer = run("search", "機械学習", "muller", "--json").json()
    assert [row["ref"] for row in answer["matches"]] == ["10.1000/a"]
    assert (answer["total"], answer["next_cursor"], answer["warnings"]) == (1, None, [])
    assert run("search", '"unbalanced', "--json").json()["total"] == 0
    assert run("search", "don't", "year:2018..", "--json").json()["total"] == 1
    assert run("search", "--json", "--", "-don't").json()["matches"][0]["ref"] == "10.1000/a"
    refused = run("search", "year:soon", "--json")
    assert (refused.rc, refused.json()["error"]["reason"]) == (2, "bad_query")
    first = run("search", "1000", "--limit", "1", "--json").json()
    second = run("search", "1000", "--limit", "1", "--cursor", first["next_cursor"], "--json").json()
    assert {first["matches"][0]["ref"], second["matches"][0]["ref"]} == {"10.1000/a", "10.1000/b"}
    assert second["next_cursor"] is None
    assert run("search", "title", "--cursor", first["next_cursor"], "--json").json()["error"]["reason"] == "bad_cursor"
    assert run("search", "nothing-of-it").out == "Nothing found.\n"
    assert {path.suffix for path in (home.cache / "index").iterdir()} == {".sqlite", ".sqlite-journal"}
    assert sorted(path.name for path in home.metadata.iterdir()) == ["doi_10.1000_a.toml", "doi_10.1000_b.toml"]


@posix
def test_a_read_only_store_is_searched(run, home):
    put(home, "10.1000/a", "Whale")
    for folder in (home.metadata, home.store):
        folder.chmod(0o555)
    try:
        assert run("search", "whale", "--json").json()["total"] == 1
        assert run("recent", "--json").json()["total"] == 1
        assert [path.name for path in home.store.iterdir()] == [".metadata"]
        assert [path.name for path in home.metadata.iterdir()] == ["doi_10.1000_a.toml"]
    finally:
        for folder in (home.store, home.metadata):
            folder.chmod(0o755)


def test_a_cache_that_cannot_be_written_is_said_so(run, home):
    put(home, "10.1000/a", "Whale")
    home.cache.parent.mkdir(parents=True, exist_ok=True)
    home.cache.write_bytes(b"")
    result = run("search", "whale", "--json")
    assert (result.rc, result.json()["total"]) == (0, 1)
    assert "in memory" in result.json()["warnings"][0]
    assert "in memory" in run("search", "whale").err
    health = run("doctor", "--offline", "--json").json()
    (check,) = (check for check in health["checks"] if check["name"] == "index")
    assert check["status"] == "warning"
    assert "in memory" in health["index"]


def test_doctor_tells_how_the_index_stands(run, home):
    def index():
        answer = run("doctor", "--offline", "--json").json()
        (check,) = (check for check in answer["checks"] if check["name"] == "index")
        return check["status"], answer["index"]

    assert index() == ("ok", "none yet: the first search makes it")
    put(home, "10.1000/a", "Whale")
    assert index()[1].startswith("none yet")
    run("search", "whale")
    assert index() == ("ok", "ok: 1 entries")
    put(home, "10.1000/b", "Whale")
    assert index() == ("ok", "ok: 1 entries; the next search takes in what has changed")
    (path,) = (home.cache / "index").glob("*.sqlite")
    path.write_bytes(b"rubbish" * 2000)
    status, text = index()
    assert status == "warning"
    assert "anew" in text
    assert path.read_bytes().startswith(b"rubbish")


def test_reindex_counts_and_names_problems(run, home):
    assert run("reindex", "--json").json()["entries"] == 0
    put(home, "10.1000/a", "Whale")
    put(home, "10.1000/b", "Whale")
    (home.metadata / "doi_10.1000_b.toml").write_text("ref = ")
    answer = run("reindex", "--json").json()
    assert (answer["entries"], len(answer["problems"])) == (1, 1)
    assert answer["problems"][0]["record"] == "doi_10.1000_b.toml"
    assert Path(answer["path"]).is_file()
    shown = run("reindex")
    assert "1 entries" in shown.out
    assert "doi_10.1000_b.toml" in shown.out
    assert run("search", "whale", "--json").json()["total"] == 1


def test_tags(run, home):
    put(home, "10.1000/a", "Whale")
    assert run("tag", "10.1000/a").out == "(no tags)\n"
    assert run("tag", "10.1000/a", "to read", "physics,Ocean", "--json").json()["tags"] == [
        "to read",
        "physics",
        "Ocean",
    ]
    assert run("search", 'tag:"to read"', "--json").json()["total"] == 1
    assert run("tag", "https://doi.org/10.1000/A", "PHYSICS").out == "to read, PHYSICS, Ocean\n"
    assert run("tag", "10.1000/a", "new", "--remove", "ocean", "TO READ", "none").out == "PHYSICS, new\n"
    assert run("search", "tag:ocean", "--json").json()["total"] == 0
    assert run("info", "10.1000/a", "--json").json()["entry"]["tags"] == ["PHYSICS", "new"]
    missing = run("tag", "10.1000/none", "x", "--json")
    assert (missing.rc, missing.json()["error"]["reason"]) == (4, "no_pdf_in_store")
    assert run("tag", "rubbish", "x").rc == 3


def test_long_answers_are_cut_between_entries(run, home):
    people = [{"family": "F" * 250, "given": "G" * 250} for _ in range(3)]
    for number in range(60):
        put(home, f"10.1000/{number}", "whale " * 150, authors=people, container_title="J" * 900)
    refs, cursor = [], []
    while True:
        result = run("search", "whale", "--limit", "100", "--json", *cursor)
        assert len(result.stdout) < 57_000
        answer = result.json()
        refs += [row["ref"] for row in answer["matches"]]
        if answer["next_cursor"] is None:
            break
        cursor = ["--cursor", answer["next_cursor"]]
    assert len(refs) == len(set(refs)) == 60


def test_an_entry_known_by_its_pmid_is_found_without_reading_all(run, home):
    for number in range(5):
        put(home, f"10.1000/{number}", "Whale", pmid=str(5550000 + number), pmcid=f"PMC{7770000 + number}")
    assert run("info", "pmid:5550003", "--json").json()["entry"]["ref"] == "10.1000/3"
    assert run("info", "PMC7770004", "--json").json()["entry"]["ref"] == "10.1000/4"
    assert run("info", "pmid:10003", "--json").json()["entry"] is None


def test_search_as_a_tool(run, home):
    """The index lives on in a server: what others write meanwhile is found."""
    put(home, "10.1000/a", "Whale")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    server = run.spawn("serve", "--offline")

    def ask(number, method, params):
        server.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
        )
        server.stdin.flush()
        return json.loads(server.stdout.readline())["result"]

    ask(1, "initialize", hello)
    server.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def search(query, **more):
        params = {"name": "doiget_search_local", "arguments": {"query": query, **more}}
        return ask(2, "tools/call", params)["structuredContent"]

    assert search("whale")["total"] == 1
    put(home, "10.1000/b", "Whale")
    assert search("whale")["total"] == 2
    assert run("tag", "10.1000/b", "ocean").rc == 0
    assert search("tag:ocean has:nopdf")["matches"][0]["tags"] == ["ocean"]
    assert run("reindex").rc == 0
    assert search("whale")["total"] == 2
    assert search("year:abc")["error"]["reason"] == "bad_query"
    server.stdin.close()
    assert server.wait(10) == 0


def test_looking_imports_no_sqlite(run, home):
    """`--help` and `info` start quickly."""
    put(home, "10.1000/a", "Whale")
    for words in (["--help"], ["info", "10.1000/a"]):
        command = [sys.executable, "-X", "importtime", str(run.pyz), *words]
        done = subprocess.run(command, env=run.env(), capture_output=True, text=True, check=True)
        assert "sqlite3" not in done.stderr
