"""The texts of one SOUL: those of `voice-phrases.json` in its home where that can be used, else those of the skill.

The file may change at any time, by `VoiceWriter` or by hand; it is read again when it has. Nothing is written here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from common.constants import TEXT_MAX_BYTES
from common.files import read_bounded
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.skills.skills import PART, Skills
from modules.services.voice_phrases.phrases import interpolate, read_phrases

SKILL = "voice-phrases"
DEFAULTS = "Defaults"

_Stamp = tuple[int, int, int]


class Phrase(Protocol):
    """Returns an operational text by its name, such as `space.creating`, with its placeholders filled in."""

    def __call__(self, key: str, /, **values: object) -> str: ...


class VoicePhrases:
    """Returns operational texts. A file that cannot be used is told of once for each of its versions."""

    def __init__(self, path: Path, skills: Skills, journal: Journal) -> None:
        self._path = path
        self._skills = skills
        self._journal = journal
        self._stamp: _Stamp | None = None
        self._own: Mapping[str, str] = {}

    def phrase(self, key: str, /, **values: object) -> str:
        """Return the text named `key` with `values` in it. Raises `SkillError` if there is none of that name."""
        return interpolate(self.template(key), values)

    def template(self, key: str) -> str:
        """Return the text named `key`, placeholders unfilled. Raises `SkillError` if there is none of that name."""
        own = self._read().get(key)
        return own if own is not None else self.default(key)

    def default(self, key: str) -> str:
        """Return the text of the skill, placeholders unfilled. Raises `SkillError` if there is none of that name."""
        return self._skills.section(SKILL, f"{DEFAULTS}{PART}{key}")

    def _read(self) -> Mapping[str, str]:
        try:
            stat = self._path.stat()
        except OSError:
            self._stamp, self._own = None, {}
            return self._own
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            self._stamp = stamp
            self._own = self._load()
        return self._own

    def _load(self) -> Mapping[str, str]:
        try:
            return load_phrases(self._path)
        except ValueError as error:
            summary = f"{self._path.name} is not used: {error}"
            reason = "mend it or delete it; until then the texts are those of the skill voice-phrases"
            self._journal.show(Entry("error", SKILL, summary, line="warn", reason=reason))
            return {}


def load_phrases(path: Path) -> dict[str, str]:
    """Return the texts of a file. Raises `ValueError` with what is wrong with it."""
    return read_phrases(load_object(path))


def load_object(path: Path) -> object:
    """Return what a file holds. Raises `ValueError` where that is no JSON."""
    try:
        return json.loads(read_bounded(path, TEXT_MAX_BYTES).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be read as JSON: {error}") from None
