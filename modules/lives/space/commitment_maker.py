"""Makes commitments: claims them, has thin ones written in full, queues each once, and tells the owner.

A commitment is claimed before it is written out, so that peers see at once that somebody works on it; it is on disk
before anybody can have read the message. A crash in between leaves a claim that ends by itself within a minute.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from adapters.space.client import SpaceClient
from adapters.space.types import (
    ActionDone,
    Claimed,
    Identified,
    Joined,
    Left,
    Reflected,
    Said,
    SpaceEvent,
    WorkspaceProgress,
)
from common.clock import Clock
from common.constants import DAY_MS
from common.schemas import Commitment
from common.text.handles import WORD
from common.text.strings import dedup_key
from common.text.untrusted import clean, one_line
from common.wording import LineKind
from modules.lives.space.commitment_filter import (
    PlannedCommitment,
    alike,
    named,
    permitted,
    planned,
)
from modules.lives.space.perceive import RoomConversation, WordsRefused
from modules.lives.space.request_parser import shown
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import RefusedWords
from modules.runtime.console import Console
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.naming import (
    LIVE,
    CommentParams,
    PlanParams,
    QueuedCommitment,
    claim_target,
)
from modules.services.commitments.policy import NEVER_DELIVERED
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.texts import done_line
from modules.services.commitments.writer import CommitmentWriter, as_commitments
from modules.services.outbox.outbox import Outbox
from modules.services.peers.room_identity import PeerRelationships

LOOP = "space-participation"
SPOKE = "spoke"
"""Marks the journal entry of a message that we said."""

_MESSAGES, _CHARS = 10, 200


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was decided on the way, for the journal; `data` holds the values behind it."""

    summary: str
    reason: str
    line: LineKind = "social"
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournalReporter:
    """Writes the journal entries of the life in the agent space."""

    journal: Journal

    async def decided(self, snapshot: RoomSnapshot, *notes: Note) -> None:
        """Record what was decided about `snapshot`, in order."""
        said = [
            f"{shown(entry.name, is_host=entry.is_host)}: {one_line(entry.content[: 4 * _CHARS], _CHARS)}"
            for entry in snapshot.batch[-_MESSAGES:]
        ]
        about = {
            "received": said,
            "mode": snapshot.mode,
            "owner": snapshot.owner or "",
            "role": snapshot.role,
            "request": one_line(snapshot.request.content[: 4 * _CHARS], _CHARS) if snapshot.is_open else "",
            "cycles": snapshot.request.cycles,
        }
        author = snapshot.batch[-1].name if snapshot.batch else None
        for note in notes:
            await self.journal.record(
                Entry(
                    "decision",
                    LOOP,
                    f"[space] {note.summary}",
                    line=note.line,
                    reason=note.reason,
                    trigger_uri=snapshot.thread_uri,
                    author=author,
                    data={**about, **note.data},
                )
            )

    async def spoke(self, snapshot: RoomSnapshot, message: str, reason: str, made: Sequence[QueuedCommitment]) -> None:
        """Record that `message` was said about `snapshot`, and which commitments were made in it."""
        ids = [one.id for one in made]
        notes = [Note("Spoke", reason, data={"act": SPOKE, "message": message, "commitments": ids})]
        if made:
            kinds = ", ".join(one.type for one in made)
            notes.append(Note("Structured commitments", kinds, "queue", {"commitments": ids}))
        await self.decided(snapshot, *notes)

    async def happened(self, summary: str, reason: str, *, line: LineKind = "info") -> None:
        """Record an event that is not a decision."""
        await self.journal.record(Entry("life", LOOP, f"[space] {summary}", line=line, reason=reason))

    async def trouble(self, summary: str, reason: str, *, trace: str = "") -> None:
        """Record a failure; `trace` is the traceback of an unexpected one."""
        data = {"trace": trace} if trace else {}
        await self.journal.record(Entry("error", LOOP, f"[space] {summary}", line="warn", reason=reason, data=data))


SPACE_OWN_LINES_KEPT_MS = 7 * DAY_MS

_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class OwnLines:
    """Our own messages, as recorded in `journal`."""

    journal: Journal
    clock: Clock

    async def hold(self, message: str) -> bool:
        """Return whether we said the same within the last seven days; up to three words, as a greeting, may recur."""
        if len(WORD.findall(message)) < _FEWEST_WORDS:
            return False
        since = self.clock.now() - timedelta(milliseconds=SPACE_OWN_LINES_KEPT_MS)
        key = dedup_key(message)
        return any(dedup_key(said) == key for said in await self.journal.messages(LOOP, SPOKE, since))


_DETAIL_CHARS = 200
_SAID_CHARS = 2_000

_Named = Joined | Left | Identified | Claimed | ActionDone | Reflected | WorkspaceProgress


