"""Faults that can be switched on, shared by all services of the town. Each service names the kinds that it knows."""

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
    """A fault for the next `times` requests that match the pattern `request`.

    A service of the AT Protocol matches the pattern with a method (`com.atproto.repo.*`), also with its parameters
    (`*.listNotifications?*limit=25*`), the others with the HTTP method and the path (`POST /repos/*/issues`).

    Attributes:
        kind: what goes wrong.
        request: the pattern.
        times: how many more requests it hits.
        probability: the probability that it hits a matching request, 0 to 1.
        seconds: how long to hang, the `retry-after`, or the maximum delay or lag of an answer.

    """

    kind: K
    request: str = "*"
    times: int = 1
    probability: float = 1.0
    seconds: float = 30.0


class ArmedFaults(Generic[K]):
    """The armed faults, oldest first; at most one hits a request. A subclass names its `kinds`."""

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
        """Switch all faults off."""
        self._armed.clear()

    def meet(self, request: str, among: Collection[K] | None = None, *, query: str = "") -> Fault[K] | None:
        """Return the fault that hits a request, only of the kinds `among` if given; only a hit uses it up."""
        for place, fault in enumerate(self._armed):
            if among is not None and fault.kind not in among:
                continue
            fits = any(fnmatchcase(one, fault.request) for one in (request, f"{request}?{query}"))
            if fits and self._rng.random() < fault.probability:
                self._armed[place : place + 1] = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
                return fault
        return None

    def some_of(self, seconds: float) -> float:
        """Return a random duration between 0 and `seconds`."""
        return self._rng.uniform(0, seconds)

    async def answer(self, request: Request) -> Response:
        """Serve `/town/faults`: POST arms one (`{"kind": …, "request": "*", "times": 1}`), DELETE clears, GET lists."""
        try:
            if request.method == "POST":
                self.arm(self._read(await request.json()))
            elif request.method == "DELETE":
                self.clear()
        except ValueError as error:
            return JSONResponse({"error": "InvalidRequest", "message": str(error)}, 400)
        return JSONResponse({"armed": [asdict(fault) for fault in self._armed]})

    def _read(self, body: object) -> Fault[K]:
        """Return a fault from JSON. Raises `ValueError` for an unknown kind or field."""
        given: Mapping[str, Any] = body if isinstance(body, dict) else {}
        if given.get("kind") not in self.kinds:
            raise ValueError(f"kind must be one of {', '.join(self.kinds)}")
        try:
            return Fault(**given)
        except TypeError as error:
            raise ValueError(f"unknown field: {error}") from error


def bad_gateway() -> Response:
    """Return a 502 like a proxy's, in HTML."""
    return HTMLResponse(_BAD_GATEWAY, 502)
