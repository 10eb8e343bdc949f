"""Measures how well a SOUL notices that it would only repeat the room.

Usage: `python bench/echo.py [--split dev|held-out] [--limit 10]`

Each pair of the corpus is a room and a message about to be sent there. The words alone raise a suspicion; then, and in
some cases without a suspicion, a model is asked.

The exit code is 1 if the model would be asked about too few of the echoes that have the words of their source, or
if words alone accuse too many others.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.text.echo import find_semantic_echo_ensemble
from modules.lives.space.classifiers import judge_wanted
from tests.echo_corpus import STRATA, Pair, corpus

LEAST_ASKED, FALSE_ALARMS = 0.99, 0.02
_LEXICAL = ("verbatim", "reordered")


@dataclass(frozen=True, slots=True)
class Seen:
    """The results for a pair: by words alone, and whether the judge is asked."""

    pair: Pair
    by_words: bool
    asked: bool


def _see(pair: Pair) -> Seen:
    found = find_semantic_echo_ensemble(pair.candidate, pair.peers, pair.peers)
    wanted = found.is_echo or judge_wanted(pair.candidate, pair.peers, found, partners=len(pair.peers)).should
    return Seen(pair, found.is_echo, asked=wanted)


def _tell(seen: Sequence[Seen]) -> None:
    _say(f"{'':14}{'pairs':>7}{'words alone':>13}{'asked':>8}")
    for stratum in STRATA:
        rows = [one for one in seen if one.pair.stratum == stratum]
        if not rows:
            continue
        accused = _share(rows, lambda one: one.by_words)
        _say(f"{stratum:14}{len(rows):7}{accused:13.1%}{sum(one.asked for one in rows):8}")


def _share(rows: Sequence[Seen], holds: Callable[[Seen], bool]) -> float:
    return sum(map(holds, rows)) / len(rows) if rows else 0.0


def _some(pairs: Sequence[Pair], limit: int) -> Sequence[Pair]:
    """Return at most `limit` pairs, from the whole range; all for 0."""
    return pairs[:: max(1, -(-len(pairs) // limit))] if limit else pairs


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=("dev", "held-out"), default="held-out")
    parser.add_argument("--limit", type=int, default=0, help="how many pairs of each stratum; 0 for all")
    arguments = parser.parse_args()
    pairs = [
        pair
        for stratum in STRATA
        for pair in _some([one for one in corpus(arguments.split) if one.stratum == stratum], arguments.limit)
    ]
    seen = [*map(_see, pairs)]
    _tell(seen)
    asked_of = _share([one for one in seen if one.pair.stratum in _LEXICAL], lambda one: one.asked)
    alarms = _share([one for one in seen if not one.pair.is_echo], lambda one: one.by_words)
    _say(
        f"the judge is asked about {asked_of:.1%} of the lexical echoes; words alone accuse {alarms:.1%} of the others"
    )
    return int(asked_of < LEAST_ASKED or alarms > FALSE_ALARMS)


if __name__ == "__main__":
    sys.exit(main())
