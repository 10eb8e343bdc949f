"""Proves how what calls took is added up, and what the log of it says."""

import json
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.runtime.llm.dialect import ChatResult, Usage
from modules.runtime.llm.gateway import UsageLog


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (Usage(), Usage(3, 4), Usage(3, 4)),
        (Usage(1, 2, 0.5, "normal"), Usage(3, 4, 0.25, "cheaper"), Usage(4, 6, 0.75, "cheaper")),
        (Usage(1, 2, 0.5, "normal"), Usage(), Usage(1, 2, 0.5, "normal")),
        (Usage(), Usage(1, 2, 0.0), Usage(1, 2, 0.0)),
        (Usage(9, 1, cached_tokens=8), Usage(9, 1, cached_tokens=4), Usage(18, 2, cached_tokens=12)),
    ],
)
def test_tokens_and_known_dollars_are_added_and_the_later_step_stays(first: Usage, second: Usage, both: Usage) -> None:
    assert first + second == both


def test_the_model_that_was_asked_last_is_named() -> None:
    assert (Usage(model="large") + Usage(model="small") + Usage()).model == "small"


@pytest.mark.parametrize("usd", [0.0125, None])
def test_a_line_says_what_the_call_cost_if_that_is_known(tmp_path: Path, usd: float | None) -> None:
    result = ChatResult("hi", usage=Usage(10, 5, usd, cached_tokens=4), model="large", attempts=2, seconds=1.5)
    UsageLog(tmp_path / "usage.jsonl", FakeClock()).note(result, "reply")
    line = json.loads((tmp_path / "usage.jsonl").read_text())
    assert line == {
        "ts": "2026-01-05T12:00:00.000Z",
        "purpose": "reply",
        "model": "large",
        "input": 10,
        "cached": 4,
        "output": 5,
        "usd": usd,
        "attempts": 2,
        "ms": 1500,
    }
