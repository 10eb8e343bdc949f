"""The commitments of a SOUL, in one file that people can read: `.memory/pending_commitments.jsonl`.

Every change is on the disk before anything else happens, in one step: a crash loses at most the change that it
interrupted. A commitment that was being fulfilled when the process ended is looked at again at once; no attempt is
used. What another version wrote is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from common.clock import Clock, iso
from common.constants import HOUR_MS, LOG_MAX_BYTES, LOG_ROTATIONS
from common.redact import Redactor
from modules.runtime.events import Publish, discard
from modules.services.commitments import policy
from modules.services.commitments.cooldowns import Cooldowns
from modules.services.commitments.events import CommitmentAbandoned, CommitmentsReady
from modules.services.commitments.lines import append_line, read_commitments, write_commitments
from modules.services.commitments.naming import claim_target
from modules.services.commitments.outcomes import FailurePattern, RepoCooldown, new_cooldowns, outcome_patterns
from modules.services.commitments.params import CommitmentParams
from modules.services.commitments.types import LIVE, CommitmentRequest, Enqueued, QueuedCommitment

FILE = "pending_commitments.jsonl"
AUDIT_LOG = "commitment-queue.log"

_CLEANUP_EVERY = timedelta(milliseconds=HOUR_MS)


class CommitmentQueue:
    """Takes commitments in, and remembers how far each is.

    Args:
        folder: where the file lies; its log lies in `logs` below.
        clock: tells when.
        social_only: whether this life must not commit to anything that needs GitHub.
        redactor: knows what must not be written down.
        publish: receives `CommitmentsReady` and `CommitmentAbandoned`.

    Attributes:
        notice: a line for the owner if the file was not as expected.

    Raises:
        StorageError: here and in every method that changes something; then nothing has changed.

    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        social_only: bool = False,
        redactor: Redactor | None = None,
        publish: Publish = discard,
    ) -> None:
        self._path = folder / FILE
        self._log = folder / "logs" / AUDIT_LOG
        self._clock = clock
        self._social_only = social_only
        self._redactor = redactor or Redactor()
        self._cooldowns = Cooldowns(folder)
        self._cleaned_at: datetime | None = None
        self._publish = publish
        read = read_commitments(self._path)
        self.notice = "; ".join(filter(None, (read.notice, self._cooldowns.notice)))
        self._known = {one.id: one for one in read.commitments}
        if read.commitments or read.notice:
            self._recover()

    def enqueue_commitment(self, request: CommitmentRequest) -> Enqueued:
        """Take a commitment in, unless it is made already, was fulfilled a moment ago, or cannot be made here."""
        answer = policy.judged(
            request,
            self._known,
            self._clock.now(),
            social_only=self._social_only,
            leaks=self._redactor.finds_in([request.description, request.source_reply_text, request.params.as_json()]),
        )
        if answer.commitment is None:
            self._audit("refused", type=request.type, reason=answer.reason)
        elif not answer.new:
            self._audit("duplicate_rejected", id=answer.commitment.id, type=request.type, reason=answer.reason)
        else:
            self._put(answer.commitment, "enqueued", type=request.type, source=request.source)
            self._publish(CommitmentsReady())
        return answer

    def get(self, commitment_id: str) -> QueuedCommitment | None:
        """Return a commitment by its id, or None."""
        return self._known.get(commitment_id)

    def all(self) -> list[QueuedCommitment]:
        """Every commitment that is remembered, oldest first."""
        return sorted(self._known.values(), key=lambda one: one.created_at)

    def live(self) -> list[QueuedCommitment]:
        """Return the commitments that are still to be fulfilled, oldest first."""
        return [one for one in self.all() if one.status in LIVE]

    def in_conversation(self, source_thread_uri: str, room_id: str = "") -> list[QueuedCommitment]:
        """All that were made in one conversation, oldest first; with `room_id`, none of another room's."""
        made = [one for one in self.all() if one.source_thread_uri == source_thread_uri]
        return [one for one in made if policy.is_of_room(one, room_id)]

    def due(self) -> list[QueuedCommitment]:
        """Return the commitments that are to be tried now, oldest first."""
        now = self._clock.now()
        return [one for one in self.all() if policy.due_in_s(one, now) == 0]

    def get_recently_completed_commitments(self, window_ms: float) -> list[QueuedCommitment]:
        """Return the commitments fulfilled within the last `window_ms` milliseconds, newest first."""
        since = iso(self._clock.now() - timedelta(milliseconds=window_ms))
        done = [one for one in self._known.values() if one.status == "completed"]
        return sorted((one for one in done if _ended(one) >= since), key=_ended, reverse=True)

    def get_commitment_outcome_patterns(self) -> tuple[FailurePattern, ...]:
        """How the commitments of the last 7 days ended."""
        return outcome_patterns(self._known.values(), self._clock.now())

    def mark_in_progress(self, commitment_id: str) -> QueuedCommitment:
        """Begin a try. One that has ended stays as it is.

        Raises `KeyError` for an unknown commitment, as do the methods below.
        """
        if self._known[commitment_id].status not in LIVE:
            return self._known[commitment_id]
        return self._put(policy.started(self._known[commitment_id], self._clock.now()), "in_progress")

    def keep_prepared(self, commitment_id: str, params: CommitmentParams) -> QueuedCommitment:
        """Keep what was made ready for its act among its parameters."""
        return self._put(replace(self._known[commitment_id], params=params), "prepared")

    def mark_completed(self, commitment_id: str, result: Mapping[str, Any]) -> QueuedCommitment:
        """Mark a commitment as fulfilled; `result` is what came of it."""
        return self._put(policy.kept(self._known[commitment_id], result), "completed")

    def mark_failed(self, commitment_id: str, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
        """Count a failed try; after the third the commitment is abandoned. One that has ended stays as it is."""
        if self._known[commitment_id].status not in LIVE:
            return self._known[commitment_id]
        after = policy.failed(self._known[commitment_id], error, partial)
        return self._put(after, "auto_abandoned" if after.status == "abandoned" else "failed", error=error)

    def give_up(self, commitment_id: str, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
        """Abandon a commitment at once: no other try could end better. One that has ended stays as it is."""
        if self._known[commitment_id].status not in LIVE:
            return self._known[commitment_id]
        after = policy.given_up(policy.put_off(self._known[commitment_id], error, partial), error)
        return self._put(after, "given_up", error=error)

    def put_off(self, commitment_id: str, error: str, partial: Mapping[str, Any] | None = None) -> QueuedCommitment:
        """End a try without counting it as an attempt. A commitment that has ended stays as it is."""
        if self._known[commitment_id].status not in LIVE:
            return self._known[commitment_id]
        return self._put(policy.put_off(self._known[commitment_id], error, partial), "put_off", error=error)

    def wait_until(
        self, commitment_id: str, not_before: datetime, partial: Mapping[str, Any] | None = None
    ) -> QueuedCommitment:
        """Let a commitment wait until `not_before`; no attempt is counted. One that has ended stays as it is."""
        if self._known[commitment_id].status not in LIVE:
            return self._known[commitment_id]
        after = policy.waiting(self._known[commitment_id], not_before, self._clock.now(), partial)
        return self._put(after, "waits", not_before=after.not_before)

    def withdraw(self, commitment_id: str, reason: str) -> bool:
        """Abandon a commitment without telling anybody. Returns False, and changes nothing, once a try has begun."""
        commitment = self._known.get(commitment_id)
        if commitment is None or commitment.status not in {"pending", "failed"}:
            return False
        self._put(policy.given_up(commitment, reason), "withdrawn", error=reason, tell=False)
        return True

    def mark_delivered(self, commitment_id: str) -> None:
        """Record that the room received the message that made it: it may be fulfilled."""
        commitment = self._known.get(commitment_id)
        if commitment is not None and commitment.params.undelivered:
            self._put(policy.delivered(commitment), "delivered")
            self._publish(CommitmentsReady())

    def withdraw_undelivered(self, commitment_id: str) -> bool:
        """Withdraw a commitment whose message the room never received, once it is too late; False before."""
        commitment = self._known[commitment_id]
        late = not policy.may_still_be_delivered(commitment, self._clock.now())
        return late and self.withdraw(commitment_id, policy.NEVER_DELIVERED)

    def withdraw_claimed(self, action: str, target: str, reason: str) -> bool:
        """Withdraw the commitments claimed as `action` on `target`; returns whether there was one."""
        meant = [one for one in self.live() if (one.type, claim_target(one)) == (action, target)]
        return sum(self.withdraw(one.id, reason) for one in meant) > 0

    def kept_already(self, request: CommitmentRequest) -> QueuedCommitment | None:
        """The commitment that did this work within a day, if one did."""
        found = policy.duplicate_of(self._known.values(), request, self._clock.now())
        return found[0] if found and found[0].status == "completed" else None

    def retry_now(self, source_thread_uri: str) -> None:
        """Try again now what waits for another try in that conversation, because somebody asked after it."""
        now = self._clock.now()
        for one in self.in_conversation(source_thread_uri):
            if policy.can_retry_now(one, now):
                self._put(policy.retried_now(one), "retried_now")

    def timeout_in_progress_commitments(self, except_ids: Collection[str] = ()) -> list[QueuedCommitment]:
        """Count tries that take too long as failed, but for those whose act is still on its way (`except_ids`)."""
        now = self._clock.now()
        late = [one for one in self.all() if policy.is_timed_out(one, now) and one.id not in except_ids]
        return [self._timed_out(one) for one in late]

    def abandon_stale_commitments(self, except_ids: Collection[str] = ()) -> list[QueuedCommitment]:
        """Abandon commitments that are too old, but for those whose act is on its way (`except_ids`); returns them."""
        now = self._clock.now()
        stale = [one for one in self.all() if policy.is_stale(one, now) and one.id not in except_ids]
        return [self._put(policy.given_up(one, one.error or policy.STALE), "stale_abandoned") for one in stale]

    def periodic_queue_cleanup(self) -> int:
        """At most once an hour, forget what is over and a week old; returns how many went."""
        now = self._clock.now()
        if self._cleaned_at is not None and timedelta(0) <= now - self._cleaned_at < _CLEANUP_EVERY:
            return 0
        self._cleaned_at = now
        return self._forget(now)

    def is_repo_cooled_down(self, owner: str, repo: str) -> RepoCooldown | None:
        """The cooldown under which a repository stands, if it does."""
        return self._cooldowns.of(owner, repo, self._clock.now())

    def check_and_apply_repo_cooldown(self) -> list[RepoCooldown]:
        """Leave repositories alone in which commitments keep failing; returns those that are new."""
        now = self._clock.now()
        found = new_cooldowns(self._known.values(), self._cooldowns.standing(now), now)
        self._cooldowns.add(found, now)
        return found

    def _recover(self) -> None:
        after = {
            one.id: policy.interrupted(one) if one.status == "in_progress" else one for one in self._known.values()
        }
        changed = [one for one in after.values() if one != self._known[one.id]]
        self._write(after)
        for one in changed:
            self._audit("failed", id=one.id, error=one.error)
        self.periodic_queue_cleanup()

    def _timed_out(self, commitment: QueuedCommitment) -> QueuedCommitment:
        error = f"{policy.TIMED_OUT} after 10 minutes"
        after = policy.failed(commitment, error)
        return self._put(after, "timeout_abandoned" if after.status == "abandoned" else "timeout_failed", error=error)

    def _forget(self, now: datetime) -> int:
        kept = {one.id: one for one in self._known.values() if not policy.is_forgotten(one, now)}
        gone = len(self._known) - len(kept)
        if gone:
            self._write(kept)
        return gone

    def _put(self, commitment: QueuedCommitment, action: str, *, tell: bool = True, **more: object) -> QueuedCommitment:
        self._write({**self._known, commitment.id: commitment})
        self._audit(action, id=commitment.id, attempts=commitment.attempt_count, **more)
        if commitment.status == "abandoned" and tell:
            self._publish(CommitmentAbandoned(commitment))
        return commitment

    def _write(self, known: dict[str, QueuedCommitment]) -> None:
        write_commitments(self._path, known.values())
        self._known = known

    def _audit(self, action: str, **more: object) -> None:
        record = {"timestamp": iso(self._clock.now()), "action": action, **more}
        append_line(self._log, self._redactor.value(record), max_bytes=LOG_MAX_BYTES, rotations=LOG_ROTATIONS)


def _ended(commitment: QueuedCommitment) -> str:
    at = policy.ended_at(commitment)
    return iso(at) if at else ""


def waiting_lines(commitments: Iterable[QueuedCommitment]) -> str:
    """How many wait, and of which kinds: `2 pending: create_issue, post_bluesky`."""
    kinds = [one.type for one in commitments]
    return f"{len(kinds)} pending: {', '.join(dict.fromkeys(kinds))}"
