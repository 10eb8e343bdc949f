"""Says something in the room, with what is promised in it.

The order matters: what is promised is claimed first, and lies on the disk before anybody can have read the words; what
others said, claimed or made while we were about to speak can still stop us.
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
from common.tasks import first_failure
from common.text.untrusted import clean, one_line
from modules.lives.space.commitment_maker import CommitmentMaker
from modules.lives.space.config import SpaceConfig
from modules.lives.space.host_request import promised
from modules.lives.space.journal_reporter import JournalReporter
from modules.lives.space.perceive import Perceiver
from modules.lives.space.prompting import alone_without_github
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.snapshot_builder import SnapshotBuilder
from modules.lives.space.state import Conversation
from modules.lives.space.transcript import shown
from modules.lives.space.types import HistoryEntry, Speech
from modules.lives.space.validator import SPOKE, validate_space_message
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
    """What is to be said, with what promises, and why. `acts`: it stands whatever others said meanwhile."""

    message: str
    commitments: tuple[Commitment, ...] = ()
    reason: str = ""
    acts: bool = False


@dataclass(frozen=True, slots=True)
class Spoken:
    """What became of it, `reason` why it was not said; `heard` is what others said meanwhile."""

    code: Speech
    reason: str = ""
    promises: tuple[QueuedCommitment, ...] = ()
    heard: tuple[HistoryEntry, ...] = ()


_TAKEN = Spoken("overtaken", "a peer is at it already")


@dataclass(frozen=True, slots=True)
class Speaker:
    """Speaks for one SOUL in one room.

    Attributes:
        client: our place in the room.
        talk: what we keep in mind of it.
        perceiver: hears what is said meanwhile.
        snapshots: says how things then stand.
        commitment_maker: makes the promises.
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

    async def say(self, wish: ProposedMessage, snapshot: RoomSnapshot, config: SpaceConfig) -> Spoken:
        """Say it, unless something speaks against it until the last moment."""
        if barred := self._barred(wish):
            return barred
        left, made = self.commitment_maker.already_made(wish.commitments, snapshot)
        wish = ProposedMessage(made, reason=_MADE, acts=True) if made else replace(wish, commitments=left)
        ours = await self.commitment_maker.claim(wish.commitments, snapshot)
        if wish.commitments and not ours:
            return _TAKEN
        wish = await self._written(replace(wish, commitments=ours), snapshot, config)
        heard = tuple(self.perceiver.look())
        self.snapshots.advance()
        now = self.snapshots.build_snapshot(snapshot.batch, opens=snapshot.opens)
        kept = self.commitment_maker.still_ours(wish.commitments, snapshot.repo, now)
        if stopped := self._barred(wish) or self._overtaken(wish, kept, heard, now):
            return replace(stopped, heard=heard)
        spoken = await self._spoken(
            replace(wish, commitments=kept), snapshot, config, settles=bool(made) and snapshot.is_open
        )
        return replace(spoken, heard=heard)

    async def _written(self, wish: ProposedMessage, snapshot: RoomSnapshot, config: SpaceConfig) -> ProposedMessage:
        """As it will be said, after the time that typing takes; what is promised is written out meanwhile."""
        await self.client.send_typing()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._take_a_breath(config))
                writing = group.create_task(self.commitment_maker.write_out(wish.commitments, snapshot))
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        return replace(wish, message=clean(wish.message), commitments=writing.result())

    async def _spoken(
        self, wish: ProposedMessage, snapshot: RoomSnapshot, config: SpaceConfig, *, settles: bool
    ) -> Spoken:
        """Said and promised; `settles`: the words alone answer the host's wish."""
        sent = await self.client.send_chat(wish.message)
        if isinstance(sent, Err):
            return Spoken("failed", sent.error)
        entry = self.talk.spoke(wish.message, self.clock.now())
        request = self.talk.request
        promises = await self.commitment_maker.promise(wish.commitments, wish.message, snapshot, heard=False)
        if settles:
            self.talk.request = promised(self.talk.request)
        await self._told(wish, promises, snapshot)
        if unheard := await self._settle(sent.data, entry, promises, snapshot):
            self.talk.request = request
            return unheard
        if not (wish.commitments or wish.acts or snapshot.is_settled):
            promises = await self.commitment_maker.find(wish.message, snapshot)
        await self._afterwards(entry, snapshot, config)
        return Spoken("spoke", promises=promises)

    async def _take_a_breath(self, config: SpaceConfig) -> None:
        delay_ms = self.rng.uniform(config.reply_delay_min_ms, config.reply_delay_max_ms)
        await self.clock.sleep(delay_ms / SECOND_MS)

    def _barred(self, wish: ProposedMessage) -> Spoken | None:
        """Why nothing of ours may be said now; None if it may."""
        if muted := self.mute_reason():
            return Spoken("muted", muted)
        if not self.client.is_active:
            return Spoken("absent", "the room is gone")
        parts = [wish.message, *(one.model_dump() for one in wish.commitments)]
        return Spoken("muted", LEAK) if self.redactor.finds_in(parts) else None

    def _overtaken(
        self, wish: ProposedMessage, kept: Sequence[Commitment], heard: Sequence[HistoryEntry], now: RoomSnapshot
    ) -> Spoken | None:
        """Why what we wanted to say is out of date; None if it is not."""
        if wish.commitments:
            return None if kept else _TAKEN
        if wish.acts or not heard:
            return None
        if any(entry.is_host for entry in heard):
            return Spoken("overtaken", "the host has spoken meanwhile")
        outcome = validate_space_message(wish.message, (), now)
        return None if outcome.ok else Spoken("overtaken", f"others have spoken meanwhile: {outcome.tag}")

    async def _told(self, wish: ProposedMessage, promises: Sequence[QueuedCommitment], snapshot: RoomSnapshot) -> None:
        ids = [one.id for one in promises]
        said = {"act": SPOKE, "message": wish.message, "commitments": ids}
        await self.reporter.decided("Spoke", wish.reason, snapshot, data=said)
        if promises:
            kinds = ", ".join(one.type for one in promises)
            await self.reporter.decided(
                "Structured commitments", kinds, snapshot, line="queue", data={"commitments": ids}
            )

    async def _settle(
        self, chat_id: str, entry: HistoryEntry, promises: Sequence[QueuedCommitment], snapshot: RoomSnapshot
    ) -> Spoken | None:
        """Wait until the room has heard it; what it never heard was neither said nor promised. None if it was heard.

        Where no echo came the room's record may still show the words, and the promise waits for that.
        """
        try:
            async with asyncio.timeout(DELIVERY_WAIT_S):
                delivery = await self.client.delivered(chat_id)
        except TimeoutError:
            delivery = Err(f"the room did not send it back within {DELIVERY_WAIT_S:g} s", "transient")
        if isinstance(delivery, Err):
            self.talk.take_back(entry)
            self.commitment_maker.settle(promises, heard=False)
            await self.reporter.trouble("Not heard", delivery.error)
            return Spoken("failed", f"not heard: {delivery.error}", tuple(promises))
        if delivery.data:
            self.commitment_maker.settle(promises, heard=True)
        if alone_without_github(snapshot):
            self.talk.request = replace(self.talk.request, given_up=True)
        return None

    async def _afterwards(self, entry: HistoryEntry, snapshot: RoomSnapshot, config: SpaceConfig) -> None:
        pause_ms = self.rng.uniform(config.cooldown_min_ms, config.cooldown_max_ms)
        self.talk.cooldown_until = self.clock.now() + timedelta(milliseconds=pause_ms)
        self.talk.spoken += 1
        if self.talk.spoken % config.reflection_every_n:
            return
        last = list(self.talk.history)[-_EXPERIENCE_MESSAGES:]
        told = " | ".join(
            f"{shown(one.name, is_host=one.is_host)}: {one_line(one.content, _EXPERIENCE_CHARS)}" for one in last
        )
        peer = next((one for one in reversed(last) if not (one.is_host or one.is_me)), None)
        if peer:
            self.relationships.remember_exchange(peer.name, peer.content)
        await self.experience("connection_formed", told)
        await self.reporter.happened("space_participation", f"{self.talk.spoken} messages spoken")
