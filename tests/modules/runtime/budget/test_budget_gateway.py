"""Proves over real HTTP that every attempt that leaves the gateway is counted, and what each way to end counts as.

Proves that a call during which the process is killed stays counted in full. Proves that a missing or odd answer costs
what it must and no more, and ends as an error of ours. Proves the budget of a whole SOUL: a quiet day costs nothing, a
message costs what the ledger says, and without a budget no model is called.
"""

import asyncio
import dataclasses
import json
import math
import sys
import threading
from collections.abc import Awaitable
from fractions import Fraction
from pathlib import Path

import pytest

from common.clock import FakeClock, SystemClock
from common.errors import BudgetExceeded, SoulError, Transient
from modules.runtime.budget.policy import Caps, input_bound
from modules.runtime.budget.prices import Price
from modules.runtime.budget.report import lines
from modules.runtime.database.file import reading
from modules.runtime.llm.connection import probe_of
from modules.runtime.llm.dialect import ChatResult, Message, ToolSpec, Usage
from tests.loopback import held_port
from tests.modules.runtime.budget.budget_rig import CHEAP, MAIN, PRICES, Rules, process, request
from tests.modules.runtime.budget.conftest import GuardedGateway, OpenGuarded
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, refuses, says
from tests.modules.runtime.llm.waited_clock import WaitedClock
from tests.patience import HANG_S, until
from tests.project import ROOT
from tests.running_town import RunningTown, awake

HELLO = [Message("user", "hello")]
BOUND = input_bound(
    {
        "model": MAIN,
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 1024,
        "stream_options": {"include_usage": True},
    }
)
WORST = ("reserved", BOUND, 1024)


_ALL = 100
"""More than the number of pieces in any answer."""
LATE = dataclasses.replace(says("late"), hangs=True)


async def outcome(guarded: GuardedGateway, wanted: Awaitable[ChatResult]) -> ChatResult | BaseException:
    """Return the outcome of `wanted` while the clock moves past its waits and past each answer that hangs."""
    task, hung = asyncio.ensure_future(wanted), guarded.model.hung

    def is_still() -> bool:
        return task.done() or guarded.model.hung > hung or bool(guarded.rig.clock._sleepers)

    while not task.done():
        await until(is_still)
        if guarded.model.hung > hung:
            hung += 1
            await guarded.rig.clock.advance(HANG_S)
        if guarded.rig.clock._sleepers:
            await guarded.rig.clock.advance(10)
    return (await asyncio.gather(task, return_exceptions=True))[0]


async def asked(model: ScriptedModel, times: int) -> None:
    """Wait until `times` requests have reached the service."""
    await until(lambda: len(model.requests) >= times, what=f"request {times}")


