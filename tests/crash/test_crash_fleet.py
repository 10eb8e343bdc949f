"""Sleeping SOULs miss nothing and do nothing twice, whatever is killed or cut off, under either engine."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from modules.runtime.home import Home, lock_holder
from soul.exit_codes import ExitCode
from tests.fleet_day import DayPlan, EngineName, open_fleet_day
from tests.patience import until
from tests.program import started
from tests.running_town import RunningTown
from tests.soul.test_sleep import new_words

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc"),
]
_SEED = int(os.environ.get("CRASH_SEED", "1"))


@pytest.mark.parametrize("engine", ["up", "cluster"])
async def test_a_day_with_kills_and_partitions_loses_nothing_and_doubles_nothing(
    engine: EngineName, tmp_path: Path
) -> None:
    plan = DayPlan(homes=3, asked=24, real_s=60, kills=6, cuts=9, hours=3)
    async with open_fleet_day(plan, engine, tmp_path, _SEED) as day:
        await day.live()
        assert (day.lost, day.doubled) == ([], []), str(day)
        assert day.kills.total() > 1
        assert "woken, something came" in day.engine.log.read_text(encoding="utf-8")


async def test_of_two_processes_forced_onto_one_home_or_its_copy_one_acts(running_town: RunningTown) -> None:
    running_town.mind.answer = new_words()
    rowan = running_town.make_home("rowan", SOUL_SPEED="50")
    copy = Home.at(Path(shutil.copytree(rowan.root, rowan.root.with_name("copy"))))
    for number in range(3):
        running_town.network.post_as(running_town.account(f"kit{number}"), f"Tin or slate {number}, @rowan.test?")
    roots = [str(home.root) for home in (rowan, rowan, copy, copy)]
    async with (
        started("run", "--home", roots[0]) as one,
        started("run", "--home", roots[1]) as two,
        started("run", "--home", roots[2]) as three,
        started("run", "--home", roots[3]) as four,
    ):
        processes = (one, two, three, four)
        await until(lambda: len(running_town.texts("rowan")) >= 3, what="three answers")
        await until(lambda: sum(process.returncode is not None for process in processes) == 3, what="three ends")
        assert [process.returncode for process in processes if process.returncode is not None] == [ExitCode.IN_USE] * 3
        assert len([home for home in (rowan, copy) if lock_holder(home)]) == 1
        assert len([text for text in running_town.texts("rowan") if text]) == 3
