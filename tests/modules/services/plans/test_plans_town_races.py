"""Races for a task in the town's GitHub: real branches, answers within 2 s, reads up to 8 s behind. One wins each."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from adapters.web.transport import WebTransport
from common.clock import SystemClock
from common.result import Ok
from modules.services.plans.parse import parse_plan
from modules.services.plans.render import generate_plan_markdown
from modules.services.plans.types import Plan, Task
from tests.modules.services.plans.town_claimant import NUMBER, TownClaimant
from town.github.faults import Fault, Faults
from town.github.limits import Meter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

RACES = int(os.environ.get("TOWN_RACES", "40"))
AT_ONCE = 40
SHORTENED = 10.0
BEHIND_S, LATE_S = 8.0, 2.0
LOGINS = ("sh-a", "sh-b", "sh-c", "sh-d")
REPO = Repo("ada", "garden")


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_each_task_of_the_town_has_one_holder(tmp_path: Path) -> None:
    clock, faults, chance = SystemClock(), Faults(random.Random(7)), random.Random(7)
    network = GitHubNetwork(clock=clock, git_folder=tmp_path)
    ada = network.create_account("ada", token="t-ada")
    for login in LOGINS:
        network.create_account(login, token=f"t-{login}")
    network.create_repo(ada, "garden", collaborators=list(LOGINS))
    app = github_app(network, faults=faults, meter=Meter(clock, known=10**9))
    async with serve(app) as url:
        clients = [_client(url, login, clock) for login in ("ada", *LOGINS)]
        author, souls = clients[0], clients[1:]
        made = await author.contents.write(REPO, "README.md", "Beans", message="Begin")
        assert isinstance(made, Ok)
        main = await author.refs.get(REPO, "main")
        assert isinstance(main, Ok)
        issues = []
        for count in range(RACES):
            plan = Plan(f"Race {count}", "Somebody does it", tasks=(Task(NUMBER, "Contested"), Task(2, "Other")))
            opened = await author.create_issue(REPO, f"[PLAN] {plan.title}", generate_plan_markdown(plan))
            assert isinstance(opened, Ok)
            issues.append(opened.data.number)
        faults.arm(Fault("stale", "GET /repos/*", seconds=BEHIND_S / SHORTENED, times=10**9))
        faults.arm(Fault("slow", "*", seconds=LATE_S / SHORTENED, times=10**9))
        gate = asyncio.Semaphore(AT_ONCE)

        async def race(issue: int) -> tuple[str, ...]:
            async with gate:
                racing = chance.sample(souls, chance.randint(2, 4))
                claimants = [TownClaimant(one, REPO, issue, main.data.sha, clock, SHORTENED) for one in racing]
                ended = await asyncio.gather(*(one.claim(chance.uniform(0, 15)) for one in claimants))
                return tuple(state.me for state in ended if state.stage == "won")

        winners = await asyncio.gather(*(race(issue) for issue in issues))
        faults.clear()
        holders = []
        for issue in issues:
            found = await author.get_issue(REPO, issue)
            assert isinstance(found, Ok)
            told = parse_plan(found.data.body, found.data.title)
            assert told is not None
            task = told.task(NUMBER)
            assert task is not None
            holders.append(task.assignee)
        for client in clients:
            await client.aclose()
    counted = Counter(len(one) for one in winners)
    print(f"\n{RACES} races in the town: {dict(counted)} winners")  # noqa: T201 - what `make test-plans` is for
    assert counted == {1: RACES}
    assert [one[0] for one in winners] == holders


def _client(url: str, login: str, clock: SystemClock) -> GitHub:
    return GitHub(
        api_url=url,
        login=login,
        token=f"t-{login}",
        clock=clock,
        min_spacing_s=0,
        transport=lambda: WebTransport(allow=(url,)),
    )
