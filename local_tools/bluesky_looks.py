"""What a SOUL can look up on Bluesky when the model asks. All of it is untrusted text."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor, Page, Post
from common.result import ApiResult
from local_tools.bluesky_inputs import ActorInput, ActorListInput, LimitInput
from local_tools.bluesky_turns import may_look_up
from local_tools.words import ToolWords
from modules.lives.bluesky.thread import shown_under
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.moderation.moderation import Moderation
from modules.services.rights.preferences import Preferences


@dataclass(slots=True)
class BlueskyLooks:
    """The handlers, with what they need; `framed` puts what was read into a frame."""

    atproto: Atproto
    preferences: Preferences
    moderation: Moderation
    words: ToolWords
    framed: Callable[[object], ToolResult]

    async def timeline(self, args: LimitInput, turn: Turn) -> ToolResult:
        page = (await self.atproto.get_timeline(limit=args.limit)).or_raise()
        seen = [item for item in page.items if not self.moderation.why_unseen(item.post)]
        quoted = [item.post.quoted for item in seen if item.post.quoted]
        shown = await self._allowed(post.author for post in (*(item.post for item in seen), *quoted))
        readable = {one.uri for one in quoted if one.author.did in shown and not self.moderation.why_unseen(one)}
        return self.framed([self._brief(item.post, readable) for item in seen if item.post.author.did in shown])

    async def notifications(self, args: LimitInput, turn: Turn) -> ToolResult:
        page = (await self.atproto.get_notifications(limit=args.limit)).or_raise()
        keys = ("uri", "cid", "kind", "text", "indexed_at")
        told = [item for item in page.notifications if not self.moderation.why_unseen(item)]
        shown = await self._allowed(item.author for item in told)
        return self.framed(
            [
                {**_named(item.author), **{key: getattr(item, key) for key in keys}}
                for item in told
                if item.author.did in shown
            ]
        )

    async def _allowed(self, authors: Iterable[Actor]) -> frozenset[str]:
        """Return the DIDs of those whose posts may stand in a prompt."""
        await self.moderation.refresh()
        return await self.preferences.readable({author.did for author in authors})

    async def profile(self, args: ActorInput, turn: Turn) -> ToolResult:
        if not may_look_up(args.actor, turn):
            return self.words.error("By Did")
        profile = (await self.atproto.get_profile(args.actor)).or_raise()
        self.moderation.note(profile)
        return self.framed(dataclasses.asdict(profile))

    async def followers(self, args: ActorListInput, turn: Turn) -> ToolResult:
        return await self._actors(self.atproto.get_followers, args, turn)

    async def follows(self, args: ActorListInput, turn: Turn) -> ToolResult:
        return await self._actors(self.atproto.get_follows, args, turn)

    async def _actors(
        self, get: Callable[..., Awaitable[ApiResult[Page]]], args: ActorListInput, turn: Turn
    ) -> ToolResult:
        if not may_look_up(args.actor, turn):
            return self.words.error("By Did")
        page = (await get(args.actor, limit=args.limit)).or_raise()
        return self.framed([dataclasses.asdict(actor) for actor in page.actors])

    def _brief(self, post: Post, readable: Collection[str]) -> dict[str, object]:
        """A post in few words; `readable` are the quoted ones that may be shown."""
        quoted = post.quoted if post.quoted and post.quoted.uri in readable else None
        beside = shown_under(replace(post, quoted=quoted), self.atproto.did, whole=True)
        return {
            "uri": post.uri,
            "cid": post.cid,
            **_named(post.author),
            "text": post.text,
            **({"beside": beside} if beside else {}),
            "likes": post.like_count,
            "replies": post.reply_count,
            "indexed_at": post.indexed_at,
        }


def _named(author: Actor) -> dict[str, object]:
    return {"author": author.handle, "author_did": author.did}
