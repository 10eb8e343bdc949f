"""Proves that no text of others controls the owner's terminal, whatever command shows it, as lines or as JSON."""

import asyncio
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import typer

from common.clock import SystemClock
from common.files import write_atomic
from modules.runtime.home import Home
from soul import cli
from soul.command_line import app
from soul.commands.run import obey, owner_commands
from soul.terminal.output import ascii_json, visible
from soul.terminal.plain import PlainConsole
from soul.terminal.wording import LOOKS
from tests.patience import HANG_S
from tests.program import soul, started, until
from tests.running_town import RunningTown, awake, replying
from tests.security.hostile_home import HOSTILE, POST, hostile_home, hostile_service, versions

ROOT = Path(cli.__file__).parents[1]
_WHOLE_PROGRAMS = {
    *("dashboard", "run", "up", "watch", "mcp", "walk", "init", "demo", "space", "config edit"),
    *(f"service {one}" for one in ("install", "start", "stop", "status", "logs", "alarm")),
    *(f"fleet {one}" for one in ("render", "apply", "list", "upgrade", "wake", "sleep")),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with hostile_service() as service:
        yield asyncio.run(hostile_home(tmp_path_factory.mktemp("homes") / "rowan", service))


@pytest.fixture
def home(kept: Home, tmp_path: Path) -> Home:
    """Return a copy of the home for each test, since some commands change it."""
    shutil.copytree(kept.root, tmp_path / "rowan")
    return Home.at(tmp_path / "rowan")


def leaves(group: typer.core.TyperGroup, path: str = "") -> Iterator[tuple[str, bool]]:
    """Yield every command with the names of its groups, and whether it has the option `--json`."""
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield (
                path + name,
                any("--json" in parameter.opts for parameter in command.get_params(typer.Context(command))),
            )


COMMANDS = dict(leaves(typer.main.get_group(app)))
ARGUMENTS: dict[str, list[Sequence[str]]] = {
    "status": [()],
    "why": [(POST,), (f"at://did:plc:kit/{HOSTILE}",), (HOSTILE,)],
    "bluesky-reset": [("--dry-run",)],
    "budget": [()],
    "doctor": [(), ("--security",)],
    "drafts": [
        *((), ("show", "{draft}"), ("show", "SELF.md"), ("approve", HOSTILE), ("reject", "abcd"), (HOSTILE,)),
        *(("edit", HOSTILE, "--text", HOSTILE), ("edit", "{draft}", "--text", HOSTILE), ("reject", "{draft}")),
    ],
    "mute": [(), (HOSTILE,), (f"did:plc:{HOSTILE}",), ("did:plc:kit",), ("did:plc:kit", "--off")],
    "know": [("did:plc:kit",), ("kit.test",), (HOSTILE,), (f"did:plc:{HOSTILE}",)],
    "forget": [(HOSTILE,), (f"did:plc:{HOSTILE}",), ("did:plc:kit",)],
    "talks": [(), ("show", "5e55"), ("show", HOSTILE)],
    "rituals": [()],
    "today": [(), (HOSTILE,)],
    "tasks": [()],
    "schedule": [(), ("--remove", "1")],
    "logs": [()],
    "backup": [(f"/dev/null/{HOSTILE.replace(chr(0), '')}",)],
    "restore": [(f"/dev/null/{HOSTILE.replace(chr(0), '')}",)],
    "config check": [()],
    "config get": [(), (HOSTILE,), ("AGENT_NAME",)],
    "config set": [(HOSTILE, HOSTILE), ("AGENT_NAME", HOSTILE)],
    "upgrade": [()],
    "move": [(f"/dev/null/{HOSTILE.replace(chr(0), '')}",)],
    "pause": [(HOSTILE,)],
    "resume": [()],
    "self log": [()],
    "self diff": [(), ("{version}",), (HOSTILE,)],
    "self show": [(HOSTILE,), ("{version}",)],
    "self check": [()],
    "reflect": [()],
    "self rollback": [(HOSTILE,), ("{version}",)],
    "friction": [()],
    "skills list": [()],
    "skills log": [(HOSTILE,), ("tea",)],
    "skills diff": [(HOSTILE,), ("tea",), ("tea", HOSTILE)],
    "skills rollback": [(HOSTILE, HOSTILE), ("tea", HOSTILE)],
    "skills off": [(HOSTILE,), ("tea",)],
    "skills on": [(HOSTILE,), ("tea",)],
    "memory list": [(), ("--since", HOSTILE)],
    "memory search": [("High",), (HOSTILE,)],
    "memory show": [("1",), ("99",)],
    "memory forget": [("1",), (HOSTILE,)],
    "help": [(HOSTILE,)],
}


def is_harmless(text: str) -> bool:
    return all(char == "\n" or char.isprintable() for char in text)


def test_every_command_is_tried_here_or_as_a_whole_program() -> None:
    assert set(ARGUMENTS) | _WHOLE_PROGRAMS == set(COMMANDS)


# NOTE(self): hostile text was stored in what these show, so that none of them passes by showing nothing.
QUOTING = {
    "status", "why", "doctor", "drafts", "know", "talks", "self log", "self diff", "skills list",
    "skills log", "skills diff", "memory list",
    "memory search", "memory show",
}  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True], ids=["lines", "json"])
@pytest.mark.parametrize("command", sorted(ARGUMENTS))
@pytest.mark.slow
def test_no_command_shows_hostile_text_as_it_is(
    home: Home, capsys: pytest.CaptureFixture[str], command: str, *, as_json: bool
) -> None:
    cli.run(["drafts", "--json", "--home", str(home.root)])
    draft = json.loads(capsys.readouterr().out)[0]["id"]
    named = {"{draft}": draft, "{version}": versions(home)[-1]}
    shown = ""
    for arguments in ARGUMENTS[command]:
        given = [named.get(each, each) for each in arguments]
        options = [] if command == "help" else ["--home", str(home.root)]
        separator = [] if given[:1] and given[0].startswith("--") else ["--"]
        cli.run([*command.split(), *options, *(["--json"] if as_json else []), *separator, *given])
        out, err = capsys.readouterr()
        assert "Traceback" not in err, err
        assert is_harmless(out), (arguments, out)
        assert is_harmless(err), (arguments, err)
        shown += out
        if as_json:
            assert out.isascii()
            json.loads(out)
    assert "gnp" in shown or command not in QUOTING or (as_json and not COMMANDS[command])


