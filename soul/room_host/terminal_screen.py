"""The host's terminal: messages go into the scrollback, and below them is the panel with the input box.

The panel is a prompt_toolkit application outside the alternate screen, so messages can still be read, searched and
copied when the room is closed. The library restores the terminal's modes however `run` ends.

The input box has its own completion and keys where prompt_toolkit's defaults differ.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO, cast

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys
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

from adapters.space.roster import Roster
from common.clock import Clock
from common.version import __version__
from soul.room_host.panel import DIM, INPUT_LINES, EventRow, Piece, box_title, lines, most_input_lines, roster_lines
from soul.room_host.screen import OnLine
from soul.terminal.panel import cells, clusters, one_line, strip_control, width
from soul.terminal.plain import Outlet


class NameCompleter(Completer):
    """Completes a slash command at the start of the line, and the names of members after an @ anywhere."""

    def __init__(self, commands: Callable[[], Sequence[str]], roster: Roster) -> None:
        self._commands = commands
        self._roster = roster

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        word = before[max(before.rfind(" "), before.rfind("\n")) + 1 :]
        if word.startswith("@"):
            choices = [f"@{name}" for name in self._roster.names if name == one_line(name)]
        elif word.startswith("/") and word == before:
            choices = [f"/{name}" for name in self._commands()]
        else:
            return
        for choice in choices:
            if choice.casefold().startswith(word.casefold()):
                yield Completion(choice, start_position=-len(word))


def key_bindings(buffer: Buffer, columns: Callable[[], int]) -> KeyBindings:
    """Return the key bindings for leaving, new lines and paste, and for moves by visible characters and by rows.

    `columns` returns the width of the box.
    """
    keys = KeyBindings()
    is_empty = Condition(lambda: not buffer.text)
    has_no_menu = Condition(lambda: buffer.complete_state is None)
    keys.add("c-c")(lambda event: event.app.exit())
    keys.add("c-d", filter=is_empty)(lambda event: event.app.exit())
    keys.add("escape", filter=is_empty)(lambda event: event.app.exit())
    keys.add("escape", filter=~is_empty)(lambda _: buffer.reset())
    keys.add("escape", "enter")(lambda _: buffer.insert_text("\n"))
    keys.add(Keys.BracketedPaste)(lambda event: buffer.insert_text(strip_control(event.data)))
    keys.add("backspace")(lambda _: buffer.delete_before_cursor(_last_length(buffer.document.text_before_cursor)))
    keys.add("delete")(lambda _: buffer.delete(_first_length(buffer.document.text_after_cursor)))
    keys.add("left")(lambda _: buffer.cursor_left(_last_length(buffer.document.text_before_cursor)))
    keys.add("right")(lambda _: buffer.cursor_right(_first_length(buffer.document.text_after_cursor)))
    keys.add("up", filter=has_no_menu)(lambda _: _row_up(buffer, columns()))
    keys.add("down", filter=has_no_menu)(lambda _: _row_down(buffer, columns()))
    return keys


def _first_length(text: str) -> int:
    """Return the number of code points in the first cluster."""
    return next((len(cluster) for _, cluster in clusters(text)), 0)


def _last_length(text: str) -> int:
    return len(text) - max((place for place, _ in clusters(text)), default=len(text))


def _row_up(buffer: Buffer, columns: int) -> None:
    """Move up by a row of a wrapped line; from its first row to the line above, or back in the history."""
    before = buffer.document.current_line_before_cursor
    if width(before) < columns:
        buffer.auto_up()
        _leave_cluster(buffer)
        return
    start, surplus = 0, width(before) - columns
    for place, cluster in clusters(before):
        surplus -= cells(cluster)
        if surplus < 0:
            break
        start = place + len(cluster)
    buffer.cursor_position -= len(before) - start


def _row_down(buffer: Buffer, columns: int) -> None:
    """Move down by a row of a wrapped line; from its last row to the line below, or forward in the history."""
    column = width(buffer.document.current_line_before_cursor)
    after = buffer.document.current_line_after_cursor
    if (column + width(after)) // columns == column // columns:
        buffer.auto_down()
        _leave_cluster(buffer)
        return
    end, room = 0, columns
    for place, cluster in clusters(after):
        room -= cells(cluster)
        if room < 0:
            break
        end = place + len(cluster)
    buffer.cursor_position += end


def _leave_cluster(buffer: Buffer) -> None:
    """Move to the start of the cluster around the cursor, since the library counts columns in code points."""
    at = buffer.cursor_position
    if at < len(buffer.text):
        buffer.cursor_position = max(place for place, _ in clusters(buffer.text) if place <= at)


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
            # NOTE(self): the terminal was closed, so the host is gone.
            return

    def _put(self, content: list[list[Piece]]) -> None:
        """Show lines now or, while the panel is drawn, together with all others of the same event loop iteration."""
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
        """Pass on the line in the box, and keep it in the history without control characters and outer white space."""
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
    # NOTE(self): the panel is drawn with relative moves only. A terminal that is asked for the cursor position answers
    # into the input, and a slow one too late.
    output.enable_cpr = False
    return output
