"""Proves that `soul friction` tells what goes wrong repeatedly, also to programs."""

import json

import pytest

from modules.services.craft.record import FrictionRecord
from soul.commands.reflect import run_friction
from tests.modules.services.craft.test_friction import turn
from tests.running_town import RunningTown, awake


async def test_the_command_tells_each_friction_and_how_often(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        for _ in range(2):
            await soul.app.services.journal.record(turn())
        await soul.app.scheduler.run_guarded("work")
        record: FrictionRecord = soul.app.lives.growth.craft.friction
        assert (await soul.app.lives.growth.report.gather())["friction"][0]["count"] == 2
        assert await record.count()
    run_friction(home.root, as_json=False)
    shown = capsys.readouterr().out
    assert "tools: bluesky_post Wrong Fields, in own posts\n  2 times on 1 day, last " in shown
    assert ": counted\n" in shown
    run_friction(home.root, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["frictions"][0]["description"] == "expression: bluesky_post Wrong Fields"
    assert told["proposals"] == []
