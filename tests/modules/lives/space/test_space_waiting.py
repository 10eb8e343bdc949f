"""Nobody waits inside a check of the room: a message waits for its moment, and everybody else goes on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.space.types import Claimed
from common.clock import SystemClock
from common.result import Ok
from common.schemas import SPACE_DECISION_TOOL
from modules.lives.space.commitment_maker import LOOP
from modules.lives.space.host_request import is_open
from modules.lives.space.policy import wait_s
from modules.runtime.scheduler.scheduler import Scheduler
from tests.modules.lives.space.soul_in_room import (
    QUESTION,
    REQUEST,
    TIN,
    Agent,
    Room,
    an_issue,
    decision,
    speaks,
    summaries,
)
from tests.owner_lines import answered
from tests.patience import until
from town.model.types import ChatRequest, Completion

PAUSE_MS = 30_000


def pause_before_speaking(agent: Agent) -> None:
    config = agent.space.config.load_space_config()
    agent.space.config.save_space_config(replace(config, reply_delay_min_ms=10_000, reply_delay_max_ms=PAUSE_MS))


async def test_the_owner_is_answered_while_a_message_to_the_room_waits_for_its_moment(room: Room) -> None:
    def mind(request: ChatRequest) -> Completion:
        in_room = any(offer.name == SPACE_DECISION_TOOL for offer in request.offers)
        return speaks(TIN) if in_room else Completion(text="Yes, I am here.")

    async with room.soul("marvin", mind) as marvin:
        pause_before_speaking(marvin)
        app = marvin.life.app
        scheduler = Scheduler(
            [marvin.space.loop],
            agent_name="marvin",
            clock=marvin.clock,
            journal=app.services.journal,
            attention=app.services.attention,
        )
        await room.says(QUESTION, marvin)
        outcome = await scheduler.run_guarded(LOOP)
        assert outcome.reason == "a message waits for its moment"
        assert 0 < (outcome.next_in_s or 0) <= PAUSE_MS / 1000
        assert await answered(app.owner, "Are you there?") == "Yes, I am here."
        assert (await scheduler.run_guarded(LOOP)).reason == "a message waits for its moment"
        assert room.host.said("marvin") == []
        marvin.later(PAUSE_MS / 1000)
        assert (await scheduler.run_guarded(LOOP)).reason == "spoke"
        assert room.host.said("marvin") == [TIN]


async def test_the_loop_comes_back_for_a_message_when_its_moment_has_come(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        pause_before_speaking(marvin)
        services = marvin.life.app.services
        scheduler = Scheduler(
            [marvin.space.loop],
            agent_name="marvin",
            clock=marvin.clock,
            journal=services.journal,
            attention=services.attention,
        )
        await scheduler.start()
        awake = asyncio.create_task(marvin.space.loop.keep_awake(scheduler))
        try:
            await room.says(QUESTION)
            await until(lambda: marvin.space.participation.waits)
            soon = marvin.clock.now() + timedelta(seconds=9)
            await until(lambda: (at := scheduler.states()[0].next_at) is not None and at > soon)
            marvin.later(PAUSE_MS / 1000)
            scheduler.bring_forward(LOOP)
            await until(lambda: room.host.said("marvin") == [TIN])
        finally:
            awake.cancel()
            await asyncio.gather(awake, return_exceptions=True)
            await scheduler.stop()


async def test_a_message_that_waits_is_checked_against_the_room_as_it_is_then(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        pause_before_speaking(marvin)
        await room.says(QUESTION, marvin)
        await marvin.space.loop.run()
        await until(lambda: rebecca.typing() == ["marvin"])
        await rebecca.send_chat(TIN)
        await marvin.receives(TIN)
        marvin.later(PAUSE_MS / 1000)
        outcome = await marvin.space.loop.run()
        assert outcome.reason == "others have spoken meanwhile: semantic echo"
        assert not marvin.space.participation.waits
        assert room.host.said("marvin") == []


async def test_what_is_committed_is_claimed_while_its_words_wait(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", an_issue())) as marvin:
        pause_before_speaking(marvin)
        await room.says(REQUEST, marvin)
        await marvin.space.loop.run()
        await until(lambda: [one.action for one in room.host.seen if isinstance(one, Claimed)] == ["create_issue"])
        assert marvin.queued_commitments() == []
        assert room.host.said("marvin") == []
        marvin.later(PAUSE_MS / 1000)
        assert (await marvin.check()).reason == "spoke"
        assert [one.type for one in marvin.queued_commitments()] == ["create_issue"]


async def test_a_message_that_may_not_be_said_any_more_is_dropped_before_its_moment(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        pause_before_speaking(marvin)
        await room.says(QUESTION, marvin)
        await marvin.space.loop.run()
        marvin.mute_reason.append("paused by the owner")
        assert (await marvin.space.loop.run()).reason == "paused by the owner"
        assert not marvin.space.participation.waits
        assert (await decision(marvin, "Not said")).data["message"] == TIN
        assert room.host.said("marvin") == []


class StoppedClock(SystemClock):
    """Stands still, so that a member of the room may say one thing and then no other."""

    def monotonic(self) -> float:
        return 0.0


async def test_a_message_that_cannot_be_sent_leaves_nothing_behind(room: Room) -> None:
    words = "The clock issue is mine."
    async with room.soul("marvin", lambda _: speaks(words, an_issue()), clock=StoppedClock()) as marvin:
        pause_before_speaking(marvin)
        await room.says(REQUEST, marvin)
        life = marvin.space.participation
        assert (await life.check()).code == "waiting"
        marvin.later(PAUSE_MS / 1000)
        said = await marvin.client.send_chat("The room is busy.")
        assert isinstance(said, Ok)
        await marvin.client.delivered(said.data)
        while isinstance(await marvin.client.send_chat("The room is busy."), Ok):
            pass
        assert (await life.check()).code == "unsaid"
        assert marvin.queue.live() == []
        assert words not in [entry.content for entry in life.talk.state.history]
        assert is_open(life.talk.state.request)
        assert "Spoke" not in await summaries(marvin)
        assert (await decision(marvin, "Not said")).data["message"] == words


@pytest.mark.parametrize(
    ("not_before", "now", "left_s"),
    [(0.3, 0.1 + 0.1 + 0.1 - 1e-9, 0.0), (10.0, 9.991, 0.0), (10.0, 12.0, 0.0), (10.0, 9.9, 0.1)],
)
def test_a_moment_counts_as_come_ten_milliseconds_before_it(not_before: float, now: float, left_s: float) -> None:
    assert wait_s(not_before, now) == pytest.approx(left_s)
