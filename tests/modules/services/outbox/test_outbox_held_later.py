"""What was accepted before the owner's choice became stricter: it waits for approval, if it has not left by then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.settings import Approval
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.types import TrustCircle
from modules.services.outbox.types import Intent
from tests.journals import told_of
from tests.modules.services.outbox.running_outbox import DID, Fault, RunningOutbox, post, reply

OWNER, STRANGER = "did:plc:owner", "did:plc:ada"
CIRCLE = TrustCircle(own={DID}, owner={OWNER}, peers=set())
WHY = "every public act needs approval (SOUL_APPROVAL=drafts); it was accepted before that was set"


def thread(did: str, number: int = 1) -> str:
    return f"at://{did}/app.bsky.feed.post/{number}"


async def choose(running_outbox: RunningOutbox, choice: Approval) -> None:
    """The owner starts the program again with another `SOUL_APPROVAL`."""
    rule = ApprovalRule(choice, lambda: CIRCLE)
    running_outbox.rules, running_outbox.at_departure = (rule,), (rule.at_departure,)
    await running_outbox.restart()


async def now(running_outbox: RunningOutbox, intent: Intent) -> Intent:
    found = await running_outbox.outbox.get(intent.id)
    assert found is not None
    return found


async def test_what_has_not_left_waits_for_the_yes_at_once_and_the_journal_says_why(
    running_outbox: RunningOutbox,
) -> None:
    await choose(running_outbox, "off")
    drafts = [post("the first"), post("behind the pace"), reply(thread(STRANGER), "an answer")]
    intents = [(await running_outbox.outbox.submit(draft)).intent for draft in drafts]
    await choose(running_outbox, "drafts")
    await running_outbox.outbox.deliver_due()
    assert {one.id for one in await running_outbox.outbox.held()} == {one.id for one in intents}
    assert running_outbox.service.writes == []
    for intent in intents:
        *_, entry = await told_of(running_outbox.journal, intent.id)
        assert entry.entry.summary.startswith(f"Waits for your approval (/approve {intent.id[:6]}")
        assert (entry.entry.reason, (await now(running_outbox, intent)).error) == (WHY, WHY)


async def test_after_the_yes_it_leaves_and_after_a_no_it_does_not(running_outbox: RunningOutbox) -> None:
    await choose(running_outbox, "off")
    kept, refused = [
        (await running_outbox.outbox.submit(reply(thread(STRANGER, n), f"answer {n}"))).intent for n in (1, 2)
    ]
    await choose(running_outbox, "drafts")
    await running_outbox.outbox.deliver_due()
    await running_outbox.outbox.approve(kept.id)
    await running_outbox.outbox.reject(refused.id)
    await running_outbox.restart()
    await running_outbox.drain(600)
    assert running_outbox.service.writes == [kept.rkey]
    assert [(await now(running_outbox, one)).state for one in (kept, refused)] == ["done", "blocked"]


async def test_what_the_owner_asked_for_leaves_whatever_is_set_later(running_outbox: RunningOutbox) -> None:
    await choose(running_outbox, "off")
    asked = (await running_outbox.outbox.submit(replace(post("as you wish"), by_owner=True))).intent
    await choose(running_outbox, "drafts")
    await running_outbox.outbox.deliver_due()
    assert (await now(running_outbox, asked)).state == "done"


@pytest.mark.parametrize(("fault", "state"), [("lost_answer", "done"), ("lost_request", "held"), ("busy", "held")])
async def test_what_may_have_left_is_looked_for_and_only_then_held(
    running_outbox: RunningOutbox, fault: Fault, state: str
) -> None:
    await choose(running_outbox, "off")
    running_outbox.service.faults.append(fault)
    intent = (await running_outbox.outbox.submit(post("words"))).intent
    await running_outbox.outbox.deliver_due()
    await choose(running_outbox, "drafts")
    await running_outbox.drain(600)
    assert ((await now(running_outbox, intent)).state, len(running_outbox.service.writes)) == (
        state,
        int(state == "done"),
    )
    if state == "held":
        await running_outbox.outbox.approve(intent.id)
        await running_outbox.drain(600)
    assert running_outbox.service.writes == [intent.rkey]


async def test_what_landed_while_it_was_held_is_not_sent_again_after_the_yes(running_outbox: RunningOutbox) -> None:
    await choose(running_outbox, "off")
    running_outbox.service.faults.append("lost_request")
    intent = (await running_outbox.outbox.submit(post("words"))).intent
    await running_outbox.outbox.deliver_due()
    await choose(running_outbox, "drafts")
    await running_outbox.drain(600)
    assert (await now(running_outbox, intent)).state == "held"
    running_outbox.service.records[intent.rkey] = {}
    await running_outbox.outbox.approve(intent.id)
    await running_outbox.drain(600)
    assert ((await now(running_outbox, intent)).state, running_outbox.service.writes) == ("done", [])


async def test_a_pause_does_not_keep_the_owner_from_seeing_what_waits(running_outbox: RunningOutbox) -> None:
    await choose(running_outbox, "off")
    await running_outbox.outbox.submit(post("one"))
    await running_outbox.outbox.submit(post("two"))
    await choose(running_outbox, "drafts")
    running_outbox.service.down = True
    await running_outbox.outbox.deliver_due()
    assert len(await running_outbox.outbox.held()) == 2


async def test_a_rule_that_breaks_lets_nothing_leave_and_is_named(running_outbox: RunningOutbox) -> None:
    def broken() -> TrustCircle:
        raise LookupError("nobody is known")

    await choose(running_outbox, "off")
    intent = (await running_outbox.outbox.submit(post("words"))).intent
    running_outbox.at_departure = (ApprovalRule("drafts", broken).at_departure,)
    await running_outbox.restart()
    await running_outbox.outbox.deliver_due()
    held = await now(running_outbox, intent)
    assert held.state == "held"
    assert "at_departure failed: LookupError: nobody is known" in (held.error or "")
