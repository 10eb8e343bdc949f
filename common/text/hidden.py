"""Characters in a text that nobody sees, or that look like other ones, told by name. Pure.

A reader of code takes such a text for another one than the machine does. What people write with is left alone: emoji of
several parts, flags, right-to-left scripts, and the joiners that some scripts are spelled with.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

import regex

from common.text.lookalikes import imitating

_JOINING = (
    r"\p{Arabic}\p{Syriac}\p{Nko}\p{Mongolian}\p{Phags_Pa}\p{Adlam}\p{Hanifi_Rohingya}\p{Devanagari}\p{Bengali}\p{Gurmukhi}"
    r"\p{Gujarati}\p{Oriya}\p{Tamil}\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Khmer}\p{Myanmar}\p{Balinese}"
    r"\p{Javanese}\p{ccc=9}"
)
HIDDEN = regex.compile(
    rf"""
    (?P<seen> \U0001F3F4 (?:
          \U000E0067\U000E0062 (?: \U000E0065\U000E006E\U000E0067    # England
                                 | \U000E0073\U000E0063\U000E0074    # Scotland
                                 | \U000E0077\U000E006C\U000E0073 )  # Wales
          \U000E007F )
      | (?<=[\p{{Extended_Pictographic}}\p{{Emoji_Modifier}}\uFE0F]) \u200D (?=\p{{Extended_Pictographic}})
      | (?<=[{_JOINING}])
        [\u200C\u200D] (?!\p{{Default_Ignorable_Code_Point}})
      | (?<=[\p{{Emoji}}--[0-9\#*]]) [\uFE0E\uFE0F]
      | (?<=[0-9\#*]) \uFE0F (?=\u20E3)
      | (?<=\p{{Han}}) [\uFE00-\uFE02\U000E0100-\U000E010F]
      | (?<=\p{{Mongolian}}) [\u180B-\u180F]
    )
    | [[\p{{Default_Ignorable_Code_Point}}\p{{Cc}}\p{{Cf}}\p{{Cs}}\u2800]--[\n\t\p{{Prepended_Concatenation_Mark}}]]
    """,
    regex.VERBOSE | regex.VERSION1,
)
"""All that is hidden; the group `seen` matches what belongs to the character before it and is left."""

_UNSEEN = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Cf}]")
_RIGHT_TO_LEFT = regex.compile(r"[\p{bc=R}\p{bc=AL}--\p{Cf}]", regex.VERSION1)
_DIRECTION_MARKS = frozenset("\u200e\u200f\u061c")
_TOKEN = re.compile(r"\w+")
_CARRIAGE_RETURN = re.compile(r"\r(?=\n|$)")
_BREAK = re.compile("[\u2028\u2029]")
_HUNK = re.compile(r"@@ -\S+ \+(\d{1,9})")
_BOM = "\ufeff"
_PROSE = frozenset(
    {
        *(".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".adoc", ".org"),
        *(".po", ".pot", ".xlf", ".xliff", ".arb", ".strings", ".srt", ".vtt", ".csv", ".tsv"),
    }
)


def is_prose(path: str) -> bool:
    """Return whether a file holds natural language by its name, where invisible characters may have a use."""
    return PurePosixPath(path.lower()).suffix in _PROSE


def with_names(text: str) -> str:
    """Return `text` with each hidden character, and each look-alike in a Latin word, replaced by its name.

    For example `⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩`. Line ends become LF.
    """
    text = HIDDEN.sub(lambda found: found["seen"] or _name(found[0]), _CARRIAGE_RETURN.sub("", text))
    return _TOKEN.sub(_imitations_named, _BREAK.sub(lambda found: _name(found[0]), text))


def visible_text(text: str) -> str:
    """Return `text` without the characters that a reader does not see, and without space around it."""
    return _UNSEEN.sub("", text).strip()


def names_of(characters: str) -> str:
    """Return the names of these characters, each once, on one line."""
    return ", ".join(dict.fromkeys(map(_name, characters)))


def invisible_in(line: str) -> str:
    """Return the invisible characters of one line, each as often as it stands there; control characters are none."""
    found = "".join(one[0] for one in HIDDEN.finditer(line) if not one["seen"] and _UNSEEN.fullmatch(one[0]))
    return "".join(one for one in found if not (one in _DIRECTION_MARKS and _RIGHT_TO_LEFT.search(line)))


def added_invisible(patch: str) -> str:
    """Return the invisible characters that the hunks of one file's patch add, beyond those that they take away.

    A byte order mark at the beginning of the file is not counted, nor are direction marks beside right-to-left letters.
    """
    added, removed = Counter[str](), Counter[str]()
    for sign, number, line in _lines(patch):
        (removed if sign == "-" else added).update(invisible_in(line.removeprefix(_BOM) if number == 1 else line))
    return "".join((added - removed).elements())


def added_imitations(patch: str) -> str:
    """Return the letters in the added lines of a patch that look like Latin ones in a Latin word and are none."""
    lines = (line for sign, _, line in _lines(patch) if sign == "+")
    return "".join(imitating(word) for line in lines for word in _TOKEN.findall(line))


def _lines(patch: str) -> Iterator[tuple[str, int, str]]:
    """The lines that the hunks of a patch add or take away: `+` or `-`, the number (of a new line), and the text."""
    number = 0
    for line in patch.split("\n"):
        if head := _HUNK.match(line):
            number = int(head[1])
        elif number or line.startswith("-"):
            if line[:1] in {"+", "-"}:
                yield line[0], number, line[1:]
            number += line[:1] in {"+", " "}


def _imitations_named(word: re.Match[str]) -> str:
    strange = imitating(word[0])
    return "".join(_name(char) if char in strange else char for char in word[0]) if strange else word[0]


def _name(char: str) -> str:
    return f"⟨U+{ord(char):04X} {unicodedata.name(char, 'CONTROL CHARACTER')}⟩"
