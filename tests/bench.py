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


def rows(pyz: Path, folder: str) -> list[tuple[str, str, str, str]]:
    """Measure; returns (what, figure, against, ratio)."""
    python, env = sys.executable, environment(folder)

    def command(*words: str) -> Callable[[], Any]:
        return lambda: subprocess.run([python, *words], env=env, check=False, capture_output=True)

    start = time.perf_counter()
    command(str(pyz), "fetch", "--help")()
    found = [against("first start, fetch --help", (time.perf_counter() - start) * 1000, "ms", "aim", 1000)]
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
