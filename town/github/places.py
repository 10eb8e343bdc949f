"""The rules of organisations, of new repositories, and of who may work in one. No Git and no HTTP inside."""

from __future__ import annotations

import re

from town.github.network import GitHubNetwork
from town.github.values import GitHubAccount, Refusal, StoredInvitation, StoredRepo, not_found, unprocessable

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


def organization(network: GitHubNetwork, login: str) -> GitHubAccount:
    """An organisation. Raises `Refusal`."""
    found = network.find(login)
    if found is None or found.kind != "Organization":
        raise not_found()
    return found


def organizations_of(network: GitHubNetwork, account: GitHubAccount) -> list[GitHubAccount]:
    """The organisations of which an account is a member, the oldest first."""
    found = (network.find(org) for org, members in network.state.members.items() if account.login.lower() in members)
    return sorted(filter(None, found), key=lambda org: org.id)


def new_repo(
    network: GitHubNetwork,
    by: GitHubAccount,
    owner: GitHubAccount,
    name: str,
    *,
    description: str = "",
    private: bool = False,
) -> StoredRepo:
    """A new repository of one's own, or of one's organisation. Raises `Refusal`."""
    if owner != by and by.login.lower() not in network.state.members.get(owner.login.lower(), ()):
        raise Refusal(403, "You need admin access to the organization before adding a repository to it.")
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        message = "name can only contain ASCII letters, digits, and the characters ., -, and _"
        raise unprocessable("Repository", "name", "custom", message=message)
    try:
        return network.create_repo(owner, name, description=description, private=private)
    except ValueError as error:
        message = "name already exists on this account"
        raise unprocessable("Repository", "name", "custom", message=message) from error


def check_admin(network: GitHubNetwork, repo: StoredRepo, by: GitHubAccount) -> None:
    """Raises `Refusal` if it is neither one's own nor one's organisation's."""
    if by != repo.owner and by.login.lower() not in network.state.members.get(repo.owner.login.lower(), ()):
        raise forbidden_admin()


def forbidden_admin() -> Refusal:
    """What only who owns a repository can do."""
    return Refusal(403, "Must have admin rights to Repository.")


def permission(network: GitHubNetwork, repo: StoredRepo, account: GitHubAccount | None) -> str:
    """`admin`, `write`, `read` or `none`."""
    if account is None:
        return "none" if repo.private else "read"
    if account == repo.owner or account.login.lower() in network.state.members.get(repo.owner.login.lower(), ()):
        return "admin"
    if account.login.lower() in repo.collaborators:
        return "write"
    return "none" if repo.private else "read"


def workers(network: GitHubNetwork, repo: StoredRepo) -> list[GitHubAccount]:
    """Who may push to a repository, the oldest account first."""
    logins = {repo.owner.login.lower(), *repo.collaborators, *network.state.members.get(repo.owner.login.lower(), ())}
    found = [account for account in map(network.find, logins) if account and account.kind != "Organization"]
    return sorted(found, key=lambda account: account.id)


def invite(network: GitHubNetwork, repo: StoredRepo, by: GitHubAccount, login: str) -> StoredInvitation | None:
    """An invitation to work there; None for who does already. Raises `Refusal`."""
    check_admin(network, repo, by)
    invitee = network.find(login)
    if invitee is None:
        raise not_found()
    if network.may_push(repo, invitee):
        return None
    for invitation in network.state.invitations.values():
        if (invitation.repo_id, invitation.invitee) == (repo.id, invitee):
            return invitation
    made = StoredInvitation(network.new_id(), repo.id, invitee, by, network.clock.now())
    network.state.invitations[made.id] = made
    return made


def answer_invitation(network: GitHubNetwork, by: GitHubAccount, invitation_id: int, *, accept: bool) -> None:
    """Take an invitation, or decline it. Raises `Refusal`."""
    invitation = network.state.invitations.get(invitation_id)
    if invitation is None or invitation.invitee != by:
        raise not_found()
    del network.state.invitations[invitation_id]
    if accept:
        network.any_repo(invitation.repo_id).collaborators.add(by.login.lower())


def drop_collaborator(network: GitHubNetwork, repo: StoredRepo, by: GitHubAccount, login: str) -> None:
    """Let somebody work there no longer; everybody may leave by themselves. Raises `Refusal`."""
    if by.login.lower() != login.lower():
        check_admin(network, repo, by)
    repo.collaborators.discard(login.lower())
