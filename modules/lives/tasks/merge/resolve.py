"""Resolves the conflict of a pull request of ours with its base: one round merges the base into its branch.

The merge is made by `git` outside of the sandbox. Where files conflict, or tests fail by it, the agent that wrote the
pull request works on them; otherwise no model is asked. It is a merge commit, never a rebase: what was reviewed stays
as it is, and nothing is forced over what others pushed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from adapters.git.changes import Merging
from adapters.git.worktree import Worktree
from adapters.github.types import Account, PullRequest, Review
from common.text.untrusted import clean, one_line
from common.trees import delete_tree
from modules.lives.tasks.acts import TaskActs
from modules.lives.tasks.code.tree_tests import TreeTests
from modules.lives.tasks.offering import read
from modules.lives.tasks.review.checkout import PullFiles
from modules.lives.tasks.review.revise import Made, RevisionHandler
from modules.lives.tasks.review.rounds import Round
from modules.lives.tasks.talk import told_talk
from modules.services.coding.gates import GateFacts, closed_gate, gate_told
from modules.services.coding.types import CodingEnd
from modules.services.skills.framing import Framer
from modules.services.work.types import Disposition
from modules.services.workspaces.reviewers import latest_verdicts

CONFLICT = "conflict"
"""The kind of the rows: one for each commit of ours that conflicts with its base, `owner/repo#31@<sha>`."""
MOST_CONFLICTS = 3
"""So many conflicts of one pull request are resolved."""

_SKILL = "merge-conflict"
_LINE_CHARS, _TEXT_CHARS, _MOST_CONFLICTING = 200, 6_000, 60


@dataclass(slots=True)
class ConflictHandler(RevisionHandler):
    """Merges the base of one pull request at a time into its branch. Where that fails the merge loop gives it back."""

    kind = CONFLICT
    what: ClassVar[str] = "merge"
    steps: ClassVar[str] = CONFLICT
    most_rounds: ClassVar[int] = MOST_CONFLICTS
    says: ClassVar[str] = "github.base_merged"

    async def _reviews(self, this: Round, pull: PullRequest) -> Sequence[Review]:
        """Return the verdicts that do not count any more once the branch has another commit."""
        given = read(await self.github.pulls.reviews(this.repo, this.number))
        trusted = await self.trust.accounts(this.repo)
        last = latest_verdicts(given).values()
        return [one for one in last if trusted.covers_besides_us(Account(one.author_id, one.author))]

    async def _made(
        self, this: Round, pull: PullRequest, acts: TaskActs, files: PullFiles, reviews: Sequence[Review]
    ) -> Made:
        """Have the merge of the base committed, and return what came of it."""
        tree = files.work
        merging = read(await tree.merge(await self._base(this, tree, pull.base.ref)))
        await asyncio.to_thread(delete_tree, files.base)
        files.base.mkdir()
        read(await tree.export(merging.theirs, files.base))
        tests = TreeTests(tree, partial(self._suite_change, files.base))

        async def wrong() -> str:
            left = read(await tree.unresolved(merging))
            broken = self.code.failed((await tests.result()).broken)
            told = self.skills.render(_SKILL, "Not Resolved", files=clean("\n".join(left))).strip() if left else ""
            changes = read(await tree.staged(this.sha, merged=merging.theirs))
            facts = GateFacts(changes.branch, changes, (), self.code.redactor.finds, acts.task.files)
            shut = gate_told(self.skills, closed_gate(facts))
            return "\n\n".join(filter(None, (told, broken or shut)))

        failing, end = await wrong(), CodingEnd("finished")
        if merging.conflicts or failing:
            message = self._task(acts, pull, merging, failing)
            end = await self._coded(this, acts, files.room_from(merging.start, merging.start), message, wrong)
        else:
            await self._commit(tree, f"Merge {pull.base.ref} into {pull.head.ref}\n", self.clock.now())
        changes = read(await tree.changes(this.sha, merged=merging.theirs))
        unresolved, finds = read(await tree.unresolved(merging)), self.code.redactor.finds
        suites = await tests.result()
        facts = GateFacts(pull.head.ref, changes, suites.broken, finds, acts.task.files, unresolved)
        return Made(facts, end.text, self._text(acts, pull, end, changes, suites))

    async def _base(self, this: Round, tree: Worktree, branch: str) -> str:
        """Return the commit of the base that a round merges, which stays the same after a restart."""
        row = await self.table.get(CONFLICT, this.key)
        if row is not None and (known := row.payload.get("base")):
            return str(known)
        base = read(await tree.tip(branch))
        if row is not None:
            await self.table.note(row, base=base)
        return base

    def _task(self, acts: TaskActs, pull: PullRequest, merging: Merging, failing: str) -> str:
        """Return what the agent is told of the conflict."""
        framer = Framer(self.skills, self.rng)

        def framed(text: str) -> str:
            return framer.frame("reading", author=acts.repo.full_name, uri=pull.html_url, text=text[:_TEXT_CHARS])

        task = f"{one_line(acts.task.title, _LINE_CHARS)}\n\n{clean(acts.task.description).strip()}"
        lines = (merging.told or merging.conflicts)[:_MOST_CONFLICTING]
        return self.skills.render(
            _SKILL,
            "Message",
            repo=acts.repo.full_name,
            branch=one_line(pull.head.ref, _LINE_CHARS),
            base=one_line(pull.base.ref, _LINE_CHARS),
            task="\n\n".join(filter(None, (framed(task.strip()), told_talk(self.skills, framer, acts.held.talk)))),
            conflicts=framed("\n".join(lines) or failing),
            ours=framed("\n".join(merging.our_subjects)),
            theirs=framed("\n".join(merging.their_subjects)),
        )

    async def _tell_owner(self, this: Round, code: str, reason: str) -> Disposition:
        """Settle the row: the merge loop then gives the task back, and tells the owner."""
        return Disposition("silent", code, reason)
