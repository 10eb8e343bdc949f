"""Names what a promise is about: for claims, for the queue, for the conversation that it belongs to. Pure.

One name of a target serves while words are said and while the promise is kept; it travels with it in `params.target`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import regex

from adapters.space.types import Claimed
from common.schemas import Commitment
from common.text.stems import tokenize_with_stemming
from common.text.utf16 import u16_len, u16_slice
from modules.services.commitments import policy
from modules.services.commitments.replies import commitment_request
from modules.services.commitments.types import CommitmentRequest

SIMILAR_CLAIM = 0.6

_THREAD_DIGITS = 16
_POINT_WORDS = 10
_NOT_WORD = regex.compile(r"[^\w\s]")
_TARGET = regex.compile(r"([\w.-]+/[\w.-]+|unknown)#(.*)", regex.DOTALL)


def claim_target(commitment: Commitment, default_repo: str | None) -> str:
    """What a claim on this promise names: `<repository>#<the first 50 units of what it is>`."""
    owner, _, name = (commitment.repo or default_repo or "").partition("/")
    return policy.claim_target(
        CommitmentRequest(commitment.type, named(commitment), "", "", {"owner": owner, "repoName": name}, "space")
    )


def conversation_thread_uri(name: str, content: str) -> str:
    """The conversation that a message of the host began: `space://conversation/<16 hex digits>`."""
    text = f"{name}:{content}"
    whole = u16_slice(text, u16_len(text))
    return f"space://conversation/{hashlib.sha256(whole.encode()).hexdigest()[:_THREAD_DIGITS]}"


def point_summary(name: str, content: str) -> str:
    """What a message was about: `<name>: <its first ten words, without signs>`."""
    return f"{name}: {' '.join(_NOT_WORD.sub('', content).split()[:_POINT_WORDS])}"


def rival_claim(commitment: Commitment, default_repo: str | None, claims: Iterable[Claimed]) -> Claimed | None:
    """A live claim of a peer on the same thing: the same action there, and a title at least 0.6 alike."""
    target = claim_target(commitment, default_repo)
    return next((one for one in claims if one.action == commitment.type and same_target(one.target, target)), None)


def same_target(one: str, other: str) -> bool:
    """Whether two targets of one action mean the same. A target without a repository may lie in any."""
    if one == other:
        return True
    (repo, title), (other_repo, other_title) = _parted(one), _parted(other)
    if repo and other_repo and repo.casefold() != other_repo.casefold():
        return False
    return title_similarity(title, other_title) >= SIMILAR_CLAIM


def title_similarity(one: str, other: str) -> float:
    """How alike two titles are: the share of stems that both have, 0 to 1 (Dice)."""
    stems, others = set(tokenize_with_stemming(one)), set(tokenize_with_stemming(other))
    if not stems or not others:
        return float(one.strip().casefold() == other.strip().casefold())
    return 2 * len(stems & others) / (len(stems) + len(others))


def wanted(commitment: Commitment, default_repo: str | None, *, thread_uri: str, spoken: str) -> CommitmentRequest:
    """The promise as the queue takes it; `spoken` are the words in which it was made."""
    return commitment_request(
        commitment,
        source="space",
        thread=thread_uri,
        said=spoken,
        default_repo=default_repo,
        target=claim_target(commitment, default_repo),
    )


def named(commitment: Commitment) -> str:
    """What a promise is called: its title, else its words."""
    return commitment.title or commitment.description or commitment.content


def _parted(target: str) -> tuple[str, str]:
    found = _TARGET.fullmatch(target)
    return (found[1], found[2]) if found else ("", target)
