"""Talking with the owner in private: each line gets a whole turn and all tools, one line after another.

Each message is kept before anybody thinks about it, and waits until it has its answer, across restarts too
(`sessions/owner_inbox.py`). The conversation ends after half an hour of quiet (`sessions/loop.py`), or when the owner
says so; what is worth remembering of it is remembered then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from common.clock import Clock, parse_iso
from common.constants import OWNER_CAUSE
from common.errors import BudgetExceeded, Fatal, SoulError, Transient
from common.facts import OwnerFacts
from common.provenance import Provenance
from common.session_keys import OWNER_SESSION
from common.settings import Approval
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.stop_reasons import UNFINISHED
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Message
from modules.runtime.scheduler.attention import Attention
from modules.services.agent.onboarding import Onboarding
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import OwnerRequest, Turn
from modules.services.agent.turn.loop import TurnResult
from modules.services.agent.turn.runner import TurnRunner
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import NewExperience
from modules.services.identity.identity import Me
from modules.services.sessions.archived import ArchiveOutcome
from modules.services.sessions.archivist import Archivist
from modules.services.sessions.conversation import conversation, fitting
from modules.services.sessions.owner_inbox import OwnerInbox, OwnerMessage
from modules.services.sessions.sessions import Sessions
from modules.services.sessions.transcript import said_lines
from modules.services.skills.skills import Skills

_SKILL = "owner-communication"
_FIRST_SKILL = "commissioning"
_MOST_TIMES_UP = 2
"""So often the time may be up over one message before there is a word for it."""
_REFUSED_REMEDY = "Say it in other words. If that happens often, choose another model by AI_GATEWAY_MODEL in .env."
_REMEDY = "Ask for less at a time, or say it in other words."


@dataclass(frozen=True, slots=True)
class OwnerAnswer:
    """What came of one message: the words, or what went wrong so that it will never be answered."""

    message: OwnerMessage
    text: str = ""
    failed: Exception | None = None


def problem_of(error: Exception) -> tuple[str, str]:
    """Return in a sentence why a message got no answer, and what the owner can do."""
    if isinstance(error, SoulError):
        return f"I could not answer this message: {str(error).removesuffix('.')}.", error.remedy or _REMEDY
    what = f"I could not answer this message because of a fault in the program ({type(error).__name__}: {error})."
    return what, "Send it again. If that fails too, `soul logs` shows the fault, and `soul report` collects it."


@dataclass(slots=True, kw_only=True)
class OwnerTalk:
    """One conversation with the owner.

    While an answer that was made among others' words is remembered, those words are still in the turn.
    """

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    sessions: Sessions
    inbox: OwnerInbox
    archivist: Archivist
    onboarding: Onboarding
    attention: Attention
    journal: Journal
    clock: Clock
    situation: Callable[[], Awaitable[str]]
    approval: Approval
    experiences: ExperienceLog
    _times_up: Counter[int] = field(default_factory=Counter, init=False)  # by message

    async def receive(self, line: str) -> OwnerMessage:
        """Keep one message; it is on the disk when this returns. Raises `StorageError`."""
        return await self.inbox.add(line)

    async def waiting(self) -> int:
        """How many messages have no answer yet."""
        return await self.inbox.count()

    async def answer(self, line: str) -> str:
        """Hear one message and answer it, and before it all that still waits. Raises what `answer_next` raises."""
        stored = await self.receive(line)
        while answer := await self.answer_next():
            if answer.failed:
                raise answer.failed
            if answer.message.id == stored.id:
                return answer.text
        return ""

    async def answer_next(self) -> OwnerAnswer | None:
        """Answer the oldest message that waits; None if none does. Waits for whatever has its attention.

        Raises:
            BudgetExceeded: not today; the message goes on waiting.
            Fatal: the process must stop; the message goes on waiting.
            Transient: the model gives no answer now; the message goes on waiting.

        """
        async with self.attention.take("owner"):
            message = await self.inbox.oldest()
            if message is None:
                return None
            answer = await self._answer(message)
        await self.inbox.remove(message)
        return answer

    async def answer_via(self, key: str, line: str) -> OwnerAnswer:
        """Answer one message that came by another way than the terminal; the same `key` gets the same answer.

        It goes on waiting until the inbox forgets it. Raises what `answer_next` raises.
        """
        message = await self.inbox.add(line, key)
        async with self.attention.take("owner"):
            return await self._answer(message)

    async def _answer(self, message: OwnerMessage) -> OwnerAnswer:
        message = await self.inbox.put_in_session(message)
        kept = await self.inbox.answer_in_session(message)
        if kept is not None:
            return OwnerAnswer(message, kept)
        purpose = _FIRST_SKILL if self.onboarding.due() else _SKILL
        try:
            turn_result = await self._run_turn(message.text, message.session_id, purpose=purpose, message=message)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            return await self._failed(message, error)
        if turn_result.stopped == "refused":
            return await self._failed(message, SoulError(turn_result.cut_off, remedy=_REFUSED_REMEDY))
        if turn_result.stopped in UNFINISHED and not turn_result.text.strip():
            return await self._without_words(message, turn_result)
        guidance = NewExperience(
            "owner_guidance",
            "message" if message.via else "terminal",
            f"{OWNER_CAUSE}:{message.id}:{message.received_at}",
            message.text,
            trust="owner",
        )
        await self.experiences.record(guidance)
        acts = [call.name for call, result in turn_result.calls if not result.is_error]
        await self.journal.record(
            Entry(
                "decision",
                "owner",
                "Answered the owner",
                line=None,
                reason="the owner spoke",
                data={"act": "answered", "tools": acts, "rounds": turn_result.rounds},
            )
        )
        text = turn_result.text.strip()
        if turn_result.cut_off and not text:
            return OwnerAnswer(message, failed=SoulError(turn_result.cut_off, remedy=_REMEDY))
        return OwnerAnswer(message, text)

    async def _without_words(self, message: OwnerMessage, turn_result: TurnResult) -> OwnerAnswer:
        """What becomes of a message over which a turn stopped before its first word.

        Raises:
            Transient: it is tried again.

        """
        why = UNFINISHED[turn_result.stopped]
        self._times_up[message.id] += turn_result.stopped == "time"
        if self._times_up[message.id] < _MOST_TIMES_UP:
            raise Transient(f"There is no answer yet: {why}")
        tools = ", ".join(dict.fromkeys(call.name for call, _ in turn_result.calls))
        failure = SoulError(f"{why} twice, over {tools}", remedy=_REMEDY)
        return await self._failed(message, failure)

    async def _failed(self, message: OwnerMessage, error: Exception) -> OwnerAnswer:
        """The end of a message that will never be answered: it must not keep later ones waiting."""
        failure = f"{type(error).__name__}: {error}"
        await self.journal.record(Entry("error", "owner", "The owner got no answer", line=None, reason=failure))
        return OwnerAnswer(message, failed=error)

    async def open(self) -> str:
        """The SOUL's first words, when it and its owner are to talk for the first time; else ""."""
        if not self.onboarding.due():
            return ""
        async with self.attention.take("owner"):
            opening = Message("user", self.opening)
            session_id = await self.sessions.add_once(OWNER_SESSION, opening, Provenance.OWNER, is_note=True)
            turn_result = await self._run_turn(self.opening, session_id, purpose=_FIRST_SKILL, only=())
        return turn_result.text.strip()

    @property
    def opening(self) -> str:
        """What stands for the owner's first line, when it is the SOUL that speaks first: no words of the owner's."""
        return self.skills.render(_FIRST_SKILL, "Opening")

    async def start_afresh(self) -> ArchiveOutcome:
        """End the conversation that goes on, at the owner's word."""
        async with self.attention.take("owner"):
            return await self.archivist.reset(OWNER_SESSION)

    async def _run_turn(
        self,
        line: str,
        session_id: str,
        *,
        purpose: str,
        only: Collection[str] | None = None,
        message: OwnerMessage | None = None,
    ) -> TurnResult:
        turn = Turn(
            loop="owner",
            provenance=await self.sessions.provenance(session_id),
            cause_id=message.cause if message else OWNER_CAUSE,
            importance="owner",
            origin=Provenance.OWNER,
            request=OwnerRequest(message.text) if message else None,
        )
        now, situation = self.clock.now(), await self.situation()
        is_message = message is not None and bool(message.via)
        system = await self.prompter.prompt(
            skill=purpose,
            variables={
                "bluesky_username": self.me.bluesky_username,
                "owner_handle": self.me.owner_handle,
            },
            audience="owner",
            session_key=OWNER_SESSION,
            query=line,
            now=now,
            least=turn.provenance,
            began=parse_iso((await self.sessions.open(OWNER_SESSION)).created_at),
            moment=self.skills.render(
                _SKILL, "How Things Stand", situation=situation, approval=self.approval, is_message=is_message
            )
            if purpose == _SKILL
            else "",
        )
        rows = await self.sessions.rows(session_id)
        is_first = purpose == _FIRST_SKILL
        earlier = said_lines(rows) if is_first else ()
        said = conversation(rows)
        room = self.turn_runner.room(system, turn, only, said)
        await self.archivist.compact(session_id, room)
        return await self.turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=conversation(fitting(await self.sessions.rows(session_id), room)) or [Message("user", line)],
            purpose=purpose,
            only=only,
            session_id=session_id,
            about=OwnerFacts(line if message else "", situation, is_first, earlier),
        )
