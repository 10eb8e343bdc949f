"""Finds the tool call in what a model really wrote.

Small models fence their JSON, wrap it in prose, encode it twice, or write the call as text instead of making it. These
pure rules read such answers; what cannot be read is said to be malformed, so that the model can be told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from common.lenient_json import with_whole_pairs
from common.tolerant import named
from modules.runtime.llm.reasoning import without_reasoning
from modules.runtime.llm.types import ToolSpec
from modules.runtime.llm.written_calls import begins, begins_again, marked_call, named_call, python_call, whole_call

_OPENING = re.compile(r"(?:<tool_call>|```(?:json|tool_call)?)\s*(?=\{)")
_CLOSING = re.compile(r"\s*(?:</tool_call>|```)?")
_CUT_START = re.compile(r"\s*(?:\{|```|<tool_call>)|.*<tool_call>", re.DOTALL)
_REGION_END = re.compile(
    r"</(?:\w+:)?(?:tool|function)_?calls?>|</function>(?!\s*</)|</invoke>(?!\s*</)|<[|\uff5c]/?(?:tool[_\u2581]calls?[_\u2581]end|END_ACTION|/tool_call)"
    r"[|\uff5c]>|<tool_call\|>",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\A```\w*[ \t\r]*\n|\n[ \t]*```\Z")
_WHOLE_FENCE = re.compile(r"\A\s*```\w*[ \t]*\n((?:(?!```).)*)```\s*\Z", re.DOTALL)
_MAX_STARTS = 64


@dataclass(frozen=True, slots=True)
class SalvagedCall:
    """A call that was written as text."""

    name: str
    arguments: dict[str, Any]
    malformed: str = ""


def parse_arguments(raw: str) -> tuple[dict[str, Any], str]:
    """Read the arguments of a call: `(arguments, "")`, or `({}, why not)`. No arguments at all are an empty object."""
    if not raw.strip():
        return {}, ""
    value = _loads(raw)
    if isinstance(value, str):
        value = _loads(value)
    if isinstance(value, dict):
        return value, ""
    answer = without_reasoning(raw)
    inside = next((found for _, _, found in _objects(answer) if found is not None), None)
    return ({}, "the arguments are not one JSON object") if inside is None else (inside, "")


def find_calls(text: str, offered: Sequence[ToolSpec], *, required: bool) -> tuple[str, tuple[SalvagedCall, ...]]:
    """The calls written in `text`, and what is left of it.

    Without `required` only calls that end the answer count, and they must be marked (`<tool_call>`, a code fence) or be
    all of it: a model that merely shows JSON, or quotes someone who does, has not called. With `required` a bare object
    counts anywhere, and for a single offered tool its arguments alone.
    """
    found: list[SalvagedCall] = []
    kept, position = "", 0
    for start, end, value in _objects(text):
        opening = _opening_before(text, start)
        call = _as_call(value, offered, required=required)
        bare = opening is None and text.strip() != text[start:end]
        if call is None or (bare and not required):
            continue
        begin = start if opening is None else opening
        if found and not required and text[position:begin].strip():
            found, kept, position = [], "", 0
        closing = _CLOSING.match(text, end)
        kept += text[position:begin]
        position = closing.end() if closing else end
        found.append(call)
    if not found or (not required and text[position:].strip()):
        return text, ()
    return (kept + text[position:]).strip(), tuple(found)


def looks_cut(text: str) -> bool:
    """Whether `text` reads like the first part of a call that never came to its end."""
    return bool(_CUT_START.match(text)) and all(value is None for _, _, value in _objects(text))


def _as_call(value: dict[str, Any] | None, offered: Sequence[ToolSpec], *, required: bool) -> SalvagedCall | None:
    if value is None:
        return None
    call = named_call(value)
    if call and call[0] in {tool.name for tool in offered}:
        return SalvagedCall(call[0], _arguments(call[1]))
    if required and len(offered) == 1 and value:
        fields = offered[0].input_schema.get("properties", {})
        if named(value, fields).keys() <= fields.keys():
            return SalvagedCall(offered[0].name, value)
    return None


def _arguments(given: object) -> dict[str, Any]:
    if isinstance(given, str):
        given, _ = parse_arguments(given)
    return given if isinstance(given, dict) else {}


def split_calls(text: str) -> tuple[str, tuple[SalvagedCall, ...]]:
    """What was said before the first call in marks, and every call from there on.

    A call with words after it did not end the answer: whether it was meant is unsure, and what follows may tell of it
    as done. It is said to be malformed, so that the model is told that nothing was run.
    """
    whole, text = text, _WHOLE_FENCE.sub(r"\1", text)
    start = begins(text)
    if start is None:
        return whole, ()
    spoken, found = text[:start].strip(), []
    while start is not None:
        end = _region_end(text, start)
        following = begins_again(text, end)
        region, after = text[start:end], text[end:following]
        called = [call for _, _, value in _objects(region) if value is not None and (call := named_call(value))]
        words = re.sub(r"<[^<>]{1,60}>|\[/?[A-Z_]+\]|[`\s\]]", "", after)
        why = "" if not words else "it was written among words, so nothing was run"
        found += [SalvagedCall(name, _arguments(given), why) for name, given in called]
        if not called and (call := marked_call(region)):
            found.append(SalvagedCall(*call, why))
        start = following
    return spoken, tuple(found) or (SalvagedCall("", {}, "it was written as text, and cannot be read"),)


def bare_call(text: str, offered: Sequence[ToolSpec]) -> SalvagedCall | None:
    """The call that is all of `text`, of any tool as JSON, and of one that is offered in Python; None if it is none."""
    inside = _FENCE.sub("", text.strip()).strip()
    value = _loads(inside) if inside.startswith(("{", "[")) else None
    call = whole_call(value[0] if isinstance(value, list) and len(value) == 1 else value)
    if call is None:
        call = python_call(inside) if any(tool.name in inside for tool in offered) else None
        call = call if call and call[0] in {tool.name for tool in offered} else None
    return SalvagedCall(call[0], _arguments(call[1])) if call else None


def _region_end(text: str, start: int) -> int:
    """Where the call ends that begins there: behind its closing mark, else with its last JSON, else with the text."""
    closing = _REGION_END.search(text, start + 1)
    if closing:
        return closing.end()
    ends = [end for begin, end, value in _objects(text[start:]) if value is not None]
    return start + ends[-1] if ends else len(text)


def _opening_before(text: str, start: int) -> int | None:
    return next((match.start() for match in _OPENING.finditer(text, 0, start + 1) if match.end() == start), None)


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
    """The outermost balanced `{…}` in `text`: where each starts and ends, and its value if it is JSON."""
    position = 0
    for _ in range(_MAX_STARTS):
        start = text.find("{", position)
        if start < 0:
            return
        end = _balanced_end(text, start)
        if end is not None:
            yield start, end, _as_object(text[start:end])
        position = end or start + 1


def _as_object(raw: str) -> dict[str, Any] | None:
    value = _loads(raw)
    if value is None and raw.startswith("{{") and raw.endswith("}}"):
        # NOTE(self): Qwen copies the doubled braces of its own chat template.
        value = _loads(raw[1:-1])
    return value if isinstance(value, dict) else None


def _balanced_end(text: str, start: int) -> int | None:
    depth, in_string, escaped = 0, False, False
    for index in range(start, len(text)):
        char = text[index]
        if escaped:
            escaped = False
        elif in_string:
            escaped = char == "\\"
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return index + 1
    return None


def _loads(raw: str) -> Any:  # noqa: ANN401 - any JSON value; None also for what is no JSON
    try:
        return with_whole_pairs(json.loads(raw, strict=False))
    except (ValueError, RecursionError):
        return None
