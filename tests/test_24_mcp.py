"""`serve` through pipes: both protocol eras, every tool, hostile lines, the queue, and each way a session can end.

`Session` is a raw line client. It keeps every byte of stdout, and whatever a test does, at its end each byte must have
belonged to a JSON-RPC frame, and each answer must have the shape that the tool advertised.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import jsonschema
import pytest
from fake_internet import Reply, never, pdf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import pdf_bytes

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Home, Runner
    from fake_internet import FakeInternet
    from worlds import World

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
DOI = "10.1371/journal.fake.0000001"
COPY = "https://journals.plos.org/fake/1.pdf"
MISSING = "10.1371/journal.not-registered"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"
LEAVES_WITHIN_S = 5.0

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals and /bin/sh")
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")

#: The closed sets of spec §3: code → disposition(s), reasons.
CODES: dict[str, tuple[set[str], set[str]]] = {
    "INVALID_REF": ({"fix_input"}, {"not_an_identifier", "too_long"}),
    "INVALID_ARGUMENT": ({"fix_input"}, {"schema", "bad_query", "bad_cursor", "unknown_operation"}),
    "NOT_FOUND": ({"give_up"}, {"not_registered", "deleted", "no_pdf_in_store"}),
    "NO_OA_AVAILABLE": ({"give_up"}, {"closed_access", "blocked_by_host", "not_a_pdf", "withdrawn"}),
    "CAPABILITY_DENIED": (
        {"configure"},
        {
            "host_not_allowed", "insecure_redirect", "private_address", "too_large", "source_not_enabled",
            "unauthorized", "offline", "policy_file",
        },
    ),
    "RATE_LIMITED": ({"retry"}, {"queue_full", "source_limit", "budget_spent"}),
    "NETWORK_ERROR": (
        {"retry", "configure"},
        {
            "unreachable", "reset", "bad_body", "upstream_error",
            "proxy_auth", "proxy_blocked", "tls_untrusted", "intercepted",
        },
    ),
    "FETCH_TIMEOUT": ({"retry"}, {"deadline", "pending"}),
    "STORE_ERROR": ({"configure"}, {"not_writable", "disk_full", "locked", "newer_schema", "log_unwritable"}),
    "INTERNAL_ERROR": ({"give_up"}, {"bug"}),
}  # fmt: skip

#: Answer fields of spec §3.1 that a good answer always has.
FIELDS = {
    "doiget_resolve_paper": "ref metadata source from_cache stale oa_status oa_url warnings",
    "doiget_fetch_paper": "ref source path license size_bytes sha256 version host title authors authors_total year "
    "container_title citekey retraction already_in_store metadata_path undo warnings",
    "doiget_batch_fetch": "results counts pending",
    "doiget_info": "entry",
    "doiget_expand_citation_graph": "ref nodes edges truncated warnings",
    "doiget_search_papers": "matches total next_cursor warnings",
    "doiget_search_local": "matches total next_cursor",
    "doiget_list_recent": "entries total next_cursor",
    "doiget_paper_pdf_path": "ref path",
    "doiget_capability_profile": "oa_enabled metadata_sources tdm_enabled tdm_elsevier tdm_aps tdm_springer "
    "source_policy rate_limit_per_sec max_concurrent_fetches offline",
    "doiget_bibtex_export": "format text count missing next_cursor",
    "doiget_csl_export": "format text count missing next_cursor",
    "doiget_export_bundle": "bibtex biblatex csl_json ris count missing next_cursor",
    "doiget_health": "version schema_version store store_writable running queue_depth index log python checks",
}


# ############################################################################
# A raw line client
# ############################################################################


def frames_of(stdout: bytes) -> list[dict[str, Any]]:
    """Take stdout apart; every byte must belong to a JSON-RPC frame on a line of its own that ends in a bare newline."""  # noqa: E501
    assert not stdout or stdout.endswith(b"\n"), f"stdout ends inside a line: {stdout[-200:]!r}"
    assert b"\r" not in stdout
    frames = []
    for line in stdout.split(b"\n")[:-1]:
        try:
            frame = json.loads(line.decode("utf-8"))
        except ValueError:
            raise AssertionError(f"not JSON on stdout: {line[:300]!r}") from None
        assert isinstance(frame, dict), line[:300]
        assert frame.get("jsonrpc") == "2.0", line[:300]
        assert len({"result", "error", "method"} & set(frame)) == 1, line[:300]
        frames.append(frame)
    return frames


def check_answer(answer: dict[str, Any]) -> None:
    """Check what every answer promises, failures included (spec §3)."""
    assert isinstance(answer["ok"], bool)
    if answer["ok"]:
        assert "error" not in answer
        return
    error = answer["error"]
    dispositions, reasons = CODES[error["code"]]
    assert error["disposition"] in dispositions, error
    assert error["reason"] in reasons, error
    assert error["message"].strip(), error
    assert "\n" not in error["message"], error
    assert "Traceback" not in json.dumps(answer)
    if error["code"] == "RATE_LIMITED":
        assert error["retry_after_s"] >= 1


class Session:
    """One `serve` process, spoken to in lines."""

    def __init__(self, process: subprocess.Popen[bytes], era: str, schemas: dict[str, Any]) -> None:
        self.process, self.era, self.schemas = process, era, schemas
        self.numbers = itertools.count(1)
        self.stdout = self.stderr = b""
        self.answers: dict[str, dict[str, Any]] = {}
        self.notifications: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self.is_raw = False  # the test leaves nothing to check: it closed stdout itself
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self._read_stdout, self._read_stderr)]
        for thread in self.threads:
            thread.start()

    # -- pipes -----------------------------------------------------------------

    def _read_stdout(self) -> None:
        pipe = self.process.stdout
        assert pipe is not None
        rest = b""
        with contextlib.suppress(ValueError, OSError):
            while data := os.read(pipe.fileno(), 65536):
                *lines, rest = (rest + data).split(b"\n")
                with self.changed:
                    self.stdout += data
                    for line in lines:
                        self._take(line)
                    self.changed.notify_all()

    def _take(self, line: bytes) -> None:
        with contextlib.suppress(ValueError, AttributeError):  # the byte check at the end speaks of these
            frame = json.loads(line)
            if "method" in frame:
                self.notifications.append(frame)
            else:
                assert repr(frame["id"]) not in self.answers, f"a second answer for {frame['id']}"
                self.answers[repr(frame["id"])] = frame

    def _read_stderr(self) -> None:
        pipe = self.process.stderr
        assert pipe is not None
        with contextlib.suppress(ValueError, OSError):
            while data := os.read(pipe.fileno(), 65536):
                self.stderr += data

    def write(self, data: bytes) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        pipe.write(data)
        pipe.flush()

    # -- frames ----------------------------------------------------------------

    def envelope(self, params: dict[str, Any] | None) -> dict[str, Any]:
        """Add what each request of the modern era carries."""
        params = dict(params or {})
        if self.era == "modern":
            prefix = "io.modelcontextprotocol/"
            own = {
                f"{prefix}protocolVersion": MODERN_VERSION,
                f"{prefix}clientInfo": {"name": "raw", "version": "1"},
                f"{prefix}clientCapabilities": {},
            }
            params["_meta"] = own | params.get("_meta", {})
        return params

    def frame(self, method: str, params: dict[str, Any] | None, ident: Any) -> bytes:
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": self.envelope(params)}
        return json.dumps(message).encode() + b"\n"

    def send(self, method: str, params: dict[str, Any] | None = None, ident: Any = None) -> Any:
        """Send a request; returns its id."""
        ident = next(self.numbers) if ident is None else ident
        self.write(self.frame(method, params, ident))
        return ident

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode() + b"\n")

    def start(self, tool: str, token: Any = None, **arguments: Any) -> Any:
        """Send a tool call without waiting; returns its id."""
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.send("tools/call", {"name": f"doiget_{tool}", "arguments": arguments, **meta})

    def wait(self, ident: Any, timeout: float = 20.0) -> dict[str, Any]:
        """Wait for the frame that answers a request."""
        with self.changed:
            found = self.changed.wait_for(lambda: repr(ident) in self.answers, timeout)
        assert found, f"no answer to {ident} within {timeout} s\n{self.stderr.decode(errors='replace')[-2000:]}"
        return self.answers[repr(ident)]

    def ask(self, method: str, params: dict[str, Any] | None = None, timeout: float = 20.0) -> dict[str, Any]:
        return self.wait(self.send(method, params), timeout)

    def result(self, ident: Any, tool: str, timeout: float = 20.0) -> dict[str, Any]:
        """Wait for a tool's answer and check everything that all of them promise; returns structuredContent."""
        result = self.wait(ident, timeout)["result"]
        answer: dict[str, Any] = result["structuredContent"]
        check_answer(answer)
        assert result["isError"] is (not answer["ok"])
        blocks = result["content"]
        assert all(block["type"] == "text" for block in blocks)
        if tool in {"bibtex_export", "csl_export"} and answer["ok"]:  # the text itself, then what is left of it
            assert blocks[0]["text"] == answer["text"]
            assert all(json.loads(block["text"]).items() <= answer.items() for block in blocks[1:])
        else:
            assert [json.loads(block["text"]) for block in blocks] == [answer]
        schema = self.schemas[f"doiget_{tool}"]
        jsonschema.Draft202012Validator(schema).validate(answer)
        unlisted = set(answer) - set(schema["properties"])
        assert not unlisted, f"outputSchema of {tool} does not list {unlisted}"
        assert len(json.dumps(answer, ensure_ascii=False).encode()) < 64_000
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.result(self.start(tool, **arguments), tool)

    def fail(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must fail; returns the error."""
        answer = self.call(tool, **arguments)
        assert answer["ok"] is False, answer
        error: dict[str, Any] = answer["error"]
        return error

    def healthy(self) -> dict[str, Any]:
        """The session lives and its tools work."""
        answer = self.call("health")
        assert answer["healthy"] is True, answer
        return answer

    def handshake(self, version: str = HANDSHAKE_VERSIONS[-1]) -> dict[str, Any]:
        client = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = self.ask("initialize", client)
        self.notify("notifications/initialized")
        result: dict[str, Any] = answer["result"]
        return result

    # -- ends ------------------------------------------------------------------

    def end_input(self) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.close()

    def exit(self, within: float = LEAVES_WITHIN_S) -> tuple[int, float]:
        """Wait for the process; returns its status and how long that took."""
        began = time.monotonic()
        status = self.process.wait(within)
        took = time.monotonic() - began
        for thread in self.threads:
            thread.join(5)
        return status, took

    def close(self) -> None:
        """End the session as a host does, and look at all it wrote."""
        if self.process.poll() is None:
            self.end_input()
            status, _ = self.exit()
            assert status == 0, self.stderr
        for thread in self.threads:
            thread.join(5)
        assert b"Traceback" not in self.stderr, self.stderr.decode(errors="replace")
        if not self.is_raw:
            frames_of(self.stdout)


@pytest.fixture(scope="session")
def schemas(pyz: Path, unpacked: Path) -> dict[str, Any]:
    """The output schemas that the file advertises."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT") if name in os.environ}
    command = [sys.executable, str(pyz), "tools", "--json"]
    done = subprocess.run(command, capture_output=True, check=True, env=env | {"DOIGET_PYZ_ROOT": str(unpacked)})
    return {tool["name"]: tool["outputSchema"] for tool in json.loads(done.stdout)["tools"]}


