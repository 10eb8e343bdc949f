"""Proves which experiences a reflection is shown, and what a change of SELF.md must rest on."""

from collections.abc import Sequence

import pytest

from common.provenance import Trust
from modules.lives.growth.policy import objection, shown
from modules.services.experiences import Experience


def cited(*of: tuple[Trust, str]) -> list[Experience]:
    return [
        Experience("learned_something", "bluesky", f"k{place}", did=did, trust=trust, id=place)
        for place, (trust, did) in enumerate(of)
    ]


_Of = Sequence[tuple[Trust, str]]
OWN, OWNER = ("self", ""), ("owner", "")
ADA, BEA, WREN = ("stranger", "did:plc:ada"), ("stranger", "did:plc:bea"), ("peer", "did:plc:wren")


@pytest.mark.parametrize("of", [(OWN,), (OWNER,), (ADA, BEA), (ADA, WREN), (ADA, OWNER), (OWN, ADA, BEA)])
def test_the_owner_own_doing_and_two_others_are_enough(of: tuple[tuple[Trust, str], ...]) -> None:
    assert objection("", "- I keep it short.", cited(*of)) is None


@pytest.mark.parametrize("of", [(ADA,), (ADA, ADA), (WREN,), (OWN, ADA), (OWN, WREN, WREN)])
def test_one_other_is_one_source_also_beside_own_doing(of: tuple[tuple[Trust, str], ...]) -> None:
    assert objection("", "- I keep it short.", cited(*of)) == "One Source"


@pytest.mark.parametrize(
    ("gathered", "seen"),
    [
        ((OWN, OWNER), (OWN, OWNER)),
        ((OWN, OWNER, ADA, ADA), (OWN, OWNER)),
        ((OWN, WREN, ("peer", ""), ("stranger", "")), (OWN,)),
        ((OWN, ADA, WREN, ("peer", "")), (OWN, ADA, WREN, ("peer", ""))),
    ],
)
def test_one_person_alone_is_left_out(gathered: _Of, seen: _Of) -> None:
    assert [(one.trust, one.did) for one in shown(cited(*gathered))] == list(seen)
