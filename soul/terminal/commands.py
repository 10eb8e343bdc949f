"""Slash commands: the program itself answers them, at once and without the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from common.errors import SoulError
from soul.command_table import Row


@dataclass(kw_only=True)
class Commands:
    """Answers the commands `rows`, by name; a subclass has a method `run_NAME` for each: words in, lines to show out.

    `otherwise` says in `/help` what happens to any other line.
    """

    rows: Mapping[str, Row]
    otherwise: str = "Anything else is said to the SOUL."

    def begins(self, line: str) -> str:
        """Return what to say at once to a `line` whose answer takes a while; "" for any other."""
        row = self.rows.get(first_word(line.removeprefix("/"))[0].lower())
        return row.begins if row else ""

    async def answer(self, line: str) -> Sequence[str]:
        """Carry out `line`, which begins with a slash; return the lines to show. Raises `SoulError` on failure."""
        name, rest = first_word(line.removeprefix("/"))
        if (row := self.rows.get(name.lower())) is None:
            raise SoulError(f"There is no /{name}", remedy="/help lists what there is.")
        if row.needs_words and not rest.strip():
            raise SoulError(f"/{row.name} is not complete", remedy=f"Write it as /{row.usage}")
        handler: Callable[[str], Awaitable[Sequence[str]]] = getattr(self, f"run_{row.name}")
        return await handler(rest.strip())

    async def obey(self, line: str) -> tuple[Sequence[str], str, str]:
        """Carry out `line`; return the lines to show, or what went wrong and its remedy."""
        try:
            return await self.answer(line), "", ""
        except SoulError as error:
            return (), str(error), error.remedy
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            return (), f"{line} failed because of a fault in the program ({fault})", "`soul logs` shows more."

    async def run_help(self, _: str) -> Sequence[str]:
        width = max(len(row.usage) for row in self.rows.values())
        listed = [f"  /{row.usage:<{width}}  {row.help.partition('. ')[0].rstrip('.')}" for row in self.rows.values()]
        return [*listed, f"  {self.otherwise}"]


def first_word(line: str) -> tuple[str, str]:
    """Return the first word of a line, which any white space ends (on a phone, a line break), and all behind it."""
    first, *rest = line.split(None, 1) or [""]
    return first, rest[0] if rest else ""