@pytest.fixture
def serve(run: Runner, schemas: dict[str, Any]) -> Iterator[Callable[..., Session]]:
    """`serve("--tools", "core", era="modern", env={…})` starts a server; a legacy one has shaken hands already."""
    sessions: list[Session] = []

    def start(*words: str, era: str = "legacy", hands: bool = True, **how: Any) -> Session:
        session = Session(run.spawn("serve", *words, **how), era, schemas)
        sessions.append(session)
        if era == "legacy" and hands:
            session.handshake()
        return session

    yield start
    for session in sessions:
        session.close()


eras = pytest.mark.parametrize("era", ["legacy", "modern"])
mostly_legacy = pytest.mark.parametrize("era", ["legacy", pytest.param("modern", marks=pytest.mark.long)])


def stalling_paper(world: World, doi: str = DOI, url: str = COPY) -> bytes:
    """An open work whose PDF stops in the middle for a minute; returns the body that a later reply may give."""
    body = pdf_bytes(doi, size=50_000)
    world.paper(doi, pdf_url=url, body=body)
    world.net.url(url, pdf(body, stall_after=2000, stall_s=60))
    return body


def temporary_files(home: Home) -> list[str]:
    roots = (home.store, home.cache, home.tmp)
    return [str(path) for root in roots for path in root.rglob("*") if re.search(r"\.(part|tmp)$", path.name)]


def memory_kb(process: subprocess.Popen[bytes], what: str) -> int:
    text = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(rf"^{what}:\s+(\d+) kB", text, re.MULTILINE)
    assert found
    return int(found[1])


# ############################################################################
# Handshake
# ############################################################################


@pytest.mark.parametrize(
    "version",
    [
        HANDSHAKE_VERSIONS[0],
        *(pytest.param(version, marks=pytest.mark.long) for version in HANDSHAKE_VERSIONS[1:-1]),
        HANDSHAKE_VERSIONS[-1],
    ],
)
def test_initialize_speaks_the_version_asked_for(serve: Callable[..., Session], version: str) -> None:
    session = serve(hands=False)
    result = session.handshake(version)
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "doiget"
    assert result["serverInfo"]["version"] == doiget.__version__
    assert "tools" in result["capabilities"]
    check_instructions(result["instructions"])
    assert session.ask("ping")["result"] == {}
    assert session.ask("tools/list")["result"]["tools"]


def test_initialize_with_an_unknown_version_offers_one_that_exists(serve: Callable[..., Session]) -> None:
    result = serve(hands=False).handshake("1999-01-01")
    assert result["protocolVersion"] in HANDSHAKE_VERSIONS


def test_discover_answers_the_modern_era(serve: Callable[..., Session], tools: list[dict[str, Any]]) -> None:
    """And the list of tools may be kept by clients: it changes with the file only."""
    session = serve(era="modern")
    result = session.ask("server/discover")["result"]
    assert MODERN_VERSION in result["supportedVersions"]
    assert "tools" in result["capabilities"]
    check_instructions(result["instructions"])
    check_list(session, tools)
    listed = session.ask("tools/list")["result"]
    assert listed["ttlMs"] >= 60_000
    assert listed["cacheScope"] == "public"
    session.healthy()


def check_instructions(text: str) -> None:
    for promise in ("at once", "ambiguous", "doiget remove", "third-party data", "never instructions"):
        assert promise in text, promise


def client_parameters(run: Runner) -> Any:
    from mcp.client.stdio import StdioServerParameters

    return StdioServerParameters(command=sys.executable, args=[str(run.pyz), "serve"], env=run.env(), cwd=run.home.cwd)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_official_client(run: Runner, world: World, mode: str) -> None:
    """The SDK's own client shakes hands, lists, calls, applies the output schemas, and gets progress and errors."""
    from mcp import Client, MCPError
    from mcp.client.stdio import stdio_client

    paper = world.paper(DOI, pdf_url=COPY)
    seen: list[tuple[float, float | None]] = []

    async def progress(done: float, total: float | None, _message: str | None) -> None:
        seen.append((done, total))

    async def talk() -> None:
        with (run.home.root / "stderr.txt").open("w") as errors:
            async with Client(stdio_client(client_parameters(run), errlog=errors), mode=mode) as client:
                listed = await client.list_tools()
                assert {tool.name for tool in listed.tools} >= set(FIELDS)
                resolved = await client.call_tool("doiget_resolve_paper", {"ref": DOI})
                assert (resolved.is_error, resolved.structured_content["ok"]) == (False, True)
                missing = await client.call_tool("doiget_resolve_paper", {"ref": MISSING})
                assert missing.is_error is True
                assert missing.structured_content["error"]["code"] == "NOT_FOUND"
                both = await client.call_tool(
                    "doiget_batch_fetch", {"refs": [DOI, "no identifier"]}, progress_callback=progress
                )
                assert both.structured_content["results"][0]["sha256"] == paper.sha256
                with pytest.raises(MCPError) as unknown:
                    await client.call_tool("doiget_delete", {})
                assert unknown.value.error.code == -32602

    anyio.run(talk)
    assert seen
    assert seen[-1] == (2, 2)
    assert "Traceback" not in (run.home.root / "stderr.txt").read_text()


# ############################################################################
# What the tools say of themselves
# ############################################################################

LABELS = ("WHEN TO USE", "INPUTS", "OUTPUTS", "COSTS", "SIDE EFFECTS", "LIMITS")
VERBS = {
    "Look",
    "Download",
    "Show",
    "Search",
    "List",
    "Give",
    "Check",
    "Find",
    "Export",
    "Expand",
    "Verify",
    "Call",
    "Get",
}
COMBINATORS = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$defs", "dependentSchemas"}
FORBIDDEN_WORDS = re.compile(
    r"delete|remove|credential|password|shell|exec|url|file|path|dir(?!ection)|folder", re.IGNORECASE
)


