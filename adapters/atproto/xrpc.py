"""Calls the methods of a Bluesky service by name, with JSON in and out, and keeps us logged in.

To log in it tries the stored session, then a refresh, then the password, one at a time.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from adapters.atproto.convert import Json
from adapters.atproto.request import CALL_ERRORS, NOT_PUBLIC, SERVICE, SpacedRequest, TimedRequest, to_err
from adapters.atproto.sdk import AsyncClientBase, DotDict, Response
from adapters.atproto.session import (
    LOGINS_PER_DAY,
    AtprotoSession,
    SessionFile,
    StoredSession,
    is_token_expired,
    login_wait_s,
    recent_logins,
    session_from_answer,
    why_unusable,
)
from adapters.web.spacing import RateLimitRules, RequestGate
from common.clock import Clock
from common.result import ApiResult, Err, ErrKind, Ok

_SERVER_ERROR = 500
_TOO_MANY = 429


@dataclass(slots=True, kw_only=True)
class SessionKeeper:
    """Holds the session. `client` calls the service without the gate, for login and refresh only.

    Both go to the service that was configured, not to the server that holds our data: the service knows if that moves.
    """

    client: AsyncClientBase
    file: SessionFile
    service_url: str
    identifier: str
    password: str = field(repr=False)
    clock: Clock
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _stored: StoredSession | None = field(default=None, init=False)
    _unusable: Err | None = field(default=None, init=False)

    @property
    def session(self) -> AtprotoSession | None:
        return self._stored.session if self._stored else None

    @property
    def access_jwt(self) -> str:
        return self.session.access_jwt if self.session else ""

    @property
    def server(self) -> str:
        """Base URL of the server for our requests: the one that holds our data, once it is known."""
        return self.session.pds if self.session else self.service_url

    @property
    def notice(self) -> str:
        """A line for the owner if the stored session could not be read; "" if it could."""
        return self.file.notice

    def headers(self) -> dict[str, str]:
        """Return the authorization header of a request; none before login."""
        return {"Authorization": f"Bearer {self.access_jwt}"} if self.access_jwt else {}

    async def ensure(self, margin_s: float) -> ApiResult[str]:
        """Make the session last at least `margin_s` seconds; return "valid", "refreshed" or "logged in".

        Once the service has said that the account is not in use there, the result stays `fatal` until the process ends.
        """
        async with self._lock:
            if self._unusable:
                return self._unusable
            if self._stored is None:
                self._stored = self.file.load()
            if not is_token_expired(self.access_jwt, self.clock.now(), margin_s):
                return Ok("valid")
            return await self._restore()

    async def renew(self, refused: str) -> Err | None:
        """Replace a token that the service refused, unless another call just did."""
        async with self._lock:
            if self._unusable or self.access_jwt != refused:
                return self._unusable
            restored = await self._restore()
            return restored if isinstance(restored, Err) else None

    async def _restore(self) -> ApiResult[str]:
        if self.session:
            refreshed = await self._refresh(self.session)
            if not isinstance(refreshed, Err):
                return Ok("refreshed")
            if not _password_may_help(refreshed):
                return refreshed
        logged_in = await self._log_in()
        return logged_in if isinstance(logged_in, Err) else Ok("logged in")

    async def _refresh(self, session: AtprotoSession) -> ApiResult[AtprotoSession]:
        answer = await self._ask("refreshSession", headers={"Authorization": f"Bearer {session.refresh_jwt}"})
        if not isinstance(answer, Err):
            self._keep(StoredSession(answer.data, self._logins()))
        return answer

    async def _log_in(self) -> ApiResult[AtprotoSession]:
        now = self.clock.now()
        if wait := login_wait_s(self._logins(), now):
            message = f"{LOGINS_PER_DAY} logins in a day are enough; the next one is in {wait / 60:.0f} min"
            return Err(message, kind="transient", retry_after=wait)
        answer = await self._ask(
            "createSession",
            content=json.dumps({"identifier": self.identifier, "password": self.password}),
            headers={"Content-Type": "application/json"},
        )
        counts = not isinstance(answer, Err) or (answer.status is not None and answer.status < _SERVER_ERROR)
        logins = (*self._logins(), now.timestamp()) if counts else self._logins()
        self._keep(StoredSession(self.session if isinstance(answer, Err) else answer.data, recent_logins(logins, now)))
        return answer

    async def _ask(self, method: str, **request: object) -> ApiResult[AtprotoSession]:
        what = f"com.atproto.server.{method}"
        try:
            response = await self.client.invoke_procedure(what, **request)
        except CALL_ERRORS as error:
            return to_err(error, what=what, write=False, now=self.clock.now())
        content = response.content
        if isinstance(content, dict) and (why := why_unusable(content, self.service_url)):
            self._unusable = Err(why, kind="fatal")
            return self._unusable
        session = session_from_answer(content, self.service_url) if isinstance(content, dict) else None
        return Ok(session) if session else Err(f"{what}: the answer could not be read", kind="transient")

    def _logins(self) -> tuple[float, ...]:
        return self._stored.logins if self._stored else ()

    def _keep(self, stored: StoredSession) -> None:
        self.file.save(stored)
        self._stored = stored


def _password_may_help(refused: Err) -> bool:
    """Return whether the service refused the refresh; without an answer, or at a rate limit, a login would fail too."""
    answered = refused.status is not None and refused.status != _TOO_MANY
    return answered and refused.kind != "fatal"


ATPROTO_LOW_BUDGET_THRESHOLD = 20
ATPROTO_INITIAL_BUDGET = 300
DIRECT_MESSAGE_SERVICE = "did:web:api.bsky.chat#bsky_chat"
"""The service that our server passes calls about direct messages on to; it does not handle them itself."""

BLUESKY_LABELER = "did:plc:ar7c4by46qjdydhdevvrndac"
"""The network's own moderation; an account that names no labelers gets its labels."""

