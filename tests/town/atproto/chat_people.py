"""People who write to each other through the unmodified SDK."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from atproto import AsyncClient
from atproto_client.exceptions import AtProtocolError

from common.clock import iso
from tests.loopback import NO_TLS
from tests.patience import HANG_S
from town.atproto.chat import CHAT_SERVICE
from town.atproto.index import FOLLOW
from town.atproto.network import Network

SEND = "chat.bsky.convo.sendMessage"


@dataclass
class Person:
    """Somebody with an account, logged in; `chat` is the SDK's namespace of conversations with the proxy header."""

    did: str
    client: AsyncClient
    network: Network
    chat: Any

    async def convo(self, other: Person) -> Any:
        return (await self.chat.get_convo_for_members({"members": [other.did]})).convo

    async def says(self, convo: Any, text: str, **more: Any) -> Any:
        return await self.chat.send_message({"convo_id": convo.id, "message": {"text": text, **more}})

    def follows(self, other: Person) -> None:
        record = {"subject": other.did, "createdAt": iso(self.network.clock.now())}
        self.network.create(self.did, FOLLOW, record)

    def allows(self, policy: str) -> None:
        self.network.put(self.did, "chat.bsky.actor.declaration", "self", {"allowIncoming": policy})


Meet = Callable[[str], Awaitable[Person]]
LogIn = Callable[[str, str], Awaitable[tuple[AsyncClient, Any]]]


def name_of(error: pytest.ExceptionInfo[AtProtocolError]) -> str:
    response: Any = getattr(error.value, "response", None)
    return str(response.content.error)


def bearer(person: Person) -> dict[str, str]:
    account = person.network.find(person.did)
    assert account
    return {"authorization": f"Bearer {person.network.sessions.login(account, account.password).access}"}


async def posted(person: Person, url: str, body: dict[str, Any], patience_s: float = HANG_S) -> httpx.Response:
    """Send a message without the SDK, which would refuse some itself; return the answer."""
    headers = {**bearer(person), "atproto-proxy": CHAT_SERVICE}
    async with httpx.AsyncClient(verify=NO_TLS, timeout=httpx.Timeout(HANG_S, read=patience_s)) as http:
        return await http.post(f"{url}/xrpc/{SEND}", json=body, headers=headers)