@pytest.fixture(scope="session")
def tools(pyz: Path, unpacked: Path) -> list[dict[str, Any]]:
    """All tools as `tools --json` prints them; a test compares that with tools/list."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT") if name in os.environ}
    command = [sys.executable, str(pyz), "tools", "--json"]
    done = subprocess.run(command, capture_output=True, check=True, env=env | {"DOIGET_PYZ_ROOT": str(unpacked)})
    listed: list[dict[str, Any]] = json.loads(done.stdout)["tools"]
    return listed


def parts_of(tool: dict[str, Any]) -> dict[str, str]:
    lines = [line.partition(": ") for line in tool["description"].split("\n")]
    assert tuple(label for label, _, _ in lines) == LABELS, tool["description"]
    return {label: text for label, _, text in lines}


def check_list(session: Session, tools: list[dict[str, Any]]) -> None:
    """tools/list is what `tools --json` prints, and small."""
    assert session.ask("tools/list")["result"]["tools"] == tools
    whole = [line for line in session.stdout.split(b"\n") if b'"inputSchema"' in line]
    assert len(whole[0]) < 20_000


def test_tools_list_of_the_handshake_era(one_quiet: Session, tools: list[dict[str, Any]]) -> None:
    check_list(one_quiet, tools)
    assert {tool["name"] for tool in tools} >= set(FIELDS)


def test_descriptions_have_six_parts_in_450_bytes(tools: list[dict[str, Any]]) -> None:
    names = {tool["name"] for tool in tools}
    for tool in tools:
        parts = parts_of(tool)
        assert all(parts.values()), tool["name"]
        assert len(tool["description"].encode()) <= 450, tool["name"]
        when = parts["WHEN TO USE"]
        assert when.split()[0] in VERBS, when
        assert "Not for" in when, tool["name"]
        named = set(re.findall(r"doiget_\w+", tool["description"]))
        assert named - {tool["name"]}, f"{tool['name']} names no tool to use instead"
        assert named <= names, f"{tool['name']} names a tool that does not exist"


def test_no_two_descriptions_are_near_duplicates(tools: list[dict[str, Any]]) -> None:
    for one, other in itertools.combinations(tools, 2):
        first, second = parts_of(one)["WHEN TO USE"], parts_of(other)["WHEN TO USE"]
        assert difflib.SequenceMatcher(None, first, second).ratio() < 0.8, (one["name"], other["name"])
        words, others = (set(re.findall(r"\w+", tool["description"].lower())) for tool in (one, other))
        assert len(words & others) / len(words | others) < 0.6, (one["name"], other["name"])


def test_paged_tools_say_so(tools: list[dict[str, Any]]) -> None:
    for tool in tools:
        paged = "cursor" in tool["inputSchema"]["properties"]
        assert paged is ("next_cursor" in tool["outputSchema"]["properties"]), tool["name"]
        if paged:
            parts = parts_of(tool)
            assert "cursor" in parts["INPUTS"], tool["name"]
            assert "next_cursor" in parts["OUTPUTS"], tool["name"]


def test_input_schemas_are_flat(tools: list[dict[str, Any]]) -> None:
    for tool in tools:
        schema = tool["inputSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert not COMBINATORS & set(re.findall(r'"([^"]+)":', json.dumps(schema))), tool["name"]
        assert list(schema["properties"])[: len(schema["required"])] == schema["required"], tool["name"]
        for name, field in schema["properties"].items():
            assert isinstance(field["type"], str), f"{tool['name']}.{name}"
            assert field["type"] in {"string", "integer", "number", "boolean", "array"} or name == "params"
            assert field["description"].strip()
            assert "(?" not in field.get("pattern", "")
            assert field.get("default") is None
        if "ref" in schema["properties"]:
            ref = schema["properties"]["ref"]
            assert (ref["minLength"], ref["maxLength"], ref["pattern"]) == (4, 1024, r"\S")


def test_batch_takes_one_to_a_hundred(tools: list[dict[str, Any]]) -> None:
    (batch,) = [tool for tool in tools if tool["name"] == "doiget_batch_fetch"]
    refs = batch["inputSchema"]["properties"]["refs"]
    assert (refs["type"], refs["items"]["type"], refs["minItems"], refs["maxItems"]) == ("array", "string", 1, 100)


def test_no_tool_takes_a_file_an_address_or_a_secret(tools: list[dict[str, Any]]) -> None:
    for tool in tools:
        assert not re.search(r"delete|remove|credential|shell|url", tool["name"])
        for name in tool["inputSchema"]["properties"]:
            assert not FORBIDDEN_WORDS.search(name), f"{tool['name']}.{name}"


def test_output_schemas_list_names_with_bare_types(tools: list[dict[str, Any]]) -> None:
    for tool in tools:
        schema = tool["outputSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["required"] == ["ok"]
        assert schema.get("additionalProperties", True) is not False
        assert all(set(field) == {"type"} for field in schema["properties"].values()), tool["name"]
        assert set(schema["properties"]) >= {"ok", "error"} | set(FIELDS.get(tool["name"], "").split()), tool["name"]


def test_annotations(tools: list[dict[str, Any]]) -> None:
    for tool in tools:
        hints = tool["annotations"]
        assert set(hints) >= {"readOnlyHint", "destructiveHint", "openWorldHint"}, tool["name"]
        assert hints["readOnlyHint"] or hints["idempotentHint"] is True
        assert hints["readOnlyHint"] is (tool["name"] not in {"doiget_fetch_paper", "doiget_batch_fetch"})
        assert hints["destructiveHint"] is False
        may_ask = {"network", "refresh", "source_policy"} & set(tool["inputSchema"]["properties"])
        assert hints["openWorldHint"] or not may_ask, f"{tool['name']} can use the network"


# ############################################################################
# Which tools
# ############################################################################


def names_served(session: Session) -> set[str]:
    return {tool["name"].removeprefix("doiget_") for tool in session.ask("tools/list")["result"]["tools"]}


def test_core_is_a_part_that_does_the_job(serve: Callable[..., Session], tools: list[dict[str, Any]]) -> None:
    session = serve("--tools", "core")
    core = names_served(session)
    assert {"resolve_paper", "fetch_paper", "info"} <= core < {tool["name"].removeprefix("doiget_") for tool in tools}
    left_out = next(tool["name"] for tool in tools if tool["name"].removeprefix("doiget_") not in core)
    assert session.ask("tools/call", {"name": left_out, "arguments": {}})["error"]["code"] == -32602


def test_a_list_of_tools(serve: Callable[..., Session]) -> None:
    assert names_served(serve("--tools", "health,doiget_info")) == {"health", "info"}


def test_an_unknown_tool_in_the_list_ends_with_a_word(run: Runner) -> None:
    result = run("serve", "--tools", "health,delete_everything", input=b"")
    assert (result.rc, result.stdout) == (2, b"")
    assert "delete_everything" in result.err


def test_policy_narrows_the_tools() -> None:
    def chosen(pinned: Any, names: str = "all") -> set[str]:
        config: Any = SimpleNamespace(policy={} if pinned is None else {"tools": pinned})
        return {name.removeprefix("doiget_") for name in doiget.chosen_tools(config, names)}

    assert chosen(None) >= {"info", "health", "fetch_paper"}
    assert chosen(["info", "doiget_health", "no_such_tool"]) == {"info", "health"}
    assert chosen(["health"], "info,health") == {"health"}
    assert chosen([]) == set()
    assert "list_recent" not in chosen(["list_recent"], "core")


# ############################################################################
# Every tool
# ############################################################################


@eras
def test_every_tool_succeeds_and_fails(serve: Callable[..., Session], world: World, home: Home, era: str) -> None:
    """One session through all tools, good answers and failures; shapes are checked by the client (spec §3.1)."""
    paper = world.paper(DOI, title="A title of its own", pdf_url=COPY)
    world.closed("10.1371/journal.closed.1", title="A closed one")
    session = serve(era=era)

    def good(tool: str, **arguments: Any) -> dict[str, Any]:
        answer = session.call(tool, **arguments)
        assert answer["ok"] is True, answer
        missing = set(FIELDS[f"doiget_{tool}"].split()) - set(answer)
        assert not missing, f"{tool} leaves out {missing}"
        return answer

    resolved = good("resolve_paper", ref=DOI)
    assert resolved["metadata"]["title"] == "A title of its own"
    assert not home.store.exists(), "resolving leaves the store alone"
    assert good("info", ref=DOI)["entry"] is None
    assert good("list_recent")["entries"] == []
    fetched = good("fetch_paper", ref=f"https://doi.org/{DOI}")
    assert (fetched["sha256"], fetched["already_in_store"]) == (paper.sha256, False)
    assert good("fetch_paper", ref=DOI)["already_in_store"] is True
    assert good("info", ref=DOI)["entry"]["path"] == fetched["path"]
    assert good("paper_pdf_path", ref=DOI)["path"] == fetched["path"]
    assert good("search_local", query="title of its own")["total"] == 1
    assert [entry["ref"] for entry in good("list_recent", limit=5)["entries"]] == [DOI]
    batch = good("batch_fetch", refs=[MISSING, DOI, "no identifier"])
    assert [result["ok"] for result in batch["results"]] == [False, True, False]
    assert batch["counts"] == {"fetched": 0, "already_in_store": 1, "failed": 2, "pending": 0}
    assert good("capability_profile")["offline"] is False
    assert good("health")["running"] == 0

    assert session.fail("resolve_paper", ref=MISSING)["code"] == "NOT_FOUND"
    closed = session.call("fetch_paper", ref="10.1371/journal.closed.1")
    assert (closed["error"]["code"], closed["error"]["reason"]) == ("NO_OA_AVAILABLE", "closed_access")
    assert closed["error"]["attempts"]
    assert Path(closed["metadata_path"]).exists()
    assert session.fail("fetch_paper", ref=MISSING)["reason"] == "not_registered"
    assert session.fail("batch_fetch", refs=[])["code"] == "INVALID_ARGUMENT"
    assert session.fail("info", ref="no identifier")["code"] == "INVALID_REF"
    assert session.fail("paper_pdf_path", ref="10.1371/journal.closed.1")["reason"] == "no_pdf_in_store"
    assert session.fail("search_local", query="!?")["reason"] == "bad_query"
    assert session.fail("list_recent", cursor="not one of ours")["reason"] == "bad_cursor"
    assert session.fail("capability_profile", hosts="perhaps")["code"] == "INVALID_ARGUMENT"
    assert session.fail("health", network=7)["code"] == "INVALID_ARGUMENT"


def test_not_found_is_an_error_in_one_plain_sentence(serve: Callable[..., Session], world: World) -> None:
    """Case MC-06: agents took an unmarked "not found" for an answer."""
    del world
    session = serve()
    for ref in ("10.9999/none", "arXiv:0000.00000"):
        ident = session.start("resolve_paper", ref=ref)
        answer = session.result(ident, "resolve_paper")
        assert session.wait(ident)["result"]["isError"] is True
        assert answer["error"]["code"] in {"NOT_FOUND", "INVALID_REF"}, answer
        text = json.dumps(answer)
        assert not re.search(r"pip install|Traceback|\.py\b|/home/|/tmp/", text)
    assert session.call("resolve_paper", ref="10.9999/none")["error"]["code"] == "NOT_FOUND"


def test_network_down_is_not_a_miss(serve: Callable[..., Session], net: FakeInternet) -> None:
    session = serve(env={"HTTPS_PROXY": net.dead_proxy_url})
    error = session.fail("resolve_paper", ref=DOI)
    assert (error["code"], error["disposition"]) == ("NETWORK_ERROR", "retry")


def test_offline_opens_no_connection(serve: Callable[..., Session], net: FakeInternet) -> None:
    session = serve("--offline")
    assert session.fail("fetch_paper", ref=DOI)["reason"] == "offline"
    assert session.fail("resolve_paper", ref=DOI)["reason"] == "offline"
    assert session.call("capability_profile")["offline"] is True
    session.healthy()
    assert net.connects() == []


def test_a_deadline_keeps_record_and_attempts(serve: Callable[..., Session], world: World) -> None:
    """The failure of a slow host says as much over MCP as on the command line (spec §5)."""
    stalling_paper(world)
    session = serve()
    began = time.monotonic()
    answer = session.call("fetch_paper", ref=DOI, timeout_s=2)
    assert time.monotonic() - began < 15
    assert (answer["error"]["code"], answer["error"]["reason"]) == ("FETCH_TIMEOUT", "deadline")
    assert [attempt for attempt in answer["error"]["attempts"] if attempt.get("host") == "journals.plos.org"]
    assert Path(answer["metadata_path"]).exists()


def test_batch_reports_progress_only_when_asked(serve: Callable[..., Session], world: World) -> None:
    refs = [f"10.1371/journal.progress.{n}" for n in range(3)]
    for ref in refs:
        world.paper(ref, pdf_url=f"https://journals.plos.org/{ref}.pdf")
    session = serve()
    assert session.call("batch_fetch", refs=[*refs[:1], MISSING])["counts"]["fetched"] == 1
    assert session.notifications == []
    answer = session.result(session.start("batch_fetch", token="tock", refs=refs), "batch_fetch")
    assert answer["counts"] == {"fetched": 2, "already_in_store": 1, "failed": 0, "pending": 0}
    notes = [note["params"] for note in session.notifications if note["method"] == "notifications/progress"]
    assert notes
    assert {note["progressToken"] for note in notes} == {"tock"}
    seen = [note["progress"] for note in notes]
    assert seen == sorted(set(seen)), "progress must increase"
    assert (notes[-1]["progress"], notes[-1]["total"]) == (3, 3)


def test_titles_come_back_as_they_are(serve: Callable[..., Session], world: World) -> None:
    """Case MC-02: another console encoding, and lines that end in CRLF."""
    title = "\N{GREEK SMALL LETTER ALPHA} → ✓ 王 \U0001d6fc"
    world.paper(DOI, title=title, pdf_url=COPY)
    session = serve(env={"PYTHONIOENCODING": "cp1252", "LC_ALL": "C", "PYTHONUTF8": "0"})
    ident = 77
    frame = session.frame("tools/call", {"name": "doiget_resolve_paper", "arguments": {"ref": DOI}}, ident)
    session.write(frame.rstrip(b"\n") + b"\r\n")
    assert session.result(ident, "resolve_paper")["metadata"]["title"] == title
    assert session.call("fetch_paper", ref=DOI)["title"] == title
    frames_of(session.stdout)


@posix_only
@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_a_home_whose_name_is_no_utf8(serve: Callable[..., Session], world: World, home: Home) -> None:
    """JSON cannot spell the path of the store; that may cost an answer its path, never the session."""
    world.paper(DOI, pdf_url=COPY)
    odd = os.fsdecode(os.fsencode(home.root) + b"/caf\xe9")
    os.mkdir(odd)  # noqa: PTH102 - pathlib would do, but so the bytes are plain to see
    session = serve(env={"HOME": odd, "DOIGET_STORE": None})
    for number, (tool, arguments) in enumerate([("fetch_paper", {"ref": DOI}), ("info", {"ref": DOI}), ("health", {})]):
        session.send("tools/call", {"name": f"doiget_{tool}", "arguments": arguments}, f"odd-{number}")
        assert "structuredContent" in session.wait(f"odd-{number}", 5)["result"]
    assert session.ask("ping")["result"] == {}


def seed(home: Home, count: int) -> list[str]:
    """Multiply the one entry of the store; returns the refs."""
    refs = [DOI]
    (record,), (body,) = home.metadata.glob("*.toml"), home.store.glob("*.pdf")
    for n in range(1000, 1000 + count - 1):
        ref = DOI.replace("0000001", str(n))
        text = record.read_text("utf-8").replace(DOI, ref).replace(str(body.name), f"doi_10.1371_journal.fake.{n}.pdf")
        (home.metadata / f"doi_10.1371_journal.fake.{n}.toml").write_text(text, "utf-8")
        shutil.copy(body, home.store / f"doi_10.1371_journal.fake.{n}.pdf")
        refs.append(ref)
    return refs


def test_answers_stay_below_a_client_s_limit(serve: Callable[..., Session], world: World, home: Home) -> None:
    """A hundred entries with long titles and many authors: paged, or cut with a warning (spec §3.1, Size)."""
    authors = [f"Givenname{n} Familyname{n}" for n in range(200)]
    world.paper(DOI, pdf_url=COPY, title="A long title " * 70, authors=authors)
    session = serve()
    assert session.call("fetch_paper", ref=DOI)["authors_total"] == 200
    assert len(session.call("resolve_paper", ref=DOI)["metadata"]["authors"]) == 20
    refs = seed(home, 100)
    seen: list[str] = []
    cursor = None
    while cursor != "end":
        page = session.call("list_recent", limit=100, cursor=cursor)
        assert page["total"] == 100
        seen += [entry["ref"] for entry in page["entries"]]
        cursor = page["next_cursor"] or "end"
    assert sorted(seen) == sorted(refs)
    assert session.call("search_local", query="long title", limit=100)["total"] == 100
    batch = session.call("batch_fetch", refs=refs)
    assert [result["ref"] for result in batch["results"]] == refs
    assert batch["counts"]["already_in_store"] == 100


MONSTER = "\u6f22" * 5000


@pytest.mark.parametrize(
    "answer",
    [
        {"ok": True, "entry": {"title": MONSTER, "relations": [{"kind": MONSTER, "ref": DOI}] * 60}, "warnings": []},
        {"ok": True, "results": [{"input": MONSTER, "ok": False, "ref": None}] * 100, "warnings": ["w"]},
        {"ok": True, "path": "/p" * 100, "authors": [MONSTER] * 20, "host": MONSTER, "warnings": []},
        {"ok": False, "error": {"message": MONSTER, "attempts": [{"detail": MONSTER}] * 100}},
    ],
)
def test_monstrous_texts_never_burst_an_answer(answer: dict[str, Any]) -> None:
    """Whatever a record or an argument holds is cut to a client's limit; pages keep their rows, names stay whole."""
    shown = doiget.fitted(answer)
    assert len(json.dumps(shown, ensure_ascii=False).encode()) <= 60_000
    assert list(shown) == list(answer)
    assert shown.get("path") == answer.get("path")
    assert len(shown.get("results", [])) == len(answer.get("results", []))
    if "warnings" in answer:
        assert shown["warnings"][: len(answer["warnings"])] == answer["warnings"]
        assert "cut" in shown["warnings"][-1]
    assert doiget.fitted({"ok": True, "text": MONSTER[:9000]}) == {"ok": True, "text": MONSTER[:9000]}


