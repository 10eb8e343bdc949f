"""`soul service`: lets systemd or launchd keep a SOUL running, as a service of its owner's user account only."""

import asyncio
import hashlib
import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Container
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from adapters.web.client import WebClient, http_transport_factory
from common.clock import SystemClock, parse_iso
from common.errors import ConfigError, SoulError
from common.files import expanded, write_atomic
from common.redact import Redactor
from common.settings import Settings
from modules.lives.messages.alarms import Webhook
from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.runtime.journal import rows
from soul.commands.at_hand import at_hand, settings_to_run
from soul.commands.waking import refuse_moved
from soul.exit_codes import ASLEEP, NO_RESTART
from soul.terminal.output import printable, write_lines

_DEADLINE_S = 120.0
_LINES = 50
_INACTIVE = 3
"""The exit code of `systemctl status` for a unit that does not run."""
_ANY = range(256)
_JUST_TOLD = timedelta(minutes=1)
RESTART_S = 30
STARTS = 5
WITHIN_S = 900
_WATCHDOG_S = 180
_NAME = re.compile(r"[^a-z0-9]+")
_NOTHING_KEPT = "No line of it was kept here that this user may read; `soul logs` shows what it told itself"
_NO_SUPERVISOR = "This machine has neither systemd nor launchd, which would keep the SOUL alive"


def run_service_install(root: Path) -> None:
    """Write the service's file and enable it. Raises `ConfigError` for settings that `soul run` would refuse."""
    settings = settings_to_run(root)
    home = Home.at(root, settings.memory_dir)
    refuse_moved(home)
    path = _file(home.root)
    if _is_mac():
        write_atomic(path, launchd_file(home.root, _mac_log(home.root)))
        write_lines(f"Wrote {path}. `soul service start` lets it live, now and after each login.")
        return
    for unit, content in systemd_units(home.root, settings.agent_name).items():
        write_atomic(path.with_name(unit), content)
    write_lines(f"Wrote {path}")
    _call("systemctl", "--user", "daemon-reload")
    _call("systemctl", "--user", "enable", path.name)
    write_lines("`soul service start` lets it live; `loginctl enable-linger` lets it live on while you are logged out.")


def run_service_start(root: Path) -> None:
    """Start the service. Raises `ConfigError` if it is not installed, `SoulError` if the supervisor refuses."""
    path = _installed(root)
    if _is_mac():
        _call("launchctl", "bootstrap", _domain(), str(path))
    else:
        _call("systemctl", "--user", "reset-failed", path.name, may_end=_ANY)
        _call("systemctl", "--user", "start", path.name)
    write_lines("Started; `soul status` tells how it is.")


def run_service_stop(root: Path) -> None:
    """Stop the service until the next start or login. Raises the same errors as `run_service_start`."""
    path = _installed(root)
    if _is_mac():
        _call("launchctl", "bootout", f"{_domain()}/{path.stem}")
    else:
        _call("systemctl", "--user", "stop", path.name)
    write_lines("Stopped; nothing accepted is lost.")


def run_service_status(root: Path) -> None:
    """Print what the supervisor knows about the service. Raises the same errors as `run_service_start`."""
    path = _installed(root)
    if _is_mac():
        told = _call("launchctl", "print", f"{_domain()}/{path.stem}")
    else:
        told = _call("systemctl", "--user", "status", "--no-pager", "--lines", "0", path.name, may_end=(0, _INACTIVE))
    write_lines(*told.splitlines())


def run_service_logs(root: Path) -> None:
    """Print the last lines that the supervisor kept, also of failed starts. Raises as `run_service_start` does."""
    path = _installed(root)
    if _is_mac():
        log = _mac_log(path)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    else:
        # NOTE(self): not `--user`, which reads only the files of this user, and journald may keep none.
        command = ("journalctl", "--no-pager", "--quiet", "--output=cat", f"--lines={_LINES}", "--user-unit", path.name)
        lines = _call(*command, may_end=_ANY).splitlines()
    write_lines(*(deque(lines, maxlen=_LINES) or [_NOTHING_KEPT]))


def run_service_alarm(root: Path) -> None:
    """Post to `ALARM_URL` that systemd gave up, unless the SOUL itself has just recorded why it stopped.

    Raises `SoulError` if the address does not accept it.
    """
    settings, home = at_hand(root)
    now = SystemClock().now()
    with suppress(SoulError), reading(home.database) as connection:
        end = rows.last_end(connection)
        if end and now - parse_iso(end["at"]) < _JUST_TOLD:
            return
    text = f"{settings.agent_name} stopped and is not started again; `soul service logs` shows why"
    if problem := asyncio.run(_post(settings, text)):
        raise SoulError(f"ALARM_URL: {problem}", remedy="Check ALARM_URL.")


