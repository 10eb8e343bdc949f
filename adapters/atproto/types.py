"""Values of the Bluesky adapter, without the SDK's own models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from common.result import Err

Barrier = Literal["", "muted", "blocked", "blocks us"]
"""The barrier between us and an account: our own mute or block on Bluesky, or the other account's block."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PostLabel:
    """A label that `source` (a did) put on a post or an account, for example `porn`."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Actor:
    """An account as shown beside its posts; `is_bot` if it labels itself so, `is_followed` if we follow it."""

    did: str
    handle: str
    display_name: str = ""
    avatar: str | None = None
    is_bot: bool = False
    is_followed: bool = False
    barrier: Barrier = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """An account's profile.

    Attributes:
        created_at: when the account was created, ISO-8601; "" if not known.
        is_followed: whether we follow it.
        follows_us: whether it follows us.
        barrier: whether we muted or blocked it, or it blocks us.

    """

    did: str
    handle: str
    display_name: str = ""
    description: str = ""
    labels: tuple[PostLabel, ...] = ()
    created_at: str = ""
    is_followed: bool = False
    follows_us: bool = False
    barrier: Barrier = ""


@dataclass(frozen=True, slots=True)
class Curated:
    """A feed, a list of accounts or a starter pack, as its creator describes it.

    Attributes:
        uri: its `at://` uri.
        name: its title.
        creator: the account that made it.
        description: the creator's words.
        members: the members that the answer includes; none for a feed.
        list_uri: the list behind a starter pack; "" for anything else.
        feeds: the feeds of a starter pack.

    """

    uri: str
    name: str
    creator: Actor
    description: str = ""
    members: tuple[Profile, ...] = ()
    list_uri: str = ""
    feeds: tuple[Curated, ...] = ()


@dataclass(frozen=True, slots=True)
class Trend:
    """A topic that many post about now. `link` leads to its posts, `started_at` is ISO-8601."""

    name: str
    link: str
    post_count: int = 0
    started_at: str = ""
    category: str = ""


@dataclass(frozen=True, slots=True)
class StrongRef:
    """A record at one exact content: `at://` uri and cid."""

    uri: str
    cid: str


@dataclass(frozen=True, slots=True)
class ReplyRefs:
    """The references of a reply: the post it answers and the root of the thread."""

    parent: StrongRef
    root: StrongRef


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture on a post, with its author's description.

    Attributes:
        alt: what it shows, in its author's words; "" if they gave none.
        url: the URL of its full size; "" if only the record is known.
        cid: the content hash of the file that its author uploaded, in the author's repo; "" if not known.
        mime: the media type of that file, as its author says; "" if not known.
        size: its size in bytes; 0 if not known.

    """

    alt: str = ""
    url: str = ""
    cid: str = ""
    mime: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """A page that a post links to, or a feed or list that it quotes, as shown under the post."""

    uri: str
    title: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Post:
    """A post.

    `created_at` and `indexed_at` are ISO-8601; `links` holds facet and embed URLs in full. `embed_digest` is the
    SHA-256 in hex of what is attached: equal only if the same is attached in the same way, "" if nothing is.
    `quoted_uri` is the record that it quotes, "" if none, and `quoted` that record if it is a readable post, without
    what that one quotes. `card` is the page shown under it, and `video_alt` describes its video. `tags` are its
    hashtags, without the sign, and `labels` the labels on it and its author. `is_closed_to_us`: whoever began its
    thread does not let us reply in it, so nobody would be shown our reply.
    """

    uri: str
    cid: str
    author: Actor
    text: str
    created_at: str
    indexed_at: str = ""
    reply: ReplyRefs | None = None
    links: tuple[str, ...] = ()
    reply_count: int = 0
    repost_count: int = 0
    like_count: int = 0
    has_media: bool = False
    pictures: tuple[Picture, ...] = ()
    embed_digest: str = ""
    quoted_uri: str = ""
    quoted: Post | None = None
    video_alt: str = ""
    card: Card | None = None
    tags: tuple[str, ...] = ()
    labels: tuple[PostLabel, ...] = ()
    is_closed_to_us: bool = False

    @property
    def ref(self) -> StrongRef:
        return StrongRef(self.uri, self.cid)

    @property
    def root_uri(self) -> str:
        return self.reply.root.uri if self.reply else self.uri

    @property
    def quoted_did(self) -> str:
        """The account whose record it quotes, as `quoted_uri` names it; "" if it quotes none."""
        return self.quoted_uri.removeprefix("at://").partition("/")[0]


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One item of a feed; `reposted_by` is set if it is there only as a repost."""

    post: Post
    reposted_by: Actor | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification. `kind` is `reason` on the wire: like, repost, follow, mention, reply or quote.

    The network may add kinds at any time. `mentions` are the accounts that its author's program marked in the text
    where a reader sees an @handle: the words and the DID of each. `tags` and `labels` are those of a `Post`.
    """

    uri: str
    cid: str
    author: Actor
    kind: str
    text: str
    created_at: str
    indexed_at: str
    is_read: bool = False
    reason_subject: str | None = None
    reply: ReplyRefs | None = None
    links: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    mentions: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    labels: tuple[PostLabel, ...] = ()

    @property
    def ref(self) -> StrongRef:
        return StrongRef(self.uri, self.cid)

    @property
    def root(self) -> StrongRef:
        return self.reply.root if self.reply else self.ref

    def addresses(self, did: str) -> bool:
        """Return whether a reader sees why the account `did` is notified: a mention must be visible in the text."""
        return self.kind != "mention" or any(did == named for _, named in self.mentions)


