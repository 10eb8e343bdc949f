"""Acts that wait for the owner's approval: why they wait, and how the owner answers, here or in another process.

An act that was accepted before the owner's choice became stricter waits for approval, unless it has left by then. A
scheduled act waits for its time, leaves once, and can be taken back before.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from adapters.atproto.records import web_url
from common.clock import local, parse_iso, spoken
from common.errors import NotWaiting
from common.intervals import OUTBOX_DRAIN_INTERVAL_MS, Pace
from common.redact import Redactor
from common.settings import Approval
from modules.runtime.console import SilentConsole
from modules.runtime.control import Standing
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.outbox import approval, store
from modules.services.outbox.approval import leaving
from modules.services.outbox.github_bodies import IssueCommentBody, PullRequestBody, PushBody
from modules.services.outbox.outbox import OutboxLoop
from modules.services.outbox.policy import MOST_SCHEDULED, SCHEDULE_AHEAD
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.rules import TrustCircle
from modules.services.outbox.types import Intent, ProposedAction, Rule, Submitted, Verdict
from tests.fresh_database import in_memory
from tests.journals import told_of
from tests.modules.services.outbox.running_outbox import DID, PACING, Fault, RunningOutbox, like, post, reply

A, B = "at://did:plc:ada/app.bsky.feed.post/1", "at://did:plc:ada/app.bsky.feed.post/2"
HOUR = 3600


def saying(*verdicts: Verdict) -> Rule:
    def rule(_: sqlite3.Connection, __: ProposedAction, ___: datetime) -> Sequence[Verdict]:
        return verdicts

    return rule


async def submit(running_outbox: RunningOutbox, draft: ProposedAction, *rules: Rule) -> Submitted:
    running_outbox.rules = rules
    await running_outbox.restart()
    return await running_outbox.outbox.submit(draft)


async def hold(running_outbox: RunningOutbox, text: str = "may I?", target: str = A) -> Intent:
    submitted = await running_outbox.outbox.submit(replace(reply(target, text), hold="a stranger asked"))
    assert submitted.held
    return submitted.intent


PASS, EMPTY = Verdict("points", value=3, limit=4000), Verdict("consent")
HOLD, BLOCK = Verdict("approval", "hold", "drafts"), Verdict("loops", "block", "13 turns", 13, 12)


@pytest.mark.parametrize(
    ("hold", "verdicts", "state", "reason"),
    [
        ("", (PASS, EMPTY), "pending", ""),
        ("tainted", (HOLD, HOLD), "held", "tainted; drafts"),
        ("tainted", (HOLD, BLOCK), "blocked", "13 turns"),
        ("", (Verdict("mute", "block"),), "blocked", "mute"),
    ],
)
async def test_one_block_is_stronger_than_any_hold_and_the_reasons_are_kept(
    running_outbox: RunningOutbox, hold: str, verdicts: tuple[Verdict, ...], state: str, reason: str
) -> None:
    submitted = await submit(running_outbox, replace(post("words"), hold=hold), saying(*verdicts))
    assert (submitted.intent.state, submitted.reason, submitted.intent.error) == (state, reason, reason or None)
    assert (submitted.accepted, submitted.held) == (state != "blocked", state == "held")
    assert await running_outbox.outbox.get(submitted.intent.id) == submitted.intent


async def test_the_journal_keeps_what_every_rule_said_but_for_empty_passes(running_outbox: RunningOutbox) -> None:
    submitted = await submit(running_outbox, post("words"), saying(PASS, EMPTY), saying(HOLD))
    (entry,) = await told_of(running_outbox.journal, submitted.intent.id)
    assert entry.entry.data["rules"] == [
        {"rule": "points", "says": "pass", "reason": "", "value": 3, "limit": 4000, "withhold": False},
        {"rule": "approval", "says": "hold", "reason": "drafts", "value": None, "limit": None, "withhold": False},
    ]
    assert entry.entry.data["state"] == "held"


async def test_a_rule_that_breaks_lets_nothing_pass_and_is_named(running_outbox: RunningOutbox) -> None:
    def scales(connection: sqlite3.Connection, _: ProposedAction, __: datetime) -> Sequence[Verdict]:
        connection.execute("SELECT * FROM nowhere")
        return []

    submitted = await submit(running_outbox, post("words"), scales)
    assert not submitted.accepted
    assert submitted.reason == "the rule on scales failed: OperationalError: no such table: nowhere"


async def test_what_is_held_does_not_leave_and_is_announced_with_how_to_answer(running_outbox: RunningOutbox) -> None:
    intent = await hold(
        running_outbox, "may I say all of this, however long it is, and more than fits into a preview of it?"
    )
    await running_outbox.drain(HOUR, step_s=600)
    assert running_outbox.service.writes == []
    what = f"reply to {web_url(intent.target)}: {intent.body.preview}"
    told = f"Waits for your approval (/approve 1 or /reject 1): {what}"
    assert running_outbox.messages() == [f"{told} | a stranger asked"]


async def test_what_is_held_holds_its_words_and_its_target(running_outbox: RunningOutbox) -> None:
    await hold(running_outbox, "may I?")
    twin = await running_outbox.outbox.submit(reply(A, "other words"))
    assert twin.reason == f"This reply waits for the owner's approval already: {A}"
    await running_outbox.clock.advance(600)
    same = await running_outbox.outbox.submit(reply(B, "may I?"))
    assert same.reason == "Near-duplicate of a reply that waits for the owner's approval"


async def test_an_approved_act_keeps_its_key_and_leaves_at_its_turn(running_outbox: RunningOutbox) -> None:
    intent = await hold(running_outbox)
    await running_outbox.clock.advance(HOUR)
    (approved,) = await running_outbox.outbox.approve(intent.id[:4])
    assert (approved.state, approved.rkey, approved.error) == ("pending", intent.rkey, None)
    assert await running_outbox.outbox.wait_for_work(0)
    assert (await running_outbox.outbox.deliver_due()).done == 1
    assert running_outbox.service.writes == [intent.rkey]
    told = [entry.entry.reason for entry in await told_of(running_outbox.journal, intent.id)]
    assert told[:2] == ["a stranger asked", "the owner approved it"]


@pytest.mark.parametrize("ends_early", [False, True])
async def test_an_approved_act_has_its_whole_time_to_leave_again_unless_it_has_an_earlier_end(
    running_outbox: RunningOutbox, *, ends_early: bool
) -> None:
    until = running_outbox.clock.now() + timedelta(hours=5.5) if ends_early else None
    draft = replace(reply(A, "may I?"), hold="a stranger asked", until=until)
    intent = (await running_outbox.outbox.submit(draft)).intent
    await running_outbox.clock.advance(5 * HOUR)
    await running_outbox.outbox.approve(intent.id)
    await running_outbox.clock.advance(2 * HOUR)
    assert (await running_outbox.deliver(intent.id)).state == ("expired" if ends_early else "done")


async def test_a_rejected_act_never_leaves_and_frees_its_target(running_outbox: RunningOutbox) -> None:
    intent = await hold(running_outbox)
    (rejected,) = await running_outbox.outbox.reject(intent.id, reason="too  loud")
    assert (rejected.state, rejected.error) == ("blocked", "the owner rejected it: too loud")
    await running_outbox.drain(HOUR, step_s=600)
    assert running_outbox.service.writes == []
    assert (await running_outbox.outbox.submit(reply(A, "softer words"))).accepted
    with pytest.raises(NotWaiting, match="1 does not wait any more: it is blocked"):
        await running_outbox.outbox.approve("1")


async def test_of_a_repository_a_no_of_the_owner_counts_before_any_yes_and_what_is_undecided_or_taken_back_not_at_all(
    running_outbox: RunningOutbox,
) -> None:
    outbox = running_outbox.outbox

    async def proposed(number: int, **terms: Any) -> str:
        await running_outbox.clock.advance(1)
        body = IssueCommentBody(repo="other/lib", number=number, body=f"Comment {number}.")
        return (await outbox.submit(ProposedAction(body, f"part {number}", **terms))).intent.id

    async def said() -> tuple[bool, str] | None:
        of = partial(store.said_by_owner, kinds=["issue_comment"], repo="Other/Lib", since="")
        found = await running_outbox.database.run(of)
        return (found.rejected, found.id) if found else None

    first, second = await proposed(1, hold="unclear"), await proposed(2, hold="unclear")
    await outbox.reject(await proposed(3, by_owner=True), outcome="withdrawn")
    await proposed(4, by_owner=True, own_words=True, hold="drafts")
    assert await said() is None
    await outbox.approve(second)
    assert await said() == (False, second)
    await outbox.reject(first)
    await proposed(5, by_owner=True)
    assert await said() == (True, first)


async def test_what_nobody_answers_expires_like_the_rest(running_outbox: RunningOutbox) -> None:
    intent = await hold(running_outbox)
    await running_outbox.clock.advance(6 * HOUR)
    with pytest.raises(NotWaiting, match="lost its sense"):
        await running_outbox.outbox.approve(intent.id)
    assert (await running_outbox.outbox.deliver_due()).expired == 1
    expired = await running_outbox.outbox.get(intent.id)
    assert expired is not None
    assert (expired.state, expired.attempts) == ("expired", 0)
    assert "a stranger asked" in str(expired.error)
    with pytest.raises(NotWaiting, match="does not wait any more: it is expired"):
        await running_outbox.outbox.approve(intent.id)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("7", "No draft has the number 7"),
        ("wxyz", "cannot be a draft"),
        ("", "No draft is named"),
        ("0123456789abcdef", "No draft has the id"),
    ],
)
async def test_what_does_not_name_a_draft_is_said_so(running_outbox: RunningOutbox, given: str, said: str) -> None:
    await hold(running_outbox)
    with pytest.raises(NotWaiting, match=said) as caught:
        await running_outbox.outbox.approve(given)
    assert "drafts" in caught.value.remedy


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("yes 1", "/approve 1"),
        ("Yes 1, 13.", "/approve 1 13"),
        ("no 99", "/reject 99"),
        ("no 1 I changed my mind", "/reject 1 I changed my mind"),
        ("No 1: too dull.", "/reject 1 too dull."),
        ("no 99 bottles stand there", ""),
        ("no 1 2 of them are dull", "/reject 1 2 of them are dull"),
        ("yes 1 but shorter", ""),
        ("no 1st of May", ""),
        ("yes", ""),
    ],
)
async def test_a_line_that_answers_drafts_by_number_is_a_command_also_with_a_reason_or_an_unknown_number(
    running_outbox: RunningOutbox, line: str, command: str
) -> None:
    read = partial(approval.as_command, line=line)
    assert await running_outbox.database.run(read) == line, "no draft was ever shown"
    await hold(running_outbox)
    assert await running_outbox.database.run(read) == (command or line)


async def test_a_beginning_that_fits_several_drafts_decides_none(running_outbox: RunningOutbox) -> None:
    first, second = await hold(running_outbox, "one", A), await hold(running_outbox, "two", B)

    def alike(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE intents SET id = 'abcd1' WHERE id = ?", (first.id,))
        connection.execute("UPDATE intents SET id = 'abcd2' WHERE id = ?", (second.id,))

    await running_outbox.database.run(alike)
    with pytest.raises(NotWaiting, match="2 drafts begin with abcd"):
        await running_outbox.outbox.approve("abcd")
    assert [one.id for one in await running_outbox.outbox.approve("ABCD2")] == ["abcd2"]


async def test_what_was_approved_can_be_rejected_until_it_leaves(running_outbox: RunningOutbox) -> None:
    intents = [await hold(running_outbox, "the first"), await hold(running_outbox, "the second", thread(STRANGER, 2))]
    await running_outbox.outbox.approve(intents[0].id)
    with pytest.raises(NotWaiting, match="Number 1 needs no approval"):
        await running_outbox.outbox.approve(intents[0].id)
    assert [one.state for one in await running_outbox.outbox.reject(intents[0].id)] == ["blocked"]
    intent = intents[1]
    await running_outbox.outbox.approve(intent.id)
    await running_outbox.outbox.deliver_due()
    with pytest.raises(NotWaiting, match="it is done"):
        await running_outbox.outbox.reject(intent.id)
    with pytest.raises(NotWaiting, match="it is done"):
        await running_outbox.outbox.approve(intent.id)


@pytest.mark.parametrize("is_yes", [True, False])
async def test_a_list_is_decided_as_a_whole_also_where_one_act_is_decided_with_another_or_not_at_all(
    running_outbox: RunningOutbox, *, is_yes: bool
) -> None:
    async def decides(*given: str) -> list[Intent]:
        return await (running_outbox.outbox.approve(*given) if is_yes else running_outbox.outbox.reject(*given))

    of = {"source": "workspace", "repo": "acme/site", "task": "acme/site#1/task-1", "epoch": 1}
    push = PushBody(**of, branch="task-1", sha="a" * 40, folder="f", text="One file.")
    pull = PullRequestBody(**of, title="Tides", body="They can be read.", head="task-1", base="main")
    for part, body in (("push", push), ("pull-request", pull)):
        await running_outbox.outbox.submit(ProposedAction(body, part=part, hold="a workflow"))
    await hold(running_outbox)
    with pytest.raises(NotWaiting, match="No draft has the number 9; nothing was decided"):
        await decides("1", "2", "3", "9")
    assert len(await running_outbox.outbox.held()) == 3
    assert {one.outcome for one in await decides("1", "2", "3")} == {"pending" if is_yes else "rejected"}
    assert not await running_outbox.outbox.held()


async def test_of_a_list_with_an_act_that_needs_no_approval_none_is_approved(running_outbox: RunningOutbox) -> None:
    await hold(running_outbox, "the first")
    await hold(running_outbox, "the second", thread(STRANGER, 2))
    await running_outbox.outbox.approve("2")
    with pytest.raises(NotWaiting, match="Number 2 needs no approval: it leaves by itself; nothing was decided"):
        await running_outbox.outbox.approve("1", "2")
    assert len(await running_outbox.outbox.held()) == 1


async def test_a_yes_from_another_process_is_found_at_the_next_round(running_outbox: RunningOutbox) -> None:
    intent = await hold(running_outbox)
    beside = await Database.beside(running_outbox.path)
    journal = Journal(beside, SilentConsole(), running_outbox.clock, Redactor())
    now = running_outbox.clock.now()
    await journal.record_all_with(lambda connection: approval.approve(connection, [intent.id], now))
    await beside.close()
    assert (await running_outbox.outbox.deliver_due()).done == 1
    assert running_outbox.service.writes == [intent.rkey]


OWNER, STRANGER = "did:plc:owner", "did:plc:ada"
CIRCLE = TrustCircle(own={DID}, owner={OWNER}, peers=set())
WHY = "every public act needs approval (SOUL_APPROVAL=drafts); it was accepted before that was set"


def thread(did: str, number: int = 1) -> str:
    return f"at://{did}/app.bsky.feed.post/{number}"


async def choose(running_outbox: RunningOutbox, choice: Approval) -> None:
    """Start the program again with another `SOUL_APPROVAL`, as the owner would."""
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
    for number, intent in enumerate(intents, start=1):
        *_, entry = await told_of(running_outbox.journal, intent.id)
        assert entry.entry.summary.startswith(f"Waits for your approval (/approve {number} ")
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


DAY = timedelta(days=1)
NOBODY = TrustCircle(own=set(), owner=set(), peers=set())


def later(running_outbox: RunningOutbox, text: str, after: timedelta = DAY) -> ProposedAction:
    return replace(post(text), by_owner=True, urgent=True, scheduled_for=running_outbox.clock.now() + after)


async def schedule(running_outbox: RunningOutbox, text: str = "Tides.", after: timedelta = DAY) -> Submitted:
    return await running_outbox.outbox.submit(later(running_outbox, text, after))


async def test_a_time_is_told_only_where_all_that_was_approved_leaves_by_itself(running_outbox: RunningOutbox) -> None:
    at_its_time, moment = (await schedule(running_outbox)).intent, running_outbox.clock.now()
    soon = (await running_outbox.outbox.submit(post("Now."))).intent
    for approved, is_awake in (([at_its_time], True), ([at_its_time], False), ([at_its_time, soon], True)):
        told = leaving(approved, Standing(), "UTC", is_awake=is_awake, now=moment)
        assert (f"{moment + DAY:%Y-%m-%d}" in told) is (is_awake and soon not in approved), told


@pytest.mark.parametrize("dies", [False, True])
async def test_it_leaves_at_its_moment_and_once_also_over_a_restart(
    running_outbox: RunningOutbox, *, dies: bool
) -> None:
    intent = (await schedule(running_outbox)).intent
    report = await running_outbox.outbox.deliver_due()
    assert report.next_in_s == DAY.total_seconds()
    await running_outbox.clock.advance(DAY.total_seconds() - 1)
    await running_outbox.restart()
    assert (await running_outbox.deliver(intent.id)).state == "pending"
    assert running_outbox.service.writes == []
    await running_outbox.clock.advance(1)
    if dies:
        await running_outbox.die_while_sending()
    await running_outbox.drain(600)
    assert (await running_outbox.deliver(intent.id)).state == "done"
    assert running_outbox.service.writes == [intent.rkey]


@pytest.mark.parametrize(("late_s", "state"), [(-5, "done"), (5, "expired")])
async def test_its_expiry_counts_from_its_moment(running_outbox: RunningOutbox, late_s: float, state: str) -> None:
    intent = (await schedule(running_outbox)).intent
    await running_outbox.clock.advance(2 * DAY.total_seconds() + late_s)
    assert (await running_outbox.deliver(intent.id)).state == state


async def test_its_moment_is_told_as_the_owner_reads_it(running_outbox: RunningOutbox) -> None:
    intent = (await schedule(running_outbox)).intent
    (queued, *_) = await told_of(running_outbox.journal, intent.id)
    moment = spoken(local(parse_iso(str(intent.scheduled_for))))
    assert (queued.entry.reason, str(intent.scheduled_for)[:4] in moment) == (f"for {moment}, with priority", True)


@pytest.mark.parametrize("after", [timedelta(), SCHEDULE_AHEAD + timedelta(minutes=1)])
async def test_a_moment_that_has_passed_or_is_far_ahead_is_refused(
    running_outbox: RunningOutbox, after: timedelta
) -> None:
    refused = await schedule(running_outbox, after=after)
    assert not refused.accepted
    assert "moment" in refused.reason


async def test_no_more_than_so_many_wait_and_one_that_is_taken_back_makes_room(running_outbox: RunningOutbox) -> None:
    kept = [await schedule(running_outbox, f"Tide {number}.") for number in range(MOST_SCHEDULED)]
    assert not (await schedule(running_outbox, "One more.")).accepted
    await running_outbox.outbox.reject(kept[0].intent.id)
    assert (await schedule(running_outbox, "One more.")).accepted
    await running_outbox.drain(DAY.total_seconds() + 7200, step_s=3600)
    assert len(running_outbox.service.writes) == MOST_SCHEDULED
    assert kept[0].intent.rkey not in running_outbox.service.writes


async def test_a_post_that_leaves_now_is_not_said_to_leave_after_one_whose_moment_is_ahead(
    running_outbox: RunningOutbox,
) -> None:
    await schedule(running_outbox)
    assert (await running_outbox.outbox.submit(post("Ebb."))).wait.seconds == 0


async def test_it_is_listed_with_what_waits_and_needs_no_yes(running_outbox: RunningOutbox) -> None:
    draft = (await running_outbox.outbox.submit(replace(post("Held."), hold="drafts"))).intent
    second, first = [(await schedule(running_outbox, f"Day {days}.", days * DAY)).intent for days in (2, 1)]
    listed = await running_outbox.database.run(approval.waiting)
    assert [one.id for one in listed] == [draft.id, first.id, second.id]
    assert [one.id for one in await running_outbox.outbox.held()] == [draft.id]
    with pytest.raises(NotWaiting):
        await running_outbox.outbox.approve(first.id)


async def test_with_drafts_what_has_its_own_words_waits_for_a_yes_and_then_for_its_moment(
    running_outbox: RunningOutbox,
) -> None:
    rule = ApprovalRule("drafts", lambda: NOBODY)
    running_outbox.rules, running_outbox.at_departure = [rule], [rule.at_departure]
    await running_outbox.restart()
    given = await running_outbox.outbox.submit(later(running_outbox, "Given."))
    unseen = await running_outbox.outbox.submit(replace(later(running_outbox, "Its own."), own_words=True))
    assert (given.advice.code, unseen.advice.code) == ("admitted", "held")
    await running_outbox.outbox.approve(unseen.intent.id)
    await running_outbox.drain(600)
    assert running_outbox.service.writes == []
    await running_outbox.clock.advance(DAY.total_seconds())
    await running_outbox.drain(600)
    assert sorted(running_outbox.service.writes) == sorted([given.intent.rkey, unseen.intent.rkey])


async def test_what_was_scheduled_unseen_waits_for_a_yes_once_the_owner_wants_drafts(
    running_outbox: RunningOutbox,
) -> None:
    intent = (await running_outbox.outbox.submit(replace(later(running_outbox, "Its own."), own_words=True))).intent
    running_outbox.at_departure = [ApprovalRule("drafts", lambda: NOBODY).at_departure]
    await running_outbox.restart()
    await running_outbox.clock.advance(DAY.total_seconds())
    held = await running_outbox.deliver(intent.id)
    assert (held.state, held.scheduled_for) == ("held", intent.scheduled_for)
    assert running_outbox.service.writes == []


async def test_what_the_owner_approves_from_beside_is_looked_for_soon_however_long_the_rest_waits(
    running_outbox: RunningOutbox,
) -> None:
    for target in (A, B):
        assert (await running_outbox.outbox.submit(like(target))).accepted
    loop = OutboxLoop(pace=Pace(), outbox=running_outbox.outbox, ready=lambda: True)
    first, second = await loop.run(), await loop.run()
    assert first.reason.startswith("1 sent"), "the other one waits for the distance between two likes"
    assert second.next_in_s is not None
    assert second.next_in_s <= OUTBOX_DRAIN_INTERVAL_MS / 1000 < PACING.like_s


def test_each_of_more_acts_than_there_are_short_numbers_gets_one() -> None:
    with closing(in_memory()) as connection:
        for number in range(1_000):
            connection.execute(
                "INSERT INTO intents (id, kind, target, body, body_hash, dedup_key, rkey, created_at, expires_at,"
                " state) VALUES (?1, 'like', '', '{}', '', ?1, ?1, ?1, '2027', 'held')",
                (f"{number:032x}",),
            )
        store.number_drafts(connection)
        assert len(set(store.draft_numbers(connection).values())) == 1_000
