"""Reads a thread as a person would: what was said before, by whom, and what the others answered beside us."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from adapters.atproto.types import Post, ThreadNode
from common.clock import parse_iso_or_none
from common.constants import THREAD_MAX_POSTS
from modules.lives.bluesky.circular import CircularAnalysis, detect_circular_conversation

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ThreadAnalysis:
    """A thread around one post, the focal post.

    Attributes:
        depth: how many posts stand above the focal post.
        agent_reply_count: how many replies of ours stand anywhere in the thread.
        total_replies: how many replies by anybody are known.
        last_agent_reply_depth: where our last reply above the focal post stands; the root is 0.
        is_agent_last_reply: the newest post of the thread is a reply of ours.
        is_answered: a reply of ours stands right under the focal post.
        participants: handles of the others, in order of appearance.
        posts: oldest to newest, an answer never before what it answers; siblings included; the path is complete, the
            rest is the newest up to `THREAD_MAX_POSTS`.
        focal_path: root to focal post.
        circular: whether the path goes round in circles of thanks.

    """

    depth: int
    agent_reply_count: int
    total_replies: int
    last_agent_reply_depth: int | None
    is_agent_last_reply: bool
    is_answered: bool
    participants: tuple[str, ...]
    posts: tuple[Post, ...]
    focal_path: tuple[Post, ...]
    circular: CircularAnalysis


def analyze_thread_view(thread: ThreadNode, agent_did: str, root_thread: ThreadNode | None = None) -> ThreadAnalysis:
    """Analyse the thread of a focal post.

    Args:
        thread: the focal post with its parents.
        agent_did: us.
        root_thread: the root with its replies, which shows the siblings.

    """
    path = _path(thread)
    known: dict[str, Post] = {}
    when: dict[str, datetime] = {}
    above = _LONG_AGO
    for post in path:
        known[post.uri] = post
        above = when[post.uri] = _moment(post, above)
    _collect(thread, known, when)
    if root_thread is not None:
        _collect(root_thread, known, when)
    ordered = sorted(known.values(), key=lambda post: when[post.uri])
    shown = _cap(ordered, {post.uri for post in path})
    ours_above = [depth for depth, post in enumerate(path) if depth and post.author.did == agent_did]
    replies = [post for post in ordered if post.reply is not None]
    return ThreadAnalysis(
        depth=len(path) - 1,
        agent_reply_count=sum(post.author.did == agent_did for post in replies),
        total_replies=len(replies),
        last_agent_reply_depth=ours_above[-1] if ours_above else None,
        is_agent_last_reply=bool(replies) and ordered[-1].author.did == agent_did,
        is_answered=any(post.author.did == agent_did and _parent_uri(post) == path[-1].uri for post in replies),
        participants=tuple(dict.fromkeys(post.author.handle for post in ordered if post.author.did != agent_did)),
        posts=shown,
        focal_path=path,
        circular=detect_circular_conversation(path),
    )


def _parent_uri(post: Post) -> str:
    return post.reply.parent.uri if post.reply else ""


def _path(focal: ThreadNode) -> tuple[Post, ...]:
    posts = []
    node: ThreadNode | None = focal
    while node is not None:
        posts.append(node.post)
        node = node.parent
    return tuple(reversed(posts))


def _collect(top: ThreadNode, known: dict[str, Post], when: dict[str, datetime]) -> None:
    """Take in `top` and all under it, an answer never dated before what it answers."""
    waiting = [(top, when.get(top.post.uri, _LONG_AGO))]
    while waiting:
        node, earliest = waiting.pop()
        known[node.post.uri] = node.post
        moment = when[node.post.uri] = _moment(node.post, earliest)
        waiting += [(reply, moment) for reply in node.replies]


def _moment(post: Post, earliest: datetime) -> datetime:
    """When it appeared, as far as that can be believed: as claimed, but not after it was seen nor before `earliest`."""
    claims = (parse_iso_or_none(text) for text in (post.created_at, post.indexed_at))
    return max(min((claim for claim in claims if claim is not None), default=earliest), earliest)


def _cap(ordered: list[Post], needed: set[str]) -> tuple[Post, ...]:
    room = max(0, THREAD_MAX_POSTS - len(needed))
    others = [post.uri for post in ordered if post.uri not in needed]
    kept = needed | set(others[len(others) - min(room, len(others)) :])
    return tuple(post for post in ordered if post.uri in kept)
