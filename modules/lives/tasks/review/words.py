"""The text of a review: the model's words, then what the tests came to, in words of ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from adapters.github.types import LineComment, PullFile
from common.text.github_text import without_mentions
from modules.lives.tasks.review.judge import Judgement, failing_names
from modules.services.coding.suite_words import quoted, suite_lines
from modules.services.coding.suites import SuiteChange
from modules.services.coding.test_output import essential_lines
from modules.services.github_threads.changes import new_lines
from modules.services.outbox.github_bodies import MOST_LINE_COMMENTS
from modules.services.voice_phrases.store import Phrase

_TICKS = re.compile(r"`+")


def review_words(
    judged: Judgement, files: Sequence[PullFile], tests: SuiteChange, phrase: Phrase
) -> tuple[str, tuple[LineComment, ...]]:
    """Return the text of a review, and what it says of lines.

    A failing test stands in the text by name, with the lines that tell why. What is said of a line that the changes do
    not show stands there too.
    """
    shown = {one.path: new_lines(one.patch) for one in files}
    placed = [one for one in judged.comments if one.line in shown.get(one.path, ())][:MOST_LINE_COMMENTS]
    others = [f"{quoted([f'{one.path}:{one.line}'])}: {one.body}" for one in judged.comments if one not in placed]
    lines = "\n".join(f"- {one}" for one in suite_lines(tests, phrase))
    return "\n\n".join((judged.words, *others, *_of_broken(tests, phrase), lines)), tuple(placed)


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
