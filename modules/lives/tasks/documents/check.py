"""Whether a document that a model wrote can be offered. Pure, and in time that grows with the length of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from common.text.markdown import is_meaningful, is_wrapping, outline, unwrapped
from common.text.repetition import begins_alike
from common.text.stems import plain_words, tokenize_with_stemming
from common.text.untrusted import clean

DocumentProblem = Literal[
    "Empty",
    "Too Long",
    "Cut Off",
    "No Headings",
    "Open Code",
    "Markup",
    "Repeats",
    "Gap",
    "Link",
    "Instructions",
    "Goal",
    "Unchanged",
    "Secret",
]
"""What may be wrong with a document that a model wrote: a subsection of `Problems` in the skill `task-document`."""
MOST_CHARS = 12_000
"""How long a document may be that is written by the model, and one that is written anew."""

_LEAST_CHARS = 200
_LEAST_PARTS = 2
_LEAST_GOAL_SHARE = 0.5
_MOST_WORDS_TOLD = 8
_RUN = 10
_REMARK_CHARS = 300
_TITLE, _PART = 1, 2
_TICKS = re.compile(r"`[^`\n]{1,200}`")
_HTML = re.compile(r"<(?:/?[a-z][a-z0-9-]{0,20}(?:[ \t][^<>\n]{0,200})?/?>|!--)", re.IGNORECASE)
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>()\[\]`\"']{1,300}", re.IGNORECASE)
_GAP = re.compile(
    r"\b(?:to-?do|tbd|tba|fixme|lorem ipsum|to be (?:added|decided|defined|determined|filled in|written))\b"
    r"|\[(?:insert|your|add|describe|name of|to be|link|fill|placeholder)\b[^\]\n]{0,80}\](?!\()"
    r"|<(?:insert|your|add|name of|placeholder)\b[^<>\n]{0,80}>"
    r"|\{\{|\}\}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a document is held to.

    `goal` is that of the plan; `given` is all that the model was shown by others, whose links it may repeat; `before`
    is the document as it stands, "" where there is none; `instructions` are our own words to the model.
    """

    goal: str
    given: str = ""
    before: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class DocumentCheck:
    """What is wrong with a document, if anything; `missing` are the words of the goal that it lacks."""

    problem: DocumentProblem | None = None
    missing: tuple[str, ...] = ()


def document_in(answer: str) -> str:
    """Return the document that a model's answer holds, as it is to be saved: cleaned, without what is around it.

    A block of code around all of it is taken off, and so is a short remark before the title.
    """
    lines = clean(answer).strip().split("\n")
    begin = next((place for place, line in enumerate(lines) if line.startswith("# ") or is_wrapping(line)), 0)
    if sum(map(len, lines[:begin])) <= _REMARK_CHARS:
        lines = unwrapped(lines[begin:])
    return "\n".join(line.rstrip() for line in lines).strip() + "\n"


def judge_document(text: str, required: Requirements, finds_secret: Callable[[str], bool]) -> DocumentCheck:
    """Return the first thing that is wrong with a document, as `document_in` returns it."""
    failed = next((problem for problem, fails in _checks(text, required, finds_secret) if fails()), None)
    return DocumentCheck(failed, missing_words(required.goal, text) if failed == "Goal" else ())


def missing_words(goal: str, text: str) -> tuple[str, ...]:
    """Return the telling words of a goal that a text lacks, in any form; none where it has half of them."""
    # NOTE(self): word by word on both sides: a whole text loses the hyphens within its words.
    said = {stem for word in plain_words(text) for stem in tokenize_with_stemming(word)}
    told = {stem: word for word in plain_words(goal) for stem in tokenize_with_stemming(word)}
    missing = [word for stem, word in told.items() if stem not in said]
    enough = len(told) - len(missing) >= len(told) * _LEAST_GOAL_SHARE
    return () if enough else tuple(missing[:_MOST_WORDS_TOLD])


def _checks(
    text: str, required: Requirements, finds_secret: Callable[[str], bool]
) -> Iterable[tuple[DocumentProblem, Callable[[], bool]]]:
    prose = _TICKS.sub(" ", text)
    return (
        ("Secret", lambda: finds_secret(text)),
        ("Empty", lambda: len(text) < _LEAST_CHARS or not is_meaningful(text)),
        ("Too Long", lambda: len(text) > MOST_CHARS),
        ("Open Code", lambda: bool(outline(text.split("\n")).open_fence)),
        ("No Headings", lambda: not _is_divided(text)),
        ("Repeats", lambda: begins_alike(text)),
        ("Gap", lambda: bool(_GAP.search(prose))),
        ("Markup", lambda: bool(_HTML.search(_without_code(prose)))),
        ("Link", lambda: not _links(text) <= _links(required.given) | _links(required.before)),
        ("Instructions", lambda: not _runs(text).isdisjoint(_runs(required.instructions))),
        ("Unchanged", lambda: plain_words(text) == plain_words(required.before)),
        ("Goal", lambda: bool(missing_words(required.goal, text))),
    )


def _is_divided(text: str) -> bool:
    """Whether it begins with its title, the only one, and has parts."""
    headings = outline(text.split("\n")).headings
    titles = [one.line for one in headings if one.level == _TITLE]
    return titles == [0] and sum(one.level == _PART and bool(one.text) for one in headings) >= _LEAST_PARTS


def _without_code(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line for line, is_code in zip(lines, outline(lines).in_code, strict=True) if not is_code)


def _links(text: str) -> set[str]:
    return {found.rstrip(".,;:!?*_").lower() for found in _LINK.findall(text)}


def _runs(text: str) -> set[tuple[str, ...]]:
    words = plain_words(text)
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}
