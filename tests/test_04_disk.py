"""The one door for writes, and the locks: nothing half written, nobody in twice, nobody locked out for long."""

# ruff: noqa: PT012, PT017, PTH110, PTH208 - a failure may come at any line of these blocks
from __future__ import annotations

import errno
import json
import multiprocessing
import os
import resource
import signal
import stat
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import anyio
import pytest

import doiget
from doiget import DoigetError, PartFile, hold_lock, hold_lock_async, try_lock, write_atomic

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX links, limits and signals")
FORK = multiprocessing.get_context("fork")


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def run(target, *args, seconds=60) -> None:
    worker = FORK.Process(target=target, args=args)
    worker.start()
    worker.join(seconds)
    assert worker.exitcode == 0


class Injected:
    """Lets the n-th of some os functions fail with an errno; counts them all."""

    def __init__(self, monkeypatch, step: int, code: int, functions=("open", "write", "fsync", "close", "replace")):
        self.count = 0
        for name in functions:
            monkeypatch.setattr(os, name, self.wrap(getattr(os, name), name, step, code))

    def wrap(self, real, name, step, code):
        def call(*args, **kwargs):
            self.count += 1
            if self.count == step:
                if name == "close":
                    real(*args)
                raise OSError(code, "injected")
            return real(*args, **kwargs)

        return call


# ---- files ----


def test_write_atomic_writes_with_its_mode(tmp_path):
    path = tmp_path / "f"
    write_atomic(path, b"one")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write_atomic(path, b"", 0o644)
    assert path.read_bytes() == b""
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, 9999])
def test_write_atomic_failing_at_any_step_leaves_the_old_file(tmp_path, monkeypatch, code):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    for step in range(1, 30):
        with monkeypatch.context() as patch:
            injected = Injected(patch, step, code)
            try:
                write_atomic(path, b"new")
            except DoigetError as exc:
                assert exc.reason == (
                    "disk_full" if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else "not_writable"
                )
                assert str(path) in exc.message
                assert "injected" not in exc.message
                assert path.read_bytes() == b"old"
            else:
                assert path.read_bytes() == b"new"  # a folder that cannot be synced is no failure
                path.write_bytes(b"old")
        assert names(tmp_path) == ["f"]
        if injected.count < step:
            break
    assert step > 5


def test_a_file_system_without_fsync_is_no_failure(tmp_path, monkeypatch):
    def refuse(_fd):
        raise OSError(errno.EINVAL, "no")

    monkeypatch.setattr(os, "fsync", refuse)
    write_atomic(tmp_path / "f", b"x")
    assert (tmp_path / "f").read_bytes() == b"x"


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    write_atomic(tmp_path / "f", b"0123456789")
    assert (tmp_path / "f").read_bytes() == b"0123456789"


def test_a_symlink_is_replaced_and_not_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"mine")
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert target.read_bytes() == b"mine"
    assert not link.is_symlink()


