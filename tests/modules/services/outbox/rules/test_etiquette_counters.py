"""No counter is passed: not by a burst, not by a backlog, not by the owner's late yes, not after the clock was set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from modules.services.outbox.bodies import DeleteBody, RecordRef, ReplyBody
from modules.services.outbox.rules.policy import authority
from modules.services.outbox.rules.rules import POINTS_PER_HOUR
from modules.services.outbox.types import ProposedAction, Verdict
from tests.modules.services.outbox.rules.etiquette_house import (
    OWN,
    OWNER,
    House,
    like,
    open_house,
    reply_to,
    uri,
    words,
)

HOUR, DAY = 3600, 86_400
FULL = int(POINTS_PER_HOUR.limit)


@pytest.mark.parametrize(
    ("spent", "ago_s", "blocked"),
    [
        (FULL - 3, 0, set()),
        (FULL - 2, 0, {"points-per-hour"}),
        (FULL, HOUR - 1, {"points-per-hour"}),
        (FULL, HOUR + 1, set()),
        (28_000 - 3, 2 * HOUR, set()),
        (28_000 - 2, 2 * HOUR, {"points-per-day"}),
        (28_000, DAY + 1, set()),
        (FULL, -HOUR + 1, {"points-per-hour"}),
        (FULL, -HOUR - 1, set()),
    ],
)
async def test_at_the_door_what_would_pass_the_points_is_refused(
    house: House, spent: int, ago_s: float, blocked: set[str]
) -> None:
    heard = await house.hear("ada")
    await house.spend(spent, ago_s=ago_s)
    assert await house.blocked_by(like(heard.uri)) == blocked


async def test_what_waits_counts_at_the_door_and_a_deletion_counts_least(house: House) -> None:
    heard = await house.hear("ada")
    await house.outbox.submit(like(heard.uri))
    await house.spend(FULL - 4)
    assert await house.blocked_by(reply_to(heard)) == {"points-per-hour"}
    assert await house.blocked_by(ProposedAction(DeleteBody(uri=f"at://{OWN}/app.bsky.feed.post/1"))) == set()


async def test_what_was_admitted_waits_until_the_window_frees(house: House) -> None:
    heard = await house.hear("ada")
    await house.outbox.submit(like(heard.uri))
    await house.spend(FULL - 2, ago_s=600)
    await house.spend(100)
    began = house.clock.now()
    report = await house.outbox.deliver_due()
    assert report.next_in_s == pytest.approx(HOUR - 600, abs=1)
    await house.drain(HOUR, step_s=30)
    ((left, _),) = house.sender.departures
    assert timedelta(seconds=HOUR - 600) <= left - began <= timedelta(seconds=HOUR - 570)


async def test_every_try_counts_and_not_only_the_acts(house: House) -> None:
    heard = await house.hear("ada")
    submitted = await house.outbox.submit(like(heard.uri))
    await house.outbox.deliver_due()
    await house.database.run(
        lambda connection: connection.execute(
            "UPDATE intents SET attempts = 2, deferrals = 1 WHERE id = ?", (submitted.intent.id,)
        )
    )
    other = await house.hear("bea")
    assert (await house.verdicts(like(other.uri)))["points-per-hour"].value == 12


async def test_at_ten_times_the_speed_the_windows_are_a_tenth(tmp_path: Path) -> None:
    async with open_house(tmp_path, speed=10) as house:
        heard = await house.hear("ada")
        await house.spend(FULL)
        assert await house.blocked_by(like(heard.uri)) == {"points-per-hour"}
        await house.clock.advance(HOUR / 10 + 1)
        assert await house.blocked_by(like(heard.uri)) == set()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Slate remembers the rain.", True),
        ("SLATE remembers the rain!!! 🌧️", True),
        ("@bea.example Slate remembers the rain 2 https://x.example", True),
        ("Ｓｌａｔｅ remembers the rain", True),  # noqa: RUF001 - wide letters are the point
        ("Tin remembers the rain.", False),
    ],
)
async def test_the_same_words_leave_twice_a_day(house: House, text: str, *, same: bool) -> None:
    assert await house.answer(await house.hear("cy"), "Slate remembers the rain.")
    assert await house.answer(await house.hear("dee"), "slate remembers, the rain 7")
    assert await house.blocked_by(reply_to(await house.hear("bea"), text)) == ({"same-reply"} if same else set())
    await house.clock.advance(DAY + 1)
    assert await house.blocked_by(reply_to(await house.hear("bea"), text)) == set()


async def test_texts_of_signs_alone_are_compared_as_they_are(house: House) -> None:
    for name, text in (("cy", "🌧️"), ("dee", "🌧️ "), ("eve", "🌞")):
        await house.outbox.submit(reply_to(await house.hear(name), text))
    assert (await house.verdicts(reply_to(await house.hear("bea"), " 🌞")))["same-reply"].value == 1


@pytest.mark.parametrize(("age_days", "limit"), [(None, 6), (-1, 6), (0, 6), (13.9, 6), (14.1, 20), (3000, 20)])
async def test_a_young_account_replies_to_few_strangers_an_hour(
    tmp_path: Path, age_days: float | None, limit: int
) -> None:
    async with open_house(tmp_path) as somewhere:
        now = somewhere.clock.now()
    born_at = None if age_days is None else now - timedelta(days=age_days)
    async with open_house(tmp_path, born_at=born_at) as house:
        replied = [await house.answer(await house.hear(f"p{number}")) for number in range(limit + 3)]
        assert replied == [True] * limit + [False] * 3
        assert await house.answer(await house.hear("p0", "And on tin, then?"))
        await house.clock.advance(HOUR + 1)
        assert await house.answer(await house.hear("late"))


async def test_owner_and_peers_are_no_strangers(house: House) -> None:
    for number in range(20):
        assert await house.answer(await house.hear(f"p{number}"))
    assert not await house.answer(await house.hear("one-more"))
    for name in ("owner", "peer"):
        assert await house.answer(await house.hear(name))


async def approved_late(house: House, count: int) -> None:
    """Replies to strangers that the owner allows all at once."""
    for number in range(count):
        await house.outbox.submit(reply_to(await house.hear(f"p{number}"), words(number)))
    await house.database.run(
        lambda connection: connection.execute("UPDATE intents SET state = 'pending', error = NULL")
    )


async def test_a_late_yes_to_many_drafts_does_not_pass_the_limit_on_strangers(tmp_path: Path) -> None:
    def ask_the_owner(*_: object) -> Sequence[Verdict]:
        return [Verdict("approval", "hold", "the owner wants to see it first")]

    async with open_house(tmp_path, born_at=None, more_rules=[ask_the_owner]) as house:
        await approved_late(house, 20)
        await house.drain(4 * HOUR, step_s=300)
        left = [(moment, authority(intent.target)) for moment, intent in house.sender.departures]
        assert len(left) == 20
        for moment, _ in left:
            assert len({who for other, who in left if moment <= other < moment + timedelta(hours=1)}) <= 6


async def test_while_strangers_wait_the_owner_does_not(tmp_path: Path) -> None:
    async with open_house(tmp_path, born_at=None) as house:
        for number in range(6):
            assert await house.answer(await house.hear(f"p{number}"))
        await approved_late(house, 0)
        heard = await house.hear("owner")
        assert authority(heard.uri) == OWNER
        assert await house.answer(heard)


async def test_the_same_stranger_counts_once_however_often(house: House) -> None:
    for number in range(5):
        assert await house.answer(await house.hear("ada", f"question {number}: {'x' * 10 * number}?"))
    assert (await house.verdicts(reply_to(await house.hear("bea"))))["strangers"].value == 1


async def test_an_unheard_of_post_has_its_author_counted_too(house: House) -> None:
    asked = ProposedAction(
        ReplyBody(
            text="hi", parent=RecordRef(uri=uri("ada", "x"), cid="cid"), root=RecordRef(uri=uri("ada", "x"), cid="cid")
        ),
        by_owner=True,
    )
    await house.outbox.submit(asked)
    assert (await house.verdicts(reply_to(await house.hear("bea"))))["strangers"].value == 1
