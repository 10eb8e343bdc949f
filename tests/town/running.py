"""A running network for the tests of the town."""

from dataclasses import dataclass
from typing import Any

import httpx

from common.clock import FakeClock
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults


@dataclass
class Town:
    """The network, its address, and plain requests to it."""

    network: Network
    faults: AtprotoFaults
    clock: FakeClock
    url: str
    http: httpx.AsyncClient

    async def get(self, nsid: str, token: str = "", **params: Any) -> httpx.Response:
        return await self.http.get(nsid, params=params, headers=_bearer(token))

    async def post(self, nsid: str, body: Any, token: str = "") -> httpx.Response:
        return await self.http.post(nsid, json=body, headers=_bearer(token))

    def login(self, did: str) -> str:
        account = self.network.find(did)
        assert account
        return self.network.sessions.login(account, account.password).access


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}
