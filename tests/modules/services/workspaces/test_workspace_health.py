"""A verdict on a workspace is read strictly; one that cannot be used is asked for once more, with what is wrong."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from adapters.github.types import Repo
from modules.services.workspaces.health import HealthJudge, HealthVerdict, WorkspacePages, read_verdict
from tests.running_town import RunningTown, awake, call
from tests.shipped_skills import SHIPPED
from town.model.types import ChatRequest, Completion

GOOD = {"complete": False, "summary": "The map is missing.", "remaining": ["Build the map"]}
DONE = {"complete": True, "summary": "All is there.", "remaining": []}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"complete": "true"}, "Complete"),
        ({"summary": ""}, "Summary"),
        ({"summary": "x" * 81}, "Summary"),
        ({"summary": "a\nb"}, "Summary"),
        ({"remaining": "Build the map"}, "Remaining"),
        ({"remaining": [""]}, "Remaining"),
        ({"remaining": []}, "Contradiction"),
        ({"complete": True}, "Contradiction"),
    ],
)
def test_nothing_is_guessed(change: dict[str, Any], problem: str) -> None:
    assert read_verdict(GOOD | change) == problem


def test_what_is_no_verdict_is_told_as_such() -> None:
    assert read_verdict({}) == read_verdict({"complete": True}) == "No Verdict"


async def test_a_long_plan_is_cut_before_a_task_and_a_long_page_before_a_line(running_town: RunningTown) -> None:
    asked: list[str] = []

    def answer(request: ChatRequest) -> Completion:
        asked.append(request.messages[-1].text)
        return call("workspace_verdict", **DONE)

    tasks = [
        f"### Task {number}: Part {number}\n**Status:** completed\n{'x' * 900}\nEnd {number}."
        for number in (1, 2, 3, 4, 5)
    ]
    page = "\n".join(f"Row {number} {'y' * 190}." for number in range(30))
    running_town.mind.answer = answer
    async with awake(running_town.make_home("rowan")) as life:
        judge = HealthJudge(life.app.services.gateway, SHIPPED, Random(1))
        plan = "\n\n".join(["# [PLAN] A map", "## Goal\nIt shows.", *tasks])
        await judge.judge(WorkspacePages(Repo("acme", "www-lil-intdev-site"), {"README.md": page}, (plan,)))
    (prompt,) = asked
    assert [f"End {number}." in prompt for number in (1, 2, 3, 4, 5)] == [
        f"Part {n}" in prompt for n in (1, 2, 3, 4, 5)
    ]
    assert "2 more tasks" in prompt
    rows = [line for line in prompt.splitlines() if line.startswith("Row ")]
    assert all(line.endswith("y.") for line in rows)
    assert f"{30 - len(rows)} more lines" in prompt


@pytest.mark.parametrize(
    ("second", "verdict"),
    [(DONE, HealthVerdict(complete=True, summary="All is there.")), ({**GOOD, "remaining": []}, None)],
)
async def test_the_model_is_told_once_what_is_wrong(
    running_town: RunningTown, second: dict[str, Any], verdict: HealthVerdict | None
) -> None:
    asked: list[ChatRequest] = []

    def answer(request: ChatRequest) -> Completion:
        asked.append(request)
        return call("workspace_verdict", **({**GOOD, "summary": "x" * 99} if len(asked) == 1 else second))

    running_town.mind.answer = answer
    async with awake(running_town.make_home("rowan")) as life:
        judge = HealthJudge(life.app.services.gateway, SHIPPED, Random(1))
        pages = WorkspacePages(Repo("acme", "www-lil-intdev-site"), {"README.md": "A map."}, ("[PLAN] A map",))
        assert await judge.judge(pages) == verdict
    assert len(asked) == 2
    assert "at most 80 characters" in str(asked[1])
    assert "A map." in str(asked[0])
