"""Scholarly APIs in their true shape for a FakeInternet, filled by a test with a line per work.

    world = World(net)
    world.crossref_work("10.1000/abc", title="A title", authors=["Ada Lovelace"], date="2017-02-16")
    paper = world.paper("10.1000/open", title="An open one")     # Crossref + OpenAlex + a PDF that can be fetched
    world.arxiv_paper("2401.12345", versions=2)

Every API host is there from the start and answers for what it does not know as the real one does. A test that wants
another answer routes over it (`net.route("api.crossref.org", None, seq(500, world.crossref.answer))`). Lists come in an
order that is not the order asked for, and leave out what they do not know, as the real ones do.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape, quoteattr

from fake_internet import Answer, FakeInternet, Reply, Request, html, path_of, pdf, redirect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Json = dict[str, Any]

DROP: Any = object()  # as a field's value: leave the field out

# ############################################################################
# PDFs and pages
# ############################################################################


def pdf_chunks(text: str = "A paper", size: int = 0, block: int = 65536) -> Iterator[bytes]:
    """A valid one-page PDF that shows `text`, padded with comment lines to exactly `size` bytes, piece by piece."""
    shown = re.sub(r"([()\\])", r"\\\1", text.encode("ascii", "replace").decode())
    drawing = f"BT /F1 18 Tf 72 720 Td ({shown}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        ),
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(drawing), drawing),
    ]
    head, offsets = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(head))
        head += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    padding = _padding(len(head), len(offsets), size)
    yield head
    line = b"%" + b"x" * (block - 2) + b"\n"
    for start in range(0, padding, block):
        left = min(block, padding - start)
        yield line if left == block else (b"\n" if left == 1 else b"%" + b"x" * (left - 2) + b"\n")
    yield _pdf_tail(offsets, len(head) + padding)


def _pdf_tail(offsets: list[int], start: int) -> bytes:
    rows = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    table = b"xref\n0 %d\n0000000000 65535 f \n%b" % (len(offsets) + 1, rows)
    return table + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(offsets) + 1, start)


def _padding(head: int, objects: int, size: int) -> int:
    """How many bytes to put before the table so that the whole has `size` bytes."""
    padding = 0
    for _ in range(4):  # the offset's own digits count too
        padding = max(0, size - head - len(_pdf_tail([0] * objects, head + padding)))
    return padding


def pdf_bytes(text: str = "A paper", size: int = 0) -> bytes:
    return b"".join(pdf_chunks(text, size))


def big_pdf(size: int, text: str = "A big paper", **more: Any) -> Reply:
    """A PDF of `size` bytes that is never in memory as a whole."""
    return Reply(stream=lambda: pdf_chunks(text, size), length=size, content_type="application/pdf", **more)


def sha256(body: bytes | Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for block in [body] if isinstance(body, bytes) else body:
        digest.update(block)
    return digest.hexdigest()


WALLS = {  # what hosts send to programs instead of a paper
    "cloudflare": (
        403,
        (
            "<!DOCTYPE html><html><head><title>Just a moment...</title></head>"
            "<body><script src='/cdn-cgi/challenge-platform/h/b/orchestrate/cf-chl'></script></body></html>"
        ),
    ),
    "springer": (
        200,
        (
            "<!DOCTYPE html><html><head><title>Client Challenge</title></head>"
            "<body><script src='/_fs-ch-1T1wmsGaOgGaSxcX/script.js'></script></body></html>"
        ),
    ),
    "pmc": (
        200,
        (
            "<html><head><title>Preparing to download ...</title></head>"
            "<body><script>document.cookie='cloudpmc-viewer-pow=1,2'</script></body></html>"
        ),
    ),
    "anubis": (200, "<!doctype html><html><head><title>Making sure you're not a bot!</title></head></html>"),
    "captcha": (200, "<html><body><form action='/captcha'><div class='g-recaptcha'></div></form></body></html>"),
    "waf": (202, ""),
}


def wall(kind: str = "cloudflare", status: int | None = None, content_type: str | None = None) -> Reply:
    """A bot wall: cloudflare, springer, pmc, anubis, captcha or waf (202, empty)."""
    usual, text = WALLS[kind]
    headers = {"x-amzn-waf-action": "challenge"} if kind == "waf" else {}
    return Reply(status or usual, text, headers, content_type or "text/html; charset=utf-8")


def block_page(status: int = 200) -> Reply:
    """What a company's filter puts in the place of an answer."""
    return html(
        "<html><head><title>Access denied</title></head><body>This site is blocked by policy.</body></html>", status
    )


def landing_page(title: str = "A title", pdf_url: str | None = None, doi: str = "", **meta: str) -> str:
    """An article's page with the tags it carries for indexers."""
    tags = {"citation_title": title, "citation_doi": doi, "citation_pdf_url": pdf_url, **meta}
    lines = [f"<meta name={quoteattr(name)} content={quoteattr(value)}>" for name, value in tags.items() if value]
    head = f"<title>{escape(title)}</title>\n{''.join(lines)}"
    return f"<!DOCTYPE html><html><head>{head}</head><body>Abstract</body></html>"


# ############################################################################
# Small helpers
# ############################################################################


def name_of(author: Any) -> Json:
    """`"Ada Lovelace"`, `("Ada", "Lovelace")` or a finished dict, as Crossref writes it."""
    if isinstance(author, dict):
        return dict(author)
    given, family = author if isinstance(author, tuple) else author.rpartition(" ")[::2]
    return {"given": given, "family": family} if given else {"family": family}


def date_parts(date: str | int) -> Json:
    return {"date-parts": [[int(part) for part in str(date).split("-")]]}


def with_raw(record: Json, raw: Json) -> Json:
    """`record` with a test's own fields over it; DROP takes a field away."""
    return {name: value for name, value in (record | raw).items() if value is not DROP}


def short_code(text: str, digits: int = 9) -> int:
    """A number that belongs to `text`, the same in every run."""
    return zlib.crc32(text.encode()) % int(10**digits)


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def overlap(query: str, text: str) -> float:
    """The share of the query's words that the text has."""
    wanted, there = words_of(query), set(words_of(text))
    return sum(word in there for word in wanted) / len(wanted) if wanted else 0.0


def has_phrase(query: str, text: str) -> bool:
    """Whether a text holds one of the quoted phrases joined by OR, or (without quotes) all of the words."""
    phrases = re.findall(r'"([^"]*)"', query)
    there = f" {' '.join(words_of(text))} "
    return any(f" {' '.join(words_of(p))} " in there for p in phrases) if phrases else overlap(query, text) == 1


SEARCHED = re.compile(r"title|author|creator|issued|year|abstract|description", re.IGNORECASE)


def bibliographic(work: Json) -> str:
    """The text of a record that a search looks at, whichever API's record it is."""
    return json.dumps([value for name, value in work.items() if SEARCHED.search(name)], ensure_ascii=False)


def ranked(query: str, works: Iterable[Json]) -> list[tuple[float, Json]]:
    """Works that share a word with the query, best first."""
    scored = [(overlap(query, bibliographic(work)), work) for work in works]
    return sorted([pair for pair in scored if pair[0] > 0], key=lambda pair: -pair[0])


def ncbi_name(author: Any) -> str:
    name = name_of(author)
    return f"{name.get('family', name.get('name', ''))} {name.get('given', '')[:1]}".strip()


# ############################################################################
# doi.org
# ############################################################################


@dataclass
class Registered:
    doi: str
    agency: str
    url: str
    csl: Json | None = None


AGENCY_HOSTS = {  # where doi.org sends a request for metadata
    "Crossref": "https://api.crossref.org/v1/works/{doi}/transform",
    "DataCite": "https://data.crosscite.org/{doi}",
    "mEDRA": "https://data.medra.org/{doi}",
    "JaLC": "https://japanlinkcenter.org/data/{doi}",
    "KISTI": "https://data.doi.or.kr/{doi}",
}
CSL_TYPE = "application/vnd.citationstyles.csl+json"


class DoiOrg:
    """doiRA, the handle API, redirects, shortDOIs and content negotiation."""

    def __init__(self, net: FakeInternet) -> None:
        self.known: dict[str, Registered] = {}
        self.short: dict[str, str] = {}
        self.serve_csl_itself = False  # answer content negotiation here instead of sending it to the agency's host
        for host in ("doi.org", "dx.doi.org", "www.doi.org"):
            net.route(host, None, self.answer)
        for agency in ("mEDRA", "JaLC", "KISTI"):
            net.route(AGENCY_HOSTS[agency].split("/")[2], None, self.answer_agency)

    def register(self, doi: str, agency: str, url: str | None = None, csl: Json | None = None) -> Registered:
        url = url or f"https://publisher.example/article/{quote(doi)}"
        self.known[doi.lower()] = Registered(doi, agency, url, csl)
        return self.known[doi.lower()]

    def shorten(self, code: str, doi: str) -> str:
        """Make `10/<code>` an alias of `doi`."""
        self.short[code.lower()] = doi
        return f"10/{code}"

    def find(self, doi: str) -> Registered | None:
        code = doi.lower().removeprefix("10/")
        return self.known.get(self.short.get(code, doi).lower())

    def answer(self, request: Request) -> Answer:
        path = request.decoded_path.lstrip("/")
        if path.startswith("doiRA/"):
            return [self._agency_row(doi) for doi in path.removeprefix("doiRA/").split(",")]
        if path.startswith("api/handles/"):
            return self._handle(path.removeprefix("api/handles/"), request)
        found = self.find(path)
        if found is None:
            return html("<html><head><title>Error: DOI Not Found</title></head></html>", 404)
        wants = request.headers.get("accept", "")
        if "citationstyles" not in wants and "citeproc" not in wants:
            return redirect(found.url)
        if self.serve_csl_itself and found.csl is not None:
            return Reply(body=found.csl, content_type=CSL_TYPE)
        return redirect(AGENCY_HOSTS.get(found.agency, found.url).format(doi=path_of(found.doi)))

    def answer_agency(self, request: Request) -> Answer:
        found = self.find(request.decoded_path.lstrip("/").removeprefix("data/"))
        if found is None or found.csl is None:
            return html("<html><body>not found</body></html>", 404)
        return Reply(body=found.csl, content_type=CSL_TYPE)

    def _agency_row(self, doi: str) -> Json:
        if not re.match(r"10\.\d+(/|$)", doi):
            return {"DOI": doi, "status": "Invalid DOI"}
        if "/" not in doi:
            agencies = [known.agency for key, known in self.known.items() if key.startswith(doi.lower() + "/")]
            return {"DOI": doi, "RA": agencies[0]} if agencies else {"DOI": doi, "status": "Unknown"}
        found = self.find(doi)
        return {"DOI": doi, "RA": found.agency} if found else {"DOI": doi, "status": "DOI does not exist"}

    def _handle(self, handle: str, request: Request) -> Answer:
        code = handle.lower().removeprefix("10/")
        alias = self.short.get(code) if handle.lower().startswith("10/") else None
        found = self.known.get(handle.lower())
        value = {"HS_ALIAS": alias} if alias else {"URL": found.url} if found else {}
        if not value:
            return Reply(404, {"responseCode": 100, "handle": handle})
        wanted = request.query.get("type")
        rows = [
            {
                "index": 1,
                "type": kind,
                "data": {"format": "string", "value": text},
                "ttl": 86400,
                "timestamp": "2020-01-01T00:00:00Z",
            }
            for kind, text in value.items()
            if wanted in (None, kind)
        ]
        return {"responseCode": 1 if rows else 200, "handle": handle, **({"values": rows} if rows else {})}


# ############################################################################
# Crossref
# ############################################################################

SELECTABLE = frozenset(
    """
    abstract URL resource member posted score created degree update-policy short-title license ISSN container-title
    issued update-to issue prefix approved indexed article-number clinical-trial-number accepted author group-title
    DOI is-referenced-by-count updated-by event chair standards-body original-title funder translator published
    archive published-print alternative-id subject subtitle published-online publisher-location content-domain
    reference title link type publisher volume references-count ISBN issn-type assertion deposited page content-
    created short-container-title relation editor
    """.split()  # noqa: SIM905 - sixty quoted words read worse
)
FIELD_QUERIES = {
    "affiliation",
    "author",
    "bibliographic",
    "chair",
    "container-title",
    "contributor",
    "degree",
    "description",
    "editor",
    "event-acronym",
    "event-location",
    "event-name",
    "event-sponsor",
    "event-theme",
    "funder-name",
    "publisher-location",
    "publisher-name",
    "standards-body-acronym",
    "standards-body-name",
    "translator",
}
LIST_PARAMETERS = {
    "filter",
    "rows",
    "offset",
    "cursor",
    "select",
    "mailto",
    "query",
    "sort",
    "order",
    "sample",
    "facet",
}


