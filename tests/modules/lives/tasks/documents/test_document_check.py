"""What a model wrote is saved only where it is a document, and nothing that it should not say."""

from __future__ import annotations

import pytest

from modules.lives.tasks.documents.compose import MOST_CHARS, Requirements, document_in, judge_document, missing_words
from tests.cpu_time import takes_less
from tests.modules.lives.tasks.documents.workplace import DOCUMENT, GOAL

TOLD = "The goal is shown to you here, and what the others wrote stands behind it in a frame."
REQUIREMENTS = Requirements(
    GOAL, given="See https://example.org/beds.", before="Old: https://example.org/old", instructions=TOLD
)
LINK = "\nMore at https://example.org/beds, and at [the old page](https://example.org/old).\n"


def problem_of(text: str, required: Requirements = REQUIREMENTS) -> str | None:
    return judge_document(text, required, lambda said: "hunter2" in said).problem


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENT,
        DOCUMENT + LINK,
        DOCUMENT + "\n```html\n<p>beds</p>\n```\n",
        DOCUMENT + "\nThe page shows `<p>` and `{{name}}`, and 3 < 4.\n",
        DOCUMENT + "\n- [ ] look\n- [x] water the add-on bed\n",
    ],
)
def test_a_document(text: str) -> None:
    assert problem_of(text) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Empty"),
        ("# Scenarios\n\n## One\n\n## Two\n", "Empty"),
        (DOCUMENT + "word " * (MOST_CHARS // 5), "Too Long"),
        (DOCUMENT.replace("# Scenarios", "Scenarios", 1), "No Headings"),
        (DOCUMENT.replace("## A wet day", "A wet day"), "No Headings"),
        (DOCUMENT + "\n# Another title\n", "No Headings"),
        (DOCUMENT + "\n```ts\nlet beds\n", "Open Code"),
        (DOCUMENT + "\n<script src=x></script>\n", "Markup"),
        (DOCUMENT + "\n<!-- unseen -->\n", "Markup"),
        (DOCUMENT + "\nTBD\n", "Gap"),
        (DOCUMENT + "\nAsk [your name] for the key.\n", "Gap"),
        (DOCUMENT + "\nHello {{name}}.\n", "Gap"),
        (DOCUMENT + "\nSee https://example.net/.\n", "Link"),
        (DOCUMENT + f"\n{TOLD}\n", "Instructions"),
        (DOCUMENT + "\nThe key is hunter2.\n", "Secret"),
        (DOCUMENT + "\n- The page will not show the weather.\n" * 5, "Repeats"),
        (DOCUMENT.replace(GOAL, "We like it.").replace("water", "tea").replace("bed", "cup"), "Goal"),
    ],
)
def test_what_is_no_document(text: str, problem: str) -> None:
    assert problem_of(text) == problem


def test_what_says_the_same_as_before_is_no_work() -> None:
    assert problem_of(DOCUMENT, Requirements(GOAL, before=DOCUMENT.replace("\n\n", "\n\n\n"))) == "Unchanged"


def test_the_words_of_the_goal_that_are_missing_are_told() -> None:
    missing = ("visitors", "see", "beds", "need", "water", "today")
    assert judge_document(DOCUMENT, Requirements("Visiting the beds"), lambda _: False).problem is None
    assert set(missing_words(GOAL, "Tea.")) >= set(missing) - {"see"}
    assert missing_words("", "Tea.") == ()
    for goal in ("The tide-table can be used.", "A neighbour's gate/door.", "naïve co-op: e-mail"):
        assert missing_words(goal, f"# About\n\n{goal}") == ()
    assert missing_words("庭の水やりを一目で見る", "# 庭\n\n庭の水やりを一目で見る") == ()


@pytest.mark.parametrize(
    "answer",
    [
        DOCUMENT,
        f"```markdown\n{DOCUMENT}```",
        f"Here is the document:\n\n{DOCUMENT}",
        f"Sure.\n\n```md\n{DOCUMENT}```\n",
        DOCUMENT.replace("\n", "  \n"),
        f"\ufeff{DOCUMENT}\n\n",
    ],
)
def test_what_stands_around_the_document_is_taken_off(answer: str) -> None:
    assert document_in(answer) == DOCUMENT


@pytest.mark.perf
@pytest.mark.parametrize("unit", ["<a ", "[insert ", "# ", "`", "https://", "```\n", "- a b c d e\n", "{{", "!", ".)"])
def test_the_cost_grows_with_the_length(unit: str) -> None:
    text = document_in(unit * 4_000)
    assert takes_less(1.0, lambda: judge_document(text, REQUIREMENTS, lambda _: False), runs=3)
