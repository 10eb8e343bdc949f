"""`soul doctor --security`: checks for unsafe settings, without network or changes. Names of findings are stable."""

import os
import re
import shlex
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlparse

from common.clock import SystemClock, parse_iso
from common.errors import SoulError
from common.redact import Redactor
from common.settings import Settings, load_settings
from modules.runtime.control import Control
from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.runtime.journal import rows
from modules.services.inbox import received
from soul.commands.findings import Finding, Level, examine_settings, report

_YOUNG = timedelta(days=14)
_NO_CAP_TOKENS = 100_000_000
_GIT_TIMEOUT_S = 1.0
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_APP_PASSWORD = re.compile(r"[a-z2-7]{4}(?:-[a-z2-7]{4}){3}")

TITLES = {
    "env-readable": "access to .env",
    "memory-readable": "access to its memory",
    "session-readable": "access to its session",
    "watch-session-readable": "access to the watcher's session",
    "soul-md-writable-by-others": "access to SOUL.md",
    "env-in-git": ".env and git",
    "runs-as-root": "user",
    "unsafe-exec": "code",
    "no-sandbox": "sandbox",
    "coding-network": "network of code",
    "private-net": "private networks",
    "plain-http": "encryption",
    "main-password": "password",
    "owner-did-mismatch": "owner",
    "bot-label-off": "bot label",
    "no-operator-contact": "contact",
    "approval-off-young-account": "approval",
    "no-usd-cap": "limit in dollars",
    "budget-off": "limit in tokens",
    "secret-in-files": "secrets",
    "paused": "pause",
    "safe-mode": "safe mode",
}
"""What the owner reads in place of the stable name of a check, which names its fault."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _SecuritySubject:
    """The input of the checks."""

    settings: Settings
    home: Home
    redactor: Redactor
    now: datetime


def run_security(root: Path, *, as_json: bool) -> bool:
    """Run the checks, print the findings, and return whether nothing failed."""
    return report(examine(root), as_json=as_json, titles=TITLES)


def examine(root: Path) -> list[Finding]:
    """Return all findings, one or more per check, in the order in which one would correct them."""
    wrong = examine_settings(root)
    try:
        settings = load_settings(root)
        home = Home.at(root, settings.memory_dir)
    except SoulError:
        return wrong
    seen = _SecuritySubject(settings, home, Redactor(settings.secrets), SystemClock().now())
    clean = seen.redactor.text
    found = [item for check in _CHECKS for item in check(seen)]
    return [*wrong, *(Finding(item.check, item.level, clean(item.message), clean(item.remedy)) for item in found)]


def _rights(seen: _SecuritySubject) -> Iterator[Finding]:
    home = seen.home
    yield _private("env-readable", home.env, "holds the passwords and keys")
    yield _private("memory-readable", home.memory, "holds all that it remembers")
    yield _private("session-readable", home.session, "is as good as the password")
    if home.watch_session.exists():
        yield _private("watch-session-readable", home.watch_session, "is as good as the password")
    writable = [path for path in (home.root, home.soul) if _mode(path) & (stat.S_IWGRP | stat.S_IWOTH)]
    if writable:
        remedy = f"chmod go-w {shlex.join(map(str, writable))}"
        yield Finding("soul-md-writable-by-others", "fail", "others on this machine can change who it is", remedy)
    else:
        yield Finding("soul-md-writable-by-others", "ok", "only you can change SOUL.md")


def _git(seen: _SecuritySubject) -> Iterator[Finding]:
    name, env = "env-in-git", seen.home.env
    if not env.exists() or not any((folder / ".git").exists() for folder in (env.parent, *env.parent.parents)):
        yield Finding(name, "ok", ".env is in no repository")
    elif _ask_git(env, "ls-files", "--error-unmatch"):
        remedy = f"git rm --cached {env.name}, then change every password and key in it."
        yield Finding(name, "fail", ".env is tracked by git: its secrets are in the history", remedy)
    elif not _ask_git(env, "check-ignore", "-q"):
        yield Finding(name, "warn", ".env lies in a repository that does not ignore it", "Add .env to .gitignore.")
    else:
        yield Finding(name, "ok", ".env is ignored by git")


def _process(seen: _SecuritySubject) -> Iterator[Finding]:
    settings = seen.settings
    if os.geteuid() == 0:
        remedy = "Let a user of its own run it."
        yield Finding("runs-as-root", "warn", "run like this it has every right on this machine", remedy)
    else:
        yield Finding("runs-as-root", "ok", "it runs as an ordinary user")
    if settings.soul_unsafe_exec:
        remedy = "Remove SOUL_UNSAFE_EXEC from .env and install bubblewrap."
        yield Finding("unsafe-exec", "fail", "code may run without a sandbox, with all your rights", remedy)
    else:
        yield Finding("unsafe-exec", "ok", "no code runs outside a sandbox")
    if shutil.which("bwrap"):
        yield Finding("no-sandbox", "ok", "bubblewrap is installed")
    else:
        remedy = "Install bubblewrap if it is meant to run code."
        yield Finding("no-sandbox", "warn", "bubblewrap is not installed: running code is refused", remedy)
    if settings.coding_network:
        remedy = "Remove CODING_NETWORK from .env."
        yield Finding(
            "coding-network", "warn", "code of a task may reach the network and this machine's services", remedy
        )
    else:
        yield Finding("coding-network", "ok", "code of a task reaches no network")


def _network(seen: _SecuritySubject) -> Iterator[Finding]:
    settings = seen.settings
    if settings.soul_allow_private_net:
        level: Level = "warn" if settings.on_loopback() else "fail"
        remedy = "Remove SOUL_ALLOW_PRIVATE_NET from .env."
        yield Finding("private-net", level, "it may fetch from this machine and private networks", remedy)
    else:
        yield Finding("private-net", "ok", "private networks are out of its reach")
    plain = [
        name.upper()
        for name in ("atproto_service_url", "ai_gateway_base_url")
        if _is_plain(str(getattr(settings, name)))
    ]
    if plain:
        message = f"secrets travel unencrypted: {', '.join(plain)}"
        yield Finding("plain-http", "fail", message, "Use https:// there.")
    else:
        yield Finding("plain-http", "ok", "secrets travel encrypted, or not at all")
    password = settings.agent_bluesky_password.get_secret_value()
    if settings.on_loopback() or _APP_PASSWORD.fullmatch(password):
        yield Finding("main-password", "ok", "it logs in with an app password, or on this machine")
    else:
        remedy = "Make an app password in Bluesky's settings, and put it into AGENT_BLUESKY_PASSWORD."
        yield Finding("main-password", "fail", "it logs in with the account's main password", remedy)


def _owner(seen: _SecuritySubject) -> Iterator[Finding]:
    """Compare the owner's handle and DID with the last sender that had either: offline, nothing else is known."""
    name, settings = "owner-did-mismatch", seen.settings
    handle, did = settings.owner_bluesky_social_handle, settings.owner_bluesky_social_handle_did
    if handle == settings.agent_bluesky_username:
        yield Finding(name, "fail", "the SOUL would be its own owner", "Set OWNER_BLUESKY_SOCIAL_HANDLE to yours.")
        return
    met = _asked(seen, lambda connection: received.last_did_of(connection, did=did, handle=handle))
    if met and (met[0], met[1]) != (did, handle):
        message = f"@{met[1]} was met as {met[0]}, but .env says @{handle} is {did}"
        yield Finding(name, "fail", message, "Correct OWNER_BLUESKY_SOCIAL_HANDLE_DID: authority is checked by it.")
        return
    yield Finding(
        name, "ok", "handle and DID were handled together" if met else "nothing speaks against it (`soul doctor` asks)"
    )


