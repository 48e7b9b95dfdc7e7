#!/usr/bin/env python3
"""Build doiget.pyz: one file that runs on any machine with Python 3.10 or newer. Needs only Python and pip.

    python3 build_zipapp.py --native              for the Python that runs this script; fast
    python3 build_zipapp.py                       for CPython 3.10-3.14 on this platform
    python3 build_zipapp.py --platform windows    for CPython 3.10-3.14 there (may be repeated)

Two builds of a commit are the same bytes, whatever the folder, the umask or the Python that runs this. How: wheels
pinned by hash (requirements.txt), nothing kept that an installer or compiler wrote, then a canonical zip (`write_zip`).

From top to bottom: what goes in, tools, installing, staging, the bill of materials, the zip, the MCP bundle, `main`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import launcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE: Final = Path(__file__).resolve().parent
PYTHONS: Final = ("3.10", "3.11", "3.12", "3.13", "3.14")
#: zip files know no earlier date; every entry and shiv's own notes carry this one.
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
EPOCH_S: Final = "315532800"


class BuildError(Exception):
    """The build cannot go on; the text says why and, where there is one, the next step."""


# ############################################################################
# MARK: 1. What goes in
# ############################################################################

#: --platform name: the launcher's tag and uv's name for it.
PLATFORMS: Final[Mapping[str, tuple[str, str]]] = {
    "linux-x86_64": ("linux_x86_64", "x86_64-manylinux2014"),
    "linux-aarch64": ("linux_aarch64", "aarch64-manylinux2014"),
    "macos": ("macosx_arm64", "aarch64-apple-darwin"),
    "windows": ("win_amd64", "x86_64-pc-windows-msvc"),
}

#: Distributions in the lock that nothing we run imports.
LEFT_OUT: Final[Mapping[str, str]] = {
    "click": "uvicorn's",
    "colorama": "click's and tqdm's, optional",
    "httpcore2": "opens the MCP client's HTTP connections; we serve stdio only",
    "httpx2-jsfetch": "Python in a browser",
    "pycparser": "cffi's, to parse C at build time",
    "pyjwt": "the MCP client's OAuth",
    "python-multipart": "HTTP forms",
    "uvicorn": "an HTTP server",
}

#: Files that do nothing at run time, as patterns over paths inside site-packages.
PRUNED: Final = (
    "**/*.exe",
    "**/*.pyc",
    "**/*.pyi",
    "**/py.typed",
    "**/tests/**",
    "*.dist-info/INSTALLER",
    "*.dist-info/RECORD",
    "*.dist-info/REQUESTED",
    "*.dist-info/WHEEL",
    "*.dist-info/direct_url.json",
    "*.dist-info/top_level.txt",
    "*.pth",  # never executed, see launcher.py
    "bin/**",
    "Scripts/**",
    "share/**",
    "cffi/**",  # cryptography needs its compiled half, _cffi_backend, only
    "jsonschema/benchmarks/**",
    "mcp/cli/**",
    "pydantic/mypy.py",
    "pydantic/v1/**",
    "tqdm/completion.sh",
    "tqdm/tqdm.1",
    "tqdm/contrib/**",
    *(
        f"{part}/**"
        for part in ("adodbapi", "isapi", "pythonwin", "pywin32_system32", "win32", "win32com", "win32comext")
    ),
    "PyWin32.chm",
    "pywin32.version.txt",
)

#: Of pywin32, what mcp imports at the top of its stdio module on Windows.
KEPT: Final = (
    "pywin32_system32/pywintypes3*.dll",
    "win32/_win32sysloader.pyd",
    "win32/lib/pywintypes.py",
    "win32/lib/win32con.py",
    "win32/win32api.pyd",
    "win32/win32job.pyd",
)

NATIVE_SUFFIXES: Final = (".so", ".pyd", ".dll", ".dylib")


@dataclass(frozen=True)
class Target:
    """One Python on one platform that the file shall run on."""

    python: str  # "3.12"
    tag: str  # the launcher's platform tag, which names the folder of native files
    uv_platform: str | None  # None: the running interpreter, installed with pip

    @property
    def python_tag(self) -> str:
        return launcher.python_tag() if self.uv_platform is None else "cp" + self.python.replace(".", "")


def native_target() -> Target:
    return Target("{}.{}".format(*sys.version_info), launcher.platform_tag(), None)


def cross_targets(platforms: Sequence[str]) -> list[Target]:
    return [Target(python, *PLATFORMS[name]) for name in platforms for python in PYTHONS]


def own_platform() -> str:
    for name, (tag, _) in PLATFORMS.items():
        if tag == launcher.platform_tag():
            return name
    raise BuildError(f"no wheels are chosen for {launcher.platform_tag()}; try --native")


# ############################################################################
# MARK: 2. Tools
# ############################################################################
# pip is the one tool that must be there. It installs shiv and uv into a folder of the build's own, named by the hash of
# their lock, so the next build finds them.


def run(command: Sequence[str | Path], what: str, env: Mapping[str, str] | None = None) -> str:
    """Run a tool and return its output; its complaint, not ours, is what helps when it fails."""
    try:
        done = subprocess.run(
            [str(part) for part in command], env=dict(env or os.environ), capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BuildError(f"{what}: cannot start {command[0]}: {error.strerror}") from error
    if done.returncode:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise BuildError(f"{what} failed (exit {done.returncode}):\n{said}")
    return done.stdout


@contextlib.contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """Give an empty sibling to fill and rename it to `folder` at the end: nobody ever finds it half filled."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".part", dir=folder.parent))
    try:
        yield part
        if not folder.exists():  # another build may have been quicker
            part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def tools(build: Path) -> Path:
    """Return a folder with shiv and uv in it, made with pip at the first build."""
    lock = HERE / "requirements-build.txt"
    folder = build / f"tools-{fingerprint(lock.read_text(encoding='utf-8'), launcher.python_tag())}"
    if not folder.exists():
        with made_whole(folder) as part:
            pip_install(lock, part, "installing the build tools")
    return folder


