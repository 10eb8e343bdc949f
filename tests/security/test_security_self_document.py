"""Proves that reading a SELF.md costs as much as it is long, whatever stands in it. Judged by processor time."""

from __future__ import annotations

from modules.services.identity.identity import extract_from_self


def test_of_many_lines_that_are_not_understood_the_first_are_told_and_the_rest_counted() -> None:
    warnings = extract_from_self("# A\n## Daily Rituals\n" + "- **a** [daily]\n" * 1000).warnings
    assert len(warnings) == 21
    assert warnings[-1] == "SELF.md: 980 more lines are not understood"
