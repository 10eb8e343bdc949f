"""Proves with kill -9 that SELF.md is always whole, and that its history lacks no change and has none twice."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from modules.runtime.home import Home
from tests.crash.crash_rig import Nursery, kill, nursing
from tests.modules.services.identity.self_keeper_child import number_in, thought

KILLS = int(os.environ.get("CRASH_KILLS", "100"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
KILLED = f"ended -{signal.SIGKILL}"


@pytest.fixture
async def nursery() -> AsyncIterator[Nursery]:
    async with nursing("tests.modules.services.identity.self_keeper_child") as forking:
        yield forking


async def end_of_life(nursery: Nursery) -> tuple[int, str]:
    """Wait for the end of the life; return how many changes it reported as done, and its last line."""
    done = 0
    while (word := await nursery.receive()).startswith("did"):
        done += 1
    return done, word


@pytest.mark.slow
async def test_killed_before_any_step_of_a_change_the_next_life_finds_all_in_order(
    nursery: Nursery, tmp_path: Path
) -> None:
    for step in range(1, 100):
        home = _home(tmp_path / str(step))
        await nursery.birth(f"{home.root} 1 {step}")
        _, word = await end_of_life(nursery)
        assert number_in(home.self_md.read_text()) in {0, 1}
        if word == "ended 0":
            break
        assert word == KILLED
        await nursery.birth(f"{home.root} 1 0")
        assert await end_of_life(nursery) == (1, "ended 0")
        _assert_complete(home)
    assert step > 15, "a change takes more steps than that"
    assert word == "ended 0"


@pytest.mark.crash
@pytest.mark.timeout(60 + KILLS * 5)
async def test_killed_at_random_moments_nothing_is_torn_lost_or_kept_twice(
    nursery: Nursery, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(SEED)
    home = _home(tmp_path)
    for _ in range(KILLS):
        before = number_in(home.self_md.read_text())
        pid = await nursery.birth(f"{home.root} 10000 0")
        await asyncio.sleep(rng.uniform(0, 0.15))
        kill(pid)
        done, word = await end_of_life(nursery)
        assert word == KILLED
        # NOTE(self): a life may die between a change and its report; no reported change may be missing.
        assert number_in(home.self_md.read_text()) - before - done in {0, 1}
    await nursery.birth(f"{home.root} 1 0")
    assert await end_of_life(nursery) == (1, "ended 0")
    with capfd.disabled():
        made = number_in(home.self_md.read_text())
        sys.stdout.write(
            f"\n{KILLS} SIGKILLs over {made} changes of SELF.md: none torn, lost or kept twice, seed {SEED}\n"
        )
    _assert_complete(home)


def _home(root: Path) -> Home:
    home = Home.at(root)
    home.root.mkdir(exist_ok=True)
    home.self_md.write_text(thought(0))
    return home


def _assert_complete(home: Home) -> None:
    """Assert that the versions count down without a gap from SELF.md, and that no other file is left."""
    history = home.memory / "self-history"
    now = number_in(home.self_md.read_text())
    kept = [number_in(path.read_text()) for path in sorted(history.glob("*.md"), reverse=True)]
    assert kept == list(range(now, max(-1, now - 50), -1))
    assert {path.suffix for path in history.glob("[!.]*")} == {".md", ".json"}
    assert {path.stem for path in history.glob("*.json")} == {path.stem for path in history.glob("*.md")}
    assert [path.name for path in history.glob(".*")] == [".lock"]
    assert sorted(path.name for path in home.root.glob("*SELF*")) == ["SELF.md"]
