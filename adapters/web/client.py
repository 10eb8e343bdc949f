"""Fetches one thing from the open web, within bounds: place, size, time, type and number of redirects; or posts one.

Keeps no cookies, sends no credentials. Nothing survives a crash, and nothing needs to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection
from contextlib import aclosing
from fnmatch import fnmatchcase
from typing import TypeVar

import httpx

from adapters.web.connecting import RefusedConnection
from adapters.web.failures import kind_of_status
from adapters.web.policy import MAX_REDIRECTS, refused_redirect
from adapters.web.transport import FOREIGN, TooLarge, origin_of
from adapters.web.types import Fetched
from common.result import ApiResult, Err, Ok
from common.version import __version__

_AGENT = f"py-general-agent/{__version__}"
_READ_TIMEOUT_S = 15.0

T = TypeVar("T")


class WebClient:
    """Fetches by a transport, which it closes in the end."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def fetch(
        self, url: str, *, kinds: Collection[str], max_bytes: int, deadline_s: float, named: bool = False
    ) -> ApiResult[Fetched]:
        """Get what is at `url`.

        Args:
            url: http or https.
            kinds: media types that are welcome, with `*` for any: `text/*`, `application/json`.
            max_bytes: the most that it may have once inflated.
            deadline_s: seconds for all of it, redirects included.
            named: whether the owner named the place: only then the transport's exceptions hold, and for that origin.

        Returns:
            `Err` of kind `invalid` for what the policy, the size, the type or the redirects forbid; by the status
            otherwise, or `transient` where no answer came.

        """
        return await _bounded(self._fetch(url, kinds, max_bytes, named=named), deadline_s)

    async def post(self, url: str, text: str, *, deadline_s: float) -> ApiResult[None]:
        """Send a text to an address that the owner named. A redirect is not followed, and the answer is not read."""
        return await _bounded(self._post(url, text), deadline_s)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _post(self, url: str, text: str) -> ApiResult[None]:
        request = _request(httpx.URL(url), foreign=False, text=text)
        response = await self._transport.handle_async_request(request)
        async with aclosing(response):
            return Ok(None) if response.is_success else _refused(response, write=True)

    async def _fetch(self, url: str, kinds: Collection[str], max_bytes: int, *, named: bool) -> ApiResult[Fetched]:
        place = first = httpx.URL(url)
        for _ in range(MAX_REDIRECTS + 1):
            foreign = not named or origin_of(place) != origin_of(first)
            response = await self._transport.handle_async_request(_request(place, foreign=foreign))
            async with aclosing(response):
                if not response.has_redirect_location:
                    return await _read(response, place, kinds, max_bytes)
                onward = place.join(response.headers["location"])
                if why := refused_redirect(place.scheme, onward.scheme):
                    return Err(why, kind="invalid")
                place = onward.copy_with(fragment=None)
        return Err(f"more than {MAX_REDIRECTS} redirects", kind="invalid")


async def _bounded(work: Awaitable[ApiResult[T]], deadline_s: float) -> ApiResult[T]:
    """Return what comes of a request, or why nothing came of it in time."""
    try:
        async with asyncio.timeout(deadline_s):
            return await work
    except TimeoutError:
        return Err(f"no whole answer within {deadline_s:g} s", kind="transient")
    except (RefusedConnection, TooLarge, httpx.InvalidURL, httpx.DecodingError, UnicodeError) as error:
        return Err(str(error), kind="invalid")
    except httpx.HTTPError as error:
        return Err(f"no answer ({type(error).__name__})", kind="transient")


def _request(url: httpx.URL, *, foreign: bool, text: str | None = None) -> httpx.Request:
    """Return a GET, or a POST of `text`."""
    extensions = {"timeout": httpx.Timeout(_READ_TIMEOUT_S).as_dict(), FOREIGN: foreign}
    headers = {"user-agent": _AGENT, "accept": "*/*"}
    if text is None:
        return httpx.Request("GET", url, headers=headers, extensions=extensions)
    headers["content-type"] = "text/plain; charset=utf-8"
    return httpx.Request("POST", url, headers=headers, content=text.encode(), extensions=extensions)


def _refused(response: httpx.Response, *, write: bool) -> Err:
    status = response.status_code
    return Err(f"the answer is HTTP {status}", kind=kind_of_status(status, write=write), status=status)


async def _read(response: httpx.Response, url: httpx.URL, kinds: Collection[str], max_bytes: int) -> ApiResult[Fetched]:
    if not response.is_success:
        return _refused(response, write=False)
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not any(fnmatchcase(media, kind) for kind in kinds):
        return Err(f"the answer is {media or 'of no stated type'}, not {' or '.join(kinds)}", kind="invalid")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > max_bytes:
            return Err(f"the answer is larger than {max_bytes} bytes", kind="invalid")
    return Ok(Fetched(str(url), media, response.charset_encoding or "", bytes(body)))
