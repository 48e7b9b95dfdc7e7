"""The tool the other tests stand on: does the fake internet do what it says, and does its log tell the truth?"""

from __future__ import annotations

import gzip
import json
import re
import signal
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest
from conftest import Home, Runner
from fake_internet import (
    FakeInternet,
    Reply,
    authority,
    endless,
    gzip_bomb,
    html,
    most_overlapping,
    never,
    path_of,
    pdf,
    redirect,
    seq,
)
from worlds import CSL_TYPE, DROP, Location, World, big_pdf, block_page, pdf_bytes, pdf_chunks, sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOST = "api.example.org"


def client(net: FakeInternet, **more: object) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(net.ca_file))
    return httpx.Client(proxy=more.pop("proxy", net.proxy_url), verify=context, timeout=5, trust_env=False, **more)


def get(net: FakeInternet, url: str, **more: object) -> httpx.Response:
    with client(net) as http:
        return http.get(url, **more)


# ############################################################################
# Routes and replies
# ############################################################################


def test_starts_fast() -> None:
    authority()
    began = time.monotonic()
    for _ in range(5):
        FakeInternet().close()
    assert (time.monotonic() - began) / 5 < 0.2


def test_json_text_bytes_and_status_answers(net: FakeInternet) -> None:
    net.route(HOST, "/json", {"a": [1]})
    net.route(HOST, "/text", "grün")
    net.route(HOST, "/bytes", b"\x00\x01")
    net.route(HOST, "/gone", 410)
    net.route(HOST, "/page", html("<p>hi"))
    net.route(HOST, "/pdf", pdf(b"%PDF-1.4"))
    with client(net, base_url=f"https://{HOST}") as http:
        assert http.get("/json").json() == {"a": [1]}
        assert http.get("/text").text == "grün"
        assert http.get("/bytes").content == b"\x00\x01"
        assert http.get("/gone").status_code == 410
        assert http.get("/page").headers["content-type"].startswith("text/html")
        assert http.get("/pdf").headers["content-type"] == "application/pdf"
        assert http.get("/other").status_code == 404


@pytest.mark.parametrize(
    ("rule", "target", "matches"),
    [
        (None, "/anything?x=1", True),
        ("/works/10.1/a", "/works/10.1%2Fa?mailto=x", True),
        ("/works/10.1%2Fa", "/works/10.1%2Fa", True),
        ("/works/10.1/a", "/works/10.1/ab", False),
        ("/q?a=b c", "/q?a=b%20c", True),
        ("/q?a=b", "/q?a=c", False),
        ("/works/*", "/works/10.1%2Fa", True),
        (re.compile(r"^/w\d$"), "/w7", True),
        (lambda request: request.query["n"] == "1", "/x?n=1", True),
    ],
)
def test_path_rules(net: FakeInternet, rule: object, target: str, *, matches: bool) -> None:
    net.route(HOST, rule, "yes")
    assert (get(net, f"https://{HOST}{target}").text == "yes") is matches


def test_later_routes_methods_and_wildcard_hosts(net: FakeInternet) -> None:
    net.route("*.example.org", None, "suffix")
    net.route(HOST, "/a", "first")
    net.route(HOST, "/a", "second")
    net.route(HOST, "/a", "posted", method="POST")
    with client(net) as http:
        assert http.get(f"https://{HOST}/a").text == "second"
        assert http.post(f"https://{HOST}/a").text == "posted"
        assert http.get("https://other.example.org/").text == "suffix"
    with pytest.raises(httpx.ProxyError):
        get(net, "https://example.org/")


def test_sequence_and_callable(net: FakeInternet) -> None:
    net.route(HOST, "/flaky", seq(500, Reply(429, headers={"Retry-After": "1"}), {"ok": True}))
    net.route(HOST, "/echo", lambda request: {"query": request.query, "agent": request.headers["user-agent"]})
    with client(net, base_url=f"https://{HOST}", headers={"User-Agent": "me/1"}) as http:
        answers = [http.get("/flaky") for _ in range(4)]
        assert [a.status_code for a in answers] == [500, 429, 200, 200]
        assert answers[1].headers["retry-after"] == "1"
        assert http.get("/echo?a=1&b=").json() == {"query": {"a": "1", "b": ""}, "agent": "me/1"}


def test_redirects_are_followed_through_the_proxy(net: FakeInternet) -> None:
    net.url("https://doi.example/10.1/a", redirect("https://pub.example/a.pdf"))
    net.url("https://pub.example/a.pdf", pdf(b"%PDF-1.7"))
    with client(net, follow_redirects=True) as http:
        assert http.get("https://doi.example/10.1/a").content == b"%PDF-1.7"
    assert net.hosts() == {"doi.example", "pub.example"}