def crossref_message(
    doi: str,
    *,
    title: Any = "A title",
    authors: Iterable[Any] = ("Ada Lovelace",),
    date: str | int | None = "2020-03-04",
    container: str | None = "Journal of Examples",
    references: Iterable[str] = (),
    **raw: Any,
) -> Json:
    """A Crossref work as `/works/{doi}` holds it in `message`. `raw` sets fields by Crossref's own names (with `_`
    for `-`), DROP removes them."""
    stamp = {"date-parts": [[2020, 3, 5]], "date-time": "2020-03-05T06:07:08Z", "timestamp": 1583388428000}
    titles = [title] if isinstance(title, str) else title
    people = [
        name_of(a) | {"sequence": "additional" if n else "first", "affiliation": []} for n, a in enumerate(authors)
    ]
    issued = {"date-parts": [[None]]} if date is None else date_parts(date)
    cited = [{"key": f"ref{n}", "doi-asserted-by": "publisher", "DOI": ref} for n, ref in enumerate(references, 1)]
    message: Json = {
        "indexed": stamp,
        "reference-count": len(cited),
        "publisher": "Example Press",
        "issue": "2",
        "license": [],
        "content-domain": {"domain": [], "crossmark-restriction": False},
        "short-container-title": ["J. Ex."] if container else [],
        "DOI": doi.lower(),
        "type": "journal-article",
        "created": stamp,
        "page": "11-22",
        "source": "Crossref",
        "is-referenced-by-count": 3,
        "title": titles,
        "prefix": doi.split("/", maxsplit=1)[0],
        "volume": "7",
        "author": people,
        "member": "9999",
        "reference": cited,
        "container-title": [container] if container else [],
        "original-title": [],
        "language": "en",
        "link": [],
        "deposited": stamp,
        "score": 1,
        "resource": {"primary": {"URL": f"https://publisher.example/article/{quote(doi)}"}},
        "subtitle": [],
        "short-title": [],
        "issued": issued,
        "references-count": len(cited),
        "journal-issue": {"issue": "2"},
        "URL": f"http://dx.doi.org/{doi.lower()}",
        "relation": {},
        "ISSN": ["1234-5679"],
        "issn-type": [{"value": "1234-5679", "type": "electronic"}],
        "published": issued,
    }
    return with_raw(message, {name.replace("_", "-"): value for name, value in raw.items()})


def update(doi: str, kind: str = "retraction", source: str = "publisher", date: str = "2022-05-06") -> Json:
    """One item of `updated_by=[…]` (on the work, with the notice's DOI) or `update_to=[…]` (on the notice)."""
    item = {
        "DOI": doi,
        "type": kind,
        "label": kind.replace("_", " ").capitalize(),
        "source": source,
        "updated": date_parts(date) | {"date-time": f"{date}T00:00:00Z", "timestamp": 1651795200000},
    }
    return item | ({"record-id": "12345"} if source == "retraction-watch" else {})


def csl_item(message: Json) -> Json:
    """A Crossref message as content negotiation gives it: titles are plain text there."""
    flat = dict(message)
    for name in ("title", "container-title", "short-container-title", "subtitle"):
        value = flat.get(name)
        if isinstance(value, list):
            flat[name] = value[0] if value else ""
    return flat


def crossref_failure(kind: str, value: str, message: str) -> Reply:
    body = {
        "status": "failed",
        "message-type": "validation-failure",
        "message": [{"type": kind, "value": value, "message": message}],
    }
    return Reply(400, body)


class Crossref:
    """api.crossref.org: singles, lists, agency, transform."""

    def __init__(self, net: FakeInternet, doi_org: DoiOrg) -> None:
        self.works: dict[str, Json] = {}
        self.aliases: dict[str, str] = {}
        self.registers: dict[str, list[Json]] = {"journals": [], "funders": []}
        self._doi_org = doi_org
        net.route("api.crossref.org", None, self.answer)

    def add(self, doi: str, **fields: Any) -> Json:
        return self.put(crossref_message(doi, **fields), doi)

    def put(self, message: Json, doi: str | None = None) -> Json:
        """Take a finished `message`, for instance a recorded one."""
        doi = doi or message["DOI"]
        self.works[doi.lower()] = message
        self._doi_org.register(doi, "Crossref")
        return message

    def alias(self, old: str, prime: str) -> None:
        """Make `old` an alias: a single is sent on to the prime DOI, lists leave it out."""
        self.aliases[old.lower()] = prime
        self._doi_org.register(old, "Crossref")

    def answer(self, request: Request) -> Answer:
        path = request.path.removeprefix("/v1")
        if path.rstrip("/") == "/works":
            return self._pooled(request, self._list(request), "array")
        if match := re.fullmatch(r"/(journals|funders)(?:/([\w-]+)/works)?", path):
            return self._pooled(request, self._registered(match[1], match[2], request), "array")
        if not path.startswith("/works/"):
            body = {
                "status": "error",
                "message-type": "route-not-found",
                "message-version": "1.0.0",
                "message": "Route not found",
            }
            return Reply(404, body)
        return self._pooled(request, self._single(unquote(path.removeprefix("/works/")), request), "single")

    def _pooled(self, request: Request, reply: Reply, kind: str) -> Reply:
        polite = "mailto" in request.query or "mailto:" in request.headers.get("user-agent", "")
        limit = {("single", True): "10", ("single", False): "5", ("array", True): "3", ("array", False): "1"}
        reply.headers |= {
            "x-rate-limit-limit": limit[kind, polite],
            "x-rate-limit-interval": "1s",
            "x-concurrency-limit": "3" if polite else "1",
            "x-api-pool": f"{'polite' if polite else 'public'}-{kind}",
        }
        return reply

    def _single(self, rest: str, request: Request) -> Reply:
        unknown = set(request.query) - {"mailto"}
        if unknown:
            name = min(unknown)
            return crossref_failure("parameter-not-allowed", name, f"This route does not support {name}")
        doi, _, verb = rest.rpartition("/") if rest.endswith(("/agency", "/transform")) else (rest, "", "")
        doi, verb = (rest.split("/transform/", maxsplit=1)[0], "transform") if "/transform/" in rest else (doi, verb)
        if verb == "agency":
            return self._agency(doi)
        if doi.lower() in self.aliases:
            return redirect(f"https://api.crossref.org/works/{path_of(self.aliases[doi.lower()])}", 301)
        work = self.works.get(doi.lower())
        if work is None:
            return Reply(404, "Resource not found.", content_type="text/plain;charset=utf-8")
        if verb == "transform":
            return Reply(body=csl_item(work), content_type=CSL_TYPE)
        return Reply(body={"status": "ok", "message-type": "work", "message-version": "1.0.0", "message": work})

    def _agency(self, doi: str) -> Reply:
        found = self._doi_org.find(doi)
        if found is None:
            return Reply(404, "Resource not found.", content_type="text/plain;charset=utf-8")
        message = {"DOI": doi.lower(), "agency": {"id": found.agency.lower(), "label": found.agency}}
        return Reply(
            body={"status": "ok", "message-type": "work-agency", "message-version": "1.0.0", "message": message}
        )

    def add_journal(self, title: str, *issns: str, publisher: str = "Example Press") -> Json:
        """A journal as `/journals` lists it."""
        counts = {"total-dois": 1234, "current-dois": 234, "backfile-dois": 1000}
        subjects = [{"ASJC": 3100, "name": "General Physics and Astronomy"}]
        kinds = [{"value": issn, "type": "electronic"} for issn in issns]
        journal = {"title": title, "publisher": publisher, "ISSN": [*issns], "issn-type": kinds, "subjects": subjects}
        self.registers["journals"].append({**journal, "counts": counts, "coverage": {}, "flags": {}, "breakdowns": {}})
        return journal

    def add_funder(self, number: str, name: str, *others: str, location: str = "United Kingdom") -> Json:
        """A funder as `/funders` lists it."""
        funder = {"id": number, "name": name, "location": location, "alt-names": [*others], "tokens": words_of(name)}
        more = {"uri": f"http://dx.doi.org/10.13039/{number}", "replaces": [], "replaced-by": []}
        self.registers["funders"].append(funder | more)
        return funder

    def _registered(self, kind: str, ident: str | None, request: Request) -> Reply:
        rows = self.registers[kind]
        if ident:
            if not any(ident in (row.get("id"), *row.get("ISSN", [])) for row in rows):
                return Reply(404, "Resource not found.", content_type="text/plain;charset=utf-8")
            names = {"journals": lambda work: work.get("ISSN", []), "funders": funders_of}
            return self._list(request, [work for work in self.works.values() if ident in names[kind](work)])
        if wrong := set(request.query) - {"query", "rows", "offset", "mailto"}:
            return crossref_failure("parameter-not-allowed", min(wrong), f"This route does not support {min(wrong)}")
        rows = [row for row in rows if overlap(request.query.get("query", ""), json.dumps(row)) > 0]
        start, size = int(request.query.get("offset", 0)), int(request.query.get("rows", 20))
        message = {"items-per-page": size, "total-results": len(rows), "items": rows[start : start + size]}
        kinds = {"journals": "journal-list", "funders": "funder-list"}
        return Reply(body={"status": "ok", "message-type": kinds[kind], "message-version": "1.0.0", "message": message})

    def _list(self, request: Request, among: list[Json] | None = None) -> Reply:
        query = request.query
        for name in query:
            if name not in LIST_PARAMETERS and name.removeprefix("query.") not in FIELD_QUERIES:
                return crossref_failure("parameter-not-found", name, f"Unknown parameter {name}")
        if wrong := set(query.get("select", "DOI").split(",")) - SELECTABLE:
            return crossref_failure("parameter-not-allowed", min(wrong), f"Select {min(wrong)} is not valid")
        rows, offset = int(query.get("rows", 20)), int(query.get("offset", 0))
        if rows > 1000 or offset > 10000:
            return crossref_failure("integer-not-valid", str(rows), "rows up to 1000, offset up to 10000")
        try:
            works = self._filtered(query.get("filter", ""))
            works = works if among is None else [work for work in works if work in among]
        except KeyError as exc:
            return crossref_failure(
                "filter-not-available", str(exc), f"Filter {exc} specified but there is no such filter"
            )
        return self._page(request, self._found(query, works), rows, offset)

    def _filtered(self, text: str) -> list[Json]:
        wanted: dict[str, list[str]] = {}
        for part in text.split(",") if text else []:
            name, _, value = part.partition(":")
            wanted.setdefault(name, []).append(value)
        tests: dict[str, Callable[[Json, list[str]], bool]] = {
            "doi": lambda work, values: str(work.get("DOI")).lower() in [value.lower() for value in values],
            "type": lambda work, values: work.get("type") in values,
            "updates": lambda work, values: any(u["DOI"].lower() in values for u in work.get("update-to", [])),
            "is-update": lambda work, _: bool(work.get("update-to")),
            "update-type": lambda work, values: any(u["type"] in values for u in work.get("update-to", [])),
            "from-pub-date": lambda work, values: _year(work) >= int(values[0][:4]),
            "until-pub-date": lambda work, values: _year(work) <= int(values[0][:4]),
            "has-abstract": lambda work, _: "abstract" in work,
            "issn": lambda work, values: bool(set(values) & set(work.get("ISSN", []))),
            "relation.type": lambda work, values: bool(set(values) & set(work.get("relation", {}))),
            "relation.object": lambda work, values: any(
                part["id"].lower() in values for parts in work.get("relation", {}).values() for part in parts
            ),
        }
        checks = [(tests[name], values) for name, values in wanted.items()]
        return [work for key, work in sorted(self.works.items(), reverse=True) if all(t(work, v) for t, v in checks)]

    def _found(self, query: dict[str, str], works: list[Json]) -> list[Json]:
        text = " ".join(value for name, value in query.items() if name.split(".")[0] == "query")
        if not text:
            return works
        return [work | {"score": round(40 * score, 4)} for score, work in ranked(text, works)]

    def _page(self, request: Request, works: list[Json], rows: int, offset: int) -> Reply:
        query = request.query
        more: Json = {}
        if cursor := query.get("cursor"):
            if cursor != "*" and not cursor.startswith("AoJ/"):
                failure = {"type": "cursor-invalid", "value": cursor, "message": "Cursor specified but it is invalid"}
                return Reply(404, {"status": "failed", "message-type": "resource-failure", "message": [failure]})
            offset = 0 if cursor == "*" else int(cursor.split("/")[1].rstrip("="))
            more = {"next-cursor": f"AoJ/{offset + rows}=="}
        fields = query["select"].split(",") if "select" in query else None
        items = [
            {name: work[name] for name in work if fields is None or name in fields}
            for work in works[offset : offset + rows]
        ]
        message = {
            "facets": {},
            **more,
            "total-results": len(works),
            "items": items,
            "items-per-page": rows,
            "query": {"start-index": offset, "search-terms": query.get("query")},
        }
        return Reply(body={"status": "ok", "message-type": "work-list", "message-version": "1.0.0", "message": message})


def funders_of(work: Json) -> list[str]:
    return [str(funder.get("DOI")).rpartition("/")[2] for funder in work.get("funder", [])]


def _year(work: Json) -> int:
    match = re.search(r"\d{4}", json.dumps(work.get("issued")))
    return int(match[0]) if match else 0


# ############################################################################
# DataCite
# ############################################################################


def datacite_creator(author: Any) -> Json:
    name = name_of(author)
    if "name" in name:
        return {"nameType": "Organizational", "affiliation": [], "nameIdentifiers": []} | name
    given, family = name.get("given", ""), name["family"]
    return {
        "name": f"{family}, {given}" if given else family,
        "nameType": "Personal",
        "givenName": given,
        "familyName": family,
        "affiliation": [],
        "nameIdentifiers": [],
    }


