"""Knows every tool, and which of them exist in a given turn."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from modules.runtime.llm.types import ToolSpec
from modules.services.agent.tools.policy import allowed, hidden_fields
from modules.services.agent.tools.types import Tool, Turn
from modules.services.skills.tool_schema import simple_schema


class Registry:
    """The tools of one life.

    Args:
        tools: all of them, in the order in which the model sees them.
        social_only: whether this life has only `social` and `self` tools.

    Raises:
        ValueError: two tools have the same name.
        SkillError: a skill describes a field that a tool does not take.

    """

    def __init__(self, tools: Sequence[Tool], *, social_only: bool) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise ValueError("two tools have the same name")
        self._social_only = social_only
        self._specs = {(tool.name, frozenset[str]()): _spec(tool) for tool in tools}

    def available(self, turn: Turn, only: Collection[str] | None = None) -> list[Tool]:
        """The tools that exist in `turn`; `only` narrows them further by name."""
        return [
            tool
            for tool in self._tools.values()
            if allowed(tool, turn, social_only=self._social_only) and (only is None or tool.name in only)
        ]

    def specs(self, turn: Turn, only: Collection[str] | None = None) -> list[ToolSpec]:
        """Return the tools of a turn as the model sees them."""
        return [self._shown(tool, hidden_fields(tool, turn)) for tool in self.available(turn, only)]

    def _shown(self, tool: Tool, hidden: frozenset[str]) -> ToolSpec:
        """The tool without the `hidden` fields; the same one each time."""
        key = tool.name, hidden
        if key not in self._specs:
            self._specs[key] = _spec(tool, hidden)
        return self._specs[key]

    def __iter__(self) -> Iterator[Tool]:
        """All tools, whether or not any turn may use them."""
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """The tool of that name, whether or not any turn may use it."""
        return self._tools.get(name)


def _spec(tool: Tool, hidden: Collection[str] = ()) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, simple_schema(tool.input_model, tool.fields, without=hidden))
