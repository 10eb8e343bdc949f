"""What becomes of a commitment, as pure rules: when two are the same, when it is tried, when it is given up.

Values in, values out: nothing here reads a clock or a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from common.clock import iso, parse_iso_or_none
from common.constants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from common.schemas import GITHUB_COMMITMENT_TYPES
from common.text.strings import normalized_title
from common.text.utf16 import u16_slice
from modules.services.commitments.naming import repo_key
from modules.services.commitments.types import LIVE, CommitmentRequest, CommitmentStatus, QueuedCommitment

COMMITMENT_CHECK_INTERVAL_MS = 15 * SECOND_MS
COMMITMENT_MAX_ATTEMPTS = 3
COMMITMENT_UNHEARD_MAX_MS = 10 * MINUTE_MS
COMMITMENT_STALE_THRESHOLD_MS = 24 * HOUR_MS
COMMITMENT_IN_PROGRESS_TIMEOUT_MS = 10 * MINUTE_MS
COMMITMENT_RETRY_DELAYS_MS = (MINUTE_MS, 5 * MINUTE_MS)
COMMITMENT_RETENTION_MS = 7 * DAY_MS
COMMITMENT_REPEAT_WINDOW_MS = DAY_MS

HOST_REQUEST = "hostWish"
"""Key of `params`: true when the host of a room asked for it."""

HOST_NAMED = "hostNamedRepo"
"""Key of `params`: true when the host of a room named the repository in its own words."""

FOUND_ROOM = "foundRoom"
"""Key of `params`: true when it was made in a room that we came upon and the owner never named."""

UNHEARD = "unheard"
"""Key of `params`: true until the room has echoed the words in which it was made."""

ROOM_ID = "roomId"
"""Key of `params`: the id of the room in which it was made; absent where that room told none."""

TIMED_OUT = "Timed out"
INTERRUPTED = "interrupted by the end of the process"
NEVER_HEARD = "the room never heard the words in which it was promised"
STALE = "not kept within 24 hours"

_TARGET_UNITS = 50
_HASH_CHARS = 16
_A_MOMENT = timedelta(milliseconds=COMMITMENT_CHECK_INTERVAL_MS)
_OVER: frozenset[CommitmentStatus] = frozenset({"completed", "abandoned"})

WorkKey = tuple[str, str, str]


def generate_commitment_hash(source_thread_uri: str, description: str) -> str:
    """16 hex digits by which two commitments of one conversation are the same; case and white space do not matter."""
    said = " ".join(description.lower().split())
    return hashlib.sha256(f"{source_thread_uri}:{said}".encode(errors="replace")).hexdigest()[:_HASH_CHARS]


def commitment_id(request: CommitmentRequest, now: datetime) -> str:
    """`commitment-<epoch ms>-<hash>`."""
    return f"commitment-{int(now.timestamp() * SECOND_MS)}-{_hash_of(request)}"


def claim_target(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """What was claimed when the commitment was made, and is claimed again while it is fulfilled."""
    if target := said(commitment.params, "target"):
        return target
    owner, name = said(commitment.params, "owner"), said(commitment.params, "repoName", "repo")
    repo = f"{owner}/{name}" if owner and name else "unknown"
    return f"{repo}#{u16_slice(title_of(commitment), _TARGET_UNITS)}"


def title_of(commitment: QueuedCommitment | CommitmentRequest) -> str:
    """The title of a commitment; the description where there is none."""
    return said(commitment.params, "title") or commitment.description


def said(params: Mapping[str, Any], *names: str) -> str:
    """The first of these parameters that says something, trimmed; "" if none does."""
    for name in names:
        value = params.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def work_key(commitment: QueuedCommitment | CommitmentRequest) -> WorkKey:
    """What a commitment will make, however it was worded: kind, place, and normalized title or words."""
    params = commitment.params
    match commitment.type:
        case "comment_issue":
            text = said(params, "body", "description", "content") or commitment.description
            place = f"{repo_key(params)}#{params.get('issueNumber', '')}"
        case "post_bluesky":
            text, place = said(params, "content", "text", "description") or commitment.description, ""
        case _:
            text, place = title_of(commitment), repo_key(params)
    return commitment.type, place, normalized_title(text)


def duplicate_of(
    known: Iterable[QueuedCommitment], request: CommitmentRequest, now: datetime
) -> tuple[QueuedCommitment, str] | None:
    """The commitment that makes a new one needless, and why; None if there is none.

    It is one that still is to be fulfilled, or was fulfilled within a day: in the same words in the same conversation,
    or with the same work to do anywhere.
    """
    request_hash, request_work = _hash_of(request), work_key(request)
    for one in known:
        if one.status not in LIVE and not _kept_lately(one, now):
            continue
        done = "was kept already" if one.status == "completed" else "is promised already"
        if one.id.rsplit("-", 1)[-1] == request_hash:
            return one, f"the same {done} in this conversation"
        if work_key(one) == request_work:
            return one, f"the same {request.type} {done}"
    return None


def is_of_room(commitment: QueuedCommitment, room_id: str) -> bool:
    """Whether it can have been made in that room; where either id is unknown, nothing speaks against it."""
    made_in = commitment.params.get(ROOM_ID)
    return not (made_in and room_id) or made_in == room_id


def refusal(request: CommitmentRequest, *, social_only: bool) -> str:
    """Why this life cannot commit to that, or ""."""
    if social_only and request.type in GITHUB_COMMITMENT_TYPES:
        return f"Social-only: {request.type} needs GitHub"
    return "" if request.description.strip() else "it says nothing"


def due_in_s(commitment: QueuedCommitment, now: datetime) -> float | None:
    """Seconds until a commitment is to be tried; None if it is not waiting to be.

    After a failure it waits a minute, then five. A time further ahead than that means that the clock was set back.
    """
    if commitment.status == "pending":
        return 0.0
    if commitment.status != "failed" or commitment.attempt_count >= COMMITMENT_MAX_ATTEMPTS:
        return None
    last = parse_iso_or_none(commitment.last_attempt_at)
    if last is None:
        return 0.0
    step = min(max(commitment.attempt_count, 1), len(COMMITMENT_RETRY_DELAYS_MS)) - 1
    delay = COMMITMENT_RETRY_DELAYS_MS[step] / SECOND_MS
    left = delay - (now - last).total_seconds()
    return left if 0 < left <= delay else 0.0


def started(commitment: QueuedCommitment, now: datetime) -> QueuedCommitment:
    """A try begins."""
    return replace(commitment, status="in_progress", last_attempt_at=iso(now))


def can_retry_now(commitment: QueuedCommitment, now: datetime) -> bool:
    """Whether it waits for another try, and the last was not a moment ago."""
    last = parse_iso_or_none(commitment.last_attempt_at)
    return bool(due_in_s(commitment, now)) and last is not None and now - last >= _A_MOMENT


def retried_now(commitment: QueuedCommitment) -> QueuedCommitment:
    """It is tried at once."""
    return replace(commitment, last_attempt_at=None)


def kept(commitment: QueuedCommitment, result: Mapping[str, Any]) -> QueuedCommitment:
    """It is done."""
    attempts = commitment.attempt_count + 1
    return replace(commitment, status="completed", attempt_count=attempts, error=None, result=result)


def failed(commitment: QueuedCommitment, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
    """A try failed for good reason; the third such ends it."""
    attempts = commitment.attempt_count + 1
    status: CommitmentStatus = "abandoned" if attempts >= COMMITMENT_MAX_ATTEMPTS else "failed"
    result = partial if partial is not None else commitment.result
    return replace(commitment, status=status, attempt_count=attempts, error=error, result=result)


def heard(commitment: QueuedCommitment) -> QueuedCommitment:
    """The room has heard the words: it may be kept."""
    return replace(commitment, params={name: value for name, value in commitment.params.items() if name != UNHEARD})


def may_be_heard_still(commitment: QueuedCommitment, now: datetime) -> bool:
    """Whether the room's record may still show the words."""
    return not _older(parse_iso_or_none(commitment.created_at), now, COMMITMENT_UNHEARD_MAX_MS)


