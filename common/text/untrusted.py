"""Cleans text that passes between the model and other people, in both directions.

Cleaning removes what is invisible and what a model may read as the end of our prompt. Ordinary writing stays: emoji of
several parts, flags, right-to-left scripts, and the joiners that some scripts need.
"""

from __future__ import annotations

import re
from typing import Any

from common.text.hidden import HIDDEN, names_of, shape, with_names

_LINE_BREAK = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")

# NOTE(self): the marks of common model families for the speaker, spelled as `shape` returns them; a model may read
# them as the end of our prompt. Then our own frames, also half of one.
_MARK = re.compile(
    r"""
      < [ ]? \|+ [ ]? [\w .:/+-]{1,40} [ ]? \|+ [ ]? >
    | <<[ ]?/?sys[ ]?>>
    | \[ [ ]? /? (?: inst | system_prompt | available_tools | tool_calls | tool_results | tool_content | think
        | gmask ) [ ]? \]
    | < [ ]? /? (?: s | bos | eos | pad | unk | sop | eop | (?:start|end)_of_(?:turn|image|text) | unused\d{1,4}
        | fim_[a-z]{3,9} | think(?:ing)? | tools | tool_(?:call|response|result)s?
        | function_(?:call|result)s? | (?:antml:)?(?:invoke|parameter)\b[^<>\n]{0,80} | antml:[^<>\n]{1,80} ) [ ]? >
    | < [ ]? /? [ ]? (?:post|conversation|reading) [ ]? - (?: [^<>\n]{0,120} > | [0-9a-f]* )
    | < [ ]? /? [ ]? [a-z_]{2,20} [ ]? - [ ]? [0-9a-f]{6,16} (?![0-9a-z_]) (?: [^<>\n]{0,160} > )?
    """,
    re.VERBOSE,
)
_BRACKETS = re.compile(r"[<>\[\]|]")
_MOST_ROUNDS = 6


def clean(text: str) -> str:
    """Return `text` without hidden characters, the marks of chat templates, and our own frames."""
    text = _LINE_BREAK.sub("\n", text)
    for _ in range(_MOST_ROUNDS):
        cleaned = _without_marks(HIDDEN.sub(lambda match: match["seen"] or "", text)).strip()
        if cleaned == text:
            return text
        text = cleaned
    # NOTE(self): deeply nested marks are never written by chance, and without brackets there is no mark.
    return clean(_cut(text, _BRACKETS))


def legible(text: str) -> str:
    """Return `text` with everything that `clean` removes shown by name, for a reader who must see all of it.

    For a mark only its first bracket is named, as in `⟨U+003C LESS-THAN SIGN⟩think>`.
    """
    text = with_names(text)
    while places := [match.start() for match in _MARK.finditer(shape(text))]:
        ends = [*places[1:], len(text)]
        named = (names_of(text[at]) + text[at + 1 : end] for at, end in zip(places, ends, strict=True))
        text = text[: places[0]] + "".join(named)
    return text


def clean_value(value: Any) -> Any:  # noqa: ANN401 - any JSON-like value
    """Return a JSON-like value with each string in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_value(item) for item in value]
    return value


def one_line(text: str, length: int = 64) -> str:
    """Return untrusted text, such as a display name, for use in a sentence of ours: cleaned, on one line, short."""
    return " ".join(clean(text).split())[:length]


def _without_marks(text: str) -> str:
    return _cut(text, _MARK)


def _cut(text: str, pattern: re.Pattern[str]) -> str:
    """Return `text` without what `pattern` finds in its shape."""
    plain = shape(text)
    kept, end = [], 0
    for match in pattern.finditer(plain):
        kept.append(text[end : match.start()])
        end = match.end()
    return "".join([*kept, text[end:]]) if kept else text
