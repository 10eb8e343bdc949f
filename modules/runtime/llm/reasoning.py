"""Takes a model's private thinking out of what it says, whatever its maker marks it with. Pure.

A mark is an element (`<think>`, `<seed:think>`, `[THINK]`, `◁think▷`), a token of a template (`<|START_THINKING|>`) or
a channel (`<|channel|>analysis`). The opening mark may stand in the prompt, so that only the closing one comes, and
the closing one may never come. What is then not surely said to others is dropped: better silence than a thought in
public.
"""

from __future__ import annotations

import re
from typing import Any

_NAME = r"(?:\w+[:_-]|ant)?(?:think|thought|reason|reflect|scratchpad|analysis|inner_monologue)\w*"
_MARK = re.compile(
    rf"(?:<|&lt;|\uff1c)(?P<close>/)?{_NAME}(?:\s[^<>\n]{{0,200}}?)?\s*(?:>|&gt;|\uff1e)"
    rf"|◁(?P<close2>/)?{_NAME}▷"
    rf"|\[(?P<close3>/)?(?-i:THINK|THINKING|THOUGHT|REASONING)\]"
    rf"|<[|\uff5c](?P<close4>/|end_?(?:of_)?)?(?:start_?|begin_?(?:of_)?)?{_NAME}[|\uff5c]>"
    r"|<\|channel>\w*|(?P<close5><channel\|>)"
    r"|<\|inner_prefix\|>|(?P<close6><\|inner_suffix\|>)"
    r"|<unused94>|(?P<close7><unused95>)",
    re.IGNORECASE,
)
_FOLDED = re.compile(r"<(?P<tag>\w+)\s[^<>]*\btype=[\"']?reasoning\b[^<>]*>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)
_SPEAKS_IN_CHANNELS = re.compile(r"(?<!`)<\|channel\|>")
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w*)(?P<head>[^<]*(?:<\|constrain\|>[^<]*)?)<\|message\|>"
    r"(?P<body>.*?)(?=<\|(?:end|call|return|start|channel)\|>|\Z)",
    re.DOTALL,
)
_BARE_CHANNELS = re.compile(
    r"\A(?:analysis|commentary)(?=[A-Z]).*?(?:assistantfinal(?P<said>(?:(?!assistantfinal).)*))?\Z", re.DOTALL
)
_WRAPPED = re.compile(r"\A\s*<(?P<tag>\w+)>(?P<said>(?:(?!</?(?P=tag)>).)*)(?:</(?P=tag)>)?\s*\Z", re.DOTALL)
_CONTROL = re.compile(r"<[|\uff5c][^<>|\uff5c\n]{1,40}[|\uff5c]>")
_HEAD = re.compile(rf"\A\s*{_CONTROL.pattern}(?:assistant\b)?")
_SAID = "final"


def without_reasoning(text: str) -> str:
    """`text` without what the model thought: only what surely is its answer, calls of tools included."""
    if _SPEAKS_IN_CHANNELS.search(text):
        return "".join(_from_channel(found) for found in _CHANNEL.finditer(text))
    bare = _BARE_CHANNELS.match(text)
    if bare:
        return bare["said"] or ""
    text, folded = _FOLDED.subn("", text)
    said, position, inside, marked = "", 0, False, bool(folded)
    for mark in _MARK.finditer(text):
        if _is_quoted(text, mark):
            continue
        marked = True
        closes = any(mark.groupdict().values())
        if not closes and not inside:
            said += text[position : mark.start()]
        if closes and not inside:
            said = ""
        inside, position = not closes, mark.end()
    said += "" if inside else text[position:]
    wrapped = _WRAPPED.match(said) if marked else None
    return wrapped["said"] if wrapped else said


def without_template(text: str) -> str:
    """`text` without the marks of a chat template around it, and up to the first one inside it."""
    while head := _HEAD.match(text):
        text = text[head.end() :]
    end = next((mark.start() for mark in _CONTROL.finditer(text) if not _is_quoted(text, mark)), len(text))
    return text[:end]


def said_values(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value with every text in it as it may be said."""
    if isinstance(value, str):
        said = without_reasoning(value)
        return said if said == value else said.strip()
    if isinstance(value, dict):
        return {name: said_values(item) for name, item in value.items()}
    return [said_values(item) for item in value] if isinstance(value, list) else value


def _from_channel(found: re.Match[str]) -> str:
    """What a channel holds for others: the answer, or a call in the usual marks."""
    if found["name"] == _SAID:
        return found["body"]
    called = re.search(r"\bto=(?:functions\.)?([\w-]+)", found["head"])
    return f'<tool_call>{{"name": "{called[1]}", "arguments": {found["body"].strip()}}}</tool_call>' if called else ""


def _is_quoted(text: str, mark: re.Match[str]) -> bool:
    """Whether the mark stands alone in a code span: somebody speaks of it."""
    return text[mark.start() - 1 : mark.start()] == "`" and text[mark.end() : mark.end() + 1] == "`"
