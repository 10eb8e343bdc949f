"""The ground rules that ship with the program: read once, at start, and told in every turn as they were then.

Whoever changes the page under a living SOUL changes nothing, and is reported once.
"""

from __future__ import annotations

import hashlib

from common.files import is_machine_trouble
from modules.services.skills.skills import FILE, Skills

_SKILL, _SECTION = "core", "Ground Rules"


class Core:
    """`skills/core`, from the folder that `skills` was loaded from."""

    def __init__(self, skills: Skills) -> None:
        self._path = skills.folder / _SKILL / FILE
        self._sha256 = self._now()
        self._told = False
        self.text = skills.render(_SKILL, _SECTION).strip()

    def check(self) -> str:
        """What to report: a line the first time the page is not what it was at start, else ""."""
        if self._told or self._now() == self._sha256:
            return ""
        self._told = True
        return f"{self._path} changed while the SOUL was running; what it said at start still holds"

    def _now(self) -> str:
        try:
            return hashlib.sha256(self._path.read_bytes()).hexdigest()
        except OSError as error:
            if is_machine_trouble(error):
                return self._sha256
            return f"unreadable: {error.strerror}"
