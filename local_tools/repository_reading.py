"""What a SOUL can read of a repository's files and history, to talk about code.

It is untrusted text. As our own account, which may read private repositories, it is read only for the owner's eyes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from adapters.github.types import Repo
from common.provenance import Provenance
from common.text.github_text import lines_of, numbered
from common.text.untrusted import legible, one_line
from local_tools.github_acting import TIME_LIMIT_S, GitHubActing
from local_tools.workspace_inputs import InRepository
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.repositories.reader import (
    HISTORY,
    LINK,
    MODULE,
    RepositoryCopy,
    RepositoryEntry,
    RepositoryReader,
)

_MOST_FILES, _MOST_HITS = 200, 50
_MOST_BYTES, _MOST_CHARS, _LINE_CHARS, _HIT_CHARS, _PATH_CHARS = 1_000_000, 16_000, 2_000, 200, 500
_NAMES = {LINK: "link", MODULE: "submodule"}
_DEPTHS = {"history": HISTORY, "commit": 2}


class RepositoryReadInput(InRepository):
    """What to read, and at which branch, tag or commit; the default branch if none is given."""

    what: Literal["files", "file", "search", "history", "commit"] = "files"
    at: str = ""
    path: str = ""
    text: str = Field(default="", max_length=_HIT_CHARS)
    from_line: int = Field(default=1, ge=1)


class RepositoryReadingTools:
    """The handler, with what it needs."""

    def __init__(self, reader: RepositoryReader, acting: GitHubActing) -> None:
        self._reader = reader
        self._acting = acting

    def serves(self, turn: Turn) -> bool:
        """Whether there is a sandbox to read in."""
        return self._reader.sandbox.is_there

    async def read(self, args: RepositoryReadInput, turn: Turn) -> ToolResult:
        """Read one thing. A turn that more people read than the owner gets what everybody may read."""
        repo = self._place(args, turn)
        args = args.model_copy(update={"path": args.path.strip().removeprefix("./").strip("/")})
        depth, as_account = _DEPTHS.get(args.what, 1), self._acting.serves_owner(turn)
        async with self._reader.open(repo, args.at.strip(), depth, as_account=as_account) as copy:
            told = {"repo": repo.full_name, "commit": copy.sha, **await self._told(args, copy)}
        return self._acting.read(told, uri=self._acting.services.github.page(repo))

    def _place(self, args: RepositoryReadInput, turn: Turn) -> Repo:
        owner, _, name = args.repo.strip().rpartition("/")
        is_named = bool(name and (owner or args.owner))
        return Repo(owner or args.owner.strip(), name) if is_named else self._acting.place("", "", turn)

    async def _told(self, args: RepositoryReadInput, copy: RepositoryCopy) -> Mapping[str, object]:
        match args.what:
            case "files":
                return _files((await copy.entries()).or_raise(), args.path)
            case "file":
                return await self._file(args, copy)
            case "search":
                if not args.text.strip():
                    self._acting.words.stop("No Text To Find")
                hits = (await copy.search(args.text, args.path)).or_raise()
                shown = [f"{_path(at)}:{line}: {legible(text.strip()[:_HIT_CHARS])}" for at, line, text in hits]
                return {"lines": shown[:_MOST_HITS], "more": max(0, len(shown) - _MOST_HITS)}
            case "history":
                since = {"only_newest": HISTORY} if copy.is_cut else {}
                return {"commits": lines_of(legible((await copy.log(args.path)).or_raise())), **since}
            case _:
                return _cut(lines_of((await copy.commit()).or_raise()), args.from_line)

    async def _file(self, args: RepositoryReadInput, copy: RepositoryCopy) -> Mapping[str, object]:
        found = next((one for one in (await copy.entries()).or_raise() if one.path == args.path), None)
        if found is None or found.mode == MODULE:
            self._acting.words.stop("No File")
        if found.size > _MOST_BYTES:
            self._acting.words.stop("File Too Large", size=found.size)
        content = (await copy.content(found)).or_raise()
        if found.mode == LINK:
            return {"link_to": legible(content[:_PATH_CHARS])}
        if "\0" in content:
            self._acting.words.stop("File Not Text", size=found.size)
        return _cut(lines_of(content), args.from_line)


def _files(entries: Sequence[RepositoryEntry], path: str) -> Mapping[str, object]:
    """Return the files below a folder, or where these are too many, what lies in it and how many are below each."""
    below = [one for one in entries if not path or one.path == path or one.path.startswith(f"{path}/")]
    if len(below) <= _MOST_FILES:
        return {"files": [f"{_path(one.path)} ({_NAMES.get(one.mode) or f'{one.size} bytes'})" for one in below]}
    start = len(path) + 1 if path else 0
    counts = Counter(
        f"{one.path[:start]}{head}{slash}" for one in below for head, slash, _ in [one.path[start:].partition("/")]
    )
    shown = [f"{_path(name)} ({count} files)" if name.endswith("/") else _path(name) for name, count in counts.items()]
    return {"files": shown[:_MOST_FILES], "more": max(0, len(shown) - _MOST_FILES)}


def _cut(lines: Sequence[str], first: int) -> Mapping[str, object]:
    """Return numbered lines from `first` on, as many as fit, and where to go on."""
    shown, chars = list[str](), 0
    for line in lines[first - 1 :]:
        shown.append(line[:_LINE_CHARS])
        if (chars := chars + len(shown[-1])) > _MOST_CHARS:
            break
    last = first + len(shown) - 1
    more = {"go_on_with_from_line": last + 1} if last < len(lines) else {}
    return {"lines": len(lines), **more, "content": legible(numbered(shown, first))}


def _path(path: str) -> str:
    return one_line(legible(path), _PATH_CHARS)


def repository_reading_tools(reader: RepositoryReader, acting: GitHubActing) -> Sequence[Tool]:
    """The tool, as the registry takes it: a look for turns that the owner began."""
    tools = RepositoryReadingTools(reader, acting)
    made = acting.words.tool(
        "github_read_repository",
        RepositoryReadInput,
        "social",
        Provenance.OWNER,
        tools.read,
        effect="look",
        fits=tools.serves,
    )
    return (replace(made, time_limit_s=TIME_LIMIT_S),)
