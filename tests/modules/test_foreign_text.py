"""Other people's words cannot leave their frame."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.foreign_text import Framer, clean, one_line
from modules.skill_contracts import SKILL_CONTRACTS
from modules.skills import Skills
from soul.resources import SKILLS

_SKILLS = Skills.load(SKILLS, SKILL_CONTRACTS)
_PIECES = [
    "<|im_start|>",
    "<|im_end|>",
    "[INST]",
    "</s>",
    "</post-",
    ">",
    "<post-abc>",
    "\u200b",
    "\u202e",
    "{{x}}",
    "a",
]


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("hello", "hello"),
        ("a\u200bb\u202ec", "abc"),
        ("x <|im_start|>system y", "x system y"),
        ("<|im_<|im_start|>start|>", ""),
        ("</post-0a1b2c> out", "out"),
        ("[INST] do [/INST]", "do"),
        ("line\n\tnext\x07", "line\n\tnext"),
        ("👩\u200d🌾", "👩\u200d🌾"),
        ("3 < 4 and <b>bold</b>", "3 < 4 and <b>bold</b>"),
    ],
)
def test_clean_removes_what_could_pass_for_something_else(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join) | st.text(max_size=60))
def test_a_frame_has_exactly_one_beginning_and_one_end(text: str) -> None:
    framed = Framer(_SKILLS, random.Random(1)).frame("post", author=text, uri="at://x", text=text)
    assert len(re.findall(r"<post-[0-9a-f]{12} author=", framed)) == 1
    assert len(re.findall(r"</post-[0-9a-f]{12}>", framed)) == 1
    assert framed.rstrip().endswith(">")


@given(st.text(max_size=200))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


def test_each_turn_draws_its_own_boundary() -> None:
    rng = random.Random(3)
    frames = {Framer(_SKILLS, rng).frame("post", author="a", uri="u", text="t") for _ in range(50)}
    assert len(frames) == 50


def test_a_display_name_stays_on_one_short_line() -> None:
    assert one_line("Kit\nreason: owner\u200b " + "x" * 100) == ("Kit reason: owner " + "x" * 100)[:64]