async def _post(settings: Settings, text: str) -> str:
    way_out = http_transport_factory(settings.alarm_url, private_ok=settings.soul_allow_private_net)
    web = WebClient(way_out())
    try:
        return await Webhook(settings.alarm_url, web, Redactor(settings.secrets)).post(text)
    finally:
        await web.aclose()


def systemd_units(root: Path, name: str) -> dict[str, str]:
    """Return the content of each unit by its file name.

    systemd restarts the SOUL after a failure, at most `STARTS` times within `WITHIN_S` seconds, and kills it if its
    event loop hangs. If systemd gives up, the other unit tells the owner.
    """
    command, alarm = (" ".join(map(_quoted, _command(root, *words))) for words in (("run",), ("service", "alarm")))
    description = printable(name).replace("%", "%%").replace("\\", "")
    place = str(root).replace("%", "%%")
    unit, alarm_unit = f"{service_name(root)}.service", f"{service_name(root)}-alarm.service"
    told = f"""[Unit]
Description=Tells the owner of {description} that systemd gave up

[Service]
Type=oneshot
ExecStart={alarm}
WorkingDirectory={place}
"""
    return {
        alarm_unit: told,
        unit: f"""[Unit]
Description=The SOUL {description}
OnFailure={alarm_unit}
StartLimitIntervalSec={WITHIN_S}
StartLimitBurst={STARTS}

[Service]
ExecStart={command}
WorkingDirectory={place}
Environment=PYTHONUNBUFFERED=1 NO_COLOR=1
Restart=on-failure
RestartSec={RESTART_S}
RestartPreventExitStatus={" ".join(str(int(code)) for code in NO_RESTART)}
SuccessExitStatus={ASLEEP}
NotifyAccess=main
WatchdogSec={_WATCHDOG_S}

[Install]
WantedBy=default.target
""",
    }


def launchd_file(root: Path, log: Path) -> bytes:
    """Return the property list for macOS; launchd has no limit of starts and no watchdog."""
    wanted = {
        "Label": service_name(root),
        "ProgramArguments": _command(root, "run"),
        "WorkingDirectory": str(root),
        "EnvironmentVariables": {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": RESTART_S,
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
    return plistlib.dumps(wanted)


def service_name(root: Path) -> str:
    """Return the name of the service, which is unique to the home."""
    named = _NAME.sub("-", root.name.lower()).strip("-")
    return f"soul-{named or 'home'}-{hashlib.sha256(str(root).encode()).hexdigest()[:8]}"


def _command(root: Path, *words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "soul.cli", *words, "--home", str(root)]


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _is_mac() -> bool:
    if sys.platform == "darwin":
        return True
    if shutil.which("systemctl") is None:
        raise ConfigError(_NO_SUPERVISOR, remedy="docs/running.md tells of containers and other supervisors.")
    return False


def _file(root: Path) -> Path:
    if sys.platform == "darwin":
        return expanded(Path("~/Library/LaunchAgents")) / f"{service_name(root)}.plist"
    config = expanded(Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config"))
    return config / "systemd/user" / f"{service_name(root)}.service"


def _installed(root: Path) -> Path:
    _is_mac()
    path = _file(Home.at(root).root)
    if not path.exists():
        raise ConfigError(
            f"There is no service for {root.absolute()}",
            remedy=f"`soul service install --home {shlex.quote(str(root))}` makes one.",
        )
    return path


def _mac_log(of: Path) -> Path:
    return expanded(Path("~/Library/Logs")) / f"{of.stem if of.suffix == '.plist' else service_name(of)}.log"


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _call(*command: str, may_end: Container[int] = (0,)) -> str:
    """Return what a command (fixed words and our name) prints. Raises `SoulError` for exit codes not in `may_end`."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SoulError(f"{command[0]} gives no answer: {error}", remedy="Try it by hand.") from None
    if done.returncode not in may_end:
        why = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        remedy = "Log in as this user itself (not by su or sudo), or `loginctl enable-linger`; see docs/running.md."
        raise SoulError(f"{' '.join(command)}: {printable(why)}", remedy=remedy)
    return done.stdout
