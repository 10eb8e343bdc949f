"""A post that invites an answer is told from one that only speaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.constants import PORTABLE_MAX_GRAPHEMES
from common.text.graphemes import grapheme_len
from modules.lives.bluesky.expression_policy import add_invitation, check_invitation
from modules.services.own_feed.starting_points import Prompts
from modules.services.skills.contracts import SKILL_CONTRACTS
from modules.services.skills.skills import Skills
from tests.project import ROOT


@pytest.mark.parametrize(
    ("draft", "kind", "confidence"),
    [
        # anchors
        ("Rivers are patient.", "none", "none"),
        ("Do you sketch by hand or screen?", "question", "strong"),
        ("Do you keep a log of mistakes?", "question", "weak"),
        ("A checklist I use: https://example.com/a", "artifact", "strong"),
        # choice and taste inside a question
        ("Paper or screen?", "question", "strong"),
        ("Which one stays?", "question", "strong"),
        ("Two ways to mend a net. Which do you prefer?", "question", "strong"),
        ("Speed or care?", "question", "strong"),
        # the same words in a statement invite nobody
        ("I prefer the one which lies between two rivers.", "none", "none"),
        ("Multiple tipping points, one stepladder.", "none", "none"),
        ("I prefer paper. It rained?", "question", "weak"),
        ("Ferrous oxides, orchards, priors?", "question", "weak"),
        # bounded and direct
        ("What's one tool you would keep?", "question", "weak"),
        ("Have you seen it? Curious what yours is.", "question", "strong"),
        ("What’s the oldest? What’s yours?", "question", "strong"),  # noqa: RUF001 - as phones write it
        ("It broke twice. How about you?", "question", "weak"),
        ("You could do what you like. It rained.", "none", "none"),
        # something to use
        ("A recipe for rust: salt and time.", "artifact", "weak"),
        ("Here’s how: slowly.", "artifact", "weak"),  # noqa: RUF001 - as phones write it
        ("Found it: https://example.com/tips?step=1", "artifact", "weak"),
        ("https://example.com/which?or=template", "artifact", "weak"),
        # any question at all
        ("Why does rust smell?", "question", "weak"),
        ("", "none", "none"),
    ],
)
def test_the_first_sign_that_applies_decides(draft: str, kind: str, confidence: str) -> None:
    check = check_invitation(draft)
    assert (check.invitation_type, check.confidence) == (kind, confidence)
    assert check.has_invitation is (kind != "none")
    assert (check.advice is None) is (confidence == "strong")


def test_who_gives_readers_nothing_is_told_all_three_ways() -> None:
    advice = check_invitation("Rivers are patient.").advice or ""
    told = Skills.load(ROOT / "skills", SKILL_CONTRACTS).subsection("expression", "Advice", advice)
    assert all(way in told for way in ("choice", "question", "use"))


@given(st.text())
def test_any_draft_is_judged_and_a_plain_question_always_invites(draft: str) -> None:
    check_invitation(draft)
    assert check_invitation(draft + " Why?").has_invitation


@given(draft=st.text(max_size=400), invitations=st.lists(st.text(min_size=1, max_size=60), max_size=4))
def test_an_invitation_is_added_only_where_it_fits(draft: str, invitations: list[str]) -> None:
    whole = add_invitation(draft, invitations)
    assert whole == draft or grapheme_len(whole) <= PORTABLE_MAX_GRAPHEMES


def test_an_added_invitation_follows_the_thought() -> None:
    assert add_invitation("Rivers are patient.\n", [" Are you? "]) == "Rivers are patient. Are you?"
    assert add_invitation("x" * 299, ["Are you?"]) == "x" * 299
    assert add_invitation("x" * 290, ["Are you?", "And how do you see it?"]) == "x" * 290 + " Are you?"


def test_the_same_thought_gets_the_same_invitation_and_others_get_others() -> None:
    invitations = ["How about you?", "Anyone else?", "Does this resonate?"]
    assert add_invitation("Rivers are patient.", invitations) == add_invitation("Rivers are patient.", invitations)
    ends = {add_invitation(f"River {name} is patient.", invitations)[-6:] for name in "abcdefghijklmnop"}
    assert len(ends) == len(invitations)


def test_each_invitation_that_may_be_added_invites() -> None:
    offered = Prompts(Skills.load(ROOT / "skills", SKILL_CONTRACTS)).invitations("Direct")
    assert len(offered) >= 5
    assert all(check_invitation(f"Rivers are patient. {one}").has_invitation for one in offered)


def test_of_five_thoughts_that_invite_nobody_one_is_given_an_invitation() -> None:
    said: list[str] = []
    for number in range(10):
        said.insert(0, add_invitation(f"Thought {number}.", ["Anyone else?", "How about you?"], said=said))
    assert [text.endswith("?") for text in reversed(said)] == [number % 5 == 0 for number in range(10)]
