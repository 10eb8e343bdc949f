"""Gathers what a wakeup context tells, from what is on the disk already: nothing is kept for it alone.

Only words that the SOUL or its owner stand for are taken: what others said may be remembered, but a text that opens a
prompt is no place for it. Lives hand in what they know as callables; a service knows no life.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from common.clock import Clock, local, parse_iso
from common.provenance import Provenance
from common.wording import counted
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal import rows
from modules.services.agent.attention_list import AttentionNeeds, Item
from modules.services.agent.onboarding import ONBOARDED_AT
from modules.services.identity.identity import SelfExtract
from modules.services.memory.admission import Kind, Memory
from modules.services.memory.profiles import profile_of
from modules.services.memory.rows import MemoryStore
from modules.services.outbox import store
from modules.services.sessions import archives
from modules.services.sessions.archives import Distilled


@dataclass(frozen=True, slots=True)
class Teammate:
    """Somebody whom the SOUL works beside, and as what."""

    name: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How something is done here: a memory of kind `protocol`."""

    subject: str
    body: str
    private: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What is going on: tasks taken on, branches in flight, what stands in the way, what comes next."""

    tasks: tuple[Item, ...] = ()
    branches: tuple[Item, ...] = ()
    blockers: tuple[Item, ...] = ()
    next_actions: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class LastSession:
    """What the newest stretch of life came to. `at` is its local date, "" if there was none."""

    at: str = ""
    outcomes: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OlderSession:
    """A conversation that is over, in one line. `at` is its local date."""

    at: str
    summary: str


@dataclass(frozen=True, slots=True)
class WakeupState:
    """All that a SOUL should know when it wakes.

    Attributes:
        name: the SOUL's own.
        role: what it is here for.
        team: those it works beside.
        protocols: how things are done here, the most important first.
        work: what is going on.
        last: the newest stretch of life.
        older: conversations before it, newest first.
        milestones: what changed the course of this life, newest first.
        relationships: who matters, and why, the closest first.

    """

    name: str
    role: str = ""
    team: tuple[Teammate, ...] = ()
    protocols: tuple[Protocol, ...] = ()
    work: Work = Work()
    last: LastSession = LastSession()
    older: tuple[OlderSession, ...] = ()
    milestones: tuple[str, ...] = ()
    relationships: tuple[str, ...] = ()


Gather = Callable[[], Awaitable[WakeupState]]
"""Looks at what is there now."""


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


_TRUSTED = frozenset({"self", "owner"})
_PROTOCOLS = 40
_RECENT = 60
_LOOKED_AT = 500
_NEVER_FORGET = 5
_NOTABLE = 4
_OPEN_TAGS = frozenset({"question", "open", "unresolved"})
_MEMORY_DAYS = 14


@dataclass(frozen=True, slots=True)
class WakeupGathering:
    """Gathers it from the services.

    Attributes:
        name: as the SOUL is shown.
        extract: what SELF.md says.
        peers: handles of other SOULs, from the settings.
        attention: what is due, stuck or waiting.
        bonds: who matters, one line each, the closest first.
        timezone: of the SOUL's day.

    """

    database: Database
    memories: MemoryStore
    clock: Clock
    name: Callable[[], str]
    extract: Callable[[], SelfExtract]
    peers: Sequence[str]
    attention: Callable[[], Awaitable[AttentionNeeds]]
    bonds: Callable[[], Sequence[str]]
    timezone: str = ""

    async def gather(self) -> WakeupState:
        """How things stand now."""
        newest = await self.memories.listed(limit=1)
        learned_at = newest[0].updated_at if newest else ""
        before = await self.database.run(lambda connection: past(connection, learned_at))
        protocols = await self._listed("protocol", limit=_PROTOCOLS)
        people = await self._listed("person", limit=_LOOKED_AT)
        episodes = await self._listed("episode", limit=_LOOKED_AT)
        return WakeupState(
            name=self.name(),
            role=before.role or self.extract().purpose,
            team=tuple(Teammate(f"@{peer}", _role(peer, people)) for peer in self.peers),
            protocols=tuple(
                Protocol(item.subject, item.body, item.private)
                for item in sorted(protocols, key=lambda item: -item.importance)
            ),
            work=await self._work(),
            last=await self._last(before),
            older=tuple(
                OlderSession(self._day(over.at), f"{over.key}: {over.summary or f'{over.messages} messages'}")
                for over in before.over
                if over.at < before.began
            ),
            milestones=(
                *(f"{item.subject}: {item.body}" for item in episodes if item.importance >= _NEVER_FORGET),
                *(f"{what} on {self._day(at)}" for what, at in before.milestones),
            ),
            relationships=(
                *self.bonds(),
                *(f"{item.subject}: {item.body}" for item in people if item.importance >= _NOTABLE),
            ),
        )

    async def _work(self) -> Work:
        """Return what is on its way out, what was taken on, what does not get on, and what comes next."""
        attention = await self.attention()
        leaving, waiting = attention.leaving, attention.mentions
        return Work(
            tasks=(*([Item(counted(leaving, "public act"), "to be sent")] if leaving else ()), *attention.commitments),
            branches=attention.branches,
            blockers=(
                # NOTE(self): a pause ends, and drafts are decided, while the SOUL lives: each prompt tells how it is.
                *(
                    Item(f"{item.what}: {item.note}", private=item.private)
                    for item in attention.blocked
                    if not item.asked
                ),
            ),
            next_actions=(Item(f"meet {counted(waiting, 'waiting post')}"),) if waiting else (),
        )

    async def _last(self, before: Past) -> LastSession:
        """The newest stretch of life in which something was done or learned."""
        since = parse_iso(before.began) if before.began else self.clock.now() - timedelta(days=_MEMORY_DAYS)
        learned = await self.memories.listed(
            kinds=("decision", "lesson", "fact", "episode", "preference"), since=since, limit=_RECENT
        )
        learned = [item for item in learned if item.trust in _TRUSTED]
        opened = [item for item in learned if _is_open(item)]
        decided = [item for item in learned if item.kind == "decision" and item not in opened]
        rest = [item for item in learned if item not in opened and item not in decided]
        return LastSession(
            at=self._day(before.began) if before.began else "",
            outcomes=(*before.acts, *(over.summary for over in before.over if over.at >= before.began), *_told(rest)),
            decisions=_told(decided),
            questions=_told(opened),
        )

    async def _listed(self, kind: Kind, *, limit: int) -> list[Memory]:
        found = await self.memories.listed(kinds=(kind,), limit=limit)
        return [item for item in found if item.trust in _TRUSTED]

    def _day(self, at: str) -> str:
        return f"{local(parse_iso(at), self.timezone):%Y-%m-%d}"


def _told(memories: Sequence[Memory]) -> tuple[str, ...]:
    return tuple(f"{item.subject}: {item.body}" for item in memories)


def _is_open(memory: Memory) -> bool:
    return bool(_OPEN_TAGS & {tag.casefold() for tag in memory.tags}) or memory.body.rstrip().endswith("?")


def _role(handle: str, people: Sequence[Memory]) -> str:
    """What everybody may know of a peer, in its first sentence."""
    wanted = handle.casefold()
    known = (item for item in people if not item.private)
    found = next((item.body for item in known if item.subject.casefold().lstrip("@") == wanted), "")
    return found.partition(". ")[0].strip().rstrip(".")
