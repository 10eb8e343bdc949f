"""Which public acts fulfil a commitment: the acts leave by the outbox, one part after the other.

Each act has a target that no other has, so the outbox lets none happen twice, however often it is proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from adapters.github.types import Repo
from common.text.github_text import comment_body, without_mentions
from common.text.graphemes import fit_post_text, grapheme_len, leading_sentences
from common.text.untrusted import clean
from modules.services.commitments import texts
from modules.services.commitments.naming import NO_REPO, number_in, repo_of, text_of, title_of
from modules.services.commitments.params import CommentParams, IssueParams, PlanParams, PostParams
from modules.services.commitments.types import QueuedCommitment
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.plans.tasks import plan_labels
from modules.services.voice_phrases.store import Phrase

MOST_ISSUES = 5
MEMO = "memo"
WAITS_FOR_WORKSPACE = "waits for a workspace: it names no repository, and there is not just one that is watched"
WAITS_FOR_GITHUB = "waits for an account on GitHub (AGENT_GITHUB_USERNAME, AGENT_GITHUB_TOKEN)"
SOCIAL_ONLY = "Social-only: this life does nothing on GitHub"

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
    params = commitment.params
    if isinstance(params, PostParams):
        return _post(commitment)
    if waits := SOCIAL_ONLY if social_only else "" if github else WAITS_FOR_GITHUB:
        return CommitmentWork(waits=waits)
    repo = repo_of(params, default_repo)
    if repo is None:
        is_plan = isinstance(params, PlanParams)
        return CommitmentWork(waits=WAITS_FOR_WORKSPACE) if is_plan else CommitmentWork(problem=NO_REPO)
    match params:
        case PlanParams():
            return _plan(commitment, params, repo)
        case IssueParams():
            return _issues(commitment, params, repo, phrase)
        case CommentParams():
            return _comment(commitment, params, repo)


def announcement_target(commitment_id: str) -> str:
    """The target of the act that tells in the room that a commitment is fulfilled."""
    return f"{commitment_id}#announced"


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
    found = commitment.params.found_room
    host_request = commitment.params.host_request and not found
    host_named = commitment.params.host_named and not found
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


def _plan(commitment: QueuedCommitment, params: PlanParams, repo: Repo) -> CommitmentWork:
    """The issue of a plan that was made; before that, nothing but the plan to be made."""
    if params.plan is None:
        return CommitmentWork(plan_for=repo)
    title, body = params.plan.title, params.plan.body
    labels = plan_labels((), "active")
    issue = IssueBody(
        **origin(commitment),
        repo=repo.full_name,
        title=title,
        body=body,
        labels=labels,
    )
    return CommitmentWork((_action(commitment, 1, issue),))


def _issues(commitment: QueuedCommitment, params: IssueParams, repo: Repo, phrase: Phrase) -> CommitmentWork:
    """The issues; more than one only where the owner, or the host of a room, asked for them."""
    count = min(params.count or 1, MOST_ISSUES) if params.host_request else 1
    body = texts.issue_body(commitment, text_of(commitment), phrase)
    if not params.memo:
        body = f"{body}\n\n{texts.ASKED_AS_ISSUE}"
    labels = (MEMO,) if params.memo else ()
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


def _comment(commitment: QueuedCommitment, params: CommentParams, repo: Repo) -> CommitmentWork:
    text = text_of(commitment)
    number = params.issue_number or number_in(params.title, commitment.description, text)
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
    text = clean(text_of(commitment))
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
    """Why a post waits for approval: others may talk us into committing to one, but not into publishing it."""
    if commitment.params.found_room:
        return _HELD_POST
    if commitment.params.host_request:
        return ""
    return _HELD_REQUEST if commitment.source == "bluesky" else _HELD_TALK
