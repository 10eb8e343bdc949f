"""Proves that what is no answer, or an odd one, costs what it must and no more, and ends as an error of ours."""

import json

import pytest

from common.errors import SoulError
from modules.runtime.llm.dialect import ChatResult, Message, ToolSpec
from tests.modules.runtime.budget.conftest import OpenGuarded
from tests.modules.runtime.budget.test_budget_gateway import outcome
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, refuses

HELLO = [Message("user", "hello")]
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
