"""The ids of names that give rights, as first seen (`.memory/pinned_names.json`); checks that a repository is the same.

A login, a handle and the name of a repository can pass to somebody else, so the id behind it is stored: the numeric id
on GitHub, the DID on Bluesky. If another id answers, the name gives no rights until the owner accepts it. Written
atomically after each change and kept across versions.

A repository can be deleted and recreated by somebody else, or be transferred: then its old name is refused until the
owner accepts the new repository. The check is made before an act on GitHub is admitted, and again before it leaves. One
that its owner renamed is followed. All names pinned to one id are names of one repository: what was decided under an
earlier one holds under the present one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.types import Repo, Repository
from common.clock import Clock, iso
from common.result import LASTING, ApiResult, Err, Ok, answering
from modules.runtime.journal.types import Entry
from modules.runtime.record_file import FileRecord, Moment, RecordFile

FILE = "pinned_names.json"
Kind = Literal["github", "bluesky", "repository"]
Acceptance = Literal["accepted", "none", "several", "another"]
"""The result of an acceptance; only `accepted` changes anything. `several`: more than one kind waits under the name.

`another`: another id answers than the one that the owner was told; now they are told of that one.
"""
_LOOP = "pinned-names"
_NOBODY = frozenset({"", "0"})
"""The ids of no account at all: no name is ever pinned to them."""


class PinnedName(FileRecord):
    """A name and its id; `found` is another id that answered since and waits for the owner.

    `told` is the other id that the owner was told last; no other one can be accepted.
    """

    kind: Kind
    name: str
    id: str
    since: Moment
    found: str | None = None
    told: str | None = None

    @property
    def label(self) -> str:
        """The name with its kind, which distinguishes it from the same name of another kind."""
        return f"{self.kind}:{self.name}"


class PinnedNames:
    """Stores the names; `record` tells the owner. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock, record: Callable[[Entry], Awaitable[object]]) -> None:
        self._clock = clock
        self._record = record
        self._file = RecordFile(path, "names", PinnedName)
        self.notice = self._file.notice

    def get(self, kind: Kind, name: str) -> str | None:
        """Return the id of a name; None if it was never seen."""
        known = self._file.records.get(_key(kind, name))
        return known.id if known else None

    def same_as(self, kind: Kind, name: str) -> list[str]:
        """Return all names that are pinned to the id of a name, that name first."""
        pinned, own = self.get(kind, name), name.lower()
        same = (one for one in self._file.records.values() if (one.kind, one.id) == (kind, pinned))
        return [name, *(one.name for one in same if one.name.lower() != own)]

    def since(self, kind: Kind, name: str) -> datetime | None:
        """Return since when a name has its id; None if it was never seen."""
        known = self._file.records.get(_key(kind, name))
        return known.since if known else None

    def has_passed_on(self, kind: Kind, name: str) -> bool:
        """Return whether another id answered for a name, which waits for the owner. May be called from any thread."""
        known = self._file.records.get(_key(kind, name))
        return known is not None and known.found is not None

    async def check(self, kind: Kind, name: str, answered: str) -> bool:
        """Return whether the id that answered for a name is its pinned one; the first id is pinned.

        The owner is told once of another id. An id of no account returns False. Raises `StorageError`.
        """
        if answered in _NOBODY:
            return False
        key = _key(kind, name)
        known = self._file.records.get(key)
        if known is None:
            self._keep(PinnedName(kind=kind, name=name, id=answered, since=self._clock.now()))
            return True
        found = None if answered == known.id else answered
        if found != known.found:
            known = known.replace(found=found, told=known.told or found)
            self._keep(known)
            if found:
                await self._tell(known)
        return found is None

    def waiting(self) -> list[PinnedName]:
        """Return the names for which another id answered."""
        return [one for one in self._file.records.values() if one.found and one.found not in _NOBODY]

    async def accept(self, name: str) -> Acceptance:
        """Pin a name, or `kind:name`, to the id that the owner was told. Raises `StorageError`."""
        waiting = [one for one in self.waiting() if name.lower() in {one.name.lower(), one.label.lower()}]
        if len(waiting) != 1:
            return "several" if waiting else "none"
        (one,) = waiting
        if one.found != one.told:
            one = one.replace(told=one.found)
            self._keep(one)
            await self._tell(one)
            return "another"
        self._keep(one.replace(id=one.found, found=None, told=None, since=self._clock.now()))
        return "accepted"

    def _keep(self, one: PinnedName) -> None:
        self._file.records[_key(one.kind, one.name)] = one
        self._file.save()

    async def _tell(self, one: PinnedName) -> None:
        who = f"{one.label} is somebody else now ({one.found}) than when it was first seen ({one.id})"
        summary = f"{who}: it gives no rights until you accept that"
        await self._record(Entry("decision", _LOOP, summary, line="warn", reason=f"/trust {one.label} accepts it"))


def _key(kind: Kind, name: str) -> str:
    return f"{kind}:{name.lower()}"


@dataclass(frozen=True, slots=True)
class AnotherRepositoryErr(Err):
    """The name now stands for another repository than when it was first seen."""


@dataclass(frozen=True, slots=True)
class RepositoryIdentity:
    """Compares the current numeric id of a repository with the first one, which is stored in `names`."""

    github: GitHub
    names: PinnedNames

    @answering
    async def check(self, repo: Repo, *, follow: bool = False) -> ApiResult[Repository]:
        """Return the repository under this name, or an `AnotherRepositoryErr` if it is another one.

        With `follow`, one that its owner renamed is returned, under its present name. Raises `StorageError`.
        """
        answered, name = (await self.github.get_repository(repo)).or_raise(), repo.full_name
        if answered.full_name.lower() != name.lower():
            is_renamed = follow and answered.repo.owner.lower() == repo.owner.lower()
            if not is_renamed or not await self.names.check("repository", name, str(answered.id)):
                return AnotherRepositoryErr(f"{name} leads to {answered.full_name} now", "invalid")
            name = answered.full_name
        if not await self.names.check("repository", name, str(answered.id)):
            return AnotherRepositoryErr(
                f"{name} is another repository than when it was first seen; /trust repository:{name} accepts it",
                "invalid",
            )
        return Ok(answered)

    async def names_of(self, repo: Repo) -> list[str]:
        """Return the names under which this repository was seen, `repo` first; a new name is pinned before.

        Raises `StorageError`, and `Transient` if a new name cannot be read now.
        """
        if self.names.get("repository", repo.full_name) is None:
            (await self.check(repo)).or_else(None, *LASTING)
        return self.names.same_as("repository", repo.full_name)

    def since(self, name: str) -> str:
        """Return since when the name stands for its current repository, ISO-8601 UTC; "" if it is not known.

        Whatever was said about the name before was about another repository.
        """
        since = self.names.since("repository", name)
        return iso(since) if since else ""
