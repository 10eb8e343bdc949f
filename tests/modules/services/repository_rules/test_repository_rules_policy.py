"""Which files of a repository are read, which of their sentences may be rules for AI agents, and what follows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from adapters.github.types import ContentEntry, Repo, Tree
from common.clock import FakeClock, ScaledClock, iso
from modules.services.repository_rules.checking import pages_in, rule_in
from modules.services.repository_rules.policy import (
    KEPT_FOR,
    MOST_NAMES,
    PIECE_CHARS,
    UNCLEAR_FOR,
    WELCOME_OF,
    RepositoryVerdict,
    Rule,
    VerdictCode,
    digest_of,
    is_fresh,
    nearest,
    pages_of,
    questions,
    verdict_of,
)

HERE, DEFAULTS = Repo("ada", "tool"), Repo("ada", ".github")


def names(*paths: str, kind: str = "file", place: Repo = HERE) -> list[str]:
    found = tuple(ContentEntry(path.rpartition("/")[2], path, kind, "a" * 40) for path in paths)
    return [one.name for one in nearest(pages_of(HERE, place, Tree(found, truncated=False)))]


def test_the_model_is_shown_all_pages_in_any_folder_and_language_and_no_file_of_a_program() -> None:
    pages = (
        ".cursorrules", ".github/CONTRIBUTING.rst", ".github/ISSUE_TEMPLATE/bug.yml", "CONTRIBUTING.PDF", "NO_AI",
        "README.zh-CN.md", "\u8d21\u732e\u6307\u5357.TXT", "docs/CONTRIBUTE.md", "docs/ja/\u8ca2\u732e.md",
        "i18n/de/docs/mitwirken.adoc",
    )  # fmt: skip
    programs = ("main.py", "go.mod", "logo.PNG", ".github/workflows/ci.yml", "src/Makefile", "docs/conf.py")
    assert names(*programs, *reversed(pages)) == sorted(pages, key=lambda path: (depth(path), path))
    assert names("docs", "vendor/book", kind="submodule") == ["docs"]
    assert names("CONTRIBUTING.md", place=DEFAULTS) == ["ada/.github/CONTRIBUTING.md"]


def depth(path: str) -> int:
    return path.removeprefix(".github/").count("/")


def test_of_a_whole_book_the_model_is_shown_what_stands_nearest_to_the_root() -> None:
    shown = names(*(f"docs/book/{number}.md" for number in range(2_000)), "docs/ja/x.md", "README.md")
    assert (len(shown), shown[0]) == (MOST_NAMES, "README.md")


def test_another_page_and_another_text_change_the_digest_and_nothing_else_does() -> None:
    def digest(*files: tuple[str, str]) -> str:
        tree = Tree(tuple(ContentEntry(path, path, "file", sha) for path, sha in files), truncated=False)
        return digest_of(nearest(pages_of(HERE, HERE, tree)))

    before = digest(("README.md", "a"), ("main.py", "b"))
    assert before == digest(("main.py", "c"), ("README.md", "a"))
    assert len({before, digest(("README.md", "b")), digest(("README.md", "a"), ("NO_AI", "a"))}) == 3


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ('{"pages": [2, 14]}', {2, 14}),
        ('```json\n{"pages": []}\n```', set()),
        ('{"pages": ["README.md"]}', None),
        ("2 and 14", None),
        ("", None),
    ],
)
def test_the_model_chooses_pages_by_their_numbers(answer: str, numbers: set[int] | None) -> None:
    assert pages_in(answer) == numbers


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
