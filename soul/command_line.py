"""The commands and their options; each command's module is imported only when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Annotated

import typer

from common.version import __version__
from soul.commands import options
from soul.commands.help import Group, ListedCommand
from soul.commands.options import DemoMind, DraftAction, Home, Json, PromptAudience, SocialOnly, TalkAction, Who
from soul.daily_commands import daily
from soul.keeping_commands import config, service
from soul.loading import loading
from soul.memory_commands import remembered
from soul.self_commands import own
from soul.terminal.output import write_lines

app = typer.Typer(
    name="soul",
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(config, name="config")
app.add_typer(service, name="service")
app.add_typer(own, name="self")
app.add_typer(remembered, name="memory")


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """Return what reads `arguments`: of all commands only the one that they name, for to build all takes a while.

    The whole app where they name none.
    """
    name = next(iter(arguments), "")
    commands = [one for one in app.registered_commands if name == (one.name or getattr(one.callback, "__name__", ""))]
    groups = [one for one in app.registered_groups if name == one.name]
    if not commands and not groups:
        return app
    narrow = copy(app)
    narrow.registered_commands, narrow.registered_groups = commands, groups
    return narrow


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


@app.command(cls=ListedCommand)
def init(*, home: Home = Path()) -> None:
    """Set up a home: ask for the settings, test each answer, and write .env, SOUL.md and SELF.md. Overwrite nothing."""
    from soul.commands.init import run_init  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_init(home) else 1)


@app.command(cls=ListedCommand)
def doctor(
    *,
    home: Home = Path(),
    security: Annotated[bool, typer.Option("--security", help="Check for unsafe settings; needs no network.")] = False,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Also ask the model; a local one gets a prompt of about 13,000 tokens."),
    ] = False,
    json: Json = False,
) -> None:
    """Check settings, services, credentials, clock and files. Costs no tokens. Exits with 1 if something is wrong."""
    if security:
        from soul.commands.doctor_security import run_security  # noqa: PLC0415 - only this option needs it

        raise typer.Exit(0 if run_security(home, as_json=json) else 1)
    from soul.commands.doctor import run_doctor  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_doctor(home, as_json=json, measure=measure) else 1)


@app.command(cls=ListedCommand)
def run(
    *,
    home: Home = Path(),
    social_only: SocialOnly = False,
    flush_all: Annotated[
        bool,
        typer.Option("--flush-all", help="First delete all under .memory: memories, history and copies."),
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Stop the other copy of this home for good, and run this one.")
    ] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Also serve the dashboard.")] = False,
) -> None:
    """Run the SOUL until Ctrl-C."""
    with loading():
        from soul.commands.run import run_life  # noqa: PLC0415 - only this command needs it

    page = None
    if dashboard:
        from soul.dashboard.serving import serving_dashboard  # noqa: PLC0415 - only this option needs it

        page = serving_dashboard
    run_life(home, social_only=social_only, flush_all=flush_all, take_over=take_over, page=page)


@app.command(cls=ListedCommand)
def up(
    homes: Annotated[list[Path], typer.Argument(metavar="DIR", help="The folder of a SOUL; give one or more.")],
    *,
    social_only: SocialOnly = False,
    port: Annotated[int, typer.Option(help="Port of the page; 0 picks a free one.", min=0, max=65535)] = 7780,
) -> None:
    """Run several SOULs until Ctrl-C, each in its own process, with one page for all."""
    from soul.up.up import run_up  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(run_up(homes, social_only=social_only, port=port))


@app.command(cls=ListedCommand)
def walk(*, home: Home = Path(), social_only: SocialOnly = False) -> None:
    """Run each activity once, in order, and exit; `run` repeats them until Ctrl-C."""
    from soul.commands.walk import run_walk  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_walk(home, social_only=social_only) else 1)


@app.command(cls=ListedCommand)
def status(
    *,
    loops: Annotated[bool, typer.Option("--loops", help="Also show its loops and all else that is known.")] = False,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Show what the SOUL is doing now, or why it stopped."""
    from soul.commands.status import run_status  # noqa: PLC0415 - only this command needs it

    run_status(home, as_json=json, with_loops=loops)


