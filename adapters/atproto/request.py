"""Sends every request to Bluesky except login and refresh, one at a time, and interprets its errors.

Each request passes the budget, the spacing and, for a write, the check whether writes are blocked; then it is sent
under a deadline. After that, at most once each, come a renewed session if the token was refused, and the wait that the
service asked for. A refused request was not performed, so sending it again is safe for writes too.
"""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import httpx

from adapters.atproto.sdk import AsyncRequest, AtProtocolError, InvokeTimeoutError, RequestErrorBase, Response
from adapters.atproto.types import NotAllowedErr, ServiceErr, UnreadableErr
from adapters.web.client import Failure, TooLarge, kind_of_status, transport_error, unanswered
from adapters.web.spacing import RequestGate, retry_after_s
from common.clock import Clock
from common.lenient_json import MOST_NESTING, parse, top_level_text
from common.result import Err, ErrKind

SERVICE = "Bluesky"
_TOKEN_REFUSED = {"ExpiredToken", "InvalidToken"}
# NOTE(self): if an app password may not do something, Bluesky calls the token bad; a new token may do no more.
_NOT_ALLOWED = ("bad token scope", "bad token method")
_BY_NAME: dict[str, ErrKind] = {
    "AccountTakedown": "fatal",
    "AccountSuspended": "fatal",
    "AccountDeactivated": "fatal",
    "ExpiredToken": "auth",
    "InvalidToken": "auth",
    "AuthMissing": "auth",
    "AuthenticationRequired": "auth",
    "AuthFactorTokenRequired": "auth",
    "RecordNotFound": "not_found",
    "RepoNotFound": "not_found",
    "HandleNotFound": "not_found",
    "NotFound": "not_found",
}
_BY_STATUS: dict[int, ErrKind] = {409: "transient"}
_NOT_THERE = ("not found", "could not find", "unable to resolve handle")
_MAX_MESSAGE_CHARS = 300


class UnreadableAnswer(ValueError):
    """An answer that is not JSON; `cursor` is that of the next page, "" if it could not be found."""

    def __init__(self, cursor: str) -> None:
        super().__init__("the answer is no JSON")
        self.cursor = cursor


# What a call raises for a failure outside the program: from the SDK, its HTTP client, its JSON parser, and our gate.
CALL_ERRORS: tuple[type[Exception], ...] = (AtProtocolError, httpx.HTTPError, ValueError, Failure)


def token_refused(error: RequestErrorBase) -> bool:
    """Return whether a new access token may help: 401, or the 400 by which Bluesky says that a token has expired.

    A server also answers 401 for an account that was taken down or deactivated; the renewal tells where it lives now.
    """
    status, (name, message) = _status(error), _body(error)
    if _is_not_allowed(message):
        return False
    return status == httpx.codes.UNAUTHORIZED or (status == httpx.codes.BAD_REQUEST and name in _TOKEN_REFUSED)


def response_headers(error: RequestErrorBase) -> Mapping[str, str]:
    """Return the headers of a refused request, names in lower case; empty if no answer came."""
    headers: Mapping[str, str] = error.response.headers if error.response else {}
    return headers


def to_err(error: Exception, *, what: str, write: bool, now: datetime) -> Err:
    """Return the `Err` for one of `CALL_ERRORS`.

    Args:
        error: what was raised.
        what: the method that was called, for messages if the service gave none.
        write: whether the call changes something public.
        now: to turn a `retry-after` date into seconds.

    """
    if isinstance(error, Failure):
        return error.err
    if isinstance(error, RequestErrorBase) and error.response is not None:
        return _answered(error, what=what, write=write, now=now)
    cause = error.__cause__ or error
    if isinstance(error, RequestErrorBase | httpx.HTTPError) and not isinstance(error, TooLarge):
        return transport_error(cause, what=what, service=SERVICE, write=write)
    told = "the answer is too large" if isinstance(error, TooLarge) else "the answer could not be read"
    cursor = error.cursor if isinstance(error, UnreadableAnswer) else ""
    return UnreadableErr(f"{what}: {told}", kind=unanswered(write=write), cursor=cursor)


