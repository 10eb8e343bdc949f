"""The SOUL's own thoughts of the last 60 days, and the reactions to them: `.memory/expressions.json`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from common.clock import Clock
from modules.runtime.record_file import FileRecord, Moment, RecordFile
from modules.services.peers.relationships import InsightCode

KEPT = timedelta(days=60)


class NoteInsight(Protocol):
    """Stores an insight: its code, and what it is about. Counts it as an event if it is `significant`."""

    def __call__(self, code: InsightCode, about: str, *, significant: bool = False) -> None: ...


class ExpressionEngagement(FileRecord):
    """The reactions of others to a post at `checked_at`."""

    likes: int
    replies: int
    reposts: int
    checked_at: Moment


class Expression(FileRecord):
    """One thought. `timestamp` is when it was accepted; once seen on the network, the time of the post there.

    `prompt_source` is its starting point in SELF.md, `insight` a code: `answered` or `liked`.
    """

    timestamp: Moment
    prompt: str
    prompt_source: str
    text: str
    post_uri: str
    engagement: ExpressionEngagement | None = None
    insight: str | None = None


class Expressions:
    """Stores the thoughts. `notice` is a line for the owner if the file was not as expected.

    `note_insight` is called with each new thought.
    """

    def __init__(self, path: Path, clock: Clock, note_insight: NoteInsight) -> None:
        self._clock = clock
        self._note_insight = note_insight
        self._file = RecordFile(path, "expressions", Expression)
        self.notice = self._file.notice

    def all(self) -> list[Expression]:
        """Return the stored thoughts, oldest first."""
        return sorted(self._file.records.values(), key=lambda one: (one.timestamp, one.post_uri))

    def record(self, uri: str, text: str, *, source: str, prompt: str, at: datetime) -> None:
        """Store a new thought. Raises `StorageError`."""
        self.keep([Expression(timestamp=at, prompt=prompt, prompt_source=source, text=text, post_uri=uri)])
        self._note_insight("Shared", source, significant=True)

    def keep(self, changed: Iterable[Expression], gone: Iterable[str] = ()) -> None:
        """Store new or changed thoughts, and delete the posts `gone` and all that are too old.

        Raises `StorageError`.
        """
        before = dict(self._file.records)
        self._file.records |= {one.post_uri: one for one in changed}
        oldest = self._clock.now() - KEPT
        old = [uri for uri, one in self._file.records.items() if one.timestamp < oldest]
        for uri in (*gone, *old):
            self._file.records.pop(uri, None)
        if self._file.records != before:
            self._file.save()
