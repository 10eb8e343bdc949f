"""Finds a person by a DID or a handle in what the home holds, and where their words lie. Asks no network."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from common.files import read_bounded
from common.person import Person, Trace, needles
from modules.runtime.database.functions import know_person
from modules.services.agent.memory.people import bodies_of as remembered
from modules.services.agent.sessions.people import sessions_of
from modules.services.inbox import messages, received
from modules.services.inbox.messages import message_name
from modules.services.outbox.people import intents_of
from modules.services.outbox.people import texts_of as acted

_MOST_BYTES = 64 * 1024 * 1024


def identify(connection: sqlite3.Connection, relationships: Path, who: str) -> Person:
    """Return the account `who` (a DID, or a handle with or without @) with each handle and name it was seen under."""
    wanted = who.lstrip("@")
    met = list(_met(relationships))
    known = received.authors(connection) + messages.authors(connection)
    did = wanted if wanted.startswith("did:") else _did_of(wanted.lower(), [*known, *met])
    if not did:
        return Person("", (wanted.lower(),))
    seen = [one for one in (*known, *met) if one[0] == did]
    handles = {handle for _, handle, _ in seen if handle} | ({wanted.lower()} - {did.lower()})
    return Person(did, tuple(sorted(handles)), tuple(sorted({name for *_, name in seen if name})))


def trace_of(connection: sqlite3.Connection, person: Person, archived: Collection[str]) -> Trace:
    """Return where a person's words lie; `archived` are the keys of the archives that name them."""
    know_person(connection, person)
    sessions = sessions_of(connection, archived)
    threads = [key[key.index("at://") :] for key in sessions if "at://" in key]
    intents = intents_of(connection, threads)
    posts = frozenset(one.uri for root in threads for one in received.in_thread(connection, root))
    posts |= frozenset(message_name(*one) for one in messages.keys_of(connection, person.did))
    said = [*acted(connection, intents), *remembered(connection, sessions)]
    return Trace(person, sessions, intents, posts, needles(said))


def _did_of(handle: str, seen: Collection[tuple[str, str, str]]) -> str:
    return next((did for did, one, _ in seen if one == handle), "")


def _met(relationships: Path) -> Iterator[tuple[str, str, str]]:
    """Return DID, handle and display name of each account in the file of relationships; none if it cannot be read."""
    try:
        entries = json.loads(read_bounded(relationships, _MOST_BYTES))["relationships"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return
    for entry in entries.values() if isinstance(entries, dict) else ():
        if isinstance(entry, dict):
            yield _text(entry, "did"), _text(entry, "handle").lower(), _text(entry, "displayName")


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""
