"""Tests of a member's life cycle: how long it waits for what, and that it always returns, with only one connection.

Tests of what a member knows of its room: who is there, what they told, who works on what, and what came in. The time
of each event is that of our own clock, whatever time the room's machine has.
"""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from adapters.space.member import EVENTS_KEPT, MESSAGES_KEPT, Inbox, Member, RoomTime
from adapters.space.member_cycle import (
    DRAIN_WITHIN_S,
    FIRST_LOOK_S,
    JOIN_WITHIN_S,
    REFUSED_DELAY_S,
    RETRY_DELAYS_S,
    Connect,
    Discover,
    MemberCycle,
    MemberName,
    MemberWait,
)
from adapters.space.member_view import CLAIM_TTL_S, SOMEBODY, TYPING_S, MemberClaims, RoomView
from adapters.space.types import (
    ActionDone,
    Claimed,
    History,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    LogEntry,
    Presence,
    PresenceList,
    Reflected,
    Said,
    SpaceEvent,
    Typing,
    WorkspaceProgress,
)
from common.clock import FakeClock, iso
from tests.exploration import examples

URL = "ws://10.0.0.7:7777"
INTERVAL_S = 300.0


class Middle(random.Random):
    """A source of randomness whose ranges give their middle and whose `random` gives 0."""

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


def test_a_room_that_will_not_have_us_is_left_in_peace_for_five_minutes_and_comes_last_for_an_hour() -> None:
    cycle = _joined()
    cycle.ended(0, refused=True)
    assert _wait(cycle, 0) == REFUSED_DELAY_S
    assert cycle.step(REFUSED_DELAY_S) == Discover()
    assert [cycle.refused(now) for now in (3599, 3600)] == [[URL], []]


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
        """Check that the member, whatever its state, is in the room again once there is one."""
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


DAY_S = 86_400.0


def _present(name: str, agent_id: str = "", identity: IdentitySummary | None = None) -> Presence:
    return Presence(name, agent_id or f"{name}-1", "1.0.0", AT, AT, identity)


def _view(*events: SpaceEvent, clock: FakeClock | None = None) -> RoomView:
    view = RoomView(MemberName("ada", random.Random(1)), clock or FakeClock())
    for event in (PresenceList((_present("ada"), _present("bob"), _present("cy"))), *events):
        view.apply(event)
    return view


def test_peers_are_all_but_ourselves_in_the_order_of_the_room() -> None:
    view = _view(Joined("dee", "dee-1", "2.0.0", ("social",)), Left("bob", "bob-1", AT))
    assert list(view.peers()) == ["cy", "dee"]
    assert view.peers()["dee"].capabilities == ("social",)


async def test_typing_ends_by_speaking_by_leaving_or_after_ten_seconds() -> None:
    clock = FakeClock()
    typing = [Typing(name, f"{name}-1", AT) for name in ("bob", "cy", "ada")]
    view = _view(*typing, clock=clock)
    await clock.advance(TYPING_S - 0.1)
    assert view.typing() == ["bob", "cy"]
    view.apply(Said("bob", "bob-1", "hello", AT))
    assert view.typing() == ["cy"]
    await clock.advance(0.1)
    assert view.typing() == []


def test_what_peers_tell_of_themselves_is_kept_until_they_leave() -> None:
    who = IdentitySummary(voice="calm")
    told: list[SpaceEvent] = [
        Identified("bob", "bob-1", who, AT),
        Reflected("bob", "bob-1", "I rush", AT),
        Claimed("bob", "bob-1", "create_issue", "o/r", AT),
        Identified("ada", "ada-1", IdentitySummary(voice="mine"), AT),
    ]
    view = _view(*told)
    assert view.identities() == {"bob": who}
    assert view.reflections()["bob"].summary == "I rush"
    assert view.claims.holder("create_issue", "o/r") == "bob"
    view.apply(Left("bob", "bob-1", AT))
    assert not view.identities()
    assert not view.reflections()
    assert view.claims.holder("create_issue", "o/r") is None


