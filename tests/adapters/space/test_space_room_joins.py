"""Tests of who may join a room, under which name, and whose place they take, with a clock that only the test moves."""

from typing import Any

import pytest

from tests.adapters.space.running_room import RoomDriver

CLAIM = {"type": "claim", "action": "create_issue", "target": "o/r"}


def chat(content: str = "hi") -> dict[str, Any]:
    return {"type": "chat", "content": content}


def test_a_second_join_is_ignored_and_a_second_invalid_one_closes() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    assert driver.send(ada, {"type": "join", "name": "eve", "id": "e", "version": "1"}) == []
    (error,) = driver.send(ada, {"type": "join", "name": "", "id": "e", "version": "1"})
    assert error["message"].startswith("Invalid join")
    assert driver.ended[ada] == (4003, "Invalid join message")
    assert driver.room.agents == ()


def test_nobody_joins_as_the_host() -> None:
    driver = RoomDriver()
    number = driver.join(" HOST")
    assert driver.types(number) == ["error"]
    assert driver.ended[number] == (4003, "Invalid join message")


@pytest.mark.parametrize(
    "name",
    [
        *("host\u3164", "ho\uffa0st", "host\u034f", "h\ua4f3st", "h\u0665st"),
        *("h\u03f2st", "\U0001f157\U0001f15e\U0001f162\U0001f163", "\u3164", "\u200b"),
    ],
    ids=ascii,
)
def test_nobody_joins_unseen_or_under_a_name_that_is_made_to_look_like_the_hosts(name: str) -> None:
    driver = RoomDriver()
    number = driver.join(name)
    assert driver.ended[number] == (4003, "Invalid join message")


@pytest.mark.parametrize("name", ["\u03a3\u03bf\u03c6\u03af\u03b1", "Zo\u00eb"])
def test_a_name_in_any_script_is_welcome(name: str) -> None:
    driver = RoomDriver()
    driver.join(name)
    assert [agent.name for agent in driver.room.agents] == [name]


def test_nobody_joins_under_the_name_that_the_host_goes_by() -> None:
    driver = RoomDriver(host_name="Marta")
    number = driver.join("marta")
    assert driver.ended[number][0] == 4003


def test_before_the_join_only_chat_and_broken_json_are_answered() -> None:
    driver = RoomDriver()
    number = driver.open()
    assert [frame["message"][:9] for frame in driver.send(number, chat())] == ["Must join"]
    assert [frame["message"][:9] for frame in driver.send(number, {"type": "chat", "content": 7})] == ["Must join"]
    assert driver.send(number, CLAIM) == []
    assert driver.send(number, {"type": "claim"}) == []
    assert driver.send(number, {"type": "typing"}) == []
    assert [frame["message"][:12] for frame in driver.send(number, "{")] == ["Invalid JSON"]
    assert number not in driver.ended


async def test_who_does_not_join_within_five_seconds_is_sent_away() -> None:
    driver = RoomDriver()
    number = driver.open()
    await driver.after(4.5)
    assert driver.ended == {}
    await driver.after(0.5)
    assert driver.arrived(number)[-1]["message"].startswith("Join timeout")
    assert driver.ended[number] == (4001, "Join timeout")
    assert driver.recorded == []


@pytest.mark.parametrize(
    ("agent_id", "address"), [("ada-new", "192.0.2.1"), ("ada-1", "192.0.2.66")], ids=["other-id", "other-address"]
)
def test_a_name_that_is_taken_stays_with_who_has_it(agent_id: str, address: str) -> None:
    driver = RoomDriver()
    ada = driver.join("ada", "ada-1")
    driver.send(ada, CLAIM)
    driver.forget()
    thief = driver.join("ada", agent_id, address=address)
    assert [frame["message"] for frame in driver.arrived(thief)] == ["Invalid join: the name is taken"]
    assert driver.ended == {thief: (4004, "Name taken")}
    assert driver.types(ada) == []
    assert driver.recorded == []
    assert [claim.name for claim in driver.room.claims] == ["ada"]
    assert driver.send(ada, chat())[0]["content"] == "hi"


def test_a_member_takes_its_place_over_with_its_token_and_its_old_connection_is_closed() -> None:
    driver = RoomDriver()
    old, bob = driver.join("ada", "ada-1", resume=""), driver.join("bob")
    token = driver.arrived(old)[1]["resume"]
    driver.forget()
    new = driver.join("ada", "ada-1", address="192.0.2.66", resume=token)
    assert driver.ended == {old: (4002, "Replaced by new connection")}
    assert driver.types(bob)[:2] == ["leave", "join"]
    assert driver.send(old, chat()) == []
    driver.do(driver.room.closed(old))
    assert [agent.name for agent in driver.room.agents] == ["bob", "ada"]
    assert driver.arrived(new)[1]["resume"] not in {"", token}


