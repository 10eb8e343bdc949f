"""The messages of a model as this program knows them, and how they are written for the service. Pure.

A request is made in its fullest wording: the system prompt in parts with a mark after each that should be cached, marks
in the conversation behind it, and a cache key. That is what the budget guard measures. What a model does not accept is
taken out again, so that what leaves is never larger than what was measured.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

CacheGroup = Literal["static", "semi-static", "dynamic"]
GROUPS: tuple[CacheGroup, ...] = ("static", "semi-static", "dynamic")


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """The text of one cache group, as it is sent."""

    group: CacheGroup
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a message: its key in the media store, and what its author says it shows."""

    key: str
    mime: str
    alt: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool by the model. `input` is what it sent, parsed; `malformed` says why it could not be.

    `service_fields` is what the service sent with the call and wants back unread: the thought before, or its signature.
    """

    id: str
    name: str
    input: dict[str, Any] = field(default_factory=dict)
    malformed: str = ""
    service_fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer to a tool call; `is_held`: its act waits for the owner's approval."""

    tool_use_id: str
    name: str
    content: str
    is_error: bool = False
    is_held: bool = False


Block: TypeAlias = Text | Image | ToolCall | ToolAnswer


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation with the model."""

    role: Literal["user", "assistant"]
    content: str | tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. `input_schema` is JSON Schema of an object."""

    name: str
    description: str
    input_schema: dict[str, Any]


