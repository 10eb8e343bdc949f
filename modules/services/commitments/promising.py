"""Whether words may hold a commitment at all: cheap enough to be asked of everything that is said. Pure."""

from __future__ import annotations

import regex

from common.text.strings import normalize_quotes

_EXEMPT = r"""(?:
    admit | say | be | note | ask | disagree | stop | wait | stay | leave\ (?:it|that) | take\ that | push\ back
  | concede | know | see | add | think | never | not
)\b"""
_PROMISE = regex.compile(
    rf"""
      \bi(?:'ll|\ will|\ shall)\ (?:(?:also|gladly|happily|then|now|just)\ )*(?!{_EXEMPT})\p{{L}}
    | \blet\ me\ (?!{_EXEMPT})\p{{L}}
    | \bi(?:'m|\ am)\ (?:just\ |now\ )?(?:going\ to|about\ to|happy\ to|opening|creating|drafting|filing|submitting
        |posting|commenting|writing|documenting|putting)\b
    | \bi(?:'d|\ would)\ (?:be\ (?:happy|glad)\ to|like\ to|love\ to)\ (?!{_EXEMPT})\p{{L}}
    | \bi\ (?:want\ to|plan\ to|intend\ to|promise|commit)\b
    | ^\W*(?:will\ do|on\ it|opening|creating|filing|drafting|writing|posting)\b
    | \b(?:consider\ it\ done|leave\ (?:it|that)\ (?:to|with)\ me)\b
    """,
    regex.VERBOSE | regex.IGNORECASE,
)


def contains_promise(text: str) -> bool:
    """Whether `text` speaks of what its author is about to do."""
    return _PROMISE.search(" ".join(normalize_quotes(text).split())) is not None
