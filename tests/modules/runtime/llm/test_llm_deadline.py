"""Proves how long the gateway waits for a model service that is silent, by a clock that the test moves."""

import asyncio
import dataclasses
import threading

import pytest

from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, says
from tests.modules.runtime.llm.waited_clock import WaitedClock
from tests.patience import HANG_S

HELLO = [Message("user", "hello")]
IDLE_S = HANG_S
BEGUN = 2
"""Number of waits once the gateway waits for the first piece of an answer that has begun."""


@pytest.fixture
async def clock() -> WaitedClock:
    return WaitedClock()


async def past_the_back_off(clock: WaitedClock, waits: int) -> None:
    """Move the clock until the gateway tries again, which begins one more wait."""
    async with asyncio.timeout(HANG_S):
        while clock.waits == waits:
            await clock.advance(1)


async def test_a_stream_that_hangs_is_given_up_at_the_deadline(
    gateway: LLMGateway, model: ScriptedModel, clock: WaitedClock
) -> None:
    model.plays(Reply(hangs=True), says("it answers"), says("awake"))
    answer = asyncio.create_task(gateway.chat(HELLO))
    await clock.until(BEGUN)
    await clock.advance(IDLE_S - 1)
    assert (len(model.requests), clock.waits) == (1, BEGUN)
    await clock.advance(1)
    await past_the_back_off(clock, BEGUN)
    assert await answer == "awake"


async def test_each_further_try_may_take_as_long_as_the_first(
    gateway: LLMGateway, model: ScriptedModel, clock: WaitedClock
) -> None:
    model.plays(Reply(hangs=True), Reply(hangs=True), says("it answers"), says("awake"))
    answer = asyncio.create_task(gateway.chat(HELLO))
    await clock.until(BEGUN)
    await clock.advance(IDLE_S)
    await past_the_back_off(clock, BEGUN)
    await clock.until(2 * BEGUN)
    await clock.advance(IDLE_S - 1)
    assert (len(model.requests), clock.waits) == (2, 2 * BEGUN)
    await clock.advance(1)
    await past_the_back_off(clock, 2 * BEGUN)
    assert await answer == "awake"


async def test_a_stream_that_stops_in_the_middle_is_given_up_at_the_deadline(
    gateway: LLMGateway, model: ScriptedModel, clock: WaitedClock
) -> None:
    gate = threading.Semaphore(1)
    model.plays(dataclasses.replace(says("half of it"), gate=gate), says("awake"))
    answer = asyncio.create_task(gateway.chat(HELLO))
    await clock.until(BEGUN + 1)
    await clock.advance(IDLE_S)
    await past_the_back_off(clock, BEGUN + 1)
    assert await answer == "awake"
    gate.release(len(says("half of it").chunks))


async def test_an_answer_may_take_longer_than_the_deadline_while_its_pieces_keep_coming(
    gateway: LLMGateway, model: ScriptedModel, clock: WaitedClock
) -> None:
    text, gate = "a slow machine says three letters at a time", threading.Semaphore(0)
    reply = dataclasses.replace(says(text), gate=gate)
    model.plays(reply)
    answer = asyncio.create_task(gateway.chat(HELLO))
    for pieces in range(len(reply.chunks)):
        await clock.until(BEGUN + pieces)
        await clock.advance(IDLE_S - 1)
        gate.release()
    assert (await answer, len(model.requests)) == (text, 1)
