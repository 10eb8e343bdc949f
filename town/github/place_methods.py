"""Organisations, new repositories, collaborators, stars and follows: one function for each operation."""

import re
from datetime import datetime

from town.github import bodies
from town.github.git_methods import signed
from town.github.network import GitHubNetwork
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.pulls import after_push
from town.github.repository import NO_COMMIT, GitRepository
from town.github.values import GitHubAccount, Json, Refusal, StoredInvitation, StoredRepo, not_found, unprocessable
from town.github.views import moment, node_id

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


def organization(network: GitHubNetwork, login: str) -> GitHubAccount:
    """Return an organisation. Raises `Refusal`."""
    found = network.find(login)
    if found is None or found.kind != "Organization":
        raise not_found()
    return found


def organizations_of(network: GitHubNetwork, account: GitHubAccount) -> list[GitHubAccount]:
    """Return the organisations of which an account is a member, oldest first."""
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
    """Create a repository of one's own, or of one's organisation. Raises `Refusal`."""
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
    """Raise `Refusal` unless the repository belongs to `by` or to an organisation of theirs."""
    if by != repo.owner and by.login.lower() not in network.state.members.get(repo.owner.login.lower(), ()):
        raise Refusal(403, "Must have admin rights to Repository.")


def permission(network: GitHubNetwork, repo: StoredRepo, account: GitHubAccount | None) -> str:
    """Return `admin`, `write`, `read` or `none`."""
    if account is None:
        return "none" if repo.private else "read"
    if account == repo.owner or account.login.lower() in network.state.members.get(repo.owner.login.lower(), ()):
        return "admin"
    if account.login.lower() in repo.collaborators:
        return "write"
    return "none" if repo.private else "read"


def workers(network: GitHubNetwork, repo: StoredRepo) -> list[GitHubAccount]:
    """Return who may push to a repository, oldest account first."""
    logins = {repo.owner.login.lower(), *repo.collaborators, *network.state.members.get(repo.owner.login.lower(), ())}
    found = [account for account in map(network.find, logins) if account and account.kind != "Organization"]
    return sorted(found, key=lambda account: account.id)


def invite(network: GitHubNetwork, repo: StoredRepo, by: GitHubAccount, login: str) -> StoredInvitation | None:
    """Invite an account to work there; return None if it may already. Raises `Refusal`."""
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
    """Accept an invitation, or decline it. Raises `Refusal`."""
    invitation = network.state.invitations.get(invitation_id)
    if invitation is None or invitation.invitee != by:
        raise not_found()
    del network.state.invitations[invitation_id]
    if accept:
        network.any_repo(invitation.repo_id).collaborators.add(by.login.lower())


def drop_collaborator(network: GitHubNetwork, repo: StoredRepo, by: GitHubAccount, login: str) -> None:
    """Remove a collaborator; everybody may remove themselves. Raises `Refusal`."""
    if by.login.lower() != login.lower():
        check_admin(network, repo, by)
    repo.collaborators.discard(login.lower())


_HEADS = "refs/heads/"
_RIGHTS = {
    "admin": ("admin", "maintain", "push", "triage", "pull"),
    "write": ("push", "triage", "pull"),
    "read": ("pull",),
    "none": (),
}


# Organisations


async def _organizations(call: GitHubCall) -> Answer:
    login = call.path.get("login")
    account = call.network.find(login) if login else call.writer
    if account is None:
        raise not_found()
    found = organizations_of(call.network, account)
    return call.page(found, call.views.organization)


async def _organization(call: GitHubCall) -> Answer:
    org = organization(call.network, call.path["org"])
    owned = sum(1 for repo in call.network.repos() if repo.owner == org and not repo.private)
    return Answer(call.views.whole_organization(org, public_repos=owned))


async def _members(call: GitHubCall) -> Answer:
    org = organization(call.network, call.path["org"])
    logins = call.network.state.members.get(org.login.lower(), ())
    found = sorted(filter(None, map(call.network.find, logins)), key=lambda account: account.id)
    return call.page(found, call.views.user)


# Repositories


async def _repos(call: GitHubCall) -> Answer:
    """List the repositories of an organisation or an account, or all that the caller may push to."""
    viewer = call.viewer
    owner = organization(call.network, call.path["org"]) if "org" in call.path else None
    if "login" in call.path:
        owner = call.network.find(call.path["login"])
        if owner is None:
            raise not_found()
    found = [
        repo
        for repo in call.network.repos()
        if (repo.owner == owner if owner else call.network.may_push(repo, call.writer))
        and (not repo.private or call.network.may_push(repo, viewer))
    ]
    sort = call.query.get("sort") or ("created" if owner and owner.kind == "Organization" else "full_name")
    default = "asc" if sort == "full_name" else "desc"
    found.sort(
        key=lambda repo: repo.full_name.lower() if sort == "full_name" else _when(repo, sort),
        reverse=(call.query.get("direction") or default) == "desc",
    )
    return call.page(found, call.views.repo)


def _when(repo: StoredRepo, sort: str) -> str:
    at = (repo.pushed_at or repo.created_at) if sort == "pushed" else repo.created_at
    return f"{at.isoformat()} {repo.id:09}"


