"""Commitments to test with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from common.clock import iso
from common.schemas import CommitmentType
from modules.services.commitments.params import read_params
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.types import CommitmentRequest, CommitmentSource, CommitmentStatus, QueuedCommitment

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


def taken(queue: CommitmentQueue, *args: Any, **more: Any) -> QueuedCommitment:
    commitment = queue.enqueue_commitment(wanted(*args, **more)).commitment
    assert commitment is not None
    return commitment
