"""One waiting post with all that was read for it, so that nothing of it is asked for again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from adapters.atproto.types import Notification, Post
from common.design_catalog import speaks_of_design
from common.facts import PostFacts, SaidLine
from common.importance import Importance
from common.provenance import Provenance
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
from modules.services.outbox.rules.types import ReplyAdvice
from modules.services.peers.registry import tells_username
from modules.services.peers.relationships import Relationship
from modules.services.rights.types import Preference
from modules.services.rituals.types import RitualThread

_DEEP_THREAD = 10
_MANY_REPLIES = 3
_MANY_PEER_POSTS = 2


@dataclass(frozen=True, slots=True)
class PostCase:
    """A post with its thread, what is known of its author, and what the rules of the outbox say of an answer.

    Attributes:
        item: the waiting post.
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
        unseen: why our own account chose not to see the post, "" if it did not; None where that could not be read.
        is_peer: whether the author is a peer.
        names_workspace: whether a workspace that is watched was first named in this thread.
        peers: dids of the peers who wrote in the thread, beside the author of the post.
        hidden: what others wrote beside a post of the owner's, left out of the prompt so that it holds the owner's
            words alone; a reply is checked against it.
        among_others: the thread with that; None where nothing was left out.
        answered: whom the post names and who replied to it, as `@handle`.
        github_username: our name on GitHub; "" if there is none.
        peers_since: reads what peers wrote right under the post at a uri; None where no peer is named or wrote.
        later: which of the peers whom the owner names go before us with work that all share; None where none does.
        shares_work: whether it is known that the post asks for such work.
        ritual: the ritual in whose thread the post stands; None elsewhere.
        unsent: our replies in the thread that have not left yet, oldest first.

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
        """Whether the thread is that of a workspace, or the owner or a peer writes in it and it is about work."""
        return self.names_workspace or ((self.is_owner or self.is_peer) and self.thread.names_work)

    @property
    def may_show_picture(self) -> bool:
        """Whether an answer may show a picture: a person asks about design, and we did not speak in the thread."""
        asks_of_design = self.incoming.asks_us and speaks_of_design(self.notification.text)
        return asks_of_design and not self.thread.agent_reply_count

    @property
    def may_act(self) -> bool:
        """Whether the tools that act are there: nobody's words are in the turn but the owner's and our own."""
        return self.provenance is Provenance.OWNER

    @property
    def heard_whole(self) -> PostCase:
        """The same post for an answer in words alone: with what others wrote beside it, and without acts."""
        whole = replace(self, thread=self.among_others or self.thread, hidden=(), among_others=None)
        return replace(whole, provenance=Provenance.STRANGER)

    @property
    def is_closed_to_us(self) -> bool:
        """Whether whoever began the thread does not let us reply in it."""
        return self._focal.is_closed_to_us

    @property
    def addresses_others(self) -> bool:
        """Whether the post names somebody beside us."""
        return self.item.names_several

    @property
    def keeps_ritual_quiet(self) -> bool:
        """Whether it is a program's post in a ritual that needs no answer: each answers the opening, and that once."""
        if self.ritual is None or not self.incoming.is_automated:
            return False
        is_opening = self.notification.uri == self.ritual.run.thread_uri
        return not is_opening or self.thread.agent_reply_count > 0

    @property
    def events(self) -> tuple[ThreadEvent, ...]:
        """What the thread and the post say of the conversation: its root, our replies, and the post."""
        root, top = self.notification.root, self.thread.focal_path[0].author
        ours = (post.uri for post in self.thread.posts if post.author.did == self.own_did and post.reply)
        return (
            ThreadSeen(root.cid, top.did, top.handle, self.is_project),
            *map(Replied, ours),
            OthersReplied(self.incoming),
        )

    @property
    def text(self) -> str:
        """The post's text, with the addresses behind it that it does not show; without them in a turn that may act.

        A page chose the words of its address, and whoever shared it chose none of them.
        """
        return self._words_of(self.notification)

    @property
    def link_hosts(self) -> str:
        """The hosts of those addresses, where they are left out; "" if there are none."""
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
        """The post in one text, after the name of its author."""
        return f"{self.author_name}: {clean(self.text)}"

    def thread_lines(self, now: datetime, marks: Mapping[str, str]) -> str:
        """The thread, a line for each post, the one to meet in its place; "" where it stands alone (`ThreadLines`)."""
        text = ThreadLines(self.own_did, self.peers, now, marks, self._all_of)
        return text.lines(self.thread.posts, self.notification.uri, self.unsent)

    def _all_of(self, post: Post) -> str:
        return " ".join((self._words_of(post), *shown_under(post, self.own_did, whole=not self.may_act)))

    @property
    def quoted(self) -> Post | None:
        """The post that is quoted in the one to be met; None where that quotes none, or none that may be read."""
        return self._focal.quoted

    @property
    def quoted_text(self) -> str:
        """The words of that post, with what stands under it; "" where there is none."""
        if (quoted := self.quoted) is None:
            return ""
        return "\n".join((self._words_of(quoted), *(() if self.may_act else shown_with(quoted))))

    @property
    def attached(self) -> str:
        """The page under the post and what its video shows, or that its quote cannot be read; "" for nothing of it."""
        focal = self._focal
        beside = [] if self.quoted else shown_under(replace(focal, card=None), self.own_did, whole=False)
        return "\n".join((*beside, *(() if self.may_act else shown_with(focal, pictures=False))))

    @property
    def shows_page(self) -> bool:
        """Whether words of a page, or of whoever made it, stand under a post of the thread."""
        posts = (*self.thread.posts, self._focal)
        return any(post.card or (post.quoted and shown_with(post.quoted)) for post in posts)

    @property
    def _focal(self) -> Post:
        return self.thread.focal_path[-1]

    @property
    def peer_posts(self) -> list[Post]:
        """What peers said in the thread, oldest first; the author of the post to be handled is none of them."""
        return [post for post in self._others if post.author.did in self.peers]

    @property
    def present_peers(self) -> list[str]:
        """The DIDs of the peers in the thread: of the author first, then of whoever spoke last."""
        authors = [post.author.did for post in reversed(self.peer_posts)]
        return list(dict.fromkeys([*([self.notification.author.did] if self.is_peer else []), *authors]))

    @property
    def acquaintance(self) -> Literal["Owner", "New", "Known", "Unanswered"]:
        """How well the author is known: a subsection of `Relationship` in the `bluesky-response` skill."""
        if self.is_owner:
            return "Owner"
        if not self._met_before or self.relationship is None:
            return "New"
        return "Known" if self.relationship.responded else "Unanswered"

    @property
    def _met_before(self) -> int:
        """How often the author wrote to us before this post."""
        return self.relationship.times_written_before(self.notification.uri) if self.relationship else 0

    @property
    def notes(self) -> list[str]:
        """What is to be noted about the thread: subsections of `Notes` in the `bluesky-response` skill."""
        applying = {
            "Owner Request": self.may_act,
            "Shared Work": self.may_act and self.addresses_others and bool(self.github_username),
            "Answered Already": self.may_act and bool(self.answered),
            "Quote": bool(self._focal.quoted_uri),
            "Project": self.is_project,
            "Share Account": bool(self.account_to_tell),
            "Deep Thread": self.thread.depth >= _DEEP_THREAD and not self.is_project,
            "Automated": self.notification.author.is_bot,
            "Own Replies": self._own_replies >= _MANY_REPLIES and not self.is_project,
            "Last Word": self.thread.is_agent_last_reply,
            "Circling": self.thread.circular.is_circular and not self.is_project,
            "Several Addressed": self.addresses_others and not (self.peer_posts or self.may_act or self.is_owner),
            "Peers Spoke": bool(self.peer_posts),
            "Peers Said Much": len(self.peer_posts) >= _MANY_PEER_POSTS,
        }
        return [name for name, applies in applying.items() if applies]

    @property
    def figures(self) -> dict[str, object]:
        """The values that those subsections have places for."""
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
            ritual=self.ritual.ritual.name if self.ritual else "",
            part=self.ritual.part if self.ritual else "",
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
            said=(
                *(one.text for post in (*posts, *self.hidden) for one in (post, post.quoted) if one),
                *(reply.text for reply in self.unsent),
            ),
            is_unanswered=not self.thread.is_answered,
            peers_said=tuple(post.text for post in (*self.peer_posts, *self._hidden_peer_posts)),
            peers_since=self.peers_since,
            account=self.account_to_tell,
            later=self.later,
        )
