"""How GitHub tells the requests that are left, and how long it wants to be left alone.

The headers are the truth, as one token may serve several SOULs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from adapters.web.rate_limit import RateLimitRules, RateLimitStatus, retry_after_s

GITHUB_LOW_BUDGET_THRESHOLD = 100
LOOP_BUDGET_FLOOR = 200
GITHUB_DEFAULT_RETRY_AFTER_S = 60.0

_TOO_MANY = 429
MAY_BE_HASTE = frozenset({403, _TOO_MANY})
"""The statuses by which GitHub says that we were too fast, among other things."""
_LIMIT_WORDS = ("rate limit", "abuse detection")


def low_mark(limit: int) -> int:
    """Fewer requests left than this are kept for others; without a token, GitHub's own `limit` is lower than ours."""
    return min(GITHUB_LOW_BUDGET_THRESHOLD, limit // 10)


def enough_for_loops(status: RateLimitStatus) -> bool:
    """Whether a loop may begin its round: 200 requests are left, or a fifth of a limit that is lower than ours."""
    return status.remaining >= min(LOOP_BUDGET_FLOOR, status.limit // 5)


RATE_LIMIT = RateLimitRules(service="GitHub", prefix="x-ratelimit-", initial=5000, reserve=low_mark, resource="core")


def limited_for_s(status: int, headers: Mapping[str, str], message: str, now: datetime) -> float | None:
    """Seconds to wait before another request after an answer that says we were too fast; None if it does not say so.

    Both of GitHub's limits are meant: the hour's, and the secondary ones, which answer 403 while requests are left.

    Args:
        status: of the answer.
        headers: of the answer, names in lower case.
        message: GitHub's own word for it.
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
