"""What `soul doctor` and `soul init` say of the model: whether its service has it, and whether it answers."""

from __future__ import annotations

import asyncio
import random
from difflib import get_close_matches

from adapters.web.transport import http_transport_factory
from common.clock import SystemClock
from common.errors import BudgetExceeded, PolicyBlocked, SoulError, StorageError
from common.redact import Redactor
from common.settings import Settings
from common.wording import number
from modules.runtime.budget.build import build_budget, load_prices
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.llm.budget_guard import BudgetGuard, NoBudgetGuard
from modules.runtime.llm.connection import Connection
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.policy import is_own_service, refusal
from modules.runtime.llm.types import ChatResult, Message
from modules.services.skills.skills import Skills
from soul.commands.findings import CALL_DEADLINE_S, Finding, Level, with_deadline
from soul.resources import SKILLS

_PROBE_TOKENS = 256
_MEASURED_TOKENS = 10_000
_NO_LIST = {404, 405, 501}
_MEASURE = "`soul doctor --measure` asks it a question"
_ADDRESS = "Check AI_GATEWAY_BASE_URL and AI_GATEWAY_MODEL, and that the service is up."


async def examine_model(settings: Settings, home: Home, *, measure: bool) -> list[Finding]:
    """Return whether the service has the model; with `measure` ask it, which costs tokens that are counted."""
    if not measure:
        return await with_deadline("model", lambda: _look_up(settings))
    return await _ask_and_count(settings, home)


async def _look_up(settings: Settings) -> list[Finding]:
    """Return whether the service lists the model, which costs no tokens."""
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
            return [Finding("model", "ok", f"not looked up, as the service lists no models; {_MEASURE}")]
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
    """Return whether the model answers, and unless `is_short` whether a service nearby keeps a long prompt whole."""
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
    """Whether the service kept all of a long prompt: no tokenizer makes fewer tokens of it than it has words."""
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
