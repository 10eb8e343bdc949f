"""A small town for the page: a network with two accounts, status files in a folder, the page on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from common.clock import SystemClock, iso
from town.atproto.network import Network
from town.atproto.values import LIKE
from town.page.app import page_app
from town.page.residents import read_status
from town.residents import RESIDENTS, VISITOR_AVATAR
from town.serving import serve


@dataclass(frozen=True, slots=True)
class Square:
    """The page's address, the network behind it, who is who, and where status files lie."""

    url: str
    network: Network
    dids: dict[str, str]
    folder: Path
    app: Starlette

    def say(self, who: str, text: str, to: str | None = None) -> str:
        return self.network.post_as(self.dids[who], text, reply_to_uri=to)[0]

    def like(self, who: str, uri: str) -> None:
        post = self.network.index.posts[uri]
        subject = {"uri": uri, "cid": post.cid}
        self.network.create(self.dids[who], LIKE, {"subject": subject, "createdAt": iso(datetime.now(UTC))})

    def status(self, who: str, **changes: Any) -> None:
        now = datetime.now(UTC)
        content = {
            "name": who,
            "pid": os.getpid(),
            "state": "running",
            "startedAt": iso(now),
            "updatedAt": iso(now),
            "mode": "idle",
            "loops": [{"name": "awareness", "nextAt": iso(now), "lastRanAt": None, "lastOutcome": ""}],
            "counts": {"posts": 4, "replies": 3, "likes": 2, "silences": 1},
            "lastDecision": None,
            "decisions": [],
            "pendingNotifications": 0,
            "pendingIntents": 0,
        }
        (self.folder / f"{who}.json").write_text(json.dumps(content | changes))


@pytest.fixture
async def square(tmp_path: Path) -> AsyncIterator[Square]:
    network = Network(clock=SystemClock())
    dids = {
        resident.name: network.create_account(
            resident.handle, "pw", display_name=resident.display_name, description=resident.bio
        ).did
        for resident in RESIDENTS
    }
    dids["you"] = network.create_account("you.test", "pw", display_name="You").did
    app = page_app(
        network,
        lambda: [read_status(item.handle, tmp_path / f"{item.name}.json", datetime.now(UTC)) for item in RESIDENTS],
        dids["you"],
        about="They think with a small scripted mind, not a language model.",
        avatars={item.handle: item.avatar for item in RESIDENTS} | {"you.test": VISITOR_AVATAR},
    )
    async with serve(app) as url:
        yield Square(url, network, dids, tmp_path, app)
