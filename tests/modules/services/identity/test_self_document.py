"""SELF.md is read by its headings, however its owner likes to write it.

The parts of SELF.md that control behaviour are read as they are meant, completely or not at all. The days and the time
of a ritual are read correctly, also for the days on which the clocks change.
"""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.services.identity.identity import (
    SelfExtract,
    assess_self_richness,
    extract_display_name,
    extract_from_self,
)
from modules.services.identity.self_mechanics import (
    RitualSchedule,
    SocialMechanics,
    parse_ritual_schedule,
    parse_social_mechanics,
    parse_time_to_ms,
    read_rituals,
)
from tests.project import ROOT

SELF = """\
# sh-marvin

I'm sh-marvin. I look after small rivers.

Not read as identity.

---

## Purpose

- To notice water.
And more.

## Values

- **Patience** before speed
* Plain words
- *(Added through reflection)*
-
Not a bullet.

### Older values

- Thrift

---

## Questions I\u2019m Sitting With

- Do rivers forget?

## Patterns I Notice

*(Nothing yet.)*
- Floods come in pairs

## Recent Learnings

| Date | Learning |
|------|:---------|
| 2026-01-02 | Mud has layers |
| Silt | settles |
| *(to come)* | |

- 2026-01-03: Herons are early
- **2026-01-04**: Otters are late

## What I Want to Explore

| Topic | Why |
|---|---|
| Weirs | old |

- Tides

## Current Focus

- Mapping one bend

## Relationships

- Ada, who taught me

## Voice

Tone: dry.

```
## Not a heading
```

## Social Mechanics

| Signal | Threshold |
|---|---|
| My replies | 6 |

## Daily Rituals

- **Morning gauge** [daily] (www-gauge)
"""


def test_every_part_is_found_under_its_heading() -> None:
    me = extract_from_self(SELF)
    assert me.name == "sh-marvin"
    assert me.identity == "I'm sh-marvin. I look after small rivers."
    assert me.purpose == "To notice water. And more."
    assert me.values == ("**Patience** before speed", "Plain words", "Thrift")
    assert me.questions == ("Do rivers forget?",)
    assert me.patterns == ("Floods come in pairs",)
    assert me.learnings == ("Herons are early", "Otters are late", "Mud has layers", "Silt")
    assert me.explorations == ("Tides", "Weirs")
    assert me.current_focus == ("Mapping one bend",)
    assert me.relationships == ("Ada, who taught me",)
    assert me.voice == "Tone: dry.\n\n```\n## Not a heading\n```"
    assert me.social_mechanics.max_replies_before_exit == 6
    assert [ritual.name for ritual in me.daily_rituals] == ["Morning gauge"]
    assert me.warnings == ()
    assert set(me.raw_sections) == {
        "purpose",
        "values",
        "questions",
        "patterns",
        "learnings",
        "explorations",
        "currentFocus",
        "relationships",
        "voice",
        "socialMechanics",
        "dailyRituals",
    }


@pytest.mark.parametrize(
    ("heading", "field"),
    [
        ("Purpose", "purpose"),
        ("What I’m here to do", "purpose"),  # noqa: RUF001 - as editors write it
        ("🌱 Values & habits", "values"),
        ("**What I believe**", "values"),
        ("Things I'm curious about", "questions"),
        ("What I observe", "patterns"),
        ("What I've learned", "learnings"),
        ("Topics to explore", "explorations"),
        ("What I'm working on", "current_focus"),
        ("Community ##", "relationships"),
    ],
)
def test_a_part_may_go_by_other_names(heading: str, field: str) -> None:
    value = getattr(extract_from_self(f"## {heading}\n\n- something\n"), field)
    assert value in {"something", ("something",)}


@pytest.mark.parametrize("heading", ["How I Sound", "My Voice"])
def test_the_voice_is_the_whole_section(heading: str) -> None:
    assert extract_from_self(f"## {heading}\nDry.\n\n### Never\n- loud\n").voice == "Dry.\n\n### Never\n- loud"


