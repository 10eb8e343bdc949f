"""Sends every request but login and refresh, one at a time.

Per request: the budget, the spacing, for a write the reason that may block it, and the sending under a
deadline; then, at most once each, a renewed session when the token was refused, and the wait that the service asked
for when we were too fast. A refused request was not performed, so sending it again is safe for writes too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

import httpx

from adapters.atproto.errors import UnreadableAnswer, response_headers, token_refused
from adapters.atproto.sdk import AsyncRequest, InvokeTimeoutError, RequestErrorBase, Response
from adapters.web.failures import Failure
from adapters.web.rate_limit import retry_after_s
from adapters.web.spacing import RequestGate
from common.clock import Clock
from common.lenient_json import MOST_NESTING, parse, top_level_text
from common.result import Err

ATPROTO_CONNECT_TIMEOUT_S = 10.0
ATPROTO_DEFAULT_RETRY_AFTER_S = 60.0
ATPROTO_MAX_RETRY_AFTER_S = 300.0

logger = logging.getLogger(__name__)

_WRITES = ("/com.atproto.repo.", "/chat.bsky.convo.sendMessage")
_DIRECT_MESSAGES = "/chat.bsky."
NOT_PUBLIC = "x-not-public"
"""A header that only says here that a write is not held back; it does not leave."""
# NOTE(self): a thread is nested by itself: a reply costs two levels, an ancestor one. The SDK's parser bears 200.
_THREAD = "/app.bsky.feed.getPostThread"
_MOST_NESTING_OF_THREADS = 190
_PARSED_HERE_BYTES = 256 * 1024


class Renewal(Protocol):
    """Who holds the session."""

    @property
    def access_jwt(self) -> str:
        """The current access token; "" before login."""
        ...

    async def renew(self, refused: str) -> Err | None:
        """Replace the token that was refused; an `Err` if that cannot be done."""
        ...


class TimedRequest(AsyncRequest):
    """A request under a deadline as a whole, not only per read. Login and refresh use it as it is.

    A redirect is an error: where the service lives is said by the owner and by the did document, not by an answer.
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
    """A request that waits its turn. The access token is read anew each time it is sent."""

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
                        logger.error("Bluesky refuses the new token too: %s", error)  # noqa: TRY400 - one line says it all
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
        async with self._gate.spacing.permit(ahead=write) as permit:
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
        """Seconds to wait before the one repeat; None if waiting is not the cure, or too long.

        Direct messages have limits of their own, which may last for hours: they must not hold back anything else.
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
    """The answer with its JSON read, large ones in a thread. Raises `Unreadable`."""
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