app.registered_commands += daily.registered_commands


@app.command(cls=ListedCommand)
def dashboard(*, home: Home = Path()) -> None:
    """Serve a web page until Ctrl-C: what the SOUL does and why, what waits for you, and what it spent."""
    from soul.dashboard.serving import run_dashboard  # noqa: PLC0415 - only this command needs it

    run_dashboard(home)


@app.command(cls=ListedCommand)
def pause(
    reason: Annotated[list[str] | None, typer.Argument(metavar="REASON", help="The reason.")] = None,
    *,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Stop every public act at once, until `soul resume`."""
    from soul.commands.pause import run_pause  # noqa: PLC0415 - only this command needs it

    run_pause(home, " ".join(reason or ()), as_json=json)


@app.command(cls=ListedCommand)
def resume(*, home: Home = Path(), json: Json = False) -> None:
    """End a pause or safe mode. Exits with 1 if something else still stops public acts."""
    from soul.commands.pause import run_resume  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_resume(home, as_json=json) else 1)


@app.command(cls=ListedCommand)
def drafts(
    action: Annotated[
        DraftAction, typer.Argument(metavar="ACTION", help="The action; edit also approves.")
    ] = DraftAction.LIST,
    ids: options.DraftIds = None,
    *,
    reason: Annotated[str, typer.Option("--reason", help="With reject: why; `soul why` shows it later.")] = "",
    text: Annotated[
        str | None,
        typer.Option("--text", help="With edit: the new text; else your editor opens."),
    ] = None,
    pager: Annotated[bool, typer.Option("--pager", help="With show: open $PAGER.")] = False,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """List, show, approve, edit or reject what waits for your approval or is scheduled. Editing approves."""
    from soul.commands.drafts import run_drafts  # noqa: PLC0415 - only this command needs it

    run_drafts(home, action, ids or (), reason=reason, json_wanted=json, in_pager=pager, text=text)


@app.command(cls=ListedCommand)
def rituals(*, limit: options.Runs = 5, home: Home = Path(), json: Json = False) -> None:
    """List its rituals: the next run of each, who took part in the last ones, and the results."""
    from soul.commands.rituals import run_rituals  # noqa: PLC0415 - only this command needs it

    run_rituals(home, limit=limit, as_json=json)


@app.command(cls=ListedCommand)
def tasks(*, home: Home = Path(), json: Json = False) -> None:
    """List the tasks of plans: which it works on, since when, their state and cost."""
    from soul.commands.tasks import run_tasks  # noqa: PLC0415 - only this command needs it

    run_tasks(home, as_json=json)


@app.command(cls=ListedCommand)
def mute(
    who: options.Muted = "",
    *,
    off: Annotated[bool, typer.Option("--off", help="Unmute the account.")] = False,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Mute an account, or list muted accounts. The SOUL does not read or answer them."""
    from soul.commands.mute import run_mute  # noqa: PLC0415 - only this command needs it

    run_mute(home, who, off=off, as_json=json)


@app.command("bluesky-reset", cls=ListedCommand)
def bluesky_reset(*, home: Home = Path(), dry_run: options.DryRun = False) -> None:
    """Delete all posts of its Bluesky account, after you type yes. Exits with 1 if some could not be deleted."""
    from soul.commands.bluesky_reset import run_bluesky_reset  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_bluesky_reset(home, dry_run=dry_run) else 1)


@app.command(cls=ListedCommand)
def know(who: Who, *, home: Home = Path(), json: Json = False) -> None:
    """Show everything that is stored about an account."""
    from soul.commands.people import run_know  # noqa: PLC0415 - only this command needs it

    run_know(home, who, as_json=json)


