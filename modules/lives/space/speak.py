"""Says something in the room, with the commitments that belong to it.

Three steps, since nobody waits inside a turn. `prepare` claims the commitments, shows that we type, and tells from
when the message may be said. Then `write` has the bodies of the commitments written in full, and `say` looks at the
room anew: what others said or made meanwhile can still stop us. A commitment lies on the disk before the message
leaves.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from adapters.space.client import SpaceClient
from adapters.space.types import DECLINES
from common.clock import Clock, iso, local
from common.constants import SECOND_MS
from common.errors import PolicyBlocked, Transient
from common.impression import Impressed
from common.provenance import Provenance
from common.redact import LEAK, Redactor
from common.result import Err
from common.schemas import Commitment
from common.text.untrusted import clean, one_line
from modules.lives.space.commitment_filter import PlannedCommitment, still_to_make
from modules.lives.space.commitment_maker import CLAIM_ANSWER_S, WITHDRAWN, CommitmentMaker
from modules.lives.space.config import SpaceConfig
from modules.lives.space.fallback import may_ask_for_repo
from modules.lives.space.journal_reporter import LOOP, JournalReporter
from modules.lives.space.perceive import RoomPerceiver
from modules.lives.space.prompting import alone_without_github
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.snapshot_builder import SnapshotBuilder
from modules.lives.space.state import Delivered, RoomConversation, Spoke
from modules.lives.space.transcript import shown
from modules.lives.space.types import HistoryEntry, Speech
from modules.lives.space.validator import MessageValidator
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.events import CommitmentKept
from modules.services.commitments.naming import title_of
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import IMPRESSED, ExperienceType, NewExperience
from modules.services.memory.admission import BODY_LENGTH, WordsOrigin, admitted, trust_of
from modules.services.memory.store import MemoryStore
from modules.services.memory.types import NewMemory
from modules.services.peers.room_members import PeerRelationships

DELIVERY_WAIT_S = 75.0

_MADE = "it was made already"
_EXPERIENCE_MESSAGES = 5
_EXPERIENCE_CHARS = 2000
_REQUEST_CHARS = 80

Experience = Callable[[ExperienceType, str, str], Awaitable[None]]
"""Told of something worth remembering: its kind, what happened, and which words in it are ours."""


@dataclass(frozen=True, slots=True)
class ProposedMessage:
    """What is to be said, with what commitments, and why.

    `acts`: it stands whatever others said meanwhile. `declines`: it refuses the open request and so ends it.
    `impression` is what the talk left us with.
    """

    message: str
    commitments: tuple[Commitment, ...] = ()
    reason: str = ""
    acts: bool = False
    declines: bool = False
    impression: Impressed = ""


@dataclass(frozen=True, slots=True)
class DelayedMessage:
    """A message that waits for its moment.

    Attributes:
        proposed: the message.
        planned: its commitments, which are claimed.
        snapshot: the room as it was when the message was proposed.
        not_before: when it may be said, in seconds of the monotonic clock.
        joins: how often we had joined a room then; it is said in no other room.
        settles: the words alone answer the host's request.
        is_written: the commitments have their whole bodies.

    """

    proposed: ProposedMessage
    snapshot: RoomSnapshot
    not_before: float
    joins: int
    planned: tuple[PlannedCommitment, ...] = ()
    settles: bool = False
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class SpeakResult:
    """What became of a message.

    Attributes:
        code: whether it was said.
        reason: why it was not said.
        new: what others said meanwhile.
        lacks_repo: whether it promises something for which the host has yet to name a repository.

    """

    code: Speech
    reason: str = ""
    new: tuple[HistoryEntry, ...] = ()
    lacks_repo: bool = False


_GONE = SpeakResult("absent", "the room is gone")
_TAKEN = "a peer is at it already"


@dataclass(frozen=True, slots=True)
class Speaker:
    """Sends the messages of one SOUL in one room, with their commitments.

    Attributes:
        mute_reason: returns why nothing may be said now, or "".
        experience: receives every N-th message with the talk around it.

    """

    client: SpaceClient
    talk: RoomConversation
    perceiver: RoomPerceiver
    snapshots: SnapshotBuilder
    commitment_maker: CommitmentMaker
    validator: MessageValidator
    relationships: PeerRelationships
    reporter: JournalReporter
    redactor: Redactor
    clock: Clock
    rng: random.Random
    mute_reason: Callable[[], str]
    experience: Experience

    async def prepare(
        self, proposed: ProposedMessage, snapshot: RoomSnapshot, config: SpaceConfig
    ) -> DelayedMessage | SpeakResult:
        """Claim the commitments, and show that we type; a message that may be said waits as long as typing takes."""
        if barred := self.barred(proposed):
            return barred
        left, made = self.commitment_maker.plan_new(proposed.commitments, snapshot)
        if made:
            proposed = ProposedMessage(made, reason=_MADE, acts=True)
        claimed = await self.commitment_maker.claim(left)
        if left and not claimed:
            return SpeakResult("overtaken", _TAKEN)
        await self.client.send_typing()
        pause_s = self.rng.uniform(config.reply_delay_min_ms, config.reply_delay_max_ms) / SECOND_MS
        return DelayedMessage(
            _with_commitments(replace(proposed, message=clean(proposed.message)), claimed),
            snapshot,
            self.clock.monotonic() + max(pause_s, CLAIM_ANSWER_S if claimed else 0.0),
            self.client.joins,
            claimed,
            settles=bool(made) and snapshot.is_open,
            is_written=not claimed,
        )

    async def write(self, waiting: DelayedMessage) -> DelayedMessage:
        """The same message, where the commitments that are still claimed have their whole bodies."""
        held = self.commitment_maker.still_claimed(waiting.planned)
        if not held:
            return replace(waiting, is_written=True)
        written = await self.commitment_maker.write_out(held, waiting.snapshot)
        return replace(waiting, proposed=_with_commitments(waiting.proposed, written), planned=written, is_written=True)

    async def say(self, waiting: DelayedMessage, config: SpaceConfig) -> SpeakResult:
        """Say what has waited and is written, unless something speaks against it until the last moment.

        Only what the room said and did since is judged; the rest was judged when the message was proposed.
        """
        new = tuple(await self.perceiver.look())
        if any(entry.is_host for entry in new):
            await self.snapshots.understand()
        self.snapshots.advance()
        now = self.snapshots.build_snapshot(waiting.snapshot.batch, opens=waiting.snapshot.opens)
        planned = still_to_make(waiting.planned, now, self.client.lost_claims())
        if waiting.planned and now.is_withdrawn:
            await self.commitment_maker.release(waiting.planned)
        stopped = ""
        if waiting.proposed.commitments:
            stopped = WITHDRAWN if now.is_withdrawn else "" if planned else _TAKEN
        elif new and not waiting.proposed.acts:
            stopped = await self.validator.outdated(waiting.proposed.message, new, now)
        if stopped:
            return SpeakResult("overtaken", stopped, new)
        return replace(await self._send(replace(waiting, planned=planned), now, config), new=new)

    def barred(self, proposed: ProposedMessage) -> SpeakResult | None:
        """Why nothing of ours may be said now; None if it may."""
        if muted := self.mute_reason():
            return SpeakResult("muted", muted)
        if not self.client.is_active:
            return _GONE
        parts = [proposed.message, *(one.model_dump() for one in proposed.commitments)]
        return SpeakResult("muted", LEAK) if self.redactor.finds_in(parts) else None

    def dropped(self, waiting: DelayedMessage) -> SpeakResult | None:
        """Why a message that waits may never be said; None if it may."""
        elsewhere = self.client.joins != waiting.joins and self.client.fresh_room
        return _GONE if elsewhere else self.barred(waiting.proposed)

    async def _send(self, waiting: DelayedMessage, now: RoomSnapshot, config: SpaceConfig) -> SpeakResult:
        """Make the commitments, send the message, and wait until the room has received it.

        A message that the room never received leaves nothing behind, neither in the talk nor in the queue.
        """
        proposed, snapshot = waiting.proposed, waiting.snapshot
        sent_at = self.clock.now()
        made = await self.commitment_maker.enqueue(waiting.planned, proposed.message, delivered=False)
        sent = await self.client.send_chat(proposed.message)
        try:
            async with asyncio.timeout(DELIVERY_WAIT_S):
                delivery = sent if isinstance(sent, Err) else await self.client.delivered(sent.data)
        except TimeoutError:
            delivery = Err(f"the room did not send it back within {DELIVERY_WAIT_S:g} s", "transient")
        if isinstance(delivery, Err):
            await self.commitment_maker.withdraw(made)
            return SpeakResult("failed", f"not delivered: {delivery.error}")
        self.talk.handle(Spoke(proposed.message, sent_at))
        if waiting.settles or (made and snapshot.is_open):
            self.talk.handle("committed")
        if proposed.declines or alone_without_github(snapshot):
            self.talk.handle("declined")
        if proposed.declines:
            await self.client.send_action_result(
                DECLINES, one_line(snapshot.request.content, _REQUEST_CHARS), success=False, error="declined"
            )
        await self.reporter.spoke(snapshot, proposed.message, proposed.reason, made)
        await self.commitment_maker.settle(made, echoed=delivery.data)
        lacks_repo = False
        if not (proposed.commitments or proposed.acts or snapshot.is_settled):
            found, lacks_repo = await self.commitment_maker.find(proposed.message, now)
            if found and snapshot.is_open:
                self.talk.handle("committed")
        await self._afterwards(config, proposed.impression)
        return SpeakResult("spoke", lacks_repo=lacks_repo and not snapshot.needs_repo and may_ask_for_repo(now))

    async def _afterwards(self, config: SpaceConfig, impression: Impressed) -> None:
        """Rest for a moment, and remember with its talk every N-th message, and what left us with something."""
        pause_ms = self.rng.uniform(config.cooldown_min_ms, config.cooldown_max_ms)
        talk = self.talk.handle(Delivered(self.clock.now() + timedelta(milliseconds=pause_ms)))
        if talk.spoken % config.reflection_every_n and not impression:
            return
        last = talk.history[-_EXPERIENCE_MESSAGES:]
        told = " | ".join(
            f"{shown(one.name, is_host=one.is_host)}: {one_line(one.content, _EXPERIENCE_CHARS)}" for one in last
        )
        ours = next((one.content for one in reversed(last) if one.is_me), "")
        peer = next((one for one in reversed(last) if not (one.is_host or one.is_me)), None)
        if peer:
            self.relationships.record_memorable_exchange(peer.name, peer.content)
        await self.experience(IMPRESSED.get(impression, "connection_formed"), told, ours)
        await self.reporter.happened("space_participation", f"{talk.spoken} messages spoken")


def _with_commitments(proposed: ProposedMessage, planned: Sequence[PlannedCommitment]) -> ProposedMessage:
    return replace(proposed, commitments=tuple(one.commitment for one in planned))


_SUBJECTS: Mapping[ExperienceType, str] = {
    "connection_formed": "A talk in the room",
    "was_challenged": "A disagreement in the room",
    "question_emerged": "A question of the room",
    "helped_someone": "A commitment fulfilled",
}
_IMPORTANCE = 2


@dataclass(frozen=True, slots=True)
class Experiences:
    """Keeps experiences of the room: as memories, and in the log from which the SOUL learns.

    Attributes:
        session_key: of the session that keeps the talk of the room.
        timezone: IANA name, the SOUL's own; "" for the machine's.
        is_trusted_room: returns whether the owner named the room; if not, its words count as strangers'.

    """

    store: MemoryStore
    log: ExperienceLog
    journal: Journal
    clock: Clock
    session_key: str
    timezone: str
    is_trusted_room: Callable[[], bool]

    async def keep(self, kind: ExperienceType, what: str, ours: str = "") -> None:
        """Save an experience, of which `ours` are our own words; a failure goes to the journal."""
        now = self.clock.now()
        try:
            whose = Provenance.PEER if self.is_trusted_room() else Provenance.STRANGER
            if ours:
                key = f"{self.session_key}/{iso(now)}"
                await self.log.record(NewExperience(kind, "space", key, ours, trust=trust_of(whose)))
            await self.store.save(
                experience_of(kind, what, now, WordsOrigin(whose, whose, self.session_key), self.timezone), now
            )
        except (PolicyBlocked, Transient) as error:
            summary = "[space] An experience could not be remembered"
            await self.journal.record(Entry("error", LOOP, summary, line="warn", reason=str(error)))

    async def keep_commitment(self, event: CommitmentKept) -> None:
        """Remember a commitment that was made in the room and kept."""
        if event.commitment.source == "space":
            await self.keep("helped_someone", title_of(event.commitment))


def experience_of(kind: ExperienceType, what: str, now: datetime, words: WordsOrigin, timezone: str = "") -> NewMemory:
    """The memory that an experience becomes: an episode of its own, whatever was remembered before."""
    subject = f"{_SUBJECTS.get(kind, kind)}, {local(now, timezone):%Y-%m-%d %H:%M:%S}"
    return admitted(NewMemory("episode", subject, what[:BODY_LENGTH], ("experience", kind), _IMPORTANCE), words)
