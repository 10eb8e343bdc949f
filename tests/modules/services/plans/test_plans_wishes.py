"""Each wish has a plan of its own, and whoever is asked for the same finds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.github.types import Issue
from modules.services.plans.events import Wish, plan_for, wish_mark
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task
from tests.modules.lives.workspaces.test_upkeep_policy import ISSUE

TIDES = Plan("Tides", "The tides can be read.", tasks=(Task(1, "Read the tides", description="From a file."),))
POST, OTHER = "at://did:plc:owner/app.bsky.feed.post/1", "at://did:plc:owner/app.bsky.feed.post/2"


def issue(mark: str = "") -> Issue:
    body = f"{generate_plan_markdown(TIDES)}{mark and f'{chr(10)}{chr(10)}{mark}'}"
    return replace(ISSUE, number=3, title="[PLAN] Tides", body=body, html_url="https://github.com/a/b/issues/3")


@pytest.mark.parametrize(
    ("text", "said", "mark", "is_found"),
    [
        ("please plan a map of the harbour", (), "", False),
        ("please plan a map that shows where the tides can be read", (), "", False),
        ("please plan a map of the harbour", (), wish_mark(POST), True),
        ("and a map of the harbour", ("It is here: https://github.com/a/b/issues/3",), wish_mark(OTHER), True),
        ("and a map of the harbour", ("It is here: https://github.com/a/b/issues/31",), wish_mark(OTHER), False),
    ],
)
def test_an_open_plan_is_that_of_a_wish_by_its_mark_or_its_link(
    text: str, said: tuple[str, ...], mark: str, *, is_found: bool
) -> None:
    found = plan_for(Wish(POST, text, said=said), [issue(mark)])
    assert (found is not None) == is_found


def test_the_plan_that_was_made_for_the_post_comes_first() -> None:
    own = replace(issue(wish_mark(POST)), number=9)
    assert plan_for(Wish(POST, "reads the tides from a file"), [issue(), own]) == own


def test_a_plan_of_the_same_title_is_the_same() -> None:
    assert plan_for(Wish(POST, "a table", title="Tides"), [issue()]) is not None
    assert plan_for(Wish(POST, "a table", title="Tides"), [issue(wish_mark(OTHER))]) is None
    assert plan_for(Wish(POST, "the tides"), [issue()]) is None
