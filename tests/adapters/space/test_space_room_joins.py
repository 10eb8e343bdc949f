"""Who may come into a room, under which name, and whose place it takes, with a clock that only the test moves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.space.room_house import Hall

CLAIM = {"type": "claim", "action": "create_issue", "target": "o/r"}


def chat(content: str = "hi") -> dict[str, Any]:
    return {"type": "chat", "content": content}


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


@pytest.mark.parametrize(
    "name",
    [
        *("host\u3164", "\u3164host", "\u115fhost", "ho\uffa0st", "host\u1160", "host\u17b4", "host\u034f"),
        *("\ua4e7\ua4f3\ua4e2\ua4d4", "\u13c2\u13be\u13da\u13a2", "h\ua4f3st", "h\u3007st", "h\u0665st"),
        *(
            "h\u03f2st",
            "\u0266ost",
            "ho\u0282t",
            "h\u0473st",
            "h\u0c66st",
            "\U0001f157\U0001f15e\U0001f162\U0001f163",
            "\u3164",
            "\u200b",
        ),
    ],
    ids=ascii,
)
def test_nobody_joins_unseen_or_under_a_name_that_is_made_to_look_like_the_hosts(name: str) -> None:
    hall = Hall()
    number = hall.join(name)
    assert hall.ended[number] == (4003, "Invalid join message")


@pytest.mark.parametrize(
    "name",
    [
        "Ann \u674e",
        "\u30cf\u30eab",
        "\u041b\u0438\u0441\u0430-bot",
        "\u03a3\u03bf\u03c6\u03af\u03b1",
        "Zo\u00eb",
        "\u0645\u06cc\u0646\u0627",
    ],
)
def test_a_name_in_any_script_is_welcome(name: str) -> None:
    hall = Hall()
    hall.join(name)
    assert [agent.name for agent in hall.room.agents] == [name]


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


@pytest.mark.parametrize(
    ("agent_id", "address"), [("ada-new", "192.0.2.1"), ("ada-1", "192.0.2.66")], ids=["other-id", "other-address"]
)
def test_a_name_that_is_taken_stays_with_who_has_it(agent_id: str, address: str) -> None:
    hall = Hall()
    ada = hall.join("ada", "ada-1")
    hall.send(ada, CLAIM)
    hall.forget()
    thief = hall.join("ada", agent_id, address=address)
    assert [frame["message"] for frame in hall.heard(thief)] == ["Invalid join: the name is taken"]
    assert hall.ended == {thief: (4004, "Name taken")}
    assert hall.types(ada) == []
    assert hall.recorded == []
    assert [claim.name for claim in hall.room.claims] == ["ada"]
    assert hall.send(ada, chat())[0]["content"] == "hi"


def test_a_member_takes_its_place_over_with_its_token_and_its_old_connection_is_closed() -> None:
    hall = Hall()
    old, bob = hall.join("ada", "ada-1", resume=""), hall.join("bob")
    token = hall.heard(old)[1]["resume"]
    hall.forget()
    new = hall.join("ada", "ada-1", address="192.0.2.66", resume=token)
    assert hall.ended == {old: (4002, "Replaced by new connection")}
    assert hall.types(bob)[:2] == ["leave", "join"]
    assert hall.send(old, chat()) == []
    hall.do(hall.room.closed(old))
    assert [agent.name for agent in hall.room.agents] == ["bob", "ada"]
    assert hall.heard(new)[1]["resume"] not in {"", token}


@pytest.mark.parametrize("more", [{}, {"resume": ""}, {"resume": "guess"}, {"resume": 7}])
def test_without_its_token_nobody_takes_the_place_of_a_member_that_has_one(more: dict[str, Any]) -> None:
    hall = Hall()
    ada = hall.join("ada", "ada-1", resume="")
    thief = hall.join("ada", "ada-1", **more)
    assert hall.ended == {thief: (4004, "Name taken")}
    assert hall.send(ada, chat())[0]["content"] == "hi"


def test_a_member_that_knows_no_tokens_is_told_of_none() -> None:
    hall = Hall()
    hall.join("ada", resume="")
    assert "resume" not in str(hall.heard(hall.join("bob")))


async def test_a_member_whose_name_is_wanted_leaves_if_it_does_not_say_that_it_lives() -> None:
    hall = Hall()
    ada = hall.join("ada", "ada-1")
    hall.join("ada", "ada-2")
    assert hall.pinged == [ada]
    hall.do(hall.room.ponged(ada))
    await hall.after(20)
    hall.join("ada", "ada-3")
    assert hall.pinged == [ada, ada]
    hall.join("ada", "ada-4")
    assert hall.pinged == [ada, ada]
    await hall.after(10)
    assert [agent.id for agent in hall.room.agents] == ["ada-1"]
    await hall.after(5)
    assert [agent.id for agent in hall.room.agents] == []


@pytest.mark.parametrize(
    "name",
    [
        "Ada",
        "\u0430\u0501\u0430",
        "ad\u0251",
        "ada\u3164",
        "a\u200bda",
        "ada ",
        " ada",
        "ad\u00e1",
        "a.d.a",
        "\uff41da",
    ],
)
def test_a_name_that_looks_like_one_that_is_there_is_refused(name: str) -> None:
    hall = Hall()
    ada = hall.join("ada")
    twin = hall.join(name, "x")
    assert hall.ended == {twin: (4004, "Name taken")}
    hall.do(hall.room.closed(ada))
    assert hall.types(hall.join(name, "x"))[0] == "join"


def test_names_of_pictures_are_told_apart() -> None:
    hall = Hall()
    for number, name in enumerate(("\U0001f98a", "\U0001f43a", "\U0001f98a\u200b")):
        hall.join(name, f"x-{number}")
    assert [agent.name for agent in hall.room.agents] == ["\U0001f98a", "\U0001f43a"]


def test_the_same_member_come_anew_leaves_its_old_connection_open_until_it_speaks() -> None:
    hall = Hall()
    old = hall.join("ada", "ada-1")
    new = hall.join("ada", "ada-1")
    hall.forget()
    assert old not in hall.ended
    hall.send(new, chat("from now"))
    assert [frame["content"] for frame in hall.heard(new)] == ["from now"]
    hall.send(old, chat("from the past"))
    assert hall.heard(old) == []
    assert hall.ended == {old: (4002, "Replaced by new connection")}
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
