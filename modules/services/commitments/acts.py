"""Determines the public acts that fulfil a commitment; they leave by the outbox, one part after the other.

Each act has a target of its own, so the outbox lets none happen twice, however often it is proposed. The plan of a
commitment to a plan is prepared before its issue is proposed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import Clock
from common.errors import Fatal, SoulError
from common.provenance import Provenance
from common.result import Err
from common.text.github_text import comment_body, without_mentions
from common.text.graphemes import fit_post_text, grapheme_len, leading_sentences
from common.text.untrusted import clean
from modules.runtime.events import Event, Publish
from modules.runtime.journal.rows import Journal
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.tools.types import Turn
from modules.services.agent.verdicts import YesNoJudge
from modules.services.commitments import texts
from modules.services.commitments.naming import (
    NO_REPO,
    CommentParams,
    IssueParams,
    PlanParams,
    PostParams,
    Progress,
    QueuedCommitment,
    ReadyPlan,
    number_in,
    repo_key,
    repo_of,
    text_of,
    title_of,
)
from modules.services.commitments.texts import TITLE_CHARS, told_origin
from modules.services.outbox.bodies import IntentBody, PostBody
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.plans.compose import PlanComposer, PlanRequest, plan_words
from modules.services.plans.events import Wish, asked_entry, asked_in_room, wish_mark
from modules.services.plans.plan_text import TITLE_MARK, generate_plan_markdown
from modules.services.plans.repository import pages_of, repository_view, standing_plan
from modules.services.plans.types import Plan, ensure_docs_tasks, has_docs_tasks, plan_labels
from modules.services.skills.skills import Skills
from modules.services.voice_phrases import Phrase
from modules.services.workspaces.addresses import WORKSPACE_PREFIX

COMMITMENTS, ABANDONED = "commitments", "abandoned"
"""The loop of the journal entries on commitments, and the act of one that was given up, whose id is in `promise`."""


@dataclass(frozen=True, slots=True)
class CommitmentsReady(Event):
    """A commitment may now be due: it is new, the room confirmed it, or what it waited for is available."""


@dataclass(frozen=True, slots=True)
class CommitmentKept(Event):
    """A commitment was completed, and that is stored on disk."""

    commitment: QueuedCommitment


@dataclass(frozen=True, slots=True)
class CommitmentAbandoned(Event):
    """A commitment was given up, and that is stored on disk. Published once for each."""

    commitment: QueuedCommitment


MOST_ISSUES = 5
MEMO = "memo"
WAITS_FOR_WORKSPACE = "waits for a workspace: it names no repository, and there is not just one that is watched"
WAITS_FOR_GITHUB = "waits for an account on GitHub (AGENT_GITHUB_USERNAME, AGENT_GITHUB_TOKEN)"
SOCIAL_ONLY = "Social-only: this life does nothing on GitHub"

_POST_CHARS = 300
FOUND = "found"
_HELD_POST = "committed to in a room that was only found on the network"
_HELD_TALK = "committed to in a room whose host did not ask for a post"
_HELD_REQUEST = "committed to for somebody on Bluesky who is not the owner"


@dataclass(frozen=True, slots=True)
class CommitmentWork:
    """The acts to be done, in order, or why it is impossible (`problem`) or has to wait (`waits`).

    `plan_for` is the repository for which a plan must be made first.
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
    """Return the acts of one commitment.

    Args:
        commitment: the commitment.
        phrase: returns operational texts.
        default_repo: the repository for a commitment that names none, unless it is a comment promised on Bluesky: the
            number of its issue belongs to the conversation.
        github: whether there is a GitHub account to write with.
        social_only: whether this SOUL does nothing on GitHub.

    """
    params = commitment.params
    if isinstance(params, PostParams):
        return _post(commitment)
    if waits := SOCIAL_ONLY if social_only else "" if github else WAITS_FOR_GITHUB:
        return CommitmentWork(waits=waits)
    is_elsewhere = isinstance(params, CommentParams) and commitment.source == "bluesky" and not repo_key(params)
    repo = None if is_elsewhere else repo_of(params, default_repo)
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
    """Return the target of the act that announces in the room that a commitment is fulfilled."""
    return f"{commitment_id}#announced"


