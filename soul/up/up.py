"""`soul up`: several homes under one supervisor, which loads the program once for all of them."""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from genai_prices.data_snapshot import get_snapshot
from pydantic import BaseModel

from adapters.space.wire import build_codecs
from common.clock import SystemClock
from common.errors import ConfigError, SoulError
from common.files import expanded, write_atomic
from common.redact import Redactor
from common.settings import Settings
from common.text.patterns import compile_all
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from soul.app import open_soul
from soul.commands.options import SocialOnly
from soul.commands.run import live
from soul.commands.service import RESTART_S
from soul.dashboard.many import serve_many
from soul.exit_codes import exit_code_of
from soul.loading import loading
from soul.resources import template
from soul.terminal.output import write_error, write_lines
from soul.up.supervisor import ANEW, SupervisedProcess, Supervisor

_LATE = (
    "adapters.atproto.xrpc",
    "adapters.github.calls",
    "anyio._backends._asyncio",
    "apscheduler.executors.asyncio",
    "apscheduler.schedulers.asyncio",
    "apscheduler.triggers.interval",
    "charset_normalizer",
    "encodings.idna",
    "encodings.unicode_escape",
    "encodings.utf_8_sig",
    "markdown_it",
    "modules.services.coding.environment.project",
    "modules.services.coding.environment.python",
    "modules.services.coding.environment.python_files",
    "openai.lib.streaming.chat",
    "openai.resources.chat.completions",
    "soul.composition.wiring.github",
    "soul.terminal.text",
    "tzlocal",
    "wcwidth",
)
"""What a life loads when it first needs it; here it is loaded for all, before the first of them begins."""
_PLAIN = (str, int, float, bool, bytes, list, tuple, set, dict, type(None))
_NOBODY = {
    "agent_name": "nobody",
    "owner_bluesky_social_handle": "nobody.invalid",
    "owner_bluesky_social_handle_did": "did:web:nobody.invalid",
    "agent_bluesky_username": "nobody.invalid",
    "agent_bluesky_password": "none",
    "ai_gateway_api_key": "none",
    "space_discovery": False,
}


def run_up(
    roots: Annotated[list[Path], typer.Argument(metavar="DIR", help="The folder of a SOUL; give one or more.")],
    *,
    social_only: SocialOnly = False,
    port: Annotated[int, typer.Option(help="Port of the page; 0 picks a free one.", min=0, max=65535)] = 7780,
    restart_s: float = RESTART_S,
) -> int:
    """Let the SOULs of these homes live until Ctrl-C, and return the exit code. Raises `ConfigError`.

    A process that fails is started again after `restart_s`, as often as a service would be.
    """
    if problem := fork_problem(sys.platform, can_fork=hasattr(os, "fork")):
        raise ConfigError(problem, remedy="Let `soul service` keep each home alive, or `soul run --home DIR`.")
    homes = {str(root): expanded(root).resolve() for root in roots}
    _forget_settings()
    _load()
    members = [
        SupervisedProcess(name, partial(_told, name, partial(_life, root, social_only))) for name, root in homes.items()
    ]
    page = SupervisedProcess("page", partial(_told, "page", partial(_page, homes, port)), keeps_all=False)
    return Supervisor([*members, page], SystemClock(), restart_s).run()


def fork_problem(platform: str, *, can_fork: bool) -> str:
    """Return why processes cannot be forked from one that has loaded the program; "" if they can."""
    if platform == "darwin":
        return "A forked process is not safe on macOS, whose libraries start threads of their own"
    return "" if can_fork else "This system cannot fork processes"


def _forget_settings() -> None:
    """Take all settings out of the environment: what stands there for one would count for all, passwords too."""
    found = [name for name in os.environ if name.lower() in Settings.model_fields]
    for name in found:
        del os.environ[name]
    if found:
        write_lines(f"Not used, since each SOUL has the settings of its own .env: {', '.join(sorted(found))}")


def _load() -> None:
    """Load, read and build once what each life needs, so that they share it. No thread and no event loop is left."""
    with loading():
        for name in _LATE:
            importlib.import_module(name)
        compile_all()
        for kind in _PLAIN:
            issubclass(kind, BaseModel)  # the first time it is looked for among all models, in each life
        build_codecs()
        get_snapshot()
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_rehearse(Home.at(Path(folder))))


async def _rehearse(home: Home) -> None:
    """Build a SOUL that is nobody, reaches no network, and is gone at once: what was read and built for it is kept."""
    write_atomic(home.soul, template("SOUL.md"), mode=0o644)
    settings = Settings.model_validate(_NOBODY)
    async with open_soul(settings, home, console=SilentConsole(), clock=SystemClock(), rng=random.Random()):
        pass


def _life(root: Path, social_only: bool) -> int:  # noqa: FBT001 - bound at once
    """Live as `soul run` would in this folder; what is told stands in the home's log."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stdout):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    if root.is_dir():
        os.chdir(root)
    return ANEW if live(root, social_only=social_only) else 0


def _page(homes: dict[str, Path], port: int) -> int:
    asyncio.run(serve_many(homes, SystemClock(), port))
    return 0


def _told(name: str, work: Callable[[], int]) -> int:
    """Do the work, and say in a line what ended it. What only the owner can mend is not tried again."""
    clean = Redactor().text
    try:
        return work()
    except SoulError as error:
        write_error(f"{name}: {clean(str(error))}", clean(error.remedy))
        return exit_code_of(error)
    except Exception as error:
        write_lines(*clean("".join(traceback.format_exception(error))).splitlines(), to=sys.stderr)
        return 1
