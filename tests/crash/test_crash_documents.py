"""The work on a document, killed at each request: an empty workspace gets one first commit and one pull request."""

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
from modules.services.plans.plan_text import generate_plan_markdown
from tests.adapters.results import ok
from tests.children import child_of
from tests.crash.crash_rig import Moment, Nursery, Watch, kill
from tests.loopback import to_loopback
from tests.modules.lives.tasks.documents.workplace import DOCUMENT, PLAN
from tests.modules.runtime.llm.scripted_model import says, serving
from tests.town.github_place import needs_git
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

LIFE_S = 60.0
MOST_REQUESTS = 80
MOST_COMMITS = 120
EVERY = max(1, 100 // int(os.environ.get("CRASH_KILLS", "100")))
"""A life ends at one of so many requests or commits; at which of them differs from one moment to the other."""
MOMENTS: tuple[Moment, ...] = ("request arrived", "request answered", "in a transaction", "after a commit")


@needs_git
@pytest.mark.crash
@pytest.mark.timeout(900)
async def test_a_document_killed_at_any_request_is_offered_once(tmp_path: Path) -> None:
    kills: Counter[Moment] = Counter()
    (tmp_path / "git").mkdir()
    async with AsyncExitStack() as stack:
        network = GitHubNetwork(clock=SystemClock(), git_folder=tmp_path / "git")
        ada = network.create_account("ada", token="t-ada")
        network.create_account("bea")
        watch = Watch(github_app(network, meter=GitHubMeter(network.clock, known=10**9)))
        url = await stack.enter_async_context(serve(watch))
        github = GitHub(
            api_url=url, login="ada", token="t-ada", clock=SystemClock(), min_spacing_s=0, transport=to_loopback
        )
        stack.push_async_callback(github.aclose)
        model = stack.enter_context(serving())
        process = await stack.enter_async_context(child_of("tests.crash.document_child", str(tmp_path), url, model.url))
        nursery = Nursery(process)
        for first, moment in enumerate(MOMENTS, 1):
            for number in range(first, max(MOST_REQUESTS, MOST_COMMITS), EVERY):
                repo = Repo("ada", f"garden-{first}-{number}")
                network.create_repo(ada, repo.name, description="Beans.", collaborators=["bea"])
                ok(await github.create_issue(repo, f"[PLAN] {PLAN.title}", generate_plan_markdown(PLAN)))
                (tmp_path / "place").write_text(repo.name)
                model.plays(says(DOCUMENT), says(DOCUMENT))
                was_killed = await _dies(watch, nursery, moment, number)
                if was_killed:
                    kills[moment] += 1
                    await nursery.live_on(LIFE_S)
                await _check(github, repo)
                if not was_killed:
                    break
            else:
                pytest.fail("a document takes more than is tried")
        sys.stdout.write(f"\n{kills.total()} SIGKILLs ({dict(kills)}); each document was offered once\n")
        assert min(kills.values()) >= 10 // EVERY


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


async def _check(github: GitHub, repo: Repo) -> None:
    """One first commit, one branch with one commit upon it, one pull request, which one peer is asked to review."""
    main = ok(await github.refs.get(repo, "main")).sha
    assert ok(await github.refs.commit(repo, main)).parents == ()
    (pull,) = ok(await github.pulls.list(repo, state="all"))
    branches = ok(await github.refs.branches(repo))
    assert [one.name for one in branches] == ["main", pull.head.ref]
    assert ok(await github.contents.read(repo, "SCENARIOS.md", ref=pull.head.ref)).text == DOCUMENT
    head = ok(await github.refs.commit(repo, pull.head.sha))
    (own,) = head.parents
    assert ok(await github.refs.commit(repo, own)).parents == (main,)
    assert [one.login for one in pull.requested_reviewers] == ["bea"]
