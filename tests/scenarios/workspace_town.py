"""The town's GitHub with one workspace and people in it, and a SOUL that maintains it, driven step by step."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from adapters.github.types import Repo
from modules.runtime.home import Home
from modules.services.claims.lease_store import PLAN_AWARENESS
from modules.services.workspaces.watched import WatchedWorkspace
from tests.hasty_clock import HastyClock
from tests.running_town import HASTE_STEP_BY_STEP, RunningSoul, RunningTown, awake, call, prompt_of
from town.github.network import GitHubNetwork
from town.github.repository import NO_COMMIT, Signature
from town.github.service import github_app
from town.github.values import GitHubFaults, StoredIssue, StoredRepo
from town.model.types import ChatRequest, Completion
from town.serving import serve

SITE = Repo("acme", "www-lil-intdev-site")
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
DONE: dict[str, Any] = {"complete": True, "summary": "All that the pages promise is there.", "remaining": []}


@dataclass
class WorkspaceMind:
    """Plans these tasks and gives this verdict on a workspace; `asked` holds the prompts, by tool.

    `outside` are its answers to issues outside the workspace's purpose.

    `work_request` is its answer to whether somebody asked for an issue.
    """

    tasks: list[dict[str, Any]] = field(default_factory=list)
    outside: list[dict[str, Any]] = field(default_factory=list)
    verdict: dict[str, Any] = field(default_factory=lambda: dict(DONE))
    work_request: str = '{"comment": 0, "quote": ""}'
    asked: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> Completion:
        tool = next((offer.name for offer in request.offers), "")
        self.asked.append((tool, prompt_of(request)))
        if tool == "plan_create":
            return call(
                "plan_create", title="One page", goal="The page is there.", tasks=self.tasks, outside=self.outside
            )
        if tool == "workspace_verdict":
            return call("workspace_verdict", **self.verdict)
        if request.messages and request.messages[-1].text.endswith("Is the work to be done?"):
            return Completion(text=self.work_request)
        return Completion(text="[]")

    def prompts(self, tool: str) -> list[str]:
        """Return the prompts for this tool."""
        return [text for name, text in self.asked if name == tool]


@dataclass
class WorkspaceTown:
    """`rowan`, a SOUL, and `kit`, a person, may push to the workspace; `owner` owns the SOUL; `eve` is a stranger."""

    town: RunningTown
    clock: HastyClock
    network: GitHubNetwork
    faults: GitHubFaults
    url: str
    repo: StoredRepo
    mind: WorkspaceMind

    def home(self, name: str = "rowan", **more: str) -> Home:
        """Return the home of a SOUL that has an account on GitHub."""
        account = self.network.find(name)
        assert account
        settings = {
            "GITHUB_API_URL": self.url,
            "AGENT_GITHUB_USERNAME": name,
            "AGENT_GITHUB_TOKEN": account.token,
            "OWNER_GITHUB_USERNAME": "owner",
            "SOUL_ALLOW_PRIVATE_NET": "on",
            "SOUL_SPEED": "1",
        }
        return self.town.make_home(name, **(settings | more))

    @asynccontextmanager
    async def living(self, home: Home | None = None) -> AsyncIterator[LivingSoul]:
        """Yield a SOUL that watches the workspace."""
        async with awake(home or self.home(), clock=self.clock) as soul:
            soul.app.services.workspaces.watch(SITE)
            yield LivingSoul(self, soul)

    def opens(self, login: str, title: str, body: str = "", *labels: str) -> StoredIssue:
        """Open an issue as `login`."""
        account = self.network.find(login) or self.network.create_account(login)
        return self.network.open_issue(self.repo, account, title=title, body=body, labels=labels)

    def says(self, login: str, issue: StoredIssue, text: str) -> None:
        """Comment on an issue as `login`."""
        account = self.network.find(login) or self.network.create_account(login)
        self.network.write_comment(self.repo, issue, account, text)

    def labels(self, login: str, issue: StoredIssue, *labels: str) -> None:
        """Set the labels of an issue as `login`, replacing the others."""
        account = self.network.find(login)
        assert account
        self.network.change_issue(self.repo, issue, account, labels=labels)

    def closes(self, login: str, number: int) -> None:
        """Close an issue as `login`."""
        account = self.network.find(login)
        assert account
        self.network.set_state(self.issue(number), account, "closed")

    def completes(self, login: str, number: int) -> None:
        """Mark all tasks of a plan as completed, as `login`."""
        account = self.network.find(login)
        assert account
        done = re.sub(r"(?m)^(\*\*Status:\*\*).*$", r"\1 completed", self.issue(number).body or "")
        self.network.change_issue(self.repo, self.issue(number), account, body=done)

    def issue(self, number: int) -> StoredIssue:
        """Return an issue by its number."""
        found = self.repo.issues[number]
        assert found
        return found

    def state(self, number: int) -> str:
        """Return whether an issue is open or closed."""
        return self.issue(number).state

    def issues(self) -> list[tuple[int, str, str]]:
        """Return number, state and title of all issues, oldest first."""
        return [(number, one.state, one.title) for number, one in self.repo.issues.items() if one]

    def said(self, number: int, login: str = "rowan") -> list[str]:
        """Return the comments of `login` on an issue, without their invisible marks."""
        own = (one.body for one in self.issue(number).comments if one.author.login == login)
        return [text.partition("\n\n<!--")[0] for text in own]

    async def write(self, **pages: str) -> None:
        """Commit pages to the repository; each is named without its ending."""
        author = Signature("Kit", "kit@example.com", self.clock.now())
        git = self.network.git(self.repo)
        blobs = {f"{name}.md": await git.write_blob(text.encode()) for name, text in pages.items()}
        commit = await git.write_commit(await git.tree_with(None, blobs), [], "Add pages", author)
        await git.set_ref("refs/heads/main", commit, old=NO_COMMIT)


@dataclass
class LivingSoul:
    """A SOUL that is driven one pass at a time."""

    place: WorkspaceTown
    soul: RunningSoul

    async def look(self, after_s: float = 0, times: int = 1) -> str:
        """Let time pass, look at the workspaces, and send the resulting intents; return the line of the last pass."""
        line = ""
        for _ in range(times):
            self.place.clock.ahead += after_s
            line = (await self.soul.app.scheduler.run_guarded(PLAN_AWARENESS)).reason
            await self.soul.send()
        return line

    @property
    def watched(self) -> WatchedWorkspace:
        """The SOUL's record of the workspace."""
        found = self.soul.app.services.workspaces.get(SITE)
        assert found
        return found


@asynccontextmanager
async def open_workspace(
    town: RunningTown,
    *,
    collaborators: tuple[str, ...] = ("rowan", "kit"),
    mind: Callable[[], WorkspaceMind] = WorkspaceMind,
) -> AsyncIterator[WorkspaceTown]:
    """Yield a workspace of `acme` without files or issues."""
    clock, faults, thinking = HastyClock(HASTE_STEP_BY_STEP), GitHubFaults(), mind()
    town.mind.answer = thinking
    network = GitHubNetwork(clock=clock, git_folder=town.root / "git")
    for login in ("rowan", "wren", "kit", "owner", "eve"):
        network.create_account(login)
    acme = network.create_account("acme", kind="Organization")
    repo = network.create_repo(acme, SITE.name, collaborators=list(collaborators))
    async with serve(github_app(network, faults=faults)) as url:
        yield WorkspaceTown(town, clock, network, faults, url, repo, thinking)
