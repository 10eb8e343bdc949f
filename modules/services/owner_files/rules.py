"""What holds for a file of a workspace wherever it lies: its name, its size, what is a text, who may write. Pure.

What a workspace can do, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from adapters.storage.keys import part
from common.errors import PolicyBlocked

Warn = Callable[[str], None]
Change = Callable[[str | None], str]


class OwnerFiles(Protocol):
    """Texts by name, such as `GOALS.md`, `memory/2026-11-22.md` or `skills/tea/SKILL.md`.

    Raises:
        PolicyBlocked: what is asked for is no such name, may not be written, or would overwrite what is no text.
        StorageError: the disk of this machine is full or refuses.
        Transient: the store cannot be reached now, or refuses.

    """

    async def read(self, name: str) -> str | None:
        """A text; None if there is none, or nothing in it. What is no UTF-8 text is None too, with a warning."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Put this text there, whatever was there."""
        ...

    async def update(self, name: str, change: Change) -> None:
        """Put there what `change` makes of the text that is there, None if there is none. It may be asked again."""
        ...

    async def rename(self, name: str, new: str) -> None:
        """Give a file a new name; what had that name is replaced."""
        ...

    async def names(self, folder: str = "") -> tuple[str, ...]:
        """All that can be read, in order; with a `folder`, such as `skills/`, what lies there."""
        ...


MAX_TEXT_BYTES = 1024 * 1024
IDENTITY = ("SELF.md", "SOUL.md")
_BEGIN, _END = "<!-- begin: written by the program -->", "<!-- end: written by the program -->"

_ENDING = ".md"
_MAX_FOLDERS = 2


@dataclass(frozen=True, slots=True)
class FoundFile:
    """What lies under a name: nothing, a text, or what is none and why. `etag` is the store's."""

    text: str | None = None
    problem: str = ""
    etag: str | None = None

    @property
    def said(self) -> str | None:
        return self.text if self.text and self.text.strip() else None


class Once:
    """Warns of each trouble when it begins, and not again while it lasts."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._troubles: dict[str, str] = {}

    def about(self, name: str, found: FoundFile) -> str | None:
        """What was found to read, after warning of what cannot be."""
        if found.problem and self._troubles.get(name) != found.problem:
            self._warn(f"{name} {found.problem}; it is left out")
        self._troubles[name] = found.problem
        return found.said


def is_name(name: str) -> bool:
    """Whether a file of a workspace can have this name."""
    pieces = name.split("/")
    return name.endswith(_ENDING) and len(pieces) <= _MAX_FOLDERS + 1 and all(part(piece) == piece for piece in pieces)


def checked_name(name: str) -> str:
    """Return the name of a file. Raises `PolicyBlocked` if it is not one."""
    if not is_name(name):
        raise PolicyBlocked(f"{name!r} is no name of a file in the workspace", remedy="Names look like GOALS.md.")
    return name


def writable(name: str) -> str:
    """Return that name. Raises `PolicyBlocked` if it is none, or is written elsewhere only."""
    if checked_name(name).casefold() in {file.casefold() for file in IDENTITY}:
        raise PolicyBlocked(f"{name} is not written like other files of the workspace")
    return name


def too_large(etag: str | None = None) -> FoundFile:
    """What is said of a file beyond the limit."""
    return FoundFile(problem=f"is larger than {MAX_TEXT_BYTES // 1024} KiB", etag=etag)


def decoded(data: bytes, etag: str | None = None) -> FoundFile:
    """Return the text of a file's bytes, or the problem with them."""
    if len(data) > MAX_TEXT_BYTES:
        return too_large(etag)
    try:
        return FoundFile(data.decode().removeprefix("\ufeff"), etag=etag)
    except UnicodeDecodeError:
        return FoundFile(problem="is not UTF-8 text", etag=etag)


def changed(name: str, found: FoundFile, change: Change) -> str | None:
    """The new text; None if it is what is there already. Raises `PolicyBlocked` where none may be written."""
    if found.problem:
        raise PolicyBlocked(
            f"{name} {found.problem}: it is not overwritten", remedy="Save it as UTF-8 text, or move it away."
        )
    text = change(found.said).encode(errors="replace").decode()
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise PolicyBlocked(f"{name} would be larger than {MAX_TEXT_BYTES // 1024} KiB")
    return None if text == found.text else text


def no_such(name: str) -> PolicyBlocked:
    """What to raise where there is nothing under that name."""
    return PolicyBlocked(f"There is no {name} in the workspace")


def with_state(text: str, state: str) -> str:
    """Return the text of CONTEXT.md with `state` in the place of what the program wrote before; all else stays."""
    before, _, rest = text.partition(_BEGIN)
    written, end, after = rest.partition(_END)
    own = f"{before.rstrip()}\n\n{(after if end else written).lstrip()}".strip()
    return "\n\n".join(filter(None, (own, f"{_BEGIN}\n\n{state}\n\n{_END}" if state else "")))
