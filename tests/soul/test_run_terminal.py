"""Proves that a life in a terminal has a line for its owner that no other output breaks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import takewhile

import pytest

from tests.running_town import RunningTown
from tests.soul.room_host.pseudo_terminal import Terminal
from town.model.types import ChatRequest, Completion

pytestmark = pytest.mark.slow

_COLUMNS = 200
_PANEL = ("Mentions ", "Messages ", "Bluesky ", "Tokens ")
_SPEED = "10"


async def shown(terminal: Terminal, what: Callable[[list[str]], bool]) -> list[str]:
    """Wait until `what` is true of the screen, and return its lines."""
    await terminal.until_screen(lambda: what(terminal.screen))
    return terminal.screen


def split(screen: list[str]) -> tuple[list[str], list[str]]:
    """Return the screen down to the owner's line, and the lines of the panel below it."""
    below = list(takewhile(lambda each: each.startswith(_PANEL), reversed(screen)))
    return screen[: len(screen) - len(below)], below[::-1]


def line(words: str) -> Callable[[list[str]], bool]:
    """Return a check that the owner's line, the last above the panel, is exactly `words`."""
    return lambda screen: split(screen)[0][-1:] == [f"> {words}".rstrip()]


def above(words: str) -> Callable[[list[str]], bool]:
    """Return a check that `words` stand somewhere above the owner's line."""
    return lambda screen: any(words in each for each in split(screen)[0][:-1])


def sign(words: str) -> Callable[[list[str]], bool]:
    """Return a check that `words` stand directly above the owner's line."""
    return lambda screen: any(words in each for each in split(screen)[0][-2:-1])


def panel(words: str) -> Callable[[list[str]], bool]:
    """Return a check that the panel below the owner's line holds `words`."""
    return lambda screen: words in "\n".join(split(screen)[1])


@asynccontextmanager
async def lived(
    running_town: RunningTown, *, columns: int = _COLUMNS, rows: int = 40, **environment: str
) -> AsyncIterator[Terminal]:
    home = running_town.make_home("rowan", SOUL_SPEED=_SPEED)
    terminal = Terminal(columns, rows)
    await terminal.start("run", "--home", str(home.root), environment=environment)
    try:
        await shown(terminal, line(""))
        yield terminal
    finally:
        await terminal.close()


async def test_what_happens_while_the_owner_types_stands_above_the_line_and_leaves_it_whole(
    running_town: RunningTown,
) -> None:
    async with lived(running_town) as terminal:
        terminal.type("say one thing about")
        await shown(terminal, line("say one thing about"))
        terminal.type(" roofs\r")
        screen = await shown(terminal, lambda screen: above("rowan: ")(screen) and line("")(screen))
        await shown(terminal, panel("Tokens 1,9"))
        assert "> say one thing about roofs" in screen
        assert any("say one thing about roofs" in str(request) for request in running_town.mind.asked)
        terminal.type("half a tho")
        await shown(terminal, line("half a tho"))
        happened = len(screen)
        terminal.type("\x15/pause\r")  # Ctrl-U clears the line
        terminal.type("half a tho")
        screen = await shown(terminal, lambda screen: above("aused")(screen) and line("half a tho")(screen))
        assert len(screen) > happened
        assert not [each for each in split(screen)[0][:-1] if each.endswith("half a tho")]
        terminal.type("\x15\x1b[A\x1b[A")
        await shown(terminal, line("say one thing about roofs"))
        terminal.type("\x03")
        assert await terminal.end() == 0
        assert terminal.is_as_before
        assert "WARNING" not in terminal.text


async def test_while_it_thinks_a_sign_says_so_and_slash_commands_work_also_behind_one_that_waits(
    running_town: RunningTown,
) -> None:
    go_on = asyncio.Event()

    async def ponder(request: ChatRequest) -> None:
        if "say two things" in str(request):
            await go_on.wait()

    running_town.mind.ponder, running_town.mind.answer = ponder, lambda _: Completion(text="Tin and slate.")
    try:
        async with lived(running_town) as terminal:
            terminal.type("say two things\r")
            await shown(terminal, sign("rowan is thinking about what to tell you"))
            terminal.type("/new\r")
            await shown(terminal, above("Ending this conversation"))
            terminal.type("/help\r")
            await shown(terminal, above("Stop the SOUL; nothing accepted is lost"))
            go_on.set()
            await shown(terminal, above("rowan: Tin and slate."))
            await shown(terminal, above("This conversation is over"))
            await shown(terminal, sign("/help: commands"))
            terminal.type("quit\r")
            assert await terminal.end() == 0
            assert terminal.is_as_before
    finally:
        go_on.set()


async def test_below_the_line_stands_when_it_acts_next_and_what_is_left_of_its_budgets(
    running_town: RunningTown,
) -> None:
    async with lived(running_town, NO_COLOR="1") as terminal:
        screen = await shown(terminal, lambda screen: panel("Mentions in ")(screen) and panel("Bluesky 2,9")(screen))
        timers, budgets = split(screen)[1]
        assert "Next post " in timers
        assert budgets.endswith(")"), "when the last budget is full again"
        assert "2,000,000/2,000,000" in budgets
        before = timers
        await shown(terminal, lambda screen: panel("Mentions in ")(screen) and split(screen)[1][0] != before)
        assert b"\x1b[0;3" not in terminal.raw, "no colour is asked for"
        terminal.resize(200, 2)
        terminal.tell_resized()
        terminal.type("quit\r")
        assert await terminal.end() == 0
        assert terminal.is_as_before
