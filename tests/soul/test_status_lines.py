"""Proves that what the owner reads of the status says what the file says."""

from __future__ import annotations

from typing import Any

import pytest

from soul.commands.status import status_lines

_CALM: dict[str, Any] = {
    "awake": False,
    "handle": "rowan.test",
    "updatedAt": "2026-01-05T12:00:00.000Z",
    "counts": {"posts": 1},
    "pendingNotifications": 0,
    "pendingIntents": 0,
    "standing": {"reasons": []},
    "drafts": [],
}


@pytest.mark.parametrize(
    ("share", "said"), [(None, ""), (0, "0% of what"), (0.0, "0% of what"), (0.954, "95% of what")]
)
def test_the_share_that_a_cache_saved_is_shown_as_soon_as_it_is_known_also_when_it_is_nothing(
    share: float | None, said: str
) -> None:
    shown = [line.strip() for line in status_lines("rowan", _CALM | {"cachedShare": share}) if "cache" in line]
    assert [line.startswith(said) for line in shown] == ([True] if said else [])
