"""Proves that every surface tells the owner when a waiting act leaves, and why not sooner."""

import asyncio

from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from soul.commands.run import owner_commands
from tests.running_town import RunningTown, awake


async def test_each_surface_tells_when_a_waiting_act_leaves_and_why_not_sooner(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    async with awake(home) as life:
        outbox, typed = life.app.services.outbox, owner_commands(life.app, asyncio.Event())
        await outbox.submit(ProposedAction(PostBody(text="Slate."), cause_id="expression"))
        await life.send()
        waiting = (await outbox.submit(ProposedAction(PostBody(text="Chalk."), cause_id="expression"))).intent
        await outbox.deliver_due()
        for line in ("/status", "/today", f"/why {waiting.id}"):
            said = " ".join(" ".join(await typed.answer(line)).split())
            assert "leaves at" in said, line
            assert "after the last post" in said, line
        assert "a post waits until" in await life.app.status_report.moment()
