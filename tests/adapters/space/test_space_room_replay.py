"""What a newcomer is told of the past, and how much of it."""

from __future__ import annotations

import json

import pytest

from adapters.space.room_allowance import Replay, dynamic_history_limit
from adapters.space.types import EntryType, LogEntry

AT = "2026-01-05T12:00:00.000Z"


def entries(kind: EntryType, count: int, content: str = "") -> list[LogEntry]:
    return [LogEntry(AT, "ada", "ada-1", kind, content or f"{kind} {number}") for number in range(count)]


def replayed(past: list[LogEntry], limit: int) -> list[dict[str, str]]:
    return [json.loads(text) for text in Replay(past).select(limit)]


def test_a_newcomer_hears_words_and_results_before_the_noise_of_states() -> None:
    told = replayed([*entries("chat", 100), *entries("action_result", 20), *entries("state", 900)], 200)
    assert [entry["content"] for entry in told[:2]] == ["chat 0", "chat 1"]
    assert len(told) == 200
    assert sum(entry["type"] == "state" for entry in told) == 80
    assert told[-1]["content"] == "state 899"


def test_the_newest_entry_is_always_replayed() -> None:
    told = replayed([*entries("chat", 500), *entries("join", 1)], 200)
    assert [entry["content"] for entry in told[-2:]] == ["chat 499", "join 0"]
    assert len(told) == 200


def test_a_replay_stays_below_a_mebibyte_and_drops_the_oldest() -> None:
    texts = Replay([*entries("chat", 20, "é" * 50_000), *entries("chat", 3)]).select(200)
    assert sum(len(text.encode()) + 1 for text in texts) < 1_048_576 - 60
    assert json.loads(texts[-1])["content"] == "chat 2"
    assert 10 <= len(texts) <= 13


@pytest.mark.parametrize(
    ("agents", "limit"),
    [(0, 200), (1, 200), (2, 200), (3, 250), (6, 400), (10, 600), (17, 950), (18, 1000), (99, 1000)],
)
def test_how_much_is_replayed_grows_with_the_room(agents: int, limit: int) -> None:
    assert dynamic_history_limit(agents) == limit
