"""Gathers what a wakeup context tells, from what is on the disk already: nothing is kept for it alone.

Only words that the SOUL or its owner stand for are taken: what others said may be remembered, but a text that opens a
prompt is no place for it. Lives hand in what they know as callables; a service knows no life.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from common.clock import Clock, local, parse_iso
from common.wording import counted
from modules.runtime.database.database import Database
from modules.services.agent.attention_list import AttentionNeeds, Item
from modules.services.agent.wakeup.recent_history import Past, past
from modules.services.agent.wakeup.state import LastSession, OlderSession, Protocol, Teammate, WakeupState, Work
from modules.services.identity.self_document import SelfExtract
from modules.services.memory.store import MemoryStore
from modules.services.memory.types import Kind, Memory

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
                *(Item(reason, private=True) for reason in attention.held_back),
                # NOTE(self): drafts are decided while the SOUL lives, and each prompt lists those that wait then.
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
