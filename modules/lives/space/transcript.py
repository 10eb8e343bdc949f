"""The talk of a room, and the names in it, as a model reads them. Pure.

A name is the one thing of a stranger that a prompt shows outside of any frame, so it has no room for a sentence, and
none for the signs with which a transcript is written. A line that is not indented begins a message, and only code
writes one: whoever puts `[12:04] host: …` into a message has it indented like the rest.

What does not fit is not cut in the middle: the oldest messages become one line each, and only a single message that is
larger than all the room there is loses its end.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import regex

from adapters.space.types import HOST
from common.clock import local
from common.text.lookalikes import skeleton
from common.text.untrusted import clean
from modules.lives.space.request_parser import point_summary
from modules.lives.space.types import HistoryEntry

YOU = "YOU"
MOST_NAMES = 30

_NAME_CHARS = 40
_MOST_WORDS = 3
_READ_CHARS = 200
_NO_SIGN_OF_A_NAME = regex.compile(r"[^\p{L}\p{M}\p{N}\s_.'-]+")
_TAKEN = {skeleton(name): name for name in (HOST, YOU)}


def shown(name: str, *, is_host: bool = False) -> str:
    """The name of somebody: at most 40 characters and three words; one that looks like the host's or ours says so.

    A name of which something is left out ends with `#` and four hexadecimal digits made from the whole, so that it does
    not read as the name of somebody else who is called exactly what is left.
    """
    if is_host:
        return HOST
    plain = " ".join(_NO_SIGN_OF_A_NAME.sub(" ", clean(name[:_READ_CHARS])).split()[:_MOST_WORDS])[:_NAME_CHARS]
    taken = _TAKEN.get(skeleton(plain))
    if taken:
        return f"not-{taken}"
    is_whole = plain == " ".join(name.split())
    return plain if is_whole else f"{plain or '?'}#{zlib.crc32(name.encode(errors='replace')) & 0xFFFF:04x}"


def listed(names: Iterable[str]) -> str:
    """Several names, at most 30; `…` stands for the others."""
    every = list(names)
    told = [shown(name) for name in every[:MOST_NAMES]]
    return ", ".join([*told, "…"] if len(every) > MOST_NAMES else told)


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
    told_whole = [told(entry, timezone) for entry in history]
    costs = [estimate(line) + 1 for line in told_whole]
    for_digest = tokens // _DIGEST_SHARE if sum(costs) > tokens else 0
    lines: list[str] = []
    left = tokens - for_digest
    for line, cost in zip(reversed(told_whole), reversed(costs), strict=True):
        if cost > left:
            break
        lines.insert(0, line)
        left -= cost
    older = history[: len(history) - len(lines)]
    if older and not lines:
        share = max(0, tokens - estimate(_CUT)) / max(1, estimate(told(older[-1], timezone)))
        line = told(older[-1], timezone)
        return Transcript((), (f"{line[: int(len(line) * share)]}{_CUT}",))
    return Transcript(_digest(older, estimate, for_digest), tuple(lines))


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
