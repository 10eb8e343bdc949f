"""The command line: makes commands of the rows of the command table, and formats their `--help`.

The module of a command is imported only when the command is called or its help is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from inspect import Parameter as Argument
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from common.version import __version__
from soul.command_table import COMMANDS, Row
from soul.commands.options import USUAL, Home, SocialOnly
from soul.terminal.output import write_lines

if TYPE_CHECKING:
    from typer._click.core import Command, Context, Parameter
    from typer._click.formatting import HelpFormatter
    from typer.exceptions import TyperException
import gc
from collections.abc import Iterator
from contextlib import contextmanager

_TYPE = re.compile(r" ?<(?:list\[)?([^<>\[\]]*)\]?>(?:\.\.\.)?")
_PLACEHOLDERS = {"path": "PATH", "str": "TEXT"}
_RANGE = re.compile(r"(-?[\d.]{1,30})<=x<=(-?[\d.]{1,30})")
_NUMBERS = {int: "a whole number", float: "a number"}
_NEGATIVE = re.compile(r"-[0-9].{0,99}")
_LEAST = re.compile(r"x>=(-?[\d.]{1,30})")


def commands_of(rows: Iterable[Row]) -> dict[str, Command]:
    """Return the commands of these rows by name, without importing their modules."""
    return {
        row.name: Group(name=row.name, help=row.help, commands=commands_of(row.commands), rich_markup_mode=None)
        if row.commands
        else ListedCommand(row)
        for row in rows
        if row.function or row.commands
    }


class ListedCommand(TyperCommand):
    """A command whose module is imported when its parameters are needed."""

    def __init__(self, row: Row) -> None:
        super().__init__(row.name, help=row.help, rich_markup_mode=None)
        self._row = row

    def get_params(self, ctx: Context) -> list[Parameter]:
        if self.callback is None:
            module, _, name = self._row.function.partition(":")
            with loading():
                function = getattr(import_module(f"soul.{module}"), name)
            info = CommandInfo(self.name, callback=_taking(function, self._row.given))
            loaded = get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None)
            self.params, self.callback = loaded.params, loaded.callback
        return super().get_params(ctx)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        ctx.ignore_unknown_options = any(map(_NEGATIVE.fullmatch, args))  # a negative number is a value, not an option
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        _write(self.get_params(ctx), ctx, formatter)


class Group(TyperGroup):
    """Commands under one name."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        _write(self.get_params(ctx), ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_line(command.help)) for name, command in self.commands.items()])


def told(error: TyperException) -> str:
    """Return what is wrong with the arguments of a command; for a number, what it must be."""
    param = getattr(error, "param", None)
    kind = _NUMBERS.get(param.type_descriptor.annotation) if param else None
    if param is None or kind is None or error.__cause__ is None:
        return error.format_message().replace("Value error, ", "")
    name, least, most = param.get_error_hint().replace("'", ""), param.min, param.max
    bounds = f" from {least} to {most}" if most is not None else f" of at least {least}" if least is not None else ""
    return f"{name} must be {kind}{bounds}"


def _taking(function: Callable[..., object], given: Mapping[str, object]) -> Callable[..., None]:
    """Return `function` with only the parameters that an owner can type; its result becomes the exit code."""

    def call(**arguments: object) -> None:
        code = function(**given, **arguments)
        if code is not None:
            raise typer.Exit(int(not code) if isinstance(code, bool) else cast("int", code))

    taken: list[tuple[int, Argument]] = []
    usual = list(USUAL)
    for one in signature(function, eval_str=True).parameters.values():
        annotation, default = USUAL.get(one.name, (None, one.default))
        if get_origin(one.annotation) is Annotated:
            taken.append((-1, one.replace(default=default)))
        elif annotation:
            taken.append((usual.index(one.name), one.replace(annotation=annotation, default=default)))
    shown = [one.replace(kind=Argument.KEYWORD_ONLY) for _, one in sorted(taken, key=lambda pair: pair[0])]
    call.__signature__ = Signature(shown)  # type: ignore[attr-defined] # what `inspect` reads first
    call.__annotations__ = {one.name: one.annotation for one in shown}
    return call


def _write(parameters: list[Parameter], ctx: Context, formatter: HelpFormatter) -> None:
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        records = [one.get_help_record(ctx) for one in parameters if one.param_type_name == kind]
        rows = [(_named(record[0], kind), _in_words(record[1])) for record in records if record]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def _named(name: str, kind: str) -> str:
    """Return `name` with a placeholder or the choices in place of a type; an argument's name is its placeholder."""

    def placeholder(match: re.Match[str]) -> str:
        found = match[1]
        if "|" in found:
            return f" {found}"
        return "" if kind == "argument" else f" {_PLACEHOLDERS.get(found, 'NUMBER')}"

    return _TYPE.sub(placeholder, name)


def _in_words(text: str) -> str:
    return _LEAST.sub(r"at least \1", _RANGE.sub(r"\1 to \2", text))


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


@contextmanager
def loading() -> Iterator[None]:
    """Disable garbage collection while modules are imported: they stay as long as the process, so it finds little.

    Objects that exist at the end are never scanned again. A collector that was off before stays off.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


class Program(Group):
    """The command `soul` itself, with all its subcommands."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - as Typer gives them
        super().__init__(**attributes | {"commands": commands_of(COMMANDS)})


app = typer.Typer(
    name="soul",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def root(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False
) -> None:
    """Run a SOUL, an autonomous agent on Bluesky, on GitHub and in a chatroom, and look after it.

    Every command works while the SOUL runs, except init, run, up, walk, restore, move, upgrade and bluesky-reset.
    """
    if version:
        write_lines(f"soul {__version__}")
        raise typer.Exit


def run(
    root: Home = Path(),
    *,
    social_only: SocialOnly = False,
    flush_all: Annotated[
        bool, typer.Option("--flush-all", help="First delete all under .memory: memories, history and copies.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Permanently stop the other copy of this home, and run this one.")
    ] = False,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="First upgrade a home of an earlier version, as `soul upgrade` does.")
    ] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Also serve the dashboard.")] = False,
) -> int:
    """Run the SOUL and, with `dashboard`, serve its page; return the exit code."""
    with loading():
        from soul.commands.run import run_life  # noqa: PLC0415 - only this command needs it

    if upgrade:
        from soul.commands.backup import is_earlier, run_upgrade  # noqa: PLC0415 - only this option needs it

        if is_earlier(root):
            run_upgrade(root)

    page = None
    if dashboard:
        from soul.dashboard.serving import serving_dashboard  # noqa: PLC0415 - only this option needs it

        page = serving_dashboard
    return run_life(root, social_only=social_only, flush_all=flush_all, take_over=take_over, page=page)


def help_(command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="The command.")] = None) -> int:
    """Show all commands, or the arguments and options of one; return the exit code."""
    return int(app([*(command or ()), "--help"], prog_name="soul", standalone_mode=False) or 0)
