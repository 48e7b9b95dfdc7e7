"""A small internet for tests: an HTTPS CONNECT proxy on loopback, a throwaway CA, routes and a wire log.

The program under test runs unmodified with `HTTPS_PROXY=net.proxy_url` and `SSL_CERT_FILE=net.ca_file`. Every CONNECT
and every request lands in the wire log, refused ones too, so a test can assert what was asked and what never was.

    with FakeInternet() as net:
        net.route("api.example.org", "/works/1", {"title": "One"})
        net.route("api.example.org", "/flaky", seq(500, Reply(429, headers={"Retry-After": "1"}), {"ok": True}))
        ...
        assert net.hosts() == {"api.example.org"}
        assert net.max_at_once() == 1
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import functools
import gzip
import itertools
import json
import math
import re
import selectors
import shutil
import socket
import ssl
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import trustme

BLOCK = 65536
FOREVER_S = 86400.0
REASONS = {200: "OK", 301: "Moved Permanently", 302: "Found", 400: "Bad Request", 404: "Not Found", 407: "Proxy Auth"}

# ############################################################################
# Replies
# ############################################################################


@dataclass
class Reply:
    """What a route answers, and how badly the answer travels."""

    status: int = 200
    body: bytes | str | Any = b""  # bytes, text, or anything JSON can hold
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str | None = None
    stream: Callable[[], Iterable[bytes]] | Iterable[bytes] | None = None  # instead of `body`; a callable is reusable
    length: int | None = None  # Content-Length to claim; None: the true one where it is known
    chunked: bool = False
    no_length: bool = False  # neither length nor chunks: the body ends where the connection does
    gzip: bool = False
    delay_s: float = 0.0  # before the first byte; math.inf: never answers
    stall_after: int | None = None  # after this many body bytes ...
    stall_s: float = FOREVER_S  # ... nothing comes for so long
    hold: threading.Event | None = None  # wait for the test at the stall point (or before the head) instead
    cut_after: int | None = None  # close after this many body bytes, whatever was promised
    reset: bool = False  # RST instead of an answer, or at `cut_after`
    bytes_per_s: float | None = None  # drip
    raw: bytes | None = None  # sent as it is, then closed
    close: bool = False  # Connection: close

    def payload(self) -> bytes:
        """The body as bytes, before any gzip."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    def media_type(self) -> str:
        if self.content_type:
            return self.content_type
        if self.stream is None and not isinstance(self.body, (bytes, str)):
            return "application/json"
        text = self.stream is None and isinstance(self.body, str)
        return "text/plain; charset=utf-8" if text else "application/octet-stream"


Answer = Any  # a Reply, bytes, text, a status, a dict or list (JSON), or a callable from Request to one of these
PathRule = Union[str, "re.Pattern[str]", Callable[["Request"], bool], None]


def as_reply(answer: Answer, request: Request) -> Reply:
    """Turn what a test wrote down into a Reply: a number is a status, a dict or list is JSON, a callable is asked."""
    while callable(answer):
        answer = answer(request)
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, int):
        return Reply(answer, f"status {answer}")
    return Reply(body=answer)


def seq(*answers: Answer) -> Callable[[Request], Answer]:
    """Answer with each in turn; the last one stays."""
    lock, turn = threading.Lock(), iter(answers[:-1])

    def take(_request: Request) -> Answer:
        with lock:
            return next(turn, answers[-1])

    return take


def redirect(url: str, status: int = 302, **more: Any) -> Reply:
    return Reply(status, headers={"Location": url}, **more)


def html(text: str, status: int = 200, **more: Any) -> Reply:
    return Reply(status, text, content_type="text/html; charset=utf-8", **more)


def pdf(body: bytes, **more: Any) -> Reply:
    return Reply(body=body, content_type="application/pdf", **more)


def never() -> Reply:
    """Take the request and say nothing."""
    return Reply(delay_s=math.inf)


def endless(block: bytes = b"x" * BLOCK, first: bytes = b"", **more: Any) -> Reply:
    """A chunked body without an end."""

    def run() -> Iterator[bytes]:
        yield first or block
        while True:
            yield block

    return Reply(stream=run, chunked=True, **more)


