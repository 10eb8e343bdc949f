"""The settings of our account on Bluesky decide which posts are not seen, and who may reply to its own."""

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.atproto.types import AccountPreferences, Actor, Barrier, MutedWord, Notification, Picture, Post, PostLabel
from modules.services.moderation import BARRIERS, Shown, is_in, shown, why_unseen, with_defaults
from modules.services.outbox.bodies import AllowedReplies, PostBody

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
URI = "at://did:plc:kit/app.bsky.feed.post/1"
LABELER = "did:plc:labeler"
MUTED = "it has a word that our account on Bluesky muted"
IN_TAGS = MutedWord("moss", in_text=False)
LIST = "at://did:plc:us/app.bsky.graph.list/friends"

STANDS = (
    ("moss", "Which moss grows on slate?"),
    ("moss", "MOSS!"),
    ("Moss", "(moss)"),
    ("moss", "no-moss-here"),
    ("#moss", "I like #moss"),
    ("slate roof", "an old  Slate\nroof sings"),
    ("c++", "written in C++, sadly"),
    ("it's", "it's raining"),
    ("x", "xylophone"),
    ("苔", "屋根の苔が美しい"),
    ("屋根", "屋根の苔が美しい"),
    ("\uff2d\uff2f\uff33\uff33", "moss"),
    ("élan", "ÉLAN vital"),
)
ABSENT = (
    ("moss", "mossy stones"),
    ("moss", ""),
    ("slate roof", "a roof of slate"),
    ("屋根", "苔が美しい"),
    ("  ", "two  spaces"),
    ("#", "a # alone"),
)


@pytest.mark.parametrize(("cases", "found"), [(STANDS, True), (ABSENT, False)], ids=["stands", "absent"])
def test_a_muted_word_counts_as_a_whole_word_or_phrase(*, cases: tuple[tuple[str, str], ...], found: bool) -> None:
    wrong = [case for case in cases if is_in(MutedWord(case[0]), (case[1],), ()) is not found]
    assert wrong == []


def seen(text: str = "Slate.", **more: Any) -> Shown:
    return Shown(**{"uri": URI, "texts": (text,), **more})


@pytest.mark.parametrize(
    ("post", "chosen", "reason"),
    [
        (seen("moss"), AccountPreferences((MutedWord("moss"),)), MUTED),
        (seen("moss"), AccountPreferences((IN_TAGS,)), ""),
        (seen(tags=("Moss",)), AccountPreferences((IN_TAGS,)), MUTED),
        (seen(tags=("moss",)), AccountPreferences((MutedWord("#moss"),)), MUTED),
        (seen("moss"), AccountPreferences((MutedWord("moss", spares_followed=True),)), MUTED),
        (seen("moss", is_followed=True), AccountPreferences((MutedWord("moss", spares_followed=True),)), ""),
        (seen("moss"), AccountPreferences((MutedWord("moss", until="2026-11-25T12:00:00Z"),)), ""),
        (seen("moss"), AccountPreferences((MutedWord("moss", until="2026-11-25T12:00:01Z"),)), MUTED),
        (seen("moss"), AccountPreferences((MutedWord("moss", until="next year"),)), MUTED),
        (seen(), AccountPreferences(hidden_posts=frozenset({URI})), "our account on Bluesky hid this post"),
        (
            seen(labels=(PostLabel("porn", "did:plc:anybody"),)),
            AccountPreferences(hidden_labels=frozenset({("porn", "")})),
            "our account on Bluesky hides what is labelled porn",
        ),
        (
            seen(labels=(PostLabel("rude", "did:plc:anybody"),)),
            AccountPreferences(hidden_labels=frozenset({("rude", LABELER)})),
            "",
        ),
        (
            seen(labels=(PostLabel("kind", LABELER), PostLabel("rude", LABELER))),
            AccountPreferences(hidden_labels=frozenset({("rude", LABELER)})),
            "our account on Bluesky hides what is labelled rude",
        ),
        *((seen(barrier=barrier), AccountPreferences(), reason) for barrier, reason in BARRIERS.items()),
    ],
)
def test_what_the_account_does_not_want_to_see_is_told_with_its_reason(
    post: Shown, chosen: AccountPreferences, reason: str
) -> None:
    assert why_unseen(post, chosen, NOW) == reason


@pytest.mark.parametrize("barrier", ["", "muted"])
def test_of_a_post_its_pictures_words_tags_and_labels_are_looked_at(barrier: Barrier) -> None:
    author = Actor("did:plc:kit", "kit.test", is_followed=True, barrier=barrier)
    pictures, labels = (Picture("a heron"), Picture()), (PostLabel("rude", LABELER),)
    post = Post(URI, "c", author, "Slate.", "2026-01-01T00:00:00Z", pictures=pictures, tags=("roof",), labels=labels)
    assert shown(post) == Shown(URI, ("Slate.", "a heron"), ("roof",), labels, is_followed=True, barrier=barrier)
    notice = Notification(URI, "c", author, "mention", "Slate.", "", "", tags=("roof",), labels=labels)
    assert shown(notice) == Shown(URI, ("Slate.",), ("roof",), labels, is_followed=True, barrier=barrier)


@pytest.mark.parametrize(
    ("body", "chosen", "replies", "may_be_quoted"),
    [
        (PostBody(text="Slate."), AccountPreferences(), None, True),
        (PostBody(text="Slate."), AccountPreferences(replies=("mentioned", LIST)), ("mentioned", LIST), True),
        (PostBody(text="Slate."), AccountPreferences(replies=(), may_be_quoted=False), (), False),
        (PostBody(text="Slate.", replies=None), AccountPreferences(replies=(), may_be_quoted=False), None, False),
        (PostBody(text="Slate.", replies=("followers",)), AccountPreferences(replies=()), ("followers",), True),
    ],
)
def test_a_post_of_our_own_is_limited_as_the_account_chose_unless_it_says_otherwise(
    *, body: PostBody, chosen: AccountPreferences, replies: AllowedReplies, may_be_quoted: bool
) -> None:
    after = with_defaults(PostBody.model_validate(body.stored()), chosen)
    assert (after.text, after.replies, after.may_be_quoted) == ("Slate.", replies, may_be_quoted)
