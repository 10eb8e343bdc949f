"""When something happened in a room, by our own clock: a room's machine may be minutes off. Pure.

What is heard at this moment happened now, whatever the room writes. What its record tells happened as long ago as the
room's clock says; how far that clock is off shows when the room tells us at what time we came in.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from adapters.space.types import ActionDone, Claimed, Event, History, PresenceList, Said
from common.clock import iso, parse_iso_or_none

_SAME = timedelta(seconds=1)


class RoomTime:
    """The clock of the room that `agent_id` is in, beside ours; until it is known it counts as right."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._ahead = timedelta()

    def came_in(self, present: PresenceList, now: datetime) -> None:
        """We came in now, and this is what the room says of it."""
        stamps = (parse_iso_or_none(agent.joined_at) for agent in present.agents if agent.id == self._agent_id)
        ahead = next((at - now for at in stamps if at is not None), timedelta())
        self._ahead = ahead if abs(ahead) > _SAME else timedelta()

    def by_ours(self, event: Event, now: datetime) -> Event:
        """The event with our times in place of the room's, as far as they differ by more than a second."""
        match event:
            case History():
                told = (replace(entry, timestamp=self._told(entry.timestamp)) for entry in event.entries)
                return replace(event, entries=tuple(told))
            case Said() | Claimed() | ActionDone():
                at = parse_iso_or_none(event.timestamp)
                return event if at is not None and abs(at - now) <= _SAME else replace(event, timestamp=iso(now))
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
