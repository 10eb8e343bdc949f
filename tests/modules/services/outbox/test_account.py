"""A home belongs to one Bluesky account: what happens when `.env` names another."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.atproto.types import Actor
from common.errors import ConfigError
from modules.services.outbox.account import settle_account
from modules.services.outbox.bodies import FollowBody
from modules.services.outbox.types import ProposedAction
from tests.modules.services.outbox.body_values import body_of
from tests.modules.services.outbox.running_outbox import RunningOutbox, like, open_running_outbox, post, reply
from tests.program import one_clear_line, soul
from tests.running_town import RunningTown, awake

ROWAN, KIT = Actor("did:plc:rowan", "rowan.test"), Actor("did:plc:kit", "kit.test")
FOLLOW = ProposedAction(FollowBody(did="did:plc:ada"))


@pytest.fixture
async def running_outbox(tmp_path: Path) -> AsyncIterator[RunningOutbox]:
    async with open_running_outbox(tmp_path) as running_outbox:
        yield running_outbox


async def settle(running_outbox: RunningOutbox, account: Actor) -> None:
    await settle_account(
        running_outbox.database, running_outbox.journal, running_outbox.clock, account=account, timezone="UTC"
    )


async def test_a_home_that_never_knew_its_account_takes_it_without_a_word_whatever_waits(
    running_outbox: RunningOutbox,
) -> None:
    await running_outbox.outbox.submit(post("words"))
    told = running_outbox.messages()
    for _ in range(2):
        await settle(running_outbox, ROWAN)
    assert running_outbox.messages() == told


async def test_a_new_handle_of_the_same_account_changes_nothing(running_outbox: RunningOutbox) -> None:
    await settle(running_outbox, ROWAN)
    await running_outbox.outbox.submit(post("words"))
    await settle(running_outbox, replace(ROWAN, handle="rowan.example"))
    with pytest.raises(ConfigError, match=r"belongs to @rowan\.example \(did:plc:rowan\)"):
        await settle(running_outbox, KIT)


@pytest.mark.parametrize(("state", "told"), [("held", "draft (1)"), ("pending", "reply (1)"), ("sending", "reply (1)")])
async def test_what_still_waits_stops_another_account_and_is_told_with_the_ways_out(
    running_outbox: RunningOutbox, state: str, told: str
) -> None:
    await settle(running_outbox, ROWAN)
    draft = reply("at://x/y/1", "an answer")
    intent = (await running_outbox.outbox.submit(replace(draft, hold="sure?") if state == "held" else draft)).intent
    if state == "sending":
        running_outbox.service.faults.append("lost_answer")
        await running_outbox.outbox.deliver_due()
    await running_outbox.restart()
    with pytest.raises(ConfigError) as refused:
        await settle(running_outbox, KIT)
    assert str(refused.value) == (
        "This home belongs to @rowan.test (did:plc:rowan), but .env logs in as @kit.test (did:plc:kit);"
        f" of the former there still wait: {told}"
    )
    assert ("soul drafts reject" in (refused.value.remedy or "")) == (state == "held")
    assert "Put rowan.test back as AGENT_BLUESKY_USERNAME" in (refused.value.remedy or "")
    found = await running_outbox.outbox.get(intent.id)
    assert found is not None
    assert found.state == state
    await settle(running_outbox, ROWAN)


async def test_after_the_no_to_what_waits_or_when_it_has_lost_its_sense_the_other_account_has_the_home(
    running_outbox: RunningOutbox,
) -> None:
    await settle(running_outbox, ROWAN)
    held = (await running_outbox.outbox.submit(replace(post("shy"), hold="shy"))).intent
    await running_outbox.outbox.reject(held.id)
    await settle(running_outbox, KIT)
    assert running_outbox.messages()[-1] == (
        "This home now belongs to @kit.test (did:plc:kit)"
        " | it was @rowan.test (did:plc:rowan)'s, and nothing of that account waits to leave"
    )
    await running_outbox.outbox.submit(reply("at://x/y/1", "too late"))
    with pytest.raises(ConfigError):
        await settle(running_outbox, ROWAN)
    await running_outbox.clock.advance(timedelta(days=1).total_seconds())
    await settle(running_outbox, ROWAN)


async def test_what_goes_elsewhere_belongs_to_no_bluesky_account(running_outbox: RunningOutbox) -> None:
    await settle(running_outbox, ROWAN)
    await running_outbox.outbox.submit(ProposedAction(body_of("issue", text="words"), "commitment-1#1"))
    await settle(running_outbox, KIT)


async def test_the_new_account_may_follow_and_like_what_the_former_one_did(running_outbox: RunningOutbox) -> None:
    await settle(running_outbox, ROWAN)
    for draft in (FOLLOW, like("at://x/y/1")):
        await running_outbox.outbox.submit(draft)
    await running_outbox.drain(120)
    await settle(running_outbox, KIT)
    for draft in (FOLLOW, like("at://x/y/1")):
        assert (await running_outbox.outbox.submit(draft)).accepted


@pytest.mark.slow
async def test_the_program_stops_with_one_clear_line_and_starts_again_under_the_old_account(
    running_town: RunningTown,
) -> None:
    rowan, kit = running_town.account("rowan"), running_town.account("kit")
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life:
        await life.app.services.outbox.submit(post("mine"))
    mine = home.env.read_text()
    home.env.write_text(mine.replace("rowan.test", "kit.test"))
    ended = await soul("run", "--home", str(home.root))
    one_clear_line(ended, f"@rowan.test ({rowan})", f"@kit.test ({kit})", "draft (1)", "soul drafts reject", code=78)
    home.env.write_text(mine)
    async with awake(home) as life:
        assert len(await life.app.services.outbox.held()) == 1


async def test_a_home_made_before_this_goes_on(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home):
        pass
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("DELETE FROM marks WHERE name LIKE 'account_%'")
        connection.commit()
    async with awake(home):
        pass
    with closing(sqlite3.connect(home.database)) as connection:
        known = connection.execute("SELECT value FROM marks WHERE name = 'account_did'").fetchall()
    assert known == [(running_town.account("rowan"),)]
