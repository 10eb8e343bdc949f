"""Commitments as JSON with camelCase keys in a fixed order: the payload of a row of work, and a line of a file.

People and other programs read `pending_commitments.jsonl`; this program only writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from common.files import storage_error, write_atomic
from common.json_lines import json_line
from common.schemas import CommitmentType
from common.state import check_jsonl_version, stamp_jsonl_version
from modules.services.commitments.params import read_params
from modules.services.commitments.types import CommitmentStatus, QueuedCommitment


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


def commitment_in(payload: Mapping[str, Any]) -> QueuedCommitment | None:
    """Return the commitment of such an object; None where it is none."""
    try:
        read = _Line.model_validate(payload)
    except ValidationError:
        return None
    fields = {name: getattr(read, name) for name in _Line.model_fields if name != "type"}
    return QueuedCommitment(**{**fields, "params": read_params(read.type, read.params)})
