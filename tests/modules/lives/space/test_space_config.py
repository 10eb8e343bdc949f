"""The pace file: read anew each time, kept through edits, accidents and upgrades; the model may change only so much."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.clock import FakeClock
from modules.lives.space.config import LIMITS_MS, SpaceConfig, SpaceConfigFile, adjusted, config_from
from tests.exploration import examples


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".memory" / "space-config.json"


@pytest.fixture
def file(path: Path) -> SpaceConfigFile:
    return SpaceConfigFile(path, FakeClock())


def written(path: Path, **values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def test_without_a_file_there_are_the_defaults_and_ensure_lays_them_out(file: SpaceConfigFile, path: Path) -> None:
    assert file.load_space_config() == SpaceConfig()
    file.ensure()
    told = json.loads(path.read_text(encoding="utf-8"))
    assert told["checkIntervalMs"] == 5000
    assert told["cooldownMaxMs"] == 20_000
    assert told["lastAdjustedAt"] is None
    assert "_memoryVersion" in told


def test_an_edit_counts_at_the_next_look_and_ensure_leaves_it(file: SpaceConfigFile, path: Path) -> None:
    file.ensure()
    written(path, cooldownMinMs=30_000, behaviorNotes="Listen first.")
    file.ensure()
    config = file.load_space_config()
    assert (config.cooldown_min_ms, config.cooldown_max_ms) == (30_000, 30_000)
    assert config.behavior_notes == "Listen first."


def test_half_an_edit_changes_nothing_and_is_told(file: SpaceConfigFile, path: Path) -> None:
    written(path, reflectionEveryN=9)
    assert file.load_space_config().reflection_every_n == 9
    path.write_text('{"reflectionEveryN": 1', encoding="utf-8")
    assert file.load_space_config().reflection_every_n == 9
    assert "space-config.json" in file.notice
    assert path.read_text(encoding="utf-8") == '{"reflectionEveryN": 1'


def test_an_adjustment_keeps_beside_what_could_not_be_read(file: SpaceConfigFile, path: Path) -> None:
    written(path)
    path.write_text("{", encoding="utf-8")
    file.update_space_config({"cooldownMinMs": 5000}, "calmer")
    assert [one.read_text() for one in path.parent.glob("*.corrupt-*")] == ["{"]
    assert file.load_space_config().cooldown_min_ms == 5000
    (aside,) = path.parent.glob("*.corrupt-*")
    file.load_space_config()
    assert aside.name in file.notice


@pytest.mark.parametrize("value", [True, None, "soon", [], "nan", float("inf")])
def test_what_is_no_number_changes_nothing(value: object) -> None:
    assert config_from({"cooldownMinMs": value}) == SpaceConfig()


def test_the_model_changes_its_pace_and_nothing_else(file: SpaceConfigFile) -> None:
    after = file.update_space_config(
        {"cooldownMinMs": "20000", "lastAdjustedReason": "forged", "apiKey": "x", "behaviorNotes": "n" * 5000},
        "I speak too much",
    )
    assert after.cooldown_min_ms == 20_000
    assert after.last_adjusted_at == "2026-01-05T12:00:00.000Z"
    assert after.last_adjusted_reason == "I speak too much"
    assert len(after.behavior_notes) == 1000
    assert SpaceConfigFile(file._path, FakeClock()).load_space_config() == after


async def test_the_model_changes_its_pace_once_in_ten_minutes(path: Path) -> None:
    clock = FakeClock()
    file = SpaceConfigFile(path, clock)
    file.update_space_config({"cooldownMinMs": 11_000}, "first")
    await clock.advance(599)
    assert file.update_space_config({"cooldownMinMs": 12_000}, "second").cooldown_min_ms == 11_000
    await clock.advance(1)
    assert file.update_space_config({"cooldownMinMs": 12_000}, "third").last_adjusted_reason == "third"


def test_a_request_that_changes_nothing_writes_nothing(file: SpaceConfigFile, path: Path) -> None:
    file.update_space_config({"cooldownMinMs": 10_000, "unknown": 1}, "no reason")
    assert not path.exists()


@settings(max_examples=examples(80))
@given(
    st.dictionaries(
        st.sampled_from([*LIMITS_MS, "behaviorNotes", "lastAdjustedAt", "x"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())),
    )
)
def test_whatever_is_requested_the_pace_stays_within_its_limits(requests: dict[str, Any]) -> None:
    config = adjusted(SpaceConfig(), requests, "why", "2026-01-05T12:00:00.000Z")
    for name, value in (
        ("checkIntervalMs", config.check_interval_ms),
        ("cooldownMinMs", config.cooldown_min_ms),
        ("cooldownMaxMs", config.cooldown_max_ms),
        ("replyDelayMaxMs", config.reply_delay_max_ms),
        ("reflectionEveryN", config.reflection_every_n),
    ):
        least, most = LIMITS_MS[name]
        assert isinstance(value, int)
        assert least <= value <= most
    assert config.cooldown_max_ms >= config.cooldown_min_ms
    assert config.last_adjusted_reason in {"", "why"}
