"""The threads on GitHub that something led us to, as rows of work; and the changes of a pull request for its reviewer.

A row is one source that leads to one thread. News from the same source that is later than the row lets it wait again.
No text that anybody wrote is stored here, only its address.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal

from adapters.git.diffs import FileDiff, fair_share
from adapters.github.types import Account, PullFile, Repo
from common.clock import Clock, iso, parse_iso
from common.provenance import Importance
from common.text.hidden import added_imitations, added_invisible, invisible_in, is_prose, names_of, with_names
from common.text.untrusted import legible
from modules.services.work import table
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork, WorkItem

THREAD = "thread"
"""The kind of the rows."""

ThreadSource = Literal[
    "github_notification", "bluesky_url", "bluesky_url_owner", "workspace_pr_review", "workspace_issue"
]
"""The kinds of leads to a thread. The owner wrote the post of a `bluesky_url_owner`; we find a `workspace_issue`."""

_RANKS = {"mention": 0, "assign": 0, "review_requested": 0}
"""GitHub's reasons for which somebody calls us; such threads go before others."""
_ONE_SECOND_IS_OVER = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class NewThread:
    """A lead to a thread: a notification, a post, or an issue that we found.

    Attributes:
        repo: `owner/name`.
        number: of the issue or pull request.
        kind: which of the two it is.
        source: what led there.
        at: when that was written, ISO-8601 UTC, from the network.
        reason: GitHub's reason for its notification, for example `mention`; "" without one.
        notice: the id of GitHub's notification; "" without one.
        uri: of the Bluesky post; "" without one.
        line: the id of the comment that begins a talk about a line of a pull request; 0 for the thread itself.

    """

    repo: str
    number: int
    kind: Literal["issue", "pull"]
    source: ThreadSource
    at: str
    reason: str = ""
    notice: str = ""
    uri: str = ""
    line: int = 0

    @property
    def place(self) -> Repo:
        """Its repository."""
        owner, _, name = self.repo.partition("/")
        return Repo(owner, name)

    @property
    def key(self) -> str:
        """`owner/name#number`, in lower case: the same for all that leads to the thread."""
        return f"{self.repo}#{self.number}".lower()

    @property
    def talk_key(self) -> str:
        """The key with the talk about a line, if it is one: `owner/name#7/line-12`."""
        return f"{self.key}/line-{self.line}" if self.line else self.key

    def url_at(self, address: str) -> str:
        """Return its web address, on the service whose pages begin with `address`."""
        return f"{address}/{self.repo}/{'pull' if self.kind == 'pull' else 'issues'}/{self.number}"


@dataclass(frozen=True, slots=True)
class WaitingThread(NewThread):
    """A waiting thread, and the name of its cause in journal and outbox for this one time.

    `caller` is whose turn it waits for: the id and the login of their account, and their importance; else empty.
    """

    cause_id: str = ""
    caller: tuple[int, str, Importance] | tuple[()] = ()


@dataclass(frozen=True, slots=True)
class ThreadInbox:
    """Lets threads wait, each for `jitter_s`, so that SOULs that are called together do not answer at once."""

    work: WorkTable
    clock: Clock
    jitter_s: float

    async def take_in(self, new: Iterable[NewThread]) -> int:
        """Let these wait, except those known to have led there at that time; return how many are new."""
        now = self.clock.now()
        return await self.work.add(*(self._row(one, now) for one in new))

    async def note_caller(self, item: WorkItem, who: Account, importance: Importance) -> None:
        """Store in a row whose turn its thread waits for, until there is news of the thread."""
        await self.work.note(item, caller=[who.id, who.login, importance])

    def _row(self, thread: NewThread, now: datetime) -> NewWork:
        key = f"{thread.talk_key}/{thread.source}"
        return NewWork(
            THREAD,
            key,
            asdict(thread),
            author=thread.uri.removeprefix("at://").partition("/")[0],
            importance="owner" if thread.source == "bluesky_url_owner" else "stranger",
            not_before=now + timedelta(seconds=self.jitter_s),
            cause_id=f"github:{key}/{iso(now)}",
            rank=_RANKS.get(thread.reason, 1),
            version=_version(thread, now),
        )


def _version(thread: NewThread, now: datetime) -> str:
    """Return the version that distinguishes later news of a thread from earlier ones.

    GitHub's times are in whole seconds. A thread that was stored within two seconds of its time is examined once more
    after these, as something else may have been written in the same second.
    """
    return thread.at if now < parse_iso(thread.at) + _ONE_SECOND_IS_OVER else f"{thread.at}."


