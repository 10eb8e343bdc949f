"""Says something in the room, and enters what was promised with it.

The order matters: what is promised is claimed first, and lies on the disk before anybody can have read the words; what
others said or claimed while we were about to speak can still stop us. A crash in between leaves a claim that ends by
itself within a minute.
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
from modules.commitments.policy import FOUND_ROOM, HOST_WISH
from modules.commitments.queue import CommitmentQueue
from modules.commitments.types import QueuedCommitment
from modules.commitments.voice import Voice, as_commitments
from modules.foreign_text import clean, one_line
from modules.space.config import SpaceConfig
from modules.space.filters import allowed, not_twice, unclaimed
from modules.space.notes import alone_without_github
from modules.space.perceive import Perceiver
from modules.space.places import placed
from modules.space.relationships import PeerRelationships
from modules.space.requests import promised
from modules.space.scene import Scene
from modules.space.state import Conversation
from modules.space.survey import Surveyor
from modules.space.targets import claim_target, wanted
from modules.space.telling import Teller
from modules.space.transcript import told
from modules.space.types import HistoryEntry
from modules.space.validation import validate_space_message
from modules.space.weigh import context_of

CLAIM_ANSWER_S = 0.3
DELIVERY_WAIT_S = 15.0

_EXPERIENCE_MESSAGES = 5
_EXPERIENCE_CHARS = 2000
_TOLD_FOR_A_BODY = 20

Experience = Callable[[str, str], Awaitable[None]]
"""Told of something worth remembering: its kind, and what happened."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What is to be said, with what promises, and why. `acts`: it stands whatever others said meanwhile."""

    message: str
    commitments: tuple[Commitment, ...] = ()
    reason: str = ""
    acts: bool = False


