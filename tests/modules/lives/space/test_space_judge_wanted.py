"""A judge is wanted where several have answered the host and one more answer is due; elsewhere it is spared."""

import pytest

from common.text.echo import EnsembleEchoResult
from modules.lives.space.classifiers import judge_wanted, new_facts

ANSWERS = ("Turn the heap every fortnight, air keeps the smell away.", "Two buckets of dry leaves for one of scraps.")
MESSAGE = "Aerate the pile regularly; microbes need oxygen, otherwise everything starts to stink."
FAR = EnsembleEchoResult(is_echo=False, score=0.0, novelty=1.0, matched_message=None, strategy="none")
NEAR = EnsembleEchoResult(is_echo=False, score=0.4, novelty=0.3, matched_message=ANSWERS[0], strategy="none")
ECHO = EnsembleEchoResult(
    is_echo=True, score=0.9, novelty=0.1, matched_message=None, strategy="concept-novelty(10% new)"
)


def test_one_more_answer_to_the_same_words_is_judged_though_it_shares_no_word() -> None:
    wanted = judge_wanted(MESSAGE, ANSWERS, FAR, partners=2)
    assert (wanted.should, wanted.reason) == (True, "one more answer to the same words of the host")


@pytest.mark.parametrize(
    ("message", "answers", "echo", "partners", "reason"),
    [
        (MESSAGE, ANSWERS, ECHO, 2, "it is an echo already"),
        (MESSAGE, ANSWERS[:1], NEAR, 1, "too little was said to repeat"),
        (MESSAGE, ANSWERS[:1], FAR, 5, "few have answered the host yet"),
        ("Rebecca, how would you keep the rats out of it in winter?*", ANSWERS, FAR, 2, "it asks something"),
        ("Yes, more air.", ANSWERS, FAR, 2, "it is too short for a point"),
        (f"{MESSAGE} I measured 61.5 degrees.", ANSWERS, FAR, 2, "it brings a new figure, link or name of code"),
    ],
    ids=["echo", "lonely", "early", "question", "short", "fact"],
)
def test_a_judge_is_spared_where_none_is_needed(
    message: str, answers: tuple[str, ...], echo: EnsembleEchoResult, partners: int, reason: str
) -> None:
    wanted = judge_wanted(message, answers, echo, partners=partners)
    assert (wanted.should, wanted.reason) == (False, reason)


def test_words_that_come_near_are_judged_however_few_have_answered() -> None:
    assert judge_wanted("More air, please?", (), NEAR, partners=2).should


def test_a_fact_is_new_only_once() -> None:
    said = ["See #12 and https://example.org/a, it took 3.5 s in `load`."]
    told = "In #12 and #13, https://example.org/b took 3.5 s and 4 s, not `load` but `save`."
    assert new_facts(told, said) == ("#13", "https://example.org/b", "4", "`save`")
    assert new_facts(told, [*said, told]) == ()
