"""What a call that failed for good is to the owner: the error, and what to do about it. Pure."""

from __future__ import annotations

from common.errors import ModelRefused, PolicyBlocked, SoulError
from modules.runtime.llm.policy import Verdict

_REMEDIES = {
    401: "Check AI_GATEWAY_API_KEY in .env.",
    402: "Check the billing of the model service that AI_GATEWAY_API_KEY belongs to.",
    403: "Check that AI_GATEWAY_API_KEY may use the model named by AI_GATEWAY_MODEL.",
}
_ADDRESS_REMEDY = "Check AI_GATEWAY_BASE_URL in .env: is /v1 missing at its end?"
_REFUSED_REMEDY = "Check AI_GATEWAY_API_KEY in .env, and the billing of its model service."


def refusal(verdict: Verdict, model: str) -> SoulError:
    """The error to raise for what is not worth another try."""
    status = f" (HTTP {verdict.status})" if verdict.status else ""
    if verdict.kind == "fatal":
        remedy = _REMEDIES.get(verdict.status or 0, _REFUSED_REMEDY)
        return ModelRefused(f"The model service refuses{status}: {verdict.message}", remedy=remedy)
    if verdict.kind == "too_long":
        return PolicyBlocked(
            f"The prompt is too long for {model}: {verdict.message}",
            remedy="Set CONTEXT_TOKENS to what it takes, or choose one with a larger context by AI_GATEWAY_MODEL.",
        )
    if verdict.kind == "elsewhere":
        return SoulError(f"The model service gives no answer: {verdict.message}", remedy=_ADDRESS_REMEDY)
    return SoulError(
        f"The model service rejects the request{status}: {verdict.message}",
        remedy=f"Check AI_GATEWAY_MODEL in .env. {_ADDRESS_REMEDY}",
    )
