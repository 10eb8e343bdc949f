"""The tools of a coding task: files of its tree, programs in the sandbox, and its repository, which no program sees.

They reach nothing outside the tree. Git runs outside the sandbox. Files in the sandbox's `/tmp` stay there until the
task ends.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from posixpath import normpath
from typing import Any, TypeVar

import regex

from adapters.git.diffs import fair_share, path_of, sections
from adapters.git.worktree import TreeChange
from common.errors import PolicyBlocked
from common.files import delete_tree, readable_name, walk
from common.redact import MASK, Redactor
from common.result import ApiResult, Err
from common.text.github_text import (
    LINE_END,
    SourceText,
    line_at,
    lines_of,
    nearest,
    numbered,
    read_source,
)
from common.text.strings import both_ends
from common.text.untrusted import clean, legible, one_line
from modules.runtime.llm.dialect import ToolAnswer, ToolCall, ToolSpec
from modules.runtime.sandbox.policy import WORK, Limits
from modules.runtime.sandbox.runner import Sandbox
from modules.services.coding.gates import any_named
from modules.services.coding.policy import CodingRoom
from modules.services.coding.suite_files import NOT_SOURCE
from modules.services.coding.suites import SUITE_SECONDS, in_tree, suite_limits
from modules.services.skills.skills import Skills

_READ_CHARS, _LINE_CHARS = 16_000, 2_000
_MOST_FILE_BYTES, _MOST_WRITTEN_CHARS, _MOST_PATTERN_CHARS = 1_000_000, 200_000, 1_000
_MOST_FILES, _MOST_HITS, _HIT_CHARS, _MOST_PLACES = 300, 60, 200, 20
_SEARCH_S = 10.0
_NAME_CHARS, _SENT_CHARS = 60, 200
_MOST_WALKED = 20_000
"""The most files below a folder that are listed or searched."""
_NOT_LISTED = NOT_SOURCE | {"__pycache__", ".pytest_cache"}


class RefusedCall(Exception):
    """A refused call: the model reads the subsection `answer` of `Answers`, with these words filled in."""

    def __init__(self, answer: str, **words: object) -> None:
        super().__init__(answer)
        self.answer = answer
        self.words = words


@dataclass(frozen=True, slots=True)
class TreeFiles:
    """The files below `tree`. Each method takes the input of a call and returns the text for the model.

    All raise `RefusedCall` for what cannot be done as requested, and `OSError` for a failure of the disk. One search
    takes at most `search_s` seconds, and looks at no more than `most_walked` files.
    """

    tree: Path
    search_s: float = _SEARCH_S
    most_walked: int = _MOST_WALKED
    is_bound: Callable[[str], bool] = lambda _: False

    def list_files(self, given: Mapping[str, Any]) -> str:
        """List the files below a folder."""
        paths, beyond = self._files(_text(given, "path"))
        found = sorted(map(self._name, paths))
        left = [f"… and {len(found) - _MOST_FILES} more: name a folder."] if len(found) > _MOST_FILES else []
        return "\n".join([*found[:_MOST_FILES], *left, *beyond])

    def read_file(self, given: Mapping[str, Any]) -> str:
        """Return as many numbered lines of a file as fit, and the line to continue from."""
        said = given["path"]
        source = self._source(self.place(said), said)
        lines = lines_of(source.text)
        first, last = max(1, _number(given, "from_line", 1)), min(len(lines), _number(given, "to_line", len(lines)))
        shown, chars = list[str](), 0
        for line in lines[first - 1 : last]:
            shown.append(line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}… ({len(line)} characters)")
            chars += len(shown[-1])
            if chars > _READ_CHARS:
                break
        end = first + len(shown) - 1
        go_on = [f"go on with from_line {end + 1}"] if end < last else []
        told = "; ".join([f"lines {first}-{end} of {len(lines)}", *filter(None, [source.about]), *go_on])
        return f"{said}: {told}\n{legible(numbered(shown, first))}"

    def search(self, given: Mapping[str, Any]) -> str:
        """Return the lines that contain a text or match a regular expression, and how much more there is."""
        pattern, glob = _pattern(given), _text(given, "glob").replace("**/", "*")
        ends, hits, total, unread, large = time.monotonic() + self.search_s, list[str](), 0, 0, 0
        paths, beyond = self._files(_text(given, "path"))
        named = {path: self._name(path) for path in paths}
        fitting = [path for path, name in named.items() if not glob or _fits(name, path.name, glob)]
        for path in fitting:
            name = named[path]
            if time.monotonic() > ends:
                unread += 1
                continue
            try:
                for number, line in enumerate(lines_of(self._source(path, name).text), 1):
                    left = max(0.001, ends - time.monotonic())
                    if found := pattern.search(line, timeout=left, concurrent=True):
                        total += 1
                        hit = f"{name}:{number}: {legible(_around(line, found.start()))}"
                        hits += [hit] if total <= _MOST_HITS else []
            except TimeoutError:
                unread += 1
            except RefusedCall as refused:
                large += refused.answer == "Too Long"
            except OSError:
                continue
        more = [f"… and {total - _MOST_HITS} more lines: narrow it by path or glob."] if total > _MOST_HITS else []
        slow = [f"It took too long: {unread} files were not searched to the end."] if unread else []
        long = [f"{large} files are too long for this tool: search them with `run`."] if large else []
        none = [] if hits else ["No line fits." if fitting else "No file fits."]
        return "\n".join([*hits, *none, *more, *slow, *long, *beyond])

    def write_file(self, given: Mapping[str, Any]) -> str:
        """Write a whole file, in the encoding and with the line ends of the file that it replaces."""
        said, content = given["path"], _content(given)
        path = self.place(said, writes=True)
        if len(content) > _MOST_WRITTEN_CHARS:
            raise RefusedCall("Too Long", path=said)
        if path.exists() and not path.is_file():
            raise RefusedCall("No File", path=said)
        source = self._source(path, said) if path.exists() else SourceText("")
        path.parent.mkdir(parents=True, exist_ok=True)
        _put(path, said, source, source.with_line_ends(content))
        return source.about and f"Written as {source.about}, as the file was."

    def edit_file(self, given: Mapping[str, Any]) -> str:
        """Replace a text that occurs once in a file, or all its occurrences if `all` is set."""
        said, old, new = given["path"], given["old"], given["new"]
        path = self.place(said, writes=True)
        source = self._source(path, said)
        wanted = LINE_END.pattern.join(map(re.escape, LINE_END.split(old)))
        found = list(re.finditer(wanted, source.text)) if old else []
        if not found:
            if MASK in old:
                raise RefusedCall("Masked", path=said, mask=MASK)
            raise RefusedCall("Not Found", near=nearest(source.text, old) or "…")
        if len(found) > 1 and given.get("all") is not True:
            places = ", ".join(str(line_at(source.text, one.start())) for one in found[:_MOST_PLACES])
            raise RefusedCall("Not Once", count=len(found), lines=places)
        parts, at = list[str](), 0
        for one in found:
            parts += [source.text[at : one.start()], source.with_line_ends(new)]
            at = one.end()
        _put(path, said, source, "".join([*parts, source.text[at:]]))
        return f"Replaced {len(found)} times." if len(found) > 1 else ""

    def place(self, said: str, *, writes: bool = False) -> Path:
        """Return the resolved path, which is in the tree; with `writes`, one that may be changed."""
        tree = self.tree.resolve()
        try:
            path = (tree / _local(said)).resolve()
        except (ValueError, RuntimeError):  # not a valid file name, or a circle of links
            path = tree.parent
        if not path.is_relative_to(tree) or ".git" in (part.lower() for part in path.relative_to(tree).parts):
            raise RefusedCall("Outside", path=said)
        if writes and self.is_bound(path.relative_to(tree).as_posix()):
            raise RefusedCall("Out Of Bounds", path=said)
        return path

    def _name(self, path: Path) -> str:
        return readable_name(str(path.relative_to(self.tree.resolve())))

    def _files(self, said: str) -> tuple[list[Path], list[str]]:
        """Return one file or those below a folder, up to `most_walked` and without links, and a line if more exist."""
        if not (start := self.place(said)).exists():
            raise RefusedCall("No Place", path=said)
        found = list(islice(_all_files(start), self.most_walked + 1))
        beyond = f"Only {self.most_walked:,} files were looked at: name a folder."
        return found[: self.most_walked], [beyond] if len(found) > self.most_walked else []

    def _source(self, path: Path, said: str) -> SourceText:
        if not path.is_file():
            raise RefusedCall("No File", path=said)
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise RefusedCall("Too Long", path=said)
        if (source := read_source(path.read_bytes())) is None:
            raise RefusedCall("No Text", path=said)
        return source


def _all_files(start: Path) -> Iterator[Path]:
    if start.is_file():
        yield start
    for folder, folders, names in walk(start):
        folders[:] = sorted(name for name in folders if name not in _NOT_LISTED)
        yield from (path for name in sorted(names) if not (path := start / folder / name).is_symlink())


def _fits(path: str, name: str, glob: str) -> bool:
    """Return whether a file fits a glob, whose brackets may also be meant as they stand: `app/[id]/*.js`."""
    return any(fnmatchcase(one, form) for one in (path, name) for form in (glob, glob.replace("[", "[[]")))


def _local(said: str) -> str:
    """Return a path relative to the tree if it is one of a program, which sees the tree as `WORK`."""
    return "." if said == WORK else said.removeprefix(f"{WORK}/")


def _put(path: Path, said: str, source: SourceText, text: str) -> None:
    if text.count(MASK) > source.text.count(MASK) and Redactor().finds(source.text):
        raise RefusedCall("Masked", path=said, mask=MASK)
    try:
        path.write_bytes(source.encoded(text))
    except UnicodeEncodeError as error:
        lost = text[error.start : error.start + 1]
        raise RefusedCall("Not In Encoding", path=said, encoding=source.encoding, character=lost) from None


def _pattern(given: Mapping[str, Any]) -> regex.Pattern[str]:
    text = given["text"]
    flags = regex.IGNORECASE if given.get("ignore_case") is True else 0
    if len(text) > _MOST_PATTERN_CHARS:
        raise RefusedCall("Bad Pattern", reason=f"it has more than {_MOST_PATTERN_CHARS} characters")
    try:
        return regex.compile(text if given.get("regex") is True else regex.escape(text), flags)
    except regex.error as error:
        raise RefusedCall("Bad Pattern", reason=str(error)) from None


def _around(line: str, at: int) -> str:
    begin = max(0, at - _HIT_CHARS // 2) if len(line) > _HIT_CHARS else 0
    return f"{'…' if begin else ''}{line[begin : begin + _HIT_CHARS]}"


def _content(given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the content of a file; a value that is sent as it stands for a JSON file is the text of that value."""
    content = given.get(CONTENT)
    is_value = isinstance(content, dict | list) and str(given.get("path")).endswith(".json")
    return f"{json.dumps(content, indent=2, ensure_ascii=False)}\n" if is_value else content


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    return value if isinstance(value, str) else ""


