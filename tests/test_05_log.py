"""The provenance log: a chain that shows every change, survives kills, and fails closed."""

# ruff: noqa: PTH208 - a failure may come at any line of these blocks
from __future__ import annotations

import errno
import json
import multiprocessing
import os
import resource
import signal
import stat
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import doiget

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and modes")


@pytest.fixture
def log(tmp_path):
    return doiget.AccessLog(tmp_path / "conf" / "access.log")


def filled(path: Path, count: int = 5, **kwargs) -> doiget.AccessLog:
    log = doiget.AccessLog(path, **kwargs)
    for number in range(count):
        log.append("fetch_attempt", ref="10.1000/x", number=number)
    return log


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_first_append_makes_a_private_file_with_a_header(log):
    line = log.append("fetch_attempt", ref="10.1000/x", host="arxiv.org", status=200)
    header, event = lines_of(log.path)
    assert header["format"] == "doiget-access-log"
    assert header["previous_file"] is None
    assert event == line
    assert (event["event"], event["seq"], event["prev"]) == ("fetch_attempt", 1, header["hash"])
    assert event["time"].endswith("Z")
    if sys.platform != "win32":
        assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(log.head_path.stat().st_mode) == 0o600
    assert sorted(os.listdir(log.path.parent)) == ["access.log", "access.log.head"]
    assert log.verify() == {"ok": True, "files": ["access.log"], "lines": 2, "faults": []}


def test_ensure_writable_creates_the_file_and_adds_nothing_later(log):
    log.ensure_writable()
    first = log.path.read_bytes()
    log.ensure_writable()
    assert log.path.read_bytes() == first
    assert log.verify()["ok"]


def test_verify_of_no_log_is_fine(log):
    assert log.verify() == {"ok": True, "files": [], "lines": 0, "faults": []}
    assert log.tail(3) == []
    assert not log.path.parent.exists()


def test_no_secret_gets_in(log):
    log.append(
        "fetch_attempt",
        url="https://me:s3cret@host.example/a.pdf?token=s3cret#s3cret",
        detail="went to http://u:p@ss3cret@host.example/x?key=s3cret and back",
        api_key="s3cret", email="s3cret@example.org", seq=99, hash="s3cret",
        many=["ftp://s3cret@h/x", 3, None, float("nan")],
        long="x" * 5000,
    )  # fmt: skip
    text = log.path.read_text()
    assert "s3cret" not in text
    line = log.tail(1)[0]
    assert line["url"] == "https://host.example/a.pdf"
    assert line["detail"] == "went to http://host.example/x and back"
    assert line["seq"] == 1
    assert line["many"] == ["ftp://h/x", 3, None, None]
    assert len(line["long"]) == doiget.MAX_FIELD_CHARS


def test_a_doi_that_looks_like_a_query_is_kept(log):
    ref = "10.1002/(sici)1097-4571(199806)49:8<693::aid-asi4>3.0.co;2-o?x#y"
    log.append("store_write", ref=ref)
    assert log.tail(1)[0]["ref"] == ref


# ---- tampering ----


def changed(lines):
    return [lines[0], lines[1], lines[2].replace('"number":1', '"number":7'), *lines[3:]]


def changed_and_rehashed(lines):
    line = json.loads(lines[2])
    line["number"] = 7
    line["hash"] = doiget.line_hash(line["prev"], line)
    return [*lines[:2], json.dumps(line, separators=(",", ":")), *lines[3:]]


def last_changed_and_rehashed(lines):
    line = json.loads(lines[-1])
    line["number"] = 7
    line["hash"] = doiget.line_hash(line["prev"], line)
    return [*lines[:-1], json.dumps(line, separators=(",", ":"))]


def inserted(lines):
    before = json.loads(lines[2])
    line = {"event": "x", "seq": before["seq"] + 1, "time": "", "prev": before["hash"]}
    line["hash"] = doiget.line_hash(line["prev"], line)
    return [*lines[:3], json.dumps(line, separators=(",", ":")), *lines[3:]]


