"""Builds the system prompt: one text for each cache group, within the budget, for one audience.

Only what the estimator and the record of changes store survives a crash. Every part is read again for each prompt,
except the ground rules, which are read once at start. A part without room, a part that could not be read, and a change
of the ground rules on the disk are each reported once.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from cachetools import LRUCache

from common.clock import Clock, iso, local, spoken
from common.files import Json, append_bounded, is_machine_trouble, load_state, save_state
from common.json_lines import json_line
from common.provenance import Provenance
from common.wording import number
from modules.runtime.home import Home, SoulDocument
from modules.runtime.llm.dialect import GROUPS, CacheGroup, PromptBlock
from modules.services.agent.prompt.fitting import (
    HEARTBEAT,
    RULE,
    Audience,
    BootstrapResult,
    PromptFile,
    PromptPart,
    SystemPrompt,
    assemble,
)
from modules.services.agent.prompt.sources import (
    BARE,
    CORE,
    DAYS,
    DAYS_BEFORE,
    EXTRA,
    GOALS,
    IDENTITY,
    MEMORY,
    MEMORY_SINCE,
    MOMENT,
    OWN_SKILLS,
    PEERS,
    RECALLED,
    ROWS,
    RUNTIME,
    SAID_BEFORE,
    SELF,
    SKILLS,
    TASK,
    Gathered,
    PromptTurn,
    SkillLine,
    Sources,
    gather,
    rows_for,
)
from modules.services.memory.recall import day_name
from modules.services.memory.view_sync import DayText
from modules.services.skills.skills import (
    FILE,
    SYSTEM_SECTION,
    Skills,
    interpolate,
    parse_frontmatter,
    without_boundaries,
)

_FILES_KEPT = 200


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file as it is now: its bytes, empty if it does not exist, and its cache group."""

    content: bytes
    group: CacheGroup


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the record: SHA-256 before and after ("" for a file that does not exist), and the sizes in bytes."""

    at: str
    file: str
    old: str
    new: str
    bytes_old: int
    bytes_new: int
    group: CacheGroup


class Changes:
    """Compares the files of each turn with their previous versions, and records the changes.

    Args:
        path: the record, in JSON lines; a file that has grown too large becomes `<name>.1`, and a new one begins.
        hashes: the state file with the last known hash and size of each file.
        clock: the time of each change.

    """

    def __init__(self, path: Path, hashes: Path, clock: Clock) -> None:
        self._path = path
        self._hashes = hashes
        self._clock = clock
        self._alone = threading.Lock()
        loaded = load_state(hashes, {}, fits=_fits)
        self.notice = loaded.notice
        self._known = {name: (str(entry[0]), int(entry[1])) for name, entry in loaded.data.items()}

    def note(self, files: Mapping[str, FileSnapshot]) -> tuple[Change, ...]:
        """Record and return the changes since these files were last seen. Raises `StorageError`. Thread-safe."""
        with self._alone:
            return self._note(files)

    def _note(self, files: Mapping[str, FileSnapshot]) -> tuple[Change, ...]:
        now, changes, moved = iso(self._clock.now()), list[Change](), False
        for name, seen in files.items():
            digest = hashlib.sha256(seen.content).hexdigest() if seen.content else ""
            known = self._known.get(name)
            if known is None and not digest:
                continue
            self._known.pop(name, None)
            self._known[name] = (digest, len(seen.content))
            if known is not None and known[0] == digest:
                continue
            if known is not None:
                changes.append(Change(now, name, known[0], digest, known[1], len(seen.content), seen.group))
            moved = True
        if changes:
            append_bounded(self._path, b"".join(json_line(asdict(change)) for change in changes))
        if moved:
            self._known = dict(list(self._known.items())[-_FILES_KEPT:])
            save_state(self._hashes, {name: list(entry) for name, entry in self._known.items()})
        return tuple(changes)


def _fits(state: Json) -> bool:
    """Return whether each entry is a hash and a size."""
    return all(
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], int)  # noqa: PLR2004
        for entry in state.values()
    )


_CORE, _RULES = "core", "Ground Rules"


class Core:
    """The ground rules: the page `core` in the folder of `skills`, read once at start."""

    def __init__(self, skills: Skills) -> None:
        self._path = skills.folder / _CORE / FILE
        self._sha256 = self._now()
        self._told = False
        self.text = skills.render(_CORE, _RULES).strip()

    def check(self) -> str:
        """Return a line to report the first time that the page differs from what was read at start, else ""."""
        if self._told or self._now() == self._sha256:
            return ""
        self._told = True
        return f"{self._path} changed while the SOUL was running; what it said at start still holds"

    def _now(self) -> str:
        try:
            return hashlib.sha256(self._path.read_bytes()).hexdigest()
        except OSError as error:
            if is_machine_trouble(error):
                return self._sha256
            return f"unreadable: {error.strerror}"


_SHA256_SHOWN = 12
_TALKS_KEPT = 8
_MOST_GROWN_CHARS = 2_000
"""Each turn resends the new sections of MEMORY.md up to this; changing the old ones uncaches the conversation."""


@dataclass(frozen=True, slots=True)
class PromptNotice:
    """Something about prompts that the owner should know, and its reason."""

    level: Literal["warn", "error"]
    summary: str
    reason: str


@dataclass(frozen=True, slots=True)
class TurnPrompt(SystemPrompt):
    """The system prompt of one turn.

    `provenance` is that of the least trusted words in it, None if all are the SOUL's own; `session_key` names the
    conversation; `own_skills` holds the pages of the SOUL's own skills that are in it, and `files` the texts of the
    files that it may change, by name.
    """

    provenance: Provenance | None = None
    session_key: str = ""
    own_skills: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def has(self, part: str) -> bool:
        """Return whether it has a part of that name."""
        return any(one.name == part for one in self.parts)


@dataclass(slots=True, kw_only=True)
class Prompter:
    """Builds prompts for every life of one SOUL.

    Attributes:
        home: has SELF.md, which is read for each prompt.
        soul: SOUL.md, checked in each turn.
        core: the ground rules.
        skills: the task of a turn is a skill's system prompt.
        sources: everything else.
        runtime: the machine, version and model that the SOUL runs on.
        budget: returns the most tokens of a prompt; parts that are never cut may exceed it.
        estimate: returns the tokens of a text.
        tell: receives what the owner should know.
        changes: records changed files; None to record nothing.
        timezone: the SOUL's time zone; "" for the machine's own.

    """

    home: Home
    soul: SoulDocument
    core: Core
    skills: Skills
    sources: Sources
    runtime: Runtime
    budget: Callable[[], int]
    estimate: Callable[[str], int]
    tell: Callable[[PromptNotice], Awaitable[None]]
    changes: Changes | None = None
    timezone: str = ""
    _squeezed: dict[Audience, dict[str, str]] = field(default_factory=dict, init=False)
    _unread: dict[str, str] = field(default_factory=dict, init=False)
    _memory_md: LRUCache[datetime, str] = field(
        default_factory=lambda: LRUCache[datetime, str](_TALKS_KEPT), init=False
    )
    _words: PromptWords = field(init=False)

    def __post_init__(self) -> None:
        self._words = PromptWords(self.skills)

    @property
    def notice(self) -> str:
        """A line for the owner if the previous hashes of the files could not be read; else ""."""
        return self.changes.notice if self.changes else ""

    @property
    def squeezed(self) -> tuple[str, ...]:
        """The parts that had no room in the last prompt for each audience, and those that could not be read."""
        tight = (
            f"{name} {how} ({audience})" for audience, held in self._squeezed.items() for name, how in held.items()
        )
        return (*tight, *(f"{name}: {why}" for name, why in self._unread.items()))

    async def prompt(
        self,
        *,
        skill: str,
        variables: Mapping[str, object] | None = None,
        audience: Audience,
        session_key: str,
        query: str = "",
        now: datetime,
        least: Provenance = Provenance.STRANGER,
        bare: bool = False,
        peers: Sequence[str] = (),
        moment: str = "",
        began: datetime | None = None,
        person: str = "",
        thread: str = "",
    ) -> TurnPrompt:
        """Build the system prompt of one turn.

        Args:
            skill: its "System Prompt" section is the task; "" for none.
            variables: the variables of that section; what changes from turn to turn belongs in `moment`.
            audience: who may read the result of the turn; decides what the prompt may contain.
            session_key: the conversation.
            query: what the turn is about; memories are recalled by it and by `person`.
            now: the time of the turn.
            least: leave out words less trusted than this, so that they do not lower the turn's provenance.
            bare: only who the SOUL is, what its owner rules out, and the task.
            peers: the peers who take part, by DID or by their names on GitHub.
            moment: the current state, for a conversation with the owner.
            began: when that conversation began; MEMORY.md and earlier notes stay as they were then.
            person: the DID of whom the turn is about; adds what was said with them before.
            thread: the root of the thread that the turn shows; what was said there is not repeated.

        Raises:
            IdentityError: SOUL.md is missing or has changed, or SELF.md is unreadable.
            StorageError: the changes cannot be recorded.
            SkillError: the skill lacks its section, or a variable.

        """
        task = self.skills.render(skill, SYSTEM_SECTION, **(variables or {})).strip() if skill else ""
        asked = PromptTurn(audience, session_key, query, now, self.timezone, least, peers, began, person, thread, skill)
        onboarding = audience == "owner" and self.sources.onboarding()
        wanted = BARE if bare else rows_for(audience, onboarding=onboarding)
        found = await gather(self.sources, self.home, self.soul, asked, wanted)
        found.texts[CORE] = self.core.text
        if line := await asyncio.to_thread(self._look_back, found, asked):
            await self.tell(PromptNotice("error", line, "the ground rules are read once, at start"))
        own = (_file(TASK, task, name=f"skill {skill}"), _file(MOMENT, moment))
        result = self._assemble([*self._files(found, asked, wanted), *own])
        await self._note_problems(result, found, audience)
        return _turn_prompt(result, found, session_key)

    def _assemble(self, files: list[PromptFile]) -> BootstrapResult:
        rules = len(files) * self.estimate(RULE)
        return assemble(files, budget=self.budget() - rules, estimate=self.estimate, cut_note=self._words.cut)

    def _files(self, found: Gathered, asked: PromptTurn, wanted: tuple[str, ...]) -> Iterator[PromptFile]:
        for row in wanted:
            text = found.texts.get(row, "")
            if row == IDENTITY:
                yield _file(row, self._identity(text, found))
            elif row == SKILLS:
                yield _file(row, self._words.skills(found.skills))
            elif row == RUNTIME:
                yield _file(row, self._words.runtime(self.runtime, asked))
            elif row == EXTRA:
                yield from (_extra(file) for file in found.extra)
            elif row == MEMORY:
                yield from self._memory(text, asked.began)
            elif row in {DAYS, DAYS_BEFORE}:
                yield from self._days(row, found, asked)
            else:
                yield _file(row, self._words.headed(row, text))

    def _days(self, row: str, found: Gathered, asked: PromptTurn) -> Iterator[PromptFile]:
        today = day_name(asked.today)
        for day in found.days:
            if _row_of(day) == row:
                heading = "since" if day.part == "since" else "today" if day.name == today else "yesterday"
                yield _file(row, self._words.headed(heading, day.text), name=_page_name(day))

    def _memory(self, text: str, began: datetime | None) -> Iterator[PromptFile]:
        """Yield MEMORY.md as of when a conversation `began`, and sections added since; all anew if more changed."""
        before = text = text.strip()
        if began:
            before = self._memory_md.get(began, text)
            is_short = len(text) - len(before) <= _MOST_GROWN_CHARS
            if text != before and not (is_short and text.startswith(f"{before}\n\n## ")):
                before = text
            self._memory_md[began] = before
        for row, part in ((MEMORY, before), (MEMORY_SINCE, text.removeprefix(before))):
            yield _file(row, self._words.headed(row, part))

    def _identity(self, text: str, found: Gathered) -> str:
        try:
            return self._words.identity(text, self.runtime.agent_name)
        except ValueError as error:
            found.problems[IDENTITY] = str(error)
            return self._words.identity("", self.runtime.agent_name)

    def _look_back(self, found: Gathered, asked: PromptTurn) -> str:
        """Record which files changed; return what to report about the ground rules, or ""."""
        if self.changes is not None:
            self.changes.note(dict(_seen(found, asked)))
        return self.core.check()

    async def _note_problems(self, result: BootstrapResult, found: Gathered, audience: Audience) -> None:
        """Report new problems to the owner, and forget those that are solved."""
        for name, why in found.problems.items():
            if self._unread.get(name) != why:
                self._unread[name] = why
                await self.tell(PromptNotice("warn", f"{name} is missing from the prompt", why))
        for name in [name for name in self._unread if name in found.texts and name not in found.problems]:
            del self._unread[name]
        known = self._squeezed.get(audience, {})
        now = dict.fromkeys(result.truncated, "cut") | dict.fromkeys(result.dropped_files, "left out")
        new = [f"{name} was {how}" for name, how in now.items() if known.get(name) != how]
        absent = {name: how for name, how in known.items() if name in ROWS and name not in result.tokens}
        self._squeezed[audience] = absent | now
        if new:
            alone = "what must be whole alone passes it" if result.over_budget else "BOOTSTRAP_MAX_TOKENS"
            reason = f"{number(result.total)} of {number(self.budget())} tokens ({alone}; {audience})"
            await self.tell(PromptNotice("warn", f"The prompt has no room: {', '.join(new)}", reason))


def _file(row: str, text: str, *, name: str = "") -> PromptFile:
    kind = ROWS[row]
    return PromptFile(name or row, text.strip(), kind.priority, kind.group, kind.whole)


def _row_of(day: DayText) -> str:
    return DAYS_BEFORE if day.part == "before" else DAYS


def _page_name(day: DayText) -> str:
    """Return the name of a day's page: its file name, marked if it holds what was noted since a conversation began."""
    return f"{day.name} (since)" if day.part == "since" else day.name


