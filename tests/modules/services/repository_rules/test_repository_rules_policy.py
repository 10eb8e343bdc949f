"""Which files of a repository are read, which of their sentences may be rules for AI agents, and what follows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from adapters.github.types import ContentEntry
from common.clock import FakeClock, iso
from modules.services.repository_rules.policy import (
    KEPT_FOR,
    MOST_FILES,
    MOST_SENTENCES,
    UNCLEAR_FOR,
    files_to_read,
    is_fresh,
    is_plain_ban,
    rule_sentences,
    verdict_of,
)
from modules.services.repository_rules.reader import rule_in
from modules.services.repository_rules.types import WELCOME_OF, Rule, Verdict, VerdictCode

BANS = (
    "AI-generated contributions are not accepted.",
    "Contributions made with AI are prohibited in this project.",
    "We do not accept contributions that were written by large language models.",
    "This project does not allow AI agents in its issues.",
    "Pull requests written by LLMs will be closed.",
    "The project forbids any content made by generative AI.",
    "Please do not use ChatGPT for issues or comments.",
    "Never post comments written by Copilot.",
    "No AI, please.",
    "No bots in the issue tracker.",
    "Bots are not welcome here.",
    "We don't want machine-generated text.",
    "Code from LLMs is strictly forbidden.",
)
NO_PLAIN_BANS = (
    "AI-generated contributions are not accepted unless a person reviewed them.",
    "We do not accept undisclosed AI contributions.",
    "Please disclose the use of AI tools.",
    "AI agents are welcome.",
    "If you use an LLM, your pull request will be closed.",
    "Do not use our code for AI training.",
    "Low-quality AI pull requests will be closed.",
    "Claude must run `make test`, and never use `git push --force`.",
    "The bot answers only once.",
    "Do not use tabs.",
    "No AIX support yet.",
    "We do not accept patches by mail.",
    "AI agents should not pick up good first issues.",
    "",
)


@pytest.mark.parametrize("sentence", BANS)
def test_a_ban_in_plain_words_is_recognised_by_code_alone(sentence: str) -> None:
    assert is_plain_ban(sentence)
    assert rule_sentences(f"# Contributing\n\nThanks for your help. {sentence} Write tests.\n") == [sentence]


@pytest.mark.parametrize("sentence", NO_PLAIN_BANS)
def test_what_has_a_condition_or_is_about_something_else_is_no_plain_ban(sentence: str) -> None:
    assert not is_plain_ban(sentence)


def test_only_sentences_about_ai_that_ask_something_are_read_by_a_model() -> None:
    text = (
        "# Contributing\n\nWrite tests. Our product is an AI camera.\n\n"
        "* Say which AI tool you used; you must disclose it.\n* Run the linter\n  on all files.\n"
        "1. Bots may open issues\n   and comment on them.\n"
    )
    assert rule_sentences(text) == [
        "* Say which AI tool you used; you must disclose it.",
        "Bots may open issues and comment on them.",
    ]
    assert len(rule_sentences("AI must not. " * 500)) == MOST_SENTENCES
    assert [len(one) for one in rule_sentences("AI must " + "x" * 9_000)] == [500]
    assert rule_sentences("No " * 100_000 + "AI" * 100_000) == []


def test_the_files_that_may_have_rules_are_found_by_name_those_about_ai_first() -> None:
    names = (
        "README.md", "CONTRIBUTING.md", ".github/contributing.rst", "docs/AI_POLICY.md", "AGENTS.md", "CLAUDE.md",
        "llm-usage-policy.md", ".github/pull_request_template.md", "main.py", "airport.md", "docs/my-ai-guidelines.txt",
    )  # fmt: skip
    listed = [ContentEntry(name.rpartition("/")[2], name, "file") for name in names]
    listed.append(ContentEntry("contributing", "contributing", "dir"))
    assert [one.path for one in files_to_read(listed)] == [
        "CLAUDE.md",
        "docs/AI_POLICY.md",
        "docs/my-ai-guidelines.txt",
        "llm-usage-policy.md",
        ".github/contributing.rst",
        ".github/pull_request_template.md",
        "AGENTS.md",
        "CONTRIBUTING.md",
    ]
    assert len(files_to_read([ContentEntry("AGENTS.md", f"{n}/AGENTS.md", "file") for n in range(20)])) == MOST_FILES


@pytest.mark.parametrize(
    ("rules", "code", "path"),
    [
        ([], VerdictCode.NO_RULES, ""),
        ([("a", "none")], VerdictCode.NO_RULES, ""),
        ([("a", "allowed"), ("b", "none")], VerdictCode.ALLOWED, "a"),
        ([("a", "allowed"), ("b", "conditions")], VerdictCode.CONDITIONS, "b"),
        ([("a", "conditions"), ("b", "forbidden")], VerdictCode.FORBIDDEN, "b"),
    ],
)
def test_the_strictest_rule_decides(rules: list[tuple[str, Rule]], code: VerdictCode, path: str) -> None:
    assert verdict_of(rules) == (code, path)


def test_a_verdict_holds_for_a_while_one_that_is_not_clear_for_less() -> None:
    now = FakeClock().now()
    for code, holds in ((VerdictCode.NO_RULES, KEPT_FOR), (VerdictCode.CONDITIONS, UNCLEAR_FOR)):
        before = Verdict(code, at=iso(now - holds + timedelta(seconds=1)))
        assert is_fresh(before, now, 1)
        assert not is_fresh(before, now, 2)
        assert not is_fresh(Verdict(code, at=iso(now - holds)), now, 1)


def test_every_code_has_a_verdict_and_a_reason() -> None:
    assert WELCOME_OF.keys() == set(VerdictCode)
    assert all("{" not in Verdict(code, "AGENTS.md").reason for code in VerdictCode)


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