def test_post_bodies_plain_and_chunked(net: FakeInternet) -> None:
    net.route(HOST, "/form", lambda request: request.form)
    net.route(HOST, "/json", lambda request: request.json())
    with client(net, base_url=f"https://{HOST}") as http:
        assert http.post("/form", data={"id_list": "1,2"}).json() == {"id_list": "1,2"}
        assert http.post("/json", content=iter([b'{"ids"', b": [1]}"])).json() == {"ids": [1]}
    assert net.requests(path="/json")[0].body == b'{"ids": [1]}'


def test_gzip_body_and_gzip_stream(net: FakeInternet) -> None:
    net.route(HOST, "/small", Reply(body="x" * 5000, gzip=True))
    net.route(HOST, "/bomb", gzip_bomb(3_000_000, first=b"%PDF-"))
    with client(net, base_url=f"https://{HOST}") as http:
        small = http.get("/small")
        assert small.text == "x" * 5000
        assert int(small.headers["content-length"]) == len(gzip.compress(b"x" * 5000, mtime=0))
        assert len(http.get("/bomb").content) == 3_000_005
    assert net.requests(path="/bomb")[0].bytes_sent < 10_000


def test_streams_with_length_chunked_and_until_close(net: FakeInternet) -> None:
    def blocks() -> Iterator[bytes]:
        yield from [b"abc", b"", b"def"]

    net.route(HOST, "/length", Reply(stream=blocks, length=6))
    net.route(HOST, "/chunked", Reply(stream=blocks))
    net.route(HOST, "/open", Reply(stream=blocks, no_length=True))
    with client(net, base_url=f"https://{HOST}") as http:
        for path in ("/length", "/chunked", "/open"):
            assert http.get(path).content == b"abcdef"
        assert http.get("/chunked").headers["transfer-encoding"] == "chunked"


# ############################################################################
# Answers that travel badly
# ############################################################################


def test_cut_short(net: FakeInternet) -> None:
    net.route(HOST, "/cut", Reply(body=b"x" * 1000, cut_after=999))
    with pytest.raises(httpx.RemoteProtocolError):
        get(net, f"https://{HOST}/cut")
    (request,) = net.wait_for(HOST, ended=True)
    assert (request.bytes_sent, request.aborted) == (999, False)


def test_reset_and_raw(net: FakeInternet) -> None:
    net.route(HOST, "/reset", Reply(reset=True))
    net.route(HOST, "/late", Reply(body=b"x" * 100_000, cut_after=10, reset=True))
    net.route(HOST, "/raw", Reply(raw=b"SSH-2.0-no\r\n"))
    for path in ("/reset", "/late", "/raw"):
        with pytest.raises(httpx.TransportError):
            get(net, f"https://{HOST}{path}")


def test_claimed_length(net: FakeInternet) -> None:
    net.route(HOST, "/huge", Reply(length=5_000_000_000))
    with client(net) as http, http.stream("GET", f"https://{HOST}/huge") as answer:
        assert answer.headers["content-length"] == "5000000000"


def test_delay_stall_and_drip(net: FakeInternet) -> None:
    net.route(HOST, "/delay", Reply(body=b"x", delay_s=0.2))
    net.route(HOST, "/stall", Reply(body=b"x" * 10, stall_after=4, stall_s=0.2))
    net.route(HOST, "/drip", Reply(stream=[b"x"] * 4, bytes_per_s=20))
    for path in ("/delay", "/stall", "/drip"):
        began = time.monotonic()
        assert set(get(net, f"https://{HOST}{path}").text) == {"x"}
        assert 0.19 < time.monotonic() - began < 1


def test_client_that_leaves_is_noticed(net: FakeInternet) -> None:
    net.route(HOST, "/never", never())
    net.route(HOST, "/endless", endless())
    with client(net) as http:
        with pytest.raises(httpx.ReadTimeout):
            http.get(f"https://{HOST}/never", timeout=0.1)
        with http.stream("GET", f"https://{HOST}/endless") as answer:
            next(answer.iter_bytes())
    gone = net.wait_for(HOST, count=2, ended=True)
    assert all(request.aborted for request in gone)


def test_hold_lets_the_test_decide(net: FakeInternet) -> None:
    gate = threading.Event()
    net.route(HOST, "/held", Reply(body=b"x" * 100, stall_after=50, hold=gate))
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(get, net, f"https://{HOST}/held")
        net.wait_for(HOST, "/held", sent=50)
        assert not answer.done()
        gate.set()
        assert len(answer.result(5).content) == 100


