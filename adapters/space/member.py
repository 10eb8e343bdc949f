"""The protocol core of a member of an agent space, without I/O: frames and times go in, frames and notices come out.

It owns the connection cycle (`member_cycle`), the view of the room (`member_view`), and the messages received and to be
sent. All of it is lost with the process; the room sends it again, and a replayed message is kept once.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from cachetools import FIFOCache

from adapters.space.member_cycle import MemberCycle, MemberName, Step
from adapters.space.member_view import RoomView
from adapters.space.types import (
    ActionDone,
    Claimed,
    History,
    Joined,
    LogEntry,
    PresenceList,
    Refused,
    Said,
    ShuttingDown,
    SpaceEvent,
    Status,
)
from adapters.space.wire_fields import ChatDelivery, Outgoing
from common.clock import Clock, iso, parse_iso_or_none

MESSAGES_KEPT: Final = 500
EVENTS_KEPT: Final = 1_000
_KNOWN_KEPT = 10_000


class Inbox:
    """The received messages and events of `me`."""

    def __init__(self, me: MemberName) -> None:
        self._me = me
        self._messages: deque[Said] = deque(maxlen=MESSAGES_KEPT)
        self._events: deque[SpaceEvent] = deque(maxlen=EVENTS_KEPT)
        self._known = FIFOCache[int, None](_KNOWN_KEPT)
        self._fresh = True
        self._room_id = ""

    @property
    def fresh_room(self) -> bool:
        """Whether the latest record is another room's: by the ids or, without ids, if no message in it was known."""
        return self._fresh

    def take_messages(self) -> list[Said]:
        """Return and clear the messages of others, and our own messages that came only in the record."""
        messages = list(self._messages)
        self._messages.clear()
        return messages

    def take_events(self) -> list[SpaceEvent]:
        """Return and clear all events, the echoes of our own messages included."""
        events = list(self._events)
        self._events.clear()
        return events

    def note(self, event: SpaceEvent, stamp: str = "") -> None:
        """Keep an event. `stamp` is the room's time of it, if `event` has another."""
        self._events.append(event)
        if isinstance(event, Said):
            self._know(_words(stamp or event.timestamp, event.name, event.content))
            if event.name != self._me.current:
                self._messages.append(event)

    def replay(self, told: History, ours: History | None = None) -> list[Said]:
        """Keep the room's record in place of an earlier one; return the new messages in it, oldest first.

        Args:
            told: the record with the room's times, by which messages are recognised.
            ours: the same record with times of our own clock, if they differ.

        """
        told_ids = bool(told.room_id and self._room_id)
        moved = told_ids and told.room_id != self._room_id
        self._room_id = told.room_id
        if moved:
            self._forget()
        self._events = deque((event for event in self._events if not isinstance(event, History)), maxlen=EVENTS_KEPT)
        history = ours or told
        self._events.append(history)
        both = zip(told.entries, history.entries, strict=True)
        chats = [(_of(raw), entry) for raw, entry in both if entry.type == "chat" and entry.content]
        self._fresh = moved if told_ids else not any(words in self._known for words, _ in chats)
        new = [
            Said(entry.agent_name, entry.agent_id, entry.content, entry.timestamp, replayed=True)
            for words, entry in chats
            if self._know(words)
        ]
        self._messages.extend(new)
        return new

    def _forget(self) -> None:
        """Drop what came from the previous room; the new one's member list came before its record, and stays."""
        self._messages.clear()
        self._known.clear()
        self._events = deque(
            (event for event in self._events if isinstance(event, Joined | PresenceList)), maxlen=EVENTS_KEPT
        )

    def _know(self, words: int) -> bool:
        """Remember a message; return whether it is new."""
        if words in self._known:
            return False
        self._known[words] = None
        return True


def _of(entry: LogEntry) -> int:
    return _words(entry.timestamp, entry.agent_name, entry.content)


def _words(timestamp: str, name: str, content: str) -> int:
    # NOTE(self): a hash instead of the text, which may be long.
    return hash((timestamp, name, content))


