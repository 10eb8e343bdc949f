"""Proves that a skill says what its file says, that a broken one is named at start, and that values stay values."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import SkillError
from modules.services.skills.contracts import SKILL_CONTRACTS
from modules.services.skills.skills import Contracts, Skills, interpolate, parse_frontmatter, parse_sections
from tests.project import ROOT

PAGE = """---
name: greeting
description: "Says: hello"
metadata:
  sections: [System Prompt, User Message]
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
"""
CONTRACTS: Contracts = {"greeting": {"System Prompt": frozenset({"who"}), "User Message": frozenset({"who"})}}


def write(folder: Path, page: str = PAGE, name: str = "greeting") -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def test_a_section_is_rendered_with_its_variables(tmp_path: Path) -> None:
    write(tmp_path)
    skills = Skills.load(tmp_path, CONTRACTS)
    rendered = skills.render("greeting", "System Prompt", who="Kit")
    assert rendered.startswith("You greet Kit.\n")
    assert "## Not a section\nIt stays inside." in rendered
    assert rendered.endswith("not this one\n```")
    assert skills.render("greeting", "User Message", "Warm", who="Kit") == "Hello Kit!"
    assert skills.subsection("greeting", "User Message", "Short") == "Hi."
    assert list(skills.subsections("greeting", "User Message")) == ["Warm", "Short"]
    assert skills.render("greeting", nothing="", who="Kit").startswith("# Greeting")


def test_a_subsection_that_the_code_names_is_missed_at_start(tmp_path: Path) -> None:
    write(tmp_path)
    named: Contracts = {"greeting": {"User Message / Warm": frozenset({"who"}), "User Message / Cold": frozenset()}}
    with pytest.raises(SkillError, match="section 'User Message / Cold' is missing"):
        Skills.load(tmp_path, named)
    assert Skills.load(tmp_path, CONTRACTS).section("greeting", "User Message / Short") == "Hi."


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (None, "greeting: there is no "),
        (PAGE.replace("## System Prompt\nYou greet {{who}}.\n", ""), "section 'System Prompt' is missing"),
        (PAGE[: PAGE.index("### Warm")], "section 'User Message' is missing or blank"),
        (PAGE.replace("Hi.", "Hi {{whom}}."), "section 'User Message' uses 'whom', which nobody fills in"),
        (PAGE.replace("Hi.", "Hi {{who."), "section 'User Message' cannot be read"),
        (PAGE.replace("name: greeting", "name: farewell"), "it calls itself 'farewell'"),
        (PAGE.replace("name: greeting", "name: [greeting"), "greeting: frontmatter: "),
        (PAGE.replace('"Says: hello"', "Says: hello"), "description) cannot be read; put it in quotes"),
        (PAGE.replace("name: greeting", "- greeting").replace('description: "Says: hello"', ""), "frontmatter"),
    ],
)
def test_a_broken_skill_is_named_at_start(tmp_path: Path, page: str | None, problem: str) -> None:
    if page is not None:
        write(tmp_path, page)
    with pytest.raises(SkillError) as caught:
        Skills.load(tmp_path, CONTRACTS)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_all_problems_are_named_together_and_bytes_that_are_no_text_are_one(tmp_path: Path) -> None:
    write(tmp_path, PAGE.replace("{{who}}", "{{x}}"))
    write(tmp_path, name="binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SkillError) as caught:
        Skills.load(tmp_path, CONTRACTS)
    assert str(caught.value).count("uses 'x'") == 2
    assert "binary: " in str(caught.value)


@pytest.mark.parametrize("place", [("missing", "System Prompt"), ("greeting", "User Message", "Missing")])
def test_asking_for_what_is_not_there_is_an_error(tmp_path: Path, place: tuple[str, ...]) -> None:
    write(tmp_path)
    with pytest.raises(SkillError):
        Skills.load(tmp_path, CONTRACTS).render(*place)


@pytest.mark.parametrize("hostile", ["{{ ''.__class__.__mro__ }}", "## System Prompt", "<b>&"])
def test_untrusted_words_put_into_a_skill_stay_words(tmp_path: Path, hostile: str) -> None:
    write(tmp_path)
    rendered = Skills.load(tmp_path, CONTRACTS).render("greeting", "User Message", "Warm", who=hostile)
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


def test_our_own_skills_keep_every_contract_and_render_without_a_variable_left() -> None:
    skills = Skills.load(ROOT / "skills", SKILL_CONTRACTS)
    for skill_id, sections in SKILL_CONTRACTS.items():
        for section, variables in sections.items():
            rendered = skills.render(skill_id, section, **dict.fromkeys(variables, "VALUE"))
            assert rendered.strip()
            assert "{{" not in rendered
