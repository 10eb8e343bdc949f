"""Proves that words inside sentences without spaces are found, in both stores, and that other text is as it was."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from modules.services.memory.admission import NewMemory, Query
from modules.services.memory.rows import MemoryStore

NOW = datetime(2026, 1, 5, tzinfo=UTC)
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
