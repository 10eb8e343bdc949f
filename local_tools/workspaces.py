"""The tools for workspaces: create one, find one, write a memo or a plan there, and declare it finished.

For the owner's turns, and for those about a thread that the owner showed it; a post of the owner's may also have it
create a workspace, a plan and a memo. Every act waits until GitHub has it, so that the answer names the result.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from adapters.github.types import Issue, Repo
from common.errors import Fatal, SoulError
from common.provenance import Provenance
from common.text.github_text import without_mentions
from common.text.untrusted import clean, one_line
from local_tools.bluesky_turns import act_terms, names
from local_tools.github_acting import (
    IN_THREAD,
    FinishInput,
    GitHubActing,
    GitHubToolServices,
    MemoInput,
    PlanInput,
    TaskInput,
    WorkspaceCreateInput,
    WorkspaceFindInput,
)
from modules.lives.bluesky.types import MadeThing, ThreadTurn
from modules.lives.workspaces.synthesis import ExtensionRequest, PlanExtender
from modules.runtime.events import EventBus
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.claims.lease_store import TaskOrders, TaskPlace
from modules.services.commitments.acts import MEMO, complete_plan, issue_of_plan
from modules.services.outbox.github_bodies import IssueBody
from modules.services.plans.compose import PlanComposer, PlanGaps, read_plan
from modules.services.plans.events import Wish, asked_entry, wish_mark
from modules.services.plans.plan_text import TITLE_MARK
from modules.services.plans.repository import repository_view, standing_plan
from modules.services.plans.types import PLAN_LABEL, Plan, plan_labels
from modules.services.wiring import Knowledge
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition
from modules.services.workspaces.sentinel import FINISHED_LABEL, SENTINEL_PREFIX, SUMMARY_CHARS, sentinel_in
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import Creation, WorkspaceRequest

_SKILL = "workspace-tools"
_TITLE_CHARS, _REASON_CHARS, _LABEL_CHARS = 200, 20_000, 50
_GROUNDING_S = 60.0
_MOST_OPEN, _MOST_TOLD = 1_000, 10
_NO_WORK = frozenset({MEMO, "discussion"})
_PROBLEMS = {"unknown": "Unread", "refused": "Refused"}
_EXTENSION_PROBLEMS = {
    "unread": "Unread",
    "refused": "Refused",
    "failed": "Not Done",
    "full": "Not Done",
    "theirs": "Theirs",
}


class WorkspaceToolServices(GitHubToolServices, Protocol):
    """The services that the tools are built from; a plan is fitted to its repository with the model (`gateway`)."""

    trust: WorkspaceTrust
    gateway: LLMGateway
    knowledge: Knowledge
    work: WorkTable
    events: EventBus


class WorkspaceTools:
    """The handlers."""

    def __init__(
        self, acting: GitHubActing, composer: PlanComposer, extender: PlanExtender, orders: TaskOrders
    ) -> None:
        self._acting = acting
        self._services = acting.services
        self._composer = composer
        self._extender = extender
        self._orders = orders
        self.words = acting.words

    async def create(self, args: WorkspaceCreateInput, turn: Turn) -> ToolResult:
        if waits := self._others_first(turn):
            return waits
        terms = act_terms(turn, is_seen=names(turn, args.name.strip(), args.name.strip().replace("-", " ")))
        creation = await self._services.own_workspace.create_workspace(
            WorkspaceRequest(
                name=one_line(args.name, _TITLE_CHARS),
                description=one_line(args.description, _TITLE_CHARS),
                org=args.org.strip(),
                thread_uri=turn.subject.root.uri if isinstance(turn.subject, ThreadTurn) else "",
                cause_id=turn.cause_id,
                by_owner=terms.by_owner,
                own_words=terms.own_words,
                hold=terms.hold,
            )
        )
        return self._told_of(creation, turn)

    def _others_first(self, turn: Turn) -> ToolResult | None:
        """Return what ends a turn about a post in which peers that the owner named do shared work before us."""
        if not isinstance(turn.subject, ThreadTurn):
            return None
        turn.subject.revisions.tried = True
        if (later := turn.subject.later) is None:
            return None
        outcome = Disposition("later", reason=later.reason, retry_in_s=later.look_again_s)
        return self.words.end("Others First", outcome, awaited=", ".join(later.awaited))

    def _told_of(self, creation: Creation, turn: Turn) -> ToolResult:
        made, reason = creation.workspace, one_line(creation.reason, _REASON_CHARS)
        if made and creation.code == "created":
            shown = {"name": made.repo.name, "fullName": made.full_name, "url": made.html_url}
            told: dict[str, Any] = {"success": True, "workspace": {**shown, "cloneUrl": made.clone_url}}
            return self._acting.made(MadeThing("workspace_made", made.html_url), told, turn)
        if made and creation.code == "exists":
            message = self.words.answer("One Already", workspace=made.full_name)
            told = {"success": False, "existingWorkspace": made.full_name, "message": message}
            return self._acting.told(told | {"url": made.html_url})
        if creation.code == "elsewhere":
            return self.words.error("Other Organisation", org=reason) if reason else self.words.error("No Org")
        if waits := self.words.waits(creation.code, reason):
            return waits
        return self.words.error(_PROBLEMS.get(creation.code, "Not Done"), reason=reason)

    async def claim_task(self, args: TaskInput, turn: Turn) -> ToolResult:
        """Have a task taken before all others, or left alone. The life on tasks does it, and reports the result."""
        try:
            repo = self._acting.place(args.owner, args.repo, turn) if args.repo or args.plan else None
            if repo and args.plan:
                place = TaskPlace(repo, args.plan, args.task)
            else:
                place = await self._orders.meant(str(args.task), repo)
        except SoulError as error:
            return self.words.error("Which Task", reason=one_line(str(error), _REASON_CHARS))
        if args.leave:
            await self._orders.leave(place)
            return self.words.done("Left Alone", task=place.row.key)
        why = await self._acting.watch(place.repo, turn)
        if self._services.workspaces.get(place.repo) is None:
            reason = f": {why['notWatched']}" if why else ""
            return self.words.error("Not Watched", repo=place.repo.full_name, why=reason)
        await self._orders.take(place)
        return self.words.done("Taken Next", task=place.row.key)

    async def find(self, args: WorkspaceFindInput, turn: Turn) -> ToolResult:
        org = args.org.strip() or self._services.own_workspace.org
        if not org:
            return self.words.error("No Org")
        found = (await self._services.own_workspace.finder.find_existing_workspace(org)).or_raise()
        if found is None:
            return self._acting.told({"found": False})
        return self._acting.told({"found": True, "name": found.repo.name, "url": found.html_url})

    async def memo(self, args: MemoInput, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        title, body = one_line(args.title, _TITLE_CHARS, is_ours=True), clean(args.body, is_ours=True)
        if not title:
            return self.words.error("No Title")
        labels = [label for one in args.labels if (label := one_line(one, _LABEL_CHARS))]
        issue = _issue(repo, title, body or title, tuple(labels) or (MEMO,))
        sent = await self._acting.send(issue, f"{MEMO} {title}", turn)
        told = {"success": True, "memo": {"number": sent.issue_number, "title": title, "url": sent.result_uri}}
        made = self._acting.made(MadeThing("issue_made", sent.result_uri or ""), told, turn)
        return await self._acting.with_added(made, issue, sent)

    async def plan(self, args: PlanInput, turn: Turn) -> ToolResult:
        if waits := self._others_first(turn):
            return waits
        repo = self._place_of_plan(args, turn)
        github = self._services.github
        wish = _wish(args, turn.subject) if isinstance(turn.subject, ThreadTurn) else None
        stands = (await standing_plan(github, repo, self._services.clock.now(), wish)).or_raise()
        if stands and stands.state == "open":
            return await self._completed(repo, stands, turn)
        plan = read_plan(args.model_dump(), title=one_line(args.title, _TITLE_CHARS))
        if plan is None:
            return self.words.error("No Task")
        plan = await self._grounded(repo, plan, turn)
        checks = tuple(check for one in args.verification if (check := one_line(one, _TITLE_CHARS, is_ours=True)))
        plan = await complete_plan(replace(plan, verification=checks), repo, github, self._services.skills)
        made = issue_of_plan(plan)
        body = f"{made['body']}\n\n{wish_mark(wish.uri)}" if wish else made["body"]
        issue = _issue(repo, made["title"], body, plan_labels((), "active"))
        sent = await self._acting.send(issue, made["title"], turn)
        url = sent.result_uri or ""
        told = {"success": True, "issueNumber": sent.issue_number, "issueUrl": url}
        told |= await self._acting.watch(repo, turn)
        return await self._acting.with_added(self._acting.made(MadeThing("plan_made", url), told, turn), issue, sent)

    async def _grounded(self, repo: Repo, draft: Plan, turn: Turn) -> Plan:
        """Return the plan revised to fit the repository's contents; the draft if it is empty or the revision fails.

        It is a separate question, so that text of the repository reaches no turn that may act.
        """
        stands = await repository_view(self._services.github, repo, with_issues=False)
        if not stands:
            return draft
        try:
            async with self._services.clock.timeout(_GROUNDING_S):
                return await self._composer.ground(repo, draft, stands, turn.importance) or draft
        except Fatal:
            raise
        except (SoulError, TimeoutError) as error:
            why = str(error) or f"no answer within {_GROUNDING_S:.0f} seconds"
            summary = f"Plan for {repo.full_name} not fitted"
            await self._services.journal.record(Entry("decision", "plans", summary, line="warn", reason=why))
            return draft

    async def _completed(self, repo: Repo, plan: Issue, turn: Turn) -> ToolResult:
        """Return the existing plan; a post with only the owner's words adds to it what it asks for in addition."""
        told = {"success": True, "issueNumber": plan.number, "issueUrl": plan.html_url, "deduplicated": True}
        stays = told | {"title": plan.title, "note": self.words.answer("Plan Is There", number=plan.number)}
        if turn.cause_id:
            await self._services.journal.record(asked_entry(repo, plan, turn.cause_id))
        if not isinstance(turn.subject, ThreadTurn) or turn.provenance is not Provenance.OWNER:
            return self._acting.told(stays | await self._acting.watch(repo, turn))
        notification = turn.subject.notification
        request = ExtensionRequest(notification.text, notification.uri, by_owner=True, hold=turn.hold)
        extension = await self._extender.extend(repo, plan.number, request)
        if extension.code == "added":
            added = told | {"added": list(extension.words)}
            return self._acting.made(MadeThing("plan_extended", plan.html_url, extension.words), added, turn)
        if waits := self.words.waits(extension.code, extension.reason):
            return waits
        if problem := _EXTENSION_PROBLEMS.get(extension.code):
            return self.words.error(problem, reason=one_line(extension.reason, _REASON_CHARS))
        turn.subject.revisions.found = plan.html_url
        return self._acting.told(stays | {"added": []}, act="plan_found", url=plan.html_url)

    def _place_of_plan(self, args: PlanInput, turn: Turn) -> Repo:
        """Return the repository for a plan; a post of the owner's, which is public, may only use watched ones."""
        named, subject = (args.owner, args.repo), turn.subject
        if isinstance(subject, ThreadTurn) and not args.repo:
            here = (one for one in self._services.workspaces.all() if one.discovered_in_thread == subject.root.uri)
            named = next(((one.owner, one.repo) for one in here), named)
        repo = self._acting.place(*named, turn)
        if isinstance(subject, ThreadTurn) and not self._services.workspaces.get(repo):
            self.words.stop("Not Watched In Public", repo=repo.full_name)
        return repo

    async def finish(self, args: FinishInput, turn: Turn) -> ToolResult:
        repo = self._acting.place(args.owner, args.repo, turn)
        if self._services.workspaces.get(repo) is None:
            return self.words.error("Not Watched", repo=repo.full_name, why="")
        open_now = (await self._services.github.list_issues(repo, limit=_MOST_OPEN)).or_raise()
        sentinel = sentinel_in(open_now)
        number = sentinel.number if sentinel else await self._say_finished(repo, args, turn, open_now)
        self._services.workspaces.note(repo, finished_issue_number=number)
        return self._acting.told({"success": True, "issueNumber": number})

    async def _say_finished(self, repo: Repo, args: FinishInput, turn: Turn, open_now: Sequence[Issue]) -> int:
        """Open the issue that says so, and return its number. Raises `ToolStopped` if work is left."""
        if left := [one for one in open_now if is_work(one)]:
            listed = ", ".join(f"#{one.number}" for one in left[-_MOST_TOLD:])
            self.words.stop("Work Left", count=len(left), listed=listed)
        summary = one_line(args.summary, SUMMARY_CHARS)
        if not summary:
            self.words.stop("No Title")
        body = self._services.phrases.phrase("github.workspace_finished", summary=clean(args.summary, is_ours=True))
        issue = _issue(repo, f"{SENTINEL_PREFIX} {summary}", body, (FINISHED_LABEL,))
        sent = await self._acting.send(issue, "finished", turn, again=True)
        return sent.issue_number