def _etiquette(seen: _SecuritySubject) -> Iterator[Finding]:
    settings = seen.settings
    if settings.soul_bot_label:
        yield Finding("bot-label-off", "ok", "its profile says that it is a bot")
    else:
        remedy = "Remove SOUL_BOT_LABEL from .env: the network asks bots to say so."
        yield Finding("bot-label-off", "warn", "its profile does not say that it is a bot", remedy)
    if settings.operator_contact:
        yield Finding("no-operator-contact", "ok", "people can reach you about it")
    else:
        remedy = "Set OPERATOR_CONTACT in .env."
        yield Finding("no-operator-contact", "warn", "its bio does not say how to reach you", remedy)
    name = "approval-off-young-account"
    first = _asked(seen, rows.first_at)
    born = parse_iso(first) if first else seen.now
    if settings.soul_approval != "off" or seen.now - born >= _YOUNG:
        yield Finding(name, "ok", f"approval is {settings.soul_approval}")
    else:
        message = "it has lived here for less than 14 days, and nothing waits for your approval"
        yield Finding(name, "warn", message, "Set SOUL_APPROVAL=strangers until you know it.")


def _cost(seen: _SecuritySubject) -> Iterator[Finding]:
    settings = seen.settings
    if settings.budget_usd_per_day is None:
        remedy = "Set BUDGET_USD_PER_DAY in .env."
        yield Finding("no-usd-cap", "warn", "no cap in dollars: only tokens are counted", remedy)
    else:
        yield Finding("no-usd-cap", "ok", f"at most {settings.budget_usd_per_day:g} USD a day")
    if settings.budget_usd_per_day is None and settings.budget_tokens_per_day >= _NO_CAP_TOKENS:
        message = f"{settings.budget_tokens_per_day:,} tokens a day are no cap"
        yield Finding("budget-off", "fail", message, "Lower BUDGET_TOKENS_PER_DAY in .env.")
    else:
        yield Finding("budget-off", "ok", f"at most {settings.budget_tokens_per_day:,} tokens a day")


