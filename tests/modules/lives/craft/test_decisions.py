"""Proves that the owner's decision on a proposal, given anywhere, reaches the SOUL within a minute with its reason."""

import asyncio
import sqlite3
from contextlib import closing
from functools import partial

import pytest

from common.provenance import Provenance
from modules.runtime.home import Home
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import Turn
from modules.services.identity.history import held_documents
from modules.services.owner import NOTICE
from soul.commands.drafts import run_drafts
from soul.commands.options import DraftAction
from soul.commands.run import owner_commands
from tests.modules.lives.craft.test_issues import reporting
from tests.modules.lives.craft.test_proposals import WISH, Decider, Life, PageMaker, home_of, three_days_old
from tests.owner_lines import approve_shown
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.test_scenario_reflection import DAY_S, HOUR_S, at_noon
from tests.town_github import TownGitHub
from town.model.types import ChatRequest, Completion

MINUTE_S = 61.0
PAGE = "When somebody asks where something is: draw a map with its name on it."


class Writer(Decider):
    """Scripted mind that writes the skill it decided to propose, under another name each time."""

    written = 0

    def __call__(self, request: ChatRequest) -> Completion:
        if "Write it now" in request.messages[-1].text:
            self.written += 1
            return call("skill_propose", name=f"maps-{self.written}", purpose="Draw maps.", page=PAGE)
        return super().__call__(request)


def life_of(soul: RunningSoul, mind: Decider) -> Life:
    life = Life(soul, mind, PageMaker())
    life.handler.makers = life.own_makers
    return life


async def says(life: Life, line: str) -> str:
    return "\n".join(await owner_commands(life.soul.app, asyncio.Event()).answer(line))


async def beside(home: Home, action: DraftAction, name: str, reason: str = "") -> None:
    """Decide on the draft `name` with the terminal's command, beside the SOUL."""
    await asyncio.to_thread(partial(run_drafts, home.root, action, [name], reason=reason, as_json=False))


async def test_a_decision_given_beside_the_soul_is_taken_up_within_a_minute_also_after_a_restart(
    running_town: RunningTown,
) -> None:
    home = home_of(running_town)
    running_town.mind.answer = mind = Writer()
    async with awake(home, clock=at_noon()) as soul:
        life = life_of(soul, mind)
        await says(life, f"/improve {WISH}")
        await says(life, "/improve Sing.")
        for _ in range(4):
            await life.works(MINUTE_S)
        assert await life.proposed() == [("waiting", "skill")]
        asked = len(mind.decisions)
        await asyncio.to_thread(approve_shown, home.root, "skills/maps-1")
        await life.works(MINUTE_S)
        await life.works(MINUTE_S)
        assert (await life.proposed())[-1] == ("taken", "skill")
        assert len(mind.decisions) == asked + 1, "what waited behind it comes next"
        for _ in range(4):
            await life.works(MINUTE_S)
        assert await life.proposed() == [("waiting", "skill"), ("taken", "skill")]
    await beside(home, DraftAction.REJECT, "skills/maps-2")
    async with awake(home, clock=soul.clock) as again:
        life = life_of(again, mind)
        await life.works(MINUTE_S)
        assert (await life.proposed())[0] == ("left", "skill")


async def test_an_issue_that_left_is_noticed_within_a_minute(town_github: TownGitHub) -> None:
    async with reporting(town_github) as soul:
        await soul.proposes()
        await soul.life.works(MINUTE_S)
        await soul.approves()
        await soul.life.works(MINUTE_S)
        assert await soul.life.proposed() == [("taken", "issue")]


async def test_a_kill_after_the_skill_was_proposed_and_before_that_was_noted_leaves_one(
    running_town: RunningTown,
) -> None:
    home = home_of(running_town)
    running_town.mind.answer = mind = Writer()
    async with awake(home, clock=at_noon()) as soul:
        life = life_of(soul, mind)
        await says(life, f"/improve {WISH}")
        for _ in range(3):
            await life.works(MINUTE_S)
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("UPDATE proposals SET state = 'making', made = '', evidence = '{}'")
        connection.execute("UPDATE work SET state = 'pending', not_before = '' WHERE kind = 'reflection'")
        connection.commit()
    async with awake(home, clock=soul.clock) as again:
        life = life_of(again, mind)
        for _ in range(3):
            await life.works(MINUTE_S)
        assert list(held_documents(home)) == ["skills/maps-1"]
        assert [(one.state, one.made) for one in await life.craft.proposals.all()] == [("waiting", "maps-1")]


