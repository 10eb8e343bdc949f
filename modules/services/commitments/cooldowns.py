"""Repositories that are left alone for two days: `.memory/repo_cooldown.json`, a list that people can read and edit."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from common.constants import STATE_MAX_BYTES
from common.errors import StorageError
from common.files import read_bounded, write_atomic
from common.state import set_aside
from modules.services.commitments.policy import RepoCooldown, cooldown_of, is_over

FILE = "repo_cooldown.json"


_ALL = TypeAdapter(list[RepoCooldown], config=ConfigDict(defer_build=True))


class Cooldowns:
    """Read once; written in one step whenever it changes. Raises `StorageError`.

    Attributes:
        notice: a line for the owner if the file could not be understood and was set aside.

    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self.notice = ""
        self._known = self._read()

    def standing(self, now: datetime) -> list[RepoCooldown]:
        """Return the cooldowns that have not ended."""
        return [one for one in self._known if not is_over(one, now)]

    def of(self, owner: str, repo: str, now: datetime) -> RepoCooldown | None:
        """The one of a repository, if it stands."""
        return cooldown_of(self._known, owner, repo, now)

    def add(self, new: Iterable[RepoCooldown], now: datetime) -> None:
        """Begin these, and forget those that have ended."""
        after = [*self.standing(now), *new]
        if after == self._known:
            return
        write_atomic(self._path, _ALL.dump_json(after, by_alias=True, indent=2) + b"\n")
        self._known = after

    def _read(self) -> list[RepoCooldown]:
        try:
            return _ALL.validate_json(read_bounded(self._path, STATE_MAX_BYTES))
        except FileNotFoundError:
            return []
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise StorageError(f"Cannot read {self._path}: {error.strerror or error}") from error
            self.notice = f"{FILE} cannot be read ({error.strerror}); {set_aside(self._path)}, starting afresh"
            return []
        except ValidationError:
            self.notice = f"{FILE} is not a list of cooldowns; {set_aside(self._path)}, starting afresh"
            return []
