"""Proves that only the words of a page are kept."""

import pytest

from common.text.html_text import text_of_page


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (
            "<html><head><title>T</title><style>p {}</style></head><body><h1>Tides</h1><p>Two days.</p>",
            "Tides\n\nTwo days.",
        ),
        ("<p>a &lt;b&gt; &amp; c&nbsp;d</p><script>alert('x')</script>", "a <b> & c d"),
        ("<ul><li>one</li><li>two</li></ul>", "one\n\ntwo"),
        ("plain  words\nstay", "plain words stay"),
        ("<head><title>never closed<body>seen", "seen"),
        ("<p>cut <", "cut"),
        ("<p>(?<![a-z]) is odd</p><p>seen", "(?\nseen"),
        ("<![ odd ]>seen", "seen"),
        ("", ""),
    ],
)
def test_the_words_of_a_page_are_told_without_its_markup(page: str, text: str) -> None:
    assert text_of_page(page) == text
