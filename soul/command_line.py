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
        "Make a home: ask for what it needs, try each answer, and write .env, SOUL.md and SELF.md; never overwrite.",
        "commands.init:run_init",
    ),
    Row(
        "doctor",
        "Check services, credentials, clock and files; costs no tokens. Exit code 1 if something is wrong.",
        "commands.doctor:run_doctor",
    ),
    Row("run", "Let the SOUL live until Ctrl-C.", "command_line:run"),
    Row(
        "up",
        "Let several SOULs live, each as a process of its own, with one page for all, until Ctrl-C.",
        "up.up:run_up",
    ),
    Row("walk", "Do each thing once, in order, and end.", "commands.walk:run_walk"),
    Row(
        "status",
        "What the SOUL is doing now, or why it ended; also while it runs elsewhere.",
        "commands.status:run_status",
    ),
    Row(
        "today",
        "One day on one screen: what it said and left alone, what waits, what it learned and spent; "
        "also while it runs.",
        "commands.today:run_today",
    ),
    Row("budget", "What thinking has cost, and what is left of today.", "commands.budget:run_budget"),
    Row("logs", "What it told in its terminal; also while it runs.", "commands.logs:run_logs"),
    Row(
        "mcp",
        "Let your other tools ask about it, by the Model Context Protocol over standard input; also while it runs.",
        "commands.mcp:run_mcp",
    ),
    Row(
        "report",
        "What helps to find a fault, safe to paste in public; checks all that `doctor` checks; also while it runs.",
        "commands.report:run_report",
    ),
    Row("backup", "Write the home into one file; also while it runs.", "commands.backup:run_backup"),
    Row(
        "restore",
        "Bring a home back from such a file, in a folder where nobody lives.",
        "commands.backup:run_restore",
    ),
    Row(
        "move",
        "Write the home into one file and end it here: it wakes only where that is restored.",
        "commands.backup:run_move",
    ),
    Row(
        "upgrade",
        "Let the installed version take over a home of an earlier one: a copy, a try in it, and only then the change.",
        "commands.upgrade:run_upgrade",
    ),
    Row(
        "dashboard",
        "Your page on it: what it does, what waits for you, what it spent, and why; also while it runs elsewhere.",
        "dashboard.serving:run_dashboard",
    ),
    Row("pause", "Stop every public act at once, until `soul resume`.", "commands.pause:run_pause"),
    Row(
        "resume",
        "End a pause, or safe mode. Exit code 1 if something else still holds the SOUL back.",
        "commands.pause:run_resume",
    ),
    Row(
        "drafts",
        "What waits for your approval or is scheduled: list, show, approve, edit (which approves) or reject it.",
        "commands.drafts:run_drafts",
    ),
    Row(
        "rituals",
        "Its rituals: when each opens next, who took part in its runs, and what came of them; also while it runs.",
        "commands.rituals:run_rituals",
    ),
    Row(
        "tasks",
        "Tasks of plans: which it works on, since when, what they cost, and where they stand; also while it runs.",
        "commands.tasks:run_tasks",
    ),
    Row(
        "mute",
        "Whom it leaves alone: it says nothing to them, and does not read their posts; also while it runs.",
        "commands.mute:run_mute",
    ),
    Row(
        "bluesky-reset",
        "Delete all posts of its account, once you typed yes. Exit code 1 if some could not be deleted.",
        "commands.bluesky_reset:run_bluesky_reset",
    ),
    Row("know", "What it holds of somebody, store by store; also while it runs.", "commands.people:run_know"),
    Row(
        "forget",
        "Delete all that it holds of somebody, once you typed yes. A SOUL that runs starts anew for it.",
        "commands.people:run_forget",
    ),
    Row(
        "talks",
        "Its conversations, those that go on and those that are archived; also while it runs.",
        "commands.talks:run_talks",
    ),
    Row("why", "The story of one post, act or silence.", "commands.why:run_why"),
    Row(
        "prompt",
        "What the model is told before anything else: its parts, their sizes, and what had no room.",
        "commands.prompt:run_prompt",
    ),
    Row(
        "reflect",
        "Let the SOUL look back on what it lived through, now or when it wakes.",
        "commands.reflect:run_reflect",
    ),
    Row("demo", "Three SOULs in a small town on this machine, with a page to watch them.", "commands.demo:run_demo"),
    Row("space", "Open a room in which SOULs and you talk, until Ctrl-C.", "commands.space:run_space"),
    Row("help", "What commands there are, or what one of them takes.", "command_line:help_"),
    Row(
        "config",
        "Its settings: what they are, what they mean, and how to change them.",
        commands=(
            Row(
                "get",
                "What a setting is, its default, and what it means; secrets stay hidden.",
                "commands.config:run_config_get",
            ),
            Row("set", "Change a setting, if `soul run` would accept it.", "commands.config:run_config_set"),
            Row(
                "edit",
                "Change them in your editor; what `soul run` would refuse is not taken.",
                "commands.config:run_config_edit",
            ),
        ),
    ),
    Row(
        "service",
        "Let systemd or launchd keep it alive.",
        commands=(
            Row(
                "install",
                "Write a service for your user, which systemd or launchd starts again after a failure; "
                "it holds no secret.",
                "commands.service:run_service_install",
            ),
            Row("start", "Let it live.", "commands.service:run_service_start"),
            Row(
                "stop",
                "Stop it, until it is started again or you log in anew.",
                "commands.service:run_service_stop",
            ),
            Row(
                "status",
                "What the supervisor knows of it; `soul status` tells how the SOUL is.",
                "commands.service:run_service_status",
            ),
            Row(
                "logs",
                "The last lines that the supervisor kept, also of a start that failed; `soul logs` has more.",
                "commands.service:run_service_logs",
            ),
            Row(
                "alarm",
                "Tell you at ALARM_URL that it is not started again; systemd calls this where it gives up.",
                "commands.service:run_service_alarm",
            ),
        ),
    ),
    Row(
        "self",
        "How SELF.md changed, and your word on it.",
        commands=(
            Row("log", "Every version that is kept, newest first.", "commands.self_:run_self_log"),
            Row("diff", "What changed.", "commands.self_:run_self_diff"),
            Row("show", "One version, with its reason and what it grew from.", "commands.self_:run_self_show"),
            Row("check", "What is read in SELF.md, and what is not understood.", "commands.self_:run_self_check"),
            Row("rollback", "Make SELF.md what it was.", "commands.self_:run_self_rollback"),
            Row("held", "The change that waits for you.", "commands.self_:run_self_held"),
            Row("approve", "Let that change happen.", "commands.self_:run_self_decide", {"approve": True}),
            Row("reject", "Give that change up.", "commands.self_:run_self_decide", {"approve": False}),
        ),
    ),
    Row(
        "memory",
        "What the SOUL remembers; also while it runs.",
        commands=(
            Row("list", "What was remembered last, newest first.", "commands.memory:run_memory_list"),
            Row("search", "What is found by these words, best first.", "commands.memory:run_memory_search"),
            Row("show", "One memory, and all that ever stood under its subject.", "commands.memory:run_memory_show"),
            Row("export", "All memories and profiles as lines of JSON.", "commands.memory:run_memory_export"),
            Row(
                "import",
                "Take in an export: all of it or nothing, and each line once.",
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
    help="An autonomous social agent, a SOUL, that lives on Bluesky, on GitHub and in a chatroom.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def root(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False
) -> None:
    """An autonomous social agent, a SOUL, that lives on Bluesky, on GitHub and in a chatroom."""
    if version:
        write_lines(f"soul {__version__}")
        raise typer.Exit


def run(
    root: Home = Path(),
    *,
    social_only: SocialOnly = False,
    flush_all: Annotated[
        bool, typer.Option("--flush-all", help="Forget everything under .memory first, then live on.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Let another copy of this home stop, and live in its place.")
    ] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Serve your page on it, too.")] = False,
) -> None:
    """Let the SOUL live, and serve its page if that is wanted."""
    with loading():
        from soul.commands.run import run_life  # noqa: PLC0415 - only this command needs it

    page = None
    if dashboard:
        from soul.dashboard.serving import serving_dashboard  # noqa: PLC0415 - only this option needs it

        page = serving_dashboard
    run_life(root, social_only=social_only, flush_all=flush_all, take_over=take_over, page=page)


def help_(command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="Which.")] = None) -> int:
    """Show what commands there are, or what one of them takes."""
    return int(app([*(command or ()), "--help"], prog_name="soul", standalone_mode=False) or 0)
