"""The names of a task outside of its plan: its key, and its branches. Pure."""

from __future__ import annotations

import re

from common.text.strings import create_slug

_BRANCH_CHARS = 50
_LEGACY_CHARS = 40

_OTHER = re.compile(r"[^a-z0-9]+")
_TASK_BRANCH = re.compile(r"(?:refs/heads/)?task-([0-9]{1,9})-[^/]*")


def claim_key(owner: str, repo: str, issue: int, number: int) -> str:
    """Return the key of a task over all plans: `owner/repo#12/task-3`."""
    return f"{owner}/{repo}#{issue}/task-{number}"


def get_task_branch_name(number: int, title: str) -> str:
    """Return the branch on which a task is worked on, of at most 50 characters, cut at the end of a word."""
    name = f"task-{number}-{create_slug(title)}"
    if len(name) <= _BRANCH_CHARS:
        return name
    cut = name[:_BRANCH_CHARS]
    whole = cut.rpartition("-")[0]
    return whole if len(whole) > len(f"task-{number}") else cut


def get_task_branch_candidates(number: int, title: str) -> list[str]:
    """Return the branches on which peers may have worked on a task: by today's rule, and by an older one."""
    legacy = _OTHER.sub("-", title.lower()).strip("-")[:_LEGACY_CHARS]
    return list(dict.fromkeys((get_task_branch_name(number, title), f"task-{number}-{legacy}")))


def parse_task_branch(ref: str) -> int | None:
    """Return the number of the task that a branch is about, or None."""
    found = _TASK_BRANCH.fullmatch(ref)
    return int(found[1]) if found else None
