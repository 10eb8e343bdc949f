"""What a request meets in place of its answer, or after it, when a fault is armed."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from common.clock import Clock
from town.faults import bad_gateway
from town.github.faults import DOING, Fault
from town.github.values import Refusal
from town.github.wire import refusal_response
from town.serving import drop, until_gone

SECONDARY = (
    "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. "
    "Please retry your request again later."
)
_PLAIN = {
    "server_error": (500, "Server Error"),
    "unavailable": (503, "No server is currently available to service your request."),
    "rate_limited": (403, "API rate limit exceeded for user ID 1."),
    "secondary_limit": (403, SECONDARY),
    "too_many": (429, SECONDARY),
    "suspended": (403, "Sorry. Your account was suspended."),
    "elsewhere": (301, "Moved Permanently"),
}
_ELSEWHERE = "http://elsewhere.example/"


def broken(fault: Fault, request: Request, clock: Clock) -> Response | None:
    """The answer in place of doing what was asked; None for a fault that strikes only afterwards."""
    if fault.kind in DOING:
        return None
    if fault.kind == "lost_request":
        return drop(request)
    if fault.kind == "bad_gateway":
        return bad_gateway()
    answer = refusal_response(Refusal(*_PLAIN[fault.kind]))
    match fault.kind:
        case "rate_limited":
            reset = str(int(clock.now().timestamp() + fault.seconds))
            answer.headers.update(
                {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
            )
        case "secondary_limit" | "too_many":
            answer.headers["retry-after"] = f"{fault.seconds:.0f}"
        case "elsewhere":
            answer.headers["location"] = _ELSEWHERE
    return answer


async def spoil(fault: Fault, answer: Response, request: Request, clock: Clock) -> Response:
    """What becomes of the answer, once what was asked is done."""
    if fault.kind == "lost_answer":
        return drop(request)
    if fault.kind == "garbled":
        return Response(b'{"id": 1, "title": "cut sho', answer.status_code, media_type="application/json")
    await until_gone(request, clock.sleep(fault.seconds))
    return answer
