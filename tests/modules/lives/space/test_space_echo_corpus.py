"""On the corpus of echoes, words lead the judge to nearly every repetition, and only its word refuses a message."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from modules.lives.space.policy import role_budget
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import Check, Counts, HistoryEntry
from modules.lives.space.validator import MessageValidator, validate_space_message
from tests.echo_corpus import Pair, Stratum, corpus
from tests.modules.lives.space.test_space_validator import Judge, NothingSaid

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ECHOES: tuple[Check, ...] = ("semantic_echo", "echo_judge")
PAIRS = corpus()


def room(pair: Pair) -> RoomSnapshot:
    asked = HistoryEntry("h", "host", pair.host, NOW, is_host=True)
    said = (asked, *(HistoryEntry(f"a{at}", "rebecca", text, NOW) for at, text in enumerate(pair.peers)))
    return RoomSnapshot(
        now=NOW,
        me="marvin",
        history=said,
        mode="discussion",
        role="actor",
        counts=Counts(len(pair.peers), 0),
        saturation=len(said),
        budget=role_budget("actor", "discussion"),
    )


async def is_refused(pair: Pair, *, confirms: bool) -> bool:
    outcome = await MessageValidator(Judge(confirms=confirms), NothingSaid()).validate(pair.candidate, (), room(pair))
    return outcome.stop is not None and outcome.stop.check in ECHOES


@pytest.mark.parametrize(("stratum", "least"), [("verbatim", 1.0), ("reordered", 1.0), ("synonym", 0.94)])
async def test_a_repetition_is_refused_where_the_judge_finds_it(stratum: Stratum, least: float) -> None:
    refused = [await is_refused(pair, confirms=True) for pair in PAIRS if pair.stratum == stratum]
    assert sum(refused) >= least * len(refused)


async def test_what_the_judge_does_not_confirm_is_said() -> None:
    assert not [pair.id for pair in PAIRS if not pair.is_echo and await is_refused(pair, confirms=False)]


def test_words_alone_suspect_hardly_anybody_who_says_something_new() -> None:
    fresh = [pair for pair in PAIRS if pair.split == "held-out" and not pair.is_echo]
    suspected = [validate_space_message(pair.candidate, (), room(pair)).suspected for pair in fresh]
    assert sum("semantic_echo" in checks for checks in suspected) <= 0.02 * len(fresh)