@dataclass(frozen=True, slots=True)
class ThreadNode:
    """A post in its thread. Posts that are gone or blocked are left out."""

    post: Post
    parent: ThreadNode | None = None
    replies: tuple[ThreadNode, ...] = ()


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """One page of a list, with the cursor of the next page."""

    items: tuple[T, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """One page of notifications, newest first; `unreadable` of them were skipped."""

    notifications: tuple[Notification, ...]
    cursor: str | None = None
    seen_at: str | None = None
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Blob:
    """An uploaded file, as a record refers to it."""

    cid: str
    mime_type: str
    size: int


@dataclass(frozen=True, slots=True)
class PostImage:
    """An image to attach: the blob, its description for those who cannot see it, its size in pixels."""

    blob: Blob
    alt: str
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A raw record: its uri, its content hash, and its fields as the wire has them."""

    uri: str
    cid: str
    value: dict[str, object] = field(default_factory=dict)


ConversationStatus = Literal["request", "accepted"]
"""Our part in a conversation: we take part, or somebody only requested it."""

MessageEventKind = Literal["began", "accepted", "left", "message", "deleted", "read", "other"]


@dataclass(frozen=True, slots=True)
class DirectMessage:
    """A message of a conversation.

    Attributes:
        id: unique within its conversation.
        rev: grows from message to message of a conversation; compared as text.
        sender_did: who wrote it.
        sent_at: ISO-8601, by the service's clock.
        text: "" if deleted.
        links: the URLs in it, in full.
        is_deleted: whether only sender and time are left of it.

    """

    id: str
    rev: str
    sender_did: str
    sent_at: str
    text: str = ""
    links: tuple[str, ...] = ()
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of ours; for a group, `members` are only some. `rev` grows with each change."""

    id: str
    rev: str
    members: tuple[Actor, ...]
    status: ConversationStatus
    unread_count: int = 0
    is_muted: bool = False
    is_group: bool = False


@dataclass(frozen=True, slots=True)
class MessagePage:
    """One page of messages, newest first, with the cursor of the next older page; `unreadable` of them were skipped."""

    messages: tuple[DirectMessage, ...]
    cursor: str | None = None
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class MessagesSince:
    """The messages after a given one, oldest first; not `complete` if some before the first of these are missing."""

    messages: tuple[DirectMessage, ...]
    complete: bool
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """An event in one of our conversations; `message` is the message that it concerns, if the service includes it."""

    kind: MessageEventKind
    conversation_id: str
    rev: str
    message: DirectMessage | None = None


@dataclass(frozen=True, slots=True)
class MessageEventPage:
    """The events since a cursor in all our conversations, oldest first, and the cursor to continue from."""

    events: tuple[MessageEvent, ...]
    cursor: str | None = None
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class ServiceErr(Err):
    """An `Err` with the service's own name for it, for example `RecordNotFound`."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class NotAllowedErr(ServiceErr):
    """The app password lacks the right to do this; a new session would lack it too."""


@dataclass(frozen=True, slots=True)
class UnreadableErr(Err):
    """An answer came, but it is not JSON or too large. `cursor` is that of the next page, "" if it was not found."""

    cursor: str = ""


@dataclass(frozen=True, slots=True)
class MutedWord:
    """A word that our account does not want to read.

    Attributes:
        value: the word, or several.
        in_text: whether it applies to the text of a post; it always applies to its tags.
        spares_followed: whether posts by accounts that we follow are exempt.
        until: ISO-8601, when it ends; "" if it has no end.

    """

    value: str
    in_text: bool = True
    spares_followed: bool = False
    until: str = ""


@dataclass(frozen=True, slots=True)
class AccountPreferences:
    """The preferences of our account on Bluesky that are respected here.

    Attributes:
        muted_words: words that it does not want to read.
        hidden_posts: the uris of posts that it does not want to see.
        labelers: the dids of the labelers whose labels it wants.
        hidden_labels: the labels whose posts it does not want to see, each with the did of the labeler that it applies
            to, "" for all.
        replies: who may reply to a new post of ours, by the names of `records.REPLY_RULES` or the uris of lists; None:
            everybody.
        may_be_quoted: whether others may quote a new post of ours.

    """

    muted_words: tuple[MutedWord, ...] = ()
    hidden_posts: frozenset[str] = frozenset()
    labelers: tuple[str, ...] = ()
    hidden_labels: frozenset[tuple[str, str]] = frozenset()
    replies: tuple[str, ...] | None = None
    may_be_quoted: bool = True
