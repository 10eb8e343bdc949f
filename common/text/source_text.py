"""The text of a source file in the encoding that it has: read, changed and written back without touching other bytes.

Pure: bytes in, text out. Lines end at a line feed only, as for Git and editors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

LINE_END = re.compile(r"(?:\r\n?|\n)")

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_WESTERN = ("cp1252", "latin-1")
_OTHERS = ["gb18030", "euc_jp", "euc_kr", "big5", "cp1251", "koi8_r", "shift_jis"]
"""Of those that fit about equally well the first is taken."""
_EQUAL_CHAOS = 0.02
_LONG_RUN = re.compile(rb"[\x80-\xff]{4}")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_GUESSED_BYTES = 65_536
_MOST_COMPARED_LINES, _LEAST_RATIO = 8, 50.0
_COMPARED_CHARS = 400


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text, the encoding of its file, and the byte order mark that stands before it (b"" without one)."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def about(self) -> str:
        """The encoding as the model is told; "" for plain UTF-8."""
        named = f"{self.encoding} with a byte order mark" if self.mark else self.encoding
        return "" if named == "utf-8" else named

    @property
    def is_crlf(self) -> bool:
        """Whether most lines end in CR LF."""
        return 2 * self.text.count("\r\n") > self.text.count("\n")

    def encoded(self, text: str) -> bytes:
        """Return a text as bytes of this file. Raises `UnicodeEncodeError` for a character that it cannot hold."""
        return self.mark + text.encode(self.encoding)

    def with_line_ends(self, text: str) -> str:
        """Return a text with the line ends of this file: the model is not shown that they are CR LF."""
        return "\r\n".join(LINE_END.split(text)) if self.is_crlf else text


def read_source(data: bytes) -> SourceText | None:
    """Return the text of a file, or None if it holds none. Encoding it again gives the same bytes."""
    mark, encoding = next(((mark, name) for mark, name in _BOMS if data.startswith(mark)), (b"", "utf-8"))
    if (found := _decoded(data, encoding, mark)) is not None:
        return found
    if mark or _CONTROL.search(data):
        return None
    guessed: tuple[str, ...] = _WESTERN
    if _LONG_RUN.search(data):
        guessed = (*_likely(data[:_GUESSED_BYTES]), *_WESTERN)
    return next((found for name in guessed if (found := _decoded(data, name, b"")) is not None), None)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if not lines[-1] else lines)]


def numbered(lines: Sequence[str], first: int) -> str:
    """Return lines behind their numbers, `first` being that of the first."""
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, first))


def line_at(text: str, position: int) -> int:
    """Return the number of the line that a position is in."""
    return text.count("\n", 0, position) + 1


def nearest(text: str, wanted: str) -> str:
    """Return the numbered lines that are most like the beginning of `wanted`; "" if nothing is like it."""
    sought = [line.strip() for line in lines_of("\n".join(LINE_END.split(wanted.strip("\r\n"))))][:_MOST_COMPARED_LINES]
    lines = lines_of(text)
    bare = [line.strip() for line in lines]
    best, at, target = _LEAST_RATIO, -1, "\n".join(sought)[:_COMPARED_CHARS]
    for number in range(max(0, len(lines) - len(sought)) + 1 if target else 0):
        place = "\n".join(bare[number : number + len(sought)])[:_COMPARED_CHARS]
        ratio = fuzz.ratio(target, place, score_cutoff=best)
        if ratio > best:
            best, at = ratio, number
    return numbered(lines[at : at + len(sought)], at + 1) if at >= 0 else ""


def _likely(data: bytes) -> list[str]:
    """The encodings that fit bytes best, the likeliest first."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - its tables take 2 MiB, and most files are UTF-8

    chaos = {one.encoding: one.chaos for one in from_bytes(data, cp_isolation=_OTHERS)}
    least = min(chaos.values(), default=0.0)
    return [name for name in _OTHERS if chaos.get(name, 1.0) <= least + _EQUAL_CHAOS]


def _decoded(data: bytes, encoding: str, mark: bytes) -> SourceText | None:
    try:
        found = SourceText(data[len(mark) :].decode(encoding), encoding, mark)
        return found if found.encoded(found.text) == data else None
    except UnicodeError:
        return None
