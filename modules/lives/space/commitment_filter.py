"""Filters out commitments that are not ours to make, and assigns the others to a repository. Pure.

A commitment on GitHub is kept only in a repository that somebody in the talk has named: a small model may copy a
repository from an example, and a large one may invent a likely name.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import regex

from common.schemas import Commitment, CommitmentType
from common.text.echo import tokenize_with_stemming
from common.text.patterns import lazy_regex
from modules.lives.space.request_parser import ANSWERS_OF_OWNER, is_place, is_word, names_of, shown
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import HistoryEntry
from modules.services.commitments.naming import CommitmentRequest, target_of
from modules.services.commitments.writer import commitment_request

Bar = Literal["social_only", "non_owner", "unnamed_repo", "settled", "made", "claimed"]
"""Why a commitment may not be made."""

_SIGNATURES: Mapping[Bar, str] = {
    "social_only": "[VALIDATION REJECTED] Social-only: ",
    "non_owner": "[VALIDATION REJECTED] Non-owner action: ",
    "unnamed_repo": "[VALIDATION REJECTED] Unnamed repository: ",
    "settled": "",
    "made": "[VALIDATION REJECTED] Made already: ",
    "claimed": "[VALIDATION REJECTED] Claimed by a peer: ",
}
_MADE_BY_OWNER: frozenset[CommitmentType] = frozenset({"create_issue", "create_plan"})

SIMILAR_CLAIM = 0.6

_TARGET = lazy_regex(r"([\w.-]+/[\w.-]+|unknown)#(.*)", regex.DOTALL)
_REFUSED = lazy_regex(
    r"\b(?:not|never|no|nor|neither|cannot|\w+n['\u2019]t|dont|except|without|avoid|instead of|rather than|unless|stop"
    r"|nicht|kein\w{0,2}|nie|niemals|pas|jamais|nunca|não|non|не|нет|никогда)\b|[不别別勿]",
    regex.IGNORECASE,
)
_REPORTED = lazy_regex(
    r"\A\W*+(?:[\w@'\u2019-]++\s++){1,3}(?:says|said|wrote|writes|tells|told|asks|asked|wants|claims|claimed|suggests"
    r"|suggested|quotes|quoted)\b|\baccording to\b",
    regex.IGNORECASE,
)
_QUOTATION = lazy_regex(
    r"""^[ \t]*>[^\n]*|"[^"]*"?|[\u201c\u201e][^\u201c\u201d]*[\u201c\u201d]?|\u00ab[^\u00bb]*\u00bb?"""
    r"""|(?<!\w)['\u2018][^'\u2018\u2019\n]*['\u2019]""",
    regex.MULTILINE,
)
_SENTENCE = lazy_regex(r"[.!?;][)\]]*(?=\s)|\n")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A commitment that may not be made; `reason` is for people."""

    commitment: Commitment
    code: Bar
    reason: str

    @property
    def line(self) -> str:
        """The line for the journal."""
        return f"{_SIGNATURES[self.code]}{self.reason}"


@dataclass(frozen=True, slots=True)
class Filtered:
    """What may be committed to, in the given order and each with its repository, and what may not.

    `by_host`: the host wants the work in the repository of the talk, so that the talk may be quoted there.
    """

    kept: tuple[Commitment, ...]
    left_out: tuple[LeftOut, ...]
    by_host: bool = False

    @property
    def is_taken(self) -> bool:
        """Whether nothing is left because peers claimed it."""
        return not self.kept and any(one.code == "claimed" for one in self.left_out)

    @property
    def lacks_repo(self) -> bool:
        """Whether something was left out because no repository is known for it."""
        return any(one.code == "unnamed_repo" for one in self.left_out)


@dataclass(frozen=True, slots=True)
class PlannedCommitment:
    """A permitted commitment, judged once and passed on.

    Attributes:
        commitment: with its repository.
        request: the request to the queue.
        target: the target that a claim on it names.
        is_made_once: whether only one agent makes it for the host's request.

    """

    commitment: Commitment
    request: CommitmentRequest
    target: str
    is_made_once: bool


class OnTarget(Protocol):
    """A claim or result of a peer."""

    @property
    def action(self) -> str: ...

    @property
    def target(self) -> str: ...


T = TypeVar("T", bound=OnTarget)


def permitted(commitments: Iterable[Commitment], snapshot: RoomSnapshot) -> Filtered:
    """Return what this SOUL may commit to at that moment. To be applied to everything that a model commits to."""
    kept: list[Commitment] = []
    left_out: list[LeftOut] = []
    by_host = named_by_host(snapshot)
    for one in commitments:
        found = _checked(one, snapshot)
        if isinstance(found, LeftOut):
            left_out.append(found)
        else:
            kept.append(found)
    return Filtered(tuple(kept), tuple(left_out), by_host)


def planned(commitments: Iterable[Commitment], snapshot: RoomSnapshot) -> tuple[PlannedCommitment, ...]:
    """Return permitted commitments as the queue takes them, marked if the host asked for them."""
    return tuple(_planned(one, snapshot) for one in commitments)


def _planned(one: Commitment, snapshot: RoomSnapshot) -> PlannedCommitment:
    named = one.is_github and named_by_host(snapshot, one.repo or "")
    ours = snapshot.is_open and snapshot.is_owner and one.type in ANSWERS_OF_OWNER
    is_made_once = one.type in _made_once(snapshot)
    # NOTE(self): anybody in the room may ask for a post besides what the host asked for; that is not the host's.
    by_host = ours and (named if one.is_github else one.type == snapshot.asked.kind)
    target = claim_target(one, snapshot.repo)
    request = commitment_request(
        one,
        source="space",
        thread=snapshot.thread_uri,
        said="",
        default_repo=snapshot.repo,
        target=target,
        host_request=by_host,
        more={"hostNamedRepo": named},
    )
    return PlannedCommitment(one, request, target, is_made_once)


def still_to_make(
    planned: Iterable[PlannedCommitment],
    now: RoomSnapshot,
    lost: Container[tuple[str, str]],
    *,
    is_same: bool = True,
) -> tuple[PlannedCommitment, ...]:
    """Return those that nothing in the room has settled since they were planned.

    Whether this SOUL may make them at all, and where, was judged before; only what can have changed is checked again.

    Args:
        planned: what we hold claims on.
        now: the room at this moment.
        lost: our claims that the room refused, as (action, target).
        is_same: whether the host has asked for nothing else since.

    """
    if now.is_settled:
        return ()
    others_turn = is_same and (now.is_met or (now.is_open and not now.is_owner))
    return tuple(
        one
        for one in planned
        if (one.commitment.type, one.target) not in lost
        and not (one.is_made_once and (others_turn or alike(now.peer_results, one.commitment.type, one.target)))
    )


def _checked(  # noqa: PLR0911 - one line for each rule
    one: Commitment, snapshot: RoomSnapshot
) -> Commitment | LeftOut:
    """Return the commitment with its repository, or the first rule that bars it."""
    if snapshot.social_only and one.is_github:
        return LeftOut(one, "social_only", f"Social-only: {one.type}")
    is_made_once = one.type in _made_once(snapshot)
    if is_made_once and snapshot.is_open and not snapshot.is_owner:
        return LeftOut(one, "non_owner", f"{one.type}: somebody else was elected to act on the host's request")
    assigned = assign_repo(one, snapshot)
    if assigned is None:
        why = f"nobody named {one.repo}" if one.repo else "no repository is known"
        return LeftOut(one, "unnamed_repo", f"{one.type}: {why}")
    if snapshot.is_settled:
        return LeftOut(one, "settled", "the host asks about what is committed to already")
    if is_made_once and snapshot.is_met:
        return LeftOut(one, "made", f"{one.type}: the host's request is taken care of")
    target = claim_target(assigned, snapshot.repo)
    made = alike(snapshot.peer_results, one.type, target) if is_made_once else None
    if first := made or alike(snapshot.room.claims, one.type, target):
        reason = f"{shown(first.name)} {'has made' if made else 'works at'} {first.target}"
        return LeftOut(one, "made" if made else "claimed", reason)
    return assigned


def _made_once(snapshot: RoomSnapshot) -> frozenset[CommitmentType]:
    """Return what only one agent makes for the request: issues, plans, and exactly what was asked for."""
    return _MADE_BY_OWNER | {snapshot.asked.kind}


def assign_repo(commitment: Commitment, snapshot: RoomSnapshot) -> Commitment | None:
    """Return the commitment in its own repository if somebody named it, else in the talk's; None if there is none."""
    named = commitment.repo
    if not commitment.is_github or ("/" in named and is_named(named, snapshot)):
        return commitment
    if named and "/" not in named:
        known = (snapshot.repo or "", *snapshot.workspaces)
        meant = next((repo for repo in known if named.casefold() in map(str.casefold, names_of(repo))), None)
        return commitment.model_copy(update={"repo": meant}) if meant else None
    return commitment.model_copy(update={"repo": snapshot.repo}) if snapshot.repo else None


