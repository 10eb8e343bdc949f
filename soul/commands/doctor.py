"""`soul doctor`: checks everything that a SOUL needs, and says for each finding how to correct it.

It changes nothing. It asks the model only with `--measure`, which counts in the day's budget once there is a database.
"""

import asyncio
import os
import random
import shlex
import shutil
import stat
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated
from urllib.parse import urlparse

import typer

from adapters.atproto.client import Atproto
from adapters.github.client import GitHub
from adapters.github.types import Repo
from adapters.storage.objects import SKILLS as STORED_SKILLS
from adapters.web.client import http_transport_factory
from common.clock import SystemClock
from common.errors import BudgetExceeded, ConfigError, PolicyBlocked, SoulError, StorageError
from common.redact import Redactor
from common.result import Err, Ok
from common.settings import Settings, load_settings, owner_mistake
from common.wording import number
from modules.lives.messages.perceive import ACCESS_REMEDY
from modules.runtime.budget.budget import build_budget, load_prices
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.home import Home, lock_holder
from modules.runtime.journal.rows import Journal
from modules.runtime.llm.connection import BudgetGuard, Connection, NoBudgetGuard
from modules.runtime.llm.dialect import ChatResult, Message
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.policy import is_own_service, refusal
from modules.runtime.watched_storage import storage_of
from modules.services.day.situation import takes_no_tasks
from modules.services.outbox.account import ACCOUNT_REMEDY
from modules.services.peers.github_account import (
    AccountProblem,
    check_account,
    lacks_vital_right,
    problem_of_login,
    problem_of_shared_account,
    problems_of_rights,
    told_rights,
)
from modules.services.peers.registry import REGISTRY_FILE, read_peers
from modules.services.presence.policy import message_problem
from modules.services.skills.skills import Skills
from modules.services.voice_phrases import load_phrases
from modules.services.workspaces.watched import WorkspaceFinder
from soul.commands import options
from soul.commands.findings import (
    CALL_DEADLINE_S,
    Finding,
    Level,
    examine_identity,
    examine_settings,
    report,
    with_deadline,
)
from soul.commands.self_ import own_skills
from soul.resources import SKILLS

_PROBE_TOKENS = 256
_MEASURED_TOKENS = 10_000
_NOT_FOUND = 404
_NO_LIST = {_NOT_FOUND, 405, 501}
_MEASURE = "`soul doctor --measure` asks it a question"
_ADDRESS = "Check AI_GATEWAY_BASE_URL and AI_GATEWAY_MODEL, and that the service is up."


async def examine_model(settings: Settings, home: Home, *, measure: bool) -> list[Finding]:
    """Check whether the service lists the model or, with `measure`, answers; the tokens of the answer are counted."""
    if not measure:
        return await with_deadline("model", lambda: _look_up(settings))
    return await _ask_and_count(settings, home)


async def _look_up(settings: Settings) -> list[Finding]:
    """Check whether the service lists the model, which costs no tokens."""
    model = settings.ai_gateway_model
    connection = Connection(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        transport=http_transport_factory(settings.ai_gateway_base_url, private_ok=settings.soul_allow_private_net),
        clock=SystemClock(),
        idle_timeout_s=CALL_DEADLINE_S,
    )
    try:
        await connection.open()
        names = await connection.model_names()
    except Exception as error:
        verdict, _ = connection.judge(error)
        if verdict.status in _NO_LIST:
            told = f"not looked up, as the service lists no models; {_MEASURE}"
            if verdict.status == _NOT_FOUND:
                remedy = "Check AI_GATEWAY_BASE_URL: the address nearly always ends with /v1."
                return [Finding("model", "warn", told, remedy)]
            return [Finding("model", "ok", told)]
        refused = refusal(verdict, model)
        return [Finding("model", "fail", str(refused), refused.remedy or _ADDRESS)]
    finally:
        await connection.aclose()
    if model in names:
        return [Finding("model", "ok", f"the service has {model}; {_MEASURE}")]
    similar = get_close_matches(model, names, n=1)
    meant = f"; did you mean {similar[0]}?" if similar else ""
    lacks = f"{model} is not among the {number(len(names))} models that the service lists{meant}"
    return [Finding("model", "warn", lacks, f"Check AI_GATEWAY_MODEL; {_MEASURE}.")]


async def _ask_and_count(settings: Settings, home: Home) -> list[Finding]:
    if 0 in {settings.budget_tokens_per_day, settings.budget_usd_per_day}:
        remedy = "Raise BUDGET_… in .env to let it think."
        return [Finding("model", "warn", "not asked: the budget of a day is 0", remedy)]
    if not home.database.exists():
        return await ask_model(settings, NoBudgetGuard())
    try:
        database = await Database.beside(home.database)
    except SoulError as error:
        message = f"not asked, as it could not be counted: {error}"
        return [Finding("model", "fail" if isinstance(error, StorageError) else "warn", message, error.remedy)]
    clock = SystemClock()
    try:
        journal = Journal(database, SilentConsole(), clock, Redactor(settings.secrets))
        prices = await load_prices(settings, clock)
        budget = build_budget(settings, prices, database=database, journal=journal, clock=clock)
        return await ask_model(settings, budget)
    except SoulError as error:
        return [Finding("model", "fail", f"not asked: {error}", error.remedy)]
    finally:
        await database.close()


