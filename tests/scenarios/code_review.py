"""A repository with tests and a pull request, and SOULs that review and revise it step by step."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from adapters.github.client import GitHub
from adapters.github.types import Repo
from modules.runtime.home import Home
from modules.services.outbox.github_bodies import PullRequestBody
from modules.services.outbox.types import ProposedAction
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task, claim_key
from tests.adapters.results import ok
from tests.loopback import github_at
from tests.running_town import RunningSoul, RunningTown, call
from tests.scenarios.github_talk import CLOCK, Place, open_place
from town.github.values import StoredPull
from town.model.types import ChatRequest, Completion

SITE = Repo("owner", "site")
FOUND = "beds.py counts the beds in one place, and that is where I would look first."
MAKEFILE = "test:\n\tpython3 check.py\n"
CHECK = "import beds\nprint('not ok 1 - there are three beds') if beds.BEDS != 3 else None\nassert beds.BEDS == 3\n"


@dataclass
class Reviewed:
    """A repository with tests, and a pull request of `kit`, for which `rowan` may be asked for a review."""

    place: Place
    owner: GitHub
    kit: GitHub
    asked: list[ChatRequest] = field(default_factory=list)
    coded: list[ChatRequest] = field(default_factory=list)
    number: int = 0

    @property
    def pull(self) -> StoredPull:
        return self.place.repo.pulls[self.number]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        return [(one.author.login, one.state) for one in self.pull.reviews]

    def home(self, login: str = "rowan", **more: str) -> Home:
        """Return the home of a SOUL with the account `login`."""
        account = self.place.network.find(login)
        assert account
        names = {"AGENT_GITHUB_USERNAME": login, "AGENT_GITHUB_TOKEN": account.token}
        settings = {"GITHUB_API_URL": self.place.url, "SOUL_ALLOW_PRIVATE_NET": "on"}
        return self.place.town.make_home(login, **(settings | names | more))

    async def put(self, path: str, text: str, branch: str = "") -> None:
        """Write a file to a branch."""
        before = await self.owner.contents.read(SITE, path, ref=branch)
        sha = before.data.sha if before.success else ""
        ok(await self.owner.contents.write(SITE, path, text, message="Change it", branch=branch, sha=sha))

    async def offer(
        self, files: dict[str, str], *, branch: str = "more-beds", body: str = "As asked.", opened: bool = True
    ) -> None:
        """Push a branch of `kit` with these files, and open a pull request for it if `opened`."""
        main = ok(await self.owner.refs.get(SITE, "main"))
        ok(await self.owner.refs.create(SITE, branch, main.sha))
        for path, text in files.items():
            await self.put(path, text, branch)
        if opened:
            made = await self.kit.pulls.create(SITE, title="More beds", body=body, head=branch, base="main")
            self.number = ok(made).number

    async def offer_as(self, soul: RunningSoul, files: dict[str, str], *, body: str, cause: str) -> None:
        """Let a SOUL open the pull request for a task through its outbox, as its work does."""
        await self.offer(files, branch=BRANCH, opened=False)
        pull = PullRequestBody(
            source="workspace", repo=SITE.full_name, title="More beds", body=body, head=BRANCH, base="main"
        )
        soul.app.services.workspaces.watch(SITE)
        outbox = soul.app.services.outbox
        submitted = await outbox.submit(ProposedAction(pull, part=f"{cause}@1:pull-request", cause_id=cause))
        await soul.send()
        opened = await outbox.get(submitted.intent.id)
        assert opened
        self.number = opened.issue_number

    async def ask(self) -> None:
        ok(await self.kit.pulls.request_reviewers(SITE, self.number, ["rowan"]))

    def judges(
        self,
        event: str,
        *codes: Completion,
        comments: Sequence[Mapping[str, object]] = (),
        looks: Sequence[Completion] = (),
    ) -> None:
        """Let the model make the calls `looks`, then give the verdict `event`; it makes `codes` in coding turns."""
        coding, looking = iter(codes), iter(looks)

        def respond(request: ChatRequest) -> Completion:
            names = {offer.name for offer in request.offers}
            if "submit_review" in names:
                self.asked.append(request)
                if (look := next(looking, None)) is not None:
                    return look
                return call("submit_review", event=event, body=FOUND, comments=comments)
            if "finish" in names:
                self.coded.append(request)
                return next(coding)
            return Completion(text="[]")

        self.place.town.mind.answer = respond


@asynccontextmanager
async def open_reviewed(town: RunningTown) -> AsyncIterator[Reviewed]:
    async with open_place(town, "owner") as place:
        place.repo.collaborators |= {"kit", "rowan"}
        accounts = [place.repo.owner, place.network.find("kit") or place.network.create_account("kit")]
        clients = [github_at(place.url, one.login, CLOCK, one.token) for one in accounts]
        reviewed = Reviewed(place, owner=clients[0], kit=clients[1])
        for path, text in {"Makefile": MAKEFILE, "check.py": CHECK, "beds.py": "BEDS = 3\n"}.items():
            await reviewed.put(path, text)
        reviewed.judges("APPROVE")
        yield reviewed
        for client in clients:
            await client.aclose()


async def review(soul: RunningSoul) -> None:
    """Run the loop for reviews once, and send its acts."""
    soul.app.services.workspaces.watch(SITE)
    await soul.app.scheduler.run_guarded("reviews")
    await soul.send()


async def code(soul: RunningSoul) -> None:
    """Run the loops for reviews and tasks once, so that the SOUL does what reviews of its pull requests ask for."""
    await review(soul)
    async with soul.sending():
        await soul.app.scheduler.run_guarded("tasks")
    await soul.send()


WHEN = "The shown number is that of the beds."
PLAN = Plan(
    "Beds",
    goal="All beds are counted.",
    tasks=(Task(1, "More beds", "in_progress", "kit", description=f"{'Count a bed. ' * 700}Count all of them."),),
    verification=(WHEN,),
)
BRANCH = "task-1-more-beds"
FIX = (
    call("read_file", path="beds.py"),
    call("write_file", path="beds.py", content="BEDS = 3  # counted\n"),
    call("finish", summary="Three beds again.", description="The beds are counted."),
)


async def task_with_a_fault(
    place: Reviewed, files: dict[str, str] | None = None, soul: RunningSoul | None = None
) -> None:
    """Open a plan, and a pull request of `kit` (or by `soul`) for its task: `files`, or a change whose test fails."""
    plan = await place.owner.create_issue(SITE, f"[PLAN] {PLAN.title}", generate_plan_markdown(PLAN), labels=("plan",))
    number, files = ok(plan).number, files or {"beds.py": "BEDS = 4\n"}
    body = f"Part of #{number}, as planned."
    if soul:
        await place.offer_as(soul, files, body=body, cause=claim_key(SITE.owner, SITE.name, number, 1))
    else:
        await place.offer(files, branch=BRANCH, body=body)
    await place.ask()
