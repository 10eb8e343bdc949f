"""Acts of every kind on GitHub for a process that is killed again and again, and checks of their results."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Repo
from modules.services.outbox.github_bodies import body_digest
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from tests.adapters.results import ok
from town.github.network import GitHubNetwork
from town.github.values import GitHubAccount, StoredRepo

TURNS = (
    "issue",
    "issue_comment",
    "label",
    "issue_update",
    "ref",
    "contents",
    "plan",
    "pull_request",
    "review",
    "merge",
    "review_request",
    "assignee",
    "reaction",
    "comment_deletion",
    "star",
    "account_follow",
    "repository",
)
AT_A_TIME = 8
REPO = Repo("rowan", "site")
ORGANISATION = "works"
TEMPLATE = f"{ORGANISATION}/template"


@dataclass
class Work:
    """The acts to do and their results. `kit` is another person who may write to the repository."""

    folder: Path
    network: GitHubNetwork
    repo: StoredRepo
    main: str
    rowan: GitHub
    kit: GitHub
    wanted: list[dict[str, Any]] = field(default_factory=list)
    plans: dict[int, str] = field(default_factory=dict)
    """The expected body of each plan's issue, by its number."""

    async def refill(self) -> None:
        while len(self.wanted) - self._settled() < AT_A_TIME:
            number = len(self.wanted)
            turn = TURNS[number % len(TURNS)]
            body = {"repo": REPO.full_name, **await self._fields(turn, number)}
            kind = "issue_update" if turn == "plan" else turn
            self.wanted.append({"kind": kind, "turn": turn, "body": body, "cause_id": f"act-{number}"})
        (self.folder / "wanted.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in self.wanted))

    async def _fields(self, turn: str, number: int) -> dict[str, Any]:  # noqa: C901, PLR0911 - a line for each kind
        name, act = f"Act {number}", f"act-{number}"
        match turn:
            case "issue":
                return {"title": name, "body": "…"}
            case "issue_comment":
                return {"number": 1, "body": name}
            case "label":
                return {"number": 1, "add": [act]}
            case "issue_update":
                return {"number": 2, "labels": [act]}
            case "ref":
                ok(await self.kit.refs.create(REPO, act, self.main))
                return {"action": "delete", "branch": act, "sha": self.main}
            case "contents":
                return {"path": f"act-{number}.md", "content": f"{name}\n", "message": act}
            case "plan":
                return await self._plan(number)
            case "pull_request":
                head = await self._branch(number)
                return {"title": name, "body": "…", "head": head, "base": "main"}
            case "review":
                return {"number": (await self._pull(self.kit, number)).number, "event": "APPROVE", "body": name}
            case "merge":
                pull = await self._pull(self.rowan, number)
                return {"number": pull.number, "title": act, "head_sha": pull.head.sha}
            case _:
                return await self._fields_without_words(turn, act)

    async def _fields_without_words(self, turn: str, act: str) -> dict[str, Any]:  # noqa: PLR0911 - as above
        """Return the fields of the kinds without text; each act has an object of its own."""
        match turn:
            case "review_request":
                return {"number": (await self._pull(self.rowan, act)).number, "reviewers": ["kit"]}
            case "assignee":
                return {"number": await self._issue(), "add": ["kit"], "remove": "rowan"}
            case "reaction":
                return {"number": await self._issue(), "reaction": "heart"}
            case "comment_deletion":
                issue = await self._issue()
                return {"number": issue, "comment_id": ok(await self.rowan.create_comment(REPO, issue, act)).id}
            case "star":
                self.network.create_repo(self._account("kit"), act)
                return {"repo": f"kit/{act}"}
            case "account_follow":
                self.network.create_account(act)
                return {"repo": f"{act}/{act}"}
            case _:
                return {"repo": f"{ORGANISATION}/{act}", "template": TEMPLATE, "only_one": act}

    def _account(self, login: str) -> GitHubAccount:
        account = self.network.find(login)
        assert account is not None
        return account

    async def _issue(self) -> int:
        """Create an issue as a person; return its number."""
        return ok(await self.kit.create_issue(REPO, "Something", "…", assignees=("rowan",))).number

    async def _plan(self, number: int) -> dict[str, Any]:
        """Create a plan as a person; return the fields of an edit that claims one of its tasks."""
        plan = Plan(f"Plan {number}", "A goal", tasks=(Task(1, "Begin"), Task(2, "Go on")))
        issue = ok(await self.kit.create_issue(REPO, f"[PLAN] {plan.title}", generate_plan_markdown(plan)))
        body = update_task_in_plan_body(issue.body, 1, TaskChange("claimed", "rowan")).body
        self.plans[issue.number] = body
        return {"number": issue.number, "body": body, "over": body_digest(issue.body)}

    async def _branch(self, number: int | str) -> str:
        """Create a branch with one commit; return its name."""
        branch = f"branch-{number}"
        ok(await self.kit.refs.create(REPO, branch, self.main))
        path, message = f"branch-{number}.md", f"Branch {number}"
        ok(await self.kit.contents.write(REPO, path, "A line.\n", message=message, branch=branch))
        return branch

    async def _pull(self, author: GitHub, number: int | str) -> PullRequest:
        head = await self._branch(number)
        return ok(await author.pulls.create(REPO, title=f"Pull {number}", body="…", head=head, base="main"))

    def _settled(self) -> int:
        states = self.states()
        return states.total() - states["pending"] - states["sending"]

    def states(self) -> Counter[str]:
        """Return how many acts are in each state."""
        path = self.folder / "soul.db"
        if not path.exists():
            return Counter()
        with closing(sqlite3.connect(path, timeout=10)) as connection:
            return Counter(row[0] for row in connection.execute("SELECT state FROM intents"))

    def unfinished(self) -> bool:
        return self._settled() < len(self.wanted)

    def expected(self) -> Counter[str]:
        return Counter(one["cause_id"] for one in self.wanted if one["turn"] != "issue_update")

    async def found(self) -> Counter[str]:
        """Count the results on GitHub, by the act that made them."""
        issues = [issue for issue in self.repo.issues.values() if issue]
        reviews = [review.body for pull in self.repo.pulls.values() for review in pull.reviews]
        said = [comment.body for comment in issues[0].comments]
        names = [issue.title for issue in issues] + [text.partition("\n")[0] for text in said + reviews]
        found = Counter(name.lower().replace(" ", "-") for name in names if name.startswith("Act "))
        found += Counter(label.name for label in issues[0].labels if label.name.startswith("act-"))
        branches = {one.name for one in ok(await self.rowan.refs.branches(REPO))}
        deleted = (one["cause_id"] for one in self.wanted if one["turn"] == "ref")
        found += Counter(act for act in deleted if act not in branches)
        for one in self.wanted:
            found[one["cause_id"]] += self._standing(one["turn"], one["cause_id"], one["body"])
        return found + await self._commits()

    def _standing(self, turn: str, act: str, body: dict[str, Any]) -> int:  # noqa: PLR0911 - a line for each kind
        """Return how often the result of an act exists that is identified only by its object."""
        state = self.network.state
        number = body.get("number", 0)
        issue, pull = self.repo.issues.get(number), self.repo.pulls.get(number)
        match turn:
            case "plan" if issue:
                return issue.body == self.plans[issue.number]
            case "assignee" if issue:
                return [one.login for one in issue.assignees] == ["kit"]
            case "reaction" if issue:
                return len(issue.reactions)
            case "comment_deletion" if issue:
                return not issue.comments
            case "review_request" if pull:
                return [one.login for one in pull.requested] == ["kit"]
            case "star":
                return len(state.repos[body["repo"]].stars)
            case "account_follow":
                return ("rowan", act) in state.follows
            case "repository":
                return sum(repo.full_name == f"{ORGANISATION}/{act}" for repo in self.network.repos())
        return 0

    async def _commits(self) -> Counter[str]:
        """Count the commits of acts on the default branch, files or merges, by the act in their message."""
        found: Counter[str] = Counter()
        sha = ok(await self.rowan.refs.get(REPO, "main")).sha
        while sha:
            commit = ok(await self.rowan.refs.commit(REPO, sha))
            if commit.message.startswith("act-"):
                found[commit.message.split()[0]] += 1
            sha = commit.parents[0] if commit.parents else ""
        return found
