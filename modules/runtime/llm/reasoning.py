"""Takes a model's private thinking out of what it says, whatever its maker marks it with. Pure.

A mark is an element (`<think>`, `<seed:think>`, `[THINK]`, `◁think▷`), a token of a template (`<|START_THINKING|>`) or
a channel (`<|channel|>analysis`). The opening mark may stand in the prompt, so that only the closing one comes, and
the closing one may never come. What is then not surely said to others is dropped: better silence than a thought in
public.
"""

from __future__ import annotations

import re
from typing import Any

from modules.runtime.llm.mentions import Code, code_in, is_like_word, leads_line, leads_sentence

_NAME = (
    r"(?:(?:\w+[:_-]|ant)?(?:think|thinking|thoughts?|reasoning|scratchpad|monologue)(?:[:_-](?!end\b|start\b|begin\b)\w+)?"
    r"|reason|reflect|reflection|analysis|internal|planning|cot)"
)
_MARK = re.compile(
    rf"(?:<|&lt;|\uff1c)(?P<close>/)?{_NAME}(?:\s[^<>\n]{{0,200}}?)?\s*(?P<close9>/)?(?:>|&gt;|\uff1e)"
    rf"|◁(?P<close2>/)?{_NAME}▷"
    r"|(?P<bracket>\[)(?P<close3>/)?(?:THINK|THINKING|THOUGHTS?|REASONING)\](?![(\[:])"
    rf"|<[|\uff5c](?P<close4>/|end[_▁]?(?:of[_▁])?)?(?:start[_▁]?|begin[_▁]?(?:of[_▁])?)?{_NAME}"
    r"(?:_(?:start|begin)|(?P<close8>_end))?[|\uff5c]>"
    r"|<\|channel>\w*|(?P<close5><channel\|>)"
    r"|<\|inner_prefix\|>|(?P<close6><\|inner_suffix\|>)"
    r"|<unused94>|(?P<close7><unused95>)",
    re.IGNORECASE,
)
_FOLDED = re.compile(r"<(?P<tag>\w+)\s[^<>]*\btype=[\"']?reasoning\b[^<>]*>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)
_CHANNEL_MARK = re.compile(r"<\|channel\|>")
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w*)(?P<head>[^<]*(?:<\|constrain\|>[^<]*)?)<\|message\|>"
    r"(?P<body>.*?)(?=<\|(?:end|call|return|start|channel)\|>|\Z)",
    re.DOTALL,
)
_BARE_CHANNELS = re.compile(
    r"\A(?:analysis|commentary)(?=[A-Z][\w'\u2019]*[^\w\s]?(?:\s|\Z))"
    r".*?(?:assistantfinal(?P<said>(?:(?!assistantfinal).)*))?\Z",
    re.DOTALL,
)
_WRAPPED = re.compile(r"\A\s*<(?P<tag>\w+)>(?P<said>(?:(?!</?(?P=tag)>).)*)(?:</(?P=tag)>)?\s*\Z", re.DOTALL)
_CONTROL = re.compile(r"<[|\uff5c][^<>|\uff5c\n]{1,40}[|\uff5c]>")
_HEAD = re.compile(rf"\A\s*{_CONTROL.pattern}(?:assistant\b)?")
_SAID = "final"
_UNSEEN = " \t\r\n\u200b\u2060\ufeff"


def without_reasoning(text: str) -> str:
    """`text` without what the model thought: only what surely is its answer, calls of tools included."""
    text = text.lstrip(_UNSEEN)
    bare = _BARE_CHANNELS.match(text)
    return bare["said"] or "" if bare else _without_marked(text, leading=False)


def without_template(text: str) -> str:
    """`text` without the marks of a chat template around it, and up to the first one inside it."""
    while head := _HEAD.match(text):
        text = text[head.end() :]
    code = code_in(text)
    ends = (
        mark.start()
        for mark in _CONTROL.finditer(text)
        if not code.holds(mark.start()) and not is_like_word(text, mark.start(), mark.end())
    )
    return text[: next(ends, len(text))]


