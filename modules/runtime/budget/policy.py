"""The rules and values of the day's budget: its use, which calls may go (`LADDER`), what a request costs. Pure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any, Literal

from common.clock import local
from common.errors import ConfigError
from common.provenance import Importance
from modules.runtime.budget.prices import Price
from modules.runtime.llm.connection import Request
from modules.runtime.llm.dialect import Usage, pictures_in

MICRO = 1_000_000

Step = Literal[
    "normal",
    "cheaper",  # the cheaper model is used, if one is set
    "pressing",  # only for the owner, mentions and commitments
    "owner_only",  # only for the owner
    "listen",  # no model call
]


@dataclass(frozen=True, slots=True)
class Caps:
    """What one day may use: tokens of input and output together, and millionths of a dollar (None: no cap)."""

    tokens: int
    micro_usd: int | None = None

    @classmethod
    def per_day(cls, tokens: int, usd: float | None = None) -> Caps:
        """Return the caps that the owner set; a part of a millionth is cut off. Raises `ConfigError`."""
        if usd is None:
            return cls(tokens)
        if not math.isfinite(usd) or usd < 0:
            raise ConfigError("Settings: BUDGET_USD_PER_DAY must be a number of dollars", remedy="Correct .env.")
        return cls(tokens, int((Decimal(str(usd)) * MICRO).to_integral_value(ROUND_FLOOR)))


@dataclass(frozen=True, slots=True)
class Spent:
    """What a day has used, reservations included."""

    tokens: int = 0
    micro_usd: int = 0

    def without(self, part: Spent) -> Spent:
        """Return what is left after taking `part` away."""
        return Spent(self.tokens - part.tokens, self.micro_usd - part.micro_usd)

    def over(self, more: Spent, caps: Caps) -> Spent:
        """Return how far `more` would lead beyond the caps."""
        micro_usd = 0 if caps.micro_usd is None else max(0, self.micro_usd + more.micro_usd - caps.micro_usd)
        return Spent(max(0, self.tokens + more.tokens - caps.tokens), micro_usd)


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of tokens or dollars: `used` is settled; `reserved` is not, and counts at its upper bound.

    `unanswered` is the part of `reserved` for which no whole answer came, and which may have been billed: it is spent.
    The rest is set aside for calls on their way and to come, and shrinks when they are answered.
    """

    used: float
    reserved: float
    cap: float | None
    unanswered: float = 0

    @property
    def on_its_way(self) -> float:
        return self.reserved - self.unanswered

    @property
    def spent(self) -> float:
        return self.used + self.unanswered

    @property
    def taken(self) -> float:
        return self.used + self.reserved


@dataclass(frozen=True, slots=True)
class Share:
    """What one purpose or one model spent of the day; `usd` is None if a price is unknown.

    `on_its_way` are the tokens that are set aside beside that.
    """

    name: str
    calls: int
    tokens: int
    usd: float | None
    on_its_way: int = 0


@dataclass(frozen=True, slots=True)
class Day:
    """One day as a line. `step` is the furthest step announced; "" if there was none."""

    day: str
    calls: int
    tokens: int
    usd: float | None
    step: str


@dataclass(frozen=True, slots=True)
class Report:
    """The state of one day's budget.

    Attributes:
        day: the owner's local calendar day, `2026-01-05`.
        step: the step that holds now.
        fraction: how much of the day is spent, 1 for all; the larger of tokens and dollars.
        tokens: input and output together.
        usd: None if a price is unknown.
        calls: requests that left, refused ones included.
        uncounted: those of them for which not one byte of an answer came from a service that bills nobody.
        by_purpose: the purposes, the largest first.
        by_model: the models, the largest first.
        resets_in_s: seconds until the next day begins.

    """

    day: str
    step: Step
    fraction: float
    tokens: Amount
    usd: Amount | None
    calls: int
    by_purpose: tuple[Share, ...]
    by_model: tuple[Share, ...]
    resets_in_s: float
    uncounted: int = 0