@pytest.mark.parametrize("more", [{}, {"resume": "guess"}])
def test_without_its_token_nobody_takes_the_place_of_a_member_that_has_one(more: dict[str, Any]) -> None:
    driver = RoomDriver()
    ada = driver.join("ada", "ada-1", resume="")
    thief = driver.join("ada", "ada-1", **more)
    assert driver.ended == {thief: (4004, "Name taken")}
    assert driver.send(ada, chat())[0]["content"] == "hi"


def test_a_member_that_knows_no_tokens_is_told_of_none() -> None:
    driver = RoomDriver()
    driver.join("ada", resume="")
    assert "resume" not in str(driver.arrived(driver.join("bob")))


async def test_a_member_whose_name_is_wanted_leaves_if_it_does_not_say_that_it_lives() -> None:
    driver = RoomDriver()
    ada = driver.join("ada", "ada-1")
    driver.join("ada", "ada-2")
    assert driver.pinged == [ada]
    driver.do(driver.room.ponged(ada))
    await driver.after(20)
    driver.join("ada", "ada-3")
    assert driver.pinged == [ada, ada]
    driver.join("ada", "ada-4")
    assert driver.pinged == [ada, ada]
    await driver.after(10)
    assert [agent.id for agent in driver.room.agents] == ["ada-1"]
    await driver.after(5)
    assert [agent.id for agent in driver.room.agents] == []


@pytest.mark.parametrize("name", ["Ada", "a\u200bda", "ada ", "\uff41da"])
def test_a_name_that_looks_like_one_that_is_there_is_refused(name: str) -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    twin = driver.join(name, "x")
    assert driver.ended == {twin: (4004, "Name taken")}
    driver.do(driver.room.closed(ada))
    assert driver.types(driver.join(name, "x"))[0] == "join"


def test_names_of_pictures_are_told_apart() -> None:
    driver = RoomDriver()
    for number, name in enumerate(("\U0001f98a", "\U0001f43a", "\U0001f98a\u200b")):
        driver.join(name, f"x-{number}")
    assert [agent.name for agent in driver.room.agents] == ["\U0001f98a", "\U0001f43a"]


def test_the_same_member_come_anew_leaves_its_old_connection_open_until_it_speaks() -> None:
    driver = RoomDriver()
    old = driver.join("ada", "ada-1")
    new = driver.join("ada", "ada-1")
    driver.forget()
    assert old not in driver.ended
    driver.send(new, chat("from now"))
    assert [frame["content"] for frame in driver.arrived(new)] == ["from now"]
    driver.send(old, chat("from the past"))
    assert driver.arrived(old) == []
    assert driver.ended == {old: (4002, "Replaced by new connection")}
    driver.do(driver.room.closed(old))
    assert [agent.name for agent in driver.room.agents] == ["ada"]


def test_of_detached_connections_five_are_kept() -> None:
    driver = RoomDriver()
    numbers = [driver.join("ada", "ada-1") for _ in range(7)]
    assert list(driver.ended) == numbers[:1]


async def test_detached_connections_are_pinged_and_closed_at_the_end() -> None:
    driver = RoomDriver()
    old, new = driver.join("ada", "ada-1"), driver.join("ada", "ada-1")
    await driver.after(30)
    assert driver.pinged == [old, new]
    driver.do(driver.room.finish())
    assert driver.ended == {old: (1001, "Server shutting down"), new: (1001, "Server shutting down")}


async def test_a_removed_member_leaves_and_its_name_stays_closed_to_its_address_for_ten_minutes() -> None:
    driver = RoomDriver()
    eve, ada = driver.join("Eve"), driver.join("ada")
    driver.send(eve, CLAIM)
    driver.forget()
    driver.do(driver.room.remove("Eve"))
    assert driver.arrived(eve)[0]["message"] == "Invalid join: the host removed this name"
    assert driver.ended == {eve: (4003, "Removed by the host")}
    assert driver.types(ada)[0] == "leave"
    assert [entry.type for entry in driver.recorded] == ["leave"]
    assert driver.room.claims == ()
    assert driver.send(eve, chat()) == []
    for name in ("Eve", "eve", "E\u03bde"):
        again = driver.join(name)
        assert driver.ended[again] == (4003, "Invalid join message")
        driver.do(driver.room.closed(again))
    assert driver.join("Eve", address="192.0.2.66") not in driver.ended
    assert driver.join("bob") not in driver.ended
    await driver.after(599)
    assert driver.join("eve") in driver.ended
    driver.do(driver.room.remove("Eve"))
    await driver.after(2)
    assert driver.join("eve") not in driver.ended


def test_removing_a_name_that_nobody_has_does_nothing() -> None:
    driver = RoomDriver()
    driver.join("ada")
    assert driver.room.remove("eve") == []
    assert driver.join("eve") not in driver.ended