async def _create(call: GitHubCall) -> Answer:
    writer = call.writer
    owner = organization(call.network, call.path["org"]) if "org" in call.path else writer
    made = new_repo(
        call.network,
        writer,
        owner,
        bodies.text(call.body, "name", required=True) or "",
        description=bodies.text(call.body, "description") or "",
        private=call.body.get("private") is True,
    )
    made.is_template = call.body.get("is_template") is True
    if call.body.get("auto_init") is True:
        git = call.network.git(made)
        blob = await git.write_blob(f"# {made.name}\n{made.description}".encode())
        await _first_commit(call, made, git, await git.tree_with(None, {"README.md": blob}))
    return Answer(_own(call, made), 201)


async def _generate(call: GitHubCall) -> Answer:
    writer, template = call.writer, call.repo
    if not template.is_template:
        raise unprocessable("Repository", "template", "invalid", message=f"{template.full_name} is not a template")
    login = bodies.text(call.body, "owner") or writer.login
    owner = call.network.find(login)
    if owner is None:
        raise not_found()
    name = bodies.text(call.body, "name", required=True) or ""
    try:
        made = new_repo(
            call.network,
            writer,
            owner,
            name,
            description=bodies.text(call.body, "description") or "",
            private=call.body.get("private") is True,
        )
    except Refusal as refusal:
        if refusal.status != _WRONG:
            raise
        message = "Could not clone: Name already exists on this account"
        raise Refusal(_WRONG, "Unprocessable Entity", (message,)) from refusal
    made.default_branch = template.default_branch
    source, git = call.network.git(template), call.network.git(made)
    refs = {name: sha for name, sha in (await source.refs()).items() if name.startswith(_HEADS)}
    await git.copy_from(source, list(dict.fromkeys(refs.values())))
    for ref, sha in refs.items():
        if ref == f"{_HEADS}{template.default_branch}" or call.body.get("include_all_branches") is True:
            commit = await source.commit(sha)
            if commit:
                await _first_commit(call, made, git, commit.tree, ref.removeprefix(_HEADS))
    return Answer(_own(call, made), 201)


_WRONG = 422


async def _first_commit(call: GitHubCall, repo: StoredRepo, git: GitRepository, tree: str, branch: str = "") -> None:
    sha = await git.write_commit(tree, [], "Initial commit\n", signed(call, call.writer))
    await git.set_ref(f"{_HEADS}{branch or repo.default_branch}", sha, old=NO_COMMIT)
    await after_push(call.network, repo, call.writer)


async def _repo(call: GitHubCall) -> Answer:
    return Answer(_own(call, call.repo))


async def _change(call: GitHubCall) -> Answer:
    writer, repo = call.writer, call.repo
    check_admin(call.network, repo, writer)
    description = bodies.text(call.body, "description")
    repo.description = repo.description if description is None else description
    repo.default_branch = bodies.text(call.body, "default_branch") or repo.default_branch
    for name in ("private", "archived", "has_issues", "is_template"):
        if isinstance(call.body.get(name), bool):
            setattr(repo, name, call.body[name])
    return Answer(_own(call, repo))


def _own(call: GitHubCall, repo: StoredRepo) -> Json:
    """Return a repository by itself, with the caller's rights."""
    shown = call.views.repo(repo)
    if call.viewer:
        rights = _RIGHTS[permission(call.network, repo, call.viewer)]
        shown["permissions"] = {name: name in rights for name in _RIGHTS["admin"]}
    return shown


async def _events(call: GitHubCall) -> Answer:
    """List what was done, newest first: in a repository, or by an account in all public ones."""
    by = call.path.get("login")
    if by and call.network.find(by) is None:
        raise not_found()
    done = []
    for repo in [one for one in call.network.repos() if not one.private] if by else [call.repo]:
        for issue in filter(None, repo.issues.values()):
            kind = "PullRequestEvent" if issue.is_pull else "IssuesEvent"
            done += [(issue.created_at, issue.id, issue.author, kind, repo)]
            done += [(one.created_at, one.id, one.author, "IssueCommentEvent", repo) for one in issue.comments]
        for pull in repo.pulls.values():
            given = [(one.submitted_at, one) for one in pull.reviews if one.submitted_at]
            done += [(at, one.id, one.author, "PullRequestReviewEvent", repo) for at, one in given]
    found = sorted((one for one in done if not by or one[2].login.lower() == by.lower()), key=lambda one: one[:2])
    return call.page(found[::-1], lambda one: _event(call, one))


def _event(call: GitHubCall, done: tuple[datetime, int, GitHubAccount, str, StoredRepo]) -> Json:
    at, number, by, kind, repo = done
    url = f"{call.views.base}/repos/{repo.full_name}"
    user, place = call.views.user(by), {"id": repo.id, "name": repo.full_name, "url": url}
    actor = {name: user[name] for name in ("id", "login", "gravatar_id", "avatar_url", "url")}
    told = {"type": kind, "actor": actor, "repo": place, "payload": {"action": "created"}, "public": not repo.private}
    return {"id": str(number), **told, "created_at": moment(at)}