def datacite_attributes(
    doi: str,
    *,
    title: str = "A dataset",
    authors: Iterable[Any] = ("Ada Lovelace",),
    year: int = 2021,
    kind: str = "Dataset",
    publisher: Any = "Zenodo",
    **raw: Any,
) -> Json:
    """The `attributes` of a DataCite DOI; `raw` sets fields by DataCite's own names."""
    prefix, _, suffix = doi.lower().partition("/")
    attributes: Json = {
        "doi": doi.lower(),
        "prefix": prefix,
        "suffix": suffix,
        "identifiers": [],
        "alternateIdentifiers": [],
        "creators": [datacite_creator(author) for author in authors],
        "titles": [{"title": title}],
        "publisher": publisher,
        "container": {},
        "publicationYear": year,
        "subjects": [],
        "contributors": [],
        "dates": [{"date": f"{year}-05-06", "dateType": "Issued", "dateInformation": None}],
        "language": None,
        "types": {
            "ris": "GEN",
            "bibtex": "misc",
            "citeproc": "article",
            "schemaOrg": "CreativeWork",
            "resourceType": "",
            "resourceTypeGeneral": kind,
        },
        "relatedIdentifiers": [],
        "relatedItems": [],
        "sizes": [],
        "formats": [],
        "version": None,
        "rightsList": [
            {
                "rights": "Creative Commons Attribution 4.0 International",
                "rightsIdentifier": "cc-by-4.0",
                "rightsUri": "https://creativecommons.org/licenses/by/4.0/legalcode",
                "schemeUri": "https://spdx.org/licenses/",
                "rightsIdentifierScheme": "SPDX",
            }
        ],
        "descriptions": [],
        "geoLocations": [],
        "fundingReferences": [],
        "url": f"https://repository.example/record/{quote(suffix)}",
        "contentUrl": None,
        "metadataVersion": 0,
        "schemaVersion": "http://datacite.org/schema/kernel-4",
        "source": "mds",
        "isActive": True,
        "state": "findable",
        "reason": None,
        "viewCount": 0,
        "downloadCount": 0,
        "referenceCount": 0,
        "citationCount": 0,
        "created": f"{year}-05-06T07:08:09.000Z",
        "registered": f"{year}-05-06T07:08:09.000Z",
        "published": str(year),
        "updated": f"{year}-05-06T07:08:09.000Z",
    }
    return with_raw(attributes, raw)


