"""What keeps an approved pull request of ours from being merged: an old branch, a merge queue, the owner's word."""

from __future__ import annotations

import pytest

from tests.adapters.results import ok
from tests.modules.lives.tasks.merge.test_merges import merging
from tests.modules.lives.tasks.site import SITE
from tests.outbox_rows import newest_intents
from tests.running_town import RunningTown
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub
from town.github.pull_methods import QUEUE_WAIT

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
        asked = [one for one in await newest_intents(place.site.services.outbox, 50) if one.kind == "review_request"]
        assert len(asked) == 1
        await place.approves()
        await place.looks()
        assert place.pull.merged_at is not None


async def test_a_pull_request_joins_a_merge_queue_once_and_its_task_is_completed_when_the_queue_merged_it(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        place.repo.has_merge_queue = True
        await place.approves()
        await place.looks()
        assert place.pull.queued_at is not None
        await place.looks()
        assert "queue" in (await place.line()).waits
        assert place.pull.merged_at is None
        town_github.network.clock = place.site.clock
        place.site.clock.ahead += QUEUE_WAIT.total_seconds()
        await place.looks()
        await place.cycle()
        assert place.pull.merged_at is not None
        assert await place.site.task(1) == ("completed", None)
        merges = [one for one in await newest_intents(place.site.services.outbox, 100) if one.kind == "merge"]
        assert [(one.state, one.result_kind) for one in merges] == [("done", "queue")]


@pytest.mark.slow
@pytest.mark.parametrize("thrown_out", [False, True])
async def test_where_a_merge_queue_takes_nothing_or_throws_it_out_the_owner_is_told_once_until_another_commit_comes(
    running_town: RunningTown, town_github: TownGitHub, *, thrown_out: bool
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        place.repo.has_merge_queue, place.repo.queue_is_closed = True, not thrown_out
        await place.approves()
        await place.looks()
        place.pull.queued_at = None
        for _ in range(24):
            place.site.clock.ahead += 12 * 3_600
            await place.looks()
        services = place.site.services

        async def merges() -> int:
            return len([one for one in await newest_intents(services.outbox, 100) if one.kind == "merge"])

        told = [one.entry for one in await services.journal.recent(500) if one.entry.data.get("act") == "merge-refused"]
        assert (await merges(), len(told)) == (1, 1)
        assert "merge queue" in (await place.line()).waits
        place.repo.queue_is_closed = False
        await place.pushes()
        await place.approves()
        place.site.clock.ahead += 3_600
        await place.looks()
        assert (await merges(), place.pull.queued_at is not None) == (2, True)


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
