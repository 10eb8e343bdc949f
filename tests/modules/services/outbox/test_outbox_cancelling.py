"""Proves that an act that is taken back stays undone, however late it arrives or however it was lost."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from common.result import ApiResult, Ok
from modules.services.outbox.bodies import DeleteBody, FollowBody, PostBody
from modules.services.outbox.types import Intent, ProposedAction, Sent
from tests.modules.services.outbox.running_outbox import DID, Fault, RecordService, RunningOutbox, like, post, reply


@dataclass
class Eraser:
    """A sender that deletes from the record service, by the record key at the end of the target."""

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
async def running_outbox(running_outbox: RunningOutbox) -> RunningOutbox:
    running_outbox.senders["delete"] = Eraser(running_outbox.service)
    await running_outbox.restart()
    return running_outbox


async def _state(running_outbox: RunningOutbox, intent: Intent) -> str:
    now = await running_outbox.outbox.get(intent.id)
    assert now is not None
    return now.state


async def test_what_has_not_left_yet_and_is_taken_back_never_leaves(running_outbox: RunningOutbox) -> None:
    await running_outbox.outbox.submit(post("the first"))
    await running_outbox.outbox.deliver_due()
    waiting = (await running_outbox.outbox.submit(post("the second, behind the pace"))).intent
    back = (await running_outbox.outbox.submit(cancel_unsent(waiting))).intent
    await running_outbox.drain(3 * 3600, step_s=60)
    assert (await _state(running_outbox, waiting), await _state(running_outbox, back)) == ("blocked", "done")
    assert waiting.rkey not in running_outbox.service.writes


async def test_a_deletion_that_needs_the_owners_yes_takes_back_with_that_yes(running_outbox: RunningOutbox) -> None:
    held = (await running_outbox.outbox.submit(ProposedAction(PostBody(text="shy"), hold="shy"))).intent
    back = (await running_outbox.outbox.submit(replace(cancel_unsent(held), hold="sure?"))).intent
    assert (await _state(running_outbox, held), await _state(running_outbox, back)) == ("held", "held")
    await running_outbox.outbox.approve(back.id)
    await running_outbox.drain(3600, step_s=60)
    assert (await _state(running_outbox, held), await _state(running_outbox, back)) == ("blocked", "done")


@pytest.mark.parametrize("fault", ["lost_answer", "lost_request", "busy"])
async def test_what_is_on_the_road_is_taken_back_when_it_has_come_to_its_end(
    running_outbox: RunningOutbox, fault: Fault
) -> None:
    running_outbox.service.faults.append(fault)
    lost = (await running_outbox.outbox.submit(reply("at://x/y/1", "hasty words"))).intent
    await running_outbox.outbox.deliver_due()
    back = (await running_outbox.outbox.submit(cancel_unsent(lost))).intent
    await running_outbox.drain(3600, step_s=60)
    assert (await _state(running_outbox, lost), await _state(running_outbox, back)) == ("done", "done")
    assert running_outbox.service.records == {}


async def test_what_is_taken_back_in_the_very_moment_of_leaving_never_leaves(running_outbox: RunningOutbox) -> None:
    leaving = (await running_outbox.outbox.submit(post("hasty words"))).intent
    await asyncio.gather(running_outbox.outbox.deliver_due(), running_outbox.outbox.submit(cancel_unsent(leaving)))
    await running_outbox.drain(3600, step_s=60)
    assert await _state(running_outbox, leaving) == "blocked"
    assert leaving.rkey not in running_outbox.service.writes


FOLLOW = ProposedAction(FollowBody(did="did:plc:ada"))


async def _undo(running_outbox: RunningOutbox, done: Intent) -> Intent:
    back = await running_outbox.outbox.submit(ProposedAction(DeleteBody(uri=done.result_uri or ""), cause_id="owner"))
    await running_outbox.drain(60)
    return back.intent


@pytest.mark.parametrize(
    ("draft", "fault"), [(FOLLOW, None), (like("at://x/y/1"), "lost_answer")], ids=["follow", "like"]
)
async def test_what_was_undone_can_be_done_again_and_counts_as_done_until_then(
    running_outbox: RunningOutbox, draft: ProposedAction, fault: Fault | None
) -> None:
    for _ in range(2):
        if fault:
            running_outbox.service.faults.append(fault)
        first = (await running_outbox.outbox.submit(draft)).intent
        await running_outbox.drain(4000, step_s=100)
        repeated = await running_outbox.outbox.submit(draft)
        assert repeated.reason == f"This {draft.kind} is done already: {draft.target}"
        done = await running_outbox.outbox.get(first.id)
        assert done is not None
        assert await _state(running_outbox, await _undo(running_outbox, done)) == "done"
        await running_outbox.restart()
    assert [one.state for one in await running_outbox.outbox.by_target(draft.kind, draft.target)].count("done") == 2
    assert running_outbox.service.records == {}


async def test_only_the_deletion_of_its_own_record_frees_an_act(running_outbox: RunningOutbox) -> None:
    first = (await running_outbox.outbox.submit(FOLLOW)).intent
    await running_outbox.outbox.deliver_due()
    elsewhere = ProposedAction(DeleteBody(uri=f"at://{DID}/app.bsky.feed.post/{first.rkey}"))
    await running_outbox.outbox.submit(elsewhere)
    await running_outbox.drain(60)
    assert not (await running_outbox.outbox.submit(FOLLOW)).accepted


async def test_what_was_undone_elsewhere_is_done_again_only_for_the_owner(running_outbox: RunningOutbox) -> None:
    first, order = (await running_outbox.outbox.submit(FOLLOW)).intent, replace(FOLLOW, by_owner=True)
    await running_outbox.outbox.deliver_due()
    assert not (await running_outbox.outbox.submit(order)).accepted
    del running_outbox.service.records[first.rkey]
    assert not (await running_outbox.outbox.submit(FOLLOW)).accepted
    assert (await running_outbox.outbox.submit(order)).accepted


async def test_a_reply_that_was_deleted_is_not_given_again(running_outbox: RunningOutbox) -> None:
    first = await running_outbox.deliver(
        (await running_outbox.outbox.submit(reply("at://x/y/1", "hasty words"))).intent.id
    )
    await _undo(running_outbox, first)
    assert not (await running_outbox.outbox.submit(reply("at://x/y/1", "better words"))).accepted