class Origin(TypedDict):
    """The fields that tell the rules at admission why an act is proposed."""

    commitment_id: str
    source: str
    host_request: bool
    host_named: bool


def origin(commitment: QueuedCommitment) -> Origin:
    """Return the fields that tell the rules at admission the reason for every act of a commitment.

    Anybody in the same network can open a room and be its host: a commitment made in a found room counts no more than
    one that a stranger asked for.
    """
    found = commitment.params.found_room
    host_request = commitment.params.host_request and not found
    host_named = commitment.params.host_named and not found
    source = FOUND if found else commitment.source
    return Origin(commitment_id=commitment.id, source=source, host_request=host_request, host_named=host_named)


def result_of(commitment: QueuedCommitment, done: Sequence[Intent]) -> dict[str, Any]:
    """Return the result of the acts that are done, as the queue stores it."""
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
    """Return the result of a commitment to a plan, as the queue stores it."""
    return {"issueNumber": number, "issueUrl": url}


def _plan(commitment: QueuedCommitment, params: PlanParams, repo: Repo) -> CommitmentWork:
    """Return the issue of a plan; if the plan is not made yet, only the repository to make it for."""
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
    """Return the issues; more than one only if the owner or the host of a room asked for them."""
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
    if not text:
        return CommitmentWork(problem="its promise does not say what the comment will say")
    body = comment_body(text)
    comment = IssueCommentBody(
        **origin(commitment),
        repo=repo.full_name,
        number=number,
        body=body,
    )
    return CommitmentWork((_action(commitment, 1, comment),))


def _post(commitment: QueuedCommitment) -> CommitmentWork:
    text = clean(text_of(commitment), is_ours=True)
    if grapheme_len(text) > _POST_CHARS:
        text = leading_sentences(text, _POST_CHARS) or fit_post_text(text, max_graphemes=_POST_CHARS)
    if not text:
        return CommitmentWork(problem="its promise does not say what the post will say")
    return CommitmentWork((_action(commitment, 1, PostBody(**origin(commitment), text=text)),))


def _action(commitment: QueuedCommitment, number: int, body: PostBody | IssueBody | IssueCommentBody) -> ProposedAction:
    return ProposedAction(
        body,
        part=f"{commitment.id}#{number}",
        cause_id=commitment.source_thread_uri,
        hold=_held(commitment) if body.kind == "post" else "",
    )


def _held(commitment: QueuedCommitment) -> str:
    """Return why a post waits for approval: others may talk us into committing to one, but not into publishing it."""
    if commitment.params.found_room:
        return _HELD_POST
    if commitment.params.host_request:
        return ""
    return _HELD_REQUEST if commitment.source == "bluesky" else _HELD_TALK


_LOOP = "commitment-fulfillment"


@dataclass(frozen=True, slots=True)
class PlanMaker:
    """Prepares plans.

    Attributes:
        github: reads the repository.
        composer: asks the model for a plan.
        skills: the texts that every plan has.
        attention: held during the call of the model; the SOUL does one thing at a time.
        journal: records who asked for a plan that exists already.
        clock: the time.
        phrase: returns operational texts.
        publish: receives `CommitmentsReady` once a plan that had to wait can have the attention.

    """

    github: GitHub
    composer: PlanComposer
    skills: Skills
    attention: Attention
    journal: Journal
    clock: Clock
    phrase: Phrase
    publish: Publish

    async def prepare(self, commitment: QueuedCommitment, params: PlanParams, repo: Repo) -> Progress:
        """Return the plan to be stored with the commitment (`prepared`), or `done` if such a plan exists already."""
        if not self.attention.free:
            # NOTE(self): a step that waited here for a slow model would hold up all other commitments.
            self.attention.when_free(_LOOP, lambda: self.publish(CommitmentsReady()))
            return Progress("waits", f"busy with {self.attention.mode}")
        wanted = text_of(commitment)
        asked_at = commitment.source_thread_uri
        wish = Wish(asked_at, wanted, title_of(commitment)) if asked_at else None
        found = await standing_plan(self.github, repo, self.clock.now(), wish)
        if isinstance(found, Err):
            return Progress("put_off", found.error)
        if found.data is not None:
            await self.journal.record(asked_entry(repo, found.data, asked_by(commitment)))
            return Progress("done", result=plan_result(found.data.number, found.data.html_url) | {"deduplicated": True})
        stands = await repository_view(self.github, repo, with_issues=True)
        about = PlanRequest(repo, title_of(commitment), wanted, commitment.source_reply_text, stands)
        try:
            async with self.attention.take(_LOOP):
                plan = await self.composer.compose(about)
        except Fatal:
            raise
        except SoulError as error:
            return Progress("put_off", str(error))
        if plan is None:
            return Progress("failed", "the model made no plan that has a task")
        origin = told_origin(commitment, self.phrase)
        plan = replace(plan, context="\n".join(filter(None, (plan.context, origin))))
        made = issue_of_plan(await complete_plan(plan, repo, self.github, self.skills))
        if wish:
            made["body"] += f"\n\n{wish_mark(wish.uri)}"
        kept = {"owner": repo.owner, "repo_name": repo.name, "plan": ReadyPlan(**made)}
        return Progress("prepared", prepared=params.model_copy(update=kept))


