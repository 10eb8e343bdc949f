"""The values that `SelfKeeper` takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Author = Literal["soul", "owner"]
SELF = "SELF.md"
DOCUMENTS = (SELF, "GOALS.md", "HEARTBEAT.md")
"""The files that the SOUL may change: its first, and two of the workspace."""
OWN_SKILL = "skills/"
"""A skill of its own is the document `skills/NAME`: the file `skills/NAME/SKILL.md` of the workspace."""
Status = Literal["changed", "held", "refused", "unchanged"]


@dataclass(frozen=True, slots=True)
class ProposedSelf:
    """A whole new SELF.md that somebody proposes.

    Attributes:
        content: the new text, all of it.
        reason: why, in words.
        by: who proposes it; what the `owner` does with their own hand is never held.
        cites: what it grew from: uris of posts, or names such as `owner`.
        hold: why it must wait for the owner's approval whatever it says; "" if it need not.
        unasked: nobody asked for it: a change of the SOUL's limits, or of whom it invites, waits for approval.
        erases: no version is kept that holds a line which this change takes out.

    """

    content: str
    reason: str
    by: Author
    cites: tuple[str, ...] = ()
    hold: str = ""
    unasked: bool = False
    erases: bool = False


@dataclass(frozen=True, slots=True)
class SelfEdit:
    """What became of a proposed SELF.md.

    Attributes:
        status: `changed`, `held` for the owner, `refused`, or `unchanged` because it said the same already.
        reason: why it was held or refused, or why it was changed.
        version: its name in the history, if it was changed.
        appeared: the sections by which the SOUL is run that were not there before.
        vanished: those that are no longer there.
        by_hand: the version under which a text is kept that somebody had written by hand, and that this one replaced.

    """

    status: Status
    reason: str = ""
    version: str = ""
    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    by_hand: str = ""


@dataclass(frozen=True, slots=True)
class HeldEdit:
    """A change that waits for the owner: the proposal as it was, when it came (ISO-8601 UTC), and why it waits.

    `erases` as in the proposal. `is_seen`: the owner looked at it, and approves no other in its place. `base` is the
    SHA-256 of the document that it changes, "" in a home of an earlier version.
    """

    content: str
    reason: str
    cites: tuple[str, ...]
    at: str
    why: str
    erases: bool = False
    is_seen: bool = False
    base: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """What SELF.md once was, or is; or what it did not become, as the owner rejected it.

    Attributes:
        name: its file in the history, without the ending; names sort by age. "" for what was rejected.
        at: when it was written, or first seen (ISO-8601 UTC).
        by: `soul`, `owner`, or `hand`: found like this, written past this program.
        reason: why.
        cites: what it grew from.
        sha256: of its bytes, in hex.

    """

    name: str
    at: str
    by: str
    reason: str
    cites: tuple[str, ...]
    sha256: str
