"""Proves what our messages look like on the wire.

Proves how errors are judged, how long the gateway waits, and what it changes before another try. Proves over real HTTP
how pictures reach a model that sees them, and what a model is told that does not.
"""

import base64
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import format_datetime
from random import Random

import httpx
import pytest

from common.clock import FakeClock
from common.errors import SoulError, Transient
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.llm.connection import NoBudgetGuard, Vision
from modules.runtime.llm.dialect import (
    Image,
    Message,
    Text,
    ToolAnswer,
    ToolCall,
    ToolSpec,
    convert_messages,
    convert_tools,
    create_assistant_tool_use_message,
    create_tool_result_message,
    truncate_tool_result,
)
from modules.runtime.llm.gateway import MOST_PICTURES, LLMGateway
from modules.runtime.llm.policy import (
    CallVerdict,
    adapt_request,
    calculate_backoff,
    classify_llm_error,
    is_own_service,
    retry_after_ms,
    shortened,
    was_refused,
)
from modules.runtime.llm.stream import BrokenStream
from tests.loopback import to_loopback
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, Wire, refuses, says

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


class APIConnectionError(Exception):
    """An error with the name that the SDK uses."""


@pytest.mark.parametrize(
    ("error", "status", "code", "kind"),
    [
        ("bad key", 401, None, "fatal"),
        ("no money", 402, None, "fatal"),
        ("not for you", 403, None, "fatal"),
        ("you exceeded your quota", 429, "insufficient_quota", "fatal"),
        ("key", None, "invalid_api_key", "fatal"),
        ("slow down", 429, None, "transient"),
        *[("later", status, None, "transient") for status in (408, 409, 424, 425, 499, 500, 502, 503, 504, 520, 529)],
        ("overloaded", None, "503", "transient"),
        *[("no such model", status, None, "elsewhere") for status in (301, 404, 405, 410)],
        ("401 unauthorized, the prompt says", 400, None, "unknown"),
        ("the request exceeds the available context size (4096 tokens)", 400, "400", "too_long"),
        ("Input is too long", 400, None, "too_long"),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed", 400, None, "too_long"),
        ("This model's maximum prompt length is 131072 but the request contains 140000", 400, None, "too_long"),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens", 422, None, "too_long"),
        ("Payload Too Large", 413, None, "too_long"),
        ("whatever", 400, "context_length_exceeded", "too_long"),
        ("Failed to call a function", 400, "tool_use_failed", "missed"),
        ("Tool choice is required, but model did not call a tool", 400, "tool_use_failed", "unknown"),
        (TimeoutError(), None, None, "transient"),
        (ConnectionResetError("peer"), None, None, "transient"),
        (BrokenStream("in the middle"), None, None, "transient"),
        (APIConnectionError("x"), None, None, "transient"),
        (json.JSONDecodeError("bad", "{", 1), None, None, "transient"),
        ("request used 4013 tokens", None, None, "unknown"),
        ("HTTP 401 from upstream", None, None, "fatal"),
        ("Error 503: try later", None, None, "transient"),
        ("Rate limit reached", None, None, "transient"),
        ("x" * 300 + " 401 unauthorized", None, None, "unknown"),
        ("odd", None, "odd_code", "unknown"),
    ],
)
def test_an_error_is_judged_by_status_and_type_and_only_then_by_whole_words(
    error: BaseException | str, status: int | None, code: str | None, kind: str
) -> None:
    assert classify_llm_error(error, status, code).kind == kind


def test_a_verdict_is_one_line_even_for_an_error_without_words() -> None:
    assert classify_llm_error(TimeoutError()).message == "TimeoutError"
    assert classify_llm_error("<html>\n  <b>502</b>\n</html>", 502).message == "<html> <b>502</b> </html>"
    assert len(shortened("y" * 1000)) == 301


@pytest.mark.parametrize(
    ("attempt", "hint", "wait"),
    [(0, None, 5000), (1, None, 10_000), (5, None, 60_000), (0, 0, 1000), (2, 120_000, 60_000)],
)
def test_waits_double_up_to_a_minute_and_a_hint_goes_first(attempt: int, hint: float | None, wait: int) -> None:
    assert calculate_backoff(attempt, hint, lambda: 0.0) == wait


