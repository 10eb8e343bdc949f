"""Three SOULs as processes, with real Git and a room, make one workspace, one plan and one pull request per task.

A SOUL as a process, with real Git and a real sandbox, makes one pull request for a coding task, even if killed.
"""

import asyncio
import signal
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from adapters.git.client import Git
from adapters.github.types import Repo
from common.clock import SystemClock
from modules.runtime.home import Home
from modules.services.plans.plan_text import generate_plan_markdown, parse_plan
from modules.services.plans.types import Plan, Task
from modules.services.workspaces.watched import WatchedWorkspaces
from tests.adapters.results import ok
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.patience import until
from tests.scenarios.workplace import open_workplace
from tests.town.github_place import needs_git
from town.github.arrangement import ORGANISATION, VISITOR_LOGIN
from town.github.values import GitHubEvent, StoredIssue
from town.residents import RESIDENTS

SPEED = 40.0
FAST = 180.0
WORKSPACE = Repo(ORGANISATION, "www-lil-intdev-tides")
MAKE = "Please make a workspace for the tides."
ASKED = f"Could one of you write a plan for expenses by month in github.com/{WORKSPACE.full_name}?"
BUILD = f"Please write a plan in github.com/{WORKSPACE.full_name} for a command that adds up expenses by month."
BUILT_WITHIN_S = 600.0
CODE = 1


@needs_git
@needs_sandbox
@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.timeout(240)
async def test_three_souls_make_one_workspace_one_plan_and_its_first_task_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = SystemClock()
    began = clock.monotonic()
    async with open_workplace(tmp_path, speed=SPEED) as place:
        place.keeps_checks_running()  # nothing is merged, so the plan stays open while this test looks
        await place.types(MAKE)
        await until(lambda: bool(place.workspaces), what="the workspace")
        await until(lambda: place.watched_by(WORKSPACE) == set(place.homes), what="all three watch the workspace")
        await place.says(ASKED)
        await until(lambda: bool(place.plans), what="the plan")
        await until(lambda: any(text.startswith("Done — ") for text in place.said()), what="its link in the room")
        plan = place.plan
        assert [task.files for task in plan.tasks] == [
            ("expenses.py", "test_expenses.py", "Makefile"),
            ("monthly.py", "test_monthly.py", "README.md"),
        ]
        await until(lambda: bool(place.offers(CODE)), what="a pull request for the first task")
        still_open = [issue.title for issue in place.issues if issue.state == "open"]
        assert [one.title for one in place.plans] == still_open
        offered = [one.issue.title for one in place.pulls]
        assert len(set(offered)) == len(offered)
        (pull,) = (one for one in place.pulls if one.head_ref.startswith(f"task-{CODE}-"))
        task = place.plan.task(CODE)
        assert task is not None
        assert (task.status, task.assignee) == ("in_progress", pull.issue.author.login)
        git = place.town.github.git(place.repo)
        assert await git.entry(pull.head, "expenses.py") is not None
        assert place.claimants(CODE) == [pull.issue.author.login]
    with capfd.disabled():
        sys.stdout.write(f"\none plan with {len(plan.tasks)} tasks after {clock.monotonic() - began:.0f} s\n")


@needs_git
@needs_sandbox
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_planted_fault_is_sent_back_and_mended_though_its_author_is_killed_while_coding_and_merging(
    tmp_path: Path,
) -> None:
    async with open_workplace(tmp_path, speed=FAST, unasked=True) as place:
        await place.types(MAKE)
        await until(lambda: place.watched_by(WORKSPACE) == set(place.homes), what="all three watch the workspace")
        await place.says(BUILD)
        await until(lambda: bool(place.plans), what="the plan")
        (plan,) = place.plans
        await until(lambda: place.claimants(CODE), what="a claim of the code")
        author = place.claimants(CODE)[0]
        await place.dies(author)
        await until(lambda: place.offers(CODE), what="the pull request of the code")
        (pull,) = place.offers(CODE)
        planted = await place.edits(place.repo, pull.head_ref, "expenses.py", "+ amount", "- amount")
        await until(
            lambda: ("CHANGES_REQUESTED", planted) in {(one.state, one.commit) for one in pull.reviews},
            what="a review that sends the fault back",
        )
        await until(lambda: pull.merged_at, within_s=BUILT_WITHIN_S, what="the merge")
        await place.dies(pull.issue.author.login)
        await until(lambda: plan.state == "closed", within_s=BUILT_WITHIN_S, what="all tasks of the plan")
        assert pull.head != planted
        assert ("APPROVED", planted) not in {(one.state, one.commit) for one in pull.reviews}
        done = parse_plan(plan.body or "", plan.title)
        assert done is not None
        for task in done.tasks:
            (offered,) = place.offers(task.number)
            assert task.status == "completed"
            assert offered.head in {one.commit for one in offered.reviews if one.state == "APPROVED"}
            assert offered.issue.author not in {one.author for one in offered.reviews}
        clone = tmp_path / "clone"
        await run("git", "clone", "--quiet", f"{place.town.github_url}/{WORKSPACE.full_name}.git", str(clone))
        assert "+ amount" in (clone / "expenses.py").read_text()
        await run("make", "-C", str(clone), "test")

        def open_sentinels() -> list[StoredIssue]:
            return [one for one in place.sentinels if one.state == "open"]

        await until(lambda: len(open_sentinels()) == 1, what="the one issue that says that all is done")
        (sentinel,) = open_sentinels()
        place.comments(sentinel, "Please add a page about the expenses, too.")
        await until(lambda: sentinel.state == "closed", what="the workspace at work again")
        await until(lambda: any("page about the expenses" in (one.body or "") for one in place.issues), what="the wish")


