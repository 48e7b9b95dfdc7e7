"""How doiget.py is laid out: read down, depend up; one door each for writes, sockets and stdout; nothing too long.

Each test prints every violation it finds, with its line.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import statistics
import subprocess
import symtable
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GIVEN = os.environ.get("DOIGET_TEST_PYZ", "")
SOURCE = Path(GIVEN) if GIVEN.endswith(".py") else Path(__file__).resolve().parent.parent / "doiget.py"
TEXT = SOURCE.read_text(encoding="utf-8")
LINES = TEXT.splitlines()
TREE = ast.parse(TEXT)
BANNER = "# " + "#" * 76
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
MAX_MEDIAN_LINES = 10
#: Each costs a start that does not need it more than it may (spec §1).
HEAVY = {
    *("anyascii", "anyio", "argparse", "filelock", "html", "httpcore", "httpx", "jsonschema", "logging", "mcp"),
    *("platformdirs", "socket", "sqlite3", "ssl", "tomli", "tomli_w", "tomllib", "tqdm", "truststore"),
    *("urllib.request", "xml"),
}
#: What can open a socket.
NETWORKED = {"asyncio", "ftplib", "http", "httpcore", "httpx", "smtplib", "socket", "ssl", "urllib.request", "urllib3"}
#: Methods and functions that change the disk. `replace` is told from the one of texts by its single argument.
DISK_CHANGES = {
    *("chmod", "chown", "fchmod", "ftruncate", "hardlink_to", "lchmod", "link", "makedirs", "mkdir", "removedirs"),
    *("rename", "renames", "rmdir", "rmtree", "symlink", "symlink_to", "touch", "truncate", "unlink", "utime"),
    *("write_bytes", "write_text"),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def report(what: str, found: Iterable[str]) -> None:
    """Fail with the whole list of violations."""
    if lines := list(dict.fromkeys(found)):
        pytest.fail(f"{what} ({len(lines)}):\n  " + "\n  ".join(lines), pytrace=False)


# ---- sections ----


@dataclass
class Section:
    """A part of the book: the lines from its MARK to the next, and what its header says."""

    number: int
    title: str
    line: int
    header: str = ""
    uses: set[int] = field(default_factory=set)


def parse_sections() -> list[Section]:
    """Find the sections; what stands before the first MARK is section 0, the head."""
    found = [Section(0, "Head", 1)]
    for line, text in enumerate(LINES, 1):
        if match := re.fullmatch(r"# MARK: (\d+)\. (.+)", text):
            section = Section(int(match[1]), match[2], line)
            comments = itertools.takewhile(lambda text: text.startswith("#"), LINES[line + 1 :])
            section.header = " ".join(text.lstrip("# ").strip() for text in comments)
            section.uses = parse_uses(section.header)
            found.append(section)
    return found


def parse_uses(header: str) -> set[int]:
    """Read `Uses: 1 Errors, 4-6.` as {1, 4, 5, 6}; `nothing` is the empty set."""
    match = re.search(r"Uses: (.*?)\.(?= |$)", header)
    spans = re.findall(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?", match[1]) if match else []
    return {number for first, last in spans for number in range(int(first), int(last or first) + 1)}


SECTIONS = parse_sections()
TITLES = {section.number: section.title for section in SECTIONS}


def section_at(line: int) -> Section:
    return [section for section in SECTIONS if section.line <= line][-1]


def titled(*words: str) -> set[int]:
    """The numbers of the sections whose title begins with one of some words."""
    return {section.number for section in SECTIONS if section.title.startswith(words)}


def where(node: ast.AST) -> str:
    """`line 12 (3 Records)`, for reports."""
    line: int = node.lineno  # type: ignore[attr-defined]
    section = section_at(line)
    return f"line {line} ({section.number} {section.title})"


# ---- names ----


def names_defined(statement: ast.stmt) -> Iterator[str]:
    """The module-level names a top-level statement binds, also under `if` and `try`."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        yield statement.name
        return
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
        return
    inner = [child for child in ast.walk(statement) if isinstance(child, ast.stmt) and child is not statement]
    if inner and not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        for body in ("body", "orelse", "finalbody"):
            for child in getattr(statement, body, []):
                yield from names_defined(child)
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not in_comprehension(node, statement):
            yield node.id