def test_a_planted_temporary_file_is_not_written(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    monkeypatch.setattr(doiget, "random_name", lambda: "0" * 16)
    planted = tmp_path / ".f.0000000000000000.part"
    for plant in (planted.symlink_to, planted.hardlink_to):
        plant(victim)
        with pytest.raises(DoigetError):
            write_atomic(tmp_path / "f", b"new")
        assert victim.read_bytes() == b"mine"
        planted.unlink(missing_ok=True)


def test_errors_name_the_path_and_what_is_wrong(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    for call in (
        lambda: write_atomic(blocker / "x", b""),
        lambda: write_atomic(tmp_path / "absent" / "x", b""),
        lambda: doiget.make_folder(blocker / "x"),
        lambda: doiget.make_folder(blocker),
        lambda: PartFile(blocker / "x.pdf"),
        lambda: try_lock(blocker / "x.lock"),
        lambda: write_atomic(tmp_path / ("n" * 300), b""),
    ):
        with pytest.raises(DoigetError) as caught:
            call()
        assert caught.value.reason == "not_writable"
        assert str(tmp_path) in caught.value.message
    assert names(tmp_path) == ["file"]


def test_make_folder_makes_parents_private(tmp_path):
    doiget.make_folder(tmp_path / "a" / "b")
    doiget.make_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700


def test_load_bytes_reads_plain_files_only(tmp_path):
    path = tmp_path / "f"
    assert doiget.load_bytes(path, 10) is None
    path.write_bytes(b"0123456789")
    assert doiget.load_bytes(path, 10) == b"0123456789"
    with pytest.raises(DoigetError):
        doiget.load_bytes(path, 9)
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for name in ("link", "fifo", "folder"):
        with pytest.raises(DoigetError):
            doiget.load_bytes(tmp_path / name, 10)
        assert not doiget.is_regular_file(tmp_path / name)


def limited_write(path: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        write_atomic(Path(path), b"n" * 5000)
    except DoigetError as exc:
        os._exit(0 if exc.reason == "disk_full" else 3)
    os._exit(4)


def test_a_size_limit_keeps_the_old_file(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    run(limited_write, str(tmp_path / "f"))
    assert (tmp_path / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_disk_full():
    with pytest.raises(DoigetError) as caught, doiget.disk_errors("write", "/dev/full"):
        fd = os.open("/dev/full", os.O_WRONLY)
        try:
            doiget.write_all(fd, b"x")
        finally:
            os.close(fd)
    assert caught.value.reason == "disk_full"
    assert "/dev/full" in caught.value.message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-30T13:05:00.000Z", 1796043900.0), ("2026-11-30T13:05:00Z", 1796043900.0), ("2026-11-30 13:05:00", 1796043900.0),  # noqa: E501
        ("2026-11-30T14:05:00+01:00", 1796043900.0), (1796043900, None), ("x", None), ("", None), (None, None),
        (True, None), (float("nan"), None), (["2026"], None),
    ],
)  # fmt: skip
def test_times_come_back(text, seconds):
    assert doiget.parse_utc(text) == seconds


def test_times_sort_as_text():
    times = [0.0, 1.0004, 1.9996, 2.5, 1_800_000_000.123]
    texts = [doiget.utc_now(t) for t in times]
    assert texts == sorted(texts)
    assert texts[1:3] == ["1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000Z"]
    assert [doiget.parse_utc(t) for t in texts] == [round(t, 3) for t in times]


def test_only_stale_parts_are_removed(tmp_path):
    old, new, other = (tmp_path / name for name in (f".f.{'0' * 16}.part", f".g.{'0' * 16}.part", ".notes.part"))
    for path in (old, new, other):
        path.write_text("x")
        os.utime(path, (time.time() - 4000 * (path != new),) * 2)
    doiget.remove_stale_parts(tmp_path)
    assert names(tmp_path) == sorted([new.name, other.name])
    doiget.remove_stale_parts(tmp_path / "absent")


# ---- downloads ----


def test_a_part_becomes_the_target_on_commit_only(tmp_path):
    target = tmp_path / "doi_10.1000_a.b.pdf"
    with PartFile(target) as part:
        part.write(b"%PDF-")
        part.write(b"x" * 2000)
        assert (part.size, len(part.head)) == (2005, 1024)
        assert part.head.startswith(b"%PDF-xx")
        part.write(b"%%EOF")
        assert part.tail == b"x" * 1019 + b"%%EOF"
        (name,) = names(tmp_path)
        assert name.startswith(".doi_10.1000_a.b.")
        assert name.endswith(".part")
        assert len(name) == len(".doi_10.1000_a.b.") + 16 + len(".part")
        part.commit()
    assert names(tmp_path) == [target.name]
    import hashlib

    assert part.sha256() == hashlib.sha256(target.read_bytes()).hexdigest()
    part.discard()
    assert target.exists()


def test_a_copy_is_whole_or_not_there(tmp_path):
    source, target = tmp_path / "a.pdf", tmp_path / "to" / "a.pdf"
    source.write_bytes(b"%PDF-" + b"x" * 3_000_000)
    with pytest.raises(DoigetError):
        doiget.copy_file(source, target)
    target.parent.mkdir()
    target.write_bytes(b"old")
    doiget.copy_file(source, target)
    assert target.read_bytes() == source.read_bytes()
    with pytest.raises(DoigetError):
        doiget.copy_file(tmp_path / "absent.pdf", target)
    assert names(target.parent) == ["a.pdf"]


def test_a_part_that_is_not_committed_goes(tmp_path):
    target = tmp_path / "a.pdf"
    target.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), PartFile(target) as part:
        part.write(b"new")
        raise KeyboardInterrupt
    assert names(tmp_path) == ["a.pdf"]
    assert target.read_bytes() == b"old"
    with pytest.raises(ValueError, match="closed"):
        part.write(b"more")


def limited_part(path: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    try:
        with PartFile(Path(path)) as part:
            for _ in range(100):
                part.write(b"x" * 1000)
    except DoigetError as exc:
        os._exit(0 if exc.reason == "disk_full" and path in exc.message else 3)
    os._exit(4)


def test_a_part_on_a_full_disk(tmp_path):
    run(limited_part, str(tmp_path / "a.pdf"))
    assert names(tmp_path) == []


def test_a_part_takes_no_memory(tmp_path):
    block = b"x" * 65536
    tracemalloc.start()
    with PartFile(tmp_path / "a.pdf") as part:
        for _ in range(500):
            part.write(block)
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert part.size == 500 * 65536
    assert peak < 1_000_000


# ---- TOML ----


@pytest.mark.parametrize("data", [b"a = 1\n", b"\xef\xbb\xbfa = 1\r\n"])
def test_toml_is_read(data):
    assert doiget.parse_toml(data) == {"a": 1}


@pytest.mark.parametrize(
    "data",
    [b"a", b"\xff", b"a = " + b"[" * 100_000, b"a." * 50_000 + b"a = 1\nb = [", b"a." * 300 + b"a = 1\n", b"a=1\na=2"],
)
def test_bad_toml_is_a_value_error(data):
    with pytest.raises(ValueError):  # noqa: PT011 - whose text is nobody's business
        doiget.parse_toml(data)


def test_toml_leaves_none_out():
    assert doiget.parse_toml(doiget.render_toml({"a": None, "b": [{"c": None, "d": "\ud800é\x00"}]})) == {
        "b": [{"d": "?é\x00"}]
    }


# ---- locks ----

MODES = ["os", "owner"]


@pytest.fixture(params=MODES)
def lock(request, tmp_path, monkeypatch):
    """A lock path, where the system's locks work and where they do not."""
    if request.param == "owner":
        without_os_locks(monkeypatch)
    return tmp_path / "locks" / "x.lock"


def without_os_locks(monkeypatch, code=errno.ENOLCK):
    import fcntl

    def refuse(*_args):
        raise OSError(code, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_a_lock_is_held_once_and_leaves_nothing(lock):
    held = try_lock(lock)
    assert held is not None
    assert try_lock(lock) is None
    held.release()
    held.release()
    assert names(lock.parent) == []
    with hold_lock(lock):
        assert try_lock(lock) is None
    again = try_lock(lock)
    again.release()
    assert names(lock.parent) == []


def test_a_held_lock_times_out_as_locked(lock):
    with hold_lock(lock):
        began = time.monotonic()
        with pytest.raises(DoigetError) as caught, hold_lock(lock, 0.3):
            pytest.fail("two holders")
        assert caught.value.reason == "locked"
        assert str(lock) in caught.value.message
        assert 0.2 < time.monotonic() - began < 5


def test_the_lock_is_released_when_the_body_fails(lock):
    with pytest.raises(ZeroDivisionError), hold_lock(lock):
        1 / 0  # noqa: B018
    assert names(lock.parent) == []


def count_up(lock: str, counter: str, times: int) -> None:
    for _ in range(times):
        with hold_lock(Path(lock), 30):
            value = int(Path(counter).read_text() or 0)
            time.sleep(0.0005)
            Path(counter).write_text(str(value + 1))


def test_processes_and_threads_exclude_each_other(lock, tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    workers = [FORK.Process(target=count_up, args=(str(lock), str(counter), 25)) for _ in range(3)]
    for worker in workers:
        worker.start()
    threads = [threading.Thread(target=count_up, args=(str(lock), str(counter), 10)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert counter.read_text() == "95"
    assert names(lock.parent) == []


def hold_for_ever(lock: str, ready: str) -> None:
    with hold_lock(Path(lock)):
        Path(ready).write_text("x")
        time.sleep(60)


def test_a_killed_holder_blocks_nobody(lock, tmp_path):
    ready = tmp_path / "ready"
    worker = FORK.Process(target=hold_for_ever, args=(str(lock), str(ready)))
    worker.start()
    while not ready.exists():
        time.sleep(0.01)
    assert try_lock(lock) is None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(10)
    began = time.monotonic()
    with hold_lock(lock):
        pass
    assert time.monotonic() - began < 4
    assert names(lock.parent) == []


def test_tasks_exclude_each_other_and_the_loop_goes_on(lock):
    inside = [0, 0]
    ticks = [0]

    async def work():
        async with hold_lock_async(lock, 20):
            inside[0] += 1
            inside[1] = max(inside)
            await anyio.sleep(0.02)
            inside[0] -= 1

    async def tick():
        while True:
            ticks[0] += 1
            await anyio.sleep(0.005)

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            async with anyio.create_task_group() as workers:
                for _ in range(6):
                    workers.start_soon(work)
            group.cancel_scope.cancel()

    anyio.run(main)
    assert inside == [0, 1]
    assert ticks[0] > 10
    assert names(lock.parent) == []


def test_cancelling_a_holder_or_a_waiter_releases(lock):
    async def main():
        async with anyio.create_task_group() as group:

            async def hold():
                async with hold_lock_async(lock, 5):
                    await anyio.sleep(60)

            group.start_soon(hold)
            await anyio.sleep(0.05)
            assert try_lock(lock) is None
            with anyio.move_on_after(0.1) as scope:
                async with hold_lock_async(lock, 5):
                    pytest.fail("two holders")
            assert scope.cancelled_caught
            group.cancel_scope.cancel()
        try_lock(lock).release()

    anyio.run(main)
    assert names(lock.parent) == []


def test_waiting_async_ends_as_locked(lock):
    async def main():
        async with hold_lock_async(lock, 0.2):
            pytest.fail("two holders")

    with hold_lock(lock), pytest.raises(DoigetError) as caught:
        anyio.run(main)
    assert caught.value.reason == "locked"


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EIO])
def test_every_way_of_having_no_locks_is_covered(tmp_path, monkeypatch, code):
    without_os_locks(monkeypatch, code)
    path = tmp_path / "x.lock"
    with hold_lock(path):
        (name,) = names(tmp_path)
        assert name == "x.lock.owner"
        found = json.loads((tmp_path / name).read_text())
        assert found["pid"] == os.getpid()
        assert try_lock(path) is None
    assert names(tmp_path) == []


def plant_owner(path: Path, age_s: float = 0.0, **values) -> Path:
    owner = path.with_name(f"{path.name}.owner")
    owner.parent.mkdir(exist_ok=True)
    owner.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "t", **values}))
    then = time.time() - age_s
    os.utime(owner, (then, then))
    return owner


def test_an_owner_file_of_another_machine_holds_until_it_expires(lock):
    owner = plant_owner(lock, age_s=100)
    assert try_lock(lock) is None
    plant_owner(lock, age_s=121)
    held = try_lock(lock)
    assert held is not None
    held.release()
    assert not owner.exists()


def test_an_owner_file_of_a_dead_process_here_does_not_hold(lock):
    child = FORK.Process(target=lambda: None)
    child.start()
    child.join()
    plant_owner(lock, host=doiget._owner_host(), pid=child.pid)
    try_lock(lock).release()
    plant_owner(lock, host=doiget._owner_host(), pid=os.getppid())
    assert try_lock(lock) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "\x00"])
