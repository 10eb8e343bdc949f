"""The parts of one request to a model and what each costs; for the benches of single turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from modules.services.agent.prompt.cache_order import RULE
from modules.services.skills.skills import Skills

_OTHER = "files and the moment"


def parts_of(
    system: str, message: str, tools: str, *, files: Mapping[str, str], skills: Skills, estimate: Callable[[str], int]
) -> dict[str, int]:
    """Return the tokens of each part. `files` are the texts that the system prompt holds whole, by their names."""
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
    """Print a table of the parts, and the sum beside its limit; return whether it is kept."""
    total = sum(parts.values())
    sys.stdout.write(f"{title}: {total} tokens (at most {limit})\n")
    for name, tokens in sorted(parts.items(), key=lambda part: -part[1]):
        sys.stdout.write(f"  {name:<22} {tokens:>6}\n")
    return total <= limit
