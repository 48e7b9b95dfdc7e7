"""What survives: kill -9 at any moment, a full disk, many processes at one store, and files changed behind our back.

Everything here runs the built file. Kills come at times drawn from fixed seeds over the life of a run that was
measured undisturbed, and at every step a run takes on the disk. What is on the disk afterwards is judged by this
file's own eyes (TOML, SHA-256) and by what the program shows of it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Home, Result, Runner
from fake_internet import pdf
from worlds import Paper, big_pdf, pdf_bytes, sha256

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fake_internet import FakeInternet
    from worlds import World

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals, links and limits")

DOI = "10.1371/journal.fake.0000001"
KEY = "doi_10.1371_journal.fake.0000001"
COPY = "https://journals.plos.org/fake/1.pdf"
HOSTS = ("journals.plos.org", "peerj.com", "elifesciences.org", "europepmc.org")  # each is asked twice a second at most


# ############################################################################
# Looking at what is there
# ############################################################################


def parts(folder: Path) -> list[str]:
    """Temporary files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name.endswith(".part"))


def wait_until(what: Callable[[], Any], timeout: float = 20.0) -> None:
    """Wait for something that needs a moment; fail when it never comes."""
    deadline = time.monotonic() + timeout
    while not what():
        assert time.monotonic() < deadline, f"waited {timeout} s in vain"
        time.sleep(0.01)


def record_of(path: Path) -> dict[str, Any]:
    """A record as any TOML reader sees it."""
    return tomllib.loads(path.read_bytes().decode())


def finish(process: subprocess.Popen[bytes], timeout: float = 60.0) -> Result:
    """Wait for a process that was spawned with pipes."""
    began = time.monotonic()
    out, err = process.communicate(timeout=timeout)
    return Result(tuple(map(str, process.args)), process.returncode, out, err, time.monotonic() - began)  # type: ignore[arg-type]


def together(run: Runner, *commands: tuple[str, ...], **how: Any) -> list[Result]:
    """Run several commands at the same time."""
    processes = [run.spawn(*command, stdin=subprocess.DEVNULL, **how) for command in commands]
    return [finish(process) for process in processes]


@dataclass
class Shelf:
    """A store with what it must hold, whatever was killed: SHA-256 by ref."""

    run: Runner
    whole: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Home:
        return self.run.home

    def look(self, *refs: str) -> dict[str, str]:
        """What the program shows of some refs (the digest of the PDF, or "" for a record alone), after a kill.

        Checks on the way all that holds after any kill: log and doctor are content, what is shown is whole.
        """
        self.check_files()
        shown = ("info", *refs, "--json") if len(refs) == 1 else ("recent", "--limit", "100", "--json")
        found, log, doctor = together(self.run, shown, ("log", "verify", "--json"), ("doctor", "--json", "--offline"))
        assert (log.rc, log.json()["healthy"], log.json()["faults"]) == (0, True, []), log
        assert (doctor.rc, doctor.json()["healthy"]) == (0, True), doctor
        answer = found.json()
        entries = [answer["entry"]] if "entry" in answer else answer["entries"]
        return {entry["ref"]: self.digest_of(entry) for entry in entries if entry and entry["ref"] in refs}

    def digest_of(self, entry: dict[str, Any]) -> str:
        """The digest of a PDF that is shown, which must be the one its record describes, byte for byte."""
        if entry["path"] is None:
            return ""
        body = (self.home.store / entry["path"]).read_bytes()
        file = self.records()[entry["ref"]]["file"]
        assert (sha256(body), len(body)) == (file["sha256"], file["size_bytes"]), entry
        return str(file["sha256"])

    def records(self) -> dict[str, dict[str, Any]]:
        """Every record by its ref, a waiting one before the one it will replace; each must be sound TOML."""
        names = [*self.home.metadata.glob("[!.]*.toml"), *self.home.metadata.glob(".*.next.toml")]
        return {record["ref"]: record for record in map(record_of, names)}

    def check_files(self) -> None:
        """Nothing that was whole before has suffered."""
        records = self.records()
        assert {ref: records[ref]["file"]["sha256"] for ref in self.whole} == self.whole
        assert set(self.whole.values()) <= {sha256(path.read_bytes()) for path in self.home.store.glob("*.pdf")}

    def settle(self, ref: str, digest: str) -> None:
        """Check that an entry is whole now, with nothing half-done beside it, and expect that from now on."""
        self.whole[ref] = digest
        self.check_files()
        assert parts(self.home.store) == []


# ############################################################################
# Killing
# ############################################################################


class Killer:
    """Kills runs of a command at fractions of its life, drawn uniformly, one from each of `count` equal spans.

    Iterating gives the number of each round; a kill that came too late is tried again, on a shorter life.
    """

    def __init__(self, run: Runner, life_s: float, count: int, seed: int) -> None:
        self.run = run
        self.life_s = life_s
        rng = random.Random(seed)
        self.fractions = [(number + rng.random()) / count for number in range(count)]
        self.rounds = 3 * count

    def __iter__(self) -> Iterator[int]:
        for number in range(self.rounds):
            if not self.fractions:
                return
            yield number
        pytest.fail("the kills keep coming too late")

    def kill(self, *command: str, begins: Callable[[], Any] | None = None, share: float = 1.0) -> str:
        """Start a command and kill it when its time has come; says when for failure messages.

        With `begins` the time counts from the end of that wait and is a fraction of this `share` of the life.
        """
        null = subprocess.DEVNULL
        process = self.run.spawn(*command, stdin=null, stdout=null, stderr=null)
        if begins:
            begins()
        fraction = self.fractions.pop(0)
        try:
            process.wait(fraction * share * self.life_s)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.wait() != -signal.SIGKILL:
            self.fractions.append(fraction)
            self.life_s *= 0.8
        return f"killed at {fraction:.3f} of {share:g} x {self.life_s:.2f} s"


def life_of(run: Runner, *command: str) -> float:
    """How long an undisturbed run takes."""
    result = run(*command)
    assert result.rc in (0, 5), result
    return result.seconds


