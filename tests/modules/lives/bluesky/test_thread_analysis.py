"""A thread is read whole: what stands above, what stands beside, and what we said ourselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.types import Post, ThreadNode
from modules.lives.bluesky.thread import THREAD_MAX_POSTS, analyze_thread_view, link_hosts
from tests.modules.lives.bluesky.bluesky_values import ME, at, chain, node, post


def test_the_way_from_the_root_to_the_focal_post_is_complete_and_in_order() -> None:
    talk = chain(("ada", "one"), ("me", "two"), ("bob", "three"), ("me", "four"), ("ada", "five"))
    analysis = analyze_thread_view(node(talk), ME)
    assert analysis.focal_path == tuple(talk)
    assert analysis.posts == tuple(talk)
    assert analysis.depth == 4
    assert analysis.agent_reply_count == 2
    assert analysis.participants == ("ada.example.social", "bob.example.social")
    assert not analysis.is_agent_last_reply


def test_an_address_that_is_none_has_no_host() -> None:
    shared = post("owner", "Look.", links=("https://[::1", "https://a\u2100b.example/x", "https://example.org/a"))
    assert link_hosts(shared) == "example.org"


def test_an_answer_of_ours_below_the_focal_post_is_the_last_word() -> None:
    talk = chain(("ada", "one"), ("bob", "two"))
    ours = post("me", "three", key="m", minutes=5, parent=talk[-1])
    analysis = analyze_thread_view(node(talk, replies=(ThreadNode(ours),)), ME)
    assert analysis.is_agent_last_reply
    assert analysis.agent_reply_count == 1


def test_what_others_answered_beside_us_is_seen_in_order_of_time() -> None:
    root = post("owner", "Ideas?", key="root")
    focal = post("bob", "A raft.", key="b", minutes=4, parent=root)
    first = post("ada", "A kite.", key="a", minutes=1, parent=root)
    deeper = post("cleo", "A red one.", key="c", minutes=6, parent=first)
    tree = ThreadNode(root, replies=(ThreadNode(focal), ThreadNode(first, replies=(ThreadNode(deeper),))))
    analysis = analyze_thread_view(ThreadNode(focal, parent=ThreadNode(root)), ME, tree)
    assert [one.text for one in analysis.posts] == ["Ideas?", "A kite.", "A raft.", "A red one."]
    assert analysis.focal_path == (root, focal)
    assert analysis.participants == tuple(f"{name}.example.social" for name in ("owner", "ada", "bob", "cleo"))


@pytest.mark.parametrize(
    ("created_at", "indexed_at"), [("1990-01-01T00:00:00Z", at(9)), ("not a time", "neither is this")]
)
def test_an_answer_never_stands_before_what_it_answers(created_at: str, indexed_at: str) -> None:
    root = post("ada", "one", key="a", minutes=3)
    answer = post("bob", "two", key="b", parent=root, created_at=created_at, indexed_at=indexed_at)
    last = post("cleo", "three", key="c", minutes=9, parent=answer)
    analysis = analyze_thread_view(
        node([root]), ME, ThreadNode(root, replies=(ThreadNode(answer, replies=(ThreadNode(last),)),))
    )
    assert [one.text for one in analysis.posts] == ["one", "two", "three"]


def test_a_post_that_claims_to_come_from_the_future_stands_where_it_was_seen() -> None:
    root = post("ada", "one", key="a")
    boast = post("bob", "boast", key="b", parent=root, created_at="2099-01-01T00:00:00Z", indexed_at=at(1))
    later = post("me", "answer", key="c", minutes=2, parent=root)
    analysis = analyze_thread_view(node([root]), ME, ThreadNode(root, replies=(ThreadNode(boast), ThreadNode(later))))
    assert analysis.is_agent_last_reply


def crowd(root: Post, size: int) -> ThreadNode:
    """So many answers to one post, a minute apart."""
    answers = (
        post("bob", f"answer {index}", key=f"x{index}", minutes=10 + index, parent=root) for index in range(size)
    )
    return ThreadNode(root, replies=tuple(ThreadNode(answer) for answer in answers))


def test_a_crowd_is_cut_to_its_newest_but_the_way_to_the_focal_post_stays() -> None:
    root = post("ada", "root", key="root")
    focal = post("cleo", "focal", key="focal", minutes=1, parent=root)
    analysis = analyze_thread_view(ThreadNode(focal, parent=ThreadNode(root)), ME, crowd(root, 100))
    assert len(analysis.posts) == THREAD_MAX_POSTS
    assert analysis.posts[:2] == (root, focal)
    assert analysis.posts[-1].text == "answer 99"
    assert analysis.posts[2].text == f"answer {100 - THREAD_MAX_POSTS + 2}"


def test_a_long_way_is_kept_whole_however_long() -> None:
    length = 1200
    talk = chain(*(("ada", f"line {index}") for index in range(length)))
    analysis = analyze_thread_view(node(talk), ME, crowd(talk[0], 5))
    assert analysis.posts == analysis.focal_path == tuple(talk)
    assert analysis.depth == length - 1


def test_a_circle_of_thanks_on_the_way_is_noticed() -> None:
    talk = chain(("ada", "Thanks!"), ("me", "Thank you!"), ("ada", "Great."), ("me", "Nice."))
    assert analyze_thread_view(node(talk), ME).circular.suggestion_to_exit


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["ada", "bob", "me"]), st.integers(0, 50)), max_size=60))
def test_every_tree_is_shown_once_parents_first(shape: list[tuple[int, str, int]]) -> None:
    posts = [post("ada", "root", key="root")]
    for index, (parent, author, minutes) in enumerate(shape):
        above = posts[parent % len(posts)]
        posts.append(post(author, str(index), key=f"k{index}", minutes=minutes, parent=above))

    def grow(top: Post) -> ThreadNode:
        below = (one for one in posts if one.reply and one.reply.parent.uri == top.uri)
        return ThreadNode(top, replies=tuple(grow(one) for one in below))

    analysis = analyze_thread_view(ThreadNode(posts[0]), ME, grow(posts[0]))
    shown = [one.uri for one in analysis.posts]
    assert len(shown) == len(set(shown)) == min(len(posts), THREAD_MAX_POSTS)
    for one in analysis.posts:
        if one.reply and one.reply.parent.uri in shown:
            assert shown.index(one.reply.parent.uri) < shown.index(one.uri)
