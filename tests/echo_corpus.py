"""The corpus of echoes: rooms of two to six messages, each with a candidate that repeats one of them or does not.

Written by hand, except the near-verbatim candidates, which a program made from their sources. Each topic belongs to one
half: rules are tuned on `dev`, and claims are measured on `held-out`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

CORPUS = Path(__file__).with_name("data") / "echo_corpus.jsonl"

Stratum = Literal["verbatim", "reordered", "synonym", "new_point", "disagreement"]
Split = Literal["dev", "held-out"]
STRATA: tuple[Stratum, ...] = get_args(Stratum)


@dataclass(frozen=True, slots=True)
class Pair:
    """A candidate, and the room in which it would be said.

    Attributes:
        id: unique in the corpus.
        topic: what the room talks about.
        split: the half to which the topic belongs.
        stratum: how the candidate was derived from its source; a new point has no true source, though one is named.
        label: whether it repeats the source.
        topic_words: words that are unavoidable on this topic.
        host: the question of the host.
        peers: the messages since then, oldest first.
        source: index in `peers` of the message that the candidate repeats or contradicts.
        candidate: the message about to be said.

    """

    id: str
    topic: str
    split: Split
    stratum: Stratum
    label: Literal["echo", "fresh"]
    topic_words: tuple[str, ...]
    host: str
    peers: tuple[str, ...]
    source: int
    candidate: str

    @property
    def is_echo(self) -> bool:
        return self.label == "echo"


def corpus(split: Split | None = None) -> list[Pair]:
    """Return all pairs, or those of one half."""
    rows = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    pairs = [Pair(**row | {"topic_words": tuple(row["topic_words"]), "peers": tuple(row["peers"])}) for row in rows]
    return [pair for pair in pairs if split in {None, pair.split}]
