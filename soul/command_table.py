"""The table of all commands: name, help, function and arguments of each, and where it can be used.

Slash commands are answered here, by the program itself, at once and without the model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from common.errors import SoulError

Place: TypeAlias = Literal["terminal", "message", "mcp", "mcp acts", "page", "room"]
"""A place beside the command line: a slash command in the SOUL's terminal, in a direct message of the owner or in the
terminal of a room; a tool of `soul mcp` ("mcp acts": only if the owner allows acts); a button of the dashboard."""


@dataclass(frozen=True, slots=True)
class Row:
    """One command.

    Attributes:
        help: one line; slash commands show only its first sentence.
        function: what the command line calls, as `module:name` in `soul`; "" if the command line does not have it.
            Its parameters annotated for Typer are the arguments and options; those of `USUAL` need no annotation.
            It returns None, an exit code, or False for exit code 1.
        given: arguments that this command always passes to the function.
        commands: the subcommands of a group, which has no function.
        typed: what follows the name of the slash command; optional words are in brackets.
        where: the places that have it beside the command line.
        begins: what the slash command says at once if its answer takes a while.

    """

    name: str
    help: str
    function: str = ""
    given: Mapping[str, object] = field(default_factory=dict)
    commands: tuple[Row, ...] = ()
    typed: str = ""
    where: tuple[Place, ...] = ()
    begins: str = ""

    @property
    def usage(self) -> str:
        return f"{self.name} {self.typed}".rstrip()

    @property
    def summary(self) -> str:
        """What it does, as slash commands show it."""
        return self.help.partition(". ")[0].rstrip(".")

    @property
    def needs_words(self) -> bool:
        """Whether something must follow the name of the slash command."""
        return any(not word.startswith("[") for word in self.typed.split())


_TYPED: tuple[Place, ...] = ("terminal", "message")

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
        "supervisor:run_up",
    ),
    Row(
        "watch",
        "Watch over SOULs that sleep, and start each when something comes for it.",
        "commands.watch:run_watch",
    ),
    Row(
        "walk", "Run each activity once, in order, and exit; `run` repeats them until Ctrl-C.", "commands.walk:run_walk"
    ),
    Row(
        "status",
        "Show what the SOUL is doing now, or why it stopped.",
        "commands.status:run_status",
        where=(*_TYPED, "mcp"),
    ),
    Row(
        "today",
        "Show one day on one screen: what it said and left alone, what waits, what it learned and spent.",
        "commands.today:run_today",
        typed="[DAY]",
        where=(*_TYPED, "mcp"),
    ),
    Row(
        "budget",
        "Show what the model has cost, and what is left of today's limit.",
        "commands.budget:run_budget",
        where=_TYPED,
    ),
    Row("logs", "Print the last lines of its terminal.", "commands.logs:run_logs"),
    Row(
        "mcp",
        "Serve other tools (Model Context Protocol, over standard input and output): status, memory, drafts.",
        "commands.mcp:run_mcp",
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
        "commands.backup:run_upgrade",
    ),
    Row(
        "dashboard",
        "Serve a web page until Ctrl-C: what the SOUL does and why, what waits for you, and what it spent.",
        "dashboard.serving:run_dashboard",
    ),
    Row(
        "pause",
        "Stop every public act at once, until you resume it.",
        "commands.pause:run_pause",
        typed="[reason]",
        where=(*_TYPED, "page"),
    ),
    Row(
        "resume",
        "End a pause or safe mode. Exits with 1 if something else still stops public acts.",
        "commands.pause:run_resume",
        where=(*_TYPED, "page"),
    ),
    Row(
        "drafts",
        "List what waits for your approval or to be sent. Also show, edit, approve or reject it; editing approves.",
        "commands.drafts:run_drafts",
        typed="[FILE]",
        where=(*_TYPED, "mcp"),
    ),
    Row("draft", "Show one of them.", where=("mcp",)),
    Row(
        "approve",
        "Approve drafts, each by its number or the first characters of its id, or files by their names.",
        typed="ID…",
        where=(*_TYPED, "mcp acts", "page"),
    ),
    Row(
        "edit",
        "Replace the words of a waiting post or reply and approve it; without WORDS show them.",
        typed="ID [WORDS]",
        where=(*_TYPED, "page"),
    ),
    Row(
        "reject",
        "Reject a draft, or stop an act that was not sent; several IDs without a reason reject several.",
        typed="ID [reason]",
        where=(*_TYPED, "mcp acts", "page"),
    ),
    Row(
        "replies",
        "Set who may reply to its newest post, or to that one: nobody, everybody, mentioned, followers, following.",
        typed="WHO [URL]",
        where=_TYPED,
    ),
    Row(
        "rituals",
        "List its rituals: the next run of each, who took part in the last ones, and the results.",
        "commands.rituals:run_rituals",
    ),
    Row(
        "ritual",
        "Open a ritual of SELF.md now, unless it was opened today.",
        typed="NAME",
        where=_TYPED,
        begins="Opening that ritual …",
    ),
    Row(
        "schedule",
        "List what it does at set times, or reminds you of. Also remove one.",
        "commands.rituals:run_schedule",
        where=(*_TYPED, "mcp"),
    ),
    Row("unschedule", "Remove what is scheduled under that number.", typed="NUMBER", where=_TYPED),
    Row(
        "tasks",
        "List the tasks of plans: which it works on, since when, their state and cost.",
        "commands.tasks:run_tasks",
        where=_TYPED,
    ),
    Row(
        "task",
        "Take a task of a plan now, or stop the work on it and leave it: its number, or owner/repo#12/3.",
        typed="[leave] TASK",
        where=_TYPED,
    ),
    Row("unwatch", "Stop planning and working in a repository, given as owner/repo.", typed="REPO", where=_TYPED),
    Row(
        "mute",
        "Mute an account: the SOUL does not read or answer it. Without one, list the muted accounts.",
        "commands.people:run_mute",
        typed="WHO",
        where=(*_TYPED, "page"),
    ),
    Row("unmute", "End a mute.", typed="WHO", where=(*_TYPED, "page")),
    Row(
        "trust",
        "Accept that this name now belongs to somebody else than when it was first seen.",
        typed="NAME",
        where=_TYPED,
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
        where=("page",),
    ),
    Row(
        "talks",
        "List its conversations, open and archived, or show one.",
        "commands.talks:run_talks",
    ),
    Row(
        "why",
        "Explain one post, act or silence: what happened, when, and why.",
        "commands.today:run_why",
        typed="URL",
        where=(*_TYPED, "mcp"),
    ),
    Row(
        "improve",
        "Have the SOUL get better at something: it decides how, and proposes it.",
        typed="WORDS",
        where=_TYPED,
    ),
    Row(
        "friction",
        "List what goes wrong again and again, how often, and what became of it.",
        "commands.reflect:run_friction",
    ),
    Row(
        "reflect",
        "Make the SOUL reflect on its experiences now, or when it next starts.",
        "commands.reflect:run_reflect",
        where=_TYPED,
        begins="Reflecting on its experiences …",
    ),
    Row(
        "new",
        "End this conversation; a summary and notes of it are remembered.",
        where=_TYPED,
        begins="Ending this conversation, and keeping what matters of it …",
    ),
    Row("later", "Postpone the first conversation to the next start.", where=("terminal",)),
    Row("quit", "Stop the SOUL; nothing accepted is lost.", where=("terminal",)),
    Row(
        "demo",
        "Run three SOULs in a small simulated town on this machine, with a page to watch them.",
        "commands.demo:run_demo",
    ),
    Row("space", "Open a chatroom for you and your SOULs, until Ctrl-C.", "commands.space:run_space"),
    Row("who", "Show who is in the room, and what each is doing.", where=("room",)),
    Row("claims", "Show what is being worked on, and by whom.", where=("room",)),
    Row("history", "Show the last n lines of the record (20).", typed="[n]", where=("room",)),
    Row("say", "Say something to the SOUL.", where=("page",)),
    Row("wake", "Wake the SOUL.", where=("page",)),
    Row("say", "Say it to one of them; also words that begin with a slash.", typed="@name words", where=("room",)),
    Row(
        "remove",
        "Close a member's connection, and reserve its name for its address for ten minutes.",
        typed="name",
        where=("room",),
    ),
    Row("quit", "Close the room.", where=("room",)),
    Row(
        "help",
        "List the commands. Also show the options of one.",
        "command_line:help_",
        where=(*_TYPED, "room"),
    ),
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
            Row(
                "set",
                "Change a setting, if `soul run` would accept it.",
                "commands.config:run_config_set",
                where=("page",),
            ),
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
        "fleet",
        "Keep many SOULs on a Kubernetes cluster.",
        commands=(
            Row("render", "Print the manifests that `apply` sends.", "commands.fleet:run_fleet_render"),
            Row("apply", "Create or change the fleet as the file says. Wake nobody.", "commands.fleet:run_fleet_apply"),
            Row("list", "Show which SOULs are awake, asleep or failing.", "commands.fleet:run_fleet_list"),
            Row(
                "upgrade",
                "Give the SOULs a newer image: a few first, all after two days without trouble.",
                "commands.fleet:run_fleet_upgrade",
            ),
            Row("wake", "Start the pods of SOULs, and wait.", "commands.fleet:run_fleet_mode", {"wanted": "awake"}),
            Row("sleep", "End the pods of SOULs, and wait.", "commands.fleet:run_fleet_mode", {"wanted": "asleep"}),
        ),
    ),
    Row(
        "self",
        "Show how SELF.md changed; /self shows the profiles too. Also undo a change.",
        where=_TYPED,
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
        ),
    ),
    Row(
        "skills",
        "Show the skills of the SOUL's own. Also undo a change of one, or switch it off.",
        commands=(
            Row("list", "List them, and what waits for your approval.", "commands.self_:run_skills_list"),
            Row("log", "List the versions of one, newest first.", "commands.self_:run_skills_log"),
            Row("diff", "Show what changed since a version.", "commands.self_:run_skills_diff"),
            Row("rollback", "Restore a version.", "commands.self_:run_skills_rollback"),
            Row("off", "Switch one off.", "commands.self_:run_skills_switch", {"off": True}),
            Row("on", "Switch it on again.", "commands.self_:run_skills_switch", {"off": False}),
        ),
    ),
    Row(
        "memory",
        "Forget one memory. Also list or search what the SOUL remembers.",
        typed="forget ID",
        where=_TYPED,
        commands=(
            Row("list", "List memories, newest first.", "commands.memory:run_memory_list"),
            Row(
                "search",
                "Find memories by words, best match first.",
                "commands.memory:run_memory_search",
                where=("mcp",),
            ),
            Row("forget", "Delete one memory and its copies.", "commands.memory:run_memory_forget", where=("page",)),
            Row(
                "show", "Show one memory, and every earlier text about its subject.", "commands.memory:run_memory_show"
            ),
        ),
    ),
)


def rows_at(place: Place, rows: Iterable[Row] = COMMANDS, group: str = "") -> dict[str, Row]:
    """Return the commands of a place by name; a subcommand is called `group_name`."""
    found: dict[str, Row] = {}
    for row in rows:
        if place in row.where:
            found[f"{group}{row.name}"] = row
        found |= rows_at(place, row.commands, f"{group}{row.name}_")
    return found


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
        listed = [f"  /{row.usage:<{width}}  {row.summary}" for row in self.rows.values()]
        return [*listed, f"  {self.otherwise}"]


def first_word(line: str) -> tuple[str, str]:
    """Return the first word of a line, which any white space ends (on a phone, a line break), and all behind it."""
    first, *rest = line.split(None, 1) or [""]
    return first, rest[0] if rest else ""
