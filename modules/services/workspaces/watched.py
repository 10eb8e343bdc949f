"""The workspaces that the SOUL watches: `.memory/watched_workspaces.json`.

Written atomically after each change and kept across versions; a crash loses at most the change it interrupted. What
other programs wrote into an entry stays in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypedDict, Unpack

from adapters.github.types import Repo
from common.clock import Clock, iso, parse_iso_or_none
from modules.runtime.record_file import FileRecord, Moment, RecordFile

MOST_WATCHED = 50
GONE_FOR = timedelta(days=7)
"""How long a workspace is missed before it is watched no longer."""
_STOPPED = "unwatchedAt"


class WatchedWorkspace(FileRecord):
    """A workspace.

    `discovered_in_thread` is the root of the thread on Bluesky in which it was first named; `active_plan_issues` are
    the numbers of its open plans at `last_polled`, when they were last read. `last_plan_synthesis_attempt` and
    `last_health_check_attempt` tell when a plan was last looked for in its issues, and the work in it last judged.
    Issues that nobody touched after `no_work_before` hold no work, as the model said when it read them.
    `finished_issue_number` is the issue that says that it is finished; None for one that is not. Once such an
    issue was closed, no other is made before `no_sentinel_before`. `undoable_told` are the plans of which the owner was
    told that they have tasks which this SOUL cannot do. `requested` marks a repository that is watched because the
    owner, or the host of a room, asked for work in it: only that work is done there.
    """

    owner: str
    repo: str
    url: str
    discovered_at: Moment
    discovered_in_thread: str | None = None
    last_polled: Moment | None = None
    active_plan_issues: tuple[int, ...] = ()
    last_plan_synthesis_attempt: Moment | None = None
    last_health_check_attempt: Moment | None = None
    no_work_before: Moment | None = None
    finished_issue_number: int | None = None
    no_sentinel_before: Moment | None = None
    undoable_told: tuple[int, ...] = ()
    requested: bool = False


class WorkspaceChange(TypedDict, total=False):
    """What can change of a workspace that is watched; the fields are those of `WatchedWorkspace`."""

    last_polled: datetime
    active_plan_issues: tuple[int, ...]
    last_plan_synthesis_attempt: datetime | None
    last_health_check_attempt: datetime | None
    no_work_before: datetime | None
    finished_issue_number: int | None
    no_sentinel_before: datetime | None
    undoable_told: tuple[int, ...]


class WatchedWorkspaces:
    """The store. `notice` is a line for the owner if the file was not as expected.

    The pages of repositories lie at `address`.
    """

    def __init__(self, path: Path, clock: Clock, address: str) -> None:
        self._clock = clock
        self._address = address
        self._file = RecordFile(path, "workspaces", WatchedWorkspace)
        self.notice = self._file.notice
        found: dict[str, WatchedWorkspace] = {}
        for one in self.all():
            found.setdefault(_key(Repo(one.owner, one.repo)), one)
        self._file.records = found

    def all(self) -> list[WatchedWorkspace]:
        """All that are watched, those that were found first in front."""
        return sorted(self._file.records.values(), key=lambda one: one.discovered_at)

    def get(self, repo: Repo) -> WatchedWorkspace | None:
        """What is known of a repository, if it is watched."""
        return self._file.records.get(_key(repo))

    def names(self) -> frozenset[str]:
        """Return the repositories that are watched, `owner/name` in lower case. May be asked from any thread."""
        return frozenset(self._file.records)

    def default(self) -> Repo | None:
        """Return the only workspace, or the only requested repository if there is no workspace; None for several."""
        watched = self.all()
        meant = [one for one in watched if not one.requested] or watched
        return Repo(meant[0].owner, meant[0].repo) if len(meant) == 1 else None

    def watch(self, repo: Repo, thread_uri: str | None = None, *, requested: bool = False) -> bool:
        """Watch a workspace, and remember the thread that it was named in; return whether it is new.

        Nothing changes where it is watched already, but for a thread where none was known; nothing is added beyond
        `MOST_WATCHED`. `requested` is stored for a new one. Raises `StorageError`.
        """
        known = self.get(repo)
        if known is None and len(self._file.records) >= MOST_WATCHED:
            return False
        if known and (known.discovered_in_thread or not thread_uri):
            return False
        self._file.records[_key(repo)] = (
            known.replace(discovered_in_thread=thread_uri)
            if known
            else WatchedWorkspace(
                owner=repo.owner,
                repo=repo.name,
                url=f"{self._address}/{repo.full_name}",
                discovered_at=self._clock.now(),
                discovered_in_thread=thread_uri,
                requested=requested,
            )
        )
        self._file.save()
        return known is None

    def unwatch(self, repo: Repo) -> bool:
        """Stop watching a repository, and note when; return whether it was watched. Raises `StorageError`."""
        known = self._file.records.pop(_key(repo), None)
        stopped = {**self._stopped(), _key(repo): self._clock.now()}
        newest = sorted(stopped.items(), key=lambda one: one[1])[-MOST_WATCHED:]
        self._file.rest[_STOPPED] = {name: iso(at) for name, at in newest}
        self._file.save()
        return known is not None

    def stopped_at(self, repo: Repo) -> datetime | None:
        """Return when a repository was last unwatched; None where it was not, or is one of many and long ago."""
        return self._stopped().get(_key(repo))

    def _stopped(self) -> dict[str, datetime]:
        kept = self._file.rest.get(_STOPPED)
        found = kept.items() if isinstance(kept, dict) else ()
        return {name: at for name, text in found if (at := parse_iso_or_none(text if isinstance(text, str) else ""))}

    def unwatch_gone(self, repo: Repo) -> bool:
        """Watch a workspace no longer that GitHub does not find; return whether that is so.

        One that was read within a week stays, and one that is finished. Raises `StorageError`.
        """
        known = self.get(repo)
        if known is None or known.finished_issue_number is not None:
            return False
        if self._clock.since(known.last_polled or known.discovered_at) < GONE_FOR:
            return False
        del self._file.records[_key(repo)]
        self._file.save()
        return True

    def note_plans(self, repo: Repo, numbers: Sequence[int]) -> None:
        """Note that the open plans of a workspace were read just now. Raises `StorageError`."""
        if self.get(repo):
            now = self._clock.now()
            self._file.rest["lastFullPoll"] = iso(now)
            self.note(repo, last_polled=now, active_plan_issues=tuple(numbers))

    def note(self, repo: Repo, **changes: Unpack[WorkspaceChange]) -> None:
        """Note what changed of a workspace; nothing where it is not watched. None takes a value away.

        Raises `StorageError`.
        """
        if known := self.get(repo):
            self._file.records[_key(repo)] = known.replace(**changes)
            self._file.save()

    def one_save(self) -> AbstractContextManager[None]:
        """Return a context in which many changes are written once, on leaving."""
        return self._file.one_save()

    def is_thread_of_one(self, root_uri: str) -> bool:
        """Whether a workspace was first named in the thread under this root."""
        return any(one.discovered_in_thread == root_uri for one in self._file.records.values())


def _key(repo: Repo) -> str:
    return repo.full_name.lower()
