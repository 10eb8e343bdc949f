"""A member's life cycle: how long it waits for what, and that it always comes back, one connection at a time."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from adapters.space.member import Member
from adapters.space.member_cycle import (
    DRAIN_WITHIN_S,
    FIRST_LOOK_S,
    JOIN_WITHIN_S,
    REFUSED_DELAY_S,
    RETRY_DELAYS_S,
    Connect,
    Discover,
    MemberCycle,
    MemberWait,
)
from adapters.space.types import History, Presence, PresenceList
from common.clock import FakeClock
from tests.exploration import examples

URL = "ws://10.0.0.7:7777"
INTERVAL_S = 300.0


class Middle(random.Random):
    """Chance that always lands in the middle."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2

    def random(self) -> float:
        return 0.0


def _cycle(interval_s: float = INTERVAL_S) -> MemberCycle:
    return MemberCycle(rng=Middle(), interval_s=lambda: interval_s)


def _wait(cycle: MemberCycle, now: float) -> float:
    step = cycle.step(now)
    assert isinstance(step, MemberWait)
    return step.until - now


def _joined(now: float = 0.0) -> MemberCycle:
    cycle = _cycle()
    assert cycle.step(now) == Discover()
    cycle.found(URL, now)
    assert cycle.step(now) == Connect(URL)
    cycle.opened(now)
    cycle.joined()
    return cycle


def test_looks_for_the_room_first_and_knocks_where_it_was_found() -> None:
    assert _joined().status == "joined"


def test_a_lost_room_is_tried_after_5_10_20_and_60_seconds_and_then_looked_for_again() -> None:
    cycle, now = _joined(), 0.0
    waits = []
    for _ in range(4):
        cycle.ended(now)
        waits.append(_wait(cycle, now))
        now += waits[-1]
        step = cycle.step(now)
        if isinstance(step, Discover):
            break
        assert step == Connect(URL)
    assert waits == list(RETRY_DELAYS_S)
    assert cycle.step(now) == Discover()
    cycle.found("ws://10.0.0.8:7777", now)
    assert cycle.step(now) == Connect("ws://10.0.0.8:7777")


def test_a_lost_room_that_nobody_advertises_any_more_is_tried_where_it_was() -> None:
    cycle, now = _joined(), 0.0
    for _ in RETRY_DELAYS_S:
        cycle.ended(now)
        now += 100
        step = cycle.step(now)
    assert step == Discover()
    cycle.not_found(now)
    assert cycle.step(now) == Connect(URL)
    cycle.ended(now)
    assert _wait(cycle, now) == 60


def test_only_a_room_that_took_us_in_makes_the_waits_short_again() -> None:
    cycle, now = _cycle(), 0.0
    cycle.found(URL, now)
    waits = []
    for _ in range(3):
        cycle.step(now)
        cycle.opened(now)
        cycle.ended(now)
        waits.append(_wait(cycle, now))
        now += 100
    assert waits == [5, 10, 20]
    cycle.step(now)
    cycle.opened(now)
    cycle.joined()
    cycle.ended(now)
    assert _wait(cycle, now) == 5


def test_where_there_is_no_room_it_looks_after_30_seconds_and_then_at_the_interval_that_holds_at_that_time() -> None:
    interval = [300.0]
    cycle, now = MemberCycle(rng=Middle(), interval_s=lambda: interval[0]), 0.0
    waits = []
    for _ in range(3):
        assert cycle.step(now) == Discover()
        cycle.not_found(now)
        waits.append(_wait(cycle, now))
        now += 1000
        interval[0] = 40.0
    assert waits == [FIRST_LOOK_S, 40, 40]


def test_after_the_room_closed_in_order_it_looks_after_30_seconds_and_then_at_the_interval() -> None:
    cycle = _joined()
    cycle.closing(0)
    assert cycle.status == "draining"
    cycle.ended(3)
    assert _wait(cycle, 3) == FIRST_LOOK_S
    assert cycle.step(33) == Discover()
    cycle.found(URL, 33)
    assert cycle.step(33) == Connect(URL)
    cycle.ended(33)
    assert _wait(cycle, 33) == INTERVAL_S
    assert cycle.step(333) == Discover()
    cycle.not_found(333)
    assert _wait(cycle, 333) == INTERVAL_S