def _extra(file: PromptFile) -> PromptFile:
    """Return a caller's file placed after the SOUL's own files, and dropped before them."""
    kind = ROWS[EXTRA]
    return replace(file, priority=max(kind.priority, file.priority), group=kind.group, whole=False)


def _seen(found: Gathered, asked: PromptTurn) -> Iterator[tuple[str, FileSnapshot]]:
    """Yield the tracked files among the gathered parts, by name."""
    pages = [(name, text, ROWS[name]) for name, text in found.texts.items() if ROWS[name].tracked and name != DAYS]
    pages += [(_page_name(day), day.text, ROWS[_row_of(day)]) for day in found.days]
    for name, text, row in pages:
        view = f"{name} (public)" if row.views and asked.public else name
        unframed = without_boundaries(text) if row.views else text
        yield view, FileSnapshot(unframed.encode(errors="backslashreplace"), row.group)


def _turn_prompt(result: BootstrapResult, found: Gathered, session_key: str) -> TurnPrompt:
    included = {file.name for file in result.included}
    words = [day.provenance for day in found.days if _page_name(day) in included]
    recalled = RECALLED in included
    words += [found.recalled.provenance] if recalled else []
    words += [Provenance.PEER] if PEERS in included else []
    words += [found.said_before.provenance] if SAID_BEFORE in included else []
    return TurnPrompt(
        blocks=tuple(_blocks(result)),
        parts=tuple(_part(file, result.tokens[file.name]) for file in result.included),
        dropped=result.dropped_files,
        truncated=result.truncated,
        memories=found.recalled.ids if recalled or not found.recalled.text else (),
        provenance=min((word for word in words if word is not None), default=None),
        session_key=session_key,
        own_skills=found.texts.get(OWN_SKILLS, "") if OWN_SKILLS in included else "",
        files={name: found.texts[name] for name in (SELF, GOALS, HEARTBEAT) if name in included},
    )


