"""Finds an account by its DID or by a handle that no other account used, and what belongs to it. Uses no network."""

import sqlite3
from collections.abc import Collection

from common.errors import UsageError
from common.person import INVALID_HANDLE, Person, Trace, needles
from modules.runtime.database.people import know_person
from modules.services.inbox import messages, received
from modules.services.memory.people import copies_of as remembered
from modules.services.outbox.people import intents_of
from modules.services.outbox.people import texts_of as acted
from modules.services.relationships import names
from modules.services.sessions.store import sessions_of


def identify(connection: sqlite3.Connection, who: str, own: Collection[str]) -> Person:
    """Return the account `who`: a DID, or a handle (with or without @) under which no other account was seen.

    Its handles are those that no other account had; `own` are the handles of the SOUL and the owner.

    Raises:
        UsageError: several accounts were seen under that handle.

    """
    wanted = who.lstrip("@")
    met = [(did, handle.lower(), name) for did, handle, name in names(connection)]
    known = received.authors(connection) + messages.authors(connection) + met
    if wanted.startswith("did:"):
        did = wanted
    else:
        dids = sorted({did for did, handle, _ in known if did and handle == wanted.lower() != INVALID_HANDLE})
        if len(dids) > 1:
            raise UsageError(f"{who} is the handle of several accounts", remedy=f"Name one: {', '.join(dids)}")
        did = dids[0] if dids else ""
    if not did:
        return Person("", (wanted.lower(),))
    seen = [one for one in known if one[0] == did]
    others = {handle for other, handle, _ in known if other != did} | {one.lower() for one in own}
    others |= {"", INVALID_HANDLE}
    handles = {handle for _, handle, _ in seen} - others
    return Person(did, tuple(sorted(handles)), tuple(sorted({name for *_, name in seen if name})))


def trace_of(connection: sqlite3.Connection, person: Person) -> Trace:
    """Return what in soul.db belongs to a person."""
    know_person(connection, person)
    did = person.did
    if not did:
        return Trace(person)
    posts = frozenset(messages.written_by(connection, did) + received.written_by(connection, did))
    intents = intents_of(connection, person, posts)
    copies = remembered(connection, did)
    words = needles(acted(connection, intents))
    return Trace(person, sessions_of(connection, did), intents, posts, copies, words)
