"""What must be remembered on GitHub beside the rows of work: the threads that we know, and up to where we looked.

The file is `.memory/github_engagement.json`; each change replaces it in one step. A crash between row and file loses
nothing: what was not noted as seen is read again, and is known by its row.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from common.clock import Clock, iso
from modules.lives.github.engagement import Engagement, EngagementEvent, after, is_outlived
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.record_file import RecordFile
from modules.services.inbox import received
from modules.services.inbox.received import ReceivedPost

FILE = "github_engagement.json"

_POSTS_READ = "github.posts_read"


class GitHubState:
    """The records by `owner/name#number`. `notice` is a line for the owner on what is amiss with them."""

    def __init__(self, folder: Path, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._file = RecordFile(folder / FILE, "conversations", Engagement)
        self.notice = self._file.notice

    @property
    def seen_at(self) -> str:
        """Up to when the notifications were taken in, ISO-8601; "" before the first look."""
        return str(self._file.rest.get("seenAt") or "")

    async def posts_since_last_look(self) -> list[ReceivedPost]:
        """Return the Bluesky posts that reached us since `note_posts`, oldest first; at first those of a day."""
        since = await self._database.run(lambda connection: marks.get(connection, _POSTS_READ))
        begin = since or iso(self._clock.now() - timedelta(days=1))
        return await self._database.run(lambda connection: received.taken_in_since(connection, begin))

    async def note_posts(self, rows: Iterable[ReceivedPost]) -> None:
        """Note that these posts were looked through."""
        newest = max((row.received_at for row in rows), default="")
        if newest:
            await self._database.run(lambda connection: marks.put(connection, {_POSTS_READ: newest}))

    def note_checked(self, seen_at: str) -> None:
        """Note that the notifications were read, up to `seen_at`. Raises `StorageError`."""
        self._file.rest |= {"seenAt": seen_at, "lastNotificationCheck": iso(self._clock.now())}
        self._file.save()

    def known(self, key: str) -> Engagement | None:
        """Return what is known of a thread."""
        return self._file.records.get(key)

    def note(self, key: str, event: EngagementEvent) -> None:
        """Note what happened in a thread. Raises `StorageError`."""
        record = after(self._file.records.get(key), event, self._clock.now())
        if record is not None:
            self._file.records[key] = record
            self._file.save()

    def cleanup_old_conversations(self) -> None:
        """Forget the threads that have outlived their use. Raises `StorageError`."""
        now = self._clock.now()
        outlived = [key for key, record in self._file.records.items() if is_outlived(record, now)]
        for key in outlived:
            del self._file.records[key]
        if outlived:
            self._file.save()
