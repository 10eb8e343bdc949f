"""Reviews by the town's mind: a verdict by what the tests came to, and words that name what was read."""

from __future__ import annotations

import pytest

from common.facts import ReviewFacts, TurnFacts
from tests.town.mind.town_mind_prompts import MIND, WORDS, agent, offer
from town.model.types import ChatRequest

OFFERS = (offer("submit_review", ["event", "body"]),)
FILES = ("Makefile", "expenses.py", "test_expenses.py")


def reviewed(who: str, about: ReviewFacts) -> tuple[str, str]:
    (call,) = MIND.answer(ChatRequest("test", WORDS, OFFERS, "any", facts=TurnFacts(about, agent(who)))).calls
    return call.input["event"], call.input["body"]


@pytest.mark.parametrize(
    ("tests", "weakened", "event"),
    [
        ("passed", (), "APPROVE"),
        ("none", (), "APPROVE"),
        ("unrun", (), "COMMENT"),
        ("failed", (), "REQUEST_CHANGES"),
        ("passed", ("test_expenses.py",), "REQUEST_CHANGES"),
    ],
)
def test_the_verdict_follows_the_tests_and_the_words_name_a_file(
    tests: str, weakened: tuple[str, ...], event: str
) -> None:
    about = ReviewFacts("a/b", 3, "Expenses", "kit", FILES, tests, ("make test",), ("May has a total",), weakened)
    given, body = reviewed("maren", about)
    assert given == event
    assert "expenses.py" in body
    assert ("May has a total" in body) is (tests == "failed")
    assert all(path in body for path in weakened)


def test_several_reviewers_do_not_all_say_the_same() -> None:
    about = ReviewFacts("a/b", 3, "Expenses", "kit", FILES, "passed", ("make test",))
    assert len({reviewed(who, about) for who in ("maren", "tobias", "odile")}) > 1
