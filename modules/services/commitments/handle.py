"""Takes each commitment one step further, and reports the result to the journal, the room and waiting conversations.

A step reads once the state of the acts in the outbox. The queue and the outbox keep what must survive a crash: an act
that left is not sent again, and one that waits is waited for. Everything else is reported again or not at all.
"""

import traceback
from collections.abc import Callable, Container, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from adapters.github.types import Repo
from common.clock import Clock, parse_iso, parse_iso_or_none
from common.constants import SECOND_MS
from common.errors import Fatal, Transient
from common.redact import Redactor
from common.text.untrusted import one_line
from common.wording import LineKind
from modules.runtime.events import Publish, discard
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry, EntryKind
from modules.services.commitments.acts import (
    ABANDONED,
    COMMITMENTS,
    CommitmentKept,
    CommitmentWork,
    EarlierComments,
    PlanMaker,
    asked_by,
    result_of,
    work_of,
)
from modules.services.commitments.case import CommitmentCase
from modules.services.commitments.naming import (
    CommitmentRoom,
    PlanParams,
    Progress,
    QueuedCommitment,
    claim_target,
    extract_fulfillment_url,
    repo_of,
    resolve_repo,
    title_of,
)
from modules.services.commitments.policy import (
    COMMITMENT_IN_PROGRESS_TIMEOUT_MS,
    COMMITMENT_MAX_ATTEMPTS,
    NEVER_DELIVERED,
    STALE,
    TIMED_OUT,
    concerns_room,
    due_in_s,
    is_stale,
    is_timed_out,
    is_young,
)
from modules.services.commitments.queue import COMMITMENT, CommitmentQueue, waiting_lines
from modules.services.commitments.writer import Announcer
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ActStanding, Intent, ProposedAction
from modules.services.plans.events import PlanAsk, ask_entry
from modules.services.voice_phrases import Phrase
from modules.services.work.types import Disposition, Handler, Perceiver, WorkItem

CLAIM_RENEWAL_INTERVAL_MS = 30 * SECOND_MS

_TARGET_CHARS, _ERROR_CHARS = 60, 200
_FAILED = "failed"
_RENEWED_EVERY_S = CLAIM_RENEWAL_INTERVAL_MS / SECOND_MS
_RENEWED_FOR_S = COMMITMENT_IN_PROGRESS_TIMEOUT_MS / SECOND_MS


