"""What goes wrong on the way to a service and back, as `Err`; shared by the adapters.

What matters most is whether a write may have happened. A request that never left is `transient`; one that left and got
no answer, or an answer that says nothing (500, 502, 504), is `unknown_outcome` for a write.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from adapters.web.connecting import RefusedAddresses, RefusedConnection
from common.result import Err, ErrKind

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_NO_PLACE = (RefusedConnection, httpx.UnsupportedProtocol, httpx.InvalidURL)
_BY_STATUS: Mapping[int, ErrKind] = {
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "transient",
    410: "not_found",
    425: "transient",
    429: "transient",
    501: "invalid",
    503: "transient",
}
_SERVER_ERROR = 500
_MAX_CHARS = 300


class Failure(Exception):
    """Carries an `Err` of our own making out through a client library."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.error)
        self.err = err


def unanswered(*, write: bool) -> ErrKind:
    """Return the kind of a request that left and got no answer that says anything."""
    return "unknown_outcome" if write else "transient"


def kind_of_status(status: int, *, write: bool, own: Mapping[int, ErrKind] | None = None) -> ErrKind:
    """Return the kind of an answer that is no success; `own` is what its service means by some statuses."""
    kind = (own or {}).get(status) or _BY_STATUS.get(status)
    return kind or (unanswered(write=write) if status >= _SERVER_ERROR else "invalid")


def transport_error(error: BaseException, *, what: str, service: str, write: bool) -> Err:
    """Map what a client raised instead of an answer: `httpx.HTTPError`, `httpx.InvalidURL` or `TimeoutError`.

    Args:
        error: what was raised.
        what: what was tried; the message begins so.
        service: the name of the service.
        write: whether the request changes something public.

    """
    if isinstance(error, RefusedAddresses):
        # NOTE(self): a network that asks to log in first answers for every name with an address of its own.
        return Err(shortened(f"{what}: {error}"), kind="transient")
    if isinstance(error, _NO_PLACE):
        return Err(shortened(f"{what}: {error}"), kind="invalid")
    if isinstance(error, httpx.LocalProtocolError):
        return Err(f"{what}: the request cannot be put into HTTP", kind="invalid")
    if isinstance(error, _NEVER_SENT):
        return Err(f"{what}: no connection to {service}", kind="transient")
    late = isinstance(error, TimeoutError | httpx.TimeoutException)
    how = f"{service} did not answer in time" if late else f"the connection to {service} was lost"
    return Err(f"{what}: {how}", kind=unanswered(write=write))


def is_well(status: int | None) -> bool:
    """Return whether a service that answered with this status (None: did not answer) is well."""
    return status is not None and status < _SERVER_ERROR and status != httpx.codes.TOO_MANY_REQUESTS


def shortened(text: str) -> str:
    """Return `text` on one line of at most 300 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_CHARS else f"{line[: _MAX_CHARS - 1]}…"
