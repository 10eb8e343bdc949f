"""Notifications that cannot be read for a while: told once for each time, not at every look."""

from __future__ import annotations

from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.service import Fault

METHOD = "app.bsky.notification.listNotifications"


async def test_a_service_that_does_not_answer_is_told_once_until_it_answers_again(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        for _ in range(2):
            running_town.faults.arm(Fault("bad_gateway", METHOD, times=100))
            await life.look()
            await life.look()
            running_town.faults.clear()
            await life.look()
        assert await warnings(life) == 2


async def warnings(life: RunningSoul) -> int:
    told = [one.entry for one in await life.app.services.journal.recent(100) if one.entry.loop == "awareness"]
    return sum(entry.kind == "error" for entry in told)
