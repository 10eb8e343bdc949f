"""The town's GitHub with one repository and one issue, and a SOUL with an account there, run step by step."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from modules.runtime.home import Home
from tests.hasty_clock import HastyClock
from tests.running_town import HASTE_STEP_BY_STEP, RunningSoul, RunningTown, call
from town.github.network import GitHubNetwork
from town.github.repository import NO_COMMIT, Signature
from town.github.service import github_app
from town.github.values import GitHubFaults, StoredIssue, StoredRepo
from town.model.types import ChatRequest, Completion
from town.serving import serve

CLOCK = HastyClock(HASTE_STEP_BY_STEP)
"""The clock that the SOUL and GitHub share."""
RULES = "The text is from the files of a software project"
PAGES = "The text lists the pages of a software project"
SAID = "The narrow one: its menu stays in view. I would measure both for a week with the same three pages."


@dataclass
class Place:
    """The town's GitHub with one repository, an issue in it, and a home for `rowan`, who has an account there."""

    town: RunningTown
    network: GitHubNetwork
    faults: GitHubFaults
    url: str
    repo: StoredRepo
    issue: StoredIssue

    def home(self, **more: str) -> Home:
        rowan = self.network.find("rowan")
        assert rowan
        settings = {
            "GITHUB_API_URL": self.url,
            "AGENT_GITHUB_USERNAME": "rowan",
            "AGENT_GITHUB_TOKEN": rowan.token,
            "OWNER_GITHUB_USERNAME": "owner",
            "SOUL_ALLOW_PRIVATE_NET": "on",
        }
        return self.town.make_home("rowan", **(settings | more))

    def post_link(self, by: str = "owner") -> None:
        """Post a link to the issue to the SOUL."""
        url = f"https://github.com/{self.repo.full_name}/issues/{self.issue.number}"
        self.town.network.post_as(self.town.account(by), f"@rowan.test have a look at {url}")

    def say(self, login: str, text: str) -> None:
        account = self.network.find(login) or self.network.create_account(login)
        self.network.write_comment(self.repo, self.issue, account, text)

    @property
    def comments(self) -> list[str]:
        """The comments of `rowan` on the issue, without their invisible markers."""
        own = (one.body for one in self.issue.comments if one.author.login == "rowan")
        return [text.partition("\n\n<!--")[0] for text in own]


@asynccontextmanager
async def open_place(town: RunningTown, owner: str) -> AsyncIterator[Place]:
    network, faults = GitHubNetwork(clock=CLOCK, git_folder=town.root / "git"), GitHubFaults()
    network.create_account("rowan")
    repo = network.create_repo(
        network.create_account(owner), "site", collaborators=["rowan"] if owner == "owner" else []
    )
    issue = network.open_issue(repo, network.create_account("kit"), title="Which layout?", body="Narrow or wide?")
    async with serve(github_app(network, faults=faults)) as url:
        yield Place(town, network, faults, url, repo, issue)


def minding(
    *said: str, rule: str = "none", pages: tuple[str, ...] = (), conditions: Sequence[dict[str, object]] = ()
) -> Callable[[ChatRequest], Completion]:
    """Return a mind that comments with these texts in turn, and finds `rule` and `conditions` in files.

    It stays silent on Bluesky. Of the pages of a repository it chooses those whose names end in one of `pages`.
    """
    given = iter(said or (SAID,))

    def respond(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        if "github_create_issue_comment" in names:
            return call("github_create_issue_comment", body=next(given))
        if RULES in request.messages[0].text:
            return Completion(text=json.dumps({"rule": rule, "conditions": conditions}))
        if PAGES in request.messages[0].text:
            lines = [line.strip('"') for line in request.messages[-1].text.splitlines()]
            chosen = [int(line.partition(".")[0]) for line in lines if pages and line.endswith(pages)]
            return Completion(text=json.dumps({"pages": chosen}))
        if "stay_silent" in names:
            return call("stay_silent", reason="nothing to add")
        return Completion(text="[]")

    return respond


async def look(soul: RunningSoul) -> None:
    """Look at Bluesky, then twice at GitHub, so that the wait for others is over, and send the acts."""
    await soul.look()
    soul.passes(1)
    await soul.app.scheduler.run_guarded("github-awareness")
    soul.passes(200)
    await soul.app.scheduler.run_guarded("github-awareness")
    await soul.send()


async def acts(soul: RunningSoul) -> list[tuple[str, str]]:
    return [
        (one.entry.data["act"], one.entry.data["code"])
        for one in await soul.decisions()
        if one.entry.loop == "github-awareness"
    ]


@asynccontextmanager
async def in_foreign_place(town: RunningTown, **files: str) -> AsyncIterator[Place]:
    """Open a place in a repository of a stranger with these Markdown files, by name without the ending."""
    async with open_place(town, "stranger") as found:
        await put_files(found.network, found.repo, files)
        yield found


async def put_files(network: GitHubNetwork, repo: StoredRepo, files: dict[str, str]) -> None:
    """Commit these Markdown files, by path without the ending; do nothing if there are none."""
    if files:
        await commit_files(network, repo, {f"{name}.md": text for name, text in files.items()})


async def commit_files(network: GitHubNetwork, repo: StoredRepo, files: dict[str, str]) -> None:
    """Commit these files, by path, to the default branch in one commit."""
    author, git = Signature("Stranger", "stranger@example.com", network.clock.now()), network.git(repo)
    blobs = {path: await git.write_blob(text.encode()) for path, text in files.items()}
    old = (await git.refs()).get("refs/heads/main", NO_COMMIT)
    parents, tree = ([], None) if old == NO_COMMIT else ([old], old)
    sha = await git.write_commit(await git.tree_with(tree, blobs), parents, "Begin", author)
    await git.set_ref("refs/heads/main", sha, old=old)
    # NOTE(self): GitHub gives times in whole seconds, and a later push must have a later time.
    repo.pushed_at = max(network.clock.now(), (repo.pushed_at or network.clock.now()) + timedelta(seconds=1))
