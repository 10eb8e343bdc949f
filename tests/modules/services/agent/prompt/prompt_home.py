"""A home with everything that a prompt can contain, and the prompter for it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from common.clock import FakeClock
from common.errors import Transient
from common.files import write_atomic
from common.provenance import Provenance
from modules.runtime.home import Home, SoulDocument
from modules.services.agent.prompt.estimate import Estimator
from modules.services.agent.prompt.fitting import Audience, PromptFile
from modules.services.agent.prompt.prompter import Changes, Core, Prompter, PromptNotice, Runtime, TurnPrompt
from modules.services.agent.prompt.sources import PromptTurn, Sources
from modules.services.memory.admission import Memory
from modules.services.memory.recall import Recalled, day_name
from modules.services.memory.view_sync import DayText
from modules.services.owner_files import LocalOwnerFiles
from modules.services.skills.skills import Skills
from soul.resources import SKILLS

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
SOUL_TEXT = "# SOUL\n\nI observe before I speak.\n"
SELF_TEXT = "# Marlow\n\nI'm Marlow.\n\n## Values\n\n- Tides keep their word.\n"
TASKS: dict[Audience, tuple[str, dict[str, object]]] = {
    "owner": ("owner-communication", {"bluesky_username": "marlow.test", "owner_handle": "kit.test"}),
    "bluesky": (
        "bluesky-response",
        {
            "bluesky_username": "marlow.test",
            "owner_handle": "kit.test",
            "github_username": "",
            "tools": ("stay_silent",),
        },
    ),
    "space": ("grounding", {}),
}


@dataclass
class Knowledge:
    """What the sources of a prompt return; a test sets it."""

    profile: tuple[str, str] = ("", "")
    memory_md: str = ""
    days: dict[date, str] = field(default_factory=dict)
    recalled: dict[bool, Recalled] = field(default_factory=dict)
    degraded: str = ""
    attention_list: tuple[str, str] = ("", "")
    boot: dict[str, str] = field(default_factory=dict)
    skills: Sequence[tuple[str, str, str]] = ()
    extra: Sequence[PromptFile] = ()
    onboarding: bool = False
    peers: str = ""
    asked: list[str] = field(default_factory=list)

    day_ids: tuple[int, ...] = ()
    shown: frozenset[int] = frozenset()

    away: str = ""
    words: Provenance | None = None

    def sources(self, owner_files: LocalOwnerFiles) -> Sources:
        return Sources(
            owner_files=owner_files,
            profile=self._profile,
            memory_md=self._memory_md,
            daily=self._daily,
            recall=self._recall,
            degraded=self._degraded,
            attention_list=self._attention_list,
            wakeup_context=self._wakeup_context,
            skills_listing=self._skills_listing,
            peers=self._peers,
            extra=self._extra,
            onboarding=lambda: self.onboarding,
        )

    async def _profile(self, *, public: bool) -> str:
        return self.profile[0] if public else "\n".join(filter(None, self.profile))

    async def _memory_md(self) -> str:
        self.asked.append("memory_md")
        return self.memory_md

    async def _daily(self, *, least: Provenance, began: datetime | None) -> Sequence[DayText]:
        self.asked.append(f"daily {least.name}")
        told = sorted((day_name(day), text) for day, text in self.days.items())
        return [DayText(name, text, self.words, self.day_ids) for name, text in told]

    async def _recall(self, turn: PromptTurn, *, shown: Collection[int]) -> Recalled:
        self.asked.append(f"recall {turn.query} {turn.least.name}")
        self.shown = frozenset(shown)
        return self.recalled.get(turn.public, Recalled())

    async def _degraded(self) -> str:
        if self.away:
            raise Transient(self.away)
        return self.degraded

    async def _attention_list(self, *, public: bool) -> str:
        return self.attention_list[0] if public else "\n".join(filter(None, self.attention_list))

    async def _wakeup_context(self, session_key: str) -> str:
        return self.boot.pop(session_key, "")

    async def _skills_listing(self) -> Sequence[tuple[str, str, str]]:
        return self.skills

    async def _peers(self, peers: Collection[str], *, least: Provenance) -> str:
        self.asked.append(f"peers {', '.join(peers)} {least.name}")
        return self.peers if peers else ""

    async def _extra(self, session_key: str) -> Sequence[PromptFile]:
        return self.extra


class PromptHome:
    """A home, what its sources know, and the notices of its prompter."""

    def __init__(self, root: Path, *, budget: int = 40_000, skills: Path = SKILLS) -> None:
        self.home = Home.at(root)
        if not self.home.soul.exists():
            write_atomic(self.home.soul, SOUL_TEXT)
            write_atomic(self.home.self_md, SELF_TEXT)
        self.known = Knowledge()
        self.told: list[PromptNotice] = []
        self.clock = FakeClock(NOW)
        loaded = Skills.load(skills)
        status = self.home.memory / "status"
        self.prompter = Prompter(
            home=self.home,
            soul=SoulDocument(self.home.soul),
            core=Core(loaded),
            skills=loaded,
            sources=self.known.sources(workspace_of(self.home)),
            runtime=Runtime("marlow", "the-machine", "1.2.3", lambda: "test-mind"),
            budget=lambda: budget,
            estimate=Estimator(self.home.memory / "tokens.json", model="test-mind").estimate,
            tell=self._receive,
            changes=Changes(status / "bootstrap-changes.jsonl", status / "hashes.json", self.clock),
            timezone="UTC",
        )

    async def _receive(self, notice: PromptNotice) -> None:
        self.told.append(notice)

    def write(self, name: str, text: str) -> None:
        write_atomic(self.home.workspace / name, text)

    async def prompt(
        self,
        audience: Audience = "owner",
        *,
        query: str = "",
        now: datetime = NOW,
        least: Provenance = Provenance.STRANGER,
        peers: Sequence[str] = (),
        began: datetime | None = None,
    ) -> TurnPrompt:
        skill, variables = TASKS[audience]
        key = "owner:terminal" if audience == "owner" else f"{audience}:somewhere"
        return await self.prompter.prompt(
            skill=skill,
            variables=variables,
            audience=audience,
            session_key=key,
            query=query,
            peers=peers,
            now=now,
            least=least,
            began=began,
        )


def workspace_of(home: Home) -> LocalOwnerFiles:
    """Return the owner files of a home; a warning about any of them fails the test."""

    def warn(line: str) -> None:
        raise AssertionError(line)

    return LocalOwnerFiles(home, warn)


def recalled(text: str, *ids: int, words: Provenance | None = None) -> Recalled:
    """Return `text` as recalled from memories with these ids."""
    at = "2026-11-20T08:00:00.000Z"
    kept = tuple(Memory(each, "fact", "quay", text, (), 3, "self", "self", False, at, at) for each in ids)  # noqa: FBT003
    return Recalled(text, kept, words)