def test_jitter_adds_up_to_thirty_percent() -> None:
    assert calculate_backoff(0, None, lambda: 1.0) == 6500


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2000),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 250),
        ({"retry-after": format_datetime(datetime(2026, 1, 5, 12, 0, 30, tzinfo=UTC), usegmt=True)}, 30_000),
        ({"retry-after": "soon"}, None),
    ],
)
def test_the_wait_a_service_asks_for_is_read_from_its_headers(headers: dict[str, str], wait: float | None) -> None:
    assert retry_after_ms(headers, NOW) == wait


REQUEST = {"model": "m", "max_tokens": 9, "temperature": 0.0, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    ("message", "gone", "new"),
    [
        ("Unsupported value: 'temperature' does not support 0", "temperature", {}),
        ("'max_tokens' is not supported, use 'max_completion_tokens'", "max_tokens", {"max_completion_tokens": 9}),
        ("unknown field stream_options", "stream_options", {}),
    ],
)
def test_a_parameter_refused_by_name_is_left_out_or_renamed(message: str, gone: str, new: dict[str, int]) -> None:
    adapted = adapt_request(REQUEST, CallVerdict("unknown", message, 400))
    assert adapted == {key: value for key, value in REQUEST.items() if key != gone} | new
    assert adapt_request(adapted, CallVerdict("unknown", message, 400)) is None


@pytest.mark.parametrize(
    "verdict",
    [CallVerdict("unknown", "no such model", 404), CallVerdict("transient", "temperature of the server room", 503)],
)
def test_other_errors_change_nothing(verdict: CallVerdict) -> None:
    assert adapt_request(REQUEST, verdict) is None


def test_a_long_tool_result_is_cut_with_a_notice_and_a_short_one_is_left_alone() -> None:
    assert truncate_tool_result("abcd", 4) == "abcd"
    cut = truncate_tool_result("abcdefgh", 4)
    assert cut.startswith("abc\n\n[TRUNCATED: 8 characters")
    assert cut.endswith("]\n\nh")


@pytest.mark.parametrize(
    ("status", "refused"),
    [(400, True), (401, True), (404, True), (422, True), (429, True), (302, True), (521, True), (529, True)]
    + [(status, False) for status in (200, 303, 408, 409, 424, 499, 500, 502, 503, 504, 522)],
)
def test_only_a_refusal_at_once_is_sure_to_have_cost_nothing(status: int, *, refused: bool) -> None:
    assert was_refused(Exception("no"), status) is refused


@pytest.mark.parametrize(
    ("cause", "refused"),
    [
        (httpx.ConnectError("nobody there"), True),
        (httpx.ConnectTimeout("nobody there"), True),
        (httpx.PoolTimeout("no free connection"), True),
        (httpx.ReadTimeout("slow"), False),
        (httpx.RemoteProtocolError("cut off"), False),
        (TimeoutError("slow"), False),
        (BrokenStream("half an answer"), False),
    ],
)
def test_a_request_that_never_left_cost_nothing_and_one_that_may_have_arrived_might(
    cause: Exception, *, refused: bool
) -> None:
    wrapped = APIConnectionError("Connection error.")
    wrapped.__cause__ = cause
    assert was_refused(wrapped, None) is refused
    assert was_refused(cause, None) is refused


@pytest.mark.parametrize(
    ("base_url", "own"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://localhost:1234/v1", True),
        ("http://attic.local/v1", True),
        ("https://models.example/v1", False),
        ("https://local.example/v1", False),
        ("", False),
    ],
)
def test_a_service_of_the_owners_own_bills_nobody(base_url: str, own: bool) -> None:  # noqa: FBT001
    assert is_own_service(base_url) is own


def test_the_system_prompt_comes_first_and_an_empty_one_not_at_all() -> None:
    assert convert_messages([Message("user", "hi")], "be kind") == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
    ]
    assert convert_messages([Message("user", "hi")]) == [{"role": "user", "content": "hi"}]


def test_tool_answers_go_ahead_of_the_words_of_their_message_and_those_without_id_are_dropped() -> None:
    message = Message(
        "user", (Text("one"), ToolAnswer("abcdef012", "look", "seen"), Text("two"), ToolAnswer("", "lost", "gone"))
    )
    assert convert_messages([message]) == [
        {"role": "tool", "tool_call_id": "abcdef012", "content": "seen"},
        {"role": "user", "content": "one\ntwo"},
    ]