def named_by_host(snapshot: RoomSnapshot, repo: str = "") -> bool:
    """Return whether the host wants the work in `repo`, else in the repository of the talk: a guest may have named it.

    Unless the host wants that, the talk is not quoted there: who speaks in a room does not speak to everybody. The
    host's newest message about the repository decides; talk about it asks for no work, in whatever language. Without
    such a message, only the workspace that the host means counts as named; for any other repository the owner is asked.
    """
    wanted = repo or snapshot.repo
    if not wanted:
        return False
    means_workspace = snapshot.workspace is not None and snapshot.workspace.casefold() == wanted.casefold()
    names = names_of(wanted) if means_workspace else (wanted,)
    talk = None if means_workspace else False
    said = (entry for entry in reversed(snapshot.history) if entry.is_host)
    verdicts = (_wants(entry, name) and (not _only_talks(entry) or talk) for entry in said for name in names)
    return next((verdict for verdict in verdicts if verdict is not None), means_workspace)


def _only_talks(entry: HistoryEntry) -> bool:
    """Return whether a message of several words asks for nothing, or takes it back."""
    return entry.intent in {"discussion", "withdrawal"} and len(entry.content.split()) > 1


def _wants(entry: HistoryEntry, repo: str) -> bool | None:
    """Return whether the writer wants work in `repo`; False if a sentence refuses or reports it, None if none names it.

    It is named by its address on github.com, as `owner/name#3`, alone in a sentence, or next to a word that marks it as
    a place: two words with a slash between them are more often something else, or a path. In a request, which may be
    in any language, the whole name is enough.
    """
    text = entry.content
    own = _QUOTATION.sub(" ", text)
    is_short = "/" not in repo  # often an ordinary word as well
    sentences = [one for one in _SENTENCE.split(own) if (is_place if is_short else _mentions)(one, repo)]
    if any(_REFUSED.search(_without(one, repo)) or _REPORTED.search(_without(one, repo)) for one in sentences):
        return False
    is_request = not is_short and entry.intent == "action_request"
    if any(is_place(one, repo) or (is_request and is_word(repo, one)) for one in sentences):
        return True
    return False if not is_short and _mentions(text, repo) and not sentences else None


