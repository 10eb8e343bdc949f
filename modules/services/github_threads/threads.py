"""The threads on GitHub that something led us to, as rows of work of the kind `thread`.

A row is one source that leads to one thread. News from the same source that is later than the row lets it wait again.
No text that anybody wrote is stored here, only its address.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal

from adapters.github.types import Repo
from common.clock import Clock, iso, parse_iso
from modules.services.work import table
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork, WorkItem

THREAD = "thread"
"""The kind of the rows."""

ThreadSource = Literal[
    "github_notification", "bluesky_url", "bluesky_url_owner", "workspace_pr_review", "workspace_issue"
]
"""The kinds of leads to a thread. The owner wrote the post of a `bluesky_url_owner`; we find a `workspace_issue`."""

_RANKS = {"mention": 0, "assign": 0, "review_requested": 0}
"""GitHub's reasons for which somebody calls us; such threads go before others."""
_ONE_SECOND_IS_OVER = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class NewThread:
    """A lead to a thread: a notification, a post, or an issue that we found.

    Attributes:
        repo: `owner/name`.
        number: of the issue or pull request.
        kind: which of the two it is.
        source: what led there.
        at: when that was written, ISO-8601 UTC, from the network.
        reason: GitHub's reason for its notification, for example `mention`; "" without one.
        notice: the id of GitHub's notification; "" without one.
        uri: of the Bluesky post; "" without one.
        line: the id of the comment that begins a talk about a line of a pull request; 0 for the thread itself.

    """

    repo: str
    number: int
    kind: Literal["issue", "pull"]
    source: ThreadSource
    at: str
    reason: str = ""
    notice: str = ""
    uri: str = ""
    line: int = 0

    @property
    def place(self) -> Repo:
        """Its repository."""
        owner, _, name = self.repo.partition("/")
        return Repo(owner, name)

    @property
    def key(self) -> str:
        """`owner/name#number`, in lower case: the same for all that leads to the thread."""
        return f"{self.repo}#{self.number}".lower()

    @property
    def talk_key(self) -> str:
        """The key with the talk about a line, if it is one: `owner/name#7/line-12`."""
        return f"{self.key}/line-{self.line}" if self.line else self.key

    def url_at(self, address: str) -> str:
        """Return its web address, on the service whose pages begin with `address`."""
        return f"{address}/{self.repo}/{'pull' if self.kind == 'pull' else 'issues'}/{self.number}"


@dataclass(frozen=True, slots=True)
class WaitingThread(NewThread):
    """A waiting thread, and the name of its cause in journal and outbox for this one time."""

    cause_id: str = ""


@dataclass(frozen=True, slots=True)
class ThreadInbox:
    """Lets threads wait, each for `jitter_s`, so that SOULs that are called together do not answer at once."""

    work: WorkTable
    clock: Clock
    jitter_s: float

    async def take_in(self, new: Iterable[NewThread]) -> int:
        """Let these wait, except those known to have led there at that time; return how many are new."""
        now = self.clock.now()
        return await self.work.add(*(self._row(one, now) for one in new))

    def _row(self, thread: NewThread, now: datetime) -> NewWork:
        key = f"{thread.talk_key}/{thread.source}"
        return NewWork(
            THREAD,
            key,
            asdict(thread),
            author=thread.uri.removeprefix("at://").partition("/")[0],
            importance="owner" if thread.source == "bluesky_url_owner" else "stranger",
            not_before=now + timedelta(seconds=self.jitter_s),
            cause_id=f"github:{key}/{iso(now)}",
            rank=_RANKS.get(thread.reason, 1),
            version=_version(thread, now),
        )


def _version(thread: NewThread, now: datetime) -> str:
    """Return the version that distinguishes later news of a thread from earlier ones.

    GitHub's times are in whole seconds. A thread that was stored within two seconds of its time is examined once more
    after these, as something else may have been written in the same second.
    """
    return thread.at if now < parse_iso(thread.at) + _ONE_SECOND_IS_OVER else f"{thread.at}."


def thread_of(item: WorkItem) -> WaitingThread:
    """Return the thread of a row."""
    return WaitingThread(**item.payload, cause_id=item.cause_id)


def leads_to(connection: sqlite3.Connection, repo: str, number: int) -> bool:
    """Return whether anything led us to a thread, as a step of a caller's transaction."""
    return table.has(connection, THREAD, f"{repo}#{number}/".lower())
