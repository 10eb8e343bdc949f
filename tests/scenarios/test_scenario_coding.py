"""A SOUL as a process, real Git, a real sandbox: a task for code becomes one pull request, also where it is killed."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from adapters.git.client import Git
from adapters.github.types import Repo
from common.clock import SystemClock
from modules.runtime.home import Home
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task
from modules.services.workspaces.watched import WatchedWorkspaces
from tests.adapters.results import ok
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.patience import until
from tests.scenarios.workplace import open_workplace
from tests.town.github_place import needs_git
from town.github.arrangement import ORGANISATION, VISITOR_LOGIN
from town.residents import RESIDENTS

SPEED = 40.0
WORKSPACE = Repo(ORGANISATION, "www-lil-intdev-expenses")
TITLE = "Add up expenses by month, with tests"
PLAN = Plan(
    "Expenses by month",
    goal="Anybody sees what was spent in each month.",
    context="The visitor asked for it.",
    tasks=(Task(1, TITLE, description="A function, with tests.", files=("expenses.py",)),),
)
ALL = {one.name for one in RESIDENTS}


def counted(home: Home, query: str) -> int:
    """A number of the home's database, which its SOUL may be writing to."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute(query).fetchone()[0] or 0)
        except sqlite3.OperationalError:
            return 0  # its tables are being made


@needs_git
@needs_sandbox
@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.timeout(240)
async def test_code_is_written_tested_and_offered_once_though_its_soul_is_killed_meanwhile(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = SystemClock()
    async with open_workplace(tmp_path / "homes", speed=SPEED, asleep=ALL, unasked=True) as place:
        home, github = place.homes["maren"], place.town.github
        works, visitor = github.find(ORGANISATION), github.find(VISITOR_LOGIN)
        assert works
        assert visitor
        repo = github.create_repo(works, WORKSPACE.name, collaborators=[VISITOR_LOGIN, *place.homes])
        plan = generate_plan_markdown(PLAN)
        github.open_issue(repo, visitor, title=f"[PLAN] {PLAN.title}", body=plan, labels=["plan", "plan:active"])
        WatchedWorkspaces(home.memory / "watched_workspaces.json", clock, place.town.github_url).watch(WORKSPACE)
        began = clock.monotonic()
        await place.wakes("maren")
        await until(home.database.exists, what="its database")
        await until(lambda: counted(home, "SELECT count(*) FROM coding_steps") > 1, what="two steps of the code")
        place.terminals["maren"].kill()
        await place.terminals["maren"].wait()
        killed_at = counted(home, "SELECT count(*) FROM coding_steps")
        assert not place.pulls
        await place.wakes("maren")
        await until(lambda: bool(place.pulls), what="the pull request")
        (issue,) = place.plans
        await until(lambda: any("opened" in one.body for one in issue.comments), what="that is told on the plan")
        (pull,) = place.pulls
        assert pull.issue.title == f"task(1): {TITLE}"
        assert pull.issue.author.login == "maren"
        assert "make test" in (pull.issue.body or "")
        assert place.claimants(1) == ["maren"]
        steps = counted(home, "SELECT max(number) FROM coding_steps")
        assert steps == counted(home, "SELECT count(*) FROM coding_steps")
        asked = counted(home, "SELECT count(*) FROM model_calls WHERE purpose = 'coding' AND model <> 'set aside'")
        assert steps <= asked <= steps + 1
        folder = tmp_path / "clone"
        ok(
            await Git(api_url=place.town.github_url, login="", token="").clone(
                WORKSPACE.owner, WORKSPACE.name, folder, branch=pull.head_ref
            )
        )
        tests = await asyncio.create_subprocess_exec("make", "test", cwd=folder, stdout=asyncio.subprocess.DEVNULL)
        assert await tests.wait() == 0
        tokens = counted(home, "SELECT sum(input_tokens + output_tokens) FROM coding_steps")
        kept = counted(home, "SELECT sum(cached_tokens) FROM coding_steps")
    took = f"{tokens} tokens ({kept} kept), {clock.monotonic() - began:.0f} s"
    with capfd.disabled():
        sys.stdout.write(f"\n{steps} steps, killed at {killed_at}, {took}\n")