def _answered(error: RequestErrorBase, *, what: str, write: bool, now: datetime) -> Err:
    status, (name, message) = _status(error), _body(error)
    kind = _BY_NAME.get(name) or kind_of_status(status, write=write, own=_BY_STATUS)
    if kind == "invalid" and any(phrase in message.lower() for phrase in _NOT_THERE):
        kind = "not_found"
    if kind == "not_found" and _is_page(error):
        kind = unanswered(write=write)  # the answer of a proxy whose server is down
    told = f"the app password does not allow {what}" if _is_not_allowed(message) else message or name
    refusal = NotAllowedErr if _is_not_allowed(message) else ServiceErr
    return refusal(
        error=told[:_MAX_MESSAGE_CHARS] or f"{what}: {status}",
        kind=kind,
        status=status,
        retry_after=retry_after_s(response_headers(error), now),
        name=name,
    )


def _is_not_allowed(message: str) -> bool:
    return message.lower().startswith(_NOT_ALLOWED)


def _status(error: RequestErrorBase) -> int:
    return int(error.response.status_code) if error.response else 0


def _is_page(error: RequestErrorBase) -> bool:
    """Return whether the body is not JSON."""
    content: Any = error.response.content if error.response else None
    return content is None or isinstance(content, bytes)


def _body(error: RequestErrorBase) -> tuple[str, str]:
    """Return the error name and message of the JSON body; empty if the body is something else, such as HTML."""
    if _is_page(error):
        return "", ""
    content: Any = error.response.content if error.response else None
    name, message = getattr(content, "error", None), getattr(content, "message", None)
    return name if isinstance(name, str) else "", message if isinstance(message, str) else ""


ATPROTO_CONNECT_TIMEOUT_S = 10.0
ATPROTO_DEFAULT_RETRY_AFTER_S = 60.0
ATPROTO_MAX_RETRY_AFTER_S = 300.0

logger = logging.getLogger(__name__)

_WRITES = ("/com.atproto.repo.", "/chat.bsky.convo.sendMessage")
_DIRECT_MESSAGES = "/chat.bsky."
NOT_PUBLIC = "x-not-public"
"""A header that exempts a write from being blocked; it is removed before the request is sent."""
# NOTE(self): threads are nested JSON: a reply costs two levels, an ancestor one. The SDK's parser accepts 200.
_THREAD = "/app.bsky.feed.getPostThread"
_MOST_NESTING_OF_THREADS = 190
_PARSED_HERE_BYTES = 256 * 1024


class Renewal(Protocol):
    """Holds the session and renews it."""

    @property
    def access_jwt(self) -> str:
        """The current access token; "" before login."""
        ...

    async def renew(self, refused: str) -> Err | None:
        """Replace the token that was refused; return an `Err` if that is not possible."""
        ...


class TimedRequest(AsyncRequest):
    """A request under one deadline as a whole, not only per read. Login and refresh use it directly.

    A redirect is an error: the owner and the did document say where the service is, not an answer.
    """

    def __init__(self, *, read_timeout_s: float, **httpx_options: object) -> None:
        connect_timeout_s = min(read_timeout_s, ATPROTO_CONNECT_TIMEOUT_S)
        timeout = httpx.Timeout(read_timeout_s, connect=connect_timeout_s)
        super().__init__(timeout=timeout, **httpx_options)
        self._client.follow_redirects = False
        self._deadline_s = connect_timeout_s + read_timeout_s

    async def get(self, url: str, *args: object, **kwargs: object) -> Response:
        return await _read(await self._send_request("GET", url, *args, **kwargs), url)

    async def post(self, url: str, *args: object, **kwargs: object) -> Response:
        return await _read(await self._send_request("POST", url, *args, **kwargs), url)

    async def _send_request(self, method: str, url: str, **kwargs: object) -> httpx.Response:
        try:
            async with asyncio.timeout(self._deadline_s):
                response: httpx.Response = await super()._send_request(method, url, **kwargs)
                return response
        except TimeoutError as error:
            raise InvokeTimeoutError from error


