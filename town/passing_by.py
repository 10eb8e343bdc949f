"""A passer-by who looks into the room now and then, with one line for those who are there. No SOUL and no model.

Nothing is kept. Whoever passes by leaves soon, so that no piece of work is ever waited for from them.
"""

from __future__ import annotations

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
    """What a passer-by says, without end: a lead and a question that somebody here has an answer to."""
    asks = [idea.ask for idea in bank.ideas()]
    leads: Sequence[str] = bank.room["passing_by"]
    while True:
        rng.shuffle(asks)
        for number, ask in enumerate(asks):
            yield leads[number % len(leads)].format(ask=ask)


async def pass_by(url: str, clock: Clock, rng: random.Random, *, first_s: float, bank: Bank | None = None) -> None:
    """Look in after `first_s` seconds, and then every few minutes, until cancelled."""
    said = lines(bank or load_bank(), rng)
    wait_s = first_s
    while True:
        await clock.sleep(wait_s)
        await look_in(url, next(said), clock, rng)
        wait_s = rng.uniform(_LEAST_S, _MOST_S)


async def look_in(url: str, line: str, clock: Clock, rng: random.Random, *, stay_s: float = _STAY_S) -> None:
    """Come in, say it, stay a moment and leave; where the room lets nobody in, nothing happens."""

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
