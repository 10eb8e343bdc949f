"""Other people's words on a terminal: nothing in them moves the cursor, and lines end where they should. Pure."""

from __future__ import annotations

import itertools
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


def wrap_text(text: str, columns: int) -> list[str]:
    """`text` as lines of at most `columns`, broken between words where it can be, its own line breaks kept."""
    return [text[start:end].replace("\t", TAB) for start, end in wrap_places(text, columns)]


def wrap_places(text: str, columns: int) -> list[tuple[int, int]]:
    """Where each line of `wrap_text` begins and ends in `text`."""
    breaks = [-1, *(place for place, char in enumerate(text) if char == "\n"), len(text)]
    return [
        place
        for before, after in itertools.pairwise(breaks)
        for place in _wrap(text, before + 1, after, max(columns, 1))
    ]


def _wrap(text: str, start: int, end: int, columns: int) -> Iterator[tuple[int, int]]:
    line, used = start, 0
    cut, used_at_cut = start, 0
    words, before = False, " "
    for offset, cluster in clusters(text[start:end]):
        here, room = start + offset, cells(cluster)
        if cluster.isspace():
            used, before = used + room, cluster
            continue
        if words and (before.isspace() or room > 1 or cells(before) > 1):
            cut, used_at_cut = here, used
        if used + room > columns and here > line:
            if cut <= line:
                cut, used_at_cut = here, used
            yield line, line + len(text[line:cut].rstrip())
            line, used, words = cut, used - used_at_cut, cut < here
        used, before, words = used + room, cluster, True
    yield line, line + len(text[line:end].rstrip())
