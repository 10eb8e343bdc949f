"""A member of an agent space as a protocol core, without I/O: frames and moments in, frames and notices out.

It owns one life cycle (`member_cycle`), what it knows of the room (`member_view`, `member_claims`), what it heard
(`inbox`), and what it still has to say (`outgoing`). Nothing of it
survives a crash; the room tells it anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from adapters.space.inbox import Inbox
from adapters.space.member_cycle import Cycle, Step
from adapters.space.member_name import MemberName
from adapters.space.member_view import RoomView
from adapters.space.outgoing import Delivery, Outgoing
from adapters.space.types import (
    ActionDone,
    Claimed,
    Event,
    History,
    Joined,
    PresenceList,
    Refused,
    Said,
    ShuttingDown,
    Status,
)
from adapters.space.wire_json import iso_now
from common.clock import Clock, iso, parse_iso_or_none

CLOSE_REPLACED: Final = 4002
CLOSE_INVALID_JOIN: Final = 4003
CLOSE_NAME_TAKEN: Final = 4004
MAX_UNECHOED: Final = 2
"""So many messages of ours without an echo, one after the other, and the room does not hear us: we come in anew."""

_SAME_TIME = timedelta(seconds=1)

NoticeKind = Literal["info", "warn"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the owner. `detail` may hold foreign text, never a token."""

    kind: NoticeKind
    message: str
    detail: str = ""