@app.command(cls=ListedCommand)
def forget(
    who: Who,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Delete everything that is stored about an account, after you type yes. A running SOUL restarts."""
    from soul.commands.people import run_forget  # noqa: PLC0415 - only this command needs it

    run_forget(home, who, as_json=json, yes=yes)


@app.command(cls=ListedCommand)
def talks(
    action: Annotated[TalkAction, typer.Argument(help="The action.", metavar="ACTION")] = TalkAction.LIST,
    talk_id: Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first characters of it.")] = "",
    *,
    limit: Annotated[int, typer.Option(help="List at most this many.", min=1)] = 20,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """List its conversations, open and archived, or show one."""
    from soul.commands.talks import run_talks  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_talks(home, action, talk_id, limit=limit, as_json=json) else 1)


@app.command(cls=ListedCommand)
def why(
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help="A link, an at:// address, or the id of an act."),
    ],
    *,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Explain one post, act or silence: what happened, when, and why."""
    from soul.commands.why import run_why  # noqa: PLC0415 - only this command needs it

    run_why(home, what, as_json=json)


@app.command(cls=ListedCommand)
def prompt(
    *,
    audience: Annotated[
        PromptAudience,
        typer.Option("--for", help="Who reads the answer: you, Bluesky or the room."),
    ] = PromptAudience.OWNER,
    text: Annotated[bool, typer.Option("--text", help="Print the whole text instead of the sizes.")] = False,
    about: Annotated[str, typer.Option("--about", help="Words of the turn, to recall memories by.")] = "",
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Show the prompt that the next turn would send: its parts, their sizes, and what was left out."""
    from soul.commands.prompt import run_prompt  # noqa: PLC0415 - only this command needs it

    run_prompt(home, audience.value, as_json=json, text=text, about=about)


@app.command(cls=ListedCommand)
def reflect(*, home: Home = Path()) -> None:
    """Make the SOUL reflect on its experiences now, or when it next starts."""
    from soul.commands.reflect import run_reflect  # noqa: PLC0415 - only this command needs it

    run_reflect(home)


@app.command(cls=ListedCommand)
def demo(
    *,
    minutes: Annotated[float, typer.Option(help="Stop after this many minutes; 0 runs until Ctrl-C.")] = 0,
    speed: Annotated[float, typer.Option(help="How many times faster than real time.", min=1, max=1000)] = 180,
    port: Annotated[int, typer.Option(help="Port of the page; 0 picks a free one.", min=0, max=65535)] = 7070,
    mind: Annotated[DemoMind, typer.Option(help="gateway uses the model of your .env.")] = DemoMind.SCRIPTED,
    alone: Annotated[bool, typer.Option("--alone", help="Only the town, with accounts for `soul init`.")] = False,
    home: Annotated[
        Path,
        typer.Option(
            "--home", callback=options.expanded, help="With --mind gateway: the folder whose .env names the model."
        ),
    ] = Path(),
) -> None:
    """Run three SOULs in a small simulated town on this machine, with a page to watch them."""
    from soul.commands.demo import run_demo  # noqa: PLC0415 - only this command needs it

    run_demo(minutes=minutes, speed=speed, port=port, mind=mind.value, home=home, alone=alone)


@app.command(cls=ListedCommand)
def space(
    *,
    name: Annotated[str | None, typer.Option("--name", help="Its name; else SPACE_NAME, else agent-space.")] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="Its port; else SPACE_PORT, else 7777; 0 picks a free one.", min=0, max=65535),
    ] = None,
    bind: Annotated[str, typer.Option("--bind", help="Who can join: loopback, lan, or an address.")] = "loopback",
    token: Annotated[
        str | None,
        typer.Option("--token", help="The token that members need in their SPACE_URL. Default: SPACE_TOKEN."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder for the record of the room. Default: ~/.local/state/soul/spaces."),
    ] = None,
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="Without a terminal: close the room at the end of the input.")
    ] = False,
    home: Annotated[
        Path,
        typer.Option("--home", callback=options.expanded, help="The folder whose .env may hold the SPACE_ settings."),
    ] = Path(),
) -> None:
    """Open a chatroom for you and your SOULs, until Ctrl-C."""
    from soul.commands.space import run_space  # noqa: PLC0415 - only this command needs it

    run_space(home, name=name, port=port, bind=bind, token=token, data=data, until_eof=until_eof)


@app.command("help", cls=ListedCommand)
def help_(
    command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="The command.")] = None,
) -> None:
    """List the commands, or show the options of one."""
    raise typer.Exit(app([*(command or ()), "--help"], prog_name="soul", standalone_mode=False))
