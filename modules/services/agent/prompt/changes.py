"""Which files of the prompt changed, and when: one JSON line a change, for the owner who asks what moved.

A change is written down before its hash is: a crash in between tells the same change twice, never none. What was never
seen before is no change. A file that is gone is told as a change to nothing.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from common.clock import Clock, iso
from common.files import append_bounded
from common.json_lines import json_line
from common.state import Json, load_state, save_state
from modules.runtime.llm.types import CacheGroup

_FILES_KEPT = 200


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file as it is now: its bytes, empty when it is not there, and how often it is meant to change."""

    content: bytes
    group: CacheGroup


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the file: SHA-256 before and after ("" for a file that is not there), and the sizes."""

    at: str
    file: str
    old: str
    new: str
    bytes_old: int
    bytes_new: int
    group: CacheGroup


class Changes:
    """Compares each turn's files with what they were.

    Args:
        path: the JSON lines; when it has grown too large it becomes `<name>.1`, and a new one begins.
        hashes: the state file that remembers what each file was.
        clock: says when.

    """

    def __init__(self, path: Path, hashes: Path, clock: Clock) -> None:
        self._path = path
        self._hashes = hashes
        self._clock = clock
        self._alone = threading.Lock()
        loaded = load_state(hashes, {}, fits=_fits)
        self.notice = loaded.notice
        self._known = {name: (str(entry[0]), int(entry[1])) for name, entry in loaded.data.items()}

    def note(self, files: Mapping[str, FileSnapshot]) -> tuple[Change, ...]:
        """What changed since these files were last seen. Raises `StorageError`. May be called from any thread."""
        with self._alone:
            return self._note(files)

    def _note(self, files: Mapping[str, FileSnapshot]) -> tuple[Change, ...]:
        now, changes, moved = iso(self._clock.now()), list[Change](), False
        for name, seen in files.items():
            digest = hashlib.sha256(seen.content).hexdigest() if seen.content else ""
            known = self._known.get(name)
            if known is None and not digest:
                continue
            self._known.pop(name, None)
            self._known[name] = (digest, len(seen.content))
            if known is not None and known[0] == digest:
                continue
            if known is not None:
                changes.append(Change(now, name, known[0], digest, known[1], len(seen.content), seen.group))
            moved = True
        if changes:
            append_bounded(self._path, b"".join(json_line(asdict(change)) for change in changes))
        if moved:
            self._known = dict(list(self._known.items())[-_FILES_KEPT:])
            save_state(self._hashes, {name: list(entry) for name, entry in self._known.items()})
        return tuple(changes)


def _fits(state: Json) -> bool:
    """Whether each entry is a hash and a size."""
    return all(
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], int)  # noqa: PLR2004
        for entry in state.values()
    )
