"""Helpers for results and timeouts that the tests of every adapter use."""

from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from common.result import ApiResult, Err, Ok

T = TypeVar("T")
_SILENCE_S = 0.1


def soon_gone(client: httpx.AsyncClient, hangs: Callable[[httpx.Request], bool]) -> None:
    """Shorten the read timeout of `client` to 0.1 s for each request for which `hangs` is true."""

    async def shorten(request: httpx.Request) -> None:
        if hangs(request):
            request.extensions["timeout"]["read"] = _SILENCE_S

    client.event_hooks["request"].append(shorten)


def ok(result: ApiResult[T]) -> T:
    """Return the data of a result, which must be good."""
    assert isinstance(result, Ok), result
    return result.data


def err(result: ApiResult[Any]) -> Err:
    """Return the failure of a result, which must be bad."""
    assert isinstance(result, Err), result
    return result
