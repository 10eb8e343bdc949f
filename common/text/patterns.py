"""Regular expressions that are compiled at first use; few processes need all, and compiling them takes a while."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, cast
from weakref import WeakSet

import regex


class LazyPattern:
    """Has the attributes of the pattern that `make` returns; `make` is called once."""

    made: ClassVar[WeakSet[LazyPattern]] = WeakSet()

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self.made.add(self)

    @cached_property
    def compiled(self) -> object:
        return self._make()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pattern has
        return getattr(self.compiled, name)


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return an object like `re.compile(pattern, flags)`; a mistake in the pattern is raised at its first use."""
    return cast("re.Pattern[str]", LazyPattern(partial(re.compile, pattern, flags)))


def lazy_regex(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    """Return an object like `regex.compile(pattern, flags)`; a mistake in the pattern is raised at its first use."""
    return cast("regex.Pattern[str]", LazyPattern(partial(regex.compile, pattern, flags)))


def compile_all() -> None:
    """Compile all patterns that were not used yet, for processes that are forked from this one."""
    for one in tuple(LazyPattern.made):
        _ = one.compiled
