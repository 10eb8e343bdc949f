"""What a member knows of its room: who is there, what they told, who works at what, and what came in."""

from __future__ import annotations

import random

import pytest

from adapters.space.member import EVENTS_KEPT, MESSAGES_KEPT, Inbox
from adapters.space.member_cycle import MemberName
from adapters.space.member_view import CLAIM_TTL_S, SOMEBODY, TYPING_S, MemberClaims, RoomView
from adapters.space.types import (
    ActionDone,
    Claimed,
    History,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    LogEntry,
    Presence,
    PresenceList,
    Reflected,
    Said,
    SpaceEvent,
    Typing,
    WorkspaceProgress,
)
from common.clock import FakeClock

AT = "2026-01-05T12:00:00.000Z"
DAY_S = 86_400.0


def _present(name: str, agent_id: str = "", identity: IdentitySummary | None = None) -> Presence:
    return Presence(name, agent_id or f"{name}-1", "1.0.0", AT, AT, identity)


def _view(*events: SpaceEvent, clock: FakeClock | None = None) -> RoomView:
    view = RoomView(MemberName("ada", random.Random(1)), clock or FakeClock())
    for event in (PresenceList((_present("ada"), _present("bob"), _present("cy"))), *events):
        view.apply(event)
    return view


def test_peers_are_all_but_ourselves_in_the_order_of_the_room() -> None:
    view = _view(Joined("dee", "dee-1", "2.0.0", ("social",)), Left("bob", "bob-1", AT))
    assert list(view.peers()) == ["cy", "dee"]
    assert view.peers()["dee"].capabilities == ("social",)


async def test_typing_ends_by_speaking_by_leaving_or_after_ten_seconds() -> None:
    clock = FakeClock()
    typing = [Typing(name, f"{name}-1", AT) for name in ("bob", "cy", "ada")]
    view = _view(*typing, clock=clock)
    await clock.advance(TYPING_S - 0.1)
    assert view.typing() == ["bob", "cy"]
    view.apply(Said("bob", "bob-1", "hello", AT))
    assert view.typing() == ["cy"]
    await clock.advance(0.1)
    assert view.typing() == []


def test_what_peers_tell_of_themselves_is_kept_until_they_leave() -> None:
    who = IdentitySummary(voice="calm")
    told: list[SpaceEvent] = [
        Identified("bob", "bob-1", who, AT),
        Reflected("bob", "bob-1", "I rush", AT),
        Claimed("bob", "bob-1", "create_issue", "o/r", AT),
        Identified("ada", "ada-1", IdentitySummary(voice="mine"), AT),
    ]
    view = _view(*told)
    assert view.identities() == {"bob": who}
    assert view.reflections()["bob"].summary == "I rush"
    assert view.claims.holder("create_issue", "o/r") == "bob"
    view.apply(Left("bob", "bob-1", AT))
    assert not view.identities()
    assert not view.reflections()
    assert view.claims.holder("create_issue", "o/r") is None


def test_the_leave_of_an_earlier_life_does_not_take_away_the_present_one() -> None:
    view = _view(Joined("bob", "bob-2", "1.0.0"), Left("bob", "bob-1", AT))
    assert "bob" in view.peers()


def test_the_list_of_who_is_present_brings_identities_and_forgets_whom_it_lacks() -> None:
    view = _view(Identified("cy", "cy-1", IdentitySummary(voice="quick"), AT))
    view.apply(PresenceList((_present("bob", identity=IdentitySummary(voice="slow")),)))
    assert view.identities() == {"bob": IdentitySummary(voice="slow")}
    assert list(view.peers()) == ["bob"]


def test_reflections_in_the_record_count_for_those_who_are_present() -> None:
    entries = tuple(LogEntry(AT, name, f"{name}-1", "reflection", f"of {name}") for name in ("bob", "gone", "ada"))
    view = _view(History(entries))
    assert {name: told.summary for name, told in view.reflections().items()} == {"bob": "of bob"}


async def test_how_far_a_plan_has_come_is_known_for_a_day_by_its_latest_reporter() -> None:
    first = WorkspaceProgress("bob", "bob-1", "site", 1, 5, 1, 0, 1, AT)
    then = WorkspaceProgress("cy", "cy-1", "site", 1, 5, 3, 0, 0, AT)
    clock = FakeClock()
    view = _view(first, then, WorkspaceProgress("ada", "ada-1", "own", 1, 1, 1, 0, 0, AT), clock=clock)
    await clock.advance(DAY_S - 1)
    assert view.workspace_states() == {"site": then}
    await clock.advance(1)
    assert view.workspace_states() == {}


def _claims(clock: FakeClock | None = None) -> MemberClaims:
    return MemberClaims(MemberName("ada", random.Random(1)), clock or FakeClock())


async def test_a_peers_claim_holds_for_a_minute_from_when_it_was_last_told() -> None:
    clock = FakeClock()
    claims = _claims(clock)
    claims.claimed(Claimed("bob", "bob-1", "create_issue", "o/r", AT))
    await clock.advance(CLAIM_TTL_S - 1)
    assert claims.holder("create_issue", "o/r") == "bob"
    claims.claimed(Claimed("bob", "bob-1", "create_issue", "o/r", AT))
    await clock.advance(CLAIM_TTL_S - 1)
    assert [claim.name for claim in claims.live()] == ["bob"]
    await clock.advance(1)
    assert claims.holder("create_issue", "o/r") is None
    assert claims.live() == ()


