"""What Bluesky's refusals and unreadable answers mean, as `Err`. A page that is no JSON says nothing about a write."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import httpx

from adapters.atproto.sdk import AtProtocolError, RequestErrorBase
from adapters.atproto.types import NotAllowedErr, ServiceErr, UnreadableErr
from adapters.web.failures import Failure, kind_of_status, transport_error, unanswered
from adapters.web.rate_limit import retry_after_s
from adapters.web.transport import TooLarge
from common.result import Err, ErrKind

SERVICE = "Bluesky"
_TOKEN_REFUSED = {"ExpiredToken", "InvalidToken"}
# NOTE(self): what an app password may not do it says with the name of a bad token; a new token may do no more.
_NOT_ALLOWED = ("bad token scope", "bad token method")
_BY_NAME: dict[str, ErrKind] = {
    "AccountTakedown": "fatal",
    "AccountSuspended": "fatal",
    "AccountDeactivated": "fatal",
    "ExpiredToken": "auth",
    "InvalidToken": "auth",
    "AuthMissing": "auth",
    "AuthenticationRequired": "auth",
    "AuthFactorTokenRequired": "auth",
    "RecordNotFound": "not_found",
    "RepoNotFound": "not_found",
    "HandleNotFound": "not_found",
    "NotFound": "not_found",
}
_BY_STATUS: dict[int, ErrKind] = {409: "transient"}
_NOT_THERE = ("not found", "could not find", "unable to resolve handle")
_MAX_MESSAGE_CHARS = 300


class UnreadableAnswer(ValueError):
    """An answer that is no JSON; `cursor` of the next page, as far as it could be found."""

    def __init__(self, cursor: str) -> None:
        super().__init__("the answer is no JSON")
        self.cursor = cursor


# What a call raises for what the world did: the SDK, its HTTP client, its JSON parser, and our own gate.
CALL_ERRORS: tuple[type[Exception], ...] = (AtProtocolError, httpx.HTTPError, ValueError, Failure)


def token_refused(error: RequestErrorBase) -> bool:
    """Whether a new access token may help: 401, or the 400 by which Bluesky says that a token has expired.

    A server also answers 401 for an account that was taken down or deactivated; the renewal tells where it lives now.
    """
    status, (name, message) = _status(error), _body(error)
    if _is_not_allowed(message):
        return False
    return status == httpx.codes.UNAUTHORIZED or (status == httpx.codes.BAD_REQUEST and name in _TOKEN_REFUSED)


def response_headers(error: RequestErrorBase) -> Mapping[str, str]:
    """The headers of a refused request, names in lower case; empty when no answer came."""
    headers: Mapping[str, str] = error.response.headers if error.response else {}
    return headers


def to_err(error: Exception, *, what: str, write: bool, now: datetime) -> Err:
    """Map one of `CALL_ERRORS`.

    Args:
        error: what was raised.
        what: the method that was called, for messages where the service gave none.
        write: whether the call changes something public.
        now: to turn a `retry-after` date into seconds.

    """
    if isinstance(error, Failure):
        return error.err
    if isinstance(error, RequestErrorBase) and error.response is not None:
        return _answered(error, what=what, write=write, now=now)
    cause = error.__cause__ or error
    if isinstance(error, RequestErrorBase | httpx.HTTPError) and not isinstance(error, TooLarge):
        return transport_error(cause, what=what, service=SERVICE, write=write)
    told = "the answer is too large" if isinstance(error, TooLarge) else "the answer could not be read"
    cursor = error.cursor if isinstance(error, UnreadableAnswer) else ""
    return UnreadableErr(f"{what}: {told}", kind=unanswered(write=write), cursor=cursor)


def _answered(error: RequestErrorBase, *, what: str, write: bool, now: datetime) -> Err:
    status, (name, message) = _status(error), _body(error)
    kind = _BY_NAME.get(name) or kind_of_status(status, write=write, own=_BY_STATUS)
    if kind == "invalid" and any(phrase in message.lower() for phrase in _NOT_THERE):
        kind = "not_found"
    if kind == "not_found" and _is_page(error):
        kind = unanswered(write=write)  # so speaks a proxy whose server is down
    told = f"the app password does not allow {what}" if _is_not_allowed(message) else message or name
    refusal = NotAllowedErr if _is_not_allowed(message) else ServiceErr
    return refusal(
        error=told[:_MAX_MESSAGE_CHARS] or f"{what}: {status}",
        kind=kind,
        status=status,
        retry_after=retry_after_s(response_headers(error), now),
        name=name,
    )


def _is_not_allowed(message: str) -> bool:
    return message.lower().startswith(_NOT_ALLOWED)


def _status(error: RequestErrorBase) -> int:
    return int(error.response.status_code) if error.response else 0


def _is_page(error: RequestErrorBase) -> bool:
    """Whether the body is no JSON."""
    content: Any = error.response.content if error.response else None
    return content is None or isinstance(content, bytes)


def _body(error: RequestErrorBase) -> tuple[str, str]:
    """The error name and message of the JSON body; empty where the body is something else, HTML for example."""
    if _is_page(error):
        return "", ""
    content: Any = error.response.content if error.response else None
    name, message = getattr(content, "error", None), getattr(content, "message", None)
    return name if isinstance(name, str) else "", message if isinstance(message, str) else ""
