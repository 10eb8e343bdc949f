"""GitHub for SOULs that look for peers: the page of each account names the DID of its SOUL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.hasty_clock import HastyClock
from tests.running_town import RunningTown
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubAccount
from town.serving import serve


@asynccontextmanager
async def serve_peers_github(town: RunningTown) -> AsyncIterator[GitHubNetwork]:
    """Serve GitHub beside the town; yield its network."""
    town.github = GitHubNetwork(clock=HastyClock())
    async with serve(github_app(town.github)) as town.github_url:
        yield town.github


def page_of(did: str) -> str:
    """Return the text of a GitHub page that names a DID."""
    return f"https://bsky.app/profile/{did}"


def account_of(town: RunningTown, name: str, login: str) -> GitHubAccount | None:
    """Return the GitHub account of `name`.test, whose page names its DID; None if the town has no GitHub."""
    if town.github is None:
        return None
    return town.github.find(login) or town.github.create_account(login, website=page_of(town.account(name)))
