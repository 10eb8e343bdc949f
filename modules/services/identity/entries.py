"""How the journal tells what became of SELF.md."""

from __future__ import annotations

from common.line_kind import LineKind
from modules.runtime.journal.types import Entry
from modules.services.identity.types import HeldEdit, ProposedSelf, SelfEdit, Version

_LOOP = "self"


def told(proposed: ProposedSelf, change: SelfEdit) -> Entry:
    """Return how the journal tells what became of a proposed SELF.md."""
    match change.status:
        case "changed":
            summary = "; ".join(["SELF.md changed", *what_moved(change)])
        case "held":
            summary = "A change of SELF.md waits for your approval: soul self held"
        case _:
            summary = "SELF.md was not changed"
    reason = change.reason if change.status == "changed" else f"{change.reason}; wanted because: {proposed.reason}"
    data = {
        "status": change.status,
        "by": proposed.by,
        "cites": list(proposed.cites),
        "version": change.version,
        "appeared": list(change.appeared),
        "vanished": list(change.vanished),
        "by_hand": change.by_hand,
    }
    posts = [cite for cite in proposed.cites if cite.startswith("at://")]
    line: LineKind = "refl" if change.status == "changed" and not change.vanished else "warn"
    return Entry("decision", _LOOP, summary, line, reason, trigger_uri=next(iter(posts), None), data=data)


def unreadable(notice: str) -> Entry:
    """The change that waited for the owner was set aside."""
    return Entry("error", _LOOP, f"A change of SELF.md that waited for you cannot be shown: {notice}", line="error")


def what_moved(change: SelfEdit) -> list[str]:
    """What a change did besides, in a few words each."""
    moved = [f"{name} appeared" for name in change.appeared] + [f"{name} is gone" for name in change.vanished]
    return [*moved, f"what was written by hand is kept as {change.by_hand}"] if change.by_hand else moved


def rejected(held: HeldEdit) -> Entry:
    """The owner's no."""
    reason = f"it waited since {held.at}, because {held.why}; wanted because: {held.reason}"
    return Entry("decision", _LOOP, "You said no to a change of SELF.md", "refl", reason, data={"status": "rejected"})


def given_up(reason: str) -> Entry:
    """The change that waited for the owner could not be shown without naming somebody who is forgotten."""
    return Entry("decision", _LOOP, "A change of SELF.md that waited for your approval is given up", "warn", reason)


def found(version: Version) -> Entry:
    """SELF.md is not what the history knew."""
    summary = f"SELF.md, {version.reason}, is kept in the history"
    return Entry("life", _LOOP, summary, "refl", data={"version": version.name, "sha256": version.sha256})
