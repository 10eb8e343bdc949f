"""Limits who may reply in a thread of our own, as the owner wants it."""

from collections.abc import Sequence
from typing import Literal, get_args

from adapters.atproto.client import Atproto
from adapters.atproto.records import POST, parse_at_uri
from adapters.atproto.richtext import parse_bsky_post_url
from modules.services.outbox.bodies import AllowedReplies, ReplyRule, ThreadgateBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import ACTIVE_STATES, ProposedAction, Submitted

Audience = Literal["nobody", "everybody", "mentioned", "followers", "following"]
LimitProblem = Literal["No Post", "Not Your Post", "Not First Post", "Unclear Audience"]
"""The reasons why nothing was proposed."""

NEWEST = "newest"
_OWN_POSTS_LOOKED_AT = 25


class ReplyLimits:
    """Proposes who may reply in a thread of ours."""

    def __init__(self, atproto: Atproto, outbox: Outbox) -> None:
        self._atproto = atproto
        self._outbox = outbox

    async def limit(
        self,
        post: str,
        audience: Sequence[Audience],
        *,
        cause_id: str | None,
        by_owner: bool,
        own_words: bool = False,
        hold: str = "",
    ) -> Submitted | LimitProblem:
        """Let only `audience` reply to a post of ours and to everything below it, from now on.

        `post` is an `at://` uri, a link to the post, or "" or `NEWEST`. `own_words`: the owner asked for it without
        naming the post. `hold` is why it must wait for the owner's approval; "" if it need not.
        """
        replies = allowed_replies(audience)
        if replies == "Unclear Audience":
            return replies
        uri = await self.own_post(post)
        if not uri.startswith("at://"):
            return "Not Your Post" if post else "No Post"
        if await self._is_reply(uri):
            return "Not First Post"
        body = ThreadgateBody(uri=uri, replies=replies)
        return await self._outbox.submit(
            ProposedAction(body, cause_id=cause_id, urgent=by_owner, by_owner=by_owner, own_words=own_words, hold=hold)
        )

    async def own_post(self, post: str) -> str:
        """Return the uri of a post of our own, named as in `limit`; "" if it is none."""
        if post in {"", NEWEST}:
            posts = await self._outbox.of_kind("post", _OWN_POSTS_LOOKED_AT)
            # NOTE(self): a scheduled post does not exist yet.
            standing = [
                one for one in posts if one.state in ACTIVE_STATES and (one.first_sent_at or not one.scheduled_for)
            ]
            newest = max(standing, key=lambda one: one.first_sent_at or one.created_at, default=None)
            return record_uri(self._atproto.did, newest) if newest else ""
        if link := parse_bsky_post_url(post):
            is_ours = link[0].lower() in {self._atproto.did, self._atproto.handle.lower()}
            return f"at://{self._atproto.did}/{POST}/{link[1]}" if is_ours else ""
        at = parse_at_uri(post)
        return post if at and (at.repo, at.collection) == (self._atproto.did, POST) else ""

    async def _is_reply(self, uri: str) -> bool:
        """Return whether a post is known to be a reply; if unreadable, it is checked again on departure."""
        found = (await self._atproto.get_record(uri)).or_else(None)
        return found is not None and "reply" in found.value


def allowed_replies(audience: Sequence[Audience]) -> AllowedReplies | Literal["Unclear Audience"]:
    """Return the network's rule for an audience; "everybody" and "nobody" stand alone."""
    named = list(dict.fromkeys(audience))
    if named in (["everybody"], ["nobody"]):
        return None if named == ["everybody"] else ()
    rules = tuple(rule for rule in get_args(ReplyRule) if rule in named)
    return rules if rules and len(rules) == len(named) else "Unclear Audience"