def slow_paper(world: World, net: FakeInternet, name: str, host: str = HOSTS[0]) -> Paper:
    """A paper of 200 KB whose copy takes a quarter of a second, so that kills land inside the download."""
    body = pdf_bytes(name, size=200_000)
    paper = world.paper(f"10.1371/{name}", title=f"About {name}", pdf_url=f"https://{host}/{name}.pdf", body=body)
    net.url(paper.pdf_url, pdf(body, delay_s=0.03, bytes_per_s=900_000))
    return paper


def slow_apis(world: World, net: FakeInternet) -> None:
    """Let the two sources that every fetch asks think for a moment."""
    for host, source in (("api.crossref.org", world.crossref), ("api.openalex.org", world.openalex)):

        def answer(request: Any, source: Any = source) -> Any:
            time.sleep(0.04)
            return source.answer(request)

        net.route(host, None, answer)


def few_or_many(few: int, many: int) -> Any:
    """A number of kills: the CI-sized one, and the long one."""
    return pytest.mark.parametrize("kills", [few, pytest.param(many, marks=pytest.mark.long)])


@few_or_many(10, 120)
def test_fetch_killed_at_any_moment(run: Runner, world: World, net: FakeInternet, kills: int) -> None:
    """The entry is not there or whole; the same command then completes it and clears the leftovers away.

    Every other kill counts its time from the first byte of the copy: download, commit and record are short.
    """
    slow_apis(world, net)
    shelf = Shelf(run)
    killer = Killer(run, life_of(run, "fetch", slow_paper(world, net, "warm").doi), kills, seed=1)
    for number in killer:
        paper = slow_paper(world, net, f"kill{number}")
        if number % 2:
            path = f"/kill{number}.pdf"
            moment = killer.kill("fetch", paper.doi, begins=lambda path=path: net.wait_for(path=path), share=0.5)
        else:
            moment = killer.kill("fetch", paper.doi)
        seen = shelf.look(paper.doi)
        assert seen.get(paper.doi) in (None, paper.sha256), (moment, seen)
        answer = run("fetch", paper.doi, "--json").json()
        assert answer["ok"] is True, (moment, answer)
        assert answer["already_in_store"] is (paper.doi in seen)
        shelf.settle(paper.doi, paper.sha256)


@few_or_many(6, 60)
def test_batch_killed_at_any_moment(run: Runner, world: World, net: FakeInternet, kills: int) -> None:
    """Each ref of a batch is old or new by itself, the record of a closed work included."""
    slow_apis(world, net)
    shelf = Shelf(run)

    def new_batch(name: str) -> tuple[dict[str, str], str]:
        papers = [slow_paper(world, net, f"{name}.{host}", host) for host in HOSTS[:2]]
        world.closed(f"10.1371/{name}.closed", title="A closed one")
        return {paper.doi: paper.sha256 for paper in papers}, f"10.1371/{name}.closed"

    wanted, closed = new_batch("warm")
    killer = Killer(run, life_of(run, "batch", *wanted, closed), kills, seed=2)
    for number in killer:
        wanted, closed = new_batch(f"kill{number}")
        moment = killer.kill("batch", *wanted, closed)
        seen = shelf.look(*wanted, closed)
        assert seen.items() <= {**wanted, closed: ""}.items(), (moment, seen)
        answer = run("batch", *wanted, closed, "--json").json()
        assert [result["ok"] for result in answer["results"]] == [True, True, False], (moment, answer)
        assert answer["results"][2]["error"]["code"] == "NO_OA_AVAILABLE"
        assert answer["counts"]["already_in_store"] == len(seen.keys() & wanted)
        for ref, digest in wanted.items():
            shelf.settle(ref, digest)
        assert "file" not in shelf.records()[closed]


@pytest.fixture
def removable(run: Runner, world: World) -> Paper:
    """A paper in the store, for `remove` and `restore`."""
    paper = world.paper(DOI, title="A title", pdf_url=COPY, body=pdf_bytes("x", size=200_000))
    assert run("fetch", DOI).rc == 0
    return paper


@few_or_many(5, 60)
def test_remove_killed_at_any_moment(run: Runner, removable: Paper, kills: int) -> None:
    """The entry is there or in the trash, and `restore` brings it back as it was."""
    shelf = Shelf(run)
    record = shelf.records()[DOI]
    life = life_of(run, "remove", DOI)
    assert run("restore", DOI).rc == 0
    for _ in (killer := Killer(run, life, kills, seed=3)):
        moment = killer.kill("remove", DOI)
        seen = shelf.look(DOI)
        assert seen.get(DOI) in (None, removable.sha256), (moment, seen)
        again = run("remove", DOI, "--json")
        assert again.rc == (0 if seen else 4), (moment, again)
        killer.life_s = again.seconds if seen else killer.life_s
        assert run("restore", DOI).rc == 0, moment
        assert shelf.records() == {DOI: record}
        shelf.settle(DOI, removable.sha256)
        shelf.whole.clear()
    assert run("trash", "--json").json()["entries"] == []


@few_or_many(5, 60)
def test_restore_killed_at_any_moment(run: Runner, removable: Paper, kills: int) -> None:
    """The entry is in the trash or back as it was, never half of it, and never lost."""
    shelf = Shelf(run)
    record = shelf.records()[DOI]
    assert run("remove", DOI).rc == 0
    life = life_of(run, "restore", DOI)
    for _ in (killer := Killer(run, life, kills, seed=4)):
        assert run("remove", DOI).rc == 0
        moment = killer.kill("restore", DOI)
        seen = shelf.look(DOI)
        assert seen.get(DOI) in (None, removable.sha256), (moment, seen)
        again = run("restore", DOI, "--json")
        assert again.rc == (4 if seen else 0), (moment, again)
        killer.life_s = killer.life_s if seen else again.seconds
        assert shelf.records() == {DOI: record}
        shelf.settle(DOI, removable.sha256)
        shelf.whole.clear()
    assert run("trash", "--json").json()["entries"] == []


