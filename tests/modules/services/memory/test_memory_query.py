"""Proves that no text breaks the search, and that its words are split where the index splits them.

Proves with tables and properties what a new memory does to existing ones. Proves that words inside sentences without
spaces are found, and that all other text is found as before. Proves by which words a search is done, and which memory
comes first.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from common.clock import iso
from common.provenance import Trust
from modules.services.memory import policy
from modules.services.memory.admission import KINDS, Kind, Memory, NewMemory, Query
from modules.services.memory.policy import FEW, HELPERS, Candidate, SearchPlan, Term
from modules.services.memory.rows import TERMS_MAX, MemoryStore, folded, remember, search, words
from tests.exploration import examples
from tests.fresh_database import in_memory

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
        ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),  # noqa: RUF001 - the characters under test
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
def test_every_text_is_either_refused_or_fit_to_be_stored(
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


_ANY_SIGN = st.characters()
_SIGNS = list("\"'*^(){}:-+,|&!\\;% \0\ud800\ue000\ue001🦊ñ½ⅷᵀ")
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


@pytest.mark.parametrize("text", ["tea' | !x", "tea:* & (", "tea\\", "½ tea", "tea ⅷ", "%s tea %(x)s", "ᵀea tea"])
def test_a_word_is_found_beside_any_sign(rows: sqlite3.Connection, text: str) -> None:
    assert search(rows, Query(text), NOW)


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


TEA = "我们昨天在北京的茶馆里喝了一杯龙井茶。"
TOWER = "昨日は友達と東京タワーの展望台からﾎﾃﾙを見ました。"
RICE = "เมื่อวานนี้ฉันกินข้าวผัดกับเพื่อนที่กรุงเทพ"
CODE = "她用Python写了2026年的报告"
SENTENCES = {
    "tea": TEA,
    "tower": TOWER,
    "rice": RICE,
    "code": CODE,
    "library": "어제 서울에서 친구와 도서관에 갔다",
    "lao": "ຂ້ອຍມັກກິນເຂົ້າຫຼາຍ",
    "khmer": "ខ្ញុំចូលចិត្តញ៉ាំបាយនៅភ្នំពេញ",
    "burmese": "ကျွန်တော်ထမင်းစားတယ်",
    "plain": "We drank tea in a naïve café in 2026",
    "rare": "他姓𠮷田住在那里",
}


async def _kept(store: MemoryStore) -> None:
    for subject, body in SENTENCES.items():
        await store.save(NewMemory("fact", subject, body), NOW)


async def _subjects(store: MemoryStore, text: str) -> list[str]:
    return [memory.subject for memory in await store.search(Query(text, limit=20), NOW)]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("北京", "tea"),
        ("馆", "tea"),
        ("ホテル", "tower"),
        ("ข้าวผัด", "rice"),
        ("報告 Python", "code"),
        ("2026年", "code"),
        ("도서관", "library"),
        ("ເຂົ້າ", "lao"),
        ("បាយ", "khmer"),
        ("ထမင်း", "burmese"),
        ("𠮷田", "rare"),
        ("cafe", "plain"),
    ],
)
async def test_a_word_inside_a_sentence_is_found(store: MemoryStore, asked: str, expected: str) -> None:
    await _kept(store)
    assert (await _subjects(store, asked))[:1] == [expected]
    found = await store.search(Query(asked), NOW)
    assert found[0].body == SENTENCES[expected], "what is shown is what was written"


@pytest.mark.parametrize("asked", ["北馆", "ワタ", "ข้ากิน", "วข้า", "서관", "テルタ"])
async def test_characters_that_stand_apart_are_no_word(store: MemoryStore, asked: str) -> None:
    await _kept(store)
    for subject in await _subjects(store, asked):
        assert asked in SENTENCES[subject]


async def test_no_word_reaches_from_one_run_into_the_next(store: MemoryStore) -> None:
    await store.save(NewMemory("fact", "东", "京。都", ("茶", "馆")), NOW)
    for asked in ("东京", "京都", "都茶", "茶馆"):
        assert await _subjects(store, asked) == [], asked
    for asked in ("东", "京", "都", "茶", "馆"):
        assert await _subjects(store, asked) == ["东"], asked


async def test_a_question_finds_what_has_its_words_and_best_what_has_most_of_them(store: MemoryStore) -> None:
    await _kept(store)
    await store.save(NewMemory("fact", "port", "北京没有港口"), NOW)
    assert (await _subjects(store, "你昨天在北京的茶馆里喝过什么茶吗"))[:2] == ["tea", "port"]
    assert (await _subjects(store, "東京タワーはどこですか"))[0] == "tower"
    assert (await _subjects(store, "ฉันอยากกินข้าวผัด"))[0] == "rice"


RARE, SOME, MANY, MOST = Term("rare", 3), Term("some", 90), Term("many", 400), Term("most", 5000)


@pytest.mark.parametrize(
    ("terms", "total", "anchors", "common"),
    [
        ([MOST, RARE], 10_000, [RARE], [MOST]),
        ([MOST, MANY, SOME, RARE], 10_000, [RARE, SOME], [MANY, MOST]),
        ([SOME, MANY], 10_000, [SOME], [MANY]),
        ([MOST], 10_000, [], [MOST]),
        ([SOME, RARE], 100, [RARE], [SOME]),
        ([Term("nobody", 0), RARE], 100, [RARE], []),
        ([], 0, [], []),
    ],
)
def test_rare_words_anchor_a_search_and_common_ones_only_where_there_is_no_rarer(
    terms: list[Term], total: int, anchors: list[Term], common: list[Term]
) -> None:
    assert policy.plan(terms, total) == SearchPlan(tuple(anchors), tuple(common))


@given(st.lists(st.integers(0, 10**6), max_size=16), st.integers(0, 10**6))
def test_what_is_weighed_one_by_one_is_bounded_whatever_is_asked(counts: list[int], total: int) -> None:
    terms = [Term(str(number), count) for number, count in enumerate(counts)]
    plan = policy.plan(terms, total)
    assert sum(term.count for term in plan.anchors) <= FEW
    assert len(plan.common) <= HELPERS
    assert bool(plan.anchors or plan.common) == any(counts)
    assert len(policy.together(plan.common)) <= HELPERS + 2


@pytest.mark.parametrize(
    ("common", "groups"),
    [
        ((RARE,), [(RARE,)]),
        ((RARE, SOME), [(RARE, SOME), (RARE,), (SOME,)]),
        ((RARE, SOME, MANY), [(RARE, SOME, MANY), (RARE, SOME), (RARE,), (SOME,), (MANY,)]),
    ],
)
def test_common_words_are_sought_together_and_alone(common: tuple[Term, ...], groups: list[tuple[Term, ...]]) -> None:
    assert policy.together(common) == groups


@pytest.mark.parametrize(("days", "left"), [(0, 1.0), (-5, 1.0), (15, 0.5**0.5)])
def test_half_of_the_weight_is_left_after_thirty_days(days: int, left: float) -> None:
    assert policy.decay(iso(NOW - timedelta(days=days)), NOW) == pytest.approx(left)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_rarer_word_is_worth_more_and_no_word_is_worth_nothing(one: int, other: int, total: int) -> None:
    rarer, commoner = sorted((one, other))
    assert policy.rarity(rarer, max(total, other, one)) >= policy.rarity(commoner, max(total, other, one)) > 0


@given(
    st.lists(
        st.builds(
            Candidate,
            st.integers(1, 50),
            st.floats(0, 20),
            st.integers(1, 5),
            st.integers(-3, 800).map(lambda days: iso(NOW - timedelta(days=days))),
        ),
        max_size=60,
        unique_by=lambda one: one.id,
    ),
    st.integers(1, 20),
)
@settings(max_examples=examples(200))
def test_the_best_are_those_that_weighing_all_would_find(candidates: list[Candidate], limit: int) -> None:
    def merit(one: Candidate) -> tuple[float, str, int]:
        return one.weight * one.importance * policy.decay(one.updated_at, NOW), one.updated_at, one.id

    expected = [one.id for one in sorted(candidates, key=merit, reverse=True)[:limit]]
    assert policy.best(candidates, NOW, limit) == expected
