"""The small questions about words in a room: does a message repeat what was said, and what does the host want? Pure."""

from __future__ import annotations

import re

from town.mind.bank import stems
from town.mind.reading import FRAME

_QUOTE = re.compile(r'^\d+\. "(.*)"$', re.MULTILINE)
_SAME_SHARE = 0.7
_ASKED_BEFORE = re.compile(r"\b(?:i asked|asked for|waiting|yet\?|so far|answered)", re.IGNORECASE)
_WANTED = re.compile(
    r"\b(?:should|could|can|would be great)\b.*\b(?:issue|plan|ticket|fix|repair|sorted out|write (?:this|that|it) up)",
    re.IGNORECASE,
)
_THANKS = re.compile(r"\b(?:thanks?|thank you|great work|lovely|good (?:night|morning))\b", re.IGNORECASE)


def repeats(prompt: str) -> str:
    """`YES` if most of the telling words of the new message stand in one of those before it."""
    framed = [match[4] for match in FRAME.finditer(prompt)]
    if len(framed) < 2:  # noqa: PLR2004 - what was said, and the new message
        return "NO"
    candidate = stems(framed[-1])
    if not candidate:
        return "NO"
    shares = (len(candidate & stems(quote)) / len(candidate) for quote in _QUOTE.findall(framed[0]))
    return "YES" if any(share >= _SAME_SHARE for share in shares) else "NO"


def wanted(prompt: str) -> str:
    """The label of what the host wrote."""
    text = next((match[4] for match in FRAME.finditer(prompt)), prompt)
    if _THANKS.search(text):
        return "DISCUSSION"
    if _ASKED_BEFORE.search(text):
        return "FOLLOW_UP"
    return "ACTION_REQUEST" if _WANTED.search(text) else "DISCUSSION"
