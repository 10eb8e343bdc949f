"""A thought is looked at three times, and what was answered tells where the next should start."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.services.own_feed.engagement_policy import (
    LOOKS,
    get_engagement_patterns,
    insight_of,
    is_due,
    unanswered_sources,
)
from modules.services.own_feed.expressions import Expression, ExpressionEngagement
from tests.modules.lives.bluesky.bluesky_values import START, uri


def thought(source: str = "values", *, seen: datetime | None = None, replies: int = 0, likes: int = 0) -> Expression:
    engagement = ExpressionEngagement(likes=likes, replies=replies, reposts=0, checked_at=seen) if seen else None
    return Expression(
        timestamp=START,
        prompt="A prompt.",
        prompt_source=source,
        text="A thought.",
        post_uri=uri("me", "t1"),
        engagement=engagement,
    )


@pytest.mark.parametrize(
    ("now", "seen", "due"),
    [(29, None, False), (30, None, True), (360, 31, True), (1440, 361, True), (9000, 1441, False), (9000, 40, True)],
)
def test_a_thought_is_looked_at_once_after_each_time(now: float, seen: float | None, due: bool) -> None:  # noqa: FBT001
    assert is_due(timedelta(minutes=now), None if seen is None else timedelta(minutes=seen)) is due


@given(st.lists(st.floats(min_value=1, max_value=3000), max_size=40))
def test_however_often_one_asks_a_thought_is_looked_at_three_times_at_most(pauses: list[float]) -> None:
    age, seen, looks = timedelta(), None, 0
    for pause in pauses:
        age += timedelta(minutes=pause)
        if is_due(age, seen):
            seen, looks = age, looks + 1
    assert looks <= len(LOOKS)


@pytest.mark.parametrize(
    ("replies", "likes", "insight"),
    [(0, 0, None), (0, 4, None), (0, 5, "liked"), (1, 0, "answered"), (1, 9, "answered")],
)
def test_a_reply_or_five_likes_tell_something(replies: int, likes: int, insight: str | None) -> None:
    assert insight_of(ExpressionEngagement(likes=likes, replies=replies, reposts=0, checked_at=START)) == insight


def test_sources_are_ranked_by_replies_and_a_tenth_of_the_likes() -> None:
    seen = [
        thought("questions", seen=START, replies=3),
        thought("questions", seen=START, replies=1),
        thought("values+patterns", seen=START, replies=2),
        thought("values", seen=START, likes=9),
        thought("purpose", seen=START),
        thought("identity"),
    ]
    patterns = get_engagement_patterns(seen)
    assert [one.source for one in patterns.high_performers] == ["questions", "values+patterns", "values"]
    assert patterns.high_performers[0].replies == 2
    assert [(one.code, one.about.source) for one in patterns.insights] == [
        ("Answered", "questions"),
        ("Unanswered", "purpose"),
        ("Two Lines", "values+patterns"),
    ]


def test_a_source_counts_as_unanswered_only_after_several_thoughts() -> None:
    once, answered = thought("once", seen=START), thought("answered", seen=START, replies=1)
    never = [thought("never", seen=START, likes=3)] * 2
    assert unanswered_sources([once, answered, thought("answered", seen=START), *never]) == {"never"}
