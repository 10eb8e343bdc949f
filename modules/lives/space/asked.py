"""Reads what kind of thing the host asked for, as far as its words are plain. Pure.

Only two deviations from the usual, an issue on GitHub, are ever read out of words alone: a comment on an issue that is
named, and a post on Bluesky. Wherever a wish is not clearly one of them it stays an issue.
"""

from __future__ import annotations

import regex

from common.schemas import GITHUB_COMMITMENT_TYPES, CommitmentType

_FLAGS = regex.IGNORECASE | regex.VERBOSE
_GITHUB = regex.compile(
    r"""
      \b(?:github | issues? | repos? | repository | repositories | pull\ requests? | PRs? | plans? | milestones?
         | branch(?:es)? | commits? | merge)\b
      | (?<![\w&\#])\#\d
    """,
    _FLAGS,
)
_BLUESKY = regex.compile(r"\b(?:bluesky | bsky | skeets? | social\ media)\b", _FLAGS)
_POST = regex.compile(r"\bpost(?:s|ing)?\b", _FLAGS)
_COMMENT = regex.compile(r"\bcomment(?:s|ing)?\b", _FLAGS)
_NEW_ISSUE = regex.compile(
    r"\b(?:create|open|file|draft|write|make|submit|add)\s+(?:(?:a|an|another|one|the|new)\s+){0,3}issues?\b",
    regex.IGNORECASE,
)
_NUMBER = regex.compile(r"(?<![\w&\#])\#(\d{1,9})(?![\w;]) | \bissues?[/\ ](\d{1,9})\b", _FLAGS)
_QUOTED = regex.compile(r"[\"“„«]([^\"“”„«»]{2,2000})[\"”“»]")


def wants_post(request: str) -> bool:
    """Whether a post on Bluesky is asked for, and nothing on GitHub."""
    return _BLUESKY.search(request) is not None and _GITHUB.search(request) is None


def may_be_a_post(request: str) -> bool:
    """Whether it is about posting, and about nothing on GitHub."""
    return (_POST.search(request) or _BLUESKY.search(request)) is not None and _GITHUB.search(request) is None


def issue_number(request: str) -> int | None:
    """The first issue named by its number, as `#12`, `issue 12` or in a link."""
    found = _NUMBER.search(request)
    return int(found[1] or found[2]) if found else None


def requested_type(request: str) -> CommitmentType:
    """What would answer the request: a comment or a post only where its words leave no doubt, else an issue."""
    if wants_post(request):
        return "post_bluesky"
    if _COMMENT.search(request) and issue_number(request) and not _NEW_ISSUE.search(request):
        return "comment_issue"
    return "create_issue"


def quoted(request: str) -> str:
    """The first words in quotation marks, "" if there are none."""
    found = _QUOTED.search(request)
    return found[1].strip() if found else ""


def answers(action: str, request: str, *, by_owner: bool) -> bool:
    """Whether an action of a peer can be what the request asked for.

    Whoever owns the request answers it with whatever is promised; others only complement it, unless they make the very
    thing.
    """
    kinds = GITHUB_COMMITMENT_TYPES | {"post_bluesky"}
    made = {"create_issue", "create_plan", requested_type(request)}
    return action in (kinds if by_owner else made)
