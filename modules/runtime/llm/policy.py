"""What an error from the model service means, how long to wait before a retry, and what to change for it. Pure.

Nothing here knows the SDK or the network. The HTTP status and the exception's type count first; the words of the
message are the last resort, because a message may quote the prompt.
"""

import ipaddress
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from common.constants import LLM_ANSWER_TOKENS, LLM_LEAST_OUTPUT_TOKENS
from common.errors import ModelRefused, PromptTooLong, SoulError, Transient
from modules.runtime.llm.dialect import (
    CACHE_KEY,
    CALL_FIELD,
    EXTRA_FIELDS,
    FACTS,
    MARK,
    THOUGHT_FIELDS,
    has_marks,
    with_silences,
    with_stand_ins,
    without_field,
    without_marks,
)

LLM_MAX_RETRIES = 3
LLM_BASE_BACKOFF_MS = 5000
LLM_MAX_BACKOFF_MS = 60_000
LLM_RETRY_AFTER_MARGIN_MS = 1000
LLM_BACKOFF_JITTER = 0.3
LLM_CLASSIFIER_MIN_TOKENS = 256
LLM_THOUGHT_TOKENS = 2_000
"""What an answer may have beside its own length, because a model may think before it."""
OUTAGE_FIRST_S, OUTAGE_LONGEST_S = 30.0, 300.0
"""How long no call but the owner's leaves after one that met no sign of a service: at first, and at most."""

ErrorKind = Literal[
    "fatal",  # the service refuses for good: the owner must act
    "transient",  # worth another try
    "missed",  # what the model wrote was no call of a tool: another try may do better
    "too_long",  # the prompt does not fit the model
    "elsewhere",  # no model is behind the address: no request is at fault
    "this_request",  # the service refuses this request for good, and answers others
    "unknown",  # the same request would fail again
]

