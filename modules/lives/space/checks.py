"""The cheap checks: one predicate for each thing that a message must not be, and the table of when each is asked. Pure.

First comes whether it is ours to act: a message that is stopped there loses its commitments, which a later check would
let it keep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from common.constants import SECOND_MS
from common.schemas import Commitment
from common.text.measures import concept_novelty
from common.text.stems import tokenize_with_stemming
from common.text.utf16 import u16_len
from modules.lives.space import phrases
from modules.lives.space.phrases import auto_trim, count_sentences, has_list, without_first
from modules.lives.space.policy import observer_threshold, role_budget
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import Check, Mode

SPACE_ACTION_MAX_CHARS = 50_000
SPACE_DISCUSSION_MAX_CHARS = 50_000
SPACE_ACTION_MAX_SENTENCES = 1000
SPACE_DISCUSSION_MAX_SENTENCES = 1000
SPACE_NON_OWNER_HOLD_MS = 20 * SECOND_MS

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


Hits = Callable[[str, RoomSnapshot], bool]
Mend = Callable[[str, Sequence[Commitment], RoomSnapshot], str]

LIMITS: Mapping[Mode, tuple[int, int]] = {
    "action": (SPACE_ACTION_MAX_CHARS, SPACE_ACTION_MAX_SENTENCES),
    "discussion": (SPACE_DISCUSSION_MAX_CHARS, SPACE_DISCUSSION_MAX_SENTENCES),
}
"""How long a message may be: UTF-16 code units, and sentences."""

_HOLD = timedelta(milliseconds=SPACE_NON_OWNER_HOLD_MS)


@dataclass(frozen=True, slots=True)
class Stop:
    """What is told of a message that is stopped.

    Attributes:
        check: which check.
        signature: how the log line begins after `[VALIDATION REJECTED] `.
        tag: what the terminal shows.
        reason: for people.
        salvage: the commitments may be kept.

    """

    check: Check
    signature: str
    tag: str
    reason: str
    salvage: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A check.

    Attributes:
        stop: what is told.
        hits: whether this message, in this situation, is stopped.
        action_only: asked only while the room acts.
        uncommitted_only: asked only of words without commitments.
        mend: words that may be said instead; "" if there are none.
        recovered: how the log tells that words were mended.

    """

    stop: Stop
    hits: Hits
    action_only: bool = False
    uncommitted_only: bool = False
    mend: Mend | None = None
    recovered: str = ""

    def stops(self, message: str, commitments: Sequence[Commitment], snapshot: RoomSnapshot) -> bool:
        """Whether this check stops `message`."""
        if (self.action_only and snapshot.mode != "action") or (self.uncommitted_only and commitments):
            return False
        return self.hits(message, snapshot)


def _words(check: Callable[[str], bool]) -> Hits:
    def hits(message: str, _snapshot: RoomSnapshot) -> bool:
        return check(message)

    return hits


def _not_ours(snapshot: RoomSnapshot) -> bool:
    return snapshot.is_open and not snapshot.is_owner


def _acts_for_another(message: str, snapshot: RoomSnapshot) -> bool:
    return _not_ours(snapshot) and check_action_language(message)


def _too_long(message: str, snapshot: RoomSnapshot) -> bool:
    chars, sentences = LIMITS[snapshot.mode]
    return u16_len(message) > chars or count_sentences(message) > sentences


def _trimmed(message: str, commitments: Sequence[Commitment], snapshot: RoomSnapshot) -> str:
    trims = snapshot.mode == "discussion" and not commitments
    return auto_trim(message, *LIMITS[snapshot.mode]) if trims else ""


def _without_opener(message: str, _commitments: Sequence[Commitment], snapshot: RoomSnapshot) -> str:
    return without_opener(message, snapshot.agent_messages, snapshot.names)


