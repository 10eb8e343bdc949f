"""Whether a post gives its readers an easy way in: a question they can answer, or something they can use."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from common.constants import PORTABLE_MAX_GRAPHEMES
from common.text.graphemes import grapheme_len
from common.text.strings import straighten

InvitationType = Literal["question", "artifact", "explicit", "none"]
InvitationKind = Literal["choice", "bounded", "direct"]
InvitationAdvice = Literal["Wide Question", "Half Artifact", "No Question", "Nothing"]
"""A subsection of `Advice` in the `expression` skill."""

_KINDS: tuple[InvitationKind, ...] = ("choice", "bounded", "direct")
_KIND_WEIGHTS = (50, 30, 20)

_LINK = re.compile(r"https?://\S+", re.IGNORECASE)
_QUESTION = re.compile(r"(?<![^.!?\n])[^.!?\n]*\?")
_CHOICE = re.compile(
    r"\b(?:prefer|choose|pick|rather|which|between|option [ab12]|or\b(?= *\w)|more or less|would you want)\b",
    re.IGNORECASE,
)
_BOUNDED = re.compile(r"\b(?:what(?:'s| is) (?:one|your|the)|(?:do|have|did|are|would|could) you)\b", re.IGNORECASE)
_TEMPLATE = re.compile(
    r"\b(?:templates?|checklists?|patterns?|recipes?|examples?|here's how|try this|steps?|tips?)\b", re.IGNORECASE
)
_DIRECT = re.compile(
    r"\b(?:what's yours|how about you|curious what|wondering if|interested to hear|love to know|anyone else"
    r"|does this resonate)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class InvitationCheck:
    """Whether a draft invites an answer; `advice` names how it could do so better, None if it does."""

    invitation_type: InvitationType
    confidence: Literal["strong", "weak", "none"]
    advice: InvitationAdvice | None = None

    @property
    def has_invitation(self) -> bool:
        return self.invitation_type != "none"


_STRONG_QUESTION = InvitationCheck("question", "strong")
_STRONG_ARTIFACT = InvitationCheck("artifact", "strong")
_WEAK_QUESTION = InvitationCheck("question", "weak", "Wide Question")
_WEAK_ARTIFACT = InvitationCheck("artifact", "weak", "Half Artifact")
_WEAK_EXPLICIT = InvitationCheck("explicit", "weak", "No Question")
_NOTHING = InvitationCheck("none", "none", "Nothing")


def check_invitation(draft: str) -> InvitationCheck:
    """Judge a draft; the first rule that applies decides. Words of choice count only inside a question."""
    text = straighten(draft)
    link = _LINK.search(text) is not None
    prose = _LINK.sub(" ", text)
    questions = _QUESTION.findall(prose)
    choice = any(_CHOICE.search(question) for question in questions)
    bounded = any(_BOUNDED.search(question) for question in questions)
    template = _TEMPLATE.search(prose) is not None
    direct = _DIRECT.search(prose) is not None
    rules = (
        (choice or (bounded and direct), _STRONG_QUESTION),
        (template and link, _STRONG_ARTIFACT),
        (bounded or (direct and bool(questions)), _WEAK_QUESTION),
        (template or link, _WEAK_ARTIFACT),
        (bool(questions), _WEAK_QUESTION),
        (direct, _WEAK_EXPLICIT),
    )
    return next((check for applies, check in rules if applies), _NOTHING)


def pick_invitation_prompt(
    prompts: Mapping[InvitationKind, Sequence[str]], rng: random.Random, kind: InvitationKind | None = None
) -> str:
    """An example invitation of `kind`; by default half are choices, three in ten bounded questions, the rest direct."""
    return rng.choice(prompts[kind or rng.choices(_KINDS, _KIND_WEIGHTS)[0]])


def add_invitation(draft: str, invitation: str) -> str:
    """`draft` with `invitation` after it, if both fit a post; else `draft` as it is."""
    whole = f"{draft.rstrip()} {invitation.strip()}"
    return whole if grapheme_len(whole) <= PORTABLE_MAX_GRAPHEMES else draft