def in_comprehension(name: ast.Name, statement: ast.stmt) -> bool:
    """Say whether a name is bound by a comprehension, which keeps it to itself."""
    generators = (node for node in ast.walk(statement) if isinstance(node, ast.comprehension))
    return any(name in set(ast.walk(generator.target)) for generator in generators)


def names_read(statement: ast.stmt) -> set[str]:
    """The global names a top-level statement reads, in nested functions and classes too, annotations included."""
    tables = [symtable.symtable(ast.unparse(statement), "statement", "exec")]
    read = {symbol.get_name() for symbol in tables[0].get_symbols() if symbol.is_referenced()}
    while tables:
        table = tables.pop()
        tables += table.get_children()
        read |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return read


def definitions() -> dict[str, list[ast.stmt]]:
    """Every module-level name with the statements that bind it."""
    found: dict[str, list[ast.stmt]] = defaultdict(list)
    for statement in TREE.body:
        for name in set(names_defined(statement)):
            found[name].append(statement)
    return found


DEFINED = definitions()


def uses_between_sections() -> Iterator[tuple[ast.stmt, str, Section, Section]]:
    """Every use of a name of another section: (statement, name, its section, the name's section)."""
    for statement in TREE.body:
        here = section_at(statement.lineno)
        for name in sorted(names_read(statement) & DEFINED.keys()):
            there = section_at(DEFINED[name][0].lineno)
            if there is not here:
                yield statement, name, here, there


def label(statement: ast.stmt) -> str:
    return next(iter(names_defined(statement)), type(statement).__name__)


# ############################################################################
# The book
# ############################################################################


def test_the_map_lists_the_marks() -> None:
    """The contents page in the module's docstring is the list of MARK lines."""
    listed = re.findall(r"^  (\d+)\. (.+)$", ast.get_docstring(TREE, clean=False) or "", re.MULTILINE)
    assert [(int(number), title) for number, title in listed] == [(s.number, s.title) for s in SECTIONS[1:]]
    assert [section.number for section in SECTIONS] == list(range(len(SECTIONS)))


def test_every_section_has_its_header() -> None:
    """A banner, what it is, `Uses:` naming sections above by number and name, and `Promises:`."""
    found = []
    for section in SECTIONS[1:]:
        place = f"line {section.line}: {section.number}. {section.title}"
        if (LINES[section.line - 2], LINES[section.line]) != (BANNER, BANNER):
            found.append(f"{place}: no banner around the MARK")
        if not re.fullmatch(r".+ Uses: (?:nothing|[^.]+)\. Promises: .+", section.header):
            found.append(f"{place}: the header does not read `What it is. Uses: … . Promises: … .`")
        if later := {number for number in section.uses if number >= section.number}:
            found.append(f"{place}: uses {sorted(later)}, which are not above it")
        for number, name in re.findall(r"(\d+) ([A-Z]\w+)", section.header.partition("Promises:")[0]):
            if name.lower() not in TITLES.get(int(number), "").lower():
                found.append(f"{place}: calls section {number} {name!r}")
    report("headers that are not as style.md §b wants them", found)


def test_read_down_depend_up() -> None:
    """No statement, function or class reads a global that is defined in a later section."""
    report(
        "uses of what stands below",
        (
            f"{where(statement)}: {label(statement)} reads {name} of {there.number} {there.title}"
            for statement, name, here, there in uses_between_sections()
            if there.number > here.number
        ),
    )


def test_sections_use_only_what_they_name() -> None:
    """`Uses:` is complete: nothing else is read from other sections (the head is everybody's)."""
    users: dict[tuple[int, int], list[str]] = defaultdict(list)
    for statement, name, here, there in uses_between_sections():
        if 0 < there.number < here.number and there.number not in here.uses:
            users[here.number, there.number].append(f"{name} (line {statement.lineno}, {label(statement)})")
    report(
        "sections used but not named under Uses:",
        (f"{h} {TITLES[h]} uses {t} {TITLES[t]}: {', '.join(names[:5])}" for (h, t), names in sorted(users.items())),
    )


