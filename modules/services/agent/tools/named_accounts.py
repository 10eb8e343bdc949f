"""Finds the Bluesky accounts that the owner's words name by handle, at the moment when a turn begins.

A handle may pass to somebody else while a turn runs: an act is for the account that had it when the owner was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import regex

from adapters.atproto.richtext import UNSPACED
from common.result import ApiResult, Ok
from modules.services.agent.tools.types import OwnerRequest

Resolve: TypeAlias = Callable[[str], Awaitable[ApiResult[str]]]
"""Looks up the DID of a handle anew."""

_MOST_NAMES = 10
# NOTE(self): the host of an address or of a mail address is no account; neither is a path.
_BEFORE = rf"(?<![^\W{UNSPACED}])(?<![_@/:.%&=?#~+-])"
_BEHIND = rf"(?![^\W{UNSPACED}])(?![_@/-]|[.:?#&=]\w)"
_HANDLE = regex.compile(
    rf"(?:{_BEFORE}@?|(?<=/profile/))((?>(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}[A-Za-z][A-Za-z0-9-]{{0,62}})){_BEHIND}"
)


def handles_in(text: str) -> list[str]:
    """Return the handles that a text gives as accounts, in lower case: with or without @, or in a profile's address."""
    return list(dict.fromkeys(match[1].lower() for match in _HANDLE.finditer(text)))[:_MOST_NAMES]


async def look_up_named(request: OwnerRequest, resolve: Resolve) -> None:
    """Put into `request.named` the account of each handle in its text, but for those looked up before and those marked.

    A handle that cannot be looked up just now is looked up at the next call; one that is nobody's stays nobody's.
    """
    marked = {words.removeprefix("@").lower() for words, _ in request.mentions}
    due = [handle for handle in handles_in(request.text) if handle not in marked and handle not in request.named]
    found = await asyncio.gather(*map(resolve, due))
    for handle, answer in zip(due, found, strict=True):
        if isinstance(answer, Ok):
            request.named[handle] = answer.data
        elif answer.kind != "transient":
            request.named[handle] = ""
