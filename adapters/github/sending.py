"""Sends every request to GitHub, after its gate, to one origin and under a deadline, and interprets its errors.

Each request passes the budget, the spacing and, for a write, the check whether writes are blocked; then it is sent. A
read that hit a rate limit, or got no sound answer, is sent once more; a write never is, because it may have happened. A
read whose answer is cached asks only for changes.
"""

import asyncio
import json
import logging
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import httpx

from adapters.web.client import Failure, kind_of_status, origin_of, shortened, transport_error, unanswered
from adapters.web.spacing import Permit, RateLimitRules, RateLimitStatus, RequestGate, retry_after_s
from common.clock import Clock
from common.lenient_json import cut_nesting
from common.result import Err, ErrKind
from common.version import __version__

MOST_ANSWERS = 300
MOST_CHARS = 8_000_000
"""The most characters that are cached in all; one answer may have an eighth of them."""
_OK = 200
_UNCHANGED = 304
_USUAL_PAGE = 30
_CONDITIONS = frozenset({"if-none-match", "if-modified-since"})


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer; header names are in lower case."""

    status: int
    headers: dict[str, str]
    text: str


class KeptAnswers:
    """The newest answers to reads, by URL; the least recently used ones are dropped first."""

    def __init__(self, *, most_answers: int = MOST_ANSWERS, most_chars: int = MOST_CHARS) -> None:
        self._most_answers = most_answers
        self._most_chars = most_chars
        self._answers: OrderedDict[str, KeptAnswer] = OrderedDict()
        self._chars = 0

    def of(self, url: str, headers: Mapping[str, str]) -> KeptAnswer | None:
        """Return the cached answer to a read; None if there is none, or the request has its own condition."""
        return None if _CONDITIONS & {name.lower() for name in headers} else self._answers.get(url)

    def resolve(self, url: str, answer: KeptAnswer, kept: KeptAnswer | None) -> KeptAnswer:
        """Return the answer to use, and cache it; `kept` is the answer that `of` returned before the request left.

        If GitHub says that `kept` is unchanged, that is returned, with the new headers.
        """
        if answer.status == _UNCHANGED:
            if kept is None:
                return answer
            answer = KeptAnswer(kept.status, {**kept.headers, **answer.headers}, kept.text)
        self._forget(url)
        if answer.status == _OK and answer.headers.get("etag") and not _is_full_last_page(url, answer):
            self._keep(url, answer)
        return answer

    def _keep(self, url: str, answer: KeptAnswer) -> None:
        if len(answer.text) > self._most_chars // 8:
            return
        self._answers[url] = answer
        self._chars += len(answer.text)
        while len(self._answers) > self._most_answers or self._chars > self._most_chars:
            _, oldest = self._answers.popitem(last=False)
            self._chars -= len(oldest.text)

    def _forget(self, url: str) -> None:
        if gone := self._answers.pop(url, None):
            self._chars -= len(gone.text)


def has_next(headers: Mapping[str, str]) -> bool:
    """Return whether the `Link` header of an answer names a next page."""
    return 'rel="next"' in headers.get("link", "")


def _is_full_last_page(url: str, answer: KeptAnswer) -> bool:
    if has_next(answer.headers):
        return False
    try:
        told = json.loads(answer.text)
    except ValueError:
        return True
    if not isinstance(told, list):
        return False
    asked = httpx.URL(url).params.get("per_page", "")
    return len(told) >= (int(asked) if asked.isdecimal() else _USUAL_PAGE)


GITHUB_LOW_BUDGET_THRESHOLD = 100
LOOP_BUDGET_FLOOR = 200
GITHUB_DEFAULT_RETRY_AFTER_S = 60.0

_TOO_MANY = 429
MAY_BE_HASTE = frozenset({403, _TOO_MANY})
"""The statuses by which GitHub reports, among other things, that we were too fast."""
_LIMIT_WORDS = ("rate limit", "abuse detection")


def low_mark(limit: int) -> int:
    """Return the reserve, below which no requests are sent; without a token GitHub's own `limit` is lower."""
    return min(GITHUB_LOW_BUDGET_THRESHOLD, limit // 10)


def enough_for_loops(status: RateLimitStatus) -> bool:
    """Return whether a loop may start a round: 200 requests are left, or a fifth of a limit that is lower."""
    return status.remaining >= min(LOOP_BUDGET_FLOOR, status.limit // 5)


RATE_LIMIT = RateLimitRules(service="GitHub", prefix="x-ratelimit-", initial=5000, reserve=low_mark, resource="core")


def limited_for_s(status: int, headers: Mapping[str, str], message: str, now: datetime) -> float | None:
    """Return the seconds to wait after an answer that says we were too fast; None if it does not say so.

    This covers GitHub's hourly limit and the secondary ones, which answer 403 while requests are left.

    Args:
        status: the status of the answer.
        headers: its headers, names in lower case.
        message: GitHub's message.
        now: to turn dates into seconds.

    """
    if status not in MAY_BE_HASTE:
        return None
    asked = retry_after_s(headers, now)
    if asked is not None:
        return asked
    if headers.get("x-ratelimit-remaining", "").strip() == "0":
        reset = headers.get("x-ratelimit-reset", "").strip()
        return max(0.0, int(reset) - now.timestamp()) if reset.isdecimal() else GITHUB_DEFAULT_RETRY_AFTER_S
    said = any(words in message.lower() for words in _LIMIT_WORDS)
    return GITHUB_DEFAULT_RETRY_AFTER_S if status == _TOO_MANY or said else None


SERVICE = "GitHub"
REDIRECTS = frozenset({301, 302, 307, 308})
_BY_STATUS: dict[int, ErrKind] = {409: "conflict", 451: "not_found"}
_SUSPENDED = ("account was suspended", "account has been suspended", "account is suspended")
_READ_ONLY = ("archived", "is disabled", "are disabled", "is locked", "blocked")
_STANDS_ALREADY = ("already exists", "already_exists", '"sha" wasn\'t supplied')
_REF_IS_GONE = "reference does not exist"
_ONLY_NOW = ("submitted too quickly", "base branch was modified")
"""Errors that soon pass, sent with the status of refusals: too many writes in a while, or another merge at the
same time.
"""
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
    """Return the `Err` for an answer that is not a success, in one line.

    Args:
        status: the HTTP status.
        body: GitHub's JSON, or whatever came instead.
        headers: its headers, names in lower case.
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
    """Return the `Err` for a request without an answer: `httpx.HTTPError`, `httpx.InvalidURL` or `TimeoutError`."""
    return _with_doubt(transport_error(error, what=f"could not {what}", service=SERVICE, write=write))


def moved(what: str, status: int) -> Err:
    """Return the `Err` for something that has moved to another address."""
    return Err(f"could not {what}: it has moved to another place", kind="not_found", status=status)


def has_moved(err: Err) -> bool:
    """Return whether something was not found because it has moved to another address."""
    return err.kind == "not_found" and err.status in REDIRECTS


def unreadable(what: str, *, write: bool) -> Err:
    """Return the `Err` for a success whose content could not be read."""
    return _with_doubt(Err(f"could not {what}: GitHub's answer could not be read", kind=unanswered(write=write)))


def message_of(body: object) -> str:
    """Return GitHub's `message`; "" if the body is something else, such as HTML."""
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
    """Return what GitHub adds to "Validation Failed": which field, and why. GraphQL errors have only this."""
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


GITHUB_RETRY_CEILING_S = 300.0

API_VERSION = "2022-11-28"
USER_AGENT = f"py-general-agent/{__version__}"
CONNECT_TIMEOUT_S = 10.0
_ACCEPT = "application/vnd.github+json"
_MAX_REDIRECTS = 3
_IN_REPOSITORY = re.compile(r"/repos/[^/?]{1,100}/[^/?]{1,100}/")
_PAUSE_BEFORE_REPEAT_S = 1.0
_ACCEPTED = 202
_SERVER_ERROR = 500
_READS = {"GET", "HEAD"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request; `url` is absolute, `what` says in words what it is for."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: str | None
    what: str

    @property
    def is_write(self) -> bool:
        return self.method not in _READS


class RequestSender:
    """Sends to the one origin of `api_url`, each request through `gate`."""

    def __init__(
        self,
        *,
        api_url: str,
        transport: httpx.AsyncBaseTransport,
        clock: Clock,
        timeout_s: float,
        gate: RequestGate,
    ) -> None:
        self._origin = origin_of(httpx.URL(api_url))
        self._clock = clock
        self._gate = gate
        connect_s = min(timeout_s, CONNECT_TIMEOUT_S)
        self._deadline_s = connect_s + timeout_s
        self._kept = KeptAnswers()
        self._client = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(timeout_s, connect=connect_s),
            follow_redirects=False,
            trust_env=False,
        )

    async def send(self, outgoing: OutgoingRequest, permit: Permit) -> KeptAnswer:
        """Send a request, follow redirects within the origin, and return the answer, whatever its status.

        If a repository has moved, only the repository itself may be read at its new address; nothing in it is read, and
        nothing is written.

        Raises:
            Failure: the gate is closed, no answer came, or the answer points elsewhere.

        """
        for _ in range(_MAX_REDIRECTS + 1):
            answer = await self._send_or_repeat(outgoing, permit)
            if answer.status == _ACCEPTED and not outgoing.is_write:
                raise Failure(Err(f"could not {outgoing.what}: GitHub is still working on it", "transient", _ACCEPTED))
            target = answer.headers.get("location", "")
            if answer.status not in REDIRECTS or not target:
                return answer
            url = httpx.URL(outgoing.url).join(target)
            if origin_of(url) == self._origin and (outgoing.is_write or _IN_REPOSITORY.search(outgoing.url)):
                # NOTE(self): rights and rules were checked for the requested place, not for the target of the redirect.
                raise Failure(moved(outgoing.what, answer.status))
            outgoing = replace(outgoing, url=str(url))
        raise Failure(Err(f"could not {outgoing.what}: GitHub redirects in circles", kind="invalid"))

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _send_or_repeat(self, outgoing: OutgoingRequest, permit: Permit) -> KeptAnswer:
        self._gate.check_budget()
        try:
            answer = await self._send_spaced(outgoing, permit)
        except Failure as failure:
            if outgoing.is_write or failure.err.kind != "transient":
                raise
            await self._clock.sleep(_PAUSE_BEFORE_REPEAT_S)
            return await self._send_spaced(outgoing, permit)
        pause = self._pause_after(answer)
        if pause is None or outgoing.is_write or pause > GITHUB_RETRY_CEILING_S:
            return answer
        logger.info("GitHub, %s: HTTP %d, once more in %.0f s", outgoing.what, answer.status, pause)
        await self._clock.sleep(pause)
        again = await self._send_spaced(outgoing, permit)
        self._pause_after(again)
        return again

    async def _send_spaced(self, outgoing: OutgoingRequest, permit: Permit) -> KeptAnswer:
        if origin_of(httpx.URL(outgoing.url)) != self._origin:
            raise Failure(Err(f"could not {outgoing.what}: GitHub points to another server", kind="invalid"))
        await self._gate.admit(permit, write=outgoing.is_write)
        answer = await self._exchange(outgoing)
        self._gate.budget.observe(answer.headers)
        return answer

    async def _exchange(self, outgoing: OutgoingRequest) -> KeptAnswer:
        headers = {**outgoing.headers, "Accept": _ACCEPT}
        kept = None if outgoing.is_write else self._kept.of(outgoing.url, headers)
        if kept:
            headers["If-None-Match"] = kept.headers["etag"]
        try:
            async with asyncio.timeout(self._deadline_s):
                response = await self._client.request(
                    outgoing.method, outgoing.url, headers=headers, content=outgoing.content
                )
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            self._gate.report(None)
            raise Failure(error_from_transport(error, what=outgoing.what, write=outgoing.is_write)) from error
        self._gate.report(response.status_code)
        told = {name.lower(): value for name, value in response.headers.items()}
        answer = KeptAnswer(response.status_code, told, _text_of(response))
        return answer if outgoing.is_write else self._kept.resolve(outgoing.url, answer, kept)

    def _pause_after(self, answer: KeptAnswer) -> float | None:
        """Return the seconds to wait before a read is repeated, or None. At a rate limit, hold all requests."""
        if answer.status in MAY_BE_HASTE:
            wait = limited_for_s(answer.status, answer.headers, _message(answer), self._clock.now())
            if wait is not None:
                self._gate.budget.hold(wait)
            return wait
        return _PAUSE_BEFORE_REPEAT_S if answer.status >= _SERVER_ERROR else None


def _text_of(response: httpx.Response) -> str:
    """Return the body; JSON that is nested too deeply for a parser becomes null."""
    content = cut_nesting(response.content) if "json" in response.headers.get("content-type", "") else response.content
    return content.decode(response.charset_encoding or "utf-8", errors="replace")


def _message(answer: KeptAnswer) -> str:
    try:
        return message_of(json.loads(answer.text))
    except ValueError:
        return ""
