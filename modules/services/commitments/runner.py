"""Takes each commitment one step further, and tells what became of it to the journal, the room and those who wait.

What survives a crash lies with the queue and the outbox; the rest is told again or not at all.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from common.clock import parse_iso_or_none
from common.errors import Fatal, Transient
from modules.runtime.console import LineKind
from modules.runtime.events import Publish, discard
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry, EntryKind
from modules.services.commitments.announce import Announcer
from modules.services.commitments.events import CommitmentKept
from modules.services.commitments.fulfil import Fulfiller
from modules.services.commitments.naming import extract_fulfillment_url, resolve_repo, title_of
from modules.services.commitments.policy import NEVER_DELIVERED, STALE
from modules.services.commitments.presence import Presence
from modules.services.commitments.queue import CommitmentQueue, waiting_lines
from modules.services.commitments.types import Progress, QueuedCommitment
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.types import ACTIVE_STATES

_LOOP = "commitments"
_TITLE_CHARS = 80
_SAID_CHARS = 300
_ANNOUNCE_TRIES = 3
_TRACE_CHARS = 4_000
_BROKEN = "something went wrong while it was being done"
"""What a room hears of an error of ours, which stands in the journal."""


class CommitmentRunner:
    """Fulfils commitments.

    Args:
        queue: the commitments.
        fulfiller: turns them into acts.
        announcer: tells that they are fulfilled.
        presence: what the room sees of it.
        journal: records each step.
        publish: receives `CommitmentKept`.
        knows_room: whether we know what others in the room made while we were away.
        was_delivered: whether the room with this id ("" is any) is known to have received these words of ours since.

    """

    def __init__(
        self,
        *,
        queue: CommitmentQueue,
        fulfiller: Fulfiller,
        announcer: Announcer,
        presence: Presence,
        journal: Journal,
        publish: Publish = discard,
        knows_room: Callable[[], bool] = lambda: True,
        was_delivered: Callable[[str, datetime, str], bool] = lambda _words, _since, _room_id: False,
    ) -> None:
        self._queue = queue
        self._fulfiller = fulfiller
        self._announcer = announcer
        self._presence = presence
        self._journal = journal
        self._told: dict[str, str] = {}
        self._announce_tries: dict[str, int] = {}
        self._publish = publish
        self._knows_room = knows_room
        self._was_delivered = was_delivered

    async def take_steps(self) -> int:
        """One step for each commitment whose turn it is; returns how many are under way."""
        await self._tidy()
        turn = await self._whose_turn()
        new = [one for one in turn if one.status != "in_progress"]
        if new:
            await self._tell(new[0], "life", f"Commitments: {waiting_lines(new)}", line="queue")
        held = {one.id for one in turn if await self._step(one) == "held"}
        under_way = [one for one in self._queue.live() if one.status == "in_progress"]
        working = [one for one in under_way if one.id not in held]
        if not working:
            await self._presence.rests()
        return len(working)

    async def _tidy(self) -> None:
        """Give up what nobody waits for, and leave alone where nothing works."""
        on_the_way = {
            one.id
            for one in self._queue.live()
            if any(row.state in ACTIVE_STATES - {"done"} for row in await self._fulfiller.acts(one))
        }
        late = self._queue.timeout_in_progress_commitments(on_the_way)
        for one in late:
            await self._after_failure(one)
        for one in self._queue.abandon_stale_commitments(on_the_way):
            await self._gave_up(one, one.error or STALE)
        for cooldown in self._queue.check_and_apply_repo_cooldown():
            summary = f"{cooldown.owner}/{cooldown.repo} is left alone until {cooldown.until}"
            await self._journal.record(Entry("decision", _LOOP, summary, "warn", cooldown.reason))
        self._queue.periodic_queue_cleanup()

    async def _whose_turn(self) -> list[QueuedCommitment]:
        """What can be worked at now; of what cannot, the reason is told once."""
        running = [one for one in self._queue.live() if one.status == "in_progress"]
        ready = []
        for one in self._queue.due():
            hindrance = await self._hindrance(one)
            if hindrance:
                await self._waits(one, hindrance)
            else:
                ready.append(one)
        return sorted([*running, *ready], key=lambda one: one.created_at)

    async def _hindrance(self, commitment: QueuedCommitment) -> str:
        """Why a commitment is not begun, or ""; what was begun is always brought to its end."""
        work = self._fulfiller.work(commitment)
        if work.waits:
            return work.waits
        if any(row.state in ACTIVE_STATES for row in await self._fulfiller.acts(commitment)):
            return ""
        if commitment.source == "space" and (why := self._why_room_waits(commitment)):
            return why
        if holder := self._presence.holder(commitment):
            return f"{holder} works at it"
        if not work.actions:
            return ""
        body = work.actions[0].body
        repo = resolve_repo(body.repo) if isinstance(body, IssueBody | IssueCommentBody) else None
        cooldown = self._queue.is_repo_cooled_down(repo.owner, repo.name) if repo else None
        return f"the repository is left alone until {cooldown.until}: {cooldown.reason}" if cooldown else ""

    def _why_room_waits(self, commitment: QueuedCommitment) -> str:
        """Why a commitment made in a room is not begun, or ""."""
        if not self._knows_room():
            return "others in the room may have made it while we were away"
        if not commitment.params.undelivered:
            return ""
        made_at = parse_iso_or_none(commitment.created_at)
        room_id = commitment.params.room_id
        if made_at is not None and self._was_delivered(commitment.source_reply_text, made_at, room_id):
            self._queue.mark_delivered(commitment.id)
            return ""
        return (
            NEVER_DELIVERED if self._queue.withdraw_undelivered(commitment.id) else "the room has not received it yet"
        )

    async def _step(self, commitment: QueuedCommitment) -> str:
        """Return how far one commitment is; one that trips over a bug of ours must not stop the others."""
        begins = commitment.status != "in_progress"
        if begins:
            commitment = self._queue.mark_in_progress(commitment.id)
            await self._presence.begins(commitment)
        try:
            progress = await self._fulfiller.advance(commitment)
            if begins:
                await self._tell_why(commitment)
            elif progress.state != "held":
                await self._presence.goes_on(commitment)
            await self._settle(commitment, progress)
        except (Fatal, Transient):
            raise
        except Exception as error:
            trace = "".join(traceback.format_exception(error))[-_TRACE_CHARS:]
            reason = f"{type(error).__name__}: {error}"
            await self._tell(commitment, "error", "Fulfilling a commitment failed", reason, line="error", trace=trace)
            progress = Progress("failed", _BROKEN)
            await self._failed(commitment, progress)
        return progress.state

    async def _settle(self, commitment: QueuedCommitment, progress: Progress) -> None:
        match progress.state:
            case "done":
                await self._done(commitment, progress)
            case "held":
                self._presence.let_go(commitment)
                await self._waits(commitment, progress.reason)
            case "prepared" if progress.prepared is not None:
                self._queue.keep_prepared(commitment.id, progress.prepared)
            case "waits":
                self._told.pop(commitment.id, None)
            case "failed":
                await self._failed(commitment, progress)
            case "put_off":
                self._presence.let_go(commitment)
                self._queue.put_off(commitment.id, progress.reason, progress.result)
                await self._tell(commitment, "decision", "Put off", progress.reason, line="warn")
            case "later":
                await self._wait_until(commitment, progress.not_before, progress.reason, progress.result)
            case "refused":
                self._presence.let_go(commitment)
                self._queue.put_off(commitment.id, progress.reason, progress.result)
                self._queue.withdraw(commitment.id, progress.reason)
                await self._tell(commitment, "decision", "Not to be kept", progress.reason, line="warn")
            case "unwelcome":
                given_up = self._queue.give_up(commitment.id, progress.reason, progress.result)
                await self._after_failure(given_up)

    async def _done(self, commitment: QueuedCommitment, progress: Progress) -> None:
        """Tell it first: what was told is never told again, what was written down as kept would never be told."""
        announced = await self._announcer.announce(commitment, progress.result)
        if announced.later and (announced.busy or self._count_try(commitment) < _ANNOUNCE_TRIES):
            why = f"done, and not told yet: {announced.reason}"
            await self._wait_until(commitment, announced.not_before, why, progress.result)
            return
        self._announce_tries.pop(commitment.id, None)
        link = extract_fulfillment_url(commitment.type, progress.result)
        kept = self._queue.mark_completed(commitment.id, progress.result)
        self._told.pop(commitment.id, None)
        await self._presence.ended(commitment, link=link)
        untold = "" if announced.told or not announced.reason else f" (not announced: {announced.reason})"
        await self._tell(commitment, "decision", "Kept", f"{link or 'done'}{untold}", line="done", act="kept")
        self._publish(CommitmentKept(kept))

    async def _wait_until(
        self, commitment: QueuedCommitment, not_before: datetime | None, reason: str, result: Mapping[str, Any]
    ) -> None:
        """Leave it until `not_before`, or look again with the next step."""
        if not_before is not None:
            self._presence.let_go(commitment)
            self._queue.wait_until(commitment.id, not_before, result)
        await self._waits(commitment, reason)

    async def _failed(self, commitment: QueuedCommitment, progress: Progress) -> None:
        after = self._queue.mark_failed(commitment.id, progress.reason, progress.result or None)
        await self._after_failure(after)

    async def _after_failure(self, commitment: QueuedCommitment) -> None:
        reason = commitment.error or ""
        await self._presence.ended(commitment, error=reason or "failed")
        if commitment.status == "abandoned":
            await self._gave_up(commitment, reason)
            return
        summary = f"Not fulfilled yet (try {commitment.attempt_count})"
        await self._tell(commitment, "decision", summary, reason, line="warn", act="failed")

    async def _gave_up(self, commitment: QueuedCommitment, reason: str) -> None:
        """Silence in the room: what failed is told to the owner only."""
        self._presence.let_go(commitment)
        waited = self._told.pop(commitment.id, "")
        why = f"{reason}; it {waited}" if waited else reason
        summary = "[space] Commitment abandoned silently" if commitment.source == "space" else "Commitment abandoned"
        await self._tell(commitment, "decision", summary, why, line="warn", act="abandoned")

    def _count_try(self, commitment: QueuedCommitment) -> int:
        tries = self._announce_tries.get(commitment.id, 0) + 1
        self._announce_tries[commitment.id] = tries
        return tries

    async def _waits(self, commitment: QueuedCommitment, reason: str) -> None:
        if self._told.get(commitment.id) == reason:
            return
        self._told[commitment.id] = reason
        await self._tell(commitment, "decision", "A commitment waits", reason, line="queue", act="waits")

    async def _tell_why(self, commitment: QueuedCommitment) -> None:
        """For the explanation of the act: the words in which the commitment was made."""
        said = " ".join(commitment.source_reply_text.split())[:_SAID_CHARS]
        reason = f"said in {commitment.source_thread_uri}: “{said}”"
        await self._tell(commitment, "decision", "Fulfilling a commitment", reason, line=None, act="begun")

    async def _tell(
        self,
        commitment: QueuedCommitment,
        kind: EntryKind,
        summary: str,
        reason: str = "",
        *,
        line: LineKind | None,
        **data: Any,  # noqa: ANN401 - JSON-like
    ) -> None:
        title = " ".join(title_of(commitment).split())[:_TITLE_CHARS]
        told = summary if kind == "life" else f"{summary}: {title}"
        rows = await self._fulfiller.acts(commitment)
        thread = commitment.source_thread_uri
        about = {"promise": commitment.id, "type": commitment.type, "said": commitment.source_reply_text}
        await self._journal.record(
            Entry(
                kind,
                _LOOP,
                told,
                line,
                reason,
                trigger_uri=thread if thread.startswith("at://") else None,
                intent_id=rows[-1].id if rows else None,
                data={**about, **data},
            )
        )
