"""What keeps an approved pull request of ours from being merged: an old branch, a merge queue, the owner's word."""

from __future__ import annotations

import pytest

from tests.adapters.results import ok
from tests.modules.lives.tasks.merge.test_merges import merging
from tests.modules.lives.tasks.site import SITE
from tests.running_town import RunningTown
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub

pytestmark = needs_git


async def test_a_branch_that_is_behind_is_updated_once_it_is_approved_and_then_merged(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        place.repo.needs_up_to_date = True
        approved = place.pull.head
        ok(await place.kit.contents.write(SITE, "OTHER.md", "Other\n", message="m"))
        await place.approves()
        await place.looks()
        assert (place.pull.head != approved, place.pull.merged_at) == (True, None)
        await place.looks()
        assert place.pull.merged_at is not None
        assert [one.commit for one in place.pull.reviews] == [approved]


@pytest.mark.slow
async def test_reviewers_whose_approval_an_update_dismissed_are_asked_again_once(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        place.repo.needs_up_to_date = place.repo.dismisses_stale = True
        ok(await place.kit.contents.write(SITE, "OTHER.md", "Other\n", message="m"))
        await place.approves()
        for _ in range(3):
            await place.looks()
        assert place.pull.merged_at is None
        assert [one.login for one in place.pull.requested] == ["kit"]
        asked = [one for one in await place.site.services.outbox.recent(50) if one.kind == "review_request"]
        assert len(asked) == 1
        await place.approves()
        await place.looks()
        assert place.pull.merged_at is not None


@pytest.mark.slow
async def test_where_a_merge_queue_is_used_the_owner_is_told_once_and_it_is_not_tried_for_ever(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        place.repo.has_merge_queue = True
        await place.approves()
        for _ in range(24):
            place.site.clock.ahead += 12 * 3_600
            await place.looks()
        services = place.site.services
        merges = [one for one in await services.outbox.recent(100) if one.kind == "merge"]
        told = [one.entry for one in await services.journal.recent(500) if one.entry.data.get("act") == "merge-refused"]
        assert len(merges) < 10
        assert len(told) == 1
        assert "merge queue" in (await place.line()).waits
        place.repo.has_merge_queue = False
        ok(await place.kit.pulls.merge(SITE, place.pull.number))
        place.site.clock.ahead += 3_600
        await place.looks()
        await place.cycle()
        assert await place.site.task(1) == ("completed", None)


async def test_what_the_owner_wants_left_alone_is_not_merged_until_they_take_it_up_again(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        orders = place.site.rooms().life.orders
        task = await orders.meant("1")
        await place.approves()
        await orders.leave(task)
        await place.looks()
        assert place.pull.merged_at is None
        await orders.take(task)
        await place.looks()
        assert place.pull.merged_at is not None
