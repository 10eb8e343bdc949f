"""The member as a core without I/O: whatever a room does and in whatever order, what it guarantees holds."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from adapters.space.member import Member
from adapters.space.member_cycle import Connect, Discover
from adapters.space.outgoing import ECHO_WAIT_S, LIFETIME_S, SPACING_S
from adapters.space.types import (
    ActionDone,
    Claimed,
    History,
    Joined,
    Left,
    LogEntry,
    Presence,
    PresenceList,
    Refused,
    Said,
    ShuttingDown,
    SpaceEvent,
    Typing,
)
from common.clock import FakeClock
from tests.exploration import examples

AT = "2026-01-05T12:00:00.000Z"
ME = "ada"

_names = st.sampled_from([ME, "bob", "cy", "host"])
_words = st.sampled_from(["one", "two", "three"])
_events: st.SearchStrategy[SpaceEvent] = st.one_of(
    st.builds(lambda name: Joined(name, f"{name}-1", "1"), _names),
    st.builds(lambda name: Left(name, f"{name}-1", AT), _names),
    st.builds(lambda name, words: Said(name, f"{name}-1", words, AT), _names, _words),
    st.builds(lambda name: Typing(name, f"{name}-1", AT), _names),
    st.builds(lambda name, words: Claimed(name, f"{name}-1", "create_issue", words, AT), _names, _words),
    st.builds(lambda name, words: ActionDone(name, f"{name}-1", "create_issue", words, True, AT), _names, _words),  # noqa: FBT003 - as on the wire
    st.builds(lambda names: PresenceList(tuple(Presence(name, name, "1", AT, AT) for name in names)), st.lists(_names)),
    st.builds(
        lambda said: History(tuple(LogEntry(AT, name, f"{name}-1", "chat", words) for name, words in said)),
        st.lists(st.tuples(_names, _words), max_size=5),
    ),
    st.sampled_from(
        [Refused(f"{prefix}: no") for prefix in ("Rate limited", "Claim conflict", "Invalid chat", "Must join", "")]
    ),
    st.just(ShuttingDown("Server shutting down", AT)),
)


class AnyRoom(RuleBasedStateMachine):
    """A room that says anything at any time to a member that talks, claims and waits."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.able: tuple[str, ...] | None = None
        self.connected = False
        self.opened = False
        self.looking = False
        self.queued: list[str] = []
        self.ended: list[str] = []
        self.chat_at: list[float] = []
        self.member = Member(
            name=ME,
            agent_id="ada-1",
            version="1",
            capabilities=lambda: self.able,
            clock=self.clock,
            rng=random.Random(3),
            interval_s=lambda: 300.0,
        )

    def _pass(self, seconds: float) -> None:
        self.clock._mono += seconds
        self.clock._wall += seconds

    @rule(seconds=st.sampled_from([0.05, 1, 3.1, 5, 20, 61, 400]))
    def time_passes(self, seconds: float) -> None:
        self._pass(seconds)

    @precondition(lambda self: not self.connected and not self.looking)
    @rule()
    def steps(self) -> None:
        step = self.member.step()
        self.connected, self.looking = isinstance(step, Connect), isinstance(step, Discover)

    @precondition(lambda self: self.looking)
    @rule(found=st.booleans())
    def looked(self, *, found: bool) -> None:
        self.looking = False
        if found:
            self.member.found("ws://10.0.0.7:7777")
        else:
            self.member.not_found("nobody")

    @precondition(lambda self: self.connected and not self.opened)
    @rule()
    def opens(self) -> None:
        self.opened = True
        assert self.member.opened().type == "join"

    @precondition(lambda self: self.opened)
    @rule(event=_events)
    def receives(self, event: SpaceEvent) -> None:
        self.member.received(event)

    @precondition(lambda self: self.connected)
    @rule(code=st.sampled_from([None, 1001, 1006, 4002, 4003]))
    def loses(self, code: int | None) -> None:
        self.connected = self.opened = False
        self.member.ended(code, "gone")

    @rule(able=st.sampled_from([None, (), ("social",)]))
    def learns(self, able: tuple[str, ...] | None) -> None:
        self.able = able

    @precondition(lambda self: self.opened)
    @rule()
    def comes_in_anew(self) -> None:
        if not self.member.renew():
            return
        assert set(self.queued) <= set(self.ended)
        assert self.member.overdue()
        self.member.ended(1000, "")
        assert isinstance(self.member.step(), Connect)
        self.opened = True
        assert self.member.opened().capabilities == self.able
        assert not self.member.renew()

    @precondition(lambda self: self.member.is_active and len(self.queued) < 40)
    @rule(words=_words)
    def wants_to_speak(self, words: str) -> None:
        self.queued.append(self.member.outgoing.add(words, self.clock.monotonic()).id)

    @precondition(lambda self: self.opened)
    @rule()
    def speaks(self) -> None:
        said = self.member.due()
        assert self.member.is_active or said is None
        self.chat_at += [self.clock.monotonic()] * (said is not None)

    @invariant()
    def settles(self) -> None:
        self.ended += [delivery.chat.id for delivery in self.member.settle()]
        assert len(set(self.ended)) == len(self.ended)

    @invariant()
    def speaks_slowly(self) -> None:
        # NOTE(self): within the float's last digits, for a wall of additions.
        gaps = (later - earlier for earlier, later in zip(self.chat_at, self.chat_at[1:], strict=False))
        assert all(gap >= SPACING_S - 1e-6 for gap in gaps)

    @invariant()
    def is_no_peer_of_itself(self) -> None:
        assert ME not in self.member.view.peers()
        assert self.member.is_active <= self.opened

    def teardown(self) -> None:
        """Every word ends somewhere, and the member finds back."""
        self._pass(LIFETIME_S + ECHO_WAIT_S)
        self.settles()
        self.member.due()
        self._pass(ECHO_WAIT_S)
        self.settles()
        assert sorted(self.ended) == sorted(self.queued)
        if self.connected:
            self.member.ended(None, "gone")
        self._pass(2_000)
        if self.looking or isinstance(self.member.step(), Discover):
            self.member.found("ws://10.0.0.7:7777")
            assert isinstance(self.member.step(), Connect)
        self.member.opened()
        self.member.received(History(()))
        assert self.member.is_active


TestAnyRoom = AnyRoom.TestCase
TestAnyRoom.settings = settings(max_examples=examples(60), stateful_step_count=40)


async def test_a_member_comes_back_with_the_token_of_that_room_and_shows_it_to_no_other() -> None:
    clock = FakeClock()
    member = Member(
        name=ME,
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
        told = member.received(PresenceList((Presence(ME, "ada-1", "1", AT, AT),), resume=token))
        assert told == PresenceList((Presence(ME, "ada-1", "1", AT, AT),))
        member.received(History(()))
        member.ended(1006)
    assert shown == ["", "first", "", ""]
    assert not any("first" in repr(event) for event in member.inbox.take_events())
