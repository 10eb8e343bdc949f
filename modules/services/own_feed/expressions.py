"""The SOUL's own thoughts of 60 days and reactions to them (`.memory/expressions.json`), and their starting points."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from common.clock import Clock
from modules.runtime.record_file import FileRecord, Moment, RecordFile
from modules.services.relationships import InsightCode
from modules.services.skills.skills import Skills

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


_STARTING_POINTS = "expression-prompts"
_BULLET = re.compile(r"^- (?P<text>.+?)(?:\s+\[(?P<source>[\w+-]+)\])?$", re.MULTILINE)


class Prompts:
    """Reads the skill `expression-prompts` at each call, so that a reload takes effect at once."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    def templates(self) -> dict[str, str]:
        """Return the template texts by source, with `{{value}}` or `{{value1}}` and `{{value2}}` in them."""
        return self._skills.subsections(_STARTING_POINTS, "Prompt Templates")

    def fallbacks(self) -> list[tuple[str, str]]:
        """Return (text, source) pairs for a thin SELF.md."""
        section = self._skills.section(_STARTING_POINTS, "Fallback Prompts")
        return [(match["text"], match["source"] or "observation") for match in _BULLET.finditer(section)]

    def all(self) -> list[str]:
        """Return all texts that prompts are made of, variables unfilled, without the examples of invitations."""
        of_picture = self._skills.section("shared-picture", "For a Post")
        names = ("Prompt Templates", "Fallback Prompts")
        return [*(self._skills.section(_STARTING_POINTS, name) for name in names), self.suffix(), of_picture]

    def suffix(self) -> str:
        """Return the ending of each prompt."""
        return self._skills.section(_STARTING_POINTS, "Invitation Suffix").strip()

    def invitations(self, kind: str) -> list[str]:
        """Return the example invitations of a kind: Choice, Bounded or Direct; those of the last fit any post."""
        section = self._skills.subsections(_STARTING_POINTS, "Invitation Prompts")[kind]
        return [match["text"] for match in _BULLET.finditer(section)]
