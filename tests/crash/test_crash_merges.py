"""A merge, and a pull request that is taken back, killed at any request or commit: each is finished, and only once.

Changes on GitHub by a process that is killed again and again: none is made twice, and none is lost.
"""

import os
import random
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import SystemClock
from tests.adapters.results import ok
from tests.crash.crash_rig import LONG_LIFE_S, MOMENTS, Moment, Spread, Watch, dies, live_and_die, nursing
from tests.crash.github_work import ORGANISATION, REPO, TEMPLATE, Work
from tests.crash.lives import github_at
from tests.town.github_place import needs_git
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import Fault, FaultKind, GitHubFaults
from town.serving import serve

MOST = 100
EVERY = max(1, 100 // int(os.environ.get("CRASH_KILLS", "100")))
"""The step from one request or commit at which a life is killed to the next; the first differs by moment."""
DURABLE_MOMENTS: tuple[Moment, ...] = ("request arrived", "request answered", "in a transaction", "after a commit")
BRANCH = "task-1-count"


@needs_git
@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.parametrize("conflicts", [False, True], ids=["merged", "taken back"])
async def test_a_pull_request_killed_at_any_moment_is_merged_or_taken_back_once(
    tmp_path: Path, *, conflicts: bool
) -> None:
    kills: Counter[Moment] = Counter()
    (tmp_path / "git").mkdir()
    async with AsyncExitStack() as stack:
        network = GitHubNetwork(clock=SystemClock(), git_folder=tmp_path / "git")
        ada, bea = network.create_account("ada", token="t-ada"), network.create_account("bea", token="t-bea")
        watch = Watch(github_app(network, meter=GitHubMeter(network.clock, known=10**9)))
        url = await stack.enter_async_context(serve(watch))
        people = {one.login: github_at(url, one.login, f"t-{one.login}") for one in (ada, bea)}
        for one in people.values():
            stack.push_async_callback(one.aclose)
        nursery = await stack.enter_async_context(nursing("tests.crash.merge_child", str(tmp_path), url))
        for first, moment in enumerate(DURABLE_MOMENTS, 1):
            for number in range(first, MOST, EVERY):
                repo = Repo("ada", f"www-lil-intdev-{first}-{number}")
                network.create_repo(ada, repo.name, collaborators=["bea"])
                pull = await _offered(people["ada"], people["bea"], repo, conflicts=conflicts)
                (tmp_path / "place").write_text(f"{repo.name} {pull}")
                was_killed = await dies(watch, nursery, moment, number)
                if was_killed:
                    kills[moment] += 1
                    await nursery.live_on(LONG_LIFE_S)
                await _check_merge(people["bea"], repo, pull, conflicts=conflicts)
                if not was_killed:
                    break
            else:
                pytest.fail("it takes more than is tried")
        sys.stdout.write(f"\n{kills.total()} SIGKILLs ({dict(kills)}): 0 doubled, 0 lost\n")
        assert min(kills.values()) >= 5 // EVERY


async def _offered(ada: GitHub, bea: GitHub, repo: Repo, *, conflicts: bool) -> int:
    """Open an approved pull request for a task; return its number."""
    begun = ok(await ada.contents.write(repo, "README.md", "A counter\n", message="Begin")).commit_sha
    ok(await ada.create_issue(repo, "[PLAN] A counter", "# [PLAN] A counter"))
    ok(await ada.refs.create(repo, BRANCH, begun))
    ok(await ada.contents.write(repo, "COUNT.md", "It counts.\n", message="Count", branch=BRANCH))
    offered = ok(await ada.pulls.create(repo, title="task(1): Count", body="Part of #1", head=BRANCH, base="main"))
    ok(await bea.pulls.create_review(repo, offered.number, event="APPROVE"))
    if conflicts:
        ok(await bea.contents.write(repo, "COUNT.md", "It does not.\n", message="Other"))
    return offered.number


async def _check_merge(bea: GitHub, repo: Repo, number: int, *, conflicts: bool) -> None:
    """Check for one more commit on main and no other branch; after a conflict, one comment and an unmerged branch."""
    read = ok(await bea.pulls.get(repo, number))
    assert (read.state, read.merged) == ("closed", not conflicts)
    assert {one.name for one in ok(await bea.refs.branches(repo))} == {"main", *([BRANCH] if conflicts else [])}
    comments = ok(await bea.list_comments(repo, number))
    main = ok(await bea.refs.get(repo, "main")).sha
    if conflicts:
        assert len(comments) == 1
        return
    assert main == read.merge_commit_sha
    assert len(comments) == 0
    (before,) = ok(await bea.refs.commit(repo, main)).parents
    assert ok(await bea.refs.commit(repo, before)).parents == ()


KILLS = max(10, int(os.environ.get("CRASH_KILLS", "100")) // 2)
SEED = int(os.environ.get("CRASH_SEED", "1"))
GITHUB_LIFE_S = 4.0
LAST_LIFE_S = 300.0
SPREAD = Spread(commits=60, requests=12, any_time_s=1.5, life_s=GITHUB_LIFE_S)
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
        github, other = github_at(url, "rowan", "ghp_rowan"), github_at(url, "kit", "ghp_kit")
        stack.push_async_callback(github.aclose)
        stack.push_async_callback(other.aclose)
        for title in ("One", "Two"):
            ok(await github.create_issue(REPO, title, "…"))
        ok(await github.contents.write(REPO, "README.md", "Hello.\n", message="Begin"))
        main = ok(await github.refs.get(REPO, "main")).sha
        nursery = await stack.enter_async_context(
            nursing("tests.crash.github_child", str(tmp_path), url, "rowan", "ghp_rowan")
        )
        work = Work(tmp_path, network, repo, main, github, other)
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
            await nursery.live_on(LAST_LIFE_S)
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
