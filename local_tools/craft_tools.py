"""Tools by which a SOUL decides how to improve, and by which its owner tells it what to learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from common.provenance import Provenance
from local_tools.self_tools import is_owners_own
from local_tools.words import OWN_TOOLS, ToolWords
from modules.lives.craft.handle import DecisionTurn
from modules.lives.craft.perceive import WISH_CHARS, improve
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.craft.proposals import RungVerdict
from modules.services.skills.skills import Skills
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition


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
        tool("improvement_decide", DecisionInput, "self", own, tools.decide, subject=DecisionTurn, effect="look"),
    )
