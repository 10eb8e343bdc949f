"""What every test of an adapter asks of a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from common.result import ApiResult, Err, Ok

T = TypeVar("T")
_SILENCE_S = 0.1


def soon_gone(client: httpx.AsyncClient, hangs: Callable[[httpx.Request], bool]) -> None:
    """Let `client` bear no silence for long after a request that `hangs`; others take what a busy machine needs."""

    async def shorten(request: httpx.Request) -> None:
        if hangs(request):
            request.extensions["timeout"]["read"] = _SILENCE_S

    client.event_hooks["request"].append(shorten)


def ok(result: ApiResult[T]) -> T:
    """The data of a result that must be good."""
    assert isinstance(result, Ok), result
    return result.data


def err(result: ApiResult[Any]) -> Err:
    """The failure of a result that must be bad."""
    assert isinstance(result, Err), result
    return result
