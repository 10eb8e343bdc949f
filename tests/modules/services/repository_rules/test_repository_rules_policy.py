"""Which files of a repository are read, which of their sentences may be rules for AI agents, and what follows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from adapters.github.types import ContentEntry
from common.clock import FakeClock, ScaledClock, iso
from modules.services.repository_rules.policy import (
    KEPT_FOR,
    PIECE_CHARS,
    UNCLEAR_FOR,
    files_to_read,
    is_fresh,
    questions,
    template_folders,
    verdict_of,
)
from modules.services.repository_rules.reader import rule_in
from modules.services.repository_rules.types import WELCOME_OF, RepositoryVerdict, Rule, VerdictCode


def entries(*paths: str, kind: str = "file") -> list[ContentEntry]:
    return [ContentEntry(path.rpartition("/")[2], path, kind) for path in paths]


def test_all_pages_are_read_that_may_tell_how_to_take_part_in_any_language_those_named_for_it_first() -> None:
    read = (
        ".github/CONTRIBUTING.rst", ".github/copilot-instructions.md", "AGENTS.md", "NO_AI", "NO_AI.md", "README.md",
        "README.zh-CN.md", "docs/AI_POLICY.md", "docs/CONTRIBUTE.md", ".github/ISSUE_TEMPLATE/bug.yml",
        "MITWIRKEN.md", "\u8d21\u732e\u6307\u5357.md", "docs/PULL_REQUEST_TEMPLATE/docs.md",
    )  # fmt: skip
    passed_over = (
        "main.py", "requirements.txt", "Makefile", "LICENSE", "CHANGELOG.md", "docs/airport.md", "docs/tutorial.md",
        ".github/workflows.yml", ".gitignore", "go.mod", "NOTICE.txt", "HISTORY.rst", "logo.PNG", "Cargo.lock",
    )  # fmt: skip
    found = [one.path for one in files_to_read([*entries(*passed_over, *read), *entries("README", kind="dir")])]
    assert sorted(found) == sorted(read)
    assert set(found[:9]) == set(read[:9])
    assert [one.path for one in files_to_read(entries("CONTRIBUTING.md", kind="symlink"))] == ["CONTRIBUTING.md"]


@pytest.mark.parametrize(
    "path",
    [
        "contributing", "contributing.txt", "CONTRIBUTING.MD", "CONTRIBUTING.html", "CONTRIBUTING.textile",
        "CONTRIBUTING.pdf", "README.MD", "README.rdoc", "README.pod", "ai-policy.txt", "llms.txt", ".cursorrules",
        ".github/pull_request_template.txt", ".github/ISSUE_TEMPLATE/bug.txt", "NOTICE-AI.md", "License-AI.md",
        "CHANGES_POLICY.md", "history-of-ai-policy.md", "News from here.md", "docs/KI-Richtlinie.md",
        "docs/no-bots.md", "docs/policy.md", "docs/AI_POLICY.HTML", "profile", "\u8d21\u732e\u6307\u5357.TXT",
    ],
)  # fmt: skip
def test_a_page_is_read_whatever_its_case_and_ending(path: str) -> None:
    assert [one.path for one in files_to_read(entries(path))] == [path]


def test_a_folder_of_pages_that_stands_elsewhere_is_told_as_one_that_must_be_read() -> None:
    listed = entries("docs", "vendor", "ai-policy", kind="submodule")
    assert {one.path for one in files_to_read(listed)} == {"docs", "ai-policy"}


def test_folders_of_templates_are_looked_into() -> None:
    folders = entries(".github/ISSUE_TEMPLATE", ".github/workflows", "docs/pull_request_template", kind="dir")
    assert template_folders(folders) == [".github/ISSUE_TEMPLATE", "docs/pull_request_template"]


def test_whole_texts_are_asked_about_in_as_few_questions_as_hold_them() -> None:
    line = "x" * 99 + "\n"
    asked = questions([("A.md", "one"), ("B.md", "two"), ("C.md", line * 200), ("D.md", "y" * 20_000), ("E.md", " ")])
    assert asked[0] == (("A.md", "B.md"), "A.md:\none\n\nB.md:\ntwo")
    assert sum(text.count("x") for _, text in asked) == 99 * 200
    assert sum(text.count("y") for _, text in asked) == 20_000
    assert all(len(text) <= PIECE_CHARS + 10 for _, text in asked)


@pytest.mark.parametrize(
    ("rules", "code", "path"),
    [
        ([], VerdictCode.NOTHING_SAID, ""),
        ([("a", "none")], VerdictCode.NOTHING_SAID, ""),
        ([("a", "allowed"), ("b", "none")], VerdictCode.ALLOWED, "a"),
        ([("a", "allowed"), ("b", "conditions")], VerdictCode.CONDITIONS, "b"),
        ([("a", "conditions"), ("b", "forbidden")], VerdictCode.FORBIDDEN, "b"),
    ],
)
def test_the_strictest_rule_decides(rules: list[tuple[str, Rule]], code: VerdictCode, path: str) -> None:
    assert verdict_of(rules) == (code, path)


def test_a_verdict_holds_for_a_while_one_that_is_not_clear_for_less() -> None:
    clock = FakeClock()
    now = clock.now()
    for code, holds in ((VerdictCode.NOTHING_SAID, KEPT_FOR), (VerdictCode.CONDITIONS, UNCLEAR_FOR)):
        before = RepositoryVerdict(code, at=iso(now - holds + timedelta(seconds=1)))
        assert is_fresh(before, clock.since)
        assert not is_fresh(before, ScaledClock(clock, 2).since)
        assert not is_fresh(RepositoryVerdict(code, at=iso(now - holds)), clock.since)


def test_every_code_has_a_verdict_and_a_reason() -> None:
    assert WELCOME_OF.keys() == set(VerdictCode)
    assert all("{" not in RepositoryVerdict(code, "AGENTS.md").reason for code in VerdictCode)


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ('{"rule": "forbidden"}', "forbidden"),
        (' ```json\n{"rule" : "Allowed"}', "allowed"),
        ("conditions.", "conditions"),
        ('{"rule": "welcome"}', None),
        ("They may.", None),
        ("", None),
    ],
)
def test_the_answer_of_the_model_is_one_word_of_a_list(answer: str, rule: Rule | None) -> None:
    assert rule_in(answer) == rule
