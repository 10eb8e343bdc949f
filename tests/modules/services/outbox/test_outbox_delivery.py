"""The way out: at its pace, exactly once, whatever the service answers and whenever the process dies."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass, replace
from typing import NoReturn

import pytest

from common.constants import OUTBOX_MAX_ATTEMPTS
from common.errors import Fatal, StorageError
from common.result import ApiResult, Ok
from modules.services.outbox.types import Intent, IntentState, ProposedAction, Sent
from tests.journals import told_of
from tests.modules.services.outbox.outbox_house import NO_PACING, Fault, House, like, post, reply

HOUR = 3600


def thread(number: int) -> str:
    return f"at://did:plc:ada/app.bsky.feed.post/{number}"


async def submit(house: House, draft: ProposedAction) -> Intent:
    submitted = await house.outbox.submit(draft)
    assert submitted.accepted, submitted.reason
    return submitted.intent


async def now_as(house: House, intent: Intent) -> Intent:
    found = await house.outbox.get(intent.id)
    assert found is not None
    return found


async def test_the_row_says_sending_before_the_request_leaves(house: House) -> None:
    seen: list[IntentState] = []

    class Looking:
        async def send(self, intent: Intent) -> ApiResult[Sent]:
            with sqlite3.connect(house.path) as other:
                seen.extend(row[0] for row in other.execute("SELECT state FROM intents WHERE id = ?", (intent.id,)))
            other.close()
            return Ok(Sent("at://x", "c"))

        async def find(self, _: Intent) -> ApiResult[Sent | None]:
            return Ok(None)

    house.senders["post"] = Looking()
    await house.restart()
    await submit(house, post("hello"))
    assert (await house.outbox.deliver_due()).done == 1
    assert seen == ["sending"]


async def test_what_was_sent_is_done_with_its_address_and_told(house: House) -> None:
    intent = await submit(house, reply(thread(1), "hello there"))
    report = await house.outbox.deliver_due()
    after = await now_as(house, intent)
    assert (report.done, report.next_in_s) == (1, None)
    assert (after.state, after.error) == ("done", None)
    assert after.result_uri is not None
    assert after.result_uri.endswith(intent.rkey)
    assert house.service.records[intent.rkey]["text"] == "hello there"
    assert house.messages() == [
        "Queued reply: hello there | ",
        "Sending reply: hello there | ",
        f"Sent reply: hello there | {after.result_uri}",
    ]
    assert [entry.entry.summary for entry in await told_of(house.journal, after.id)] == [
        "Queued reply: hello there",
        "Sending reply: hello there",
        "Sent reply: hello there",
    ]


@pytest.mark.parametrize("fault", ["lost_request", "lost_answer"])
async def test_after_an_unknown_outcome_it_looks_first_and_writes_at_most_once(house: House, fault: Fault) -> None:
    house.service.faults.append(fault)
    intent = await submit(house, post("once"))
    assert (await house.outbox.deliver_due()).put_off == 1
    assert (await now_as(house, intent)).state == "sending"
    await house.drain(60)
    after = await now_as(house, intent)
    assert (after.state, after.attempts) == ("done", 1)
    assert house.service.writes == [intent.rkey]


async def test_an_unknown_outcome_waits_while_the_service_cannot_say(house: House) -> None:
    house.service.faults.append("lost_answer")
    intent = await submit(house, post("once"))
    await house.outbox.deliver_due()
    house.service.down = True
    await house.drain(30 * HOUR, step_s=600)
    assert (await now_as(house, intent)).state == "sending"
    house.service.down = False
    await house.drain(HOUR, step_s=600)
    assert (await now_as(house, intent)).state == "done"
    assert house.service.writes == [intent.rkey]


async def test_a_death_while_sending_leaves_one_record_after_the_next_start(house: House) -> None:
    intent = await submit(house, reply(thread(1), "hello"))
    await house.die_while_sending()
    assert (await now_as(house, intent)).state == "sending"
    await house.outbox.deliver_due()
    assert (await now_as(house, intent)).state == "done"
    assert house.service.writes == [intent.rkey]
    assert "(an earlier try had arrived)" in house.messages()[-1]


async def test_what_never_arrived_before_the_death_is_sent_again_under_the_same_key(house: House) -> None:
    intent = await submit(house, reply(thread(1), "hello"))
    await house.die_while_sending()
    house.service.records.clear()
    house.service.writes.clear()
    await house.outbox.deliver_due()
    assert (await now_as(house, intent)).state == "done"
    assert house.service.writes == [intent.rkey]


@pytest.mark.parametrize(("fault", "wait_s"), [("busy", 5), ("who_are_you", 5), ("slow_down", 120)])
async def test_a_service_that_is_unable_is_asked_again_later(house: House, fault: Fault, wait_s: float) -> None:
    house.pacing = NO_PACING
    await house.restart()
    house.service.faults.append(fault)
    intent = await submit(house, post("patience"))
    report = await house.outbox.deliver_due()
    assert (report.put_off, report.next_in_s) == (1, wait_s)
    held = await now_as(house, intent)
    assert (held.state, held.attempts, held.deferrals) == ("pending", 0, 1)
    await house.clock.advance(wait_s - 1)
    assert (await house.outbox.deliver_due()).done == 0
    await house.clock.advance(1)
    assert (await house.outbox.deliver_due()).done == 1


async def test_a_round_ends_when_the_service_puts_something_off(house: House) -> None:
    house.pacing = NO_PACING
    await house.restart()
    house.service.faults.extend(["busy", "busy"])
    await submit(house, reply(thread(1), "one"))
    await submit(house, reply(thread(2), "two"))
    report = await house.outbox.deliver_due()
    assert (report.put_off, report.next_in_s) == (1, 5)
    assert len(house.service.faults) == 1


async def test_a_service_that_is_down_for_hours_kills_nothing_before_its_time(house: House) -> None:
    intent = await submit(house, reply(thread(1), "still here"))
    house.service.down = True
    await house.drain(5 * HOUR, step_s=60)
    held = await now_as(house, intent)
    assert held.state == "pending"
    assert held.deferrals > OUTBOX_MAX_ATTEMPTS
    house.service.down = False
    await house.drain(1800)
    assert (await now_as(house, intent)).state == "done"


async def test_a_refusal_for_good_fails_at_once_with_the_reason(house: House) -> None:
    house.service.faults.append("nonsense")
    intent = await submit(house, post("bad"))
    assert (await house.outbox.deliver_due()).failed == 1
    after = await now_as(house, intent)
    assert (after.state, after.error) == ("failed", "not a record")
    assert "Failed: post: bad | not a record" in house.messages()


async def test_tries_that_always_get_lost_end_after_the_cap_with_the_reason(house: House) -> None:
    house.service.faults.extend(["lost_request"] * (OUTBOX_MAX_ATTEMPTS + 1))
    intent = await submit(house, post("lost"))
    await house.drain(3 * HOUR, step_s=60)
    after = await now_as(house, intent)
    assert (after.state, after.attempts) == ("failed", OUTBOX_MAX_ATTEMPTS)
    assert (after.error or "").startswith(f"gave up after {OUTBOX_MAX_ATTEMPTS} tries: no answer")
    assert house.service.records == {}


async def test_an_account_taken_down_stops_the_process_and_keeps_the_intent(house: House) -> None:
    house.service.faults.append("gone")
    intent = await submit(house, post("keep me"))
    with pytest.raises(Fatal, match="account taken down"):
        await house.outbox.deliver_due()
    await house.restart()
    assert (await now_as(house, intent)).state == "pending"
    await house.drain(60)
    assert (await now_as(house, intent)).state == "done"


async def test_replies_die_after_six_hours_and_posts_after_a_day(house: House) -> None:
    answer = await submit(house, reply(thread(1), "late"))
    essay = await submit(house, post("late too"))
    await house.sleep()
    await house.clock.advance(7 * HOUR)
    await house.wake()
    report = await house.outbox.deliver_due()
    assert (report.expired, report.done) == (1, 1)
    assert [(await now_as(house, one)).state for one in (answer, essay)] == ["expired", "done"]
    old = await submit(house, post("never"))
    await house.clock.advance(25 * HOUR)
    assert (await house.deliver(old.id)).state == "expired"
    assert old.rkey not in house.service.records


async def test_what_may_have_arrived_is_looked_for_before_it_is_given_up(house: House) -> None:
    house.service.faults.append("lost_answer")
    arrived = await submit(house, reply(thread(1), "arrived"))
    await house.outbox.deliver_due()
    await house.clock.advance(7 * HOUR)
    house.service.faults.append("lost_request")
    lost = await submit(house, reply(thread(2), "lost"))
    await house.deliver(lost.id)
    await house.clock.advance(7 * HOUR)
    await house.outbox.deliver_due()
    assert (await now_as(house, arrived)).state == "done"
    assert (await now_as(house, lost)).state == "expired"


async def test_lanes_keep_their_distance_and_replies_do_not_wait_behind_posts(house: House) -> None:
    for number in range(2):
        await submit(house, post(f"post {number}"))
        await submit(house, reply(thread(number), f"reply {number}"))
        await submit(house, like(thread(number)))
    start = house.clock.monotonic()
    times: dict[str, list[float]] = {"post": [], "reply": [], "like": []}
    for _ in range(200):
        await house.outbox.deliver_due()
        for kind, moments in times.items():
            done = [one for one in await house.outbox.recent(10) if one.state == "done" and one.kind == kind]
            moments.extend([house.clock.monotonic() - start] * (len(done) - len(moments)))
        await house.clock.advance(10)
    assert times == {"reply": [0, 60], "post": [10, 1810], "like": [20, 70]}


async def test_the_pace_holds_across_restarts(house: House) -> None:
    await submit(house, post("one"))
    await house.outbox.deliver_due()
    await submit(house, post("two"))
    await house.restart()
    assert (await house.outbox.deliver_due()).next_in_s == 1800
    await house.clock.advance(600)
    await house.restart()
    report = await house.outbox.deliver_due()
    assert (report.done, report.next_in_s) == (0, 1200)


async def test_an_urgent_reply_does_not_wait(house: House) -> None:
    for number in range(3):
        await submit(house, reply(thread(number), f"reply {number}", urgent=True))
    assert (await house.outbox.deliver_due()).done == 3


async def test_parallel_rounds_send_each_intent_once(house: House) -> None:
    house.pacing = NO_PACING
    await house.restart()
    intents = [await submit(house, like(thread(number))) for number in range(10)]
    await asyncio.gather(*(house.outbox.deliver_due() for _ in range(4)), house.deliver(intents[0].id))
    assert sorted(house.service.writes) == sorted(one.rkey for one in intents)


async def test_a_retry_leaves_before_what_was_made_after_it_was_due(house: House) -> None:
    """A stream of newer replies, one a minute, must not keep the one that was put off for five seconds."""
    house.service.faults.append("busy")
    first = await submit(house, reply(thread(0), "reply 0"))
    await house.outbox.deliver_due()
    sent_at: list[int] = []
    for minute in range(1, 8):
        await house.clock.advance(60)
        await submit(house, reply(thread(minute), f"reply {minute}"))
        await house.outbox.deliver_due()
        if (await now_as(house, first)).state == "done":
            sent_at.append(minute)
    assert sent_at[:1] == [1]


async def test_after_a_downtime_the_queue_wakes_slowly_and_the_newest_comes_first(house: House) -> None:
    for number in range(4):
        await submit(house, replace(reply(thread(number), f"reply {number}"), urgent=True))
        await house.clock.advance(10)
    await house.sleep()
    await house.clock.advance(HOUR)
    await house.wake()
    moments: list[tuple[float, int]] = []
    start = house.clock.monotonic()
    for _ in range(40):
        report = await house.outbox.deliver_due()
        moments.extend(
            [(house.clock.monotonic() - start, int(house.service.records[house.service.writes[-1]]["target"][-1]))]
            * report.done
        )
        await house.clock.advance(10)
    assert moments == [(0, 3), (120, 2), (240, 1), (360, 0)]


async def test_a_clock_set_back_does_not_stop_the_pace_for_good(house: House) -> None:
    await submit(house, post("one"))
    house.service.faults.append("busy")
    await submit(house, reply(thread(1), "put off"))
    await house.outbox.deliver_due()
    house.clock.jump(-3 * 24 * HOUR)
    await house.drain(1800)
    assert await house.outbox.counts() == {"done": 2}


@dataclass
class Stumbling:
    """A sender that raises `error`, or hangs when there is none."""

    error: Exception | None = None

    async def send(self, _: Intent) -> ApiResult[Sent]:
        await self._stumble()

    async def find(self, _: Intent) -> ApiResult[Sent | None]:
        await self._stumble()

    async def _stumble(self) -> NoReturn:
        if self.error:
            raise self.error
        await asyncio.sleep(3600)
        raise AssertionError("nobody waits that long")


async def test_a_courier_with_a_bug_cannot_stop_the_others(house: House) -> None:
    house.senders["like"] = Stumbling(KeyError("text"))
    await house.restart()
    broken = await submit(house, like(thread(1)))
    await house.drain(3 * HOUR, step_s=60)
    after = await now_as(house, broken)
    assert (after.state, after.error) == ("failed", "KeyError: 'text'")
    await submit(house, reply(thread(2), "fine"))
    assert (await house.outbox.deliver_due()).done == 1


async def test_a_courier_that_never_comes_back_is_an_unknown_outcome(house: House) -> None:
    house.senders["like"] = Stumbling()
    house.sender_deadline_s = 0.02
    await house.restart()
    intent = await submit(house, like(thread(1)))
    assert (await house.outbox.deliver_due()).put_off == 1
    after = await now_as(house, intent)
    assert (after.state, after.attempts, after.error) == ("sending", 1, "no answer within 0.02 s")


async def test_a_full_disk_under_the_courier_stops_the_process_and_keeps_the_intent(house: House) -> None:
    house.senders["like"] = Stumbling(StorageError("Disk full"))
    await house.restart()
    intent = await submit(house, like(thread(1)))
    with pytest.raises(StorageError, match="Disk full"):
        await house.outbox.deliver_due()
    house.senders.clear()
    await house.restart()
    await house.outbox.deliver_due()
    assert (await now_as(house, intent)).state == "done"
    assert house.service.writes == [intent.rkey]


async def test_a_secret_in_an_intent_never_reaches_journal_or_terminal(house: House) -> None:
    intent = await submit(house, post("my password is hunter2-hunter2"))
    await house.deliver(intent.id)
    told = str(house.console.lines) + str(await house.journal.recent(10))
    assert "hunter2" not in told
    assert "[redacted]" in told