async def _told(life: Life) -> list[str]:
    return [str(one.payload["words"]) for one in await life.soul.app.services.work.newest(NOTICE, 9)]


async def test_the_owner_reads_one_true_line_on_each_end_and_the_soul_their_reason(
    running_town: RunningTown,
) -> None:
    home = home_of(running_town)
    running_town.mind.answer = mind = Writer()
    async with awake(home, clock=at_noon()) as soul:
        life = life_of(soul, mind)
        for wish, order in (
            (WISH, "/reject skills/maps-1 because nobody asks\nfor maps"),
            ("Sing.", "/approve skills/maps-2"),
        ):
            await says(life, f"/improve {wish}")
            for _ in range(3):
                await life.works(MINUTE_S)
            await says(life, "/drafts " + order.split()[1])
            await says(life, order)
            mind.pursue = False
            await life.works(MINUTE_S)
            mind.pursue = True
        mind.pursue = False
        await says(life, "/improve Fly.")
        await life.works(MINUTE_S)
        mind.pursue = True
        await says(life, "/improve Swim.")
        for _ in range(3):
            await life.works(MINUTE_S)
        await life.works(15 * DAY_S)
        assert sorted(one for one in await _told(life) if WISH in one or "." in one.split("\n")[0]) == sorted(
            [
                f"“{WISH}”\nChose not to get better at it: A page would end it.",
                "“Sing.”\nProposal to get better: accepted: maps-2: the owner approved it",
                "“Fly.”\nChose not to get better at it: A page would end it.",
                "“Swim.”\nProposal to get better: not accepted: maps-3: nobody decided within 14 days",
            ]
        )
        await says(life, "/reflect")
        asked = [one.messages[-1].text for one in running_town.mind.asked]
        told = next(text for text in reversed(asked) if "What of this lasts?" in text)
        assert "- skills/maps-1: your owner said “because nobody asks for maps”" in told
        assert "- maps-2, read in talks with your owner: Draw maps." in told
        assert "your owner has not decided: skills/maps-3" in told
        assert [one for one in await life.craft.friction.count() if one.own] == [], "none of it is a friction"
        held = await soul.app.services.self_keeper.change("# R\n", reason="x", by="soul", hold="y", unasked=True)
        await says(life, "/reject SELF.md no")
        again = await soul.app.services.self_keeper.change("# R\n", reason="x", by="soul", hold="y", unasked=True)
        assert (held.status, again.status) == ("held", "refused"), "word for word"