# Collaborators


async def _collaborators(call: GitHubCall) -> Answer:
    repo = call.repo
    if not call.network.may_push(repo, call.writer):
        raise Refusal(403, "Must have push access to view repository collaborators.")
    found = workers(call.network, repo)
    return call.page(found, lambda account: _worker(call, repo, account))


def _worker(call: GitHubCall, repo: StoredRepo, account: GitHubAccount) -> Json:
    role = permission(call.network, repo, account)
    rights = {name: name in _RIGHTS[role] for name in _RIGHTS["admin"]}
    return {**call.views.user(account), "permissions": rights, "role_name": role}


async def _is_collaborator(call: GitHubCall) -> Answer:
    account = call.network.find(call.path["login"])
    if not call.network.may_push(call.repo, account):
        raise not_found()
    return Answer(None, 204)


async def _permission(call: GitHubCall) -> Answer:
    account = call.network.find(call.path["login"])
    if account is None:
        raise not_found()
    role = permission(call.network, call.repo, account)
    return Answer({"permission": role, "role_name": role, "user": _worker(call, call.repo, account)})


async def _invite(call: GitHubCall) -> Answer:
    made = invite(call.network, call.repo, call.writer, call.path["login"])
    return Answer(_invitation(call, made), 201) if made else Answer(None, 204)


async def _drop(call: GitHubCall) -> Answer:
    drop_collaborator(call.network, call.repo, call.writer, call.path["login"])
    return Answer(None, 204)


async def _invitations(call: GitHubCall) -> Answer:
    found = [one for one in call.network.state.invitations.values() if one.invitee == call.writer]
    return call.page(found, lambda one: _invitation(call, one))


async def _accept(call: GitHubCall) -> Answer:
    answer_invitation(call.network, call.writer, call.path["invitation_id"], accept=True)
    return Answer(None, 204)


async def _decline(call: GitHubCall) -> Answer:
    answer_invitation(call.network, call.writer, call.path["invitation_id"], accept=False)
    return Answer(None, 204)


def _invitation(call: GitHubCall, invitation: StoredInvitation) -> Json:
    repo = call.network.any_repo(invitation.repo_id)
    return {
        "id": invitation.id,
        "node_id": node_id("RepositoryInvitation", invitation.id),
        "repository": call.views.repo(repo),
        "invitee": call.views.user(invitation.invitee),
        "inviter": call.views.user(invitation.inviter),
        "permissions": "write",
        "created_at": moment(invitation.created_at),
        "url": f"{call.views.base}/user/repository_invitations/{invitation.id}",
        "html_url": f"{call.views.base}/{repo.full_name}/invitations",
        "expired": False,
    }


# Stars and follows


async def _star(call: GitHubCall) -> Answer:
    call.repo.stars.add(call.writer.login.lower())
    return Answer(None, 204)


async def _unstar(call: GitHubCall) -> Answer:
    call.repo.stars.discard(call.writer.login.lower())
    return Answer(None, 204)


async def _has_star(call: GitHubCall) -> Answer:
    if call.writer.login.lower() not in call.repo.stars:
        raise not_found()
    return Answer(None, 204)


def _followed(call: GitHubCall) -> tuple[str, str]:
    account = call.network.find(call.path["login"])
    if account is None:
        raise not_found()
    return call.writer.login.lower(), account.login.lower()


async def _follow(call: GitHubCall) -> Answer:
    call.network.state.follows.add(_followed(call))
    return Answer(None, 204)


async def _unfollow(call: GitHubCall) -> Answer:
    call.network.state.follows.discard(_followed(call))
    return Answer(None, 204)


async def _follows(call: GitHubCall) -> Answer:
    if _followed(call) not in call.network.state.follows:
        raise not_found()
    return Answer(None, 204)


_WORKER = "/collaborators/{login}"
IN_REPO: dict[str, dict[str, Handler]] = {
    "": {"GET": _repo, "PATCH": _change},
    "/events": {"GET": _events},
    "/generate": {"POST": _generate},
    "/collaborators": {"GET": _collaborators},
    _WORKER: {"GET": _is_collaborator, "PUT": _invite, "DELETE": _drop},
    f"{_WORKER}/permission": {"GET": _permission},
}
ELSEWHERE: dict[str, dict[str, Handler]] = {
    "/orgs/{org}": {"GET": _organization},
    "/orgs/{org}/members": {"GET": _members},
    "/orgs/{org}/repos": {"GET": _repos, "POST": _create},
    "/user/orgs": {"GET": _organizations},
    "/users/{login}/orgs": {"GET": _organizations},
    "/user/repos": {"GET": _repos, "POST": _create},
    "/users/{login}/repos": {"GET": _repos},
    "/users/{login}/events/public": {"GET": _events},
    "/user/repository_invitations": {"GET": _invitations},
    "/user/repository_invitations/{invitation_id:int}": {"PATCH": _accept, "DELETE": _decline},
    "/user/starred/{owner}/{repo}": {"GET": _has_star, "PUT": _star, "DELETE": _unstar},
    "/user/following/{login}": {"GET": _follows, "PUT": _follow, "DELETE": _unfollow},
}
