"""Finds in a file of the home what belongs to a person, removes it, and names the files in which they remain. Pure.

| file | how an entry is tied to the person | what is deleted |
|---|---|---|
| records in JSON | a field that names an account, or the address of what the entry is about | the entry |
| queued commitments and the log of pictures, JSON lines | as in records | the line |
| entries of others in them | an address of the person, or the account in words | the address, or the account |
| a day of memory | an entry is a memory of the person, or names them | the entry, or the names |
| the context at the start, and logs | the account, our act, its handle after an @, what we said to it | the line |
| the status | it is rewritten within seconds | the names |
| CONTEXT.md | as the context at the start | what the program wrote in it |

No other file is changed; the owner is told where other files name the person.

Nothing here names the person: a place is a file and line numbers.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from common.json_lines import split_lines
from common.person import Person, Trace
from common.wording import counted, number
from modules.runtime.journal.types import Entry
from modules.services.owner_files import with_state

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
"""The fields that name the account to which an entry belongs."""
_ADDRESSES = ("uri", "rootUri", "sourceThreadUri")
"""The fields that hold the address of what an entry is about."""
_PLACES = frozenset(
    {"contexts", "contestedBy", "discoveredInThread", "sourceThreadUri", "identityUri", "parent_uri", "root_uri"}
)
"""The fields with accounts and addresses that can be deleted from an entry."""
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_ENTRY = re.compile(r"^(?=- )", re.MULTILINE)
_GONE = object()


def is_known(path: str) -> bool:
    """Return whether a file, given by its path in a home, is of a kind that may hold what belongs to a person."""
    return bool(
        _is_record(path)
        or _LINES.fullmatch(PurePath(path).name)
        or _VIEWS.fullmatch(path)
        or _DAYS.fullmatch(path)
        or path in {_STATUS, _CONTEXT}
    )


def without(path: str, text: str, trace: Trace) -> str:
    """Return the text of such a file without what belongs to the person; the same text if nothing does.

    Raises:
        ValueError: a file of JSON does not hold JSON.

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
    """Yield the lines that stay; an unreadable line that holds the DID is deleted."""
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
    """Return a JSON value without what belongs to the person, or `_GONE` if all of it does.

    In entries of others the texts stay, with a placeholder for the account.
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
    """Return whether an entry belongs to the person; what the owner asked for in the person's thread is the owner's."""
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
    """Return whether an entry is a candidate without a known account that only posts of the person mentioned."""
    contexts = entry.get("contexts")
    are_theirs = isinstance(contexts, list) and bool(contexts) and all(is_by(one, person) for one in contexts)
    return are_theirs and not entry.get("blueskyDid")


def is_by(address: object, person: Person) -> bool:
    """Return whether an address is that of a record of the person."""
    return isinstance(address, str) and address.startswith(f"at://{person.did}/")


def _copied(entry: str, trace: Trace) -> bool | None:
    """Return the flag of the memory that an entry of a day (see `memory/recall.py`) copies, or None."""
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
    """Return whether a line tells of the person: by the ids in a line of the log, or by its text."""
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
    """Return JSON in which half a surrogate pair, which UTF-8 cannot encode, is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


LOOP, FORGOT, REQUEST = "rights", "forgot", "request"

MOST_PLACES = 12
_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class NamingFile:
    """A file that still names the person and that only the owner changes: path in the home, line numbers, a note."""

    path: str
    lines: tuple[int, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.lines[:_MOST_LINES]))
        more = " and more" if len(self.lines) > _MOST_LINES else ""
        where = f"{'line' if len(self.lines) == 1 else 'lines'} {shown}{more}" if shown else ""
        about = "; ".join(filter(None, (where, self.note)))
        return f"{self.path} ({about})" if about else self.path


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of a request: counts of deleted or changed rows and files, and the owner's files that name the person.

    Of the memories, `notes` were deleted and `redacted` lost the person's names.
    """

    rows: int
    files: int
    left: tuple[NamingFile, ...] = ()
    notes: int = 0
    redacted: int = 0

    def __str__(self) -> str:
        deleted = f"; {counted(self.notes, 'memory', 'memories')} deleted" if self.notes else ""
        redacted = f"; names taken out of {counted(self.redacted, 'memory', 'memories')}" if self.redacted else ""
        return f"{counted(self.rows, 'row')}, {counted(self.files, 'file')}{deleted}{redacted}"


def entry_of(done: Forgotten) -> Entry:
    """Return the journal entry about it; the owner sees a line if they have something to do."""
    data = {"act": FORGOT, **asdict(done)}
    reason = f"still named in {places_text(done.left)}; only you change that" if done.left else ""
    is_told = bool(done.left or done.redacted)
    return Entry("life", LOOP, f"Somebody was forgotten: {done}", "warn" if is_told else None, reason, data=data)


def left_in(data: dict[str, Any]) -> tuple[NamingFile, ...]:
    """Return the places in the data of such an entry."""
    return tuple(NamingFile(one["path"], tuple(one["lines"]), one["note"]) for one in data.get("left", ()))


def places_text(places: Iterable[NamingFile], most: int = MOST_PLACES) -> str:
    """Return the first `most` places as one text, each once, and how many more there are."""
    known = list(dict.fromkeys(map(str, places)))
    more = [f"{number(len(known) - most)} more"] if len(known) > most else []
    return ", ".join([*known[:most], *more])
