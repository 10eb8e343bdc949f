"""A coding agent in a folder, with real files, sandbox, database and budget, and a scripted model."""

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from adapters.git.worktree import Worktree
from common.clock import FakeClock
from common.errors import SoulError
from common.redact import Redactor
from modules.runtime.budget.policy import Caps
from modules.runtime.console import SilentConsole
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.sandbox.policy import Limits
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.scheduler.scheduler import Attention
from modules.services.coding.agent import CodingAgent
from modules.services.coding.policy import CodingEnd, CodingJob, CodingLimits, CodingRoom
from modules.services.coding.trajectory import Trajectories
from tests.known_profiles import told_profile
from tests.loopback import to_loopback
from tests.modules.runtime.budget.budget_rig import MAIN, Rig, Rules, process
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, calls, serving
from tests.shipped_skills import SHIPPED

KEY = "ada/garden#1/task-2"
LIMITS = CodingLimits(steps=12, tokens=50_000, usd=None, seconds=600)


@cache
def why_no_sandbox() -> str:
    """Try the sandbox; return why programs cannot run in it here, or "" if they can."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            ran = asyncio.run(Sandbox(redactor=Redactor()).run(["true"], Path(folder), limits=Limits(wall_s=10)))
        except SoulError as error:
            return str(error)
    return "" if ran.success else f"a trial run in the sandbox failed: {ran.stderr.strip() or ran.ended}"


needs_sandbox = pytest.mark.skipif(
    os.environ.get("SOUL_NEED_SANDBOX") != "1" and bool(why_no_sandbox()),
    reason=f"needs bubblewrap: {why_no_sandbox()}",
)


def does(tool: str, **words: object) -> Reply:
    """Return an answer of the model that calls one tool."""
    return calls((tool, json.dumps(words)))


@dataclass
class CodingRig:
    """One life of the agent, and the tree in which it works."""

    agent: CodingAgent
    model: ScriptedModel
    budget: Rig
    store: Trajectories
    room: CodingRoom
    failing: list[str] = field(default_factory=list)

    @property
    def tree(self) -> Path:
        """The folder of the files."""
        return self.room.tree

    def holds(self, **files: str | bytes) -> None:
        """Write these files into the tree and commit them; `__` stands for a dot in a name."""
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            (self.tree / name.replace("__", ".")).write_bytes(data)
        git(self.room.worktree, "add", "--all")
        git(self.room.worktree, "commit", "--quiet", "--message=Begin")
        self.room = replace(self.room, base=git(self.room.worktree, "rev-parse", "HEAD"))

    async def work(self, *replies: Reply, is_new: bool = False, limits: CodingLimits | None = None) -> CodingEnd:
        """Run a job with these answers of the model in turn; each of its checks takes the next problem in `failing`."""
        self.model.plays(*replies)
        job = CodingJob(KEY, 1, "Show the beds", ("beds.py",), "The task: show the beds.", is_new, self._check)
        agent = replace(self.agent, limits=limits) if limits else self.agent
        return await agent.work(job, self.room, await agent.resume(job, self.room))

    async def answers(self) -> list[str]:
        """Return the answers of the tools, in order."""
        steps = await self.store.steps(KEY, 1)
        return [answer.content for step in steps for answer in step.answers or ()]

    async def _check(self) -> str:
        return self.failing.pop(0) if self.failing else ""


def git(worktree: Worktree, *arguments: str) -> str:
    """Run `git` on a tree whose repository is elsewhere, and return its output."""
    places = (f"--git-dir={worktree.repository / '.git'}", f"--work-tree={worktree.tree}")
    who = ("-c", "user.name=Bea", "-c", "user.email=bea@example.org")
    line = ["git", *places, *who, *arguments]
    return subprocess.run(line, cwd=worktree.tree, check=True, capture_output=True, text=True).stdout.strip()


def _room(folder: Path) -> CodingRoom:
    """Return the room of an earlier life in a folder, or a new one with an empty commit."""
    worktree = Worktree(folder / "repository", folder / "tree")
    if not worktree.repository.exists():
        line = ["git", "init", "--quiet", "--initial-branch=main", str(folder / "clone")]
        subprocess.run(line, check=True)
        worktree.take(folder / "clone")
        git(worktree, "commit", "--quiet", "--allow-empty", "--message=Empty")
    return CodingRoom(worktree, git(worktree, "rev-parse", "HEAD"), folder / "scratch")


@asynccontextmanager
async def open_coding(folder: Path, *, cap: int = 1_000_000, secrets: Sequence[str] = ()) -> AsyncIterator[CodingRig]:
    """Begin a life in `folder`, where the tree and the database of an earlier one may exist."""
    room = _room(folder)
    async with process(folder / "soul.db", Rules(Caps(cap))) as budget:
        with serving() as model:
            clock = FakeClock()
            gateway = LLMGateway(
                transport=to_loopback,
                base_url=model.url,
                api_key="made-up",
                model=MAIN,
                clock=clock,
                rng=Random(7),
                console=SilentConsole(),
                budget_guard=budget.budget,
            )
            store = Trajectories(budget.database)
            agent = CodingAgent(
                gateway=gateway,
                skills=SHIPPED,
                sandbox=Sandbox(redactor=Redactor(secrets), private=[folder / "soul.db"]),
                store=store,
                budget=budget.budget,
                attention=Attention(),
                clock=clock,
                limits=LIMITS,
                profile=told_profile,
            )
            try:
                yield CodingRig(agent, model, budget, store, room)
            finally:
                await gateway.aclose()
