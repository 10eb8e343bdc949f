"""On a terminal a line is broken between words, elsewhere it stays whole."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from common.clock import SystemClock
from soul.terminal.output import write_lines
from soul.terminal.panel import strip_control
from soul.terminal.plain import PlainConsole

WORDS = "Reply to @bob.test is waiting for your approval, as every public post of the first week is"
COLUMNS = 40


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def as_note(stream: io.StringIO) -> None:
    PlainConsole(SystemClock(), file=stream).line("info", WORDS)


def as_answer(stream: io.StringIO) -> None:
    PlainConsole(SystemClock(), file=stream).say("Rowan", WORDS)


def as_list(stream: io.StringIO) -> None:
    PlainConsole(SystemClock(), file=stream).show([f"  {WORDS}"])


def as_command(stream: io.StringIO) -> None:
    write_lines(f"  {WORDS}", to=stream)


@pytest.mark.parametrize("write", [as_note, as_answer, as_list, as_command])
def test_lines_are_broken_between_words(write: Callable[[io.StringIO], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")
    screen, file = Screen(), io.StringIO()
    write(screen)
    write(file)
    shown = strip_control(screen.getvalue())
    lines = [line for line in shown.splitlines() if line.strip()]
    assert len(lines) > 1
    assert max(map(len, lines)) <= COLUMNS
    assert WORDS in file.getvalue()
    assert WORDS in " ".join(shown.split())


def test_during_the_first_talk_no_line_of_a_room_is_shown_but_for_what_is_wrong() -> None:
    file, due = io.StringIO(), [True]
    console = PlainConsole(SystemClock(), file=file)
    with console.hiding_rooms(lambda: due[0]):
        console.line("social", "[space] host: Good morning")
        console.line("warn", "[space] The room is gone")
        console.line("done", "On Bluesky as @rowan.test")
        due[0] = False
        console.line("social", "[space] host: And now?")
    told = file.getvalue()
    assert "Good morning" not in told
    assert [words in told for words in ("room is gone", "@rowan.test", "And now?")] == [True] * 3
