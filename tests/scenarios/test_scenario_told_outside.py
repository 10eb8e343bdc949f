"""The result of a turn of the SOUL's own reaches the owner, and the next talk with them knows of it."""

import asyncio
from datetime import timedelta

import pytest

from common.provenance import Provenance
from common.session_keys import OWNER_SESSION
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import led_to
from tests.hasty_clock import HastyClock
from tests.owner_lines import answered
from tests.running_town import RunningSoul, RunningTown, awake, call, prompt_of, replying
from tests.scenarios.phone import Phone, look
from tests.scenarios.test_scenario_reflection import at_noon
from tests.scenarios.test_scenario_schedules import HOUR_S, passes
from town.model.types import Completion

FERRY = "The ferry sails at nine from Monday on."


async def provenance(soul: RunningSoul) -> Provenance:
    sessions = soul.app.services.knowledge.sessions
    return await sessions.provenance((await sessions.open(OWNER_SESSION)).id)


@pytest.mark.slow
async def test_the_next_talk_knows_what_a_turn_of_its_own_came_to_and_whose_words_are_in_it(
    running_town: RunningTown,
) -> None:
    town, phone, clock = running_town, Phone(running_town, "owner"), HastyClock(1_000)
    home = town.make_home("rebecca", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    home.workspace.mkdir(parents=True)
    town.network.post_as(town.account("sam"), FERRY)
    acts = [Completion("Hello."), call("bluesky_search", query="ferry"), Completion(FERRY), Completion("At nine.")]
    acts += [Completion("Thank you."), Completion("Nothing."), Completion("Yes.")]
    town.mind.answer = lambda _: acts.pop(0)
    async with awake(home, clock=clock) as soul:
        phone.says("Hello")
        await look(soul)
        at = (clock.now() + timedelta(hours=1)).replace(tzinfo=None)
        await soul.app.services.schedules.add("look up the ferry", at, repeat="once", is_reminder=False, by="soul")
        await passes(soul, HOUR_S + 120)
        assert any(FERRY in one for one in phone.answers)
        phone.says("So when does it sail now?")
        await look(soul)
        assert await provenance(soul) is Provenance.STRANGER
        phone.says("And in the evening?")
        await look(soul)
    later, latest = (one for one in town.mind.asked if "sail now" in prompt_of(one))
    assert prompt_of(later).index(FERRY) < prompt_of(later).index("sail now")
    assert "look up the ferry" in prompt_of(later)
    assert prompt_of(latest).count(FERRY) == 1


@pytest.mark.slow
async def test_what_was_due_in_heartbeat_md_is_told_and_its_own_words_take_no_tool_away(
    running_town: RunningTown,
) -> None:
    town, phone, clock = running_town, Phone(running_town, "owner"), at_noon()
    home = town.make_home("rebecca", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    home.workspace.mkdir(parents=True)
    (home.workspace / "HEARTBEAT.md").write_text("- Is the list of schedules as it should be?\n")
    acts = [Completion("Hello."), call("schedule_list"), Completion("Nothing is scheduled."), Completion("None is.")]
    town.mind.answer = lambda _: acts.pop(0)
    async with awake(home, clock=clock) as soul:
        phone.says("Hello")
        await look(soul)
        await passes(soul, 60)
        assert any("HEARTBEAT.md\nNothing is scheduled." in one for one in phone.answers)
        day = await asyncio.to_thread(DayReader(soul.app.services.settings, home, soul.clock).read)
        assert ("own time", "HEARTBEAT.md: looked after it: Nothing is scheduled.") in led_to(day)
        assert day.is_own
        phone.says("And the schedules?")
        await look(soul)
        assert await provenance(soul) is Provenance.OWNER
    assert "Nothing is scheduled." in prompt_of(town.mind.asked[-1])


async def test_a_talk_takes_nothing_as_told_that_waits_or_that_no_message_could_tell(running_town: RunningTown) -> None:
    running_town.mind.answer = replying("Hello.")
    async with awake(running_town.make_home("rebecca", SOUL_DIRECT_MESSAGES="off")) as soul:
        tell, found = soul.app.lives.alarms.tell, "The lamp is mended."
        await tell("lamp", "rebecca did what you scheduled", found, Provenance.SELF, at_once=True)
        await answered(soul.app.owner, "Hello")
        assert found not in prompt_of(running_town.mind.asked[-1])
        await soul.app.scheduler.run_guarded("alarms")
        await answered(soul.app.owner, "What is new?")
    prompt = prompt_of(running_town.mind.asked[-1])
    assert found in prompt
    assert "You told your owner this" not in prompt
