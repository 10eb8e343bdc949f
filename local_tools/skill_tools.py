"""The tools to get better: load or propose a skill, decide what to improve, and be told by the owner what to learn."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel, Field

from common.provenance import Provenance
from common.schemas import SPACE_DECISION_TOOL
from local_tools.self_tools import is_owners_own, told_change
from local_tools.words import OWN_TOOLS, ToolWords
from modules.lives.bluesky.respond import OWNER_TOOLS, RESPONSE_TOOLS
from modules.lives.bluesky.types import ExpressionTurn, ThreadTurn
from modules.lives.craft.handle import DecisionTurn
from modules.lives.craft.perceive import WISH_CHARS, improve
from modules.lives.github.respond import REVIEW_TOOLS, WORK_TOOLS
from modules.lives.github.respond import TOOLS as THREAD_TOOLS
from modules.lives.github.types import ReviewTurn
from modules.lives.growth.handle import REFLECTION_TOOLS
from modules.lives.growth.policy import ReflectionTurn
from modules.lives.messages.handle_others import TOOLS as MESSAGE_TOOLS
from modules.lives.messages.types import MessageTurn
from modules.lives.rhythm import OwnTimeTurn, is_own
from modules.lives.space.prompting import SpaceTurn
from modules.services.agent.tools.policy import MIXED, allowed
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.craft.proposals import RungVerdict
from modules.services.identity.entries import OWN_SKILL
from modules.services.identity.history import held_documents, held_skills, skill_citing
from modules.services.identity.keeper import SelfKeeper
from modules.services.skills.own import NEEDS_YES, OwnTurns, SkillDraft, objection, switched
from modules.services.skills.skills import LocalSkills, Skills, page_in
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition

_TURNS: Mapping[str, tuple[type, Collection[str]]] = {
    "": (type(None), ()),
    "mentions": (ThreadTurn, (*RESPONSE_TOOLS, *OWNER_TOOLS)),
    "messages": (MessageTurn, MESSAGE_TOOLS),
    "posts": (ExpressionTurn, ("bluesky_post",)),
    "github": (ReviewTurn, (*THREAD_TOOLS, *REVIEW_TOOLS, *WORK_TOOLS)),
    "rooms": (SpaceTurn, (SPACE_DECISION_TOOL,)),
    "own-time": (OwnTimeTurn, ()),
    "reflection": (ReflectionTurn, REFLECTION_TOOLS),
}
"""The subject of each kind of turn, and the tools that it has in addition to those for its subject."""
_OWN_TIME = [Turn("schedule", asked_by, subject=OwnTimeTurn(())) for asked_by in (Provenance.SELF, Provenance.OWNER)]


class SkillLoadInput(BaseModel):
    """The skill to load."""

    name: str


class SkillProposeInput(BaseModel):
    """A skill of the SOUL's own."""

    name: str
    purpose: str
    page: str
    turns: list[OwnTurns] = Field(default_factory=list)
    experiences: list[str] = Field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class SkillTools:
    """The handlers, with their services. `keeper` is None if the owner's files are not in the home."""

    local: LocalSkills
    skills: Skills
    keeper: SelfKeeper | None
    tools: Sequence[Tool]
    words: ToolWords = field(init=False)

    def __post_init__(self) -> None:
        self.words = ToolWords(self.skills, OWN_TOOLS)

    async def load(self, args: SkillLoadInput, turn: Turn) -> ToolResult:
        text = await self.local.load(args.name.strip())
        if self.keeper and f"{OWN_SKILL}{args.name.strip()}" in held_documents(self.keeper.home):
            return ToolResult(self.words.answer("Skill Waits", page=text or ""))
        if text is not None:
            return ToolResult(text)
        names = ", ".join(entry.name for entry in await self.local.listing()) or "none"
        return self.words.error("No Skill", names=names)

    async def propose(self, args: SkillProposeInput, turn: Turn) -> ToolResult:
        document = f"{OWN_SKILL}{args.name.strip()}"
        if self.keeper is None:
            return self.words.error("File Elsewhere", file=document)
        waiting, own = held_documents(self.keeper.home), [one.entry for one in await self.local.own()]
        before = next((one for one in own if f"{OWN_SKILL}{one.name}" == document), None)
        held = (await asyncio.to_thread(held_skills, self.keeper.home)).get(args.name.strip())
        turns: Collection[str] = args.turns
        if "turns" not in args.model_fields_set and held:
            page = page_in(args.name.strip(), held.content)
            turns = page.entry.turns if page else ()
        elif "turns" not in args.model_fields_set and before:
            turns = before.turns
        draft = SkillDraft.of(args.name, args.purpose, args.page, turns)
        problem = objection(
            draft,
            shipped=self.skills.names,
            others={one.name: one.turns for one in own if not one.is_off},
            waiting=[one.removeprefix(OWN_SKILL) for one in waiting if one.startswith(OWN_SKILL)],
            words={kind: self._words_of(kind) for kind in _TURNS},
        )
        if problem:
            return self.words.error("Self Not Changed", file=f"the skill {draft.name[:40]!r}", reason=problem, now="")
        reflects = turn.subject if isinstance(turn.subject, ReflectionTurn) else None
        cited = reflects.cited(args.experiences) if reflects else ()
        proposal = reflects.proposal if reflects else ""
        # NOTE(self): the first skill that a reflection writes is the one for its proposal.
        is_its = await asyncio.to_thread(skill_citing, self.keeper.home, proposal) in {"", draft.name}
        mixed = MIXED if reflects and (reflects.has_others or (held and not held.is_own)) else ""
        # NOTE(self): changing a skill that the owner switched off does not switch it on.
        text = switched(draft.text, off=before is not None and before.is_off)
        change = await self.keeper.of(document).change(
            text,
            reason=draft.purpose,
            by="soul",
            cites=(*filter(None, [turn.cause_id, proposal if is_its else ""]), *(one.name for one in cited)),
            hold=turn.hold or mixed or NEEDS_YES,
            is_own=turn.rests_on >= Provenance.SELF,
            unasked=reflects is not None,
        )
        return told_change(self.words, document, change)

    def _words_of(self, kind: str) -> set[str]:
        """Return the names of the tools that such a turn may have, and of their fields."""
        subject, besides = _TURNS[kind]
        own = [
            tool
            for tool in self.tools
            if tool.name in besides
            or (issubclass(subject, tool.subject) if tool.subject else subject is type(None))
            or (subject is OwnTimeTurn and any(_has(turn, tool) for turn in _OWN_TIME))
        ]
        return {name for tool in own for name in (tool.name, *tool.input_model.model_fields)}


