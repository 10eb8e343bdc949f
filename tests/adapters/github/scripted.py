"""A server that gives the answers that a test wrote down, for tests that check requests to the byte."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from adapters.github.client import GitHub
from adapters.web.client import WebTransport
from common.clock import FakeClock
from tests.adapters.shared_server import SharedServer

PERSON = {"login": "ada", "id": 1, "url": "https://api.github.com/users/ada", "type": "User"}


def pull_json(number: int = 7, **changed: Any) -> dict[str, Any]:
    """Return a pull request as lists show it."""
    end = {"label": "ada:soul/1-beans", "user": PERSON, "repo": {"full_name": "ada/garden"}}
    return {
        "id": 70,
        "number": number,
        "title": "Beans",
        "body": None,
        "state": "open",
        "draft": True,
        "user": PERSON,
        "head": {**end, "ref": "soul/1-beans", "sha": "a" * 40},
        "base": {**end, "ref": "main", "sha": "b" * 40},
        "html_url": f"https://github.com/ada/garden/pull/{number}",
        "url": f"https://api.github.com/repos/ada/garden/pulls/{number}",
        "created_at": "2026-01-05T12:00:00Z",
        "updated_at": "2026-01-05T12:00:00Z",
        "merged_at": None,
        "closed_at": None,
        "requested_reviewers": [{**PERSON, "login": "bea"}],
        "labels": [{"name": "plan"}],
        "assignees": [PERSON],
        "merge_commit_sha": "c" * 40,
        **changed,
    }


@dataclass
class Reply:
    """One answer; `content` is sent as it is if it is text, else as JSON."""

    content: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    """One request as it came in; `line` is its method and its encoded path."""

    line: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Scripted:
    """Gives the answers in the order in which they were written down."""

    url: str
    replies: list[Reply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """The method and path of each request."""
        return [one.line for one in self.asked]

    def will(
        self, content: Any = None, status: int = 200, *, also: Mapping[str, str] | None = None, **headers: str
    ) -> None:
        """Add the answer to one request; in the names of headers, also of those in `also`, `_` stands for `-`."""
        told = {**(also or {}), **headers}
        self.replies.append(Reply(content, status, {name.replace("_", "-"): value for name, value in told.items()}))

    def client(self, *, token: str = "ghp_ada", clock: FakeClock | None = None) -> GitHub:
        """Return a client of this server."""
        return GitHub(
            api_url=self.url,
            login="ada",
            token=token,
            clock=clock or FakeClock(),
            min_spacing_s=0,
            transport=lambda: _way_to(self.url),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        content = await request.body()
        self.asked.append(
            Asked(
                f"{request.method} {scope['raw_path'].decode()}",
                dict(request.query_params),
                dict(request.headers),
                json.loads(content) if content else None,
            )
        )
        reply = self.replies.pop(0)
        empty = reply.content is None
        text = "" if empty else reply.content if isinstance(reply.content, str) else json.dumps(reply.content)
        headers = {} if empty else {"content-type": "application/json"}
        await Response(text, reply.status, {**headers, **reply.headers})(scope, receive, send)


def script(shared_server: SharedServer) -> Scripted:
    """Put a scripted server behind the address of the shared one, and return it."""
    scripted = Scripted(shared_server.url)
    shared_server.app = scripted
    return scripted


def _way_to(url: str) -> httpx.AsyncBaseTransport:
    return WebTransport(allow=(url,))