_FATAL_STATUS = {401, 402, 403}
ACCOUNT_STATUS = frozenset({401, 429})
"""A final refusal with one of these is about key or account. One with 402 may be about how much the request may cost,
and one with 403 about what it says.
"""
_TRANSIENT_STATUS = {408, 409, 424, 425, 429, 499}
_FATAL_CODES = {"invalid_api_key", "insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}
_MISSED_CODE = "tool_use_failed"
_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error"}
_TRANSIENT_TYPES = {"TimeoutError", "ConnectionError", "APIConnectionError", "TransportError", "JSONDecodeError"}
_FOREIGN_TYPES = {"NotAnAnswer"}
_TOLD_TYPE = "SaidError"
"""An error that a service sends in its stream, with the status of a success (LM Studio)."""
_UNSENT_TYPES = {"ConnectError", "ConnectTimeout", "PoolTimeout", "WriteError", "WriteTimeout"}
_TIMEOUT_TYPES = {"TimeoutError", "TimeoutException", "APITimeoutError"}
_NO_SIGN_TYPES = _TIMEOUT_TYPES | {"ConnectionError", "APIConnectionError", "TransportError"}
_PRIVATE_NAMES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_TOO_LONG = re.compile(
    r"context (length|size|window)|(prompt|input|request) (is )?too (long|large)|too many (input )?tokens"
    r"|input token count\b.{0,20} exceeds|maximum prompt length|`inputs` tokens \+ `max_new_tokens` must be",
    re.IGNORECASE,
)
_FATAL_WORDS = re.compile(
    r"\b401\b|\b402\b|\b403\b|\bunauthorized\b|\bforbidden\b|\binvalid[_ ]api[_ ]key\b|payment required"
    r"|\binsufficient[_ ](quota|credits?|funds|balance)\b|\bcheck your (plan and )?billing\b",
    re.IGNORECASE,
)
_TRANSIENT_WORDS = re.compile(
    r"\b(408|409|429|500|502|503|504|529)\b|rate[_ ]limit|too many requests|overloaded|service unavailable"
    r"|bad gateway|timed? ?out|etimedout|fetch failed|econnrefused|enotfound|econnreset"
    r"|connection (error|reset|closed)",
    re.IGNORECASE,
)
_LOADING = re.compile(r"\bmodel\b.{0,80}\bloading\b|\bloading model\b", re.IGNORECASE)
_NO_PICTURES = re.compile(
    r"\bimages?\b|image_url|\bpictures?\b|\bvision\b|multi-?modal|\bmodalit|content[ _](?:type|part)"
    r"|content\b.{0,40}\bstring\b",
    re.IGNORECASE,
)
_WORDS_ONLY = re.compile(r"content\b.{0,40}\bstring\b", re.IGNORECASE)
_ONE_PICTURE = re.compile(
    r"could not (?:process|decode|read)|(?:invalid|corrupt\w{0,10}|malformed|empty) (?:base64 )?(?:image|picture|data)"
    r"|too (?:large|big|small|many)|exceeds?\b|failed to (?:decode|load|process)"
    r"|\bpolic|\bsafety\b|violat|moderat",
    re.IGNORECASE,
)
_PICTURELESS_STATUS = {400, 404, 415, 422}
_SHY_STATUS = {500, 501}  # some local services answer so to what they do not support, and say that
_OPTIONAL = {name: name for name in ("temperature", "stream_options", CACHE_KEY)} | {EXTRA_FIELDS: FACTS}
"""The parameters that a request can do without, and the name by which a service refuses each."""
_SEAL = "thought_signature"
_THOUGHT = re.compile(rf"\b(?:{_SEAL}|{'|'.join(THOUGHT_FIELDS)})\b")
_MISSED = re.compile(r"\bmissing\b|\bmust be\b|\brequire", re.IGNORECASE)
_TURNS = re.compile(r"\bafter role\b|\broles must alternate\b", re.IGNORECASE)
_TOOL_CHOICE = re.compile(r"tool[_ ]?choice|\bforc(?:e|ed|ing) tool", re.IGNORECASE)
_MOVED_STATUS = {301, 302, 307, 308}
_GONE_STATUS = _MOVED_STATUS | {404, 405, 410}
_UNSURE_STATUS = {408, 409, 424, 499}
_TOO_LARGE_STATUS, _UNAVAILABLE_STATUS, _UNPAID_STATUS = 413, 503, 402
_UNREACHED_STATUS = {521, 523, 525, 526, 529, 530}
"""A service that is overloaded (529), and a proxy that could not connect to one (Cloudflare)."""
_LIMITS = ("max_tokens", "max_completion_tokens")
_LIMIT = re.compile(r"\b[0-9]{4,6}\b")
_CLIENT_ERROR = range(400, 500)
_SERVER_ERROR = range(500, 600)
_OUTAGE_STATUS = range(502, 600)
_HTTP_ERROR = range(400, 600)
TRIED_AGAIN = frozenset({"transient", "missed"})
"""The kinds of errors after which a call is tried again."""
_WORDS_READ = 200
_MESSAGE_SHOWN = 300
_REMEDIES = {
    401: "Check AI_GATEWAY_API_KEY in .env.",
    402: "Check the billing of the model service that AI_GATEWAY_API_KEY belongs to.",
    403: "Check that AI_GATEWAY_API_KEY may use the model named by AI_GATEWAY_MODEL.",
}
_MODERATION_REMEDY = "It answers others. If that happens often, choose a model or service without moderation in .env."
_OTHERS_REMEDIES = {402: "What is left at the model service pays only for smaller requests: add credit there."}
_ADDRESS_REMEDY = "Check AI_GATEWAY_BASE_URL in .env: is /v1 missing at its end?"
_REFUSED_REMEDY = "Check AI_GATEWAY_API_KEY in .env, and the billing of its model service."


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """What kind of error it is; `message` is one line."""

    kind: ErrorKind
    message: str
    status: int | None = None


def classify_llm_error(
    error: BaseException | str, status: int | None = None, code: str | None = None, said: str = ""
) -> CallVerdict:
    """Classify a failed call; `code` and `said` are the service's own words. A finished, empty answer is no failure."""
    message = shortened(said or str(error)) or type(error).__name__
    if status is None and code is not None and code.isdigit() and int(code) in _HTTP_ERROR:
        status = int(code)
    return CallVerdict(_kind(error, message, status, code), message, status)


def _kind(error: BaseException | str, message: str, status: int | None, code: str | None) -> ErrorKind:
    if code in _FATAL_CODES or status in _FATAL_STATUS:
        return "fatal"
    if status in _TRANSIENT_STATUS or status in _SERVER_ERROR:
        return "transient"
    if code == _MISSED_CODE and not _TOOL_CHOICE.search(message):
        return "missed"
    is_told = status is not None or type(error).__name__ == _TOLD_TYPE
    if status == _TOO_LARGE_STATUS or code in _TOO_LONG_CODES or (is_told and _TOO_LONG.search(message)):
        return "too_long"
    if status in _GONE_STATUS:
        return "elsewhere"
    return "unknown" if status is not None else _kind_by_words(error, message[:_WORDS_READ])


def _kind_by_words(error: BaseException | str, words: str) -> ErrorKind:
    types = {cls.__name__ for cls in type(error).__mro__}
    if _TRANSIENT_TYPES & types:
        return "transient"
    if _FOREIGN_TYPES & types:
        return "elsewhere"
    if _FATAL_WORDS.search(words):
        return "fatal"
    return "transient" if _TRANSIENT_WORDS.search(words) else "unknown"


def refusal(verdict: CallVerdict, model: str) -> SoulError:
    """Return the error to raise for a call that is not tried again."""
    status = f" (HTTP {verdict.status})" if verdict.status else ""
    if verdict.kind == "fatal":
        remedy = _REMEDIES.get(verdict.status or 0, _REFUSED_REMEDY)
        return ModelRefused(f"The model service refuses{status}: {verdict.message}", remedy=remedy)
    if verdict.kind == "this_request":
        remedy = _OTHERS_REMEDIES.get(verdict.status or 0, _MODERATION_REMEDY)
        return SoulError(f"The model service refuses this request{status}: {verdict.message}", remedy=remedy)
    if verdict.kind == "too_long":
        return PromptTooLong(
            f"The prompt is too long for {model}: {verdict.message}",
            remedy="Set CONTEXT_TOKENS to what it takes, or choose one with a larger context by AI_GATEWAY_MODEL.",
        )
    if verdict.kind == "elsewhere":
        remedy = f"Check AI_GATEWAY_MODEL in .env. {_ADDRESS_REMEDY}" if status else _ADDRESS_REMEDY
        return Transient(f"The model service gives no answer{status}: {verdict.message}", remedy=remedy)
    return SoulError(
        f"The model service rejects the request{status}: {verdict.message}",
        remedy=f"Check AI_GATEWAY_MODEL in .env. {_ADDRESS_REMEDY}",
    )


def was_refused(error: BaseException, status: int | None, message: str = "") -> bool:
    """Return whether the service certainly did nothing for this request: it refused at once, or was never reached.

    `status` is that of the HTTP response itself, None if there was none; `message` is what it said. A time-out, a
    conflict, or a failure of what the service relies on leaves it open, though their statuses are of the same class. A
    service that redirects did nothing either.
    """
    if status is not None:
        is_told = status in _CLIENT_ERROR and status not in _UNSURE_STATUS
        return is_told or status in _MOVED_STATUS | _UNREACHED_STATUS or _is_loading(status, message)
    return bool(_UNSENT_TYPES & _type_names(error))


def is_own_service(base_url: str) -> bool:
    """Return whether the service is on this machine or in a private network, where requests cost nothing."""
    host = urlsplit(base_url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_PRIVATE_NAMES))


