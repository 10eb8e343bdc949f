"""Proves that the tables of words cover what the program calls by name; a name that they lack is shown as it is."""

from typing import get_args

import pytest

from common.wording import counted, deed, number, part_name, part_note, purpose, rule, told_outcome
from modules.services.agent.prompt.sources import ROWS
from modules.services.claims.policy import LoseCode
from modules.services.outbox.github_bodies import GITHUB_KINDS
from modules.services.outbox.rules import rules
from modules.services.outbox.rules.rules import EtiquetteRule
from modules.services.work.limits import TURN_LIMITS
from tests.shipped_skills import SHIPPED


@pytest.mark.parametrize(("count", "said"), [(0, "0"), (999, "999"), (94_159, "94,159"), (40_000_000.0, "40,000,000")])
def test_thousands_are_parted_by_commas(count: float, said: str) -> None:
    assert number(count) == said


def test_a_count_of_one_has_its_noun_in_the_singular() -> None:
    assert [counted(count, "reply", "replies") for count in (0, 1, 1_200)] == ["0 replies", "1 reply", "1,200 replies"]
    assert counted(2, "post") == "2 posts"


def test_every_part_of_a_prompt_has_words() -> None:
    unnamed = [name for name in ROWS if part_name(name) == name and not name.endswith(".md")]
    unnamed = [name for name in unnamed if not name.startswith("memory/")]
    assert unnamed == ["own skills", "recalled memories", "said before"]
    assert part_name("memory/2026-01-05.md") == "what it noted on 2026-01-05"
    assert part_name("memory/2026-01-05.md (since)") == "what it noted on 2026-01-05, since the conversation began"
    assert part_name("skill bluesky-response") == "instructions: answers on Bluesky"
    assert part_note("MEMORY.md was cut") == "its memory was cut"


def test_every_act_and_every_end_of_a_claim_is_told_without_the_names_of_code() -> None:
    assert not any("_" in deed(kind) for kind in (*GITHUB_KINDS, "space_chat", "direct_message"))
    ends = get_args(LoseCode)
    assert not {told_outcome(code) for code in ends} & set(ends)
    assert told_outcome("needs-owner") != "needs-owner"


def test_every_rule_that_can_speak_has_words() -> None:
    numbers_only = {
        "cost-create",
        "cost-update",
        "cost-delete",
        "young-account",
        "logins",
        "repost-likeness",
        "repost-short",
    }
    etiquette_rules = {value.name for value in vars(rules).values() if isinstance(value, EtiquetteRule)} - numbers_only
    etiquette_rules |= {one.name for one in TURN_LIMITS}
    others = {"approval", "moderation", "mute", "once", "schedule", "secrets"}
    assert [name for name in sorted(etiquette_rules | others) if rule(name) == name] == []


def test_everything_that_a_model_is_asked_for_has_words() -> None:
    asks = [skill for skill in SHIPPED.names if "System Prompt" in SHIPPED.section_names(skill)]
    assert [skill for skill in asks if purpose(skill) == skill] == []


def test_what_has_no_words_keeps_its_name() -> None:
    assert (purpose("new-thing"), rule("new-rule"), part_name("NOTES.md")) == (
        "new-thing",
        "new-rule",
        "NOTES.md",
    )
