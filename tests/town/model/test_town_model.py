"""Proves that the model service keeps the chat-completions protocol, judged by the unmodified `openai` client.

The model service takes pictures as the public ones do.
"""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.patience import HANG_S
from town.model.service import BadRequest, Fault, FaultKind, GatewayMind, ModelFaults, model_app, read_request, usage
from town.model.types import ChatRequest, Completion, ToolUse
from town.serving import serve

KEY = "town-key-for-tests"
POST_TOOL: Any = {
    "type": "function",
    "function": {
        "name": "bluesky_post",
        "description": "Post.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}
LIKE_TOOL: Any = {"type": "function", "function": {"name": "bluesky_like", "parameters": {"type": "object"}}}
HELLO: Any = [{"role": "user", "content": "hello, town"}]


class Parrot:
    """A mind that repeats what it was told, in a tool call if one is forced."""

    models = ("parrot",)
    about = "A parrot."

    async def complete(self, request: ChatRequest) -> Completion:
        said = request.messages[-1].text
        if request.force is None:
            return Completion(text=said)
        name = request.offers[0].name if request.force == "any" else request.force
        return Completion(calls=(ToolUse(name=name, input={"text": said}),))


@pytest.fixture
def faults() -> ModelFaults:
    return ModelFaults()


@pytest.fixture
async def base_url(faults: ModelFaults) -> AsyncIterator[str]:
    async with serve(model_app(Parrot(), api_key=KEY, faults=faults)) as url:
        yield f"{url}/v1"


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0, timeout=HANG_S) as client:
        yield client


async def test_a_plain_answer_carries_text_and_usage(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model="parrot", messages=HELLO)
    assert answer.choices[0].message.content == "hello, town"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0


async def test_a_stream_adds_up_to_the_plain_answer_and_ends_with_usage(client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="parrot", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    parts = [part async for part in stream]
    text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert text == "hello, town"
    assert len([part for part in parts if part.choices and part.choices[0].delta.content]) > 1
    assert parts[-1].choices == []
    assert parts[-1].usage
    assert [part.choices[0].finish_reason for part in parts if part.choices][-1] == "stop"


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("required", "bluesky_post"),
        ({"type": "function", "function": {"name": "bluesky_like"}}, "bluesky_like"),
        ("none", None),
    ],
)
async def test_tool_choice_decides_whether_and_which_tool_is_called(
    client: AsyncOpenAI, choice: Any, called: str | None
) -> None:
    answer = await client.chat.completions.create(
        model="parrot", messages=HELLO, tools=[POST_TOOL, LIKE_TOOL], tool_choice=choice
    )
    calls: list[Any] = list(answer.choices[0].message.tool_calls or [])
    assert [call.function.name for call in calls] == ([called] if called else [])
    assert answer.choices[0].finish_reason == ("tool_calls" if called else "stop")


async def test_a_streamed_tool_call_arrives_in_pieces_that_join_to_json(client: AsyncOpenAI) -> None:
    words: Any = [{"role": "user", "content": "a tide that is a little longer than one piece, ünïcode too"}]
    stream = await client.chat.completions.create(
        model="parrot", messages=words, tools=[POST_TOOL], tool_choice="required", stream=True
    )
    name, arguments, pieces = "", "", 0
    async for part in stream:
        for call in part.choices[0].delta.tool_calls or []:
            assert call.function
            name += call.function.name or ""
            arguments += call.function.arguments or ""
            pieces += 1
    assert name == "bluesky_post"
    assert pieces > 2
    assert json.loads(arguments) == {"text": words[0]["content"]}


async def test_a_tool_result_that_answers_its_call_is_accepted(client: AsyncOpenAI) -> None:
    first = await client.chat.completions.create(
        model="parrot", messages=HELLO, tools=[POST_TOOL], tool_choice="required"
    )
    message = first.choices[0].message
    assert message.tool_calls
    result: Any = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "posted"}
    turns: Any = [*HELLO, message.model_dump(exclude_none=True), result]
    second = await client.chat.completions.create(model="parrot", messages=turns, tools=[POST_TOOL])
    assert second.choices[0].message.content == "posted"


