"""launcher.py in a small file of its own: a stand-in doiget, a few modules, one real compiled module.

Each test starts the file as a user would, in an environment built from nothing.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.machinery
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

import build_zipapp
import launcher

TAG = launcher.platform_tag()
#: A user nobody knows, another one in each run, for their folder in /tmp is shared by all runs.
STRANGER = 100_000 + os.getpid()
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
#: Some compiled module of this Python, to stand for pydantic_core and its like.
PROBE = min(
    (path for folder in sys.path for path in Path(folder).glob(f"lib-dynload/*{SUFFIX}")),
    key=lambda path: path.stat().st_size,
)
#: What the stand-in prints: where it runs and what the launcher tells it.
STAND_IN = """
import json, sys
def main():
    boot = sys.modules["_doiget_boot"]
    import pure
    facts = {"folder": boot.FOLDER, "source": boot.SOURCE, "native": boot.NATIVE, "why": boot.WHY, "pyz": boot.PYZ}
    facts |= {"argv": sys.argv, "path": sys.path, "pure": pure.__file__, "file": __file__, "damaged": boot.damaged()}
    if "native" in sys.argv:
        import PROBE as probe
        assert probe.__file__.startswith(boot.FOLDER)
    print(json.dumps(facts))
    return 0
""".replace("PROBE", PROBE.name.partition(".")[0])


def write_pyz(path: Path, pythons: str = launcher.python_tag(), extra: dict[str, bytes] | None = None) -> Path:
    native = f"_native/{TAG}-{launcher.python_tag()}/"
    staged = {
        "doiget.py": STAND_IN.encode(),
        "pure.py": b"here = True\n",
        "deep/er/__init__.py": b"",
        native + PROBE.name: PROBE.read_bytes(),
        f"_native/{TAG}/for_every_python.txt": b"",
        f"_native/{TAG}-cp27/probe.so": b"another Python's",
        "_native/other_platform/probe.so": b"another platform's",
        "some.dist-info/licenses/LICENSE": b"only to be read in the file",
        **(extra or {}),
    }
    listing = build_zipapp.digests(staged).encode()
    facts = {"commit": "abc", "digest": hashlib.sha256(listing).hexdigest(), "pythons": pythons, "platforms": TAG}
    entries = {f"site-packages/{name}": data for name, data in staged.items()} | {"digests.txt": listing}
    entries |= build_zipapp.launcher_modules(facts, "doiget pure deep probe")
    path.write_bytes(build_zipapp.write_zip(entries, b"#!/usr/bin/env python3\n"))
    path.chmod(0o755)
    return path


class Machine:
    """A home, a temp folder and the file, for one user."""

    def __init__(self, top: Path) -> None:
        self.home, self.temp = top / "home", top / "temp"
        self.home.mkdir()
        self.temp.mkdir()
        self.pyz = write_pyz(top / "doiget.pyz")
        self.env = {"HOME": str(self.home), "TMPDIR": str(self.temp), "PATH": os.defpath}
        self.uid: int | None = None
        self.python = sys.executable

    def start(self, *arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
        if self.uid is not None:
            how |= {"user": self.uid, "group": self.uid, "extra_groups": []}
        command = [self.python, str(self.pyz), *arguments]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60, check=False, **how)

    def facts(self, *arguments: str, lines: int = 0) -> dict:
        """Start, demand success and so many lines on stderr, and return what the stand-in printed."""
        done = self.start(*arguments)
        assert done.returncode == 0, done.stderr
        assert len(done.stderr.splitlines()) == lines, done.stderr
        return json.loads(done.stdout)

    @property
    def cache(self) -> Path:
        return self.home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "doiget" / "app"

    def become(self, uid: int) -> None:
        """Go on as somebody else, with a Python that they may run."""
        self.uid, self.python = uid, python_for(uid)
        for path in (self.home, self.temp):
            os.chown(path, uid, uid)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for path in tmp_path.parents:  # pytest's own folders are 0700: let another user reach the file
        if path.owner() == Path.home().owner() and path.stat().st_mode & 0o077 == 0:
            path.chmod(0o711)
    tmp_path.chmod(0o755)
    return Machine(tmp_path)


def python_for(uid: int) -> str:
    ask = "import sys, importlib.machinery; sys.exit(sys.argv[1] not in importlib.machinery.EXTENSION_SUFFIXES)"
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            done = subprocess.run([python, "-c", ask, SUFFIX], user=uid, group=uid, cwd="/", check=False)
            if done.returncode == 0:
                return python
    pytest.skip(f"no Python {launcher.python_tag()} that other users may run")


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")


# ---------------------------------------------------------------- the normal case


def test_first_and_second_start_use_the_cache(machine: Machine) -> None:
    first, second = machine.facts(), machine.facts()
    assert first == second
    assert Path(first["folder"]).parent == machine.cache
    assert (first["source"], first["native"], first["why"], first["damaged"]) == ("cache", True, "", [])
    assert first["pyz"] == str(machine.pyz)
    assert first["argv"][0] == str(machine.pyz)
    assert not any(str(machine.pyz) in entry for entry in first["path"])


def test_only_what_this_python_needs_is_unpacked(machine: Machine) -> None:
    folder = Path(machine.facts("native")["folder"])
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {name for name in names if "__pycache__" not in name} == {
        ".files",
        ".used",
        "deep/er/__init__.py",
        "doiget.py",
        "for_every_python.txt",
        PROBE.name,
        "pure.py",
    }


def test_the_folder_is_private_whatever_the_umask(machine: Machine) -> None:
    machine.facts()
    old = os.umask(0)
    try:
        folder = Path(machine.facts()["folder"])
    finally:
        os.umask(old)
    assert all(path.stat().st_mode & 0o077 == 0 for path in [machine.cache, folder, folder / "pure.py"])


def test_a_quick_start_compiles_nothing_twice(machine: Machine) -> None:
    machine.env["PYTHONDONTWRITEBYTECODE"] = "1"
    folder = Path(machine.facts()["folder"])
    assert list(folder.glob("__pycache__/doiget.*.pyc"))


def test_a_symlink_to_the_file_keeps_its_name(machine: Machine) -> None:
    link = machine.pyz.with_name("d")
    link.symlink_to(machine.pyz)
    machine.pyz = link
    facts = machine.facts()
    assert facts["pyz"] == facts["argv"][0] == str(link)


def test_a_relative_path_to_the_file_works(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    machine.pyz = Path("../doiget.pyz")
    facts = json.loads(machine.start(cwd=tmp_path / "elsewhere").stdout)
    assert (facts["source"], facts["pyz"]) == ("cache", str(tmp_path / "doiget.pyz"))
    assert facts["argv"] == ["../doiget.pyz"]
    assert not any("doiget.pyz" in entry for entry in facts["path"])


def test_exit_codes_come_through(machine: Machine) -> None:
    write_pyz(machine.pyz, extra={"doiget.py": b"def main():\n    return 7\n"})
    assert machine.start().returncode == 7


# ---------------------------------------------------------------- which root


def test_the_asked_root_comes_first(machine: Machine, tmp_path: Path) -> None:
    machine.facts()  # a ready folder in the cache does not win over the one asked for
    machine.env["DOIGET_PYZ_ROOT"] = str(tmp_path / "asked")
    facts = machine.facts()
    assert (Path(facts["folder"]).parent, facts["source"]) == (tmp_path / "asked", "DOIGET_PYZ_ROOT")
    assert not stat.S_IMODE((tmp_path / "asked").stat().st_mode) & 0o022


@pytest.mark.parametrize("value", ["", "  ", "${user_config.root}"])
def test_a_blank_or_unfilled_setting_is_unset(machine: Machine, value: str) -> None:
    machine.env["DOIGET_PYZ_ROOT"] = machine.env["XDG_CACHE_HOME"] = value
    assert machine.facts()["source"] == "cache"


def test_a_relative_root_is_refused(machine: Machine) -> None:
    machine.env["DOIGET_PYZ_ROOT"] = "here"
    facts = machine.facts(lines=1)
    assert (facts["source"], "not an absolute path" in facts["why"]) == ("cache", True)


def test_an_administrators_read_only_root_is_used(machine: Machine, tmp_path: Path) -> None:
    root = tmp_path / "shared"
    machine.env["DOIGET_PYZ_ROOT"] = str(root)
    machine.facts()
    if os.getuid() == 0:
        machine.become(STRANGER)
    else:
        root.chmod(0o555)
    assert machine.facts()["folder"].startswith(str(root))
    root.chmod(0o755)


def test_without_home_the_user_database_stands_in(machine: Machine) -> None:
    for value in (None, ""):
        machine.env.pop("HOME", None) if value is None else machine.env.update(HOME=value)
        machine.env["XDG_CACHE_HOME"] = str(machine.temp / "xdg")  # not the tester's own cache
        machine.temp.joinpath("xdg").mkdir(exist_ok=True)
        assert machine.facts()["source"] == "cache"


@needs_root
def test_home_unset_and_a_user_nobody_knows(machine: Machine) -> None:
    del machine.env["HOME"]
    machine.become(STRANGER)
    facts = machine.facts("native")
    assert (facts["source"], facts["why"]) == ("temp", "")


@needs_root
@pytest.mark.parametrize("home", ["", "/nonexistent", "read-only"])
def test_a_useless_home_means_temp_and_one_line(machine: Machine, home: str) -> None:
    machine.env["HOME"] = str(machine.home) if home == "read-only" else home
    machine.become(STRANGER if home else 65534)  # nobody's home is /nonexistent
    os.chown(machine.home, 0, 0)
    facts = machine.facts("native", lines=1)
    assert (facts["source"], facts["native"]) == ("temp", True)
    assert Path(facts["folder"]).parent == machine.temp / f"doiget-{machine.uid}"
    assert stat.S_IMODE((machine.temp / f"doiget-{machine.uid}").stat().st_mode) == 0o700
    assert machine.facts("--quiet", lines=0)["folder"] == facts["folder"]


@needs_root
def test_nothing_can_be_written(machine: Machine) -> None:
    """The file itself serves; what was written is nothing at all."""
    machine.become(STRANGER)
    machine.env["TMPDIR"] = "/proc/none"
    for path in (f"/tmp/doiget-{STRANGER}", f"/var/tmp/doiget-{STRANGER}"):
        Path(path).mkdir(exist_ok=True)  # root's: not private to this user
    os.chown(machine.home, 0, 0)
    try:
        facts = machine.facts(lines=1)
        assert (facts["folder"], facts["source"], facts["native"]) == (None, None, False)
        assert facts["pure"] == f"{machine.pyz}/site-packages/pure.py"
        assert "not private" in facts["why"]
        assert list(machine.home.iterdir()) == []
    finally:
        for path in (f"/tmp/doiget-{STRANGER}", f"/var/tmp/doiget-{STRANGER}"):
            Path(path).rmdir()


# ---------------------------------------------------------------- whom to trust


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_root_that_others_can_write_is_refused(machine: Machine, tmp_path: Path, mode: int) -> None:
    root = tmp_path / "open"
    root.mkdir()
    root.chmod(mode)
    machine.env["DOIGET_PYZ_ROOT"] = str(root)
    facts = machine.facts(lines=1)
    assert (facts["source"], list(root.iterdir())) == ("cache", [])


def test_a_root_below_a_folder_that_others_can_write_is_refused(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    machine.env["DOIGET_PYZ_ROOT"] = str(tmp_path / "open" / "root")
    assert "open is writable by others" in machine.facts(lines=1)["why"]


def test_a_link_that_others_can_set_anew_is_not_followed_twice(machine: Machine, tmp_path: Path) -> None:
    """Only where it leads is looked at, so only that is used."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "good").mkdir(0o755)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "good")
    machine.env["DOIGET_PYZ_ROOT"] = str(tmp_path / "open" / "link")
    assert Path(machine.facts()["folder"]).parent == tmp_path / "good"


