"""Takes each commitment one step further, and tells what became of it to the journal, the room and those who wait.

A step reads once what the outbox knows of the acts. What survives a crash lies with the queue and the outbox: what left
is not sent again, and what waits is waited for. The rest is told again or not at all.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from adapters.github.types import Repo
from common.clock import Clock, parse_iso, parse_iso_or_none
from common.errors import Fatal, Transient
from modules.runtime.console import LineKind
from modules.runtime.events import Publish, discard
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry, EntryKind
from modules.services.commitments.acts import CommitmentWork, result_of, work_of
from modules.services.commitments.announce import Announcer
from modules.services.commitments.events import CommitmentKept
from modules.services.commitments.naming import extract_fulfillment_url, resolve_repo, title_of
from modules.services.commitments.params import PlanParams
from modules.services.commitments.plans import PlanMaker
from modules.services.commitments.policy import NEVER_DELIVERED, STALE
from modules.services.commitments.presence import CommitmentPresence
from modules.services.commitments.queue import CommitmentQueue, waiting_lines
from modules.services.commitments.types import LIVE, Progress, QueuedCommitment
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.voice_phrases.store import Phrase

HELD = "waits for the owner's yes"
NO_PLANS = "nobody makes plans here"

_LOOP = "commitments"
_TITLE_CHARS = 80
_SAID_CHARS = 300
_ANNOUNCE_TRIES = 3
_TRACE_CHARS = 4_000
_BROKEN = "something went wrong while it was being done"
"""What a room hears of an error of ours, which stands in the journal."""


@dataclass(frozen=True, slots=True)
class CommitmentCase:
    """A commitment as a step finds it.

    Attributes:
        commitment: what is to be kept.
        work: the acts that keep it, or why there are none.
        rows: for each act what the outbox has of it: the intent that may still leave, or did, else the latest.

    """

    commitment: QueuedCommitment
    work: CommitmentWork
    rows: tuple[Intent | None, ...] = ()

    @property
    def is_begun(self) -> bool:
        """Whether an act is done, or may still be."""
        return any(row.state in ACTIVE_STATES for row in self.rows if row)

    @property
    def is_on_its_way(self) -> bool:
        """Whether an act may still be done."""
        return any(row.state in ACTIVE_STATES - {"done"} for row in self.rows if row)

    @property
    def intent_id(self) -> str | None:
        """The id of the latest act."""
        return next((row.id for row in reversed(self.rows) if row), None)


@dataclass(slots=True)
class CommitmentHandler:
    """Keeps commitments.

    Attributes:
        queue: the commitments.
        outbox: the only way out.
        clock: tells when.
        phrase: returns operational texts.
        announcer: tells that they are fulfilled.
        presence: what the room sees of it.
        journal: records each step.
        has_github: whether there is an account on GitHub to write as.
        plans: makes plans ready; without it commitments to plans wait.
        default_repo: returns the repository where a commitment names none, if there is one.
        social_only: whether this life keeps away from GitHub.
        publish: receives `CommitmentKept`.
        knows_room: whether we know what others in the room made while we were away.
        was_delivered: whether the room with this id ("" is any) is known to have received these words of ours since.

    """

    queue: CommitmentQueue
    outbox: Outbox
    clock: Clock
    phrase: Phrase
    announcer: Announcer
    presence: CommitmentPresence
    journal: Journal
    has_github: bool
    plans: PlanMaker | None = None
    default_repo: Callable[[], Repo | None] = lambda: None
    social_only: bool = False
    publish: Publish = discard
    knows_room: Callable[[], bool] = lambda: True
    was_delivered: Callable[[str, datetime, str], bool] = lambda _words, _since, _room_id: False
    _told: dict[str, str] = field(default_factory=dict, init=False)
    """For what a commitment was last said to wait."""
    _announce_tries: dict[str, int] = field(default_factory=dict, init=False)

    async def take_steps(self) -> int:
        """Take one step for each commitment whose turn it is; return how many are under way."""
        cases = [await self._read(one) for one in self.queue.live()]
        await self._tidy(cases)
        turn = await self._whose_turn(cases)
        if new := [case for case in turn if case.commitment.status != "in_progress"]:
            lines = waiting_lines(case.commitment for case in new)
            await self._tell(new[0], "life", f"Commitments: {lines}", line="queue")
        held = {case.commitment.id for case in turn if await self._step(case) == "held"}
        under_way = [one for one in self.queue.live() if one.status == "in_progress"]
        working = [one for one in under_way if one.id not in held]
        if not working:
            await self.presence.rests()
        return len(working)

    async def _read(self, commitment: QueuedCommitment) -> CommitmentCase:
        work = work_of(
            commitment,
            phrase=self.phrase,
            default_repo=self.default_repo(),
            github=self.has_github,
            social_only=self.social_only,
        )
        found = [await self.outbox.by_target(action.kind, action.target) for action in work.actions]
        return CommitmentCase(commitment, work, tuple(map(_newest, found)))

    async def _tidy(self, cases: Sequence[CommitmentCase]) -> None:
        """Give up what nobody waits for, and leave alone where nothing works."""
        by_id = {case.commitment.id: case for case in cases}
        on_the_way = {case.commitment.id for case in cases if case.is_on_its_way}
        for one in self.queue.timeout_in_progress_commitments(on_the_way):
            await self._after_failure(by_id[one.id], one)
        for one in self.queue.abandon_stale_commitments(on_the_way):
            await self._gave_up(by_id[one.id], one.error or STALE)
        for cooldown in self.queue.check_and_apply_repo_cooldown():
            summary = f"{cooldown.owner}/{cooldown.repo} is left alone until {cooldown.until}"
            await self.journal.record(Entry("decision", _LOOP, summary, "warn", cooldown.reason))
        self.queue.periodic_queue_cleanup()

    async def _whose_turn(self, cases: Iterable[CommitmentCase]) -> list[CommitmentCase]:
        """Return what can be worked at now, oldest first; of what cannot, tell the reason once."""
        live, due = {one.id: one for one in self.queue.live()}, {one.id for one in self.queue.due()}
        turn = []
        for case in (replace(one, commitment=live[one.commitment.id]) for one in cases if one.commitment.id in live):
            is_under_way = case.commitment.status == "in_progress"
            if not is_under_way and case.commitment.id not in due:
                continue
            hindrance = "" if is_under_way else self._hindrance(case)
            if hindrance:
                await self._waits(case, hindrance)
            else:
                turn.append(case)
        return turn

    def _hindrance(self, case: CommitmentCase) -> str:
        """Return why a commitment is not begun, or ""; what was begun is always brought to its end."""
        commitment, work = case.commitment, case.work
        if work.waits or case.is_begun:
            return work.waits
        if commitment.source == "space" and (why := self._why_room_waits(commitment)):
            return why
        if holder := self.presence.holder(commitment):
            return f"{holder} works at it"
        if not work.actions:
            return ""
        body = work.actions[0].body
        repo = resolve_repo(body.repo) if isinstance(body, IssueBody | IssueCommentBody) else None
        cooldown = self.queue.is_repo_cooled_down(repo.owner, repo.name) if repo else None
        return f"the repository is left alone until {cooldown.until}: {cooldown.reason}" if cooldown else ""

    def _why_room_waits(self, commitment: QueuedCommitment) -> str:
        """Return why a commitment made in a room is not begun, or ""."""
        if not self.knows_room():
            return "others in the room may have made it while we were away"
        if not commitment.params.undelivered:
            return ""
        made_at = parse_iso_or_none(commitment.created_at)
        room_id = commitment.params.room_id
        if made_at is not None and self.was_delivered(commitment.source_reply_text, made_at, room_id):
            self.queue.mark_delivered(commitment.id)
            return ""
        return NEVER_DELIVERED if self.queue.withdraw_undelivered(commitment.id) else "the room has not received it yet"

    async def _step(self, case: CommitmentCase) -> str:
        """Return how far one commitment is; one that trips over a bug of ours must not stop the others."""
        begins = case.commitment.status != "in_progress"
        if begins:
            # NOTE(self): the room may have withdrawn it while something else was awaited.
            case = replace(case, commitment=self.queue.mark_in_progress(case.commitment.id))
            if case.commitment.status not in LIVE:
                return case.commitment.status
            await self.presence.begins(case.commitment)
        try:
            progress = await self._advance(case)
            case = replace(case, rows=(*case.rows, progress.proposed))
            if begins:
                await self._tell_why(case)
            elif progress.state != "held":
                await self.presence.goes_on(case.commitment)
            await self._settle(case, progress)
        except (Fatal, Transient):
            raise
        except Exception as error:
            trace = "".join(traceback.format_exception(error))[-_TRACE_CHARS:]
            reason = f"{type(error).__name__}: {error}"
            await self._tell(case, "error", "Fulfilling a commitment failed", reason, line="error", trace=trace)
            progress = Progress("failed", _BROKEN)
            await self._failed(case, progress)
        return progress.state

    async def _advance(self, case: CommitmentCase) -> Progress:
        """Let the next missing act be done, if one can be. What was begun is never begun twice."""
        commitment, work = case.commitment, case.work
        if work.plan_for and isinstance(commitment.params, PlanParams):
            if self.plans is None:
                return Progress("waits", NO_PLANS)
            return await self.plans.prepare(commitment, commitment.params, work.plan_for)
        if not work.actions:
            return Progress("failed" if work.problem else "waits", work.problem or work.waits)
        done: list[Intent] = []
        for action, row in zip(work.actions, case.rows, strict=True):
            if row is None or row.state != "done":
                return await self._missing(commitment, action, row, done)
            done.append(row)
        return Progress("done", result=result_of(commitment, done))

    async def _missing(
        self, commitment: QueuedCommitment, action: ProposedAction, row: Intent | None, done: list[Intent]
    ) -> Progress:
        so_far = result_of(commitment, done) if done else dict(commitment.result or {})
        if row is not None and row.state in ACTIVE_STATES:
            return _under_way(row, so_far)
        if row is not None and row.rejected:
            return Progress("refused", row.error or "", so_far)
        if row is not None and self._is_of_this_try(row, commitment):
            state: Literal["put_off", "failed"] = "put_off" if row.state == "expired" else "failed"
            return Progress(state, row.error or row.state, so_far)
        submitted = await self.outbox.submit(action)
        intent, advice = submitted.intent, submitted.advice
        if advice.code == "later":
            return Progress("later", advice.reason, so_far, advice.not_before, proposed=intent)
        if submitted.accepted:
            return replace(_under_way(intent, so_far), proposed=intent)
        state_after: Literal["unwelcome", "failed"] = "unwelcome" if advice.code == "silence" else "failed"
        return Progress(state_after, submitted.reason, so_far, proposed=intent)

    def _is_of_this_try(self, row: Intent, commitment: QueuedCommitment) -> bool:
        """Whether the act was proposed since the try began; a later time than now is of a clock that was set back."""
        began = parse_iso_or_none(commitment.last_attempt_at)
        return began is not None and began <= parse_iso(row.created_at) <= self.clock.now()

    async def _settle(self, case: CommitmentCase, progress: Progress) -> None:
        commitment = case.commitment
        match progress.state:
            case "done":
                await self._done(case, progress)
            case "held":
                self.presence.let_go(commitment)
                await self._waits(case, progress.reason)
            case "prepared" if progress.prepared is not None:
                self.queue.keep_prepared(commitment.id, progress.prepared)
            case "waits":
                self._told.pop(commitment.id, None)
            case "failed":
                await self._failed(case, progress)
            case "put_off" | "refused":
                self.presence.let_go(commitment)
                self.queue.put_off(commitment.id, progress.reason, progress.result)
                is_refused = progress.state == "refused" and self.queue.withdraw(commitment.id, progress.reason)
                summary = "Not to be kept" if is_refused else "Put off"
                await self._tell(case, "decision", summary, progress.reason, line="warn")
            case "later":
                await self._wait_until(case, progress.not_before, progress.reason, progress.result)
            case "unwelcome":
                given_up = self.queue.give_up(commitment.id, progress.reason, progress.result)
                await self._after_failure(case, given_up)

    async def _done(self, case: CommitmentCase, progress: Progress) -> None:
        """Tell it first: what was told is never told again, what was written down as kept would never be told."""
        commitment = case.commitment
        announced = await self.announcer.announce(commitment, progress.result)
        if announced.later and (announced.busy or self._count_try(commitment) < _ANNOUNCE_TRIES):
            why = f"done, and not told yet: {announced.reason}"
            await self._wait_until(case, announced.not_before, why, progress.result)
            return
        self._announce_tries.pop(commitment.id, None)
        link = extract_fulfillment_url(commitment.type, progress.result)
        kept = self.queue.mark_completed(commitment.id, progress.result)
        self._told.pop(commitment.id, None)
        await self.presence.ended(commitment, link=link)
        untold = "" if announced.told or not announced.reason else f" (not announced: {announced.reason})"
        await self._tell(case, "decision", "Kept", f"{link or 'done'}{untold}", line="done", act="kept")
        self.publish(CommitmentKept(kept))

    async def _wait_until(
        self, case: CommitmentCase, not_before: datetime | None, reason: str, result: Mapping[str, Any]
    ) -> None:
        """Leave it until `not_before`, or look again with the next step."""
        if not_before is not None:
            self.presence.let_go(case.commitment)
            self.queue.wait_until(case.commitment.id, not_before, result)
        await self._waits(case, reason)

    async def _failed(self, case: CommitmentCase, progress: Progress) -> None:
        after = self.queue.mark_failed(case.commitment.id, progress.reason, progress.result or None)
        await self._after_failure(case, after)

    async def _after_failure(self, case: CommitmentCase, after: QueuedCommitment) -> None:
        reason = after.error or ""
        await self.presence.ended(after, error=reason or "failed")
        if after.status == "abandoned":
            await self._gave_up(case, reason)
            return
        summary = f"Not fulfilled yet (try {after.attempt_count})"
        await self._tell(case, "decision", summary, reason, line="warn", act="failed")

    async def _gave_up(self, case: CommitmentCase, reason: str) -> None:
        """Silence in the room: what failed is told to the owner only."""
        commitment = case.commitment
        self.presence.let_go(commitment)
        waited = self._told.pop(commitment.id, "")
        why = f"{reason}; it {waited}" if waited else reason
        summary = "[space] Commitment abandoned silently" if commitment.source == "space" else "Commitment abandoned"
        await self._tell(case, "decision", summary, why, line="warn", act="abandoned")

    def _count_try(self, commitment: QueuedCommitment) -> int:
        tries = self._announce_tries.get(commitment.id, 0) + 1
        self._announce_tries[commitment.id] = tries
        return tries

    async def _waits(self, case: CommitmentCase, reason: str) -> None:
        if self._told.get(case.commitment.id) == reason:
            return
        self._told[case.commitment.id] = reason
        await self._tell(case, "decision", "A commitment waits", reason, line="queue", act="waits")

    async def _tell_why(self, case: CommitmentCase) -> None:
        """For the explanation of the act: the words in which the commitment was made."""
        said = " ".join(case.commitment.source_reply_text.split())[:_SAID_CHARS]
        reason = f"said in {case.commitment.source_thread_uri}: “{said}”"
        await self._tell(case, "decision", "Fulfilling a commitment", reason, line=None, act="begun")

    async def _tell(
        self,
        case: CommitmentCase,
        kind: EntryKind,
        summary: str,
        reason: str = "",
        *,
        line: LineKind | None,
        **data: Any,  # noqa: ANN401 - JSON-like
    ) -> None:
        commitment = case.commitment
        title = " ".join(title_of(commitment).split())[:_TITLE_CHARS]
        thread = commitment.source_thread_uri
        about = {"promise": commitment.id, "type": commitment.type, "said": commitment.source_reply_text}
        await self.journal.record(
            Entry(
                kind,
                _LOOP,
                summary if kind == "life" else f"{summary}: {title}",
                line,
                reason,
                trigger_uri=thread if thread.startswith("at://") else None,
                intent_id=case.intent_id,
                data={**about, **data},
            )
        )


def _newest(rows: Sequence[Intent]) -> Intent | None:
    """Return the row that counts: one that lives, else the latest."""
    return next((row for row in rows if row.state in ACTIVE_STATES), rows[0] if rows else None)


def _under_way(row: Intent, so_far: Mapping[str, Any]) -> Progress:
    if row.state == "held":
        return Progress("held", HELD, so_far)
    return Progress("waits", row.error or "is on its way", so_far)
