"""Of what we said twice the oldest stays; what differs in anything stays too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.atproto.types import FeedItem, Post
from modules.services.own_feed.policy import (
    MOST_DELETIONS,
    Deletion,
    own_posts,
    plan_closing_deletions,
    plan_deletions,
    plan_duplicate_deletions,
)
from tests.modules.lives.bluesky.bluesky_values import ME, actor, at, post

TALK, OTHER = post("ada", "A talk about weirs.", key="talk"), post("bob", "Another talk.", key="other")
THANKS = "Perfect, thank you! Stopping here, see you on Monday, and thanks again to all of you."


def mine(text: str, number: int, parent: Post | None = None) -> Post:
    return post("me", text, key=f"m{number}", minutes=number, parent=parent)


def keys(deletions: list[Deletion]) -> list[str]:
    return [deletion.uri.rpartition("/")[2] for deletion in deletions]


def test_the_oldest_of_several_duplicates_stays_whatever_others_made_of_the_newer() -> None:
    posts = [replace(mine("Slate remembers THE rain.", 3), like_count=9), mine("slate  remembers the rain.", 1)]
    posts.insert(1, mine("Slate remembers the rain.", 2))
    found = plan_duplicate_deletions(posts)
    assert keys(found) == ["m2", "m3"]
    assert {deletion.kept.uri for deletion in found} == {posts[-1].uri}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (mine("Read https://a.example/1", 1), mine("Read https://a.example/2", 2)),
        (mine("Welcome @alice.test, good to have you here!", 1), mine("Welcome @bob.test, good to have you here!", 2)),
        (mine("Thank you, @alice.test!", 1, TALK), mine("Thank you, @bob.test!", 2, TALK)),
        (mine("Yes, the old one.", 1, TALK), mine("Yes, the old one.", 2, OTHER)),
        (mine("Yes, the old one.", 1), mine("Yes, the old one.", 2, TALK)),
        (replace(mine("Look.", 1), embed_digest="aa"), replace(mine("Look.", 2), embed_digest="bb")),
        (
            replace(mine("Here", 1), links=("https://a.example",)),
            replace(mine("Here", 2), links=("https://b.example",)),
        ),
        (replace(mine("The same.", 1), created_at="some day"), mine("The same.", 2)),
    ],
)
def test_what_differs_in_words_link_picture_or_thread_is_no_duplicate(first: Post, second: Post) -> None:
    assert plan_deletions([second, first]) == []


def test_the_older_of_two_identity_posts_stays_and_one_in_other_words_too() -> None:
    first, second = (mine("🔗—`ada` Hello. https://github.com/ada", number) for number in (1, 2))
    other = mine("🔗—`ada` I fix clocks. https://github.com/ada", 3)
    assert keys(plan_deletions([other, second, first])) == ["m2"]


def test_in_each_thread_the_first_thanks_stay() -> None:
    posts = [
        mine(THANKS, 1, TALK),
        mine("Sounds good, looking forward to it!", 2, TALK),
        mine("Thank you, likewise.", 3, TALK),
        mine("Thank you very much, likewise.", 4, OTHER),
        mine("Thanks, everybody, for this week.", 5),
        mine("Great, let us agree on that.", 6),
        mine("Danke sch\u00f6n!", 7, TALK),
        mine("\U0001f64f", 8, TALK),
    ]
    assert keys(plan_closing_deletions(posts[::-1])) == ["m2", "m3", "m7", "m8"]


@pytest.mark.parametrize(
    "text",
    [
        "Thanks! Which of the two would you keep?",
        "Thanks, and here is the recipe: ```flour, water```",
        "Great, it took 25 minutes and the second bread came out lighter than the first.",
        "Thanks, but the second figure is wrong.",
        "The weir held because its builders left a gap below the sluice.",
    ],
)
def test_what_says_something_is_never_taken_for_thanks(text: str) -> None:
    assert plan_closing_deletions([mine("Thanks a lot!", 1, TALK), mine(text, 2, TALK)]) == []


def test_what_is_told_to_be_kept_is_kept_where_a_duplicate_repeats_a_closing_that_goes() -> None:
    first, *others = (mine(text, number, TALK) for number, text in enumerate(("Thanks a lot!", *("Thank you!",) * 2)))
    found = plan_deletions([first, *others])
    assert sorted(deletion.uri for deletion in found) == sorted(post.uri for post in others)
    assert {deletion.kept.uri for deletion in found} == {first.uri}


def test_reposts_and_the_posts_of_others_are_not_ours() -> None:
    own, reposted, theirs = mine("One.", 1), mine("Two.", 2), post("ada", "Three.")
    items = [FeedItem(own), FeedItem(reposted, actor("me")), FeedItem(theirs)]
    assert own_posts(items, ME) == (own,)


WORDS = st.sampled_from(["Slate.", "slate.", "Thanks a lot!", "Thank you!", "Tin sings at night.", ""])
PARENTS = st.sampled_from([None, TALK, OTHER])


@given(st.lists(st.tuples(WORDS, PARENTS, st.integers(0, 5), st.sampled_from(["", "aa", "bb"])), max_size=40))
@example([("Slate.", None, 0, "")] * (MOST_DELETIONS + 3))
def test_no_words_vanish_altogether_and_no_pass_takes_more_than_its_most(
    said: list[tuple[str, Post | None, int, str]],
) -> None:
    posts = [
        replace(post("me", text, key=f"m{number:02}", parent=parent), created_at=at(minutes), embed_digest=digest)
        for number, (text, parent, minutes, digest) in enumerate(said)
    ]
    found = plan_deletions(posts)
    gone = {deletion.uri for deletion in found}
    assert len(found) == len(gone) <= MOST_DELETIONS
    assert all(deletion.kept.created_at <= deletion.post.created_at for deletion in found)
    assert all(deletion.kept.uri not in gone for deletion in found)
