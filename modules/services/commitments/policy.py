"""What becomes of a commitment: when it is taken in, tried, given up, and left alone for a while after failures. Pure.

Values in, values out: nothing here reads a clock or a file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from common.clock import iso, parse_iso_or_none
from common.constants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from common.redact import LEAK
from common.schemas import GITHUB_COMMITMENT_TYPES, CommitmentType
from modules.services.agent.attention_list import AttentionNeeds, Failing, Item
from modules.services.commitments.naming import (
    LIVE,
    CommitmentRequest,
    CommitmentStatus,
    Enqueued,
    QueuedCommitment,
    free_id,
    repo_of,
    request_hash,
    title_of,
    work_key,
)

COMMITMENT_CHECK_INTERVAL_MS = 15 * SECOND_MS
COMMITMENT_MAX_ATTEMPTS = 3
COMMITMENT_UNDELIVERED_MAX_MS = 10 * MINUTE_MS
COMMITMENT_STALE_THRESHOLD_MS = 24 * HOUR_MS
COMMITMENT_IN_PROGRESS_TIMEOUT_MS = 10 * MINUTE_MS
COMMITMENT_RETRY_DELAYS_MS = (MINUTE_MS, 5 * MINUTE_MS)
COMMITMENT_RETENTION_MS = 7 * DAY_MS
COMMITMENT_REPEAT_WINDOW_MS = DAY_MS

TIMED_OUT = "Timed out after 10 minutes"
INTERRUPTED = "interrupted by the end of the process"
NEVER_DELIVERED = "the room never received the message that made it"
STALE = "not kept within 24 hours"

_YOUNG_MS = 90 * SECOND_MS
_A_MOMENT = timedelta(milliseconds=COMMITMENT_CHECK_INTERVAL_MS)
_OVER: frozenset[CommitmentStatus] = frozenset({"completed", "abandoned"})


def judged(
    request: CommitmentRequest,
    known: Mapping[str, QueuedCommitment],
    now: datetime,
    *,
    social_only: bool = False,
    leaks: bool = False,
) -> Enqueued:
    """What becomes of a request: a new commitment, the known one that makes it needless, or neither, with the reason.

    Args:
        request: as it was handed in.
        known: every commitment that is remembered, by its id.
        now: aware UTC.
        social_only: whether this life must not commit to anything that needs GitHub.
        leaks: whether the request contains a secret.

    """
    if social_only and request.type in GITHUB_COMMITMENT_TYPES:
        return Enqueued(None, new=False, reason=f"Social-only: {request.type} needs GitHub")
    if not request.description.strip():
        return Enqueued(None, new=False, reason="it says nothing")
    if leaks:
        return Enqueued(None, new=False, reason=LEAK)
    if found := duplicate_of(known.values(), request, now):
        return Enqueued(found[0], new=False, reason=found[1])
    commitment = QueuedCommitment(
        id=free_id(request, now, known),
        created_at=iso(now),
        description=request.description.strip(),
        source_thread_uri=request.source_thread_uri,
        source_reply_text=request.source_reply_text,
        params=request.params,
        source=request.source,
    )
    return Enqueued(commitment, new=True)


def duplicate_of(
    known: Iterable[QueuedCommitment], request: CommitmentRequest, now: datetime
) -> tuple[QueuedCommitment, str] | None:
    """The commitment that makes a new one needless, and why; None if there is none.

    It is one that still is to be fulfilled, or was fulfilled within a day: in the same words in the same conversation,
    or with the same work to do anywhere.
    """
    made_hash, made_work = request_hash(request), work_key(request)
    for one in known:
        if one.status not in LIVE and not _kept_lately(one, now):
            continue
        done = "was made already" if one.status == "completed" else "is committed to already"
        if one.id.rsplit("-", 1)[-1] == made_hash:
            return one, f"the same {done} in this conversation"
        if work_key(one) == made_work:
            return one, f"the same {request.type} {done}"
    return None


def is_of_room(commitment: QueuedCommitment, room_id: str) -> bool:
    """Whether it can have been made in that room; where either id is unknown, nothing speaks against it."""
    made_in = commitment.params.room_id
    return not (made_in and room_id) or made_in == room_id


def concerns_room(commitment: QueuedCommitment, *, is_trusted: bool) -> bool:
    """Whether the room that we are in may hear of a commitment, and has a say in it.

    One that was only found, whose words are strangers': of what was made in such a room, and of nothing else.
    """
    return is_trusted or commitment.params.found_room


def due_in_s(commitment: QueuedCommitment, now: datetime) -> float | None:
    """Seconds until a commitment is to be tried; None if it is not waiting to be.

    After a failure it waits a minute, then five; what the outbox put off waits until then. A time further ahead than
    any wait means that the clock was set back.
    """
    if commitment.status == "pending":
        earliest = parse_iso_or_none(commitment.not_before)
        wait = (earliest - now).total_seconds() if earliest else 0.0
        return wait if 0 < wait <= COMMITMENT_STALE_THRESHOLD_MS / SECOND_MS else 0.0
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
    """Return the commitment as a try begins."""
    return replace(commitment, status="in_progress", last_attempt_at=iso(now), not_before=None, waits_for=None)


def can_retry_now(commitment: QueuedCommitment, now: datetime) -> bool:
    """Whether it waits for another try after a failed one that was not a moment ago."""
    last = parse_iso_or_none(commitment.last_attempt_at)
    waits = commitment.status == "failed" and bool(due_in_s(commitment, now))
    return waits and last is not None and now - last >= _A_MOMENT


def retried_now(commitment: QueuedCommitment) -> QueuedCommitment:
    """Return the commitment, due at once."""
    return replace(commitment, last_attempt_at=None)


def kept(commitment: QueuedCommitment, result: Mapping[str, Any]) -> QueuedCommitment:
    """Return the commitment as fulfilled, with what came of it."""
    attempts = commitment.attempt_count + 1
    return replace(commitment, status="completed", attempt_count=attempts, error=None, result=result, waits_for=None)


def failed(commitment: QueuedCommitment, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
    """A try failed for good reason; the third such ends it."""
    attempts = commitment.attempt_count + 1
    status: CommitmentStatus = "abandoned" if attempts >= COMMITMENT_MAX_ATTEMPTS else "failed"
    result = partial if partial is not None else commitment.result
    return replace(commitment, status=status, attempt_count=attempts, error=error, result=result)


def delivered(commitment: QueuedCommitment) -> QueuedCommitment:
    """Return the commitment without its mark of an undelivered message: it may be carried out."""
    return replace(commitment, params=commitment.params.model_copy(update={"undelivered": False}))


def may_still_be_delivered(commitment: QueuedCommitment, now: datetime) -> bool:
    """Whether the room's record may still show the words."""
    return not _older(parse_iso_or_none(commitment.created_at), now, COMMITMENT_UNDELIVERED_MAX_MS)


