"""What the stream of changes is good for: an earlier look, and no answer to what is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from modules.services.outbox.types import ProposedAction
from modules.services.rights.policy import INTENTS, PREFERENCE
from modules.services.rights.types import Preference
from tests.modules.services.outbox.body_values import reply_body
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.stream import serve_stream


class Asked:
    """Remembers which loops were to run sooner, and lets a test wait for it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.was_asked = asyncio.Event()

    def bring_forward(self, name: str, seconds: float = 0.0) -> None:
        assert seconds > 0
        self.names.append(name)
        self.was_asked.set()


@asynccontextmanager
async def listening(soul: RunningSoul) -> AsyncIterator[Asked]:
    """The soul hears of changes; which loop it would bring forward is remembered."""
    asked = Asked()
    task = asyncio.create_task(soul.app.lives.stream.keep_listening(asked))
    try:
        yield asked
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _until_asked(town: RunningTown, asked: Asked, by: str) -> None:
    def is_asked() -> bool:
        if not asked.was_asked.is_set():
            town.network.post_as(by, "A thought about rain.")
        return asked.was_asked.is_set()

    await until(is_asked)


async def test_a_post_of_the_owner_or_a_peer_brings_the_next_look_forward_once_in_a_while(
    running_town: RunningTown,
) -> None:
    town = running_town
    wren = town.account("wren")
    async with serve_stream(town.network) as url:
        home = town.make_home("rowan", JETSTREAM_URL=url, SOUL_PEERS="wren.test", SOUL_SPEED="1")
        async with awake(home) as soul, listening(soul) as asked:
            await _until_asked(town, asked, town.account("owner"))
            for _ in range(20):
                town.network.post_as(wren, "More about rain.")
            assert asked.names == ["awareness"]
            asked.was_asked.clear()
            soul.passes(60)
            await _until_asked(town, asked, wren)
            assert asked.names == ["awareness"] * 2


async def test_a_post_that_is_deleted_while_it_waits_is_not_answered(running_town: RunningTown) -> None:
    town = running_town
    owner, kit = town.account("owner"), town.account("kit")
    async with serve_stream(town.network) as url:
        home = town.make_home("rowan", JETSTREAM_URL=url)
        async with awake(home) as soul:
            first, _ = town.network.post_as(kit, "@rowan.test which roof is louder?")
            second, _ = town.network.post_as(kit, "@rowan.test which moss grows on slate?")
            await soul.app.lives.bluesky.awareness.read_first()
            await soul.app.services.outbox.submit(ProposedAction(reply_body("Tin, by far.", second), by_owner=True))
            async with listening(soul) as asked:
                await _until_asked(town, asked, owner)
                for uri in (first, second):
                    town.network.delete(*uri.removeprefix("at://").split("/"))
                asked.was_asked.clear()
                soul.passes(60)
                await _until_asked(town, asked, owner)
            assert await soul.app.lives.bluesky_state.pending.count() == 0
            await soul.look()
            reasons = {one.entry.trigger_uri: one.entry.reason for one in await soul.decisions()}
    assert town.texts("rowan") == []
    assert not town.mind.asked
    assert reasons[first] == "it is not answered"
    assert reasons[second] == "the reply that waited was taken back"


@pytest.mark.parametrize(
    ("collection", "record", "denied"),
    [
        (PREFERENCE, {"preferences": {"inference": {"allow": False}}}, Preference(inference="deny")),
        (INTENTS, {"syntheticContentGeneration": {"allow": False}}, Preference(synthetic_content="deny")),
    ],
)
async def test_what_a_peer_declares_holds_as_soon_as_it_changes_and_also_when_it_is_taken_back(
    running_town: RunningTown, *, collection: str, record: dict[str, object], denied: Preference
) -> None:
    town = running_town
    owner, wren = town.account("owner"), town.account("wren")
    async with serve_stream(town.network) as url:
        home = town.make_home("rowan", JETSTREAM_URL=url, SOUL_PEERS="wren.test", SOUL_SPEED="1")
        async with awake(home) as soul, listening(soul) as asked:
            await _until_asked(town, asked, owner)
            preferences = soul.app.services.preferences
            declares = partial(town.network.put, wren, collection, "self", record)
            takes_back = partial(town.network.delete, wren, collection, "self")
            for change, holds in ((declares, denied), (takes_back, Preference())):
                before = await preferences.of({wren})
                change()
                asked.was_asked.clear()
                soul.passes(60)
                assert before != {wren: holds}
                await _until_asked(town, asked, wren)
                assert await preferences.of({wren}) == {wren: holds}


async def test_without_an_address_nothing_is_listened_to_and_the_life_goes_on(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as soul, listening(soul) as asked:
        running_town.network.post_as(running_town.account("owner"), "@rowan.test which roof is louder?")
        await soul.look()
        assert asked.names == []
    assert len(running_town.texts("rowan")) == 1
