"""Where a promise on GitHub may be kept: only in a repository that somebody in the talk has named. Pure.

A small model writes down a repository that it read in an example; a large one may invent a likely name.
"""

from __future__ import annotations

from collections.abc import Iterable

import regex

from common.schemas import Commitment
from modules.space.filters import Filtered, LeftOut
from modules.space.scene import Scene

UNNAMED = "[VALIDATION REJECTED] Unnamed repository"


def placed(commitments: Iterable[Commitment], scene: Scene) -> Filtered:
    """The commitments, in the repository of the talk where nobody named theirs; left out where there is none."""
    kept: list[Commitment] = []
    left_out: list[LeftOut] = []
    for one in commitments:
        if not one.is_github or (one.repo and is_named(one.repo, scene)):
            kept.append(one)
        elif scene.repo:
            kept.append(one.model_copy(update={"repo": scene.repo}))
        else:
            reason = f"nobody named {one.repo}" if one.repo else "no repository is known"
            left_out.append(LeftOut(one, UNNAMED, f"{one.type}: {reason}"))
    return Filtered(tuple(kept), tuple(left_out))


def named_by_host(scene: Scene, repo: str = "") -> bool:
    """Whether a repository, else that of the talk, is where the host wants the work; a guest may have named its own.

    Without the host's word the talk itself is not carried there: who speaks in a room does not speak to everybody.
    """
    wanted = repo or scene.repo
    return wanted is not None and any(_names(entry.content, wanted) for entry in scene.history if entry.is_host)


def is_named(repo: str, scene: Scene) -> bool:
    """Whether others have named `owner/name`, or it is what the talk is about."""
    if scene.repo and scene.repo.casefold() == repo.casefold():
        return True
    return any(_names(entry.content, repo) for entry in scene.history if not entry.is_me)


def _names(text: str, repo: str) -> bool:
    """Whether `owner/name` stands in a text, and not only as the beginning or the end of another."""
    whole = rf"(?<![\w.-]){regex.escape(repo)}(?:\.git)?(?![\w-]|\.\w)"
    return regex.search(whole, text, regex.IGNORECASE) is not None
