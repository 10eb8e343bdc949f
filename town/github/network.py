"""State and rules of the town's GitHub: accounts, repositories, issues, notifications and rights. No HTTP.

Everything except the Git repositories is in memory, can be copied as a whole, and is gone with the process. One event
loop owns it; only methods that use Git wait.
"""

import itertools
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from common.clock import Clock
from common.text.github_text import mentioned_logins
from town.github.repository import GitProcess, GitRepository
from town.github.values import (
    ALL_SCOPES,
    AccountKind,
    GitHubAccount,
    GitHubEvent,
    GitHubLabel,
    Refusal,
    State,
    StoredComment,
    StoredInvitation,
    StoredIssue,
    StoredLabelling,
    StoredPull,
    StoredReaction,
    StoredRepo,
    StoredThread,
    ThreadReason,
    Token,
    edit_text,
    forbidden,
    not_found,
    unprocessable,
)

_WATCHING: ThreadReason = "subscribed"


def reasons(
    repo: StoredRepo,
    issue: StoredIssue,
    by: GitHubAccount,
    *,
    text: str = "",
    assigned: Iterable[GitHubAccount] = (),
    requested: Iterable[GitHubAccount] = (),
) -> dict[str, ThreadReason]:
    """Return why each account is notified that `by` did something to an issue, by its login in lower case.

    The first reason counts: mention, requested review, new assignment, author, assignee, commenter or reviewer, owner.
    """
    pull: StoredPull | None = repo.pulls.get(issue.number)
    told: dict[str, ThreadReason] = {repo.owner.login.lower(): _WATCHING}
    reviewers = [review.author for review in pull.reviews if review.state != "PENDING"] if pull else []
    told |= dict.fromkeys((one.login.lower() for one in (*reviewers, *(c.author for c in issue.comments))), "comment")
    told |= dict.fromkeys((one.login.lower() for one in issue.assignees), "assign")
    told[issue.author.login.lower()] = "author"
    told |= dict.fromkeys((one.login.lower() for one in assigned), "assign")
    told |= dict.fromkeys((one.login.lower() for one in requested), "review_requested")
    told |= dict.fromkeys(mentioned_logins(text), "mention")
    told.pop(by.login.lower(), None)
    return told


class NotifiedThreads:
    """The notification threads of all accounts."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, int, int], StoredThread] = {}
        self._changed: dict[str, datetime] = {}

    def tell(
        self,
        account: GitHubAccount,
        repo: StoredRepo,
        issue: StoredIssue,
        reason: ThreadReason,
        *,
        thread_id: int,
        at: datetime,
        comment_id: int | None,
    ) -> None:
        """Notify the account: its thread is unread again, or a new one gets the number `thread_id`."""
        key = (account.login, repo.id, issue.number)
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = StoredThread(thread_id, account, repo.id, issue, reason, at)
        thread.cause, thread.updated_at, thread.unread, thread.done = reason, at, True, False
        thread.comment_id = comment_id
        self._changed[account.login] = at

    def of(
        self,
        account: GitHubAccount,
        *,
        read: bool = False,
        participating: bool = False,
        since: datetime | None = None,
        before: datetime | None = None,
        repo_id: int | None = None,
    ) -> list[StoredThread]:
        """Return the account's threads, newest first; with `read` also those that it has read."""
        found = [
            thread
            for thread in self._threads.values()
            if thread.account == account
            and not thread.done
            and (read or thread.unread)
            and not (participating and thread.cause == _WATCHING)
            and (since is None or thread.updated_at.replace(microsecond=0) >= since)
            and (before is None or thread.updated_at < before)
            and repo_id in {None, thread.repo_id}
        ]
        return sorted(found, key=lambda thread: (thread.updated_at, thread.id), reverse=True)

    def find(self, account: GitHubAccount, thread_id: int) -> StoredThread | None:
        """Return a thread of the account."""
        found = (one for one in self._threads.values() if one.id == thread_id and one.account == account)
        return next(found, None)

    def set_read(self, threads: Collection[StoredThread], *, at: datetime, done: bool = False) -> None:
        """Mark threads as read; with `done` they are not shown again."""
        for thread in threads:
            thread.unread, thread.last_read_at, thread.done = False, at, done
            self._changed[thread.account.login] = at

    def modified(self, account: GitHubAccount) -> datetime | None:
        """Return when the account's list last changed; None if there never was anything in it."""
        return self._changed.get(account.login)


