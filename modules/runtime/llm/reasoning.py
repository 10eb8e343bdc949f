"""Removes a model's private thinking from what it says, and finds where a tool call written as text begins. Pure.

A mark is recognized by its shape: a name between angle brackets, bars, square brackets or arrows (`<think>`,
`</seed:think>`, `[THINK]`, `◁think▷`, `<|END_THINKING|>`), in any case, spaced, escaped, emphasized or fenced; or a
channel (`<|channel|>analysis`). Its name says whether it marks a thought. If no name does, an element whose name no
markup has is a mark too, if it leads the answer or only its closing mark is there. A mark in code, or used like a word
in a sentence, is only text.

The opening mark may stand in the prompt, so that only the closing one comes; the closing one may never come. What is
then not certainly the answer is dropped: silence is better than a thought in public.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from common.text.markdown import close_code, in_code
from common.text.patterns import lazy

_TICKS = re.compile(r"`+")
_WINDOW = 60
_AT_LINE_START = re.compile(r"\n[\s\u200b\u2060\ufeff]{0,60}\Z|[|\uff5c]>(?:assistant)?\s{0,60}\Z")
_BEHIND_SENTENCE = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d)*]*[ \t]*\Z")
_LIKE_WORD_BEFORE = re.compile(r"[^\s>][ \t]+\Z|[\"'\u201c\u201e\u00ab(\u2018]\Z")
_GOES_ON = re.compile(r"[ \t]*(?:[,;:.!?)\]'\"`\u201d]|[a-z])")
_LIKE_WORD_BEHIND = re.compile(r"[ \t]+[^\s<]|[^\w\s<]")


@dataclass(frozen=True, slots=True)
class Code:
    """The stretches of code in a Markdown text; one that is left open extends to the end."""

    begins: Sequence[int]
    ends: Sequence[int]
    blocks: Sequence[bool]
    left_open: int
    """Where the unclosed fence begins; beyond the text if there is none."""

    def holds(self, position: int) -> bool:
        """Return whether `position` is in code."""
        place = bisect_right(self.begins, position) - 1
        return place >= 0 and position < self.ends[place]

    def holds_in_block(self, position: int) -> bool:
        """Return whether `position` is in a fenced block."""
        return self.holds(position) and self.blocks[bisect_right(self.begins, position) - 1]


def code_in(text: str) -> Code:
    """Return the code in `text`: fenced blocks, and spans that end on their line."""
    if "`" not in text and "~~~" not in text:
        return Code((), (), (), len(text) + 1)
    lines = text.split("\n")
    closed = in_code(lines)
    whole = in_code(close_code(text).split("\n"))
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    spans: list[tuple[int, int, bool]] = []
    for line, start, is_code in zip(lines, starts, whole, strict=False):
        spans += [(start, start + len(line) + 1, True)] if is_code else _spans(line, start)
    left_open = next((starts[at] for at in range(len(lines)) if whole[at] and not closed[at]), len(text) + 1)
    begins, ends, blocks = zip(*spans, strict=True) if spans else ((), (), ())
    return Code(begins, ends, blocks, left_open)


def leads_line(text: str, start: int) -> bool:
    """Return whether only blanks, or the head of a template, stand before `start` on its line."""
    return bool(_AT_LINE_START.search(_before(text, start)))


def leads_sentence(text: str, start: int) -> bool:
    """Return whether a sentence ends right before `start`."""
    return bool(_BEHIND_SENTENCE.search(_before(text, start)))


def is_like_word(text: str, start: int, end: int) -> bool:
    """Return whether the text from `start` to `end` is set off by blanks or quotes, and its line goes on."""
    return bool(_LIKE_WORD_BEFORE.search(_before(text, start)) and _LIKE_WORD_BEHIND.match(text[end : end + _WINDOW]))


def goes_on(text: str, end: int) -> bool:
    """Return whether a sentence goes on behind `end`, on its line."""
    return bool(_GOES_ON.match(text[end : end + _WINDOW]))


def _before(text: str, start: int) -> str:
    return ("\n" if start < _WINDOW else "") + text[max(0, start - _WINDOW) : start]


def _spans(line: str, start: int) -> list[tuple[int, int, bool]]:
    """Return the code spans of a line: each run of backticks extends to the next run of its length."""
    runs = list(_TICKS.finditer(line))
    following: dict[int, int] = {}
    closing = [0] * len(runs)
    for place in range(len(runs) - 1, -1, -1):
        closing[place] = following.get(len(runs[place][0]), 0)
        following[len(runs[place][0])] = place
    spans: list[tuple[int, int, bool]] = []
    place = 0
    while place < len(runs):
        if closing[place]:
            spans.append((start + runs[place].start(), start + runs[closing[place]].end(), False))
            place = closing[place]
        place += 1
    return spans


BAR = "[|\uff5c]"
_CALL_MARK = re.compile(
    rf"(?:(?:<{BAR}?|\[)(?:[A-Za-z]+:|DSML{BAR})?(?:START_ACTION|python_tag"
    r"|(?:tool|function)[_\u2581]?calls?[\w\u2581]*)"
    rf"(?:{BAR}?>|\])?|<function=|<{BAR}?(?:DSML{BAR})?invoke\s)",
    re.IGNORECASE,
)
_ENDING = re.compile(r"end\W*$", re.IGNORECASE)
_MOST_BEFORE_VALUE = 200
_VALUE = re.compile(r"(?:(?:name\s*=\s*)?[\"']?[\w.-]+[\"']?\s*>)?\s*(?:[{\[]|<(?!/))")
_QUOTES = "`\"'\u201c\u201e\u00ab"


def begins(text: str) -> int | None:
    """Return where the first call in marks begins, or None.

    A mark in code begins none, and neither does one in a sentence unless a value or another mark follows it.
    """
    code = code_in(text)
    for mark in _CALL_MARK.finditer(text):
        start = mark.start()
        if code.holds(start) or not _may_begin(text, mark):
            continue
        if leads_line(text, start) or _VALUE.match(text[mark.end() : mark.end() + _MOST_BEFORE_VALUE]):
            return start
        if leads_sentence(text, start) and text[mark.end() : mark.end() + 1].strip():
            return start
    return None


def begins_again(text: str, position: int) -> int | None:
    """Return where the next call in marks begins at or behind `position`, wherever it stands, or None."""
    return next((mark.start() for mark in _CALL_MARK.finditer(text, position) if _may_begin(text, mark)), None)


def _may_begin(text: str, mark: re.Match[str]) -> bool:
    is_quoted = text[mark.start() - 1 : mark.start()] in tuple(_QUOTES)
    return not is_quoted and not _ENDING.search(mark[0])


_BARS = ("|", "\uff5c")
_BAR = "[|\uff5c]"
_MARK = lazy(
    rf"(?P<dress>\*\*|__|)\\?(?P<start>(?:<|&lt;){_BAR}?|[\uff1c◁\u3010\[])\s?(?P<slash>\\?/)?\s?{_BAR}?"
    r"(?P<name>[^\W\d][\w.:▁-]{0,40})(?P<rest>\s[^<>\[\]\n|]{0,200}?)?\s?(?P<single>/)?"
    rf"(?P<end>{_BAR}?(?:\\?>|&gt;)|[\uff1e▷\u3011\]])(?P=dress)"
    r"|</think(?:ing)?(?P<torn>[ \t]*)(?=\n)"
    r"|^[ \t]*Here(?:['\u2019]s| is) my (?:thought process|(?P<response>response)):",
    re.IGNORECASE | re.MULTILINE,
)
_WORDS = lazy(r"[^\W_▁]+")
_THOUGHT = lazy(
    r"(?:ant)?think(?:ing)?|thoughts?|reasoning|scratchpad|monologue|deliberat(?:e|ion)|contemplation|rumination"
)
_WHOLE_NAMES = frozenset({"reason", "reflect", "reflection", "analysis", "internal", "planning", "cot", "scratch_pad"})
_OPENING, _CLOSING = frozenset({"inner_prefix", "unused94"}), frozenset({"inner_suffix", "unused95"})
_EDGES = frozenset({"begin", "end", "start"})
_ANSWER = frozenset({"answer", "content", "final", "output", "reply", "response", "solution"})
_INLINE = lazy(
    r"a|abbr|audio|bd[io]|b|button|canvas|cite|code|data|datalist|del|dfn|em|i|img|input|ins|kbd|label|map|mark|meter"
    r"|object|picture|pre|progress|q|ruby|s|samp|script|select|slot|small|span|strong|style|su[bp]|svg|template"
    r"|textarea|time|u|var|video"
)
_CALL = lazy(r"tool|function|invoke|parameter|arg_", re.IGNORECASE)
_FOLDED = lazy(r"<(?P<tag>\w+)\s[^<>]*\btype=[\"']?reasoning\b[^<>]*>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)
_CHANNEL_MARK = lazy(r"<\|channel\|>")
_FENCED = lazy(
    r"^(?P<fence>`{3,9}|~{3,9})(?:think|thinking|thoughts?|reasoning)[ \t]*\n.*?(?:^(?P=fence)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_CODE_ALONE = lazy(
    r"^[ \t]*(?P<fence>`{1,9}|~{3,9})(?P<info>\w*\n)?\s*(?P<mark>\S.{0,80}?)\s*(?P=fence)[ \t]*$", re.MULTILINE
)
_LEADING_FENCE = lazy(r"\A\s*(`{3,9}|~{3,9})\w*\n(?P<body>.*?)^\1[ \t]*\n", re.DOTALL | re.MULTILINE)
_CHANNEL = lazy(
    r"<\|channel\|>\s*(?:(?P<name>\w*)(?P<head>[^<]*(?:<\|constrain\|>[^<]*)?)<\|message\|>|(?P<bare>final))"
    r"(?P<body>.*?)(?=<\|(?:end|call|return|start|channel)\|>|\Z)",
    re.DOTALL,
)
_BARE_CHANNELS = lazy(
    r"(?:\A(?:analysis|commentary)(?=[A-Z][\w'\u2019]*[^\w\s]?(?:\s|\Z))|\A(?=.*?[.!?\u2026]\s?assistantfinal))"
    r".*?(?:assistantfinal(?P<said>(?:(?!assistantfinal).)*))?\Z",
    re.DOTALL,
)
_WRAPPED = lazy(r"\A\s*<(?P<tag>\w+)>(?P<said>(?:(?!</?(?P=tag)>).)*)(?:</(?P=tag)>)?\s*\Z", re.DOTALL)
_CONTROL = lazy(r"<[|\uff5c][^<>|\uff5c\n]{1,40}[|\uff5c]>")
_HEAD = lazy(rf"\A\s*{_CONTROL.pattern}(?:assistant\b)?")
_SAID = "final"
_UNSEEN = " \t\r\n\u200b\u2060\ufeff"


def without_reasoning(text: str) -> str:
    """Return `text` without what the model thought: only what surely is its answer, calls of tools included."""
    text = text.lstrip(_UNSEEN)
    bare = _BARE_CHANNELS.match(text)
    return bare["said"] or "" if bare else _without_marked(text, leading=False)


def without_template(text: str) -> str:
    """Return `text` without the marks of a chat template around it, and only up to the first one inside it."""
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
    """Return the JSON value with the leading thought removed from every text in it."""
    if isinstance(value, str):
        said = _without_marked(value, leading=True)
        return said if said == value else said.strip()
    if isinstance(value, dict):
        return {name: said_values(item) for name, item in value.items()}
    return [said_values(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _Mark:
    """A mark of a thought; `is_doubtful` if in square brackets and not in capitals, as ordinary text uses it too."""

    start: int
    end: int
    closes: bool
    is_doubtful: bool = False


def _without_marked(text: str, *, leading: bool) -> str:
    """Return `text` without what marks set off as thought; with `leading`, only if it begins with it."""
    code = code_in(text)
    first = len(text) - len(text.lstrip())
    if any(_is_channel(text, mark, code, leading=leading) for mark in _CHANNEL_MARK.finditer(text)):
        return "".join(_from_channel(found) for found in _CHANNEL.finditer(text))
    shown = text if leading else _bared(_FENCED.sub("", text))
    if "type=" in shown:
        code = code if shown == text else code_in(shown)
        shown = _FOLDED.sub(
            lambda found: found[0] if code.holds(found.start()) or (leading and found.start() > first) else "", shown
        )
    folded, code = shown != text, code if shown == text else code_in(shown)
    said, marked = _outside_marks(shown, code, leading=leading)
    wrapped = _WRAPPED.match(said) if marked or folded else None
    return wrapped["said"] if wrapped else said


def _bared(text: str) -> str:
    """Return `text` with the marks of thoughts taken out of code that serves only to show them.

    That is a fence around the thought that leads the answer, and code that holds one closing mark alone behind a
    sentence. Code after an opening mark, a colon or an unfinished sentence is about the mark.
    """
    if "`" not in text and "~~~" not in text:
        return text
    fenced = _LEADING_FENCE.match(text)
    if fenced and text[fenced.end() :].strip() and _is_thought(body := fenced["body"].strip()):
        text = f"{body}\n{text[fenced.end() :]}"
    first_opening = next((mark.start for mark in _marks_in(text) if not mark.closes), len(text))
    return _CODE_ALONE.sub(
        lambda found: found["mark"] if found.start() < first_opening and _closes_alone(text, found) else found[0], text
    )


def _is_thought(text: str) -> bool:
    """Return whether `text` is a thought from its opening mark to its closing one."""
    marks = _marks_in(text)
    return bool(marks) and marks[0].start == 0 and marks[-1].closes and marks[-1].end == len(text)


def _closes_alone(text: str, found: re.Match[str]) -> bool:
    marks = _marks_in(found["mark"])
    whole = len(marks) == 1 and marks[0].closes and (marks[0].start, marks[0].end) == (0, len(found["mark"]))
    return whole and leads_sentence(text, len(text[: found.start()].rstrip()))


def _marks_in(text: str) -> list[_Mark]:
    """Return the marks of thoughts in `text`, in order."""
    return [mark for found in _MARK.finditer(text) if (mark := _mark(found, text))]


def _mark(found: re.Match[str], text: str) -> _Mark | None:
    """Return the mark of a thought; None if it marks something else."""
    start, end = found.span()
    if found["name"] is None:
        return _Mark(start, end, closes=found["torn"] is not None or found["response"] is not None)
    if (found["start"] == "[") != (found["end"] == "]"):
        return None
    if found["start"] == "[":
        closes = None if text[end : end + 1] in {"(", "[", ":"} else _closes_in_brackets(found)
    else:
        closes = _closes(found)
    is_doubtful = found["start"] == "[" and not found[0].isupper()
    return None if closes is None else _Mark(start, end, closes, is_doubtful)


def _closes(found: re.Match[str]) -> bool | None:
    """Return whether an element or token closes a thought; None if it marks none. The start of an answer closes one."""
    name = found["name"].casefold()
    words = _WORDS.findall(name)
    closes = bool(found["slash"] or found["single"]) or "end" in words
    bars = found["start"].endswith(_BARS), found["end"].startswith(_BARS)
    if name == "channel" and sum(bars) == 1:
        return bars[1]
    if name in _OPENING | _CLOSING or (all(bars) and not closes and _ANSWER.intersection(words)):
        return name not in _OPENING
    return closes if name in _WHOLE_NAMES or any(map(_THOUGHT.fullmatch, words)) else None


def _closes_in_brackets(found: re.Match[str]) -> bool | None:
    """Return the same for a mark in square brackets, where several words must include an edge: `[END THINKING]`."""
    words = _WORDS.findall(found["name"].casefold() + (found["rest"] or "").casefold())
    is_mark = any(map(_THOUGHT.fullmatch, words)) and (not found["rest"] or _EDGES.intersection(words))
    return bool(found["slash"]) or "end" in words if is_mark else None


def _unnamed_marks(text: str, code: Code) -> Sequence[_Mark]:
    """Return the marks of a thought that only their places show: around what leads an answer, or a lone closing one."""
    from markdown_it.common.html_blocks import block_names  # noqa: PLC0415 - takes time to load, and is seldom needed

    elements = [
        found
        for found in _MARK.finditer(text)
        if found["name"] and "[" not in found["start"] and not re.search(_BAR, found["start"] + found["end"])
    ]
    closing = [found for found in elements if found["slash"] and not code.holds(found.start())]
    if len(closing) != 1 or text.startswith(("{", "[")) or begins(text) is not None:
        return ()
    (last,), name = closing, closing[0]["name"].casefold()
    named = [found for found in elements if found["name"].casefold() == name]
    is_markup = _INLINE.fullmatch(name) or name in block_names or name in _ANSWER or _CALL.match(name)
    before, behind = text[: last.start()], text[last.end() :].lstrip()
    if is_markup or not before.strip() or not behind or behind.startswith("<") or goes_on(text, last.end()):
        return ()
    marks = [_Mark(found.start(), found.end(), closes=found is last) for found in named]
    if len(marks) == 1:
        return () if _is_spoken_of(text, marks[0], is_opened=False) else marks
    leads = not text[: marks[0].start].strip() and not named[0]["rest"] and named[1] is last
    return marks if leads and len(marks) == 2 else ()  # noqa: PLR2004 - a pair


def _outside_marks(text: str, code: Code, *, leading: bool) -> tuple[str, bool]:
    """Return what stands outside of marks that count, and whether one did.

    A thought that was opened, and is closed only in code, is closed there. If an opening mark is only text, so is its
    closing one.
    """
    marks = _marks_in(text)
    if not leading and not any(not code.holds(mark.start) for mark in marks) and "/" in text:
        marks = [*marks, *_unnamed_marks(text, code)]
    last_closing = max((mark.start for mark in marks if mark.closes), default=-1)
    said, position, inside, marked, answered = "", 0, False, False, False
    spoken_of, shown, closed_in_code = 0, -1, -1
    for mark in marks:
        start, end, closes = mark.start, mark.end, mark.closes
        if code.holds(start) and not (
            closes and not inside and start > code.left_open > shown and leads_line(text, start)
        ):
            closed_in_code = end if inside and closes and code.holds_in_block(start) else closed_in_code
            shown = shown if closes else start
        elif inside:
            inside, position, closed_in_code = not closes, end, -1
        elif closes and _is_spoken_of(text, mark, is_opened=spoken_of > 0):
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


def _is_spoken_of(text: str, mark: _Mark, *, is_opened: bool) -> bool:
    """Return whether a closing mark is a word of its sentence; `is_opened` if the sentence has an opening one."""
    ends_sentence = leads_sentence(text, mark.start)
    if is_opened:
        return not leads_line(text, mark.start) and (not ends_sentence or goes_on(text, mark.end))
    return is_like_word(text, mark.start, mark.end) and not ends_sentence


def _opens(text: str, mark: _Mark, *, follows_mark: bool, closing: bool) -> bool:
    """Return whether an opening mark begins a thought: it leads a line, or a sentence if a closing mark follows."""
    if follows_mark or leads_line(text, mark.start):
        return closing or not mark.is_doubtful
    return closing and leads_sentence(text, mark.start)


def _is_channel(text: str, mark: re.Match[str], code: Code, *, leading: bool) -> bool:
    start = mark.start()
    if code.holds(start) or is_like_word(text, start, mark.end()):
        return False
    return not leading or not text[:start].strip()


def _from_channel(found: re.Match[str]) -> str:
    """Return what a channel holds for others: the answer, or a call in the usual marks."""
    if found["bare"] or found["name"] == _SAID:
        return found["body"]
    called = re.search(r"\bto=(?:functions\.)?([\w-]+)", found["head"])
    return f'<tool_call>{{"name": "{called[1]}", "arguments": {found["body"].strip()}}}</tool_call>' if called else ""
