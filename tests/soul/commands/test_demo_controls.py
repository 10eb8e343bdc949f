"""The hand on the page reaches real homes: it tells why, decides drafts and pauses beside the living SOUL."""

from __future__ import annotations

from datetime import date

import pytest

from common.errors import SoulError
from modules.runtime.control import Control
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from modules.services.rituals.policy import memo_cause, opening_cause
from soul.commands.demo import HomeControls
from tests.running_town import RunningSoul, RunningTown, awake

QUESTION = "Morning @rowan.test, which roof is louder in the rain?"


async def hold(life: RunningSoul, text: str, cause: str = "expression") -> str:
    submitted = await life.app.services.outbox.submit(
        ProposedAction(PostBody(text=text), cause_id=cause, hold="as you wished")
    )
    assert submitted.held
    return submitted.intent.id


async def test_it_tells_why_in_plain_words(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    theirs, _ = running_town.network.post_as(kit, QUESTION)
    controls = HomeControls({"rowan.test": home})
    async with awake(home) as life:
        await life.look()
        told = await controls.why("rowan.test", theirs)
    assert told.title == "Why it replied to @kit.test"
    assert told.lead.startswith("@kit.test wrote to it, it wrote an answer")
    assert told.lead.count(".") == told.lead.count("kit.test") + 1, "one sentence"
    assert told.steps[0].text == "@kit.test mentioned it"
    assert told.steps[0].details == (f"“{QUESTION}”",), "no bare address"
    assert any("Because: question asked" in step.details for step in told.steps)


async def test_a_yes_lets_a_draft_out_and_a_no_keeps_it_in(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    controls = HomeControls({"rowan.test": home})
    async with awake(home) as life:
        yes, no = await hold(life, "A tin roof sings."), await hold(life, "A slate roof listens.")
        assert [one["id"] for one in (await life.app.status_report.gather())["drafts"]] == [yes, no]
        await controls.decide("rowan.test", yes, yes=True)
        await controls.decide("rowan.test", no, yes=False)
        await life.send()
        with pytest.raises(SoulError, match="does not wait any more"):
            await controls.decide("rowan.test", no, yes=True)
        told = await controls.why("rowan.test", no)
        assert (await life.app.status_report.gather())["drafts"] == []
    assert running_town.texts("rowan") == ["A tin roof sings."]
    assert told.title == "Why its post was blocked"
    assert told.lead == "Its schedule called for a post, and it wrote this, but that has not left."
    assert any("the owner rejected it" in " ".join(step.details) for step in told.steps)


async def test_what_began_with_something_else_is_no_thought_of_its_own(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    controls = HomeControls({"rowan.test": home})
    causes = (opening_cause("roof-hour", date(2026, 1, 5)), memo_cause("roof-hour", date(2026, 1, 5)), "", "other:1")
    async with awake(home) as life:
        for number, cause in enumerate(causes):
            told = await controls.why("rowan.test", await hold(life, f"A roof of {number} slates.", cause))
            assert "called for a post" not in told.lead
            assert ("ritual" in told.lead) is cause.startswith("ritual")


async def test_a_pause_is_given_and_taken_back(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    controls = HomeControls({"rowan.test": home})
    await controls.pause("rowan.test", paused=True)
    assert Control(home.memory).standing().paused
    await controls.pause("rowan.test", paused=False)
    assert Control(home.memory).standing().may_act


async def test_what_speaks_against_going_on_beside_the_pause_is_said(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    Control(home.memory).heed_record("I am away")
    with pytest.raises(SoulError, match="I am away"):
        await HomeControls({"rowan.test": home}).pause("rowan.test", paused=False)


async def test_who_does_not_live_here_is_nobody(running_town: RunningTown) -> None:
    controls = HomeControls({})
    with pytest.raises(SoulError, match="Nobody"):
        await controls.why("../rowan", "at://x/y/1")
