"""The rules of the day's budget: how far it is used, who may still ask (`LADDER`), what a request costs. Pure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from fractions import Fraction
from typing import Any

from common.clock import local
from common.importance import Importance
from modules.runtime.budget.prices import Price
from modules.runtime.budget.types import Caps, Spent, Step
from modules.runtime.llm.connection import Request
from modules.runtime.llm.dialect import Usage, has_pictures, has_thoughts, pictures_in

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
- one family that makes far more of it is shown none: `modules.runtime.llm.dialect.sees_within_bounds`
- the most that is known beyond that: four tiles of 1 601 (Llama 3.2) are 6 404, ten of 729 (LLaVA-OneVision) are 7 290
"""

BYTES_PER_TOKEN_AT_MOST = 8
"""So many bytes of a whole prompt or answer are never one token, but for texts that repeat one character."""

_DATA = "data:image/"
_LIMITS = ("max_tokens", "max_completion_tokens")


DENSITY_BYTES, DENSITY_ANSWERS = 4096, 20
"""A density is learnt from requests of at least so many bytes, and trusted after so many answers."""
DENSITY_MARGIN = Fraction(3, 2)


def input_bound(request: Request) -> int:
    """Return an upper bound of the request's tokens."""
    messages, tools = len(request["messages"]), len(request.get("tools", ()))
    added = TOKENS_PER_REQUEST + TOKENS_PER_MESSAGE * messages + TOKENS_PER_TOOL * tools
    pictures = [url for url in map(_url, pictures_in(request["messages"])) if url.startswith(_DATA)]
    added += TOKENS_PER_PICTURE * len(pictures)
    return len(json.dumps(request, indent=4)) - sum(map(_written, pictures)) + added


def density_shown(request: Request, input_tokens: int) -> int:
    """Return how many tokens the service counted for 1,000 bytes of the request, at most 1,000; 0 if it shows nothing.

    A short request is mostly what services add by themselves; of pictures and thoughts nobody knows the tokens.
    """
    size = len(json.dumps(request, indent=4))
    shows = size >= DENSITY_BYTES and not has_pictures(request) and not has_thoughts(request)
    return min(1000, math.ceil(1000 * input_tokens / size)) if shows else 0


def interrupted_bound(bound: int, answers: int, most: int) -> int:
    """Return what the input of an interrupted call counts as: the highest density of its model, with a margin.

    `most` is that density, shown by so many answers. While these are too few, its upper bound stays.
    """
    return bound if answers < DENSITY_ANSWERS else min(bound, math.ceil(bound * most * DENSITY_MARGIN / 1000))


def input_floor(request: Request) -> int:
    """No more tokens than the request has, pictures aside: what a service counts below that is counted wrong.

    Tokenizers make a token of four or five bytes of prose, and of less in most other texts. One for every
    `BYTES_PER_TOKEN_AT_MOST` bytes is what even a text that suits them well comes to.
    """
    words = json.dumps([request["messages"], request.get("tools", ())], ensure_ascii=False, separators=(",", ":"))
    pictures = sum(len(_written_as(_url(picture))) for picture in pictures_in(request["messages"]))
    return max(0, len(words.encode(errors="replace")) - pictures) // BYTES_PER_TOKEN_AT_MOST


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


LADDER: tuple[tuple[Step, int], ...] = (
    ("normal", 0),
    ("cheaper", 70),
    ("pressing", 85),
    ("owner_only", 95),
    ("listen", 100),
)
"""Each step with the percentage of the day from which it holds."""

USEFUL_TOKENS = 256
"""An answer that cannot be as long as this is not worth its question."""

_ALLOWED: dict[Step, frozenset[Importance]] = {
    "normal": frozenset(("own", "stranger", "commitment", "mention", "owner")),
    "cheaper": frozenset(("own", "stranger", "commitment", "mention", "owner")),
    "pressing": frozenset(("stranger", "commitment", "mention", "owner")),
    "owner_only": frozenset(("owner",)),
    "listen": frozenset(),
}
ROOMS, ROOMS_PERCENT = "space-", 50
"""Talk in rooms, by the beginning of its purpose, and how much of a day it may use: it never ends by itself."""
_ROOMS_TALK_PERCENT: dict[Importance, int] = {"own": 40, "mention": 45}
"""Where talk among peers ends, and where talk with the host does, so that a request of the host is still met."""

KEPT_SHARE = 10
"""So many tokens of input that the service had from an earlier call count as one, which is about what they cost."""
STRANGERS_PERCENT = 50
"""How much of a day those may use who are neither owner nor peer, however many write."""

_RANK: dict[str, int] = {step: rank for rank, (step, _) in enumerate(LADDER)}


@dataclass(frozen=True, slots=True)
class Leave:
    """May this request go? `limit` is how long its answer may be; 0 says no, and `step` why."""

    step: Step
    limit: int


