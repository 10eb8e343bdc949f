"""The small questions about words in a room: does a message repeat what was said, and what does the host want? Pure."""

from __future__ import annotations

import re

from town.mind.bank import stems

_SAID = re.compile(r'^(?:\d+\.|Ann says:) "(.*)"$', re.MULTILINE)
_NEW = re.compile(r'^(?:New message|Bob says): "(.*)"$', re.MULTILINE)
_HOST = re.compile(r'^The host wrote: "(.*)"$', re.MULTILINE)
_SAME_SHARE = 0.7
_ASKED_BEFORE = re.compile(r"\b(?:i asked|asked for|waiting|yet\?|so far|answered)", re.IGNORECASE)
_ASKS = re.compile(r"\b(?:should|could|can|would be great)\b", re.IGNORECASE)
_WORK = re.compile(
    r"\b(?:issue|plan|ticket|fix|repair|sorted out|write (?:this|that|it) up)",
    re.IGNORECASE,
)
_SPOKEN = re.compile(r'^\d+\. "[^:"]{0,80}: (.*)"$', re.MULTILINE)
_ONLY_THANKS = re.compile(
    r"\W*(?:thanks?|thank you|lovely|good (?:night|morning)|bye)\b[^.?]{0,40}[.!]?", re.IGNORECASE
)
_THANKS = re.compile(r"\b(?:thanks?|thank you|great work|lovely|good (?:night|morning))\b", re.IGNORECASE)


def repeats(prompt: str) -> str:
    """`YES` if most of the telling words of the new message stand in one of those before it."""
    new = _NEW.search(prompt)
    candidate = stems(new[1]) if new else frozenset()
    if not candidate:
        return "NO"
    shares = (len(candidate & stems(said)) / len(candidate) for said in _SAID.findall(prompt))
    return "YES" if any(share >= _SAME_SHARE for share in shares) else "NO"


def worth_an_answer(prompt: str) -> str:
    """`LISTEN` where the newest message only thanks, or says again what stands above it; else `SPEAK`."""
    said = _SPOKEN.findall(prompt)
    if not said:
        return "SPEAK"
    newest, before = stems(said[-1]), [stems(text) for text in said[:-1]]
    repeated = newest and any(len(newest & words) / len(newest) >= _SAME_SHARE for words in before)
    return "LISTEN" if repeated or _ONLY_THANKS.fullmatch(said[-1]) else "SPEAK"


def wanted(prompt: str) -> str:
    """The label of what the host wrote."""
    host = _HOST.search(prompt)
    text = host[1] if host else prompt
    if _THANKS.search(text):
        return "DISCUSSION"
    if _ASKED_BEFORE.search(text):
        return "FOLLOW_UP"
    return "ACTION_REQUEST" if any(map(_asks_for_work, text.split("\n"))) else "DISCUSSION"


def _asks_for_work(line: str) -> bool:
    asks = _ASKS.search(line)
    return asks is not None and _WORK.search(line, asks.end()) is not None
