"""Programs do not talk to each other for ever, and a text that is posted again is answered once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adapters.atproto.types import Notification, Post
from common.clock import iso
from modules.services.outbox.rules.types import ReplyAdvice
from tests.modules.services.outbox.rules.etiquette_house import OWN, House, like, open_house, reply_to, uri

HOUR, DAY = 3600, 86_400
LOOPS = {"loop-thread-soft", "loop-thread-hard", "loop-pair-soft", "loop-pair-hard"}


async def turns(house: House, *names: str, root: str, answered: bool = True) -> Notification:
    """Everybody in turn speaks in one thread; we answer each if we may. Returns the last post."""
    for name in names:
        subject = chr(0x4E00 + next(house._keys)) * 20
        heard = await house.hear(name, f"{name}: {subject}", root=root, is_bot=name != "ada")
        await house.clock.advance(61)
        if answered:
            await house.answer(heard)
            await house.clock.advance(61)
    return heard


async def runs(house: House, heard: Notification) -> tuple[float, float]:
    """How many automated turns stand in the thread, and between us and the author."""
    said = await house.verdicts(reply_to(heard))
    thread, pair = said["loop-thread-soft"].value, said["loop-pair-soft"].value
    assert isinstance(thread, int)
    assert isinstance(pair, int)
    return thread, pair


async def test_a_talk_with_a_bot_ends_after_six_turns(house: House) -> None:
    last = await turns(house, *["bot"] * 6, root=uri("bot", "root"))
    assert len(house.sender.departures) == 3
    assert await runs(house, last) == (9, 9)
    assert await house.blocked_by(reply_to(last)) == {"loop-thread-soft", "loop-pair-soft"}
    assert await house.blocked_by(like(last.uri)) == set()


async def test_after_twelve_turns_there_is_silence(house: House) -> None:
    last = await turns(house, *["bot"] * 9, root=uri("bot", "root"))
    assert await runs(house, last) == (12, 12)
    assert await house.blocked_by(reply_to(last)) == LOOPS
    assert await house.blocked_by(like(last.uri)) == {"loop-thread-hard", "loop-pair-hard"}


async def test_a_person_who_speaks_up_starts_the_count_afresh(house: House) -> None:
    root = uri("bot", "root")
    await turns(house, *["bot", "bat"] * 5, root=root)
    last = await turns(house, "ada", root=root, answered=False)
    assert await runs(house, last) == (0, 0)
    assert await house.answer(last)
    assert await runs(house, last) == (0, 0)


async def test_with_people_there_is_no_end_to_turns(house: House) -> None:
    for _ in range(2):
        last = await turns(house, *["ada"] * 6, root=uri("ada", "root"))
        await house.clock.advance(3600)
    assert len(house.sender.departures) == 12
    assert await runs(house, last) == (0, 0)


async def test_a_person_who_asks_much_at_once_gets_an_answer_to_each_in_time_and_nobody_waits_for_that(
    house: House,
) -> None:
    asked = [await turns(house, "ada", root=uri("ada", f"question{number}"), answered=False) for number in range(8)]
    assert [await house.answer(question) for question in asked] == [True] * 6 + [False] * 2
    assert await house.blocked_by(reply_to(asked[6])) == {"replies-per-person"}
    assert (await house.etiquette.before_reply(asked[6], [])).act == "later"
    assert await house.answer(await house.hear("bob"))
    assert await house.answer(await house.hear("owner"))
    await house.clock.advance(3660)
    assert [await house.answer(question) for question in asked[6:]] == [True, True]


async def test_what_was_admitted_before_waits_at_departure_too(house: House) -> None:
    asked = [await turns(house, "ada", root=uri("ada", f"question{number}"), answered=False) for number in range(7)]
    held = await house.outbox.submit(replace(reply_to(asked[6]), hold="the owner wants to see it"))
    for question in asked[:6]:
        await house.answer(question)
    await house.outbox.approve(held.intent.id)
    await house.outbox.deliver_due()
    assert len(house.sender.departures) == 6
    await house.drain(3660)
    assert len(house.sender.departures) == 7


async def test_the_pair_is_counted_wherever_it_meets_within_a_day(house: House) -> None:
    for number in range(3):
        last = await turns(house, "bot", root=uri("bot", f"root{number}"))
    assert await runs(house, last) == (2, 6)
    fresh = await house.hear("bot", "a wholly different matter", is_bot=True)
    assert await house.blocked_by(reply_to(fresh)) == {"loop-pair-soft"}
    await house.clock.advance(DAY + 1)
    fresh = await house.hear("bot", "and yet another thing to say", is_bot=True)
    assert await runs(house, fresh) == (1, 1)


async def test_other_bots_have_their_own_count(house: House) -> None:
    await turns(house, *["bot"] * 6, root=uri("bot", "root"))
    other = await house.hear("bat", is_bot=True)
    assert await runs(house, other) == (1, 1)


async def test_a_peer_is_automated_even_without_a_label_and_the_owner_never(house: House) -> None:
    for _ in range(8):
        peer = await house.hear("peer", root=uri("peer", "root"))
        owner = await house.hear("owner", root=uri("owner", "root"), is_bot=True)
    assert await runs(house, peer) == (8, 8)
    assert await runs(house, owner) == (0, 0)


async def test_the_owner_may_ask_for_one_more(house: House) -> None:
    last = await turns(house, *["bot"] * 9, root=uri("bot", "root"))
    assert await house.blocked_by(reply_to(last, by_owner=True)) == set()


async def test_what_a_bot_dates_back_does_not_hide_from_the_count(house: House) -> None:
    root = uri("bot", "root")
    await turns(house, "ada", root=root)
    for number in range(6):
        heard = await house.hear("bot", f"{number}", root=root, is_bot=True)
        await house.clock.advance(60)
    await house.database.run(
        lambda connection: connection.execute(
            "UPDATE pending_notifications SET indexed_at = '2020-01-01T00:00:00.000Z' WHERE author_did = ?",
            (heard.author.did,),
        )
    )
    assert (await runs(house, heard))[0] == 7


async def test_a_reply_that_still_waits_counts_as_a_turn(house: House) -> None:
    heard = await house.hear("bot", is_bot=True)
    assert (await house.outbox.submit(reply_to(heard))).accepted
    assert await runs(house, heard) == (2, 2)


def seen(notification: Notification, *names: str) -> list[Post]:
    """A thread as it was read: posts by these, oldest first; `bot…` carries the label."""
    authors = [notification.author if name == "" else None for name in names]
    return [
        Post(
            uri=uri(name or "x", f"t{number}"),
            cid="cid",
            author=author
            or type(notification.author)(
                OWN if name == "us" else f"did:plc:{name}", f"{name}.example", is_bot=name.startswith("bot")
            ),
            text="words",
            created_at=notification.created_at,
        )
        for number, (name, author) in enumerate(zip(names, authors, strict=True))
    ]


@pytest.mark.parametrize(
    ("names", "act"),
    [
        (["ada"], "free"),
        (["ada", *["bot1", "bot2"] * 2, "bot3"], "free"),
        (["ada", *["bot1", "bot2"] * 3], "like"),
        (["ada", *["bot1", "peer", "us"] * 2], "like"),
        (["bot1", "us"] * 6, "silence"),
        ([*["bot1", "us"] * 6, "ada"], "free"),
        ([*["bot1", "us"] * 6, "owner"], "free"),
    ],
)
async def test_turns_of_third_bots_are_seen_in_the_thread_that_was_read(
    house: House, names: list[str], act: str
) -> None:
    heard = await house.hear("bot1", is_bot=True)
    outlook = await house.etiquette.before_reply(heard, seen(heard, *names))
    assert outlook.act == act
    assert outlook.reason.startswith("loop-thread") or act == "free"


async def test_the_owner_is_met_whatever_bots_say(house: House) -> None:
    heard = await house.hear("owner")
    assert await house.etiquette.before_reply(heard, seen(heard, *["bot1"] * 20)) == ReplyAdvice()


async def test_before_anybody_thinks_the_rows_are_asked_too(tmp_path: Path) -> None:
    async with open_house(tmp_path, born_at=None) as house:
        for number in range(6):
            await house.answer(await house.hear(f"p{number}"))
        heard = await house.hear("ada")
        outlook = await house.etiquette.before_reply(heard, [])
        assert (outlook.act, outlook.retry_in_s) == ("later", 600)
        assert outlook.reason == "strangers-while-young: 6 people already, the limit is 6"
        assert await house.etiquette.before_reply(await house.hear("peer"), []) == ReplyAdvice()


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("Which roof is the louder one in rain?", "Which roof is the louder one in rain?", True),
        ("Which roof is the louder one in rain?", "@soul.example which roof is the louder one, in rain?? 🌧️", True),
        ("Which roof is the louder one in rain?", "Which roof is the loudest one in rain?", True),
        ("Which roof is the louder one in rain?", "Which roof would you choose for a shed?", False),
        ("What is 17 times 3?", "What is 19 times 42?", False),
        ("Tin?", "tin", True),
        ("Tin?", "Ton?", False),
    ],
)
async def test_a_near_identical_text_of_the_same_author_is_answered_once(
    house: House, first: str, second: str, *, alike: bool
) -> None:
    assert await house.answer(await house.hear("ada", first))
    again = await house.hear("ada", second)
    assert await house.blocked_by(reply_to(again)) == ({"repost-sense"} if alike else set())
    assert await house.blocked_by(like(again.uri)) == set()
    assert (await house.etiquette.before_reply(again, [])).act == ("like" if alike else "free")
    assert await house.blocked_by(reply_to(await house.hear("bea", second))) == set()
    await house.clock.advance(DAY + 1)
    assert await house.blocked_by(reply_to(again)) == set()


async def test_what_was_not_answered_may_be_posted_again(house: House) -> None:
    await house.hear("ada", "Which roof is the louder one in rain?")
    again = await house.hear("ada", "Which roof is the louder one in rain?")
    assert await house.blocked_by(reply_to(again)) == set()


async def test_a_short_question_may_be_asked_again_elsewhere(house: House) -> None:
    root = uri("ada", "root")
    assert await house.answer(await house.hear("ada", "why?", root=root, parent=uri("soul", "1")))
    elsewhere = await house.hear("ada", "why?", root=root, parent=uri("soul", "2"))
    same_place = await house.hear("ada", "why?", root=root, parent=uri("soul", "1"))
    assert await house.blocked_by(reply_to(elsewhere)) == set()
    assert await house.blocked_by(reply_to(same_place)) == {"repost-sense"}


async def test_the_owner_may_repeat_himself(house: House) -> None:
    assert await house.answer(await house.hear("owner", "How are you, all in all?"))
    assert await house.blocked_by(reply_to(await house.hear("owner", "How are you, all in all?"))) == set()


async def test_the_moments_of_the_rows_are_those_of_our_clock(house: House) -> None:
    heard = await house.hear("ada")
    await house.answer(heard)
    rows = await house.database.run(
        lambda connection: [tuple(row) for row in connection.execute("SELECT sent_at, first_sent_at FROM intents")]
    )
    assert rows == [(iso(house.clock.now()),) * 2]
