"""What is left out of a wakeup context although somebody put it there. Pure; one rule per reason, each with its name.

Wrong in one direction a SOUL wakes with noise in its head; wrong in the other it forgets a result. So a rule asks for
clear signs, and what is still open is never taken for settled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from common.text.closings import is_low_value_closing
from modules.services.agent.wakeup.state import Protocol

Reason = Literal["", "transcript", "tool output", "resolved debugging", "repeats a protocol", "chatter"]

_SPEAKER = re.compile(
    r"^[^\S\n]*(?:[-*>]\s*)?(?:user|assistant|system|tool|owner|human|you|@[\w.-]+)\s*:\s", re.IGNORECASE | re.MULTILINE
)
_TURNS = 2
_PRINTED = re.compile(
    r"""
      ```
    | \A\s*[\[{](?=[^"']*["']).*[\]}]\s*\Z                             # a JSON value
    | Traceback\ \(most\ recent\ call\ last\)
    | ^[^\S\n]*File\ "[^"]+",\ line\ \d+
    | ^(?:---|\+\+\+)\ [ab]/ | ^@@\ -\d+,\d+\ \+\d+,\d+\ @@      # a diff
    | <(tool[_-]?(?:result|call|output))\b
    | ^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s+(?:DEBUG|INFO|WARN(?:ING)?|ERROR)\b
    | ^HTTP/\d | ^exit\ code:?\ \d+
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_DEBUGGING = re.compile(
    r"\b(?:debug\w*|bugs?|stack ?traces?|traceback|exceptions?|crash(?:es|ed)?|flaky|segfaults?|\w+Error)\b"
)
_SETTLED = re.compile(r"\b(?:fixed|resolved|solved|worked around|no longer (?:fails|happens|occurs))\b", re.IGNORECASE)
_UNSETTLED = re.compile(r"\?\s*$|\b(?:not|never|un)\W?(?:yet )?(?:fixed|resolved|solved)\b|\bstill\b", re.IGNORECASE)
_PREFERENCE = re.compile(
    r"\b(?:prefer\w*|want\w*|likes?|rather|instead|always|never|please|from now on|don't|do not)\b", re.IGNORECASE
)
_GREETING = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|evening|night)|bye|goodbye|see you|welcome back|lol|haha)\b\W*", re.IGNORECASE
)
_GREETING_WORDS = 8
_WORD = re.compile(r"\w+")
_ENOUGH_WORDS = 4
_SAME_SHARE = 0.8


def left_out(text: str, protocols: Iterable[Protocol] = ()) -> Reason:
    """Why `text` has no place in a wakeup context; "" if it has."""
    if len(_SPEAKER.findall(text)) >= _TURNS:
        return "transcript"
    if _PRINTED.search(text):
        return "tool output"
    if _DEBUGGING.search(text) and _SETTLED.search(text) and not _UNSETTLED.search(text):
        return "resolved debugging"
    if any(_repeats(text, protocol) for protocol in protocols):
        return "repeats a protocol"
    return "chatter" if _is_chatter(text) else ""


def kept(texts: Iterable[str], protocols: Sequence[Protocol] = ()) -> tuple[str, ...]:
    """Those that have a place, in their order, each once."""
    return tuple(dict.fromkeys(text for text in texts if text.strip() and not left_out(text, protocols)))


def _repeats(text: str, protocol: Protocol) -> bool:
    words = _words(text)
    shared = words & _protocol_words(protocol)
    return len(words) >= _ENOUGH_WORDS and len(shared) >= _SAME_SHARE * len(words)


def _is_chatter(text: str) -> bool:
    if _PREFERENCE.search(text):
        return False
    greets = _GREETING.match(text) is not None and len(_words(text)) <= _GREETING_WORDS
    return greets or is_low_value_closing(text)


@lru_cache(maxsize=128)
def _protocol_words(protocol: Protocol) -> frozenset[str]:
    return _words(f"{protocol.subject} {protocol.body}")


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
