"""A passer-by who visits the room now and then and says one line to those present. It has no SOUL and no model.

Nothing is kept. A passer-by leaves soon, so that nobody waits for it to do any work.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress

from adapters.space.client import SpaceClient
from common.clock import Clock
from common.result import Ok
from town.mind.words import Bank, load_bank

NAME = "Kit"
HANDLE = "kit.test"
_VERSION = "0"
_NEVER_S = 86_400.0
_LEAST_S, _MOST_S = 60.0, 120.0
_STAY_S = 25.0
_TYPES_S = 2.0
_JOIN_S = 20.0


def lines(bank: Bank, rng: random.Random) -> Iterator[str]:
    """Yield a passer-by's lines, without end: a lead-in and a question that a resident can answer."""
    asks = [idea.ask for idea in bank.ideas()]
    leads: Sequence[str] = bank.room["passing_by"]
    while True:
        rng.shuffle(asks)
        for number, ask in enumerate(asks):
            yield leads[number % len(leads)].format(ask=ask)


async def pass_by(url: str, clock: Clock, rng: random.Random, *, first_s: float) -> None:
    """Visit the room after `first_s` seconds, and then every minute or two, until cancelled."""
    said = lines(load_bank(), rng)
    wait_s = first_s
    while True:
        await clock.sleep(wait_s)
        await look_in(url, next(said), clock, rng)
        wait_s = rng.uniform(_LEAST_S, _MOST_S)


async def look_in(url: str, line: str, clock: Clock, rng: random.Random, *, stay_s: float = _STAY_S) -> None:
    """Join, say `line`, stay `stay_s` seconds and leave; do nothing if the room lets nobody in."""

    async def find() -> Ok[str]:
        return Ok(url)

    arrived = asyncio.Event()

    async def on_joined() -> None:
        arrived.set()

    client = SpaceClient(
        agent_name=NAME,
        agent_version=_VERSION,
        capabilities=lambda: ["social"],
        discover=find,
        clock=clock,
        rng=rng,
        reconnect_interval_s=lambda: _NEVER_S,
        on_joined=on_joined,
    )
    here = asyncio.create_task(client.run(), name="passer-by")
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(arrived.wait(), _JOIN_S)
            await client.send_typing()
            await clock.sleep(_TYPES_S)
            await client.send_chat(line)
            await clock.sleep(stay_s)
    finally:
        await client.close()
        here.cancel()
        with suppress(asyncio.CancelledError):
            await here
