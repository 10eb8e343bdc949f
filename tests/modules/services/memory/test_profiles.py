"""Proves that profiles are set once and change by the owner's own words alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modules.services.memory.profiles import BLOCK_TOKENS, ProfileFields, Profiles, field_name, profile_block, unfounded
from tests.exploration import examples
from tests.known_profiles import set_profiles
from tests.modules.services.memory.memory_home import SKILLS, MemoryHome, open_memory_home

SAID = ("Good morning.", "Please call me\n  Ana from now on, and I live in Porto.", "私はアナと申します")


def estimate(text: str) -> int:
    return len(text) // 4 + 1


@pytest.fixture
async def memory_home(tmp_path: Path) -> AsyncIterator[MemoryHome]:
    async with open_memory_home(tmp_path) as opened:
        yield opened


@pytest.fixture
def profiles(memory_home: MemoryHome) -> Profiles:
    return Profiles(memory_home.database, memory_home.clock)


async def test_what_was_said_at_the_first_talk_is_kept(memory_home: MemoryHome, profiles: Profiles) -> None:
    await set_profiles(
        memory_home.database,
        memory_home.clock,
        {"name": "Rowan", "Role ": "looks after\nroofs", "": "x"},
        {"name": " "},
        "owner",
    )
    assert await profiles.get() == ProfileFields({"name": "Rowan", "role": "looks after roofs"}, {})


@pytest.mark.parametrize("evidence", ["  call me\nAna ", SAID[2]])
async def test_a_change_that_the_owner_asked_for_in_these_words_is_made(
    memory_home: MemoryHome, profiles: Profiles, evidence: str
) -> None:
    await set_profiles(memory_home.database, memory_home.clock, {}, {"name": "Anna"}, "owner")
    change = await profiles.update("user", "Name", "Ana", evidence=evidence, owner_words=SAID, by="owner")
    assert (change.accepted, change.before) == (True, "Anna")
    assert (await profiles.get()).user == {"name": "Ana"}


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        ("call me Eve", "not what the owner wrote"),
        ("Good morning. Please", "not what the owner wrote"),
        ("me", "too short"),
    ],
)
async def test_a_change_without_the_owners_own_words_is_refused(
    memory_home: MemoryHome, profiles: Profiles, evidence: str, why: str
) -> None:
    await set_profiles(memory_home.database, memory_home.clock, {}, {"name": "Anna"}, "owner")
    change = await profiles.update("user", "name", "Eve", evidence=evidence, owner_words=SAID, by="owner")
    assert (change.accepted, why in change.reason) == (False, True)
    assert (await profiles.get()).user == {"name": "Anna"}


@pytest.mark.parametrize(("field", "value"), [("?!", "x"), ("name", " \n")])
async def test_a_field_without_a_name_or_a_value_is_refused(profiles: Profiles, field: str, value: str) -> None:
    change = await profiles.update("user", field, value, evidence="call me Ana", owner_words=SAID, by="owner")
    assert not change.accepted
    assert await profiles.get() == ProfileFields()


@given(st.text(), st.lists(st.text(), max_size=3))
def test_evidence_holds_only_where_one_message_has_all_of_it(evidence: str, messages: list[str]) -> None:
    plain = [" ".join(message.split()) for message in messages]
    holds = not unfounded(evidence, messages)
    assert not holds or any(" ".join(evidence.split()) in message for message in plain)
    assert not unfounded(f"{evidence} the owner said", [f"x {evidence} the owner said y"])


@given(st.text())
def test_a_fields_name_is_plain_or_none(name: str) -> None:
    plain = field_name(name)
    assert plain == "" or (plain.isascii() and plain == field_name(plain))


def test_the_block_tells_both_profiles_and_others_only_the_souls_own() -> None:
    profile = ProfileFields({"name": "Rowan", "role": "roofs"}, {"name": "canary"})
    both = profile_block(profile, SKILLS, estimate, public_only=False)
    assert both == "About you: name: Rowan; role: roofs\nAbout your owner: name: canary"
    assert profile_block(profile, SKILLS, estimate, public_only=True) == "About you: name: Rowan; role: roofs"
    assert profile_block(ProfileFields(), SKILLS, estimate, public_only=False) == ""


@given(st.lists(st.text(min_size=1), max_size=20))
@settings(max_examples=examples(20))
def test_the_block_never_exceeds_its_budget(values: list[str]) -> None:
    fields = {f"field_{number}": value for number, value in enumerate(values)}
    assert estimate(profile_block(ProfileFields(fields, fields), SKILLS, estimate, public_only=False)) <= BLOCK_TOKENS
