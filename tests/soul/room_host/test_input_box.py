"""Proves that the keys of the host's box keep the cursor in any text, and never inside one visible character."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.keys import Keys

from adapters.space.roster import Roster
from adapters.space.types import Joined
from soul.room_host.terminal_screen import NameCompleter, key_bindings
from soul.terminal.panel import clusters

MOVES = [Keys.Up, Keys.Down, Keys.Left, Keys.Right]
TEXT = st.text(st.sampled_from("ab 一é\u0301\n\t👩\u200d🏽"), max_size=30)


def press(buffer: Buffer, key: Keys, columns: int) -> None:
    binding = key_bindings(buffer, lambda: columns).get_bindings_for_keys((key,))[-1]
    binding.handler(cast("KeyPressEvent", None))


@given(TEXT, st.lists(st.sampled_from(MOVES), max_size=30), st.integers(1, 8))
def test_wherever_the_cursor_is_moved_it_stays_between_two_characters(
    text: str, moves: list[Keys], columns: int
) -> None:
    buffer = Buffer(document=Document(text))
    boundaries = {len(text), *(place for place, _ in clusters(text))}
    for move in moves:
        press(buffer, move, columns)
        assert buffer.text == text
        assert buffer.cursor_position in boundaries


@given(TEXT, st.sampled_from([Keys.Backspace, Keys.Delete]))
def test_a_deletion_takes_one_character_as_it_is_seen(text: str, key: Keys) -> None:
    buffer = Buffer(document=Document(text, cursor_position=len(text) if key is Keys.Backspace else 0))
    seen = [cluster for _, cluster in clusters(text)]
    press(buffer, key, 80)
    assert buffer.text == "".join(seen[:-1] if key is Keys.Backspace else seen[1:])


HOSTILE = "mar\x1b[2Jvin"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/", ["/who", "/claims"]),
        ("/CL", ["/claims"]),
        ("say /", []),
        ("@", ["@marvin", "@Ada B"]),
        ("hello @a", ["@Ada B"]),
        ("one\n@mar", ["@marvin"]),
        ("", []),
        ("mar", []),
    ],
)
def test_commands_and_names_are_offered_where_they_can_be_meant(typed: str, offered: list[str]) -> None:
    roster = Roster()
    for name in ("marvin", "Ada B", HOSTILE):
        roster.follow(Joined(name, f"{name}-1", "1"), 0.0)
    completions = NameCompleter(lambda: ("who", "claims"), roster).get_completions(Document(typed), CompleteEvent())
    assert [completion.text for completion in completions] == offered
