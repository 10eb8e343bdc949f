"""Finds and names characters in a text that are invisible, or that look like other ones. Pure.

A reader of code sees such a text differently from the machine. Ordinary writing is left alone: emoji of several parts,
flags, right-to-left scripts, and the joiners that some scripts need.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

import regex

_ALPHABETS = (
    ("авсԁеғɡһіјкӏмпорԛгѕтцѵԝхуҽнүзб", "abcdefghijklmnopqrstuvwxyehy36"),  # Cyrillic
    ("АВЕЅІЈКМНОРСТУХԌԚԜӀҮ", "abesijkmhopctyxgqwly"),  # capitals
    ("αβγεηικνορτυχω", "abyenikvoptuxw"),  # Greek
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "abezhikmnoptyx"),  # noqa: RUF001 - capitals
    ("օսհոց", "ouhng"),  # noqa: RUF001 - Armenian
    ("ʙɢʜɪʟɴʀʏᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜱıȷøłđħ", "bghilnryacdejkmoptuvwzsijoldh"),  # Latin of other kinds
    ("ɑɓƈɗɡɠɦⱨɩɨʝƙƚɬɱɲŋɵᴑƥɾɽʂȿƨƭʈꞇŧʉʋⱳƴȥʐƶ", "abcdgghhiijkllmnnooprrsssttttuvwyzzz"),
    ("ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "bpdtgkjczfmnlsrvhwxyaeiou"),  # noqa: RUF001 - Lisu
    ("ᎠᎡᎢᎪᎫᎬᎳᎷᎻᎽᏀᏃᏎᏚᏙᏞᏟᏢᏦᏴᏒᏂᎾᎥ", "drtajewmhygzssvlcpkbrhoi"),
    ("ⲁⲃⲉⲏⲓⲕⲙⲛⲟⲣⲥⲧⲩⲭσ〇", "abehikmnopctyxoo"),
)
_LETTERS = {strange: usual for alphabet in _ALPHABETS for strange, usual in zip(*alphabet, strict=True)}
_ENCLOSED = {chr(first + place): chr(0x61 + place) for first in (0x1F150, 0x1F170, 0x1F1E6) for place in range(26)}
"""Letters in dark circles, in dark squares, and of flags: Unicode classifies them as symbols."""
_MERGED = {"0": "o", "1": "l", "i": "l"}
_SIGNS = {
    **dict.fromkeys("\u2039\u2329\u27e8\u3008\u276c\u276e\u2770\u29fc\u02c2\u1438\u00ab\u300a\u27ea\u227a", "<"),
    **dict.fromkeys("\u203a\u232a\u27e9\u3009\u276d\u276f\u2771\u29fd\u02c3\u1433\u00bb\u300b\u27eb\u227b", ">"),
    **dict.fromkeys("\u01c0\u2223\u2502\u2503\u2758\u2759\u23d0\u23b8\u23b9\u0964\u00a6\u2016\u2225\u05c0", "|"),
    **dict.fromkeys("\u3010\u3014\u27e6\u2045\u301a\u2772", "["),
    **dict.fromkeys("\u3011\u3015\u27e7\u2046\u301b\u2773", "]"),
    **dict.fromkeys("\u2044\u2215\u29f8", "/"),
    **dict.fromkeys("\u2581\u203f\u2017", "_"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\u02d7", "-"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
}
_IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_LATIN = regex.compile(r"\p{Script=Latin}")
_BESIDE_LATIN = regex.compile(
    r"[\p{scx=Latin}\p{scx=Common}\p{scx=Inherited}\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}"
    r"\p{scx=Bopomofo}]*"
)


class _Skeleton(dict[int, str | None]):
    """A table for `str.translate`, filled as characters occur; None removes one."""

    def __missing__(self, code: int) -> str | None:
        self[code] = bare = "".join(map(_bare, unicodedata.normalize("NFKD", chr(code)))) or None
        return bare


class _Shape(dict[int, str]):
    """A table like `_Skeleton` that keeps punctuation and maps each character to exactly one."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = unicodedata.normalize("NFKC", char)
        plain = _SIGNS.get(char) or _SIGNS.get(plain) or _LETTERS.get(plain) or plain.casefold()
        self[code] = shape = plain if len(plain) == 1 else char
        return shape


_SKELETON, _SHAPE = _Skeleton(), _Shape()


