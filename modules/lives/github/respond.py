"""Lets the model choose one act about a thread on GitHub: a comment, a review that was asked for, or silence.

The answer is public, so the turn is shown nothing private. It belongs to no session: what it was shown is on GitHub,
and what it said is in the outbox. A pull request is reviewed once for each commit.
"""

import random
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Account, PullRequest
from common.clock import Clock
from common.errors import Transient
from common.facts import IssueFacts, SaidLine
from common.provenance import Importance, Provenance
from common.text.untrusted import one_line
from modules.lives.github.policy import MOST_COMMENTS, ThreadText, format_thread_for_context, peers_in
from modules.lives.github.types import (
    IssueThread,
    IssueTurn,
    KnownParticipants,
    ResponseCode,
    ResponseDecision,
    ReviewTurn,
    review_part,
)
from modules.runtime.llm.dialect import Message
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner, chosen_in
from modules.services.github_threads import MOST_FILES, ShownChanges, ThreadSource, WaitingThread, changes_of, of_github
from modules.services.identity.identity import Me
from modules.services.outbox.outbox import Outbox
from modules.services.peers.registry import PeerRegistry
from modules.services.skills.skills import Framer, Skills
from modules.services.work.types import Disposition
from modules.services.workspaces.acting import is_reviewed_by_test
from modules.services.workspaces.trust import WorkspaceTrust

LOOP = "github-awareness"
SKILL = "github-response"
TOOLS = ("github_create_issue_comment", "github_graceful_exit", "github_stay_silent")

WORK_TOOLS = (
    *("github_get_repo", "github_list_issues", "github_list_pull_requests", "github_read_repository"),
    *(
        "github_create_issue",
        "github_update_issue",
        "github_star_repo",
        "workspace_find",
        "workspace_create",
        "create_memo",
        "plan_create",
    ),
    "workspace_finish",
)
"""Additional tools, offered if the owner showed us the thread; each act by them waits for the owner's approval."""

_TEMPLATE = "User Message Template"
_PEERS = "peer-awareness"
_SOURCES: dict[ThreadSource, str] = {
    "github_notification": "Notification",
    "bluesky_url": "Shared",
    "bluesky_url_owner": "Shared By Owner",
    "workspace_pr_review": "Workspace",
    "workspace_issue": "Workspace",
}


