"""Decides what becomes of a request when our own words for it could not be said: keep, try again, act, or ask.

The owner of a request owes the host something that lasts. A model that talks instead of acting is asked again, and if
that does not help the thing is made without it; only who has no repository asks for one, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import regex

from common.constants import GITHUB_BODY_MAX_CHARS
from common.schemas import Commitment
from common.text.github_text import without_mentions
from common.text.graphemes import truncate_graphemes
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import RequestContent, Salvaged
from modules.services.voice_phrases.store import Phrase

SPACE_FORCED_ACTION_CYCLES = 3
SPACE_FORCED_ACTION_REJECTIONS = 3
SPACE_MAX_FORCED_ACTIONS = 2
SPACE_OWNER_RETRIES = 2

_BODY_MIN_CHARS = 50
_TITLE_CHARS = 120
_SPACE = regex.compile(r"\s+")
_ADDRESSED = regex.compile(r"(?:@[\w.-]*\w[,:]?\s+)+")


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """Whether our model is asked once more, and why or why not."""

    code: Literal["retry", "not_ours", "no_news", "tried_enough"]
    reason: str


@dataclass(frozen=True, slots=True)
class ForceDecision:
    """Whether the thing is made without our model, or the host is asked for a repository, and why or why not."""

    code: Literal["force", "ask_for_repo", "no_repo", "not_ours", "untried", "claimed", "forced_enough", "not_urgent"]
    reason: str


@dataclass(frozen=True, slots=True)
class Fallback:
    """What the owner of a request does beside the words of its model.

    Attributes:
        retry: whether the model is asked once more.
        force: whether to act without it, if that brings nothing.
        commitment: what is made without it; None if nothing is, or nothing honest can be.

    """

    retry: RetryDecision
    force: ForceDecision
    commitment: Commitment | None = None


def fallback(snapshot: RoomSnapshot, *, new_messages: bool, tells_talk: bool, phrase: Phrase) -> Fallback:
    """What is left to the owner of a request; `tells_talk`: the talk may be told where the work is done."""
    retry, force = should_retry(snapshot, new_messages=new_messages), should_force_action(snapshot)
    if force.code != "force":
        return Fallback(retry, force)
    talk = "\n".join(snapshot.lines) if tells_talk else ""
    made = build_forced_commitment(snapshot.request.content, snapshot.asked, snapshot.repo, talk, phrase=phrase)
    return Fallback(retry, force, made)


def salvage(commitments: Iterable[Commitment], social_only: bool, phrase: Phrase) -> Salvaged | None:  # noqa: FBT001 - a name agreed on
    """Commitments to keep from a message that may not be said, with the words that go with them; None if none is."""
    kept = tuple(one for one in commitments if not (social_only and one.is_github))
    return Salvaged(phrase("space.on_it", what=kept[0].type.replace("_", " ")), kept) if kept else None


def should_retry(snapshot: RoomSnapshot, *, new_messages: bool) -> RetryDecision:
    """Whether our model gets another try, once in a check and twice for a request."""
    if not_ours := _not_our_turn(snapshot):
        return RetryDecision("not_ours", not_ours)
    if not new_messages:
        return RetryDecision("no_news", "nobody has spoken")
    if snapshot.request.owner_rejections > SPACE_OWNER_RETRIES:
        return RetryDecision("tried_enough", f"tried again {SPACE_OWNER_RETRIES} times for this request")
    return RetryDecision("retry", "the owner owes the host an action")


def should_force_action(snapshot: RoomSnapshot) -> ForceDecision:  # noqa: PLR0911 - one line for each reason
    """Whether to act without our model: it had its try, nobody is at it, and the host has waited long enough."""
    request = snapshot.request
    if not_ours := _not_our_turn(snapshot):
        return ForceDecision("not_ours", not_ours)
    if not request.attempts:
        return ForceDecision("untried", "our model has not tried yet")
    if snapshot.is_claimed:
        return ForceDecision("claimed", "a peer is at it")
    if request.forced >= SPACE_MAX_FORCED_ACTIONS:
        return ForceDecision("forced_enough", f"acted {SPACE_MAX_FORCED_ACTIONS} times already")
    if request.cycles < SPACE_FORCED_ACTION_CYCLES and request.owner_rejections < SPACE_FORCED_ACTION_REJECTIONS:
        return ForceDecision("not_urgent", "it can wait")
    if not snapshot.repo and snapshot.asked.kind != "post_bluesky":
        return ForceDecision("no_repo" if request.repo_asked else "ask_for_repo", "no repository is known")
    waited = f"waited {request.cycles} cycles, {request.owner_rejections} tries came to nothing"
    return ForceDecision("force", waited)


def may_ask_for_repo(snapshot: RoomSnapshot) -> bool:
    """Whether it is ours to ask for a repository: once, and while a request is open only its owner."""
    return not snapshot.request.repo_asked and (snapshot.is_owner or not snapshot.is_open)


def build_forced_commitment(
    request: str, asked: RequestContent, repo: str | None, transcript: str, *, phrase: Phrase
) -> Commitment | None:
    """What is made without our model: an issue, or a comment or post where that is clearly what was asked.

    Args:
        request: the host's words.
        asked: what they ask for.
        repo: `owner/name`; needed for all but a post.
        transcript: the talk so far, one line for each message; "" if it is not to be told there.
        phrase: returns operational texts.

    Returns None where nothing honest can be made: no repository, or a post without words of its own.

    """
    if asked.kind == "post_bluesky":
        return Commitment(type=asked.kind, content=asked.quoted) if asked.quoted else None
    if not repo:
        return None
    if asked.kind == "comment_issue":
        return Commitment(
            type=asked.kind,
            repo=repo,
            description=asked.quoted or _own_body(request, transcript, phrase),
            issue_number=asked.issue_number,
        )
    return Commitment(
        type=asked.kind, repo=repo, title=_title(request), description=_own_body(request, transcript, phrase)
    )


def enriched(commitment: Commitment, body: str | None) -> Commitment:
    """With a body that a model wrote, if it is one; else as it was."""
    return commitment.model_copy(update={"description": body.strip()}) if body and _is_body(body) else commitment


def _not_our_turn(snapshot: RoomSnapshot) -> str:
    if not snapshot.is_owner:
        return "somebody else owns the request"
    if not snapshot.is_open:
        return "no request is open"
    return "social-only: nothing on GitHub is ours to make" if snapshot.social_only else ""


def _is_body(body: str) -> bool:
    return len(body.strip()) > _BODY_MIN_CHARS


def _title(request: str) -> str:
    line = _SPACE.sub(" ", request).strip()
    bare = _ADDRESSED.sub("", line) if _ADDRESSED.match(line) else line
    return truncate_graphemes(bare or line, _TITLE_CHARS).strip()


def _own_body(request: str, transcript: str, phrase: Phrase) -> str:
    """The request and the talk as they stand, cut at the front of the talk if they are too long for GitHub."""
    head = phrase("github.request", request=_cited(request))
    if not transcript:
        return head[:GITHUB_BODY_MAX_CHARS]
    around = len(head) + len("\n\n") + len(phrase("github.request_talk", talk=""))
    talk = _newest_lines(_cited(transcript), max(GITHUB_BODY_MAX_CHARS - around, 0))
    return f"{head}\n\n{phrase('github.request_talk', talk=talk)}"[:GITHUB_BODY_MAX_CHARS].rstrip()


def _newest_lines(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    cut = text[len(text) - room :]
    return cut.partition("\n")[2]


def _cited(text: str) -> str:
    """As a quotation, in which nobody is notified by their name."""
    return "\n".join(f"> {line}".rstrip() for line in without_mentions(text.strip()).splitlines())
