"""Says a message in the room with its commitments, and decides what follows if it could not be said.

No turn blocks, so there are three steps. `prepare` claims the commitments, shows that we type, and sets when the
message may be said. `write` has the bodies of the commitments written in full. `say` looks at the room again: what
others said or made meanwhile can still stop us. A commitment is on disk before the message leaves.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import regex

from adapters.space.client import SpaceClient
from adapters.space.types import DECLINES
from common.clock import Clock, iso, local
from common.constants import GITHUB_BODY_MAX_CHARS, SECOND_MS
from common.errors import PolicyBlocked, Transient
from common.provenance import Provenance
from common.redact import LEAK, Redactor
from common.result import Err
from common.schemas import Commitment, Impressed
from common.text.github_text import without_mentions
from common.text.graphemes import truncate_graphemes
from common.text.untrusted import clean, one_line
from modules.lives.space.commitment_filter import PlannedCommitment, still_to_make
from modules.lives.space.commitment_maker import CLAIM_ANSWER_S, LOOP, WITHDRAWN, CommitmentMaker, JournalReporter
from modules.lives.space.config import SpaceConfig
from modules.lives.space.perceive import Delivered, RoomConversation, RoomPerceiver, Spoke
from modules.lives.space.prompting import alone_without_github
from modules.lives.space.request_parser import shown
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.snapshot_builder import SnapshotBuilder
from modules.lives.space.types import HistoryEntry, RequestContent, Salvaged, Speech
from modules.lives.space.validator import MessageValidator
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.experiences import IMPRESSED, ExperienceLog, ExperienceType, NewExperience
from modules.services.memory.admission import BODY_LENGTH, NewMemory, WordsOrigin, admitted, trust_of
from modules.services.memory.rows import MemoryStore
from modules.services.peers.room_identity import PeerRelationships
from modules.services.voice_phrases import Phrase

SPACE_FORCED_ACTION_CYCLES = 3
SPACE_FORCED_ACTION_REJECTIONS = 3
SPACE_MAX_FORCED_ACTIONS = 2
SPACE_OWNER_RETRIES = 2

_BODY_MIN_CHARS = 50
_TITLE_CHARS = 120
_SPACE = regex.compile(r"\s+")
_ADDRESSED = regex.compile(r"(?:@[\w.-]*\w[,:]?\s+)+")


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """Whether our model is asked once more, and why or why not."""

    code: Literal["retry", "not_ours", "no_news", "tried_enough"]
    reason: str


@dataclass(frozen=True, slots=True)
class ForceDecision:
    """Whether to act without our model, or to ask the host for a repository, and why or why not."""

    code: Literal["force", "ask_for_repo", "no_repo", "not_ours", "untried", "claimed", "forced_enough", "not_urgent"]
    reason: str


@dataclass(frozen=True, slots=True)
class Fallback:
    """What the assignee of a request does if its model's message is not enough.

    Attributes:
        retry: whether the model is asked once more.
        force: whether to act without it, if that has no result.
        commitment: what is made without it; None if nothing is, or nothing honest can be.

    """

    retry: RetryDecision
    force: ForceDecision
    commitment: Commitment | None = None


def fallback(snapshot: RoomSnapshot, *, new_messages: bool, tells_talk: bool, phrase: Phrase) -> Fallback:
    """Return what is left to the assignee of a request; `tells_talk`: the talk may be quoted where the work is done."""
    retry, force = should_retry(snapshot, new_messages=new_messages), should_force_action(snapshot)
    if force.code != "force":
        return Fallback(retry, force)
    talk = "\n".join(snapshot.lines) if tells_talk else ""
    made = build_forced_commitment(snapshot.request.content, snapshot.asked, snapshot.repo, talk, phrase=phrase)
    return Fallback(retry, force, made)


def salvage(commitments: Iterable[Commitment], social_only: bool, phrase: Phrase) -> Salvaged | None:  # noqa: FBT001
    """Return the commitments to keep from a message that may not be said, with a new message; None if none are."""
    kept = tuple(one for one in commitments if not (social_only and one.is_github))
    return Salvaged(phrase("space.on_it", what=kept[0].type.replace("_", " ")), kept) if kept else None


def should_retry(snapshot: RoomSnapshot, *, new_messages: bool) -> RetryDecision:
    """Return whether our model gets another try: once in a check, and twice for a request."""
    if not_ours := _not_our_turn(snapshot):
        return RetryDecision("not_ours", not_ours)
    if not new_messages:
        return RetryDecision("no_news", "nobody has spoken")
    if snapshot.request.owner_rejections > SPACE_OWNER_RETRIES:
        return RetryDecision("tried_enough", f"tried again {SPACE_OWNER_RETRIES} times for this request")
    return RetryDecision("retry", "the owner owes the host an action")


def should_force_action(snapshot: RoomSnapshot) -> ForceDecision:  # noqa: PLR0911 - one line for each reason
    """Return whether to act without our model: it had its try, no peer is at it, and the host waited long enough."""
    request = snapshot.request
    if not_ours := _not_our_turn(snapshot):
        return ForceDecision("not_ours", not_ours)
    if not request.attempts:
        return ForceDecision("untried", "our model has not tried yet")
    if snapshot.is_claimed:
        return ForceDecision("claimed", "a peer is at it")
    if request.forced >= SPACE_MAX_FORCED_ACTIONS:
        return ForceDecision("forced_enough", f"acted {SPACE_MAX_FORCED_ACTIONS} times already")
    if request.cycles < SPACE_FORCED_ACTION_CYCLES and request.owner_rejections < SPACE_FORCED_ACTION_REJECTIONS:
        return ForceDecision("not_urgent", "it can wait")
    if not snapshot.repo and snapshot.asked.kind != "post_bluesky":
        return ForceDecision("no_repo" if request.repo_asked else "ask_for_repo", "no repository is known")
    waited = f"waited {request.cycles} cycles, {request.owner_rejections} tries came to nothing"
    return ForceDecision("force", waited)


def may_ask_for_repo(snapshot: RoomSnapshot) -> bool:
    """Return whether we may ask for a repository: only once, and only the assignee while a request is open."""
    return not snapshot.request.repo_asked and (snapshot.is_owner or not snapshot.is_open)


def build_forced_commitment(
    request: str, asked: RequestContent, repo: str | None, transcript: str, *, phrase: Phrase
) -> Commitment | None:
    """Return what is made without our model: an issue, or a comment or post if that is clearly what was asked.

    Args:
        request: the host's words.
        asked: what they ask for.
        repo: `owner/name`; needed for all but a post.
        transcript: the talk so far, one line for each message; "" if it may not be quoted there.
        phrase: returns operational texts.

    Returns None if nothing honest can be made: there is no repository, or a post has no quoted text.

    """
    if asked.kind == "post_bluesky":
        return Commitment(type=asked.kind, content=asked.quoted) if asked.quoted else None
    if not repo:
        return None
    if asked.kind == "comment_issue":
        return Commitment(
            type=asked.kind,
            repo=repo,
            description=asked.quoted or _own_body(request, transcript, phrase),
            issue_number=asked.issue_number,
        )
    return Commitment(
        type=asked.kind, repo=repo, title=_title(request), description=_own_body(request, transcript, phrase)
    )


def enriched(commitment: Commitment, body: str | None) -> Commitment:
    """Return the commitment with a body that a model wrote, if that is usable; else unchanged."""
    return commitment.model_copy(update={"description": body.strip()}) if body and _is_body(body) else commitment


def _not_our_turn(snapshot: RoomSnapshot) -> str:
    if not snapshot.is_owner:
        return "somebody else owns the request"
    if not snapshot.is_open:
        return "no request is open"
    return "social-only: nothing on GitHub is ours to make" if snapshot.social_only else ""


def _is_body(body: str) -> bool:
    return len(body.strip()) > _BODY_MIN_CHARS


def _title(request: str) -> str:
    line = _SPACE.sub(" ", request).strip()
    bare = _ADDRESSED.sub("", line) if _ADDRESSED.match(line) else line
    return truncate_graphemes(bare or line, _TITLE_CHARS).strip()


def _own_body(request: str, transcript: str, phrase: Phrase) -> str:
    """Return the request and the talk verbatim, cut at the front of the talk if they are too long for GitHub."""
    head = phrase("github.request", request=_cited(request))
    if not transcript:
        return head[:GITHUB_BODY_MAX_CHARS]
    around = len(head) + len("\n\n") + len(phrase("github.request_talk", talk=""))
    talk = _newest_lines(_cited(transcript), max(GITHUB_BODY_MAX_CHARS - around, 0))
    return f"{head}\n\n{phrase('github.request_talk', talk=talk)}"[:GITHUB_BODY_MAX_CHARS].rstrip()


def _newest_lines(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    cut = text[len(text) - room :]
    return cut.partition("\n")[2]


def _cited(text: str) -> str:
    """Return a text as a quotation in which nobody is notified by their name."""
    return "\n".join(f"> {line}".rstrip() for line in without_mentions(text.strip()).splitlines())


DELIVERY_WAIT_S = 75.0

_MADE = "it was made already"
_EXPERIENCE_MESSAGES = 5
_EXPERIENCE_CHARS = 2000
_REQUEST_CHARS = 80

Experience = Callable[[ExperienceType, str, str], Awaitable[None]]
"""Receives something worth remembering: its kind, what happened, and which words in it are ours."""


@dataclass(frozen=True, slots=True)
class ProposedMessage:
    """A message to be said, with its commitments and the reason.

    `acts`: it is said whatever others said meanwhile. `declines`: it refuses the open request and so ends it.
    `impression` is the impression that the talk left.
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
        joins: how often we had joined a room by then; it is said in no other room.
        settles: whether the message alone answers the host's request.
        is_written: whether the commitments have their whole bodies.

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
        experience: receives every N-th message, and any that left an impression, with the talk around it.

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
        """Claim the commitments, show that we type, and return the message with its delay, or why it is not said."""
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
            _with_commitments(replace(proposed, message=clean(proposed.message, is_ours=True)), claimed),
            snapshot,
            self.clock.monotonic() + max(pause_s, CLAIM_ANSWER_S if claimed else 0.0),
            self.client.joins,
            claimed,
            settles=bool(made) and snapshot.is_open,
            is_written=not claimed,
        )

    async def write(self, waiting: DelayedMessage) -> DelayedMessage:
        """Return the message with only the commitments that are still claimed, in full; unchanged if none are."""
        held = self.commitment_maker.still_claimed(waiting.planned)
        if not held:
            return replace(waiting, is_written=True)
        written = await self.commitment_maker.write_out(held, waiting.snapshot)
        return replace(waiting, proposed=_with_commitments(waiting.proposed, written), planned=written, is_written=True)

    async def say(self, waiting: DelayedMessage, config: SpaceConfig) -> SpeakResult:
        """Say a message that has waited and is written, unless something prevents it at the last moment.

        Only what was said and done in the room since is judged; the rest was judged when the message was proposed.
        """
        new = tuple(await self.perceiver.look())
        if any(entry.is_host for entry in new):
            await self.snapshots.understand()
        await self.commitment_maker.take_back(self.snapshots.advance())
        now = self.snapshots.build_snapshot(waiting.snapshot.batch, opens=waiting.snapshot.opens)
        is_same = _asks_the_same(waiting.snapshot, now)
        planned = still_to_make(waiting.planned, now, self.client.view.claims.lost, is_same=is_same)
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
        """Return why the message may not be said now; None if it may."""
        if muted := self.mute_reason():
            return SpeakResult("muted", muted)
        if not self.client.is_active:
            return _GONE
        parts = [proposed.message, *(one.model_dump() for one in proposed.commitments)]
        return SpeakResult("muted", LEAK) if self.redactor.finds_in(parts) else None

    def dropped(self, waiting: DelayedMessage) -> SpeakResult | None:
        """Return why a waiting message may never be said; None if it may."""
        elsewhere = self.client.joins != waiting.joins and self.client.inbox.fresh_room
        return _GONE if elsewhere else self.barred(waiting.proposed)

    async def _send(self, waiting: DelayedMessage, now: RoomSnapshot, config: SpaceConfig) -> SpeakResult:
        """Make the commitments, send the message, and wait until the room has received it.

        A message that the room never received leaves no trace, neither in the talk nor in the queue.
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
        is_same = _asks_the_same(snapshot, now)
        if is_same and (waiting.settles or (made and snapshot.is_open)):
            self.talk.handle("committed")
        if is_same and (proposed.declines or alone_without_github(snapshot)):
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
            if found and is_same and snapshot.is_open:
                self.talk.handle("committed")
        await self._afterwards(config, proposed.impression)
        return SpeakResult("spoke", lacks_repo=lacks_repo and not snapshot.needs_repo and may_ask_for_repo(now))

    async def _afterwards(self, config: SpaceConfig, impression: Impressed) -> None:
        """Begin a rest, and remember every N-th message, and any that left an impression, with the talk around it."""
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


def _asks_the_same(then: RoomSnapshot, now: RoomSnapshot) -> bool:
    """Return whether the host has not asked for something else in between."""
    return then.request.content in {"", now.request.content}


def _with_commitments(proposed: ProposedMessage, planned: Sequence[PlannedCommitment]) -> ProposedMessage:
    return replace(proposed, commitments=tuple(one.commitment for one in planned))


_SUBJECTS: Mapping[ExperienceType, str] = {
    "connection_formed": "A talk in the room",
    "was_challenged": "A disagreement in the room",
    "question_emerged": "A question of the room",
}
_IMPORTANCE = 2


@dataclass(frozen=True, slots=True)
class Experiences:
    """Keeps experiences of the room: as memories, and in the log from which the SOUL learns.

    Attributes:
        session_key: of the session that keeps the talk of the room.
        timezone: IANA name of the SOUL's time zone; "" for the machine's own.
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


def experience_of(kind: ExperienceType, what: str, now: datetime, words: WordsOrigin, timezone: str = "") -> NewMemory:
    """Return the memory that an experience becomes: an episode of its own, whatever was remembered before."""
    subject = f"{_SUBJECTS.get(kind, kind)}, {local(now, timezone):%Y-%m-%d %H:%M:%S}"
    return admitted(NewMemory("episode", subject, what[:BODY_LENGTH], ("experience", kind), _IMPORTANCE), words)
