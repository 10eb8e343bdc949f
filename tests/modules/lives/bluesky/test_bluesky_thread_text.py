"""A thread as a model reads it: in order, each post with its age and whom it answers, the one to meet in its place."""

from __future__ import annotations

from datetime import UTC, datetime

from adapters.atproto.types import Actor, Post, ReplyRefs, StrongRef
from modules.lives.bluesky.thread import ThreadLines, UnsentReply

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MARKS = {"Post To Meet": "(this one)", "Not Sent": "not sent", "Peer": "peer", "Bot": "bot"}
US, ILSE, BO, TICK = (Actor(f"did:plc:{name}", f"{name}.test") for name in ("us", "ilse", "bo", "tick"))


def said(name: str, author: Actor, at: str, text: str, to: Post | None = None) -> Post:
    uri = f"at://{author.did}/app.bsky.feed.post/{name}"
    reply = ReplyRefs(StrongRef(to.uri, "cid"), StrongRef(to.uri, "cid")) if to else None
    return Post(uri, "cid", author, text, f"2026-03-01T{at}:00Z", reply=reply)


ROOT = said("1", ILSE, "09:00", "My pump hums.")
FIRST = said("2", BO, "09:10", "Mine too,\nin the rain.", ROOT)
SECOND = said("3", BO, "11:30", "Or is it the washer?", ROOT)
FOCAL = said("4", ILSE, "11:48", "@us.test which is it?", FIRST)
LATER = said("5", Actor(TICK.did, TICK.handle, is_bot=True), "11:59", "It is noon.", FOCAL)


def text_of(*posts: Post, unsent: tuple[UnsentReply, ...] = ()) -> list[str]:
    thread_text = ThreadLines(US.did, frozenset({BO.did}), NOW, MARKS, lambda post: post.text)
    return thread_text.lines(posts, FOCAL.uri, unsent).splitlines()


def test_each_line_has_age_author_and_whom_it_answers_and_later_posts_come_after_the_one_to_meet() -> None:
    assert text_of(ROOT, FIRST, SECOND, FOCAL, LATER) == [
        "[3 h] @ilse.test: My pump hums.",
        "[2 h] @bo.test (peer) → @ilse.test: Mine too, in the rain.",
        "[30 min] @bo.test (peer) → @ilse.test: Or is it the washer?",
        '[12 min] @ilse.test → @bo.test "Mine too, in the rain.": (this one)',
        "[1 min] @tick.test (bot) → @ilse.test: It is noon.",
    ]


def test_our_replies_that_have_not_left_stand_in_it_and_a_post_alone_is_no_thread() -> None:
    waiting = UnsentReply(FOCAL.uri, "The washer, I think.")
    assert text_of(FOCAL, unsent=(waiting,))[-1] == "[not sent] YOU → @ilse.test: The washer, I think."
    assert text_of(FOCAL) == []
