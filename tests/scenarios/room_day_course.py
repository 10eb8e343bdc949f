"""The course of the day: who wakes when, what the host says, what breaks on the way, and what is recorded."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.space.types import SpaceEvent
from tests.scenarios.room_day import Figures, Place, Soul, open_place
from tests.scenarios.room_day_clock import MORNING, DayLoop
from tests.scenarios.room_day_people import PEOPLE
from tests.scenarios.room_day_script import BOARD, HARBOUR, KEEPER, Line, script
from town.github.values import Fault as GitHubFault
from town.github.values import StoredComment, StoredIssue

DAY_S = 24 * 3600.0


def at(clock: str) -> float:
    """Return the seconds since the beginning of the day for a time of its first date, such as `14:05`."""
    hours, minutes = map(int, clock.split(":"))
    return ((hours - MORNING.hour) * 60 + minutes - MORNING.minute) * 60.0


OUTAGE = at("16:20"), at("16:40")
"""The time when the model service is down."""
BROKEN = at("18:50"), at("18:54")
"""The time when GitHub answers 500."""
RESTARTS: tuple[tuple[str, str], ...] = (
    ("bruno", "10:20"),
    ("odile", "13:36"),
    ("tobias", "15:35"),
    ("ines", "18:23"),
    ("maren", "20:51"),
)
ROOM_RESTARTS = "12:25"


@dataclass
class Record:
    """The record of the day."""

    lines: tuple[Line, ...]
    events: list[SpaceEvent] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    souls: dict[str, Figures] = field(default_factory=dict)
    usage: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    issues: dict[str, list[StoredIssue]] = field(default_factory=dict)
    comments: list[StoredComment] = field(default_factory=list)
    posts: list[tuple[str, str]] = field(default_factory=list)
    unhandled: list[str] = field(default_factory=list)
    took_s: float = 0.0
    cpu_s: float = 0.0
    jumps: int = 0


def live_a_day(root: Path, *, until_s: float = DAY_S) -> Record:
    """Run the day, or its first `until_s` seconds; return its record."""
    record = Record(tuple(line for line in script() if line.at < until_s))
    logging.disable(logging.INFO)
    began, cpu = time.monotonic(), time.process_time()
    with asyncio.Runner(loop_factory=DayLoop) as runner:
        loop = runner.get_loop()
        loop.set_exception_handler(lambda _, context: record.unhandled.append(str(context)))
        runner.run(_day(root, record, until_s))
        assert isinstance(loop, DayLoop)
        record.jumps = loop.jumps
    record.took_s, record.cpu_s = time.monotonic() - began, time.process_time() - cpu
    return record


async def _day(root: Path, record: Record, until_s: float) -> None:
    async with open_place(root) as place:
        souls = {one.name: Soul(place, one) for one in PEOPLE}
        for soul in souls.values():
            soul.wake()
        try:
            await _pass(place, souls, record.lines, until_s)
        finally:
            for soul in souls.values():
                await soul.end()
        _gather(record, place, souls)


async def _pass(place: Place, souls: dict[str, Soul], lines: tuple[Line, ...], until_s: float) -> None:
    """Run each event of the day at its time."""
    happenings: list[tuple[float, Callable[[], Awaitable[None]]]] = [
        *((line.at, _saying(place, line.text)) for line in lines),
        *((at(clock), _restarting(souls[name])) for name, clock in RESTARTS),
        (at(ROOM_RESTARTS), _room_restarting(place)),
        (OUTAGE[0], _doing(place.mind_fails)),
        (OUTAGE[1], _doing(place.mind_faults.clear)),
        (BROKEN[0], _doing(lambda: place.github_faults.arm(GitHubFault("server_error", times=1_000_000)))),
        (BROKEN[1], _doing(place.github_faults.clear)),
    ]
    for moment, happen in sorted(happenings, key=lambda one: one[0]):
        if moment >= until_s:
            break
        await place.clock.until(moment)
        await happen()
    await place.clock.until(until_s)


def _saying(place: Place, text: str) -> Callable[[], Awaitable[None]]:
    return _doing(lambda: place.says(text))


def _doing(act: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def happen() -> None:
        act()

    return happen


def _restarting(soul: Soul) -> Callable[[], Awaitable[None]]:
    async def happen() -> None:
        await soul.end()
        soul.wake()

    return happen


def _room_restarting(place: Place) -> Callable[[], Awaitable[None]]:
    async def happen() -> None:
        await place.close_room()
        await place.open_room()

    return happen


def _gather(record: Record, place: Place, souls: dict[str, Soul]) -> None:
    record.events, record.logged = list(place.host.seen), list(place.host.logged)
    for name, soul in souls.items():
        record.souls[name] = soul.figures
        lines = soul.usage.read_text(encoding="utf-8").splitlines() if soul.usage.exists() else []
        record.usage[name] = [json.loads(line) for line in lines]
    for full_name in (HARBOUR, BOARD):
        repo = place.github.repo(KEEPER, full_name.partition("/")[2], place.github.find(KEEPER))
        issues = [issue for issue in repo.issues.values() if issue is not None]
        record.issues[full_name] = [issue for issue in issues if issue.author.login in souls]
        record.comments += [one for issue in issues for one in issue.comments]
    record.posts = [(post.author.handle, post.text) for post in place.network.posts(1000)]
