"""What the names that give rights stood for when they were first seen: `.memory/pinned_names.json`.

A login, a handle and the name of a repository can pass to somebody else. What is kept is the id behind it: the numeric
id on GitHub, the DID on Bluesky. Where another id answers, the name gives no rights until the owner accepts that.
Written atomically after each change and kept across versions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from common.clock import Clock
from modules.runtime.journal.types import Entry
from modules.runtime.record_file import Moment, Record, RecordFile

FILE = "pinned_names.json"
Kind = Literal["github", "bluesky", "repository"]
_LOOP = "pinned-names"


class PinnedName(Record):
    """A name, and the id for which it stands; `found` is another id that answered since, and waits for the owner."""

    kind: Kind
    name: str
    id: str
    since: Moment
    found: str | None = None


class PinnedNames:
    """The store; `record` tells the owner. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock, record: Callable[[Entry], Awaitable[object]]) -> None:
        self._clock = clock
        self._record = record
        self._file = RecordFile(path, "names", PinnedName)
        self.notice = self._file.notice

    def get(self, kind: Kind, name: str) -> str | None:
        """Return the id for which a name stands; None where it was never seen."""
        known = self._file.records.get(_key(kind, name))
        return known.id if known else None

    def has_passed_on(self, kind: Kind, name: str) -> bool:
        """Return whether another id answered for a name, which waits for the owner. May be asked from any thread."""
        known = self._file.records.get(_key(kind, name))
        return known is not None and known.found is not None

    async def check(self, kind: Kind, name: str, answered: str) -> bool:
        """Return whether the id that answered for a name is the one for which it stands; the first one is kept.

        The owner is told once of another one. Raises `StorageError`.
        """
        key = _key(kind, name)
        known = self._file.records.get(key)
        if known is None:
            self._keep(PinnedName(kind=kind, name=name, id=answered, since=self._clock.now()))
            return True
        found = None if answered == known.id else answered
        if found != known.found:
            self._keep(known.replace(found=found))
            if found:
                await self._tell(name)
        return found is None

    def waiting(self) -> list[PinnedName]:
        """Return the names for which another id answered."""
        return [one for one in self._file.records.values() if one.found]

    def accept(self, name: str) -> bool:
        """Let a name stand for whoever answers now; return whether it waited for that. Raises `StorageError`."""
        waiting = [one for one in self.waiting() if one.name.lower() == name.lower()]
        for one in waiting:
            self._keep(one.replace(id=one.found, found=None, since=self._clock.now()))
        return bool(waiting)

    def _keep(self, one: PinnedName) -> None:
        self._file.records[_key(one.kind, one.name)] = one
        self._file.save()

    async def _tell(self, name: str) -> None:
        summary = f"{name} is somebody else now than when it was first seen: it gives no rights until you accept that"
        reason = f"/trust {name} accepts it"
        await self._record(Entry("decision", _LOOP, summary, line="warn", reason=reason))


def _key(kind: Kind, name: str) -> str:
    return f"{kind}:{name.lower()}"
