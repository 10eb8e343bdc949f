"""What is left of a file when nothing in it may name a person. Pure.

By the shape of the file and not by its name, so that a new state file needs no code of its own here.

| file | what goes |
|---|---|
| JSON | of each list and object in the outermost object, the entries that name the person; else the whole value |
| `.jsonl`, `.log`, also numbered ones | the lines that name the person |
| `.md` | the sections that name the person, each with its heading |
| gzipped `.jsonl` | the lines, as above |
| anything else, and what cannot be read | the whole file |
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from common.person import Trace

_HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_LINES = {".jsonl", ".log", ".txt"}


def names_person(name: str, content: bytes, trace: Trace) -> bool:
    """Return whether the file `name` names the person, in its name or its content; packed lines are unpacked."""
    return trace.covers(name, _text(_unpacked(content)))


def scrubbed(name: str, content: bytes, trace: Trace) -> bytes | None:
    """Return the content without what names the person, or None where the file is to be deleted."""
    if trace.covers(name):
        return None
    plain = _unpacked(content)
    try:
        after = _plain_scrubbed(name.removesuffix(".gz"), plain.decode(), trace)
    except (ValueError, RecursionError):
        return None
    if after is None or trace.covers(after):
        return None
    return gzip.compress(after.encode(), mtime=0) if plain is not content else after.encode()


def passages(name: str, content: bytes, trace: Trace) -> tuple[str, ...]:
    """Return what in the file names the person: the lines, or the sections."""
    text = _text(_unpacked(content))
    parts = _HEADING.split(text) if PurePath(name).suffix == ".md" else text.splitlines()
    return tuple(part.strip() for part in parts if trace.covers(part))


def _plain_scrubbed(name: str, text: str, trace: Trace) -> str | None:
    suffixes = set(PurePath(name).suffixes)
    if suffixes & _LINES:
        return "".join(line for line in text.splitlines(keepends=True) if not trace.covers(line))
    if ".md" in suffixes:
        return "".join(part for part in _HEADING.split(text) if not trace.covers(part))
    data = json.loads(text)
    if isinstance(data, dict):
        data = dict(_kept(data, trace))
    elif isinstance(data, list):
        data = [item for item in data if not _names(item, trace)]
    else:
        return None
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _kept(data: dict[str, Any], trace: Trace) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield key, {name: item for name, item in value.items() if not _names([name, item], trace)}
        elif isinstance(value, list):
            yield key, [item for item in value if not _names(item, trace)]
        elif not _names(value, trace):
            yield key, value


def _names(value: object, trace: Trace) -> bool:
    return trace.covers(json.dumps(value, ensure_ascii=False))


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return content


def _text(content: bytes) -> str:
    return content.decode(errors="replace")
