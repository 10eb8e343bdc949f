"""Tells the watcher that a SOUL is about to sleep, and asks whether anything came meanwhile."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from adapters.web.client import http_transport_factory, transport_error
from common.result import ApiResult, Err, Ok

_TIMEOUT_S, _WAKE_S = 60.0, 5.0
_CAME = 409
SPENT = 402
"""The watcher answers `tell` with this status once all SOULs together have spent their money for the day."""


def watch_token(password: str) -> str:
    """Return the token of a SOUL, made from its app password, which only the SOUL and the watcher know."""
    return hmac.new(password.encode(), b"soul watch", hashlib.sha256).hexdigest()


def wake_token(token: str) -> str:
    """Return a token derived from a SOUL's token that can only wake it."""
    return hmac.new(token.encode(), b"wake", hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class SleepWatch:
    """The watcher at `url`, for the SOUL that it knows by `name`; `token` is valid for that SOUL only."""

    url: str
    name: str
    token: str = field(repr=False)

    async def begin(self, awaited: Mapping[str, Any]) -> ApiResult[None]:
        """Ask the watcher to record the present state and to report what comes after it.

        `awaited` says what to watch besides Bluesky: `github`, some addresses, and `room`, whether to look for a room.
        """
        return await self._ask("POST", awaited)

    async def hold(self, note: Mapping[str, Any]) -> ApiResult[None]:
        """Hand over the SOUL with the fields of a `SleepNote`. Returns an `Err` if something has come already."""
        return await self._ask("PUT", note)

    async def release(self) -> ApiResult[None]:
        """Tell the watcher that the SOUL is awake again."""
        return await self._ask("DELETE")

    async def tell(self, figures: Mapping[str, Any]) -> ApiResult[None]:
        """Report the state of the SOUL while it is awake, with the fields of `Figures`."""
        return await self._ask("PATCH", figures)

    async def wake(self) -> ApiResult[None]:
        """Wake the SOUL if it sleeps. `token` must be its `wake_token`."""
        return await self._ask("POST", place="wake", timeout_s=_WAKE_S)

    async def _ask(
        self,
        method: str,
        body: Mapping[str, Any] | None = None,
        *,
        place: str = "sleepers",
        timeout_s: float = _TIMEOUT_S,
    ) -> ApiResult[None]:
        transport = http_transport_factory(self.url, private_ok=False)()
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx.AsyncClient(transport=transport, timeout=timeout_s) as client:
            try:
                url, asked = f"{self.url}/{place}", {"name": self.name}
                answer = await client.request(method, url, params=asked, json=dict(body or {}), headers=headers)
            except (httpx.HTTPError, ValueError) as error:
                return transport_error(error, what="the watcher", service="The watcher", write=False)
        if answer.status_code == _CAME:
            return Err("something came", "invalid", status=_CAME)
        return Ok(None) if answer.is_success else Err(answer.text[:300], "transient", status=answer.status_code)
