"""The owner's line near the bottom of a terminal, with a panel below it: what happens meanwhile appears above it.

While `lines` runs, standard output and standard error go above the line. Earlier lines come back with the arrow keys.
The terminal is put back as it was on every way out.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence

from prompt_toolkit.filters import is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import PromptSession
from prompt_toolkit.styles import Style

from soul.terminal.panel import Piece, fit

Panel = Callable[[int, int], Sequence[Sequence[Piece]]]
"""Returns the lines of the panel for a terminal with so many columns and rows."""

_PROMPT = "> "
_REDRAW_S = 1.0
_LEAST_ROWS_FOR_SIGN = 3
_STYLE = Style([("sign", "fg:ansibrightblack")])


class LineEditor:
    """Reads lines. `leave` is called for Ctrl-C.

    `sign` is asked every second what is to be shown above the line, in so many columns, and `panel` what is to be
    shown below it.
    """

    def __init__(self, *, sign: Callable[[int], str], panel: Panel, leave: Callable[[], None]) -> None:
        self._sign = sign
        self._panel = panel
        self._leave = leave
        # NOTE(self): an output that is not made by prompt_toolkit itself has to be told of NO_COLOR.
        output = Vt100_Output.from_pty(sys.stdout, enable_bell=False, default_color_depth=ColorDepth.from_env())
        # NOTE(self): a terminal that is asked where its cursor stands answers into the input, and a slow one too late.
        output.enable_cpr = False
        self._output = output
        self._session: PromptSession[str] = PromptSession(
            self._prompt, style=_STYLE, refresh_interval=_REDRAW_S, output=output
        )
        self._session.app.layout = self._with_panel(self._session.layout)

    async def lines(self) -> AsyncIterator[str]:
        """What the owner types, line by line and trimmed, until Ctrl-C, Ctrl-D or the terminal's end.

        What is not text in the terminal's encoding comes as question marks.
        """
        with patch_stdout(raw=True):
            while True:
                try:
                    line = await self._session.prompt_async(handle_sigint=False, set_exception_handler=False)
                except KeyboardInterrupt:
                    self._leave()
                    return
                except EOFError:
                    return
                if line.strip():
                    yield line.strip().encode(errors="replace").decode()

    def _with_panel(self, layout: Layout) -> Layout:
        """The layout with the panel below it; the toolbar of a prompt waits for an answer that is not asked for."""
        panel = Window(FormattedTextControl(self._panel_text), dont_extend_height=True, wrap_lines=False)
        shown = ConditionalContainer(panel, filter=~is_done)
        return Layout(HSplit([layout.container, shown]), focused_element=self._session.default_buffer)

    def _panel_text(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        text: StyleAndTextTuples = []
        for line in self._panel(size.columns, size.rows):
            text += [("", "\n"), *line] if text else list(line)
        return text

    def _prompt(self) -> StyleAndTextTuples:
        """With the sign above it, which goes when the line is finished; a terminal of two rows has no room for it."""
        size = self._output.get_size()
        if self._session.app.is_done or size.rows < _LEAST_ROWS_FOR_SIGN:
            return [("", _PROMPT)]
        return [("class:sign", f"{fit(self._sign(size.columns), size.columns)}\n"), ("", _PROMPT)]
