"""The rules for commitments: when one is accepted, tried and given up, and when a repository gets a cooldown. Pure.

Nothing here reads a clock or a file.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from adapters.atproto.records import parse_at_uri
from common.clock import iso, parse_iso_or_none
from common.constants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from common.redact import LEAK
from common.schemas import GITHUB_COMMITMENT_TYPES, CommitmentType
from modules.services.agent.attention_list import AttentionNeeds, Failing, Item
from modules.services.commitments.naming import (
    LIVE,
    Asker,
    CommitmentRequest,
    CommitmentStatus,
    Enqueued,
    QueuedCommitment,
    WorkKey,
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
    """Return the answer to a request: a new commitment, a known one that makes it needless, or only a reason.

    Args:
        request: the request.
        known: every stored commitment, by its id.
        now: aware UTC.
        social_only: whether this SOUL must not commit to anything that needs GitHub.
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
    """Return the commitment that makes a new one needless, and why; None if there is none.

    It is still to be fulfilled, or was fulfilled within a day, and has the same words in the same conversation or the
    same work to do anywhere.
    """
    made_hash, made_work = request_hash(request), work_key(request)
    for one in known:
        if one.status not in LIVE and not _kept_lately(one, now):
            continue
        done = "was made already" if one.status == "completed" else "is committed to already"
        if one.id.rsplit("-", 1)[-1] == made_hash and _may_be_one_work(work_key(one), made_work):
            return one, f"the same {done} in this conversation"
        if work_key(one) == made_work:
            return one, f"the same {request.type} {done}"
    return None


def asked_again(commitment: QueuedCommitment, request: CommitmentRequest) -> QueuedCommitment:
    """Return a commitment with somebody else who asks for the same; one that was kept is due again, to tell them.

    Each person, and the room, is told once; a room learns at once of what was kept already.
    """
    is_told = _asker(request.source_thread_uri) in {_asker(one.source_thread_uri) for one in commitment.by_asker}
    if is_told or (commitment.status == "completed" and request.source == "space"):
        return commitment
    params = request.params
    asker = Asker(
        request.source_thread_uri, request.source_reply_text, request.source, params.room_id, params.found_room
    )
    status: CommitmentStatus = "pending" if commitment.status == "completed" else commitment.status
    return replace(commitment, status=status, askers=(*commitment.askers, asker))


def without_asker(commitment: QueuedCommitment, did: str) -> QueuedCommitment | None:
    """Return a commitment as it was made to everybody except the account `did`; None if nobody else asked for it.

    The next asker takes the place of the first one. What a host or the owner asked for stays theirs.
    """
    first, *others = commitment.by_asker
    is_theirs = _asker(first.source_thread_uri) == did and not first.params.host_request
    left = [*(() if is_theirs else (first,)), *(one for one in others if _asker(one.source_thread_uri) != did)]
    further = {one.source_thread_uri for one in left[1:]}
    askers = tuple(one for one in commitment.askers if one.source_thread_uri in further)
    return replace(left[0], askers=askers) if left else None


def _asker(source_thread_uri: str) -> str:
    """Return the account that asked in a post; "" for a room."""
    at = parse_at_uri(source_thread_uri)
    return at.repo if at else ""


def _may_be_one_work(one: WorkKey, other: WorkKey) -> bool:
    """Return whether the same words may mean the same work: both are posts, or in one place as far as both name it."""
    if "post_bluesky" in {one[0], other[0]}:
        return one[0] == other[0]
    return all(ours == theirs or not (ours and theirs) for ours, theirs in zip(_parts(one), _parts(other), strict=True))


def _parts(work: WorkKey) -> tuple[str, str, str]:
    """Return the owner, the name and the issue of the place of a work; "" for each that is not named."""
    repo, _, number = work[1].partition("#")
    owner, _, name = repo.rpartition("/")
    return owner, name, number


def is_of_room(commitment: QueuedCommitment, room_id: str) -> bool:
    """Return whether the commitment may have been made in that room; True if either id is unknown."""
    made_in = commitment.params.room_id
    return not (made_in and room_id) or made_in == room_id


def concerns_room(commitment: QueuedCommitment, *, is_trusted: bool) -> bool:
    """Return whether the room that we are in may be told about a commitment and may affect it.

    A room that was only found, whose members are strangers, is told only about commitments made in such a room.
    """
    return is_trusted or commitment.params.found_room


