"""The town with a workspace, and SOULs that live there as separate processes, each with a terminal."""

import asyncio
import base64
import json
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from adapters.github.types import Repo
from modules.runtime.home import Home
from modules.services.claims.policy import PlanComment, claims_on
from modules.services.plans.plan_text import parse_plan
from modules.services.plans.types import Plan
from modules.services.workspaces.sentinel import FINISHED_LABEL
from soul.commands.demo import HomeControls, make_home
from tests.program import started
from town.github.arrangement import VISITOR_LOGIN
from town.github.values import GitHubEvent, StoredIssue, StoredPull, StoredRepo, StoredStatus
from town.town import Town, open_town


@dataclass
class Workplace:
    """The town with a workspace, and the homes of its three residents."""

    town: Town
    homes: dict[str, Home]
    stack: AsyncExitStack
    terminals: dict[str, Process] = field(default_factory=dict)

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
        """The open issues that hold a plan, oldest first; of two made at once, one is closed a moment later."""
        return [one for one in self.issues if one.state == "open" and one.title.startswith("[PLAN]")]

    @property
    def issues(self) -> list[StoredIssue]:
        """The issues of the workspace that are not pull requests, oldest first."""
        return [one for one in self.repo.issues.values() if one and not one.is_pull]

    @property
    def pulls(self) -> list[StoredPull]:
        """The pull requests, oldest first."""
        return list(self.repo.pulls.values())

    @property
    def sentinels(self) -> list[StoredIssue]:
        """The issues that say that the work is finished."""
        return [one for one in self.issues if FINISHED_LABEL in {label.name for label in one.labels}]

    def comments(self, issue: StoredIssue, text: str) -> None:
        """Comment on an issue as the owner of the workspace."""
        who = self.town.github.find(VISITOR_LOGIN)
        assert who
        self.town.github.write_comment(self.repo, issue, who, text)

    def keeps_checks_running(self) -> None:
        """Start a check of the owner on each later pull request, and never finish it."""
        who = self.town.github.find(VISITOR_LOGIN)
        assert who

        def begin(event: GitHubEvent) -> None:
            pull = self.repo.pulls.get(event.number or 0)
            if event.kind == "pull_opened" and pull:
                github = self.town.github
                status = StoredStatus(
                    github.new_id(), pull.head, "pending", "tests", None, None, who, github.clock.now()
                )
                self.repo.statuses.append(status)

        self.town.github.subscribe(begin)

    def offers(self, task: int) -> list[StoredPull]:
        """Return the pull requests for a task of the one plan."""
        return [one for one in self.pulls if one.head_ref.startswith(f"task-{task}-")]

    def claimants(self, number: int) -> list[str]:
        """Return the SOULs that claimed a task in a comment on the plan's issue."""
        (issue,) = self.plans
        told = [PlanComment(one.id, one.author.login, one.body, one.updated_at) for one in issue.comments]
        return [claim.soul for claim in claims_on(told, number)]

    @property
    def plan(self) -> Plan:
        """The current state of the one plan."""
        (issue,) = self.plans
        plan = parse_plan(issue.body or "", issue.title)
        assert plan is not None
        return plan

    def watched_by(self, repo: Repo) -> set[str]:
        """Return the names of the SOULs that watch a workspace."""
        files = {name: home.memory / "watched_workspaces.json" for name, home in self.homes.items()}
        told = {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}
        return {name for name, kept in told.items() if repo.full_name in kept.get("workspaces", {})}

    async def wakes(self, name: str) -> None:
        """Start the SOUL of a resident."""
        home = self.homes[name]
        log = self.stack.enter_context((home.root / "life.log").open("wb"))
        running = started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE, stdout=log.fileno())
        self.terminals[name] = await self.stack.enter_async_context(running)

    async def dies(self, name: str) -> None:
        """Kill the SOUL of a resident with SIGKILL and start it again."""
        process = self.terminals.pop(name)
        process.kill()
        await process.wait()
        await self.wakes(name)

    async def edits(self, repo: StoredRepo, branch: str, path: str, old: str, new: str) -> str:
        """Edit a file on GitHub's page as a person; return the commit."""
        git = self.town.github.git(repo)
        head = await git.resolve(f"refs/heads/{branch}")
        entry = await git.entry(head, path) if head else None
        assert entry, f"{path} on {branch}"
        before = ((await git.blob(entry.sha)) or b"").decode()
        assert old in before
        return await self._writes(repo, path, before.replace(old, new), branch=branch, sha=entry.sha)

    async def adds(self, repo: StoredRepo, path: str, text: str) -> str:
        """Add a file to the main branch on GitHub's page as a person; return the commit."""
        return await self._writes(repo, path, text, branch=repo.default_branch)

    async def _writes(self, repo: StoredRepo, path: str, text: str, **more: str) -> str:
        who = self.town.github.find(VISITOR_LOGIN)
        assert who
        body = {"message": f"Change {path}", "content": base64.b64encode(text.encode()).decode(), **more}
        async with httpx.AsyncClient(
            base_url=self.town.github_url, trust_env=False, headers={"authorization": f"Bearer {who.token}"}
        ) as http:
            answer = await http.put(f"/repos/{repo.owner.login}/{repo.name}/contents/{path}", json=body)
            assert answer.is_success, answer.text
        return str(answer.json()["commit"]["sha"])

    async def types(self, line: str) -> None:
        """Type a line into the terminals of all SOULs that are awake."""
        for process in self.terminals.values():
            assert process.stdin
            process.stdin.write(f"{line}\n".encode())
            await process.stdin.drain()

    async def says(self, text: str) -> None:
        """Speak in the room as its owner, through the page."""
        async with httpx.AsyncClient(base_url=self.town.page_url, trust_env=False) as http:
            answer = await http.post("/api/room", json={"text": text}, headers={"origin": self.town.page_url})
            assert answer.is_success, answer.text

    def said(self) -> list[str]:
        """Return the texts of all messages in the room."""
        record = self.homes["maren"].root.parent / ".room" / "data" / "chat.jsonl"
        return [json.loads(line).get("content", "") for line in record.read_text().splitlines()]


@asynccontextmanager
async def open_workplace(
    folder: Path, *, speed: float, asleep: Collection[str] = (), unasked: bool = False
) -> AsyncIterator[Workplace]:
    """Open a town and start the SOULs of its residents as processes, except those named in `asleep`.

    With `unasked`, no SOUL asks its owner before it acts.
    """
    async with open_town(homes=folder, controls=HomeControls({})) as town, AsyncExitStack() as stack:
        homes = {one.name: make_home(folder / one.name, one, town, speed) for one in town.residents}
        place = Workplace(town, homes, stack)
        for name, home in homes.items():
            if unasked:
                home.env.write_text(home.env.read_text().replace("SOUL_APPROVAL=strangers", "SOUL_APPROVAL=off"))
            if name not in asleep:
                await place.wakes(name)
        yield place
