"""Which key does what in the host's terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from soul.room_host.editor import Editor

Edit: TypeAlias = Callable[[Editor, int], Editor]
"""Makes another editor of one, at the width of the box."""

Deed: TypeAlias = Edit | Literal["enter", "escape", "end of input", "quit", "clear screen"]

_DEEDS: dict[str, Deed] = {
    "c-m": "enter",
    "c-j": "enter",
    "escape": "escape",
    "c-c": "quit",
    "c-d": "end of input",
    "c-l": "clear screen",
    "c-h": lambda editor, _: editor.backspace(),
    "delete": lambda editor, _: editor.delete(),
    "c-w": lambda editor, _: editor.delete_word(),
    "c-u": lambda editor, _: editor.delete_to_start(),
    "c-k": lambda editor, _: editor.delete_to_end(),
    "left": lambda editor, _: editor.left(),
    "right": lambda editor, _: editor.right(),
    "home": lambda editor, _: editor.home(),
    "c-a": lambda editor, _: editor.home(),
    "end": lambda editor, _: editor.end(),
    "c-e": lambda editor, _: editor.end(),
    "up": lambda editor, columns: editor.up(columns),
    "down": lambda editor, columns: editor.down(columns),
    "c-i": lambda editor, _: editor.insert("\t"),
}


def keys(do: Callable[[Deed], None]) -> KeyBindings:
    """The keys, each handing its deed to `do`."""
    bindings = KeyBindings()
    for key, deed in _DEEDS.items():
        bindings.add(key)(_doing(do, deed))
    bindings.add("escape", "c-m")(_doing(do, _new_line))
    bindings.add(Keys.BracketedPaste)(lambda event: do(_inserting(event.data)))
    bindings.add(Keys.Any)(lambda event: _type(event, do))
    return bindings


def _doing(do: Callable[[Deed], None], deed: Deed) -> Callable[[KeyPressEvent], None]:
    return lambda _event: do(deed)


def _inserting(text: str) -> Edit:
    return lambda editor, _: editor.insert(text)


def _new_line(editor: Editor, _columns: int) -> Editor:
    return editor.insert("\n")


def _type(event: KeyPressEvent, do: Callable[[Deed], None]) -> None:
    """A sign; keys without one do nothing."""
    if not isinstance(event.key_sequence[-1].key, Keys):
        do(_inserting(event.data))
