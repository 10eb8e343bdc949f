"""Tests of the rules of a room, step by step, with a clock that only the test moves.

A room keeps its id wherever it listens, and a member knows it again by that, not by its address. When a room's server
is killed, what was said is kept, and the next server tells it. Tests of whom the host means by an `@` or by a name
alone.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from adapters.space.chatlog import ChatLog
from adapters.space.room_addressing import parse_addressed
from adapters.space.types import History, Joined, Left, LogEntry, PresenceList, Said, ShuttingDown, Typing
from adapters.space.wire import decode_event
from tests.adapters.space.running_room import RawClient, RoomDriver
from tests.children import child_of
from tests.patience import HANG_S

AT = "2026-01-05T12:00:00.000Z"
CLAIM = {"type": "claim", "action": "create_issue", "target": "o/r"}
RESULT = {"type": "action_result", "action": "create_issue", "target": "o/r", "success": True}


def chat(content: str = "hi") -> dict[str, Any]:
    return {"type": "chat", "content": content}


async def test_a_joiner_is_told_everything_in_the_order_of_the_wire() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.send(ada, {"type": "workspace_state", "workspace": "w", "totalTasks": 3, "completedTasks": 1})
    driver.send(ada, CLAIM)
    driver.send(ada, {"type": "state", "state": "acting", "detail": "on it"})
    driver.forget()
    await driver.after(0.25)
    bob = driver.join("bob", capabilities=["social"])
    assert driver.types(bob) == ["join", "presence", "history_response", "workspace_state", "claim", "state"]
    assert driver.types(ada) == ["join", "presence"]
    assert [type(event) for event in driver.seen] == [Joined, PresenceList]
    entries = driver.arrived(bob)[2]["entries"]
    later = "2026-01-05T12:00:00.250Z"
    assert [entry["type"] for entry in entries] == ["join", "workspace_state", "claim", "state", "join"]
    assert entries[-1] == {"timestamp": later, "agentName": "bob", "agentId": "bob-1", "type": "join", "content": ""}
    assert [agent["name"] for agent in driver.arrived(bob)[1]["agents"]] == ["ada", "bob"]


def test_chat_goes_to_all_the_speaker_too_and_into_the_record() -> None:
    driver = RoomDriver()
    ada, bob = driver.join("ada"), driver.join("bob")
    driver.forget()
    driver.send(ada, {"type": "chat", "name": "eve", "id": "x", "content": "hi", "threadId": "t", "extra": 1})
    text = f'{{"type":"chat","name":"ada","id":"ada-1","content":"hi","timestamp":"{AT}","threadId":"t"}}'
    assert driver.texts[ada] == driver.texts[bob] == [text]
    assert driver.recorded == [LogEntry(AT, "ada", "ada-1", "chat", "hi")]
    assert driver.seen == [Said("ada", "ada-1", "hi", AT, "t")]


async def test_chat_within_three_seconds_is_lost_and_does_not_delay_the_next() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.forget()
    driver.send(ada, chat("one"))
    await driver.after(2.5)
    assert driver.send(ada, chat("two"))[0]["message"].startswith("Rate limited")
    await driver.after(0.5)
    driver.send(ada, chat("three"))
    assert [entry.content for entry in driver.recorded] == ["one", "three"]


async def test_setting_the_wall_clock_changes_no_limit() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.send(ada, chat("one"))
    driver.clock.jump(3600)
    assert driver.send(ada, chat("two"))[0]["message"].startswith("Rate limited")
    driver.clock.jump(-7200)
    await driver.after(3)
    assert driver.send(ada, chat("three"))[0]["content"] == "three"


def test_typing_is_passed_on_and_kept_nowhere() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.forget()
    assert [frame["type"] for frame in driver.send(ada, {"type": "typing"})] == ["typing"]
    assert driver.recorded == []
    assert driver.seen == [Typing("ada", "ada-1", AT)]


async def test_who_is_present_is_told_four_times_a_second_at_most_however_much_changes() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    await driver.after(0.25)
    driver.forget()
    for number in range(20):
        driver.send(ada, {"type": "identity", "summary": {"voice": f"dry {number}"}})
    others = [driver.join(f"agent-{letter}") for letter in "abcdefghjk"]
    assert driver.types(ada).count("presence") == 1
    await driver.after(0.25)
    assert driver.types(ada).count("presence") == 2
    assert {agent["name"] for agent in driver.arrived(ada)[-1]["agents"]} == {
        agent.name for agent in driver.room.agents
    }
    assert [driver.types(other).count("presence") for other in others] == [2] * 9 + [1]
    await driver.after(5)
    assert driver.types(ada).count("presence") == 2
    assert sum(isinstance(event, PresenceList) for event in driver.seen) == 2


async def test_a_claim_has_one_holder_until_a_minute_passed_without_renewal() -> None:
    driver = RoomDriver()
    ada, bob = driver.join("ada"), driver.join("bob")
    driver.forget()
    driver.send(ada, CLAIM)
    assert driver.types(bob) == ["claim"]
    (conflict,) = driver.send(bob, CLAIM)
    assert conflict["message"].startswith("Claim conflict")
    assert {"ada", "bob", "first"} <= set(conflict["message"].replace(",", "").split())
    assert "create_issue:o/r" in conflict["message"]
    await driver.after(59.5)
    assert driver.send(bob, CLAIM)[0]["type"] == "error"
    await driver.after(0.5)
    assert driver.send(bob, CLAIM)[0]["name"] == "bob"
    assert [entry.agent_name for entry in driver.recorded if entry.type == "claim"] == ["ada", "bob"]


async def test_a_renewal_is_silent_unless_members_may_have_forgotten_the_claim() -> None:
    driver = RoomDriver()
    ada, bob = driver.join("ada"), driver.join("bob")
    driver.send(ada, CLAIM)
    driver.forget()
    await driver.after(30)
    assert driver.send(ada, CLAIM) == []
    for number in (ada, bob):
        driver.do(driver.room.ponged(number))
    await driver.after(16)
    assert [frame["type"] for frame in driver.send(ada, CLAIM)] == ["claim"]
    assert driver.types(bob) == ["claim"]
    assert driver.recorded == []


async def test_claims_whose_action_and_target_read_the_same_when_glued_are_apart() -> None:
    driver = RoomDriver()
    ada, bob = driver.join("ada"), driver.join("bob")
    pairs = {ada: ("create_issue", "o/r:Clock"), bob: ("create_issue:o/r", "Clock")}
    for member, (action, target) in pairs.items():
        told = driver.send(member, {"type": "claim", "action": action, "target": target})
        assert [frame["type"] for frame in told] == ["claim"]
    held = [(claim.name, claim.action, claim.target) for claim in driver.room.claims]
    assert held == [("ada", *pairs[ada]), ("bob", *pairs[bob])]
    action, target = pairs[bob]
    driver.send(bob, {"type": "action_result", "action": action, "target": target, "success": True})
    assert [claim.name for claim in driver.room.claims] == ["ada"]


def test_only_the_holders_result_ends_a_claim() -> None:
    driver = RoomDriver()
    ada, bob = driver.join("ada"), driver.join("bob")
    driver.send(ada, CLAIM)
    driver.forget()
    assert [frame["type"] for frame in driver.send(bob, RESULT)] == ["action_result", "claim"]
    assert [claim.name for claim in driver.room.claims] == ["ada"]
    assert [frame["type"] for frame in driver.send(ada, RESULT)] == ["action_result"]
    assert driver.room.claims == ()
    assert [entry.type for entry in driver.recorded] == ["action_result", "action_result"]


@pytest.mark.slow
def test_whoever_claims_everything_pushes_out_nobody_elses_claim_and_no_newcomer() -> None:
    driver = RoomDriver()
    driver.send(driver.join("honest"), CLAIM)
    for number in range(40):
        greedy = driver.join(f"greedy-{chr(97 + number % 26)}{number // 26}x", address=f"192.0.2.{number + 10}")
        for target in range(18):
            driver.send(greedy, {"type": "claim", "action": "a" * 5_000, "target": f"{number} {target} " + "t" * 4_900})
    claims = driver.room.claims
    assert len(claims) == 500
    assert claims[0].name == "honest"
    newcomer = driver.join("new", address="192.0.2.9")
    assert sum(len(text) for text in driver.texts[newcomer]) < 3_000_000
    assert "claim" in driver.types(newcomer)


async def test_of_one_members_claims_the_latest_twenty_hold() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    for number in range(25):
        driver.send(ada, {"type": "claim", "action": "a", "target": f"{number}"})
        await driver.after(0.5)
    assert [claim.target for claim in driver.room.claims] == [f"{number}" for number in range(5, 25)]


async def test_who_leaves_takes_claims_and_reports_along() -> None:
    driver = RoomDriver()
    ada, bob = driver.join("ada"), driver.join("bob")
    driver.send(ada, CLAIM)
    driver.send(ada, {"type": "workspace_state", "workspace": "hers", "totalTasks": 1, "completedTasks": 0})
    driver.send(ada, {"type": "workspace_state", "workspace": "his", "totalTasks": 1, "completedTasks": 0})
    driver.send(bob, {"type": "workspace_state", "workspace": "his", "totalTasks": 1, "completedTasks": 1})
    await driver.after(0.5)
    driver.forget()
    driver.do(driver.room.closed(ada))
    assert driver.types(bob) == ["leave", "presence"]
    assert [type(event) for event in driver.seen] == [Left, PresenceList]
    cleo = driver.join("cleo")
    assert [frame.get("workspace") for frame in driver.arrived(cleo) if frame["type"] == "workspace_state"] == ["his"]
    assert "claim" not in driver.types(cleo)


def test_of_plans_a_hundred_are_remembered_the_oldest_give_way() -> None:
    driver = RoomDriver()
    members = [driver.join(f"agent-{number}") for number in range(10)]
    for number in range(105):
        report = {"type": "workspace_state", "workspace": f"w{number}", "totalTasks": 1, "completedTasks": 0}
        driver.send(members[number % 10], report)
    told = [frame["workspace"] for frame in driver.arrived(driver.join("late")) if frame["type"] == "workspace_state"]
    assert told == [f"w{number}" for number in range(5, 105)]


async def test_a_report_a_day_old_is_forgotten() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.send(ada, {"type": "workspace_state", "workspace": "w", "totalTasks": 1, "completedTasks": 0})
    await driver.clock.advance(86_401)
    driver.do(driver.room.tick())
    assert "workspace_state" not in driver.types(driver.join("late"))


async def test_who_answers_no_ping_is_gone_after_a_minute() -> None:
    driver = RoomDriver()
    ada, bob = driver.join("ada"), driver.join("bob")
    await driver.after(30)
    assert driver.pinged == [ada, bob]
    driver.do(driver.room.ponged(bob))
    driver.forget()
    await driver.after(30)
    assert driver.ended == {ada: (1006, "")}
    assert driver.types(bob) == ["leave", "presence"]
    driver.do(driver.room.closed(ada))
    assert [entry.type for entry in driver.recorded] == ["leave"]


async def test_any_sound_message_but_typing_is_a_sign_of_life() -> None:
    driver = RoomDriver()
    ada, bob = driver.join("ada"), driver.join("bob")
    await driver.after(30)
    driver.send(ada, {"type": "state", "state": "idle"})
    driver.send(bob, {"type": "typing"})
    await driver.after(30)
    assert list(driver.ended) == [bob]
    assert driver.room.agents[0].last_seen == "2026-01-05T12:00:30.000Z"


async def test_a_flood_is_dropped_told_so_and_in_the_end_cut_off() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.forget()
    for _ in range(19):
        driver.send(ada, {"type": "typing"})
    assert driver.types(ada) == ["typing"] * 19
    assert driver.send(ada, {"type": "typing"})[0]["message"].startswith("Rate limited")
    await driver.after(5)
    assert [frame["type"] for frame in driver.send(ada, {"type": "typing"})] == ["typing"]
    driver.forget()
    for _ in range(1100):
        driver.send(ada, "[" * 10_000)
    assert driver.ended[ada] == (1008, "Too many messages")
    assert len(driver.texts[ada]) < 150
    assert [line.detail for line in driver.logged] == ["ada"]


def test_the_host_speaks_without_limit_and_is_kept() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.forget()
    for text in ("hey @ADA", "  ", "and again"):
        driver.do(driver.room.say(text))
    first, second = driver.arrived(ada)
    assert list(first) == ["type", "name", "id", "content", "timestamp", "addressed"]
    assert (first["name"], first["addressed"], first["id"]) == ("host", ["ada"], driver.room.host_id)
    assert "addressed" not in second
    assert driver.room.host_id == "host-mk13z400"
    assert [entry.content for entry in driver.recorded] == ["hey @ADA", "and again"]


def test_the_hosts_words_are_cut_where_a_chat_must_end() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.do(driver.room.say("w" * 100_005))
    assert len(driver.arrived(ada)[-1]["content"]) == 100_000
    assert driver.logged


def test_while_it_closes_members_may_finish_and_nobody_comes_in() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    driver.forget()
    driver.do(driver.room.drain())
    driver.do(driver.room.drain())
    assert driver.arrived(ada) == [{"type": "shutdown", "reason": "Server shutting down", "timestamp": AT}]
    assert driver.seen == [ShuttingDown("Server shutting down", AT)]
    late = driver.join("late")
    assert driver.ended[late] == (1001, "Server shutting down")
    driver.send(ada, chat("last words"))
    driver.do(driver.room.finish())
    assert driver.ended[ada] == (1001, "Server shutting down")
    driver.do(driver.room.closed(ada))
    assert [entry.type for entry in driver.recorded] == ["chat", "leave"]


def test_the_id_lies_beside_the_record_and_stays(tmp_path: Path) -> None:
    made = ChatLog(tmp_path / "one").room_id()
    kept = tmp_path / "one" / "data" / "room-id"
    assert len(made) >= 16
    assert ChatLog(tmp_path / "one").room_id() == made
    assert ChatLog(tmp_path / "two").room_id() != made
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("found", [b"", b"short\n", b"\xff" * 30, b"two words that are no id\n", b"x" * 5000])
def test_what_is_no_id_is_replaced_by_one(tmp_path: Path, found: bytes) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "room-id").write_bytes(found)
    made = ChatLog(tmp_path).room_id()
    assert made
    assert ChatLog(tmp_path).room_id() == made


def test_a_room_that_cannot_keep_an_id_has_none_and_says_why(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "data").write_text("a file where the folder should be")
    assert ChatLog(tmp_path, report=told.append).room_id() == ""
    (tmp_path / "other" / "data" / "room-id").mkdir(parents=True)
    assert ChatLog(tmp_path / "other", report=told.append).room_id() == ""
    assert len(told) == 2


def test_the_id_is_told_after_the_record_and_a_room_without_one_tells_what_it_always_told() -> None:
    driver = RoomDriver()
    assert driver.texts[driver.join("ada")][-1].endswith('"content":""}]}')
    driver.room.remember(driver.room._state.replay, "a-room-of-its-own")
    told = driver.texts[driver.join("bob")][-1]
    assert told.endswith('"content":""}],"roomId":"a-room-of-its-own"}')
    event = decode_event(told)
    assert isinstance(event, History)
    assert (event.room_id, len(event.entries)) == ("a-room-of-its-own", 2)


@pytest.mark.parametrize("told", [None, 7, ["id"], {"id": 1}])
def test_an_id_that_is_no_text_is_none(told: object) -> None:
    event = decode_event(json.dumps({"type": "history_response", "entries": [], "roomId": told}))
    assert event == History(())


CHILD = "tests.adapters.space.room_child"


async def port_of(child: asyncio.subprocess.Process) -> int:
    assert child.stdout is not None
    async with asyncio.timeout(HANG_S):
        return int(await child.stdout.readline())


@pytest.mark.slow
async def test_after_a_kill_the_record_is_whole_and_the_next_server_replays_it(tmp_path: Path) -> None:
    said: list[str] = []
    port = 0
    for life in range(2):
        async with child_of(CHILD, str(tmp_path), str(port)) as child:
            port = await port_of(child)
            async with connect(f"ws://127.0.0.1:{port}", proxy=None, close_timeout=0.1) as sock:
                ada = RawClient(sock)
                (history,) = [frame for frame in await ada.join("ada") if frame["type"] == "history_response"]
                replayed = [entry["content"] for entry in history["entries"] if entry["type"] == "reflection"]
                assert replayed == said
                for number in range(19):
                    summary = f"life {life}, thought {number}"
                    await ada.send({"type": "reflection", "summary": summary})
                    assert (await ada.until("reflection"))[-1]["summary"] == summary
                    said.append(summary)
                child.kill()
                assert (await ada.closed())[0] == 1006
    log = ChatLog(tmp_path)
    assert [entry.content for entry in log.get_recent_history() if entry.type == "reflection"] == said[-len(said) :]
    assert (tmp_path / "data" / "chat.1.jsonl").exists()


NAMES = ["Bob", "sh-marvin", "marvin", "Zoë", "dr. no", "sh"]


@pytest.mark.parametrize(
    ("content", "meant"),
    [
        ("hi @bob, and @BOB", ["Bob"]),
        ("bobsled", []),
        ("Bob's idea", ["Bob"]),
        ("@sh-marvin please", ["sh-marvin"]),
        ("sh-marvin please", ["sh-marvin"]),
        ("@marvin then @bob", ["marvin", "Bob"]),
        ("marvin then bob", ["Bob", "marvin"]),
        ("ask @bob.", ["Bob"]),
        ("zoë!", ["Zoë"]),
        ("Zoëlle", []),
        ("what says Dr. No?", ["dr. no"]),
        ("@nobody", []),
        ("@sh-rebecca", ["sh"]),
        ("a.b@c", []),
    ],
)
def test_whom_the_host_means(content: str, meant: list[str]) -> None:
    assert parse_addressed(content, NAMES) == meant


@pytest.mark.parametrize(
    ("content", "meant"),
    [
        ("@marvin please", ["marvin"]),
        ("@Marvin please", ["Marvin"]),
        ("@MARVIN please", ["Marvin", "marvin"]),
        ("marvin, please", ["marvin"]),
        ("Marvin, please", ["Marvin"]),
        ("MARVIN, please", ["Marvin", "marvin"]),
        ("@Marvin and marvin", ["Marvin", "marvin"]),
        ("@marvin.", ["marvin"]),
    ],
)
def test_of_names_that_differ_in_case_the_one_spelled_so_is_meant(content: str, meant: list[str]) -> None:
    assert parse_addressed(content, ["Marvin", "marvin"]) == meant
