"""SELF.md is read by its headings, however its owner likes to write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.services.identity.identity import (
    SelfExtract,
    assess_self_richness,
    extract_display_name,
    extract_from_self,
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


@given(st.text(alphabet=st.sampled_from("#-*_|`[]() \nabI'’:~0159")))  # noqa: RUF001 - the signs meant
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