def test_sections_name_only_what_they_use() -> None:
    used = {(here.number, there.number) for _, _, here, there in uses_between_sections()}
    report(
        "sections named under Uses: and not used",
        (
            f"line {section.line}: {section.number} {section.title} names {number} {TITLES.get(number)}"
            for section in SECTIONS
            for number in sorted(section.uses)
            if (section.number, number) not in used
            if not re.search(r"Uses: [^.]*\d+\s*[-\u2013]\s*\d+", section.header)  # a range is a summary
        ),
    )


def test_no_name_is_defined_twice() -> None:
    """One definition each, so that nothing depends on where in the book one reads it."""
    report(
        "module-level names bound more than once",
        (
            f"{name}: lines {', '.join(str(s.lineno) for s in statements)}"
            for name, statements in DEFINED.items()
            if len(statements) > 1
        ),
    )


def test_nothing_global_is_rebound() -> None:
    """State travels in Context: no `global`, no assignment to a name of another module, no second value."""
    found = [
        f"{where(node)}: global {', '.join(node.names)}" for node in ast.walk(TREE) if isinstance(node, ast.Global)
    ]
    found += [
        f"{where(statement)}: {ast.unparse(statement)[:60]}"
        for statement in TREE.body
        if isinstance(statement, (ast.AugAssign, ast.Delete))
    ]
    modules = {name for name in DEFINED if isinstance(DEFINED[name][0], (ast.Import, ast.ImportFrom))}
    set_there = (n for n in ast.walk(TREE) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    # Only by assignment can one hear of exceptions that Python throws away; one context manager sets and restores it.
    hooks = {"sys.unraisablehook"}
    found += [
        f"{where(n)}: {ast.unparse(n)} is set"
        for n in set_there
        if ast.unparse(n.value) in modules and ast.unparse(n) not in hooks
    ]
    report("module variables that change", found)


def test_no_two_functions_are_the_same() -> None:
    """What is done twice is written once."""
    bodies: dict[str, list[str]] = defaultdict(list)
    for node in functions():
        body = node.body[1:] if ast.get_docstring(node) else node.body
        text = "\n".join(ast.unparse(statement) for statement in body)
        if len(text) > 120:
            bodies[text].append(f"{node.name} (line {node.lineno})")
    report("functions with the same body", (", ".join(names) for names in bodies.values() if len(names) > 1))


# ############################################################################
# Sizes
# ############################################################################


def functions() -> list[Function]:
    return [node for node in ast.walk(TREE) if isinstance(node, FUNCTIONS)]


def length(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameters(node: Function) -> int:
    """Count what a caller may pass; `self` and `cls`, and the context of an operation, are no choice."""
    spec = node.args
    named = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *filter(None, (spec.vararg, spec.kwarg))]
    return sum(arg.arg not in {"self", "cls", "ctx"} for arg in named)


def test_functions_fit_in_a_glance() -> None:
    report(
        f"functions over {MAX_FUNCTION_LINES} lines",
        (f"{where(node)}: {node.name} has {length(node)}" for node in functions() if length(node) > MAX_FUNCTION_LINES),
    )


def test_functions_take_few_parameters() -> None:
    report(
        f"functions with more than {MAX_PARAMETERS} parameters",
        (
            f"{where(node)}: {node.name} takes {parameters(node)}"
            for node in functions()
            if parameters(node) > MAX_PARAMETERS
        ),
    )


def test_most_functions_are_short() -> None:
    lengths = [length(node) for node in functions()]
    assert statistics.median(lengths) <= MAX_MEDIAN_LINES, Counter(lengths)


# ############################################################################
# Imports
# ############################################################################


def imported(node: ast.AST) -> list[str]:
    """The modules an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def is_among(module: str, group: set[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in group)


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported; what only type checkers see is left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS) or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            continue
        yield child
        yield from outside_functions(child)


def test_heavy_modules_are_imported_where_they_are_needed() -> None:
    report(
        "heavy imports at module level",
        (
            f"{where(node)}: {module}"
            for node in outside_functions(TREE)
            for module in imported(node)
            if is_among(module, HEAVY)
        ),
    )


def test_importing_loads_nothing_heavy() -> None:
    """Nor does anything that is imported import it in its turn."""
    code = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); import {SOURCE.stem}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert SOURCE.stem in loaded
    report("heavy modules loaded by `import doiget`", (name for name in loaded if is_among(name, HEAVY)))


# ############################################################################
# One door each
# ############################################################################


def callee(node: ast.Call) -> tuple[str, str]:
    """What is called: (`os`, `open`) for os.open(…), (``, `open`) for open(…)."""
    if isinstance(node.func, ast.Attribute):
        return ast.unparse(node.func.value), node.func.attr
    return "", ast.unparse(node.func)


def is_disk_change(node: ast.Call) -> bool:
    """Say whether a call creates, changes, moves or removes a file."""
    owner, name = callee(node)
    if owner == "shutil" or (owner, name) == ("os", "remove"):
        return True
    if name == "open":
        modes = [*node.args[: 1 if owner not in {"", "io", "os"} else 2], *(kw.value for kw in node.keywords)]
        texts = [arg.value for arg in modes if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        flags = ast.unparse(node) if owner == "os" else ""
        to_nowhere = "os.devnull" in flags
        return any(re.fullmatch(r"[rwxabt+]*[wxa+][rwxabt+]*", text) for text in texts) or (
            bool(re.search(r"O_(WRONLY|RDWR|CREAT|APPEND|TRUNC)|NEW_FILE|\bflags\b", flags)) and not to_nowhere
        )
    if name == "replace":
        return owner == "os" or (bool(owner) and len(node.args) == 1 and not node.keywords)
    return name in DISK_CHANGES and bool(owner)


def calls() -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(TREE) if isinstance(node, ast.Call))


def test_only_the_disk_section_changes_the_disk() -> None:
    """What opens for writing, renames, truncates or removes stands in one place, where errors are translated."""
    door = titled("Config and disk", "Disk")
    assert door
    report(
        "changes of the disk outside its door",
        (
            f"{where(node)}: {ast.unparse(node)[:90]}"
            for node in calls()
            if is_disk_change(node) and section_at(node.lineno).number not in door
        ),
    )


def test_only_the_client_opens_sockets() -> None:
    """Nobody else imports what could; the demo may build a transport for httpx, which opens none."""
    door = titled("HTTP client")
    assert door
    demo = titled("Demo")
    found = []
    type_checked = {
        id(inner)
        for node in ast.walk(TREE)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(TREE):
        here = section_at(getattr(node, "lineno", 1)).number
        for module in imported(node):
            exempt = here in door or id(node) in type_checked or (here in demo and module == "httpx")
            if is_among(module, NETWORKED) and not exempt:
                found.append(f"{where(node)}: imports {module}")
    report("network modules outside the client", found)


def test_only_the_console_speaks() -> None:
    """sys.stdout and sys.stderr belong to Console; nothing is printed past it."""
    console = next(s for s in TREE.body if isinstance(s, ast.ClassDef) and s.name == "Console")
    own = {id(node) for node in ast.walk(console)}
    found = [f"{where(node)}: {ast.unparse(node)[:80]}" for node in calls() if callee(node) == ("", "print")]
    for node in ast.walk(TREE):
        speaks = isinstance(node, ast.Attribute) and ast.unparse(node) in {
            *("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__")
        }
        if speaks and id(node) not in own:
            found.append(f"{where(node)}: {ast.unparse(node)}")
    report("speech outside Console", found)


# ############################################################################
# Habits
# ############################################################################


def test_no_assert_decides_anything() -> None:
    """`python -O` takes them out: checks raise, and types are proved otherwise."""
    found = (f"{where(node)}: {ast.unparse(node)[:80]}" for node in ast.walk(TREE) if isinstance(node, ast.Assert))
    report("asserts", found)


def test_no_bare_except() -> None:
    handlers = (node for node in ast.walk(TREE) if isinstance(node, ast.ExceptHandler) and node.type is None)
    report("bare excepts", map(where, handlers))


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    report(
        "left to do", (f"line {number}: {text.strip()}" for number, text in enumerate(LINES, 1) if marks.search(text))
    )


def test_exceptions_are_not_subclassed_from_ours() -> None:
    """Callers branch on `exc.code`; a family of classes would be a second way to say the same (style.md §e)."""
    report(
        "subclasses of DoigetError",
        (
            f"{where(node)}: {node.name}"
            for node in ast.walk(TREE)
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "DoigetError" for base in node.bases)
        ),
    )
