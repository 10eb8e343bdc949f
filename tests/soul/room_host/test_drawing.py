"""Drawing costs what the words are long, and never holds up the room."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from adapters.space.types import Said
from common.clock import FakeClock
from soul.room_host.host import MOST_UNDRAWN, HostConsole
from soul.room_host.panel import DRAWN_CHARS, EventRow, plain_lines, said
from soul.room_host.roster import Roster
from soul.room_host.screen import OnLine
from tests.patience import until

AT = "2026-01-05T12:00:00.000Z"
NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


class SlowScreen:
    """Counts what it is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.is_behind = False

    def show(self, row: EventRow) -> None:
        self.shown.append(row.text)

    def print(self, lines: list[str]) -> None:
        self.shown += lines

    def refresh(self) -> None:
        """Nothing stands below."""

    async def run(self, on_line: OnLine, commands: Sequence[str] = ()) -> None:
        """Nobody types."""


def test_of_a_long_chat_the_beginning_is_drawn_and_how_much_more_was_said() -> None:
    text = plain_lines(said("eve", "w" * 5_000, NOON))[0]
    assert text.endswith("w … more was said: 1,000 characters")
    assert text.count("w") == DRAWN_CHARS + 1
    assert plain_lines(said("eve", "w" * DRAWN_CHARS, NOON))[0].endswith("w")


async def test_nothing_is_drawn_in_the_turn_in_which_it_happened_and_then_one_thing_a_turn() -> None:
    screen = SlowScreen()
    console = HostConsole(screen, Roster(), FakeClock())
    for number in range(3):
        console.happened(Said("eve", "e", f"word {number}", AT))
    console.note("info", "a note")
    assert screen.shown == []
    await asyncio.sleep(0)
    assert screen.shown == ["word 0"]
    await asyncio.sleep(0)
    assert screen.shown == ["word 0", "word 1"]
    console.draw_all()
    assert screen.shown == ["word 0", "word 1", "word 2", "a note"]


async def test_what_comes_faster_than_it_can_be_drawn_is_counted_not_piled_up() -> None:
    screen = SlowScreen()
    console = HostConsole(screen, Roster(), FakeClock())
    for number in range(MOST_UNDRAWN + 7):
        console.happened(Said("eve", "e", f"word {number}", AT))
    console.draw_all()
    assert screen.shown[0].startswith("7 lines came too fast to be shown")
    assert len(screen.shown) == MOST_UNDRAWN + 1
    assert screen.shown[-1] == f"word {MOST_UNDRAWN + 6}"


async def test_nothing_is_drawn_while_the_screen_is_behind_and_what_is_left_out_is_counted_when_it_is_not() -> None:
    screen = SlowScreen()
    screen.is_behind = True
    console = HostConsole(screen, Roster(), FakeClock())
    for number in range(MOST_UNDRAWN + 7):
        console.happened(Said("eve", "e", f"word {number}", AT))
        await asyncio.sleep(0)
    assert screen.shown == []
    screen.is_behind = False
    await until(lambda: len(screen.shown) > MOST_UNDRAWN)
    assert screen.shown[0].startswith("7 lines came too fast to be shown")
    assert screen.shown[-1] == f"word {MOST_UNDRAWN + 6}"
