"""Each defence of docs/SECURITY.md is taken away in a copy, and the tests that stand for it must notice."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import MUTATIONS, SPARED, THREATS, Mutation, node_ids, pairs

import doiget

ROOT = Path(__file__).resolve().parent.parent
GIVEN = {"doiget.py": Path(doiget.__file__)}
LEFT_OUT = shutil.ignore_patterns(".git", ".hypothesis", "__pycache__", ".*_cache", "build", "*.pyz", ".venv")


def copy_with(folder: Path, *mutations: Mutation) -> Path:
    """Copy the repository, with defences taken away."""
    tree = folder / "doiget"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    shutil.copy(GIVEN["doiget.py"], tree / "doiget.py")
    for mutation in mutations:
        path = tree / mutation.file
        text = path.read_text("utf-8")
        for removed, instead in pairs(mutation):
            text = text.replace(removed, instead)
        compile(text, path, "exec")  # or everything would fail, and nothing be shown
        path.write_text(text, "utf-8")
    return tree


def run_tests(tree: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    shared = os.environ.get("DOIGET_SHARED") or str(ROOT.parent / "shared")
    env = {**os.environ, "DOIGET_TEST_PYZ": str(tree / "doiget.py"), "DOIGET_SHARED": shared, "PYTHONPATH": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=900, check=False)


def test_each_defence_stands_exactly_once_where_the_list_says() -> None:
    """Else a mutation would change nothing, or too much."""
    texts = {name: GIVEN.get(name, ROOT / name).read_text("utf-8") for name in {m.file for m in MUTATIONS}}
    counts = {(m.defence, removed): texts[m.file].count(removed) for m in MUTATIONS for removed, _ in pairs(m)}
    assert {place: count for place, count in counts.items() if count != 1} == {}
    assert len({m.defence for m in MUTATIONS}) == len(MUTATIONS), "two of one name"


def test_each_test_of_the_list_exists() -> None:
    for path, name in (test.split("::") for m in MUTATIONS for test in node_ids(m)):
        assert re.search(rf"^(?:async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE), (
            f"{path}::{name}"
        )


def test_each_claim_is_tried() -> None:
    page = (ROOT / "docs" / "SECURITY.md").read_text("utf-8")
    claims = re.findall(r"^\| (?!threat|---)(.+?) \|", page, re.MULTILINE)
    assert [sum(words in claim for words in THREATS.values()) for claim in claims] == [1] * len(claims)
    assert {m.threat for m in MUTATIONS} == set(THREATS)


@pytest.mark.parametrize("name", ["doiget.py", "launcher.py"])
def test_each_line_of_defence_is_tried(name: str) -> None:
    """Something near each `# SECURITY:`, or in the same function, is taken away by a row."""
    text = GIVEN.get(name, ROOT / name).read_text("utf-8")
    tried = {text.count("\n", 0, text.index(gone)) + 1 for m in MUTATIONS if m.file == name for gone, _ in pairs(m)}
    blocks = [(n.lineno, n.end_lineno or 0) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    left = []
    for number, line in enumerate(text.splitlines(), 1):
        around = [(number - 3, number + 7), *(block for block in blocks if block[0] <= number <= block[1])]
        if "SECURITY:" in line and not any(start <= place <= end for place in tried for start, end in around):
            left.append(line.strip())
    assert [line for line in left if not any(words in line for words in SPARED)] == []


@pytest.mark.long
def test_nothing_fails_while_all_defences_stand(tmp_path: Path) -> None:
    done = run_tests(copy_with(tmp_path), sorted({test for m in MUTATIONS for test in node_ids(m)}))
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.defence.replace(" ", "_"))
def test_a_missing_defence_is_noticed(tmp_path: Path, mutation: Mutation) -> None:
    done = run_tests(copy_with(tmp_path, mutation), [*node_ids(mutation), "-x"])
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr[-1000:]
