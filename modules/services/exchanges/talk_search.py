"""Finds what was said in public, by people to the SOUL and by the SOUL, for the owner.

What somebody said is shown only as it can be read on the network now, and only where they allow it: see `PublicPosts`.
Direct messages with others are never looked through.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from common.clock import parse_iso
from common.text.strings import account_name
from modules.runtime.database.database import Database
from modules.services.exchanges.public_posts import PublicPosts
from modules.services.inbox import received
from modules.services.memory.query import folded
from modules.services.outbox import people
from modules.services.outbox.types import Intent

MOST_FOUND = 20


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something that was said.

    `who` is the handle of its author, "" for us; `uri` is where it stands, "" for a line of a room and for what waits.
    """

    at: datetime
    who: str
    text: str
    uri: str
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class TalkSearch:
    """Looks through the posts that reached the SOUL and through its own acts with words."""

    database: Database
    posts: PublicPosts

    async def find(self, words: str, person: str, since: datetime, limit: int) -> list[Spoken]:
        """Return what has all of `words`, newest first.

        Args:
            words: in any order and any case, also as parts of words; "" for all.
            person: the DID or handle of an account: what it said, and what the SOUL said to it; "" for everybody.
            since: nothing older is looked through.
            limit: the most to return, at most `MOST_FOUND`.

        """
        did = await self.database.run(lambda connection: _did_of(connection, person)) if person else ""
        if person and not did:
            return []
        has_words = _having(words)
        ours = await self.database.run(lambda connection: people.spoken(connection, since, did))
        found = [_own(one) for one in ours if has_words(one.body.preview)]
        rows = await self.database.run(lambda connection: received.texts_since(connection, since, did))
        uris = [row.uri for row in rows if has_words(row.text)][:MOST_FOUND]
        for post in (await self.posts.readable(uris)).values():
            at = parse_iso(post.indexed_at or post.created_at)
            found.append(Spoken(at, post.author.handle, post.text, post.uri))
        return sorted(found, key=lambda one: one.at, reverse=True)[: min(limit, MOST_FOUND)]


def _having(words: str) -> Callable[[str], bool]:
    wanted = folded(words).split()
    return lambda text: all(word in folded(text) for word in wanted)


def _own(intent: Intent) -> Spoken:
    at = parse_iso(intent.sent_at or intent.created_at)
    return Spoken(at, "", intent.body.preview, intent.result_uri or "", is_waiting=intent.state != "done")


def _did_of(connection: sqlite3.Connection, person: str) -> str:
    name = account_name(person)
    known = received.last_did_of(connection, did=name, handle=name.lower())
    return known[0] if known else name if name.startswith("did:") else ""