async def test_no_slash_command_shows_hostile_text_as_it_is(running_town: RunningTown, tmp_path: Path) -> None:
    home = await hostile_home(tmp_path / "rowan", running_town.atproto_url)
    running_town.make_home("rowan")
    write_atomic(home.env, (running_town.root / "rowan" / ".env").read_bytes())
    async with awake(home) as life:
        commands = owner_commands(life.app, asyncio.Event())
        for said in ("status", "why", "drafts", "budget", "self", "pause", "approve", "reject", "nothing"):
            terminal = PlainConsole(SystemClock(), file=(shown := io.StringIO()))
            await obey(commands, terminal, f"/{said}{f' {POST}' if said == 'why' else ''}")
            await obey(commands, terminal, f"/{said} {HOSTILE}")
            for kind in LOOKS:
                terminal.line(kind, HOSTILE, HOSTILE)
            terminal.say(HOSTILE, HOSTILE)
            assert "gnp" in shown.getvalue(), said
            assert is_harmless(shown.getvalue()), said


@pytest.mark.parametrize("command", ["run", "walk"])
@pytest.mark.slow
async def test_no_life_shows_hostile_text_as_it_is(running_town: RunningTown, command: str) -> None:
    home = running_town.make_home("rowan")
    running_town.mind.answer = replying(f"Slate. {HOSTILE}")
    running_town.network.post_as(running_town.account("kit"), f"@rowan.test which roof is louder? {HOSTILE}")
    if command == "walk":
        output = (await soul("walk", "--home", str(home.root))).output
    else:
        async with started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE) as process:
            output = await until(process, "gnp")
    assert "gnp" in output
    assert is_harmless(output)


@pytest.mark.slow
async def test_init_shows_what_a_service_says_without_its_orders(tmp_path: Path) -> None:
    with hostile_service(200) as service:
        answers = ["rowan", "", service, "rowan.test", "p", "n", "owner.test", f"{service}/v1", "m", "", "k", "n"]
        async with started("init", "--home", str(tmp_path / "new"), stdin=asyncio.subprocess.PIPE) as process:
            said, _ = await asyncio.wait_for(
                process.communicate("".join(f"{answer}\n" for answer in answers).encode()), HANG_S
            )
    assert "did:plc:owner" in said.decode()
    assert is_harmless(said.decode())


def test_no_sign_of_control_passes_as_a_line_or_as_json() -> None:
    for code in [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x200B, 0xFEFF, 0xAD, 0xE000, 0xD800, 0x2028]:
        assert is_harmless(visible(f"a{chr(code)}b")), hex(code)
        written = ascii_json(json.dumps(f"a{chr(code)}b", ensure_ascii=False))
        assert written.isascii(), hex(code)
        assert written.isprintable(), hex(code)
        assert json.loads(written) == f"a{chr(code)}b"
