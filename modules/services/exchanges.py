"""Finds what people and the SOUL said to each other in public and in rooms.

Posts are shown only as they can be read on the network now, and only if their authors allow it: see
`PublicPosts`. Direct messages with others are never searched. A turn about a person is told the last two
exchanges with them.
"""

import random
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from adapters.atproto.client import Atproto
from adapters.atproto.types import Post
from common.clock import Clock, age, iso, parse_iso
from common.provenance import Provenance
from common.text.strings import account_name
from common.text.untrusted import clean
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import room_lines
from modules.services.agent.prompt.fitting import ToldBefore
from modules.services.identity.identity import Me
from modules.services.inbox import received
from modules.services.memory.rows import folded
from modules.services.moderation import Moderation
from modules.services.outbox import people
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent
from modules.services.rights.preferences import Preferences
from modules.services.skills.skills import Framer, Skills


@dataclass(frozen=True, slots=True)
class PublicPosts:
    """Reads public posts from the network."""

    atproto: Atproto
    preferences: Preferences
    moderation: Moderation

    async def readable(self, uris: Collection[str]) -> Mapping[str, Post]:
        """Return those of at most 25 posts that may stand in a prompt, by uri; {} while the network is unreachable."""
        read = (await self.atproto.get_posts(sorted(uris))).or_else(()) if uris else ()
        if not read:
            return {}
        await self.moderation.refresh()
        self.moderation.note(*(post.author for post in read))
        dids = {post.author.did for post in read} - {self.atproto.did}
        allowed = await self.preferences.readable(dids) | {self.atproto.did}
        seen = (post for post in read if not self.moderation.why_unseen(post))
        return {post.uri: post for post in seen if post.author.did in allowed}


MOST_EXCHANGES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidBefore:
    """Reads earlier exchanges. The owner, too, is told only of public ones."""

    outbox: Outbox
    posts: PublicPosts
    skills: Skills
    rng: random.Random
    clock: Clock
    me: Me

    async def told(self, did: str, *, apart_from: str, least: Provenance) -> ToldBefore:
        """Return the last exchanges with an account.

        Args:
            did: the account; "" for a turn that is about nobody.
            apart_from: the root of a thread that the turn shows anyway; "" if there is none.
            least: nothing is told if their words are less trusted than these.

        """
        provenance = Provenance.OWNER if self.me.is_owner(did) else Provenance.STRANGER
        if not did or provenance < least:
            return ToldBefore()
        ours = await self.outbox.said_to(did, apart_from=apart_from, most=MOST_EXCHANGES)
        posts = await self.posts.readable({uri for one in ours for uri in (one.target, one.result_uri) if uri})
        lines = [line for intent in reversed(ours) for line in self._lines(intent, did, posts)]
        if not lines:
            return ToldBefore()
        framer = Framer(self.skills, self.rng)
        framed = framer.frame("conversation", author="several", uri=did, text="\n".join(lines))
        return ToldBefore(self.skills.render("memory", "Said Before", exchanges=framed).strip(), provenance)

    def _lines(self, intent: Intent, did: str, posts: Mapping[str, Post]) -> Iterator[str]:
        """Yield what they said and our answer; nothing if a part of the exchange is gone."""
        is_gone = intent.state == "done" and intent.result_uri not in posts
        theirs = posts.get(intent.target)
        if is_gone or theirs is None:
            return
        now = self.clock.now()
        if theirs.author.did == did:
            when = age(parse_iso(theirs.indexed_at or theirs.created_at), now)
            yield f"[{when}] @{theirs.author.handle}: {' '.join(clean(theirs.text).split())}"
        yield self._own_line(intent)

    def _own_line(self, intent: Intent) -> str:
        sent = intent.sent_at if intent.state == "done" else None
        when = age(parse_iso(sent), self.clock.now()) if sent else self.skills.section("memory", "Not Sent")
        return f"[{when}] YOU: {' '.join(intent.body.public_text.split())}"


MOST_FOUND = 20
_MOST_READ = 25
_MOST_OF_ROOMS = 5_000


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something that was said.

    `who` is the handle of its author, or the name in a room, "" for us; `uri` is its address, "" for words in a room
    and for what waits; `is_others`: its words are neither ours nor the owner's, or answer such words.
    """

    at: datetime
    who: str
    text: str
    uri: str
    is_waiting: bool = False
    in_room: bool = False
    is_others: bool = False


@dataclass(frozen=True, slots=True)
class FoundTalk:
    """The results of a search, newest first, and how many `more` match."""

    shown: Sequence[Spoken]
    more: int = 0


@dataclass(frozen=True, slots=True)
class TalkSearch:
    """Searches received posts, the SOUL's own acts with words, and lines in rooms."""

    database: Database
    posts: PublicPosts
    owner_did: str = ""

    async def find(self, words: str, person: str, since: datetime, limit: int) -> FoundTalk:
        """Return what contains all of `words`.

        Args:
            words: in any order and case, also as parts of words; "" for all.
            person: the DID or handle of an account, or a name in a room: what it said, and what the SOUL posted to it;
                "" for everybody.
            since: nothing older is searched.
            limit: the most results, at most `MOST_FOUND`.

        """
        has_words, name = _having(words), account_name(person)
        lines = await self.database.run(lambda connection: room_lines(connection, iso(since), _MOST_OF_ROOMS))
        found = [
            Spoken(parse_iso(at), who, text, "", in_room=True, is_others=bool(who))
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
            is_others = post.author.did not in {self.owner_did, self.posts.atproto.did}
            found.append(Spoken(at, post.author.handle, post.text, post.uri, is_others=is_others))
        shown = sorted(found, key=lambda one: one.at, reverse=True)[: min(limit, MOST_FOUND)]
        return FoundTalk(shown, len(found) + len(uris[_MOST_READ:]) - len(shown))


def _having(words: str) -> Callable[[str], bool]:
    wanted = folded(words).split()
    return lambda text: all(word in folded(text) for word in wanted)


def _own(intent: Intent) -> Spoken:
    at, in_room = parse_iso(intent.sent_at or intent.created_at), intent.kind == "space_chat"
    is_waiting = intent.state != "done"
    return Spoken(at, "", intent.body.preview, intent.result_uri or "", is_waiting, in_room, intent.kind != "post")


def _did_of(connection: sqlite3.Connection, name: str) -> str:
    known = received.last_did_of(connection, did=name, handle=name.lower())
    return known[0] if known else name if name.startswith("did:") else ""
