"""Proves the rules of the day's budget: its steps, which calls pass, how long an answer may be, when a day ends.

Proves where a price comes from: the owner first, then the published ones; never too low, never from the network. Proves
that a request never exceeds its bound, with a tokenizer that makes one token of every byte. Talk in rooms never ends by
itself, so it may use half of a day's budget, whoever else is in the room.
"""

import json
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import example, given
from hypothesis import strategies as st

from common.errors import BudgetExceeded, ConfigError
from common.provenance import Importance
from modules.runtime.budget.policy import (
    LADDER,
    TOKENS_PER_PICTURE,
    USEFUL_TOKENS,
    Caps,
    Leave,
    Spent,
    Step,
    day_of,
    fraction,
    has_share_left,
    input_bound,
    is_news,
    may_ask,
    output_limit,
    room_for_output,
    seconds_left,
    sent_as,
    settled,
    step_at,
    surely_kept,
    takes_cheaper,
    weigh,
)
from modules.runtime.budget.prices import Price, PriceList
from modules.runtime.llm.dialect import Usage
from tests.modules.runtime.budget.budget_rig import CHEAP, Rules, process, request


@pytest.mark.parametrize(
    ("used", "step"),
    [
        (69_999, "normal"),
        (70_000, "cheaper"),
        (85_000, "pressing"),
        (95_000, "owner_only"),
        (99_999, "owner_only"),
        (100_000, "listen"),
    ],
)
def test_each_step_begins_exactly_at_its_percentage(used: int, step: Step) -> None:
    assert step_at(fraction(Spent(used), Caps(100_000))) == step


@pytest.mark.parametrize(
    ("spent", "caps", "expected"),
    [
        (Spent(50, 999), Caps(100), Fraction(1, 2)),
        (Spent(50, 999), Caps(100, 1000), Fraction(999, 1000)),
        (Spent(50, 1), Caps(100, 1000), Fraction(1, 2)),
        (Spent(0, 0), Caps(0), Fraction(1)),
        (Spent(0, 0), Caps(100, 0), Fraction(1)),
    ],
)
def test_the_fuller_of_tokens_and_dollars_decides_and_a_cap_of_nothing_is_full(
    spent: Spent, caps: Caps, expected: Fraction
) -> None:
    assert fraction(spent, caps) == expected


@pytest.mark.parametrize(
    ("step", "allowed"),
    [
        ("normal", {"own", "stranger", "commitment", "mention", "owner"}),
        ("cheaper", {"own", "stranger", "commitment", "mention", "owner"}),
        ("pressing", {"stranger", "commitment", "mention", "owner"}),
        ("owner_only", {"owner"}),
        ("listen", set()),
    ],
)
def test_the_less_is_left_the_more_pressing_a_call_must_be(step: Step, allowed: set[Importance]) -> None:
    everybody: tuple[Importance, ...] = ("own", "stranger", "commitment", "mention", "owner")
    assert {importance for importance in everybody if may_ask(step, importance)} == allowed


def test_the_cheaper_model_thinks_from_its_step_on() -> None:
    assert [takes_cheaper(step) for step, _ in LADDER] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("room", "wanted", "leave"),
    [
        (5000, 1024, Leave("normal", 1024)),
        (1024, 1024, Leave("normal", 1024)),
        (USEFUL_TOKENS, 1024, Leave("normal", USEFUL_TOKENS)),
        (USEFUL_TOKENS - 1, 1024, Leave("listen", 0)),
        (-7, 1024, Leave("listen", 0)),
    ],
)
def test_an_answer_is_shortened_to_what_fits_as_long_as_it_stays_useful(room: int, wanted: int, leave: Leave) -> None:
    assert weigh("normal", room=room, wanted=wanted) == leave


_COSTS = st.fractions(min_value=0, max_value=600, max_denominator=1000)