def fraction(spent: Spent, caps: Caps) -> Fraction:
    """How much of the day is used: the larger of tokens and dollars; all of it if nothing may be used."""
    parts = [_part(spent.tokens, caps.tokens)]
    if caps.micro_usd is not None:
        parts.append(_part(spent.micro_usd, caps.micro_usd))
    return max(parts)


def step_at(used: Fraction) -> Step:
    """The step that holds when so much of the day is used."""
    return [step for step, percent in LADDER if used * 100 >= percent][-1]


def may_ask(step: Step, importance: Importance) -> bool:
    """Whether a call of this importance is let through at all."""
    return importance in _ALLOWED[step]


def has_share_left(purpose: str, importance: Importance, on_rooms: Spent, caps: Caps) -> bool:
    """Whether the day still has something for that; only talk in rooms has a share of its own."""
    percent = _ROOMS_TALK_PERCENT.get(importance, ROOMS_PERCENT)
    return not purpose.startswith(ROOMS) or fraction(on_rooms, caps) * 100 < percent


def strangers_have_share_left(importance: Importance, on_strangers: Spent, caps: Caps) -> bool:
    """Whether the day still has something for strangers; the others are not asked."""
    return importance != "stranger" or fraction(on_strangers, caps) * 100 < STRANGERS_PERCENT


def has_room(spent: Spent, amount: Spent, caps: Caps) -> bool:
    """Whether an amount still fits into the day."""
    has_dollars = caps.micro_usd is None or spent.micro_usd + amount.micro_usd <= caps.micro_usd
    return has_dollars and spent.tokens + amount.tokens <= caps.tokens


def takes_cheaper(step: Step) -> bool:
    """Whether the cheaper model thinks."""
    return _RANK[step] >= _RANK["cheaper"]


def room_for_output(spent: Spent, caps: Caps, price: Price | None, input_tokens: int) -> int:
    """How many tokens of output fit into the day beside the input; negative if not even that fits."""
    room = caps.tokens - spent.tokens - input_tokens
    if caps.micro_usd is None or price is None:
        return room
    affordable = price.output_within(caps.micro_usd - spent.micro_usd, input_tokens)
    return room if affordable is None else min(room, affordable)


def weigh(step: Step, *, room: int, wanted: int) -> Leave:
    """As long an answer as fits, at most as long as `wanted`; none, and no call, if a useful one does not fit."""
    limit = min(room, wanted)
    return Leave(step, limit) if limit >= min(USEFUL_TOKENS, wanted) else Leave("listen", 0)


def settled(
    usage: Usage | None, *, weight: int, input_tokens: int, output_tokens: int, input_least: int = 0
) -> tuple[int, int]:
    """What an answered call took, in and out. What the service does not count is taken at its upper bound.

    A prompt of zero tokens, or a written answer of zero, is not counted either. A count above the bound is taken as it
    is: then the service made more of the request than was sent, or did not keep to the limit. A count below what the
    bytes that went and came can be at least (`input_least`, and a token for `BYTES_PER_TOKEN_AT_MOST` of the `weight`
    bytes streamed) is raised to that; an answer that was within its limit stays within it.
    """
    sent = usage.input_tokens if usage else 0
    answered = usage.output_tokens if usage else 0
    answered_least = min(weight // BYTES_PER_TOKEN_AT_MOST, output_tokens)
    return max(sent or input_tokens, input_least), max(answered or min(weight, output_tokens), answered_least)


def surely_kept(usage: Usage | None) -> int:
    """Tokens of the input that the service had from an earlier call, as far as the count can be true."""
    return usage.cached_tokens if usage and 0 < usage.cached_tokens <= usage.input_tokens else 0


def counted(input_tokens: int, kept_tokens: int) -> int:
    """Return how many tokens of input count against a limit, if the service had `kept_tokens` of them."""
    return input_tokens - kept_tokens + kept_tokens // KEPT_SHARE


def is_news(step: Step, *, told_today: str | None, told_before: str | None) -> bool:
    """Whether the step has to be told: each once a day, upwards only; `normal` after a day that was not."""
    if told_today is None:
        return step != "normal" or told_before not in {None, "normal"}
    return _RANK[step] > _RANK.get(told_today, 0)


def day_of(moment: datetime, timezone: str) -> str:
    """The owner's calendar day: `2026-01-05`."""
    return f"{local(moment, timezone):%Y-%m-%d}"


def seconds_left(moment: datetime, timezone: str) -> float:
    """Until the owner's next day begins, over a change of the clocks as well; at least one second."""
    here = local(moment, timezone)
    tomorrow = datetime.combine(here.date() + timedelta(days=1), time.min)
    # NOTE(self): without a name the zone is the machine's, which only a naive moment knows on another day.
    begins = tomorrow.replace(tzinfo=here.tzinfo) if timezone else tomorrow.astimezone()
    return max(1.0, begins.timestamp() - moment.timestamp())


def _part(used: int, cap: int) -> Fraction:
    return Fraction(used, cap) if cap else Fraction(1)
