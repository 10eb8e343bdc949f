"""The owner says when something is to be done; it is done then, once, and they are told."""

import asyncio
from datetime import datetime, timedelta

import pytest

from common.clock import spoken
from common.errors import UsageError
from common.provenance import Provenance
from modules.lives.rhythm import OwnTimeTurn, is_own
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.policy import approval_reason, lower_provenance
from modules.services.agent.tools.types import Turn
from modules.services.owner import NOTICE
from soul.commands.rituals import run_schedule
from soul.commands.run import owner_commands
from soul.dashboard.facts import PageFacts
from tests.hasty_clock import HastyClock
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.phone import Phone, look
from tests.town_github import TownGitHub
from town.model.service import Fault
from town.model.types import ChatRequest, Completion

HOUR_S = 3_600.0


async def passes(soul: RunningSoul, seconds: float) -> None:
    """Let `seconds` pass, do what came due, and tell the owner."""
    soul.passes(seconds)
    for _ in range(2):
        await soul.app.scheduler.run_guarded("work")
        await soul.app.scheduler.run_guarded("alarms")
    await soul.send()


async def test_a_reminder_waits_for_no_talk_and_wakes_what_sends_it(running_town: RunningTown) -> None:
    phone = Phone(running_town, "owner")
    async with awake(running_town.make_home("rebecca", SOUL_TIMEZONE="UTC")) as soul:
        phone.says("/status")
        await look(soul)
        services, alarms = soul.app.services, soul.app.lives.alarm_loop
        at = (services.clock.now() + timedelta(hours=2)).replace(tzinfo=None)
        await services.schedules.add("open the window", at, repeat="once", is_reminder=True, by="owner")
        soul.passes(2 * HOUR_S + 60)
        async with services.attention.take("owner"):
            working = asyncio.ensure_future(soul.app.scheduler.run_guarded("work"))
            await until(alarms._woken.is_set)
            await soul.app.scheduler.run_guarded("alarms")
            await soul.send()
            assert "open the window" in phone.answers[-1]
        await working


