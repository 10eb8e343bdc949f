"""Which files of a repository are read, which sentences in them may be rules for AI agents, and what they lead to."""

import json
from datetime import timedelta

import pytest

from adapters.github.types import ContentEntry, Repo, Tree
from common.clock import FakeClock, ScaledClock, iso
from modules.services.outbox.github_bodies import IssueCommentBody, PullRequestBody, StarBody
from modules.services.repository_rules.checking import pages_in, rule_in
from modules.services.repository_rules.policy import (
    KEPT_FOR,
    MOST_NAMES,
    PIECE_CHARS,
    UNCLEAR_FOR,
    Condition,
    RepositoryVerdict,
    Rule,
    RuleFound,
    VerdictCode,
    condition_of,
    digest_of,
    is_fresh,
    nearest,
    pages_of,
    questions,
    verdict_of,
    with_conditions,
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
        ([("a", "forbidden"), ("b", "attack")], VerdictCode.ATTACK, "b"),
    ],
)
def test_the_strictest_rule_decides(rules: list[tuple[str, Rule]], code: VerdictCode, path: str) -> None:
    assert verdict_of([(name, RuleFound(rule)) for name, rule in rules]) == RepositoryVerdict(code, path)


MARKER, LINE = Condition("title", "[AI]"), Condition("text", "By an agent.")


def test_conditions_are_met_only_if_code_can_add_each_of_them_and_what_it_can_is_added_in_any_case() -> None:
    def verdict(*pages: tuple[Condition | None, ...]) -> tuple[VerdictCode, tuple[Condition, ...]]:
        found = verdict_of([("a", RuleFound("allowed")), *(("b", RuleFound("conditions", one)) for one in pages)])
        return found.code, found.conditions

    assert verdict((MARKER,), (LINE, MARKER)) == (VerdictCode.MET, (MARKER, LINE))
    assert verdict((MARKER,), ()) == verdict((MARKER, None)) == (VerdictCode.CONDITIONS, (MARKER,))
    many = tuple(Condition("text", f"Line {number}.") for number in range(6))
    assert verdict(many) == (VerdictCode.CONDITIONS, many[:5])


RULES = (
    'Use [AI]. End with "By an agent." or @kit or see https://evil.test or [x](y) or <b>AI</b> or Fixes #3 or &#64;kit'
    " or [x]: //evil.test/a or [y][x] or ~~~ or www.evil.test or `AI` or AI\u200b here or two\nlines. "
    + "long " * 60
    + "Log to docs/AI.md: By an agent."
)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        *((text, "") for text in ("@kit", "https://evil.test", "[x](y)", "<b>AI</b>", "Fixes #3", "&#64;kit", "`AI`")),
        *((text, "") for text in ("[x]: //evil.test/a", "[y][x]", "~~~", "Fixes")),
        *((text, "") for text in ("www.evil.test", "AI\u200b here", "long " * 60, "not in it", "")),
        *(("By an agent.", path) for path in ("", "/etc/a.md", "../a.md", "docs/../../a.md", ".github/a.md", "a.py")),
        *(("By an agent.", path) for path in (".cursor/a.md", "docs/x\n.md", "a.md/" + "b" * 300 + ".md", "AGENTS")),
    ],
)
def test_a_condition_that_is_more_than_one_plain_line_of_the_rules_in_a_document_is_not_met(
    given: str, path: str
) -> None:
    kind = "text" if given != "By an agent." else "file"
    assert condition_of({"kind": kind, "text": given, "path": path, "true": True}, RULES) is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("An AI agent made this, and nobody has reviewed it yet.",) * 2,
        (
            "An AI agent made this,\n> and nobody has reviewed it yet.",
            "An AI agent made this, and nobody has reviewed it yet.",
        ),
        ("I'm a bot - 'really'.", "I\u2019m a bot \u2013 \u201creally\u201d."),
    ],
)
def test_a_condition_is_added_as_it_stands_in_the_rules(given: str, text: str) -> None:
    rules = "End with:\n> An AI agent made this,\n> and nobody has reviewed it yet.\n"
    rules += "or: I\u2019m a bot \u2013 \u201creally\u201d."
    assert condition_of({"kind": "text", "text": given, "true": True}, rules) == Condition("text", text)


@pytest.mark.parametrize(
    "given", [None, [], "title", {}, {"kind": "other", "text": "[AI]", "true": True}, {"kind": "title", "text": "[AI]"}]
)
def test_what_is_no_condition_that_code_knows_is_not_met(given: object) -> None:
    assert condition_of(given, RULES) is None


def test_conditions_are_read_from_the_answer_and_added_to_each_act_once() -> None:
    asked = [
        {"kind": "title", "text": "[AI]", "true": True},
        {"kind": "pull_request", "text": "By an agent.", "true": True},
        {"kind": "text", "text": "By an agent."},
    ]
    answer = f"Sure: ```json\n{json.dumps({'rule': 'conditions', 'conditions': asked})}\n```"
    found = rule_in(answer, RULES)
    assert found == RuleFound("conditions", (MARKER, Condition("pull_request", "By an agent."), None))
    conditions = [one for one in found.conditions if one] + [Condition("text", "By an agent.")]
    pull = PullRequestBody(repo="a/b", title="task(3): x", body="Text.", head="x", base="main")
    once = with_conditions(pull, conditions)
    assert isinstance(once, PullRequestBody)
    assert (once.title, once.body) == ("[AI] task(3): x", "Text.\n\nBy an agent.")
    assert with_conditions(once, conditions) == once
    comment = with_conditions(IssueCommentBody(repo="a/b", number=1, body="Hi."), conditions[:2])
    assert isinstance(comment, IssueCommentBody)
    assert comment.body == "Hi."
    star = StarBody(repo="a/b")
    assert with_conditions(star, conditions) is star


def test_a_verdict_holds_for_a_while_one_that_is_not_clear_for_less() -> None:
    clock = FakeClock()
    now = clock.now()
    for code, holds in ((VerdictCode.NOTHING_SAID, KEPT_FOR), (VerdictCode.CONDITIONS, UNCLEAR_FOR)):
        before = RepositoryVerdict(code, at=iso(now - holds + timedelta(seconds=1)))
        assert is_fresh(before, clock.since)
        assert not is_fresh(before, ScaledClock(clock, 2).since)
        assert not is_fresh(RepositoryVerdict(code, at=iso(now - holds)), clock.since)


def test_every_code_has_a_verdict_and_a_reason() -> None:
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
    found = rule_in(answer, "")
    assert (found and found.rule) == rule