class DataCite:
    """api.datacite.org, and data.crosscite.org for content negotiation."""

    def __init__(self, net: FakeInternet, doi_org: DoiOrg) -> None:
        self.works: dict[str, Json] = {}
        self._doi_org = doi_org
        net.route("api.datacite.org", None, self.answer)
        net.route("data.crosscite.org", None, self._csl)

    def add(self, doi: str, **fields: Any) -> Json:
        return self.put(datacite_attributes(doi, **fields))

    def put(self, attributes: Json) -> Json:
        """Take finished `attributes`, for instance recorded ones."""
        self.works[attributes["doi"].lower()] = attributes
        self._doi_org.register(attributes["doi"], "DataCite", attributes.get("url"))
        return attributes

    def answer(self, request: Request) -> Answer:
        path = request.decoded_path.rstrip("/")
        if path == "/dois":
            return self._list(request)
        work = self.works.get(path.removeprefix("/dois/").lower())
        if not path.startswith("/dois/") or work is None:
            return Reply(
                404, {"errors": [{"status": "404", "title": "The resource you are looking for doesn't exist."}]}
            )
        return {"data": self._resource(work)}

    def _resource(self, attributes: Json) -> Json:
        none: Json = {"data": []}
        return {
            "id": attributes["doi"],
            "type": "dois",
            "attributes": attributes,
            "relationships": {
                "client": {"data": {"id": "example.repo", "type": "clients"}},
                "media": none,
                "references": none,
                "citations": none,
                "versions": none,
                "versionOf": none,
            },
        }

    def _list(self, request: Request) -> Answer:
        query = request.query
        works = [work for _, work in sorted(self.works.items(), reverse=True)]
        if "ids" in query:
            wanted = {doi.strip().lower() for doi in query["ids"].split(",")}
            works, size = [work for work in works if work["doi"] in wanted], 1000
        else:
            kind = query.get("resource-type-id", "").lower()
            works = [work for work in works if kind in {"", work["types"]["resourceTypeGeneral"].lower()}]
            works, size = self._searched(query.get("query", ""), works), 25
        size, page = int(query.get("page[size]", size)), int(query.get("page[number]", 1))
        if size > 1000 or size * page > 10_000:
            return Reply(400, {"errors": [{"status": "400", "title": "page out of range"}]})
        shown = works[size * (page - 1) : size * page]
        here = "https://api.datacite.org/dois"
        links = {"self": f"{here}?page%5Bsize%5D={size}&page%5Bnumber%5D={page}"}
        if size * page < len(works):
            links["next"] = f"{here}?page%5Bnumber%5D={page + 1}&page%5Bsize%5D={size}"
        meta = {"total": len(works), "totalPages": -(-len(works) // size) if size else 0, "page": page}
        return {"data": [self._resource(work) for work in shown], "meta": meta, "links": links}

    def _searched(self, text: str, works: list[Json]) -> list[Json]:
        if years := re.search(r"(?: AND )?publicationYear:\[(\S+) TO (\S+)\]", text):
            low, high = (
                int(year) if year != "*" else edge for year, edge in zip(years.groups(), (0, 9999), strict=True)
            )
            text, works = text.replace(years[0], ""), [w for w in works if low <= w["publicationYear"] <= high]
        if related := re.fullmatch(r"relatedIdentifiers\.relatedIdentifier:\((.+?)\) AND .+:\((.+)\)", text):
            ids, kinds = re.findall(r'"([^"]+)"', related[1]), related[2].split(" OR ")
            found = lambda part: part["relatedIdentifier"] in ids and part["relationType"] in kinds  # noqa: E731
            return [work for work in works if any(map(found, work["relatedIdentifiers"]))]
        if dois := re.findall(r'"(10\.[^"]+)"', text):
            return [work for work in works if work["doi"] in {doi.lower() for doi in dois}]
        if text.startswith("titles.title:"):
            return [work for work in works if has_phrase(text, work["titles"][0]["title"])]
        return [work for _, work in ranked(text, works)] if text else works

    def _csl(self, request: Request) -> Answer:
        work = self.works.get(request.decoded_path.lstrip("/").lower())
        if work is None:
            return html("<h1>The page you are looking for doesn't exist.</h1>", 404)
        people = [
            {"family": c.get("familyName"), "given": c.get("givenName")}
            if c.get("familyName")
            else {"literal": c["name"]}
            for c in work["creators"]
        ]
        item = {
            "type": "article",
            "id": f"https://doi.org/{work['doi']}",
            "DOI": work["doi"],
            "author": people,
            "issued": {"date-parts": [[work["publicationYear"]]]},
            "publisher": work["publisher"],
            "title": work["titles"][0]["title"],
            "URL": work["url"],
        }
        return Reply(body=item, content_type=CSL_TYPE)


# ############################################################################
# arXiv
# ############################################################################

ARXIV_ID = re.compile(r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v([1-9]\d*))?", re.ASCII)
ATOM_HEAD = (
    "<?xml version='1.0' encoding='UTF-8'?>\n"
    '<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom" '
    'xmlns="http://www.w3.org/2005/Atom">\n'
)


@dataclass
class ArxivPaper:
    id: str
    title: str = "A preprint"
    authors: Iterable[str] = ("Ada Lovelace", "Charles Babbage")
    summary: str = "We show a thing."
    versions: int = 1
    withdrawn: frozenset[int] | set[int] = frozenset()  # versions without a PDF
    category: str = "cs.DL"
    published: str = "2024-01-23T10:11:12Z"
    updated: str = "2024-02-03T04:05:06Z"
    comment: str = "12 pages"
    doi: str | None = None
    journal_ref: str | None = None

    def pdf(self, version: int | None = None) -> bytes:
        """The PDF of a version (the newest if none is named); each version's bytes differ."""
        return pdf_bytes(f"{self.id} version {version or self.versions}")

    def entry(self, version: int) -> str:
        here = f"{self.id}v{version}"
        comment = "This paper has been withdrawn by the authors" if version in self.withdrawn else self.comment
        people = "".join(f"<author><name>{escape(name)}</name></author>\n" for name in self.authors)
        lines = [
            f"<id>http://arxiv.org/abs/{here}</id>",
            f"<title>{escape(self.title)}</title>",
            f"<updated>{self.updated if version > 1 else self.published}</updated>",
            f'<link href="https://arxiv.org/abs/{here}" rel="alternate" type="text/html"/>',
            f'<link href="https://arxiv.org/pdf/{here}" rel="related" type="application/pdf" title="pdf"/>',
            f"<summary>{escape(self.summary)}</summary>",
            f'<category term="{self.category}" scheme="http://arxiv.org/schemas/atom"/>',
            f"<published>{self.published}</published>",
            f"<arxiv:comment>{escape(comment)}</arxiv:comment>",
            f'<arxiv:primary_category term="{self.category}"/>',
        ]
        if self.journal_ref:
            lines.append(f"<arxiv:journal_ref>{escape(self.journal_ref)}</arxiv:journal_ref>")
        lines.append(people)
        if self.doi:
            lines.append(f"<arxiv:doi>{escape(self.doi)}</arxiv:doi>")
            lines.append(f'<link rel="related" href="https://doi.org/{escape(self.doi)}" title="doi"/>')
        return "<entry>\n" + "\n".join(lines) + "\n</entry>\n"


class Arxiv:
    """export.arxiv.org and arxiv.org: the query API, PDFs and abstract pages."""

    def __init__(self, net: FakeInternet) -> None:
        self.papers: dict[str, ArxivPaper] = {}
        for host in ("export.arxiv.org", "arxiv.org", "www.arxiv.org"):
            net.route(host, None, self.answer)

    def add(self, arxiv_id: str, **fields: Any) -> ArxivPaper:
        self.papers[arxiv_id] = ArxivPaper(arxiv_id, **fields)
        return self.papers[arxiv_id]

    def answer(self, request: Request) -> Answer:
        path = request.decoded_path
        if path == "/api/query":
            return self._query(request)
        for part, serve in (("/pdf/", self._pdf), ("/abs/", self._page)):
            if path.startswith(part):
                return serve(path.removeprefix(part), request)
        return html("<h1>404 Not Found</h1>", 404)

    def throttled(self, status: int = 429) -> Reply:
        return Reply(status, "Rate exceeded.", content_type="text/plain")

    def _version(self, text: str) -> tuple[ArxivPaper, int] | None:
        match = ARXIV_ID.fullmatch(text)
        paper = self.papers.get(re.sub(r"\.[A-Z]{2}/", "/", match[1])) if match else None
        if match is None or paper is None:
            return None
        version = int(match[2] or paper.versions)
        return (paper, version) if version <= paper.versions else None

    def _query(self, request: Request) -> Reply:
        query = request.form if request.method == "POST" else request.query
        ids = [text.strip() for text in query.get("id_list", "").split(",") if text.strip()]
        if request.method == "GET" and len(ids) >= 640:
            return html("<h1>414 Request-URI Too Large</h1>", 414)
        for text in ids:
            if not ARXIV_ID.fullmatch(text):
                return self._atom([self._error(f"incorrect id format for {text}")], 1, 0, 1, status=400)
        found = [pair for pair in map(self._version, reversed(ids)) if pair]
        if not ids:
            found = self._searched(query.get("search_query", ""))
            if query.get("sortBy") == "submittedDate":
                found.sort(key=lambda pair: pair[0].published, reverse=query.get("sortOrder") == "descending")
        start, size = int(query.get("start", 0)), int(query.get("max_results", 10))
        if size > 2000 or start + size > 30_000:
            return self._atom([self._error("max_results must be at most 2000")], 1, 0, 1, status=400)
        entries = [paper.entry(version) for paper, version in found[start : start + size]]
        return self._atom(entries, len(found), start, size)

    def _searched(self, text: str) -> list[tuple[ArxivPaper, int]]:
        years = re.search(r"submittedDate:\[(\d{4})\d* TO (\d{4})\d*\]", text)
        plain = re.sub(r"submittedDate:\[.*?\]|\b(ti|au|abs|co|jr|cat|rn|id|all|AND|OR|ANDNOT)\b:?", " ", text)
        among = [p for p in self.papers.values() if not years or years[1] <= p.published[:4] <= years[2]]
        wanted = re.findall(r"\bcat:([\w.*-]+)", text)
        among = [p for p in among if all(fnmatchcase(p.category, name) for name in wanted)]
        scored = [(overlap(plain, " ".join([p.title, p.summary, p.category, *p.authors])), p) for p in among]
        return [(p, p.versions) for score, p in sorted(scored, key=lambda pair: -pair[0]) if score > 0]

    def _error(self, text: str) -> str:
        where = f"https://arxiv.org/api/errors#{text.replace(' ', '_')}"
        return (
            f"<entry>\n<id>{escape(where)}</id>\n<title>Error</title>\n<updated>2026-01-01T00:00:00Z</updated>\n"
            f"<summary>{escape(text)}</summary>\n<author><name>arXiv api core</name></author>\n</entry>\n"
        )

    def _atom(self, entries: list[str], total: int, start: int, size: int, status: int = 200) -> Reply:
        head = (
            "<id>https://arxiv.org/api/x</id>\n<title>arXiv Query</title>\n<updated>2026-01-01T00:00:00Z</updated>\n"
            f"<opensearch:itemsPerPage>{size}</opensearch:itemsPerPage>\n"
            f"<opensearch:totalResults>{total}</opensearch:totalResults>\n"
            f"<opensearch:startIndex>{start}</opensearch:startIndex>\n"
        )
        return Reply(status, ATOM_HEAD + head + "".join(entries) + "</feed>\n", content_type="application/atom+xml")

    def _pdf(self, text: str, request: Request) -> Answer:
        if text.endswith(".pdf"):
            return redirect(f"https://{request.host}/pdf/{text.removesuffix('.pdf')}", 301)
        pair = self._version(text)
        if pair is None or pair[1] in pair[0].withdrawn:
            return html(f"<html><head><title>PDF unavailable for {escape(text)}</title></head></html>", 404)
        return pdf(pair[0].pdf(pair[1]))

    def _page(self, text: str, _request: Request) -> Answer:
        pair = self._version(text)
        if pair is None:
            return html("<h1>Article not found</h1>", 404)
        url = None if pair[1] in pair[0].withdrawn else f"https://arxiv.org/pdf/{pair[0].id}"
        return html(landing_page(pair[0].title, url, citation_arxiv_id=pair[0].id))


# ############################################################################
# OpenAlex and Unpaywall
# ############################################################################


@dataclass
class Location:
    """One OA copy as the indexes describe it."""

    pdf: str | None = None
    landing: str | None = None
    version: str | None = "publishedVersion"
    license: str | None = "cc-by"
    repository: bool = False
    is_oa: bool = True
    name: str = "Example Host"

    def openalex(self) -> Json:
        kind = "repository" if self.repository else "journal"
        source: Json = {
            "id": f"https://openalex.org/S{short_code(self.name)}",
            "display_name": self.name,
            "issn_l": None,
            "issn": None,
            "is_oa": self.is_oa,
            "is_in_doaj": False,
            "is_core": False,
            "host_organization": None,
            "host_organization_name": self.name,
            "host_organization_lineage": [],
            "type": kind,
        }
        return {
            "id": None,
            "is_oa": self.is_oa,
            "landing_page_url": self.landing or self.pdf,
            "pdf_url": self.pdf,
            "source": source,
            "license": self.license,
            "license_id": f"https://openalex.org/licenses/{self.license}" if self.license else None,
            "version": self.version,
            "is_accepted": self.version in ("acceptedVersion", "publishedVersion"),
            "is_published": self.version == "publishedVersion",
            "raw_source_name": self.name,
            "raw_type": None,
        }

    def unpaywall(self, *, best: bool) -> Json:
        return {
            "url": self.pdf or self.landing,
            "pmh_id": None,
            "is_best": best,
            "license": self.license,
            "oa_date": "2020-03-04",
            "updated": "deprecated",
            "version": self.version,
            "evidence": "deprecated",
            "host_type": "repository" if self.repository else "publisher",
            "endpoint_id": None,
            "url_for_pdf": self.pdf,
            "url_for_landing_page": self.landing or self.pdf,
            "repository_institution": self.name if self.repository else None,
        }


def inverted(text: str) -> dict[str, list[int]]:
    index: dict[str, list[int]] = {}
    for position, word in enumerate(text.split()):
        index.setdefault(word, []).append(position)
    return index


def openalex_work(
    doi: str | None,
    *,
    title: str | None = "A title",
    authors: Iterable[Any] = ("Ada Lovelace",),
    date: str = "2020-03-04",
    container: str = "Journal of Examples",
    locations: Iterable[Location] = (),
    oa_status: str | None = None,
    work_id: str | None = None,
    abstract: str | None = None,
    pmid: str | None = None,
    pmcid: str | None = None,
    xpac: bool = False,
    references: Iterable[str] = (),
    **raw: Any,
) -> Json:
    """An OpenAlex work; `references` are W ids, `raw` sets fields by OpenAlex's own names."""
    number = 2_000_000_000 + short_code(doi or title or "")
    here = f"https://openalex.org/{work_id or f'W{number}'}"
    places = [location.openalex() for location in locations]
    journal = Location(
        None, f"https://doi.org/{doi}" if doi else None, license=None, is_oa=False, name=container
    ).openalex()
    best = next((place for place in places if place["is_oa"]), None)
    status = oa_status or ("closed" if best is None else "green" if best["source"]["type"] == "repository" else "gold")
    ids = {
        "openalex": here,
        "doi": f"https://doi.org/{doi.lower()}" if doi else None,
        "pmid": f"https://pubmed.ncbi.nlm.nih.gov/{pmid}" if pmid else None,
        "pmcid": f"https://www.ncbi.nlm.nih.gov/pmc/articles/{pmcid.removeprefix('PMC')}" if pmcid else None,
    }
    work: Json = {
        "id": here,
        "doi": ids["doi"],
        "title": title,
        "display_name": title,
        "publication_year": int(date[:4]),
        "publication_date": date,
        "ids": {name: value for name, value in ids.items() if value},
        "language": "en",
        "primary_location": places[0] if places else journal,
        "type": "article",
        "indexed_in": ["crossref"],
        "open_access": {
            "is_oa": best is not None,
            "oa_status": status,
            "oa_url": best and (best["pdf_url"] or best["landing_page_url"]),
            "any_repository_has_fulltext": any(p["source"]["type"] == "repository" for p in places),
        },
        "authorships": [openalex_author(author, n) for n, author in enumerate(authors)],
        "cited_by_count": 3,
        "biblio": {"volume": "7", "issue": "2", "first_page": "11", "last_page": "22"},
        "is_retracted": False,
        "is_paratext": False,
        "is_xpac": xpac,
        "locations_count": len(places) or 1,
        "locations": places or [journal],
        "best_oa_location": best,
        "has_content": {"pdf": False, "grobid_xml": False},
        "content_urls": None,
        "referenced_works_count": len(list(references)),
        "referenced_works": [f"https://openalex.org/{ref}" for ref in references],
        "related_works": [],
        "abstract_inverted_index": inverted(abstract) if abstract else None,
        "counts_by_year": [],
        "updated_date": "2026-06-01T00:00:00.000000",
        "created_date": "2020-04-01T00:00:00",
    }
    return with_raw(work, raw)


def openalex_author(author: Any, number: int) -> Json:
    name = name_of(author)
    shown = name.get("name") or f"{name.get('given', '')} {name.get('family', '')}".strip()
    return {
        "author_position": "middle" if number else "first",
        "is_corresponding": False,
        "raw_author_name": shown,
        "author": {"id": f"https://openalex.org/A{short_code(shown)}", "display_name": shown, "orcid": None},
        "institutions": [],
        "countries": [],
        "raw_affiliation_strings": [],
    }


OPENALEX_PARAMETERS = {
    "filter",
    "per-page",
    "per_page",
    "page",
    "cursor",
    "select",
    "search",
    "sort",
    "group_by",
    "sample",
    "seed",
    "include_xpac",
    "mailto",
    "api_key",
    "search.semantic",
    "search.exact",
    "q",
}


OPENALEX_SORTS = {"cited_by_count", "publication_date", "publication_year", "relevance_score", "display_name"}
OPENALEX_FIELDS = set(openalex_work("10.1/x")) | {
    "apc_list",
    "apc_paid",
    "awards",
    "citation_normalized_percentile",
    "cited_by_percentile_year",
    "concepts",
    "corresponding_author_ids",
    "corresponding_institution_ids",
    "countries_distinct_count",
    "funders",
    "fwci",
    "has_fulltext",
    "institutions",
    "institutions_distinct_count",
    "is_authors_truncated",
    "keywords",
    "mesh",
    "primary_topic",
    "relevance_score",
    "sustainable_development_goals",
    "topics",
}


class OpenAlex:
    """api.openalex.org/works: singles and lists."""

    def __init__(self, net: FakeInternet) -> None:
        self.works: dict[str, Json] = {}  # by W id
        self.merged: dict[str, str] = {}  # old W id -> new
        self.authors: list[Json] = []
        self.remaining_usd = 0.1
        net.route("api.openalex.org", None, self.answer)

    def add(self, doi: str | None, **fields: Any) -> Json:
        return self.put(openalex_work(doi, **fields))

    def put(self, work: Json) -> Json:
        """Take a finished work, for instance a recorded one."""
        self.works[work["id"].rpartition("/")[2]] = work
        return work

    def answer(self, request: Request) -> Answer:
        if len(request.target) > 8190:
            return html("<h1>414 Request-URI Too Large</h1>", 414)
        path = request.decoded_path.rstrip("/")
        if unknown := set(request.query) - OPENALEX_PARAMETERS:
            return self._failure(f"{min(unknown)} is not a valid parameter.")
        if path == "/works":
            reply = self._list(request)
        elif path.startswith("/works/"):
            reply = self._single(path.removeprefix("/works/"), request)
        elif path == "/authors":
            found = [row for row in self.authors if overlap(request.query.get("search", ""), row["display_name"]) == 1]
            size, page = int(request.query.get("per-page", 25)), int(request.query.get("page", 1))
            meta = {"count": len(found), "db_response_time_ms": 20, "page": page, "per_page": size}
            reply = Reply(body={"meta": meta, "results": found[size * (page - 1) : size * page], "group_by": []})
        else:
            reply = html("<!doctype html>\n<title>404 Not Found</title>", 404)
        reply.headers |= {
            "x-ratelimit-limit-usd": "0.1",
            "x-ratelimit-remaining-usd": f"{self.remaining_usd:.4f}",
            "x-ratelimit-reset": "3600",
        }
        return reply

    def add_author(self, name: str, orcid: str | None = None, institution: str = "Example University") -> Json:
        """An author as `/authors` lists one."""
        place = {"id": "https://openalex.org/I1", "ror": None, "display_name": institution, "type": "education"}
        author = {
            "id": f"https://openalex.org/A{short_code(name)}",
            "orcid": f"https://orcid.org/{orcid}" if orcid else None,
            "display_name": name,
            "display_name_alternatives": [],
            "works_count": 12,
            "cited_by_count": 345,
            "summary_stats": {"h_index": 7},
            "last_known_institutions": [place],
            "affiliations": [{"institution": place, "years": [2020]}],
        }
        self.authors.append(author)
        return author

    def _failure(self, message: str, status: int = 400, error: str = "Invalid query parameters error.") -> Reply:
        return Reply(status, {"error": error, "message": message})

    def _single(self, text: str, request: Request) -> Reply:
        if text in self.merged:
            return redirect(f"https://api.openalex.org/works/{self.merged[text]}", 301)
        kind, _, value = text.removeprefix("https://doi.org/").partition(":")
        if text.startswith("https://doi.org/"):
            kind, value = "doi", text.removeprefix("https://doi.org/")
        works = [work for work in self.works.values() if self._known_as(work, kind.lower(), value)]
        works = [self.works[text.upper()]] if text.upper() in self.works else works
        if not works:
            return html("<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>", 404)
        return self._selected(works, request, lambda items: items[0])

    def _known_as(self, work: Json, kind: str, value: str) -> bool:
        known = str(work["ids"].get(kind) or "").lower()
        plain = value.lower().removeprefix("https://doi.org/").removeprefix("pmc")
        return bool(known) and (known == f"https://doi.org/{plain}" or known.rpartition("/")[2] == plain)

    def _selected(self, works: list[Json], request: Request, shape: Callable[[list[Json]], Any]) -> Reply:
        fields = [name for name in request.query.get("select", "").split(",") if name]
        if wrong := [name for name in fields if name not in OPENALEX_FIELDS]:
            return self._failure(f"{wrong[0]} is not a valid select field.")
        return Reply(body=shape([{k: v for k, v in work.items() if not fields or k in fields} for work in works]))

    def _list(self, request: Request) -> Reply:
        query = request.query
        if "cursor" in query and "api_key" not in query and "authorization" not in request.headers:
            return self._failure("Cursor paging needs an API key.", 401, "Unauthorized")
        size, page = int(query.get("per-page", query.get("per_page", 25))), int(query.get("page", 1))
        if not 1 <= size <= 200 or size * page > 10_000:
            return self._failure("per-page parameter must be between 1 and 200")
        if [name for name, _ in request.params].count("filter") > 1:
            return self._failure("Only one filter parameter is allowed")
        try:
            works = self._filtered(query.get("filter", ""), with_xpac=query.get("include_xpac") == "true")
        except ValueError as exc:
            return self._failure(str(exc))
        if text := query.get("search") or query.get("search.semantic"):
            works = [work | {"relevance_score": round(1000 * score, 3)} for score, work in ranked(text, works)]
        for rule in reversed([rule for rule in query.get("sort", "").split(",") if rule]):
            name, _, order = rule.partition(":")
            if name not in OPENALEX_SORTS:
                return self._failure(f"{name} is not a valid sort field.")
            works = sorted(works, key=lambda work: work.get(name) or 0, reverse=order == "desc")
        shown = [self._shortened(work) for work in works[size * (page - 1) : size * page]]
        meta = {"count": len(works), "db_response_time_ms": 20, "page": page, "per_page": size, "groups_count": None}
        return self._selected(shown, request, lambda items: {"meta": meta, "results": items, "group_by": []})

    def _shortened(self, work: Json) -> Json:
        people = work.get("authorships", [])
        return work | {"authorships": people[:100], "is_authors_truncated": True} if len(people) > 100 else work

    def _filtered(self, text: str, *, with_xpac: bool) -> list[Json]:
        works = [work for _, work in sorted(self.works.items(), reverse=True) if with_xpac or not work.get("is_xpac")]
        for part in text.split(",") if text else []:
            name, _, value = part.partition(":")
            if ":" not in part:
                raise ValueError(f"{part} is not a valid filter")
            works = [work for work in works if self._passes(work, name, value)]
        return works

    def _passes(self, work: Json, name: str, value: str) -> bool:
        values = value.split("|")
        if len(values) > 100:
            raise ValueError(
                f"Maximum number of values exceeded for {name}. Decrease values to 100 or below, or consider "
                "downloading the full dataset at https://developers.openalex.org/download/snapshot-format"
            )
        short = [one.rpartition("/")[2] for one in values]
        checks: dict[str, Callable[[], bool]] = {
            "doi": lambda: any(self._known_as(work, "doi", one) for one in values),
            "openalex": lambda: work["id"].rpartition("/")[2] in short,
            "openalex_id": lambda: work["id"].rpartition("/")[2] in short,
            "ids.openalex": lambda: work["id"].rpartition("/")[2] in short,
            "pmid": lambda: any(self._known_as(work, "pmid", one) for one in values),
            "ids.pmid": lambda: any(self._known_as(work, "pmid", one) for one in values),
            "pmcid": lambda: any(self._known_as(work, "pmcid", one) for one in values),
            "ids.pmcid": lambda: any(self._known_as(work, "pmcid", one) for one in values),
            "cites": lambda: any(f"https://openalex.org/{one}" in work["referenced_works"] for one in short),
            "cited_by": lambda: any(work["id"] in self.works.get(one, {}).get("referenced_works", []) for one in short),
            "authorships.author.id": lambda: any(
                part["author"]["id"].endswith(f"/{value}") for part in work["authorships"]
            ),
            "authorships.author.orcid": lambda: any(
                str(part["author"]["orcid"]).endswith(value) for part in work["authorships"]
            ),
            "is_oa": lambda: str(work["open_access"]["is_oa"]).lower() == value,
            "open_access.is_oa": lambda: str(work["open_access"]["is_oa"]).lower() == value,
            "is_retracted": lambda: str(work["is_retracted"]).lower() == value,
            "has_doi": lambda: str(bool(work["doi"])).lower() == value,
            "type": lambda: work["type"] in values,
            "publication_year": lambda: _year_passes(work["publication_year"], values),
            "from_publication_date": lambda: work["publication_date"] >= value,
            "to_publication_date": lambda: work["publication_date"] <= value,
            "title.search": lambda: has_phrase(value, work["title"] or ""),
            "display_name.search": lambda: has_phrase(value, work["title"] or ""),
            "default.search": lambda: overlap(value, bibliographic(work)) == 1,
            "title_and_abstract.search": lambda: overlap(value, bibliographic(work)) == 1,
        }
        if name not in checks:
            raise ValueError(
                f"{name} is not a valid field. Valid fields are underscore or hyphenated versions of: doi, …"
            )
        return checks[name]()


def _year_passes(year: int, rules: list[str]) -> bool:
    """`2020`, `2018-2020`, `>2018`, `<2018`."""
    for rule in rules:
        low, dash, high = rule.partition("-")
        if rule[0] in "<>":
            passes = year > int(rule[1:]) if rule[0] == ">" else year < int(rule[1:])
        else:
            passes = int(low or 0) <= year <= int(high or 9999) if dash else year == int(low)
        if passes:
            return True
    return False


class OpenCitations:
    """api.opencitations.net/index/v2: references and citations of one work, and their counts."""

    def __init__(self, net: FakeInternet) -> None:
        self.links: list[tuple[str, str, str]] = []  # (citing, cited, date of the citing), ids joined by spaces
        net.route("api.opencitations.net", None, self.answer)

    def add(self, citing: str, cited: str, creation: str = "2020-03") -> None:
        """One citation; an end is a DOI, or several identifiers as the index writes them (`doi:… pmid:…`)."""
        self.links.append((self._ids(citing), self._ids(cited), creation))

    def _ids(self, end: str) -> str:
        return f"omid:br/06{short_code(end)} doi:{end.lower()}" if end.startswith("10.") else end

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(
            r"/index/v2/(references|citations|citation-count|reference-count)/(.+)", request.decoded_path
        )
        if match is None:
            return html("<h1>Not Found</h1>", 404)
        verb, name = match.groups()  # a bare DOI is nothing here
        here, there = (0, 1) if verb.startswith("reference") else (1, 0)
        rows = [link for link in self.links if name.lower() in link[here].split() and link[there]]
        if verb.endswith("count"):
            return [{"count": str(len(rows))}]
        return [
            {
                "oci": f"06{short_code(citing)}-06{short_code(cited)}",
                "citing": citing,
                "cited": cited,
                "creation": creation,
                "timespan": "P1Y",
                "journal_sc": "no",
                "author_sc": "no",
            }
            for citing, cited, creation in rows
        ]


class Unpaywall:
    """api.unpaywall.org/v2/{doi}."""

    def __init__(self, net: FakeInternet) -> None:
        self.works: dict[str, Json] = {}
        net.route("api.unpaywall.org", None, self.answer)

    def add(
        self,
        doi: str,
        *,
        title: str = "A title",
        locations: Iterable[Location] = (),
        oa_status: str | None = None,
        authors: Iterable[Any] = ("Ada Lovelace",),
        **raw: Any,
    ) -> Json:
        places = [location.unpaywall(best=not n) for n, location in enumerate(locations)]
        best = places[0] if places else None
        status = oa_status or ("closed" if not best else "green" if best["host_type"] == "repository" else "gold")
        record = {
            "doi": doi.lower(),
            "doi_url": f"https://doi.org/{doi.lower()}",
            "title": title,
            "genre": "journal-article",
            "is_paratext": False,
            "published_date": "2020-03-04",
            "year": 2020,
            "journal_name": "Journal of Examples",
            "journal_issns": "1234-5679",
            "journal_issn_l": "1234-5679",
            "journal_is_oa": False,
            "journal_is_in_doaj": False,
            "publisher": "Example Press",
            "is_oa": bool(places),
            "oa_status": status,
            "has_repository_copy": any(place["host_type"] == "repository" for place in places),
            "best_oa_location": best,
            "first_oa_location": best,
            "oa_locations": places,
            "oa_locations_embargoed": [],
            "updated": "2026-01-01T00:00:00",
            "data_standard": 2,
            "z_authors": [name_of(a) | {"sequence": "additional" if n else "first"} for n, a in enumerate(authors)],
        }
        self.works[doi.lower()] = with_raw(record, raw)
        return self.works[doi.lower()]

    def answer(self, request: Request) -> Answer:
        email = request.query.get("email", "")
        if "@" not in email or email.endswith("@example.com") or email == "your@email.org":
            problem = "Please use your own email address in API calls. See https://unpaywall.org/products/api"
            return Reply(422, {"HTTP_status_code": 422, "error": True, "message": problem})
        work = self.works.get(request.decoded_path.removeprefix("/v2/").lower())
        return work or html("<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>", 404)


# ############################################################################
# Europe PMC, NCBI, the PMC bucket
# ############################################################################


class EuropePmc:
    """The REST search at www.ebi.ac.uk, and rendered PDFs at europepmc.org."""

    def __init__(self, net: FakeInternet) -> None:
        self.works: list[Json] = []
        self.pdfs: dict[str, Answer] = {}
        net.route("www.ebi.ac.uk", None, self.answer)
        net.route("europepmc.org", None, self.answer_site)

    def add(
        self,
        *,
        doi: str | None = None,
        pmid: str | None = None,
        pmcid: str | None = None,
        title: str = "A title.",
        authors: Iterable[Any] = ("Ada Lovelace",),
        year: int = 2020,
        source: str = "MED",
        free_pdf: bool | None = None,
        abstract: str = "We show a thing.",
        **raw: Any,
    ) -> Json:
        """A core record; `free_pdf` (default: when there is a PMCID) lists a PDF at Europe PMC, see `pdfs`."""
        free = bool(pmcid) if free_pdf is None else free_pdf
        names = [ncbi_name(author) for author in authors]
        record: Json = {
            "id": pmid or pmcid,
            "source": source,
            "pmid": pmid or DROP,
            "pmcid": pmcid or DROP,
            "doi": doi or DROP,
            "title": title,
            "authorString": ", ".join(names) + ".",
            "authorList": {
                "author": [
                    {
                        "fullName": shown,
                        "firstName": name_of(author).get("given", ""),
                        "initials": shown[-1:],
                        "lastName": name_of(author).get("family", ""),
                    }
                    for shown, author in zip(names, authors, strict=True)
                ]
            },
            "journalInfo": {
                "issue": "2",
                "volume": "7",
                "yearOfPublication": year,
                "dateOfPublication": f"{year} Mar",
                "printPublicationDate": f"{year}-03-01",
                "journal": {"title": "Journal of examples", "issn": "1234-5679"},
            },
            "pubYear": str(year),
            "pageInfo": "11-22",
            "abstractText": abstract,
            "language": "eng",
            "pubTypeList": {"pubType": ["Journal Article"]},
            "fullTextUrlList": {"fullTextUrl": europepmc_links(doi, pmcid, free=free)},
            "isOpenAccess": "Y" if free else "N",
            "inEPMC": "Y" if pmcid else "N",
            "inPMC": "Y" if pmcid else "N",
            "hasPDF": "Y" if free else "N",
            "citedByCount": 3,
            "license": "cc by" if free else DROP,
            "firstPublicationDate": f"{year}-03-01",
        }
        self.works.append(with_raw(record, raw))
        if pmcid:
            self.pdfs[pmcid.upper()] = pdf(pdf_bytes(f"Europe PMC {pmcid}"))
        return self.works[-1]

    def answer(self, request: Request) -> Answer:
        path = request.decoded_path.removeprefix("/europepmc/webservices/rest")
        if path == "/search":
            return self._search(request.query)
        if path == "/searchPOST":
            return self._search(request.form)
        if match := re.fullmatch(r"/(MED|PMC|PPR)/(\w+)/(references|citations)", path):
            return self._linked(match[1], match[2], match[3], request.query)
        return html("<h1>Not Found</h1>", 404)

    def _search(self, query: dict[str, str]) -> Answer:
        if not query.get("query"):
            return {"version": "6.9", "errCode": 404, "errMsg": "No query parameter was provided"}
        kind, size = query.get("resultType", "lite"), int(query.get("pageSize", 25))
        if size > 1000 or query.get("format") != "json":
            return {"version": "6.9", "errCode": 400, "errMsg": "pageSize up to 1000, format=json in this world"}
        found = self._matching(query["query"])
        cursor = query.get("cursorMark", "*")
        start = 0 if cursor == "*" else int(cursor.removeprefix("AoJ"))
        shown = found[start : start + size]
        after = {"nextCursorMark": f"AoJ{start + size}"} if start + size < len(found) else {}
        request = {
            "queryString": query["query"],
            "resultType": kind,
            "cursorMark": cursor,
            "pageSize": size,
            "sort": "",
            "synonym": False,
        }
        results = [work if kind == "core" else lite(work) for work in shown]
        return {
            "version": "6.9",
            "hitCount": len(found),
            **after,
            "request": request,
            "resultList": {"result": results},
        }

    def _matching(self, text: str) -> list[Json]:
        low, high = map(int, (re.findall(r"PUB_YEAR:\[(\d+) TO (\d+)\]", text) or [("0", "9999")])[0])
        is_open = "OPEN_ACCESS:y" in text
        found = self._with(re.sub(r"(?: AND )?(?:PUB_YEAR:\[.*?\]|OPEN_ACCESS:y)", "", text))
        return [w for w in found if low <= int(w["pubYear"]) <= high and (not is_open or w["isOpenAccess"] == "Y")]

    def _with(self, text: str) -> list[Json]:
        rules = re.findall(
            r'\b(DOI|EXT_ID|PMCID|PMID):\s*"?([^"\s()]+(?:\([^"\s]*\)[^"\s()]*)*)"?', text, re.IGNORECASE
        )
        rules += re.findall(r'\b(DOI):\s*"([^"]+)"', text, re.IGNORECASE)
        sources = re.findall(r"\bSRC:\s*\"?(\w+)", text)
        works = [work for work in reversed(self.works) if not sources or work["source"] in sources]
        if not rules:
            plain = re.sub(r"\b\w+:|\b(AND|OR|NOT)\b", " ", text)
            return [work for _, work in ranked(plain, works)] if words_of(plain) else works
        wanted = {(name.upper(), value.lower()) for name, value in rules}
        names = {"DOI": "doi", "EXT_ID": "id", "PMCID": "pmcid", "PMID": "pmid"}
        return [w for w in works if any((rule, str(w.get(key, "")).lower()) in wanted for rule, key in names.items())]

    def cite(self, citing: Json, cited: Json) -> None:
        """Let one record cite another: its list of references, the other's list of citations."""
        for here, kind, there in ((citing, "references", cited), (cited, "citations", citing)):
            info = there["journalInfo"]
            row = {name: there[name] for name in ("id", "source", "title", "authorString", "pageInfo") if name in there}
            row |= {"citationType": "journal article", "journalAbbreviation": "J Ex", "pubYear": int(there["pubYear"])}
            more = {"volume": info["volume"], "issue": info["issue"], "citedByCount": 3}
            here.setdefault(kind, []).append(row | more | ({"match": "Y"} if kind == "references" else {}))

    def _linked(self, source: str, ident: str, kind: str, query: dict[str, str]) -> Answer:
        work = next((w for w in self.works if (w["source"], w["id"]) == (source, ident)), {})
        name, one = ("referenceList", "reference") if kind == "references" else ("citationList", "citation")
        rows, page, size = work.get(kind, []), int(query.get("page", 1)), int(query.get("pageSize", 25))
        shown = rows[size * (page - 1) : size * page]
        about = {"id": ident, "source": source, "offSet": size * (page - 1), "pageSize": size}
        return {"version": "6.9", "hitCount": len(rows), "request": about, name: {one: shown}}

    def answer_site(self, request: Request) -> Answer:
        match = re.match(
            r"/(?:articles/|api/getPdf\?pmcid=|backend/ptpmcrender\.fcgi\?accid=)(PMC\d+)",
            request.target,
            re.IGNORECASE,
        )
        if not match:
            return html("<h1>Not Found</h1>", 404)
        if request.path.startswith("/articles/") and request.query.get("pdf") != "render":
            return html(landing_page(match[1]))
        return self.pdfs.get(match[1].upper(), html("<h1>Not Found</h1>", 404))


def europepmc_links(doi: str | None, pmcid: str | None, *, free: bool) -> list[Json]:
    rows = []
    if free and pmcid:
        page = f"https://europepmc.org/articles/{pmcid}"
        for style, url in (("html", page), ("pdf", f"{page}?pdf=render")):
            rows.append(
                {
                    "availability": "Open access",
                    "availabilityCode": "OA",
                    "documentStyle": style,
                    "site": "Europe_PMC",
                    "url": url,
                }
            )
    if doi:
        rows.append(
            {
                "availability": "Subscription required",
                "availabilityCode": "S",
                "documentStyle": "doi",
                "site": "DOI",
                "url": f"https://doi.org/{doi}",
            }
        )
    return rows


def lite(work: Json) -> Json:
    """A core record as `resultType=lite` shows it."""
    info = work["journalInfo"]
    kept = (
        "id",
        "source",
        "pmid",
        "pmcid",
        "doi",
        "title",
        "authorString",
        "pubYear",
        "pageInfo",
        "isOpenAccess",
        "inEPMC",
        "inPMC",
        "hasPDF",
        "citedByCount",
        "firstPublicationDate",
    )
    return {name: work[name] for name in kept if name in work} | {
        "journalTitle": info["journal"]["title"],
        "issue": info["issue"],
        "journalVolume": info["volume"],
        "journalIssn": info["journal"]["issn"],
        "pubType": "journal article",
    }


@dataclass
class Ncbi:
    """E-utilities, the PMC id converter, and the PMC site that shows programs a wall."""

    net: FakeInternet
    summaries: dict[str, Json] = field(default_factory=dict)
    converted: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.net.route("eutils.ncbi.nlm.nih.gov", "/entrez/eutils/esummary.fcgi", self.summary)
        self.net.route("pmc.ncbi.nlm.nih.gov", None, wall("pmc"))
        self.net.route("pmc.ncbi.nlm.nih.gov", "/tools/idconv/api/v1/articles/", self.convert)
        self.net.route("www.ncbi.nlm.nih.gov", None, self._to_pmc)

    def add(
        self,
        pmid: str | None = None,
        *,
        doi: str | None = None,
        pmcid: str | None = None,
        title: str = "A title.",
        authors: Iterable[Any] = ("Ada Lovelace",),
        year: int = 2020,
        **raw: Any,
    ) -> Json:
        """A PubMed record (with a PMID) and, with a PMCID, a row of the id converter."""
        if pmcid:
            row = {"doi": doi, "pmcid": pmcid, "pmid": int(pmid) if pmid else None}
            self.converted.append({name: value for name, value in row.items() if value})
        ids = [("pubmed", 1, pmid), ("doi", 3, doi), ("pmc", 8, pmcid)]
        summary = {
            "uid": pmid,
            "pubdate": f"{year} Mar 4",
            "epubdate": "",
            "source": "J Ex",
            "title": title,
            "volume": "7",
            "issue": "2",
            "pages": "11-22",
            "lang": ["eng"],
            "pubtype": ["Journal Article"],
            "fulljournalname": "Journal of examples",
            "sortpubdate": f"{year}/03/04 00:00",
            "issn": "1234-5679",
            "authors": [{"name": ncbi_name(author), "authtype": "Author", "clusterid": ""} for author in authors],
            "articleids": [{"idtype": kind, "idtypen": n, "value": value} for kind, n, value in ids if value],
        }
        if pmid:
            self.summaries[pmid] = with_raw(summary, raw)
        return summary

    def summary(self, request: Request) -> Answer:
        query = request.form if request.method == "POST" else request.query
        ids = [one for one in query.get("id", "").split(",") if one]
        if query.get("db") != "pubmed" or query.get("retmode") != "json":
            return Reply(400, {"error": "db=pubmed and retmode=json in this world"})
        rows = {one: self.summaries.get(one, {"uid": one, "error": "cannot get document summary"}) for one in ids}
        return {"header": {"type": "esummary", "version": "0.3"}, "result": {"uids": ids, **rows}}

    def convert(self, request: Request) -> Answer:
        query = request.query
        ids = [one for one in query.get("ids", "").split(",") if one]
        if len(ids) > 200 or query.get("format") != "json":
            return Reply(400, {"status": "error", "message": "up to 200 ids, format=json in this world"})
        return {
            "status": "ok",
            "response-date": "2026-01-01 00:00:00",
            "request": {"ids": ids, "format": "json"},
            "records": [self._row(one) for one in ids],
        }

    def _row(self, ident: str) -> Json:
        for row in self.converted:
            if ident.lower() in {str(value).lower() for value in row.values()}:
                return row | {"requested-id": ident}
        return {"requested-id": ident, "status": "error", "errmsg": "Identifier not found in PMC"}

    def _to_pmc(self, request: Request) -> Answer:
        if request.path.startswith("/pmc/"):
            return redirect("https://pmc.ncbi.nlm.nih.gov" + request.target.removeprefix("/pmc"), 301)
        return html("<h1>Not Found</h1>", 404)


class PmcBucket:
    """pmc-oa-opendata.s3.amazonaws.com: listings, metadata and files."""

    HOST = "pmc-oa-opendata.s3.amazonaws.com"

    def __init__(self, net: FakeInternet) -> None:
        self.files: dict[str, Answer] = {}
        net.route(self.HOST, None, self.answer)

    def add(
        self,
        pmcid: str,
        version: int = 1,
        body: bytes | None = None,
        license_code: str = "CC BY",
        *,
        retracted: bool = False,
        pdf_there: bool = True,
        **raw: Any,
    ) -> bytes:
        body = body or pdf_bytes(f"{pmcid} version {version}")
        name = f"{pmcid}.{version}"
        if pdf_there:
            self.files[f"{name}/{name}.pdf"] = pdf(body)
        self.files[f"{name}/{name}.xml"] = Reply(body="<article/>", content_type="application/xml")
        facts = {
            "pmcid": pmcid,
            "version": version,
            "license_code": license_code,
            "is_retracted": retracted,
            "pdf_url": f"s3://pmc-oa-opendata/{name}/{name}.pdf" if pdf_there else None,
        }
        self.files[f"metadata/{name}.json"] = Reply(body=facts | raw)
        return body

    def answer(self, request: Request) -> Answer:
        if "list-type" in request.query:
            return self._listing(request.query.get("prefix", ""), request.query.get("delimiter", ""))
        missing = Reply(
            404,
            '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Message>The specified '
            "key does not exist.</Message></Error>",
            content_type="application/xml",
        )
        return self.files.get(request.decoded_path.lstrip("/"), missing)

    def _listing(self, prefix: str, delimiter: str) -> Reply:
        keys = sorted(key for key in self.files if key.startswith(prefix))
        folders = sorted({prefix + key[len(prefix) :].split("/")[0] + "/" for key in keys if "/" in key[len(prefix) :]})
        shown = [] if delimiter == "/" else keys
        rows = "".join(f"<Contents><Key>{escape(key)}</Key><Size>1</Size></Contents>" for key in shown)
        rows += "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
            for one in (folders if delimiter == "/" else [])
        )
        count = len(folders) if delimiter == "/" else len(keys)
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>pmc-oa-opendata</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{count}</KeyCount>"
            f"<MaxKeys>1000</MaxKeys><Delimiter>{escape(delimiter)}</Delimiter><IsTruncated>false</IsTruncated>"
            f"{rows}</ListBucketResult>"
        )
        return Reply(body=text, content_type="application/xml")