@dataclass(slots=True)
class CommitmentPresence:
    """Shows the room what the SOUL works on. A message that cannot be sent is dropped, except that the SOUL is idle.

    Attributes:
        room: the room; None: there is none.
        clock: the time.
        redactor: finds secrets in what is sent, also in errors.
        silence: returns why nothing may be sent now, "" if something may.
        is_trusted_room: whether the owner named the room; one that was only found is told only of those made there.

    """

    room: CommitmentRoom | None
    clock: Clock
    redactor: Redactor = field(default_factory=Redactor)
    silence: Callable[[], str] = lambda: ""
    is_trusted_room: Callable[[], bool] = lambda: True
    _begun_at: dict[str, float] = field(default_factory=dict, init=False)
    _claimed_at: dict[str, float] = field(default_factory=dict, init=False)
    _acting: bool = field(default=False, init=False)

    def holder(self, commitment: QueuedCommitment) -> str:
        """Return the name of another member that works on it; "" if nobody does."""
        room = self._active() if self._concerns(commitment) else None
        return (room.has_active_claim(commitment.type, claim_target(commitment)) or "") if room else ""

    async def begins(self, commitment: QueuedCommitment) -> None:
        """Claim the commitment in the room, and set the state to acting."""
        if (room := self._listening(commitment)) is None:
            return
        await self._acts(room, commitment)
        await room.send_claim(commitment.type, claim_target(commitment))
        self._begun_at[commitment.id] = self._claimed_at[commitment.id] = self.clock.monotonic()

    async def goes_on(self, commitment: QueuedCommitment) -> None:
        """Renew the claim on a commitment in progress, every 30 s and for ten minutes at most."""
        room, last = self._listening(commitment), self._claimed_at.get(commitment.id)
        now = self.clock.monotonic()
        if room is None or (last is not None and now - last < _RENEWED_EVERY_S):
            return
        if now - self._begun_at.setdefault(commitment.id, now) >= _RENEWED_FOR_S:
            return
        if not self._acting:
            await self._acts(room, commitment)
        await room.send_claim(commitment.type, claim_target(commitment))
        self._claimed_at[commitment.id] = now

    async def ended(self, commitment: QueuedCommitment, *, link: str = "", error: str = "") -> None:
        """Report the result of a try, a success if there is no `error`, and stop renewing the claim."""
        self.let_go(commitment)
        if room := self._listening(commitment):
            told = "" if not error else _FAILED if self.redactor.finds_in(error) else one_line(error, _ERROR_CHARS)
            await room.send_action_result(
                commitment.type, claim_target(commitment), success=not error, link=link, error=told
            )

    def let_go(self, commitment: QueuedCommitment) -> None:
        """Stop renewing the claim, which then expires: no work on the commitment is in progress."""
        self._begun_at.pop(commitment.id, None)
        self._claimed_at.pop(commitment.id, None)

    def keep_only(self, live: Container[str]) -> None:
        """Stop renewing the claims on all other commitments, as on one that was withdrawn while it was in progress."""
        self._begun_at = {of: at for of, at in self._begun_at.items() if of in live}

    async def rests(self) -> None:
        """Set the state to idle if the room saw us act and nothing is in progress, as soon as that may be sent."""
        if self._begun_at:
            return
        if (room := self._active()) is None:
            self._acting = False
        elif self._acting and not self.silence():
            self._acting = not (await room.send_state("idle")).success

    async def _acts(self, room: CommitmentRoom, commitment: QueuedCommitment) -> None:
        self._acting = True
        target = claim_target(commitment)[:_TARGET_CHARS]
        await room.send_state("acting", f"fulfilling {commitment.type}: {target}")

    def _active(self) -> CommitmentRoom | None:
        return self.room if self.room is not None and self.room.is_active else None

    def _listening(self, commitment: QueuedCommitment) -> CommitmentRoom | None:
        """Return the room if it may be told something about a commitment, else None."""
        return None if self.silence() or not self._concerns(commitment) else self._active()

    def _concerns(self, commitment: QueuedCommitment) -> bool:
        return concerns_room(commitment, is_trusted=self.is_trusted_room())


HELD = "waits for the owner's approval"
NO_PLANS = "nobody makes plans here"

_TITLE_CHARS = 80
_SAID_CHARS = 300
_LOOK_SOON_S = 1.0
_TRACE_CHARS = 4_000
_BROKEN = "something went wrong while it was being done"
"""The text that a room reads about an internal error, whose details are in the journal."""


