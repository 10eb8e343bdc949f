"""The owner orders a post for later: it is shown, told, listed, leaves at its moment, and once."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from common.clock import local
from soul.commands.run import phone_commands
from tests.hasty_clock import HastyClock
from tests.owner_lines import answered
from tests.running_town import Answering, RunningTown, awake, call
from town.model.types import Completion

ZONE = "Europe/Berlin"
DAY_S = 86_400
WORDS = "The tide keeps no appointments."
ANSWERED = "Scheduled for nine; the sea has been told."


def seconds_until(moment: str, clock: HastyClock) -> float:
    """The seconds until just after a local moment."""
    return (datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(ZONE)) - clock.now()).total_seconds() + 60


def tomorrow_at_nine(clock: HastyClock) -> str:
    return f"{local(clock.now(), ZONE) + timedelta(days=1):%Y-%m-%d}T09:00"


def scheduling(moment: str, then: Completion) -> Answering:
    """Schedules the post, and says something once that is done."""
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
        assert moment.replace("T", " ") in line
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
        assert moment.replace("T", " ") in line
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