def test_big_body_is_streamed(net: FakeInternet) -> None:
    net.route(HOST, "/big", Reply(stream=lambda: (b"x" * 65536 for _ in range(800)), length=800 * 65536))
    with client(net) as http, http.stream("GET", f"https://{HOST}/big") as answer:
        assert sum(len(block) for block in answer.iter_raw()) == 800 * 65536


# ############################################################################
# Moods of the proxy
# ############################################################################


def test_unknown_refused_and_unreachable_hosts(net: FakeInternet) -> None:
    net.route(HOST, None, "yes")
    net.refuse("blocked.example")
    for host, status in (("nowhere.example", 502), ("blocked.example", 403)):
        with pytest.raises(httpx.ProxyError, match=str(status)):
            get(net, f"https://{host}/")
    net.unreachable(HOST, "reset")
    with pytest.raises(httpx.TransportError):
        get(net, f"https://{HOST}/")
    net.allow(HOST)
    assert get(net, f"https://{HOST}/").text == "yes"
    assert net.hosts() == {HOST}
    assert net.connect_hosts() == {HOST, "nowhere.example", "blocked.example"}
    assert [c.allowed for c in net.connects(HOST)] == [False, True]


def test_proxy_authentication(net: FakeInternet) -> None:
    net.route(HOST, None, "yes")
    net.require_auth("user", "s3cret")
    with pytest.raises(httpx.ProxyError, match="407"):
        get(net, f"https://{HOST}/")
    with client(net, proxy=f"http://user:s3cret@127.0.0.1:{net.port}") as http:
        assert http.get(f"https://{HOST}/").text == "yes"
    net.require_auth()
    with client(net, proxy=f"http://user:s3cret@127.0.0.1:{net.port}") as http, pytest.raises(httpx.ProxyError):
        http.get(f"https://{HOST}/")


def test_silent_proxy_and_dead_proxy(net: FakeInternet) -> None:
    net.route(HOST, None, "yes")
    with client(net, proxy=net.dead_proxy_url) as http, pytest.raises(httpx.ConnectError):
        http.get(f"https://{HOST}/")
    assert not net.connects()
    net.unreachable("half.example", "silent_tls")
    net.unreachable("mute.example", "silent")
    with client(net) as http:
        for host in ("half.example", "mute.example"):
            with pytest.raises(httpx.TimeoutException):
                http.get(f"https://{host}/", timeout=0.2)
        net.silence()
        with pytest.raises(httpx.TimeoutException):
            http.get(f"https://{HOST}/", timeout=0.2)
    assert not net.requests()
    assert [c.allowed for c in net.connects()] == [True, False, False]


@pytest.mark.parametrize("flaw", ["untrusted", "expired", "wrong_host"])
def test_bad_certificates(net: FakeInternet, flaw: str) -> None:
    net.route(HOST, None, "yes")
    net.distrust(HOST, flaw)
    with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
        get(net, f"https://{HOST}/")
    assert net.connect_hosts() == {HOST}
    assert not net.requests()


def test_sloppy_ca_passes_only_without_strict() -> None:
    with FakeInternet(ca="sloppy") as net:
        net.route(HOST, None, "yes")
        context = ssl.create_default_context(cafile=str(net.ca_file))
        for strict, passes in ((False, True), (True, False)):
            flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT
            context.verify_flags = flags | ssl.VERIFY_X509_STRICT if strict else flags
            with httpx.Client(proxy=net.proxy_url, verify=context, trust_env=False) as http:
                if passes:
                    assert http.get(f"https://{HOST}/").text == "yes"
                else:
                    with pytest.raises(httpx.ConnectError):
                        http.get(f"https://{HOST}/")


def test_plain_http_is_logged_and_refused(net: FakeInternet) -> None:
    assert get(net, f"http://{HOST}/").status_code == 403
    (connect,) = net.connects()
    assert (connect.method, connect.allowed) == ("GET", False)


def test_garbage_does_not_disturb(net: FakeInternet) -> None:
    net.route(HOST, None, "yes")
    hello = b"CONNECT api.example.org:443 HTTP/1.1\r\n\r\n"
    for noise in (b"", b"\r\n", b"CONNECT\r\n\r\n", b"\x16\x03\x01garbage", hello + b"xx", hello + b"\x16xx"):
        with socket.create_connection(("127.0.0.1", net.port)) as sock:
            sock.sendall(noise)
    assert get(net, f"https://{HOST}/").text == "yes"


def test_fault_in_a_test_callable_is_kept() -> None:
    with FakeInternet() as net:
        net.route(HOST, None, lambda request: request.no_such_field)
        assert get(net, f"https://{HOST}/").status_code == 500
        assert isinstance(net.errors[0], AttributeError)


