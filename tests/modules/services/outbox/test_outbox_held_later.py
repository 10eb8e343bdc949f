"""What was accepted before the owner's choice became stricter: it waits for the yes, if it has not left by then."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from common.settings import Approval
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.types import TrustCircle
from modules.services.outbox.types import Intent
from tests.journals import told_of
from tests.modules.services.outbox.outbox_house import DID, Fault, House, post, reply

OWNER, STRANGER = "did:plc:owner", "did:plc:ada"
CIRCLE = TrustCircle(own={DID}, owner={OWNER}, peers=set())
WHY = "all that becomes public waits for the owner's yes; it was accepted before that was set"


def thread(did: str, number: int = 1) -> str:
    return f"at://{did}/app.bsky.feed.post/{number}"


async def choose(house: House, choice: Approval) -> None:
    """The owner starts the program again with another `SOUL_APPROVAL`."""
    rule = ApprovalRule(choice, lambda: CIRCLE)
    house.rules, house.at_departure = (rule,), (rule.at_departure,)
    await house.restart()


async def now(house: House, intent: Intent) -> Intent:
    found = await house.outbox.get(intent.id)
    assert found is not None
    return found


async def test_what_has_not_left_waits_for_the_yes_at_once_and_the_journal_says_why(house: House) -> None:
    await choose(house, "off")
    drafts = [post("the first"), post("behind the pace"), reply(thread(STRANGER), "an answer")]
    intents = [(await house.outbox.submit(draft)).intent for draft in drafts]
    await choose(house, "drafts")
    await house.outbox.deliver_due()
    assert {one.id for one in await house.outbox.held()} == {one.id for one in intents}
    assert house.service.writes == []
    for intent in intents:
        *_, entry = await told_of(house.journal, intent.id)
        assert entry.entry.summary.startswith(f"Waits for your yes (/approve {intent.id[:6]}")
        assert (entry.entry.reason, (await now(house, intent)).error) == (WHY, WHY)


async def test_after_the_yes_it_leaves_and_after_a_no_it_does_not(house: House) -> None:
    await choose(house, "off")
    kept, refused = [(await house.outbox.submit(reply(thread(STRANGER, n), f"answer {n}"))).intent for n in (1, 2)]
    await choose(house, "drafts")
    await house.outbox.deliver_due()
    await house.outbox.approve(kept.id)
    await house.outbox.reject(refused.id)
    await house.restart()
    await house.drain(600)
    assert house.service.writes == [kept.rkey]
    assert [(await now(house, one)).state for one in (kept, refused)] == ["done", "blocked"]


async def test_what_the_owner_asked_for_leaves_whatever_is_set_later(house: House) -> None:
    await choose(house, "off")
    asked = (await house.outbox.submit(replace(post("as you wish"), by_owner=True))).intent
    await choose(house, "drafts")
    await house.outbox.deliver_due()
    assert (await now(house, asked)).state == "done"


async def test_only_what_is_for_strangers_waits_where_only_that_is_set(house: House) -> None:
    await choose(house, "off")
    mine = (await house.outbox.submit(reply(thread(OWNER), "yes, gladly"))).intent
    theirs = (await house.outbox.submit(reply(thread(STRANGER), "no, thank you"))).intent
    await choose(house, "strangers")
    await house.drain(600)
    assert [(await now(house, one)).state for one in (mine, theirs)] == ["done", "held"]


@pytest.mark.parametrize(("fault", "state"), [("lost_answer", "done"), ("lost_request", "held"), ("busy", "held")])
async def test_what_may_have_left_is_looked_for_and_only_then_held(house: House, fault: Fault, state: str) -> None:
    await choose(house, "off")
    house.service.faults.append(fault)
    intent = (await house.outbox.submit(post("words"))).intent
    await house.outbox.deliver_due()
    await choose(house, "drafts")
    await house.drain(600)
    assert ((await now(house, intent)).state, len(house.service.writes)) == (state, int(state == "done"))
    if state == "held":
        await house.outbox.approve(intent.id)
        await house.drain(600)
    assert house.service.writes == [intent.rkey]


async def test_what_landed_while_it_was_held_is_not_sent_again_after_the_yes(house: House) -> None:
    await choose(house, "off")
    house.service.faults.append("lost_request")
    intent = (await house.outbox.submit(post("words"))).intent
    await house.outbox.deliver_due()
    await choose(house, "drafts")
    await house.drain(600)
    assert (await now(house, intent)).state == "held"
    house.service.records[intent.rkey] = {}
    await house.outbox.approve(intent.id)
    await house.drain(600)
    assert ((await now(house, intent)).state, house.service.writes) == ("done", [])


async def test_a_pause_does_not_keep_the_owner_from_seeing_what_waits(house: House) -> None:
    await choose(house, "off")
    await house.outbox.submit(post("one"))
    await house.outbox.submit(post("two"))
    await choose(house, "drafts")
    house.service.down = True
    await house.outbox.deliver_due()
    assert len(await house.outbox.held()) == 2


async def test_a_rule_that_breaks_lets_nothing_leave_and_is_named(house: House) -> None:
    def broken() -> TrustCircle:
        raise LookupError("nobody is known")

    await choose(house, "off")
    intent = (await house.outbox.submit(post("words"))).intent
    house.at_departure = (ApprovalRule("drafts", broken).at_departure,)
    await house.restart()
    await house.outbox.deliver_due()
    held = await now(house, intent)
    assert held.state == "held"
    assert "at_departure failed: LookupError: nobody is known" in (held.error or "")


async def test_a_yes_given_under_an_earlier_version_still_counts(tmp_path: Path) -> None:
    """Its rows do not tell who was asked; its journal does."""
    path = tmp_path / "earlier.db"
    with closing(sqlite3.connect(path)) as earlier:
        earlier.executescript("".join(MIGRATIONS[:6]) + "PRAGMA user_version = 6")
        for name in ("approved", "plain"):
            row = (name, "post", "", "{}", "", "", name, name, "9", "pending")
            earlier.execute(
                "INSERT INTO intents"
                " (id, kind, target, body, body_hash, dedup_key, rkey, created_at, expires_at, state)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        for name, state in (("approved", "held"), ("approved", "pending"), ("plain", "pending")):
            earlier.execute(
                "INSERT INTO journal VALUES (NULL, '1', 'act', 'outbox', 's', NULL, '', NULL, NULL, ?, ?)",
                (name, json.dumps({"state": state})),
            )
        earlier.commit()
    await (await Database.open(path, MIGRATIONS)).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT id FROM intents WHERE by_owner").fetchall() == [("approved",)]
