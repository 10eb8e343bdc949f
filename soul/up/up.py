"""`soul up`: several homes under one supervisor, which loads the program once for all of them."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from adapters.web.transport import trusted_certificates
from common.clock import SystemClock
from common.errors import ConfigError, HomeLocked, IdentityError, SoulError
from common.redact import Redactor
from common.settings import Settings
from modules.services.skills.contracts import SKILL_CONTRACTS
from modules.services.skills.skills import Skills
from soul.commands.run import live
from soul.commands.service import NO_LOOP, RESTART_S
from soul.dashboard.many import serve_many
from soul.loading import loading
from soul.resources import SKILLS
from soul.terminal.output import write_error, write_lines
from soul.up.supervisor import ANEW, Member, Supervisor

_WAITS_FOR_OWNER, _NO_IDENTITY = NO_LOOP
_LATE = (
    "adapters.atproto.xrpc",
    "adapters.github.calls",
    "anyio._backends._asyncio",
    "apscheduler.schedulers.asyncio",
    "charset_normalizer",
    "encodings.idna",
    "encodings.unicode_escape",
    "encodings.utf_8_sig",
    "markdown_it",
    "openai.resources.chat",
    "tzlocal",
    "wcwidth",
)
"""What a life loads when it first needs it; here it is loaded for all, before the first of them begins."""


def run_up(roots: Sequence[Path], *, social_only: bool, port: int, restart_s: float = RESTART_S) -> int:
    """Let the SOULs of these homes live until Ctrl-C, and return the exit code. Raises `ConfigError`.

    A process that fails is started again after `restart_s`, as often as a service would be.
    """
    if not hasattr(os, "fork"):
        raise ConfigError("This system cannot fork processes", remedy="Start each SOUL by `soul run --home DIR`.")
    homes = {str(root): root.expanduser().resolve() for root in roots}
    _forget_settings()
    _load()
    members = [Member(name, partial(_told, name, partial(_life, root, social_only))) for name, root in homes.items()]
    page = Member("page", partial(_told, "page", partial(_page, homes, port)), keeps_all=False)
    return Supervisor([*members, page], SystemClock(), restart_s).run()


def _forget_settings() -> None:
    """Take all settings out of the environment: what stands there for one would count for all, passwords too."""
    found = [name for name in os.environ if name.lower() in Settings.model_fields]
    for name in found:
        del os.environ[name]
    if found:
        write_lines(f"Not used, since each SOUL has the settings of its own .env: {', '.join(sorted(found))}")


def _load() -> None:
    """Load and read what all lives need, so that they share it. Starts no thread and no event loop."""
    with loading():
        for name in _LATE:
            importlib.import_module(name)
        trusted_certificates()
        Skills.load(SKILLS, SKILL_CONTRACTS)


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
        if isinstance(error, IdentityError):
            return _NO_IDENTITY
        return _WAITS_FOR_OWNER if isinstance(error, ConfigError | HomeLocked) else 1
    except Exception as error:
        write_lines(*clean("".join(traceback.format_exception(error))).splitlines(), to=sys.stderr)
        return 1
