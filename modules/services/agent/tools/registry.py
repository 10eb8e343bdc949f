"""Knows every tool, and which of them exist in a given turn."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from modules.runtime.llm.types import Message, ToolCall, ToolSpec
from modules.services.agent.tools.policy import allowed, hidden_fields
from modules.services.agent.tools.types import Tool, Turn
from modules.services.skills.tool_schema import simple_schema

MORE_TOOLS = "more_tools"
"""The tool that opens the family that its field `family` names."""


class Registry:
    """The tools of one life.

    Args:
        tools: all of them, in the order in which the model sees them.
        social_only: whether this life has only `social` and `self` tools.
        families: what each family does, in one line, by its name; it stands in the description of `MORE_TOOLS`.

    Raises:
        ValueError: two tools have the same name.
        SkillError: a skill describes a field that a tool does not take.

    """

    def __init__(self, tools: Sequence[Tool], *, social_only: bool, families: Mapping[str, str] = {}) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise ValueError("two tools have the same name")
        self._social_only = social_only
        self._families = families
        self._specs = {(tool.name, tool.description, frozenset[str]()): _spec(tool) for tool in tools}

    def available(self, turn: Turn, only: Collection[str] | None = None) -> list[Tool]:
        """The tools that exist in `turn`; `only` narrows them further by name."""
        return [
            tool
            for tool in self._tools.values()
            if allowed(tool, turn, social_only=self._social_only) and (only is None or tool.name in only)
        ]

    def specs(
        self, turn: Turn, only: Collection[str] | None = None, opened_by: Sequence[Message] | None = None
    ) -> list[ToolSpec]:
        """Return the tools of a turn as the model sees them.

        With `opened_by`, the conversation so far, tools of a family are left out until a call in it asks for the family
        or for one of its tools; those of the family opened last stand last. Tools named by `only` are never left out.
        """
        tools = self.available(turn, only)
        if opened_by is not None and only is None:
            usable = {tool.family for tool in tools}
            shown = [tool for family in ("", *self._opened(opened_by)) for tool in tools if tool.family == family]
            tools = [self._listing(tool, usable) if tool.name == MORE_TOOLS else tool for tool in shown]
        return [self._shown(tool, hidden_fields(tool, turn)) for tool in tools]

    def _listing(self, tool: Tool, usable: Collection[str]) -> Tool:
        """Return the tool that opens families, described with those that have a tool in the turn."""
        lines = (f"{family}: {does}" for family, does in self._families.items() if family in usable)
        return replace(tool, description="\n".join((tool.description, *lines)))

    def _opened(self, conversation: Sequence[Message]) -> list[str]:
        """Return the families that the calls in a conversation opened, in that order."""
        said = (block for message in conversation if not isinstance(message.content, str) for block in message.content)
        calls = [block for block in said if isinstance(block, ToolCall)]
        asked = (
            str(call.input.get("family", "")).strip() if call.name == MORE_TOOLS else self._family(call.name)
            for call in calls
        )
        return [family for family in dict.fromkeys(asked) if family]

    def _family(self, name: str) -> str:
        tool = self._tools.get(name)
        return tool.family if tool else ""

    def _shown(self, tool: Tool, hidden: frozenset[str]) -> ToolSpec:
        """The tool without the `hidden` fields; the same one each time."""
        key = tool.name, tool.description, hidden
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
