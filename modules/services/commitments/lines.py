"""Commitments as JSON with camelCase keys in a fixed order: the payload of a row of work, and a line of a file.

People and other programs read `pending_commitments.jsonl`. What an earlier version left there, and nobody can read, is
set aside, never dropped.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from common.constants import STATE_MAX_BYTES
from common.errors import StorageError
from common.files import read_bounded, storage_error, write_atomic
from common.json_lines import json_line, split_lines
from common.schemas import CommitmentType
from common.state import check_jsonl_version, set_aside, stamp_jsonl_version
from modules.services.commitments.params import read_params
from modules.services.commitments.types import LIVE, CommitmentStatus, QueuedCommitment

COMMITMENTS_MAX_LINES = 20_000
COMMITMENT_LINE_MAX_BYTES = 1024 * 1024


class _Line(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", defer_build=True)

    id: str = Field(min_length=1)
    created_at: str
    description: str
    type: CommitmentType
    source_thread_uri: str = ""
    source_reply_text: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    source: Literal["bluesky", "space"] = "bluesky"
    status: CommitmentStatus = "pending"
    attempt_count: int = Field(default=0, ge=0)
    last_attempt_at: str | None = None
    error: str | None = None
    result: dict[str, Any] | None = None
    not_before: str | None = None
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class ReadLines:
    """What a file held; `notice` is a line for the owner if not all of it could be read."""

    commitments: tuple[QueuedCommitment, ...]
    notice: str = ""


def read_commitments(path: Path) -> ReadLines:
    """Every commitment of the file, whatever version wrote it; one that is too large is set aside whole.

    Raises:
        StorageError: it cannot be read at all.

    """
    try:
        found, unread = _parsed(path)
    except _TooLargeError as problem:
        return ReadLines((), f"{path.name} {problem}; {set_aside(path)}, starting afresh")
    if not unread:
        return ReadLines(tuple(found.values()))
    aside = path.with_name(f"{path.name}.corrupt-{time.time_ns()}")
    write_atomic(aside, b"\n".join(unread) + b"\n")
    notice = f"{path.name}: {len(unread)} commitments cannot be read; their lines are kept as {aside.name}"
    return ReadLines(tuple(found.values()), notice)


def all_in(path: Path) -> list[QueuedCommitment]:
    """The commitments of the file, oldest first; nothing is written. Raises `StorageError`."""
    found, _ = _parsed(path)
    return sorted(found.values(), key=lambda one: one.created_at)


def live_in(path: Path) -> list[QueuedCommitment]:
    """The live commitments of the file, oldest first; nothing is written. Raises `StorageError`."""
    return [one for one in all_in(path) if one.status in LIVE]


def write_commitments(path: Path, commitments: Iterable[QueuedCommitment]) -> None:
    """Replace the file, and stamp its version beside it. Raises `StorageError`."""
    write_atomic(path, b"".join(json_line(as_json(one)) for one in commitments))
    if not check_jsonl_version(path):
        stamp_jsonl_version(path)


def as_json(commitment: QueuedCommitment) -> dict[str, Any]:
    """The line's object, its keys in order; `notBefore` and `waitsFor` only where there is one."""
    fields = {name: getattr(commitment, name) for name in _Line.model_fields} | {"params": commitment.params.as_json()}
    for name in ("not_before", "waits_for"):
        if fields[name] is None:
            del fields[name]
    return {to_camel(name): dict(value) if isinstance(value, Mapping) else value for name, value in fields.items()}


def append_line(path: Path, record: Mapping[str, Any], *, max_bytes: int, rotations: int) -> None:
    """Add one JSON line to a log; one that grew too large becomes `.1`, the older ones `.2` … Raises `StorageError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size >= max_bytes:
            for number in range(rotations - 1, 0, -1):
                older = path.with_name(f"{path.name}.{number}")
                if older.exists():
                    older.replace(path.with_name(f"{path.name}.{number + 1}"))
            path.replace(path.with_name(f"{path.name}.1"))
        with path.open("ab") as file:
            file.write(json_line(record))
    except OSError as error:
        raise storage_error(path, error) from error


class _TooLargeError(StorageError):
    """The file is larger than any that this program writes, and is not read."""


def _parsed(path: Path) -> tuple[dict[str, QueuedCommitment], list[bytes]]:
    """The commitments by id, and the lines that cannot be read, or not in full."""
    try:
        content = read_bounded(path, STATE_MAX_BYTES)
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        if error.errno == errno.EFBIG:
            reason = f"is larger than {STATE_MAX_BYTES // 1024} KiB"
            raise _TooLargeError(reason, remedy=f"Look at {path}, and move it away.") from error
        reason = f"Cannot read {path}: {error.strerror or error}"
        raise StorageError(reason, remedy=f"Check the file {path}.") from error
    found: dict[str, QueuedCommitment] = {}
    unread: list[bytes] = []
    lines = [line.rstrip(b"\n") for line in split_lines(content)]
    if len(lines) > COMMITMENTS_MAX_LINES:
        reason = f"has more than {COMMITMENTS_MAX_LINES} lines"
        raise _TooLargeError(reason, remedy=f"Look at {path}, and move it away.")
    for line in filter(bytes.strip, lines):
        text = line.decode("utf-8", "replace")
        commitment = _read_line(text) if len(line) <= COMMITMENT_LINE_MAX_BYTES else None
        if commitment is not None:
            found[commitment.id] = commitment
        if commitment is None or text.encode() != line:
            unread.append(line)
    return found, unread


def commitment_in(payload: Mapping[str, Any]) -> QueuedCommitment | None:
    """Return the commitment of such an object; None where it is none."""
    try:
        return _commitment(_Line.model_validate(payload))
    except ValidationError:
        return None


def _read_line(line: str) -> QueuedCommitment | None:
    try:
        return _commitment(_Line.model_validate_json(line))
    except ValidationError:
        return None


def _commitment(read: _Line) -> QueuedCommitment:
    fields = {name: getattr(read, name) for name in _Line.model_fields if name != "type"}
    return QueuedCommitment(**{**fields, "params": read_params(read.type, read.params)})
