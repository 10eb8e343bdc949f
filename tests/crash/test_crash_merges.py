"""A merge, and a pull request that is taken back, killed at any request or commit: each is done once, to its end."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import SystemClock
from tests.adapters.results import ok
from tests.children import child_of
from tests.crash.crash_rig import Moment, Nursery, Watch, kill
from tests.loopback import to_loopback
from tests.town.github_place import needs_git
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

LIFE_S = 60.0
MOST = 100
EVERY = max(1, 100 // int(os.environ.get("CRASH_KILLS", "100")))
"""A life ends at one of so many requests or commits; at which of them differs from one moment to the other."""
MOMENTS: tuple[Moment, ...] = ("request arrived", "request answered", "in a transaction", "after a commit")
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
        people = {
            one.login: GitHub(
                api_url=url,
                login=one.login,
                token=f"t-{one.login}",
                clock=SystemClock(),
                min_spacing_s=0,
                transport=to_loopback,
            )
            for one in (ada, bea)
        }
        for one in people.values():
            stack.push_async_callback(one.aclose)
        process = await stack.enter_async_context(child_of("tests.crash.merge_child", str(tmp_path), url))
        nursery = Nursery(process)
        for first, moment in enumerate(MOMENTS, 1):
            for number in range(first, MOST, EVERY):
                repo = Repo("ada", f"www-lil-intdev-{first}-{number}")
                network.create_repo(ada, repo.name, collaborators=["bea"])
                pull = await _offered(people["ada"], people["bea"], repo, conflicts=conflicts)
                (tmp_path / "place").write_text(f"{repo.name} {pull}")
                was_killed = await _dies(watch, nursery, moment, number)
                if was_killed:
                    kills[moment] += 1
                    await nursery.live_on(LIFE_S)
                await _check(people["bea"], repo, pull, conflicts=conflicts)
                if not was_killed:
                    break
            else:
                pytest.fail("it takes more than is tried")
        sys.stdout.write(f"\n{kills.total()} SIGKILLs ({dict(kills)}): 0 doubled, 0 lost\n")
        assert min(kills.values()) >= 5 // EVERY


async def _offered(ada: GitHub, bea: GitHub, repo: Repo, *, conflicts: bool) -> int:
    """An approved pull request for a task; returns its number."""
    begun = ok(await ada.contents.write(repo, "README.md", "A counter\n", message="Begin")).commit_sha
    ok(await ada.create_issue(repo, "[PLAN] A counter", "# [PLAN] A counter"))
    ok(await ada.refs.create(repo, BRANCH, begun))
    ok(await ada.contents.write(repo, "COUNT.md", "It counts.\n", message="Count", branch=BRANCH))
    offered = ok(await ada.pulls.create(repo, title="task(1): Count", body="Part of #1", head=BRANCH, base="main"))
    ok(await bea.pulls.create_review(repo, offered.number, event="APPROVE"))
    if conflicts:
        ok(await bea.contents.write(repo, "COUNT.md", "It does not.\n", message="Other"))
    return offered.number


async def _dies(watch: Watch, nursery: Nursery, moment: Moment, number: int) -> bool:
    """One life; whether it was killed at the request or commit of that number, or ended before."""
    fate = {"in a transaction": "inside", "after a commit": "after"}.get(moment)
    pid = await nursery.birth(f"{number} {fate}" if fate else "")
    if not fate:
        watch.set(moment, number, lambda: kill(pid))
    word = await nursery.receive()
    word = await nursery.receive(LIFE_S) if word == "awake" else word
    watch.forget()
    assert word in {"ended 0", "ended -9"}
    return word == "ended -9"


async def _check(bea: GitHub, repo: Repo, number: int, *, conflicts: bool) -> None:
    """One commit more on the main branch and no other branch, or one comment, no commit, and the branch stays."""
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
