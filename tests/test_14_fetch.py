"""Fetching through the fake internet: what each kind of bad copy gives, and what is never contacted."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_internet import Reply, endless, gzip_bomb, html, never, pdf, redirect, seq
from worlds import Location, big_pdf, pdf_bytes, sha256

import doiget

if TYPE_CHECKING:
    from conftest import Home, Runner
    from fake_internet import FakeInternet
    from worlds import World

DOI = "10.1371/journal.fake.0000001"
COPY = "https://journals.plos.org/fake/1.pdf"


def leftovers(store: Path) -> list[str]:
    """Temporary files a run left in the store."""
    return [path.name for path in store.rglob("*") if path.name.endswith(".part")] if store.exists() else []


def failure(run: Runner, *words: str, **how: Any) -> dict[str, Any]:
    """Run a fetch that must fail; returns the answer after checking what every failure promises."""
    result = run("fetch", *words, "--json", **how)
    answer = result.json()
    assert answer["ok"] is False, result
    assert result.rc != 0
    assert not list(run.home.store.glob("*.pdf")), "a failure left a PDF"
    assert leftovers(run.home.store) == []
    assert answer["error"]["attempts"], answer
    return answer


def expect(answer: dict[str, Any], code: str, reason: str, disposition: str) -> None:
    error = answer["error"]
    assert (error["code"], error["reason"], error["disposition"]) == (code, reason, disposition), error


def attempt_outcomes(answer: dict[str, Any], host: str) -> list[str]:
    return [attempt["outcome"] for attempt in answer["error"]["attempts"] if attempt.get("host") == host]


# ---- the good way ----


def test_fetch_gives_the_whole_answer_in_two_rounds(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    """One call: record, verified file, reference; metadata and open access side by side, then the PDF."""
    paper = world.paper(DOI, title="A title", pdf_url=COPY)
    answer = run("fetch", DOI.upper(), "--json").json()
    assert answer["ok"] is True
    assert answer["ref"] == DOI
    assert answer["sha256"] == paper.sha256
    assert (home.store / answer["path"]).read_bytes() == paper.body
    assert answer["license"] == "cc-by"
    assert answer["version"] == "publishedVersion"
    assert answer["host"] == "journals.plos.org"
    assert answer["already_in_store"] is False
    assert answer["undo"] == f"doiget remove {DOI}"
    assert {request.host for request in net.requests()} == {"api.crossref.org", "api.openalex.org", "journals.plos.org"}
    assert len(net.requests()) == 3
    metadata = [request for request in net.requests() if request.host.startswith("api.")]
    assert net.requests(host="journals.plos.org")[0].t_start >= max(request.t_end for request in metadata)
    assert run("doctor", "--json", "--offline").rc == 0


def test_person_sees_path_then_reference(run: Runner, world: World) -> None:
    world.paper(DOI, title="A title", pdf_url=COPY)
    result = run("fetch", DOI)
    path, reference = result.out.splitlines()
    assert path.endswith(".pdf")
    assert "A title" in reference
    assert DOI in reference
    assert result.err == ""


def test_second_fetch_asks_nobody(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    run("fetch", DOI)
    net.clear()
    answer = run("fetch", f"https://doi.org/{DOI}", "--json").json()
    assert answer["already_in_store"] is True
    assert net.connects() == []


def test_fetch_copies_to_a_folder(run: Runner, world: World, home: Home) -> None:
    paper = world.paper(DOI, pdf_url=COPY)
    folder = home.root / "out"
    run("fetch", DOI, "--to", folder)
    assert [path.read_bytes() for path in folder.iterdir()] == [paper.body]


@pytest.mark.parametrize(
    "typed", ["arXiv:2401.12345", "2401.12345v2", "hep-th/9711200", "https://arxiv.org/abs/2401.12345"]
)
def test_arxiv_papers_come_from_arxiv(run: Runner, world: World, net: FakeInternet, typed: str) -> None:
    world.arxiv_paper("2401.12345", versions=3)
    world.arxiv_paper("hep-th/9711200")
    answer = run("fetch", typed, "--json").json()
    assert answer["ok"] is True, answer
    assert answer["source"] == "arxiv"
    assert answer["version"] == "submittedVersion"
    assert {request.host for request in net.requests()} == {"export.arxiv.org"}
    assert net.max_at_once("export.arxiv.org") == 1
    assert min(net.gaps("export.arxiv.org")) >= 2.9, "feed and PDF share one pace"
    if typed == "2401.12345v2":
        assert answer["ref"] == "arXiv:2401.12345v2"
        assert any(request.path.endswith("2401.12345v2") for request in net.requests())


# ---- copies that are none ----


def test_html_instead_of_the_pdf(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, html("<html><title>Article</title></html>", headers={"Content-Type": "application/pdf"}))
    expect(failure(run, DOI), "NO_OA_AVAILABLE", "not_a_pdf", "give_up")


@pytest.mark.parametrize(
    "page",
    [
        "<title>DDoS-Guard</title>", "<script src='https://x.awswaf.com/challenge.js'>", "<title>One moment, please...",
        "<iframe src='/_Incapsula_Resource?x'>", "Access Denied https://errors.edgesuite.net/18.2",
        "Verify you are human",
        "The requested URL was rejected. Please consult with your administrator.", "<title>Vercel Security Checkpoint",
        "<title>Sucuri WebSite Firewall - Access Denied", "<h1>Pardon Our Interruption</h1>",
        "<title>Bloomberg - Are you a robot?</title>", "<title>Just a moment...</title>",
        "unusual traffic from your network",
    ],
)  # fmt: skip
def test_walls_of_other_makers(page: str) -> None:
    assert doiget.is_wall(f"<html>{page}</html>".encode())


@pytest.mark.parametrize(
    "page",
    [
        "<title>Article</title>Abstract. Buy article", "<title>Detecting unusual traffic in networks</title>",
        "<title>Human verification of machine learning claims</title>",
        "<h1>Are you a robot? Anthropomorphism in HRI</h1>", "<title>Airport security checkpoint queueing</title>",
        "<title>Post</title><link href='/wp-content/plugins/wordfence/x.css'>",
        "<title>Post</title><script src='/_Incapsula_Resource?SWJIYLWA=1'>",
        "<meta name='citation_pdf_url' content='x'><script src='https://x.awswaf.com/challenge.js'>",
    ],
)  # fmt: skip
def test_pages_that_are_no_walls(page: str) -> None:
    assert not doiget.is_wall(f"<html>{page}</html>".encode())


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("kind", ["cloudflare", "pmc", "anubis"])
def test_bot_walls_are_named_and_left_alone(
    run: Runner, world: World, net: FakeInternet, kind: str, status: int
) -> None:
    world.paper(DOI, pdf_url=COPY)
    world.wall(COPY, kind, status=status)
    answer = failure(run, DOI)
    expect(answer, "NO_OA_AVAILABLE", "blocked_by_host", "give_up")
    assert "journals.plos.org" in answer["error"]["message"]
    assert "doiget add" in answer["error"]["hint"]
    assert f"https://doi.org/{DOI}" in answer["error"]["hint"]
    assert len(net.requests(host="journals.plos.org", path="/fake/1.pdf")) == 1, "a wall is not retried"


def test_next_copy_is_tried_after_a_wall(run: Runner, world: World) -> None:
    world.crossref_work(DOI)
    second = "https://europepmc.org/two.pdf"
    world.openalex_work(
        DOI,
        Location(COPY, None, "publishedVersion"),
        Location(second, None, "acceptedVersion", "cc-by-nc", repository=True),
    )
    world.wall(COPY)
    body = world.pdf(second)
    answer = run("fetch", DOI, "--json").json()
    assert answer["sha256"] == sha256(body)
    assert (answer["version"], answer["license"], answer["host"]) == ("acceptedVersion", "cc-by-nc", "europepmc.org")


def test_truncated_body_is_retried_then_reported(run: Runner, world: World, net: FakeInternet) -> None:
    body = pdf_bytes(size=50_000)
    world.paper(DOI, pdf_url=COPY, body=body)
    net.url(COPY, pdf(body, cut_after=30_000))
    answer = failure(run, DOI)
    expect(answer, "NETWORK_ERROR", "bad_body", "retry")
    assert "incomplete download (30000 of" in answer["error"]["message"]
    assert len(net.requests(path="/fake/1.pdf")) == 3


def test_truncated_once_then_whole(run: Runner, world: World, net: FakeInternet) -> None:
    body = pdf_bytes(size=50_000)
    world.paper(DOI, pdf_url=COPY, body=body)
    net.url(COPY, seq(pdf(body, cut_after=10), pdf(body)))
    assert run("fetch", DOI, "--json").json()["sha256"] == sha256(body)


def test_wrong_length_is_incomplete(run: Runner, world: World, net: FakeInternet) -> None:
    body = pdf_bytes(size=4000)
    world.paper(DOI, pdf_url=COPY, body=body)
    net.url(COPY, pdf(body, length=len(body) + 1, close=True, cut_after=len(body)))
    expect(failure(run, DOI), "NETWORK_ERROR", "bad_body", "retry")


def test_unmeasured_body_needs_its_end_mark(run: Runner, world: World, net: FakeInternet) -> None:
    body = pdf_bytes(size=4000)
    world.paper(DOI, pdf_url=COPY, body=body)
    net.url(COPY, pdf(body[:2000], no_length=True))
    expect(failure(run, DOI), "NETWORK_ERROR", "bad_body", "retry")
    net.url(COPY, pdf(body, no_length=True))
    assert run("fetch", DOI, "--json").json()["ok"] is True


def test_gzip_encoded_pdf_is_stored_decoded(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    paper = world.paper(DOI, pdf_url=COPY)
    net.url(COPY, pdf(paper.body, gzip=True))
    answer = run("fetch", DOI, "--json").json()
    assert answer["sha256"] == paper.sha256
    assert (home.store / answer["path"]).read_bytes() == paper.body


@pytest.mark.parametrize("kind", ["application/octet-stream", "text/html", "application/pdf"])
def test_bytes_decide_not_labels(run: Runner, world: World, net: FakeInternet, kind: str) -> None:
    body = b"\r\n\t\t\t\t \r\n" + pdf_bytes()
    world.paper(DOI, pdf_url=COPY, body=body)
    net.url(COPY, Reply(body=body, content_type=kind))
    assert run("fetch", DOI, "--json").json()["sha256"] == sha256(body)


def test_magic_after_the_first_kilobyte_is_no_pdf(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, pdf(b" " * 1024 + pdf_bytes()))
    expect(failure(run, DOI), "NO_OA_AVAILABLE", "not_a_pdf", "give_up")


# ---- redirects ----


def test_endless_redirects(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, redirect(COPY))
    answer = failure(run, DOI)
    expect(answer, "NETWORK_ERROR", "upstream_error", "retry")
    assert "redirect loop" in answer["error"]["message"]


def test_a_chain_of_many_redirects_stops_at_ten(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    base = "https://journals.plos.org"
    net.url(COPY, redirect(f"{base}/hop/1"))
    net.route(
        "journals.plos.org", re.compile(r"^/hop/"), lambda r: redirect(f"{base}/hop/{int(r.path.rsplit('/')[-1]) + 1}")
    )
    answer = failure(run, DOI)
    expect(answer, "NETWORK_ERROR", "upstream_error", "retry")
    assert len(net.requests(host="journals.plos.org")) == 10


@pytest.mark.parametrize(
    ("target", "reason", "forbidden"),
    [
        ("http://journals.plos.org/fake/1.pdf", "insecure_redirect", ""),
        ("https://journals.plos.org:8443/x.pdf", "insecure_redirect", ""),
        ("https://me:secret@journals.plos.org/x.pdf", "insecure_redirect", ""),
        ("ftp://journals.plos.org/x.pdf", "insecure_redirect", ""),
        ("file:///etc/passwd", "insecure_redirect", ""),
        ("http://169.254.169.254/latest/meta-data/", "insecure_redirect", "169.254.169.254"),
        ("https://169.254.169.254/latest/meta-data/", "private_address", "169.254.169.254"),
        ("https://[::1]/x.pdf", "private_address", "::1"),
        ("https://2130706433/x.pdf", "private_address", "2130706433"),
        ("https://0x7f.1/x.pdf", "private_address", "0x7f.1"),
        ("https://localhost/x.pdf", "private_address", "localhost"),
        ("https://printer.local/x.pdf", "private_address", "printer.local"),
        ("https://metadata.google.internal/x.pdf", "private_address", "metadata.google.internal"),
        ("https://elsewhere.example/x.pdf", "host_not_allowed", "elsewhere.example"),
        ("https://plos.org.evil.example/x.pdf", "host_not_allowed", "plos.org.evil.example"),
        ("https://storage.googleapis.com/another-bucket/x.pdf", "host_not_allowed", "storage.googleapis.com"),
    ],
)
def test_forbidden_redirects_are_never_followed(
    run: Runner, world: World, net: FakeInternet, target: str, reason: str, forbidden: str
) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, redirect(target))
    answer = failure(run, DOI)
    expect(answer, "CAPABILITY_DENIED", reason, "configure")
    assert not forbidden or forbidden not in net.connect_hosts()
    assert net.requests(host="journals.plos.org", path="/fake/1.pdf")


def test_redirect_to_listed_storage_and_subdomain_is_followed(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    signed = "https://storage.googleapis.com/plos-corpus-prod/1.pdf"
    net.url(COPY, redirect(signed))
    body = world.pdf(signed)
    answer = run("fetch", DOI, "--json").json()
    assert (answer["sha256"], answer["host"]) == (sha256(body), "storage.googleapis.com")


def test_wall_host_behind_a_redirect(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, redirect("https://validate.perfdrive.com/captcha"))
    expect(failure(run, DOI), "NO_OA_AVAILABLE", "blocked_by_host", "give_up")
    assert "validate.perfdrive.com" not in net.connect_hosts()


def test_doi_org_is_followed_and_what_is_behind_it_judged(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI)
    world.openalex_work(DOI, Location(f"https://doi.org/{DOI}", f"https://doi.org/{DOI}"))
    net.route("doi.org", f"/{DOI}", redirect("https://hdl.handle.net/x"))
    net.url("https://hdl.handle.net/x", redirect(COPY))
    body = world.pdf(COPY)
    assert run("fetch", DOI, "--json").json()["sha256"] == sha256(body)


# ---- which hosts ----


def test_lenient_allows_the_named_host_and_strict_does_not(run: Runner, world: World, net: FakeInternet) -> None:
    url = "https://eprints.uni.example/1.pdf"
    paper = world.paper(DOI, pdf_url=url)
    answer = failure(run, DOI, "--source-policy", "strict")
    expect(answer, "CAPABILITY_DENIED", "host_not_allowed", "configure")
    assert "eprints.uni.example" not in net.connect_hosts()
    assert run("fetch", DOI, "--json").json()["sha256"] == paper.sha256


def test_strict_in_the_configuration_cannot_be_loosened(run: Runner, world: World) -> None:
    world.paper(DOI, pdf_url="https://eprints.uni.example/1.pdf")
    answer = failure(run, DOI, "--source-policy", "lenient", env={"DOIGET_SOURCE_POLICY": "strict"})
    expect(answer, "CAPABILITY_DENIED", "host_not_allowed", "configure")


def test_named_host_may_redirect_below_itself_only(run: Runner, world: World, net: FakeInternet) -> None:
    url = "https://uni.example/1.pdf"
    world.paper(DOI, pdf_url=url)
    net.url(url, redirect("https://files.uni.example/1.pdf"))
    body = world.pdf("https://files.uni.example/1.pdf")
    assert run("fetch", DOI, "--json").json()["sha256"] == sha256(body)
    other = "10.1371/journal.fake.2"
    world.paper(other, pdf_url="https://files.uni2.example/1.pdf")
    net.url("https://files.uni2.example/1.pdf", redirect("https://uni2.example/1.pdf"))
    answer = run("fetch", other, "--json").json()
    expect(answer, "CAPABILITY_DENIED", "host_not_allowed", "configure")
    assert "uni2.example" not in net.connect_hosts()


def test_http_locations_are_asked_over_https(run: Runner, world: World) -> None:
    world.crossref_work(DOI)
    world.openalex_work(DOI, Location("http://journals.plos.org/fake/1.pdf", None))
    body = world.pdf(COPY)
    assert run("fetch", DOI, "--json").json()["sha256"] == sha256(body)


def test_landing_page_names_the_pdf(run: Runner, world: World, net: FakeInternet) -> None:
    """Case OA-01: the second location's PDF first, and the landing page's tag only when there is no better."""
    page = "https://journals.plos.org/article?id=1"
    world.crossref_work(DOI)
    world.openalex_work(
        DOI,
        Location(None, page),
        Location("https://europepmc.org/1.pdf", "https://europepmc.org/1", "submittedVersion"),
    )
    world.landing(page, COPY)
    direct, tagged = world.pdf("https://europepmc.org/1.pdf"), world.pdf(COPY)
    assert run("fetch", DOI, "--json").json()["sha256"] == sha256(direct)
    assert not net.requests(path="/article?id=1")
    other = "10.1371/journal.fake.2"
    world.crossref_work(other)
    world.openalex_work(other, Location(None, page))
    assert run("fetch", other, "--json").json()["sha256"] == sha256(tagged)


def test_landing_page_cannot_lead_to_a_foreign_host(run: Runner, world: World, net: FakeInternet) -> None:
    page = "https://journals.plos.org/article?id=1"
    world.crossref_work(DOI)
    world.openalex_work(DOI, Location(None, page))
    world.landing(page, "https://elsewhere.example/1.pdf")
    expect(failure(run, DOI), "CAPABILITY_DENIED", "host_not_allowed", "configure")
    assert "elsewhere.example" not in net.connect_hosts()


# ---- slow, throttled, huge, down ----


@pytest.mark.parametrize("stall_after", [0, 2000])
def test_a_stalling_host_ends_at_the_deadline(run: Runner, world: World, net: FakeInternet, stall_after: int) -> None:
    body = pdf_bytes(size=50_000)
    world.paper(DOI, pdf_url=COPY, body=body)
    net.url(COPY, pdf(body, stall_after=stall_after, stall_s=30))
    began = time.monotonic()
    answer = failure(run, DOI, "--timeout-s", "3")
    assert time.monotonic() - began < 15
    expect(answer, "FETCH_TIMEOUT", "deadline", "retry")


def test_429_with_retry_after_is_waited_for(run: Runner, world: World, net: FakeInternet) -> None:
    paper = world.paper(DOI, pdf_url=COPY)
    net.url(COPY, seq(Reply(429, "slow down", headers={"Retry-After": "2"}), pdf(paper.body)))
    assert run("fetch", DOI, "--json").json()["sha256"] == paper.sha256
    assert net.gaps(path="/fake/1.pdf")[0] >= 1.9


def test_429_beyond_the_deadline_is_answered_at_once(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, Reply(429, "slow down", headers={"Retry-After": "100"}))
    began = time.monotonic()
    answer = failure(run, DOI)
    assert time.monotonic() - began < 30
    expect(answer, "RATE_LIMITED", "source_limit", "retry")
    assert 95 <= answer["error"]["retry_after_s"] <= 100


def test_huge_length_is_refused_before_the_body(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, big_pdf(300_000_000))
    expect(failure(run, DOI), "CAPABILITY_DENIED", "too_large", "configure")
    assert net.requests(path="/fake/1.pdf")[0].bytes_sent < 20_000_000


@pytest.mark.parametrize(
    "body", [endless(first=b"%PDF-1.4\n"), gzip_bomb(10**9, first=b"%PDF-1.4\n")], ids=["endless", "bomb"]
)
def test_bodies_without_end_stop_at_the_cap(run: Runner, world: World, net: FakeInternet, body: Reply) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, body)
    expect(failure(run, DOI), "CAPABILITY_DENIED", "too_large", "configure")


def test_network_down_is_not_a_miss(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    result = run("fetch", DOI, "--json", env={"HTTPS_PROXY": net.dead_proxy_url})
    expect(result.json(), "NETWORK_ERROR", "unreachable", "retry")
    assert result.rc == 8
    assert net.connects() == []


def test_proxy_that_never_answers(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.silence()
    began = time.monotonic()
    result = run("fetch", DOI, "--json", "--timeout-s", "3")
    assert time.monotonic() - began < 15
    expect(result.json(), "FETCH_TIMEOUT", "deadline", "retry")
    assert result.rc == 9


def test_host_error_is_retried_and_reported_as_temporary(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.url(COPY, Reply(500, "oops"))
    answer = failure(run, DOI)
    expect(answer, "NETWORK_ERROR", "upstream_error", "retry")
    assert len(net.requests(path="/fake/1.pdf")) == 3


def test_temporary_failure_is_reported_before_a_final_one(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI)
    world.openalex_work(DOI, Location(COPY, None), Location("https://europepmc.org/2.pdf", None))
    world.wall(COPY)
    net.url("https://europepmc.org/2.pdf", Reply(502, "oops"))
    answer = failure(run, DOI)
    expect(answer, "NETWORK_ERROR", "upstream_error", "retry")
    assert attempt_outcomes(answer, "journals.plos.org") == ["blocked_by_host"]


def test_proxy_password_is_never_shown(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.require_auth("user", "right")
    proxy = net.proxy_url.replace("http://", "http://user:s3cret@")
    for form in ([], ["--json"]):
        result = run("fetch", DOI, *form, env={"HTTPS_PROXY": proxy})
        assert result.rc == 8
        assert "407" in result.out + result.err
        assert "s3cret" not in result.out + result.err
    log = run.home.config / "access.log"
    assert not log.exists() or "s3cret" not in log.read_text()


# ---- no copy ----


def test_closed_work_keeps_its_record(run: Runner, world: World) -> None:
    world.closed(DOI, title="A closed title")
    answer = failure(run, DOI)
    expect(answer, "NO_OA_AVAILABLE", "closed_access", "give_up")
    assert "A closed title" in Path(answer["metadata_path"]).read_text("utf-8")
    entry = run("info", DOI, "--json").json()["entry"]
    assert entry["path"] is None
    assert entry["title"] == "A closed title"
    assert run("path", DOI, "--json").json()["error"]["reason"] == "no_pdf_in_store"


def test_metadata_only_entry_is_no_store_hit(run: Runner, world: World) -> None:
    world.closed(DOI)
    failure(run, DOI)
    world.openalex_work(DOI, Location(COPY, None))
    body = world.pdf(COPY)
    assert run("fetch", DOI, "--json", "--no-cache").json()["sha256"] == sha256(body)


def test_unasked_index_is_not_closed_access(run: Runner, world: World, net: FakeInternet) -> None:
    world.crossref_work(DOI)
    net.unreachable("api.openalex.org")
    answer = failure(run, DOI)
    expect(answer, "NETWORK_ERROR", "unreachable", "retry")


def test_preprint_is_the_last_resort_and_labelled(run: Runner, world: World) -> None:
    world.arxiv_paper("2401.12345")
    relation = {"has-preprint": [{"id-type": "arxiv", "id": "2401.12345", "asserted-by": "subject"}]}
    world.closed(DOI, relation=relation)
    answer = run("fetch", DOI, "--json").json()
    assert answer["ok"] is True, answer
    assert (answer["ref"], answer["source"], answer["version"]) == (DOI, "arxiv", "submittedVersion")
    assert any("preprint arXiv:2401.12345" in warning for warning in answer["warnings"])


def test_an_article_that_was_withdrawn_has_no_other_versions(run: Runner, world: World) -> None:
    world.closed(DOI, title="WITHDRAWN: On things")
    expect(failure(run, DOI), "NO_OA_AVAILABLE", "closed_access", "give_up")


def test_withdrawn_arxiv_paper(run: Runner, world: World) -> None:
    world.arxiv_paper("2401.12345", versions=2, withdrawn={2})
    answer = failure(run, "arXiv:2401.12345")
    expect(answer, "NO_OA_AVAILABLE", "withdrawn", "give_up")


def test_retraction_is_flagged_on_fetch(run: Runner, world: World) -> None:
    from worlds import update

    world.paper(DOI, pdf_url=COPY, updated_by=[update("10.1371/notice.1")])
    answer = run("fetch", DOI, "--json").json()
    assert answer["retraction"]["status"] == "retracted"
    assert answer["retraction"]["notice_doi"] == "10.1371/notice.1"
    assert any("retracted" in warning for warning in answer["warnings"])


def test_every_attempt_is_in_the_log(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    world.crossref_work(DOI)
    world.openalex_work(
        DOI, Location(f"{COPY}?token=abc", None), Location("https://europepmc.org/2.pdf", None, "submittedVersion")
    )
    net.route("journals.plos.org", None, 403)
    body = world.pdf("https://europepmc.org/2.pdf")
    run("fetch", DOI)
    lines = [json.loads(line) for line in (home.config / "access.log").read_text().splitlines()]
    fetches = [line for line in lines if line.get("event") == "fetch"]
    assert [line["outcome"] for line in fetches] == ["blocked_by_host", "ok"]
    assert fetches[1]["sha256"] == sha256(body)
    assert "token" not in (home.config / "access.log").read_text()
    assert run("log", "verify").rc == 0


def test_nothing_is_fetched_when_it_cannot_be_logged(run: Runner, world: World, net: FakeInternet, home: Home) -> None:
    world.paper(DOI, pdf_url=COPY)
    foreign = home.root / "foreign.txt"
    foreign.write_text("somebody's notes\n")
    result = run("fetch", DOI, "--json", env={"DOIGET_ACCESS_LOG": str(foreign)})
    assert result.json()["error"]["reason"] == "log_unwritable"
    assert result.rc == 10
    assert foreign.read_text() == "somebody's notes\n"
    assert not net.requests(host="journals.plos.org")


def test_slow_api_answers_within_the_deadline(run: Runner, world: World, net: FakeInternet) -> None:
    world.paper(DOI, pdf_url=COPY)
    net.route("api.crossref.org", None, never())
    began = time.monotonic()
    expect(run("fetch", DOI, "--json", "--timeout-s", "2").json(), "FETCH_TIMEOUT", "deadline", "retry")
    assert time.monotonic() - began < 15
