"""The panel below the owner's input line: the times of the next activities, and what is left of budgets. Pure.

It shows only fields of the status, as in `soul status --json`. Control characters are removed from untrusted text, and
its width is counted in cells.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import regex
from wcwidth import wcswidth, wcwidth

from common.clock import parse_iso_or_none, span
from common.text.graphemes import CLUSTER

TAB = "    "
_ELLIPSIS = "…"
# NOTE(self): first whole control sequences (strings such as a title or a link, CSI sequences, two-letter escapes), then
# all invisible characters and those that change the direction; those that emoji and scripts need stay.
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
# NOTE(self): where a flag begins depends on all regional indicators before it, so a long run takes quadratic time.
_FLAGS = regex.compile("([\U0001f1e6-\U0001f1ff]{64})[\U0001f1e6-\U0001f1ff]+")


def strip_control(text: str) -> str:
    """Return `text` without control sequences and invisible characters; line breaks and tabs stay."""
    text = _OBEYED.sub("", _BREAK.sub("\n", text))
    text = _UNSEEN.sub(lambda match: match["seen"] or "", text)
    return _FLAGS.sub(r"\1", _PILE.sub(r"\1", text))


def one_line(text: str) -> str:
    """Return `text` as `strip_control` does, on one line."""
    return " ".join(strip_control(text).split())


@lru_cache(maxsize=8_192)
def cells(cluster: str) -> int:
    """Return how many columns a grapheme cluster takes; the largest number if terminals disagree."""
    if cluster == "\t":
        return len(TAB)
    return max(wcswidth(cluster), sum(max(wcwidth(char), 0) for char in cluster), 0)


def width(text: str) -> int:
    """Return how many columns a line takes."""
    return sum(cells(cluster) for cluster in CLUSTER.findall(text))


def clusters(text: str) -> Iterator[tuple[int, str]]:
    """Yield each grapheme cluster of `text` with its index."""
    return ((match.start(), match.group()) for match in CLUSTER.finditer(text))


def boxed(text: str, columns: int = 76) -> list[str]:
    """Return the lines of a box around `text`, wrapped between words if possible, at most `columns` wide."""
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
    """Yield a word, in pieces if it is wider than `room`."""
    piece = ""
    for _, cluster in clusters(word):
        if piece and _between_spaces(piece + cluster) > room:
            yield piece
            piece = ""
        piece += cluster
    yield piece


def fit(text: str, columns: int) -> str:
    """Return `text` if it fits into `columns`, else its beginning and an ellipsis."""
    if width(text) <= columns:
        return text
    room, kept = columns - 1, ""
    for _, cluster in clusters(text):
        room -= cells(cluster)
        if room < 0:
            break
        kept += cluster
    return (kept.rstrip() + _ELLIPSIS)[: max(columns, 0)]


Piece = tuple[str, str]
"""A style of prompt_toolkit, and the text that has it."""

MOST_LINES = 3
_TIMERS = (("Mentions", "awareness"), ("Messages", "messages"), ("Own posts", "engagement"))
_DIM, _GREEN, _YELLOW, _RED = "fg:ansibrightblack", "fg:ansigreen", "fg:ansiyellow", "fg:ansired"
_UNKNOWN: Piece = (_DIM, "--")
_GAP = "  "
_SOON_S = 60
_MUCH, _SOME = 0.5, 0.1
_SOURCE_COLUMNS = 24
_ROWS_PER_LINE = 4

_Cell = tuple[Piece, ...]


def panel_lines(status: Mapping[str, Any], now: datetime, columns: int, rows: int) -> list[list[Piece]]:
    """Return the lines for a terminal of that size; none without a status, or if there is no room for them.

    No line is wider than `columns`. What has no room is left out from the end: first budgets, then timers.
    """
    most = min(MOST_LINES, rows // _ROWS_PER_LINE)
    if "budget" not in status or most < 1:
        return []
    timers, budgets = list(_timers(status, now)), list(_budgets(status, now))
    apart = [*_packed(timers, columns), *_packed(budgets, columns)]
    return apart if len(apart) <= most else _packed([*timers, *budgets], columns)[:most]


def hint_line(name: str, columns: int) -> str:
    """Return hints on what can be typed to the SOUL `name`, as many as fit into `columns`."""
    hints = (f"Enter: send to {name}", "/help: commands", "Ctrl-C: stop")
    fitting = (line for first in range(len(hints)) if width(line := " · ".join(hints[first:])) <= columns)
    return next(fitting, "")


def _packed(cells: Iterable[_Cell], columns: int) -> list[list[Piece]]:
    """Return the cells in order, as many on a line as fit; one that is wider than a line is cut."""
    lines: list[list[Piece]] = []
    left = 0
    for cell in cells:
        size = sum(width(text) for _, text in cell)
        if lines and len(_GAP) + size <= left:
            lines[-1] += [("", _GAP), *cell]
            left -= len(_GAP) + size
        else:
            lines.append(list(_cut(cell, columns)))
            left = columns - size
    return lines


def _cut(cell: _Cell, columns: int) -> Iterator[Piece]:
    for style, text in cell:
        yield style, (shown := fit(text, columns))
        columns -= width(shown)


def _timers(status: Mapping[str, Any], now: datetime) -> Iterator[_Cell]:
    loops = {loop["name"]: loop for loop in status.get("loops", ())}
    rows = [(label, loops[name]) for label, name in _TIMERS if name in loops]
    source = fit(one_line(str(status.get("nextExpressionSource") or "")), _SOURCE_COLUMNS)
    expression = ((_DIM, "Next post "), _time_left(status.get("nextExpressionAt"), now))
    shown = [((_DIM, f"{label} "), _when(loop, now)) for label, loop in rows]
    yield from shown[:1]
    yield (*expression, (_DIM, f" ({source})")) if source else expression
    yield from shown[1:]


def _when(loop: Mapping[str, Any], now: datetime) -> Piece:
    return (_GREEN, "now") if loop["running"] else _time_left(loop["nextAt"], now)


def _time_left(at: object, now: datetime) -> Piece:
    moment = parse_iso_or_none(at)
    if moment is None:
        return _UNKNOWN
    seconds = (moment - now).total_seconds()
    if seconds <= 0:
        return _GREEN, "now"
    return _YELLOW if seconds < _SOON_S else "", f"in {span(seconds)}"


def _budgets(status: Mapping[str, Any], now: datetime) -> Iterator[_Cell]:
    yield (_DIM, "Bluesky "), *_requests(status["budget"], now)
    if (github := status.get("github")) is not None:
        yield (_DIM, "GitHub "), *_requests(github, now)
    model = status.get("modelBudget") or {}
    tokens = model.get("tokens") or {}
    cap = tokens.get("cap")
    if cap:
        yield (_DIM, "Tokens "), *_left(cap - tokens["used"], cap, parse_iso_or_none(model.get("resetsAt")), now)


def _requests(budget: Mapping[str, Any], now: datetime) -> Sequence[Piece]:
    """Return what a service still allows; unknown until one of its answers says when its window ends."""
    if not (reset_at := budget.get("resetAt")) or not budget["limit"]:
        return (_UNKNOWN,)
    return _left(budget["remaining"], budget["limit"], datetime.fromtimestamp(reset_at, UTC), now)


def _left(remaining: float, limit: float, resets: datetime | None, now: datetime) -> Sequence[Piece]:
    share = remaining / limit
    style = _GREEN if share > _MUCH else _YELLOW if share > _SOME else _RED
    until = (resets - now).total_seconds() if resets else 0
    when = f" ({span(until)})" if until > 0 else ""
    return (style, f"{max(remaining, 0):,.0f}/{limit:,.0f}"), (_DIM, when)