def said_values(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value with every text in it without the thought that leads it."""
    if isinstance(value, str):
        said = _without_marked(value, leading=True)
        return said if said == value else said.strip()
    if isinstance(value, dict):
        return {name: said_values(item) for name, item in value.items()}
    return [said_values(item) for item in value] if isinstance(value, list) else value


def _without_marked(text: str, *, leading: bool) -> str:
    """`text` without what marks set off as thought; with `leading`, only where it begins with it."""
    code = code_in(text)
    first = len(text) - len(text.lstrip())
    if any(_is_channel(text, mark, code, leading=leading) for mark in _CHANNEL_MARK.finditer(text)):
        return "".join(_from_channel(found) for found in _CHANNEL.finditer(text))
    shown, folded = text, False
    if "type=" in text:
        shown = _FOLDED.sub(
            lambda found: found[0] if code.holds(found.start()) or (leading and found.start() > first) else "", text
        )
        folded, code = shown != text, code if shown == text else code_in(shown)
    said, marked = _outside_marks(shown, code, leading=leading)
    wrapped = _WRAPPED.match(said) if marked or folded else None
    return wrapped["said"] if wrapped else said


def _outside_marks(text: str, code: Code, *, leading: bool) -> tuple[str, bool]:
    """What stands outside of marks that count, and whether one did.

    Who opened a thought and closes it only in code has closed it there. An opening mark that is text makes its closing
    one text.
    """
    marks = list(_MARK.finditer(text))
    last_closing = max((mark.start() for mark in marks if _closes(mark)), default=-1)
    said, position, inside, marked, answered = "", 0, False, False, False
    spoken_of, shown, closed_in_code = 0, -1, -1
    for mark in marks:
        start, end, closes = mark.start(), mark.end(), _closes(mark)
        if code.holds(start) and not (
            closes and not inside and start > code.left_open > shown and leads_line(text, start)
        ):
            closed_in_code = end if inside and closes and code.holds_in_block(start) else closed_in_code
            shown = shown if closes else start
        elif inside:
            inside, position, closed_in_code = not closes, end, -1
        elif closes and (spoken_of or (is_like_word(text, start, end) and not leads_sentence(text, start))):
            spoken_of = max(0, spoken_of - 1)
        elif closes:
            said, position, marked = "", end, True
        else:
            answered = answered or (leading and bool(text[position:start].strip()))
            if answered or not _opens(text, mark, follows_mark=0 < position == start, closing=last_closing > start):
                spoken_of += 1
                continue
            said, inside, marked, position = said + text[position:start], True, True, end
    if inside and closed_in_code >= 0:
        inside, position = False, closed_in_code
    return said + ("" if inside else text[position:]), marked


def _opens(text: str, mark: re.Match[str], *, follows_mark: bool, closing: bool) -> bool:
    """Whether an opening mark begins a thought: it leads a line, or a sentence, and then a closing one must come."""
    if follows_mark or leads_line(text, mark.start()):
        return closing or not mark["bracket"] or mark[0].isupper()
    return closing and leads_sentence(text, mark.start())


def _is_channel(text: str, mark: re.Match[str], code: Code, *, leading: bool) -> bool:
    start = mark.start()
    if code.holds(start) or is_like_word(text, start, mark.end()):
        return False
    return not leading or not text[:start].strip()


def _from_channel(found: re.Match[str]) -> str:
    """What a channel holds for others: the answer, or a call in the usual marks."""
    if found["name"] == _SAID:
        return found["body"]
    called = re.search(r"\bto=(?:functions\.)?([\w-]+)", found["head"])
    return f'<tool_call>{{"name": "{called[1]}", "arguments": {found["body"].strip()}}}</tool_call>' if called else ""


def _closes(mark: re.Match[str]) -> bool:
    return any(value for name, value in mark.groupdict().items() if name.startswith("close"))
