"""Finds where a call of a tool begins that a model wrote as text, in the marks that its maker taught it. Pure.

Makers mark a call by an element (`<tool_call>`, `<function=…>`, `<invoke name=…>`), a word in brackets (`[TOOL_CALLS]`)
or a token (`<|python_tag|>`). What such a mark begins is never speech: it is a call, or a call that cannot be read.
"""

from __future__ import annotations

import re

from modules.runtime.llm.mentions import code_in, leads_line, leads_sentence

BAR = "[|\uff5c]"
_MARK = re.compile(
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
