"""A post that invites an answer is told from one that only speaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.constants import PORTABLE_MAX_GRAPHEMES
from common.text.graphemes import grapheme_len
from modules.lives.bluesky.expression_policy import ENDINGS_APART, add_invitation, invites, lacks_invitation
from modules.services.own_feed.starting_points import Prompts
from modules.services.skills.skills import Skills
from tests.project import ROOT


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ("Rivers are patient.", False),
        ("Do you keep a log of mistakes?", True),
        ("What squeaks on your bike only in one weather?", True),
        ("It broke twice (and yours?).", True),
        ("雨の音が好きですか？", True),  # noqa: RUF001 - as Japanese writes it
        ("A checklist I use: https://example.com/a", True),
        ("I prefer the one which lies between two rivers.", False),
        ("?", False),
        ("", False),
    ],
)
def test_a_question_or_a_link_invites(draft: str, expected: bool) -> None:  # noqa: FBT001 - a table's column
    assert invites(draft) is expected


def test_only_where_none_of_the_latest_posts_invites_another_that_does_not_lacks_an_invitation() -> None:
    plain = ["Rivers are patient."] * ENDINGS_APART
    assert lacks_invitation("Tin sings.", plain)
    assert lacks_invitation("Tin sings.", [*plain, "And you?"])
    assert not lacks_invitation("Tin sings.", [*plain[1:], "And you?"])
    assert not lacks_invitation("Does tin sing?", plain)
    assert not lacks_invitation("Tin sings.", plain[1:])


@given(draft=st.text(max_size=400), invitations=st.lists(st.text(min_size=1, max_size=60), max_size=4))
def test_an_invitation_is_added_only_where_it_fits(draft: str, invitations: list[str]) -> None:
    whole = add_invitation(draft, invitations)
    assert whole == draft or grapheme_len(whole) <= PORTABLE_MAX_GRAPHEMES


def test_an_added_invitation_follows_the_thought() -> None:
    assert add_invitation("Rivers are patient.\n", [" Are you? "]) == "Rivers are patient. Are you?"
    assert add_invitation("x" * 290, ["Are you?", "And how do you see it?"]) == "x" * 290 + " Are you?"


def test_the_same_thought_gets_the_same_invitation_and_others_get_others() -> None:
    invitations = ["How about you?", "Anyone else?", "Does this resonate?"]
    assert add_invitation("Rivers are patient.", invitations) == add_invitation("Rivers are patient.", invitations)
    ends = {add_invitation(f"River {name} is patient.", invitations)[-6:] for name in "abcdefghijklmnop"}
    assert len(ends) == len(invitations)


def test_each_invitation_that_may_be_added_invites() -> None:
    offered = Prompts(Skills.load(ROOT / "skills")).invitations("Direct")
    assert len(offered) >= 5
    assert all(map(invites, offered))
