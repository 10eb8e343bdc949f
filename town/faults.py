"""Faults that can be switched on: what all services of the town share. Each service names the kinds that it knows."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

K = TypeVar("K", bound=str)

_BAD_GATEWAY = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(frozen=True)
class Fault(Generic[K]):
    """A fault for the next `times` requests that fit `request`, a pattern.

    A service of the AT Protocol matches the pattern with a method (`com.atproto.repo.*`), also with its parameters
    (`*.listNotifications?*limit=25*`), the others with the HTTP method and the path (`POST /repos/*/issues`).

    Attributes:
        kind: what goes wrong.
        request: the pattern.
        times: how many requests it still hits.
        probability: with which each of these requests is hit, 0 to 1.
        seconds: how long to hang, the `retry-after`, or how late or how far behind an answer is at most.

    """

    kind: K
    request: str = "*"
    times: int = 1
    probability: float = 1.0
    seconds: float = 30.0


class ArmedFaults(Generic[K]):
    """The armed faults, oldest first; a request meets at most one. A subclass names its `kinds`."""

    kinds: ClassVar[tuple[str, ...]] = ()

    def __init__(self, rng: random.Random | None = None) -> None:
        self._armed: list[Fault[K]] = []
        self._rng = rng or random.Random()

    @property
    def armed(self) -> tuple[Fault[K], ...]:
        return tuple(self._armed)

    def arm(self, fault: Fault[K]) -> None:
        """Switch a fault on."""
        self._armed.append(fault)

    def clear(self) -> None:
        """Switch all off."""
        self._armed.clear()

    def meet(self, request: str, among: Collection[K] | None = None, *, query: str = "") -> Fault[K] | None:
        """The fault that a request meets, of the kinds `among` if they are given; only a hit uses it up."""
        for place, fault in enumerate(self._armed):
            if among is not None and fault.kind not in among:
                continue
            fits = any(fnmatchcase(one, fault.request) for one in (request, f"{request}?{query}"))
            if fits and self._rng.random() < fault.probability:
                self._armed[place : place + 1] = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
                return fault
        return None

    def some_of(self, seconds: float) -> float:
        """A random time of up to so many seconds."""
        return self._rng.uniform(0, seconds)

    async def answer(self, request: Request) -> Response:
        """`/town/faults`: POST arms one (`{"kind": …, "request": "*", "times": 1}`), DELETE clears, GET lists."""
        try:
            if request.method == "POST":
                self.arm(self._read(await request.json()))
            elif request.method == "DELETE":
                self.clear()
        except ValueError as error:
            return JSONResponse({"error": "InvalidRequest", "message": str(error)}, 400)
        return JSONResponse({"armed": [asdict(fault) for fault in self._armed]})

    def _read(self, body: object) -> Fault[K]:
        """A fault from JSON. Raises `ValueError` for a kind or a field that is not known."""
        given: Mapping[str, Any] = body if isinstance(body, dict) else {}
        if given.get("kind") not in self.kinds:
            raise ValueError(f"kind must be one of {', '.join(self.kinds)}")
        try:
            return Fault(**given)
        except TypeError as error:
            raise ValueError(f"unknown field: {error}") from error


def bad_gateway() -> Response:
    """502 as a proxy answers it, in HTML."""
    return HTMLResponse(_BAD_GATEWAY, 502)
