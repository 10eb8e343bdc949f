"""Everything that can go wrong on the way to GitHub and back, mapped to `Err` in one place.

What matters most is whether a write may have happened. A request that never left is `transient`; one that left and got
no answer, or an answer that says nothing (500, 502, 504, a body that cannot be read), is `unknown_outcome` for a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import httpx

from adapters.github.rate_limit import limited_for_s, retry_after_s
from adapters.web.connecting import Refused
from common.result import Err, ErrKind

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_BY_STATUS: dict[int, ErrKind] = {
    401: "auth",
    404: "not_found",
    408: "transient",
    409: "conflict",
    410: "not_found",
    425: "transient",
    429: "transient",
    451: "not_found",
    501: "invalid",
    503: "transient",
}
_SUSPENDED = ("account was suspended", "account has been suspended", "account is suspended")
_READ_ONLY = ("archived", "is disabled", "are disabled", "is locked", "blocked")
_ADVICE = {
    401: " (GitHub does not accept AGENT_GITHUB_TOKEN)",
    403: " (the token may not do this: check its permissions, and whether the account may write there)",
}
_MAYBE = " (it may have been done all the same)"
_FORBIDDEN = 403
_SERVER_ERROR = 500
_MAX_CHARS = 300
_MAX_DETAILS = 3


class Failure(Exception):
    """Carries an `Err` of our own making out through PyGithub."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.error)
        self.err = err


def error_from_response(
    status: int, body: object, headers: Mapping[str, str], *, what: str, write: bool, now: datetime
) -> Err:
    """An answer that is no success, as an `Err` of one line.

    Args:
        status: HTTP status.
        body: as GitHub's JSON, or whatever stood in its place.
        headers: of the answer, names in lower case.
        what: the verb and its object, as in "could not …".
        write: whether the request changes something public.
        now: to turn dates into seconds.

    """
    message = message_of(body)
    wait = limited_for_s(status, headers, message, now)
    told = f"{message}{_details(body)}" or f"HTTP {status}"
    kind: ErrKind = "transient" if wait is not None else _kind(status, message, write=write)
    advice = _ADVICE.get(status, "") if kind == "auth" else _MAYBE if kind == "unknown_outcome" else ""
    after = wait if wait is not None else retry_after_s(headers, now)
    return Err(shortened(f"could not {what}: {told}{advice}"), kind=kind, status=status, retry_after=after)


def error_from_transport(error: Exception, *, what: str, write: bool) -> Err:
    """A request without an answer: `httpx.HTTPError`, `httpx.InvalidURL` or `TimeoutError`."""
    if isinstance(error, Refused | httpx.UnsupportedProtocol | httpx.InvalidURL):
        return Err(shortened(f"could not {what}: {error}"), kind="invalid")
    if isinstance(error, httpx.LocalProtocolError):
        return Err(f"could not {what}: the request cannot be put into HTTP", kind="invalid")
    if isinstance(error, _NEVER_SENT):
        return Err(f"could not {what}: no connection to GitHub", kind="transient")
    late = isinstance(error, TimeoutError | httpx.TimeoutException)
    told = "GitHub did not answer in time" if late else "the connection to GitHub was lost"
    return _unheard(f"could not {what}: {told}", write=write)


def unreadable(what: str, *, write: bool) -> Err:
    """A success whose content makes no sense."""
    return _unheard(f"could not {what}: GitHub's answer could not be read", write=write)


def message_of(body: object) -> str:
    """GitHub's `message`; "" where the body is something else, HTML for example."""
    message = body.get("message") if isinstance(body, dict) else None
    return message.strip() if isinstance(message, str) else ""


def shortened(text: str) -> str:
    """On one line, and short enough for one."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_CHARS else f"{line[: _MAX_CHARS - 1]}…"


def _unheard(told: str, *, write: bool) -> Err:
    return Err(f"{told}{_MAYBE}", kind="unknown_outcome") if write else Err(told, kind="transient")


def _kind(status: int, message: str, *, write: bool) -> ErrKind:
    said = message.lower()
    if any(words in said for words in _SUSPENDED):
        return "fatal"
    if status == _FORBIDDEN:
        return "invalid" if any(words in said for words in _READ_ONLY) else "auth"
    if kind := _BY_STATUS.get(status):
        return kind
    if status >= _SERVER_ERROR:
        return "unknown_outcome" if write else "transient"
    return "invalid"


def _details(body: object) -> str:
    """What GitHub adds to "Validation Failed": which field, and why."""
    errors: Any = body.get("errors") if isinstance(body, dict) else None
    if isinstance(errors, str):
        return f" ({errors})"
    if not isinstance(errors, list):
        return ""
    told = [told for told in map(_detail, errors[:_MAX_DETAILS]) if told]
    return f" ({'; '.join(told)})" if told else ""


def _detail(error: object) -> str:
    if not isinstance(error, dict):
        return error if isinstance(error, str) else ""
    if message := message_of(error):
        return message
    return " ".join(str(error[name]) for name in ("field", "code") if error.get(name))
