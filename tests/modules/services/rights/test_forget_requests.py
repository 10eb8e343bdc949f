"""A forgetting ends a life, so it is put off until many can be forgotten together, and nobody ends many lives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.services.rights.requests import FORGET_AFTER, FORGET_EVERY, ForgetRequest, ForgetRequests, forget_at

NOW = datetime(2026, 3, 1, 12, 1, tzinfo=UTC)


def test_who_asks_is_forgotten_soon_and_together_with_others() -> None:
    due = forget_at(FakeClock(NOW))
    assert timedelta() < due - NOW - FORGET_AFTER <= FORGET_EVERY
    assert due == forget_at(FakeClock(NOW + timedelta(minutes=8)))


def test_who_asks_again_and_again_is_forgotten_once_a_day() -> None:
    ended: list[datetime] = []
    due: datetime | None = None
    for minute in range(0, 48 * 60, 10):
        now = NOW + timedelta(minutes=minute)
        if due is not None and due <= now:
            ended.append(due)
            due = None
        next_due = forget_at(FakeClock(now), ended[-1] if ended else None)
        due = next_due if due is None else min(due, next_due)
    assert len(ended) == 2


@pytest.mark.parametrize("torn", [b'{"did": "did:pl', b"[]", b'{"did": "", "not_before": "soon"}', b"\xff"])
def test_a_request_that_cannot_be_read_is_put_aside_and_stops_no_other(tmp_path: Path, torn: bytes) -> None:
    requests, whole = ForgetRequests(tmp_path), ForgetRequest("did:plc:ada", NOW)
    requests.give(whole)
    (tmp_path / "forget" / "0123.json").write_bytes(torn)
    assert requests.all() == requests.due(NOW) == [whole]
    (told,) = requests.set_unreadable_aside()
    assert "0123.json" in told
    (aside,) = (tmp_path / "forget").glob("0123.json.*")
    assert aside.read_bytes() == torn
    assert requests.set_unreadable_aside() == []
    requests.done(whole)
    assert requests.all() == []
    assert aside.exists()
