"""The history of a text. It begins with its first edit, which also adds the text as it was created."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from town.github.values import GitHubAccount, StoredComment, StoredEdit, StoredIssue


def edit_text(
    of: StoredIssue | StoredComment, text: str | None, *, by: GitHubAccount, at: datetime, new_id: Callable[[], int]
) -> None:
    """Give an issue or a comment another text, None for the one it has."""
    if text is None or text == (of.body or ""):
        return
    if not of.edits:
        of.edits.append(StoredEdit(new_id(), of.body or "", of.author, of.created_at))
    of.edits.append(StoredEdit(new_id(), text, by, at))
    of.body = text