async def test_an_answer_cut_by_max_tokens_says_length(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model="parrot", messages=HELLO, max_tokens=1)
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.content == "hell"


async def test_a_wrong_key_is_refused_everywhere(base_url: str) -> None:
    async with AsyncOpenAI(base_url=base_url, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError) as chat:
            await stranger.chat.completions.create(model="parrot", messages=HELLO)
        assert chat.value.code == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError):
            await stranger.models.list()


async def test_an_unknown_model_is_a_bad_request_with_its_code(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="owl", messages=HELLO)
    assert caught.value.code == "model_not_found"
    assert "owl" in caught.value.message


USER = {"role": "user", "content": "x"}
CALL = {"id": "c1", "type": "function", "function": {"name": "bluesky_post", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"messages": [USER]}, "model"),
        ({"model": "parrot", "messages": []}, "messages"),
        ({"model": "parrot", "messages": [{"role": "king", "content": "x"}]}, "role"),
        ({"model": "parrot", "messages": [{"role": "user", "content": 7}]}, "content"),
        ({"model": "parrot", "messages": [{"role": "tool", "content": "x"}]}, "tool_call_id"),
        ({"model": "parrot", "messages": [{"role": "tool", "tool_call_id": "c9", "content": "x"}]}, "no call"),
        ({"model": "parrot", "messages": [{"role": "assistant", "tool_calls": [CALL]}]}, "not answered"),
        ({"model": "parrot", "messages": [USER], "tools": [{}]}, "tools[0]"),
        ({"model": "parrot", "messages": [USER], "tool_choice": "required"}, "tool_choice"),
        ({"model": "parrot", "messages": [USER], "max_tokens": 0}, "max_tokens"),
    ],
)
def test_a_body_that_breaks_the_protocol_is_refused_and_says_where(body: Any, names: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(names)):
        read_request(body, models=("parrot",))


async def test_a_body_that_is_not_json_is_a_bad_request(base_url: str) -> None:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {KEY}"}) as http:
        answer = await http.post(f"{base_url}/chat/completions", content=b"{nope")
    assert answer.status_code == 400
    assert "JSON" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("kind", "error", "status"),
    [("rate_limited", openai.RateLimitError, 429), ("bad_gateway", openai.InternalServerError, 502)],
)
async def test_an_injected_fault_is_met_once_and_then_the_service_is_well(
    client: AsyncOpenAI, faults: ModelFaults, kind: FaultKind, error: type[openai.APIStatusError], status: int
) -> None:
    faults.arm(Fault(kind, seconds=7))
    with pytest.raises(error) as caught:
        await client.chat.completions.create(model="parrot", messages=HELLO)
    assert caught.value.status_code == status
    assert caught.value.response.headers.get("retry-after") == ("7" if kind == "rate_limited" else None)
    assert (await client.chat.completions.create(model="parrot", messages=HELLO)).choices


async def test_a_hanging_service_lets_the_clients_deadline_strike(client: AsyncOpenAI, faults: ModelFaults) -> None:
    faults.arm(Fault("hang"))
    with pytest.raises(openai.APITimeoutError):
        await client.chat.completions.create(model="parrot", messages=HELLO, timeout=openai.Timeout(HANG_S, read=0.2))


async def test_a_cut_stream_breaks_in_the_middle(client: AsyncOpenAI, faults: ModelFaults) -> None:
    faults.arm(Fault("cut"))
    stream = await client.chat.completions.create(model="parrot", messages=HELLO, stream=True)
    assert await anext(aiter(stream))
    with pytest.raises((openai.APIError, httpx.HTTPError)):
        assert not [part async for part in stream if part.choices[0].finish_reason]


