"""What the members of one address tell a room stays below what a member endures: both limits together, on one clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from adapters.space.intake import Intake
from tests.adapters.space.room_house import Hall

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
async def test_no_address_tells_a_member_more_than_it_endures(
    members: int, says: Callable[[int, int], Frame], every: int
) -> None:
    hall, intake = Hall(), Intake()
    rowan = hall.join("rowan", resume="")
    crowd = [hall.join(named(number), address=EVIL) for number in range(members)]
    for turn in range(4 * 65):
        for number, guest in enumerate(crowd if turn % every == 0 else ()):
            hall.do(hall.room.received(guest, json.dumps(says(number, turn))))
        now = hall.clock.monotonic()
        assert not any(intake.is_too_much(len(text), now) for text in hall.texts[rowan]), f"{turn / 4} s"
        hall.texts.clear()
        await hall.after(0.25)
        for guest in (rowan, *crowd):
            hall.do(hall.room.ponged(guest))
    assert rowan not in hall.ended
    hall.texts.clear()
    hall.send(rowan, {"type": "chat", "content": "I am still here"})
    assert hall.heard(rowan)[-1]["content"] == "I am still here"


async def test_whoever_tells_too_much_is_told_so() -> None:
    hall = Hall()
    hall.join("rowan")
    crowd = [hall.join(named(number), address=EVIL) for number in range(127)]
    for _ in range(40):
        for guest in crowd:
            hall.do(hall.room.received(guest, json.dumps({"type": "typing"})))
        await hall.after(0.3)
    for guest in crowd:
        assert any(frame.get("message", "").startswith("Rate limited") for frame in hall.heard(guest))


async def test_a_full_home_behind_one_address_talks_and_works_unhindered() -> None:
    hall = Hall()
    home = [hall.join(named(number)) for number in range(20)]
    other = hall.join("rowan", address=EVIL)
    hall.forget()
    for turn in range(20):
        for guest in home:
            hall.do(hall.room.received(guest, json.dumps({"type": "typing"})))
            hall.do(hall.room.received(guest, json.dumps({"type": "chat", "content": f"{turn} " + "w" * 1_000})))
            hall.do(hall.room.received(guest, json.dumps({"type": "state", "state": "acting"})))
        await hall.after(3)
    assert hall.types(other).count("chat") == 20 * 20
    assert "error" not in {kind for guest in home for kind in hall.types(guest)}


async def test_of_chats_each_address_has_its_budget_under_however_many_names() -> None:
    hall = Hall()
    ada = hall.join("ada")
    crowd: list[int] = []
    for number in range(160):
        crowd.append(hall.join(named(number), address=EVIL))
        hall.send(crowd[-1], {"type": "chat", "content": f"hi {number}"})
        if len(crowd) >= 127:
            hall.do(hall.room.closed(crowd.pop(0)))
        await hall.after(0.05)
    assert 60 <= hall.types(ada).count("chat") <= 20 + 160 * 0.05 * 20 / 3
    hall.forget()
    hall.send(ada, {"type": "chat", "content": "and I?"})
    assert hall.types(ada) == ["chat"]
