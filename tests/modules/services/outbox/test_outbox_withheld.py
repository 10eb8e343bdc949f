"""What would give away a secret is refused without a copy of it being kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from common.redact import LEAK, Redactor
from modules.runtime.journal.types import StoredEntry
from modules.services.outbox.bodies import FollowBody, OpaqueBody
from modules.services.outbox.rules.secrets import SecretScan
from modules.services.outbox.types import ProposedAction, Verdict
from tests.journals import told_of
from tests.modules.services.outbox.body_values import body_of, reply_body
from tests.modules.services.outbox.running_outbox import RunningOutbox, reply

# NOTE(self): this journal does not know the secret, so only admission keeps it out.
SECRET = "tell-nobody-77"
PLACE = "at://did:plc:ada/app.bsky.feed.post/1"
WORDS = "My diary opens with"


def chatty(_: sqlite3.Connection, draft: ProposedAction, __: datetime) -> Sequence[Verdict]:
    return [Verdict("chatty", "block", f"I read {draft.text} for {draft.target}", value=draft.text)]


def careful_about(_: sqlite3.Connection, draft: ProposedAction, __: datetime) -> Sequence[Verdict]:
    return [Verdict("careful", "hold", f"I read {draft.text}")]


def on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


async def refused(running_outbox: RunningOutbox, draft: ProposedAction) -> StoredEntry:
    running_outbox.rules = (chatty, careful_about, SecretScan(Redactor([SECRET])))
    await running_outbox.restart()
    submitted = await running_outbox.outbox.submit(draft)
    assert (submitted.accepted, submitted.reason) == (False, LEAK)
    stored = await running_outbox.outbox.get(submitted.intent.id)
    assert stored == submitted.intent
    assert (stored.state, stored.error, stored.cause_id) == ("blocked", LEAK, draft.cause_id)
    assert (stored.body, stored.target, stored.body_hash, stored.dedup_key) == (OpaqueBody(), "", "", "")
    (entry,) = await told_of(running_outbox.journal, stored.id)
    return entry


@pytest.mark.parametrize(
    "draft",
    [
        ProposedAction(reply_body(f"{WORDS} {SECRET}", PLACE), cause_id=PLACE),
        ProposedAction(body_of("post", text=WORDS, images=[{"alt": SECRET}]), cause_id="expression"),
        ProposedAction(FollowBody(did=f"did:web:{SECRET}.example"), cause_id=PLACE, hold="a stranger"),
    ],
)
async def test_no_word_of_a_draft_with_a_secret_reaches_the_disk(
    running_outbox: RunningOutbox, draft: ProposedAction
) -> None:
    entry = await refused(running_outbox, draft)
    for kept in (SECRET, WORDS):
        assert kept.encode() not in on_disk(running_outbox.path)
        assert kept not in str(entry)
    assert b"expression" in on_disk(running_outbox.path) or PLACE.encode() in on_disk(running_outbox.path)
    assert [rule["rule"] for rule in entry.entry.data["rules"]] == ["secrets"]


async def test_the_owner_is_told_of_it_by_an_error_line_with_the_reason_alone(running_outbox: RunningOutbox) -> None:
    await refused(running_outbox, reply(PLACE, f"{WORDS} {SECRET}"))
    assert running_outbox.console.lines == [("error", "Blocked reply: its words were not kept", LEAK)]


async def test_a_withheld_act_takes_no_place_and_no_words_from_a_later_one(running_outbox: RunningOutbox) -> None:
    await refused(running_outbox, reply(PLACE, f"{WORDS} {SECRET}"))
    running_outbox.rules = ()
    await running_outbox.restart()
    assert (await running_outbox.outbox.submit(reply(PLACE, WORDS))).accepted
