"""Gathers the data of a wakeup context from what is on the disk already; nothing is stored for it alone.

Only words of the SOUL or its owner are taken: what others said may be remembered, but does not belong in a text that
opens a prompt. The lives pass in what they know as callables, because a service does not know the lives.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from common.clock import Clock, local, parse_iso
from common.provenance import Provenance, Trust
from common.text.closings import asks
from common.wording import counted
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal import rows
from modules.services.agent.attention_list import AttentionNeeds, Item
from modules.services.agent.onboarding import ONBOARDED_AT
from modules.services.identity.identity import SelfExtract
from modules.services.memory.admission import Kind, Memory
from modules.services.memory.profiles import profile_of
from modules.services.memory.rows import MemoryStore, newest
from modules.services.outbox import store
from modules.services.sessions import archives
from modules.services.sessions.archives import Distilled


@dataclass(frozen=True, slots=True)
class Teammate:
    """Somebody whom the SOUL works with, and their role."""

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
    """The current work: accepted tasks, branches in progress, blockers and next actions."""

    tasks: tuple[Item, ...] = ()
    branches: tuple[Item, ...] = ()
    blockers: tuple[Item, ...] = ()
    next_actions: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class LastSession:
    """The results of the newest session. `at` is its local date, "" if there was none."""

    at: str = ""
    outcomes: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OlderSession:
    """A finished conversation in one line. `at` is its local date."""

    at: str
    summary: str


@dataclass(frozen=True, slots=True)
class WakeupState:
    """All that a SOUL should know when it starts.

    Attributes:
        name: the SOUL's name.
        role: its purpose.
        team: those it works with.
        protocols: how things are done here, the most important first.
        work: the current work.
        last: the newest session.
        older: conversations before it, newest first.
        milestones: decisive events: memories first, then the recorded ones, newest first.
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
"""Returns the current state."""


_TALKS = 100


@dataclass(frozen=True, slots=True)
class Over:
    """An archived part of a conversation: when, with whom, how many messages, and its summary.

    `summary` is "" if it rests on the words of others.
    """

    at: str
    key: str
    messages: int
    summary: str


@dataclass(frozen=True, slots=True)
class Past:
    """What the database knows of the time before this start. Times are ISO-8601 UTC, "" for none.

    `began` is when the newest session with a result started; `acts` counts its public acts by kind, in words.
    """

    role: str
    began: str
    acts: tuple[str, ...]
    over: tuple[Over, ...]
    milestones: tuple[tuple[str, str], ...]


def past(connection: sqlite3.Connection, learned_at: str = "") -> Past:
    """Read the past in one transaction; `learned_at` is when the newest memory, maybe stored elsewhere, was learned."""
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


_TRUSTED: tuple[Trust, ...] = ("self", "owner")
_PROTOCOLS = 40
_RECENT = 60
_LOOKED_AT = 500
_NEVER_FORGET = 5
_NOTABLE = 4
_LEARNED: tuple[Kind, ...] = ("decision", "lesson", "fact", "episode", "preference")
_OPEN_TAGS = frozenset({"question", "open", "unresolved"})
_MEMORY_DAYS = 14


@dataclass(frozen=True, slots=True)
class WakeupGathering:
    """Gathers the state from the services.

    Attributes:
        name: returns the SOUL's display name.
        extract: returns what SELF.md says.
        peers: handles of other SOULs, from the settings.
        attention: returns what is due, stuck or waiting.
        bonds: returns who matters, one line each, the closest first.
        timezone: the SOUL's time zone.

    """

    database: Database
    memories: MemoryStore
    clock: Clock
    name: Callable[[], str]
    extract: Callable[[], SelfExtract]
    peers: Sequence[str]
    attention: Callable[[], Awaitable[AttentionNeeds]]
    bonds: Callable[[], Awaitable[Sequence[str]]]
    timezone: str = ""

    async def gather(self) -> WakeupState:
        """Return the current state."""
        latest = await self.memories.listed(limit=1)
        learned_at = latest[0].updated_at if latest else ""
        before = await self.database.run(lambda connection: past(connection, learned_at))
        protocols = await self._listed("protocol", limit=_PROTOCOLS)
        people = await self._listed("person", limit=_LOOKED_AT)
        episodes = await self._listed("episode", limit=_LOOKED_AT)
        return WakeupState(
            name=self.name(),
            role=before.role or self.extract().purpose,
            team=tuple(Teammate(f"@{peer}", _role(peer, people)) for peer in self.peers),
            protocols=tuple(Protocol(item.subject, item.body, item.private) for item in protocols),
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
                *await self.bonds(),
                *(f"{item.subject}: {item.body}" for item in people if item.importance >= _NOTABLE),
            ),
        )

    async def _work(self) -> Work:
        """Return the acts to be sent, the commitments, the branches, the blockers and the next actions."""
        attention = await self.attention()
        leaving, waiting = attention.leaving, attention.mentions
        return Work(
            tasks=(*([Item(counted(leaving, "public act"), "to be sent")] if leaving else ()), *attention.commitments),
            branches=attention.branches,
            blockers=(
                # NOTE(self): drafts get decided while the SOUL runs, so each prompt shows their current state instead.
                *(
                    Item(f"{item.what}: {item.note}", private=item.private)
                    for item in attention.blocked
                    if not item.waits_as
                ),
            ),
            next_actions=(Item(f"meet {counted(waiting, 'waiting post')}"),) if waiting else (),
        )

    async def _last(self, before: Past) -> LastSession:
        """Return the newest session in which something was done or learned."""
        since = parse_iso(before.began) if before.began else self.clock.now() - timedelta(days=_MEMORY_DAYS)
        learned = await self.database.run(
            lambda rows: newest(rows, kinds=_LEARNED, since=since, public_only=False, limit=_RECENT, trusts=_TRUSTED)
        )
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
        """Return what is trusted, the most important first."""
        return await self.database.run(
            lambda rows: newest(
                rows, kinds=(kind,), since=None, public_only=False, limit=limit, by_importance=True, trusts=_TRUSTED
            )
        )

    def _day(self, at: str) -> str:
        return f"{local(parse_iso(at), self.timezone):%Y-%m-%d}"


def _told(memories: Sequence[Memory]) -> tuple[str, ...]:
    return tuple(f"{item.subject}: {item.body}" for item in memories)


def _is_open(memory: Memory) -> bool:
    return bool(_OPEN_TAGS & {tag.casefold() for tag in memory.tags}) or asks(memory.body.rstrip()[-3:])


def _role(handle: str, people: Sequence[Memory]) -> str:
    """Return the first sentence of what is publicly known about a peer, without its full stop; "" for nothing."""
    wanted = handle.casefold()
    known = (item for item in people if not item.private)
    found = next((item.body for item in known if item.subject.casefold().lstrip("@") == wanted), "")
    return found.partition(". ")[0].strip().rstrip(".")
