"""What a reply must not be: words that stand there already, words of our own instructions, or empty thanks. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from common.text.closings import content_words, is_low_value_closing, only_acknowledges
from common.text.echo import find_said_already, find_semantic_echo
from common.text.stems import plain_words
from common.text.strings import normalize_post_text
from modules.lives.bluesky.scaffold import Scaffold

ReplyProblem = Literal["instructions", "repeats", "repeats them", "thanks"]
"""A subsection of `Answers` in the `bluesky-tools` skill."""

_ECHO_FROM = 0.8
_QUOTED_WORDS = 5
_OWN_WORDS = 5
_CHOSEN_WORDS = 3


def reply_problem(text: str, said: Sequence[str], scaffold: Scaffold, *, may_thank: bool) -> ReplyProblem | None:
    """Why a reply must not leave as it is; None if it may.

    Args:
        text: the reply.
        said: the posts of its thread, ours included, oldest first.
        scaffold: the words that only our own prompt has.
        may_thank: whether thanks alone are enough.

    """
    if scaffold.is_in(text):
        return "instructions"
    if _echoes(text, said):
        return "repeats"
    if not may_thank and (is_low_value_closing(text) or only_acknowledges(text)):
        return "thanks"
    return None


def repeats(text: str, original: str) -> bool:
    """Whether `text` is a piece of `original`, handles, links and punctuation apart; to choose a word of it is none."""
    words, others = (re.findall(r"\w+", normalize_post_text(one)) for one in (text, original))
    return len(words) >= _CHOSEN_WORDS and f" {' '.join(words)} " in f" {' '.join(others)} "


def _echoes(text: str, said: Sequence[str]) -> bool:
    if find_said_already(text, said) or find_semantic_echo(text, said, threshold=_ECHO_FROM).is_echo:
        return True
    return any(_gives_back(text, post) for post in said)


def _gives_back(text: str, post: str) -> bool:
    """Whether a whole post stands in `text` word for word, with little beside it."""
    words, theirs = plain_words(normalize_post_text(text)), plain_words(normalize_post_text(post))
    if len(theirs) < _QUOTED_WORDS:
        return False
    whole, part = f" {' '.join(words)} ", f" {' '.join(theirs)} "
    return part in whole and len(content_words(whole.replace(part, " ", 1))) < _OWN_WORDS