TAMPERINGS = {
    "changed": changed,
    "changed and rehashed": changed_and_rehashed,
    "last changed and rehashed": last_changed_and_rehashed,
    "inserted": inserted,
    "said twice": lambda lines: [*lines[:2], lines[2].replace('{"', '{"event":"x","', 1), *lines[3:]],
    "respaced": lambda lines: [*lines[:2], lines[2].replace(",", ", "), *lines[3:]],
    "other line ends": lambda lines: [*lines[:2], lines[2] + "\r", *lines[3:]],
    "garbage inserted": lambda lines: [*lines[:2], "hello", *lines[2:]],
    "garbage appended": lambda lines: [*lines, "hello"],
    "duplicated": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "removed": lambda lines: [*lines[:2], *lines[3:]],
    "header removed": lambda lines: lines[1:],
    "swapped": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "last removed": lambda lines: lines[:-1],
    "all but the header removed": lambda lines: lines[:1],
    "emptied": lambda _lines: [],
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_verify_finds(tmp_path, name):
    log = filled(tmp_path / "access.log")
    assert log.verify()["ok"]
    lines = TAMPERINGS[name](log.path.read_text().splitlines())
    log.path.write_text("".join(line + "\n" for line in lines))
    found = log.verify()
    assert not found["ok"]
    assert all(set(fault) == {"file", "line", "fault"} for fault in found["faults"])
    # The next append does not hide it; without its header the file is no longer known as ours.
    if name == "header removed":
        assert_unwritable(log)
    else:
        log.append("fetch_attempt", ref="10.1000/y")
    assert not log.verify()["ok"]


def test_changed_line_is_one_fault_with_its_place(tmp_path):
    log = filled(tmp_path / "access.log")
    log.path.write_text("".join(line + "\n" for line in changed(log.path.read_text().splitlines())))
    (fault,) = log.verify()["faults"]
    assert (fault["file"], fault["line"]) == ("access.log", 3)


def test_removed_file_and_removed_head_are_found(tmp_path):
    log = filled(tmp_path / "access.log")
    log.path.unlink()
    assert not log.verify()["ok"]
    log = filled(tmp_path / "b" / "access.log")
    log.head_path.unlink()
    assert not log.verify()["ok"]
    log.append("x")
    assert "log_repaired" in [line["event"] for line in log.tail(5)]
    assert log.verify()["ok"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_flipped_byte_is_found(tmp_path, data):
    log = doiget.AccessLog(tmp_path / f"{time.monotonic_ns()}" / "access.log")
    for number in range(4):
        log.append("e", number=number)
    raw = bytearray(log.path.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 2))  # the last newline alone is what a kill may leave
    raw[place] ^= data.draw(st.integers(1, 255))
    log.path.write_bytes(raw)
    assert not log.verify()["ok"]


# ---- rotation ----


def test_rotation_continues_the_chain(tmp_path):
    log = filled(tmp_path / "access.log", 60, max_bytes=1500)
    found = log.verify()
    assert found["ok"], found
    rotated = [name for name in found["files"] if name != "access.log"]
    assert len(rotated) > 10  # and 10 sorts after 9, not after 1
    assert found["files"][-1] == "access.log"
    assert [line["number"] for line in log.tail(60)] == list(range(60))
    assert lines_of(log.path)[0]["previous_file"] == rotated[-1]
    assert all((tmp_path / name).stat().st_size < 2500 for name in found["files"])


def test_rotated_files_are_part_of_the_chain(tmp_path):
    log = filled(tmp_path / "access.log", 30, max_bytes=1500)
    (tmp_path / "access.log.2").unlink()
    assert not log.verify()["ok"]
    log = filled(tmp_path / "b" / "access.log", 30, max_bytes=1500)
    (tmp_path / "b" / "access.log.1").unlink()
    assert not log.verify()["ok"]
    log = filled(tmp_path / "c" / "access.log", 30, max_bytes=1500)
    one, two = (tmp_path / "c" / f"access.log.{n}" for n in (1, 2))
    text = one.read_text()
    one.write_text(two.read_text())
    two.write_text(text)
    assert not log.verify()["ok"]


def test_kill_between_rename_and_new_file(tmp_path):
    log = filled(tmp_path / "access.log")
    log.path.rename(tmp_path / "access.log.1")
    assert log.verify()["ok"]
    log.append("x")
    assert log.verify() == {"ok": True, "files": ["access.log.1", "access.log"], "lines": 8, "faults": []}


# ---- kills ----


def test_head_that_lags_is_no_fault_and_catches_up(tmp_path):
    log = filled(tmp_path / "access.log")
    head = log.head_path.read_bytes()
    for number in range(3):
        log.append("later", number=number)
    log.head_path.write_bytes(head)
    assert log.verify()["ok"]
    log.append("x")
    assert log.verify()["ok"]
    assert [line["seq"] for line in lines_of(log.path)] == list(range(10))


@pytest.mark.parametrize("cut", [1, 2, 30, 100])
def test_torn_last_line_is_repaired_and_said(tmp_path, cut):
    log = filled(tmp_path / "access.log")
    head = log.head_path.read_bytes()
    log.append("lost")
    log.head_path.write_bytes(head)
    log.path.write_bytes(log.path.read_bytes()[:-cut])
    assert log.verify()["ok"]
    log.append("next")
    assert log.verify()["ok"]
    repaired, after = log.tail(2)
    assert repaired["event"] == "log_repaired"
    assert repaired["removed_bytes"] > 0
    assert after["event"] == "next"


def test_torn_header_is_repaired(tmp_path):
    log = doiget.AccessLog(tmp_path / "access.log")
    log.append("x")
    raw = log.path.read_bytes()
    for cut in (1, 5, 20, 60):
        log.path.write_bytes(raw[:cut])
        log.head_path.unlink()
        log._save_head(doiget.LogHead())
        log.append("y")
        assert log.verify()["ok"]
        assert [line["event"] for line in log.tail(9)] == ["log_repaired", "y"]


class Killed(BaseException):
    pass


def test_a_kill_at_every_step_leaves_a_good_chain(tmp_path, monkeypatch):
    real = {name: getattr(os, name) for name in ("open", "write", "fsync", "ftruncate", "unlink", "rename", "replace")}
    for step in range(200):
        log = filled(tmp_path / str(step) / "access.log", 3, max_bytes=500)  # the next append rotates
        count = [0]

        def wrap(name, step=step, count=count):
            def call(*args, **kwargs):
                count[0] += 1
                if count[0] > step:
                    if name == "write" and count[0] == step + 1:
                        real["write"](args[0], bytes(args[1])[: len(args[1]) // 2])
                    raise Killed
                return real[name](*args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            for name in real:
                patch.setattr(os, name, wrap(name))
            try:
                log.append("step", number=step)
            except Killed:
                pass
            else:
                break
        doiget._HELD_HERE.clear()  # what a killed process held is gone with it
        assert log.verify()["ok"], (step, log.verify())
        for leftover in log.path.parent.glob(".*lock"):
            leftover.unlink()
        log.append("after")
        assert log.verify()["ok"], (step, log.verify())
    assert 5 < step < 199


def _append_many(path, name, count):
    log = doiget.AccessLog(Path(path), max_bytes=8000)
    for number in range(count):
        log.append("e", name=name, number=number)


@posix
def test_processes_at_once_keep_one_chain(tmp_path):
    path = tmp_path / "access.log"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append_many, args=(str(path), str(n), 40)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    log = doiget.AccessLog(path)
    found = log.verify()
    assert found["ok"], found
    events = log.tail(1000)
    assert len(events) == 120
    for name in "012":
        assert [line["number"] for line in events if line["name"] == name] == list(range(40))


@posix
def test_kill_9_at_random_points(tmp_path):
    path = tmp_path / "access.log"
    context = multiprocessing.get_context("fork")
    for round_number in range(8):
        worker = context.Process(target=_append_many, args=(str(path), str(round_number), 100_000))
        worker.start()
        time.sleep(0.06 + round_number * 0.013)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join(10)
        log = doiget.AccessLog(path)
        assert log.verify()["ok"], log.verify()
        began = time.monotonic()
        log.append("after")
        assert time.monotonic() - began < 2
        assert log.verify()["ok"], log.verify()


# ---- failing closed ----


def assert_unwritable(log):
    for call in (log.ensure_writable, lambda: log.append("x")):
        with pytest.raises(doiget.DoigetError) as caught:
            call()
        assert caught.value.reason == "log_unwritable"
        assert caught.value.code is doiget.Code.STORE_ERROR
        assert str(log.path.parent) in caught.value.message


@pytest.mark.parametrize("content", [b"hello\n", b"127.0.0.1 - GET /\n", b'{"a": 1}\n', b"\x00" * 5000, b"x", b"\n"])
def test_a_foreign_file_is_left_alone(tmp_path, content):
    log = doiget.AccessLog(tmp_path / "access.log")
    log.path.write_bytes(content)
    assert_unwritable(log)
    assert log.path.read_bytes() == content
    assert os.listdir(tmp_path) == ["access.log"]


def test_a_foreign_head_file_is_left_alone(tmp_path):
    log = filled(tmp_path / "access.log", 1)
    log.head_path.write_text("mine")
    assert_unwritable(log)
    assert log.head_path.read_text() == "mine"


@posix
def test_symlinks_folders_and_fifos_are_refused(tmp_path):
    target = tmp_path / "target"
    target.write_text("")
    log = doiget.AccessLog(tmp_path / "l" / "access.log")
    log.path.parent.mkdir()
    log.path.symlink_to(target)
    assert_unwritable(log)
    assert target.read_text() == ""
    log.path.unlink()
    os.mkfifo(log.path)
    assert_unwritable(log)
    log.path.unlink()
    log.path.mkdir()
    assert_unwritable(log)
    assert_unwritable(doiget.AccessLog(Path("/dev/null/x/access.log")))


def test_a_lock_that_cannot_be_had_is_log_unwritable(tmp_path, monkeypatch):
    log = filled(tmp_path / "access.log", 1)
    monkeypatch.setattr(doiget, "LOCK_TIMEOUT_S", 0.1)
    held = doiget.try_lock(log.lock_path)
    monkeypatch.setattr(doiget.AccessLog, "_lock_timeout_s", 0.1)
    try:
        assert_unwritable(log)
    finally:
        held.release()
    log.append("x")


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    log = filled(tmp_path / "access.log", 2)
    before = log.path.read_bytes()
    real = os.write

    def full(fd, data):
        if len(data) > 20:
            return real(fd, bytes(data)[:10])
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: full(fd, data) if len(data) < 400 else real(fd, data))
        assert_unwritable(log)
    assert log.path.read_bytes() == before
    log.append("x")
    assert log.verify()["ok"]


def _append_until_limit(path):
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    log = doiget.AccessLog(Path(path))
    for _ in range(100):
        try:
            log.append("e", text="x" * 100)
        except doiget.DoigetError as exc:
            os._exit(0 if exc.reason == "log_unwritable" and log.verify()["ok"] else 3)
    os._exit(4)


@posix
def test_a_size_limit_loses_nothing(tmp_path):
    worker = multiprocessing.get_context("fork").Process(
        target=_append_until_limit, args=(str(tmp_path / "access.log"),)
    )
    worker.start()
    worker.join(30)
    assert worker.exitcode == 0
    log = doiget.AccessLog(tmp_path / "access.log")
    log.append("x")
    assert log.verify()["ok"]


@posix
@pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(tmp_path):
    log = filled(tmp_path / "d" / "access.log", 1)
    log.path.parent.chmod(0o500)
    try:
        assert_unwritable(log)
        assert log.verify()["ok"]
    finally:
        log.path.parent.chmod(0o700)


def test_append_does_not_read_the_whole_file(tmp_path, monkeypatch):
    log = filled(tmp_path / "access.log", 3)
    log.path.write_bytes(log.path.read_bytes() + log.path.read_bytes().splitlines(keepends=True)[-1] * 1000)
    read = [0]
    real = os.read

    def counting(fd, size):
        data = real(fd, size)
        read[0] += len(data)
        return data

    monkeypatch.setattr(os, "read", counting)
    log.append("x")
    assert read[0] < 150_000
    assert log.path.stat().st_size > 200_000
