"""Tells the watcher that a SOUL is about to sleep, and asks whether anything came meanwhile.

Where the watcher answers, and the token for it, stand in a file that it writes itself, so that one that was started
again is found.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx

from adapters.web.client import http_transport_factory, transport_error
from common.clock import iso
from common.constants import STATE_MAX_BYTES
from common.files import read_bounded
from common.result import ApiResult, Err, Ok

_TIMEOUT_S = 60.0
_CAME = 409


@dataclass(frozen=True, slots=True)
class SleepWatch:
    """The watcher, for the SOUL that it knows by `name`; `file` says where it answers."""

    file: Path
    name: str

    async def begin(self) -> ApiResult[None]:
        """Let it note how things stand; what comes from now on is seen by it."""
        return await self._ask("POST")

    async def hold(self, wake_at: datetime, every_s: float) -> ApiResult[None]:
        """Hand over: it looks `every_s`, and wakes the SOUL when something comes, or then.

        An `Err` where something came already.
        """
        return await self._ask("PUT", {"wake_at": iso(wake_at), "every_s": every_s})

    async def release(self) -> ApiResult[None]:
        """Take it back: the SOUL stays awake."""
        return await self._ask("DELETE")

    async def _ask(self, method: str, body: dict[str, str | float] | None = None) -> ApiResult[None]:
        try:
            told = json.loads(read_bounded(self.file, STATE_MAX_BYTES).decode())
            url, token = str(told["url"]), str(told["token"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return Err("there is no watcher", "transient")
        transport = http_transport_factory(url, private_ok=False)()
        async with httpx.AsyncClient(transport=transport, timeout=_TIMEOUT_S) as client:
            try:
                answer = await client.request(
                    method,
                    f"{url}/sleepers",
                    params={"name": self.name},
                    json=body or {},
                    headers={"Authorization": f"Bearer {token}"},
                )
            except (httpx.HTTPError, ValueError) as error:
                return transport_error(error, what="the watcher", service="The watcher", write=False)
        if answer.status_code == _CAME:
            return Err("something came", "invalid", status=_CAME)
        return Ok(None) if answer.is_success else Err(answer.text[:300], "transient", status=answer.status_code)
