"""What our own account chose on Bluesky, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MutedWord:
    """A word that our account does not want to read.

    Attributes:
        value: the word, or several.
        in_text: whether it counts in the text of a post; in its tags it always does.
        spares_followed: whether posts of those whom we follow are read all the same.
        until: ISO-8601, when it counts no more; "" if it has no end.

    """

    value: str
    in_text: bool = True
    spares_followed: bool = False
    until: str = ""


@dataclass(frozen=True, slots=True)
class AccountPreferences:
    """What our account chose on Bluesky, as far as we heed it.

    Attributes:
        muted_words: words that it does not want to read.
        hidden_posts: the uris of posts that it does not want to see.
        labelers: the dids of those whose labels it wants.
        hidden_labels: the labels whose posts it does not want to see, each with the did of the labeler that it is
            about, "" for all.
        replies: who may reply to a new post of ours, by the names of `records.REPLY_RULES` or the uris of lists; None
            lets everybody.
        may_be_quoted: whether others may quote a new post of ours.

    """

    muted_words: tuple[MutedWord, ...] = ()
    hidden_posts: frozenset[str] = frozenset()
    labelers: tuple[str, ...] = ()
    hidden_labels: frozenset[tuple[str, str]] = frozenset()
    replies: tuple[str, ...] | None = None
    may_be_quoted: bool = True