@pytest.mark.parametrize("name", ["bob", "ada"])
def test_a_claim_ends_with_its_result_whoever_reports_it(name: str) -> None:
    claims = _claims()
    claims.claimed(Claimed("bob", "bob-1", "create_issue", "o/r", AT))
    claims.done(ActionDone(name, f"{name}-1", "create_issue", "o/r", success=True, timestamp=AT))
    assert claims.holder("create_issue", "o/r") is None


def test_our_own_claim_is_nobody_elses() -> None:
    claims = _claims()
    claims.asked("create_issue", "o/r")
    claims.claimed(Claimed("ada", "ada-1", "create_issue", "o/r", AT))
    assert claims.holder("create_issue", "o/r") is None
    assert claims.conflict("Claim conflict: bob was first on o/r", ["bob"], AT) is None
    assert claims.lost == set()


def test_a_conflict_is_matched_to_the_claim_that_its_words_name_and_shows_who_was_first() -> None:
    claims = _claims()
    claims.asked("create_issue", "o/r")
    claims.asked("create_issue", "o/other")
    message = 'Claim conflict: bob already claimed "o/other" before ada; bob was first'
    assert claims.conflict(message, ["bob", "bo"], AT) == ("create_issue", "o/other")
    assert claims.lost == {("create_issue", "o/other")}
    assert claims.holder("create_issue", "o/other") == "bob"
    assert claims.holder("create_issue", "o/r") is None


def test_a_conflict_without_names_concerns_the_oldest_claim_that_waits() -> None:
    claims = _claims()
    claims.asked("create_issue", "o/r")
    claims.asked("create_plan", "o/r2")
    assert claims.conflict("Claim conflict", [], AT) == ("create_issue", "o/r")
    assert claims.holder("create_issue", "o/r") == SOMEBODY


def test_claiming_again_asks_the_room_again() -> None:
    claims = _claims()
    claims.asked("create_issue", "o/r")
    claims.conflict("Claim conflict", [], AT)
    claims.asked("create_issue", "o/r")
    assert claims.lost == set()


async def test_a_conflict_long_after_our_claims_concerns_none_of_them() -> None:
    clock = FakeClock()
    claims = _claims(clock)
    claims.asked("create_issue", "o/r")
    await clock.advance(60)
    assert claims.conflict("Claim conflict on o/r", [], AT) is None


def _chat(name: str, content: str, at: str = AT) -> LogEntry:
    return LogEntry(at, name, f"{name}-1", "chat", content)


def test_the_record_is_told_once_with_our_own_words_and_without_what_was_heard() -> None:
    inbox = Inbox(MemberName("ada", random.Random(1)))
    inbox.note(Said("bob", "bob-1", "live", AT))
    assert [said.content for said in inbox.take_messages()] == ["live"]
    record = History(
        (_chat("bob", "old"), LogEntry(AT, "bob", "bob-1", "join", ""), _chat("bob", "live"), _chat("ada", "mine"))
    )
    inbox.replay(record)
    inbox.replay(record)
    assert inbox.take_events()[1:] == [record]
    told = inbox.take_messages()
    assert [(said.name, said.content, said.replayed) for said in told] == [("bob", "old", True), ("ada", "mine", True)]
    assert told[0].id == "bob-1"


def test_own_echoes_are_events_and_no_messages() -> None:
    inbox = Inbox(MemberName("ada", random.Random(1)))
    inbox.note(Said("ada", "ada-1", "hello", AT))
    assert inbox.take_messages() == []
    assert inbox.take_events() == [Said("ada", "ada-1", "hello", AT)]
    assert inbox.take_events() == []


def test_a_room_is_fresh_when_its_record_holds_nothing_that_we_knew() -> None:
    inbox = Inbox(MemberName("ada", random.Random(1)))
    assert inbox.fresh_room
    inbox.replay(History((_chat("bob", "old"),)))
    inbox.replay(History((_chat("bob", "old"), _chat("bob", "new"))))
    assert not inbox.fresh_room
    inbox.replay(History((_chat("zoe", "elsewhere"),)))
    assert inbox.fresh_room


def test_who_does_not_listen_for_long_misses_the_oldest() -> None:
    inbox = Inbox(MemberName("ada", random.Random(1)))
    for number in range(EVENTS_KEPT + 10):
        inbox.note(Said("bob", "bob-1", str(number), AT))
    messages, events = inbox.take_messages(), inbox.take_events()
    assert (len(messages), messages[-1].content) == (MESSAGES_KEPT, str(EVENTS_KEPT + 9))
    assert len(events) == EVENTS_KEPT


def test_a_room_that_invents_thousands_of_members_costs_a_bounded_memory() -> None:
    view = _view()
    for number in range(3_000):
        name = f"agent{number}"
        view.apply(Joined(name, name, "1"))
        view.apply(Identified(name, name, IdentitySummary(), AT))
        view.apply(Claimed(name, name, "do", name, AT))
        view.apply(WorkspaceProgress(name, name, name, 1, 1, 1, 0, 0, AT))
    assert len(view.peers()) <= 1_000
    assert len(view.identities()) <= 1_000
    assert len(view.claims.live()) <= 1_000
    assert len(view.workspace_states()) <= 1_000
