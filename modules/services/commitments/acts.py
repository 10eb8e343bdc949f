"""Which public acts fulfil a commitment: the acts leave by the outbox, one part after the other.

Each act has a target that no other has, so the outbox lets none happen twice, however often it is proposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from adapters.github.types import Repo
from common.schemas import GITHUB_COMMITMENT_TYPES
from common.text.github_text import comment_body, without_mentions
from common.text.graphemes import fit_post_text, grapheme_len, leading_sentences
from common.text.untrusted import clean
from modules.services.commitments import texts
from modules.services.commitments.naming import NO_REPO, issue_number, resolve_repo, said, title_of
from modules.services.commitments.policy import FOUND_ROOM, HOST_NAMED, HOST_REQUEST
from modules.services.commitments.types import QueuedCommitment
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.plans.tasks import plan_labels
from modules.services.voice_phrases.store import Phrase

MOST_ISSUES = 5
MEMO = "memo"
WAITS_FOR_WORKSPACE = "waits for a workspace: it names no repository, and there is not just one that is watched"
PLAN = "plan"
"""The parameter of a commitment that holds its plan, once that is made: `title` and `body` of the issue."""

WAITS_FOR_GITHUB = "waits for an account on GitHub (AGENT_GITHUB_USERNAME, AGENT_GITHUB_TOKEN)"
SOCIAL_ONLY = "Social-only: this life does nothing on GitHub"

_ABOUT_CHARS = 80
_POST_CHARS = 300
_FOUND = "found"
_HELD_POST = "committed to in a room that was only found on the network"
_HELD_TALK = "committed to in a room whose host did not ask for a post"
_HELD_REQUEST = "committed to for somebody on Bluesky who is not the owner"


@dataclass(frozen=True, slots=True)
class CommitmentWork:
    """What is to be done, in order; or why it cannot be (`problem`), or why not yet (`waits`).

    `plan_for` is the repository for which a plan has to be made first.
    """

    actions: tuple[ProposedAction, ...] = ()
    plan_for: Repo | None = None
    problem: str = ""
    waits: str = ""


def work_of(
    commitment: QueuedCommitment,
    *,
    phrase: Phrase,
    default_repo: Repo | None = None,
    github: bool = True,
    social_only: bool = False,
) -> CommitmentWork:
    """The acts of one commitment.

    Args:
        commitment: the commitment.
        phrase: returns operational texts.
        default_repo: taken where it names none.
        github: whether there is an account to write as.
        social_only: whether this life keeps away from GitHub.

    """
    if commitment.type in GITHUB_COMMITMENT_TYPES:
        if waits := SOCIAL_ONLY if social_only else "" if github else WAITS_FOR_GITHUB:
            return CommitmentWork(waits=waits)
        repo = resolve_repo(commitment.params, default_repo)
        if commitment.type == "create_plan":
            return _plan(commitment, repo) if repo else CommitmentWork(waits=WAITS_FOR_WORKSPACE)
        if repo is None:
            return CommitmentWork(problem=NO_REPO)
        return _issues(commitment, repo, phrase) if commitment.type == "create_issue" else _comment(commitment, repo)
    return _post(commitment)


def announcement_target(commitment: QueuedCommitment) -> str:
    """The target of the act that tells of it in the room."""
    return f"{commitment.id}#announced"


class Origin(TypedDict):
    """The fields by which the rules know the reason of an act."""

    commitment_id: str
    source: str
    host_request: bool
    host_named: bool


def origin(commitment: QueuedCommitment) -> Origin:
    """The fields that every act of a commitment carries, so that the rules at admission know its reason.

    Whoever is in the same network can open a room and be its host: a commitment made there weighs no more than one
    that a stranger talked us into.
    """
    found = commitment.params.get(FOUND_ROOM) is True
    host_request = commitment.params.get(HOST_REQUEST) is True and not found
    host_named = commitment.params.get(HOST_NAMED) is True and not found
    source = _FOUND if found else commitment.source
    return Origin(commitment_id=commitment.id, source=source, host_request=host_request, host_named=host_named)


def result_of(commitment: QueuedCommitment, done: Sequence[Intent]) -> dict[str, Any]:
    """What came of the acts that are done, as the queue keeps it."""
    match commitment.type:
        case "create_issue":
            issues = [
                {
                    "number": one.issue_number,
                    "title": one.body.title if isinstance(one.body, IssueBody) else "",
                    "url": one.result_uri or "",
                }
                for one in done
            ]
            return {"issues": issues, "count": len(issues)}
        case "create_plan":
            return plan_result(done[0].issue_number, done[0].result_uri or "") if done else {}
        case "post_bluesky":
            return {"uri": done[0].result_uri, "cid": done[0].made("record")} if done else {}
        case _:
            return {"url": done[0].result_uri, "id": int(done[0].made("comment") or 0)} if done else {}


def plan_result(number: int, url: str) -> dict[str, Any]:
    """What came of a commitment to a plan, as the queue keeps it."""
    return {"issueNumber": number, "issueUrl": url}


def _plan(commitment: QueuedCommitment, repo: Repo) -> CommitmentWork:
    """The issue of a plan that was made; before that, nothing but the plan to be made."""
    plan = commitment.params.get(PLAN)
    title, body = (plan.get("title"), plan.get("body")) if isinstance(plan, Mapping) else (None, None)
    if not (isinstance(title, str) and isinstance(body, str)):
        return CommitmentWork(plan_for=repo)
    labels = plan_labels((), "active")
    issue = IssueBody(
        **origin(commitment),
        repo=repo.full_name,
        title=title,
        body=body,
        labels=labels,
    )
    return CommitmentWork((_action(commitment, 1, issue),))


def _issues(commitment: QueuedCommitment, repo: Repo, phrase: Phrase) -> CommitmentWork:
    params = commitment.params
    count = _count(params)
    body = texts.issue_body(commitment, said(params, "description", "content") or commitment.description, phrase)
    labels = (MEMO,) if params.get(MEMO) is True else ()
    actions = []
    for number in range(1, count + 1):
        title = texts.numbered_title(without_mentions(title_of(commitment)), number, count)
        issue = IssueBody(
            **origin(commitment),
            repo=repo.full_name,
            title=title,
            body=body,
            labels=labels,
        )
        actions.append(_action(commitment, number, issue))
    return CommitmentWork(tuple(actions))


def _comment(commitment: QueuedCommitment, repo: Repo) -> CommitmentWork:
    params = commitment.params
    text = said(params, "body", "description", "content") or commitment.description
    number = issue_number(params, said(params, "title"), commitment.description, text)
    if number is None:
        return CommitmentWork(problem="it names no issue to comment on")
    body = comment_body(text)
    comment = IssueCommentBody(
        **origin(commitment),
        repo=repo.full_name,
        number=number,
        body=body,
    )
    return CommitmentWork((_action(commitment, 1, comment),))


def _post(commitment: QueuedCommitment) -> CommitmentWork:
    text = clean(said(commitment.params, "content", "text", "description") or commitment.description)
    if grapheme_len(text) > _POST_CHARS:
        text = leading_sentences(text, _POST_CHARS) or fit_post_text(text, max_graphemes=_POST_CHARS)
    if not text:
        return CommitmentWork(problem="there is nothing to post")
    return CommitmentWork((_action(commitment, 1, PostBody(**origin(commitment), text=text)),))


def _action(commitment: QueuedCommitment, number: int, body: PostBody | IssueBody | IssueCommentBody) -> ProposedAction:
    return ProposedAction(
        body,
        part=f"{commitment.id}#{number}",
        cause_id=commitment.source_thread_uri,
        hold=_held(commitment) if body.kind == "post" else "",
    )


def _held(commitment: QueuedCommitment) -> str:
    """Why a post waits for the owner's yes: others may talk us into committing to one, but not into publishing it."""
    if commitment.params.get(FOUND_ROOM) is True:
        return _HELD_POST
    if commitment.params.get(HOST_REQUEST) is True:
        return ""
    return _HELD_REQUEST if commitment.source == "bluesky" else _HELD_TALK


def _count(params: Mapping[str, Any]) -> int:
    """How many issues; more than one only where the owner, or the host of a room, asked for them."""
    count = params.get("count") if params.get(HOST_REQUEST) is True else 1
    if isinstance(count, str) and count.strip().isdecimal():
        count = int(count)
    amount = int(count) if isinstance(count, int | float) and not isinstance(count, bool) else 1
    return max(1, min(amount, MOST_ISSUES))
