"""What `soul doctor` says of the room and of GitHub: whether they are there, and whether we are who we say."""

from __future__ import annotations

import asyncio
from urllib.parse import urlparse

from adapters.github.client import GitHub
from adapters.github.types import Repo
from adapters.web.transport import http_transport_factory
from common.clock import SystemClock
from common.result import Err, Ok
from common.settings import Settings
from modules.runtime.home import Home
from modules.services.peers.github_account import (
    AccountProblem,
    check_account,
    lacks_vital_right,
    problem_of_shared_account,
    problems_of_rights,
    told_rights,
)
from modules.services.peers.registry import REGISTRY_FILE, read_peers
from modules.services.workspaces.finding import WorkspaceFinder
from soul.commands.findings import Finding, Level

_DEADLINE_S = 10.0
_USUAL_PORTS = {"ws": 80, "wss": 443}


async def examine_outside(settings: Settings, home: Home) -> list[Finding]:
    """A finding for the room, if one is set, and those for GitHub."""
    found = [await _room(settings)] if settings.space_url else []
    if settings.soul_approval == "drafts" and settings.soul_approval_room:
        silent = "it is silent in rooms: each message there would need your approval, and chat cannot wait"
        found.append(Finding("room", "warn", silent, "Set SOUL_APPROVAL_ROOM=off to let it answer the host of a room."))
    return [*found, *await examine_github(settings, home)]


async def _room(settings: Settings) -> Finding:
    """Whether something listens there; joining would be seen by all who are in it."""
    url = urlparse(settings.space_url)
    port = url.port or _USUAL_PORTS[url.scheme]
    try:
        async with asyncio.timeout(_DEADLINE_S):
            _, writer = await asyncio.open_connection(url.hostname, port)
    except (TimeoutError, OSError) as error:
        why = getattr(error, "strerror", "") or "no answer"
        return Finding("room", "warn", f"nobody answers at {url.hostname}:{port} ({why})", "Start it: soul space")
    writer.close()
    return Finding("room", "ok", f"something listens at {url.hostname}:{port}")


async def examine_github(settings: Settings, home: Home) -> list[Finding]:
    """Return whether the account on GitHub can be used, what its token may do, and where its workspace is."""
    login, token = settings.agent_github_username, settings.agent_github_token.get_secret_value()
    if not login and not token:
        return [Finding("GitHub", "ok", "not set: it makes no commitment that needs GitHub")]
    if not (login and token):
        missing = "AGENT_GITHUB_TOKEN" if login else "AGENT_GITHUB_USERNAME"
        return [Finding("GitHub", "fail", f"{missing} is missing", "Set both in .env, or neither.")]
    github = GitHub(
        api_url=settings.github_api_url,
        login=login,
        token=token,
        clock=SystemClock(),
        min_spacing_s=0,
        transport=http_transport_factory(settings.github_api_url, private_ok=settings.soul_allow_private_net),
    )
    try:
        found = await check_account(github)
        workspace = [await _workspace(settings, github)] if settings.workspace_org else []
    finally:
        await github.aclose()
    if isinstance(found, AccountProblem):
        return [Finding("GitHub", "fail", found.message, found.remedy)]
    level: Level = "fail" if lacks_vital_right(found) else "warn"
    findings = [
        Finding("GitHub", "ok", f"logged in as {found.login}"),
        Finding("GitHub token", "ok", told_rights(found)),
        *(Finding("GitHub token", level, one.message, one.remedy) for one in problems_of_rights(found)),
    ]
    shared = problem_of_shared_account(login, read_peers(home.memory / REGISTRY_FILE))
    sharing = [Finding("GitHub account", "warn", shared.message, shared.remedy)] if shared else []
    return [*findings, *workspace, *sharing]


async def _workspace(settings: Settings, github: GitHub) -> Finding:
    """Where the workspace of the organisation is; if there is none, whether one could be made from the template."""
    org, template = settings.workspace_org, settings.workspace_template
    url = await WorkspaceFinder(github, SystemClock()).get_workspace_url(org)
    if isinstance(url, Err):
        return Finding("workspace", "warn", f"{org} cannot be looked through: {url.error}", "Check WORKSPACE_ORG.")
    if url.data:
        return Finding("workspace", "ok", f"that of {org} is {url.data}")
    owner, _, name = template.partition("/")
    read = await github.get_repository(Repo(owner, name))
    if isinstance(read, Ok) and read.data.is_template:
        return Finding("workspace", "ok", f"{org} has none; it can be made from {template} when you ask for it")
    problem = read.error if isinstance(read, Err) else f"{template} is no template repository"
    return Finding("workspace", "warn", f"{org} has none, and none can be made: {problem}", "Check WORKSPACE_TEMPLATE.")
