"""Tells what a home holds of a person, and deletes it: rows, archives and copies in the store, media, files.

Everything is deleted while no SOUL lives in the home: so nothing of it is held in memory either, and nothing writes it
back. Each step can be done again; a kill in between leaves the request, and the next start goes on with it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from adapters.storage.keys import agent_prefix, media_prefix
from adapters.storage.store import Storage
from common.clock import Clock
from common.errors import Transient
from common.files import write_atomic
from common.person import Held, Trace, needles
from common.result import ApiResult, Err
from common.settings import Settings
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.database.functions import know_person
from modules.runtime.home import Home
from modules.services.agent.identity.keeper import SelfKeeper
from modules.services.agent.memory.recovery import SNAPSHOT_MARKS
from modules.services.agent.sessions.people import archives_of
from modules.services.rights import scrub, store, tombstones
from modules.services.rights.identify import identify, trace_of
from modules.services.rights.left import Forgotten, NamingFile
from modules.services.rights.people import HOLDERS
from modules.services.rights.requests import ForgetRequest, ForgetRequests

if TYPE_CHECKING:
    from modules.services.agent.memory.postgres_people import PostgresPeople

T = TypeVar("T")

_ARCHIVES, _EXPORTS = "sessions/", "exports/"
_NOT_MEMORY = ("SOUL.md", "SELF.md", ".env")
"""Files of the home's folder that are not memory: what still names somebody there is told."""

_REASON = "somebody is forgotten"
_NOTES = {"held": "a change waits for your yes: soul self held", "refused": "not changed: {}"}