@dataclass(frozen=True, slots=True)
class ThreadResponder:
    """Asks the model, with the words of strangers as data and few tools."""

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    clock: Clock
    rng: random.Random
    registry: PeerRegistry

    async def answer_thread(
        self,
        waiting: WaitingThread,
        thread: IssueThread,
        known: KnownParticipants,
        decision: ResponseDecision,
        *,
        hold: str,
        importance: Importance,
        purpose: str = "",
    ) -> Disposition:
        """Return what the model chose; `hold` is why a comment must wait for the owner's approval, "" if it need not.

        `purpose` is the text of the page that says what the workspace of an issue is for.

        Raises:
            BudgetExceeded: there is no budget for the author.
            Transient: the model is briefly unable.

        """
        is_shown = waiting.source == "bluesky_url_owner"
        peers = peers_in(thread, known.peers)
        text = format_thread_for_context(thread, known.login, self.clock.now())
        told = self._words(waiting, thread, text, decision, purpose)
        bare = self._template(waiting, decision, text, purpose="", opening="", line="", comments="")
        system = await self.prompter.prompt(
            skill=SKILL,
            variables={
                "repo": waiting.repo,
                "number": str(waiting.number),
                "github_username": known.login,
                "owner_handle": self.me.owner_handle,
                "peer_section": self._peer_section(peers),
                "work_section": self.skills.section(SKILL, "Work") if is_shown else "",
            },
            audience="bluesky",
            session_key=f"github:{waiting.talk_key}",
            query=f"{thread.issue.title}\n{thread.comments[-1].body if thread.comments else thread.issue.body}",
            now=self.clock.now(),
            least=Provenance.STRANGER,
            peers=participants(thread),
            person=self._person_in(thread, known.login),
        )
        turn_result = await self.turn_runner.run_turn(
            turn=Turn(
                loop=LOOP,
                provenance=Provenance.STRANGER,
                cause_id=waiting.cause_id,
                subject=IssueTurn(waiting, thread, known.login, hold=hold, told=bare),
                importance=importance,
                origin=Provenance.OWNER if is_shown else None,
            ),
            system=system,
            messages=(Message("user", told),),
            purpose=SKILL,
            tool_choice="required",
            only=(*TOOLS, *WORK_TOOLS) if is_shown else TOOLS,
            about=facts_of(waiting, thread, known.login, decision),
        )
        return chosen_in(turn_result, decision.code, decision.reason)

    def _words(
        self, waiting: WaitingThread, thread: IssueThread, text: ThreadText, decision: ResponseDecision, purpose: str
    ) -> str:
        framer, uri = Framer(self.skills, self.rng), thread.issue.html_url

        def framed(kind: str, author: str, words: str) -> str:
            return framer.frame(kind, author=author, uri=uri, text=words)

        nothing = self.skills.section(SKILL, "No Comments")
        return self._template(
            waiting,
            decision,
            text,
            purpose=self.skills.render(SKILL, "Purpose", text=framed("reading", waiting.repo, purpose))
            if purpose
            else "",
            opening=framed("post", f"@{thread.issue.author}", text.opening),
            line=self.skills.render(SKILL, "Line", changes=framed("reading", "several", text.line))
            if text.line
            else "",
            comments=framed("conversation", "several", text.comments) if text.comments else nothing,
        )

    def _template(
        self,
        waiting: WaitingThread,
        decision: ResponseDecision,
        text: ThreadText,
        *,
        purpose: str,
        opening: str,
        line: str,
        comments: str,
    ) -> str:
        return self.skills.render(
            SKILL,
            _TEMPLATE,
            source=self.skills.subsection(SKILL, "Source", _SOURCES[waiting.source]),
            reason=decision.reason,
            purpose=purpose,
            opening=opening,
            line=line,
            hidden=self.skills.render(SKILL, "Hidden", count=text.hidden) if text.hidden else "",
            comments=comments,
        )

    def _person_in(self, thread: IssueThread, login: str) -> str:
        """Return the linked DID of the person to answer, the last author other than us; "" if they are not linked."""
        accounts = [thread.issue.account, *(one.account for one in thread.comments)]
        author = next((one for one in reversed(accounts) if one.login.lower() != login.lower()), None)
        peer = self.registry.get(author.login) if author else None
        is_linked = author and peer and peer.stands and peer.github_id == author.id
        return (peer.bluesky_did or "") if peer and is_linked else ""

    def _peer_section(self, peers: list[str]) -> str:
        if not peers:
            return ""
        several = len(peers) > 1
        return self.skills.render(
            _PEERS,
            "GitHub Peer Awareness",
            peer_list=", ".join(f"@{peer}" for peer in peers),
            is_peer_plural="have" if several else "has",
            peer_plural_suffix="s" if several else "",
        )


def participants(thread: IssueThread) -> list[str]:
    """Return the logins of all who wrote in the thread: its author first, then the others, the latest first."""
    authors = (thread.issue.author.lower(), *(one.author.lower() for one in reversed(thread.comments)))
    return list(dict.fromkeys(authors))


def facts_of(waiting: WaitingThread, thread: IssueThread, login: str, decision: ResponseDecision) -> IssueFacts:
    """Return the facts of a turn about a thread."""
    said = [SaidLine("" if one.author.lower() == login.lower() else one.author, one.body) for one in thread.comments]
    return IssueFacts(
        repo=waiting.repo,
        number=thread.issue.number,
        title=thread.issue.title,
        author=thread.issue.author,
        text=thread.issue.body,
        said=tuple(said[-MOST_COMMENTS:]),
        is_pull_request=thread.issue.is_pull_request,
        is_owner_request=waiting.source == "bluesky_url_owner",
        why=decision.code.value,
    )


REVIEW_SKILL = "pr-review"
REVIEW_TOOLS = ("github_submit_review", "github_stay_silent")

_TITLE_CHARS = 200
_ASKING: frozenset[ThreadSource] = frozenset({"github_notification", "workspace_pr_review"})


