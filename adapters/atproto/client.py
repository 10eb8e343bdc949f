"""Bluesky as one account sees it: the adapter's public face.

Every operation answers `ApiResult`; only a full disk (`StorageError`) and our own bugs raise. No policy and no
deduplication here. What survives a crash is the session file; see `session`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.atproto.messages import Messenger
from adapters.atproto.types import Actor
from common.clock import Clock
from common.constants import SESSION_EXPIRY_MARGIN_S
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    import httpx

ATPROTO_READ_TIMEOUT_S = 30.0


class Atproto(Messenger):
    """One account at one service.

    Args:
        service_url: where the account lives, for example `https://bsky.social`.
        identifier: its handle, e-mail address or DID.
        password: its app password.
        session_path: the file that keeps the session between processes; None for one that ends with this client.
        clock: time for spacing, expiry and timestamps.
        min_spacing_s: the least number of seconds between two requests.
        languages: what the posts are written in, at most three.
        read_timeout_s: how long the service may be silent while it answers.
        write_block_reason: asked right before each write leaves: why it must not, or "".
        on_response: told of each request whether the service answered as one does that is well, and if not, how.
        transport: makes what the requests travel by, one for each client inside.

    """

    def __init__(
        self,
        *,
        service_url: str,
        identifier: str,
        password: str,
        session_path: Path | None,
        clock: Clock,
        min_spacing_s: float,
        languages: tuple[str, ...] = ("en",),
        read_timeout_s: float = ATPROTO_READ_TIMEOUT_S,
        write_block_reason: Callable[[], str] = str,
        on_response: Callable[[bool, str], None] | None = None,
        transport: Callable[[], httpx.AsyncBaseTransport],
    ) -> None:
        from adapters.atproto.xrpc import Xrpc  # noqa: PLC0415 - loads the SDK, which takes a second

        xrpc = Xrpc(
            service_url=service_url,
            identifier=identifier,
            password=password,
            session_path=session_path,
            clock=clock,
            min_spacing_s=min_spacing_s,
            read_timeout_s=read_timeout_s,
            write_block_reason=write_block_reason,
            on_response=on_response,
            transport=transport,
        )
        super().__init__(xrpc, clock, languages)

    async def authenticate(self) -> ApiResult[Actor]:
        """Go on with the stored session, refreshed if it has ended; else log in with the password."""
        ensured = await self.ensure_session_or_reauth(margin_s=SESSION_EXPIRY_MARGIN_S)
        return ensured if isinstance(ensured, Err) else Ok(Actor(self.did, self.handle))

    @property
    def session_notice(self) -> str:
        """A line for the owner if the stored session could not be read and was set aside; "" if it could."""
        return self._xrpc.keeper.notice

    async def ensure_session_or_reauth(self, *, margin_s: float = SESSION_EXPIRY_MARGIN_S) -> ApiResult[str]:
        """Make the session last at least `margin_s` seconds; tells how: "valid", "refreshed" or "logged in"."""
        return await self._xrpc.keeper.ensure(margin_s)

    async def aclose(self) -> None:
        """Close the connections. The stored session stays good for the next process."""
        await self._xrpc.aclose()
