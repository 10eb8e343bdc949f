"""What is found out about a repository, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Welcome = Literal["welcome", "unwelcome", "unclear"]
Rule = Literal["allowed", "conditions", "forbidden", "none"]
"""What a file says of AI agents: they may, they may under conditions, they may not, or nothing that can be told."""


class VerdictCode(StrEnum):
    """Why a repository counts as welcoming, unwelcoming or unclear."""

    MEMBER = "member"
    NOTHING_SAID = "nothing-said"
    ALLOWED = "allowed"
    CONDITIONS = "conditions"
    FORBIDDEN = "forbidden"
    PULLS_CLOSED = "pulls-closed"
    UNREAD = "unread"
    OWNER_YES = "owner-yes"
    OWNER_NO = "owner-no"
    ANOTHER = "another"


WELCOME_OF: dict[VerdictCode, Welcome] = {
    VerdictCode.MEMBER: "welcome",
    VerdictCode.NOTHING_SAID: "welcome",
    VerdictCode.ALLOWED: "welcome",
    VerdictCode.CONDITIONS: "unclear",
    VerdictCode.FORBIDDEN: "unwelcome",
    VerdictCode.PULLS_CLOSED: "unclear",
    VerdictCode.UNREAD: "unclear",
    VerdictCode.OWNER_YES: "welcome",
    VerdictCode.OWNER_NO: "unwelcome",
    VerdictCode.ANOTHER: "unwelcome",
}


@dataclass(frozen=True, slots=True)
class RepositoryVerdict:
    """Whether a repository wants us.

    Attributes:
        code: why.
        path: the file that decided; "" if none did.
        at: when it was found out, ISO-8601 UTC.
        pages: the SHA-256 of the paths and contents of its pages at that time; "" where they were not looked at.
        pushed_at: when one of its branches had changed last, as far as is known, ISO-8601 UTC.

    """

    code: VerdictCode
    path: str = ""
    at: str = ""
    pages: str = ""
    pushed_at: str = ""

    @property
    def welcome(self) -> Welcome:
        """What follows from the code."""
        return WELCOME_OF[self.code]

    @property
    def reason(self) -> str:
        """The same for people."""
        return _REASONS[self.code].format(path=self.path or "a file")


_REASONS: dict[VerdictCode, str] = {
    VerdictCode.MEMBER: "our account may push there",
    VerdictCode.NOTHING_SAID: "all that it shows was read, and nothing of it is a rule for AI agents",
    VerdictCode.ALLOWED: "{path} allows AI agents",
    VerdictCode.CONDITIONS: "{path} has conditions for AI agents, or is unclear",
    VerdictCode.FORBIDDEN: "{path} does not want AI agents",
    VerdictCode.PULLS_CLOSED: "it takes pull requests from its own people only, or from nobody",
    VerdictCode.UNREAD: "not all that it shows could be read ({path}), so its rules are not known",
    VerdictCode.OWNER_YES: "the owner approved an act there",
    VerdictCode.OWNER_NO: "the owner rejected an act there",
    VerdictCode.ANOTHER: "another repository answers under its name than when it was first seen",
}
