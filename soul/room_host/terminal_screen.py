"""The host's terminal: the talk goes into the scrollback, and below it stands the panel with the box to write in.

The panel is a prompt_toolkit application outside the alternate screen, so what was said can still be read, searched and
copied when the room is closed. The library restores the terminal's modes on every way out of `run`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO, cast

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalMargin,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    ScrollbarMargin,
    VSplit,
    Window,
)
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import Frame

from common.clock import Clock
from common.version import __version__
from soul.room_host.input_box import NameCompleter, key_bindings
from soul.room_host.panel import DIM, INPUT_LINES, EventRow, Piece, box_title, lines, most_input_lines, roster_lines
from soul.room_host.roster import Roster
from soul.room_host.screen import OnLine
from soul.terminal.panel import strip_control
from soul.terminal.plain import Outlet

_REDRAW_S = 1.0
_ESCAPE_S = 0.1
_MENU_LINES = 6
_SIDE_COLUMNS = 4  # a border and a space on either side
_OTHER_LINES = 4  # one of the roster, the rule, and the borders of the box
_STYLE = Style([("frame.border", DIM), ("frame.label", DIM)])


class TerminalScreen:
    """Shows rows above the panel, and reads lines from the box in it."""

    def __init__(self, roster: Roster, clock: Clock, out: Outlet) -> None:
        self._roster = roster
        self._clock = clock
        self._commands: Sequence[str] = ()
        self._on_line: OnLine | None = None
        self._waiting: list[list[Piece]] = []
        self._out = out
        self._output = _output(out)
        self._buffer = Buffer(
            completer=NameCompleter(lambda: self._commands, roster),
            complete_while_typing=True,
            multiline=False,
            accept_handler=self._accept,
        )
        self._app: Application[None] = Application(
            layout=Layout(self._panel()),
            key_bindings=key_bindings(self._buffer, self._box_columns),
            style=_STYLE,
            erase_when_done=True,
            refresh_interval=_REDRAW_S,
            input=create_input(sys.stdin),
            output=self._output,
        )
        self._app.ttimeoutlen = self._app.timeoutlen = _ESCAPE_S

    @property
    def is_behind(self) -> bool:
        return self._out.is_behind

    def show(self, row: EventRow) -> None:
        self._put(lines(row, self._output.get_size().columns))

    def print(self, lines: list[str]) -> None:
        self._put([[("", strip_control(line))] for line in lines])

    def refresh(self) -> None:
        self._app.invalidate()

    async def run(self, on_line: OnLine, commands: Sequence[str] = ()) -> None:
        self._on_line, self._commands = on_line, commands
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            # NOTE(self): the terminal was closed, and with it the host is gone.
            return

    def _put(self, content: list[list[Piece]]) -> None:
        """Show lines now; while the panel is drawn, together with all others of the same turn of the event loop."""
        if not self._app.is_running:
            self._print(content)
            return
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting += content

    def _flush(self) -> None:
        content, self._waiting = self._waiting, []
        if self._out.take_lost():
            # NOTE(self): lost output may hold moves of the cursor, so its position is unknown.
            self._app.renderer.clear()
        elif self._app.is_running:
            self._app.renderer.erase(leave_alternate_screen=False)
        self._print(content)
        self._app.invalidate()

    def _print(self, content: list[list[Piece]]) -> None:
        print_formatted_text(self._output, _joined([*content, []]), _STYLE)

    def _accept(self, buffer: Buffer) -> bool:
        """Pass on the line in the box; it goes into the history without control characters and outer white space."""
        buffer.document = Document(strip_control(buffer.text).strip())
        if buffer.text and self._on_line is not None:
            self._on_line(buffer.text)
        return False

    def _panel(self) -> FloatContainer:
        members = FormattedTextControl(self._members)
        box = Window(
            BufferControl(self._buffer, input_processors=[TabsProcessor(char1=" ", char2=" ")]),
            height=self._box_height,
            wrap_lines=True,
            dont_extend_height=True,
        )
        scrolled = Condition(
            lambda: (info := box.render_info) is not None and len(info.displayed_lines) < info.content_height
        )
        box.right_margins = [ConditionalMargin(ScrollbarMargin(), filter=scrolled)]
        frame = Frame(VSplit([Window(width=1), box, Window(width=1)]), title=self._title)
        return FloatContainer(
            HSplit([Window(members, dont_extend_height=True), Window(height=1, char="─", style=DIM), frame]),
            floats=[Float(CompletionsMenu(max_height=_MENU_LINES), xcursor=True, ycursor=True)],
        )

    def _members(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        return _joined(roster_lines(self._roster.entries, size.columns, size.rows, self._clock.monotonic()))

    def _title(self) -> str:
        return box_title(self._output.get_size().columns, __version__)

    def _box_columns(self) -> int:
        return max(self._output.get_size().columns - _SIDE_COLUMNS, 1)

    def _box_height(self) -> Dimension:
        rows = self._output.get_size().rows
        return Dimension(min=min(INPUT_LINES, max(rows - _OTHER_LINES, 1)), max=most_input_lines(rows))


def _joined(content: Iterable[Sequence[Piece]]) -> StyleAndTextTuples:
    pieces: StyleAndTextTuples = []
    for number, line in enumerate(content):
        pieces += [("", "\n"), *line] if number else [*line]
    return pieces


def _output(out: Outlet) -> Output:
    output = Vt100_Output.from_pty(cast("TextIO", out), enable_bell=False)
    # NOTE(self): the panel is drawn with relative moves only; asking where the cursor stands would put bytes into the
    # input that a slow terminal sends too late.
    output.enable_cpr = False
    return output
