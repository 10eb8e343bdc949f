"""A terminal of its own for the room's program, typed into and read byte by byte."""

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.patience import HANG_S
from tests.soul.seen_screen import SeenScreen

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-Z\\^-~])")


def _take_terminal() -> None:
    """Make standard input the program's controlling terminal: Ctrl-C is a signal there while no line is read."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A pseudo terminal and the program in it. `raw` is all that the program has written."""

    def __init__(self, columns: int, rows: int) -> None:
        self._ours, self._theirs = pty.openpty()
        self._seen = SeenScreen(columns)
        self.resize(columns, rows)
        self._before = termios.tcgetattr(self._theirs)
        self.raw = b""
        self._came = asyncio.Event()
        self.process: asyncio.subprocess.Process

    async def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        asyncio.get_running_loop().add_reader(self._ours, self._read)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "soul.cli",
            *arguments,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            preexec_fn=_take_terminal,
            env=os.environ | {"TERM": "xterm-256color"} | dict(environment or {}),
        )

    @property
    def text(self) -> str:
        """What was written, without terminal control sequences."""
        return _SEQUENCE.sub("", self.raw.decode(errors="replace"))

    @property
    def screen(self) -> list[str]:
        """The lines that a person sees, including those scrolled away; valid while the size is the first one."""
        return self._seen.lines

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal's modes are the same as at first."""
        return termios.tcgetattr(self._theirs) == self._before

    def type(self, keys: str) -> None:
        """Type these keys; a lone surrogate stands for a byte that is no text, as in file names."""
        os.write(self._ours, keys.encode(errors="surrogateescape"))

    def hold(self) -> None:
        """Stop the terminal's output, as Ctrl-S does."""
        termios.tcflow(self._theirs, termios.TCOOFF)

    def release(self) -> None:
        """Resume the terminal's output, as Ctrl-Q does."""
        termios.tcflow(self._theirs, termios.TCOON)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def tell_resized(self) -> None:
        self.process.send_signal(signal.SIGWINCH)

    async def until(self, words: str, *, after: int = 0, seconds: float = HANG_S) -> int:
        """Wait until `words` appear in the text after the position `after`; return the position behind them."""
        end = asyncio.get_running_loop().time() + seconds
        while (found := self.text.find(words, after)) < 0:
            alive = self.process.returncode is None and asyncio.get_running_loop().time() < end
            assert alive, f"never showed {words!r}:\n{self.text[after:]}"
            await self.more()
        return found + len(words)

    async def until_screen(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds`, a check of the screen, is true."""
        end = asyncio.get_running_loop().time() + HANG_S
        while not holds():
            alive = self.process.returncode is None and asyncio.get_running_loop().time() < end
            assert alive, "\n".join(self.screen)
            await self.more()

    async def more(self) -> None:
        """Wait until the program writes something, or half a second, since it may have ended."""
        self._came.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._came.wait(), 0.5)

    async def end(self) -> int:
        """Wait for the program's end, and return its exit code."""
        return await asyncio.wait_for(self.process.wait(), HANG_S)

    def _read(self) -> None:
        came = os.read(self._ours, 65_536)
        self.raw += came
        self._seen.receive(came)
        self._came.set()

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        asyncio.get_running_loop().remove_reader(self._ours)
        os.close(self._ours)
        os.close(self._theirs)


@asynccontextmanager
async def hosted(
    folder: Path, *options: str, columns: int = 80, rows: int = 30, ready: str = "CTRL+C quit"
) -> AsyncIterator[tuple[Terminal, str]]:
    """Host a room from a terminal; yield the terminal once it shows `ready`, and the room's URL."""
    terminal = Terminal(columns, rows)
    await terminal.start("space", "--port", "0", "--data", str(folder), *options)
    try:
        await terminal.until(ready)
        found = re.search(r"SPACE_URL=(ws://\S+)", terminal.text)
        assert found
        yield terminal, found[1]
    finally:
        await terminal.close()
