"""The host's line: each key does what a terminal's user expects, whatever is written in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soul.room_host.editor import Editor
from soul.terminal.text import clusters, width

COLUMNS = 5
KEYS: dict[str, Callable[[Editor], Editor]] = {
    "left": Editor.left,
    "right": Editor.right,
    "home": Editor.home,
    "end": Editor.end,
    "up": lambda editor: editor.up(COLUMNS),
    "down": lambda editor: editor.down(COLUMNS),
    "backspace": Editor.backspace,
    "delete": Editor.delete,
    "word": Editor.delete_word,
    "to_start": Editor.delete_to_start,
    "to_end": Editor.delete_to_end,
    "enter": lambda editor: editor.said()[0],
    "escape": Editor.cleared,
}


def typed(text: str, *keys: str) -> Editor:
    editor = Editor().insert(text)
    for key in keys:
        editor = KEYS[key](editor)
    return editor


EDITED = {
    "insert_in_the_middle": (typed("ac", "left").insert("b"), "ab|c"),
    "backspace": (typed("abc", "backspace"), "ab|"),
    "backspace_takes_a_family_whole": (typed("a👩\u200d👩\u200d👧", "backspace"), "a|"),
    "backspace_takes_an_accent_with_its_letter": (typed("ae\u0301", "backspace"), "a|"),
    "backspace_at_the_start": (typed("a", "home", "backspace"), "|a"),
    "delete": (typed("abc", "home", "delete"), "|bc"),
    "delete_at_the_end": (typed("a", "delete"), "a|"),
    "word": (typed("one two ", "word"), "one |"),
    "to_start": (typed("one two", "left", "to_start"), "|o"),
    "to_end": (typed("one", "home", "right", "to_end"), "o|"),
    "home_of_this_line": (typed("one\ntwo", "home"), "one\n|two"),
    "end_of_this_line": (typed("one\ntwo", "up", "end"), "one|\ntwo"),
    "up_one_seen_line": (typed("abcdefgh", "up"), "abc|defgh"),
    "down_one_seen_line": (typed("abcdefgh", "up", "down"), "abcdefgh|"),
    "up_to_a_shorter_line": (typed("a\nbcd", "up"), "a|\nbcd"),
    "up_over_wide_signs": (typed("一二三四", "up"), "一|二三四"),
    "pasted_controls": (Editor().insert("a\x1b[2Jb\x07\tc\r\nd\x00"), "ab\tc\nd|"),
}


@pytest.mark.parametrize("case", EDITED)
def test_a_key_does_what_is_expected_of_it(case: str) -> None:
    editor, seen = EDITED[case]
    assert f"{editor.text[: editor.at]}|{editor.text[editor.at :]}" == seen


def test_what_was_said_can_be_had_again_and_the_draft_after_it() -> None:
    editor = typed("one", "enter").insert("two")
    editor, words = editor.said()
    assert words == "two"
    editor = editor.insert("draft").up(COLUMNS)
    assert editor.text == "two"
    assert editor.up(COLUMNS).text == "one"
    assert editor.up(COLUMNS).up(COLUMNS).text == "one"
    assert editor.down(COLUMNS).text == "draft"
    assert editor.down(COLUMNS).down(COLUMNS).text == "draft"


def test_words_are_said_trimmed_and_nothing_is_not_remembered() -> None:
    editor, words = Editor().insert("  hello\n ").said()
    assert (words, editor.past) == ("hello", ("hello",))
    again, words = editor.insert("  ").said()
    assert (words, again.past) == ("", ("hello",))


SCREEN = st.text(st.sampled_from("ab 一é\u0301\n\t👩\u200d🏽"), max_size=20)


@given(st.lists(st.one_of(st.sampled_from(sorted(KEYS)), SCREEN), max_size=30), st.integers(2, 8))
def test_whatever_is_typed_the_cursor_stays_in_the_box(strokes: list[str], columns: int) -> None:
    editor = Editor()
    for stroke in strokes:
        editor = KEYS[stroke](editor) if stroke in KEYS else editor.insert(stroke)
        places = editor.lines(columns)
        row, column = editor.cursor(columns)
        assert 0 <= editor.at <= len(editor.text)
        assert 0 <= row < len(places)
        most = max([columns, *(width(cluster) for _, cluster in clusters(editor.text))])
        assert 0 <= column <= most
        assert "".join(editor.text[start:end] for start, end in places) == editor.text.replace("\n", "")
        assert all(width(editor.text[start:end]) <= most for start, end in places)
