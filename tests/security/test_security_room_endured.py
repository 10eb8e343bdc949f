"""What the members of one address tell a room stays below what a member endures: both limits together, on one clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from adapters.space.client import InboundLimiter
from tests.adapters.space.running_room import RoomDriver

EVIL = "192.0.2.66"
_LETTERS = "abcdefghjk"
_TARGET = "T" + "t" * 4_000

Frame = dict[str, Any]


def named(number: int) -> str:
    """A name that looks like no other number's."""
    return "m" + "".join(_LETTERS[number // place % 10] for place in (1000, 100, 10, 1))


def typing(_member: int, _turn: int) -> Frame:
    return {"type": "typing"}


def result(member: int, _turn: int) -> Frame:
    """The same result again and again; the first member holds a claim on it, which is told again each time."""
    if member == 0:
        return {"type": "claim", "action": "a", "target": _TARGET}
    more = {"link": "https://x.example/" + "l" * 1000, "error": "e" * 1000}
    return {"type": "action_result", "action": "a", "target": _TARGET, "success": True, **more}


def identity(_member: int, turn: int) -> Frame:
    return {"type": "identity", "summary": {"voice": f"{turn} " + "v" * 16_000}}


def chat(_member: int, turn: int) -> Frame:
    return {"type": "chat", "content": f"{turn} " + "w" * 90_000}


@pytest.mark.parametrize(
    ("members", "says", "every"),
    [(70, result, 1), (127, typing, 1), (20, identity, 1), (127, identity, 4), (127, chat, 12)],
)
@pytest.mark.slow
async def test_no_address_tells_a_member_more_than_it_endures(
    members: int, says: Callable[[int, int], Frame], every: int
) -> None:
    driver, inbound = RoomDriver(), InboundLimiter()
    rowan = driver.join("rowan", resume="")
    crowd = [driver.join(named(number), address=EVIL) for number in range(members)]
    for turn in range(4 * 65):
        for number, number in enumerate(crowd if turn % every == 0 else ()):
            driver.do(driver.room.received(number, json.dumps(says(number, turn))))
        now = driver.clock.monotonic()
        assert not any(inbound.count_frame(len(text), now) for text in driver.texts[rowan]), f"{turn / 4} s"
        driver.texts.clear()
        await driver.after(0.25)
        for number in (rowan, *crowd):
            driver.do(driver.room.ponged(number))
    assert rowan not in driver.ended
    driver.texts.clear()
    driver.send(rowan, {"type": "chat", "content": "I am still here"})
    assert driver.arrived(rowan)[-1]["content"] == "I am still here"


@pytest.mark.slow
async def test_whoever_tells_too_much_is_told_so() -> None:
    driver = RoomDriver()
    driver.join("rowan")
    crowd = [driver.join(named(number), address=EVIL) for number in range(127)]
    for _ in range(40):
        for number in crowd:
            driver.do(driver.room.received(number, json.dumps({"type": "typing"})))
        await driver.after(0.3)
    for number in crowd:
        assert any(frame.get("message", "").startswith("Rate limited") for frame in driver.arrived(number))


async def test_a_full_home_behind_one_address_talks_and_works_unhindered() -> None:
    driver = RoomDriver()
    home = [driver.join(named(number)) for number in range(20)]
    other = driver.join("rowan", address=EVIL)
    driver.forget()
    for turn in range(20):
        for number in home:
            driver.do(driver.room.received(number, json.dumps({"type": "typing"})))
            driver.do(driver.room.received(number, json.dumps({"type": "chat", "content": f"{turn} " + "w" * 1_000})))
            driver.do(driver.room.received(number, json.dumps({"type": "state", "state": "acting"})))
        await driver.after(3)
    assert driver.types(other).count("chat") == 20 * 20
    assert "error" not in {kind for number in home for kind in driver.types(number)}


@pytest.mark.slow
async def test_of_chats_each_address_has_its_budget_under_however_many_names() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    crowd: list[int] = []
    for number in range(160):
        crowd.append(driver.join(named(number), address=EVIL))
        driver.send(crowd[-1], {"type": "chat", "content": f"hi {number}"})
        if len(crowd) >= 127:
            driver.do(driver.room.closed(crowd.pop(0)))
        await driver.after(0.05)
    assert 60 <= driver.types(ada).count("chat") <= 20 + 160 * 0.05 * 20 / 3
    driver.forget()
    driver.send(ada, {"type": "chat", "content": "and I?"})
    assert driver.types(ada) == ["chat"]
