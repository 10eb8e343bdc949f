"""The parts of SELF.md that steer behaviour are read as meant, and never half."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.services.identity.self_mechanics import (
    SocialMechanics,
    parse_social_mechanics,
    parse_time_to_ms,
    read_rituals,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
ROWS = ("| My replies in thread | 4 |", "| Thread depth | 12 |", "| Silence | 45 min |", "| No response | 2 hours |")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("30 min", 30 * MINUTE),
        ("30", 30 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("1d", 24 * HOUR),
        ("90 SECONDS", 90_000),
        ("~30 min", 30 * MINUTE),
        ("after 1h.", HOUR),
        ("1h30m", 90 * MINUTE),
        ("1 hour and 30 minutes", 90 * MINUTE),
        ("1h30m15s", 90 * MINUTE + 15_000),
        ("2h, 3 replies", 2 * HOUR),
        ("30m 1h", 30 * MINUTE),
        ("1 h. 30 min.", 90 * MINUTE),
        ("1,5h", 90 * MINUTE),
        ("1h-2h", HOUR),
        ("1,000 min", 0),
        ("1:30", 0),
        ("", 0),
        ("-5m", 0),
        ("3 weeks", 0),
        ("1.23456h", 0),
        ("9999999999", 0),
    ],
)
def test_a_time_is_read_with_its_unit_or_not_at_all(text: str, ms: int) -> None:
    assert parse_time_to_ms(text) == ms


@given(st.text(max_size=20))
def test_any_cell_gives_a_time_or_nothing(text: str) -> None:
    assert parse_time_to_ms(text) >= 0


def test_nothing_written_means_the_usual_measure() -> None:
    usual, project = parse_social_mechanics(""), SocialMechanics().in_project
    assert usual == SocialMechanics(4, 12, 30 * MINUTE, HOUR, skip_low_value_acknowledgments=True)
    assert project == SocialMechanics(10, 50, 4 * HOUR, 8 * HOUR, skip_low_value_acknowledgments=True)


def test_the_rows_may_stand_in_any_order() -> None:
    for rows in (ROWS, ROWS[::-1]):
        table = "\n".join(("| Signal | Threshold |", "|---|---|", *rows))
        assert parse_social_mechanics(table) == SocialMechanics(4, 12, 45 * MINUTE, 2 * HOUR)


@pytest.mark.parametrize(
    ("row", "mechanics"),
    [
        ("| My replies in thread | 7 |", SocialMechanics(max_replies_before_exit=7)),
        ("| Depth | 20+ |", SocialMechanics(max_thread_depth=20)),
        ("| Thread silence | 1h | then I go |", SocialMechanics(silence_threshold_ms=HOUR)),
        ("| No response | 2 days |", SocialMechanics(no_response_timeout_ms=48 * HOUR)),
        ("| Mood | grey |", SocialMechanics()),
        ("no table", SocialMechanics()),
    ],
)
def test_each_row_is_about_one_thing(row: str, mechanics: SocialMechanics) -> None:
    assert parse_social_mechanics(row) == mechanics


@pytest.mark.parametrize(
    "row", ["| Replies | many |", "| Replies | -3 |", "| Replies | 4.5 |", "| Replies | 0 |", "| Silence | 3 weeks |"]
)
def test_what_is_not_understood_keeps_the_usual_measure_and_is_told(row: str) -> None:
    mechanics = parse_social_mechanics(row)
    assert mechanics.max_replies_before_exit == 4
    assert mechanics.silence_threshold_ms == 30 * MINUTE
    (warning,) = mechanics.warnings
    assert row.split("|")[2].strip() in warning


@pytest.mark.parametrize(
    "line",
    [
        "- I reply to everything",
        "- Respond to every message",
        "- I reply to low-value acknowledgments too",
        "- Acknowledgments are answered",
        "| Acknowledgments | answer |",
        "| Skip low-value acknowledgments | no |",
    ],
)
def test_a_soul_may_choose_to_answer_every_thank_you(line: str) -> None:
    assert not parse_social_mechanics(line).skip_low_value_acknowledgments


@pytest.mark.parametrize(
    "line",
    [
        "- I don't reply to everything",
        "- I don’t answer thanks",  # noqa: RUF001 - as editors write it
        "- I skip empty acknowledgements: a like says the same.",
        "| Acknowledgments | like |",
        "| Skip low-value acknowledgments | yes |",
    ],
)
def test_otherwise_a_like_says_the_same(line: str) -> None:
    assert parse_social_mechanics(line).skip_low_value_acknowledgments


RITUALS = """\
Some words first.

- **Morning paper** [Weekdays] (www-paper)
  Participants: @ada.example.social, @bob.example.social,
  Role: Initiator
  Write one page.

  Share it.
- **Nameless** [daily]
  This belongs to nobody.