@dataclass(slots=True)
class NetworkState:
    """The stored state.

    Attributes:
        accounts: by login in lower case.
        tokens: by their text.
        repos: by full name in lower case.
        moved: by a former full name in lower case.
        members: the logins of an organisation's members, by its login; all in lower case.
        invitations: the unanswered ones, by number.
        follows: pairs of follower and followed, logins in lower case.
        notifications: of all accounts.

    """

    accounts: dict[str, GitHubAccount] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    repos: dict[str, StoredRepo] = field(default_factory=dict)
    moved: dict[str, StoredRepo] = field(default_factory=dict)
    members: dict[str, set[str]] = field(default_factory=dict)
    invitations: dict[int, StoredInvitation] = field(default_factory=dict)
    follows: set[tuple[str, str]] = field(default_factory=set)
    notifications: NotifiedThreads = field(default_factory=NotifiedThreads)


def set_labels(
    repo: StoredRepo,
    issue: StoredIssue,
    names: Sequence[str],
    *,
    by: GitHubAccount,
    at: datetime,
    new_id: Callable[[], int],
) -> None:
    """Give an issue these labels and no others, and record who changed them."""
    for name in names:
        if name.lower() not in repo.labels:
            repo.labels[name.lower()] = GitHubLabel(new_id(), name)
    wanted = [repo.labels[name] for name in dict.fromkeys(name.lower() for name in names)]
    changed = [(one, True) for one in wanted if one not in issue.labels]
    changed += [(one, False) for one in issue.labels if one not in wanted]
    issue.labellings += [StoredLabelling(new_id(), one, by, added, at) for one, added in changed]
    issue.labels = wanted


MAX_BODY_CHARS = 65_536
MAX_TITLE_CHARS = 256
Listener = Callable[[GitHubEvent], None]