def timed_out(error: BaseException | None) -> bool:
    """Return whether nothing came within the deadline."""
    return bool(_TIMEOUT_TYPES & _type_names(error))


def gives_no_sign(error: BaseException, verdict: CallVerdict) -> bool:
    """Return whether nothing shows that the service works: silence, no connection, or an error in place of it.

    One that fails at a single request (500), or loads its model, works.
    """
    if verdict.status is not None:
        return verdict.status in _OUTAGE_STATUS and not _is_loading(verdict.status, verdict.message)
    return bool(_NO_SIGN_TYPES & _type_names(error))


def _is_loading(status: int, message: str) -> bool:
    return status == _UNAVAILABLE_STATUS and _LOADING.search(message[:_WORDS_READ]) is not None


def _type_names(error: BaseException | None) -> set[str]:
    return {cls.__name__ for cause in (error, error and error.__cause__) for cls in type(cause).__mro__}


def answer_limit(wanted: int | None, room: int | None) -> int:
    """Return how many tokens an answer may have: what is `wanted` and some for thoughts, as far as there is `room`.

    If the room is not known, only a short answer is sure to fit.
    """
    if room is None:
        return max(wanted or LLM_LEAST_OUTPUT_TOKENS, LLM_CLASSIFIER_MIN_TOKENS)
    return max(min((wanted or LLM_ANSWER_TOKENS) + LLM_THOUGHT_TOKENS, room), LLM_LEAST_OUTPUT_TOKENS)


