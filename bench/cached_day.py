"""Measures how much of a day's input a service could take from its cache: 200 turns of a SOUL with a long history.

Run: `python bench/cached_day.py [--seed 7] [--quiet]`. `--quiet` measures a day of 25 turns that are far apart.
Otherwise exit code 1 if the share of `prefix`, of all requests, is under 93 %.

It counts the bytes of every request in the order in which services cache them (tool definitions, system prompt,
conversation), compared with all earlier requests of the day, byte by byte from the front. Everything after the first
difference is paid. Three ways to count:

- `prefix`: everything up to the first byte that differs, however long ago it was sent.
- `prefix, 5 min`: the same, but only requests of the last five minutes count as earlier ones.
- `marks, 5 min`: only up to a mark, like a service that caches what it is told to. The marks are read from the
  request as it is worded for such a service.

For the last of them it prints what the input costs, in tokens at the full price: cached tokens count `FOUND`, tokens
stored up to the last mark count `STORED`.

For the first of them it prints which parts of a request hold the rest. No model is called. The prompts are made by the
real prompter from real files; sizes are those of `GROWN`.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate, compress, product
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).parents[1]))

from common.files import write_atomic
from common.provenance import Provenance
from modules.runtime.home import Home, SoulDocument
from modules.runtime.llm.dialect import (
    MARK,
    Message,
    PromptBlock,
    Text,
    ToolAnswer,
    ToolCall,
    ToolSpec,
    convert_messages,
    convert_tools,
    without_marks,
    worded_for,
)
from modules.services.agent.prompt.fitting import Audience, placed
from modules.services.agent.prompt.prompter import Core, Prompter, PromptNotice, Runtime
from modules.services.agent.prompt.sources import PromptTurn, Sources
from modules.services.memory.recall import PROMPT_ENTRIES, PUBLIC_RECALL_ENTRIES, RECALL_ENTRIES, Recalled, day_name
from modules.services.memory.view_sync import DayText, Part
from modules.services.owner_files import LocalOwnerFiles
from modules.services.skills.skills import Skills
from soul.resources import SKILLS

GOAL = 0.93
PROMPT_TOKENS = 40_000
Kind = Literal["owner", "bluesky", "expression"]
BUSY: dict[Kind, tuple[int, int]] = {"owner": (3, 20), "bluesky": (25, 5), "expression": (15, 1)}
QUIET: dict[Kind, tuple[int, int]] = {"owner": (3, 1), "bluesky": (16, 1), "expression": (6, 1)}
"""How often a day has turns of each kind, and how many at a time."""
ROUNDS = {"owner": (1, 2, 2, 3, 4), "bluesky": (1, 1, 1, 2), "expression": (1, 1, 2)}
TOOLS = {"owner": 12, "bluesky": 4, "expression": 1}
FAMILY = 8
"""Tools that are opened in addition for the rest of the last sitting with the owner."""
KEPT_FOR = timedelta(minutes=5)
FOUND, STORED = 0.1, 1.25
"""Multiples of a token's price at Anthropic."""
GROWN = {  # characters
    "SOUL.md": 4_000,
    "SELF.md": 14_000,
    "USER.md": 2_000,
    "AGENTS.md": 5_000,
    "GOALS.md": 3_000,
    "MEMORY.md": 20_000,
    "tool": 750,
    "memory": 300,
    "note": 160,
    "post": 1_600,
    "line": 200,
    "answer": 900,
}
MORNING = datetime(2026, 11, 22, 7, tzinfo=UTC)
YESTERDAY = MORNING - timedelta(days=1)
_OF_YESTERDAY = 6
_WORDS = ("tide", "harbour", "slate", "rope", "kit", "evening", "letter", "lamp", "north", "ferry", "bread", "quiet")


