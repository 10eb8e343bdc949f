"""The box in which the host writes: its completion, and the keys in which it differs from prompt_toolkit's defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from soul.room_host.roster import Roster
from soul.terminal.panel import cells, clusters, one_line, strip_control, width


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
    """Returns the keys for leaving, new lines and paste, for moves by what is seen as one character, and by rows.

    `columns` gives the width of the box.
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
    """Returns the number of code points in the first cluster."""
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
    """Move to the start of the cluster around the cursor: the library counts the columns of a line in code points."""
    at = buffer.cursor_position
    if at < len(buffer.text):
        buffer.cursor_position = max(place for place, _ in clusters(buffer.text) if place <= at)
