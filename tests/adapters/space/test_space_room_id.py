"""A room keeps its id wherever it listens, and a member knows it again by that, not by its address."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from adapters.space.types import History
from adapters.space.wire import decode_event
from common.result import ApiResult, Ok
from tests.adapters.space.running_member import Member, running_client, settled
from tests.adapters.space.running_room import RoomDriver
from tests.patience import until


def test_the_id_lies_beside_the_record_and_stays(tmp_path: Path) -> None:
    made = ChatLog(tmp_path / "one").room_id()
    kept = tmp_path / "one" / "data" / "room-id"
    assert len(made) >= 16
    assert ChatLog(tmp_path / "one").room_id() == made
    assert ChatLog(tmp_path / "two").room_id() != made
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("found", [b"", b"short\n", b"\xff" * 30, b"two words that are no id\n", b"x" * 5000])
def test_what_is_no_id_is_replaced_by_one(tmp_path: Path, found: bytes) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "room-id").write_bytes(found)
    made = ChatLog(tmp_path).room_id()
    assert made
    assert ChatLog(tmp_path).room_id() == made


def test_a_room_that_cannot_keep_an_id_has_none_and_says_why(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "data").write_text("a file where the folder should be")
    assert ChatLog(tmp_path, report=told.append).room_id() == ""
    (tmp_path / "other" / "data" / "room-id").mkdir(parents=True)
    assert ChatLog(tmp_path / "other", report=told.append).room_id() == ""
    assert len(told) == 2


def test_the_id_is_told_after_the_record_and_a_room_without_one_tells_what_it_always_told() -> None:
    driver = RoomDriver()
    assert driver.texts[driver.join("ada")][-1].endswith('"content":""}]}')
    driver.room.remember(driver.room._state.replay, "a-room-of-its-own")
    told = driver.texts[driver.join("bob")][-1]
    assert told.endswith('"content":""}],"roomId":"a-room-of-its-own"}')
    event = decode_event(told)
    assert isinstance(event, History)
    assert (event.room_id, len(event.entries)) == ("a-room-of-its-own", 2)


@pytest.mark.parametrize("told", [None, 7, ["id"], {"id": 1}])
def test_an_id_that_is_no_text_is_none(told: object) -> None:
    event = decode_event(json.dumps({"type": "history_response", "entries": [], "roomId": told}))
    assert event == History(())


class Address:
    """Where the room is to be found at this moment."""

    def __init__(self) -> None:
        self.port = 0

    async def find(self) -> ApiResult[str]:
        return Ok(f"ws://127.0.0.1:{self.port}")

    @asynccontextmanager
    async def room(self, folder: Path | None, port: int = 0) -> AsyncIterator[SpaceServer]:
        server = SpaceServer(ChatLog(folder) if folder else None)
        assert isinstance(await server.start(port), Ok)
        self.port = server.port
        try:
            yield server
        finally:
            await server.stop()


async def _comes_back(member: Member, joins: int) -> None:
    await until(lambda: member.client.joins == joins or member.client.status == "disconnected")
    while member.client.joins < joins:
        await settled(member)
        await member.clock.advance(10)
        await until(lambda: member.client.status != "connecting")


async def test_a_room_at_another_port_is_the_same_though_its_record_was_lost(tmp_path: Path) -> None:
    address = Address()
    async with address.room(tmp_path) as server:
        member, first = Member(address.find), address.port
        async with running_client(member) as ada:
            await member.joined(1)
            server.broadcast_from_host("Which roof?")
            await until(lambda: [said.content for said in ada.get_and_flush_messages()] == ["Which roof?"])
            known = ada.room_id
            await server.stop()
            (tmp_path / "data" / "chat.jsonl").unlink()
            async with address.room(tmp_path):
                await _comes_back(member, 2)
                assert (ada.room_id, ada.fresh_room) == (known, False)
                assert address.port != first


async def test_another_room_at_the_same_address_is_another_though_its_record_is_a_copy(tmp_path: Path) -> None:
    address, one, two = Address(), tmp_path / "one", tmp_path / "two"
    async with address.room(one) as server:
        member = Member(address.find)
        async with running_client(member) as ada:
            await member.joined(1)
            server.broadcast_from_host("Which roof?")
            await until(lambda: "Which roof?" in str(ada._member.inbox._messages))
            known = ada.room_id
            await server.stop()
            (two / "data").mkdir(parents=True)
            (two / "data" / "chat.jsonl").write_bytes((one / "data" / "chat.jsonl").read_bytes())
            async with address.room(two, address.port):
                await _comes_back(member, 2)
                assert ada.room_id not in {"", known}
                assert ada.fresh_room
                told = [(said.content, said.replayed) for said in ada.get_and_flush_messages()]
                assert told == [("Which roof?", True)]


async def test_a_room_without_a_record_tells_no_id_and_is_known_by_its_words(tmp_path: Path) -> None:
    address = Address()
    async with address.room(tmp_path) as server:
        member = Member(address.find)
        async with running_client(member) as ada:
            await member.joined(1)
            assert ada.room_id
            await server.stop()
            async with address.room(None, address.port):
                await _comes_back(member, 2)
                assert (ada.room_id, ada.fresh_room) == ("", True)