def skeleton(text: str) -> str:
    """Return only the letters and digits of `text`, without case, accents, look-alikes and what can come between them.

    `0`, `o`, and `1`, `l`, `i`, count as the same. Two texts with the same skeleton look the same to a careless reader.
    """
    return text.translate(_SKELETON)


def appearance(name: str) -> str:
    """Return what a name looks like to a reader; for a name without letters, all that is visible."""
    plain = unicodedata.normalize("NFKC", seen(name)).casefold()
    return skeleton(name) or "".join(sign for sign in plain if unicodedata.category(sign)[0] not in "CZ")


def shape(text: str) -> str:
    """Return `text` with look-alikes in plain lower case, one for one, so that positions correspond."""
    return text.translate(_SHAPE)


def seen(text: str) -> str:
    """Return `text` without characters that Unicode lists as invisible: joiners, Hangul fillers, variant selectors."""
    return _IGNORABLE.sub("", text)


def mixes_scripts(text: str) -> bool:
    """Return whether a word of `text` mixes Latin letters with a script that is not written together with them.

    Latin may mix with Chinese, Japanese and Korean scripts; mixed with Cyrillic, Greek and all others it deceives.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", seen(text)))
    return any(_LATIN.search(word) and not _BESIDE_LATIN.fullmatch(word) for word in words)


def imitating(word: str) -> str:
    """Return the letters of other scripts that look like Latin ones in a word with Latin letters; "" if none do."""
    if word.isascii() or not _LATIN.search(word):
        return ""
    return "".join(one for one in word if shape(one).isascii() and not _BESIDE_LATIN.fullmatch(one))


def _bare(char: str) -> str:
    char = _ENCLOSED.get(char, char)
    if not char.isalnum() or _IGNORABLE.fullmatch(char):
        return ""
    if char.isdecimal():
        char = str(unicodedata.decimal(char))
    plain = _LETTERS.get(char) or char.casefold()
    return "".join(_MERGED.get(each, each) for each in _LETTERS.get(plain, plain) if each.isalnum())


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
"""Everything hidden; the group `seen` matches what belongs to the character before it and stays."""

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
    """Return whether a file's name says that it holds natural language, where invisible characters may have a use."""
    return PurePosixPath(path.lower()).suffix in _PROSE


def with_names(text: str) -> str:
    """Return `text` with each hidden character, and each look-alike in a Latin word, replaced by its name.

    For example `⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩`. Line ends become LF.
    """
    text = HIDDEN.sub(lambda found: found["seen"] or _name(found[0]), _CARRIAGE_RETURN.sub("", text))
    return _TOKEN.sub(_imitations_named, _BREAK.sub(lambda found: _name(found[0]), text))


def visible_text(text: str) -> str:
    """Return `text` without invisible characters and surrounding space."""
    return _UNSEEN.sub("", text).strip()


def names_of(characters: str) -> str:
    """Return the names of these characters, each once, on one line."""
    return ", ".join(dict.fromkeys(map(_name, characters)))


def invisible_in(line: str) -> str:
    """Return the invisible characters of one line, repeats included; control characters do not count."""
    found = "".join(one[0] for one in HIDDEN.finditer(line) if not one["seen"] and _UNSEEN.fullmatch(one[0]))
    return "".join(one for one in found if not (one in _DIRECTION_MARKS and _RIGHT_TO_LEFT.search(line)))


def added_invisible(patch: str) -> str:
    """Return the invisible characters that the hunks of one file's patch add, beyond those that they remove.

    A byte order mark at the beginning of the file is not counted, nor are direction marks beside right-to-left letters.
    """
    added, removed = Counter[str](), Counter[str]()
    for sign, number, line in _lines(patch):
        (removed if sign == "-" else added).update(invisible_in(line.removeprefix(_BOM) if number == 1 else line))
    return "".join((added - removed).elements())


def added_imitations(patch: str) -> str:
    """Return the letters in the added lines of a patch that look like Latin ones in a Latin word but are not."""
    lines = (line for sign, _, line in _lines(patch) if sign == "+")
    return "".join(imitating(word) for line in lines for word in _TOKEN.findall(line))


def _lines(patch: str) -> Iterator[tuple[str, int, str]]:
    """Yield the lines that the hunks of a patch add or remove: `+` or `-`, the number in the new file, and the text."""
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
