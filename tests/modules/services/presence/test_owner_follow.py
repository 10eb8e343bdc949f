"""The SOUL follows its owner once, so that it may be told of their new posts; the owner has the last word on it."""

from __future__ import annotations

import pytest

from modules.services.presence.subscriptions import FIRST_LOOK_S, LOOK_AGAIN_S
from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.index import FOLLOW

SPEED = 1000
MISSING = "No control by direct message"
FOLLOWED = "Follows @owner.test"


def follows(running_town: RunningTown) -> list[str]:
    """The addresses of Rowan's follows of the owner, as they stand."""
    owner = running_town.account("owner")
    found = running_town.network.index.follows.out_of(running_town.account("rowan"))
    return [record.uri for record in found if record.value["subject"] == owner]


async def told(life: RunningSoul) -> str:
    """What the owner was told of, by its lines."""
    return "\n".join(one.entry.summary for one in await life.app.services.journal.recent(100))


async def heartbeat(life: RunningSoul, seconds: float = FIRST_LOOK_S) -> None:
    life.passes(seconds / SPEED)
    await life.app.scheduler.run_guarded("heartbeat")
    await life.send()


async def test_the_owner_is_followed_once_and_their_posts_are_subscribed_to(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        for _ in range(3):
            await heartbeat(life)
        await heartbeat(life, LOOK_AGAIN_S)
        assert running_town.network.activity_subscription(running_town.account("rowan"), running_town.account("owner"))
        told = [one.entry for one in await life.decisions() if one.entry.summary == FOLLOWED]
        (intent,) = await life.app.services.outbox.of_kind("follow", 5)
    assert len(follows(running_town)) == 1
    assert [(entry.reason, entry.intent_id) for entry in told] == [
        ("your SOUL follows you, its owner, to receive your direct messages and new posts", intent.id)
    ]


@pytest.mark.parametrize("stood_before", [True, False])
async def test_a_follow_of_the_owner_that_was_undone_by_hand_stays_undone(
    running_town: RunningTown, *, stood_before: bool
) -> None:
    home = running_town.make_home("rowan")
    rowan = running_town.account("rowan")
    if stood_before:
        record = {"subject": running_town.account("owner"), "createdAt": "2026-01-05T12:00:00.000Z"}
        running_town.network.create(rowan, FOLLOW, record)
    async with awake(home) as life:
        for _ in range(2):
            await heartbeat(life)
        (uri,) = follows(running_town)
        assert bool(await life.app.services.outbox.of_kind("follow", 5)) is not stood_before
    running_town.network.delete(*uri.removeprefix("at://").split("/"))
    async with awake(home) as life:
        for _ in range(3):
            await heartbeat(life, LOOK_AGAIN_S)
    assert follows(running_town) == []


async def test_the_owner_is_followed_at_start_without_a_draft(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life:
        await heartbeat(life, 0)
        assert not await life.app.services.outbox.held()
        assert len(follows(running_town)) == 1
        await heartbeat(life)
        assert MISSING not in await told(life)


async def test_where_the_follow_was_taken_back_each_start_says_what_is_missing(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        for _ in range(2):
            await heartbeat(life)
    (uri,) = follows(running_town)
    running_town.network.delete(*uri.removeprefix("at://").split("/"))
    async with awake(home) as life:
        for _ in range(2):
            await heartbeat(life)
        assert (await told(life)).count(MISSING) == 1
