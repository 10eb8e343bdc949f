"""Proves that a message that repeats the room is found by its words, whoever it speaks to.

Tests of what is compared of a message: its telling words, cut to stems.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.echo import (
    STOPWORDS,
    EnsembleEchoResult,
    find_said_already,
    find_semantic_echo,
    find_semantic_echo_ensemble,
    lcs_length,
    plain_words,
    semantic_similarity,
    simple_stem,
    tokenize_for_comparison,
)
from tests.exploration import examples

BACKUPS = "Nightly backups should verify checksums before rotating archives"
REVIEWS = "Design reviews feel rushed lately"
STEMS = st.lists(st.sampled_from("abcdef"), max_size=12)


def ensemble(message: str, peers: Sequence[str]) -> EnsembleEchoResult:
    return find_semantic_echo_ensemble(message, peers, peers, 0.52, 0.15)


def test_a_message_of_known_words_only_says_nothing_new() -> None:
    room = ["Verify checksums before rotating backups every night", REVIEWS]
    found = ensemble(BACKUPS, room)
    assert (found.is_echo, found.strategy, found.matched_message) == (True, "concept-novelty(14% new)", None)
    assert (round(found.score, 6), round(found.novelty, 6)) == (0.857143, 0.142857)
    assert semantic_similarity(BACKUPS, room[0]) == pytest.approx(0.571429, abs=1e-6)


def test_two_words_are_never_an_echo_and_an_empty_room_has_none() -> None:
    assert ensemble("checksums archives", [BACKUPS]) == EnsembleEchoResult(
        is_echo=False, score=0.0, novelty=1.0, matched_message=None, strategy="none"
    )
    assert ensemble(BACKUPS, []) == EnsembleEchoResult(
        is_echo=False, score=0.0, novelty=1.0, matched_message=None, strategy="none"
    )


def test_a_short_answer_in_the_words_of_the_room_may_be_given() -> None:
    room = [
        "The cache key should carry the tenant, otherwise two customers read one another's pages after a deploy",
        "Yes, eviction by age keeps memory flat even when traffic doubles over the weekend",
    ]
    assert ensemble("Yes, the cache key", room).novelty == 0
    assert not ensemble("Yes, the cache key", room).is_echo


def test_a_short_repetition_is_still_an_echo() -> None:
    found = ensemble("Verify checksums every night", ["We verify checksums every night", REVIEWS])
    assert (found.is_echo, found.matched_message) == (True, "We verify checksums every night")
    assert found.strategy == "concept-novelty(0% new)"


def test_names_do_not_make_a_message_new_nor_near() -> None:
    room = ["Verify checksums before rotating backups every night", REVIEWS]
    called = "Rebecca, Peterben, Marvin: verify checksums before rotating backups"
    names = ("marvin", "rebecca", "peterben")
    assert find_semantic_echo_ensemble(called, room, room, 0.99, 0.15).is_echo is False
    assert find_semantic_echo_ensemble(called, room, room, 0.99, 0.15, names=names).is_echo is True


def test_what_is_said_in_chinese_can_be_repeated() -> None:
    said = "我们应该先修复缓存的键然后再发布新的版本"
    assert ensemble(said, [said, REVIEWS]).is_echo
    assert not ensemble("天气预报说明天会下雨所以花园不用浇水", [said, REVIEWS]).is_echo


def test_a_long_message_must_bring_a_larger_share_of_new_words() -> None:
    words = [f"word{number}x" for number in range(25)]
    room = [" ".join(words[:20])]
    assert not find_semantic_echo_ensemble(" ".join(words[:24]), room, room, 0.99).is_echo
    assert find_semantic_echo_ensemble(" ".join(words), room, room, 0.99).is_echo


def test_the_older_measure_stops_at_the_first_that_is_similar() -> None:
    first, second = "verify backups every night please", "verify backups every single night"
    assert find_semantic_echo("verify backups every night", [REVIEWS, first, second], 0.6).matched_message == first
    none = find_semantic_echo("verify backups every night", [REVIEWS], 0.6)
    assert (none.is_echo, none.score, none.matched_message) == (False, 0.0, None)
    near = find_semantic_echo("verify backups rarely, monthly", [REVIEWS, first], 0.6)
    assert (near.is_echo, near.matched_message) == (False, first)
    assert semantic_similarity("verify backups", "verify backups") == 0


@given(STEMS, STEMS)
@settings(max_examples=examples(150), deadline=None)
def test_the_common_subsequence_is_that_of_the_textbook(first: list[str], second: list[str]) -> None:
    rows = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            rows[i + 1][j + 1] = rows[i][j] + 1 if one == other else max(rows[i][j + 1], rows[i + 1][j])
    assert lcs_length(first, second) == rows[-1][-1]


NAMES = ("petra", "hale")


def test_the_same_words_are_the_same_whoever_they_speak_to() -> None:
    said = ["petra, Leave it, as with glue.", "hale: a flywheel."]
    assert not find_semantic_echo_ensemble("hale: leave it as with glue", said, said, names=NAMES).is_echo
    assert find_said_already("hale: leave it as with glue", said, NAMES) == said[0]
    assert find_said_already("Leave it, as with paint.", said, NAMES) is None


def test_a_word_or_two_may_be_said_by_everybody() -> None:
    assert find_said_already("petra, yes please", ["Yes, please.", "yes"], NAMES) is None


GOLDEN = """
    creating:creat created:creat create:creat creation:crea hopping:hop stopped:stop rolling:roll passes:pass
    classes:class caching:cach cached:cach cache:cach tries:tri improvements:improv happiness:happi business:busi
    readable:read visible:vis massive:mass quickly:quick bus:bus analysis:analysis discussion:discus statement:stat
    sing:sing bed:bed running:run issues:issu notes:not goes:goe fuzzing:fuzz missing:miss moment:moment nation:nation
    it:it owl:owl grateful:grat
