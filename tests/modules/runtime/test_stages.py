"""Proves that the stages of a life are reached in order, and never left again."""

import asyncio
import itertools

import pytest

from modules.runtime.status import Stage, Stages

ORDER = list(Stage)


def at(stage: Stage) -> Stages:
    stages = Stages()
    for one in ORDER[1 : stage + 1]:
        stages.reach(one)
    return stages


@pytest.mark.parametrize(("here", "there"), list(itertools.product(ORDER, ORDER)))
def test_each_stage_leads_to_the_next_one_and_to_no_other(here: Stage, there: Stage) -> None:
    stages = at(here)
    if there > here + 1:
        with pytest.raises(RuntimeError, match=f"{there.name} cannot be reached from {here.name}"):
            stages.reach(there)
        last = here
    else:
        stages.reach(there)
        last = max(here, there)
    assert [stage for stage in ORDER if stages.has_reached(stage)] == ORDER[: last + 1]


async def test_who_waits_for_a_stage_goes_on_once_it_is_reached() -> None:
    stages, woken = Stages(), []

    async def wait(stage: Stage) -> None:
        await stages.wait_for(stage)
        woken.append(stage)

    tasks = [asyncio.create_task(wait(stage)) for stage in reversed(ORDER)]
    for stage in ORDER:
        stages.reach(stage)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert woken[-1] is stage
        assert stages.has_reached(stage)
    await asyncio.gather(*tasks)
