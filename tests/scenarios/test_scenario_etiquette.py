"""Manners in a whole life: what the SOUL does by rule before it asks its mind, and what it says openly of itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.running_town import RunningSoul, RunningTown, awake, call
from town.atproto.values import PROFILE
from town.model.types import ChatRequest, Completion

LABELS = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "bot"}]}
SUBJECTS = "tin slate straw copper thatch glass timber canvas lead zinc turf ice".split()  # noqa: SIM905 - reads better


def wondering() -> Callable[[ChatRequest], Completion]:
    """A mind that never tires, and never says the same twice."""
    subjects = iter(SUBJECTS)
    return lambda _: call("bluesky_reply", text=f"What of {next(subjects) * 3}, I wonder?")


def at_length(subject: str) -> str:
    """Words that were not said before."""
    return " ".join(f"{subject}{letter}" for letter in "abcdefghij") + ", pray?"


def label(running_town: RunningTown, name: str) -> str:
    did = running_town.account(name)
    running_town.network.put(did, PROFILE, "self", {"displayName": name, "labels": LABELS})
    return did


async def awareness(life: RunningSoul, times: int) -> None:
    """Some looks, with nothing sent."""
    for _ in range(times):
        await life.app.scheduler.run_guarded("awareness")


async def acts(life: RunningSoul) -> list[str]:
    return [entry.entry.data.get("act", "") for entry in await life.decisions() if entry.entry.trigger_uri]


@pytest.mark.slow
async def test_two_programs_end_their_talk_with_a_like_then_in_silence_and_ask_no_model(
    running_town: RunningTown,
) -> None:
    home, robo = running_town.make_home("rowan", SOUL_SPEED="200"), label(running_town, "robo")
    running_town.mind.answer = wondering()
    async with awake(home) as life:
        running_town.network.post_as(robo, f"@rowan.test {at_length(SUBJECTS[0])}")
        await life.look()
        for subject in SUBJECTS[1:8]:
            own = [post for post in running_town.network.posts() if post.author.handle == "rowan.test"]
            running_town.network.post_as(robo, at_length(subject), reply_to_uri=own[0].uri)
            await life.look()
        met = await acts(life)
        reasons = [entry.entry.reason for entry in await life.decisions()]
    assert met[:4] == ["replied", "replied", "replied", "concluded"]
    assert reasons[3].startswith("loop-thread-soft: 7 turns already")
    assert set(met[4:]) <= {"concluded", "liked", "skipped"}
    assert len(running_town.texts("rowan")) == len(running_town.mind.asked) == 3


async def test_a_post_that_is_deleted_and_posted_again_is_liked_without_asking_the_model(
    running_town: RunningTown,
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    question = "@rowan.test which roof is the loudest in heavy rain?"
    running_town.network.post_as(kit, question)
    async with awake(home) as life:
        await life.look()
        again, _ = running_town.network.post_as(kit, question.upper().replace("@ROWAN.TEST", "@rowan.test") + "!")
        await life.look()
        reasons = [entry.entry.reason for entry in await life.decisions()]
    assert len(running_town.mind.asked) == len(running_town.texts("rowan")) == 1
    assert running_town.likers(again) == ["rowan.test"]
    assert reasons[-1] == "repost-sense: 1 reply already, the limit is 1"


@pytest.mark.slow
async def test_who_has_to_wait_is_told_of_once_as_a_decision_and_the_others_are_met(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1000")
    running_town.mind.answer = wondering()
    for subject in SUBJECTS[:6]:
        running_town.network.post_as(
            running_town.account(f"p-{subject}"), f"@rowan.test what do you make of {subject} roofs?"
        )
    async with awake(home) as life:
        await awareness(life, 3)
        late = [
            running_town.network.post_as(running_town.account(name), "@rowan.test and I?")[0]
            for name in ("late", "later")
        ]
        again, _ = running_town.network.post_as(running_town.account("p-tin"), "@rowan.test and of a tin chimney?")
        await awareness(life, 1)
        met = await life.app.services.outbox.by_cause(again)
        life.passes(0.7)
        await awareness(life, 1)
        told = [stored.entry for stored in await life.decisions() if stored.entry.trigger_uri in late]
        errors = await life.app.services.journal.recent(100, kinds=["error"])
        attempts = await life.app.services.database.run(
            lambda connection: [
                row[0] for row in connection.execute("SELECT attempts FROM work WHERE state = 'pending'")
            ]
        )
    assert len(met) == 1
    assert sorted(entry.summary for entry in told) == ["@late.test has to wait", "@later.test has to wait"]
    assert {(entry.line, entry.reason.split(":")[0]) for entry in told} == {("social", "strangers-while-young")}
    assert (attempts, errors) == ([0, 0], [])


@pytest.mark.parametrize(
    ("answer", "summary"),
    [
        (call("bluesky_reply", text="Slate, in all weathers."), "A reply to @kit.test waits for your yes"),
        (call("bluesky_like"), "A like for @kit.test waits for your yes"),
        (call("stay_silent", reason="nothing to add"), "Staying silent with @kit.test"),
    ],
)
async def test_what_waits_for_the_owners_yes_is_not_told_as_done(
    running_town: RunningTown, answer: Completion, summary: str
) -> None:
    running_town.mind.answer = lambda _: answer
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder?")
    async with awake(home) as life:
        await life.look()
        (decided,) = await life.decisions()
    assert decided.entry.summary == summary


async def test_awake_it_says_on_its_profile_what_it_is_and_who_runs_it(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", OPERATOR_CONTACT="someone@example.com")
    async with awake(home):
        profile = running_town.network.profile(running_town.account("rowan"))
        assert profile
        assert profile.value["labels"] == LABELS
        assert profile.value["description"].endswith("someone@example.com")
