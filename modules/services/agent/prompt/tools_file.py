"""TOOLS.md: the names of all that a SOUL can do; written anew only when the tools themselves are others.

What a tool does is told where it is offered, in its definition.

The first line of the file names the tool set that it was made for, so nothing else must be remembered: after a crash,
or a hand that took it away, it is simply made again. What a hand adds stays until the tools change.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol

from modules.runtime.llm.types import ToolSpec
from modules.services.agent.prompt.estimate import tool_tokens
from modules.services.agent.prompt.rows import TOOLS
from modules.services.agent.tools.types import Tool
from modules.services.skills.skills import Skills
from modules.services.skills.tool_schema import simple_schema

_MARK = re.compile(r"<!-- tools: ([0-9a-f]{64}), defined in (\d+) characters -->\n*")


class Files(Protocol):
    """Where the workspace's files lie."""

    async def read(self, name: str) -> str | None:
        """The text of a file, or None."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Replace it."""
        ...


class ToolsFile:
    """Keeps TOOLS.md in step with `tools`, which do not change while a process lives."""

    def __init__(self, files: Files, tools: Iterable[Tool], skills: Skills) -> None:
        self._files = files
        self._tools = tuple(tools)
        self._skills = skills

    @cached_property
    def _made(self) -> tuple[str, str, str]:
        """The text, the name of the tool set, and the first line of the file. Made when first asked for."""
        specs = [
            ToolSpec(tool.name, tool.description, simple_schema(tool.input_model, tool.fields)) for tool in self._tools
        ]
        body = tools_text(self._tools, self._skills)
        sha256 = _sha256(self._tools, specs, body)
        return body, sha256, f"<!-- tools: {sha256}, defined in {tool_tokens(specs, len)} characters -->"

    async def text(self) -> str:
        """What the model reads: the file without its first line, made if it is of other tools or not there."""
        body, sha256, first_line = self._made
        found = await self._files.read(TOOLS) or ""
        mark = _MARK.match(found)
        if mark and mark[1] == sha256:
            return found[mark.end() :]
        await self._files.write(TOOLS, f"{first_line}\n\n{body}\n")
        return body


def parse_tools_file(text: str) -> tuple[str, int]:
    """What the model reads of a TOOLS.md, and how many characters define all its tools; 0 if it does not say."""
    mark = _MARK.match(text)
    return (text[mark.end() :], int(mark[2])) if mark else (text, 0)


def tools_text(tools: Iterable[Tool], skills: Skills) -> str:
    """The names of the tools."""
    names = ", ".join(f"`{tool.name}`" for tool in tools)
    return skills.render("workspace", "Tools", tools=names).strip() if names else ""


def _sha256(tools: Sequence[Tool], specs: Sequence[ToolSpec], body: str) -> str:
    told = [
        (tool.name, tool.description, spec.input_schema, tool.capability, tool.needs.name, tool.effect)
        for tool, spec in zip(tools, specs, strict=True)
    ]
    return hashlib.sha256(json.dumps([told, body], sort_keys=True).encode()).hexdigest()