class Forgetting:
    """What the home holds of people.

    Args:
        home: whose files.
        database: its soul.db.
        storage: where archives, copies and media lie.
        agent_id: whose they are.
        clock: the time.
        server: memories that lie on a server instead of in soul.db.

    """

    def __init__(
        self,
        home: Home,
        database: Database,
        storage: Storage,
        agent_id: str,
        clock: Clock,
        *,
        server: PostgresPeople | None = None,
    ) -> None:
        self._home = home
        self._database = database
        self._storage = storage
        self._prefix = agent_prefix(agent_id)
        self._clock = clock
        self._server = server
        self._requests = ForgetRequests(home.memory)

    async def trace(self, who: str) -> Trace:
        """Return where the words of `who` (a DID or a handle) lie. Raises `Transient` if the store is out of reach."""
        relationships = self._home.memory / "relationships.json"
        person = await self._database.run(lambda connection: identify(connection, relationships, who))
        return await self._complete(Trace(person))

    async def about(self, trace: Trace) -> list[Held]:
        """Return what each store holds. Raises `Transient` if the store is out of reach."""

        def rows(connection: sqlite3.Connection) -> list[Held]:
            know_person(connection, trace.person)
            return [holder.about(connection, trace) for holder in HOLDERS]

        held = await self._database.run(rows)
        held += [await self._server.about(trace)] if self._server else []
        stored = await self._stored(trace)
        files = await asyncio.to_thread(lambda: [(path, content) for path, content in self._files(trace)])
        words = [f"{path}: {said}" for path, content in files for said in scrub.passages(path.name, content, trace)]
        return [*held, Held("store", len(stored), tuple(stored)), Held("files", len(files), tuple(words))]

    async def carry_out(self, request: ForgetRequest, self_keeper: SelfKeeper) -> Forgotten:
        """Delete all that the home holds of a person; the home must be locked by the caller.

        The request stays until the caller told what came of it.

        Raises:
            StorageError: the disk refuses.
            Transient: the store, the server or a file is out of reach.

        """
        trace = await self._complete(request.trace)
        self._requests.give(replace(request, trace=trace))
        # NOTE(self): not by words: what the SOUL said to somebody may be what it says of itself.
        named = replace(trace, words=frozenset())
        certain = replace(named, person=replace(trace.person, names=()))
        change = await self_keeper.forget(named.covers, certain.covers, reason=_REASON)
        note = _NOTES.get(change.status, "").format(change.reason)
        stored = await self._scrub_store(trace)
        changed = await asyncio.to_thread(self._scrub_files, trace)
        on_server = await self._server.forget(trace) if self._server else 0
        rows = on_server + await self._database.run(lambda connection: self._delete_rows(connection, trace))
        await self._database.rewrite()
        if self._server:
            await self._server.rewrite()
        left = await asyncio.to_thread(lambda: tuple(self._left(named, note)))
        return Forgotten(rows, stored + changed, left)

    async def _complete(self, trace: Trace) -> Trace:
        named = [key for key in await self._stored(trace) if key.startswith(self._prefix + _ARCHIVES)]
        found = await self._database.run(lambda connection: trace_of(connection, trace.person, named))
        whole = trace.joined(found)
        if self._server is None:
            return whole
        return replace(whole, words=whole.words | needles(await self._server.bodies(whole)))

    async def _stored(self, trace: Trace) -> list[str]:
        """Return the keys of the objects that name the person."""
        return [
            info.key
            for info in _or_raise(await self._storage.list(self._prefix))
            if scrub.names_person(info.key, _or_raise(await self._storage.get(info.key)).data, trace)
        ]

    async def _scrub_store(self, trace: Trace) -> int:
        whole = await self._database.run(lambda connection: archives_of(connection, trace.sessions))
        changed = 0
        for key in sorted({*await self._stored(trace), *whole}):
            found = await self._storage.get(key)
            if isinstance(found, Err) and found.kind == "not_found":
                continue
            kept = _or_raise(found)
            # NOTE(self): lines of a copy refer to each other; a new one is written at the next heartbeat.
            goes = key in whole or key.startswith(self._prefix + _EXPORTS)
            after = None if goes else scrub.scrubbed(key, kept.data, trace)
            if after is None:
                _or_raise(await self._storage.delete(key))
            else:
                put = self._storage.put(key, after, content_type=kept.content_type, metadata=kept.metadata)
                _or_raise(await put)
            changed += 1
        for session_key in trace.sessions:
            changed += _or_raise(await self._storage.delete_all(media_prefix(session_key)))
        return changed

    def _delete_rows(self, connection: sqlite3.Connection, trace: Trace) -> int:
        know_person(connection, trace.person)
        did = trace.person.did
        muted, no_reply = did in store.muted(connection), did in store.no_reply(connection)
        gone = sum(holder.forget(connection, trace) for holder in HOLDERS)
        for name in SNAPSHOT_MARKS:
            marks.remove(connection, name)
        if did:
            tombstones.bury(connection, did, self._clock.now(), muted=muted, no_reply=no_reply)
        return gone

    def _files(self, trace: Trace) -> Iterator[tuple[Path, bytes]]:
        """Return the files of the home that name the person, but for the database, the store and the requests."""
        memory = self._home.memory
        for path in sorted({*_below(memory), *_below(self._home.workspace)}):
            inside = path.is_relative_to(memory)
            if inside and (path.parent.name == "forget" or path.is_relative_to(self._home.store)):
                continue
            if path in {self._home.database, *(_beside(self._home.database, end) for end in ("-wal", "-shm"))}:
                continue
            content = path.read_bytes()
            if scrub.names_person(path.name, content, trace):
                yield path, content

    def _scrub_files(self, trace: Trace) -> int:
        changed = 0
        for path, content in self._files(trace):
            if self._is_owners(path) or path.name == "self-held.json":
                continue
            after = scrub.scrubbed(path.name, content, trace)
            if path.parent.name == "self-history" or after is None:
                path.unlink()
            else:
                write_atomic(path, after, mode=path.stat().st_mode & 0o777)
            changed += 1
        return changed

    def _is_owners(self, path: Path) -> bool:
        """Return whether only the owner changes a file: those of the workspace that are no views of memory."""
        view = path.name == "MEMORY.md" or path.parent.name == "memory"
        return path.is_relative_to(self._home.workspace) and not view

    def _left(self, named: Trace, note: str) -> Iterator[NamingFile]:
        for path in (*(self._home.root / name for name in _NOT_MEMORY), *sorted(_below(self._home.workspace))):
            if not path.is_file():
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            shown = self._shown(path)
            if not named.covers(str(shown), text):
                continue
            lines = tuple(at for at, line in enumerate(text.splitlines(), start=1) if named.covers(line))
            while named.covers(str(shown)):
                shown = shown.parent
            yield NamingFile(str(shown), lines, note if path == self._home.self_md else "")

    def _shown(self, path: Path) -> Path:
        return path.relative_to(self._home.root) if path.is_relative_to(self._home.root) else path


def open_people_server(settings: Settings) -> PostgresPeople | None:
    """Return what finds people in memories on a server; None where memories lie in soul.db. The caller closes it."""
    url = settings.database_url.get_secret_value()
    if not url:
        return None
    from modules.services.agent.memory.postgres_people import PostgresPeople  # noqa: PLC0415 - an optional library

    return PostgresPeople(url, settings.agent_name)


def _below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _or_raise(answer: ApiResult[T]) -> T:
    if isinstance(answer, Err):
        raise Transient(f"The store: {answer.error}", retry_after=answer.retry_after)
    return answer.data
