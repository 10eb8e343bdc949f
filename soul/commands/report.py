"""`soul report`: collects what a bug report needs, safe to paste in public.

It is safe because it takes only words of the program's own source, numbers, times, and settings that are switches,
numbers or one of a few choices. Everything else is left out, so that nothing has to be recognized as private.
"""

from __future__ import annotations

import ast
import asyncio
import platform
import re
import sqlite3
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated

import typer

from common.clock import SystemClock, parse_iso_or_none
from common.errors import SoulError
from common.files import must_be_new, write_atomic
from common.redact import Redactor
from common.settings import Settings
from common.version import __version__
from modules.runtime.database.file import reading, sizes_of_tables
from modules.runtime.home import Home
from modules.runtime.journal import rows
from modules.services.outbox import store
from soul.commands.at_hand import at_hand
from soul.commands.config import choices_of
from soul.commands.doctor import examine
from soul.commands.logs import logged
from soul.commands.status import look
from soul.terminal.output import write_lines

LEFT_OUT = "…"
_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("adapters", "common", "local_tools", "modules", "soul")
_OTHERS_WORDS = _ROOT / "common" / "text"
"""Source with phrases that recognize what people say; these are not words of the program."""
_WORD = re.compile(r"\w+")
_ERROR = re.compile(r"[A-Z][A-Za-z]{2,40}(?:Error|Exception|Timeout)\b|HTTP [1-5][0-9]{2}\b")
_CODE_BEHIND = re.compile(r" [1-5][0-9]{2}\b")
_FRAME = re.compile(r'File "(?P<path>[^"\n]{1,500})", line (?P<line>[0-9]{1,6}), in (?P<name>\w{1,80})')
_RAISED = re.compile(r"^([A-Za-z_.]{1,120}(?:Error|Exception|Timeout))\b", re.MULTILINE)
_LEAST_WORDS, _LEAST_CHARS = 2, 8
_ERRORS_SHOWN, _LOG_LINES_SHOWN, _FRAMES_SHOWN = 20, 20, 12


class ProgramWords:
    """Keeps the parts of a text that are in the program's source: phrases of two or more words, or the whole text."""

    def __init__(self, said: Iterable[str]) -> None:
        self._whole = set()
        phrases = defaultdict(set)
        for text in said:
            phrase = _bare(text)
            self._whole.add(_on_one_line(text))
            if len(phrase) >= _LEAST_CHARS and len(words := _WORD.findall(phrase)) >= _LEAST_WORDS:
                phrases[words[0]].add(phrase)
        self._phrases = {first: sorted(found, key=len, reverse=True) for first, found in phrases.items()}

    def of(self, text: object) -> str:
        """Return `text` with everything else replaced by `…`."""
        line = _on_one_line(str(text))
        if line in self._whole:
            return line
        kept, end = [], 0
        while word := _WORD.search(line, end):
            phrase = self._phrase_at(line, word.start())
            if phrase:
                kept.append(phrase)
            elif kept[-1:] != [LEFT_OUT]:
                kept.append(LEFT_OUT)
            end = word.start() + len(phrase) if phrase else word.end()
        return " ".join(kept)

    def _phrase_at(self, line: str, start: int) -> str:
        if error := _ERROR.match(line, start):
            return error[0]
        first = _WORD.match(line, start)
        for phrase in self._phrases.get(first[0], ()) if first else ():
            end = start + len(phrase)
            if line.startswith(phrase, start) and not line[end : end + 1].isalnum():
                code = _CODE_BEHIND.match(line, end) if phrase.endswith("HTTP") else None
                return phrase + (code[0] if code else "")
        return ""


@cache
def program_words() -> ProgramWords:
    """Return the words of the program's source: its strings and the fixed parts of its f-strings, no docstrings."""
    files = (path for name in _PACKAGES for path in sorted((_ROOT / name).rglob("*.py")))
    trees = (ast.parse(path.read_bytes()) for path in files if not path.is_relative_to(_OTHERS_WORDS))
    return ProgramWords([text for tree in trees for text in _texts(tree)])


def _texts(tree: ast.AST) -> Iterator[str]:
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments:
            yield node.value


async def report_of(root: Path) -> str:
    """Return the report as Markdown. Raises `ConfigError` if there is no SOUL in `root`."""
    settings, home = at_hand(root)
    findings = await examine(root)
    own, clean = program_words(), Redactor(settings.secrets).text
    checks = [
        " ".join(filter(None, (f"- {one.level} {own.of(one.check)}: {own.of(one.message)}", _remedy(own, one.remedy))))
        for one in findings
    ]
    parts: dict[str, Iterable[str]] = {
        "Program": _program(),
        "Settings": _settings(settings),
        "Checks": checks,
        "Now": _now(home, own),
        "Rows": _rows(home, own),
        "Last errors in the journal": _journal(home, own),
        "Last warnings and errors in the log": _log(home, own),
    }
    lines = [f"# A report of `soul` {__version__}, {SystemClock().now():%Y-%m-%d %H:%M} UTC", ""]
    lines.append(f"What anybody wrote is left out: {LEFT_OUT} stands for it.")
    for title, told in parts.items():
        lines += ["", f"## {title}", "", *(list(told) or ["- none"])]
    return "".join(f"{clean(line)}\n" for line in lines)