@dataclass
class Day:
    """The state that changes during the day."""

    rng: random.Random
    notes: list[tuple[datetime, str]] = field(default_factory=list)
    waiting: int = 0
    recalled: str = ""
    memory_md: str = ""
    outage: bool = False

    def prose(self, chars: int) -> str:
        """Return random text of this length."""
        words: list[str] = []
        while sum(map(len, words)) + len(words) < chars:
            words.append(self.rng.choice(_WORDS))
        return " ".join(words)[:chars]

    def page(self, name: str) -> str:
        """Return a file of its size, in sections."""
        size = GROWN[name]
        return f"# {name}\n" + "".join(f"\n## Part {n}\n\n- {self.prose(480)}\n" for n in range(max(1, size // 500)))

    def pages(self, *, began: datetime | None) -> Iterator[DayText]:
        """Yield the notes of two days, newest page first, divided like those of `DayFiles.told`."""
        parts: tuple[Part, ...] = ("since", "before") if began else ("all",)
        for date, part in product((MORNING.date(), YESTERDAY.date()), parts):
            noted = [
                text
                for at, text in self.notes
                if at.date() == date and (began is None or (at < began) == (part == "before"))
            ]
            shown = noted[-PROMPT_ENTRIES:]
            if shown:
                yield DayText(day_name(date), "\n".join(shown), None, (), part)


@dataclass(frozen=True)
class SentRequest:
    """A request as a service sees it: its parts, in order, their bytes, and the positions of the marks in them."""

    at: datetime
    kind: Kind
    parts: tuple[tuple[str, bytes], ...]
    marks: tuple[int, ...]
    data: bytes


def request(
    at: datetime,
    kind: Kind,
    blocks: Sequence[PromptBlock],
    tools: Sequence[ToolSpec],
    said: tuple[Sequence[Message], Sequence[Message]],
) -> SentRequest:
    """Return a request in the order in which services cache it; `said` are the messages before this turn, and in it."""
    before, (asked, *since) = said
    system, shown = placed(blocks, (*before, asked), may_go_on=kind == "owner")
    whole = {"model": "claude", "messages": convert_messages((*shown, *since), system)}
    prompt, *talk = worded_for(whole, "")["messages"]
    pieces = [("tools", json.dumps(convert_tools(tools), ensure_ascii=False).encode(), False)]
    for block, part in zip(system, prompt["content"], strict=True):
        pieces.append((block.group, f"{part['text']}\n\n".encode(), MARK in part))
    answered = len(convert_messages(shown)) - 1
    for place, (message, bare) in enumerate(zip(talk, without_marks({"messages": talk})["messages"], strict=True)):
        name = "message" if place == answered else "talk before" if place < answered else "calls and answers"
        pieces.append((name, json.dumps(bare, ensure_ascii=False).encode(), message != bare))
    names, data, marked = zip(*pieces, strict=True)
    marks = tuple(compress(accumulate(map(len, data)), marked))
    return SentRequest(at, kind, tuple(zip(names, data, strict=True)), marks, b"".join(data))


def common_prefix(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def prompter_for(home: Home, day: Day, skills: Skills) -> Prompter:
    """Return the real prompter, over files and over the state of `day`."""
    owner_files = LocalOwnerFiles(home, print)

    async def memory_md() -> str:
        return day.memory_md

    async def daily(*, least: Provenance, began: datetime | None) -> Sequence[DayText]:  # noqa: ARG001 - API of sources
        return list(day.pages(began=began))[::-1]

    async def recall(turn: PromptTurn, /, *, shown: Collection[int]) -> Recalled:  # noqa: ARG001 - API of sources
        return Recalled(day.recalled[: GROWN["memory"] * (PUBLIC_RECALL_ENTRIES if turn.public else RECALL_ENTRIES)])

    async def attention_list(*, public: bool) -> str:  # noqa: ARG001 - API of sources
        return f"{day.waiting} posts wait for you." if day.waiting else ""

    async def degraded() -> str:
        return "Bluesky does not answer since 14:02; write nothing that must leave now." if day.outage else ""

    async def profile(*, public: bool) -> str:
        return "About you: keeps the harbour's log" + ("" if public else "\nAbout your owner: Kit, in Lisbon")

    sources = Sources(
        owner_files=owner_files,
        profile=profile,
        memory_md=memory_md,
        daily=daily,
        recall=recall,
        attention_list=attention_list,
        degraded=degraded,
    )

    async def tell(notice: PromptNotice) -> None:
        sys.stderr.write(f"{notice.summary} ({notice.reason})\n")

    return Prompter(
        home=home,
        soul=SoulDocument(home.soul),
        core=Core(skills),
        skills=skills,
        sources=sources,
        runtime=Runtime("Marlow", "quay", "1.0", lambda: "a-model"),
        budget=lambda: PROMPT_TOKENS,
        estimate=lambda text: -(-len(text) // 4),
        tell=tell,
        timezone="UTC",
    )


def timetable(rng: random.Random, turns: Mapping[Kind, tuple[int, int]]) -> Iterator[tuple[datetime, Kind]]:
    """Return time and kind of each turn: three sittings with the owner, bursts of posts, some expressions."""
    moments: list[tuple[datetime, Kind]] = []
    for sitting in (1, 6, 14):
        at = MORNING + timedelta(hours=sitting)
        for _ in range(turns["owner"][1]):
            at += timedelta(seconds=rng.randint(30, 150))
            moments.append((at, "owner"))
    for _ in range(turns["bluesky"][0]):
        at = MORNING + timedelta(minutes=rng.randint(0, 960))
        for _ in range(turns["bluesky"][1]):
            at += timedelta(seconds=rng.randint(20, 120))
            moments.append((at, "bluesky"))
    step = 960 // turns["expression"][0]
    moments += [(MORNING + timedelta(minutes=step * n + 11), "expression") for n in range(turns["expression"][0])]
    return iter(sorted(moments))


async def live(root: Path, rng: random.Random, turns: Mapping[Kind, tuple[int, int]]) -> list[SentRequest]:
    """Return every request of the day, in order."""
    home, day = Home.at(root), Day(rng)
    write_atomic(home.soul, day.page("SOUL.md"))
    write_atomic(home.self_md, day.page("SELF.md"))
    for name in ("USER.md", "AGENTS.md", "GOALS.md"):
        write_atomic(home.workspace / name, day.page(name))
    day.memory_md = day.page("MEMORY.md")
    day.notes = [(YESTERDAY if n < _OF_YESTERDAY else MORNING, f"- {day.prose(GROWN['note'])}") for n in range(12)]
    offered = {
        kind: [ToolSpec(f"{kind}_{n}", day.prose(GROWN["tool"] // 2), _schema(day)) for n in range(count)]
        for kind, count in TOOLS.items()
    }
    skills = Skills.load(SKILLS)
    prompter = prompter_for(home, day, skills)
    sent: list[SentRequest] = []
    history: list[Message] = []
    family = [ToolSpec(f"family_{n}", day.prose(GROWN["tool"] // 2), _schema(day)) for n in range(FAMILY)]
    last_owner = began = YESTERDAY
    sittings, lines = turns["owner"]
    opens_in = rng.randint((sittings - 1) * lines, sittings * lines - 1)
    for turn, (at, kind) in enumerate(timetable(rng, turns)):
        await _pass_time(home, day, turn, at)
        if kind == "owner" and at - last_owner > timedelta(minutes=30):
            history, began = [], at
        opens_in -= kind == "owner"
        before = history if kind == "owner" else []
        said = [Message("user", day.prose(GROWN["line" if kind == "owner" else "post"]))]
        audience: Audience = "owner" if kind == "owner" else "bluesky"
        skill = {"owner": "owner-communication", "bluesky": "bluesky-response", "expression": "expression"}[kind]
        variables = dict.fromkeys(skills.variables(skill, "System Prompt"), "marlow.example")
        prompt = await prompter.prompt(
            skill=skill,
            variables=variables,
            audience=audience,
            session_key=f"{kind}:{turn}",
            query="something",
            now=at,
            moment=f"{turn} posts, {day.waiting} waiting" if kind == "owner" else "",
            began=began if kind == "owner" else None,
        )
        rounds = rng.choice(ROUNDS[kind])
        for number in range(rounds):
            moment = at + timedelta(seconds=6 * number)
            tools = [*offered[kind], *(family if kind == "owner" and opens_in < 0 else ())]
            sent.append(request(moment, kind, prompt.blocks, tools, (before, said)))
            if number + 1 < rounds:
                call = ToolCall(f"call_{turn}_{number}", f"{kind}_0", {"text": day.prose(80)})
                said.append(Message("assistant", (Text(day.prose(40)), call)))
                said.append(Message("user", (ToolAnswer(call.id, call.name, day.prose(GROWN["answer"])),)))
        if kind == "owner":
            history, last_owner = [*before, *said, Message("assistant", day.prose(GROWN["line"]))], at
    return sent


async def _pass_time(home: Home, day: Day, turn: int, at: datetime) -> None:
    """Change what the world and the SOUL itself change between turns."""
    day.recalled = f"What you remember that may matter here.\n\n- {day.prose(GROWN['memory'] * RECALL_ENTRIES)}"
    day.waiting = day.rng.randint(0, 6)
    day.outage = at.hour == 14  # noqa: PLR2004 - two in the afternoon
    if turn % 4 == 0:
        day.notes.append((at, f"- {at:%H:%M} {day.prose(GROWN['note'])}"))
    if turn % 40 == 20:  # noqa: PLR2004 - five times a day something is remembered
        day.memory_md += f"\n## Kept at {at:%H:%M}\n\n{day.prose(300)}\n"
    if turn in {70, 140}:
        write_atomic(home.self_md, day.page("SELF.md"))
    if turn == 100:  # noqa: PLR2004 - at noon the owner edits a file
        write_atomic(home.workspace / "GOALS.md", day.page("GOALS.md"))


def _schema(day: Day) -> dict[str, object]:
    properties = {"text": {"type": "string", "description": day.prose(GROWN["tool"] // 3)}}
    return {"type": "object", "properties": properties, "required": ["text"]}


@dataclass
class Count:
    """All bytes, and those found again by each way of counting."""

    total: int = 0
    prefix: int = 0
    recent: int = 0
    marked: int = 0
    paid: float = 0
    left: Counter[str] = field(default_factory=Counter)

    def add(self, now: SentRequest, earlier: Sequence[SentRequest]) -> None:
        """Add one more request."""
        self.total += len(now.data)
        longest = recent = marked = 0
        for before in earlier:
            length = common_prefix(now.data, before.data)
            longest = max(longest, length)
            if now.at - before.at <= KEPT_FOR:
                recent = max(recent, length)
                marked = max(marked, *(mark for mark in (0, *before.marks) if mark <= length))
        self.prefix += longest
        begins = 0
        for name, data in now.parts:
            self.left[name] += max(0, begins + len(data) - max(begins, longest))
            begins += len(data)
        self.recent += recent
        self.marked += marked
        stored = max(0, max(now.marks, default=0) - marked)
        self.paid += FOUND * marked + STORED * stored + len(now.data) - marked - stored

    def shares(self) -> str:
        """Return the three shares, in percent."""
        found = (self.prefix, self.recent, self.marked)
        return "  ".join(f"{100 * part / self.total:6.1f} %" for part in found)

    def lost(self) -> str:
        """Return which parts hold what `prefix` does not find, in percent of all bytes."""
        return ", ".join(f"{name} {100 * size / self.total:.2f} %" for name, size in self.left.most_common() if size)


def main() -> int:
    """Live the day, count, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7, help="another day")
    parser.add_argument("--quiet", action="store_true", help="few turns, far apart")
    options = parser.parse_args()
    turns = QUIET if options.quiet else BUSY
    with tempfile.TemporaryDirectory() as folder:
        sent = asyncio.run(live(Path(folder), random.Random(options.seed), turns))
    counts: dict[str, Count] = {kind: Count() for kind in (*turns, "all")}
    for number, one in enumerate(sent):
        for kind in (one.kind, "all"):
            counts[kind].add(one, sent[:number])
    lived = sum(often * lines for often, lines in turns.values())
    sys.stdout.write(
        f"{lived} turns, {len(sent)} requests, {counts['all'].total / 4e6:.2f} M tokens\n"
        f"{'':<12} {'requests':>8}   prefix   prefix, 5 min   marks, 5 min\n"
    )
    for kind, count in counts.items():
        asked = sum(1 for one in sent if kind in {"all", one.kind})
        sys.stdout.write(f"{kind:<12} {asked:>8}   {count.shares()}\n")
    sys.stdout.write(f"cost of the input by marks, 5 min: {counts['all'].paid / 4e6:.2f} M tokens at the full price\n")
    sys.stdout.write("not in the prefix of an earlier request:\n")
    for kind, count in counts.items():
        sys.stdout.write(f"{kind:<12} {count.lost()}\n")
    return 0 if options.quiet or counts["all"].prefix >= GOAL * counts["all"].total else 1


if __name__ == "__main__":
    sys.exit(main())
