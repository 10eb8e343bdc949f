"""The owner answers the SOUL's own question: a yes orders what the question names, and a no orders nothing."""

import asyncio
from functools import partial

import pytest

from modules.services.day.gathering import DayReader
from modules.services.day.rendering import DaySummary, day_lines, did
from modules.services.rights.store import muted_among
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, call
from tests.scenarios.test_scenario_change_of_mind import use
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
        (("Shall I post: Tin rusts. at 18:00?", "Yes"), call("bluesky_post", text="Tin rusts."), "NO", False),
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
    home, days = running_town.make_home("rowan", SOUL_APPROVAL="drafts"), list[DaySummary]()
    async with awake(home) as life:
        reader, outbox = DayReader(life.app.services.settings, home, life.app.services.clock), life.app.services.outbox
        steps = [Completion(question), step, Completion("Well.")]
        running_town.mind.answer = lambda request: steps.pop(0) if request.offers else Completion(verdict)
        await answered(life.app.owner, "What could you do?")
        await answered(life.app.owner, line)
        assert [one.state for one in await outbox.held()] == ([] if is_done else ["held"])
        for draft in await outbox.held():
            days.append(await asyncio.to_thread(reader.read))
            await outbox.reject(draft.id)
        life.passes(60)
        await life.send()
        days.append(await asyncio.to_thread(reader.read))
    assert ["ordered" in dict(did(one)) for one in days] == ([True] if is_done else [False, False])
    assert ("stopped" in dict(did(days[-1])), all(one.is_own for one in days)) == (not is_done, True)
    follows = running_town.network.index.follows.between(rowan, kit)
    assert (bool(running_town.texts("rowan") or follows), steps) == (is_done, [])
    judged = [one.messages[-1].text for one in running_town.mind.asked if not one.offers]
    assert all(f'The line: "{line}"' in one and question[:14] in one for one in judged)
    assert all(("at: now" in one) == (step.calls[0].name == "bluesky_post") for one in judged)


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


async def test_after_a_look_at_a_day_with_calls_that_the_owner_s_no_blocked_a_yes_orders_as_before(
    running_town: RunningTown,
) -> None:
    rowan, kit, moss = (running_town.account(name) for name in ("rowan", "kit", "moss"))
    home, mute = running_town.make_home("rowan", SOUL_APPROVAL="drafts"), call("mute_account", did="moss.test")
    follow, asked = call("bluesky_follow", did="kit.test"), "Shall I follow @kit.test?"
    talk: list[tuple[str, str, list[Completion]]] = [
        ("What now?", "NO", [Completion("Shall I mute @moss.test?")]),
        ("Nein", "NO", [mute, Completion("Shall I mute @moss.test?")]),
        ("Well, yes", "YES", [mute, Completion("Done.")]),
        ("How was the day?", "NO", [call("day_read"), Completion(asked)]),
        ("Yes", "YES", [follow, Completion("Well.")]),
    ]
    async with awake(home) as life:
        for line, verdict, steps in talk:
            running_town.mind.answer = lambda asked, steps=steps, verdict=verdict: (  # type: ignore[misc]
                steps.pop(0) if asked.offers else Completion(verdict)
            )
            await answered(life.app.owner, line)
        life.passes(60)
        await life.send()
        muted = await life.app.services.database.run(partial(muted_among, dids=[moss]))
        told = (await use(life, "day_read", "What did I order?")).content
    assert running_town.network.index.follows.between(rowan, kit) is not None
    assert "sent back: 1: mute account: " in told
    assert (set(muted), "@moss.test muted by the owner (done)" in told) == ({moss}, True), told
