"""Reads the body and query of a request, with GitHub's checks. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.clock import parse_iso_or_none
from town.github.values import REACTIONS, Json, Refusal, State, StoredIssue, unprocessable

_DEFAULT_PAGE = 30
_LARGEST_PAGE = 100
_STATES: dict[str, State] = {"open": "open", "closed": "closed"}


def parse_body(content: bytes, *, bare_list: str = "") -> Json:
    """Return the JSON object of a body; empty if there is none. A bare list becomes the field `bare_list`.

    Raises `Refusal`.
    """
    if not content:
        return {}
    try:
        body = json.loads(content)
    except ValueError as error:
        raise Refusal(400, "Problems parsing JSON") from error
    if bare_list and isinstance(body, list):
        return {bare_list: body}
    if not isinstance(body, dict):
        raise Refusal(400, "Body should be a JSON object")
    return body


def text(body: Json, name: str, *, required: bool = False) -> str | None:
    """Return a field that is text; None if it is missing or null. Raises `Refusal`."""
    value = body.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str):
        wrong = "nil" if value is None else json.dumps(value)
        raise Refusal(422, f"Invalid request.\n\nFor 'properties/{name}', {wrong} is not a string.")
    return value


def names(body: Json, name: str) -> list[str] | None:
    """Return a field that is a list of names, or of objects that have one. Raises `Refusal`."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise Refusal(422, f"Invalid request.\n\nFor 'properties/{name}', {json.dumps(value)} is not an array.")
    return [_name(one, name) for one in value]


def state(body: Json) -> State | None:
    """Return the requested state; None for none. Raises `Refusal`."""
    asked = text(body, "state")
    if asked is None:
        return None
    if asked not in _STATES:
        raise unprocessable("Issue", "state", "invalid")
    return _STATES[asked]


def reaction(body: Json) -> str:
    """Return the requested reaction. Raises `Refusal`."""
    content = text(body, "content", required=True)
    if content not in REACTIONS:
        raise unprocessable("Reaction", "content", "invalid")
    return content


@dataclass(frozen=True, slots=True)
class Window:
    """The number and size of a page of a list."""

    page: int
    size: int

    @classmethod
    def of(cls, query: Mapping[str, str], *, default: int = _DEFAULT_PAGE, largest: int = _LARGEST_PAGE) -> Window:
        """Return the page that the query asks for; invalid values count as missing."""
        size = min(_number(query.get("per_page", ""), default), largest)
        return cls(_number(query.get("page", ""), 1), size)

    def cut(self, items: list[Any]) -> list[Any]:
        return items[(self.page - 1) * self.size : self.page * self.size]

    def links(self, count: int) -> dict[str, int]:
        """Return the pages that the `Link` header names, by relation."""
        last = max(1, -(-count // self.size))
        back = {"prev": self.page - 1, "first": 1} if self.page > 1 else {}
        return back | ({"next": self.page + 1, "last": last} if self.page < last else {})


def chosen_issues(issues: list[StoredIssue], query: Mapping[str, str]) -> list[StoredIssue]:
    """Return the issues that the query asks for, in the requested order."""
    wanted, creator = query.get("state") or "open", query.get("creator", "").lower()
    labels = [name.strip().lower() for name in query.get("labels", "").split(",") if name.strip()]
    assignee = query.get("assignee", "*").lower()
    since = parse_iso_or_none(query.get("since"))
    found = [
        issue
        for issue in issues
        if wanted in {"all", issue.state}
        and creator in {"", issue.author.login.lower()}
        and set(labels) <= {label.name.lower() for label in issue.labels}
        and (assignee == "*" or assignee in {account.login.lower() for account in issue.assignees})
        and (since is None or issue.updated_at.replace(microsecond=0) >= since)
    ]
    by_update = query.get("sort") == "updated"
    found.sort(
        key=lambda issue: (issue.updated_at if by_update else issue.created_at, issue.number),
        reverse=query.get("direction") != "asc",
    )
    return found


def _name(value: object, field: str) -> str:
    name = value.get("name") if isinstance(value, dict) else value
    if not isinstance(name, str):
        raise Refusal(422, f"Invalid request.\n\nFor 'properties/{field}', {json.dumps(value)} is not a string.")
    return name


def _number(value: str, default: int) -> int:
    return int(value) if value.isdecimal() and int(value) > 0 else default
