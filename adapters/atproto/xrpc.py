"""Calls to the service, by method name, answered with `ApiResult`: JSON in, JSON out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from adapters.atproto.auth import SessionKeeper
from adapters.atproto.convert import Json
from adapters.atproto.errors import CALL_ERRORS, SERVICE, to_err
from adapters.atproto.request import NOT_PUBLIC, SpacedRequest, TimedRequest
from adapters.atproto.sdk import AsyncClientBase, DotDict, Response
from adapters.atproto.session import SessionFile
from adapters.web.rate_limit import RateLimitRules
from adapters.web.spacing import RequestGate
from common.clock import Clock
from common.result import ApiResult, Err, ErrKind, Ok

ATPROTO_LOW_BUDGET_THRESHOLD = 20
ATPROTO_INITIAL_BUDGET = 300
DIRECT_MESSAGE_SERVICE = "did:web:api.bsky.chat#bsky_chat"
"""To whom our server passes on what concerns direct messages; it knows nothing of them itself."""

BLUESKY_LABELER = "did:plc:ar7c4by46qjdydhdevvrndac"
"""The network's own moderation, whose labels come to everybody who names no labelers."""

RATE_LIMIT = RateLimitRules(
    service=SERVICE,
    prefix="ratelimit-",
    initial=ATPROTO_INITIAL_BUDGET,
    reserve=lambda _limit: ATPROTO_LOW_BUDGET_THRESHOLD,
)


class Xrpc:
    """The SDK's client behind our gate, and a second one without it for login and refresh.

    The answers to logins tell the date but not the budget: their headers speak of the logins' own, smaller one.
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
        read_timeout_s: float,
        write_block_reason: Callable[[], str],
        on_response: Callable[[bool, str], None] | None,
        transport: Callable[[], httpx.AsyncBaseTransport],
    ) -> None:
        self._clock = clock
        self.labelers: tuple[str, ...] = ()
        """The dids of those whose labels are asked for, beside the network's own."""
        gate = RequestGate(
            clock=clock,
            rules=RATE_LIMIT,
            spacing_s=min_spacing_s,
            write_block_reason=write_block_reason,
            on_response=on_response,
        )
        self.budget = gate.budget
        self.burst = gate.spacing.burst
        auth_request = TimedRequest(
            read_timeout_s=read_timeout_s,
            transport=transport(),
            event_hooks={"response": [self._see_date]},
        )
        self._auth_client = AsyncClientBase(service_url, request=auth_request)
        self.keeper = SessionKeeper(
            client=self._auth_client,
            file=SessionFile(session_path, service_url=service_url, identifier=identifier),
            service_url=service_url,
            identifier=identifier,
            password=password,
            clock=clock,
        )
        request = SpacedRequest(
            session=self.keeper,
            gate=gate,
            clock=clock,
            read_timeout_s=read_timeout_s,
            transport=transport(),
            event_hooks={"response": [self._see_date, self._see_budget]},
        )
        request.add_additional_headers_source(self.keeper.headers)
        self._client = AsyncClientBase(service_url, request=request)

    async def query(self, method: str, **params: str | int | list[str] | None) -> ApiResult[Json]:
        """Ask. Parameters that are None stay out."""
        given = {name: value for name, value in params.items() if value is not None}
        self._client.update_base_url(self.keeper.server)
        call = self._client.invoke_query(
            method, params=DotDict(given), headers={**_routed(method), **self._labelled(method)}
        )
        return await self._answer(call, method, write=False)

    async def procedure(
        self, method: str, body: Mapping[str, Any], *, write: bool, is_public: bool = True
    ) -> ApiResult[Json]:
        """Act. `write` is true when repeating blindly could show; what is not `is_public` is never held back."""
        more = {} if is_public else {NOT_PUBLIC: "1"}
        return await self._post(method, json.dumps(body).encode(), "application/json", write=write, more=more)

    async def upload(self, method: str, data: bytes, mime: str) -> ApiResult[Json]:
        """Send bytes; without a record that refers to them nobody sees them."""
        return await self._post(method, data, mime, write=False)

    async def aclose(self) -> None:
        await self._client.request.close()
        await self._auth_client.request.close()

    async def _post(
        self, method: str, content: bytes, mime: str, *, write: bool, more: Mapping[str, str] | None = None
    ) -> ApiResult[Json]:
        if not self.keeper.access_jwt:
            return Err(f"{method}: not logged in", kind="auth")
        self._client.update_base_url(self.keeper.server)
        headers = {**_routed(method), **(more or {}), "Content-Type": mime}
        call = self._client.invoke_procedure(method, content=content, headers=headers)
        return await self._answer(call, method, write=write)

    async def _answer(self, call: Awaitable[Response], method: str, *, write: bool) -> ApiResult[Json]:
        try:
            response = await call
        except CALL_ERRORS as error:
            return to_err(error, what=method, write=write, now=self._clock.now())
        if isinstance(response.content, dict):
            return Ok(response.content)
        if not response.content:
            return Ok({})
        unread: ErrKind = "unknown_outcome" if write else "transient"
        return Err(f"{method}: the answer could not be read", kind=unread, status=response.status_code)

    def _labelled(self, method: str) -> dict[str, str]:
        """The header that asks for labels. Who names labelers must name the network's own too."""
        if not self.labelers or not method.startswith("app.bsky."):
            return {}
        named = (did for did in self.labelers if did != BLUESKY_LABELER)
        return {"atproto-accept-labelers": ", ".join((f"{BLUESKY_LABELER};redact", *named))}

    async def _see_date(self, response: httpx.Response) -> None:
        self.budget.observe_date(response.headers)

    async def _see_budget(self, response: httpx.Response) -> None:
        self.budget.observe(response.headers)


def _routed(method: str) -> dict[str, str]:
    """The header by which our server passes a call on to another service; none for what it answers itself."""
    return {"atproto-proxy": DIRECT_MESSAGE_SERVICE} if method.startswith("chat.bsky.") else {}
