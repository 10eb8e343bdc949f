"""Somebody with an account on Bluesky's own server software."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx

from common.clock import SystemClock, iso
from tests.running_town import PASSWORD


@dataclass
class Person:
    """Somebody with an account, who speaks the protocol by hand."""

    http: httpx.AsyncClient
    did: str
    handle: str

    async def post(self, text: str, *mentions: Person, parent: dict[str, str] | None = None) -> dict[str, str]:
        """Post, with a facet for each of `mentions`, whose handles stand in the text; the uri and cid."""
        record: dict[str, Any] = {"$type": "app.bsky.feed.post", "text": text, "createdAt": iso(SystemClock().now())}
        facets = []
        for mention in mentions:
            start = text.encode().index(f"@{mention.handle}".encode())
            feature = {"$type": "app.bsky.richtext.facet#mention", "did": mention.did}
            index = {"byteStart": start, "byteEnd": start + len(mention.handle) + 1}
            facets.append({"index": index, "features": [feature]})
        if facets:
            record["facets"] = facets
        if parent:
            record["reply"] = {"root": parent, "parent": parent}
        body = {"repo": self.did, "collection": "app.bsky.feed.post", "record": record}
        answer = await self.http.post("/xrpc/com.atproto.repo.createRecord", json=body)
        answer.raise_for_status()
        return {"uri": answer.json()["uri"], "cid": answer.json()["cid"]}

    async def declares(self, record: dict[str, Any]) -> None:
        """Put a record of one's choices about AI."""
        body = {"repo": self.did, "collection": record["$type"], "rkey": "self", "record": record}
        (await self.http.post("/xrpc/com.atproto.repo.putRecord", json=body)).raise_for_status()

    async def texts_of(self, other: Person) -> list[str]:
        answer = await self.http.get("/xrpc/app.bsky.feed.getAuthorFeed", params={"actor": other.did, "limit": 100})
        return [item["post"]["record"]["text"] for item in reversed(answer.json()["feed"])]

    async def likes_of(self, uri: str) -> list[str]:
        answer = await self.http.get("/xrpc/app.bsky.feed.getLikes", params={"uri": uri})
        return [like["actor"]["handle"] for like in answer.json()["likes"]]

    async def feed_of(self, other: Person) -> list[dict[str, Any]]:
        """The records of what somebody posted and replied, oldest first, each with its uri and cid."""
        answer = await self.http.get("/xrpc/app.bsky.feed.getAuthorFeed", params={"actor": other.did, "limit": 100})
        posts = [item["post"] for item in reversed(answer.json()["feed"])]
        return [{**post["record"], "uri": post["uri"], "cid": post["cid"]} for post in posts]

    async def follows_of(self, other: Person) -> list[str]:
        """Whom somebody follows, by handle."""
        answer = await self.http.get("/xrpc/app.bsky.graph.getFollows", params={"actor": other.did})
        return [one["handle"] for one in answer.json()["follows"]]


async def join(pds: str, name: str, stack: AsyncExitStack) -> Person:
    http = await stack.enter_async_context(httpx.AsyncClient(base_url=pds, timeout=30))
    body = {"handle": f"{name}.test", "password": PASSWORD, "email": f"{name}@example.com"}
    answer = await http.post("/xrpc/com.atproto.server.createAccount", json=body)
    answer.raise_for_status()
    http.headers["authorization"] = f"Bearer {answer.json()['accessJwt']}"
    return Person(http, answer.json()["did"], f"{name}.test")
