"""What the refusals and unreadable answers of GitHub mean, as `Err` of one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from adapters.github.rate_limit import limited_for_s
from adapters.web.failures import kind_of_status, shortened, transport_error, unanswered
from adapters.web.rate_limit import retry_after_s
from common.result import Err, ErrKind

SERVICE = "GitHub"
REDIRECTS = frozenset({301, 302, 307, 308})
_BY_STATUS: dict[int, ErrKind] = {409: "conflict", 451: "not_found"}
_SUSPENDED = ("account was suspended", "account has been suspended", "account is suspended")
_READ_ONLY = ("archived", "is disabled", "are disabled", "is locked", "blocked")
_STANDS_ALREADY = ("already exists", "already_exists", '"sha" wasn\'t supplied')
_REF_IS_GONE = "reference does not exist"
_ONLY_NOW = ("submitted too quickly", "base branch was modified")
"""What GitHub takes a little later, told under the statuses of refusals: more than it lets one write in a while, and a
merge while something else is merged."""
_ADVICE = {
    401: " (GitHub does not accept AGENT_GITHUB_TOKEN)",
    403: " (the token may not do this: check its permissions, and whether the account may write there)",
}
_MAYBE = " (it may have been done all the same)"
_FORBIDDEN = 403
_UNPROCESSABLE = 422
_MAX_DETAILS = 3


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
    details = _details(body)
    told = f"{message} ({details})" if message and details else message or details or f"HTTP {status}"
    kind: ErrKind = "transient" if wait is not None else _kind(status, told, write=write)
    advice = _ADVICE.get(status, "") if kind == "auth" else _MAYBE if kind == "unknown_outcome" else ""
    after = wait if wait is not None else retry_after_s(headers, now)
    return Err(shortened(f"could not {what}: {told}{advice}"), kind=kind, status=status, retry_after=after)


def error_from_transport(error: Exception, *, what: str, write: bool) -> Err:
    """A request without an answer: `httpx.HTTPError`, `httpx.InvalidURL` or `TimeoutError`."""
    return _with_doubt(transport_error(error, what=f"could not {what}", service=SERVICE, write=write))


def moved(what: str, status: int) -> Err:
    """What stands somewhere else now than where it was asked for."""
    return Err(f"could not {what}: it has moved to another place", kind="not_found", status=status)


def has_moved(err: Err) -> bool:
    """Whether something was not found because it stands somewhere else now."""
    return err.kind == "not_found" and err.status in REDIRECTS


def unreadable(what: str, *, write: bool) -> Err:
    """A success whose content makes no sense."""
    return _with_doubt(Err(f"could not {what}: GitHub's answer could not be read", kind=unanswered(write=write)))


def message_of(body: object) -> str:
    """GitHub's `message`; "" where the body is something else, HTML for example."""
    message = body.get("message") if isinstance(body, dict) else None
    return message.strip() if isinstance(message, str) else ""


def _with_doubt(err: Err) -> Err:
    return replace(err, error=f"{err.error}{_MAYBE}") if err.kind == "unknown_outcome" else err


def _kind(status: int, told: str, *, write: bool) -> ErrKind:
    said = told.lower()
    if any(words in said for words in _SUSPENDED):
        return "fatal"
    if any(words in said for words in _ONLY_NOW):
        return "transient"
    if status == _FORBIDDEN:
        return "invalid" if any(words in said for words in _READ_ONLY) else "auth"
    if status == _UNPROCESSABLE and _REF_IS_GONE in said:
        return "not_found"
    if status == _UNPROCESSABLE and any(words in said for words in _STANDS_ALREADY):
        return "conflict"
    return kind_of_status(status, write=write, own=_BY_STATUS)


def _details(body: object) -> str:
    """What GitHub adds to "Validation Failed": which field, and why. GraphQL answers say nothing else."""
    errors: Any = body.get("errors") if isinstance(body, dict) else None
    if isinstance(errors, str):
        return errors
    if not isinstance(errors, list):
        return ""
    return "; ".join(filter(None, map(_detail, errors[:_MAX_DETAILS])))


def _detail(error: object) -> str:
    if not isinstance(error, dict):
        return error if isinstance(error, str) else ""
    if message := message_of(error):
        return message
    return " ".join(str(error[name]) for name in ("field", "code") if error.get(name))
