"""Reads what was said and done in the room since the last look, and keeps the state of the conversation in memory.

The room replays its record at each join; what we did in it in an earlier process counts like any agent's act. Whoever
joined as a member is not the host, whatever name or id a careless server let it take.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta

from cachetools import FIFOCache

from adapters.space.client import SpaceClient
from adapters.space.room_addressing import parse_addressed
from adapters.space.types import HOST, ActionDone, Claimed, History, Joined, LogEntry, Said, SpaceEvent, is_host
from common.clock import Clock, parse_iso_or_none
from common.constants import HOUR_MS, MINUTE_MS, SPACE_IDLE_RESET_MS
from common.json_lines import json_object
from common.text.closings import ends_talk
from common.text.host_intent import HostIntent, classify_host_intent_structural
from modules.lives.space.commitment_filter import same_target
from modules.lives.space.host_request import Looked, RequestEvent, is_done_chat, is_open, next_request
from modules.lives.space.policy import SPACE_OPENER_SILENCE_MS
from modules.lives.space.request_parser import conversation_thread_uri, detect_repo, shown
from modules.lives.space.types import HistoryEntry, HostRequest, Meaning, PeerEvent, RefusedWords
from modules.services.commitments.naming import LIVE, claim_target
from modules.services.commitments.policy import concerns_room, is_of_room
from modules.services.commitments.queue import CommitmentQueue
from modules.services.peers.room_identity import PeerRelationships

SPACE_HISTORY_KEPT = 200
SPACE_READ_CHARS = 4_000  # of one message; the rest of a longer one is not read
SPACE_TALK_ENDED_MS = 12 * HOUR_MS

PEER_EVENTS_KEPT = 200
ISSUES_KEPT = 200

_SAME_OWN_WORDS_S = 120
_LONG_SILENCE = timedelta(milliseconds=SPACE_OPENER_SILENCE_MS)
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_CLOCKS_APART = timedelta(minutes=10)
_PIN = "Repo: "


@dataclass(frozen=True, slots=True)
class ConversationState:
    """The state of one room from the view of `me`. Times are aware UTC.

    Attributes:
        me: our own name there; a different one if somebody else joined under ours.
        history: the newest 200 messages, oldest first.
        repo: the repository that the talk is about.
        pinned: what is kept beyond a pause.
        refusals: what we last wanted to say or commit to, and what stopped it.
        request: what the host asked for, and its state.
        settled: the request from before the last pause, in case the host asks about it.
        last_activity_at: when somebody last spoke, or we last worked on the host's request.
        joined_at: when we joined.
        cooldown_until: until when we only listen.
        spoken: how many messages of ours were said in this process.
        last_message_at: when anybody last spoke, the replayed record included; a pause does not reset it.
        opened_at: when an agent last broke a long silence, or we tried to.
        ended_at: when the host ended the talk; None once it has spoken again.
        peer_events: the acts of peers that concern requests.
        issues: links to issues that peers made, and who made each.
        entries: how many entries there were; also the number in the latest id.

    """

    me: str
    history: tuple[HistoryEntry, ...] = ()
    repo: str | None = None
    pinned: tuple[str, ...] = ()
    refusals: tuple[RefusedWords, ...] = ()
    request: HostRequest = field(default_factory=HostRequest)
    settled: HostRequest = field(default_factory=HostRequest)
    last_activity_at: datetime | None = None
    joined_at: datetime | None = None
    cooldown_until: datetime | None = None
    spoken: int = 0
    last_message_at: datetime | None = None
    opened_at: datetime | None = None
    ended_at: datetime | None = None
    peer_events: tuple[PeerEvent, ...] = ()
    issues: Mapping[str, str] = field(default_factory=dict)
    entries: int = 0

    def is_ended(self, now: datetime) -> bool:
        """Return whether the host has ended the talk within the last 12 hours."""
        return self.ended_at is not None and now - self.ended_at < timedelta(milliseconds=SPACE_TALK_ENDED_MS)

    def is_idle(self, now: datetime) -> bool:
        """Return whether nobody has spoken for so long that what comes next is another conversation."""
        last = self.last_activity_at
        return last is not None and now - last > timedelta(milliseconds=SPACE_IDLE_RESET_MS)

    @property
    def host_messages(self) -> list[HistoryEntry]:
        return [entry for entry in self.history if entry.is_host]

    @property
    def own_messages(self) -> list[HistoryEntry]:
        return [entry for entry in self.history if entry.is_me]

    def latest_host(self, *, intent: HostIntent | None = None) -> HistoryEntry | None:
        """Return the host's newest message, or its newest with `intent`; None if there is none."""
        return next(
            (entry for entry in reversed(self.history) if entry.is_host and intent in (None, entry.intent)), None
        )


