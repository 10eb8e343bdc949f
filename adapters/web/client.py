"""Fetches one thing from the open web, within bounds: place, size, time, type and number of redirects.

Keeps no cookies, sends no credentials. Nothing survives a crash, and nothing needs to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import aclosing
from fnmatch import fnmatchcase

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
        try:
            async with asyncio.timeout(deadline_s):
                return await self._fetch(httpx.URL(url), kinds, max_bytes, named=named)
        except TimeoutError:
            return Err(f"no whole answer within {deadline_s:g} s", kind="transient")
        except (RefusedConnection, TooLarge, httpx.InvalidURL, httpx.DecodingError, UnicodeError) as error:
            return Err(str(error), kind="invalid")
        except httpx.HTTPError as error:
            return Err(f"no answer ({type(error).__name__})", kind="transient")

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _fetch(
        self, first: httpx.URL, kinds: Collection[str], max_bytes: int, *, named: bool
    ) -> ApiResult[Fetched]:
        place = first
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


def _request(url: httpx.URL, *, foreign: bool) -> httpx.Request:
    timeout = httpx.Timeout(_READ_TIMEOUT_S).as_dict()
    headers = {"user-agent": _AGENT, "accept": "*/*"}
    return httpx.Request("GET", url, headers=headers, extensions={"timeout": timeout, FOREIGN: foreign})


async def _read(response: httpx.Response, url: httpx.URL, kinds: Collection[str], max_bytes: int) -> ApiResult[Fetched]:
    if not response.is_success:
        status = response.status_code
        return Err(f"the answer is HTTP {status}", kind=kind_of_status(status, write=False), status=status)
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not any(fnmatchcase(media, kind) for kind in kinds):
        return Err(f"the answer is {media or 'of no stated type'}, not {' or '.join(kinds)}", kind="invalid")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > max_bytes:
            return Err(f"the answer is larger than {max_bytes} bytes", kind="invalid")
    return Ok(Fetched(str(url), media, response.charset_encoding or "", bytes(body)))
