"""Proves that no text trips the search, and that its words are split where the index splits them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from modules.services.memory.admission import KINDS, NewMemory, Query
from modules.services.memory.rows import TERMS_MAX, MemoryStore, folded, remember, search, words
from tests.exploration import examples
from tests.fresh_database import in_memory

NOW = datetime(2026, 1, 5, tzinfo=UTC)
_ANY_SIGN = st.characters()
_SIGNS = list("\"'*^(){}:-+,|&!\\;% \0\ud800\ue000\ue001🦊ñ")
_SYNTAX = st.sampled_from([*_SIGNS, "<->", "%s", "AND", "OR", "NOT", "NEAR(", "subject", "shelf", "東京", "tea"])
_ASKED = st.one_of(st.text(_ANY_SIGN, max_size=60), st.lists(_SYNTAX, max_size=12).map("".join))


@pytest.fixture(scope="module")
def rows() -> Iterator[sqlite3.Connection]:
    with closing(in_memory()) as connection:
        for number, kind in enumerate(KINDS):
            remember(connection, NewMemory(kind, f"subject {number}", f"tea OR coffee AND {kind}"), NOW)
        yield connection


@given(text=_ASKED)
@example(text='tea" OR "')
@example(text="tea* NEAR(tea)")
@example(text="\ud800\0\U0010ffff")
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_trips_the_search(rows: sqlite3.Connection, text: str) -> None:
    for asked in (Query(text), Query(text, kinds=["fact"], since=NOW, public_only=True)):
        found = search(rows, asked, NOW)
        if not words(text):
            assert found


@pytest.mark.parametrize("text", ["\ue000", "shelf:fact", "\ue000 \ue001"])
def test_the_shelf_cannot_be_asked_for(rows: sqlite3.Connection, text: str) -> None:
    assert not any(sign in "".join(words(text)) for sign in "\ue000\ue001")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Tea, tea and TEA", ["and", "TEA"]),
        ("don't", ["don", "t"]),
        ("東京タワー 2026", ["東京タワー", "2026"]),
        ("a\0b\ud800c", ["a", "b", "c"]),
    ],
)
def test_words_are_letters_and_digits(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_of_many_words_the_longest_are_asked_for_and_always_the_last() -> None:
    many = ["x" * size for size in range(40, 1, -1)]
    assert words(" ".join([*many, "y"])) == [*many[: TERMS_MAX - 1], "y"]


@given(st.text(_ANY_SIGN, max_size=80))
@settings(max_examples=examples(200))
def test_folding_is_done_once_and_for_all(text: str) -> None:
    once = folded(text)
    assert folded(once) == once
    assert not set("'\"\\:*&|!()\0") & set(once)


@pytest.fixture
async def with_tea(store: MemoryStore) -> MemoryStore:
    await store.save(NewMemory("fact", "tea", "Tea grows on hills"), NOW)
    return store


async def test_what_trips_a_parser_trips_neither_store(with_tea: MemoryStore) -> None:
    for text in (
        "tea' | !x",
        "tea:* & (",
        "tea\\",
        "'tea'",
        "½ tea",
        "tea ⅷ",
        "%s tea %(x)s",
        "tea \ud800\0",
        "ᵀea tea",
    ):
        assert [memory.subject for memory in await with_tea.search(Query(text), NOW)] == ["tea"], text
    for text in ("'", "\\", ":*", "½", "ⅷ", "!", "%s", "%(x)s"):
        await with_tea.search(Query(text), NOW)
