"""The command `soul`. Exit codes: 0 done, 1 something is wrong and the owner must act, 2 wrong usage, 130 interrupted.

Each command is imported when it is called, so that `soul --version` stays quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from common.version import __version__

if TYPE_CHECKING:
    import typer

OK, FATAL, USAGE, INTERRUPTED = 0, 1, 2, 130


def main() -> None:
    """Entry point."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"soul {__version__}\n")
        return
    from common.errors import SoulError  # noqa: PLC0415

    try:
        build()()
    except SoulError as error:
        sys.stderr.write(f"✗ {error}\n")
        if error.remedy:
            sys.stderr.write(f"  → {error.remedy}\n")
        sys.exit(FATAL)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def build() -> typer.Typer:
    """All commands."""
    import typer  # noqa: PLC0415

    app = typer.Typer(
        name="soul",
        help="An autonomous social agent, a SOUL, that lives on Bluesky.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    home_option = typer.Option("--home", help="Where this SOUL lives (.env, SOUL.md, SELF.md, .memory).")
    json_option = typer.Option("--json", help="Print JSON for programs.")
    social_option = typer.Option("--social-only", help="No code, no GitHub: only the social life.")

    @app.callback()
    def root(
        *, version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False
    ) -> None:
        if version:
            typer.echo(f"soul {__version__}")
            raise typer.Exit(OK)

    @app.command()
    def init(*, home: Annotated[Path, home_option] = Path()) -> None:
        """Make a home: asks a few questions, writes .env, SOUL.md and SELF.md, never overwrites."""
        from soul.commands.init import run_init  # noqa: PLC0415

        run_init(home)

    @app.command()
    def doctor(*, home: Annotated[Path, home_option] = Path(), json: Annotated[bool, json_option] = False) -> None:
        """Check that this SOUL can live: services, credentials, clock, files. Exit code 1 if something is wrong."""
        from soul.commands.doctor import run_doctor  # noqa: PLC0415

        raise typer.Exit(OK if run_doctor(home, as_json=json) else FATAL)

    @app.command()
    def run(
        *,
        home: Annotated[Path, home_option] = Path(),
        social_only: Annotated[bool, social_option] = False,
        flush_all: Annotated[
            bool, typer.Option("--flush-all", help="Forget everything under .memory first, then live on.")
        ] = False,
    ) -> None:
        """Let the SOUL live until Ctrl-C."""
        from soul.commands.run import run_life  # noqa: PLC0415

        run_life(home, social_only=social_only, flush_all=flush_all)

    @app.command()
    def walk(
        *, home: Annotated[Path, home_option] = Path(), social_only: Annotated[bool, social_option] = False
    ) -> None:
        """Do each thing once, in order, and end."""
        from soul.commands.walk import run_walk  # noqa: PLC0415

        raise typer.Exit(OK if run_walk(home, social_only=social_only) else FATAL)

    @app.command()
    def status(*, home: Annotated[Path, home_option] = Path(), json: Annotated[bool, json_option] = False) -> None:
        """What the SOUL is doing now, also while it runs elsewhere."""
        from soul.commands.status import run_status  # noqa: PLC0415

        run_status(home, as_json=json)

    @app.command()
    def demo(
        *,
        minutes: Annotated[float, typer.Option(help="End by itself after so many minutes; 0 runs until Ctrl-C.")] = 0,
        speed: Annotated[float, typer.Option(help="How many times faster than life.", min=1, max=1000)] = 120,
        port: Annotated[int, typer.Option(help="Port of the page; 0 takes a free one.", min=0, max=65535)] = 7070,
        mind: Annotated[str, typer.Option(help="scripted, or gateway: the model of the .env.")] = "scripted",
        home: Annotated[Path, home_option] = Path(),
    ) -> None:
        """Three SOULs in a small town on this machine, with a page to watch them."""
        from soul.commands.demo import run_demo  # noqa: PLC0415

        run_demo(minutes=minutes, speed=speed, port=port, mind=mind, home=home)

    return app


if __name__ == "__main__":
    main()
