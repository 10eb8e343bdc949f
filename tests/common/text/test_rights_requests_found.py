"""Proves that the pre-filter finds requests about people's own data, in labelled posts of many languages."""

import sys

import pytest

from common.text.rights_requests import also_asks_for_no_reply, kind_by_words, may_be_rights_request
from tests.labelled_posts import AskedCase, Split, asked_cases

CASES = asked_cases()
LEAST_RIGHT = 0.6
"""The least share of requests whose kind the words alone must tell, for people whose posts no model may read."""
LEAST_RECALL: dict[Split, float] = {"dev": 0.99, "held-out": 0.97}
MOST_PASSED = 0.7


def of_split(split: Split, *kinds: str) -> list[AskedCase]:
    return [case for case in CASES if case.split == split and case.kind in kinds]


ASKED = tuple({case.kind for case in CASES} - {"none"})


@pytest.mark.parametrize("split", LEAST_RECALL)
def test_nearly_all_requests_are_found(split: Split) -> None:
    requests, others = of_split(split, *ASKED), of_split(split, "none")
    missed = [case.text for case in requests if not may_be_rights_request(case.text)]
    passed = sum(may_be_rights_request(case.text) for case in others)
    sys.stdout.write(
        f"{split}: {len(missed)} of {len(requests)} missed; {passed} of {len(others)} look-alikes are read too\n"
    )
    assert len(missed) <= (1 - LEAST_RECALL[split]) * len(requests), missed
    assert passed <= MOST_PASSED * len(others)


@pytest.mark.parametrize("split", LEAST_RECALL)
def test_words_alone_tell_most_kinds(split: Split) -> None:
    right = [kind_by_words(case.text) == case.kind for case in of_split(split, *ASKED)]
    sys.stdout.write(f"{split}: words alone tell {sum(right)} of {len(right)} kinds\n")
    assert sum(right) >= LEAST_RIGHT * len(right)


@pytest.mark.parametrize("split", LEAST_RECALL)
def test_a_request_for_no_reply_is_found_beside_another_and_not_where_there_is_none(split: Split) -> None:
    asked = [also_asks_for_no_reply(case.text) for case in of_split(split, "no_reply")]
    assert sum(asked) >= LEAST_RIGHT * len(asked)
    assert not [case.text for case in of_split(split, "forget") if also_asks_for_no_reply(case.text)]
