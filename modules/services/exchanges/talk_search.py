"""Finds what was said in public and in rooms, by people to the SOUL and by the SOUL, for the owner.

What somebody posted is shown only as it can be read on the network now, and only where they allow it: see
`PublicPosts`. Direct messages with others are never looked through.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from common.clock import iso, parse_iso
from common.text.strings import account_name
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import room_lines
from modules.services.exchanges.public_posts import PublicPosts
from modules.services.inbox import received
from modules.services.memory.query import folded
from modules.services.outbox import people
from modules.services.outbox.types import Intent

MOST_FOUND = 20
_MOST_READ = 25
_MOST_OF_ROOMS = 5_000


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something that was said.

    `who` is the handle of its author, or the name in a room, "" for us; `uri` is where it stands, "" for what was said
    in a room and for what waits.
    """

    at: datetime
    who: str
    text: str
    uri: str
    is_waiting: bool = False
    in_room: bool = False


@dataclass(frozen=True, slots=True)
class FoundTalk:
    """What a search found, newest first, and how many `more` have the words."""

    shown: Sequence[Spoken]
    more: int = 0


@dataclass(frozen=True, slots=True)
class TalkSearch:
    """Looks through the posts that reached the SOUL, through its own acts with words, and through lines of rooms."""

    database: Database
    posts: PublicPosts

    async def find(self, words: str, person: str, since: datetime, limit: int) -> FoundTalk:
        """Return what has all of `words`.

        Args:
            words: in any order and any case, also as parts of words; "" for all.
            person: the DID or handle of an account, or a name in a room: what it said, and what the SOUL posted to it;
                "" for everybody.
            since: nothing older is looked through.
            limit: the most to return, at most `MOST_FOUND`.

        """
        has_words, name = _having(words), account_name(person)
        lines = await self.database.run(lambda connection: room_lines(connection, iso(since), _MOST_OF_ROOMS))
        found = [
            Spoken(parse_iso(at), who, text, "", in_room=True)
            for at, who, text in lines
            if has_words(text) and (not name or who.casefold() == name.casefold())
        ]
        did = await self.database.run(lambda connection: _did_of(connection, name)) if name else ""
        uris: list[str] = []
        if did or not name:
            ours = await self.database.run(lambda connection: people.spoken(connection, since, did))
            found += [_own(one) for one in ours if has_words(one.body.preview)]
            rows = await self.database.run(lambda connection: received.texts_since(connection, since, did))
            uris = [row.uri for row in rows if has_words(row.text)]
        for post in (await self.posts.readable(uris[:_MOST_READ])).values():
            at = parse_iso(post.indexed_at or post.created_at)
            found.append(Spoken(at, post.author.handle, post.text, post.uri))
        shown = sorted(found, key=lambda one: one.at, reverse=True)[: min(limit, MOST_FOUND)]
        return FoundTalk(shown, len(found) + len(uris[_MOST_READ:]) - len(shown))


def _having(words: str) -> Callable[[str], bool]:
    wanted = folded(words).split()
    return lambda text: all(word in folded(text) for word in wanted)


def _own(intent: Intent) -> Spoken:
    at, in_room = parse_iso(intent.sent_at or intent.created_at), intent.kind == "space_chat"
    is_waiting = intent.state != "done"
    return Spoken(at, "", intent.body.preview, intent.result_uri or "", is_waiting, in_room)


def _did_of(connection: sqlite3.Connection, name: str) -> str:
    known = received.last_did_of(connection, did=name, handle=name.lower())
    return known[0] if known else name if name.startswith("did:") else ""
