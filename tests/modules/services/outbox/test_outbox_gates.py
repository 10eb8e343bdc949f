"""Gates are asked before each departure, first or repeated; what waits at them is neither lost nor sent in a rush.

The newest post on the account's own feed counts for the pace, even if the outbox does not know it.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from adapters.atproto.types import Actor, Post, ReplyRefs, StrongRef
from common.clock import iso
from common.result import ApiResult, Ok
from modules.services.outbox.delivery import BROKEN_GATE_WAIT_S
from modules.services.outbox.gates import FeedPaceGate
from modules.services.outbox.policy import BACKLOG_AGE_MS, BACKLOG_SPACING_MS
from modules.services.outbox.types import Intent, Sent, Wait
from tests.modules.services.outbox.running_outbox import DID, NO_PACING, PACING, RunningOutbox, like, post, reply

OLD_S = BACKLOG_AGE_MS / 1000 + 60


def thread(number: int) -> str:
    return f"at://did:plc:ada/app.bsky.feed.post/{number}"


class Bar:
    """A gate with a switch, for the intents that `only` selects."""

    def __init__(self, seconds: float = 30, only: Callable[[Intent], bool] = lambda _: True) -> None:
        self.shut = True
        self.seconds = seconds
        self._only = only
        self.asked = 0

    def __call__(self, _: sqlite3.Connection, intent: Intent, __: datetime) -> Wait | None:
        self.asked += 1
        return Wait("the bar is down", self.seconds) if self.shut and self._only(intent) else None


Gate = Callable[[sqlite3.Connection, Intent, datetime], Wait | None]


async def under(running_outbox: RunningOutbox, *gates: Gate) -> None:
    running_outbox.gates = gates
    await running_outbox.restart()


async def test_a_shut_gate_lets_nothing_leave_and_says_when_to_ask_again(running_outbox: RunningOutbox) -> None:
    bar = Bar()
    await under(running_outbox, bar)
    intent = (await running_outbox.outbox.submit(post("words"))).intent
    report = await running_outbox.outbox.deliver_due()
    assert (report.done, report.put_off, report.next_in_s) == (0, 0, 30)
    kept = await running_outbox.outbox.get(intent.id)
    assert kept is not None
    assert (kept.state, kept.attempts, kept.deferrals) == ("pending", 0, 0)
    bar.shut = False
    assert (await running_outbox.outbox.deliver_due()).done == 1


async def test_waiting_at_a_gate_is_told_once(running_outbox: RunningOutbox) -> None:
    await under(running_outbox, Bar())
    await running_outbox.outbox.submit(post("words"))
    for _ in range(5):
        await running_outbox.outbox.deliver_due()
        await running_outbox.clock.advance(30)
    assert [line for line in running_outbox.messages() if "bar" in line] == [
        "Waiting to send post: words | the bar is down"
    ]


async def test_the_end_of_a_limit_is_told_where_the_gate_knows_it(running_outbox: RunningOutbox) -> None:
    await under(
        running_outbox, lambda _connection, _intent, _now: Wait("likes: 60 an hour are enough for now", 1500, ends=True)
    )
    await running_outbox.outbox.submit(post("words"))
    await running_outbox.outbox.deliver_due()
    told = [line for line in running_outbox.messages() if "likes" in line]
    assert told == ["Waiting to send post: words | likes: 60 an hour are enough for now; it can leave in 25 min"]


async def test_an_unknown_outcome_is_not_even_looked_after_while_the_gate_is_shut(
    running_outbox: RunningOutbox,
) -> None:
    bar = Bar()
    bar.shut = False
    await under(running_outbox, bar)
    running_outbox.service.faults.append("lost_answer")
    intent = (await running_outbox.outbox.submit(post("once"))).intent
    await running_outbox.outbox.deliver_due()
    written = list(running_outbox.service.writes)
    bar.shut = True
    await running_outbox.drain(3600, step_s=60)
    assert running_outbox.service.writes == written
    kept = await running_outbox.outbox.get(intent.id)
    assert kept is not None
    assert (kept.state, kept.attempts) == ("sending", 1)
    bar.shut = False
    await running_outbox.drain(120)
    assert running_outbox.service.writes == [intent.rkey]


async def test_a_gate_that_shuts_while_we_look_keeps_the_repeat_in(running_outbox: RunningOutbox) -> None:
    bar = Bar()
    bar.shut = False

    class SlowToFind:
        async def send(self, _: Intent) -> ApiResult[Sent]:
            raise AssertionError("it left")

        async def find(self, _: Intent) -> ApiResult[Sent | None]:
            bar.shut = True
            return Ok(None)

    await under(running_outbox, bar)
    intent = (await running_outbox.outbox.submit(post("once"))).intent
    await running_outbox.die_while_sending()
    running_outbox.senders["post"] = SlowToFind()
    await under(running_outbox, bar)
    report = await running_outbox.outbox.deliver_due()
    assert (report.put_off, report.next_in_s) == (1, 30)
    kept = await running_outbox.outbox.get(intent.id)
    assert kept is not None
    assert (kept.state, kept.attempts) == ("sending", 0)


async def test_a_gate_that_shuts_while_the_departure_is_confirmed_keeps_it_in(running_outbox: RunningOutbox) -> None:
    bar = Bar()
    bar.shut = False

    async def slow() -> str:
        bar.shut = True
        return ""

    running_outbox.confirm = slow
    await under(running_outbox, bar)
    intent = (await running_outbox.outbox.submit(post("words"))).intent
    assert (await running_outbox.deliver(intent.id)).state == "pending"
    assert not running_outbox.service.writes


async def test_a_gate_that_breaks_is_shut(running_outbox: RunningOutbox) -> None:
    class Broken:
        def __call__(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:
            connection.execute("SELECT * FROM nowhere")
            return None

    running_outbox.gates = (Broken(),)
    await running_outbox.restart()
    await running_outbox.outbox.submit(post("words"))
    assert (await running_outbox.outbox.deliver_due()).next_in_s == BROKEN_GATE_WAIT_S
    assert running_outbox.service.writes == []
    assert "the gate Broken failed" in running_outbox.messages()[-1]


async def test_stale_work_dies_behind_a_shut_gate(running_outbox: RunningOutbox) -> None:
    await under(running_outbox, Bar())
    await running_outbox.outbox.submit(reply(thread(1), "too late"))
    await running_outbox.clock.advance(6 * 3600)
    assert (await running_outbox.outbox.deliver_due()).expired == 1


async def test_what_grew_old_behind_a_gate_leaves_at_the_slow_pace_of_a_backlog(running_outbox: RunningOutbox) -> None:
    running_outbox.pacing = NO_PACING
    bar = Bar()
    await under(running_outbox, bar)
    for number in range(3):
        await running_outbox.outbox.submit(like(thread(number)))
    await running_outbox.drain(OLD_S, step_s=30)
    bar.shut = False
    await running_outbox.outbox.deliver_due()
    assert len(running_outbox.service.writes) == 1
    await running_outbox.clock.advance(BACKLOG_SPACING_MS / 1000 - 1)
    await running_outbox.outbox.deliver_due()
    assert len(running_outbox.service.writes) == 1
    await running_outbox.clock.advance(1)
    await running_outbox.outbox.deliver_due()
    assert len(running_outbox.service.writes) == 2


URI = f"at://{DID}/app.bsky.feed.post/1"


def made(moment: datetime | None, *, reply_to: str = "") -> Post:
    ref = StrongRef(uri=reply_to, cid="cid")
    answers = ReplyRefs(parent=ref, root=ref) if reply_to else None
    return Post(URI, "cid", Actor(DID, "soul.test"), "Tin.", iso(moment) if moment else "of old", reply=answers)


async def behind(running_outbox: RunningOutbox, *shown: Post) -> FeedPaceGate:
    gate = FeedPaceGate(PACING.post_s)
    gate.note(shown)
    running_outbox.gates = (gate,)
    running_outbox.pacing = NO_PACING
    await running_outbox.restart()
    return gate


async def test_a_post_waits_for_what_is_left_of_the_pause_and_then_leaves(running_outbox: RunningOutbox) -> None:
    now = running_outbox.clock.now()
    newest = now - timedelta(seconds=600)
    await behind(running_outbox, made(newest - timedelta(days=1)), made(newest), made(now, reply_to=URI), made(None))
    await running_outbox.outbox.submit(post("words"))
    report = await running_outbox.outbox.deliver_due()
    assert (report.done, report.next_in_s) == (0, 1200)
    await running_outbox.clock.advance(1200)
    assert (await running_outbox.outbox.deliver_due()).done == 1


async def test_answers_likes_and_what_is_urgent_pass(running_outbox: RunningOutbox) -> None:
    await behind(running_outbox, made(running_outbox.clock.now()))
    for action in (reply("to this", URI), like(URI), replace(post("at once"), urgent=True)):
        await running_outbox.outbox.submit(action)
    assert (await running_outbox.outbox.deliver_due()).done == 3


async def test_a_feed_without_posts_and_a_post_from_the_future_keep_nothing_in(running_outbox: RunningOutbox) -> None:
    gate = await behind(running_outbox, made(running_outbox.clock.now() + timedelta(hours=5)))
    await running_outbox.outbox.submit(post("words"))
    assert (await running_outbox.outbox.deliver_due()).done == 1
    gate.note(())
    assert gate.newest is None