@pytest.mark.slow
async def test_a_reminder_asked_for_by_message_comes_once_and_asks_no_model(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    town, phone, clock = running_town, Phone(running_town, "owner"), HastyClock(1_000)
    home = town.make_home("rebecca", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    at = (clock.now() + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M")
    acts = [call("schedule_add", what="water the plants", at=at, remind=True), Completion("I will.")]
    town.mind.answer = lambda _: acts.pop(0)
    async with awake(home, clock=clock) as soul:
        phone.says("Remind me in two hours to water the plants")
        await look(soul)
        phone.says("/schedule")
        await look(soul)
        assert "remind you: water the plants" in phone.answers[-1]
        assert "water the plants" in await soul.app.status_report.moment()
        await passes(soul, HOUR_S)
        before = len(phone.answers)
        await asyncio.to_thread(run_schedule, home.root, as_json=False)
        assert "remind you: water the plants" in capsys.readouterr().out
        await passes(soul, HOUR_S + 60)
        await passes(soul, HOUR_S)
    async with awake(home, clock=clock) as soul:
        await passes(soul, HOUR_S)
        assert await soul.app.services.schedules.all() == []
    told = phone.answers[before:]
    assert len(told) == 1
    assert "water the plants" in told[0]
    assert len(town.mind.asked) == 2


@pytest.mark.slow
async def test_what_is_done_each_week_is_a_turn_that_reads_and_tells_the_owner(running_town: RunningTown) -> None:
    town, phone, clock = running_town, Phone(running_town, "owner"), HastyClock(1_000)
    home = town.make_home("rebecca", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    at = (clock.now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    acts = [call("schedule_add", what="look at my profile", at=at, repeat="weekly"), Completion("Each week.")]
    report = "Your profile is as it was:\n\n- no new name\n- no new picture"
    week = [call("bluesky_get_profile", actor="owner.test"), Completion(report)]
    town.mind.answer = lambda _: acts.pop(0)
    async with awake(home, clock=clock) as soul:
        phone.says("Look at my profile each week")
        await look(soul)
        acts += [week[0], call("bluesky_post", text="High water at noon, and who minded it?"), week[1], *week]
        await passes(soul, HOUR_S + 60)
        await passes(soul, 7 * 24 * HOUR_S)
        offered = {one.name for one in town.mind.asked[2].offers}
        (schedule,) = await soul.app.services.schedules.all()
        assert acts == []
    assert {"bluesky_get_profile", "memory_search", "bluesky_post", "web_fetch"} <= offered
    assert offered.isdisjoint({"bluesky_reply", "bluesky_like", "bluesky_follow", "bluesky_delete_post", "more_tools"})
    told = [one for one in phone.answers if report in one]
    assert len(told) == 2
    assert schedule.last is not None
    assert schedule.due - schedule.last == timedelta(days=7)


async def test_a_turn_that_did_nothing_could_not_or_left_a_draft_is_not_told_as_done(running_town: RunningTown) -> None:
    clock, acts = HastyClock(1_000), [Completion("Not today.")]
    acts += [call("bluesky_post", text="High water at noon, and who minded it?"), Completion("It waits for you.")]
    acts += [call("bluesky_get_profile", actor="owner.test"), Completion("I cannot do that.")]
    running_town.mind.answer = lambda _: acts.pop(0)
    home = running_town.make_home("rebecca", SOUL_SPEED="1", SOUL_TIMEZONE="UTC", SOUL_APPROVAL="drafts")
    async with awake(home, clock=clock) as soul:
        at = (clock.now() + timedelta(hours=1)).replace(tzinfo=None)
        await soul.app.services.schedules.add("tell the tide", at, repeat="daily", is_reminder=False, by="owner")
        await passes(soul, HOUR_S + 60)
        for _ in range(2):
            await passes(soul, 24 * HOUR_S)
        told = [one.payload["text"] for one in await soul.app.services.work.newest(NOTICE, 9)]
    assert acts == []
    assert [" did what " in one for one in told if one.endswith("what you scheduled")] == [False, False, False]


async def test_words_alone_are_told_the_owner_as_what_came_of_their_schedule(running_town: RunningTown) -> None:
    clock, proverb = HastyClock(1_000), "Drop by drop the stone is hollowed."
    acts = [Completion(proverb), Completion("")]
    running_town.mind.answer = lambda _: acts.pop(0)
    home = running_town.make_home("rebecca", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    async with awake(home, clock=clock) as soul:
        at = (clock.now() + timedelta(hours=1)).replace(tzinfo=None)
        await soul.app.services.schedules.add("tell me a proverb", at, repeat="daily", is_reminder=False, by="owner")
        await passes(soul, HOUR_S + 60)
        await passes(soul, 24 * HOUR_S)
        told = [one.payload for one in await soul.app.services.work.newest(NOTICE, 9)]
    mute, said = (one for one in told if one["text"].endswith("what you scheduled"))
    assert proverb in str(said)
    assert ["did nothing" in one["text"] for one in (said, mute)] == [False, True]


@pytest.mark.slow
async def test_a_turn_that_broke_after_its_first_act_goes_on_with_what_is_missing(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    town, clock, tide = running_town, HastyClock(1_000), "High water at noon, and who minded it?"
    steps = iter(
        [
            call("bluesky_post", text=tide),
            call("bluesky_post", text="At noon the water was at its highest: who saw it?"),
            call("github_create_issue", repo="acme/site", title="Weekly review", body="As each week."),
            Completion("Both are done."),
        ]
    )

    def mind(request: ChatRequest) -> Completion:
        if not request.offers:
            return Completion("Yes.")  # whether it answers again
        step = next(steps)
        if len(town.mind.asked) == 1:
            town.mind_faults.arm(Fault("bad_gateway", times=60))
        return step

    town.mind.answer = mind
    home = town_github.make_home(SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    async with awake(home, clock=clock) as soul:
        at = (clock.now() + timedelta(hours=1)).replace(tzinfo=None)
        what = "post the tide, then open the issue for the weekly review in acme/site"
        await soul.app.services.schedules.add(what, at, repeat="once", is_reminder=False, by="owner")
        await passes(soul, HOUR_S + 60)
        town.mind_faults.clear()
        await passes(soul, HOUR_S)
        told = [one.payload["words"] for one in await soul.app.services.work.newest(NOTICE, 9)]
    assert (town.texts("rowan"), town_github.titles) == ([tide], ["Weekly review"])
    assert any("Both are done." in one for one in told)
    first, again, *_ = (one.messages for one in town.mind.asked if one.offers)
    assert [tide in one[-1].text for one in (first, again)] == [False, True]


async def test_what_the_owner_scheduled_may_read_repositories_and_keeps_nothing_of_them(
    running_town: RunningTown,
) -> None:
    more = {"AGENT_GITHUB_USERNAME": "rowan", "AGENT_GITHUB_TOKEN": "t" * 30}
    async with awake(running_town.make_home("rowan", **more)) as soul:
        registry = soul.app.lives.turn_services.turn_runner.executor.registry
        ordered, own = (Turn("schedule", by, subject=OwnTimeTurn([])) for by in (Provenance.OWNER, Provenance.SELF))
        after = lower_provenance(ordered, Provenance.STRANGER)
        names = [{one.name for one in registry.available(turn) if is_own(one, turn)} for turn in (ordered, own, after)]
        post = next(one for one in registry.available(after) if one.name == "bluesky_post")
    assert {"github_list_issues", "day_read", "talk_search"} <= names[0] - names[1]
    assert "bluesky_get_notifications" in names[0] & names[1] & names[2]
    assert {"github_create_issue", "create_memo"} <= names[0] & names[2] - names[1]
    assert {"memory_save", "self_update"} <= names[1] - names[0]
    assert names[2].isdisjoint({"memory_save", "self_update", "schedule_add", "schedule_remove", "web_fetch"})
    assert approval_reason(post, after)


async def test_an_issue_that_the_owner_scheduled_is_opened_unless_it_repeats_the_schedule(
    town_github: TownGitHub,
) -> None:
    task = "Open an issue for the weekly review each Friday, as I am ill and Ada must not know"
    async with awake(town_github.make_home()) as soul, soul.sending():
        executor = soul.app.lives.turn_services.turn_runner.executor
        turn = Turn("schedule", Provenance.OWNER, "schedule:1", OwnTimeTurn([task]))
        names = [one.name for one in executor.registry.available(turn) if is_own(one, turn)]
        for name, title in (
            ("github_create_issue", task),
            ("create_memo", task),
            ("github_create_issue", "Weekly review"),
        ):
            asked = ToolCall("1", name, {"repo": "acme/site", "title": title})
            told = await executor.execute(asked, turn, names)
            assert told.is_error is (title == task), told.content
    assert [one.title for one in town_github.repo.issues.values() if one] == ["Weekly review"]


async def test_a_turn_about_a_strangers_words_can_schedule_nothing(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as soul:
        registry = soul.app.lives.turn_services.turn_runner.executor.registry
        for turn in (
            Turn("awareness", Provenance.STRANGER),
            Turn("awareness", Provenance.PEER),
            Turn("schedule", Provenance.STRANGER, origin=Provenance.SELF),
        ):
            acts = {one.name for one in registry.available(turn) if one.effect == "act"}
            assert acts.isdisjoint({"schedule_add", "schedule_remove"})


async def test_the_owner_reads_the_note_of_a_reminder_wherever_they_read_the_reminder(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    phone, home = Phone(running_town, "owner"), running_town.make_home("rebecca", SOUL_TIMEZONE="UTC")
    note = "noted then, perhaps from what others wrote: Kit sells kettles"
    async with awake(home) as soul:
        services, commands = soul.app.services, owner_commands(soul.app, asyncio.Event())
        at = (services.clock.now() + timedelta(hours=2)).replace(tzinfo=None)
        line = "Remind me of that"
        await services.schedules.add(line, at, repeat="once", is_reminder=True, by="owner", note="Kit sells kettles")
        phone.says("/schedule")
        await look(soul)
        assert note in phone.answers[-1]
        await commands.obey("/schedule")
        await asyncio.to_thread(run_schedule, home.root, as_json=False)
        assert note in capsys.readouterr().out
        assert note in str(PageFacts(home, services.settings, services.clock).now()["schedules"])
        assert "kettles" not in str(await soul.app.status_report.moment())
        await passes(soul, 2 * HOUR_S + 60)
    assert note in phone.answers[-1]
    assert "was due" not in phone.answers[-1]
    assert any(line in words and note in detail for _, words, detail in soul.console.lines)


async def test_a_late_reminder_says_when_it_was_due(running_town: RunningTown) -> None:
    phone, home = Phone(running_town, "owner"), running_town.make_home("rebecca", SOUL_TIMEZONE="UTC")
    async with awake(home) as soul:
        at = soul.app.services.clock.now() + timedelta(hours=2)
        await soul.app.services.schedules.add(
            "Leave today", at.replace(tzinfo=None), repeat="once", is_reminder=True, by="owner"
        )
        phone.says("/schedule")
        await look(soul)
        await passes(soul, 30 * HOUR_S)
    assert f"Leave today (was due {spoken(at)})" in phone.answers[-1]


async def test_the_owner_removes_one_by_a_command(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan", SOUL_TIMEZONE="UTC")
    async with awake(home) as soul:
        schedules, commands = soul.app.services.schedules, owner_commands(soul.app, asyncio.Event())
        for what in ("one", "two"):
            await schedules.add(
                what,
                datetime.fromisoformat("2030-01-01T09:00"),
                repeat="once",
                is_reminder=True,
                by="owner",
            )
        await commands.obey("/unschedule 1")
        await asyncio.to_thread(run_schedule, home.root, remove="2", as_json=False)
        assert await schedules.all() == []
        with pytest.raises(UsageError, match="no schedule 2"):
            await asyncio.to_thread(run_schedule, home.root, remove="2", as_json=False)
    assert "Removed" in capsys.readouterr().out
