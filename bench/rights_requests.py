"""How well requests about one's own data are found: by the pre-filter before a model, and by words alone.

Usage: `python bench/rights_requests.py [--split dev|held-out] [--failures]`

`tests/data/rights_requests.jsonl` holds the cases, one a line, written by hand in fifteen languages; two thirds are for
work on the pre-filter (`dev`), one third is only measured (`held-out`). A fourth are look-alikes: posts about
forgetting, answering and the like that ask for nothing. `--failures` lists the requests of `dev` that are missed.
Ends with exit code 1 where recall is below `LEAST_RECALL`, more look-alikes pass than `MOST_PASSED`, or the words alone
tell fewer kinds than `LEAST_RIGHT`, or fewer requests for no reply beside one to be forgotten.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from common.json_lines import split_lines
from common.text.rights_requests import also_asks_for_no_reply, kind_by_words, may_be_rights_request

CASES = ROOT / "tests" / "data" / "rights_requests.jsonl"
Split = Literal["dev", "held-out"]
LEAST_RIGHT = 0.6
"""The share of the requests whose kind the words alone must tell, for people whose posts no model may read."""

LEAST_RECALL: Mapping[Split, float] = {"dev": 0.99, "held-out": 0.97}
MOST_PASSED = 0.7


@dataclass(frozen=True, slots=True)
class Case:
    """A post, and what it asks for; `none` for a look-alike."""

    language: str
    kind: str
    split: Split
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """How many requests there were, how many were found, and the same of look-alikes."""

    requests: int
    found: int
    look_alikes: int
    passed: int

    @property
    def recall(self) -> float:
        """The share of the requests that was found."""
        return self.found / self.requests if self.requests else 1.0

    @property
    def is_fit(self) -> bool:
        """Whether no more look-alikes pass than may."""
        return self.passed <= MOST_PASSED * self.look_alikes


def read_cases(path: Path = CASES) -> list[Case]:
    """Return the labelled posts."""
    return [Case(**json.loads(line)) for line in split_lines(path.read_text(encoding="utf-8"))]


def by_pre_filter(cases: Iterable[Case]) -> Found:
    """Return what the pre-filter makes of `cases`."""
    judged = [(case.kind != "none", may_be_rights_request(case.text)) for case in cases]
    requests, others = [hit for is_one, hit in judged if is_one], [hit for is_one, hit in judged if not is_one]
    return Found(len(requests), sum(requests), len(others), sum(others))


def by_words(cases: Iterable[Case]) -> Found:
    """Return in how many requests the words alone tell the kind, and how many look-alikes they take for one."""
    judged = [(case.kind, kind_by_words(case.text)) for case in cases]
    right = [told == kind for kind, told in judged if kind != "none"]
    taken = [told is not None for kind, told in judged if kind == "none"]
    return Found(len(right), sum(right), len(taken), sum(taken))


def by_second_words(cases: Iterable[Case]) -> Found:
    """Return in how many requests for no reply the words tell it beside another, and in how many to be forgotten."""
    judged = [(case.kind, also_asks_for_no_reply(case.text)) for case in cases]
    asked = [told for kind, told in judged if kind == "no_reply"]
    others = [told for kind, told in judged if kind == "forget"]
    return Found(len(asked), sum(asked), len(others), sum(others))


def main() -> int:
    """Print the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=get_args(Split))
    parser.add_argument("--failures", action="store_true")
    options = parser.parse_args()
    cases = read_cases()
    bad = False
    for split in get_args(Split):
        if options.split in {None, split}:
            own = [case for case in cases if case.split == split]
            got = by_pre_filter(own)
            words = by_words(own)
            second = by_second_words(own)
            bad = bad or got.recall < LEAST_RECALL[split] or not got.is_fit
            bad = bad or min(words.recall, second.recall) < LEAST_RIGHT
            languages = len({case.language for case in own})
            sys.stdout.write(
                f"{split}: {got.found} of {got.requests} requests found in {languages} languages"
                f" (recall {got.recall:.3f}); {got.passed} of {got.look_alikes} look-alikes are read too;"
                f" words alone tell {words.found} kinds, and take {words.passed} look-alikes for a request;"
                f" they tell {second.found} of {second.requests} requests for no reply beside one to be forgotten,"
                f" and {second.passed} where there is none\n"
            )
    if options.failures:
        missed = (one for one in cases if one.split == "dev" and one.kind != "none")
        sys.stdout.writelines(f"missed: {one.text}\n" for one in missed if not may_be_rights_request(one.text))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