def _mentions(text: str, repo: str) -> bool:
    return repo.casefold() in text.casefold()


def _without(sentence: str, repo: str) -> str:
    """Return the sentence without the repository's name, whose own words refuse nothing."""
    return regex.sub(regex.escape(repo), " ", sentence, flags=regex.IGNORECASE)


def is_named(repo: str, snapshot: RoomSnapshot) -> bool:
    """Return whether others have named `owner/name`, or the talk is about it."""
    if snapshot.repo and snapshot.repo.casefold() == repo.casefold():
        return True
    return any(_names(entry.content, repo) for entry in snapshot.history if not entry.is_me)


def _names(text: str, repo: str) -> bool:
    """Return whether a text holds `owner/name`, and not only as the beginning or the end of another name."""
    whole = rf"(?<![\w.-]){regex.escape(repo)}(?:\.git)?(?![\w-]|\.\w)"
    return regex.search(whole, text, regex.IGNORECASE) is not None


def claim_target(commitment: Commitment, default_repo: str | None) -> str:
    """Return the target that a claim on this commitment names: `<repository>#<first 50 UTF-16 units of its name>`."""
    return target_of(commitment.repo or default_repo or "", named(commitment))


def alike(things: Iterable[T], action: str, target: str) -> T | None:
    """Return the first claim or result on the same thing: the same action, and the same target by `same_target`."""
    return next((one for one in things if one.action == action and same_target(one.target, target)), None)


def same_target(one: str, other: str) -> bool:
    """Return whether two targets mean the same: titles at least 0.6 alike, in one repository or in an unknown one."""
    if one == other:
        return True
    (repo, title), (other_repo, other_title) = _parted(one), _parted(other)
    if repo and other_repo and repo.casefold() != other_repo.casefold():
        return False
    return title_similarity(title, other_title) >= SIMILAR_CLAIM


def title_similarity(one: str, other: str) -> float:
    """Return how alike two titles are: the share of stems that both have, 0 to 1 (Dice)."""
    stems, others = set(tokenize_with_stemming(one)), set(tokenize_with_stemming(other))
    if not stems or not others:
        return float(one.strip().casefold() == other.strip().casefold())
    return 2 * len(stems & others) / (len(stems) + len(others))


def named(commitment: Commitment) -> str:
    """Return the name of a commitment: its title, else its description or content."""
    return commitment.title or commitment.description or commitment.content


def _parted(target: str) -> tuple[str, str]:
    found = _TARGET.fullmatch(target)
    return (found[1], found[2]) if found else ("", target)
