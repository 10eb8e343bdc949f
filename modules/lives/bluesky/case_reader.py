"""Reads once what a waiting post needs: its thread, and what its author, ours and the people in it chose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor, Notification, Post
from common.importance import Importance
from common.provenance import Provenance
from common.result import ApiResult, Err, Ok, answering
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.others_first import OthersFirst
from modules.lives.bluesky.thread import (
    ThreadAnalysis,
    analyze_thread_view,
    beside_request,
    is_said_by,
)
from modules.lives.bluesky.thread_text import UnsentReply
from modules.lives.bluesky.types import Incoming, Pending
from modules.services.identity.identity import Me
from modules.services.moderation.moderation import Moderation
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.types import ACTIVE_STATES
from modules.services.peers.accounts import Relationships
from modules.services.peers.discovery import PeerDiscovery
from modules.services.rights.policy import may_stand_in_prompt
from modules.services.rights.preferences import Preferences
from modules.services.rituals.rituals import Rituals
from modules.services.workspaces.watched import WatchedWorkspaces

THREAD_DEPTH = 6


@dataclass(slots=True, kw_only=True)
class CaseReader:
    """Reads what a decision about one post rests on: its thread, its author, and the rules of the outbox."""

    me: Me
    atproto: Atproto
    relationships: Relationships
    etiquette: Etiquette
    preferences: Preferences
    moderation: Moderation
    peers: PeerDiscovery
    workspaces: WatchedWorkspaces
    others: OthersFirst
    rituals: Rituals
    outbox: Outbox

    @property
    def own_did(self) -> str:
        return self.atproto.did

    def importance_of(self, notification: Notification) -> Importance:
        """How much its author matters, among those for whom the day's budget is kept."""
        if self.me.is_owner(notification.author.did):
            return "owner"
        return "stranger" if self.etiquette.is_stranger(notification.author.did) else "mention"

    @answering
    async def read_case(self, item: Pending) -> ApiResult[PostCase]:
        """Read one case, with two requests: the post with what stands above and below it, and the root.

        What each author allows is read once a day, and so is what our account chose not to see. Who in the thread may
        be another SOUL is noted.
        """
        notification = item.notification
        read = (await self._read_thread(notification)).or_raise()
        thread, importance = read, self.importance_of(notification)
        author_did = notification.author.did
        automated = self.etiquette.is_automated(notification.author)
        incoming = incoming_of(notification, item.indexed, thread, is_automated=automated)
        answered = _handles_under(notification, thread)
        trusted = {self.me.owner_did, self.atproto.did}
        is_owner = importance == "owner"
        beside = beside_request(thread, trusted) if is_owner else ()
        alone = is_owner and all(is_said_by(trusted, post) for post in thread.posts if post not in beside)
        quoted = tuple(post.quoted for post in (*thread.posts, *thread.focal_path) if post.quoted)
        present = {author_did, *(post.author.did for post in (*thread.posts, *quoted))}
        muted = await self.preferences.muted(present)
        left_out = muted | (await self.preferences.forgotten(present) - {author_did})
        preferences = await self.preferences.of((present - left_out) | {author_did})
        await self.moderation.refresh()
        self.moderation.note(*(post.author for post in (*thread.posts, *quoted)))
        unseen = {post.uri: why for post in (*thread.posts, *quoted) if (why := self.moderation.why_unseen(post))}

        def may_be_shown(post: Post) -> bool:
            who = post.author.did
            return post.uri not in unseen and who not in left_out and may_stand_in_prompt(preferences.get(who))

        def alone_where_unseen(post: Post) -> Post:
            return replace(post, quoted=None) if post.quoted and not may_be_shown(post.quoted) else post

        thread = replace(thread, focal_path=tuple(map(alone_where_unseen, thread.focal_path)))
        shown = tuple(alone_where_unseen(post) for post in thread.posts if may_be_shown(post))
        self.peers.note_posts(shown)
        peers = {post.author.did for post in shown if self.etiquette.is_peer(post.author)} - {author_did, *trusted}
        named = (handle for handle in item.named if handle.lower() != self.me.bluesky_username.lower())
        with_peers = bool(peers) or any(self.etiquette.is_peer(Actor("", handle)) for handle in named)
        beside_uris = {post.uri for post in beside}
        hidden = tuple(post for post in shown if post.uri in beside_uris) if alone else ()
        return Ok(
            PostCase(
                item=item,
                thread=replace(thread, posts=tuple(post for post in shown if post not in hidden)),
                own_did=self.atproto.did,
                importance=importance,
                provenance=Provenance.OWNER if alone else Provenance.STRANGER,
                incoming=incoming,
                relationship=self.relationships.get(notification.author.did),
                advice=await self.etiquette.before_reply(notification, thread.posts),
                preference=preferences.get(author_did),
                unseen=unseen.get(notification.uri, "") if self.moderation.is_known else None,
                is_muted=author_did in muted,
                is_peer=self.etiquette.is_peer(notification.author),
                names_workspace=self.workspaces.is_thread_of_one(notification.root.uri),
                peers=frozenset(peers),
                hidden=hidden,
                among_others=replace(thread, posts=shown) if hidden else None,
                answered=tuple(f"@{one}" for one in item.named if one.lower() in answered),
                github_username=self.me.github_username,
                peers_since=self._peers_since if with_peers else None,
                later=self.others.later(item, answered) if is_owner else None,
                shares_work=self.others.is_shared(notification.uri),
                ritual=await self.rituals.thread_of(notification),
                unsent=await self._unsent_in(notification.root.uri),
            )
        )

    async def _unsent_in(self, root_uri: str) -> tuple[UnsentReply, ...]:
        """Our replies in a thread that have not left yet, oldest first."""
        ours = await self.outbox.at_place(["reply"], root_uri)
        waiting = [one for one in reversed(ours) if one.state in ACTIVE_STATES and one.state != "done"]
        return tuple(UnsentReply(one.target, one.body.public_text) for one in waiting)

    async def _peers_since(self, uri: str) -> list[Post]:
        """What peers wrote right under a post, as it stands now; nothing where that cannot be read."""
        read = await self.atproto.get_post_thread(uri, 1, 0)
        if isinstance(read, Err):
            return []
        below = [reply.post for reply in read.data.replies if reply.post.author.did != self.atproto.did]
        by_peers = [post for post in below if self.etiquette.is_peer(post.author)]
        allowed = await self.preferences.readable({post.author.did for post in by_peers})
        seen = (post for post in by_peers if not self.moderation.why_unseen(post))
        return [post for post in seen if post.author.did in allowed]

    @answering
    async def _read_thread(self, notification: Notification) -> ApiResult[ThreadAnalysis]:
        focal = (await self.atproto.get_post_thread(notification.uri, THREAD_DEPTH)).or_raise()
        root_node = None
        if notification.root.uri != notification.uri:
            root = await self.atproto.get_post_thread(notification.root.uri, THREAD_DEPTH, 0)
            root_node = None if isinstance(root, Err) else root.data
        return Ok(analyze_thread_view(focal, self.atproto.did, root_node))


def _handles_under(notification: Notification, thread: ThreadAnalysis) -> set[str]:
    """The handles of those who replied right to a post, in lower case."""
    replies = (post for post in thread.posts if post.reply and post.reply.parent.uri == notification.uri)
    return {post.author.handle.lower() for post in replies}


def incoming_of(
    notification: Notification, at: datetime, thread: ThreadAnalysis | None, *, is_automated: bool
) -> Incoming:
    """Return a post as a conversation takes it in; `thread` is what was read of its thread, if anything was."""
    author = notification.author
    before = [post.text for post in thread.focal_path if post.uri != notification.uri] if thread else []
    return Incoming(
        did=author.did,
        handle=author.handle,
        display_name=author.display_name,
        text=notification.text,
        at=at,
        depth=thread.depth if thread else 0,
        recent_texts=tuple(before),
        is_automated=is_automated or author.is_bot,
    )