def test_a_full_batch_of_monsters_is_answered_short() -> None:
    """A hundred rows whose every field is long, or whose identifier is: which paper, where, and what became of it."""
    names = ["title", "citekey", "license", "version", "source", "host", "container_title"]
    got = {"ok": True, "ref": DOI, "path": "/p" * 60, "authors": [MONSTER] * 3, "warnings": [MONSTER] * 5, "year": 2000}
    error = {"code": "NOT_FOUND", "message": "No.", "disposition": "give_up", "reason": "deleted", "hint": MONSTER}
    long = "10.1000/" + "x" * 248
    for row in (got | dict.fromkeys(names, MONSTER), {"ok": False, "ref": long, "input": long, "error": error}):
        answer = {"ok": True, "results": doiget.shortened([dict(row) for _ in range(100)]), "warnings": []}
        shown = doiget.fitted(answer)
        assert len(json.dumps(shown, ensure_ascii=False).encode()) <= 60_000
        assert {(row["ref"], row.get("path")) for row in shown["results"]} == {(row["ref"], row.get("path"))}


def test_a_batch_of_endless_words_is_answered_short(one_quiet: Session) -> None:
    answer = one_quiet.call("batch_fetch", refs=["banana" * 3000 + str(n) for n in range(100)])
    assert answer["counts"]["failed"] == 100
    assert answer["warnings"]


# ############################################################################
# Arguments
# ############################################################################

BIG_NUMBER = 10**400


