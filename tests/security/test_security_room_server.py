"""A room may be anybody's: what its server sends cannot hold up a SOUL, fill its memory, or keep it there."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from adapters.space.client import INBOUND_WINDOW_S, MAX_INBOUND_BYTES, MAX_INBOUND_FRAMES, InboundLimiter
from adapters.space.wire import Unreadable, decode_event
from tests.adapters.space.running_member import Member, at, running_client
from tests.adapters.space.scripted_room import AT, ScriptedRoom, Visit
from tests.cpu_time import cpu_s
from tests.patience import until

LEFT = "The agent space will not have us; trying again in 5 minutes"
_FRAME = 7_900_000


def filled(head: str, unit: str, tail: str) -> str:
    return head + unit * ((_FRAME - len(head) - len(tail)) // len(unit)) + tail


@pytest.mark.perf
@pytest.mark.parametrize(
    "frame",
    [
        filled('{"type":"chat","x":' + "[" * 20, "[],", "0" + "]" * 20 + "}"),
        filled('{"type":"presence","agents":[', '{"name":"a"},', "1]}"),
        filled('{"type":"history_response","entries":[', '{"type":"chat","agentName":"a","timestamp":"x"},', "1]}"),
        filled("[", "1e5,", "1]"),
        filled("[" * 33, '"":', ""),
        filled("", '{"a":', ""),
        filled('"', '\\"', '"'),
        filled('{"type":"chat","name":"e","content":"\\ud800', "\U0001f600", '"}'),
    ],
    ids=["brackets", "members", "entries", "numbers", "strings", "nesting", "escapes", "surrogates"],
)
def test_the_largest_frame_costs_a_moment_however_it_is_filled(frame: str) -> None:
    assert cpu_s(lambda: decode_event(frame)) < 1.5


@pytest.mark.parametrize("words", ["well, yes, ", ",[{,[{,[{", 'a \\ "b",'], ids=["prose", "signs", "quoted"])
def test_the_record_of_a_lively_room_is_still_read_whatever_was_said_there(words: str) -> None:
    entries = [{"timestamp": AT, "agentName": "a", "agentId": "b", "type": "chat", "content": words * 600}] * 1_000
    assert not isinstance(decode_event(json.dumps({"type": "history_response", "entries": entries})), Unreadable)


def test_what_comes_in_is_counted_for_a_minute() -> None:
    inbound = InboundLimiter()
    assert not inbound.count_frame(MAX_INBOUND_BYTES, 0)
    assert inbound.count_frame(1, INBOUND_WINDOW_S - 1)
    assert not inbound.count_frame(MAX_INBOUND_BYTES, INBOUND_WINDOW_S)
    many = InboundLimiter()
    assert [many.count_frame(1, 0) for _ in range(MAX_INBOUND_FRAMES + 1)].index(True) == MAX_INBOUND_FRAMES


@pytest.mark.perf
async def test_a_room_that_talks_without_end_is_left_for_five_minutes_and_holds_up_nothing() -> None:
    async def flood(visit: Visit) -> None:
        await visit.welcome()
        content = "x" * 90_000
        while True:
            await visit.tell(type="chat", name="eve", id="eve-1", content=content, timestamp=AT)

    script = ScriptedRoom(flood)
    async with script.open():
        member = Member(at(script.url))
        async with running_client(member) as ada:
            longest, before = 0.0, time.process_time()
            async with asyncio.timeout(60):
                while not member.told(LEFT):
                    await asyncio.sleep(0)
                    longest, before = max(longest, time.process_time() - before), time.process_time()
            assert not ada.is_active
            assert len(script.visits) == 1
            await until(lambda: not script.live)
    assert longest < 1.5  # of processor time in one turn of the loop
    assert member.told(LEFT) == ["it sends more than a member can read"]