@few_or_many(6, 60)
def test_add_killed_at_any_moment(run: Runner, world: World, home: Home, kills: int) -> None:
    """A PDF of one's own is in the store or not; the file it came from is left alone, and adding again completes it."""
    shelf = Shelf(run)

    def own_pdf(name: str) -> tuple[str, Path]:
        world.closed(f"10.1371/{name}", title=f"About {name}")
        path = home.root / f"{name}.pdf"
        path.write_bytes(pdf_bytes(name, size=400_000))
        return f"10.1371/{name}", path

    ref, path = own_pdf("warm")
    for number in (killer := Killer(run, life_of(run, "add", str(path), "--ref", ref), kills, seed=5)):
        ref, path = own_pdf(f"own{number}")
        body = path.read_bytes()
        moment = killer.kill("add", str(path), "--ref", ref)
        seen = shelf.look(ref)
        assert seen.get(ref) in (None, sha256(body)), (moment, seen)
        assert run("add", str(path), "--ref", ref).rc == 0, moment
        assert path.read_bytes() == body
        shelf.look(ref)
        shelf.settle(ref, sha256(body))


@few_or_many(6, 60)
def test_index_killed_at_any_moment(run: Runner, home: Home, kills: int) -> None:
    """A half-built index is found out: the next search finds every record, also one that came after the kill."""
    home.metadata.mkdir(parents=True)

    def write_record(number: int) -> None:
        text = f'schema_version = "1.0"\nref = "10.1371/indexed.{number}"\ncitekey = "key{number}"\n'
        text += 'source = "crossref"\n'
        text += f'[work]\ntitle = "Paper {number} on indexing"\ndoi = "10.1371/indexed.{number}"\n'
        (home.metadata / f"doi_10.1371_indexed.{number}.toml").write_text(text)

    for number in range(400):
        write_record(number)
    life, total = life_of(run, "search", "indexing"), 400
    for number in (killer := Killer(run, life, kills, seed=6)):
        if number % 2:
            shutil.rmtree(home.cache / "index", ignore_errors=True)
        write_record(total)
        total += 1
        moment = killer.kill("search", "indexing")
        answer = run("search", "indexing", "--json").json()
        assert (answer["ok"], answer["total"]) == (True, total), (moment, answer)
        assert answer.get("warnings", []) == [], (moment, answer)


# Counts what a run does to the disk below some folders, writes it down, and dies by SIGKILL at a chosen step:
# before an open, rename or removal, and half-way through a write.
STEP_KILLER = """
import os, runpy, signal, sys

last, folders = int(sys.argv[1]), tuple(sys.argv[3].split(":"))
journal = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
write, count = os.write, 0
changes = os.O_WRONLY | os.O_RDWR | os.O_CREAT

def is_due(name, what):
    global count
    try:
        what = os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else os.fsdecode(what)
    except (OSError, TypeError):
        return False
    if not what.startswith(folders):
        return False
    count += 1
    write(journal, f"{count} {name} {what}\\n".encode())
    return count == last

def hook(event, args):
    changing = event == "open" and isinstance(args[2], int) and args[2] & changes
    if changing or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"):
        if is_due(event, args[0]):
            os.kill(os.getpid(), signal.SIGKILL)

def torn(fd, data):
    if is_due("write", fd):
        write(fd, bytes(data)[:len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return write(fd, data)

os.write = torn
sys.addaudithook(hook)
sys.argv = sys.argv[4:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def killed_at_step(run: Runner, step: int, *command: str) -> list[str]:
    """Run a command that dies at a step of its work on store and log (0: at none); returns the steps it took."""
    journal = run.home.root / "journal"
    flags = ("-c", STEP_KILLER, str(step), str(journal), f"{run.home.store}:{run.home.config}")
    result = run(*command, flags=flags)
    steps = journal.read_text().splitlines()
    assert (result.rc == -signal.SIGKILL) is (0 < step <= len(steps)), (step, result)
    return steps


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc names open files")
@few_or_many(8, 10_000)
def test_fetch_killed_at_its_steps(run: Runner, world: World, kills: int) -> None:
    """No step of a fetch, from the first lock to the last rename, leaves anything but old or new (long: each step)."""

    def paper(name: str) -> Paper:
        url = f"https://{HOSTS[0]}/{name}.pdf"
        return world.paper(f"10.1371/{name}", pdf_url=url, body=pdf_bytes(name, size=90_000))

    shelf, whole = Shelf(run), paper("whole")
    taken = killed_at_step(run, 0, "fetch", whole.doi)
    assert len(taken) > 20, taken
    shelf.settle(whole.doi, whole.sha256)
    for step in random.Random(5).sample(range(1, len(taken) + 1), min(kills, len(taken))):
        victim = paper(f"step{step}")
        *_, last = killed_at_step(run, step, "fetch", victim.doi)
        seen = shelf.look(victim.doi)
        assert seen.get(victim.doi) in (None, victim.sha256), last
        again = run("fetch", victim.doi, "--json").json()
        assert again["ok"] is True, (last, again)
        assert again["already_in_store"] is (victim.doi in seen), last
        shelf.settle(victim.doi, victim.sha256)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc names open files")
def test_the_last_step_decides(run: Runner, world: World) -> None:
    """Killed with the PDF in place and its record not yet: readers see the old state, the next fetch mends it."""
    first, second, victim = papers_of_one_author(world, "a", 3)
    assert run("fetch", first.doi).rc == 0
    steps = killed_at_step(run, 0, "fetch", second.doi)
    renames = [
        number
        for number, step in enumerate(steps, 1)
        if re.search(r"os\.rename .*/\.metadata/\.doi_[^/]+\.[0-9a-f]{16}\.part$", step)
    ]
    killed_at_step(run, renames[-1], "fetch", victim.doi)
    shelf = Shelf(run)
    assert shelf.look(victim.doi) == {}
    assert run("path", victim.doi).rc == 4
    assert [entry["ref"] for entry in run("recent", "--json").json()["entries"]] == [second.doi, first.doi]
    answer = run("fetch", victim.doi, "--json").json()
    assert (answer["already_in_store"], answer["sha256"]) == (False, victim.sha256)
    assert run("trash", "--json").json()["entries"] == []


def test_leftovers_of_the_killed_are_cleared_everywhere(run: Runner, world: World, home: Home) -> None:
    """Temporary files a kill left beside the store's files, the log and the pace go with the next write."""
    world.paper(DOI, pdf_url=COPY)
    pace = home.cache / "pace"
    for folder in (home.metadata, home.config, pace):
        folder.mkdir(parents=True)
    random_part = "0123456789abcdef.part"
    planted = [
        home.store / f".{KEY}.{random_part}",  # of the very paper that is fetched
        home.store / f".doi_10.1371_another.{random_part}",
        home.metadata / f".{KEY}.toml.{random_part}",
        home.metadata / f"..{KEY}.next.toml.{random_part}",
        home.metadata / f"..heads.{random_part}",
        home.config / f".access.log.head.{random_part}",
        pace / f".all.json.{random_part}",
    ]
    two_hours_ago = time.time() - 7200
    for path in planted:
        path.write_bytes(b"half")
        os.utime(path, (two_hours_ago, two_hours_ago))
    assert run("fetch", DOI).rc == 0
    assert parts(home.root) == []


