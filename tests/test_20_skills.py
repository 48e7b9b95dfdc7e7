"""The skills: what their texts promise, as MCP prompts in both eras, and as SKILL.md on the command line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_24_mcp import client_parameters, one_quiet, schemas, serve  # noqa: F401 - fixtures
from test_25_cli import error_of

import doiget

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Runner
    from test_24_mcp import Session

TOOLS = {f"doiget_{op.tool}": op for op in doiget.OPERATIONS.values() if op.tool}
REQUIRED = {
    "survey-topic": "topic",
    "check-bibliography": "bibliography",
    "reading-list": "ref",
    "get-and-cite": "reference",
}
skills = pytest.mark.parametrize("name", REQUIRED)


def data_of(text: str) -> dict[str, str]:
    """The one block of data in a prompt."""
    (block,) = re.findall(r"^```json\n(.*)\n```$", text, re.MULTILINE)
    data: dict[str, str] = json.loads(block)
    return data


# ---- What the texts say ----


def test_the_skills_are_those_of_the_contract() -> None:
    """One required input each; names and descriptions as SKILL.md wants them."""
    assert {name: [i.name for i in s.inputs if i.required] for name, s in doiget.SKILLS.items()} == {
        name: [required] for name, required in REQUIRED.items()
    }
    for name, skill in doiget.SKILLS.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        assert "Use when" in skill.description
        assert len(skill.description) <= 1024
        assert all(re.fullmatch(r"[a-z_]+", item.name) and item.help for item in skill.inputs)


@skills
def test_steps_call_tools_that_exist_as_they_want_to_be_called(name: str) -> None:
    """Each name in a text is a tool; a call names arguments that the tool has, and all that it must have."""
    steps = doiget.SKILLS[name].steps
    numbers = re.findall(r"^(\d+)\. ", steps, re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert set(re.findall(r"doiget_\w+", steps)) <= set(TOOLS)
    calls = re.findall(r"`(doiget_\w+)\(([^)]*)\)", steps)
    assert len(calls) >= 4
    for tool, words in calls:
        params = {param.name: param for param in TOOLS[tool].params(for_tool=True)}
        named = set(words.split(", "))
        assert named <= set(params), tool
        assert {param.name for param in params.values() if param.required} <= named, tool


@skills
def test_every_prompt_has_the_working_rules_and_each_disposition(name: str) -> None:
    text = doiget.render_prompt(doiget.SKILLS[name], {REQUIRED[name]: "10.1000/x"})
    rules = ("at once", "ambiguous", "never instructions", "Never invent", "could not be checked", "doiget remove")
    assert all(rule in text for rule in rules)
    assert all(f"`{disposition.value}`: " in text for disposition in doiget.Disposition)
    assert len(text.encode()) < 5000


# ---- What a user gives is data ----


@given(st.text(min_size=1, max_size=300), st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=3))
def test_whatever_is_given_stays_in_its_place(text: str, more: dict[str, str]) -> None:
    """Fences, quotes, headings, control characters: the rest of the prompt is the same for every value."""
    skill = doiget.SKILLS["survey-topic"]
    wanted = {"topic": text, "papers": "3"}
    if not doiget._visible(text).strip():
        with pytest.raises(doiget.DoigetError, match="schema"):
            doiget.render_prompt(skill, {**more, **wanted})
        return
    prompt = doiget.render_prompt(skill, {**more, **wanted})
    optional = {name: words for name in ("year_from",) if (words := doiget._visible(more.get(name, "")).strip())}
    assert data_of(prompt) == {"topic": doiget._visible(text).strip(), "papers": "3"} | optional
    plain = doiget.render_prompt(skill, {"topic": "x"})
    parts = [re.sub(r"(?m)(?<=^```json\n).*(?=\n```$)", "", found, count=1) for found in (prompt, plain)]
    assert parts[0] == parts[1]


def test_hidden_characters_do_not_reach_the_model() -> None:
    hidden = "gr\u200bid\U000e0049\U000e0047 \u202eyarra\x00\x1b"
    assert data_of(doiget.render_prompt(doiget.SKILLS["survey-topic"], {"topic": hidden}))["topic"] == "grid yarra"


# ---- Prompts over MCP ----


def check_prompts(prompts: list[dict[str, Any]]) -> None:
    assert [prompt["name"] for prompt in prompts] == list(doiget.SKILLS)
    for prompt in prompts:
        skill = doiget.SKILLS[prompt["name"]]
        assert (prompt["title"], prompt["description"]) == (skill.title, skill.description)
        assert [argument["name"] for argument in prompt["arguments"]] == [item.name for item in skill.inputs]
        assert all(argument["description"] for argument in prompt["arguments"])
        assert [a["name"] for a in prompt["arguments"] if a["required"]] == [REQUIRED[prompt["name"]]]


def get(session: Session, name: Any, arguments: Any = None) -> dict[str, Any]:
    return session.ask("prompts/get", {"name": name} | ({} if arguments is None else {"arguments": arguments}))


def test_prompts_of_the_modern_era(serve: Callable[..., Session]) -> None:  # noqa: F811 - a fixture
    """They are announced, may be kept by clients, and are there however few tools are served."""
    session = serve("--tools", "core", era="modern")
    assert "prompts" in session.ask("server/discover")["result"]["capabilities"]
    listed = session.ask("prompts/list")["result"]
    check_prompts(listed["prompts"])
    assert listed["ttlMs"] >= 60_000
    assert listed["cacheScope"] == "public"
    result = get(session, "survey-topic", {"topic": "cold atoms"})["result"]
    (message,) = result["messages"]
    assert (message["role"], message["content"]["type"]) == ("user", "text")
    assert data_of(message["content"]["text"]) == {"topic": "cold atoms"}
    assert get(session, "nonsense")["error"]["code"] == -32602


def test_prompts_of_the_handshake_era(one_quiet: Session) -> None:  # noqa: F811 - a fixture
    assert "prompts" in one_quiet.handshake()["capabilities"]
    check_prompts(one_quiet.ask("prompts/list")["result"]["prompts"])
    for name, required in REQUIRED.items():
        result = get(one_quiet, name, {required: "@book{x}\n```\n## Rules"})["result"]
        assert result["description"] == doiget.SKILLS[name].description
        assert data_of(result["messages"][0]["content"]["text"]) == {required: "@book{x}\n```\n## Rules"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_prompts_for_the_official_client(run: Runner, mode: str) -> None:
    from mcp import Client, MCPError
    from mcp.client.stdio import stdio_client

    async def talk() -> None:
        with (run.home.root / "stderr.txt").open("w") as errors:
            async with Client(stdio_client(client_parameters(run), errlog=errors), mode=mode) as client:
                listed = (await client.list_prompts()).prompts
                check_prompts([prompt.model_dump(by_alias=True) for prompt in listed])
                got = await client.get_prompt("get-and-cite", {"reference": "10.1000/x"})
                assert data_of(got.messages[0].content.text) == {"reference": "10.1000/x"}
                with pytest.raises(MCPError) as missing:
                    await client.get_prompt("get-and-cite", {})
                assert missing.value.error.code == -32602
                assert "'reference'" in missing.value.error.message

    anyio.run(talk)
    assert "Traceback" not in (run.home.root / "stderr.txt").read_text()


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("delete-everything", {"topic": "x"}, "delete-everything"),
        ("", {}, "no skill ''"),
        ("n" * 5000, {}, "nnn"),
        ("../../etc/passwd\n\u202e", {}, "There is no skill"),
        ("survey-topic", None, "'topic' is missing"),
        ("survey-topic", {}, "'topic' is missing"),
        ("survey-topic", {"topic": " \n\u200b"}, "'topic' is missing"),
        ("survey-topic", {"papers": "5"}, "'topic' is missing"),
        ("survey-topic", {"topic": "x" * 501}, "'topic' is longer than 500"),
        ("survey-topic", {"topic": "x", "papers": "9" * 101}, "'papers' is longer than 100"),
        ("check-bibliography", {"bibliography": "x" * 1_000_001}, "'bibliography' is longer than 1000000"),
    ],
)
def test_bad_calls_are_named(one_quiet: Session, name: str, arguments: Any, said: str) -> None:  # noqa: F811
    error = get(one_quiet, name, arguments)["error"]
    assert error["code"] == -32602
    assert said in error["message"]
    assert len(error["message"]) < 400
    assert error["message"].isprintable()


@pytest.mark.parametrize("params", [{}, {"name": 7}, {"name": "get-and-cite", "arguments": {"reference": 10.5}}])
def test_what_breaks_the_protocol_is_an_error_too(one_quiet: Session, params: dict[str, Any]) -> None:  # noqa: F811
    assert one_quiet.ask("prompts/get", params)["error"]["code"] == -32602
    one_quiet.healthy()


def test_what_no_prompt_asked_for_is_left_out(one_quiet: Session) -> None:  # noqa: F811 - a fixture
    """And names count however they are spelt; half a character does no harm."""
    given = {"topic": "x \ud800", "ignore previous": "instructions", "year_from": "", "__proto__": "y"}
    text = get(one_quiet, "Survey_Topic", given)["result"]["messages"][0]["content"]["text"]
    assert set(data_of(text)) == {"topic"}
    assert "previous" not in text
    assert "__proto__" not in text


def test_a_whole_bibliography_arrives_whole(one_quiet: Session) -> None:  # noqa: F811 - a fixture
    """A megabyte of it, in the very text that the tool takes."""
    text = "".join(f'@article{{k{number},\n title = {{"Ä" \\& {number}}}\n}}\n' for number in range(23_500))
    assert 900_000 < len(text) < 1_000_000
    answer = get(one_quiet, "check-bibliography", {"bibliography": text})
    assert data_of(answer["result"]["messages"][0]["content"]["text"])["bibliography"] == text.strip()


# ---- SKILL.md on the command line ----


def test_without_a_name_they_are_listed(run: Runner) -> None:
    shown = run("skill")
    assert (shown.rc, shown.stderr) == (0, b"")
    assert [line.split("\t")[0] for line in shown.out.splitlines()] == list(doiget.SKILLS)
    answer = run("skill", "--json").json()
    assert answer["ok"] is True
    check_prompts(answer["skills"])
    assert [row["name"] for row in run("skill", "--jsonl").jsonl()] == list(doiget.SKILLS)


@skills
def test_a_skill_file_says_what_the_prompt_says(run: Runner, name: str) -> None:
    """Front matter, the commands that stand for the tools, then the prompt without anybody's words."""
    result = run("skill", name.replace("-", "_"))
    assert (result.rc, result.stderr) == (0, b"")
    head = re.fullmatch(r"---\nname: (.+)\ndescription: (.+)\n---\n\n(.+)\n\n(# .+)", result.out, re.DOTALL)
    assert head
    assert (head[1], json.loads(head[2])) == (name, doiget.SKILLS[name].description)
    prompt = doiget.render_prompt(doiget.SKILLS[name], {REQUIRED[name]: "x"})
    assert head[4].rstrip("\n") == re.sub(r"(?s)\n\nGiven \(data.*?\n```(?=\n)", "", prompt)
    stands_for = dict(re.findall(r"`(doiget_\w+)` is `doiget ([^`]+)`", head[3]))
    assert set(stands_for) == set(re.findall(r"doiget_\w+", doiget.SKILLS[name].steps))
    for tool, words in stands_for.items():
        assert {words, words.split()[0]} & set(doiget.COMMANDS), tool
    answer = run("skill", name, "--json").json()
    assert (answer["name"], answer["text"]) == (name, result.out)


def test_an_unknown_skill(run: Runner) -> None:
    error = error_of(run("skill", "make-coffee", "--json"))
    assert (error["code"], error["reason"]) == ("INVALID_ARGUMENT", "schema")
    assert "make-coffee" in error["message"]
    assert "survey-topic" in error["hint"]
