"""What a room remembers of addresses is bounded, and a crowd of others does not give one of them a new allowance."""

from __future__ import annotations

from adapters.space.room_allowance import ADDRESS_BYTES, REMEMBERED_S, Addresses
from adapters.space.server import MAX_ATTEMPTS, ConnectionLimiter
from common.clock import FakeClock

NOISY = "192.0.2.1"
MANY = 5_000


def _crowd(addresses: Addresses, clock: FakeClock) -> None:
    for number in range(MANY):
        address = f"2001:db8::{number:x}"
        addresses.release(address, addresses.acquire(address, clock.monotonic()), clock.monotonic())


def test_an_address_that_stays_connected_keeps_its_spent_budget_however_many_others_come_and_go() -> None:
    clock = FakeClock()
    addresses = Addresses(clock)
    addresses.acquire(NOISY, clock.monotonic())
    assert addresses.allows_frame(NOISY, ADDRESS_BYTES, clock.monotonic())
    _crowd(addresses, clock)
    assert not addresses.allows_frame(NOISY, 1, clock.monotonic())
    assert addresses.share_of(NOISY) == 1


async def test_an_address_that_left_gets_its_old_allowance_back_within_a_minute() -> None:
    clock = FakeClock()
    addresses = Addresses(clock)
    allowance = addresses.acquire(NOISY, clock.monotonic())
    addresses.release(NOISY, allowance, clock.monotonic())
    await clock.advance(REMEMBERED_S - 1)
    assert addresses.acquire(NOISY, clock.monotonic()) is allowance
    addresses.release(NOISY, allowance, clock.monotonic())
    await clock.advance(REMEMBERED_S)
    assert addresses.acquire(NOISY, clock.monotonic()) is not allowance


def test_an_address_that_connects_too_often_is_refused_also_after_thousands_of_others() -> None:
    limiter = ConnectionLimiter(most=10, most_per_address=10)
    assert not any(limiter.refusal(NOISY, 0.0) for _ in range(MAX_ATTEMPTS))
    for number in range(MANY):
        assert limiter.refusal(f"2001:db8::{number:x}", 0.0) is None
        assert limiter.refusal(NOISY, 0.0) is not None
