"""A network with direct messages on loopback, and people in it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from atproto import AsyncClient

from tests.town.atproto.chat_people import LogIn, Meet, Person
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, atproto_app
from town.serving import serve


@pytest.fixture
def faults() -> AtprotoFaults:
    return AtprotoFaults()


@pytest.fixture
async def url(network: Network, faults: AtprotoFaults) -> AsyncIterator[str]:
    async with serve(atproto_app(network, faults=faults)) as address:
        yield address


@pytest.fixture
async def log_in(url: str) -> AsyncIterator[LogIn]:
    """Yield a function that logs in to an account and returns the SDK's client and its namespace of conversations."""
    async with AsyncExitStack() as stack:

        async def logged_in(handle: str, password: str) -> tuple[AsyncClient, Any]:
            client = AsyncClient(base_url=f"{url}/xrpc")
            await client.login(handle, password)
            chatting = client.with_bsky_chat_proxy()
            for one in (client, chatting):
                stack.push_async_callback(one.request.close)
            return client, chatting.chat.bsky.convo

        yield logged_in


@pytest.fixture
def meet(network: Network, log_in: LogIn) -> Meet:
    """Return a function that creates a person with the given name and logs them in."""

    async def met(name: str) -> Person:
        account = network.create_account(f"{name}.test", f"{name}-pass", display_name=name.title())
        client, chat = await log_in(account.handle, account.password)
        return Person(account.did, client, network, chat)

    return met


@pytest.fixture
async def kit(meet: Meet) -> Person:
    return await meet("kit")


@pytest.fixture
async def ada(meet: Meet) -> Person:
    """Return a person who takes messages from everybody."""
    person = await meet("ada")
    person.allows("all")
    return person
