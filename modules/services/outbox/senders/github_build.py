"""Who sends what to GitHub."""

from __future__ import annotations

from adapters.github.client import GitHub
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.senders.github import GitHubSender
from modules.services.outbox.senders.github_code_changes import CodeChangeSender
from modules.services.outbox.senders.github_issue_changes import IssueChangeSender
from modules.services.outbox.types import Sender


def github_senders(github: GitHub) -> dict[IntentKind, Sender]:
    """Return who sends each kind of intent that goes to GitHub."""
    written, issues, code = GitHubSender(github), IssueChangeSender(github), CodeChangeSender(github)
    return {
        "issue": written,
        "issue_comment": written,
        "review": written,
        "issue_update": issues,
        "label": issues,
        "assignee": issues,
        "reaction": issues,
        "comment_deletion": issues,
        "pull_request": code,
        "review_request": code,
        "merge": code,
        "ref": code,
        "contents": code,
        "repository": code,
    }
