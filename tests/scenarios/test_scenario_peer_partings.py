"""A peer that unfollowed us, or whose follow was taken back, is not followed again before the cool-down is over."""

from __future__ import annotations

import pytest

from tests.hasty_clock import HastyClock
from tests.running_town import RunningTown, awake
from tests.scenarios.test_scenario_peers import (
    A_DAY_S,
    CYCLES,
    announcements,
    cycle,
    follows,
    home_of,
    introduces_itself,
    speaking,
)

pytestmark = pytest.mark.usefixtures("peers_github")


@pytest.mark.slow
async def test_a_peer_whose_follow_was_taken_back_is_followed_again_only_after_the_cooldown(
    running_town: RunningTown,
) -> None:
    town, clock = running_town, HastyClock()
    town.mind.answer = speaking
    introduces_itself(town, "wren")
    home = home_of(town, "rowan", PEER_UNFOLLOW_COOLDOWN="3")
    town.network.post_as(town.account("owner"), "@rowan.test meet @wren.test")
    async with awake(home, clock=clock) as soul:
        for _ in range(CYCLES):
            await cycle(soul)
        assert follows(town, "rowan") == ["wren.test"]
        (record,) = town.network.records(town.account("rowan"), "app.bsky.graph.follow")
        town.network.delete(*record.uri.removeprefix("at://").split("/"))
        soul.passes(A_DAY_S)
        await cycle(soul)
        told = [one.entry for one in await soul.decisions() if one.entry.loop == "peers"]
        assert (told[-1].summary, told[-1].reason) == (
            "Does not follow @wren.test for now",
            "our follow of it was taken back",
        )
        soul.passes(A_DAY_S)
        await cycle(soul)
    async with awake(home, clock=clock) as soul:
        await cycle(soul)
        assert follows(town, "rowan") == []
        soul.passes(2 * A_DAY_S)
        for _ in range(2):
            await cycle(soul)
        assert follows(town, "rowan") == ["wren.test"]
    assert len([text for text in announcements(town, "rowan") if "@wren.test" in text]) == 1


@pytest.mark.slow
async def test_a_peer_that_unfollowed_us_is_not_followed_for_a_while(running_town: RunningTown) -> None:
    town, clock = running_town, HastyClock()
    town.mind.answer = speaking
    introduces_itself(town, "wren")
    wren, rowan, home = town.account("wren"), town.account("rowan"), home_of(town, "rowan")
    town.network.put(
        wren, "app.bsky.graph.follow", "3jzfcijpj2z2a", {"subject": rowan, "createdAt": "2026-01-01T00:00:00Z"}
    )
    town.network.post_as(town.account("owner"), "@rowan.test meet @wren.test")
    async with awake(home, clock=clock) as soul:
        for _ in range(CYCLES):
            await cycle(soul)
        assert follows(town, "rowan") == ["wren.test"]
        town.network.delete(wren, "app.bsky.graph.follow", "3jzfcijpj2z2a")
        for record in town.network.records(rowan, "app.bsky.graph.follow"):
            town.network.delete(*record.uri.removeprefix("at://").split("/"))
        for _ in range(3):
            soul.passes(A_DAY_S)
            await cycle(soul)
        assert follows(town, "rowan") == []


@pytest.mark.slow
async def test_posts_of_a_found_peer_are_subscribed_to_until_they_part(running_town: RunningTown) -> None:
    town, clock = running_town, HastyClock()
    town.mind.answer = speaking
    introduces_itself(town, "wren")
    rowan, wren, home = town.account("rowan"), town.account("wren"), home_of(town, "rowan", PEER_UNFOLLOW_COOLDOWN="3")
    town.network.post_as(town.account("owner"), "@rowan.test meet @wren.test")

    async with awake(home, clock=clock) as soul:
        for _ in range(CYCLES):
            await cycle(soul)
        await soul.app.lives.subscriptions.ensure()
        assert wren in soul.app.lives.subscriptions.companions()
        assert town.network.activity_subscription(rowan, wren)
        (record,) = [
            one for one in town.network.records(rowan, "app.bsky.graph.follow") if one.value["subject"] == wren
        ]
        town.network.delete(*record.uri.removeprefix("at://").split("/"))
        soul.passes(A_DAY_S)
        await cycle(soul)
    async with awake(home, clock=clock) as soul:
        await cycle(soul)
        await soul.app.lives.subscriptions.ensure()
        assert wren not in soul.app.lives.subscriptions.companions()
        assert town.network.activity_subscription(rowan, wren) is None
        told = [one.entry for one in await soul.app.services.journal.recent(100, kinds=["life"])]
        assert [one.reason for one in told if one.summary == "Is no longer told of new posts of @wren.test"] == [
            "they parted"
        ]
