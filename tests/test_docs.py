"""Docs that repeat the code are generated from it: `pytest tests/test_docs.py --update` rewrites the marked blocks."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mutations import MUTATIONS, THREATS

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SOURCE = Path(doiget.__file__)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a Markdown table; pipes inside cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def errors_table() -> str:
    rows = [
        (
            f"`{name}`",
            f"`{reason.code.value}`",
            str(doiget.EXIT_STATUS[reason.code]),
            reason.disposition.value,
            reason.meaning,
            reason.hint,
        )
        for name, reason in doiget.REASONS.items()
    ]
    return table(("reason", "code", "exit", "disposition", "what happened", "next step"), rows)


def settings_table() -> str:
    rows = [
        (
            f"`{s.key}`",
            f"`{s.env}`" if s.env else "",
            s.kind + (f": {', '.join(s.choices)}" if s.choices else ""),
            s.default or "",
            s.help,
        )
        for s in doiget.SETTINGS
    ]
    return table(("key in config.toml", "variable", "kind", "default", "what it does"), rows)


def pace_text(pace: doiget.Pace) -> str:
    return f"{pace.starts} in {pace.window_s:g} s, {pace.at_once} at once"


def sources_table() -> str:
    rows = []
    for name, api in doiget.APIS.items():
        pace = pace_text(api.pace) + (f"; with your address {pace_text(api.pace_known)}" if api.pace_known else "")
        rows.append((name, f"`{api.host}`", api.purpose, pace, f"[terms]({api.terms})", api.needs or "nothing"))
    return table(("source", "host", "asked for", "pace", "terms", "needs"), rows)


def hosts_table() -> str:
    return table(("host", "why"), [(f"`{row['host']}`", row["why"]) for row in doiget.known_hosts()])


def commands_text() -> str:
    parts = []
    for op in doiget.COMMANDS.values():
        parts.append(f"### {op.name}\n\n{op.explanation}\n".replace("\n    ", "\n"))
        rows = [
            (
                f"`--{p.name.replace('_', '-')}`" if p.keyword else f"`{p.name}`",
                p.arg.help + (f" ({', '.join(p.arg.choices)})" if p.arg.choices else ""),
            )
            for p in op.params()
        ]
        parts.append(table(("argument", "meaning"), rows) + "\n" if rows else "No arguments.\n")
    return "\n".join(parts).rstrip()


def flags_table() -> str:
    return table(("flag", "meaning"), [(f"`{name}`", text) for name, text in doiget.GLOBAL_FLAGS.items()])


def types_table() -> str:
    rows = [(f"`{name}`", *(f"`{word}`" for word in words)) for name, words in doiget.EXPORT_TYPES.items()]
    return table(("type of a record", "BibTeX", "BibLaTeX", "CSL", "RIS"), rows)


def sections_table() -> str:
    """Number, title and purpose of each section, from its header."""
    rows = []
    for header in re.findall(r"^# MARK: (.+(?:\n# .+)+?)\n# Uses: ", SOURCE.read_text(encoding="utf-8"), re.MULTILINE):
        (title, _, *lines) = header.split("\n# ")
        rows.append((*title.split(". ", 1), re.sub(r" \(spec §\d+\)", "", " ".join(lines))))
    return table(("", "section", "what it is"), rows)


def mutations_table() -> str:
    rows = [(THREATS[m.threat], m.defence, " ".join(f"`{test}`" for test in m.tests.split())) for m in MUTATIONS]
    return table(("threat", "taken away", "noticed by"), rows)


def prompts_table() -> str:
    rows = []
    for name, skill in doiget.SKILLS.items():
        inputs = [f"`{item.name}`{'' if item.required else ' (optional)'}: {item.help}" for item in skill.inputs]
        rows.append((f"`{name}`", skill.description, "; ".join(inputs)))
    return table(("prompt", "what it is for", "arguments"), rows)


def operations_text() -> str:
    parts = []
    for source, dialect in doiget.DIALECTS.items():
        parts.append(f"### {dialect.title}\n")
        rows = []
        for row in doiget.rank_rows(source=source):
            names = ", ".join(f"`{name}`" if param.required else f"`{name}`?" for name, param in row.fields().items())
            about = doiget.describe_row(row)
            rows.append((f"`{row.name}`", about["description"], names, f"`{json.dumps(about['example']['params'])}`"))
        parts.append(table(("operation", "what it does", "parameters", "example"), rows) + "\n")
        words = dict.fromkeys(f"- {row.paging()} {row.costs()}" for row in doiget.rank_rows(source=source))
        parts += [*words, ""]
    return "\n".join(parts).rstrip()


def parameters_table() -> str:
    kinds = {str: "text", int: "whole number", bool: "true or false"}
    helps = {name: param.arg.help for name, param in doiget.FIELDS.items()}
    helps["ref"] = "the work, by an identifier the source knows"
    rows = [(f"`{name}`", kinds[doiget.FIELDS[name].kind], text) for name, text in helps.items()]
    return table(("parameter", "type", "meaning"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "errors": errors_table,
    "settings": settings_table,
    "sources": sources_table,
    "hosts": hosts_table,
    "commands": commands_text,
    "flags": flags_table,
    "tools": doiget.render_tool_reference,
    "types": types_table,
    "operations": operations_text,
    "parameters": parameters_table,
    "mutations": mutations_table,
    "prompts": prompts_table,
    "sections": sections_table,
}
PLACES = [
    ("ERRORS.md", "errors"),
    ("CONFIG.md", "settings"),
    ("SOURCES.md", "sources"),
    ("SOURCES.md", "hosts"),
    ("ARCHITECTURE.md", "sections"),
    ("MCP_TOOLS.md", "prompts"),
    ("QUALITY.md", "mutations"),
    ("MCP_TOOLS.md", "tools"),
    ("CLI.md", "flags"),
    ("CLI.md", "commands"),
    ("EXPORTS.md", "types"),
    ("OPERATIONS.md", "parameters"),
    ("OPERATIONS.md", "operations"),
]


@pytest.mark.parametrize(("page", "block"), PLACES)
def test_generated_block_is_current(request: pytest.FixtureRequest, page: str, block: str) -> None:
    """The block between the marks equals what the code says."""
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- GENERATED {block} -->\n).*?(\n<!-- END {block} -->)", re.DOTALL)
    assert pattern.search(text), f"{page} has no block {block}"
    wanted = pattern.sub(lambda match: match[1] + BLOCKS[block]() + match[2], text)
    if request.config.getoption("--update"):
        path.write_text(wanted, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == wanted, f"{page} is not current: pytest tests/test_docs.py --update"


def test_the_architecture_names_what_there_is() -> None:
    """Every name in its prose is one of the module, and every file one of the repository."""
    prose = (DOCS / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("<!-- END sections -->")[2]
    for name in re.findall(r"`([A-Z]\w+|[\w.]+(?=\(\)`))", prose):
        assert functools.reduce(lambda thing, part: getattr(thing, part, None), name.split("."), doiget), name
    for name in re.findall(r"[\w/]+\.py", prose):
        assert (ROOT / name).is_file(), name


def test_every_link_in_the_docs_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_nothing_speaks_of_where_it_was_made() -> None:
    """No machine path and no registry host in anything that is published."""
    forbidden = re.compile(r"/work/|/root/|/tmp/lead|pypi\.org|files\.pythonhosted|registry\.npmjs", re.IGNORECASE)
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("*.py"),
        *ROOT.glob("*.toml"),
        *ROOT.glob("*.txt"),
        *DOCS.glob("*.md"),
        *(ROOT / "tests").glob("*.py"),
    ]
    for page in pages:
        if page.name != Path(__file__).name:
            found = forbidden.search(page.read_text(encoding="utf-8"))
            assert not found, f"{page.name} says {found[0] if found else ''}"
