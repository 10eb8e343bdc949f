r"""Writes the output of commands to standard output and standard error, so that no text can control the terminal.

Text of strangers, models and services may hold escape sequences, C1 controls, or characters that hide text or reverse
its direction. They are removed from lines; JSON has them as `\u` and four hex digits.
This module imports nothing that takes time to load.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from common.errors import SoulError

Colour = Literal["red", "green", "cyan"]

_COLOURS: dict[Colour, int] = {"red": 31, "green": 32, "cyan": 36}


def visible(line: str) -> str:
    """Return `line` on one line without control and invisible characters; its spaces stay as they are."""
    if line.isprintable():
        return line
    from soul.terminal.panel import TAB, strip_control  # noqa: PLC0415 - takes time to load, and is rarely needed

    return strip_control(line).replace("\t", TAB).replace("\n", " ")


def printable(text: str) -> str:
    """Return `text` as `visible` does, with each run of white space as one space."""
    return " ".join(visible(text).split())


def write_lines(*lines: str, to: TextIO | None = None) -> None:
    """Write each line, to standard output if no stream is given."""
    stream = to or sys.stdout
    stream.write("".join(f"{_fitted(visible(line), stream)}\n" for line in lines))
    stream.flush()


def _fitted(line: str, stream: TextIO) -> str:
    """Return a line wrapped between words at the width of the terminal; further lines are indented by two more."""
    if not stream.isatty() or len(line) <= (columns := shutil.get_terminal_size().columns):
        return line
    import textwrap  # noqa: PLC0415 - takes time to load, and is rarely needed

    begin = " " * (len(line) - len(line.lstrip()))
    # NOTE(self): a word wider than the terminal, such as an address, stays whole, so that it can be copied.
    whole = textwrap.TextWrapper(columns, begin, f"{begin}  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(whole.wrap(line.lstrip()))


def coloured(line: str, colour: Colour | None = None) -> str:
    """Return one line as it is written, in `colour` if standard output is a terminal that shows colours."""
    if colour and sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb":
        return f"\x1b[{_COLOURS[colour]}m{visible(line)}\x1b[0m"
    return visible(line)


def write_line(line: str, colour: Colour | None = None) -> None:
    """Write one line, in `colour` if standard output is a terminal that shows colours."""
    sys.stdout.write(f"{coloured(line, colour)}\n")
    sys.stdout.flush()


def write_coloured(lines: Iterable[tuple[str, Colour | None]], *, in_pager: bool) -> None:
    """Write lines, each in its colour, or open them in the reader's pager."""
    shown = "".join(f"{coloured(line, colour)}\n" for line, colour in lines)
    if in_pager:
        from click import echo_via_pager  # noqa: PLC0415 - takes time to load, and is rarely needed

        echo_via_pager(shown)
    else:
        sys.stdout.write(shown)
        sys.stdout.flush()


def write_json(value: object) -> None:
    """Write one JSON document."""
    sys.stdout.write(f"{ascii_json(json.dumps(value, indent=2))}\n")
    sys.stdout.flush()


def write_answer(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Write `value` as JSON for a program, or `lines` for the owner."""
    if as_json:
        write_json(value)
    else:
        write_lines(*lines)


def ascii_json(text: str) -> str:
    """Return `text`, which is valid JSON, with everything but printable ASCII and line feeds escaped."""
    if text.isascii() and "\x7f" not in text:
        return text
    # NOTE(self): outside of strings JSON is plain ASCII, so any other character is in a string and can be escaped.
    return "".join(char if "\n" <= char <= "~" else json.dumps(char)[1:-1] for char in text).replace("\x7f", "\\u007f")


def write_error(message: str, remedy: str = "", *, as_json: bool = False) -> None:
    """Write an error and its remedy to standard error or, with `as_json`, as JSON to standard output."""
    if as_json:
        write_json({"error": message, "remedy": remedy})
        return
    # NOTE(self): its spaces stay as they are: it may name a path or a command that is copied.
    write_lines(f"✗ {message}", *([f"  → {remedy}"] if remedy else []), to=sys.stderr)


def write_mistakes(mistakes: Sequence[SoulError]) -> None:
    """Write mistakes to standard error, one line each; a remedy of several in a row is written once, after them."""
    from common.redact import Redactor  # noqa: PLC0415 - takes time to load, and is rarely needed

    clean = Redactor().text
    for mistake, following in zip_longest(mistakes, mistakes[1:]):
        is_last = not following or following.remedy != mistake.remedy
        write_error(clean(str(mistake)), clean(mistake.remedy) if is_last else "")
