"""Stores the commitments of a SOUL as rows of work, and shows them to people in `.memory/pending_commitments.jsonl`.

A change is stored on disk before anything else follows from it: a crash loses at most the change that it interrupted. A
commitment that was in progress when the process ended is due again at once, and no attempt is counted.
"""

import errno
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from adapters.atproto.records import parse_at_uri
from common.clock import Clock, iso
from common.constants import HOUR_MS, LOG_ROTATIONS, STATE_MAX_BYTES
from common.errors import NotWaiting, SoulError, StorageError
from common.files import append_bounded, check_jsonl_version, read_bounded, set_aside, stamp_jsonl_version, write_atomic
from common.json_lines import json_line
from common.person import Trace
from common.redact import Redactor
from common.text.untrusted import one_line
from modules.runtime.database.people import PersonalRows
from modules.runtime.events import Publish, discard
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.attention_list import AttentionNeeds
from modules.services.commitments import policy
from modules.services.commitments.acts import COMMITMENTS, CommitmentAbandoned, CommitmentsReady
from modules.services.commitments.naming import (
    LIVE,
    Asker,
    CommitmentParams,
    CommitmentRequest,
    Enqueued,
    QueuedCommitment,
    claim_target,
    read_params,
    title_of,
)
from modules.services.commitments.policy import RepoCooldown, attention_of, cooldown_of, is_over, new_cooldowns
from modules.services.outbox import store
from modules.services.outbox.approval import Stopped
from modules.services.outbox.types import STANDS
from modules.services.work.table import WorkTable, newest, replace_row
from modules.services.work.types import NewWork, WorkState

COOLDOWN_FILE = "repo_cooldown.json"
_ALL = TypeAdapter(list[RepoCooldown], config=ConfigDict(defer_build=True))


