"""GitHub in the town, with a repository of an organisation to which `rowan` may push."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from common.clock import SystemClock
from modules.runtime.home import Home
from tests.running_town import RunningTown
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubFaults, StoredRepo
from town.serving import serve


@dataclass(frozen=True)
class TownGitHub:
    """The service at `url`, its faults and repository `acme/site`, and the token of the collaborator `rowan`."""

    town: RunningTown
    network: GitHubNetwork
    url: str
    repo: StoredRepo
    token: str
    faults: GitHubFaults

    @property
    def titles(self) -> list[str]:
        """The titles of the repository's issues, oldest first."""
        return [issue.title for issue in self.repo.issues.values() if issue]

    @property
    def bodies(self) -> list[str]:
        """The bodies of the repository's issues, in the same order."""
        return [issue.body or "" for issue in self.repo.issues.values() if issue]

    def add_repo(self, name: str) -> StoredRepo:
        """Create another repository of `acme` to which `rowan` may push."""
        return self.network.create_repo(self.repo.owner, name, collaborators=["rowan"])

    def make_home(self, **more: str) -> Home:
        """Create a home of the SOUL `rowan`, which has that account."""
        settings = {
            "GITHUB_API_URL": self.url,
            "AGENT_GITHUB_USERNAME": "rowan",
            "AGENT_GITHUB_TOKEN": self.token,
            "SOUL_ALLOW_PRIVATE_NET": "on",
        }
        return self.town.make_home("rowan", **(settings | more))


@asynccontextmanager
async def serve_github(town: RunningTown) -> AsyncIterator[TownGitHub]:
    """Add GitHub to the town."""
    github = GitHubNetwork(clock=SystemClock(), git_folder=town.root / "git")
    account = github.create_account("rowan")
    repo = github.create_repo(github.create_account("acme", kind="Organization"), "site", collaborators=["rowan"])
    faults = GitHubFaults()
    async with serve(github_app(github, faults=faults)) as url:
        yield TownGitHub(town, github, url, repo, account.token, faults)
