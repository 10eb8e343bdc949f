"""Forty seeded changes through a whole review: none of thirty faults is approved, none of ten clean ones stopped."""

from __future__ import annotations

import random

import pytest

from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.running_town import RunningTown, awake
from tests.scenarios.code_review_place import open_reviewed, review
from tests.scenarios.github_talk import CLOCK
from tests.town.github_place import needs_git

FAULTY, CLEAN, AT_ONCE = 30, 10, 8
SEED = 29
AN_HOUR_S = 3_700
CODE = """BEDS = {"beans": 3, "peas": 4}


def water(beds, dry):
    return sorted(bed for bed in beds if dry.get(bed, 0) > 2)


def litres(beds):
    return sum(beds.values()) * 2


def tell(name, count):
    return f"{name}: {count} beds" if count != 1 else f"{name}: 1 bed"
"""
CHECK = """from beds import BEDS, litres, tell, water

assert water(BEDS, {"beans": 3, "peas": 2}) == ["beans"], "beans are dry"
assert water({"b": 1, "a": 1}, {"a": 9, "b": 9}) == ["a", "b"], "in the order of the alphabet"
assert litres(BEDS) == 14, "two litres a bed"
assert tell("peas", 1) == "peas: 1 bed"
assert tell("peas", 4) == "peas: 4 beds"
"""
FAULTS = (
    ("> 2", ">= 2"),
    ("> 2", "< 2"),
    ("sorted(", "list("),
    ("* 2", "* 3"),
    ("* 2", "+ 2"),
    ("sum(", "max("),
    ("!= 1", "== 1"),
    ("1 bed", "1 beds"),
    ("{count} beds", "{count} bed"),
    ('"peas": 4', '"peas": 5'),
    ("def litres", "def liters"),
    ("return sorted", "return not sorted"),
    ("dry.get(bed, 0)", "dry[bed + 1]"),
    ("def tell(name, count):", "def tell(count, name):"),
    ("BEDS =", "import beds_of_others\n\nBEDS ="),
    ("def water", "def water("),
    ("\n\n\ndef litres", "\n\n\nraise SystemExit(3)\n\n\ndef litres"),
)
HARMLESS = (
    ("def water", "# Which beds want water.\ndef water"),
    ("* 2", "* (1 + 1)"),
    ("> 2", ">= 3"),
    ("\n\n\ndef tell", '\n\n\ndef shade(beds):\n    return [bed for bed in beds if bed == "peas"]\n\n\ndef tell'),
    ('"beans": 3, "peas": 4', '"peas": 4, "beans": 3'),
)


def changes() -> list[tuple[bool, str]]:
    """Forty changes of the code in an order of chance; whether each is faulty, and the code with it."""
    rng = random.Random(SEED)
    drawn = [(True, rng.choice(FAULTS)) for _ in range(FAULTY)] + [(False, rng.choice(HARMLESS)) for _ in range(CLEAN)]
    rng.shuffle(drawn)
    made = []
    for number, (is_faulty, (old, new)) in enumerate(drawn):
        # NOTE(self): a fault among harmless changes, so that no two are the same.
        text = CODE.replace(*rng.choice([one for one in HARMLESS if one[0] != old])) if is_faulty else CODE
        assert old in text
        made.append((is_faulty, f"{text.replace(old, new, 1)}\n# {number}\n"))
    return made


@needs_git
@needs_sandbox
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_none_of_thirty_faults_is_approved_and_none_of_ten_clean_changes_is_stopped(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.put("beds.py", CODE)
        await place.put("check.py", CHECK)
        states: dict[int, bool] = {}
        for number, (is_faulty, text) in enumerate(changes()):
            await place.offer({"beds.py": text}, branch=f"change-{number}")
            await place.ask()
            states[place.number] = is_faulty
            if len(states) % AT_ONCE == 0:
                await review(soul)
                soul.passes(AN_HOUR_S)
        pulls = place.place.repo.pulls
        given = [(states[number], [one.state for one in pulls[number].reviews]) for number in states]
    assert given.count((True, ["CHANGES_REQUESTED"])) == FAULTY
    assert given.count((False, ["APPROVED"])) == CLEAN
