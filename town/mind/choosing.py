"""Decides what to do about a post: reply, like, leave or stay silent, and why. Pure rules and some chance."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from common.facts import PostFacts
from town.mind.words import Bank, Idea, PhraseKind, mentioned

Act = Literal["reply", "like", "exit", "silent"]
TOOLS: dict[Act, str] = {
    "like": "bluesky_like",
    "silent": "stay_silent",
    "exit": "graceful_exit",
    "reply": "bluesky_reply",
}
"""The tool of each act; the first act with an offered tool replaces one without."""

_SETTLED = {"thanks", "agree", "goodbye", "like_it"}
_LONG_TALK = 3
_REPLY_TO_ANSWER = 0.6
_REPLY_TO_CROWD = 0.5


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """An act, and the reasons for it.

    Attributes:
        act: what to do.
        intent: the kind of statement in the post, if we know it.
        asked: the idea whose question the post asks.
        answered: our idea whose question the post answers.
        closing: whether it is our last reply here.

    """

    act: Act
    intent: PhraseKind | None = None
    asked: Idea | None = None
    answered: Idea | None = None
    closing: bool = False


def choose(post: PostFacts, own_handle: str, bank: Bank, rng: random.Random) -> ToolChoice:
    """Decide what to do about `post`."""
    intent = bank.intent_of(post.text)
    if intent and intent.act == "silent":
        return ToolChoice("silent", intent)
    own = [line.text for line in post.thread if not line.who]
    closing = len(own) >= _LONG_TALK
    base = ToolChoice("reply", intent, bank.asked_in(post.text), bank.asked_in(own[-1]) if own else None, closing)
    if intent and intent.name in _SETTLED and not base.asked:
        return ToolChoice("exit" if intent.act == "exit" and not post.is_owner else "like", intent)
    if post.is_owner or _asks(post, own_handle):
        return base if post.is_owner or len(own) <= _LONG_TALK else ToolChoice("exit", intent)
    if closing:
        return ToolChoice("exit", intent)
    crowd = {line.who for line in post.thread if line.who} - {post.author}
    if rng.random() < _eagerness(post, base, own, crowd):
        return base
    return ToolChoice("silent" if crowd and rng.random() < _REPLY_TO_CROWD else "like", intent)


def _asks(post: PostFacts, own_handle: str) -> bool:
    """Return whether the post asks us something: it has a question that is not addressed only to others."""
    if "?" not in post.text:
        return False
    addressed = mentioned(post.text)
    return not addressed or own_handle.lower() in addressed or post.notification_kind != "mention"


def _eagerness(post: PostFacts, choice: ToolChoice, own: list[str], crowd: set[str]) -> float:
    """Return the probability of a reply to a statement; once we replied, only an answer to our question gets one."""
    if post.several_addressed or len(crowd) > 1:
        return _REPLY_TO_CROWD
    if own:
        return _REPLY_TO_ANSWER if choice.answered else 0.0
    return 1.0 if post.notification_kind == "mention" else _REPLY_TO_ANSWER
