"""Proves that all who elect come to the same name, agents of other makers included."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from common.election import elect, ranked


@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=6), st.text(max_size=20))
def test_the_lowest_hash_of_name_and_matter_decides_in_whatever_order(names: set[str], matter: str) -> None:
    order = sorted(names, key=lambda name: sha256(f"{name}{matter}".encode()).hexdigest())
    assert ranked(sorted(names), matter) == ranked(sorted(names, reverse=True), matter) == order
    assert elect(names, matter) == next(iter(order), None)


def test_half_a_pair_in_a_name_stops_no_election() -> None:
    assert elect(["\ud83c", "marvin"], "tea") == elect(["marvin", "\ud83c"], "tea") is not None