def test_close_frees_waiting_clients(net: FakeInternet) -> None:
    net.route(HOST, None, never())
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(get, net, f"https://{HOST}/")
        net.wait_for(HOST)
        began = time.monotonic()
        net.close()
        assert isinstance(answer.exception(5), httpx.TransportError)
        assert time.monotonic() - began < 2


# ############################################################################
# The wire log
# ############################################################################


def test_keep_alive_reuses_one_connection(net: FakeInternet) -> None:
    net.route(HOST, None, lambda request: request.path)
    with client(net, base_url=f"https://{HOST}") as http:
        assert [http.get(f"/{n}").text for n in range(5)] == [f"/{n}" for n in range(5)]
        assert http.head("/head").status_code == 200
        assert http.get("/last").text == "/last"
    assert len(net.connects()) == 1
    assert len({request.connection for request in net.requests()}) == 1


def test_records_and_filters(net: FakeInternet) -> None:
    net.route(HOST, None, {"x": 1})
    get(net, f"https://{HOST}/works/10.1%2FA%2BB?q=a+b&e=", headers={"X-Thing": "1"})
    (request,) = net.requests(HOST, "/works/10.1/A+B", method="GET")
    assert (request.path, request.decoded_path) == ("/works/10.1%2FA%2BB", "/works/10.1/A+B")
    assert (request.target, request.query) == ("/works/10.1%2FA%2BB?q=a+b&e=", {"q": "a b", "e": ""})
    assert (request.status, request.bytes_sent, request.headers["x-thing"]) == (200, 8, "1")
    assert request.t_start <= net.wait_for(HOST, ended=True)[0].t_end <= time.monotonic()
    assert net.requests(path=re.compile(r"e=$")) == [request]
    assert net.requests(host="other.example") == net.requests(path="nothing") == []
    assert HOST in net.text()
    net.clear()
    assert not net.requests()
    assert not net.connects()


def test_how_many_at_once_and_how_fast(net: FakeInternet) -> None:
    net.route(HOST, None, Reply(body=b"x", delay_s=0.2))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: get(net, f"https://{HOST}/{n}"), range(8)))
    assert 2 <= net.max_at_once(HOST) <= 8
    assert net.max_connections_at_once() >= net.max_at_once()
    assert net.max_in_window(5.0) == 8
    assert len(net.gaps(HOST)) == 7
    assert net.max_at_once("other.example") == 0


def test_one_after_the_other_never_counts_as_two(net: FakeInternet) -> None:
    net.route(HOST, None, "x")
    with client(net, base_url=f"https://{HOST}") as one, client(net, base_url=f"https://{HOST}") as two:
        for n in range(30):
            assert (one, two)[n % 2].get("/").text == "x"
    assert net.max_at_once() == 1


def test_overlap_arithmetic() -> None:
    assert most_overlapping([]) == 0
    assert most_overlapping([(0, 1), (1, 2)]) == 1
    assert most_overlapping([(0, 3), (1, 2), (1.5, 4)]) == 3


def test_wait_for_fails_with_the_log(net: FakeInternet) -> None:
    with pytest.raises(AssertionError, match="log"):
        net.wait_for(HOST, timeout=0.05)


def test_many_clients(net: FakeInternet) -> None:
    net.route("*", None, lambda request: request.host)
    hosts = [f"h{n}.example" for n in range(40)]
    with ThreadPoolExecutor(20) as pool:
        texts = list(pool.map(lambda host: get(net, f"https://{host}/").text, hosts))
    assert texts == hosts


# ############################################################################
# Worlds
# ############################################################################


@pytest.fixture
def ask(net: FakeInternet) -> Iterator[Callable[..., httpx.Response]]:
    with client(net, headers={"User-Agent": "doiget-test/1"}) as http:
        yield http.get


@pytest.mark.parametrize("size", [0, 1_000, 1_013, 99_999, 200_000])
def test_pdf_has_the_size_and_a_table_that_fits(size: int) -> None:
    body = pdf_bytes("one (1)", size)
    assert len(body) == size or size < len(body) < 1_000
    assert body.startswith(b"%PDF-1.4\n")
    start = int(re.search(rb"startxref\n(\d+)\n%%EOF\n$", body)[1])
    assert body[start : start + 5] == b"xref\n"
    for number, offset in enumerate(re.findall(rb"(\d{10}) 00000 n ", body), 1):
        assert body[int(offset) :].startswith(b"%d 0 obj\n" % number)


def test_big_pdf_equals_the_small_one(net: FakeInternet) -> None:
    net.route(HOST, "/big.pdf", big_pdf(300_000, "x"))
    answer = get(net, f"https://{HOST}/big.pdf")
    assert sha256(answer.content) == sha256(pdf_bytes("x", 300_000)) == sha256(pdf_chunks("x", 300_000))
    assert answer.headers["content-length"] == "300000"


