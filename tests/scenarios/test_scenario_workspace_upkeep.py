"""SOULs keep a workspace in order: one plan, true labels, no comment twice, no issue that only rests. Each once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest

from adapters.github.types import Repo
from modules.services.claims.offers import PLAN_AWARENESS
from modules.services.claims.policy import PlanComment, claims_on
from modules.services.github_threads.threads import THREAD, thread_of
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task
from tests.running_town import RunningSoul, RunningTown, awake
from tests.town_github import TownGitHub
from town.github.values import GitHubAccount, StoredIssue, StoredRepo

SITE = Repo("acme", "www-lil-intdev-site")
DAY_S = 86_400.0
FRESH = Plan("A counter", goal="It counts.", tasks=(Task(1, "Count"), Task(2, "Show"), Task(3, "Ask @kit")))
BEGUN = replace(FRESH, tasks=(Task(1, "Count", status="completed"), Task(2, "Show", status="in_progress")))


@dataclass
class Workspace:
    """A workspace in which `rowan` and `kit` may push; `mallory` may not."""

    github: TownGitHub
    repo: StoredRepo

    def account(self, login: str) -> GitHubAccount:
        return self.github.network.find(login) or self.github.network.create_account(login)

    def open(self, by: str, title: str, body: str = "", *labels: str) -> StoredIssue:
        network = self.github.network
        return network.open_issue(self.repo, self.account(by), title=title, body=body, labels=list(labels))

    def plan(self, by: str, plan: Plan, *labels: str) -> StoredIssue:
        return self.open(by, f"[PLAN] {plan.title}", generate_plan_markdown(plan), "plan", *labels)

    def said(self, issue: StoredIssue) -> list[str]:
        return [f"{one.author.login}: {one.body.partition('<!--')[0].strip()}" for one in issue.comments]


@pytest.fixture
def workspace(town_github: TownGitHub) -> Workspace:
    for login in ("kit", "mallory", "wren", "owner"):
        town_github.network.create_account(login)
    repo = town_github.add_repo(SITE.name)
    repo.collaborators |= {"kit", "wren"}
    return Workspace(town_github, repo)


@pytest.fixture
async def souls(running_town: RunningTown, workspace: Workspace) -> AsyncIterator[list[RunningSoul]]:
    """Two of them, who know each other and watch the workspace."""
    async with AsyncExitStack() as stack:
        lives = []
        for login, other in (("rowan", "wren"), ("wren", "rowan")):
            settings = {
                "GITHUB_API_URL": workspace.github.url,
                "AGENT_GITHUB_USERNAME": login,
                "AGENT_GITHUB_TOKEN": workspace.account(login).token,
                "OWNER_GITHUB_USERNAME": "owner",
                "SOUL_ALLOW_PRIVATE_NET": "on",
                "SOUL_SPEED": "1",
            }
            life = await stack.enter_async_context(awake(running_town.make_home(login, **settings)))
            life.app.services.workspaces.watch(SITE)
            life.app.services.peer_registry.register_peer_by_github_username(other, "plan", SITE.full_name)
            lives.append(life)
        yield lives


async def look(souls: list[RunningSoul], times: int = 1) -> None:
    """All of them look at once, and all that they proposed is sent at once."""
    for _ in range(times):
        await asyncio.gather(*(life.app.scheduler.run_guarded(PLAN_AWARENESS) for life in souls))
        await asyncio.gather(*(life.send() for life in souls))


@pytest.mark.slow
async def test_of_two_plans_the_one_that_is_further_stays_and_what_people_open_again_too(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    older, kept = workspace.plan("kit", FRESH), workspace.plan("rowan", BEGUN)
    strangers = workspace.plan("kit", replace(BEGUN, title="Of a stranger"))
    strangers.author = workspace.account("mallory")
    await look(souls, 4)
    assert (older.state, kept.state, strangers.state) == ("closed", "open", "open")
    assert sorted(label.name for label in older.labels) == ["plan", "plan:superseded"]
    assert len(workspace.said(older)) == 1
    assert f"{SITE.name}/issues/{kept.number}" in workspace.said(older)[0]
    carried = [one for one in workspace.said(kept) if "Left over" in one]
    assert len(carried) == 1
    assert "- [ ] Ask @\u200bkit" in carried[0]
    assert "Count" not in carried[0]
    older.state = "open"
    await look(souls, 2)
    assert older.state == "open"
    assert len(workspace.said(older)) == 1


@pytest.mark.slow
async def test_labels_follow_the_tasks_and_what_a_soul_said_twice_is_deleted_once(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    issue, network = workspace.plan("kit", FRESH, "plan:blocked", "urgent"), workspace.github.network
    for login in ("rowan", "rowan", "kit", "kit", "wren"):
        network.write_comment(workspace.repo, issue, workspace.account(login), "I look at #2 now.")
    await look(souls, 2)
    assert workspace.said(issue) == [f"{one}: I look at #2 now." for one in ("rowan", "kit", "kit", "wren")]
    assert sorted(label.name for label in issue.labels) == ["plan", "plan:active", "urgent"]
    done = replace(FRESH, tasks=tuple(replace(task, status="completed") for task in FRESH.tasks))
    kit, body = workspace.account("kit"), generate_plan_markdown(done)
    network.change_issue(workspace.repo, issue, kit, body=body)
    await look(souls, 3)
    assert issue.state == "closed"
    assert sorted(label.name for label in issue.labels) == ["plan", "plan:complete", "urgent"]
    assert len(workspace.said(issue)) == 5


@pytest.mark.slow
async def test_issues_that_rest_are_closed_with_a_word_and_those_of_people_who_wait_are_not(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    network, repo = workspace.github.network, workspace.repo
    answered, waiting = workspace.open("kit", "Answered"), workspace.open("kit", "Waiting")
    of_owner, own = workspace.open("owner", "Of the owner"), workspace.open("rowan", "A thought of ours")
    planned, disputed = workspace.open("rowan", "Part of a plan"), workspace.open("kit", "Disputed")
    workspace.plan("kit", replace(FRESH, context=f"Asked for in #{planned.number}"))
    for issue in (answered, of_owner, disputed):
        network.write_comment(repo, issue, workspace.account("rowan"), "It is 12.")
    await look(souls)
    for life in souls:
        life.passes(DAY_S + 60)
    await look(souls)
    assert [len(workspace.said(one)) for one in (answered, disputed)] == [2, 2]
    network.write_comment(repo, disputed, workspace.account("kit"), "Not yet: it is 13 here.")
    await look(souls, 2)
    states = {one.title: one.state for one in (answered, disputed, waiting, of_owner, own, planned)}
    assert states == {
        "Answered": "closed",
        "Disputed": "open",
        "Waiting": "open",
        "Of the owner": "open",
        "A thought of ours": "open",
        "Part of a plan": "open",
    }
    assert len(workspace.said(answered)) == 2
    for life in souls:
        life.passes(6 * DAY_S)
    await look(souls, 3)
    assert [one.state for one in (waiting, of_owner, own, planned)] == ["open", "open", "closed", "open"]
    assert len(workspace.said(own)) == 1


@pytest.mark.slow
async def test_what_nobody_understands_of_a_plan_is_said_there_once(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    kit, network = workspace.account("kit"), workspace.github.network
    plan, strangers = workspace.plan("kit", FRESH), workspace.plan("kit", replace(FRESH, title="Of a stranger"))
    unclear = (plan.body or "").replace("**Status:** pending", "**Status:** claimed by the wind, @wren", 1)
    network.change_issue(workspace.repo, plan, kit, body=unclear)
    network.change_issue(workspace.repo, strangers, kit, body=unclear)
    strangers.author = workspace.account("mallory")
    await look(souls, 3)
    assert len(workspace.said(plan)) == 1
    assert "> Task 1: Status: claimed by the wind, @\u200bwren" in workspace.said(plan)[0]
    assert not claims_on([PlanComment(1, "rowan", plan.comments[0].body, souls[0].app.services.clock.now())], 1)
    assert not workspace.said(strangers)
    more = unclear.replace("**Dependencies:** none", "**Dependencies:** the tide", 1)
    network.change_issue(workspace.repo, plan, kit, body=more)
    await look(souls, 3)
    assert len(workspace.said(plan)) == 2
    assert "the tide" in workspace.said(plan)[1]
    assert "the wind" not in workspace.said(plan)[1]


async def test_no_plan_is_said_to_be_complete_where_github_would_not_let_us_close_it(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    done = replace(FRESH, tasks=tuple(replace(task, status="completed") for task in FRESH.tasks))
    plan = workspace.plan("kit", done)
    plan.author = workspace.account("owner")
    workspace.repo.collaborators -= {"rowan", "wren"}
    await look(souls, 3)
    assert (plan.state, workspace.said(plan)) == ("open", [])


@pytest.mark.slow
async def test_of_the_issues_of_a_complete_plan_those_are_closed_that_github_lets_us_close(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    theirs, own = workspace.open("kit", "A count"), workspace.open("rowan", "A thought of ours")
    told = f"It counts.\n\nFor #{theirs.number}, #{own.number}."
    plan = workspace.plan("rowan", replace(FRESH, tasks=(Task(1, "Count", status="completed", description=told),)))
    workspace.repo.collaborators.clear()
    await look(souls, 3)
    assert [one.state for one in (theirs, own, plan)] == ["open", "closed", "closed"]
    assert (workspace.said(theirs), len(workspace.said(own))) == ([], 1)


@pytest.mark.slow
async def test_an_open_issue_waits_for_each_soul_and_gets_its_author(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    issue, plan = workspace.open("kit", "Which layout?"), workspace.plan("kit", FRESH)
    await look(souls, 2)
    assert [one.login for one in issue.assignees] == ["kit"]
    for life in souls:
        waiting = [thread_of(one) for one in await life.app.services.work.newest(THREAD, 9)]
        assert [(one.number, one.source) for one in waiting] == [(issue.number, "workspace_issue")]
    assert not plan.assignees
