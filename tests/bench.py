"""Measure the built file: ratios on one machine in one run. `python tests/bench.py [doiget.pyz]` prints a table.

With BENCH_BIG=1 in the environment the store is also measured with 100,000 entries, which takes minutes.
Not a test: nothing here fails. Every figure is the median of several runs; each ratio is against something measured
in the same run. PYTHONDONTWRITEBYTECODE is taken away, since with it every start would compile anew.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import random
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
SDK = "import mcp.server.lowlevel, mcp.server.stdio"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def stdlib_imports() -> str:
    """Return the statements that import what doiget does: at its top, and what parses any command line."""
    body = ast.parse((ROOT / "doiget.py").read_text(encoding="utf-8")).body
    imports = [ast.unparse(part) for part in body if isinstance(part, ast.Import | ast.ImportFrom)]
    return "\n".join([*imports, "import argparse"])


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


def vocabulary(dice: random.Random, count: int) -> list[str]:
    """Invent words."""
    return list({"".join(dice.choice("bdfgklmnprstv") + dice.choice("aeiou") for _ in range(3)) for _ in range(count)})


def shelve(store: Path, count: int) -> list[str]:
    """Write records of so many invented papers, as doiget would; returns queries: an author, words of a title, …"""
    dice, queries = random.Random(count), []
    words, names = vocabulary(dice, 5000), vocabulary(dice, 3000)
    often = list(itertools.accumulate(1 / (place + 10) for place in range(len(words))))
    records = store / ".metadata"
    records.mkdir(parents=True)
    for n in range(count):
        title, abstract = (" ".join(dice.choices(words, cum_weights=often, k=k)) for k in (dice.randint(4, 12), 110))
        family, year = dice.choice(names).capitalize(), dice.randint(1980, 2026)
        people = "".join(
            f'    {{ family = "{name}", given = "Given M." }},\n' for name in (family, *dice.sample(names, 3))
        )
        (records / f"doi_10.5555_bench.{n}.toml").write_text(
            f'schema_version = "1.0"\nref = "10.5555/bench.{n}"\ncitekey = "{family.lower()}{year}x{n}"\n'
            f'source = "crossref"\nadded_at = "2026-11-{1 + n % 28:02}T00:00:00.{n % 1000:03}Z"\ntags = []\n\n[work]\n'
            f'type = "journal-article"\ntitle = "{title} & 100 % of RNA"\nauthors = [\n{people}]\nyear = {year}\n'
            f'date = "{year}-03-02"\ncontainer_title = "Journal of Models & Methods"\nvolume = "{n % 90}"\n'
            f'issue = "3"\npages = "146-171"\npublisher = "The Publisher"\nabstract = "{abstract}"\n'
            f'doi = "10.5555/bench.{n}"\nurl = "https://example.org/{n}"\nissn = [\n    "1234-5678",\n]\n',
            encoding="utf-8",
        )
        queries += [family, title.split()[0], " ".join(title.split()[:2]), f"author:{family} year:{year}..", title[:3]]
    return dice.sample(queries, 100)


def library_figures(pyz: Path, folder: Path, count: int) -> dict[str, tuple[float, str, float]]:
    """Measure search, lists and the index with so many entries; returns (figure, unit, aim) by what was measured."""
    sys.path.insert(0, str(pyz.parent if pyz.suffix == ".py" else ROOT))
    import doiget

    queries, env = itertools.cycle(shelve(folder / "papers", count)), environment(str(folder))
    store = doiget.Store(folder / "papers", doiget.AccessLog(folder / "access.log"))
    index = doiget.Index(store, folder / "cache/doiget/index")
    store.watcher = index

    def search() -> None:
        list(store.load_keys([key for key, _ in index.search(next(queries), 20).page]))

    def save() -> None:
        work = doiget.Work(title="One more", doi=f"10.5555/more.{time.perf_counter_ns()}", year=2020, date="2020")
        store.save(doiget.Resolved(str(work.doi), work, "crossref"))

    def refresh_after_save() -> float:
        save()
        start = time.perf_counter()
        index.newest(1, None)
        return (time.perf_counter() - start) * 1000

    def command(*words: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, pyz, *words], env=env, check=True, capture_output=True)

    def search_command() -> None:
        command("search", "--", next(queries))()

    start = time.perf_counter()
    index.rebuild()
    built_s = time.perf_counter() - start
    time.sleep(0.1)
    return {
        "full build of the index": (built_s, "s", 60),
        "search p50 in process": (median_ms(search, 100), "ms", 10),
        "search p50 as a command": (median_ms(search_command), "ms", 150),
        "recent as a command": (median_ms(command("recent")), "ms", 150),
        "info as a command": (median_ms(command("info", "10.5555/bench.7")), "ms", 150),
        "refresh, nothing changed": (median_ms(lambda: index.newest(1, None), 50), "ms", 50),
        "refresh, doiget changed an entry": (statistics.median(refresh_after_save() for _ in range(RUNS)), "ms", 50),
        "saving a new entry": (median_ms(save), "ms", 100),
        "full check for edits": (median_ms(lambda: index._differing(index._db), 5), "ms", 500),
    }


def library_rows(pyz: Path, folder: str, counts: Sequence[int]) -> list[tuple[str, str, str, str]]:
    """Compare the figures with their aims, and with those of a tenth of the entries."""
    found, before = [], dict[str, tuple[float, str, float]]()
    for count in counts:
        figures = library_figures(pyz, Path(folder, str(count)), count)
        for what, (figure, unit, aim) in figures.items():
            grown = f" (x{figure / before[what][0]:.1f})" if before else ""
            found.append(against(f"{count:,} entries: {what}{grown}", figure, unit, "aim", aim))
        before = figures
    return found


BARE_LOOP = """
import hashlib, httpx, ssl, sys
digest, context = hashlib.sha256(), ssl.create_default_context(cafile=sys.argv[2])
with httpx.Client(verify=context, proxy=sys.argv[3]) as client, client.stream("GET", sys.argv[1]) as answer:
    with open(sys.argv[4], "wb") as file:
        for block in answer.iter_raw(65536):
            digest.update(block)
            file.write(block)
