"""Characters that nobody sees, or that look like other ones: named, and found where code would hold them."""

from __future__ import annotations

import unicodedata

import pytest

from common.text.hidden import added_imitations, added_invisible, is_prose, with_names

HIDDEN = [
    *"\u202a\u202e\u2066\u2069\u200b\u200c\u200e\u200f\u2060\ufeff\u3164\u115f\u1160\uffa0\u00ad",
    *"\U000e0001\U000e0041\U000e0100\ufe0f",
]


@pytest.mark.parametrize("char", HIDDEN, ids=[f"{ord(one):X}" for one in HIDDEN])
def test_an_invisible_character_in_code_is_named_and_found(char: str) -> None:
    line = f"is_admin{char} = 1"
    assert with_names(line) == f"is_admin\u27e8U+{ord(char):04X} {unicodedata.name(char)}\u27e9 = 1"
    assert added_invisible(f"@@ -1 +1,2 @@\n a\n+{line}") == char


@pytest.mark.parametrize(
    "line",
    [
        "family = '\U0001f468\u200d\U0001f469\u200d\U0001f467'",
        "sun = '\u2600\ufe0f', key = '1\ufe0f\u20e3'",
        "word = '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'",
        "hello = '\u05e9\u05dc\u05d5\u05dd\u200f!'",
        "\x1b[1m\x0c caf\u00e9 \u0394x \u03bcm",
        "crlf\r",
    ],
)
def test_what_people_write_with_is_left_alone(line: str) -> None:
    patch = f"@@ -1 +1,2 @@\n a\n+{line}"
    assert not added_invisible(patch)
    assert not added_imitations(patch)


def test_a_mark_at_the_beginning_of_a_file_is_left_alone_and_anywhere_else_it_is_not() -> None:
    assert not added_invisible("@@ -0,0 +1,2 @@\n+\ufeffusing System;\n+class A;")
    assert added_invisible("@@ -0,0 +1,2 @@\n+using System;\n+\ufeffclass A;") == "\ufeff"


def test_only_what_is_added_counts() -> None:
    assert not added_invisible("@@ -4 +4 @@\n-a = '\u200b'\n+b = '\u200b'")
    assert not added_invisible("@@ -4,2 +4 @@\n-a = '\u200b'\n b = '\u200b'")
    assert not added_invisible("@@ -1 +0,0 @@\n-a = '\u200b'")
    assert added_invisible("@@ -4 +4 @@\n-a = '\u200b'\n+b = '\u200b\u200b'") == "\u200b"


@pytest.mark.parametrize("word", ["p\u0430ypal", "\u0441\u043e\u0440\u0443_file", "sc\u03bfpe"])
def test_a_letter_that_imitates_a_latin_one_in_a_latin_word_is_named(word: str) -> None:
    assert "\u27e8U+0" in with_names(f"{word} = 1")
    assert added_imitations(f"@@ -1 +1 @@\n+{word} = 1")
    assert with_names("\u0441\u043e\u0440\u043a") == "\u0441\u043e\u0440\u043a"


def test_prose_is_told_by_the_name_of_a_file() -> None:
    assert is_prose("docs/README.MD")
    assert not is_prose("docs/readme.py")
