"""One check of the room: read, classify, decide, validate, and send the message at its time.

No check blocks: a message that is to be said later is kept here, and the next check delivers it. A failure of the model
costs only time: what was not answered is tried again, after a longer pause each time.
"""

import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from adapters.space.client import SpaceClient
from adapters.space.types import HOST
from common.clock import Clock, doubled
from common.constants import SECOND_MS
from common.errors import BudgetExceeded, Fatal, SoulError, Transient
from modules.lives.space.classifiers import FirstLook, is_late
from modules.lives.space.commitment_maker import LOOP, JournalReporter, Note
from modules.lives.space.config import SPACE_CHECK_INTERVAL_MS, SpaceConfig, SpaceConfigFile
from modules.lives.space.host_request import SPACE_REPLAYED_REQUEST_MAX_AGE_MS, is_open
from modules.lives.space.perceive import EndingNoted, Engaged, OpenedTalk, RoomConversation, RoomPerceiver, WordsRefused
from modules.lives.space.policy import should_open, wait_s
from modules.lives.space.prompting import Decider, ModelDecision
from modules.lives.space.request_parser import conversation_thread_uri
from modules.lives.space.respond import PendingDecision, Resolved, RoomResponder
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.snapshot_builder import SnapshotBuilder
from modules.lives.space.speak import DelayedMessage, ProposedMessage, Speaker, SpeakResult
from modules.lives.space.types import CheckCode, CheckResult, HistoryEntry
from modules.lives.space.validator import is_held
from modules.runtime.scheduler.policy import Loop, Outcome, Runs, get_timer_jitter
from modules.services.commitments.naming import QueuedCommitment
from modules.services.commitments.policy import is_of_room
from modules.services.peers.room_identity import IdentityPublisher

_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 300.0
_MOST_TRIES = 3
_ASK_FOR_LEAVE_S = 60.0
_ALL_ARE_IN = timedelta(seconds=15)
_TRACE_CHARS = 4000
_ENDED = CheckResult("ended", "the host has ended the talk")
_WAITS = "a message waits for its moment"
_QUIET = CheckResult("quiet", "nothing new was said")
_FAILED_LATELY = CheckResult("resting", "the model failed a moment ago")
_GOES_FIRST = CheckResult("listening", "the one elected to act goes first")
_LATE = "the host waits for another to act"
_COMING_IN = CheckResult("listening", "others may still be coming in")


