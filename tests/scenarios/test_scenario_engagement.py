"""A SOUL looks at the reactions to its thoughts, and the next thought takes them into account.

If notifications cannot be read for a while, this is reported once each time, not at every look.
"""

import asyncio
import json
from typing import Any

from modules.runtime.home import Home
from modules.services.identity.keeper import SelfChanged
from modules.services.own_feed.policy import answered_sources
from tests.running_town import RunningSoul, RunningTown, awake, replying
from town.atproto.service import Fault

HALF_HOUR_S, SIX_HOURS_S, DAY_S = 1_800, 21_600, 86_400
SAID = "Do you prefer tin or slate?"


def kept(home: Home) -> list[dict[str, Any]]:
    """Return the stored thoughts."""
    return list(json.loads((home.memory / "expressions.json").read_text())["expressions"].values())


async def passes(soul: RunningSoul, seconds: float) -> None:
    """Set the clock ahead, and run the loop that looks at the reactions to its thoughts."""
    soul.passes(seconds)
    await soul.app.scheduler.run_guarded("engagement")


async def express(soul: RunningSoul) -> None:
    await soul.app.lives.bluesky.expression.express()
    await soul.send()


async def test_a_thought_is_looked_at_three_times_and_its_answers_are_told(running_town: RunningTown) -> None:
    town, home = running_town, running_town.make_home("rowan", SOUL_SPEED="1")
    home.self_md.write_text("# SELF\n\n## Values\n\n- Old roofs.\n")
    town.mind.answer = replying(SAID)
    async with awake(home) as soul:
        await express(soul)
        (thought,) = kept(home)
        assert thought.keys() == {"timestamp", "prompt", "promptSource", "text", "postUri"}
        assert (thought["text"], thought["promptSource"]) == (SAID, "values")
        uri, ada = thought["postUri"], town.account("ada")
        await passes(soul, 60)
        assert "engagement" not in kept(home)[0]
        await passes(soul, HALF_HOUR_S)
        assert kept(home)[0]["engagement"] | {"checkedAt": ""} == {
            "likes": 0,
            "replies": 0,
            "reposts": 0,
            "checkedAt": "",
        }
        town.network.post_as(ada, "Slate, for the sound of it.", reply_to_uri=uri)
        await passes(soul, 60)
        assert kept(home)[0]["engagement"]["replies"] == 0
        await passes(soul, SIX_HOURS_S)
        assert (kept(home)[0]["engagement"]["replies"], kept(home)[0]["insight"]) == (1, "answered")
        town.network.post_as(town.account("bob"), "Tin!", reply_to_uri=uri)
        await passes(soul, DAY_S)
        assert kept(home)[0]["engagement"]["replies"] == 2
        assert answered_sources(soul.app.lives.bluesky.expressions.all()) == ["values"]
        told = [one.entry for one in await soul.app.services.journal.recent(200) if one.entry.loop == "engagement"]
        assert [one.summary for one in told if one.trigger_uri == uri] == [f"A thought was answered: {SAID}"]
        town.mind.answer = replying("Which bridge would you keep, the old one or the plain one?")
        await express(soul)
        relationships, learned = soul.app.services.relationships, soul.app.services.relationships.reflection
        assert [one.code for one in learned.insights] == ["Shared", "Answered", "Shared"]
        assert learned.events == 2
        soul.app.services.events.publish(SelfChanged())
        await asyncio.sleep(0)
        assert relationships.reflection.events == 0
    prompt = town.mind.asked[-1].messages[-1].text
    assert "Readers answered most what you wrote from values." in prompt


async def test_what_is_not_in_the_newest_fifty_is_read_one_by_one(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    running_town.mind.answer = replying(SAID)
    async with awake(home) as soul:
        await express(soul)
        for number in range(60):
            running_town.network.post_as(running_town.account("rowan"), f"Thought number {number} about slates.")
        await passes(soul, HALF_HOUR_S + 60)
    assert kept(home)[0]["engagement"]["likes"] == 0


async def test_a_thought_that_waits_for_the_owner_is_not_looked_at_and_one_that_never_stood_is_forgotten(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1", SOUL_APPROVAL="drafts")
    running_town.mind.answer = replying(SAID)
    async with awake(home) as soul:
        await express(soul)
        await passes(soul, SIX_HOURS_S)
        assert "engagement" not in kept(home)[0]
        await passes(soul, DAY_S)
    assert kept(home) == []


async def test_a_look_that_fails_is_made_up_for(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    running_town.mind.answer = replying(SAID)
    async with awake(home) as soul:
        await express(soul)
        running_town.faults.arm(Fault("bad_gateway", "app.bsky.feed.getAuthorFeed", times=100))
        await passes(soul, HALF_HOUR_S)
        assert "engagement" not in kept(home)[0]
        running_town.faults.clear()
        await passes(soul, 60)
    assert "engagement" in kept(home)[0]


METHOD = "app.bsky.notification.listNotifications"


async def test_a_service_that_does_not_answer_is_told_once_until_it_answers_again(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        for _ in range(2):
            running_town.faults.arm(Fault("bad_gateway", METHOD, times=100))
            await life.look()
            await life.look()
            running_town.faults.clear()
            await life.look()
        assert await warnings(life) == 2


async def warnings(life: RunningSoul) -> int:
    told = [one.entry for one in await life.app.services.journal.recent(100) if one.entry.loop == "awareness"]
    return sum(entry.kind == "error" for entry in told)
