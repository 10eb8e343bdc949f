"""Proves what may become SELF.md and what is held: pure rules, by tables and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.constants import SELF_MAX_BYTES
from common.redact import Redactor
from modules.services.identity.policy import hold_reason, limits_reason, loss, refusal, sections_moved, with_section

REDACTOR = Redactor(["hunter2-hunter2"])
PROSE = "Slate remembers the rain, and tin forgets it by noon.\n"


@pytest.mark.parametrize(
    ("content", "reason", "word"),
    [
        ("", "because", "empty"),
        ("# Rowan \ud83d", "because", "UTF-8"),
        ("ä" * (SELF_MAX_BYTES // 2 + 1), "because", "bytes"),
        ("# Rowan\nMy password is hunter2-hunter2.", "because", "secret"),
        ("# Rowan\nMy key is sk-" + "a1" * 12, "because", "secret"),
        ("# Rowan\n", " ", "reason"),
    ],
)
def test_what_can_never_be_a_self_is_refused_by_name(content: str, reason: str, word: str) -> None:
    assert word in refusal(content, reason, REDACTOR)


@pytest.mark.parametrize(
    "content", ["# Rowan\n", "no heading at all", "x" * SELF_MAX_BYTES, "🌧" * (SELF_MAX_BYTES // 4)]
)
def test_whatever_else_is_said_is_the_souls_own_affair(content: str) -> None:
    assert refusal(content, "because", REDACTOR) == ""


@pytest.mark.parametrize(
    ("old", "new", "lost", "total"),
    [
        ("", PROSE, 0, 0),
        ("one two", "two; ONE!", 0, 6),
        ("one two", "one", 3, 6),
        ("one one one", "one", 6, 9),
        ("# A heading\none\n### Another\n", "one", 0, 3),
        ("- **one**\n\n\n* `two`", "one\ntwo", 0, 6),
        ("#hashtags are words", "hashtags are words", 0, 16),
        ("雨の日は好き", "雨の日", 3, 6),
    ],
)
def test_a_loss_is_counted_in_letters_of_words_that_are_gone(old: str, new: str, lost: int, total: int) -> None:
    found = loss(old, new)
    assert (found.lost, found.total) == (lost, total)


@pytest.mark.parametrize(
    ("old", "new", "held"),
    [
        ("aa bb", "aa", False),
        ("aa bb c", "aa", True),
        ("# Only\n## Headings\n", "anything", False),
        (PROSE * 20, PROSE * 11, False),
        (PROSE * 20, PROSE * 9, True),
        (PROSE * 20, PROSE * 9 + "Something else of the very same length, no more. " * 11, True),
    ],
)
def test_a_change_is_held_when_more_than_half_of_the_text_would_go(old: str, new: str, held: bool) -> None:  # noqa: FBT001 - a table
    assert bool(hold_reason(old, new)) is held


@given(st.text(), st.text())
def test_a_text_with_something_added_loses_nothing(old: str, more: str) -> None:
    assert loss(old, f"{old}\n{more}").lost == 0


MECHANICS = "## Social Mechanics\n\n| Replies | 4 |\n"
VOICE = "## Voice\n\nPlain.\n"
RITUALS = "## Daily Rituals\n\n- **Watch** [daily] (garden)\n"


@pytest.mark.parametrize(
    ("old", "new", "appeared", "vanished"),
    [
        (VOICE, VOICE + MECHANICS, ("Social Mechanics",), ()),
        (VOICE + MECHANICS + RITUALS, VOICE, (), ("Social Mechanics", "Daily Rituals")),
        (VOICE, RITUALS, ("Daily Rituals",), ("Voice",)),
        (VOICE, "## My Voice\n\nLoud.\n", (), ()),
        (VOICE, "## Voice\n\n", (), ("Voice",)),
    ],
)
def test_the_sections_that_run_the_soul_are_missed_when_they_go(
    old: str, new: str, appeared: tuple[str, ...], vanished: tuple[str, ...]
) -> None:
    assert sections_moved(old, new) == (appeared, vanished)


WHOLE = (
    "# Rowan\n\nI'm rowan.\n\n---\n\n## Values\n\n- Rain.\n\n---\n\n## What I've Learned\n\n- Tin.\n\n---\n\n*today*\n"
)


@pytest.mark.parametrize(
    ("heading", "body", "old", "new"),
    [
        ("Values", "- Slate.", "- Rain.", "- Slate."),
        ("Values", "## Values\n\n- Slate.\n- Rain.", "- Rain.", "- Slate.\n- Rain."),
        ("what i’ve learned", "- Slate.", "- Tin.", "- Slate."),  # noqa: RUF001 - the apostrophe is the point
        ("Values", "```\n## Voice\n```", "- Rain.", "```\n## Voice\n```"),
        ("Voice", "Plain.", "*today*\n", "*today*\n\n## Voice\n\nPlain.\n"),
    ],
)
def test_one_section_changes_and_all_else_stays(heading: str, body: str, old: str, new: str) -> None:
    assert with_section(WHOLE, heading, body) == WHOLE.replace(old, new)


def test_a_heading_in_code_is_no_section() -> None:
    text = "# Rowan\n\n```\n## Values\n```\n"
    assert with_section(text, "Values", "- Rain.") == f"{text}\n## Values\n\n- Rain.\n"


@given(st.from_regex(r"[A-Za-z]{1,9}", fullmatch=True))
def test_a_section_that_was_written_can_be_written_again(heading: str) -> None:
    once = with_section(WHOLE, heading, "- Rain.")
    twice = with_section(with_section(WHOLE, heading, "- Slate."), heading, "- Rain.")
    assert once == twice


LIMITS = "## Social Mechanics\n\n| Signal | Threshold |\n|---|---|\n| Thread depth | 10 |\n"
RITUAL = "## Daily Rituals\n\n- **Roofs** [daily 09:00] (roofs)\n  Participants: @ada.test\n"


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (LIMITS, LIMITS.replace("10", "40"), "limits"),
        (LIMITS, PROSE, "limits"),
        (LIMITS, f"{LIMITS}\nI leave with a like.\n{PROSE}", ""),
        (PROSE, RITUAL, "@ada.test"),
        (RITUAL, RITUAL.replace("@ada.test", "@ada.test, @bob.test"), "@bob.test"),
        (RITUAL, RITUAL.replace("Roofs", "Gutters"), "@ada.test"),
        (RITUAL, RITUAL.replace("09:00", "10:00"), ""),
        (RITUAL, PROSE, ""),
        (PROSE, RITUAL.partition("  Participants")[0], ""),
    ],
)
def test_new_limits_and_new_guests_of_a_ritual_wait_for_the_owner(old: str, new: str, word: str) -> None:
    assert bool(limits_reason(old, new)) is bool(word)
    assert word in limits_reason(old, new)
