"""Renders the issues and pull requests of the town's GitHub for people: a list per repository, a page for each.

Texts are rendered as Markdown, as on GitHub: HTML comments are hidden, other HTML is shown as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from common.text.markdown import without_html_comments
from town.github.values import GitHubAccount, StoredIssue, StoredPull, StoredRepo

_BOXES: Mapping[str, str] = {"[ ] ": "☐", "[x] ": "☑"}
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "article{border:1px solid #8885;border-radius:.5rem;margin:1rem 0;padding:.75rem 1rem}"
    "article{overflow-wrap:anywhere}pre,code{font:.9em/1.45 ui-monospace,monospace}pre{white-space:pre-wrap}"
    "table,td,th{border:1px solid #8885;border-collapse:collapse;padding:.2rem .5rem}"
    "blockquote{border-left:.25rem solid #8885;margin-left:0;padding-left:1rem}"
    "small{opacity:.75}li{margin:.25rem 0}:root{color-scheme:light dark}"
)


def repo_page(repo: StoredRepo) -> str:
    """Return the page with a repository's issues, newest first."""
    issues = [issue for issue in reversed(repo.issues.values()) if issue]
    rows = "".join(
        f'<li><a href="/{escape(repo.full_name)}/issues/{issue.number}">#{issue.number} {escape(issue.title)}</a> '
        f"<small>{issue.state}, by {escape(issue.author.login)}</small></li>"
        for issue in issues
    )
    listed = f"<ul>{rows}</ul>" if rows else "<p>No issues yet.</p>"
    return _page(f"Issues · {repo.full_name}", f"<p>{escape(repo.description)}</p>{listed}")


def issue_page(repo: StoredRepo, issue: StoredIssue, diff: str = "") -> str:
    """Return the page of an issue with its comments; for a pull request also with its reviews and its `diff`."""
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
    """Return the branches, reviews, comments on lines and changes of a pull request."""
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


def _said(author: GitHubAccount, at: datetime, text: str, anchor: str = "") -> str:
    return (
        f"<article{anchor}><small>{escape(author.login)}, {at:%Y-%m-%d %H:%M} UTC</small>"
        f"{_markdown().render(text)}</article>"
    )


@cache
def _markdown() -> MarkdownIt:
    """Return a renderer of Markdown whose output holds no HTML of the text."""
    markdown = MarkdownIt("commonmark", {"html": True, "breaks": True}).enable(["table", "strikethrough"])
    markdown.add_render_rule("html_block", _html)
    markdown.add_render_rule("html_inline", _html)
    markdown.core.ruler.push("boxes", _draw_boxes)
    return markdown


def _html(_: RendererHTML, tokens: Sequence[Token], place: int, *__: Any) -> str:  # noqa: ANN401 - a rule's signature
    return escape(without_html_comments(tokens[place].content))


def _draw_boxes(state: StateCore) -> None:
    """Begin the items of a task list with a box."""
    for item, inner, line in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if (item.type, inner.type, line.type) == ("list_item_open", "paragraph_open", "inline") and line.children:
            first = line.children[0]
            sign = _BOXES.get(first.content[:4].lower()) if first.type == "text" else None
            first.content = f"{sign} {first.content[4:]}" if sign else first.content


def _page(title: str, content: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{content}</body></html>"
    )
