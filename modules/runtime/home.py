"""The home of one SOUL: its files, the lock that lets only one process live there, and the watch over SOUL.md.

The lock belongs to the operating system: a killed process loses it at once.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from common.clock import iso
from common.constants import SELF_MAX_BYTES, TEXT_MAX_BYTES
from common.errors import ConfigError, HomeLocked, IdentityError
from common.files import expanded, raise_machine_trouble, read_bounded, storage_error, write_atomic

MOVED = "MOVED"
"""The file in `.memory` of a home that lives on elsewhere; its content is shown to whoever starts the SOUL here."""
RESTORED = ".soul-restored"
"""The folder of a home that holds what an interrupted restore has still to move."""

_LOCK_TRIES = 6
_LOCK_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Home:
    """The paths of one SOUL's files. `memory` may be elsewhere (MEMORY_DIR), the rest is under `root`."""

    root: Path
    memory: Path

    @classmethod
    def at(cls, root: Path, memory: Path | None = None) -> Home:
        """Return the home at `root`, with links resolved; a relative `memory` is taken from there.

        Raises:
            ConfigError: `memory` is set and does not exist, or the memory folder, set or not, is empty although a SOUL
                lived in it, as when its disk is not mounted: a new life would begin.

        """
        root = root.resolve()
        home = cls(root, root / ".memory" if memory is None else (root / expanded(memory)).resolve())
        if memory is not None and not home.memory.exists():
            remedy = "Mount its disk; or make that folder, if this SOUL is to begin its life there."
            raise ConfigError(f"MEMORY_DIR {home.memory} does not exist", remedy=remedy)
        _refuse_emptied(home)
        return home

    @property
    def env(self) -> Path:
        return self.root / ".env"

    @property
    def soul(self) -> Path:
        return self.root / "SOUL.md"

    @property
    def self_md(self) -> Path:
        return self.root / "SELF.md"

    @property
    def voice_phrases(self) -> Path:
        """Operational texts in the SOUL's own words; the file is optional."""
        return self.root / "voice-phrases.json"

    @property
    def workspace(self) -> Path:
        """The folder of optional files: USER.md, GOALS.md, MEMORY.md and the like."""
        return self.root / "workspace"

    @property
    def lock(self) -> Path:
        return self.memory.with_name(self.memory.name + ".lock")

    @property
    def database(self) -> Path:
        return self.memory / "soul.db"

    @property
    def store(self) -> Path:
        """The folder of archives and pictures, if no other store is set."""
        return self.memory / "store"

    @property
    def status(self) -> Path:
        return self.memory / "status.json"

    @property
    def usage_log(self) -> Path:
        """The log of what each call of the model used."""
        return self.memory / "llm-usage.jsonl"

    def signs_of_life(self) -> tuple[str, ...]:
        """Return the names of what only a SOUL that has lived here leaves behind, beside its database."""
        files = [path.name for path in (self.status, self.usage_log) if path.exists()]
        stored = any(path.is_file() for path in self.store.rglob("*")) if self.store.is_dir() else False
        return (*files, *([self.store.name] if stored else []))

    @property
    def session(self) -> Path:
        return self.memory / "atproto_session.json"

    @property
    def watch_session(self) -> Path:
        """The session that the watcher uses while the SOUL sleeps."""
        return self.memory / "watch_session.json"

    @property
    def logs(self) -> Path:
        return self.memory / "logs"


def _refuse_emptied(home: Home) -> None:
    """Raise `ConfigError` if the memory folder is empty although a SOUL has lived in it, and none lives there now."""
    folder = home.memory
    has_lived = home.lock.exists() and home.lock.stat().st_size > 0
    if has_lived and folder.is_dir() and not any(folder.iterdir()) and lock_holder(home) is None:
        remedy = f"Mount its disk; or delete {home.lock}, if this SOUL is to begin a new life."
        raise ConfigError(
            f"The memory in {folder} is gone: the folder is empty, though a SOUL has lived there", remedy=remedy
        )


