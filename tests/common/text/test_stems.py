"""What is compared of a message: its telling words, cut to stems."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.echo import STOPWORDS, plain_words, simple_stem, tokenize_for_comparison
from tests.exploration import examples

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
