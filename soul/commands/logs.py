"""`soul logs`: prints what the SOUL logged, as its terminal would show it; with `--follow`, also new lines."""

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from common.clock import local, parse_iso_or_none
from common.json_lines import json_object
from common.wording import LineKind, told_reason
from soul.commands.at_hand import at_hand
from soul.terminal.output import printable, write_lines
from soul.terminal.wording import LOOKS, told_line

_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})\.log(?:\.(\d{1,4}))?")
_LOOK_S = 0.5
_LEVELS: dict[str, LineKind] = {"warning": "warn", "error": "error", "critical": "error"}


def run_logs(
    root: Path,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines until Ctrl-C.")] = False,
    most: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines.")] = 40,
) -> None:
    """Print the last `most` lines and, with `follow`, each new one until Ctrl-C."""
    settings, home = at_hand(root)
    shown: deque[str] = deque(maxlen=most)
    read: dict[Path, int] = {}
    for path in _files(home.logs):
        shown.extend(log_lines(_read(path, read), settings.soul_timezone))
    write_lines(*(shown or ["Nothing was logged yet"]))
    while follow:
        time.sleep(_LOOK_S)
        for path in _files(home.logs)[-1:]:
            write_lines(*log_lines(_read(path, read), settings.soul_timezone))


def log_lines(raw: Iterable[str], timezone: str) -> Iterator[str]:
    """Yield a line for each entry that people should see: those of the SOUL, and warnings of libraries."""
    yield from (_line(entry, kind, timezone) for kind, entry in _entries(raw))


def newest_lines(folder: Path, timezone: str, most: int, *, kind: str = "", words: str = "") -> list[str]:
    """Return up to `most` lines, newest first; only those of `kind`, if given, and only those with `words`."""
    found: list[str] = []
    for path in reversed(_files(folder)):
        lines = (_line(entry, one, timezone) for one, entry in _entries(_read(path, {})) if kind in {"", one})
        found += [line for line in lines if words.lower() in line.lower()][::-1]
        if len(found) >= most:
            break
    return found[:most]


def _entries(raw: Iterable[str]) -> Iterator[tuple[LineKind, dict[str, Any]]]:
    for text in raw:
        if (entry := json_object(text)) and (kind := _kind(entry)):
            yield kind, entry


def _kind(entry: dict[str, Any]) -> LineKind | None:
    kind = entry.get("kind")
    return kind if kind in get_args(LineKind) else _LEVELS.get(str(entry.get("level")))


def _line(entry: dict[str, Any], kind: LineKind, timezone: str) -> str:
    at = parse_iso_or_none(entry.get("timestamp"))
    when = f"{local(at, timezone):%Y-%m-%d %H:%M:%S}" if at else " " * 19
    icon, label, _ = LOOKS[kind]
    detail = printable(told_reason(str(entry.get("detail") or entry.get("remedy") or "")))
    return f"{when} {icon} {label:<7} {printable(told_line(str(entry.get('event', ''))))}  {detail}".rstrip()


def _files(folder: Path) -> list[Path]:
    """Return the log files, oldest first; of one day, the file with the highest number is the oldest."""
    named = [(match, path) for path in folder.glob("*.log*") if (match := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(named, key=lambda one: (one[0][1], -int(one[0][2] or 0)))]


def _read(path: Path, read: dict[Path, int]) -> list[str]:
    """Return the complete lines of a file after the offset in `read`, and update the offset."""
    try:
        with path.open("rb") as file:
            start = read.get(path, 0)
            file.seek(start if start <= path.stat().st_size else 0)  # a smaller file is a new one
            lines = file.read().split(b"\n")
            read[path] = file.tell() - len(lines[-1])
    except FileNotFoundError:
        return []
    return [line.decode(errors="replace") for line in lines[:-1]]
