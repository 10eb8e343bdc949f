"""Foreign words on a terminal: how they look, where they break, and that nothing in them is obeyed."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.clock import FakeClock
from soul.room_host.panel import COLOURS, SYMBOLS, colour, name_hash, pieces, plain, symbol, wrapped
from soul.terminal.panel import boxed, fit, one_line, strip_control, width
from soul.terminal.plain import PlainConsole

NAMES = {
    "host": (3208616, 0, 5),
    "marvin": (1081295363, 3, 1),
    "rebecca": (1081361035, 3, 6),
    "peterben": (487571199, 7, 3),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_has_the_look_that_every_host_gives_it(name: str) -> None:
    number, tint, sign = NAMES[name]
    assert name_hash(name) == number
    assert colour(name) == COLOURS[tint]
    assert symbol(name) == SYMBOLS[sign]


STRIPPED = {
    "plain": ("Good evening.", "Good evening."),
    "colours": ("\x1b[31mred\x1b[0m", "red"),
    "cursor": ("a\x1b[2J\x1b[Hb", "ab"),
    "title": ("\x1b]0;taken\x07hello", "hello"),
    "title_by_st": ("\x1b]2;taken\x1b\\hello", "hello"),
    "link": ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
    "c1_csi": ("\x9b31mred", "red"),
    "c1_osc": ("\x9d0;taken\x9chello", "hello"),
    "dcs": ("\x1bP1$qm\x1b\\x", "x"),
    "clipboard": ("\x1b]52;c;ZWNobyBoaQ==\x07x", "x"),
    "reset": ("\x1bcx", "x"),
    "charset": ("\x1b(0x", "x"),
    "split_escape": ("\x1b\x1b[31m]0;x", "]0;x"),
    "bell_backspace_nul": ("a\x07\x08\x00\x7fb", "ab"),
    "carriage": ("seen\rhidden", "seen\nhidden"),
    "crlf": ("a\r\nb", "a\nb"),
    "separators": ("a\u2028b\x85c\x0bd", "a\nb\nc\nd"),
    "bidi": ("\u202egnp.exe\u2066x\u2069", "gnp.exex"),
    "zero_width": ("a\u200bb\u2060c\ufeffd", "abcd"),
    "tab_stays": ("a\tb", "a\tb"),
    "family": ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"),
    "scotland": ("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", None),
    "hidden_tags": ("a\U000e0068\U000e0069b", "ab"),
    "persian": ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
    "surrogate": ("a\ud800b", "ab"),
    "pile": ("a" + "\u0301" * 40, "a" + "\u0301" * 6),
}


@pytest.mark.parametrize("case", STRIPPED)
def test_what_a_terminal_would_obey_is_taken_out_and_nothing_else(case: str) -> None:
    text, left = STRIPPED[case]
    assert strip_control(text) == (text if left is None else left)


@given(st.text(st.one_of(st.characters(), st.sampled_from("\x1b[]0;m\x07\\\x9b\x9d\u202e\r\n")), max_size=60))
def test_no_words_keep_a_character_that_a_terminal_obeys(text: str) -> None:
    clean = strip_control(text)
    assert not any((ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160 for char in clean)
    assert "\u202e" not in clean
    assert strip_control(clean) == clean


WRAPPED = {
    "fits": ("one two", 7, ["one two"]),
    "words": ("one two three", 7, ["one two", "three"]),
    "long_word": ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
    "long_word_after_short": ("a bcdefghij", 4, ["a", "bcde", "fghi", "j"]),
    "own_breaks": ("a\n\nb", 9, ["a", "", "b"]),
    "list": ("Two:\n  - one two", 9, ["Two:", "  - one", "two"]),
    "spaces_at_the_end": ("one    two", 4, ["one", "two"]),
    "wide": ("一二三四五", 4, ["一二", "三四", "五"]),
    "wide_beside_narrow": ("ab一二", 5, ["ab一", "二"]),
    "flag_stays_whole": ("ab 🇮🇹", 3, ["ab", "🇮🇹"]),
    "accents_take_no_room": ("e\u0301e\u0301e\u0301", 3, ["e\u0301e\u0301e\u0301"]),
    "empty": ("", 5, [""]),
    "tab": ("a\tb", 10, ["a   b"]),
}


def wrap_text(text: str, columns: int) -> list[str]:
    return [plain(line) for line in wrapped([("", text)], columns)]


@pytest.mark.parametrize("case", WRAPPED)
def test_words_break_where_the_eye_expects_it(case: str) -> None:
    text, columns, lines = WRAPPED[case]
    assert wrap_text(text, columns) == lines


@given(st.text(st.sampled_from("ab 一é👩\t\n"), max_size=60), st.integers(2, 12))
def test_wrapping_loses_only_spaces_and_never_goes_over_the_edge(text: str, columns: int) -> None:
    lines = wrap_text(text, columns)
    assert "".join("".join(line.split()) for line in lines) == "".join(text.split())
    assert all(width(line) <= columns for line in lines)


@given(st.text(max_size=30), st.integers(1, 20))
def test_what_is_cut_fits(text: str, columns: int) -> None:
    line = strip_control(text).replace("\n", " ")
    assert width(fit(line, columns)) <= columns


MARKED = {
    "bold": ("a **b c** d", [("", "a "), ("bold", "b c"), ("", " d")]),
    "italic": ("*so*", [("italic", "so")]),
    "code": ("`x*y*z`", [("fg:ansibrightblack", "x*y*z")]),
    "all": ("**a** *b* `c`", [("bold", "a"), ("", " "), ("italic", "b"), ("", " "), ("fg:ansibrightblack", "c")]),
    "arithmetic": ("2 * 3 * 4", [("", "2 * 3 * 4")]),
    "names": ("snake*case*name", [("", "snake*case*name")]),
    "unclosed": ("**a `b *c", [("", "**a `b *c")]),
    "empty": ("**** ``", [("", "**** ``")]),
    "over_a_break": ("*a\nb*", [("", "*a\nb*")]),
}


@pytest.mark.parametrize("case", MARKED)
def test_markup_becomes_style_and_anything_else_stays(case: str) -> None:
    text, parts = MARKED[case]
    assert list(pieces(text)) == parts


def test_a_style_goes_on_over_the_end_of_a_line() -> None:
    assert wrapped(list(pieces("see **one two** now")), 8) == [
        [("", "see "), ("bold", "one")],
        [("bold", "two"), ("", " now")],
    ]


@given(st.text(st.sampled_from("a*` \n"), max_size=80))
def test_no_markup_loses_a_letter(text: str) -> None:
    assert plain(list(pieces(text))).count("a") == text.count("a")


def test_what_was_said_stands_in_a_box_that_fits_its_words() -> None:
    assert boxed("Tin sings.") == ["╭────────────╮", "│ Tin sings. │", "╰────────────╯"]


@given(text=st.text(), columns=st.integers(8, 76))
@example("\u1b35", 8)  # a mark, which makes one sign with the space before it
def test_no_box_is_wider_than_asked_for_and_none_loses_a_word(text: str, columns: int) -> None:
    lines = boxed(one_line(text), columns)
    assert len({width(line) for line in lines}) == 1
    assert width(lines[0]) <= columns
    inside = "".join(line[1:-1] for line in lines[1:-1])
    assert "".join(inside.split()) == "".join(one_line(text).split())


def test_the_terminal_shows_what_was_posted_in_a_box_and_where_it_stands() -> None:
    shown = io.StringIO()
    terminal = PlainConsole(FakeClock(), timezone="UTC", file=shown)
    terminal.line("said", "Sent reply: Slate, as: it hums.", "at://did/app.bsky.feed.post/1")
    terminal.line("said", "Sent reply", "nowhere")
    first, *box, last = shown.getvalue().splitlines()
    assert first.split()[1:] == ["♥", "social", "Sent", "reply", "at://did/app.bsky.feed.post/1"]
    assert [line.strip() for line in box] == boxed("Slate, as: it hums.")
    assert last.split()[1:] == ["♥", "social", "Sent", "reply", "nowhere"]
