"""The lines that the owner sees: lives and services write through this interface, the terminal draws them."""

from typing import Protocol

from common.wording import LineKind


class Console(Protocol):
    """Something that can show one line: a terminal, a log, a list in a test."""

    def line(self, kind: LineKind, message: str, detail: str = "") -> None:
        """Show `message`, with `detail` dimmed behind it. Never raises, never blocks."""
        ...


class SilentConsole:
    """Shows nothing, and keeps every line in `lines`."""

    def __init__(self) -> None:
        self.lines: list[tuple[LineKind, str, str]] = []

    def line(self, kind: LineKind, message: str, detail: str = "") -> None:
        self.lines.append((kind, message, detail))
