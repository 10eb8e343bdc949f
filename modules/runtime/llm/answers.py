"""Reads a model's answer: its text, its tool calls, calls that it wrote as text, and whether it was cut short. Pure."""

import ast
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.lenient_json import with_whole_pairs
from common.schemas import brought_home, named
from modules.runtime.llm.dialect import ChatResult, ToolCall, ToolSpec
from modules.runtime.llm.reasoning import BAR, begins, begins_again, said_values, without_reasoning, without_template
from modules.runtime.llm.stream import StreamedAnswer

_FENCED = re.compile(r"(?:<tool_call>|```(?:json|tool_call)?)\s*(?=\{)")
_FENCE_END = re.compile(r"\s*(?:</tool_call>|```)?")
_CUT_START = re.compile(r"\s*(?:\{|```|<tool_call>)|.*<tool_call>", re.DOTALL)
_REGION_END = re.compile(
    r"</(?:\w+:)?(?:tool|function)_?calls?>|</function>(?!\s*</)|</invoke>(?!\s*</)|<[|\uff5c]/?(?:tool[_\u2581]calls?[_\u2581]end|END_ACTION|/tool_call)"
    r"[|\uff5c]>|<tool_call\|>",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\A```\w*[ \t\r]*\n|\n[ \t]*```\Z")
_WHOLE_FENCE = re.compile(r"\A\s*```\w*[ \t]*\n((?:(?!```).)*)```\s*\Z", re.DOTALL)
_NAMED = re.compile(r"<(?:function|invoke|tool)(?:\s+name)?\s*=\s*[\"']?([\w.-]+)[\"']?\s*>", re.IGNORECASE)
_PARAMETER = re.compile(
    r"<parameter(?:\s+name)?\s*=\s*[\"']?([\w.-]+)[\"']?[^>]*>(.*?)(?:</parameter>|(?=<parameter|</)|\Z)", re.DOTALL
)
_PAIR = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_CONTROL = re.compile(rf"<{BAR}[^<>\n]{{1,40}}{BAR}>|</?[\w:]+>|\[/?[A-Z_]+\]|```\w*")
_WORD = re.compile(r"(?:functions[.])?([A-Za-z_][\w-]*)(?::\d+)?")
_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "params", "action_input", "tool_input")
_SURE_NAMES, _SURE_ARGUMENTS = ("name", "tool", "tool_name"), ("arguments", "parameters", "args", "tool_input")
_MAX_STARTS = 64
_CUT_CALL = "your answer was cut at its greatest length, so nothing was run; send less at once, in several calls"


@dataclass(frozen=True, slots=True)
class SalvagedCall:
    """A call that was written as text."""

    name: str
    arguments: dict[str, Any]
    malformed: str = ""


def parse_arguments(raw: str) -> tuple[dict[str, Any], str]:
    """Return the arguments of a call as `(arguments, "")`, or `({}, why not)`. Blank text is an empty object."""
    if not raw.strip():
        return {}, ""
    value = _loads(raw)
    if isinstance(value, str):
        value = _loads(value)
    if isinstance(value, dict):
        return value, ""
    answer = without_reasoning(raw)
    is_whole = _balanced_end(answer, max(0, answer.find("{"))) is not None
    inside = next((found for _, _, found in _objects(answer) if found is not None), None) if is_whole else None
    return ({}, "the arguments are not one JSON object") if inside is None else (inside, "")


def find_calls(
    text: str, offered: Sequence[ToolSpec], *, required: bool = False
) -> tuple[str, tuple[SalvagedCall, ...]]:
    """Return what is said in `text`, and the calls written in it: in a vendor's marks, in JSON, or in Python.

    What a mark begins is never said, even if no tool is offered. Without marks only calls that end the answer count,
    and they must be fenced or be all of it: a model that merely shows JSON, or quotes somebody who does, has not
    called. With `required` a bare object counts anywhere, and for a single offered tool so do its arguments alone.
    """
    names = {tool.name for tool in offered}
    fields = offered[0].input_schema.get("properties", {}) if required and len(offered) == 1 else {}

    def call_of(value: dict[str, Any]) -> tuple[str, Any] | None:
        call = _named_call(value)
        is_named = call is not None and call[0] in names
        is_arguments = bool(fields and value) and named(value, fields).keys() <= fields.keys()
        return (offered[0].name, value) if is_arguments and not is_named else call

    spoken, found = _marked(text, call_of, names if required else ())
    if found or not offered:
        return spoken, found
    spoken, found = _unmarked(
        text, lambda value: call if (call := call_of(value)) and call[0] in names else None, required=required
    )
    bare = None if found else _whole(text, names)
    return ("", (bare,)) if bare else (spoken, found)


