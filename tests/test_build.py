"""build_zipapp.py: what it asks of pip, uv and shiv, what it does when they fail, and what the built file holds."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import build_zipapp
from build_zipapp import BuildError, Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_subprocess import FakeProcess

ROOT = Path(build_zipapp.__file__).parent
NATIVE = build_zipapp.native_target()
CROSS = Target("3.12", "win_amd64", "x86_64-pc-windows-msvc")
METADATA = (
    "Metadata-Version: 2.4\nName: Some.Thing\nVersion: 1.2\nSummary: does things\nLicense-Expression: MIT\n\nText"
)


def option(command: list[str], name: str) -> Path:
    return Path(command[command.index(name) + 1])


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository as small as the builder accepts."""
    left_out = "".join(f"{name}==1 \\\n    --hash=sha256:00\n" for name in build_zipapp.LEFT_OUT)
    (tmp_path / "requirements.txt").write_text("some-thing==1.2 \\\n    --hash=sha256:00\n" + left_out)
    (tmp_path / "requirements-build.txt").write_text("shiv==1\n")
    (tmp_path / "doiget.py").write_text('"""Do."""\n__version__ = "9.8.7"\n')
    shutil.copy(ROOT / "launcher.py", tmp_path)
    monkeypatch.setattr(build_zipapp, "HERE", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Tools:
    """pip, uv and shiv as the builder calls them, played by pytest-subprocess."""

    def __init__(self, fp: FakeProcess) -> None:
        self.fp, self.commands = fp, []
        fp.register(["git", fp.any()], returncode=128, occurrences=9)

    def play(self, module: str, act: Callable[[list[str]], None] = lambda _: None, **outcome: object) -> None:
        def answer(process: object) -> None:
            self.commands.append(process.args)
            act(process.args)

        front = [sys.executable, *(["-W", "ignore"] if module != "pip" else []), "-m", module]
        self.fp.register([*front, self.fp.any()], callback=answer, occurrences=9, **outcome)


def install(command: list[str]) -> None:
    """Do what `pip install --target` does for a lock with one distribution."""
    info = option(command, "--target") / "some_thing-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "WHEEL").write_text("Tag: py3-none-any\n")
    (info.parent / "some_thing.py").write_text("")


def bundle(command: list[str]) -> None:
    """Do what shiv does."""
    tree = option(command, "--site-packages")
    with zipfile.ZipFile(option(command, "--output-file"), "w") as archive:
        for path in sorted(path for path in tree.rglob("*") if path.is_file()):
            archive.write(path, f"site-packages/{path.relative_to(tree)}")
        archive.writestr("__main__.py", "shiv's own")
        archive.writestr("environment.json", "{}")


@pytest.fixture
def tools(fp: FakeProcess) -> Tools:
    return Tools(fp)


# ---------------------------------------------------------------- the calls


def test_a_whole_build_with_played_tools(small: Path, tools: Tools) -> None:
    tools.play("pip", install)
    tools.play("shiv", bundle)
    assert build_zipapp.main(["--native"]) == 0
    with zipfile.ZipFile(small / "doiget.pyz") as archive:
        names = set(archive.namelist())
        assert b"shiv's own" not in archive.read("__main__.py")
    assert {"site-packages/doiget.py", "site-packages/some_thing.py", "environment.json", "digests.txt"} <= names
    assert stat.S_IMODE((small / "doiget.pyz").stat().st_mode) == 0o755
    made = {path.name for path in small.glob("doiget*")}
    assert made == {"doiget.py", "doiget.pyz", "doiget.pyz.sha256", "doiget.pyz.cdx.json", "doiget.mcpb"}
    dependencies, build_tools, _ = tools.commands
    for command in (dependencies, build_tools):
        assert {"--require-hashes", "--no-deps", "--no-compile", "--only-binary"} <= set(command)


def test_a_second_build_installs_nothing(small: Path, tools: Tools) -> None:
    tools.play("pip", install)
    tools.play("shiv", bundle)
    first = (build_zipapp.main(["--native"]), (small / "doiget.pyz").read_bytes())
    assert (build_zipapp.main(["--native"]), (small / "doiget.pyz").read_bytes()) == first
    assert ["pip" in command for command in tools.commands].count(True) == 2
    (small / "requirements.txt").write_text((small / "requirements.txt").read_text().replace("=1.2", "=1.3"))
    assert build_zipapp.main(["--native"]) == 0
    assert ["pip" in command for command in tools.commands].count(True) == 3


def test_uv_installs_for_other_pythons_and_platforms(small: Path, tools: Tools) -> None:
    tools.play("pip", install)
    tools.play("uv", install)
    build_zipapp.installed(CROSS, small / "build")
    command = tools.commands[-1]
    assert str(option(command, "--python-version")) == "3.12"
    assert str(option(command, "--python-platform")) == "x86_64-pc-windows-msvc"
    assert {"--require-hashes", "--no-deps", "--only-binary"} <= set(command)


@pytest.mark.parametrize(
    ("failing", "target", "what"),
    [
        ("pip", NATIVE, f"installing for Python {NATIVE.python} on {NATIVE.tag} failed (exit 7)"),
        ("uv", CROSS, "installing for Python 3.12 on win_amd64 failed (exit 7)"),
        ("shiv", NATIVE, "bundling with shiv failed (exit 7)"),
    ],
)
def test_a_failing_tool_is_named_with_its_last_words(
    small: Path, tools: Tools, failing: str, target: Target, what: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (small / "doiget.pyz").write_text("the last build")
    monkeypatch.setattr(build_zipapp, "native_target", lambda: target)
    for module, act in (("pip", install), ("uv", install), ("shiv", bundle)):
        if module == failing:
            tools.play(module, returncode=7, stderr="noise\n" * 50 + "no matching distribution\n")
        else:
            tools.play(module, act)
    assert build_zipapp.main(["--native"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"build_zipapp: {what}")
    assert said.endswith("no matching distribution\n")
    assert said.count("noise") < 12
    assert (small / "doiget.pyz").read_text() == "the last build"
    assert not [*small.rglob("*.part"), *small.glob("doiget.pyz.*"), *small.glob("*.mcpb")]
    if failing != "shiv":
        assert not list((small / "build").glob("deps-*"))


def test_a_missing_tool_is_named() -> None:
    with pytest.raises(BuildError, match="trying it: cannot start no-such-tool: No such file"):
        build_zipapp.run(["no-such-tool"], "trying it")


def test_a_missing_folder_is_said_before_anything_is_built(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build_zipapp.main(["--native", "--output", "none/doiget.pyz"]) == 1
    assert "no folder" in capsys.readouterr().err
    assert not (small / "build").exists()


def test_an_interrupted_write_leaves_the_old_file(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (small / "out").write_text("old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        build_zipapp.write_whole(small / "out", b"new")
    assert ((small / "out").read_text(), list(small.glob(".out*"))) == ("old", [])


@pytest.mark.usefixtures("small", "tools")
def test_the_commit_is_unknown_outside_a_checkout() -> None:
    assert build_zipapp.commit() == "unknown"


def test_the_commit_says_when_the_tree_differs(small: Path) -> None:
    git = ["git", "-C", small, "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "doiget.py"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    (small / "launcher.py").unlink()
    for name in ("requirements.txt", "requirements-build.txt"):
        (small / name).unlink()
    assert re.fullmatch("[0-9a-f]{40}", build_zipapp.commit())
    (small / "doiget.py").write_text("changed")
    assert build_zipapp.commit().endswith("-dirty")


# ---------------------------------------------------------------- the rules


@pytest.mark.parametrize(
    ("path", "pruned"),
    [
        ("bin/httpx", True),
        ("mcp/bin.py", False),
        ("certifi/tests/x.py", True),
        ("certifi/cacert.pem", False),
        ("a-1.dist-info/RECORD", True),
        ("a-1.dist-info/direct_url.json", True),
        ("a-1.dist-info/METADATA", False),
        ("a-1.dist-info/licenses/LICENSE", False),
        ("deep/er/__pycache__/x.pyc", True),
        ("pywin32.pth", True),
        ("win32/win32gui.pyd", True),
        ("win32/win32api.pyd", False),
        ("pywin32_system32/pywintypes312.dll", False),
    ],
)
def test_what_is_pruned(path: str, pruned: bool) -> None:  # noqa: FBT001
    assert build_zipapp.is_pruned(PurePosixPath(path)) is pruned


def test_two_targets_may_not_disagree_on_pure_code() -> None:
    with pytest.raises(BuildError, match=r"a\.py differs between two targets"):
        build_zipapp.add({"a.py": b"1"}, "a.py", b"2")


def test_two_targets_may_disagree_on_the_form_of_metadata() -> None:
    staged = {"a-1.dist-info/METADATA": b"1"}
    build_zipapp.add(staged, "a-1.dist-info/METADATA", b"2")
    assert staged == {"a-1.dist-info/METADATA": b"1"}, "the oldest Python's counts"


def test_native_files_keep_apart(tmp_path: Path) -> None:
    info = tmp_path / "c-1.dist-info"
    info.mkdir()
    (info / "WHEEL").write_text("Tag: cp39-abi3-win_amd64\n")
    (info / "RECORD").write_text("c/_rust.pyd,sha256=0,1\n")
    for name in ("c/_rust.pyd", "d/d.cp312-win_amd64.pyd", "d/pure.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x\r\n")
    assert dict(build_zipapp.placed_files(CROSS, tmp_path)) == {
        "_native/win_amd64/c/_rust.pyd": b"x\r\n",
        "_native/win_amd64-cp312/d/d.cp312-win_amd64.pyd": b"x\r\n",
        "d/pure.py": b"x\n",
    }


def test_the_zip_is_canonical() -> None:
    once, again = ({"b": b"2", "a": b"1"}, {"a": b"1", "b": b"2"})
    assert build_zipapp.write_zip(once) == build_zipapp.write_zip(again)
    infos = zipfile.ZipFile(io.BytesIO(build_zipapp.write_zip(once))).infolist()
    assert [(info.filename, info.date_time, info.external_attr >> 16) for info in infos] == [
        ("a", (1980, 1, 1, 0, 0, 0), 0o100644),
        ("b", (1980, 1, 1, 0, 0, 0), 0o100644),
    ]


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-build.txt", "requirements-dev.txt"])
def test_locks_pin_by_hash_one_version_each_and_name_no_host(name: str) -> None:
    text = (ROOT / name).read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    names = [entry.partition("==")[0] for entry in entries]
    assert names == sorted(set(names))
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text
    assert "--index" not in text


def test_the_locks_agree() -> None:
    pins = {name: set(re.findall(r"^\S+==\S+", (ROOT / name).read_text(), re.MULTILINE)) for name in LOCKS}
    runtime, build, dev = pins.values()
    assert runtime | build <= dev


LOCKS = ("requirements.txt", "requirements-build.txt", "requirements-dev.txt")


def test_each_dependency_has_its_line_in_the_docs() -> None:
    text = (ROOT / "docs" / "DEPENDENCIES.md").read_text()
    for name in re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE):
        assert f"`{name}`" in text, name


@pytest.mark.usefixtures("small")
def test_a_bill_of_materials_names_each_distribution() -> None:
    bill = json.loads(build_zipapp.sbom({"some_thing-1.2.dist-info/METADATA": METADATA.encode()}))
    (part,) = bill["components"]
    assert (part["purl"], part["licenses"]) == ("pkg:pypi/some-thing@1.2", [{"expression": "MIT"}])
    assert bill["metadata"]["component"]["version"] == "9.8.7"


# ---------------------------------------------------------------- the built file


@pytest.fixture(scope="session")
def archive(pyz: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(pyz.read_bytes()))


@pytest.fixture(scope="session")
def packages(archive: zipfile.ZipFile) -> set[str]:
    paths = {PurePosixPath(re.sub(r"^site-packages/(_native/[^/]+/)?", "", name)) for name in archive.namelist()}
    return {path.parts[0] for path in paths}


def test_no_server_rides_along(packages: set[str]) -> None:
    for wrong in ("uvicorn", "websockets", "python_multipart", "multipart", "click", "jwt", "httptools"):
        assert not [name for name in packages if name.startswith(wrong)], wrong
    assert {"starlette", "sse_starlette", "mcp", "httpx", "doiget.py"} <= packages


def test_starlette_is_there_only_because_mcp_imports_it() -> None:
    """When this fails, mcp has stopped importing them: put both into LEFT_OUT."""
    code = "import sys, mcp; print({'starlette', 'sse_starlette'} <= set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"
    source = (ROOT / "doiget.py").read_text()
    assert "starlette" not in re.findall(r"^\s*(?:import|from) (\w+)", source, re.MULTILINE)


def test_nothing_an_installer_or_compiler_wrote(archive: zipfile.ZipFile) -> None:
    ends = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", ".pyc", ".pth")
    assert not [name for name in archive.namelist() if name.endswith(ends) or "/bin/" in name or "/tests/" in name]


def test_each_distribution_keeps_metadata_and_licence(archive: zipfile.ZipFile) -> None:
    names = archive.namelist()
    infos = {name.split("/")[1] for name in names if re.match(r"site-packages/[^/]+\.dist-info/", name)}
    assert len(infos) > 25
    for info in infos:
        assert f"site-packages/{info}/METADATA" in names
    unlicensed = {info for info in infos if not any(f"{info}/" in name and "LICEN" in name.upper() for name in names)}
    assert not unlicensed


def test_the_facts_inside(archive: zipfile.ZipFile) -> None:
    facts = json.loads(archive.read("doiget_build.json"))
    listing = archive.read("digests.txt")
    assert facts["digest"] == hashlib.sha256(listing).hexdigest()
    assert facts["pythons"] == NATIVE.python_tag
    digests = dict(reversed(line.split("  ", 1)) for line in listing.decode().splitlines())
    inside = {name.removeprefix("site-packages/") for name in archive.namelist() if name.startswith("site-packages/")}
    assert digests.keys() == inside
    for path, digest in digests.items():
        assert hashlib.sha256(archive.read(f"site-packages/{path}")).hexdigest() == digest


def test_what_stands_beside(pyz: Path, archive: zipfile.ZipFile) -> None:
    digest, name = Path(f"{pyz}.sha256").read_text().split()
    assert (digest, name) == (hashlib.sha256(pyz.read_bytes()).hexdigest(), "doiget.pyz")
    assert Path(f"{pyz}.cdx.json").read_bytes() == archive.read("site-packages/doiget_sbom.json")
    with zipfile.ZipFile(pyz.with_name("doiget.mcpb")) as bundle_file:
        assert bundle_file.read("doiget.pyz") == pyz.read_bytes()
        manifest = json.loads(bundle_file.read("manifest.json"))
    assert manifest["server"]["mcp_config"]["args"] == ["${__dirname}/doiget.pyz", "serve"]
    assert manifest["server"]["mcp_config"]["platform_overrides"]["win32"]["command"] == "py"
    assert manifest["version"] == build_zipapp.version()
    assert manifest["compatibility"]["platforms"] == [sys.platform]


def test_a_bundle_is_offered_where_its_native_code_runs() -> None:
    targets = build_zipapp.cross_targets(["macos", "windows", "linux-x86_64", "linux-aarch64"])
    manifest = build_zipapp.mcpb_manifest(targets)
    assert manifest["compatibility"]["platforms"] == ["darwin", "linux", "win32"]


@pytest.mark.long
def test_the_official_validator_accepts_the_bundle(pyz: Path, tmp_path: Path) -> None:
    """Needs node, npm and a registry; skipped without."""
    npx = shutil.which("npx") or pytest.skip("no npx here")
    front = [npx, "--yes", "@anthropic-ai/mcpb@2"]
    if subprocess.run([*front, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("the validator cannot be installed here")
    bundle_file = pyz.with_name("doiget.mcpb")
    with zipfile.ZipFile(bundle_file) as archive:
        archive.extract("manifest.json", tmp_path)
    for command in (["validate", tmp_path / "manifest.json"], ["info", bundle_file]):
        done = subprocess.run([*front, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "error" not in (done.stdout + done.stderr).lower()


def test_the_bill_of_materials_is_valid_and_complete(archive: zipfile.ZipFile) -> None:
    text = archive.read("site-packages/doiget_sbom.json").decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    listed = {(part["name"].lower().replace("_", "-"), part["version"]) for part in json.loads(text)["components"]}
    locked = {tuple(pin.split("==")) for pin in re.findall(r"^\S+==\S+", build_zipapp.bundled_lock(), re.MULTILINE)}
    assert {(re.sub(r"[-_.]+", "-", name), version) for name, version in listed} <= locked


def copy_of_the_tree(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("doiget.py", "launcher.py", "build_zipapp.py", "requirements.txt", "requirements-build.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def build(folder: Path, *options: str, python: str = sys.executable, umask: int = 0o022) -> str:
    command = [python, folder / "build_zipapp.py", *options]
    subprocess.run(command, cwd=folder, umask=umask, check=True, stdout=subprocess.DEVNULL)
    return hashlib.sha256((folder / "doiget.pyz").read_bytes()).hexdigest()


def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    first = copy_of_the_tree(tmp_path / "one")
    second = copy_of_the_tree(tmp_path / "an other" / "deeper")
    assert build(first, "--native") == build(second, "--native", umask=0o077)
    for name in ("doiget.mcpb", "doiget.pyz.cdx.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def supported_pythons() -> list[str]:
    """Return the CPython 3.10-3.14 that this machine happens to have."""
    names = [f"python{version}" for version in build_zipapp.PYTHONS]
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += Path.home().glob(".pyenv/versions/*/bin")
    found = {name: folder / name for folder in folders for name in names if (folder / name).is_file()}
    return [str(path) for path in found.values() if subprocess.run([path, "-c", ""], check=False).returncode == 0]


@pytest.mark.long
def test_the_default_file_is_the_same_from_each_python_and_runs_on_each(tmp_path: Path) -> None:
    pythons = supported_pythons()
    trees = [copy_of_the_tree(tmp_path / str(number)) for number in range(len(pythons))]
    assert len({build(tree, python=python) for tree, python in zip(trees, pythons, strict=True)}) == 1
    assert (trees[0] / "doiget.pyz").stat().st_size < 22e6
    for python in pythons:
        done = subprocess.run([python, trees[0] / "doiget.pyz", "--version"], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b""), python


@pytest.mark.long
@pytest.mark.parametrize("platform", build_zipapp.PLATFORMS)
def test_each_platform_builds_complete(tmp_path: Path, platform: str) -> None:
    tree = copy_of_the_tree(tmp_path / "tree")
    build(tree, "--platform", platform)
    tag = build_zipapp.PLATFORMS[platform][0]
    names = zipfile.ZipFile(tree / "doiget.pyz").namelist()
    for version in build_zipapp.PYTHONS:
        front = f"site-packages/_native/{tag}-cp{version.replace('.', '')}/"
        for package in ("pydantic_core/", "rpds/", "_cffi_backend"):
            assert [name for name in names if name.startswith(front + package)], (version, package)
    assert [name for name in names if name.startswith(f"site-packages/_native/{tag}/cryptography/")]
