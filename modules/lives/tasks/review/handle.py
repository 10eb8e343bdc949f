"""Reviews one commit of a pull request: checks it out, runs its tests, and has the model judge it, within limits."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, TypeVar

from adapters.git.client import Git
from adapters.git.diffs import FileDiff
from adapters.git.worktree import Worktree
from adapters.github.client import GitHub
from adapters.github.types import LineComment, PullRequest, Repo, Review, ReviewEvent
from common.clock import Clock
from common.errors import SoulError, Transient
from common.files import delete_tree
from common.result import ApiResult, Err, Ok, answering
from common.text.github_text import without_mentions
from common.text.untrusted import one_line
from common.wording import told_outcome
from modules.lives.tasks.code import work_folder
from modules.lives.tasks.documents import is_document
from modules.lives.tasks.execute import LOST_LOOK_S, first_of
from modules.lives.tasks.review.judge import (
    Judge,
    Judgement,
    ReviewCase,
    ReviewTools,
    event_for,
    failing_names,
    read_background,
)
from modules.runtime.sandbox.runner import Sandbox
from modules.services.claims.claim_requests import PlanReader
from modules.services.coding.environment.installer import Installer, move_installed
from modules.services.coding.hands import Hands
from modules.services.coding.policy import CodingRoom
from modules.services.coding.suite_words import quoted, suite_lines
from modules.services.coding.suites import SuiteChange, SuiteState, read_suites, suite_change, suite_limits
from modules.services.coding.test_output import essential_lines
from modules.services.github_threads import new_lines
from modules.services.outbox.github_bodies import MOST_LINE_COMMENTS, ReviewBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ProposedAction
from modules.services.voice_phrases import Phrase
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem
from modules.services.workspaces.acting import is_reviewed_by_test
from modules.services.workspaces.trust import READ_AGAIN_S, WorkspaceTrust


@dataclass(frozen=True, slots=True)
class PullFiles:
    """The files of a pull request.

    Attributes:
        work: the worktree of its branch.
        tested: the files after a merge, or those of the branch if it was not merged.
        base: the files that `tested` is compared with: those before that merge, or those the branch began with.
        fork: the commit that the branch began with.

    """

    work: Worktree
    tested: Path
    base: Path
    fork: str

    def room_from(self, start: str, base: str) -> CodingRoom:
        """Return the room in which the branch is changed from the commit `start` on, compared with `base`."""
        return CodingRoom(self.work, base, self.base.with_name("tmp"), start)

    @answering
    async def room(self, name: str) -> ApiResult[CodingRoom]:
        """Return a room in a new folder `name` with the files as committed, whatever programs did in the tree."""
        folder = self.base.with_name(name)
        await asyncio.to_thread(folder.mkdir)
        (await self.work.export("HEAD", folder)).or_raise()
        return Ok(CodingRoom(Worktree(self.work.repository, folder), self.fork, folder.with_name(f"{name}-tmp")))


@dataclass(frozen=True, slots=True)
class Checkout:
    """Clones pull requests into the home `root`; programs that run in the files do not see the Git repository."""

    git: Git
    root: Path

    @asynccontextmanager
    async def of(self, repo: Repo, pull: PullRequest, what: str) -> AsyncIterator[ApiResult[PullFiles]]:
        """Check out the newest commit, merged if possible, in a folder for `what`, such as `review`, deleted at exit.

        The error is of kind `conflict` if the branch has another newest commit by now.
        """
        try:
            yield await self.open(repo, pull, what, is_merged=True)
        finally:
            await self.delete(repo, pull.number, what)

    @answering
    async def open(self, repo: Repo, pull: PullRequest, what: str, *, is_merged: bool = False) -> ApiResult[PullFiles]:
        """Check out as `of` does, but keep the folder until `delete`, and merge only if `is_merged`."""
        await self.delete(repo, pull.number, what)
        folder = self._folder(repo, pull.number, what)
        await asyncio.to_thread(folder.mkdir, parents=True)
        (await self.git.clone(repo.owner, repo.name, folder / "clone", branch=pull.head.ref)).or_raise()
        worktree = Worktree(folder / "repository", folder / "tree")
        worktree.take(folder / "clone")
        (await worktree.begin(pull.head.ref)).or_raise()
        if (await worktree.head()).or_raise() != pull.head.sha:
            return Err(f"{pull.head.ref} stands on another commit by now", "conflict")
        return Ok(await self._files(worktree, folder, pull.base.ref, is_merged=is_merged))

    async def _files(self, worktree: Worktree, folder: Path, branch: str, *, is_merged: bool) -> PullFiles:
        base = fork = (await worktree.fork(branch)).or_raise()
        tested = worktree.tree
        merged = await worktree.merged(branch) if is_merged else None
        if isinstance(merged, Ok):
            base, tested = (await worktree.tip(branch)).or_raise(), folder / "merged"
            tested.mkdir()
            (await worktree.export(merged.data, tested)).or_raise()
        files = PullFiles(worktree, tested, folder / "base", fork)
        files.base.mkdir()
        (await worktree.export(base, files.base)).or_raise()
        return files

    async def delete(self, repo: Repo, number: int, what: str) -> None:
        """Delete the folder for `what` of pull request `number`, if it exists."""
        await asyncio.to_thread(delete_tree, self._folder(repo, number, what))

    def _folder(self, repo: Repo, number: int, what: str) -> Path:
        return self.root / work_folder(self.root, repo, f"{what}-{number}")


T = TypeVar("T")

REVIEW = "review"
"""The kind of the rows: one for each commit that is reviewed, `owner/repo#31@<sha>`.