@dataclass(slots=True)
class Participation:
    """Takes part in one room, one check at a time.

    Attributes:
        mute_reason: returns why nothing may be said now, or "". New messages are still read meanwhile.
        mute_unasked: the same for messages that do not answer the host.
        wake_commitments: wakes the loop that fulfils commitments.
        identity_publisher: sends our identity to the room as soon as something may be said.
        first_look: decides with a short prompt that nothing is to be said; None if only the whole prompt decides.

    """

    client: SpaceClient
    config: SpaceConfigFile
    talk: RoomConversation
    perceiver: RoomPerceiver
    snapshots: SnapshotBuilder
    decider: Decider
    responder: RoomResponder
    speaker: Speaker
    reporter: JournalReporter
    clock: Clock
    mute_reason: Callable[[], str]
    mute_unasked: Callable[[], str]
    wake_commitments: Callable[[], None]
    identity_publisher: IdentityPublisher
    first_look: FirstLook | None = None
    _waiting: list[HistoryEntry] = field(default_factory=list, init=False)
    _pending: DelayedMessage | None = field(default=None, init=False)
    _tries: int = field(default=0, init=False)
    _not_before: float = field(default=0.0, init=False)
    _told: str = field(default="", init=False)
    _listens_until: datetime | None = field(default=None, init=False)
    _silences: int = field(default=0, init=False)
    _spent_until: float = field(default=0.0, init=False)

    async def check(self) -> CheckResult:
        """Run one check of the room: deliver the waiting message, or read what is new and answer it."""
        config = self.config.load_space_config()
        await self._note(self.config.notice)
        if self._pending is not None:
            return await self._guarded(self._deliver(self._pending, config), self._pending.snapshot.batch)
        return await self._look(config)

    async def _look(self, config: SpaceConfig) -> CheckResult:
        """Read what is new, and decide about it unless something prevents that."""
        if not self.client.is_active:
            return CheckResult("absent", "not in a room")
        if muted := self.mute_reason():
            await self.perceiver.look()
            self._waiting.clear()
            if self.snapshots.promised_at():
                await self._read_host()
            return CheckResult("muted", muted)
        await self.identity_publisher.catch_up()
        now = self.clock.now()
        if resting := self._rests(now):
            return resting
        self._receive(await self.perceiver.look())
        await self._read_host()
        talk = self.talk.handle(EndingNoted())
        if ended := talk.is_ended(now):
            self._waiting.clear()
        opens = not ended and self._opens()
        if not (self._waiting or opens or is_open(talk.request)):
            return _ENDED if ended else _QUIET
        if listening := self._holds_back(now):
            return listening
        batch = list(self._waiting)
        return await self._guarded(self._check(batch, config, opens=opens), batch)

    @property
    def waits(self) -> bool:
        """Whether a message waits for its moment."""
        return self._pending is not None

    @property
    def has_unread_host(self) -> bool:
        """Whether the host said something, since our oldest promise or shortly before we came, that is not read yet."""
        since = self.snapshots.promised_at()
        young = self.clock.now() - timedelta(milliseconds=SPACE_REPLAYED_REQUEST_MAX_AGE_MS)
        unread = [one for one in self.talk.state.host_messages if one.intent is None]
        return any((one.replayed and one.at > young) or (since is not None and one.at >= since) for one in unread)

    def given_up(self, commitment: QueuedCommitment) -> None:
        """Reopen the request of an abandoned commitment, a few times at most; the room is not told."""
        request = self.talk.state.request
        asked = request.content and commitment.source_thread_uri == conversation_thread_uri(HOST, request.content)
        if asked and is_of_room(commitment, self.client.room_id):
            self.talk.handle("abandoned")
            self.talk.handle(Engaged(self.clock.now()))

    def _receive(self, new: Sequence[HistoryEntry]) -> None:
        kept = {entry.id for entry in self.talk.state.history}
        self._waiting = [entry for entry in self._waiting if entry.id in kept] + list(new)

    def _rests(self, now: datetime) -> CheckResult | None:
        """Return why nothing is read at this check; None if the room is read."""
        if self.talk.state.cooldown_until is not None and now < self.talk.state.cooldown_until:
            return CheckResult("resting", "we have just spoken")
        return _FAILED_LATELY if self.clock.monotonic() < self._not_before else None

    def _holds_back(self, now: datetime) -> CheckResult | None:
        """Return why we only listen although something is new; None if the model is asked."""
        joined, request = self.talk.state.joined_at, self.talk.state.request
        if is_open(request):
            if joined is None or request.requested_at is None or now - joined >= _ALL_ARE_IN:
                return None
            return _COMING_IN if joined - request.requested_at >= _ALL_ARE_IN else None
        if any(entry.is_host for entry in self._waiting):
            return None
        if silent := self._silent_unasked():
            self._waiting.clear()
            return silent
        if not self._waiting or any(entry.addresses_me for entry in self._waiting):
            return None
        listens = self._listens_until is not None and now < self._listens_until
        return CheckResult("listening", "we had nothing to add a moment ago") if listens else None

    def _silent_unasked(self) -> CheckResult | None:
        """Return why a message that does not answer the host may not be said; None if it may."""
        if muted := self.mute_unasked():
            return CheckResult("muted", muted)
        spent = self.clock.monotonic() < self._spent_until
        return CheckResult("spent", "the day's budget allows no talk of our own") if spent else None

    def _pause_after_silence(self, case: PendingDecision) -> None:
        """Pause after a decision to say nothing; each further pause is longer, until the host speaks."""
        self._silences = 1 if case.snapshot.from_host else self._silences + 1
        pause_ms = min(case.config.cooldown_min_ms * 2 ** (self._silences - 1), _LONGEST_PAUSE_S * SECOND_MS)
        self._listens_until = self.clock.now() + timedelta(milliseconds=pause_ms)

    def _opens(self) -> bool:
        return not self._waiting and bool(
            should_open(
                self.talk.state.me,
                self.client.peers(),
                self.clock.now(),
                joined_at=self.talk.state.joined_at,
                last_message_at=self.talk.state.last_message_at,
                opened_at=self.talk.state.opened_at,
            )
        )

    async def _guarded(self, step: Awaitable[CheckResult], batch: Sequence[HistoryEntry]) -> CheckResult:
        try:
            result = await step
        except Fatal:
            raise
        except BudgetExceeded as error:
            await self._spent(error, batch)
            return CheckResult("spent", str(error))
        except Exception as error:
            self._tries += 1
            asked_s = (error.retry_after or 0.0) if isinstance(error, Transient) else 0.0
            await self._put_off(error, max(doubled(_PAUSE_S, self._tries, _LONGEST_PAUSE_S), asked_s))
            if self._tries >= _MOST_TRIES:
                self._answered(batch)
            return CheckResult("failed", f"{type(error).__name__}: {error}")
        self._tries, self._told = 0, ""
        return result

    async def _check(self, batch: list[HistoryEntry], config: SpaceConfig, *, opens: bool) -> CheckResult:
        before = self.talk.state.request.entry_id
        await self.snapshots.understand()
        await self._advance()
        batch = self._with_request(batch, before)
        snapshot = self.snapshots.build_snapshot(batch, opens=opens)
        if snapshot.follow_up == "wake_commitments":
            await self.snapshots.queue.retry_now(snapshot.thread_uri)
            self.wake_commitments()
        if not (snapshot.batch or opens or snapshot.is_open):
            return CheckResult("quiet", "nothing is open")
        if is_held(snapshot):
            self._waiting = batch
            return _GOES_FIRST
        case = PendingDecision(snapshot, config)
        try:
            return await self._run_turn(case)
        finally:
            await self._record(case)

    async def _run_turn(self, case: PendingDecision) -> CheckResult:
        """Ask the model if needed, and carry out its decision."""
        snapshot = case.snapshot
        if nothing := await self._reason_for_silence(snapshot):
            await self.decider.keep(snapshot)
            self._answered(snapshot.batch)
            self._pause_after_silence(case)
            return _silent(Resolved("silent", nothing), case)
        if snapshot.opens:
            self.talk.handle(OpenedTalk(snapshot.now))
        decided = await self._decided(case) if snapshot.batch or snapshot.opens else None
        self._answered(snapshot.batch)
        if decided is None:
            return await self._carry_out(None, case)
        if decided.decision is None:
            return CheckResult("undecided", "no decision")
        return await self._carry_out(decided, await self._looked_again(case))

    async def _reason_for_silence(self, snapshot: RoomSnapshot) -> str:
        """Return why nothing is to be said, without the whole prompt; "" if that has to decide."""
        if is_late(snapshot):
            return _LATE
        return await self.first_look.reason_for_silence(snapshot) if self.first_look else ""

    def _with_request(self, batch: list[HistoryEntry], before: str) -> list[HistoryEntry]:
        """Return the batch, with the open request added if that is new, or ours and never put to our model."""
        request = self.talk.state.request
        untried = not request.attempts and self.snapshots.owns(request)
        if not is_open(request) or not (untried or request.entry_id != before):
            return batch
        if any(one.id == request.entry_id for one in batch):
            return batch
        return [*(entry for entry in self.talk.state.history if entry.id == request.entry_id), *batch]

    async def _decided(self, case: PendingDecision) -> ModelDecision:
        """Ask the model; its changes to its own pace apply at once, whatever becomes of its message."""
        decided = await self.decider.decide(case.snapshot, case.config)
        self.talk.handle(WordsRefused())
        if case.snapshot.is_owner:
            self.talk.handle("attempted")
            self.talk.handle(Engaged(self.clock.now()))
        if decided.decision is None:
            case.note(Note("Decision", decided.error, "warn", {"act": "undecided"}))
            case.refuse("your last answer", decided.error)
        elif decided.decision.adjust_behavior:
            after = self.config.update_space_config(decided.decision.adjust_behavior, decided.decision.reason)
            if after != case.config:
                case.note(Note("Adjusted behavior", decided.decision.reason, "refl"))
        return decided

    async def _carry_out(self, decided: ModelDecision | None, case: PendingDecision) -> CheckResult:
        resolved = await self.responder.resolve(decided, case)
        if resolved.code == "needs_repo" and not case.snapshot.needs_repo:
            return await self._ask_for_repo(case)
        if resolved.proposed is None:
            if decided is None:
                return CheckResult("overtaken" if resolved.code == "overtaken" else "declined", resolved.reason)
            if not case.snapshot.is_open:
                self._pause_after_silence(case)
            return _silent(resolved, case)
        prepared = await self.speaker.prepare(resolved.proposed, case.snapshot, case.config)
        if isinstance(prepared, DelayedMessage):
            self._pending = prepared
            return CheckResult("waiting", _WAITS, wait_s(prepared.not_before, self.clock.monotonic()))
        return _unsaid(resolved.proposed, prepared, case)

    async def _deliver(self, waiting: DelayedMessage, config: SpaceConfig) -> CheckResult:
        """Say the waiting message if its moment has come; one that may no longer be said is dropped."""
        barred = self.speaker.dropped(waiting)
        if barred is None and (left_s := wait_s(waiting.not_before, self.clock.monotonic())):
            return CheckResult("waiting", _WAITS, left_s)
        self._pending = None
        if barred is None and not waiting.is_written:
            self._pending = await self.speaker.write(waiting)
            return await self._deliver(self._pending, config)
        case = PendingDecision(waiting.snapshot, config)
        spoken = barred or await self.speaker.say(waiting, config)
        self._receive(spoken.new)
        if spoken.code == "spoke":
            if waiting.snapshot.needs_repo and waiting.snapshot.request.entry_id == self.talk.state.request.entry_id:
                self.talk.handle("repo_asked")
            if spoken.lacks_repo:
                return await self._ask_for_repo(case)
            return CheckResult("spoke", "spoke")
        result = _unsaid(waiting.proposed, spoken, case)
        await self._record(case)
        return result

    async def _looked_again(self, case: PendingDecision) -> PendingDecision:
        """Return the case with the room as it is after the model was asked; new messages stay to be answered."""
        new = await self.perceiver.look()
        self._receive(new)
        if any(entry.is_host for entry in new):
            await self.snapshots.understand()
        await self._advance()
        asked = case.snapshot
        now = self.snapshots.build_snapshot(asked.batch, opens=asked.opens, needs_repo=asked.needs_repo)
        return replace(case, snapshot=now)

    async def _advance(self) -> None:
        """Advance the host's request by one look, and end what was promised for one that the host took back."""
        gone = self.snapshots.advance()
        await self.speaker.commitment_maker.take_back(gone, tells=not self.mute_reason())

    async def _read_host(self) -> None:
        """Understand what the host said in a pause or while we were away: a new request, or that an old one is off."""
        if self.has_unread_host:
            await self.snapshots.understand()
            await self._advance()

    async def _record(self, case: PendingDecision) -> None:
        """Write the notes of a case to the journal, each with the room as it was then; keep what was refused."""
        for snapshot, note in case.notes:
            await self.reporter.decided(snapshot, note)
        if case.refusals:
            self.talk.handle(WordsRefused(tuple(case.refusals)))

    async def _ask_for_repo(self, case: PendingDecision) -> CheckResult:
        """Ask the host for a repository, once for each request."""
        refused = replace(case.snapshot, opens=False, needs_repo=True, refusals=tuple(case.refusals))
        case = replace(case, snapshot=refused)
        decided = await self.decider.decide(case.snapshot, case.config)
        return await self._carry_out(decided, await self._looked_again(case))

    def _answered(self, batch: Sequence[HistoryEntry]) -> None:
        done = {entry.id for entry in batch}
        self._waiting = [entry for entry in self._waiting if entry.id not in done]

    async def _spent(self, error: BudgetExceeded, batch: Sequence[HistoryEntry]) -> None:
        """Stop unasked messages until there is a budget again; the host's messages are still answered."""
        self._answered(batch)
        self._spent_until = self.clock.monotonic() + (error.retry_after or _LONGEST_PAUSE_S)
        await self._put_off(error, _ASK_FOR_LEAVE_S)

    async def _put_off(self, error: Exception, seconds: float) -> None:
        self._not_before = self.clock.monotonic() + seconds
        known = isinstance(error, SoulError)
        trace = "" if known else "".join(traceback.format_exception(error))[-_TRACE_CHARS:]
        told = str(error) if known else f"{type(error).__name__}: {error}"
        if told != self._told:
            self._told = told
            await self.reporter.trouble("Check failed", told, trace=trace)

    async def _note(self, notice: str) -> None:
        if notice and notice != self._told:
            self._told = notice
            await self.reporter.trouble("Config", notice)


