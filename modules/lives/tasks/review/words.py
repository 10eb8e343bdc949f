"""The text of a review: the model's words, then what the tests came to, in words of ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from common.text.github_text import without_mentions
from modules.lives.tasks.review.judge import failing_names
from modules.services.coding.suite_words import quoted, suite_lines
from modules.services.coding.suites import SuiteChange
from modules.services.coding.test_output import essential_lines
from modules.services.voice_phrases.store import Phrase

_TICKS = re.compile(r"`+")


def review_body(words: str, tests: SuiteChange, phrase: Phrase) -> str:
    """Return the text of a review: a failing test stands in it by name, with the lines that tell why."""
    lines = "\n".join(f"- {one}" for one in suite_lines(tests, phrase))
    return "\n\n".join((words, *_of_broken(tests, phrase), lines))


def _of_broken(tests: SuiteChange, phrase: Phrase) -> Iterator[str]:
    for run in tests.broken:
        yield phrase("github.tests_failed", command=quoted([run.command]), output=_block(essential_lines(run.output)))
    if failing := failing_names(tests):
        yield phrase("github.tests_failing", tests=quoted(failing))


def _block(text: str) -> str:
    """An output as a block of code, which it cannot leave."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{without_mentions(text)}\n{fence}"
