"""Records and writes as raw requests, for tests that check status, error name and message."""

from typing import Any

import httpx

from tests.contract.people import Person, UnderTest

R = "com.atproto.repo."
CREATE = f"{R}createRecord"
POST = "app.bsky.feed.post"
LIKE = "app.bsky.feed.like"
REPOST = "app.bsky.feed.repost"
FOLLOW = "app.bsky.graph.follow"
PROFILE = "app.bsky.actor.profile"
NOW = "2026-01-05T12:00:00.000Z"
TID = "3kabcdefghij2"
CID = "bafyreibjifzpqj6o6wcq3hejh7y4z4z2vmiklkvykc57tw3pcbx3kxifpm"


def post_record(**fields: Any) -> dict[str, Any]:
    record = {"$type": POST, "text": "hi", "createdAt": NOW, **fields}
    return {key: value for key, value in record.items() if value is not None}


def create(network: UnderTest, author: Person, record: Any, collection: str = POST, **more: Any) -> httpx.Response:
    body = {"repo": author.did, "collection": collection, "record": record, **more}
    return network.post(CREATE, body, author.token)


def put(network: UnderTest, author: Person, record: Any, rkey: str = TID, **more: Any) -> httpx.Response:
    body = {"repo": author.did, "collection": POST, "rkey": rkey, "record": record, **more}
    return network.post(f"{R}putRecord", body, author.token)
