"""The facts of a turn about a post, as data beside its prompt. Pure."""

from __future__ import annotations

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Notification
from common.facts import PostFacts, SaidLine
from modules.lives.bluesky.thread import ThreadAnalysis
from modules.services.agent.tools.types import Turn


def post_facts(
    notification: Notification, thread: ThreadAnalysis, turn: Turn, *, own_did: str, is_owner: bool
) -> PostFacts:
    """The post of `notification` and the thread that was read for it."""
    earlier = (post for post in thread.posts if post.uri != notification.uri)
    return PostFacts(
        uri=notification.uri,
        cid=notification.cid,
        author=notification.author.handle,
        text=notification.text,
        notification_kind=notification.kind,
        thread=tuple(SaidLine("" if p.author.did == own_did else p.author.handle, p.text) for p in earlier),
        is_owner=is_owner,
        several_addressed=len(detect_mentions(notification.text)) > 1,
        trust=turn.provenance.name.lower(),
    )
