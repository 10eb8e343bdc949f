"""Untrusted text on a terminal: control characters are removed, and its width is counted in cells. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import regex
from wcwidth import wcswidth, wcwidth

from common.text.graphemes import CLUSTER

TAB = "    "
_ELLIPSIS = "…"
# NOTE(self): first what a terminal obeys as a whole (strings such as a title or a link, sequences, two-letter escapes),
# then every sign that shows nothing or turns the direction of writing; what emoji and scripts are spelled with stays.
_OBEYED = regex.compile(
    r"""
      (?: \x1b [\]PX^_] | [\x9d\x90\x98\x9e\x9f] ) [^\x07\x1b\x9c\n]{0,4096} (?: \x07 | \x1b\\ | \x9c )?
    | (?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]?
    | \x1b [ -/]* [0-Z\\^-~]?
    """,
    regex.VERBOSE,
)
_UNSEEN = regex.compile(
    r"""
      (?P<seen> (?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F]) \u200D (?=\p{Extended_Pictographic})
              | (?<=[\p{L}\p{M}]) [\u200C\u200D] (?=\p{L})
              | (?<=\U0001F3F4) [\U000E0061-\U000E007A]{2,6} \U000E007F )
    | [[\p{Cc}\p{Cf}\p{Cs}\p{Co}]--[\n\t]]
    """,
    regex.VERBOSE | regex.VERSION1,
)
_BREAK = regex.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
_PILE = regex.compile(r"(\p{M}{6})\p{M}+")
# NOTE(self): where a flag begins depends on all of its kind before it, so a long run of them would cost its square.
_FLAGS = regex.compile("([\U0001f1e6-\U0001f1ff]{64})[\U0001f1e6-\U0001f1ff]+")


def strip_control(text: str) -> str:
    """`text` without what a terminal would obey or hide; line breaks and tabs stay."""
    text = _OBEYED.sub("", _BREAK.sub("\n", text))
    text = _UNSEEN.sub(lambda match: match["seen"] or "", text)
    return _FLAGS.sub(r"\1", _PILE.sub(r"\1", text))


def one_line(text: str) -> str:
    """`text` as `strip_control` leaves it, on one line."""
    return " ".join(strip_control(text).split())


@lru_cache(maxsize=8_192)
def cells(cluster: str) -> int:
    """The columns that one sign takes; rather too many where terminals disagree."""
    if cluster == "\t":
        return len(TAB)
    return max(wcswidth(cluster), sum(max(wcwidth(char), 0) for char in cluster), 0)


def width(text: str) -> int:
    """The columns that a line takes."""
    return sum(cells(cluster) for cluster in CLUSTER.findall(text))


def clusters(text: str) -> Iterator[tuple[int, str]]:
    """What people see as one sign each, with its place."""
    return ((match.start(), match.group()) for match in CLUSTER.finditer(text))


def boxed(text: str, columns: int = 76) -> list[str]:
    """The lines of a box around `text`, which is broken between words where it can be; at most so many columns wide."""
    room, lines = columns - 4, [""]
    for word in text.split():
        for piece in _pieces(word, room):
            joined = f"{lines[-1]} {piece}".lstrip()
            if _between_spaces(joined) <= room:
                lines[-1] = joined
            else:
                lines.append(piece)
    widest = max(map(_between_spaces, lines))
    edge = "\u2500" * (widest + 2)
    inside = [f"\u2502 {line}{' ' * (widest - _between_spaces(line))} \u2502" for line in lines]
    return [f"\u256d{edge}\u256e", *inside, f"\u2570{edge}\u256f"]


def _between_spaces(line: str) -> int:
    """Return the display width of a line between spaces: a combining mark at its start joins the space before it."""
    return width(f" {line} ") - 2


def _pieces(word: str, room: int) -> Iterator[str]:
    """A word, in pieces where it is wider than the room."""
    piece = ""
    for _, cluster in clusters(word):
        if piece and _between_spaces(piece + cluster) > room:
            yield piece
            piece = ""
        piece += cluster
    yield piece


def fit(text: str, columns: int) -> str:
    """`text` if it has room, else its beginning and an ellipsis."""
    if width(text) <= columns:
        return text
    room, kept = columns - 1, ""
    for _, cluster in clusters(text):
        room -= cells(cluster)
        if room < 0:
            break
        kept += cluster
    return (kept.rstrip() + _ELLIPSIS)[: max(columns, 0)]
