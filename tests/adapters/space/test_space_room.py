"""The rules of a room, step by step, with a clock that only the test moves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.space.types import (
    Identified,
    Joined,
    Left,
    LogEntry,
    PresenceList,
    Said,
    ShuttingDown,
    Typing,
)
from tests.adapters.space.room_house import Hall

AT = "2026-01-05T12:00:00.000Z"
CLAIM = {"type": "claim", "action": "create_issue", "target": "o/r"}
RESULT = {"type": "action_result", "action": "create_issue", "target": "o/r", "success": True}


def chat(content: str = "hi") -> dict[str, Any]:
    return {"type": "chat", "content": content}


def test_a_joiner_is_told_everything_in_the_order_of_the_wire() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.send(ada, {"type": "workspace_state", "workspace": "w", "totalTasks": 3, "completedTasks": 1})
    hall.send(ada, CLAIM)
    hall.send(ada, {"type": "state", "state": "acting", "detail": "on it"})
    hall.forget()
    bob = hall.join("bob", capabilities=["social"])
    expected = ["join", "presence", "history_response", "workspace_state", "claim", "state", "presence"]
    assert hall.types(bob) == expected
    assert hall.types(ada) == ["join", "presence"]
    assert [type(event) for event in hall.seen] == [Joined, PresenceList]
    entries = hall.heard(bob)[2]["entries"]
    assert [entry["type"] for entry in entries] == ["join", "workspace_state", "claim", "state", "join"]
    assert entries[-1] == {"timestamp": AT, "agentName": "bob", "agentId": "bob-1", "type": "join", "content": ""}
    assert [agent["name"] for agent in hall.heard(bob)[1]["agents"]] == ["ada", "bob"]


def test_a_presence_row_has_its_keys_in_order() -> None:
    hall = Hall()
    ada = hall.join("ada", capabilities=["social"])
    hall.send(ada, {"type": "identity", "summary": {"voice": "dry", "own": [None]}})
    row = (
        f'{{"name":"ada","id":"ada-1","version":"1","joinedAt":"{AT}","lastSeen":"{AT}",'
        '"identity":{"voice":"dry","own":[null]},"capabilities":["social"]}'
    )
    assert hall.texts[ada][-1] == f'{{"type":"presence","agents":[{row}]}}'


def test_a_second_join_is_ignored_and_a_second_invalid_one_closes() -> None:
    hall = Hall()
    ada = hall.join("ada")
    assert hall.send(ada, {"type": "join", "name": "eve", "id": "e", "version": "1"}) == []
    (error,) = hall.send(ada, {"type": "join", "name": "", "id": "e", "version": "1"})
    assert error["message"].startswith("Invalid join")
    assert hall.ended[ada] == (4003, "Invalid join message")
    assert hall.room.agents == ()


@pytest.mark.parametrize("name", ["host", "Host", " HOST"])
def test_nobody_joins_as_the_host(name: str) -> None:
    hall = Hall()
    number = hall.join(name)
    assert hall.types(number) == ["error"]
    assert hall.ended[number] == (4003, "Invalid join message")


def test_nobody_joins_under_the_name_that_the_host_goes_by() -> None:
    hall = Hall(host_name="Marta")
    number = hall.join("marta")
    assert hall.ended[number][0] == 4003


def test_before_the_join_only_chat_and_broken_json_are_answered() -> None:
    hall = Hall()
    number = hall.open()
    assert [frame["message"][:9] for frame in hall.send(number, chat())] == ["Must join"]
    assert [frame["message"][:9] for frame in hall.send(number, {"type": "chat", "content": 7})] == ["Must join"]
    assert hall.send(number, CLAIM) == []
    assert hall.send(number, {"type": "claim"}) == []
    assert hall.send(number, {"type": "typing"}) == []
    assert [frame["message"][:12] for frame in hall.send(number, "{")] == ["Invalid JSON"]
    assert number not in hall.ended


async def test_who_does_not_join_within_five_seconds_is_sent_away() -> None:
    hall = Hall()
    number = hall.open()
    await hall.after(4.5)
    assert hall.ended == {}
    await hall.after(0.5)
    assert hall.heard(number)[-1]["message"].startswith("Join timeout")
    assert hall.ended[number] == (4001, "Join timeout")
    assert hall.recorded == []


def test_a_stranger_with_the_same_name_replaces_the_incumbent() -> None:
    hall = Hall()
    old, bob = hall.join("ada", "ada-old"), hall.join("bob")
    hall.send(old, CLAIM)
    hall.forget()
    new = hall.join("ada", "ada-new")
    assert hall.ended[old] == (4002, "Replaced by new connection")
    assert hall.types(bob) == ["leave", "presence", "join", "presence"]
    assert [(entry.type, entry.agent_id) for entry in hall.recorded] == [("leave", "ada-old"), ("join", "ada-new")]
    assert hall.types(new)[0] == "join"
    assert "claim" not in hall.types(new)
    assert hall.send(old, chat()) == []
    hall.do(hall.room.closed(old))
    assert [agent.id for agent in hall.room.agents] == ["bob-1", "ada-new"]


def test_the_same_member_come_anew_leaves_its_old_connection_open_and_deaf() -> None:
    hall = Hall()
    old = hall.join("ada", "ada-1")
    new = hall.join("ada", "ada-1")
    hall.forget()
    assert old not in hall.ended
    hall.send(old, chat("from the past"))
    hall.send(new, chat("from now"))
    assert [frame["content"] for frame in hall.heard(new)] == ["from now"]
    assert hall.heard(old) == []
    hall.do(hall.room.closed(old))
    assert [agent.name for agent in hall.room.agents] == ["ada"]


def test_of_detached_connections_five_are_kept() -> None:
    hall = Hall()
    numbers = [hall.join("ada", "ada-1") for _ in range(7)]
    assert list(hall.ended) == numbers[:1]


async def test_detached_connections_are_pinged_and_closed_at_the_end() -> None:
    hall = Hall()
    old, new = hall.join("ada", "ada-1"), hall.join("ada", "ada-1")
    await hall.after(30)
    assert hall.pinged == [old, new]
    hall.do(hall.room.finish())
    assert hall.ended == {old: (1001, "Server shutting down"), new: (1001, "Server shutting down")}


def test_chat_goes_to_all_the_speaker_too_and_into_the_record() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    hall.forget()
    hall.send(ada, {"type": "chat", "name": "eve", "id": "x", "content": "hi", "threadId": "t", "extra": 1})
    text = f'{{"type":"chat","name":"ada","id":"ada-1","content":"hi","timestamp":"{AT}","threadId":"t"}}'
    assert hall.texts[ada] == hall.texts[bob] == [text]
    assert hall.recorded == [LogEntry(AT, "ada", "ada-1", "chat", "hi")]
    assert hall.seen == [Said("ada", "ada-1", "hi", AT, "t")]


async def test_chat_within_three_seconds_is_lost_and_does_not_delay_the_next() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.forget()
    hall.send(ada, chat("one"))
    await hall.after(2.5)
    assert hall.send(ada, chat("two"))[0]["message"].startswith("Rate limited")
    await hall.after(0.5)
    hall.send(ada, chat("three"))
    assert [entry.content for entry in hall.recorded] == ["one", "three"]


async def test_setting_the_wall_clock_changes_no_limit() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.send(ada, chat("one"))
    hall.clock.jump(3600)
    assert hall.send(ada, chat("two"))[0]["message"].startswith("Rate limited")
    hall.clock.jump(-7200)
    await hall.after(3)
    assert hall.send(ada, chat("three"))[0]["content"] == "three"


def test_typing_is_passed_on_and_kept_nowhere() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.forget()
    assert [frame["type"] for frame in hall.send(ada, {"type": "typing"})] == ["typing"]
    assert hall.recorded == []
    assert hall.seen == [Typing("ada", "ada-1", AT)]


async def test_an_identity_is_told_then_who_is_present_and_a_burst_lists_them_once_more() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.forget()
    identity = {"type": "identity", "summary": {"voice": "dry"}}
    assert [frame["type"] for frame in hall.send(ada, identity)] == ["identity", "presence"]
    assert [frame["type"] for frame in hall.send(ada, identity)] == ["identity"]
    assert [frame["type"] for frame in hall.send(ada, identity)] == ["identity"]
    await hall.after(0.5)
    assert hall.types(ada)[-2:] == ["identity", "presence"]
    assert {type(event) for event in hall.seen} == {Identified, PresenceList}


def test_the_list_of_members_stays_below_a_mebibyte() -> None:
    hall = Hall()
    numbers = [hall.join(f"agent-{number}") for number in range(70)]
    for number in numbers:
        hall.send(number, {"type": "identity", "summary": {"voice": "é" * 8_000}})
    presence = hall.texts[numbers[0]][-1]
    assert len(presence.encode()) <= 1_048_576
    assert len(json.loads(presence)["agents"]) == 70


async def test_a_claim_has_one_holder_until_a_minute_passed_without_renewal() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    hall.forget()
    hall.send(ada, CLAIM)
    assert hall.types(bob) == ["claim"]
    (conflict,) = hall.send(bob, CLAIM)
    assert conflict["message"].startswith("Claim conflict")
    assert {"ada", "bob", "first"} <= set(conflict["message"].replace(",", "").split())
    assert "create_issue:o/r" in conflict["message"]
    await hall.after(59.5)
    assert hall.send(bob, CLAIM)[0]["type"] == "error"
    await hall.after(0.5)
    assert hall.send(bob, CLAIM)[0]["name"] == "bob"
    assert [entry.agent_name for entry in hall.recorded if entry.type == "claim"] == ["ada", "bob"]


async def test_a_renewal_is_silent_unless_members_may_have_forgotten_the_claim() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    hall.send(ada, CLAIM)
    hall.forget()
    await hall.after(30)
    assert hall.send(ada, CLAIM) == []
    for number in (ada, bob):
        hall.do(hall.room.ponged(number))
    await hall.after(16)
    assert [frame["type"] for frame in hall.send(ada, CLAIM)] == ["claim"]
    assert hall.types(bob) == ["claim"]
    assert hall.recorded == []


def test_only_the_holders_result_ends_a_claim() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    hall.send(ada, CLAIM)
    hall.forget()
    assert [frame["type"] for frame in hall.send(bob, RESULT)] == ["action_result", "claim"]
    assert [claim.name for claim in hall.room.claims] == ["ada"]
    assert [frame["type"] for frame in hall.send(ada, RESULT)] == ["action_result"]
    assert hall.room.claims == ()
    assert [entry.type for entry in hall.recorded] == ["action_result", "action_result"]


def test_who_leaves_takes_claims_and_reports_along() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    hall.send(ada, CLAIM)
    hall.send(ada, {"type": "workspace_state", "workspace": "hers", "totalTasks": 1, "completedTasks": 0})
    hall.send(ada, {"type": "workspace_state", "workspace": "his", "totalTasks": 1, "completedTasks": 0})
    hall.send(bob, {"type": "workspace_state", "workspace": "his", "totalTasks": 1, "completedTasks": 1})
    hall.forget()
    hall.do(hall.room.closed(ada))
    assert hall.types(bob) == ["leave", "presence"]
    assert [type(event) for event in hall.seen] == [Left, PresenceList]
    cleo = hall.join("cleo")
    assert [frame.get("workspace") for frame in hall.heard(cleo) if frame["type"] == "workspace_state"] == ["his"]
    assert "claim" not in hall.types(cleo)


def test_of_plans_a_hundred_are_remembered_the_oldest_give_way() -> None:
    hall = Hall()
    members = [hall.join(f"agent-{number}") for number in range(10)]
    for number in range(105):
        report = {"type": "workspace_state", "workspace": f"w{number}", "totalTasks": 1, "completedTasks": 0}
        hall.send(members[number % 10], report)
    told = [frame["workspace"] for frame in hall.heard(hall.join("late")) if frame["type"] == "workspace_state"]
    assert told == [f"w{number}" for number in range(5, 105)]


async def test_a_report_a_day_old_is_forgotten() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.send(ada, {"type": "workspace_state", "workspace": "w", "totalTasks": 1, "completedTasks": 0})
    await hall.clock.advance(86_401)
    hall.do(hall.room.tick())
    assert "workspace_state" not in hall.types(hall.join("late"))


async def test_who_answers_no_ping_is_gone_after_a_minute() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    await hall.after(30)
    assert hall.pinged == [ada, bob]
    hall.do(hall.room.ponged(bob))
    hall.forget()
    await hall.after(30)
    assert hall.ended == {ada: (1006, "")}
    assert hall.types(bob) == ["leave", "presence"]
    hall.do(hall.room.closed(ada))
    assert [entry.type for entry in hall.recorded] == ["leave"]


async def test_any_sound_message_but_typing_is_a_sign_of_life() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    await hall.after(30)
    hall.send(ada, {"type": "state", "state": "idle"})
    hall.send(bob, {"type": "typing"})
    await hall.after(30)
    assert list(hall.ended) == [bob]
    assert hall.room.agents[0].last_seen == "2026-01-05T12:00:30.000Z"


async def test_a_flood_is_dropped_told_so_and_in_the_end_cut_off() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.forget()
    for _ in range(19):
        hall.send(ada, {"type": "typing"})
    assert hall.types(ada) == ["typing"] * 19
    assert hall.send(ada, {"type": "typing"})[0]["message"].startswith("Rate limited")
    await hall.after(5)
    assert [frame["type"] for frame in hall.send(ada, {"type": "typing"})] == ["typing"]
    hall.forget()
    for _ in range(1100):
        hall.send(ada, "[" * 10_000)
    assert hall.ended[ada] == (1008, "Too many messages")
    assert len(hall.texts[ada]) < 150
    assert [line.detail for line in hall.logged] == ["ada"]


def test_the_host_speaks_without_limit_and_is_kept() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.forget()
    for text in ("hey @ADA", "  ", "and again"):
        hall.do(hall.room.say(text))
    first, second = hall.heard(ada)
    assert list(first) == ["type", "name", "id", "content", "timestamp", "addressed"]
    assert (first["name"], first["addressed"], first["id"]) == ("host", ["ada"], hall.room.host_id)
    assert "addressed" not in second
    assert hall.room.host_id == "host-mk13z400"
    assert [entry.content for entry in hall.recorded] == ["hey @ADA", "and again"]


def test_the_hosts_words_are_cut_where_a_chat_must_end() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.do(hall.room.say("w" * 100_005))
    assert len(hall.heard(ada)[-1]["content"]) == 100_000
    assert hall.logged[0].level == "warn"


def test_while_it_closes_members_may_finish_and_nobody_comes_in() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.forget()
    hall.do(hall.room.drain())
    hall.do(hall.room.drain())
    assert hall.heard(ada) == [{"type": "shutdown", "reason": "Server shutting down", "timestamp": AT}]
    assert hall.seen == [ShuttingDown("Server shutting down", AT)]
    late = hall.join("late")
    assert hall.ended[late] == (1001, "Server shutting down")
    hall.send(ada, chat("last words"))
    hall.do(hall.room.finish())
    assert hall.ended[ada] == (1001, "Server shutting down")
    hall.do(hall.room.closed(ada))
    assert [entry.type for entry in hall.recorded] == ["chat", "leave"]
