"""How large a request can be at most, in tokens, before anybody has counted it, and how small at least. Pure.

A tokenizer that works on bytes never makes more tokens than there are bytes. The bytes are those of the whole request
as indented JSON in plain ASCII: no chat template writes messages, tools and arguments out at greater length, and where
a tokenizer takes composed characters apart, their escapes are longer than their parts. What a template adds of its own
(roles, marks, the paragraphs that explain tools to a model) is allowed for at a fixed rate.

A picture is no text: what it takes depends on its size in pixels, not in bytes. So its data URI is left out of the
bytes, and `TOKENS_PER_PICTURE` put in its place.
"""

from __future__ import annotations

import json
from typing import Any

from modules.runtime.llm.budget_guard import Request
from modules.runtime.llm.dialect import pictures_in

TOKENS_PER_REQUEST = 1024
TOKENS_PER_MESSAGE = 16
TOKENS_PER_TOOL = 64
TOKENS_PER_PICTURE = 8192
"""No fewer than a picture of at most 1024 by 1024 pixels takes that is sent to be looked at in low detail.

What the usual makers do with one of 1024 by 1024:

- patches of 28 pixels (Claude, Qwen-VL, Mistral Small, Pixtral Large): 37 by 37, and an end of each row: 1 407;
  by the older rule of Claude, a token for 750 pixels: 1 399
- patches of 16 pixels (Pixtral 12B), 64 by 64, and an end of each row: 4 160
- a fixed number in low detail (GPT): 85 and less, 2 833 for the small one; where low detail is not known and all of
  it is looked at in patches of 32 pixels, at most 1 536 of them, times 2.46: 3 779
- tiles (Gemini 1 032, at its closest 2 240; Grok 1 792; InternVL 3 328; Phi 2 700; LLaVA-NeXT 2 880)
- one family that makes far more of it is shown none: `llm_gateway.dialect.sees_within_bounds`
- the most that is known beyond that: four tiles of 1 601 (Llama 3.2) are 6 404, ten of 729 (LLaVA-OneVision) are 7 290
"""

BYTES_PER_TOKEN_AT_MOST = 8
"""So many bytes of a whole prompt or answer are never one token, but for texts that repeat one character."""

_DATA = "data:image/"
_LIMITS = ("max_tokens", "max_completion_tokens")


def input_bound(request: Request) -> int:
    """Return an upper bound of the request's tokens."""
    messages, tools = len(request["messages"]), len(request.get("tools", ()))
    added = TOKENS_PER_REQUEST + TOKENS_PER_MESSAGE * messages + TOKENS_PER_TOOL * tools
    pictures = [url for url in map(_url, pictures_in(request["messages"])) if url.startswith(_DATA)]
    added += TOKENS_PER_PICTURE * len(pictures)
    return len(json.dumps(request, indent=4)) - sum(map(_written, pictures)) + added


def input_floor(request: Request) -> int:
    """No more tokens than the request has, pictures aside: what a service counts below that is counted wrong.

    Tokenizers make a token of four or five bytes of prose, and of less in most other texts. One for every
    `BYTES_PER_TOKEN_AT_MOST` bytes is what even a text that suits them well comes to.
    """
    words = json.dumps([request["messages"], request.get("tools", ())], ensure_ascii=False, separators=(",", ":"))
    pictures = sum(len(_written_as(_url(picture))) for picture in pictures_in(request["messages"]))
    return max(0, len(words.encode(errors="replace")) - pictures) // BYTES_PER_TOKEN_AT_MOST


def output_floor(weight: int) -> int:
    """Return a lower bound of an answer's tokens; `weight` is its upper bound, one token for each byte streamed."""
    return weight // BYTES_PER_TOKEN_AT_MOST


def output_limit(request: Request) -> int:
    """How many tokens the answer may have, under whichever name the service knows."""
    return max(int(request[name]) for name in _LIMITS if name in request)


def sent_as(request: Request, *, model: str, limit: int) -> Request:
    """The request to `model`, with an answer of at most `limit` tokens."""
    return request | {"model": model} | {name: limit for name in _LIMITS if name in request}


def _url(picture: dict[str, Any]) -> str:
    return str(picture["url"])


def _written(text: str) -> int:
    """How long it is as JSON, without the quotes."""
    return len(json.dumps(text)) - 2


def _written_as(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode(errors="replace")
