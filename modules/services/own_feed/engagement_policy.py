"""Decides when a thought is examined again, and which starting points get reactions. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from modules.services.own_feed.expressions import Expression, ExpressionEngagement

LOOKS = (timedelta(minutes=30), timedelta(hours=6), timedelta(hours=24))

Insight = Literal["answered", "liked"]
PatternCode = Literal["Answered", "Unanswered", "Two Lines"]
"""A subsection of `What Was Answered` in the `expression` skill."""

_LIKED_FROM = 5
_LIKE_SHARE = 0.1
_PERFORMERS = 3
_LITTLE = 0.3
_ENOUGH_POSTS = 2


@dataclass(frozen=True, slots=True)
class SourceEngagement:
    """The average replies and likes of the `posts` that started from one source."""

    source: str
    posts: int
    replies: float
    likes: float

    @property
    def score(self) -> float:
        """The value by which sources are ranked: replies, and a tenth of the likes."""
        return self.replies + _LIKE_SHARE * self.likes


@dataclass(frozen=True, slots=True)
class Pattern:
    """An insight from the averages of one source."""

    code: PatternCode
    about: SourceEngagement


def is_due(age: timedelta, age_when_seen: timedelta | None) -> bool:
    """Return whether a thought is due: it has reached an age in `LOOKS` and was not examined since."""
    return any(age >= look and (age_when_seen is None or age_when_seen < look) for look in LOOKS)


def is_last_look(age: timedelta) -> bool:
    """Return whether a look at a thought of this age is the last one."""
    return age >= LOOKS[-1]


def insight_of(engagement: ExpressionEngagement) -> Insight | None:
    """Return the insight from one look, or None."""
    if engagement.replies:
        return "answered"
    return "liked" if engagement.likes >= _LIKED_FROM else None


def get_engagement_patterns(expressions: Iterable[Expression]) -> list[Pattern]:
    """Return the patterns in the averages of the sources whose thoughts were examined."""
    ranked = _averages(expressions)
    if not ranked:
        return []
    best, worst = ranked[0], ranked[-1]
    insights = [Pattern("Answered", best)] if best.replies >= 1 else []
    if len(ranked) > 1 and worst.score < _LITTLE * best.score:
        insights.append(Pattern("Unanswered", worst))
    insights += [Pattern("Two Lines", one) for one in ranked if "+" in one.source and one.replies > 1 and one != best]
    return insights


def answered_sources(expressions: Iterable[Expression]) -> list[str]:
    """Return those of the three best sources in SELF.md whose thoughts were answered, best first."""
    return [one.source for one in _averages(expressions)[:_PERFORMERS] if one.replies]


def unanswered_sources(expressions: Iterable[Expression]) -> frozenset[str]:
    """Return the sources of several thoughts that nobody answered."""
    averages = _averages(expressions)
    return frozenset(one.source for one in averages if one.posts >= _ENOUGH_POSTS and not one.replies)


def _averages(expressions: Iterable[Expression]) -> list[SourceEngagement]:
    """Return the averages of each source, best first."""
    seen: defaultdict[str, list[ExpressionEngagement]] = defaultdict(list)
    for expression in expressions:
        if expression.engagement:
            seen[expression.prompt_source].append(expression.engagement)
    averages = [
        SourceEngagement(
            source,
            len(found),
            sum(one.replies for one in found) / len(found),
            sum(one.likes for one in found) / len(found),
        )
        for source, found in seen.items()
    ]
    return sorted(averages, key=lambda one: (-one.score, one.source))
