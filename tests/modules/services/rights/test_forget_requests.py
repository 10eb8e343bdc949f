"""A forgetting ends a life, so it is put off until many can be forgotten together, and nobody ends many lives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from modules.services.rights.requests import FORGET_AFTER, FORGET_EVERY, forget_at

NOW = datetime(2026, 3, 1, 12, 1, tzinfo=UTC)


def test_who_asks_is_forgotten_soon_and_together_with_others() -> None:
    assert timedelta() < forget_at(NOW) - NOW - FORGET_AFTER <= FORGET_EVERY
    assert forget_at(NOW) == forget_at(NOW + timedelta(minutes=8))


def test_who_asks_again_and_again_is_forgotten_once_a_day() -> None:
    ended: list[datetime] = []
    due: datetime | None = None
    for minute in range(0, 48 * 60, 10):
        now = NOW + timedelta(minutes=minute)
        if due is not None and due <= now:
            ended.append(due)
            due = None
        next_due = forget_at(now, ended[-1] if ended else None)
        due = next_due if due is None else min(due, next_due)
    assert len(ended) == 2