def test_parts_of_the_living_are_left_alone(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    """One process clears up while another is in the middle of its download."""
    process, release, paper = held(run, world, net)
    other = world.paper("10.1371/other", pdf_url="https://peerj.com/other.pdf")
    assert run("fetch", other.doi).rc == 0
    assert len(parts(home.store)) == 1
    release.set()
    assert finish(process).json()["sha256"] == paper.sha256


# ############################################################################
# No room
# ############################################################################

LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.argv[2], sys.argv[2:])
"""


def limited(run: Runner, max_bytes: int, *command: str) -> Result:
    """Run a command that can write no file larger than so many bytes."""
    run("--version")  # the file may have to unpack itself first
    return run(*command, flags=("-c", LIMITED, str(max_bytes), sys.executable))


def is_full(result: Result, reason: str = "disk_full") -> dict[str, Any]:
    """Check the answer of a command that found no room."""
    error: dict[str, Any] = result.json()["error"]
    assert (error["code"], error["reason"], error["disposition"]) == ("STORE_ERROR", reason, "configure"), result
    assert result.rc == 10
    return error


@pytest.fixture
def shelf(run: Runner, world: World) -> Shelf:
    """A store that holds one paper already."""
    shelf = Shelf(run)
    kept = world.paper("10.1371/kept", title="Kept", pdf_url="https://peerj.com/kept.pdf")
    assert run("fetch", kept.doi).rc == 0
    shelf.settle(kept.doi, kept.sha256)
    return shelf


def stores_nothing(shelf: Shelf, ref: str) -> None:
    """Nothing of a ref is shown, nothing half-done lies about, and the rest is whole."""
    assert not shelf.look(ref).get(ref)
    assert parts(shelf.home.root) == []
    assert len(list(shelf.home.store.glob("*.pdf"))) == len(shelf.whole)


def test_pdf_over_the_file_size_limit(shelf: Shelf, run: Runner, world: World) -> None:
    paper = world.paper(DOI, pdf_url=COPY, body=pdf_bytes("x", size=300_000))
    is_full(limited(run, 100_000, "fetch", DOI, "--json"))
    stores_nothing(shelf, DOI)
    assert run("fetch", DOI).rc == 0
    shelf.settle(DOI, paper.sha256)


def test_only_the_record_finds_no_room(shelf: Shelf, run: Runner, world: World) -> None:
    """The PDF fits, the record of 3,000 authors does not: neither is kept."""
    authors = [f"Author Number{number:04}" for number in range(3000)]
    paper = world.paper(DOI, pdf_url=COPY, authors=authors)
    is_full(limited(run, 40_000, "fetch", DOI, "--json"))
    stores_nothing(shelf, DOI)
    assert run("fetch", DOI).rc == 0
    shelf.settle(DOI, paper.sha256)
    assert len(shelf.records()[DOI]["work"]["authors"]) == 3000


def test_batch_goes_on_beside_the_one_without_room(shelf: Shelf, run: Runner, world: World) -> None:
    world.paper(DOI, pdf_url=COPY, body=pdf_bytes("x", size=300_000))
    small = world.paper("10.1371/small", pdf_url="https://elifesciences.org/small.pdf")
    answer = limited(run, 100_000, "batch", DOI, small.doi, "--json").json()
    assert [result["ok"] for result in answer["results"]] == [False, True], answer
    assert answer["results"][0]["error"]["reason"] == "disk_full"
    shelf.settle(small.doi, small.sha256)
    stores_nothing(shelf, DOI)


@dataclass
class Disk:
    """A small file system of its own."""

    root: Path

    def resize(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", self.root], check=True)

    def fill(self, free: int) -> None:
        """Leave only so many bytes free."""
        stats = os.statvfs(self.root)
        with (self.root / "filler").open("wb") as filler:
            filler.write(bytes(stats.f_bavail * stats.f_frsize - free))
        stats = os.statvfs(self.root)
        assert stats.f_bavail * stats.f_frsize == free


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A tmpfs of 1 MB, where this user may mount one."""
    root = tmp_path / "disk"
    root.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(root)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted here (it takes root)")
    yield Disk(root)
    subprocess.run(["umount", "-l", root], check=True)


