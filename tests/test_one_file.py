"""The built file on odd machines: each row of what plain shiv gets wrong, started as a user would start it.

The CI-sized run takes the interpreter that runs the tests and the file built for it; `-m long` takes each of 3.10-3.14
that this machine has and the file that is for all of them. test_launcher.py asks the same of a small stand-in, as other
users too.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import build_zipapp

if TYPE_CHECKING:
    from conftest import Home, Result, Runner
    from fake_internet import FakeInternet
    from worlds import World

ROOT = Path(build_zipapp.__file__).parent
DOI = "10.1103/physrevlett.130.200601"
OLD_PYTHONS = ("2.7", "3.6", "3.7", "3.8", "3.9")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
NO_FOLDERS = dict.fromkeys(("XDG_CACHE_HOME", "XDG_CONFIG_HOME"))


def find_python(version: str) -> Path | None:
    """Return an interpreter of that version, if this machine happens to have one that runs."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin"))
    for path in (folder / f"python{version}" for folder in folders):
        if path.is_file() and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def some_python(version: str) -> str:
    return str(find_python(version) or pytest.skip(f"this machine has no Python {version}"))


@pytest.fixture(scope="session")
def file_for_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default build."""
    pyz = tmp_path_factory.mktemp("default") / "doiget.pyz"
    subprocess.run([sys.executable, ROOT / "build_zipapp.py", "--output", pyz], check=True, stdout=subprocess.DEVNULL)
    return pyz


@dataclass
class Box:
    """One machine with one interpreter and a file that was never started there."""

    run: Runner
    python: str

    def __call__(self, *args: str | Path, inside: tuple[str, ...] = (), **how: Any) -> Result:
        """Run it; `inside` is a command that runs it in turn."""
        how["env"] = {"DOIGET_PYZ_ROOT": None, "DOIGET_LOG": "error", **how.get("env", {})}
        python, *flags = (*inside, self.python)
        return self.run(*args, python=python, flags=tuple(flags), **how)

    def version(self, *, lines: int = 0, **how: Any) -> Result:
        """Ask for the version: it must come, with so many lines on stderr."""
        result = self("--version", **how)
        assert result.rc == 0, result
        assert re.fullmatch(r"doiget \d+\.\d+\.\d+.*\n", result.out), result
        assert len(result.err.splitlines()) == lines, result
        return result

    def serve(self, **how: Any) -> Result:
        """Start the server, shake hands, leave."""
        result = self("serve", input=json.dumps(HELLO) + "\n", **how)
        assert result.rc == 0, result
        assert json.loads(result.out)["result"]["serverInfo"]["name"] == "doiget", result
        return result

    def rows(self, **how: Any) -> dict[str, dict[str, str]]:
        """What doctor says, by name."""
        return {check["name"]: check for check in self("doctor", "--offline", "--json", **how).json()["checks"]}

    @property
    def folders(self) -> list[Path]:
        """What was unpacked into the cache."""
        return sorted((self.run.home.cache / "app").glob("*"))


@pytest.fixture(params=["running", *(pytest.param(v, marks=pytest.mark.long) for v in build_zipapp.PYTHONS)])
def box(request: pytest.FixtureRequest, run: Runner) -> Box:
    if request.param == "running":
        if run.pyz.suffix != ".pyz":
            pytest.skip("this is about the built file")
        return Box(run, sys.executable)
    python = some_python(request.param)
    run.pyz = request.getfixturevalue("file_for_all")
    return Box(run, python)


@pytest.fixture
def mounts() -> Any:
    """`mounts("mount …; …")` makes the front of a command that sees those mounts; they are gone with it."""
    if os.geteuid() or subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounts of one's own need root here")
    return lambda script: ("unshare", "-rm", "sh", "-ec", script + '; "$@"', "sh")


@pytest.fixture
def nobody() -> Any:
    """`nobody(uid)` makes the front of a command that runs as a user of that number."""
    front = ("unshare", "--user")
    if not shutil.which("unshare") or subprocess.run([*front, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces cannot be made here")
    if os.geteuid():
        pytest.skip("to another user the folders of root look like a stranger's here")
    return lambda uid: (*front, f"--map-user={uid}")


# ---------------------------------------------------------------- home and temp


def test_home_unset_and_a_user_nobody_knows(box: Box, nobody: Any) -> None:
    how = {"env": {"HOME": None, **NO_FOLDERS}, "inside": nobody(12345)}
    box.version(**how)
    box.serve(**how)
    assert [path.name for path in box.run.home.tmp.iterdir()] == ["doiget-12345"]


def test_an_empty_home_of_a_user_without_one(box: Box, nobody: Any) -> None:
    """Case ZA-01, too: nobody's home, /nonexistent, is not there; the server starts all the same."""
    how = {"env": {"HOME": "", **NO_FOLDERS}, "inside": nobody(65534)}
    box.version(lines=1, **how)
    assert len(box.serve(**how).err.splitlines()) == 1


