"""A workspace that the owner asks for, and the plan in it: one after the other, each once, then an answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from common.facts import QuestionFacts, ToolOutcome, TurnFacts
from tests.town.mind.town_mind_prompts import ANSWERS, MIND, OWNER, answering, offer, owner_says
from town.model.types import ChatRequest

MAKE = offer("workspace_create", ["name"])
PLAN = offer("plan_create", ["title", "goal", "tasks"])
LINE = "please make a workspace called tide-table for us, and write a plan there"
SAYINGS = (
    answering("maren", OWNER, f"@maren.test {LINE}", offers=(*ANSWERS, MAKE, PLAN)),
    owner_says("maren", LINE, offers=(MAKE, PLAN)),
)


@pytest.mark.parametrize("asked", SAYINGS)
async def test_the_workspace_comes_first_then_the_plan_then_the_answer(asked: ChatRequest) -> None:
    (made,) = (await MIND.complete(asked)).calls
    assert (made.name, made.input) == ("workspace_create", {"name": "tide-table"})
    (planned,) = (await MIND.complete(after(asked, "workspace_create"))).calls
    assert (planned.name, planned.input["title"]) == ("plan_create", "tide-table")
    done = await MIND.complete(after(asked, "workspace_create", "plan_create"))
    assert done.text or done.calls[0].name == "bluesky_reply"


async def test_nothing_is_planned_where_the_workspace_could_not_be_made() -> None:
    failed = ToolOutcome("workspace_create", failed=True)
    for request in SAYINGS:
        answered = await MIND.complete(with_outcomes(request, failed))
        assert not {call.name for call in answered.calls} & {"workspace_create", "plan_create"}


def after(request: ChatRequest, *tools: str) -> ChatRequest:
    return with_outcomes(request, *(ToolOutcome(tool) for tool in tools))


def with_outcomes(request: ChatRequest, *outcomes: ToolOutcome) -> ChatRequest:
    return dataclasses.replace(request, facts=dataclasses.replace(request.facts, outcomes=outcomes))


WANTED = (
    "@maren.test @odile.test please make a workspace for a tide table and write a plan: it reads the tides from a file,"
    " prints the next high water, and warns of spring tides."
)
ASKED = answering("maren", OWNER, WANTED, several=True, offers=(*ANSWERS, MAKE, PLAN))
MISSING = offer("plan_missing", ["missing"])


async def planned() -> list[dict[str, str]]:
    (call,) = (await MIND.complete(after(ASKED, "workspace_create"))).calls
    tasks: list[dict[str, str]] = call.input["tasks"]
    return tasks


async def lacking(tasks: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    texts = tuple(f"{task['title']}\n{task['description']}" for task in tasks)
    question = QuestionFacts("plan-missing", {"wanted": (WANTED,), "tasks": texts})
    request = ChatRequest("m", (), (MISSING,), "plan_missing", facts=TurnFacts(question))
    (call,) = (await MIND.complete(request)).calls
    named: list[dict[str, str]] = call.input["missing"]
    return named


async def test_the_first_plans_two_of_three_parts_the_next_finds_the_third_and_then_nothing_is_missing() -> None:
    tasks = await planned()
    assert [task["title"] for task in tasks] == ["Reads the tides from a file", "Prints the next high water"]
    (third,) = await lacking(tasks)
    assert third["asked"] == "warns of spring tides"
    assert await lacking([*tasks, third]) == []


@pytest.mark.parametrize(
    ("act", "words", "says"),
    [("plan_made", (), "https://here"), ("plan_extended", ("warns of spring tides",), "warns of spring tides")],
)
async def test_what_was_made_is_told_with_its_link(act: str, words: tuple[str, ...], says: str) -> None:
    outcome = ToolOutcome("plan_create", act=act, url="https://here", words=words)
    (call,) = (await MIND.complete(with_outcomes(ASKED, ToolOutcome("workspace_create"), outcome))).calls
    assert call.name == "bluesky_reply"
    assert says in call.input["text"]
    assert "https://here" in call.input["text"]


async def test_a_plan_that_lacked_nothing_is_liked() -> None:
    outcome = ToolOutcome("plan_create", act="plan_found", url="https://here")
    (call,) = (await MIND.complete(with_outcomes(ASKED, ToolOutcome("workspace_create"), outcome))).calls
    assert call.name == "bluesky_like"
