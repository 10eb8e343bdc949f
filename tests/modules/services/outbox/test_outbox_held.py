"""Acts that wait for the owner's approval: how they come to wait, what the owner can say, from here or from beside."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from common.errors import NotWaiting
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.outbox import approval
from modules.services.outbox.types import Intent, ProposedAction, Rule, Submitted, Verdict
from tests.journals import told_of
from tests.modules.services.outbox.running_outbox import RunningOutbox, post, reply

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
    short = intent.id[:6]
    told = f"Waits for your approval (/approve {short} or /reject {short}): reply: {intent.body.preview}"
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
    approved = await running_outbox.outbox.approve(intent.id[:4])
    assert (approved.state, approved.rkey, approved.error) == ("pending", intent.rkey, None)
    assert await running_outbox.outbox.wait_for_work(0)
    assert (await running_outbox.outbox.deliver_due()).done == 1
    assert running_outbox.service.writes == [intent.rkey]
    told = [entry.entry.reason for entry in await told_of(running_outbox.journal, intent.id)]
    assert told[:2] == ["a stranger asked", "the owner approved it"]


async def test_a_rejected_act_never_leaves_and_frees_its_target(running_outbox: RunningOutbox) -> None:
    intent = await hold(running_outbox)
    rejected = await running_outbox.outbox.reject(intent.id, "too  loud")
    assert (rejected.state, rejected.error) == ("blocked", "the owner rejected it: too loud")
    await running_outbox.drain(HOUR, step_s=600)
    assert running_outbox.service.writes == []
    assert (await running_outbox.outbox.submit(reply(A, "softer words"))).accepted


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


async def test_a_beginning_that_fits_several_drafts_decides_none(running_outbox: RunningOutbox) -> None:
    first, second = await hold(running_outbox, "one", A), await hold(running_outbox, "two", B)

    def alike(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE intents SET id = 'abcd1' WHERE id = ?", (first.id,))
        connection.execute("UPDATE intents SET id = 'abcd2' WHERE id = ?", (second.id,))

    await running_outbox.database.run(alike)
    with pytest.raises(NotWaiting, match="2 drafts begin with abcd"):
        await running_outbox.outbox.approve("abcd")
    assert (await running_outbox.outbox.approve("ABCD2")).id == "abcd2"


async def test_a_decision_is_made_once(running_outbox: RunningOutbox) -> None:
    intent = await hold(running_outbox)
    await running_outbox.outbox.approve(intent.id)
    with pytest.raises(NotWaiting, match="it is pending"):
        await running_outbox.outbox.reject(intent.id)
    await running_outbox.outbox.deliver_due()
    with pytest.raises(NotWaiting, match="it is done"):
        await running_outbox.outbox.approve(intent.id)


async def test_a_yes_from_another_process_is_found_at_the_next_round(running_outbox: RunningOutbox) -> None:
    intent = await hold(running_outbox)
    beside = await Database.beside(running_outbox.path)
    journal = Journal(beside, SilentConsole(), running_outbox.clock, Redactor())
    now = running_outbox.clock.now()
    await journal.record_with(lambda connection: approval.approve(connection, intent.id, now))
    await beside.close()
    assert (await running_outbox.outbox.deliver_due()).done == 1
    assert running_outbox.service.writes == [intent.rkey]
