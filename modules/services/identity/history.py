"""The versions of SELF.md in `.memory/self-history/`: `<time>.md` is the text, `<time>.json` describes it.

GOALS.md and HEARTBEAT.md of the workspace are kept in the same way, in `goals-history` and `heartbeat-history`, and
each of the SOUL's own skills in `skill-NAME-history`.

A new version is written as `<time>.next` before SELF.md changes and renamed afterwards, so that after a crash the next
user of the history knows whether the change took effect. The one change that waits for the owner is in
`.memory/self-held.json`. Nothing is held in memory, and one user at a time has access: see `alone`.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, Self, TypeGuard

from adapters.storage.objects import SKILL_FILE, SKILL_NAME
from common.clock import iso, parse_iso_or_none
from common.constants import SELF_MAX_BYTES, TEXT_MAX_BYTES
from common.errors import StorageError, Transient
from common.files import Json, load_state, read_bounded, save_state, storage_error, write_atomic
from common.json_lines import json_line, json_object, split_lines
from modules.runtime.home import Home
from modules.services.identity.entries import DOCUMENTS, OWN_SKILL, SELF, HeldEdit, Version
from modules.services.identity.policy import diff_lines, reapplied

STALE = "lines that it changes were changed since, so it can only be rejected, and ordered again if it is still wanted"
HISTORY_KEPT = 50
LOOKED_BACK = 20
LOCK_WAIT_S = 10.0

_PRIVATE = 0o600
_REJECTED = "rejected"
_LOCK_PAUSE_S = 0.02
_NAME = re.compile(r"\d{8}T\d{9}Z")
_SKILL = re.compile(f"skill-({SKILL_NAME})-history")
_NAME_FORMAT = "%Y%m%dT%H%M%S%fZ"
_TOLD = ("at", "by", "reason", "sha256")


class SelfHistory:
    """The versions of one document (one of `DOCUMENTS` or an own skill); to be used inside `alone` or `reading` only.

    Attributes:
        amiss: a line for the owner after the waiting change could not be read and was set aside.

    """

    def __init__(self, home: Home, document: str = SELF) -> None:
        stem = document.removesuffix(".md").lower().replace(OWN_SKILL, "skill-")
        self._document = path_of(home, document)
        self._folder = home.memory / f"{stem}-history"
        self.held_file = home.memory / f"{stem}-held.json"
        self.amiss = ""

    @property
    def is_kept(self) -> bool:
        """Whether there is a history: always for SELF.md, for other documents since their first change by the SOUL."""
        return self._folder.exists()

    @contextmanager
    def alone(self) -> Iterator[Self]:
        """Lock out all other users, in this process or another, and repair what a crash left.

        Raises:
            StorageError: the disk refuses.
            Transient: another user holds the lock for too long.

        """
        try:
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        except OSError as error:
            raise storage_error(self._folder, error) from error
        try:
            _lock(handle, self._document)
            self._settle()
            yield self
        finally:
            os.close(handle)

    @contextmanager
    def reading(self) -> Iterator[Self]:
        """Do as `alone`, to read; a history that is missing or cannot be written is left as it is, without a lock."""
        with self.alone() if os.access(self._folder, os.W_OK) else nullcontext():
            yield self

    def current(self) -> bytes:
        """Return the text of the document; empty if there is none. Raises `StorageError`."""
        try:
            return read_bounded(self._document, SELF_MAX_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise storage_error(self._document, error) from error
            raise StorageError(
                f"{self._document} is larger than {SELF_MAX_BYTES // 1024} KiB: it is neither read nor changed",
                remedy="Shorten it, or move it away: a new one is made.",
            ) from error

    def notice(self, now: datetime) -> Version | None:
        """Keep the document as a version if it was edited by hand; return the new version, or None."""
        current, newest = self.current(), self.newest()
        if not current or (newest is not None and newest.sha256 == sha256(current)):
            return None
        reason = "edited by hand" if newest else "as it was found"
        version = self._tell(current, now, by="hand", reason=reason, cites=())
        write_atomic(self._text(version.name), current, mode=_PRIVATE)
        self._forget_the_oldest()
        return version

    def replace(self, content: bytes, now: datetime, *, by: str, reason: str, cites: tuple[str, ...]) -> Version:
        """Make `content` the document and its newest version. The old text must be a version already: see `notice`."""
        version = self._tell(content, now, by=by, reason=reason, cites=cites)
        write_atomic(self._staged(version.name), content, mode=_PRIVATE)
        write_atomic(self._document, content, mode=0o644)
        self._arrive(version.name)
        self._forget_the_oldest()
        return version

    def erase(self, lines: Collection[str]) -> None:
        """Delete each version that holds one of these lines."""
        for name in self._names():
            text = self._text(name).read_text(encoding="utf-8", errors="replace")
            if not frozenset(lines).isdisjoint(text.splitlines()):
                self._text(name).unlink()
                self._told(name).unlink(missing_ok=True)

    def forget(self, holds: Callable[[str], bool]) -> int:
        """Delete versions whose text names a person, and remove the person from citations; return how many changed."""
        changed = 0
        with self.alone():
            for name in self._names():
                text, told = self._text(name), self._told(name)
                if holds(text.read_text(encoding="utf-8", errors="replace")):
                    text.unlink()
                    told.unlink(missing_ok=True)
                    changed += 1
                    continue
                version = self._version(name)
                cites = tuple(cite for cite in version.cites if not holds(cite))
                if cites != version.cites:
                    self._write_told(replace(version, cites=cites))
                    changed += 1
            rejected = self.rejected()
            kept = [one for one in rejected if not any(map(holds, (one.reason, *one.cites)))]
            if kept != rejected:
                self._keep_rejected(kept)
                changed += 1
        return changed

    def versions(self) -> list[Version]:
        """Return all versions, newest first."""
        return [self._version(name) for name in self._names()]

    def newest(self) -> Version | None:
        """Return the newest version, or None."""
        names = self._names()
        return self._version(names[0]) if names else None

    def find(self, name: str) -> Version | None:
        """Return the version with that name or unique beginning of a name, or None."""
        matches = [own for own in self._names() if own.startswith(name)]
        return self._version(matches[0]) if name and len(matches) == 1 else None

    def read(self, version: Version) -> bytes:
        """Return the text of a version. Raises `StorageError`."""
        try:
            return read_bounded(self._text(version.name), SELF_MAX_BYTES)
        except OSError as error:
            raise storage_error(self._text(version.name), error) from error

    def taken_back(self) -> frozenset[str]:
        """Return the lines that the owner removed from the document and that are still absent."""
        versions = self.versions()[: LOOKED_BACK + 1]
        lines = [frozenset(self.read(one).decode(errors="replace").splitlines()) for one in versions]
        steps = zip(versions, lines, lines[1:], strict=False)
        gone = frozenset[str]().union(*(before - after for one, after, before in steps if one.by == "owner"))
        return frozenset(line for line in gone - (lines[0] if lines else frozenset()) if line.strip())

    def held(self) -> HeldEdit | None:
        """Return the waiting change, rebased on today's text; unchanged if it does not apply or its base is gone."""
        held, today = self._stored(), self.current()
        if held is None or not self.is_stale(held):
            return held
        base = self._base(held).decode(errors="replace")
        text = reapplied(base, held.content, today.decode(errors="replace")) if base else None
        return held if text is None else replace(held, content=text, base=sha256(today))

    def replaced_by(self, held: HeldEdit) -> bytes:
        """Return the text of today, or the one from which a change that no longer applies was made."""
        return self._base(held) if self.is_stale(held) else self.current()

    def _base(self, held: HeldEdit) -> bytes:
        """Return the text from which a change was made; b"" if it is no longer kept."""
        return next((self.read(one) for one in self.versions() if one.sha256 == held.base), b"")

    def is_stale(self, held: HeldEdit) -> bool:
        """Return whether a change was not made from today's text."""
        return bool(held.base) and held.base != sha256(self.current())

    def _stored(self) -> HeldEdit | None:
        loaded = load_state(self.held_file, {}, fits=_is_held)
        self.amiss = loaded.notice or self.amiss
        return HeldEdit(**{**loaded.data, "cites": tuple(loaded.data["cites"])}) if loaded.data else None

    def show_held(self) -> HeldEdit | None:
        """Return the waiting change as `told_held` and mark it as seen by the owner. Raises `StorageError`."""
        held = self.held()
        if held and not held.is_seen:
            self.hold(replace(held, is_seen=True))
        return self.told_held()

    def told_held(self) -> HeldEdit | None:
        """Return the waiting change; its `why` is `STALE` if it no longer applies. Raises `StorageError`."""
        held = self.held()
        return replace(held, why=STALE) if held and self.is_stale(held) else held

    def hold(self, held: HeldEdit) -> None:
        """Store the change that waits for the owner, in place of any other. Raises `StorageError`."""
        save_state(self.held_file, asdict(held))

    def drop_held(self) -> None:
        """Delete the change that waits for the owner's approval."""
        self.held_file.unlink(missing_ok=True)

    def reject(self, held: HeldEdit, reason: str, now: datetime) -> None:
        """Delete the waiting change and record its rejection; only the last ones are kept. Raises `OSError`."""
        rejected = Version("", iso(now), "owner", reason, held.cites, sha256(held.content.encode()))
        self._keep_rejected([*self.rejected(), rejected])
        self.drop_held()

    def rejected(self) -> list[Version]:
        """Return the last rejections and their reasons, newest last; the texts are not kept."""
        file = self._folder / _REJECTED
        told = [json_object(line) for line in split_lines(file.read_bytes())] if file.exists() else []
        return [_version_of("", one) for one in told if _is_told(one)]

    def _keep_rejected(self, rejected: Sequence[Version]) -> None:
        lines = b"".join(json_line(asdict(one)) for one in rejected[-LOOKED_BACK:])
        write_atomic(self._folder / _REJECTED, lines, mode=_PRIVATE)

    def _settle(self) -> None:
        """Finish what a crash interrupted: keep a staged version that took effect, delete one that did not."""
        for staged in self._folder.glob("*.next"):
            newest, now = self.newest(), self.current()
            if not now or (newest is not None and newest.sha256 == sha256(now)):
                staged.unlink()
            else:
                self._arrive(staged.stem)
        for told in self._folder.glob("*.json"):
            if told.is_file() and not self._text(told.stem).exists():
                told.unlink()
        for torn in (
            *self._folder.glob(".*.????????"),
            *self._document.parent.glob(f".{self._document.name}.????????"),
        ):
            torn.unlink()

    def _tell(self, content: bytes, now: datetime, *, by: str, reason: str, cites: tuple[str, ...]) -> Version:
        version = Version(self._free_name(now), iso(now), by, reason, cites, sha256(content))
        self._write_told(version)
        return version

    def _write_told(self, version: Version) -> None:
        told = json.dumps(asdict(version), ensure_ascii=False, indent=2) + "\n"
        write_atomic(self._told(version.name), told.encode(errors="backslashreplace"), mode=_PRIVATE)

    def _arrive(self, name: str) -> None:
        self._staged(name).replace(self._text(name))

    def _forget_the_oldest(self) -> None:
        for name in self._names()[HISTORY_KEPT:]:
            self._text(name).unlink()
            self._told(name).unlink(missing_ok=True)

    def _free_name(self, now: datetime) -> str:
        """Return a name for the time `now` that is later than all others, even if the clock was set back."""
        name = _name(now)
        taken = self._names()
        if taken and name <= taken[0]:
            last = datetime.strptime(taken[0], _NAME_FORMAT).replace(tzinfo=UTC)
            name = _name(last + timedelta(milliseconds=1))
        return name

    def _names(self) -> list[str]:
        return sorted(
            (path.stem for path in self._folder.glob("*.md") if _NAME.fullmatch(path.stem) and path.is_file()),
            reverse=True,
        )

    def _version(self, name: str) -> Version:
        try:
            told = json.loads(read_bounded(self._told(name), TEXT_MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            told = None
        if _is_told(told):
            return _version_of(name, told)
        # NOTE(self): its description was lost or edited; its text is still worth keeping.
        return Version(name, "", "hand", "nothing is known about it", (), self._digest(name))

    def _digest(self, name: str) -> str:
        """Return the hash of its text; "" if that cannot be read."""
        try:
            return sha256(read_bounded(self._text(name), SELF_MAX_BYTES))
        except OSError:
            return ""

    def _text(self, name: str) -> Path:
        return self._folder / f"{name}.md"

    def _told(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _staged(self, name: str) -> Path:
        return self._folder / f"{name}.next"


def path_of(home: Home, document: str) -> Path:
    """Return the path of a document."""
    inside = f"{document}/{SKILL_FILE}" if document.startswith(OWN_SKILL) else document
    return home.self_md if document == SELF else home.workspace / inside


def kept_documents(home: Home) -> list[str]:
    """Return SELF.md and the documents of a home that the SOUL has changed."""
    return [name for name in _documents(home) if name == SELF or SelfHistory(home, name).is_kept]


def came_of(home: Home, document: str, cite: str) -> tuple[Literal["held", "changed", "rejected", ""], str]:
    """Return the state of the change that cites this, and the owner's reason for a rejection; "" for none."""
    with SelfHistory(home, document).reading() as history:
        held, versions, rejected = history.held(), history.versions(), history.rejected()
    if held and cite in held.cites:
        return "held", ""
    if any(cite in one.cites for one in versions):
        return "changed", ""
    no = next((one for one in reversed(rejected) if cite in one.cites), None)
    return ("rejected", no.reason) if no else ("", "")


def skill_citing(home: Home, cite: str) -> str:
    """Return the name of an own skill with a change that cites this, whatever its state; "" for none."""
    skills = (one for one in _documents(home) if one.startswith(OWN_SKILL) and came_of(home, one, cite)[0])
    return next(skills, "").removeprefix(OWN_SKILL)


def rejected_edits(home: Home) -> list[dict[str, str]]:
    """Return the owner's rejections, newest last: the `document`, the time (`at`) and the `reason`.

    Rejected pages of a skill are left out once the owner approved a later one.
    """
    found: list[dict[str, str]] = []
    for document in kept_documents(home):
        with SelfHistory(home, document).reading() as history:
            approved = history.newest() if document.startswith(OWN_SKILL) else None
            stand = (one for one in history.rejected() if not approved or one.at > approved.at)
            found += [{"document": document, "at": one.at, "reason": one.reason} for one in stand]
    return sorted(found, key=lambda one: one["at"])


def held_documents(home: Home) -> dict[str, str]:
    """Return the documents with a change that waits for the owner's approval, each with its time.

    The time is "" if the change cannot be read.
    """
    files = {name: SelfHistory(home, name).held_file for name in _documents(home)}
    return {name: _came(file) for name, file in files.items() if file.exists()}


def held_edits(home: Home) -> dict[str, HeldEdit]:
    """Return the changes that wait for the owner's approval and can be read, by document. Raises `StorageError`."""
    found = {name: SelfHistory(home, name).told_held() for name in held_documents(home)}
    return {name: held for name, held in found.items() if held}


def held_skills(home: Home) -> dict[str, HeldEdit]:
    """Return the change of each own skill that waits for the owner's approval, by the skill. Raises `StorageError`."""
    return {name.removeprefix(OWN_SKILL): held for name, held in held_edits(home).items() if name.startswith(OWN_SKILL)}


def changed_lines(home: Home, document: str, held: HeldEdit) -> list[str]:
    """Return the whole page that waits for an own skill, or the lines that change in another document."""
    if document.startswith(OWN_SKILL):
        return held.content.strip().splitlines()
    return diff_lines(SelfHistory(home, document).replaced_by(held).decode(errors="replace"), held.content)


def _came(held_file: Path) -> str:
    try:
        return str(json.loads(read_bounded(held_file, TEXT_MAX_BYTES))["at"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""


def _documents(home: Home) -> tuple[str, ...]:
    """Return the names of all documents that have or may have a history."""
    skills = (
        found[1] for path in sorted(home.memory.glob("skill-*-history")) if (found := _SKILL.fullmatch(path.name))
    )
    return (*DOCUMENTS, *(f"{OWN_SKILL}{name}" for name in skills))


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content` in hex."""
    return hashlib.sha256(content).hexdigest()


def _name(moment: datetime) -> str:
    return f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}Z"


def _lock(handle: int, document: Path) -> None:
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Transient(f"{document} is being changed by another process") from None
            time.sleep(_LOCK_PAUSE_S)
        else:
            return


def _version_of(name: str, told: Json) -> Version:
    return Version(name=name, cites=tuple(told["cites"]), **{key: told[key] for key in _TOLD})


def _is_told(told: object) -> TypeGuard[Json]:
    """Return whether a value has the form that `_tell` writes."""
    return (
        isinstance(told, dict)
        and all(isinstance(told.get(key), str) for key in _TOLD)
        and parse_iso_or_none(told["at"]) is not None
        and isinstance(told.get("cites"), list)
        and all(isinstance(cite, str) for cite in told["cites"])
    )


def _is_utf8(text: str) -> bool:
    """Return whether a text can be encoded; half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_held(data: Json) -> bool:
    flags = {"erases", "is_seen", "is_own"}
    texts = {"base": "", **{name: value for name, value in data.items() if name not in {"cites", *flags}}}
    cites = data.get("cites")
    return (
        data.keys() | flags | {"base"} == {field.name for field in fields(HeldEdit)}
        and all(isinstance(data.get(flag, False), bool) for flag in flags)
        and isinstance(cites, list)
        and all(isinstance(text, str) for text in (*cites, *texts.values()))
        and _is_utf8(data["content"])
        and parse_iso_or_none(data["at"]) is not None
    )
