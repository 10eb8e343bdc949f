"""The numbers make sense together, and a faster life keeps their proportions."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto import xrpc
from adapters.space import room
from common import constants as c
from common import pace
from common.pace import Pace
from common.text import echo
from modules.lives.bluesky import expression, expression_policy
from modules.lives.bluesky import loop as bluesky_loop
from modules.lives.space import classifiers, config, validator
from modules.lives.space import policy as space_policy
from modules.runtime import heartbeat
from modules.runtime.llm import gateway
from modules.runtime.scheduler import policy as timing
from modules.services.agent.identity import self_mechanics as mechanics
from modules.services.agent.turn import loop as turn_loop
from modules.services.commitments import policy as commitment_policy
from modules.services.commitments import presence

MODULES = (
    c,
    pace,
    echo,
    mechanics,
    xrpc,
    room,
    heartbeat,
    gateway,
    timing,
    bluesky_loop,
    expression_policy,
    config,
    space_policy,
    turn_loop,
    commitment_policy,
    presence,
)
NUMBERS = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, int | float)
}


@pytest.mark.parametrize("name", [name for name in NUMBERS if name.endswith(("_INTERVAL_MS", "_INTERVAL_S"))])
def test_every_interval_is_longer_than_nothing(name: str) -> None:
    assert NUMBERS[name] > 0


def test_expressions_have_room_between_their_bounds() -> None:
    assert c.EXPRESSION_MIN_INTERVAL_MS < c.EXPRESSION_MAX_INTERVAL_MS
    assert expression.EXPRESSION_RETRY_MIN_MS < expression.EXPRESSION_RETRY_MAX_MS


def test_quiet_hours_are_hours() -> None:
    assert {timing.QUIET_HOURS_START, timing.QUIET_HOURS_END} <= set(range(24))


def test_echo_thresholds_are_shares_and_the_borderline_lies_below() -> None:
    shares = (
        echo.SEMANTIC_ECHO_THRESHOLD,
        c.ENSEMBLE_ECHO_THRESHOLD,
        echo.CONCEPT_NOVELTY_THRESHOLD,
        c.ECHO_JUDGE_BORDERLINE_LOW,
        classifiers.ECHO_JUDGE_NOVELTY_HIGH,
    )
    assert all(0 < share < 1 for share in shares)
    assert c.ECHO_JUDGE_BORDERLINE_LOW < c.ENSEMBLE_ECHO_THRESHOLD


@pytest.mark.parametrize("role", ["ACTOR", "REVIEWER", "OBSERVER"])
def test_each_role_may_speak(role: str) -> None:
    budget = NUMBERS[f"ROLE_MESSAGE_BUDGET_{role}"]
    assert isinstance(budget, int)
    assert budget > 0


def test_work_is_retried_and_given_up_in_this_order() -> None:
    assert gateway.LLM_MAX_RETRIES > 0
    assert 0 < commitment_policy.COMMITMENT_IN_PROGRESS_TIMEOUT_MS < commitment_policy.COMMITMENT_STALE_THRESHOLD_MS


def test_an_action_is_never_longer_than_a_discussion() -> None:
    assert validator.SPACE_ACTION_MAX_CHARS <= validator.SPACE_DISCUSSION_MAX_CHARS
    assert validator.SPACE_ACTION_MAX_SENTENCES <= validator.SPACE_DISCUSSION_MAX_SENTENCES


def test_a_project_may_take_more_than_small_talk() -> None:
    assert mechanics.DEFAULT_MAX_REPLIES_BEFORE_EXIT < mechanics.PROJECT_MAX_REPLIES_BEFORE_EXIT
    assert mechanics.DEFAULT_MAX_THREAD_DEPTH < mechanics.PROJECT_MAX_THREAD_DEPTH
    assert (
        mechanics.DEFAULT_SILENCE_THRESHOLD_MS
        < mechanics.DEFAULT_NO_RESPONSE_TIMEOUT_MS
        < mechanics.PROJECT_NO_RESPONSE_TIMEOUT_MS
    )


@given(st.floats(min_value=0.01, max_value=1000))
def test_a_faster_life_keeps_every_proportion(speed: float) -> None:
    normal, fast = Pace(), Pace().at(speed)
    for field in fields(Pace):
        assert getattr(fast, field.name) * speed == pytest.approx(getattr(normal, field.name))


def test_production_is_the_plain_pace() -> None:
    assert Pace().at(1) == Pace()


@pytest.mark.parametrize("speed", [0, -1])
def test_time_neither_stops_nor_runs_backwards(speed: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Pace().at(speed)