def run_report(
    root: Path,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A new file; without it, the terminal.")] = None,
) -> None:
    """Print the report, or write it to a new file. Raises `UsageError` if the file exists."""
    if file is not None:
        must_be_new(file)
    report = asyncio.run(report_of(root))
    if file is None:
        write_lines(*report.splitlines())
        return
    write_atomic(file, report)
    write_lines(f"Wrote {file}; look through it before you paste it")


def _program() -> Iterator[str]:
    yield f"- soul {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield f"- {platform.system()} {platform.machine()}, {sys.implementation.name}"
    try:
        needed = [re.split(r"[^\w.-]", one)[0] for one in requires("py-general-agent") or () if "extra" not in one]
        yield f"- {', '.join(f'{name} {version(name)}' for name in sorted(needed))}"
    except PackageNotFoundError:
        yield "- it runs from its source, and what it needs is not all installed"


def _settings(settings: Settings) -> Iterator[str]:
    """Yield a line for each setting that is not the default, with its value only if that cannot identify anybody."""
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if value == field.default:
            continue
        is_choice = isinstance(value, str) and value in choices_of(name.upper())
        is_plain = is_choice or isinstance(value, bool | int | float)
        yield f"- {name.upper()}: {value if is_plain else 'set' if value else 'not set'}"


def _now(home: Home, own: ProgramWords) -> Iterator[str]:
    try:
        status = look(home)
    except SoulError as error:
        yield f"- {own.of(error)}"
        return
    yield f"- awake: {'yes' if status['awake'] else 'no'}, {own.of(status.get('mode', ''))}"
    yield f"- told of itself: {_moment(status.get('updatedAt'))}"
    yield from (f"- held back: {own.of(reason)}" for reason in status["standing"]["reasons"])
    yield from (f"- trouble: {own.of(one['what'])}" for one in status.get("troubles", ()))
    if ended := status["ended"]:
        yield f"- ended {_moment(ended['at'])}: {own.of(ended['why'])}"
    counts = {**status.get("counts", {}), **status.get("waits", {})}
    yield from (f"- {own.of(name)}: {count}" for name, count in counts.items())
    for loop in status.get("loops", ()):
        told = filter(None, (_moment(loop["nextAt"]), own.of(loop["lastOutcome"])))
        yield f"- loop {own.of(loop['name'])}: next {', '.join(told)}"


def _rows(home: Home, own: ProgramWords) -> Iterator[str]:
    try:
        with reading(home.database) as connection:
            sizes = sizes_of_tables(connection)
            intents = store.counts(connection)
    except SoulError as error:
        yield f"- {own.of(error)}"
        return
    yield from (f"- {name}: {count}" for name, count in sizes.items())
    yield f"- intents by state: {', '.join(f'{state} {count}' for state, count in sorted(intents.items())) or 'none'}"


def _journal(home: Home, own: ProgramWords) -> Iterator[str]:
    try:
        with reading(home.database) as connection:
            errors = rows.newest_errors(connection, _ERRORS_SHOWN)
    except SoulError as error:
        yield f"- {own.of(error)}"
        return
    for one in errors:
        told = filter(None, (own.of(one["summary"]), own.of(one["reason"])))
        yield f"- {_moment(one['at'])} {own.of(one['loop'])}: {'; '.join(told)}"
        yield from _frames(one["data"].get("trace"))


def _log(home: Home, own: ProgramWords) -> Iterator[str]:
    newest = deque((one for kind, one in logged(home.logs) if kind in {"warn", "error"}), maxlen=_LOG_LINES_SHOWN)
    for entry in newest:
        told = filter(None, (own.of(entry.get(name, "")) for name in ("event", "detail", "remedy")))
        yield f"- {_moment(entry.get('timestamp'))} {own.of(entry.get('logger', ''))}: {'; '.join(told)}"
        yield from _frames(entry.get("exception"))


def _frames(trace: object) -> Iterator[str]:
    """Yield the last frames of a traceback, with paths of the program and libraries only, and what was raised."""
    if not isinstance(trace, str):
        return
    for frame in [*_FRAME.finditer(trace)][-_FRAMES_SHOWN:]:
        yield f"  - {_public_path(frame['path'])}:{frame['line']}"
    yield from (f"  - {raised}" for raised in _RAISED.findall(trace)[-1:])


def _public_path(path: str) -> str:
    """Return the path below the program or the libraries; `…` for any other file."""
    place = Path(path)
    if place.is_relative_to(_ROOT) and (inside := place.relative_to(_ROOT)).parts[0] in _PACKAGES:
        return inside.as_posix() if place.exists() else LEFT_OUT
    _, installed, library = path.rpartition("/site-packages/")
    return library if installed and place.exists() else LEFT_OUT


def _remedy(own: ProgramWords, remedy: str) -> str:
    return f"→ {own.of(remedy)}" if remedy else ""


def _moment(at: object) -> str:
    moment: datetime | None = parse_iso_or_none(at)
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else LEFT_OUT


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _bare(text: str) -> str:
    """Return `text` on one line, from its first word to its last."""
    words = [*_WORD.finditer(line := _on_one_line(text))]
    return line[words[0].start() : words[-1].end()] if words else ""
