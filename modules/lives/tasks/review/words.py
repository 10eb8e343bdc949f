"""The text of a review: the model's words, then what the tests came to, in words of ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from common.text.github_text import without_mentions
from common.text.untrusted import one_line
from modules.lives.tasks.review.evidence import SuiteOutcome, Weakening, essential_lines
from modules.lives.tasks.review.judge import ReviewCase
from modules.services.voice_phrases.store import Phrase

_NAME_CHARS = 160
_TICKS = re.compile(r"`+")


def review_body(words: str, case: ReviewCase, phrase: Phrase) -> str:
    """Return the text of a review: a failing test stands in it by name, with the lines that tell why."""
    return "\n\n".join((words, *_of_tests(case.tests, phrase), *(_of(one, phrase) for one in case.weakened)))


def _of_tests(tests: SuiteOutcome, phrase: Phrase) -> Iterator[str]:
    for run in tests.failed:
        yield phrase(
            "github.review_tests_failed", command=_code(run.command), output=_block(essential_lines(run.output))
        )
    if tests.failing:
        yield phrase("github.review_failing", tests=", ".join(_code(name) for name in tests.failing))
    if tests.passed:
        yield phrase("github.tests_passed", commands=", ".join(one.command for one in tests.passed))
    if tests.missing:
        yield phrase("github.tests_missing", commands=", ".join(one.command for one in tests.missing))
    if tests.refused:
        yield phrase("github.review_tests_refused")
    if tests.state == "none":
        yield phrase("github.tests_none")


def _of(weakening: Weakening, phrase: Phrase) -> str:
    return phrase(f"github.review_{weakening.code}", path=_code(weakening.path))


def _code(text: str) -> str:
    """A name in code of Markdown, which it cannot leave."""
    return f"`{without_mentions(one_line(text, _NAME_CHARS)).replace('`', '')}`"


def _block(text: str) -> str:
    """An output as a block of code, which it cannot leave."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{without_mentions(text)}\n{fence}"