# ############################################################################
# Repositories with their own APIs
# ############################################################################


class Zenodo:
    """zenodo.org/api/records/{n}; programs that do not say who they are get 403."""

    def __init__(self, net: FakeInternet) -> None:
        self.records: dict[str, Json] = {}
        self.files: dict[str, bytes] = {}
        self.concepts: dict[str, str] = {}
        net.route("zenodo.org", None, self.answer)

    def add(
        self,
        number: int,
        files: dict[str, bytes] | None = None,
        concept: int | None = None,
        title: str = "A record",
        **raw: Any,
    ) -> Json:
        here = f"https://zenodo.org/api/records/{number}"
        files = {"paper.pdf": pdf_bytes(f"Zenodo {number}")} if files is None else files
        rows = []
        for key, body in files.items():
            self.files[f"/api/records/{number}/files/{key}/content"] = body
            rows.append(
                {
                    "id": f"{short_code(key):08x}",
                    "key": key,
                    "size": len(body),
                    "checksum": "md5:" + hashlib.md5(body, usedforsecurity=False).hexdigest(),
                    "links": {"self": f"{here}/files/{quote(key)}/content"},
                }
            )
        record = {
            "id": number,
            "recid": str(number),
            "conceptrecid": str(concept or number - 1),
            "doi": f"10.5281/zenodo.{number}",
            "doi_url": f"https://doi.org/10.5281/zenodo.{number}",
            "title": title,
            "created": "2021-05-06T07:08:09+00:00",
            "files": rows,
            "state": "done",
            "status": "published",
            "metadata": {
                "title": title,
                "doi": f"10.5281/zenodo.{number}",
                "access_right": "open",
                "publication_date": "2021-05-06",
                "creators": [{"name": "Lovelace, Ada", "affiliation": None}],
                "license": {"id": "cc-by-4.0"},
                "resource_type": {"title": "Preprint", "type": "publication", "subtype": "preprint"},
            },
            "links": {
                "self": here,
                "self_html": f"https://zenodo.org/records/{number}",
                "archive": f"{here}/files-archive",
            },
        }
        self.records[str(number)] = with_raw(record, raw)
        if concept:
            self.concepts[str(concept)] = str(number)
        return self.records[str(number)]

    def answer(self, request: Request) -> Answer:
        if request.headers.get("user-agent", "").startswith(("python-requests", "python-httpx", "Python-urllib")):
            return html("<html><head><title>403 Forbidden</title></head></html>", 403)
        path = request.decoded_path
        if path in self.files:
            return Reply(body=self.files[path], content_type="application/octet-stream")
        number = path.removeprefix("/api/records/").rstrip("/")
        if number in self.concepts:
            return redirect(f"https://zenodo.org/api/records/{self.concepts[number]}", 301)
        return self.records.get(number) or Reply(
            404, {"status": 404, "message": "The persistent identifier does not exist."}
        )