ToolChoice: TypeAlias = Literal["auto", "required"]
StopReason: TypeAlias = Literal["end_turn", "tool_use", "max_tokens"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls used: tokens as the service counted them, and what the budget says of them.

    Attributes:
        input_tokens: zero if the service does not say.
        output_tokens: the same; hidden reasoning included.
        cost_usd: of every attempt, failed ones included; None while no price is known.
        cached_tokens: how many of the input tokens the service had cached; zero if it does not say.
        step: how far the day's budget was used, in the budget's words; "" without one.
        model: the model that was asked, which need not be the one of the settings.

    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    step: str = ""
    model: str = field(default="", compare=False)
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; `step` and `model` are those of the later one."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(costs) if costs else None,
            other.step or self.step,
            other.model or self.model,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class ChatResult:
    """The model's answer.

    `refusal` says why there is none, in the service's words or by its name for the reason; then there are neither text
    nor calls. `attempts` counts the calls that were needed; `seconds` is the total time.
    """

    text: str
    refusal: str = field(default="", kw_only=True)
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = "end_turn"
    usage: Usage = Usage()
    model: str = ""
    attempts: int = 1
    seconds: float = 0.0

    @property
    def cost_usd(self) -> float | None:
        """The cost of the whole call, all attempts; None if the price is unknown."""
        return self.usage.cost_usd

    def arguments(self, tool: str) -> dict[str, Any] | None:
        """Return the arguments of the first call of `tool` that can be read, or None."""
        return next((call.input for call in self.tool_calls if call.name == tool and not call.malformed), None)


Wire = dict[str, Any]

CACHE_KEY = "prompt_cache_key"
FACTS = "facts"
EXTRA_FIELDS = "extra_body"
"""The SDK's argument for fields that the protocol does not name; they are sent beside the others."""
REASONING, REASONING_PARTS, CALL_FIELD = "reasoning_content", "reasoning_details", "extra_content"
"""Fields that services send with calls and want back; otherwise they refuse the next request.

DeepSeek and Kimi use the first, OpenRouter the second, both in the message; Gemini the third, in a call.
"""
MESSAGE_FIELDS = (REASONING, REASONING_PARTS)
THOUGHT_FIELDS = (*MESSAGE_FIELDS, CALL_FIELD)
MARK = "cache_control"
MOST_MARKS = 4
"""Anthropic refuses a request with more: "A maximum of 4 blocks with cache_control may be provided"."""

_SILENCE = "\u2026"
_STAND_INS = {
    REASONING: _SILENCE,  # Kimi treats an empty one as missing
    CALL_FIELD: {"google": {"thought_signature": "skip_thought_signature_validator"}},  # Google's own stand-in
}
_PARAGRAPH = "\n\n"
_LINE = "\n"
_KEPT_FOR_MINUTES = {"type": "ephemeral"}
_ANTHROPIC = re.compile(r"anthropic/|claude", re.IGNORECASE)
_OPENAI = re.compile(r"openai/|(?:.*/)?(?:gpt-\d|chatgpt-|o\d\b)", re.IGNORECASE)
_DEAR_SIGHT = re.compile(r"gpt-4o-mini", re.IGNORECASE)
_OPENAI_HOSTS = ("openai.com", "openai.azure.com")


def takes_marks(model: str) -> bool:
    """Return whether the model caches a prompt only where a mark tells it to."""
    return _ANTHROPIC.search(model) is not None


def takes_cache_key(model: str, base_url: str) -> bool:
    """Return whether the service sends requests with one cache key to where their beginning is cached."""
    host = urlsplit(base_url).hostname or ""
    return _OPENAI.match(model) is not None or any(host == name or host.endswith(f".{name}") for name in _OPENAI_HOSTS)


def sees_within_bounds(model: str) -> bool:
    """Return whether a picture takes no more tokens than the budget expects.

    One family makes 25 501 tokens of a picture when a service on the way drops our request for low detail.
    """
    return _DEAR_SIGHT.search(model) is None


def system_message(system: str | Sequence[PromptBlock]) -> Wire | None:
    """Return the system prompt in its fullest wording; None if it is empty."""
    if isinstance(system, str):
        return {"role": "system", "content": system} if system else None
    parts = [_part(block) for block in system if block.text]
    return {"role": "system", "content": parts} if parts else None


def with_talk_marked(messages: Sequence[Wire]) -> list[Wire]:
    """Return the messages with marks on the user's last words in the earlier conversation, and on those now answered.

    The first mark is for the next turn, the second for the next request of this one: what is answered now has other
    words later. There are no marks without an earlier conversation, or behind a system prompt that is not cached
    itself.
    """
    kept = sum(MARK in part for part in _parts_of(messages[0])) if messages else 0
    said = [place for place, message in enumerate(messages) if message["role"] == "user" and _last_words(message) >= 0]
    marked = said[-2:][: max(0, MOST_MARKS - kept)] if kept and len(said) > 1 else ()
    return [_marked(message) if place in marked else message for place, message in enumerate(messages)]


def worded_for(request: Mapping[str, Any], base_url: str) -> Wire:
    """Return the request as its model accepts it."""
    model = str(request["model"])
    worded = dict(request) if takes_marks(model) else without_marks(request)
    if not takes_cache_key(model, base_url):
        worded.pop(CACHE_KEY, None)
    return worded


def has_marks(request: Mapping[str, Any]) -> bool:
    """Return whether the system prompt is in parts."""
    return any(_is_parted_system(message) for message in request.get("messages", ()))


def without_marks(request: Mapping[str, Any]) -> Wire:
    """Return the request with the system prompt as one text, a blank line between its parts, and without any mark."""
    return {**request, "messages": [_unmarked(message) for message in request["messages"]]}


def has_thoughts(request: Mapping[str, Any]) -> bool:
    """Return whether the request holds a service's thoughts: their tokens are unknown, and some services drop them."""
    return any(_has_field(message, name) for message in request["messages"] for name in THOUGHT_FIELDS)


def with_stand_ins(request: Mapping[str, Any], name: str) -> Wire | None:
    """Return the request with a stand-in for the field in each message with calls that lacks it; None if none does.

    Such calls were made in an earlier turn, by another model, or as text. A stand-in is less than the overhead that is
    measured for each message and call.
    """
    lacking = [bool(message.get("tool_calls")) and not _has_field(message, name) for message in request["messages"]]
    if name not in _STAND_INS or not any(lacking):
        return None
    messages = zip(request["messages"], lacking, strict=True)
    return {**request, "messages": [_stood_in(message, name) if lacks else message for message, lacks in messages]}


def without_field(request: Mapping[str, Any], name: str) -> Wire | None:
    """Return the request without that field of a service's thoughts; None if it has none."""
    if not any(_has_field(message, name) for message in request["messages"]):
        return None
    return {**request, "messages": [_fieldless(message, name) for message in request["messages"]]}


def with_silences(request: Mapping[str, Any]) -> Wire | None:
    """Return the request with a silent answer between a user message and a user or tool message before it, or None."""
    messages: list[Wire] = []
    for message in request["messages"]:
        if message["role"] == "user" and messages and messages[-1]["role"] in {"user", "tool"}:
            messages.append({"role": "assistant", "content": _SILENCE})
        messages.append(message)
    return {**request, "messages": messages} if len(messages) > len(request["messages"]) else None


def pictures_in(messages: Sequence[Wire]) -> Iterator[Wire]:
    """Yield the `image_url` object of each picture in the messages, in order: its `url`, and how closely to look."""
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                yield part["image_url"]


def has_pictures(request: Mapping[str, Any]) -> bool:
    """Return whether the request holds a picture."""
    return next(pictures_in(request["messages"]), None) is not None


def without_pictures(request: Mapping[str, Any]) -> Wire:
    """Return the request without pictures, as it is sent to a model that cannot see."""
    messages = [_unseen(message) if message["role"] == "user" else message for message in request["messages"]]
    return {**request, "messages": [message for message in messages if message["content"] != ""]}


def chars_of(request: Mapping[str, Any]) -> int:
    """Return how many characters a tokenizer gets, as far as we wrote them: prompt, words, calls, tools."""
    words = sum(_chars(message) for message in request["messages"])
    return words + sum(_letters(tool["function"]) for tool in request.get("tools", ()))


def _part(block: PromptBlock) -> Wire:
    kept = {} if block.group == "dynamic" else {MARK: _KEPT_FOR_MINUTES}
    return {"type": "text", "text": block.text, **kept}


def _is_parted_system(message: Wire) -> bool:
    return message["role"] == "system" and isinstance(message["content"], list)


def _has_field(message: Wire, name: str) -> bool:
    return name in message or any(name in call for call in message.get("tool_calls", ()))


def _fieldless(message: Wire, name: str) -> Wire:
    bare = {key: value for key, value in message.items() if key != name}
    calls = [{key: value for key, value in call.items() if key != name} for call in message.get("tool_calls", ())]
    return bare | {"tool_calls": calls} if calls else bare


def _stood_in(message: Wire, name: str) -> Wire:
    """Return the message with the field in its place: in the message, or only in the first of its calls."""
    field = {name: _STAND_INS[name]}
    if name in MESSAGE_FIELDS:
        return message | field
    first, *more = message["tool_calls"]
    return message | {"tool_calls": [first | field, *more]}


def _parts_of(message: Wire) -> list[Wire]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content or ""}]