_Reader = Callable[[dict[str, Any]], tuple[str, Any] | None]
"""Returns the name and the arguments of the call that a JSON object stands for, or None."""


def _unmarked(text: str, call_of: _Reader, *, required: bool) -> tuple[str, tuple[SalvagedCall, ...]]:
    """Return what is left of `text`, and the calls written in it as fenced or bare JSON."""
    found: list[SalvagedCall] = []
    kept, position = "", 0
    for start, end, value in _objects(text):
        opening = next((one.start() for one in _FENCED.finditer(text, 0, start + 1) if one.end() == start), None)
        call = None if value is None else call_of(value)
        bare = opening is None and text.strip() != text[start:end]
        if call is None or (bare and not required):
            continue
        begin = start if opening is None else opening
        if found and not required and text[position:begin].strip():
            found, kept, position = [], "", 0
        closing = _FENCE_END.match(text, end)
        kept += text[position:begin]
        position = closing.end() if closing else end
        found.append(SalvagedCall(call[0], _arguments(call[1])))
    if not found or (not required and text[position:].strip()):
        return text, ()
    return (kept + text[position:]).strip(), tuple(found)


def looks_cut(text: str) -> bool:
    """Return whether `text` looks like the first part of a call that was cut off."""
    return bool(_CUT_START.match(text)) and all(value is None for _, _, value in _objects(text))


def _arguments(given: object) -> dict[str, Any]:
    if isinstance(given, str):
        given, _ = parse_arguments(given)
    return given if isinstance(given, dict) else {}


def _marked(text: str, call_of: _Reader, wanted: Collection[str]) -> tuple[str, tuple[SalvagedCall, ...]]:
    """Return what was said before the first call in marks, and every call from there on.

    A call with words after it did not end the answer: it may not have been meant, and the words may report it as done.
    It is then called malformed, so that the model is told that nothing was run; except a call in JSON of a tool in
    `wanted`.
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
        called = [call for _, _, value in _objects(region) if value is not None and (call := call_of(value))]
        words = re.sub(r"<[^<>]{1,60}>|\[/?[A-Z_]+\]|[`\s\]]", "", after)
        why = "" if not words else "it was written among words, so nothing was run"
        found += [SalvagedCall(name, _arguments(given), "" if name in wanted else why) for name, given in called]
        if not called and (call := _marked_call(region)):
            found.append(SalvagedCall(*call, why))
        start = following
    return spoken, tuple(found) or (SalvagedCall("", {}, "it was written as text, and cannot be read"),)


def _whole(text: str, names: Collection[str]) -> SalvagedCall | None:
    """Return the call that is all of `text`: of any tool as JSON, of an offered one in Python; None if it is none."""
    inside = _FENCE.sub("", text.strip()).strip()
    value = _loads(inside) if inside.startswith(("{", "[")) else None
    call = _whole_call(value[0] if isinstance(value, list) and len(value) == 1 else value)
    if call is None and any(name in inside for name in names):
        call = _python_call(inside)
        call = call if call and call[0] in names else None
    return SalvagedCall(call[0], _arguments(call[1])) if call else None


def _named_call(value: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return the name and the arguments of a call as JSON, whatever their fields are called; None if it is no call."""
    inner = value.get("function", value.get("function_call"))
    if isinstance(inner, dict):
        return _named_call(inner)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    return None if name is None else (name, {} if given is None else given)


def _whole_call(value: object) -> tuple[str, Any] | None:
    """Return the call that a JSON value surely is by itself, without marks; None if it is not sure."""
    if not isinstance(value, dict) or not any(isinstance(value.get(key), dict | str) for key in _SURE_ARGUMENTS):
        return None
    name = next((value[key] for key in _SURE_NAMES if isinstance(value.get(key), str)), "")
    return _named_call(value) if _WORD.fullmatch(name) else None


