"""What the host takes back is not done: the request closes, and its commitments and claims end."""

from __future__ import annotations

from adapters.space.types import ActionDone, Claimed
from modules.lives.space.commitment_maker import WITHDRAWN
from tests.modules.lives.space.soul_in_room import REQUEST, Room, an_issue, declines, in_turn, labelling, speaks
from tests.patience import until

PROMISE = "The clock at midnight is mine, and I describe how to see it."
LEAVE_IT = "No, leave it."


async def test_a_no_of_the_host_ends_the_request_its_commitment_and_its_claim(room: Room) -> None:
    minds = in_turn(speaks(PROMISE, an_issue()), declines())
    async with room.soul(
        "marvin", labelling("WITHDRAWAL", LEAVE_IT, REQUEST, decide=minds), asks_intents=True
    ) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        assert [one.status for one in marvin.queued_commitments()] == ["pending"]
        marvin.later(30)
        await room.says(LEAVE_IT, marvin)
        await marvin.check()
        assert [(one.status, one.error) for one in marvin.queued_commitments()] == [("abandoned", WITHDRAWN)]
        ends = (event for event in room.host.seen if isinstance(event, ActionDone))
        await until(lambda: [(end.success, end.error) for end in ends] == [(False, WITHDRAWN)])
        marvin.later(30)
        await marvin.check()
        assert room.host.said("marvin") == [PROMISE]
        assert len(marvin.queued_commitments()) == 1
    told = room.running_town.mind.asked[-1].messages[-1].text
    assert "taken the request back" in told
    assert "YOU are the assignee" not in told


async def test_a_no_that_comes_while_the_promise_waits_for_its_moment_stops_it(room: Room) -> None:
    minds = in_turn(speaks(PROMISE, an_issue()), declines())
    async with room.soul(
        "marvin", labelling("WITHDRAWAL", LEAVE_IT, REQUEST, decide=minds), asks_intents=True
    ) as marvin:

        async def takes_back() -> None:
            await room.says(LEAVE_IT, marvin)

        await room.says(REQUEST, marvin)
        await marvin.check(takes_back)
        await until(lambda: any(isinstance(event, Claimed) for event in room.host.seen))
        await until(lambda: any(isinstance(event, ActionDone) for event in room.host.seen))
        assert room.host.said("marvin") == []
        assert marvin.queued_commitments() == []