@dataclass(frozen=True, slots=True)
class Entered:
    """We joined the room as `me`."""

    me: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LeftRoom:
    """We are in another room, or the room started afresh: nothing of the talk before belongs to it."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Paused:
    """The talk has paused for so long that another conversation begins. Only what is pinned or settled stays."""


@dataclass(frozen=True, slots=True)
class MessagesArrived:
    """New messages (`entries`, from `new_entries`) and acts of others; `issues` are links, and who made each."""

    entries: tuple[HistoryEntry, ...]
    at: datetime
    peer_events: tuple[PeerEvent, ...] = ()
    issues: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spoke:
    """The room has received our message, which becomes the last of the history."""

    content: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Delivered:
    """The room has received our last message; until `rests_until` we only listen."""

    rests_until: datetime


@dataclass(frozen=True, slots=True)
class Classified:
    """The meanings of the host's messages, by their ids."""

    meanings: Mapping[str, Meaning]


@dataclass(frozen=True, slots=True)
class WordsRefused:
    """What we last wanted to say or commit to and what stopped it; empty once the model has been told."""

    refusals: tuple[RefusedWords, ...] = ()


@dataclass(frozen=True, slots=True)
class EndingNoted:
    """Updates whether the host's newest message ends the talk. A pause, which drops messages, does not undo that."""


@dataclass(frozen=True, slots=True)
class OpenedTalk:
    """We broke a long silence, or tried to."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Engaged:
    """The talk goes on although nobody spoke, because we work on the host's request."""

    at: datetime


ConversationEvent = (
    Entered
    | LeftRoom
    | Paused
    | MessagesArrived
    | Spoke
    | Delivered
    | Classified
    | WordsRefused
    | EndingNoted
    | OpenedTalk
    | Engaged
    | Looked
    | RequestEvent
)


class RoomConversation:
    """Holds the state of one room from the view of `me`."""

    def __init__(self, me: str) -> None:
        self._state = ConversationState(me)

    @property
    def state(self) -> ConversationState:
        return self._state

    def handle(self, event: ConversationEvent) -> ConversationState:
        """Apply `event`, and return the state after it."""
        self._state = next_state(self._state, event)
        return self._state


def next_state(state: ConversationState, event: ConversationEvent) -> ConversationState:  # noqa: C901, PLR0911 - cases
    """Return the state after `event`. Pure."""
    match event:
        case Entered():
            return replace(state, me=event.me, joined_at=event.at)
        case LeftRoom():
            return replace(
                _paused(state),
                pinned=(),
                settled=HostRequest(),
                joined_at=event.at,
                cooldown_until=None,
                last_message_at=None,
                opened_at=None,
                ended_at=None,
            )
        case Paused():
            return _paused(state)
        case MessagesArrived():
            return _messages_arrived(state, event)
        case Spoke():
            entry = HistoryEntry(f"m{state.entries + 1}", state.me, _read(event.content), event.at, is_me=True)
            spoken = replace(state, entries=state.entries + 1, history=_newest(state.history, (entry,)))
            return _noted(spoken, (entry,), event.at)
        case Delivered():
            return replace(state, cooldown_until=event.rests_until, spoken=state.spoken + 1)
        case Classified():
            return replace(state, history=tuple(_understood(one, event.meanings) for one in state.history))
        case WordsRefused():
            return replace(state, refusals=event.refusals)
        case EndingNoted():
            return _ending_noted(state)
        case OpenedTalk():
            return replace(state, opened_at=event.at)
        case Engaged():
            return replace(state, last_activity_at=event.at)
        case _:
            return replace(state, request=next_request(state.request, event))