RATE_LIMIT = RateLimitRules(
    service=SERVICE,
    prefix="ratelimit-",
    initial=ATPROTO_INITIAL_BUDGET,
    reserve=lambda _limit: ATPROTO_LOW_BUDGET_THRESHOLD,
)


class Xrpc:
    """The SDK's client behind our gate, and a second one without it for login and refresh.

    The answers to logins tell the date but not the budget: their headers report the separate, smaller budget of logins.
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
        """The dids of the labelers whose labels are requested, in addition to the network's own."""
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
        """Call a method that reads. Parameters that are None are left out."""
        given = {name: value for name, value in params.items() if value is not None}
        self._client.update_base_url(self.keeper.server)
        call = self._client.invoke_query(
            method, params=DotDict(given), headers={**_routed(method), **self._labelled(method)}
        )
        return await self._answer(call, method, write=False)

    async def procedure(
        self, method: str, body: Mapping[str, Any], *, write: bool, is_public: bool = True
    ) -> ApiResult[Json]:
        """Call a method that writes. `write`: a blind repeat could be visible; not `is_public`: it is never blocked."""
        more = {} if is_public else {NOT_PUBLIC: "1"}
        return await self._post(method, json.dumps(body).encode(), "application/json", write=write, more=more)

    async def upload(self, method: str, data: bytes, mime: str) -> ApiResult[Json]:
        """Upload bytes; nobody sees them until a record refers to them."""
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
        """Return the header that asks for labels. A list of labelers must include the network's own."""
        if not self.labelers or not method.startswith("app.bsky."):
            return {}
        named = (did for did in self.labelers if did != BLUESKY_LABELER)
        return {"atproto-accept-labelers": ", ".join((f"{BLUESKY_LABELER};redact", *named))}

    async def _see_date(self, response: httpx.Response) -> None:
        self.budget.observe_date(response.headers)

    async def _see_budget(self, response: httpx.Response) -> None:
        self.budget.observe(response.headers)


def _routed(method: str) -> dict[str, str]:
    """Return the header that makes our server pass a call on to another service; none if it answers itself."""
    return {"atproto-proxy": DIRECT_MESSAGE_SERVICE} if method.startswith("chat.bsky.") else {}