def test_crossref_singles(world: World, ask: Callable[..., httpx.Response]) -> None:
    doi = "10.1002/(sici)1096-9861(19971020)387:2<167::aid-cne1>3.0.co;2-z"
    world.crossref_work(doi, title="One", authors=["Ada B. Lovelace", {"name": "A Group"}], date="2017-02", page=DROP)
    world.crossref.alias("10.1000/old", doi)
    base = "https://api.crossref.org/works/"
    one = ask(base + path_of(doi) + "?mailto=a@b.org")
    message = one.json()["message"]
    assert (message["title"], message["issued"]) == (["One"], {"date-parts": [[2017, 2]]})
    assert "page" not in message
    assert message["author"][0] == {"given": "Ada B.", "family": "Lovelace", "sequence": "first", "affiliation": []}
    assert (one.headers["x-api-pool"], one.headers["x-rate-limit-limit"]) == ("polite-single", "10")
    assert ask(base + "10.1000/none").text == "Resource not found."
    assert ask(base + "10.1000/old").headers["location"] == base + path_of(doi)
    assert ask(base + path_of(doi) + "?select=DOI").status_code == 400
    assert ask(base + path_of(doi) + "/agency").json()["message"]["agency"]["id"] == "crossref"
    assert ask(base + path_of(doi) + "/transform").json()["title"] == "One"


def test_crossref_lists(world: World, ask: Callable[..., httpx.Response]) -> None:
    for n in range(30):
        world.crossref_work(f"10.1000/{n}", title=f"Paper number {n}")
    world.crossref.alias("10.1000/old", "10.1000/1")
    url = "https://api.crossref.org/works"
    wanted = ",".join(f"doi:10.1000/{n}" for n in ["0", "1", "none", "old"])
    some = ask(url, params={"filter": wanted, "rows": 4, "select": "DOI,title"}).json()["message"]
    assert [item["DOI"] for item in some["items"]] == ["10.1000/1", "10.1000/0"]
    assert set(some["items"][0]) == {"DOI", "title"}
    every = ask(url, params={"filter": ",".join(f"doi:10.1000/{n}" for n in range(30))}).json()["message"]
    assert (len(every["items"]), every["total-results"]) == (20, 30)
    assert ask(url, params={"query.bibliographic": "number 7"}).json()["message"]["items"][0]["DOI"] == "10.1000/7"
    for wrong in ({"select": "language"}, {"rows": 1001}, {"query.title": "x"}, {"filter": "nonsense:1"}, {"foo": "1"}):
        assert ask(url, params=wrong).json()["message-type"] == "validation-failure"


def test_datacite(world: World, ask: Callable[..., httpx.Response]) -> None:
    world.datacite_work("10.5281/zenodo.1", title="Data", authors=["Ada Lovelace", {"name": "A Group"}])
    world.datacite_work("10.5281/zenodo.2")
    one = ask("https://api.datacite.org/dois/10.5281%2Fzenodo.1").json()["data"]
    assert one["attributes"]["titles"] == [{"title": "Data"}]
    assert [c["name"] for c in one["attributes"]["creators"]] == ["Lovelace, Ada", "A Group"]
    assert ask("https://api.datacite.org/dois/10.5281/none").json()["errors"][0]["status"] == "404"
    many = ask("https://api.datacite.org/dois", params={"ids": "10.5281/ZENODO.1,10.5281/zenodo.2,10.5281/no"}).json()
    assert [row["id"] for row in many["data"]] == ["10.5281/zenodo.2", "10.5281/zenodo.1"]
    asked = ask("https://api.datacite.org/dois", params={"query": 'doi:("10.5281/zenodo.1" OR "10.1/x")'}).json()
    assert asked["meta"]["total"] == 1


