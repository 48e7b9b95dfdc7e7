"""Fixtures: the built file under test, a fresh world, a fresh home, and ways to run the one in the other."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import hypothesis
import pytest
from fake_internet import FakeInternet
from worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
BUILDS = Path(tempfile.gettempdir()) / f"doiget-test-builds-{getattr(os, 'getuid', lambda: 'user')()}"
KEEP_BUILDS_S = 86400.0
SOURCES = (".py", ".toml", ".lock", ".txt")
PASSED_ON = ("PATH", "SYSTEMROOT", "SYSTEMDRIVE", "PATHEXT", "COMSPEC", "WINDIR", "COVERAGE_PROCESS_START")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite golden files")


def pytest_configure(config: pytest.Config) -> None:
    """The CI-sized run tries the same examples each time; the long one looks for new ones."""
    hypothesis.settings.register_profile("same", derandomize=True)
    if "not long" in config.getoption("markexpr"):
        hypothesis.settings.load_profile("same")
    let_children_be_interrupted()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest is begun first, so that the others run beside it and nothing is waited for at the end."""
    long = "test_soak", "test_two_builds_are_the_same", "test_fetch_killed_at_any"
    items.sort(key=lambda item: not any(name in item.nodeid for name in long))


def let_children_be_interrupted() -> None:
    """A run in the background of a shell ignores SIGINT, and its children would inherit that."""
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)


# ############################################################################
# The file under test
# ############################################################################


def source_digest() -> str:
    """A digest of what a build depends on: the sources at the top of the repository, the commit, the interpreter."""
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(path for path in ROOT.iterdir() if path.suffix in SOURCES):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    with contextlib.suppress(OSError):
        digest.update(subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, check=False).stdout)
    return digest.hexdigest()[:16]


def build(folder: Path) -> Path:
    """Build into `folder`, all or nothing; a build that is there already is taken."""
    pyz = folder / "doiget.pyz"
    if pyz.exists():
        os.utime(folder)
        return pyz
    scratch = Path(tempfile.mkdtemp(prefix="half-", dir=folder.parent))
    command = [sys.executable, str(ROOT / "build_zipapp.py"), "--native", "--output", str(scratch / "doiget.pyz")]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        shutil.rmtree(scratch, ignore_errors=True)
        pytest.fail(f"build_zipapp.py failed with {done.returncode}:\n{done.stdout}", pytrace=False)
    scratch.rename(folder)
    return pyz


def remove_old_builds() -> None:
    for old in BUILDS.iterdir():
        if old.is_dir() and time.time() - old.stat().st_mtime > KEEP_BUILDS_S:
            shutil.rmtree(old, ignore_errors=True)


@pytest.fixture(scope="session")
def pyz() -> Path:
    """The file under test: `DOIGET_TEST_PYZ`, or one build that all workers share."""
    if given := os.environ.get("DOIGET_TEST_PYZ"):
        return Path(given).resolve()
    BUILDS.mkdir(mode=0o700, exist_ok=True)
    with filelock.FileLock(BUILDS / "lock"):
        remove_old_builds()
        return build(BUILDS / source_digest())


@pytest.fixture(scope="session")
def unpacked(pyz: Path) -> Path:
    """Where the file unpacks itself in tests, so that only the first one pays for it."""
    digest = hashlib.sha256(pyz.read_bytes()).hexdigest()[:16]
    BUILDS.mkdir(mode=0o700, exist_ok=True)
    folder = BUILDS / f"root-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    os.utime(folder)
    return folder


# ############################################################################
# World and home
# ############################################################################


@pytest.fixture
def net() -> Iterator[FakeInternet]:
    """An empty internet: every host is unknown until the test routes it."""
    with FakeInternet() as net:
        yield net
    assert not net.errors, net.errors


@pytest.fixture
def world(net: FakeInternet) -> World:
    """The scholarly APIs on `net`, in their true shape, knowing nothing yet."""
    return World(net)


