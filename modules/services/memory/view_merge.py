"""What a hand did to MEMORY.md since it was last rendered, against what was remembered meanwhile. Pure.

Three texts are compared, section by section: the file as it was last rendered, as it is now, and what memory says. Who
changed a section decides it; where both did, the hand does, and what memory said stays in its history. A section that
was taken out of the file is retired, unless memory has changed it since: then it comes back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from modules.services.memory import policy
from modules.services.memory.types import Memory
from modules.services.memory.views import Section


@dataclass(frozen=True, slots=True)
class Rendered:
    """The file as it was last rendered: the hash of all of it, and each section's title and hash in their order."""

    sha256: str = ""
    sections: tuple[tuple[str, str], ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(title for title, _ in self.sections)

    def as_json(self) -> str:
        return json.dumps({"sha256": self.sha256, "sections": self.sections})

    @classmethod
    def from_json(cls, text: str) -> Rendered:
        """The inverse of `as_json`."""
        data = json.loads(text)
        return cls(data["sha256"], tuple((title, digest) for title, digest in data["sections"]))


@dataclass(frozen=True, slots=True)
class ViewMerge:
    """What must be done: sections to remember, each with what stood there before, and memories to retire."""

    saved: tuple[tuple[Section, Memory | None], ...] = ()
    retired: tuple[Memory, ...] = ()
    kept: tuple[tuple[Section, Memory], ...] = field(default=())


def merge(before: Rendered, written: Sequence[Section], living: Sequence[tuple[Section, Memory]]) -> ViewMerge:
    """What the hand that wrote `written` wants of what is remembered (`living`)."""
    base = {policy.key(title): digest for title, digest in before.sections}
    now = {policy.key(section.title): (section, memory) for section, memory in living}
    wanted = {policy.key(section.title): section for section in written}
    saved = {
        key: section
        for key, section in wanted.items()
        if base.get(key) != section_digest(section) and (key not in now or now[key][0] != section)
    }
    retired = tuple(
        memory
        for key, (section, memory) in now.items()
        if key not in wanted and base.get(key) == section_digest(section)
    )
    gone = {memory.id for memory in retired}
    kept = tuple(pair for key, pair in now.items() if key not in saved and pair[1].id not in gone)
    olds = [(section, now[key][1] if key in now else None) for key, section in saved.items()]
    return ViewMerge(tuple(olds), retired, kept)


def missing(merged: ViewMerge, living: Sequence[tuple[Section, Memory]]) -> list[tuple[Section, Memory | None]]:
    """What should be remembered by now and is not: a store may take two bodies, or two subjects, for the same."""
    sections = {section for section, _ in living}
    ids, texts = {memory.id for _, memory in living}, {section.text for section, _ in living}
    lost: list[tuple[Section, Memory | None]] = [pair for pair in merged.saved if pair[0] not in sections]
    lost += [
        (section, memory) for section, memory in merged.kept if not {memory.id} & ids and section.text not in texts
    ]
    return lost


def rendered(text: str, sections: Iterable[Section]) -> Rendered:
    """What to keep of a file that was just rendered."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Rendered(digest, tuple((section.title, section_digest(section)) for section in sections))


def section_digest(section: Section) -> str:
    """SHA-256 of a section, in hex."""
    return hashlib.sha256(f"{section.title}\n{section.text}".encode()).hexdigest()
