"""Tests of a member's outgoing messages: they leave slowly and in order, each once, and none waits for ever."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.space.wire_fields import ECHO_WAIT_S, LIFETIME_S, MAX_REFUSALS, MAX_WAITING, SPACING_S, Chat, Outgoing
from common.text.strings import u16_len
from tests.exploration import examples


def _taken(outgoing: Outgoing, now: float) -> Chat:
    chat = outgoing.take(now)
    assert chat is not None
    return chat


def _states(outgoing: Outgoing, now: float) -> list[tuple[str, str]]:
    return [(one.chat.content, one.state) for one in outgoing.settle(now)]


def test_the_second_message_waits_for_the_echo_of_the_first_and_for_the_limiter() -> None:
    outgoing = Outgoing()
    for content in ("one", "two"):
        outgoing.add(content, 0)
    assert _taken(outgoing, 0).content == "one"
    assert outgoing.take(4) is None
    outgoing.echoed("one")
    assert _states(outgoing, 0.1) == [("one", "echoed")]
    assert outgoing.take(SPACING_S - 0.01) is None
    assert outgoing.next_at(speaking=True) == SPACING_S
    assert _taken(outgoing, SPACING_S).content == "two"


def test_a_message_without_an_echo_counts_as_said_after_five_seconds() -> None:
    outgoing = Outgoing()
    outgoing.add("one", 0)
    outgoing.take(0)
    assert outgoing.next_at(speaking=True) == ECHO_WAIT_S
    assert _states(outgoing, ECHO_WAIT_S - 0.1) == []
    assert _states(outgoing, ECHO_WAIT_S) == [("one", "unechoed")]
    assert len(outgoing) == 0


def test_what_the_limiter_threw_away_is_said_again_before_all_else_but_only_three_times() -> None:
    outgoing, now = Outgoing(), 0.0
    outgoing.add("one", now)
    outgoing.add("two", now)
    for _ in range(MAX_REFUSALS + 1):
        assert _taken(outgoing, now).content == "one"
        outgoing.refused(now)
        assert outgoing.take(now + SPACING_S - 0.1) is None
        now += SPACING_S
    (dropped,) = outgoing.settle(now)
    assert (dropped.chat.content, dropped.state) == ("one", "dropped")
    assert "too fast" in dropped.reason
    assert _taken(outgoing, now).content == "two"


def test_an_echo_that_comes_after_all_takes_the_message_off_the_queue() -> None:
    outgoing = Outgoing()
    outgoing.add("one", 0)
    outgoing.take(0)
    outgoing.refused(0.1)
    outgoing.echoed(" one ")
    assert _states(outgoing, 0.2) == [("one", "echoed")]
    assert outgoing.take(10) is None


def test_what_was_on_its_way_when_the_connection_broke_is_said_again() -> None:
    outgoing = Outgoing()
    outgoing.add("one", 0)
    outgoing.add("two", 0)
    outgoing.take(0)
    outgoing.cut_off()
    assert _states(outgoing, 20) == []
    assert _taken(outgoing, 20).content == "one"


def test_words_that_the_room_never_takes_are_given_up_at_once() -> None:
    outgoing = Outgoing()
    outgoing.add("one", 0)
    outgoing.take(0)
    outgoing.rejected("no")
    (dropped,) = outgoing.settle(0.1)
    assert (dropped.state, dropped.reason) == ("dropped", "no")


@pytest.mark.parametrize("speaking", [True, False], ids=["in the room", "cut off"])
def test_words_of_a_minute_ago_are_not_said_late(*, speaking: bool) -> None:
    outgoing = Outgoing()
    outgoing.add("one", 0)
    if not speaking:
        assert outgoing.next_at(speaking=False) == LIFETIME_S
    assert outgoing.take(LIFETIME_S) is None
    assert _states(outgoing, LIFETIME_S) == [("one", "dropped")]
    assert outgoing.next_at(speaking=speaking) is None


def test_nothing_is_due_while_nothing_waits_and_nothing_waits_after_the_end() -> None:
    outgoing = Outgoing()
    assert outgoing.next_at(speaking=True) is None
    for number in range(MAX_WAITING):
        assert not outgoing.is_full
        outgoing.add(str(number), 0)
    assert outgoing.is_full
    outgoing.take(0)
    outgoing.close("over")
    assert {one.reason for one in outgoing.settle(0)} == {"over"}
    assert len(outgoing) == 0


def test_a_message_is_cut_to_what_a_room_takes_in_its_own_units() -> None:
    assert u16_len(Outgoing().add("𝄞" * 60_000, 0).content) == 100_000


@settings(max_examples=examples(80))
@given(st.lists(st.sampled_from(["add", "take", "echo", "refuse", "cut", "second", "minute"]), max_size=60))
def test_whatever_happens_each_message_ends_once_and_none_is_sent_too_soon(happenings: list[str]) -> None:
    outgoing, now = Outgoing(), 0.0
    added: list[str] = []
    ended: list[str] = []
    sent_at: list[float] = []
    flying: Chat | None = None
    for happening in [*happenings, "minute", "minute"]:
        if happening == "add" and not outgoing.is_full:
            added.append(outgoing.add(f"words {len(added)}", now).id)
        elif happening == "take" and (chat := outgoing.take(now)):
            flying = chat
            sent_at.append(now)
        elif happening == "echo" and flying:
            outgoing.echoed(flying.content)
        elif happening == "refuse":
            outgoing.refused(now)
        elif happening == "cut":
            outgoing.cut_off()
        now += {"second": 1.0, "minute": LIFETIME_S}.get(happening, 0.0)
        ended += [one.chat.id for one in outgoing.settle(now)]
    assert sorted(ended) == sorted(added)
    assert all(later - earlier >= SPACING_S for earlier, later in itertools.pairwise(sent_at))
