"""Answers that need not be asked for twice, the oldest forgotten first. Lives and dies with the process."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """At most `most` answers by key. What is put again keeps its age."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: dict[str, T] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: str) -> T | None:
        """The answer, if it is known."""
        return self._answers.get(key)

    def put(self, key: str, answer: T) -> T:
        """Remember `answer`, and return it."""
        self._answers[key] = answer
        while len(self._answers) > self._most:
            del self._answers[next(iter(self._answers))]
        return answer

    def clear(self) -> None:
        """Forget all."""
        self._answers.clear()
