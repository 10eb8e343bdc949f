"""The SOUL is told of new posts of its owner and of its peers, where these allow it."""

from __future__ import annotations

import pytest

from adapters.atproto.types import Profile
from common.clock import SystemClock, iso
from common.result import Err
from modules.lives.bluesky.perceive import PerceivedPosts
from modules.services.explanation.story import Story
from modules.services.explanation.why import lines, story_of
from modules.services.presence.policy import may_subscribe
from modules.services.presence.subscriptions import FIRST_LOOK_S, LOOK_AGAIN_S
from tests.journals import told_of
from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.index import FOLLOW, NOTIFICATION_DECLARATION
from town.atproto.service import Fault

PUT = "app.bsky.notification.putActivitySubscription"
SPEED = 1000


def follow(running_town: RunningTown, who: str, whom: str) -> None:
    record = {"subject": running_town.account(whom), "createdAt": iso(SystemClock().now())}
    running_town.network.create(running_town.account(who), FOLLOW, record)


def declare(running_town: RunningTown, name: str, allowed: str) -> None:
    record = {"allowSubscriptions": allowed}
    running_town.network.put(running_town.account(name), NOTIFICATION_DECLARATION, "self", record)


def subscribed(running_town: RunningTown, whom: str) -> bool:
    own, theirs = running_town.account("rowan"), running_town.account(whom)
    return running_town.network.activity_subscription(own, theirs) is not None


async def look_later(life: RunningSoul, seconds: float) -> None:
    life.passes(seconds / SPEED)
    await life.app.lives.subscriptions.ensure()


async def look(life: RunningSoul) -> PerceivedPosts:
    result = await life.app.lives.bluesky.perceiver.look()
    assert not isinstance(result, Err), result
    return result.data


@pytest.mark.parametrize(
    ("allowed", "followed", "follows", "may"),
    [
        ("followers", True, False, True),
        ("followers", False, True, False),
        ("mutuals", True, True, True),
        ("none", True, True, False),
        ("a word of next year", True, True, False),
    ],
)
def test_only_those_are_subscribed_to_who_allow_it(*, allowed: str, followed: bool, follows: bool, may: bool) -> None:
    profile = Profile("did:plc:a", "a.test", is_followed=followed, follows_us=follows, allows_subscriptions=allowed)
    assert may_subscribe(profile) is may


async def test_owner_and_listed_peers_are_subscribed_to_once(running_town: RunningTown) -> None:
    for name in ("owner", "wren", "kit"):
        running_town.account(name)
    home = running_town.make_home("rowan", SOUL_PEERS="wren.test,kit.test,nobody.test")
    for name in ("owner", "wren"):
        follow(running_town, "rowan", name)
    declare(running_town, "wren", "none")
    async with awake(home) as life:
        await look_later(life, FIRST_LOOK_S)
        assert [subscribed(running_town, name) for name in ("owner", "wren", "kit")] == [True, False, False]
        follow(running_town, "rowan", "kit")
        declare(running_town, "wren", "followers")
        await look_later(life, LOOK_AGAIN_S)
        assert [subscribed(running_town, name) for name in ("owner", "wren", "kit")] == [True, True, True]
        await look_later(life, LOOK_AGAIN_S)
        told = [line.split("of @")[-1] for _, line, _ in life.console.lines if line.startswith("Is told of new posts")]
    assert told[0] == "owner.test from now on"
    assert sorted(told[1:]) == ["kit.test from now on", "wren.test from now on"]
    async with awake(home) as life:
        running_town.faults.arm(Fault("server_error", PUT, times=100))
        before = running_town.faults.armed
        await look_later(life, FIRST_LOOK_S)
        assert running_town.faults.armed == before, "what stands on the network is not asked for again"


async def test_a_subscribed_post_is_noted_once_and_nobody_is_answered(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    follow(running_town, "rowan", "owner")
    async with awake(home) as life:
        await look_later(life, FIRST_LOOK_S)
        uri, _ = running_town.network.post_as(running_town.account("owner"), "Which roof sings?")
        running_town.network.post_as(running_town.account("owner"), "A reply is no post of theirs.", reply_to_uri=uri)
        assert await look(life) == PerceivedPosts(1, 0, 0)
        assert await look(life) == PerceivedPosts(0, 0, 0)
        (entry,) = await told_of(life.app.services.journal, uri)
        assert (entry.entry.summary, entry.entry.line) == ("Saw a new post of @owner.test", None)
        assert life.app.services.relationships.get(running_town.account("owner")) is None
        assert (await life.app.services.situation()).waits.posts == 0
        story = await life.app.services.database.run(lambda connection: story_of(connection, uri))
    assert isinstance(story, Story)
    assert any("this one does not address it" in line for line in lines(story))


async def test_a_subscribed_post_that_names_us_is_answered_as_any_mention(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    follow(running_town, "rowan", "owner")
    async with awake(home) as life:
        await look_later(life, FIRST_LOOK_S)
        running_town.network.post_as(running_town.account("owner"), "@rowan.test which roof sings?")
        assert await look(life) == PerceivedPosts(1, 1, 0)
