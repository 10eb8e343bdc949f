"""Handles one proposal: asks the SOUL for its decision, has it made, follows its state, and counts its effect.

The proposal is stored before anything is asked or made, so that it continues after a crash where it was.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from common.clock import Clock, iso
from common.facts import QuestionFacts
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.craft.perceive import KIND, ONE_OPEN
from modules.runtime.home import Home
from modules.runtime.llm.dialect import Message
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.craft.friction import Friction, FrictionState
from modules.services.craft.proposals import (
    OPEN,
    Maker,
    Proposal,
    Proposals,
    ProposalState,
    ProposalStep,
    Rung,
    counted_at,
    decided_in_time,
    evidence_of,
    outcome_of,
    proposal_stands,
)
from modules.services.craft.record import FrictionRecord
from modules.services.identity.entries import OWN_SKILL
from modules.services.identity.history import came_of, held_skills
from modules.services.outbox.types import STANDS
from modules.services.owner import TellOwner
from modules.services.skills.skills import LocalSkills, Skills
from modules.services.work.types import Disposition, Handler, WorkItem

_SKILL, _TOOL = "self-improvement-decision", "improvement_decide"
_ROUNDS, _REASON_CHARS = 3, 300
_GONE = "gone"
_LOOK_S = timedelta(hours=6).total_seconds()
"""Lived seconds between two checks of a proposal, also if no event here tells of it; a sleeping SOUL wakes for one."""

_LEAVES: Mapping[ProposalState, FrictionState] = {"left": "left", "failed": "left", "mended": "mended", "again": "seen"}
"""The state of a friction after its proposal ended, by the state of the proposal."""
_ENDS = {"taken": "accepted", "left": "not accepted", "dropped": "failed", "again": "it helped too little"}
"""How the owner is told about the end of a proposal, by its state or the act."""
_GOES_ON = {
    "making": "Chose to get better at it",
    "waiting": "A proposal to get better waits for an answer",
    "taken": "A proposal to get better was accepted",
}


@dataclass(frozen=True, slots=True)
class DecisionTurn:
    """A turn in which the SOUL decides whether to take up a proposal, and by which of these rungs."""

    rungs: Sequence[Rung]


@dataclass(kw_only=True)
class ImprovementHandler(Handler):
    """Takes one proposal from the decision to its outcome. The work item waits until then."""

    kind = KIND
    is_public = False
    line = "refl"

    friction: FrictionRecord
    proposals: Proposals
    makers: Sequence[Maker]
    prompter: Prompter
    turn_runner: TurnRunner
    skills: Skills
    clock: Clock
    tell: TellOwner
    name: str
    home: Home
    local_skills: LocalSkills

    async def handle(self, item: WorkItem) -> Disposition:
        """Advance the proposal as far as possible now."""
        number = item.payload.get("friction")
        friction = await self.friction.get(int(number)) if number else None
        if number and friction is None:
            return Disposition("silent", _GONE, "it is not counted any more")
        if not self._rungs(friction) and not await self.proposals.open():
            return _without_rung(item)
        if (proposal := await self._begun(item, friction)) is None:
            return Disposition("later", ONE_OPEN, "another proposal is open", _LOOK_S)
        is_own_no = False
        if proposal.state == "asked":
            step = decided_in_time(proposal, ProposalStep("asked"), self.clock)
            is_late = step.state != "asked"
            proposal = await (self._put(proposal, step) if is_late else self._decided(item, proposal, friction))
            is_own_no = not is_late and proposal.state == "left"
        if proposal.state in {"making", "waiting"}:
            proposal = await self._advanced(item, proposal)
            if proposal.state == "asked":
                return await self.handle(item)
        left_s = 0.0
        if proposal.state == "taken" and friction:
            left = counted_at(proposal, self.friction.day) - self.clock.now()
            left_s = self.clock.lived(left).total_seconds()
            if left_s <= 0:
                proposal = await self._put(proposal, outcome_of(proposal, friction, self.friction.day))
        if friction:
            await self.friction.decide(_as_it_stands(friction, proposal))
        return replace(_disposition(proposal, left_s), is_chosen=is_own_no)

    def _rungs(self, friction: Friction | None) -> list[Rung]:
        """Return the rungs that can be used now. For a wish only `skill`: no free text is published, only codes."""
        return [one.rung for one in self.makers if one.is_ready() and (friction or one.rung == "skill")]

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Give up a proposal that the model never decided, and tell the owner the end of what they asked for."""
        tries = await self._tries(item) if disposition.act == "dropped" or disposition.code == _GONE else []
        if tries and tries[0].state in OPEN:
            proposal = await self._put(tries[0], ProposalStep("failed", reason=disposition.reason))
            if friction := await self.friction.get(item.payload.get("friction", 0)):
                await self.friction.decide(_as_it_stands(friction, proposal))
        if item.importance == "owner":
            end = f"{self.summary(item, disposition)}: {disposition.reason}"
            words = f"“{item.payload.get('wish', item.key)}”\n{end}"
            headline = f"{self.name}, on what you wanted it to get better at"
            await self.tell(f"{item.cause_id}@{item.created_at}", headline, words, Provenance.SELF, at_once=False)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal line about a disposition, also told to the owner, without its reason."""
        if not disposition.settles:
            return _GOES_ON.get(disposition.code, "A proposal to get better goes on")
        end = _ENDS.get(disposition.act, _ENDS.get(disposition.code, disposition.code))
        return "Chose not to get better at it" if disposition.is_chosen else f"Proposal to get better: {end}"

    async def _tries(self, item: WorkItem) -> list[Proposal]:
        """Return the proposals of a work item, newest first; there are two if the SOUL decided again."""
        about = (item.payload.get("friction"), item.payload.get("wish", ""))
        return [one for one in await self.proposals.all() if one.about == about and one.at >= item.created_at]

    async def _begun(self, item: WorkItem, friction: Friction | None) -> Proposal | None:
        """Return the newest proposal of a work item, or begin one; None if another proposal is open."""
        if tries := await self._tries(item):
            return tries[0]
        evidence = evidence_of(friction, self.clock.now(), self.friction.day) if friction else {}
        return await self.proposals.begin(friction.id if friction else None, item.payload.get("wish", ""), evidence)

    async def _decided(self, item: WorkItem, proposal: Proposal, friction: Friction | None) -> Proposal:
        """Ask the SOUL, and return the proposal with its yes or no; unchanged if it did not decide."""
        rungs = self._rungs(friction)
        before = (one for one in await self.proposals.all() if one.about == proposal.about and one.id < proposal.id)
        told = {
            "category": friction.category if friction else "",
            "description": friction.description if friction else "",
            "outcome": next(map(proposal_stands, before), ""),
            "occurrences": proposal.evidence.get("occurrences", 0),
            "days": proposal.evidence.get("days", 0),
            "evidence": await self.friction.evidence(friction, proposal.entries),
            "wish": proposal.wish,
            "skills": await self._own_skills(),
            "is_owners": item.importance == "owner",
            "rungs": ", ".join([*rungs, *(["habit", "not_at_all"] if proposal.wish else [])]),
        }
        result = await self.turn_runner.run_turn(
            turn=Turn(KIND, Provenance.SELF, item.cause_id, DecisionTurn(rungs), item.importance),
            system=await self.prompter.prompt(
                skill=_SKILL, audience="bluesky", session_key=KIND, now=self.clock.now(), least=Provenance.SELF
            ),
            messages=(Message("user", self.skills.render(_SKILL, "User Message Template", **told)),),
            purpose=_SKILL,
            tool_choice="required",
            only=(_TOOL,),
            max_rounds=_ROUNDS,
            about=QuestionFacts(_SKILL, {name: (str(value),) for name, value in told.items()}),
        )
        if not (decided := next((answer.decision for _, answer in reversed(result.calls) if answer.ends_turn), None)):
            return proposal
        is_pursued = decided["pursue"] and decided["rung"] in rungs
        why = one_line(str(decided["reason"]), _REASON_CHARS)
        proposal = replace(proposal, rung=decided["rung"], why=why)
        return await self._put(proposal, ProposalStep("making" if is_pursued else "left"))

    async def _own_skills(self) -> str:
        """Return a line for each of the SOUL's own skills, and for each that waits for the owner's approval."""
        entries = [one.entry for one in await self.local_skills.own()]
        own = [(one.name, one.description, one.is_off, False) for one in entries]
        held = await asyncio.to_thread(held_skills, self.home)
        own += [(name, change.reason, False, True) for name, change in held.items()]
        names = ("name", "description", "is_off", "is_held")
        lines = (self.skills.render(_SKILL, "Own Skill", **dict(zip(names, one, strict=True))) for one in own)
        return "\n".join(line.strip() for line in lines)

    async def _advanced(self, item: WorkItem, proposal: Proposal) -> Proposal:
        maker = next((one for one in self.makers if one.rung == proposal.rung and one.is_ready()), None)
        step = ProposalStep("failed", reason="it cannot be made here any more")
        step = await maker.advance(proposal) if maker else step
        step = decided_in_time(proposal, step, self.clock)
        if step.state == "asked":
            step = replace(step, state="left")
            if len(await self._tries(item)) == 1:
                left = replace(proposal, state="left", reason=step.reason, decided_at=iso(self.clock.now()))
                return await self.proposals.begin(*proposal.about, proposal.evidence, after=left) or left
        return await self._put(proposal, step)

    async def _put(self, proposal: Proposal, step: ProposalStep) -> Proposal:
        made, reason = step.made or proposal.made, step.reason or proposal.reason
        return await self.proposals.put(proposal, state=step.state, made=made, reason=reason)


def _as_it_stands(friction: Friction, proposal: Proposal) -> Friction:
    """Return a friction with the state that follows from its proposal; set `own_then` if it is left or mended."""
    is_over = proposal.state in _LEAVES
    reason = ": ".join(filter(None, (proposal.state, proposal.told if is_over else proposal.made)))
    if not is_over:
        return replace(friction, state="proposed", reason=reason)
    state = _LEAVES[proposal.state]
    return replace(friction, state=state, reason=reason, own_then=0 if state == "seen" else friction.own)


def _without_rung(item: WorkItem) -> Disposition:
    """Return what becomes of an item that no maker serves; a wish of the owner, which needs a skill, is over."""
    if item.importance == "owner":
        return Disposition("silent", "no-rung", "it can write no skill with SOUL_WORKSPACE=store")
    return Disposition("later", "no-rung", "nothing can be proposed here yet", _LOOK_S)


def _disposition(proposal: Proposal, left_s: float) -> Disposition:
    """Return the disposition of the work item; `left_s`: lived seconds until the effect is counted."""
    reason = ": ".join(filter(None, (proposal.made, proposal.told)))
    if proposal.state == "asked":
        return Disposition("undecided", "unanswered", "the model did not decide")
    if proposal.state in {"making", "waiting"} or left_s > 0:
        return Disposition("later", proposal.state, reason, left_s if left_s > 0 else _LOOK_S)
    is_no = proposal.state in {"left", "failed"}
    return Disposition("silent" if is_no else "done", proposal.state, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillMaker:
    """The first rung: the SOUL writes a skill of its own in its next reflection, and its owner approves it.

    `may_write`: its skills are stored in the home. `reflect` makes a reflection due, unless one waits.
    """

    home: Home
    may_write: bool
    reflect: Callable[[], Awaitable[object]]
    rung: Rung = "skill"

    def is_ready(self) -> bool:
        """Return whether a skill can be proposed."""
        return self.may_write

    async def advance(self, proposal: Proposal) -> ProposalStep:
        """Make a reflection due, or look up what the owner decided about the proposed skill."""
        if proposal.state == "making":
            await self.reflect()
            return ProposalStep("making")
        became, why = await asyncio.to_thread(came_of, self.home, OWN_SKILL + proposal.made, proposal.cause)
        if became == "rejected":
            # NOTE(self): the owner's reason may ask for a different skill, so the SOUL decides again.
            return ProposalStep("asked" if why else "left", reason=": ".join(filter(None, (STANDS["rejected"], why))))
        return _SKILL_STEPS[became]


_SKILL_STEPS: Mapping[str, ProposalStep] = {
    "held": ProposalStep("waiting"),
    "changed": ProposalStep("taken", reason="the owner approved it"),
    "": ProposalStep("left", reason="another change of that skill took its place"),
}
