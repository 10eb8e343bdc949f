"""Proves when a SOUL counts as gone for a week, who takes up its pull request, and how its author is named."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest

from adapters.atproto.records import POST
from adapters.github.client import GitHub
from adapters.github.types import Account
from common.clock import iso
from modules.lives.tasks.types import Deferred, HeldTask, WorkResult
from modules.services.claims.policy import Claim, claim_marker
from modules.services.peers.policy import PeerClaim
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from modules.services.presence.home_lease_policy import HOME_LEASE
from tests.adapters.results import ok
from tests.loopback import github_at
from tests.modules.lives.tasks.site import SITE, Site, Work, site_with_plan
from tests.running_town import RunningTown
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub
from tests.trusting import gone_of
from town.atproto.service import Fault
from town.github.values import StoredRepo

pytestmark = needs_git

PLAN = Plan("A counter", goal="It counts.", tasks=(Task(1, "Count"),))
DAY_S = 86_400.0


@dataclass
class Left:
    """A SOUL with a workspace, and `kit`, who may push there and whose pull request for the task is open."""

    town: TownGitHub
    site: Site
    repo: StoredRepo
    kit: GitHub

    @property
    def pull_url(self) -> str:
        return self.site.services.github.page(SITE) + "/pull/2"

    async def claims(self) -> None:
        """Write a claim by kit that has ended, like that of a SOUL that opened its pull request."""
        until = self.site.clock.now() - timedelta(minutes=5)
        ok(await self.kit.create_comment(SITE, 1, f"Mine.\n\n{claim_marker(Claim(0, 'kit', 1, 1, until))}"))

    async def has_task(self, login: str) -> None:
        """Assign the task to this login in the plan."""
        issue = ok(await self.kit.get_issue(SITE, 1))
        body = update_task_in_plan_body(issue.body, 1, TaskChange("in_progress", login)).body
        ok(await self.kit.update_issue(SITE, 1, body=body))

    async def cycle(self) -> list[HeldTask]:
        """Run one cycle of the SOUL as after a start, and return the tasks that it began."""
        held: list[HeldTask] = []

        async def keep(task: HeldTask) -> WorkResult:
            held.append(task)
            return Deferred("seen")

        await self.site.cycle(Work(keep))
        return held


@asynccontextmanager
async def left_open(town_github: TownGitHub) -> AsyncIterator[Left]:
    town_github.network.create_account("kit", token="t-kit")
    async with site_with_plan(town_github, PLAN) as site:
        repo = next(one for one in town_github.network.repos() if one.name == SITE.name)
        repo.collaborators.add("kit")
        kit = github_at(town_github.url, "kit", site.clock)
        main = ok(await kit.refs.get(SITE, "main")).sha
        ok(await kit.refs.create(SITE, "task-1-count", main))
        ok(await kit.contents.write(SITE, "COUNT.md", "# One\n", message="m", branch="task-1-count"))
        ok(await kit.pulls.create(SITE, title="task(1): Count", body="Part of #1", head="task-1-count", base="main"))
        place = Left(town_github, site, repo, kit)
        await place.has_task("kit")
        try:
            yield place
        finally:
            await kit.aclose()


async def test_the_task_of_a_soul_that_did_nothing_for_a_week_is_free_and_its_pull_request_is_taken_up(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with left_open(town_github) as place:
        await place.claims()
        place.site.clock.ahead += 8 * DAY_S
        await place.site.cycle()
        assert await place.site.task(1) == ("pending", None)
        told = (await place.site.comments())[-1]
        assert f"kit has not been seen for a week. Whoever takes it goes on with {place.pull_url}" in told
        (held,) = await place.cycle()
        assert held.left is not None
        assert (held.left.number, held.left.author) == (2, "kit")


@pytest.mark.parametrize("sign", ["six days", "no claim", "comment elsewhere", "post", "home lease", "unread lease"])
@pytest.mark.slow
async def test_no_task_is_taken_from_whom_anybody_saw_within_the_week_or_who_is_no_soul(
    running_town: RunningTown, town_github: TownGitHub, sign: str
) -> None:
    async with left_open(town_github) as place:
        if sign != "no claim":
            await place.claims()
        place.site.clock.ahead += (6 if sign == "six days" else 8) * DAY_S
        if sign == "comment elsewhere":
            network, kit = town_github.network, town_github.network.find("kit")
            assert kit
            elsewhere = network.create_repo(kit, "garden")
            issue = network.open_issue(elsewhere, kit, title="Beans", body="")
            network.write_comment(elsewhere, issue, kit, "Two days ago.").created_at += timedelta(days=6)
        if sign in {"post", "home lease", "unread lease"}:
            did = running_town.account("kit")
            claim = PeerClaim("kit.test", did, "kit")
            place.site.services.peer_registry.link_bluesky_handle_to_github(claim, github_id=1)
            at = iso(place.site.clock.now() - timedelta(days=2))
            if sign == "post":
                running_town.network.create(did, POST, {"text": "Good morning.", "createdAt": at})
            else:
                running_town.network.put(did, HOME_LEASE, "self", {"epoch": 3, "until": at})
            if sign == "unread lease":
                running_town.faults.arm(Fault("bad_gateway", "com.atproto.repo.getRecord", times=5))
        await place.site.cycle()
        assert await place.site.task(1) == ("in_progress", "kit")
        assert await place.cycle() == []


async def test_what_many_others_did_in_a_private_repository_hides_nobody(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with left_open(town_github) as place:
        await place.claims()
        place.repo.private = True
        place.site.clock.ahead += 8 * DAY_S
        network, now, (_, work) = town_github.network, place.site.clock.now(), place.repo.issues.values()
        kit, other = network.find("kit"), network.create_account("wren", token="t-wren")
        assert kit
        assert work
        network.write_comment(place.repo, work, kit, "It waits for a review.").created_at = now - timedelta(days=1)
        for _ in range(100):
            network.write_comment(place.repo, work, other, "Built.").created_at = now
        await place.site.cycle()
        assert await place.site.task(1) == ("in_progress", "kit")


async def test_whoever_cannot_be_looked_up_is_not_gone(running_town: RunningTown, town_github: TownGitHub) -> None:
    async with site_with_plan(town_github, PLAN) as site:
        gone = gone_of(site.services.github, site.clock)
        assert not await gone.is_gone(Account(7, "nobody-there"), SITE)


async def test_a_soul_that_came_back_and_merged_before_anybody_took_its_task_has_done_it(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with left_open(town_github) as place:
        await place.claims()
        place.site.clock.ahead += 8 * DAY_S
        await place.site.cycle()
        ok(await place.kit.pulls.merge(SITE, 2))
        assert await place.cycle() == []
        assert await place.site.task(1) == ("completed", None)


async def test_the_town_tells_what_an_account_did_in_public_and_in_a_repository(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with left_open(town_github) as place:
        github, clock = place.site.services.github, place.site.clock
        kit = Account(ok(await github.get_user("kit")).id, "kit")
        hour = timedelta(hours=1)
        assert ok(await github.acted_since(kit, SITE, clock.now() - hour)) is True
        assert ok(await github.acted_since(kit, SITE, clock.now() + hour)) is False
        place.repo.private = True
        assert ok(await github.acted_since(kit, SITE, clock.now() - hour)) is True
        other = Account(kit.id + 1_000, "kit")
        assert ok(await github.acted_since(other, SITE, clock.now() - hour)) is False
