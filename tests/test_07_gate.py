"""The one gate: which addresses pass, how fast they are asked, over which connection, what its failures are called."""

from __future__ import annotations

import ast
import gzip
import inspect
import ipaddress
import itertools
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import textwrap
import time
import urllib.parse
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpcore
import httpx
import pytest
from fake_internet import FakeInternet, Reply, html
from hypothesis import example, given, settings
from hypothesis import strategies as st
from worlds import Location, World, pdf_bytes

import doiget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from conftest import Home, Runner

DOI = "10.1371/journal.fake.0000001"
COPY = "https://journals.plos.org/fake/1.pdf"
ROOT = Path(__file__).resolve().parent.parent
CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def reason_of(call: Callable[[], object]) -> str:
    """The reason a call fails with, or "" when it passes."""
    try:
        call()
    except doiget.DoigetError as error:
        return error.reason
    return ""


def resolve_error(run: Runner, *words: str, **how: Any) -> dict[str, Any]:
    """Ask Crossref once, with little patience, and return the `error` of the answer."""
    result = run("resolve", DOI, "--json", "--no-cache", *words, **how)
    answer = result.json()
    assert answer["ok"] is False, result
    assert "Traceback" not in result.err
    error: dict[str, Any] = answer["error"]
    return error


# ---- which addresses pass ----

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
HOST = st.one_of(
    st.lists(LABEL, min_size=1, max_size=4).map(".".join),
    st.sampled_from(
        [
            *("journals.plos.org", "arxiv.org", "doi.org", "uni.example", "files.uni.example", "evil.com", "com"),
            *("localhost", "printer.local", "127.0.0.1", "0x7f.1", "2130706433", "[::1]", "017700000001", "127.1"),
            *(
                "JOURNALS.PLOS.ORG",
                "journals.plos.org.",
                "storage.googleapis.com",
                "plos.org.evil.com",
                "bücher.example",
            ),
        ]
    ),
)
URL = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(
        ["https://", "https://", "https://", "http://", "HTTPS://", "ftp://", "file://", "//", "https:", ""]
    ),
    st.sampled_from(["", "", "", "me@", "me:pw@", "@", "journals.plos.org@"]),
    HOST,
    st.sampled_from(["", "", ":443", ":80", ":8443", ":0443", ":", ":99999999"]),
    st.sampled_from(["", "/", "/x.pdf", "/plos-corpus-prod/1", "?q=1", "#f", "\\@evil.com/", "/../a", "/%00", " "]),
)
NAMED = st.frozensets(HOST.map(str.lower), max_size=3)


@settings(max_examples=150, deadline=None)
@given(text=URL | st.text(max_size=60), named=NAMED, strict=st.booleans(), redirect=st.booleans())
@example(text="https://evil.com/x.pdf", named=frozenset({"com"}), strict=False, redirect=True)
@example(text="http://journals.plos.org/x.pdf", named=frozenset(), strict=False, redirect=False)
@example(text="https://journals.plos.org:8443/x.pdf", named=frozenset(), strict=False, redirect=False)
@example(text="https://me:pw@journals.plos.org/x.pdf", named=frozenset(), strict=False, redirect=False)
@example(text="https://intranet/x.pdf", named=frozenset({"intranet"}), strict=False, redirect=False)
@example(text="https://127.0.0.1/x.pdf", named=frozenset({"127.0.0.1"}), strict=False, redirect=False)
@example(text="https://foo.local/x.pdf", named=frozenset({"foo.local"}), strict=False, redirect=False)
@example(text="https://evil.com%2f.plos.org/x.pdf", named=frozenset(), strict=False, redirect=False)
@example(text="https://.plos.org/x.pdf", named=frozenset(), strict=False, redirect=False)
@example(text="https://ev<il.plos.org/x.pdf", named=frozenset(), strict=False, redirect=False)
def test_what_passes_is_encrypted_on_the_standard_port_and_a_public_name(
    text: str, named: frozenset[str], *, strict: bool, redirect: bool
) -> None:
    """Whatever the URL: https, port 443, no user info, a dotted name that is listed or that an index named."""
    refusals = {"insecure_redirect", "private_address", "host_not_allowed", "blocked_by_host"}
    if refused := reason_of(lambda: doiget.judge_url(text, named=named, strict=strict, redirect=redirect)):
        assert refused in refusals
        return
    hop = doiget.judge_url(text, named=named, strict=strict, redirect=redirect)
    sent = httpx.URL(str(hop.url))
    assert sent.scheme == "https"
    assert sent.port in (None, 443)
    assert not sent.userinfo
    assert sent.raw_host.decode() == hop.host == hop.host.lower().rstrip(".")
    assert "." in hop.host
    assert all(0 < len(label) < 64 and re.fullmatch("[a-z0-9_-]+", label) for label in hop.host.split("."))
    assert not doiget.is_ip_literal(hop.host)
    assert not hop.host.endswith((".local", ".internal", ".localhost"))
    listed = doiget.is_listed(hop.host, sent.path, redirect=redirect)
    # A name without a dot is no host of anybody's: naming `com` must not open all of .com.
    hosts = {name for name in named if "." in name}
    below = redirect and any(hop.host.endswith("." + name) for name in hosts)
    assert listed or (not strict and (hop.host in hosts or below))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0X7F.1", "017700000001"),
        *("0177.0.0.1", "00000177.1", "0", "1.2.3.4", "8.8.8.8", "127.0.0.1.", "255.255.255.255", "0x", "0xA9FEA9FE"),
        *("169.254.43518",),
        *("[::1]", "[::ffff:127.0.0.1]", "[fe80::1%25eth0]", "[::]"),
    ],
)  # fmt: skip
def test_addresses_are_recognised_in_every_spelling(host: str) -> None:
    """What a C library would read as an address is never asked, even when an index names it."""
    assert doiget.is_ip_literal(host.lower())
    named = frozenset({host.lower(), host.strip("[].").lower()})
    refused = reason_of(lambda: doiget.judge_url(f"https://{host}/x.pdf", named=named, strict=False))
    assert refused in {"private_address", "insecure_redirect"}


@pytest.mark.parametrize(
    "host", ["1.2.3.4.nip.example", "0x7f.example", "127-0-0-1.example", "a.1", "3.example", "dead.beef"]
)
def test_names_are_not_taken_for_addresses(host: str) -> None:
    assert not doiget.is_ip_literal(host)


