"""Our own feed, read once for all that need it: what was said before, and what is to be taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.atproto.client import Atproto
from adapters.atproto.types import Post
from common.pace import Pace
from common.result import ApiResult, Err, Ok, answering
from common.wording import counted
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.outbox.gates.feed_pace import FeedPaceGate
from modules.services.outbox.outbox import Outbox
from modules.services.own_feed.engagement import ENGAGEMENT, EngagementWatch
from modules.services.own_feed.policy import own_posts
from modules.services.own_feed.pruning import Pruner

FEED_FETCH_LIMIT = 50

_OLDER_LIMIT, _MOST_OLDER_PAGES = 100, 10


@dataclass(frozen=True, slots=True)
class OwnFeed:
    """Reads the feed, and lets the outbox know of everything in it: nothing is said twice, and no post too soon."""

    atproto: Atproto
    outbox: Outbox
    pruner: Pruner
    pace: FeedPaceGate

    @answering
    async def read(self) -> ApiResult[tuple[Post, ...]]:
        """Our newest posts and replies, the newest first; reposts are left out.

        Where most of them are new to it, as in a home that lost its memory, the outbox gets to know older ones too.
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
        """Let the outbox know of these posts; returns whether most of them were new to it."""
        new = await self.outbox.warm_up_from_feed((post.uri, post.text) for post in posts)
        return 2 * new > len(posts)


@dataclass(slots=True)
class OwnFeedLoop(Loop):
    """Looks at our own feed every quarter of an hour. Uses no model, and so takes no attention."""

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
