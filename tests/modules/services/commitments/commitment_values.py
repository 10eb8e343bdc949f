"""Commitments for tests, and helpers for their queue."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.clock import FakeClock, iso
from common.schemas import CommitmentType
from modules.runtime.database.database import Database
from modules.runtime.events import Event, Publish
from modules.services.commitments.acts import CommitmentAbandoned
from modules.services.commitments.naming import (
    CommitmentRequest,
    CommitmentSource,
    CommitmentStatus,
    QueuedCommitment,
    read_params,
)
from modules.services.commitments.policy import due_in_s
from modules.services.commitments.queue import FILE, CommitmentQueue
from modules.services.work.table import WorkTable

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ROOM = "space://conversation/0123456789abcdef"


def wanted(
    description: str = "Release checklist",
    /,
    *,
    kind: CommitmentType = "create_issue",
    thread: str = ROOM,
    source: CommitmentSource = "space",
    text: str = "I'll open it now.",
    **params: Any,
) -> CommitmentRequest:
    on_github = {"owner": "acme", "repoName": "site", "hostNamedRepo": True}
    base: dict[str, Any] = on_github if kind != "post_bluesky" else {}
    return CommitmentRequest(description, thread, text, read_params(kind, {**base, **params}), source)


def queued(
    *,
    status: CommitmentStatus = "pending",
    attempts: int = 0,
    created: datetime = NOON,
    last: datetime | None = None,
    error: str | None = None,
    until: datetime | None = None,
    name: str = "0000000000000000",
    **more: Any,
) -> QueuedCommitment:
    like = wanted(more.pop("description", "Release checklist"), **more)
    return QueuedCommitment(
        id=f"commitment-{int(created.timestamp() * 1000)}-{name}",
        created_at=iso(created),
        description=like.description,
        source_thread_uri=like.source_thread_uri,
        source_reply_text=like.source_reply_text,
        params=like.params,
        source=like.source,
        status=status,
        attempt_count=attempts,
        last_attempt_at=iso(last) if last else None,
        error=error,
        not_before=iso(until) if until else None,
    )


async def taken(queue: CommitmentQueue, *args: Any, **more: Any) -> QueuedCommitment:
    commitment = (await queue.enqueue_commitment(wanted(*args, **more))).commitment
    assert commitment is not None
    return commitment


@dataclass
class Opened:
    """Opens the queue of one folder; each call stands for a new start of the process."""

    folder: Path
    database: Database
    clock: FakeClock

    @property
    def table(self) -> WorkTable:
        return WorkTable(self.database, self.clock)

    async def __call__(self, **more: Any) -> CommitmentQueue:
        queue = CommitmentQueue(self.folder, self.table, self.clock, **more)
        await queue.open()
        return queue

    def on_disk(self) -> dict[str, str]:
        """Return the contents of all files, the database among them, by file name."""
        return {one.name: one.read_bytes().decode("utf-8", "replace") for one in _files(self.folder)}


def _files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_file()]


def noting(abandoned: list[str]) -> Publish:
    """Return a `Publish` that adds the ids of abandoned commitments to `abandoned`."""

    def note(event: Event) -> None:
        if isinstance(event, CommitmentAbandoned):
            abandoned.append(event.commitment.id)

    return note


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE).read_text().splitlines()]


def due(queue: CommitmentQueue, clock: FakeClock) -> list[str]:
    return [one.id for one in queue.all() if due_in_s(one, clock.now()) == 0]
