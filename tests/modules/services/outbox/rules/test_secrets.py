"""Nothing that holds a secret passes the door, wherever in the draft it stands."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import pytest

from common.redact import LEAK, Redactor
from modules.services.outbox.bodies import FollowBody, LikeBody, PostBody
from modules.services.outbox.rules.secrets import SecretScan
from modules.services.outbox.types import ProposedAction, Verdict
from tests.modules.services.outbox.body_values import body_of

SECRET = "tell-nobody-77"
CID = "bafyreib2rxk3rybk3aobmv5cjuql3bm2twh4jo5uxgxqknbqmyxxlpyq4u"
URI = "at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/3jt5tsfznls2r"


@pytest.mark.parametrize(
    ("draft", "says"),
    [
        (ProposedAction(PostBody(text="Slate remembers the rain.")), "pass"),
        (ProposedAction(LikeBody(uri=URI, cid=CID)), "pass"),
        (ProposedAction(PostBody(text=f"my key is {SECRET}")), "block"),
        (ProposedAction(body_of("post", images=[{"alt": "77-YDOBON-LLET"}])), "block"),
        (ProposedAction(body_of("post", more={SECRET: 1})), "block"),
        (ProposedAction(PostBody(text="x"), part=f"{SECRET}#1"), "block"),
        (ProposedAction(FollowBody(did=f"did:web:{SECRET}.example")), "block"),
    ],
)
def test_every_string_of_a_draft_is_looked_at(draft: ProposedAction, says: str) -> None:
    with sqlite3.connect(":memory:") as connection:
        verdicts = SecretScan(Redactor([SECRET]))(connection, draft, datetime.now(UTC))
    connection.close()
    assert verdicts == [Verdict("secrets", "block", LEAK, withhold=True) if says == "block" else Verdict("secrets")]
