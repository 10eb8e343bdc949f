"""`soul doctor`: checks everything that a SOUL needs, and says for each finding how to correct it.

Changes nothing. Only with `--measure` it asks the model, which counts in the day's budget once there is a database.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import stat
from pathlib import Path
from typing import Annotated

import typer

from adapters.atproto.client import Atproto
from adapters.storage.keys import SKILLS as STORED_SKILLS
from adapters.web.transport import http_transport_factory
from common.clock import SystemClock
from common.errors import ConfigError, SoulError
from common.redact import Redactor
from common.result import Err
from common.settings import Settings, load_settings
from modules.lives.messages.perceive import ACCESS_REMEDY
from modules.runtime.home import Home, SoulDocument, check_self, lock_holder, read_self
from modules.runtime.watched_storage import storage_of
from modules.services.outbox.account import ACCOUNT_REMEDY
from modules.services.presence.policy import message_problem
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import load_phrases
from soul.commands import options
from soul.commands.doctor_model import examine_model
from soul.commands.doctor_outside import examine_outside
from soul.commands.findings import Finding, examine_settings, report, with_deadline
from soul.resources import SKILLS

_MIN_FREE_BYTES = 200 * 1024 * 1024
_MAX_SKEW_S = 60.0


def run_doctor(
    root: options.Home,
    *,
    security: Annotated[bool, typer.Option("--security", help="Check for unsafe settings; needs no network.")] = False,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Also ask the model; a local one gets a prompt of about 13,000 tokens."),
    ] = False,
    as_json: bool = False,
) -> bool:
    """Check, print, and return whether nothing failed; with `measure` ask the model, which costs tokens."""
    if security:
        from soul.commands.doctor_security import run_security  # noqa: PLC0415 - only this option needs it

        return run_security(root, as_json=as_json)
    return report(asyncio.run(examine(root, measure=measure)), as_json=as_json)


async def examine(root: Path, *, measure: bool = False) -> list[Finding]:
    """Return all findings, in the order in which one would correct them."""
    findings = examine_settings(root)
    try:
        settings = load_settings(root)
        home = Home.at(root, settings.memory_dir)
    except SoulError:
        return findings
    owned = f"{settings.agent_name}, owned by @{settings.owner_bluesky_social_handle}"
    findings = findings or [Finding("settings", "ok", owned)]
    findings += [_env_file(home), _soul(home), _self(home), *_voice(home), _skills(), _memory(home), _lock(home)]
    findings += await examine_keeping(settings, home)
    findings += await _bluesky(settings, home)
    findings += await examine_outside(settings, home)
    findings += await examine_model(settings, home, measure=measure)
    redactor = Redactor(settings.secrets)
    return [
        Finding(item.check, item.level, redactor.text(item.message), redactor.text(item.remedy)) for item in findings
    ]


def _env_file(home: Home) -> Finding:
    if not home.env.exists():
        return Finding(".env", "ok", "not there; all settings come from the environment")
    mode = stat.S_IMODE(home.env.stat().st_mode)
    if mode & 0o077:
        return Finding(
            ".env",
            "fail",
            f"others on this machine can read it (mode {mode:o})",
            f"chmod 600 {shlex.quote(str(home.env))}",
        )
    return Finding(".env", "ok", "readable only by you")


def _soul(home: Home) -> Finding:
    try:
        document = SoulDocument(home.soul)
    except SoulError as error:
        return Finding("SOUL.md", "fail", str(error), error.remedy)
    return Finding("SOUL.md", "ok", f"{len(document.text)} characters")


def _self(home: Home) -> Finding:
    try:
        check_self(home)
    except SoulError as error:
        return Finding("SELF.md", "fail", str(error), error.remedy)
    if home.self_md.exists():
        return Finding("SELF.md", "ok", f"{len(read_self(home))} characters")
    return Finding("SELF.md", "warn", "not there yet; it is made from the template at the first start")


def _voice(home: Home) -> list[Finding]:
    """Whether the texts in the SOUL's own words can be used; nothing where it has none, which is no fault."""
    if not home.voice_phrases.exists():
        return []
    try:
        texts = load_phrases(home.voice_phrases)
    except ValueError as error:
        remedy = "Mend it or delete it; until then the SOUL says these things in the words of its skill."
        return [Finding(home.voice_phrases.name, "warn", f"not used: {error}", remedy)]
    return [Finding(home.voice_phrases.name, "ok", f"{len(texts)} texts")]


def _skills() -> Finding:
    try:
        skills = Skills.load(SKILLS)
    except SoulError as error:
        return Finding("skills", "fail", str(error), error.remedy)
    return Finding("skills", "ok", f"{len(skills.names)} skills, all sections and variables present")


def _memory(home: Home) -> Finding:
    folder = home.memory if home.memory.exists() else home.root
    if not folder.exists() or not os.access(folder, os.W_OK):
        return Finding("disk", "fail", f"{folder} cannot be written", "Create it, and give this user write access.")
    free = shutil.disk_usage(folder).free
    if free < _MIN_FREE_BYTES:
        return Finding("disk", "fail", f"only {free // 2**20} MiB free under {folder}", "Free at least 200 MiB.")
    return Finding("disk", "ok", f"{folder} is writable, {free // 2**30} GiB free")


