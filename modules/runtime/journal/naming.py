"""What somebody may ask about, and which row of the database is meant: a link, an `at://` uri, or an act's id.

Nothing is looked up on the network: a handle is resolved by what the database has seen.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote

from adapters.atproto.tid import tid_time
from common.clock import iso
from modules.runtime.journal.story import Unknown

_LINK = re.compile(r"https?://[^/?#]+/profile/([^/?#]+)/post/([\w.~:-]+)", re.IGNORECASE)
_URI = re.compile(r"at://([^/?#]+)/([\w.-]+)/([\w.~:-]+)")
_ISSUE = re.compile(r"https?://[^/?#]+/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+(?:#issuecomment-\d+)?", re.IGNORECASE)
_ID = re.compile(r"[0-9a-f]{4,32}")
_POST = "app.bsky.feed.post"

# NOTE(self): a record key is unique enough to find a post by; whose it is decides only between several.
_WITH_KEY = """
SELECT uri, json_extract(payload, '$.author.handle') AS handle FROM pending_notifications
    WHERE substr(uri, -length(:tail)) = :tail
UNION SELECT trigger_uri, author FROM journal WHERE author IS NOT NULL AND substr(trigger_uri, -length(:tail)) = :tail
UNION SELECT trigger_uri, '' FROM journal WHERE substr(trigger_uri, -length(:tail)) = :tail
UNION SELECT target, '' FROM intents WHERE substr(target, -length(:tail)) = :tail
UNION SELECT result_uri, '' FROM intents WHERE substr(result_uri, -length(:tail)) = :tail
"""
_KNOWS = """
SELECT EXISTS (SELECT 1 FROM pending_notifications WHERE uri = :it)
    OR EXISTS (SELECT 1 FROM journal WHERE trigger_uri = :it)
    OR EXISTS (SELECT 1 FROM intents WHERE target = :it OR cause_id = :it)
"""


@dataclass(frozen=True, slots=True)
class Named:
    """What was said: the record `key` in `collection` of `who` (a handle or did), or the beginning of an act's id.

    Or `link`, to an issue or a comment on GitHub.
    """

    who: str = ""
    collection: str = ""
    key: str = ""
    intent: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is meant: an act of ours, or somebody's record."""

    intent: str = ""
    uri: str = ""


def understand(what: str) -> Named | None:
    """What `what` names; None if it is nothing that one can ask about."""
    said = what.strip().strip("<>\"'")
    if link := _LINK.match(said):
        return Named(_owner(link[1]), _POST, link[2])
    if issue := _ISSUE.match(said):
        return Named(link=issue[0])
    if uri := _URI.match(said):
        return Named(_owner(uri[1]), uri[2], uri[3])
    return Named(intent=said) if _ID.fullmatch(said) else None


def find(connection: sqlite3.Connection, what: str) -> Subject | Unknown:
    """The act or post that `what` means."""
    named = understand(what)
    if named is None:
        return Unknown(
            f"“{what}” is nothing that can be asked about: give a link to a post, an at:// uri, "
            "or at least 4 characters of an act's id"
        )
    if named.link:
        return _on_github(connection, named.link)
    return _act(connection, named.intent) if named.intent else _record(connection, named)


def kept_since(connection: sqlite3.Connection) -> str:
    """The time of the oldest entry that the journal still has, if older ones are gone; else ""."""
    row = connection.execute("SELECT id, at FROM journal ORDER BY id LIMIT 1").fetchone()
    return str(row["at"]) if row and row["id"] > 1 else ""


def _owner(said: str) -> str:
    who = unquote(said)
    return who if who.startswith("did:") else who.removeprefix("@").lower()


def _act(connection: sqlite3.Connection, prefix: str) -> Subject | Unknown:
    query = "SELECT id FROM intents WHERE id >= ? AND id < ? ORDER BY id LIMIT 2"
    found = [str(row["id"]) for row in connection.execute(query, (prefix, f"{prefix}g"))]
    if len(found) > 1:
        return Unknown(f"More than one act has an id that begins with {prefix}: give more of it")
    return Subject(intent=found[0]) if found else Unknown(f"No act has an id that begins with {prefix}")


def _on_github(connection: sqlite3.Connection, link: str) -> Subject | Unknown:
    row = connection.execute("SELECT id FROM intents WHERE result_uri = ? COLLATE NOCASE", (link,)).fetchone()
    return Subject(intent=str(row["id"])) if row else Unknown(f"{link} was made by no act that is known")


def _record(connection: sqlite3.Connection, named: Named) -> Subject | Unknown:
    uri = f"at://{named.who}/{named.collection}/{named.key}"
    if not named.who.startswith("did:"):
        known = _by_handle(connection, named)
        if isinstance(known, Unknown):
            return known
        uri = known or uri
    row = connection.execute("SELECT id FROM intents WHERE result_uri = ?", (uri,)).fetchone()
    # NOTE(self): what has not left yet has no uri, but its record key is chosen already.
    row = (
        row
        or connection.execute(
            "SELECT id FROM intents WHERE rkey = ? AND coalesce(result_uri, '') = ''", (named.key,)
        ).fetchone()
    )
    if row:
        return Subject(intent=str(row["id"]))
    if connection.execute(_KNOWS, {"it": uri}).fetchone()[0]:
        return Subject(uri=uri)
    return Unknown(_unseen(connection, uri, tid_time(named.key)))


def _by_handle(connection: sqlite3.Connection, named: Named) -> str | Unknown:
    """The uri of the record whose owner is given by handle; "" if no such key was ever seen."""
    seen: dict[str, set[str]] = {}
    for row in connection.execute(_WITH_KEY, {"tail": f"/{named.collection}/{named.key}"}):
        seen.setdefault(row["uri"], set()).add((row["handle"] or "").lower())
    theirs = [uri for uri, handles in seen.items() if named.who in handles]
    nobodys = [uri for uri, handles in seen.items() if handles == {""}]
    meant = list(seen) if len(seen) == 1 else theirs or nobodys
    if len(meant) > 1 or (seen and not meant):
        return Unknown(f"Several records have the key {named.key}: give the at:// uri of the one you mean")
    return next(iter(meant), "")


def _unseen(connection: sqlite3.Connection, uri: str, made: datetime | None) -> str:
    if connection.execute("SELECT 1 FROM feed_keys WHERE uri = ?", (uri,)).fetchone():
        return f"{uri} stands in its own feed, but no act of its outbox made it, or the records of that are gone"
    since = kept_since(connection)
    if since and (made is None or iso(made) < since):
        return f"{uri} is not known: the journal reaches back to {since[:10]}, what was before is pruned"
    return f"{uri} was never seen: nothing that reached it, and no act of its own, has that name"