def test_unknown_tool_and_unknown_method(one_quiet: Session) -> None:
    assert one_quiet.ask("tools/call", {"name": "doiget_delete", "arguments": {}})["error"]["code"] == -32602
    assert one_quiet.ask("tools/call", {"name": "info", "arguments": {}})["error"]["code"] == -32602
    assert one_quiet.ask("tools/call", {"arguments": {}})["error"]["code"] == -32602
    assert one_quiet.ask("tools/call", {"name": "doiget_info", "arguments": [1]})["error"]["code"] == -32602
    assert one_quiet.ask("no/such/method")["error"]["code"] == -32601
    one_quiet.healthy()


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("info", {}, "ref"),
        ("info", {"ref": None}, "ref"),
        ("info", {"ref": 12345678}, "ref"),
        ("info", {"ref": ["10.1000/x"]}, "ref"),
        ("info", {"ref": {"doi": "10.1000/x"}}, "ref"),
        ("info", {"ref": "10.1000/x", "colour": "red"}, "colour"),
        ("resolve_paper", {"ref": "10.1000/x", "refresh": "maybe"}, "refresh"),
        ("resolve_paper", {"ref": "10.1000/x", "refresh": 1}, "refresh"),
        ("fetch_paper", {"ref": "10.1000/x", "source_policy": "loose"}, "source_policy"),
        ("fetch_paper", {"ref": "10.1000/x", "timeout_s": 0}, "timeout_s"),
        ("fetch_paper", {"ref": "10.1000/x", "timeout_s": "soon"}, "timeout_s"),
        ("fetch_paper", {"ref": "10.1000/x", "timeout_s": "nan"}, "timeout_s"),
        ("fetch_paper", {"ref": "10.1000/x", "timeout_s": "1e400"}, "timeout_s"),
        ("fetch_paper", {"ref": "10.1000/x", "timeout_s": BIG_NUMBER}, "timeout_s"),
        ("fetch_paper", {"ref": "10.1000/x", "path": "/etc/passwd"}, "path"),
        ("batch_fetch", {}, "refs"),
        ("batch_fetch", {"refs": []}, "refs"),
        ("batch_fetch", {"refs": ["10.1000/x"] * 101}, "refs"),
        ("batch_fetch", {"refs": [1, 2]}, "refs"),
        ("batch_fetch", {"refs": "10.1000/x"}, "refs"),
        ("search_local", {}, "query"),
        ("search_local", {"query": "x" * 501}, "query"),
        ("search_local", {"query": ""}, "query"),
        ("list_recent", {"limit": 0}, "limit"),
        ("list_recent", {"limit": 101}, "limit"),
        ("list_recent", {"limit": 2.5}, "limit"),
        ("list_recent", {"limit": "ten"}, "limit"),
        ("list_recent", {"limit": True}, "limit"),
        ("list_recent", {"limit": BIG_NUMBER}, "limit"),
        ("list_recent", {"limit": [10]}, "limit"),
        ("list_recent", {"cursor": "x" * 501}, "cursor"),
        ("list_recent", {"cursor": 5}, "cursor"),
        ("health", {"network": "yes please"}, "network"),
        ("capability_profile", {"hosts": {}}, "hosts"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_arguments_are_named(one_quiet: Session, tool: str, arguments: dict[str, Any], field: str) -> None:
    """Whatever a schema forbids is INVALID_ARGUMENT and says which field (spec §3, Inputs)."""
    error = one_quiet.fail(tool, **arguments)
    assert (error["code"], error["disposition"]) == ("INVALID_ARGUMENT", "fix_input"), error
    assert field in error["message"], error


@pytest.mark.parametrize(
    "ref",
    [
        "banana banana",
        "ab",
        "    ",
        "",
        "10.1",
        "https://example.org/paper.pdf",
        "\u202e\u200b\u2066",
        "\u0000\u0001\u0002\u0003",
        "10.1371/" + "a" * 2000,
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_text_that_is_no_identifier(one_quiet: Session, ref: str) -> None:
    for tool in ("info", "resolve_paper", "fetch_paper", "paper_pdf_path"):
        error = one_quiet.fail(tool, ref=ref)
        assert (error["code"], error["disposition"]) == ("INVALID_REF", "fix_input"), (tool, error)


def test_numeric_strings_count_as_numbers(one_quiet: Session) -> None:
    assert one_quiet.call("list_recent", limit="10")["ok"] is True
    assert one_quiet.call("list_recent", limit=10.0)["ok"] is True
    assert one_quiet.call("search_local", query="x", limit=" 3 ")["ok"] is True
    assert one_quiet.call("resolve_paper", ref="10.1000/x", refresh="false")["error"]["reason"] == "offline"
    assert one_quiet.call("fetch_paper", ref="10.1000/x", timeout_s="2.5")["error"]["reason"] == "offline"


def test_null_counts_as_left_out(one_quiet: Session) -> None:
    assert one_quiet.call("list_recent", limit=None, cursor=None)["ok"] is True


@pytest.fixture(scope="module")
def one_quiet(
    pyz: Path, unpacked: Path, schemas: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """One offline session for a whole table of calls."""
    root = tmp_path_factory.mktemp("quiet")
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    own = {"HOME": str(root), "XDG_CACHE_HOME": str(root / "cache"), "XDG_CONFIG_HOME": str(root / "config")}
    command = [sys.executable, str(pyz), "serve", "--offline"]
    process = subprocess.Popen(
        command,
        env=kept | own | {"DOIGET_PYZ_ROOT": str(unpacked)},
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    session = Session(process, "legacy", schemas)
    session.handshake()
    yield session
    session.close()
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


# ############################################################################
# Cancelling
# ############################################################################


@mostly_legacy
def test_cancel_stops_the_work_and_sends_nothing(
    serve: Callable[..., Session], run: Runner, world: World, net: FakeInternet, home: Home, era: str
) -> None:
    """Case MC-05: no answer for what was cancelled, the wire falls still, the next request is answered at once."""
    body = stalling_paper(world)
    session = serve(era=era)
    slow = session.start("fetch_paper", ref=DOI)
    (request,) = net.wait_for("journals.plos.org", "/fake/1.pdf", sent=2000)
    session.notify("notifications/cancelled", {"requestId": slow})
    began = time.monotonic()
    session.healthy()
    assert time.monotonic() - began < 5
    net.wait_for("journals.plos.org", "/fake/1.pdf", ended=True, timeout=5)
    assert request.aborted
    assert session.call("health")["running"] == 0
    assert temporary_files(home) == []
    net.url(COPY, pdf(body))
    assert session.call("fetch_paper", ref=DOI)["ok"] is True, "the lock of the cancelled download is free"
    session.end_input()
    assert session.exit(1.5)[0] == 0, "a cancelled request is not waited for"
    assert repr(slow) not in session.answers
    assert run("log", "verify").rc == 0


def test_cancelling_what_waits_frees_its_place_in_the_queue(
    serve: Callable[..., Session], world: World, net: FakeInternet
) -> None:
    del world
    net.route("api.crossref.org", None, never())
    session = serve()
    calls = [session.start("fetch_paper", ref=f"10.1371/journal.wait.{n}") for n in range(7)]
    until(lambda: session.call("health"), lambda health: (health["running"], health["queue_depth"]) == (5, 2))
    for ident in calls[5:]:
        session.notify("notifications/cancelled", {"requestId": ident})
    until(lambda: session.call("health"), lambda health: (health["running"], health["queue_depth"]) == (5, 0))
    for ident in calls[:5]:
        session.notify("notifications/cancelled", {"requestId": ident})
    until(lambda: session.call("health"), lambda health: (health["running"], health["queue_depth"]) == (0, 0))
    assert not {repr(ident) for ident in calls} & set(session.answers)


def test_cancelling_nonsense_is_harmless(one_quiet: Session) -> None:
    for params in (
        {},
        {"requestId": None},
        {"requestId": 999},
        {"requestId": {}},
        {"requestId": [1]},
        {"requestId": True},
    ):
        one_quiet.notify("notifications/cancelled", params)
    one_quiet.healthy()


def until(look: Callable[[], Any], good: Callable[[Any], bool], timeout: float = 10.0) -> Any:
    """Look again until it is good; returns what was seen."""
    ends = time.monotonic() + timeout
    while not good(seen := look()):
        assert time.monotonic() < ends, seen
        time.sleep(0.02)
    return seen


# ############################################################################
# Lines
# ############################################################################

NOISE = '''
"""Prints and writes to descriptor 1 whenever something heavy is imported, and from a child process."""
import os, subprocess, sys

HEAVY = {"anyio", "pydantic", "mcp", "mcp_types", "httpx", "jsonschema", "ssl", "filelock", "tomllib"}

def hook(event, args):
    if event == "import" and args and args[0] in HEAVY and args[0] not in seen:
        seen.add(args[0])
        print("NOISE print", args[0], flush=True)
        sys.__stdout__.write("NOISE original\\n")
        os.write(1, b"NOISE: syntax error from a C library\\n")
        if args[0] == "mcp":
            subprocess.run(["/bin/sh", "-c", "echo NOISE child"])

seen = set()
if "serve" in sys.orig_argv:
    sys.addaudithook(hook)
'''


@posix_only
def test_noise_never_reaches_stdout(serve: Callable[..., Session], world: World, home: Home) -> None:
    """Case MC-01: imports that print, C libraries and children that write to descriptor 1."""
    folder = home.root / "noise"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NOISE)
    world.paper(DOI, pdf_url=COPY)
    session = serve(env={"PYTHONPATH": str(folder)})
    assert session.call("fetch_paper", ref=DOI)["ok"] is True
    session.end_input()
    assert session.exit()[0] == 0
    assert b"NOISE" not in session.stdout
    for kind in (b"NOISE print mcp", b"NOISE original", b"NOISE: syntax error", b"NOISE child"):
        assert kind in session.stderr, kind


BAD_LINES = {
    "cut": b'{"jsonrpc":"2.0", "method": "test", "params":',
    "words": b"NOT JSON",
    "blank": b"",
    "spaces": b"   \t ",
    "cr": b"\r",
    "nul": b"\x00\x00\x00",
    "nul inside": b'{"jsonrpc":"2.0","id":900,"method":"pi\x00ng"}',
    "bad utf-8": b"\xff\xfe\xfa{}",
    "utf-16": '{"jsonrpc":"2.0","id":901,"method":"ping"}'.encode("utf-16-le"),
    "array": b'[{"jsonrpc":"2.0","id":902,"method":"ping"},{"jsonrpc":"2.0","id":903,"method":"ping"}]',
    "empty array": b"[]",
    "empty object": b"{}",
    "number": b"42",
    "null": b"null",
    "text": b'"ping"',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep params": b'{"jsonrpc":"2.0","id":904,"method":"ping","params":{"a":' + b"[" * 3000 + b"]" * 3000 + b"}}",
    "no version": b'{"id":905,"method":"ping"}',
    "version 1": b'{"jsonrpc":"1.0","id":906,"method":"ping"}',
    "id null": b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    "id object": b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    "id fraction": b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    "id huge": b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    "method number": b'{"jsonrpc":"2.0","id":907,"method":7}',
    "params list": b'{"jsonrpc":"2.0","id":908,"method":"ping","params":[1]}',
    "lone surrogate": b'{"jsonrpc":"2.0","id":909,"method":"tools/call","params":{"name":"doiget_info","arguments":{"ref":"\\ud800 x"}}}',  # noqa: E501
    "unasked answer": b'{"jsonrpc":"2.0","id":910,"result":{}}',
    "unasked error": b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
    "unknown notification": b'{"jsonrpc":"2.0","method":"notifications/no_such_thing","params":{"a":1}}',
    "odd meta": b'{"jsonrpc":"2.0","id":911,"method":"ping","params":{"_meta":7}}',
    "infinity": b'{"jsonrpc":"2.0","id":912,"method":"tools/call","params":{"name":"doiget_list_recent","arguments":{"limit":Infinity}}}',  # noqa: E501
}  # fmt: skip


@mostly_legacy
def test_bad_lines_do_not_end_the_session(serve: Callable[..., Session], era: str) -> None:
    """Case MC-04, and everything else that may arrive: silence or a JSON-RPC error, and the next request is answered."""  # noqa: E501
    session = serve("--offline", era=era)
    session.healthy()
    for name, line in BAD_LINES.items():
        session.write(line + b"\n")
        probe = session.ask("tools/list", timeout=10)
        assert "result" in probe, name
    session.healthy()
    for frame in frames_of(session.stdout):
        assert frame.get("id") is not None or frame["error"]["code"] == -32700, frame


def test_a_byte_order_mark_is_no_fault(serve: Callable[..., Session]) -> None:
    """Some shells put one in front of all they pipe."""
    session = serve("--offline", hands=False)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    session.write(b"\xef\xbb\xbf" + session.frame("initialize", client, "bom"))
    assert session.wait("bom")["result"]["protocolVersion"] == "2025-06-18"
    session.healthy()


def test_bad_utf8_inside_a_string_is_answered(one_quiet: Session) -> None:
    one_quiet.write(
        b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":'
        b'{"name":"doiget_info","arguments":{"ref":"\xff\xfe nothing"}}}\n'
    )
    assert one_quiet.result("x", "info")["error"]["code"] == "INVALID_REF"


def test_half_a_character_is_answered(one_quiet: Session) -> None:
    """A lone surrogate, as JavaScript's strings may hold one, is legal JSON."""
    error = one_quiet.fail("info", ref="\ud83d no identifier")
    assert error["reason"] == "not_an_identifier"
    assert one_quiet.fail("info", **{"ref": "10.1000/x", "\udc00": 1})["reason"] == "schema"
    one_quiet.write(b'{"jsonrpc": "2.0", "method": "\\ud800\n' + b"[" * 100_000 + b'"\\ud800"' + b"]" * 100_000 + b"\n")
    one_quiet.healthy()


def test_a_request_that_is_none_is_refused_by_its_id(one_quiet: Session) -> None:
    """Who gave it an id waits for an answer; a line without one is nobody's request."""
    for ident, rest in (("r1", '"params": [1]'), (990_001, '"params": "x"'), ("r3", '"jsonrpc": "1.0"')):
        one_quiet.write(f'{{"jsonrpc": "2.0", "id": {json.dumps(ident)}, "method": "tools/call", {rest}}}\n'.encode())
        assert one_quiet.wait(ident)["error"]["code"] == -32600
    one_quiet.write(b'{"jsonrpc": "1.0", "id": "\\ud800", "method": 5}\n{"id": null, "method": 5}\n')
    one_quiet.write(b'{"id": 990002}\n[]\n')
    one_quiet.healthy()
    assert "990002" not in one_quiet.answers


@pytest.mark.parametrize(
    ("line", "ident"),
    [
        (b'{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {"x": "\0"}}', "a"),
        (b'{"method": "ping", "params": {"id": 1, "x": "\0"}, "jsonrpc": "2.0", "id": -7}', -7),
        (b' { "id" : 5 , "method": "pi', 5),
        (b'{"method": "ping", "params": {"x": 1, "id": 5}, \0}', None),
        (b'{"params": {"id": 5, "method": 1}} \0', None),
        (b'{"jsonrpc": "2.0", "id": 5, "result": {}} \0', None),
        (b'{"id": {"id": 5, "method": \0', None),
    ],
)
def test_a_broken_request_is_refused_by_its_own_id(line: bytes, ident: Any) -> None:
    """Only an id at the top of the message is one; hosts write it first or last."""
    refused = doiget.refusal_of(line)
    assert (refused.id if refused else None) == ident


def test_a_line_that_was_cut_never_reads_as_a_whole() -> None:
    """Beyond the cap the ends are kept, however the bytes come; a NUL keeps them from being taken for the message."""
    line = b'{"id": 1, "method": "ping", "params": {"x": "' + b"x" * 9000 + b'"}}'
    for step in (1, 700, 20_000):
        lines = doiget.LineSplitter(5000)
        data = line + b"\n\n" + b"ok\n" + line
        found = [got for n in range(0, len(data), step) for got in lines.feed(data[n : n + step])] + [*lines.rest()]
        assert [len(found), found[1]] == [3, b"ok"]
        for cut in (found[0], found[2]):
            assert cut.count(b"\0") == 1
            assert (cut[:45], cut[-3:]) == (line[:45], line[-3:])
            assert len(cut) <= 5000


def test_a_batch_is_answered_message_by_message(one_quiet: Session) -> None:
    """Protocol 2025-03-26 has arrays of messages; a host that sends one waits for each answer."""
    ping = one_quiet.frame("ping", {}, "in-1").strip()
    one_quiet.write(b" [" + ping + b"," + ping.replace(b"in-1", b"in-2") + b', {"id": "in-3", "method": 5}, 7, [1]]\n')
    assert one_quiet.wait("in-1")["result"] == one_quiet.wait("in-2")["result"] == {}
    assert one_quiet.wait("in-3")["error"]["code"] == -32600
    assert len(doiget.parts_of(b"[" + b"{}," * 100_000 + b"{}]")) == 1, "no flood of words on stderr"
    one_quiet.healthy()


def test_requests_in_pieces_and_in_one_piece(one_quiet: Session) -> None:
    """A pipe keeps no borders: a frame may come byte by byte, or ten at once."""
    for byte in one_quiet.frame("ping", {}, "slow"):
        one_quiet.write(bytes([byte]))
    assert one_quiet.wait("slow")["result"] == {}
    one_quiet.write(b"".join(one_quiet.frame("ping", {}, f"p{n}") for n in range(10)))
    for n in range(10):
        assert one_quiet.wait(f"p{n}")["result"] == {}


@needs_proc
def test_a_huge_line_costs_no_memory(serve: Callable[..., Session]) -> None:
    """10 MB in one line, and 10 MB more that end much later."""
    session = serve("--offline")
    session.healthy()
    session.ask("tools/list")
    before = memory_kb(session.process, "VmHWM")
    head = b'{"jsonrpc":"2.0","id":"huge","method":"tools/call","params":{"name":"doiget_info","arguments":{"ref":"'
    session.write(head + b"x" * (10 * 2**20) + b'"}}}\n')
    session.healthy()
    session.write(b'{"method":"tools/call","params":{"name":"doiget_info","arguments":{"ref":"' + b"x" * (10 * 2**20))
    session.write(b"y" * 2**20 + b'"}},"jsonrpc":"2.0","id":"last"}\n')
    session.healthy()
    assert memory_kb(session.process, "VmHWM") - before < 20_000
    for ident in ("huge", "last"):
        assert session.wait(ident)["error"]["code"] == -32600, "who asked must not wait for ever"
    assert session.stderr.count(b"dropped a line") == 2, "one word each"


@needs_proc
def test_long_lines_below_the_cap_are_bounded_too(serve: Callable[..., Session]) -> None:
    """A megabyte of refs is refused as a bad argument, and is not kept."""
    session = serve("--offline")
    session.healthy()
    before = memory_kb(session.process, "VmRSS")
    for _ in range(3):
        error = session.fail("batch_fetch", refs=["10.1000/" + "x" * 90] * 10_000)
        assert error["code"] == "INVALID_ARGUMENT"
    session.healthy()
    assert memory_kb(session.process, "VmRSS") - before < 20_000


# ############################################################################
# Endings
# ############################################################################


@mostly_legacy
def test_requests_before_the_end_of_input_are_all_answered(
    serve: Callable[..., Session], world: World, run: Runner, era: str
) -> None:
    """A host that writes everything and closes stdin at once still gets every answer (spec §9)."""
    world.paper(DOI, pdf_url=COPY)
    session = serve(era=era, hands=False)
    lines = []
    if era == "legacy":
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        lines = [session.frame("initialize", client, "hello")]
        lines.append(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    calls = {"health": {}, "info": {"ref": DOI}, "fetch_paper": {"ref": DOI}, "list_recent": {}}
    for tool, arguments in calls.items():
        lines.append(session.frame("tools/call", {"name": f"doiget_{tool}", "arguments": arguments}, tool))
    lines.append(session.frame("tools/list", {}, "list").rstrip(b"\n"))  # the last line has no end
    session.write(b"".join(lines))
    session.end_input()
    status, _ = session.exit(within=15)
    assert status == 0
    for tool in calls:
        session.result(tool, tool)
    assert "result" in session.wait("list")
    assert session.answers["'fetch_paper'"]["result"]["structuredContent"]["ok"] is True
    assert run("info", DOI, "--json").json()["entry"]["path"]


def test_half_a_request_at_the_end_is_refused(run: Runner) -> None:
    """The last line of a host that died in the middle of it, or whose line was too long."""
    (frame,) = frames_of(run("serve", input=b'{"jsonrpc": "2.0", "id": "p", "method": "pi').stdout)
    assert (frame["id"], frame["error"]["code"]) == ("p", -32600)


def test_nothing_asked_nothing_said(run: Runner) -> None:
    result = run("serve", input=b"")
    assert (result.rc, result.stdout) == (0, b"")
    assert result.seconds < 3 * LEAVES_WITHIN_S


def test_end_of_input_during_a_download(
    serve: Callable[..., Session], run: Runner, world: World, net: FakeInternet, home: Home
) -> None:
    """Case MC-03: no orphan, no temporary file, no lock, no traceback."""
    body = stalling_paper(world)
    session = serve()
    session.start("fetch_paper", ref=DOI)
    net.wait_for("journals.plos.org", "/fake/1.pdf", sent=2000)
    session.end_input()
    status, took = session.exit()
    assert status == 0
    assert took < LEAVES_WITHIN_S, "2 s of grace, then out"
    check_nothing_left(run, net, home, body)


def check_nothing_left(run: Runner, net: FakeInternet, home: Home, body: bytes) -> None:
    """No temporary file, no PDF, no held lock: the same download works at once."""
    assert temporary_files(home) == []
    assert list(home.store.glob("*.pdf")) == []
    net.url(COPY, pdf(body))
    again = run("fetch", DOI, "--json")
    assert again.json()["ok"] is True
    assert again.seconds < 20
    assert run("log", "verify").rc == 0


SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")


@posix_only
@pytest.mark.parametrize("name", ["SIGTERM", *(pytest.param(name, marks=pytest.mark.long) for name in SIGNALS[1:])])
def test_a_signal_while_idle(
    serve: Callable[..., Session], name: str, record_property: Callable[[str, object], None]
) -> None:
    session = serve(era="modern")
    until(lambda: b"serves" in session.stderr, bool)
    number = getattr(signal, name)
    time.sleep(0.1)
    session.process.send_signal(number)
    status, took = session.exit()
    record_property("seconds", took)
    assert status == 128 + number
    assert session.stdout == b"", "nothing was asked, nothing is said"
    assert took < LEAVES_WITHIN_S


@posix_only
@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_during_a_download(
    serve: Callable[..., Session], run: Runner, world: World, net: FakeInternet, home: Home, name: str,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    body = stalling_paper(world)
    session = serve()
    session.start("fetch_paper", ref=DOI)
    session.start("batch_fetch", refs=[DOI, MISSING])
    net.wait_for("journals.plos.org", "/fake/1.pdf", sent=2000)
    number = getattr(signal, name)
    session.process.send_signal(number)
    status, took = session.exit()
    record_property("seconds", took)
    assert status == 128 + number
    assert took < 1.9, "cancelled at once: signals get no grace"
    check_nothing_left(run, net, home, body)


@posix_only
@pytest.mark.long
def test_a_second_signal_changes_nothing(serve: Callable[..., Session], world: World, net: FakeInternet) -> None:
    stalling_paper(world)
    session = serve()
    session.start("fetch_paper", ref=DOI)
    net.wait_for("journals.plos.org", "/fake/1.pdf", sent=2000)
    session.process.send_signal(signal.SIGTERM)
    with contextlib.suppress(ProcessLookupError):
        session.process.send_signal(signal.SIGINT)
    assert session.exit()[0] in {143, 130}


@posix_only
def test_signals_during_the_start(run: Runner, schemas: dict[str, Any]) -> None:
    """Wherever the start has got to, a signal ends it soon, without a traceback and without a word on stdout."""
    for delay_s in (0.1, 0.25, 0.45):
        session = Session(run.spawn("serve"), "legacy", schemas)
        time.sleep(delay_s)
        session.process.send_signal(signal.SIGTERM)
        status, _ = session.exit()
        assert status in {143, -signal.SIGTERM}, (delay_s, session.stderr)
        assert session.stdout == b""
        assert b"Traceback" not in session.stderr


def test_client_closes_stdout(serve: Callable[..., Session], world: World, net: FakeInternet, home: Home) -> None:
    """A broken pipe cancels at once, also what is being downloaded."""
    stalling_paper(world)
    session = serve()
    session.start("fetch_paper", ref=DOI)
    net.wait_for("journals.plos.org", "/fake/1.pdf", sent=2000)
    session.is_raw = True
    close_reader(session)
    session.start("health")
    status, took = session.exit()
    assert status in {0, 141}
    assert took < LEAVES_WITHIN_S
    assert temporary_files(home) == []


def close_reader(session: Session) -> None:
    """Close our end of stdout; the reader thread is woken first, since a read in progress keeps a pipe open."""
    pipe = session.process.stdout
    assert pipe is not None
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, pipe.fileno())
    os.close(null)
    session.send("ping")  # the read in progress ends with this answer, the next one is of the null device
    session.threads[0].join(5)


@posix_only
def test_a_client_that_does_not_read_cannot_hold_the_server(run: Runner, schemas: dict[str, Any]) -> None:
    """With the pipe full, a signal and the end of input still end the session."""
    del schemas
    for how in ("SIGTERM", "eof"):
        process = run.spawn("serve", "--offline", stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode() + b"\n"
        )
        asks = [json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/list"}).encode() + b"\n" for n in range(1, 40)]
        process.stdin.write(b"".join(asks))
        process.stdin.flush()
        time.sleep(2)
        if how == "eof":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(3 * LEAVES_WITHIN_S) == (0 if how == "eof" else 143)  # it may still be starting


@posix_only
@pytest.mark.parametrize(("closed", "statuses"), [("<&-", {0, 10}), (">&-", {0, 10})], ids=["stdin", "stdout"])
def test_closed_at_launch(run: Runner, closed: str, statuses: set[int]) -> None:
    """Nobody to talk to: out at once, without a traceback, and without taking another file for the pipe."""
    command = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, str(run.pyz), "serve"]
    done = subprocess.run(
        command, env=run.env(), cwd=run.home.cwd, capture_output=True,
        input=None if closed == "<&-" else b"", timeout=10, check=False,
    )  # fmt: skip
    assert done.returncode in statuses
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr


@posix_only
def test_without_stderr_it_serves_all_the_same(run: Runner, schemas: dict[str, Any], world: World) -> None:
    """Hosts exist that start servers with descriptor 2 closed; its number must not become the protocol's."""
    world.paper(DOI, pdf_url=COPY)
    command = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, str(run.pyz), "serve"]
    process = subprocess.Popen(
        command, env=run.env(), cwd=run.home.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    run.running.append(process)
    session = Session(process, "legacy", schemas)
    session.handshake()
    session.write(b"rubbish\n")  # a warning that has nowhere to go
    assert session.call("fetch_paper", ref=DOI)["ok"] is True
    session.close()


# ############################################################################
# The queue
# ############################################################################


@posix_only
def test_five_run_a_hundred_wait_the_rest_is_told_at_once(
    serve: Callable[..., Session], world: World, net: FakeInternet
) -> None:
    """Spec §6; meanwhile health shows it, and what only reads the store does not wait."""
    world.closed(DOI)
    session = serve()
    assert session.call("fetch_paper", ref=DOI)["error"]["reason"] == "closed_access"  # leaves a record behind
    net.route("api.crossref.org", None, never())
    net.route("api.openalex.org", None, never())
    net.clear()
    ref = "10.1371/journal.queue.{:04}".format
    session.write(
        b"".join(
            session.frame("tools/call", {"name": "doiget_fetch_paper", "arguments": {"ref": ref(n)}}, f"q{n}")
            for n in range(105)
        )
    )
    until(lambda: session.call("health"), lambda health: (health["running"], health["queue_depth"]) == (5, 100))
    for n in (105, 106, 107):
        began = time.monotonic()
        error = session.fail("fetch_paper", ref=ref(n))
        took = time.monotonic() - began
        assert (error["code"], error["reason"], error["disposition"]) == ("RATE_LIMITED", "queue_full", "retry")
        assert error["retry_after_s"] >= 1
        assert took < 2
    began = time.monotonic()
    assert session.call("info", ref=DOI)["entry"]["ref"] == DOI
    assert session.call("list_recent")["total"] == 1
    assert session.call("search_local", query="title")["ok"] is True
    assert time.monotonic() - began < 5
    assert not [ident for ident in session.answers if ident.startswith("'q")]
    asked = {request.decoded_path.rpartition("/works/")[2] for request in net.requests(host="api.crossref.org")}
    assert asked <= {ref(n) for n in range(5)}, "what waits asks nobody"
    session.notify("notifications/cancelled", {"requestId": "q0"})
    until(lambda: session.call("health"), lambda health: (health["running"], health["queue_depth"]) == (5, 99))
    session.end_input()
    assert session.exit()[0] == 0


def test_a_batch_and_single_fetches_share_the_five_places(
    serve: Callable[..., Session], world: World, net: FakeInternet
) -> None:
    """At most 5 fetches at once, however they were asked for (spec §6, constants)."""
    hosts = ("journals.plos.org", "www.frontiersin.org", "elifesciences.org", "acp.copernicus.org", "www.scielo.br",
             "www.jstage.jst.go.jp", "peerj.com")  # fmt: skip
    refs = [f"10.1371/journal.share.{n}" for n in range(9)]
    for n, ref in enumerate(refs):
        stalling_paper(world, ref, f"https://{hosts[n % len(hosts)]}/share/{n}.pdf")
    session = serve()
    session.start("batch_fetch", refs=refs[:5])
    for ref in refs[5:]:
        session.start("fetch_paper", ref=ref)
    net.wait_for(path="/share/", count=5, sent=2000)
    time.sleep(1.5)
    assert net.max_at_once(path="/share/") <= 5, net.text()
    session.process.kill()
    session.exit()


def test_calls_are_finished_in_the_order_they_came(
    serve: Callable[..., Session], world: World, net: FakeInternet
) -> None:
    """Whoever got a place keeps it to the end: metadata of late calls must not hold up the downloads of early ones."""
    refs = [f"10.1371/journal.order.{n:02}" for n in range(12)]
    for ref in refs:
        world.paper(ref, pdf_url=f"https://journals.plos.org/{ref}.pdf")
    session = serve()
    for ref in refs:
        session.start("fetch_paper", ref=ref)
    first_copy = net.wait_for("journals.plos.org")[0].t_start
    begun = {r.path for r in net.requests("api.crossref.org") if r.t_start < first_copy}
    assert len(begun) <= 6, "the first download waits for everybody's metadata"
    session.process.kill()
    session.exit()


def test_batches_side_by_side_all_come_through(serve: Callable[..., Session], world: World) -> None:
    """Six batches of one quick paper each: none may hold a place while it waits for another."""
    refs = [f"10.1371/journal.many.{n}" for n in range(6)]
    for ref in refs:
        world.paper(ref, pdf_url=f"https://journals.plos.org/{ref}.pdf")
    session = serve()
    calls = [session.start("batch_fetch", refs=[ref]) for ref in refs]
    for ident in calls:
        assert session.result(ident, "batch_fetch", 25)["counts"]["fetched"] == 1


def test_the_clock_runs_from_receipt(serve: Callable[..., Session], world: World, net: FakeInternet) -> None:
    """Waiting for a place is part of a call's time: one that starts after a second has two of its three left."""
    del world
    net.route("api.crossref.org", None, never())
    session = serve()
    session.fail("fetch_paper", ref="10.1371/journal.warm", timeout_s=1)  # pays for the first call's imports
    for n in range(5):
        session.start("fetch_paper", ref=f"10.1371/journal.first.{n}", timeout_s=1)
    began = time.monotonic()
    late = session.start("fetch_paper", ref="10.1371/journal.late", timeout_s=3)
    answer = session.result(late, "fetch_paper")
    took = time.monotonic() - began
    assert answer["error"]["code"] == "FETCH_TIMEOUT", answer
    assert 2.5 < took < 8


def test_a_write_that_waits_for_a_lock_holds_up_nobody_else(
    serve: Callable[..., Session], world: World, net: FakeInternet, home: Home
) -> None:
    """Another process has the record's lock for some seconds: meanwhile the server goes on answering."""
    world.paper("10.1371/journal.locked", pdf_url="https://journals.plos.org/locked.pdf")
    session = serve()
    session.call("health")
    slowest = 0.0
    with doiget.hold_lock(home.store / ".metadata" / ".locks" / "put.doi_10.1371_journal.locked.lock"):
        fetching = session.start("fetch_paper", ref="10.1371/journal.locked")
        until(lambda: net.requests(path="/locked.pdf"), bool)
        ends = time.monotonic() + 3
        while (asked := time.monotonic()) < ends:
            session.call("health")
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.05)
    assert session.result(fetching, "fetch_paper")["ok"] is True
    assert slowest < 2


def test_what_cannot_start_in_time_is_told_to_come_again(
    serve: Callable[..., Session], world: World, net: FakeInternet
) -> None:
    """Spec §6: "when a request cannot start in time, RATE_LIMITED": no host was slow, nobody was asked."""
    del world
    net.route("api.crossref.org", None, never())
    session = serve()
    for n in range(5):
        session.start("fetch_paper", ref=f"10.1371/journal.first.{n}", timeout_s=20)
    until(lambda: session.call("health"), lambda health: health["running"] == 5)
    began = time.monotonic()
    error = session.fail("fetch_paper", ref="10.1371/journal.late", timeout_s=1)
    assert time.monotonic() - began < 8
    assert (error["code"], error["disposition"]) == ("RATE_LIMITED", "retry"), error
    assert not net.requests(path="journal.late")
    session.process.kill()
    session.exit()


@pytest.mark.long
def test_batch_answers_after_fifty_seconds_and_goes_on_later(
    serve: Callable[..., Session], world: World, net: FakeInternet
) -> None:
    quick, slow = "10.1371/journal.quick", ["10.1371/journal.slow.1", "10.1371/journal.slow.2"]
    world.paper(quick, pdf_url="https://journals.plos.org/quick.pdf")
    urls = [f"https://journals.plos.org/slow/{n}.pdf" for n in range(2)]
    bodies = [stalling_paper(world, ref, url) for ref, url in zip(slow, urls, strict=True)]
    for url, body in zip(urls, bodies, strict=True):  # a trickle: 100 s each, and never still for long
        pieces = [body[start : start + 500] for start in range(0, len(body), 500)]
        net.url(url, Reply(stream=pieces, length=len(body), content_type="application/pdf", bytes_per_s=500))
    session = serve(env={"DOIGET_TIMEOUT_S": "300"})
    began = time.monotonic()
    answer = session.result(session.start("batch_fetch", refs=[slow[0], quick, slow[1]]), "batch_fetch", 60)
    assert 48 < time.monotonic() - began < 60
    assert answer["ok"] is True
    assert answer["counts"] == {"fetched": 1, "already_in_store": 0, "failed": 0, "pending": 2}
    assert answer["pending"] == slow
    assert [result["ok"] for result in answer["results"]] == [False, True, False]
    for result in (answer["results"][0], answer["results"][2]):
        assert (result["error"]["code"], result["error"]["reason"]) == ("FETCH_TIMEOUT", "pending")
    for url, body in zip(urls, bodies, strict=True):
        net.url(url, pdf(body))
    again = session.call("batch_fetch", refs=[slow[0], quick, slow[1]])
    assert again["counts"] == {"fetched": 2, "already_in_store": 1, "failed": 0, "pending": 0}


# ############################################################################
# Long sessions
# ############################################################################


def many_calls(session: Session, count: int) -> int:
    """Make `count` calls of three kinds, 20 in flight; returns the growth of memory in kB after the first tenth."""
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("health", {}),
        ("info", {"ref": DOI}),
        ("search_local", {"query": "title"}),
    ]
    before = 0
    for start in range(0, count, 20):
        calls = []
        for n in range(start, min(start + 20, count)):
            tool, arguments = kinds[n % len(kinds)]
            calls.append((session.start(tool, **arguments), tool))
        for ident, tool in calls:
            assert session.result(ident, tool)["ok"] is True
        if start <= count // 10:
            before = memory_kb(session.process, "VmRSS")
    return memory_kb(session.process, "VmRSS") - before


@needs_proc
@pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.long)])
def test_memory_stays_level(serve: Callable[..., Session], world: World, count: int) -> None:
    world.paper(DOI, pdf_url=COPY)
    session = serve()
    session.call("fetch_paper", ref=DOI)
    assert many_calls(session, count) < 10_000
    assert session.notifications == []