CLOSE_REPLACED: Final = 4002
CLOSE_INVALID_JOIN: Final = 4003
CLOSE_NAME_TAKEN: Final = 4004
MAX_UNECHOED: Final = 2
"""After this many messages in a row without an echo the member reconnects."""

_SAME_TIME = timedelta(seconds=1)

NoticeKind = Literal["info", "warn"]


@dataclass(frozen=True, slots=True)
class MemberNotice:
    """A line for the owner. `detail` may hold untrusted text, never a token."""

    kind: NoticeKind
    message: str
    detail: str = ""


class RoomTime:
    """Converts the room's timestamps to our own clock, because the room's machine may be minutes off.

    A live event happened now, whatever the room writes. An entry of the record happened as long ago as the room's clock
    says; the offset of that clock is the difference between our join time and the room's. Until then the offset is 0.
    """

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._ahead = timedelta()

    def came_in(self, present: PresenceList, now: datetime) -> None:
        """Set the offset from the `joined_at` of this member, which joined at `now`."""
        stamps = (parse_iso_or_none(agent.joined_at) for agent in present.agents if agent.id == self._agent_id)
        ahead = next((at - now for at in stamps if at is not None), timedelta())
        self._ahead = ahead if abs(ahead) > _SAME_TIME else timedelta()

    def by_ours(self, event: SpaceEvent, now: datetime) -> SpaceEvent:
        """Return the event with times of our clock, if they differ by more than a second."""
        match event:
            case History():
                told = (replace(entry, timestamp=self._told(entry.timestamp)) for entry in event.entries)
                return replace(event, entries=tuple(told))
            case Said() | Claimed() | ActionDone():
                at = parse_iso_or_none(event.timestamp)
                return event if at is not None and abs(at - now) <= _SAME_TIME else replace(event, timestamp=iso(now))
            case _:
                return event

    def _told(self, stamp: str) -> str:
        at = parse_iso_or_none(stamp)
        if at is None or not self._ahead:
            return stamp
        try:
            return iso(at - self._ahead)
        except OverflowError:
            return stamp


