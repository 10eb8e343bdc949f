"""The manners as data, and the page that shows them to people: neither says anything that the other does not."""

from __future__ import annotations

from adapters.atproto.session import LOGINS_PER_DAY
from modules.services.outbox.rules.rules import ETIQUETTE_RULES, LOGINS, POINTS_PER_DAY, POINTS_PER_HOUR
from modules.services.outbox.rules.types import EtiquetteRule
from tests.project import ROOT

PAGE = ROOT / "docs" / "manners.md"
SPANS = {None: "–", 3600.0: "an hour", 86_400.0: "a day", 14 * 86_400.0: "14 days", 30 * 86_400.0: "30 days"}  # noqa: RUF001


def as_row(manner: EtiquetteRule) -> tuple[str, ...]:
    return (
        f"`{manner.name}`",
        f"{manner.limit:,g} {manner.unit}",
        SPANS[manner.window_s],
        manner.explanation,
        manner.source,
    )


def rows() -> list[tuple[str, ...]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def test_the_page_shows_every_rule_as_it_is_and_no_other() -> None:
    assert rows() == [as_row(manner) for manner in ETIQUETTE_RULES]


def test_every_rule_has_a_name_of_its_own_a_number_a_source_and_a_reason() -> None:
    assert len({manner.name for manner in ETIQUETTE_RULES}) == len(ETIQUETTE_RULES)
    for manner in ETIQUETTE_RULES:
        assert manner.limit > 0
        assert manner.source
        assert len(manner.explanation) > 20


def test_what_is_published_is_used_only_to_four_fifths() -> None:
    assert (POINTS_PER_HOUR.limit, POINTS_PER_DAY.limit) == (4_000, 28_000)


def test_the_limit_of_logins_is_the_one_that_the_session_keeps() -> None:
    assert LOGINS.limit == LOGINS_PER_DAY == 20
