"""One session under mixed calls for minutes (DOIGET_SOAK_S; an hour in the long form) while the internet misbehaves.

Nothing may crash, leak, be lost or be answered twice, and at the end the store must be whole. All on loopback.
"""

from __future__ import annotations

import collections
import hashlib
import json
import os
import random
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_internet import Reply, html
from test_24_mcp import Session, check_answer, memory_kb, schemas  # noqa: F401 - a fixture
from worlds import block_page, pdf_bytes, wall

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Home, Runner
    from fake_internet import FakeInternet, Request
    from worlds import World

CI_S = float(os.environ.get("DOIGET_SOAK_S") or 180)
LEAK_KB = 20_000
CLIENTS = 8
ANSWER_WITHIN_S = 120.0
EMAIL = "reader@university.example.org"

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")


class LongSession(Session):
    """A session that keeps nothing but the answers nobody has taken yet."""

    lines = 0

    def _take(self, line: bytes) -> None:
        self.lines += 1
        self.stdout = b""
        frame = json.loads(line)
        assert frame["jsonrpc"] == "2.0"
        if "method" in frame:
            return
        ident = repr(frame["id"])
        assert ident not in self.answers, f"a second answer for {ident}"
        self.answers[ident] = frame

    def take(self, ident: Any) -> dict[str, Any]:
        """Wait for an answer and forget it."""
        frame = self.wait(ident, ANSWER_WITHIN_S)
        with self.changed:
            return self.answers.pop(repr(ident)) and frame


class Faults:
    """What goes wrong on the way: a fifth of all replies, each kind as often as the others."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lock = threading.Lock()
        self.counts: collections.Counter[str] = collections.Counter()
        self.kinds: dict[str, Callable[[Reply], Reply]] = {
            "reset": lambda _: Reply(reset=True),
            "cut": lambda reply: replace(reply, cut_after=200),
            "stall": lambda reply: replace(reply, stall_after=100, stall_s=3),
            "slow": lambda reply: replace(reply, delay_s=1.5),
            "500": lambda _: Reply(500, "oops"),
            "503": lambda _: Reply(503, "busy", headers={"Retry-After": "1"}),
            "429": lambda _: Reply(429, "Rate exceeded.", headers={"Retry-After": "2"}),
            "403": lambda _: Reply(403, "no"),
            "half a body": lambda reply: Reply(reply.status, reply.payload()[: len(reply.payload()) // 2]),
            "garbage": lambda _: Reply(body=bytes(range(256)) * 8),
            "page": lambda _: html("<html><body>Welcome to the guest network</body></html>"),
            "block page": lambda _: block_page(),
            "wall": lambda _: wall("cloudflare"),
        }

    def __call__(self, request: Request, reply: Reply) -> Reply:
        with self.lock:
            if self.dice.random() > 0.2:
                return reply
            kind = self.dice.choice(list(self.kinds))
            if kind in {"403", "wall"} and request.host.startswith("api."):
                kind = "500"  # one 403 from an API closes that source for a quarter of an hour: little would be left
            self.counts[kind] += 1
        return self.kinds[kind](reply)


def fill(world: World) -> list[str]:
    """Put works of every kind into the world; returns refs, known and unknown ones."""
    dois = [f"10.1371/journal.soak.{n:07}" for n in range(120)]
    for n, doi in enumerate(dois):
        cites = dois[max(0, n - 3) : n]
        world.paper(doi, body=pdf_bytes(doi, 1000 + n * 997), title=f"On the soaking of number {n}", references=cites)
    closed = [f"10.1371/journal.shut.{n:07}" for n in range(10)]
    for doi in closed:
        world.closed(doi, title=f"Behind a wall {doi[-2:]}")
    arxiv = [f"2401.{n:05}" for n in range(8)]
    for name in arxiv:
        world.arxiv.add(name)
    data = [f"10.5061/dryad.{n:05}" for n in range(8)]
    for doi in data:
        world.datacite_work(doi)
    unknown = ["10.1371/journal.nobody", "arXiv:2401.99999", "10.9999/never", "pmid:99999999", "PMC9999999"]
    return [*dois, *closed, *(f"arXiv:{name}" for name in arxiv), *data, *unknown, "rubbish", "10/x"]


def calls(refs: list[str], dice: random.Random) -> dict[str, Callable[[], tuple[str, dict[str, Any]]]]:
    """Return what a model may ask, by weight in the name's first character."""

    def ref() -> str:
        return dice.choice(refs)

    def listed() -> str:
        cited = (f"@article{{k{n}, doi = {{{ref()}}}, title = {{On the soaking of number {n}}}}}" for n in range(5))
        return "\n".join(cited) + "\nSmith, J. (2020). A paper nobody wrote. Journal of Nothing, 1(2), 3-4."

    return {
        "5 fetch": lambda: ("fetch_paper", {"ref": ref(), "timeout_s": dice.choice([5, 20, 45])}),
        "3 resolve": lambda: ("resolve_paper", {"ref": ref(), "refresh": dice.random() < 0.3}),
        "1 batch": lambda: ("batch_fetch", {"refs": [ref() for _ in range(6)]}),
        "3 info": lambda: ("info", {"ref": ref()}),
        "3 search": lambda: (
            "search_local",
            {"query": dice.choice(["soaking", "number 1", '"', "has:pdf", "year:20"])},
        ),
        "2 recent": lambda: ("list_recent", {"limit": 20}),
        "2 path": lambda: ("paper_pdf_path", {"ref": ref()}),
        "1 verify": lambda: ("verify_references", {"text": listed()}),
        "1 graph": lambda: ("expand_citation_graph", {"ref": ref(), "max_refs": 20}),
        "1 bibtex": lambda: ("bibtex_export", {}),
        "1 bundle": lambda: ("export_bundle", {"formats": ["ris", "csl"], "refs": [ref()]}),
        "1 find": lambda: ("search_papers", {"query": f"soaking of number {dice.randrange(99)}"}),
        "1 ops": lambda: ("list_operations", {"query": "references"}),
        "1 call": lambda: (
            "call_operation",
            {"operation": "crossref search works", "params": {"query": "soaking"}},
        ),
        "1 health": lambda: ("health", {}),
        "1 wrong": lambda: ("fetch_paper", {"reff": 7}),
    }