def test_calls_go_out_under_ids_that_every_service_takes_each_once_and_its_answer_under_the_same() -> None:
    ids = ["call_Zk31bQ0xP7vT5nWm2LrY8hJd", "functions.look:0", "abcdef012", "", "x" * 60]
    rounds = [ids, [ids[0], ids[0]], ids[:3]]
    said = [
        message
        for given in rounds
        for message in (
            create_assistant_tool_use_message("", [ToolCall(one, "look") for one in given]),
            create_tool_result_message([ToolAnswer(one, "look", "seen") for one in given if one]),
        )
    ]
    wire = convert_messages(said)
    called = [[call["id"] for call in item["tool_calls"]] for item in wire if item["role"] == "assistant"]
    every = [one for names in called for one in names]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", one) for one in every)
    assert len(set(every)) == len(every)
    answered = [item["tool_call_id"] for item in wire if item["role"] == "tool"]
    assert answered == [
        one for names, given in zip(called, rounds, strict=True) for one, id_ in zip(names, given, strict=False) if id_
    ]
    assert convert_messages(said[:2]) == wire[: len(convert_messages(said[:2]))]


def test_the_model_can_see_that_a_call_failed() -> None:
    answers = [ToolAnswer("a", "t", "no such post", is_error=True), ToolAnswer("b", "t", "Blocked: no", is_error=True)]
    wire = convert_messages([create_tool_result_message(answers)])
    assert [item["content"] for item in wire] == ["Error: no such post", "Blocked: no"]


def test_an_assistant_turn_carries_words_and_calls_together_and_an_empty_one_is_dropped() -> None:
    spoken = create_assistant_tool_use_message("Let me see.", [ToolCall("a", "look", {"who": "Zoë"})])
    silent = create_assistant_tool_use_message("", [ToolCall("b", "look")])
    wire = convert_messages([spoken, silent, Message("assistant", ""), Message("assistant", ())])
    assert [(item["content"], item["tool_calls"][0]["function"]["arguments"]) for item in wire] == [
        ("Let me see.", '{"who": "Zoë"}'),
        (None, "{}"),
    ]


def test_each_answer_is_cut_to_size_on_its_own() -> None:
    message = create_tool_result_message([ToolAnswer("a", "t", "x" * 40_000), ToolAnswer("b", "t", "short")])
    long, short = [block for block in message.content if isinstance(block, ToolAnswer)]
    assert "[TRUNCATED:" in long.content
    assert short.content == "short"


