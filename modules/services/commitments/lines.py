"""Commitments as JSON with camelCase keys in a fixed order: the payload of a row of work, and a line of a file.

People and other programs read `pending_commitments.jsonl`; this program only writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from common.files import write_atomic
from common.json_lines import json_line
from common.state import check_jsonl_version, stamp_jsonl_version
from modules.services.commitments.params import read_params
from modules.services.commitments.types import QueuedCommitment

_READ: TypeAdapter[QueuedCommitment] = TypeAdapter(QueuedCommitment)
_NAMES = [field.name for field in fields(QueuedCommitment)]
_NAMES.insert(_NAMES.index("source_thread_uri"), "type")
_WHERE_THERE_IS_ONE = {"not_before", "waits_for"}


def write_commitments(path: Path, commitments: Iterable[QueuedCommitment]) -> None:
    """Replace the file, and stamp its version beside it. Raises `StorageError`."""
    write_atomic(path, b"".join(json_line(as_json(one)) for one in commitments))
    if not check_jsonl_version(path):
        stamp_jsonl_version(path)


def as_json(commitment: QueuedCommitment) -> dict[str, Any]:
    """Return the line's object, its keys in order; `notBefore` and `waitsFor` only where there is one."""
    told = {name: getattr(commitment, name) for name in _NAMES} | {"params": commitment.params.as_json()}
    return {
        to_camel(name): dict(value) if isinstance(value, Mapping) else value
        for name, value in told.items()
        if value is not None or name not in _WHERE_THERE_IS_ONE
    }


def commitment_in(payload: Mapping[str, Any]) -> QueuedCommitment | None:
    """Return the commitment of such an object; None where it is none."""
    try:
        given = payload.get("params")
        params = read_params(payload["type"], given if isinstance(given, Mapping) else {})
        return _READ.validate_python({**payload, "params": params})
    except (KeyError, ValidationError):
        return None
