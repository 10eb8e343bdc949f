"""The room's program in a real terminal: what the host sees and types, and what no agent can do to it."""

from __future__ import annotations

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
from tests.soul.room_host.pseudo_terminal import hosted

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
    """Where the tests themselves were told not to be hung up, their children would be told so, too."""
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
