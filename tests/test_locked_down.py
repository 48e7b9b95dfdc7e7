"""docs/LOCKED_DOWN.md: each block marked `# tested` is run as it stands, with hosts and folders of the test's own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Home, Runner
    from fake_internet import FakeInternet
    from worlds import World

PAGE = Path(__file__).parent.parent / "docs" / "LOCKED_DOWN.md"
PROBE = "10.1038/nphys1170"
#: Every section with tested blocks, and how many; a block that no test here runs must not say that it is tested.
TESTED = {
    "Locked-down machines": 2,
    "Folders that cannot be written or executed": 3,
    "Proxies": 2,
    "Private certificate authorities": 1,
    "No network at all": 3,
    "Upgrade": 1,
    "Remove every trace": 1,
}


def blocks() -> dict[str, list[str]]:
    """Return the tested blocks by section."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^##? (?!tested)", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        if scripts := re.findall(r"^```sh\n(# tested.*?)^```", section, re.MULTILINE | re.DOTALL):
            found[title] = scripts
    return found


def test_each_tested_block_has_its_test() -> None:
    assert {title: len(scripts) for title, scripts in blocks().items()} == TESTED
    unmarked = re.findall(r"^```(?:sh|bash|console|powershell)\n(?!# tested)(.*)", PAGE.read_text(), re.MULTILINE)
    assert not unmarked, "a recipe is tested, or told in words and marked as untested"


