"""Proves that an account that writes all day gets no more turns an hour than others, also after a restart."""

import itertools
import random
import sqlite3
from contextlib import closing

import pytest

from common.clock import SystemClock
from modules.services.work.limits import TURNS_PER_PERSON
from tests.running_town import RunningTown, awake, call
from tests.striding_clock import StridingClock
from town.model.types import ChatRequest, Completion

_TURNS = "SELECT id FROM journal WHERE json_extract(data, '$.act') = 'turn'"
SYLLABLES = ("ba", "du", "fi", "go", "ka", "le", "mo", "ni", "po", "ru", "sa", "ti")


def sentence(rng: random.Random) -> str:
    return " ".join("".join(rng.choices(SYLLABLES, k=3)) for _ in range(8)).capitalize()


def answering(request: ChatRequest) -> Completion:
    post = request.messages[1].text.split("The post to meet now:")[-1]
    return call("bluesky_reply", text=f"{sentence(random.Random(post))}.")


@pytest.mark.slow
async def test_who_only_makes_it_think_gets_no_more_turns_than_others_in_an_hour(running_town: RunningTown) -> None:
    clock = running_town.network.clock = StridingClock(SystemClock().now())
    home, rng, numbers = running_town.make_home("rowan", SOUL_SPEED="1"), random.Random(4), itertools.count()
    kit = running_town.account("kit")
    running_town.mind.answer = lambda _: call("stay_silent", reason=f"nothing to add, for the {next(numbers)}th time")
    for _ in range(20):
        running_town.network.post_as(kit, f"@rowan.test {sentence(rng)}?")
    async with awake(home, clock=clock) as life:
        for _ in range(8):
            await life.app.scheduler.run_guarded("awareness")
        assert len(running_town.mind.asked) == TURNS_PER_PERSON.limit
        await clock.sleep(3600)
        for _ in range(8):
            await life.app.scheduler.run_guarded("awareness")
        assert len(running_town.mind.asked) == 2 * TURNS_PER_PERSON.limit


@pytest.mark.slow
async def test_a_restart_gives_nobody_new_turns(running_town: RunningTown) -> None:
    clock = running_town.network.clock = StridingClock(SystemClock().now())
    home, rng, numbers = running_town.make_home("rowan", SOUL_SPEED="1"), random.Random(5), itertools.count()
    kit = running_town.account("kit")
    noted: list[int] = []

    def respond(_: ChatRequest) -> Completion:
        with closing(sqlite3.connect(f"file:{home.memory / 'soul.db'}?mode=ro", uri=True)) as beside:
            noted.append(len(beside.execute(_TURNS).fetchall()))
        return call("stay_silent", reason=f"nothing to add, for the {next(numbers)}th time")

    running_town.mind.answer = respond
    for _ in range(20):
        running_town.network.post_as(kit, f"@rowan.test {sentence(rng)}?")
    for _ in range(4):
        async with awake(home, clock=clock) as life:
            await life.app.scheduler.run_guarded("awareness")
        await clock.sleep(120)
    assert len(running_town.mind.asked) == TURNS_PER_PERSON.limit
    assert noted == list(range(1, int(TURNS_PER_PERSON.limit) + 1)), "each is kept before the model is asked"
    await clock.sleep(3600)
    async with awake(home, clock=clock) as life:
        for _ in range(4):
            await life.app.scheduler.run_guarded("awareness")
    assert len(running_town.mind.asked) == 2 * TURNS_PER_PERSON.limit
