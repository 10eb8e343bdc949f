"""The page that says where a rule stands names what stands there."""

from __future__ import annotations

import re

import pytest

from tests.project import ROOT

pytestmark = pytest.mark.guard

PAGE = ROOT / "docs" / "rules.md"
_ROW = re.compile(r"\| \[(?P<names>[^\]]+)\]\((?P<path>[^)]+)\) \|")


_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def missing(text: str) -> list[str]:
    """Return what a page links to and is not there: a file, or a name that the linked file does not define."""
    found: list[str] = []
    for row in _ROW.finditer(text):
        name, _, heading = row["path"].partition("#")
        path = PAGE.parent / name
        code = path.read_text() if path.is_file() else ""
        headings = [re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in _HEADING.findall(code)]
        code = code if not heading or heading in headings else ""
        names = [name for name in re.findall(r"`(\w+)`", row["names"]) if path.suffix == ".py"]
        absent = [name for name in names if not re.search(rf"^(?:(?:async )?def |class )?{name}\b", code, re.MULTILINE)]
        found += absent if code else [row["path"]]
    return found


def test_each_rule_stands_where_the_page_says() -> None:
    assert missing(PAGE.read_text()) == []


def test_a_rule_that_moved_is_found() -> None:
    well = ("[`elect`](../common/election.py)", "[a claim](plans.md#a-claim)")
    rows = ("[`gone`](../common/election.py)", "[`elect`](../common/moved.py)", "[gone](plans.md#gone)", *well)
    page = "\n".join(f"| {row} |" for row in rows)
    assert missing(page) == ["gone", "../common/moved.py", "plans.md#gone"]
