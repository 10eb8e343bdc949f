"""When something happened, by our own clock, whatever time the room's machine believes it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from adapters.space.member import RoomTime
from adapters.space.types import History, Joined, LogEntry, Presence, PresenceList, Said, SpaceEvent
from common.clock import iso

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def _came_in(stamp: str, agent_id: str = "ada-1") -> RoomTime:
    time = RoomTime("ada-1")
    others = Presence("bob", "bob-1", "1", iso(NOW - timedelta(days=1)), "")
    time.came_in(PresenceList((others, Presence("ada", agent_id, "1", stamp, ""))), NOW)
    return time


def _recorded(time: RoomTime, stamp: str) -> str:
    told = time.by_ours(History((LogEntry(stamp, "bob", "bob-1", "chat", "tin"),)), NOW)
    assert isinstance(told, History)
    return told.entries[0].timestamp


@pytest.mark.parametrize("off", [timedelta(minutes=5), timedelta(minutes=-5), timedelta(days=-20_000)])
def test_what_a_record_tells_is_moved_by_as_much_as_the_rooms_clock_is_off(off: timedelta) -> None:
    stamp = iso(NOW + off - timedelta(minutes=3))
    assert _recorded(_came_in(iso(NOW + off)), stamp) == iso(NOW - timedelta(minutes=3))


@pytest.mark.parametrize(
    ("stamp", "agent_id"),
    [(iso(NOW + timedelta(seconds=0.9)), "ada-1"), ("yesterday", "ada-1"), (iso(NOW + timedelta(hours=1)), "ada-0")],
    ids=["as good as ours", "no time", "another life of ours"],
)
def test_a_clock_that_is_not_known_to_be_off_counts_as_right(stamp: str, agent_id: str) -> None:
    assert _recorded(_came_in(stamp, agent_id), "2026-01-05T11:00:00.000Z") == "2026-01-05T11:00:00.000Z"


@pytest.mark.parametrize("stamp", ["", "soon", "9999-12-31T23:59:59.000Z", "0001-01-01T00:00:00.000Z"])
def test_a_record_may_hold_any_date(stamp: str) -> None:
    assert _recorded(_came_in("9999-12-31T23:59:59.000Z"), "0001-01-01T00:00:00.000Z") == "0001-01-01T00:00:00.000Z"
    assert _recorded(_came_in(iso(NOW)), stamp) == stamp


@pytest.mark.parametrize("stamp", ["", "9999-12-31T23:59:59.000Z", iso(NOW - timedelta(minutes=5))])
def test_what_is_heard_at_this_moment_happened_now(stamp: str) -> None:
    assert RoomTime("ada-1").by_ours(Said("bob", "bob-1", "tin", stamp), NOW) == Said("bob", "bob-1", "tin", iso(NOW))


def test_what_needs_no_other_time_stays_as_it_is() -> None:
    events: tuple[SpaceEvent, ...] = (Said("bob", "b", "tin", iso(NOW + timedelta(seconds=1))), Joined("bob", "b", "1"))
    assert [_came_in(iso(NOW + timedelta(hours=1))).by_ours(one, NOW) for one in events] == list(events)
