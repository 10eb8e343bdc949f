"""The names of PyGithub that are used here.

Importing it takes half a second, so only modules that call GitHub import this one, when a client is built.
"""

from github.Auth import Token
from github.Commit import Commit
from github.File import File
from github.GithubException import BadAttributeException, GithubException
from github.GithubObject import CompletableGithubObject, NotSet
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.NamedUser import NamedUser
from github.Organization import Organization
from github.PullRequest import PullRequest
from github.PullRequestComment import PullRequestComment
from github.PullRequestMergeStatus import PullRequestMergeStatus
from github.PullRequestPart import PullRequestPart
from github.PullRequestReview import PullRequestReview
from github.Repository import Repository
from github.Requester import Requester

__all__ = [
    "BadAttributeException",
    "Commit",
    "CompletableGithubObject",
    "File",
    "GithubException",
    "Issue",
    "IssueComment",
    "NamedUser",
    "NotSet",
    "Organization",
    "PullRequest",
    "PullRequestComment",
    "PullRequestMergeStatus",
    "PullRequestPart",
    "PullRequestReview",
    "Repository",
    "Requester",
    "Token",
]
