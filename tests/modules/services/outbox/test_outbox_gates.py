"""The gates: asked before each departure, first or repeated, and what waits behind them is neither lost nor hurried."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime

import pytest

from common.constants import BACKLOG_AGE_MS, BACKLOG_SPACING_MS
from common.result import ApiResult, Ok
from modules.services.outbox.delivery import BROKEN_GATE_WAIT_S
from modules.services.outbox.types import Intent, Sent, Wait
from tests.modules.services.outbox.outbox_house import NO_PACING, Fault, House, like, post, reply

OLD_S = BACKLOG_AGE_MS / 1000 + 60


def thread(number: int) -> str:
    return f"at://did:plc:ada/app.bsky.feed.post/{number}"


class Bar:
    """A gate with a switch, for those intents that it is meant for."""

    def __init__(self, seconds: float = 30, only: Callable[[Intent], bool] = lambda _: True) -> None:
        self.shut = True
        self.seconds = seconds
        self._only = only
        self.asked = 0

    def __call__(self, _: sqlite3.Connection, intent: Intent, __: datetime) -> Wait | None:
        self.asked += 1
        return Wait("the bar is down", self.seconds) if self.shut and self._only(intent) else None


Gate = Callable[[sqlite3.Connection, Intent, datetime], Wait | None]


async def under(house: House, *gates: Gate) -> None:
    house.gates = gates
    await house.restart()


async def test_a_shut_gate_lets_nothing_leave_and_says_when_to_ask_again(house: House) -> None:
    bar = Bar()
    await under(house, bar)
    intent = (await house.outbox.submit(post("words"))).intent
    report = await house.outbox.deliver_due()
    assert (report.done, report.put_off, report.next_in_s) == (0, 0, 30)
    kept = await house.outbox.get(intent.id)
    assert kept is not None
    assert (kept.state, kept.attempts, kept.deferrals) == ("pending", 0, 0)
    bar.shut = False
    assert (await house.outbox.deliver_due()).done == 1


async def test_the_longest_of_several_waits_counts(house: House) -> None:
    await under(house, Bar(30), Bar(300), Bar(3))
    await house.outbox.submit(post("words"))
    assert (await house.outbox.deliver_due()).next_in_s == 300


async def test_who_must_wait_at_a_gate_stands_behind_the_others(house: House) -> None:
    house.pacing = NO_PACING
    await under(house, Bar(only=lambda intent: intent.kind == "reply"))
    answer = (await house.outbox.submit(reply(thread(1), "answer"))).intent
    words = (await house.outbox.submit(post("words"))).intent
    report = await house.outbox.deliver_due()
    assert house.service.writes == [words.rkey]
    assert report.next_in_s == 30
    assert answer.rkey not in house.service.records


async def test_waiting_at_a_gate_is_told_once(house: House) -> None:
    await under(house, Bar())
    await house.outbox.submit(post("words"))
    for _ in range(5):
        await house.outbox.deliver_due()
        await house.clock.advance(30)
    assert [line for line in house.messages() if "bar" in line] == ["Waiting to send post: words | the bar is down"]


async def test_the_end_of_a_limit_is_told_where_the_gate_knows_it(house: House) -> None:
    await under(house, lambda _connection, _intent, _now: Wait("likes: 60 an hour are enough for now", 1500, ends=True))
    await house.outbox.submit(post("words"))
    await house.outbox.deliver_due()
    told = [line for line in house.messages() if "likes" in line]
    assert told == ["Waiting to send post: words | likes: 60 an hour are enough for now; it can leave in 25 min"]


async def test_no_gate_is_asked_about_what_the_pace_keeps_anyway(house: House) -> None:
    bar = Bar()
    bar.shut = False
    await under(house, bar)
    await house.outbox.submit(post("one"))
    await house.outbox.deliver_due()
    await house.outbox.submit(post("two"))
    before = bar.asked
    await house.outbox.deliver_due()
    assert bar.asked == before


@pytest.mark.parametrize("fault", ["lost_request", "lost_answer"])
async def test_an_unknown_outcome_is_not_even_looked_after_while_the_gate_is_shut(house: House, fault: Fault) -> None:
    bar = Bar()
    bar.shut = False
    await under(house, bar)
    house.service.faults.append(fault)
    intent = (await house.outbox.submit(post("once"))).intent
    await house.outbox.deliver_due()
    written = list(house.service.writes)
    bar.shut = True
    await house.drain(3600, step_s=60)
    assert house.service.writes == written
    kept = await house.outbox.get(intent.id)
    assert kept is not None
    assert (kept.state, kept.attempts) == ("sending", 1)
    bar.shut = False
    await house.drain(120)
    assert house.service.writes == [intent.rkey]


async def test_a_gate_that_shuts_while_we_look_keeps_the_repeat_in(house: House) -> None:
    bar = Bar()
    bar.shut = False

    class SlowToFind:
        async def send(self, _: Intent) -> ApiResult[Sent]:
            raise AssertionError("it left")

        async def find(self, _: Intent) -> ApiResult[Sent | None]:
            bar.shut = True
            return Ok(None)

    await under(house, bar)
    intent = (await house.outbox.submit(post("once"))).intent
    await house.die_while_sending()
    house.senders["post"] = SlowToFind()
    await under(house, bar)
    report = await house.outbox.deliver_due()
    assert (report.put_off, report.next_in_s) == (1, 30)
    kept = await house.outbox.get(intent.id)
    assert kept is not None
    assert (kept.state, kept.attempts) == ("sending", 0)


async def test_a_gate_that_breaks_is_shut(house: House) -> None:
    class Broken:
        def __call__(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:
            connection.execute("SELECT * FROM nowhere")
            return None

    house.gates = (Broken(),)
    await house.restart()
    await house.outbox.submit(post("words"))
    assert (await house.outbox.deliver_due()).next_in_s == BROKEN_GATE_WAIT_S
    assert house.service.writes == []
    assert "the gate Broken failed" in house.messages()[-1]


async def test_stale_work_dies_behind_a_shut_gate(house: House) -> None:
    await under(house, Bar())
    await house.outbox.submit(reply(thread(1), "too late"))
    await house.clock.advance(6 * 3600)
    assert (await house.outbox.deliver_due()).expired == 1


async def test_what_grew_old_behind_a_gate_leaves_at_the_slow_pace_of_a_backlog(house: House) -> None:
    house.pacing = NO_PACING
    bar = Bar()
    await under(house, bar)
    for number in range(3):
        await house.outbox.submit(like(thread(number)))
    await house.drain(OLD_S, step_s=30)
    bar.shut = False
    await house.outbox.deliver_due()
    assert len(house.service.writes) == 1
    await house.clock.advance(BACKLOG_SPACING_MS / 1000 - 1)
    await house.outbox.deliver_due()
    assert len(house.service.writes) == 1
    await house.clock.advance(1)
    await house.outbox.deliver_due()
    assert len(house.service.writes) == 2


async def test_what_is_young_when_the_gate_opens_leaves_at_once(house: House) -> None:
    house.pacing = NO_PACING
    bar = Bar()
    await under(house, bar)
    await house.drain(OLD_S, step_s=60)
    for number in range(3):
        await house.outbox.submit(like(thread(number)))
    await house.outbox.deliver_due()
    bar.shut = False
    assert (await house.outbox.deliver_due()).done == 3