def test_a_room_that_will_not_have_us_is_left_in_peace_for_five_minutes() -> None:
    cycle = _joined()
    cycle.ended(0, refused=True)
    assert _wait(cycle, 0) == REFUSED_DELAY_S
    assert cycle.step(REFUSED_DELAY_S) == Connect(URL)


@pytest.mark.parametrize("joined", [False, True], ids=["before its record", "after it said it would close"])
def test_a_room_may_not_keep_us_waiting_for_ever(*, joined: bool) -> None:
    cycle, within_s = _cycle(), JOIN_WITHIN_S
    cycle.found(URL, 0)
    cycle.step(0)
    cycle.opened(0)
    if joined:
        cycle.joined()
        assert not cycle.overdue(10_000)
        cycle.closing(0)
        within_s = DRAIN_WITHIN_S
    assert not cycle.overdue(within_s - 0.1)
    assert cycle.overdue(within_s)


def test_asking_for_a_second_connection_is_a_mistake_of_ours() -> None:
    cycle = _joined()
    with pytest.raises(RuntimeError, match="one connection"):
        cycle.step(0)


AT = "2026-01-05T12:00:00.000Z"


async def test_a_member_comes_back_with_the_token_of_that_room_and_shows_it_to_no_other() -> None:
    clock = FakeClock()
    member = Member(
        name="ada",
        agent_id="ada-1",
        version="1",
        capabilities=lambda: None,
        clock=clock,
        rng=random.Random(1),
        interval_s=lambda: 300.0,
    )
    shown: list[str | None] = []
    for url, token in (("ws://one", "first"), ("ws://one", "second"), ("ws://two", "third"), ("ws://one", "fourth")):
        await clock.advance(100)
        member.found(url)
        assert member.step() == Connect(url)
        shown.append(member.opened().resume)
        told = member.received(PresenceList((Presence("ada", "ada-1", "1", AT, AT),), resume=token))
        assert told == PresenceList((Presence("ada", "ada-1", "1", AT, AT),))
        member.received(History(()))
        member.ended(1006)
    assert shown == ["", "first", "", ""]
    assert not any("first" in repr(event) for event in member.inbox.take_events())


class AnyLife(RuleBasedStateMachine):
    """Everything that can happen to a member, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.cycle = MemberCycle(rng=random.Random(1), interval_s=lambda: INTERVAL_S)
        self.connected = False
        self.looking = False

    @rule(seconds=st.floats(0, 400))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: not self.connected and not self.looking)
    @rule()
    def moves_on(self) -> None:
        step = self.cycle.step(self.now)
        if isinstance(step, MemberWait):
            assert step.until - self.now <= max(INTERVAL_S, REFUSED_DELAY_S) * 1.2
        self.connected = isinstance(step, Connect)
        self.looking = isinstance(step, Discover)

    @precondition(lambda self: self.looking)
    @rule(found=st.booleans())
    def looked(self, *, found: bool) -> None:
        self.looking = False
        if found:
            self.cycle.found(URL, self.now)
        else:
            self.cycle.not_found(self.now)

    @precondition(lambda self: self.connected)
    @rule()
    def opened(self) -> None:
        self.cycle.opened(self.now)

    @precondition(lambda self: self.connected)
    @rule()
    def joined(self) -> None:
        if self.cycle.status == "connecting":
            self.cycle.joined()

    @precondition(lambda self: self.connected)
    @rule()
    def closing(self) -> None:
        self.cycle.closing(self.now)

    @precondition(lambda self: self.connected)
    @rule(refused=st.booleans())
    def ended(self, *, refused: bool) -> None:
        self.connected = False
        self.cycle.ended(self.now, refused=refused)

    @invariant()
    def counts_one_connection(self) -> None:
        assert (self.cycle.status != "disconnected") == self.connected

    def teardown(self) -> None:
        """Never deaf: from wherever it stands, it is in the room again when there is one."""
        if self.connected:
            self.cycle.ended(self.now)
        if self.looking:
            self.cycle.found(URL, self.now)
        since = self.now
        while self.now - since < 2 * 1.2 * INTERVAL_S:
            step = self.cycle.step(self.now)
            if isinstance(step, Connect):
                self.cycle.opened(self.now)
                self.cycle.joined()
                return
            if isinstance(step, MemberWait):
                assert step.until > self.now
                self.now = step.until
            else:
                self.cycle.found(URL, self.now)
        raise AssertionError("deaf")


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(max_examples=examples(60), stateful_step_count=30)
