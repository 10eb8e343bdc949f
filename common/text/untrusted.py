"""Cleans text that passes between the model and other people, in both directions.

Cleaning removes what is invisible and what a model may read as the end of our prompt. Ordinary writing stays: emoji of
several parts, flags, right-to-left scripts, and the joiners that some scripts need.
"""

import re
from collections.abc import Iterator, Sequence
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
_TYPE_ARGUMENT = re.compile(r"\w<[A-Z][A-Za-z0-9]*>\Z", re.ASCII)
"""As in `fn serialize<S>`: the marks of models are in small letters, and follow no name."""
_CODE = re.compile(r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|`[^`\n]+`", re.DOTALL)
_BRACKETS = re.compile(r"[<>\[\]|]")
_MOST_ROUNDS = 6


def clean(text: str, *, is_ours: bool = False) -> str:
    """Return `text` without hidden characters, the marks of chat templates, and our own frames.

    A text that `is_ours` keeps the marks in its code: it may be about them, and who reads it cleans it again.
    """
    text = _LINE_BREAK.sub("\n", text)
    for _ in range(_MOST_ROUNDS):
        seen = HIDDEN.sub(lambda match: match["seen"] or "", text)
        code = [one.span() for one in _CODE.finditer(seen)] if is_ours else []
        cleaned = _cut(seen, _MARK, code).strip()
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
    while places := [match.start() for match in _found(text, _MARK)]:
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


def one_line(text: str, length: int = 64, *, is_ours: bool = False) -> str:
    """Return untrusted text, such as a display name, for use in a sentence of ours: cleaned, on one line, short."""
    return " ".join(clean(text, is_ours=is_ours).split())[:length]


def _cut(text: str, pattern: re.Pattern[str], but: Sequence[tuple[int, int]] = ()) -> str:
    """Return `text` without what `pattern` finds in its shape, except at the places `but`."""
    kept, end = [], 0
    for match in _found(text, pattern):
        if any(first < match.start() and match.end() < last for first, last in but):
            continue
        kept.append(text[end : match.start()])
        end = match.end()
    return "".join([*kept, text[end:]]) if kept else text


def _found(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield what `pattern` finds in the shape of `text`, without what is code there."""
    return (one for one in pattern.finditer(shape(text)) if not _TYPE_ARGUMENT.search(text, one.start() - 1, one.end()))