@pytest.mark.parametrize("heading", ["### Values", "# Values", "text ## Values", "##Values", "## Valuestream"])
def test_only_a_heading_of_the_second_level_opens_a_part(heading: str) -> None:
    assert extract_from_self(f"# Me\n\n{heading}\n\n- something\n").values == ()


def test_windows_line_ends_and_a_byte_order_mark_do_not_hide_anything() -> None:
    me = extract_from_self("\ufeff# Ada\r\n\r\nI'm Ada.\r\n\r\n## Values\r\n\r\n- calm\r\n")
    assert (me.name, me.identity, me.values) == ("Ada", "I'm Ada.", ("calm",))


def test_what_cannot_be_read_in_the_mechanics_is_told() -> None:
    me = extract_from_self("## Social Mechanics\n| Silence | three moons |\n")
    assert len(me.warnings) == 1
    assert "three moons" in me.warnings[0]


@pytest.mark.parametrize(
    ("self_md", "agent_name", "name"),
    [
        ("# Whatever\n\nI'm sh-marvin and I live here.", "", "sh-marvin"),
        ("# Whatever\n\nI’m **Ada**, hello.", "", "Ada"),  # noqa: RUF001 - as editors write it
        ("# sh-marvin\n\nI'm curious about rivers.", "sh-marvin", "sh-marvin"),
        ("# SELF — sh-marvin\n\nI'm curious.", "sh-marvin", "sh-marvin"),
        ("# SELF\n\nText.", "sh-marvin", "Agent"),
        ("# Agent Self Document - Rebecca of the Marsh\n", "", "Rebecca of the Marsh"),
        ("# Selfless\n", "", "Selfless"),
        ("", "", "Agent"),
    ],
)
def test_the_name_to_show_is_found(self_md: str, agent_name: str, name: str) -> None:
    assert extract_display_name(self_md, fallback="Agent", agent_name=agent_name) == name


@pytest.mark.parametrize(
    ("extract", "score", "suggestions"),
    [
        (SelfExtract(), 0, 7),
        (SelfExtract(identity="x", purpose="y"), 30, 5),
        (SelfExtract(values=("a", "b", "c")), 20, 6),
        (SelfExtract(questions=("q",), patterns=("p",), learnings=("l",), explorations=("e",)), 50, 3),
    ],
)
def test_richness_adds_up_part_by_part(extract: SelfExtract, score: int, suggestions: int) -> None:
    richness = assess_self_richness(extract)
    assert richness.score == score
    assert len(richness.suggestions) == suggestions


def test_the_document_that_a_new_soul_begins_with_is_understood_in_full() -> None:
    template = (ROOT / "SELF.md").read_text(encoding="utf-8")
    me = extract_from_self(template.replace("{{AGENT_NAME}}", "sh-marvin").replace("{{DATE}}", "2026-01-05"))
    assert me.name == "sh-marvin"
    assert me.purpose
    assert me.voice
    assert me.social_mechanics.max_replies_before_exit == 4
    assert me.social_mechanics.max_thread_depth == 12
    assert me.warnings == ()
    assert assess_self_richness(me).score == 100
    assert not any("2026" in learning for learning in me.learnings)


@given(st.text(alphabet=st.sampled_from("#-*_|`[]() \nabI'’:~0159")))  # noqa: RUF001 - the characters under test
def test_no_document_is_too_odd_to_be_read(text: str) -> None:
    me = extract_from_self(text)
    assert 0 <= assess_self_richness(me).score <= 100
    assert extract_display_name(text)


def test_a_line_break_inside_a_paragraph_or_a_list_item_means_nothing() -> None:
    extract = extract_from_self(
        "# Maren\n\nI'm Maren, who reads tide tables\nslowly, in order.\n\nMore.\n\n## Purpose\n\nTo make the"
        "\nslow visible.\n\n"
        "## Values\n\n- A dull measurement\n  repeated for years.\n- Another.\n| a | table |\n"
    )
    assert extract.identity == "I'm Maren, who reads tide tables slowly, in order."
    assert extract.purpose == "To make the slow visible."
    assert extract.values == ("A dull measurement repeated for years.", "Another.")


