"""Programs do not talk to each other for ever, and a text that is posted again is answered once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adapters.atproto.types import Notification, Post
from modules.services.outbox.rules.types import ReplyAdvice
from tests.modules.services.outbox.rules.etiquette_outbox import (
    OWN,
    EtiquetteOutbox,
    like,
    open_etiquette_outbox,
    reply_to,
    uri,
)

HOUR, DAY = 3600, 86_400
LOOPS = {"loop-thread-soft", "loop-thread-hard", "loop-pair-soft", "loop-pair-hard"}


async def turns(etiquette_outbox: EtiquetteOutbox, *names: str, root: str, answered: bool = True) -> Notification:
    """Everybody in turn speaks in one thread; we answer each if we may. Returns the last post."""
    for name in names:
        subject = chr(0x4E00 + next(etiquette_outbox._keys)) * 20
        received = await etiquette_outbox.receive(name, f"{name}: {subject}", root=root, is_bot=name != "ada")
        await etiquette_outbox.clock.advance(61)
        if answered:
            await etiquette_outbox.answer(received)
            await etiquette_outbox.clock.advance(61)
    return received


async def runs(etiquette_outbox: EtiquetteOutbox, received: Notification) -> tuple[float, float]:
    """How many automated turns stand in the thread, and between us and the author."""
    said = await etiquette_outbox.verdicts(reply_to(received))
    thread, pair = said["loop-thread-soft"].value, said["loop-pair-soft"].value
    assert isinstance(thread, int)
    assert isinstance(pair, int)
    return thread, pair


async def test_a_talk_with_a_bot_ends_after_six_turns(etiquette_outbox: EtiquetteOutbox) -> None:
    last = await turns(etiquette_outbox, *["bot"] * 6, root=uri("bot", "root"))
    assert len(etiquette_outbox.sender.departures) == 3
    assert await runs(etiquette_outbox, last) == (9, 9)
    assert await etiquette_outbox.blocked_by(reply_to(last)) == {"loop-thread-soft", "loop-pair-soft"}
    assert await etiquette_outbox.blocked_by(like(last.uri)) == set()


async def test_after_twelve_turns_there_is_silence(etiquette_outbox: EtiquetteOutbox) -> None:
    last = await turns(etiquette_outbox, *["bot"] * 9, root=uri("bot", "root"))
    assert await runs(etiquette_outbox, last) == (12, 12)
    assert await etiquette_outbox.blocked_by(reply_to(last)) == LOOPS
    assert await etiquette_outbox.blocked_by(like(last.uri)) == {"loop-thread-hard", "loop-pair-hard"}


async def test_a_person_who_speaks_up_starts_the_count_afresh(etiquette_outbox: EtiquetteOutbox) -> None:
    root = uri("bot", "root")
    await turns(etiquette_outbox, *["bot", "bat"] * 5, root=root)
    last = await turns(etiquette_outbox, "ada", root=root, answered=False)
    assert await runs(etiquette_outbox, last) == (0, 0)
    assert await etiquette_outbox.answer(last)
    assert await runs(etiquette_outbox, last) == (0, 0)


async def test_a_person_who_asks_much_at_once_gets_an_answer_to_each_in_time_and_nobody_waits_for_that(
    etiquette_outbox: EtiquetteOutbox,
) -> None:
    asked = [
        await turns(etiquette_outbox, "ada", root=uri("ada", f"question{number}"), answered=False)
        for number in range(8)
    ]
    assert [await etiquette_outbox.answer(question) for question in asked] == [True] * 6 + [False] * 2
    assert await etiquette_outbox.blocked_by(reply_to(asked[6])) == {"replies-per-person"}
    assert (await etiquette_outbox.etiquette.before_reply(asked[6], [])).act == "later"
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("bob"))
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("owner"))
    await etiquette_outbox.clock.advance(3660)
    assert [await etiquette_outbox.answer(question) for question in asked[6:]] == [True, True]


@pytest.mark.slow
async def test_nobody_but_the_owner_gets_more_than_sixty_answers_a_day(etiquette_outbox: EtiquetteOutbox) -> None:
    for number in range(60):
        await etiquette_outbox.clock.advance(660)
        asked = await turns(etiquette_outbox, "ada", root=uri("ada", f"question{number}"), answered=False)
        assert await etiquette_outbox.answer(asked)
    await etiquette_outbox.clock.advance(3660)
    asked = await turns(etiquette_outbox, "ada", root=uri("ada", "one-more"), answered=False)
    assert await etiquette_outbox.blocked_by(reply_to(asked)) == {"replies-per-day"}
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("owner"))
    await etiquette_outbox.clock.advance(86_400)
    assert await etiquette_outbox.answer(asked)


async def test_what_was_admitted_before_waits_at_departure_too(etiquette_outbox: EtiquetteOutbox) -> None:
    asked = [
        await turns(etiquette_outbox, "ada", root=uri("ada", f"question{number}"), answered=False)
        for number in range(7)
    ]
    held = await etiquette_outbox.outbox.submit(replace(reply_to(asked[6]), hold="the owner wants to see it"))
    for question in asked[:6]:
        await etiquette_outbox.answer(question)
    await etiquette_outbox.outbox.approve(held.intent.id)
    await etiquette_outbox.outbox.deliver_due()
    assert len(etiquette_outbox.sender.departures) == 6
    await etiquette_outbox.drain(3660)
    assert len(etiquette_outbox.sender.departures) == 7


async def test_the_pair_is_counted_wherever_it_meets_within_a_day(etiquette_outbox: EtiquetteOutbox) -> None:
    for number in range(3):
        last = await turns(etiquette_outbox, "bot", root=uri("bot", f"root{number}"))
    assert await runs(etiquette_outbox, last) == (2, 6)
    fresh = await etiquette_outbox.receive("bot", "a wholly different matter", is_bot=True)
    assert await etiquette_outbox.blocked_by(reply_to(fresh)) == {"loop-pair-soft"}
    await etiquette_outbox.clock.advance(DAY + 1)
    fresh = await etiquette_outbox.receive("bot", "and yet another thing to say", is_bot=True)
    assert await runs(etiquette_outbox, fresh) == (1, 1)


async def test_a_peer_is_automated_even_without_a_label_and_the_owner_never(etiquette_outbox: EtiquetteOutbox) -> None:
    for _ in range(8):
        peer = await etiquette_outbox.receive("peer", root=uri("peer", "root"))
        owner = await etiquette_outbox.receive("owner", root=uri("owner", "root"), is_bot=True)
    assert await runs(etiquette_outbox, peer) == (8, 8)
    assert await runs(etiquette_outbox, owner) == (0, 0)


async def test_the_owner_may_ask_for_one_more(etiquette_outbox: EtiquetteOutbox) -> None:
    last = await turns(etiquette_outbox, *["bot"] * 9, root=uri("bot", "root"))
    assert await etiquette_outbox.blocked_by(reply_to(last, by_owner=True)) == set()


async def test_what_a_bot_dates_back_does_not_hide_from_the_count(etiquette_outbox: EtiquetteOutbox) -> None:
    root = uri("bot", "root")
    await turns(etiquette_outbox, "ada", root=root)
    for number in range(6):
        received = await etiquette_outbox.receive("bot", f"{number}", root=root, is_bot=True)
        await etiquette_outbox.clock.advance(60)
    await etiquette_outbox.database.run(
        lambda connection: connection.execute(
            "UPDATE pending_notifications SET indexed_at = '2020-01-01T00:00:00.000Z' WHERE author_did = ?",
            (received.author.did,),
        )
    )
    assert (await runs(etiquette_outbox, received))[0] == 7


async def test_a_reply_that_still_waits_counts_as_a_turn(etiquette_outbox: EtiquetteOutbox) -> None:
    received = await etiquette_outbox.receive("bot", is_bot=True)
    assert (await etiquette_outbox.outbox.submit(reply_to(received))).accepted
    assert await runs(etiquette_outbox, received) == (2, 2)


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
    ],
)
async def test_turns_of_third_bots_are_seen_in_the_thread_that_was_read(
    etiquette_outbox: EtiquetteOutbox, names: list[str], act: str
) -> None:
    received = await etiquette_outbox.receive("bot1", is_bot=True)
    outlook = await etiquette_outbox.etiquette.before_reply(received, seen(received, *names))
    assert outlook.act == act
    assert outlook.reason.startswith("loop-thread") or act == "free"


async def test_before_anybody_thinks_the_rows_are_asked_too(tmp_path: Path) -> None:
    async with open_etiquette_outbox(tmp_path, born_at=None) as etiquette_outbox:
        for number in range(6):
            await etiquette_outbox.answer(await etiquette_outbox.receive(f"p{number}"))
        received = await etiquette_outbox.receive("ada")
        outlook = await etiquette_outbox.etiquette.before_reply(received, [])
        assert (outlook.act, outlook.retry_in_s) == ("later", 600)
        assert outlook.reason == "strangers-while-young: 6 people already, the limit is 6"
        assert (
            await etiquette_outbox.etiquette.before_reply(await etiquette_outbox.receive("peer"), []) == ReplyAdvice()
        )


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("Which roof is the louder one in rain?", "@soul.example which roof is the louder one, in rain?? 🌧️", True),
        ("Which roof is the louder one in rain?", "Which roof is the loudest one in rain?", True),
        ("Which roof is the louder one in rain?", "Which roof would you choose for a shed?", False),
        ("What is 17 times 3?", "What is 19 times 42?", False),
        ("Tin?", "Ton?", False),
    ],
)
async def test_a_near_identical_text_of_the_same_author_is_answered_once(
    etiquette_outbox: EtiquetteOutbox, first: str, second: str, *, alike: bool
) -> None:
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("ada", first))
    again = await etiquette_outbox.receive("ada", second)
    assert await etiquette_outbox.blocked_by(reply_to(again)) == ({"repost-sense"} if alike else set())
    assert await etiquette_outbox.blocked_by(like(again.uri)) == set()
    assert (await etiquette_outbox.etiquette.before_reply(again, [])).act == ("like" if alike else "free")
    assert await etiquette_outbox.blocked_by(reply_to(await etiquette_outbox.receive("bea", second))) == set()
    await etiquette_outbox.clock.advance(DAY + 1)
    assert await etiquette_outbox.blocked_by(reply_to(again)) == set()


async def test_what_was_not_answered_may_be_posted_again(etiquette_outbox: EtiquetteOutbox) -> None:
    await etiquette_outbox.receive("ada", "Which roof is the louder one in rain?")
    again = await etiquette_outbox.receive("ada", "Which roof is the louder one in rain?")
    assert await etiquette_outbox.blocked_by(reply_to(again)) == set()


async def test_a_short_question_may_be_asked_again_elsewhere(etiquette_outbox: EtiquetteOutbox) -> None:
    root = uri("ada", "root")
    assert await etiquette_outbox.answer(
        await etiquette_outbox.receive("ada", "why?", root=root, parent=uri("soul", "1"))
    )
    elsewhere = await etiquette_outbox.receive("ada", "why?", root=root, parent=uri("soul", "2"))
    same_place = await etiquette_outbox.receive("ada", "why?", root=root, parent=uri("soul", "1"))
    assert await etiquette_outbox.blocked_by(reply_to(elsewhere)) == set()
    assert await etiquette_outbox.blocked_by(reply_to(same_place)) == {"repost-sense"}
