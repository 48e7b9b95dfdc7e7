"""Measure the built file: ratios on one machine in one run. `python tests/bench.py [doiget.pyz]` prints a table.

Not a test: nothing here fails. Every figure is the median of several runs; each ratio is against something measured
in the same run. PYTHONDONTWRITEBYTECODE is taken away, since with it every start would compile anew.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
RUNS = 9
STDLIB = "import contextlib, dataclasses, enum, functools, json, pathlib, re, signal, urllib.parse"
SDK = "import mcp.server.lowlevel, mcp.server.stdio"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def environment(folder: str) -> dict[str, str]:
    """Return a bare environment with its own folders."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return kept | {
        "HOME": folder,
        "XDG_CACHE_HOME": f"{folder}/cache",
        "DOIGET_STORE": f"{folder}/papers",
        "DOIGET_LOG": "error",
    }


def median_ms(run: Callable[[], Any], runs: int = RUNS) -> float:
    """Return the median time of a call in milliseconds, after one call that warms up."""
    run()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


class Session:
    """A raw line client of `serve`."""

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask(HELLO)
        self.tell(READY)

    def tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, message: dict[str, Any]) -> bytes:
        self.tell(message)
        assert self.process.stdout
        return self.process.stdout.readline()

    def call(self, name: str, **arguments: Any) -> bytes:
        return self.ask(
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        )

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def against(what: str, figure: float, unit: str, base: str, limit: float) -> tuple[str, str, str, str]:
    """Make a row of the table: a figure and its ratio to something."""
    return what, f"{figure:.1f} {unit}", f"{base} {limit:.1f} {unit}", f"{figure / limit:.2f}"


def first_start_ms(pyz: Path, home: str, *words: str, answer: bool = False) -> float:
    """Return the time of a start on a fresh home: to its end, or to the answer to `initialize`."""
    env, start = environment(home), time.perf_counter()
    if answer:
        session = Session([sys.executable, str(pyz), *words], env)
        took = time.perf_counter() - start
        session.close()
    else:
        subprocess.run([sys.executable, pyz, *words], env=env, check=False, capture_output=True)
        took = time.perf_counter() - start
    return took * 1000


def plain_shiv(folder: str) -> Path | None:
    """Bundle what our file unpacked into `folder` with plain shiv; None where shiv is not installed."""
    (tree,) = Path(folder, "cache/doiget/app").iterdir()
    plain = Path(folder, "plain.pyz")
    command = ["-m", "shiv", "--site-packages", tree, "--entry-point", "doiget:main", "--output-file", plain]
    done = subprocess.run([sys.executable, *command], check=False, capture_output=True)
    return None if done.returncode else plain


def shiv_rows(pyz: Path, folder: str) -> list[tuple[str, str, str, str]]:
    """Compare warm starts with those of plain shiv, in turn, so that both meet the same load."""
    if (plain := plain_shiv(folder)) is None:
        return []
    env, found = environment(folder) | {"SHIV_ROOT": f"{folder}/shiv"}, []
    for words in (("--version",), ("info", "10.1000/x")):
        times: dict[Path, list[float]] = {pyz: [], plain: []}
        for _ in range(RUNS + 1):
            for file, seen in times.items():
                run = [sys.executable, file, *words]
                start = time.perf_counter()
                subprocess.run(run, env=env, check=False, capture_output=True)
                seen.append((time.perf_counter() - start) * 1000)
        ours, theirs = (statistics.median(seen[1:]) for seen in times.values())
        found.append(against(f"warm start, {words[0]}", ours, "ms", "plain shiv", theirs))
    return found


def shelve(store: Path, count: int) -> None:
    """Write records of so many invented papers, as doiget would."""
    records = store / ".metadata"
    records.mkdir(parents=True)
    for n in range(count):
        head = f'ref = "10.5555/bench.{n}"\ncitekey = "name{n}2020models"\nadded_at = "2026-11-30T00:00:00.000Z"\n'
        names = (f"Sm{chr(97 + (n + place) % 26)}th" for place in range(4))
        people = "".join(f'    {{ family = "{name}", given = "Given M." }},\n' for name in names)
        (records / f"doi_10.5555_bench.{n}.toml").write_text(
            f'schema_version = "1.0"\n{head}source = "crossref"\ntags = []\n\n[work]\ntype = "journal-article"\n'
            f'title = "Markov models of RNA and 100 % of the rest, part {n}"\nauthors = [\n{people}]\nyear = 2020\n'
            f'date = "2020-03-02"\ncontainer_title = "Journal of Models & Methods"\nvolume = "{n % 90}"\nissue = "3"\n'
            f'pages = "146-171"\npublisher = "The Publisher"\nabstract = "{"Words of an abstract. " * 40}"\n'
            f'doi = "10.5555/bench.{n}"\nurl = "https://example.org/{n}"\nissn = [\n    "1234-5678",\n]\n',
            encoding="utf-8",
        )


def rows(pyz: Path, folder: str) -> list[tuple[str, str, str, str]]:
    """Measure; returns (what, figure, against, ratio)."""
    python, env = sys.executable, environment(folder)

    def command(*words: str) -> Callable[[], Any]:
        return lambda: subprocess.run([python, *words], env=env, check=False, capture_output=True)

    first = first_start_ms(pyz, folder, "fetch", "--help")
    found = [against("first start, fetch --help", first, "ms", "aim", 1000)]
    first = first_start_ms(pyz, f"{folder}/other", "serve", answer=True)
    found.append(against("first start, serve to initialize", first, "ms", "aim", 3000))
    found += shiv_rows(pyz, folder)
    stdlib = median_ms(command("-c", STDLIB))
    for words in (("--version",), ("info", "10.1000/x"), ("recent",), ("path", "10.1000/x")):
        figure = median_ms(command(str(pyz), *words))
        found.append(against(f"warm start, {words[0]}", figure, "ms", "bare Python with the same stdlib", stdlib))
    sdk = median_ms(command("-c", SDK), 5)
    serve = [python, str(pyz), "serve"]
    ready = median_ms(lambda: Session(serve, env).close(), 5)
    found.append(against("spawn, initialize, leave", ready, "ms", "importing the SDK alone", sdk))
    session = Session(serve, env)
    listed = session.ask({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {}})
    found.append(against("tools/list", len(listed) / 1000, "kB", "at most", 20))
    found.append(
        against("p50 of info", median_ms(lambda: session.call("doiget_info", ref="10.1000/x"), 200), "ms", "aim", 5)
    )
    found.append(against("p50 of health", median_ms(lambda: session.call("doiget_health"), 200), "ms", "aim", 5))
    session.close()
    shelve(Path(folder) / "many", 10_000)
    for name in ("bibtex", "csl"):
        export = command(str(pyz), "export", "--format", name, "--store", f"{folder}/many")
        found.append(against(f"export of 10,000 entries, {name}", median_ms(export, 3), "ms", "aim", 3000))
    found.append(against("size of the file", pyz.stat().st_size / 1e6, "MB", "at most", 22))
    return found


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    pyz = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "doiget.pyz").resolve()
    with tempfile.TemporaryDirectory() as folder:
        table = [("what", "figure", "against", "ratio"), ("---",) * 4, *rows(pyz, folder)]
    sys.stdout.write("\n".join("| " + " | ".join(row) + " |" for row in table) + "\n")


if __name__ == "__main__":
    main()