@given(
    spent=st.builds(Spent, st.integers(0, 10**6), st.integers(0, 10**7)),
    caps=st.builds(Caps, st.integers(0, 10**6), st.none() | st.integers(0, 10**7)),
    price=st.none() | st.builds(Price, _COSTS, _COSTS, _COSTS),
    input_tokens=st.integers(0, 10**6),
)
def test_what_fits_never_passes_a_cap_and_one_token_more_would(
    spent: Spent, caps: Caps, price: Price | None, input_tokens: int
) -> None:
    room = room_for_output(spent, caps, price, input_tokens)

    def within(output: int) -> bool:
        tokens = spent.tokens + input_tokens + output <= caps.tokens
        if caps.micro_usd is None or price is None:
            return tokens
        return tokens and spent.micro_usd + price.cost(input_tokens, output) <= caps.micro_usd

    assert room < 0 or within(room)
    assert not within(max(room + 1, 0))


@pytest.mark.parametrize(
    ("usage", "weight", "expected"),
    [
        (Usage(900, 40), 100, (900, 40)),
        (None, 100, (5000, 100)),
        (Usage(0, 0), 100, (5000, 100)),
        (Usage(900, 0), 100, (900, 100)),
        (Usage(6000, 2000), 100, (6000, 2000)),
    ],
)
def test_what_the_service_does_not_count_is_taken_at_its_upper_bound(
    usage: Usage | None, weight: int, expected: tuple[int, int]
) -> None:
    assert settled(usage, weight=weight, input_tokens=5000, output_tokens=1000) == expected


@pytest.mark.parametrize(
    ("usage", "kept"),
    [
        (None, 0),
        (Usage(900, 1, cached_tokens=900), 900),
        (Usage(900, 1, cached_tokens=901), 0),
        (Usage(900, 1, cached_tokens=-5), 0),
    ],
)
def test_no_more_was_kept_than_was_sent_and_nothing_where_that_was_not_counted(usage: Usage | None, kept: int) -> None:
    assert surely_kept(usage) == kept


@pytest.mark.parametrize(
    ("step", "today", "before", "news"),
    [
        ("normal", None, None, False),
        ("normal", None, "cheaper", True),
        ("normal", "normal", "listen", False),
        ("cheaper", None, None, True),
        ("cheaper", "normal", None, True),
        ("pressing", "listen", None, False),
        ("listen", "owner_only", None, True),
        ("cheaper", "a word of another version", None, True),
    ],
)
def test_a_step_is_told_once_a_day_and_only_upwards(
    step: Step, today: str | None, before: str | None, *, news: bool
) -> None:
    assert is_news(step, told_today=today, told_before=before) is news


@pytest.mark.parametrize(
    ("moment", "timezone", "day"),
    [
        ("2026-01-05T23:59:59+00:00", "UTC", "2026-01-05"),
        ("2026-01-05T23:59:59+00:00", "Pacific/Auckland", "2026-01-06"),
        ("2026-01-06T04:59:00+00:00", "America/New_York", "2026-01-05"),
        ("2026-01-06T05:00:00+00:00", "America/New_York", "2026-01-06"),
    ],
)
def test_the_day_is_the_owners(moment: str, timezone: str, day: str) -> None:
    assert day_of(datetime.fromisoformat(moment), timezone) == day


@pytest.mark.parametrize(
    ("moment", "timezone", "hours"),
    [
        ("2026-01-05T12:00:00+00:00", "UTC", 12),
        ("2026-03-29T00:00:00+00:00", "Europe/Lisbon", 23),  # the clocks go forward
        ("2026-10-24T23:00:00+00:00", "Europe/Lisbon", 25),  # the clocks go back
        ("2026-03-08T05:00:00+00:00", "America/Havana", 23),  # midnight itself is skipped there
    ],
)
def test_the_time_until_the_next_day_knows_when_the_clocks_change(moment: str, timezone: str, hours: int) -> None:
    assert seconds_left(datetime.fromisoformat(moment), timezone) == hours * 3600


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - bounds are naive
    st.sampled_from(["", "UTC", "Europe/Lisbon", "America/Havana", "Africa/Cairo", "Pacific/Chatham", "Asia/Beirut"]),
)
@example(datetime(2026, 4, 24, 21, 59, 59, 999999, UTC), "Africa/Cairo")
def test_when_the_time_is_over_it_is_the_next_day_and_not_before(moment: datetime, timezone: str) -> None:
    left = seconds_left(moment, timezone)
    today = day_of(moment, timezone)
    assert day_of(moment + timedelta(seconds=left), timezone) > today
    assert left == 1 or day_of(moment + timedelta(seconds=left - 0.001), timezone) == today


NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
GATEWAY = "https://ai-gateway.vercel.sh/v1"


def price(
    model: str, base_url: str = GATEWAY, overrides: Mapping[str, tuple[float, float]] | None = None
) -> Price | None:
    return PriceList([model], overrides or {}, base_url=base_url, now=NOW).get(model)


@pytest.mark.parametrize(
    ("model", "base_url", "expected"),
    [
        ("openai/gpt-5.2", GATEWAY, Price(Fraction(7, 4), Fraction(14), kept=Fraction(7, 40))),
        ("gpt-5.2", "https://api.openai.com/v1", Price(Fraction(7, 4), Fraction(14), kept=Fraction(7, 40))),
        ("xai/grok-4", GATEWAY, Price(Fraction(3), Fraction(15), kept=Fraction(3, 4))),
    ],
)
def test_a_published_price_is_found_by_the_names_that_services_use(model: str, base_url: str, expected: Price) -> None:
    assert price(model, base_url) == expected


@pytest.mark.parametrize("model", ["nobody/nothing", "openai/"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert price(model) is None


def test_where_a_long_context_costs_more_the_dearest_tier_holds() -> None:
    assert price("google/gemini-3-pro-preview") == Price(Fraction(4), Fraction(18), kept=Fraction(2, 5))


def test_a_fee_for_each_request_is_part_of_the_price() -> None:
    found = price("perplexity/sonar-pro")
    assert found is not None
    assert found.request == 14_000
    assert found.cost(0, 0) == 14_000


def test_what_no_limit_bounds_counts_as_unknown() -> None:
    assert price("perplexity/sonar-deep-research") is None
    assert price("openai/text-embedding-3-small") is None


@pytest.mark.parametrize("key", ["openai/gpt-5.2", "gpt-5.2"])
def test_the_owners_price_wins_by_full_name_and_by_bare_name(key: str) -> None:
    assert price("openai/gpt-5.2", overrides={key: (0.15, 0.6)}) == Price(Fraction(3, 20), Fraction(3, 5))


def test_the_owner_may_say_that_a_model_is_free() -> None:
    assert price("my-own", overrides={"my-own": (0.0, 0.0)}) == Price(Fraction(0), Fraction(0))


def test_what_a_service_keeps_is_cheaper_only_where_the_answer_says_so_and_what_it_stores_is_dearer() -> None:
    found = price("anthropic/claude-haiku-4-5")
    assert found == Price(Fraction(1), Fraction(5), kept=Fraction(1, 10), stored=Fraction(5, 4))
    assert found.input_at_most == Fraction(5, 4)
    assert (found.cost(1000, 0), found.cost(1000, 0, 600)) == (1250, 560)
    assert found.output_within(1250 + 50, 1000) == 10


def test_the_owners_price_knows_no_discount_but_what_it_takes_to_store_a_prompt() -> None:
    own = {"anthropic/claude-haiku-4-5": (1.0, 5.0), "gpt-5.2": (1.0, 5.0)}
    claude, gpt = price("anthropic/claude-haiku-4-5", overrides=own), price("openai/gpt-5.2", overrides=own)
    assert claude is not None
    assert gpt is not None
    assert (claude.cost(1000, 0, 600), gpt.cost(1000, 0, 600)) == (1250, 1000)


_PRICE = st.fractions(0, 100, max_denominator=100)
_COUNT = st.integers(0, 10**6)


@given(_PRICE, _PRICE, st.none() | _PRICE, st.none() | _PRICE, st.tuples(_COUNT, _COUNT, _COUNT, _COUNT))
def test_whatever_a_service_keeps_and_stores_costs_no_more_than_is_settled_and_that_no_more_than_was_reserved(
    given_: Fraction, taken: Fraction, kept: Fraction | None, stored: Fraction | None, counts: tuple[int, ...]
) -> None:
    was_kept, was_stored, was_read, answered = counts
    found = Price(given_, taken, kept=kept, stored=stored)
    truth = (
        was_kept * (given_ if kept is None else kept)
        + was_stored * (given_ if stored is None else stored)
        + was_read * given_
        + answered * taken
    )
    sent = was_kept + was_stored + was_read
    assert truth <= found.cost(sent, answered, was_kept) <= found.cost(sent, answered)


@pytest.mark.slow
def test_no_published_model_costs_more_with_a_cache_than_is_reserved_for_it() -> None:
    models = [f"{provider.id}/{model.id}" for provider in get_snapshot().providers for model in provider.models]
    known = PriceList(models, {}, base_url=GATEWAY, now=NOW)
    assert len(known) > 1000
    for found in known.values():
        assert max(found.cost(1000, 10, kept) for kept in (0, 1, 500, 1000)) <= found.cost(1000, 10)
    assert any(found.input_at_most > found.input for found in known.values())


@pytest.mark.parametrize("pair", [(float("nan"), 1.0), (1.0, float("inf")), (-1.0, 1.0)])
def test_a_price_that_is_no_price_is_named(pair: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="MODEL_PRICES"):
        price("my-own", overrides={"my-own": pair})


@given(
    st.fractions(0, 100, max_denominator=100),
    st.fractions(0, 100, max_denominator=100),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
)
def test_a_cost_is_rounded_up_by_less_than_a_millionth(
    given_: Fraction, taken: Fraction, sent: int, answered: int
) -> None:
    exact = given_ * sent + taken * answered
    assert 0 <= Price(given_, taken).cost(sent, answered) - exact < 1


_TEXT = st.text(max_size=60)
_TOOLS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.just("function"),
            "function": st.fixed_dictionaries(
                {
                    "name": _TEXT,
                    "description": _TEXT,
                    "parameters": st.dictionaries(_TEXT, st.dictionaries(_TEXT, _TEXT, max_size=3), max_size=3),
                }
            ),
        }
    ),
    max_size=3,
)
_MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": _TEXT}), max_size=5
)
_PREAMBLE = "You may call one or more functions to assist with the user query. " * 8


