"""Commitments are kept by a process that is killed again and again: one issue each, reported once, none forgotten."""

import json
import os
import random
import sys
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from adapters.space.server import SpaceServer
from adapters.space.types import HOST
from modules.services.commitments.naming import CommitmentRequest, read_params
from modules.services.commitments.queue import FILE
from tests.crash.commitment_child import LOGIN, FastClock
from tests.crash.crash_rig import MOMENTS, Spread, Watch, live_and_die, nursing
from tests.modules.services.commitments.soul_in_town import listening_at
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import Fault, GitHubFaults, StoredRepo
from town.serving import serve

KILLS = max(10, int(os.environ.get("CRASH_KILLS", "100")) // 4)
SEED = int(os.environ.get("CRASH_SEED", "1"))
AT_A_TIME = 2
LIFE_S = 2.0
LAST_LIFE_S = 120.0
SPREAD = Spread(commits=60, requests=6, any_time_s=1.5, life_s=LIFE_S)


@dataclass
class Work:
    """The commitments to make, and their results."""

    folder: Path
    repo: StoredRepo
    said: list[str]
    wanted: list[CommitmentRequest] = field(default_factory=list)

    def refill(self) -> None:
        while len(self.wanted) - self.kept() < AT_A_TIME:
            number = len(self.wanted)
            params = {"owner": "acme", "repoName": "site", "title": f"Work {number}", "target": f"acme/site#{number}"}
            self.wanted.append(
                CommitmentRequest(
                    f"Work {number}",
                    f"space://conversation/{number}",
                    "I'll do it.",
                    read_params("create_issue", params),
                    "space",
                )
            )
        lines = "".join(f"{json.dumps({**asdict(one), 'params': one.params.as_json()})}\n" for one in self.wanted)
        (self.folder / "wanted.jsonl").write_text(lines)

    def kept(self) -> int:
        path = self.folder / FILE
        lines = path.read_text().splitlines() if path.exists() else []
        return sum(json.loads(line)["status"] == "completed" for line in lines)

    def titles(self) -> Counter[str]:
        return Counter(issue.title for issue in self.repo.issues.values() if issue)

    def news(self) -> Counter[str]:
        return Counter(line.removeprefix("Done — issue opened: ").partition(":")[0] for line in self.said)


@pytest.mark.crash
@pytest.mark.timeout(LAST_LIFE_S + KILLS * 20)
async def test_a_process_killed_at_random_keeps_every_commitment_once_and_tells_it_once(tmp_path: Path) -> None:
    rng, kills, lives = random.Random(SEED), Counter[str](), 0
    async with AsyncExitStack() as stack:
        network, faults = GitHubNetwork(clock=FastClock()), GitHubFaults(rng)
        token = network.create_account(LOGIN).token
        repo = network.create_repo(network.create_account("acme"), "site")
        watch = Watch(github_app(network, faults=faults))
        url = await stack.enter_async_context(serve(watch))
        server = SpaceServer(clock=FastClock())
        await server.start(0)
        stack.push_async_callback(server.stop)
        marvin = await stack.enter_async_context(listening_at(server.port))
        nursery = await stack.enter_async_context(
            nursing("tests.crash.commitment_child", str(tmp_path), url, token, str(server.port))
        )
        work = Work(tmp_path, repo, marvin.chats)
        while kills.total() < KILLS:
            work.refill()
            faults.clear()
            if rng.random() < 0.3:
                faults.arm(Fault(rng.choice(["lost_answer", "lost_request", "server_error"]), "POST *"))
            lives += 1
            moment = rng.choice(MOMENTS)
            if await live_and_die(watch, nursery, moment, rng, SPREAD):
                kills[moment] += 1
        faults.clear()
        lives += 1
        await nursery.live_on(LAST_LIFE_S)
        server.broadcast_from_host("that is all")
        await marvin.receives_from(HOST)
        once = Counter(one.description for one in work.wanted)
        sys.stdout.write(
            f"\n{kills.total()} SIGKILLs ({dict(kills)}) over {lives} lives; {len(work.wanted)} promises, "
            f"{(work.titles() - once).total()} second issues, {(once - work.titles()).total()} missing, "
            f"{(work.news() - once).total()} told twice, {(once - work.news()).total()} untold; seed {SEED}\n"
        )
        assert work.titles() == once
        assert work.news() == once
