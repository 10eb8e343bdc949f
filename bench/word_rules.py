"""How well the rules that read words decide: precision and recall of each, on labelled cases.

Usage: `python bench/word_rules.py [--split dev|held-out] [--failures]`

`tests/data/word_rules.jsonl` holds the cases, one a line, written by hand; most are for work on the rules (`dev`),
the others are only measured (`held-out`). `--failures` lists what is decided wrong on `dev`; of the held-out
third nothing but the figures is shown. Ends with exit code 1 where a rule is below `FLOORS`.

What is expected is a yes or a no (a closing, a question), or the addresses that the text holds. What is not
plainly a closing is read by a model, here by the town's scripted mind, which likes or answers: both together are
measured. Whether a post repeats another (`echo`) a judge decides, so those cases are not measured here:
`tests/model/test_real_model_plans.py` asks a small real model about them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from adapters.atproto.richtext import detect_urls
from adapters.atproto.types import Actor, Notification
from adapters.github.types import extract_github_urls
from common.facts import PostFacts, SaidLine
from common.json_lines import split_lines
from common.text.closings import asks
from modules.lives.bluesky.policy import should_respond_to
from town.mind.choosing import choose
from town.mind.words import load_bank

BANK = load_bank()
CASES = ROOT / "tests" / "data" / "word_rules.jsonl"
Split = Literal["dev", "held-out"]
FLOORS: Mapping[Split, float] = {"dev": 0.97, "held-out": 0.93}
Found = frozenset[str]


@dataclass(frozen=True, slots=True)
class Case:
    """A labelled text; `other` is what a peer said before, for an echo. `expect` is empty where a rule must say no."""

    id: str
    rule: str
    split: Split
    hard: bool
    text: str
    other: str
    expect: Found


@dataclass(frozen=True, slots=True)
class Score:
    """How a rule did: found and right, found and wrong, missed; `asked` is what it leaves to a reader."""

    cases: int
    right: int
    wrong: int
    missed: int
    asked: int = 0

    @property
    def precision(self) -> float:
        """The share of what it found that is right."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of what is right that it found."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def _closing(case: Case) -> Found:
    """Whether a reply to ours is only liked: unread, or, of a closing, by the town's mind, which reads what is left.

    What says something must be read. What its reader then makes of it is no matter of this rule.
    """
    return _yes(said=is_liked_unread(case) or (bool(case.expect) and _is_liked_when_read(case)))


def _is_liked_when_read(case: Case) -> bool:
    thread = (SaidLine("", "Slate remembers the rain."),)
    post = PostFacts(uri="", cid="", author="them.test", text=case.text, notification_kind="reply", thread=thread)
    return choose(post, "us.test", BANK, random.Random(1)).act in {"like", "exit"}


def is_liked_unread(case: Case) -> bool:
    """Whether the rule alone takes a text for a closing, so that no model reads it."""
    post = Notification(
        uri="at://did:plc:them/app.bsky.feed.post/1",
        cid="c",
        author=Actor(did="did:plc:them", handle="them.test"),
        kind="reply",
        text=case.text,
        created_at="2026-01-01T00:00:00Z",
        indexed_at="2026-01-01T00:00:00Z",
    )
    return should_respond_to(post, "did:plc:owner").deserves_like


def _github(case: Case) -> Found:
    return frozenset(f"{one.owner}/{one.repo}#{one.number}" for one in extract_github_urls(case.text))


RULES: Mapping[str, Callable[[Case], Found]] = {
    "closing": _closing,
    "question": lambda case: _yes(said=asks(case.text)),
    "links": lambda case: frozenset(span.value for span in detect_urls(case.text)),
    "github": _github,
}


def read_cases() -> list[Case]:
    """All cases, in the order of the file."""
    return [_case(json.loads(line)) for line in split_lines(CASES.read_text(encoding="utf-8"))]


def score(cases: Iterable[Case]) -> Score:
    """Count over `cases`, address by address where a case holds several."""
    every = list(cases)
    read = sum(case.rule == "closing" and bool(case.expect) and not is_liked_unread(case) for case in every)
    found = [(RULES[case.rule](case), case.expect) for case in every]
    return Score(
        len(every),
        right=sum(len(said & expect) for said, expect in found),
        wrong=sum(len(said - expect) for said, expect in found),
        missed=sum(len(expect - said) for said, expect in found),
        asked=read,
    )


def _case(row: Mapping[str, object]) -> Case:
    expect = row["expect"]
    return Case(
        id=str(row["id"]),
        rule=str(row["rule"]),
        split="dev" if row["split"] == "dev" else "held-out",
        hard=bool(row["hard"]),
        text=str(row["text"]),
        other=str(row.get("other", "")),
        expect=frozenset(map(str, expect)) if isinstance(expect, list) else _yes(said=expect in {True, "same"}),
    )


def _yes(*, said: bool) -> Found:
    return frozenset({"yes"}) if said else frozenset()


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> int:
    """Print the figures; 1 where a rule is below the floor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=get_args(Split))
    parser.add_argument("--failures", action="store_true")
    options = parser.parse_args()
    cases, low = read_cases(), False
    for rule in RULES:
        for split in (options.split,) if options.split else get_args(Split):
            of_rule = [case for case in cases if case.rule == rule and case.split == split]
            figures = score(of_rule)
            low = low or min(figures.precision, figures.recall) < FLOORS[split]
            hard = sum(case.hard for case in of_rule)
            _tell(
                f"{rule:9} {split:9} {figures.cases:4} cases ({hard} hard)"
                f"  precision {figures.precision:.3f}  recall {figures.recall:.3f}"
                f"{f'  {figures.asked} left to a model' if figures.asked else ''}"
            )
            if options.failures and split == "dev":
                for case in of_rule:
                    if (said := RULES[rule](case)) != case.expect:
                        _tell(f"    {case.id}: found {sorted(said)}, is {sorted(case.expect)}: {case.text!r}")
    return int(low)


if __name__ == "__main__":
    sys.exit(main())
