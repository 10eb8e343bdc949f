"""What an operational text must hold, and how it is filled in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.services.voice_phrases.phrases import FORMS, VERSION, as_object, interpolate, problem_of, read_phrases
from tests.shipped_skills import SHIPPED

DEFAULTS = SHIPPED.subsections("voice-phrases", "Defaults")


def file_of(**changed: str | None) -> dict[str, Any]:
    """The object of a file with the texts of the skill; `__` in a name stands for the dot, None leaves one out."""
    texts: dict[str, str | None] = {**DEFAULTS, **{name.replace("__", "."): text for name, text in changed.items()}}
    return as_object({key: text for key, text in texts.items() if text is not None})


def refusal(raw: object) -> str:
    with pytest.raises(ValueError, match=r"\w") as refused:
        read_phrases(raw)
    return str(refused.value)


def test_the_texts_of_the_skill_are_all_there_is_and_valid() -> None:
    assert DEFAULTS.keys() == FORMS.keys()
    assert read_phrases(file_of()) == DEFAULTS


@pytest.mark.parametrize("raw", [None, 5, "x", [], {}, {"version": 2}, {**file_of(), "version": "1"}])
def test_what_is_no_object_of_this_version_is_refused(raw: object) -> None:
    assert refusal(raw) == f"it is no JSON object of version {VERSION}"


WRONG: list[tuple[dict[str, str | None], str]] = [
    ({"task_claim": None}, "task_claim is missing"),
    ({"fulfillment__default": "  "}, "fulfillment.default is missing"),
    ({"fulfillment__default": "Done."}, "fulfillment.default lacks {{url}}"),
    ({"task_claim": "On {{number}}."}, "task_claim lacks {{title}}"),
    ({"task_claim": "On {{number}}, {{title}} by {{author}}."}, "has {{author}}, which nobody fills in"),
    ({"task_claim": f"{{{{number}}}} {{{{title}}}} {'x' * 120}"}, "has more than 120 characters"),
    ({"github__plan_complete": "x" * 2001}, "has more than 2000 characters"),
    ({"github__task_failed": "**Task {{number}}: {{title}}** did not work. {{details}}"}, "lacks 'failed'"),
    ({"github__task_abandoned": "Task {{number}} has failed {{count}} times."}, "lacks '**task {{number}}**'"),
    ({"github__plan_complete": "Done, @ada."}, "names an account or an address"),
    ({"github__plan_complete": "See https://evil.example."}, "names an account or an address"),
    ({"space__creating": "Now\u202e."}, "space.creating holds control characters"),
]


@pytest.mark.parametrize(("changed", "problem"), WRONG)
def test_a_text_that_must_not_be_said_so_is_refused_by_its_name(changed: dict[str, str | None], problem: str) -> None:
    assert problem in refusal(file_of(**changed))


def test_a_text_that_names_the_soul_s_own_account_is_refused_where_that_is_asked() -> None:
    text = "SH-rowan: all tasks are done."
    assert problem_of("github.plan_complete", text, names=("", "sh-rowan")) == (
        "github.plan_complete names the SOUL's own account"
    )
    assert not problem_of("github.plan_complete", text)


def test_a_placeholder_is_filled_in_everywhere_and_what_was_put_in_is_not_read_again() -> None:
    template = "{{url}} and {{ url }}: {{title}}, {{unknown}}"
    filled = interpolate(template, {"url": "{{title}}", "title": "{{url}} \\1 {% x %}"})
    assert filled == "{{title}} and {{title}}: {{url}} \\1 {% x %}, {{unknown}}"


@given(st.text(), st.text())
def test_whatever_is_put_in_stands_there_as_it_is(title: str, details: str) -> None:
    filled = interpolate("a{{title}}b{{details}}c{{title}}", {"title": title, "details": details})
    assert filled == f"a{title}b{details}c{title}"
