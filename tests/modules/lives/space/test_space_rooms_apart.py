"""Proves that a host request belongs to the room where it was made, and to no other room at the same address."""

from pathlib import Path

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.result import Ok
from tests.hasty_clock import SetAhead
from tests.modules.lives.space.soul_in_room import REQUEST, Agent, Room, an_issue, in_turn, speaks
from tests.patience import until


async def _opens(room: Room, folder: Path, port: int = 0) -> None:
    """Close the room, and open one whose record is in `folder`."""
    await room.server.stop()
    room.server = SpaceServer(ChatLog(folder), room.host)
    assert isinstance(await room.server.start(port), Ok)


async def _is_back(agent: Agent, clock: SetAhead) -> None:

    def is_back() -> bool:
        clock.ahead += agent.client.status == "disconnected"
        return agent.client.joins == 2 and agent.client.is_active

    await until(is_back)


async def test_the_same_room_at_another_port_keeps_its_request_though_its_record_was_lost(
    room: Room, tmp_path: Path
) -> None:
    await _opens(room, tmp_path / "parlour")
    clock = SetAhead()
    async with room.soul("marvin", lambda _: speaks("Taken.", an_issue()), clock=clock) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        (commitment,) = marvin.queued_commitments()
        assert commitment.params.as_json()["roomId"] == marvin.client.room_id
        was = room.server.port
        await room.server.stop()
        (tmp_path / "parlour" / "data" / "chat.jsonl").unlink()
        await _opens(room, tmp_path / "parlour")
        await _is_back(marvin, clock)
        marvin.later(30)
        await marvin.check()
        request = marvin.space.participation.talk.state.request
        assert (request.content, request.fulfilled) == (REQUEST, True)
        assert marvin.queued_commitments() == [commitment]
        assert room.server.port != was


async def test_another_room_at_the_same_address_where_the_same_is_asked_gets_a_commitment_of_its_own(
    room: Room, tmp_path: Path
) -> None:
    await _opens(room, tmp_path / "parlour")
    mind = in_turn(
        speaks("Taken.", an_issue()), speaks("I take that one here.", an_issue("Hands of the clock are bent"))
    )
    clock = SetAhead()
    async with room.soul("marvin", mind, clock=clock) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        (first,) = marvin.queued_commitments()
        await _opens(room, tmp_path / "kitchen", room.server.port)
        await _is_back(marvin, clock)
        marvin.later(30)
        await marvin.check()
        assert marvin.space.participation.talk.state.request.content == ""
        await room.says(REQUEST, marvin)
        await marvin.check()
        request = marvin.space.participation.talk.state.request
        assert request.fulfilled
        await marvin.queue.withdraw(first.id, "a test")
        marvin.space.participation.given_up(first)
        assert marvin.space.participation.talk.state.request == request
        queued_commitments = marvin.queued_commitments()
        assert [one.source_thread_uri for one in queued_commitments] == [first.source_thread_uri] * 2
        assert len({one.params.as_json()["roomId"] for one in queued_commitments}) == 2
        (second,) = [one for one in queued_commitments if one.id != first.id]
        marvin.space.participation.given_up(second)
        assert not marvin.space.participation.talk.state.request.fulfilled


async def test_a_message_that_waits_is_not_said_in_another_room(room: Room, tmp_path: Path) -> None:
    await _opens(room, tmp_path / "parlour")
    clock = SetAhead()
    async with room.soul("marvin", lambda _: speaks("Taken.", an_issue()), clock=clock) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.space.loop.run()
        assert marvin.space.participation.waits
        await _opens(room, tmp_path / "kitchen", room.server.port)
        await _is_back(marvin, clock)
        marvin.later(30)
        assert (await marvin.check()).reason == "the room is gone"
        assert marvin.queued_commitments() == []
        assert room.host.said("marvin") == []


async def test_a_commitment_from_before_rooms_had_ids_still_answers_its_request(room: Room, tmp_path: Path) -> None:
    clock = SetAhead()
    async with room.soul("marvin", lambda _: speaks("Taken.", an_issue()), clock=clock) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        (commitment,) = marvin.queued_commitments()
        assert "roomId" not in commitment.params.as_json()
        await _opens(room, tmp_path / "parlour")
        await _is_back(marvin, clock)
        marvin.later(30)
        await room.says(REQUEST, marvin)
        await marvin.check()
        assert marvin.space.participation.talk.state.request.fulfilled
        assert marvin.queued_commitments() == [commitment]