@dataclass
class Machine:
    """A user at a shell, in a folder with the file."""

    run: Runner
    desk: Path
    replaced: dict[str, str] = field(default_factory=dict)

    def shell(self, script: str, status: int = 0, **changes: str | None) -> subprocess.CompletedProcess[str]:
        """Run a recipe to its end; every command of it must succeed, unless another status is given."""
        folders = dict.fromkeys(("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "DOIGET_STORE"))
        tools = f"{self.run.home.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
        env = self.run.env({**folders, "PATH": tools, **changes})
        for old, new in self.replaced.items():
            assert old in script
            script = script.replace(old, new)
        command = ["sh", "-euc", script]
        done = subprocess.run(command, cwd=self.desk, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == status, f"{script}\n{done.stdout}\n{done.stderr}"
        return done

    def doctor(self, **changes: str | None) -> dict[str, dict[str, str]]:
        shown = self.shell("python3 doiget.pyz doctor --json --offline", **changes).stdout
        return {check["name"]: check for check in json.loads(shown)["checks"]}


@pytest.fixture
def machine(run: Runner, home: Home, world: World) -> Machine:
    if run.pyz.suffix != ".pyz":
        pytest.skip("this is about the built file")
    world.doi_org.register(PROBE, "Crossref")
    tools = home.root / "bin"
    tools.mkdir()
    (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python3").chmod(0o755)
    for name in ("doiget.pyz", "doiget.pyz.sha256"):
        shutil.copy2(run.pyz.with_name(name), home.cwd)
    return Machine(run, home.cwd)


def test_the_first_look(machine: Machine, net: FakeInternet) -> None:
    doctor, demo = blocks()["Locked-down machines"]
    assert "All well." in machine.shell(doctor).stdout
    net.clear()
    assert "as expected" in machine.shell(demo, HTTPS_PROXY=net.dead_proxy_url).stdout
    assert net.connects() == []


def test_another_root(machine: Machine, home: Home) -> None:
    script, _, _ = blocks()["Folders that cannot be written or executed"]
    machine.replaced = {"/scratch": str(home.root)}
    machine.shell(script, DOIGET_PYZ_ROOT=None)
    assert len(list((home.root / "me" / "doiget").iterdir())) == 1
    assert not (home.home / ".cache").exists()


def test_other_folders_for_everything(machine: Machine, home: Home) -> None:
    _, script, _ = blocks()["Folders that cannot be written or executed"]
    machine.replaced = {"/scratch": str(home.root)}
    shown = machine.shell(script).stdout
    for name in ("papers", "access.log", "cache/doiget", "config/doiget/config.toml"):
        assert f"{home.root}/me/{name}" in shown
    assert list(home.home.iterdir()) == []


def test_one_folder_for_all_users(machine: Machine, home: Home) -> None:
    """The administrator's recipe, then a start by a user who may only read there."""
    _, _, script = blocks()["Folders that cannot be written or executed"]
    machine.replaced = {"/opt": str(home.root / "opt")}
    machine.shell(script, DOIGET_PYZ_ROOT=None)
    shared = home.root / "opt" / "doiget"
    assert [path for path in shared.rglob("*") if path.stat().st_mode & 0o022] == []
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in shared.rglob("*"))
    assert list(shared.glob("app/*/__pycache__/doiget.*.pyc"))
    before = sorted(shared.rglob("*"))
    for folder in {path.parent for path in before}:
        folder.chmod(0o555)
    machine.replaced = {}
    rows = machine.doctor(DOIGET_PYZ_ROOT=str(shared / "app"))
    for folder in {path.parent for path in before}:
        folder.chmod(0o755)
    assert "as DOIGET_PYZ_ROOT asks" in rows["file"]["detail"]
    assert {rows["file"]["status"], rows["serve"]["status"]} == {"ok"}
    assert sorted(shared.rglob("*")) == before


def test_a_proxy_in_the_settings_and_one_with_a_password(machine: Machine, net: FakeInternet) -> None:
    plain, secret = blocks()["Proxies"]
    machine.replaced = {"proxy.example.org:3128": f"127.0.0.1:{net.port}"}
    shown = machine.shell(plain, HTTPS_PROXY=None).stdout
    assert f"http://127.0.0.1:{net.port} (set by config.toml); it connects us" in shown
    machine.replaced = {}
    machine.shell("python3 doiget.pyz config set network.proxy ''", HTTPS_PROXY=None)
    machine.replaced = {"proxy.example.org:3128": f"127.0.0.1:{net.port}"}
    net.require_auth("me", "p@ss")
    shown = machine.shell(secret, HTTPS_PROXY=None)
    assert "set by HTTPS_PROXY in the environment); it connects us" in shown.stdout
    assert "p%40ss" not in shown.stdout + shown.stderr
    assert "p@ss" not in shown.stdout + shown.stderr


def test_a_private_authority(machine: Machine, net: FakeInternet) -> None:
    (script,) = blocks()["Private certificate authorities"]
    machine.replaced = {"/etc/ssl/corporate.pem": str(net.ca_file)}
    shown = machine.shell(script, SSL_CERT_FILE=None).stdout
    assert f"{net.ca_file} (set by config.toml); the handshake with doi.org succeeded" in shown


def test_an_air_gap(machine: Machine, world: World, net: FakeInternet, home: Home) -> None:
    """Two stores, one stick: only the middle step meets the network."""
    wish, get, bring = blocks()["No network at all"]
    world.paper("10.1000/one")
    world.paper("10.1000/two")
    (machine.desk / "reading.txt").write_text("10.1000/one and then\nhttps://doi.org/10.1000/two\n")
    stick = home.root / "stick"
    stick.mkdir()
    here, there = ({"DOIGET_STORE": str(home.root / name)} for name in ("here", "there"))
    machine.replaced = {"/media/stick": str(stick)}
    machine.shell(wish, status=6, **here)
    assert net.connects() == []
    packed = machine.shell(get, **there).stdout
    digest = re.search(r"\b[0-9a-f]{64}\b", packed)
    assert digest
    assert len(zipfile.ZipFile(stick / "papers.zip").namelist()) == 5
    net.clear()
    machine.replaced |= {"DIGEST": digest[0]}
    machine.shell(bring, **here)
    machine.replaced = {}
    listed = json.loads(machine.shell("python3 doiget.pyz recent --json --offline", **here).stdout)
    assert {entry["ref"] for entry in listed["entries"]} == {"10.1000/one", "10.1000/two"}
    assert all(entry["path"] for entry in listed["entries"])
    assert net.connects() == []


def test_an_upgrade(machine: Machine) -> None:
    (script,) = blocks()["Upgrade"]
    new = machine.desk / "new"
    new.mkdir()
    for path in machine.desk.glob("doiget.pyz*"):
        path.rename(new / path.name)
    (machine.desk / "doiget.pyz").write_text("the old one")
    shown = machine.shell(script).stdout
    assert "doiget.pyz: OK" in shown
    assert json.loads(shown.splitlines()[-1])["ok"] is True
    (machine.desk / "doiget.pyz").rename(new / "doiget.pyz")
    (new / "doiget.pyz").write_bytes(b"damaged")
    with pytest.raises(AssertionError, match="FAILED"):
        machine.shell(script)


def test_every_trace_is_removed(machine: Machine, world: World, home: Home) -> None:
    (script,) = blocks()["Remove every trace"]
    world.paper("10.1000/one")
    machine.shell("python3 doiget.pyz fetch 10.1000/one", DOIGET_PYZ_ROOT=None)
    machine.shell("XDG_CACHE_HOME=/proc/none python3 doiget.pyz --version", DOIGET_PYZ_ROOT=None)
    assert len(list(home.tmp.iterdir())) == 1
    machine.replaced = {f'"{place}/doiget-': f'"{home.root}{place}/doiget-' for place in ("/tmp", "/var/tmp")}
    machine.shell(script)
    left = [path for path in home.root.rglob("*") if path.is_file() and home.root / "bin" not in path.parents]
    assert left
    assert all(home.home / "papers" in path.parents for path in left)
    assert list(home.tmp.iterdir()) == []
    assert list(machine.desk.iterdir()) == []