texts = st.text(max_size=12)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), texts, st.sampled_from([DOI, "10.1000/x", "arXiv:2401.12345"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
field_names = st.one_of(
    st.sampled_from(["ref", "refs", "query", "limit", "cursor", "refresh", "network", "timeout_s", "hosts"]), texts
)
tool_names = st.one_of(st.sampled_from(sorted(FIELDS)), texts)
methods = st.one_of(
    st.sampled_from(
        [
            "ping", "initialize", "tools/list", "server/discover", "resources/list", "prompts/list", "prompts/get",
            "completion/complete", "logging/setLevel", "notifications/cancelled", "notifications/initialized",
            "notifications/progress", "notifications/roots/list_changed", "subscriptions/listen", "tasks/list",
        ]
    ),
    texts,
)  # fmt: skip
idents = st.one_of(st.integers(), texts, scalars)


@st.composite
def frames(draw: Callable[[Any], Any], session: Session) -> bytes:
    """A line for the server: a call, a nearly valid message, or rubbish."""
    kind = draw(st.sampled_from(["call", "call", "message", "message", "broken", "rubbish"]))
    if kind == "rubbish":
        return bytes(draw(st.binary(max_size=60))) + b"\n"
    params: Any
    if kind == "message":
        method, params = draw(methods), draw(st.one_of(st.dictionaries(texts, values, max_size=3), values))
    else:
        method = "tools/call"
        params = {
            "name": draw(tool_names),
            "arguments": draw(st.one_of(st.dictionaries(field_names, values, max_size=3), values)),
        }
    if isinstance(params, dict) and draw(st.booleans()):
        params = session.envelope(params)
    message = {
        "jsonrpc": draw(st.sampled_from(["2.0", "2.0", "2.0", "1.0", None])),
        "id": draw(idents),
        "method": method,
        "params": params,
    }
    for name in draw(st.sets(st.sampled_from(["jsonrpc", "id", "method", "params"]), max_size=1)):
        if kind == "broken":
            del message[name]
    line = json.dumps(message, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if kind == "broken" and draw(st.booleans()):
        cut = draw(st.integers(0, len(line)))
        line = line[:cut] + draw(st.binary(max_size=3)) + line[cut + draw(st.integers(0, 3)) :]
    return line + draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"]))


@eras
@pytest.mark.parametrize("bursts", [25, pytest.param(250, marks=pytest.mark.long)])
def test_generated_frames_leave_the_server_healthy(serve: Callable[..., Session], era: str, bursts: int) -> None:
    """Bursts of ten frames; after each the server is asked something and answers."""
    session = serve("--offline", era=era)
    session.healthy()
    session._take = lambda line: take_probe(session, line)  # type: ignore[method-assign]

    @settings(
        max_examples=bursts, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.lists(frames(session), min_size=10, max_size=10))
    def burst(lines: list[bytes]) -> None:
        session.write(b"".join(lines))
        probe = f"probe-{next(session.numbers)}"
        session.send("tools/call", {"name": "doiget_list_recent", "arguments": {}}, probe)
        assert session.result(probe, "list_recent")["ok"] is True

    burst()
    session.send("tools/call", {"name": "doiget_health", "arguments": {}}, "probe-last")
    assert session.result("probe-last", "health")["healthy"] is True
    answers = [frame for frame in frames_of(session.stdout) if "structuredContent" in frame.get("result", {})]
    assert len(answers) > bursts
    for frame in answers:
        check_answer(frame["result"]["structuredContent"])
        assert frame["result"]["structuredContent"].get("error", {}).get("code") != "INTERNAL_ERROR", frame


def take_probe(session: Session, line: bytes) -> None:
    """Keep only the answers to our own questions: generated ids may occur twice."""
    frame = json.loads(line)
    if isinstance(frame.get("id"), str) and frame["id"].startswith("probe-"):
        session.answers[repr(frame["id"])] = frame


# ############################################################################
# What stderr says
# ############################################################################

SECRET = "k3y-of-the-library"
PASSWORD = "pr0xy-passw0rd"


@pytest.mark.parametrize(
    ("level", "form", "seen"),
    [("info", "text", {"info", "warning"}), ("warning", "json", {"warning"}), ("error", "json", set())],
)
def test_log_on_stderr(serve: Callable[..., Session], level: str, form: str, seen: set[str]) -> None:
    """Text or JSON Lines, nothing below the level."""
    session = serve("--offline", env={"DOIGET_LOG": level, "DOIGET_LOG_FORMAT": form})
    session.write(b"rubbish\n")
    session.healthy()
    session.close()
    lines = session.stderr.decode().splitlines()
    if form == "json":
        rows = [json.loads(line) for line in lines]
        assert all(row["message"] and row["time"] for row in rows)
        assert {row["level"] for row in rows} == seen
    else:
        assert {found[1] for line in lines if (found := re.match(r"\S+ (\w+): \S", line))} == seen


def test_no_secret_is_ever_shown(serve: Callable[..., Session], world: World, net: FakeInternet, home: Home) -> None:
    """Neither a key nor the proxy's password, in no answer, at the loudest level, working or failing."""
    world.paper(DOI, pdf_url=COPY)
    proxy = net.proxy_url.replace("http://", f"http://reader:{PASSWORD}@")
    keys = {f"DOIGET_KEY_{name}": SECRET for name in ("ELSEVIER", "OPENALEX", "SPRINGER", "NCBI", "SEMANTICSCHOLAR")}
    for right in (PASSWORD, "another"):
        net.require_auth("reader", right)
        session = serve(env={**keys, "HTTPS_PROXY": proxy, "DOIGET_LOG": "debug", "DOIGET_AGREE_TDM_ELSEVIER": "1"})
        session.call("fetch_paper", ref=DOI if right == PASSWORD else MISSING)
        session.call("health", network=True)
        session.call("capability_profile", hosts=True)
        session.write(f'{{"key": "{SECRET}", "proxy": "{proxy}"'.encode() + b"\n")
        session.ask("ping")
        session.close()
        said = (session.stdout + session.stderr).decode()
        assert PASSWORD not in said
        assert SECRET not in said
        assert b"HTTP Request" not in session.stderr, "the http library's own log stays off"
    log = home.config / "access.log"
    assert PASSWORD not in log.read_text()


# ############################################################################
# mcp-config and tools
# ############################################################################

HOSTS = ("claude-desktop", "claude-code", "cursor", "vscode", "codex")


def entry_of(host: str, text: str) -> dict[str, Any]:
    """Read a snippet as its host does."""
    if host == "codex":
        server = tomllib.loads(text)["mcp_servers"]["doiget"]
    elif host == "vscode":
        server = json.loads(text)["servers"]["doiget"]
        assert server["type"] == "stdio"
    else:
        server = json.loads(text)["mcpServers"]["doiget"]
    return dict(server)


@pytest.mark.parametrize("host", HOSTS)
def test_mcp_config_is_ready_to_paste(run: Runner, net: FakeInternet, host: str) -> None:
    proxy = net.proxy_url.replace("http://", f"http://reader:{PASSWORD}@")
    given = {"HTTPS_PROXY": proxy, "NO_PROXY": "intranet.example", "LANG": "C.UTF-8", "DOIGET_KEY_ELSEVIER": SECRET,
             "DOIGET_EMAIL": "reader@library.example", "DOIGET_OFFLINE": "${user_config.offline}"}  # fmt: skip
    result = run("mcp-config", host, env=given)
    assert result.rc == 0
    server = entry_of(host, result.out)
    assert Path(server["command"]).is_absolute()
    program, word = server["args"]
    assert Path(program).is_absolute()
    assert (Path(program).name, word) == (run.pyz.name, "serve")
    env = server["env"]
    dropped = {"HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LANG"}
    assert dropped | {"DOIGET_STORE", "DOIGET_PYZ_ROOT", "DOIGET_EMAIL"} <= set(env), "hosts do not pass these on"
    assert "DOIGET_OFFLINE" not in env, "an unfilled value is unset"
    assert SECRET not in result.out
    assert PASSWORD not in result.out


@pytest.mark.parametrize("host", ["claude-desktop", "codex"])
def test_mcp_config_copes_with_odd_folders(run: Runner, host: str) -> None:
    folder = run.home.root / '📚 a "b" \\ é'
    folder.mkdir()
    copy = folder / "doiget copy.pyz"
    shutil.copy(run.pyz, copy)
    process = subprocess.run(
        [sys.executable, copy.name, "mcp-config", host], cwd=folder, env=run.env({"DOIGET_STORE": str(folder / "papers")}),  # noqa: E501
        capture_output=True, check=True,
    )  # fmt: skip
    server = entry_of(host, process.stdout.decode())
    assert server["args"][0] == str(copy)
    assert server["env"]["DOIGET_STORE"] == str(folder / "papers")


def test_mcp_config_makes_paths_absolute(run: Runner) -> None:
    """A host starts the server in a folder of its own, where a relative path means something else."""
    given = {"DOIGET_STORE": "papers", "SSL_CERT_FILE": os.path.relpath(run.net.ca_file, run.home.cwd)}
    env = entry_of("cursor", run("mcp-config", "cursor", env=given).out)["env"]
    assert env["DOIGET_STORE"] == str(run.home.cwd / "papers")
    assert Path(env["SSL_CERT_FILE"]).is_absolute()


def test_mcp_config_knows_the_other_proxy_variable(run: Runner, net: FakeInternet) -> None:
    result = run("mcp-config", "cursor", env={"HTTPS_PROXY": None, "ALL_PROXY": net.proxy_url})
    assert entry_of("cursor", result.out)["env"]["ALL_PROXY"] == net.proxy_url


def test_mcp_config_takes_the_store_from_the_command_line(run: Runner) -> None:
    env = entry_of("cursor", run("mcp-config", "cursor", "--store", run.home.root / "other").out)["env"]
    assert env["DOIGET_STORE"] == str(run.home.root / "other")


def test_a_pasted_snippet_starts_a_server(run: Runner, schemas: dict[str, Any]) -> None:
    """With nothing but what the host passes on and what the snippet says."""
    server = entry_of("claude-desktop", run("mcp-config", "claude-desktop").out)
    env = {"HOME": str(run.home.home), "PATH": os.environ["PATH"], **server["env"]}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([server["command"], *server["args"]], env=env, cwd="/", **pipes)
    run.running.append(process)
    session = Session(process, "legacy", schemas)
    session.handshake()
    assert session.healthy()["store"] == str(run.home.store)
    session.close()


def test_mcp_config_of_an_unknown_host(run: Runner) -> None:
    result = run("mcp-config", "notepad", "--json")
    assert result.rc == 2
    assert result.json()["error"]["code"] == "INVALID_ARGUMENT"
    for host in HOSTS:
        assert host in json.dumps(result.json())


def test_tools_prints_the_reference(run: Runner, tools: list[dict[str, Any]]) -> None:
    text = run("tools").out
    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) == [tool["name"] for tool in tools]
    for tool in tools:
        assert all(line in text for line in tool["description"].splitlines())


# ############################################################################
# Posture
# ############################################################################

#: What this tool must never be: a web server, or something that reports home.
DENIED = {
    "aiohttp", "bottle", "cherrypy", "django", "fastapi", "falcon", "flask", "gunicorn", "hypercorn", "quart", "sanic",
    "starlette", "sse_starlette", "sse-starlette", "tornado", "twisted", "uvicorn", "waitress", "websockets", "werkzeug",  # noqa: E501
    "amplitude", "analytics", "datadog", "ddtrace", "honeycomb", "mixpanel", "newrelic", "opentelemetry",
    "opentelemetry-api", "opentelemetry-sdk", "posthog", "rollbar", "segment", "sentry_sdk", "sentry-sdk", "statsd",
    "http.server", "socketserver", "xmlrpc", "wsgiref", "asyncore",
}  # fmt: skip
#: What mcp imports by itself; we neither name nor use it (zipapp.md).
DRAGGED_IN = {"starlette", "sse_starlette", "opentelemetry", "socketserver", "uvicorn"}
IMPORT_ONLY_IF_INSTALLED = {
    "uvicorn"
}  # absent from the built file, present beside the SDK in a development environment


def imported_names() -> set[str]:
    tree = ast.parse((ROOT / "doiget.py").read_text("utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_nothing_on_the_deny_list_is_named_by_us() -> None:
    mine = imported_names()
    assert "mcp.server.lowlevel" in mine, "the list is read off the real imports"
    assert not {name for name in mine if name in DENIED or name.partition(".")[0] in DENIED}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {re.split(r"[^\w.-]", dependency)[0].lower() for dependency in project["dependencies"]}
    assert named
    assert not named & DENIED
    assert "optional-dependencies" not in project


@needs_proc
def test_what_is_loaded_while_serving(serve: Callable[..., Session], world: World) -> None:
    """Of the deny list only what mcp drags in is loaded, and none of it before mcp itself."""
    world.paper(DOI, pdf_url=COPY)
    session = serve(flags=("-X", "importtime"))
    assert session.call("fetch_paper", ref=DOI)["ok"] is True
    session.close()
    loaded = set(re.findall(rb"^import time:.*\| +([\w.]+)$", session.stderr, re.MULTILINE))
    tops = {name.decode() for name in loaded} | {name.decode().partition(".")[0] for name in loaded}
    assert "mcp" in tops
    assert not (tops & DENIED) - DRAGGED_IN, "something new came along"


@needs_proc
def test_no_socket_listens_while_serving(serve: Callable[..., Session], world: World, net: FakeInternet) -> None:
    stalling_paper(world)
    session = serve()
    assert listening(session.process) == set()
    session.start("fetch_paper", ref=DOI)
    net.wait_for("journals.plos.org", "/fake/1.pdf", sent=2000)
    assert listening(session.process) == set()
    session.process.kill()
    session.exit()


def listening(process: subprocess.Popen[bytes]) -> set[str]:
    """The listening TCP and UNIX sockets of a process."""
    folder = Path(f"/proc/{process.pid}/fd")
    links = [str(path.readlink()) for path in folder.iterdir()]
    own = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    found = set()
    for table, state, inode in (("tcp", "0A", 9), ("tcp6", "0A", 9), ("udp", "07", 9), ("udp6", "07", 9)):
        path = Path(f"/proc/{process.pid}/net/{table}")
        rows = [line.split() for line in path.read_text().splitlines()[1:]] if path.exists() else []
        found |= {f"{table} {row[1]}" for row in rows if row[3] == state and row[inode] in own}
    unix = [line.split() for line in Path(f"/proc/{process.pid}/net/unix").read_text().splitlines()[1:]]
    return found | {f"unix {row[6]}" for row in unix if row[6] in own and row[3] == "00010000"}


def test_no_constant_looks_like_a_credential() -> None:
    tree = ast.parse((ROOT / "doiget.py").read_text("utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    known = re.compile(
        r"AKIA[0-9A-Z]{16}|ghp_\w{20,}|sk-[\w-]{20,}|xox[bap]-\w+|-----BEGIN|AIza[\w-]{30,}|eyJ[\w-]{20,}\."
    )
    random_like = re.compile(r"(?=.*\d)(?=.*[a-z])[A-Za-z0-9+_=-]{28,}|[0-9a-f]{24,}", re.IGNORECASE)
    for text in texts:
        assert not known.search(text), text[:60]
        assert not (random_like.fullmatch(text) and not text.isidentifier()), text[:60]
    assigned = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and re.search(r"KEY|TOKEN|SECRET|PASSW", target.id, re.IGNORECASE)
    }
    assert not {
        name: value for name, value in assigned.items() if isinstance(value, str) and re.fullmatch(r"[\w-]{12,}", value)
    }
