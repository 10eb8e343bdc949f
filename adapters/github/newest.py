"""Checks whether anything came on GitHub for an account that sleeps: conditional reads; no text is kept.

An unchanged answer (304) does not count towards the account's hourly limit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from adapters.github.notifications import ACTIONABLE, USUAL_POLL_S
from adapters.github.sending import API_VERSION, USER_AGENT, error_from_response, error_from_transport
from common.clock import Clock
from common.lenient_json import parse
from common.result import ApiResult, Err, Ok

NOTIFICATIONS = "/notifications"
MOST_ADDRESSES = 60
_ASKED: Mapping[str, str | int] = {"all": "true", "participating": "true", "per_page": 50}
_NEWEST_ISSUES: Mapping[str, str | int] = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 5}
_FIELDS = ("id", "updated_at", "state", "comments")
_REPO_PARTS = 5
_GONE = frozenset({404, 410, 451})  # missing, or without issues, or taken down
_MARK_CHARS = 32


def is_watchable(address: str) -> bool:
    """Return whether this is the address of the notifications, or of the issues of a repository."""
    parts = address.split("/")
    named = parts[2:4]
    return address == NOTIFICATIONS or (
        len(parts) == _REPO_PARTS
        and (parts[0], parts[1], parts[4]) == ("", "repos", "issues")
        and all(one.strip(".") and one == quote(one, safe="") for one in named)
    )


class GitHubNewest:
    """Checks `addresses` for one account; each `is_watchable`. `seen` has a mark of what was at each."""

    def __init__(
        self, client: httpx.AsyncClient, *, api_url: str, token: str, addresses: Sequence[str], clock: Clock
    ) -> None:
        self.service = api_url
        self.seen: dict[str, str] = {}
        self.slower = 1.0
        """How many times longer than usual GitHub asks to wait between two looks."""
        self._client = client
        self._token = token
        self._addresses = addresses
        self._clock = clock
        self._validators: dict[str, str] = {}

    async def came(self) -> ApiResult[bool]:
        """Return whether anything came since `seen`; the first look sets `seen`."""
        is_new = False
        for address in self._addresses:
            if isinstance(mark := await self._mark(address), Err):
                return Ok(is_new) if is_new else mark
            if mark.data is not None and self._is_new(mark.data, self.seen.setdefault(address, mark.data)):
                is_new = True
                self._validators.pop(address)  # the next look finds it again
        return Ok(is_new)

    async def _mark(self, address: str) -> ApiResult[str | None]:
        """Return the mark of what is there now; None if nothing changed since the last look."""
        what, known = f"read {address}", self._validators.get(address)
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": USER_AGENT,
            **({"If-None-Match": known} if known else {}),
        }
        params = dict(_ASKED if address == NOTIFICATIONS else _NEWEST_ISSUES)
        try:
            answer = await self._client.get(f"{self.service}{address}", params=params, headers=headers)
            body = parse(answer.content) if answer.content else None
        except httpx.HTTPError as error:
            return error_from_transport(error, what=what, write=False)
        except ValueError:
            return Err(f"could not {what}: the answer could not be read", "transient")
        if address == NOTIFICATIONS:
            told = answer.headers.get("x-poll-interval", "")
            self.slower = max(1.0, int(told) / USUAL_POLL_S) if told.isdecimal() else 1.0
        if answer.status_code == httpx.codes.NOT_MODIFIED:
            return Ok(None)
        if answer.status_code in _GONE and address != NOTIFICATIONS:
            self._validators[address] = ""
            return Ok("gone")
        if not answer.is_success or not isinstance(body, list):
            now = self._clock.now()
            told_headers = {name.lower(): value for name, value in answer.headers.items()}
            return error_from_response(answer.status_code, body, told_headers, what=what, write=False, now=now)
        self._validators[address] = answer.headers.get("etag", "")
        return Ok(_mark_of(address, [one for one in body if isinstance(one, dict)]))

    @staticmethod
    def _is_new(mark: str, before: str) -> bool:
        """Return whether `mark` has parts that `before` lacks; a notification that is gone is not news."""
        return not {*mark.split()} <= {*before.split()}


def _mark_of(address: str, listed: Sequence[Mapping[str, Any]]) -> str:
    if address == NOTIFICATIONS:
        asking = (one for one in listed if ACTIONABLE.get(str(one.get("reason"))))
        return " ".join(sorted(f"{one.get('id')}@{one.get('updated_at')}" for one in asking))
    told = json.dumps([[one.get(field) for field in _FIELDS] for one in listed])
    return hashlib.sha256(told.encode()).hexdigest()[:_MARK_CHARS]