def test_arxiv(world: World, ask: Callable[..., httpx.Response]) -> None:
    paper = world.arxiv_paper("2401.00001", versions=3, withdrawn={3}, title="A & B", doi="10.1000/j")
    for n in range(2, 15):
        world.arxiv_paper(f"2401.{n:05}")
    world.arxiv_paper("math/0309136")
    query = "https://export.arxiv.org/api/query"

    def ids(**params: object) -> list[str]:
        return re.findall(r"<id>http://arxiv.org/abs/(.+?)</id>", ask(query, params=params).text)

    assert ids(id_list="2401.00001,2401.00001v2,math.GT/0309136,2401.99999,2401.00001v9") == [
        "math/0309136v1",
        "2401.00001v2",
        "2401.00001v3",
    ]
    assert len(ids(id_list=",".join(f"2401.{n:05}" for n in range(1, 15)))) == 10
    assert len(ids(id_list=",".join(f"2401.{n:05}" for n in range(1, 15)), max_results=100)) == 14
    assert ask(query, params={"id_list": "2401.00002,abc"}).status_code == 400
    assert "withdrawn" in ask(query, params={"id_list": "2401.00001"}).text
    assert ask(query, params={"id_list": ",".join(["2401.00001"] * 700)}).status_code == 414
    pdfs = {
        url: ask(f"https://{url}")
        for url in (
            "arxiv.org/pdf/2401.00001v2",
            "export.arxiv.org/pdf/2401.00001",
            "arxiv.org/pdf/2401.00002v1.pdf",
            "arxiv.org/pdf/2401.77777",
        )
    }
    assert [answer.status_code for answer in pdfs.values()] == [200, 404, 301, 404]
    assert pdfs["arxiv.org/pdf/2401.00001v2"].content == paper.pdf(2) != paper.pdf(1)
    assert "10.48550/arxiv.2401.00001" in world.datacite.works


def test_openalex(world: World, ask: Callable[..., httpx.Response]) -> None:
    world.openalex_work("10.1000/a", Location("https://x.example/a.pdf"), work_id="W1", pmid="123", title="Apples")
    world.openalex_work("10.1000/b", work_id="W2", references=["W1"], title="Pears")
    world.openalex_work("10.5281/zenodo.1", work_id="W3", xpac=True, authors=[f"A B{n}" for n in range(101)])
    url = "https://api.openalex.org/works"

    def ids(**params: object) -> list[str]:
        return [work["id"].rpartition("/")[2] for work in ask(url, params=params).json()["results"]]

    assert ask(url + "/doi:10.1000/A").json()["open_access"]["oa_status"] == "gold"
    assert ask(url + "/https://doi.org/10.1000/b").json()["open_access"]["oa_status"] == "closed"
    assert [ask(url + "/" + one).status_code for one in ("W1", "pmid:123", "10.1000/a", "doi:10.1000/z")] == [
        200,
        200,
        404,
        404,
    ]
    assert ids(filter="doi:10.1000/a|https://doi.org/10.1000/b|10.1000/z|10.5281/zenodo.1") == ["W2", "W1"]
    assert ids(filter="doi:10.5281/zenodo.1", include_xpac="true") == ["W3"]
    assert ids(filter="cites:W1") == ids(search="pears") == ["W2"]
    long = ask(
        url, params={"include_xpac": "true", "filter": "openalex:W3", "select": "authorships,is_authors_truncated"}
    )
    assert (len(long.json()["results"][0]["authorships"]), len(long.json()["results"][0])) == (100, 2)
    for wrong in (
        {"foo": "1"},
        {"filter": "doi:" + "|".join(["10.1/x"] * 101)},
        {"filter": "foo:1"},
        {"select": "foo"},
    ):
        assert set(ask(url, params=wrong).json()) == {"error", "message"}
    assert ask(url, params={"cursor": "*"}).status_code == 401


def test_unpaywall(world: World, ask: Callable[..., httpx.Response]) -> None:
    world.unpaywall_work(
        "10.1000/a", Location(None, "https://doi.org/10.1000/a"), Location("https://r.example/1.pdf", repository=True)
    )
    url = "https://api.unpaywall.org/v2/10.1000%2Fa"
    record = ask(url, params={"email": "me@uni.example"}).json()
    assert [place["url_for_pdf"] for place in record["oa_locations"]] == [None, "https://r.example/1.pdf"]
    assert ask(url).status_code == ask(url, params={"email": "me@example.com"}).status_code == 422
    missing = ask("https://api.unpaywall.org/v2/10.1000/none", params={"email": "me@uni.example"})
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")