def thread_of(item: WorkItem) -> WaitingThread:
    """Return the thread of a row."""
    return WaitingThread(**item.payload, cause_id=item.cause_id)


def leads_to(connection: sqlite3.Connection, repo: str, number: int) -> bool:
    """Return whether anything led us to a thread, as a step of a caller's transaction."""
    return table.has(connection, THREAD, f"{repo}#{number}/".lower())


MOST_FILES = 300
MOST_CHARS = 200_000
"""The most characters of all changes together; longer ones are cut to a fair share for each file."""

EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""Git's name for a file without content."""

_CUT = "[…]"
_HUNK = re.compile(r"@@ -\S+ \+(\d{1,9})(?:,\d{1,9})? @@")


@dataclass(frozen=True, slots=True)
class ShownChanges:
    """The changes as a model reads them, with the names of hidden characters.

    Attributes:
        text: the whole text.
        left_out: how many files are not shown in full.
        invisible: for each file, its path and the names of invisible characters, in the path or added outside prose.
        imitations: for each file that is not prose, its path and the names of added letters that look like Latin ones.
        secrets: the paths of files with what looks like a secret in their added lines, which no model is shown.

    """

    text: str
    left_out: int = 0
    invisible: tuple[str, ...] = ()
    imitations: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def hidden(self) -> str:
        """All hidden characters that were found, on one line; "" if there are none."""
        return "; ".join((*self.invisible, *self.imitations))


def new_lines(patch: str) -> frozenset[int]:
    """Return the numbers of the lines of the new file that a patch shows."""
    found, number = set[int](), 0
    for line in patch.split("\n"):
        if head := _HUNK.match(line):
            number = int(head[1])
        elif number and line.startswith((" ", "+")):
            found.add(number)
            number += 1
    return frozenset(found)


def of_github(file: PullFile) -> FileDiff:
    """Return a file from GitHub's data, which leaves out the patch of a large or binary file."""
    says_all = not file.additions + file.deletions and (file.status == "removed" or file.sha == EMPTY_BLOB)
    return FileDiff(
        path=file.path,
        status=file.status,
        additions=file.additions,
        deletions=file.deletions,
        patch=file.patch,
        previous_path=file.previous_path,
        is_complete=bool(file.patch) or says_all,
    )


def changes_of(
    files: Sequence[FileDiff],
    count: int = 0,
    most_chars: int = MOST_CHARS,
    finds_secret: Callable[[str], bool] = lambda _: False,
) -> ShownChanges:
    """Return the changes of `files`. A file with a secret in its added lines counts as not shown in full.

    Args:
        files: the files that differ.
        count: how many files the pull request changes, if that may be more.
        most_chars: the most characters of patches to show.
        finds_secret: returns whether a text holds a secret.

    """
    shown, partly = list[str](), max(0, count - min(len(files), MOST_FILES))
    secrets = {file.path for file in files if finds_secret(_added(file.patch))}
    patches = [legible(file.patch) for file in files[:MOST_FILES]]
    share = fair_share(map(len, patches), most_chars)
    for file, patch in zip(files, patches, strict=False):
        is_whole = file.is_complete and len(patch) <= share
        told = patch if is_whole else f"{patch[:share]} {_CUT}"
        shown.append(f"{legible(_headline(file))}\n{told}".strip())
        partly += not is_whole or file.path in secrets
    partly += max(0, len(files) - MOST_FILES) if not count else 0
    invisible, imitations = tuple(_invisible(files)), tuple(_imitations(files))
    return ShownChanges("\n\n".join(shown), partly, invisible, imitations, tuple(map(with_names, sorted(secrets))))


def _added(patch: str) -> str:
    return "\n".join(line[1:] for line in patch.split("\n") if line.startswith("+"))


def _headline(file: FileDiff) -> str:
    moved = f" from {file.previous_path}" if file.previous_path else ""
    note = f", {file.note}" if file.note else ""
    return f"{file.path} ({file.status}{moved}{note}, +{file.additions} -{file.deletions})"


def _invisible(files: Sequence[FileDiff]) -> Iterator[str]:
    for file in files:
        in_path = "" if file.status == "removed" else invisible_in(file.path)
        if found := in_path + ("" if is_prose(file.path) else added_invisible(file.patch)):
            yield f"{with_names(file.path)}: {names_of(found)}"


def _imitations(files: Sequence[FileDiff]) -> Iterator[str]:
    for file in files:
        if found := "" if is_prose(file.path) else added_imitations(file.patch):
            yield f"{with_names(file.path)}: {names_of(found)}"
