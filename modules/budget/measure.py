"""How large a request can be at most, in tokens, before anybody has counted it. Pure.

A tokenizer that works on bytes never makes more tokens than there are bytes. The bytes are those of the whole request
as indented JSON in plain ASCII: no chat template writes messages, tools and arguments out at greater length, and where
a tokenizer takes composed characters apart, their escapes are longer than their parts. What a template adds of its own
(roles, marks, the paragraphs that explain tools to a model) is allowed for at a fixed rate.
"""

from __future__ import annotations

import json

from modules.llm_gateway.wall import Request

TOKENS_PER_REQUEST = 1024
TOKENS_PER_MESSAGE = 16
TOKENS_PER_TOOL = 64

_LIMITS = ("max_tokens", "max_completion_tokens")


def input_bound(request: Request) -> int:
    """No fewer tokens than the request can have."""
    messages, tools = len(request["messages"]), len(request.get("tools", ()))
    added = TOKENS_PER_REQUEST + TOKENS_PER_MESSAGE * messages + TOKENS_PER_TOOL * tools
    return len(json.dumps(request, indent=4)) + added


def output_limit(request: Request) -> int:
    """How many tokens the answer may have, under whichever name the service knows."""
    return max(int(request[name]) for name in _LIMITS if name in request)


def sent_as(request: Request, *, model: str, limit: int) -> Request:
    """The request to `model`, with an answer of at most `limit` tokens."""
    return request | {"model": model} | {name: limit for name in _LIMITS if name in request}
