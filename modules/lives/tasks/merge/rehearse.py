"""Runs the tests on the result of a merge before it is made, if the base moved since the branch left it.

Two pull requests can each pass their tests, be approved, and break each other without a conflict of text. So before a
merge the suite runs once on both together. The result is stored in the row of the pull request, by the two commits.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TypeVar

from adapters.git.diffs import FileDiff
from adapters.github.client import GitHub
from adapters.github.pulls import MAX_FILES
from adapters.github.types import PullFile, PullRequest, Repo
from common.errors import SoulError, Transient
from common.result import Err, Ok
from common.text.untrusted import one_line
from modules.lives.tasks.code import CodeWork
from modules.lives.tasks.documents import is_document
from modules.lives.tasks.review.handle import Checkout, PullFiles
from modules.services.coding.suites import suite_change
from modules.services.work.table import WorkTable
from modules.services.work.types import WorkItem

T = TypeVar("T")

MOST_REHEARSALS = 5
"""How often the suite runs for one commit of a branch; then the last result stands, however often its base moves."""
_WHAT = "rehearsal"
_KEPT = "rehearsed"
_MOST_NAMED, _NAME_CHARS = 20, 200


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The test result for the commit `head` of a branch, merged into its base at the commit `base`.

    `failing` names the tests or commands that fail with the merge and do not fail on the base. `count` is how many
    times the suite ran for `head`.
    """

    head: str
    base: str = ""
    failing: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class MergeRehearsal:
    """Tests merges before they are made; `code` has the sandbox, and says whether programs may run here."""

    github: GitHub
    checkout: Checkout
    table: WorkTable
    code: CodeWork

    async def failing(self, item: WorkItem, repo: Repo, pull: PullRequest) -> tuple[str, ...]:
        """Return the tests or commands that fail after the merge of a pull request and not before it.

        Raises `Transient` if that cannot be determined now, or if the base moved while the tests ran.
        """
        if not self.code.may_run:
            return ()
        known, tip = _known(item, pull), await self._tip(repo, pull)
        if known.count >= MOST_REHEARSALS or known.base == tip or await self._adds_only_documents(repo, known, tip):
            return known.failing
        async with self.checkout.of(repo, pull, _WHAT) as cloned:
            if isinstance(cloned, Err) and cloned.kind == "invalid":
                return known.failing  # NOTE(self): too large to be tested here, as without a sandbox
            files = cloned.or_wait()
            base = (await files.work.tip(pull.base.ref)).or_wait()
            is_run = await _needs_run(files, base)
            failing = await self._run(files) if is_run else ()
        found = Rehearsal(pull.head.sha, base, failing, known.count + is_run)
        await self.table.note(item, **{_KEPT: asdict(found)})
        if found.count < MOST_REHEARSALS and await self._tip(repo, pull) != base:
            raise Transient(f"{pull.base.ref} moved while the merge was tested")
        return found.failing

    async def _adds_only_documents(self, repo: Repo, known: Rehearsal, tip: str) -> bool:
        """Return whether only documents have changed on the base since the tests ran."""
        if not known.base:
            return False
        moved = await self.github.pulls.changed(repo, known.base, tip)
        return isinstance(moved, Ok) and 0 < len(moved.data) < MAX_FILES and _are_documents(moved.data)

    async def _tip(self, repo: Repo, pull: PullRequest) -> str:
        """Return the newest commit of the base."""
        return (await self.github.refs.get(repo, pull.base.ref)).or_wait().sha

    async def _run(self, files: PullFiles) -> tuple[str, ...]:
        """Return what fails because of the merge; nothing if the sandbox does not work."""
        agent, install = self.code.agent, self.code.install
        network, seconds = agent.limits.network, agent.limits.suite_seconds
        try:
            tests = await suite_change(
                files.base, files.tested, agent.sandbox, install, network=network, seconds=seconds
            )
        except Transient:
            raise
        except SoulError:
            return ()
        names = tests.newly_failing or tuple(one.command for one in tests.broken)
        return tuple(one_line(name, _NAME_CHARS) for name in names[:_MOST_NAMED])


async def _needs_run(files: PullFiles, base: str) -> bool:
    """Return whether the base moved since the branch left it, and the branch changes more than documents."""
    if files.fork == base:
        return False
    changed = (await files.work.diffs(files.fork)).or_wait()
    return not _are_documents(changed)


def _are_documents(changed: Iterable[PullFile | FileDiff]) -> bool:
    return all(is_document(path) for one in changed for path in (one.path, one.previous_path) if path)


def _known(item: WorkItem, pull: PullRequest) -> Rehearsal:
    """Return the rehearsal of the newest commit that the row holds, else an empty one."""
    kept = item.payload.get(_KEPT, {})
    if kept.get("head") != pull.head.sha:
        return Rehearsal(pull.head.sha)
    return Rehearsal(**(kept | {"failing": tuple(kept["failing"])}))