def _silent(resolved: Resolved, case: PendingDecision) -> CheckResult:
    code: CheckCode = "overtaken" if resolved.code == "overtaken" else "declined"
    case.note(Note(code.capitalize(), resolved.reason, "info", {"act": code}))
    return CheckResult(code, resolved.reason)


def _unsaid(proposed: ProposedMessage, spoken: SpeakResult, case: PendingDecision) -> CheckResult:
    overtaken = spoken.code == "overtaken"
    summary = "Overtaken" if overtaken else "Not said"
    case.note(Note(summary, spoken.reason, "info", {"act": summary.lower(), "message": proposed.message}))
    case.refuse(f'"{proposed.message}"', spoken.reason)
    return CheckResult("overtaken" if overtaken else "unsaid", spoken.reason)


SPACE_JITTER_PERCENT = 0.40

_NEWS_TIMEOUT_S = 60.0
_SOON_SHARE = 0.2
"""The share of our interval after which we look if somebody spoke after a pause. Others have other intervals."""


@dataclass(slots=True)
class ParticipationLoop(Loop):
    """Checks the room at an interval, and sooner when there is news.

    `config` holds the interval, which the owner may change at any time; `agent_name` determines how ours varies.
    """

    name = LOOP
    jitter = SPACE_JITTER_PERCENT
    interval_ms = SPACE_CHECK_INTERVAL_MS

    participation: Participation
    client: SpaceClient
    config: SpaceConfigFile
    clock: Clock
    agent_name: str
    _ran_at: float | None = field(default=None, init=False)

    async def run(self) -> Outcome:
        """Run one check, or rejoin when a pause begins or ends, so that an agent that must be silent is not elected."""
        if not self.participation.waits and self.client.renew():
            return Outcome(ran=False, reason="what we can do has changed: joining anew", next_in_s=self._interval_s())
        outcome = await self.participation.check()
        self._ran_at = self.clock.monotonic()
        return Outcome(
            outcome.ran, outcome.reason, self._interval_s() if outcome.next_in_s is None else outcome.next_in_s
        )

    async def wait_for_news(self, timeout_s: float) -> bool:
        """Wait until the room has news and our next look is due, and return True; False after `timeout_s` without news.

        A look is never due before our own interval after the last one, so that agents do not all speak at once.
        """
        if not await self.client.wait_for_news(timeout_s):
            return False
        interval = self._interval_s()
        since = interval if self._ran_at is None else self.clock.monotonic() - self._ran_at
        await self.clock.sleep(max(interval * _SOON_SHARE, interval - since))
        return True

    async def keep_awake(self, scheduler: Runs) -> None:
        """Run soon after others have spoken, and when a waiting message may be said, until cancelled."""
        while True:
            if await self.wait_for_news(_NEWS_TIMEOUT_S):
                outcome = await scheduler.run_guarded(self.name)
                if outcome.next_in_s is not None:
                    scheduler.bring_forward(self.name, outcome.next_in_s)

    def _interval_s(self) -> float:
        base = self.config.load_space_config().check_interval_ms
        return get_timer_jitter(self.agent_name, self.name, base, self.jitter) / SECOND_MS
