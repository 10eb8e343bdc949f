"""The host's terminal: the talk runs into the scrollback, and below it stands the panel, drawn anew in its place.

No alternate screen: what was said can still be read, searched and copied when the room is closed. The terminal is put
back as it was on every way out, because the drawing library does so when its run ends, for whatever reason.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TextIO, cast

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style

from common.clock import Clock
from common.version import __version__
from soul.room_host.editor import Editor
from soul.room_host.keys import Deed, keys
from soul.room_host.markup import Piece
from soul.room_host.panel import Panel, panel, room_for_input
from soul.room_host.roster import Roster
from soul.room_host.rows import Row, lines
from soul.room_host.screen import OnLine
from soul.terminal.outlet import Outlet
from soul.terminal.text import strip_control

_REDRAW_S = 1.0
_ESCAPE_S = 0.1
_PLAIN = Style([])


class TerminalScreen:
    """Shows rows above the panel, and listens to the keys."""

    def __init__(self, roster: Roster, clock: Clock, out: Outlet, *, timezone: str = "") -> None:
        self._roster = roster
        self._clock = clock
        self._timezone = timezone
        self._editor = Editor()
        self._on_line: OnLine = _nobody
        self._waiting: list[list[Piece]] = []
        self._out = out
        self._output = _output(out)
        self._app = self._application(create_input(sys.stdin), self._output)

    @property
    def is_behind(self) -> bool:
        return self._out.is_behind

    def show(self, row: Row) -> None:
        self._put(lines(row, self._columns, self._timezone))

    def print(self, lines: list[str]) -> None:
        self._put([[("", strip_control(line))] for line in lines])

    def refresh(self) -> None:
        self._app.invalidate()

    async def run(self, submit: OnLine) -> None:
        self._on_line = submit
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            # NOTE(self): the terminal was closed, and with it the host is gone.
            return

    @property
    def _columns(self) -> int:
        return self._output.get_size().columns

    def _put(self, content: list[list[Piece]]) -> None:
        """Show lines now, or, while the panel stands, with all that comes in the same moment."""
        if not self._app.is_running:
            self._print(content)
            return
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting += content

    def _flush(self) -> None:
        content, self._waiting = self._waiting, []
        if self._out.take_lost():
            # NOTE(self): what was drawn with relative moves stands nobody knows where.
            self._app.renderer.clear()
        elif self._app.is_running:
            self._app.renderer.erase(leave_alternate_screen=False)
        self._print(content)
        self._app.invalidate()

    def _print(self, content: list[list[Piece]]) -> None:
        pieces: StyleAndTextTuples = []
        for line in content:
            pieces += [*line, ("", "\n")]
        print_formatted_text(self._output, pieces, _PLAIN)

    def _panel(self) -> Panel:
        size = self._output.get_size()
        return panel(
            self._roster.entries,
            self._editor,
            size.columns,
            rows=size.rows,
            version=__version__,
            now=self._clock.monotonic(),
        )

    def _text(self) -> StyleAndTextTuples:
        pieces: StyleAndTextTuples = []
        for place, line in enumerate(self._panel().lines):
            pieces += [("", "\n"), *line] if place else [*line]
        return pieces

    def _cursor(self) -> Point:
        row, column = self._panel().cursor
        return Point(x=column, y=row)

    def _application(self, source: Input, output: Output) -> Application[None]:
        control = FormattedTextControl(self._text, focusable=True, get_cursor_position=self._cursor, show_cursor=True)
        app: Application[None] = Application(
            layout=Layout(Window(control, dont_extend_height=True, wrap_lines=False)),
            key_bindings=keys(self._do),
            style=_PLAIN,
            erase_when_done=True,
            refresh_interval=_REDRAW_S,
            input=source,
            output=output,
        )
        app.ttimeoutlen = app.timeoutlen = _ESCAPE_S
        return app

    def _do(self, deed: Deed) -> None:
        match deed:
            case "enter":
                self._editor, words = self._editor.said()
                if words:
                    self._on_line(words)
            case "escape":
                if not self._editor.text:
                    self._leave()
                self._editor = self._editor.cleared()
            case "end of input":
                if not self._editor.text:
                    self._leave()
                self._editor = self._editor.delete()
            case "quit":
                self._leave()
            case "clear screen":
                self._app.renderer.clear()
            case _:
                self._editor = deed(self._editor, room_for_input(self._columns))

    def _leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()


def _nobody(_words: str) -> None:
    """Before `run` nobody listens."""


def _output(out: Outlet) -> Vt100_Output:
    output = Vt100_Output.from_pty(cast("TextIO", out), enable_bell=False)
    # NOTE(self): the panel is drawn with relative moves only; asking where the cursor stands would put bytes into the
    # input that a slow terminal sends too late.
    output.enable_cpr = False
    return output
