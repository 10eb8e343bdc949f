"""The rounds of work on a pull request of ours, and the acts that follow the push of a round. Pure.

Each act has a name of its own, so that the outbox performs none twice, even after a crash.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from adapters.github.types import Repo
from common.clock import Since, parse_iso
from common.text.github_text import without_mentions
from modules.services.outbox.github_bodies import (
    GitHubBody,
    IssueCommentBody,
    IssueUpdateBody,
    PullRequestBody,
    body_digest,
)
from modules.services.outbox.github_writer import for_workspace, review_requests
from modules.services.outbox.senders.github_changes import marked
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.work.types import NewWork, WorkItem

REVISION = "revision"
"""The kind of the rows: one for each commit of ours with a review to answer, `owner/repo#31@<sha>`."""
MOST_ROUNDS = 2
MOST_ROWS = 100
"""How many rounds of one pull request are looked at, the newest."""
OVER, ANSWERED = "over", "answered"
AGAIN_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Round:
    """Round number `count` of the work on our pull request `number`, for its commit `sha`."""

    repo: Repo
    number: int
    sha: str
    count: int = 1
    kind: str = REVISION

    @property
    def key_prefix(self) -> str:
        """The common prefix of the keys of all rounds of the pull request."""
        return f"{self.repo.full_name}#{self.number}@".lower()

    @property
    def key(self) -> str:
        """The key of its row."""
        return f"{self.key_prefix}{self.sha}"

    @property
    def folder(self) -> str:
        """The name of its checkout."""
        return f"{self.kind}-{self.sha}"

    @property
    def cause(self) -> str:
        """The cause of its push, and of its row."""
        return f"{self.kind}:{self.key}"

    @property
    def row(self) -> NewWork:
        """Its row of work."""
        told = {"owner": self.repo.owner, "repo": self.repo.name, "number": self.number, "sha": self.sha}
        return NewWork(self.kind, self.key, {**told, "round": self.count}, importance="commitment")


def round_of(item: WorkItem) -> Round:
    """Return the round that a row is about."""
    told = item.payload
    return Round(Repo(told["owner"], told["repo"]), told["number"], told["sha"], told["round"], item.kind)


def is_tried(row: WorkItem, *, is_change_asked: bool = True) -> bool:
    """Return whether the settled row of a round did what is asked for now.

    It did not if it had nothing to do, as in a pull request that is closed for a while, nor if it answered comments
    without a change and changes are requested since.
    """
    return row.outcome != OVER and not (is_change_asked and row.outcome == ANSWERED)


def count_of_next(rows: Iterable[WorkItem]) -> int:
    """Return the number of the round that follows these rows: those that had nothing to do do not count."""
    return 1 + max((round_of(one).count for one in rows if one.outcome != OVER), default=0)


def next_round(this: Round, rows: Sequence[WorkItem], since: Since, *, is_change_asked: bool = True) -> Round | None:
    """Return the round that is due for a commit; None if one waits, was tried, or had nothing to do within the hour.

    `rows` are the rounds of the pull request so far.
    """
    known = next((one for one in rows if one.key == this.key), None)
    if known and (known.state == "pending" or is_tried(known, is_change_asked=is_change_asked)):
        return None
    if known and known.outcome != ANSWERED and since(parse_iso(known.created_at)) < AGAIN_AFTER:
        return None
    return replace(this, count=count_of_next(rows))


@dataclass(frozen=True, slots=True)
class RoundActs:
    """The acts that follow a round: `summary` is its author's, `text` the new text of the pull request.

    `name` tells the acts of an answer without a change from those of the changes that may follow at the same commit.
    """

    round: Round
    summary: str
    text: str = ""
    name: str = "review-again"

    def description(self, stands: str, earlier: Sequence[Intent]) -> Iterator[ProposedAction]:
        """Yield the new text of the pull request, if its present text `stands` is what we wrote last.

        What we wrote is found in `earlier`: the acts for the task that are done, newest first. A text that somebody
        changed is kept.
        """
        number = str(self.round.number)
        texts = [one for one in earlier if one.made("issue") == number and _wrote(one)]
        if not self.text or not texts:
            return
        written = body_digest(_wrote(texts[0]))
        if body_digest(stands) == written:
            text = marked(self.text, texts[-1].id)
            body = IssueUpdateBody(**for_workspace(self.round.repo), number=self.round.number, body=text, over=written)
            yield self._action(body, "description", cause_id=texts[0].cause_id)

    def comment(self, says: Callable[..., str]) -> Iterator[ProposedAction]:
        """Yield the comment with the author's summary, worded by `says`, if there is a summary."""
        if self.summary:
            words, at = says(summary=without_mentions(self.summary)), for_workspace(self.round.repo)
            yield self._action(IssueCommentBody(**at, number=self.round.number, body=words), "summary")

    def review_requests(self, reviewers: Iterable[str]) -> Iterator[ProposedAction]:
        """Yield the requests for another review, one for each reviewer."""
        for body in review_requests(self.round.repo, self.round.number, sorted(set(reviewers))):
            yield self._action(body, body.reviewers[0].lower())

    def _action(self, body: GitHubBody, what: str, cause_id: str | None = None) -> ProposedAction:
        # NOTE(self): a cause of its own, because only the push may be found by the cause of the round.
        name = f"{self.name}:{self.round.key}"
        return ProposedAction(body, part=f"{name} {what}", cause_id=cause_id or name)


def _wrote(intent: Intent) -> str:
    """Return the text that an act of ours gave a pull request; "" if it gave none."""
    body = intent.body
    if isinstance(body, PullRequestBody):
        return marked(body.body, intent.id)
    return body.body if isinstance(body, IssueUpdateBody) else ""
