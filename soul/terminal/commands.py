"""What the owner can type with a slash: answered by the program itself, at once and without the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from common.errors import SoulError

Handler = Callable[[str], Awaitable[Sequence[str]]]
"""Gets what was typed after the name; answers with lines to show."""

OTHERWISE = "Anything else is said to the SOUL."


@dataclass(frozen=True, slots=True)
class Command:
    """One of them: `usage` is its name and what follows it, for example `reject ID [reason]`.

    `begins` is said at once where the answer takes a while; what is typed meanwhile does not wait for it.
    """

    usage: str
    help: str
    run: Handler
    begins: str = ""

    @property
    def name(self) -> str:
        return self.usage.partition(" ")[0]


class Commands:
    """All that can be typed; `/help` lists them, and says in `otherwise` what becomes of any other line."""

    def __init__(self, commands: Iterable[Command], *, otherwise: str = OTHERWISE) -> None:
        self._otherwise = otherwise
        own = Command("help", "this list", self._help)
        self._commands = {command.name: command for command in (own, *commands)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all commands, without the slash."""
        return tuple(self._commands)

    def begins(self, line: str) -> str:
        """What is said at once of a `line` whose answer takes a while; "" for any other."""
        command = self._commands.get(line.removeprefix("/").partition(" ")[0].lower())
        return command.begins if command else ""

    async def answer(self, line: str) -> Sequence[str]:
        """Do what `line` (it begins with a slash) asks. Raises `SoulError` when that cannot be done."""
        name, _, rest = line.removeprefix("/").partition(" ")
        command = self._commands.get(name.lower())
        if command is None:
            raise SoulError(f"There is no /{name}", remedy="/help lists what there is.")
        return await command.run(rest.strip())

    async def _help(self, _: str) -> Sequence[str]:
        width = max(len(command.usage) for command in self._commands.values())
        listed = [f"  /{command.usage:<{width}}  {command.help}" for command in self._commands.values()]
        return [*listed, f"  {self._otherwise}"]