class Figshare:
    """The figshare API, its downloader and the signed bucket behind it; figshare.com itself answers 202."""

    BUCKET = "https://s3-eu-west-1.amazonaws.com/pfigshare-u-files"

    def __init__(self, net: FakeInternet) -> None:
        self.articles: dict[str, Json] = {}
        self.bodies: dict[str, tuple[str, bytes]] = {}
        net.route("api.figshare.com", None, self.answer)
        net.route("ndownloader.figshare.com", re.compile(r"^/files/(\d+)"), self._download)
        net.route("figshare.com", None, wall("waf"))
        net.route("s3-eu-west-1.amazonaws.com", re.compile(r"^/pfigshare-u-files/(\d+)/"), self._stored)

    def add(self, number: int, files: dict[str, bytes] | None = None, title: str = "An item", **raw: Any) -> Json:
        rows = []
        for key, body in ({"paper.pdf": pdf_bytes(f"figshare {number}")} if files is None else files).items():
            file_id = short_code(f"{number}/{key}", 8)
            self.bodies[str(file_id)] = (key, body)
            digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
            rows.append(
                {
                    "id": file_id,
                    "name": key,
                    "size": len(body),
                    "is_link_only": False,
                    "supplied_md5": digest,
                    "computed_md5": digest,
                    "mimetype": "application/pdf",
                    "download_url": f"https://ndownloader.figshare.com/files/{file_id}",
                }
            )
        article = {
            "id": number,
            "title": title,
            "doi": f"10.6084/m9.figshare.{number}.v1",
            "defined_type_name": "preprint",
            "url": f"https://api.figshare.com/v2/articles/{number}",
            "published_date": "2021-05-06T07:08:09Z",
            "url_public_html": f"https://figshare.com/articles/preprint/x/{number}",
            "files": rows,
            "is_public": True,
            "authors": [{"id": 1, "full_name": "Ada Lovelace", "is_active": True}],
            "version": 1,
            "license": {"value": 1, "name": "CC BY 4.0", "url": "https://creativecommons.org/licenses/by/4.0/"},
        }
        self.articles[str(number)] = with_raw(article, raw)
        return self.articles[str(number)]

    def answer(self, request: Request) -> Answer:
        path = request.path.rstrip("/")
        if match := re.fullmatch(r"/v2/articles/(\d+)(?:/versions/\d+)?(/files)?", path):
            article = self.articles.get(match[1])
            if article:
                return article["files"] if match[2] else article
        if match := re.fullmatch(r"/v2/file/download/(\d+)", path):
            return self._signed(match[1])
        return Reply(404, {"code": "EntityNotFound", "message": "Entity not found: article"})

    def _download(self, request: Request) -> Answer:
        return self._signed(request.path.split("/")[2])

    def _signed(self, file_id: str) -> Answer:
        if file_id not in self.bodies:
            return Reply(404, {"code": "EntityNotFound", "message": "Entity not found: file"})
        name = quote(self.bodies[file_id][0])
        return redirect(f"{self.BUCKET}/{file_id}/{name}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0123abcd")

    def _stored(self, request: Request) -> Answer:
        found = self.bodies.get(request.path.split("/")[2])
        if found is None or "X-Amz-Signature" not in request.query:
            return Reply(403, "<Error><Code>AccessDenied</Code></Error>", content_type="application/xml")
        return pdf(found[1])


