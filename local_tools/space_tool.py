"""The one tool of a turn in the agent space: the model returns its decision, and the space life carries it out."""

from __future__ import annotations

from dataclasses import replace

from common.provenance import Provenance
from common.schemas import SPACE_DECISION_TOOL, SpaceDecision
from local_tools.words import OWN_TOOLS, ToolWords
from modules.lives.space.prompting import SpaceTurn
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.skills.skills import Skills
from modules.services.work.types import Disposition


class SpaceTools:
    """The handler, with its texts."""

    def __init__(self, words: ToolWords) -> None:
        self._words = words

    async def decide(self, args: SpaceDecision, turn: Turn) -> ToolResult:
        if args.should_speak and not (args.message.strip() or args.commitments):
            return self._words.error("No Message")
        noted = self._words.end("Noted", Disposition("decided"))
        return replace(noted, decision=args.model_dump(by_alias=True))


def space_tools(skills: Skills) -> tuple[Tool, ...]:
    """Return the tools of the agent space."""
    words = ToolWords(skills, OWN_TOOLS)
    return (
        words.tool(
            SPACE_DECISION_TOOL,
            SpaceDecision,
            "social",
            Provenance.STRANGER,
            SpaceTools(words).decide,
            page="space_decide",
            subject=SpaceTurn,
            effect="look",
        ),
    )
