"""Helpers that run a SOUL's client with a fake clock."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from adapters.space.client import SpaceClient
from common.clock import FakeClock
from common.result import ApiResult, Ok
from tests.patience import until


class Member:
    """A client, and the notices that it sent to its owner."""

    def __init__(self, find: Callable[[], Awaitable[ApiResult[str]]], **more: Any) -> None:
        self.clock = more.pop("clock", None) or FakeClock()
        self.notices: list[tuple[str, str, str]] = []
        self.client = SpaceClient(
            agent_name=more.pop("agent_name", "ada"),
            agent_version="1.2.3",
            capabilities=more.pop("capabilities", lambda: ("social", "code")),
            discover=find,
            clock=self.clock,
            rng=random.Random(7),
            notice=self._note,
            **more,
        )

    async def _note(self, kind: str, message: str, detail: str) -> None:
        self.notices.append((kind, message, detail))

    async def joined(self, times: int) -> None:
        """Wait until the client has joined `times` times."""
        await until(lambda: self.client.joins >= times)

    async def comes_in(self) -> float:
        """Advance time while the client waits for its next try, until it is in the room; return the seconds passed."""
        began = self.clock.monotonic()
        while not self.client.is_active:
            await until(lambda: self.client.is_active or (self.client.status == "disconnected" and sleeps(self)))
            await self.clock.advance(0.0 if self.client.is_active else 0.5)
        return self.clock.monotonic() - began

    def told(self, message: str) -> list[str]:
        """Return the details of the notices with this message."""
        return [detail for _, told, detail in self.notices if told == message]


def at(url: str) -> Callable[[], Awaitable[ApiResult[str]]]:
    """Return a discovery that always finds this URL."""

    async def find() -> ApiResult[str]:
        return Ok(url)

    return find


@asynccontextmanager
async def running_client(member: Member) -> AsyncIterator[SpaceClient]:
    """Run the client inside the block."""
    async with asyncio.TaskGroup() as group:
        life = group.create_task(member.client.run())
        try:
            yield member.client
        finally:
            await member.client.close()
            await life


async def settled(member: Member) -> None:
    """Wait until the client is disconnected and sleeps."""
    await until(lambda: member.client.status == "disconnected" and sleeps(member))


def sleeps(member: Member) -> bool:
    return any(not sleeper.done() for *_, sleeper in member.clock._sleepers)
