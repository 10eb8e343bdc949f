"""Races for a task in the town's GitHub, over HTTP and with real Git: one of the product's claimers wins each race.

An answer of the town takes up to 2 s and may be up to 8 s old. The shared clock advances when everybody waits.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from modules.services.claims.claim_requests import PlanReader
from modules.services.claims.claimer import Claimer, ClaimOutcome
from modules.services.claims.lease_store import TaskLeases
from modules.services.plans.plan_text import generate_plan_markdown, parse_plan
from modules.services.plans.types import Plan, Task
from tests.adapters.results import ok
from tests.exploration import EXPLORE
from tests.fresh_database import open_database
from tests.loopback import github_at
from tests.shared_clock import SharedClock
from tests.town.github_place import needs_git
from tests.trusting import gone_of, trust_without_owner
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import Fault, GitHubFaults
from town.serving import serve

RACES = int(os.environ.get("TOWN_RACES", "50"))
IN_ONE_TOWN = 25
APART_S, BEHIND_S, LATE_S = 15.0, 8.0, 2.0
LOGINS = ("sh-a", "sh-b", "sh-c", "sh-d")
REPO = Repo("ada", "garden")
NUMBER = 1

pytestmark = needs_git


@dataclass(frozen=True)
class Garden:
    """A town with a repository for the races; `author` makes the plans, and all accounts may push there."""

    clock: SharedClock
    faults: GitHubFaults
    author: GitHub
    claimers: dict[str, tuple[PlanReader, Claimer]]

    async def race(self, title: str, starts: dict[str, float]) -> tuple[list[str], str | None]:
        """Let each account claim a task after its delay in seconds; return the winners and the plan's assignee."""
        plan = Plan(title, "Somebody does it", tasks=(Task(NUMBER, "Contested"), Task(2, "Other")))
        issue = ok(await self.author.create_issue(REPO, f"[PLAN] {title}", generate_plan_markdown(plan))).number
        await self.clock.advance(BEHIND_S)  # until everybody can find the plan
        self.faults.arm(Fault("stale", "GET /repos/*", seconds=BEHIND_S, times=10**9))
        self.faults.arm(Fault("slow", "*", seconds=LATE_S, times=10**9))
        ended = await self.clock.together(
            *(self._claim(*self.claimers[login], issue, start) for login, start in starts.items())
        )
        self.faults.clear()
        found = ok(await self.author.get_issue(REPO, issue))
        told = parse_plan(found.body, found.title)
        task = told.task(NUMBER) if told else None
        return [one.lease.soul for one in ended if one.lease], task.assignee if task else None

    async def _claim(self, reader: PlanReader, claimer: Claimer, issue: int, start: float) -> ClaimOutcome:
        await self.clock.sleep(start)
        return await claimer.claim(REPO, ok(await reader.read(REPO, issue)), NUMBER)


@asynccontextmanager
async def open_garden(folder: Path, seed: int) -> AsyncIterator[Garden]:
    clock, faults = SharedClock(), GitHubFaults(random.Random(seed))
    network = GitHubNetwork(clock=clock, git_folder=folder / "git")
    ada = network.create_account("ada", token="t-ada")
    for login in LOGINS:
        network.create_account(login, token=f"t-{login}")
    network.create_repo(ada, REPO.name, collaborators=list(LOGINS))
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(
            serve(github_app(network, faults=faults, meter=GitHubMeter(clock, known=10**9)))
        )

        def client(login: str) -> GitHub:
            made = github_at(url, login, clock)
            stack.push_async_callback(made.aclose)
            return made

        async def claimer(login: str) -> tuple[PlanReader, Claimer]:
            home = folder / login
            home.mkdir(parents=True)
            database = await open_database(home / "soul.db")
            stack.push_async_callback(database.close)
            github, leases = client(login), TaskLeases(database, home, clock)
            reader = PlanReader(github, leases, trust_without_owner(github, clock), clock, gone_of(github, clock))
            return reader, Claimer(github, leases, reader, lambda task: f"{task.name} is taken.", clock, released=str)

        author = client("ada")
        ok(await author.contents.write(REPO, "README.md", "Beans", message="Begin"))
        yield Garden(clock, faults, author, {login: await claimer(login) for login in LOGINS})


@pytest.mark.slow
@pytest.mark.timeout(14_400)
async def test_each_task_of_the_town_has_one_holder(tmp_path: Path) -> None:
    counted = Counter[int]()
    for first in range(0, RACES, IN_ONE_TOWN):
        seed = EXPLORE * 1_000_000 + first
        chance = random.Random(seed)
        async with open_garden(tmp_path / str(first), seed) as garden:
            for number in range(seed, seed + min(IN_ONE_TOWN, RACES - first)):
                racing = chance.sample(LOGINS, chance.randint(2, len(LOGINS)))
                starts = {login: chance.uniform(0, APART_S) for login in racing}
                winners, line = await garden.race(f"Race {number}", starts)
                counted[len(winners)] += 1
                assert winners == [line], (number, starts)
        sys.stdout.write(f"\n{counted.total()} races in the town: {dict(counted)} winners")
