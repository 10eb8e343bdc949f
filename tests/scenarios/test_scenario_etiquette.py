"""Etiquette of a whole SOUL: what it does by rule without the model, and what it discloses about itself."""

from collections.abc import Callable

import pytest

from tests.running_town import RunningSoul, RunningTown, awake, call
from town.atproto.index import PROFILE
from town.model.types import ChatRequest, Completion

LABELS = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "bot"}]}
SUBJECTS = "tin slate straw copper thatch glass timber canvas lead zinc turf ice".split()  # noqa: SIM905 - reads better


def wondering() -> Callable[[ChatRequest], Completion]:
    """Return a mind that always replies, and never says the same twice."""
    subjects = iter(SUBJECTS)
    return lambda _: call("bluesky_reply", text=f"What of {next(subjects) * 3}, I wonder?")


def at_length(subject: str) -> str:
    """Return a text with new words for each subject."""
    return " ".join(f"{subject}{letter}" for letter in "abcdefghij") + ", pray?"


def label(running_town: RunningTown, name: str) -> str:
    did = running_town.account(name)
    running_town.network.put(did, PROFILE, "self", {"displayName": name, "labels": LABELS})
    return did


async def awareness(life: RunningSoul, times: int) -> None:
    """Look at Bluesky a number of times, and send nothing."""
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


async def test_what_waits_for_the_owners_yes_is_not_told_as_done(running_town: RunningTown) -> None:
    running_town.mind.answer = lambda _: call("bluesky_reply", text="Slate, in all weathers.")
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder?")
    async with awake(home) as life:
        await life.look()
        (decided,) = await life.decisions()
    assert decided.entry.summary == "Reply to @kit.test is waiting for your approval"
