"""Asks the model what of a conversation is worth keeping. Writes nothing; a call that fails leaves nothing behind."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from common.clock import local, parse_iso, spoken
from common.errors import BudgetExceeded, Fatal, PolicyBlocked, SoulError, Transient
from common.facts import MemoryFacts, TurnFacts
from common.provenance import Provenance
from common.redact import Redactor
from common.session_keys import is_main
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Message, NamedTool, PromptBlock, ToolSpec
from modules.services.sessions.archived import Distilled
from modules.services.sessions.distil_policy import FIELDS, fields_for, memories_of, summary_of
from modules.services.sessions.rows import blocks, words_of
from modules.services.sessions.transcript import said_lines, transcript
from modules.services.sessions.types import MessageRow, Session
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills
from modules.services.skills.tool_schema import read_description, simple_schema

KEEP = "keep_memories"
TRANSCRIPT_TOKENS = 24_000

_SKILL = "memory-extraction"
_TRIES = 2
_SHORTER = (1, 4, 16)


class KeepInput(BaseModel):
    """What is kept of a conversation. Every entry of a list is "what it is about: what to remember"."""

    summary: str
    people: list[str] = []
    facts: list[str] = []
    events: list[str] = []
    preferences: list[str] = []
    decisions: list[str] = []
    lessons: list[str] = []
    rules: list[str] = []


@dataclass(slots=True, kw_only=True)
class Distiller:
    """Distils by the skill `memory-extraction`.

    Attributes:
        gateway: the model.
        system: what it is told before anything else, for a session.
        skills: the words for it.
        redactor: takes secrets out of what it answers.
        rng: draws the boundary that untrusted text is framed with.
        estimate: tokens of a text.
        timezone: in which dates are told; empty for the machine's own.
        transcript_tokens: how much of a conversation is shown at most.

    """

    gateway: LLMGateway
    system: Callable[[Session], Awaitable[Sequence[PromptBlock]]]
    skills: Skills
    redactor: Redactor
    rng: random.Random
    estimate: Callable[[str], int]
    timezone: str = ""
    transcript_tokens: int = TRANSCRIPT_TOKENS

    async def distil(
        self,
        session: Session,
        rows: Sequence[MessageRow],
        provenance: Provenance,
        *,
        remembered_at: str,
        tags: tuple[str, ...] = (),
    ) -> Distilled:
        """What to keep of `rows`, whose least trusted words are of `provenance`, however little was said.

        Raises as `LLMGateway.chat_with_tools`.
        """
        answer = await self._answer(session, rows, provenance)
        said = "\n".join(words_of(block) for row in rows for block in blocks(row.message))
        redact = self.redactor.text
        summary = summary_of(answer, said, redact)
        memories = memories_of(answer, said, redact, session_key=session.key, provenance=provenance, tags=tags)
        message = self._message(session, summary, provenance) if summary else ""
        return Distilled(summary, message, provenance, memories, remembered_at)

    async def _answer(self, session: Session, rows: Sequence[MessageRow], provenance: Provenance) -> Mapping[str, Any]:
        """The model's answer; to a conversation that is too long for it, with less and less of the middle.

        Nothing, where it takes not even the shortest, or rejects these words as such: a conversation that no model can
        read is still archived.
        """
        facts = TurnFacts(MemoryFacts(said_lines(rows)))
        for shorter in _SHORTER:
            page = transcript(rows, self.estimate, self.transcript_tokens // shorter)
            try:
                return await self._ask(session, page, provenance, facts)
            except PolicyBlocked:
                continue
            except (Fatal, Transient, BudgetExceeded):
                raise
            except SoulError:
                break
        return {}

    async def _ask(self, session: Session, page: str, provenance: Provenance, facts: TurnFacts) -> Mapping[str, Any]:
        framed = Framer(self.skills, self.rng).frame("conversation", author="", uri=session.key, text=page)
        moment = local(parse_iso(session.last_active_at), self.timezone)
        asked = self.skills.render(_SKILL, "User Message Template", date=spoken(moment), transcript=framed)
        for _ in range(_TRIES):
            result = await self.gateway.chat_with_tools(
                [Message("user", asked)],
                system=await self.system(session),
                tools=[_tool(self.skills, fields_for(session.key, provenance))],
                tool_choice=NamedTool(KEEP),
                purpose=_SKILL,
                importance="owner" if is_main(session.key) else "own",
                facts=facts,
            )
            for call in result.tool_calls:
                if call.name == KEEP and not call.malformed:
                    return call.input
        return {"summary": result.text}

    def _message(self, session: Session, summary: str, provenance: Provenance) -> str:
        """The summary as the conversation will hold it; others' words in our telling are still others' words."""
        if provenance < Provenance.SELF:
            framer = Framer(self.skills, self.rng)
            summary = framer.frame("conversation", author="", uri=session.key, text=summary)
        return self.skills.render(_SKILL, "Summary Message", summary=summary)


def _tool(skills: Skills, offered: Sequence[str]) -> ToolSpec:
    description, fields = read_description(skills.section(_SKILL, "Tool"))
    schema = simple_schema(KeepInput, fields)
    schema["properties"] = {
        name: field for name, field in schema["properties"].items() if name in offered or name not in FIELDS
    }
    return ToolSpec(KEEP, description, schema)