def put_off(commitment: QueuedCommitment, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
    """A try came to nothing through no fault of the commitment: no attempt is used."""
    result = partial if partial is not None else commitment.result
    return replace(commitment, status="failed", error=error, result=result)


def interrupted(commitment: QueuedCommitment) -> QueuedCommitment:
    """The process ended while it was being fulfilled: it is looked at again at once, and no attempt is used."""
    return replace(commitment, status="failed", error=INTERRUPTED, last_attempt_at=None)


def given_up(commitment: QueuedCommitment, reason: str) -> QueuedCommitment:
    """It will not be kept."""
    return replace(commitment, status="abandoned", error=reason)


def is_timed_out(commitment: QueuedCommitment, now: datetime) -> bool:
    """Whether a try has taken longer than ten minutes."""
    last = parse_iso_or_none(commitment.last_attempt_at) or parse_iso_or_none(commitment.created_at)
    return commitment.status == "in_progress" and _older(last, now, COMMITMENT_IN_PROGRESS_TIMEOUT_MS)


def is_stale(commitment: QueuedCommitment, now: datetime) -> bool:
    """Whether it was made so long ago that nobody waits for it any more."""
    return commitment.status in LIVE and _older(
        parse_iso_or_none(commitment.created_at), now, COMMITMENT_STALE_THRESHOLD_MS
    )


def is_forgotten(commitment: QueuedCommitment, now: datetime) -> bool:
    """Whether it is over, and so old that it need not be kept."""
    return commitment.status in _OVER and _older(parse_iso_or_none(commitment.created_at), now, COMMITMENT_RETENTION_MS)


def ended_at(commitment: QueuedCommitment) -> datetime | None:
    """When the last try began, the nearest that is known of when it ended."""
    return parse_iso_or_none(commitment.last_attempt_at) or parse_iso_or_none(commitment.created_at)


def _kept_lately(commitment: QueuedCommitment, now: datetime) -> bool:
    at = ended_at(commitment)
    return commitment.status == "completed" and at is not None and not _older(at, now, COMMITMENT_REPEAT_WINDOW_MS)


def _hash_of(request: CommitmentRequest) -> str:
    return generate_commitment_hash(request.source_thread_uri, request.description)


def _older(moment: datetime | None, now: datetime, limit_ms: float) -> bool:
    """A moment that nobody can read is long past."""
    return moment is None or now - moment > timedelta(milliseconds=limit_ms)
