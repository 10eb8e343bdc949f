"""What a person sees on a terminal that receives bytes, as far as a line-by-line program needs it."""

import codecs
import re

_TOKEN = re.compile(r"\x1b\[([0-9;?]*)([@-~])|\x1b[ -/]*[0-~]|[\r\n\b\x07]|[^\x1b\r\n\b\x07]+")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*|[ -/]*)\Z")


class _Screen:
    """The lines, including those scrolled away, and the cursor."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self.lines = [" " * columns]
        self._row = self._column = 0

    def obey(self, final: str, count: int) -> None:
        """Carry out a control sequence: move the cursor, or erase behind it."""
        moves = {"A": (-count, 0), "B": (count, 0), "C": (0, count), "D": (0, -count)}
        down, right = moves.get(final, (0, 0))
        self._move(self._row + down, self._column + right)
        if final in "JK":
            self._put(self._row, self._column, " " * (self._columns - self._column))
        if final == "J":
            del self.lines[self._row + 1 :]

    def take(self, text: str) -> None:
        """Carry out a control character, or write text."""
        match text:
            case "\r":
                self._move(self._row, 0)
            case "\n":
                self._move(self._row + 1, self._column)
            case "\b":
                self._move(self._row, self._column - 1)
            case _:
                for char in text if text[0] not in "\x1b\x07" else "":
                    if self._column == self._columns:
                        self._move(self._row + 1, 0)
                    self._put(self._row, self._column, char)
                    self._column += 1

    def _move(self, row: int, column: int) -> None:
        self._row, self._column = max(0, row), min(max(0, column), self._columns)
        self.lines += [" " * self._columns] * (self._row + 1 - len(self.lines))

    def _put(self, row: int, column: int, text: str) -> None:
        line = self.lines[row]
        self.lines[row] = (line[:column] + text + line[column + len(text) :])[: self._columns]


class SeenScreen:
    """The screen of a terminal; it reads each byte once, so that many looks stay cheap."""

    def __init__(self, columns: int) -> None:
        self._screen = _Screen(columns)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._unfinished = ""

    def receive(self, raw: bytes) -> None:
        text = self._unfinished + self._decoder.decode(raw)
        cut = _UNFINISHED.search(text)
        self._unfinished = cut[0] if cut else ""
        for token in _TOKEN.finditer(text, 0, cut.start() if cut else len(text)):
            if token[2]:
                self._screen.obey(token[2], int(token[1]) if token[1].isdigit() else 1)
            else:
                self._screen.take(token[0])

    @property
    def lines(self) -> list[str]:
        """All lines down to the last one that is not empty; wide characters are treated like all others."""
        lines = [line.rstrip() for line in self._screen.lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines
