"""The commands and their options; each command's module is imported only when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from common.version import __version__

app = typer.Typer(
    name="soul",
    help="An autonomous social agent, a SOUL, that lives on Bluesky.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Home = Annotated[Path, typer.Option("--home", help="Where this SOUL lives (.env, SOUL.md, SELF.md, .memory).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
SocialOnly = Annotated[bool, typer.Option("--social-only", help="No code, no GitHub: only the social life.")]


@app.callback()
def root(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False
) -> None:
    """An autonomous social agent, a SOUL, that lives on Bluesky."""
    if version:
        typer.echo(f"soul {__version__}")
        raise typer.Exit


@app.command()
def init(*, home: Home = Path()) -> None:
    """Make a home: asks a few questions, writes .env, SOUL.md and SELF.md, never overwrites."""
    from soul.commands.init import run_init  # noqa: PLC0415 - only this command needs it

    run_init(home)


@app.command()
def doctor(*, home: Home = Path(), json: Json = False) -> None:
    """Check that this SOUL can live: services, credentials, clock, files. Exit code 1 if something is wrong."""
    from soul.commands.doctor import run_doctor  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_doctor(home, as_json=json) else 1)


@app.command()
def run(
    *,
    home: Home = Path(),
    social_only: SocialOnly = False,
    flush_all: Annotated[
        bool, typer.Option("--flush-all", help="Forget everything under .memory first, then live on.")
    ] = False,
) -> None:
    """Let the SOUL live until Ctrl-C."""
    from soul.commands.run import run_life  # noqa: PLC0415 - only this command needs it

    run_life(home, social_only=social_only, flush_all=flush_all)


@app.command()
def walk(*, home: Home = Path(), social_only: SocialOnly = False) -> None:
    """Do each thing once, in order, and end."""
    from soul.commands.walk import run_walk  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_walk(home, social_only=social_only) else 1)


@app.command()
def status(*, home: Home = Path(), json: Json = False) -> None:
    """What the SOUL is doing now, also while it runs elsewhere."""
    from soul.commands.status import run_status  # noqa: PLC0415 - only this command needs it

    run_status(home, as_json=json)


@app.command()
def demo(
    *,
    minutes: Annotated[float, typer.Option(help="End by itself after so many minutes; 0 runs until Ctrl-C.")] = 0,
    speed: Annotated[float, typer.Option(help="How many times faster than life.", min=1, max=1000)] = 120,
    port: Annotated[int, typer.Option(help="Port of the page; 0 takes a free one.", min=0, max=65535)] = 7070,
    mind: Annotated[str, typer.Option(help="scripted, or gateway: the model of the .env.")] = "scripted",
    home: Home = Path(),
) -> None:
    """Three SOULs in a small town on this machine, with a page to watch them."""
    from soul.commands.demo import run_demo  # noqa: PLC0415 - only this command needs it

    run_demo(minutes=minutes, speed=speed, port=port, mind=mind, home=home)