class RoomTime:
    """When something happened in the room of `agent_id`, by our own clock: a room's machine may be minutes off.

    What comes live happened now, whatever the room writes. An entry of its record happened as long ago as the room's
    clock says; how far that clock is off shows in the time at which the room says that we joined. Until then the
    room's clock counts as right.
    """

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._ahead = timedelta()

    def came_in(self, present: PresenceList, now: datetime) -> None:
        """We came in now, and this is what the room says of it."""
        stamps = (parse_iso_or_none(agent.joined_at) for agent in present.agents if agent.id == self._agent_id)
        ahead = next((at - now for at in stamps if at is not None), timedelta())
        self._ahead = ahead if abs(ahead) > _SAME_TIME else timedelta()

    def by_ours(self, event: Event, now: datetime) -> Event:
        """The event with our times in place of the room's, as far as they differ by more than a second."""
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
    """One agent towards one room.

    Args:
        name: ours, as our owner gave it; `name` is the one under which the others know us now.
        agent_id: ours, for this process.
        version: of this program.
        capabilities: says what we can do, asked at each join; None means everything.
        clock: the time; only its monotonic side decides, its wall time dates what is heard.
        rng: spreads delays.
        interval_s: seconds between two looks for a room, asked each time.

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
        self.view = RoomView(self._name)
        self.inbox = Inbox(self._name)
        self._time = RoomTime(agent_id)
        self.outgoing = Outgoing()
        self.joins = 0
        self.room_id = ""
        self._cycle = Cycle(rng=rng, interval_s=interval_s)
        self._version = version
        self._capabilities = capabilities
        self._shown: tuple[str, ...] | None = None
        self._renewing = ""
        self._unechoed = 0
        self._resume = self._resume_at = ""
        self._clock = clock
        self._notices: list[Notice] = []
        self._refusal = ""
        self._told_refusal = ""
        self._told_absence = False
        self._told_errors: set[str] = set()

    @property
    def name(self) -> str:
        """The name under which we are in the room, or come next."""
        return self._name.current

    @property
    def status(self) -> Status:
        return self._cycle.status

    @property
    def is_active(self) -> bool:
        """Whether we are in a room, though it may be about to close."""
        return self._cycle.status in ("joined", "draining")

    def step(self) -> Step:
        """What to do next while there is no connection."""
        return self._cycle.step(self._clock.monotonic())

    def found(self, url: str) -> None:
        """Discovery found the room."""
        self._cycle.found(url, self._clock.monotonic())
        self._told_absence = False

    def not_found(self, why: str) -> None:
        """Discovery found none. The owner is told once until one is found."""
        self._cycle.not_found(self._clock.monotonic())
        if not self._told_absence:
            self._told_absence = True
            self._notices.append(Notice("info", "No agent space found", why))

    def opened(self) -> Joined:
        """The connection stands; what to send at once."""
        self._refusal = ""
        self._told_errors.clear()
        self._cycle.opened(self._clock.monotonic())
        self._shown = self._able()
        self._unechoed = 0
        # NOTE(self): a token is for the room that gave it; another one could take our place with it.
        resume = self._resume if self._resume_at == self._cycle.url else ""
        at = iso_now(self._clock)
        return Joined(self.name, self.agent_id, self._version, self._shown, resume, at)

    def renew(self) -> bool:
        """Whether we leave and come in anew: what we can do is no longer what the room was told, or our name is free.

        Nothing of ours is on its way then, so that no word is said twice.
        """
        if self.status != "joined" or len(self.outgoing):
            return bool(self._renewing)
        if self._able() != self._shown:
            self._renewing = "what we can do has changed"
        elif self._name.is_free_again(self.view.peers(), self._clock.monotonic()):
            self._renewing = f"our name is free again: {self._name.own}"
        return bool(self._renewing)

    def received(self, told: Event) -> Event:
        """The room said something; returns it with the times of our own clock."""
        now = self._clock.monotonic()
        if isinstance(told, PresenceList) and self.status == "connecting":
            self._time.came_in(told, self._clock.now())
        if isinstance(told, PresenceList) and told.resume:
            self._resume, self._resume_at = told.resume, self._cycle.url
            told = replace(told, resume="")
        event = self._time.by_ours(told, self._clock.now())
        self.view.apply(event, now)
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
            self._notices.append(Notice("info", "The agent space is closing", event.reason))
        return event

    def unreadable(self, why: str) -> None:
        """The room said something that nobody understands. The owner is told once per connection."""
        self._complain("The agent space said something unreadable", why)

    def due(self) -> Said | None:
        """What to send at this moment; None if nothing is due."""
        chat = self.outgoing.take(self._clock.monotonic()) if self.is_active else None
        if chat is None:
            return None
        return Said(self.name, self.agent_id, chat.content, iso_now(self._clock), thread_id=chat.thread_id)

    def next_at(self) -> float | None:
        """When `due`, `overdue` or `settle` has something to say, in monotonic seconds; None: not by itself."""
        if self.is_active and self._is_unechoed:
            return self._clock.monotonic()
        words = self.outgoing.next_at(speaking=self.is_active)
        moments = [moment for moment in (words, self._cycle.deadline) if moment is not None]
        return min(moments, default=None)

    def overdue(self) -> bool:
        """Whether to close the connection: the room keeps us waiting for too long, or we come in anew."""
        return bool(self._renewing) or self._is_unechoed or self._cycle.overdue(self._clock.monotonic())

    @property
    def _is_unechoed(self) -> bool:
        return self._unechoed >= MAX_UNECHOED

    def ended(self, code: int | None = None, why: str = "", *, refused: bool = False) -> None:
        """The connection is gone, or could not be made.

        Args:
            code: of the close frame, if one came.
            why: one line, without a token.
            refused: whether the room turned us away before it opened.

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
            left = Notice("info", "Disconnected from agent space", lost)
            self._notices.append(Notice("info", "Joining anew", renewing) if renewing else left)

    def settle(self) -> list[Delivery]:
        """What became of our words since the last call; the owner is told of those that were never said."""
        deliveries = self.outgoing.settle(self._clock.monotonic())
        for delivery in deliveries:
            self._unechoed = self._unechoed + 1 if delivery.state == "unechoed" else 0
            if delivery.state == "dropped":
                self._notices.append(Notice("warn", "A message was not said in the agent space", delivery.reason))
        return deliveries

    def take_notices(self) -> list[Notice]:
        """Lines for the owner since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def _displaced(self, now: float) -> None:
        if self._cycle.displaced(now):
            self._name.give_way(now)
            taken = f"somebody else is there as {self._name.own}; we take the name back when it is free"
            self._notices.append(Notice("warn", f"Coming into the agent space as {self.name}", taken))

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
            self.view.claims.conflict(refusal.message, self.view.peers(), now, iso_now(self._clock))
        else:
            self._complain(f"The agent space refused something: {refusal.prefix or 'unknown'}", refusal.message)

    def _complain(self, message: str, detail: str) -> None:
        if message not in self._told_errors:
            self._told_errors.add(message)
            self._notices.append(Notice("warn", message, detail))

    def _unwanted(self, code: int | None, why: str) -> None:
        if why != self._told_refusal:
            self._told_refusal = why
            again = "as long as it takes" if code in (CLOSE_REPLACED, CLOSE_NAME_TAKEN) else "in 5 minutes"
            self._notices.append(Notice("warn", f"The agent space will not have us; trying again {again}", why))


_UNWANTED = (CLOSE_REPLACED, CLOSE_INVALID_JOIN, CLOSE_NAME_TAKEN)


def _refusal(code: int | None, why: str) -> str:
    if code == CLOSE_REPLACED:
        return "another program joined under our name; give each agent a name of its own (AGENT_NAME)"
    if code == CLOSE_NAME_TAKEN:
        return "another is there under our name, or one that looks like it; give each a name of its own (AGENT_NAME)"
    if code == CLOSE_INVALID_JOIN:
        return f"our name or version is not accepted: {why}"
    return why
