"""Who opens a conversation in a quiet room, and when: one of those present, elected anew each hour. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from common.constants import SPACE_OPENER_FIRST_SILENCE_MS, SPACE_OPENER_INTERVAL_MS, SPACE_OPENER_SILENCE_MS
from common.result import Decision

_FIRST = timedelta(milliseconds=SPACE_OPENER_FIRST_SILENCE_MS)
_SILENCE = timedelta(milliseconds=SPACE_OPENER_SILENCE_MS)
_BETWEEN = timedelta(milliseconds=SPACE_OPENER_INTERVAL_MS)


def elected_opener(names: Collection[str], now: datetime) -> str | None:
    """Whose hash with the hour (UTC) is lowest; None when there is nobody."""
    hour = f"{now.astimezone(UTC):%Y-%m-%dT%H}"
    return min(names, key=lambda name: hashlib.sha256(f"{name}{hour}".encode()).hexdigest(), default=None)


def should_open(
    me: str,
    peers: Collection[str],
    now: datetime,
    *,
    joined_at: datetime | None,
    heard_at: datetime | None,
    opened_at: datetime | None,
) -> Decision:
    """Whether we open a conversation now.

    Args:
        me: our own name.
        peers: who else is there.
        now: aware UTC.
        joined_at: when we came in.
        heard_at: when anybody last spoke, the replayed record included.
        opened_at: when anybody last broke a long silence, or we tried to.

    """
    if not peers:
        return Decision(should=False, reason="nobody is there to talk with")
    if joined_at is None or now - joined_at < _FIRST:
        return Decision(should=False, reason="we have just come in")
    if heard_at is not None and now - heard_at < _SILENCE:
        return Decision(should=False, reason="somebody has spoken lately")
    if opened_at is not None and now - opened_at < _BETWEEN:
        return Decision(should=False, reason="a conversation was opened within the last hour")
    elected = elected_opener({me, *peers}, now)
    if elected != me:
        return Decision(should=False, reason=f"it is for {elected} to open one in this hour")
    return Decision(should=True, reason="the room is quiet, and it is for us to open a conversation in this hour")