def _rendered(messages: list[dict[str, Any]], tools: list[dict[str, Any]], *, ascii_only: bool) -> str:
    """Return a prompt in a wordy chat template: marks around each message, tools as indented JSON."""
    written = [json.dumps(tool, indent=4, ensure_ascii=ascii_only) for tool in tools]
    said = [f"<|im_start|>{item['role']}\n{item['content']}<|im_end|>\n" for item in messages]
    return "".join([_PREAMBLE, *written, *said, "<|im_start|>assistant\n"])


@given(messages=_MESSAGES, tools=_TOOLS, ascii_only=st.booleans())
def test_no_template_and_no_byte_tokenizer_makes_more_of_it(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]], *, ascii_only: bool
) -> None:
    asked = {"model": "m", "messages": messages, "max_tokens": 5, **({"tools": tools} if tools else {})}
    rendered = _rendered(messages, tools, ascii_only=ascii_only)
    assert len(rendered.encode()) <= input_bound(asked)


@pytest.mark.parametrize("letter", ["a", "\x00", "한", "\ufb2c", "\U0001d160"])
def test_the_bound_holds_for_long_texts_of_the_worst_letters_even_taken_apart(letter: str) -> None:
    text = unicodedata.normalize("NFC", letter * 5000)
    assert len(text.encode()) <= input_bound(request(letter * 5000)) <= 12 * 5000 + 1500


def _with_picture(url: str, kind: str = "image_url") -> dict[str, Any]:
    parts = [{"type": "text", "text": "look"}, {"type": kind, "image_url": {"url": url, "detail": "low"}}]
    return {"model": "m", "messages": [{"role": "user", "content": parts}], "max_tokens": 5}


