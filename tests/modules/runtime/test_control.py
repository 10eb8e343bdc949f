"""The signs that stop a SOUL: who may give them, what they mean, and that doubt counts as a stop."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock, ScaledClock
from modules.runtime.control import STARTS, WINDOW_S, Control, Standing, forget_starts, note_start
from modules.services.outbox.bodies import OpaqueBody
from modules.services.outbox.gates.pause import PauseGate
from modules.services.outbox.types import Intent

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
INTENT = Intent(
    "id",
    "post",
    "",
    OpaqueBody(),
    "",
    "",
    "rkey",
    None,
    "2026-01-05T12:00:00.000Z",
    "2026-01-06T12:00:00.000Z",
    "pending",
)


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / ".memory"


@pytest.fixture
def control(memory: Path) -> Control:
    memory.mkdir()
    return Control(memory)


def test_a_pause_holds_with_its_reason_until_it_is_taken_back(control: Control) -> None:
    control.pause(" a  long\nnight ")
    assert control.standing() == Standing(paused=True, reasons=("paused by the owner: a long night",))
    assert control.resume() == Standing()


def test_a_second_pause_without_a_reason_keeps_the_first_one_and_a_new_reason_replaces_it(control: Control) -> None:
    assert control.pause_reason() is None
    control.pause("holiday")
    control.pause(" ")
    assert control.pause_reason() == "holiday"
    control.pause("still away")
    assert control.standing().reasons == ("paused by the owner: still away",)
    control.resume()
    control.pause()
    assert control.pause_reason() == ""


def test_touching_the_file_is_enough(control: Control, memory: Path) -> None:
    (memory / "PAUSE").touch()
    assert control.standing() == Standing(paused=True, reasons=("paused by the owner",))
    (memory / "PAUSE").unlink()
    assert control.standing().may_act


def test_a_sign_that_cannot_be_read_still_stops(control: Control, memory: Path) -> None:
    (memory / "PAUSE").mkdir()
    assert control.standing().paused
    assert control.write_block_reason() == "paused by the owner"


def test_a_reason_of_any_bytes_and_any_length_becomes_one_short_line(control: Control, memory: Path) -> None:
    (memory / "PAUSE").write_bytes(b"\xff\xfe \n" + b"x" * 10_000)
    (reason,) = control.standing().reasons
    assert "\n" not in reason
    assert len(reason) < 400
    control.heed_record("half a pair \ud83d")
    assert control.standing().paused


def test_before_the_first_life_a_pause_can_be_given_already(memory: Path) -> None:
    Control(memory).pause()
    assert Control(memory).standing().paused
    assert memory.stat().st_mode & 0o077 == 0


def test_resuming_leaves_the_owners_record_in_force_and_says_so(control: Control) -> None:
    control.pause("one")
    control.heed_record("asleep")
    control.enter_safe_mode("3 starts within 20 s")
    assert control.standing().safe_mode
    left = control.resume()
    assert left == Standing(paused=True, reasons=("paused by the owner's record on Bluesky: asleep",))
    control.heed_record(None)
    assert control.standing().may_act


def test_the_gate_keeps_everything_in_while_any_sign_stands(control: Control) -> None:
    with sqlite3.connect(":memory:") as connection:
        assert PauseGate(control)(connection, INTENT, NOW) is None
        control.enter_safe_mode("3 starts within 20 s")
        wait = PauseGate(control)(connection, INTENT, NOW)
    connection.close()
    assert wait is not None
    assert (wait.reason, wait.seconds) == ("safe mode: 3 starts within 20 s", 5)


def starts(memory: Path, control: Control, *seconds: float, speed: float = 1.0) -> list[bool]:
    clocks = (FakeClock(NOW + timedelta(seconds=second)) for second in seconds)
    return [note_start(memory, control, ScaledClock(clock, speed)).safe_mode for clock in clocks]


@pytest.mark.parametrize(
    ("seconds", "speed", "last"),
    [
        ((0, 1), 1, False),
        ((0, 1, 2), 1, True),
        ((0, 30, 59.9), 1, True),
        ((0, 30, 60), 1, False),
        ((0, 1, 2), 1000, False),
        ((0, 0.01, 0.02), 1000, True),
    ],
)
def test_the_third_start_within_a_minute_only_listens(
    control: Control, memory: Path, seconds: tuple[float, ...], speed: float, *, last: bool
) -> None:
    assert starts(memory, control, *seconds, speed=speed)[-1] is last
    assert control.standing().safe_mode is last
    assert (STARTS, WINDOW_S) == (3, 60)


def test_safe_mode_is_told_with_what_brought_it_and_ends_with_the_next_calm_start(
    control: Control, memory: Path
) -> None:
    starts(memory, control, 0, 10, 25)
    assert control.standing().reasons == ("safe mode: 3 starts within 25 s",)
    assert starts(memory, control, 600) == [False]
    assert control.standing().may_act


def test_after_the_owner_resumed_the_next_start_is_the_first_again(control: Control, memory: Path) -> None:
    starts(memory, control, 0, 1, 2)
    control.resume()
    forget_starts(memory)
    assert starts(memory, control, 3, 4) == [False, False]
    assert starts(memory, control, 5) == [True]


@pytest.mark.parametrize("content", ["{", '{"starts": 3}', '{"starts": ["soon", null]}'])
def test_whatever_lies_in_the_file_a_start_is_remembered(control: Control, memory: Path, content: str) -> None:
    (memory / "starts.json").write_text(content)
    assert starts(memory, control, 0, 1, 2) == [False, False, True]
