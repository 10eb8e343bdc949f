"""Faults that can be switched on: what both services of the town share. Each says for itself what can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
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
