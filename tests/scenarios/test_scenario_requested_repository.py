"""A repository that the owner, or the host of a room, names for work is watched; text by others adds none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from adapters.github.types import Repo
from common.errors import SoulError
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.outbox.github_bodies import IssueBody
from modules.services.outbox.types import ProposedAction
from modules.services.workspaces.watched import WatchedWorkspaces
from soul.commands.run import phone_commands
from tests.local_tools.github_working import MIXED, OWNER
from tests.running_town import RunningTown, awake
from tests.scenarios.workspace_town import HOUR_S, LivingSoul, WorkspaceTown, open_workspace
from town.github.values import StoredRepo

PLAN = {"title": "Fix it", "goal": "It adds.", "tasks": [{"title": "Fix the sum", "description": "In sum.py."}]}


@pytest.fixture
async def place(running_town: RunningTown) -> AsyncIterator[WorkspaceTown]:
    async with open_workspace(running_town) as place:
        yield place


@pytest.fixture
async def one(place: WorkspaceTown) -> AsyncIterator[LivingSoul]:
    """A SOUL that watches nothing yet."""
    async with awake(place.home(), clock=place.clock) as soul:
        yield LivingSoul(place, soul)


def repository(place: WorkspaceTown, owner: str, name: str, *, may_push: bool = True) -> StoredRepo:
    account = place.network.find(owner)
    assert account
    return place.network.create_repo(account, name, collaborators=["rowan"] if may_push else [])


async def use(one: LivingSoul, tool: str, turn: Turn = OWNER, /, **arguments: object) -> ToolResult:
    executor = one.soul.app.lives.turn_services.turn_runner.executor
    async with one.soul.sending():
        return await executor.execute(ToolCall("1", tool, arguments), turn)


def names(one: LivingSoul) -> set[str]:
    return set(one.soul.app.services.workspaces.names())


async def test_the_tools_watch_what_the_owner_names_if_the_token_may_push_and_the_owner_ends_it(
    place: WorkspaceTown, one: LivingSoul
) -> None:
    repository(place, "kit", "lib")
    repository(place, "kit", "tool")
    foreign = repository(place, "eve", "lib", may_push=False)
    planned = await use(one, "plan_create", repo="kit/lib", **PLAN)
    assert "notWatched" not in json.loads(planned.content)
    await use(one, "github_create_issue", repo="kit/tool", title="It crashes", body="On start.")
    told = json.loads((await use(one, "github_create_issue", repo="eve/lib", title="A typo", body="x")).content)
    assert "no push access" in told["notWatched"]
    assert [issue.title for issue in foreign.issues.values() if issue] == ["A typo"]
    assert names(one) == {"kit/lib", "kit/tool"}
    file = one.soul.app.services.home.memory / "watched_workspaces.json"
    assert WatchedWorkspaces(file, place.clock, place.url).names() == {"kit/lib", "kit/tool"}
    status: dict[str, Any] = await one.soul.app.status_report.gather()
    assert [(each["repo"], each["requested"]) for each in status["watched"]] == [("kit/lib", True), ("kit/tool", True)]
    typed = phone_commands(one.soul.app)
    assert "no longer watched" in (await typed.answer("/unwatch kit/lib"))[0]
    with pytest.raises(SoulError, match="not watched"):
        await typed.answer("/unwatch eve/lib")
    await one.look()
    assert names(one) == {"kit/tool"}


async def test_text_by_others_adds_nothing_until_the_owner_approves_the_plan(
    place: WorkspaceTown, one: LivingSoul
) -> None:
    made = repository(place, "kit", "lib")
    assert "until your owner agrees" in (await use(one, "plan_create", MIXED, repo="kit/lib", **PLAN)).content
    await one.look()
    assert (names(one), list(made.issues)) == (set(), [])
    outbox = one.soul.app.services.outbox
    (held,) = await outbox.held()
    await outbox.approve(held.id)
    await one.soul.send()
    await one.look()
    assert names(one) == {"kit/lib"}
    await phone_commands(one.soul.app).answer("/unwatch kit/lib")
    await use(one, "plan_create", MIXED, repo="kit/lib", **PLAN)
    await one.look()
    assert names(one) == set()


@pytest.mark.slow
async def test_of_what_others_caused_only_what_the_host_of_a_room_named_is_watched(
    place: WorkspaceTown, one: LivingSoul
) -> None:
    for name in ("named", "talked-into", "posted"):
        repository(place, "kit", name)
    in_room = {"body": "x", "title": "x", "source": "space", "commitment_id": "c"}
    causes: list[tuple[str, dict[str, Any], str, bool]] = [
        ("named", {**in_room, "host_named": True, "host_wish": True}, "space://conversation/1", False),
        ("talked-into", {**in_room, "host_wish": True}, "space://conversation/2", False),
        ("posted", {"body": "x", "title": "x"}, "at://did:plc:owner/app.bsky.feed.post/1", True),
    ]
    for name, fields, cause, by_owner in causes:
        body = IssueBody(repo=f"kit/{name}", **fields)
        await one.soul.app.services.outbox.submit(ProposedAction(body, name, cause_id=cause, by_owner=by_owner))
    await one.soul.send()
    await one.look()
    assert names(one) == {"kit/named"}


@pytest.mark.slow
async def test_in_a_requested_repository_only_what_was_asked_for_is_planned(
    place: WorkspaceTown, one: LivingSoul
) -> None:
    made = repository(place, "kit", "lib")
    kit = place.network.find("kit")
    assert kit
    theirs = place.network.open_issue(made, kit, title="Rewrite it all", body="In Rust.", labels=())
    place.mind.tasks = [{"title": "Fix the crash", "description": "At once.", "issues": [2]}]
    await use(one, "github_create_issue", repo="kit/lib", title="It crashes", body="On start.")
    assert one.soul.app.services.workspaces.default() == Repo("kit", "lib")
    await one.look(HOUR_S, times=3)
    (prompt,) = place.mind.prompts("plan_create")
    assert "It crashes" in prompt
    assert "Rewrite it all" not in prompt
    assert [issue.title for issue in made.issues.values() if issue][2:] == ["[PLAN] One page"]
    await one.look(24 * HOUR_S, times=9)
    assert (theirs.state, len(theirs.comments)) == ("open", 0)
    assert not place.mind.prompts("workspace_verdict")