def asked_by(commitment: QueuedCommitment) -> str:
    """Return the cause of the request for a plan that became a commitment: a post, or a request in a room."""
    asked_at = commitment.source_thread_uri
    on_bluesky = commitment.source == "bluesky" and asked_at.startswith("at://")
    return asked_at if on_bluesky else asked_in_room(commitment.id)


_MOST_EARLIER = 3


@dataclass(frozen=True, slots=True)
class EarlierComments:
    """Finds a comment of ours in the same thread that says what a promised one would say, in whatever words.

    Attributes:
        outbox: has all comments of ours.
        judge: compares two comments.
        attention: held during the calls of the model; the SOUL does one thing at a time.
        publish: receives `CommitmentsReady` once a comparison that had to wait can have the attention.

    """

    outbox: Outbox
    judge: YesNoJudge
    attention: Attention
    publish: Publish

    async def look(self, commitment: QueuedCommitment, comment: IntentBody) -> Progress | None:
        """Return `done` with such a comment, or `waits` until that can be told; None if the act is to be done.

        A draft of ours does not count: the owner decides about each.
        """
        if not isinstance(comment, IssueCommentBody):
            return None
        place = f"{comment.repo}#{comment.number}".lower()
        rows = await self.outbox.at_place((comment.kind,), place)
        ours = [one for one in rows if one.state in ACTIVE_STATES and one.state != "held"]
        if any(one.state != "done" for one in ours):
            return Progress("waits", "another comment of ours in that thread is on its way")
        if ours and not self.attention.free:
            self.attention.when_free(_LOOP, lambda: self.publish(CommitmentsReady()))
            return Progress("waits", f"busy with {self.attention.mode}")
        turn = Turn(COMMITMENTS, Provenance.STRANGER, commitment.source_thread_uri, importance="commitment")
        said = [(one, one.body.words) for one in ours if isinstance(one.body, IssueCommentBody) and one.body.words]
        for one, words in said[:_MOST_EARLIER]:
            async with self.attention.take(_LOOP):
                is_said = await self.judge.is_said_already(comment.words, words, turn)
            if is_said:
                return Progress("done", result=result_of(commitment, [one]) | {"deduplicated": True})
        return None


async def complete_plan(plan: Plan, repo: Repo, github: GitHub, skills: Skills, *, beside: Iterable[Plan] = ()) -> Plan:
    """Return the plan with the standard checks and, in a workspace, with the tasks that make its pages.

    A page is left out if one of the open plans `beside` it makes that page.
    """
    words = plan_words(skills, repo.full_name)
    plan = replace(plan, verification=plan.verification or words.verification)
    if not repo.name.lower().startswith(WORKSPACE_PREFIX):
        return plan
    pages = await pages_of(github, repo)
    made = has_docs_tasks(task for other in beside for task in other.tasks)
    return ensure_docs_tasks(
        plan,
        words.docs,
        skip_agents_md=pages.has_agents_md or made.has_agents_md,
        skip_scenarios_md=pages.has_scenarios_md or made.has_scenarios_md,
    )


def issue_of_plan(plan: Plan) -> dict[str, str]:
    """Return the `title` and the `body` of the issue of a plan, which mention nobody."""
    title = without_mentions(f"{TITLE_MARK} {plan.title}")
    return {"title": title[:TITLE_CHARS], "body": without_mentions(generate_plan_markdown(plan))}