def pip_install(lock: Path, target: Path, what: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-compile", "--require-hashes", "--only-binary", ":all:"]
    run([*command, "--target", target, "--requirement", lock], what)


def run_tool(folder: Path, module: str, arguments: Sequence[str | Path], what: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(folder), "SOURCE_DATE_EPOCH": EPOCH_S}
    return run([sys.executable, "-W", "ignore", "-m", module, *arguments], what, env)


def fingerprint(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


# ############################################################################
# MARK: 3. Installing
# ############################################################################


def bundled_lock() -> str:
    """Return requirements.txt without the distributions in LEFT_OUT."""
    text = (HERE / "requirements.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    names = [re.split(r"[=\s\[;]", entry, maxsplit=1)[0] for entry in entries]
    if unknown := LEFT_OUT.keys() - set(names):
        raise BuildError(f"left out, yet not in requirements.txt: {', '.join(sorted(unknown))}")
    return "\n".join(entry for entry, name in zip(entries, names, strict=True) if name not in LEFT_OUT) + "\n"


def installed(target: Target, build: Path) -> Path:
    """Return a folder with the dependencies for one target, from the last build if the lock is the same."""
    lock_text = bundled_lock()
    folder = build / f"deps-{target.python_tag}-{target.tag}-{fingerprint(lock_text, str(target.uv_platform))}"
    if folder.exists():
        return folder
    with made_whole(folder) as part, tempfile.TemporaryDirectory() as scratch:
        lock = Path(scratch, "requirements.txt")
        lock.write_text(lock_text, encoding="utf-8")
        what = f"installing for Python {target.python} on {target.tag}"
        if target.uv_platform is None:
            pip_install(lock, part, what)
        else:
            uv_install(target, lock, part, tools(build), what)
    return folder


def uv_install(target: Target, lock: Path, part: Path, tool_folder: Path, what: str) -> None:
    # Plain pip judges "; sys_platform == 'win32'" by the machine it runs on; uv judges it by the target.
    command = ["pip", "install", "--quiet", "--no-config", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--python", sys.executable, "--python-version", target.python]
    command += ["--python-platform", target.uv_platform or "", "--target", str(part), "--requirement", str(lock)]
    run_tool(tool_folder, "uv", command, what)


# ############################################################################
# MARK: 4. Staging
# ############################################################################
# One tree for shiv: pure code at its place, native files at the same paths below _native/<platform>/ (stable ABI, for
# every Python) or _native/<platform>-<python>/. The launcher unpacks those of the running Python over the pure ones.


def is_pruned(path: PurePosixPath) -> bool:
    return any(matches(path, pattern) for pattern in PRUNED) and not any(path.match(pattern) for pattern in KEPT)


def matches(path: PurePosixPath, pattern: str) -> bool:
    """Match as a shell does: `**/` at the start is any folder, `/**` at the end is all below."""
    if pattern.startswith("**/") and pattern.endswith("/**"):
        return pattern[3:-3] in path.parts[:-1]
    if pattern.endswith("/**"):
        return path.parts[: len(PurePosixPath(pattern).parts) - 1] == PurePosixPath(pattern).parts[:-1]
    if pattern.startswith("**/"):
        return PurePosixPath(path.name).match(pattern[3:])
    return len(path.parts) == len(PurePosixPath(pattern).parts) and path.match(pattern)


def kept_files(tree: Path) -> dict[PurePosixPath, Path]:
    """Map path inside site-packages to file, without what is pruned."""
    files = {PurePosixPath(f.relative_to(tree).as_posix()): f for f in sorted(tree.rglob("*")) if f.is_file()}
    return {path: file for path, file in files.items() if not is_pruned(path)}


def is_native(path: PurePosixPath) -> bool:
    """Tell what belongs to one platform: libraries, and the bills of materials of what was compiled into them."""
    return path.name.endswith(NATIVE_SUFFIXES) or ".so." in path.name or "sboms" in path.parts


def stable_abi_files(tree: Path) -> set[str]:
    """Return the paths that wheels for many Pythons brought; the name of a file does not tell (`_rust.pyd`)."""
    wheels = [wheel for wheel in tree.glob("*.dist-info/WHEEL") if "-abi3-" in wheel.read_text(encoding="utf-8")]
    records = [wheel.with_name("RECORD").read_text(encoding="utf-8") for wheel in wheels]
    return {line.split(",")[0] for record in records for line in record.splitlines()}


def placed_files(target: Target, tree: Path) -> Iterator[tuple[str, bytes]]:
    """Yield place in the bundle and content of each file to keep of one target's tree."""
    stable = stable_abi_files(tree)
    for path, file in kept_files(tree).items():
        folder = ""
        if is_native(path):
            folder = f"_native/{target.tag}/" if str(path) in stable else f"_native/{target.tag}-{target.python_tag}/"
        is_text = path.suffix == ".py" or ".dist-info" in path.parts[0]
        data = file.read_bytes()  # wheels built on Windows may end lines with CR LF
        yield f"{folder}{path}", data.replace(b"\r\n", b"\n") if is_text else data


def stage(targets: Sequence[Target], build: Path) -> dict[str, bytes]:
    """Merge the trees of all targets, oldest Python first, into one map of place to content."""
    staged: dict[str, bytes] = {}
    for target in targets:
        for place, data in placed_files(target, installed(target, build)):
            if place.startswith(f"_native/{target.tag}/"):
                staged.setdefault(place, data)  # the one for the oldest Python runs on all newer ones
            else:
                add(staged, place, data)
    add(staged, "doiget.py", (HERE / "doiget.py").read_bytes())
    return with_packed_tables(staged)


def add(staged: dict[str, bytes], place: str, data: bytes) -> None:
    # The wheels of one release may come from several build tools, each with its own form of METADATA.
    if staged.setdefault(place, data) != data and not place.endswith(".dist-info/METADATA"):
        raise BuildError(f"{place} differs between two targets; one tree cannot hold both")


#: Takes the place of anyascii/_data, 640 small tables: each entry of the zip costs every start 0.01 ms.
TABLES_MODULE: Final = b'''"""Hand out the tables of anyascii, which stand together in tables.zip."""
import io
import pkgutil
import zipfile

_tables = zipfile.Path(io.BytesIO(pkgutil.get_data(__name__, "tables.zip")))


class _Reader:
    def get_resource_reader(self, name):
        return self

    def files(self):
        return _tables


__spec__.loader = _Reader()
'''


def with_packed_tables(staged: dict[str, bytes]) -> dict[str, bytes]:
    folder = "anyascii/_data/"
    tables = {place[len(folder) :]: data for place, data in staged.items() if place.startswith(folder)}
    rest = {place: data for place, data in staged.items() if not place.startswith(folder)}
    return rest | {f"{folder}__init__.py": TABLES_MODULE, f"{folder}tables.zip": write_zip(tables)}


def digests(staged: Mapping[str, bytes]) -> str:
    """Render `sha256  path` lines: what the launcher checks unpacked files against."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {place}\n" for place, data in sorted(staged.items()))


# ############################################################################
# MARK: 5. The bill of materials
# ############################################################################


def version() -> str:
    for node in ast.parse((HERE / "doiget.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__version__" for target in targets):
                return str(node.value.value)
    raise BuildError("doiget.py sets no __version__")


def sbom(staged: Mapping[str, bytes]) -> bytes:
    """Render a CycloneDX 1.6 document with one component per bundled distribution."""
    metadata = {place: data for place, data in staged.items() if place.endswith(".dist-info/METADATA")}
    components = [component(data.decode()) for _, data in sorted(metadata.items())]
    own = {"type": "application", "bom-ref": "doiget", "name": "doiget", "version": version()}
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": "MIT"}}]}},
        "components": components,
        "dependencies": [{"ref": "doiget", "dependsOn": [part["bom-ref"] for part in components]}],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def component(metadata: str) -> dict[str, Any]:
    name, release = header(metadata, "Name"), header(metadata, "Version")
    purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{release}"
    found: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": release, "purl": purl}
    if summary := header(metadata, "Summary"):
        found["description"] = summary
    if expression := header(metadata, "License-Expression"):
        found["licenses"] = [{"expression": expression}]
    elif named := header(metadata, "License").splitlines() or classified_licence(metadata):
        found["licenses"] = [{"license": {"name": named[0]}}]
    return found


def header(metadata: str, name: str) -> str:
    found = re.search(rf"^{name}: (.+)$", metadata.partition("\n\n")[0], re.MULTILINE)
    return found[1].strip() if found else ""


def classified_licence(metadata: str) -> list[str]:
    return re.findall(r"^Classifier: License :: .*?([^:]+)$", metadata, re.MULTILINE)


# ############################################################################
# MARK: 6. The zip
# ############################################################################


def commit() -> str:
    """Return the commit this tree is at, `-dirty` where the bundle's own inputs differ from it, or `unknown`."""
    inputs = ["doiget.py", "launcher.py", "build_zipapp.py", "requirements.txt", "requirements-build.txt"]
    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != HERE:
            return "unknown"
        return git("rev-parse", "HEAD") + ("-dirty" if git("status", "--porcelain", "--", *inputs) else "")
    except BuildError:
        return "unknown"


def git(*arguments: str) -> str:
    return run(["git", "-C", HERE, *arguments], "asking git").strip()


def facts(targets: Sequence[Target], digest: str) -> dict[str, str]:
    """Return what doctor and `--version --json` say about this file."""
    return {
        "commit": commit(),
        "digest": digest,
        "pythons": " ".join(dict.fromkeys(target.python_tag for target in targets)),
        "platforms": " ".join(dict.fromkeys(target.tag for target in targets)),
    }


def shiv(staged: Mapping[str, bytes], tool_folder: Path) -> dict[str, bytes]:
    """Let shiv bundle the tree and return the entries of its file: ours, its bootstrap and its notes."""
    with tempfile.TemporaryDirectory() as scratch:
        tree, bundle = Path(scratch, "site-packages"), Path(scratch, "doiget.pyz")
        for place, data in staged.items():
            (tree / place).parent.mkdir(parents=True, exist_ok=True)
            (tree / place).write_bytes(data)
        command = ["--site-packages", str(tree), "--output-file", str(bundle), "--entry-point", "doiget:main"]
        run_tool(tool_folder, "shiv", [*command, "--reproducible", "--uncompressed"], "bundling with shiv")
        with zipfile.ZipFile(bundle) as archive:
            return {name.replace("\\", "/"): archive.read(name) for name in archive.namelist()}


def top_names(staged: Mapping[str, bytes]) -> str:
    """Return what the bundle makes importable at the top, one space between."""
    tops = {re.sub(r"^_native/[^/]*/", "", place).partition("/")[0] for place in staged}
    return " ".join(sorted({name.partition(".")[0] for name in tops if ".dist-info" not in name}))


def launcher_modules(build_facts: Mapping[str, str], names: str) -> dict[str, bytes]:
    """Cut launcher.py in two, with the facts of this build in place of its placeholders."""
    text = (HERE / "launcher.py").read_text(encoding="utf-8")
    first, cut, rest = text.partition("# ================================================================ cut here\n")
    first, facts_filled = re.subn(r"^BUILD = .*$", f"BUILD = {dict(build_facts)!r}", first, flags=re.MULTILINE)
    first, names_filled = re.subn(r'^NAMES = ""', f"NAMES = {names!r}", first, flags=re.MULTILINE)
    if not cut or facts_filled != 1 or names_filled != 1:
        raise BuildError("launcher.py has lost its line `BUILD = …`, `NAMES = …` or `cut here`")
    return {"__main__.py": f"{first}main()\n".encode(), "launcher_rest.py": rest.encode()}


def write_zip(entries: Mapping[str, bytes], first_line: bytes = b"") -> bytes:
    """Write a canonical zip: sorted names, one date, one mode, one compression level."""
    buffer = io.BytesIO()
    buffer.write(first_line)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in sorted(entries.items()):
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system = 3  # Unix, also when built on Windows
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return buffer.getvalue()


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace a file in one step; whatever happens, no half-written one is left."""
    handle, part = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(part).chmod(mode)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


# ############################################################################
# MARK: 7. The MCP bundle
# ############################################################################


def mcpb(pyz: bytes, targets: Sequence[Target]) -> bytes:
    """Wrap the file for hosts that install a .mcpb with a click."""
    manifest = json.dumps(mcpb_manifest(targets), indent=2) + "\n"
    return write_zip({"manifest.json": manifest.encode(), "doiget.pyz": pyz})


def mcpb_manifest(targets: Sequence[Target]) -> dict[str, Any]:
    names = {"macosx": "darwin", "win": "win32"}  # a host does not offer the bundle elsewhere: serve needs native code
    systems = sorted({names.get(system, system) for system in (target.tag.partition("_")[0] for target in targets)})
    start = ["${__dirname}/doiget.pyz", "serve"]
    env = {"DOIGET_STORE": "${user_config.store}", "DOIGET_EMAIL": "${user_config.email}"}
    windows = {"command": "py", "args": ["-3", *start]}
    return {
        "manifest_version": "0.3",
        "name": "doiget",
        "version": version(),
        "description": "DOIs and arXiv ids to verified metadata, legal Open Access PDFs and citations.",
        "author": {"name": "doiget contributors"},
        "license": "MIT",
        "server": {
            "type": "python",
            "entry_point": "doiget.pyz",
            "mcp_config": {"command": "python3", "args": start, "env": env, "platform_overrides": {"win32": windows}},
        },
        "compatibility": {"runtimes": {"python": ">=3.10"}, "platforms": systems},
        "user_config": {
            "store": {
                "type": "directory",
                "title": "Folder for papers",
                "description": "Where PDFs and records are kept; ~/papers unless set.",
                "required": False,
            },
            "email": {
                "type": "string",
                "title": "E-mail",
                "description": "Sent to those APIs only that ask for a contact address.",
                "required": False,
            },
        },
    }


# ############################################################################
# MARK: 8. Main
# ############################################################################


def build_pyz(targets: Sequence[Target], build: Path) -> tuple[bytes, bytes]:
    """Return the file and its bill of materials."""
    staged = stage(targets, build)
    bill = sbom(staged)
    add(staged, "doiget_sbom.json", bill)
    entries = shiv(staged, tools(build))
    listing = digests(staged).encode()
    build_facts = facts(targets, hashlib.sha256(listing).hexdigest())
    entries |= launcher_modules(build_facts, top_names(staged))
    entries |= {
        "digests.txt": listing,
        "doiget_build.json": (json.dumps(build_facts, indent=1) + "\n").encode(),
    }
    return write_zip(entries, b"#!/usr/bin/env python3\n"), bill


def write_all(output: Path, targets: Sequence[Target], pyz: bytes, bill: bytes) -> None:
    """Write the file and what belongs beside it; the file itself last, so that it never precedes its digest."""
    digest = hashlib.sha256(pyz).hexdigest()
    write_whole(Path(f"{output}.sha256"), f"{digest}  {output.name}\n".encode())
    write_whole(Path(f"{output}.cdx.json"), bill)
    write_whole(output.with_name("doiget.mcpb"), mcpb(pyz, targets))
    write_whole(output, pyz, 0o755)


def parser() -> argparse.ArgumentParser:
    assert __doc__ is not None  # noqa: S101
    found = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    which = found.add_mutually_exclusive_group()
    which.add_argument("--native", action="store_true", help="for the Python that runs this script only (fast)")
    which.add_argument("--platform", action="append", choices=[*PLATFORMS], help="for CPython 3.10-3.14 there")
    found.add_argument("--output", type=Path, default=Path("doiget.pyz"), metavar="FILE", help="default: ./doiget.pyz")
    return found


def build(options: argparse.Namespace) -> str:
    """Build what the options ask for and return a line that says what it is."""
    output: Path = options.output.absolute()
    if not output.parent.is_dir():
        raise BuildError(f"no folder {output.parent} to write {output.name} to")
    targets = [native_target()] if options.native else cross_targets(options.platform or [own_platform()])
    pyz, bill = build_pyz(targets, HERE / "build")
    write_all(output, targets, pyz, bill)
    return f"{options.output}: {len(pyz) / 1e6:.1f} MB, {' '.join(dict.fromkeys(t.python_tag for t in targets))}"


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    try:
        print(build(options))
    except (BuildError, OSError) as error:
        print(f"build_zipapp: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
