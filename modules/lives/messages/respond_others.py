"""Lets the model choose one act about what somebody wrote in a direct message.

What is said there is private: the turn belongs to no session, so nothing of it is archived, remembered, or told in
another turn. All that it is told stands in the rows of that one conversation.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from common.clock import Clock, age, parse_iso_or_none
from common.facts import MessageFacts, SaidLine
from common.importance import Importance
from common.provenance import Provenance
from modules.lives.messages.types import Burst, Line, MessageTurn
from modules.runtime.llm.types import Message
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.agent.turn_outcome import chosen_in
from modules.services.identity.identity import Me
from modules.services.peers.accounts import Relationships
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills
from modules.services.work.types import Disposition

_REQUEST = "data_request"
TOOLS = ("message_answer", "message_silence", _REQUEST)

_LOOP = "message-others"
_SKILL = "direct-messages"
_TEMPLATE = "User Message Template"


@dataclass(frozen=True, slots=True)
class OthersResponder:
    """Asks the model, with the words of strangers as data and two tools."""

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    relationships: Relationships
    clock: Clock
    rng: random.Random

    async def answer_burst(
        self, burst: Burst, earlier: Sequence[Line], importance: Importance, *, offers_request: bool
    ) -> Disposition:
        """Return what the model chose; with `offers_request` that may be that the author asks about their own data.

        Raises:
            BudgetExceeded: there is no budget for the author.
            Transient: the model is briefly unable.

        """
        key = f"message:{burst.talk.id}"
        told = self._words(burst, earlier)
        turn = Turn(
            loop=_LOOP,
            provenance=Provenance.STRANGER,
            cause_id=burst.uri,
            subject=MessageTurn(burst, said=(*(line.text for line in earlier), burst.text), told=self._bare(burst)),
            importance=importance,
        )
        only = tuple(name for name in TOOLS if offers_request or name != _REQUEST)
        system = await self.prompter.prompt(
            skill=_SKILL,
            variables={
                "bluesky_username": self.me.bluesky_username,
                "owner_handle": self.me.owner_handle,
                "tools": self.turn_runner.offered(turn, only),
            },
            audience="bluesky",
            session_key=key,
            query=burst.text,
            now=self.clock.now(),
            least=Provenance.STRANGER,
            person=burst.talk.did,
        )
        turn_result = await self.turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=(Message("user", told),),
            purpose=_SKILL,
            tool_choice="required",
            only=only,
            about=_facts(burst, earlier),
        )
        return chosen_in(turn_result, "chosen")

    def _words(self, burst: Burst, earlier: Sequence[Line]) -> str:
        framer = Framer(self.skills, self.rng)
        who, uri = f"@{burst.talk.handle}", burst.uri
        lines = "\n".join(map(self._line, earlier))
        return self._template(
            burst,
            conversation=framer.frame("conversation", author="several", uri=uri, text=lines)
            if lines
            else self.skills.section(_SKILL, "No Conversation"),
            message=framer.frame("message", author=who, uri=uri, text=burst.text),
        )

    def _line(self, line: Line) -> str:
        sent = parse_iso_or_none(line.at)
        when = age(sent, self.clock.now()) if sent else self.skills.section("memory", "Not Sent")
        return f"[{when}] {f'@{line.who}' if line.who else 'YOU'}: {' '.join(line.text.split())}"

    def _bare(self, burst: Burst) -> str:
        """What our own prompt says, without the words of others."""
        return self._template(burst, conversation="", message="")

    def _template(self, burst: Burst, *, conversation: str, message: str) -> str:
        known = self.relationships.get(burst.talk.did)
        met = known.times_written if known else 0
        return self.skills.render(
            _SKILL,
            _TEMPLATE,
            author=burst.talk.handle,
            relationship=self.skills.render(_SKILL, "Relationship", "Known" if met else "New", interactions=met),
            note=self.skills.render(_SKILL, "Note", "Automated") if burst.talk.is_bot else "",
            conversation=conversation,
            message=message,
        )


def _facts(burst: Burst, earlier: Sequence[Line]) -> MessageFacts:
    return MessageFacts(
        author=burst.talk.handle,
        text=burst.text,
        said=tuple(SaidLine(line.who, line.text) for line in earlier),
        is_bot=burst.talk.is_bot,
    )
