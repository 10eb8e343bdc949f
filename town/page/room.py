"""The room as the page shows it: the last rows of the conversation, who is present, and the visitor as its host.

A view in memory of the events of the room's server, which keeps the record on disk. Row numbers are never reused, so
that a page can add the new rows and leave the others in place.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.space.roster import Roster
from adapters.space.server import LogLevel, SpaceServer
from adapters.space.types import (
    DECLINES,
    ActionDone,
    Claimed,
    Joined,
    Left,
    Reflected,
    Said,
    SpaceEvent,
    StateChanged,
    WorkspaceProgress,
)
from common.clock import Clock, iso

MAX_TEXT = 4_000
_ROWS_KEPT = 150
_TEXT_KEPT = 20_000
_QUIET_KEPT = 400
_TARGET_CUT = 50
_NOUNS = {"create_issue": "an issue", "create_plan": "a plan", "comment_issue": "a comment", "post_bluesky": "a post"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KnownResident:
    """A resident behind a name in the room, with the handle and name that the page shows."""

    handle: str
    name: str


class PageRoom:
    """A `RoomHost` for the page. `known` maps names in the room to residents; `host` is the visitor."""

    def __init__(self, clock: Clock, known: Mapping[str, KnownResident], host: KnownResident) -> None:
        self._clock = clock
        self._known = known
        self._host = host
        self._roster = Roster()
        self._rows: deque[Json] = deque(maxlen=_ROWS_KEPT)
        self._count = 0
        self._listeners: set[Callable[[], None]] = set()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each change, until the returned function is called."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def rows(self) -> list[Json]:
        """Return the last rows, oldest first."""
        return list(self._rows)

    def present(self) -> list[Json]:
        """Return who is present, in order of arrival."""
        now = self._clock.monotonic()
        return [
            {
                **self._actor(guest.name),
                "room": guest.name,
                "version": guest.version,
                "state": guest.state,
                "detail": guest.detail[:_QUIET_KEPT],
                "typing": guest.is_typing(now),
            }
            for guest in self._roster.entries
        ]

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        if level != "info":
            self._add("trouble", None, f"{message} {detail}".strip())
            self._tell()

    def happened(self, event: SpaceEvent) -> None:
        self._roster.follow(event, self._clock.monotonic())
        row = None if isinstance(event, ActionDone) and event.action == DECLINES else _row(event)
        if row is not None:
            if isinstance(event, WorkspaceProgress):
                self._drop(lambda one: one["kind"] == "progress" and one["text"].startswith(f"{event.workspace}: "))
            if isinstance(event, Reflected):
                self._drop(lambda one: one["kind"] == "reflected" and one["by"] == self._actor(event.name))
            self._add(*row)
        self._tell()

    def _drop(self, is_old: Callable[[Json], bool]) -> None:
        """Remove the rows that a new one replaces."""
        for row in list(filter(is_old, self._rows)):
            self._rows.remove(row)

    def _add(self, kind: str, name: str | None, text: str, link: str = "") -> None:
        self._count += 1
        row: Json = {"id": self._count, "kind": kind, "at": iso(self._clock.now()), "text": text, "link": link}
        if name is not None:
            row["by"] = self._actor(name, host=kind == "host")
        self._rows.append(row)

    def _actor(self, name: str, *, host: bool = False) -> Json:
        known = self._host if host else self._known.get(name, KnownResident("", name))
        return {"handle": known.handle, "name": known.name}

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()


@dataclass(frozen=True, slots=True)
class RoomOnPage:
    """The room that a page shows: its view, and its server, through which the visitor speaks.

    Links lead only to `github_url`; `requests` are pieces of work that the page suggests to ask for, `builds` says
    what can be built.
    """

    view: PageRoom
    speaker: SpaceServer
    github_url: str = ""
    requests: tuple[str, ...] = ()
    builds: str = ""


def _row(event: SpaceEvent) -> tuple[str, str, str] | tuple[str, str, str, str] | None:
    """Return kind, name in the room, text and, if any, link of the event's row; None if it has no row."""
    row: tuple[str, str, str] | tuple[str, str, str, str] | None = None
    match event:
        case Said():
            row = "host" if event.by_host else "said", event.name, event.content[:_TEXT_KEPT]
        case Joined():
            row = "joined", event.name, ""
        case Left():
            row = "left", event.name, ""
        case Claimed():
            row = "claimed", event.name, _deed(event.action, event.target)
        case ActionDone(success=True):
            row = "done", event.name, _deed(event.action, event.target), event.link
        case ActionDone():
            why = f": {event.error}" if event.error else ""
            row = "failed", event.name, f"{_deed(event.action, event.target)}{why}"[:_QUIET_KEPT]
        case Reflected():
            row = "reflected", event.name, event.summary[:_QUIET_KEPT]
        case WorkspaceProgress():
            done = f"{event.completed:g} of {event.total:g} done"
            row = "progress", event.name, f"{event.workspace}: {done}"[:_QUIET_KEPT]
        case StateChanged(state="blocked"):
            row = "blocked", event.name, event.detail[:_QUIET_KEPT]
    return row


def _deed(action: str, target: str) -> str:
    """Describe an action and its target, `<repository>#<the first characters of a title>`, in words."""
    repo, _, title = target.partition("#")
    where = f" in {repo.rpartition('/')[2]}" if "/" in repo else ""
    cut = f"{title.rstrip(' ,.;:')}…" if len(title) >= _TARGET_CUT else title
    return f"{_NOUNS.get(action, action.replace('_', ' '))}{where}{': ' if cut else ''}{cut}"[:_QUIET_KEPT]
