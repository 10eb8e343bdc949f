"""What `soul.db` tells of the lives before: what was done, which talks are over, what changed it. Reads only."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from common.provenance import Provenance
from modules.runtime.database import marks
from modules.runtime.journal import rows
from modules.services.agent.onboarding import ONBOARDED_AT
from modules.services.memory.profiles import profile_of
from modules.services.outbox import store
from modules.services.sessions import archives
from modules.services.sessions.archived import Distilled

_TALKS = 100


@dataclass(frozen=True, slots=True)
class Over:
    """A stretch of conversation that was archived: when, with whom, how long, and what it came to.

    `summary` is "" where it rests on the words of others.
    """

    at: str
    key: str
    messages: int
    summary: str


@dataclass(frozen=True, slots=True)
class Past:
    """Times are ISO-8601 UTC, "" where there is none.

    `began` is the start of the newest life in which something came of it; `acts` what that life did in public.
    """

    role: str
    began: str
    acts: tuple[str, ...]
    over: tuple[Over, ...]
    milestones: tuple[tuple[str, str], ...]


def past(connection: sqlite3.Connection, learned_at: str = "") -> Past:
    """All of it, in one transaction; memories may lie elsewhere: `learned_at` is when the newest was learned."""
    talks = sorted(archives.done(connection, None, _TALKS), key=lambda one: one.key)
    talks.sort(key=lambda one: one.prepared_at, reverse=True)
    newest = max(store.last_done(connection), talks[0].prepared_at if talks else "", learned_at)
    began = rows.last_start(connection, newest) or newest
    done = store.done_since(connection, began) if began else {}
    milestones = (
        ("First words in public", store.first_words(connection)),
        ("Commissioned", marks.get(connection, ONBOARDED_AT)),
    )
    return Past(
        role=profile_of(connection).agent.get("role", ""),
        began=began,
        acts=tuple(f"{kind}: {count} sent" for kind, count in done.items()),
        over=tuple(Over(one.prepared_at, one.session_key, one.message_count, _summary(one.distilled)) for one in talks),
        milestones=tuple(sorted((one for one in milestones if one[1]), key=lambda one: one[1], reverse=True)),
    )


def _summary(kept: Distilled) -> str:
    return kept.summary if kept.provenance >= Provenance.SELF else ""
