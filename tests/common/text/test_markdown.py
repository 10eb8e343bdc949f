"""Proves which lines are code and which are headings, by one rule for every page that the program divides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from common.text.markdown import (
    Heading,
    as_prose,
    close_code,
    in_code,
    outline,
    split_at,
    split_sections,
    without_links,
)

_LINES = st.lists(st.sampled_from(["```", "```py", "````", "~~~", "~~~~ ", "    ```", "```a```", "# x", "word", ""]))


@pytest.mark.parametrize(
    ("page", "inside"),
    [
        ("a|```|b|```|c", "01110"),
        ("```py|b|```|c", "1110"),
        ("```|b|~~~|```", "1111"),
        ("````|```|````", "111"),
        ("```|b|````|c", "1110"),
        ("```|b|```py", "000"),
        ("```|b", "00"),
        ("```|~~~|b|~~~", "0111"),
        ("    ```|b|```|c|```", "00111"),
        ("```a```|b|```", "000"),
        ("   ~~~|b|   ~~~ |c", "1110"),
        ("", "0"),
    ],
)
def test_a_block_reaches_from_its_fence_to_the_one_that_closes_it(page: str, inside: str) -> None:
    assert in_code(page.split("|")) == tuple(mark == "1" for mark in inside)


@given(_LINES)
def test_each_block_begins_and_ends_with_a_fence_and_an_open_end_swallows_nothing(lines: list[str]) -> None:
    inside = in_code(lines)
    assert len(inside) == len(lines)
    if inside and inside[-1]:
        assert outline([lines[-1].strip()]).open_fence
    for before, (line, mark) in zip([False, *inside], zip(lines, inside, strict=True), strict=False):
        if mark and not before:
            assert outline([line]).open_fence
    assert in_code([*lines, "# end"])[-1] is False


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("# a", 1, "a"),
        ("######\ta b", 6, "a b"),
        ("##", 2, ""),
        ("## F# ##", 2, "F# ##"),
        ("####### a", 0, ""),
        ("#a", 0, ""),
        ("    # a", 0, ""),
        ("text # a", 0, ""),
        ("\\# a", 0, ""),
    ],
)
def test_a_heading_is_told_with_its_level_and_its_words(line: str, level: int, text: str) -> None:
    found = outline(["", line]).headings
    assert found == ((Heading(level, 1, 0, text),) if level else ())


def test_a_page_is_divided_at_the_chosen_headings_that_begin_their_line_outside_of_code() -> None:
    lines = ["before", "## a", "### b", "```md", "## c", "~~~", "## nor this", "```", "  ## d", "## e"]
    parts = [(heading and heading.text, list(body)) for heading, body in split_at(lines, lambda h: h.level == 2)]
    assert parts == [(None, ["before"]), ("a", lines[2:9]), ("e", [])]


@given(
    st.lists(st.sampled_from(["## a\n", "```\n", "~~~ x\n", "\r\n", "word\n", "\u2028", "# b", "  ## c\n"])).map(
        "".join
    )
)
def test_the_sections_of_a_page_joined_are_the_page(page: str) -> None:
    before, parts = split_sections(page)
    assert before + "".join(parts) == page
    assert all(part.startswith("## ") for part in parts)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("a\n```py\nb", "a\n```py\nb\n```"),
        ("a\n````\n```\nb", "a\n````\n```\nb\n````"),
        ("~~~\na\n~~~", "~~~\na\n~~~"),
        ("say ``` aloud", "say ``` aloud"),
    ],
)
def test_a_code_block_left_open_is_closed_by_its_own_fence(text: str, closed: str) -> None:
    assert close_code(text) == closed


def test_a_reader_who_sees_no_markdown_gets_the_words_without_marks_and_comments() -> None:
    page = "## Task\n> **Done** by `soul`, *at last*: [the pull](https://a.test/b) #12 <!-- {1} --> said ## Part, 2 * 3"
    assert as_prose(page) == "Task\nDone by soul, at last: the pull #12  said Part, 2 * 3"
    assert as_prose('it was "merged <!-- task-ev…"; then more') == 'it was "merged …"; then more'


@pytest.mark.parametrize(
    "text",
    [
        "[Sign in](https://a.test/x)",
        '![Sign in](https://a.test/x.png "x")',
        "[Sign [in](//b.test)](//a.test)",
        "[Sign in](<//a.test/x y>)",
        "[![Sign in](//b.test)](//a.test)",
        "Sign in [here][x]\n\n[x]: //a.test\n",
        "[Sign in]\n\n[sign in]: //a.test\n",
        "Sign in <https://a.test>",
        "Sign in <a href=//a.test>",
        "Sign in\n\n<img src=//a.test>",
    ],
)
def test_no_words_lead_anywhere_but_an_address_that_is_seen(text: str) -> None:
    shown = without_links(text)
    html = MarkdownIt("commonmark").render(shown)
    assert "Sign" in shown
    assert not any(one in html for one in ("<a ", "<img"))
    assert without_links("It printed [1, 2] at http://localhost:8000.") == "It printed [1, 2] at http://localhost:8000."
