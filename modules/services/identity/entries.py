"""The values of a change of SELF.md or of another document that the SOUL may change, and its journal entries."""

from dataclasses import dataclass
from typing import Literal

from common.provenance import Provenance
from common.wording import LineKind
from modules.runtime.journal.types import Entry

Author = Literal["soul", "owner"]
SELF = "SELF.md"
DOCUMENTS = (SELF, "GOALS.md", "HEARTBEAT.md")
"""The files that the SOUL may change: SELF.md and two of the workspace."""
OWN_SKILL = "skills/"
"""An own skill is the document `skills/NAME`: the file `skills/NAME/SKILL.md` of the workspace."""
Status = Literal["changed", "held", "refused", "unchanged"]


@dataclass(frozen=True, slots=True)
class ProposedSelf:
    """A proposed new text of SELF.md.

    Attributes:
        content: the whole new text.
        reason: why, in words.
        by: who proposes it; changes by the `owner` are never held.
        cites: its sources: uris of posts, or names such as `owner`.
        hold: why it must wait for the owner's approval in any case; "" if it need not.
        unasked: nobody asked for it; a change of the SOUL's limits or invitations then waits for approval.
        erases: versions that hold a line removed by this change are deleted.
        is_own: only words of the SOUL and its owner are known to be behind it.

    """

    content: str
    reason: str
    by: Author
    cites: tuple[str, ...] = ()
    hold: str = ""
    unasked: bool = False
    erases: bool = False
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class SelfEdit:
    """The result of a proposed change.

    Attributes:
        status: `changed`, `held` for the owner, `refused`, or `unchanged` because the text is the same.
        reason: why it was held or refused, or why it was changed.
        version: its name in the history, if it was changed.
        appeared: sections read by the program that are new.
        vanished: sections read by the program that are gone.
        by_hand: the version that keeps a text edited by hand which this change replaced.
        still_waits: it was made while another change waits, which stays.
        is_replacing: another change waited, which is dropped for this one.
        text: the text that its author knows if it was changed; today's if it was refused because that is another than
            the one that they had read.

    """

    status: Status
    reason: str = ""
    version: str = ""
    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    by_hand: str = ""
    still_waits: bool = False
    is_replacing: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class HeldEdit:
    """A change that waits for the owner: the proposal, when it came (ISO-8601 UTC), and why it waits.

    `erases` and `is_own` are as in the proposal. `is_seen`: the owner has seen it, so only one that they ask for takes
    its place. `base` is the SHA-256 of the document that it changes, "" in a home of an earlier version.
    """

    content: str
    reason: str
    cites: tuple[str, ...]
    at: str
    why: str
    erases: bool = False
    is_seen: bool = False
    base: str = ""
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a document, or a change that the owner rejected.

    Attributes:
        name: its file in the history without the ending; names sort by age. "" for a rejected change.
        at: when it was written, or first seen (ISO-8601 UTC).
        by: `soul`, `owner`, or `hand` for an edit outside this program.
        reason: why.
        cites: its sources.
        sha256: of its bytes, in hex.

    """

    name: str
    at: str
    by: str
    reason: str
    cites: tuple[str, ...]
    sha256: str


def _loop(document: str) -> str:
    return "self" if document == SELF else "workspace-files"


def _skill(document: str) -> str | None:
    """Return the name under which the story of a skill is found; None for any other document."""
    return document if document.startswith(OWN_SKILL) else None


def see_held(document: str) -> str:
    """Return the command that shows the waiting change of a document."""
    return f"soul drafts show {document}"


def change_of(document: str) -> str:
    """Return the name of a change of a document, such as "a page for the skill tea"."""
    if _skill(document):
        return f"a page for the skill {document.removeprefix(OWN_SKILL)}"
    return f"a change of {document}"


def waiting_line(document: str) -> str:
    """Return the line about a change of a document that waits for the owner's approval."""
    return f"A{change_of(document)[1:]} waits for your approval: {see_held(document)}"


def told(document: str, proposed: ProposedSelf, change: SelfEdit) -> Entry:
    """Return the journal entry about the result of a proposed change."""
    match change.status:
        case "changed":
            summary = "; ".join([f"{document} changed", *what_moved(change)])
        case "held":
            summary = waiting_line(document)
        case _:
            summary = f"{document} was not changed"
    wanted = f"its purpose: {proposed.reason}" if _skill(document) else f"wanted because: {proposed.reason}"
    dropped = "; the change that waited before is dropped for it" if change.is_replacing else ""
    reason = change.reason if change.status == "changed" else f"{change.reason}{dropped}; {wanted}"
    data = {
        "status": change.status,
        "file": document,
        "by": proposed.by,
        "cites": list(proposed.cites),
        "version": change.version,
        "appeared": list(change.appeared),
        "vanished": list(change.vanished),
        "by_hand": change.by_hand,
    }
    posts = [cite for cite in proposed.cites if cite.startswith("at://")]
    line: LineKind = "refl" if change.status == "changed" and not change.vanished else "warn"
    about = _skill(document) or next(iter(posts), None)
    words = Provenance.SELF if proposed.is_own else Provenance.STRANGER
    return Entry("decision", _loop(document), summary, line, reason, trigger_uri=about, data=data, provenance=words)


def unreadable(document: str, notice: str) -> Entry:
    """Return the entry about a waiting change that could not be read and was set aside."""
    return Entry(
        "error",
        _loop(document),
        f"A{change_of(document)[1:]} that waited for you cannot be shown: {notice}",
        line="error",
    )


def what_moved(change: SelfEdit) -> list[str]:
    """Return the side effects of a change, in a few words each."""
    moved = [f"{name} appeared" for name in change.appeared] + [f"{name} is gone" for name in change.vanished]
    return [*moved, f"what was written by hand is kept as {change.by_hand}"] if change.by_hand else moved


def rejected(document: str, held: HeldEdit, why: str) -> Entry:
    """Return the journal entry about the owner's rejection and its reason."""
    return Entry(
        "decision",
        _loop(document),
        f"The owner rejected {change_of(document)}",
        "refl",
        why,
        trigger_uri=_skill(document),
        data={"status": "rejected", "file": document},
        provenance=Provenance.SELF if held.is_own else Provenance.STRANGER,
    )


def given_up(document: str, reason: str) -> Entry:
    """Return the entry about a waiting change that could not be shown any more, or no longer applied."""
    return Entry(
        "decision",
        _loop(document),
        f"A{change_of(document)[1:]} that waited for your approval is given up",
        "warn",
        reason,
        trigger_uri=_skill(document),
    )


def found(document: str, version: Version) -> Entry:
    """Return the entry about a document that differs from the newest version in the history."""
    summary = f"{document}, {version.reason}, is kept in the history"
    return Entry("life", _loop(document), summary, "refl", data={"version": version.name, "sha256": version.sha256})