def _spent(_message: str, snapshot: RoomSnapshot) -> bool:
    return bool(snapshot.peers) and snapshot.counts.own >= role_budget(snapshot.role, snapshot.mode)


def _defers(message: str, snapshot: RoomSnapshot) -> bool:
    return check_deference(message, snapshot.peers)


def _forgets_repo(message: str, snapshot: RoomSnapshot) -> bool:
    return bool(snapshot.repo) and check_repo_amnesia(message)


def _held(_message: str, snapshot: RoomSnapshot) -> bool:
    """The owner goes first for a moment, if it is there and we were not asked ourselves."""
    asked_at = snapshot.request.requested_at
    young = asked_at is not None and snapshot.now - asked_at < _HOLD
    return _not_ours(snapshot) and young and snapshot.owner_is_here and snapshot.me not in snapshot.addressed


def _saturated(_message: str, snapshot: RoomSnapshot) -> bool:
    return snapshot.counts.agents >= snapshot.saturation


def _observes(_message: str, snapshot: RoomSnapshot) -> bool:
    return snapshot.role == "observer" and snapshot.counts.agents >= observer_threshold(snapshot.mode)


ECHO = Stop("semantic_echo", "Semantic echo (ensemble)", "semantic echo", "says again what was said")
JUDGED = Stop("echo_judge", "Semantic echo (LLM judge)", "LLM echo judge", "says again in other words what was said")
REPEATED = Stop("own_repetition", "Own repetition", "own repetition", "says again word for word what we said before")

CHEAP: tuple[Row, ...] = (
    Row(
        Stop("non_owner_action", "Non-owner action", "not action owner", "another was elected to act on the request"),
        _acts_for_another,
        action_only=True,
    ),
    Row(
        Stop("length", "Too long", "too long", "longer than the room takes", salvage=True),
        _too_long,
        mend=_trimmed,
        recovered="Discussion auto-trim",
    ),
    Row(
        Stop("list", "Contains list", "list", "a list, where talk is prose", salvage=True),
        _words(check_list),
    ),
    Row(
        Stop("empty_promise", "Empty promise", "empty promise", "announces work and commits to none"),
        _words(check_empty_promise),
        uncommitted_only=True,
    ),
    Row(
        Stop("echo_opener", "Echo", "echo", "begins by taking up what was said", salvage=True),
        _words(check_echo_opener),
        mend=_without_opener,
        recovered="Echo opener removed",
    ),
    Row(
        Stop("role_budget", "Role message budget exceeded", "budget", "spoken enough before the host speaks again"),
        _spent,
        uncommitted_only=True,
    ),
    Row(
        Stop("deference", "Deference", "deference", "waits for somebody else to act", salvage=True),
        _defers,
        action_only=True,
    ),
    Row(
        Stop("repo_amnesia", "Repo amnesia", "repo amnesia", "asks for the repository, which is known", salvage=True),
        _forgets_repo,
        action_only=True,
    ),
    Row(
        Stop("meta_discussion", "Meta-discussion", "meta-discussion", "tells what to make instead of making it"),
        _words(check_meta_discussion),
        action_only=True,
        uncommitted_only=True,
    ),
    Row(
        Stop("scope_inflation", "Scope inflation", "scope inflation", "asks for more than the host did"),
        _words(check_scope_inflation),
        action_only=True,
        uncommitted_only=True,
    ),
    Row(
        Stop(
            "non_owner_discussion",
            "Non-owner discussion during pending action",
            "not action owner",
            "the one elected to act goes first",
        ),
        _held,
        action_only=True,
        uncommitted_only=True,
    ),
    Row(
        Stop("saturation", "Conversation saturated", "saturated", "enough was said before the host speaks again"),
        _saturated,
        uncommitted_only=True,
    ),
    Row(
        Stop("observer", "Observer silence enforced", "observer", "an observer adds nothing after others have spoken"),
        _observes,
        uncommitted_only=True,
    ),
)
"""In the order in which they are asked."""