def _last_words(message: Wire) -> int:
    """Return the place of the last part that can bear a mark; -1 if there is none.

    Anthropic takes no mark on an empty text, OpenRouter none on a picture.
    """
    worded = (place for place, part in enumerate(_parts_of(message)) if part["type"] == "text" and part["text"].strip())
    return max(worded, default=-1)


def _marked(message: Wire) -> Wire:
    parts, last = _parts_of(message), _last_words(message)
    return {**message, "content": [*parts[:last], {**parts[last], MARK: _KEPT_FOR_MINUTES}, *parts[last + 1 :]]}


def _unmarked(message: Wire) -> Wire:
    """Return the message without marks, in parts only if it has pictures."""
    content = message["content"]
    if not isinstance(content, list):
        return message
    if all(part["type"] == "text" for part in content):
        return {**message, "content": _text(content, _PARAGRAPH)}
    return {**message, "content": [{key: part[key] for key in part if key != MARK} for part in content]}


def _unseen(message: Wire) -> Wire:
    """Return the message with its words as one text, with a mark if there was one."""
    parts = _parts_of(message)
    words = {**message, "content": _text(parts, _LINE)}
    return _marked(words) if any(MARK in part for part in parts) else words


def _text(content: Sequence[Wire], between: str) -> str:
    return between.join(part["text"] for part in content if part["type"] == "text")


def _chars(message: Wire) -> int:
    content = message["content"]
    said = len(_text(content, _LINE)) if isinstance(content, list) else len(content or "")
    return said + sum(_letters(call["function"]) for call in message.get("tool_calls", ()))


def _letters(value: Any) -> int:  # noqa: ANN401 - any JSON value
    """Return the length of a JSON value as it is commonly written."""
    return len(json.dumps(value, ensure_ascii=False))


LLM_MAX_TOOL_RESULT_CHARS = 30_000


def truncate_tool_result(content: str, limit: int = LLM_MAX_TOOL_RESULT_CHARS) -> str:
    """Return `content`, or `limit` characters of it, with a notice before the last quarter of them.

    The end is kept, so that what frames somebody's words is still closed.
    """
    if len(content) <= limit:
        return content
    last = limit // 4
    first = limit - last
    notice = f"[TRUNCATED: {len(content)} characters in all, the first {first} and the last {last} shown]"
    return f"{content[:first]}\n\n{notice}\n\n{content[len(content) - last :]}"


FAILURE_WORDS = ("Error:", "Blocked:", "BLOCKED:", "SKIPPED:", "CONVERTED TO LIKE:")
_DETAIL = "low"
_ID_LENGTH = 9
_ID = re.compile(rf"[A-Za-z0-9]{{{_ID_LENGTH}}}")


def convert_messages(messages: Iterable[Message], system: str | Sequence[PromptBlock] = "") -> list[Wire]:
    """Return the whole conversation for the wire: `system` first, tool answers before the words of the same message.

    A picture has its key in place of a URL: its bytes are put there after the words were searched for secrets. Calls
    get ids that every service accepts, whichever service or program named them.
    """
    first = system_message(system)
    wire: list[Wire] = [first] if first else []
    ids = _CallIds()
    for message in messages:
        blocks: Sequence[Block] = (Text(message.content),) if isinstance(message.content, str) else message.content
        wire.extend(_user(blocks, ids) if message.role == "user" else _assistant(blocks, ids))
    return with_talk_marked(wire)


