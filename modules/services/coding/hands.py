"""The tools of a coding task: files of its tree, programs in the sandbox, and its repository, which no program sees.

Git runs outside of the sandbox. What is in `/tmp` inside stays there until the task ends.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from posixpath import normpath
from typing import TypeVar

from adapters.git.changes import TreeChange
from adapters.git.diffs import fair_share, path_of, sections
from common.errors import PolicyBlocked
from common.result import ApiResult, Err
from common.text.untrusted import clean
from common.trees import delete_tree
from modules.runtime.llm.types import ToolAnswer, ToolCall, ToolSpec
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.sandbox.types import Limits
from modules.services.coding.gates import any_named
from modules.services.coding.suites import SUITE_SECONDS, in_tree, suite_limits
from modules.services.coding.tree_files import RefusedCall, TreeFiles
from modules.services.coding.types import CodingRoom
from modules.services.skills.skills import Skills

T = TypeVar("T")
_NEW_FILE = "\nnew file mode "

SKILL = "coding"
FINISH, BLOCKED = "finish", "blocked"
DESCRIPTION = "description"
"""The argument of `finish` that a round has: what the whole pull request does now."""
ALREADY_THERE = "already_there"
"""The argument of `finish` that says that nothing had to be changed."""

_FINISH_ROUND = "finish in a round"
_RUN_SECONDS = 120
_LONGEST = suite_limits(SUITE_SECONDS)
_OUTPUT_CHARS, _DIFF_CHARS = 6_000, 16_000
_BLOB_CHARS = 12
_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "integer", "minimum": 1}, {"type": "boolean"}
_LINES = {"from_line": _NUMBER, "to_line": _NUMBER}
_SEARCH = {"text": _TEXT, "path": _TEXT, "glob": _TEXT, "regex": _FLAG, "ignore_case": _FLAG}
_ARGUMENTS: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "list_files": ({"path": _TEXT}, ()),
    "read_file": ({"path": _TEXT, **_LINES}, ("path",)),
    "search": ({**_SEARCH}, ("text",)),
    "write_file": ({"path": _TEXT, "content": _TEXT}, ("path", "content")),
    "edit_file": ({"path": _TEXT, "old": _TEXT, "new": _TEXT, "all": _FLAG}, ("path", "old", "new")),
    "run": ({"command": _TEXT, "seconds": _NUMBER}, ("command",)),
    "diff": ({"path": _TEXT}, ()),
    "restore": ({"path": _TEXT}, ("path",)),
    "history": ({"path": _TEXT, **_LINES}, ("path",)),
    FINISH: ({"summary": _TEXT, ALREADY_THERE: _FLAG}, ("summary",)),
    BLOCKED: ({"reason": _TEXT}, ("reason",)),
}
_REMOVES = re.compile(r"\b(?:rm|rmdir|unlink|mv)\b")


@dataclass(frozen=True, slots=True)
class Hands:
    """Carries out calls in one room; `limits` are those of one program that may run as long as a test command."""

    room: CodingRoom
    sandbox: Sandbox
    network: bool
    skills: Skills
    limits: Limits = _LONGEST

    def specs(self, *, is_round: bool = False) -> list[ToolSpec]:
        """Return the tools as the model sees them; `is_round` says that the work stands in a pull request already."""
        words = {"run": {"seconds": self._seconds(None), "most": self._seconds(self.limits.wall_s)}}
        described = {
            name: self.skills.render(SKILL, "Descriptions", name, **words.get(name, {})) for name in _ARGUMENTS
        }
        arguments = dict(_ARGUMENTS)
        if is_round:
            described[FINISH] = self.skills.subsection(SKILL, "Descriptions", _FINISH_ROUND)
            arguments[FINISH] = ({"summary": _TEXT, DESCRIPTION: _TEXT}, ("summary", DESCRIPTION))
        return [
            ToolSpec(
                name,
                described[name],
                {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False},
            )
            for name, (properties, required) in arguments.items()
        ]

    async def carry_out(self, call: ToolCall) -> ToolAnswer:
        """Return what came of a call; what it asks for wrongly is an error that the model reads."""
        try:
            text = await self._carry_out(call)
        except RefusedCall as refused:
            words = {name: str(value) for name, value in refused.words.items()}
            told = self.skills.render(SKILL, "Answers", refused.answer, **words)
            return ToolAnswer(call.id, call.name, clean(told), is_error=True)
        return ToolAnswer(
            call.id, call.name, clean(text) or self.skills.subsection(SKILL, "Answers", "Nothing").strip()
        )

    async def unseen(self, done: Iterable[tuple[ToolCall, ToolAnswer]], named: Sequence[str]) -> str:
        """Return the diff of what the model neither wrote, restored, removed nor saw as it is now; "" if none.

        A new file that a program left and the task does not name (`named`) is seen only once this has returned it.
        """
        written, seen, finished, commands = set[str](), list[str](), list[str](), list[str]()
        for call, answer in done:
            if call.name in {"write_file", "edit_file", "restore"} and not answer.is_error:
                written.add(normpath(str(call.input["path"])))
            if call.name == "run":
                commands.append(str(call.input.get("command", "")))
            if call.name in {"diff", FINISH}:
                seen.append(answer.content)
            if call.name == FINISH:
                finished.append(answer.content)
        worktree, start = self.room.worktree, self.room.start or self.room.base
        changes = _read(await worktree.staged(start))
        shown, named_there = "\n".join(seen), "\n".join(finished)
        new = {path_of(one) for one in sections(changes.patch) if _NEW_FILE in one.partition("\n@@")[0]}
        stray = {path for path in new if not any_named(named, path)}
        written |= {one.path for one in changes.files if not one.blob and _is_removed(one.path, commands)}
        left = [
            one
            for one in changes.files
            if one.path not in written and clean(_whole(one)) not in (named_there if one.path in stray else shown)
        ]
        patches = [_read(await worktree.staged(start, one.path)).patch for one in left]
        told = _told_diff(left, "\n".join(patches))
        return clean("\n".join([*map(_whole, left), told])) if left else ""

    async def _carry_out(self, call: ToolCall) -> str:
        if call.malformed or call.name not in _ARGUMENTS:
            raise RefusedCall("Not Understood", reason=call.malformed or call.name)
        if wrong := next((name for name in _ARGUMENTS[call.name][1] if not isinstance(call.input.get(name), str)), ""):
            raise RefusedCall("Not Understood", reason=wrong)
        apart: dict[str, Callable[[ToolCall], Awaitable[str]]] = {
            "run": self._run,
            "diff": self._diff,
            "restore": self._restore,
            "history": self._history,
        }
        try:
            if call.name in apart:
                return await apart[call.name](call)
            files = TreeFiles(self.room.tree)
            work = {
                "list_files": files.list_files,
                "read_file": files.read_file,
                "search": files.search,
                "write_file": files.write_file,
                "edit_file": files.edit_file,
            }
            return await asyncio.to_thread(work[call.name], call.input)
        except OSError as error:
            raise RefusedCall("Not Done", reason=error.strerror or "") from None

    async def _run(self, call: ToolCall) -> str:
        scratch = self.room.scratch
        scratch.mkdir(parents=True, exist_ok=True)
        command, seconds = in_tree(call.input["command"]), self._seconds(call.input.get("seconds"))
        try:
            ran = await self.sandbox.run(
                command,
                self.room.tree,
                network=self.network,
                limits=replace(self.limits, wall_s=seconds),
                env={"CI": "true", "NO_COLOR": "1"},
                tmp=scratch,
            )
        except PolicyBlocked as refused:
            raise RefusedCall("Not Done", reason=str(refused)) from None
        told = f"{ran.ended}, {ran.returncode}\n{shortened(ran.stdout)}\n{shortened(ran.stderr)}".strip()
        if ran.ended == "disk":
            await asyncio.to_thread(delete_tree, scratch)
            raise RefusedCall("Disk Full", output=told)
        if ran.ended == "timeout":
            raise RefusedCall("Run Timeout", output=told, seconds=seconds, most=self._seconds(self.limits.wall_s))
        if not ran.success:
            raise RefusedCall("Run Failed", output=told)
        return told

    def _seconds(self, asked: object) -> int:
        """Return how many seconds a program may run for which so many are asked."""
        wanted = asked if isinstance(asked, int | float) else _RUN_SECONDS
        return int(max(1, min(wanted, self.limits.wall_s)))

    async def _diff(self, call: ToolCall) -> str:
        changes = _read(await self.room.worktree.staged(self.room.base, _path(call)))
        if not changes.files:
            return self.skills.subsection(SKILL, "Answers", "Nothing Differs").strip()
        return f"{changes.stat}\n{_told_diff(changes.files, changes.patch)}"

    async def _restore(self, call: ToolCall) -> str:
        worktree, base, path = self.room.worktree, self.room.base, _path(call)
        if not _read(await worktree.staged(base, path)).files:
            raise RefusedCall("Nothing Differs")
        _read(await worktree.restore(base, path))
        return ""

    async def _history(self, call: ToolCall) -> str:
        worktree, path = self.room.worktree, _path(call)
        first, last = call.input.get("from_line"), call.input.get("to_line")
        if not isinstance(first, int):
            return _read(await worktree.log(self.room.base, path))
        last = last if isinstance(last, int) else first
        return shortened(_read(await worktree.blame(self.room.base, path, first, max(first, last))), _DIFF_CHARS)


def _is_removed(path: str, commands: Iterable[str]) -> bool:
    """Return whether one of the shell commands removes or moves a file by its name, or by that of a folder above it."""
    parts = path.split("/")
    names = "|".join(re.escape("/".join(parts[:end])) for end in range(1, len(parts) + 1))
    named = re.compile(rf"[\s\"'/](?:{names})/?(?![\w./*?-])")
    calls = (_REMOVES.search(call) for command in commands for call in re.split(r"[;&|\n]", command))
    return any(named.search(call.string, call.end()) for call in calls if call)


def shortened(output: str, most: int = _OUTPUT_CHARS) -> str:
    """Return the beginning and the end of a text, and how much of it was left out."""
    half, left = most // 2, len(output) - most
    return output if left <= 0 else f"{output[:half]}\n… ({left} characters left out)\n{output[-half:]}"


def _path(call: ToolCall) -> str:
    """The path that a call names for Git, from the root of the tree; "" for all of it. Git follows no link."""
    said = call.input.get("path", "")
    named = normpath(said) if isinstance(said, str) and said else "."
    if "\0" in named or named.startswith(("/", "..")):
        raise RefusedCall("Outside", path=said)
    return "" if named == "." else named


def _told_diff(files: Iterable[TreeChange], patch: str) -> str:
    """Return a diff file by file, of which a long one hides no other; of files that are shown whole it says so."""
    parts = {path_of(one): one for one in sections(patch)}
    share = fair_share(map(len, parts.values()), _DIFF_CHARS)
    told = list[str]()
    for one in files:
        part = parts.get(one.path, "")
        left = len(part) - share
        head = f"{one.path}: {left} more characters, call diff with this path" if left > 0 else _whole(one)
        told.append(f"{head}\n{part[:share]}".strip())
    return "\n".join(told)


def _whole(change: TreeChange) -> str:
    """The line above a file of a diff that is shown whole, which differs for each content that the file has."""
    return f"{change.path} ({change.blob[:_BLOB_CHARS] or 'deleted'})"


def _read(result: ApiResult[T]) -> T:
    if isinstance(result, Err):
        raise RefusedCall("Not Done", reason=result.error)
    return result.data
