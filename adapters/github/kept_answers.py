"""Answers of GitHub that were read before, so that a read asks for an answer only if it changed. No input or output.

GitHub answers 304 where it did not change, which costs no request of the hour; whoever asked gets the kept answer. A
kept answer is never used without asking. A full last page of a list is not kept: what follows it would leave the page,
and so its ETag, as it is.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

MOST_ANSWERS = 300
MOST_CHARS = 8_000_000
"""The most characters that are kept in all; of one answer, an eighth of them."""
_OK = 200
_UNCHANGED = 304
_USUAL_PAGE = 30
_CONDITIONS = frozenset({"if-none-match", "if-modified-since"})


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What came back; header names are in lower case."""

    status: int
    headers: dict[str, str]
    text: str


class KeptAnswers:
    """The newest answers to reads, by their addresses; what was not asked for longest goes first."""

    def __init__(self, *, most_answers: int = MOST_ANSWERS, most_chars: int = MOST_CHARS) -> None:
        self._most_answers = most_answers
        self._most_chars = most_chars
        self._answers: OrderedDict[str, KeptAnswer] = OrderedDict()
        self._chars = 0

    def of(self, url: str, headers: Mapping[str, str]) -> KeptAnswer | None:
        """Return the kept answer to a read; None where there is none, or the request has a condition of its own."""
        return None if _CONDITIONS & {name.lower() for name in headers} else self._answers.get(url)

    def resolve(self, url: str, answer: KeptAnswer, kept: KeptAnswer | None) -> KeptAnswer:
        """Return what was asked for, and keep it; `kept` is the answer that `of` returned before the request left.

        Where that did not change, it is returned, with the headers that GitHub tells now.
        """
        if answer.status == _UNCHANGED:
            if kept is None:
                return answer
            answer = KeptAnswer(kept.status, {**kept.headers, **answer.headers}, kept.text)
        self._forget(url)
        if answer.status == _OK and answer.headers.get("etag") and not _is_full_last_page(url, answer):
            self._keep(url, answer)
        return answer

    def _keep(self, url: str, answer: KeptAnswer) -> None:
        if len(answer.text) > self._most_chars // 8:
            return
        self._answers[url] = answer
        self._chars += len(answer.text)
        while len(self._answers) > self._most_answers or self._chars > self._most_chars:
            _, oldest = self._answers.popitem(last=False)
            self._chars -= len(oldest.text)

    def _forget(self, url: str) -> None:
        if gone := self._answers.pop(url, None):
            self._chars -= len(gone.text)


def _is_full_last_page(url: str, answer: KeptAnswer) -> bool:
    if 'rel="next"' in answer.headers.get("link", ""):
        return False
    try:
        told = json.loads(answer.text)
    except ValueError:
        return True
    if not isinstance(told, list):
        return False
    asked = httpx.URL(url).params.get("per_page", "")
    return len(told) >= (int(asked) if asked.isdecimal() else _USUAL_PAGE)