def put_off(commitment: QueuedCommitment, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
    """A try came to nothing through no fault of the commitment: no attempt is used."""
    result = partial if partial is not None else commitment.result
    return replace(commitment, status="failed", error=error, result=result)


def waiting(
    commitment: QueuedCommitment, not_before: datetime, soonest: datetime, partial: Mapping[str, Any] | None = None
) -> QueuedCommitment:
    """The outbox asks to propose its act again at `not_before`: it waits until then, but at least until `soonest`."""
    result = partial if partial is not None else commitment.result
    return replace(commitment, status="pending", not_before=iso(max(not_before, soonest)), result=result)


def interrupted(commitment: QueuedCommitment) -> QueuedCommitment:
    """The process ended while it was being fulfilled: it is looked at again at once, and no attempt is used."""
    return replace(commitment, status="failed", error=INTERRUPTED, last_attempt_at=None)


def given_up(commitment: QueuedCommitment, reason: str) -> QueuedCommitment:
    """Return the commitment as abandoned, with the reason."""
    return replace(commitment, status="abandoned", error=reason)


def is_young(commitment: QueuedCommitment, now: datetime) -> bool:
    """Whether a try began within the last 90 seconds."""
    last = parse_iso_or_none(commitment.last_attempt_at)
    return commitment.status == "in_progress" and not _older(last, now, _YOUNG_MS)


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


def _older(moment: datetime | None, now: datetime, limit_ms: float) -> bool:
    """A moment that nobody can read is long past."""
    return moment is None or now - moment > timedelta(milliseconds=limit_ms)


REPO_COOLDOWN_FAILURES = 5
REPO_COOLDOWN_MS = 2 * DAY_MS

_ERROR_CHARS = 60
_NOTABLE = 2
_GOES_STALE = timedelta(milliseconds=COMMITMENT_STALE_THRESHOLD_MS)
_FAILED: frozenset[CommitmentStatus] = frozenset({"failed", "abandoned"})


@dataclass(frozen=True, slots=True)
class RepoCooldown:
    """Until `until` (ISO-8601 UTC) no commitment is begun in a repository; `reason` is a pattern."""

    owner: str
    repo: str
    until: Annotated[str, Field(alias="cooldownUntil")]
    reason: str = ""


def attention_of(commitments: Iterable[QueuedCommitment], now: datetime) -> AttentionNeeds:
    """Return what deserves attention: the live ones, each with when it goes stale, and what keeps failing.

    That is what failed more than once in one place of the commitments of the last 7 days. They were made in public, so
    nothing of them is private.
    """
    known = sorted(commitments, key=lambda one: one.created_at)
    failures = [one for one in known if one.status in _FAILED and _since(one.created_at, now, COMMITMENT_RETENTION_MS)]
    return AttentionNeeds(
        commitments=tuple(
            Item(title_of(one), one.status.replace("_", " "), at + _GOES_STALE if at else None)
            for one in known
            if one.status in LIVE
            for at in [parse_iso_or_none(one.created_at)]
        ),
        failing=tuple(
            Failing(kind, place, len(errors))
            for (kind, place), errors in sorted(_groups(failures).items())
            if len(errors) >= _NOTABLE
        ),
    )


def new_cooldowns(
    commitments: Iterable[QueuedCommitment], standing: Sequence[RepoCooldown], now: datetime
) -> list[RepoCooldown]:
    """The repositories in which five commitments failed lately, and that are not left alone already.

    What failed before a cooldown is older than that cooldown when it ends, so it does not begin another.
    """
    tried = [
        one
        for one in commitments
        if one.status in _FAILED
        and one.attempt_count
        and one.type in GITHUB_COMMITMENT_TYPES
        and _since(one.last_attempt_at, now, REPO_COOLDOWN_MS)
    ]
    until = iso(now + timedelta(milliseconds=REPO_COOLDOWN_MS))
    found: dict[tuple[str, str], RepoCooldown] = {}
    for (kind, place), errors in _groups(tried).items():
        owner, _, name = place.partition("/")
        if not name or len(errors) < REPO_COOLDOWN_FAILURES or cooldown_of(standing, owner, name, now):
            continue
        found[owner, name] = RepoCooldown(owner, name, until, _line(kind, place, errors))
    return list(found.values())


def cooldown_of(cooldowns: Iterable[RepoCooldown], owner: str, repo: str, now: datetime) -> RepoCooldown | None:
    """The cooldown under which a repository stands, if it does."""
    meant = f"{owner}/{repo}".lower()
    return next(
        (one for one in cooldowns if f"{one.owner}/{one.repo}".lower() == meant and not is_over(one, now)), None
    )


def is_over(cooldown: RepoCooldown, now: datetime) -> bool:
    """Whether it has ended; one whose end nobody can read has."""
    until = parse_iso_or_none(cooldown.until)
    return until is None or until <= now


def _groups(commitments: Iterable[QueuedCommitment]) -> Mapping[tuple[CommitmentType, str], list[str]]:
    groups: defaultdict[tuple[CommitmentType, str], list[str]] = defaultdict(list)
    for one in commitments:
        repo = repo_of(one.params)
        groups[one.type, repo.full_name.lower() if repo else ""].append((one.error or "unknown error")[:_ERROR_CHARS])
    return groups


def _line(kind: CommitmentType, place: str, errors: Sequence[str]) -> str:
    return f"{kind}:{place}: {len(errors)} failures ({'; '.join(dict.fromkeys(errors))})"


def _since(moment: str | None, now: datetime, window_ms: float) -> bool:
    at = parse_iso_or_none(moment)
    return at is not None and now - at <= timedelta(milliseconds=window_ms)
