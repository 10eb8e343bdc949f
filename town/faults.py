"""Faults that can be switched on: what both services of the town share. Each says for itself what can go wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Generic, Protocol, TypeVar


class AnyFault(Protocol):
    """A frozen dataclass with at least a kind, and how many requests it will still hit."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def times(self) -> int: ...


F = TypeVar("F", bound=AnyFault)


class ArmedFaults(Generic[F]):
    """The armed faults, oldest first; a request meets at most one."""

    def __init__(self) -> None:
        self._armed: list[F] = []

    @property
    def armed(self) -> tuple[F, ...]:
        return tuple(self._armed)

    def arm(self, fault: F) -> None:
        """Switch a fault on."""
        self._armed.append(fault)

    def clear(self) -> None:
        """Switch all off."""
        self._armed.clear()

    def use(self, hits: Callable[[F], bool]) -> F | None:
        """The first fault that `hits` the present request; only a hit uses it up."""
        for place, fault in enumerate(self._armed):
            if hits(fault):
                self._armed[place : place + 1] = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
                return fault
        return None


def read_fault(model: type[F], kinds: Collection[str], body: dict[str, Any]) -> F:
    """A fault as `POST /town/faults` takes it. Raises `ValueError` for a kind or a field that is not known."""
    if body.get("kind") not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}")
    try:
        return model(**body)
    except TypeError as error:
        raise ValueError(f"unknown field: {error}") from error


class HitFault(AnyFault, Protocol):
    """A fault that hits with a probability."""

    @property
    def probability(self) -> float: ...


H = TypeVar("H", bound=HitFault)


class LikelyFaults(ArmedFaults[H]):
    """Armed faults that hit some of the requests that fit `pattern_of` them, such as `com.atproto.repo.*`."""

    def __init__(self, pattern_of: Callable[[H], str], rng: random.Random | None = None) -> None:
        super().__init__()
        self._pattern_of = pattern_of
        self._rng = rng or random.Random()

    def meet(self, request: str) -> H | None:
        """The fault that a request meets."""
        return self.use(
            lambda fault: fnmatchcase(request, self._pattern_of(fault)) and self._rng.random() < fault.probability
        )