class Member:
    """One agent as a member of one room.

    Args:
        name: the configured name; the property `name` is the one in use.
        agent_id: the id of this process.
        version: the version of this program.
        capabilities: returns the capabilities, called at each join; None means all.
        clock: the source of time; the monotonic time decides, the wall time stamps events.
        rng: spreads delays.
        interval_s: returns the seconds between two searches for a room, called each time.

    """

    def __init__(
        self,
        *,
        name: str,
        agent_id: str,
        version: str,
        capabilities: Callable[[], Sequence[str] | None],
        clock: Clock,
        rng: random.Random,
        interval_s: Callable[[], float],
    ) -> None:
        self._name = MemberName(name, rng)
        self.agent_id = agent_id
        self.view = RoomView(self._name, clock)
        self.inbox = Inbox(self._name)
        self._time = RoomTime(agent_id)
        self.outgoing = Outgoing()
        self.joins = 0
        self.room_id = ""
        self._cycle = MemberCycle(rng=rng, interval_s=interval_s)
        self._version = version
        self._capabilities = capabilities
        self._shown: tuple[str, ...] | None = None
        self._renewing = ""
        self._unechoed = 0
        self._resume = self._resume_at = ""
        self._clock = clock
        self._notices: list[MemberNotice] = []
        self._refusal = ""
        self._told_refusal = ""
        self._told_absence = False
        self._told_errors: set[str] = set()

    @property
    def name(self) -> str:
        """The name of the current or the next join."""
        return self._name.current

    @property
    def status(self) -> Status:
        return self._cycle.status

    @property
    def is_active(self) -> bool:
        """Whether this member is in a room, even one that is shutting down."""
        return self._cycle.status in ("joined", "draining")

    @property
    def refused_urls(self) -> list[str]:
        """The URLs of the rooms that did not accept this member within the last hour."""
        return self._cycle.refused(self._clock.monotonic())

    def step(self) -> Step:
        """Return what to do next while there is no connection."""
        return self._cycle.step(self._clock.monotonic())

    def found(self, url: str) -> None:
        """Record that discovery found the room."""
        self._cycle.found(url, self._clock.monotonic())
        self._told_absence = False

    def not_found(self, why: str) -> None:
        """Record that discovery found no room. The owner is told once until one is found."""
        self._cycle.not_found(self._clock.monotonic())
        if not self._told_absence:
            self._told_absence = True
            self._notices.append(MemberNotice("info", "No agent space found", why))

    def opened(self) -> Joined:
        """Record that the connection was opened; return the join to send."""
        self._refusal = ""
        self._told_errors.clear()
        self._cycle.opened(self._clock.monotonic())
        self._shown = self._able()
        self._unechoed = 0
        # NOTE(self): a token is only sent to the room that issued it; another room could use it to take our place.
        resume = self._resume if self._resume_at == self._cycle.url else ""
        at = iso(self._clock.now())
        return Joined(self.name, self.agent_id, self._version, self._shown, resume, at)

    def renew(self) -> bool:
        """Return whether to rejoin, because the capabilities changed or the configured name is free again.

        This is never the case while messages are queued, so that none is sent twice.
        """
        if self.status != "joined" or len(self.outgoing):
            return bool(self._renewing)
        if self._able() != self._shown:
            self._renewing = "what we can do has changed"
        elif self._name.is_free_again(self.view.peers(), self._clock.monotonic()):
            self._renewing = f"our name is free again: {self._name.own}"
        return bool(self._renewing)

    def received(self, told: SpaceEvent) -> SpaceEvent:
        """Handle an event of the room; return it with times of our own clock."""
        now = self._clock.monotonic()
        if isinstance(told, PresenceList) and self.status == "connecting":
            self._time.came_in(told, self._clock.now())
        if isinstance(told, PresenceList) and told.resume:
            self._resume, self._resume_at = told.resume, self._cycle.url
            told = replace(told, resume="")
        event = self._time.by_ours(told, self._clock.now())
        self.view.apply(event)
        if isinstance(told, History) and isinstance(event, History):
            self._replayed(told, event)
            return event
        self.inbox.note(event, getattr(told, "timestamp", ""))
        if isinstance(event, Said) and event.name == self.name:
            self._unechoed = 0
            self.outgoing.echoed(event.content)
        elif isinstance(event, Refused):
            self._refused(event, now)
        elif isinstance(event, ShuttingDown) and self.status == "joined":
            self._cycle.closing(now)
            self._notices.append(MemberNotice("info", "The agent space is closing", event.reason))
        return event

    def unreadable(self, why: str) -> None:
        """Record that the room sent an unreadable frame. The owner is told once per connection."""
        self._complain("The agent space said something unreadable", why)

    def due(self) -> Said | None:
        """Return the message to send now, or None."""
        chat = self.outgoing.take(self._clock.monotonic()) if self.is_active else None
        if chat is None:
            return None
        return Said(self.name, self.agent_id, chat.content, iso(self._clock.now()))

    def next_at(self) -> float | None:
        """Return when `due`, `overdue` or `settle` must be called next (monotonic s); None: only after an event."""
        if self.is_active and self._is_unechoed:
            return self._clock.monotonic()
        words = self.outgoing.next_at(speaking=self.is_active)
        moments = [moment for moment in (words, self._cycle.deadline) if moment is not None]
        return min(moments, default=None)

    def overdue(self) -> bool:
        """Return whether to close the connection, because the room is late or this member must rejoin."""
        return bool(self._renewing) or self._is_unechoed or self._cycle.overdue(self._clock.monotonic())

    @property
    def _is_unechoed(self) -> bool:
        return self._unechoed >= MAX_UNECHOED

    def ended(self, code: int | None = None, why: str = "", *, refused: bool = False) -> None:
        """Record that the connection has ended, or could not be made.

        Args:
            code: the code of the close frame, if there was one.
            why: one line, without a token.
            refused: whether the room refused the handshake.

        """
        was_active = self.is_active
        renewing, self._renewing = self._renewing, ""
        unwanted = refused or code in _UNWANTED
        now = self._clock.monotonic()
        if was_active and self._name.is_free_again(self.view.peers(), now):
            self._name.take_back()
        if renewing and not unwanted:
            self._cycle.parted(now)
        elif code in (CLOSE_REPLACED, CLOSE_NAME_TAKEN):
            self._displaced(now)
        else:
            self._cycle.ended(now, refused=unwanted)
        self.view.cut_off()
        self.outgoing.cut_off()
        if unwanted:
            self._unwanted(code, _refusal(code, self._refusal or why))
        elif was_active:
            self._told_refusal = ""
            lost = "it did not hear us" if self._is_unechoed else why
            left = MemberNotice("info", "Disconnected from agent space", lost)
            self._notices.append(MemberNotice("info", "Joining anew", renewing) if renewing else left)

    def settle(self) -> list[ChatDelivery]:
        """Return the outcomes of messages since the last call; the owner is told of those that were dropped."""
        deliveries = self.outgoing.settle(self._clock.monotonic())
        for delivery in deliveries:
            self._unechoed = self._unechoed + 1 if delivery.state == "unechoed" else 0
            if delivery.state == "dropped":
                self._notices.append(MemberNotice("warn", "A message was not said in the agent space", delivery.reason))
        return deliveries

    def take_notices(self) -> list[MemberNotice]:
        """Return the lines for the owner since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def _displaced(self, now: float) -> None:
        if self._cycle.displaced(now):
            self._name.give_way(now)
            taken = f"somebody else is there as {self._name.own}; we take the name back when it is free"
            self._notices.append(MemberNotice("warn", f"Coming into the agent space as {self.name}", taken))

    def _able(self) -> tuple[str, ...] | None:
        able = self._capabilities()
        return None if able is None else tuple(able)

    def _replayed(self, told: History, history: History) -> None:
        self.room_id = told.room_id
        for said in self.inbox.replay(told, history):
            if said.name == self.name:
                self.outgoing.echoed(said.content)
        if self.status != "connecting":
            return
        self._cycle.joined()
        self.joins += 1

    def _refused(self, refusal: Refused, now: float) -> None:
        self._refusal = refusal.message
        if refusal.prefix in ("Rate limited", "Must join"):
            self.outgoing.refused(now)
        elif refusal.prefix == "Invalid chat":
            self.outgoing.rejected("the room does not take it")
        elif refusal.prefix == "Claim conflict":
            self.view.claims.conflict(refusal.message, self.view.peers(), iso(self._clock.now()))
        else:
            self._complain(f"The agent space refused something: {refusal.prefix or 'unknown'}", refusal.message)

    def _complain(self, message: str, detail: str) -> None:
        if message not in self._told_errors:
            self._told_errors.add(message)
            self._notices.append(MemberNotice("warn", message, detail))

    def _unwanted(self, code: int | None, why: str) -> None:
        if why != self._told_refusal:
            self._told_refusal = why
            again = "as long as it takes" if code in (CLOSE_REPLACED, CLOSE_NAME_TAKEN) else "in 5 minutes"
            self._notices.append(MemberNotice("warn", f"The agent space will not have us; trying again {again}", why))


_UNWANTED = (CLOSE_REPLACED, CLOSE_INVALID_JOIN, CLOSE_NAME_TAKEN)


def _refusal(code: int | None, why: str) -> str:
    if code == CLOSE_REPLACED:
        return "another program joined under our name; give each agent a name of its own (AGENT_NAME)"
    if code == CLOSE_NAME_TAKEN:
        return "another is there under our name, or one that looks like it; give each a name of its own (AGENT_NAME)"
    if code == CLOSE_INVALID_JOIN:
        return f"our name or version is not accepted: {why}"
    return why