async def test_faults_can_be_set_and_cleared_over_http_by_who_has_the_key(base_url: str, faults: ModelFaults) -> None:
    url = base_url.removesuffix("/v1") + "/town/faults"
    async with httpx.AsyncClient() as http:
        assert (await http.post(url, json={"kind": "hang"})).status_code == 401
        http.headers["authorization"] = f"Bearer {KEY}"
        assert (await http.post(url, json={"kind": "rate_limited", "times": 3})).status_code == 200
        assert (await http.post(url, json={"kind": "earthquake"})).status_code == 400
        assert (await http.post(url, json={"kind": "hang", "colour": 1})).status_code == 400
        assert (await http.get(url)).json()["armed"][0]["times"] == 3
        assert (await http.delete(url)).json() == {"armed": []}
    assert faults.armed == ()


async def test_a_gateway_mind_streams_another_services_answer_through(base_url: str) -> None:
    gateway = GatewayMind(base_url=base_url, api_key=KEY, model="parrot")
    async with (
        serve(model_app(gateway, api_key="front-key")) as front,
        AsyncOpenAI(base_url=f"{front}/v1", api_key="front-key", max_retries=0) as client,
    ):
        stream = await client.chat.completions.create(model="parrot", messages=HELLO, stream=True)
        text = "".join([part.choices[0].delta.content or "" async for part in stream])
        plain = await client.chat.completions.create(model="parrot", messages=HELLO)
    assert text == plain.choices[0].message.content == "hello, town"


async def test_a_gateway_that_is_not_there_is_a_bad_gateway_without_the_key_in_it() -> None:
    gateway = GatewayMind(base_url="http://127.0.0.1:9/v1", api_key="hidden-key-123", model="m")
    async with (
        serve(model_app(gateway, api_key=KEY)) as front,
        AsyncOpenAI(base_url=f"{front}/v1", api_key=KEY, max_retries=0) as client,
    ):
        with pytest.raises(openai.InternalServerError) as caught:
            await client.chat.completions.create(model="m", messages=HELLO)
    assert caught.value.status_code == 502
    assert "hidden" not in str(caught.value) + repr(gateway)


MODEL = "any"
DOT = "data:image/png;base64,iVBORw0KGgo="


def asked(*parts: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": role, "content": list(parts)}]}


def picture(url: object = DOT, **more: object) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_words_and_pictures_of_one_message_are_told_apart() -> None:
    (message,) = read_request(
        asked(words("look"), picture(detail="low"), words("well?"), picture("https://a.example/b.png")), models=[MODEL]
    ).messages
    assert (message.text, message.pictures) == ("look\nwell?", 2)


def test_a_system_prompt_in_parts_reads_as_one_in_paragraphs() -> None:
    parts = (words("I am.") | {"cache_control": {"type": "ephemeral"}}, words("It is noon."))
    (message,) = read_request(asked(*parts, role="system"), models=[MODEL]).messages
    assert message.text == "I am.\n\nIt is noon."


@pytest.mark.parametrize(
    "part",
    [
        picture("iVBORw0KGgo="),
        picture("data:text/html;base64,iVBORw0KGgo="),
        picture("data:image/png;base64,iVBORw0KGgo"),
        picture("data:image/png;base64,"),
        picture("media/a/1.png"),
        picture(None),
        picture(detail="tiny"),
        {"type": "image_url"},
        {"type": "image_url", "image_url": DOT},
    ],
)
def test_what_is_no_picture_is_refused_by_name(part: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match=r"image_url|detail"):
        read_request(asked(words("look"), part), models=[MODEL])


def test_only_a_user_shows_pictures() -> None:
    with pytest.raises(BadRequest, match="Only a user message"):
        read_request(asked(words("look"), picture(), role="system"), models=[MODEL])


def test_a_picture_takes_tokens_of_its_own() -> None:
    plain, seen = (
        read_request(asked(*parts), models=[MODEL]) for parts in ([words("look")], [words("look"), picture()])
    )
    thought = Completion("yes")
    assert usage(seen, thought)["prompt_tokens"] - usage(plain, thought)["prompt_tokens"] == 85
