"""`soul prompt`: what the model is told before anything else, part by part, and what had no room.

Reads what lies on this machine, and changes nothing; the SOUL may be awake or not. What only a turn knows is left out:
which memories come to mind for it, which services ail, what it woke up with.
"""

from __future__ import annotations

import asyncio
import json
import platform
import random
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.clock import SystemClock
from common.constants import LLM_MAX_OUTPUT_TOKENS
from common.errors import PolicyBlocked
from common.settings import Settings, load_settings
from common.version import __version__
from modules.database import Database
from modules.foreign_text import Framer
from modules.home import Home, SoulDocument, lock_holder
from modules.memory.profiles import profile_block, profile_of
from modules.memory.recall import Telling
from modules.memory.sqlite_store import SqliteMemories
from modules.memory.view_sync import DayFiles, DayText
from modules.prompt import rows
from modules.prompt.bootstrap import history_budget
from modules.prompt.core import Core
from modules.prompt.estimate import Estimator
from modules.prompt.prompter import Notice, Prompter, TurnPrompt
from modules.prompt.sources import Sources
from modules.prompt.tools_file import parse_tools_file
from modules.prompt.types import Audience
from modules.prompt.words import Runtime
from modules.skill_contracts import SKILL_CONTRACTS
from modules.skills import SYSTEM_SECTION, Skills
from modules.tools.types import Provenance
from modules.workspace import LocalWorkspace, Workspace
from soul.resources import SKILLS
from soul.terminal.plain import visible

_TASKS: Mapping[Audience, str] = {"owner": "owner-communication", "bluesky": "bluesky-response", "space": "grounding"}
_KNOWN_IN_A_TURN = "…"


@dataclass(frozen=True, slots=True)
class Preview:
    """A prompt as it would be now. `history` is None where no conversation fits, and `problem` says why."""

    audience: Audience
    prompt: TurnPrompt
    budget: int
    tool_tokens: int
    history: int | None
    problem: str
    notices: tuple[Notice, ...]


def run_prompt(root: Path, audience: Audience, *, as_json: bool, text: bool) -> None:
    """Print it. Raises `ConfigError` without settings, `IdentityError` without SOUL.md."""
    settings = load_settings(root)
    preview = asyncio.run(_look(settings, Home.at(root, settings.memory_dir), audience))
    if as_json:
        sys.stdout.write(json.dumps(_as_json(preview, text=text), ensure_ascii=False, indent=2) + "\n")
    elif text:
        sys.stdout.write("".join(f"{visible(line)}\n" for line in preview.prompt.text.splitlines()))
    else:
        sys.stdout.write("".join(f"{visible(line)}\n" for line in _lines(preview)))


async def _look(settings: Settings, home: Home, audience: Audience) -> Preview:
    skills = Skills.load(SKILLS, SKILL_CONTRACTS)
    estimator = Estimator(home.memory / "token-ratios.json", model=settings.ai_gateway_model)
    notices: list[Notice] = []

    async def tell(notice: Notice) -> None:
        notices.append(notice)

    workspace = LocalWorkspace(home, lambda line: notices.append(Notice("warn", line, "it is left out")))
    async with _sources(settings, home, workspace, skills, estimator) as sources:
        prompter = Prompter(
            home=home,
            soul=SoulDocument(home.soul),
            core=Core(SKILLS, skills),
            skills=skills,
            sources=sources,
            runtime=_runtime(settings, home),
            budget=settings.bootstrap_max_tokens,
            estimate=estimator.estimate,
            tell=tell,
            timezone=settings.soul_timezone,
        )
        prompt = await prompter.prompt(
            skill=_TASKS[audience],
            variables=_variables(settings, _TASKS[audience]),
            audience=audience,
            session_key=f"{audience}:",
            now=SystemClock().now(),
        )
    _, tool_chars = parse_tools_file(await workspace.read(rows.TOOLS) or "")
    tools = estimator.estimate("x" * tool_chars)
    history, problem = _history(settings, prompt, tools)
    return Preview(audience, prompt, settings.bootstrap_max_tokens, tools, history, problem, tuple(notices))


