"""What is left of an archive or a copy of memory when what is a person's is taken out of it. Pure."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from common.json_lines import split_lines
from common.person import Person, Trace
from modules.services.sessions.people import kept_lines


def archived_without(data: bytes, person: Person) -> tuple[bytes | None, list[str]]:
    """Return the lines of an archive that are of others, packed, or None without such; and their pictures' keys."""
    text = _unpacked(data)
    if text is None:
        return data, []
    kept, media = kept_lines(text, person)
    return (_packed(kept) if kept else None), media


def exported_without(data: bytes, trace: Trace) -> bytes | None:
    """Return a copy of memory without what rests on the person's words; None where it cannot be unpacked."""
    text = _unpacked(data)
    if text is None:
        return None
    lines = [(line, _read(line)) for line in split_lines(text)]
    gone = {fields.get("id") for _, fields in lines if fields and _is_theirs(fields, trace)}
    kept = "".join(_kept(line, fields, gone, trace.person) for line, fields in lines)
    return data if kept == text else _packed(kept)


def _kept(line: str, fields: dict[str, Any] | None, gone: set[Any], person: Person) -> str:
    """Return what stays of a line; one that cannot be read goes where it holds the DID."""
    if fields is None:
        return "" if person.holds_did(line) else line
    if fields.get("record") == "memory" and fields.get("id") in gone:
        return ""
    after = _without(fields, gone, person)
    return line if after == fields else f"{json.dumps(after, separators=(',', ':'))}\n"


def _read(line: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _is_theirs(line: dict[str, Any], trace: Trace) -> bool:
    if line.get("record") != "memory":
        return False
    dids = line.get("dids")
    is_tied = isinstance(dids, list) and trace.person.did in dids
    return is_tied or f"{line.get('subject')}\n{line.get('body')}" in trace.copies


def _without(line: dict[str, Any], gone: set[Any], person: Person) -> dict[str, Any]:
    """Return a line that nothing of the person's is needed for: what one of theirs had replaced stays replaced."""
    after = dict(line)
    if after.get("superseded_by") is not None and after["superseded_by"] in gone:
        after["superseded_by"] = after.get("id")
    if isinstance(after.get("source"), str):
        after["source"] = person.without_did(after["source"])
    return after


def _unpacked(data: bytes) -> str | None:
    try:
        return gzip.decompress(data).decode()
    except (OSError, EOFError, zlib.error, ValueError):
        return None


def _packed(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)
