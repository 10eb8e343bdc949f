"""All tools that reach GitHub, as the registry takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from local_tools.github import GitHubTools, github_tools
from local_tools.pull_requests import PullToolServices, pull_request_tools
from local_tools.repositories import repository_tools
from local_tools.workspaces import WorkspaceToolServices, workspace_tools
from modules.services.agent.tools.types import Tool
from modules.services.identity.identity import Identity, Me


class FamilyServices(PullToolServices, WorkspaceToolServices, Protocol):
    """What all of them are built from."""

    me: Me
    identity: Identity


def all_github_tools(services: FamilyServices) -> Sequence[Tool]:
    """Return those for threads, for repositories, for pull requests, and for workspaces."""
    me = services.me
    names = (me.agent_name, me.github_username, services.identity.display_name)
    in_threads = github_tools(GitHubTools(services.outbox, services.skills, names))
    return (*in_threads, *repository_tools(services), *pull_request_tools(services), *workspace_tools(services))
