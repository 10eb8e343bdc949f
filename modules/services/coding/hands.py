"""The tools of a coding task: files of its tree, and programs in the sandbox. Nothing outside of the tree is reached.

A path is judged where it really leads. Nothing else runs in the tree meanwhile: what a program started ended with it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from common.errors import PolicyBlocked
from common.text.untrusted import clean, legible
from common.trees import readable_name, walk
from modules.runtime.llm.types import ToolAnswer, ToolCall, ToolSpec
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.sandbox.types import Limits
from modules.services.coding.suites import in_tree
from modules.services.skills.skills import Skills

SKILL = "coding"
FINISH, BLOCKED = "finish", "blocked"
ALREADY_THERE = "already_there"
"""The argument of `finish` that says that nothing had to be changed."""

_RUN_LIMITS = Limits(wall_s=120.0)
_READ_CHARS, _OUTPUT_CHARS = 12_000, 6_000
_MOST_FILE_BYTES, _MOST_WRITTEN_CHARS = 1_000_000, 200_000
_MOST_FILES, _MOST_WALKED, _MOST_HITS, _HIT_CHARS = 300, 20_000, 60, 200
_LINE_END = re.compile(r"(?:\r\n?|\n)")
_BEGINNING_BYTES = 65_536
_NOT_LISTED = frozenset({".git", "node_modules", ".venv", "__pycache__", "target", ".pytest_cache"})
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer", "minimum": 1}
_ARGUMENTS: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "list_files": ({"path": _TEXT}, ()),
    "read_file": ({"path": _TEXT, "from_line": _NUMBER}, ("path",)),
    "search": ({"text": _TEXT, "path": _TEXT}, ("text",)),
    "write_file": ({"path": _TEXT, "content": _TEXT}, ("path", "content")),
    "edit_file": ({"path": _TEXT, "old": _TEXT, "new": _TEXT}, ("path", "old", "new")),
    "run": ({"command": _TEXT}, ("command",)),
    FINISH: ({"summary": _TEXT, ALREADY_THERE: {"type": "boolean"}}, ("summary",)),
    BLOCKED: ({"reason": _TEXT}, ("reason",)),
}


class _RefusedCall(Exception):
    """The model is told so: by the subsection of `Answers`, with these words in it."""

    def __init__(self, answer: str, **words: object) -> None:
        super().__init__(answer)
        self.answer = answer
        self.words = words


def tool_specs(skills: Skills) -> list[ToolSpec]:
    """Return the tools as the model sees them."""
    return [
        ToolSpec(
            name,
            skills.subsection(SKILL, "Descriptions", name),
            {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False},
        )
        for name, (properties, required) in _ARGUMENTS.items()
    ]


@dataclass(frozen=True, slots=True)
class Hands:
    """Carries out calls in one tree."""

    tree: Path
    sandbox: Sandbox
    network: bool
    skills: Skills

    async def carry_out(self, call: ToolCall) -> ToolAnswer:
        """Return what came of a call; what it asks for wrongly is an error that the model reads."""
        try:
            text = await self._carry_out(call)
        except _RefusedCall as refused:
            words = {name: str(value) for name, value in refused.words.items()}
            told = self.skills.render(SKILL, "Answers", refused.answer, **words)
            return ToolAnswer(call.id, call.name, told.strip(), is_error=True)
        return ToolAnswer(
            call.id, call.name, clean(text) or self.skills.subsection(SKILL, "Answers", "Nothing").strip()
        )

    async def _carry_out(self, call: ToolCall) -> str:
        if call.malformed or call.name not in _ARGUMENTS:
            raise _RefusedCall("Not Understood", reason=call.malformed or call.name)
        if wrong := next((name for name in _ARGUMENTS[call.name][1] if not isinstance(call.input.get(name), str)), ""):
            raise _RefusedCall("Not Understood", reason=wrong)
        if call.name == "run":
            return await self._run(call.input["command"])
        work: dict[str, Callable[[ToolCall], str]] = {
            "list_files": self._list,
            "read_file": self._read,
            "search": self._search,
            "write_file": self._write,
            "edit_file": self._edit,
        }
        try:
            return await asyncio.to_thread(work[call.name], call)
        except OSError as error:
            raise _RefusedCall("Not Done", reason=error.strerror or "") from None

    async def _run(self, command: str) -> str:
        try:
            ran = await self.sandbox.run(
                in_tree(command), self.tree, network=self.network, limits=_RUN_LIMITS, env={"CI": "true"}
            )
        except PolicyBlocked as refused:
            raise _RefusedCall("Not Done", reason=str(refused)) from None
        told = f"{ran.ended}, {ran.returncode}\n{shortened(ran.stdout)}\n{shortened(ran.stderr)}".strip()
        if not ran.success:
            raise _RefusedCall("Run Failed", output=clean(told))
        return told

    def _list(self, call: ToolCall) -> str:
        found = [self._name(path) for path in self._files(_text(call, "path"))]
        return "\n".join([*sorted(found)[:_MOST_FILES], *(["…"] if len(found) > _MOST_FILES else [])])

    def _read(self, call: ToolCall) -> str:
        lines = self._text_of(self._place(call.input["path"]), call.input["path"]).split("\n")
        first = call.input.get("from_line", 1)
        number = max(1, first) if isinstance(first, int) else 1
        shown = legible("\n".join(lines[number - 1 :]))
        text = f"{call.input['path']}:{number}\n{shown}"
        return text if len(text) <= _READ_CHARS else f"{text[:_READ_CHARS]}\n…"

    def _search(self, call: ToolCall) -> str:
        wanted, hits = call.input["text"], list[str]()
        for path in self._files(_text(call, "path")):
            try:
                text = self._text_of(path, path.name)
            except (_RefusedCall, OSError):
                continue
            name = self._name(path)
            hits += [
                f"{name}:{number}: {legible(line[:_HIT_CHARS])}"
                for number, line in enumerate(text.split("\n"), 1)
                if wanted in line
            ]
            if len(hits) >= _MOST_HITS:
                break
        return "\n".join(hits[:_MOST_HITS])

    def _write(self, call: ToolCall) -> str:
        path, content = self._place(call.input["path"]), call.input["content"]
        if len(content) > _MOST_WRITTEN_CHARS:
            raise _RefusedCall("Too Long", path=call.input["path"])
        if path.exists() and not path.is_file():
            raise _RefusedCall("No File", path=call.input["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_with_ends_of(path, content), "utf-8")
        return ""

    def _edit(self, call: ToolCall) -> str:
        path, old, new = self._place(call.input["path"]), call.input["old"], call.input["new"]
        text = self._text_of(path, call.input["path"])
        wanted = _LINE_END.pattern.join(map(re.escape, _LINE_END.split(old)))
        found = list(re.finditer(wanted, text)) if old else []
        if len(found) != 1:
            raise _RefusedCall("Not Once", count=len(found))
        begin, end = found[0].span()
        path.write_text(f"{text[:begin]}{_with_ends_of(path, new)}{text[end:]}", "utf-8")
        return ""

    def _place(self, said: str) -> Path:
        """Where a path leads, if that is in the tree."""
        tree = self.tree.resolve()
        try:
            path = (tree / said).resolve()
        except (ValueError, RuntimeError):  # no name of a file, or links in a circle
            path = tree.parent
        if not path.is_relative_to(tree) or ".git" in (part.lower() for part in path.relative_to(tree).parts):
            raise _RefusedCall("Outside", path=said)
        return path

    def _files(self, said: str) -> Iterator[Path]:
        """The files below a folder, as many as are worth looking at, links left out."""
        return islice(self._all_files(self._place(said)), _MOST_WALKED)

    def _all_files(self, top: Path) -> Iterator[Path]:
        for folder, folders, names in walk(top):
            folders[:] = sorted(name for name in folders if name not in _NOT_LISTED)
            yield from (path for name in sorted(names) if not (path := top / folder / name).is_symlink())

    def _name(self, path: Path) -> str:
        """The path of a file from the tree, as the model reads it."""
        return readable_name(str(path.relative_to(self.tree.resolve())))

    def _text_of(self, path: Path, said: str) -> str:
        if not path.is_file():
            raise _RefusedCall("No File", path=said)
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise _RefusedCall("Too Long", path=said)
        try:
            return path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise _RefusedCall("No Text", path=said) from None


def shortened(output: str) -> str:
    """Return the beginning and the end of what a program wrote."""
    half = _OUTPUT_CHARS // 2
    return output if len(output) <= _OUTPUT_CHARS else f"{output[:half]}\n…\n{output[-half:]}"


def _with_ends_of(path: Path, text: str) -> str:
    """Return a text with the line ends of the file for which it is: the model is not shown that they are CR LF."""
    beginning = b""
    if path.is_file():
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING_BYTES)
    is_crlf = 2 * beginning.count(b"\r\n") > beginning.count(b"\n")
    return "\r\n".join(_LINE_END.split(text)) if is_crlf else text


def _text(call: ToolCall, name: str) -> str:
    value = call.input.get(name, "")
    return value if isinstance(value, str) else ""