def show_event(console: Console, event: SpaceEvent) -> None:
    """Show an event if it says something to people, with words cleaned so that they cannot control the terminal."""
    if told := line_of(event):
        console.line("social", f"[space] {told[0]}", told[1])


def line_of(event: SpaceEvent) -> tuple[str, str] | None:
    """Return the line of an event, and its detail; None for an event that says nothing to people."""
    if isinstance(event, Said):
        cut = " […]" if len(event.content) > _SAID_CHARS else ""
        return one_line(event.name), clean(event.content[:_SAID_CHARS]) + cut
    if not isinstance(event, _Named):
        return None
    what, detail = _told(event)
    return f"{one_line(event.name)} {what}", one_line(detail[: 4 * _DETAIL_CHARS], _DETAIL_CHARS)


def _told(event: _Named) -> tuple[str, str]:
    match event:
        case Joined():
            told = "joined", ""
        case Left():
            told = "left", ""
        case Identified():
            told = "identity", event.summary.voice
        case Claimed():
            told = "claimed", f"{event.action} {event.target}"
        case ActionDone():
            told = one_line(event.action), event.link if event.success else event.error or "failed"
        case Reflected():
            told = "reflected", event.summary
        case WorkspaceProgress():
            told = "workspace", f"{event.workspace} {event.completed:g}/{event.total:g}"
    return told