def test_a_damaged_owner_file_holds_until_it_expires(lock, text):
    owner = plant_owner(lock)
    owner.write_text(text)
    assert try_lock(lock) is None
    then = time.time() - 121
    os.utime(owner, (then, then))
    try_lock(lock).release()
    assert names(lock.parent) == []


def test_an_owner_file_is_renewed_while_it_is_held(tmp_path, monkeypatch):
    without_os_locks(monkeypatch)
    monkeypatch.setattr(doiget, "OWNER_RENEW_S", 0.02)
    path = tmp_path / "x.lock"
    owner = tmp_path / "x.lock.owner"
    with hold_lock(path):
        os.utime(owner, (1, 1))
        deadline = time.monotonic() + 5
        while owner.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert owner.stat().st_mtime > time.time() - 60


def test_a_lost_owner_file_is_not_removed_from_its_new_owner(tmp_path, monkeypatch):
    without_os_locks(monkeypatch)
    path = tmp_path / "x.lock"
    with hold_lock(path):
        owner = plant_owner(path, token="theirs")
    assert json.loads(owner.read_text())["token"] == "theirs"


def test_a_wrong_clock_here_does_not_break_a_living_owner_file(lock, monkeypatch):
    owner = plant_owner(lock)
    now = time.time
    for off_s in (-7200, 7200):
        monkeypatch.setattr(time, "time", lambda off_s=off_s: now() + off_s)
        assert try_lock(lock) is None
    assert names(lock.parent) == [owner.name]


