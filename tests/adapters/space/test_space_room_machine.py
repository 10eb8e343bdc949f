"""Whatever guests do, in whatever order: a room keeps its guarantees."""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adapters.space.room import Room
from adapters.space.room_effects import Abort, Close, Deliver, Effect, Ping, RecordEffect
from adapters.space.wire import Unreadable, decode_event
from common.clock import FakeClock
from tests.exploration import examples

NAMES = st.sampled_from(["ada", "Ada", "bob", "host", "", "x" * 101])
IDS = st.sampled_from(["1", "2", "host-1"])
TARGETS = st.sampled_from(["t", "u", ""])
FRAMES = st.one_of(
    st.builds(lambda content: {"type": "chat", "content": content}, st.sampled_from(["hi", " ", "\ud800", "w" * 2000])),
    st.builds(lambda target: {"type": "claim", "action": "a", "target": target}, TARGETS),
    st.builds(
        lambda target, success: {"type": "action_result", "action": "a", "target": target, "success": success},
        TARGETS,
        st.sampled_from([True, False, None]),
    ),
    st.sampled_from(
        [
            {"type": "typing"},
            {"type": "state", "state": "acting"},
            {"type": "identity", "summary": {"voice": 1}},
            {"type": "reflection", "summary": "so"},
            {"type": "workspace_state", "workspace": "w", "totalTasks": 1, "completedTasks": 1},
        ]
    ),
)
GARBAGE = st.one_of(st.binary(max_size=20), st.text(max_size=20), st.just("[" * 5000), st.just('{"type":"join"}'))
ANY = st.integers(0, 5)


class Guests(RuleBasedStateMachine):
    """Connections that behave as they please."""

    @initialize()
    def open_the_room(self) -> None:
        self.clock = FakeClock()
        self.room = Room(self.clock)
        self.count = 0
        self.connected: list[int] = []
        self.finished = False

    @rule()
    def come(self) -> None:
        self.count += 1
        self.connected.append(self.count)
        self.check(self.room.opened(self.count))

    @rule(which=ANY, name=NAMES, agent_id=IDS)
    def join(self, which: int, name: str, agent_id: str) -> None:
        self.say(which, json.dumps({"type": "join", "name": name, "id": agent_id, "version": "1"}))

    @rule(which=ANY, frame=FRAMES)
    def speak(self, which: int, frame: object) -> None:
        self.say(which, json.dumps(frame))

    @rule(which=ANY, raw=GARBAGE)
    def babble(self, which: int, raw: str | bytes) -> None:
        self.say(which, raw)

    @rule(which=ANY)
    def answer_the_ping(self, which: int) -> None:
        if self.connected:
            self.check(self.room.ponged(self.connected[which % len(self.connected)]))

    @rule(which=ANY)
    def go(self, which: int) -> None:
        if self.connected:
            self.check(self.room.closed(self.connected.pop(which % len(self.connected))))

    @rule(seconds=st.sampled_from([0.5, 3.0, 31.0, 61.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.clock._mono += seconds
        self.clock.jump(seconds)
        self.check(self.room.tick())

    @rule(text=st.sampled_from(["hi @ada", " ", "bob"]))
    def host_speaks(self, text: str) -> None:
        self.check(self.room.say(text))

    @rule(end=st.sampled_from(["drain", "finish"]), odds=st.integers(0, 9))
    def close_the_room(self, end: str, odds: int) -> None:
        if odds == 0:
            self.finished = self.finished or end == "finish"
            self.check(self.room.finish() if end == "finish" else self.room.drain())

    def say(self, which: int, raw: str | bytes) -> None:
        if self.connected:
            self.check(self.room.received(self.connected[which % len(self.connected)], raw))

    def check(self, effects: list[Effect]) -> None:
        present = {agent.name for agent in self.room.agents}
        for effect in effects:
            if isinstance(effect, Deliver):
                event = decode_event(effect.text)
                assert not isinstance(event, Unreadable), effect.text
                assert effect.to
                assert set(effect.to) <= set(range(1, self.count + 1))
                assert len(effect.to) == len(set(effect.to))
                frame = json.loads(effect.text)
                assert frame["type"] != "chat" or frame["name"] in present | {"host"}
            elif isinstance(effect, Close | Abort | Ping):
                assert effect.connection in self.connected
            elif isinstance(effect, RecordEffect):
                assert effect.entry.agent_name

    @invariant()
    def nobody_is_present_twice(self) -> None:
        names = [agent.name for agent in self.room.agents]
        assert len(names) == len(set(names))
        assert "host" not in names

    @invariant()
    def every_claim_has_a_present_holder(self) -> None:
        names = {agent.name for agent in self.room.agents}
        claims = self.room.claims
        assert {claim.name for claim in claims} <= names or self.finished
        assert len({(claim.action, claim.target) for claim in claims}) == len(claims)

    @invariant()
    def nobody_is_present_without_a_connection(self) -> None:
        assert len(self.room.agents) <= len(self.connected)


TestGuests = Guests.TestCase
TestGuests.settings = settings(max_examples=examples(60), stateful_step_count=40)
