"""A room's server that is killed: what was said stays said, and the next one tells it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from adapters.space.chatlog import ChatLog
from tests.adapters.space.running_room import RawClient
from tests.children import child_of
from tests.patience import HANG_S

CHILD = "tests.adapters.space.room_child"


async def port_of(child: asyncio.subprocess.Process) -> int:
    assert child.stdout is not None
    async with asyncio.timeout(HANG_S):
        return int(await child.stdout.readline())


@pytest.mark.slow
async def test_after_a_kill_the_record_is_whole_and_the_next_server_replays_it(tmp_path: Path) -> None:
    said: list[str] = []
    port = 0
    for life in range(2):
        async with child_of(CHILD, str(tmp_path), str(port)) as child:
            port = await port_of(child)
            async with connect(f"ws://127.0.0.1:{port}", proxy=None, close_timeout=0.1) as sock:
                ada = RawClient(sock)
                (history,) = [frame for frame in await ada.join("ada") if frame["type"] == "history_response"]
                replayed = [entry["content"] for entry in history["entries"] if entry["type"] == "reflection"]
                assert replayed == said
                for number in range(19):
                    summary = f"life {life}, thought {number}"
                    await ada.send({"type": "reflection", "summary": summary})
                    assert (await ada.until("reflection"))[-1]["summary"] == summary
                    said.append(summary)
                child.kill()
                assert (await ada.closed())[0] == 1006
    log = ChatLog(tmp_path)
    assert [entry.content for entry in log.get_recent_history() if entry.type == "reflection"] == said[-len(said) :]
    assert (tmp_path / "data" / "chat.1.jsonl").exists()