def test_one_of_two_breakers_wins(lock, monkeypatch):
    """Between the look at a dead owner file and its removal another process takes the lock."""
    owner = plant_owner(lock, age_s=500)
    real = doiget._is_expired

    def slow(*args):
        assert real(*args)
        plant_owner(lock, token="theirs")
        return True

    monkeypatch.setattr(doiget, "_is_expired", slow)
    assert try_lock(lock) is None
    assert json.loads(owner.read_text())["token"] == "theirs"
    assert names(lock.parent) == [owner.name]


def test_a_lock_on_a_file_that_lost_its_name_does_not_count(tmp_path, monkeypatch):
    import filelock

    path = tmp_path / "x.lock"

    class Late(filelock.FileLock):
        """On NFS a removed file that is open keeps a hidden name, so its link count tells nothing."""

        def acquire(self, *args, **kwargs):
            done = super().acquire(*args, **kwargs)
            path.rename(tmp_path / ".nfs1")
            path.write_text("")  # another process made its own
            return done

    with monkeypatch.context() as patch:
        patch.setattr(filelock, "FileLock", Late)
        assert try_lock(path) is None
    assert path.exists()
    try_lock(path).release()


def test_a_symlink_in_place_of_the_lock_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path = tmp_path / "x.lock"
    path.symlink_to(victim)
    with pytest.raises(DoigetError):
        try_lock(path)
    assert victim.read_text() == "mine"


def test_importing_costs_no_lock_library():
    import subprocess

    code = "import sys, doiget; print([m for m in ('filelock', 'anyio', 'sqlite3', 'asyncio', 'tomli_w') if m in sys.modules])"  # noqa: E501
    folder = str(Path(doiget.__file__).parent)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("head", "is_pdf"),
    [
        (b"%PDF-1.7", True),
        (b"\r\n\t\t %PDF-1.4", True),
        (b"<br />\n<b>Warning</b>: mysql_connect() on line 3\n%PDF-1.4", True),
        (b"\xef\xbb\xbf <!DOCTYPE html><script>var a = '%PDF-1.4'</script>", False),
        (b"<html><body>%PDF-1.4 cannot be shown</body></html>", False),
        (b"<?xml version='1.0'?><Error>%PDF-</Error>", False),
        (b" " * 1020 + b"%PDF-1.4", False),
        (b"", False),
    ],
)
def test_what_begins_as_a_pdf(head: bytes, *, is_pdf: bool) -> None:
    assert doiget.begins_pdf(head) is is_pdf
