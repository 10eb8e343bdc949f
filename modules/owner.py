"""Talking with the owner in the terminal: each line gets the whole mind and all tools, one line after another.

The conversation is kept across restarts, each line before anybody thinks about it. It ends after half an hour of quiet
(`modules/sessions/loop.py`), or when the owner says so; what is worth remembering of it is remembered then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from common.clock import Clock, local, spoken
from modules.commissioning import Commissioning
from modules.identity import Me
from modules.journal.journal import Journal
from modules.journal.types import Entry
from modules.llm_gateway.types import Message
from modules.prompt.prompter import Prompter
from modules.scheduler.attention import Attention
from modules.sessions.archived import Outcome
from modules.sessions.archivist import Archivist
from modules.sessions.conversation import conversation, fitting
from modules.sessions.sessions import Sessions
from modules.sessions.types import OWNER_SESSION
from modules.skills import Skills
from modules.thinker import Thinker
from modules.thinking import Thought
from modules.tools.types import Provenance, Turn

_SKILL = "owner-communication"
_FIRST_SKILL = "commissioning"
_FIRST_TOOLS = ("complete_commissioning",)


class OwnerTalk:
    """One conversation with the owner.

    While an answer that was made among others' words is remembered, those words are still in the turn.
    """

    def __init__(
        self,
        *,
        me: Me,
        prompter: Prompter,
        skills: Skills,
        thinker: Thinker,
        sessions: Sessions,
        archivist: Archivist,
        commissioning: Commissioning,
        attention: Attention,
        journal: Journal,
        clock: Clock,
        situation: Callable[[], Awaitable[str]],
    ) -> None:
        self._me = me
        self._prompter = prompter
        self._skills = skills
        self._thinker = thinker
        self._sessions = sessions
        self._archivist = archivist
        self._commissioning = commissioning
        self._attention = attention
        self._journal = journal
        self._clock = clock
        self._situation = situation

    async def answer(self, line: str) -> str:
        """The SOUL's answer to one line. Waits for whatever has its attention."""
        async with self._attention.take("owner"):
            first = self._commissioning.due()
            thought = await (
                self._think(line, purpose=_FIRST_SKILL, only=_FIRST_TOOLS)
                if first
                else self._think(line, purpose=_SKILL)
            )
        acts = [call.name for call, result in thought.calls if not result.is_error]
        await self._journal.record(
            Entry(
                "decision",
                "owner",
                "Answered the owner",
                line=None,
                reason="the owner spoke",
                data={"act": "answered", "tools": acts, "rounds": thought.rounds},
            )
        )
        return thought.text.strip()

    async def open(self) -> str:
        """The SOUL's first words, when it and its owner are to talk for the first time; else ""."""
        if not self._commissioning.due():
            return ""
        async with self._attention.take("owner"):
            thought = await self._think(self.opening, purpose=_FIRST_SKILL, only=())
        return thought.text.strip()

    @property
    def opening(self) -> str:
        """What stands for the owner's first line, when it is the SOUL that speaks first: no words of the owner's."""
        return self._skills.render(_FIRST_SKILL, "Opening")

    async def start_afresh(self) -> Outcome:
        """End the conversation that goes on, at the owner's word."""
        async with self._attention.take("owner"):
            return await self._archivist.reset(OWNER_SESSION)

    async def _think(self, line: str, *, purpose: str, only: Collection[str] | None = None) -> Thought:
        session = await self._sessions.open(OWNER_SESSION)
        session_id = await self._sessions.add(session.id, [(Message("user", line), Provenance.OWNER)])
        turn = Turn(
            loop="owner",
            provenance=await self._sessions.provenance(session_id),
            cause_id="owner",
            importance="owner",
            origin=Provenance.OWNER,
        )
        now = self._clock.now()
        system = await self._prompter.prompt(
            skill=purpose,
            variables={
                "bluesky_username": self._me.bluesky_username,
                "owner_handle": self._me.owner_handle,
                "today": spoken(local(now, self._me.timezone)),
                "situation": await self._situation(),
            },
            audience="owner",
            session_key=OWNER_SESSION,
            query=line,
            now=now,
            least=turn.provenance,
        )
        room = self._thinker.room(system, turn, only)
        await self._archivist.compact(session_id, room)
        return await self._thinker.think(
            turn=turn,
            system=system,
            messages=conversation(fitting(await self._sessions.rows(session_id), room)) or [Message("user", line)],
            purpose=purpose,
            only=only,
            session_id=session_id,
        )