def test_the_leave_of_an_earlier_life_does_not_take_away_the_present_one() -> None:
    view = _view(Joined("bob", "bob-2", "1.0.0"), Left("bob", "bob-1", AT))
    assert "bob" in view.peers()


def test_the_list_of_who_is_present_brings_identities_and_forgets_whom_it_lacks() -> None:
    view = _view(Identified("cy", "cy-1", IdentitySummary(voice="quick"), AT))
    view.apply(PresenceList((_present("bob", identity=IdentitySummary(voice="slow")),)))
    assert view.identities() == {"bob": IdentitySummary(voice="slow")}
    assert list(view.peers()) == ["bob"]


def test_reflections_in_the_record_count_for_those_who_are_present() -> None:
    entries = tuple(LogEntry(AT, name, f"{name}-1", "reflection", f"of {name}") for name in ("bob", "gone", "ada"))
    view = _view(History(entries))
    assert {name: told.summary for name, told in view.reflections().items()} == {"bob": "of bob"}


async def test_how_far_a_plan_has_come_is_known_for_a_day_by_its_latest_reporter() -> None:
    first = WorkspaceProgress("bob", "bob-1", "site", 1, 5, 1, 0, 1, AT)
    then = WorkspaceProgress("cy", "cy-1", "site", 1, 5, 3, 0, 0, AT)
    clock = FakeClock()
    view = _view(first, then, WorkspaceProgress("ada", "ada-1", "own", 1, 1, 1, 0, 0, AT), clock=clock)
    await clock.advance(DAY_S - 1)
    assert view.workspace_states() == {"site": then}
    await clock.advance(1)
    assert view.workspace_states() == {}


def _claims(clock: FakeClock | None = None) -> MemberClaims:
    return MemberClaims(MemberName("ada", random.Random(1)), clock or FakeClock())


async def test_a_peers_claim_holds_for_a_minute_from_when_it_was_last_told() -> None:
    clock = FakeClock()
    claims = _claims(clock)
    claims.claimed(Claimed("bob", "bob-1", "create_issue", "o/r", AT))
    await clock.advance(CLAIM_TTL_S - 1)
    assert claims.holder("create_issue", "o/r") == "bob"
    claims.claimed(Claimed("bob", "bob-1", "create_issue", "o/r", AT))
    await clock.advance(CLAIM_TTL_S - 1)
    assert [claim.name for claim in claims.live()] == ["bob"]
    await clock.advance(1)
    assert claims.holder("create_issue", "o/r") is None
    assert claims.live() == ()


@pytest.mark.parametrize("name", ["bob", "ada"])
def test_a_claim_ends_with_its_result_whoever_reports_it(name: str) -> None:
    claims = _claims()
    claims.claimed(Claimed("bob", "bob-1", "create_issue", "o/r", AT))
    claims.done(ActionDone(name, f"{name}-1", "create_issue", "o/r", success=True, timestamp=AT))
    assert claims.holder("create_issue", "o/r") is None


def test_our_own_claim_is_nobody_elses() -> None:
    claims = _claims()
    claims.asked("create_issue", "o/r")
    claims.claimed(Claimed("ada", "ada-1", "create_issue", "o/r", AT))
    assert claims.holder("create_issue", "o/r") is None
    assert claims.conflict("Claim conflict: bob was first on o/r", ["bob"], AT) is None
    assert claims.lost == set()


def test_a_conflict_is_matched_to_the_claim_that_its_words_name_and_shows_who_was_first() -> None:
    claims = _claims()
    claims.asked("create_issue", "o/r")
    claims.asked("create_issue", "o/other")
    message = 'Claim conflict: bob already claimed "o/other" before ada; bob was first'
    assert claims.conflict(message, ["bob", "bo"], AT) == ("create_issue", "o/other")
    assert claims.lost == {("create_issue", "o/other")}
    assert claims.holder("create_issue", "o/other") == "bob"
    assert claims.holder("create_issue", "o/r") is None