def test_a_read_only_home(box: Box, mounts: Any) -> None:
    home = box.run.home.home
    how = {"env": NO_FOLDERS, "inside": mounts(f'mount -t tmpfs -o ro none "{home}"')}
    assert "Read-only file system" in box.version(lines=1, **how).err
    assert box("--version", "--quiet", **how).err == ""
    rows = box.rows(**how)
    assert (rows["file"]["status"], rows["serve"]["status"]) == ("warning", "ok")
    assert f"unpacked into {box.run.home.tmp}/doiget-0/" in rows["file"]["detail"]


def small_machine(box: Box, options: str) -> tuple[str, dict[str, str | None]]:
    """Put every folder that could be unpacked into on a mount with those options."""
    if sys.executable.startswith(("/tmp/", "/var/tmp/")):
        pytest.skip("this Python itself lies where the mount goes")
    keep = f'mount --bind "{box.run.pyz.parent}" /mnt'
    here = "; ".join(f"mount -t tmpfs -o {options} none {folder}" for folder in ("/tmp", "/var/tmp"))
    folders = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "/tmp/me")
    return f"{keep}; {here}; mkdir -m 700 /tmp/me; cd /", {
        **folders,
        "TMPDIR": "/tmp",
        "DOIGET_STORE": "/tmp/me/papers",
    }


def test_a_full_disk_leaves_nothing_and_the_file_runs(box: Box, mounts: Any) -> None:
    script, env = small_machine(box, "size=1m,mode=1777")
    listing = 'run() { "$@"; code=$?; find /tmp /var/tmp -type f >&2; exit $code; }; run'
    inside = mounts(script)
    inside = (*inside[:-2], inside[-2].removesuffix('"$@"') + listing + ' "$@"', inside[-1])
    box.run.pyz = Path("/mnt", box.run.pyz.name)
    assert "No space left on device" in box.version(lines=1, env=env, inside=inside).err


def test_all_folders_noexec(box: Box, mounts: Any) -> None:
    """The commands work without native code, and `serve` says why it does not."""
    script, env = small_machine(box, "noexec,mode=1777")
    box.run.pyz = Path("/mnt", box.run.pyz.name)
    how = {"env": env, "inside": mounts(script)}
    assert "mounted noexec" in box.version(lines=1, **how).err
    assert box("info", DOI, "--quiet", **how).out == "Not in the store.\n"
    result = box("serve", "--quiet", input="", **how)
    assert (result.rc, result.out) == (10, "")
    assert "noexec" in result.err
    assert "DOIGET_PYZ_ROOT" in result.err
    assert "Traceback" not in result.err


def test_a_noexec_cache_means_another_folder(box: Box, mounts: Any) -> None:
    cache = box.run.home.cache.parent
    how = {"inside": mounts(f'mount -t tmpfs -o noexec,mode=700 none "{cache}"')}
    assert "mounted noexec" in box.version(lines=1, **how).err
    assert box.rows(**how)["serve"]["status"] == "ok"


# ---------------------------------------------------------------- many starts, killed starts, locks, damage


@pytest.mark.parametrize("count", [4, pytest.param(8, marks=pytest.mark.long)])
def test_many_first_starts_at_once(box: Box, count: int) -> None:
    """Case ZA-02."""
    with ThreadPoolExecutor(count) as pool:
        seen = list(pool.map(lambda _: box.version().out, range(count)))
    assert len(set(seen)) == 1
    assert len(box.folders) == 1


def test_killed_first_starts_do_no_harm(box: Box) -> None:
    env = {"DOIGET_PYZ_ROOT": None}
    for wait_s in (0.1, 0.2, 0.3):
        started = box.run.spawn("--version", python=box.python, env=env)
        time.sleep(wait_s)
        started.send_signal(signal.SIGKILL)
        started.wait()
    box.version()
    (folder,) = [path for path in box.folders if not path.name.endswith(".tmp")]
    for left in (*box.folders, folder / ".used"):
        age(left, days=2)
    assert "digests" not in box.rows()
    assert box.folders == [folder], "what was left behind is removed a day later"