async def test_after_a_no_with_a_reason_the_soul_decides_once_more_and_is_told_the_reason_also_when_asked_again(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = mind = Writer()
    async with awake(home_of(running_town), clock=at_noon()) as soul:
        life = life_of(soul, mind)
        await says(life, f"/improve {WISH}")
        for name, reason in (("maps-1", "make it shorter"), ("maps-2", "still too long")):
            for _ in range(3):
                await life.works(MINUTE_S)
            await says(life, f"/reject skills/{name} {reason}")
        for _ in range(3):
            await life.works(MINUTE_S)
        rejected = "A page for the skill maps-{}: dropped: the owner rejected it: {}"
        assert await life.proposed() == [("left", "skill"), ("left", "skill")], "a second no is the end"
        assert "came of it before" not in mind.decisions[0]
        assert f"What came of it before: {rejected.format(1, 'make it shorter')}" in mind.decisions[1]
        (told,) = [one for one in await _told(life) if WISH in one]
        assert told.endswith("not accepted: maps-2: the owner rejected it: still too long")
        await says(life, f"/improve {WISH}")
        await life.works(MINUTE_S)
        assert len(mind.decisions) == 3
        assert f"What came of it before: {rejected.format(2, 'still too long')}" in mind.decisions[2]


async def test_a_second_try_that_the_owner_approves_mends_the_friction(running_town: RunningTown) -> None:
    async with three_days_old(running_town, home_of(running_town), Writer()) as life:
        life.handler.makers = life.own_makers
        await life.meets_three_times()
        for _ in range(3):
            await life.works(MINUTE_S)
        await says(life, "/reject skills/maps-1 say it shorter")
        for _ in range(3):
            await life.works(MINUTE_S)
        assert [(one.state, one.made) for one in await life.craft.proposals.all()] == [
            ("waiting", "maps-2"),
            ("left", "maps-1"),
        ]
        assert (await life.friction()).reason == "waiting: maps-2"
        await says(life, "/drafts skills/maps-2")
        await says(life, "/approve skills/maps-2")
        await life.works(MINUTE_S)
        assert (await life.friction()).reason == "taken: maps-2"
        second, first = [await says(life, f"/why {name}") for name in ("skills/maps-2", "skills/maps-1")]
        assert second.startswith("Why: A page for the skill maps-2: accepted: the owner approved it")
        assert first.startswith("Why: A page for the skill maps-1: dropped: the owner rejected it: say it shorter")
        story = (await says(life, "/why proposal:1")).splitlines()
        rejected, changed = (
            next(at for at, line in enumerate(story) if what in line)
            for what in ("The owner rejected a page for the skill maps-1", "skills/maps-2 changed")
        )
        assert "say it shorter" in story[rejected + 1]
        assert rejected < changed
        await life.works(9 * DAY_S)
        assert (await life.friction()).state == "mended"


async def test_a_decision_is_told_which_skills_there_are_and_which_wait(running_town: RunningTown) -> None:
    running_town.mind.answer = mind = Decider(pursue=False)
    async with awake(home_of(running_town), clock=at_noon()) as soul:
        life, executor = life_of(soul, mind), soul.app.lives.turn_services.turn_runner.executor
        for name in ("maps", "tides"):
            asked = ToolCall("1", "skill_propose", {"name": name, "purpose": f"On {name}.", "page": PAGE})
            assert not (await executor.execute(asked, Turn("owner", Provenance.OWNER))).is_error
        await says(life, "/drafts skills/maps")
        await says(life, "/approve skills/maps")
        await says(life, f"/improve {WISH}")
        await life.works(MINUTE_S)
        assert "- maps: On maps." in mind.decisions[0]
        assert "- tides (written; it waits for your owner's approval): On tides." in mind.decisions[0]


async def test_of_the_skills_of_one_reflection_the_first_is_the_proposals(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = home_of(running_town)
    coming = [
        call("skill_propose", name="rain-figures", purpose="Rain.", page=PAGE),
        call("skill_propose", name="post-language", purpose="Language.", page=PAGE),
        call("skill_propose", name="rain-figures", purpose="Rain, in millimetres.", page=f"{PAGE} At once."),
    ]
    mind = Decider()

    def writing(request: ChatRequest) -> Completion:
        return coming.pop(0) if coming and "What of this lasts?" in str(request.messages) else mind(request)

    running_town.mind.answer = writing
    async with awake(home, clock=at_noon()) as soul:
        life = life_of(soul, mind)
        await says(life, f"/improve {WISH}")
        for _ in range(3):
            await life.works(MINUTE_S)
        assert held_documents(home).keys() == {"skills/post-language", "skills/rain-figures"}
        for name, is_shown in (("rain-figures", True), ("post-language", False)):
            await beside(home, DraftAction.SHOW, f"skills/{name}")
            assert (f"Wished for: {WISH}" in capsys.readouterr().out) is is_shown
        await says(life, "/approve skills/post-language")
        await life.works(MINUTE_S)
        assert await life.proposed() == [("waiting", "skill")]
        await says(life, "/reject skills/rain-figures")
        await life.works(MINUTE_S)
        (told,) = [one for one in await _told(life) if WISH in one]
        assert told.endswith("not accepted: rain-figures: the owner rejected it")


async def test_a_decision_names_only_what_can_be_chosen_and_is_not_made_where_nothing_can(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = mind = Decider(pursue=False)
    async with awake(home_of(running_town), clock=at_noon()) as soul:
        life = life_of(soul, mind)
        life.handler.makers = []
        await says(life, f"/improve {WISH}")
        await life.works()
        assert (mind.decisions, await life.proposed()) == ([], [])
        (told,) = [one for one in await _told(life) if WISH in one]
        assert "it can write no skill" in told
        life.handler.makers = life.own_makers
        await says(life, f"/improve {WISH}")
        await life.works(7 * HOUR_S)
        (asked,) = mind.decisions
        assert "- skill: a page" in asked
        assert "program" not in asked
        assert "issue" not in asked