"""


@pytest.mark.parametrize("pair", GOLDEN.split())
def test_a_word_has_the_stem_that_every_member_gives_it(pair: str) -> None:
    word, stem = pair.split(":")
    assert simple_stem(word) == stem


@given(st.text("abcdefgilmnorstuvy", max_size=14))
@settings(max_examples=examples(200), deadline=None)
def test_a_stem_is_a_beginning_of_its_word(word: str) -> None:
    stem = simple_stem(word)
    assert word.startswith(stem) or (stem.endswith("i") and word.startswith(stem[:-1]))
    assert len(stem) >= min(len(word), 2)


def test_letters_of_every_script_are_kept_and_marks_vanish() -> None:
    words = tokenize_for_comparison("I don't think the café's cache_key 42 is x-ray ready — 你好 OK!")
    assert words == ["dont", "think", "cafés", "cache_key", "42", "xray", "ready", "你好", "ok"]


def test_the_same_letter_composed_or_not_is_the_same() -> None:
    assert tokenize_for_comparison("cafe\u0301 \uff37ide") == tokenize_for_comparison("café wide") == ["café", "wide"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我们修改缓存", ["我们", "们修", "修改", "改缓", "缓存"]),
        ("API设计", ["api", "设计"]),
        ("キャッシュ", ["キャ", "ャッ", "ッシ", "シュ"]),
        ("サーバー", ["サー", "ーバ", "バー"]),
        ("ตลาด", ["ตล", "ลา", "าด"]),
    ],
    ids=["han", "mixed", "katakana", "long-vowel", "thai"],
)
def test_writing_without_spaces_is_taken_in_pairs(text: str, words: list[str]) -> None:
    assert tokenize_for_comparison(text) == words


@pytest.mark.parametrize(
    "link", ["https://example.org/a_b?c=1", "http://x.example", "www.example.org", "github.com/acme/site"]
)
def test_a_link_is_not_compared(link: str) -> None:
    assert tokenize_for_comparison(f"see {link} today") == ["see", "today"]


@pytest.mark.parametrize(
    "called", ["@Marvin", "marvin", "MARVIN's", "Marvin\u2019s", "@sh-marvin", "sh-marvin,", "Dr. No"]
)
def test_names_of_those_who_speak_are_not_compared(called: str) -> None:
    names = ("Marvin", "sh-marvin", "Dr. No")
    assert tokenize_for_comparison(f"well {called} waters roses", names) == ["well", "waters", "roses"]


def test_a_name_inside_a_word_stays() -> None:
    assert tokenize_for_comparison("bobsled for bob", ("Bob",)) == ["bobsled"]
    assert tokenize_for_comparison("bobsled for bob", ("", " ")) == ["bobsled", "bob"]


def test_plain_words_are_all_words_but_those_who_are_spoken_to() -> None:
    assert plain_words("Petra: leave it, as with glue.", ("petra",)) == ["leave", "it", "as", "with", "glue"]


@given(st.text(max_size=60))
@settings(max_examples=examples(200), deadline=None)
def test_nothing_empty_short_or_common_is_compared(text: str) -> None:
    for word in tokenize_for_comparison(text):
        assert len(word) > 1
        assert word not in STOPWORDS
        assert not any(char.isspace() for char in word)
