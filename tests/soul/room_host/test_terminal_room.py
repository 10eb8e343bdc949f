"""Proves what the host sees and types in a real terminal, and what no agent can do to it.

Proves the box in which the host writes: keys, history, completion, paste, and long texts.
"""

import json
import re
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from adapters.space.chatlog import ChatLog
from tests.soul.room_host.pseudo_terminal import Terminal, hosted

HOSTILE = "\x1b[2J\x1b]0;taken\x07\x9b31m\u202eHello **there**.\r\nSecond line."


async def tell(member: ClientConnection, kind: str, **fields: Any) -> None:
    await member.send(json.dumps({"type": kind, **fields}))


async def receive(member: ClientConnection, kind: str) -> dict[str, Any]:
    while True:
        frame: dict[str, Any] = json.loads(await member.recv())
        if frame["type"] == kind:
            return frame


@pytest.mark.slow
async def test_a_host_talks_with_agents_from_a_terminal_and_gets_it_back_as_it_was(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (terminal, url), connect(url) as marvin:
        assert not terminal.is_as_before
        await tell(marvin, "join", name="marvin", id="m", version="10.1.0")
        await terminal.until("→ joined  marvin  v10.1.0")
        await tell(marvin, "chat", content=HOSTILE)
        await terminal.until("Second line.")
        assert "◆ marvin  Hello there." in terminal.text
        assert b"taken" not in terminal.raw
        assert b"\x1b[2J" not in terminal.raw
        assert "\u202e" not in terminal.text
        await tell(marvin, "claim", action="create_issue", target="acme/site")
        await terminal.until("▹ claim   marvin  create_issue acme/site")
        await tell(marvin, "typing")
        await terminal.until("(thinking...)")

        terminal.type("Good evenink\x7fg, \x1b[200~Marvin\x1b[31m\x07!\x1b[201~\r")
        said = await receive(marvin, "chat")
        while said["name"] != "host":
            said = await receive(marvin, "chat")
        assert (said["content"], said["addressed"]) == ("Good evening, Marvin!", ["marvin"])
        place = await terminal.until("• host  Good evening, Marvin!")

        terminal.resize(50, 24)
        terminal.tell_resized()
        place = await terminal.until("SPACE HOST · ESC clear", after=place)
        terminal.type("/say @MARVIN /quit is a command\r")
        assert (await receive(marvin, "chat"))["content"] == "@marvin /quit is a command"
        terminal.type("/claims\r/nothing\r")
        await terminal.until("There is no /nothing", after=place)
        assert "create_issue  acme/site  for" in terminal.text

        terminal.type("unsaid")
        await terminal.until("unsaid", after=place)
        terminal.type("\x03")
        assert (await receive(marvin, "shutdown"))["reason"] == "Server shutting down"
        await terminal.until("Closing the room")
        terminal.process.send_signal(signal.SIGINT)
        assert await terminal.end() == 0
        assert terminal.is_as_before
        assert terminal.raw.rindex(b"\x1b[?2004l") > terminal.raw.rindex(b"\x1b[?2004h")
        assert "is closed" in terminal.text
    kept = [(entry.agent_name, entry.type) for entry in ChatLog(tmp_path).get_recent_history()]
    assert kept[0] == ("marvin", "join")
    assert kept[-1] == ("marvin", "leave")
    assert ("host", "chat") in kept
    assert "unsaid" not in str(ChatLog(tmp_path).get_recent_history())


@pytest.mark.slow
async def test_the_address_on_the_terminal_lets_an_agent_in_as_it_stands_there(tmp_path: Path) -> None:
    async with hosted(tmp_path, "--token", "a b+c&d=e/f%20 Grüße #1 and long enough to be wider than it") as (_, url):
        assert url.endswith("wider%20than%20it")
        async with connect(url) as marvin:
            await tell(marvin, "join", name="marvin", id="m", version="1")
            assert (await receive(marvin, "join"))["name"] == "marvin"


@pytest.mark.slow
async def test_a_record_that_cannot_be_written_any_more_is_told_in_a_row_of_the_hosts_view(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (terminal, url), connect(url) as marvin:
        resource.prlimit(terminal.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        await tell(marvin, "join", name="marvin", id="m", version="1")
        await terminal.until("File too large")
        rows = [line.strip() for line in terminal.text.splitlines() if "[space log]" in line]
        assert rows
        assert all(re.match(r"\d\d:\d\d:\d\d  \S ", row) for row in rows), rows
        terminal.type("Still here.\r")
        while (await receive(marvin, "chat"))["content"] != "Still here.":
            pass


@pytest.fixture
def _hung_up_as_usual() -> Iterator[None]:
    """Restore the default for SIGHUP, since children would inherit that the tests ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_hung_up_as_usual")
@pytest.mark.parametrize("way", ["escape", "word", "command", "sigterm", "sighup"])
@pytest.mark.slow
async def test_the_terminal_is_put_back_on_every_way_out(tmp_path: Path, way: str) -> None:
    async with hosted(tmp_path) as (terminal, _):
        assert not terminal.is_as_before
        match way:
            case "escape":
                terminal.type("x\x1b")
                await terminal.until("x")
                terminal.type("\x1b")
            case "word":
                terminal.type("EXIT\r")
            case "command":
                terminal.type("/quit\r")
            case "sigterm":
                terminal.process.send_signal(signal.SIGTERM)
            case "sighup":
                terminal.process.send_signal(signal.SIGHUP)
        assert await terminal.end() == 0
        assert terminal.is_as_before
        assert "Traceback" not in terminal.text


UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
HOME, END, DELETE, BACKSPACE = "\x1b[H", "\x1b[F", "\x1b[3~", "\x7f"
ALT_ENTER = "\x1b\r"
FAMILY = "👩\u200d👩\u200d👧"


def pasted(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


TYPED = {
    "insert_in_the_middle": (f"ac{LEFT}b", "abc"),
    "backspace": (f"abc{BACKSPACE}", "ab"),
    "backspace_takes_a_family_whole": (f"a{FAMILY}{BACKSPACE}b", "ab"),
    "backspace_takes_an_accent_with_its_letter": (f"ae\u0301{BACKSPACE}b", "ab"),
    "backspace_at_the_start": (f"a{HOME}{BACKSPACE}b", "ba"),
    "left_over_a_family": (f"a{FAMILY}{LEFT}b", f"ab{FAMILY}"),
    "left_over_wide_signs": (f"一二三{LEFT}{LEFT}b", "一b二三"),
    "right_over_a_family": (f"{FAMILY}c{HOME}{RIGHT}b", f"{FAMILY}bc"),
    "delete": (f"abc{HOME}{DELETE}", "bc"),
    "delete_takes_a_family_whole": (f"{FAMILY}bc{HOME}{DELETE}", "bc"),
    "delete_at_the_end": (f"a{DELETE}", "a"),
    "end_of_input_in_a_text": ("abc\x01\x04", "bc"),
    "word": ("one two \x17x", "one x"),
    "to_start": (f"one two{LEFT}\x15", "o"),
    "to_end": (f"one{HOME}{RIGHT}\x0b", "o"),
    "new_line": (f"one{ALT_ENTER}two", "one\ntwo"),
    "home_of_this_line": (f"{pasted(f'one{chr(10)}two')}{HOME}x", "one\nxtwo"),
    "end_of_this_line": (f"{pasted(f'one{chr(10)}two')}{UP}{END}x", "onex\ntwo"),
    "up_and_down_in_the_text": (f"{pasted(f'one{chr(10)}two')}{UP}{DOWN}x", "one\ntwox"),
    "up_a_row_of_a_long_line": (f"{'x' * 100}{UP}b", f"{'x' * 24}b{'x' * 76}"),
    "up_a_row_of_wide_signs": (f"{'一' * 40}{UP}b", f"{'一' * 2}b{'一' * 38}"),
    "up_and_down_a_row": (f"{'x' * 100}{UP}{DOWN}b", f"{'x' * 100}b"),
    "down_to_a_shorter_row": (f"{'x' * 100}{UP}{END}{HOME}{RIGHT * 30}{DOWN}b", f"{'x' * 100}b"),
    "pasted_controls": (pasted("a\x1b[2Jb\x07\tc\r\nd\x00\u202e"), "ab\tc\nd"),
    "outer_spaces": ("  hello  ", "hello"),
}


def box(terminal: Terminal) -> list[str]:
    """Return the lines in the box, without its frame."""
    return [line[1:-1].strip() for line in terminal.screen if line.startswith("│") and line.endswith("│")]


async def first_line(terminal: Terminal, words: str) -> None:
    """Wait until the first line in the box is exactly `words`."""
    await terminal.until_screen(lambda: box(terminal)[:1] == [words])


@pytest.mark.slow
async def test_each_key_does_what_is_expected_of_it(tmp_path: Path) -> None:
    said = {}
    async with hosted(tmp_path) as (terminal, url), connect(url) as marvin:
        await tell(marvin, "join", name="marvin", id="m", version="1")
        for case, (keys, _) in TYPED.items():
            terminal.type(f"{keys}\r")
            said[case] = (await receive(marvin, "chat"))["content"]
    assert said == {case: expected for case, (_, expected) in TYPED.items()}


@pytest.mark.slow
async def test_what_was_said_comes_back_with_the_arrow_keys_and_the_draft_after_it(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (terminal, _):
        for words in ("one", "two", "   "):
            terminal.type(f"{words}\r")
        await terminal.until("• host  two")
        terminal.type("draft")
        await first_line(terminal, "draft")
        for key, shown in ((UP, "two"), (UP, "one"), (UP, "one"), (DOWN, "two"), (DOWN, "draft"), (DOWN, "draft")):
            terminal.type(key)
            await first_line(terminal, shown)


@pytest.mark.slow
async def test_commands_and_the_names_of_members_are_completed(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (terminal, url), connect(url) as marvin:
        await tell(marvin, "join", name="marvin", id="m", version="1")
        await terminal.until("joined  marvin")
        terminal.type("/cl")
        await terminal.until_screen(lambda: any("/claims" in line for line in terminal.screen))
        terminal.type("\t")
        await first_line(terminal, "/claims")
        terminal.type("\r")
        await terminal.until("Nothing is claimed.")
        terminal.type("Good evening, @MAR")
        await terminal.until_screen(lambda: any("@marvin" in line for line in terminal.screen))
        terminal.type("\t")
        await first_line(terminal, "Good evening, @marvin")
        terminal.type("!\r")
        assert (await receive(marvin, "chat"))["content"] == "Good evening, @marvin!"


@pytest.mark.slow
async def test_a_long_text_is_wrapped_in_the_box_which_grows_and_then_scrolls_with_the_cursor(tmp_path: Path) -> None:
    async with hosted(tmp_path, columns=40, rows=24) as (terminal, _):
        terminal.type(pasted("x" * 90))
        await terminal.until_screen(lambda: box(terminal) == ["x" * 36, "x" * 36, "x" * 18])
        terminal.type("\x15" + pasted("\n".join(f"line {number}" for number in range(20))))
        await terminal.until_screen(lambda: box(terminal)[-1:] == ["line 19"])
        assert [line.split("  ")[0] for line in box(terminal)] == [f"line {number}" for number in range(12, 20)]
        terminal.type(UP * 19)
        await first_line(terminal, "line 0")
        assert "  Waiting for agents..." in terminal.screen


@pytest.mark.slow
async def test_a_terminal_of_a_few_columns_and_rows_still_has_a_box(tmp_path: Path) -> None:
    async with hosted(tmp_path, columns=20, rows=5, ready="SPACE HOST") as (terminal, _):
        terminal.type("hello")
        await first_line(terminal, "hello")
        terminal.type("\r")
        await terminal.until("• host  hello")