TOKENS_PER_REQUEST = 1024
TOKENS_PER_MESSAGE = 16
TOKENS_PER_TOOL = 64
TOKENS_PER_PICTURE = 8192
"""An upper bound for a picture of at most 1024 by 1024 pixels that is sent to be seen in low detail.

What common models make of one of 1024 by 1024:

- patches of 28 pixels (Claude, Qwen-VL, Mistral Small, Pixtral Large): 37 by 37, and one for the end of each row:
  1 407; by the older rule of Claude, a token for 750 pixels: 1 399
- patches of 16 pixels (Pixtral 12B), 64 by 64, and one for the end of each row: 4 160
- a fixed number in low detail (GPT): 85 or less, 2 833 for the small one; if low detail is not known and the whole
  picture is read in patches of 32 pixels, at most 1 536 of them, times 2.46: 3 779
- tiles (Gemini 1 032, at its closest 2 240; Grok 1 792; InternVL 3 328; Phi 2 700; LLaVA-NeXT 2 880)
- one family that uses far more gets no pictures: `modules.runtime.llm.dialect.sees_within_bounds`
- the most that is known otherwise: four tiles of 1 601 (Llama 3.2) are 6 404, ten of 729 (LLaVA-OneVision) are 7 290
"""

BYTES_PER_TOKEN_AT_MOST = 8
"""A token of a whole prompt or answer has fewer bytes than this on average, except where one character repeats."""

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
    """Return a lower bound of the request's tokens, pictures aside: a service's count below it is wrong.

    Tokenizers make a token of four or five bytes of prose, and of less in most other texts. One for every
    `BYTES_PER_TOKEN_AT_MOST` bytes is what even a text that suits them well amounts to.
    """
    words = json.dumps([request["messages"], request.get("tools", ())], ensure_ascii=False, separators=(",", ":"))
    pictures = sum(len(_written_as(_url(picture))) for picture in pictures_in(request["messages"]))
    return max(0, len(words.encode(errors="replace")) - pictures) // BYTES_PER_TOKEN_AT_MOST


def output_limit(request: Request) -> int:
    """Return how many tokens the answer may have, whichever name the service uses for the limit."""
    return max(int(request[name]) for name in _LIMITS if name in request)


def sent_as(request: Request, *, model: str, limit: int) -> Request:
    """Return the request, sent to `model` and with an answer of at most `limit` tokens."""
    return request | {"model": model} | {name: limit for name in _LIMITS if name in request}


def _url(picture: dict[str, Any]) -> str:
    return str(picture["url"])


def _written(text: str) -> int:
    """Return the length of the text as JSON, without the quotes."""
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
"""A call whose answer cannot be as long as this is not worth making."""

_ALLOWED: dict[Step, frozenset[Importance]] = {
    "normal": frozenset(("own", "stranger", "commitment", "mention", "owner")),
    "cheaper": frozenset(("own", "stranger", "commitment", "mention", "owner")),
    "pressing": frozenset(("stranger", "commitment", "mention", "owner")),
    "owner_only": frozenset(("owner",)),
    "listen": frozenset(),
}
ROOMS, ROOMS_PERCENT = "space-", 50
"""The prefix of the purposes of talk in rooms, and the percentage of a day for it: it never ends by itself."""
_ROOMS_TALK_PERCENT: dict[Importance, int] = {"own": 40, "mention": 45}
"""The percentage at which talk among peers ends, and talk with the host, so that a host request is still met."""

KEPT_SHARE = 10
"""So many cached tokens of input count as one, which is about what they cost."""
STRANGERS_PERCENT = 50
"""The percentage of a day for those who are neither owner nor peer, however many write."""

_RANK: dict[str, int] = {step: rank for rank, (step, _) in enumerate(LADDER)}


@dataclass(frozen=True, slots=True)
class Leave:
    """Whether a request may go. `limit` is how long its answer may be; 0 means that it may not, and `step` says why."""

    step: Step
    limit: int


def fraction(spent: Spent, caps: Caps) -> Fraction:
    """Return how much of the day is used: the larger share of tokens and dollars; 1 if nothing may be used."""
    parts = [_part(spent.tokens, caps.tokens)]
    if caps.micro_usd is not None:
        parts.append(_part(spent.micro_usd, caps.micro_usd))
    return max(parts)


def step_at(used: Fraction) -> Step:
    """Return the step that holds when so much of the day is used."""
    return [step for step, percent in LADDER if used * 100 >= percent][-1]


def may_ask(step: Step, importance: Importance) -> bool:
    """Return whether a call of this importance may go at all at this step."""
    return importance in _ALLOWED[step]