def test_europe_pmc_and_ncbi(world: World, ask: Callable[..., httpx.Response]) -> None:
    world.pubmed_paper("123456", doi="10.1000/a(b)c", pmcid="PMC77", title="Grid cells.")
    world.pubmed_paper("222222", doi="10.1000/d", title="Other.")
    url = "https://www.ebi.ac.uk/europepmc/webservices/rest/search"

    def found(query: str, **params: object) -> list[str]:
        answer = ask(url, params={"query": query, "format": "json", **params}).json()
        return [work["id"] for work in answer["resultList"]["result"]]

    assert found('DOI:"10.1000/A(b)c" OR DOI:"10.1000/d" OR DOI:"10.1000/none"') == ["222222", "123456"]
    assert found("EXT_ID:123456 AND SRC:MED") == found("PMCID:PMC77") == found("grid cells") == ["123456"]
    assert found("EXT_ID:99") == []
    core = ask(url, params={"query": "PMCID:PMC77", "format": "json", "resultType": "core"}).json()["resultList"][
        "result"
    ][0]
    assert "https://europepmc.org/articles/PMC77?pdf=render" in [
        u["url"] for u in core["fullTextUrlList"]["fullTextUrl"]
    ]
    assert ask("https://europepmc.org/articles/PMC77?pdf=render").content.startswith(b"%PDF-")
    assert ask(url, params={"format": "json"}).json()["errCode"] == 404
    eutils = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/esummary.fcgi"
    result = ask(eutils, params={"db": "pubmed", "retmode": "json", "id": "123456,9"}).json()["result"]
    assert result["123456"]["articleids"][1] == {"idtype": "doi", "idtypen": 3, "value": "10.1000/a(b)c"}
    assert "error" in result["9"]
    idconv = "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/"
    records = ask(idconv, params={"ids": "PMC77,PMC88", "format": "json"}).json()["records"]
    assert (records[0]["pmid"], records[1]["status"]) == (123456, "error")
    assert "cloudpmc-viewer-pow" in ask("https://pmc.ncbi.nlm.nih.gov/articles/PMC77/pdf/").text
    bucket = "https://pmc-oa-opendata.s3.amazonaws.com/"
    listing = ask(bucket, params={"list-type": "2", "delimiter": "/", "prefix": "PMC77."}).text
    assert "<CommonPrefixes><Prefix>PMC77.1/</Prefix></CommonPrefixes>" in listing
    assert ask(bucket + "PMC77.1/PMC77.1.pdf").content.startswith(b"%PDF-")
    assert ask(bucket + "metadata/PMC77.1.json").json()["license_code"] == "CC BY"
    assert "NoSuchKey" in ask(bucket + "PMC9.1/PMC9.1.pdf").text


def test_doi_org(world: World, ask: Callable[..., httpx.Response]) -> None:
    world.crossref_work("10.1000/a")
    world.datacite_work("10.5281/zenodo.1")
    world.agency_work("10.11501/jalc", "JaLC", title="日本", authors=["Taro Yamada"])
    world.short_doi("b6vnmd", "10.1000/a")
    rows = ask("https://doi.org/doiRA/10.1000/a,10.5281/zenodo.1,10.11501/jalc,10.1000/no,x").json()
    assert [row.get("RA") or row["status"] for row in rows] == [
        "Crossref",
        "DataCite",
        "JaLC",
        "DOI does not exist",
        "Invalid DOI",
    ]
    alias = ask("https://doi.org/api/handles/10/b6vnmd").json()
    assert (alias["responseCode"], alias["values"][0]["type"], alias["values"][0]["data"]["value"]) == (
        1,
        "HS_ALIAS",
        "10.1000/a",
    )
    assert ask("https://doi.org/api/handles/10.1000/a?type=URL").json()["values"][0]["type"] == "URL"
    assert ask("https://doi.org/api/handles/10.1000/no").json()["responseCode"] == 100
    landing = "https://publisher.example/article/10.1000/a"
    assert {ask(f"https://doi.org/{one}").headers["location"] for one in ("10.1000/A", "b6vnmd", "10/b6vnmd")} == {
        landing
    }
    assert ask("https://doi.org/10.1000/no").status_code == 404
    csl = {"Accept": CSL_TYPE}
    hop = ask("https://doi.org/10.11501/jalc", headers=csl).headers["location"]
    assert ask(hop, headers=csl).json()["title"] == "日本"
    assert ask(ask("https://doi.org/10.1000/a", headers=csl).headers["location"]).json()["DOI"] == "10.1000/a"
    world.doi_org.serve_csl_itself = True
    assert ask("https://doi.org/10.11501/jalc", headers=csl).json()["title"] == "日本"


