"""The manners as data, and the page that shows them to people: neither says anything that the other does not."""

from __future__ import annotations

from adapters.atproto.session import LOGINS_PER_DAY
from modules.services.outbox.rules.rules import ETIQUETTE_RULES, LOGINS
from modules.services.outbox.rules.types import EtiquetteRule
from modules.services.work.limits import TURN_LIMITS
from tests.project import ROOT

PAGE = ROOT / "docs" / "manners.md"
SPANS = {None: "–", 3600.0: "an hour", 86_400.0: "a day", 14 * 86_400.0: "14 days", 30 * 86_400.0: "30 days"}  # noqa: RUF001


def as_row(etiquette_rule: EtiquetteRule) -> tuple[str, ...]:
    return (
        f"`{etiquette_rule.name}`",
        f"{etiquette_rule.limit:,g} {etiquette_rule.unit}",
        SPANS[etiquette_rule.window_s],
        etiquette_rule.explanation,
        etiquette_rule.source,
    )


def rows() -> list[tuple[str, ...]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def test_the_page_shows_every_rule_as_it_is_and_no_other() -> None:
    turns = [
        (f"`{one.name}`", f"{one.limit} turns", SPANS[one.window_s], one.explanation, "our own measure")
        for one in TURN_LIMITS
    ]
    assert rows() == [*(as_row(etiquette_rule) for etiquette_rule in ETIQUETTE_RULES), *turns]


def test_every_rule_has_a_name_of_its_own_a_number_a_source_and_a_reason() -> None:
    assert len({etiquette_rule.name for etiquette_rule in ETIQUETTE_RULES}) == len(ETIQUETTE_RULES)
    for etiquette_rule in ETIQUETTE_RULES:
        assert etiquette_rule.limit > 0
        assert etiquette_rule.source
        assert len(etiquette_rule.explanation) > 20


def test_the_limit_of_logins_is_the_one_that_the_session_keeps() -> None:
    assert LOGINS.limit == LOGINS_PER_DAY == 20
