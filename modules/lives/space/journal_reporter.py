"""What the owner is told of this life: journal entries for decisions, terminal lines for what the room says.

A message may have 100 000 characters; of each the owner is shown the first 2 000.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from adapters.space.types import (
    ActionDone,
    Claimed,
    Identified,
    Joined,
    Left,
    Reflected,
    Said,
    SpaceEvent,
    WorkspaceProgress,
)
from common.clock import Clock
from common.constants import DAY_MS
from common.line_kind import LineKind
from common.text.strings import dedup_key
from common.text.untrusted import clean, one_line
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.transcript import shown
from modules.runtime.console import Console
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.types import QueuedCommitment

LOOP = "space-participation"
SPOKE = "spoke"
"""Marks the entry of a message that we said."""

_MESSAGES, _CHARS = 10, 200


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was decided on the way, for the journal; `data` says with which values."""

    summary: str
    reason: str
    line: LineKind = "social"
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournalReporter:
    """Writes the entries of this life to `journal`."""

    journal: Journal

    async def decided(self, snapshot: RoomSnapshot, *notes: Note) -> None:
        """Record what was decided about `snapshot`, in order."""
        said = [
            f"{shown(entry.name, is_host=entry.is_host)}: {one_line(entry.content[: 4 * _CHARS], _CHARS)}"
            for entry in snapshot.batch[-_MESSAGES:]
        ]
        about = {
            "received": said,
            "mode": snapshot.mode,
            "owner": snapshot.owner or "",
            "role": snapshot.role,
            "request": one_line(snapshot.request.content[: 4 * _CHARS], _CHARS) if snapshot.is_open else "",
            "cycles": snapshot.request.cycles,
        }
        author = snapshot.batch[-1].name if snapshot.batch else None
        for note in notes:
            await self.journal.record(
                Entry(
                    "decision",
                    LOOP,
                    f"[space] {note.summary}",
                    line=note.line,
                    reason=note.reason,
                    trigger_uri=snapshot.thread_uri,
                    author=author,
                    data={**about, **note.data},
                )
            )

    async def spoke(self, snapshot: RoomSnapshot, message: str, reason: str, made: Sequence[QueuedCommitment]) -> None:
        """Record that `message` was said about `snapshot`, and which commitments were made in it."""
        ids = [one.id for one in made]
        notes = [Note("Spoke", reason, data={"act": SPOKE, "message": message, "commitments": ids})]
        if made:
            kinds = ", ".join(one.type for one in made)
            notes.append(Note("Structured commitments", kinds, "queue", {"commitments": ids}))
        await self.decided(snapshot, *notes)

    async def happened(self, summary: str, reason: str, *, line: LineKind = "info") -> None:
        """Record an event that is no decision."""
        await self.journal.record(Entry("life", LOOP, f"[space] {summary}", line=line, reason=reason))

    async def trouble(self, summary: str, reason: str, *, trace: str = "") -> None:
        """Record a failure; `trace` is the traceback of an unexpected one."""
        data = {"trace": trace} if trace else {}
        await self.journal.record(Entry("error", LOOP, f"[space] {summary}", line="warn", reason=reason, data=data))


SPACE_OWN_LINES_KEPT_MS = 7 * DAY_MS

_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class OwnLines:
    """Our lines, as `journal` tells them."""

    journal: Journal
    clock: Clock

    async def hold(self, message: str) -> bool:
        """Whether we said the same words within the last days; a greeting of up to three words may come again."""
        if len(message.split()) < _FEWEST_WORDS:
            return False
        since = self.clock.now() - timedelta(milliseconds=SPACE_OWN_LINES_KEPT_MS)
        key = dedup_key(message)
        return any(dedup_key(said) == key for said in await self.journal.messages(LOOP, SPOKE, since))


_DETAIL_CHARS = 200
_SAID_CHARS = 2_000

_Named = Joined | Left | Identified | Claimed | ActionDone | Reflected | WorkspaceProgress


@dataclass(frozen=True, slots=True)
class SpaceLines:
    """Shows events on `console`. Everybody's words are cleaned: no terminal obeys them."""

    console: Console

    def show(self, event: SpaceEvent) -> None:
        """One event; those that say nothing to people are passed over."""
        if told := line_of(event):
            self.console.line("social", f"[space] {told[0]}", told[1])


def line_of(event: SpaceEvent) -> tuple[str, str] | None:
    """The line of an event, and what stands behind it; None for what says nothing to people."""
    if isinstance(event, Said):
        cut = " […]" if len(event.content) > _SAID_CHARS else ""
        return one_line(event.name), clean(event.content[:_SAID_CHARS]) + cut
    if not isinstance(event, _Named):
        return None
    what, detail = _told(event)
    return f"{one_line(event.name)} {what}", one_line(detail[: 4 * _DETAIL_CHARS], _DETAIL_CHARS)


def _told(event: _Named) -> tuple[str, str]:
    match event:
        case Joined():
            told = "joined", ""
        case Left():
            told = "left", ""
        case Identified():
            told = "identity", event.summary.voice
        case Claimed():
            told = "claimed", f"{event.action} {event.target}"
        case ActionDone():
            told = one_line(event.action), event.link if event.success else event.error or "failed"
        case Reflected():
            told = "reflected", event.summary
        case WorkspaceProgress():
            told = "workspace", f"{event.workspace} {event.completed:g}/{event.total:g}"
    return told
