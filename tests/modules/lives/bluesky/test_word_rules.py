"""Proves that the rules that read words decide the labelled cases as labelled, with few exceptions.

A model, here the town's scripted mind, reads what is not plainly a closing, and likes or answers it: both together are
measured. Whether a post repeats another (`echo`) is decided by a judge.
"""

import random
import sys
from collections.abc import Callable

import pytest

from adapters.atproto.richtext import detect_urls
from adapters.github.types import extract_github_urls
from common.facts import PostFacts, SaidLine
from common.text.closings import asks
from modules.lives.bluesky.policy import should_respond_to
from tests.labelled_posts import Split, WordCase, word_cases, yes
from tests.modules.lives.bluesky.bluesky_values import notification
from town.mind.replies import choose
from town.mind.words import load_bank

CASES = word_cases()
BANK = load_bank()
FLOORS: dict[Split, float] = {"dev": 0.97, "held-out": 0.93}


def is_liked_unread(case: WordCase) -> bool:
    """Return whether the rule alone takes the text for a closing, so that no model reads it."""
    return should_respond_to(notification(text=case.text, kind="reply"), "did:plc:owner").deserves_like


def is_liked_when_read(case: WordCase) -> bool:
    thread = (SaidLine("", "Slate remembers the rain."),)
    post = PostFacts(uri="", cid="", author="them.test", text=case.text, notification_kind="reply", thread=thread)
    return choose(post, "us.test", BANK, random.Random(1)).act in {"like", "exit"}


RULES: dict[str, Callable[[WordCase], frozenset[str]]] = {
    "closing": lambda case: yes(said=is_liked_unread(case) or (bool(case.expect) and is_liked_when_read(case))),
    "question": lambda case: yes(said=asks(case.text)),
    "links": lambda case: frozenset(span.value for span in detect_urls(case.text)),
    "github": lambda case: frozenset(f"{one.owner}/{one.repo}#{one.number}" for one in extract_github_urls(case.text)),
}


@pytest.mark.parametrize("split", FLOORS)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_what_it_should_and_little_else(rule: str, split: Split) -> None:
    cases = [case for case in CASES if case.rule == rule and case.split == split]
    told = [(RULES[rule](case), case.expect) for case in cases]
    right = sum(len(found & expect) for found, expect in told)
    precision = right / sum(len(found) for found, _ in told)
    recall = right / sum(len(expect) for _, expect in told)
    read = sum(rule == "closing" and bool(case.expect) and not is_liked_unread(case) for case in cases)
    sys.stdout.write(f"{rule} {split}: {len(cases)} cases, {sum(case.hard for case in cases)} of them hard\n")
    sys.stdout.write(f"precision {precision:.3f}, recall {recall:.3f}, {read} left to a model\n")
    assert len(cases) >= 15
    assert min(precision, recall) >= FLOORS[split]
