"""Takes back those of our posts that only repeat an older one, through the outbox like every other act."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.atproto.types import Post
from modules.runtime.control import Standing
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import DeleteBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.policy import is_about_rights
from modules.services.outbox.types import ProposedAction
from modules.services.own_feed.policy import Deletion, Repeats, plan_deletions

CAUSE = "feed-pruning"

_SUMMARIES: dict[Repeats, str] = {
    "duplicate": "Takes back a post that says the same as an older one",
    "thank-you-chain": "Takes back thanks after thanks in one thread",
}


@dataclass(frozen=True, slots=True)
class Pruner:
    """Proposes the deletions. What the owner refused to delete, or was asked about, is not proposed again.

    An answer to what somebody asked about their own data is never taken back: each of them has a right to theirs.
    """

    outbox: Outbox
    journal: Journal
    standing: Callable[[], Standing] = Standing

    async def prune(self, posts: Sequence[Post]) -> int:
        """Look through our own `posts`; returns how many are taken back now, at most `MOST_DELETIONS`."""
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
