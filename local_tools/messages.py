"""The tools for a direct message of somebody who is not the owner: answer it once, or stay silent."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from common.provenance import Provenance
from common.schemas import Impression
from common.text.closings import asks
from common.text.graphemes import grapheme_len, leading_sentences, shortened
from common.text.untrusted import clean, one_line
from local_tools.bluesky_turns import SilenceInput
from local_tools.words import REASON_CHARS, ToolWords, subject_of
from modules.lives.bluesky.reply_check import Scaffold, repeats, reply_problem, sayable, scaffold_of
from modules.lives.messages.types import MessageTurn
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ProposedAction
from modules.services.skills.skills import SYSTEM_SECTION, Skills
from modules.services.work.types import Disposition

_SKILL = "direct-messages"
_TEMPLATES = (SYSTEM_SECTION, "User Message Template", "Relationship", "Note", "No Conversation")
MOST_CHARS = 400
"""The longest answer, in graphemes: a message, not an essay."""


class AnswerInput(BaseModel):
    """An answer to the person who wrote."""

    text: str
    impression: Impression = ""
    wish: str = ""


class MessageTools:
    """The handlers, with their services."""

    def __init__(self, outbox: Outbox, skills: Skills) -> None:
        self._outbox = outbox
        self._skills = skills
        self.words = ToolWords(skills, "message-tools")

    async def answer(self, args: AnswerInput, turn: Turn) -> ToolResult:
        subject, text = subject_of(turn, MessageTurn), clean(args.text, is_ours=True)
        problem = self._problem(text, subject)
        if problem and subject.revision.asked:
            text = sayable(text, self._scaffold(subject), subject.said)
            problem = self._problem(text, subject)
        if problem == "Too Long" and subject.revision.asked:
            # NOTE(self): small models cannot count; an answer without its last sentence is better than none.
            text = leading_sentences(text, MOST_CHARS) or shortened(text, MOST_CHARS)
            problem = self._problem(text, subject)
        if problem:
            if subject.revision.ask():
                return self.words.error(problem, length=grapheme_len(text), most=MOST_CHARS)
            return self.words.end("Given Up", Disposition("silent", reason="no answer that may leave, twice"))
        action = ProposedAction(subject.burst.answer(text), cause_id=turn.cause_id, hold=turn.hold)
        submitted = await self._outbox.submit(action)
        outcome = Disposition("answered", impression=args.impression, wish=args.wish)
        return self.words.end_by(submitted, outcome)

    async def silence(self, args: SilenceInput, turn: Turn) -> ToolResult:
        return self.words.end("Silent", Disposition("silent", reason=one_line(args.reason, REASON_CHARS)))

    def _problem(self, text: str, subject: MessageTurn) -> str:
        """Return why this text must not be sent, a subsection of `Answers`; "" if it may."""
        if not text:
            return "Empty"
        if grapheme_len(text) > MOST_CHARS:
            return "Too Long"
        asked = subject.burst.text
        found = reply_problem(text, subject.said, self._scaffold(subject), may_thank=True, asked=asked)
        if found in {"instructions", "person", "unfinished", "loops"}:
            return found.capitalize()
        said = (asked,) if asks(asked) else subject.said
        return "Repeats" if found or any(repeats(text, one) for one in said) else ""

    def _scaffold(self, subject: MessageTurn) -> Scaffold:
        templates = [self._skills.section(_SKILL, name) for name in _TEMPLATES]
        return scaffold_of([*templates, self._skills.section("core", "Ground Rules")], [subject.told])


def message_tools(tools: MessageTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    anyone, tool = Provenance.STRANGER, tools.words.tool
    return (
        tool("message_answer", AnswerInput, "social", anyone, tools.answer, subject=MessageTurn),
        tool("message_silence", SilenceInput, "social", anyone, tools.silence, subject=MessageTurn),
    )
