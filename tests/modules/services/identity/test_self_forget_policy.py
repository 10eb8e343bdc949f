"""What goes from SELF.md alone when somebody is forgotten, and what only with the owner's approval."""

from __future__ import annotations

import pytest

from common.person import Person
from modules.services.identity.keeper import without

PERSON = Person("did:plc:quillon", ("quillon.test",), ("Curiosity",))

ALONE = {
    "a bullet": (
        "## People\n\n- Sam.\n- did:plc:quillon taught me patience.\n- Kim.\n",
        "## People\n\n- Sam.\n- Kim.\n",
    ),
    "a bullet over two lines": ("- Patience, from\n  did:plc:quillon.\n- Kim.\n", "- Kim.\n"),
    "a numbered item": ("1. Kim.\n2. did:plc:quillon asked why.\n", "1. Kim.\n"),
    "an item below another": ("- People:\n  - did:plc:quillon\n  - Kim\n", "- People:\n  - Kim\n"),
    "a line of its own": ("# Rowan\n\nI met did:plc:quillon.\n\nI like rain.\n", "# Rowan\n\n\nI like rain.\n"),
    "line ends of Windows": ("- Kim.\r\n- did:plc:quillon.\r\n", "- Kim.\r\n"),
}
HELD = {
    "a paragraph of more lines": "I met @quillon.test\nand learned to wait.\n\nRain is loud.\n",
    "a heading": "# Rowan\n\n## @quillon.test\n\n- Patience.\n\n## Values\n\n- Rain.\n",
    "an item with items": "- @quillon.test\n  - Patience.\n- Kim.\n",
    "an item with a paragraph": "- @quillon.test\n\n  said so.\n\n- Kim.\n",
    "a line that leads a list": "From @quillon.test I have:\n\n- Patience.\n",
    "code": "```\nquillon.test\nx\n```\n\nRain.\n",
    "a row of a table": "| who | what |\n|---|---|\n| quillon.test | patience |\n\nRain.\n",
    "a handle alone, which may be anybody's by now": "- @quillon.test taught me patience.\n- Rain.\n",
    "a ritual": "# Rowan\n\nRain.\n\n## Daily Rituals\n\n- **Walk** [daily] (yard) with quillon.test\n",
}


@pytest.mark.parametrize("case", ALONE)
def test_what_goes_alone(case: str) -> None:
    before, after = ALONE[case]
    found = without(before, PERSON.is_named_in, PERSON.holds_did)
    assert found is not None
    assert (found.text, found.hold) == (after, "")


@pytest.mark.parametrize("case", HELD)
def test_what_waits_for_the_owner(case: str) -> None:
    found = without(HELD[case], PERSON.is_named_in, PERSON.holds_did)
    assert found is not None
    assert found.hold
    assert not PERSON.is_named_in(found.text)
    assert found.text.strip()


def test_a_text_that_is_about_nobody_else_cannot_become_any() -> None:
    assert without("# All about quillon.test\n\nHe hums.\n", PERSON.is_named_in, PERSON.holds_did) is None


def test_a_display_name_is_no_name_here() -> None:
    text = "- Curiosity is what I live by.\n- Rain.\n"
    found = without(text, PERSON.is_named_in, PERSON.holds_did)
    assert found is not None
    assert (found.text, found.hold) == (text, "")
