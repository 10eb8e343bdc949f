"""Reads our own feed once for all uses: reactions to each thought, and posts that only repeat an older one.

A thought is examined three times: after half an hour, six hours and a day. Repeats are deleted through the outbox like
every other act.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from adapters.atproto.client import Atproto
from adapters.atproto.types import Post
from common.clock import Clock, parse_iso_or_none
from common.intervals import Pace
from common.result import ApiResult, Err, Ok, answering
from common.wording import counted
from modules.runtime.control import Standing
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome
from modules.services.outbox.bodies import DeleteBody
from modules.services.outbox.gates import FeedPaceGate
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.policy import is_about_rights
from modules.services.outbox.types import ProposedAction
from modules.services.own_feed.expressions import Expression, ExpressionEngagement, Expressions
from modules.services.own_feed.policy import (
    Deletion,
    Repeats,
    insight_of,
    is_due,
    is_last_look,
    own_posts,
    plan_deletions,
)

CAUSE = "feed-pruning"

_SUMMARIES: dict[Repeats, str] = {
    "duplicate": "Takes back a post that says the same as an older one",
    "thank-you-chain": "Takes back thanks after thanks in one thread",
}


@dataclass(frozen=True, slots=True)
class Pruner:
    """Proposes deletions. What the owner refused to delete, or was asked about, is not proposed again.

    An answer to a request about personal data is never deleted, as everybody has a right to theirs.
    """

    outbox: Outbox
    journal: Journal
    standing: Callable[[], Standing] = Standing

    async def prune(self, posts: Sequence[Post]) -> int:
        """Examine our own `posts`; return how many are deleted now, at most `MOST_DELETIONS`."""
        if not self.standing().may_act or not plan_deletions(posts):
            return 0
        standing, undecided = [], set()
        for post in posts:
            deletion = await self.outbox.standing("delete", post.uri)
            made = await self.outbox.made(post.uri)
            if not (deletion.code in {"waits", "done"} or (made and is_about_rights(made.body))):
                standing.append(post)
            if not (deletion.is_decided or (deletion.intent and deletion.intent.state == "failed")):
                undecided.add(post.uri)
        proposed = [one for one in plan_deletions(standing) if one.uri in undecided]
        return sum([await self._propose(one) for one in proposed])

    async def _propose(self, deletion: Deletion) -> bool:
        submitted = await self.outbox.submit(ProposedAction(DeleteBody(uri=deletion.uri), cause_id=CAUSE))
        if not submitted.accepted:
            return False
        post, kept = deletion.post, deletion.kept
        reason = f"{kept.uri} of {kept.created_at} stays; {post.like_count} likes, {post.reply_count} replies"
        await self.journal.record(
            Entry(
                "decision",
                CAUSE,
                f"{_SUMMARIES[deletion.repeats]}: {' '.join(post.text.split())[:60]}",
                line="queue",
                reason=reason,
                trigger_uri=post.uri,
                intent_id=submitted.intent.id,
                data={"act": "pruned", "destination": deletion.repeats, "kept": kept.uri},
            )
        )
        return True


ENGAGEMENT = "engagement"
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class EngagementWatch:
    """Reads the reactions of others to our thoughts.

    `on_insight` is called with each new insight and the words of the thought.
    """

    expressions: Expressions
    atproto: Atproto
    journal: Journal
    clock: Clock
    on_insight: Callable[[Literal["Answered", "Liked"], str], None]

    async def look(self, posts: Iterable[Post]) -> int:
        """Examine the thoughts that are due, in our feed `posts` or one by one; return how many were read."""
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
        """Return the thought after a look; one that left later than it was accepted may not be due yet."""
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
        """Record a line for each thought with a new insight, and one line with all figures."""
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


FEED_FETCH_LIMIT = 50

_OLDER_LIMIT, _MOST_OLDER_PAGES = 100, 10


@dataclass(frozen=True, slots=True)
class OwnFeed:
    """Reads the feed and tells the outbox of all posts in it, so that nothing is repeated and no post is too early."""

    atproto: Atproto
    outbox: Outbox
    pruner: Pruner
    pace: FeedPaceGate

    @answering
    async def read(self) -> ApiResult[tuple[Post, ...]]:
        """Return our newest posts and replies, newest first, without reposts.

        If most of them are new to the outbox, as in a home that lost its memory, it is told of older ones too.
        """
        page = (await self.atproto.get_author_feed(self.atproto.did, limit=FEED_FETCH_LIMIT)).or_raise()
        posts = own_posts(page.items, self.atproto.did)
        self.pace.note(posts)
        older, fresh = page, await self._get_to_know(posts)
        for _ in range(_MOST_OLDER_PAGES):
            if not fresh or not older.cursor:
                break
            read = await self.atproto.get_author_feed(self.atproto.did, limit=_OLDER_LIMIT, cursor=older.cursor)
            if not read.success:
                break
            older, fresh = read.data, await self._get_to_know(own_posts(read.data.items, self.atproto.did))
        return Ok(posts)

    async def _get_to_know(self, posts: Sequence[Post]) -> bool:
        """Tell the outbox of these posts; return whether most of them were new to it."""
        new = await self.outbox.warm_up_from_feed((post.uri, post.text) for post in posts)
        return 2 * new > len(posts)


@dataclass(slots=True)
class OwnFeedLoop(Loop):
    """Reads our own feed every quarter of an hour. It uses no model, so it need not wait for idle time."""

    name = ENGAGEMENT

    pace: Pace
    feed: OwnFeed
    watch: EngagementWatch
    ready: Callable[[], bool]

    @property
    def interval_ms(self) -> float:
        return self.pace.engagement_ms

    async def run(self) -> Outcome:
        if not self.ready():
            wait_s = self.pace.atproto_spacing_ms / 1000
            return Outcome(ran=False, reason="its own feed is still to be read", next_in_s=wait_s)
        posts = await self.feed.read()
        if isinstance(posts, Err):
            return Outcome(ran=False, reason=f"its own feed could not be read: {posts.error}")
        pruned = await self.feed.pruner.prune(posts.data)
        seen = await self.watch.look(posts.data)
        reason = f"{counted(len(posts.data), 'post')} read, {pruned} deleted, reactions to {seen} checked"
        return Outcome(ran=True, reason=reason)