def gzip_bomb(size: int, first: bytes = b"", **more: Any) -> Reply:
    """`size` decoded bytes of zeros that are about a thousandth of that on the wire."""

    def run() -> Iterator[bytes]:
        yield first
        for start in range(0, size, BLOCK):
            yield bytes(min(BLOCK, size - start))

    return Reply(stream=run, gzip=True, **more)


# ############################################################################
# The wire log
# ############################################################################


@dataclass
class Connect:
    """One connection to the proxy: what it asked for, and what became of it."""

    id: int
    t_start: float
    method: str = ""
    host: str = ""
    port: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 0  # the proxy's answer; 0: none
    allowed: bool = False
    tls: bool = False
    tls_error: str = ""
    t_end: float | None = None


@dataclass
class Request:
    """One request inside a tunnel, and what was sent back. Times are `time.monotonic()`."""

    t_start: float
    host: str
    port: int
    method: str
    target: str  # path and query exactly as they were sent
    headers: dict[str, str]  # names in lower case
    body: bytes
    connection: int
    status: int = 0
    bytes_sent: int = 0  # body bytes on the wire, without chunk marks
    aborted: bool = False  # the client went away before the answer was complete
    t_last: float = 0.0  # just before the latest piece of the answer went out
    t_end: float | None = None  # set when the answer is over: `t_last`, or when the client was found gone

    @property
    def path(self) -> str:
        """The path as sent, percent-encoding and all, without the query."""
        return self.target.partition("?")[0]

    @property
    def decoded_path(self) -> str:
        return unquote(self.path)

    @property
    def params(self) -> list[tuple[str, str]]:
        return parse_qsl(self.target.partition("?")[2], keep_blank_values=True)

    @property
    def query(self) -> dict[str, str]:
        return dict(self.params)

    @property
    def form(self) -> dict[str, str]:
        """The fields of a url-encoded POST body."""
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    @property
    def url(self) -> str:
        return f"https://{self.host}{self.target}"

    def json(self) -> Any:
        return json.loads(self.body)


def most_overlapping(spans: Iterable[tuple[float, float]]) -> int:
    """The largest number of spans that share a moment; one that ends as another begins does not count."""
    edges = sorted(edge for start, end in spans for edge in ((start, 1), (end, -1)))
    level = peak = 0
    for _, step in edges:
        level += step
        peak = max(peak, level)
    return peak


