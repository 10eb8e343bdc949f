"""Renders stored values: in the format of GitHub's API, field by field as in its published description, and as pages.

Pages for people show the issues and pull requests: a list per repository, a page for each. Texts are rendered as
Markdown, as on GitHub: HTML comments are hidden, other HTML is shown as text.
"""

from base64 import b64encode
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
from town.github.values import (
    REACTIONS,
    GitHubAccount,
    GitHubLabel,
    Json,
    StoredComment,
    StoredIssue,
    StoredLabelling,
    StoredPull,
    StoredReaction,
    StoredRepo,
)

_USER_PLACES = ("followers", "subscriptions", "repos", "received_events")
_REPO_PLACES = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}


class GitHubViews:
    """The views at one address: `base` is the one that the client called."""

    def __init__(self, base: str) -> None:
        self.base = base.rstrip("/")

    def user(self, account: GitHubAccount) -> Json:
        """Return an account as shown beside what it wrote."""
        url = f"{self.base}/users/{account.login}"
        return {
            "login": account.login,
            "id": account.id,
            "node_id": node_id("User", account.id),
            "avatar_url": f"{self.base}/avatars/u/{account.id}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.base}/{account.login}",
            "following_url": f"{url}/following{{/other_user}}",
            "gists_url": f"{url}/gists{{/gist_id}}",
            "starred_url": f"{url}/starred{{/owner}}{{/repo}}",
            "organizations_url": f"{url}/orgs",
            "events_url": f"{url}/events{{/privacy}}",
            **{f"{place}_url": f"{url}/{place}" for place in _USER_PLACES},
            "type": account.kind,
            "user_view_type": "public",
            "site_admin": False,
        }

    def profile(self, account: GitHubAccount, *, public_repos: int) -> Json:
        """Return an account as shown by itself."""
        empty = ("company", "location", "email", "hireable", "bio", "twitter_username")
        return {
            **self.user(account),
            **dict.fromkeys(empty),
            "name": account.name or None,
            "blog": account.website,
            "public_repos": public_repos,
            "public_gists": 0,
            "followers": 0,
            "following": 0,
            "created_at": moment(account.created_at),
            "updated_at": moment(account.created_at),
        }

    def organization(self, org: GitHubAccount) -> Json:
        """Return an organisation as shown in a list."""
        url = f"{self.base}/orgs/{org.login}"
        return {
            "login": org.login,
            "id": org.id,
            "node_id": node_id("Organization", org.id),
            "url": url,
            **{f"{place}_url": f"{url}/{place}" for place in ("repos", "events", "hooks", "issues")},
            "members_url": f"{url}/members{{/member}}",
            "public_members_url": f"{url}/public_members{{/member}}",
            "avatar_url": f"{self.base}/avatars/u/{org.id}",
            "description": org.name or None,
        }

    def whole_organization(self, org: GitHubAccount, *, public_repos: int) -> Json:
        """Return an organisation as shown by itself."""
        return {
            **self.organization(org),
            "name": org.name or org.login,
            "html_url": f"{self.base}/{org.login}",
            "has_organization_projects": False,
            "has_repository_projects": False,
            "public_repos": public_repos,
            **dict.fromkeys(("public_gists", "followers", "following"), 0),
            "type": "Organization",
            **dict.fromkeys(("created_at", "updated_at"), moment(org.created_at)),
            "archived_at": None,
        }

    def repo(self, repo: StoredRepo) -> Json:
        """Return a repository."""
        url, page = f"{self.base}/repos/{repo.full_name}", f"{self.base}/{repo.full_name}"
        still_open = sum(1 for issue in repo.issues.values() if issue and issue.state == "open")
        created = moment(repo.created_at)
        return {
            "id": repo.id,
            "node_id": node_id("Repository", repo.id),
            "name": repo.name,
            "full_name": repo.full_name,
            "private": repo.private,
            "owner": self.user(repo.owner),
            "html_url": page,
            "description": repo.description or None,
            "fork": False,
            "url": url,
            **{name: f"{url}{place}" for name, place in _REPO_PLACES.items()},
            "clone_url": f"{page}.git",
            "git_url": f"{page}.git",
            "ssh_url": f"{page}.git",
            "svn_url": page,
            **dict.fromkeys(("homepage", "language", "mirror_url", "license")),
            **dict.fromkeys(("forks", "forks_count"), 0),
            **dict.fromkeys(("stargazers_count", "watchers", "watchers_count"), len(repo.stars)),
            "is_template": repo.is_template,
            **dict.fromkeys(("size", "network_count", "subscribers_count"), 0),
            "open_issues": still_open,
            "open_issues_count": still_open,
            "has_issues": repo.has_issues,
            **dict.fromkeys(("has_projects", "has_wiki", "has_pages", "has_downloads", "has_discussions"), False),
            "has_pull_requests": repo.has_pulls,
            "pull_request_creation_policy": repo.pull_policy,
            "allow_rebase_merge": False,
            "archived": repo.archived,
            "disabled": False,
            "visibility": "private" if repo.private else "public",
            "default_branch": repo.default_branch,
            **dict.fromkeys(("created_at", "updated_at"), created),
            "pushed_at": moment(repo.pushed_at or repo.created_at),
        }

    def issue(self, repo: StoredRepo, issue: StoredIssue) -> Json:
        """Return an issue, or a pull request seen as one."""
        at, number = f"{self.base}/repos/{repo.full_name}", issue.number
        url = f"{at}/issues/{number}"
        page = f"{self.base}/{repo.full_name}/{'pull' if issue.is_pull else 'issues'}/{number}"
        assignees = [self.user(account) for account in issue.assignees]
        shown: Json = {
            "id": issue.id,
            "node_id": node_id("PullRequest" if issue.is_pull else "Issue", issue.id),
            "url": url,
            "repository_url": at,
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": page,
            "number": number,
            "state": issue.state,
            "state_reason": issue.state_reason,
            "title": issue.title,
            "body": issue.body,
            "user": self.user(issue.author),
            "labels": [self.label(repo, label) for label in issue.labels],
            "assignee": assignees[0] if assignees else None,
            "assignees": assignees,
            "milestone": None,
            "locked": False,
            "active_lock_reason": None,
            "comments": len(issue.comments),
            "closed_at": moment(issue.closed_at) if issue.closed_at else None,
            "closed_by": self.user(issue.closed_by) if issue.closed_by else None,
            "created_at": moment(issue.created_at),
            "updated_at": moment(issue.updated_at),
            "author_association": association(repo, issue.author),
            "reactions": reaction_counts(issue.reactions, f"{url}/reactions"),
        }
        if issue.is_pull:
            links = {"url": f"{at}/pulls/{number}", "html_url": page}
            shown["pull_request"] = links | {"diff_url": f"{page}.diff", "patch_url": f"{page}.patch"}
        return shown

    def comment(self, repo: StoredRepo, issue: StoredIssue, comment: StoredComment) -> Json:
        """Return a comment."""
        at = f"{self.base}/repos/{repo.full_name}/issues"
        return {
            "id": comment.id,
            "node_id": node_id("IssueComment", comment.id),
            "url": f"{at}/comments/{comment.id}",
            "html_url": f"{self.base}/{repo.full_name}/issues/{issue.number}#issuecomment-{comment.id}",
            "issue_url": f"{at}/{issue.number}",
            "body": comment.body,
            "user": self.user(comment.author),
            "created_at": moment(comment.created_at),
            "updated_at": moment(comment.updated_at),
            "author_association": association(repo, comment.author),
            "reactions": reaction_counts(comment.reactions, f"{at}/comments/{comment.id}/reactions"),
        }

    def label(self, repo: StoredRepo, label: GitHubLabel) -> Json:
        """Return a label."""
        return {
            "id": label.id,
            "node_id": node_id("Label", label.id),
            "url": f"{self.base}/repos/{repo.full_name}/labels/{label.name.replace(' ', '%20')}",
            "name": label.name,
            "color": label.color,
            "default": False,
            "description": label.description,
        }

    def labelling(self, repo: StoredRepo, labelling: StoredLabelling) -> Json:
        """Return the event of a label that was added to an issue or removed."""
        return {
            "id": labelling.id,
            "node_id": node_id("LabeledEvent", labelling.id),
            "url": f"{self.base}/repos/{repo.full_name}/issues/events/{labelling.id}",
            "actor": self.user(labelling.by),
            "event": "labeled" if labelling.added else "unlabeled",
            "commit_id": None,
            "commit_url": None,
            "created_at": moment(labelling.at),
            "performed_via_github_app": None,
            "label": {"name": labelling.label.name, "color": labelling.label.color},
        }

    def reaction(self, reaction: StoredReaction) -> Json:
        """Return a reaction."""
        return {
            "id": reaction.id,
            "node_id": node_id("Reaction", reaction.id),
            "user": self.user(reaction.author),
            "content": reaction.content,
            "created_at": moment(reaction.created_at),
        }


def association(repo: StoredRepo, account: GitHubAccount) -> str:
    """Return the relation of an account to a repository."""
    if account == repo.owner:
        return "OWNER"
    return "COLLABORATOR" if account.login.lower() in repo.collaborators else "NONE"


def reaction_counts(reactions: list[StoredReaction], url: str) -> Json:
    """Return how many reactions there are of each kind."""
    counts = {content: sum(1 for one in reactions if one.content == content) for content in REACTIONS}
    return {"url": url, "total_count": len(reactions), **counts}


def node_id(kind: str, number: int | str) -> str:
    """Return the id of an object in GitHub's GraphQL API."""
    return b64encode(f"{kind}{number}".encode()).decode()


def moment(at: datetime) -> str:
    """Return a time as the API writes it, in whole seconds."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


_BOXES: Mapping[str, str] = {"[ ] ": "☐", "[x] ": "☑"}
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
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
