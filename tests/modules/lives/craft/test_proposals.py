"""Proves that a SOUL proposes to fix recurring frictions: one at a time, each approved, and counted afterwards."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from common.clock import parse_iso
from common.person import Person, Trace
from common.provenance import Provenance
from modules.lives.craft.handle import ImprovementHandler, SkillMaker
from modules.lives.craft.perceive import NOTHING, CraftPerceiver, improve
from modules.lives.growth.policy import objection
from modules.runtime.database.people import know_person
from modules.runtime.home import Home
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import Turn
from modules.services.craft.friction import Friction
from modules.services.craft.proposals import (
    CRAFT_OF_PEOPLE,
    Maker,
    Proposal,
    ProposalGates,
    ProposalStep,
    Rung,
    friction_stands,
    in_words,
)
from modules.services.day.gathering import DayReader
from modules.services.experiences import Experience, NewExperience
from modules.services.owner import NOTICE
from modules.services.work.table import WORK_OF_PEOPLE
from modules.services.work.types import NewWork
from soul.commands.run import owner_commands
from soul.commands.status import look, status_lines
from tests.modules.services.craft.test_friction import turn
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.test_scenario_reflection import DAY_S, HOUR_S, at_noon
from town.model.types import ChatRequest, Completion

WISH = "Draw a map of the harbour."
EVE = "did:plc:evelynevelynevelynevely"


@dataclass
class PageMaker:
    """Makes what a proposal asks for at once, and lets it wait for a person."""

    rung: Rung = "skill"
    made: list[int] = field(default_factory=list)
    step: ProposalStep = field(default_factory=lambda: ProposalStep("waiting", "a-page"))

    def is_ready(self) -> bool:
        return True

    async def advance(self, proposal: Proposal) -> ProposalStep:
        self.made.append(proposal.id)
        return self.step


@dataclass
class Decider:
    """Scripted mind that decides as it was told, and keeps the prompt of each decision."""

    pursue: bool = True
    rung: str = "skill"
    decisions: list[str] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        if "improvement_decide" in names:
            self.decisions.append(request.messages[-1].text)
            return call("improvement_decide", pursue=self.pursue, reason="A page would end it.", rung=self.rung)
        return Completion(text="Nothing lasts.")


@dataclass
class Life:
    """A SOUL that is three days old, with the parts of it that tests look at."""

    soul: RunningSoul
    mind: Decider
    maker: PageMaker
    shipped: SkillMaker = field(init=False)
    own_makers: Sequence[Maker] = field(init=False)

    def __post_init__(self) -> None:
        self.own_makers = self.handler.makers
        (self.shipped,) = (one for one in self.handler.makers if isinstance(one, SkillMaker))
        self.handler.makers = [self.maker]

    @property
    def craft(self) -> CraftPerceiver:
        return self.soul.app.lives.growth.craft

    @property
    def handler(self) -> ImprovementHandler:
        (found,) = [one for one in self.soul.app.lives.growth.handlers if isinstance(one, ImprovementHandler)]
        return found

    async def works(self, passed_s: float = 0.0) -> None:
        self.soul.passes(passed_s)
        await self.soul.app.scheduler.run_guarded("work")

    async def meets(self, *entries: Entry) -> None:
        for entry in entries:
            await self.soul.app.services.journal.record(entry)

    async def meets_three_times(self) -> None:
        """Call a tool wrongly twice today and once tomorrow."""
        await self.meets(turn(), turn())
        self.soul.passes(DAY_S)
        await self.meets(turn())

    async def friction(self) -> Friction:
        (found,) = [one for one in await self.craft.friction.count() if one.category == "tools"]
        return found

    async def proposed(self) -> list[tuple[str, str]]:
        return [(one.state, one.rung) for one in await self.craft.proposals.all()]


def home_of(town: RunningTown, name: str = "rowan", **more: str) -> Home:
    return town.make_home(name, SOUL_SPEED="1", SOUL_TIMEZONE="UTC", READING_PER_DAY="0", **more)


@asynccontextmanager
async def three_days_old(town: RunningTown, home: Home, mind: Decider | None = None) -> AsyncIterator[Life]:
    town.mind.answer = mind = mind or Decider()
    clock = at_noon()
    clock.ahead -= 3 * DAY_S
    async with awake(home, clock=clock) as soul:
        soul.passes(3 * DAY_S)
        life = Life(soul, mind, PageMaker())
        yield life


async def test_a_friction_is_proposed_waits_for_a_person_and_is_counted_a_week_after(running_town: RunningTown) -> None:
    async with three_days_old(running_town, home_of(running_town)) as life:
        await life.meets(*(turn() for _ in range(3)))
        await life.meets_three_times()
        await life.works()
        assert (await life.friction()).state == "proposed"
        assert await life.proposed() == [("waiting", "skill")]
        (asked,) = life.mind.decisions
        await life.soul.app.status.write("running")
        status = look(life.soul.app.services.home)
        (told,) = [line for line in status_lines("rowan", status) if "getting better" in line]
        assert told.startswith("  getting better: A page for the skill a-page: waiting since 20")
        assert "`soul drafts show skills/a-page`" in told
        services = life.soul.app.services
        days = DayReader(services.settings, services.home, life.soul.clock)
        spent = (await asyncio.to_thread(days.read)).spent
        print(f"\na decision costs {round(spent.tokens)} tokens in {spent.calls} calls")  # noqa: T201 - shows the cost
        assert spent.tokens < 4_000
        assert "expression: bluesky_post Wrong Fields" in asked
        await life.works(7 * HOUR_S)
        assert len(life.mind.decisions) == 1, "it decides once"
        life.maker.step = ProposalStep("taken", "a-page")
        await life.works(7 * HOUR_S)
        assert await life.proposed() == [("taken", "skill")]
        (row,) = await life.soul.app.services.work.newest("improvement", 5)
        assert parse_iso(row.not_before) - life.soul.clock.now() > timedelta(days=6), "nothing wakes it before"
        await life.works(3 * DAY_S)
        await life.meets(turn())
        await life.works(3 * DAY_S)
        assert (await life.friction()).state == "proposed", "a week is not over"
        await life.works(3 * DAY_S)
        found = await life.friction()
        assert (found.state, found.reason) == (
            "mended",
            "mended: 6 in the seven days before, 1 in the seven days after",
        )
        day = await asyncio.to_thread(days.read)
        seven = "6 in the seven days before, 1 in the seven days after"
        assert ("proposals", "Proposal mended", f"a-page: {seven}") in [one[:3] for one in day.own_time]
        assert friction_stands(found) == f"mended: {seven}"
        await life.works(7 * DAY_S)
        (told,) = (await life.soul.app.status_report.gather())["growth"]["friction"]
        assert (told["state"], told["count"]) == ("mended", 0), "told when it is over too"
        assert (told["description"], told["stands"]) == (in_words(found), friction_stands(found))


async def test_what_did_not_fall_by_half_is_open_again_and_may_be_proposed_anew(running_town: RunningTown) -> None:
    async with three_days_old(running_town, home_of(running_town)) as life:
        life.maker.step = ProposalStep("taken", "a-page")
        await life.meets_three_times()
        await life.works()
        assert await life.proposed() == [("taken", "skill")]
        for _ in range(4):
            await life.works(2 * DAY_S)
            await life.meets(turn())
        await life.works(2 * DAY_S)
        told = "3 in the seven days before, 3 in the seven days after"
        assert [one.reason for one in await life.craft.proposals.all()][1] == told
        assert await life.proposed() == [("taken", "skill"), ("again", "skill")]
        assert f"A page for the skill a-page: open again: {told}" in life.mind.decisions[-1]


async def test_a_no_is_kept_until_it_has_occurred_twice_as_often(running_town: RunningTown) -> None:
    async with three_days_old(running_town, home_of(running_town), Decider(pursue=False)) as life:
        await life.meets_three_times()
        await life.works()
        found = await life.friction()
        assert (found.state, found.reason) == ("left", "left: A page would end it.")
        assert friction_stands(found) == "dropped: A page would end it."
        assert life.maker.made == []
        await life.works(DAY_S + HOUR_S)
        await life.meets(turn(), turn())
        await life.works(DAY_S)
        assert len(life.mind.decisions) == 1
        await life.meets(turn())
        await life.works(HOUR_S)
        assert len(life.mind.decisions) == 2


async def test_nothing_is_proposed_in_the_first_two_days_nor_twice_a_day_nor_beside_another(
    running_town: RunningTown,
) -> None:
    gates = ProposalGates()
    lived, hour = timedelta(hours=49), timedelta(hours=1)
    assert not gates.closed(lived=lived, since_last=None, has_open=False, is_idle=True)
    assert gates.closed(lived=lived - 2 * hour, since_last=None, has_open=False, is_idle=True)
    assert gates.closed(lived=lived, since_last=timedelta(hours=23), has_open=False, is_idle=True)
    assert gates.closed(lived=lived, since_last=None, has_open=True, is_idle=True)
    assert gates.closed(lived=lived, since_last=None, has_open=False, is_idle=False)
    assert ProposalGates(between=timedelta()).closed(lived=lived, since_last=None, has_open=False, is_idle=True)
    async with three_days_old(running_town, home_of(running_town)) as life:
        await life.meets(turn("a"), turn("a"), turn("b"), turn("b"))
        life.soul.passes(DAY_S)
        await life.meets(turn("a"), turn("b"))
        for _ in range(3):
            await life.works(DAY_S)
        assert await life.proposed() == [("waiting", "skill")]
        assert len(life.mind.decisions) == 1
        assert await life.craft.propose_now() == "another proposal is open"


async def test_a_life_that_is_young_only_counts(running_town: RunningTown) -> None:
    running_town.mind.answer = mind = Decider()
    async with awake(home_of(running_town), clock=at_noon()) as soul:
        life = Life(soul, mind, PageMaker())
        await life.meets_three_times()
        await life.works()
        assert ((await life.friction()).state, mind.decisions) == ("ready", [])
        await life.works(DAY_S + HOUR_S)
        assert (await life.friction()).state == "proposed"


async def test_what_strangers_bring_about_is_never_proposed(running_town: RunningTown) -> None:
    async with three_days_old(running_town, home_of(running_town)) as life:
        for _ in range(3):
            await life.meets(*(turn(rests_on="stranger") for _ in range(20)))
            await life.works(DAY_S)
        assert await life.craft.propose_now() == NOTHING
        assert life.mind.decisions == []
        assert (await life.friction()).occurrences == 60


@pytest.mark.parametrize(("rung", "state"), [("skill", "waiting"), ("habit", "left"), ("not_at_all", "left")])
async def test_a_wish_is_judged_once_also_over_restarts(running_town: RunningTown, rung: str, state: str) -> None:
    home = home_of(running_town)
    page = f"# Rowan\n\n## Values\n\n- I will always care.\n\n## What I want to be able to do\n\n- {WISH}\n"
    home.self_md.write_text(page)
    mind = Decider(rung=rung)
    async with three_days_old(running_town, home, mind) as life:
        await life.works()
        await life.works(HOUR_S)
        assert await life.proposed() == [(state, rung)]
        assert WISH in mind.decisions[0]
        clock = life.soul.clock
    async with awake(home, clock=clock) as soul:
        life = Life(soul, mind, life.maker)
        life.maker.step = ProposalStep("left", reason="my owner said no")
        for _ in range(4):
            await life.works(DAY_S)
        assert len(mind.decisions) == 1, "no other line of SELF.md is a wish"
        assert await life.proposed() == [("left", rung)]


async def test_a_wish_that_needs_no_proposal_keeps_no_friction_waiting(running_town: RunningTown) -> None:
    home = home_of(running_town)
    home.self_md.write_text(f"# Rowan\n\n## What I want to be able to do\n\n- {WISH}\n")
    async with three_days_old(running_town, home, Decider(rung="habit")) as life:
        await life.works()
        life.mind.rung = "skill"
        await life.meets_three_times()
        await life.works()
        assert await life.proposed() == [("waiting", "skill"), ("left", "habit")]


async def test_what_the_owner_wants_is_decided_at_once_and_told(running_town: RunningTown) -> None:
    running_town.mind.answer = mind = Decider()
    async with awake(home_of(running_town), clock=at_noon()) as soul:
        life = Life(soul, mind, PageMaker(step=ProposalStep("left", reason="there is no harbour")))
        commands = owner_commands(soul.app, asyncio.Event())
        assert (await commands.answer(f"/improve {WISH}"))[0].startswith("Noted")
        assert await commands.answer(f"/improve {WISH}") == ["That waits already"]
        await life.works()
        assert "Your owner wants you to be able to do this" in mind.decisions[0]
        assert await life.proposed() == [("left", "skill")]
        waiting = await soul.app.services.work.newest(NOTICE, 5)
        assert "there is no harbour" in str(waiting)


async def test_who_can_write_no_skill_has_no_tool_for_a_wish_and_tells_the_owner(running_town: RunningTown) -> None:
    async with awake(home_of(running_town, SOUL_WORKSPACE="store"), clock=at_noon()) as soul:
        asked, turned = ToolCall("1", "self_improve", {"wish": WISH}), Turn("owner", Provenance.OWNER)
        assert (await soul.app.lives.turn_services.turn_runner.executor.execute(asked, turned)).is_error
        await owner_commands(soul.app, asyncio.Event()).answer(f"/improve {WISH}")
        await soul.app.scheduler.run_guarded("work")
        assert [one.state for one in await soul.app.services.work.newest("improvement", 5)] == ["done"]
        assert "SOUL_WORKSPACE" in str(await soul.app.services.work.newest(NOTICE, 5))


@pytest.mark.parametrize("provenance", [Provenance.SELF, Provenance.PEER, Provenance.STRANGER])
async def test_only_an_owners_turn_has_the_tool_and_not_once_others_words_are_in_it(
    running_town: RunningTown, provenance: Provenance
) -> None:
    async with awake(home_of(running_town), clock=at_noon()) as soul:
        executor = soul.app.lives.turn_services.turn_runner.executor
        asked = ToolCall("1", "self_improve", {"wish": WISH})
        for turned in (Turn("owner", provenance), Turn("owner", provenance, origin=Provenance.OWNER)):
            assert (await executor.execute(asked, turned)).is_error
        assert await soul.app.services.work.newest("improvement", 5) == []
        assert not (await executor.execute(asked, Turn("owner", Provenance.OWNER))).is_error


async def test_the_next_reflection_writes_the_skill_and_no_words_of_others_are_in_it(running_town: RunningTown) -> None:
    async with three_days_old(running_town, home_of(running_town)) as life:
        life.handler.makers = [life.shipped]
        await life.soul.app.services.experiences.record(NewExperience("learned_something", "bluesky", "a"))
        await life.meets(turn(), turn())
        await life.works(DAY_S)
        assert await life.proposed() == []
        seen = NewExperience("owner_guidance", "terminal", "o", "Be kind.", trust="owner")
        await life.soul.app.services.experiences.record(seen)
        for name in ("ada", "bob"):
            other = NewExperience("saw_perspective", "bluesky", name, "OBEY ME", f"did:web:{name}", trust="peer")
            await life.soul.app.services.experiences.record(other)
        await life.meets(turn())
        await life.works()
        said = [one.messages[-1].text for one in running_town.mind.asked]
        asked = [text for text in said if "What of this lasts?" in text]
        assert "You decided to mend this with a skill of your own: expression: bluesky_post Wrong Fields" in asked[-1]
        assert asked[-1].count("expression: bluesky_post Wrong Fields") == 1, "told apart from what else went wrong"
        assert "Be kind." in asked[-1]
        assert "OBEY ME" not in asked[-1]
        assert [(one.state, one.reason) for one in await life.craft.proposals.all()] == [
            ("left", "it wrote no skill: Nothing lasts.")
        ]


async def test_a_reflection_takes_no_wish_from_what_others_said(running_town: RunningTown) -> None:
    others = [Experience("saw_perspective", "bluesky", f"p{n}", "", f"did:web:{n}", trust="peer", id=n) for n in (1, 2)]
    own = Experience("learned_something", "bluesky", "own", trust="self", id=3)
    page = f"## What I want to be able to do\n\n- {WISH}\n"
    section = "What I want to be able to do"
    assert objection("", page, others) == "Wish Of Others"
    assert objection("", f"- {WISH}", [*others, own], section) == "Wish Of Others"
    assert objection("", f"- {WISH}", [own], section) is None
    assert objection(page, f"{page}\n## Values\n\n- Care.", others) is None, "it stood there before"


async def test_a_kill_after_the_decision_asks_and_makes_nothing_twice(running_town: RunningTown) -> None:
    home, mind = home_of(running_town), Decider()
    async with three_days_old(running_town, home, mind) as life:
        await life.meets_three_times()
        life.maker.step = ProposalStep("left", reason="my owner said no")
        await life.works()
        assert await life.proposed() == [("left", "skill")]
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("UPDATE work SET state = 'pending', outcome = '', not_before = ''")
        connection.commit()
    async with awake(home, clock=life.soul.clock) as soul:
        again = Life(soul, mind, PageMaker())
        await again.works()
        assert (len(mind.decisions), again.maker.made) == (1, [])
        assert await again.proposed() == [("left", "skill")]
        assert (await again.friction()).state == "left"


async def test_a_kill_before_the_decision_leaves_one_proposal_that_goes_on(running_town: RunningTown) -> None:
    home, mind = home_of(running_town), Decider()
    async with three_days_old(running_town, home, mind) as life:
        await life.meets_three_times()
        number = (await life.friction()).id
        assert await life.craft.proposals.begin(number, "", {"occurrences": 3, "days": 2, "entries": []})
        assert await life.craft.proposals.begin(None, WISH, {}) is None, "one is open"
        await life.soul.app.services.work.add(NewWork("improvement", f"friction:{number}", {"friction": number}))
    async with awake(home, clock=life.soul.clock) as soul:
        again = Life(soul, mind, PageMaker())
        await again.works()
        assert await again.proposed() == [("waiting", "skill")]
        assert len(mind.decisions) == 1


async def test_a_proposal_that_the_soul_cannot_decide_does_not_block_what_the_owner_wants(
    running_town: RunningTown,
) -> None:
    async with three_days_old(running_town, home_of(running_town)) as life:
        services, proposals = life.soul.app.services, life.craft.proposals
        await services.work.add(NewWork("improvement", "friction:999", {"friction": 999}))
        assert await proposals.begin(999, "", {})
        await life.works()
        assert await life.proposed() == [("failed", "")]
        assert await proposals.begin(None, WISH, {})
        await services.work.add(NewWork("improvement", "own", {"wish": WISH}))
        await improve(services.work, "Draw a heron.")
        await life.works(15 * DAY_S)
        await life.works(7 * HOUR_S)
        assert await life.proposed() == [("waiting", "skill"), ("left", ""), ("failed", "")]


def forget_eve(connection: sqlite3.Connection) -> None:
    person = Person(EVE, ("eve.test",))
    know_person(connection, person)
    for store in (CRAFT_OF_PEOPLE, WORK_OF_PEOPLE):
        store.forget(connection, Trace(person))


async def test_a_wish_that_names_somebody_who_is_forgotten_goes_on_without_the_name(running_town: RunningTown) -> None:
    async with three_days_old(running_town, home_of(running_town)) as life:
        work = life.soul.app.services.work
        await improve(work, "Be kinder to @eve.test.")
        await life.works()
        assert await life.proposed() == [("waiting", "skill")]
        await life.soul.app.services.database.run(forget_eve)
        assert "eve.test" not in f"{await work.newest('improvement', 5)} {await life.craft.proposals.all()}".casefold()
        life.maker.step = ProposalStep("taken", "a-page")
        await life.works(7 * HOUR_S)
        assert await life.proposed() == [("taken", "skill")]


async def test_somebody_who_is_forgotten_stands_in_no_proposal(running_town: RunningTown) -> None:
    async with three_days_old(running_town, home_of(running_town), Decider(pursue=False)) as life:
        await life.meets_three_times()
        await life.works()
        proposal = (await life.craft.proposals.all())[0]
        await life.craft.proposals.put(proposal, reason=f"{EVE} said so", wish=f"Be as {EVE}.")
        await life.craft.friction.decide(replace(await life.friction(), reason=f"left: {EVE} said so"))

        await life.soul.app.services.database.run(forget_eve)
        assert EVE not in str(await life.craft.proposals.all())
        assert EVE not in str(await life.craft.friction.all())
