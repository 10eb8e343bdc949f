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
from modules.runtime.journal import rows
from modules.services.coding import trajectory
from modules.services.explanation.story import Unknown
from modules.services.inbox import messages, received
from modules.services.inbox.messages import MESSAGES
from modules.services.outbox import feed_keys, store

_LINK = re.compile(r"https?://[^/?#]+/profile/([^/?#]+)/post/([\w.~:-]+)", re.IGNORECASE)
_URI = re.compile(r"at://([^/?#]+)/([\w.-]+)/([\w.~:-]+)")
_ISSUE = re.compile(r"https?://[^/?#]+/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+(?:#issuecomment-\d+)?", re.IGNORECASE)
_THREAD = re.compile(r"(?:^|/)(?P<repo>[\w.-]+/[\w.-]+)(?:/(?:issues|pull)/|#)(?P<number>\d+)$", re.IGNORECASE)
_THREAD_CAUSE = re.compile(r"(?:github:(?P<thread>[^/]+/[^/]+)/|(?:review|revision):(?P<pull>[^@]+)@).*")
_NUMBERED = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}#[0-9]{1,9}")
_MESSAGE = re.compile(rf"{MESSAGES}[^/\s]+/\S+")
_TASK = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}#[0-9]{1,9}/task-[0-9]{1,9}")
_ID = re.compile(r"[0-9a-f]{4,32}")
_POST = "app.bsky.feed.post"