def test_a_tool_becomes_a_function_with_its_schema() -> None:
    schema = {"type": "object", "properties": {}}
    assert convert_tools([ToolSpec("look", "Looks.", schema)]) == [
        {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": schema}}
    ]


DOT = Image("media/a/1.png", "image/png", "a red dot")
GONE = Image("media/a/gone.png", "image/png", "a tree")
LOOK = [Message("user", (Text("look"), DOT, Text("well?")))]
SECRET = "hunter2-hunter2"
BYTES = SECRET.encode()
URL = f"data:image/webp;base64,{base64.b64encode(BYTES).decode()}"
SEEN = [
    {"type": "text", "text": "look"},
    {"type": "text", "text": "a red dot"},
    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
    {"type": "text", "text": "well?"},
]
TOLD = "look\na red dot\nwell?"
NOT_HERE = "Invalid content type. image_url is only supported by certain models."


class Store:
    """A media store that has everything but keys with `gone` in them; `asked` keeps the keys."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def get(self, key: str) -> tuple[str, bytes] | None:
        self.asked.append(key)
        return None if "gone" in key else ("image/webp", BYTES if key == DOT.key else key.encode())


class Gateways:
    """Opens gateways to the scripted model, and closes them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = Store()
        self.console = SilentConsole()
        self.made: list[LLMGateway] = []
        self.received: list[tuple[str, int, int]] = []

    def open(
        self, vision: Vision = "auto", *, model: str = "seer", blind: bool = False, max_retries: int = 3
    ) -> LLMGateway:
        opened = LLMGateway(
            transport=to_loopback,
            base_url=self.url,
            api_key="made-up",
            model=model,
            clock=FakeClock(),
            rng=Random(7),
            console=self.console,
            budget_guard=NoBudgetGuard(),
            redactor=Redactor([SECRET]),
            hydrate=None if blind else self.store.get,
            vision=vision,
            max_retries=max_retries,
            on_measured=lambda *told: self.received.append(told),
        )
        self.made.append(opened)
        return opened


@pytest.fixture
async def gateways(model: ScriptedModel) -> AsyncIterator[Gateways]:
    gateways = Gateways(model.url)
    yield gateways
    for opened in gateways.made:
        await opened.aclose()


def last_words(request: Wire) -> object:
    return request["messages"][-1]["content"]


@pytest.mark.parametrize("vision", ["on", "auto"])
async def test_a_picture_goes_with_its_description_and_with_its_bytes_untouched(
    gateways: Gateways, model: ScriptedModel, vision: Vision
) -> None:
    model.plays(says("red"))
    await gateways.open(vision).chat(LOOK)
    assert last_words(model.requests[0]) == SEEN
    assert gateways.received == []


async def test_words_beside_a_picture_are_still_searched_for_secrets(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("red"))
    await gateways.open().chat([Message("user", (Text(f"it is {SECRET}"), Image("k", "image/png", f"says {SECRET}")))])
    words = [part["text"] for part in model.requests[0]["messages"][0]["content"] if part["type"] == "text"]
    assert words == ["it is [redacted]", "says [redacted]"]


async def test_with_vision_off_or_no_store_the_description_goes_alone(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("a"), says("b"), says("c"))
    await gateways.open("off").chat(LOOK)
    await gateways.open(blind=True).chat(LOOK)
    await gateways.open(model="openai/gpt-4o-mini").chat(LOOK)
    assert [last_words(request) for request in model.requests] == [TOLD] * 3
    assert gateways.store.asked == []
    assert len(gateways.received) == 3


async def test_a_picture_that_is_gone_or_has_no_key_is_told(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("a"))
    await gateways.open().chat([Message("user", (GONE, Image("", "", "a hill")))])
    assert last_words(model.requests[0]) == "a tree\na hill"
    assert gateways.store.asked == ["media/a/gone.png"]


@pytest.mark.parametrize(
    "refusal",
    [
        refuses(400, NOT_HERE),
        refuses(404, "No endpoints found that support image input"),
        refuses(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    ],
)
async def test_a_model_that_cannot_see_is_told_at_once_and_not_shown_a_picture_again(
    gateways: Gateways, model: ScriptedModel, refusal: Reply
) -> None:
    model.plays(refusal, says("a"), says("b"))
    opened = gateways.open()
    assert await opened.chat(LOOK) == "a"
    assert await opened.chat(LOOK) == "b"
    assert [last_words(request) for request in model.requests] == [SEEN, TOLD, TOLD]
    assert len(gateways.console.lines) == 1
    assert len(gateways.store.asked) == 1


async def test_one_picture_that_is_refused_does_not_make_a_model_blind(
    gateways: Gateways, model: ScriptedModel
) -> None:
    model.plays(refuses(400, "Could not process image"), says("a"), says("b"))
    opened = gateways.open()
    await opened.chat(LOOK)
    await opened.chat(LOOK)
    assert [last_words(request) for request in model.requests] == [SEEN, TOLD, SEEN]


async def test_a_failure_that_only_speaks_of_images_is_tried_again(model: ScriptedModel) -> None:
    gateways = Gateways(model.url)
    model.plays(refuses(500, "failed to pull image for the worker"))
    opened = gateways.open(max_retries=0)
    with pytest.raises(Transient):
        await opened.chat(LOOK)
    assert opened.sees()
    await opened.aclose()


async def test_with_vision_on_the_next_picture_is_shown_all_the_same(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(refuses(400, NOT_HERE), says("a"), says("b"))
    opened = gateways.open("on")
    await opened.chat(LOOK)
    await opened.chat(LOOK)
    assert [last_words(request) for request in model.requests] == [SEEN, TOLD, SEEN]


async def test_words_about_pictures_are_no_lesson_where_none_was_sent(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(refuses(400, NOT_HERE))
    with pytest.raises(SoulError, match="image_url"):
        await gateways.open().chat([Message("user", "hello")])
    assert len(model.requests) == 1


async def test_only_the_newest_pictures_are_shown_each_in_its_place(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("a"))
    many = MOST_PICTURES + 3
    said = [Message("user", (Image(f"k{number}", "image/png", f"picture {number}"),)) for number in range(many)]
    await gateways.open().chat([*said, Message("user", "well?")])
    contents = [message["content"] for message in model.requests[0]["messages"]]
    assert contents[:3] == ["picture 0", "picture 1", "picture 2"]
    assert all(isinstance(content, list) for content in contents[3:many])
    urls = [content[1]["image_url"]["url"] for content in contents[3:many]]
    shown = [base64.b64decode(url.partition(",")[2]).decode() for url in urls]
    assert shown == [f"k{number}" for number in range(3, many)]
    assert sorted(gateways.store.asked) == sorted(shown)
