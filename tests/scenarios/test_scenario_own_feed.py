"""A SOUL deletes posts in its own feed that repeat older ones, through the outbox, once.

The owner orders a post for later: it is shown, confirmed, listed, and sent at its time, once.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from common.clock import local
from common.intervals import PACING_POST_COOLDOWN_S
from modules.runtime.home import Home
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from modules.services.peers.registry import IDENTITY_POST_MARKER
from soul.commands.run import phone_commands
from tests.hasty_clock import HastyClock
from tests.owner_lines import answered
from tests.running_town import Answering, RunningSoul, RunningTown, awake, call
from town.atproto.service import Fault
from town.model.types import Completion

SAID = "Slate remembers the rain longer than tin does."


def writes(town: RunningTown, *texts: str, under: str | None = None) -> list[str]:
    """Post these texts from the SOUL's account, oldest first; return the URIs."""
    rowan = town.account("rowan")
    return [town.network.post_as(rowan, text, reply_to_uri=under)[0] for text in texts]


def standing(town: RunningTown, uris: Sequence[str]) -> list[bool]:
    """Return for each of these posts whether it still exists."""
    return [town.network.index.posts.get(uri) is not None for uri in uris]


async def pruned(soul: RunningSoul) -> list[Entry]:
    """Return the decisions about our own posts, oldest first."""
    return [one.entry for one in await soul.decisions() if one.entry.loop == "feed-pruning"]


async def live(home: Home, passes: int = 1) -> list[Entry]:
    """Wake the SOUL, look at its own feed `passes` times and send all intents; return the decisions about its posts."""
    async with awake(home) as soul:
        await soul.send()
        for _ in range(passes):
            await soul.app.scheduler.run_guarded("engagement")
            await soul.send()
        return await pruned(soul)


