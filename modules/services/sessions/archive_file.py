"""An archive as bytes: gzipped JSON lines, one a row, the same bytes for the same rows. Pure."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from common.clock import parse_iso
from common.json_lines import split_lines
from modules.runtime.llm.types import Message
from modules.services.sessions.rows import Fields, dump, from_fields, to_fields
from modules.services.sessions.types import MessageRow, Role

CONTENT_TYPE = "application/gzip"

_SECOND_MS = 1000
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "toolResult": "toolResult"}


@dataclass(frozen=True, slots=True)
class ArchivedLine:
    """One line of an archive; `timestamp` in milliseconds since 1970."""

    role: Role
    message: Message
    timestamp: int


def pack(rows: Iterable[MessageRow]) -> bytes:
    """The archive of `rows`."""
    lines = "".join(f"{dump(_fields(row))}\n" for row in rows)
    return gzip.compress(lines.encode(), mtime=0)


def unpack(data: bytes) -> list[ArchivedLine]:
    """The lines of an archive. Raises `ValueError` if it is damaged."""
    try:
        text = gzip.decompress(data).decode()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a whole archive: {error}") from error
    if not data:
        raise ValueError("not an archive: it is empty")
    return [_line(json.loads(line)) for line in split_lines(text)]


def epoch_ms(moment: str) -> int:
    """Milliseconds since 1970 of an ISO-8601 time."""
    return round(parse_iso(moment).timestamp() * _SECOND_MS)


def _fields(row: MessageRow) -> Fields:
    fields = {"role": row.role, **to_fields(row.role, row.message), "timestamp": epoch_ms(row.created_at)}
    return {**fields, "dids": row.dids} if row.dids else fields


def _line(fields: Fields) -> ArchivedLine:
    try:
        role = _ROLES[fields["role"]]
        return ArchivedLine(role, from_fields(role, fields), int(fields["timestamp"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a line of an archive: {error}") from error
