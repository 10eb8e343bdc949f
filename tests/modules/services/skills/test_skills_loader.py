"""Proves that a skill says what its file says, that a broken one is named at start, and that values stay as given."""

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import SkillError
from modules.services.experiences import ExperienceType
from modules.services.rituals.policy import MemoProblem, OpeningProblem
from modules.services.skills.contracts import derived
from modules.services.skills.skills import CONTRACTS, PART, Skills, interpolate, parse_frontmatter, parse_sections
from tests.shipped_skills import SHIPPED

PAGE = """---
name: greeting
description: "Says: hello"
metadata:
  sections: [System Prompt, User Message, Examples]
  open: {Examples: [who]}
---
# Greeting
Notes for us about {{nothing}}.

## System Prompt
You greet {{who}}.

## Not a section
It stays inside.

```markdown
## User Message
not this one
```

## User Message
### Warm
Hello {{who}}!
### Short
Hi.

## Examples
### One
Good evening, {{who}}.
"""


@pytest.fixture(autouse=True)
def _shipped(tmp_path: Path) -> None:
    """Write the skills as they ship: one page, and the contract that is derived from it."""
    write(tmp_path)
    (tmp_path / CONTRACTS).write_text(json.dumps(derived(tmp_path)), encoding="utf-8")


def write(folder: Path, page: str = PAGE, name: str = "greeting") -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(page, encoding="utf-8")
    return path


def test_a_section_is_rendered_with_its_variables(tmp_path: Path) -> None:
    write(tmp_path)
    skills = Skills.load(tmp_path)
    rendered = skills.render("greeting", "System Prompt", who="Kit")
    assert rendered.startswith("You greet Kit.\n")
    assert "## Not a section\nIt stays inside." in rendered
    assert rendered.endswith("not this one\n```")
    assert skills.render("greeting", "User Message", "Warm", who="Kit") == "Hello Kit!"
    assert skills.subsection("greeting", "User Message", "Short") == "Hi."
    assert list(skills.subsections("greeting", "User Message")) == ["Warm", "Short"]
    assert skills.render("greeting", nothing="", who="Kit").startswith("# Greeting")