"""


def timed_child(command: Sequence[Any], env: dict[str, str]) -> tuple[float, float]:
    """Run a process; returns its seconds and its peak of memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - start, usage.ru_maxrss / (1024 if sys.platform == "linux" else 2**20)


def network_rows(pyz: Path, folder: str) -> list[tuple[str, str, str, str]]:
    """Measure a large download and a large batch in the fake internet of the tests."""
    sys.path.insert(0, str(ROOT))
    from fake_internet import FakeInternet
    from test_21_batch import ARXIV, fill
    from worlds import World, big_pdf

    def fetch(ref: str, *words: str) -> list[Any]:
        return [sys.executable, pyz, "fetch", ref, *words]

    size, found = 150_000_000, []
    with FakeInternet() as net:
        world, env = World(net), environment(folder) | net.env() | {"DOIGET_EMAIL": "reader@university.example.org"}
        for number, paper in enumerate([world.paper(f"10.1371/bench.{n}") for n in range(4)]):
            net.url(paper.pdf_url, big_pdf(size if number else 1000))
        _, small_mb = timed_child(fetch("10.1371/bench.0"), env)
        ours = [timed_child(fetch(f"10.1371/bench.{n}"), env) for n in (1, 2, 3)]
        bare = [
            timed_child(
                [sys.executable, "-c", BARE_LOOP, paper.pdf_url, net.ca_file, net.proxy_url, f"{folder}/b"], env
            )
            for _ in ours
        ]
        took, least = (statistics.median(seconds for seconds, _ in times) for times in (ours, bare))
        found.append(against("fetching 150 MB", took, "s", "bare httpx loop with a digest", least))
        peak = max(megabytes for _, megabytes in ours)
        found.append(against("peak of memory at 150 MB", peak, "MB", "the same at 1 kB", small_mb))
    with FakeInternet() as net:
        mixed = fill(World(net))
        command = [sys.executable, pyz, "batch", *mixed.refs, "--jsonl"]
        process = subprocess.Popen(list(map(str, command)), env=env | net.env(), stdout=subprocess.PIPE)
        assert process.stdout
        for _ in range(80):  # the 20 papers of arXiv come at its pace, a minute long
            process.stdout.readline()
        net.wait_for(ARXIV, "/pdf/", 1, timeout=60)
        process.terminate()
        process.communicate()
        asked = [request for request in net.requests() if ".pdf" not in request.path and "/pdf/" not in request.path]
        found.append(against("requests to resolve 100 mixed refs", len(asked), "", "at most", 8))
    return found


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
    stdlib = median_ms(command("-c", stdlib_imports()))
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
    found += network_rows(pyz, f"{folder}/net")
    shelve(Path(folder) / "many", 10_000)
    for name in ("bibtex", "csl"):
        export = command(str(pyz), "export", "--format", name, "--store", f"{folder}/many")
        found.append(against(f"export of 10,000 entries, {name}", median_ms(export, 3), "ms", "aim", 3000))
    found += library_rows(pyz, folder, (1000, 10_000, 100_000) if os.environ.get("BENCH_BIG") else (1000, 10_000))
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