def test_a_picture_counts_the_same_whatever_its_bytes() -> None:
    small, large = (_with_picture("data:image/png;base64," + "A" * length) for length in (10, 500_000))
    assert input_bound(small) == input_bound(large) == input_bound(_with_picture("")) + TOKENS_PER_PICTURE
    twice = {**small, "messages": small["messages"] * 2}
    assert 2 * TOKENS_PER_PICTURE < input_bound(twice) - input_bound(request("")) < 2 * TOKENS_PER_PICTURE + 1000


@pytest.mark.parametrize(
    "odd",
    [
        request("data:image/png;base64," + "A" * 5000),
        _with_picture("https://a.example/" + "A" * 5000),
        _with_picture("data:image/png;base64," + "A" * 5000, kind="text_url"),
        _with_picture("data:text/plain;base64," + "A" * 5000),
    ],
    ids=["in words", "elsewhere", "no picture", "a text"],
)
def test_what_only_looks_like_a_picture_is_counted_by_its_bytes(odd: dict[str, Any]) -> None:
    assert 5000 < input_bound(odd) < TOKENS_PER_PICTURE


def test_half_a_surrogate_pair_is_measured_too() -> None:
    assert input_bound(request("\ud83d")) > input_bound(request(""))


def test_the_limit_is_found_and_changed_under_both_of_its_names() -> None:
    old, new = request(limit=700), {"model": "m", "messages": [], "max_completion_tokens": 900}
    assert (output_limit(old), output_limit(new)) == (700, 900)
    assert sent_as(old, model=CHEAP, limit=300) == old | {"model": CHEAP, "max_tokens": 300}
    assert sent_as(new, model="m", limit=300) == new | {"max_completion_tokens": 300}
    assert old["max_tokens"] == 700


CAPS = Caps(tokens=1000, micro_usd=None)


@pytest.mark.parametrize(
    ("purpose", "importance", "tokens", "left"),
    [
        ("space-participation", "own", 0, True),
        ("space-participation", "own", 399, True),
        ("space-participation", "own", 400, False),
        ("space-participation", "mention", 449, True),
        ("space-participation", "mention", 450, False),
        ("space-participation", "commitment", 499, True),
        ("space-participation", "commitment", 500, False),
        ("space-judgement", "own", 900, False),
        ("owner", "owner", 900, True),
        ("awareness", "own", 900, True),
    ],
)
def test_only_rooms_have_a_share_of_their_own_and_in_it_a_request_comes_last(
    purpose: str, importance: Importance, *, tokens: int, left: bool
) -> None:
    assert has_share_left(purpose, importance, Spent(tokens, 0), CAPS) is left


async def test_a_room_that_talked_away_its_half_of_the_day_is_refused_and_everybody_else_goes_on(
    tmp_path: Path,
) -> None:
    path, rules = tmp_path / "soul.db", Rules(Caps(100_000))
    async with process(path, rules) as one:
        await one.budget.settle(await one.ask(request(), "mention", "space-participation"), Usage(49_000, 1_000), 0)
    async with process(path, rules) as one:
        with pytest.raises(BudgetExceeded, match="talk in rooms may use 50 % of it, the host's requests first"):
            await one.ask(request(), "mention", "space-judgement")
        await one.ask(request(), "own", "expression")
        await one.clock.advance(86_400)
        await one.ask(request(), "own", "space-participation")


async def test_strangers_who_used_their_share_of_the_day_are_refused_and_peers_and_owner_go_on(tmp_path: Path) -> None:
    async with process(tmp_path / "soul.db", Rules(Caps(100_000))) as one:
        await one.budget.settle(await one.ask(request(), "stranger"), Usage(49_000, 500), 0)
        await one.budget.settle(await one.ask(request(), "stranger"), Usage(600, 100), 0)
        with pytest.raises(BudgetExceeded, match="strangers may use 50 % of it, and have"):
            await one.ask(request(), "stranger")
        for importance in ("own", "commitment", "mention", "owner"):
            await one.budget.release(await one.ask(request(), importance))
        await one.clock.advance(86_400)
        await one.ask(request(), "stranger")
