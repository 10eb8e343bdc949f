"""The stream of changes: whose changes come, what comes again after a break, and that trouble stays unnoticed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from atproto_jetstream.models import (  # type: ignore[import-untyped]
    MessageFrame,
    parse_frame,
    parse_subscribe_events_message,
)
from websockets.asyncio.client import connect

from adapters.jetstream.client import MAX_ACCOUNTS, METHOD, SUBPROTOCOL, Jetstream, RecordChanged, read_frame
from common.clock import Clock, FakeClock, SystemClock
from tests.patience import HANG_S, until
from town.atproto.network import Network
from town.atproto.stream import serve_stream
from town.atproto.values import LIKE, POST

PASSWORD = "town-password-1"


def network_of(*names: str) -> tuple[Network, list[str]]:
    network = Network(clock=SystemClock())
    return network, [network.create_account(f"{name}.test", PASSWORD).did for name in names]


@asynccontextmanager
async def received_from(url: str, dids: list[str], clock: Clock) -> AsyncIterator[asyncio.Queue[RecordChanged]]:
    """What comes from the stream at `url` about the posts of `dids`."""
    came: asyncio.Queue[RecordChanged] = asyncio.Queue()

    async def accounts() -> list[str]:
        return dids

    stream = Jetstream(url, collections=(POST,), accounts=accounts, clock=clock)
    listening = asyncio.create_task(stream.listen(came.put))
    try:
        yield came
        assert not listening.done()
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


async def next_of(came: asyncio.Queue[RecordChanged]) -> RecordChanged:
    async with asyncio.timeout(HANG_S):
        return await came.get()


async def until_connected(network: Network, did: str, came: asyncio.Queue[RecordChanged]) -> None:
    """Post until the listener is known to be there: what was said before it came is not for it."""

    def is_heard() -> bool:
        if came.empty():
            network.post_as(did, "Is anybody there?")
        return not came.empty()

    await until(is_heard)
    last, _ = network.post_as(did, "There is.")
    while (await next_of(came)).uri != last:
        pass


async def test_only_posts_of_the_accounts_that_matter_are_told_also_when_they_go() -> None:
    network, (ada, kit) = network_of("ada", "kit")
    async with serve_stream(network) as url, received_from(url, [ada], SystemClock()) as came:
        await until_connected(network, ada, came)
        network.post_as(kit, "Not for you.")
        uri, cid = network.post_as(ada, "For you.")
        network.create(ada, LIKE, {"subject": {"uri": uri, "cid": cid}, "createdAt": "2026-01-01T00:00:00Z"})
        network.delete(*uri.removeprefix("at://").split("/"))
        told = [await next_of(came) for _ in range(2)]
    assert [(one.uri, one.operation) for one in told] == [(uri, "create"), (uri, "delete")]


async def test_the_first_accounts_are_heard_however_many_follow() -> None:
    network, (ada,) = network_of("zoe")
    crowd = [f"did:plc:{number:024d}" for number in range(2 * MAX_ACCOUNTS)]
    async with serve_stream(network) as url, received_from(url, [ada, *crowd], SystemClock()) as came:
        await until_connected(network, ada, came)
        uri, _ = network.post_as(ada, "For you.")
        assert (await next_of(came)).uri == uri


async def test_what_happened_between_two_connections_is_told_once() -> None:
    network, (ada,) = network_of("ada")
    clock = FakeClock()
    async with serve_stream(network) as url, received_from(url, [ada], clock) as came:
        await until_connected(network, ada, came)
        first, _ = network.post_as(ada, "Before the break.")
        assert (await next_of(came)).uri == first
        await clock.advance(600)
        second, _ = network.post_as(ada, "In the break.")
        async with asyncio.timeout(HANG_S):
            while came.empty():
                await clock.advance(5)
        assert (await next_of(came)).uri == second
        third, _ = network.post_as(ada, "After it.")
        assert (await next_of(came)).uri == third


@pytest.mark.parametrize("url", ["ws://127.0.0.1:9", "wss://[", "http://127.0.0.1:1"])
async def test_a_service_that_cannot_be_reached_is_tried_again_for_ever(url: str) -> None:
    clock = FakeClock()
    async with received_from(url, ["did:plc:ada"], clock) as came:
        for _ in range(12):
            await clock.advance(900)
        assert came.empty()


async def test_a_room_that_answers_with_something_else_is_left() -> None:
    network, (ada,) = network_of("ada")
    clock = FakeClock()
    async with serve_stream(network) as url, received_from(f"{url}/elsewhere", [ada], clock) as came:
        await clock.advance(900)
        assert came.empty()


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "[]",
        "7",
        b"\xff\xfe",
        '{"$type": "message"}',
        '{"$type": "message", "payload": 7}',
        '{"$type": "message", "payload": {"seq": "7"}}',
        '{"$type": "message", "payload": {"seq": true}}',
        '{"$type": "error", "error": "ConsumerTooSlow"}',
        "[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_passed_over(frame: str | bytes) -> None:
    assert read_frame(frame) is None


def test_an_event_of_another_kind_moves_the_cursor_and_tells_nothing() -> None:
    event = read_frame(json.dumps({"$type": "message", "payload": {"$type": f"{METHOD}#identity", "seq": 7}}))
    assert event
    assert (event.seq, event.change) == (7, None)


async def test_the_town_s_frames_are_those_that_the_network_s_own_client_reads() -> None:
    network, (ada,) = network_of("ada")
    async with (
        serve_stream(network) as url,
        connect(f"{url}/xrpc/{METHOD}?dids={ada}", subprotocols=[SUBPROTOCOL]) as connection,
    ):
        uri, cid = network.post_as(ada, "In the town's own words.")
        network.delete(*uri.removeprefix("at://").split("/"))
        async with asyncio.timeout(HANG_S):
            frames = [parse_frame(await connection.recv()) for _ in range(2)]
    messages = [parse_subscribe_events_message(frame) for frame in frames if isinstance(frame, MessageFrame)]
    shown = [message.model_dump(by_alias=True) for message in messages]
    assert [(one["operation"], one["did"], one["cid"]) for one in shown] == [
        ("create", ada, cid),
        ("delete", ada, None),
    ]