def new_entries(state: ConversationState, said: Sequence[Said], now: datetime) -> tuple[HistoryEntry, ...]:
    """Return entries for the messages of `said` that are new, in the same order.

    A replayed message is recognized by time, author and text; the same text of ours within two minutes is the room's
    echo of what we already noted.
    """
    known = Counter((entry.at, entry.name, entry.content) for entry in state.history)
    new: list[HistoryEntry] = []
    for one in said:
        at, content = moment(one.timestamp, now), _read(one.content)
        key = (at, one.name, content)
        if known[key] or (one.name == state.me and _is_noted(state, content, at)):
            continue
        known[key] += 1
        new.append(
            HistoryEntry(
                id=f"m{state.entries + len(new) + 1}",
                name=one.name,
                content=content,
                at=at,
                is_host=is_host(one.name, one.id),
                is_me=one.name == state.me,
                replayed=one.replayed,
                addressed=one.addressed,
                addresses_me=bool(parse_addressed(content, (state.me,))),
            )
        )
    return tuple(new)


def moment(timestamp: str, now: datetime) -> datetime:
    """Return when something happened, by the room's timestamp if that is plausible, else `now`.

    A room may send any date. One far ahead would make everything later look old, and one at the ends of the calendar
    exists in no other time zone.
    """
    at = parse_iso_or_none(timestamp)
    return now if at is None or at > now + _CLOCKS_APART else max(at, _EARLIEST)


def _messages_arrived(state: ConversationState, event: MessagesArrived) -> ConversationState:
    """Return the state with the new messages; replayed ones are sorted in by time, and are no activity."""
    history = _newest(state.history, event.entries)
    if any(entry.replayed for entry in event.entries):
        every = sorted((*state.history, *event.entries), key=lambda entry: entry.at)
        history = tuple(every[-SPACE_HISTORY_KEPT:])
    pinned = next((text.removeprefix(_PIN) for text in state.pinned if text.startswith(_PIN)), None)
    updated = replace(
        state,
        entries=state.entries + len(event.entries),
        history=history,
        peer_events=(*state.peer_events, *event.peer_events)[-PEER_EVENTS_KEPT:],
        issues=dict([*state.issues.items(), *event.issues.items()][-ISSUES_KEPT:]),
        repo=detect_repo(history) or state.repo or pinned,
    )
    return _noted(updated, event.entries, event.at)


def _noted(state: ConversationState, new: Iterable[HistoryEntry], now: datetime) -> ConversationState:
    """Return the state with the times that the new entries change: of the last message, opening and activity."""
    last_message_at, opened_at, active_at = state.last_message_at, state.opened_at, state.last_activity_at
    for entry in new:
        if not entry.is_host and (last_message_at is None or entry.at - last_message_at >= _LONG_SILENCE):
            opened_at = entry.at
        last_message_at = max(entry.at, last_message_at or entry.at)
        if not entry.replayed:
            active_at = now
    return replace(
        state,
        last_message_at=last_message_at,
        opened_at=opened_at,
        last_activity_at=active_at,
    )


def _paused(state: ConversationState) -> ConversationState:
    return replace(
        state,
        pinned=(f"{_PIN}{state.repo}",) if state.repo else (),
        settled=state.request if state.request.content else state.settled,
        history=(),
        refusals=(),
        peer_events=(),
        issues={},
        repo=None,
        request=HostRequest(),
        last_activity_at=None,
    )


def _understood(entry: HistoryEntry, meanings: Mapping[str, Meaning]) -> HistoryEntry:
    meaning = meanings.get(entry.id)
    return replace(entry, **{part.name: getattr(meaning, part.name) for part in fields(meaning)}) if meaning else entry


def _ending_noted(state: ConversationState) -> ConversationState:
    latest = state.latest_host()
    if latest is None:
        return state
    asks = "action_request" in (latest.intent, classify_host_intent_structural(latest.content).intent)
    return replace(state, ended_at=latest.at if not asks and ends_talk(latest.content) else None)


