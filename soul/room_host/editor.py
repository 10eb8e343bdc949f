"""The host's line before it is said: what stands in it, where the cursor is, and what was said before. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import regex

from common.text.graphemes import CLUSTER
from soul.terminal.text import cells, clusters, strip_control

_MOST_REMEMBERED = 200
_LAST_WORD = regex.compile(r"(?<!\S)\S+\s*\Z")


@dataclass(frozen=True, slots=True)
class Editor:
    """Every key makes another one. `at` counts characters; `past` is what was said, `back` how far up in it we look."""

    text: str = ""
    at: int = 0
    past: tuple[str, ...] = ()
    back: int = 0
    draft: str = ""

    def insert(self, text: str) -> Editor:
        """Typed or pasted: without control characters, line breaks and tabs kept."""
        clean = strip_control(text)
        return replace(self, text=self.text[: self.at] + clean + self.text[self.at :], at=self.at + len(clean))

    def backspace(self) -> Editor:
        return self._without(self._before(), self.at)

    def delete(self) -> Editor:
        return self._without(self.at, self._after())

    def delete_word(self) -> Editor:
        match = _LAST_WORD.search(self.text[: self.at])
        return self._without(match.start() if match else 0, self.at)

    def delete_to_start(self) -> Editor:
        return self._without(self.text.rfind("\n", 0, self.at) + 1, self.at)

    def delete_to_end(self) -> Editor:
        return self._without(self.at, self._line_end())

    def left(self) -> Editor:
        return replace(self, at=self._before())

    def right(self) -> Editor:
        return replace(self, at=self._after())

    def home(self) -> Editor:
        return replace(self, at=self.text.rfind("\n", 0, self.at) + 1)

    def end(self) -> Editor:
        return replace(self, at=self._line_end())

    def up(self, columns: int) -> Editor:
        """One line up as they are seen at this width; from the first line to what was said before."""
        row, column = self.cursor(columns)
        return self._at(row - 1, column, columns) if row else self._look_back(self.back + 1)

    def down(self, columns: int) -> Editor:
        """One line down; from the last line to what was said later, and at last to what was being written."""
        row, column = self.cursor(columns)
        if row < len(self.lines(columns)) - 1:
            return self._at(row + 1, column, columns)
        return self._look_back(self.back - 1)

    def cleared(self) -> Editor:
        return Editor(past=self.past)

    def said(self) -> tuple[Editor, str]:
        """What was written, trimmed, and the empty line after it."""
        words = self.text.strip()
        past = (*self.past, words)[-_MOST_REMEMBERED:] if words and self.past[-1:] != (words,) else self.past
        return Editor(past=past), words

    def lines(self, columns: int) -> list[tuple[int, int]]:
        """Where each line begins and ends, cut hard at `columns`."""
        lines, start, used = [], 0, 0
        for place, cluster in clusters(self.text):
            if cluster == "\n":
                lines.append((start, place))
                start, used = place + 1, 0
                continue
            room = cells(cluster)
            if used + room > columns and place > start:
                lines.append((start, place))
                start, used = place, 0
            used += room
        return [*lines, (start, len(self.text))]

    def cursor(self, columns: int) -> tuple[int, int]:
        """The cursor's line and column, both from 0."""
        lines = self.lines(columns)
        row = max(row for row, (start, _) in enumerate(lines) if start <= self.at)
        start = lines[row][0]
        return row, sum(cells(cluster) for _, cluster in clusters(self.text[start : self.at]))

    def _at(self, row: int, column: int, columns: int) -> Editor:
        """The place nearest to `column` that is still seen on this line."""
        places = self.lines(columns)
        start, end = places[row]
        wraps = row + 1 < len(places) and places[row + 1][0] == end
        at, used = start, 0
        for offset, cluster in clusters(self.text[start:end]):
            used += cells(cluster)
            after = start + offset + len(cluster)
            if used > column or (wraps and after == end):
                break
            at = after
        return replace(self, at=at)

    def _look_back(self, back: int) -> Editor:
        if not 0 <= back <= len(self.past) or back == self.back:
            return self
        draft = self.text if self.back == 0 else self.draft
        text = self.past[-back] if back else draft
        return replace(self, text=text, at=len(text), back=back, draft=draft)

    def _without(self, start: int, end: int) -> Editor:
        return replace(self, text=self.text[:start] + self.text[end:], at=start)

    def _before(self) -> int:
        return max((place for place, _ in clusters(self.text[: self.at])), default=0)

    def _after(self) -> int:
        match = CLUSTER.match(self.text, self.at)
        return match.end() if match else self.at

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end