def _blocks(result: BootstrapResult) -> Iterator[PromptBlock]:
    """Yield one block for each group with text; a rule stands between any two parts, also across groups."""
    groups: dict[CacheGroup, list[str]] = {group: [] for group in GROUPS}
    for file in result.included:
        groups[file.group].append(file.content)
    first = True
    for group, texts in groups.items():
        if texts:
            text = f"\n\n{RULE}".join(texts)
            yield PromptBlock(group, text if first else RULE + text)
            first = False


def _part(file: PromptFile, tokens: int) -> PromptPart:
    digest = hashlib.sha256(file.content.encode(errors="backslashreplace")).hexdigest()[:_SHA256_SHOWN]
    return PromptPart(file.name, len(file.content), digest, tokens, file.group)


_WORDS = "workspace"
_REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class Runtime:
    """The machine, version and model that the SOUL runs on; the model may change while it runs."""

    agent_name: str
    host: str
    version: str
    model: Callable[[], str]


class PromptWords:
    """Fills the templates of prompts; caches the results."""

    def __init__(self, skills: Skills) -> None:
        self._headings = skills.subsections(_WORDS, "Headings")
        self._identity = skills.subsections(_WORDS, "Identity")
        self._runtime = skills.subsections(_WORDS, "Runtime")
        self._skill_line = skills.subsections(_WORDS, "Skill Line")
        self._cut = skills.section(_WORDS, "Cut")
        self._filled = LRUCache[str, str](_REMEMBERED)

    def headed(self, row: str, text: str) -> str:
        """Return `text` under the heading of its row, if that has one; "" for an empty text."""
        text = text.strip()
        heading = self._headings.get(row, "") if text else ""
        return f"{heading}\n\n{text}" if heading else text

    def cut(self, count: int) -> str:
        """Return the last line of a file that had no room for `count` of its sections."""
        return self._fill(self._cut, count=count)

    def identity(self, text: str, agent_name: str) -> str:
        """Return IDENTITY.md as a sentence with its own text below; `agent_name` stands in for a missing name.

        Raises:
            ValueError: its frontmatter is not YAML.

        """
        front, body = parse_frontmatter(text)
        name, emoji = front.get("name"), front.get("emoji")
        sign = _flat(emoji)
        form = self._identity["With Emoji" if sign else "Plain"]
        sentence = self._fill(form, name=_flat(name) or agent_name, emoji=sign)
        more = self.headed(IDENTITY, body)
        return f"{sentence}\n\n{more}" if more else sentence

    def skills(self, lines: Sequence[SkillLine]) -> str:
        """Return the skills that can be loaded, one a line."""
        return self.headed(SKILLS, "\n".join(map(self._skill, lines)))

    def runtime(self, runtime: Runtime, asked: PromptTurn) -> str:
        """Return the time, the version and the model; only the owner's prompt names the machine."""
        now = local(asked.now, asked.timezone)
        return self._fill(
            self._runtime["Public" if asked.public else "Owner"],
            today=spoken(now),
            timezone=asked.timezone or now.tzname() or "UTC",
            host=runtime.host,
            version=runtime.version,
            model=runtime.model(),
        )

    def _skill(self, line: SkillLine) -> str:
        name, about, when = line
        form = self._skill_line["With When" if _flat(when) else "Plain"]
        return self._fill(form, name=name, description=_flat(about), when=_flat(when))

    def _fill(self, template: str, **values: object) -> str:
        """Fill `template` with `values`; cached, because filling one takes most of a millisecond."""
        key = f"{template}\0{values}"
        if key not in self._filled:
            self._filled[key] = interpolate(template, values)
        return self._filled[key]


def _flat(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