def test_what_a_template_left_open_is_no_name() -> None:
    text = "# {{AGENT_NAME}}\n\nI'm {{AGENT_NAME}}. I came on {{DATE}}.\n"
    assert extract_from_self(text).name == ""
    assert extract_display_name(text) == "Agent"
    assert extract_display_name(text, agent_name="sh-marvin") == "sh-marvin"
    assert extract_display_name("# Rowan\n\nI'm {{AGENT_NAME}}.\n") == "Rowan"


@pytest.mark.parametrize("left_open", ["{{agent_name}}", "${AGENT_NAME}", "{{{AGENT_NAME}}}", "<AGENT_NAME>"])
def test_a_name_that_was_left_open_in_any_way_is_none(left_open: str) -> None:
    text = f"# SELF — {left_open}\n\nI came to read.\n"
    assert extract_from_self(text).name == ""
    assert extract_display_name(text) == "Agent"
    assert extract_display_name(text, agent_name="rowan") == "rowan"


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


ALL = frozenset(range(7))
WEEKDAYS, WEEKENDS = frozenset(range(5)), frozenset({5, 6})
NINE = time(9)


@pytest.mark.parametrize(
    ("schedule", "days", "at"),
    [
        ("every day at 9am", ALL, NINE),
        (" Weekdays 09:00 ", WEEKDAYS, NINE),
        ("weekdays, 9:30 a.m.", WEEKDAYS, time(9, 30)),
        ("monday,wednesday,friday", {0, 2, 4}, None),
        ("Mon, Wed and Fri @ 12 pm", {0, 2, 4}, time(12)),
        ("mon–fri 17h30", WEEKDAYS, time(17, 30)),  # noqa: RUF001 - a dash as written
        ("saturday to monday", {5, 6, 0}, None),
        ("*daily* 07.15", ALL, time(7, 15)),
    ],
)
def test_days_and_time_are_read(schedule: str, days: frozenset[int], at: time | None) -> None:
    assert parse_ritual_schedule(schedule) == RitualSchedule(frozenset(days), at)


@pytest.mark.parametrize(
    "schedule",
    [
        *("", "sometimes", "daily at dawn", "weekdays 25:00", "daily 9", "09:00", "daily 9:00 and 17:00", "mon-soon"),
        *("daily 23:30", "daily 13pm"),
    ],
)
def test_what_is_not_understood_never_opens_and_is_told(schedule: str) -> None:
    assert parse_ritual_schedule(schedule) is None
    if schedule:
        _, told = read_rituals(f"- **Paper** [{schedule}] (www-paper)")
        assert [schedule in one for one in told] == [True]


def test_it_opens_from_its_time_on_and_never_at_night() -> None:
    morning, anytime = RitualSchedule(ALL, NINE), RitualSchedule(ALL)
    day = datetime(2026, 11, 27)  # noqa: DTZ001 - the local clock
    assert [hour for hour in range(24) if morning.is_open(day.replace(hour=hour))] == list(range(9, 23))
    assert [hour for hour in range(24) if anytime.is_open(day.replace(hour=hour))] == list(range(7, 23))
    early = RitualSchedule(WEEKDAYS, time(5))
    assert early.opens_at(day.date()).time() == time(7)
    assert early.next_date(date(2026, 11, 27)) == date(2026, 11, 30)


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("month", [3, 10])
def test_every_date_opens_at_the_same_time_of_day_also_when_the_clocks_change(zone: str, month: int) -> None:
    schedule, tz = RitualSchedule(ALL, time(7, 30)), ZoneInfo(zone)
    opened: dict[date, time] = {}
    moment = datetime(2026, month, 1, tzinfo=UTC)
    for _ in range(40 * 24 * 2):
        here = moment.astimezone(tz)
        if schedule.is_open(here):
            opened.setdefault(here.date(), here.time())
        moment += timedelta(minutes=30)
    days = sorted(opened)
    assert days == [days[0] + timedelta(days=ahead) for ahead in range(len(days))]
    assert len(days) >= 40
    assert {opened[day] for day in days[1:]} == {time(7, 30)}
