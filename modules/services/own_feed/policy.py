"""Selects our own posts to delete, when a thought is examined again, and which starting points get reactions. Pure."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from adapters.atproto.types import FeedItem, Post
from common.clock import parse_iso_or_none
from common.text.closings import only_acknowledges
from common.text.strings import dedup_key, handles
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


MOST_DELETIONS = 10

Repeats = Literal["duplicate", "thank-you-chain"]


@dataclass(frozen=True, slots=True)
class Deletion:
    """A post of ours to delete because an older one, `kept`, says the same or is enough."""

    post: Post
    kept: Post
    repeats: Repeats

    @property
    def uri(self) -> str:
        return self.post.uri


def own_posts(items: Iterable[FeedItem], did: str) -> tuple[Post, ...]:
    """Return the posts of the account `did` in its feed, without its reposts."""
    return tuple(item.post for item in items if item.reposted_by is None and item.post.author.did == did)


def plan_deletions(posts: Sequence[Post]) -> list[Deletion]:
    """Return duplicates first, then repeated thanks among the posts that stay; at most `MOST_DELETIONS`."""
    duplicates = plan_duplicate_deletions(posts)
    gone = {deletion.uri for deletion in duplicates}
    closings = plan_closing_deletions([post for post in posts if post.uri not in gone])
    found = [*duplicates, *closings][:MOST_DELETIONS]
    # NOTE(self): the original of a duplicate may itself be deleted as thanks; then its own original is the one kept.
    kept = {deletion.uri: deletion.kept for deletion in found}
    return [replace(deletion, kept=kept.get(deletion.kept.uri, deletion.kept)) for deletion in found]


def plan_duplicate_deletions(posts: Iterable[Post]) -> list[Deletion]:
    """Return all but the oldest of posts with the same words, handles, links and attachments in the same place.

    A place is below one post, or outside all threads. The same words below two posts are no duplicates: two people
    who ask the same may get the same. Posts with neither words nor attachments are left alone.
    """
    told = (post for post in posts if post.text.strip() or post.embed_digest)
    return _all_but_the_oldest(told, _said, "duplicate")


def plan_closing_deletions(posts: Iterable[Post]) -> list[Deletion]:
    """Return all but the oldest of our replies in one thread that only thank, agree or say goodbye to the same people.

    Those with a link or a picture stay.
    """
    closings = (
        post
        for post in posts
        if post.reply and not post.links and not post.embed_digest and only_acknowledges(post.text)
    )
    return _all_but_the_oldest(closings, lambda post: (post.root_uri, handles(post.text)), "thank-you-chain")


def _said(post: Post) -> Hashable:
    scope = post.reply.parent.uri if post.reply else ""
    return scope, dedup_key(post.text), tuple(sorted(post.links)), post.embed_digest


def _all_but_the_oldest(posts: Iterable[Post], key: Callable[[Post], Hashable], repeats: Repeats) -> list[Deletion]:
    """Return deletions, oldest first. A post with an unreadable time is neither kept for others nor deleted."""
    groups: defaultdict[Hashable, list[tuple[datetime, str, Post]]] = defaultdict(list)
    for post in posts:
        if (moment := parse_iso_or_none(post.created_at)) is not None:
            groups[key(post)].append((moment, post.uri, post))
    ordered = (sorted(group, key=lambda one: one[:2]) for group in groups.values())
    found = [(moment, Deletion(post, group[0][2], repeats)) for group in ordered for moment, _, post in group[1:]]
    return [deletion for _, deletion in sorted(found, key=lambda one: (one[0], one[1].uri))]
