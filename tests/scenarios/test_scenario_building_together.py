"""Three SOULs as processes, real Git, a room: one workspace, one plan in it, and one pull request for each document."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from adapters.github.types import Repo
from common.clock import SystemClock
from modules.runtime.home import Home
from modules.services.plans.claims import Comment, claims_on
from modules.services.plans.parse import parse_plan
from modules.services.plans.types import Plan
from soul.commands.demo import make_home
from soul.commands.demo_controls import HomeControls
from tests.patience import until
from tests.program import started
from tests.town.github_place import needs_git
from town.github.arrangement import ORGANISATION
from town.github.values import StoredIssue, StoredPull, StoredRepo
from town.town import Town, open_town

SPEED = 40.0
WORKSPACE = Repo(ORGANISATION, "www-lil-intdev-tides")
MAKE = "Please make a workspace for the tides."
ASKED = f"Could one of you write a plan for a tide table in github.com/{WORKSPACE.full_name}?"
AGAIN = f"Could one of you write a plan for a page about the tides in github.com/{WORKSPACE.full_name}?"
PAGES = ["Create LIL-INTDEV-AGENTS.md", "Create SCENARIOS.md"]


@dataclass
class Workplace:
    """The town with a workspace in it, and the homes of three who live there."""

    town: Town
    homes: dict[str, Home]
    terminals: dict[str, Process]

    @property
    def workspaces(self) -> list[StoredRepo]:
        """The workspaces of the organisation."""
        return [one for one in self.town.github.repos() if one.name.startswith("www-lil-intdev-")]

    @property
    def repo(self) -> StoredRepo:
        """The one workspace."""
        (repo,) = self.workspaces
        return repo

    @property
    def plans(self) -> list[StoredIssue]:
        """The issues that hold a plan, oldest first."""
        return [one for one in self.repo.issues.values() if one and one.title.startswith("[PLAN]")]

    @property
    def issues(self) -> list[StoredIssue]:
        """The issues of the workspace that are no pull requests, oldest first."""
        return [one for one in self.repo.issues.values() if one and not one.is_pull]

    @property
    def pulls(self) -> list[StoredPull]:
        """The pull requests, oldest first."""
        return list(self.repo.pulls.values())

    def claimants(self, number: int) -> list[str]:
        """Who told on the plan's issue that a task is theirs."""
        (issue,) = self.plans
        told = [Comment(one.id, one.author.login, one.body, one.updated_at) for one in issue.comments]
        return [claim.soul for claim in claims_on(told, number)]

    @property
    def plan(self) -> Plan:
        """The one plan, as it stands."""
        (issue,) = self.plans
        plan = parse_plan(issue.body or "", issue.title)
        assert plan is not None
        return plan

    def watched_by(self) -> set[str]:
        """Who watches the workspace."""
        files = {name: home.memory / "watched_workspaces.json" for name, home in self.homes.items()}
        told = {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}
        return {name for name, kept in told.items() if WORKSPACE.full_name in kept.get("workspaces", {})}

    async def types(self, line: str) -> None:
        """The owner types the same into all three terminals."""
        for process in self.terminals.values():
            assert process.stdin
            process.stdin.write(f"{line}\n".encode())
            await process.stdin.drain()

    async def says(self, text: str) -> None:
        """The owner speaks in the room, by the page."""
        async with httpx.AsyncClient(base_url=self.town.page_url, trust_env=False) as http:
            answer = await http.post("/api/room", json={"text": text}, headers={"origin": self.town.page_url})
            assert answer.is_success, answer.text

    def said(self) -> list[str]:
        """What was said in the room."""
        record = self.homes["maren"].root.parent / ".room" / "data" / "chat.jsonl"
        return [json.loads(line).get("content", "") for line in record.read_text().splitlines()]


@asynccontextmanager
async def open_workplace(folder: Path) -> AsyncIterator[Workplace]:
    """A town, and three SOULs that run, each with a terminal of its own."""
    async with open_town(homes=folder, controls=HomeControls({})) as town, AsyncExitStack() as stack:
        homes = {one.name: make_home(folder / one.name, one, town, SPEED) for one in town.residents}
        terminals = {}
        for name, home in homes.items():
            home.env.write_text(home.env.read_text().replace("SOUL_APPROVAL=strangers", "SOUL_APPROVAL=off"))
            log = stack.enter_context((home.root / "life.log").open("wb"))
            running = started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE, stdout=log.fileno())
            terminals[name] = await stack.enter_async_context(running)
        yield Workplace(town, homes, terminals)


@needs_git
@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_three_souls_make_one_workspace_one_plan_and_each_document_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = SystemClock()
    began = clock.monotonic()
    async with open_workplace(tmp_path) as place:
        await place.types(MAKE)
        await until(lambda: bool(place.workspaces), what="the workspace")
        await until(lambda: place.watched_by() == set(place.homes), what="all three watch the workspace")
        await place.says(ASKED)
        await until(lambda: bool(place.plans), what="the plan")
        await until(lambda: any(text.startswith("Done — ") for text in place.said()), what="its link in the room")
        plan = place.plan
        assert [task.title for task in plan.tasks][:2] == PAGES
        assert len(plan.tasks) > len(PAGES)
        await place.says(AGAIN)
        await until(
            lambda: sum(text.startswith("Done — ") for text in place.said()) > 1, what="the same plan, told again"
        )
        await until(lambda: len(place.pulls) >= len(PAGES), what="a pull request for each document")
        assert [one.title for one in place.plans] == [issue.title for issue in place.issues]
        assert sorted(one.issue.title for one in place.pulls) == [
            f"task({number}): {title}" for number, title in enumerate(PAGES, start=1)
        ]
        for number, name in enumerate(("LIL-INTDEV-AGENTS.md", "SCENARIOS.md"), start=1):
            (pull,) = (one for one in place.pulls if one.head_ref.startswith(f"task-{number}-"))
            task = place.plan.task(number)
            assert task is not None
            assert (task.status, task.assignee) == ("in_progress", pull.issue.author.login)
            git = place.town.github.git(place.repo)
            assert await git.entry(pull.head, name) is not None
            assert [change.path for change in await git.changes(pull.base, pull.head)] == [name]
            assert place.claimants(number) == [pull.issue.author.login]
    with capfd.disabled():
        sys.stdout.write(f"\none plan with {len(plan.tasks)} tasks after {clock.monotonic() - began:.0f} s\n")
