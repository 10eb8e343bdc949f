"""`soul prompt`: shows the prompt of the next turn, part by part, and what had no room. Writes nothing.

It reads a temporary copy of `soul.db`; files, store and server are only read. It lists what only a running SOUL knows.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from common.clock import Clock, SystemClock
from common.constants import TEXT_MAX_BYTES
from common.errors import PolicyBlocked, Transient
from common.files import read_bounded
from common.provenance import Provenance
from common.redact import Redactor
from common.session_keys import OWNER_SESSION, is_main
from common.settings import Settings, load_settings
from common.wording import LineKind, group, number, part_name
from modules.lives.bluesky.respond import RESPONSE_TOOLS
from modules.runtime.database.database import Database
from modules.runtime.database.file import copy
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home, SoulDocument, lock_holder
from modules.runtime.journal.rows import Journal
from modules.runtime.service_health import ServiceHealth
from modules.services.agent import onboarding
from modules.services.agent.attention_list import AttentionList, AttentionNeeds
from modules.services.agent.prompt.fitting import Audience, room_beside
from modules.services.agent.prompt.prompter import PromptNotice, TurnPrompt
from modules.services.agent.prompt.sources import (
    BOOT,
    BOOTSTRAP,
    DEGRADED,
    MEMORY,
    MOMENT,
    RECALLED,
    RUNTIME,
    SELF,
    TASK,
    Sources,
    rows_for,
)
from modules.services.agent.wakeup.context import page, wakeup_file
from modules.services.commitments.naming import QueuedCommitment
from modules.services.commitments.policy import attention_of
from modules.services.commitments.queue import commitments_in
from modules.services.day.gathering import DayReader
from modules.services.owner_files import OwnerFiles
from modules.services.relationships import read_reflection
from modules.services.skills.skills import SYSTEM_SECTION, Skills
from modules.services.wiring import Knowledge, build_sources, open_stores, prompter_over
from soul.commands.options import PromptAudience
from soul.resources import SKILLS
from soul.terminal.output import write_json, write_lines

_UNKNOWN = "…"
_RATIOS = "token-ratios.json"


@dataclass(frozen=True, slots=True)
class _Kind:
    """The turns of an audience: their skill, lowest provenance and conversation, and what the preview assumes."""

    skill: str
    least: Provenance
    session_key: str
    assumed: str


_KINDS: Mapping[Audience, _Kind] = {
    "owner": _Kind("owner-communication", Provenance.OWNER, OWNER_SESSION, "Shown for a new conversation"),
    "bluesky": _Kind(
        "bluesky-response", Provenance.STRANGER, "bluesky:", "Shown for an answer to a post of a stranger"
    ),
    "space": _Kind("", Provenance.STRANGER, "space:", "Shown without a task: each message in the room brings its own"),
}


@dataclass(frozen=True, slots=True)
class Preview:
    """A prompt as it would be now.

    Attributes:
        audience: who can read the result of the turn.
        budget: how many tokens the prompt may have.
        history: how many tokens remain for conversation and tools; None if none do, and `problem` says why.
        problem: "" if there is none.
        unknown: what only a turn knows, one line each.
        notices: what the owner should know.

    """

    audience: Audience
    prompt: TurnPrompt
    budget: int
    history: int | None
    problem: str
    unknown: tuple[str, ...]
    notices: tuple[PromptNotice, ...]


class _CollectedNotices:
    """A console that collects its lines as notices."""

    def __init__(self) -> None:
        self.notices: list[PromptNotice] = []

    def line(self, kind: LineKind, message: str, detail: str = "") -> None:
        self.notices.append(PromptNotice("error" if kind == "error" else "warn", message, detail))

    async def tell(self, notice: PromptNotice) -> None:
        self.notices.append(notice)


async def look(settings: Settings, home: Home, audience: Audience, about: str, clock: Clock) -> Preview:
    """Return the prompt of a turn about the words `about`, "" if they are not known yet.

    Raises:
        IdentityError: there is no SOUL.md.
        ConfigError: the database is of another version.

    """
    async with AsyncExitStack() as stack:
        scratch = Home(home.root, Path(stack.enter_context(TemporaryDirectory(prefix="soul-prompt-"))))
        await asyncio.to_thread(_fill, home, scratch)
        database = await Database.open(scratch.database, MIGRATIONS)
        stack.push_async_callback(database.close)
        return await _PreviewLook(settings, home, clock, scratch, database).at(audience, about, stack)


class _PreviewLook:
    """Builds one preview. `scratch` is the home with a copy of its memory."""

    def __init__(self, settings: Settings, home: Home, clock: Clock, scratch: Home, database: Database) -> None:
        self._settings = settings
        self._home = home
        self._clock = clock
        self._scratch = scratch
        self._database = database
        self._awake = lock_holder(home) is not None
        self._collected = _CollectedNotices()
        self._skills = Skills.load(SKILLS)
        self._by_hand = False

    async def at(self, audience: Audience, about: str, stack: AsyncExitStack) -> Preview:
        knowledge, kind, settings = self._knowledge(stack), _KINDS[audience], self._settings
        first = await self._first_talk_due(knowledge.stores.owner_files)
        skill = onboarding.SKILL if first and audience == "owner" else kind.skill
        prompter = prompter_over(
            settings,
            self._home,
            SoulDocument(self._home.soul),
            self._skills,
            self._sources(knowledge, await self._database.run(commitments_in), first=first),
            estimator=knowledge.stores.estimator,
            tell=self._collected.tell,
        )
        prompt = await prompter.prompt(
            skill=skill,
            variables=self._variables(skill),
            audience=audience,
            session_key=kind.session_key,
            query=about,
            now=self._clock.now(),
            least=kind.least,
            moment=self._moment(skill),
            began=self._clock.now() if audience == "owner" else None,
        )
        wanted = rows_for(audience, onboarding=first)
        unknown = [kind.assumed, *self._unknown(wanted, skill, about)]
        if prompt.provenance is not None:
            unknown.append("The marks around other people's words differ in each turn")
        room, problem = _room(settings, prompt)
        notices = tuple(self._collected.notices)
        return Preview(audience, prompt, settings.bootstrap_max_tokens, room, problem, tuple(unknown), notices)

    def _knowledge(self, stack: AsyncExitStack) -> Knowledge:
        """Return the knowledge as a running SOUL builds it."""
        settings, database, clock = self._settings, self._database, self._clock
        health = ServiceHealth(clock, console=self._collected, timezone=settings.soul_timezone)
        stores = open_stores(
            settings, self._scratch, database=database, health=health, console=self._collected, clock=clock, stack=stack
        )
        redactor = Redactor(settings.secrets)
        return Knowledge(
            settings,
            stores,
            database=database,
            skills=self._skills,
            journal=Journal(database, self._collected, clock, redactor),
            console=self._collected,
            redactor=redactor,
            clock=clock,
        )

    def _sources(self, knowledge: Knowledge, commitments: Sequence[QueuedCommitment], *, first: bool) -> Sources:
        async def memory_md() -> str:
            text, self._by_hand = await knowledge.memory_file.seen()
            return text

        async def situation() -> AttentionNeeds:
            found = await self._database.run(DayReader(self._settings, self._home, self._clock).situation)
            return found.attention

        async def woken_with(session_key: str) -> str:
            left = page(wakeup_file(self._home.memory), main=is_main(session_key))
            return "" if self._awake or not left.exists() else await asyncio.to_thread(_text, left)

        async def reflection() -> AttentionNeeds:
            return AttentionNeeds(reflection=read_reflection(self._home.memory / "relationships.json"))

        async def due() -> AttentionNeeds:
            return attention_of(commitments, self._clock.now())

        attention_list = AttentionList(
            sources=(
                situation,
                reflection,
                due,
            ),
            skills=self._skills,
            files=knowledge.stores.owner_files,
            timezone=self._settings.soul_timezone,
        )
        return build_sources(
            self._settings,
            self._skills,
            random.Random(),
            knowledge,
            memory_md=memory_md,
            attention_list=attention_list,
            wakeup_context=woken_with,
            onboarding=lambda: first,
            counted=False,
        )

    async def _first_talk_due(self, owner_files: OwnerFiles) -> bool:
        """Return whether the first conversation would be due for a SOUL that wakes now."""
        try:
            there = await owner_files.read(onboarding.BOOTSTRAP_FILE) is not None
        except Transient as error:
            self._collected.notices.append(
                PromptNotice("warn", f"{onboarding.BOOTSTRAP_FILE} cannot be seen now", str(error))
            )
            return False
        return there and not await self._database.run(onboarding.held)

    def _variables(self, skill: str) -> dict[str, object]:
        """Return the variables of the task; `…` stands for those that only a turn knows."""
        if not skill:
            return {}
        settings = self._settings
        known = {
            "bluesky_username": settings.agent_bluesky_username,
            "owner_handle": settings.owner_bluesky_social_handle,
            "github_username": settings.agent_github_username,
            "tools": RESPONSE_TOOLS,
        }
        return {name: known.get(name, _UNKNOWN) for name in self._skills.variables(skill, SYSTEM_SECTION)}

    def _moment(self, skill: str) -> str:
        """Return the section on how things stand, with `…` for what only a turn knows."""
        section = "How Things Stand"
        told = bool(skill) and section in self._skills.section_names(skill)
        approval = self._settings.soul_approval
        return (
            self._skills.render(skill, section, situation=_UNKNOWN, approval=approval, written="", is_message=False)
            if told
            else ""
        )

    def _unknown(self, wanted: Collection[str], skill: str, about: str) -> Iterator[str]:
        """Yield a line for each of the `wanted` parts that only a turn of the running SOUL knows in full."""
        for name, value in sorted(self._variables(skill).items()):
            if value == _UNKNOWN:
                yield f"{TASK} {skill}: {_UNKNOWN} stands for the {name}, which each turn fills in"
        for name, unknown, what in (
            (
                BOOTSTRAP,
                self._awake,
                "left out of the real prompt if you postponed the first conversation (/later)",
            ),
            (SELF, not self._home.self_md.exists(), "written at the first start"),
            (MEMORY, self._by_hand, "edited by hand; the next turn reads the change into the memory"),
            (DEGRADED, True, "the real prompt lists them; this preview cannot know them"),
            (BOOT, self._awake, "the real prompt has it only until it was told once"),
            (RECALLED, not about.strip(), "they depend on the words of the turn; try --about WORDS"),
            (MOMENT, True, f"{_UNKNOWN} stands for what the real turn fills in"),
            (RUNTIME, True, "the time is now"),
        ):
            if unknown and name in wanted:
                yield f"{name}: {what}"


def _fill(home: Home, scratch: Home) -> None:
    """Copy what a prompt needs of the memory into the scratch home; link the store, which is only read."""
    if home.database.exists():
        copy(home.database, scratch.database)
    if (learned := home.memory / _RATIOS).exists():
        shutil.copyfile(learned, scratch.memory / _RATIOS)
    scratch.store.symlink_to(home.store, target_is_directory=True)


def _text(path: Path) -> str:
    try:
        return read_bounded(path, TEXT_MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Transient(f"{path.name} cannot be read") from error


def _room(settings: Settings, prompt: TurnPrompt) -> tuple[int | None, str]:
    try:
        return room_beside(prompt.parts, context_tokens=settings.context_tokens, tool_tokens=0), ""
    except PolicyBlocked as error:
        return None, str(error)


def run_prompt(
    root: Path,
    audience: Annotated[
        PromptAudience, typer.Option("--for", help="Who reads the answer: you, Bluesky or the room.")
    ] = PromptAudience.OWNER,
    *,
    text: Annotated[bool, typer.Option("--text", help="Print the whole text instead of the sizes.")] = False,
    about: Annotated[
        str, typer.Option("--about", metavar="WORDS", help="Words of the turn, to recall memories by.")
    ] = "",
    as_json: bool,
) -> None:
    """Print the prompt of a turn about the words `about`, "" if they are not known yet.

    With `text`, what only a turn knows goes to standard error. Raises `ConfigError` without settings, `IdentityError`
    without SOUL.md.
    """
    settings = load_settings(root)
    preview = asyncio.run(look(settings, Home.at(root, settings.memory_dir), audience.value, about, SystemClock()))
    if as_json:
        write_json(_as_json(preview, text=text))
    elif text:
        write_lines(*preview.prompt.text.splitlines())
        write_lines(*_beside(preview), to=sys.stderr)
    else:
        write_lines(*_lines(preview), *_beside(preview))


def _as_json(preview: Preview, *, text: bool) -> dict[str, Any]:
    prompt = preview.prompt
    found: dict[str, Any] = {
        "for": preview.audience,
        "budget": preview.budget,
        "tokens": sum(part.tokens for part in prompt.parts),
        "parts": [asdict(part) for part in prompt.parts],
        "truncated": list(prompt.truncated),
        "dropped": list(prompt.dropped),
        "memories": list(prompt.memories),
        "historyTokens": preview.history,
        "unknown": list(preview.unknown),
        "notices": [asdict(notice) for notice in preview.notices],
    }
    return found | {"blocks": [asdict(block) for block in prompt.blocks]} if text else found


def _lines(preview: Preview) -> list[str]:
    prompt = preview.prompt
    total = sum(part.tokens for part in prompt.parts)
    lines = [f"Prompt for {preview.audience}: about {number(total)} of at most {number(preview.budget)} tokens"]
    lines += [
        f"  {group(part.group):<8}  {number(part.tokens):>7} tokens  {number(part.chars):>9} characters"
        f"  {part_name(part.name)}" + ("  (cut)" if part.name in prompt.truncated else "")
        for part in prompt.parts
    ]
    lines += [f"  left out: {part_name(name)}" for name in prompt.dropped]
    if preview.history is None:
        return [*lines, f"  {preview.problem}"]
    return [*lines, f"  {number(preview.history)} tokens remain for tools and conversation"]


def _beside(preview: Preview) -> list[str]:
    """Return lines on what is wrong, and on what cannot be known here."""
    amiss = [f"  {said.summary}" + (f" ({said.reason})" if said.reason else "") for said in preview.notices]
    return [*amiss, *(f"  {_named(line)}" for line in preview.unknown)]


def _named(line: str) -> str:
    name, colon, rest = line.partition(": ")
    return f"{part_name(name)}{colon}{rest}"
