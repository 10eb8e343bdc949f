"""Characters that a reader, human or model, takes for one another: one plain form for each such family. Pure."""

from __future__ import annotations

import unicodedata

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
"""Letters in dark circles, in dark squares, and of flags: to Unicode they are signs."""
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
_UNSEEN = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_LATIN = regex.compile(r"\p{Script=Latin}")
_BESIDE_LATIN = regex.compile(
    r"[\p{scx=Latin}\p{scx=Common}\p{scx=Inherited}\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}"
    r"\p{scx=Bopomofo}]*"
)


class _Skeleton(dict[int, str | None]):
    """A table for `str.translate`, filled as characters are met; None takes one out."""

    def __missing__(self, code: int) -> str | None:
        self[code] = bare = "".join(map(_bare, unicodedata.normalize("NFKD", chr(code)))) or None
        return bare


class _Shape(dict[int, str]):
    """The same, with signs kept, and always one character for one."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = unicodedata.normalize("NFKC", char)
        plain = _SIGNS.get(char) or _SIGNS.get(plain) or _LETTERS.get(plain) or plain.casefold()
        self[code] = shape = plain if len(plain) == 1 else char
        return shape


_SKELETON, _SHAPE = _Skeleton(), _Shape()


def skeleton(text: str) -> str:
    """Only the letters and digits of `text`, without case, accents, look-alikes and all that can stand between them.

    `0`, `o`, and `1`, `l`, `i`, count as the same. Two texts of one skeleton say the same to a careless eye.
    """
    return text.translate(_SKELETON)


def appearance(name: str) -> str:
    """What a reader takes a name for; of a name without letters, all that can be seen."""
    plain = unicodedata.normalize("NFKC", seen(name)).casefold()
    return skeleton(name) or "".join(sign for sign in plain if unicodedata.category(sign)[0] not in "CZ")


def shape(text: str) -> str:
    """`text` in plain lower-case characters where they look alike, one for one, so that places correspond."""
    return text.translate(_SHAPE)


def seen(text: str) -> str:
    """Return `text` without invisible characters, by Unicode's list: joiners, fillers of Hangul, variants."""
    return _UNSEEN.sub("", text)


def mixes_scripts(text: str) -> bool:
    """Whether a word of `text` has Latin letters beside letters or digits of a script that is not written with them.

    Latin stands beside the scripts of Chinese, Japanese and Korean; beside Cyrillic, Greek and all others it tricks.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", seen(text)))
    return any(_LATIN.search(word) and not _BESIDE_LATIN.fullmatch(word) for word in words)


def imitating(word: str) -> str:
    """Return the letters of another script in a word with Latin letters that look like Latin ones; "" if none does."""
    if word.isascii() or not _LATIN.search(word):
        return ""
    return "".join(one for one in word if shape(one).isascii() and not _BESIDE_LATIN.fullmatch(one))


def _bare(char: str) -> str:
    char = _ENCLOSED.get(char, char)
    if not char.isalnum() or _UNSEEN.fullmatch(char):
        return ""
    if char.isdecimal():
        char = str(unicodedata.decimal(char))
    plain = _LETTERS.get(char) or char.casefold()
    return "".join(_MERGED.get(each, each) for each in _LETTERS.get(plain, plain) if each.isalnum())