@pytest.mark.parametrize(
    "spelling",
    [
        "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
        "127\u30020\u30020\u30021",
        "\u2460\u2461\u2466.0.0.1",
        "\u217cocalhost",
        "journals\u3002plos\u3002org",
    ],
)
def test_unicode_spellings_lead_nowhere_new(spelling: str) -> None:
    """Other scripts' digits and full stops end as the plain host they stand for, or are refused."""
    try:
        hop = doiget.judge_url(f"https://{spelling}/x", named=frozenset({spelling, "127.0.0.1"}), strict=False)
    except doiget.DoigetError:
        return
    assert hop.host == "journals.plos.org"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://validate.perfdrive.com/x", "blocked_by_host"),
        ("https://perfdrive.com.example/x", "host_not_allowed"),
        ("https://plos.org/x", "host_not_allowed"),
        ("https://xplos.org/x", "host_not_allowed"),
        ("https://storage.googleapis.com/plos-corpus-prod/1", "host_not_allowed"),
        ("https://journals.plos.org/x", ""),
        ("https://dx.doi.org/10.1/x", ""),
    ],
)
def test_the_list_means_what_it_says(url: str, reason: str) -> None:
    """`*.x` means subdomains only, shared storage only behind a redirect, a wall's host is an answer."""
    assert reason_of(lambda: doiget.judge_url(url)) == reason


@pytest.mark.parametrize(
    "target",
    [
        "https://storage.googleapis.com/plos-corpus-prod/../other-bucket/x",
        "https://storage.googleapis.com/plos-corpus-prod/%2e%2e/other-bucket/x",
        "https://storage.googleapis.com/plos-corpus-prod/%2e%2e%5cother-bucket/x",
        "https://storage.googleapis.com/plos-corpus-prod/..;/other-bucket/x",
        "https://storage.googleapis.com/plos-corpus-prod-evil/x",
        "https://storage.googleapis.com//plos-corpus-prod/x",
        "https://other.storage.googleapis.com/plos-corpus-prod/x",
    ],
)
def test_shared_storage_is_held_to_its_folder(target: str) -> None:
    """Many tenants share these hosts: no way of writing the path leads into another's bucket."""
    if refused := reason_of(lambda: doiget.judge_url(target, redirect=True)):
        assert refused == "host_not_allowed"
        return
    hop = doiget.judge_url(target, redirect=True)
    asked = httpx.URL(str(hop.url)).raw_path.decode()
    assert asked.startswith("/plos-corpus-prod/")
    assert ".." not in urllib.parse.unquote(asked)
    assert "/../" not in asked.lower().replace("%2e", "."), "the storage host may resolve the dots"


@pytest.mark.parametrize(
    ("named", "target", "reason"),
    [
        ("uni.example", "files.uni.example", ""),
        ("github.io", "evil.github.io", "host_not_allowed"),
        ("reader.github.io", "evil.reader.github.io", "host_not_allowed"),
        ("s3.amazonaws.com", "evil.s3.amazonaws.com", "host_not_allowed"),
        ("co.uk", "evil.co.uk", "host_not_allowed"),
        ("com", "evil.com", "host_not_allowed"),
    ],
)
def test_neighbours_on_a_shared_domain_are_strangers(named: str, target: str, reason: str) -> None:
    """Where anybody can have a name below it, an index that named a host did not name all of them."""
    names = frozenset({named})
    asked = f"https://{target}/x.pdf"
    assert reason_of(lambda: doiget.judge_url(asked, named=names, strict=False, redirect=True)) == reason


SPECIAL_RANGES = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"),
    *(
        "192.0.2.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "192.88.99.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ),
    *(
        "255.255.255.255/32",
        "::/128",
        "::1/128",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
        "2001:db8::/32",
        "100::/64",
    ),
    # IPv6 that carries IPv4: compatible, mapped, translated, NAT64 (both), 6to4, Teredo.
    *("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"),
)


@settings(max_examples=20, deadline=None)
@given(st.data())
@pytest.mark.parametrize("network", SPECIAL_RANGES)
def test_no_address_of_a_special_range_is_public(network: str, data: st.DataObject) -> None:
    span = ipaddress.ip_network(network)
    offset = data.draw(st.sampled_from([0, span.num_addresses - 1]) | st.integers(0, span.num_addresses - 1))
    assert not doiget.is_public_address(str(span[offset]))


@pytest.mark.parametrize("hidden", ["8.8.8.8", "10.0.0.1", "127.0.0.1", "169.254.169.254"])
@pytest.mark.parametrize("form", ["::ffff:{}", "::{}", "64:ff9b::{}", "::ffff:0:{}"])
def test_an_embedded_address_is_refused_whatever_it_is(form: str, hidden: str) -> None:
    assert not doiget.is_public_address(form.format(hidden))


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_public_addresses_pass(text: str) -> None:
    assert doiget.is_public_address(text)


def test_a_zone_hides_nothing() -> None:
    assert not doiget.is_public_address("fe80::1%eth0")
    assert not doiget.is_public_address("::1%2606:4700::1111")


@pytest.mark.parametrize(
    ("host", "no_proxy", "direct"),
    [
        ("x.example.edu", "10.0.0.0/8,localhost,.example.edu", True),
        ("example.edu", "10.0.0.0/8,localhost,.example.edu", True),
        ("api.crossref.org", "10.0.0.0/8,localhost,.example.edu", False),
        ("x.example.edu", "example.edu", True),
        ("notexample.edu", "example.edu", False),
        ("example.edu.evil.org", "example.edu", False),
        ("x.example.edu", "*.example.edu", True),
        ("x.example.edu", "EXAMPLE.EDU", True),
        ("x.example.edu", " a.org ,  example.edu ", True),
        ("x.example.edu", "a.org example.edu", True),
        ("x.example.edu", "example.edu:443", True),
        ("x.example.edu", "https://example.edu", True),
        ("x.example.edu", "*", True),
        ("x.example.edu", "a.org,*", True),
        ("x.example.edu", "", False),
        ("x.example.edu", ",, ,", False),
        ("x.example.edu", ".", False),
        ("x.example.edu", "0.0.0.0/0,::/0", False),
        ("x.example.edu", "[::1],fe80::/10,10.0.0.1", False),
        ("10.example.edu", "10.0.0.0/8", False),
    ],
)
def test_who_goes_direct(host: str, no_proxy: str, *, direct: bool) -> None:
    """NO_PROXY as programs write it: names, suffixes, ports, stars; a network matches addresses, and we ask none."""
    assert doiget.goes_direct(host, no_proxy) is direct


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_no_writing_of_no_proxy_breaks_anything(text: str) -> None:
    doiget.goes_direct("api.crossref.org", text)


