"""A home is moved and restored again and again while its acts are in progress: nothing is lost or done twice.

In each round a life is killed while it sends, and the next one lives elsewhere: after `soul move`, or, as after the
loss of a disk, from a backup taken while it was sending. `CRASH_MOVES=200` and `CRASH_SEED` can be set.
"""

import asyncio
import os
import random
import shutil
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from common.errors import HomeLocked
from modules.runtime.home import Home
from soul.commands.backup import run_backup, run_move, run_restore
from soul.commands.waking import refuse_moved
from tests.crash.crash_rig import Figures, Nursery, disturb, kill, nursing, rig
from tests.crash.test_crash_outbox import LAST_LIFE_S, PASSWORD, SEED, Work, pictures_for
from tests.patience import until

MOVES = int(os.environ.get("CRASH_MOVES", "10"))
ANY_TIME_S = 1.0


@pytest.mark.crash
@pytest.mark.timeout(LAST_LIFE_S + MOVES * 20)
async def test_a_home_that_is_moved_while_its_acts_are_under_way_does_each_exactly_once(tmp_path: Path) -> None:
    rng, figures = random.Random(SEED), Figures()
    restored = 0
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(rig(rng))
        soul = world.network.create_account("soul.test", PASSWORD)
        ada = world.network.create_account("ada.test", PASSWORD)
        place = Place(tmp_path)
        nursery = await stack.enter_async_context(
            nursing("tests.crash.crash_child", str(place.memory), world.url, soul.handle, PASSWORD)
        )
        pictures = await pictures_for(place.memory)
        work = Work(world, rng, soul, ada, place.memory, pictures, deletes_known=True)
        for _ in range(MOVES):
            work.refill()
            disturb(world.faults, rng)
            await work.owner_decides()
            is_restored = rng.random() < 0.5
            figures.kills["while it sent"] += await _live_and_die(work, nursery, place, rng, backup=is_restored)
            figures.lives += 1
            restored += is_restored
            await asyncio.to_thread(place.go_on_elsewhere, is_restored=is_restored)
        world.faults.clear()
        while work.unfinished():
            await work.owner_decides()
            await nursery.live_on(LAST_LIFE_S)
        work.count(figures)
        sys.stdout.write(f"\n{MOVES - restored} moves, {restored} restores: {figures} ({work}); seed {SEED}\n")
        twice = [mark for mark, count in (*work.ledger.created.items(), *work.ledger.deleted.items()) if count > 1]
        assert twice == []
        assert (figures.duplicates, figures.losses, figures.uninvited) == (0, 0, 0)
        work.assert_rows_agree()
        work.assert_pictures_recorded_once()


class Place:
    """The current home of the SOUL; `memory` is a link to its memory."""

    def __init__(self, folder: Path) -> None:
        self.memory = folder / "memory"
        self._folder = folder
        self._count = 0
        (self.root / ".memory").mkdir(parents=True)
        (self.root / "SOUL.md").write_text("# Rowan")
        self.memory.symlink_to(self.root / ".memory")

    @property
    def root(self) -> Path:
        return self._folder / f"home{self._count}"

    @property
    def _file(self) -> Path:
        return self._folder / f"{self._count}.soul"

    def back_up(self) -> None:
        run_backup(self.root, self._file, None)

    def go_on_elsewhere(self, *, is_restored: bool) -> None:
        """Restore the backup that was taken, or move; the old home is left behind."""
        old, file = self.root, self._file
        if not is_restored:
            run_move(old, file, None)
            with pytest.raises(HomeLocked):
                refuse_moved(Home.at(old))
        self._count += 1
        run_restore(self.root, file, None, most_gib=1)
        self.memory.unlink()
        self.memory.symlink_to(self.root / ".memory")
        file.unlink()
        shutil.rmtree(old)


async def _live_and_die(work: Work, nursery: Nursery, place: Place, rng: random.Random, *, backup: bool) -> bool:
    """Kill one life while it sends, optionally after a backup; return whether it was killed by the test."""
    pid = await nursery.birth()
    assert await nursery.receive() == "awake"
    try:
        await until(lambda: len(work.rows()) == len(work.wanted))
        if backup:
            await asyncio.to_thread(place.back_up)
        word = await nursery.receive(rng.uniform(0, ANY_TIME_S))
    except TimeoutError:
        kill(pid)
        word = await nursery.receive()
    return word != "ended 0"