class HomeLock:
    """Holds the home for this process, as a context manager.

    Raises:
        HomeLocked: another process lives here; the message says which.

    """

    def __init__(self, home: Home, *, agent_name: str, started_at: datetime) -> None:
        self._home = home
        self._holder = {"pid": os.getpid(), "agent": agent_name, "started": iso(started_at)}
        self._file: int | None = None

    def __enter__(self) -> Self:
        path = self._home.lock
        try:
            self._home.memory.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise storage_error(path, error) from error
        try:
            _lock(handle)
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(self._holder).encode(), 0)
        except BlockingIOError:
            holder = os.pread(handle, 4096, 0).decode(errors="replace")
            os.close(handle)
            raise HomeLocked(
                f"{self._home.root} is already lived in by {_describe(holder)}",
                remedy="Stop that process first, or give this SOUL a home of its own with --home.",
            ) from None
        except OSError as error:
            os.close(handle)
            raise storage_error(path, error) from error
        self._file = handle
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            # NOTE(self): a start that failed before there was a database does not count as a life.
            if not self._home.database.exists():
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _lock(handle: int) -> None:
    """Take the lock. `soul status` holds it for a moment when it looks, so a refusal is tried again."""
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
        else:
            return
    raise BlockingIOError


def lock_holder(home: Home) -> int | None:
    """Return the pid of the process that lives here now, or None."""
    try:
        handle = os.open(home.lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise_machine_trouble(home.lock, error)
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(os.pread(handle, 4096, 0))
    finally:
        os.close(handle)
    return None


class SoulDocument:
    """SOUL.md as it was at the start; a change takes effect at the next start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.text, self.sha256 = _read_soul(path)

    def check(self) -> None:
        """Raise `IdentityError` if SOUL.md is gone or has changed since the start."""
        _, now = _read_soul(self._path)
        if now != self.sha256:
            raise IdentityError(
                f"{self._path} changed while the SOUL was running",
                remedy="If you changed it, start again; if not, restore it from a copy you trust.",
            )


def read_self(home: Home) -> str:
    """Return SELF.md; "" if there is none, or if it cannot be read, which `check_self` reports."""
    try:
        return _read_self(home)
    except IdentityError:
        return ""


def check_self(home: Home) -> None:
    """Raise `IdentityError` if SELF.md exists but cannot be read: it would be missing from every prompt."""
    _read_self(home)


def _read_self(home: Home) -> str:
    remedy = "Save it as UTF-8 text, or restore an earlier one: `soul self log` shows them."
    try:
        content = read_bounded(home.self_md, SELF_MAX_BYTES)
        # NOTE(self): as in text mode: every line end becomes one newline.
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise IdentityError(f"{home.self_md} is not UTF-8 text", remedy=remedy) from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise IdentityError(f"{home.self_md} is larger than {SELF_MAX_BYTES // 1024} KiB", remedy=remedy) from None
        raise IdentityError(f"{home.self_md} cannot be read: {error.strerror}", remedy=remedy) from error


def ensure_self(home: Home, *, template: str, agent_name: str, today: str) -> bool:
    """Create SELF.md from the template if there is none; return whether it was created. Raises `StorageError`."""
    if home.self_md.exists():
        return False
    write_atomic(home.self_md, template.replace("{{AGENT_NAME}}", agent_name).replace("{{DATE}}", today), mode=0o644)
    return True


def _read_soul(path: Path) -> tuple[str, str]:
    remedy = "Restore it from a copy, or write it anew: it says who this SOUL is, and only you may."
    try:
        raw = read_bounded(path, TEXT_MAX_BYTES)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise IdentityError(f"{path} is missing: identity undefined", remedy=remedy) from None
    except UnicodeDecodeError:
        raise IdentityError(f"{path} is not UTF-8 text", remedy=remedy) from None
    except OSError as error:
        raise IdentityError(f"{path} cannot be read: {error.strerror}", remedy=remedy) from error
    if not text.strip():
        raise IdentityError(f"{path} is empty: identity undefined", remedy=remedy)
    return text, hashlib.sha256(raw).hexdigest()


def _pid(holder: bytes) -> int | None:
    try:
        return int(json.loads(holder)["pid"])
    except (ValueError, KeyError, TypeError):
        return None


def _describe(holder: str) -> str:
    try:
        data = json.loads(holder)
        return f"{data['agent']} (pid {data['pid']}, since {data['started']})"
    except (ValueError, KeyError, TypeError):
        return "another process"
