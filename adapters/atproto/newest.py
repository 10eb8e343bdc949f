"""Checks whether anything came for an account that sleeps: one or two small reads; no text is kept.

Each account has its own session for this, in a file; it is refreshed, and logs in again only if that is refused.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from adapters.atproto.convert import Json, event, objects_of, text_of
from adapters.atproto.request import ATPROTO_DEFAULT_RETRY_AFTER_S, CALL_ERRORS, TimedRequest, to_err, token_refused
from adapters.atproto.sdk import AsyncClientBase, DotDict, RequestErrorBase
from adapters.atproto.session import SessionFile
from adapters.atproto.types import NotAllowedErr
from adapters.atproto.xrpc import DIRECT_MESSAGE_SERVICE, SessionKeeper
from common.clock import Clock
from common.result import ApiResult, Err, Ok, answering

_NOTIFICATIONS, _LOG = "app.bsky.notification.listNotifications", "chat.bsky.convo.getLog"
_WORDS = ["mention", "reply", "quote"]
"""The kinds of notifications that may ask for an answer; a like wakes nobody."""
_LOOKED_AT = 100
"""A notification is sorted by the time of its post, so a new one need not be the first."""
_MARGIN_S = 60.0
_TIMEOUT_S = 15.0


@dataclass(slots=True)
class SharedRequests:
    """The connection for the checks of all accounts at one service; `until_s` is the end of the pause it asked for."""

    request: TimedRequest
    until_s: float = 0.0


def shared_requests(transport: httpx.AsyncBaseTransport) -> SharedRequests:
    """Return a shared connection over `transport`, which closes with its `request`."""
    return SharedRequests(TimedRequest(read_timeout_s=_TIMEOUT_S, transport=transport))


class AccountNewest:
    """Checks one account. With `messages` also its direct messages, if its password allows that.

    `seen` marks what was there at the last look: a hash of the notifications, and the end of the log of direct
    messages. `did` is the account that must answer, "" while unknown: a handle can pass to somebody else.
    """

    def __init__(
        self,
        shared: SharedRequests,
        *,
        service_url: str,
        identifier: str,
        password: str,
        session_path: Path,
        clock: Clock,
        messages: bool,
    ) -> None:
        self.service = service_url
        self.seen: dict[str, str] = {}
        self.slower = 1.0
        self.did = ""
        self._shared = shared
        self._clock = clock
        self._messages = messages
        self._keeper = SessionKeeper(
            client=AsyncClientBase(service_url, request=shared.request),
            file=SessionFile(session_path, service_url=service_url, identifier=identifier),
            service_url=service_url,
            identifier=identifier,
            password=password,
            clock=clock,
        )

    @answering
    async def came(self) -> ApiResult[bool]:
        """Return whether anything came since `seen`; the first look sets `seen`."""
        if (wait_s := self._shared.until_s - self._clock.monotonic()) > 0:
            return Err("Bluesky asked for a pause", "transient", retry_after=wait_s)
        (await self._keeper.ensure(_MARGIN_S)).or_raise()
        if self.did and self._keeper.session and self._keeper.session.did != self.did:
            return Err("the account that answers is another one", "fatal")
        found = {"notifications": _mark((await self._ask(_NOTIFICATIONS, limit=_LOOKED_AT, reasons=_WORDS)).or_raise())}
        log = self.seen.get("log", "")
        found["log"] = await self._read_log(log) if self._messages else log
        if not self.seen:
            self.seen = found
        return Ok(found != self.seen)

    async def _read_log(self, cursor: str) -> str:
        """Return the end of the log of direct messages; `seen` moves there if the account itself added the rest."""
        given = {"cursor": cursor} if cursor else {}
        answer = await self._ask(_LOG, headers={"atproto-proxy": DIRECT_MESSAGE_SERVICE}, **given)
        if isinstance(answer, NotAllowedErr):
            self._messages = False  # the password has no access to them; the SOUL has told its owner so
            return cursor
        found = answer.or_raise()
        end = text_of(found, "cursor") or cursor if found.get("logs") or not cursor else cursor
        if cursor and all(map(self._is_own, objects_of(found, "logs"))):
            self.seen = {**self.seen, "log": end}
        return end

    def _is_own(self, entry: Json) -> bool:
        """Return whether an entry of the log is a read mark or a message of the account itself."""
        found, session = event(entry), self._keeper.session
        sender = found.message.sender_did if found and found.kind == "message" and found.message else ""
        return found is not None and (found.kind == "read" or bool(session and sender == session.did))

    async def _ask(
        self, method: str, headers: Mapping[str, str] | None = None, **params: str | int | list[str]
    ) -> ApiResult[Json]:
        """Call `method`, once more with a renewed session if the token is refused."""
        token = self._keeper.access_jwt
        try:
            try:
                return await self._send(method, headers or {}, params)
            except RequestErrorBase as error:
                if not token_refused(error):
                    raise
                return await self._keeper.renew(token) or await self._send(method, headers or {}, params)
        except CALL_ERRORS as error:
            err = to_err(error, what=method, write=False, now=self._clock.now())
        if err.status == httpx.codes.TOO_MANY_REQUESTS and method == _NOTIFICATIONS:
            self._shared.until_s = self._clock.monotonic() + (err.retry_after or ATPROTO_DEFAULT_RETRY_AFTER_S)
        return err

    async def _send(
        self, method: str, headers: Mapping[str, str], params: Mapping[str, str | int | list[str]]
    ) -> ApiResult[Json]:
        client = AsyncClientBase(self._keeper.server, request=self._shared.request)
        response = await client.invoke_query(
            method, params=DotDict(dict(params)), headers={**self._keeper.headers(), **headers}
        )
        content = response.content
        return Ok(content) if isinstance(content, dict) else Err(f"{method}: the answer could not be read", "transient")


def _mark(listed: Json) -> str:
    """Return a hash that changes with the set of notifications."""
    found = listed.get("notifications")
    names = [f"{text_of(one, 'uri')} {text_of(one, 'reason')}" for one in found or () if isinstance(one, dict)]
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:32]
