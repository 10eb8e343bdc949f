"""The owner who asks about their own data is told what there is and which command does it; a visitor is anybody."""

from __future__ import annotations

import asyncio

from modules.services.rights.requests import ForgetRequests
from tests.running_town import RunningTown, awake
from tests.scenarios.phone import Phone, look
from tests.scenarios.test_scenario_rights import TALK, WORDS, answering, asked_of, forget_now, home_of
from tests.soul.commands.test_forget_command import places_that_hold


async def test_the_owner_is_told_what_there_is_and_which_command_does_it_on_bluesky_and_by_message(
    running_town: RunningTown,
) -> None:
    home, owner = home_of(running_town), running_town.account("owner")
    running_town.mind.answer = answering({"know about me": "know", "forget me": "forget", "leave me": "no_reply"})
    phone = Phone(running_town, "owner", "rowan")
    phone.is_followed()
    async with awake(home) as soul:
        running_town.network.post_as(owner, "@rowan.test what do you know about me?")
        running_town.network.post_as(owner, "@rowan.test forget me, please")
        await soul.look()
        phone.says("what do you know about me?")
        await look(soul)
        forgotten, known = sorted(running_town.texts("rowan"), key=lambda text: "soul know" in text)
        (by_message,) = phone.answers
        assert ForgetRequests(home.memory).all() == []
        running_town.network.post_as(owner, "@rowan.test please leave me alone now")
        await soul.look()
    for said in (known, by_message):
        assert "posts and messages of yours that reached me: " in said
        assert "soul know owner.test" in said
    assert "soul run --flush-all" in forgotten
    assert running_town.texts("rowan")[2] == TALK.format(1), "an order is for a turn"


async def test_what_the_owner_orders_is_not_read_for_a_request_about_their_own_data_first(
    running_town: RunningTown,
) -> None:
    home, owner = home_of(running_town), running_town.account("owner")
    running_town.mind.answer = answering({})
    async with awake(home) as soul:
        for order in ("please comment on issue 3 of my garden", "delete that post of yours, please"):
            running_town.network.post_as(owner, f"@rowan.test {order}")
            await soul.look()
    assert asked_of(running_town, "rights-request") == []
    assert running_town.texts("rowan") == [TALK.format(1), TALK.format(2)]


async def test_where_visitors_use_the_owner_s_account_they_are_answered_as_anybody(running_town: RunningTown) -> None:
    home, owner = home_of(running_town, OWNER_IS_VISITOR="on"), running_town.account("owner")
    said = "Within the hour I know nothing of you any more."
    running_town.mind.answer = answering({"forget me": "forget"}, said)
    running_town.network.post_as(owner, f"@rowan.test {WORDS}: which roof is louder?")
    async with awake(home) as soul:
        await soul.look()
        running_town.network.post_as(owner, "@rowan.test forget me, please")
        await soul.look()
        assert [one.did for one in ForgetRequests(home.memory).all()] == [owner]
    assert running_town.texts("rowan") == [TALK.format(1), said]
    await asyncio.to_thread(forget_now, home)
    assert places_that_hold(home.root / ".memory", WORDS, said) == []
    async with awake(home) as soul:
        running_town.network.post_as(owner, "@rowan.test and which roof is louder now?")
        await soul.look()
    assert running_town.texts("rowan")[2:] == [TALK.format(2)]
