"""The town's GitHub with a few accounts, clients that speak to it, and a clock that only the test moves."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from adapters.github.client import GitHub
from adapters.github.history import LostEdit
from adapters.github.types import Repo
from adapters.web.client import WebTransport
from common.clock import FakeClock
from tests.adapters.shared_server import SharedServer
from tests.patience import HANG_S
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubFaults, StoredRepo

T = TypeVar("T")
REPO = Repo("ada", "garden")
TOKEN = "ghp_ada0000000000000000000000000000000000"


@dataclass
class Seen:
    """One request as it left; `at` is the monotonic time of the clock."""

    at: float
    method: str
    url: httpx.URL
    headers: httpx.Headers


class Watched(httpx.AsyncBaseTransport):
    """The ordinary transport, which records each request and calls the next of `before` ahead of a PATCH."""

    def __init__(self, url: str, clock: FakeClock, seen: list[Seen], before: list[Callable[[], None]]) -> None:
        self._way = WebTransport(allow=(url,))
        self._clock = clock
        self._seen = seen
        self._before = before

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._seen.append(Seen(self._clock.monotonic(), request.method, request.url, request.headers))
        if request.method == "PATCH" and self._before:
            self._before.pop(0)()
        return await self._way.handle_async_request(request)

    async def aclose(self) -> None:
        await self._way.aclose()


@dataclass
class GitHubTown:
    """The service, its accounts, and all requests that were sent to it."""

    url: str
    clock: FakeClock
    network: GitHubNetwork
    faults: GitHubFaults
    repo: StoredRepo
    seen: list[Seen] = field(default_factory=list)
    clients: list[GitHub] = field(default_factory=list)
    before_write: list[Callable[[], None]] = field(default_factory=list)
    """Functions that are called, each once, right before a request that changes a text leaves."""

    def client(
        self,
        login: str = "ada",
        *,
        token: str | None = None,
        url: str = "",
        spacing_s: float = 0,
        timeout_s: float = HANG_S,
        write_block_reason: Callable[[], str] = str,
        on_response: Callable[[bool, str], None] | None = None,
        on_lost_edit: Callable[[LostEdit], None] | None = None,
    ) -> GitHub:
        account = self.network.find(login)
        client = GitHub(
            api_url=url or self.url,
            login=login,
            token=(account.token if account else "") if token is None else token,
            clock=self.clock,
            min_spacing_s=spacing_s,
            timeout_s=timeout_s,
            write_block_reason=write_block_reason,
            on_response=on_response,
            on_lost_edit=on_lost_edit,
            transport=lambda: Watched(url or self.url, self.clock, self.seen, self.before_write),
        )
        self.clients.append(client)
        return client

    @property
    def requests(self) -> list[str]:
        return [f"{seen.method} {seen.url.path}" for seen in self.seen]

    def issues(self) -> int:
        return len(self.repo.issues)


@asynccontextmanager
async def open_github_town(shared_server: SharedServer, *, limit: int = 5000) -> AsyncIterator[GitHubTown]:
    """Open a fresh GitHub: ada has a garden where bea may push and cy may not; each has `limit` requests an hour."""
    time, faults = FakeClock(), GitHubFaults()
    network = GitHubNetwork(clock=time)
    ada = network.create_account("ada", name="Ada", token=TOKEN)
    network.create_account("bea")
    network.create_account("cy")
    repo = network.create_repo(ada, "garden", description="What grows where", collaborators=["bea"])
    await shared_server.begin(github_app(network, faults=faults, meter=GitHubMeter(time, known=limit)))
    town = GitHubTown(shared_server.url, time, network, faults, repo)
    try:
        yield town
    finally:
        for client in town.clients:
            await client.aclose()
