"""Which labels an issue has, and who put them there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from town.github.values import GitHubAccount, GitHubLabel, StoredIssue, StoredLabelling, StoredRepo


def set_labels(
    repo: StoredRepo,
    issue: StoredIssue,
    names: Sequence[str],
    *,
    by: GitHubAccount,
    at: datetime,
    new_id: Callable[[], int],
) -> None:
    """Let an issue have these labels and no others, and remember who changed that."""
    for name in names:
        if name.lower() not in repo.labels:
            repo.labels[name.lower()] = GitHubLabel(new_id(), name)
    wanted = [repo.labels[name] for name in dict.fromkeys(name.lower() for name in names)]
    changed = [(one, True) for one in wanted if one not in issue.labels]
    changed += [(one, False) for one in issue.labels if one not in wanted]
    issue.labellings += [StoredLabelling(new_id(), one, by, added, at) for one, added in changed]
    issue.labels = wanted