class Osf:
    """The OSF API, osf.io/download, files.osf.io and the signed bucket it sends to."""

    def __init__(self, net: FakeInternet) -> None:
        self.preprints: dict[str, Json] = {}
        self.files: dict[str, Json] = {}
        self.bodies: dict[str, bytes] = {}
        self.bucket: str | None = "cos-osf-prod-files-us-east1"  # None: files.osf.io sends the file itself
        net.route("api.osf.io", None, self.answer)
        net.route("osf.io", None, self._site)
        net.route("files.osf.io", re.compile("^/v1/resources/"), self._file_host)
        net.route("storage.googleapis.com", re.compile("^/cos-osf-prod-files-"), self._stored)

    def add(
        self, guid: str, body: bytes | None = None, title: str = "A preprint", doi: str | None = None, **raw: Any
    ) -> Json:
        body = pdf_bytes(f"OSF {guid}") if body is None else body
        file_id = f"{short_code(guid):024x}"
        self.bodies[file_id] = body
        api = "https://api.osf.io/v2"
        self.files[file_id] = {
            "id": file_id,
            "type": "files",
            "attributes": {
                "name": "paper.pdf",
                "kind": "file",
                "size": len(body),
                "provider": "osfstorage",
                "guid": None,
                "path": f"/{file_id}",
                "extra": {"hashes": {"sha256": sha256(body)}},
            },
            "links": {
                "self": f"{api}/files/{file_id}/",
                "download": f"https://osf.io/download/{file_id}/",
                "html": f"https://osf.io/{guid}/files/osfstorage/{file_id}",
            },
        }
        preprint = {
            "id": guid,
            "type": "preprints",
            "attributes": {
                "title": title,
                "description": "We show a thing.",
                "doi": doi,
                "is_published": True,
                "date_published": "2021-05-06T07:08:09",
                "reviews_state": "accepted",
                "date_withdrawn": None,
                "version": 1,
                "is_latest_version": True,
                "license_record": None,
                "public": True,
            },
            "relationships": {
                "primary_file": {
                    "links": {"related": {"href": f"{api}/files/{file_id}/", "meta": {}}},
                    "data": {"id": file_id, "type": "files"},
                }
            },
            "links": {
                "self": f"{api}/preprints/{guid}/",
                "html": f"https://osf.io/preprints/osf/{guid}",
                "preprint_doi": f"https://doi.org/10.31219/osf.io/{guid}",
            },
        }
        self.preprints[guid.lower()] = with_raw(preprint, raw)
        return self.preprints[guid.lower()]

    def _missing(self) -> Reply:
        return Reply(404, {"errors": [{"detail": "Not found."}], "meta": {"version": "2.0"}})

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/v2/(preprints|files)/([\w]+?)(?:_v\d+)?/?", request.path)
        found = (self.preprints if match[1] == "preprints" else self.files).get(match[2].lower()) if match else None
        if found is None or match is None:
            return self._missing()
        if match[1] == "preprints" and "primary_file" in request.query.get("embed", ""):
            file_id = found["relationships"]["primary_file"]["data"]["id"]
            found = found | {"embeds": {"primary_file": {"data": self.files[file_id]}}}
        return {"data": found, "meta": {"version": "2.0"}}

    def _site(self, request: Request) -> Answer:
        match = re.fullmatch(r"/(?:download/)?(\w+)(?:_v\d+)?(?:/download)?/?", request.path)
        guid = match[1].lower() if match else ""
        if guid in self.preprints and "download" in request.path:
            guid = self.preprints[guid]["relationships"]["primary_file"]["data"]["id"]
        if guid in self.bodies and "download" in request.path:
            return redirect(
                f"https://files.osf.io/v1/resources/abcde/providers/osfstorage/{guid}?action=download&direct"
            )
        return html("<html><head><title>OSF</title></head><body>JavaScript is needed</body></html>")

    def _file_host(self, request: Request) -> Answer:
        body = self.bodies.get(request.path.rstrip("/").rpartition("/")[2])
        if body is None:
            return self._missing()
        if self.bucket is None:
            return pdf(body)
        return redirect(f"https://storage.googleapis.com/{self.bucket}/{sha256(body)}?GoogleAccessId=x&Signature=0123")

    def _stored(self, request: Request) -> Answer:
        digest = request.path.rpartition("/")[2]
        found = [body for body in self.bodies.values() if sha256(body) == digest]
        return pdf(found[0]) if found and "Signature" in request.query else Reply(403, "<Error/>")


class Biorxiv:
    """www.biorxiv.org, www.medrxiv.org and api.biorxiv.org."""

    def __init__(self, net: FakeInternet) -> None:
        self.papers: dict[str, list[Json]] = {}
        self.walled = False  # 403 for programs, as most days in truth
        for host in ("www.biorxiv.org", "www.medrxiv.org"):
            net.route(host, None, self._site)
        net.route("api.biorxiv.org", None, self.answer)

    def add(
        self, doi: str, versions: int = 1, server: str = "biorxiv", published_doi: str = "NA", title: str = "A preprint"
    ) -> list[Json]:
        self.papers[doi.lower()] = [
            {
                "title": title,
                "authors": "Lovelace, A.; Babbage, C.",
                "author_corresponding": "Ada Lovelace",
                "author_corresponding_institution": "",
                "doi": doi,
                "date": f"2020-03-{n:02}",
                "version": str(n),
                "type": "new results",
                "license": "cc_by",
                "category": "genetics",
                "abstract": "We show a thing.",
                "published": published_doi,
                "server": server,
                "jatsxml": "",
            }
            for n in range(1, versions + 1)
        ]
        return self.papers[doi.lower()]

    def pdf(self, doi: str, version: int = 1) -> bytes:
        return pdf_bytes(f"{doi.lower()} version {version}")

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/(details|pubs)/(\w+)/(10\.\d+/[^/]+)(?:/na)?(?:/json)?/?", request.decoded_path)
        rows = self.papers.get(match[3].lower(), []) if match else []
        rows = [row for row in rows if match and row["server"].lower() == match[2].lower()]
        if not match or not rows:
            return {"messages": [{"status": "no posts found"}], "collection": []}
        if match[1] == "pubs":
            rows = [
                {
                    "preprint_doi": row["doi"],
                    "published_doi": row["published"],
                    "preprint_title": row["title"],
                    "preprint_platform": row["server"],
                }
                for row in rows
                if row["published"] != "NA"
            ][-1:]
        return {
            "messages": [{"status": "ok", "count": len(rows), "total": str(len(rows)), "cursor": 0}],
            "collection": rows,
        }

    def _site(self, request: Request) -> Answer:
        if self.walled:
            return wall("cloudflare")
        match = re.fullmatch(
            r"/content/(?:biorxiv/early/.*/)?(10\.\d+/.+?)(?:v(\d+))?(\.full)?(\.pdf)?", request.decoded_path
        )
        rows = self.papers.get(match[1].lower()) if match else None
        if match is None or not rows or int(match[2] or 1) > len(rows):
            return html("<h1>Page not found</h1>", 404)
        version = int(match[2] or len(rows))
        if match[4]:
            return pdf(self.pdf(match[1], version))
        url = f"https://{request.host}/content/{match[1]}v{version}.full.pdf"
        return html(landing_page(rows[-1]["title"], url, match[1]))


# ############################################################################
# Semantic Scholar, INSPIRE, DOAJ
# ############################################################################


class SemanticScholar:
    """api.semanticscholar.org/graph/v1: papers, their citations and references, and the search for them."""

    def __init__(self, net: FakeInternet) -> None:
        self.papers: dict[str, Json] = {}  # by paperId
        self.links: list[tuple[str, str]] = []  # (citing, cited)
        net.route("api.semanticscholar.org", None, self.answer)

    def add(self, title: str, *, year: int = 2020, cites: Iterable[Json] = (), pdf_url: str = "", **ids: str) -> Json:
        """A paper; `ids` by Semantic Scholar's names (DOI, ArXiv, PubMed)."""
        name = f"{short_code(title + str(ids)):040x}"
        self.papers[name] = {
            "paperId": name,
            "externalIds": {**ids, "CorpusId": short_code(title)},
            "url": f"https://www.semanticscholar.org/paper/{name}",
            "title": title,
            "venue": "J. Ex.",
            "year": year,
            "citationCount": 5,
            "openAccessPdf": {"url": pdf_url, "status": "GREEN" if pdf_url else None, "license": None},
            "publicationTypes": ["JournalArticle"],
            "publicationDate": f"{year}-03-04",
            "journal": {"name": "Journal of Examples", "pages": "11 - 22", "volume": "7"},
            "authors": [{"authorId": "1", "name": "Ada Lovelace"}, {"authorId": "2", "name": "C. Babbage"}],
        }
        self.links += [(name, paper["paperId"]) for paper in cites]
        return self.papers[name]

    def answer(self, request: Request) -> Answer:
        if request.headers.get("x-api-key") == "rejected":
            return Reply(403, {"message": "Forbidden"})
        rest = request.decoded_path.removeprefix("/graph/v1/paper/")
        wanted = [name for name in request.query.get("fields", "title").split(",") if name]
        if unknown := [name for name in wanted if name not in next(iter(self.papers.values()), {name: 1})]:
            return Reply(400, {"error": f"Unrecognized or unsupported fields: [{', '.join(unknown)}]"})
        start, size = int(request.query.get("offset", 0)), int(request.query.get("limit", 100))
        if size > (100 if rest == "search" else 1000):
            return Reply(400, {"error": "Requested limit is too large"})
        if rest == "search":
            found = [paper for _, paper in ranked(request.query["query"], self.papers.values())]
            return {"total": len(found), **self._page([{"": paper} for paper in found], start, size, wanted)}
        name, _, kind = rest.rpartition("/") if rest.endswith(("/citations", "/references")) else (rest, "", "")
        paper = next((paper for paper in self.papers.values() if self._is(paper, name)), None)
        if paper is None:
            return Reply(404, {"error": f"Paper with id {name} not found"})
        if not kind:
            return self._shown(paper, wanted)
        here, there, role = (0, 1, "citedPaper") if kind == "references" else (1, 0, "citingPaper")
        rows = [{role: self.papers[link[there]]} for link in self.links if link[here] == paper["paperId"]]
        return self._page(rows, start, size, wanted)

    def _is(self, paper: Json, name: str) -> bool:
        kind, _, value = name.partition(":")
        key = {"DOI": "DOI", "ARXIV": "ArXiv", "PMID": "PubMed"}.get(kind.upper())
        return paper["paperId"] == name or str(paper["externalIds"].get(key)).lower() == value.lower()

    def _shown(self, paper: Json, wanted: list[str]) -> Json:
        return {name: paper[name] for name in ("paperId", *wanted)}

    def _page(self, rows: list[Json], start: int, size: int, wanted: list[str]) -> Json:
        shown = [
            {role: self._shown(paper, wanted) for role, paper in row.items()} for row in rows[start : start + size]
        ]
        more = {"next": start + size} if start + size < len(rows) else {}
        data = {"data": [row.get("", row) for row in shown]} if shown else {}
        return {"offset": start, **more, **data}


