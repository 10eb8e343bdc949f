"""The owner answers the SOUL's own question: a yes orders what it names, and a no orders nothing."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from modules.services.rights.store import muted_among
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, call
from town.model.types import Completion

POSTS = "Which of these?\n1. Tin rusts.\n2. Slate lasts.\n3. Lead sinks."


@pytest.mark.parametrize(
    ("asked", "step", "verdict", "is_done"),
    [
        (("Shall I follow @kit.test?", "Yes, please"), call("bluesky_follow", did="kit.test"), "YES", True),
        (("Shall I follow @kit.test?", "Not now"), call("bluesky_follow", did="kit.test"), "NO", False),
        (("Shall I follow moss.test?", "Yes"), call("bluesky_follow", did="kit.test"), "YES", False),
        ((POSTS, "Take the second."), call("bluesky_post", text="Slate lasts."), "YES", True),
        ((POSTS, "Take the second."), call("bluesky_post", text="Slate lasts for ever."), "YES", False),
    ],
)
async def test_a_yes_to_a_question_in_a_talk_without_others_words_orders_what_the_question_names(
    running_town: RunningTown,
    asked: tuple[str, str],
    step: Completion,
    verdict: str,
    is_done: bool,  # noqa: FBT001 - a table
) -> None:
    question, line = asked
    rowan, kit = (running_town.account(name) for name in ("rowan", "kit"))
    async with awake(running_town.make_home("rowan", SOUL_APPROVAL="drafts")) as life:
        steps = [Completion(question), step, Completion("Well.")]
        running_town.mind.answer = lambda request: steps.pop(0) if request.offers else Completion(verdict)
        await answered(life.app.owner, "What could you do?")
        await answered(life.app.owner, line)
        assert [one.state for one in await life.app.services.outbox.held()] == ([] if is_done else ["held"])
        life.passes(60)
        await life.send()
    follows = running_town.network.index.follows.between(rowan, kit)
    assert (bool(running_town.texts("rowan") or follows), steps) == (is_done, [])
    judged = [one.messages[-1].text for one in running_town.mind.asked if not one.offers]
    assert all(f'The line: "{line}"' in one and question[:14] in one for one in judged)


@pytest.mark.parametrize("approval", ["drafts", "off"])
async def test_the_soul_s_question_is_answered_by_yes_and_by_no_for_whatever_needs_a_name(
    running_town: RunningTown, approval: str
) -> None:
    rowan, kit = (running_town.account(name) for name in ("rowan", "kit"))
    home = running_town.make_home("rowan", SOUL_APPROVAL=approval)
    acts = {
        "Shall I follow @kit.test?": call("bluesky_follow", did="kit.test"),
        "Shall I mute @kit.test for you?": call("mute_account", did="@kit.test"),
        "Shall I hear @kit.test again?": call("mute_account", did="kit.test", off=True),
    }
    stood, told = list[tuple[bool, bool]](), list[str]()
    async with awake(home) as life:
        database, outbox = life.app.services.database, life.app.services.outbox
        for question, act in acts.items():
            for line, verdict in (("nein, lieber nicht", "NO"), ("yep, go ahead", "YES")):
                steps = [Completion(question), act, Completion("Well.")]
                running_town.mind.answer = lambda asked, steps=steps, verdict=verdict: (  # type: ignore[misc]
                    steps.pop(0) if asked.offers else Completion(verdict)
                )
                await answered(life.app.owner, "What could you do?")
                await answered(life.app.owner, line)
                told += [one.messages[-1].text for one in running_town.mind.asked if one.offers][-1:]
                for draft in await outbox.held():
                    assert (draft.by_owner, "does not ask for it" in (draft.error or "")) == (False, True)
                    await outbox.reject(draft.id)
                life.passes(60)
                await life.send()
                is_muted = bool(await database.run(partial(muted_among, dids=[kit])))
                stood.append((running_town.network.index.follows.between(rowan, kit) is not None, is_muted))
        day = await asyncio.to_thread(DayReader(life.app.services.settings, home, life.app.services.clock).read)
    follows = [(False, False), (True, False)]
    assert stood == [*follows, follows[1], (True, True), (True, True), (True, False)]
    assert told[0].startswith("HELD") is (approval == "drafts"), told[0]
    assert all("does not ask for it" in one and "others' words" not in one for one in told[::2])
    shown = " ".join(" ".join(day_lines(day)).split())
    assert "ordered follow @kit.test (done)" in shown
    assert ("stopped follow @kit.test (the owner rejected it)" in shown) == (approval == "drafts")
