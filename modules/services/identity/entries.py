"""The journal entries about SELF.md and other documents that the SOUL may change."""

from __future__ import annotations

from common.provenance import Provenance
from common.wording import LineKind
from modules.runtime.journal.types import Entry
from modules.services.identity.types import OWN_SKILL, SELF, HeldEdit, ProposedSelf, SelfEdit, Version


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
