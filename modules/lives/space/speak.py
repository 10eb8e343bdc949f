"""Says something in the room, with the commitments that belong to it.

Three steps, since nobody waits inside a turn. `prepare` claims what is promised, shows that we type, and tells from
when the message may be said. Then `write` has what is promised written out in full, and `say` looks at the room anew:
what others said, claimed or made meanwhile can still stop us. A commitment lies on the disk before anybody can have
read the words.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from adapters.space.client import SpaceClient
from common.clock import Clock
from common.constants import SECOND_MS
from common.redact import LEAK, Redactor
from common.result import Err
from common.schemas import Commitment
from common.text.untrusted import clean, one_line
from modules.lives.space.commitment_maker import CLAIM_ANSWER_S, CommitmentMaker
from modules.lives.space.config import SpaceConfig
from modules.lives.space.journal_reporter import SPOKE, JournalReporter, Note
from modules.lives.space.perceive import Perceiver
from modules.lives.space.prompting import alone_without_github
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.snapshot_builder import SnapshotBuilder
from modules.lives.space.state import Conversation, Delivered, Spoke, Unheard
from modules.lives.space.transcript import shown
from modules.lives.space.types import HistoryEntry, Speech
from modules.lives.space.validator import validate_space_message
from modules.services.commitments.types import QueuedCommitment
from modules.services.peers.room_members import PeerRelationships

DELIVERY_WAIT_S = 75.0

_MADE = "it was made already"
_EXPERIENCE_MESSAGES = 5
_EXPERIENCE_CHARS = 2000

Experience = Callable[[str, str], Awaitable[None]]
"""Told of something worth remembering: its kind, and what happened."""


@dataclass(frozen=True, slots=True)
class ProposedMessage:
    """What is to be said, with what commitments, and why. `acts`: it stands whatever others said meanwhile."""

    message: str
    commitments: tuple[Commitment, ...] = ()
    reason: str = ""
    acts: bool = False


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message that waits for its moment.

    Attributes:
        proposed: the message; what it promises is claimed.
        snapshot: the room as it was when the message was proposed.
        not_before: when it may be said, in seconds of the monotonic clock.
        settles: the words alone answer the host's request.
        is_written: what is promised has its whole bodies.

    """

    proposed: ProposedMessage
    snapshot: RoomSnapshot
    not_before: float
    settles: bool = False
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class Spoken:
    """What became of it, `reason` why it was not said; `heard` is what others said meanwhile."""

    code: Speech
    reason: str = ""
    heard: tuple[HistoryEntry, ...] = ()


_TAKEN = Spoken("overtaken", "a peer is at it already")


