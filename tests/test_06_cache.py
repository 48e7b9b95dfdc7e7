"""The resolver's cache: what is kept, for how long, and that nothing in its folder can hurt."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import doiget
from doiget import Author, Resolved, Work, parse_ref

NOW = 1_800_000_000.0
DAY = 86400
REF = parse_ref("10.1103/physrevlett.130.200601")
WORK = Work(
    type="journal-article", title='On ‘quotes’ "and" \\ and π', authors=(Author(family="Łukasiewicz", given="J."),),  # noqa: RUF001
    date="2023-05-01", year=2023, doi="10.1103/physrevlett.130.200601", abstract="One\n\nTwo",
)  # fmt: skip
RESOLVED = Resolved(REF.canonical, WORK, "crossref", warnings=("OpenAlex was not asked.",))


@pytest.fixture
def cache(tmp_path):
    return doiget.Cache(tmp_path / "cache" / "resolver")


def test_a_record_comes_back_fresh_then_stale(cache):
    assert cache.load(REF, NOW) is None
    assert cache.save(REF, RESOLVED, NOW)
    hit = cache.load(REF, NOW + 7 * DAY - 1)
    assert hit.fresh
    assert hit.miss is None
    assert hit.resolved == Resolved(REF.canonical, WORK, "crossref", from_cache=True, warnings=RESOLVED.warnings)
    late = cache.load(REF, NOW + 7 * DAY)
    assert not late.fresh
    assert late.resolved.stale
    assert cache.load(REF, NOW - DAY).fresh is False  # dated by a clock that was wrong
    data = doiget.parse_toml(cache.path(REF).read_bytes())
    assert (data["version"], data["ttl_seconds"], data["ref"]) == (1, 604800, REF.canonical)
    assert cache.path(REF).name == "doi_10.1103_physrevlett.130.200601.toml"


def test_a_miss_comes_back_for_a_day(cache):
    assert cache.save_miss(REF, "not_registered", "Crossref knows no such DOI.", NOW)
    hit = cache.load(REF, NOW + DAY - 1)
    assert (hit.fresh, hit.resolved, hit.miss) == (True, None, ("not_registered", "Crossref knows no such DOI."))
    assert cache.load(REF, NOW + DAY).fresh is False


@pytest.mark.parametrize("reason", [r for r, row in doiget.REASONS.items() if row.code is not doiget.Code.NOT_FOUND])
def test_no_other_failure_is_kept(cache, reason):
    assert not cache.save_miss(REF, reason, "x", NOW)
    assert not cache.folder.exists()


@pytest.mark.parametrize("change", [{"from_cache": True}, {"stale": True}, {"source": "store"}])
def test_what_is_second_hand_is_not_kept(cache, change):
    assert not cache.save(REF, doiget.replace(RESOLVED, **change), NOW)


def test_an_entry_is_kept_under_the_asked_ref(cache):
    short = parse_ref("10/b6vnmd")
    assert cache.save(short, RESOLVED, NOW)
    assert cache.load(short, NOW).resolved.ref == REF.canonical
    assert cache.load(REF, NOW) is None


DAMAGE = {
    "empty": lambda _: b"",
    "cut": lambda raw: raw[: len(raw) // 2],
    "binary": lambda _: bytes(range(256)),
    "not utf-8": lambda raw: raw.replace("π".encode(), b"\xff"),
    "other version": lambda raw: raw.replace(b"version = 1", b"version = 2"),
    "other ref": lambda raw: raw.replace(b'ref = "10.1103', b'ref = "10.1104', 1),
    "no date": lambda raw: raw.replace(b"fetched_at", b"fetched"),
    "odd date": lambda raw: raw.replace(b"fetched_at = ", b"fetched_at = [] #"),
    "odd ttl": lambda raw: raw.replace(b"604800", b"'week'"),
    "no record": lambda raw: raw.split(b"[record]")[0],
    "record is a list": lambda raw: raw.split(b"[record]")[0] + b"record = [1]",
    "record of no ref": lambda raw: raw.replace(b'ref = "10.1103/phys', b'ref = "phys').replace(
        b'ref = "phys', b'ref = "10.1103/phys', 1
    ),
    "work is text": lambda raw: raw.split(b"[record.work]")[0] + b'work = "x"',
    "deep": lambda _: b"a = " + b"[" * 100_000,
    "both": lambda raw: raw + b'\n[miss]\nreason = "not_registered"\nmessage = ""\n',
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_entry_is_a_miss_and_goes_at_the_next_prune_or_save(cache, name):
    cache.save(REF, RESOLVED, NOW)
    raw = cache.path(REF).read_bytes()
    damaged = DAMAGE[name](raw)
    assert damaged != raw
    cache.path(REF).write_bytes(damaged)
    assert cache.load(REF, NOW) is None
    assert cache.save(REF, RESOLVED, NOW)
    assert cache.load(REF, NOW).fresh


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_flipped_byte_crashes(cache, data):
    cache.save(REF, RESOLVED, NOW)
    raw = bytearray(cache.path(REF).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cache.path(REF).write_bytes(raw)
    hit = cache.load(REF, NOW)
    assert hit is None or isinstance(hit.resolved, Resolved)
    cache.prune(NOW)


@pytest.mark.skipif(sys.platform == "win32", reason="symlinks")
def test_symlinks_are_neither_read_nor_deleted(cache, tmp_path):
    cache.save(REF, RESOLVED, NOW)
    target = tmp_path / "mine.toml"
    cache.path(REF).rename(target)
    cache.path(REF).symlink_to(target)
    assert cache.load(REF, NOW) is None
    assert cache.clear() == {"removed": 0, "bytes": 0}
    assert target.exists()


def test_an_unwritable_cache_is_no_failure(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    cache = doiget.Cache(blocker / "resolver")
    assert cache.save(REF, RESOLVED, NOW) is False
    assert cache.save_miss(REF, "not_registered", "x", NOW) is False
    assert cache.load(REF, NOW) is None
    assert cache.size()["entries"] == 0
    assert cache.prune(NOW) == cache.clear() == {"removed": 0, "bytes": 0}


def test_prune_and_clear_touch_own_files_only(cache):
    gone, kept, missing = (parse_ref(f"10.1000/{n}") for n in ("gone", "kept", "missing"))
    cache.save(gone, RESOLVED, NOW - 7 * DAY)
    cache.save(kept, RESOLVED, NOW - 6 * DAY)
    cache.save_miss(missing, "not_registered", "x", NOW - 2 * DAY)
    old_part = cache.folder / ".doi_10.1000_x.toml.0123456789abcdef.part"
    new_part = cache.folder / ".doi_10.1000_y.toml.0123456789abcdef.part"
    foreign = [
        cache.folder / name for name in ("notes.txt", "Notes.toml", ".hidden", "doi_10.1000_x.toml.bak", "x.part")
    ]
    for path in (old_part, new_part, *foreign):
        path.write_text("x")
    os.utime(old_part, (NOW - DAY, 1))
    (cache.folder / "doi_10.1000_folder.toml").mkdir()
    assert cache.size()["entries"] == 3
    assert cache.prune(NOW)["removed"] == 2
    assert cache.load(kept, NOW).fresh
    assert not old_part.exists()
    assert new_part.exists()
    assert cache.clear()["removed"] == 1
    assert sorted(p.name for p in cache.folder.iterdir()) == sorted(
        [*(p.name for p in foreign), new_part.name, "doi_10.1000_folder.toml"]
    )
