"""Sends every request to GitHub: after its gate, to one origin, under a deadline.

A read whose answer is known asks only for what changed (`kept_answers`).

Per request: the budget, the spacing, for a write the reason that may block it, then the sending. A read
that was refused for haste, or got no sound answer, is sent once more; a write never is, as it may have happened.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import httpx

from adapters.github.errors import REDIRECTS, error_from_transport, message_of, moved
from adapters.github.kept_answers import KeptAnswer, KeptAnswers
from adapters.github.rate_limit import MAY_BE_HASTE, limited_for_s
from adapters.web.failures import Failure
from adapters.web.spacing import Permit, RequestGate
from adapters.web.transport import origin_of
from common.clock import Clock
from common.lenient_json import cut_nesting
from common.result import Err
from common.version import __version__

GITHUB_RETRY_CEILING_S = 300.0

API_VERSION = "2022-11-28"
USER_AGENT = f"py-general-agent/{__version__}"
CONNECT_TIMEOUT_S = 10.0
_ACCEPT = "application/vnd.github+json"
_MAX_REDIRECTS = 3
_IN_REPOSITORY = re.compile(r"/repos/[^/?]{1,100}/[^/?]{1,100}/")
_PAUSE_BEFORE_REPEAT_S = 1.0
_ACCEPTED = 202
_SERVER_ERROR = 500
_READS = {"GET", "HEAD"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request; `url` is absolute, `what` says in words what it is for."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: str | None
    what: str

    @property
    def is_write(self) -> bool:
        return self.method not in _READS


class RequestSender:
    """Sends to the one origin of `api_url`, each request through `gate`."""

    def __init__(
        self,
        *,
        api_url: str,
        transport: httpx.AsyncBaseTransport,
        clock: Clock,
        timeout_s: float,
        gate: RequestGate,
    ) -> None:
        self._origin = origin_of(httpx.URL(api_url))
        self._clock = clock
        self._gate = gate
        connect_s = min(timeout_s, CONNECT_TIMEOUT_S)
        self._deadline_s = connect_s + timeout_s
        self._kept = KeptAnswers()
        self._client = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(timeout_s, connect=connect_s),
            follow_redirects=False,
            trust_env=False,
        )

    async def send(self, outgoing: OutgoingRequest, permit: Permit) -> KeptAnswer:
        """Send it, follow redirects within the origin, and hand back the answer, whatever its status.

        Of a repository that has moved only where it stands now is told; nothing in it is read, and nothing is written,
        as if that were the place that was asked for.

        Raises:
            Failure: the gate is closed, no answer came, or the answer points elsewhere.

        """
        for _ in range(_MAX_REDIRECTS + 1):
            answer = await self._send_or_repeat(outgoing, permit)
            if answer.status == _ACCEPTED and not outgoing.is_write:
                raise Failure(Err(f"could not {outgoing.what}: GitHub is still working on it", "transient", _ACCEPTED))
            target = answer.headers.get("location", "")
            if answer.status not in REDIRECTS or not target:
                return answer
            url = httpx.URL(outgoing.url).join(target)
            if origin_of(url) == self._origin and (outgoing.is_write or _IN_REPOSITORY.search(outgoing.url)):
                # NOTE(self): rights and rules were looked up for the place that was asked, not for where this leads.
                raise Failure(moved(outgoing.what, answer.status))
            outgoing = replace(outgoing, url=str(url))
        raise Failure(Err(f"could not {outgoing.what}: GitHub redirects in circles", kind="invalid"))

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _send_or_repeat(self, outgoing: OutgoingRequest, permit: Permit) -> KeptAnswer:
        self._gate.check_budget()
        try:
            answer = await self._send_spaced(outgoing, permit)
        except Failure as failure:
            if outgoing.is_write or failure.err.kind != "transient":
                raise
            await self._clock.sleep(_PAUSE_BEFORE_REPEAT_S)
            return await self._send_spaced(outgoing, permit)
        pause = self._pause_after(answer)
        if pause is None or outgoing.is_write or pause > GITHUB_RETRY_CEILING_S:
            return answer
        logger.info("GitHub, %s: HTTP %d, once more in %.0f s", outgoing.what, answer.status, pause)
        await self._clock.sleep(pause)
        again = await self._send_spaced(outgoing, permit)
        self._pause_after(again)
        return again

    async def _send_spaced(self, outgoing: OutgoingRequest, permit: Permit) -> KeptAnswer:
        if origin_of(httpx.URL(outgoing.url)) != self._origin:
            raise Failure(Err(f"could not {outgoing.what}: GitHub points to another server", kind="invalid"))
        await self._gate.admit(permit, write=outgoing.is_write)
        answer = await self._exchange(outgoing)
        self._gate.budget.observe(answer.headers)
        return answer

    async def _exchange(self, outgoing: OutgoingRequest) -> KeptAnswer:
        headers = {**outgoing.headers, "Accept": _ACCEPT}
        kept = None if outgoing.is_write else self._kept.of(outgoing.url, headers)
        if kept:
            headers["If-None-Match"] = kept.headers["etag"]
        try:
            async with asyncio.timeout(self._deadline_s):
                response = await self._client.request(
                    outgoing.method, outgoing.url, headers=headers, content=outgoing.content
                )
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            self._gate.report(None)
            raise Failure(error_from_transport(error, what=outgoing.what, write=outgoing.is_write)) from error
        self._gate.report(response.status_code)
        told = {name.lower(): value for name, value in response.headers.items()}
        answer = KeptAnswer(response.status_code, told, _text_of(response))
        return answer if outgoing.is_write else self._kept.resolve(outgoing.url, answer, kept)

    def _pause_after(self, answer: KeptAnswer) -> float | None:
        """Seconds to wait before a read is repeated; None if it needs no second try. Holds the rest if asked to."""
        if answer.status in MAY_BE_HASTE:
            wait = limited_for_s(answer.status, answer.headers, _message(answer), self._clock.now())
            if wait is not None:
                self._gate.budget.hold(wait)
            return wait
        return _PAUSE_BEFORE_REPEAT_S if answer.status >= _SERVER_ERROR else None


def _text_of(response: httpx.Response) -> str:
    """The body; what is nested too deep in JSON for a parser is null."""
    content = cut_nesting(response.content) if "json" in response.headers.get("content-type", "") else response.content
    return content.decode(response.charset_encoding or "utf-8", errors="replace")


def _message(answer: KeptAnswer) -> str:
    try:
        return message_of(json.loads(answer.text))
    except ValueError:
        return ""
