"""Delivery: at its pace, exactly once, whatever the service answers and whenever the process dies.

Proves also when an act may be proposed again for a target, by how the earlier proposals ended.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import pytest

from common.clock import iso
from common.errors import Fatal, StorageError
from common.result import ApiResult, Err
from modules.services.outbox.bodies import FollowBody, LikeBody
from modules.services.outbox.policy import MOST_LOOKS, OUTBOX_MAX_ATTEMPTS
from modules.services.outbox.types import ActCode, Intent, IntentState, ProposedAction, Sent, Wait, standing_of
from tests.journals import told_of
from tests.modules.services.outbox.running_outbox import NO_PACING, Fault, RunningOutbox, like, post, reply
from tests.outbox_rows import counted

HOUR = 3600


def thread(number: int) -> str:
    return f"at://did:plc:ada/app.bsky.feed.post/{number}"


async def submit(running_outbox: RunningOutbox, draft: ProposedAction) -> Intent:
    submitted = await running_outbox.outbox.submit(draft)
    assert submitted.accepted, submitted.reason
    return submitted.intent


async def now_as(running_outbox: RunningOutbox, intent: Intent) -> Intent:
    found = await running_outbox.outbox.get(intent.id)
    assert found is not None
    return found


async def test_what_was_sent_is_done_with_its_address_and_told(running_outbox: RunningOutbox) -> None:
    intent = await submit(running_outbox, reply(thread(1), "hello there"))
    report = await running_outbox.outbox.deliver_due()
    after = await now_as(running_outbox, intent)
    assert (report.done, report.next_in_s) == (1, None)
    assert (after.state, after.error) == ("done", None)
    assert after.result_uri is not None
    assert after.result_uri.endswith(intent.rkey)
    assert running_outbox.service.records[intent.rkey]["text"] == "hello there"
    assert running_outbox.messages() == [
        "Queued reply: hello there | ",
        "Sending reply: hello there | ",
        f"Sent reply: hello there | {after.result_uri}",
    ]
    assert [entry.entry.summary for entry in await told_of(running_outbox.journal, after.id)] == [
        "Queued reply: hello there",
        "Sending reply: hello there",
        "Sent reply: hello there",
    ]


async def test_a_line_names_people_by_their_handles_and_the_row_by_their_did(running_outbox: RunningOutbox) -> None:
    follow = FollowBody(did="did:plc:ada", handle="ada.example")
    submitted = await running_outbox.outbox.submit(ProposedAction(follow))
    assert running_outbox.messages() == ["Queued follow: @ada.example | "]
    (row,) = await told_of(running_outbox.journal, submitted.intent.id)
    assert row.entry.summary == "Queued follow: did:plc:ada"


@pytest.mark.parametrize("fault", ["lost_request", "lost_answer"])
async def test_after_an_unknown_outcome_it_looks_first_and_writes_at_most_once(
    running_outbox: RunningOutbox, fault: Fault
) -> None:
    running_outbox.service.faults.append(fault)
    intent = await submit(running_outbox, post("once"))
    assert (await running_outbox.outbox.deliver_due()).put_off == 1
    assert (await now_as(running_outbox, intent)).state == "sending"
    await running_outbox.drain(60)
    after = await now_as(running_outbox, intent)
    assert (after.state, after.attempts) == ("done", 1)
    assert running_outbox.service.writes == [intent.rkey]


async def test_a_death_while_sending_leaves_one_record_after_the_next_start(running_outbox: RunningOutbox) -> None:
    intent = await submit(running_outbox, reply(thread(1), "hello"))
    await running_outbox.die_while_sending()
    assert (await now_as(running_outbox, intent)).state == "sending"
    await running_outbox.outbox.deliver_due()
    assert (await now_as(running_outbox, intent)).state == "done"
    assert running_outbox.service.writes == [intent.rkey]
    assert "(an earlier try had arrived)" in running_outbox.messages()[-1]


@pytest.mark.parametrize(("fault", "wait_s"), [("busy", 5), ("slow_down", 120)])
async def test_a_service_that_is_unable_is_asked_again_later(
    running_outbox: RunningOutbox, fault: Fault, wait_s: float
) -> None:
    running_outbox.pacing = NO_PACING
    await running_outbox.restart()
    running_outbox.service.faults.append(fault)
    intent = await submit(running_outbox, post("patience"))
    report = await running_outbox.outbox.deliver_due()
    assert (report.put_off, report.next_in_s) == (1, wait_s)
    held = await now_as(running_outbox, intent)
    assert (held.state, held.attempts, held.deferrals) == ("pending", 0, 1)
    await running_outbox.clock.advance(wait_s - 1)
    assert (await running_outbox.outbox.deliver_due()).done == 0
    await running_outbox.clock.advance(1)
    assert (await running_outbox.outbox.deliver_due()).done == 1


async def test_a_refusal_for_good_fails_at_once_with_the_reason(running_outbox: RunningOutbox) -> None:
    running_outbox.service.faults.append("nonsense")
    intent = await submit(running_outbox, post("bad"))
    assert (await running_outbox.outbox.deliver_due()).failed == 1
    after = await now_as(running_outbox, intent)
    assert (after.state, after.error) == ("failed", "not a record")
    assert "Failed: post: bad | not a record" in running_outbox.messages()


async def test_tries_that_always_get_lost_end_after_the_cap_with_the_reason(running_outbox: RunningOutbox) -> None:
    running_outbox.service.faults.extend(["lost_request"] * (OUTBOX_MAX_ATTEMPTS + 1))
    intent = await submit(running_outbox, post("lost"))
    await running_outbox.drain(3 * HOUR, step_s=60)
    after = await now_as(running_outbox, intent)
    assert (after.state, after.attempts) == ("failed", OUTBOX_MAX_ATTEMPTS)
    assert (after.error or "").startswith(f"gave up after {OUTBOX_MAX_ATTEMPTS} tries: no answer")
    assert running_outbox.service.records == {}


async def test_an_account_taken_down_stops_the_process_and_keeps_the_intent(running_outbox: RunningOutbox) -> None:
    running_outbox.service.faults.append("gone")
    intent = await submit(running_outbox, post("keep me"))
    with pytest.raises(Fatal, match="account taken down"):
        await running_outbox.outbox.deliver_due()
    await running_outbox.restart()
    assert (await now_as(running_outbox, intent)).state == "pending"
    await running_outbox.drain(60)
    assert (await now_as(running_outbox, intent)).state == "done"


async def test_a_try_that_is_refused_for_an_earlier_one_that_came_late_is_done(running_outbox: RunningOutbox) -> None:
    running_outbox.service.faults.extend(["lost_request", "late"])
    intent = await submit(running_outbox, reply(thread(1), "late"))
    await running_outbox.drain(600)
    assert (await now_as(running_outbox, intent)).state == "done"
    assert running_outbox.service.writes == [intent.rkey]


async def test_what_may_have_arrived_is_looked_for_before_it_is_given_up(running_outbox: RunningOutbox) -> None:
    running_outbox.service.faults.append("lost_answer")
    arrived = await submit(running_outbox, reply(thread(1), "arrived"))
    await running_outbox.outbox.deliver_due()
    await running_outbox.clock.advance(7 * HOUR)
    running_outbox.service.faults.append("lost_request")
    lost = await submit(running_outbox, reply(thread(2), "lost"))
    await running_outbox.deliver(lost.id)
    await running_outbox.clock.advance(7 * HOUR)
    await running_outbox.outbox.deliver_due()
    assert (await now_as(running_outbox, arrived)).state == "done"
    assert (await now_as(running_outbox, lost)).state == "expired"


async def test_what_nobody_can_look_for_ends_some_time_after_it_expired_even_behind_a_closed_gate(
    running_outbox: RunningOutbox,
) -> None:
    class Unreadable:
        async def send(self, _: Intent) -> ApiResult[Sent]:
            return Err("no answer", "unknown_outcome")

        async def find(self, _: Intent) -> ApiResult[Sent | None]:
            return Err("token refused", "auth", 401)

    running_outbox.senders = {"post": Unreadable()}
    running_outbox.gates = (lambda _, one, __: Wait("closed", HOUR) if one.state == "sending" else None,)
    await running_outbox.restart()
    intent = await submit(running_outbox, post("hello"))
    await running_outbox.outbox.deliver_due()
    await running_outbox.clock.advance(60 * 24 * HOUR)
    states = set[IntentState]()
    for _ in range(MOST_LOOKS):
        states.add((await running_outbox.deliver(intent.id)).state)
        await running_outbox.clock.advance(HOUR)
    ended = await running_outbox.deliver(intent.id)
    assert (states, ended.state) == ({"sending"}, "failed")
    assert "token refused" in (ended.error or "")


async def test_the_pace_holds_across_restarts(running_outbox: RunningOutbox) -> None:
    await submit(running_outbox, post("one"))
    await running_outbox.outbox.deliver_due()
    await submit(running_outbox, post("two"))
    await running_outbox.restart()
    assert (await running_outbox.outbox.deliver_due()).next_in_s == 1800
    await running_outbox.clock.advance(600)
    await running_outbox.restart()
    report = await running_outbox.outbox.deliver_due()
    assert (report.done, report.next_in_s) == (0, 1200)


async def test_after_a_downtime_the_queue_wakes_slowly_and_the_newest_comes_first(
    running_outbox: RunningOutbox,
) -> None:
    for number in range(4):
        await submit(running_outbox, replace(reply(thread(number), f"reply {number}"), urgent=True))
        await running_outbox.clock.advance(10)
    await running_outbox.sleep()
    await running_outbox.clock.advance(HOUR)
    await running_outbox.wake()
    moments: list[tuple[float, int]] = []
    start = running_outbox.clock.monotonic()
    for _ in range(40):
        report = await running_outbox.outbox.deliver_due()
        moments.extend(
            [
                (
                    running_outbox.clock.monotonic() - start,
                    int(running_outbox.service.records[running_outbox.service.writes[-1]]["target"][-1]),
                )
            ]
            * report.done
        )
        await running_outbox.clock.advance(10)
    assert moments == [(0, 3), (120, 2), (240, 1), (360, 0)]


async def test_a_clock_set_back_does_not_stop_the_pace_for_good(running_outbox: RunningOutbox) -> None:
    await submit(running_outbox, post("one"))
    running_outbox.service.faults.append("busy")
    await submit(running_outbox, reply(thread(1), "put off"))
    await running_outbox.outbox.deliver_due()
    running_outbox.clock.jump(-3 * 24 * HOUR)
    await running_outbox.drain(1800, step_s=60)
    assert await counted(running_outbox.outbox) == {"done": 2}


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
        await asyncio.Event().wait()
        raise AssertionError("nobody waits that long")


async def test_a_courier_with_a_bug_cannot_stop_the_others(running_outbox: RunningOutbox) -> None:
    running_outbox.senders["like"] = Stumbling(KeyError("text"))
    await running_outbox.restart()
    broken = await submit(running_outbox, like(thread(1)))
    await running_outbox.drain(3 * HOUR, step_s=60)
    after = await now_as(running_outbox, broken)
    assert (after.state, after.error) == ("failed", "KeyError: 'text'")
    await submit(running_outbox, reply(thread(2), "fine"))
    assert (await running_outbox.outbox.deliver_due()).done == 1


async def test_a_courier_that_never_comes_back_is_an_unknown_outcome(running_outbox: RunningOutbox) -> None:
    running_outbox.senders["like"] = Stumbling()
    running_outbox.sender_deadline_s = 0.02
    await running_outbox.restart()
    intent = await submit(running_outbox, like(thread(1)))
    assert (await running_outbox.outbox.deliver_due()).put_off == 1
    after = await now_as(running_outbox, intent)
    assert (after.state, after.attempts, after.error) == ("sending", 1, "no answer within 0.02 s")


async def test_a_full_disk_under_the_courier_stops_the_process_and_keeps_the_intent(
    running_outbox: RunningOutbox,
) -> None:
    running_outbox.senders["like"] = Stumbling(StorageError("Disk full"))
    await running_outbox.restart()
    intent = await submit(running_outbox, like(thread(1)))
    with pytest.raises(StorageError, match="Disk full"):
        await running_outbox.outbox.deliver_due()
    running_outbox.senders.clear()
    await running_outbox.restart()
    await running_outbox.outbox.deliver_due()
    assert (await now_as(running_outbox, intent)).state == "done"
    assert running_outbox.service.writes == [intent.rkey]


async def test_a_secret_in_an_intent_never_reaches_journal_or_terminal(running_outbox: RunningOutbox) -> None:
    intent = await submit(running_outbox, post("my password is hunter2-hunter2"))
    await running_outbox.deliver(intent.id)
    told = str(running_outbox.console.lines) + str(await running_outbox.journal.recent(10))
    assert "hunter2" not in told
    assert "[redacted]" in told


NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
ONE_HOUR = timedelta(hours=1)
OTHER = "at://did:plc:ada/app.bsky.feed.post/3a"


def tried(state: IntentState, ago: timedelta = ONE_HOUR, *, rejected: bool = False) -> Intent:
    at = iso(NOW - ago)
    body = LikeBody(uri=OTHER, cid="cid")
    return Intent(
        at, "like", OTHER, body, "", "", "", None, at, iso(NOW), state, rejected=rejected, error=f"is {state}"
    )


@pytest.mark.parametrize(
    ("what", "intents", "tries", "again_after", "code"),
    [
        ("never proposed", [], 1, None, "free"),
        ("done", [tried("done")], 1, None, "done"),
        ("on its way after a failure", [tried("sending"), tried("failed")], 1, None, "waits"),
        ("waits for a yes", [tried("held")], 1, None, "held"),
        ("refused by the owner, in spite of tries left", [tried("blocked", rejected=True)], 3, ONE_HOUR, "refused"),
        ("failed once of once", [tried("failed")], 1, None, "left_alone"),
        ("failed once of twice", [tried("failed", timedelta())], 2, None, "free"),
        ("failed twice of twice", [tried("failed"), tried("expired")], 2, None, "left_alone"),
        ("failed too lately", [tried("failed", ONE_HOUR - timedelta(seconds=1))], 1, ONE_HOUR, "left_alone"),
        ("failed long enough ago", [tried("failed")], 1, ONE_HOUR, "free"),
        (
            "the latest failure counts",
            [tried("failed", timedelta()), tried("failed", 2 * ONE_HOUR)],
            2,
            ONE_HOUR,
            "left_alone",
        ),
    ],
)
def test_an_act_is_proposed_as_often_as_its_tries_allow(
    what: str, intents: list[Intent], tries: int, again_after: timedelta | None, code: ActCode
) -> None:
    standing = standing_of(intents, tries, again_after, lambda moment: NOW - moment)
    assert standing.code == code, what
    assert standing.tries == len(intents)


def test_an_act_that_may_still_be_done_counts_before_a_later_one_that_came_to_nothing() -> None:
    early, late = tried("pending", 2 * ONE_HOUR), tried("failed")
    assert standing_of([late, early], 1, ONE_HOUR, lambda moment: NOW - moment).active == early
    assert standing_of([late, replace(early, state="failed")], 1, None, lambda moment: NOW - moment).intent == late
