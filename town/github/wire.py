"""Refusals as GitHub words them."""

from __future__ import annotations

from starlette.responses import JSONResponse

from town.github.values import Json, Refusal

_DOCUMENTATION = "https://docs.github.com/rest"


def refusal_response(refusal: Refusal) -> JSONResponse:
    """A refusal as the answer to a request."""
    body: Json = {"message": refusal.message}
    if refusal.errors:
        body["errors"] = list(refusal.errors)
    return JSONResponse({**body, "documentation_url": _DOCUMENTATION, "status": str(refusal.status)}, refusal.status)
