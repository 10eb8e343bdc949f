"""What of a file of ours is a person's, by who writes the file, and what is left of it without that. Pure.

| file | how it is tied | what goes |
|---|---|---|
| records in JSON | a field that names an account, or the address of what the entry is about | the entry |
| queued commitments and the log of pictures, JSON lines | the same, line by line | the line |
| entries of others in them | an address of theirs, or the account in words | the address, or the account |
| a day of memory | an entry is a memory that was theirs, or names them | the entry, or the names |
| what is told at the start, and logs | the account, our act, its handle after an @, what we said to it | the line |
| the status | it is written anew within seconds | the names |
| CONTEXT.md | as what is told at the start | what the program wrote in it |

No other file is changed: what names the person there is told to the owner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from common.json_lines import split_lines
from common.person import Person, Trace
from modules.services.owner_files.local import with_state

_RECORDS = frozenset(
    {
        "bluesky_conversations.json",
        "discovered_peers.json",
        "expressions.json",
        "github_engagement.json",
        "peer_histories.json",
        "relationships.json",
        "watched_workspaces.json",
    }
)
_LINES = re.compile(r"(?:pending_commitments|post_log)\.jsonl(?:\.\d+)?|post_log\.\d+\.jsonl")
_VIEWS = re.compile(r"\.memory/(?:boot-context[\w.-]*\.md|logs/[^/]+\.log)|workspace/PROSOCHE\.md")
_DAYS = re.compile(r"workspace/memory/[^/]+\.md")
_STATUS = ".memory/status.json"
_CONTEXT = "workspace/CONTEXT.md"
_ACCOUNTS = ("did", "blueskyDid", "authorDid", "author_did")
"""The fields that say whose an entry is."""
_ADDRESSES = ("uri", "rootUri", "sourceThreadUri")
"""The fields whose address an entry is about."""
_PLACES = frozenset(
    {"contexts", "contestedBy", "discoveredInThread", "sourceThreadUri", "identityUri", "parent_uri", "root_uri"}
)
"""The fields with accounts and addresses that an entry can do without."""
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_ENTRY = re.compile(r"^(?=- )", re.MULTILINE)
_GONE = object()


def is_known(path: str) -> bool:
    """Return whether a file of a home, by its path in it, is one that may hold what is a person's."""
    return bool(
        _is_record(path)
        or _LINES.fullmatch(PurePath(path).name)
        or _VIEWS.fullmatch(path)
        or _DAYS.fullmatch(path)
        or path in {_STATUS, _CONTEXT}
    )


def without(path: str, text: str, trace: Trace) -> str:
    """Return the text of such a file without what is the person's; the same text where nothing is.

    Raises:
        ValueError: it is no JSON.

    """
    person = trace.person
    if not person.did and not (_DAYS.fullmatch(path) or _VIEWS.fullmatch(path) or path == _CONTEXT):
        return text
    if _is_record(path):
        data = json.loads(text)
        return _dumped(text, data, _left(data, person))
    if path == _STATUS:
        data = json.loads(text)
        return _dumped(text, data, person.redacted_value(data))
    if _LINES.fullmatch(PurePath(path).name):
        return "".join(_lines_left(text, person))
    if _DAYS.fullmatch(path):
        parts = ((part, _copied(part, trace)) for part in _ENTRY.split(text))
        return "".join(part if goes is None else person.redacted(part) for part, goes in parts if not goes)
    kept = "".join(line for line in split_lines(text) if not _shows(line, trace))
    return with_state(text, "") if path == _CONTEXT and kept != text else kept


def _is_record(path: str) -> bool:
    return PurePath(path).parent.as_posix() == ".memory" and PurePath(path).name in _RECORDS


def _lines_left(text: str, person: Person) -> Iterator[str]:
    """Return the lines that stay; one that cannot be read goes where it holds the DID."""
    for line in split_lines(text):
        if not person.holds_did(line):
            yield line
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if (left := _left(value, person)) is not _GONE:
            yield _json(left) + "\n"


def _left(value: Any, person: Person) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what JSON holds without what is the person's; `_GONE` where all of it is.

    In what is of others the words that hold the account stay, with somebody in its place.
    """
    match value:
        case dict():
            if _is_entry_of(value, person):
                return _GONE
            inside = {
                person.without_did(key): _without_places(item, person) if key in _PLACES else _left(item, person)
                for key, item in value.items()
                if not _is_of(key, person)
            }
            return {key: item for key, item in inside.items() if item is not _GONE}
        case list():
            return [left for item in value if (left := _left(item, person)) is not _GONE]
        case str():
            return person.redacted(value) if person.holds_did(value) else value
        case _:
            return value


def _without_places(value: Any, person: Person) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, list):
        return [_left(item, person) for item in value if not _is_of(item, person)]
    return _GONE if _is_of(value, person) else _left(value, person)


def _is_entry_of(entry: dict[str, Any], person: Person) -> bool:
    """Return whether an entry is the person's; what the owner asked for in their thread is the owner's."""
    params = entry.get("params")
    if isinstance(params, dict) and params.get("hostRequest"):
        return False
    is_about = any(is_by(entry.get(name), person) for name in _ADDRESSES)
    return (
        is_about or any(entry.get(name) == person.did for name in _ACCOUNTS) or _was_met_in_their_posts(entry, person)
    )


def _is_of(value: object, person: Person) -> bool:
    return value == person.did or is_by(value, person)


def _was_met_in_their_posts(entry: dict[str, Any], person: Person) -> bool:
    """Return whether an entry is a candidate of which no account is known, and that only their posts spoke of."""
    contexts = entry.get("contexts")
    are_theirs = isinstance(contexts, list) and bool(contexts) and all(is_by(one, person) for one in contexts)
    return are_theirs and not entry.get("blueskyDid")


def is_by(address: object, person: Person) -> bool:
    """Return whether an address is that of a record of the person's."""
    return isinstance(address, str) and address.startswith(f"at://{person.did}/")


def _copied(entry: str, trace: Trace) -> bool | None:
    """Return whether the memory goes that an entry of a day (`modules/services/memory/days.py`) copies, or None."""
    said = _flat(re.sub(r"^  > ", "", entry, flags=re.MULTILINE))
    told = ((*copy.partition("\n")[::2], goes) for copy, goes in trace.copies.items())
    found = (
        goes
        for subject, body, goes in told
        if said.endswith((f", {_flat(subject)}: {_flat(body)}", f": {_flat(subject)} {_flat(body)}"))
    )
    return next(found, None)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _shows(part: str, trace: Trace) -> bool:
    """Return whether a line tells of the person: by the ids that a line of the log holds, and by what stands in it."""
    try:
        value = json.loads(part) if part.startswith("{") else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and (
        str(value.get("intent")) in trace.intents or str(value.get("trigger")) in trace.posts
    ):
        return True
    labels = (f"@{handle}" for handle in trace.person.handles)
    return trace.person.holds_did(part) or trace.tells(part) or any(_label(label, part) for label in labels)


def _label(label: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(label)}(?![\w-]|\.\w)", text, re.IGNORECASE) is not None


def _dumped(text: str, before: object, after: object) -> str:
    return text if before == after else _json(after, indent=2) + "\n"


def _json(value: object, indent: int | None = None) -> str:
    """Return JSON in which half a surrogate pair, which has no UTF-8, stands as an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