WITHDRAWN = "the host has taken the request back"
CLAIM_ANSWER_S = 0.3
"""Seconds within which the room refuses a claim if somebody was first."""
BODY_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class CommitmentMaker:
    """Makes commitments for one SOUL in one room.

    Attributes:
        writer: writes missing bodies, and finds commitments in a message that was said without any.
        relationships: records work on a peer's issue.
        outbox: holds the acts of commitments in progress.
        is_trusted_room: returns whether the owner named the room that we are in.

    """

    client: SpaceClient
    talk: RoomConversation
    queue: CommitmentQueue
    writer: CommitmentWriter
    relationships: PeerRelationships
    reporter: JournalReporter
    clock: Clock
    outbox: Outbox
    is_trusted_room: Callable[[], bool]

    def plan(self, commitments: Sequence[Commitment], snapshot: RoomSnapshot) -> tuple[PlannedCommitment, ...]:
        """Return the commitments as the queue takes them, marked if the host asked for them, and with our room."""
        more = {"room_id": self.client.room_id, "found_room": not self.is_trusted_room()}
        return tuple(
            replace(one, request=replace(one.request, params=one.request.params.model_copy(update=more)))
            for one in planned(commitments, snapshot)
        )

    def plan_new(
        self, commitments: Sequence[Commitment], snapshot: RoomSnapshot
    ) -> tuple[tuple[PlannedCommitment, ...], str]:
        """Return what is left to commit to, and if all of it was made within a day, the line that says where it is."""
        every = self.plan(commitments, snapshot)
        done = [self.queue.kept_already(one.request) for one in every]
        made = next((kept for kept in done if kept), None)
        left = tuple(one for one, kept in zip(every, done, strict=True) if kept is None)
        if left or made is None:
            return left, ""
        return (), done_line(made, made.result or {})

    async def claim(self, planned: Sequence[PlannedCommitment]) -> tuple[PlannedCommitment, ...]:
        """Claim those that no peer has claimed, and return them; `still_claimed` tells later which claims hold."""
        live = self.client.view.claims.live()
        free = tuple(one for one in planned if alike(live, one.commitment.type, one.target) is None)
        for one in free:
            await self.client.send_claim(one.commitment.type, one.target)
        return free

    def still_claimed(self, planned: Sequence[PlannedCommitment]) -> tuple[PlannedCommitment, ...]:
        """Return those whose claims hold: the room answers within `CLAIM_ANSWER_S` if somebody was first."""
        lost = self.client.view.claims.lost
        return tuple(one for one in planned if (one.commitment.type, one.target) not in lost)

    async def write_out(
        self, planned: Sequence[PlannedCommitment], snapshot: RoomSnapshot
    ) -> tuple[PlannedCommitment, ...]:
        """Return them with whole bodies and final titles; a model writes missing bodies, in `BODY_WAIT_S` seconds."""
        talk, bodies = snapshot.latest_lines, {one.commitment: one.commitment.description for one in planned}
        try:
            async with asyncio.timeout(BODY_WAIT_S):
                for one in bodies:
                    bodies[one] = await self.writer.enrich(one, talk)
        except TimeoutError:
            await self.reporter.trouble("Body not written", f"the model took longer than {BODY_WAIT_S:g} s")
        written = [
            one if body == one.description else one.model_copy(update={"title": named(one), "description": body})
            for one, body in bodies.items()
        ]
        return self.plan(written, snapshot)

    async def enqueue(
        self, planned: Sequence[PlannedCommitment], spoken: str, *, delivered: bool
    ) -> tuple[QueuedCommitment, ...]:
        """Queue the commitments of the message `spoken`; return those that the queue took or already had.

        `delivered`: the room has received it; otherwise they wait until `settle` or the room's record confirms that.
        """
        taken: list[QueuedCommitment] = []
        for one in planned:
            params = one.request.params.model_copy(update={"undelivered": not delivered})
            answer = await self.queue.enqueue_commitment(replace(one.request, source_reply_text=spoken, params=params))
            if answer.commitment is not None and answer.commitment.status in LIVE:
                taken.append(answer.commitment)
            else:
                await self.reporter.trouble("Commitment refused", f"{one.request.type}: {answer.reason}")
        return tuple(taken)

    async def settle(self, made: Sequence[QueuedCommitment], *, echoed: bool) -> None:
        """Record, after the message was sent, which of the commitments are work on a peer's issue.

        `echoed`: the room has received the message, so they may be fulfilled; otherwise its record confirms it later.
        """
        for one in made:
            self._note_shared_work(one)
            if echoed and self._is_undelivered(one):
                await self.queue.mark_delivered(one.id)

    async def withdraw(self, made: Sequence[QueuedCommitment]) -> None:
        """Withdraw the commitments of a message that the room never received."""
        for one in made:
            if self._is_undelivered(one):
                await self.queue.withdraw(one.id, NEVER_DELIVERED)

    async def release(self, planned: Sequence[PlannedCommitment]) -> None:
        """End our claims on what the host withdrew before we committed to it."""
        for one in planned:
            await self.client.send_action_result(one.commitment.type, one.target, success=False, error=WITHDRAWN)

    async def take_back(self, made: Sequence[QueuedCommitment], *, tells: bool = True) -> None:
        """Withdraw commitments that the host took back, and end our claims on them.

        What has left already, or is leaving, continues, which the request then says. Unless it `tells` the room, the
        claims expire by themselves.
        """
        for one in made:
            if not await self._stopped(one):
                self.talk.handle("too_late")
            elif tells:
                await self.client.send_action_result(one.type, claim_target(one), success=False, error=WITHDRAWN)

    async def _stopped(self, commitment: QueuedCommitment) -> bool:
        """Withdraw a commitment with its acts that were not sent; return whether nothing more is done for it."""
        if await self.queue.withdraw(commitment.id, WITHDRAWN):
            return True
        is_planned = isinstance(commitment.params, PlanParams) and commitment.params.plan is None
        if not (await self.outbox.withdraw_begun(f"{commitment.id}#", WITHDRAWN) or is_planned):
            return False
        await self.queue.put_off(commitment.id, WITHDRAWN)
        return await self.queue.withdraw(commitment.id, WITHDRAWN)

    def _is_undelivered(self, made: QueuedCommitment) -> bool:
        now = self.queue.get(made.id)
        return now is not None and now.params.undelivered

    async def find(self, spoken: str, snapshot: RoomSnapshot) -> tuple[tuple[QueuedCommitment, ...], bool]:
        """Make the commitments in a message that was said without any; return them, and whether one lacks a repository.

        They pass the same filters as those of a decision.
        """
        extracted = await self.writer.extract_commitments(
            [spoken], context=snapshot.latest_lines, repo=snapshot.repo or ""
        )
        read = as_commitments(extracted, repo=snapshot.repo or "", social_only=snapshot.social_only)
        found = permitted(read.valid, snapshot)
        reasons = [*(one.reason for one in read.dropped), *(out.line for out in found.left_out)]
        for reason in reasons:
            await self.reporter.decided(snapshot, Note("Commitment dropped", reason, "warn"))
        if reasons:
            self.talk.handle(WordsRefused((RefusedWords(f'what you announced in "{spoken}"', "; ".join(reasons)),)))
        if not found.kept:
            return (), found.lacks_repo
        made = await self.enqueue(self.plan(found.kept, snapshot), spoken, delivered=True)
        await self.settle(made, echoed=True)
        kinds = ", ".join(one.type for one in made)
        await self.reporter.decided(snapshot, Note("Commitments extracted", kinds, "queue"))
        return made, found.lacks_repo

    def _note_shared_work(self, made: QueuedCommitment) -> None:
        """Record a comment on a peer's issue or pull request as shared work."""
        params = made.params
        if not isinstance(params, CommentParams):
            return
        place, number = f"/{params.owner}/{params.repo_name}".casefold(), params.issue_number
        for link, name in self.talk.state.issues.items():
            end = link.casefold().rstrip("/")
            if end.endswith(f"{place}/issues/{number}"):
                self.relationships.record_co_creation(name)
            elif end.endswith(f"{place}/pull/{number}"):
                self.relationships.record_pr_review(name)
