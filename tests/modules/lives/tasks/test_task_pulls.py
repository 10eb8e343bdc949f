"""Proves which pull requests keep a task from being claimed or freed: those for its plan, by people who count."""

import pytest

from adapters.github.types import PAGE
from modules.lives.tasks.types import Failed, HeldTask, WorkResult
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task
from tests.adapters.results import ok
from tests.modules.lives.tasks.site import SITE, Site, Work, site_with_plan
from tests.running_town import RunningTown
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub
from town.github.pulls import open_pull
from town.github.values import StoredRepo

PLAN = Plan("A counter", goal="It counts.", tasks=(Task(1, "Count"),))
pytestmark = needs_git


async def give_up(_: HeldTask) -> WorkResult:
    return Failed("error", "There is no key.")


def stored(town_github: TownGitHub) -> StoredRepo:
    """Return the workspace as the town stores it."""
    return next(one for one in town_github.network.repos() if one.name == SITE.name)


async def offer(town_github: TownGitHub, site: Site, body: str, author: str) -> int:
    """Open a pull request for the first task, and return its number."""
    github, name = site.services.github, "task-1-count"
    main = ok(await github.refs.get(SITE, "main")).sha
    ok(await github.refs.create(SITE, name, main))
    ok(await github.contents.write(SITE, "COUNT.md", "#\n", message="m", branch=name))
    pull = ok(await github.pulls.create(SITE, title="task(1): Count", body=body, head=name, base="main"))
    if author != "rowan":
        stored(town_github).pulls[pull.number].issue.author = town_github.network.create_account(author)
    return pull.number


async def bury(town_github: TownGitHub, site: Site, count: int, branch: str = "topic") -> None:
    """Open `count` newer pull requests by a stranger."""
    network, repo = town_github.network, stored(town_github)
    sha = ok(await site.services.github.refs.get(SITE, "main")).sha
    eve = network.create_account("eve")
    fork = network.create_repo(eve, SITE.name)
    for number in range(count):
        refs = ("main", f"{branch}-{number}")
        commits = (sha, sha)
        open_pull(
            network, repo, eve, title="Other", body="Part of #1", refs=refs, commits=commits, draft=False, fork=fork
        )


@pytest.mark.parametrize(
    ("body", "author", "begun"),
    [("Part of #1", "mallory", [1]), ("", "rowan", [1]), ("Part of #11", "rowan", [1]), ("Part of #1", "rowan", [])],
    ids=["of a stranger", "for no plan", "for another plan", "ours, for the plan"],
)
@pytest.mark.slow
async def test_only_a_pull_request_for_the_plan_by_one_whose_words_count_keeps_a_task_from_being_claimed(
    running_town: RunningTown, town_github: TownGitHub, body: str, author: str, begun: list[int]
) -> None:
    async with site_with_plan(town_github, PLAN) as site:
        await offer(town_github, site, body, author)
        work = Work(give_up)
        await site.cycle(work)
        assert work.asked == begun


@pytest.mark.parametrize("merged", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["open", "merged"])
async def test_a_pull_request_behind_more_than_a_hundred_newer_ones_still_counts(
    running_town: RunningTown, town_github: TownGitHub, *, merged: bool
) -> None:
    async with site_with_plan(town_github, PLAN) as site:
        number = await offer(town_github, site, "Part of #1", "rowan")
        await site.is_rowans_since_long_ago()
        if merged:
            ok(await site.services.github.pulls.merge(SITE, number))
        await bury(town_github, site, PAGE + 1)
        work = Work(give_up)
        await site.cycle(work)
        assert await site.task(1) == (("completed", None) if merged else ("in_progress", "rowan"))
        assert work.asked == []


@pytest.mark.slow
async def test_no_number_of_pull_requests_of_strangers_keeps_a_task_from_being_claimed(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, PLAN) as site:
        await bury(town_github, site, PAGE + 1, branch="task-1")
        work = Work(give_up)
        await site.cycle(work)
        assert work.asked == [1]


async def test_what_a_fork_offers_is_no_work_on_a_task_whoever_offers_it(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, PLAN) as site:
        number = await offer(town_github, site, "Part of #1", "rowan")
        repo = stored(town_github)
        repo.pulls[number].fork = town_github.network.create_repo(repo.pulls[number].issue.author, "fork")
        work = Work(give_up)
        await site.cycle(work)
        assert work.asked == [1]


async def test_a_pull_request_counts_for_its_task_also_after_the_plan_was_numbered_anew(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, PLAN) as site:
        number = await offer(town_github, site, "Part of #1", "rowan")
        await site.is_rowans_since_long_ago()
        before = Task(2, "Count", status="in_progress", assignee="rowan", dependencies=("Task 1",))
        anew = generate_plan_markdown(Plan("A counter", goal="It counts.", tasks=(Task(1, "Read the file"), before)))
        ok(await site.services.github.update_issue(SITE, 1, body=anew))
        ok(await site.services.github.pulls.merge(SITE, number))
        work = Work(give_up)
        await site.cycle(work)
        assert await site.task(2) == ("completed", None)
        assert (await site.task(1))[0] == "blocked"
        assert set(work.asked) == {1}
