"""Proves the room's program without a terminal: fed by a pipe, run by a service manager, refused in one clear line."""

import asyncio
import json
import re
import socket
import stat
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from adapters.space.chatlog import ChatLog
from tests.patience import HANG_S
from tests.program import one_clear_line, soul, started, until


async def opened(process: Process) -> str:
    """Return the room's URL as soon as it can be joined."""
    seen = await until(process, "Space ready")
    found = re.search(r"SPACE_URL=(ws://[^/\s]+)", seen)
    assert found
    return found[1]


@pytest.mark.slow
async def test_each_line_of_a_pipe_is_said_and_its_end_closes_the_room_if_that_is_wanted(tmp_path: Path) -> None:
    async with started("space", "--port", "0", "--data", str(tmp_path), "--until-eof", stdin=PIPE) as process:
        url = await opened(process)
        assert process.stdin
        async with connect(url) as member:
            await member.send(json.dumps({"type": "join", "name": "marvin", "id": "m", "version": "1"}))
            await until(process, "→ joined  marvin")
            await member.send(json.dumps({"type": "chat", "content": "\x1b[31mone\ntwo\x07"}))
            seen = await until(process, "two")
            assert "\x1b" not in seen
            process.stdin.write(b"good evening\n\n/who\n/say @nobody hm\n\xff\xfe odd bytes\n")
            output = await until(process, "odd bytes")
        await until(process, "← left    marvin")
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    assert "• host  good evening" in output
    assert re.search(r"^  marvin  idle", output, re.MULTILINE)
    assert "@nobody is not in the room" in output
    assert "odd bytes" in output
    assert "\x1b" not in output
    said = [entry.content for entry in ChatLog(tmp_path).get_recent_history() if entry.agent_name == "host"]
    assert said[0] == "good evening"
    assert len(said) == 2


@pytest.mark.slow
async def test_the_host_removes_a_member_who_cannot_come_back_under_that_name(tmp_path: Path) -> None:
    async with started("space", "--port", "0", "--data", str(tmp_path), stdin=PIPE) as process:
        url = await opened(process)
        assert process.stdin
        join = json.dumps({"type": "join", "name": "Marvin", "id": "m", "version": "1"})
        async with connect(url) as member:
            await member.send(join)
            await until(process, "→ joined  Marvin")
            process.stdin.write(b"/remove eve\n/remove\n/remove @marvin\n")
            async with asyncio.timeout(HANG_S):
                await member.wait_closed()
            assert (member.close_code, member.close_reason) == (4003, "Removed by the host")
        seen = await until(process, "Marvin was removed; its address cannot use that name for ten minutes.")
        assert "eve is not in the room" in seen
        assert "Write it as /remove name" in seen
        async with connect(url) as member:
            await member.send(join)
            assert json.loads(await member.recv())["message"] == "Invalid join: the host removed this name"


@pytest.mark.slow
async def test_a_room_without_input_stays_open_until_it_is_asked_to_close(tmp_path: Path) -> None:
    async with started("space", "--port", "0", "--data", str(tmp_path / "room")) as process:
        async with connect(await opened(process)) as member:
            await member.send(json.dumps({"type": "join", "name": "marvin", "id": "m", "version": "1"}))
            await until(process, "→ joined  marvin")
        await until(process, "← left    marvin")
        process.terminate()
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    assert stat.S_IMODE((tmp_path / "room").stat().st_mode) == 0o700


@pytest.mark.slow
async def test_a_taken_port_and_a_kept_folder_are_refused_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        one_clear_line(await soul("space", "--port", port, "--data", str(tmp_path / "a")), port, "in use", "--port")
    async with started("space", "--port", "0", "--data", str(tmp_path / "b")) as process:
        await opened(process)
        again = await soul("space", "--port", "0", "--data", str(tmp_path / "b"))
        one_clear_line(again, "another room keeps its record", "--data", code=78)


@pytest.mark.slow
async def test_a_port_that_is_none_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACE_PORT", "99999")
    one_clear_line(
        await soul("space", "--data", str(tmp_path)), "SPACE_PORT must be a port", "0 for a free one", code=78
    )


@pytest.mark.slow
async def test_the_token_in_the_folders_file_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SPACE_PORT=0\nSPACE_TOKEN='a token+of more'\n")
    async with started("space", "--home", str(tmp_path), "--data", str(tmp_path / "room")) as process:
        seen = await until(process, "Space ready")
        found = re.search(r"SPACE_URL=(ws://[^/\s]+)/\?token=<the token, percent-encoded>", seen)
        assert found
        with pytest.raises(InvalidStatus):
            async with connect(found[1]):
                raise AssertionError("came in")
        async with connect(f"{found[1]}/?token=a%20token%2Bof%20more") as member:
            await member.send(json.dumps({"type": "join", "name": "marvin", "id": "m", "version": "1"}))
            assert json.loads(await member.recv())["type"] == "join"


@pytest.mark.parametrize(
    ("in_the_way", "named"),
    [("", ""), ("room.lock/", "room.lock"), ("data", "data/chat.jsonl"), ("data/chat.jsonl/", "data/chat.jsonl")],
)
@pytest.mark.slow
async def test_a_record_that_cannot_be_kept_is_one_line_before_anybody_can_come_in(
    tmp_path: Path, in_the_way: str, named: str
) -> None:
    folder = tmp_path / "room"
    if in_the_way.endswith("/"):
        (folder / in_the_way).mkdir(parents=True)
    else:
        (folder / in_the_way).parent.mkdir(exist_ok=True)
        (folder / in_the_way).write_text("in the way")
    ended = await soul("space", "--port", "0", "--data", str(folder))
    one_clear_line(ended, f"Cannot write {folder / named}: there is a f", "should be", "Move that f")
    assert "Listening" not in ended.output