def _has(turn: Turn, tool: Tool) -> bool:
    return is_own(tool, turn) and allowed(tool, turn, social_only=False)


def may_propose(turn: Turn) -> bool:
    """Return whether a turn is a reflection, or the owner's own conversation."""
    return isinstance(turn.subject, ReflectionTurn) or turn.loop == "owner"


def skill_tools(tools: SkillTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    own, tool = Provenance.SELF, tools.words.tool
    return (
        tool("skill_load", SkillLoadInput, "self", own, tools.load, effect="look"),
        tool("skill_propose", SkillProposeInput, "self", own, tools.propose, holdable=True, fits=may_propose),
    )


class ImproveInput(BaseModel):
    """A wish: something that the SOUL should be able to do."""

    wish: str = Field(min_length=1, max_length=WISH_CHARS)


class DecisionInput(BaseModel):
    """The SOUL's decision on a proposal: yes or no, the reason, and the rung."""

    pursue: bool
    reason: str = Field(min_length=1)
    rung: RungVerdict = "skill"


@dataclass(frozen=True, slots=True)
class CraftTools:
    """The handlers of the tools, with their services."""

    table: WorkTable
    words: ToolWords

    async def improve(self, args: ImproveInput, turn: Turn) -> ToolResult:
        """Add a work item for a wish of the owner."""
        is_new = await improve(self.table, args.wish)
        return self.words.done("Wish Noted") if is_new else self.words.error("Wish Waits")

    async def decide(self, args: DecisionInput, turn: Turn) -> ToolResult:
        """End the turn with the SOUL's decision; return an error if the rung cannot be used."""
        rungs = turn.subject.rungs if isinstance(turn.subject, DecisionTurn) else ()
        if args.pursue and args.rung not in (*rungs, "habit", "not_at_all"):
            return self.words.error("No Rung", names=", ".join(rungs))
        return replace(self.words.end("Decided", Disposition("decided")), decision=args.model_dump())


def craft_tools(table: WorkTable, skills: Skills, *, may_write: bool) -> Sequence[Tool]:
    """Return the tools of the family; without `may_write` (no skill can be written) the owner's wish has none."""
    words = ToolWords(skills, OWN_TOOLS)
    tools, own, tool = CraftTools(table, words), Provenance.SELF, words.tool

    def fits(turn: Turn) -> bool:
        return may_write and is_owners_own(turn)

    return (
        tool("self_improve", ImproveInput, "self", Provenance.OWNER, tools.improve, fits=fits),
        tool(
            "improvement_decide",
            DecisionInput,
            "self",
            own,
            tools.decide,
            subject=DecisionTurn,
            effect="look",
            answers=DecisionTurn,
        ),
    )