async def ask_model(settings: Settings, budget_guard: BudgetGuard, *, is_short: bool = False) -> list[Finding]:
    """Check whether the model answers and, unless `is_short`, whether a local service keeps a long prompt whole."""
    gateway = LLMGateway(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        model=settings.ai_gateway_model,
        clock=SystemClock(),
        rng=random.Random(),
        console=SilentConsole(),
        max_retries=0,
        budget_guard=budget_guard,
        transport=http_transport_factory(settings.ai_gateway_base_url, private_ok=settings.soul_allow_private_net),
    )

    skills = Skills.load(SKILLS)
    probe = [Message("user", skills.render("core", "Probe"))]

    async def answer(system: str = "") -> ChatResult:
        return await gateway.chat_with_tools(
            probe, system=system, max_tokens=_PROBE_TOKENS, purpose="doctor", importance="owner"
        )

    async def ask() -> list[Finding]:
        try:
            text = (await answer()).text
        except BudgetExceeded as error:
            return [Finding("model", "warn", f"not asked: {error}", error.remedy)]
        except SoulError as error:
            remedy = error.remedy or _ADDRESS
            return [Finding("model", "fail", str(error), remedy)]
        return [Finding("model", "ok", f"{settings.ai_gateway_model} answered {len(text)} characters")]

    async def measure() -> list[Finding]:
        rules = skills.render("core", "Ground Rules")
        size = min(_MEASURED_TOKENS, settings.context_tokens // 2)
        long = "\n\n".join([rules] * (size // len(rules.split())))
        try:
            async with asyncio.timeout(CALL_DEADLINE_S):
                counted = (await answer(long)).usage.input_tokens
        except TimeoutError:
            return [Finding("context", "warn", f"not measured: no answer to a long prompt in {CALL_DEADLINE_S:.0f} s")]
        except SoulError as error:
            level: Level = "fail" if isinstance(error, PolicyBlocked) else "warn"
            return [Finding("context", level, f"a long prompt was not answered: {error}", error.remedy)]
        return [_context(settings.ai_gateway_model, len(long.split()), counted)]

    try:
        found = await with_deadline("model", ask)
        if not is_short and found[0].level == "ok" and is_own_service(settings.ai_gateway_base_url):
            found += await measure()
        return found
    finally:
        await gateway.aclose()


def _context(model: str, words: int, counted: int) -> Finding:
    """Return whether the service kept a long prompt whole: no tokenizer counts fewer tokens than words in it."""
    if not counted:
        return Finding("context", "ok", f"the service does not count what {model} is sent")
    if counted >= words:
        return Finding("context", "ok", f"{model} kept a prompt of {number(counted)} tokens whole")
    return Finding(
        "context",
        "warn",
        f"{model} counted {number(counted)} tokens of a prompt of at least {number(words)}: its service cuts what it is"
        " sent, instructions first, or counts wrongly",
        f"Give the service a larger window (Ollama: num_ctx, llama.cpp: -c), or set CONTEXT_TOKENS={counted} in .env.",
    )


_CONNECT_DEADLINE_S = 10.0
_USUAL_PORTS = {"ws": 80, "wss": 443}


async def examine_outside(settings: Settings, home: Home) -> list[Finding]:
    """Return the findings for the room, if one is set, and those for GitHub."""
    found = [await _room(settings)] if settings.space_url else []
    if settings.soul_approval == "drafts" and settings.soul_approval_room:
        silent = "it is silent in rooms: each message there would need your approval, and chat cannot wait"
        found.append(Finding("room", "warn", silent, "Set SOUL_APPROVAL_ROOM=off to let it answer the host of a room."))
    return [*found, *await examine_github(settings, home)]


async def _room(settings: Settings) -> Finding:
    """Check whether something listens at SPACE_URL, without joining, which everybody in the room would see."""
    url = urlparse(settings.space_url)
    port = url.port or _USUAL_PORTS[url.scheme]
    try:
        async with asyncio.timeout(_CONNECT_DEADLINE_S):
            _, writer = await asyncio.open_connection(url.hostname, port)
    except (TimeoutError, OSError) as error:
        why = getattr(error, "strerror", "") or "no answer"
        return Finding("room", "warn", f"nobody answers at {url.hostname}:{port} ({why})", "Start it: soul space")
    writer.close()
    return Finding("room", "ok", f"something listens at {url.hostname}:{port}")


async def examine_github(settings: Settings, home: Home) -> list[Finding]:
    """Check the GitHub account, the rights of its token, and the workspace and repositories of the settings."""
    login, token = settings.agent_github_username, settings.agent_github_token.get_secret_value()
    if not login and not token:
        return [Finding("GitHub", "ok", "not set: it makes no commitment that needs GitHub")]
    if not (login and token):
        missing = "AGENT_GITHUB_TOKEN" if login else "AGENT_GITHUB_USERNAME"
        return [Finding("GitHub", "fail", f"{missing} is missing", "Set both in .env, or neither.")]
    github = GitHub(
        api_url=settings.github_api_url,
        login=login,
        token=token,
        clock=SystemClock(),
        min_spacing_s=0,
        transport=http_transport_factory(settings.github_api_url, private_ok=settings.soul_allow_private_net),
    )
    try:
        found = await check_account(github)
        workspace = [await _workspace(settings, github)] if settings.workspace_org else []
        workspace += [await _place(settings, github, name) for name in _PLACES if getattr(settings, name.lower())]
    finally:
        await github.aclose()
    if isinstance(found, AccountProblem):
        return [Finding("GitHub", "fail", found.message, found.remedy)]
    level: Level = "fail" if lacks_vital_right(found) else "warn"
    other = problem_of_login(github)
    findings = [
        Finding("GitHub", "fail", other.message, other.remedy)
        if other
        else Finding("GitHub", "ok", f"logged in as {found.login}"),
        Finding("GitHub token", "ok", told_rights(found)),
        *(Finding("GitHub token", level, one.message, one.remedy) for one in problems_of_rights(found)),
    ]
    shared = problem_of_shared_account(found.login, read_peers(home.memory / REGISTRY_FILE))
    sharing = [Finding("GitHub account", "warn", shared.message, shared.remedy)] if shared else []
    return [*findings, *workspace, *sharing]


_PLACES = ("SOUL_MAKER_REPOSITORY", "SOUL_PROGRAM_REPOSITORY")


async def _place(settings: Settings, github: GitHub, setting: str) -> Finding:
    """Check whether the SOUL can open issues in the repository of `setting` and, for its program, push to it."""
    name, is_program = getattr(settings, setting.lower()), setting == _PLACES[1]
    read = await github.get_repository(Repo(*name.split("/")))
    if isinstance(read, Err):
        return Finding(setting, "warn", f"{name} cannot be read: {read.error}", f"Check {setting}.")
    if read.data.archived or not read.data.has_issues:
        lacks = "is archived" if read.data.archived else "has its issues switched off, as forks have at first"
        return Finding(setting, "warn", f"{name} {lacks}", f"Switch issues on in its settings, or change {setting}.")
    if is_program and not read.data.can_push:
        return Finding(
            setting, "warn", f"the account may not push to {name}", "Let it write there, or name its own fork."
        )
    return Finding(setting, "ok", f"issues can be opened in {name}{', and branches pushed' if is_program else ''}")


async def _workspace(settings: Settings, github: GitHub) -> Finding:
    """Return where the workspace of the organisation is or, if there is none, whether the template can make one."""
    org, template = settings.workspace_org, settings.workspace_template
    url = await WorkspaceFinder(github, SystemClock()).get_workspace_url(org)
    if isinstance(url, Err):
        return Finding("workspace", "warn", f"{org} cannot be looked through: {url.error}", "Check WORKSPACE_ORG.")
    if url.data:
        return Finding("workspace", "ok", f"that of {org} is {url.data}")
    owner, _, name = template.partition("/")
    read = await github.get_repository(Repo(owner, name))
    if isinstance(read, Ok) and read.data.is_template:
        return Finding("workspace", "ok", f"{org} has none; it can be made from {template} when you ask for it")
    problem = read.error if isinstance(read, Err) else f"{template} is no template repository"
    return Finding("workspace", "warn", f"{org} has none, and none can be made: {problem}", "Check WORKSPACE_TEMPLATE.")


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
    findings += [
        _env_file(home),
        *examine_identity(home),
        *_voice(home),
        _skills(),
        *_own_skills(home),
        _memory(home),
        _lock(home),
    ]
    if takes_none := takes_no_tasks(settings):
        findings.append(Finding("tasks", "ok", takes_none))
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


def _voice(home: Home) -> list[Finding]:
    """Check whether the texts in the SOUL's own words can be used; return nothing if it has none, which is allowed."""
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


def _own_skills(home: Home) -> list[Finding]:
    remedy = "Mend its file in the workspace, or delete it; all others are used."
    return [Finding("own skills", "warn", one, remedy) for one in own_skills(home) if isinstance(one, str)]


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
    """Return a client with a session of its own, apart from that of the SOUL. The caller closes it."""
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
    """Check whether the account can log in."""
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
    if mistake := owner_mistake(settings, atproto.did):
        findings.append(Finding("owner", "fail", str(mistake), mistake.remedy))
    elif isinstance(owner, Err):
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
    """Check whether the owner can command the SOUL by direct message; return nothing if that is switched off."""
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
    """Check whether the store at STORAGE_URL can be read; return nothing if the store is in the home."""
    if not settings.storage_url:
        return []
    try:
        storage = storage_of(settings, home.store, deadline_s=_DEADLINE_S)
    except ConfigError:
        return []  # NOTE(self): reported with the settings
    try:
        listed = await storage.list(STORED_SKILLS)
    finally:
        await storage.aclose()
    if isinstance(listed, Err):
        return [Finding("store", "fail", listed.error, _STORE_REMEDY)]
    return [Finding("store", "ok", "it can be read")]
