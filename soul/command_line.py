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
    help="An autonomous social agent, a SOUL, that lives on Bluesky, on GitHub and in a chatroom.",
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
    """An autonomous social agent, a SOUL, that lives on Bluesky, on GitHub and in a chatroom."""
    if version:
        write_lines(f"soul {__version__}")
        raise typer.Exit


@app.command(cls=ListedCommand)
def init(*, home: Home = Path()) -> None:
    """Make a home: ask for what it needs, try each answer, and write .env, SOUL.md and SELF.md; never overwrite."""
    from soul.commands.init import run_init  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_init(home) else 1)


@app.command(cls=ListedCommand)
def doctor(
    *,
    home: Home = Path(),
    security: Annotated[bool, typer.Option("--security", help="Look at its safety instead; needs no network.")] = False,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Also ask the model; one on your network is sent about 13,000 tokens."),
    ] = False,
    json: Json = False,
) -> None:
    """Check services, credentials, clock and files; costs no tokens. Exit code 1 if something is wrong."""
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
        bool, typer.Option("--flush-all", help="Forget everything under .memory first, then live on.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Let another copy of this home stop, and live in its place.")
    ] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Serve your page on it, too.")] = False,
) -> None:
    """Let the SOUL live until Ctrl-C."""
    with loading():
        from soul.commands.run import run_life  # noqa: PLC0415 - only this command needs it

    page = None
    if dashboard:
        from soul.dashboard.serving import serving_dashboard  # noqa: PLC0415 - only this option needs it

        page = serving_dashboard
    run_life(home, social_only=social_only, flush_all=flush_all, take_over=take_over, page=page)


@app.command(cls=ListedCommand)
def up(
    homes: Annotated[list[Path], typer.Argument(metavar="DIR", help="A home; give as many as you like.")],
    *,
    social_only: SocialOnly = False,
    port: Annotated[int, typer.Option(help="Port of the page; 0 takes a free one.", min=0, max=65535)] = 7780,
) -> None:
    """Let several SOULs live, each as a process of its own, with one page for all, until Ctrl-C."""
    from soul.up.up import run_up  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(run_up(homes, social_only=social_only, port=port))


@app.command(cls=ListedCommand)
def walk(*, home: Home = Path(), social_only: SocialOnly = False) -> None:
    """Do each thing once, in order, and end."""
    from soul.commands.walk import run_walk  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_walk(home, social_only=social_only) else 1)


