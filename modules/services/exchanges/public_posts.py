"""Posts as they can be read now: without what was deleted, what a block hides, and what its author does not allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from adapters.atproto.client import Atproto
from adapters.atproto.types import Post
from modules.services.moderation.moderation import Moderation
from modules.services.rights.preferences import Preferences


@dataclass(frozen=True, slots=True)
class PublicPosts:
    """Reads them from the network."""

    atproto: Atproto
    preferences: Preferences
    moderation: Moderation

    async def readable(self, uris: Collection[str]) -> Mapping[str, Post]:
        """Return those of at most 25 posts that may stand in a prompt, by uri; none while the network is away."""
        read = (await self.atproto.get_posts(sorted(uris))).or_else(()) if uris else ()
        if not read:
            return {}
        await self.moderation.refresh()
        self.moderation.note(*(post.author for post in read))
        dids = {post.author.did for post in read} - {self.atproto.did}
        allowed = await self.preferences.readable(dids) | {self.atproto.did}
        seen = (post for post in read if not self.moderation.why_unseen(post))
        return {post.uri: post for post in seen if post.author.did in allowed}
