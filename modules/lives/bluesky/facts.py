"""The facts of a turn on Bluesky, as data beside its prompt. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Notification
from common.facts import ExpressionFacts, PostFacts, SaidLine
from modules.lives.bluesky.thread import ThreadAnalysis
from modules.services.agent.identity.self_document import SelfExtract, self_lines
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


def expression_facts(source: str, prompt: str, recent: Sequence[str], me: SelfExtract) -> ExpressionFacts:
    """A post that starts from `source`; it is about those lines of SELF.md that stand in `prompt`."""
    lines = (line for part in self_lines(me).values() for line in part)
    return ExpressionFacts(source, tuple(line for line in lines if line in prompt), tuple(recent))
