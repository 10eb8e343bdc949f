"""The talk of a room as a model reads it: every message whole, as long as there is room for it. Pure.

A line that is not indented begins a message, and only code writes one: whoever puts `[12:04] host: …` into a message
of theirs has it indented like the rest.

What does not fit is not cut in the middle: the oldest messages become one line each, and only a single message that is
larger than all the room there is loses its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.clock import local
from common.text.untrusted import clean
from modules.lives.space.names import YOU, shown
from modules.lives.space.targets import point_summary
from modules.lives.space.types import HistoryEntry

_DIGEST_SHARE = 4
_CUT = " […]"
_INDENT = "\n    "


@dataclass(frozen=True, slots=True)
class Transcript:
    """`digest` has a line for each of the oldest messages, `lines` the newest messages whole."""

    digest: tuple[str, ...]
    lines: tuple[str, ...]


def transcript(
    history: Sequence[HistoryEntry], *, estimate: Callable[[str], int], tokens: int, timezone: str = ""
) -> Transcript:
    """What fits into `tokens`, the newest first in line; our own words are marked YOU."""
    lines: list[str] = []
    left = tokens
    for entry in reversed(history):
        line = told(entry, timezone)
        cost = estimate(line) + 1
        if cost > left:
            break
        lines.insert(0, line)
        left -= cost
    older = history[: len(history) - len(lines)]
    if older and not lines:
        share = max(0, tokens - estimate(_CUT)) / max(1, estimate(told(older[-1], timezone)))
        line = told(older[-1], timezone)
        return Transcript((), (f"{line[: int(len(line) * share)]}{_CUT}",))
    return Transcript(_digest(older, estimate, min(left, tokens // _DIGEST_SHARE)), tuple(lines))


def told(entry: HistoryEntry, timezone: str = "") -> str:
    """One message: `[12:04] rebecca: …`."""
    words = clean(entry.content).replace("\n", _INDENT)
    return f"[{local(entry.at, timezone):%H:%M}] {_speaker(entry)}: {words}"


def _speaker(entry: HistoryEntry) -> str:
    return YOU if entry.is_me else shown(entry.name, is_host=entry.is_host)


def _digest(older: Sequence[HistoryEntry], estimate: Callable[[str], int], tokens: int) -> tuple[str, ...]:
    kept: list[str] = []
    for entry in reversed(older):
        line = clean(point_summary(_speaker(entry), entry.content))
        tokens -= estimate(line) + 1
        if tokens < 0:
            break
        kept.insert(0, line)
    return tuple(kept)
