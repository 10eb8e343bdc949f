"""Proves that what is taken back stays taken back, however late or lost the act itself was on its way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from common.result import ApiResult, Ok
from modules.services.outbox.bodies import DeleteBody, FollowBody, PostBody
from modules.services.outbox.types import Intent, ProposedAction, Sent
from tests.modules.services.outbox.outbox_house import DID, Fault, House, RecordService, like, post, reply


@dataclass
class Eraser:
    """Deletes at the record service, by the record key at the end of the target."""

    service: RecordService

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        self.service.records.pop(_key(intent.target), None)
        return Ok(Sent())

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        return Ok(None if _key(intent.target) in self.service.records else Sent())


def _key(uri: str) -> str:
    return uri.rsplit("/", 1)[1]


def cancel_unsent(intent: Intent) -> ProposedAction:
    uri = f"at://{DID}/app.bsky.feed.post/{intent.rkey}"
    return ProposedAction(DeleteBody(uri=uri), cause_id="owner")


@pytest.fixture
async def house(house: House) -> House:
    house.senders["delete"] = Eraser(house.service)
    await house.restart()
    return house


async def _state(house: House, intent: Intent) -> str:
    now = await house.outbox.get(intent.id)
    assert now is not None
    return now.state


async def test_what_has_not_left_yet_and_is_taken_back_never_leaves(house: House) -> None:
    await house.outbox.submit(post("the first"))
    await house.outbox.deliver_due()
    waiting = (await house.outbox.submit(post("the second, behind the pace"))).intent
    back = (await house.outbox.submit(cancel_unsent(waiting))).intent
    await house.drain(3 * 3600, step_s=60)
    assert (await _state(house, waiting), await _state(house, back)) == ("blocked", "done")
    assert waiting.rkey not in house.service.writes


async def test_what_waits_for_the_owner_and_is_taken_back_waits_no_more(house: House) -> None:
    held = (await house.outbox.submit(ProposedAction(PostBody(text="shy"), hold="shy"))).intent
    await house.outbox.submit(cancel_unsent(held))
    assert (await _state(house, held), await house.outbox.held()) == ("blocked", [])


async def test_a_deletion_that_needs_the_owners_yes_takes_back_with_that_yes(house: House) -> None:
    held = (await house.outbox.submit(ProposedAction(PostBody(text="shy"), hold="shy"))).intent
    back = (await house.outbox.submit(replace(cancel_unsent(held), hold="sure?"))).intent
    assert (await _state(house, held), await _state(house, back)) == ("held", "held")
    await house.outbox.approve(back.id)
    await house.drain(3600, step_s=60)
    assert (await _state(house, held), await _state(house, back)) == ("blocked", "done")


@pytest.mark.parametrize("fault", ["lost_answer", "lost_request", "busy"])
async def test_what_is_on_the_road_is_taken_back_when_it_has_come_to_its_end(house: House, fault: Fault) -> None:
    house.service.faults.append(fault)
    lost = (await house.outbox.submit(reply("at://x/y/1", "hasty words"))).intent
    await house.outbox.deliver_due()
    back = (await house.outbox.submit(cancel_unsent(lost))).intent
    await house.drain(3600)
    assert (await _state(house, lost), await _state(house, back)) == ("done", "done")
    assert house.service.records == {}


async def test_taking_back_what_is_done_waits_for_nothing(house: House) -> None:
    done = (await house.outbox.submit(reply("at://x/y/1", "hasty words"))).intent
    await house.outbox.deliver_due()
    await house.outbox.submit(cancel_unsent(done))
    await house.drain(60)
    assert house.service.records == {}


async def test_what_is_taken_back_in_the_very_moment_of_leaving_never_leaves(house: House) -> None:
    leaving = (await house.outbox.submit(post("hasty words"))).intent
    await asyncio.gather(house.outbox.deliver_due(), house.outbox.submit(cancel_unsent(leaving)))
    await house.drain(3600, step_s=60)
    assert await _state(house, leaving) == "blocked"
    assert leaving.rkey not in house.service.writes


FOLLOW = ProposedAction(FollowBody(did="did:plc:ada"))


async def _undo(house: House, done: Intent) -> Intent:
    back = await house.outbox.submit(ProposedAction(DeleteBody(uri=done.result_uri or ""), cause_id="owner"))
    await house.drain(60)
    return back.intent


@pytest.mark.parametrize("draft", [FOLLOW, like("at://x/y/1")], ids=["follow", "like"])
@pytest.mark.parametrize("fault", [None, "lost_answer"])
async def test_what_was_undone_can_be_done_again_and_counts_as_done_until_then(
    house: House, draft: ProposedAction, fault: Fault | None
) -> None:
    for _ in range(3):
        if fault:
            house.service.faults.append(fault)
        first = (await house.outbox.submit(draft)).intent
        await house.drain(4000, step_s=100)
        repeated = await house.outbox.submit(draft)
        assert repeated.reason == f"Already done: {draft.kind} to {draft.target}"
        done = await house.outbox.get(first.id)
        assert done is not None
        assert await _state(house, await _undo(house, done)) == "done"
        await house.restart()
    assert [one.state for one in await house.outbox.by_target(draft.kind, draft.target)].count("done") == 3
    assert house.service.records == {}


async def test_only_the_deletion_of_its_own_record_frees_an_act(house: House) -> None:
    first = (await house.outbox.submit(FOLLOW)).intent
    await house.outbox.deliver_due()
    elsewhere = ProposedAction(DeleteBody(uri=f"at://{DID}/app.bsky.feed.post/{first.rkey}"))
    await house.outbox.submit(elsewhere)
    await house.drain(60)
    assert not (await house.outbox.submit(FOLLOW)).accepted


async def test_a_reply_that_was_deleted_is_not_given_again(house: House) -> None:
    first = await house.deliver((await house.outbox.submit(reply("at://x/y/1", "hasty words"))).intent.id)
    await _undo(house, first)
    assert not (await house.outbox.submit(reply("at://x/y/1", "better words"))).accepted
