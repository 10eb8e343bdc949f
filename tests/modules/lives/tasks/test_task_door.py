"""What keeps a task from being claimed: that its words would wait, that GitHub does not permit it, or a limit."""

from __future__ import annotations

from datetime import timedelta

import pytest

from modules.lives.tasks.types import Failed, HeldTask, Lost, WorkResult
from modules.services.outbox.rules.counts import created_on_github
from modules.services.outbox.rules.rules import GITHUB_CREATIONS_OF_OTHERS, HOUR_S
from tests.modules.lives.tasks.site import PLAN, SITE, Site, Work, site_with_plan
from tests.running_town import RunningTown
from tests.town_github import TownGitHub


@pytest.mark.parametrize(("owner", "organisation", "begun"), [("mona", "", []), ("mona", SITE.owner, [1])])
async def test_nothing_is_claimed_where_what_is_written_would_wait_for_the_owners_yes(
    running_town: RunningTown, town_github: TownGitHub, owner: str, organisation: str, begun: list[int]
) -> None:
    settings = {"SOUL_APPROVAL": "strangers", "OWNER_GITHUB_USERNAME": owner, "WORKSPACE_ORG": organisation}
    async with site_with_plan(town_github, PLAN, **settings) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Failed("error", "There is no key.")

        work = Work(give_up, frozenset({1}))
        rooms = site.rooms(work)
        await site.run(rooms)
        assert work.asked == begun
        assert bool(await site.comments()) is bool(begun)
        if not begun:
            await site.run(rooms)
            assert await refusals(site) == ["held"]


async def test_a_claim_that_github_does_not_permit_is_told_once_in_its_words_and_counts_as_nothing_created(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, PLAN, WORKSPACE_ORG=SITE.owner) as site:
        town_github.network.state.repos[SITE.full_name.lower()].collaborators = set()

        async def never(_: HeldTask) -> WorkResult:
            raise AssertionError

        rooms = site.rooms(Work(never, frozenset({1})))
        for _ in range(3):
            await site.run(rooms)
            site.clock.ahead += HOUR_S
        told = [one.entry for one in await site.services.journal.recent(200) if one.entry.loop == "claim"]
        assert [one.data["code"] for one in told] == ["not_permitted"]
        assert "check its permissions" in told[0].reason
        assert await site.comments() == []
        now = site.services.clock.now()
        created = await site.services.database.run(lambda rows: created_on_github(rows, now, timedelta(days=1)))
        assert not list(created)


@pytest.mark.slow
async def test_a_claim_waits_where_enough_was_created_on_github_within_the_hour_and_counts_itself(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Lost()

        rooms = site.rooms(work := Work(give_up, frozenset({1})))
        for _ in range(int(GITHUB_CREATIONS_OF_OTHERS.limit)):
            await site.services.etiquette.note_created()
        await site.run(rooms)
        await site.run(rooms)
        assert (work.asked, await site.comments(), await refusals(site)) == ([], [], ["later"])
        site.clock.ahead += HOUR_S
        await site.run(rooms)
        assert work.asked == [1]
        now = site.services.clock.now()
        counted = await site.services.database.run(lambda rows: created_on_github(rows, now, timedelta(minutes=30)))
        assert len(counted) == 1


async def refusals(site: Site) -> list[str]:
    told = [one.entry for one in await site.services.journal.recent(200)]
    return [str(one.data["code"]) for one in told if one.data.get("act") == "claim-refused"]