def age(path: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def test_a_lock_that_somebody_else_holds_stops_no_start(box: Box) -> None:
    """Plain shiv waits for ever for the lock beside its folder."""
    app = box.run.home.cache / "app"
    app.mkdir(parents=True, mode=0o700)
    held = [os.open(path, os.O_RDONLY) for path in (app, app.parent)]
    try:
        for handle in held:
            fcntl.flock(handle, fcntl.LOCK_EX)
        box.version(timeout=30)
    finally:
        for handle in held:
            os.close(handle)


NO_LOCKS = """
#include <errno.h>
int flock(int fd, int how) { (void)fd; (void)how; errno = ENOLCK; return -1; }
"""


def test_a_file_system_without_locks(box: Box, world: World, tmp_path: Path) -> None:
    """Some NFS servers answer ENOLCK: nothing hangs, papers are fetched, doctor says so."""
    if not (compiler := shutil.which("cc")):
        pytest.skip("no C compiler to play such a file system with")
    (tmp_path / "nolock.c").write_text(NO_LOCKS)
    library = tmp_path / "nolock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "nolock.c"], check=True)
    paper = world.paper(DOI)
    env = {"LD_PRELOAD": str(library)}
    box.version(env=env, timeout=30)
    assert box("fetch", DOI, "--json", env=env).json()["sha256"] == paper.sha256
    assert "no locks (No locks available)" in box("doctor", "--offline", env=env).out


def test_damage_is_noticed_and_repaired(box: Box) -> None:
    """What is gone at once; an edit that keeps size and date by doctor, and by the first start of the next day."""
    box.version()
    (folder,) = box.folders
    native = min(folder.rglob("*.so"), key=lambda path: path.stat().st_size)
    for gone in (folder / "httpx/__init__.py", native, folder / "doiget.py"):
        gone.unlink()
    assert "digests" not in box.rows()
    assert native.exists()
    edited = folder / "starlette/schemas.py"  # not one that doctor needs
    before, data = edited.stat(), edited.read_bytes()
    edited.write_bytes(data.replace(b"import", b"IMPORT", 1))
    os.utime(edited, (before.st_atime, before.st_mtime))
    assert box.rows()["digests"]["detail"].startswith("1 not as built, starlette/schemas.py first")
    age(folder / ".used", days=2)
    assert "digests" not in box.rows()
    assert edited.read_bytes() == data


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomli has compiled wheels from 3.11 on")
def test_records_are_parsed_by_compiled_code(box: Box) -> None:
    """An index and an export read every record: what the file unpacked and runs from is the compiled tomli."""
    box.version()
    (folder,) = box.folders
    code = "import tomli, sys; sys.stdout.write(tomli._parser.__file__)"
    env = {"PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert done.stdout.decode().startswith(str(folder))
    assert done.stdout.endswith((b".so", b".pyd"))


def test_a_new_build_removes_builds_that_nobody_used_for_a_month(box: Box) -> None:
    app = box.run.home.cache / "app"
    app.mkdir(parents=True, mode=0o700)
    for number, days in ((1, 31), (2, 29)):
        folder = app / f"{number:010d}-cp311-linux_x86_64"
        folder.mkdir()
        (folder / ".used").touch()
        age(folder / ".used", days)
    box.version()
    assert [folder.name[9] for folder in box.folders if folder.name.startswith("000000000")] == ["2"]


# ---------------------------------------------------------------- other Pythons, other modules


def test_pythonpath_does_not_shadow_the_bundle(box: Box, world: World, tmp_path: Path) -> None:
    world.paper(DOI)
    for name in ("httpx", "anyio", "doiget", "platformdirs", "pydantic_core"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    env = {"PYTHONPATH": str(tmp_path)}
    assert box("resolve", DOI, env=env).rc == 0
    box.serve(env=env)
    assert "PYTHONPATH" in box.rows(env=env)["trust"]["detail"]


@pytest.mark.parametrize(
    "version", ["3.10", "3.13", *(pytest.param(v, marks=pytest.mark.long) for v in ("3.11", "3.12", "3.14"))]
)
def test_the_file_of_one_python_run_by_another(run: Runner, version: str) -> None:
    """Newer: commands work, `serve` says why not. Older: one line."""
    own, other = sys.version_info[1], int(version.partition(".")[2])
    if own == other or run.pyz.suffix != ".pyz":
        pytest.skip("this is about a file that another Python was built for")
    box = Box(run, some_python(version))
    if other < own:
        result = box("--version")
        assert (result.rc, result.out) == (2, "")
        assert result.err.startswith(f"this doiget.pyz was built for Python 3.{own} or newer, this is {version} (")
        assert len(result.err.splitlines()) == 1
        return
    box.version(lines=1)
    assert box("info", DOI, "--quiet").out == "Not in the store.\n"
    result = box("serve", "--quiet", input="")
    assert (result.rc, result.out) == (10, "")
    assert f"native code in this file is for cp3{own}" in result.err
    assert "file for all of them" in result.err


@pytest.mark.parametrize("version", OLD_PYTHONS)
def test_an_old_python_gets_one_line(run: Runner, version: str) -> None:
    """Case ZA-04."""
    if run.pyz.suffix != ".pyz":
        pytest.skip("this is about the built file")
    python = some_python(version)
    result = run("fetch", DOI, python=python)
    assert (result.rc, result.out) == (2, "")
    assert result.err == f"doiget needs Python 3.10 or newer, this is {version} ({Path(python).resolve()})\n" or (
        result.err.startswith(f"doiget needs Python 3.10 or newer, this is {version} (") and result.err.count("\n") == 1
    )


def test_names_are_short_enough_for_windows(pyz: Path) -> None:
    """260 characters for a whole path, of a user with a name of 20."""
    if pyz.suffix != ".pyz":
        pytest.skip("this is about the built file")
    names = [re.sub(r"^site-packages/(_native/[^/]+/)?", "", name) for name in zipfile.ZipFile(pyz).namelist()]
    unpacked = [name for name in names if "/licenses/" not in name and "/sboms/" not in name]
    root = rf"C:\Users\{'x' * 20}\AppData\Local\doiget\app\0123456789-cp314t-win_amd64" + "\\"
    compiled = len("__pycache__/" + ".cpython-314.pyc.140234567890123") - len(".py")
    assert max(len(root) + len(name) + compiled for name in unpacked) < 240


# ---------------------------------------------------------------- where the file is, what a start leaves


def test_odd_names_of_the_file(box: Box, home: Home) -> None:
    """Case ZA-05: spaces and letters of the world, by any way to name it; the snippet for a host starts it."""
    folder, link = home.root / "my tools" / "ünï", home.root / "a link"
    folder.mkdir(parents=True)
    copy = Path(shutil.copy2(box.run.pyz, folder / "doiget.pyz"))
    link.symlink_to(copy)
    path = os.pathsep.join([str(Path(box.python).parent), os.environ["PATH"]])
    env = box.run.env({"PATH": path})

    def output(*command: str | Path, **how: Any) -> Any:
        return json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True, **how).stdout)

    for command in (["./doiget.pyz"], [copy], [link], [box.python, "doiget.pyz"], [box.python, link]):
        entry = output(*command, "mcp-config", "cursor", cwd=folder)["mcpServers"]["doiget"]
        assert entry["args"] == [str(link if link in command else copy), "serve"]
    answer = output(entry["command"], *entry["args"], cwd="/", input=json.dumps(HELLO))
    assert answer["result"]["serverInfo"]["name"] == "doiget"


@pytest.mark.parametrize("runs", [2, pytest.param(20, marks=pytest.mark.long)])
def test_requests_leave_nothing_in_temp(box: Box, world: World, net: FakeInternet, runs: int) -> None:
    """Case ZA-03: neither the CA nor anything else is copied out of the file at each run."""
    world.crossref_work(DOI)
    for _ in range(runs):
        assert box("resolve", DOI, "--no-cache").rc == 0
    assert list(box.run.home.tmp.iterdir()) == []
    assert len(net.requests(host="api.crossref.org")) == runs


@pytest.mark.long
def test_first_starts_are_quick(box: Box) -> None:
    """Aims: 1 s for `fetch --help`, 3 s for `serve` (tests/bench.py measures); 5 times as much for slow machines."""
    assert box("fetch", "--help").seconds < 5
    shutil.rmtree(box.run.home.cache)
    assert box.serve().seconds < 15


def test_the_bill_of_materials_is_printed(box: Box) -> None:
    result = box("sbom")
    bill = result.json()
    assert (result.rc, bill["bomFormat"]) == (0, "CycloneDX")
    assert {"httpx", "mcp"} <= {part["name"] for part in bill["components"]}
    assert box("sbom", "--json").stdout == result.stdout
    assert zipfile.ZipFile(box.run.pyz).read("site-packages/doiget_sbom.json") == result.stdout


def test_no_bill_of_materials_without_the_file(run: Runner) -> None:
    result = run.spawn("sbom", "--json", python=sys.executable, flags=("-c", SOURCE_MAIN, str(ROOT)))
    out, err = result.communicate(timeout=30)
    assert (result.returncode, err) == (2, b"")
    assert "doiget.pyz sbom" in json.loads(out)["error"]["hint"]


SOURCE_MAIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); sys.argv.pop(1); import doiget; sys.exit(doiget.main())"
