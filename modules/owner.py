"""Talking with the owner in the terminal: each line gets the whole mind and all tools, one line after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from common.clock import Clock, local, spoken
from common.constants import OWNER_HISTORY_EXCHANGES, OWNER_IDLE_RESET_MS
from modules.identity import Identity, Me
from modules.journal.journal import Journal
from modules.journal.types import Entry
from modules.llm_gateway.types import Message
from modules.scheduler.attention import Attention
from modules.thinker import Thinker
from modules.tools.types import Provenance, Turn

_SKILL = "owner-communication"


class OwnerTalk:
    """Remembers the last exchanges of this terminal; after half an hour of quiet it starts afresh.

    While an answer that was made among others' words is remembered, those words are still in the turn.
    """

    def __init__(
        self,
        *,
        me: Me,
        identity: Identity,
        thinker: Thinker,
        attention: Attention,
        journal: Journal,
        clock: Clock,
        situation: Callable[[], Awaitable[str]],
    ) -> None:
        self._me = me
        self._identity = identity
        self._thinker = thinker
        self._attention = attention
        self._journal = journal
        self._clock = clock
        self._situation = situation
        self._history: deque[tuple[str, str, Provenance]] = deque(maxlen=OWNER_HISTORY_EXCHANGES)
        self._last: datetime | None = None

    async def answer(self, line: str) -> str:
        """The SOUL's answer to one line. Waits for whatever has its attention."""
        async with self._attention.take("owner"):
            now = self._clock.now()
            if self._last and now - self._last > timedelta(milliseconds=OWNER_IDLE_RESET_MS):
                self._history.clear()
            messages = [
                message
                for asked, said, _ in self._history
                for message in (Message("user", asked), Message("assistant", said))
            ]
            thought = await self._thinker.think(
                turn=Turn(
                    loop="owner",
                    provenance=min((words for *_, words in self._history), default=Provenance.OWNER),
                    cause_id="owner",
                    importance="owner",
                    origin=Provenance.OWNER,
                ),
                system=self._identity.system_prompt(
                    _SKILL,
                    {
                        "bluesky_username": self._me.bluesky_username,
                        "owner_handle": self._me.owner_handle,
                        "today": spoken(local(now, self._me.timezone)),
                        "situation": await self._situation(),
                    },
                ),
                messages=(*messages, Message("user", line)),
                purpose=_SKILL,
            )
            self._last = self._clock.now()
            if thought.text.strip():
                self._history.append((line, thought.text.strip(), thought.provenance))
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
