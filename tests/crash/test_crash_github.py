"""What changes GitHub, by a process that is killed again and again: none of it is done twice, and none is lost.

Every kind of intent that goes to GitHub, and updates of a plan beside other changes of issues.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from common.clock import SystemClock
from tests.adapters.results import ok
from tests.children import child_of
from tests.crash.crash_rig import MOMENTS, Nursery, Spread, Watch, live_and_die
from tests.crash.github_work import ORGANISATION, REPO, TEMPLATE, Work
from tests.loopback import to_loopback
from tests.town.github_place import needs_git
from town.github.faults import Fault, FaultKind, GitHubFaults
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

KILLS = max(10, int(os.environ.get("CRASH_KILLS", "100")) // 2)
SEED = int(os.environ.get("CRASH_SEED", "1"))
LIFE_S = 4.0
LAST_LIFE_S = 300.0
SPREAD = Spread(commits=60, requests=12, any_time_s=1.5, life_s=LIFE_S)
_FAULTS: tuple[FaultKind, ...] = ("lost_answer", "lost_request", "server_error")


@needs_git
@pytest.mark.crash
@pytest.mark.timeout(LAST_LIFE_S + KILLS * 20)
async def test_a_process_killed_at_random_does_every_act_on_github_exactly_once(tmp_path: Path) -> None:
    rng, kills, lives = random.Random(SEED), Counter[str](), 0
    (tmp_path / "git").mkdir()
    async with AsyncExitStack() as stack:
        network, faults = GitHubNetwork(clock=SystemClock(), git_folder=tmp_path / "git"), GitHubFaults(rng)
        rowan = network.create_account("rowan", token="ghp_rowan")
        network.create_account("kit", token="ghp_kit")
        repo = network.create_repo(rowan, "site", collaborators=["kit"])
        watch = Watch(github_app(network, faults=faults, meter=GitHubMeter(network.clock, known=10**6)))
        works = network.create_account(ORGANISATION, kind="Organization")
        network.state.members[ORGANISATION] = {"rowan"}
        network.create_repo(works, TEMPLATE.partition("/")[2]).is_template = True
        url = await stack.enter_async_context(serve(watch))
        github, other = _client(url, "rowan", "ghp_rowan"), _client(url, "kit", "ghp_kit")
        stack.push_async_callback(github.aclose)
        stack.push_async_callback(other.aclose)
        for title in ("One", "Two"):
            ok(await github.create_issue(REPO, title, "…"))
        ok(await github.contents.write(REPO, "README.md", "Hello.\n", message="Begin"))
        main = ok(await github.refs.get(REPO, "main")).sha
        process = await stack.enter_async_context(
            child_of("tests.crash.github_child", str(tmp_path), url, "rowan", "ghp_rowan")
        )
        nursery, work = Nursery(process), Work(tmp_path, network, repo, main, github, other)
        while kills.total() < KILLS:
            faults.clear()
            await work.refill()
            if rng.random() < 0.3:
                fault = rng.choice(_FAULTS)
                faults.arm(Fault(fault, rng.choice(["POST *", "PUT *", "PATCH *"])))
            lives += 1
            moment = rng.choice(MOMENTS)
            if await live_and_die(watch, nursery, moment, rng, SPREAD):
                kills[moment] += 1
        faults.clear()
        while work.unfinished():
            lives += 1
            await nursery.birth()
            assert await nursery.receive() == "awake"
            assert await nursery.receive(LAST_LIFE_S) == "ended 0"
        expected, found = work.expected(), await work.found()
        acts = Counter(one["turn"] for one in work.wanted)
        sys.stdout.write(
            f"\n{kills.total()} SIGKILLs ({dict(kills)}) over {lives} lives; {dict(acts)}; "
            f"{(found - expected).total()} done twice, {(expected - found).total()} lost; seed {SEED}\n"
        )
        assert found == expected
        assert set(work.states()) == {"done"}
        changed = {label.name for label in repo.issues[2].labels} if repo.issues[2] else set()
        assert len(changed) == 1


def _client(url: str, login: str, token: str) -> GitHub:
    return GitHub(api_url=url, login=login, token=token, clock=SystemClock(), min_spacing_s=0, transport=to_loopback)