- **Evening walk:** [sat, sun] (www-walk) — slowly
  - **Participants:** @ada.example.social
  - **Role:** guest
  - with boots
"""


def test_rituals_are_read_one_by_one() -> None:
    paper, walk = read_rituals(RITUALS)[0]
    assert (paper.name, paper.schedule, paper.workspace) == ("Morning paper", "weekdays", "www-paper")
    assert paper.participants == ("@ada.example.social", "@bob.example.social")
    assert paper.role == "initiator"
    assert paper.description == "Write one page.\nShare it."
    assert (walk.name, walk.schedule, walk.workspace) == ("Evening walk", "sat, sun", "www-walk")
    assert walk.participants == ("@ada.example.social",)
    assert walk.role == "participant"
    assert walk.description == "slowly\n- with boots"


@pytest.mark.parametrize(
    "line",
    [
        "- **Paper** [daily]",
        "- Paper [when it rains] (www-paper)",
        "Paper [daily] (www-paper)",
        "- **Paper** (www-paper) [daily]",
    ],
)
def test_an_incomplete_entry_is_no_ritual(line: str) -> None:
    assert read_rituals(line + "\n  Role: initiator\n  Text.\n")[0] == ()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("- **Paper [beta]** [daily] (www-paper)", "Paper [beta]"),
        ("- **Paper** [draft] [daily] (www-paper)", "Paper"),
        ("- **Paper *of the day*** [daily] (www-paper)", "Paper of the day"),
        ("- **[Paper](https://example.org/p)** [daily] (www-paper)", "Paper"),
        ("- **Paper** [daily] (https://github.com/acme/www-paper)", "Paper"),
        ("- **Paper** [daily] (`www-paper`)", "Paper"),
        ("- **Paper [x](https://example.org/c)** [daily] (www-paper)", "Paper x"),
        ("- [ ] **Paper** [daily] (www-paper)", "Paper"),
        ("1. **Paper** [daily] (www-paper)", "Paper"),
        ("12) **Paper** [daily] (www-paper)", "Paper"),
        ("- **Paper** [guide](https://example.org/g) [daily] (www-paper)", "Paper"),
        ("* Morning paper: [ Daily ] (www-paper)", "Morning paper"),
        ("### Paper [daily] (www-paper)", "Paper"),
    ],
)
def test_brackets_links_and_emphasis_cost_no_ritual(line: str, name: str) -> None:
    (ritual,) = read_rituals(f"{line}\n- **Participants:** @ada.example.social\n")[0]
    assert (ritual.name, ritual.schedule, ritual.workspace) == (name, "daily", "www-paper")
    assert ritual.participants == ("@ada.example.social",)


@pytest.mark.parametrize(
    ("role", "starts"),
    [
        ("initiator and scribe", True),
        ("co-initiator", True),
        ("scribe or the main initiator", True),
        ("the initiator, on Mondays", True),
        ("not the initiator", False),
        ("participant and critic", False),
    ],
)
def test_one_of_several_roles_counts(role: str, starts: bool) -> None:  # noqa: FBT001
    (ritual,) = read_rituals(f"- **Paper** [daily] (www-paper)\n  Role: {role}\n")[0]
    assert (ritual.role == "initiator") is starts


def test_an_entry_that_cannot_be_read_is_told() -> None:
    lost = (
        "- **Paper** [daily]",
        "- **Walk** (www-walk)",
        "- Tea [daily at dawn] (www-tea)",
        "- **Bread** (www-bread) [daily]",
    )
    told = read_rituals("\n".join(lost))[1]
    assert [line in warning for line, warning in zip(lost, told, strict=True)] == [True] * 4
    assert read_rituals(RITUALS.replace("- **Nameless** [daily]", "- **Note**: see below"))[1] == ()
    assert read_rituals("- with [boots](https://example.org/boots)\n- **Note** that all are free")[1] == ()


NAMES = st.text(alphabet="abcXYZ -'é", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(entries=st.lists(st.tuples(NAMES, NAMES, st.lists(NAMES, max_size=3)), max_size=4))
def test_what_is_written_by_the_grammar_is_read_back(entries: list[tuple[str, str, list[str]]]) -> None:
    text = "".join(
        f"- **{name}** [{schedule}] (www-x)\n  Participants: {', '.join(people)}\n  Do it.\n"
        for name, schedule, people in entries
    )
    rituals = read_rituals(text)[0]
    assert [(one.name, one.schedule, list(one.participants)) for one in rituals] == [
        (name, schedule.lower(), people) for name, schedule, people in entries
    ]
    assert all(one.description == "Do it." for one in rituals)


@given(st.text(alphabet=st.sampled_from("-*[]():| \nabR,"), max_size=60))
def test_any_section_can_be_read(text: str) -> None:
    read_rituals(text)[0]
    parse_social_mechanics(text)
