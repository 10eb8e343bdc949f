"""Posts, notifications and threads as Bluesky returns them, with defaults for everything unimportant."""

from datetime import UTC, datetime, timedelta

from adapters.atproto.types import Actor, Notification, Post, ReplyRefs, StrongRef, ThreadNode
from common.clock import iso

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
ME = "did:plc:me"
OWNER = "did:plc:owner"


def did(name: str) -> str:
    """Return the DID of the account `name`."""
    return f"did:plc:{name}"


def at(minutes: float = 0) -> str:
    """Return the time `minutes` after the start, as the network writes it."""
    return iso(START + timedelta(minutes=minutes))


def uri(name: str, key: str) -> str:
    """Return the URI of a post by `name`."""
    return f"at://{did(name)}/app.bsky.feed.post/{key}"


def ref(post_uri: str) -> StrongRef:
    """Return a reference to a post, with some CID."""
    return StrongRef(post_uri, "cid-" + post_uri[-4:])


def actor(name: str) -> Actor:
    """Return the actor `name`."""
    return Actor(did(name), f"{name}.example.social", name.title())


def notification(
    text: str = "What do you make of the old weir by the mill?",
    *,
    author: str = "ada",
    kind: str = "reply",
    key: str = "n1",
    minutes: float = 0,
    parent: str | None = None,
    root: str | None = None,
    is_read: bool = False,
) -> Notification:
    """Return a notification for our account; a reply if `parent` or `root` is given."""
    top = root or parent
    return Notification(
        uri=uri(author, key),
        cid=f"cid-{key}",
        author=actor(author),
        kind=kind,
        text=text,
        created_at=at(minutes),
        indexed_at=at(minutes),
        is_read=is_read,
        reply=ReplyRefs(parent=ref(parent or top), root=ref(top)) if top else None,
    )


def post(
    author: str,
    text: str = "A few words.",
    *,
    key: str = "p1",
    minutes: float = 0,
    parent: Post | None = None,
    links: tuple[str, ...] = (),
    created_at: str | None = None,
    indexed_at: str | None = None,
) -> Post:
    """Return a post; a reply if `parent` is given."""
    root = (parent.reply.root if parent.reply else parent.ref) if parent else None
    return Post(
        uri=uri(author, key),
        cid=f"cid-{key}",
        author=actor(author),
        text=text,
        created_at=at(minutes) if created_at is None else created_at,
        indexed_at=at(minutes) if indexed_at is None else indexed_at,
        reply=ReplyRefs(parent=parent.ref, root=root) if parent and root else None,
        links=links,
    )


def chain(*lines: tuple[str, str]) -> list[Post]:
    """Return posts from (author, text) pairs, each a reply to the one before, a minute apart."""
    posts: list[Post] = []
    for index, (author, text) in enumerate(lines):
        posts.append(post(author, text, key=f"c{index}", minutes=index, parent=posts[-1] if posts else None))
    return posts


def node(posts: list[Post], replies: tuple[ThreadNode, ...] = ()) -> ThreadNode:
    """Return the thread node of the last of `posts`, with the others as its parents."""
    above: ThreadNode | None = None
    for one in posts[:-1]:
        above = ThreadNode(one, parent=above)
    return ThreadNode(posts[-1], parent=above, replies=replies)
