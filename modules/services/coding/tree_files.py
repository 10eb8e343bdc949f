"""The files of a coding task's tree: listed, read, searched and changed. Nothing outside of the tree is reached.

A path is judged by where it really leads. No program runs in the tree meanwhile: what a program started ended with it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import regex

from common.text.source_text import (
    LINE_END,
    SourceText,
    line_at,
    lines_of,
    nearest,
    numbered,
    read_source,
)
from common.text.untrusted import legible
from common.trees import readable_name, walk
from modules.services.coding.suite_files import NOT_SOURCE

_READ_CHARS, _LINE_CHARS = 16_000, 2_000
_MOST_FILE_BYTES, _MOST_WRITTEN_CHARS, _MOST_PATTERN_CHARS = 1_000_000, 200_000, 1_000
_MOST_FILES, _MOST_HITS, _HIT_CHARS, _MOST_PLACES = 300, 60, 200, 20
_SEARCH_S = 10.0
_MOST_WALKED = 20_000
"""So many files below a folder are looked at."""
_NOT_LISTED = NOT_SOURCE | {"__pycache__", ".pytest_cache"}


class RefusedCall(Exception):
    """A call that is not carried out: the model reads the subsection `answer` of `Answers`, with these words in it."""

    def __init__(self, answer: str, **words: object) -> None:
        super().__init__(answer)
        self.answer = answer
        self.words = words


@dataclass(frozen=True, slots=True)
class TreeFiles:
    """The files below `tree`. Each method takes the input of a call and returns what the model is told.

    All of them raise `RefusedCall` for what cannot be done as asked, and `OSError` for what the disk refuses. One
    search takes at most `search_s` seconds.
    """

    tree: Path
    search_s: float = _SEARCH_S

    def list_files(self, given: Mapping[str, Any]) -> str:
        """List the files below a folder."""
        found = sorted(map(self._name, self._files(_text(given, "path"))))
        left = [f"… and {len(found) - _MOST_FILES} more: name a folder."] if len(found) > _MOST_FILES else []
        return "\n".join([*found[:_MOST_FILES], *left])

    def read_file(self, given: Mapping[str, Any]) -> str:
        """Return the lines of a file, as many as fit, behind their numbers, and where to go on."""
        said = given["path"]
        source = self._source(self.place(said), said)
        lines = lines_of(source.text)
        first, last = max(1, _number(given, "from_line", 1)), min(len(lines), _number(given, "to_line", len(lines)))
        shown, chars = list[str](), 0
        for line in lines[first - 1 : last]:
            shown.append(line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}… ({len(line)} characters)")
            chars += len(shown[-1])
            if chars > _READ_CHARS:
                break
        end = first + len(shown) - 1
        go_on = [f"go on with from_line {end + 1}"] if end < last else []
        told = "; ".join([f"lines {first}-{end} of {len(lines)}", *filter(None, [source.about]), *go_on])
        return f"{said}: {told}\n{legible(numbered(shown, first))}"

    def search(self, given: Mapping[str, Any]) -> str:
        """Return the lines that hold a text, or that a regular expression fits, and how many more there are."""
        pattern, glob = _pattern(given), _text(given, "glob").replace("**/", "*")
        ends, hits, total, unread = time.monotonic() + self.search_s, list[str](), 0, 0
        for path in self._files(_text(given, "path")):
            name = self._name(path)
            if glob and not fnmatchcase(name, glob) and not fnmatchcase(path.name, glob):
                continue
            if time.monotonic() > ends:
                unread += 1
                continue
            try:
                for number, line in enumerate(lines_of(self._source(path, name).text), 1):
                    left = max(0.001, ends - time.monotonic())
                    if found := pattern.search(line, timeout=left, concurrent=True):
                        total += 1
                        hit = f"{name}:{number}: {legible(_around(line, found.start()))}"
                        hits += [hit] if total <= _MOST_HITS else []
            except TimeoutError:
                unread += 1
            except (RefusedCall, OSError):
                continue
        more = [f"… and {total - _MOST_HITS} more lines: narrow it by path or glob."] if total > _MOST_HITS else []
        slow = [f"It took too long: {unread} files were not searched to the end."] if unread else []
        return "\n".join([*hits, *more, *slow]) or "No line fits."

    def write_file(self, given: Mapping[str, Any]) -> str:
        """Write a whole file, in the encoding and with the line ends of the one that it replaces."""
        said, content = given["path"], given["content"]
        path = self.place(said)
        if len(content) > _MOST_WRITTEN_CHARS:
            raise RefusedCall("Too Long", path=said)
        if path.exists() and not path.is_file():
            raise RefusedCall("No File", path=said)
        source = self._source(path, said) if path.exists() else SourceText("")
        path.parent.mkdir(parents=True, exist_ok=True)
        _put(path, said, source, source.with_line_ends(content))
        return source.about and f"Written as {source.about}, as the file was."

    def edit_file(self, given: Mapping[str, Any]) -> str:
        """Replace a text that stands in a file once, or everywhere where `all` is set."""
        said, old, new = given["path"], given["old"], given["new"]
        path = self.place(said)
        source = self._source(path, said)
        wanted = LINE_END.pattern.join(map(re.escape, LINE_END.split(old)))
        found = list(re.finditer(wanted, source.text)) if old else []
        if not found:
            raise RefusedCall("Not Found", near=nearest(source.text, old) or "…")
        if len(found) > 1 and given.get("all") is not True:
            places = ", ".join(str(line_at(source.text, one.start())) for one in found[:_MOST_PLACES])
            raise RefusedCall("Not Once", count=len(found), lines=places)
        parts, at = list[str](), 0
        for one in found:
            parts += [source.text[at : one.start()], source.with_line_ends(new)]
            at = one.end()
        _put(path, said, source, "".join([*parts, source.text[at:]]))
        return f"Replaced {len(found)} times." if len(found) > 1 else ""

    def place(self, said: str) -> Path:
        """Return where a path leads, which is in the tree."""
        tree = self.tree.resolve()
        try:
            path = (tree / said).resolve()
        except (ValueError, RuntimeError):  # no name of a file, or links in a circle
            path = tree.parent
        if not path.is_relative_to(tree) or ".git" in (part.lower() for part in path.relative_to(tree).parts):
            raise RefusedCall("Outside", path=said)
        return path

    def _name(self, path: Path) -> str:
        return readable_name(str(path.relative_to(self.tree.resolve())))

    def _files(self, said: str) -> Iterator[Path]:
        """The files below a folder, as many as are worth looking at, or one file; links are left out."""
        return islice(_all_files(self.place(said)), _MOST_WALKED)

    def _source(self, path: Path, said: str) -> SourceText:
        if not path.is_file():
            raise RefusedCall("No File", path=said)
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise RefusedCall("Too Long", path=said)
        if (source := read_source(path.read_bytes())) is None:
            raise RefusedCall("No Text", path=said)
        return source


def _all_files(start: Path) -> Iterator[Path]:
    if start.is_file():
        yield start
    for folder, folders, names in walk(start):
        folders[:] = sorted(name for name in folders if name not in _NOT_LISTED)
        yield from (path for name in sorted(names) if not (path := start / folder / name).is_symlink())


def _put(path: Path, said: str, source: SourceText, text: str) -> None:
    try:
        path.write_bytes(source.encoded(text))
    except UnicodeEncodeError as error:
        lost = text[error.start : error.start + 1]
        raise RefusedCall("Not In Encoding", path=said, encoding=source.encoding, character=lost) from None


def _pattern(given: Mapping[str, Any]) -> regex.Pattern[str]:
    text = given["text"]
    flags = regex.IGNORECASE if given.get("ignore_case") is True else 0
    if len(text) > _MOST_PATTERN_CHARS:
        raise RefusedCall("Bad Pattern", reason=f"it has more than {_MOST_PATTERN_CHARS} characters")
    try:
        return regex.compile(text if given.get("regex") is True else regex.escape(text), flags)
    except regex.error as error:
        raise RefusedCall("Bad Pattern", reason=str(error)) from None


def _around(line: str, at: int) -> str:
    begin = max(0, at - _HIT_CHARS // 2) if len(line) > _HIT_CHARS else 0
    return f"{'…' if begin else ''}{line[begin : begin + _HIT_CHARS]}"


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    return value if isinstance(value, str) else ""


def _number(given: Mapping[str, Any], name: str, otherwise: int) -> int:
    value = given.get(name, otherwise)
    return value if isinstance(value, int) else otherwise
