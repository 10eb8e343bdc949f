"""Proves the rules of the budget: who goes first, what is cut where, what gives way, and that nothing else moves."""

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.text.markdown import split_sections
from modules.runtime.llm.dialect import GROUPS
from modules.services.agent.prompt.fitting import (
    PromptFile,
    assemble,
    history_budget,
    is_meaningful,
    truncate_sections,
)
from tests.exploration import examples

SECTION = "## {}\n\n" + "word " * 80 + "\n"
PAGE = "# Page\n\nOpening words.\n\n" + "".join(SECTION.format(name) for name in "ABCDEFGHIJ")


def estimate(text: str) -> int:
    return math.ceil(len(text) / 4)


def note(count: int) -> str:
    return f"(left out: {count})"


def file(name: str, tokens: int, priority: float, *, whole: bool = False) -> PromptFile:
    return PromptFile(name, "abc " * tokens, priority, "static", whole)


def test_files_go_in_by_priority_while_they_fit_and_all_behind_the_first_that_does_not_are_dropped() -> None:
    files = [file("fourth", 10, 4), file("second", 300, 2), file("third", 900, 3), file("first", 300, 1)]
    result = assemble(files, budget=1000, estimate=estimate, cut_note=note)
    assert [part.name for part in result.included] == ["first", "second"]
    assert result.dropped_files == ("third", "fourth")
    assert result.tokens == {"first": 300, "second": 300}
    assert result.total == 600
    assert not result.over_budget


@pytest.mark.parametrize(("room", "truncated"), [(499, ()), (500, ("page",))])
def test_a_file_is_cut_only_where_at_least_five_hundred_tokens_remain(room: int, truncated: tuple[str, ...]) -> None:
    page = PromptFile("page", PAGE, 2, "static")
    result = assemble(
        [file("first", 100, 1), page, file("last", 1, 3)], budget=100 + room, estimate=estimate, cut_note=note
    )
    assert result.truncated == truncated
    assert result.dropped_files == (("last",) if truncated else ("page", "last"))


def test_a_cut_file_keeps_its_beginning_and_whole_sections_from_the_top_and_says_how_many_are_missing() -> None:
    page = PromptFile("page", PAGE, 2, "static")
    result = assemble([page], budget=520, estimate=estimate, cut_note=note)
    kept = result.included[0].content
    sections = PAGE.split("## ")
    assert kept == "## ".join(sections[:6]).rstrip() + "\n\n(left out: 5)"
    assert result.tokens == {"page": estimate(kept)}
    assert estimate("## ".join(sections[:7]).rstrip() + "\n\n(left out: 4)") > 520


def test_what_is_whole_is_in_however_large_and_then_nothing_else_is() -> None:
    files = [file("core", 600, 0, whole=True), file("SELF.md", 700, 1.5, whole=True), file("USER.md", 1, 2)]
    result = assemble(files, budget=1000, estimate=estimate, cut_note=note)
    assert [part.name for part in result.included] == ["core", "SELF.md"]
    assert result.dropped_files == ("USER.md",)
    assert result.over_budget


def test_blank_files_are_passed_over_in_silence() -> None:
    result = assemble([PromptFile("USER.md", " \n\t\n", 2, "static")], budget=0, estimate=estimate, cut_note=note)
    assert result.included == ()
    assert result.dropped_files == ()


def test_a_heartbeat_that_says_nothing_is_passed_over_but_no_other_file_is() -> None:
    empty = "# Heartbeat\n\n<!-- nothing yet -->\n\n---\n"
    files = [PromptFile(name, empty, 7.5, "dynamic") for name in ("HEARTBEAT.md", "GOALS.md")]
    result = assemble(files, budget=1000, estimate=estimate, cut_note=note)
    assert [part.name for part in result.included] == ["GOALS.md"]


_BODIES = st.text(alphabet="ab \n#`~-<>!é🌊", max_size=400)
_TEXTS = st.lists(_BODIES, max_size=6).map("\n## Section\n".join)
_FILES = st.lists(
    st.builds(
        PromptFile,
        name=st.sampled_from(["SOUL.md", "SELF.md", "USER.md", "HEARTBEAT.md", "MEMORY.md", "CONTEXT.md"]),
        content=_TEXTS.map(lambda text: text * 8),
        priority=st.sampled_from([0, 1, 1.5, 2, 6, 7.5, 99]),
        group=st.sampled_from(GROUPS),
        whole=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda file: file.name,
)


@settings(max_examples=examples(60))
@given(files=_FILES, budget=st.integers(0, 4000), data=st.data())
def test_the_budget_is_passed_only_by_what_must_be_whole(
    files: list[PromptFile], budget: int, data: st.DataObject
) -> None:
    result = assemble(files, budget=budget, estimate=estimate, cut_note=note)
    whole = [item for item in files if item.whole and item.content.strip()]
    for item in whole:
        if item.name != "HEARTBEAT.md":
            assert item in result.included
    free = sum(result.tokens[item.name] for item in result.included if not item.whole)
    must = sum(result.tokens[item.name] for item in result.included if item.whole)
    assert free <= max(0, budget - must)
    assert result.total == sum(estimate(item.content) for item in result.included)
    assert result.over_budget == (must > budget)
    shuffled = data.draw(st.permutations(files))
    assert assemble(shuffled, budget=budget, estimate=estimate, cut_note=note) == result
    known = {item.name for item in result.included} | set(result.dropped_files)
    assert known >= {item.name for item in files if item.content.strip() and item.name != "HEARTBEAT.md"}


@settings(max_examples=examples(80))
@given(text=_TEXTS, room=st.integers(0, 600))
@example(text="```\n## no heading\n```\n## One\nx\n", room=7)
@example(text="one\u2028## two\r\n## three\r\n", room=3)
def test_a_cut_text_fits_and_is_its_own_beginning(text: str, room: int) -> None:
    preamble, sections = split_sections(text)
    assert "".join((preamble, *sections)) == text
    cut = truncate_sections(text, room, estimate, note)
    assert estimate(cut.text) <= room
    kept = cut.text.removesuffix(note(cut.sections_left_out)).rstrip()
    assert text.startswith(kept)
    if cut.text and cut.text != text:
        whole = len(sections) - cut.sections_left_out
        assert kept == "".join((preamble, *sections[:whole])).rstrip()
        if whole + 1 < len(sections):
            more = "".join((preamble, *sections[: whole + 1])).rstrip()
            assert estimate(f"{more}\n\n{note(cut.sections_left_out - 1)}") > room


def test_a_heading_in_a_code_fence_divides_nothing() -> None:
    text = "intro\n## One\n```md\n## Not a section\n~~~\n## nor this\n```\n## Two\n"
    assert split_sections(text) == ("intro\n", ("## One\n```md\n## Not a section\n~~~\n## nor this\n```\n", "## Two\n"))


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("\n \t\n", False),
        ("## One\n\n### Two ##\n\n#\n", False),
        ("<!-- a\nlong\n\ncomment -->", False),
        ("<!-- never ended\n- look at the plan", False),
        ("# H\n<!-- x -->\n---\n", False),
        ("# H\n\nA word.\n", True),
        ("#hashtag", True),
        ("<!-- x --> said", True),
        ("-*-", True),
        ("```\n```", True),
    ],
)
def test_meaningful_is_what_is_more_than_frame(markdown: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert is_meaningful(markdown) is expected


def test_the_history_has_what_the_rest_leaves() -> None:
    budget = history_budget(
        context_tokens=200_000, bootstrap_tokens=40_000, tool_tokens=3_000, max_output_tokens=1_024, parts=()
    )
    assert budget == 155_976