@dataclass(frozen=True, slots=True)
class PullReviewer:
    """Has the model review a pull request. `trust` says who we are, and whose words count in a workspace."""

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    github: GitHub
    outbox: Outbox
    trust: WorkspaceTrust
    clock: Clock
    rng: random.Random

    async def requested(
        self, waiting: WaitingThread, thread: IssueThread, us: Account, *, in_workspace: bool
    ) -> PullRequest | ResponseCode | None:
        """Return the pull request if our review is awaited, else the code why it is not; None if none is in question.

        Raises `Transient` while GitHub cannot be read.
        """
        if not thread.issue.is_pull_request or not thread.is_open or waiting.source not in _ASKING:
            return None
        pull = (await self.github.pulls.get(waiting.place, waiting.number)).or_wait()
        if not us.id:
            raise Transient("our own account on GitHub cannot be read")
        if us not in pull.requested_reviewers:
            return ResponseCode.REVIEW_NOT_AWAITED if waiting.source == "workspace_pr_review" else None
        if in_workspace and is_reviewed_by_test(pull, await self.trust.accounts(waiting.place)):
            return ResponseCode.REVIEW_BY_TEST
        before = await self.outbox.standing("review", review_part(waiting, pull.head.sha))
        return ResponseCode.REVIEW_GIVEN if before.active else pull

    async def review(
        self,
        waiting: WaitingThread,
        thread: IssueThread,
        known: KnownParticipants,
        decision: ResponseDecision,
        pull: PullRequest,
        *,
        hold: str,
        importance: Importance,
    ) -> Disposition:
        """Return what the model chose; `hold` is why its review must wait for the owner's approval, "" if it need not.

        Raises:
            BudgetExceeded: there is no budget for the author.
            Transient: GitHub or the model is briefly unable.

        """
        repo = waiting.place
        files = (await self.github.pulls.files(repo, waiting.number, limit=MOST_FILES)).or_wait()
        changes = changes_of([*map(of_github, files)], pull.changed_files or len(files))
        subject = ReviewTurn(
            waiting,
            thread,
            known.login,
            hold=hold,
            head_sha=pull.head.sha,
        )
        system = await self.prompter.prompt(
            skill=REVIEW_SKILL,
            variables={"repo": waiting.repo, "number": str(waiting.number), "github_username": known.login},
            audience="bluesky",
            session_key=f"github:{waiting.key}",
            now=self.clock.now(),
            bare=True,
        )
        turn_result = await self.turn_runner.run_turn(
            turn=Turn(
                loop=LOOP,
                provenance=Provenance.STRANGER,
                cause_id=waiting.cause_id,
                subject=subject,
                importance=importance,
            ),
            system=system,
            messages=(Message("user", self._words(thread, known, pull, changes)),),
            purpose=REVIEW_SKILL,
            tool_choice="required",
            only=REVIEW_TOOLS,
            about=facts_of(waiting, thread, known.login, decision),
        )
        return chosen_in(turn_result, decision.code, decision.reason)

    def _words(self, thread: IssueThread, known: KnownParticipants, pull: PullRequest, changes: ShownChanges) -> str:
        framer = Framer(self.skills, self.rng)
        text = format_thread_for_context(thread, known.login, self.clock.now())

        def framed(kind: str, author: str, words: str) -> str:
            return framer.frame(kind, author=author, uri=pull.html_url, text=words)

        lines = f"{pull.changed_files or 0} files, +{pull.additions or 0} -{pull.deletions or 0}"
        nothing = self.skills.section("github-response", "No Comments")
        return self.skills.render(
            REVIEW_SKILL,
            "Message",
            title=one_line(pull.title, _TITLE_CHARS),
            author=pull.author,
            head=one_line(pull.head.ref, _TITLE_CHARS),
            base=one_line(pull.base.ref, _TITLE_CHARS),
            stats=lines,
            opening=framed("post", f"@{pull.author}", text.opening),
            diff=framed("reading", f"@{pull.author}", changes.text),
            hidden=self.skills.render(REVIEW_SKILL, "Hidden", text=framed("reading", f"@{pull.author}", changes.hidden))
            if changes.hidden
            else "",
            left_out=self.skills.render(REVIEW_SKILL, "Left Out", count=changes.left_out) if changes.left_out else "",
            comments=framed("conversation", "several", text.comments) if text.comments else nothing,
        )
