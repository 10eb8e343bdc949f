"""Text is counted, cut and hashed as members written in JavaScript do it."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.utf16 import base36, hash31, u16_len, u16_slice
from tests.exploration import examples

PALETTE = "\U0001f3a8"
ANY_TEXT = st.text(st.characters(), max_size=40)


@pytest.mark.parametrize(("text", "units"), [("", 0), ("abc", 3), ("é", 1), ("你好", 2), (PALETTE, 2), ("\ud83c", 1)])
def test_a_sign_beyond_the_first_plane_counts_two(text: str, units: int) -> None:
    assert u16_len(text) == units


def test_a_pair_that_the_cut_splits_is_told_by_a_replacement_sign() -> None:
    assert u16_slice(f"a{PALETTE}b", 2) == "a\ufffd"
    assert u16_slice(f"a{PALETTE}b", 3) == f"a{PALETTE}"
    assert u16_slice(f"a{PALETTE}b", 99) == f"a{PALETTE}b"
    assert u16_slice("abc", 0) == u16_slice("abc", -1) == ""


@pytest.mark.parametrize(("units", "begins"), [(100, "3de43f6caf237be7"), (50, "dfa736f6")])
def test_an_election_by_hash_comes_out_as_it_does_for_the_others(units: int, begins: str) -> None:
    words = "a" + 60 * PALETTE
    assert hashlib.sha256(f"marvin{u16_slice(words, units)}".encode()).hexdigest().startswith(begins)


@pytest.mark.parametrize(
    ("name", "value"), [("host", 3208616), ("marvin", 1081295363), ("rebecca", 1081361035), ("peterben", 487571199)]
)
def test_a_name_is_hashed_as_it_is_by_the_others(name: str, value: int) -> None:
    assert abs(hash31(name)) == value


def test_a_hash_is_written_with_its_sign_in_base_36() -> None:
    assert base36(hash31("abc")) == "22ci"
    assert base36(0) == "0"
    assert base36(-35) == "-z"


@given(ANY_TEXT, st.integers(0, 90))
@settings(max_examples=examples(100), deadline=None)
def test_a_slice_is_never_longer_than_asked_and_can_always_be_encoded(text: str, units: int) -> None:
    cut = u16_slice(text, units)
    assert u16_len(cut) == min(units, u16_len(text))
    assert u16_slice(cut, units) == cut
    assert cut.encode().decode() == cut


@given(st.integers(-(10**12), 10**12))
@settings(max_examples=examples(100), deadline=None)
def test_base_36_is_read_back_by_the_language_itself(number: int) -> None:
    assert int(base36(number), 36) == number