def _marked_call(region: str) -> tuple[str, dict[str, Any]] | None:
    """Return the call in a text that holds no JSON object with its name; None if none can be read."""
    named = _NAMED.search(region)
    parameters = {name: _plain(value) for name, value in _PARAMETER.findall(region)}
    pairs = {name.strip(): _plain(value) for name, value in _PAIR.findall(region)}
    bare = _CONTROL.sub(" ", region)
    if named:
        return named[1], parameters or _first_object(region[named.end() :])
    word = next((found[1] for found in _WORD.finditer(bare) if found[1].casefold() != "function"), None)
    if word is None:
        return None
    if pairs or "{" in region:
        return word, pairs or _first_object(region)
    return _python_call(bare.strip())


def _python_call(text: str) -> tuple[str, dict[str, Any]] | None:
    """Return the call that a text is in Python, with named arguments that are plain values; None if it is none."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        call = tree.elts[0] if isinstance(tree, ast.List) and len(tree.elts) == 1 else tree
        if not isinstance(call, ast.Call) or call.args:
            return None
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        given = {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return (name, given) if name else None


def _first_object(text: str) -> dict[str, Any]:
    return next((value for _, _, value in _objects(text) if value is not None), {})


def _plain(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a text: parsed if it is a JSON object, list, number, boolean or null, else the text."""
    text = text.strip()
    value = _loads(text)
    return text if isinstance(value, str) or (value is None and text != "null") else value


def _region_end(text: str, start: int) -> int:
    """Return where the call at `start` ends: behind its closing mark, else with its last JSON, else with the text."""
    closing = _REGION_END.search(text, start + 1)
    if closing:
        return closing.end()
    ends = [end for begin, end, value in _objects(text[start:]) if value is not None]
    return start + ends[-1] if ends else len(text)


def _objects(text: str) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
    """Yield the outermost balanced `{…}` in `text`: where each starts and ends, and its value if it is JSON."""
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


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME_PARTS = re.compile(r"[A-Za-z0-9_-]+")


def read(
    answer: StreamedAnswer, offered: Sequence[ToolSpec], *, required: bool, new_id: Callable[[], str]
) -> ChatResult:
    """Return the parsed answer; `new_id` makes ids for calls that the service sent without one."""
    text = without_reasoning(with_whole_pairs(answer.text)).strip()
    calls: list[ToolCall] = []
    for raw in answer.calls:
        arguments, malformed = parse_arguments(raw.arguments)
        called = SalvagedCall(with_whole_pairs(raw.name), arguments, malformed)
        fields = with_whole_pairs(raw.service_fields)
        calls.append(replace(_as_call(called, raw.id or new_id(), offered), service_fields=fields))
    text, found = find_calls(text, offered, required=required and not calls)
    found = found if offered and not calls else ()
    calls += [_as_call(call, new_id(), offered) for call in found]
    text = without_template(text).strip()
    schemas = {tool.name: tool.input_schema for tool in offered}
    calls = [replace(call, input=brought_home(schemas.get(call.name, {}), call.input)) for call in calls]
    if calls:
        calls[0] = replace(calls[0], service_fields=with_whole_pairs(answer.service_fields) | calls[0].service_fields)
    cut, refusal = answer.is_cut, "" if calls else with_whole_pairs(answer.refusal)
    if cut and calls and calls[-1].malformed:
        calls[-1] = replace(calls[-1], malformed=_CUT_CALL)
    whole = any(not call.malformed for call in calls)
    return ChatResult(
        text="" if refusal else text,
        refusal=refusal,
        tool_calls=tuple(calls),
        stop_reason="tool_use" if whole or (calls and not cut) else "max_tokens" if cut else "end_turn",
        model=answer.model,
    )


def cut_short(result: ChatResult, offered: Sequence[ToolSpec]) -> bool:
    """Return whether the token limit left nothing usable: no text at all, or half of a call."""
    if result.stop_reason != "max_tokens":
        return False
    return not result.text or bool(result.tool_calls) or (bool(offered) and looks_cut(result.text))


def _as_call(found: SalvagedCall, call_id: str, offered: Sequence[ToolSpec]) -> ToolCall:
    """Return the call so that it can also go back to the service, which would refuse a name that no tool can have.

    Some services leave a namespace or marks of a template in a name: `functions.reply`, `reply<|channel|>commentary`.
    """
    name, names = found.name, {tool.name for tool in offered}
    if name not in names and len(parts := names.intersection(_NAME_PARTS.findall(name))) == 1:
        (name,) = parts
    if _NAME.fullmatch(name) or not offered:
        return ToolCall(call_id, name, said_values(found.arguments), found.malformed)
    return ToolCall(call_id, offered[0].name, malformed=found.malformed or f"no tool is named {name!r}")
