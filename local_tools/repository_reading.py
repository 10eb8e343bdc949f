"""The tool to read a repository's files and history, to talk about code.

The result is untrusted text. Our account, which may read private repositories, is used only for the owner's eyes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from adapters.github.types import Repo
from common.provenance import Provenance
from common.text.strings import both_ends
from common.text.untrusted import legible
from local_tools.github_acting import GitHubActing
from local_tools.workspace_inputs import InRepository
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.repositories.reader import HISTORY, RepositoryCopy, RepositoryReader

_MOST_CHARS, _MOST_COMMITS = 16_000, 30
_DEPTHS = {"history": HISTORY, "commit": 2}
_SHOW = ("--stat", "--patch", "--diff-merges=first-parent", "--no-color", "--no-ext-diff", "--no-textconv")


class RepositoryReadInput(InRepository):
    """The thing to read, and the branch, tag or commit; the default branch if none is given."""

    what: Literal["files", "file", "search", "history", "commit"] = "files"
    at: str = ""
    path: str = ""
    text: str = ""
    from_line: int = Field(default=1, ge=1)


class RepositoryReadingTools:
    """The handler, with its services."""

    def __init__(self, reader: RepositoryReader, acting: GitHubActing) -> None:
        self._reader = reader
        self._acting = acting

    def serves(self, turn: Turn) -> bool:
        """Return whether there is a sandbox to read in."""
        return self._reader.sandbox.is_there

    async def read(self, args: RepositoryReadInput, turn: Turn) -> ToolResult:
        """Read one thing. A turn whose answer others see too gets only what is public."""
        owner, _, name = args.repo.strip().rpartition("/")
        owner = owner or args.owner.strip()
        repo = Repo(owner, name) if owner and name else self._acting.place("", name, turn)
        depth, as_account = _DEPTHS.get(args.what, 1), self._acting.serves_owner(turn)
        at = "" if args.at.strip() == "HEAD" else args.at.strip()
        # NOTE(self): the repository of a copy that was fetched without an account may be private by now.
        github = self._acting.services.github
        if not as_account and github.configured and (await github.get_repository(repo)).or_raise().private:
            self._acting.words.stop("Private", repo=repo.full_name)
        async with self._reader.open(repo, at, depth, as_account=as_account) as copy:
            told = {"repo": repo.full_name, "commit": copy.sha, "content": await self._content(args, copy)}
        return self._acting.read(told, uri=github.page(repo))

    async def _content(self, args: RepositoryReadInput, copy: RepositoryCopy) -> str:
        if args.what == "commit":
            return legible(both_ends((await copy.git("show", *_SHOW, copy.sha)).or_raise(), _MOST_CHARS))
        if args.what == "history":
            only = ("--", f":(top,literal){args.path}") if args.path else ()
            form = ("--format=%h %ad %an: %s", "--date=short", "--no-color")
            return legible((await copy.git("log", f"-{_MOST_COMMITS}", *form, copy.sha, *only)).or_raise())
        from modules.services.coding.hands import RefusedCall, TreeFiles  # noqa: PLC0415 - few lives need it

        files = TreeFiles(copy.tree)
        read = {"files": files.list_files, "file": files.read_file, "search": files.search}[args.what]
        try:
            return await asyncio.to_thread(read, {"path": args.path, "text": args.text, "from_line": args.from_line})
        except RefusedCall as refused:
            self._acting.words.stop(refused.answer, **refused.words)


def repository_reading_tools(reader: RepositoryReader, acting: GitHubActing) -> Sequence[Tool]:
    """Return the tool: a look for turns that the owner began."""
    tools, needs = RepositoryReadingTools(reader, acting), Provenance.OWNER
    handler, fits = tools.read, tools.serves
    return (
        acting.words.tool(
            "github_read_repository", RepositoryReadInput, "social", needs, handler, effect="look", fits=fits
        ),
    )
