"""Tells what a home holds of a person, and deletes it: rows and all their copies, archives, media, files.

Deletion takes place while no SOUL lives in the home, so nothing is held in memory and nothing writes it back. Each step
can be repeated: a kill in between leaves the request, and the next start continues with it.
"""

import asyncio
import gzip
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TypeVar

from adapters.storage.local import Storage
from adapters.storage.objects import StoredObject, agent_prefix, media_prefix
from common.clock import Clock
from common.constants import STATE_MAX_BYTES
from common.errors import Transient
from common.files import write_atomic
from common.person import Held, Person, Trace, needles
from common.result import ApiResult, Err
from modules.runtime.database import copies, marks
from modules.runtime.database.database import Database
from modules.runtime.database.file import COPIES
from modules.runtime.database.people import MARKS, PersonalRows, PersonalTable, know_person
from modules.runtime.home import Home, lock_holder
from modules.runtime.journal.people import JOURNAL_OF_PEOPLE
from modules.runtime.journal.types import Entry
from modules.services.commitments.queue import COMMITMENTS_OF_PEOPLE
from modules.services.craft.proposals import CRAFT_OF_PEOPLE
from modules.services.experiences import EXPERIENCES_OF_PEOPLE, delete_owner_lines
from modules.services.identity.entries import see_held
from modules.services.identity.history import SelfHistory, kept_documents, path_of
from modules.services.identity.keeper import SelfKeeper
from modules.services.inbox.received import INBOX_OF_PEOPLE, MESSAGES_OF_PEOPLE
from modules.services.memory import rows as memory_rows
from modules.services.memory.admission import OWNER_SOURCE, Memory
from modules.services.memory.people import MEMORIES_OF_PEOPLE
from modules.services.outbox.people import ACTS_OF_PEOPLE
from modules.services.relationships import RELATIONSHIPS_OF_PEOPLE
from modules.services.rights import records, store, tombstones
from modules.services.rights.identify import identify, trace_of
from modules.services.rights.records import Forgotten, NamingFile
from modules.services.rights.requests import ForgetRequest
from modules.services.rituals.rituals import RITUALS_OF_PEOPLE
from modules.services.sessions.store import SESSIONS_OF_PEOPLE, archives_of, kept_lines, leave_unkept, media_of
from modules.services.work.table import WORK_OF_PEOPLE

# NOTE(self): a mute and the request for no reply stay as a hash (`modules/services/rights/tombstones.py`).
_RIGHTS_OF_PEOPLE = PersonalRows(
    "rights",
    (
        PersonalTable(
            name="ai_preferences",
            theirs="did = :did",
            shown="'declared ' || preference",
            tells="EXISTS (SELECT 1 FROM json_each(preference) WHERE value <> 'unset')",
            at="read_at",
        ),
        PersonalTable(name="muted_people", theirs="did = :did", shown="'muted'", at="since"),
        PersonalTable(name="no_reply_people", theirs="did = :did", shown="'asked for no reply'", at="since"),
    ),
)

STORES = (
    INBOX_OF_PEOPLE,
    MESSAGES_OF_PEOPLE,
    ACTS_OF_PEOPLE,
    COMMITMENTS_OF_PEOPLE,
    WORK_OF_PEOPLE,
    EXPERIENCES_OF_PEOPLE,
    SESSIONS_OF_PEOPLE,
    MEMORIES_OF_PEOPLE,
    _RIGHTS_OF_PEOPLE,
    JOURNAL_OF_PEOPLE,
    RELATIONSHIPS_OF_PEOPLE,
    MARKS,
    RITUALS_OF_PEOPLE,
    CRAFT_OF_PEOPLE,
)


T = TypeVar("T")

_NOT_MEMORY = ("SOUL.md", "SELF.md", ".env")
"""Files of the home's folder that are not memory: the owner is told which of them still name the person."""

_IN_STORE, _COPY, _PACKED = "in the store", "a copy of the home", "a packed talk of yours"
_DATABASE, _LARGE = "an earlier database", f"not searched, as it is larger than {STATE_MAX_BYTES // 1024**2} MiB"
_REASON = "somebody is forgotten"
_NOTES = {"held": "a change waits for your approval: {see}", "refused": "not changed: {why}"}


