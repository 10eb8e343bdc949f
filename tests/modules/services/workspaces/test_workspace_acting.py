"""Of several SOULs one does what is to be done once, and the others do it where that one does not."""

from __future__ import annotations

from common.clock import Clock, FakeClock, ScaledClock
from modules.services.workspaces.acting import OTHERS_AFTER, ActingTurns, is_acting_soul

SOULS = ("rowan", "wren", "kit", "ash")


def peers_of(login: str) -> list[str]:
    return [one for one in SOULS if one != login]


def turns_of(login: str, clock: Clock) -> ActingTurns:
    return ActingTurns(login, lambda _: peers_of(login), clock)


def test_each_piece_of_work_is_one_souls_and_the_work_is_shared() -> None:
    keys = [f"acme/site#{number}:stale" for number in range(200)]
    acting = [[one for one in SOULS if is_acting_soul(one, peers_of(one), key)] for key in keys]
    assert all(len(one) == 1 for one in acting)
    assert {login for one in acting for login in one} == set(SOULS)


async def test_the_others_act_after_ten_minutes_of_looking_at_the_same() -> None:
    clock, speed = FakeClock(), 10.0
    turns = {one: turns_of(one, ScaledClock(clock, speed)) for one in SOULS}
    key = "acme/site#4:superseded"
    first = [one for one, turn in turns.items() if turn.ask_for_turn(key)]
    assert len(first) == 1
    wait_s = OTHERS_AFTER.total_seconds() / speed
    await clock.advance(wait_s / 2)
    assert [one for one, turn in turns.items() if turn.ask_for_turn(key)] == first
    await clock.advance(wait_s / 2)
    assert [one for one, turn in turns.items() if turn.ask_for_turn(key)] == list(SOULS)
    assert [one for one, turn in turns.items() if turn.ask_for_turn("another")] != list(SOULS)


async def test_the_others_go_on_acting_while_it_is_found_and_wait_again_where_it_was_not() -> None:
    clock = FakeClock()
    key = next(key for key in map(str, range(100)) if is_acting_soul("kit", peers_of("kit"), key))
    turns = turns_of("wren", clock)
    said = []
    for _ in range(8):
        said.append(turns.ask_for_turn(key))
        await clock.advance(OTHERS_AFTER.total_seconds())
    assert said == [False] + 7 * [True]
    await clock.advance(3 * OTHERS_AFTER.total_seconds())
    assert not turns.ask_for_turn(key)


async def test_only_peers_that_were_seen_within_a_day_count() -> None:
    clock = FakeClock()
    seen_at = clock.now()
    turns = ActingTurns("wren", lambda since: ["kit"] if seen_at >= since else [], clock)
    key = next(key for key in map(str, range(100)) if is_acting_soul("kit", ["wren"], key))
    assert not turns.ask_for_turn(key)
    await clock.advance(24 * 3600 + 1)
    assert turns.ask_for_turn(key)


def test_whose_work_it_is_does_it_alone_and_one_of_the_others_for_who_is_gone() -> None:
    clock = FakeClock()
    for number in range(20):
        key = f"acme/site#{number}/task-1"
        acting = {of: [one for one in SOULS if turns_of(one, clock).ask_for_turn(key, of=of)] for of in ("Wren", "eve")}
        assert acting["Wren"] == ["wren"]
        assert len(acting["eve"]) == 1
