"""A plan in the town's GitHub with real Git, and a SOUL that works on it; tests script the model."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from adapters.git.client import Git
from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Repo
from common.redact import Redactor
from common.settings import Approval
from modules.lives.tasks.offering import Offering
from modules.lives.tasks.types import HeldTask, TaskWorker
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.services.claims.lease_store import TaskLeases, lease_gate
from modules.services.claims.policy import Lease
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.gates import SecretScan
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.rules import World
from modules.services.outbox.senders.github import github_senders
from modules.services.outbox.senders.github_changes import PushSender
from modules.services.outbox.types import Intent, Pacing, Wait
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import FoundPlan, Plan, Task
from modules.services.repository_rules.policy import Condition
from tests.adapters.results import ok
from tests.hasty_clock import HastyClock
from tests.loopback import github_at
from tests.modules.runtime.llm.scripted_model import ScriptedModel, scripted_gateway, serving
from tests.outbox_rows import counted
from tests.patience import HANG_S, until
from tests.sending import sends
from tests.shipped_skills import phrase
from tests.town.github_place import GitHubPlace, open_github_place
from tests.trusting import identity_of, trust_without_owner

GARDEN = Repo("ada", "garden")
SECRET = "hunter2-hunter2"
GOAL = "Visitors see which beds need water today."
PLAN = Plan(
    "Water by bed",
    goal=GOAL,
    context="Asked for in #7.",
    tasks=(
        Task(1, "Create SCENARIOS.md", status="claimed", assignee="ada", files=("SCENARIOS.md",)),
        Task(2, "Show the beds", files=("page.ts",)),
    ),
)


@dataclass
class Workplace:
    """Ada's garden with a plan in it. `wake` builds the SOUL `ada` from what is on the disk; `sleep` ends it."""

    place: GitHubPlace
    model: ScriptedModel
    folder: Path
    peers: Sequence[str] = ()
    lines: Sequence[Condition] = ()
    shut: IntentKind | None = None
    approval: Approval = "off"
    issue: int = 0
    clock: HastyClock = field(default_factory=HastyClock)
    clients: dict[str, GitHub] = field(default_factory=dict)

    async def lay_out(self, *, has_commit: bool = True) -> None:
        made = await self.client("ada").create_issue(GARDEN, f"[PLAN] {PLAN.title}", generate_plan_markdown(PLAN))
        self.issue = ok(made).number
        if has_commit:
            await self.put("README.md", "Beans.\n")

    async def put(self, path: str, text: str) -> None:
        """Write a file to the default branch."""
        ok(await self.client("ada").contents.write(GARDEN, path, text, message="Begin"))

    def client(self, login: str) -> GitHub:
        """Return a GitHub client of that account, beside the SOUL."""
        if login not in self.clients:
            self.clients[login] = self.client_of(login)
        return self.clients[login]

    def client_of(self, login: str) -> GitHub:
        return github_at(self.place.url, login, self.clock, timeout_s=HANG_S)

    async def _lines(self, _: Repo) -> Sequence[Condition]:
        return self.lines

    async def wake(self) -> None:
        self.database = await Database.open(self.folder / "soul.db", MIGRATIONS)
        redactor = Redactor([SECRET])
        journal = Journal(self.database, SilentConsole(), self.clock, redactor)
        self.github = self.client_of("ada")
        self.git = Git(api_url=self.place.url, login="ada", token="t-ada")
        identity = identity_of(self.github, self.clock)
        world = World(
            own_did=lambda: "did:plc:ada",
            own_handle=lambda: "ada.test",
            owner=lambda: ("did:plc:owner",),
            peers=tuple,
            follows_us=lambda *_: False,
            born_at=lambda: None,
            watched=lambda: ("ada/garden",),
        )
        etiquette = Etiquette(world=world, database=self.database, clock=self.clock)
        approval = ApprovalRule(self.approval, world.circle)
        self.outbox = Outbox(
            database=self.database,
            journal=journal,
            clock=self.clock,
            senders={**github_senders(identity), "push": PushSender(identity, self.git, self.folder)},
            pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
            rules=(SecretScan(redactor), etiquette, approval),
            gates=(etiquette.gate, lease_gate, self._shut),
            at_departure=(approval.at_departure,),
            own_did=lambda: "did:plc:ada",
        )
        self.gateway = scripted_gateway(
            self.model.url,
            clock=self.clock,
            idle_timeout_s=HANG_S,
        )
        self.offering = Offering(
            github=self.github,
            trust=trust_without_owner(self.github, self.clock),
            outbox=self.outbox,
            clock=self.clock,
            phrase=phrase,
            peers=lambda: self.peers,
            file_lines=self._lines,
        )
        self.sending = asyncio.create_task(sends(self.outbox))

    async def sleep(self) -> None:
        self.sending.cancel()
        await asyncio.gather(self.sending, return_exceptions=True)
        await self.gateway.aclose()
        await self.github.aclose()
        await self.database.close()

    async def restart(self) -> None:
        """Restart the SOUL without any shut gate."""
        await self.sleep()
        self.shut = None
        await self.wake()

    async def lives_until(self, kind: IntentKind, work: TaskWorker, task: Task) -> None:
        """Let the SOUL work on a task until an intent of that kind waits to leave."""
        self.shut = kind
        working = asyncio.create_task(work.do(await self.held(task)))
        await until(lambda: self.outbox.of_kind(kind, 1), what=f"an intent of the kind {kind}")
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    async def sends_all(self) -> None:
        """Wait until every accepted intent was sent."""

        async def is_out() -> bool:
            counts = await counted(self.outbox)
            return not counts.get("pending") and not counts.get("sending")

        await until(is_out, what="an empty outbox")

    def _shut(self, _connection: sqlite3.Connection, intent: Intent, _now: datetime, /) -> Wait | None:
        return Wait("shut", 60) if intent.kind == self.shut else None

    async def lease(self, *, epoch: int = 1, ends_in_s: float = 1800) -> None:
        """Store a lease that gives the SOUL the task under the claim of this epoch."""
        now = self.clock.now()
        until = now + timedelta(seconds=ends_in_s)
        place = (GARDEN.owner, GARDEN.name, self.issue, 1, "ada")
        lease = Lease(*place, "held", epoch, has_lock=False, since=now, renewed_at=now, until=until)
        await TaskLeases(self.database, self.folder, self.clock).put(lease)

    async def held(self, task: Task = PLAN.tasks[0], *, epoch: int = 1) -> HeldTask:
        """Return the task, held under the claim of this epoch."""
        issue = ok(await self.github.get_issue(GARDEN, self.issue))
        return HeldTask(FoundPlan(GARDEN, issue, PLAN), task, epoch)

    async def pulls(self) -> tuple[PullRequest, ...]:
        return ok(await self.github.pulls.list(GARDEN, state="all"))

    async def branches(self) -> list[str]:
        return [one.name for one in ok(await self.github.refs.branches(GARDEN))]

    async def text(self, path: str, branch: str) -> str:
        return ok(await self.github.contents.read(GARDEN, path, ref=branch)).text


@asynccontextmanager
async def open_workplace(folder: Path, *, has_commit: bool = True) -> AsyncIterator[Workplace]:
    """Open a new workplace with a SOUL that is awake; without a commit its garden is an empty repository."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(open_github_place(folder))
        model = stack.enter_context(serving())
        workplace = Workplace(place, model, folder)
        await workplace.lay_out(has_commit=has_commit)
        await workplace.wake()
        await workplace.lease()
        yield workplace
        await workplace.sleep()
        for client in workplace.clients.values():
            await client.aclose()
