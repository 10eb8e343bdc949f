"""Measures the first request about a mention, and about an owner's line in the terminal, part by part.

Run: `python bench/mention_turn.py`. Exit code 1 if a stranger's takes over 2,400 tokens, the owner's over 4,000, the
line in the terminal over 3,800, or the second request about that line, after `day_read`, over 4,500.

The SOUL is as `soul init` lays it out, with GitHub, and has lived for a while: it has 40 memories from each of two
days, some from strangers, and a few older ones that fit the mention better than any of these. It is mentioned three
times: by a stranger below eight posts of a thread, by the owner, for whom it may act, and by the owner below the same
thread. Then its owner asks it something in the terminal. Tokens are estimated as for the budget of a prompt, tools
included.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from tests.owner_lines import answered

sys.path.insert(0, str(Path(__file__).parents[1]))

from modules.runtime.home import Home
from modules.services.agent.prompt.estimate import Estimator
from modules.services.agent.prompt.fitting import RULE
from modules.services.agent.prompt.prompter import Core
from modules.services.memory.admission import NewMemory
from modules.services.skills.skills import Skills
from soul.resources import SKILLS
from tests.running_town import RunningSoul, RunningTown, awake, call, open_running_town, replying
from tests.town_github import serve_github
from town.model.types import ChatRequest, Completion

STRANGERS, OWNERS, TERMINAL, AFTER_DAY = 2_400, 4_000, 3_800, 4_500
_TOLD = {"bluesky_username": "rowan.test", "owner_handle": "owner.test", "github_username": ""}
_OTHER = "files and the moment"
_A_DAY = 40
_OLDER = 4
_THREAD = 8
_LESSON = "the weir at {} holds back more than the tables say, and the wind decides the rest of it; look there first"
_OLD = (
    "spring {}: what the weir at the old gate did in the night told me about tomorrow more truly than the forecast did"
)
_SAID = "{}: they built the weir before the mill, so the water there keeps the older time, and the mill only borrows it"


async def remember(life: RunningSoul) -> None:
    """Save the memories of past days: lessons of its own, and every fourth of two days from a stranger."""
    memories, now = life.app.services.knowledge.stores.memories, life.app.services.clock.now()
    for number in range(_OLDER):
        told = NewMemory("lesson", f"the old gate, spring {number}", _OLD.format(number), source="self")
        await memories.save(told, now - timedelta(days=9 + number))
    for number in range(2 * _A_DAY):
        theirs = number % 4 == 0
        new = NewMemory(
            "person" if theirs else "lesson",
            f"the weir at gate {number}",
            _LESSON.format(f"gate {number}"),
            source=f"bluesky:thread:{number}" if theirs else "self",
            trust="stranger" if theirs else "self",
        )
        await memories.save(new, now - timedelta(days=1 if number < _A_DAY else 0, seconds=2 * _A_DAY - number))


def thread(town: RunningTown) -> str:
    """Write eight posts of two strangers, one below the other; return the uri of the last."""
    uri, _ = town.network.post_as(town.account("kit"), _SAID.format(0))
    for number in range(1, _THREAD):
        author = town.account(("kit", "odile")[number % 2])
        uri, _ = town.network.post_as(author, _SAID.format(number), reply_to_uri=uri)
    return uri


def wire(request: ChatRequest) -> tuple[str, str, str]:
    """Return the system prompt, the messages, and the tools as sent over the wire."""
    system = "".join(message.text for message in request.messages if message.role == "system")
    said = "".join(message.text for message in request.messages if message.role != "system")
    tools = [
        {
            "type": "function",
            "function": {"name": one.name, "description": one.description, "parameters": one.parameters},
        }
        for one in request.offers
    ]
    return system, said, json.dumps(tools, ensure_ascii=False)


async def asked(town: RunningTown, life: RunningSoul, author: str, below: str | None) -> ChatRequest:
    """Return the first request of the turn about a mention."""
    before = len(town.mind.asked)
    town.mind.answer = replying(
        f"Gate {before} held back the flood of a spring; look at its hinges before you trust it."
    )
    words = "@rowan.test what does the weir at the old gate tell you about tomorrow?"
    town.network.post_as(town.account(author), words, reply_to_uri=below)
    await life.look()
    return next(one for one in town.mind.asked[before:] if one.offers)


async def asked_in_terminal(town: RunningTown, life: RunningSoul) -> Sequence[ChatRequest]:
    """Return the two requests of the turn about an owner's line; the second holds the day that the first asked for."""
    before = len(town.mind.asked)
    calls = [call("day_read")]
    town.mind.answer = lambda _: calls.pop() if calls else Completion("The hinges held.")
    await answered(life.app.owner, "what does the weir at the old gate tell you about tomorrow?")
    return [one for one in town.mind.asked[before:] if one.offers]


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


def judged(
    home: Home, skills: Skills, title: str, request: ChatRequest, estimator: Estimator, *, purpose: str, most: int
) -> bool:
    """Print the table of a request; return whether it is within `most` tokens."""
    system, message, tools = wire(request)
    files = {"ground rules": Core(skills).text, "SOUL.md": home.soul.read_text(), "SELF.md": home.self_md.read_text()}
    files["task"] = skills.render(purpose, "System Prompt", **_TOLD, tools=[offer.name for offer in request.offers])
    parts = parts_of(system, message, tools, files=files, skills=skills, estimate=estimator.estimate)
    return show(f"{title} ({len(request.offers)} tools)", parts, most)


async def measure(root: Path) -> bool:
    """Go through all turns, print, and return whether all limits are kept."""
    skills = Skills.load(SKILLS)
    estimator = Estimator(root / "ratios.json", model="bench")
    async with open_running_town(root) as town, serve_github(town) as github:
        home = github.make_home()
        async with awake(home) as life:
            await life.look()
            await remember(life)
            kept = True
            for title, author, below in (
                ("a stranger's mention, below a thread", "odile", thread(town)),
                ("the owner's mention", "owner", None),
                ("the owner's mention, below a thread", "owner", thread(town)),
            ):
                request = await asked(town, life, author, below)
                most = OWNERS if author == "owner" else STRANGERS
                kept = judged(home, skills, title, request, estimator, purpose="bluesky-response", most=most) and kept
            first, second = await asked_in_terminal(town, life)
            for title, request, most in (
                ("the owner's line in the terminal", first, TERMINAL),
                ("the same, after day_read", second, AFTER_DAY),
            ):
                kept = (
                    judged(home, skills, title, request, estimator, purpose="owner-communication", most=most) and kept
                )
    return kept


def main() -> int:
    """Measure in a fresh town, and return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(measure(Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