# ---- how long to wait ----


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        (formatdate(1_000_060, usegmt=True), 60.0),
        (formatdate(999_000, usegmt=True), 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253402300799.0 - 1_000_000),
        ("Wed, 99 Foo 2020 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert doiget.retry_after_s(header, 1_000_000.0) == seconds


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=40) | st.from_regex(r"[A-Z][a-z]{2}, \d{1,4} [A-Z][a-z]{2} \d{1,6} [\d:.+-]{1,12}", fullmatch=True)
)
def test_retry_after_is_never_a_crash_and_never_negative(header: str) -> None:
    wait = doiget.retry_after_s(header, 0.0)
    assert wait is None or wait >= 0


# ---- undoing compression ----


class Body:
    """What `decoded_chunks` needs of a response: headers, and the body in pieces."""

    def __init__(self, pieces: Iterable[bytes], encoding: str = "") -> None:
        self.headers = {"content-encoding": encoding} if encoding else {}
        self.pieces = list(pieces)

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def decoded(pieces: Iterable[bytes], encoding: str = "", cap: int = 2**30) -> list[bytes]:
    async def run() -> list[bytes]:
        return [chunk async for chunk in doiget.decoded_chunks(Body(pieces, encoding), "host.example", cap)]

    return anyio.run(run)


def pieces_of(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(marks)]


@settings(max_examples=60, deadline=None)
@given(
    st.binary(max_size=300)
    | st.integers(2**18 - 3, 2**18 + 600).map(bytes)
    | st.integers(0, 2000).map(lambda n: b"ab" * n),
    st.lists(st.integers(0, 2000), max_size=6),
)
@example(b"hello" * 100, [1])
@example(bytes(2**18 + 100), [])
@example(b"hello" * 100, [1, 2, 3])
def test_a_compressed_body_comes_out_whole(data: bytes, cuts: list[int]) -> None:
    """However the body is cut on its way, and whatever its size, the bytes are the sender's, in bounded pieces."""
    chunks = decoded(pieces_of(gzip.compress(data), cuts), "gzip")
    assert b"".join(chunks) == data
    assert all(len(chunk) <= 2**18 for chunk in chunks)


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=300), st.data())
def test_a_compressed_body_that_was_cut_is_never_taken_for_whole(data: bytes, more: st.DataObject) -> None:
    body = gzip.compress(data)
    kept = more.draw(st.integers(1, len(body) - 1))
    assert reason_of(lambda: decoded([body[:kept]], "gzip")) == "bad_body"


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_in_place_of_gzip_is_a_bad_body_at_worst(data: bytes) -> None:
    assert reason_of(lambda: decoded([b"\x1f" + data], "gzip")) in {"", "bad_body"}


def test_a_second_gzip_member_is_not_lost_in_silence() -> None:
    """RFC 1952 lets a body be several members: all of it, or an error, but never just the first part."""
    body = gzip.compress(b"first ") + gzip.compress(b"second")
    refused = reason_of(lambda: decoded([body], "gzip"))
    assert refused == "bad_body" or b"".join(decoded([body], "gzip")) == b"first second"


def test_a_bomb_stops_at_the_cap() -> None:
    assert reason_of(lambda: decoded([gzip.compress(bytes(50_000_000))], "gzip", cap=1_000_000)) == "too_large"


def test_wire_bytes_count_too() -> None:
    assert reason_of(lambda: decoded([b"x" * 600] * 2, cap=1000)) == "too_large"
    assert decoded([b"x" * 500] * 2, cap=1000) == [b"x" * 500] * 2
    nothing = gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * 300  # empty blocks, without end
    assert reason_of(lambda: decoded([nothing], "gzip", cap=1000)) == "too_large"


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "nonsense"])
def test_an_encoding_nobody_asked_for_is_refused(encoding: str) -> None:
    assert reason_of(lambda: decoded([b"x"], encoding)) == "bad_body"


def test_an_empty_body_is_empty_whatever_its_label() -> None:
    assert decoded([], "gzip") == []


# ---- the border to the HTTP libraries ----


def exceptions_of(module: Any) -> set[type[Exception]]:
    found = {value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, Exception)}
    assert found, module
    return found


def made(kind: type[Exception]) -> Exception:
    """An instance, whatever its constructor wants."""
    request = httpx.Request("GET", "https://host.example/")
    if kind is httpx.HTTPStatusError:
        return httpx.HTTPStatusError("oops", request=request, response=httpx.Response(500, request=request))
    try:
        return kind("some text of theirs")
    except TypeError:
        return kind()


def test_no_exception_of_httpx_is_unmapped() -> None:
    """A release that brings a new exception class fails here, not in front of a user."""
    unmapped = set()
    for kind in exceptions_of(httpx):
        try:
            error = doiget.translate_network_error(made(kind), "host.example")
        except Exception:  # noqa: BLE001 - that is the finding
            unmapped.add(kind.__name__)
            continue
        assert error.code in {doiget.Code.NETWORK_ERROR, doiget.Code.FETCH_TIMEOUT}
        assert "some text of theirs" not in f"{error.message} {error.hint}"
        assert "host.example" in error.message
    assert unmapped == set()