def _number(given: Mapping[str, Any], name: str, otherwise: int) -> int:
    value = given.get(name, otherwise)
    return value if isinstance(value, int) else otherwise


T = TypeVar("T")
_NEW_FILE = "\nnew file mode "

SKILL = "coding"
FINISH, BLOCKED, RUN = "finish", "blocked", "run"
CONTENT = "content"
READING = ("list_files", "read_file", "search")
DESCRIPTION = "description"
"""The argument of `finish` in a round: what the whole pull request does now."""
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
    """Carries out calls in one room; `limits` are those of a program that may run as long as a test command."""

    room: CodingRoom
    sandbox: Sandbox
    network: bool
    skills: Skills
    limits: Limits = _LONGEST

    def specs(self, *, is_round: bool = False) -> list[ToolSpec]:
        """Return the tools as the model sees them; `is_round`: the work already has a pull request."""
        words = {"run": {"seconds": self._seconds(None), "most": self._seconds(self.limits.wall_s)}}
        described = {one: self.skills.render(SKILL, "Descriptions", one, **words.get(one, {})) for one in _ARGUMENTS}
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

    def looking(self) -> list[ToolSpec]:
        """Return the tools that read files or run programs."""
        return [one for one in self.specs() if one.name in {*READING, RUN}]

    async def carry_out(self, call: ToolCall, tools: Sequence[ToolSpec] = ()) -> ToolAnswer:
        """Carry out a call of one of `tools`, which are all by default; a wrong call gives an error for the model."""
        if refused := self.unread(call, tools):
            return refused
        try:
            text = await self._carry_out(call)
        except RefusedCall as refusal:
            return self._refused(call, refusal)
        told = clean(text) or self.skills.subsection(SKILL, "Answers", "Nothing").strip()
        return ToolAnswer(call.id, call.name, told)

    def unread(self, call: ToolCall, tools: Sequence[ToolSpec] = ()) -> ToolAnswer | None:
        """Return what the model reads if a call cannot be read as one of `tools`; None if it can."""
        offered = {one.name: one.input_schema for one in tools or self.specs()}
        if call.name not in offered:
            name, names = one_line(call.name, _NAME_CHARS), ", ".join(offered)
            return self._refused(call, RefusedCall("No Tool", tool=name, names=names))
        needed = offered[call.name]["required"]
        field = next((name for name in needed if not _holds(call, name)), "")
        if not (call.malformed or field):
            return None
        takes = ", ".join(name if name in needed else f"{name} (optional)" for name in offered[call.name]["properties"])
        sent = one_line(", ".join(call.input), _SENT_CHARS)
        words = {"tool": call.name, "problem": call.malformed, "field": field, "sent": sent, "takes": takes}
        return self._refused(call, RefusedCall("Not Understood", **words))

    def _refused(self, call: ToolCall, refusal: RefusedCall) -> ToolAnswer:
        words = {name: str(value) for name, value in refusal.words.items()}
        told = self.skills.render(SKILL, "Answers", refusal.answer, **words)
        return ToolAnswer(call.id, call.name, clean(told), is_error=True)

    async def unseen(self, done: Iterable[tuple[ToolCall, ToolAnswer]], named: Sequence[str]) -> str:
        """Return the diff of changes that the model neither made itself nor saw as they are now; "" if none.

        A new file that a program left and the task does not name (`named`) is seen only once this has returned it.
        """
        written, seen, finished, commands = set[str](), list[str](), list[str](), list[str]()
        for call, answer in done:
            if call.name in {"write_file", "edit_file", "restore"} and not answer.is_error:
                written.add(normpath(_local(str(call.input["path"]))))
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
        apart = {"run": self._run, "diff": self._diff, "restore": self._restore, "history": self._history}
        try:
            if call.name in apart:
                return await apart[call.name](call)
            files = TreeFiles(self.room.tree, is_bound=self.room.is_bound)
            work = (files.list_files, files.read_file, files.search, files.write_file, files.edit_file)
            return await asyncio.to_thread({one.__name__: one for one in work}[call.name], call.input)
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
        out, err = (both_ends(one, _OUTPUT_CHARS) for one in (ran.stdout, ran.stderr))
        told = f"{ran.ended}, {ran.returncode}\n{out}\n{err}".strip()
        if ran.ended == "disk":
            await asyncio.to_thread(delete_tree, scratch)
            raise RefusedCall("Disk Full", output=told)
        if ran.ended == "timeout":
            raise RefusedCall("Run Timeout", output=told, seconds=seconds, most=self._seconds(self.limits.wall_s))
        if not ran.success:
            raise RefusedCall("Run Failed", output=told)
        return told

    def _seconds(self, asked: object) -> int:
        """Return for how many seconds a program may run if the call asks for `asked`."""
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
        return both_ends(_read(await worktree.blame(self.room.base, path, first, max(first, last))), _DIFF_CHARS)