def _lock(home: Home) -> Finding:
    pid = lock_holder(home)
    return Finding("process", "ok", f"awake now, pid {pid}" if pid else "nobody lives here now")


async def _bluesky(settings: Settings, home: Home) -> list[Finding]:
    has_lived = home.database.exists()
    atproto = account_of(settings)
    try:
        return await with_deadline("Bluesky", lambda: _examine_account(atproto, settings, has_lived=has_lived))
    finally:
        await atproto.aclose()


def account_of(settings: Settings) -> Atproto:
    """Return a client with a session of its own: the SOUL's is left alone. The caller closes it."""
    return Atproto(
        service_url=settings.atproto_service_url,
        identifier=settings.agent_bluesky_username,
        password=settings.agent_bluesky_password.get_secret_value(),
        session_path=None,
        clock=SystemClock(),
        min_spacing_s=0,
        transport=http_transport_factory(settings.atproto_service_url, private_ok=settings.soul_allow_private_net),
    )


async def examine_login(atproto: Atproto, settings: Settings) -> Finding:
    """Return whether the account can log in."""
    result = await atproto.authenticate()
    if isinstance(result, Err):
        if result.kind == "auth":
            remedy = "Check AGENT_BLUESKY_USERNAME and AGENT_BLUESKY_PASSWORD (an app password)."
        elif result.kind == "fatal":
            remedy = ACCOUNT_REMEDY
        else:
            remedy = f"Check ATPROTO_SERVICE_URL ({settings.atproto_service_url}) and the network, then try again."
        return Finding("Bluesky", "fail", result.error, remedy)
    return Finding("Bluesky", "ok", f"logged in as @{result.data.handle} ({result.data.did})")


async def _examine_account(atproto: Atproto, settings: Settings, *, has_lived: bool) -> list[Finding]:
    findings = [await examine_login(atproto, settings)]
    if findings[0].level == "fail":
        return findings
    owner = await atproto.resolve_handle(settings.owner_bluesky_social_handle)
    if isinstance(owner, Err):
        findings.append(
            Finding("owner", "warn", f"the owner's handle cannot be looked up: {owner.error}", "Check the handle.")
        )
    elif owner.data != settings.owner_bluesky_social_handle_did:
        message = f"@{settings.owner_bluesky_social_handle} is {owner.data}, but .env says otherwise"
        findings.append(
            Finding("owner", "fail", message, "Correct OWNER_BLUESKY_SOCIAL_HANDLE_DID: authority is checked by it.")
        )
    else:
        findings.append(Finding("owner", "ok", "handle and DID belong together"))
    findings += await _messages(atproto, settings, has_lived=has_lived)
    skew = atproto.server_time_skew()
    if skew is not None and abs(skew) > _MAX_SKEW_S:
        message = f"this machine is {skew:+.0f} s off the service's clock"
        findings.append(Finding("clock", "fail", message, "Set the clock, for example by NTP."))
    elif skew is not None:
        findings.append(Finding("clock", "ok", f"within {abs(skew):.0f} s of the service's"))
    return findings


async def _messages(atproto: Atproto, settings: Settings, *, has_lived: bool) -> list[Finding]:
    """Whether the owner can command it by direct message; nothing where that is off."""
    if not settings.soul_direct_messages:
        return []
    log = await atproto.get_message_log()
    if isinstance(log, Err):
        return [Finding("direct messages", "warn", f"no control by direct message: {log.error}", ACCESS_REMEDY)]
    owner = await atproto.get_profile(settings.owner_bluesky_social_handle_did)
    if isinstance(owner, Err):
        return [Finding("direct messages", "warn", f"the owner's profile cannot be read: {owner.error}", "Try again.")]
    if problem := message_problem(owner.data, settings):
        if not has_lived and not owner.data.barrier:
            return [Finding("direct messages", "ok", "it follows you at its first start; then you can command it so")]
        return [Finding("direct messages", "warn", problem.message, problem.remedy)]
    return [Finding("direct messages", "ok", "you can command it by direct message")]


_DEADLINE_S = 20.0
_STORE_REMEDY = "Check STORAGE_URL, STORAGE_ACCESS_KEY_ID and STORAGE_SECRET_ACCESS_KEY in .env."


async def examine_keeping(settings: Settings, home: Home) -> list[Finding]:
    """A finding for each such place that is set; none where all lies in the home."""
    if not settings.storage_url:
        return []
    try:
        storage = storage_of(settings, home.store, deadline_s=_DEADLINE_S)
    except ConfigError:
        return []  # NOTE(self): told among the settings
    try:
        listed = await storage.list(STORED_SKILLS)
    finally:
        await storage.aclose()
    if isinstance(listed, Err):
        return [Finding("store", "fail", listed.error, _STORE_REMEDY)]
    return [Finding("store", "ok", "it can be read")]
