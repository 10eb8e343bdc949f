"""What we use of PyGithub, by name.

Importing it takes half a second, so only the modules that speak to GitHub import this one, when a client is built.
"""

from __future__ import annotations

from github.Auth import Token
from github.GithubException import BadAttributeException, GithubException
from github.GithubObject import CompletableGithubObject, NotSet
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.NamedUser import NamedUser
from github.Organization import Organization
from github.Repository import Repository
from github.Requester import Requester

__all__ = [
    "BadAttributeException",
    "CompletableGithubObject",
    "GithubException",
    "Issue",
    "IssueComment",
    "NamedUser",
    "NotSet",
    "Organization",
    "Repository",
    "Requester",
    "Token",
]
