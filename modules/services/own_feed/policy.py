"""Which of our own posts are to be taken back: duplicates, and thanks after thanks in one thread. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from adapters.atproto.types import FeedItem, Post
from common.clock import parse_iso_or_none
from common.text.closings import only_acknowledges
from common.text.strings import dedup_key, handles

MOST_DELETIONS = 10

Repeats = Literal["duplicate", "thank-you-chain"]


@dataclass(frozen=True, slots=True)
class Deletion:
    """A post of ours that is to be taken back because an older one, `kept`, says the same or is enough."""

    post: Post
    kept: Post
    repeats: Repeats

    @property
    def uri(self) -> str:
        return self.post.uri


def own_posts(items: Iterable[FeedItem], did: str) -> tuple[Post, ...]:
    """The posts of the account `did` in its feed, without those that it only reposts."""
    return tuple(item.post for item in items if item.reposted_by is None and item.post.author.did == did)


def plan_deletions(posts: Sequence[Post]) -> list[Deletion]:
    """Duplicates first, then what thanks again among the posts that stay; never more than `MOST_DELETIONS`."""
    duplicates = plan_duplicate_deletions(posts)
    gone = {deletion.uri for deletion in duplicates}
    closings = plan_closing_deletions([post for post in posts if post.uri not in gone])
    found = [*duplicates, *closings][:MOST_DELETIONS]
    # NOTE(self): what a duplicate repeats may itself go as a closing: then what that closing repeats is kept.
    kept = {deletion.uri: deletion.kept for deletion in found}
    return [replace(deletion, kept=kept.get(deletion.kept.uri, deletion.kept)) for deletion in found]


def plan_duplicate_deletions(posts: Iterable[Post]) -> list[Deletion]:
    """All but the oldest with the same words, handles, links and attachments, below one post or outside of all threads.

    The same words below two posts are no duplicates: two people who ask the same may get the same. Posts with neither
    words nor attachments are left alone.
    """
    told = (post for post in posts if post.text.strip() or post.embed_digest)
    return _all_but_the_oldest(told, _said, "duplicate")


def plan_closing_deletions(posts: Iterable[Post]) -> list[Deletion]:
    """All but the oldest of our replies in one thread that only thank, agree or take leave, and name the same people.

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
    """Oldest first. A post whose time cannot be read is neither kept for others nor deleted."""
    groups: defaultdict[Hashable, list[tuple[datetime, str, Post]]] = defaultdict(list)
    for post in posts:
        if (moment := parse_iso_or_none(post.created_at)) is not None:
            groups[key(post)].append((moment, post.uri, post))
    ordered = (sorted(group, key=lambda one: one[:2]) for group in groups.values())
    found = [(moment, Deletion(post, group[0][2], repeats)) for group in ordered for moment, _, post in group[1:]]
    return [deletion for _, deletion in sorted(found, key=lambda one: (one[0], one[1].uri))]