def due_in_s(commitment: QueuedCommitment, now: datetime) -> float | None:
    """Return the seconds until a commitment is due; None if it is not waiting for a try.

    After a failure it waits one minute, then five; what the outbox put off waits until that time. A time further ahead
    than any wait means that the clock was set back, and counts as due.
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
    """Return the commitment with a try begun."""
    return replace(commitment, status="in_progress", last_attempt_at=iso(now), not_before=None, waits_for=None)


def can_retry_now(commitment: QueuedCommitment, now: datetime) -> bool:
    """Return whether it waits after a failed try that began at least 15 seconds ago."""
    last = parse_iso_or_none(commitment.last_attempt_at)
    waits = commitment.status == "failed" and bool(due_in_s(commitment, now))
    return waits and last is not None and now - last >= _A_MOMENT


def retried_now(commitment: QueuedCommitment) -> QueuedCommitment:
    """Return the commitment, due at once."""
    return replace(commitment, last_attempt_at=None)


def kept(commitment: QueuedCommitment, result: Mapping[str, Any]) -> QueuedCommitment:
    """Return the commitment as fulfilled, with its result."""
    attempts = commitment.attempt_count + 1
    return replace(commitment, status="completed", attempt_count=attempts, error=None, result=result, waits_for=None)


def failed(commitment: QueuedCommitment, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
    """Return the commitment after a failed try; the third one abandons it."""
    attempts = commitment.attempt_count + 1
    status: CommitmentStatus = "abandoned" if attempts >= COMMITMENT_MAX_ATTEMPTS else "failed"
    result = partial if partial is not None else commitment.result
    return replace(commitment, status=status, attempt_count=attempts, error=error, result=result)


def delivered(commitment: QueuedCommitment) -> QueuedCommitment:
    """Return the commitment without its mark `undelivered`, so that it may be fulfilled."""
    return replace(commitment, params=commitment.params.model_copy(update={"undelivered": False}))


def may_still_be_delivered(commitment: QueuedCommitment, now: datetime) -> bool:
    """Return whether the room may still deliver the message that made it."""
    return not _older(parse_iso_or_none(commitment.created_at), now, COMMITMENT_UNDELIVERED_MAX_MS)


def put_off(commitment: QueuedCommitment, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
    """Return the commitment after a try that failed without its fault: no attempt is counted."""
    result = partial if partial is not None else commitment.result
    return replace(commitment, status="failed", error=error, result=result)


def waiting(
    commitment: QueuedCommitment, not_before: datetime, soonest: datetime, partial: Mapping[str, Any] | None = None
) -> QueuedCommitment:
    """Return the commitment waiting until `not_before`, but at least until `soonest`, as the outbox asked."""
    result = partial if partial is not None else commitment.result
    return replace(commitment, status="pending", not_before=iso(max(not_before, soonest)), result=result)


def interrupted(commitment: QueuedCommitment) -> QueuedCommitment:
    """Return the commitment after the process ended during a try: it is due at once, and no attempt is counted."""
    return replace(commitment, status="failed", error=INTERRUPTED, last_attempt_at=None)


def given_up(commitment: QueuedCommitment, reason: str) -> QueuedCommitment:
    """Return the commitment as abandoned, with the reason."""
    return replace(commitment, status="abandoned", error=reason)


def is_young(commitment: QueuedCommitment, now: datetime) -> bool:
    """Return whether a try began within the last 90 seconds."""
    last = parse_iso_or_none(commitment.last_attempt_at)
    return commitment.status == "in_progress" and not _older(last, now, _YOUNG_MS)


def is_timed_out(commitment: QueuedCommitment, now: datetime) -> bool:
    """Return whether a try has taken longer than ten minutes."""
    last = parse_iso_or_none(commitment.last_attempt_at) or parse_iso_or_none(commitment.created_at)
    return commitment.status == "in_progress" and _older(last, now, COMMITMENT_IN_PROGRESS_TIMEOUT_MS)


def is_stale(commitment: QueuedCommitment, now: datetime) -> bool:
    """Return whether it is still to be fulfilled 24 hours after it was made."""
    return commitment.status in LIVE and _older(
        parse_iso_or_none(commitment.created_at), now, COMMITMENT_STALE_THRESHOLD_MS
    )


def is_forgotten(commitment: QueuedCommitment, now: datetime) -> bool:
    """Return whether it has ended and is older than a week."""
    return commitment.status in _OVER and _older(parse_iso_or_none(commitment.created_at), now, COMMITMENT_RETENTION_MS)


def ended_at(commitment: QueuedCommitment) -> datetime | None:
    """Return when it ended; while that is unknown, when the last try began or, without a try, when it was made."""
    times = (commitment.ended_at, commitment.last_attempt_at, commitment.created_at)
    return next(filter(None, map(parse_iso_or_none, times)), None)


def _kept_lately(commitment: QueuedCommitment, now: datetime) -> bool:
    at = ended_at(commitment)
    return commitment.status == "completed" and at is not None and not _older(at, now, COMMITMENT_REPEAT_WINDOW_MS)


def _older(moment: datetime | None, now: datetime, limit_ms: float) -> bool:
    """Return whether a moment is longer ago than the limit; None, for one that cannot be read, is."""
    return moment is None or now - moment > timedelta(milliseconds=limit_ms)


REPO_COOLDOWN_FAILURES = 5
REPO_COOLDOWN_MS = 2 * DAY_MS

_ERROR_CHARS = 60
_NOTABLE = 2
_GOES_STALE = timedelta(milliseconds=COMMITMENT_STALE_THRESHOLD_MS)
_FAILED: frozenset[CommitmentStatus] = frozenset({"failed", "abandoned"})


@dataclass(frozen=True, slots=True)
class RepoCooldown:
    """Until `until` (ISO-8601 UTC), no commitment is begun in the repository; `reason` lists the failures."""

    owner: str
    repo: str
    until: Annotated[str, Field(alias="cooldownUntil")]
    reason: str = ""


def attention_of(commitments: Iterable[QueuedCommitment], now: datetime) -> AttentionNeeds:
    """Return what deserves attention: the live commitments, each with when it goes stale, and what keeps failing.

    That is a type of commitment of which more than one in the same place failed, among those made in the last 7 days;
    one that was withdrawn before any try failed counts as none. Commitments are public, so none of this is private.
    """
    known = sorted(commitments, key=lambda one: one.created_at)
    tried = (one for one in known if one.status in _FAILED and one.attempt_count)
    failures = [one for one in tried if _since(one.created_at, now, COMMITMENT_RETENTION_MS)]
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
    """Return cooldowns for repositories without one in which five commitments of one type failed in two days.

    Failures from before a cooldown are too old to start another one when it ends.
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
    """Return the active cooldown of a repository, or None."""
    meant = f"{owner}/{repo}".lower()
    return next(
        (one for one in cooldowns if f"{one.owner}/{one.repo}".lower() == meant and not is_over(one, now)), None
    )


def is_over(cooldown: RepoCooldown, now: datetime) -> bool:
    """Return whether a cooldown has ended; one whose end cannot be read has."""
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