def calculate_backoff(
    attempt: int, retry_after_ms: float | None = None, rng: Callable[[], float] = random.random
) -> int:
    """Return the milliseconds to wait after attempt number `attempt` (from 0); the service's own hint goes first."""
    if retry_after_ms is not None:
        return int(min(retry_after_ms + LLM_RETRY_AFTER_MARGIN_MS, LLM_MAX_BACKOFF_MS))
    grown: float = LLM_BASE_BACKOFF_MS * 2**attempt * (1 + rng() * LLM_BACKOFF_JITTER)
    return int(min(grown, LLM_MAX_BACKOFF_MS))


def retry_after_ms(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait in milliseconds that `retry-after-ms` or `retry-after` (seconds, or a date) asks for, or None."""
    for name, unit in (("retry-after-ms", 1.0), ("retry-after", 1000.0)):
        value = headers.get(name, "")
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            pass
    try:
        return max(0.0, (parsedate_to_datetime(headers.get("retry-after", "")) - now).total_seconds() * 1000)
    except (ValueError, TypeError):
        return None


def adapt_request(request: Mapping[str, Any], verdict: CallVerdict) -> dict[str, Any] | None:
    """Return the request without what the service refused by name, or with what it missed; None if nothing changes."""
    if verdict.status == _UNPAID_STATUS:
        return _with_lower_limit(request, verdict.message)
    if verdict.kind != "unknown" and verdict.status not in _GONE_STATUS:
        return None
    if named := _THOUGHT.search(verdict.message):
        return _with_other_thoughts(request, named[0], verdict.message)
    if _TURNS.search(verdict.message):
        return with_silences(request)
    return _without_parameter(request, verdict)


def _without_parameter(request: Mapping[str, Any], verdict: CallVerdict) -> dict[str, Any] | None:
    if "max_completion_tokens" in verdict.message and "max_tokens" in request:
        changed = {key: value for key, value in request.items() if key != "max_tokens"}
        return changed | {"max_completion_tokens": request["max_tokens"]}
    if "tool_choice" in request and _TOOL_CHOICE.search(verdict.message):
        unforced = {key: value for key, value in request.items() if key != "tool_choice"}
        return unforced if request["tool_choice"] == "auto" else unforced | {"tool_choice": "auto"}
    for parameter, name in _OPTIONAL.items():
        if parameter in request and name in verdict.message:
            return {key: value for key, value in request.items() if key != parameter}
    if has_marks(request) and (MARK in verdict.message or _WORDS_ONLY.search(verdict.message)):
        return without_marks(request)
    return _with_lower_limit(request, verdict.message)


def _with_lower_limit(request: Mapping[str, Any], message: str) -> dict[str, Any] | None:
    """Return the request with the longest answer that a refusal allows, or with the least; None if nothing changes."""
    name = next((one for one in _LIMITS if one in request), "")
    if not name or not any(one in message for one in _LIMITS):
        return None
    told = (int(one) for one in _LIMIT.findall(message.replace(",", "")))
    lower = max((one for one in (*told, LLM_LEAST_OUTPUT_TOKENS) if one < request[name]), default=0)
    return {**request, name: lower} if lower else None


def _with_other_thoughts(request: Mapping[str, Any], named: str, message: str) -> dict[str, Any] | None:
    if named == _SEAL:
        return with_stand_ins(request, CALL_FIELD)
    return with_stand_ins(request, named) if _MISSED.search(message) else without_field(request, named)


def refuses_pictures(verdict: CallVerdict) -> bool:
    """Return whether the service says that it accepts no pictures, or not this one."""
    if _NO_PICTURES.search(verdict.message) is None:
        return False
    return verdict.status in _PICTURELESS_STATUS or (verdict.status in _SHY_STATUS and "support" in verdict.message)


def refuses_one_picture(verdict: CallVerdict) -> bool:
    """Return whether only this picture is refused, not all."""
    return _ONE_PICTURE.search(verdict.message) is not None


def shortened(text: str) -> str:
    """Return `text` without line breaks, short enough to show."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MESSAGE_SHOWN else flat[:_MESSAGE_SHOWN] + "…"
