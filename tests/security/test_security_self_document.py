"""Proves that reading a SELF.md costs as much as it is long, whatever stands in it. Judged by processor time."""

from __future__ import annotations

import pytest

from common.constants import SELF_MAX_BYTES
from modules.services.agent.identity.self_document import extract_display_name, extract_from_self
from tests.cpu_time import cpu_s, takes_less

_ENOUGH_CPU_S = 1.0
_SMALL_BYTES, _TIMES = 8 * 1024, 4
_MOST_GROWTH, _NOISE_CPU_S = 2 * _TIMES, 0.02
_BEGINNINGS = (
    "", "# ", "## purpose\n", "## values\n- ", "## learnings\n|", "## daily rituals\n- **x** [daily] (c) ",
    "## daily rituals\n- ", "## social mechanics\n|", "## values\n*(",
)  # fmt: skip
_PIECES = (
    "a", " ", "\n", "#", "# a\n", "## a\n", "## purpose\n- a\n", "## purposes\n", "word\n", "word ", "- x\n a\n", " #",
    "[1,", "*(", "- - ", "-", "**", "{{ ", "I'm ", "\\", "[", "](", "|a|b\n", "|silence|x|\n", "- **a** [b] (c)\n",
    "- **a** [b]\n", "participants: a, b\n", "reply to ", "reply acknowledg", "2026-01-05 ", "```\n", "(",
)  # fmt: skip


def _cost_s(text: str, *, runs: int) -> float:
    return cpu_s(lambda: (extract_from_self(text), extract_display_name(text)), runs=runs)


def _is_read_within(limit_s: float, text: str, *, runs: int) -> bool:
    return takes_less(limit_s, lambda: (extract_from_self(text), extract_display_name(text)), runs=runs)


def _filled(beginning: str, piece: str, end: str, size: int) -> str:
    return beginning + piece * ((size - len(beginning) - len(end)) // len(piece)) + end


@pytest.mark.perf
@pytest.mark.parametrize("piece", _PIECES)
def test_reading_costs_no_more_than_in_proportion_to_the_length(piece: str) -> None:
    for beginning in _BEGINNINGS:
        short, long = (_filled(beginning, piece, "\nx", size) for size in (_SMALL_BYTES, _TIMES * _SMALL_BYTES))
        most_s = _MOST_GROWTH * _cost_s(short, runs=3) + _NOISE_CPU_S
        assert _is_read_within(most_s, long, runs=3), beginning


@pytest.mark.perf
@pytest.mark.parametrize("piece", ["# a\n", "## a\n", "## purpose\n- a\n", "\n", "word\n", "- **a** [b] (c)\n"])
@pytest.mark.parametrize("beginning", ["", "## daily rituals\n- **x** [daily] (c) ", "## learnings\n|"])
def test_the_longest_one_is_read_in_less_than_a_second_of_processor(beginning: str, piece: str) -> None:
    text = _filled(beginning, piece, "\nx", SELF_MAX_BYTES)
    assert _is_read_within(_ENOUGH_CPU_S, text, runs=2)


@pytest.mark.perf
def test_the_end_of_a_line_does_not_change_what_reading_costs() -> None:
    for text in ("# a{}b", "# a{}#", "## values\n- {}\nb", "## values\n- {}b", "## daily rituals\n- {}["):
        line = text.format(" " * 500_000)
        assert _is_read_within(_ENOUGH_CPU_S, line, runs=2), text


def test_of_many_lines_that_are_not_understood_the_first_are_told_and_the_rest_counted() -> None:
    warnings = extract_from_self("# A\n## Daily Rituals\n" + "- **a** [daily]\n" * 1000).warnings
    assert len(warnings) == 21
    assert warnings[-1] == "SELF.md: 980 more lines are not understood"