async def test_while_the_model_thinks_its_worst_case_is_counted_and_the_answer_replaces_it(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        gate = threading.Semaphore(0)
        model.plays(dataclasses.replace(says("Good morning."), gate=gate))
        task = asyncio.ensure_future(guarded.gateway.chat_with_tools(HELLO, purpose="greeting", importance="mention"))
        await asked(model, 1)
        assert await guarded.ledger() == [WORST]
        gate.release(_ALL)
        result = await task
        (row,) = await guarded.rig.rows()
        assert (row["purpose"], row["importance"], row["model"]) == ("greeting", "mention", MAIN)
        assert await guarded.ledger() == [("settled", 10, 5)]
        assert result.cost_usd == result.usage.cost_usd == PRICES[MAIN].cost(10, 5) / 1e6
        assert (result.usage.step, result.usage.model) == ("normal", MAIN)


@pytest.mark.parametrize("broken", [refuses(500), Reply(chunks=says("half").chunks[:1], done=False)])
async def test_an_attempt_whose_end_is_unknown_stays_counted_in_full(
    open_guarded: OpenGuarded, model: ScriptedModel, broken: Reply
) -> None:
    async with open_guarded() as guarded:
        model.plays(broken, says("there"))
        result = await outcome(guarded, guarded.gateway.chat_with_tools(HELLO))
        assert await guarded.ledger() == [WORST, ("settled", 10, 5)]
        assert isinstance(result, ChatResult)
        both = PRICES[MAIN].cost(BOUND, 1024) + PRICES[MAIN].cost(10, 5)
        assert result.cost_usd == pytest.approx(both / 1e6)
        assert (result.attempts, result.usage.input_tokens) == (2, 10)


def probe_bound() -> int:
    """Return the upper bound of input tokens of the request that probes whether the service answers."""
    return input_bound(probe_of({"model": MAIN}))


def elsewhere(model: ScriptedModel) -> str:
    """Return the same service's URL under a public name, as if somebody else ran it."""
    return model.url.replace("127.0.0.1", "models.example")


async def test_an_attempt_that_times_out_at_an_own_service_counts_nothing_and_is_told(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        model.plays(LATE, LATE)
        failed = await outcome(guarded, guarded.gateway.chat_with_tools(HELLO))
        assert isinstance(failed, Transient)
        assert await guarded.ledger() == [("settled", 0, 0)] * 2
        report = await guarded.rig.budget.report()
        assert (report.fraction, report.calls, report.uncounted) == (0, 2, 2)
        assert "calls    2, 2 of them without an answer and not counted;" in lines(report)[3]


async def test_an_answer_that_broke_off_may_be_billed_at_an_own_service_too(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        gate = threading.Semaphore(1)
        model.plays(dataclasses.replace(says("half"), gate=gate), says("whole"))
        asking = asyncio.ensure_future(guarded.gateway.chat_with_tools(HELLO))
        assert isinstance(guarded.rig.clock, WaitedClock)
        await guarded.rig.clock.until(3)  # for the start of the answer and its first two pieces
        await guarded.rig.clock.advance(HANG_S)
        assert isinstance(await outcome(guarded, asking), ChatResult)
        assert await guarded.ledger() == [WORST, ("settled", 10, 5)]
        gate.release(_ALL)


async def test_an_attempt_that_times_out_stays_counted_in_full_and_its_retry_is_a_small_one(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded(url=elsewhere(model)) as guarded:
        model.plays(LATE, LATE)
        failed = await outcome(guarded, guarded.gateway.chat_with_tools(HELLO))
        assert isinstance(failed, Transient)
        assert "AI_GATEWAY_IDLE_TIMEOUT_S" in failed.remedy
        assert await guarded.ledger() == [WORST, ("reserved", probe_bound(), 16)]
        assert [row["unanswered"] for row in await guarded.rig.rows()] == [1, 1], "they are no longer on their way"
        report = await guarded.rig.budget.report()
        assert report.tokens.unanswered == report.tokens.reserved == BOUND + 1024 + probe_bound() + 16
        assert "without an answer, which may have been billed" in lines(report)[1]


async def test_a_service_that_answers_again_after_a_time_out_gets_the_whole_prompt_again(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded(url=elsewhere(model)) as guarded:
        model.plays(LATE, says("."), says("whole"))
        result = await outcome(guarded, guarded.gateway.chat_with_tools(HELLO))
        assert isinstance(result, ChatResult)
        assert result.text == "whole"
        assert await guarded.ledger() == [WORST, ("settled", 10, 5), ("settled", 10, 5)]
        model.plays(says("and at once"))
        assert (await guarded.gateway.chat_with_tools(HELLO)).text == "and at once"
    assert [len(wire["messages"][0]["content"]) for wire in model.requests] == [5, 1, 5, 5]


async def test_an_outage_costs_one_prompt_and_few_probes_however_many_calls_wait(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        model.plays(*[refuses(502)] * 4)
        clock, gateway, probe = guarded.rig.clock, guarded.gateway, ("reserved", probe_bound(), 16)
        assert isinstance(await outcome(guarded, gateway.chat_with_tools(HELLO)), Transient)
        assert await guarded.ledger() == [WORST, probe]
        waiting = [gateway.chat_with_tools(HELLO, importance=who) for who in ("stranger", "mention", "commitment")]
        others = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(other) for other in others} == {Transient}
        assert await guarded.ledger() == [WORST, probe], "none of them left"
        asked_by_owner = gateway.chat_with_tools(HELLO, importance="owner")
        assert isinstance(await outcome(guarded, asked_by_owner), Transient)
        assert await guarded.ledger() == [WORST, probe, probe]
        waits = [other.retry_after for other in others if isinstance(other, Transient)]
        await clock.advance(2 * max(wait or 0 for wait in waits))
        assert isinstance(await outcome(guarded, gateway.chat_with_tools(HELLO)), Transient)
        assert await guarded.ledger() == [WORST, probe, probe, probe]
        await clock.advance(600)
        model.plays(says("."), says("again"), says("and at once"))
        assert (await gateway.chat_with_tools(HELLO)).text == "again"
        assert (await gateway.chat_with_tools(HELLO)).text == "and at once"
    assert [len(wire["messages"][0]["content"]) for wire in model.requests] == [5, 1, 1, 1, 1, 5, 5]


async def test_a_prompt_at_which_the_service_fails_does_not_keep_others_from_it(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        model.plays(refuses(504), says("."), refuses(504), says("."), says("fine"))
        assert isinstance(await outcome(guarded, guarded.gateway.chat_with_tools(HELLO)), Transient)
        assert (await guarded.gateway.chat_with_tools(HELLO)).text == "fine"


@pytest.mark.parametrize("status", [521, 529])
async def test_a_request_that_reached_no_free_service_costs_nothing(
    open_guarded: OpenGuarded, model: ScriptedModel, status: int
) -> None:
    async with open_guarded() as guarded:
        model.plays(refuses(status), says("."), says("there"))
        assert isinstance(await outcome(guarded, guarded.gateway.chat_with_tools(HELLO)), ChatResult)
        assert await guarded.ledger() == [("settled", 0, 0), ("settled", 10, 5), ("settled", 10, 5)]


async def test_a_model_that_is_being_loaded_costs_nothing(open_guarded: OpenGuarded, model: ScriptedModel) -> None:
    async with open_guarded() as guarded:
        model.plays(refuses(503, "Model acme/large is currently loading"), says("there"))
        assert isinstance(await outcome(guarded, guarded.gateway.chat_with_tools(HELLO)), ChatResult)
        assert await guarded.ledger() == [("settled", 0, 0), ("settled", 10, 5)]


LONG = [Message("user", "The heron stood at the weir and looked at the water. " * 400)]


async def test_usage_that_is_told_too_low_is_raised_to_what_the_bytes_come_to(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        model.plays(says("The heron. " * 200))
        await guarded.gateway.chat_with_tools(LONG)
        ((_, sent, answered),) = await guarded.ledger()
    assert 2_650 <= sent <= 5_300, "21,200 bytes"
    assert 275 <= answered <= 550, "2,200 bytes"


async def test_an_honest_count_stands_as_it_is(open_guarded: OpenGuarded, model: ScriptedModel) -> None:
    said = says("The heron. " * 200)
    usage = {"prompt_tokens": 4_410, "completion_tokens": 602, "total_tokens": 5_012}
    async with open_guarded() as guarded:
        model.plays(dataclasses.replace(said, chunks=(*said.chunks[:-1], {**said.chunks[-1], "usage": usage})))
        await guarded.gateway.chat_with_tools(LONG)
        assert await guarded.ledger() == [("settled", 4_410, 602)]


async def test_of_several_counts_the_largest_stands(open_guarded: OpenGuarded, model: ScriptedModel) -> None:
    said = says("hi")

    def count(sent: object, answered: object) -> dict[str, object]:
        return {**said.chunks[-1], "usage": {"prompt_tokens": sent, "completion_tokens": answered}}

    async with open_guarded() as guarded:
        told = (count(70, 1), count(900, 40), count(1, 60), count(True, True))
        model.plays(dataclasses.replace(said, chunks=(*said.chunks[:-1], *told)))
        await guarded.gateway.chat_with_tools(HELLO)
        assert await guarded.ledger() == [("settled", 900, 60)]


async def test_a_caller_that_gives_up_leaves_the_call_counted_in_full(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        model.plays(LATE)
        task = asyncio.ensure_future(guarded.gateway.chat_with_tools(HELLO))
        await asked(model, 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await guarded.ledger() == [WORST]


@pytest.mark.parametrize("status", [400, 429])
async def test_a_request_that_the_service_refuses_at_once_costs_nothing(
    open_guarded: OpenGuarded, model: ScriptedModel, status: int
) -> None:
    async with open_guarded() as guarded:
        model.plays(refuses(status), refuses(status))
        assert isinstance(await outcome(guarded, guarded.gateway.chat_with_tools(HELLO)), SoulError)
        assert set(await guarded.ledger()) == {("settled", 0, 0)}


async def test_a_service_that_is_not_there_costs_nothing(open_guarded: OpenGuarded) -> None:
    with held_port() as port:
        async with open_guarded(url=f"http://127.0.0.1:{port}/v1") as guarded:
            assert isinstance(await outcome(guarded, guarded.gateway.chat_with_tools(HELLO)), Transient)
            assert await guarded.ledger() == [("settled", 0, 0)] * 2


async def test_an_answer_without_usage_is_counted_by_its_bytes_reasoning_included(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    said = says("äöü", usage=False)
    thought = {**said.chunks[0], "choices": [{"index": 0, "delta": {"reasoning_content": "h" * 100}}]}
    async with open_guarded() as guarded:
        model.plays(dataclasses.replace(said, chunks=(thought, *said.chunks)))
        await guarded.gateway.chat_with_tools(HELLO)
        ((state, sent, answered),) = await guarded.ledger()
        assert (state, sent) == ("settled", BOUND)
        assert 106 <= answered <= 106 + 16


async def test_reasoning_that_a_service_counts_only_in_the_total_is_counted(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    said = says("hi")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 500}
    async with open_guarded() as guarded:
        model.plays(dataclasses.replace(said, chunks=(*said.chunks[:-1], {**said.chunks[-1], "usage": usage})))
        assert (await guarded.gateway.chat_with_tools(HELLO)).usage.output_tokens == 490
        assert await guarded.ledger() == [("settled", 10, 490)]


CACHING = Rules(prices=PRICES | {MAIN: Price(Fraction(2), Fraction(8), kept=Fraction(1, 5), stored=Fraction(5, 2))})


@pytest.mark.parametrize(
    ("more", "cached", "cost"),
    [
        ({}, 0, 25 + 40),
        ({"prompt_tokens_details": {"cached_tokens": 6}}, 6, 10 + 1.2 + 40),
        ({"cache_read_input_tokens": 6}, 6, 10 + 1.2 + 40),
        ({"prompt_tokens_details": None, "prompt_cache_hit_tokens": 6}, 6, 10 + 1.2 + 40),
        *(({"prompt_tokens_details": {"cached_tokens": lie}}, 0, 25 + 40) for lie in (11, -6, "six", float("nan"))),
        ({"prompt_tokens_details": "many", "cache_read_input_tokens": 11}, 0, 25 + 40),
    ],
)
async def test_what_was_kept_is_cheaper_what_may_have_been_stored_is_dearer_and_odd_counts_change_nothing(
    open_guarded: OpenGuarded, model: ScriptedModel, more: dict[str, object], cached: int, cost: float
) -> None:
    said = says("hi")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **more}
    async with open_guarded(CACHING) as guarded:
        model.plays(dataclasses.replace(said, chunks=(*said.chunks[:-1], {**said.chunks[-1], "usage": usage})))
        result = await guarded.gateway.chat_with_tools(HELLO)
        assert await guarded.ledger() == [("settled", 10 - cached, 5)]
        assert (result.usage.cached_tokens, result.cost_usd) == (cached, math.ceil(cost) / 1e6)


async def test_a_prompt_that_may_be_stored_is_reserved_at_what_storing_costs(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded(CACHING) as guarded:
        model.plays(refuses(500), refuses(500))
        await outcome(guarded, guarded.gateway.chat_with_tools(HELLO))
        rows = await guarded.rig.rows()
        assert {row["cost_micro_usd"] for row in rows} == {math.ceil(2.5 * BOUND + 8 * 1024)}


@pytest.mark.parametrize("lie", [-5, 10**30, "many", None, float("nan"), True])
async def test_a_count_that_is_no_count_is_not_believed(
    open_guarded: OpenGuarded, model: ScriptedModel, lie: object
) -> None:
    said = says("hi")
    usage = {"prompt_tokens": lie, "completion_tokens": lie, "total_tokens": lie}
    async with open_guarded() as guarded:
        model.plays(dataclasses.replace(said, chunks=(*said.chunks[:-1], {**said.chunks[-1], "usage": usage})))
        await guarded.gateway.chat_with_tools(HELLO)
        ((state, sent, answered),) = await guarded.ledger()
        assert (state, sent) == ("settled", BOUND)
        assert 2 <= answered <= 2 + 16


async def test_the_second_try_with_a_larger_limit_is_reserved_on_its_own(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        gate = threading.Semaphore(0)
        model.plays(says("", finish="length"), dataclasses.replace(says("whole"), gate=gate))
        task = asyncio.ensure_future(guarded.gateway.chat_with_tools(HELLO))
        await asked(model, 2)
        assert await guarded.ledger() == [("settled", 10, 5), ("reserved", BOUND, 4096)]
        gate.release(_ALL)
        assert (await task).text == "whole"


async def test_what_leaves_is_the_shortened_request_and_nothing_leaves_once_nothing_fits(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded(Rules(Caps(BOUND + 300))) as guarded:
        model.plays(refuses(500), says("never asked for"))
        assert isinstance(await outcome(guarded, guarded.gateway.chat_with_tools(HELLO)), BudgetExceeded)
        assert [wire["max_tokens"] for wire in model.requests] == [300]
        assert await guarded.ledger() == [("reserved", BOUND, 300)]


async def test_the_cheaper_model_is_really_asked(open_guarded: OpenGuarded, model: ScriptedModel) -> None:
    async with open_guarded(Rules(cheap_model=CHEAP)) as guarded:
        rig = guarded.rig
        await rig.budget.settle(await rig.ask(request()), Usage(71_000, 1), 1)
        model.plays(says("cheaply"))
        result = await guarded.gateway.chat_with_tools(HELLO)
        assert model.requests[0]["model"] == CHEAP
        assert (result.usage.model, result.usage.step) == (CHEAP, "cheaper")


async def test_a_plain_chat_passes_the_wall_with_its_importance(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded(Rules(Caps(0))) as guarded:
        with pytest.raises(BudgetExceeded, match="does not fit"):
            await guarded.gateway.chat(HELLO, importance="owner")
        assert model.requests == []


CHILD = Path(__file__).with_name("budget_child.py")


@pytest.mark.slow
async def test_kill_minus_nine_in_the_middle_of_a_call_leaves_it_counted_in_full(
    model: ScriptedModel, tmp_path: Path
) -> None:
    path = tmp_path / "soul.db"
    model.plays(dataclasses.replace(says("too late"), hangs=True))
    child = await asyncio.create_subprocess_exec(
        sys.executable, CHILD, path, model.url, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    try:
        await until(lambda: model.requests, what="the request")
    finally:
        child.kill()
        await child.wait()
    with reading(path) as connection:
        (row,) = connection.execute("SELECT * FROM model_calls").fetchall()
    assert (row["state"], row["purpose"], row["output_tokens"]) == ("reserved", "killed", 1024)
    assert row["input_tokens"] > 1000
    async with process(path, Rules(Caps(50_000)), clock=FakeClock(SystemClock().now())) as after:
        await after.budget.hold("coding", tokens=3_000, usd=None)
        await after.budget.note_lost()
        tokens = (await after.budget.report()).tokens
        assert (tokens.used, tokens.spent, tokens.on_its_way) == (0, row["input_tokens"] + 1024, 3_000)


TOOL = ToolSpec("like", "Likes.", {"type": "object", "properties": {"uri": {"type": "string"}}})
AS_JSON, AS_STREAM = {"content-type": "application/json"}, {"content-type": "text/event-stream"}
_SHAPES: list[object] = [
    1,
    "x",
    {},
    [1, None],
    [{"type": 1}],
    [{"text": [[1]]}],
    [{"function": "like"}],
    [{"index": "a"}],
]
_CHOICES: list[object] = [
    *(None, 1, "x", {}, [None], [[]], [{"delta": "x"}], [{"delta": [1]}]),
    *([{"delta": {"content": value}}] for value in _SHAPES),
    *([{"delta": {"tool_calls": value}}] for value in _SHAPES),
    *([{"delta": {}, "finish_reason": value}] for value in _SHAPES),
]
_USAGE: list[object] = [1, "x", [], {"prompt_tokens": "9", "completion_tokens": None}]
ODD: list[object] = [
    *({"choices": value} for value in _CHOICES),
    *({"choices": [], "usage": value} for value in _USAGE),
    *("text", 1, None, [], [{"choices": []}], {"model": 5}, {"error": [1]}, {"error": {"message": {}, "code": []}}),
]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(raw='{"error": "Unexpected endpoint or method. (POST /chat/completions)"}', headers=AS_JSON),
        Reply(raw='{"detail": "Not Found"}', headers=AS_JSON),
        Reply(raw="<!doctype html><title>Open WebUI</title>", headers={"content-type": "text/html"}),
        Reply(raw="Ollama is running", headers={"content-type": "text/plain"}),
        Reply(raw="[]", headers=AS_JSON),
        Reply(raw=" ", headers={"content-type": "text/plain"}),
        Reply(raw="moved", status=301, headers={"location": "/elsewhere"}),
        Reply(raw="no such page", status=404),
        Reply(raw="no such method", status=405),
    ],
)
async def test_a_wrong_address_costs_nothing_is_asked_once_and_is_named(
    open_guarded: OpenGuarded, model: ScriptedModel, reply: Reply
) -> None:
    async with open_guarded() as guarded:
        model.plays(reply)
        told = await outcome(guarded, guarded.gateway.chat_with_tools(HELLO))
        assert isinstance(told, SoulError)
        assert "AI_GATEWAY_BASE_URL" in told.remedy
        assert len(model.requests) == 1
        assert await guarded.ledger() == [("settled", 0, 0)]


async def test_no_answer_however_odd_leaves_a_reservation_open_or_raises_what_is_not_ours(
    open_guarded: OpenGuarded, model: ScriptedModel
) -> None:
    async with open_guarded() as guarded:
        for chunk in ODD:
            model.plays(Reply(raw=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", headers=AS_STREAM))
            model.plays(*[refuses(401)] * 4)
            told = await outcome(guarded, guarded.gateway.chat_with_tools(HELLO, tools=[TOOL]))
            assert isinstance(told, SoulError | ChatResult), chunk
            model.script.clear()
        assert all(row["state"] == "settled" or row["unanswered"] for row in await guarded.rig.rows())


async def test_a_quiet_day_makes_no_model_call_and_a_word_from_somebody_makes_one(running_town: RunningTown) -> None:
    home = running_town.make_home("ada")
    running_town.account("friend")
    async with awake(home) as life:

        async def nothing_new(times: int) -> None:
            for name in ["awareness"] * times + ["heartbeat", "identity-watch", "session-refresh", "outbox"]:
                await life.app.scheduler.run_guarded(name)

        await nothing_new(times=12)
        assert running_town.mind.asked == []
        running_town.network.post_as(running_town.account("friend"), "@ada.test tin or slate?")
        await life.look()
        answered = len(running_town.mind.asked)
        assert answered > 0
        await nothing_new(times=4)
        assert len(running_town.mind.asked) == answered
        report = await life.app.services.budget.report()
        assert (report.calls, report.tokens.reserved) == (answered, 0)
        assert report.tokens.used > 0
        (thought,) = await life.app.services.journal.recent(1, kinds=["model"])
        said = thought.entry.data
        assert (said["importance"], said["step"], said["usd"]) == ("stranger", "normal", None)


async def test_without_a_budget_everything_is_heard_and_no_model_is_asked(running_town: RunningTown) -> None:
    home = running_town.make_home("ada", BUDGET_TOKENS_PER_DAY="0")
    running_town.network.post_as(running_town.account("friend"), "@ada.test tin or slate?")
    async with awake(home) as life:
        await life.look()
        await life.look()
        assert running_town.mind.asked == []
        told = [
            item for item in await life.app.services.journal.recent(50, kinds=["life"]) if item.entry.loop == "budget"
        ]
        assert [item.entry.data["step"] for item in told] == ["listen"]
        assert any("used up" in message for _, message, _ in life.console.lines)