@asynccontextmanager
async def _sources(
    settings: Settings, home: Home, workspace: Workspace, skills: Skills, estimator: Estimator
) -> AsyncIterator[Sources]:
    """The files, and what the database knows where there is one on this machine."""

    async def read(name: str) -> str:
        return await workspace.read(name) or ""

    async def tools_md() -> str:
        return parse_tools_file(await read(rows.TOOLS))[0]

    async def prosoche(*, public: bool) -> str:
        return "" if public else await read(rows.PROSOCHE)

    database = await Database.beside(home.database) if home.database.exists() else None
    telling = Telling(skills, Framer(skills, random.Random()), settings.soul_timezone)
    clock = SystemClock()

    async def profile(*, public: bool) -> str:
        if database is None:
            return ""
        return profile_block(await database.run(profile_of), skills, estimator.estimate, public_only=public)

    async def daily(*, public: bool, least: Provenance) -> Sequence[DayText]:
        if database is None or settings.database_url.get_secret_value():
            return ()
        store = SqliteMemories(database)
        days = DayFiles(store=store, files=workspace, clock=clock, timezone=settings.soul_timezone)
        return await days.told(telling, public_only=public, least=least)

    try:
        yield Sources(
            workspace=workspace,
            profile=profile,
            memory_md=lambda: read(rows.MEMORY),
            daily=daily,
            prosoche=prosoche,
            tools_md=tools_md,
        )
    finally:
        if database is not None:
            await database.close()


def _runtime(settings: Settings, home: Home) -> Runtime:
    mode = "asleep" if lock_holder(home) is None else "awake"
    return Runtime(settings.agent_name, platform.node(), __version__, lambda: mode, lambda: settings.ai_gateway_model)


def _variables(settings: Settings, skill: str) -> dict[str, str]:
    """What the skill's prompt takes, as far as it is known outside a turn."""
    known = {
        "bluesky_username": settings.agent_bluesky_username,
        "owner_handle": settings.owner_bluesky_social_handle,
    }
    return {name: known.get(name, _KNOWN_IN_A_TURN) for name in SKILL_CONTRACTS[skill][SYSTEM_SECTION]}


def _history(settings: Settings, prompt: TurnPrompt, tools: int) -> tuple[int | None, str]:
    try:
        budget = history_budget(
            context_tokens=settings.context_tokens,
            bootstrap_tokens=sum(part.tokens for part in prompt.parts),
            tool_tokens=tools,
            max_output_tokens=LLM_MAX_OUTPUT_TOKENS,
            parts=prompt.parts,
        )
    except PolicyBlocked as error:
        return None, str(error)
    return budget, ""


def _as_json(preview: Preview, *, text: bool) -> dict[str, Any]:
    prompt = preview.prompt
    found: dict[str, Any] = {
        "for": preview.audience,
        "budget": preview.budget,
        "tokens": sum(part.tokens for part in prompt.parts),
        "parts": [asdict(part) for part in prompt.parts],
        "truncated": list(prompt.truncated),
        "dropped": list(prompt.dropped),
        "toolTokens": preview.tool_tokens,
        "historyTokens": preview.history,
        "notices": [asdict(notice) for notice in preview.notices],
    }
    return found | {"blocks": [asdict(block) for block in prompt.blocks]} if text else found


def _lines(preview: Preview) -> list[str]:
    prompt = preview.prompt
    total = sum(part.tokens for part in prompt.parts)
    lines = [f"For {preview.audience}: about {total} of {preview.budget} tokens"]
    lines += [
        f"  {part.group:<11}  {part.tokens:>6}  {part.chars:>7} characters  {part.name}"
        + ("  (cut)" if part.name in prompt.truncated else "")
        for part in prompt.parts
    ]
    lines += [f"  left out: {name}" for name in prompt.dropped]
    lines += [f"  {notice.summary} ({notice.reason})" for notice in preview.notices]
    if preview.history is None:
        return [*lines, f"  {preview.problem}"]
    tools = f"all tools take {preview.tool_tokens}" if preview.tool_tokens else "without tools"
    return [*lines, f"  room for about {preview.history} tokens of conversation ({tools})"]
