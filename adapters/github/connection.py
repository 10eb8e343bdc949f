"""PyGithub's connections, laid over our own way out: it forms requests and reads answers, and sends nothing itself.

PyGithub blocks, so it works in a thread; each request comes back to the event loop and leaves through `sending`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, ItemsView
from concurrent.futures import CancelledError, Future
from typing import Any, ClassVar, TypeVar, cast

from adapters.github.sdk import Requester, Token
from adapters.github.sending import API_VERSION, USER_AGENT, KeptAnswer, OutgoingRequest

_PLAIN_PORT = 80
_SECURE_PORT = 443
_NO_TIMEOUT = 0  # NOTE(self): `sending` keeps the deadline

T = TypeVar("T")


class Bearer(Token):
    """A token, sent the way GitHub recommends."""

    @property
    def token_type(self) -> str:
        return "Bearer"


class Exchange:
    """One call: PyGithub in a thread there, its requests in the event loop here. To be made in the event loop."""

    def __init__(self, send: Callable[[OutgoingRequest], Awaitable[KeptAnswer]], what: str) -> None:
        self._send = send
        self._what = what
        self._loop = asyncio.get_running_loop()
        self._pending: Future[KeptAnswer] | None = None
        self._left = False

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` in a thread; who cancels this cancels the request that is under way."""
        try:
            return await asyncio.to_thread(work)
        except asyncio.CancelledError:
            self._left = True
            if self._pending:
                self._pending.cancel()
            raise

    def carry(self, method: str, url: str, headers: dict[str, str], content: str | None) -> KeptAnswer:
        """Send one request, from the thread, and wait for its answer."""
        if self._left:
            raise CancelledError
        outgoing = OutgoingRequest(method, url, headers, content, self._what)
        self._pending = asyncio.run_coroutine_threadsafe(self._forward(outgoing), self._loop)
        if self._left:
            self._pending.cancel()
        return self._pending.result()

    async def _forward(self, outgoing: OutgoingRequest) -> KeptAnswer:
        return await self._send(outgoing)


def requester_over(exchange: Exchange, *, api_url: str, token: str, per_page: int) -> Requester:
    """PyGithub's requester, with every request through `exchange`; objects made over it fetch nothing by themselves."""

    class OverExchange(Requester):
        """A class of its own, as PyGithub keeps the connection classes there."""

    connections = [
        type(name, (_Connection,), {"scheme": scheme, "default_port": port, "exchange": exchange})
        for name, scheme, port in (("_Plain", "http", _PLAIN_PORT), ("_Secure", "https", _SECURE_PORT))
    ]
    OverExchange.injectConnectionClasses(*cast("list[Any]", connections))
    return OverExchange(
        auth=Bearer(token) if token else None,
        base_url=api_url,
        timeout=_NO_TIMEOUT,
        user_agent=USER_AGENT,
        per_page=per_page,
        verify=True,
        retry=None,
        pool_size=None,
        lazy=True,
        api_version=API_VERSION,
    )


class _Connection:
    """What PyGithub takes for a connection."""

    scheme: ClassVar[str]
    default_port: ClassVar[int]
    exchange: ClassVar[Exchange]

    def __init__(self, host: str, port: int | None = None, **_: object) -> None:
        self.host = host
        self._port = port or self.default_port
        self._asked: tuple[str, str, dict[str, str], str | None] | None = None

    def request(
        self,
        verb: str,
        url: str,
        content: str | None,
        headers: dict[str, str],
        stream: bool = False,  # noqa: FBT001, FBT002 - as PyGithub calls it
    ) -> None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        self._asked = (verb, f"{self.scheme}://{host}:{self._port}{url}", headers, content)

    def getresponse(self) -> _Response:
        if self._asked is None:
            raise RuntimeError("nothing was asked")
        return _Response(self.exchange.carry(*self._asked))

    def close(self) -> None:
        """There is nothing to close; `sending` keeps the connections."""


class _Response:
    """What PyGithub takes for an answer."""

    def __init__(self, answer: KeptAnswer) -> None:
        self.status = answer.status
        self._answer = answer

    def getheaders(self) -> ItemsView[str, str]:
        return self._answer.headers.items()

    def read(self) -> str:
        return self._answer.text