class WireLog:
    """Everything that reached the proxy, in order of arrival, safe to read while it grows."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._connects: list[Connect] = []
        self._requests: list[Request] = []

    def add_connect(self, connect: Connect) -> None:
        with self._changed:
            self._connects.append(connect)
            self._changed.notify_all()

    def add_request(self, request: Request) -> None:
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()

    def finish(self, item: Connect | Request, *, aborted: bool = False) -> None:
        with self._changed:
            item.t_end = time.monotonic()
            if isinstance(item, Request):
                item.aborted = aborted
                item.t_end = item.t_end if aborted else item.t_last or item.t_end
            self._changed.notify_all()

    def clear(self) -> None:
        with self._changed:
            self._connects.clear()
            self._requests.clear()

    def connects(self, host: str | None = None) -> list[Connect]:
        """Connections to the proxy, refused ones too."""
        with self._changed:
            return [c for c in self._connects if host is None or c.host == host]

    def requests(
        self, host: str | None = None, path: str | re.Pattern[str] | None = None, method: str | None = None
    ) -> list[Request]:
        """Requests to `host` whose target holds `path` (text, raw or decoded, or a pattern)."""
        with self._changed:
            found = list(self._requests)
        return [r for r in found if host in (None, r.host) and method in (None, r.method) and _holds(r.target, path)]

    def hosts(self) -> set[str]:
        """Hosts that got a request. For hosts that were merely tried see `connect_hosts`."""
        return {r.host for r in self.requests()}

    def connect_hosts(self) -> set[str]:
        return {c.host for c in self.connects()}

    def max_at_once(self, host: str | None = None, path: str | re.Pattern[str] | None = None) -> int:
        """The most requests that were in flight together."""
        now = time.monotonic()
        return most_overlapping((r.t_start, r.t_end or now) for r in self.requests(host, path))

    def max_connections_at_once(self, host: str | None = None) -> int:
        now = time.monotonic()
        return most_overlapping((c.t_start, c.t_end or now) for c in self.connects(host))

    def gaps(self, host: str | None = None, path: str | re.Pattern[str] | None = None) -> list[float]:
        """Seconds from the start of each request to the start of the next."""
        starts = [r.t_start for r in self.requests(host, path)]
        return [later - earlier for earlier, later in itertools.pairwise(starts)]

    def max_in_window(self, seconds: float = 1.0, host: str | None = None) -> int:
        """The most requests that began within any span of so many seconds."""
        starts = [r.t_start for r in self.requests(host)]
        return max((sum(t <= s < t + seconds for s in starts) for t in starts), default=0)

    def wait_for(
        self,
        host: str | None = None,
        path: str | re.Pattern[str] | None = None,
        count: int = 1,
        timeout: float = 20.0,
        *,
        ended: bool = False,
        sent: int = 0,
    ) -> list[Request]:
        """Wait until `count` requests have begun (or ended, or been sent so many body bytes); fail after `timeout`."""
        deadline = time.monotonic() + timeout
        while True:
            found = [r for r in self.requests(host, path) if r.bytes_sent >= sent and (r.t_end or not ended)]
            if len(found) >= count:
                return found
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"waited {timeout} s for {count} request(s) to {host} {path}; log:\n{self.text()}")
            with self._changed:
                self._changed.wait(min(left, 0.02))

    def text(self) -> str:
        """The log as lines, for failure messages."""
        lines = [(c.t_start, f"CONNECT {c.host}:{c.port} -> {c.status} {c.tls_error}") for c in self.connects()]
        lines += [
            (r.t_start, f"  {r.method} {r.url} -> {r.status} {r.bytes_sent} B{' aborted' * r.aborted}")
            for r in self.requests()
        ]
        return "\n".join(text for _, text in sorted(lines, key=lambda line: line[0]))


def _holds(target: str, path: str | re.Pattern[str] | None) -> bool:
    if path is None:
        return True
    if isinstance(path, str):
        return path in target or path in unquote(target)
    return bool(path.search(target))


# ############################################################################
# Certificates
# ############################################################################


class Authority:
    """A throwaway CA that issues and keeps one certificate per host."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self._lock = threading.Lock()
        self._contexts: dict[tuple[str, str], ssl.SSLContext] = {}

    @property
    def pem(self) -> bytes:
        return self._ca.cert_pem.bytes()

    def context(self, host: str, flaw: str = "") -> ssl.SSLContext:
        """A server context for `host`; flaws: expired, wrong_host."""
        with self._lock:
            key = (host, flaw)
            if key not in self._contexts:
                self._contexts[key] = self._new_context(host, flaw)
            return self._contexts[key]

    def _new_context(self, host: str, flaw: str) -> ssl.SSLContext:
        past = dt.datetime(2001, 1, 1, tzinfo=dt.timezone.utc) if flaw == "expired" else None
        name = "somebody-else.example" if flaw == "wrong_host" else host
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(name, not_before=past, not_after=past).configure_cert(context)
        return context


class SloppyAuthority(Authority):
    """A CA as TLS-inspecting boxes make them: no key usage, no key identifiers, so X509_STRICT refuses it."""

    def __init__(self) -> None:
        super().__init__()
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _common_name("Inspecting Proxy CA")
        self._cert = self._sign(self._name, self._key.public_key(), None)

    @property
    def pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding

        pem: bytes = self._cert.public_bytes(Encoding.PEM)
        return pem

    def _sign(self, subject: Any, public_key: Any, host: str | None) -> Any:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        now = dt.datetime.now(dt.timezone.utc)
        day = dt.timedelta(days=1)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + 30 * day)
        )
        if host is None:
            builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=False)
        else:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _new_context(self, host: str, flaw: str) -> ssl.SSLContext:  # noqa: ARG002 - sloppiness is flaw enough
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        cert = self._sign(_common_name(host[:60]), key.public_key(), host)
        pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with trustme.Blob(pem + cert.public_bytes(form.Encoding.PEM)).tempfile() as path:
            context.load_cert_chain(path)
        return context


