"""The rules of a room, step by step, with a clock that only the test moves."""

from __future__ import annotations

import json
from typing import Any

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


async def test_a_joiner_is_told_everything_in_the_order_of_the_wire() -> None:
    hall = Hall()
    ada = hall.join("ada")
    hall.send(ada, {"type": "workspace_state", "workspace": "w", "totalTasks": 3, "completedTasks": 1})
    hall.send(ada, CLAIM)
    hall.send(ada, {"type": "state", "state": "acting", "detail": "on it"})
    hall.forget()
    await hall.after(0.25)
    bob = hall.join("bob", capabilities=["social"])
    assert hall.types(bob) == ["join", "presence", "history_response", "workspace_state", "claim", "state"]
    assert hall.types(ada) == ["join", "presence"]
    assert [type(event) for event in hall.seen] == [Joined, PresenceList]
    entries = hall.heard(bob)[2]["entries"]
    later = "2026-01-05T12:00:00.250Z"
    assert [entry["type"] for entry in entries] == ["join", "workspace_state", "claim", "state", "join"]
    assert entries[-1] == {"timestamp": later, "agentName": "bob", "agentId": "bob-1", "type": "join", "content": ""}
    assert [agent["name"] for agent in hall.heard(bob)[1]["agents"]] == ["ada", "bob"]


async def test_a_presence_row_has_its_keys_in_order() -> None:
    hall = Hall()
    ada = hall.join("ada", capabilities=["social"])
    await hall.after(0.25)
    hall.send(ada, {"type": "identity", "summary": {"voice": "dry", "own": [None]}})
    at = "2026-01-05T12:00:00.250Z"
    row = (
        f'{{"name":"ada","id":"ada-1","version":"1","joinedAt":"{AT}","lastSeen":"{at}",'
        '"identity":{"voice":"dry","own":[null]},"capabilities":["social"]}'
    )
    assert hall.texts[ada][-1] == f'{{"type":"presence","agents":[{row}]}}'


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


async def test_who_is_present_is_told_four_times_a_second_at_most_however_much_changes() -> None:
    hall = Hall()
    ada = hall.join("ada")
    await hall.after(0.25)
    hall.forget()
    for number in range(20):
        hall.send(ada, {"type": "identity", "summary": {"voice": f"dry {number}"}})
    others = [hall.join(f"agent-{letter}") for letter in "abcdefghjk"]
    assert hall.types(ada).count("presence") == 1
    await hall.after(0.25)
    assert hall.types(ada).count("presence") == 2
    assert {agent["name"] for agent in hall.heard(ada)[-1]["agents"]} == {agent.name for agent in hall.room.agents}
    assert [hall.types(other).count("presence") for other in others] == [2] * 9 + [1]
    await hall.after(5)
    assert hall.types(ada).count("presence") == 2
    assert sum(isinstance(event, PresenceList) for event in hall.seen) == 2


async def test_an_identity_that_was_told_already_lists_nobody_anew() -> None:
    hall = Hall()
    ada = hall.join("ada")
    identity = {"type": "identity", "summary": {"voice": "dry"}}
    hall.send(ada, identity)
    await hall.after(1)
    hall.forget()
    assert [frame["type"] for frame in hall.send(ada, identity)] == ["identity"]
    await hall.after(1)
    assert hall.types(ada) == ["identity"]
    assert {type(event) for event in hall.seen} == {Identified}


async def test_the_list_of_members_stays_below_a_mebibyte() -> None:
    hall = Hall()
    numbers = [hall.join(f"agent-{number}") for number in range(70)]
    for number in numbers:
        hall.send(number, {"type": "identity", "summary": {"voice": "é" * 8_000}})
    await hall.after(10)
    presence = next(text for text in reversed(hall.texts[numbers[0]]) if '"presence"' in text)
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


async def test_claims_whose_action_and_target_read_the_same_when_glued_are_apart() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    pairs = {ada: ("create_issue", "o/r:Clock"), bob: ("create_issue:o/r", "Clock")}
    for member, (action, target) in pairs.items():
        told = hall.send(member, {"type": "claim", "action": action, "target": target})
        assert [frame["type"] for frame in told] == ["claim"]
    held = [(claim.name, claim.action, claim.target) for claim in hall.room.claims]
    assert held == [("ada", *pairs[ada]), ("bob", *pairs[bob])]
    action, target = pairs[bob]
    hall.send(bob, {"type": "action_result", "action": action, "target": target, "success": True})
    assert [claim.name for claim in hall.room.claims] == ["ada"]


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


def test_whoever_claims_everything_pushes_out_nobody_elses_claim_and_no_newcomer() -> None:
    hall = Hall()
    hall.send(hall.join("honest"), CLAIM)
    for number in range(40):
        greedy = hall.join(f"greedy-{chr(97 + number % 26)}{number // 26}x", address=f"192.0.2.{number + 10}")
        for target in range(18):
            hall.send(greedy, {"type": "claim", "action": "a" * 5_000, "target": f"{number} {target} " + "t" * 4_900})
    claims = hall.room.claims
    assert len(claims) == 500
    assert claims[0].name == "honest"
    newcomer = hall.join("new", address="192.0.2.9")
    assert sum(len(text) for text in hall.texts[newcomer]) < 3_000_000
    assert "claim" in hall.types(newcomer)


async def test_of_one_members_claims_the_latest_twenty_hold() -> None:
    hall = Hall()
    ada = hall.join("ada")
    for number in range(25):
        hall.send(ada, {"type": "claim", "action": "a", "target": f"{number}"})
        await hall.after(0.5)
    assert [claim.target for claim in hall.room.claims] == [f"{number}" for number in range(5, 25)]


async def test_who_leaves_takes_claims_and_reports_along() -> None:
    hall = Hall()
    ada, bob = hall.join("ada"), hall.join("bob")
    hall.send(ada, CLAIM)
    hall.send(ada, {"type": "workspace_state", "workspace": "hers", "totalTasks": 1, "completedTasks": 0})
    hall.send(ada, {"type": "workspace_state", "workspace": "his", "totalTasks": 1, "completedTasks": 0})
    hall.send(bob, {"type": "workspace_state", "workspace": "his", "totalTasks": 1, "completedTasks": 1})
    await hall.after(0.5)
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
