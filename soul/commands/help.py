"""How `--help` is written: placeholders in capitals, choices as a list, ranges in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter
    from typer._click.formatting import HelpFormatter

_TYPE = re.compile(r" ?<(?:list\[)?([^<>\[\]]*)\]?>(?:\.\.\.)?")
_PLACEHOLDERS = {"path": "PATH", "str": "TEXT"}
_RANGE = re.compile(r"(-?[\d.]{1,30})<=x<=(-?[\d.]{1,30})")
_LEAST = re.compile(r"x>=(-?[\d.]{1,30})")


class ListedCommand(TyperCommand):
    """One command."""

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


def _write(parameters: list[Parameter], ctx: Context, formatter: HelpFormatter) -> None:
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        records = [one.get_help_record(ctx) for one in parameters if one.param_type_name == kind]
        rows = [(_named(record[0], kind), _in_words(record[1])) for record in records if record]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def _named(name: str, kind: str) -> str:
    """`name` with a placeholder, or the choices, instead of a type; the name of an argument is one already."""

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
