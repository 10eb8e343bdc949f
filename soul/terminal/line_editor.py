"""The owner's input line near the bottom of a terminal, with a panel below it; other output appears above it.

While `lines` runs, standard output and standard error go above the line. Arrow keys bring back earlier lines. The
terminal is restored however `lines` ends.
"""

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
"""Returns the lines of the panel for a terminal with this many columns and rows."""

_PROMPT = "> "
_REDRAW_S = 1.0
_LEAST_ROWS_FOR_SIGN = 3
_STYLE = Style([("sign", "fg:ansibrightblack")])


class LineEditor:
    """Reads lines. `leave` is called on Ctrl-C.

    Every second, `sign` is called for the text above the input line, in this many columns, and `panel` for the lines
    below it.
    """

    def __init__(self, *, sign: Callable[[int], str], panel: Panel, leave: Callable[[], None]) -> None:
        self._sign = sign
        self._panel = panel
        self._leave = leave
        # NOTE(self): prompt_toolkit applies NO_COLOR only to an output that it makes itself.
        output = Vt100_Output.from_pty(sys.stdout, enable_bell=False, default_color_depth=ColorDepth.from_env())
        # NOTE(self): a terminal that is asked for its cursor position answers into the input, and a slow one too late.
        output.enable_cpr = False
        self._output = output
        self._session: PromptSession[str] = PromptSession(
            self._prompt, style=_STYLE, refresh_interval=_REDRAW_S, output=output
        )
        self._session.app.layout = self._with_panel(self._session.layout)

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines that the owner types, trimmed, until Ctrl-C, Ctrl-D or the end of the terminal.

        Bytes that are not text in the terminal's encoding become question marks.
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
        """Return the layout with the panel below; a prompt's own toolbar waits for a cursor position, which is off."""
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
        """Return the prompt with the sign above it, unless the line is finished or the terminal has only two rows."""
        size = self._output.get_size()
        if self._session.app.is_done or size.rows < _LEAST_ROWS_FOR_SIGN:
            return [("", _PROMPT)]
        return [("class:sign", f"{fit(self._sign(size.columns), size.columns)}\n"), ("", _PROMPT)]