@dataclass(frozen=True, slots=True)
class Named:
    """What was said: the record `key` in `collection` of `who` (a handle or did), or the beginning of an act's id.

    Or `link`, to an issue or a comment on GitHub, or `owner/repo#12`; `message`, the name of a direct message; or
    `task`, the key of one.
    """

    who: str = ""
    collection: str = ""
    key: str = ""
    intent: str = ""
    link: str = ""
    message: str = ""
    task: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is meant: an act of ours, or what was decided about by its name.

    That is somebody's record or direct message, a task of a plan, or an issue or pull request.
    """

    intent: str = ""
    uri: str = ""


def understand(what: str) -> Named | None:
    """What `what` names; None if it is nothing that one can ask about."""
    said = what.strip().strip("<>\"'")
    if link := _LINK.match(said):
        return Named(_owner(link[1]), _POST, link[2])
    if issue := _ISSUE.match(said) or _NUMBERED.fullmatch(said):
        return Named(link=issue[0])
    if uri := _URI.match(said):
        return Named(_owner(uri[1]), uri[2], uri[3])
    if message := _MESSAGE.fullmatch(said):
        return Named(message=message[0])
    if is_task(said):
        return Named(task=said)
    return Named(intent=said) if _ID.fullmatch(said) else None


def find(connection: sqlite3.Connection, what: str) -> Subject | Unknown:
    """The act or post that `what` means."""
    named = understand(what)
    if named is None:
        return Unknown(
            f"“{what}” is nothing that can be asked about: give a link to a post, an at:// uri, an issue or pull "
            "request as owner/repo#12, a task as owner/repo#12/task-3, or at least 4 characters of an act's id"
        )
    if named.message:
        return _message(connection, named.message)
    if named.task:
        return _task(connection, named.task)
    if named.link:
        return _on_github(connection, named.link)
    return _act(connection, named.intent) if named.intent else _record(connection, named)


def is_task(key: str) -> bool:
    """Whether a cause is the key of a task of a plan."""
    return bool(_TASK.fullmatch(key))


def thread_of(cause: str) -> str:
    """Return the issue or pull request that a cause is about, `owner/repo#12`; "" where it is about none."""
    found = _THREAD_CAUSE.fullmatch(cause)
    return (found["thread"] or found["pull"]) if found else ""


def became_of(connection: sqlite3.Connection, url: str) -> list[str]:
    """Return the causes of what became of an issue or pull request of ours: its merge, and rounds after a review."""
    thread = _THREAD.search(url)
    if thread is None:
        return []
    key = f"{thread['repo']}#{thread['number']}".lower()
    merge, revision = f"merge:{key}", f"revision:{key}@"
    named = rows.names_about(connection, [merge, revision])
    return [one for one in named if one.lower() == merge or one.startswith(revision)]


def _owner(said: str) -> str:
    who = unquote(said)
    return who if who.startswith("did:") else who.removeprefix("@").lower()


def _act(connection: sqlite3.Connection, prefix: str) -> Subject | Unknown:
    found = store.starting_with(connection, prefix)
    if len(found) > 1:
        return Unknown(f"More than one act has an id that begins with {prefix}: give more of it")
    return Subject(intent=found[0].id) if found else Unknown(f"No act has an id that begins with {prefix}")


def _on_github(connection: sqlite3.Connection, link: str) -> Subject | Unknown:
    thread = _THREAD.search(link)
    key = f"{thread['repo']}#{thread['number']}".lower() if thread else ""
    made = store.opened_thread(connection, *key.split("#")) if key else None
    if made := made or store.at_result(connection, link, any_case=True):
        return Subject(intent=made.id)
    reviews = (f"review:{key}@", f"revision:{key}@")
    about = rows.names_about(connection, [*reviews, f"github:{key}/"]) if key else []
    acted = [one for one in about if store.names(connection, one)]
    reviewed = [one for one in acted if one.startswith(reviews)]
    # NOTE(self): a look that came to nothing is mostly the newest, and tells nothing of what was done.
    meant = next(iter((*reviewed, *acted, *about)), "")
    return Subject(uri=meant) if meant else Unknown(f"{link} was made by no act that is known")


def _task(connection: sqlite3.Connection, key: str) -> Subject | Unknown:
    known = trajectory.latest(connection, key) or store.names(connection, key)
    return Subject(uri=key) if known else Unknown(f"{key} is no task that it worked on")


def _message(connection: sqlite3.Connection, name: str) -> Subject | Unknown:
    ours = store.at_result(connection, name)
    if ours:
        return Subject(intent=ours.id)
    if messages.named(connection, name) or rows.names(connection, name):
        return Subject(uri=name)
    return Unknown(f"{name} was never seen: no direct message that reached it, and none of its own, has that name")


def _record(connection: sqlite3.Connection, named: Named) -> Subject | Unknown:
    uri = f"at://{named.who}/{named.collection}/{named.key}"
    if not named.who.startswith("did:"):
        known = _by_handle(connection, named)
        if isinstance(known, Unknown):
            return known
        uri = known or uri
    # NOTE(self): what has not left yet has no uri, but its record key is chosen already.
    ours = store.at_result(connection, uri) or store.unsent_with_key(connection, named.key)
    if ours:
        return Subject(intent=ours.id)
    if received.get(connection, uri) or rows.names(connection, uri) or store.names(connection, uri):
        return Subject(uri=uri)
    return Unknown(_unseen(connection, uri, tid_time(named.key)))


def _by_handle(connection: sqlite3.Connection, named: Named) -> str | Unknown:
    """The uri of the record whose owner is given by handle; "" if no such key was ever seen."""
    # NOTE(self): a record key is unique enough to find a post by; whose it is decides only between several.
    tail = f"/{named.collection}/{named.key}"
    seen: dict[str, set[str]] = {uri: {""} for uri in store.uris_ending_in(connection, tail)}
    for uri, handle in (*received.with_key(connection, tail), *rows.with_key(connection, tail)):
        seen.setdefault(uri, set()).add(handle.lower())
    theirs = [uri for uri, handles in seen.items() if named.who in handles]
    nobodys = [uri for uri, handles in seen.items() if handles == {""}]
    meant = list(seen) if len(seen) == 1 else theirs or nobodys
    if len(meant) > 1 or (seen and not meant):
        return Unknown(f"Several records have the key {named.key}: give the at:// uri of the one you mean")
    return next(iter(meant), "")


def _unseen(connection: sqlite3.Connection, uri: str, made: datetime | None) -> str:
    if feed_keys.shows(connection, uri):
        return f"{uri} stands in its own feed, but no act of its outbox made it, or the records of that are gone"
    since = rows.kept_since(connection)
    if since and (made is None or iso(made) < since):
        return f"{uri} is not known: the journal reaches back to {since[:10]}, what was before is pruned"
    return f"{uri} was never seen: nothing that reached it, and no act of its own, has that name"
