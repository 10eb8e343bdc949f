"""Ways in which a file of a home may be broken: by a crash, a full disk, a hand, another program."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

Corrupt = Callable[[Path, random.Random], None]

_DEPTH = 100_000
_HUGE_BYTES = 20_000_000
_ODD: tuple[object, ...] = (None, True, -1, 1e308, 10**400, "", "x", "\ud800", [], [[]], {}, {"a": None}, [1, "x", {}])


def truncated(path: Path, rng: random.Random) -> None:
    """Cut off somewhere."""
    os.truncate(path, rng.randrange(max(1, path.stat().st_size)))


def emptied(path: Path, _: random.Random) -> None:
    """Zero bytes."""
    os.truncate(path, 0)


def zeroed(path: Path, _: random.Random) -> None:
    """As long as it was, and nothing in it: what a file system leaves after a power cut."""
    path.write_bytes(bytes(path.stat().st_size))


def not_utf8(path: Path, rng: random.Random) -> None:
    """Bytes in the middle that are no UTF-8."""
    content = path.read_bytes()
    place = rng.randrange(len(content) + 1)
    path.write_bytes(content[:place] + b"\xff\xfe\x80" + content[place:])


def nested(path: Path, rng: random.Random) -> None:
    """JSON far too deep for a parser."""
    opening, closing = rng.choice((("[", "]"), ('{"a":', "}")))
    path.write_text(opening * _DEPTH + "1" + closing * _DEPTH)


def huge(path: Path, rng: random.Random) -> None:
    """20 MB of one kind."""
    piece = rng.choice((b"a", b"\n", b"# a\n", b"[1,", b'{"a":1}\n', b"- **a** [b] (c)\n"))
    path.write_bytes(piece * (_HUGE_BYTES // len(piece)))


def as_folder(path: Path, _: random.Random) -> None:
    """A folder of the same name."""
    path.unlink()
    path.mkdir()


def other_kind(path: Path, rng: random.Random) -> None:
    """Valid JSON of another kind as a whole."""
    path.write_text(json.dumps(rng.choice(_ODD)))


def other_types(path: Path, rng: random.Random) -> None:
    """The same JSON with values of other types in it; in JSON lines, in one line."""
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    try:
        whole: Any = json.loads("\n".join(lines))
    except ValueError:
        place = rng.randrange(len(lines))
        try:
            lines[place] = json.dumps(_odder(json.loads(lines[place]), rng))
        except ValueError:
            lines[place] = json.dumps(rng.choice(_ODD))
        path.write_text("\n".join(lines))
        return
    path.write_text(json.dumps(_odder(whole, rng)))


def _odder(value: Any, rng: random.Random) -> Any:
    """`value` with something odd at some depth."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice([name for name in value if name != "_memoryVersion"] or list(value))
        return {**value, key: _odder(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        return [*value[:place], _odder(value[place], rng), *value[place + 1 :]]
    return rng.choice(_ODD)


CORRUPTIONS: tuple[Corrupt, ...] = (
    truncated, emptied, zeroed, not_utf8, nested, huge, as_folder, other_kind, other_types, other_types,
)  # fmt: skip


def copy_of(home: Path, target: Path) -> Path:
    """A copy of a home that may be broken."""
    shutil.copytree(home, target, symlinks=True)
    return target