class GitHubNetwork:
    """All accounts and repositories. Logins and names are found in any case.

    Bare Git repositories are created in `git_folder`, an empty folder, when they are needed; without it there are
    none. A past network, for reading only, has the `state` of that time, and `pinned` references by repository.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        git_folder: Path | None = None,
        state: NetworkState | None = None,
        pinned: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self.clock = clock
        self.state = state or NetworkState()
        self.git_folder = git_folder
        self._git = GitProcess()
        self._pinned = pinned
        self._ids = itertools.count(1)
        self._listeners: list[Listener] = []

    # Accounts

    def new_id(self) -> int:
        """Return an unused number."""
        return next(self._ids)

    def create_account(
        self,
        login: str,
        *,
        name: str = "",
        kind: AccountKind = "User",
        token: str | None = None,
        website: str = "",
    ) -> GitHubAccount:
        """Create an account with `token`, or with a random one; its page shows `website`.

        Raises `ValueError` if the login is taken.
        """
        if login.lower() in self.state.accounts:
            raise ValueError(f"{login} is taken")
        secret = f"ghp_{secrets.token_hex(18)}" if token is None else token
        account = GitHubAccount(self.new_id(), login, name, kind, secret, self.clock.now(), website)
        self.state.accounts[login.lower()] = account
        if secret:
            self.issue_token(account, secret)
        return account

    def issue_token(self, account: GitHubAccount, token: str, scopes: tuple[str, ...] | None = ALL_SCOPES) -> None:
        """Give the account another token. Its prefix may make it fine-grained or an application's."""
        has_scopes = not token.startswith(("github_pat_", "ghs_"))
        self.state.tokens[token] = Token(account, scopes if has_scopes else None, token.startswith("ghs_"))

    def revoke(self, token: str) -> None:
        """Make a token invalid."""
        self.state.tokens.pop(token, None)

    def find(self, login: str) -> GitHubAccount | None:
        return self.state.accounts.get(login.lower())

    def by_token(self, token: str) -> Token | None:
        return self.state.tokens.get(token)

    # Repositories

    def create_repo(
        self,
        owner: GitHubAccount,
        name: str,
        *,
        description: str = "",
        private: bool = False,
        has_issues: bool = True,
        collaborators: Sequence[str] = (),
    ) -> StoredRepo:
        """Create a repository. Raises `ValueError` if the name is taken."""
        repo = StoredRepo(self.new_id(), owner, name, description, self.clock.now(), private, has_issues=has_issues)
        repo.collaborators = {login.lower() for login in collaborators}
        if repo.full_name.lower() in self.state.repos:
            raise ValueError(f"{repo.full_name} is taken")
        self.state.repos[repo.full_name.lower()] = repo
        return repo

    def rename_repo(self, repo: StoredRepo, name: str) -> None:
        """Rename a repository; the old name leads to it from now on."""
        self.state.moved[repo.full_name.lower()] = self.state.repos.pop(repo.full_name.lower())
        repo.name = name
        self.state.repos[repo.full_name.lower()] = repo

    def repos(self) -> list[StoredRepo]:
        """Return all repositories, oldest first."""
        return sorted(self.state.repos.values(), key=lambda repo: repo.id)

    def repo(self, owner: str, name: str, viewer: GitHubAccount | None) -> StoredRepo:
        """Return a repository that `viewer` may see. Raises `Refusal`."""
        return self._visible(self.state.repos.get(f"{owner}/{name}".lower()), viewer)

    def repo_by_id(self, repo_id: int, viewer: GitHubAccount | None) -> StoredRepo:
        """Return a repository that `viewer` may see, by its number. Raises `Refusal`."""
        return self._visible(self.any_repo(repo_id), viewer)

    def moved(self, owner: str, name: str) -> StoredRepo | None:
        """Return the repository that had this name before; None if another has it now."""
        full_name = f"{owner}/{name}".lower()
        return None if full_name in self.state.repos else self.state.moved.get(full_name)

    def may_push(self, repo: StoredRepo, account: GitHubAccount | None) -> bool:
        if account is None:
            return False
        members = self.state.members.get(repo.owner.login.lower(), ())
        return account == repo.owner or account.login.lower() in {*repo.collaborators, *members}

    def any_repo(self, repo_id: int) -> StoredRepo:
        """Return a repository by its number, whoever may see it. Raises `Refusal`."""
        found = next((repo for repo in self.state.repos.values() if repo.id == repo_id), None)
        if found is None:
            raise not_found()
        return found

    async def all_refs(self) -> dict[int, dict[str, str]]:
        """Return the references of all Git repositories that exist, by the numbers of their repositories."""
        made = [repo for repo in self.repos() if self.git_folder and (self.git_folder / f"{repo.id}.git").exists()]
        return {repo.id: await self.git(repo).refs() for repo in made}

    def check_writable(self, repo: StoredRepo) -> None:
        """Raise `Refusal` if nothing may be changed in this repository."""
        if repo.archived:
            raise Refusal(403, "Repository was archived so is read-only.")

    def git(self, repo: StoredRepo) -> GitRepository:
        """Return the Git repository of a repository. Raises `Refusal` if there is no folder for them."""
        if self.git_folder is None:
            raise Refusal(404, "This repository is empty.")
        pinned = None if self._pinned is None else self._pinned.get(repo.id, {})
        folder = self.git_folder / f"{repo.id}.git"
        return GitRepository(folder, self._git, default_branch=repo.default_branch, pinned=pinned)

    # Issues

    def issue(self, repo: StoredRepo, number: int) -> StoredIssue:
        """Return an issue. Raises `Refusal`."""
        if number not in repo.issues:
            raise not_found()
        found = repo.issues[number]
        if found is None:
            raise Refusal(410, "This issue was deleted")
        return found

    def open_issue(
        self,
        repo: StoredRepo,
        author: GitHubAccount,
        *,
        title: str,
        body: str | None = None,
        labels: Sequence[str] = (),
        assignees: Sequence[str] = (),
        is_pull: bool = False,
    ) -> StoredIssue:
        """Open an issue; labels and assignees count only from accounts that may push. Raises `Refusal`."""
        self.check_writable(repo)
        if not repo.has_issues and not is_pull:
            raise Refusal(410, "Issues has been disabled in this repository.")
        self._check_text("Issue", title=title, body=body)
        pushes, now = self.may_push(repo, author), self.clock.now()
        issue = StoredIssue(self.new_id(), len(repo.issues) + 1, title, body, author, now, now, is_pull=is_pull)
        if pushes:
            issue.assignees = self._assignable(repo, assignees)
            set_labels(repo, issue, labels, by=author, at=now, new_id=self.new_id)
        repo.issues[issue.number] = issue
        self.notify(repo, issue, author, text=body or "", assigned=issue.assignees)
        self.tell(GitHubEvent("issue_opened", repo.full_name, issue.number, author.login))
        return issue

    def change_issue(
        self,
        repo: StoredRepo,
        issue: StoredIssue,
        by: GitHubAccount,
        *,
        title: str | None = None,
        body: str | None = None,
        state: State | None = None,
        state_reason: str | None = None,
        labels: Sequence[str] | None = None,
        assignees: Sequence[str] | None = None,
    ) -> None:
        """Change the given fields; its author may, and whoever may push. Raises `Refusal`."""
        self.check_writable(repo)
        pushes = self.may_push(repo, by)
        if not pushes and by != issue.author:
            raise forbidden()
        self._check_text("Issue", title=issue.title if title is None else title, body=body)
        merged = issue.number in repo.pulls and repo.pulls[issue.number].merged_at is not None
        if merged and state == "open":
            raise unprocessable("Issue", "state", "invalid")
        chosen = self._assignable(repo, assignees) if pushes and assignees is not None else None
        before = issue.assignees
        issue.title = issue.title if title is None else title
        edit_text(issue, body, by=by, at=self.clock.now(), new_id=self.new_id)
        if pushes:
            issue.assignees = issue.assignees if chosen is None else chosen
            if labels is not None:
                set_labels(repo, issue, labels, by=by, at=self.clock.now(), new_id=self.new_id)
        closing = bool(state and state != issue.state)
        if state and closing:
            self.set_state(issue, by, state, state_reason)
        newly = [account for account in issue.assignees if account not in before]
        if closing or newly:
            self.notify(repo, issue, by, assigned=newly)
        self.touch(repo, issue, by)

    def assign(
        self,
        repo: StoredRepo,
        issue: StoredIssue,
        by: GitHubAccount,
        *,
        add: Sequence[str] = (),
        drop: Sequence[str] = (),
    ) -> None:
        """Add or drop assignees; ignore accounts that cannot be assigned. Raises `Refusal`."""
        self.check_writable(repo)
        if not self.may_push(repo, by):
            raise forbidden()
        gone = {login.lower() for login in drop}
        kept = [account for account in issue.assignees if account.login.lower() not in gone]
        able = [account for account in map(self.find, add) if account and self.may_push(repo, account)]
        newly = [account for account in able if account not in issue.assignees]
        issue.assignees = list({account.login: account for account in (*kept, *able)}.values())
        if newly:
            self.notify(repo, issue, by, assigned=newly)
        self.touch(repo, issue, by)

    def delete_issue(self, repo: StoredRepo, issue: StoredIssue, by: GitHubAccount) -> None:
        """Delete an issue, as the repository's owner can on the site."""
        repo.issues[issue.number] = None
        self.tell(GitHubEvent("issue_deleted", repo.full_name, issue.number, by.login))

    def write_comment(self, repo: StoredRepo, issue: StoredIssue, author: GitHubAccount, body: str) -> StoredComment:
        """Write a comment. Raises `Refusal`."""
        self.check_writable(repo)
        if not body.strip():
            raise unprocessable("IssueComment", "body", "missing_field")
        self._check_text("IssueComment", title="-", body=body)
        now = self.clock.now()
        comment = StoredComment(self.new_id(), body, author, now, now)
        issue.comments.append(comment)
        issue.updated_at = now
        self.notify(repo, issue, author, text=body, comment_id=comment.id)
        self.tell(GitHubEvent("comment_written", repo.full_name, issue.number, author.login))
        return comment

    def delete_comment(self, repo: StoredRepo, comment_id: int, by: GitHubAccount) -> None:
        """Delete a comment; its author may, and whoever may push. Raises `Refusal`."""
        self.check_writable(repo)
        for issue in filter(None, repo.issues.values()):
            for comment in issue.comments:
                if comment.id == comment_id:
                    if by != comment.author and not self.may_push(repo, by):
                        raise forbidden()
                    issue.comments.remove(comment)
                    self.tell(GitHubEvent("comment_deleted", repo.full_name, issue.number, by.login))
                    return
        raise not_found()

    def change_comment(
        self, repo: StoredRepo, issue: StoredIssue, comment: StoredComment, by: GitHubAccount, body: str
    ) -> None:
        """Change a comment; its author may, and whoever may push. Raises `Refusal`."""
        self.check_writable(repo)
        if by != comment.author and not self.may_push(repo, by):
            raise forbidden()
        if not body.strip():
            raise unprocessable("IssueComment", "body", "missing_field")
        self._check_text("IssueComment", title="-", body=body)
        edit_text(comment, body, by=by, at=self.clock.now(), new_id=self.new_id)
        comment.updated_at = self.clock.now()
        self.touch(repo, issue, by)

    def react(self, to: StoredIssue | StoredComment, by: GitHubAccount, content: str) -> tuple[StoredReaction, bool]:
        """Add a reaction unless it exists; return it, and whether it is new."""
        for reaction in to.reactions:
            if (reaction.author, reaction.content) == (by, content):
                return reaction, False
        reaction = StoredReaction(self.new_id(), content, by, self.clock.now())
        to.reactions.append(reaction)
        return reaction, True

    def notify(
        self,
        repo: StoredRepo,
        issue: StoredIssue,
        by: GitHubAccount,
        *,
        text: str = "",
        assigned: Sequence[GitHubAccount] = (),
        requested: Sequence[GitHubAccount] = (),
        comment_id: int | None = None,
    ) -> None:
        """Notify participants, and those whom `text` mentions, of what `by` did just now."""
        told = reasons(repo, issue, by, text=text, assigned=assigned, requested=requested)
        for login, reason in told.items():
            account = self.find(login)
            if account and account.kind == "User" and (not repo.private or self.may_push(repo, account)):
                now = self.clock.now()
                self.state.notifications.tell(
                    account, repo, issue, reason, thread_id=self.new_id(), at=now, comment_id=comment_id
                )

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` at once after each change, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _visible(self, repo: StoredRepo | None, viewer: GitHubAccount | None) -> StoredRepo:
        if repo is None or (repo.private and not self.may_push(repo, viewer)):
            raise not_found()
        return repo

    def _check_text(self, resource: str, *, title: str, body: str | None) -> None:
        if not title.strip():
            raise unprocessable(resource, "title", "missing_field")
        for name, text, most in (("title", title, MAX_TITLE_CHARS), ("body", body or "", MAX_BODY_CHARS)):
            if len(text) > most:
                message = f"{name} is too long (maximum is {most} characters)"
                raise unprocessable(resource, name, "custom", message=message)

    def _assignable(self, repo: StoredRepo, logins: Sequence[str]) -> list[GitHubAccount]:
        accounts: dict[str, GitHubAccount] = {}
        for login in logins:
            account = self.find(login)
            if account is None or not self.may_push(repo, account):
                raise unprocessable("Issue", "assignees", "invalid", value=login)
            accounts[account.login] = account
        return list(accounts.values())

    def set_state(self, issue: StoredIssue, by: GitHubAccount, state: State, reason: str | None = None) -> None:
        """Close or reopen an issue."""
        closed = state == "closed"
        issue.state = state
        issue.state_reason = reason or ("completed" if closed else "reopened")
        issue.closed_at = self.clock.now() if closed else None
        issue.closed_by = by if closed else None

    def touch(self, repo: StoredRepo, issue: StoredIssue, by: GitHubAccount) -> None:
        """Mark an issue as changed just now."""
        issue.updated_at = self.clock.now()
        self.tell(GitHubEvent("issue_changed", repo.full_name, issue.number, by.login))

    def tell(self, event: GitHubEvent) -> None:
        """Tell all listeners of an event."""
        for listener in list(self._listeners):
            listener(event)
