"""Keeps us logged in: the stored session, then a refresh, then the password, in that order and one at a time.

Every new session is stored before it is used. A crash between the service's answer and the storing costs one refresh
with the older token, which services accept for a while, or one login.
"""

from __future__ import annotations

import asyncio
import json

from adapters.atproto.errors import CALL_ERRORS, to_err
from adapters.atproto.sdk import AsyncClientBase
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
from common.clock import Clock
from common.result import ApiResult, Err, Ok

_SERVER_ERROR = 500
_TOO_MANY = 429


class SessionKeeper:
    """Holds the session. `client` speaks to the service without the gate: only login and refresh go through it.

    Both go to the service we were told of, not to the server that holds our data: the service knows when that moves.
    """

    def __init__(
        self,
        *,
        client: AsyncClientBase,
        file: SessionFile,
        service_url: str,
        identifier: str,
        password: str,
        clock: Clock,
    ) -> None:
        self._client = client
        self._file = file
        self._service_url = service_url
        self._identifier = identifier
        self._password = password
        self._clock = clock
        self._lock = asyncio.Lock()
        self._stored: StoredSession | None = None
        self._unusable: Err | None = None

    @property
    def session(self) -> AtprotoSession | None:
        return self._stored.session if self._stored else None

    @property
    def access_jwt(self) -> str:
        return self.session.access_jwt if self.session else ""

    @property
    def server(self) -> str:
        """Base URL of the server that answers our requests: the one that holds our data, once it is known."""
        return self.session.pds if self.session else self._service_url

    @property
    def notice(self) -> str:
        """A line for the owner if the stored session could not be read; "" if it could."""
        return self._file.notice

    def headers(self) -> dict[str, str]:
        """The authorization of a request; none before login."""
        return {"Authorization": f"Bearer {self.access_jwt}"} if self.access_jwt else {}

    async def ensure(self, margin_s: float) -> ApiResult[str]:
        """Make the session last at least `margin_s` seconds: "valid", "refreshed" or "logged in".

        Once the service has said that the account is not in use there, this stays `fatal` until the process ends.
        """
        async with self._lock:
            if self._unusable:
                return self._unusable
            if self._stored is None:
                self._stored = self._file.load()
            if not is_token_expired(self.access_jwt, self._clock.now(), margin_s):
                return Ok("valid")
            return await self._restore()

    async def renew(self, refused: str) -> Err | None:
        """Replace a token that the service refused, unless someone else just did."""
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
        now = self._clock.now()
        if wait := login_wait_s(self._logins(), now):
            message = f"{LOGINS_PER_DAY} logins in a day are enough; the next one is in {wait / 60:.0f} min"
            return Err(message, kind="transient", retry_after=wait)
        answer = await self._ask(
            "createSession",
            content=json.dumps({"identifier": self._identifier, "password": self._password}),
            headers={"Content-Type": "application/json"},
        )
        counts = not isinstance(answer, Err) or (answer.status is not None and answer.status < _SERVER_ERROR)
        logins = (*self._logins(), now.timestamp()) if counts else self._logins()
        self._keep(StoredSession(self.session if isinstance(answer, Err) else answer.data, recent_logins(logins, now)))
        return answer

    async def _ask(self, method: str, **request: object) -> ApiResult[AtprotoSession]:
        what = f"com.atproto.server.{method}"
        try:
            response = await self._client.invoke_procedure(what, **request)
        except CALL_ERRORS as error:
            return to_err(error, what=what, write=False, now=self._clock.now())
        content = response.content
        if isinstance(content, dict) and (why := why_unusable(content, self._service_url)):
            self._unusable = Err(why, kind="fatal")
            return self._unusable
        session = session_from_answer(content, self._service_url) if isinstance(content, dict) else None
        return Ok(session) if session else Err(f"{what}: the answer could not be read", kind="transient")

    def _logins(self) -> tuple[float, ...]:
        return self._stored.logins if self._stored else ()

    def _keep(self, stored: StoredSession) -> None:
        self._file.save(stored)
        self._stored = stored


def _password_may_help(refused: Err) -> bool:
    """Whether the service said no to the refresh; after silence, or haste of ours, a login would fare no better."""
    answered = refused.status is not None and refused.status != _TOO_MANY
    return answered and refused.kind != "fatal"
