"""A claim is killed before and after each of its requests, and the next start leaves nothing of it behind."""

import os
import sqlite3
import sys
from collections import Counter
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from common.clock import SystemClock
from modules.services.claims.policy import PlanComment, claims_on, highest_epoch
from modules.services.plans.plan_text import generate_plan_markdown, parse_plan
from modules.services.plans.types import Plan, Task
from tests.adapters.results import ok
from tests.crash.claim_child import REPO
from tests.crash.crash_rig import LONG_LIFE_S, Moment, Watch, dies, nursing
from tests.crash.lives import github_at
from tests.town.github_place import needs_git
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

MOST_REQUESTS = 120
EVERY = max(1, 100 // int(os.environ.get("CRASH_KILLS", "100")))
"""The step from one request at which a life is killed to the next; the first of them differs by moment."""
AHEAD = timedelta(minutes=6)
"""More than the time that a life sets its clock ahead, and less than a claim lasts."""
PLAN = Plan("Beans", "Beans grow", tasks=(Task(1, "Sow"), Task(2, "Water")))


@needs_git
@pytest.mark.crash
@pytest.mark.timeout(600)
async def test_a_claim_killed_at_any_request_is_undone_and_can_be_made_again(tmp_path: Path) -> None:
    kills: Counter[Moment] = Counter()
    async with AsyncExitStack() as stack:
        network = GitHubNetwork(clock=SystemClock(), git_folder=tmp_path / "git")
        ada = network.create_account("ada", token="t-ada")
        network.create_account("kit", token="t-kit")
        network.create_repo(ada, REPO.name, collaborators=["kit"])
        watch = Watch(github_app(network, meter=GitHubMeter(network.clock, known=10**9)))
        url = await stack.enter_async_context(serve(watch))
        github = github_at(url, "ada", "t-ada")
        stack.push_async_callback(github.aclose)
        ok(await github.contents.write(REPO, "README.md", "Beans", message="Begin"))
        body = generate_plan_markdown(PLAN)
        ok(await github.create_issue(REPO, f"[PLAN] {PLAN.title}", body, labels=("plan",)))
        folder = tmp_path / "kit"
        folder.mkdir()
        nursery = await stack.enter_async_context(nursing("tests.crash.claim_child", str(folder), url, "kit", "t-kit"))
        moments: tuple[Moment, ...] = ("request arrived", "request answered")
        for first, moment in enumerate(moments, 1):
            for number in range(first, MOST_REQUESTS, EVERY):
                (folder / "claims").touch()
                if not await dies(watch, nursery, moment, number):
                    break
                kills[moment] += 1
                (folder / "claims").unlink()
                await nursery.live_on(LONG_LIFE_S)
                await _check(github, folder, body)
            else:
                pytest.fail("a claim takes more requests than are tried")
        epoch = await _check(github, folder, body)
        sys.stdout.write(f"\n{kills.total()} SIGKILLs ({dict(kills)}) in {epoch} claims; nothing left of any\n")
        assert min(kills.values()) >= 10


async def _check(github: GitHub, folder: Path, body: str) -> int:
    """Check that only comments are left, each with a claim that has ended; return their highest epoch."""
    issue = ok(await github.get_issue(REPO, 1))
    plan = parse_plan(issue.body, issue.title)
    assert plan is not None
    assert [(one.status, one.assignee) for one in plan.tasks] == [("pending", None)] * 2
    assert issue.body == body
    assert issue.assignees == ("ada",)
    assert ok(await github.refs.matching(REPO, "soul/")) == ()
    comments = ok(await github.list_comments(REPO, 1))
    now = SystemClock().now() + AHEAD
    told = [PlanComment(one.id, one.author, one.body, now) for one in comments]
    claims = claims_on(told, 1)
    assert len({one.epoch for one in claims}) == len(claims) == len(comments)
    assert all(not one.is_live(now) for one in claims)
    with closing(sqlite3.connect(folder / "soul.db", timeout=10)) as connection:
        assert connection.execute("SELECT count(*) FROM task_leases").fetchone() == (0,)
    return highest_epoch(told, 1)
