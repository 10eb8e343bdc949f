"""Values for the preferences of our own account on Bluesky."""

from __future__ import annotations

from dataclasses import dataclass


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
