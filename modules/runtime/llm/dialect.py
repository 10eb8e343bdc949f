"""How a request is worded for the model that it goes to. Pure.

A request is made in its fullest wording: the system prompt in parts with a mark after each that should be kept, marks
in the talk behind it, and a key to find it by. That is what the budget guard measures. What a model does not take is
taken out again, so that what leaves is never larger than what was measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from modules.runtime.llm.types import PromptBlock

Wire = dict[str, Any]

CACHE_KEY = "prompt_cache_key"
FACTS = "facts"
EXTRA_FIELDS = "extra_body"
"""The argument by which the SDK takes fields that the protocol does not name; they stand beside the others."""
MARK = "cache_control"
MOST_MARKS = 4
"""Anthropic refuses a request with more: "A maximum of 4 blocks with cache_control may be provided"."""

_PARAGRAPH = "\n\n"
_LINE = "\n"
_KEPT_FOR_MINUTES = {"type": "ephemeral"}
_ANTHROPIC = re.compile(r"anthropic/|claude", re.IGNORECASE)
_OPENAI = re.compile(r"openai/|(?:.*/)?(?:gpt-\d|chatgpt-|o\d\b)", re.IGNORECASE)
_DEAR_SIGHT = re.compile(r"gpt-4o-mini", re.IGNORECASE)
_OPENAI_HOSTS = ("openai.com", "openai.azure.com")


def takes_marks(model: str) -> bool:
    """Whether the model keeps a prompt only where it is told to."""
    return _ANTHROPIC.search(model) is not None


def takes_cache_key(model: str, base_url: str) -> bool:
    """Whether the service sends requests of one key to where their beginning is known."""
    host = urlsplit(base_url).hostname or ""
    return _OPENAI.match(model) is not None or any(host == name or host.endswith(f".{name}") for name in _OPENAI_HOSTS)


def sees_within_bounds(model: str) -> bool:
    """Whether a picture takes no more than anybody reckons with.

    One family makes 25 501 tokens of a picture when a service on the way drops our request for low detail.
    """
    return _DEAR_SIGHT.search(model) is None


def system_message(system: str | Sequence[PromptBlock]) -> Wire | None:
    """The system prompt in its fullest wording; None if it is empty."""
    if isinstance(system, str):
        return {"role": "system", "content": system} if system else None
    parts = [_part(block) for block in system if block.text]
    return {"role": "system", "content": parts} if parts else None


def with_talk_marked(messages: Sequence[Wire]) -> list[Wire]:
    """The messages with marks on the last words of the user in the earlier talk, and on those that are answered.

    The first mark is for the next turn, the second for the next request of this one: what is answered stands in other
    words later. There is none without an earlier talk, nor behind a system prompt that is not kept itself.
    """
    kept = sum(MARK in part for part in _parts_of(messages[0])) if messages else 0
    said = [place for place, message in enumerate(messages) if message["role"] == "user" and _last_words(message) >= 0]
    marked = said[-2:][: max(0, MOST_MARKS - kept)] if kept and len(said) > 1 else ()
    return [_marked(message) if place in marked else message for place, message in enumerate(messages)]


def worded_for(request: Mapping[str, Any], base_url: str) -> Wire:
    """The request as its model takes it."""
    model = str(request["model"])
    worded = dict(request) if takes_marks(model) else without_marks(request)
    if not takes_cache_key(model, base_url):
        worded.pop(CACHE_KEY, None)
    return worded


def has_marks(request: Mapping[str, Any]) -> bool:
    """Whether the system prompt is in parts."""
    return any(_is_parted_system(message) for message in request.get("messages", ()))


def without_marks(request: Mapping[str, Any]) -> Wire:
    """The system prompt as one text: the same bytes, a blank line between its parts; and the talk without marks."""
    return {**request, "messages": [_unmarked(message) for message in request["messages"]]}


def pictures_in(messages: Sequence[Wire]) -> Iterator[Wire]:
    """What the messages say of each picture, in order: its `url`, and how closely to look."""
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                yield part["image_url"]


def has_pictures(request: Mapping[str, Any]) -> bool:
    """Whether there is something to see."""
    return next(pictures_in(request["messages"]), None) is not None


def without_pictures(request: Mapping[str, Any]) -> Wire:
    """The words alone, as they are sent to a model that cannot see."""
    messages = [_unseen(message) if message["role"] == "user" else message for message in request["messages"]]
    return {**request, "messages": [message for message in messages if message["content"] != ""]}


def chars_of(request: Mapping[str, Any]) -> int:
    """Characters of all that a tokenizer makes tokens of, as far as we wrote it: prompt, words, calls, tools."""
    words = sum(_chars(message) for message in request["messages"])
    return words + sum(_letters(tool["function"]) for tool in request.get("tools", ()))


def _part(block: PromptBlock) -> Wire:
    kept = {} if block.group == "dynamic" else {MARK: _KEPT_FOR_MINUTES}
    return {"type": "text", "text": block.text, **kept}


def _is_parted_system(message: Wire) -> bool:
    return message["role"] == "system" and isinstance(message["content"], list)


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
    """In parts only if it has pictures."""
    content = message["content"]
    if not isinstance(content, list):
        return message
    if all(part["type"] == "text" for part in content):
        return {**message, "content": _text(content, _PARAGRAPH)}
    return {**message, "content": [{key: part[key] for key in part if key != MARK} for part in content]}


def _unseen(message: Wire) -> Wire:
    """Its words as one text, with a mark if there was one."""
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
    """Of a JSON value, as it is commonly written out."""
    return len(json.dumps(value, ensure_ascii=False))