@dataclass
class Home:
    """One user's folders."""

    root: Path

    def __post_init__(self) -> None:
        for folder in (self.home, self.cache.parent, self.config.parent, self.tmp, self.cwd):
            folder.mkdir(parents=True)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def store(self) -> Path:
        return self.home / "papers"

    @property
    def metadata(self) -> Path:
        return self.store / ".metadata"

    @property
    def cache(self) -> Path:
        """doiget's own folder in the user cache (not made)."""
        return self.root / "cache" / "doiget"

    @property
    def config(self) -> Path:
        """doiget's own folder in the user configuration (not made)."""
        return self.root / "config" / "doiget"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def cwd(self) -> Path:
        return self.root / "elsewhere"

    def write_config(self, text: str) -> Path:
        self.config.mkdir(parents=True, exist_ok=True)
        path = self.config / "config.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def env(self) -> dict[str, str]:
        cache, config, tmp = str(self.cache.parent), str(self.config.parent), str(self.tmp)
        if os.name == "nt":
            own = {"USERPROFILE": str(self.home), "LOCALAPPDATA": cache, "APPDATA": config, "TEMP": tmp, "TMP": tmp}
        else:
            own = {"HOME": str(self.home), "XDG_CACHE_HOME": cache, "XDG_CONFIG_HOME": config, "TMPDIR": tmp}
        return own | {"DOIGET_STORE": str(self.store)}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "user")


# ############################################################################
# Running
# ############################################################################


@dataclass
class Result:
    """What one run left behind."""

    args: tuple[str, ...]
    rc: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode(errors="replace")

    def json(self) -> Any:
        """The whole of stdout as one JSON value."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            raise AssertionError(f"stdout is not JSON\n{self}") from None

    def jsonl(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    def __str__(self) -> str:
        return f"{' '.join(self.args)} -> {self.rc} in {self.seconds:.2f} s\n--- out\n{self.out}\n--- err\n{self.err}"


@dataclass
class Runner:
    """Runs the file as a user or a host would: a bare environment, a foreign folder, the fake internet around it."""

    pyz: Path
    home: Home
    net: FakeInternet
    unpacked: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def env(self, changes: dict[str, str | None] | None = None) -> dict[str, str]:
        """The environment of a run; a change to None takes a variable away."""
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        full = kept | self.home.env() | self.net.env() | {"DOIGET_PYZ_ROOT": str(self.unpacked)} | (changes or {})
        return {name: value for name, value in full.items() if value is not None}

    def spawn(
        self,
        *args: str | Path,
        env: dict[str, str | None] | None = None,
        cwd: Path | None = None,
        python: str = sys.executable,
        flags: tuple[str, ...] = (),
        **popen: Any,
    ) -> subprocess.Popen[bytes]:
        """Start it with pipes; whatever still runs at the end of the test is killed."""
        command = [python, *flags, str(self.pyz), *map(str, args)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        where = cwd or self.home.cwd
        process: subprocess.Popen[bytes] = subprocess.Popen(command, env=self.env(env), cwd=where, **(pipes | popen))
        self.running.append(process)
        return process

    def __call__(
        self,
        *args: str | Path,
        input: str | bytes | None = None,  # noqa: A002 - subprocess's own word
        timeout: float = 60.0,
        **how: Any,
    ) -> Result:
        """Run it to its end."""
        began = time.monotonic()
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        process = self.spawn(*args, stdin=stdin, **how)
        try:
            out, err = process.communicate(input.encode() if isinstance(input, str) else input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            late = Result(tuple(map(str, args)), -9, out, err, time.monotonic() - began)
            pytest.fail(f"no end after {timeout} s: {late}\n--- wire\n{self.net.text()}")
        return Result(tuple(map(str, args)), process.returncode, out or b"", err or b"", time.monotonic() - began)

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    with contextlib.suppress(OSError):
                        pipe.close()
            process.wait()


@pytest.fixture
def run(pyz: Path, home: Home, net: FakeInternet, unpacked: Path) -> Iterator[Runner]:
    """`run("fetch", "10.1000/x", "--json").json()`; `run.spawn(...)`; `run.env(...)`."""
    runner = Runner(pyz, home, net, unpacked)
    yield runner
    runner.stop()


@pytest.fixture
def spawn(run: Runner) -> Callable[..., subprocess.Popen[bytes]]:
    return run.spawn


# ############################################################################
# Files beside the tests
# ############################################################################


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded API bodies and cases: a folder beside the repository, not part of it."""
    folder = Path(os.environ.get("DOIGET_SHARED") or ROOT.parent / "shared")
    if not (folder / "recorded").is_dir():
        pytest.skip("no recorded API bodies here (DOIGET_SHARED names their folder)")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text equals tests/golden/<name>; `--update` writes it."""

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert path.exists(), f"{path} is missing; pytest --update writes it"
        assert text == path.read_bytes().decode(), f"{path.name} differs; pytest --update rewrites it"

    return check
