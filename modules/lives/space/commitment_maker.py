"""Makes commitments: names what is claimed, has thin ones written in full, and takes them in, each once.

A commitment is claimed before it is written out, so that peers see at once that somebody is at it; it lies on the
disk before anybody can have read the message. A crash in between leaves a claim that ends by itself within a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adapters.space.client import SpaceClient
from adapters.space.types import HOST
from common.clock import Clock
from common.schemas import Commitment
from modules.lives.space.commitment_filter import (
    PlannedCommitment,
    alike,
    named,
    permitted,
    planned,
)
from modules.lives.space.journal_reporter import JournalReporter, Note
from modules.lives.space.request_parser import conversation_thread_uri
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.state import RoomConversation, WordsRefused
from modules.lives.space.types import RefusedWords
from modules.services.commitments.naming import claim_target, extract_fulfillment_url
from modules.services.commitments.params import CommentParams
from modules.services.commitments.policy import NEVER_DELIVERED
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.texts import done_line
from modules.services.commitments.types import LIVE, QueuedCommitment
from modules.services.commitments.writer import CommitmentWriter, as_commitments
from modules.services.peers.room_members import PeerRelationships

WITHDRAWN = "the host has taken the request back"
CLAIM_ANSWER_S = 0.3
"""Within which the room refuses a claim where somebody was first."""
BODY_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class CommitmentMaker:
    """Makes commitments for one SOUL in one room.

    Attributes:
        writer: writes missing bodies, and finds commitments in a message that was said without any.
        relationships: counts work on a peer's issue.
        is_trusted_room: returns whether the owner named the room that we are in.

    """

    client: SpaceClient
    talk: RoomConversation
    queue: CommitmentQueue
    writer: CommitmentWriter
    relationships: PeerRelationships
    reporter: JournalReporter
    clock: Clock
    is_trusted_room: Callable[[], bool]

    def plan(self, commitments: Sequence[Commitment], snapshot: RoomSnapshot) -> tuple[PlannedCommitment, ...]:
        """The commitments as the queue will take them, marked where the host asked for them, and with our room."""
        more = {"room_id": self.client.room_id, "found_room": not self.is_trusted_room()}
        return tuple(
            replace(one, request=replace(one.request, params=one.request.params.model_copy(update=more)))
            for one in planned(commitments, snapshot)
        )

    def plan_new(
        self, commitments: Sequence[Commitment], snapshot: RoomSnapshot
    ) -> tuple[tuple[PlannedCommitment, ...], str]:
        """What is left to commit to; where all of it was made within a day, the line that tells where it is."""
        every = self.plan(commitments, snapshot)
        done = [self.queue.kept_already(one.request) for one in every]
        made = next((kept for kept in done if kept), None)
        left = tuple(one for one, kept in zip(every, done, strict=True) if kept is None)
        if left or made is None:
            return left, ""
        return (), done_line(made, extract_fulfillment_url(made.type, made.result or {}))

    async def claim(self, planned: Sequence[PlannedCommitment]) -> tuple[PlannedCommitment, ...]:
        """Claim those that no peer has claimed, and return them; `still_claimed` tells later which claims hold."""
        live = self.client.claims()
        free = tuple(one for one in planned if alike(live, one.commitment.type, one.target) is None)
        for one in free:
            await self.client.send_claim(one.commitment.type, one.target)
        return free

    def still_claimed(self, planned: Sequence[PlannedCommitment]) -> tuple[PlannedCommitment, ...]:
        """Those whose claims hold: the room answers within `CLAIM_ANSWER_S` when somebody was first."""
        lost = self.client.lost_claims()
        return tuple(one for one in planned if (one.commitment.type, one.target) not in lost)

    async def write_out(
        self, planned: Sequence[PlannedCommitment], snapshot: RoomSnapshot
    ) -> tuple[PlannedCommitment, ...]:
        """Return them with whole bodies and final titles; a model writes missing bodies, within `BODY_WAIT_S`."""
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
        """Queue the commitments of the message `spoken`; returns those that the queue took or already had.

        `delivered`: the room has received it; else they wait until `settle` or the room's record says that it has.
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
        """The message in which they were made was sent: work on a peer's issue is remembered.

        `echoed`: the room has received the message, and they may be fulfilled; else the room's record tells later.
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
        """End our claims on what the host has taken back before we promised it."""
        for one in planned:
            await self.client.send_action_result(one.commitment.type, one.target, success=False, error=WITHDRAWN)

    async def withdraw_request(self, content: str) -> None:
        """Withdraw what we committed to for the host's request `content`, and end our claims on it.

        What is already being made goes on.
        """
        for one in self.queue.in_conversation(conversation_thread_uri(HOST, content), self.client.room_id):
            if one.status in LIVE and await self.queue.withdraw(one.id, WITHDRAWN):
                await self.client.send_action_result(one.type, claim_target(one), success=False, error=WITHDRAWN)

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
        """A comment on a peer's issue or pull request is work together."""
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
