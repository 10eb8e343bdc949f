"""The rhythm of a SOUL is computed from its name, the same on every machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.runtime.scheduler.policy import (
    awareness_skip_probability,
    get_agent_jitter,
    get_peer_delay,
    get_timer_jitter,
)
from modules.runtime.scheduler.quiet_hours import is_quiet_hours

PEERS = ("ada.test", "kit.test", "wren.test")


@pytest.mark.parametrize(("name", "ms"), [("rebecca", 26035), ("sh-marvin", 85011), ("", 15000)])
def test_each_name_waits_its_own_time_before_speaking(name: str, ms: int) -> None:
    assert get_agent_jitter(name) == ms


@pytest.mark.parametrize(
    ("name", "timer", "base_ms", "pct", "ms"),
    [
        ("rebecca", "awareness", 45_000, 0.12, 45_081),
        ("marvin", "awareness", 45_000, 0.12, 39_676),
        ("marvin", "heartbeat", 300_000, 0.12, 319_044),
        ("peterben", "session-refresh", 900_000, 0.12, 823_968),
        ("marvin", "space-participation", 5_000, 0.40, 6_834),
        ("rebecca", "space-participation", 5_000, 0.40, 6_470),
    ],
)
def test_each_timer_of_each_name_has_its_own_interval(name: str, timer: str, base_ms: int, pct: float, ms: int) -> None:
    assert get_timer_jitter(name, timer, base_ms, pct) == ms


@given(st.text())
def test_a_name_in_any_script_waits_between_15_and_90_seconds(name: str) -> None:
    assert 15_000 <= get_agent_jitter(name) < 90_000


@given(name=st.text(), speed=st.sampled_from([2, 10, 60, 1000]))
def test_a_faster_life_waits_in_proportion(name: str, speed: int) -> None:
    fast = get_agent_jitter(name, minimum_ms=15_000 / speed, span_ms=75_000 / speed)
    assert fast == pytest.approx(get_agent_jitter(name) / speed, abs=1)


@given(
    names=st.lists(st.text(alphabet="abcdefgh.-", min_size=1, max_size=12), min_size=2, max_size=9, unique=True),
    root=st.text(max_size=40),
)
def test_peers_in_a_thread_speak_twenty_seconds_apart_in_an_order_that_all_of_them_reckon(
    names: list[str], root: str
) -> None:
    delays = [get_peer_delay(name, [one for one in names if one != name], root) for name in names]
    assert sorted(delays) == [15_000 + 20_000 * rank for rank in range(len(names))]


def test_nobody_goes_first_in_every_thread() -> None:
    first = {min(PEERS, key=lambda name: get_peer_delay(name, PEERS, f"at://a/b/{number}")) for number in range(20)}
    assert first == set(PEERS)


def test_capital_letters_and_a_name_given_twice_change_no_order() -> None:
    assert get_peer_delay("Ada.test", ["KIT.test", "kit.test", "ada.test"], "at://a") == get_peer_delay(
        "ada.test", ["kit.test"], "at://a"
    )
    assert get_peer_delay("ada.test", [], "at://a", first_ms=15, step_ms=20) == 15


@given(
    name=st.text(max_size=20),
    timer=st.text(max_size=20),
    base=st.floats(min_value=1, max_value=10**8),
    pct=st.sampled_from([0.0, 0.12, 0.4]),
)
def test_an_interval_stays_within_its_share(name: str, timer: str, base: float, pct: float) -> None:
    assert abs(get_timer_jitter(name, timer, base, pct) - base) <= base * pct + 1


@pytest.mark.parametrize(("hour", "quiet"), [(22, False), (23, True), (0, True), (6, True), (7, False), (12, False)])
def test_the_night_is_quiet_over_midnight(hour: int, quiet: bool) -> None:  # noqa: FBT001
    assert is_quiet_hours(hour) is quiet
    assert is_quiet_hours(hour, 23, 7) is quiet


@pytest.mark.parametrize(("hour", "quiet"), [(12, False), (13, True), (14, True), (15, False)])
def test_a_rest_within_the_day_is_quiet_too(hour: int, quiet: bool) -> None:  # noqa: FBT001
    assert is_quiet_hours(hour, 13, 15) is quiet


def test_equal_bounds_mean_no_quiet_hours() -> None:
    assert not any(is_quiet_hours(hour, 5, 5) for hour in range(24))


@pytest.mark.parametrize(
    ("errors", "probability"), [(0, 0), (1, 0), (2, 0), (3, 1 / 2), (4, 2 / 3), (9, 7 / 8), (10, 7 / 8), (1000, 7 / 8)]
)
def test_failures_in_a_row_make_looking_rarer_but_never_stop_it(errors: int, probability: float) -> None:
    assert awareness_skip_probability(errors) == pytest.approx(probability)
