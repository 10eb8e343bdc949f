"""Proves how errors are judged, how long is waited, and what is changed before another try."""

import json
from datetime import UTC, datetime
from email.utils import format_datetime

import httpx
import pytest

from modules.runtime.llm.dialect import truncate_tool_result
from modules.runtime.llm.policy import (
    CallVerdict,
    adapt_request,
    calculate_backoff,
    classify_llm_error,
    is_own_service,
    retry_after_ms,
    shortened,
    was_refused,
)
from modules.runtime.llm.stream import BrokenStream

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


class APIConnectionError(Exception):
    """Named as the SDK names it."""


@pytest.mark.parametrize(
    ("error", "status", "code", "kind"),
    [
        ("bad key", 401, None, "fatal"),
        ("no money", 402, None, "fatal"),
        ("not for you", 403, None, "fatal"),
        ("you exceeded your quota", 429, "insufficient_quota", "fatal"),
        ("key", None, "invalid_api_key", "fatal"),
        ("slow down", 429, None, "transient"),
        *[("later", status, None, "transient") for status in (408, 409, 500, 502, 503, 504, 520, 529)],
        ("overloaded", None, "503", "transient"),
        ("no such model", 404, None, "unknown"),
        ("401 unauthorized, the prompt says", 400, None, "unknown"),
        ("the request exceeds the available context size (4096 tokens)", 400, "400", "too_long"),
        ("Input is too long", 400, None, "too_long"),
        ("request too large", 413, None, "too_long"),
        ("whatever", 400, "context_length_exceeded", "too_long"),
        (TimeoutError(), None, None, "transient"),
        (ConnectionResetError("peer"), None, None, "transient"),
        (BrokenStream("in the middle"), None, None, "transient"),
        (APIConnectionError("x"), None, None, "transient"),
        (json.JSONDecodeError("bad", "{", 1), None, None, "transient"),
        ("request used 4013 tokens", None, None, "unknown"),
        ("HTTP 401 from upstream", None, None, "fatal"),
        ("Error 503: try later", None, None, "transient"),
        ("Rate limit reached", None, None, "transient"),
        ("x" * 300 + " 401 unauthorized", None, None, "unknown"),
        ("odd", None, "odd_code", "unknown"),
    ],
)
def test_an_error_is_judged_by_status_and_type_and_only_then_by_whole_words(
    error: BaseException | str, status: int | None, code: str | None, kind: str
) -> None:
    assert classify_llm_error(error, status, code).kind == kind


def test_a_verdict_is_one_line_even_for_an_error_without_words() -> None:
    assert classify_llm_error(TimeoutError()).message == "TimeoutError"
    assert classify_llm_error("<html>\n  <b>502</b>\n</html>", 502).message == "<html> <b>502</b> </html>"
    assert len(shortened("y" * 1000)) == 301


@pytest.mark.parametrize(
    ("attempt", "hint", "wait"),
    [(0, None, 5000), (1, None, 10_000), (5, None, 60_000), (0, 0, 1000), (2, 120_000, 60_000)],
)
def test_waits_double_up_to_a_minute_and_a_hint_goes_first(attempt: int, hint: float | None, wait: int) -> None:
    assert calculate_backoff(attempt, hint, lambda: 0.0) == wait


def test_jitter_adds_up_to_thirty_percent() -> None:
    assert calculate_backoff(0, None, lambda: 1.0) == 6500


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2000),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 250),
        ({"retry-after": format_datetime(datetime(2026, 1, 5, 12, 0, 30, tzinfo=UTC), usegmt=True)}, 30_000),
        ({"retry-after": "soon"}, None),
    ],
)
def test_the_wait_a_service_asks_for_is_read_from_its_headers(headers: dict[str, str], wait: float | None) -> None:
    assert retry_after_ms(headers, NOW) == wait


REQUEST = {"model": "m", "max_tokens": 9, "temperature": 0.0, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    ("message", "gone", "new"),
    [
        ("Unsupported value: 'temperature' does not support 0", "temperature", {}),
        ("'max_tokens' is not supported, use 'max_completion_tokens'", "max_tokens", {"max_completion_tokens": 9}),
        ("unknown field stream_options", "stream_options", {}),
    ],
)
def test_a_parameter_refused_by_name_is_left_out_or_renamed(message: str, gone: str, new: dict[str, int]) -> None:
    adapted = adapt_request(REQUEST, CallVerdict("unknown", message, 400))
    assert adapted == {key: value for key, value in REQUEST.items() if key != gone} | new
    assert adapt_request(adapted, CallVerdict("unknown", message, 400)) is None


@pytest.mark.parametrize(
    "verdict",
    [CallVerdict("unknown", "no such model", 404), CallVerdict("transient", "temperature of the server room", 503)],
)
def test_other_errors_change_nothing(verdict: CallVerdict) -> None:
    assert adapt_request(REQUEST, verdict) is None


def test_a_long_tool_result_is_cut_with_a_notice_and_a_short_one_is_left_alone() -> None:
    assert truncate_tool_result("abcd", 4) == "abcd"
    cut = truncate_tool_result("abcdefgh", 4)
    assert cut.startswith("abc\n\n[TRUNCATED: 8 characters")
    assert cut.endswith("]\n\nh")


@pytest.mark.parametrize(
    ("status", "refused"),
    [(400, True), (401, True), (404, True), (422, True), (429, True), (302, True)]
    + [(status, False) for status in (200, 303, 408, 409, 424, 499, 500, 502, 503, 529)],
)
def test_only_a_refusal_at_once_is_sure_to_have_cost_nothing(status: int, *, refused: bool) -> None:
    assert was_refused(Exception("no"), status) is refused


@pytest.mark.parametrize(
    ("cause", "refused"),
    [
        (httpx.ConnectError("nobody there"), True),
        (httpx.ConnectTimeout("nobody there"), True),
        (httpx.PoolTimeout("no free connection"), True),
        (httpx.ReadTimeout("slow"), False),
        (httpx.RemoteProtocolError("cut off"), False),
        (TimeoutError("slow"), False),
        (BrokenStream("half an answer"), False),
    ],
)
def test_a_request_that_never_left_cost_nothing_and_one_that_may_have_arrived_might(
    cause: Exception, *, refused: bool
) -> None:
    wrapped = APIConnectionError("Connection error.")
    wrapped.__cause__ = cause
    assert was_refused(wrapped, None) is refused
    assert was_refused(cause, None) is refused


@pytest.mark.parametrize(
    ("base_url", "own"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://localhost:1234/v1", True),
        ("http://attic.local/v1", True),
        ("https://models.example/v1", False),
        ("https://local.example/v1", False),
        ("", False),
    ],
)
def test_a_service_of_the_owners_own_bills_nobody(base_url: str, own: bool) -> None:  # noqa: FBT001
    assert is_own_service(base_url) is own
