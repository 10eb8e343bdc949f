"""Opens one follow-up issue for what reviewers of a merged pull request of ours wished for and did not get.

Only pull requests in shared workspaces get here, as only they have a merge row. The model decides once which wishes
remain. Work on such an issue opens no further one, so that polishing ends.
"""

import random
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Account, PullRequest, Repo
from common.facts import QuestionFacts
from common.result import GONE
from common.text.markdown import without_html_comments
from common.text.strings import both_ends
from common.text.untrusted import one_line
from modules.lives.tasks.merge.perceive import pull_of
from modules.lives.tasks.review.judge import review_text
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.scheduler import Attention
from modules.services.claims.claimer import plain
from modules.services.github_threads import changes_of, of_github
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.plans.compose import issues_taken_up
from modules.services.plans.plan_text import parse_plan
from modules.services.skills.questions import ModelQuestion
from modules.services.skills.skills import Framer, Skills
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem
from modules.services.workspaces.trust import WorkspaceTrust, plan_of

SKILL = "review-wishes"
WISHES = "wishes"
"""The kind of the rows: one for each merged pull request of ours, `owner/repo#12`."""

_TOOL, _MARK, _READ = "review_wishes", "<!-- soul:wishes -->", {"APPROVED", "COMMENTED"}
_TOKENS, _TITLE_CHARS, _WISH_CHARS = 800, 80, 400
_MOST_SAID, _MOST_WISHES, _SAID_CHARS, _CHANGES_CHARS = 12, 8, 3_000, 20_000
_TEXT = {"type": "string"}
_SCHEMA = {
    "type": "object",
    "properties": {"title": _TEXT, "wishes": {"type": "array", "items": _TEXT, "maxItems": _MOST_WISHES}},
    "required": ["title", "wishes"],
}


def wishes_row(repo: Repo, number: int) -> NewWork:
    """Return the row of work for the wishes about a pull request."""
    payload = {"owner": repo.owner, "repo": repo.name, "number": number}
    return NewWork(WISHES, f"{repo.full_name}#{number}", payload)


@dataclass(frozen=True, slots=True)
class WishHandler(Handler):
    """Handles the wishes about one pull request at a time."""

    kind = WISHES

    github: GitHub
    trust: WorkspaceTrust
    writer: GitHubWriter
    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    attention: Attention

    async def handle(self, item: WorkItem) -> Disposition:
        repo, number = pull_of(item)
        key = f"{WISHES}:{item.key.lower()}"
        if (await self.writer.outbox.standing("issue", key)).is_decided:
            return Disposition("done", "opened", "its follow-up issue is opened")
        pull = (await self.github.pulls.get(repo, number)).or_raise()
        message = await self._message(repo, pull)
        if not message or await self._is_follow_up(repo, pull):
            return Disposition("silent", "none", "its reviewers said nothing, or it was for such an issue itself")
        question = ModelQuestion(self.gateway, self.skills, SKILL, _TOKENS, tool=_TOOL, schema=_SCHEMA)
        async with self.attention.take(SKILL):
            given = await question.call(message, QuestionFacts(SKILL))
        title, wishes = given.get("title"), given.get("wishes")
        if not isinstance(title, str) or not isinstance(wishes, list):
            return Disposition("undecided", "unjudged", "the model gave no answer that can be used")
        lines = [line for one in wishes[:_MOST_WISHES] if (line := plain(one_line(str(one), _WISH_CHARS)))]
        if not lines:
            return Disposition("silent", "none", "its reviewers wished for nothing more")
        listed = "\n".join(f"- [ ] {line}" for line in lines)
        body = self.skills.render(SKILL, "Issue Body", number=number, wishes=listed).strip()
        opened = await self.writer.open_issue(
            repo, key, one_line(title or lines[0], _TITLE_CHARS), f"{body}\n\n{_MARK}"
        )
        if not opened.is_decided:
            act = "later" if opened.advice and opened.advice.not_before else "silent"
            return Disposition(act, "not-allowed", opened.reason, self.writer.again_after.total_seconds())
        return Disposition("done", "opened", title)

    async def _is_follow_up(self, repo: Repo, pull: PullRequest) -> bool:
        """Return whether the plan of a pull request is for an issue that this handler opened."""
        issue = (await self.github.get_issue(repo, plan_of(pull.body) or 0)).or_else(None, *GONE)
        plan = parse_plan(issue.body, issue.title) if issue else None
        for number in issues_taken_up(plan, self.skills) if plan else ():
            found = (await self.github.get_issue(repo, number)).or_else(None, "not_found")
            if found and _MARK in found.body:
                return True
        return False

    async def _message(self, repo: Repo, pull: PullRequest) -> str:
        """Return what the model is shown; "" if nobody but us said anything that counts.

        Reviews that asked for changes are left out: they were answered before the merge.
        """
        trusted, framer = await self.trust.whole(repo), Framer(self.skills, self.rng)
        given = (await self.github.pulls.reviews(repo, pull.number)).or_raise()
        lines = (await self.github.pulls.review_comments(repo, pull.number)).or_raise()
        comments = (await self.github.list_comments(repo, pull.number)).or_raise()
        reviews = [
            one for one in given if one.state in _READ and trusted.covers_besides_us(Account(one.author_id, one.author))
        ]
        said = [(one.submitted_at, one.author, review_text(one, lines)) for one in reviews]
        said += [(one.created_at, one.author, one.body) for one in comments if trusted.covers(one.account)]
        told = [(author, text) for _, author, body in sorted(said) if (text := without_html_comments(body).strip())]
        if all(author == pull.author for author, _ in told):
            return ""

        def framed(text: str, author: str = "") -> str:
            return framer.frame("reading", author=author, uri=pull.html_url, text=text)

        changes = ""
        if reviews and reviews[0].commit_id != pull.head.sha:
            read = await self.github.pulls.changed(repo, reviews[0].commit_id, pull.head.sha)
            changes = changes_of(
                [of_github(one) for one in read.or_else((), "not_found")], most_chars=_CHANGES_CHARS
            ).text
        return self.skills.render(
            SKILL,
            "Message",
            title=one_line(pull.title, _TITLE_CHARS),
            author=pull.author,
            said="\n\n".join(framed(both_ends(text, _SAID_CHARS), author) for author, text in told[-_MOST_SAID:]),
            changes=self.skills.render(SKILL, "Later Changes", text=framed(changes)) if changes else "",
        )
