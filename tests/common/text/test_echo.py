"""What repeats the room is found by its words, as the reference finds it, and as fast as a room needs it."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.echo import (
    EnsembleEchoResult,
    find_said_already,
    find_semantic_echo,
    find_semantic_echo_ensemble,
    novelty_threshold,
    semantic_similarity,
)
from common.text.measures import (
    concept_novelty,
    lcs_dice,
    lcs_length,
)
from common.text.stems import tokenize_with_stemming
from tests.common.text.textbook import compute_idf, cosine_similarity, tfidf_vector
from tests.exploration import examples

BACKUPS = "Nightly backups should verify checksums before rotating archives"
REVIEWS = "Design reviews feel rushed lately"
WORDS = "rain garden water soil beds seeds compost mulch worms frost roots leaves shade light bees hedge path gate"
STEMS = st.lists(st.sampled_from("abcdef"), max_size=12)
MESSAGE = st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join)
ROOM = st.lists(MESSAGE, max_size=6)


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
    assert concept_novelty(tokenize_with_stemming("Yes, the cache key"), map(tokenize_with_stemming, room)) == 0
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
    assert [novelty_threshold(stems) for stems in (3, 24, 25, 200)] == [0.15, 0.15, 0.25, 0.25]


def test_the_older_measure_stops_at_the_first_that_is_similar() -> None:
    first, second = "verify backups every night please", "verify backups every single night"
    assert find_semantic_echo("verify backups every night", [REVIEWS, first, second], 0.6).matched_message == first
    none = find_semantic_echo("verify backups every night", [REVIEWS], 0.6)
    assert (none.is_echo, none.score, none.matched_message) == (False, 0.0, None)
    near = find_semantic_echo("verify backups rarely, monthly", [REVIEWS, first], 0.6)
    assert (near.is_echo, near.matched_message) == (False, first)
    assert semantic_similarity("verify backups", "verify backups") == 0


def test_novelty_takes_stems_or_texts_and_counts_repeats() -> None:
    assert concept_novelty(["a", "b", "b", "c"], [["a"], ["c", "d"]]) == concept_novelty(
        ["a", "b", "b", "c"], {"a", "c"}
    )
    assert concept_novelty(["a", "b", "b", "c"], {"a", "c"}) == 0.5
    assert concept_novelty([], {"a"}) == 1


@given(STEMS, STEMS)
@settings(max_examples=examples(150), deadline=None)
def test_the_common_subsequence_is_that_of_the_textbook(first: list[str], second: list[str]) -> None:
    rows = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            rows[i + 1][j + 1] = rows[i][j] + 1 if one == other else max(rows[i][j + 1], rows[i + 1][j])
    assert lcs_length(first, second) == rows[-1][-1]


def plainly(message: str, peers: Sequence[str], pool: Sequence[str], near: float, new: float) -> EnsembleEchoResult:
    """The definition, step by step."""
    stems, texts = tokenize_with_stemming(message), [tokenize_with_stemming(text) for text in pool]
    nothing = EnsembleEchoResult(is_echo=False, score=0.0, novelty=1.0, matched_message=None, strategy="none")
    if len(stems) < 3:
        return nothing
    weights = compute_idf([stems, *texts])
    novelty = concept_novelty(stems, texts)
    stale = EnsembleEchoResult(True, 1 - novelty, novelty, None, f"concept-novelty({round(novelty * 100)}% new)")  # noqa: FBT003
    short = len(stems) < 6
    if novelty < new and not short:
        return stale
    best, nearest = 0.0, None
    for peer in peers:
        other = tokenize_with_stemming(peer)
        if len(other) < 3:
            continue
        dice = lcs_dice(stems, other)
        cosine = cosine_similarity(tfidf_vector(stems, weights), tfidf_vector(other, weights))
        score = 0.4 * dice + 0.6 * cosine
        if score > best:
            best, nearest = score, peer
        replaced = stems[-1] not in other and other[-1] not in stems
        if score >= (max(near, 0.70) if short else near) and not (short and (novelty < new or replaced)):
            strategy = f"ensemble(lcs={dice:.2f},tfidf={cosine:.2f})"
            return EnsembleEchoResult(True, score, novelty, peer, strategy)  # noqa: FBT003
    if short and novelty < new and best >= 0.35:
        return EnsembleEchoResult(True, 1 - novelty, novelty, nearest, stale.strategy)  # noqa: FBT003
    return EnsembleEchoResult(False, best, novelty, nearest, "none")  # noqa: FBT003


@given(MESSAGE, ROOM, st.integers(0, 6), st.sampled_from([0.371, 0.523, 0.801]), st.sampled_from([0.0, 0.15, 0.25]))
@settings(max_examples=examples(300), deadline=None)
@pytest.mark.slow
def test_the_fast_way_finds_what_the_plain_definition_finds(
    message: str, room: list[str], last: int, near: float, new: float
) -> None:
    peers = room[-last:] if last else ["hedge gate path water", "compost"]
    fast = find_semantic_echo_ensemble(message, peers, room, near, new)
    plain = plainly(message, peers, room, near, new)
    assert (fast.is_echo, fast.novelty) == (plain.is_echo, plain.novelty)
    assert fast.score == pytest.approx(plain.score, abs=1e-9)
    assert (fast.strategy == "none") == (plain.strategy == "none")
    if fast.matched_message != plain.matched_message:
        one, other = (
            find_semantic_echo_ensemble(message, [text or ""], room, 2, new)
            for text in (fast.matched_message, plain.matched_message)
        )
        assert one.score == pytest.approx(other.score, abs=1e-9)


@given(st.lists(MESSAGE, min_size=6, max_size=14), st.integers(1, 5))
@settings(max_examples=examples(100), deadline=None)
def test_a_room_that_moves_on_is_compared_as_one_that_is_read_anew(messages: list[str], size: int) -> None:
    for end in range(size, len(messages)):
        room = messages[end - size : end]
        fast, plain = (way(messages[end], room, room, 0.523, 0.15) for way in (find_semantic_echo_ensemble, plainly))
        assert (fast.is_echo, fast.novelty) == (plain.is_echo, plain.novelty)
        assert fast.score == pytest.approx(plain.score, abs=1e-9)


NAMES = ("petra", "hale")


def test_the_same_words_are_the_same_whoever_they_speak_to() -> None:
    said = ["petra, Leave it, as with glue.", "hale: a flywheel."]
    assert not find_semantic_echo_ensemble("hale: leave it as with glue", said, said, names=NAMES).is_echo
    assert find_said_already("hale: leave it as with glue", said, NAMES) == said[0]
    assert find_said_already("Leave it, as with paint.", said, NAMES) is None


def test_a_word_or_two_may_be_said_by_everybody() -> None:
    assert find_said_already("petra, yes please", ["Yes, please.", "yes"], NAMES) is None
