"""Measures a turn in a room's conversation: the whole prompt, and the first look that decides if it is needed.

Run: `python bench/room_turn.py`. Exit code 1 if a turn takes over 3,000 tokens, or a first look over a quarter of it.

A conversation of six peers, 60 messages long; the SOUL is as `soul init` lays it out. It counts the tokens of the
whole request, tool included, as estimated for the budget of a prompt. A first look is taken only if all new messages
are by peers and need nothing from us (`modules/lives/space/classifiers.py`); a turn that follows it costs both.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapters.space.types import Presence
from bench.cached_day import bench_prompter
from common.clock import SystemClock, iso
from common.files import write_atomic
from common.provenance import Provenance
from local_tools.answering import space_tools
from modules.lives.space.classifiers import QUESTION, shown
from modules.lives.space.config import SpaceConfig
from modules.lives.space.prompting import SKILL, PromptWriter, SpaceTurn
from modules.lives.space.snapshot import RoomContents, RoomSnapshot
from modules.lives.space.types import HistoryEntry
from modules.runtime.home import Home
from modules.runtime.llm.dialect import convert_tools
from modules.services.agent.prompt.estimate import Estimator
from modules.services.agent.prompt.fitting import RULE
from modules.services.agent.prompt.sources import Sources
from modules.services.agent.tools.executor import Registry
from modules.services.agent.tools.types import Turn
from modules.services.agent.verdicts import SKILL as JUDGEMENT
from modules.services.agent.verdicts import messages_for
from modules.services.owner_files import LocalOwnerFiles
from modules.services.peers.room_identity import PeerRelationships
from modules.services.skills.skills import Skills
from soul.resources import SKILLS, template

_OTHER = "files and the moment"


def parts_of(
    system: str, message: str, tools: str, *, files: Mapping[str, str], skills: Skills, estimate: Callable[[str], int]
) -> dict[str, int]:
    """Return the tokens of each part. `files` are the texts, by name, that the system prompt holds in full."""
    counted: dict[str, str] = {}
    left = system
    for name, text in files.items():
        if text.strip() in left:
            left = left.replace(text.strip(), "", 1)
            counted[name] = text.strip()
    headings = skills.subsections("workspace", "Headings")
    days = tuple(headings[name] for name in ("yesterday", "today"))
    recalled = skills.section("memory", "Recalled").split("{{")[0].strip()
    for part in left.split(RULE):
        name = "notes of two days" if part.strip().startswith(days) else _OTHER
        name = "recalled memories" if part.strip().startswith(recalled) else name
        counted[name] = counted.get(name, "") + part
    counted |= {"tools": tools, "message": message}
    return {name: estimate(text) for name, text in counted.items()}


def show(title: str, parts: Mapping[str, int], limit: int) -> bool:
    """Print a table of the parts, and the sum beside its limit; return whether the limit is kept."""
    total = sum(parts.values())
    sys.stdout.write(f"{title}: {total} tokens (at most {limit})\n")
    for name, tokens in sorted(parts.items(), key=lambda part: -part[1]):
        sys.stdout.write(f"  {name:<22} {tokens:>6}\n")
    return total <= limit


sys.path.insert(0, str(Path(__file__).parents[1]))

MOST_TOKENS, MOST_SHARE = 3_000, 0.25
SILENT_SHARES = (0.5, 0.8)
ME, PEERS = "marlow", ("odile", "tobias", "maren", "quill", "rowan")
_LINE = "The weir was built before the mill, so the water there keeps the older time, and the mill only borrows it. "


def talk(now: datetime) -> RoomSnapshot:
    """Return a room in which peers talk among themselves; the last two messages are new."""
    said = tuple(
        HistoryEntry(f"m{n}", PEERS[n % len(PEERS)], f"{n}: {_LINE * (1 + n % 3)}", now - timedelta(seconds=60 - n))
        for n in range(60)
    )
    at = iso(now)
    present = {name: Presence(name, name, "1.0", joined_at=at, last_seen=at) for name in PEERS}
    return RoomSnapshot(now, ME, batch=said[-2:], history=said, room=RoomContents(peers=present))


async def whole(root: Path, skills: Skills, snapshot: RoomSnapshot, estimator: Estimator) -> dict[str, int]:
    """Return the tokens of a turn's request, by part."""
    home = Home.at(root)
    write_atomic(home.soul, template("SOUL.md"))
    write_atomic(home.self_md, template("SELF.md"))
    owner_files = LocalOwnerFiles(home, print)

    async def nothing() -> str:
        return ""

    async def nothing_due(*, public: bool) -> str:  # noqa: ARG001 - the signature of a source
        return ""

    sources = Sources(owner_files=owner_files, memory_md=nothing, attention_list=nothing_due)
    prompter = bench_prompter(home, skills, sources, estimator.estimate)
    prompt = await prompter.prompt(
        skill=SKILL, variables={"agent_name": ME}, audience="space", session_key="space:agent-space", now=snapshot.now
    )
    relationships = PeerRelationships(home.memory / "peer_relationships.json", SystemClock())
    prompting = PromptWriter(skills, relationships, random.Random(1), estimator.estimate, "UTC")
    message = prompting.user_message(snapshot, SpaceConfig(), room_tokens=100_000)
    turn = Turn("space", Provenance.PEER, cause_id="x", subject=SpaceTurn(snapshot))
    tools = json.dumps(convert_tools(Registry(space_tools(skills), social_only=False).specs(turn, None)))
    parts = {part.name: part.tokens for part in prompt.parts}
    return parts | {"tools": estimator.estimate(tools), "message": estimator.estimate(message)}


def first_look(skills: Skills, snapshot: RoomSnapshot, estimator: Estimator) -> int:
    """Return the tokens of the request that decides whether a turn is needed."""
    system = skills.render(JUDGEMENT, f"{QUESTION} System Prompt")
    asked = messages_for(skills, QUESTION, examples=f"{QUESTION} Examples", said=shown(snapshot.history))
    return estimator.estimate(system) + sum(estimator.estimate(str(message.content)) for message in asked)


def main() -> int:
    """Measure, print, and return the exit code."""
    skills = Skills.load(SKILLS)
    snapshot = talk(datetime(2026, 11, 22, 8, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as folder:
        estimator = Estimator(Path(folder) / "ratios.json", model="bench")
        parts, look = (
            asyncio.run(whole(Path(folder), skills, snapshot, estimator)),
            first_look(skills, snapshot, estimator),
        )
    turn = sum(parts.values())
    is_kept = show("a turn of a room's talk", parts, MOST_TOKENS)
    sys.stdout.write(f"a first look: {look} ({look / turn:.0%} of it)\n")
    for share in SILENT_SHARES:
        mean = look + (1 - share) * turn
        sys.stdout.write(f"where {share:.0%} of the turns end in silence: {mean:.0f} on average, {mean / turn:.0%}\n")
    return 0 if is_kept and look <= MOST_SHARE * turn else 1


if __name__ == "__main__":
    sys.exit(main())
