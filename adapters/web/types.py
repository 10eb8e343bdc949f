"""The result of a fetch, and its text, decoded as browsers do: by byte order mark, then header, then its own head."""

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass

_HEAD_BYTES = 4096
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_IN_HEAD = re.compile(
    rb"""<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_UPPER_HALF = bytes(range(0x80, 0x100))
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
}
"""The character sets that browsers use for these names: larger ones that include the named one."""
_LABELS = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "x-euc-jp": "euc_jp",
    "x-gbk": "gb18030",
    "x-cp1251": "cp1251",
    "x-mac-roman": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
    "iso-8859-8-i": "iso8859-8",
}
_NO_PAGE = frozenset({"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape"})
_WIDE = ("utf-16", "utf-32")


def decoded(body: bytes, kind: str, charset: str = "") -> str:
    """Return `body`, of the media type `kind`, as text; bytes that are invalid in its character set become `�`.

    `charset` is what its header names, "" if it names none. If no character set is named, or only one of single bytes,
    the text is UTF-8 if that is valid; else it has the named one, or a Western one for markup.
    """
    for mark, named in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(named, errors="replace")
    found = _codec(charset) or _named_in_head(body, kind)
    if not found or _is_single_byte(found):
        # NOTE(self): single-byte text is practically never valid UTF-8, so a page that is was labelled wrongly.
        with suppress(UnicodeDecodeError):
            return body.decode()
    return body.decode(found or ("cp1252" if _is_markup(kind) else "utf-8"), errors="replace")


def _is_markup(kind: str) -> bool:
    return kind.endswith(("html", "xml"))


def _named_in_head(body: bytes, kind: str) -> str:
    found = _IN_HEAD.search(_COMMENT.sub(b"", body[:_HEAD_BYTES])) if _is_markup(kind) else None
    named = _codec(found[1].decode("ascii", errors="replace")) if found else ""
    # NOTE(self): a head that could be read as single bytes cannot be UTF-16 or UTF-32.
    return "utf-8" if named.startswith(_WIDE) else named


def _is_single_byte(codec: str) -> bool:
    told = _UPPER_HALF.decode(codec, errors="replace")
    return len(told) == len(_UPPER_HALF) and told.count("\ufffd") < len(_UPPER_HALF) // 2


def _codec(label: str) -> str:
    """Return the codec that a label means; "" if no page can be written in it."""
    label = label.strip().lower()
    if known := _LABELS.get(label):
        return known
    try:
        name = codecs.lookup(label).name
        b"ab\0\0".decode(name, errors="replace")
    except (LookupError, ValueError):
        return ""
    return "" if name in _NO_PAGE else _MEANT.get(name, name)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page, picture or file: `url` is where redirects ended, `kind` its media type in lower case.

    `charset` is what its header names, "" if it names none.
    """

    url: str
    kind: str
    charset: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; bytes that are invalid in its character set become `�`."""
        return decoded(self.body, self.kind, self.charset)
