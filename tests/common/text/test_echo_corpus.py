"""The corpus of echoes keeps its own rules, and the comparison of words finds in it what words can show."""

from common.constants import ENSEMBLE_ECHO_THRESHOLD
from common.text.echo import find_semantic_echo_ensemble, novelty_threshold
from common.text.stems import tokenize_with_stemming
from tests.echo_corpus import Pair, Stratum, corpus


def found(pair: Pair) -> bool:
    stems = len(tokenize_with_stemming(pair.candidate))
    return find_semantic_echo_ensemble(
        pair.candidate, pair.peers, pair.peers, ENSEMBLE_ECHO_THRESHOLD, novelty_threshold(stems)
    ).is_echo


def share_found(stratum: Stratum) -> float:
    pairs = [pair for pair in corpus("held-out") if pair.stratum == stratum]
    return sum(map(found, pairs)) / len(pairs)


def test_words_alone_find_nearly_every_lexical_echo_and_nothing_else() -> None:
    assert share_found("verbatim") == 1
    assert share_found("reordered") >= 0.93
    assert share_found("new_point") + share_found("disagreement") <= 0.02


def test_words_alone_are_blind_to_synonyms() -> None:
    assert share_found("synonym") <= 0.1
