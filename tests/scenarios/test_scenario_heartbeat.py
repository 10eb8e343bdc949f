"""HEARTBEAT.md causes a turn every few waking hours, and none if it says nothing."""

from datetime import timedelta

import pytest

from tests.running_town import RunningSoul, RunningTown, awake, call, prompt_of
from tests.scenarios.test_scenario_reflection import at_noon
from town.model.types import ChatRequest, Completion

HOUR_S = 3_600.0
FILE = "# Look after\n\n- Is my profile as I like it?\n"


async def looks(soul: RunningSoul) -> list[tuple[str, str]]:
    """Run the loop for work once; return the decisions about the file so far: act and reason."""
    await soul.app.scheduler.run_guarded("work")
    found = [one.entry for one in await soul.decisions() if one.entry.data.get("kind") == "heartbeat-turn"]
    return [(one.data["act"], one.reason) for one in found]


def turns(town: RunningTown) -> list[ChatRequest]:
    return [one for one in town.mind.asked if "HEARTBEAT.md" in one.messages[-1].text]


@pytest.mark.slow
async def test_the_file_is_a_turn_every_six_waking_hours_and_silence_costs_one_call(running_town: RunningTown) -> None:
    town, clock = running_town, at_noon()
    home = town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE="UTC", READING_PER_DAY="0")
    home.workspace.mkdir(parents=True)
    (home.workspace / "HEARTBEAT.md").write_text("# Look after\n\n<!-- nothing yet -->\n")
    town.mind.answer = lambda _: Completion("Nothing is due.")
    async with awake(home, clock=clock) as soul:
        assert await looks(soul) == []
        (home.workspace / "HEARTBEAT.md").write_text(FILE)
        assert await looks(soul) == [("silent", "Nothing is due.")]
        soul.passes(5.9 * HOUR_S)
        assert len(await looks(soul)) == 1
    async with awake(home, clock=clock) as soul:
        soul.passes(0.2 * HOUR_S)
        acts = [call("bluesky_get_profile", actor=town.account("rowan")), Completion("My profile is fine.")]
        town.mind.answer = lambda _: acts.pop(0)
        assert (await looks(soul))[-1] == ("done", "My profile is fine.")
        soul.passes(7 * HOUR_S)  # one in the morning
        assert len(await looks(soul)) == 2
        soul.passes(24 * HOUR_S)
        due = await soul.app.lives.own_times.heartbeat.due()
        assert due is not None
        assert due > clock.now(), "a turn that was missed by day waits until the morning, asleep"
    first = turns(town)[0]
    assert len(turns(town)) == 2
    assert "Is my profile as I like it?" in prompt_of(first)
    names = {one.name for one in first.offers}
    assert {"schedule_add", "self_update", "memory_save"} <= names
    assert names.isdisjoint({"bluesky_reply", "bluesky_like", "bluesky_follow", "web_fetch"})


async def test_no_line_of_the_file_is_posted_but_one_that_it_gives_for_that(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    home.workspace.mkdir(parents=True)
    given = "The kiln is warm. Who brings clay today, and who brings only time?"
    (home.workspace / "HEARTBEAT.md").write_text(f'- [ ] Marta\'s operation is on Friday\n- Once, post "{given}"\n')
    own = "Somebody I know is brave this week. What do you bring to people in a ward?"
    texts = [f"Think of it: Marta's operation is on Friday! {own[:40]}", own, given]
    posts = iter([*(call("bluesky_post", text=text) for text in texts), Completion("Posted.")])
    running_town.mind.answer = lambda _: next(posts)
    async with awake(home, clock=at_noon()) as soul:
        assert (await looks(soul))[-1] == ("done", "Posted.")
        queued = [one.body.stored()["text"] for one in await soul.app.services.outbox.of_kind("post", 9)]
    assert "words of your instructions" in running_town.mind.asked[1].messages[-1].text
    assert sorted(queued) == sorted([own, given])


async def test_no_line_of_the_file_is_posted_by_way_of_a_schedule(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    home.workspace.mkdir(parents=True)
    line, due = "Marta's operation is on Friday, and nobody may hear of it", at_noon().now() + timedelta(hours=3)
    (home.workspace / "HEARTBEAT.md").write_text(f"- [ ] {line}\n")
    steps = iter(
        [
            call("schedule_add", what=f'Post "{line}"', at=f"{due:%Y-%m-%dT%H:%M}"),
            Completion("Scheduled."),
            call("bluesky_post", text=line),
            Completion("Not posted."),
        ]
    )
    running_town.mind.answer = lambda _: next(steps, Completion("Nothing is due."))
    async with awake(home, clock=at_noon()) as soul:
        assert await looks(soul) == [("done", "Scheduled.")]
        soul.passes(4 * HOUR_S)
        await soul.app.scheduler.run_guarded("work")
        assert await soul.app.services.outbox.of_kind("post", 9) == []
    assert any("words of your instructions" in one.messages[-1].text for one in running_town.mind.asked)


async def test_an_account_that_the_file_names_is_read_at_any_time_and_nothing_new_is_silent(
    running_town: RunningTown,
) -> None:
    for who in ("sam", "kit"):
        running_town.network.post_as(running_town.account(who), f"{who} on moss")
    home = running_town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")
    home.workspace.mkdir(parents=True)
    (home.workspace / "HEARTBEAT.md").write_text("- Tell me what @sam.test and @kit.test say about moss.\n")
    looked = [*(call("bluesky_read_feed", address=one) for one in ("@sam.test", "kit.test", "x.vera.test"))]
    steps = iter([*looked, call("bluesky_get_notifications"), Completion("")])
    running_town.mind.answer = lambda _: next(steps)
    async with awake(home, clock=at_noon()) as soul:
        assert await looks(soul) == [("silent", "there was nothing to tell")]
        await soul.app.scheduler.run_guarded("alarms")
        assert await soul.app.services.work.newest("alarm", 5, key_prefix="own/") == []
    answers = [one.text for one in running_town.mind.asked[-1].messages if one.role == "tool"]
    assert [one.startswith("Error") for one in answers] == [False, False, True, False]
    assert "You are @rowan.test" in running_town.mind.asked[0].messages[0].text


async def test_zero_hours_are_never(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE="UTC", HEARTBEAT_HOURS="0")
    home.workspace.mkdir(parents=True)
    (home.workspace / "HEARTBEAT.md").write_text(FILE)
    async with awake(home, clock=at_noon()) as soul:
        assert await looks(soul) == []
