"""One predicate for each thing that a message in the room must not be. Pure; true means that it is one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from common.text.measures import concept_novelty
from common.text.stems import tokenize_with_stemming
from modules.lives.space import phrases
from modules.lives.space.lists import has_list
from modules.lives.space.sentences import auto_trim, count_sentences, without_first

__all__ = [
    "auto_trim",
    "check_action_language",
    "check_deference",
    "check_echo_opener",
    "check_empty_promise",
    "check_list",
    "check_meta_discussion",
    "check_repo_amnesia",
    "check_scope_inflation",
    "count_sentences",
    "without_opener",
]

_FEWEST_STEMS = 12
_LEAST_NOVELTY = 0.40


def check_list(message: str) -> bool:
    """A list, or steps numbered within the text."""
    return has_list(message)


def check_empty_promise(message: str) -> bool:
    """Work announced. To be asked only where no commitment comes with it."""
    return phrases.EMPTY_PROMISE.search(phrases.plain(message)) is not None


def check_echo_opener(message: str) -> bool:
    """A beginning that only takes up what another said."""
    return phrases.ECHO_OPENER.match(phrases.plain(message)) is not None


def check_deference(message: str, peers: Iterable[str] = ()) -> bool:
    """Waiting until one of `peers`, or anybody, does it."""
    return phrases.deference(frozenset(peers)).search(phrases.plain(message)) is not None


def check_repo_amnesia(message: str) -> bool:
    """A question for the repository. To be asked only where it is known."""
    return phrases.REPO_AMNESIA.search(phrases.plain(message)) is not None


def check_meta_discussion(message: str) -> bool:
    """Talk about what an artefact should hold."""
    return phrases.META_DISCUSSION.search(phrases.plain(message)) is not None


def check_scope_inflation(message: str) -> bool:
    """More piled onto a request."""
    return phrases.SCOPE_INFLATION.search(phrases.plain(message)) is not None


def check_action_language(message: str) -> bool:
    """Work announced, in the words of who is about to act. To be asked of those who do not own the request."""
    return phrases.NON_OWNER_ACTION.search(phrases.plain(message)) is not None


def without_opener(message: str, said: Iterable[str], names: Collection[str] = ()) -> str:
    """What is left when sentences that only take up another's words are gone from the beginning.

    "" unless that can stand by itself: twelve words that carry something, two in five of them new to what was `said`.
    """
    rest = message
    while check_echo_opener(rest):
        rest = without_first(rest)
    stems = tokenize_with_stemming(rest, names)
    if len(stems) < _FEWEST_STEMS or check_list(rest):
        return ""
    pool = [tokenize_with_stemming(text, names) for text in said]
    return rest if concept_novelty(stems, pool) >= _LEAST_NOVELTY else ""
