"""A small network with three accounts, clients that log in to it, and a clock that only the test moves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from adapters.atproto.client import Atproto
from common.clock import FakeClock
from tests.adapters.results import ok
from tests.adapters.shared_server import SharedServer
from tests.loopback import to_loopback
from tests.patience import HANG_S
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, AtprotoLimits, atproto_app

T = TypeVar("T")
NAMES = ("alice", "bob", "carol")


@dataclass
class AtprotoTown:
    """The town's AT Protocol service, and its clients."""

    folder: Path
    clock: FakeClock
    network: Network
    faults: AtprotoFaults
    url: str
    clients: list[Atproto] = field(default_factory=list)

    def client(self, name: str, *, spacing_s: float = 0, password: str = "", read_timeout_s: float = HANG_S) -> Atproto:
        """Return a client for an account, not logged in; two clients with one name share the session file."""
        client = Atproto(
            transport=to_loopback,
            service_url=self.url,
            identifier=f"{name}.test",
            password=password or f"{name}-pass",
            session_path=self.session_path(name),
            clock=self.clock,
            min_spacing_s=spacing_s,
            read_timeout_s=read_timeout_s,
        )
        self.clients.append(client)
        return client

    async def logged_in(self, name: str, *, spacing_s: float = 0, read_timeout_s: float = HANG_S) -> Atproto:
        client = self.client(name, spacing_s=spacing_s, read_timeout_s=read_timeout_s)
        ok(await client.authenticate())
        return client

    def session_path(self, name: str) -> Path:
        return self.folder / f"{name}-session.json"

    def did(self, name: str) -> str:
        account = self.network.find(f"{name}.test")
        assert account
        return account.did


@asynccontextmanager
async def open_atproto_town(
    shared_server: SharedServer, folder: Path, *, limits: AtprotoLimits | None = None
) -> AsyncIterator[AtprotoTown]:
    """Open a fresh network on the shared server."""
    clock, faults = FakeClock(), AtprotoFaults()
    network = Network(clock=clock)
    for name in NAMES:
        network.create_account(f"{name}.test", f"{name}-pass", display_name=name.title())
    await shared_server.begin(atproto_app(network, limits=limits, faults=faults))
    town = AtprotoTown(folder, clock, network, faults, shared_server.url)
    try:
        yield town
    finally:
        for client in town.clients:
            await client.aclose()
