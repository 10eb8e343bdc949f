"""Looks three times at what became of each thought: after half an hour, after six hours and after a day."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from adapters.atproto.client import Atproto
from adapters.atproto.types import Post
from common.clock import Clock, parse_iso_or_none
from common.result import ApiResult, Ok, answering
from common.wording import counted
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.own_feed.engagement_policy import insight_of, is_due, is_last_look
from modules.services.own_feed.expressions import Expression, ExpressionEngagement, Expressions

ENGAGEMENT = "engagement"
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class EngagementWatch:
    """Reads what others made of our thoughts.

    `on_insight` is called with each new insight, and the words of the thought.
    """

    expressions: Expressions
    atproto: Atproto
    journal: Journal
    clock: Clock
    on_insight: Callable[[Literal["Answered", "Liked"], str], None]

    async def look(self, posts: Iterable[Post]) -> int:
        """Look at the thoughts that are due, in our feed `posts` or else one by one; returns how many were seen."""
        due = [one for one in self.expressions.all() if self._is_due(one)]
        shown = {post.uri: post for post in posts}
        seen: list[Expression] = []
        gone: list[str] = []
        for expression in due:
            known = shown.get(expression.post_uri)
            read = Ok(known) if known else await self._read(expression.post_uri)
            if isinstance(read, Ok):
                seen.append(self._seen(expression, read.data))
            elif read.kind == "not_found" and is_last_look(self.clock.since(expression.timestamp)):
                gone.append(expression.post_uri)
        before = {one.post_uri: one for one in due}
        self.expressions.keep(seen, gone)
        await self._tell([(before[one.post_uri], one) for one in seen])
        return len(seen)

    def _is_due(self, expression: Expression) -> bool:
        made, looked = expression.timestamp, expression.engagement
        seen = looked.checked_at if looked else None
        return is_due(self.clock.since(made), self.clock.lived(seen - made) if seen else None)

    def _seen(self, expression: Expression, post: Post) -> Expression:
        """The thought after a look; one that left later than it was accepted may not be due for it yet."""
        now = self.clock.now()
        made = parse_iso_or_none(post.created_at)
        if made is not None and expression.timestamp < made <= now:
            expression = expression.replace(timestamp=made)
        if not self._is_due(expression):
            return expression
        engagement = ExpressionEngagement(
            likes=post.like_count, replies=post.reply_count, reposts=post.repost_count, checked_at=now
        )
        return expression.replace(engagement=engagement, insight=insight_of(engagement) or expression.insight)

    @answering
    async def _read(self, uri: str) -> ApiResult[Post]:
        return Ok((await self.atproto.get_post_thread(uri, depth=0, parent_height=0)).or_raise().post)

    async def _tell(self, looks: list[tuple[Expression, Expression]]) -> None:
        """One line for each thought that came to something it had not come to before, and one with all figures."""
        for before, after in looks:
            if after.insight and after.insight != before.insight:
                words = " ".join(after.text.split())[:_SHOWN_CHARS]
                self.on_insight("Answered" if after.insight == "answered" else "Liked", words)
                await self.journal.record(
                    Entry(
                        "life",
                        ENGAGEMENT,
                        f"A thought was {after.insight}: {words}",
                        line="social",
                        reason=f"it started from {after.prompt_source}; {_figures([after])}",
                        trigger_uri=after.post_uri,
                        data={"insight": after.insight, "source": after.prompt_source},
                    )
                )
        measured = [after for _, after in looks if after.engagement]
        if any(one.engagement and (one.engagement.replies, one.engagement.likes) != (0, 0) for one in measured):
            summary = f"Reactions to {counted(len(measured), 'thought')} of its own: {_figures(measured)}"
            await self.journal.record(Entry("life", ENGAGEMENT, summary, line="info"))


def _figures(expressions: Iterable[Expression]) -> str:
    seen = [one.engagement for one in expressions if one.engagement]
    replies, likes, reposts = (sum(getattr(one, name) for one in seen) for name in ("replies", "likes", "reposts"))
    return ", ".join((counted(replies, "reply", "replies"), counted(likes, "like"), counted(reposts, "repost")))
