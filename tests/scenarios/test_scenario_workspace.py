"""A SOUL looks how far the plans of the watched workspaces are, and tells its owner when that changed."""

from __future__ import annotations

import json

from adapters.github.history import BodyEdit, LostEdit
from adapters.github.types import Repo
from modules.services.claims.offers import PLAN_AWARENESS
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake
from tests.town_github import TownGitHub

SITE = Repo("acme", "www-lil-intdev-site")
GONE = Repo("acme", "www-lil-intdev-gone")
BODY = generate_plan_markdown(Plan("A counter", goal="It counts.", tasks=(Task(1, "Count"), Task(2, "Show"))))


def lines(life: RunningSoul, part: str) -> list[str]:
    return [line for _, line, _ in life.console.lines if part in line]


async def test_how_far_a_plan_is_told_when_it_changed(running_town: RunningTown, town_github: TownGitHub) -> None:
    town_github.add_repo(SITE.name)
    async with awake(town_github.make_home()) as life:
        github, workspaces = life.app.services.github, life.app.services.workspaces
        assert (await life.app.scheduler.run_guarded(PLAN_AWARENESS)).reason == "no workspace is watched"
        workspaces.watch(SITE)
        await life.app.scheduler.run_guarded(PLAN_AWARENESS)
        assert lines(life, "No plan is open") == ["No plan is open in the workspaces"]
        await github.create_issue(SITE, "[PLAN] A counter", BODY, labels=("plan",))
        await github.create_issue(SITE, "No plan", "Only a question about the plan.", labels=("plan",))
        for _ in range(2):
            await life.app.scheduler.run_guarded(PLAN_AWARENESS)
        assert lines(life, "1 plan with") == ["1 plan with 2 tasks: 2 free"]
        claimed = update_task_in_plan_body(BODY, 1, TaskChange("claimed", "wren")).body
        await github.update_issue(SITE, 1, body=claimed)
        outcome = await life.app.scheduler.run_guarded(PLAN_AWARENESS)
        assert outcome.reason == "1 plan with 2 tasks: 1 in work, 1 free"
        kept = json.loads((life.app.services.home.memory / "watched_workspaces.json").read_text())
    assert kept["workspaces"][SITE.full_name]["activePlanIssues"] == [1]
    assert kept["lastFullPoll"][:19] == kept["workspaces"][SITE.full_name]["lastPolled"][:19]


async def test_an_edit_of_a_person_that_could_not_be_restored_is_told_on_the_plan_and_to_the_owner(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    town_github.add_repo(SITE.name)
    async with awake(town_github.make_home()) as life:
        github = life.app.services.github
        await github.create_issue(SITE, "[PLAN] A counter", BODY, labels=("plan",))
        life.app.services.workspaces.watch(SITE)
        assert github.on_lost_edit
        for _ in range(2):
            github.on_lost_edit(LostEdit(SITE, 1, BodyEdit("Mine.", "wren", "2026-01-05T12:00:00Z")))
        issue = town_github.network.repo(SITE.owner, SITE.name, None).issues[1]
        assert issue

        async def is_told() -> bool:
            await life.send()
            return bool(issue.comments)

        await until(is_told)
        assert lines(life, "Replaced an edit by @wren")
        (comment,) = issue.comments
        assert "wren edited a text here" in comment.body


async def test_a_workspace_that_is_gone_costs_that_one_only(running_town: RunningTown, town_github: TownGitHub) -> None:
    town_github.add_repo(SITE.name)
    async with awake(town_github.make_home()) as life:
        await life.app.services.github.create_issue(SITE, "[PLAN] A counter", BODY, labels=("plan",))
        life.app.services.workspaces.watch(GONE)
        life.app.services.workspaces.watch(SITE)
        for _ in range(2):
            outcome = await life.app.scheduler.run_guarded(PLAN_AWARENESS)
        assert outcome.reason == "1 plan with 2 tasks: 2 free"
        assert len(lines(life, "Plans could not be read")) == 1
