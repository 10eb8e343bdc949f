"""One waiting post with everything that was read for it, so that nothing is requested twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from adapters.atproto.types import Notification, Post
from common.clock import parse_iso_or_none
from common.design_catalog import speaks_of_design
from common.facts import PostFacts, SaidLine
from common.provenance import Importance, Provenance
from common.text.untrusted import clean, one_line
from modules.lives.bluesky.thread import (
    ThreadAnalysis,
    ThreadLines,
    UnsentReply,
    link_hosts,
    shown_under,
    shown_with,
    with_full_links,
)
from modules.lives.bluesky.types import (
    Incoming,
    LaterTurn,
    OthersReplied,
    Pending,
    Replied,
    ThreadEvent,
    ThreadSeen,
    ThreadTurn,
)
from modules.services.outbox.rules.rules import ReplyAdvice
from modules.services.peers.registry import tells_username
from modules.services.relationships import Relationship
from modules.services.rights.policy import Preference
from modules.services.rituals.policy import RitualThread

_DEEP_THREAD = 10
_MANY_REPLIES = 3
_MANY_PEER_POSTS = 2
_MOST_EARLIER = 10


@dataclass(frozen=True, slots=True)
class PostCase:
    """A post with its thread, what is known about its author, and what the rules of the outbox say about an answer.

    Attributes:
        item: the waiting post.
        thread: as it was read, without posts by people who are muted or do not allow their posts in a prompt.
        own_did: our account.
        importance: that of the author, for the budget.
        provenance: the owner's only if the thread contains nobody else's words, no quote of somebody else's and no
            picture, which may show anybody's words.
        relationship: what is remembered about the author; None for somebody new.
        incoming: the post in the form for a conversation.
        advice: what the rules of the outbox say about an answer.
        is_muted: whether the owner muted the author.
        preference: what the author allows; None if it could not be read.
        unseen: why our own account chose not to see the post, "" if it did not; None if that could not be read.
        is_peer: whether the author is a peer.
        names_workspace: whether a watched workspace was first named in this thread.
        peers: DIDs of the peers who wrote in the thread, without the author of the post.
        hidden: posts by others beside a post by the owner, left out of the prompt so that it contains only the owner's
            words; a reply is checked against them.
        among_others: the thread with these posts; None if nothing was left out.
        answered: who is named in the post and replied to it, as `@handle`.
        github_username: our name on GitHub; "" if there is none.
        peers_since: reads what peers wrote directly under the post at a uri; None if no peer is named or wrote.
        later: the peers named by the owner that go before us with shared work; None if there are none.
        shares_work: whether the post is known to ask for such work.
        ritual: the ritual in whose thread the post is; None elsewhere.
        unsent: our replies in the thread that were not sent yet, oldest first.

    """

    item: Pending
    thread: ThreadAnalysis
    own_did: str
    importance: Importance
    provenance: Provenance
    relationship: Relationship | None
    incoming: Incoming
    advice: ReplyAdvice
    preference: Preference | None
    unseen: str | None = ""
    is_muted: bool = False
    is_peer: bool = False
    names_workspace: bool = False
    peers: frozenset[str] = frozenset()
    hidden: tuple[Post, ...] = ()
    among_others: ThreadAnalysis | None = None
    answered: tuple[str, ...] = ()
    github_username: str = ""
    peers_since: Callable[[str], Awaitable[list[Post]]] | None = None
    later: LaterTurn | None = None
    shares_work: bool = False
    ritual: RitualThread | None = None
    unsent: tuple[UnsentReply, ...] = ()

    @property
    def notification(self) -> Notification:
        return self.item.notification

    @property
    def is_owner(self) -> bool:
        return self.importance == "owner"

    @property
    def is_project(self) -> bool:
        """Whether the thread belongs to a workspace, or is about work and the post is by the owner or a peer."""
        return self.names_workspace or ((self.is_owner or self.is_peer) and self.thread.names_work)

    @property
    def may_show_picture(self) -> bool:
        """Whether an answer may show a picture: a person asks about design, and the thread has no reply of ours."""
        asks_of_design = self.incoming.asks_us and speaks_of_design(self.notification.text)
        return asks_of_design and not self.thread.agent_reply_count

    @property
    def may_act(self) -> bool:
        """Whether the turn has tools that act: it contains nobody's words but the owner's and our own."""
        return self.provenance is Provenance.OWNER

    @property
    def heard_whole(self) -> PostCase:
        """The same case for an answer in words alone: with what others wrote beside the post, and without acts."""
        whole = replace(self, thread=self.among_others or self.thread, hidden=(), among_others=None)
        return replace(whole, provenance=Provenance.STRANGER)

    @property
    def is_closed_to_us(self) -> bool:
        """Whether the author of the thread's root does not let us reply in it."""
        return self._focal.is_closed_to_us

    @property
    def addresses_others(self) -> bool:
        """Whether the post names more than one account."""
        return self.item.names_several

    @property
    def keeps_ritual_quiet(self) -> bool:
        """Whether this is a program's post in a ritual that needs no answer: each answers only the opening, once."""
        if self.ritual is None or not self.incoming.is_automated:
            return False
        is_opening = self.notification.uri == self.ritual.run.thread_uri
        return not is_opening or self.thread.agent_reply_count > 0

    @property
    def seen(self) -> ThreadSeen:
        """The event that the thread was read: its root, and up to where."""
        root, top = self.notification.root, self.thread.focal_path[0].author
        others = (post.indexed_at for post in self.thread.posts if post.author.did != self.own_did)
        read_until = max([self.incoming.at, *filter(None, map(parse_iso_or_none, others))])
        return ThreadSeen(root.cid, top.did, top.handle, self.is_project, read_until)

    @property
    def events(self) -> tuple[ThreadEvent, ...]:
        """The events of the conversation that the thread and the post show: its root, our replies, and the post."""
        ours = (post for post in self.thread.posts if post.author.did == self.own_did and post.reply)
        replies = (Replied(post.uri, parse_iso_or_none(post.created_at) or self.incoming.at) for post in ours)
        return (self.seen, *replies, OthersReplied(self.incoming))

    @property
    def text(self) -> str:
        """The post's text with the addresses that it does not show in full; without them in a turn that may act.

        The words in an address are chosen by its page, not by the person who shares it.
        """
        return self._words_of(self.notification)

    @property
    def earlier_texts(self) -> dict[str, str]:
        """The texts, by uri, of the author's older posts that get no turn of their own; of many, the newest."""
        return {one.uri: self._words_of(one) for one in self.item.earlier[-_MOST_EARLIER:]}

    @property
    def link_hosts(self) -> str:
        """The hosts of the addresses that `text` leaves out; "" if there are none."""
        return link_hosts(self.notification) if self.may_act else ""

    def _words_of(self, post: Post | Notification) -> str:
        return post.text if self.may_act else with_full_links(post)

    @property
    def author_name(self) -> str:
        """The author's handle, and the display name if there is one: `@ada.test (Ada)`."""
        author = self.notification.author
        name = one_line(author.display_name)
        return f"@{author.handle} ({name})" if name else f"@{author.handle}"

    @property
    def post_line(self) -> str:
        """The post's text after the name of its author."""
        return f"{self.author_name}: {clean(self.text)}"

    def thread_lines(self, now: datetime, marks: Mapping[str, str]) -> str:
        """Return the thread, a line per post, with a mark for the post to answer; "" if it is alone (`ThreadLines`)."""
        text = ThreadLines(self.own_did, self.peers, now, marks, self._all_of)
        return text.lines(self.thread.posts, self.notification.uri, self.unsent)

    def _all_of(self, post: Post) -> str:
        return " ".join((self._words_of(post), *shown_under(post, self.own_did, whole=not self.may_act)))

    @property
    def quoted(self) -> Post | None:
        """The post that the post to answer quotes; None if it quotes none, or none that may be read."""
        return self._focal.quoted

    @property
    def quoted_text(self) -> str:
        """The words of the quoted post, with what is shown under it; "" if there is none."""
        if (quoted := self.quoted) is None:
            return ""
        return "\n".join((self._words_of(quoted), *(() if self.may_act else shown_with(quoted))))

    @property
    def attached(self) -> str:
        """The page under the post and what its video shows, or that its quote cannot be read; "" if none applies."""
        focal = self._focal
        beside = [] if self.quoted else shown_under(replace(focal, card=None), self.own_did, whole=False)
        return "\n".join((*beside, *(() if self.may_act else shown_with(focal, pictures=False))))

    @property
    def shows_page(self) -> bool:
        """Whether a post of the thread shows a page, or quotes a post that shows more than its text."""
        posts = (*self.thread.posts, self._focal)
        return any(post.card or (post.quoted and shown_with(post.quoted)) for post in posts)

    @property
    def _focal(self) -> Post:
        return self.thread.focal_path[-1]

    @property
    def peer_posts(self) -> list[Post]:
        """The posts by peers in the thread, oldest first, without those by the author of the post to answer."""
        return [post for post in self._others if post.author.did in self.peers]

    @property
    def present_peers(self) -> list[str]:
        """The DIDs of the peers in the thread: the author first, then the others, the latest first."""
        authors = [post.author.did for post in reversed(self.peer_posts)]
        return list(dict.fromkeys([*([self.notification.author.did] if self.is_peer else []), *authors]))

    @property
    def acquaintance(self) -> Literal["Owner", "New", "Known", "Unanswered"]:
        """How well the author is known: the name of a subsection of `Relationship` in the skill `bluesky-response`."""
        if self.is_owner:
            return "Owner"
        if not self._met_before or self.relationship is None:
            return "New"
        return "Known" if self.relationship.responded else "Unanswered"

    @property
    def _met_before(self) -> int:
        """The number of times that the author wrote to us before this post."""
        return self.relationship.times_written_before(self.notification.uri) if self.relationship else 0

    @property
    def notes(self) -> list[str]:
        """The notes that apply to the thread: names of subsections of `Notes` in the skill `bluesky-response`."""
        may_leave = not (self.is_project or self.is_owner)
        applying = {
            "Owner Request": self.may_act,
            "Shared Work": self.may_act and self.addresses_others and bool(self.github_username),
            "Answered Already": self.may_act and bool(self.answered),
            "Quote": bool(self._focal.quoted_uri),
            "Project": self.is_project and self.may_act,
            "Share Account": bool(self.account_to_tell),
            "Deep Thread": self.thread.depth >= _DEEP_THREAD and may_leave,
            "Automated": self.notification.author.is_bot,
            "Own Replies": self._own_replies >= _MANY_REPLIES and may_leave,
            "Last Word": self.thread.is_agent_last_reply and not self.is_owner,
            "Circling": self.thread.circular.is_circular and not self.is_project,
            "Several Addressed": self.addresses_others and not (self.peer_posts or self.may_act or self.is_owner),
            "Peers Spoke": bool(self.peer_posts),
            "Peers Said Much": len(self.peer_posts) >= _MANY_PEER_POSTS,
        }
        return [name for name, applies in applying.items() if applies]

    @property
    def figures(self) -> dict[str, object]:
        """The values for the variables of those subsections."""
        return {
            "depth": self.thread.depth,
            "own_replies": self._own_replies,
            "interactions": self._met_before,
            "peers": ", ".join(dict.fromkeys(f"@{post.author.handle}" for post in self.peer_posts)),
            "peer_posts": len(self.peer_posts),
            "github_username": self.github_username,
            "answered": ", ".join(self.answered),
        }

    @property
    def _own_replies(self) -> int:
        return self.thread.agent_reply_count + len(self.unsent)

    @property
    def account_to_tell(self) -> str:
        """Our name on GitHub if the thread is about work and no post of ours in it tells the name; else ""."""
        ours = (post.text for post in self.thread.posts if post.author.did == self.own_did)
        is_told = any(tells_username(text, self.github_username) for text in ours)
        return self.github_username if self.is_project and not is_told else ""

    @property
    def facts(self) -> PostFacts:
        """The post and its thread as facts, which accompany the prompt."""
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
            ritual=self.ritual.ritual.name if self.ritual else "",
            part=self.ritual.part if self.ritual else "",
        )

    @property
    def _others(self) -> list[Post]:
        return [post for post in self.thread.posts if post.uri != self.notification.uri]

    @property
    def _hidden_peer_posts(self) -> list[Post]:
        return [post for post in self.hidden if post.author.did in self.peers]

    def heard_before(self, answered_uri: str) -> tuple[Post, ...]:
        """Return what a reply to a post of the thread follows: that post, the path, and its author's earlier posts."""
        uris = {answered_uri, *(one.uri for one in self.thread.focal_path), *(one.uri for one in self.item.earlier)}
        return tuple(post for post in self.thread.posts if post.uri in uris)

    @property
    def subject(self) -> ThreadTurn:
        """The subject of a turn about the post: what its tools may touch, and what they check a reply against."""
        notification, posts = self.notification, self.thread.posts
        read = [one for post in (*posts, *self.hidden) for one in (post, post.quoted) if one]
        return ThreadTurn(
            notification=notification,
            root=notification.root,
            is_owner=self.is_owner,
            seen={post.uri: post.ref for post in posts} | {notification.uri: notification.ref},
            said=(*(one.text for one in read), *(reply.text for reply in self.unsent)),
            others_said=tuple(one.text for one in read if one.author.did != self.own_did),
            is_unanswered=not self.thread.is_answered,
            peers_said=tuple(post.text for post in (*self.peer_posts, *self._hidden_peer_posts)),
            peers_since=self.peers_since,
            account=self.account_to_tell,
            later=self.later,
        )
