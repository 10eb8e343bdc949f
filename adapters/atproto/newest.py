"""Looks whether anything came for an account that sleeps: one or two small reads, and no text is kept.

Each account has a session of its own for this, in a file; it is refreshed, and logs in anew only where that is refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import httpx

from adapters.atproto.convert import Json, text_of
from adapters.atproto.request import CALL_ERRORS, TimedRequest, to_err
from adapters.atproto.sdk import AsyncClientBase, DotDict
from adapters.atproto.session import SessionFile
from adapters.atproto.types import NotAllowedErr
from adapters.atproto.xrpc import DIRECT_MESSAGE_SERVICE, SessionKeeper
from common.clock import Clock
from common.result import ApiResult, Err, Ok, answering

_NOTIFICATIONS, _LOG = "app.bsky.notification.listNotifications", "chat.bsky.convo.getLog"
_LOOKED_AT = 25
"""A notification shows at the time of its post, so a new one need not be the first."""
_MARGIN_S = 60.0
_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class Newest:
    """How an account's notifications and the log of its direct messages stand, as marks that tell nothing of them."""

    notifications: str
    log: str = ""


def shared_request(transport: httpx.AsyncBaseTransport) -> TimedRequest:
    """Return what the looks for all accounts travel by."""
    return TimedRequest(read_timeout_s=_TIMEOUT_S, transport=transport)


class NewestReader:
    """Looks for one account. With `messages` also at its direct messages, where its password allows that."""

    def __init__(
        self,
        request: TimedRequest,
        *,
        service_url: str,
        identifier: str,
        password: str,
        session_path: Path,
        clock: Clock,
        messages: bool,
    ) -> None:
        self._request = request
        self._clock = clock
        self._messages = messages
        self._keeper = SessionKeeper(
            client=AsyncClientBase(service_url, request=request),
            file=SessionFile(session_path, service_url=service_url, identifier=identifier),
            service_url=service_url,
            identifier=identifier,
            password=password,
            clock=clock,
        )

    @answering
    async def read(self, before: Newest | None = None) -> ApiResult[Newest]:
        """Return how they stand; it equals `before` where nothing came since."""
        (await self._keeper.ensure(_MARGIN_S)).or_raise()
        listed = (await self._ask(_NOTIFICATIONS, limit=_LOOKED_AT)).or_raise()
        log = await self._read_log(before.log if before else "") if self._messages else ""
        return Ok(Newest(_mark(listed), log))

    async def _read_log(self, cursor: str) -> str:
        """Return the end of the log of direct messages, the same `cursor` where nothing was added."""
        given = {"cursor": cursor} if cursor else {}
        answer = await self._ask(_LOG, headers={"atproto-proxy": DIRECT_MESSAGE_SERVICE}, **given)
        if isinstance(answer, NotAllowedErr):
            self._messages = False  # the password has no access to them, which the SOUL told its owner
            return ""
        found = answer.or_raise()
        return (text_of(found, "cursor") or cursor) if found.get("logs") or not cursor else cursor

    async def _ask(self, method: str, headers: dict[str, str] | None = None, **params: str | int) -> ApiResult[Json]:
        client = AsyncClientBase(self._keeper.server, request=self._request)
        try:
            response = await client.invoke_query(
                method, params=DotDict(params), headers={**self._keeper.headers(), **(headers or {})}
            )
        except CALL_ERRORS as error:
            return to_err(error, what=method, write=False, now=self._clock.now())
        content = response.content
        return Ok(content) if isinstance(content, dict) else Err(f"{method}: the answer could not be read", "transient")


def _mark(listed: Json) -> str:
    """Return a hash of which notifications there are."""
    found = listed.get("notifications")
    names = [f"{text_of(one, 'uri')} {text_of(one, 'reason')}" for one in found or () if isinstance(one, dict)]
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:32]
