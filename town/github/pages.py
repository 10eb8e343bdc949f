"""The issues and pull requests of the town's GitHub as people read them: a list for each repository, a page for each.

All text is shown as it was written, never as HTML.
"""

from __future__ import annotations

from datetime import datetime
from html import escape

from town.github.values import Account, StoredIssue, StoredPull, StoredRepo

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "article{border:1px solid #8885;border-radius:.5rem;margin:1rem 0;padding:.75rem 1rem}"
    "pre{font:inherit;white-space:pre-wrap;overflow-wrap:anywhere;margin:.5rem 0 0}"
    "small{opacity:.75}li{margin:.25rem 0}:root{color-scheme:light dark}"
)


def repo_page(repo: StoredRepo) -> str:
    """The list of a repository's issues, newest first."""
    issues = [issue for issue in reversed(repo.issues.values()) if issue]
    rows = "".join(
        f'<li><a href="/{escape(repo.full_name)}/issues/{issue.number}">#{issue.number} {escape(issue.title)}</a> '
        f"<small>{issue.state}, by {escape(issue.author.login)}</small></li>"
        for issue in issues
    )
    listed = f"<ul>{rows}</ul>" if rows else "<p>No issues yet.</p>"
    return _page(f"Issues · {repo.full_name}", f"<p>{escape(repo.description)}</p>{listed}")


def issue_page(repo: StoredRepo, issue: StoredIssue, diff: str = "") -> str:
    """An issue and its comments; of a pull request also its reviews and its `diff`."""
    who = ", ".join(escape(account.login) for account in issue.assignees) or "nobody"
    labels = ", ".join(escape(label.name) for label in issue.labels) or "none"
    head = f"<p><small>{issue.state} · assigned to {who} · labels: {labels}</small></p>"
    back = f'<p><a href="/{escape(repo.full_name)}/issues">{escape(repo.full_name)}</a></p>'
    said = _said(issue.author, issue.created_at, issue.body or "")
    comments = "".join(
        _said(comment.author, comment.created_at, comment.body, f' id="issuecomment-{comment.id}"')
        for comment in issue.comments
    )
    pull = repo.pulls.get(issue.number)
    work = _work(pull, diff) if pull else ""
    return _page(f"{issue.title} · #{issue.number}", f"{back}{head}{said}{work}{comments}")


def _work(pull: StoredPull, diff: str) -> str:
    """Where a pull request leads to, what was said of it, and what it changes."""
    state = "merged" if pull.merged_at else "draft" if pull.draft else "open" if pull.is_open else "closed"
    asked = ", ".join(escape(account.login) for account in pull.requested) or "nobody"
    about = f"{state}: {escape(pull.head_ref)} into {escape(pull.base_ref)} · asked for a review: {asked}"
    reviews = "".join(
        _said(review.author, review.submitted_at, f"{review.state.replace('_', ' ').lower()}\n\n{review.body}".strip())
        for review in pull.reviews
        if review.submitted_at
    )
    lines = "".join(
        _said(comment.author, comment.created_at, f"{comment.path}, line {comment.line}\n\n{comment.body}")
        for comment in pull.line_comments
    )
    shown = f"<h2>Changes</h2><pre>{escape(diff)}</pre>" if diff else ""
    return f"<p><small>{about}</small></p>{reviews}{lines}{shown}"


def _said(author: Account, at: datetime, text: str, anchor: str = "") -> str:
    return (
        f"<article{anchor}><small>{escape(author.login)}, {at:%Y-%m-%d %H:%M} UTC</small>"
        f"<pre>{escape(text)}</pre></article>"
    )


def _page(title: str, content: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{content}</body></html>"
    )