def _newest(history: tuple[HistoryEntry, ...], new: tuple[HistoryEntry, ...]) -> tuple[HistoryEntry, ...]:
    return (*history, *new)[-SPACE_HISTORY_KEPT:]


def _is_noted(state: ConversationState, content: str, at: datetime) -> bool:
    return any(
        entry.is_me and entry.content == content and abs((entry.at - at).total_seconds()) < _SAME_OWN_WORDS_S
        for entry in state.history
    )


def _read(content: str) -> str:
    """Return as much of a message as is read; an ellipsis marks that there was more."""
    return content if len(content) <= SPACE_READ_CHARS else f"{content[: SPACE_READ_CHARS - 1]}…"


_STILL_NEW = timedelta(milliseconds=MINUTE_MS)
_WAITS_FOR_A_MIND = timedelta(milliseconds=30 * MINUTE_MS)
SKEW = timedelta(milliseconds=MINUTE_MS)
_PULL_REQUEST = re.compile(r"/pull/\d+/?$")
_LOST = "a peer was first"
_GUESTS_KEPT = 2_000


@dataclass(slots=True)
class RoomPerceiver:
    """Reads what came from the room, and updates the state of the conversation.

    A commitment whose claim was lost is withdrawn from `queue`; a room that we only found (`is_trusted_room`) has no
    influence on commitments made elsewhere. `on_reset` is called when another conversation begins.
    """

    client: SpaceClient
    talk: RoomConversation
    relationships: PeerRelationships
    queue: CommitmentQueue
    clock: Clock
    is_trusted_room: Callable[[], bool]
    on_reset: Callable[[], None] = lambda: None
    _joins: int = field(default=0, init=False)
    _guests: FIFOCache[str, None] = field(default_factory=lambda: FIFOCache(_GUESTS_KEPT), init=False)

    async def look(self) -> list[HistoryEntry]:
        """Return what others said since the last look and is still new, oldest first."""
        now = self.clock.now()
        self._enter(now)
        if self.talk.state.is_idle(now) and not (self._at_work() or self._awaits_delivery(now)):
            self.talk.handle(Paused())
            self.on_reset()
        events = self.client.inbox.take_events()
        self._note_guests(events)
        own = [event for event in events if isinstance(event, Said) and event.name == self.talk.state.me]
        received = [self._unmasked(one) for one in (*self.client.inbox.take_messages(), *own)]
        said = sorted(received, key=lambda one: one.timestamp)
        me, new = self.talk.state.me, new_entries(self.talk.state, said, now)
        peer_events = tuple(peer_events_in(events, me, self.client.agent_id, now))
        self.talk.handle(MessagesArrived(new, now, peer_events, dict(_issues(events, me))))
        if names := [entry.name for entry in new if not (entry.is_host or entry.is_me or entry.replayed)]:
            self.relationships.record_space_interaction(names)
            self._note_strengths(names)
        for action, target in self.client.view.claims.lost:
            await self.queue.withdraw_claimed(action, target, _LOST)
        for peer_event in peer_events:
            if peer_event.kind == "success":
                await self._leave_to(peer_event)
        return self._still_new(new, now)

    def _note_strengths(self, names: Iterable[str]) -> None:
        """Remember the expertise that those who spoke state in their identities."""
        identities = self.client.view.identities()
        for name in dict.fromkeys(names):
            if (identity := identities.get(name)) is not None and identity.expertise:
                self.relationships.record_complementary_strengths(name, identity.expertise)

    async def _leave_to(self, peer_event: PeerEvent) -> None:
        """Withdraw our commitments to what a peer has made, as when nobody knew of them or our try failed."""
        for one in self.queue.live():
            made = parse_iso_or_none(one.created_at)
            is_theirs = one.source == "space" and is_of_room(one, self.client.room_id)
            is_theirs = is_theirs and concerns_room(one, is_trusted=self.is_trusted_room())
            is_that = one.type == peer_event.action and same_target(claim_target(one), peer_event.target)
            if is_theirs and is_that and (made is None or made - SKEW <= peer_event.at):
                await self.queue.withdraw(one.id, f"{peer_event.name} has made it")

    def _at_work(self) -> bool:
        """Return whether a commitment to the host's request is still open; until it ends, the request is kept."""
        request = self.talk.state.request.content
        thread = conversation_thread_uri(HOST, request)
        made = self.queue.in_conversation(thread, self.client.room_id) if request else ()
        return any(one.status in LIVE for one in made)

    def _awaits_delivery(self, now: datetime) -> bool:
        """Return whether the host's request is open, recent and untried, as when no model answers for a while."""
        request = self.talk.state.request
        young = request.requested_at is not None and now - request.requested_at < _WAITS_FOR_A_MIND
        return is_open(request) and not request.attempts and request.claimed_until is None and young

    def _enter(self, now: datetime) -> None:
        """Note that we joined since the last look; another room begins another conversation."""
        if self.client.joins == self._joins:
            return
        if self._joins and self.client.inbox.fresh_room:
            self.talk.handle(LeftRoom(now))
            self.on_reset()
        self._joins = self.client.joins
        self.talk.handle(Entered(self.client.name, now))

    def _note_guests(self, events: Iterable[SpaceEvent]) -> None:
        """Remember the ids that joined as members, now or in the room's record; those present are forgotten last."""
        for event in events:
            if isinstance(event, Joined):
                self._guests[event.id] = None
            elif isinstance(event, History):
                self._guests.update((entry.agent_id, None) for entry in event.entries if entry.type == "join")
        self._guests.update((presence.id, None) for presence in self.client.peers().values())

    def _unmasked(self, said: Said) -> Said:
        """Return the message, without the host's name and id if its author joined as a member."""
        if not (said.by_host and said.id and said.id in self._guests):
            return said
        return replace(said, name=shown(said.name) if said.name == HOST else said.name, id="", addressed=())

    def _still_new(self, new: Sequence[HistoryEntry], now: datetime) -> list[HistoryEntry]:
        """Return the entries of others; of replayed ones only those that nobody has had the time to answer."""
        spoke = max((entry.at for entry in self.talk.state.own_messages), default=None)
        return [
            entry
            for entry in new
            if not entry.is_me
            and (not entry.replayed or (now - entry.at < _STILL_NEW and (spoke is None or entry.at > spoke)))
        ]


