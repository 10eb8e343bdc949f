"""Leaves out commitments that are not ours to make, and says in which repository the others belong. Pure.

A commitment on GitHub is kept only in a repository that somebody in the talk has named: a small model writes down a
repository that it read in an example, and a large one may invent a likely name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import regex

from adapters.space.types import Claimed
from common.schemas import Commitment, CommitmentType
from modules.lives.space.host_request import is_open
from modules.lives.space.request_parser import claim_target, requested_type, rival_claim, same_target
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.transcript import shown
from modules.lives.space.types import HostRequest, PeerEvent

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


def drop_already_made(
    commitments: Iterable[Commitment],
    default_repo: str | None,
    peer_events: Iterable[PeerEvent],
    *,
    wish: str = "",
    met: bool,
) -> Filtered:
    """One artefact for one `wish`: nothing new is made for one that is `met`, nor what a peer has made lately."""
    made, kinds = tuple(event for event in peer_events if event.kind == "success"), made_once(wish)

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


UNNAMED = "[VALIDATION REJECTED] Unnamed repository"

_REFUSED = regex.compile(
    r"\b(?:not|never|no|nor|neither|cannot|\w+n['\u2019]t|dont|except|without|avoid|instead of|rather than|unless|stop"
    r"|nicht|kein\w{0,2}|nie|niemals|pas|jamais|nunca|não|non|не|нет|никогда)\b|[不别別勿]",
    regex.IGNORECASE,
)
_REPORTED = regex.compile(
    r"\A\W*+(?:[\w@'\u2019-]++\s++){1,3}(?:says|said|wrote|writes|tells|told|asks|asked|wants|claims|claimed|suggests"
    r"|suggested|quotes|quoted)\b|\baccording to\b",
    regex.IGNORECASE,
)
_QUOTATION = regex.compile(
    r"""^[ \t]*>[^\n]*|"[^"]*"?|[\u201c\u201e][^\u201c\u201d]*[\u201c\u201d]?|\u00ab[^\u00bb]*\u00bb?"""
    r"""|(?<!\w)['\u2018][^'\u2018\u2019\n]*['\u2019]""",
    regex.MULTILINE,
)
_SENTENCE = regex.compile(r"[.!?;][)\]]*(?=\s)|\n")
_LINK = r"(?<![\w./@:-])(?:https?://|ssh://git@|git@)?(?:www\.)?github\.com[/:]"
_IN = r"\b(?:in|into|on|to|for|against|under|repo|repository|repo is|repository is)[ \t]{1,3}[`(\[*_]{0,3}"


def assign_repo(commitments: Iterable[Commitment], snapshot: RoomSnapshot) -> Filtered:
    """The commitments, in the repository of the talk where nobody named theirs; left out where there is none."""
    kept: list[Commitment] = []
    left_out: list[LeftOut] = []
    for one in commitments:
        if not one.is_github or (one.repo and is_named(one.repo, snapshot)):
            kept.append(one)
        elif snapshot.repo:
            kept.append(one.model_copy(update={"repo": snapshot.repo}))
        else:
            reason = f"nobody named {one.repo}" if one.repo else "no repository is known"
            left_out.append(LeftOut(one, UNNAMED, f"{one.type}: {reason}"))
    return Filtered(tuple(kept), tuple(left_out))


def named_by_host(snapshot: RoomSnapshot, repo: str = "") -> bool:
    """Whether a repository, else that of the talk, is where the host wants the work; a guest may have named its own.

    Without the host's word the talk itself is not carried there: who speaks in a room does not speak to everybody.
    The newest message of the host that speaks of it decides. In doubt it is not named, and its owner is asked.
    """
    wanted = repo or snapshot.repo
    if not wanted:
        return False
    verdicts = (_wants(entry.content, wanted) for entry in reversed(snapshot.history) if entry.is_host)
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _wants(text: str, repo: str) -> bool | None:
    """Whether the writer wants work in `owner/name`; False if a sentence refuses or reports it, None if none names it.

    It is named by its address on github.com, as `owner/name#3`, alone in a sentence, or where a word before or after
    says that it is a place: two words with a stroke between them are more often something else, or a path.
    """
    own = _QUOTATION.sub(" ", text)
    sentences = [one for one in _SENTENCE.split(own) if _mentions(one, repo)]
    if any(_REFUSED.search(_without(one, repo)) or _REPORTED.search(_without(one, repo)) for one in sentences):
        return False
    if any(_is_place(one, repo) for one in sentences):
        return True
    return False if _mentions(text, repo) and not sentences else None


def _mentions(text: str, repo: str) -> bool:
    return repo.casefold() in text.casefold()


def _without(sentence: str, repo: str) -> str:
    """The sentence without the name, whose own words refuse nothing."""
    return regex.sub(regex.escape(repo), " ", sentence, flags=regex.IGNORECASE)


def _is_place(sentence: str, repo: str) -> bool:
    name = rf"{regex.escape(repo)}(?:\.git)?"
    end = r"(?![\w@/-]|\.\w)"
    bare = rf"(?<![\w./@:-]){name}"
    forms = (
        rf"{_LINK}{name}(?![\w@-]|\.\w)",
        rf"{bare}#\d",
        rf"{bare}{end}[`)\]*_]{{0,3}}[ \t]{{1,3}}repo(?:sitory)?\b",
        rf"{_IN}{name}{end}",
        rf"\A\W*{name}{end}\W*\Z",
    )
    return any(regex.search(form, sentence, regex.IGNORECASE) for form in forms)


def is_named(repo: str, snapshot: RoomSnapshot) -> bool:
    """Whether others have named `owner/name`, or it is what the talk is about."""
    if snapshot.repo and snapshot.repo.casefold() == repo.casefold():
        return True
    return any(_names(entry.content, repo) for entry in snapshot.history if not entry.is_me)


def _names(text: str, repo: str) -> bool:
    """Whether `owner/name` stands in a text, and not only as the beginning or the end of another."""
    whole = rf"(?<![\w.-]){regex.escape(repo)}(?:\.git)?(?![\w-]|\.\w)"
    return regex.search(whole, text, regex.IGNORECASE) is not None
