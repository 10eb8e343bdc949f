"""The threads on GitHub that we were led to, as rows of `soul.db`. Each function is one step of a caller's transaction.

A row waits (`pending`) until what became of its thread is written, so that kill -9 loses none. What leads to the same
thread again after that lets it wait again. Times are ISO-8601 UTC: `at` as the network told it, `received_at` by our
own clock. Nothing that anybody wrote is kept here, only where it stands.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from common.clock import iso

ThreadSource = Literal[
    "github_notification", "bluesky_url", "bluesky_url_owner", "workspace_pr_review", "workspace_issue"
]
"""What led to a thread; of a `bluesky_url_owner` the owner wrote the post, a `workspace_issue` we found by looking."""


@dataclass(frozen=True, slots=True)
class NewThread:
    """What leads to a thread.

    Attributes:
        repo: `owner/name`.
        number: of the issue or pull request.
        kind: which of both it is.
        source: what led there.
        at: when that was written.
        reason: GitHub's word for why it told us, for example `mention`; "" if it did not.
        notice: the id of GitHub's notification; "" if there is none.
        uri: of the Bluesky post; "" if there is none.

    """

    repo: str
    number: int
    kind: Literal["issue", "pull"]
    source: ThreadSource
    at: str
    reason: str = ""
    notice: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class WaitingThread(NewThread):
    """A thread that waits, and when it was taken in."""

    received_at: str = ""

    @property
    def key(self) -> str:
        """`owner/name#number`, in lower case: the same for all that leads to the thread."""
        return f"{self.repo}#{self.number}".lower()

    @property
    def url(self) -> str:
        """Where people read it."""
        return f"https://github.com/{self.repo}/{'pull' if self.kind == 'pull' else 'issues'}/{self.number}"

    @property
    def cause_id(self) -> str:
        """The name under which journal and outbox know what led there, this one time."""
        return f"github:{self.key}/{self.source}/{self.received_at}"


_MORE_IN_THAT_SECOND = (
    "excluded.at = github_threads.at AND state <> 'pending' AND github_threads.source = 'github_notification'"
    " AND github_threads.received_at < strftime('%Y-%m-%dT%H:%M:%fZ', excluded.at, '+2 seconds')"
    " AND excluded.received_at >= strftime('%Y-%m-%dT%H:%M:%fZ', excluded.at, '+2 seconds')"
)
_COLUMNS = "repo, number, kind, source, at, reason, notice, uri"


def take_in(connection: sqlite3.Connection, threads: Iterable[NewThread], now: datetime) -> int:
    """Let these wait, but for those known to have led there at that time; returns how many are new.

    GitHub tells times in whole seconds. What was taken in within two seconds of its time is looked at once more after
    these, as something else may have been written in the same second.
    """
    before = connection.total_changes
    connection.executemany(
        f"INSERT INTO github_threads ({_COLUMNS}, received_at, state)"  # noqa: S608 - a constant
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')"
        " ON CONFLICT (repo, number, source) DO UPDATE SET kind = excluded.kind, at = excluded.at,"
        " reason = excluded.reason, notice = excluded.notice, uri = excluded.uri,"
        " received_at = CASE state WHEN 'pending' THEN github_threads.received_at ELSE excluded.received_at END,"
        " state = 'pending', outcome = ''"
        f" WHERE excluded.at > github_threads.at OR ({_MORE_IN_THAT_SECOND})",
        [
            (one.repo, one.number, one.kind, one.source, one.at, one.reason, one.notice, one.uri, iso(now))
            for one in threads
        ],
    )
    return connection.total_changes - before


def waiting(connection: sqlite3.Connection) -> list[WaitingThread]:
    """Return all that wait, the first taken in first."""
    query = f"SELECT {_COLUMNS}, received_at FROM github_threads WHERE state = 'pending' ORDER BY received_at, rowid"  # noqa: S608 - a constant
    return [WaitingThread(*row) for row in connection.execute(query)]


def leads_to(connection: sqlite3.Connection, repo: str, number: int) -> bool:
    """Return whether anything led us to a thread."""
    query = "SELECT 1 FROM github_threads WHERE repo = ? AND number = ? LIMIT 1"
    return connection.execute(query, (repo, number)).fetchone() is not None


def settle(
    connection: sqlite3.Connection, thread: WaitingThread, state: Literal["handled", "dropped"], outcome: str
) -> None:
    """What led there was met, or given up; `outcome` says how. What led there later goes on waiting."""
    connection.execute(
        "UPDATE github_threads SET state = ?, outcome = ? WHERE repo = ? AND number = ? AND source = ? AND at = ?",
        (state, outcome, thread.repo, thread.number, thread.source, thread.at),
    )


def forget_before(connection: sqlite3.Connection, moment: datetime) -> int:
    """Delete what was met before `moment`; returns how many rows went."""
    query = "DELETE FROM github_threads WHERE state <> 'pending' AND received_at < ?"
    return connection.execute(query, (iso(moment),)).rowcount