@needs_git
@needs_sandbox
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_change_that_conflicts_after_its_review_is_merged_in_and_reviewed_again_and_nothing_is_doubled(
    tmp_path: Path,
) -> None:
    async with open_workplace(tmp_path, speed=FAST, unasked=True) as place:
        await place.types(MAKE)
        await until(lambda: place.watched_by(WORKSPACE) == set(place.homes), what="all three watch the workspace")
        offered_beside: list[str] = []
        halted: list[str] = []

        def see(event: GitHubEvent) -> None:
            """Record a second offer for a task, and halt the author of the code at its first approval."""
            pull = place.repo.pulls.get(event.number or 0)
            if event.kind == "pull_opened" and pull:
                task = pull.head_ref.split("-")[1]
                if sum(one.is_open for one in place.offers(int(task))) > 1:
                    offered_beside.append(pull.head_ref)
            approved = pull and any(one.state == "APPROVED" for one in pull.reviews)
            if event.kind == "pull_reviewed" and pull in place.offers(CODE) and approved and not halted:
                place.terminals[pull.issue.author.login].send_signal(signal.SIGSTOP)
                halted.append(pull.issue.author.login)

        place.town.github.subscribe(see)
        await place.says(BUILD)
        await until(lambda: bool(place.plans), what="the plan")
        (plan,) = place.plans
        await until(lambda: halted, within_s=BUILT_WITHIN_S, what="an approval of the code")
        theirs = await place.adds(place.repo, "expenses.py", "# The expenses, as somebody else began them.\n")
        place.terminals[halted[0]].send_signal(signal.SIGCONT)
        await until(lambda: plan.state == "closed", within_s=BUILT_WITHIN_S, what="all tasks of the plan")
        (pull,) = place.offers(CODE)
        assert await place.town.github.git(place.repo).merge_base(theirs, pull.head) == theirs
        assert pull.head in {one.commit for one in pull.reviews if one.state == "APPROVED"}
        done = parse_plan(plan.body or "", plan.title)
        assert done is not None
        assert offered_beside == []
        for task in done.tasks:
            assert task.status == "completed"
            assert sum(one.merged_at is not None for one in place.offers(task.number)) == 1
        told = Counter((one.author.login, one.body) for issue in place.issues for one in issue.comments)
        assert [text for text, times in told.items() if times > 1] == []
        ended = [text for text in place.said() if not text.startswith("Done — ") and f"/issues/{plan.number}" in text]
        assert len(ended) == 1


async def run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0, command


EXPENSES = Repo(ORGANISATION, "www-lil-intdev-expenses")
TITLE = "Add up expenses by month, with tests"
PLAN = Plan(
    "Expenses by month",
    goal="Anybody sees what was spent in each month.",
    context="The visitor asked for it.",
    tasks=(Task(1, TITLE, description="A function, with tests.", files=("expenses.py",)),),
)
ALL = {one.name for one in RESIDENTS}


def counted(home: Home, query: str) -> int:
    """Return a number from the home's database, while its SOUL may write to it; 0 if the tables do not exist yet."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute(query).fetchone()[0] or 0)
        except sqlite3.OperationalError:
            return 0  # its tables do not exist yet


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
        repo = github.create_repo(works, EXPENSES.name, collaborators=[VISITOR_LOGIN, *place.homes])
        plan = generate_plan_markdown(PLAN)
        github.open_issue(repo, visitor, title=f"[PLAN] {PLAN.title}", body=plan, labels=["plan", "plan:active"])
        WatchedWorkspaces(home.memory / "watched_workspaces.json", clock, place.town.github_url).watch(EXPENSES)
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
                EXPENSES.owner, EXPENSES.name, folder, branch=pull.head_ref
            )
        )
        tests = await asyncio.create_subprocess_exec("make", "test", cwd=folder, stdout=asyncio.subprocess.DEVNULL)
        assert await tests.wait() == 0
        tokens = counted(home, "SELECT sum(input_tokens + output_tokens) FROM coding_steps")
        kept = counted(home, "SELECT sum(cached_tokens) FROM coding_steps")
    took = f"{tokens} tokens ({kept} kept), {clock.monotonic() - began:.0f} s"
    with capfd.disabled():
        sys.stdout.write(f"\n{steps} steps, killed at {killed_at}, {took}\n")
