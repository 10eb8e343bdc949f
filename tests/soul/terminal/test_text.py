"""Proves how untrusted text looks on a terminal, where it breaks, and that the terminal obeys nothing in it.

Proves the panel below the owner's line at any size: timers, budgets, their colours, and no control sequence. On a
terminal a line is broken between words; elsewhere it stays whole.
"""

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.clock import FakeClock, SystemClock, iso
from soul.room_host.panel import COLOURS, SYMBOLS, colour, name_hash, pieces, plain, symbol, wrapped
from soul.terminal.output import write_lines
from soul.terminal.panel import MOST_LINES, boxed, fit, hint_line, one_line, panel_lines, strip_control, width
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
@example("\u1b35", 8)  # a mark that combines with the space before it
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


NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def in_s(seconds: float) -> str:
    return iso(NOW + timedelta(seconds=seconds))


def status(**changed: Any) -> dict[str, Any]:
    loops = [("awareness", 32), ("heartbeat", 5), ("messages", 15), ("engagement", 540)]
    return {
        "loops": [{"name": name, "running": False, "nextAt": in_s(left)} for name, left in loops],
        "nextExpressionAt": in_s(7500),
        "nextExpressionSource": "values",
        "budget": {"remaining": 2989, "limit": 3000, "resetAt": int(NOW.timestamp()) + 240},
        "github": {"remaining": 400, "limit": 5000, "resetAt": int(NOW.timestamp()) + 2400},
        "modelBudget": {"tokens": {"used": 1_500_000, "onItsWay": 60_000, "cap": 2_000_000}, "resetsAt": in_s(21_600)},
        **changed,
    }


def shown(of: dict[str, Any], *, columns: int = 120, rows: int = 40) -> list[str]:
    return ["".join(text for _, text in line) for line in panel_lines(of, NOW, columns, rows)]


def styles(of: dict[str, Any]) -> dict[str, str]:
    return {text: style for line in panel_lines(of, NOW, 200, 40) for style, text in line}


def test_four_timers_stand_above_the_budgets() -> None:
    assert shown(status()) == [
        "Mentions in 32 s  Next post in 2 h 5 min (values)  Messages in 15 s  Own posts in 9 min",
        "Bluesky 2,989/3,000 (4 min)  GitHub 400/5,000 (40 min)  Tokens 500,000/2,000,000 (6 h)",
    ]


def test_what_is_due_or_runs_says_now_and_what_is_not_known_is_two_dashes() -> None:
    loops = [{"name": "awareness", "running": True, "nextAt": in_s(9)}]
    unknown = {"remaining": 3000, "limit": 3000, "resetAt": 0}
    of = status(loops=loops, nextExpressionAt=None, nextExpressionSource="", budget=unknown, github=None)
    assert shown(of) == ["Mentions now  Next post --", "Bluesky --  Tokens 500,000/2,000,000 (6 h)"]
    assert shown(status(nextExpressionAt=in_s(-5)))[0].startswith("Mentions in 32 s  Next post now (values)")


def test_a_budget_is_green_then_yellow_then_red_and_what_is_near_is_yellow() -> None:
    look = styles(status())
    assert look["2,989/3,000"] == "fg:ansigreen"
    assert look["500,000/2,000,000"] == "fg:ansiyellow"
    assert look["400/5,000"] == "fg:ansired"
    assert look["in 32 s"] == "fg:ansiyellow"
    assert look["in 9 min"] == ""


def test_there_is_nothing_before_the_first_status_and_on_a_screen_of_three_rows() -> None:
    assert shown({}) == []
    assert [len(shown(status(), columns=40, rows=rows)) for rows in (1, 2, 3, 4, 7, 8, 12, 60)] == [
        0, 0, 0, 1, 1, 2, 3, 3,
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [1, 2, 7, 20, 33, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_there_are_three_at_most(columns: int) -> None:
    hostile = "\x1b[2Jevil\x1b]0;taken\x07\u202e\n一一" * 40
    lines = shown(status(nextExpressionSource=hostile), columns=columns)
    assert 1 <= len(lines) <= MOST_LINES
    assert max(map(width, lines)) <= columns
    assert all(line.isprintable() for line in lines)


def test_a_narrow_terminal_keeps_the_timers_and_loses_the_last_of_the_budgets() -> None:
    assert shown(status(), columns=50) == [
        "Mentions in 32 s  Next post in 2 h 5 min (values)",
        "Messages in 15 s  Own posts in 9 min",
        "Bluesky 2,989/3,000 (4 min)",
    ]


def test_a_narrow_terminal_shows_fewer_hints_but_always_whole_ones() -> None:
    assert hint_line("Rowan", 60) == "Enter: send to Rowan · /help: commands · Ctrl-C: stop"
    assert hint_line("Rowan of the long ridge roof", 60) == "/help: commands · Ctrl-C: stop"
    assert hint_line("Rowan", 20) == "Ctrl-C: stop"
    assert hint_line("Rowan", 5) == ""


WORDS = "Reply to @bob.test is waiting for your approval, as every public post of the first week is"
COLUMNS = 40


class Screen(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def as_note(stream: io.StringIO) -> None:
    PlainConsole(SystemClock(), file=stream).line("info", WORDS)


def as_answer(stream: io.StringIO) -> None:
    PlainConsole(SystemClock(), file=stream).say("Rowan", WORDS)


def as_list(stream: io.StringIO) -> None:
    PlainConsole(SystemClock(), file=stream).show([f"  {WORDS}"])


def as_command(stream: io.StringIO) -> None:
    write_lines(f"  {WORDS}", to=stream)


@pytest.mark.parametrize("write", [as_note, as_answer, as_list, as_command])
def test_lines_are_broken_between_words(write: Callable[[io.StringIO], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")
    screen, file = Screen(), io.StringIO()
    write(screen)
    write(file)
    shown = strip_control(screen.getvalue())
    lines = [line for line in shown.splitlines() if line.strip()]
    assert len(lines) > 1
    assert max(map(len, lines)) <= COLUMNS
    assert WORDS in file.getvalue()
    assert WORDS in " ".join(shown.split())


ANSWER = """Two ways, then:

1. Slate, which lasts
   - and costs more
2. Tin

```python
def roof(area: int) -> int:
    return 2 * area
```

Which one?"""


def test_an_answer_keeps_its_paragraphs_lists_and_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("NO_COLOR", "1")
    for stream in (Screen(), io.StringIO()):
        PlainConsole(SystemClock(), file=stream).say("Rowan", f"{ANSWER}\n")
        assert strip_control(stream.getvalue()) == f"\nRowan: {ANSWER}\n\n"


def test_during_the_first_talk_no_line_of_a_room_is_shown_but_for_what_is_wrong() -> None:
    file, due = io.StringIO(), [True]
    console = PlainConsole(SystemClock(), file=file)
    with console.hiding_rooms(lambda: due[0]):
        console.line("social", "[space] host: Good morning")
        console.line("warn", "[space] The room is gone")
        console.line("done", "On Bluesky as @rowan.test")
        due[0] = False
        console.line("social", "[space] host: And now?")
    told = file.getvalue()
    assert "Good morning" not in told
    assert [words in told for words in ("room is gone", "@rowan.test", "And now?")] == [True] * 3
