"""Proves the rules of what a new memory does to the ones that are there, as tables and properties."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import iso
from common.provenance import Trust
from modules.services.memory import policy
from modules.services.memory.admission import Kind, Memory, NewMemory

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def new(
    body: str = "a body", subject: str = "a subject", kind: Kind = "fact", trust: Trust = "self"
) -> policy.MemoryEntry:
    return policy.entry(NewMemory(kind, subject, body, trust=trust))


def old(**changes: Any) -> Memory:
    memory = Memory(
        id=1,
        kind="fact",
        subject="tea",
        body="tea is green",
        tags=("leaf",),
        importance=3,
        source="self",
        trust="self",
        private=False,
        created_at=iso(NOW),
        updated_at=iso(NOW),
    )
    return replace(memory, **changes)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tea is green", "tea  is\tGREEN\n"),
        ("ﬁne", "FINE"),
        ("cafe\u0301", "CAFÉ"),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),  # noqa: RUF001 - these are the signs meant
    ],
)
def test_two_texts_are_the_same_whatever_their_case_spaces_and_encoding(one: str, other: str) -> None:
    assert policy.key(one) == policy.key(other)
    assert new(one).body_hash == new(other).body_hash


@given(st.text(max_size=40))
def test_a_key_is_its_own_key(text: str) -> None:
    assert policy.key(policy.key(text)) == policy.key(text)


@pytest.mark.parametrize(
    ("entry", "standing_under", "same"),
    [
        (new("likes tea", "Ada"), "ada", True),
        (new("likes tea", "Bo"), "ada", False),
        (new("Ada lives in Berlin", "Berlin"), "ada", True),
        (new("Ada lives in Berlin", "Ada"), "where people live", True),
        (new("Adamant people live long", "Ada"), "people", False),
        (new("Ada came by", "Ada", "episode"), "visits", False),
        (new("C++ (the language) is fast", "C++ (the language)"), "speed", True),
    ],
)
def test_the_same_words_under_another_subject_are_the_same_only_if_they_name_it(
    entry: policy.MemoryEntry, standing_under: str, *, same: bool
) -> None:
    assert policy.same(entry, standing_under, entry.trust) == same


@pytest.mark.parametrize("trust", policy.TRUSTS)
@pytest.mark.parametrize("standing", policy.TRUSTS)
def test_under_a_subject_of_somebody_trusted_less_nothing_is_a_repetition(trust: Trust, standing: Trust) -> None:
    ranks = policy.TRUSTS.index
    entry = new("Ada lives in Berlin", "Ada", "person", trust)
    assert policy.same(entry, "obey the stranger", standing) == (ranks(standing) >= ranks(trust))
    assert policy.same(entry, "ada", standing)


@pytest.mark.parametrize(
    ("trust", "replaces"),
    [
        ("stranger", {"stranger"}),
        ("peer", {"stranger", "peer"}),
        ("self", {"stranger", "peer", "self"}),
        ("owner", {"stranger", "peer", "self", "owner"}),
    ],
)
def test_only_equal_or_greater_trust_replaces(trust: Trust, replaces: set[Trust]) -> None:
    assert set(policy.may_replace(new(trust=trust))) == replaces


@pytest.mark.parametrize("entry", [new(kind="episode"), new(kind="daily"), new(subject=""), new(subject=" \n")])
def test_what_happened_and_what_has_no_subject_replaces_nothing(entry: policy.MemoryEntry) -> None:
    assert policy.may_replace(entry) == ()


@pytest.mark.parametrize(
    ("was_private", "source", "trust", "shareable", "is_private"),
    [
        (False, "self", "self", False, False),
        (True, "self", "self", False, True),
        (True, "bluesky:x", "stranger", False, True),
        (False, "owner:terminal", "owner", False, True),
        (True, "owner:terminal", "owner", True, False),
        (True, "owner:terminal", "self", True, True),
    ],
)
def test_only_the_owners_own_word_makes_public_what_was_private(
    source: str, trust: Trust, *, was_private: bool, shareable: bool, is_private: bool
) -> None:
    entry = policy.entry(NewMemory("fact", "tea", "tea is green", source=source, trust=trust, shareable=shareable))
    assert policy.refreshed(old(private=was_private), entry, NOW).private == is_private


def test_a_repetition_by_a_better_witness_is_kept_in_their_own_words() -> None:
    before = old(subject="TEA", tags=("obey-mallory",), trust="peer", source="bluesky:peer", importance=4)
    later = NOW + timedelta(days=3)
    better = policy.entry(NewMemory("fact", "tea", "Tea is green", ("cup",), 2, "self", "self"))
    after = policy.refreshed(before, better, later)
    own = replace(before, subject="tea", body="Tea is green", tags=("cup",), trust="self", source="self")
    assert after == replace(own, updated_at=iso(later))


def test_a_repetition_by_an_equal_witness_adds_tags_and_never_lowers_anything() -> None:
    before = old(trust="peer", source="bluesky:peer", importance=4)
    more = policy.entry(NewMemory("fact", "tea", "Tea is green", ("LEAF", "cup"), 5, "other", "peer"))
    after = policy.refreshed(before, more, NOW - timedelta(days=9))
    assert after == replace(before, tags=("leaf", "cup"), importance=5)
    less = policy.entry(NewMemory("fact", "tea", "Tea is green", (), 1, "other", "peer"))
    assert policy.refreshed(before, less, NOW) == before


def test_a_lesser_witness_adds_nothing_but_that_it_was_said_again() -> None:
    before = old(trust="owner", importance=2)
    worse = policy.entry(NewMemory("fact", "tea", "Tea is green", ("urgent",), 5, "bluesky:x", "stranger"))
    later = NOW + timedelta(days=3)
    assert policy.refreshed(before, worse, later) == replace(before, updated_at=iso(later))


@given(st.text(), st.text(), st.lists(st.text(max_size=5), max_size=4), st.integers())
def test_every_text_is_either_refused_or_fit_for_every_store(
    subject: str, body: str, tags: list[str], importance: int
) -> None:
    memory = NewMemory("fact", subject, body, tuple(tags), importance)
    if not policy.clean(body).strip():
        with pytest.raises(ValueError, match="needs a body"):
            policy.entry(memory)
        return
    entry = policy.entry(memory)
    for text in (entry.subject, entry.body, *entry.tags, entry.subject_key, entry.body_key):
        assert "\0" not in text
        text.encode()
    assert "\n" not in "".join(entry.tags)
    assert 1 <= entry.importance <= 5
    assert policy.entry(NewMemory("fact", entry.subject, entry.body, entry.tags, entry.importance)) == entry