def _holds(call: ToolCall, name: str) -> bool:
    """Return whether a call holds the text that it needs; what ends a job must say something."""
    value = _content(call.input) if name == CONTENT else call.input.get(name)
    return isinstance(value, str) and (call.name not in {FINISH, BLOCKED} or bool(value.strip()))


def _is_removed(path: str, commands: Iterable[str]) -> bool:
    """Return whether one of the shell commands removes or moves a file by its path or that of a folder above it."""
    parts = path.split("/")
    names = "|".join(re.escape("/".join(parts[:end])) for end in range(1, len(parts) + 1))
    named = re.compile(rf"[\s\"'/](?:{names})/?(?![\w./*?-])")
    calls = (_REMOVES.search(call) for command in commands for call in re.split(r"[;&|\n]", command))
    return any(named.search(call.string, call.end()) for call in calls if call)


def _path(call: ToolCall) -> str:
    """Return the path in a call for Git, relative to the root of the tree; "" means all of it. Git follows no link."""
    said = call.input.get("path", "")
    named = normpath(_local(said)) if isinstance(said, str) and said else "."
    if "\0" in named or named.startswith(("/", "..")):
        raise RefusedCall("Outside", path=said)
    return "" if named == "." else named


def _told_diff(files: Iterable[TreeChange], patch: str) -> str:
    """Return a diff file by file, in which a long part hides no other; parts in full are headed by `_whole`."""
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
    """Return the heading of a file that is shown in full; it is different for each content of the file."""
    return f"{change.path} ({change.blob[:_BLOB_CHARS] or 'deleted'})"


def _read(result: ApiResult[T]) -> T:
    if isinstance(result, Err):
        raise RefusedCall("Not Done", reason=result.error)
    return result.data