@dataclass(frozen=True, slots=True)
class Spoken:
    """What became of it: the entry if it was said, else why not; `heard` is what others said meanwhile."""

    entry: HistoryEntry | None = None
    promises: tuple[QueuedCommitment, ...] = ()
    why_not: str = ""
    overtaken: bool = False
    heard: tuple[HistoryEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Speaker:
    """Speaks for one SOUL in one room.

    Attributes:
        client: our place in the room.
        talk: what we keep in mind of it.
        perceiver: hears what is said meanwhile.
        surveyor: says how things then stand.
        queue: takes promises in.
        relationships: hears of work on a peer's issue, and of exchanges worth keeping.
        teller: tells the owner.
        redactor: knows what must not be said.
        clock: tells when.
        rng: draws delays.
        silence: why nothing may be said just now, "" if something may.
        voice: writes the body of a thin promise, and finds promises in words that were said without any.
        experience: hears of every N-th message with its talk.
        vouched: whether the owner named the room that we are in.

    """

    client: SpaceClient
    talk: Conversation
    perceiver: Perceiver
    surveyor: Surveyor
    queue: CommitmentQueue
    relationships: PeerRelationships
    teller: Teller
    redactor: Redactor
    clock: Clock
    rng: random.Random
    silence: Callable[[], str]
    voice: Voice
    experience: Experience
    vouched: Callable[[], bool]

    async def say(self, wish: Utterance, scene: Scene, config: SpaceConfig) -> Spoken:
        """Say it, unless something speaks against it until the last moment."""
        await self.client.send_typing()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._take_a_breath(config))
                writing = group.create_task(self._enriched(wish.commitments, scene))
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        wish = replace(wish, message=clean(wish.message), commitments=writing.result())
        heard = tuple(self.perceiver.look())
        if why_not := self._barred(wish):
            return Spoken(why_not=why_not, heard=heard)
        now = self.surveyor.scene(scene.batch, opens=scene.opens)
        free = unclaimed(wish.commitments, scene.repo, now.room.claims)
        kept = await self._claimed(free.kept, scene.repo)
        if why_not := self._overtaken(wish, kept, heard, now):
            return Spoken(why_not=why_not, overtaken=True, heard=heard)
        sent = await self.client.send_chat(wish.message)
        if isinstance(sent, Err):
            return Spoken(why_not=sent.error, heard=heard)
        entry = self.talk.spoke(wish.message, self.clock.now())
        promises = await self._promise(replace(wish, commitments=kept), scene)
        await self._told(wish, promises, scene)
        await self._settle(sent.data, entry, scene)
        if not kept and not scene.is_settled:
            promises = await self._found(wish, scene)
        await self._afterwards(entry, scene, config)
        return Spoken(entry, promises, heard=heard)

    async def _take_a_breath(self, config: SpaceConfig) -> None:
        delay_ms = self.rng.uniform(config.reply_delay_min_ms, config.reply_delay_max_ms)
        await self.clock.sleep(delay_ms / SECOND_MS)

    async def _enriched(self, commitments: Sequence[Commitment], scene: Scene) -> tuple[Commitment, ...]:
        """With whole bodies; a model writes those that say too little."""
        talk = conversation_of(scene)
        bodies = [await self.voice.enrich(one, talk) for one in commitments]
        return tuple(
            one.model_copy(update={"description": body}) for one, body in zip(commitments, bodies, strict=True)
        )

    def _barred(self, wish: Utterance) -> str:
        if why_not := self.silence():
            return why_not
        if not self.client.is_active:
            return "the room is gone"
        parts = [wish.message, *(one.model_dump() for one in wish.commitments)]
        return LEAK if self.redactor.finds_in(parts) else ""

    async def _claimed(self, commitments: Sequence[Commitment], repo: str | None) -> tuple[Commitment, ...]:
        """Those whose claims hold: the room answers at once when somebody was first."""
        if not commitments:
            return ()
        claims = {one: (one.type, claim_target(one, repo)) for one in commitments}
        for action, target in claims.values():
            await self.client.send_claim(action, target)
        await self.clock.sleep(CLAIM_ANSWER_S)
        lost = self.client.lost_claims()
        return tuple(one for one, claim in claims.items() if claim not in lost)

    def _overtaken(self, wish: Utterance, kept: Sequence[Commitment], heard: Sequence[HistoryEntry], now: Scene) -> str:
        """Why what we wanted to say is out of date, "" if it is not."""
        if wish.commitments:
            return "" if kept else "a peer is at it already"
        if wish.acts or not heard:
            return ""
        if any(entry.is_host for entry in heard):
            return "the host has spoken meanwhile"
        outcome = validate_space_message(context_of(wish.message, (), now, self.talk.me))
        return "" if outcome.ok else f"others have spoken meanwhile: {outcome.tag or outcome.reason}"

    async def _promise(self, wish: Utterance, scene: Scene) -> tuple[QueuedCommitment, ...]:
        """What the queue took, or held already."""
        taken: list[QueuedCommitment] = []
        for one in wish.commitments:
            asked = wanted(one, scene.repo, thread_uri=scene.thread_uri, spoken=wish.message)
            if scene.is_open:
                asked = replace(asked, params={**asked.params, HOST_WISH: True})
            if not self.vouched():
                asked = replace(asked, params={**asked.params, FOUND_ROOM: True})
            answer = self.queue.enqueue_commitment(asked)
            if answer.commitment is not None:
                taken.append(answer.commitment)
            else:
                await self.teller.trouble("Commitment refused", f"{one.type}: {answer.reason}")
            self._note_shared_work(one, scene)
        if taken and scene.is_open:
            self.talk.request = promised(self.talk.request)
        return tuple(taken)

    async def _told(self, wish: Utterance, promises: Sequence[QueuedCommitment], scene: Scene) -> None:
        ids = [one.id for one in promises]
        said = {"act": "spoke", "message": wish.message, "commitments": ids}
        await self.teller.decided("Spoke", wish.reason, scene, data=said)
        if promises:
            kinds = ", ".join(one.type for one in promises)
            await self.teller.decided("Structured commitments", kinds, scene, line="queue", data={"commitments": ids})

    async def _found(self, wish: Utterance, scene: Scene) -> tuple[QueuedCommitment, ...]:
        """Promises in words that were said without any; they pass the same filters as those of a decision."""
        heard = await self.voice.extract_commitments(
            [wish.message], context=conversation_of(scene), repo=scene.repo or ""
        )
        whole = as_commitments(heard, repo=scene.repo or "", social_only=scene.social_only).valid
        ours = allowed(whole, self.talk.request, is_owner=scene.is_owner, social_only=scene.social_only).kept
        new = not_twice(placed(ours, scene).kept, scene.repo, scene.deeds, met=scene.is_met).kept
        found = unclaimed(new, scene.repo, self.client.claims()).kept
        if not found:
            return ()
        promises = await self._promise(replace(wish, commitments=found), scene)
        kinds = ", ".join(one.type for one in promises)
        await self.teller.decided("Commitments extracted", kinds, scene, line="queue")
        return promises

    async def _settle(self, chat_id: str, entry: HistoryEntry, scene: Scene) -> None:
        """Wait until the room has heard it; what it never heard was not said."""
        try:
            async with asyncio.timeout(DELIVERY_WAIT_S):
                delivery = await self.client.delivered(chat_id)
        except TimeoutError:
            return
        if isinstance(delivery, Err):
            self.talk.take_back(entry)
            await self.teller.trouble("Not heard", delivery.error)
            return
        if alone_without_github(scene):
            self.talk.request = replace(self.talk.request, given_up=True)

    async def _afterwards(self, entry: HistoryEntry, scene: Scene, config: SpaceConfig) -> None:
        pause_ms = self.rng.uniform(config.cooldown_min_ms, config.cooldown_max_ms)
        self.talk.cooldown_until = self.clock.now() + timedelta(milliseconds=pause_ms)
        self.talk.spoken += 1
        if self.talk.spoken % config.reflection_every_n:
            return
        last = list(self.talk.history)[-_EXPERIENCE_MESSAGES:]
        told = " | ".join(f"{one_line(one.name)}: {one_line(one.content, _EXPERIENCE_CHARS)}" for one in last)
        peer = next((one for one in reversed(last) if not (one.is_host or one.is_me)), None)
        if peer:
            self.relationships.remember_exchange(peer.name, peer.content)
        await self.experience("connection_formed", told)
        await self.teller.happened("space_participation", f"{self.talk.spoken} messages spoken")

    def _note_shared_work(self, commitment: Commitment, scene: Scene) -> None:
        """A comment on a peer's issue is work together."""
        if commitment.type != "comment_issue":
            return
        end = f"{commitment.repo or scene.repo or ''}/issues/{commitment.number}".casefold()
        for link, name in self.talk.issues.items():
            if link.casefold().endswith(end):
                self.relationships.issue_co_created(name)


def conversation_of(scene: Scene) -> str:
    """The latest of the talk, as whoever writes a body should know it."""
    return "\n".join(told(entry) for entry in scene.history[-_TOLD_FOR_A_BODY:])
