"""SOULs keep a workspace in order, doing each step once: one plan, correct labels, no repeated comment, no idle issue.

A SOUL checks the progress of the plans of watched workspaces, and tells its owner when it changed. An open issue of a
workspace is handled once without a notification, and closed when the SOUL leaves it, if nobody waits.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from adapters.github.history import BodyEdit, LostEdit
from adapters.github.types import Repo
from common.result import Ok
from modules.lives.workspaces.issue_upkeep import MOST_LED_TO
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.services.claims.lease_store import PLAN_AWARENESS, TaskOrders, TaskPlace
from modules.services.claims.policy import PlanComment, claims_on
from modules.services.github_threads import THREAD, thread_of
from modules.services.peers.policy import PeerClaim
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.repository import is_planned
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.github_talk import CLOCK, SAID, Place, acts, look, minding, open_place
from tests.town_github import TownGitHub
from town.github.values import GitHubAccount, StoredIssue, StoredRepo
from town.model.types import ChatRequest, Completion

SITE = Repo("acme", "www-lil-intdev-site")
DAY_S = 86_400.0
FRESH = Plan("A counter", goal="It counts.", tasks=(Task(1, "Count"), Task(2, "Show"), Task(3, "Ask @kit")))
BEGUN = replace(FRESH, tasks=(Task(1, "Count", status="completed"), Task(2, "Show", status="in_progress")))


@dataclass
class Workspace:
    """A workspace to which `rowan` and `kit` may push and `mallory` may not."""

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
    """Yield two SOULs that know each other and watch the workspace."""
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


async def look_together(souls: list[RunningSoul], times: int = 1) -> None:
    """Let all SOULs look at once, then send all their intents at once."""
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
    await look_together(souls, 4)
    assert (older.state, kept.state, strangers.state) == ("closed", "open", "open")
    assert sorted(label.name for label in older.labels) == ["plan", "plan:superseded"]
    assert len(workspace.said(older)) == 1
    assert f"{SITE.name}/issues/{kept.number}" in workspace.said(older)[0]
    carried = [one for one in workspace.said(kept) if "Left over" in one]
    assert len(carried) == 1
    assert "- [ ] Ask @\u200bkit" in carried[0]
    assert "Count" not in carried[0]
    older.state = "open"
    await look_together(souls, 2)
    assert older.state == "open"
    assert len(workspace.said(older)) == 1


@pytest.mark.slow
async def test_each_open_plan_is_seen_however_many_came_after_it(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    planned = workspace.open("kit", "Count the roofs")
    numbers = {workspace.plan("kit", replace(FRESH, context=f"Asked for in #{planned.number}")).number}
    numbers |= {workspace.plan("kit", replace(FRESH, title=f"Counter {number}")).number for number in range(32)}
    for number in range(100):
        workspace.open("mallory", f"A question {number}")
    services = souls[0].app.services
    orders = TaskOrders(services.work, services.events.publish)
    seen = await WorkspacePerceiver(services.github, services.workspaces, services.trust, orders, services.clock).look()
    assert {plan.number for one in seen.workspaces for plan in one.plans} == numbers
    assert await is_planned(services.github, SITE, planned.number) == Ok(data=True)


@pytest.mark.slow
async def test_labels_follow_the_tasks_and_what_a_soul_said_twice_is_deleted_once(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    issue, network = workspace.plan("kit", FRESH, "plan:blocked", "urgent"), workspace.github.network
    for login in ("rowan", "rowan", "kit", "kit", "wren"):
        network.write_comment(workspace.repo, issue, workspace.account(login), "I look at #2 now.")
    await look_together(souls, 2)
    assert workspace.said(issue) == [f"{one}: I look at #2 now." for one in ("rowan", "kit", "kit", "wren")]
    assert sorted(label.name for label in issue.labels) == ["plan", "plan:active", "urgent"]
    done = replace(FRESH, tasks=tuple(replace(task, status="completed") for task in FRESH.tasks))
    kit, body = workspace.account("kit"), generate_plan_markdown(done)
    network.change_issue(workspace.repo, issue, kit, body=body)
    await look_together(souls, 3)
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
    await look_together(souls)
    for life in souls:
        life.passes(DAY_S + 60)
    await look_together(souls)
    assert [len(workspace.said(one)) for one in (answered, disputed)] == [2, 2]
    said = ((workspace.account("kit"), "Not yet: it is 13 here."), (disputed.comments[-1].author, "It stays open."))
    for account, text in said:
        network.write_comment(repo, disputed, account, text)
    await look_together(souls, 2)
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
    await look_together(souls, 3)
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
    await look_together(souls, 3)
    assert len(workspace.said(plan)) == 1
    assert "> Task 1: Status: claimed by the wind, @\u200bwren" in workspace.said(plan)[0]
    assert not claims_on([PlanComment(1, "rowan", plan.comments[0].body, souls[0].app.services.clock.now())], 1)
    assert not workspace.said(strangers)
    more = unclear.replace("**Dependencies:** none", "**Dependencies:** the tide", 1)
    network.change_issue(workspace.repo, plan, kit, body=more)
    await look_together(souls, 3)
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
    await look_together(souls, 3)
    assert (plan.state, workspace.said(plan)) == ("open", [])


@pytest.mark.slow
async def test_of_the_issues_of_a_complete_plan_those_are_closed_that_github_lets_us_close(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    theirs, own = workspace.open("kit", "A count"), workspace.open("rowan", "A thought of ours")
    told = f"It counts.\n\nFor #{theirs.number}, #{own.number}."
    plan = workspace.plan("rowan", replace(FRESH, tasks=(Task(1, "Count", status="completed", description=told),)))
    workspace.repo.collaborators.clear()
    await look_together(souls, 3)
    assert [one.state for one in (theirs, own, plan)] == ["open", "closed", "closed"]
    assert (workspace.said(theirs), len(workspace.said(own))) == ([], 1)


@pytest.mark.slow
async def test_an_open_issue_waits_for_each_soul_and_gets_its_author(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    issue, plan = workspace.open("kit", "Which layout?"), workspace.plan("kit", FRESH)
    await look_together(souls, 2)
    assert [one.login for one in issue.assignees] == ["kit"]
    for life in souls:
        waiting = [thread_of(one) for one in await life.app.services.work.newest(THREAD, 9)]
        assert [(one.number, one.source) for one in waiting] == [(issue.number, "workspace_issue")]
    assert not plan.assignees


@pytest.mark.slow
async def test_what_was_written_last_is_seen_in_the_oldest_of_many_issues(
    souls: list[RunningSoul], workspace: Workspace
) -> None:
    old, *_ = [workspace.open(by, "Which layout?") for by in ("kit", *["rowan"] * MOST_LED_TO)]
    old.updated_at += timedelta(minutes=1)
    await look_together(souls)
    for life in souls:
        waiting = await life.app.services.work.newest(THREAD, 99)
        assert old.number in {thread_of(one).number for one in waiting}


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


async def test_a_workspace_that_its_owner_renamed_is_watched_under_the_new_name_with_the_orders_for_its_tasks(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    repo = town_github.add_repo(SITE.name)
    async with awake(town_github.make_home()) as life:
        await life.app.services.github.create_issue(SITE, "[PLAN] A counter", BODY, labels=("plan",))
        watched = life.app.services.workspaces
        watched.watch(SITE)
        await life.app.scheduler.run_guarded(PLAN_AWARENESS)
        orders = TaskOrders(life.app.services.work, life.app.services.events.publish)
        await orders.leave(TaskPlace(SITE, 1, 1))
        town_github.network.rename_repo(repo, f"{SITE.name}-2")
        for _ in range(2):
            outcome = await life.app.scheduler.run_guarded(PLAN_AWARENESS)
        assert outcome.reason == "1 plan with 2 tasks: 2 free"
        new = Repo(SITE.owner, f"{SITE.name}-2")
        assert [await orders.is_left(TaskPlace(new, 1, number)) for number in (1, 2)] == [True, False]
        assert [(one.repo, one.active_plan_issues) for one in watched.all()] == [(f"{SITE.name}-2", (1,))]


@pytest.fixture
async def place(running_town: RunningTown) -> AsyncIterator[Place]:
    async with open_place(running_town, "owner") as found:
        yield found


async def look_around(soul: RunningSoul, place: Place) -> None:
    soul.app.services.workspaces.watch(Repo("owner", place.repo.name))
    await soul.app.scheduler.run_guarded(PLAN_AWARENESS)
    await look(soul)


def leaving(request: ChatRequest) -> Completion:
    names = {offer.name for offer in request.offers}
    if "github_graceful_exit" in names:
        return call("github_graceful_exit", closing_type="like", reason="it is settled")
    return call("stay_silent", reason="nothing to add") if "stay_silent" in names else Completion(text="[]")


@pytest.mark.slow
async def test_an_issue_that_names_nobody_gets_one_comment_in_a_workspace(place: Place) -> None:
    place.town.mind.answer = minding()
    async with awake(place.home(), clock=CLOCK) as soul:
        await look(soul)
        assert await acts(soul) == []
        for _ in range(2):
            await look_around(soul, place)
        assert place.comments == [SAID]
        assert (await acts(soul))[0] == ("commented", "workspace-issue")
        assert [one.code for one in soul.app.services.relationships.reflection.insights] == ["Commented"]


@pytest.mark.parametrize(
    ("by_soul", "is_planned"), [(True, False), (False, False), pytest.param(True, True, marks=pytest.mark.slow)]
)
async def test_an_issue_that_it_leaves_is_closed_unless_a_person_waits_or_a_plan_names_it(
    place: Place, *, by_soul: bool, is_planned: bool
) -> None:
    place.town.mind.answer = leaving
    if is_planned:
        body = f"# [PLAN] Mine\n\n## Context\nAsked for in #{place.issue.number}\n"
        owner = place.network.find("owner")
        assert owner
        place.network.open_issue(place.repo, owner, title="[PLAN] Mine", body=body, labels=["plan"])
    if by_soul:
        wren = place.network.create_account("wren")
        place.network.write_comment(place.repo, place.issue, wren, "@rowan that is done, is it not?")
    did = place.town.account("wren")
    async with awake(place.home(SOUL_PEERS="wren.test"), clock=CLOCK) as soul:
        registry = soul.app.services.peer_registry
        peer = place.network.find("wren")
        claim = PeerClaim("wren.test", did, "wren")
        registry.link_bluesky_handle_to_github(claim, github_id=peer.id if peer else None)
        await look_around(soul, place)
        assert (await acts(soul))[0][0] == "left"
        assert len(place.issue.reactions) == 1
        assert place.issue.state == ("closed" if by_soul and not is_planned else "open")
