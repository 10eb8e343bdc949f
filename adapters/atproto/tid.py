"""Timestamp identifiers: record keys that sort by time.

A key made from an intent's creation time and id is the same after any crash, so a write that is repeated hits the
same record. Nothing is stored here.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime, timedelta

_ALPHABET = "234567abcdefghijklmnopqrstuvwxyz"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK_BITS = 10
_TIME_BITS = 53
_LENGTH = 13
_TID = re.compile(r"[234567a-j][234567a-z]{12}")


def tid_for(created_at: datetime, intent_id: str) -> str:
    """The 13-character key of an intent: its microsecond, and a clock id hashed from its id.

    Raises:
        ValueError: `created_at` lies before 1970, or further ahead than the format can say.

    """
    digest = hashlib.sha256(intent_id.encode()).digest()
    return _encode(_microseconds(created_at), int.from_bytes(digest[:2]) % (1 << _CLOCK_BITS))


def is_tid(text: str) -> bool:
    """Whether `text` is a well-formed TID."""
    return _TID.fullmatch(text) is not None


def tid_time(text: str) -> datetime | None:
    """When a key was made, as it says itself; None if it is no TID."""
    if not is_tid(text):
        return None
    number = sum(_ALPHABET.index(letter) << 5 * place for place, letter in enumerate(reversed(text)))
    return _EPOCH + timedelta(microseconds=number >> _CLOCK_BITS)


class TidSource:
    """Fresh keys for writes that have no intent: always rising, even when the clock stands still or is set back."""

    def __init__(self) -> None:
        self._last = -1
        self._clock_id = secrets.randbelow(1 << _CLOCK_BITS)

    def next(self, now: datetime) -> str:
        self._last = max(_microseconds(now), self._last + 1)
        return _encode(self._last, self._clock_id)


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _encode(microseconds: int, clock_id: int) -> str:
    if not 0 <= microseconds < 1 << _TIME_BITS:
        message = f"{microseconds} microseconds since 1970 do not fit a TID"
        raise ValueError(message)
    number = microseconds << _CLOCK_BITS | clock_id
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in reversed(range(_LENGTH)))
