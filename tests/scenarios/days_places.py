"""Services of the fortnight beside the network: a gallery whose pictures the SOULs show, and GitHub with real Git.

Also records who logged in to the network, and when.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.clock import Clock
from modules.runtime.home import Home
from soul.resources import template
from town.gallery.service import gallery_app
from town.github.arrangement import ORGANISATION, TEMPLATE, VISITOR_LOGIN, Arrangement, arrange
from town.github.service import github_app
from town.serving import serve

_LOGIN = "/xrpc/com.atproto.server.createSession"
_CATALOGUE = """
## Design Catalog

- Tides — https://www.are.na/harbour-archive/tides-and-lights
- Signs — https://www.are.na/print-shop/signs-and-surfaces
"""


@dataclass(frozen=True)
class Places:
    """The two services; `github` holds the accounts and repositories on GitHub."""

    gallery_url: str
    github_url: str
    github: Arrangement

    def settings(self, login: str) -> Mapping[str, str]:
        """Return the settings in `.env` of the SOUL with this login on GitHub."""
        return {
            "ARENA_API_URL": f"{self.gallery_url}/v2",
            "GITHUB_API_URL": self.github_url,
            "AGENT_GITHUB_TOKEN": self.github.tokens[login],
            "OWNER_GITHUB_USERNAME": VISITOR_LOGIN,
            "WORKSPACE_ORG": ORGANISATION,
            "WORKSPACE_TEMPLATE": TEMPLATE,
            "SOUL_MESSAGES_FROM": "all",
            "SOUL_ALLOW_PRIVATE_NET": "on",
        }


async def open_places(stack: AsyncExitStack, dids: Mapping[str, str], clock: Clock, root: Path) -> Places:
    """Serve both until the stack closes; `dids` are the DIDs of the SOULs by their logins on GitHub."""
    github = await arrange({login: login for login in dids}, dids, clock, root / "git")
    gallery_url = await stack.enter_async_context(serve(gallery_app(clock)))
    github_url = await stack.enter_async_context(serve(github_app(github.network)))
    return Places(gallery_url, github_url, github)


def love_pictures(home: Home, name: str) -> None:
    """Add the collections of the gallery to SELF.md, and to SOUL.md, where the owner vouches for them."""
    text = template("SELF.md").replace("{{AGENT_NAME}}", name).replace("{{DATE}}", "2026-01-05")
    home.self_md.write_text(f"{text}\n{_CATALOGUE}")
    home.soul.write_text(f"{home.soul.read_text()}\n{_CATALOGUE}")


@dataclass
class CountedLogins:
    """The network's service; `at` holds the times of requests for a session, by the identifier of the account."""

    app: ASGIApp
    clock: Clock
    at: defaultdict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != _LOGIN:
            await self.app(scope, receive, send)
            return
        body = b""

        async def passed_on() -> Message:
            nonlocal body
            message: MutableMapping[str, Any] = await receive()
            body += message.get("body", b"")
            return message

        await self.app(scope, passed_on, send)
        self.at[str(json.loads(body)["identifier"])].append(self.clock.now())
