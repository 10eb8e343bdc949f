"""What the room says, as the owner sees it in the terminal at the moment it is heard. Nothing is kept.

A message may have 100 000 characters; of each the owner is shown the first 2 000.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters.space.types import (
    ActionDone,
    Claimed,
    Event,
    Identified,
    Joined,
    Left,
    Reflected,
    Said,
    WorkspaceProgress,
)
from common.text.untrusted import clean, one_line
from modules.runtime.console import Console

_DETAIL_CHARS = 200
_SAID_CHARS = 2_000

_Named = Joined | Left | Identified | Claimed | ActionDone | Reflected | WorkspaceProgress


@dataclass(frozen=True, slots=True)
class SpaceLines:
    """Shows events on `console`. Everybody's words are cleaned: no terminal obeys them."""

    console: Console

    def show(self, event: Event) -> None:
        """One event; those that say nothing to people are passed over."""
        if told := line_of(event):
            self.console.line("social", f"[space] {told[0]}", told[1])


def line_of(event: Event) -> tuple[str, str] | None:
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
            told = "joined", event.version
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
