"""The workspace of the owner's organisation: found once, never made twice, watched from then on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from adapters.github.types import Repo
from common.result import Err, Ok
from modules.services.claims.offers import PLAN_AWARENESS
from modules.services.workspaces.watched import FILLED_WITHIN_S, KNOWN_FOR_S, WorkspaceRequest, workspace_name
from tests.patience import HANG_S, until
from tests.running_town import HASTE_STEP_BY_STEP, RunningSoul, RunningTown, awake
from tests.town_github import TownGitHub
from town.github.service import github_app
from town.github.values import StoredRepo
from town.serving import serve

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ORG = {"WORKSPACE_ORG": "acme", "WORKSPACE_TEMPLATE": "acme/template"}
THREAD = "at://did:plc:owner/app.bsky.feed.post/1"
GARDEN = WorkspaceRequest("The Garden", "Plants for all.", thread_uri=THREAD, by_owner=True)


@pytest.fixture
def template(town_github: TownGitHub) -> StoredRepo:
    """The template repository of an organisation in which `rowan` may create repositories."""
    town_github.network.state.members["acme"] = {"rowan"}
    made = town_github.add_repo("template")
    made.is_template = True
    return made


async def put(life: RunningSoul, repo: Repo) -> None:
    """Write the first file of a repository."""
    assert isinstance(await life.app.services.github.contents.write(repo, "README.md", "# It\n", message="Add"), Ok)


def watches(life: RunningSoul, count: int) -> Callable[[], bool]:
    """Return what tells whether that many workspaces are watched."""
    return lambda: len(life.app.services.workspaces.all()) == count


def repos(town_github: TownGitHub) -> list[str]:
    return [one.name for one in town_github.network.repos()]


async def test_it_is_made_once_from_the_template_and_watched_with_its_thread(
    running_town: RunningTown, town_github: TownGitHub, template: StoredRepo
) -> None:
    async with awake(town_github.make_home(**ORG)) as life:
        await put(life, Repo("acme", "template"))
        own = life.app.services.own_workspace
        async with life.sending():
            made = await own.create_workspace(GARDEN)
            again = await own.create_workspace(WorkspaceRequest("Another", by_owner=True))
        (watched,) = life.app.services.workspaces.all()
        read = await life.app.services.github.contents.read(Repo("acme", "www-lil-intdev-the-garden"), "README.md")
    assert (made.code, made.workspace and made.workspace.full_name) == ("created", "acme/www-lil-intdev-the-garden")
    assert (again.code, again.workspace and again.workspace.full_name) == ("exists", "acme/www-lil-intdev-the-garden")
    assert repos(town_github) == ["site", "template", "www-lil-intdev-the-garden"]
    assert (watched.repo, watched.discovered_in_thread) == ("www-lil-intdev-the-garden", THREAD)
    assert isinstance(read, Ok)
    assert read.data.text == "# It\n"


async def test_a_template_that_github_copies_late_is_waited_for_to_its_end(
    running_town: RunningTown, town_github: TownGitHub, template: StoredRepo
) -> None:
    async with awake(town_github.make_home(**ORG)) as life:
        own = life.app.services.own_workspace
        async with life.sending():
            making = asyncio.create_task(own.create_workspace(GARDEN))
            await until(watches(life, 1))
            await put(life, Repo("acme", "www-lil-intdev-the-garden"))
            assert (await making).code == "created"
            del town_github.network.state.repos["acme/www-lil-intdev-the-garden"]
            making = asyncio.create_task(own.create_workspace(WorkspaceRequest("Weir", by_owner=True)))
            await until(watches(life, 2))
            life.passes(FILLED_WITHIN_S + 60)
            late = await making
    assert (late.code, late.reason) == ("waits", "acme/www-lil-intdev-weir is still empty")


async def test_none_is_made_where_it_cannot_be_seen_whether_there_is_one(
    running_town: RunningTown, town_github: TownGitHub, template: StoredRepo
) -> None:
    async with awake(town_github.make_home(**ORG | {"WORKSPACE_ORG": "nobody"})) as life:
        own = life.app.services.own_workspace
        found = await own.finder.find_existing_workspace("nobody")
        assert isinstance(found, Err)
        assert (await own.create_workspace(GARDEN)).code == "unknown"
        assert (await own.create_workspace(WorkspaceRequest("x", org="acme", by_owner=True))).code == "elsewhere"
        assert await life.app.services.outbox.of_kind("repository", 5) == []
    async with awake(town_github.make_home()) as life:
        assert (await life.app.services.own_workspace.create_workspace(GARDEN)).code == "elsewhere"
    assert repos(town_github) == ["site", "template"]


async def test_one_that_a_peer_made_meanwhile_stays_the_only_one_and_is_watched(
    running_town: RunningTown, town_github: TownGitHub, template: StoredRepo
) -> None:
    async with awake(town_github.make_home(**ORG)) as life:
        own = life.app.services.own_workspace
        making = asyncio.create_task(own.create_workspace(GARDEN))
        assert await life.app.services.outbox.wait_for_work(HANG_S * HASTE_STEP_BY_STEP)
        town_github.add_repo("www-lil-intdev-of-a-peer")
        async with life.sending():
            made = await making
        (watched,) = life.app.services.workspaces.all()
    assert (made.code, made.workspace and made.workspace.full_name) == ("exists", "acme/www-lil-intdev-of-a-peer")
    assert watched.repo == "www-lil-intdev-of-a-peer"
    assert repos(town_github) == ["site", "template", "www-lil-intdev-of-a-peer"]


@dataclass
class AtOnce:
    """An ASGI application in front of another: the requests that make a repository go on once so many have come."""

    app: ASGIApp
    together: asyncio.Barrier

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/generate"):
            async with asyncio.timeout(HANG_S):
                await self.together.wait()
        await self.app(scope, receive, send)


@pytest.mark.parametrize(("names", "made"), [(("Weir", "Garden"), ["garden", "weir"]), (("Weir", "Weir"), ["weir"])])
async def test_of_two_souls_that_make_one_in_the_same_second_both_work_in_the_same(
    running_town: RunningTown, town_github: TownGitHub, template: StoredRepo, names: tuple[str, str], made: list[str]
) -> None:
    wren = {"AGENT_GITHUB_USERNAME": "wren", "AGENT_GITHUB_TOKEN": town_github.network.create_account("wren").token}
    town_github.network.state.members["acme"].add("wren")
    async with AsyncExitStack() as stack:
        app = AtOnce(github_app(town_github.network), asyncio.Barrier(2))
        url = {"GITHUB_API_URL": await stack.enter_async_context(serve(app))}
        first = await stack.enter_async_context(awake(town_github.make_home(**ORG | url)))
        home = running_town.make_home("wren", SOUL_ALLOW_PRIVATE_NET="on", **ORG | url | wren)
        second = await stack.enter_async_context(awake(home))
        await put(first, Repo("acme", "template"))
        souls = (first, second)
        for life in souls:
            await stack.enter_async_context(life.sending())
        creations = await asyncio.gather(
            *(
                life.app.services.own_workspace.create_workspace(WorkspaceRequest(name, by_owner=True))
                for life, name in zip(souls, names, strict=True)
            )
        )
        kept = [[one.repo for one in life.app.services.workspaces.all()] for life in souls]
        warned = [line for life in souls for _, line, _ in life.console.lines if "which stays" in line]
    assert sorted(repos(town_github)) == ["site", "template", *(f"www-lil-intdev-{name}" for name in made)]
    assert kept[0] == kept[1]
    assert len(kept[0]) == 1
    assert {one.workspace and one.workspace.repo.name for one in creations} == set(kept[0])
    assert sorted(one.code for one in creations) == ["created", "exists"]
    assert len(warned) == len(made) - 1


async def test_without_the_owners_word_it_waits_for_it_or_is_refused(
    running_town: RunningTown, town_github: TownGitHub, template: StoredRepo
) -> None:
    async with awake(town_github.make_home(**ORG)) as life:
        own = life.app.services.own_workspace
        held = await own.create_workspace(WorkspaceRequest("Garden", hold="others' words are in this turn"))
        refused = await own.create_workspace(WorkspaceRequest("Garden"))
    assert (held.code, refused.code) == ("held", "refused")
    assert repos(town_github) == ["site", "template"]


async def test_the_one_that_is_there_is_watched_from_the_first_cycle_on_and_looked_for_every_ten_minutes(
    running_town: RunningTown, town_github: TownGitHub, template: StoredRepo
) -> None:
    async with awake(town_github.make_home(**ORG)) as life:
        assert (await life.app.scheduler.run_guarded(PLAN_AWARENESS)).reason == "no workspace is watched"
        town_github.add_repo("www-lil-intdev-garden")
        assert (await life.app.scheduler.run_guarded(PLAN_AWARENESS)).reason == "no workspace is watched"
        life.passes(KNOWN_FOR_S)
        await life.app.scheduler.run_guarded(PLAN_AWARENESS)
        assert [one.repo for one in life.app.services.workspaces.all()] == ["www-lil-intdev-garden"]
        assert any("The workspace of acme is watched" in line for _, line, _ in life.console.lines)


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("The Garden", "www-lil-intdev-the-garden"),
        ("WWW-Lil-Intdev-Garden", "www-lil-intdev-garden"),
        ("../../etc", "www-lil-intdev-etc"),
        (f"{'a' * 59} b", f"www-lil-intdev-{'a' * 59}"),
    ],
)
def test_its_name_has_the_prefix_once(name: str, becomes: str) -> None:
    assert workspace_name(name) == becomes