def test_repositories(world: World, net: FakeInternet) -> None:
    world.zenodo_paper(1234, concept=1233)
    world.figshare_paper(5678)
    world.osf_paper("f7txy")
    world.biorxiv_paper("10.1101/2020.01.02.123456", versions=2, published_doi="10.1000/a")
    with client(net, follow_redirects=True, headers={"User-Agent": "doiget-test/1"}) as http:
        record = http.get("https://zenodo.org/api/records/1233").json()
        links = [record["files"][0]["links"]["self"]]
        assert (
            http.get("https://zenodo.org/api/records/1234", headers={"User-Agent": "python-requests/2"}).status_code
            == 403
        )
        links.append(http.get("https://api.figshare.com/v2/articles/5678").json()["files"][0]["download_url"])
        assert http.get("https://figshare.com/articles/preprint/x/5678").status_code == 202
        preprint = http.get("https://api.osf.io/v2/preprints/f7txy/").json()["data"]
        file_url = preprint["relationships"]["primary_file"]["links"]["related"]["href"]
        links.append(http.get(file_url).json()["data"]["links"]["download"])
        links.append("https://osf.io/f7txy/download")
        links.append("https://www.biorxiv.org/content/10.1101/2020.01.02.123456v2.full.pdf")
        for link in links:
            assert http.get(link).content.startswith(b"%PDF-"), link
        pubs = http.get("https://api.biorxiv.org/pubs/biorxiv/10.1101/2020.01.02.123456/na/json").json()
        assert pubs["collection"][0]["published_doi"] == "10.1000/a"
        world.biorxiv.walled = True
        assert http.get(links[-1]).status_code == 403
    assert "storage.googleapis.com" in net.hosts()


def test_paper_shortcut_landing_pages_and_walls(world: World, ask: Callable[..., httpx.Response]) -> None:
    paper = world.paper("10.1371/journal.pone.1", title="Open")
    work = ask("https://api.openalex.org/works/doi:10.1371/journal.pone.1").json()
    assert work["best_oa_location"]["pdf_url"] == paper.pdf_url
    assert sha256(ask(paper.pdf_url).content) == paper.sha256
    url = world.landing("https://journal.example/a?id=1", "https://journal.example/a.pdf")
    assert '<meta name="citation_pdf_url" content="https://journal.example/a.pdf">' in ask(url).text
    world.wall("walled.example", "springer")
    world.wall("https://half.example/x.pdf", content_type="application/pdf", status=200)
    assert "Client Challenge" in ask("https://walled.example/any").text
    assert ask("https://half.example/x.pdf").headers["content-type"] == "application/pdf"
    assert block_page().status == 200


# ############################################################################
# Running a program in it
# ############################################################################

SCRIPT = """
import json, os, ssl, sys, time, urllib.request
if sys.argv[1] == "env":
    print(json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "stdin": sys.stdin.read()}))
elif sys.argv[1] == "get":
    sys.stdout.write(urllib.request.urlopen(sys.argv[2]).read().decode())
else:
    print("started", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def runner(net: FakeInternet, home: Home, tmp_path: Path) -> Iterator[Runner]:
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    runner = Runner(script, home, net, tmp_path)
    yield runner
    runner.stop()


def test_a_run_sees_only_its_own_world(
    runner: Runner, home: Home, net: FakeInternet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "ALL_PROXY", "REQUESTS_CA_BUNDLE", "DOIGET_EMAIL", "XDG_DATA_HOME", "PYTHONPATH"):
        monkeypatch.setenv(name, "from-outside")
    result = runner("env", input="grün", env={"DOIGET_EMAIL": "me@uni.example", "DOIGET_PYZ_ROOT": None})
    seen = result.json()
    assert "from-outside" not in seen["env"].values()
    assert (seen["env"]["HTTPS_PROXY"], seen["env"]["SSL_CERT_FILE"]) == (net.proxy_url, str(net.ca_file))
    assert (seen["env"]["DOIGET_STORE"], seen["env"]["DOIGET_EMAIL"]) == (str(home.store), "me@uni.example")
    assert "DOIGET_PYZ_ROOT" not in seen["env"]
    assert (seen["cwd"], seen["stdin"]) == (str(home.cwd), "grün")
    assert not home.store.exists()


def test_a_run_reaches_the_fake_internet(runner: Runner, net: FakeInternet) -> None:
    net.route(HOST, "/x", "here")
    assert runner("get", f"https://{HOST}/x").out == "here"
    refused = runner("get", "https://elsewhere.example/")
    assert (refused.rc, "502" in refused.err) == (1, True)


def test_what_still_runs_is_stopped(runner: Runner) -> None:
    process = runner.spawn("sleep")
    assert process.stdout.readline() == b"started\n"
    with pytest.raises(pytest.fail.Exception, match=r"no end after 0\.5 s"):
        runner("sleep", timeout=0.5)
    runner.stop()
    assert process.returncode == -signal.SIGKILL


def test_recorded_bodies_can_be_served(world: World, ask: Callable[..., httpx.Response], shared: Path) -> None:
    for path in sorted((shared / "recorded" / "crossref" / "works").glob("*.json")):
        message = world.crossref.put(json.loads(path.read_text(encoding="utf-8"))["message"])
        url = f"https://api.crossref.org/works/{path_of(message['DOI'])}"
        assert ask(url).json()["message"] == message
    assert ask("https://api.crossref.org/works", params={"filter": "from-pub-date:2015", "rows": 5}).status_code == 200