def peer_events_in(events: Iterable[SpaceEvent], me: str, my_id: str, now: datetime) -> Iterator[PeerEvent]:
    """Yield the acts that matter to a request; ours only if the record has them from an earlier process."""
    for event in events:
        if isinstance(event, History):
            for entry in event.entries:
                if entry.agent_id != my_id and not is_host(entry.agent_name, entry.agent_id):
                    yield from _recorded(entry, now)
        elif isinstance(event, Claimed | ActionDone | Said) and event.name != me:
            yield from _done(event, moment(event.timestamp, now))


def _done(event: Claimed | ActionDone | Said, at: datetime) -> Iterator[PeerEvent]:
    match event:
        case Claimed():
            yield PeerEvent("claim", event.name, at, event.action, event.target)
        case ActionDone():
            yield PeerEvent("success" if event.success else "failure", event.name, at, event.action, event.target)
        case Said() if not event.by_host and is_done_chat(event.content):
            yield PeerEvent("done_chat", event.name, at)


def _recorded(entry: LogEntry, now: datetime) -> Iterator[PeerEvent]:
    at = moment(entry.timestamp, now)
    if entry.type == "chat" and is_done_chat(entry.content):
        yield PeerEvent("done_chat", entry.agent_name, at)
    elif entry.type == "claim":
        action, _, target = entry.content.partition(":")
        yield PeerEvent("claim", entry.agent_name, at, action, target)
    elif entry.type == "action_result":
        result = json_object(entry.content) or {}
        action, target = str(result.get("action", "")), str(result.get("target", ""))
        yield PeerEvent("success" if result.get("success") is True else "failure", entry.agent_name, at, action, target)


def _issues(events: Iterable[SpaceEvent], me: str) -> Iterator[tuple[str, str]]:
    """Yield the links to issues and pull requests that peers made, and who made each."""
    for event in events:
        if not isinstance(event, ActionDone) or not event.success or event.name == me:
            continue
        if event.action == "create_issue" or _PULL_REQUEST.search(event.link):
            yield event.link, event.name
