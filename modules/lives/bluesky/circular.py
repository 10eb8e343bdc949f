"""Notices when two sides only thank each other in turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from adapters.atproto.types import Post
from common.text.closings import content_words, without_handles
from common.text.strings import straighten

Confidence = Literal["low", "medium", "high"]
Pattern = Literal["none", "repetitive-acknowledgments", "potential-acknowledgment-loop", "mutual-acknowledgment-loop"]

_WINDOW = 4
_SUBSTANCE_WORDS = 25
_HIGH_GRATITUDE, _HIGH_RESTATEMENT, _MEDIUM_GRATITUDE, _LOW_HITS = 0.6, 0.5, 0.5, 3

_GRATITUDE = re.compile(
    r"\W*(?:thanks|thank you|thx|ty|appreciated?|perfect|sounds (?:good|great)|great|awesome|wonderful|excellent"
    r"|amazing|cool|nice|alright|got it)(?![\w'-])",
    re.IGNORECASE,
)
_RESTATEMENT = re.compile(
    r"\b(?:i'll (?:\w+ )?(?:wait|stand by|pause|hold)|once it's (?:up|live|ready)|when (?:it|you|the)|excited to"
    r"|looking forward|no need to wait|will do)\b",
    re.IGNORECASE,
)
_LINK = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class CircularAnalysis:
    """What the latest posts show."""

    confidence: Confidence = "low"
    pattern: Pattern = "none"
    recent_messages: tuple[str, ...] = ()

    @property
    def is_circular(self) -> bool:
        return self.pattern != "none"

    @property
    def suggestion_to_exit(self) -> bool:
        """Whether an answer would only turn the wheel again."""
        return self.confidence != "low"


def detect_circular_conversation(posts: Sequence[Post]) -> CircularAnalysis:
    """Look at the last four of `posts` (oldest to newest, root to focal post); fewer than four show nothing."""
    if len(posts) < _WINDOW:
        return CircularAnalysis()
    recent = posts[-_WINDOW:]
    texts = [straighten(post.text) for post in recent]
    if len({post.author.did for post in recent}) != 2 or any("?" in text for text in texts):  # noqa: PLR2004 - a pair
        return CircularAnalysis()
    thanking = [_GRATITUDE.match(without_handles(text)) is not None for text in texts]
    restating = [_RESTATEMENT.search(text) is not None for text in texts]
    gratitude, restatement = sum(thanking) / _WINDOW, sum(restating) / _WINDOW
    alternating = all(one.author.did != other.author.did for one, other in pairwise(recent))
    may_block = alternating and not any(_is_substantive(post) for post in recent)
    messages = tuple(post.text for post in recent)
    if may_block and gratitude >= _HIGH_GRATITUDE and restatement >= _HIGH_RESTATEMENT:
        return CircularAnalysis("high", "mutual-acknowledgment-loop", messages)
    if may_block and gratitude >= _MEDIUM_GRATITUDE:
        return CircularAnalysis("medium", "potential-acknowledgment-loop", messages)
    hits = sum(thanks or again for thanks, again in zip(thanking, restating, strict=True))
    if gratitude >= _MEDIUM_GRATITUDE or hits >= _LOW_HITS:
        return CircularAnalysis("low", "repetitive-acknowledgments", messages)
    return CircularAnalysis()


def _is_substantive(post: Post) -> bool:
    return bool(post.links) or bool(_LINK.search(post.text)) or len(content_words(post.text)) >= _SUBSTANCE_WORDS
