"""A repository in the town with a plan, and two SOULs that may claim its tasks, over HTTP and with real branches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from starlette.types import Receive, Scope, Send

from adapters.github.client import GitHub
from adapters.github.types import Repo
from modules.services.claims.claim_requests import PlanReader
from modules.services.claims.claimer import Claimer, ClaimOutcome
from modules.services.claims.lease_store import TaskLeases
from modules.services.plans.plan_text import generate_plan_markdown, parse_plan
from modules.services.plans.types import Plan, Task
from tests.adapters.results import ok
from tests.fresh_database import open_database
from tests.hasty_clock import HastyClock
from tests.loopback import github_at
from tests.trusting import gone_of, trust_without_owner
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubFaults
from town.serving import serve

REPO = Repo("ada", "garden")
PLAN = Plan("Beans", "Beans grow", tasks=(Task(1, "Sow"), Task(2, "Water")))
HASTE = 100


@dataclass
class Rival:
    """A SOUL that claims tasks, with its store, as after a start."""

    github: GitHub
    leases: TaskLeases
    reader: PlanReader
    clock: HastyClock
    claimer: Claimer = field(init=False)

    def __post_init__(self) -> None:
        self.claimer = Claimer(
            self.github, self.leases, self.reader, lambda task: f"{task.name} is taken.", self.clock, released=str
        )

    async def claim(self, number: int = 1) -> ClaimOutcome:
        """Read the plan and claim a task of it."""
        return await self.claimer.claim(REPO, ok(await self.reader.read(REPO, 1)), number)

    def begun_anew(self) -> Rival:
        """Return the same SOUL after its program was killed and started again."""
        return replace(self)


@dataclass
class Garden:
    """A repository with a plan in issue 1, and two SOULs that may push there; `asked` lists all requests."""

    network: GitHubNetwork
    ada: GitHub
    kit: Rival
    wren: Rival
    clock: HastyClock
    faults: GitHubFaults
    asked: list[str]
    before_write: list[Callable[[], None]] = field(default_factory=list)
    """Each is called once, right before the next request that changes a text arrives."""

    def edit(self, login: str, change: Callable[[str], str]) -> None:
        """Change the text of the plan as `login`."""
        network, account = self.network, self.network.find(login)
        assert account
        repo = network.repo("ada", REPO.name, account)
        issue = repo.issues[1]
        assert issue
        network.change_issue(repo, issue, account, body=change(issue.body or ""))

    async def task(self, number: int = 1) -> Task:
        """Return a task as it is in the plan now."""
        issue = ok(await self.ada.get_issue(REPO, 1))
        plan = parse_plan(issue.body, issue.title)
        assert plan is not None
        task = plan.task(number)
        assert task is not None
        return task

    async def left(self) -> tuple[list[str], int, tuple[str, ...]]:
        """Return the locks, the number of comments, and the assignees."""
        refs = ok(await self.ada.refs.matching(REPO, "soul/"))
        comments = ok(await self.ada.list_comments(REPO, 1))
        issue = ok(await self.ada.get_issue(REPO, 1))
        return [one.ref.removeprefix("refs/heads/") for one in refs], len(comments), issue.assignees


@asynccontextmanager
async def open_garden(folder: Path) -> AsyncIterator[Garden]:
    """Serve the repository from `folder`, for as long as the context is open."""
    clock, faults = HastyClock(HASTE), GitHubFaults()
    network = GitHubNetwork(clock=clock, git_folder=folder / "git")
    ada = network.create_account("ada", token="t-ada")
    for login in ("kit", "wren"):
        network.create_account(login, token=f"t-{login}")
    network.create_repo(ada, REPO.name, collaborators=["kit", "wren"])
    async with AsyncExitStack() as stack:
        service, asked = github_app(network, meter=GitHubMeter(clock, known=10**9), faults=faults), list[str]()
        before_write = list[Callable[[], None]]()

        async def logged(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                asked.append(f"{scope['method']} {scope['path']}")
                if scope["method"] == "PATCH" and before_write:
                    before_write.pop(0)()
            await service(scope, receive, send)

        url = await stack.enter_async_context(serve(logged))

        def client(login: str) -> GitHub:
            made = github_at(url, login, clock)
            stack.push_async_callback(made.aclose)
            return made

        async def rival(login: str) -> Rival:
            (own := folder / login).mkdir()
            database = await open_database(own / "soul.db")
            stack.push_async_callback(database.close)
            github, leases = client(login), TaskLeases(database, own, clock)
            return Rival(
                github,
                leases,
                PlanReader(github, leases, trust_without_owner(github, clock), clock, gone_of(github, clock)),
                clock,
            )

        author = client("ada")
        ok(await author.contents.write(REPO, "README.md", "Beans", message="Begin"))
        ok(await author.create_issue(REPO, f"[PLAN] {PLAN.title}", generate_plan_markdown(PLAN), labels=("plan",)))
        yield Garden(network, author, await rival("kit"), await rival("wren"), clock, faults, asked, before_write)
