"""Notices to the owner outside a talk: how they are delivered, and how the next talk knows of them."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from common.clock import Clock, local, parse_iso, spoken
from common.person import tied
from common.provenance import Provenance
from common.session_keys import OWNER_SESSION
from modules.runtime.llm.dialect import Message
from modules.services.memory.profiles import begin_with_owner
from modules.services.sessions.people import change_owner_of_talks
from modules.services.sessions.sessions import Sessions
from modules.services.skills.skills import Framer, Skills
from modules.services.work.table import WorkTable, drop_told

NOTICE = "alarm"
"""The kind of the work rows that hold notices to the owner."""
UNTOLD = "untold"
"""The outcome of such a row whose words no message could tell."""
_SKILL = "owner-communication"
_LATELY = timedelta(days=7)
_MOST_READ, _MOST_TOLD = 50, 5


def begin_with(connection: sqlite3.Connection, owner_did: str) -> None:
    """If the owner has changed since the last start, hide what the former owner said in private."""
    if former := begin_with_owner(connection, owner_did):
        change_owner_of_talks(connection, owner_did, former)
        drop_told(connection, NOTICE)


class TellOwner(Protocol):
    """Tells the owner something outside a talk, once for each name, across restarts."""

    async def __call__(
        self, name: str, text: str, words: str, provenance: Provenance, *, at_once: bool, dids: Sequence[str] = ()
    ) -> None:
        """Store a notice: `text` is the headline, `words` what is said in private.

        Unless `at_once`, it waits for the end of the owner's quiet hours. `provenance` is that of the least trusted
        text behind `words`, `dids` are the accounts whose words they may repeat.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToldOutside:
    """Adds to the owner's conversation what they were told outside it, each notice once."""

    work: WorkTable
    sessions: Sessions
    skills: Skills
    clock: Clock
    rng: random.Random
    timezone: str

    async def note(self) -> None:
        """Add what is not noted yet, once it was told or could not be: at most the newest five of the last seven days.

        Words that rest on those of others are framed, and the conversation has their provenance from then on.
        """
        since, rows = self.clock.now() - _LATELY, await self.work.newest(NOTICE, _MOST_READ, having="words")
        new = [one for one in rows if not one.payload.get("noted") and (one.state != "pending" or one.attempts)]
        for item in reversed([one for one in new if parse_iso(one.created_at) > since][:_MOST_TOLD]):
            provenance = Provenance(item.payload.get("provenance", Provenance.STRANGER))
            words, is_own = item.payload["words"], provenance >= Provenance.SELF
            if not is_own:
                words = Framer(self.skills, self.rng).frame(
                    "reading", author="you, on what you read", uri="", text=words
                )
            at = spoken(local(parse_iso(item.created_at), self.timezone))
            about = {"at": at, "headline": item.payload["text"], "is_told": item.outcome != UNTOLD}
            told = self.skills.render(_SKILL, "Told Outside", **about, words=words)
            # NOTE(self): the SOUL's own words do not lower the trust of the conversation, just as its answers do not.
            said = [(Message("user", told), Provenance.OWNER if is_own else provenance)]
            session, dids = await self.sessions.open(OWNER_SESSION), tied(item.payload.get("dids", ()))
            await self.sessions.add(session.id, said, did=dids, is_note=True)
            await self.work.note(item, noted=True)