def _common_name(text: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


@functools.cache
def authority(kind: str = "good") -> Authority:
    """One CA of each kind per process: good, sloppy, untrusted."""
    return SloppyAuthority() if kind == "sloppy" else Authority()


# ############################################################################
# The proxy
# ############################################################################


class PeerGone(Exception):  # noqa: N818 - an event, not an error
    """The client closed, or the test is over."""


class FakeInternet(WireLog):
    """The proxy, its routes and its moods. Use as a context manager, or call `close`."""

    def __init__(self, ca: str = "good") -> None:
        super().__init__()
        self.unknown_host: int | str = 502  # CONNECT to a host without routes: a status, "silent" or "reset"
        self.errors: list[BaseException] = []  # raised by a test's own callables
        self.trouble: Callable[[Request, Reply], Reply] | None = None  # what becomes of each reply on its way
        self._authority = authority(ca)
        self._routes: list[tuple[str, PathRule, str | None, Answer]] = []
        self._host_moods: dict[str, Any] = {}
        self._flaws: dict[str, str] = {}
        self._credentials: tuple[str, str] | None = None
        self._auth_scheme = ""
        self._silent = self._closing = False
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="fake-internet-"))
        self.ca_file = self._folder / "ca.pem"
        self.ca_file.write_bytes(self._authority.pem)
        self._dead = socket.socket()
        self._dead.bind(("127.0.0.1", 0))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, name="fake-internet", daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> FakeInternet:  # noqa: PYI034 - typing.Self is newer than Python 3.10
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- what a test says ------------------------------------------------------

    @property
    def proxy_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def dead_proxy_url(self) -> str:
        """A port that is taken and refuses every connection: the network is down."""
        return f"http://127.0.0.1:{self._dead.getsockname()[1]}"

    def env(self, proxy: str | None = None) -> dict[str, str]:
        return {"HTTPS_PROXY": proxy or self.proxy_url, "SSL_CERT_FILE": str(self.ca_file)}

    def route(self, host: str, path: PathRule, answer: Answer, method: str | None = None) -> None:
        """Answer requests to `host` (exact, `*.suffix` or `*`). Later routes win.

        `path`: None matches all; text equals the path, raw or decoded (with a `?` the whole target; with a trailing
        `*` its beginning); a pattern is searched in the raw target; a callable gets the request.
        """
        with self._lock:
            self._routes.append((host.lower(), path, method, answer))

    def url(self, url: str, answer: Answer, method: str | None = None) -> str:
        """Route one https URL, query included where it has one; returns it."""
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.route(parts.hostname or "", target, answer, method)
        return url

    def refuse(self, host: str, status: int = 403, body: str = "<html><h1>Blocked by policy</h1></html>") -> None:
        """Make the proxy itself refuse CONNECT to `host`."""
        self._host_moods[host.lower()] = html(body, status)

    def unreachable(self, host: str, how: int | str = 502) -> None:
        """CONNECT to `host` fails: a status, "reset", "silent" (no answer) or "silent_tls" (no handshake)."""
        self._host_moods[host.lower()] = how

    def allow(self, host: str) -> None:
        """Take `refuse` or `unreachable` back."""
        self._host_moods.pop(host.lower(), None)

    def distrust(self, host: str, flaw: str = "untrusted") -> None:
        """Present a bad certificate for `host`: untrusted, expired or wrong_host."""
        self._flaws[host.lower()] = flaw

    def require_auth(self, user: str = "", password: str = "", scheme: str = "Basic") -> None:
        """Answer 407 to every CONNECT without these credentials (with none given: to every CONNECT)."""
        self._auth_scheme, self._credentials = scheme, (user, password) if user else None

    def silence(self, *, silent: bool = True) -> None:
        """Accept connections to the proxy and never answer them."""
        self._silent = silent

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), 1).close()  # wakes accept()
        self._listener.close()
        self._dead.close()
        with self._lock:
            for sock in self._sockets:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(5)
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- connections -------------------------------------------------------------

    def _accept(self) -> None:
        for number in itertools.count(1):
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if self._closing:
                sock.close()
                return
            thread = threading.Thread(target=self._serve, args=(sock, number), name=f"fake-{number}", daemon=True)
            self._threads = [t for t in self._threads if t.is_alive()] + [thread]
            thread.start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        connect = Connect(number, time.monotonic())
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        holder = [sock]  # TLS replaces the socket
        try:
            self._track(sock)
            self._tunnel(holder, connect)
        except (PeerGone, OSError):
            pass
        except Exception as exc:  # noqa: BLE001 - a fault of the test shows in the test, not in a thread
            self.errors.append(exc)
        finally:
            self._forget(holder[0])
            _goodbye(holder[0])
            self.finish(connect)

    def _track(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.add(sock)
        if self._closing:
            raise PeerGone

    def _forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(sock)

    def _tunnel(self, holder: list[socket.socket], connect: Connect) -> None:
        sock = holder[0]
        with sock.makefile("rb", buffering=0) as lines:  # unbuffered: what follows belongs to TLS
            connect.method, target, connect.headers = _read_head(lines)
        host, _, port = target.rpartition(":")
        connect.host, connect.port = host.strip("[]").lower(), int(port) if port.isdigit() else 0
        self.add_connect(connect)
        if self._silent:
            _sink(sock)
        if not self._admit(sock, connect):
            return
        connect.status, connect.allowed = 200, True
        sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if self._host_moods.get(connect.host) == "silent_tls":
            _sink(sock)
        if sock.recv(1, socket.MSG_PEEK) == b"\x16":
            self._secure(holder, connect)
        with holder[0].makefile("rb") as lines:
            while self._answer_one(holder[0], lines, connect):
                pass

    def _secure(self, holder: list[socket.socket], connect: Connect) -> None:
        plain = holder[0]
        self._forget(plain)
        try:
            holder[0] = self._context(connect.host).wrap_socket(plain, server_side=True)
            connect.tls = True
        except (ssl.SSLError, OSError) as exc:
            connect.tls_error = str(exc)
            raise
        self._track(holder[0])

    def _context(self, host: str) -> ssl.SSLContext:
        flaw = self._flaws.get(host, "")
        return authority("untrusted").context(host) if flaw == "untrusted" else self._authority.context(host, flaw)

    def _admit(self, sock: socket.socket, connect: Connect) -> bool:
        if connect.method != "CONNECT":
            return self._turn_away(sock, connect, html("<h1>Only CONNECT here</h1>", 403))
        if self._auth_scheme and not self._authorised(connect):
            challenge = f'{self._auth_scheme} realm="proxy"' if self._auth_scheme == "Basic" else self._auth_scheme
            answer = html("<h1>Proxy authentication required</h1>", 407, headers={"Proxy-Authenticate": challenge})
            return self._turn_away(sock, connect, answer)
        return self._admit_host(sock, connect)

    def _admit_host(self, sock: socket.socket, connect: Connect) -> bool:
        mood = self._host_moods.get(connect.host)
        if mood is None and not any(_host_matches(route[0], connect.host) for route in self._routes):
            mood = self.unknown_host
        if mood == "silent":
            _sink(sock)
        if mood == "reset":
            _reset(sock)
            return False
        if mood in (None, "silent_tls"):
            return True
        return self._turn_away(sock, connect, mood if isinstance(mood, Reply) else Reply(mood))

    def _turn_away(self, sock: socket.socket, connect: Connect, reply: Reply) -> bool:
        connect.status = reply.status
        body = reply.payload()
        sock.sendall(_head(reply, [("Content-Length", str(len(body))), ("Connection", "close")]) + body)
        sock.shutdown(socket.SHUT_WR)
        return False

    def _authorised(self, connect: Connect) -> bool:
        if not self._credentials:
            return False
        given = connect.headers.get("proxy-authorization", "")
        return given == "Basic " + base64.b64encode(":".join(self._credentials).encode()).decode()

    # -- requests ----------------------------------------------------------------

    def _answer_one(self, sock: socket.socket, lines: Any, connect: Connect) -> bool:
        method, target, headers = _read_head(lines)
        if target.startswith("http://"):  # absolute form, as to a plain proxy
            target = "/" + target.split("/", 3)[3]
        body = _read_body(lines, headers)
        request = Request(time.monotonic(), connect.host, connect.port, method, target, headers, body, connect.id)
        self.add_request(request)
        try:
            alive = self._send(sock, request, self._find(request))
        except (PeerGone, OSError):
            self.finish(request, aborted=True)
            raise
        self.finish(request)
        return alive and headers.get("connection", "").lower() != "close"

    def _find(self, request: Request) -> Reply:
        with self._lock:
            routes = list(reversed(self._routes))
        for host, path, method, answer in routes:
            if _host_matches(host, request.host) and method in (None, request.method) and _path_matches(path, request):
                try:
                    reply = as_reply(answer, request)
                    return self.trouble(request, reply) if self.trouble else reply
                except Exception as exc:  # noqa: BLE001 - kept for the test to see
                    self.errors.append(exc)
                    return Reply(500, f"the test's own reply failed: {exc!r}")
        return Reply(404, "no such page in this world")

    def _send(self, sock: socket.socket, request: Request, reply: Reply) -> bool:
        """Send one answer; true if the connection can take another request."""
        if reply.stall_after is None:
            _hold(sock, reply)
        _pause(sock, reply.delay_s)
        request.status = reply.status
        if reply.raw is not None:
            _emit(sock, request, reply.raw)
            return False
        if reply.reset and reply.cut_after is None:
            request.status = 0
            _reset(sock)
            return False
        body, length = _encoded(reply)
        chunked = reply.chunked or (length is None and not reply.no_length)
        open_ended = reply.no_length and not chunked
        _emit(sock, request, _head(reply, _framing(reply, length, chunked=chunked, open_ended=open_ended)))
        if request.method == "HEAD" or reply.status in (204, 304):
            return not reply.close
        whole = self._send_body(sock, request, reply, body, chunked=chunked)
        if not whole:
            return False
        if chunked:
            _emit(sock, request, b"0\r\n\r\n")
        return not (open_ended or reply.close) and reply.length is None

    def _send_body(
        self, sock: socket.socket, request: Request, reply: Reply, body: Iterable[bytes], *, chunked: bool
    ) -> bool:
        stalled = reply.stall_after is None
        for block in _split(body, [mark for mark in (reply.stall_after, reply.cut_after) if mark is not None]):
            if reply.cut_after is not None and request.bytes_sent >= reply.cut_after:
                if reply.reset:
                    _reset(sock)
                return False
            if not stalled and request.bytes_sent >= (reply.stall_after or 0):
                stalled = True
                if not _hold(sock, reply):
                    _pause(sock, reply.stall_s)
            request.bytes_sent += len(block)  # before it goes: whoever has it may look here at once
            _emit(sock, request, b"%x\r\n%b\r\n" % (len(block), block) if chunked else block)
            if reply.bytes_per_s:
                _pause(sock, len(block) / reply.bytes_per_s)
        return True


# ############################################################################
# Bytes on the wire
# ############################################################################


def _host_matches(rule: str, host: str) -> bool:
    return rule in ("*", host) or (rule.startswith("*.") and host.endswith(rule[1:]))


def _path_matches(rule: PathRule, request: Request) -> bool:
    if rule is None:
        return True
    if isinstance(rule, re.Pattern):
        return bool(rule.search(request.target))
    if callable(rule):
        return bool(rule(request))
    if rule.endswith("*"):
        return request.target.startswith(rule[:-1]) or unquote(request.target).startswith(rule[:-1])
    if "?" in rule:
        return rule in (request.target, unquote(request.target))
    return rule in (request.path, request.decoded_path)


def _read_line(lines: Any) -> bytes:
    line: bytes = lines.readline(BLOCK)
    if not line.endswith(b"\n"):
        raise PeerGone
    return line


def _read_head(lines: Any) -> tuple[str, str, dict[str, str]]:
    first = _read_line(lines).decode("latin-1").split()
    if len(first) != 3:
        raise PeerGone
    headers: dict[str, str] = {}
    while line := _read_line(lines).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return first[0], first[1], headers


def _read_body(lines: Any, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        whole: bytes = lines.read(_number(headers.get("content-length", "0")))
        return whole
    parts = []
    while size := _number(_read_line(lines).partition(b";")[0], 16):
        parts.append(lines.read(size))
        _read_line(lines)
    _read_line(lines)
    return b"".join(parts)


def _number(text: str | bytes, base: int = 10) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise PeerGone from None


def _head(reply: Reply, framing: list[tuple[str, str]]) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Status')}"]
    given = {name.lower() for name in reply.headers}
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    lines += [f"{name}: {value}" for name, value in framing if name.lower() not in given]
    if "content-type" not in given:
        lines.append(f"Content-Type: {reply.media_type()}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def _framing(reply: Reply, length: int | None, *, chunked: bool, open_ended: bool) -> list[tuple[str, str]]:
    lines = [("Content-Encoding", "gzip")] if reply.gzip else []
    if chunked:
        lines.append(("Transfer-Encoding", "chunked"))
    elif not open_ended and reply.status not in (204, 304):
        lines.append(("Content-Length", str(length if reply.length is None else reply.length)))
    if reply.close or open_ended:
        lines.append(("Connection", "close"))
    return lines


def _encoded(reply: Reply) -> tuple[Iterable[bytes], int | None]:
    """The body blocks as they travel, and their total where it is known."""
    if reply.stream is None:
        body = gzip.compress(reply.payload(), mtime=0) if reply.gzip else reply.payload()
        return (body[i : i + BLOCK] for i in range(0, len(body), BLOCK)), len(body)
    blocks = reply.stream() if callable(reply.stream) else reply.stream
    return (_gzipped(blocks) if reply.gzip else blocks), reply.length


def _gzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    for block in blocks:
        yield packer.compress(block)
    yield packer.flush()


def _split(blocks: Iterable[bytes], marks: list[int]) -> Iterator[bytes]:
    """The same bytes in pieces, so that each mark lies between two of them."""
    done = 0
    for block in blocks:
        cuts = sorted({mark - done for mark in marks if 0 < mark - done < len(block)})
        yield from (block[start:end] for start, end in itertools.pairwise([0, *cuts, len(block)]) if start < end)
        done += len(block)


def _emit(sock: socket.socket, request: Request, data: bytes) -> None:
    request.t_last = time.monotonic()
    sock.sendall(data)


def _pause(sock: socket.socket, seconds: float) -> None:
    """Sleep, but notice at once when the client leaves (clients here never pipeline, so any byte means goodbye)."""
    if seconds <= 0:
        return
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        if selector.select(min(seconds, FOREVER_S)):
            raise PeerGone


def _sink(sock: socket.socket) -> None:
    """Take whatever comes, say nothing, until the client leaves."""
    while sock.recv(BLOCK):
        pass
    raise PeerGone


def _hold(sock: socket.socket, reply: Reply) -> bool:
    if reply.hold is None:
        return False
    while not reply.hold.is_set():
        _pause(sock, 0.01)
    return True


def _reset(sock: socket.socket) -> None:
    """Close with RST instead of FIN."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def _goodbye(sock: socket.socket) -> None:
    """Close; over TLS with a close_notify, so that a body without a length ends cleanly."""
    if isinstance(sock, ssl.SSLSocket) and sock.fileno() >= 0:
        with contextlib.suppress(OSError, ValueError):
            sock.settimeout(0)
            sock.unwrap()
    sock.close()


def path_of(text: str) -> str:
    """`text` as one percent-encoded path segment, slashes included."""
    return quote(text, safe="")
