"""A page is read in the character set in which it was written, wherever it says so."""

from __future__ import annotations

import pytest

from adapters.web.types import decoded


def page(encoding: str, head: str, title: str) -> bytes:
    return f"<!DOCTYPE html><html><head>{head}<title>{title}</title></head></html>".encode(encoding)


@pytest.mark.parametrize(
    ("body", "charset", "title"),
    [
        (page("cp932", '<meta charset="Shift_JIS">', "雨の屋根①"), "", "雨の屋根①"),
        (
            page("cp1251", '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251" />', "Дождь"),
            "",
            "Дождь",
        ),
        (page("latin-1", "<meta charset=iso-8859-1>", "l'été"), "", "l'été"),
        (page("latin-1", "", "l'été"), "", "l'été"),
        (page("cp932", "", "雨の屋根"), "x-sjis", "雨の屋根"),
        (page("gbk", '<meta charset="utf-8">', "镕基"), "gb2312", "镕基"),
        (page("utf-8", "", "Dächer: Schiefer"), "", "Dächer: Schiefer"),
        (b"\xef\xbb\xbf" + page("utf-8", "", "Dach"), "windows-1251", "Dach"),
        (page("utf-16", "", "Roof"), "", "Roof"),
        (page("utf-8", '<meta charset="utf-16">', "été"), "", "été"),
        (page("utf-8", '<meta charset="unicode_escape">', r"\u202e été"), "", r"\u202e été"),
        (page("utf-8", '<meta charset="base64">', "été"), "no-such-set", "été"),
        (page("utf-8", "<!-- <meta charset=windows-1251> -->", "été"), "", "été"),
        (page("utf-8", '<meta charset="utf-8">', "Дождь"), "iso-8859-1", "Дождь"),
        (page("mac_roman", "<meta charset=x-mac-roman>", "été"), "", "été"),
        (page("iso-8859-8", "<meta charset=iso-8859-8-i>", "גשם"), "", "גשם"),
        (page("iso-2022-jp", "<meta charset=iso-2022-jp>", "雨の屋根"), "", "雨の屋根"),
    ],
)
def test_a_title_is_readable(body: bytes, charset: str, title: str) -> None:
    assert f"<title>{title}</title>" in decoded(body, "text/html", charset)


def test_only_pages_name_their_set_in_their_head() -> None:
    words = '<meta charset="Shift_JIS"> é'
    assert decoded(words.encode(), "text/plain") == words