async def test_duplicates_and_thanks_after_thanks_are_gone_after_a_start(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    talk, _ = running_town.network.post_as(running_town.account("ada"), "Which roof would you take?")
    uris = writes(running_town, SAID, "Tin sings at night.", SAID)
    uris += writes(
        running_town, "Thanks a lot!", "Sounds good, looking forward to it!", "Tin, for its sound.", under=talk
    )
    told = await live(home)
    assert standing(running_town, uris) == [True, True, False, True, False, True]
    assert [entry.data["destination"] for entry in told] == ["duplicate", "thank-you-chain"]
    assert told[0].trigger_uri == uris[2]
    assert uris[0] in told[0].reason
    assert "0 likes" in told[0].reason


async def test_what_the_owner_wants_to_keep_is_asked_about_once(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    uris = writes(running_town, SAID, SAID)
    async with awake(home) as soul:
        outbox = soul.app.services.outbox
        await soul.app.scheduler.run_guarded("engagement")
        (draft,) = await outbox.held()
        await outbox.reject(draft.id)
        await soul.app.scheduler.run_guarded("engagement")
        assert await outbox.held() == []
        assert len(await pruned(soul)) == 1
    assert all(standing(running_town, uris))


async def test_a_feed_that_cannot_be_read_at_the_start_is_looked_at_later(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    uris = writes(running_town, SAID, SAID)
    running_town.faults.arm(Fault("bad_gateway", "app.bsky.feed.getAuthorFeed", times=100))
    async with awake(home) as soul:
        await soul.app.scheduler.run_guarded("engagement")
        assert all(standing(running_town, uris))
        running_town.faults.clear()
        await soul.app.scheduler.run_guarded("engagement")
        await soul.send()
    assert standing(running_town, uris) == [True, False]


async def test_a_start_reads_the_own_feed_once_for_all_that_need_it(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", AGENT_GITHUB_USERNAME="sh-rowan")
    identity = f"{IDENTITY_POST_MARKER}`sh-rowan` Hello from me. https://github.com/sh-rowan"
    uris = writes(running_town, identity, SAID, SAID)
    running_town.faults.arm(Fault("hang", "app.bsky.feed.getAuthorFeed", times=100, seconds=0))
    async with awake(home) as soul:
        await soul.app.scheduler.run_guarded("peers")
        await soul.send()
        assert soul.app.lives.bluesky.expression.next_at is not None
    (unused,) = running_town.faults.armed
    assert 100 - unused.times == 1
    assert standing(running_town, uris) == [True, True, False]
    assert uris[0] in (home.memory / "identity_post.json").read_text()


async def test_a_home_that_lost_its_memory_says_nothing_again_that_stands_far_down_its_feed(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    texts = [f"Thought number {number} about slates." for number in range(170)]
    writes(running_town, *texts)
    async with awake(home) as soul:
        submitted = [await soul.app.services.outbox.submit(ProposedAction(PostBody(text=text))) for text in texts[:3]]
    assert [one.accepted for one in submitted] == [False, False, False]


async def test_a_home_that_lost_its_memory_keeps_the_time_between_two_posts(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    async with awake(home) as soul:
        await soul.app.services.outbox.submit(ProposedAction(PostBody(text=SAID)))
        await soul.send()
    for file in home.memory.glob("soul.db*"):
        file.unlink()
    async with awake(home) as soul:
        outbox = soul.app.services.outbox
        assert await outbox.last_done_or_accepted("post") is None
        submitted = await outbox.submit(ProposedAction(PostBody(text="Tin sings at night.")))
        await outbox.deliver_due()
        soul.passes(PACING_POST_COOLDOWN_S / 2)
        await outbox.deliver_due()
        assert running_town.texts("rowan") == [SAID]
        (kept,) = [
            stored.entry
            for stored in await soul.app.services.journal.recent(50)
            if stored.entry.intent_id == submitted.intent.id and "newest post on its feed" in stored.entry.reason
        ]
        assert kept.summary
        soul.passes(PACING_POST_COOLDOWN_S / 2)
        await outbox.deliver_due()
    assert running_town.texts("rowan") == [SAID, "Tin sings at night."]


ZONE = "Europe/Berlin"
DAY_S = 86_400
WORDS = "The tide keeps no appointments."
ANSWERED = "Scheduled for nine; the sea has been told."


def seconds_until(moment: str, clock: HastyClock) -> float:
    """Return the seconds until one minute after a local time."""
    return (datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(ZONE)) - clock.now()).total_seconds() + 60


def tomorrow_at_nine(clock: HastyClock) -> str:
    return f"{local(clock.now(), ZONE) + timedelta(days=1):%Y-%m-%d}T09:00"


def scheduling(moment: str, then: Completion) -> Answering:
    """Return a model that schedules the post and answers `then` once that is done."""
    return lambda request: (
        then
        if any(message.role == "tool" for message in request.messages)
        else call("bluesky_post", text=WORDS, at=moment)
    )


async def test_a_post_for_tomorrow_is_shown_first_and_leaves_then(running_town: RunningTown) -> None:
    clock = HastyClock()
    moment = tomorrow_at_nine(clock)
    running_town.mind.answer = scheduling(moment, call("bluesky_reply", text=ANSWERED))
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts", SOUL_TIMEZONE=ZONE)
    running_town.network.post_as(running_town.account("owner"), "@rowan.test Post about tides tomorrow morning at 9")
    async with awake(home, clock=clock) as soul:
        commands = phone_commands(soul.app)
        await soul.look()
        assert running_town.texts("rowan") == [ANSWERED]
        assert "09:00" in running_town.mind.asked[1].messages[-1].text
        (line,) = await commands.answer("/drafts")
        assert all(part in line for part in moment.split("T"))
        assert WORDS in line
        (leaves,) = await commands.answer("/approve 1")
        assert moment.replace("T", " ") in leaves
        await soul.app.services.outbox.deliver_due()
        assert running_town.texts("rowan") == [ANSWERED]
    async with awake(home, clock=clock) as soul:
        await soul.app.services.outbox.deliver_due()
        assert running_town.texts("rowan") == [ANSWERED]
        soul.passes(seconds_until(moment, clock))
        await soul.send()
    assert sorted(running_town.texts("rowan")) == sorted([ANSWERED, WORDS])


async def test_what_was_scheduled_is_taken_back_from_the_list(running_town: RunningTown) -> None:
    clock = HastyClock()
    moment = tomorrow_at_nine(clock)
    running_town.mind.answer = scheduling(moment, Completion(text="It leaves tomorrow at nine."))
    home = running_town.make_home("rowan", SOUL_TIMEZONE=ZONE)
    async with awake(home, clock=clock) as soul:
        commands = phone_commands(soul.app)
        await answered(soul.app.owner, "Post about tides tomorrow morning at 9")
        (line,) = await commands.answer("/drafts")
        assert all(part in line for part in moment.split("T"))
        await commands.answer("/reject 1")
        soul.passes(DAY_S * 1.5)
        await soul.send()
    assert running_town.texts("rowan") == []


async def test_a_post_for_later_in_the_owners_words_needs_no_yes_and_is_told_as_scheduled(
    running_town: RunningTown,
) -> None:
    clock = HastyClock()
    moment = tomorrow_at_nine(clock)
    running_town.mind.answer = scheduling(moment, call("bluesky_reply", text=ANSWERED))
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts", SOUL_TIMEZONE=ZONE)
    running_town.network.post_as(running_town.account("owner"), f"@rowan.test Post tomorrow at 9: {WORDS}")
    async with awake(home, clock=clock) as soul:
        await soul.app.scheduler.run_guarded("awareness")
        await soul.app.services.outbox.deliver_due()
        assert running_town.texts("rowan") == [ANSWERED]
        assert "09:00" in running_town.mind.asked[1].messages[-1].text
        assert await soul.app.services.outbox.held() == []
        soul.passes(seconds_until(moment, clock))
        await soul.send()
    assert sorted(running_town.texts("rowan")) == sorted([ANSWERED, WORDS])
