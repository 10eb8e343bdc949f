"""Leaves out commitments that are not ours to make. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from adapters.space.types import Claimed
from common.schemas import Commitment, CommitmentType
from modules.lives.space.asked import requested_type
from modules.lives.space.names import shown
from modules.lives.space.requests import is_open
from modules.lives.space.targets import claim_target, rival_claim, same_target
from modules.lives.space.types import Deed, HostRequest

NON_OWNER = "[VALIDATION REJECTED] Non-owner action"
SOCIAL_ONLY = "[VALIDATION REJECTED] Social-only"
CLAIMED = "[VALIDATION REJECTED] Claimed by a peer"
MADE = "[VALIDATION REJECTED] Made already"

_MADE_BY_OWNER: frozenset[CommitmentType] = frozenset({"create_issue", "create_plan"})


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A commitment that may not be made; `signature` begins its log line, `reason` is for people."""

    commitment: Commitment
    signature: str
    reason: str


@dataclass(frozen=True, slots=True)
class Filtered:
    """What may be promised, in the order given, and what may not."""

    kept: tuple[Commitment, ...]
    left_out: tuple[LeftOut, ...]


def made_once(wish: str) -> frozenset[CommitmentType]:
    """What only one agent makes for this wish of the host: whatever is new on GitHub, and just what was asked for."""
    return _MADE_BY_OWNER | {requested_type(wish)} if wish else _MADE_BY_OWNER


def owned_only(commitments: Iterable[Commitment], request: HostRequest, *, is_owner: bool) -> Filtered:
    """While a request of the host is open, only its owner makes the thing; others may add what was not asked for."""
    barred = made_once(request.content) if is_open(request) and not is_owner else frozenset()

    def why(commitment: Commitment) -> tuple[str, str] | None:
        if commitment.type in barred:
            return NON_OWNER, f"{commitment.type}: somebody else was elected to act on the host's request"
        return None

    return _sorted_out(commitments, why)


def not_twice(
    commitments: Iterable[Commitment], default_repo: str | None, deeds: Iterable[Deed], *, wish: str = "", met: bool
) -> Filtered:
    """One artefact for one `wish`: nothing new is made for one that is `met`, nor what a peer has made lately."""
    made, kinds = tuple(deed for deed in deeds if deed.kind == "success"), made_once(wish)

    def why(commitment: Commitment) -> tuple[str, str] | None:
        if commitment.type not in kinds:
            return None
        if met:
            return MADE, f"{commitment.type}: the host's wish is taken care of"
        target = claim_target(commitment, default_repo)
        twin = next((one for one in made if one.action == commitment.type and same_target(one.target, target)), None)
        return (MADE, f"{shown(twin.name)} has made {twin.target}") if twin else None

    return _sorted_out(commitments, why)


def social_only_filter(commitments: Iterable[Commitment], *, social_only: bool) -> Filtered:
    """Without GitHub nothing on GitHub is promised."""

    def why(commitment: Commitment) -> tuple[str, str] | None:
        return (SOCIAL_ONLY, f"Social-only: {commitment.type}") if social_only and commitment.is_github else None

    return _sorted_out(commitments, why)


def unclaimed(commitments: Iterable[Commitment], default_repo: str | None, claims: Iterable[Claimed]) -> Filtered:
    """Without what a peer is at; `claims` are the live ones of peers."""
    live = tuple(claims)

    def why(commitment: Commitment) -> tuple[str, str] | None:
        rival = rival_claim(commitment, default_repo, live)
        return (CLAIMED, f"{shown(rival.name)} works at {rival.target}") if rival else None

    return _sorted_out(commitments, why)


def allowed(commitments: Iterable[Commitment], request: HostRequest, *, is_owner: bool, social_only: bool) -> Filtered:
    """What this life may promise now. To be asked of everything a model commits to, however it came."""
    first = social_only_filter(commitments, social_only=social_only)
    second = owned_only(first.kept, request, is_owner=is_owner)
    return Filtered(second.kept, first.left_out + second.left_out)


def _sorted_out(commitments: Iterable[Commitment], why: Callable[[Commitment], tuple[str, str] | None]) -> Filtered:
    kept: list[Commitment] = []
    left_out: list[LeftOut] = []
    for commitment in commitments:
        found = why(commitment)
        if found is None:
            kept.append(commitment)
        else:
            left_out.append(LeftOut(commitment, *found))
    return Filtered(tuple(kept), tuple(left_out))