@pytest.fixture
def full_store(disk: Disk, run: Runner, world: World, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A store on the small disk, with one paper in it."""
    monkeypatch.setattr(Home, "store", property(lambda _: disk.root / "papers"))
    shelf = Shelf(run)
    kept = world.paper("10.1371/kept", title="Kept", pdf_url="https://peerj.com/kept.pdf")
    assert run("fetch", kept.doi).rc == 0
    shelf.settle(kept.doi, kept.sha256)
    return shelf


@pytest.mark.parametrize(
    "free", [0, 4096, 40960, 45056], ids=["nothing", "a page", "the PDF only", "less than the rest"]
)
def test_full_disk(full_store: Shelf, disk: Disk, run: Runner, world: World, free: int) -> None:
    """A PDF of ten pages, with room for none, for one, for the PDF but not its record, and for one page more."""
    authors = [f"Author Number{number:04}" for number in range(300)]
    paper = world.paper(DOI, pdf_url=COPY, body=pdf_bytes("x", size=40_960), authors=authors)
    disk.fill(free)
    error = is_full(run("fetch", DOI, "--json"))
    assert "full" in error["message"]
    stores_nothing(full_store, DOI)
    disk.resize("2m")
    assert run("fetch", DOI).rc == 0
    full_store.settle(DOI, paper.sha256)


def test_full_disk_under_the_log(disk: Disk, run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    """What cannot be logged is not fetched; once there is room, the chain goes on whole."""
    log = {"DOIGET_ACCESS_LOG": str(disk.root / "access.log")}
    first = world.paper("10.1371/first", pdf_url="https://peerj.com/first.pdf")
    assert run("fetch", first.doi, env=log).rc == 0
    world.paper(DOI, pdf_url=COPY)
    disk.fill(0)
    is_full(run("fetch", DOI, "--json", env=log), "log_unwritable")
    assert not net.requests(host="journals.plos.org")
    assert not (home.store / f"{KEY}.pdf").exists()
    (disk.root / "filler").unlink()
    assert run("fetch", DOI, env=log).rc == 0
    verified = run("log", "verify", "--json", env=log)
    assert (verified.rc, verified.json()["healthy"]) == (0, True), verified
    assert parts(disk.root) == []


# ############################################################################
# Several processes at once
# ############################################################################


@pytest.mark.parametrize("count", [2, 4])
def test_one_ref_is_downloaded_once(run: Runner, world: World, net: FakeInternet, home: Home, count: int) -> None:
    """Processes that want the same paper at the same time: one goes, the others wait and take what it brought."""
    release = threading.Event()
    paper = world.paper(DOI, pdf_url=COPY)
    net.url(COPY, pdf(paper.body, hold=release))
    processes = [run.spawn("fetch", DOI, "--json", "--no-cache") for _ in range(count)]
    net.wait_for("journals.plos.org")
    net.wait_for("api.openalex.org", count=count, ended=True)
    time.sleep(0.5)
    assert len(net.requests("journals.plos.org")) == 1
    release.set()
    answers = [finish(process).json() for process in processes]
    assert all(answer["ok"] for answer in answers), answers
    assert {answer["sha256"] for answer in answers} == {paper.sha256}
    assert sorted(answer["already_in_store"] for answer in answers) == [False] + [True] * (count - 1)
    assert len(net.requests("journals.plos.org")) == 1
    assert parts(home.store) == []
    assert len({answer["citekey"] for answer in answers}) == 1
    assert run("log", "verify").rc == 0


def held(run: Runner, world: World, net: FakeInternet) -> tuple[subprocess.Popen[bytes], threading.Event, Paper]:
    """A process in the middle of its download, which goes on when the event is set."""
    release = threading.Event()
    paper = world.paper(DOI, pdf_url=COPY, body=pdf_bytes("x", size=200_000))
    net.url(COPY, pdf(paper.body, stall_after=65536, hold=release))
    process = run.spawn("fetch", DOI, "--json")
    net.wait_for("journals.plos.org", sent=65536)
    wait_until(lambda: parts(run.home.store))
    return process, release, paper


def test_who_waits_for_another_gives_up_at_its_deadline(run: Runner, world: World, net: FakeInternet) -> None:
    process, release, paper = held(run, world, net)
    late = run("fetch", DOI, "--json", "--timeout-s", "2")
    error = late.json()["error"]
    assert (error["code"], error["reason"], late.rc) == ("FETCH_TIMEOUT", "deadline", 9), late
    assert late.seconds < 20
    release.set()
    answer = finish(process).json()
    assert (answer["ok"], answer["sha256"]) == (True, paper.sha256), answer
    Shelf(run).settle(DOI, paper.sha256)


def test_other_refs_do_not_wait(run: Runner, world: World, net: FakeInternet) -> None:
    process, release, paper = held(run, world, net)
    other = world.paper("10.1371/other", pdf_url="https://peerj.com/other.pdf")
    answer = run("fetch", other.doi, "--json").json()
    assert answer["sha256"] == other.sha256
    assert process.poll() is None
    assert run("info", DOI, "--json").json()["entry"] is None
    release.set()
    assert finish(process).json()["sha256"] == paper.sha256


def test_readers_do_not_wait(run: Runner, world: World, net: FakeInternet) -> None:
    """No lock is needed to read."""
    process, release, _ = held(run, world, net)
    for result in together(run, ("info", DOI), ("recent",), ("log", "verify"), ("doctor", "--offline")):
        assert result.rc == 0, result
        assert result.seconds < 20, result
    release.set()
    finish(process)


def test_a_waiting_process_takes_over_from_a_killed_one(run: Runner, world: World, net: FakeInternet) -> None:
    process, release, paper = held(run, world, net)
    asked = len(net.requests("api.openalex.org"))
    heir = run.spawn("fetch", DOI, "--json", "--no-cache")
    net.wait_for("api.openalex.org", count=asked + 1, ended=True)
    time.sleep(0.2)
    assert len(net.requests("journals.plos.org")) == 1
    process.kill()
    release.set()
    answer = finish(heir).json()
    assert (answer["ok"], answer["already_in_store"]) == (True, False), answer
    assert len(net.requests("journals.plos.org")) == 2
    Shelf(run).settle(DOI, paper.sha256)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_in_the_middle_of_a_download_leaves_nothing(
    run: Runner, world: World, net: FakeInternet, home: Home, name: str
) -> None:
    """Out at once, with no temporary file, no lock and no connection; the next process is not held up."""
    number = getattr(signal, name)
    process, release, paper = held(run, world, net)
    began = time.monotonic()
    process.send_signal(number)
    result = finish(process, timeout=10)
    assert time.monotonic() - began < 5
    assert result.rc == 128 + number, result
    assert "Traceback" not in result.err
    assert parts(home.root) == []
    assert list((home.metadata / ".locks").iterdir()) == []
    wait_until(lambda: all(request.t_end for request in net.requests("journals.plos.org")))
    release.set()
    again = run("fetch", DOI, "--json", "--timeout-s", "10").json()
    assert again["ok"] is True, again
    Shelf(run).settle(DOI, paper.sha256)


def test_a_signal_while_waiting_for_another_process(run: Runner, world: World, net: FakeInternet) -> None:
    process, release, paper = held(run, world, net)
    asked = len(net.requests("api.openalex.org"))
    waiting = run.spawn("fetch", DOI, "--json", "--no-cache")
    net.wait_for("api.openalex.org", count=asked + 1, ended=True)
    time.sleep(0.2)
    waiting.terminate()
    assert finish(waiting, timeout=5).rc == 143
    assert process.poll() is None
    release.set()
    assert finish(process).json()["sha256"] == paper.sha256


# ---- many writers ----


def papers_of_one_author(world: World, name: str, count: int) -> list[Paper]:
    """Papers that would all get the same citekey."""
    return [
        world.paper(
            f"10.1371/{name}.{number}",
            title=f"Markov {name} {number}",
            authors=["Ada Lovelace"],
            date="2013-01-02",
            pdf_url=f"https://{HOSTS[number % len(HOSTS)]}/{name}/{number}.pdf",
        )
        for number in range(count)
    ]


def all_there(run: Runner, papers: list[Paper], env: dict[str, str | None]) -> None:
    """Every paper is in the store, whole, under a citekey of its own, and the log tells of each."""
    records = [record_of(path) for path in run.home.metadata.glob("[!.]*.toml")]
    assert {record["ref"]: record["file"]["sha256"] for record in records} == {
        paper.doi: paper.sha256 for paper in papers
    }
    assert {sha256(path.read_bytes()) for path in run.home.store.glob("*.pdf")} == {paper.sha256 for paper in papers}
    citekeys = [record["citekey"] for record in records]
    assert len(set(citekeys)) == len(papers)
    assert all(re.fullmatch(r"lovelace2013markov[a-z]{0,2}", citekey) for citekey in citekeys), citekeys
    verified = run("log", "verify", "--json", env=env)
    assert (verified.rc, verified.json()["healthy"]) == (0, True), verified
    log = [json.loads(line) for line in (run.home.root / "shared.log").read_text().splitlines()]
    assert sorted(line["ref"] for line in log if line["event"] == "store_write") == sorted(
        paper.doi for paper in papers
    )
    assert [line["seq"] for line in log] == list(range(len(log)))
    assert parts(run.home.root) == []


def test_two_hosts_add_forty_papers_each_to_one_store(
    run: Runner, world: World, net: FakeInternet, home: Home, tmp_path: Path, unpacked: Path
) -> None:
    """Two machines share a store and its log, but neither cache nor pace: all papers arrive, no citekey twice."""
    papers = [papers_of_one_author(world, name, 40) for name in ("one", "two")]
    env: dict[str, str | None] = {"DOIGET_ACCESS_LOG": str(home.root / "shared.log"), "DOIGET_STORE": str(home.store)}
    elsewhere = Runner(run.pyz, Home(tmp_path / "other host"), net, unpacked)
    words = [("batch", *(paper.doi for paper in mine), "--json") for mine in papers]
    processes = [host.spawn(*mine, env=env) for host, mine in zip((run, elsewhere), words, strict=True)]
    results = [finish(process) for process in processes]
    for result in results:
        assert result.json()["counts"] == {"fetched": 40, "already_in_store": 0, "failed": 0, "pending": 0}, result
    all_there(run, [*papers[0], *papers[1]], env)
    newest = run("recent", "--json", "--limit", "100").json()
    assert newest["total"] == 80


def test_four_processes_of_one_user_add_papers(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    """They share the pace too: 5 requests a second, however many ask."""
    papers = [papers_of_one_author(world, name, 4) for name in ("one", "two", "three", "four")]
    env: dict[str, str | None] = {"DOIGET_ACCESS_LOG": str(home.root / "shared.log")}
    results = together(run, *[("batch", *(paper.doi for paper in mine), "--json") for mine in papers], env=env)
    for result in results:
        assert result.json()["counts"]["fetched"] == 4, result
    all_there(run, [paper for mine in papers for paper in mine], env)
    starts = [request.t_start for request in net.requests()]
    assert len(starts) >= 4 * 4 + 4 * 2
    assert max(starts) - min(starts) > (len(starts) - 6) / 5
    assert net.max_in_window(2) <= 12  # ten, and what a busy machine pushes together
    assert all(net.max_at_once(host) == 1 for host in HOSTS)


def test_arxiv_is_asked_at_one_pace_by_all_processes(run: Runner, world: World, net: FakeInternet) -> None:
    """One request in 3 seconds and one connection, feed and PDF together, whoever asks."""
    for number in (1, 2):
        world.arxiv_paper(f"2401.0000{number}", title=f"Preprint {number}")
    results = together(run, *[("fetch", f"arXiv:2401.0000{number}", "--json") for number in (1, 2)])
    assert all(result.json()["ok"] for result in results), results
    asked = sorted((r for r in net.requests() if r.host.endswith("arxiv.org")), key=lambda request: request.t_start)
    assert len(asked) == 4, net.text()
    assert net.max_at_once("export.arxiv.org") == 1
    assert net.max_connections_at_once("export.arxiv.org") == 1
    gaps = [later.t_start - earlier.t_start for earlier, later in itertools.pairwise(asked)]
    assert min(gaps) >= 2.99, gaps  # as arXiv sees it, whatever making a connection took


# ############################################################################
# Memory
# ############################################################################

PEAK = """
import os, resource, subprocess, sys
rc = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(rc)
"""


def peak_mb(run: Runner, *command: str) -> tuple[Result, float]:
    """Run a command under a small parent that reports the most memory it held (MB)."""
    result = run(*command, flags=("-c", PEAK, sys.executable), timeout=120)
    unit = 1 if sys.platform == "darwin" else 1024
    return result, int(result.err.split()[-1]) * unit / 1e6


def test_memory_while_a_large_pdf_streams(run: Runner, world: World, net: FakeInternet) -> None:
    """150 MB pass through; what is held at once stays near what a small file takes."""
    world.paper("10.1371/small", pdf_url="https://peerj.com/small.pdf")
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, big_pdf(150_000_000))
    small, idle = peak_mb(run, "fetch", "10.1371/small", "--json")
    large, peak = peak_mb(run, "fetch", DOI, "--json")
    assert small.rc == large.rc == 0, large
    assert large.json()["size_bytes"] == 150_000_000
    assert peak < idle + 60, f"{peak:.0f} MB, where a small file takes {idle:.0f} MB"


# ############################################################################
# Locks of the dead
# ############################################################################


def dead_pid() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def owner_file(lock: Path, *, pid: int, host: str | None = None, age_s: float = 0.0) -> Path:
    """Plant the owner file that stands for a lock where the file system has none."""
    import doiget

    lock.parent.mkdir(parents=True, exist_ok=True)
    owner = lock.with_name(f"{lock.name}.owner")
    owner.write_text(json.dumps({"host": host or doiget._owner_host(), "pid": pid, "token": "0123456789abcdef"}))
    os.utime(owner, (time.time() - age_s, time.time() - age_s))
    return owner


def locks_of(home: Home) -> list[Path]:
    """Every lock that a fetch of DOI takes, one way or another."""
    named = [home.metadata / ".locks" / f"{name}.lock" for name in (f"get.{KEY}", f"put.{KEY}", "all.store")]
    paced = [
        home.cache / "pace" / f"{name}.lock" for name in ("all", "crossref", "crossref.0", "host-journals.plos.org.0")
    ]
    return [*named, *paced, home.config / ".access.log.lock"]


@pytest.mark.parametrize(
    "left", ["lock files", "owner files of a dead process", "old owner files of another host", "damaged owner files"]
)
def test_locks_of_the_dead_block_nobody(run: Runner, world: World, home: Home, left: str) -> None:
    paper = world.paper(DOI, pdf_url=COPY)
    for lock in locks_of(home):
        if left == "lock files":
            lock.parent.mkdir(parents=True, exist_ok=True)
            lock.write_text("")
        elif left == "damaged owner files":
            owner_file(lock, pid=1, age_s=600).write_text("{half")
            os.utime(lock.with_name(f"{lock.name}.owner"), (time.time() - 600,) * 2)
        elif "dead" in left:
            owner_file(lock, pid=dead_pid())
        else:
            owner_file(lock, pid=os.getpid(), host="another-host", age_s=600)
    result = run("fetch", DOI, "--json", "--timeout-s", "10")
    assert result.json()["ok"] is True, result
    Shelf(run).settle(DOI, paper.sha256)
    assert list((home.metadata / ".locks").iterdir()) == []


@pytest.mark.parametrize("host", [None, "another-host"], ids=["this host", "another host"])
def test_an_owner_file_of_the_living_is_heard(
    run: Runner, world: World, net: FakeInternet, home: Home, host: str | None
) -> None:
    world.paper(DOI, pdf_url=COPY)
    owner = owner_file(locks_of(home)[0], pid=os.getpid(), host=host)
    result = run("fetch", DOI, "--json", "--timeout-s", "2")
    assert (result.json()["error"]["code"], result.rc) == ("FETCH_TIMEOUT", 9), result
    assert not net.requests("journals.plos.org")
    assert owner.exists()
    owner.unlink()
    assert run("fetch", DOI).rc == 0


def test_a_record_lock_that_stays_held_is_an_error_after_five_seconds(run: Runner, world: World, home: Home) -> None:
    world.paper(DOI, pdf_url=COPY)
    owner_file(locks_of(home)[1], pid=os.getpid())
    result = run("fetch", DOI, "--json")
    error = result.json()["error"]
    assert (error["code"], error["reason"], result.rc) == ("STORE_ERROR", "locked", 10), result
    assert 4.5 < result.seconds < 25
    assert parts(home.store) == []
    assert run("info", DOI, "--json").json()["entry"] is None


def test_a_planted_link_in_place_of_a_lock_is_not_followed(run: Runner, world: World, home: Home) -> None:
    world.paper(DOI, pdf_url=COPY)
    victim = home.root / "victim"
    victim.write_text("mine")
    for lock in locks_of(home)[:3]:
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.symlink_to(victim)
    run("fetch", DOI, "--json", "--timeout-s", "10")
    assert victim.read_text() == "mine"
    assert not victim.is_symlink()


# ############################################################################
# Files changed behind our back
# ############################################################################


@pytest.fixture
def stored(run: Runner, world: World, net: FakeInternet) -> Paper:
    """A paper in the store; the wire log begins after it was fetched."""
    paper = world.paper(DOI, title="A title", pdf_url=COPY, body=pdf_bytes("x", size=20_000))
    assert run("fetch", DOI).rc == 0
    net.clear()
    return paper


def warnings_of(result: Result) -> str:
    """All that an answer and its stderr say beside the facts."""
    answer = result.json()
    said = [*answer.get("warnings", []), *((answer.get("entry") or {}).get("warnings") or [])]
    return "\n".join([*said, result.err])


def test_a_linked_record_is_refused_with_a_warning(run: Runner, stored: Paper, home: Home) -> None:
    record = home.metadata / f"{KEY}.toml"
    outside = home.root / "outside.toml"
    record.rename(outside)
    record.symlink_to(outside)
    before = outside.read_bytes()
    shown = run("info", DOI, "--json")
    assert shown.json()["entry"] is None
    assert run("path", DOI).rc == 10
    result = run("fetch", DOI, "--json")
    assert result.json()["error"]["code"] == "STORE_ERROR", result
    assert run("remove", DOI).rc != 0
    assert outside.read_bytes() == before
    assert record.is_symlink()
    assert (home.store / f"{KEY}.pdf").read_bytes() == stored.body
    assert f"{KEY}.toml" in warnings_of(shown), shown


def test_a_linked_pdf_is_refused_with_a_warning(run: Runner, stored: Paper, net: FakeInternet, home: Home) -> None:
    """A new copy takes the link's place; what it led to is neither read nor written."""
    file = home.store / f"{KEY}.pdf"
    outside = home.root / "outside.pdf"
    file.rename(outside)
    file.symlink_to(outside)
    shown = run("info", DOI, "--json")
    assert shown.json()["entry"]["path"] is None
    assert f"{KEY}.pdf" in warnings_of(shown), shown
    assert run("path", DOI).rc == 4
    assert run("fetch", DOI, "--json").json()["already_in_store"] is False
    assert len(net.requests("journals.plos.org")) == 1
    assert not file.is_symlink()
    assert outside.read_bytes() == stored.body
    Shelf(run).settle(DOI, stored.sha256)


@pytest.mark.usefixtures("stored")
def test_a_linked_metadata_folder_is_not_written(run: Runner, world: World, home: Home) -> None:
    outside = home.root / "outside"
    home.metadata.rename(outside)
    home.metadata.symlink_to(outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir() if path.is_file()}
    other = world.paper("10.1371/other", pdf_url="https://peerj.com/other.pdf")
    assert run("fetch", other.doi, "--json").json()["error"]["code"] == "STORE_ERROR"
    assert run("remove", DOI).rc == 10
    assert {path.name: path.read_bytes() for path in outside.iterdir() if path.is_file()} == before
    assert parts(home.store) == []


def test_a_record_for_another_key_is_refused_with_a_warning(
    run: Runner, stored: Paper, world: World, home: Home
) -> None:
    """A record speaks for its own ref only, whatever its file is called."""
    other = world.paper("10.1371/other", title="Another", pdf_url="https://peerj.com/other.pdf")
    key = "doi_10.1371_other"
    shutil.copy(home.metadata / f"{KEY}.toml", home.metadata / f"{key}.toml")
    shutil.copy(home.store / f"{KEY}.pdf", home.store / f"{key}.pdf")
    shown = run("info", other.doi, "--json")
    assert shown.json()["entry"] is None
    assert run("recent", "--json").json()["entries"][0]["ref"] == DOI
    answer = run("fetch", other.doi, "--json").json()
    assert (answer["ok"], answer["title"], answer["sha256"]) == (True, "Another", other.sha256), answer
    shelf = Shelf(run)
    shelf.settle(other.doi, other.sha256)
    shelf.settle(DOI, stored.sha256)
    assert f"{key}.toml" in warnings_of(shown), shown


@pytest.mark.parametrize("how", ["removed", "emptied", "cut", "annotated", "replaced"])
def test_a_pdf_changed_by_hand_is_noticed(run: Runner, stored: Paper, net: FakeInternet, home: Home, how: str) -> None:
    """It is not shown any more and fetched again; what a person made of it goes to the trash, not away."""
    file = home.store / f"{KEY}.pdf"
    changed = {
        "removed": None,
        "emptied": b"",
        "cut": stored.body[:-100],
        "annotated": stored.body + b"% my notes",
        "replaced": b"<html>log in</html>".ljust(len(stored.body)),
    }[how]
    file.unlink()
    if changed is not None:
        file.write_bytes(changed)
    shown = run("info", DOI, "--json")
    assert shown.json()["entry"]["path"] is None
    assert f"{KEY}.pdf" in warnings_of(shown)
    assert run("path", DOI).rc == 4
    assert run("recent", "--json").json()["entries"][0]["path"] is None
    answer = run("fetch", DOI, "--json").json()
    assert (answer["ok"], answer["already_in_store"]) == (True, False), answer
    assert [request.path for request in net.requests("journals.plos.org")] == ["/fake/1.pdf"]
    Shelf(run).settle(DOI, stored.sha256)
    kept = [path.read_bytes() for path in home.metadata.glob(".trash/*/paper.pdf")]
    assert kept == ([changed] if changed else kept)


@pytest.mark.usefixtures("stored")
def test_a_record_of_a_newer_doiget_is_read_and_never_written(run: Runner, net: FakeInternet, home: Home) -> None:
    record = home.metadata / f"{KEY}.toml"
    text = re.sub(r'schema_version = ".*"', 'schema_version = "2.0"', record.read_text())
    record.write_text(f'{text}\n[from_the_future]\nmood = "sunny"\n')
    before = record.read_bytes()
    shown = run("info", DOI, "--json")
    assert (shown.json()["entry"]["title"], shown.json()["entry"]["path"]) == (
        "A title",
        str(home.store / f"{KEY}.pdf"),
    )
    assert "newer" in warnings_of(shown)
    assert run("path", DOI).rc == 0
    assert run("fetch", DOI, "--json").json()["already_in_store"] is True
    assert net.connects() == []
    (home.store / f"{KEY}.pdf").unlink()
    for command in (("fetch", DOI, "--json"), ("remove", DOI, "--json")):
        result = run(*command)
        error = result.json()["error"]
        assert (error["code"], error["reason"], result.rc) == ("STORE_ERROR", "newer_schema", 10), result
        assert record.read_bytes() == before
    assert parts(home.store) == []
    assert run("info", DOI, "--json").json()["entry"]["path"] is None


def test_a_damaged_record_is_named_and_kept_for_its_owner(run: Runner, stored: Paper, home: Home) -> None:
    """A slip of the editor costs nothing: the paper can be fetched again, and the damaged text is in the trash."""
    record = home.metadata / f"{KEY}.toml"
    record.write_text(record.read_text() + "\ntags = [oops\n")
    damaged = record.read_bytes()
    shown = run("info", DOI, "--json")
    assert shown.json()["entry"] is None
    assert run("fetch", DOI, "--json").json()["ok"] is True
    assert [path.read_bytes() for path in home.metadata.glob(".trash/*/record.toml")] == [damaged]
    assert Shelf(run).look(DOI) == {DOI: stored.sha256}
    assert f"{KEY}.toml" in warnings_of(shown), shown


def test_reading_creates_nothing(run: Runner, home: Home) -> None:
    commands = [
        ("info", DOI),
        ("path", DOI),
        ("recent",),
        ("trash",),
        ("log", "verify"),
        ("log", "show"),
        ("remove", DOI),
        ("restore", DOI),
    ]
    together(run, *commands)
    assert not home.store.exists()
    assert not home.config.exists()
