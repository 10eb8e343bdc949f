"""The page shows what is built together: plans as boards of tasks, and pull requests with their reviews."""

from __future__ import annotations

import json
from collections.abc import Sequence

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from common.clock import FakeClock
from tests.loopback import NO_TLS
from tests.town.page.browsing import INJECTION, Watched, open_page
from tests.town.page.conftest import GITHUB, Square
from tests.town.page.page_contrast import CONTRAST
from town.github import pulls
from town.github.network import GitHubNetwork
from town.github.values import GitHubAccount, StoredRepo
from town.page.app import tasks, work

BODY = """# [PLAN] Benches

## Goal
Somewhere to sit.

## Tasks

### Task 1: Choose the wood
**Status:** completed
**Assignee:** @maren
**Estimate:** 10 min

**Description:**
Not **Status:** of anything.

---

### Task 2: Build it
**Status:** in_progress
**Assignee:** @odile

### Task 3: Paint it
**Status:** sideways
**Assignee:** (none)

### Task: no number
### Task 4: Try it
**Status:** Blocked
"""


def open_plan(
    github: GitHubNetwork, title: str = "[PLAN] Benches", body: str = BODY
) -> tuple[StoredRepo, GitHubAccount]:
    """A repository with one plan, whose author is returned with it."""
    maren = github.create_account("maren")
    repo = github.create_repo(maren, "square", collaborators=["odile"])
    github.open_issue(repo, maren, title=title, body=body)
    return repo, maren


def open_pull(
    github: GitHubNetwork, repo: StoredRepo, author: GitHubAccount, reviewers: Sequence[GitHubAccount] = ()
) -> None:
    pull = pulls.open_pull(
        github,
        repo,
        author,
        title="Build the bench",
        body=None,
        refs=("main", "soul/1-build-it"),
        commits=("a" * 40, "b" * 40),
        draft=False,
    )
    for event, reviewer in zip(("REQUEST_CHANGES", "APPROVE"), (*reviewers, *reviewers), strict=False):
        pulls.submit_review(github, repo, pull, reviewer, event=event, body="So.", commit=pull.head)


def test_a_plans_tasks_are_read_with_state_and_holder() -> None:
    assert [(task["number"], task["title"], task["state"], task["holder"]) for task in tasks(BODY)] == [
        (1, "Choose the wood", "completed", "maren"),
        (2, "Build it", "in_progress", "odile"),
        (3, "Paint it", "pending", ""),
        (4, "Try it", "blocked", ""),
    ]


def test_plans_and_pull_requests_of_public_repositories_are_shown() -> None:
    github = GitHubNetwork(clock=FakeClock())
    repo, maren = open_plan(github)
    odile = github.create_account("odile")
    github.open_issue(repo, maren, title="No plan", body=BODY)
    secret = github.create_repo(maren, "secret", private=True)
    github.open_issue(secret, maren, title="[PLAN] Secret", body=BODY)
    open_pull(github, repo, maren, [odile])
    pull = repo.pulls[3]
    pulls.request_reviewers(github, repo, pull, maren, ["odile"])
    told = work(github)
    assert [(plan["title"], plan["state"], len(plan["tasks"])) for plan in told["plans"]] == [("Benches", "open", 4)]
    assert told["pulls"] == [
        {
            "repo": "maren/square",
            "number": 3,
            "title": "Build the bench",
            "by": "maren",
            "branch": "soul/1-build-it",
            "state": "open",
            "reviews": [{"by": "odile", "state": "approved"}],
            "asked": ["odile"],
        }
    ]
    pulls.set_merged(github, repo, pull, maren, "c" * 40)
    assert work(github)["pulls"][0]["state"] == "merged"


async def test_the_work_comes_by_the_stream_whenever_it_changes(square: Square) -> None:
    async with (
        httpx.AsyncClient(base_url=square.url, verify=NO_TLS) as http,
        http.stream("GET", "/api/events") as answer,
    ):
        told, name = [], ""
        async for line in answer.aiter_lines():
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            if name == "work" and line.startswith("data: "):
                told.append(json.loads(line.removeprefix("data: ")))
                if len(told) == 1:
                    open_plan(square.github)
                elif told[-1]["plans"]:
                    break
    assert (told[0], told[-1]["plans"][0]["title"]) == ({"plans": [], "pulls": []}, "Benches")


@pytest.mark.browser
async def test_a_visitor_sees_boards_and_pull_requests(page: Page, square: Square) -> None:
    await page.get_by_role("tab", name="The work").click()
    await expect(page.get_by_text("Nothing is being built yet.")).to_be_visible()
    repo, maren = open_plan(square.github)
    open_pull(square.github, repo, maren, [square.github.create_account("odile")])
    await expect(page.locator(".plan-title a")).to_have_attribute("href", f"{GITHUB}/maren/square/issues/1")
    await expect(page.locator(".plan .plan-about")).to_have_text("maren/square, open: 1 of 4 done")
    await expect(page.locator(".plan .clone")).to_contain_text("/maren/square.git")
    await expect(page.locator(".column h3")).to_have_text(["To do 1", "In work 1", "Blocked 1", "Done 1"])
    await expect(page.get_by_label("In work").locator(".task")).to_have_text("2. Build it@odile")
    await expect(page.locator(".pull .plan-about").last).to_have_text("odile approved it")


@pytest.mark.browser
async def test_what_is_written_there_stays_text(page: Page, square: Square, watched: Watched) -> None:
    await page.get_by_role("tab", name="The work").click()
    evil = f"### Task 1: {INJECTION}\n**Assignee:** @{INJECTION}\n"
    open_plan(square.github, f"[PLAN] {INJECTION}"[:250], evil)
    await expect(page.locator(".task")).to_have_count(1)
    assert await page.title() == "The town"
    assert await page.locator("#work img, #work script").count() == 0
    assert watched.complaints == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_work_can_be_read(browser: Browser, square: Square, watched: Watched, scheme: str) -> None:
    context = await browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": 360, "height": 700}
    )
    page = await open_page(context, square.url, watched)
    await page.get_by_role("tab", name="The work").click()
    repo, maren = open_plan(square.github)
    open_pull(square.github, repo, maren)
    await expect(page.locator(".pull")).to_have_count(1)
    assert await page.evaluate(CONTRAST) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await context.close()
