"""A daily ritual: one thread a day, each SOUL answers it once in a part of its own, and memos record the thoughts."""

import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.scenarios.ritual_process import RitualProcess
from tests.scenarios.ritual_town import MONDAY, RitualTown, open_ritual_town
from town.atproto.index import NetworkEvent
from town.github.values import GitHubEvent
from town.model.types import ChatRequest

SEED = int(os.environ.get("CRASH_SEED", "27"))
WEEK = (0, 1, 2, 3, 4, 7, 8, 9, 10, 11)
"""The days after Monday on which the ritual is held; days 5 and 6 are a weekend."""


def asks(tool: str) -> Callable[[object], bool]:
    """Return a check for requests to the model that offer this tool."""
    return lambda event: isinstance(event, ChatRequest) and tool in {offer.name for offer in event.offers}


def posts(event: object) -> bool:
    """Return whether the event is a new post, which its author has not been told of yet."""
    return isinstance(event, NetworkEvent) and event.kind == "created" and event.collection == "app.bsky.feed.post"


def writes(kind: str) -> Callable[[object], bool]:
    """Return a check for a new memo or comment on GitHub, which its author has not been told of yet."""
    return lambda event: isinstance(event, GitHubEvent) and event.kind == kind


def step(name: str) -> Callable[[object], bool]:
    """Return a check for the end of a loop."""
    return lambda event: event == f"after {name}"


KILLS: tuple[tuple[str, Callable[[object], bool]], ...] = (
    ("rowan", asks("open_ritual")),
    ("rowan", posts),
    ("wren", asks("bluesky_reply")),
    ("linden", posts),
    ("hazel", asks("write_memo")),
    ("wren", writes("issue_opened")),
    ("rowan", asks("write_memo")),
    ("rowan", step("work")),
    ("linden", step("awareness")),
    ("hazel", writes("comment_written")),
)
"""The SOUL that is killed on each day, and the event at which it is killed."""


async def kinds_of_ritual(town: RitualTown, name: str) -> list[str]:
    """Return the types of a SOUL's experiences with rituals, oldest first, without reactions of others to it."""
    found = [one for one in await town.souls[name].app.services.experiences.open() if one.source == "ritual"]
    openings = set(town.openings())
    return [one.type for one in found if one.uri in openings]


async def test_a_day_has_one_thread_that_each_answers_once_and_ends_with_the_memos(tmp_path: Path) -> None:
    async with open_ritual_town(tmp_path, ("rowan", "wren", "linden")) as town:
        await town.live(5)
        assert town.threads() == []
        await town.live(120, step_s=600)
        ((opening, answers),) = town.threads()
        assert "@wren.test" in opening
        assert sorted(who for who, _ in answers) == ["linden", "wren"]
        (uri,) = town.openings()
        parts = town.parts(uri)
        assert sorted(parts.values()) == ["analyst", "critic", "observer"]
        assert all(f"as {parts[who]}" in text for who, text in answers)
        (memo,) = town.memos
        assert sorted(town.authors_of(memo)) == ["linden", "rowan", "wren"]
        assert [await kinds_of_ritual(town, name) for name in ("rowan", "linden")] == [
            ["question_emerged", "learned_something"],
            ["connection_formed", "learned_something"],
        ]
        before = len(town.network.posts(1000)), len(memo.comments)
        await town.live(240, step_s=3600)
        assert (len(town.network.posts(1000)), len(memo.comments)) == before