class Inspire:
    """inspirehep.net/api: literature records, the search for them, and what cites them."""

    def __init__(self, net: FakeInternet) -> None:
        self.records: dict[str, Json] = {}
        self.links: list[tuple[str, str]] = []  # (citing, cited)
        net.route("inspirehep.net", None, self.answer)

    def add(self, number: str, title: str, *, year: int = 2012, cites: Iterable[str] = (), **raw: Any) -> Json:
        """A record; `raw` sets fields of its metadata by INSPIRE's names."""
        metadata = {
            "control_number": int(number),
            "titles": [{"title": title, "source": "Elsevier"}, {"title": title.upper(), "source": "arXiv"}],
            "authors": [{"full_name": "Lovelace, Ada"}, {"full_name": "Babbage, C."}],
            "document_type": ["article"],
            "publication_info": [
                {
                    "year": year,
                    "journal_title": "Phys.Lett.B",
                    "journal_volume": "716",
                    "page_start": "30",
                    "page_end": "61",
                }
            ],
            "earliest_date": f"{year}-07-31",
            "citation_count": 15000,
        }
        self.records[number] = {
            "id": number,
            "created": "2012-07-31T00:00:00+00:00",
            "updated": "2026-01-01T00:00:00+00:00",
            "links": {"self": f"https://inspirehep.net/api/literature/{number}"},
            "metadata": with_raw(metadata, raw),
        }
        self.links += [(number, cited) for cited in cites]
        return self.records[number]

    def answer(self, request: Request) -> Answer:
        if match := re.fullmatch(r"/api/(doi|arxiv)/(.+)", request.decoded_path):
            names = {"doi": "dois", "arxiv": "arxiv_eprints"}
            for record in self.records.values():
                if match[2] in [part["value"].lower() for part in record["metadata"].get(names[match[1]], [])]:
                    return record
            return Reply(404, {"status": 404, "message": "PID does not exist."})
        if request.path != "/api/literature":
            return html("<h1>Not Found</h1>", 404)
        query = request.query
        size, page = int(query.get("size", 10)), int(query.get("page", 1))
        if size > 1000 or size * page > 10_000:
            return Reply(400, {"status": 400, "message": "Maximum number of results have been reached."})
        found = self._found(query.get("q", ""))
        hits = {"hits": found[size * (page - 1) : size * page], "total": len(found)}
        return {"hits": hits, "links": {"self": request.url}}

    def _found(self, text: str) -> list[Json]:
        if match := re.fullmatch(r"refersto:recid:(\d+)", text):
            return [self.records[citing] for citing, cited in self.links if cited == match[1]]
        years = re.search(r" and date (\d+)->(\d+)", text)
        low, high = map(int, years.groups()) if years else (0, 9999)
        plain = text.replace(years[0], "") if years else text
        found = [(overlap(plain, json.dumps(record["metadata"])), record) for record in self.records.values()]
        return [r for score, r in found if score > 0 and low <= int(r["metadata"]["earliest_date"][:4]) <= high]


class Doaj:
    """doaj.org/api: the search for articles and journals."""

    def __init__(self, net: FakeInternet) -> None:
        self.kept: dict[str, list[Json]] = {"articles": [], "journals": []}
        net.route("doaj.org", "/api/*", self.answer)

    def add(self, doi: str, title: str, year: int = 2020) -> Json:
        """An article as the search lists it."""
        bibjson = {
            "title": title,
            "year": str(year),
            "month": "3",
            "start_page": "11",
            "end_page": "22",
            "abstract": "We show a thing.",
            "author": [{"name": "Ada Lovelace", "affiliation": "Example University"}],
            "identifier": [{"id": doi, "type": "doi"}, {"id": "1234-5679", "type": "eissn"}],
            "journal": {
                "title": "Open Examples",
                "volume": "7",
                "number": "2",
                "publisher": "Example Press",
                "issns": ["1234-5679"],
                "language": ["EN"],
                "country": "GB",
            },
            "link": [{"content_type": "text/html", "type": "fulltext", "url": f"https://open.example/{doi}"}],
        }
        self.kept["articles"].append(self._kept(title, bibjson))
        return bibjson

    def add_journal(self, title: str, eissn: str) -> Json:
        """A journal as the search lists it."""
        bibjson = {
            "title": title,
            "eissn": eissn,
            "publisher": {"name": "Example Press", "country": "GB"},
            "apc": {"has_apc": True, "max": [{"price": 1500, "currency": "EUR"}]},
            "license": [{"type": "CC BY", "BY": True, "NC": False}],
            "ref": {"journal": "https://open.example/"},
            "language": ["EN"],
            "subject": [{"code": "GC1-1581", "scheme": "LCC", "term": "Oceanography"}],
        }
        self.kept["journals"].append(self._kept(title, bibjson))
        return bibjson

    def _kept(self, title: str, bibjson: Json) -> Json:
        stamp = "2026-01-01T00:00:00Z"
        return {"id": f"{short_code(title):032x}", "bibjson": bibjson, "created_date": stamp, "last_updated": stamp}

    def answer(self, request: Request) -> Answer:
        match = re.fullmatch(r"/api/v4/search/(articles|journals)/([^/]+)", request.path)
        if match is None:
            return Reply(404, {"status": "not_found", "error": ""})
        text, size, page = unquote(match[2]), int(request.query.get("pageSize", 10)), int(request.query.get("page", 1))
        if size > 100 or size * page > 1000:
            return Reply(400, {"status": "bad_request", "error": "You cannot access results beyond 1000 records"})
        years = re.search(r" AND bibjson\.year:\[(\d+) TO (\d+)\]", text)
        low, high = map(int, years.groups()) if years else (0, 9999)
        plain = text.replace(years[0], "") if years else text
        rows = [row for row in self.kept[match[1]] if overlap(plain, row["bibjson"]["title"]) > 0]
        rows = [row for row in rows if low <= int(row["bibjson"].get("year", low)) <= high]
        shown = rows[size * (page - 1) : size * page]
        return {"total": len(rows), "page": page, "pageSize": size, "query": text, "results": shown}


# ############################################################################
# The world
# ############################################################################


@dataclass
class Paper:
    """What a test needs to know about a work that can be fetched."""

    doi: str
    pdf_url: str
    body: bytes

    @property
    def sha256(self) -> str:
        return sha256(self.body)


class World:
    """All of them on one FakeInternet, with shortcuts that keep them in step."""

    def __init__(self, net: FakeInternet) -> None:
        self.net = net
        net.route("publisher.example", None, html(landing_page("A page without a PDF")))
        net.route("repository.example", None, html(landing_page("A page without a PDF")))
        self.doi_org = DoiOrg(net)
        self.crossref = Crossref(net, self.doi_org)
        self.datacite = DataCite(net, self.doi_org)
        self.arxiv = Arxiv(net)
        self.openalex = OpenAlex(net)
        self.opencitations = OpenCitations(net)
        self.unpaywall = Unpaywall(net)
        self.europepmc = EuropePmc(net)
        self.ncbi = Ncbi(net)
        self.pmc = PmcBucket(net)
        self.zenodo = Zenodo(net)
        self.figshare = Figshare(net)
        self.osf = Osf(net)
        self.biorxiv = Biorxiv(net)
        self.semanticscholar = SemanticScholar(net)
        self.inspire = Inspire(net)
        self.doaj = Doaj(net)

    # -- one source --------------------------------------------------------------

    def crossref_work(self, doi: str, **fields: Any) -> Json:
        return self.crossref.add(doi, **fields)

    def datacite_work(self, doi: str, **fields: Any) -> Json:
        return self.datacite.add(doi, **fields)

    def openalex_work(self, doi: str | None, *locations: Location, **fields: Any) -> Json:
        return self.openalex.add(doi, locations=locations, **fields)

    def unpaywall_work(self, doi: str, *locations: Location, **fields: Any) -> Json:
        return self.unpaywall.add(doi, locations=locations, **fields)

    def agency_work(self, doi: str, agency: str = "JaLC", **fields: Any) -> Json:
        """A DOI of JaLC, mEDRA, KISTI …: CSL-JSON by content negotiation, unknown to Crossref and DataCite."""
        item = csl_item(crossref_message(doi, **fields)) | {"source": agency}
        self.doi_org.register(doi, agency, csl=item)
        return item

    def short_doi(self, code: str, doi: str) -> str:
        return self.doi_org.shorten(code, doi)

    # -- pages and files -----------------------------------------------------------

    def pdf(self, url: str, body: bytes | None = None, **reply: Any) -> bytes:
        """Put a PDF at `url`; `reply` says how it travels (see Reply)."""
        body = pdf_bytes(url) if body is None else body
        self.net.url(url, pdf(body, **reply))
        return body

    def landing(self, url: str, pdf_url: str | None = None, title: str = "A title", **meta: str) -> str:
        return self.net.url(url, html(landing_page(title, pdf_url, **meta)))

    def wall(self, url_or_host: str, kind: str = "cloudflare", **how: Any) -> None:
        """Put a bot wall at one URL, or all over a host."""
        if "://" in url_or_host:
            self.net.url(url_or_host, wall(kind, **how))
        else:
            self.net.route(url_or_host, None, wall(kind, **how))

    # -- works that can be fetched ---------------------------------------------------

    def paper(
        self,
        doi: str,
        *,
        pdf_url: str | None = None,
        body: bytes | None = None,
        license: str | None = "cc-by",  # noqa: A002
        version: str = "publishedVersion",
        repository: bool = False,
        **fields: Any,
    ) -> Paper:
        """An open work: Crossref, OpenAlex, and the PDF where OpenAlex says (default: journals.plos.org)."""
        url = pdf_url or f"https://journals.plos.org/article/{path_of(doi)}.pdf"
        self.crossref.add(doi, **fields)
        place = Location(url, f"https://doi.org/{doi}", version, license, repository)
        known = {name: fields[name] for name in ("title", "authors", "date") if name in fields}
        self.openalex.add(doi, locations=[place], **known)
        return Paper(doi, url, self.pdf(url, body))

    def closed(self, doi: str, **fields: Any) -> Json:
        """A work that is known and not open."""
        self.openalex.add(doi, **{name: fields[name] for name in ("title", "authors", "date") if name in fields})
        return self.crossref.add(doi, **fields)

    def citing_work(self, doi: str, cites: Iterable[str] = (), *, cited_by: int = 3, **fields: Any) -> str:
        """A work with its references (DOIs) at Crossref and OpenAlex; returns its W id there."""
        cites = list(cites)
        known = {name: fields[name] for name in ("title", "date") if name in fields}
        self.crossref.add(doi, references=cites, **fields)
        ids = [f"W{2_000_000_000 + short_code(cited)}" for cited in cites]
        work = self.openalex.add(doi, references=ids, cited_by_count=cited_by, **known)
        return str(work["id"].rpartition("/")[2])

    def arxiv_paper(self, arxiv_id: str, *, in_openalex: bool = True, **fields: Any) -> ArxivPaper:
        """An arXiv paper with its DataCite DOI and, hidden among the xpac works, its OpenAlex record."""
        paper = self.arxiv.add(arxiv_id, **fields)
        doi = f"10.48550/arXiv.{arxiv_id}"
        self.datacite.add(
            doi,
            title=paper.title,
            authors=paper.authors,
            kind="Preprint",
            publisher="arXiv",
            year=int(paper.published[:4]),
            url=f"https://arxiv.org/abs/{arxiv_id}",
            descriptions=[{"description": paper.summary, "descriptionType": "Abstract"}],
            identifiers=[{"identifier": arxiv_id, "identifierType": "arXiv"}],
        )
        if in_openalex:
            place = Location(
                f"https://arxiv.org/pdf/{arxiv_id}",
                f"https://arxiv.org/abs/{arxiv_id}",
                "submittedVersion",
                None,
                repository=True,
                name="arXiv (Cornell University)",
            )
            about: Json = {"title": paper.title, "authors": paper.authors, "date": paper.published[:10]}
            self.openalex.add(doi, **about, locations=[place], xpac=True, type="preprint")
        return paper

    def pubmed_paper(
        self,
        pmid: str | None = None,
        *,
        doi: str | None = None,
        pmcid: str | None = None,
        bucket: bool = True,
        **fields: Any,
    ) -> Json:
        """A record of PubMed and Europe PMC; with a PMCID also its PDF in the bucket and at Europe PMC."""
        self.ncbi.add(pmid, doi=doi, pmcid=pmcid, **fields)
        if pmcid and bucket:
            self.pmc.add(pmcid)
        return self.europepmc.add(doi=doi, pmid=pmid, pmcid=pmcid, source="MED" if pmid else "PMC", **fields)

    def zenodo_paper(self, number: int, **fields: Any) -> Json:
        doi, title = f"10.5281/zenodo.{number}", fields.get("title", "A record")
        self.datacite.add(doi, title=title, kind="Preprint", url=f"https://zenodo.org/records/{number}")
        self.openalex.add(
            doi, title=title, locations=[Location(None, f"https://doi.org/{doi}", repository=True)], xpac=True
        )
        return self.zenodo.add(number, **fields)

    def figshare_paper(self, number: int, **fields: Any) -> Json:
        doi, title = f"10.6084/m9.figshare.{number}.v1", fields.get("title", "An item")
        self.datacite.add(
            doi,
            title=title,
            kind="Text",
            publisher="figshare",
            url=f"https://figshare.com/articles/preprint/x/{number}",
        )
        return self.figshare.add(number, **fields)

    def osf_paper(self, guid: str, **fields: Any) -> Json:
        doi = f"10.31219/osf.io/{guid}"
        self.crossref.add(
            doi,
            title=fields.get("title", "A preprint"),
            type="posted-content",
            subtype="preprint",
            container=None,
            publisher="Center for Open Science",
        )
        self.doi_org.register(doi, "Crossref", f"https://osf.io/{guid}")
        return self.osf.add(guid, **fields)

    def biorxiv_paper(
        self, doi: str, *, versions: int = 1, server: str = "biorxiv", published_doi: str | None = None, **fields: Any
    ) -> Json:
        """A preprint at Crossref and on its server."""
        relation = {"is-preprint-of": [{"id-type": "doi", "id": published_doi, "asserted-by": "subject"}]}
        name = {"biorxiv": "bioRxiv", "medrxiv": "medRxiv"}[server]
        extra: Json = {
            "type": "posted-content",
            "subtype": "preprint",
            "container": None,
            "publisher": "Cold Spring Harbor Laboratory",
            "institution": [{"name": name}],
            "relation": relation if published_doi else {},
        }
        self.biorxiv.add(doi, versions, server, published_doi or "NA", fields.get("title", "A preprint"))
        message = self.crossref.add(doi, **(extra | fields))
        self.doi_org.register(doi, "Crossref", f"https://www.{server}.org/content/{doi}v{versions}")
        return message
