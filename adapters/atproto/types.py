"""Values that cross the Bluesky adapter: what the network says, without the SDK's own models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from common.result import Err

Barrier = Literal["", "muted", "blocked", "blocks us"]
"""What stands between us and an account, by what our own account chose on Bluesky, or by what the other one did."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PostLabel:
    """What `source` (a did) calls a post or an account: a label, for example `porn`."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Actor:
    """An account as it appears beside its posts; `is_bot` if it says so of itself, `is_followed` if we follow it."""

    did: str
    handle: str
    display_name: str = ""
    avatar: str | None = None
    is_bot: bool = False
    is_followed: bool = False
    barrier: Barrier = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """An account's own page.

    Attributes:
        created_at: when the account was made, ISO-8601; "" if that is not told.
        is_followed: whether we follow it.
        follows_us: whether it follows us.
        allows_subscriptions: who may be told of its new posts: "followers", "mutuals" or "none".
        is_subscribed: whether we are told of its new posts.
        barrier: whether we muted or blocked it, or it blocks us.

    """

    did: str
    handle: str
    display_name: str = ""
    description: str = ""
    avatar: str | None = None
    labels: tuple[PostLabel, ...] = ()
    created_at: str = ""
    is_followed: bool = False
    follows_us: bool = False
    allows_subscriptions: str = "followers"
    is_subscribed: bool = False
    barrier: Barrier = ""


@dataclass(frozen=True, slots=True)
class Curated:
    """A feed, a list of accounts or a starter pack, as its maker describes it.

    Attributes:
        uri: its `at://` address.
        name: its title.
        creator: whose it is.
        description: the maker's words.
        members: the accounts in it that the answer shows; of a feed none.
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
    """What many talk about now. `link` leads to its posts, `started_at` is ISO-8601."""

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
    """Where a reply hangs: the post it answers and the root of the thread."""

    parent: StrongRef
    root: StrongRef


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture on a post, with its author's description.

    Attributes:
        alt: what it shows, in its author's words; "" if they gave none.
        url: where it is shown in full size; "" where only the record is known.
        cid: names the bytes as its author uploaded them, among the files of the author's account; "" if not known.
        mime: of those bytes, as their author says; "" if not known.
        size: how many they are; 0 if not known.

    """

    alt: str = ""
    url: str = ""
    cid: str = ""
    mime: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """A page that a post links to, or a feed or list that it quotes, as it is shown under the post."""

    uri: str
    title: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Post:
    """A post.

    `created_at` and `indexed_at` are ISO-8601; `links` holds facet and embed URLs in full. `embed_digest` is the
    SHA-256 of what is attached, in hex: equal only where the same is attached in the same way, "" where nothing is.
    `quoted_uri` is the record that it quotes, "" where it quotes none, and `quoted` that record where it is a post that
    is there to be read; what that one quotes is left out. `card` is the page shown under it, and `video_alt` says what
    its video shows. `tags` are its hashtags, without the sign, and `labels` what it and its author are called.
    `is_closed_to_us`: whoever began its thread does not let us reply in it, so that nobody would be shown our reply.
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
        """The account whose record it quotes, as `quoted_uri` names it; "" where it quotes none."""
        return self.quoted_uri.removeprefix("at://").partition("/")[0]


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One line of a feed; `reposted_by` is set when it is there only as a repost."""

    post: Post
    reposted_by: Actor | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """Something that happened to us. `kind` is `reason` on the wire: like, repost, follow, mention, reply or quote.

    Or subscribed-post: an account posted to whose posts we subscribed. The network may send other kinds at any time.
    `mentions` are the accounts that its author's program marked in the text where a reader sees an @handle: the words
    and the DID of each.
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

    @property
    def ref(self) -> StrongRef:
        return StrongRef(self.uri, self.cid)

    @property
    def root(self) -> StrongRef:
        return self.reply.root if self.reply else self.ref

    def addresses(self, did: str) -> bool:
        """Return whether a reader sees why the account `did` is told: a mention must stand where it can be read."""
        return self.kind != "mention" or any(did == named for _, named in self.mentions)


@dataclass(frozen=True, slots=True)
class ThreadNode:
    """A post in its thread. Posts that are gone or blocked are simply not there."""

    post: Post
    parent: ThreadNode | None = None
    replies: tuple[ThreadNode, ...] = ()


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """One page of a list, with the cursor of the next."""

    items: tuple[T, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """One page of notifications, newest first; `unreadable` items of it were passed over."""

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
    """A raw record: its address, its content hash, and its fields as the wire has them."""

    uri: str
    cid: str
    value: dict[str, object] = field(default_factory=dict)


ConversationStatus = Literal["request", "accepted"]
"""Whether we take part in a conversation, or somebody only asks us to."""

MessageEventKind = Literal["began", "accepted", "left", "message", "deleted", "read", "other"]


@dataclass(frozen=True, slots=True)
class DirectMessage:
    """A message of a conversation.

    Attributes:
        id: within its conversation.
        rev: grows from message to message of a conversation; compared as text.
        sender_did: who wrote it.
        sent_at: ISO-8601, by the service's clock.
        text: "" of a deleted one.
        links: the URLs in it, in full.
        reply_to: the id of the message that it answers; "" if none.
        is_deleted: nothing but sender and time is left of it.

    """

    id: str
    rev: str
    sender_did: str
    sent_at: str
    text: str = ""
    links: tuple[str, ...] = ()
    reply_to: str = ""
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of ours; of a group, `members` are only some. `rev` grows with each change of it."""

    id: str
    rev: str
    members: tuple[Actor, ...]
    status: ConversationStatus
    unread_count: int = 0
    is_muted: bool = False
    is_group: bool = False


@dataclass(frozen=True, slots=True)
class MessagePage:
    """One page of messages, newest first, with the cursor of the next older; `unreadable` ones were passed over."""

    messages: tuple[DirectMessage, ...]
    cursor: str | None = None
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class MessagesSince:
    """What came since a message, oldest first; not `complete` if there is more between it and the first of these."""

    messages: tuple[DirectMessage, ...]
    complete: bool
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """Something that happened in one of our conversations; `message` is what it happened to, if that is told."""

    kind: MessageEventKind
    conversation_id: str
    rev: str
    message: DirectMessage | None = None


@dataclass(frozen=True, slots=True)
class MessageEventPage:
    """What happened since a cursor in all our conversations, oldest first, and the cursor to go on from."""

    events: tuple[MessageEvent, ...]
    cursor: str | None = None
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class ServiceErr(Err):
    """An `Err` with the service's own word for it, for example `RecordNotFound`."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class NotAllowedErr(ServiceErr):
    """The app password has no right to this; no new session has."""


@dataclass(frozen=True, slots=True)
class UnreadableErr(Err):
    """An answer came, but it is no JSON or too large. `cursor` of the next page, as far as it could be found."""

    cursor: str = ""
