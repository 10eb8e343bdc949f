"""The values that `SelfKeeper` takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