def test_a_stranger_owns_nothing_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a folder above the root nor a build in it."""
    root, look = tmp_path / "above" / "root", os.lstat
    build = Path(launcher.folder_in(str(root)))
    build.mkdir(parents=True)
    for path in (build, root, root.parent):
        path.chmod(0o755)
    launcher.refuse_untrusted("cache", str(root))
    for strange in (build, root, root.parent):
        facts = SimpleNamespace(st_uid=STRANGER, st_gid=0, st_mode=0o40755)
        monkeypatch.setattr(os, "lstat", lambda path, at=str(strange), facts=facts: facts if path == at else look(path))
        with pytest.raises(launcher.Unusable, match="belongs to another user"):
            launcher.refuse_untrusted("cache", str(root))


@needs_root
def test_a_strangers_root_is_refused(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "strange").mkdir()
    os.chown(tmp_path / "strange", STRANGER, STRANGER)
    machine.env["DOIGET_PYZ_ROOT"] = str(tmp_path / "strange" / "root")
    assert "belongs to another user" in machine.facts(lines=1)["why"]


@needs_root
def test_a_users_private_group_is_no_stranger(machine: Machine) -> None:
    machine.become(STRANGER)
    machine.home.chmod(0o775)
    assert machine.facts()["source"] == "cache"


def test_a_noexec_root_is_passed_over(machine: Machine, tmp_path: Path) -> None:
    root = tmp_path / "noexec"
    root.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,mode=755", "tmpfs", root], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        machine.env["DOIGET_PYZ_ROOT"] = str(root)
        assert "mounted noexec" in machine.facts("native", lines=1)["why"]
    finally:
        subprocess.run(["umount", root], check=True)


def test_native_code_that_does_not_load_means_another_root(machine: Machine) -> None:
    write_pyz(machine.pyz, extra={f"_native/{TAG}-{launcher.python_tag()}/{PROBE.name}": b"no library"})
    facts = machine.facts(lines=1)
    assert (facts["folder"], facts["native"]) == (None, False)
    assert "native code cannot be loaded" in facts["why"]
    assert list(machine.cache.iterdir()) == []


def test_the_bundle_wins_over_pythonpath_and_pth_lines(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "pure.py").write_text("raise SystemExit('shadowed')")
    machine.env["PYTHONPATH"] = str(tmp_path)
    folder = Path(machine.facts()["folder"])
    (folder / "evil.pth").write_text("import sys; sys.exit('a .pth line was executed')")
    assert machine.facts()["pure"] == str(folder / "pure.py")


def test_a_module_imported_before_the_launcher_is_replaced(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "pure.py").write_text("")
    (tmp_path / "sitecustomize.py").write_text("import pure")
    machine.env["PYTHONPATH"] = str(tmp_path)
    facts = machine.facts()
    assert facts["pure"] == f"{facts['folder']}/pure.py"


# ---------------------------------------------------------------- damage, repair, many at once


@pytest.mark.parametrize("harm", ["unlink", "empty", "edit", "listing", "stamp", "folder"])
def test_damage_is_noticed_and_repaired(machine: Machine, harm: str) -> None:
    folder = Path(machine.facts()["folder"])
    victim = folder / {"listing": ".files", "stamp": ".used", "folder": "deep/er"}.get(harm, "pure.py")
    if harm == "folder":
        (victim / "__init__.py").unlink()
        victim.rmdir()
    elif harm in ("empty", "edit"):
        victim.write_bytes(b"" if harm == "empty" else b"here = None\n")
    else:
        victim.unlink()
    assert machine.facts()["damaged"] == []
    assert (folder / "pure.py").read_bytes() == b"here = True\n"
    assert (folder / "deep/er/__init__.py").exists()
    assert (folder / ".used").exists()


def test_damage_that_kept_size_and_date_is_found_within_a_day(machine: Machine) -> None:
    folder = Path(machine.facts()["folder"])
    (folder / "pure.py").write_bytes(b"HERE = True\n")
    os.utime(folder / "pure.py", (launcher.FILE_TIME, launcher.FILE_TIME))
    assert machine.facts()["damaged"] == ["pure.py"]
    age(folder / ".used", days=2)
    assert machine.facts()["damaged"] == []


def test_a_damaged_file_is_refused_in_one_line(machine: Machine) -> None:
    whole = machine.pyz.read_bytes()
    with zipfile.ZipFile(machine.pyz) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    machine.pyz.write_bytes(build_zipapp.write_zip(entries | {"site-packages/pure.py": b"here = 'other'\n"}))
    facts = machine.facts(lines=1)
    assert "pure.py has the wrong digest" in facts["why"]
    assert list(machine.cache.iterdir()) == []
    machine.pyz.write_bytes(whole)
    assert machine.facts()["source"] == "cache"


def test_eight_first_starts_at_once(machine: Machine) -> None:
    write_pyz(machine.pyz, extra={f"many/m{i}.py": b"#" * i for i in range(300)})
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: machine.facts("native"), range(8)))
    assert len({facts["folder"] for facts in seen}) == 1
    assert [path.name for path in machine.cache.iterdir()] == [Path(seen[0]["folder"]).name]


def test_killed_first_starts_do_no_harm(machine: Machine) -> None:
    write_pyz(machine.pyz, extra={f"many/m{i}.py": b"#" * i for i in range(500)})
    for wait_s in (0.03, 0.06, 0.09, 0.12, 0.15, 0.2):
        started = subprocess.Popen([sys.executable, machine.pyz], env=machine.env, stdout=subprocess.DEVNULL)
        time.sleep(wait_s)
        started.send_signal(signal.SIGKILL)
        started.wait()
    facts = machine.facts("native")
    assert facts["damaged"] == []
    for left in machine.cache.glob("*.tmp"):
        age(left, days=1)
    age(Path(facts["folder"]) / ".used", days=2)
    machine.facts()
    assert [path.name for path in machine.cache.iterdir()] == [Path(facts["folder"]).name]


def test_a_full_disk_leaves_nothing_and_the_file_still_runs(machine: Machine) -> None:
    write_pyz(machine.pyz, extra={"large.bin": os.urandom(300_000)})
    limit = (100_000, 100_000)  # stands for a full disk: writing fails half way
    done = machine.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1), done.stderr
    assert json.loads(done.stdout)["folder"] is None
    assert list(machine.cache.iterdir()) == []
    assert not list(machine.temp.rglob("*.tmp"))


# ---------------------------------------------------------------- clearing up


def age(path: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def other_build(machine: Machine, name: str, days: float) -> Path:
    folder = machine.cache / name
    folder.mkdir(parents=True)
    (folder / ".used").touch()
    age(folder / ".used", days)
    age(folder, days)
    return folder


def test_unused_builds_and_leftovers_are_removed_and_nothing_else(machine: Machine) -> None:
    machine.cache.mkdir(parents=True)
    machine.cache.chmod(0o700)
    old = other_build(machine, f"0123456789-cp311-{TAG}", days=31)
    recent = other_build(machine, f"1123456789-cp311-{TAG}", days=29)
    left = other_build(machine, f"2123456789-cp311-{TAG}.00ff00ff.tmp", days=1)
    running = other_build(machine, f"3123456789-cp311-{TAG}.00ff00ff.tmp", days=0)
    foreign = other_build(machine, "my-things", days=400)
    link = machine.cache / f"4123456789-cp311-{TAG}"
    link.symlink_to(foreign)
    machine.facts()
    assert [path.exists() for path in (old, left)] == [False, False]
    assert [path.exists() for path in (recent, running, foreign, link)] == [True] * 4


@needs_root
def test_another_users_old_build_stays(machine: Machine) -> None:
    machine.cache.mkdir(parents=True)
    machine.cache.chmod(0o700)
    old = other_build(machine, f"0123456789-cp311-{TAG}", days=31)
    os.chown(old, STRANGER, STRANGER)
    machine.facts()
    assert old.exists()


def test_the_stamp_is_renewed_once_a_day(machine: Machine) -> None:
    stamp = Path(machine.facts()["folder"]) / ".used"
    for days, renewed in ((0.5, False), (1.5, True)):
        age(stamp, days)
        machine.facts()
        assert (time.time() - stamp.stat().st_mtime < 3600) is renewed


# ---------------------------------------------------------------- other Pythons


def test_a_file_for_another_python_still_runs_what_is_pure(machine: Machine) -> None:
    older = f"cp3{sys.version_info[1] - 1}"
    write_pyz(machine.pyz, pythons=older)
    facts = machine.facts(lines=1)
    assert (facts["source"], facts["native"]) == ("cache", False)
    assert older in facts["why"]


def test_native_code_that_this_python_does_not_want_need_not_load(machine: Machine) -> None:
    write_pyz(machine.pyz, f"cp3{sys.version_info[1] - 1}", {f"_native/{TAG}/stable.abi3.so": b"no library"})
    assert machine.facts(lines=1)["source"] == "cache"


def test_a_file_for_newer_pythons_only_gets_one_line(machine: Machine) -> None:
    write_pyz(machine.pyz, pythons="cp399 cp398t")
    done = machine.start()
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("this doiget.pyz was built for Python 3.98 or newer, this is 3.")
    assert not machine.cache.exists()


def test_what_this_python_has_installed_stays_out(machine: Machine) -> None:
    """Libraries use extras where they find them; a stray one must neither break nor slow this file."""
    path = machine.facts()["path"]
    assert not [entry for entry in path if Path(entry).name in {"site-packages", "dist-packages"}]
    assert len(path) > 2


@pytest.mark.parametrize("version", [(2, 7), (3, 6), (3, 9)])
def test_an_old_python_gets_one_line(version: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        launcher.refuse_old_python(version)
    seen = capsys.readouterr()
    assert (stopped.value.code, seen.out) == (2, "")
    assert seen.err == f"doiget needs Python 3.10 or newer, this is {version[0]}.{version[1]} ({sys.executable})\n"


def old_pythons() -> list[str]:
    """Return interpreters older than 3.10 that this machine happens to have."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += Path.home().glob(".pyenv/versions/*/bin")
    names = ["python2.7", "python3.6", "python3.7", "python3.8", "python3.9"]
    found = {name: folder / name for name in names for folder in folders if runs(folder / name)}
    return [str(path) for path in found.values()]


def runs(path: Path) -> bool:
    return path.exists() and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0


def test_real_old_pythons_get_one_line(machine: Machine) -> None:
    for python in old_pythons():
        done = subprocess.run([python, machine.pyz], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, ""), python
        assert done.stderr.startswith("doiget needs Python 3.10 or newer, this is "), python
        assert len(done.stderr.splitlines()) == 1


def test_the_launcher_has_no_syntax_that_only_python_3_knows() -> None:
    """Stand in where no old Python is at hand."""
    tree = ast.parse(Path(launcher.__file__).read_text())
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal, ast.Starred, ast.AsyncFunctionDef, ast.Match)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert not [node.name for node in functions if node.returns or node.args.kwonlyargs or node.args.posonlyargs]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.cause]
