"""Ways in which a file of a home may be broken: by a crash, a full disk, a person, another program."""

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
    """Cut the file off somewhere."""
    os.truncate(path, rng.randrange(max(1, path.stat().st_size)))


def emptied(path: Path, _: random.Random) -> None:
    """Leave zero bytes of the file."""
    os.truncate(path, 0)


def zeroed(path: Path, _: random.Random) -> None:
    """Fill the file with zeros and keep its length, as a file system may after a power cut."""
    path.write_bytes(bytes(path.stat().st_size))


def not_utf8(path: Path, rng: random.Random) -> None:
    """Insert bytes that are not UTF-8."""
    content = path.read_bytes()
    place = rng.randrange(len(content) + 1)
    path.write_bytes(content[:place] + b"\xff\xfe\x80" + content[place:])


def nested(path: Path, rng: random.Random) -> None:
    """Write JSON that is nested far too deep for a parser."""
    opening, closing = rng.choice((("[", "]"), ('{"a":', "}")))
    path.write_text(opening * _DEPTH + "1" + closing * _DEPTH)


def huge(path: Path, rng: random.Random) -> None:
    """Write 20 MB of one repeated piece."""
    piece = rng.choice((b"a", b"\n", b"# a\n", b"[1,", b'{"a":1}\n', b"- **a** [b] (c)\n"))
    path.write_bytes(piece * (_HUGE_BYTES // len(piece)))


def as_folder(path: Path, _: random.Random) -> None:
    """Put a folder in the place of the file."""
    path.unlink()
    path.mkdir()


def other_kind(path: Path, rng: random.Random) -> None:
    """Write a single odd JSON value."""
    path.write_text(json.dumps(rng.choice(_ODD)))


def other_types(path: Path, rng: random.Random) -> None:
    """Replace a value in the JSON with an odd one; in JSON lines, in one line."""
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
    """Return `value` with something odd at some depth."""
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
    """Copy a home to `target`, so that the copy may be broken; return `target`."""
    shutil.copytree(home, target, symlinks=True)
    return target
