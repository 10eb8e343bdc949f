"""Proves where a price comes from: the owner first, then what is published; never too low, never from the network."""

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ConfigError
from modules.runtime.budget.prices import Price, PriceList

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