def test_the_catch_catches_all_of_httpx() -> None:
    """Every class of the library is a subclass of one that `_send` catches."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(doiget.Client._send)))
    names = [
        ast.unparse(node.type).strip("()").split(", ")
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and node.type
    ]
    caught = tuple(eval(name, {"httpx": httpx}) for group in names for name in group)
    assert {kind.__name__ for kind in exceptions_of(httpx) if not issubclass(kind, caught)} == set()


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
def test_what_httpcore_raises_comes_as_httpxs(proxy: str) -> None:
    """The transport renames every exception of the library below it, so one table is enough."""

    class Pool:
        async def handle_async_request(self, _request: Any) -> Any:
            raise made(self.kind)

    transport = doiget._make_transport(ssl.create_default_context(), proxy)
    transport._pool = Pool()
    request = httpx.Request("GET", "https://host.example/")
    for kind in exceptions_of(httpcore) - {httpcore.ConnectionNotAvailable}:  # the pool's own signal to itself
        Pool.kind = kind
        with pytest.raises(httpx.HTTPError):
            anyio.run(transport.handle_async_request, request)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("407 Proxy Authentication Required", "proxy_auth"),
        ("403 Forbidden", "proxy_blocked"),
        ("401 x", "proxy_blocked"),
        ("500 x", "proxy_blocked"),
        ("502 Bad Gateway", "unreachable"),
        ("503 x", "unreachable"),
        ("504 x", "unreachable"),
        ("", "proxy_blocked"),
    ],
)
def test_the_refusals_of_a_proxy_are_told_apart(text: str, reason: str) -> None:
    assert doiget.translate_network_error(httpx.ProxyError(text), "host.example").reason == reason


def test_a_bad_certificate_is_seen_through_layers_of_other_errors() -> None:
    inner = ssl.SSLCertVerificationError("self-signed")
    middle, outer = OSError("x"), httpx.ConnectError("y")
    middle.__cause__, outer.__context__ = inner, middle
    error = doiget.translate_network_error(outer, "host.example")
    assert error.reason == "tls_untrusted"
    assert "host.example" in error.message
    assert "SSL_CERT_FILE" in error.hint


def test_a_cycle_of_causes_ends() -> None:
    one, two = httpx.ConnectError("a"), OSError("b")
    one.__cause__, two.__cause__ = two, one
    assert doiget.translate_network_error(one, "host.example").reason == "unreachable"


def test_a_short_body_says_how_short() -> None:
    error = httpx.RemoteProtocolError(
        "peer closed connection without sending complete message body (received 10 bytes, expected 20)"
    )
    found = doiget.translate_network_error(error, "host.example")
    assert (found.reason, "10 of 20" in found.message) == ("bad_body", True)


# ---- how fast ----

QUICK = doiget.Pace("quick", 3, 0.4)
ONE = doiget.Pace("one", 1, 0.05, 1)


async def take_turns(pacer: Any, count: int, *paces: Any) -> list[float]:
    """Take so many turns side by side; returns when each began."""
    began: list[float] = []

    async def one() -> None:
        async with pacer.turn(*paces):
            began.append(time.time())

    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(one)
    return sorted(began)


def most_in_window(times: list[float], span: float) -> int:
    return max(sum(start <= other < start + span for other in times) for start in times)


def test_no_window_holds_more_starts_than_the_pace_allows(tmp_path: Path) -> None:
    for attempt in range(4):  # where the machine stands still for a while, late turns meet
        began = anyio.run(take_turns, doiget.Pacer(tmp_path / f"pace{attempt}"), 9, QUICK)
        if most_in_window(began, 0.3) <= 3:
            break
    assert most_in_window(began, 0.3) <= 3
    assert 0.7 <= began[-1] - began[0] < 4, "nine turns at three per window take two windows, not more"


def test_at_once_is_a_limit_of_its_own(tmp_path: Path) -> None:
    running, peak = 0, 0

    async def one(pacer: Any) -> None:
        nonlocal running, peak
        async with pacer.turn(doiget.Pace("pair", 100, 0.1, 2)):
            running += 1
            peak = max(peak, running)
            await anyio.sleep(0.02)
            running -= 1

    async def run() -> None:
        pacer = doiget.Pacer(tmp_path / "pace")
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one, pacer)

    anyio.run(run)
    assert peak == 2


def test_two_processes_share_one_pace(tmp_path: Path) -> None:
    """The pace belongs to the user, not to a process (spec §6)."""
    code = (
        "import sys, time, anyio; sys.path.insert(0, sys.argv[1]); import doiget; from pathlib import Path\n"
        "async def main():\n"
        "    pacer = doiget.Pacer(Path(sys.argv[2])); pace = doiget.Pace('shared', 2, 0.5, 1)\n"
        "    for _ in range(3):\n"
        "        async with pacer.turn(pace):\n"
        "            began = time.time(); await anyio.sleep(0.02); print(began, time.time())\n"
        "anyio.run(main)"
    )
    command = [sys.executable, "-c", code, str(ROOT), str(tmp_path / "pace")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    spans = sorted(
        tuple(map(float, line.split()))
        for process in processes
        for line in process.communicate(timeout=30)[0].splitlines()
    )
    assert len(spans) == 6
    assert most_in_window([start for start, _ in spans], 0.4) <= 2
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans)), "one at once, over both"


def test_a_block_holds_for_every_process_and_is_bounded(tmp_path: Path) -> None:
    """A host's Retry-After binds all of the user's processes, but no host can stop them for hours."""
    now = 1000.0
    first, second = (doiget.Pacer(tmp_path / "pace", clock=lambda: now) for _ in range(2))
    first.block(QUICK, 30)
    assert second._reserve(QUICK) == pytest.approx(1030)
    first.block(ONE, 10**9)
    assert second._reserve(ONE) <= 1000 + doiget.MAX_BACKOFF_S


@pytest.mark.parametrize("back_s", [300.0, 3600.0, 10 * 365 * 86400.0])
def test_a_clock_that_was_set_back_blocks_nobody_for_long(tmp_path: Path, back_s: float) -> None:
    """What stands in the future by more than any wait could be is not believed."""
    now = 10_000_000_000.0
    pacer = doiget.Pacer(tmp_path / "pace", clock=lambda: now)
    for _ in range(3):
        pacer._reserve(ONE)
    pacer.block(ONE, 60)
    now -= back_s
    assert pacer._reserve(ONE) - now <= doiget.MAX_BACKOFF_S
    now += doiget.MAX_BACKOFF_S + 1
    assert pacer._reserve(ONE) - now <= ONE.window_s, "and not again and again until the clock is where it was"


def test_a_turn_that_was_refused_takes_no_place_in_the_line(tmp_path: Path) -> None:
    """A caller without time is told at once, and whoever comes next does not wait for the turn it never took."""
    slow = doiget.Pace("slow", 1, 3.0)
    pacer = doiget.Pacer(tmp_path / "pace")

    async def hurried() -> None:
        with anyio.fail_after(0.5):
            async with pacer.turn(slow):
                pytest.fail("the turn came too early")

    async def run() -> None:
        async with pacer.turn(slow):
            pass
        for _ in range(5):
            with pytest.raises(doiget.DoigetError) as refused:
                await hurried()
            assert refused.value.reason == "source_limit"
            assert refused.value.retry_after_s <= 3.0
        assert pacer._reserve(slow) - pacer.clock() <= 3.0

    anyio.run(run)


def test_a_cancelled_waiter_frees_its_place(tmp_path: Path) -> None:
    """Neither the place (`at_once`) nor the start that was put down for it stays taken."""
    pace = doiget.Pace("cancelled", 1, 1.0, 1)
    pacer = doiget.Pacer(tmp_path / "pace")

    async def wait_for_turn() -> None:
        async with pacer.turn(pace):
            pytest.fail("cancelled before its turn")

    async def run() -> float:
        async with pacer.turn(pace):
            pass
        for _ in range(3):
            async with anyio.create_task_group() as group:
                group.start_soon(wait_for_turn)
                await anyio.sleep(0.05)
                group.cancel_scope.cancel()
        began = time.monotonic()
        with anyio.fail_after(5):
            async with pacer.turn(pace):
                return time.monotonic() - began

    assert anyio.run(run) <= 1.2
    assert [path.name for path in (tmp_path / "pace").iterdir() if path.suffix == ".lock"] == []


def test_a_folder_that_cannot_be_written_keeps_the_pace_of_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    pacer = doiget.Pacer(tmp_path / "file" / "pace")
    pace = doiget.Pace("nowhere", 2, 0.3, 2)
    began = anyio.run(take_turns, pacer, 5, pace)
    assert most_in_window(began, 0.2) <= 2
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'{"starts": "x"}',
        b'{"starts": [null]}',
        b'{"starts": [1e999]}',
        b"\xff\x00",
        b'{"starts": [], "not_before": NaN}',
    ],
)
def test_a_damaged_state_is_begun_anew(tmp_path: Path, damage: bytes) -> None:
    pacer = doiget.Pacer(tmp_path / "pace")
    (tmp_path / "pace").mkdir()
    (tmp_path / "pace" / "quick.json").write_bytes(damage)
    assert pacer._reserve(QUICK) - pacer.clock() < 3
    assert json.loads((tmp_path / "pace" / "quick.json").read_bytes())["starts"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_a_pipe_in_the_place_of_the_state_is_not_waited_for(tmp_path: Path) -> None:
    pacer = doiget.Pacer(tmp_path / "pace")
    (tmp_path / "pace").mkdir()
    os.mkfifo(tmp_path / "pace" / "quick.json")
    assert pacer._reserve(QUICK) - pacer.clock() < 3
    assert json.loads((tmp_path / "pace" / "quick.json").read_bytes())["starts"]


# ---- the direct connection ----


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names resolve to: a stand-in for DNS, at the call of the standard library that asks it."""
    names: dict[str, list[str]] = {}

    def getaddrinfo(host: str | bytes, port: int, *_: Any, **__: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in names:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [
            (socket.AF_INET6, 1, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, 1, 6, "", (address, port))
            for address in names[name]
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Addresses httpcore was told to connect to, in order, and those (`dead`) that refuse."""
    book: dict[str, Any] = {"to": [], "dead": set()}

    async def connect_tcp(_self: Any, host: str, *_args: Any, **_how: Any) -> Any:
        book["to"].append(host)
        if host in book["dead"]:
            raise httpcore.ConnectError("refused")
        return httpcore.AsyncMockStream([])

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect_tcp)
    return book


def connect(host: str) -> None:
    anyio.run(doiget._direct_backend().connect_tcp, host, 443, 5.0)


def test_the_address_that_was_checked_is_the_one_connected_to(
    lookups: dict[str, list[str]], dialled: dict[str, Any]
) -> None:
    """DNS is asked once: a second, different answer could otherwise lead inside."""
    lookups["api.crossref.org"] = ["93.184.215.14"]
    connect("api.crossref.org")
    assert dialled["to"] == ["93.184.215.14"]


@pytest.mark.parametrize(
    "answers",
    [["127.0.0.1"], ["10.0.0.1", "192.168.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["fe80::1%2"], ["169.254.169.254"]],
)
def test_names_that_lead_inside_are_refused(
    lookups: dict[str, list[str]], dialled: dict[str, Any], answers: list[str]
) -> None:
    lookups["api.crossref.org"] = answers
    with pytest.raises(doiget.DoigetError) as refused:
        connect("api.crossref.org")
    assert refused.value.reason == "private_address"
    assert dialled["to"] == []


def test_private_answers_among_public_ones_are_passed_over(
    lookups: dict[str, list[str]], dialled: dict[str, Any]
) -> None:
    lookups["api.crossref.org"] = ["10.0.0.1", "93.184.215.14"]
    connect("api.crossref.org")
    assert dialled["to"] == ["93.184.215.14"]


def test_a_dead_address_gives_way_to_the_next(lookups: dict[str, list[str]], dialled: dict[str, Any]) -> None:
    """A host with a broken IPv6 way is still reached over IPv4, however many of either it has."""
    lookups["api.crossref.org"] = ["2606:4700::1", "2606:4700::2", "2606:4700::3", "93.184.215.14"]
    dialled["dead"] = {"2606:4700::1", "2606:4700::2", "2606:4700::3"}
    connect("api.crossref.org")
    assert dialled["to"][-1] == "93.184.215.14"


def test_all_addresses_dead_is_unreachable(lookups: dict[str, list[str]], dialled: dict[str, Any]) -> None:
    lookups["api.crossref.org"] = ["93.184.215.14"]
    dialled["dead"] = {"93.184.215.14"}
    with pytest.raises(httpcore.ConnectError):
        connect("api.crossref.org")


@pytest.mark.parametrize("host", ["unknown.example.org", "a" * 70 + ".example.org", "a..example.org"])
def test_a_name_that_cannot_be_looked_up_is_unreachable(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a name that DNS could not even be asked for: the real lookup refuses its labels before any network."""
    real = socket.getaddrinfo

    def getaddrinfo(name: str | bytes, *args: Any, **how: Any) -> Any:
        if name in {"unknown.example.org", b"unknown.example.org"}:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return real(name, *args, **how)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(doiget.DoigetError) as failed:
        connect(host)
    assert failed.value.code is doiget.Code.NETWORK_ERROR


def test_a_dns_that_never_answers_does_not_outlast_the_deadline(run: Runner) -> None:
    """A thread that waits for the system's resolver cannot be stopped, so the way out must not wait for it."""
    code = (
        "import socket, sys, time; sys.path.insert(0, sys.argv[1]); import doiget\n"
        "socket.getaddrinfo = lambda *args, **how: time.sleep(8)\n"
        f"sys.exit(doiget.main(['fetch', '{DOI}', '--timeout-s', '1', '--json']))"
    )
    began = time.monotonic()
    command = [sys.executable, "-c", code, str(ROOT)]
    done = subprocess.run(command, env=run.env({"HTTPS_PROXY": None}), capture_output=True, timeout=30, check=False)
    assert time.monotonic() - began < 7
    assert done.returncode == 9, done
    assert json.loads(done.stdout)["error"]["reason"] == "deadline"


def test_a_whole_request_goes_to_the_checked_address(
    lookups: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Over real sockets and TLS: the name is checked in the certificate although an address is dialled."""
    real = httpcore.AnyIOBackend.connect_tcp

    async def to_loopback(self: Any, host: str, port: int, *args: Any, **how: Any) -> Any:
        assert (host, port) == ("93.184.215.14", 443)
        return await real(self, "127.0.0.1", server.port, *args, **how)

    lookups["api.crossref.org"] = ["93.184.215.14"]
    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", to_loopback)
    with TlsServer("api.crossref.org") as server, TlsServer("elsewhere.example") as other:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.ca_file))
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        assert anyio.run(ask_directly, tmp_path) == 200
        server.port = other.port
        with pytest.raises(doiget.DoigetError) as refused:
            anyio.run(ask_directly, tmp_path)
        assert refused.value.reason == "tls_untrusted"


async def ask_directly(folder: Path) -> int:
    client = doiget.Client(doiget.load_config(), doiget.Pacer(folder / "pace"))
    try:
        reply = await client.ask("crossref", "/works/10.1/x")
    finally:
        await client.aclose()
    status: int = reply.status
    return status


class TlsServer:
    """A host that answers every request with an empty JSON object, behind the throwaway CA."""

    def __init__(self, host: str) -> None:
        import threading

        from fake_internet import authority

        self._net = FakeInternet()
        self.ca_file = self._net.ca_file
        self._context = authority("good").context(host)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            try:
                with self._context.wrap_socket(plain, server_side=True) as sock:
                    sock.recv(65536)
                    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            except OSError:
                plain.close()

    def __enter__(self) -> TlsServer:  # noqa: PYI034 - typing.Self is newer than Python 3.10
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        import contextlib

        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)
        self._net.close()


# ---- certificates, end to end ----


def test_without_a_word_about_the_ca_the_certificate_is_not_trusted(
    run: Runner, world: World, net: FakeInternet
) -> None:
    """Case PX-01, third part: the host and the variables are named, nothing is asked, verification stays on."""
    world.crossref_work(DOI)
    error = resolve_error(run, env=dict.fromkeys(CA_VARIABLES))
    assert (error["code"], error["reason"], error["disposition"]) == ("NETWORK_ERROR", "tls_untrusted", "configure")
    assert "certificate verify failed for api.crossref.org" in error["message"]
    assert all(name in error["hint"] for name in CA_VARIABLES)
    assert net.requests() == []


@pytest.mark.parametrize("flaw", ["untrusted", "expired", "wrong_host"])
def test_flawed_certificates_are_refused_and_not_retried(
    run: Runner, world: World, net: FakeInternet, flaw: str
) -> None:
    world.crossref_work(DOI)
    for host in ("api.crossref.org", "api.openalex.org"):
        net.distrust(host, flaw)
    error = resolve_error(run)
    assert error["reason"] == "tls_untrusted"
    assert net.requests() == []
    assert len(net.connects(host="api.crossref.org")) == 1


@pytest.mark.parametrize("variable", CA_VARIABLES)
def test_either_variable_names_the_ca_for_metadata_and_pdf(
    run: Runner, world: World, net: FakeInternet, variable: str
) -> None:
    """Case PX-01, first and second part."""
    world.paper(DOI, pdf_url=COPY)
    env: dict[str, str | None] = {**dict.fromkeys(CA_VARIABLES), variable: str(net.ca_file)}
    assert run("fetch", DOI, "--json", env=env).json()["ok"] is True


def test_whose_ca_file_counts(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    """config.toml before SSL_CERT_FILE before REQUESTS_CA_BUNDLE: a missing file in a weaker place does no harm."""
    world.crossref_work(DOI)
    missing = str(home.root / "missing.pem")
    assert run("resolve", DOI, "--no-cache", env={"REQUESTS_CA_BUNDLE": missing}).rc == 0
    error = resolve_error(run, env={"SSL_CERT_FILE": missing, "REQUESTS_CA_BUNDLE": str(net.ca_file)})
    assert "SSL_CERT_FILE" in error["message"]
    assert missing in error["message"]
    home.write_config(f'[network]\nca_file = "{net.ca_file}"\n')
    assert run("resolve", DOI, "--no-cache", env={"SSL_CERT_FILE": missing}).rc == 0


@pytest.mark.parametrize("content", [None, b"", b"not a certificate\n", b"\xff\x00\xfe"])
def test_a_ca_file_that_is_none_is_named(
    run: Runner, world: World, net: FakeInternet, home: Home, content: bytes | None
) -> None:
    """Missing, empty or foreign: the file and the setting that names it, exit 8, and doctor agrees."""
    world.crossref_work(DOI)
    path = home.root / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    error = resolve_error(run, env={"SSL_CERT_FILE": str(path)})
    assert error["reason"] == "tls_untrusted"
    assert str(path) in error["message"]
    assert "SSL_CERT_FILE" in error["message"]
    assert net.connects() == []
    result = run("doctor", "--offline", "--json", env={"SSL_CERT_FILE": str(path)})
    assert result.rc == 10
    assert any(check["status"] == "fault" and str(path) in check["detail"] for check in result.json()["checks"])


def test_the_ca_of_an_inspecting_proxy_may_be_sloppy(run: Runner) -> None:
    """No key usage, no key identifiers: such CAs are in use, and strict mode would shut their users out (spec §10)."""
    with FakeInternet(ca="sloppy") as net:
        World(net).paper(DOI, pdf_url=COPY)
        assert run("fetch", DOI, "--json", env=dict(net.env())).json()["ok"] is True
        for host in ("api.crossref.org", "api.openalex.org"):
            net.distrust(host, "untrusted")
        assert resolve_error(run, env=dict(net.env()))["reason"] == "tls_untrusted", "sloppy is not blind"


def test_session_keys_are_never_written(run: Runner, world: World, home: Home) -> None:
    """SSLKEYLOGFILE would let whoever set it read the traffic."""
    world.paper(DOI, pdf_url=COPY)
    keys = home.root / "keys.log"
    for ca in ({}, dict.fromkeys(CA_VARIABLES)):
        run("fetch", DOI, env={"SSLKEYLOGFILE": str(keys), **ca})
    assert not keys.exists()


# ---- proxies, end to end ----


def test_a_proxy_password_gets_in_when_right_and_is_named_when_missing(
    run: Runner, world: World, net: FakeInternet
) -> None:
    """Odd characters in it are percent-encoded in the variable, as everywhere."""
    world.crossref_work(DOI)
    net.require_auth("me", "s3cret/@:#%41")  # decoded once: the end of it is no A
    right = net.proxy_url.replace("http://", "http://me:s3cret%2F%40%3A%23%2541@")
    assert run("resolve", DOI, "--no-cache", env={"HTTPS_PROXY": right}).rc == 0
    net.clear()
    for proxy in (net.proxy_url, net.proxy_url.replace("http://", "http://me:wr0ng@")):
        error = resolve_error(run, env={"HTTPS_PROXY": proxy})
        assert (error["reason"], error["disposition"]) == ("proxy_auth", "configure")
        assert "407" in error["message"]
        assert "wr0ng" not in json.dumps(error)
    assert len(net.connects(host="api.crossref.org")) == 2, "a wrong password is not tried again: accounts get locked"


def test_the_user_of_a_proxy_is_never_shown_to_a_host(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.require_auth("me", "s3cret")
    assert run("fetch", DOI, env={"HTTPS_PROXY": net.proxy_url.replace("http://", "http://me:s3cret@")}).rc == 0
    assert not any("authorization" in name for request in net.requests() for name in request.headers)


def test_a_proxy_that_wants_ntlm_is_answered_with_a_way_round(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI)
    net.require_auth(scheme="NTLM")
    error = resolve_error(run)
    assert error["reason"] == "proxy_auth"
    assert "NTLM" in error["hint"]
    assert "HTTPS_PROXY" in error["hint"]


def test_a_host_the_proxy_forbids_is_no_miss(run: Runner, world: World, net: FakeInternet) -> None:
    """403 from the proxy for one host: its policy, which another copy may get round and a retry will not."""
    world.paper(DOI, pdf_url=COPY)
    net.refuse("journals.plos.org")
    answer = run("fetch", DOI, "--json").json()
    assert (answer["error"]["code"], answer["error"]["reason"]) == ("NETWORK_ERROR", "proxy_blocked")
    assert "journals.plos.org" in answer["error"]["message"]
    assert "capabilities --hosts" in answer["error"]["hint"]
    assert len(net.connects(host="journals.plos.org")) == 1


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://127.0.0.1:1080",
        "socks5h://u:s3cret@127.0.0.1:1080",
        "socks4://127.0.0.1:1",
        "http://wpad.example/proxy.pac",
        "pac+https://wpad.example/x",
    ],
)
def test_other_kinds_of_proxy_are_refused_with_a_way_round(run: Runner, net: FakeInternet, proxy: str) -> None:
    result = run("resolve", DOI, env={"HTTPS_PROXY": proxy})
    assert result.rc == 8
    first, *rest = result.err.splitlines()
    assert "HTTPS_PROXY" in first
    assert "HTTP proxy" in " ".join([first, *rest])
    assert len(rest) <= 1, "one line, and its next step"
    assert "s3cret" not in result.out + result.err
    assert net.connects() == []


@pytest.mark.parametrize(
    "proxy",
    [
        "http://",
        "http://127.0.0.1:notaport",
        "http://127.0.0.1:99999",
        "http://[::1",
        "http://me:s3/cret@127.0.0.1:1",
        "http://me:s3#cret@127.0.0.1:1",
        ":::",
    ],
)
def test_a_malformed_proxy_is_a_setting_to_mend(run: Runner, net: FakeInternet, proxy: str) -> None:
    """Not a bug of ours, not a traceback, and no piece of the password."""
    error = resolve_error(run, env={"HTTPS_PROXY": proxy})
    assert (error["code"], error["disposition"]) == ("NETWORK_ERROR", "configure"), error
    assert "HTTPS_PROXY" in error["message"]
    assert "cret" not in json.dumps(error)
    assert net.connects() == []


def test_hosts_of_no_proxy_never_reach_the_proxy(run: Runner, world: World, net: FakeInternet) -> None:
    """Case PX-02: a network in NO_PROXY breaks nothing; names and suffixes go direct."""
    url = "https://x.example.edu/1.pdf"
    world.paper(DOI, pdf_url=url)
    env = {"NO_PROXY": "10.0.0.0/8,localhost,.example.edu", "RES_OPTIONS": "timeout:1 attempts:1"}
    answer = run("fetch", DOI, "--json", "--timeout-s", "20", env=env).json()
    assert answer["ok"] is False
    tried = [attempt["outcome"] for attempt in answer["error"]["attempts"] if attempt.get("host") == "x.example.edu"]
    assert tried
    assert set(tried) <= {"unreachable", "private_address", "deadline"}
    assert "x.example.edu" not in net.connect_hosts()
    assert "api.crossref.org" in net.connect_hosts()


def test_the_config_file_is_the_better_word_on_the_proxy(
    run: Runner, world: World, net: FakeInternet, home: Home
) -> None:
    """HTTPS_PROXY serves every program; what config.toml says to doiget alone comes first (spec §10)."""
    world.crossref_work(DOI)
    home.write_config(f'[network]\nproxy = "{net.proxy_url}"\n')
    assert run("resolve", DOI, "--no-cache", env={"HTTPS_PROXY": net.dead_proxy_url}).rc == 0
    home.write_config(f'[network]\nproxy = "{net.dead_proxy_url}"\n')
    assert resolve_error(run)["reason"] == "unreachable"


@pytest.mark.parametrize("form", ["{host_port}", "HTTP://{host_port}/", "http://{host_port}"])
def test_ways_to_write_a_proxy(run: Runner, world: World, net: FakeInternet, form: str) -> None:
    world.crossref_work(DOI)
    proxy = form.format(host_port=net.proxy_url.removeprefix("http://"))
    assert run("resolve", DOI, "--no-cache", env={"HTTPS_PROXY": None, "https_proxy": proxy}).rc == 0


def test_a_block_page_in_place_of_an_api_is_not_a_miss(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI)
    for host in ("api.crossref.org", "api.openalex.org", "doi.org"):
        net.route(host, None, html("<html><title>Web filter</title></html>"))
    error = resolve_error(run)
    assert (error["code"], error["reason"], error["disposition"]) == ("NETWORK_ERROR", "intercepted", "configure")


# ---- hosts that say no ----


def test_an_api_that_answered_403_is_left_alone_for_the_run(run: Runner, world: World, net: FakeInternet) -> None:
    """403 is a block by hand: asking on would be an attack (apis.md §10)."""
    for number in (1, 2, 3):
        world.crossref_work(f"10.1000/{number}")
        world.openalex_work(f"10.1000/{number}")
    net.route("api.crossref.org", None, Reply(403, "blocked"))
    net.route("api.openalex.org", None, Reply(403, "blocked"))
    run("batch", "10.1000/1", "10.1000/2", "10.1000/3", "--json", timeout=60)
    assert len(net.requests(host="api.crossref.org")) == 1
    assert len(net.requests(host="api.openalex.org")) == 1


def test_a_copy_that_answered_403_is_not_asked_for_again(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI)
    world.openalex_work(DOI, Location(COPY, COPY), Location(COPY, None, "acceptedVersion"))
    net.url(COPY, Reply(403, "no"))
    assert run("fetch", DOI, "--json").json()["error"]["reason"] == "blocked_by_host"
    assert len(net.requests(host="journals.plos.org")) == 1


def test_every_request_is_plain_and_says_who_asks(run: Runner, world: World, net: FakeInternet) -> None:
    """Own name, no cookies, no secret or address to a host that does not ask for it (spec §5)."""
    first, cookie = "https://journals.plos.org/fake/first.pdf", {"Set-Cookie": "a=b"}
    world.paper(DOI, pdf_url=first)
    net.url(first, Reply(302, headers={"Location": COPY, **cookie}))
    world.pdf(COPY)
    net.route(
        "api.crossref.org",
        None,
        lambda r: Reply(200, world.crossref.answer(r).body, headers=cookie, content_type="application/json"),
    )
    env = {
        "DOIGET_EMAIL": "me@uni.example.net",
        "DOIGET_KEY_OPENALEX": "openalex-key",
        "DOIGET_KEY_ELSEVIER": "tdm-key",
    }
    run("fetch", DOI, env=env)
    seen = [(r.host, f"{r.target} {r.headers}") for r in net.requests()]
    assert [host for host, _ in seen].count("journals.plos.org") == 2
    for request in net.requests():
        assert request.method == "GET"
        assert request.headers["user-agent"].startswith("doiget/")
        assert not {"cookie", "referer"} & set(request.headers)
    assert not [host for host, text in seen if "tdm-key" in text]
    assert {host for host, text in seen if "openalex-key" in text} <= {"api.openalex.org"}
    welcome = {
        "api.crossref.org",
        "api.unpaywall.org",
        "api.openalex.org",
        "eutils.ncbi.nlm.nih.gov",
        "pmc.ncbi.nlm.nih.gov",
    }
    assert {host for host, text in seen if "uni.example.net" in text} <= welcome


def test_offline_is_the_gates_own_word(tmp_path: Path) -> None:
    """Whoever forgets to ask whether there is a network is stopped here."""

    async def ask() -> None:
        client = doiget.Client(doiget.load_config({"offline": True}), doiget.NoPace(tmp_path / "pace"), unreachable)
        await client.ask("crossref", "/works")

    unreachable = httpx.MockTransport(lambda _: pytest.fail("a request was sent"))
    with pytest.raises(doiget.DoigetError, match="offline"):
        anyio.run(ask)


@pytest.mark.parametrize("target", ["https://xn--/x", "javascript:alert(1)", "https://.plos.org/"])
def test_a_redirect_is_read_by_the_gate_alone(tmp_path: Path, target: str) -> None:
    """Not by the library before it, which takes it for a broken answer or stumbles."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(302, headers={"location": target}, stream=httpx.ByteStream(b""))

    async def ask() -> None:
        pacer = doiget.NoPace(tmp_path / "pace")
        client = doiget.Client(doiget.load_config({"offline": False}), pacer, httpx.MockTransport(answer))
        await client.load_page("https://journals.plos.org/x", frozenset())

    with pytest.raises(doiget.DoigetError) as refused:
        anyio.run(ask)
    assert refused.value.code is doiget.Code.CAPABILITY_DENIED
    assert asked == ["journals.plos.org"]


def test_a_key_stays_with_its_source(tmp_path: Path) -> None:
    """Where a source may send us on to another host, the key does not come along."""
    asked: dict[str, str | None] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        asked[request.url.host] = request.headers.get("authorization")
        away = {"location": "https://api.datacite.org/dois/x"} if request.url.host == "api.openalex.org" else {}
        return httpx.Response(302 if away else 200, headers=away, stream=httpx.ByteStream(b"{}"))

    async def ask() -> None:
        pacer = doiget.NoPace(tmp_path / "pace")
        client = doiget.Client(doiget.load_config({"offline": False}), pacer, httpx.MockTransport(answer))
        key = {"Authorization": "Bearer a-key"}
        await client.ask("openalex", "/works", headers=key, follow=("api.datacite.org",))
        await client.aclose()

    anyio.run(ask)
    assert asked == {"api.openalex.org": "Bearer a-key", "api.datacite.org": None}


def test_many_hosts_one_pace(run: Runner, world: World, net: FakeInternet) -> None:
    """Five requests a second in all, five downloads at once, whatever the number of hosts (spec §6)."""
    refs = [f"10.1000/{number}" for number in range(8)]
    for number, ref in enumerate(refs):
        world.paper(ref, pdf_url=f"https://host{number}.plos.org/{number}.pdf", body=pdf_bytes(f"paper {number}"))
    answer = run("batch", *refs, "--json").json()
    assert answer["counts"]["fetched"] == len(refs)
    asked = net.requests()
    span = max(request.t_start for request in asked) - min(request.t_start for request in asked)
    assert span >= (len(asked) - doiget.REQUESTS_PER_S) / doiget.REQUESTS_PER_S - 0.1
    assert net.max_in_window(0.5) <= doiget.REQUESTS_PER_S
    assert net.max_at_once() <= 5
    assert os.listdir(run.home.cache / "pace")  # noqa: PTH208