def test_a_conflict_without_names_concerns_the_oldest_claim_that_waits() -> None:
    claims = _claims()
    claims.asked("create_issue", "o/r")
    claims.asked("create_plan", "o/r2")
    assert claims.conflict("Claim conflict", [], AT) == ("create_issue", "o/r")
    assert claims.holder("create_issue", "o/r") == SOMEBODY


def test_claiming_again_asks_the_room_again() -> None:
    claims = _claims()
    claims.asked("create_issue", "o/r")
    claims.conflict("Claim conflict", [], AT)
    claims.asked("create_issue", "o/r")
    assert claims.lost == set()


async def test_a_conflict_long_after_our_claims_concerns_none_of_them() -> None:
    clock = FakeClock()
    claims = _claims(clock)
    claims.asked("create_issue", "o/r")
    await clock.advance(60)
    assert claims.conflict("Claim conflict on o/r", [], AT) is None


def _chat(name: str, content: str, at: str = AT) -> LogEntry:
    return LogEntry(at, name, f"{name}-1", "chat", content)


def test_the_record_is_told_once_with_our_own_words_and_without_what_was_heard() -> None:
    inbox = Inbox(MemberName("ada", random.Random(1)))
    inbox.note(Said("bob", "bob-1", "live", AT))
    assert [said.content for said in inbox.take_messages()] == ["live"]
    record = History(
        (_chat("bob", "old"), LogEntry(AT, "bob", "bob-1", "join", ""), _chat("bob", "live"), _chat("ada", "mine"))
    )
    inbox.replay(record)
    inbox.replay(record)
    assert inbox.take_events()[1:] == [record]
    told = inbox.take_messages()
    assert [(said.name, said.content, said.replayed) for said in told] == [("bob", "old", True), ("ada", "mine", True)]
    assert told[0].id == "bob-1"


def test_own_echoes_are_events_and_no_messages() -> None:
    inbox = Inbox(MemberName("ada", random.Random(1)))
    inbox.note(Said("ada", "ada-1", "hello", AT))
    assert inbox.take_messages() == []
    assert inbox.take_events() == [Said("ada", "ada-1", "hello", AT)]
    assert inbox.take_events() == []


def test_a_room_is_fresh_when_its_record_holds_nothing_that_we_knew() -> None:
    inbox = Inbox(MemberName("ada", random.Random(1)))
    assert inbox.fresh_room
    inbox.replay(History((_chat("bob", "old"),)))
    inbox.replay(History((_chat("bob", "old"), _chat("bob", "new"))))
    assert not inbox.fresh_room
    inbox.replay(History((_chat("zoe", "elsewhere"),)))
    assert inbox.fresh_room


def test_who_does_not_listen_for_long_misses_the_oldest() -> None:
    inbox = Inbox(MemberName("ada", random.Random(1)))
    for number in range(EVENTS_KEPT + 10):
        inbox.note(Said("bob", "bob-1", str(number), AT))
    messages, events = inbox.take_messages(), inbox.take_events()
    assert (len(messages), messages[-1].content) == (MESSAGES_KEPT, str(EVENTS_KEPT + 9))
    assert len(events) == EVENTS_KEPT


def test_a_room_that_invents_thousands_of_members_costs_a_bounded_memory() -> None:
    view = _view()
    for number in range(3_000):
        name = f"agent{number}"
        view.apply(Joined(name, name, "1"))
        view.apply(Identified(name, name, IdentitySummary(), AT))
        view.apply(Claimed(name, name, "do", name, AT))
        view.apply(WorkspaceProgress(name, name, name, 1, 1, 1, 0, 0, AT))
    assert len(view.peers()) <= 1_000
    assert len(view.identities()) <= 1_000
    assert len(view.claims.live()) <= 1_000
    assert len(view.workspace_states()) <= 1_000


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