def convert_tools(tools: Iterable[ToolSpec]) -> list[Wire]:
    """Return the tools as functions with JSON Schema parameters."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in tools
    ]


def create_tool_result_message(answers: Iterable[ToolAnswer]) -> Message:
    """Return the user message that carries the answers to a round of tool calls, each cut to size."""
    return Message("user", tuple(replace(one, content=truncate_tool_result(one.content)) for one in answers))


def with_shorter_answers(messages: Iterable[Message], limit: int) -> list[Message]:
    """Return the messages with at most `limit` characters of each tool answer."""
    return [
        message
        if isinstance(message.content, str)
        else replace(message, content=tuple(_within(block, limit) for block in message.content))
        for message in messages
    ]


def longest_answer(messages: Iterable[Message]) -> int:
    """Return how many characters the longest tool answer in these messages has; 0 if there is none."""
    said = (message.content for message in messages if not isinstance(message.content, str))
    return max((len(block.content) for blocks in said for block in blocks if isinstance(block, ToolAnswer)), default=0)


def create_assistant_tool_use_message(text: str, tool_calls: Iterable[ToolCall]) -> Message:
    """Return the assistant message that called tools, as the model must see it again."""
    return Message("assistant", (*((Text(text),) if text else ()), *tool_calls))


def _within(block: Block, limit: int) -> Block:
    if not isinstance(block, ToolAnswer):
        return block
    return replace(block, content=truncate_tool_result(block.content, limit))


class _CallIds:
    """Gives calls ids that all services accept: nine letters or digits, each used once in a conversation.

    The id depends on the original one and on how often that came before, so that a conversation begins with the same
    bytes in each request.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._open: defaultdict[str, deque[str]] = defaultdict(deque)

    def of_calls(self, calls: Sequence[ToolCall]) -> list[str]:
        """Return ids for the calls of one message; the answers that follow are to these."""
        self._open.clear()
        names = []
        for call in calls:
            names.append(self._named(call.id))
            self._open[call.id].append(names[-1])
            self._seen[call.id] += 1
        return names

    def of_answer(self, call_id: str) -> str:
        """Return the id of the call that is answered."""
        named = self._open[call_id]
        if not named:
            return self._named(call_id)
        return named.popleft() if len(named) > 1 else named[0]

    def _named(self, call_id: str) -> str:
        before = self._seen[call_id]
        if not before and _ID.fullmatch(call_id):
            return call_id
        return hashlib.sha256(f"{call_id} {before}".encode(errors="replace")).hexdigest()[:_ID_LENGTH]


def _user(blocks: Sequence[Block], ids: _CallIds) -> list[Wire]:
    answers = [block for block in blocks if isinstance(block, ToolAnswer) and block.tool_use_id]
    wire: list[Wire] = [
        {"role": "tool", "tool_call_id": ids.of_answer(answer.tool_use_id), "content": _visible(answer)}
        for answer in answers
    ]
    if any(isinstance(block, Image) for block in blocks):
        return [*wire, {"role": "user", "content": [part for block in blocks for part in _parts(block)]}]
    text = _joined(blocks)
    return [*wire, {"role": "user", "content": text}] if text else wire


def _parts(block: Block) -> list[Wire]:
    """Return words as a part; a picture as its description and itself."""
    words = block.text if isinstance(block, Text) else block.alt if isinstance(block, Image) else ""
    parts: list[Wire] = [{"type": "text", "text": words}] if words else []
    if isinstance(block, Image):
        parts.append({"type": "image_url", "image_url": {"url": block.key, "detail": _DETAIL}})
    return parts


def _assistant(blocks: Sequence[Block], ids: _CallIds) -> list[Wire]:
    text = _joined(blocks)
    asked = [block for block in blocks if isinstance(block, ToolCall)]
    calls = [
        {
            **{name: value for name, value in call.service_fields.items() if name == CALL_FIELD},
            "id": call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.input, ensure_ascii=False)},
        }
        for call, call_id in zip(asked, ids.of_calls(asked), strict=True)
    ]
    if not text and not calls:
        return []
    thought = {name: value for call in asked for name, value in call.service_fields.items() if name in MESSAGE_FIELDS}
    return [{"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {}), **thought}]


def _joined(blocks: Iterable[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)


def without_status(answer: str) -> str:
    """Return the answer to a failed call without the word in front that tells a model of the failure."""
    status = next((word for word in FAILURE_WORDS if answer.startswith(word)), "")
    return answer.removeprefix(status).strip()


def _visible(answer: ToolAnswer) -> str:
    if answer.is_error and not answer.content.startswith(FAILURE_WORDS):
        return f"Error: {answer.content}"
    return answer.content
