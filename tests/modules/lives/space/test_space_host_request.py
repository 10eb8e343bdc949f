"""Proves that a host request grows urgent while nobody takes it, rests while somebody does, and counts once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text.host_intent import HostIntent
from modules.lives.space.host_request import (
    Looked,
    advance_host_request,
    committed,
    count_attempt,
    count_rejection,
    escalation_level,
    follow_up,
    is_claimed,
    is_done_chat,
    is_open,
    next_request,
    reopen,
)
from modules.lives.space.types import HistoryEntry, HostRequest, OwnWork, PeerEvent

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOTHING = OwnWork()
S = timedelta(seconds=1)
EventKind = Literal["claim", "success", "failure", "done_chat"]


def host(
    content: str = "Open an issue for the login", *, s: float = 0, intent: HostIntent = "action_request"
) -> HistoryEntry:
    return HistoryEntry(f"{content}@{s}", "host", content, NOW + s * S, is_host=True, intent=intent)


def replayed(*, s: float) -> HistoryEntry:
    return replace(host(s=s), replayed=True)


def peer_event(kind: EventKind, s: float, action: str = "create_issue", name: str = "rebecca") -> PeerEvent:
    return PeerEvent(kind, name, NOW + s * S, action)


ASKED = advance_host_request(HostRequest(), host(), host(), NOW, NOTHING)


def look(
    state: HostRequest,
    s: float,
    *peer_events: PeerEvent,
    latest: HistoryEntry | None = None,
    own: OwnWork = NOTHING,
    frozen: bool = False,
    owner: str = "marvin",
) -> HostRequest:
    return advance_host_request(
        state, host(), latest or host(), NOW + s * S, own, peer_events, owner=owner, frozen=frozen
    )


def test_a_new_request_is_open_and_noted_at_once() -> None:
    assert is_open(ASKED)
    assert (ASKED.content, ASKED.requested_at, ASKED.cycles) == ("Open an issue for the login", NOW, 1)
    assert escalation_level(ASKED) == "info"


def test_a_room_in_which_nothing_was_asked_stays_quiet() -> None:
    assert advance_host_request(HostRequest(), None, host(intent="discussion"), NOW, NOTHING) == HostRequest()
    assert escalation_level(HostRequest()) == "none"
    assert follow_up(HostRequest(), host(intent="follow_up"), NOTHING) == "none"


def test_another_request_takes_the_place_of_the_first() -> None:
    old = replace(ASKED, cycles=7, owner_rejections=2, forced=1, reopened=2, fulfilled=True)
    new = advance_host_request(old, host("Open a plan", s=60), None, NOW + 60 * S, NOTHING)
    assert new == HostRequest(
        "Open a plan", "Open a plan@60", NOW + 60 * S, fulfilled=False, cycles=1, last_cycle_at=NOW + 60 * S
    )


def test_urgency_grows_once_in_five_seconds_with_or_without_words() -> None:
    state, cycles = ASKED, []
    for second in range(16):
        state = look(state, second)
        cycles.append(state.cycles)
    assert cycles == [1] * 5 + [2] * 5 + [3] * 5 + [4]
    assert escalation_level(state) == "critical"


@given(st.lists(st.tuples(st.integers(0, 4000), st.booleans()), max_size=60))
def test_urgency_never_grows_faster_than_once_in_five_seconds(steps: list[tuple[int, bool]]) -> None:
    state, at = ASKED, 0
    for wait_ms, frozen in steps:
        at += wait_ms
        before, state = state, look(state, at / 1000, frozen=frozen)
        assert before.cycles <= state.cycles <= 1 + at // 5000
        assert not (frozen and state.cycles > before.cycles)


def test_time_stands_still_while_it_is_frozen() -> None:
    assert look(ASKED, 60, frozen=True).cycles == 1


@pytest.mark.parametrize("own", [OwnWork(live=1), OwnWork(completed=1), OwnWork(live=1, failed_last=True)])
def test_our_own_commitment_for_it_fulfils_it(own: OwnWork) -> None:
    assert look(ASKED, 1, own=own).fulfilled


@pytest.mark.parametrize(
    ("peer_events", "fulfilled", "paused"),
    [
        ((peer_event("claim", 10),), False, True),
        ((peer_event("claim", -1),), False, False),
        ((peer_event("claim", 10), peer_event("failure", 12)), False, False),
        ((peer_event("claim", 10), peer_event("success", 15)), True, False),
        ((peer_event("done_chat", 15, "", "marvin"),), True, False),
        ((peer_event("claim", 10), peer_event("done_chat", 15, "")), True, False),
        ((peer_event("done_chat", 15, ""),), False, False),
        ((peer_event("claim", 10, "comment_issue"), peer_event("done_chat", 15, "")), False, False),
        ((peer_event("claim", 10, "comment_issue"),), False, False),
        ((peer_event("success", 10, "comment_issue"),), False, False),
        ((peer_event("success", 10, "comment_issue", "marvin"),), True, False),
    ],
    ids=[
        "claimed", "claimed before", "failed after", "claimed and delivered",
        "the owner announced", "claimed and announced", "announced something", "announced a comment",
        "only a comment", "commented", "the owner commented",
    ],
)  # fmt: skip
def test_what_peers_do_counts_from_the_moment_it_was_asked(
    peer_events: tuple[PeerEvent, ...], *, fulfilled: bool, paused: bool
) -> None:
    state = look(ASKED, 20, *peer_events)
    assert state.fulfilled is fulfilled
    assert is_claimed(state, NOW + 20 * S) is paused
    assert state.cycles == (1 if fulfilled or paused else 2)
    assert look(state, 20, *reversed(peer_events)) == state


def test_a_claim_rests_the_request_for_a_minute_and_a_renewal_for_another() -> None:
    state = look(ASKED, 10, peer_event("claim", 10))
    assert escalation_level(state, NOW + 69 * S) == "none"
    assert escalation_level(state, NOW + 70 * S) == "info"
    assert look(state, 69).cycles == 1
    assert look(state, 70).cycles == 2
    renewed = look(state, 40, peer_event("claim", 40))
    assert look(renewed, 99).cycles == 1
    assert look(renewed, 100).cycles == 2


def test_a_question_after_it_makes_an_open_request_critical_once() -> None:
    asks = host("did you do it?", s=1, intent="follow_up")
    urged = look(ASKED, 1, latest=asks)
    assert (urged.cycles, escalation_level(urged)) == (2, "critical")
    assert look(urged, 2, latest=asks).cycles == 2
    assert look(urged, 6, latest=asks).cycles == 3
    assert look(replace(ASKED, cycles=5), 1, latest=asks).cycles == 5


def test_a_question_from_before_we_came_urges_nobody() -> None:
    asks = replace(host("did you do it?", s=1, intent="follow_up"), replayed=True)
    assert look(ASKED, 1, latest=asks).cycles == 1


def test_the_same_words_once_more_press_an_open_request_and_make_no_second_of_one_that_is_kept() -> None:
    again = host(s=30)
    pressed = advance_host_request(ASKED, again, again, NOW + 2 * S, NOTHING)
    assert (pressed.cycles, pressed.entry_id, pressed.requested_at) == (2, again.id, NOW)
    kept = advance_host_request(committed(ASKED), again, again, NOW + 30 * S, OwnWork(completed=1))
    assert kept.fulfilled


def test_the_same_words_after_we_gave_up_are_a_new_request() -> None:
    lost = replace(ASKED, given_up=True, reopened=2)
    again = advance_host_request(lost, host(s=300), host(s=300), NOW + 300 * S, NOTHING)
    assert is_open(again)
    assert again.reopened == 0


@pytest.mark.parametrize(
    ("state", "own", "answer"),
    [
        (ASKED, NOTHING, "urge"),
        (committed(ASKED), OwnWork(completed=1, live=1, links=("https://x",)), "link"),
        (committed(ASKED), OwnWork(live=1), "wake_commitments"),
        (committed(ASKED), OwnWork(live=1, failed_last=True), "wake_commitments"),
        (committed(ASKED), NOTHING, "none"),
    ],
    ids=["open", "made", "queued", "waiting for its next try", "a peer's"],
)
def test_whoever_asks_after_a_request_is_answered_by_what_became_of_it(
    state: HostRequest, own: OwnWork, answer: str
) -> None:
    assert follow_up(state, host("any news?", intent="follow_up"), own) == answer
    assert follow_up(state, host("nice", intent="discussion"), own) == "none"
    assert follow_up(state, None, own) == "none"


def test_a_question_after_a_commitment_that_failed_opens_it_again_but_not_without_end() -> None:
    asks = host("did you do it?", s=90, intent="follow_up")
    failed = OwnWork(failed_last=True)
    state, opened = committed(ASKED), 0
    for second in range(100, 200, 10):
        after = look(state, second, latest=asks, own=failed)
        opened += is_open(after)
        state = committed(after) if is_open(after) else after
    assert opened == 2
    assert state.given_up
    kept = look(committed(ASKED), 100, latest=asks, own=OwnWork(failed_last=True, live=1))
    assert kept.fulfilled


def test_a_commitment_given_up_opens_the_request_twice_and_then_never() -> None:
    once = reopen(committed(ASKED))
    twice = reopen(committed(once))
    assert is_open(once)
    assert is_open(twice)
    lost = reopen(committed(twice))
    assert lost.given_up
    assert not is_open(lost)
    assert reopen(lost) == lost
    assert look(lost, 600) == lost
    assert escalation_level(lost) == "none"


@pytest.mark.parametrize(
    ("age_s", "peer_events", "opened"),
    [
        (599, (), True),
        (600, (), False),
        (60, (peer_event("success", -30, "", "marvin"),), False),
        (60, (peer_event("claim", -30),), False),
        (60, (peer_event("done_chat", -30),), False),
        (60, (peer_event("failure", -30),), True),
        (60, (peer_event("success", -90),), True),
    ],
    ids=["young", "old", "delivered", "claimed", "announced", "failed", "delivered something before"],
)
def test_a_replayed_request_is_open_only_if_it_is_young_and_nobody_took_it(
    age_s: int, peer_events: tuple[PeerEvent, ...], *, opened: bool
) -> None:
    entry = replayed(s=-age_s)
    state = advance_host_request(HostRequest(), entry, entry, NOW, NOTHING, peer_events)
    assert is_open(state) is opened
    again = advance_host_request(state, entry, entry, NOW + 30 * S, NOTHING, peer_events)
    assert is_open(again) is opened


def test_tries_are_counted_only_while_the_request_is_open() -> None:
    tried = count_rejection(count_attempt(ASKED))
    assert (tried.attempts, tried.owner_rejections) == (1, 1)
    assert count_attempt(committed(ASKED)).attempts == 0
    assert count_rejection(committed(ASKED)).owner_rejections == 0


def test_a_request_that_is_made_again_may_lack_its_repository_again() -> None:
    asked = next_request(ASKED, "repo_asked")
    again = host(s=30)
    assert not next_request(asked, Looked(again, again, NOW + 30 * S, NOTHING)).repo_asked


@pytest.mark.parametrize(
    ("content", "done"),
    [
        ("Done — release checklist: https://x", True),
        (" done - it is there", True),
        ("Done – there", True),  # noqa: RUF001
        ("Done.", False),
        ("Done-ish", False),
    ],
)
def test_an_announcement_is_known_by_its_first_words(content: str, *, done: bool) -> None:
    assert is_done_chat(content) is done


PEER_EVENTS = st.lists(
    st.builds(
        PeerEvent,
        st.sampled_from(["claim", "success", "failure", "done_chat"]),
        st.sampled_from(["rebecca", "peterben"]),
        st.integers(-30, 300).map(lambda s: NOW + s * S),
        st.sampled_from(["create_issue", "comment_issue", "run_task", ""]),
    ),
    max_size=6,
)
OWN = st.builds(OwnWork, st.integers(0, 2), st.integers(0, 2), st.booleans())
INTENTS: st.SearchStrategy[HostIntent] = st.sampled_from(["action_request", "discussion", "follow_up"])


@given(st.lists(st.tuples(st.integers(0, 120), PEER_EVENTS, OWN, INTENTS, st.booleans()), max_size=12))
def test_a_second_look_at_the_same_moment_changes_nothing(
    looks: list[tuple[int, list[PeerEvent], OwnWork, HostIntent, bool]],
) -> None:
    state, at = ASKED, 0
    for wait, peer_events, own, intent, gives_up in looks:
        at += wait
        latest = host("what became of it?", s=at, intent=intent)
        before = reopen(state) if gives_up else state
        state = look(before, at, *peer_events, latest=latest, own=own)
        assert state.reopened <= 2
        if state.reopened == before.reopened and (state.fulfilled or not own.failed_last):
            assert look(state, at, *peer_events, latest=latest, own=replace(own, failed_last=False)) == state
