"""The workspace of the owner's organisation is found, never made twice, and watched from then on.

Proves what the SOUL knows of the workspaces that it watches, and what of it is on disk. Proves when a workspace is due
for a plan, and when for a check whether it is finished.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adapters.github.types import Repo
from common.clock import FakeClock, iso, parse_iso
from common.result import Err, Ok
from modules.lives.workspaces.policy import (
    HEALTH_CHECK_COOLDOWN,
    PLAN_SYNTHESIS_COOLDOWN,
    get_workspaces_needing_plan_synthesis,
    is_health_check_due,
)
from modules.services.claims.lease_store import PLAN_AWARENESS
from modules.services.workspaces.watched import (
    FILLED_WITHIN_S,
    GONE_FOR,
    KNOWN_FOR_S,
    MOST_WATCHED,
    WatchedWorkspace,
    WatchedWorkspaces,
    WorkspaceRequest,
    workspace_name,
)
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
    """Return the template repository of an organisation in which `rowan` may create repositories."""
    town_github.network.state.members["acme"] = {"rowan"}
    made = town_github.add_repo("template")
    made.is_template = True
    return made


async def put(life: RunningSoul, repo: Repo) -> None:
    """Write the first file of a repository."""
    assert isinstance(await life.app.services.github.contents.write(repo, "README.md", "# It\n", message="Add"), Ok)


def watches(life: RunningSoul, count: int) -> Callable[[], bool]:
    """Return a function that tells whether `count` workspaces are watched."""
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
    """Wraps an ASGI application: requests that make a repository wait until enough of them have come."""

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


ADDRESS = "https://git.example.org"
GARDEN_REPO = Repo("Owner-Hub", "www-lil-intdev-garden")
ROOT = "at://did:plc:owner/app.bsky.feed.post/1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "watched_workspaces.json"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watched(path: Path, clock: FakeClock) -> WatchedWorkspaces:
    return WatchedWorkspaces(path, clock, ADDRESS)


def test_a_workspace_is_watched_once_whatever_the_capitals(
    watched: WatchedWorkspaces, path: Path, clock: FakeClock
) -> None:
    assert watched.watch(GARDEN_REPO, ROOT)
    assert not watched.watch(Repo("owner-hub", "WWW-lil-intdev-garden"), "at://did:plc:kit/app.bsky.feed.post/2")
    assert json.loads(path.read_text())["workspaces"] == {
        "owner-hub/www-lil-intdev-garden": {
            "owner": "Owner-Hub",
            "repo": "www-lil-intdev-garden",
            "url": f"{ADDRESS}/Owner-Hub/www-lil-intdev-garden",
            "discoveredAt": iso(clock.now()),
            "discoveredInThread": ROOT,
            "activePlanIssues": [],
            "inVainOver": "",
            "inVain": 0,
            "undoableTold": [],
            "requested": False,
        }
    }


def test_the_first_thread_that_names_it_is_its_thread(watched: WatchedWorkspaces) -> None:
    assert watched.watch(GARDEN_REPO)
    assert not watched.is_thread_of_one(ROOT)
    assert not watched.watch(GARDEN_REPO, ROOT)
    watched.watch(GARDEN_REPO, "at://did:plc:kit/app.bsky.feed.post/2")
    assert watched.is_thread_of_one(ROOT)
    assert not watched.is_thread_of_one("at://did:plc:kit/app.bsky.feed.post/2")


def test_it_is_known_after_a_restart_with_what_others_wrote_into_it(path: Path, clock: FakeClock) -> None:
    WatchedWorkspaces(path, clock, ADDRESS).watch(GARDEN_REPO, ROOT)
    file = json.loads(path.read_text())
    file["lastFullPoll"] = iso(clock.now())
    file["workspaces"]["owner-hub/www-lil-intdev-garden"]["activePlanIssues"] = [4]
    path.write_text(json.dumps(file))
    again = WatchedWorkspaces(path, clock, ADDRESS)
    assert again.is_thread_of_one(ROOT)
    again.watch(Repo("kit", "www-lil-intdev-weir"))
    written = json.loads(path.read_text())
    assert written["workspaces"]["owner-hub/www-lil-intdev-garden"]["activePlanIssues"] == [4]
    assert written["lastFullPoll"] == iso(clock.now())
    assert [one.owner for one in WatchedWorkspaces(path, clock, ADDRESS).all()] == ["Owner-Hub", "kit"]


def test_no_more_are_watched_than_can_be_looked_at(watched: WatchedWorkspaces) -> None:
    assert all(watched.watch(Repo("kit", f"www-lil-intdev-{number}")) for number in range(MOST_WATCHED))
    assert not watched.has_room_for(GARDEN_REPO)
    assert not watched.watch(GARDEN_REPO)
    assert len(watched.all()) == MOST_WATCHED
    watched.note(Repo("kit", "www-lil-intdev-7"), finished_issue_number=3)
    assert watched.has_room_for(GARDEN_REPO)
    assert watched.watch(GARDEN_REPO)
    assert watched.get(Repo("kit", "www-lil-intdev-7")) is None
    assert len(watched.all()) == MOST_WATCHED


def test_what_is_noted_of_a_workspace_is_kept_and_can_be_taken_away(path: Path, clock: FakeClock) -> None:
    watched = WatchedWorkspaces(path, clock, ADDRESS)
    watched.watch(GARDEN_REPO)
    now = clock.now()
    watched.note(GARDEN_REPO, last_plan_synthesis_attempt=now, last_health_check_attempt=now, finished_issue_number=7)
    watched.note(Repo("kit", "www-lil-intdev-weir"), finished_issue_number=1)
    assert WatchedWorkspaces(path, clock, ADDRESS).all() == watched.all()
    kept = json.loads(path.read_text())["workspaces"]
    assert kept.keys() == {"owner-hub/www-lil-intdev-garden"}
    found = kept["owner-hub/www-lil-intdev-garden"]
    assert (found["lastPlanSynthesisAttempt"], found["lastHealthCheckAttempt"]) == (iso(now), iso(now))
    assert found["finishedIssueNumber"] == 7
    watched.note(GARDEN_REPO, last_health_check_attempt=None, finished_issue_number=None)
    kept = json.loads(path.read_text())["workspaces"]["owner-hub/www-lil-intdev-garden"]
    assert kept.keys() & {"lastHealthCheckAttempt", "finishedIssueNumber"} == set()
    assert kept["lastPlanSynthesisAttempt"] == iso(now)


def test_a_file_of_another_program_is_taken_over_in_place(path: Path, clock: FakeClock) -> None:
    entry = {
        "owner": "Owner-Hub",
        "repo": "www-lil-intdev-garden",
        "url": f"{ADDRESS}/Owner-Hub/www-lil-intdev-garden",
        "discoveredAt": "2026-01-02T03:04:05.000Z",
        "lastPolled": None,
        "activePlanIssues": [3],
        "finishedIssueNumber": 9,
    }
    later = {**entry, "discoveredAt": "2026-01-03T03:04:05.000Z", "finishedIssueNumber": 10}
    file = {
        "_memoryVersion": "0.0.1",
        "lastFullPoll": None,
        "workspaces": {"Owner-Hub/www-lil-intdev-garden": entry, "owner-hub/www-lil-intdev-garden": later},
    }
    path.write_text(json.dumps(file))
    watched = WatchedWorkspaces(path, clock, ADDRESS)
    assert [one.finished_issue_number for one in watched.all()] == [9]
    assert not watched.watch(GARDEN_REPO)
    watched.note_plans(GARDEN_REPO, [3, 4])
    kept = json.loads(path.read_text())
    assert list(kept["workspaces"]) == ["owner-hub/www-lil-intdev-garden"]
    assert kept["workspaces"]["owner-hub/www-lil-intdev-garden"]["activePlanIssues"] == [3, 4]
    assert kept["workspaces"]["owner-hub/www-lil-intdev-garden"]["finishedIssueNumber"] == 9


async def test_a_workspace_that_is_missed_for_a_week_is_watched_no_longer_unless_it_is_finished(
    watched: WatchedWorkspaces, path: Path, clock: FakeClock
) -> None:
    weir = Repo("kit", "www-lil-intdev-weir")
    watched.watch(GARDEN_REPO)
    watched.watch(weir)
    watched.note(weir, finished_issue_number=3)
    await clock.advance(GONE_FOR.total_seconds() - 1)
    assert not watched.unwatch_gone(GARDEN_REPO)
    watched.note_plans(GARDEN_REPO, [])
    await clock.advance(GONE_FOR.total_seconds() - 1)
    assert not watched.unwatch_gone(GARDEN_REPO)
    await clock.advance(1)
    assert watched.unwatch_gone(GARDEN_REPO)
    assert not watched.unwatch_gone(GARDEN_REPO)
    assert not watched.unwatch_gone(weir)
    assert [one.repo for one in WatchedWorkspaces(path, clock, ADDRESS).all()] == [weir.name]


def test_a_requested_repository_is_the_default_only_without_a_workspace(watched: WatchedWorkspaces, path: Path) -> None:
    site = Repo("kit", "site")
    assert watched.default() is None
    watched.watch(site, requested=True)
    assert watched.default() == site
    watched.watch(GARDEN_REPO)
    assert watched.default() == GARDEN_REPO
    assert watched.unwatch(GARDEN_REPO)
    again = WatchedWorkspaces(path, FakeClock(), ADDRESS)
    assert [(one.repo, one.requested) for one in again.all()] == [("site", True)]
    assert (again.stopped_at(GARDEN_REPO), again.stopped_at(site)) == (FakeClock().now(), None)


NOW = parse_iso("2026-03-02T10:00:00.000Z")
SECOND = timedelta(seconds=1)
SINCE = FakeClock(NOW).since


def workspace(name: str = "site", **more: Any) -> WatchedWorkspace:
    fields: dict[str, Any] = {"owner": "acme", "repo": name, "url": "u", "discovered_at": NOW - timedelta(days=9)}
    return WatchedWorkspace(**fields | {"last_polled": NOW} | more)


@pytest.mark.parametrize(
    ("more", "due"),
    [
        ({}, True),
        ({"last_polled": None}, False),
        ({"active_plan_issues": (3, 4)}, True),
        ({"active_plan_issues": (3, 4, 5)}, False),
        ({"finished_issue_number": 4}, False),
        ({"last_plan_synthesis_attempt": NOW - PLAN_SYNTHESIS_COOLDOWN}, True),
        ({"last_plan_synthesis_attempt": NOW - PLAN_SYNTHESIS_COOLDOWN + SECOND}, False),
    ],
)
def test_a_plan_is_looked_for_where_few_are_open_and_it_is_time(more: dict[str, Any], *, due: bool) -> None:
    one = workspace(**more)
    assert get_workspaces_needing_plan_synthesis([one], SINCE) == ([one] if due else [])


def test_the_workspace_that_was_looked_at_longest_ago_comes_first() -> None:
    days = {"late": 1, "early": 3}
    never = workspace("never")
    tried = [workspace(name, last_plan_synthesis_attempt=NOW - timedelta(days=ago)) for name, ago in days.items()]
    assert get_workspaces_needing_plan_synthesis([*tried, never], SINCE) == [never, tried[1], tried[0]]


@pytest.mark.parametrize(
    ("last", "completed", "due"),
    [
        (None, None, True),
        (HEALTH_CHECK_COOLDOWN, None, True),
        (HEALTH_CHECK_COOLDOWN - SECOND, None, False),
        (timedelta(hours=2), timedelta(hours=3), False),
        (timedelta(hours=2), timedelta(hours=1), True),
    ],
)
def test_work_is_judged_once_a_day_and_after_a_plan(
    last: timedelta | None, completed: timedelta | None, *, due: bool
) -> None:
    one = workspace(last_health_check_attempt=NOW - last if last else None)
    assert is_health_check_due(one, SINCE, NOW - completed if completed else None) is due