@app.command(cls=ListedCommand)
def status(
    *,
    loops: Annotated[bool, typer.Option("--loops", help="Also its loops and all else that is known.")] = False,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """What the SOUL is doing now, or why it ended; also while it runs elsewhere."""
    from soul.commands.status import run_status  # noqa: PLC0415 - only this command needs it

    run_status(home, as_json=json, with_loops=loops)


app.registered_commands += daily.registered_commands


@app.command(cls=ListedCommand)
def dashboard(*, home: Home = Path()) -> None:
    """Your page on it: what it does, what waits for you, what it spent, and why; also while it runs elsewhere."""
    from soul.dashboard.serving import run_dashboard  # noqa: PLC0415 - only this command needs it

    run_dashboard(home)


@app.command(cls=ListedCommand)
def pause(
    reason: Annotated[list[str] | None, typer.Argument(metavar="REASON", help="Why.")] = None,
    *,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Stop every public act at once, until `soul resume`."""
    from soul.commands.pause import run_pause  # noqa: PLC0415 - only this command needs it

    run_pause(home, " ".join(reason or ()), as_json=json)


@app.command(cls=ListedCommand)
def resume(*, home: Home = Path(), json: Json = False) -> None:
    """End a pause, or safe mode. Exit code 1 if something else still holds the SOUL back."""
    from soul.commands.pause import run_resume  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_resume(home, as_json=json) else 1)


@app.command(cls=ListedCommand)
def drafts(
    action: Annotated[
        DraftAction, typer.Argument(metavar="ACTION", help="What to do; edit gives a draft your words and approves it.")
    ] = DraftAction.LIST,
    ids: options.DraftIds = None,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why not, for the journal.")] = "",
    text: Annotated[
        str | None,
        typer.Option("--text", help="With edit: its new words, which approve it; left out, your editor opens."),
    ] = None,
    pager: Annotated[bool, typer.Option("--pager", help="With show: in your $PAGER.")] = False,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """What waits for your approval or is scheduled: list, show, approve, edit (which approves) or reject it."""
    from soul.commands.drafts import run_drafts  # noqa: PLC0415 - only this command needs it

    run_drafts(home, action, ids or (), reason=reason, json_wanted=json, in_pager=pager, text=text)


@app.command(cls=ListedCommand)
def rituals(*, limit: options.Runs = 5, home: Home = Path(), json: Json = False) -> None:
    """Its rituals: when each opens next, who took part in its runs, and what came of them; also while it runs."""
    from soul.commands.rituals import run_rituals  # noqa: PLC0415 - only this command needs it

    run_rituals(home, limit=limit, as_json=json)


@app.command(cls=ListedCommand)
def tasks(*, home: Home = Path(), json: Json = False) -> None:
    """Tasks of plans: which it works on, since when, what they cost, and where they stand; also while it runs."""
    from soul.commands.tasks import run_tasks  # noqa: PLC0415 - only this command needs it

    run_tasks(home, as_json=json)


@app.command(cls=ListedCommand)
def mute(
    who: options.Muted = "",
    *,
    off: Annotated[bool, typer.Option("--off", help="End the mute.")] = False,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Whom it leaves alone: it says nothing to them, and does not read their posts; also while it runs."""
    from soul.commands.mute import run_mute  # noqa: PLC0415 - only this command needs it

    run_mute(home, who, off=off, as_json=json)


@app.command("bluesky-reset", cls=ListedCommand)
def bluesky_reset(*, home: Home = Path(), dry_run: options.DryRun = False) -> None:
    """Delete all posts of its account, once you typed yes. Exit code 1 if some could not be deleted."""
    from soul.commands.bluesky_reset import run_bluesky_reset  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_bluesky_reset(home, dry_run=dry_run) else 1)


@app.command(cls=ListedCommand)
def know(who: Who, *, home: Home = Path(), json: Json = False) -> None:
    """What it holds of somebody, store by store; also while it runs."""
    from soul.commands.people import run_know  # noqa: PLC0415 - only this command needs it

    run_know(home, who, as_json=json)


@app.command(cls=ListedCommand)
def forget(
    who: Who,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask back.")] = False,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Delete all that it holds of somebody, once you typed yes. A SOUL that runs starts anew for it."""
    from soul.commands.people import run_forget  # noqa: PLC0415 - only this command needs it

    run_forget(home, who, as_json=json, yes=yes)


@app.command(cls=ListedCommand)
def talks(
    action: Annotated[TalkAction, typer.Argument(help="What to do.", metavar="ACTION")] = TalkAction.LIST,
    talk_id: Annotated[str, typer.Argument(metavar="ID", help="Which: an id, or its first characters.")] = "",
    *,
    limit: Annotated[int, typer.Option(help="List at most so many.", min=1)] = 20,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Its conversations, those that go on and those that are archived; also while it runs."""
    from soul.commands.talks import run_talks  # noqa: PLC0415 - only this command needs it

    raise typer.Exit(0 if run_talks(home, action, talk_id, limit=limit, as_json=json) else 1)


@app.command(cls=ListedCommand)
def why(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A link to a post, an at:// address, or an act's id.")],
    *,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """The story of one post, act or silence."""
    from soul.commands.why import run_why  # noqa: PLC0415 - only this command needs it

    run_why(home, what, as_json=json)


@app.command(cls=ListedCommand)
def prompt(
    *,
    audience: Annotated[
        PromptAudience, typer.Option("--for", help="Who may read what comes of it.")
    ] = PromptAudience.OWNER,
    text: Annotated[bool, typer.Option("--text", help="The text itself.")] = False,
    about: Annotated[str, typer.Option("--about", help="The words of the turn, to see what comes to mind.")] = "",
    home: Home = Path(),
    json: Json = False,
) -> None:
    """What the model is told before anything else: its parts, their sizes, and what had no room."""
    from soul.commands.prompt import run_prompt  # noqa: PLC0415 - only this command needs it

    run_prompt(home, audience.value, as_json=json, text=text, about=about)


@app.command(cls=ListedCommand)
def reflect(*, home: Home = Path()) -> None:
    """Let the SOUL look back on what it lived through, now or when it wakes."""
    from soul.commands.reflect import run_reflect  # noqa: PLC0415 - only this command needs it

    run_reflect(home)


@app.command(cls=ListedCommand)
def demo(
    *,
    minutes: Annotated[float, typer.Option(help="End by itself after so many minutes; 0 runs until Ctrl-C.")] = 0,
    speed: Annotated[float, typer.Option(help="How many times faster than life.", min=1, max=1000)] = 180,
    port: Annotated[int, typer.Option(help="Port of the page; 0 takes a free one.", min=0, max=65535)] = 7070,
    mind: Annotated[DemoMind, typer.Option(help="gateway: the model of the .env.")] = DemoMind.SCRIPTED,
    alone: Annotated[bool, typer.Option("--alone", help="The town alone, with accounts for `soul init`.")] = False,
    home: Home = Path(),
) -> None:
    """Three SOULs in a small town on this machine, with a page to watch them."""
    from soul.commands.demo import run_demo  # noqa: PLC0415 - only this command needs it

    run_demo(minutes=minutes, speed=speed, port=port, mind=mind.value, home=home, alone=alone)


@app.command(cls=ListedCommand)
def space(
    *,
    name: Annotated[str | None, typer.Option("--name", help="Its name; SPACE_NAME, else agent-space.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="SPACE_PORT, else 7777; 0 takes a free one.", min=0, max=65535)
    ] = None,
    bind: Annotated[str, typer.Option("--bind", help="Who can join: loopback, lan, or an address.")] = "loopback",
    token: Annotated[
        str | None, typer.Option("--token", help="What agents must have in their SPACE_URL; SPACE_TOKEN.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Where its record lies; else ~/.local/state/soul/spaces.")
    ] = None,
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="Without a terminal: close the room when the input ends.")
    ] = False,
    home: Annotated[
        Path,
        typer.Option("--home", callback=options.expanded, help="The folder whose .env may hold the SPACE_ settings."),
    ] = Path(),
) -> None:
    """Open a room in which SOULs and you talk, until Ctrl-C."""
    from soul.commands.space import run_space  # noqa: PLC0415 - only this command needs it

    run_space(home, name=name, port=port, bind=bind, token=token, data=data, until_eof=until_eof)


@app.command("help", cls=ListedCommand)
def help_(
    command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="Which.")] = None,
) -> None:
    """What commands there are, or what one of them takes."""
    raise typer.Exit(app([*(command or ()), "--help"], prog_name="soul", standalone_mode=False))
