"""One waiting post with all that was read for it, so that nothing of it is asked for again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor, Notification, Post
from common.design_catalog import speaks_of_design
from common.facts import PostFacts, SaidLine
from common.provenance import Provenance
from common.result import ApiResult, Err, Ok
from common.text.host_intent import asks_each
from common.text.untrusted import clean, one_line
from modules.lives.bluesky.thread import (
    ThreadAnalysis,
    analyze_thread_view,
    beside_request,
    is_said_by,
    with_full_links,
)
from modules.lives.bluesky.types import Event, Incoming, Pending, Replied, Seen, Spoken, ThreadTurn
from modules.runtime.llm.types import Importance
from modules.services.agent.identity.identity import Me
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.types import ReplyAdvice
from modules.services.peers.accounts import Relationship, Relationships
from modules.services.peers.discovery import PeerDiscovery
from modules.services.peers.identity_post import tells_username
from modules.services.rights.policy import may_stand_in_prompt
from modules.services.rights.preferences import Preferences
from modules.services.rights.types import Preference
from modules.services.workspaces.watched import WatchedWorkspaces

THREAD_DEPTH = 6

_DEEP_THREAD = 10
_MANY_REPLIES = 3
_MANY_PEER_POSTS = 2


@dataclass(frozen=True, slots=True)
class Case:
    """A post with its thread, what is known of its author, and what the rules of the outbox say of an answer.

    Attributes:
        item: the waiting post.
        text: its text, with the addresses behind it that the text does not show in full.
        thread: as it was read, without the posts of those who are muted or deny that they stand in a prompt.
        own_did: our account.
        importance: how much the author matters, among those for whom the day's budget is kept.
        provenance: the owner's only where nobody else's words are in the thread, nor a quote of somebody else's, nor a
            picture, which may show anybody's words.
        relationship: what is remembered of the author; None for somebody new.
        incoming: the post, as a conversation takes it in.
        advice: how an answer would fare of the outbox.
        is_muted: whether the owner muted the author.
        preference: what the author allows; None where it could not be read.
        is_peer: whether the author is a peer.
        names_workspace: whether a workspace that is watched was first named in this thread.
        peers: dids of the peers who wrote in the thread, beside the author of the post.
        hidden: what others answered to a request of the owner's, left out of the prompt so that it holds the owner's
            words alone; a reply is checked against it.
        github_username: our name on GitHub; "" if there is none.
        peers_since: reads what peers wrote right under the post at a uri; None where no peer is named or wrote.

    """

    item: Pending
    text: str
    thread: ThreadAnalysis
    own_did: str
    importance: Importance
    provenance: Provenance
    relationship: Relationship | None
    incoming: Incoming
    advice: ReplyAdvice
    preference: Preference | None
    is_muted: bool = False
    is_peer: bool = False
    names_workspace: bool = False
    peers: frozenset[str] = frozenset()
    hidden: tuple[Post, ...] = ()
    github_username: str = ""
    peers_since: Callable[[str], Awaitable[list[Post]]] | None = None

    @property
    def notification(self) -> Notification:
        return self.item.notification

    @property
    def is_owner(self) -> bool:
        return self.importance == "owner"

    @property
    def is_project(self) -> bool:
        """Whether the thread is that of a workspace, or the owner or a peer writes in it and it is about work."""
        return self.names_workspace or ((self.is_owner or self.is_peer) and self.thread.names_work)

    @property
    def may_show_picture(self) -> bool:
        """Whether an answer may show a picture: a person asks about design, and we did not speak in the thread.

        Where the owner asks for an act the turn is kept free of others' words, a picture's among them.
        """
        asks_of_design = self.incoming.asks_us and speaks_of_design(self.notification.text)
        wants_act = self.provenance is Provenance.OWNER and asks_each(self.notification.text)
        return asks_of_design and not self.thread.agent_reply_count and not wants_act

    @property
    def addresses_others(self) -> bool:
        """Whether the post names somebody beside us."""
        return self.item.names_several

    @property
    def events(self) -> tuple[Event, ...]:
        """What the thread and the post say of the conversation: its root, our replies, and the post."""
        root, top = self.notification.root, self.thread.focal_path[0].author
        ours = (post.uri for post in self.thread.posts if post.author.did == self.own_did and post.reply)
        return (Seen(root.cid, top.did, top.handle, self.is_project), *map(Replied, ours), Spoken(self.incoming))

    @property
    def author_name(self) -> str:
        """The author's handle, and the display name if there is one: `@ada.test (Ada)`."""
        author = self.notification.author
        name = one_line(author.display_name)
        return f"@{author.handle} ({name})" if name else f"@{author.handle}"

    @property
    def post_line(self) -> str:
        """The post in one text, after the name of its author."""
        return f"{self.author_name}: {clean(self.text)}"

    @property
    def earlier_lines(self) -> str:
        """The other posts of the thread, a line each, oldest first, those of peers marked; "" if there are none."""
        return "\n".join(f"{self._speaker(one)}: {' '.join(with_full_links(one).split())}" for one in self._others)

    def _speaker(self, post: Post) -> str:
        if post.author.did == self.own_did:
            return "YOU"
        return f"@{post.author.handle} (peer)" if post.author.did in self.peers else f"@{post.author.handle}"

    @property
    def peer_posts(self) -> list[Post]:
        """What peers said in the thread, oldest first; the author of the post to be handled is none of them."""
        return [post for post in self._others if post.author.did in self.peers]

    @property
    def acquaintance(self) -> Literal["Owner", "New", "Known", "Unanswered"]:
        """How well the author is known: a subsection of `Relationship` in the `bluesky-response` skill."""
        if self.is_owner:
            return "Owner"
        if self.relationship is None or len(self.relationship.interactions) <= 1:
            return "New"
        return "Known" if self.relationship.responded else "Unanswered"

    @property
    def notes(self) -> list[str]:
        """What is to be noted about the thread: subsections of `Notes` in the `bluesky-response` skill."""
        applying = {
            "Owner Request": self.provenance is Provenance.OWNER and not self.may_show_picture,
            "Project": self.is_project,
            "Share Account": bool(self.account_to_tell),
            "Deep Thread": self.thread.depth >= _DEEP_THREAD and not self.is_project,
            "Own Replies": self.thread.agent_reply_count >= _MANY_REPLIES and not self.is_project,
            "Last Word": self.thread.is_agent_last_reply,
            "Circling": self.thread.circular.is_circular and not self.is_project,
            "Several Addressed": self.addresses_others and not self.peer_posts,
            "Peers Spoke": bool(self.peer_posts),
            "Peers Said Much": len(self.peer_posts) >= _MANY_PEER_POSTS,
        }
        return [name for name, applies in applying.items() if applies]

    @property
    def figures(self) -> dict[str, object]:
        """The values that those subsections have places for."""
        known = self.relationship
        return {
            "depth": self.thread.depth,
            "own_replies": self.thread.agent_reply_count,
            "interactions": len(known.interactions) if known else 0,
            "sentiment": known.sentiment if known else "unknown",
            "peers": ", ".join(dict.fromkeys(f"@{post.author.handle}" for post in self.peer_posts)),
            "peer_posts": len(self.peer_posts),
            "github_username": self.github_username,
        }

    @property
    def account_to_tell(self) -> str:
        """Our name on GitHub, where the thread is about work and no post of ours in it tells the name; else ""."""
        ours = (post.text for post in self.thread.posts if post.author.did == self.own_did)
        is_told = any(tells_username(text, self.github_username) for text in ours)
        return self.github_username if self.is_project and not is_told else ""

    @property
    def facts(self) -> PostFacts:
        """The post and its thread, as data beside the prompt."""
        post = self.notification
        return PostFacts(
            uri=post.uri,
            cid=post.cid,
            author=post.author.handle,
            text=post.text,
            notification_kind=post.kind,
            thread=tuple(
                SaidLine("" if one.author.did == self.own_did else one.author.handle, one.text) for one in self._others
            ),
            is_owner=self.is_owner,
            several_addressed=self.addresses_others,
            trust=self.provenance.name.lower(),
            account=self.account_to_tell,
        )

    @property
    def _others(self) -> list[Post]:
        return [post for post in self.thread.posts if post.uri != self.notification.uri]

    @property
    def _hidden_peer_posts(self) -> list[Post]:
        return [post for post in self.hidden if post.author.did in self.peers]

    @property
    def subject(self) -> ThreadTurn:
        """What the tools of a turn about it may touch, and what they check a reply against."""
        notification, posts = self.notification, self.thread.posts
        return ThreadTurn(
            notification=notification,
            root=notification.root,
            is_owner=self.is_owner,
            seen={post.uri: post.ref for post in posts} | {notification.uri: notification.ref},
            said=tuple(post.text for post in (*posts, *self.hidden)),
            is_unanswered=not self.thread.is_answered,
            peers_said=tuple(post.text for post in (*self.peer_posts, *self._hidden_peer_posts)),
            peers_since=self.peers_since,
            account=self.account_to_tell,
        )


