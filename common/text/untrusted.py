"""Text that crosses between the model and other people, cleaned both ways.

Cleaning takes out what nobody sees and what a model may read as the end of our words. What people write with stays:
emoji of several parts, flags, right-to-left scripts, and the joiners that some scripts are spelled with.
"""

from __future__ import annotations

import re
from typing import Any

from common.text.hidden import HIDDEN, names_of, shape, with_names

_LINE_BREAK = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")

# NOTE(self): the marks by which the usual model families tell who speaks, in the spelling that `shape` gives them; a
# model may read them as the end of our words. Then our own frames, also half of one.
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
    """`text` without what is hidden, the marks of chat templates, and our own frames."""
    text = _LINE_BREAK.sub("\n", text)
    for _ in range(_MOST_ROUNDS):
        cleaned = _without_marks(HIDDEN.sub(lambda match: match["seen"] or "", text)).strip()
        if cleaned == text:
            return text
        text = cleaned
    # NOTE(self): marks within marks within marks: nobody writes so by chance, and without brackets there is no mark.
    return clean(_cut(text, _BRACKETS))


def legible(text: str) -> str:
    """Return `text` with all that `clean` takes out told by name instead, for whoever must see everything in it.

    Of a mark only its first bracket is named, as in `⟨U+003C LESS-THAN SIGN⟩think>`.
    """
    text = with_names(text)
    while places := [match.start() for match in _MARK.finditer(shape(text))]:
        ends = [*places[1:], len(text)]
        named = (names_of(text[at]) + text[at + 1 : end] for at, end in zip(places, ends, strict=True))
        text = text[: places[0]] + "".join(named)
    return text


def clean_value(value: Any) -> Any:  # noqa: ANN401 - any JSON-like value
    """A JSON-like value with each string in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_value(item) for item in value]
    return value


def one_line(text: str, length: int = 64) -> str:
    """Return untrusted text for use inside a sentence of ours, such as a display name: cleaned, on one line, short."""
    return " ".join(clean(text).split())[:length]


def _without_marks(text: str) -> str:
    return _cut(text, _MARK)


def _cut(text: str, pattern: re.Pattern[str]) -> str:
    """`text` without what `pattern` finds in its shape."""
    plain = shape(text)
    kept, end = [], 0
    for match in pattern.finditer(plain):
        kept.append(text[end : match.start()])
        end = match.end()
    return "".join([*kept, text[end:]]) if kept else text
