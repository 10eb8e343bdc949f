"""Reads calls of tools that a model wrote as text, in the marks that its maker taught it. Pure.

Makers mark a call by an element (`<tool_call>`, `<function=…>`, `<invoke name=…>`), a word in brackets (`[TOOL_CALLS]`)
or a token (`<|python_tag|>`). What such a mark begins is never speech: it is a call, or a call that cannot be read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from modules.runtime.llm.mentions import code_in, leads_line, leads_sentence

_BAR = "[|\uff5c]"
_MARK = re.compile(
    rf"(?:(?:<{_BAR}?|\[)(?:[A-Za-z]+:|DSML{_BAR})?(?:START_ACTION|python_tag"
    r"|(?:tool|function)[_\u2581]?calls?[\w\u2581]*)"
    rf"(?:{_BAR}?>|\])?|<function=|<{_BAR}?(?:DSML{_BAR})?invoke\s)",
    re.IGNORECASE,
)
_ENDING = re.compile(r"end\W*$", re.IGNORECASE)
_NAMED = re.compile(r"<(?:function|invoke|tool)(?:\s+name)?\s*=\s*[\"']?([\w.-]+)[\"']?\s*>", re.IGNORECASE)
_PARAMETER = re.compile(
    r"<parameter(?:\s+name)?\s*=\s*[\"']?([\w.-]+)[\"']?[^>]*>(.*?)(?:</parameter>|(?=<parameter|</)|\Z)", re.DOTALL
)
_PAIR = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_CONTROL = re.compile(rf"<{_BAR}[^<>\n]{{1,40}}{_BAR}>|</?[\w:]+>|\[/?[A-Z_]+\]|```\w*")
_WORD = re.compile(r"(?:functions[.])?([A-Za-z_][\w-]*)(?::\d+)?")
_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "params", "action_input", "tool_input")
_SURE_NAMES, _SURE_ARGUMENTS = ("name", "tool", "tool_name"), ("arguments", "parameters", "args", "tool_input")
_MOST_BEFORE_VALUE = 200
_VALUE = re.compile(r"(?:(?:name\s*=\s*)?[\"']?[\w.-]+[\"']?\s*>)?\s*(?:[{\[]|<(?!/))")
_QUOTES = "`\"'\u201c\u201e\u00ab"


def begins(text: str) -> int | None:
    """Where the first call in marks begins; None without one.

    A mark in code begins none, nor does one in a sentence, unless a value or another mark follows it.
    """
    code = code_in(text)
    for mark in _MARK.finditer(text):
        start = mark.start()
        if code.holds(start) or not _may_begin(text, mark):
            continue
        if leads_line(text, start) or _VALUE.match(text[mark.end() : mark.end() + _MOST_BEFORE_VALUE]):
            return start
        if leads_sentence(text, start) and text[mark.end() : mark.end() + 1].strip():
            return start
    return None


def begins_again(text: str, position: int) -> int | None:
    """Where the next call in marks begins behind one, wherever it stands."""
    return next((mark.start() for mark in _MARK.finditer(text, position) if _may_begin(text, mark)), None)


def _may_begin(text: str, mark: re.Match[str]) -> bool:
    is_quoted = text[mark.start() - 1 : mark.start()] in tuple(_QUOTES)
    return not is_quoted and not _ENDING.search(mark[0])


def named_call(value: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The name and the arguments of a call as JSON, under whatever names they stand; None if it is none."""
    inner = value.get("function", value.get("function_call"))
    if isinstance(inner, dict):
        return named_call(inner)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    return None if name is None else (name, {} if given is None else given)


def whole_call(value: object) -> tuple[str, Any] | None:
    """The call that a JSON value surely is by itself, without marks."""
    if not isinstance(value, dict) or not any(isinstance(value.get(key), dict | str) for key in _SURE_ARGUMENTS):
        return None
    name = next((value[key] for key in _SURE_NAMES if isinstance(value.get(key), str)), "")
    return named_call(value) if _WORD.fullmatch(name) else None


def marked_call(region: str) -> tuple[str, dict[str, Any]] | None:
    """The call of a stretch of text that holds no JSON object with its name; None where none can be read."""
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
    return python_call(bare.strip())


def python_call(text: str) -> tuple[str, dict[str, Any]] | None:
    """The call of a text that is one in Python, with named arguments that are plain values."""
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
    start = text.find("{")
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text, start) if start >= 0 else ({}, 0)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _plain(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """A value as it was written: JSON where it is an object, a list, a number or a truth value, else words."""
    text = text.strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else value
