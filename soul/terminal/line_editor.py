"""The owner's line at the bottom of a terminal: what happens meanwhile appears above it, and never in it.

While `lines` runs, standard output and standard error go above the line. Earlier lines come back with the arrow keys.
The terminal is put back as it was on every way out.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import PromptSession
from prompt_toolkit.styles import Style

_PROMPT = "> "
_REDRAW_S = 1.0
_STYLE = Style([("sign", "fg:ansibrightblack")])


class LineEditor:
    """Reads lines. `sign` is asked every second what is to be shown above the line; `leave` is called for Ctrl-C."""

    def __init__(self, *, sign: Callable[[], str], leave: Callable[[], None]) -> None:
        self._sign = sign
        self._leave = leave
        output = Vt100_Output.from_pty(sys.stdout, enable_bell=False)
        # NOTE(self): a terminal that is asked where its cursor stands answers into the input, and a slow one too late.
        output.enable_cpr = False
        self._session: PromptSession[str] = PromptSession(
            self._prompt, style=_STYLE, refresh_interval=_REDRAW_S, output=output
        )

    async def lines(self) -> AsyncIterator[str]:
        """What the owner types, line by line and trimmed, until Ctrl-C, Ctrl-D or the terminal's end."""
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
                    yield line.strip()

    def _prompt(self) -> StyleAndTextTuples:
        """With the sign above it, which goes when the line is finished."""
        if self._session.app.is_done:
            return [("", _PROMPT)]
        return [("class:sign", f"{self._sign()}\n"), ("", _PROMPT)]