@dataclass(slots=True)
class CommitmentHandler(Handler, Perceiver):
    """Fulfils commitments.

    Attributes:
        queue: the commitments.
        outbox: the only way out.
        clock: the time.
        phrase: returns operational texts.
        announcer: announces that commitments are fulfilled.
        presence: shows the room what is done.
        journal: records each step.
        has_github: whether there is a GitHub account to write with.
        plans: prepares plans; without it commitments to plans wait.
        comments: finds what a promised comment would only repeat; without it each one is written.
        default_repo: returns the repository for a commitment that names none, if there is one.
        social_only: whether this SOUL does nothing on GitHub.
        publish: receives `CommitmentKept`.
        knows_room: whether we know what others in the room did while we were away.
        pause: returns why nothing may leave now, "" if something may; until then the host of a room can take it back.
        was_delivered: whether the room with this id ("" is any) is known to have received these words since.

    """

    kind = COMMITMENT
    is_public = False
    pause_s = 0.0
    tells = True

    queue: CommitmentQueue
    outbox: Outbox
    clock: Clock
    phrase: Phrase
    announcer: Announcer
    presence: CommitmentPresence
    journal: Journal
    has_github: bool
    plans: PlanMaker | None = None
    comments: EarlierComments | None = None
    default_repo: Callable[[], Repo | None] = lambda: None
    social_only: bool = False
    publish: Publish = discard
    knows_room: Callable[[], bool] = lambda: True
    pause: Callable[[], str] = lambda: ""
    was_delivered: Callable[[str, datetime, str], bool] = lambda _words, _since, _room_id: False
    _tried: set[str] = field(default_factory=set, init=False)
    """The commitments that were tried in this life; one that was not is not given up for its age alone."""

    async def perceive(self) -> None:
        """Start cooldowns of repositories that keep failing, and forget old commitments."""
        for cooldown in self.queue.check_and_apply_repo_cooldown():
            summary = f"{cooldown.owner}/{cooldown.repo} is left alone until {cooldown.until}"
            await self.journal.record(Entry("decision", COMMITMENTS, summary, "warn", cooldown.reason))
        self.queue.periodic_queue_cleanup()
        live = {one.id for one in self.queue.live()}
        self._tried &= live
        self.presence.keep_only(live)
        await self.presence.rests()

    async def handle(self, item: WorkItem) -> Disposition:
        """Take one commitment a step further; the disposition says when the next step is due."""
        try:
            disposition = await self._take_step(item)
        except (Fatal, Transient):
            raise
        except Exception as error:
            disposition = await self._broke(item, error)
        await self.presence.rests()
        return disposition

    async def _take_step(self, item: WorkItem) -> Disposition:
        commitment = self.queue.get(item.key)
        begins = commitment is not None and due_in_s(commitment, self.clock.now()) == 0
        if commitment is None or not (begins or commitment.status == "in_progress"):
            return self._left(item)
        case = await self._read(commitment)
        is_first_try = begins and commitment.id not in self._tried
        if not is_first_try and (ended := await self._ends_late(case, item)):
            return ended
        if begins:
            if hindrance := await self._hindrance(case):
                return await self._hindered(case, hindrance, item)
            self._tried.add(commitment.id)
            pending = waiting_lines(one for one in self.queue.live() if one.status != "in_progress")
            case = replace(case, commitment=await self.queue.mark_in_progress(commitment.id))
            if case.commitment.status != "in_progress":
                # NOTE(self): the room withdrew it during an await.
                return self._left(item)
            await self._tell(case, "life", f"Commitments: {pending}", line="queue")
            await self._claim(case.commitment, self.presence.begins)
        progress = await self._advance(case)
        if progress.proposed:
            case = replace(case, acts=(*case.acts, progress.proposed))
        if begins:
            if progress.state != "done":
                await self._tell_why(case)
        elif progress.state != "held":
            await self._claim(case.commitment, self.presence.goes_on)
        return await self._settle(case, progress, item)

    async def _claim(
        self, commitment: QueuedCommitment, claim: Callable[[QueuedCommitment], Coroutine[Any, Any, None]]
    ) -> None:
        """Claim it in the room, but not before it is read what the host said while we were away."""
        if commitment.source != "space" or self.knows_room():
            await claim(commitment)

    async def _hindered(self, case: CommitmentCase, reason: str, item: WorkItem) -> Disposition:
        if ended := await self._ends_late(case, item):
            return ended
        await self._waits(case, reason)
        return self._left(item)

    async def _ends_late(self, case: CommitmentCase, item: WorkItem) -> Disposition | None:
        """Give up a stale commitment, or end a try that takes too long; return None if neither happened.

        Neither happens while an act is on its way, once all are done, or if the owner refused one. A try in which an
        act was proposed does not take too long: it goes on with the next act, or ends for that act's reason.
        """
        if case.is_on_its_way or case.is_done or any(one.code == "refused" for one in case.acts):
            return None
        commitment, now = case.commitment, self.clock.now()
        if is_stale(commitment, now):
            reason = case.broken or commitment.error or STALE
            if waits := await self._tells_part(case, item):
                return waits
            await self.queue.give_up(commitment.id, reason, case.part or None, action="stale_abandoned")
            await self._gave_up(case, reason)
            return self._left(item)
        if is_timed_out(commitment, now) and all(one.code == "free" for one in case.acts):
            await self._after_failure(case, await self.queue.mark_failed(commitment.id, TIMED_OUT, is_late=True))
            return self._left(item)
        return None

    async def _broke(self, item: WorkItem, error: Exception) -> Disposition:
        """Count a bug of ours as a failed try."""
        if (commitment := self.queue.get(item.key)) is not None:
            case, reason = CommitmentCase(commitment, CommitmentWork()), f"{type(error).__name__}: {error}"
            trace = "".join(traceback.format_exception(error))[-_TRACE_CHARS:]
            await self._tell(case, "error", "Fulfilling a commitment failed", reason, line="error", trace=trace)
            await self._failed(case, Progress("failed", _BROKEN))
        return self._left(item)

    def _left(self, item: WorkItem) -> Disposition:
        """Return the disposition for the current state of the commitment."""
        commitment = self.queue.get(item.key)
        if commitment is None or commitment.status == "abandoned":
            return Disposition("dropped", "abandoned")
        if commitment.status == "completed":
            return Disposition("done", "completed")
        now = self.clock.now()
        wait_s = _LOOK_SOON_S if is_young(commitment, now) else due_in_s(commitment, now) or 0.0
        return Disposition("later", commitment.status, retry_in_s=self.clock.lived(wait_s))

    async def _read(self, commitment: QueuedCommitment) -> CommitmentCase:
        work = work_of(
            commitment,
            phrase=self.phrase,
            default_repo=self.default_repo(),
            github=self.has_github,
            social_only=self.social_only,
        )
        acts = [await self.outbox.standing(action.kind, action.target) for action in work.actions]
        return CommitmentCase(commitment, work, tuple(acts))

    async def _hindrance(self, case: CommitmentCase) -> str:
        """Return why a commitment cannot begin, or ""; one with an act that is done or on its way always continues."""
        commitment, work = case.commitment, case.work
        if work.waits or case.is_begun:
            return work.waits
        if commitment.source == "space" and (why := await self._why_room_waits(commitment)):
            return why
        if holder := self.presence.holder(commitment):
            return f"{holder} works at it"
        if not work.actions:
            return ""
        body = work.actions[0].body
        repo = resolve_repo(body.repo) if isinstance(body, IssueBody | IssueCommentBody) else None
        cooldown = self.queue.is_repo_cooled_down(repo.owner, repo.name) if repo else None
        return f"the repository is left alone until {cooldown.until}: {cooldown.reason}" if cooldown else ""

    async def _why_room_waits(self, commitment: QueuedCommitment) -> str:
        """Return why a commitment made in a room cannot begin, or ""."""
        if why := self.pause():
            return why
        if not self.knows_room():
            return "others in the room may have made it while we were away"
        if not commitment.params.undelivered:
            return ""
        made_at = parse_iso_or_none(commitment.created_at)
        room_id = commitment.params.room_id
        if made_at is not None and self.was_delivered(commitment.source_reply_text, made_at, room_id):
            await self.queue.mark_delivered(commitment.id)
            return ""
        is_late = await self.queue.withdraw_undelivered(commitment.id)
        return NEVER_DELIVERED if is_late else "the room has not received it yet"

    async def _advance(self, case: CommitmentCase) -> Progress:
        """Propose the next missing act, if there is one. An act that was begun is never begun again."""
        commitment, work = case.commitment, case.work
        if work.plan_for and isinstance(commitment.params, PlanParams):
            if self.plans is None:
                return Progress("waits", NO_PLANS)
            return await self.plans.prepare(commitment, commitment.params, work.plan_for)
        if not work.actions:
            return Progress("failed" if work.problem else "waits", work.problem or work.waits)
        done: list[Intent] = []
        for action, known in zip(work.actions, case.acts, strict=True):
            if known.active is None or known.code != "done":
                said = await self.comments.look(commitment, action.body) if self.comments and not known.intent else None
                return said or await self._missing(commitment, action, known, done)
            done.append(known.active)
        return Progress("done", result=result_of(commitment, done))

    async def _missing(
        self, commitment: QueuedCommitment, action: ProposedAction, known: ActStanding, done: list[Intent]
    ) -> Progress:
        so_far = result_of(commitment, done) if done else dict(commitment.result or {})
        failed = known.intent if known.code == "left_alone" else None
        if failed and self._is_of_this_try(failed, commitment):
            return Progress("put_off" if failed.state == "expired" else "failed", known.reason, so_far)
        # NOTE(self): each try of the commitment is one try of the act.
        act = await self.outbox.do_once(action, known.tries + 1)
        if act.active:
            proposed = act if act.is_new else None
            if act.code == "held":
                return Progress("held", HELD, so_far, proposed=proposed)
            return Progress("waits", act.active.error or "is on its way", so_far, proposed=proposed)
        if act.advice is None:
            return Progress("refused", act.intent.error or "" if act.intent else "", so_far)
        if act.advice.code == "later":
            return Progress("later", act.advice.reason, so_far, act.advice.not_before, proposed=act)
        return Progress("unwelcome" if act.advice.code == "silence" else "failed", act.reason, so_far, proposed=act)

    def _is_of_this_try(self, row: Intent, commitment: QueuedCommitment) -> bool:
        """Return whether the act was proposed since the try began; a future time means that the clock was set back."""
        began = parse_iso_or_none(commitment.last_attempt_at)
        return began is not None and began <= parse_iso(row.created_at) <= self.clock.now()

    async def _settle(self, case: CommitmentCase, progress: Progress, item: WorkItem) -> Disposition:
        commitment = case.commitment
        is_last = progress.state == "failed" and commitment.attempt_count + 1 >= COMMITMENT_MAX_ATTEMPTS
        if is_last or progress.state in {"refused", "unwelcome"}:
            if waits := await self._tells_part(case, item):
                return waits
            progress = replace(progress, result=case.part or progress.result)
        match progress.state:
            case "done":
                return await self._done(case, progress, item)
            case "held":
                self.presence.let_go(commitment)
                await self._waits(case, progress.reason)
            case "prepared" if progress.prepared is not None:
                await self.queue.keep_prepared(commitment.id, progress.prepared)
            case "failed":
                await self._failed(case, progress)
            case "put_off" | "refused":
                self.presence.let_go(commitment)
                await self.queue.put_off(commitment.id, progress.reason, progress.result)
                is_refused = progress.state == "refused" and await self.queue.withdraw(commitment.id, progress.reason)
                summary = "Not to be kept" if is_refused else "Put off"
                reason = case.with_part(progress.reason) if is_refused else progress.reason
                await self._tell(case, "decision", summary, reason, line="warn")
            case "later":
                await self._wait_until(case, progress.not_before, progress.reason, progress.result)
            case "unwelcome":
                given_up = await self.queue.give_up(commitment.id, progress.reason, progress.result)
                await self._after_failure(case, given_up)
        return self._left(item)

    async def _done(self, case: CommitmentCase, progress: Progress, item: WorkItem) -> Disposition:
        """Announce it, then mark it completed: in this order a crash neither loses nor repeats the announcement."""
        commitment = self.queue.get(case.commitment.id) or case.commitment
        untold = await self._announce(case, commitment, progress.result, item)
        if isinstance(untold, Disposition):
            return untold
        link = extract_fulfillment_url(commitment.type, progress.result)
        await self._note_askers(commitment, progress.result, link)
        kept = await self.queue.mark_completed(commitment.id, progress.result)
        await self.presence.ended(commitment, link=link)
        untold = f" (not announced: {untold})" if untold else ""
        await self._tell(case, "decision", "Kept", f"{link or 'done'}{untold}", line="done", act="kept")
        self.publish(CommitmentKept(kept))
        return self._left(item)

    async def _announce(
        self, case: CommitmentCase, commitment: QueuedCommitment, result: Mapping[str, Any], item: WorkItem
    ) -> Disposition | str:
        """Announce a result; return the disposition of a commitment that waits for that, or why it is not told."""
        told = await self.announcer.announce(commitment, result)
        if told.state == "waits" or (told.state == "later" and item.attempts + 1 < self.most_tries):
            why = f"what is done is not told yet: {told.reason}"
            await self._wait_until(case, told.not_before, why, result)
            left = self._left(item)
            return left if told.state == "waits" else replace(left, act="undecided")
        if (after := self.queue.get(commitment.id)) and after.askers != commitment.askers:
            return self._left(item)  # somebody asked for it meanwhile, and is told at the next step
        return told.reason

    async def _tells_part(self, case: CommitmentCase, item: WorkItem) -> Disposition | None:
        """Announce what was made of a commitment that ends early; return how the end waits for that, or None."""
        if not case.part:
            return None
        commitment = self.queue.get(case.commitment.id) or case.commitment
        untold = await self._announce(case, commitment, case.part, item)
        return untold if isinstance(untold, Disposition) else None

    async def _note_askers(self, commitment: QueuedCommitment, result: Mapping[str, Any], link: str) -> None:
        """Record who else asked for a plan, as its end is told to each of them."""
        number, repo = result.get("issueNumber"), repo_of(commitment.params, self.default_repo())
        if commitment.type != "create_plan" or not number or repo is None:
            return
        for one in commitment.by_asker[1:]:
            ask = PlanAsk(repo.full_name, number, asked_by(one), is_openers=False)
            await self.journal.record(ask_entry(ask, link))

    async def _wait_until(
        self, case: CommitmentCase, not_before: datetime | None, reason: str, result: Mapping[str, Any]
    ) -> None:
        """Wait until `not_before`; None: look again at the next step."""
        if not_before is not None:
            self.presence.let_go(case.commitment)
            await self.queue.wait_until(case.commitment.id, not_before, result)
        await self._waits(case, reason)

    async def _failed(self, case: CommitmentCase, progress: Progress) -> None:
        after = await self.queue.mark_failed(case.commitment.id, progress.reason, progress.result or None)
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
        """Report a commitment that was given up to the owner only, not to the room."""
        commitment = case.commitment
        self.presence.let_go(commitment)
        is_waiting = commitment.waits_for and not case.broken
        why = case.with_part(f"{reason}; it {commitment.waits_for}" if is_waiting else reason)
        summary = "[space] Commitment abandoned silently" if commitment.source == "space" else "Commitment abandoned"
        await self._tell(case, "decision", summary, why, line="warn", act=ABANDONED)

    async def _waits(self, case: CommitmentCase, reason: str) -> None:
        """Store the reason to wait, and record it once in the journal."""
        if await self.queue.note_waiting(case.commitment.id, reason):
            await self._tell(case, "decision", "A commitment waits", reason, line="queue", act="waits")

    async def _tell_why(self, case: CommitmentCase) -> None:
        """Record the words in which the commitment was made, for the explanation of the act."""
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
                COMMITMENTS,
                summary if kind == "life" else f"{summary}: {title}",
                line,
                reason,
                trigger_uri=thread if thread.startswith("at://") else None,
                intent_id=case.intent_id,
                data={**about, **data},
            )
        )