def has_share_left(purpose: str, importance: Importance, on_rooms: Spent, caps: Caps) -> bool:
    """Return whether the share of the day for talk in rooms is not used up; True for any other purpose."""
    percent = _ROOMS_TALK_PERCENT.get(importance, ROOMS_PERCENT)
    return not purpose.startswith(ROOMS) or fraction(on_rooms, caps) * 100 < percent


def strangers_have_share_left(importance: Importance, on_strangers: Spent, caps: Caps) -> bool:
    """Return whether the share of the day for strangers is not used up; True for any other importance."""
    return importance != "stranger" or fraction(on_strangers, caps) * 100 < STRANGERS_PERCENT


def has_room(spent: Spent, amount: Spent, caps: Caps) -> bool:
    """Return whether an amount still fits into the day."""
    has_dollars = caps.micro_usd is None or spent.micro_usd + amount.micro_usd <= caps.micro_usd
    return has_dollars and spent.tokens + amount.tokens <= caps.tokens


def takes_cheaper(step: Step) -> bool:
    """Return whether the cheaper model is used at this step."""
    return _RANK[step] >= _RANK["cheaper"]


def room_for_output(spent: Spent, caps: Caps, price: Price | None, input_tokens: int) -> int:
    """Return how many tokens of output fit into the day beside the input; negative if not even the input fits."""
    room = caps.tokens - spent.tokens - input_tokens
    if caps.micro_usd is None or price is None:
        return room
    affordable = price.output_within(caps.micro_usd - spent.micro_usd, input_tokens)
    return room if affordable is None else min(room, affordable)


def weigh(step: Step, *, room: int, wanted: int) -> Leave:
    """Return leave for an answer as long as fits, at most `wanted`; no leave if a useful one does not fit."""
    limit = min(room, wanted)
    return Leave(step, limit) if limit >= min(USEFUL_TOKENS, wanted) else Leave("listen", 0)


def settled(
    usage: Usage | None, *, weight: int, input_tokens: int, output_tokens: int, input_least: int = 0
) -> tuple[int, int]:
    """Return the input and output tokens of an answered call. What the service does not count is at its upper bound.

    Zero tokens for the prompt, or for a written answer, are not a count. A count above the bound is taken as it is:
    then the service made more of the request than was sent, or did not keep to the limit. A count below the least for
    the bytes sent and received (`input_least`, and a token for `BYTES_PER_TOKEN_AT_MOST` of the `weight` bytes
    streamed) is raised to that; an answer that was within its limit stays within it.
    """
    sent = usage.input_tokens if usage else 0
    answered = usage.output_tokens if usage else 0
    answered_least = min(weight // BYTES_PER_TOKEN_AT_MOST, output_tokens)
    return max(sent or input_tokens, input_least), max(answered or min(weight, output_tokens), answered_least)


def surely_kept(usage: Usage | None) -> int:
    """Return how many tokens of the input were cached; 0 if the service's count cannot be true."""
    return usage.cached_tokens if usage and 0 < usage.cached_tokens <= usage.input_tokens else 0


def counted(input_tokens: int, kept_tokens: int) -> int:
    """Return how many tokens of input count against a limit, if `kept_tokens` of them were cached."""
    return input_tokens - kept_tokens + kept_tokens // KEPT_SHARE


def is_news(step: Step, *, told_today: str | None, told_before: str | None) -> bool:
    """Return whether the step must be announced: each once a day, upwards only; `normal` after a day that was not."""
    if told_today is None:
        return step != "normal" or told_before not in {None, "normal"}
    return _RANK[step] > _RANK.get(told_today, 0)


def day_of(moment: datetime, timezone: str) -> str:
    """Return the owner's calendar day, such as `2026-01-05`."""
    return f"{local(moment, timezone):%Y-%m-%d}"


def seconds_left(moment: datetime, timezone: str) -> float:
    """Return the seconds until the owner's next day begins, across a change of the clocks as well; at least one."""
    here = local(moment, timezone)
    tomorrow = datetime.combine(here.date() + timedelta(days=1), time.min)
    # NOTE(self): without a name the zone is the machine's; only a naive moment has its offset of another day.
    begins = tomorrow.replace(tzinfo=here.tzinfo) if timezone else tomorrow.astimezone()
    return max(1.0, begins.timestamp() - moment.timestamp())


def _part(used: int, cap: int) -> Fraction:
    return Fraction(used, cap) if cap else Fraction(1)