class CaseReader:
    """Reads what a decision about one post rests on: its thread, its author, and the rules of the outbox."""

    def __init__(
        self,
        *,
        me: Me,
        atproto: Atproto,
        relationships: Relationships,
        etiquette: Etiquette,
        preferences: Preferences,
        peers: PeerDiscovery,
        workspaces: WatchedWorkspaces,
    ) -> None:
        self._me = me
        self._atproto = atproto
        self._relationships = relationships
        self._etiquette = etiquette
        self._preferences = preferences
        self._peers = peers
        self._workspaces = workspaces

    @property
    def own_did(self) -> str:
        return self._atproto.did

    def importance_of(self, notification: Notification) -> Importance:
        """How much its author matters, among those for whom the day's budget is kept."""
        if notification.author.did == self._me.owner_did:
            return "owner"
        return "stranger" if self._etiquette.is_stranger(notification.author.did) else "mention"

    async def read_case(self, item: Pending) -> ApiResult[Case]:
        """Read one case, with two requests: the post with what stands above and below it, and the root.

        What each author allows is read once a day. Who in the thread may be another SOUL is noted.
        """
        notification = item.notification
        read = await self._read_thread(notification)
        if isinstance(read, Err):
            return read
        thread, importance = read.data, self.importance_of(notification)
        author_did = notification.author.did
        automated = self._etiquette.is_automated(notification.author)
        incoming = incoming_of(notification, item.indexed, thread, is_automated=automated)
        trusted = {self._me.owner_did, self._atproto.did}
        is_request = importance == "owner" and asks_each(notification.text)
        hidden = beside_request(thread, trusted) if is_request else ()
        spoken = [post for post in thread.posts if post not in hidden]
        text = with_full_links(notification)
        alone = importance == "owner" and all(is_said_by(trusted, post) for post in spoken)
        present = {author_did, *(post.author.did for post in thread.posts)}
        muted = await self._preferences.muted(present)
        preferences = await self._preferences.of(present)
        left_out = muted | (await self._preferences.forgotten(present) - {author_did})
        shown = tuple(
            post
            for post in thread.posts
            if post.author.did not in left_out and may_stand_in_prompt(preferences.get(post.author.did))
        )
        self._peers.note_posts(shown)
        peers = {post.author.did for post in shown if self._etiquette.is_peer(post.author)} - {author_did, *trusted}
        named = (handle for handle in item.named if handle.lower() != self._me.bluesky_username.lower())
        with_peers = bool(peers) or any(self._etiquette.is_peer(Actor("", handle)) for handle in named)
        return Ok(
            Case(
                item=item,
                text=text,
                thread=replace(thread, posts=tuple(post for post in shown if post not in hidden)),
                own_did=self._atproto.did,
                importance=importance,
                provenance=Provenance.OWNER if alone else Provenance.STRANGER,
                incoming=incoming,
                relationship=self._relationships.get(notification.author.handle),
                advice=await self._etiquette.before_reply(notification, thread.posts),
                preference=preferences.get(author_did),
                is_muted=author_did in muted,
                is_peer=self._etiquette.is_peer(notification.author),
                names_workspace=self._workspaces.is_thread_of_one(notification.root.uri),
                peers=frozenset(peers),
                hidden=tuple(post for post in shown if post in hidden),
                github_username=self._me.github_username,
                peers_since=self._peers_since if with_peers else None,
            )
        )

    async def _peers_since(self, uri: str) -> list[Post]:
        """What peers wrote right under a post, as it stands now; nothing where that cannot be read."""
        read = await self._atproto.get_post_thread(uri, 1, 0)
        if isinstance(read, Err):
            return []
        below = [reply.post for reply in read.data.replies if reply.post.author.did != self._atproto.did]
        by_peers = [post for post in below if self._etiquette.is_peer(post.author)]
        dids = {post.author.did for post in by_peers}
        left_out = await self._preferences.muted(dids) | await self._preferences.forgotten(dids)
        preferences = await self._preferences.of(dids - left_out)
        allowed = {did for did, preference in preferences.items() if may_stand_in_prompt(preference)}
        return [post for post in by_peers if post.author.did in allowed]

    async def _read_thread(self, notification: Notification) -> ApiResult[ThreadAnalysis]:
        focal = await self._atproto.get_post_thread(notification.uri, THREAD_DEPTH)
        if isinstance(focal, Err):
            return focal
        root_node = None
        if notification.root.uri != notification.uri:
            root = await self._atproto.get_post_thread(notification.root.uri, THREAD_DEPTH, 0)
            root_node = None if isinstance(root, Err) else root.data
        return Ok(analyze_thread_view(focal.data, self._atproto.did, root_node))


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