def is_work(issue: Issue) -> bool:
    """Return whether an open issue is work that is left: a plan, a pull request, or no memo and no discussion."""
    labels = {label.lower() for label in issue.labels}
    if issue.is_pull_request or PLAN_LABEL in labels or issue.title.startswith(TITLE_MARK):
        return True
    return not labels & _NO_WORK and FINISHED_LABEL not in labels


def workspace_tools(services: WorkspaceToolServices) -> Sequence[Tool]:
    """Return the tools of the family."""
    acting = GitHubActing(services, _SKILL)
    orders = TaskOrders(services.work, services.events.publish)
    gaps = PlanGaps(services.gateway, services.skills, services.rng)
    extender = PlanExtender(services.github, services.outbox, services.trust, gaps)
    composer = PlanComposer(services.gateway, services.skills, services.rng, services.knowledge.profile)
    tools, owner = WorkspaceTools(acting, composer, extender, orders), Provenance.OWNER
    act = partial(
        acting.words.tool, capability="github", needs=owner, holdable=True, fits=acting.serves, given=IN_THREAD
    )
    look = partial(
        acting.words.tool, capability="github", needs=owner, effect="look", fits=acting.serves, given=IN_THREAD
    )
    return (
        act("workspace_create", WorkspaceCreateInput, handler=tools.create, fits=acting.serves_post),
        look("workspace_find", WorkspaceFindInput, handler=tools.find),
        act("create_memo", MemoInput, handler=tools.memo, fits=acting.serves_post),
        act("plan_create", PlanInput, handler=tools.plan, fits=acting.serves_post),
        act("plan_claim_task", TaskInput, handler=tools.claim_task, holdable=False, named_only=True),
        act("workspace_finish", FinishInput, handler=tools.finish),
    )


def _wish(args: PlanInput, subject: ThreadTurn) -> Wish:
    """Return what the post of a turn asks for."""
    said = (*subject.said, *subject.revisions.peers_since)
    return Wish(subject.notification.uri, subject.notification.text, args.title, said)


def _issue(repo: Repo, title: str, body: str, labels: tuple[str, ...]) -> IssueBody:
    title, body = without_mentions(title), without_mentions(body)
    return IssueBody(repo=repo.full_name, title=title, body=body, labels=labels)
