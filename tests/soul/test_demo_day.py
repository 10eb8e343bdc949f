"""Proves that the demo shows something new all day, and that each resident's budget lasts.

`DEMO_HOURS` is how many hours are lived; below 24, each missing hour counts as twice the most expensive one.
"""

import asyncio
import json
import logging
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from common.clock import parse_iso
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from soul.app import open_soul
from soul.commands.demo import PASSES_BY_AFTER_S, TOKENS_PER_DAY, HomeControls, ask_in_passing, make_home
from tests.modules.lives.space.soul_in_room import Onlooker
from tests.running_town import settings_of
from tests.scenarios.room_day import Rhythm
from tests.scenarios.room_day_clock import MORNING, DayClock, DayLoop
from town import passing_by
from town.town import Town, open_town

HOUR_S = 3600.0
_SEED = 5
_AFTER_A_CHANGE_S = 3.0
_REST_S = 30.0


@dataclass
class Record:
    """What is left of the day. Times are seconds since the demo began."""

    posts: list[tuple[float, str]] = field(default_factory=list)
    """Time and author's handle of every public post, oldest first."""
    said: list[float] = field(default_factory=list)
    """Times at which somebody spoke in the room."""
    tokens: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """Tokens in each hour, by resident."""
    calls: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Calls of the model by purpose, by resident."""
    troubles: list[str] = field(default_factory=list)


def live_a_day(root: Path, *, until_s: float = 24 * HOUR_S, speed: float = 180) -> Record:
    """Run a day of the demo, or its beginning, and return the record."""
    record = Record()
    logging.disable(logging.INFO)
    with asyncio.Runner(loop_factory=DayLoop) as runner:
        runner.run(_day(root, record, until_s, speed))
    logging.disable(logging.NOTSET)
    return record


async def _day(root: Path, record: Record, until_s: float, speed: float) -> None:
    clock = DayClock()
    async with open_town(homes=root, controls=HomeControls({}), clock=clock) as town:
        visits = passing_by.pass_by(town.space_url, clock, random.Random(_SEED), first_s=PASSES_BY_AFTER_S)
        passing = asyncio.create_task(visits)
        ended = asyncio.Event()
        homes = {one.name: make_home(root / one.name, one, town, speed) for one in town.residents}
        lives = [asyncio.create_task(_live(home, name, clock, town, ended)) for name, home in homes.items()]
        ask_in_passing(town)
        stop = asyncio.create_task(clock.until(until_s))
        await asyncio.wait([stop, *lives], return_when=asyncio.FIRST_COMPLETED)
        ended.set()
        passing.cancel()
        for found in await asyncio.gather(*lives):
            record.troubles += found
        with suppress(asyncio.CancelledError):
            await passing
        record.posts = sorted(
            ((parse_iso(post.created_at) - MORNING).total_seconds(), post.author.handle)
            for post in town.network.posts(100_000)
        )
    record.said = sorted(_said(root))
    for name, home in homes.items():
        for call in _usage(home):
            hour = int((parse_iso(call["ts"]) - MORNING).total_seconds() // HOUR_S)
            record.tokens[name][hour] += call["input"] + call["output"]
            record.calls[name][call["purpose"]] += 1


async def _live(home: Home, name: str, clock: DayClock, town: Town, ended: asyncio.Event) -> list[str]:
    """Run one resident until `ended`, and return the errors in its journal."""
    settings = settings_of(home)
    rng = random.Random(f"{_SEED}:{name}")
    async with open_soul(settings, home, console=SilentConsole(), clock=clock, rng=rng) as app:
        await app.wake()
        await _DemoRhythm(app, clock, Onlooker(), town=town).keep(ended)
        troubles = await app.services.journal.recent(100_000, kinds=["error"])
    return [f"{name}: {entry.entry.summary}" for entry in troubles]


@dataclass
class _DemoRhythm(Rhythm):
    town: Town | None = None
    _changed: float = 0.0

    async def keep(self, ended: asyncio.Event) -> None:
        """Run the rhythm until `ended`."""
        assert self.town
        unsubscribe = self.town.network.subscribe(lambda _: self._change())
        own = [
            asyncio.create_task(self._beat("awareness", self._next_reading)),
            asyncio.create_task(self._beat("expression-check", self._next_post)),
        ]
        try:
            await super().keep(ended)
        finally:
            unsubscribe()
            for task in own:
                task.cancel()
            await asyncio.gather(*own, return_exceptions=True)

    def silent_s(self) -> float:
        received = self.app.lives.space.participation.talk.state.last_message_at
        return (self.clock.now() - received).total_seconds() if received else 0.0

    def _change(self) -> None:
        self._changed = self.clock.monotonic()
        self._sooner["awareness"].set()

    async def _next_reading(self, requested: float | None) -> float:
        own = requested or self.interval("awareness")
        if (
            self.clock.monotonic() - self._changed < _AFTER_A_CHANGE_S
            or (await self.app.services.situation()).waits.posts
        ):
            return own
        return max(own, _REST_S)

    async def _next_post(self, requested: float | None) -> float:
        due = self.app.lives.bluesky.expression.next_at
        left = (due - self.clock.now()).total_seconds() if due else 0.0
        return max(requested or 0.0, left, 0.1)


def _usage(home: Home) -> Iterator[dict[str, Any]]:
    """Yield all calls of the model, including the rotated part of the log."""
    for path in home.memory.glob("llm-usage.jsonl*"):
        for line in path.read_text("utf-8").splitlines():
            yield json.loads(line)


def _said(root: Path) -> Iterator[float]:
    """Yield the times at which somebody spoke in the room, by its record."""
    for path in root.glob(".room/**/*.jsonl*"):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row.get("type") == "chat":
                yield (parse_iso(row["timestamp"]) - MORNING).total_seconds()


pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

HOURS = int(os.environ.get("DEMO_HOURS", "1"))
FIRST_MINUTES_S = 300.0
LONGEST_QUIET_S = 40.0
LONGEST_QUIET_IN_THE_ROOM_S = 200.0
MOST_OF_THE_BUDGET = 0.7
"""Share of the budget from which on a SOUL becomes thrifty."""
HANDLES = ("maren.test", "tobias.test", "odile.test")


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return live_a_day(tmp_path_factory.mktemp("demo"), until_s=HOURS * HOUR_S)


def longest_quiet_s(moments: list[float]) -> float:
    return max(after - before for before, after in pairwise(moments))


def test_the_first_minutes_show_something_new_every_forty_seconds(day: Record) -> None:
    moments = [at for at, _ in day.posts if at < FIRST_MINUTES_S]
    assert longest_quiet_s([0.0, *moments, FIRST_MINUTES_S]) < LONGEST_QUIET_S


def test_all_residents_have_a_share_of_the_first_minutes(day: Record) -> None:
    by = [handle for at, handle in day.posts if at < FIRST_MINUTES_S]
    assert min(by.count(handle) for handle in HANDLES) > 0.15 * len(by)


def test_the_square_is_as_lively_later(day: Record) -> None:
    per_hour = [sum(hour <= at / HOUR_S < hour + 1 for at, _ in day.posts) for hour in range(HOURS)]
    assert min(per_hour) > 0.8 * per_hour[0], per_hour


def test_somebody_says_a_line_in_the_room_every_few_minutes(day: Record) -> None:
    assert longest_quiet_s([0.0, *day.said, HOURS * HOUR_S]) < LONGEST_QUIET_IN_THE_ROOM_S


def test_the_budget_of_each_resident_lasts_for_a_whole_day(day: Record) -> None:
    assert len(day.tokens) == len(HANDLES)
    for name, hours in day.tokens.items():
        reckoned = sum(hours.values()) + (24 - HOURS) * 2 * max(hours.values())
        assert reckoned < MOST_OF_THE_BUDGET * TOKENS_PER_DAY, (name, dict(hours))
    assert day.troubles == []