def test_a_page_may_say_the_same_in_other_words_and_change_the_parts_of_an_open_section(tmp_path: Path) -> None:
    page = PAGE.replace("Hello {{who}}!", "Good morning.").replace("You greet", "You meet")
    write(tmp_path, page.replace("### One\n", "### Two\nHello.\n### Three\n"))
    skills = Skills.load(tmp_path)
    assert skills.section("greeting", "User Message / Warm") == "Good morning."
    assert list(skills.subsections("greeting", "Examples")) == ["Two", "Three"]


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (None, "greeting: there is no "),
        (PAGE.replace("## System Prompt\nYou greet {{who}}.\n", ""), "section 'System Prompt' is missing"),
        (PAGE.replace("### Warm", "### Cold"), "section 'User Message / Warm' is missing or blank"),
        (PAGE.replace("Hello {{who}}", "Hello {{whom}}"), "'User Message / Warm' uses 'whom', but may use only who"),
        (PAGE.replace("Hi.", "Hi {{who}}."), "section 'User Message / Short' uses 'who', but may use no variables"),
        (PAGE.replace("evening, {{who}}", "evening, {{whom}}"), "section 'Examples' uses 'whom', but may use only who"),
        (PAGE.replace("Hi.", "Hi {{who."), "section 'User Message / Short' cannot be read"),
        (PAGE.replace("{Examples: [who]}", "Examples"), "greeting: frontmatter: `open` is not a list"),
        (PAGE.replace("name: greeting", "name: farewell"), "it calls itself 'farewell'"),
        (PAGE.replace("name: greeting", "name: [greeting"), "greeting: frontmatter: "),
        (PAGE.replace('"Says: hello"', "Says: hello"), "description) cannot be read; put it in quotes"),
        (PAGE.replace("name: greeting", "- greeting").replace('description: "Says: hello"', ""), "frontmatter"),
    ],
)
def test_a_broken_skill_is_named_at_start(tmp_path: Path, page: str | None, problem: str) -> None:
    write(tmp_path, page or PAGE, name="greeting" if page else "other")
    if not page:
        (tmp_path / "greeting" / "SKILL.md").unlink()
    with pytest.raises(SkillError) as caught:
        Skills.load(tmp_path)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_all_problems_are_named_together_and_bytes_that_are_no_text_are_one(tmp_path: Path) -> None:
    write(tmp_path, PAGE.replace("{{who}}", "{{x}}"))
    write(tmp_path, name="binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SkillError) as caught:
        Skills.load(tmp_path)
    assert str(caught.value).count("uses 'x'") == 3
    assert "binary: " in str(caught.value)


@pytest.mark.parametrize("place", [("missing", "System Prompt"), ("greeting", "User Message", "Missing")])
def test_asking_for_what_is_not_there_is_an_error(tmp_path: Path, place: tuple[str, ...]) -> None:
    write(tmp_path)
    with pytest.raises(SkillError):
        Skills.load(tmp_path).render(*place)


@pytest.mark.parametrize("hostile", ["{{ ''.__class__.__mro__ }}", "## System Prompt", "<b>&"])
def test_untrusted_words_put_into_a_skill_stay_words(tmp_path: Path, hostile: str) -> None:
    write(tmp_path)
    rendered = Skills.load(tmp_path).render("greeting", "User Message", "Warm", who=hostile)
    assert rendered == f"Hello {hostile}!"


@given(st.text())
def test_any_value_comes_out_as_it_went_in(value: str) -> None:
    assert interpolate("<{{word}}>", {"word": value}) == f"<{value}>"


@pytest.mark.parametrize("template", ["{{ ().__class__.__bases__ }}", "{{ word.__class__ }}", "{{ word.append(1) }}"])
def test_a_skill_cannot_reach_out_of_its_page(template: str) -> None:
    with pytest.raises(SkillError):
        interpolate(template, {"word": ["x"]})


@pytest.mark.parametrize(
    ("raw", "front", "body"),
    [
        ("---\na: 1\nb: yes\n---\ntext\n", {"a": "1", "b": "yes"}, "text\n"),
        ("---\na: x --- y\n---\ntext", {"a": "x --- y"}, "text"),
        ("text\n---\n", {}, "text\n---\n"),
        ("---\nnever closed", {}, "---\nnever closed"),
    ],
)
def test_frontmatter_ends_at_a_line_of_its_own_and_its_values_are_text(
    raw: str, front: dict[str, str], body: str
) -> None:
    assert parse_frontmatter(raw) == (front, body)


@pytest.mark.parametrize(
    ("body", "allowed", "sections"),
    [
        ("before\n## A\none\n## B \ntwo", None, {"A": "one", "B": "two"}),
        ("## A\none\n## B\ntwo", ["A"], {"A": "one\n## B\ntwo"}),
        ("## A\n```\n## B\n```\n## C\nx", None, {"A": "```\n## B\n```", "C": "x"}),
        ("## A\n~~~\n```\n## B\n~~~\n## C\nx", None, {"A": "~~~\n```\n## B\n~~~", "C": "x"}),
        ("## A\n````\n```\n## B\n````\nend", None, {"A": "````\n```\n## B\n````\nend"}),
        ("## A\n``` \n## B never closed", None, {"A": "```", "B never closed": ""}),
        ("##A\n### B\n#### C", None, {}),
    ],
)
def test_sections_split_at_their_headings_and_never_inside_a_fence(
    body: str, allowed: list[str] | None, sections: dict[str, str]
) -> None:
    assert parse_sections(body, allowed) == sections


def test_without_the_contracts_that_ship_nothing_starts(tmp_path: Path) -> None:
    (tmp_path / CONTRACTS).write_text("[", encoding="utf-8")
    with pytest.raises(SkillError, match=r"contracts\.json cannot be read"):
        Skills.load(tmp_path)


def test_our_own_skills_render_without_a_variable_left() -> None:
    for skill_id in sorted(SHIPPED.names):
        for section, variables in SHIPPED.contract(skill_id).items():
            rendered = SHIPPED.render(skill_id, section, **dict.fromkeys(variables, "VALUE"))
            assert rendered.strip()
            assert "{{" not in rendered


@pytest.mark.parametrize(
    ("skill", "section", "names"),
    [
        ("ritual-initiation", "Problems", get_args(OpeningProblem)),
        ("ritual-memo", "Problems", get_args(MemoProblem)),
        ("reflection", "Kinds", get_args(ExperienceType)),
    ],
)
def test_everything_that_the_code_tells_by_name_has_words(skill: str, section: str, names: tuple[str, ...]) -> None:
    assert {f"{section}{PART}{name}" for name in names} <= SHIPPED.contract(skill).keys()
