"""Three SOULs build together, each killed right after its own act reached GitHub, before it received the response."""

import asyncio
import os
import random
import sys
from asyncio.subprocess import Process
from collections import Counter
from pathlib import Path

import pytest

from adapters.github.types import Repo
from modules.services.plans.plan_text import parse_plan
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.patience import until
from tests.scenarios.workplace import Workplace, open_workplace
from tests.town.github_place import needs_git
from town.github.arrangement import ORGANISATION
from town.github.values import GitHubEvent

FAST = 180.0
BUILT_WITHIN_S = 1200.0
PLANS = max(1, round(int(os.environ.get("CRASH_KILLS", "50")) / 25))
"""A plan of five tasks sees about twenty-five kills."""
WORKSPACE = Repo(ORGANISATION, "www-lil-intdev-tides")
MAKE = "Please make a workspace for the tides."
BUILD = f"Please write a plan in github.com/{WORKSPACE.full_name} for a command that adds up expenses by month."
CHANCE = 0.6
DEADLY = frozenset({"pushed", "pull_opened", "pull_reviewed", "pull_merged"})


class Reaper:
    """Kills and restarts a SOUL, at random, at the moment when it pushes, opens a pull request, reviews or merges."""

    def __init__(self, place: Workplace, chance: random.Random) -> None:
        self.place, self.chance = place, chance
        self.kills: Counter[str] = Counter()
        self._dead: asyncio.Queue[tuple[str, Process]] = asyncio.Queue()

    def see(self, event: GitHubEvent) -> None:
        """Kill the author of an act, if it lives: at the first act of each kind, then at random."""
        is_deadly = event.kind in DEADLY and (not self.kills[event.kind] or self.chance.random() < CHANCE)
        process = self.place.terminals.pop(event.by, None) if is_deadly else None
        if process is not None:
            process.kill()
            self.kills[event.kind] += 1
            self._dead.put_nowait((event.by, process))

    async def run(self) -> None:
        """Restart the SOULs that were killed."""
        while True:
            name, process = await self._dead.get()
            await process.wait()
            await self.place.wakes(name)


@needs_git
@needs_sandbox
@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("nth", range(PLANS))
async def test_nothing_is_doubled_or_lost_where_each_act_on_github_kills_its_soul(tmp_path: Path, nth: int) -> None:
    async with open_workplace(tmp_path, speed=FAST, unasked=True) as place:
        await place.types(MAKE)
        await until(lambda: place.watched_by(WORKSPACE) == set(place.homes), what="all three watch the workspace")
        await place.says(BUILD)
        await until(lambda: bool(place.plans), what="the plan")
        (plan,) = place.plans
        reaper = Reaper(place, random.Random(nth))
        place.town.github.subscribe(reaper.see)
        running = asyncio.create_task(reaper.run())
        try:
            await until(lambda: plan.state == "closed", BUILT_WITHIN_S, what="all tasks of the plan")
        finally:
            running.cancel()
        done = parse_plan(plan.body or "", plan.title)
        assert done is not None
        for task in done.tasks:
            (pull,) = place.offers(task.number)
            assert (task.status, pull.merged_at is not None) == ("completed", True)
            assert pull.head in {one.commit for one in pull.reviews if one.state == "APPROVED"}
            assert pull.issue.author not in {one.author for one in pull.reviews}
            reviewed = Counter((one.author.login, one.commit) for one in pull.reviews)
            assert max(reviewed.values()) == 1, reviewed
        said = Counter(
            (one.author.login, one.body) for issue in place.repo.issues.values() if issue for one in issue.comments
        )
        assert [text for text, times in said.items() if times > 1] == []
        sys.stdout.write(f"\n{reaper.kills.total()} SIGKILLs ({dict(reaper.kills)}): 0 doubled, 0 lost\n")
        assert set(reaper.kills) == DEADLY
