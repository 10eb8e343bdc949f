"""Calls to GitHub, answered with `ApiResult`: PyGithub in a thread, its requests through `sending`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from adapters.github.code_operations import Operations
from adapters.github.connection import Exchange, requester_over
from adapters.github.sdk import BadAttributeException, GithubException
from adapters.github.sending import KeptAnswer, OutgoingRequest, RequestSender, error_from_response, unreadable
from adapters.github.types import PAGE, is_token
from adapters.web.client import Failure
from adapters.web.spacing import Permit, RequestSpacing
from common.clock import Clock
from common.result import ApiResult, Err, Ok

# NOTE(self): PyGithub reads answers with plain asserts and look-ups; these are what a senseless answer raises.
_SENSELESS = (BadAttributeException, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Caller:
    """Makes calls, one at a time, in the name of `token`."""

    def __init__(
        self, *, api_url: str, token: str, clock: Clock, spacing: RequestSpacing, sender: RequestSender
    ) -> None:
        self._api_url = api_url
        self._token = token
        self._clock = clock
        self._spacing = spacing
        self._sender = sender

    async def read(self, what: str, work: Callable[[Operations], T], *, per_page: int = PAGE) -> ApiResult[T]:
        """Ask for something; `what` completes "could not …"."""
        return await self._call(what, work, write=False, per_page=per_page)

    async def write(self, what: str, work: Callable[[Operations], T]) -> ApiResult[T]:
        """Change something in public; never sent twice."""
        if not self._token:
            return Err(f"could not {what}: there is no GitHub token (AGENT_GITHUB_TOKEN)", kind="auth")
        return await self._call(what, work, write=True, per_page=PAGE)

    async def _call(self, what: str, work: Callable[[Operations], T], *, write: bool, per_page: int) -> ApiResult[T]:
        if self._token and not is_token(self._token):
            return Err(f"could not {what}: AGENT_GITHUB_TOKEN has characters that no token has", kind="auth")
        async with self._spacing.permit(write=write) as permit:
            exchange = Exchange(partial(self._send, permit=permit), what)
            requester = requester_over(exchange, api_url=self._api_url, token=self._token, per_page=per_page)
            try:
                return Ok(await exchange.run(partial(work, Operations(requester))))
            except Failure as failure:
                return failure.err
            except GithubException as error:
                headers = {name.lower(): str(value) for name, value in (error.headers or {}).items()}
                now = self._clock.now()
                return error_from_response(error.status, error.data, headers, what=what, write=write, now=now)
            except _SENSELESS as error:
                logger.warning("GitHub, %s: the answer could not be read (%s)", what, type(error).__name__)
                return unreadable(what, write=write)

    async def _send(self, outgoing: OutgoingRequest, *, permit: Permit) -> KeptAnswer:
        return await self._sender.send(outgoing, permit)
