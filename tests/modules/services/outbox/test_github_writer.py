"""What is written for a workspace: each act once under its key, however much else was done since."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from adapters.github.types import Repo
from modules.services.outbox.github_writer import GitHubWriter, act_key
from modules.services.outbox.types import ProposedAction, Verdict
from tests.modules.services.outbox.running_outbox import RunningOutbox

SITE = Repo("owner", "site")
KEY = act_key(SITE, 7, "resting")
HOUR = timedelta(hours=1)


async def test_an_act_is_proposed_once_and_again_only_a_while_after_it_was_refused(
    running_outbox: RunningOutbox,
) -> None:
    shut = [True]

    def rule(_: sqlite3.Connection, __: ProposedAction, ___: datetime) -> Sequence[Verdict]:
        return [Verdict("full", "block", "too much")] if shut[0] else []

    running_outbox.rules = (rule,)
    await running_outbox.restart()

    async def close() -> str:
        return (await GitHubWriter(running_outbox.outbox, HOUR).set_state(SITE, 7, KEY, "closed")).code

    assert [await close(), await close()] == ["refused", "left_alone"]
    shut[0] = False
    await running_outbox.clock.advance(HOUR.total_seconds() - 1)
    assert await close() == "left_alone"
    await running_outbox.clock.advance(1)
    assert [await close(), await close()] == ["waits", "waits"]
    await running_outbox.restart()
    assert await close() == "waits"
    assert len(await running_outbox.outbox.by_target("issue_update", KEY)) == 2


async def test_what_the_owner_refused_is_not_proposed_again(running_outbox: RunningOutbox) -> None:
    def rule(_: sqlite3.Connection, __: ProposedAction, ___: datetime) -> Sequence[Verdict]:
        return [Verdict("approval", "hold", "ask me")]

    running_outbox.rules = (rule,)
    await running_outbox.restart()
    writer = GitHubWriter(running_outbox.outbox, HOUR)
    assert (await writer.comment(SITE, 7, KEY, "This rests, @ada.", "<!-- mark -->")).code == "held"
    (held,) = await running_outbox.outbox.held()
    assert held.body.stored()["body"] == "This rests, @\u200bada.\n\n<!-- mark -->"
    assert "mark" not in held.body.preview
    await running_outbox.outbox.reject(held.id)
    await running_outbox.clock.advance(48 * 3600)
    refused = await writer.comment(SITE, 7, KEY, "This rests.")
    assert refused.code == "refused"
    assert refused.is_decided
    assert not refused.is_new
