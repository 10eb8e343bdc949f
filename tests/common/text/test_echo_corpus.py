"""The corpus of echoes keeps its own rules, and the comparison of words finds in it what words can show."""

from collections import Counter

from common.constants import ENSEMBLE_ECHO_THRESHOLD
from common.text.closings import content_words
from common.text.echo import find_semantic_echo_ensemble, novelty_threshold
from common.text.measures import lcs_dice
from common.text.stems import simple_stem, tokenize_with_stemming
from tests.echo_corpus import STRATA, Pair, Stratum, corpus

PAIRS = corpus()
CONNECTIVES = """
    after again against always among another anybody anyone anything around because before between both during each
    early else enough even every everybody everyone everything far few first get give good better best give hardly here
    if keep last late later least less let little lot make many much must never next nobody nothing now often once other
    others otherwise ought over put quite rather say since somebody someone something still take tell these they those
    though two under unless until whatever when whenever whether while who whoever whom whose within without worse worst
    yet
"""
FORMS = frozenset(CONNECTIVES.split())


def content_stems(text: str) -> set[str]:
    return {simple_stem(word) for word in content_words(text) if word not in FORMS}


def found(pair: Pair) -> bool:
    stems = len(tokenize_with_stemming(pair.candidate))
    return find_semantic_echo_ensemble(
        pair.candidate, pair.peers, pair.peers, ENSEMBLE_ECHO_THRESHOLD, novelty_threshold(stems)
    ).is_echo


def share_found(stratum: Stratum) -> float:
    pairs = [pair for pair in corpus("held-out") if pair.stratum == stratum]
    return sum(map(found, pairs)) / len(pairs)


def test_every_stratum_is_large_and_in_both_halves() -> None:
    assert len(PAIRS) >= 600
    for split in ("dev", "held-out"):
        counts = Counter(pair.stratum for pair in PAIRS if pair.split == split)
        assert set(counts) == set(STRATA)
        assert min(counts.values()) >= 60


def test_no_topic_is_in_both_halves() -> None:
    assert len({pair.topic for pair in PAIRS}) == len({(pair.topic, pair.split) for pair in PAIRS}) >= 30


def test_nothing_stands_twice() -> None:
    assert len({pair.id for pair in PAIRS}) == len(PAIRS)
    candidates = Counter(pair.candidate for pair in PAIRS)
    assert max(candidates.values()) == 1
    for pair in PAIRS:
        assert len(set(pair.peers)) == len(pair.peers)
        assert pair.stratum == "verbatim" or pair.candidate not in pair.peers


def test_a_room_holds_two_to_six_messages_and_a_question() -> None:
    for pair in PAIRS:
        assert 2 <= len(pair.peers) <= 6
        assert 0 <= pair.source < len(pair.peers)
        assert pair.host.endswith("?")
        assert pair.is_echo == (pair.stratum in {"verbatim", "reordered", "synonym"})
    assert {len(pair.peers) for pair in PAIRS} == {2, 3, 4, 5, 6}


def test_the_same_in_other_words_shares_none_of_them_but_the_topic() -> None:
    for pair in PAIRS:
        if pair.stratum == "synonym":
            shared = content_stems(pair.candidate) & content_stems(pair.peers[pair.source])
            assert shared <= set(map(simple_stem, pair.topic_words)), (pair.id, shared)


def test_verbatim_and_reordered_keep_the_words_of_their_source() -> None:
    for pair in PAIRS:
        words, source = (tokenize_with_stemming(text) for text in (pair.candidate, pair.peers[pair.source]))
        if pair.stratum == "verbatim":
            assert lcs_dice(words, source) >= 0.8, pair.id
        if pair.stratum == "reordered":
            assert len(set(words) & set(source)) / len(set(source)) >= 0.6, pair.id
            assert words != source, pair.id


def test_words_alone_find_nearly_every_lexical_echo_and_nothing_else() -> None:
    assert share_found("verbatim") == 1
    assert share_found("reordered") >= 0.94
    assert share_found("new_point") + share_found("disagreement") <= 0.02


def test_words_alone_are_blind_to_synonyms() -> None:
    assert share_found("synonym") <= 0.1
