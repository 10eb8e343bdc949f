"""Lets the model choose one act about a thread on GitHub: a comment, or silence.

A comment is public, so the turn is told nothing that is private. It belongs to no session: what it was told stands on
GitHub, and what it said in the outbox.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from common.clock import Clock
from common.facts import IssueFacts, SaidLine
from common.importance import Importance
from common.provenance import Provenance
from modules.lives.github.policy import peers_in
from modules.lives.github.thread_text import MOST_COMMENTS, ThreadText, format_thread_for_context
from modules.lives.github.types import (
    IssueThread,
    IssueTurn,
    KnownParticipants,
    ResponseDecision,
)
from modules.runtime.llm.types import Message
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.agent.turn_outcome import chosen_in
from modules.services.github_threads.threads import ThreadSource, WaitingThread
from modules.services.identity.identity import Me
from modules.services.peers.registry import PeerRegistry
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills
from modules.services.work.types import Disposition

LOOP = "github-awareness"
SKILL = "github-response"
TOOLS = ("github_create_issue_comment", "github_graceful_exit", "github_stay_silent")

WORK_TOOLS = (
    *("github_get_repo", "github_list_issues", "github_list_pull_requests", "github_create_issue"),
    *("github_update_issue", "github_star_repo", "workspace_find", "workspace_create", "create_memo", "plan_create"),
    "workspace_finish",
)
"""What is offered besides where the owner showed the thread; each act among them waits for the owner's approval."""

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
    ) -> Disposition:
        """Return what the model chose; `hold` is why a comment must wait for the owner's approval, "" if it need not.

        Raises:
            BudgetExceeded: there is no budget for the author.
            Transient: the model is briefly unable.

        """
        is_shown = waiting.source == "bluesky_url_owner"
        peers = peers_in(thread, known.peers)
        text = format_thread_for_context(thread, known.login)
        told = self._words(waiting, thread, text, decision)
        bare = self._template(waiting, decision, text, opening="", line="", comments="")
        system = await self.prompter.prompt(
            skill=SKILL,
            variables={
                "repo": waiting.repo,
                "number": str(waiting.number),
                "github_username": known.login,
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

    def _words(self, waiting: WaitingThread, thread: IssueThread, text: ThreadText, decision: ResponseDecision) -> str:
        framer, uri = Framer(self.skills, self.rng), thread.issue.html_url

        def framed(kind: str, author: str, words: str) -> str:
            return framer.frame(kind, author=author, uri=uri, text=words)

        nothing = self.skills.section(SKILL, "No Comments")
        return self._template(
            waiting,
            decision,
            text,
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
        opening: str,
        line: str,
        comments: str,
    ) -> str:
        return self.skills.render(
            SKILL,
            _TEMPLATE,
            source=self.skills.subsection(SKILL, "Source", _SOURCES[waiting.source]),
            reason=decision.reason,
            opening=opening,
            line=line,
            hidden=self.skills.render(SKILL, "Hidden", count=text.hidden) if text.hidden else "",
            comments=comments,
        )

    def _person_in(self, thread: IssueThread, login: str) -> str:
        """The DID of whom an answer is for: who wrote last beside us, where they are linked; "" where they are not."""
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
    """Return who wrote in the thread, by their logins: its author first, then whoever spoke last."""
    authors = (thread.issue.author.lower(), *(one.author.lower() for one in reversed(thread.comments)))
    return list(dict.fromkeys(authors))


def facts_of(waiting: WaitingThread, thread: IssueThread, login: str, decision: ResponseDecision) -> IssueFacts:
    """Return what a turn about a thread is about, as data."""
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