Another one, `owner/repo#31@<sha>+<sha of the base>`, is added if the base moved after an approval and changed one of
the files, or if another review was requested after one that only commented.
"""

APPROVED, COMMENTED = "approve", "comment"
"""The outcomes of rows whose review approved the commit, or only commented."""
CLOSED, MOVED = "closed", "moved"
"""The outcomes of rows whose commit was not open for a review when its turn came; it gets one once it is again."""

_TICKS = re.compile(r"`+")
_MOVED_S = 60.0
_MOST_NAMED, _HIDDEN_CHARS = 10, 300
_SHORT_SHA = 12
_TESTS: Mapping[SuiteState, str] = {
    "passed": "its tests pass",
    "failed": "its tests fail",
    "failing_before": "no tests fail that did not fail before",
    "unrun": "its tests gave no result",
    "none": "it has no tests",
}
_LATER = frozenset({"transient", "unknown_outcome", "auth"})


@dataclass(frozen=True, slots=True)
class ReviewPlace:
    """The commit `sha` of pull request `number` of a repository.

    `base` is the newest commit of its base branch when the row was added; `is_again` says that it had a row before.
    """

    repo: Repo
    number: int
    sha: str
    base: str = ""
    is_again: bool = False

    @property
    def row(self) -> NewWork:
        """The row of work for this review."""
        told = {"owner": self.repo.owner, "repo": self.repo.name, "number": self.number}
        again = f"+{self.base[:_SHORT_SHA]}" if self.is_again else ""
        key = f"{self.repo.full_name}#{self.number}@{self.sha}{again}".lower()
        return NewWork(REVIEW, key, {**told, "sha": self.sha, "base": self.base}, importance="commitment")


def place_of(item: WorkItem) -> ReviewPlace:
    """Return the commit that a row is about."""
    told = item.payload
    return ReviewPlace(Repo(told["owner"], told["repo"]), told["number"], told["sha"])


class _Stopped(Exception):
    """Raised if there is nothing to review."""

    def __init__(self, disposition: Disposition) -> None:
        super().__init__(disposition.code)
        self.disposition = disposition


@dataclass(slots=True)
class ReviewHandler(Handler):
    """Reviews each commit once. `network` lets its tests use the network; `phrase` returns operational texts.

    `installer` installs the packages that a repository depends on; `suite_seconds` is how long one run of tests may
    take.
    """

    kind = REVIEW
    line = "social"
    is_cut_off = True

    github: GitHub
    trust: WorkspaceTrust
    plans: PlanReader
    checkout: Checkout
    sandbox: Sandbox
    judge: Judge
    outbox: Outbox
    phrase: Phrase
    network: bool
    installer: Installer
    suite_seconds: float
    clock: Clock

    def is_ready(self) -> bool:
        return self.github.enough_for_loops

    async def handle(self, item: WorkItem) -> Disposition:
        place = place_of(item)
        try:
            case, judged = await first_of(self._judged(place), self._until_over(place))
            placed = await self._placed(place, judged.comments) if judged else ()
        except _Stopped as stopped:
            return stopped.disposition
        if judged is None:
            return Disposition("undecided", "unjudged", "the model gave no review that can be used")
        is_weakened, is_whole = case.tests.needs_look, not judged.shown.left_out
        event = event_for(
            judged.event,
            case.tests.state,
            is_weakened=is_weakened,
            is_whole=is_whole,
            is_documents=all(is_document(path) for one in case.files for path in (one.path, one.previous_path) if path),
        )
        if judged.shown.invisible:
            event = "REQUEST_CHANGES"
        text, placed = _review_words(judged, placed, case.tests, self.phrase)
        mask = self.judge.redactor.text  # a review that quotes a secret, as from a test's output, would not leave
        comments = [replace(one, body=mask(one.body)) for one in placed]
        body = self._body(place, event, mask(text), comments)
        given = await self.outbox.standing_verdict(body)
        if given and (given.state != "done" or given.created_at >= item.created_at):
            return Disposition("silent", event.lower(), "this commit has the same verdict of ours already")
        submitted = await self.outbox.submit(ProposedAction(body, part=item.cause_id, cause_id=item.cause_id))
        if not submitted.accepted:
            again = submitted.advice.not_before
            wait_s = self.clock.lived((again - self.clock.now()).total_seconds()) if again else 0.0
            return Disposition("later" if again else "silent", "not-allowed", submitted.reason, wait_s)
        told = f"{_TESTS[case.tests.state]}{'; its changes weaken them' if is_weakened else ''}"
        told += "; invisible characters were added" if judged.shown.invisible else ""
        told += "; what looks like a secret was added" if judged.shown.secrets else ""
        return Disposition("reviewed", event.lower(), told, intent_id=submitted.intent.id, held=submitted.held)

    async def _judged(self, place: ReviewPlace) -> tuple[ReviewCase, Judgement | None]:
        """Run the tests of a pull request, and have it judged. Raises `_Stopped` if there is nothing to review."""
        pull = await self._pull(place)
        trusted = await self.trust.accounts(place.repo)
        if not is_reviewed_by_test(pull, trusted):
            why = "its author does not count there now, or who counts could not be read"
            raise _Stopped(Disposition("later", "not-counted", why, READ_AGAIN_S))
        background = _read(await read_background(self.github, self.plans, trusted, place.repo, pull))
        async with self.checkout.of(place.repo, pull, REVIEW) as cloned:
            files = _read(cloned)
            diffs = _read(await files.work.diffs(files.fork))
            since = await self._since(files, diffs, background.earlier)
            case = ReviewCase(place.repo, pull, diffs, await self._tested(files), background, since)
            return case, await self.judge.judge(case, await self._tools(files))

    async def _pull(self, place: ReviewPlace) -> PullRequest:
        """Return the pull request. Raises `_Stopped` if this commit of it is no longer open for review."""
        pull = _read(await self.github.pulls.get(place.repo, place.number))
        if pull.state != "open" or pull.draft:
            raise _Stopped(Disposition("silent", CLOSED, "it is not open for a review any more"))
        if pull.head.sha != place.sha:
            raise _Stopped(Disposition("silent", MOVED, "another commit stands there by now"))
        return pull

    async def _until_over(self, place: ReviewPlace) -> NoReturn:
        """Raise `_Stopped` once this commit is no longer open for review, which ends what runs for it."""
        while True:
            await self.clock.sleep(LOST_LOOK_S)
            with suppress(Transient):
                await self._pull(place)

    async def _since(self, files: PullFiles, diffs: Sequence[FileDiff], earlier: Review | None) -> Sequence[FileDiff]:
        """Return how the files of the pull request differ from the commit of `earlier`; empty if that is gone."""
        if earlier is None:
            return ()
        changed = (await files.work.diffs(earlier.commit_id)).or_else(())
        paths = {one.path for one in diffs}
        return [one for one in changed if one.path in paths]

    async def _tested(self, files: PullFiles) -> SuiteChange:
        """Run the tests of a pull request. If they cannot be run here, that is a result, not an error."""
        base, tree = files.base, files.tested
        try:
            return await suite_change(
                base, tree, self.sandbox, self._install, network=self.network, seconds=self.suite_seconds
            )
        except SoulError:
            return SuiteChange(await read_suites(base), await read_suites(tree))

    async def _tools(self, files: PullFiles) -> ReviewTools:
        """Return the tools of the model, on copies: the tests may have changed the tree in which they ran."""
        room = _read(await files.room("reading"))
        reading = Hands(room, self.sandbox, self.network, self.judge.skills, suite_limits(self.suite_seconds))
        if not self.sandbox.is_there:
            return ReviewTools(reading, None)
        copy = _read(await files.room("running"))
        await asyncio.to_thread(move_installed, files.tested, copy.tree)
        return ReviewTools(reading, replace(reading, room=copy))

    async def _placed(self, place: ReviewPlace, comments: Sequence[LineComment]) -> tuple[LineComment, ...]:
        """Return the comments on lines that GitHub shows in the changes; it rejects a review with any other."""
        if not comments:
            return ()
        files = _read(await self.github.pulls.files(place.repo, place.number))
        shown = {one.path: new_lines(one.patch) for one in files}
        return tuple(one for one in comments if one.line in shown.get(one.path, ()))[:MOST_LINE_COMMENTS]

    async def _install(self, tree: Path) -> str:
        return await self.installer.install(tree, self.sandbox)

    def _body(self, place: ReviewPlace, event: ReviewEvent, text: str, comments: Sequence[LineComment]) -> ReviewBody:
        return ReviewBody(
            **for_workspace(place.repo),
            number=place.number,
            event=event,
            body=text,
            commit_id=place.sha,
            comments=tuple(comments),
        )

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        place = place_of(item)
        held = "; waits for your approval" if disposition.held else ""
        return f"Review of {place.repo.full_name}#{place.number}: {told_outcome(disposition.code)}{held}"


def _read(result: ApiResult[T]) -> T:
    """Return the data of a result. Raises `Transient` for an error that may pass, else `_Stopped`."""
    if not isinstance(result, Err):
        return result.data
    if result.kind in _LATER:
        raise Transient(result.error, retry_after=result.retry_after)
    if result.kind == "conflict":
        raise _Stopped(Disposition("later", "moved", result.error, _MOVED_S))
    raise _Stopped(Disposition("dropped", "unreadable", result.error))


def _review_words(
    judged: Judgement, placed: tuple[LineComment, ...], tests: SuiteChange, phrase: Phrase
) -> tuple[str, tuple[LineComment, ...]]:
    """Return the text of a review, and its line comments, which are `placed`.

    The text names each failing test, with the output lines that explain it. It also holds the comments on lines that
    the changes do not show.
    """
    others = [f"{quoted([f'{one.path}:{one.line}'])}: {one.body}" for one in judged.comments if one not in placed]
    named = (without_mentions(one_line(one, _HIDDEN_CHARS)) for one in judged.shown.invisible[:_MOST_NAMED])
    hidden = [phrase("github.hidden_characters", files=one) for one in named]
    if judged.shown.secrets:
        hidden.append(phrase("github.secrets_added", files=quoted(judged.shown.secrets)))
    lines = "\n".join(f"- {one}" for one in (*hidden, *suite_lines(tests, phrase)))
    return "\n\n".join((judged.words, *others, *_of_broken(tests, phrase), lines)), placed


def _of_broken(tests: SuiteChange, phrase: Phrase) -> Iterator[str]:
    for run in tests.broken:
        command, output = quoted([run.command]), _block(essential_lines(run.output))
        if run.outcome == "failed":
            yield phrase("github.tests_failed", command=command, output=output)
        else:
            yield f"{phrase(f'github.tests_{run.outcome}', commands=command)}\n\n{output}"
    if failing := failing_names(tests):
        yield phrase("github.tests_failing", tests=quoted(failing))


def _block(text: str) -> str:
    """Return output as a code block whose fence the output cannot close."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{without_mentions(text)}\n{fence}"
