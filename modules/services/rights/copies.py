"""What is left of an archive or a copy of memory when what is a person's is taken out of it. Pure."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from common.json_lines import split_lines
from common.person import Person, Trace
from modules.services.agent.sessions.people import kept_lines


def archived_without(data: bytes, person: Person) -> tuple[bytes | None, list[str]]:
    """Return the lines of an archive that are of others, packed, or None without such; and their pictures' keys."""
    text = _unpacked(data)
    if text is None:
        return data, []
    try:
        kept, media = kept_lines(text, person)
    except (ValueError, KeyError, RecursionError):
        return None, []
    return (_packed(kept) if kept else None), media


def exported_without(data: bytes, trace: Trace) -> bytes | None:
    """Return a copy of memory without what rests on the person's words; None where it cannot be read."""
    text = _unpacked(data)
    if text is None:
        return None
    try:
        lines = [json.loads(line) for line in split_lines(text)]
    except (ValueError, RecursionError):
        return None
    gone = {line["id"] for line in lines if _is_theirs(line, trace)}
    kept = [_without(line, gone, trace.person) for line in lines if line.get("id") not in gone]
    said = "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in kept)
    return data if kept == lines else _packed(said)


def _is_theirs(line: dict[str, Any], trace: Trace) -> bool:
    if line.get("record") != "memory":
        return False
    return trace.person.did in line.get("dids", ()) or f"{line['subject']}\n{line['body']}" in trace.copies


def _without(line: dict[str, Any], gone: set[int], person: Person) -> dict[str, Any]:
    """Return a line that nothing of the person's is needed for: what one of theirs had replaced stays replaced."""
    after = dict(line)
    if after.get("superseded_by") in gone:
        after["superseded_by"] = after["id"]
    if "source" in after:
        after["source"] = person.without_did(after["source"])
    return after


def _unpacked(data: bytes) -> str | None:
    try:
        return gzip.decompress(data).decode()
    except (OSError, EOFError, zlib.error, ValueError):
        return None


def _packed(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)
