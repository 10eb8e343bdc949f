"""Proves that MEMORY.md says what is remembered, and that reading it back gives the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modules.services.memory import policy
from modules.services.memory.admission import Memory
from modules.services.memory.view_sync import PREAMBLE, Section, parse_view, render_view, sections_of
from tests.exploration import examples

TIME = "2026-01-05T12:00:00.000Z"
CURATED = Memory(
    1, "curated", "Tides", "High at noon.", (), 3, "self", "self", private=True, created_at=TIME, updated_at=TIME
)
FENCED = "Look:\n\n```\n## not a heading\n```"

HEADINGS = ["## Tides", "## tides ", "\\## Tides", "\\\\## x", "##", "## ", "##\ttab", "## ## x", "## Tides (2)"]
FENCES = ["```", "~~~", "````", "\\```", "```py", "`` ` ``", "    ```", "   ~~~", "```a```"]
LINES = st.sampled_from([*HEADINGS, *FENCES, "### deep", "Tides (2)", "\\", "", " ", "word"])
TEXTS = st.lists(LINES | st.text(max_size=12), max_size=14).map("\n".join)
SUBJECTS = st.sampled_from(["Tides", "tides", "Tides (2)", PREAMBLE, "", "## x", "a\nb"]) | st.text(max_size=10)


def memory(number: int, subject: str, body: str) -> Memory:
    """As a store keeps it."""
    return replace(CURATED, id=number, subject=policy.clean(subject), body=policy.clean(body))


def rendered(*memories: Memory) -> str:
    return render_view(section for section, _ in sections_of(memories))


def test_the_owners_order_is_kept_and_what_is_new_comes_last() -> None:
    memories = [memory(number, subject, "x") for number, subject in enumerate("abcd", 1)]
    titles = [section.title for section, _ in sections_of(memories, ("c", "a"))]
    assert titles == ["c", "a", "b", "d"]


def test_a_code_block_that_is_never_closed_swallows_no_section() -> None:
    sections = parse_view("## Tides\n\n```\nhigh\n\n## Kit\n\nMends clocks.\n")
    assert [section.title for section in sections] == ["Tides", "Kit"]
    assert sections[0].text == "```\nhigh"
    assert parse_view(render_view(sections)) == sections


def test_a_body_that_holds_a_heading_stays_one_section() -> None:
    text = rendered(memory(1, "Tides", "High.\n## Low\nand so on"), memory(2, "Kit", "Mends."))
    assert "\\## Low" in text
    assert parse_view(text) == (Section("Tides", "High.\n## Low\nand so on"), Section("Kit", "Mends."))


def test_a_heading_that_stands_twice_gets_a_number_that_is_not_taken() -> None:
    titles = [section.title for section in parse_view("## Tides\na\n## tides\nb\n## Tides (2)\nc\n")]
    assert titles == ["Tides", "tides (3)", "Tides (2)"]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_of_other_systems_and_a_byte_order_mark_change_nothing(end: str) -> None:
    text = f"top\n\n## Tides\n\n{FENCED}\n"
    assert parse_view("\ufeff" + text.replace("\n", end)) == parse_view(text)


def test_of_two_under_one_subject_what_is_trusted_more_has_the_plain_title() -> None:
    own, owners = memory(1, "Tides", "mine"), replace(memory(2, "tides", "theirs"), trust="owner")
    assert [section for section, _ in sections_of([own, owners], ["Tides"])] == [
        Section("tides", "theirs"),
        Section("Tides (2)", "mine"),
    ]


@given(TEXTS)
@settings(max_examples=examples(70))
def test_whatever_a_hand_writes_reads_the_same_once_it_is_rendered(text: str) -> None:
    sections = parse_view(text)
    assert parse_view(render_view(sections)) == sections
    assert render_view(parse_view(render_view(sections))) == render_view(sections)


@given(st.lists(st.tuples(SUBJECTS, TEXTS), max_size=6))
@settings(max_examples=examples(70))
def test_reading_what_was_rendered_gives_what_is_remembered(said: list[tuple[str, str]]) -> None:
    sections = tuple(section for section, _ in sections_of(memory(n, *one) for n, one in enumerate(said)))
    kept = tuple(section for section in sections if section.text or section.title != PREAMBLE)
    assert len({policy.key(section.title) for section in sections}) == len(said)
    assert parse_view(render_view(sections)) == kept


@given(TEXTS)
@settings(max_examples=examples(70))
def test_no_word_that_a_hand_wrote_is_lost(text: str) -> None:
    shown = render_view(parse_view(text))
    for word in text.replace("\ufeff", "").replace("\0", "").split():
        assert word.lstrip("\\#") in shown