class Cooldowns:
    """Repositories on which no commitment is begun for two days, in a list that people can read and edit.

    Read once; written atomically at each change. Raises `StorageError`.

    Attributes:
        notice: a line for the owner if the file could not be understood and was set aside.

    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / COOLDOWN_FILE
        self.notice = ""
        self._known = self._read()

    def standing(self, now: datetime) -> list[RepoCooldown]:
        """Return the cooldowns that have not ended."""
        return [one for one in self._known if not is_over(one, now)]

    def of(self, owner: str, repo: str, now: datetime) -> RepoCooldown | None:
        """Return the active cooldown of a repository, or None."""
        return cooldown_of(self._known, owner, repo, now)

    def add(self, new: Iterable[RepoCooldown], now: datetime) -> None:
        """Add these cooldowns, and drop those that have ended."""
        after = [*self.standing(now), *new]
        if after == self._known:
            return
        write_atomic(self._path, _ALL.dump_json(after, by_alias=True, indent=2) + b"\n")
        self._known = after

    def _read(self) -> list[RepoCooldown]:
        try:
            return _ALL.validate_json(read_bounded(self._path, STATE_MAX_BYTES))
        except FileNotFoundError:
            return []
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise StorageError(f"Cannot read {self._path}: {error.strerror or error}") from error
            self.notice = f"{COOLDOWN_FILE} cannot be read ({error.strerror}); {set_aside(self._path)}, starting afresh"
            return []
        except ValidationError:
            self.notice = f"{COOLDOWN_FILE} is not a list of cooldowns; {set_aside(self._path)}, starting afresh"
            return []


COMMITMENT = "commitment"
"""The kind of these rows of work."""
FILE = "pending_commitments.jsonl"
_MOST_ROWS, _TITLE_CHARS = 20_000, 80
AUDIT_LOG = "commitment-queue.log"

PartialResult = Mapping[str, Any] | None
_CLEANUP_EVERY = timedelta(milliseconds=HOUR_MS)
_SHORTEST_WAIT = timedelta(minutes=1)
_READ: TypeAdapter[QueuedCommitment] = TypeAdapter(QueuedCommitment)
_NAMES = [field.name for field in fields(QueuedCommitment)]
_NAMES.insert(_NAMES.index("source_thread_uri"), "type")
_WHERE_THERE_IS_ONE = {"not_before", "waits_for", "ended_at", "askers"}
_ASKERS = TypeAdapter(tuple[Asker, ...], config=ConfigDict(defer_build=True))


class CommitmentQueue:
    """Accepts commitments and stores their state.

    Args:
        folder: the folder of the file; its log is in `logs` below.
        table: the rows of work; `open` must read them before any other call, and then nobody else changes them.
        clock: the time.
        social_only: whether this SOUL must not commit to anything that needs GitHub.
        redactor: finds secrets, which are not stored.
        publish: receives `CommitmentsReady` and `CommitmentAbandoned`.

    Attributes:
        notice: a line for the owner if the file of cooldowns was not as expected.

    Raises:
        StorageError: here and in every method that changes something.

    """

    def __init__(
        self,
        folder: Path,
        table: WorkTable,
        clock: Clock,
        *,
        social_only: bool = False,
        redactor: Redactor | None = None,
        publish: Publish = discard,
    ) -> None:
        self._path = folder / FILE
        self._table = table
        self._log = folder / "logs" / AUDIT_LOG
        self._clock = clock
        self._social_only = social_only
        self._redactor = redactor or Redactor()
        self._cooldowns = Cooldowns(folder)
        self._cleaned_at: datetime | None = None
        self._publish = publish
        self.notice = self._cooldowns.notice
        self._known: dict[str, QueuedCommitment] = {}

    async def open(self) -> None:
        """Read the rows, and end the tries that were interrupted."""
        stored = await self._table.database.run(commitments_in)
        self._known = {one.id: one for one in stored if not policy.is_forgotten(one, self._clock.now())}
        for one in self.live():
            if one.status == "in_progress":
                await self._put(policy.interrupted(one), "failed", error=policy.INTERRUPTED)
        if self._known or self._path.exists():
            self._show()

    async def enqueue_commitment(self, request: CommitmentRequest) -> Enqueued:
        """Queue a commitment, unless it is queued already, was fulfilled within a day, or cannot be made here.

        Whoever asks for one that is queued or was fulfilled is stored with it, to be told too.
        """
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
            if (asked := policy.asked_again(answer.commitment, request)) != answer.commitment:
                stored = await self._put(asked, "asked_again", source=request.source)
                self._publish(CommitmentsReady())
                return replace(answer, commitment=stored)
        else:
            await self._put(answer.commitment, "enqueued", type=request.type, source=request.source)
            self._publish(CommitmentsReady())
        return answer

    def get(self, commitment_id: str) -> QueuedCommitment | None:
        """Return a commitment by its id, or None."""
        return self._known.get(commitment_id)

    def all(self) -> list[QueuedCommitment]:
        """Return every stored commitment, oldest first."""
        return sorted(self._known.values(), key=lambda one: one.created_at)

    def live(self) -> list[QueuedCommitment]:
        """Return the commitments that are still to be fulfilled, oldest first."""
        return [one for one in self.all() if one.status in LIVE]

    def in_conversation(self, source_thread_uri: str, room_id: str = "") -> list[QueuedCommitment]:
        """Return the commitments made in one conversation, oldest first; with `room_id`, none of another room."""
        made = [one for one in self.all() if one.source_thread_uri == source_thread_uri]
        return [one for one in made if policy.is_of_room(one, room_id)]

    def get_recently_completed_commitments(self, window_ms: float) -> list[QueuedCommitment]:
        """Return the commitments fulfilled within the last `window_ms` milliseconds, newest first."""
        since = iso(self._clock.now() - timedelta(milliseconds=window_ms))
        done = [one for one in self._known.values() if one.status == "completed"]
        return sorted((one for one in done if _ended(one) >= since), key=_ended, reverse=True)

    async def attention(self) -> AttentionNeeds:
        """Return the commitments that deserve attention, and what keeps failing."""
        return attention_of(self._known.values(), self._clock.now())

    async def mark_in_progress(self, commitment_id: str) -> QueuedCommitment:
        """Begin a try. A commitment that has ended stays unchanged, here and in the methods that end a try otherwise.

        Raises `KeyError` for an unknown commitment, like the methods below.
        """
        return await self._put_live(policy.started(self._known[commitment_id], self._clock.now()), "in_progress")

    async def keep_prepared(self, commitment_id: str, params: CommitmentParams) -> QueuedCommitment:
        """Store what was prepared for the act among the parameters."""
        return await self._put(replace(self._known[commitment_id], params=params), "prepared")

    async def mark_completed(self, commitment_id: str, result: Mapping[str, Any]) -> QueuedCommitment:
        """Mark a commitment as fulfilled, with its `result`."""
        return await self._put(policy.kept(self._known[commitment_id], result), "completed")

    async def mark_failed(
        self, commitment_id: str, error: str, partial: PartialResult = None, *, is_late: bool = False
    ) -> QueuedCommitment:
        """Count a failed try, also one that took too long (`is_late`); after the third the commitment is abandoned."""
        after = policy.failed(self._known[commitment_id], error, partial)
        action = "auto_abandoned" if after.status == "abandoned" else "failed"
        return await self._put_live(after, f"timeout_{after.status}" if is_late else action, error=error)

    async def give_up(
        self, commitment_id: str, error: str, partial: PartialResult = None, action: str = "given_up"
    ) -> QueuedCommitment:
        """Abandon a commitment at once, as no other try could end better. The log calls this `action`."""
        after = policy.given_up(policy.put_off(self._known[commitment_id], error, partial), error)
        return await self._put_live(after, action, error=error)

    async def put_off(self, commitment_id: str, error: str, partial: PartialResult = None) -> QueuedCommitment:
        """End a try without counting it as an attempt."""
        return await self._put_live(policy.put_off(self._known[commitment_id], error, partial), "put_off", error=error)

    async def wait_until(
        self, commitment_id: str, not_before: datetime, partial: PartialResult = None
    ) -> QueuedCommitment:
        """Make a commitment wait until `not_before`, but at least one lived minute; no attempt is counted."""
        soonest = self._clock.now() + self._clock.real(_SHORTEST_WAIT)
        after = policy.waiting(self._known[commitment_id], not_before, soonest, partial)
        return await self._put_live(after, "waits", not_before=after.not_before)

    async def note_waiting(self, commitment_id: str, reason: str) -> bool:
        """Store why a commitment waits; return whether the reason is new."""
        commitment = self._known[commitment_id]
        is_new = commitment.status in LIVE and commitment.waits_for != reason
        if is_new:
            await self._put(replace(commitment, waits_for=reason), "waits", reason=reason)
        return is_new

    async def withdraw(self, commitment_id: str, reason: str) -> bool:
        """Abandon a commitment without publishing an event. Return False, and change nothing, once a try has begun."""
        commitment = self._known.get(commitment_id)
        if commitment is None or commitment.status not in {"pending", "failed"}:
            return False
        await self._put(policy.given_up(commitment, reason), "withdrawn", error=reason, tell=False)
        return True

    async def withdrawable(self) -> dict[int, QueuedCommitment]:
        """Return the commitments that are not begun, oldest first, each by a number of its own among the drafts."""
        waiting = [one for one in self.live() if one.status != "in_progress"]

        def number(connection: sqlite3.Connection) -> dict[str, int]:
            store.number_drafts(connection, [one.id for one in waiting])
            return store.draft_numbers(connection)

        numbers = await self._table.database.run(number)
        return {numbers[one.id]: one for one in waiting}

    async def mark_delivered(self, commitment_id: str) -> None:
        """Record that the room received the message that made the commitment, so that it may be fulfilled."""
        commitment = self._known.get(commitment_id)
        if commitment is not None and commitment.params.undelivered:
            await self._put(policy.delivered(commitment), "delivered")
            self._publish(CommitmentsReady())

    async def withdraw_undelivered(self, commitment_id: str) -> bool:
        """Withdraw a commitment whose message the room did not receive in time; return False before that."""
        commitment = self._known[commitment_id]
        late = not policy.may_still_be_delivered(commitment, self._clock.now())
        return late and await self.withdraw(commitment_id, policy.NEVER_DELIVERED)

    async def withdraw_claimed(self, action: str, target: str, reason: str) -> bool:
        """Withdraw what was promised in the room and claimed as `action` on `target`; return whether there was any."""
        claimed = [one for one in self.live() if (one.type, claim_target(one)) == (action, target)]
        meant = [one for one in claimed if one.source == "space"]
        return any([await self.withdraw(one.id, reason) for one in meant])

    def kept_already(self, request: CommitmentRequest) -> QueuedCommitment | None:
        """Return the commitment that did this work within the last day, or None."""
        found = policy.duplicate_of(self._known.values(), request, self._clock.now())
        return found[0] if found and found[0].status == "completed" else None

    async def retry_now(self, source_thread_uri: str) -> None:
        """Make the failed commitments of a conversation due now, because somebody asked about them."""
        now = self._clock.now()
        for one in self.in_conversation(source_thread_uri):
            if policy.can_retry_now(one, now):
                await self._put(policy.retried_now(one), "retried_now")

    def periodic_queue_cleanup(self) -> int:
        """Forget commitments that have ended and are a week old, at most once an hour; return how many."""
        now = self._clock.now()
        if self._cleaned_at is not None and timedelta(0) <= now - self._cleaned_at < _CLEANUP_EVERY:
            return 0
        self._cleaned_at = now
        kept = {one.id: one for one in self._known.values() if not policy.is_forgotten(one, now)}
        gone = len(self._known) - len(kept)
        if gone:
            self._known = kept
            self._show()
        return gone

    def is_repo_cooled_down(self, owner: str, repo: str) -> RepoCooldown | None:
        """Return the active cooldown of a repository, or None."""
        return self._cooldowns.of(owner, repo, self._clock.now())

    def check_and_apply_repo_cooldown(self) -> list[RepoCooldown]:
        """Start a cooldown for repositories in which commitments keep failing; return the new cooldowns."""
        now = self._clock.now()
        found = new_cooldowns(self._known.values(), self._cooldowns.standing(now), now)
        self._cooldowns.add(found, now)
        return found

    async def _put_live(self, after: QueuedCommitment, action: str, **more: str | None) -> QueuedCommitment:
        """Store a change to a commitment; one that has ended stays unchanged."""
        before = self._known[after.id]
        return await self._put(after, action, tell=True, **more) if before.status in LIVE else before

    async def _put(
        self, commitment: QueuedCommitment, action: str, *, tell: bool = True, **more: object
    ) -> QueuedCommitment:
        # NOTE(self): readers see the change at once; the rows are written one after the other.
        before = self._known.get(commitment.id)
        if commitment.status not in LIVE and commitment.ended_at is None:
            commitment = replace(commitment, ended_at=iso(self._clock.now()))
        self._known[commitment.id] = commitment
        try:
            await self._table.keep(_row(commitment))
        except SoulError:
            if self._known[commitment.id] is commitment:
                del self._known[commitment.id]
                self._known |= {before.id: before} if before else {}
            raise
        self._show()
        self._audit(action, id=commitment.id, attempts=commitment.attempt_count, **more)
        if commitment.status == "abandoned" and tell:
            self._publish(CommitmentAbandoned(commitment))
        return commitment

    def _show(self) -> None:
        """Rewrite the file for people and other programs, and its version beside it."""
        write_atomic(self._path, b"".join(json_line(as_json(one)) for one in self._known.values()))
        if not check_jsonl_version(self._path):
            stamp_jsonl_version(self._path)

    def _audit(self, action: str, **more: object) -> None:
        record = {"timestamp": iso(self._clock.now()), "action": action, **more}
        append_bounded(self._log, json_line(self._redactor.value(record)), rotations=LOG_ROTATIONS)


def commitments_in(connection: sqlite3.Connection) -> list[QueuedCommitment]:
    """Return the stored commitments, oldest first, within a transaction of the caller.

    Of more than 20,000 only the newest; a row that cannot be read is left out.
    """
    rows = newest(connection, COMMITMENT, _MOST_ROWS, key_prefix="")
    return sorted(filter(None, (commitment_in(row.payload) for row in rows)), key=lambda one: one.created_at)


def _row(commitment: QueuedCommitment) -> NewWork:
    """Return the row of a commitment; its author is the person on Bluesky if no host or owner asked for it."""
    at = parse_at_uri(commitment.source_thread_uri)
    over: dict[str, WorkState] = {"completed": "done", "abandoned": "dropped"}
    return NewWork(
        COMMITMENT,
        commitment.id,
        as_json(commitment),
        author=at.repo if at and not commitment.params.host_request else "",
        importance="commitment",
        state=over.get(commitment.status, "pending"),
    )


def _hand_over(connection: sqlite3.Connection, trace: Trace) -> None:
    """Let the next asker of each commitment take the place of a person who is forgotten."""
    for one in commitments_in(connection):
        left = policy.without_asker(one, trace.person.did)
        if left is not None and left != one:
            replace_row(connection, _row(left))


COMMITMENTS_OF_PEOPLE = PersonalRows("commitments", (), counts_on=_hand_over)
"""Commitments to several people, of whom one is forgotten: before the work of that person is deleted."""


def as_json(commitment: QueuedCommitment) -> dict[str, Any]:
    """Return the object in the line, its keys in order; those of `_WHERE_THERE_IS_ONE` only if they are set."""
    told = {name: getattr(commitment, name) for name in _NAMES}
    told |= {"params": commitment.params.as_json(), "askers": _ASKERS.dump_python(commitment.askers, by_alias=True)}
    return {
        to_camel(name): dict(value) if isinstance(value, Mapping) else value
        for name, value in told.items()
        if value or name not in _WHERE_THERE_IS_ONE
    }


def commitment_in(payload: Mapping[str, Any]) -> QueuedCommitment | None:
    """Return the commitment in such an object; None if it contains none."""
    try:
        given = payload.get("params")
        params = read_params(payload["type"], given if isinstance(given, Mapping) else {})
        return _READ.validate_python({**payload, "params": params})
    except (KeyError, ValidationError):
        return None


def _ended(commitment: QueuedCommitment) -> str:
    at = policy.ended_at(commitment)
    return iso(at) if at else ""


async def withdraw_for_owner(
    queue: CommitmentQueue, journal: Journal, commitment: QueuedCommitment, outcome: Stopped, reason: str
) -> None:
    """Withdraw a commitment and record why, in the words of a rejected or withdrawn act. Raises `NotWaiting`."""
    why = ": ".join(filter(None, (STANDS[outcome], reason)))
    title = one_line(title_of(commitment), _TITLE_CHARS)
    if not await queue.withdraw(commitment.id, why):
        raise NotWaiting(f"It is being kept already: {title}", remedy="/drafts shows what waits.")
    about = {"promise": commitment.id, "type": commitment.type, "said": commitment.source_reply_text}
    await journal.record(Entry("decision", COMMITMENTS, f"Not to be kept: {title}", "done", why, data=about))


def waiting_lines(commitments: Iterable[QueuedCommitment]) -> str:
    """Return how many wait and their kinds: `2 pending: create_issue, post_bluesky`."""
    kinds = [one.type for one in commitments]
    return f"{len(kinds)} pending: {', '.join(dict.fromkeys(kinds))}"