@pytest.mark.slow
async def test_a_comment_of_the_owner_on_the_morning_s_memo_is_heard_where_the_day_begins_before_that_of_utc(
    tmp_path: Path,
) -> None:
    async with open_ritual_town(tmp_path, ("rowan", "wren"), timezone="Pacific/Auckland") as town:
        begun = town.clock.now()
        await town.live(150, step_s=600)
        (memo,), owner = town.memos, town.github.find("owner")
        assert owner
        town.github.write_comment(town.repo, memo, owner, "The staff was replaced in May.")
        town.sleep_until(begun + timedelta(days=1))
        await town.live(150, step_s=600)
        assert "The staff was replaced in May." in town.threads()[-1][0]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_ten_weekdays_with_a_kill_on_each_have_ten_threads_and_nothing_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ("rowan", "wren", "linden", "hazel")
    async with open_ritual_town(tmp_path, names) as town:
        for day, (victim, kill_at) in zip(WEEK, KILLS, strict=True):
            town.sleep_until(MONDAY + timedelta(days=day))
            town.souls[victim].kill_at = kill_at
            await town.live(150, step_s=600)
            assert town.souls[victim].killed == sum(one == victim for one, _ in KILLS[: WEEK.index(day) + 1]), day
            if day == WEEK[-2]:
                owner = town.github.find("owner")
                assert owner
                town.github.write_comment(town.repo, town.memos[-1], owner, "The staff was replaced in May.")
            if day == WEEK[4]:
                town.sleep_until(MONDAY + timedelta(days=day + 1))
                await town.live(180, step_s=3600)
        threads = town.threads()
        assert len(threads) == len(WEEK)
        said = [text for _, answers in threads for _, text in answers]
        assert [sorted(who for who, _ in answers) for _, answers in threads] == [sorted(names[1:])] * len(WEEK)
        assert len({*said, *(opening for opening, _ in threads)}) == len(said) + len(WEEK)
        for uri, (_, answers) in zip(town.openings(), threads, strict=True):
            parts = town.parts(uri)
            assert [f"as {parts[who]}." in text for who, text in answers] == [True] * len(answers)
        assert "I no longer do" in threads[-1][0]
        assert "The staff was replaced in May." in threads[-1][0]
        by_day = Counter(memo.title.partition(":")[0] for memo in town.memos)
        written = [sorted(set(town.authors_of(memo)) - {"owner"}) for memo in town.memos]
        assert (len(by_day), set(by_day.values())) == (len(WEEK), {1})
        assert written == [sorted(names)] * len(WEEK)
        doubled = [memo.title for memo in town.memos if max(Counter(town.authors_of(memo)).values()) > 1]
        assert doubled == []
    with capfd.disabled():
        sys.stdout.write(f"\n{len(threads)} threads, {len(said)} answers, {len(WEEK)} kills\n")


MOMENTS = (
    lambda event: asks("open_ritual")(event) or asks("bluesky_reply")(event),
    posts,
    asks("write_memo"),
    lambda event: writes("issue_opened")(event) or writes("comment_written")(event),
    step("work"),
)
"""Events at which a process may be killed: while the model thinks, after its post or memo arrived, or between loops."""


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_processes_that_are_killed_each_day_keep_one_thread_a_day_and_write_nothing_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names, days, rng = ("rowan", "wren", "linden"), 3, random.Random(SEED)
    moments = {name: rng.sample(MOMENTS, days) for name in names}
    async with open_ritual_town(tmp_path, names, kind=RitualProcess) as town:
        for day in range(days):
            town.sleep_until(MONDAY + timedelta(days=day))
            for name, soul in town.souls.items():
                soul.kill_at = moments[name][day]
            await town.live(150, step_s=600)
            assert [soul.killed for soul in town.souls.values()] == [day + 1] * len(names)
        threads = town.threads()
        answered = [sorted(who for who, _ in answers) for _, answers in threads]
        assert answered == [sorted(names[1:])] * days
        for uri, (_, answers) in zip(town.openings(), threads, strict=True):
            parts = town.parts(uri)
            assert all(f"as {parts[who]}." in text for who, text in answers)
        assert [sorted(town.authors_of(memo)) for memo in town.memos] == [sorted(names)] * days
    with capfd.disabled():
        kills = sum(soul.killed for soul in town.souls.values())
        sys.stdout.write(
            f"\n{len(threads)} threads, {sum(map(len, answered))} answers, {kills} SIGKILLs; seed {SEED}\n"
        )
