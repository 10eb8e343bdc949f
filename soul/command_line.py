"""All commands in one table; each one's module is imported only when it is called or asked what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from common.version import __version__
from soul.commands.help import Group, Row, commands_of
from soul.commands.options import Home, SocialOnly
from soul.loading import loading
from soul.terminal.output import write_lines

COMMANDS = (
    Row(
        "init",
        "Set up a home: ask for the settings, test each answer, write .env, SOUL.md and SELF.md. Overwrite nothing.",
        "commands.init:run_init",
    ),
    Row(
        "doctor",
        "Check settings, services, credentials, clock and files. Costs no tokens. Exits with 1 if something is wrong.",
        "commands.doctor:run_doctor",
    ),
    Row("run", "Run the SOUL until Ctrl-C.", "command_line:run"),
    Row(
        "up",
        "Run several SOULs until Ctrl-C, each in its own process, with one page for all.",
        "up.up:run_up",
    ),
    Row(
        "walk", "Run each activity once, in order, and exit; `run` repeats them until Ctrl-C.", "commands.walk:run_walk"
    ),
    Row(
        "status",
        "Show what the SOUL is doing now, or why it stopped.",
        "commands.status:run_status",
    ),
    Row(
        "today",
        "Show one day on one screen: what it said and left alone, what waits, what it learned and spent.",
        "commands.today:run_today",
    ),
    Row("budget", "Show what the model has cost, and what is left of today's limit.", "commands.budget:run_budget"),
    Row("logs", "Print the last lines of its terminal.", "commands.logs:run_logs"),
    Row(
        "mcp",
        "Serve other tools (Model Context Protocol, over standard input and output): status, memory, drafts.",
        "commands.mcp:run_mcp",
    ),
    Row(
        "report",
        "Collect what a bug report needs, safe to publish: versions, settings, the checks of `doctor`, last errors.",
        "commands.report:run_report",
    ),
    Row("backup", "Save the home in one file.", "commands.backup:run_backup"),
    Row(
        "restore",
        "Restore a home from a backup, into a folder without a SOUL.",
        "commands.backup:run_restore",
    ),
    Row(
        "move",
        "Save the home in one file and retire this copy: the SOUL runs only where the file is restored.",
        "commands.backup:run_move",
    ),
    Row(
        "upgrade",
        "Convert a home of an earlier version for this one, after a trial run in a copy.",
        "commands.upgrade:run_upgrade",
    ),
    Row(
        "dashboard",
        "Serve a web page until Ctrl-C: what the SOUL does and why, what waits for you, and what it spent.",
        "dashboard.serving:run_dashboard",
    ),
    Row("pause", "Stop every public act at once, until `soul resume`.", "commands.pause:run_pause"),
    Row(
        "resume",
        "End a pause or safe mode. Exits with 1 if something else still stops public acts.",
        "commands.pause:run_resume",
    ),
    Row(
        "drafts",
        "List, show, approve, edit or reject what waits for your approval or is scheduled. Editing approves.",
        "commands.drafts:run_drafts",
    ),
    Row(
        "rituals",
        "List its rituals: the next run of each, who took part in the last ones, and the results.",
        "commands.rituals:run_rituals",
    ),
    Row(
        "tasks",
        "List the tasks of plans: which it works on, since when, their state and cost.",
        "commands.tasks:run_tasks",
    ),
    Row(
        "mute",
        "Mute an account, or list muted accounts. The SOUL does not read or answer them.",
        "commands.mute:run_mute",
    ),
    Row(
        "bluesky-reset",
        "Delete all posts of its Bluesky account, after you type yes. Exits with 1 if some could not be deleted.",
        "commands.bluesky_reset:run_bluesky_reset",
    ),
    Row("know", "Show everything that is stored about an account.", "commands.people:run_know"),
    Row(
        "forget",
        "Delete everything that is stored about an account, after you type yes. A running SOUL restarts.",
        "commands.people:run_forget",
    ),
    Row(
        "talks",
        "List its conversations, open and archived, or show one.",
        "commands.talks:run_talks",
    ),
    Row("why", "Explain one post, act or silence: what happened, when, and why.", "commands.why:run_why"),
    Row(
        "prompt",
        "Show the prompt that the next turn would send: its parts, their sizes, and what was left out.",
        "commands.prompt:run_prompt",
    ),
    Row(
        "reflect",
        "Make the SOUL reflect on its experiences now, or when it next starts.",
        "commands.reflect:run_reflect",
    ),
    Row(
        "demo",
        "Run three SOULs in a small simulated town on this machine, with a page to watch them.",
        "commands.demo:run_demo",
    ),
    Row("space", "Open a chatroom for you and your SOULs, until Ctrl-C.", "commands.space:run_space"),
    Row("help", "List the commands, or show the options of one.", "command_line:help_"),
    Row(
        "config",
        "Show and change its settings.",
        commands=(
            Row(
                "get",
                "Show a setting, its default and its meaning. Secrets stay hidden.",
                "commands.config:run_config_get",
            ),
            Row("check", "List every setting that `soul run` would refuse.", "commands.config:run_config_check"),
            Row("set", "Change a setting, if `soul run` would accept it.", "commands.config:run_config_set"),
            Row(
                "edit",
                "Edit .env in your editor; keep it only if `soul run` would accept it.",
                "commands.config:run_config_edit",
            ),
        ),
    ),
    Row(
        "service",
        "Run the SOUL as a service of systemd or launchd.",
        commands=(
            Row(
                "install",
                "Install a user service that restarts the SOUL after a failure. It contains no secret.",
                "commands.service:run_service_install",
            ),
            Row("start", "Start the service.", "commands.service:run_service_start"),
            Row(
                "stop",
                "Stop the service, until you start it or log in again.",
                "commands.service:run_service_stop",
            ),
            Row(
                "status",
                "Show the state of the service; `soul status` shows that of the SOUL.",
                "commands.service:run_service_status",
            ),
            Row(
                "logs",
                "Print the last lines of the service, including failed starts; `soul logs` has more.",
                "commands.service:run_service_logs",
            ),
            Row(
                "alarm",
                "Report at ALARM_URL that systemd gave up restarting; systemd calls this itself.",
                "commands.service:run_service_alarm",
            ),
        ),
    ),
    Row(
        "self",
        "Show how SELF.md changed; undo, approve or reject a change.",
        commands=(
            Row("log", "List the versions of SELF.md, newest first.", "commands.self_:run_self_log"),
            Row("diff", "Show what changed since a version.", "commands.self_:run_self_diff"),
            Row("show", "Show one version, its reason, and the experiences behind it.", "commands.self_:run_self_show"),
            Row(
                "check",
                "Show how the program reads SELF.md, and what it does not understand.",
                "commands.self_:run_self_check",
            ),
            Row("rollback", "Restore a version of SELF.md.", "commands.self_:run_self_rollback"),
            Row("held", "Show the change that waits for your approval.", "commands.self_:run_self_held"),
            Row("approve", "Approve that change.", "commands.self_:run_self_decide", {"approve": True}),
            Row("reject", "Reject that change.", "commands.self_:run_self_decide", {"approve": False}),
        ),
    ),
    Row(
        "memory",
        "List, search, export or import what the SOUL remembers.",
        commands=(
            Row("list", "List memories, newest first.", "commands.memory:run_memory_list"),
            Row("search", "Find memories by words, best match first.", "commands.memory:run_memory_search"),
            Row(
                "show", "Show one memory, and every earlier text about its subject.", "commands.memory:run_memory_show"
            ),
            Row("export", "Write all memories and profiles as JSON lines.", "commands.memory:run_memory_export"),
            Row(
                "import",
                "Read an export: all of it or nothing, and each line once.",
                "commands.memory:run_memory_import",
            ),
        ),
    ),
)


class Program(Group):
    """`soul` itself, with all commands."""

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
        bool, typer.Option("--take-over", help="Stop the other copy of this home for good, and run this one.")
    ] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Also serve the dashboard.")] = False,
) -> None:
    """Let the SOUL live, and serve its page if that is wanted."""
    with loading():
        from soul.commands.run import run_life  # noqa: PLC0415 - only this command needs it

    page = None
    if dashboard:
        from soul.dashboard.serving import serving_dashboard  # noqa: PLC0415 - only this option needs it

        page = serving_dashboard
    run_life(root, social_only=social_only, flush_all=flush_all, take_over=take_over, page=page)


def help_(command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="The setting.")] = None) -> int:
    """Show what commands there are, or what one of them takes."""
    return int(app([*(command or ()), "--help"], prog_name="soul", standalone_mode=False) or 0)