@dataclass(frozen=True, slots=True)
class Speaker:
    """Speaks for one SOUL in one room.

    Attributes:
        client: our place in the room.
        talk: what we keep in mind of it.
        perceiver: hears what is said meanwhile.
        snapshots: say how things then stand.
        commitment_maker: makes the commitments.
        relationships: hears of exchanges worth keeping.
        reporter: tells the owner.
        redactor: knows what must not be said.
        clock: tells when.
        rng: draws delays.
        mute_reason: why nothing may be said just now, "" if something may.
        experience: hears of every N-th message with its talk.

    """

    client: SpaceClient
    talk: Conversation
    perceiver: Perceiver
    snapshots: SnapshotBuilder
    commitment_maker: CommitmentMaker
    relationships: PeerRelationships
    reporter: JournalReporter
    redactor: Redactor
    clock: Clock
    rng: random.Random
    mute_reason: Callable[[], str]
    experience: Experience

    async def prepare(
        self, proposed: ProposedMessage, snapshot: RoomSnapshot, config: SpaceConfig
    ) -> WaitingMessage | Spoken:
        """Claim what is promised, and show that we type; a message that may be said waits as long as typing takes."""
        if barred := self.barred(proposed):
            return barred
        left, made = self.commitment_maker.already_made(proposed.commitments, snapshot)
        proposed = ProposedMessage(made, reason=_MADE, acts=True) if made else replace(proposed, commitments=left)
        claimed = await self.commitment_maker.claim(proposed.commitments, snapshot)
        if proposed.commitments and not claimed:
            return _TAKEN
        await self.client.send_typing()
        pause_s = self.rng.uniform(config.reply_delay_min_ms, config.reply_delay_max_ms) / SECOND_MS
        return WaitingMessage(
            replace(proposed, commitments=claimed, message=clean(proposed.message)),
            snapshot,
            self.clock.monotonic() + max(pause_s, CLAIM_ANSWER_S if claimed else 0.0),
            settles=bool(made) and snapshot.is_open,
            is_written=not claimed,
        )

    async def write(self, waiting: WaitingMessage) -> WaitingMessage:
        """The same message, where what is promised and still claimed is written out in full."""
        proposed, snapshot = waiting.proposed, waiting.snapshot
        held = self.commitment_maker.still_claimed(proposed.commitments, snapshot.repo)
        if not held:
            return replace(waiting, is_written=True)
        written = await self.commitment_maker.write_out(held, snapshot)
        return replace(waiting, proposed=replace(proposed, commitments=written), is_written=True)

    async def say(self, waiting: WaitingMessage, config: SpaceConfig) -> Spoken:
        """Say what has waited, unless something speaks against it until the last moment."""
        proposed, before = waiting.proposed, waiting.snapshot
        heard = tuple(self.perceiver.look())
        self.snapshots.advance()
        now = self.snapshots.build_snapshot(before.batch, opens=before.opens)
        kept = self.commitment_maker.still_ours(proposed.commitments, before.repo, now)
        stopped = self.barred(proposed) or self._overtaken(proposed, kept, heard, now)
        if stopped:
            return replace(stopped, heard=heard)
        spoken = await self._send(replace(waiting, proposed=replace(proposed, commitments=kept)), now, config)
        return replace(spoken, heard=heard)

    def barred(self, proposed: ProposedMessage) -> Spoken | None:
        """Why nothing of ours may be said now; None if it may."""
        if muted := self.mute_reason():
            return Spoken("muted", muted)
        if not self.client.is_active:
            return Spoken("absent", "the room is gone")
        parts = [proposed.message, *(one.model_dump() for one in proposed.commitments)]
        return Spoken("muted", LEAK) if self.redactor.finds_in(parts) else None

    @staticmethod
    def _overtaken(
        proposed: ProposedMessage, kept: Sequence[Commitment], heard: Sequence[HistoryEntry], now: RoomSnapshot
    ) -> Spoken | None:
        """Why what we wanted to say is out of date; None if it is not."""
        if proposed.commitments:
            return None if kept else _TAKEN
        if proposed.acts or not heard:
            return None
        if any(entry.is_host for entry in heard):
            return Spoken("overtaken", "the host has spoken meanwhile")
        outcome = validate_space_message(proposed.message, (), now)
        return None if outcome.ok else Spoken("overtaken", f"others have spoken meanwhile: {outcome.tag}")

    async def _send(self, waiting: WaitingMessage, now: RoomSnapshot, config: SpaceConfig) -> Spoken:
        """Say and promise it."""
        proposed, snapshot = waiting.proposed, waiting.snapshot
        sent = await self.client.send_chat(proposed.message)
        if isinstance(sent, Err):
            return Spoken("failed", sent.error)
        entry = self.talk.handle(Spoke(proposed.message, self.clock.now())).history[-1]
        made = await self.commitment_maker.promise(proposed.commitments, proposed.message, snapshot, heard=False)
        promises = waiting.settles or (bool(made) and snapshot.is_open)
        if promises:
            self.talk.handle("promised")
        await self.reporter.decided(snapshot, *_said(proposed, made))
        delivery = await self._delivered(sent.data)
        if isinstance(delivery, Err):
            self.talk.handle(Unheard(entry))
            self.commitment_maker.settle(made, heard=False)
            if promises:
                self.talk.handle("unheard")
            await self.reporter.trouble("Not heard", delivery.error)
            return Spoken("failed", f"not heard: {delivery.error}")
        if delivery:
            self.commitment_maker.settle(made, heard=True)
        if alone_without_github(snapshot):
            self.talk.handle("declared_impossible")
        if not (proposed.commitments or proposed.acts or snapshot.is_settled):
            found = await self.commitment_maker.find(proposed.message, now)
            if found and snapshot.is_open:
                self.talk.handle("promised")
        await self._afterwards(config)
        return Spoken("spoke")

    async def _delivered(self, chat_id: str) -> bool | Err:
        """Whether the room has sent it back; an `Err` if it never heard it.

        Where no echo came the room's record may still show the words, and the commitment waits for that.
        """
        try:
            async with asyncio.timeout(DELIVERY_WAIT_S):
                delivery = await self.client.delivered(chat_id)
        except TimeoutError:
            return Err(f"the room did not send it back within {DELIVERY_WAIT_S:g} s", "transient")
        return delivery if isinstance(delivery, Err) else delivery.data

    async def _afterwards(self, config: SpaceConfig) -> None:
        """Rest for a moment, and remember every N-th message with its talk."""
        pause_ms = self.rng.uniform(config.cooldown_min_ms, config.cooldown_max_ms)
        talk = self.talk.handle(Delivered(self.clock.now() + timedelta(milliseconds=pause_ms)))
        if talk.spoken % config.reflection_every_n:
            return
        last = talk.history[-_EXPERIENCE_MESSAGES:]
        told = " | ".join(
            f"{shown(one.name, is_host=one.is_host)}: {one_line(one.content, _EXPERIENCE_CHARS)}" for one in last
        )
        peer = next((one for one in reversed(last) if not (one.is_host or one.is_me)), None)
        if peer:
            self.relationships.remember_exchange(peer.name, peer.content)
        await self.experience("connection_formed", told)
        await self.reporter.happened("space_participation", f"{talk.spoken} messages spoken")


def _said(proposed: ProposedMessage, made: Sequence[QueuedCommitment]) -> list[Note]:
    """What the journal tells of a message that is on its way."""
    ids = [one.id for one in made]
    notes = [Note("Spoke", proposed.reason, data={"act": SPOKE, "message": proposed.message, "commitments": ids})]
    if made:
        kinds = ", ".join(one.type for one in made)
        notes.append(Note("Structured commitments", kinds, "queue", {"commitments": ids}))
    return notes
