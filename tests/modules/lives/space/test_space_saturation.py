"""Proves that a SOUL stops after enough messages since the host's newest one, and that the next one reopens the room.

On the corpus of echoes the words send nearly every repetition to the judge, and only the judge refuses a message.
"""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.lives.space.policy import (
    agent_messages,
    count_since_host,
    observer_threshold,
    role_budget,
    saturation_signal,
    saturation_threshold,
    warning_threshold,
)
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import Check, Counts, HistoryEntry, Mode, Role
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


def talk(speakers: str) -> list[HistoryEntry]:
    """Return a history with one entry per letter: `h` the host, `m` ourselves, anything else a peer."""
    return [
        HistoryEntry(
            str(place),
            {"h": "host", "m": "marvin"}.get(who, who),
            f"{who}{place}",
            NOW + timedelta(seconds=place),
            is_host=who == "h",
            is_me=who == "m",
        )
        for place, who in enumerate(speakers)
    ]


@pytest.mark.parametrize(
    ("speakers", "agents", "own"),
    [("", 0, 0), ("h", 0, 0), ("mmrh", 0, 0), ("mhrmr", 3, 1), ("rmrm", 4, 2), ("hmhmm", 2, 2)],
)
def test_messages_are_counted_back_to_the_host(speakers: str, agents: int, own: int) -> None:
    assert count_since_host(talk(speakers), "marvin") == Counts(agents, own)


@given(st.text(alphabet="hmrp", max_size=60))
def test_a_message_of_the_host_opens_the_room_for_everyone(speakers: str) -> None:
    counts = count_since_host(talk(speakers), "marvin")
    tail = speakers.rpartition("h")[2]
    assert counts == Counts(len(tail), tail.count("m"))
    assert count_since_host(talk(speakers + "h"), "marvin") == Counts(0, 0)


@pytest.mark.parametrize(
    ("connected", "mode", "threshold"),
    [(1, "action", 5), (3, "action", 7), (1, "discussion", 15), (6, "discussion", 20)],
)
def test_more_is_said_among_more_agents_and_most_in_a_discussion(connected: int, mode: Mode, threshold: int) -> None:
    assert saturation_threshold(connected, mode) == threshold


@pytest.mark.parametrize(("threshold", "warning"), [(7, 4), (8, 4), (15, 8), (1, 1)])
def test_the_warning_comes_half_way_rounded_up(threshold: int, warning: int) -> None:
    assert warning_threshold(threshold) == warning


@pytest.mark.parametrize(
    ("agents", "own", "signal"),
    [(7, 5, "saturated"), (9, 0, "saturated"), (6, 2, "spoken"), (2, 2, "spoken"), (4, 1, "only_new"), (3, 1, "none")],
)
def test_the_strongest_signal_is_told(agents: int, own: int, signal: str) -> None:
    assert saturation_signal(Counts(agents, own), 7) == signal


@pytest.mark.parametrize(("role", "action", "discussion"), [("actor", 4, 16), ("reviewer", 3, 12), ("observer", 2, 8)])
def test_each_role_has_its_budget_four_times_as_large_in_a_discussion(role: Role, action: int, discussion: int) -> None:
    assert (role_budget(role, "action"), role_budget(role, "discussion")) == (action, discussion)


def test_an_observer_hears_more_in_a_discussion_before_it_falls_silent() -> None:
    assert (observer_threshold("action"), observer_threshold("discussion")) == (3, 8)


def test_an_echo_is_sought_among_what_agents_said_lately_our_own_words_included() -> None:
    said = agent_messages(talk("r" * 10 + "h" + "mr" * 9 + "h"))
    assert len(said) == 18
    assert said[0] == "m11"
    assert said[-1] == "r28"