def _secrets(seen: _SecuritySubject) -> Iterator[Finding]:
    found, unread = leaks(seen.home, seen.redactor)
    if found:
        remedy = "Take it out of there, and change that password or key."
        for path in found:
            yield Finding("secret-in-files", "fail", f"{path} holds a secret, or what looks like one", remedy)
    else:
        rest = f" ({unread} were too large to read through)" if unread else ""
        yield Finding("secret-in-files", "ok", f"no secret in its files{rest}")


def _standing(seen: _SecuritySubject) -> Iterator[Finding]:
    standing = Control(seen.home.memory).standing()
    for name, given in (("paused", standing.paused), ("safe-mode", standing.safe_mode)):
        if given:
            yield Finding(name, "warn", f"nothing public leaves: {standing}", "`soul resume` ends it.")
        else:
            yield Finding(name, "ok", "off")


_CHECKS: tuple[Callable[[_SecuritySubject], Iterator[Finding]], ...] = (
    _rights,
    _git,
    _process,
    _network,
    _owner,
    _etiquette,
    _cost,
    _secrets,
    _standing,
)


def _private(name: str, path: Path, what: str) -> Finding:
    mode = _mode(path)
    if mode & 0o077:
        remedy = f"chmod go= {shlex.quote(str(path))}"
        return Finding(
            name, "fail", f"others on this machine can read {path.name}, which {what} (mode {mode:o})", remedy
        )
    return Finding(name, "ok", f"{path.name} is yours alone" if path.exists() else f"{path.name} is not there yet")


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _is_plain(url: str) -> bool:
    parts = urlparse(url)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK


def _ask_git(path: Path, *question: str) -> bool:
    """Return whether git, called with fixed words and a path, exits with 0; False without git, or on a timeout."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(path.parent), *question, "--", path.name]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_TIMEOUT_S, check=False)  # noqa: S603 - git
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _asked(seen: _SecuritySubject, question: Callable[[sqlite3.Connection], T]) -> T | None:
    """Return what the database answers; None if there is none, or it cannot be read."""
    try:
        with reading(seen.home.database) as connection:
            return question(connection)
    except (SoulError, sqlite3.Error):
        return None


_MAX_FILE_BYTES = 1024 * 1024
_MAX_BYTES = 3 * 1024 * 1024
_PEEK_BYTES = 1024


def leaks(home: Home, redactor: Redactor) -> tuple[list[Path], int]:
    """Return the files that hold a secret, and how many were not read whole; of a large file, only the end is read.

    SOUL.md and SELF.md come first, then the newest files. The database and the session files, which hold tokens, are
    left out.
    """
    found: list[Path] = []
    unread, left = 0, _MAX_BYTES
    documents = [path for path in (home.soul, home.self_md) if path.is_file()]
    for path in (*documents, *sorted(_texts(home), key=_age)):
        data, whole = _end_of(path, min(_MAX_FILE_BYTES, left))
        left -= len(data)
        unread += not whole
        if b"\0" not in data[:_PEEK_BYTES] and redactor.finds(data.decode(errors="replace")):
            found.append(path)
    return found, unread


def _texts(home: Home) -> Iterator[Path]:
    for folder, _, names in os.walk(home.memory):
        for name in names:
            path = Path(folder, name)
            is_database = name.startswith(home.database.name)
            if (
                path not in {home.session, home.watch_session}
                and not is_database
                and path.is_file()
                and not path.is_symlink()
            ):
                yield path


def _end_of(path: Path, most: int) -> tuple[bytes, bool]:
    """Return at most the last `most` bytes of a file, and whether that is all of it."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            return file.read(most), size <= most
    except OSError:
        return b"", False


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0