class Client(threading.Thread):
    """One of several who call at once; each call must be answered, once and well."""

    def __init__(self, session: LongSession, refs: list[str], seed: int, ends: float) -> None:
        super().__init__(daemon=True)
        self.session, self.ends, self.dice = session, ends, random.Random(seed)
        self.calls = calls(refs, self.dice)
        offered = {name.removeprefix("doiget_") for name in session.schemas}
        self.calls = {name: make for name, make in self.calls.items() if make()[0] in offered}
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while time.monotonic() < self.ends:
                self.turn()
                time.sleep(self.dice.random() * 0.2)
        except BaseException as error:  # noqa: BLE001 - the test raises it again
            self.error = error

    def turn(self) -> None:
        (name,) = self.dice.choices(list(self.calls), weights=[int(name[0]) for name in self.calls])
        tool, arguments = self.calls[name]()
        ident = self.session.start(tool, token=f"t{id(self)}{self.outcomes.total()}", **arguments)
        if tool == "fetch_paper" and self.dice.random() < 0.1:
            time.sleep(self.dice.random())
            self.session.notify("notifications/cancelled", {"requestId": ident})
            self.outcomes["cancelled"] += 1  # an answer that was on its way already may still come
            return
        if self.dice.random() < 0.02:
            self.session.write(b'{"jsonrpc": "2.0", "method": \xff\n\n[]\n')
        answer = self.session.take(ident)["result"]["structuredContent"]
        check_answer(answer)
        outcome = "ok" if answer["ok"] else f"{answer['error']['code']} {answer['error']['reason']}"
        assert "INTERNAL_ERROR" not in outcome, (tool, arguments, answer, self.session.stderr[-2000:])
        self.outcomes[f"{tool} {outcome}"] += 1


def check_store(run: Runner, home: Home) -> int:
    """Re-check everything on disk; returns how many PDFs there are."""
    assert run("log", "verify", "--json").json()["faults"] == []
    assert run("doctor", "--offline", "--json").json()["healthy"] is True
    assert not [path for path in home.store.rglob("*") if path.name.endswith(".part")]
    assert run("reindex", "--json").json()["problems"] == []
    pdfs = sorted(home.store.glob("*.pdf"))
    for path in pdfs:
        record = (home.store / ".metadata" / f"{path.stem}.toml").read_text(encoding="utf-8")
        assert hashlib.sha256(path.read_bytes()).hexdigest() in record, path
    for record in (home.store / ".metadata").glob("*.toml"):
        if "\nsha256 = " in record.read_text(encoding="utf-8"):
            assert (home.store / f"{record.stem}.pdf").is_file(), record
    return len(pdfs)


@pytest.mark.parametrize("seconds", [CI_S, pytest.param(3600.0, marks=pytest.mark.long)], ids=["minutes", "an hour"])
def test_a_long_session_in_a_bad_internet(
    run: Runner,
    world: World,
    net: FakeInternet,
    home: Home,
    schemas: dict[str, Any],  # noqa: F811 - the fixture
    seconds: float,
) -> None:
    refs = fill(world)
    net.trouble = faults = Faults(7)
    session = LongSession(run.spawn("serve", env={"DOIGET_EMAIL": EMAIL}), "legacy", schemas)
    session.is_raw = True  # each line was looked at as it came
    session.handshake()
    ends = time.monotonic() + seconds
    clients = [Client(session, refs, seed, ends) for seed in range(CLIENTS)]
    for client in clients:
        client.start()
    time.sleep(seconds / 3)
    before = memory_kb(session.process, "VmRSS")
    while time.monotonic() < ends:  # somebody removes papers meanwhile, so that there is always something to fetch
        run("remove", random.Random(time.time()).choice(refs[:120]), "--quiet")
        time.sleep(min(5.0, seconds / 30))
    for client in clients:
        client.join(ANSWER_WITHIN_S + 10)
        assert client.error is None, client.error
        assert not client.is_alive()
    grown = memory_kb(session.process, "VmRSS") - before
    net.trouble = None
    assert session.take(session.start("health"))["result"]["structuredContent"]["healthy"] is True
    session.close()
    outcomes = sum((client.outcomes for client in clients), collections.Counter())
    pdfs = check_store(run, home)
    print(f"{outcomes.total()} calls, {faults.counts.total()} faults, {pdfs} PDFs, grown by {grown} kB")
    print(sorted(outcomes.items()), sorted(faults.counts.items()))
    assert grown < LEAK_KB, grown
    assert pdfs > 0
    assert not net.errors
    assert min(faults.counts.values()) > 0
    assert {name for name in outcomes if name.endswith(" ok")} > {"fetch_paper ok", "verify_references ok"}