def forget_talk(connection: sqlite3.Connection) -> tuple[None, Entry]:
    """Remember nothing further of what the owner and the SOUL said in private until now; return an entry on it."""
    leave_unkept(connection)
    delete_owner_lines(connection)
    return None, Entry("life", "memory", "What was said in private is kept no further", "mem", "you asked for it")


class Forgetting:
    """Finds and deletes what the home holds of a person.

    Args:
        home: the folders of the home.
        database: its soul.db.
        storage: holds the archives and media.
        agent_id: the agent to which they belong.
        clock: the time.
        own_handles: returns the SOUL's handles and the owner's; they never count as the person's.

    """

    def __init__(
        self,
        home: Home,
        database: Database,
        storage: Storage,
        agent_id: str,
        clock: Clock,
        *,
        own_handles: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._own_handles = own_handles
        self._home = home
        self._database = database
        self._storage = storage
        self._prefix = agent_prefix(agent_id)
        self._clock = clock

    async def trace(self, who: str) -> Trace:
        """Return what in the home belongs to `who` (a DID or a handle).

        Raises:
            UsageError: several accounts were seen under that handle.

        """
        person = await self._person(who)
        return await self._database.read(lambda connection: trace_of(connection, person))

    async def about(self, trace: Trace) -> list[Held]:
        """Return what each store holds."""

        def rows(connection: sqlite3.Connection) -> tuple[list[Held], list[str]]:
            know_person(connection, trace.person)
            archives = archives_of(connection, trace.person.did, OWNER_SOURCE)
            return [one.about(connection, trace) for one in STORES], [key for key in archives if not archives[key]]

        held, archives = await self._database.read(rows)
        files = await asyncio.to_thread(
            lambda: [*self._own_documents(trace.person), *(self._shown(path) for path, _ in self._changes(trace))]
        )
        return [*held, Held("store", len(archives), tuple(archives)), Held("files", len(files), tuple(files))]

    async def carry_out(self, request: ForgetRequest, *keepers: SelfKeeper) -> Forgotten:
        """Delete everything that belongs to a person in the home; the caller must have locked the home.

        It can be repeated: a kill in between leaves the request, and rows that lead to the rest are deleted last.

        Raises:
            StorageError: the disk refuses.
            Transient: the store or a file cannot be reached.

        """
        trace = await self.trace(request.did)
        person = trace.person
        notes = {}
        for keeper in keepers:
            change = await keeper.forget(person.is_named_in, person.holds_did, reason=_REASON)
            notes[self._shown(path_of(self._home, keeper.document))] = _NOTES.get(change.status, "").format(
                why=change.reason, see=see_held(keeper.document)
            )
        stored, packed = await self._scrub_store(trace) if person.did else (0, [])
        changed = await asyncio.to_thread(self._scrub_files, trace)
        rows = await self._database.run(lambda connection: self._delete_rows(connection, trace))
        await self._database.rewrite()
        named = await self._database.run(lambda connection: self._named_rows(connection, person))
        left = await asyncio.to_thread(lambda: tuple(self._left(person, notes)))
        left += await self._left_in_store(person)
        left, gone = (*left, *packed, *map(NamingFile, named)), sum(trace.copies.values())
        return Forgotten(rows, stored + changed, left, gone, len(trace.copies) - gone)

    async def forget_memory(self, memory: Memory) -> None:
        """Delete a memory and its copies, except for the owner's own lines in talks.

        What was said so far in the owner's talk is not kept any further, as it would bring the memory back. A SOUL that
        is awake rewrites the file itself. The memory goes last: until then, all of this can be repeated.

        Raises as `carry_out`.
        """
        copy = {f"{memory.subject}\n{memory.body}": True}
        trace = Trace(Person(""), copies=copy, words=needles([memory.body]))

        def delete(connection: sqlite3.Connection) -> None:
            know_person(connection, trace.person, trace.without_copies)
            memory_rows.forget(connection, memory.id)
            marks.put(connection, {marks.REWRITE: "a memory"})
            forget_talk(connection)
            for statement in (one for store_of in STORES for one in store_of.copies):
                connection.execute(statement)

        await self._scrub_store(trace)
        await asyncio.to_thread(self._scrub_files, trace)
        await self._database.run(delete)
        await asyncio.to_thread(copies.delete_all, self._home.database)
        if lock_holder(self._home) is None:
            await self._database.rewrite()

    def _own_documents(self, person: Person) -> list[str]:
        """Return the documents that the SOUL writes about itself and that name the person."""
        own = (path_of(self._home, one) for one in kept_documents(self._home) if person.did)
        return [one.path for path in own if (one := self._named_in(path, person, ""))]

    async def _person(self, who: str) -> Person:
        return await self._database.run(lambda rows: identify(rows, who, self._own_handles()))

    async def _scrub_archives(self, trace: Trace) -> tuple[int, list[str], list[NamingFile]]:
        """Return the number of changed archives, the keys of pictures to delete, and owner's archives with the name."""

        def keys(connection: sqlite3.Connection) -> tuple[dict[str, bool], list[str]]:
            know_person(connection, trace.person)
            did = trace.person.did
            return archives_of(connection, did, OWNER_SOURCE), media_of(connection, did)

        archives, media = await self._database.run(keys)
        changed, left = 0, list[NamingFile]()
        for key, is_owner in archives.items():
            if (kept := await self._read(key)) is None:
                continue
            after, pictures = _archived_without(kept.data, trace, is_owner=is_owner)
            media += pictures
            if after != kept.data or not is_owner:
                changed += await self._put(kept, key, after, trace)
            if is_owner and after and (named := _naming(key, _unpacked(after), trace.person, _PACKED)):
                left.append(replace(named, lines=()))
        return changed, media, left

    async def _scrub_store(self, trace: Trace) -> tuple[int, list[NamingFile]]:
        """Return how many objects changed, and the owner's archives that still name the person."""
        changed, media, named = await self._scrub_archives(trace)
        for name, kept in await self._workspace_in_store():
            if not records.is_known(shown := f"workspace/{name}"):
                continue
            text = kept.data.decode(errors="surrogateescape")
            if (left := records.without(shown, text, trace)) != text:
                changed += await self._put(kept, self._prefix + name, left.encode(errors="surrogateescape"), trace)
        for key in media:
            deleted = await self._storage.delete(key)
            if not (isinstance(deleted, Err) and deleted.kind == "not_found"):
                _or_raise(deleted)
                changed += 1
        for session_key in filter(trace.person.holds_did, trace.sessions):
            changed += _or_raise(await self._storage.delete_all(media_prefix(session_key)))
        return changed, named

    async def _workspace_in_store(self) -> list[tuple[str, StoredObject]]:
        """Return name and object of each workspace file in the store; none if the workspace lies in the home."""
        keys = [info.key for info in _or_raise(await self._storage.list(self._prefix)) if info.key.endswith(".md")]
        found = [(key.removeprefix(self._prefix), await self._read(key)) for key in keys]
        return [(name, kept) for name, kept in found if kept is not None]

    async def _read(self, key: str) -> StoredObject | None:
        found = await self._storage.get(key)
        return None if isinstance(found, Err) and found.kind == "not_found" else _or_raise(found)

    async def _put(self, kept: StoredObject, key: str, after: bytes | None, trace: Trace) -> int:
        """Replace an object by what is left of it, or delete it; return how many objects changed."""
        metadata = {name: trace.person.without_did(value) for name, value in kept.metadata.items()}
        if after is None:
            _or_raise(await self._storage.delete(key))
            return 1
        # NOTE(self): a store on a disk keeps the metadata of the previous object beside an object, hence two writes.
        for _ in range(2):
            _or_raise(await self._storage.put(key, after, content_type=kept.content_type, metadata=metadata))
        return 1

    def _delete_rows(self, connection: sqlite3.Connection, trace: Trace) -> int:
        did = trace.person.did
        if not did:
            return 0
        know_person(connection, trace.person, trace.without_copies)
        muted, no_reply = did in store.muted(connection), did in store.no_reply(connection)
        gone = sum(one.forget(connection, trace) for one in STORES)
        tombstones.bury(connection, did, self._clock.now(), muted=muted, no_reply=no_reply)
        for handle in trace.person.handles:
            tombstones.bury(connection, handle, self._clock.now(), muted=False)
        return gone

    def _named_rows(self, connection: sqlite3.Connection, person: Person) -> list[str]:
        know_person(connection, person)
        return [f"soul.db: {place}" for one in STORES for place in one.named(connection)]

    def _changes(self, trace: Trace) -> Iterator[tuple[Path, str]]:
        """Yield the files that change without the person, each with its text without them."""
        for path in sorted({*_below(self._home.memory), *_below(self._home.workspace)}):
            shown = self._shown(path)
            if not records.is_known(shown):
                continue
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            try:
                after = records.without(shown, text, trace)
            except (ValueError, RecursionError):
                continue
            if after != text:
                yield path, after

    def _scrub_files(self, trace: Trace) -> int:
        documents = kept_documents(self._home) if trace.person.did else []
        changed = sum(SelfHistory(self._home, one).forget(trace.person.holds_did) for one in documents)
        for path, after in self._changes(trace):
            write_atomic(path, after.encode(errors="surrogateescape"), mode=path.stat().st_mode & 0o777)
            changed += 1
        return changed

    def _left(self, person: Person, notes: Mapping[str, str]) -> Iterator[NamingFile]:
        """Yield the files that still name the person or may do so; only the owner changes those."""
        database, memory = self._home.database, self._home.memory
        skipped = {database, *(_beside(database, end) for end in ("-wal", "-shm"))}
        beside = (path for path in _below(memory) if path not in skipped and path.parent.name != "forget")
        inside = sorted(path for path in beside if not path.is_relative_to(self._home.store))
        for path in (*(self._home.root / name for name in _NOT_MEMORY), *sorted(_below(self._home.workspace)), *inside):
            shown = self._shown(path)
            if path.parent == database.with_name(COPIES) or path.name.startswith(f"{database.name}."):
                yield NamingFile(shown, note=_DATABASE)
            elif found := self._named_in(path, person, notes.get(shown, "")):
                yield found
        yield from (NamingFile(path.name, note=_COPY) for path in sorted(self._home.root.glob("*.soul")))

    def _named_in(self, path: Path, person: Person, note: str) -> NamingFile | None:
        """Return where a file names the person, that it is too large to tell, or None."""
        if not path.is_file():
            return None
        shown, is_ours = self._shown(path), path.parent == self._home.root
        if path.stat().st_size > STATE_MAX_BYTES:
            return NamingFile(_unnamed(shown, person), note=_LARGE)
        return _naming(shown, path.read_text(encoding="utf-8", errors="replace"), person, note, is_ours=is_ours)

    async def _left_in_store(self, person: Person) -> tuple[NamingFile, ...]:
        """Return the files of the workspace in the store that still name the person."""
        texts = [(name, kept.data.decode(errors="replace")) for name, kept in await self._workspace_in_store()]
        return tuple(filter(None, (_naming(name, text, person, _IN_STORE) for name, text in texts)))

    def _shown(self, path: Path) -> str:
        """Return the path as it is in a home with the usual folders."""
        for folder, name in (
            (self._home.memory, ".memory"),
            (self._home.workspace, "workspace"),
            (self._home.root, ""),
        ):
            if path.is_relative_to(folder):
                return (PurePath(name) / path.relative_to(folder)).as_posix()
        return str(path)


def _below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _naming(path: str, text: str, person: Person, note: str, *, is_ours: bool = False) -> NamingFile | None:
    """Return where a file names the person, or None; a path that is ours (`is_ours`) names nobody."""
    if not person.is_named_in("" if is_ours else path, text):
        return None
    lines = tuple(at for at, line in enumerate(text.splitlines(), start=1) if person.is_named_in(line))
    return NamingFile(path if is_ours else _unnamed(path, person), lines, note)


def _unnamed(path: str, person: Person) -> str:
    """Return the path, or the innermost of its folders, that does not name the person."""
    shown = PurePath(path)
    while person.is_named_in(str(shown)):
        shown = shown.parent
    return str(shown)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _archived_without(data: bytes, trace: Trace, *, is_owner: bool) -> tuple[bytes | None, list[str]]:
    """Return an archive with the lines of others only (None if there are none), and keys of pictures to delete."""
    if not (text := _unpacked(data)):
        return data, []
    kept, media = kept_lines(text, trace, is_owner=is_owner)
    return data if kept == text else gzip.compress(kept.encode(), mtime=0) if kept else None, media


def _unpacked(data: bytes) -> str:
    """Return the text of an archive; "" if it cannot be read."""
    try:
        return gzip.decompress(data).decode()
    except (OSError, EOFError, zlib.error, ValueError):
        return ""


def _or_raise(answer: ApiResult[T]) -> T:
    if isinstance(answer, Err):
        raise Transient(f"The store: {answer.error}", retry_after=answer.retry_after)
    return answer.data
