"""Measures the time to build a prompt: 11 files, about 40,000 tokens, read from disk, recorded, chosen and joined.

Run: `python bench/assembly.py [turns]`. Exit code 1 if the p95 of the turns is over 10 ms.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.cached_day import PROMPT_TOKENS, bench_prompter
from common.clock import SystemClock
from common.files import write_atomic
from modules.runtime.home import Home
from modules.services.agent.prompt.estimate import Estimator
from modules.services.agent.prompt.prompter import Changes
from modules.services.agent.prompt.sources import Sources
from modules.services.owner_files import LocalOwnerFiles
from modules.services.skills.skills import Skills
from soul.resources import SKILLS

LIMIT_MS = 10.0
FILES = ("USER.md", "AGENTS.md", "IDENTITY.md", "GOALS.md", "MEMORY.md", "PROSOCHE.md", "HEARTBEAT.md")
_SECTION = "## Section {}\n\n" + "A tide table says when, and never how high the wind will push it. " * 12 + "\n\n"


async def measure(root: Path, turns: int) -> tuple[list[float], list[float], int, int]:
    """Return wall and processor seconds of each turn, and the tokens and the number of parts of the last prompt."""
    home = Home.at(root)
    page = "".join(_SECTION.format(number) for number in range(1000))[: PROMPT_TOKENS * 4 // 11 - 60]
    write_atomic(home.soul, f"# SOUL\n\n{page}")
    write_atomic(home.self_md, f"# Marlow\n\n{page}")
    for name in (*FILES, "CONTEXT.md"):
        write_atomic(home.workspace / name, page)
    owner_files = LocalOwnerFiles(home, print)

    async def read(name: str) -> str:
        return await owner_files.read(name) or ""

    async def attention_list(*, public: bool) -> str:
        return "" if public else await read("PROSOCHE.md")

    skills = Skills.load(SKILLS)
    status = home.memory / "status"
    sources = Sources(owner_files=owner_files, memory_md=lambda: read("MEMORY.md"), attention_list=attention_list)
    estimator = Estimator(home.memory / "ratios.json", model="bench")
    changes = Changes(status / "bootstrap-changes.jsonl", status / "hashes.json", SystemClock())
    prompter = bench_prompter(home, skills, sources, estimator.estimate, changes)
    variables = dict.fromkeys(skills.variables("owner-communication", "System Prompt"), "word")
    spent, worked = list[float](), list[float]()
    now = datetime(2026, 11, 22, 8, tzinfo=UTC)
    for turn in range(turns):
        if turn % 10 == 0:
            write_atomic(home.workspace / "CONTEXT.md", f"{turn}\n{page[:-8]}")
        began, before = time.perf_counter(), time.process_time()
        prompt = await prompter.prompt(
            skill="owner-communication",
            variables=variables,
            audience="owner",
            session_key="owner:terminal",
            now=now + timedelta(minutes=turn),
        )
        spent.append(time.perf_counter() - began)
        worked.append(time.process_time() - before)
    return spent, worked, sum(part.tokens for part in prompt.parts), len(prompt.parts)


def main() -> int:
    """Measure, print, and return the exit code."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        spent, worked, tokens, parts = asyncio.run(measure(Path(folder), turns))
    quantiles = statistics.quantiles(spent, n=100)
    p50, p95, p99 = (quantiles[at] * 1000 for at in (49, 94, 98))
    sys.stdout.write(
        f"{turns} prompts of {parts} parts, about {tokens} tokens each; every tenth turn one file has changed\n"
        f"p50 {p50:.2f} ms, p95 {p95:.2f} ms, p99 {p99:.2f} ms, most {max(spent) * 1000:.2f} ms; "
        f"allowed: p95 {LIMIT_MS} ms\n"
        f"of it the processor: p50 {statistics.median(worked) * 1000:.2f} ms, "
        f"p95 {statistics.quantiles(worked, n=100)[94] * 1000:.2f} ms\n"
    )
    return 0 if p95 <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