class SpacedRequest(TimedRequest):
    """A request that waits for its permit. The access token is read again for each attempt."""

    def __init__(
        self,
        *,
        session: Renewal,
        gate: RequestGate,
        clock: Clock,
        read_timeout_s: float,
        **httpx_options: object,
    ) -> None:
        super().__init__(read_timeout_s=read_timeout_s, **httpx_options)
        self._session = session
        self._gate = gate
        self._clock = clock

    async def _send_request(self, method: str, url: str, **kwargs: object) -> httpx.Response:
        headers = kwargs.pop("headers", None)
        kept = dict(headers) if isinstance(headers, dict) else {}
        blockable = not kept.pop(NOT_PUBLIC, "") and method == "POST" and any(part in url for part in _WRITES)
        renewed = waited = False
        while True:
            token = self._session.access_jwt
            try:
                return await self._send_in_turn(
                    method, url, gated=not (renewed or waited), write=blockable, headers=kept, **kwargs
                )
            except RequestErrorBase as error:
                if token and token_refused(error):
                    if renewed:
                        logger.error("Bluesky refuses the new token too: %s", error)  # noqa: TRY400 - one line says all
                        raise
                    renewed = True
                    if failed := await self._session.renew(token):
                        raise Failure(failed) from error
                elif not waited and (pause := self._pause_for(error, url)) is not None:
                    waited = True
                    self._gate.spacing.defer(pause)
                else:
                    raise

    async def _send_in_turn(
        self, method: str, url: str, *, gated: bool, write: bool, **kwargs: object
    ) -> httpx.Response:
        async with self._gate.spacing.permit(write=write) as permit:
            if gated:
                self._gate.check_budget()
            await self._gate.admit(permit, write=write)
            return await self._send_and_report(method, url, **kwargs)

    async def _send_and_report(self, method: str, url: str, **kwargs: object) -> httpx.Response:
        try:
            response = await super()._send_request(method, url, **kwargs)
        except RequestErrorBase as error:
            self._gate.report(error.response.status_code if error.response else None)
            raise
        self._gate.report(response.status_code)
        return response

    def _pause_for(self, error: RequestErrorBase, url: str) -> float | None:
        """Return the seconds to wait before the one repeat; None if waiting does not help, or takes too long.

        Direct messages have their own limits, which may last for hours: they must not hold back anything else.
        """
        status = error.response.status_code if error.response else None
        too_fast = status == httpx.codes.TOO_MANY_REQUESTS
        if too_fast and _DIRECT_MESSAGES in url and not self._gate.budget.exhausted:
            return None
        if not too_fast and not (status == httpx.codes.FORBIDDEN and self._gate.budget.exhausted):
            return None
        asked = retry_after_s(response_headers(error), self._clock.now())
        pause = ATPROTO_DEFAULT_RETRY_AFTER_S if asked is None else asked
        if pause > ATPROTO_MAX_RETRY_AFTER_S:
            self._gate.budget.hold(pause)
            return None
        return pause


async def _read(answer: httpx.Response, url: str) -> Response:
    """Return the answer with its JSON parsed, in a thread if it is large. Raises `UnreadableAnswer`."""
    content: object = answer.content
    if "application/json" in answer.headers.get("content-type", "").lower():
        most = _MOST_NESTING_OF_THREADS if url.endswith(_THREAD) else MOST_NESTING
        large = len(answer.content) > _PARSED_HERE_BYTES
        try:
            read = asyncio.to_thread(parse, answer.content, most_nesting=most) if large else None
            content = await read if read else parse(answer.content, most_nesting=most)
        except ValueError as error:
            raise UnreadableAnswer(top_level_text(answer.content, "cursor")) from error
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(success=True, status_code=answer.status_code, content=content, headers=headers)
